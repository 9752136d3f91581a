import type { RequestRecord } from '../ports/request-store.ts';
import type { TokenRecord } from '../token/record.ts';
import type { ServiceParts } from '../verbs/parts.ts';
import type { CheckedRequestStore } from './checked-request-store.ts';
import type { readRequestsOptions } from './options.ts';
import type { Pace } from './pace.ts';
import type { Tries } from './tries.ts';
import type { OpenInput, RequestEvent } from './types.ts';

/** The parts that the methods of {@link TokenRequests} work with. */
export interface RequestParts {
  readonly service: ServiceParts;
  readonly options: ReturnType<typeof readRequestsOptions>;
  readonly store: CheckedRequestStore;
  readonly tries: Tries;
  readonly pace: Pace;
  /** Reads the input of `open`. @throws {TokenError} `invalid_request`, and as the scopes are refused */
  readonly readOpen: (input: unknown) => OpenInput;
  /** Asks the host. @throws {TokenError} `store_unavailable` if it fails */
  readonly mayApprove: (
    found: { readonly record: RequestRecord; readonly first: TokenRecord | undefined },
    account: string,
    by: string | undefined,
  ) => Promise<boolean>;
  readonly emit: (type: RequestEvent['type'], record: RequestRecord, now: number) => void;
}
