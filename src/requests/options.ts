import * as z from 'zod/mini';
import { invalidOptions, TokenError } from '../errors.ts';
import { once } from '../inputs/once.ts';
import { publicUrlField } from '../inputs/public-url.ts';
import {
  callback,
  checkOptions,
  fields,
  gotKind,
  readLongInput,
  secondsField,
  strict,
  wholeNumber,
} from '../inputs/schemas.ts';
import type { Read } from '../inputs/types.ts';
import { hasMethods } from '../ports/has-methods.ts';
import type { RequestStore } from '../ports/request-store.ts';
import type { TokenService } from '../service.ts';
import { isPlainText, type Lifetime } from '../token/record.ts';
import type { ApproveOptions, OpenInput, RequestEvent, TokenRequest } from './types.ts';

/** Characters of what a program calls itself. @bound */
export const MAX_CLIENT_LENGTH = 100;

/** Scopes that one request for a token may ask for. @bound */
export const MAX_ASKED_SCOPES = 256;

/** Bytes of the client, the purpose and the scopes of one request for a token together. @bound */
export const MAX_REQUEST_BYTES = 16_384;

/** Requests to elevate tokens of one root that are not expired, also decided ones. @bound */
export const MAX_REQUESTS_OF_ROOT = 10;

/** How {@link TokenRequests} works. */
export interface TokenRequestsOptions {
  /** The service that issues the tokens. */
  readonly tokens: TokenService;
  /** Where requests are stored. @default the `requests` of the store of the service */
  readonly store?: RequestStore | undefined;
  /**
   * The page where people type the user code: an `https` URL, or `http` on loopback, without a query, a
   * fragment and user information.
   */
  readonly verificationUri: string;
  /**
   * Whether anybody may open a request. Without it, only the bearer of a live token can, to have that token
   * elevated. @default false
   */
  readonly anonymous?: boolean | undefined;
  /** How long a request can be decided, in whole seconds: from 60 to 3600. @default 600 */
  readonly lifetimeSeconds?: number | undefined;
  /** The longest life of an elevation, in whole seconds: from 60 to 86 400. @default 3600 */
  readonly maxElevationSeconds?: number | undefined;
  /**
   * Requests at a time that are not expired, from 2 to 1 000 000. Those without `elevate` fill at most half of
   * it. @default 10 000
   */
  readonly maxPending?: number | undefined;
  /**
   * Decides whether this person may approve this request. It is asked when the request is approved, and again
   * when its token is issued. If it throws, nothing is issued. @default whoever acts for the account may
   */
  readonly mayApprove?:
    | ((request: TokenRequest, approval: Approval) => boolean | Promise<boolean>)
    | undefined;
  /** Receives what happens to requests, without their codes. Not awaited; what it throws is ignored. */
  readonly onEvent?: ((event: RequestEvent) => void) | undefined;
}

/** Who approves a request. */
export interface Approval {
  /** The account that the token would belong to. */
  readonly account: string;
  /** The person, as the host names people, if that is known. */
  readonly by?: string | undefined;
}

const options = /* @__PURE__ */ once(() =>
  strict({
    tokens: z.custom<TokenService>((value) => hasMethods(value, 'issue', 'verify', 'parts'), {
      error: gotKind('tokens must be a TokenService'),
    }),
    store: z.optional(
      z.custom<RequestStore>((value) => isRequestStore(value), {
        error: gotKind('store must be a RequestStore, such as new MemoryTokenStore().requests'),
      }),
    ),
    verificationUri: publicUrlField('verificationUri', 'https://example.com/tokens'),
    anonymous: z.optional(z.boolean({ error: gotKind('anonymous must be true or false') })),
    lifetimeSeconds: z.optional(wholeNumber(60, 3600, 'lifetimeSeconds')),
    maxElevationSeconds: z.optional(wholeNumber(60, 86_400, 'maxElevationSeconds')),
    maxPending: z.optional(wholeNumber(2, 1_000_000, 'maxPending')),
    mayApprove: z.optional(
      callback<NonNullable<TokenRequestsOptions['mayApprove']>>('mayApprove must be a function'),
    ),
    onEvent: z.optional(callback<(event: RequestEvent) => void>('onEvent must be a function')),
  }),
);

/** The options with all defaults filled in. */
export type ReadRequestsOptions = ReturnType<typeof readRequestsOptions>;

/** @throws {TokenError} `invalid_options`, naming the option and what it should be, never its value */
export function readRequestsOptions(given: unknown) {
  const read = checkOptions(options(), given);
  const service = read.tokens.parts();
  const store = read.store ?? service.beside.requests();
  if (!isRequestStore(store) || service.isInside) {
    throw invalidOptions(
      'store must be given: the store of this service keeps tokens only, or works in your transaction',
    );
  }
  return {
    service,
    store,
    verificationUri: read.verificationUri,
    anonymous: read.anonymous ?? false,
    lifetimeSeconds: read.lifetimeSeconds ?? 600,
    maxElevationSeconds: read.maxElevationSeconds ?? 3600,
    maxPending: read.maxPending ?? 10_000,
    mayApprove: read.mayApprove,
    onEvent: read.onEvent,
  };
}

function isRequestStore(value: unknown): value is RequestStore {
  return hasMethods<RequestStore>(value, 'insert', 'find', 'replace', 'purge');
}

const client = /* @__PURE__ */ once(() =>
  z.custom<string>(isClient, {
    error: gotKind(
      `client must be 1 to ${MAX_CLIENT_LENGTH} characters without control characters`,
    ),
  }),
);

function isClient(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    value !== '' &&
    [...value].length <= MAX_CLIENT_LENGTH &&
    isPlainText(value)
  );
}

const address = /* @__PURE__ */ once(() =>
  z.optional(z.string({ error: gotKind('address must be an IP address as a text') })),
);

/** Reads the input of `open`. @throws {TokenError} */
export async function readOpen(
  input: unknown,
  { maxElevationSeconds }: Pick<ReadRequestsOptions, 'maxElevationSeconds'>,
  { maxSeconds }: Lifetime,
): Promise<Read<OpenInput>> {
  const isElevation =
    typeof input === 'object' &&
    input !== null &&
    'elevate' in input &&
    input.elevate !== undefined;
  const most = isElevation ? Math.min(maxElevationSeconds, maxSeconds) : maxSeconds;
  const schema = strict(
    {
      client: client(),
      scopes: fields.scopes(),
      purpose: z.optional(fields.purpose()),
      ttlSeconds: z.optional(secondsField('ttlSeconds', 1, most)),
      elevate: z.optional(z.string({ error: 'elevate must be the value of a token' })),
      address: address(),
    },
    'open takes',
  );
  const read = await readLongInput(schema, input);
  if (read.scopes.length > MAX_ASKED_SCOPES) {
    throw new TokenError(
      'too_many_scopes',
      `a request asks for at most ${MAX_ASKED_SCOPES} scopes; this one asks for ${read.scopes.length}`,
      { member: 'scopes', max: MAX_ASKED_SCOPES },
    );
  }
  const bytes = Buffer.byteLength([read.client, read.purpose ?? '', ...read.scopes].join('\n'));
  if (bytes > MAX_REQUEST_BYTES) {
    throw new TokenError(
      'invalid_request',
      `the client, the purpose and the scopes of a request may take at most ${MAX_REQUEST_BYTES} bytes together; these take ${bytes}`,
      { max: MAX_REQUEST_BYTES },
    );
  }
  return read;
}

const by = /* @__PURE__ */ once(() => z.optional(fields.createdBy()));

const approveOptions = /* @__PURE__ */ once(() =>
  strict({
    scopes: z.optional(fields.scopes()),
    ttlSeconds: z.optional(secondsField('ttlSeconds', 1, Number.MAX_SAFE_INTEGER)),
    by: by(),
    address: address(),
  }),
);
export const denyOptions = /* @__PURE__ */ once(() => strict({ by: by(), address: address() }));
export const getRequestOptions = /* @__PURE__ */ once(() => strict({ address: address() }));
export const pollOptions = /* @__PURE__ */ once(() => strict({ client: client() }));

/** @throws {TokenError} as the scopes are refused */
export function readApproval(given: unknown): Read<ApproveOptions> | Promise<Read<ApproveOptions>> {
  return readLongInput(approveOptions(), given);
}
