import { DeadlineError, type StorePart, type StoreReason, TokenError } from '../../errors.ts';
import { LEASES, REQUESTS, type TableKind, USAGE } from './schema-mark.ts';

/** Codes of the network, as Node and all drivers give them. */
const NETWORK = new Set<unknown>([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ENOENT',
  'EPIPE',
  'ERR_SOCKET_CLOSED',
  'ERR_STREAM_DESTROYED',
  // Of postgres.js.
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECTION_ENDED',
]);

/** Codes for certificates, as Node and OpenSSL give them, and of mysql2. The message is one of pg. */
const TLS_CODE =
  /^(?:CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|ERR_TLS_|ERR_SSL_|HANDSHAKE_(?:NO_)?SSL_)/;
const TLS_MESSAGE = /^The server does not support SSL connections/;

/** What Cloudflare Workers say when a request uses a connection that another one has opened. */
const FOREIGN_REQUEST = /on behalf of a different request/;

/** Why a call failed that the database itself has not refused; `undefined` if this does not tell. */
export function reasonOfConnection(error: unknown): StoreReason | undefined {
  if (error instanceof DeadlineError) return 'timeout';
  if (!(error instanceof Error)) return undefined;
  // Node tries each address of a host, and puts what they said into one error.
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error.cause;
  const { code } = error as { readonly code?: unknown };
  if (NETWORK.has(code)) return 'unreachable';
  if (code === 'ETIMEDOUT' || code === 'CONNECT_TIMEOUT') return 'timeout';
  if (TLS_CODE.test(String(code)) || TLS_MESSAGE.test(error.message)) return 'tls';
  if (FOREIGN_REQUEST.test(error.message)) return 'foreign_request';
  return inner === undefined ? undefined : reasonOfConnection(inner);
}

/** By a pool, an object of the request whose connections it holds. Another request must not touch it. */
const REQUEST_OF = new WeakMap<object, AbortSignal>();

/**
 * Whether a pool holds connections of another request, on Cloudflare Workers. They do not fail there: they hang.
 * If not, what it opens from now on belongs to this one.
 */
export function isOfOtherRequest(pool: { readonly idleCount: number }): boolean {
  // Node 20 has no `navigator`.
  if (globalThis.navigator?.userAgent !== 'Cloudflare-Workers') return false;
  try {
    REQUEST_OF.get(pool)?.throwIfAborted();
  } catch (error) {
    if (pool.idleCount > 0) return reasonOfConnection(error) === 'foreign_request';
  }
  REQUEST_OF.set(pool, new AbortController().signal);
  return false;
}

/** The part of the engine whose table a statement needed; `undefined` for the tokens. */
export function partOf(kind: TableKind): StorePart | undefined {
  if (kind === USAGE) return 'usage';
  if (kind === REQUESTS) return 'requests';
  return kind === LEASES ? 'leases' : undefined;
}

/** Databases that `migrate` refuses, each with what to use instead: no statement could change a token in one step. */
const INSTEAD_OF = {
  'Aurora DSQL': 'Aurora PostgreSQL',
  'tables that Citus has distributed': 'a local table',
  'sharded keyspaces of Vitess': 'an unsharded keyspace',
} as const;

export const UNSUPPORTED = Object.keys(INSTEAD_OF) as readonly (keyof typeof INSTEAD_OF)[];

/** The error of `migrate` for a database that cannot keep what a store promises. */
export function unsupported(database: keyof typeof INSTEAD_OF): TokenError {
  return new TokenError(
    'store_unavailable',
    `these tables cannot change in one step here; use ${INSTEAD_OF[database]}`,
    { reason: 'unsupported' },
  );
}
