import * as z from 'zod/mini';
import { MAX_ACCOUNT_BYTES } from '../bounds.ts';
import { once } from '../inputs/once.ts';
import { callback, checkOptions, fields, readOption, strict, wholeNumber } from '../inputs/schemas.ts';
import { hasMethods } from '../ports/has-methods.ts';
import type { RequestStore } from '../ports/request-store.ts';
import type { TokenService } from '../service.ts';
import type { RequestEvent, TokenRequest } from './types.ts';

void MAX_ACCOUNT_BYTES;
void fields;
void readOption;

/** How {@link TokenRequests} work. */
export interface TokenRequestsOptions {
  /** The service that issues the tokens. */
  readonly tokens: TokenService;
  /** Where requests are stored. @default the `requests` of the store of the service */
  readonly store?: RequestStore | undefined;
  /** The page where people type the user code: an `https` URL, or `http` on loopback, without a query. */
  readonly verificationUri: string;
  /**
   * Whether anybody may open a request. Without it, only the bearer of a live token can, to have that token
   * elevated. @default false
   */
  readonly anonymous?: boolean | undefined;
  /** How long a request can be decided, in seconds: 60 to 3600. @default 600 */
  readonly lifetimeSeconds?: number | undefined;
  /** The longest life of an elevation, in seconds: 60 to 86 400. @default 3600 */
  readonly maxElevationSeconds?: number | undefined;
  /** Requests at a time that are not expired: 2 to 1 000 000. Anonymous ones fill half of it. @default 10 000 */
  readonly maxPending?: number | undefined;
  /**
   * Decides whether this person may approve this request: asked when it is approved, and again when the token
   * is issued. If it throws, nothing is issued. @default whoever acts for the account may
   */
  readonly mayApprove?:
    | ((
        request: TokenRequest,
        approval: { readonly account: string; readonly by?: string | undefined },
      ) => boolean | Promise<boolean>)
    | undefined;
  /** Receives what happens to requests, without codes. Not awaited; what it throws is ignored. */
  readonly onEvent?: ((event: RequestEvent) => void) | undefined;
}

const DEFAULTS = {
  anonymous: false,
  lifetimeSeconds: 600,
  maxElevationSeconds: 3600,
  maxPending: 10_000,
} as const;

const schema = once(() =>
  strict({
    tokens: z.custom<TokenService>((value) => hasMethods(value, 'issue', 'verify'), {
      error: 'tokens must be a TokenService',
    }),
    store: z.optional(
      z.custom<RequestStore>((value) => hasMethods(value, 'insert', 'find', 'replace', 'purge'), {
        error: 'store must be a RequestStore, such as new MemoryTokenStore().requests',
      }),
    ),
    verificationUri: z.string({ error: 'verificationUri must be a URL' }),
    anonymous: z.optional(z.boolean({ error: 'anonymous must be true or false' })),
    lifetimeSeconds: z.optional(wholeNumber(60, 3600, 'lifetimeSeconds')),
    maxElevationSeconds: z.optional(wholeNumber(60, 86_400, 'maxElevationSeconds')),
    maxPending: z.optional(wholeNumber(2, 1_000_000, 'maxPending')),
    mayApprove: z.optional(
      callback<NonNullable<TokenRequestsOptions['mayApprove']>>('mayApprove must be a function'),
    ),
    onEvent: z.optional(callback<(event: RequestEvent) => void>('onEvent must be a function')),
  }),
);

/** @throws {TokenError} `invalid_options` */
export function readRequestsOptions(options: unknown) {
  const read = checkOptions(schema(), options);
  return { ...DEFAULTS, ...Object.fromEntries(Object.entries(read).filter(([, v]) => v !== undefined)) } as
    typeof DEFAULTS & typeof read;
}
