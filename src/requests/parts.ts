import type { RequestRecord } from '../ports/request-store.ts';
import type { TokenRecord } from '../token/record.ts';
import type { ServiceParts } from '../verbs/parts.ts';
import type { CheckedRequestStore } from './checked-request-store.ts';
import type { ReadRequestsOptions } from './options.ts';
import type { Pace } from './pace.ts';
import type { Tries } from './tries.ts';
import type { RequestEvent } from './types.ts';

/** The parts that the methods of `TokenRequests` work with. */
export interface RequestParts {
  readonly service: ServiceParts;
  readonly options: ReadRequestsOptions;
  readonly store: CheckedRequestStore;
  readonly tries: Tries;
  readonly pace: Pace;
  /** Emits what happened to a request. */
  readonly emit: (type: RequestEvent['type'], record: RequestRecord, now: number) => void;
}

/** A request that can still lead to a token, and the token that it elevates, narrowed to its ancestors. */
export interface LiveRequest {
  readonly record: RequestRecord;
  readonly first: TokenRecord | undefined;
}
