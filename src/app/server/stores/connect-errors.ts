import { reasonOfConnection } from '../../../stores/shared/reasons.ts';

/** The message of ioredis for a connection that the server closed. */
export const IOREDIS_CLOSED = 'Connection is closed.';

const WRONG_PASSWORD =
  'the user or the password is wrong: correct them in the URL, with / ? # % in them percent-encoded';
const NO_PASSWORD = 'it wants a password: write it into the URL, user:password@ before the host';
const NO_DATABASE = 'there is no such database: create it, or correct its name in the URL';
const NO_RIGHT =
  'this user may not use the database, if there is one of that name: grant it, or correct the URL';
const NOT_FROM_HERE =
  'it lets nobody in from this machine: allow it there, or give it a password where it has none';
const TOO_MANY =
  'it has too many clients: end some, or let it have more; each service takes up to ten';
const SILENT =
  'it does not answer: a firewall may be between, another kind of server may listen there, or it is too busy';
const HUNG_UP = 'it hangs up: another kind of server may listen there, or it wants TLS';
const NO_ROUTE = 'no way leads to this host: look at the network, and at the host in the URL';
const REFUSED_SETTING =
  'a pooler such as PgBouncer refuses statement_timeout: set ignore_startup_parameters = extra_float_digits,statement_timeout in it';
const NOT_TRUSTED =
  'its certificate is not trusted, has expired, or is for another host: give the file of its authority in NODE_EXTRA_CA_CERTS, or correct the host in the URL';
const NO_TLS = 'it speaks no TLS: correct the URL, or turn TLS on in the server';

/** The fault and its fix, by the code of a driver's error or by the beginning of its message. */
const CONNECT_REASONS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'nothing listens there: start the server, or correct host and port in the URL'],
  ['ENOTFOUND', 'there is no host of that name: correct it in the URL'],
  ['EAI_AGAIN', 'the name of the host cannot be looked up now: look at the network, or try again'],
  ['EHOSTUNREACH', NO_ROUTE],
  ['ENETUNREACH', NO_ROUTE],
  ['ETIMEDOUT', SILENT],
  ['ECONNRESET', HUNG_UP],
  ['EPIPE', HUNG_UP],
  ['28P01', WRONG_PASSWORD],
  ['SASL: SCRAM-SERVER-FIRST-MESSAGE: client password', NO_PASSWORD],
  [
    '28000',
    'it does not let this user in: create the role, or allow it in pg_hba.conf; it may want TLS',
  ],
  ['3D000', NO_DATABASE],
  ['42501', NO_RIGHT],
  ['53300', TOO_MANY],
  ['unsupported startup parameter', REFUSED_SETTING],
  ['no such database', NO_DATABASE],
  ['no more connections allowed', TOO_MANY],
  ['query_wait_timeout', SILENT],
  ['57P03', 'it is starting or stopping: try again'],
  ['timeout', SILENT],
  ['Connection terminated due to connection timeout', SILENT],
  ['Connection terminated unexpectedly', HUNG_UP],
  ['The server does not support SSL connections', NO_TLS],
  ['ER_ACCESS_DENIED_ERROR', WRONG_PASSWORD],
  ['ER_DBACCESS_DENIED_ERROR', NO_RIGHT],
  ['ER_BAD_DB_ERROR', NO_DATABASE],
  ['ER_HOST_NOT_PRIVILEGED', NOT_FROM_HERE],
  ['ER_CON_COUNT_ERROR', TOO_MANY],
  ['PROTOCOL_CONNECTION_LOST', HUNG_UP],
  ['HANDSHAKE_NO_SSL_SUPPORT', NO_TLS],
  ['WRONGPASS', WRONG_PASSWORD],
  ['NOAUTH', NO_PASSWORD],
  ['NOPERM', 'this user may not do what is needed: allow it all keys, channels and commands'],
  ['DENIED', NOT_FROM_HERE],
  [IOREDIS_CLOSED, HUNG_UP],
  ['Socket timeout', SILENT],
  [
    'Failed to refresh slots cache',
    'nothing listens there, or it hangs up: start the servers, or correct hosts and ports in the URL',
  ],
  [
    'ERR DB',
    'there is no database of that number: correct it at the end of the URL, 0 to 15 unless the server has more',
  ],
  ['ERR max', TOO_MANY],
  ['ERR This', 'it is not a cluster: begin the URL with redis://'],
]);

/** Reasons that waiting does not change. */
const PERMANENT: ReadonlySet<string> = new Set([
  WRONG_PASSWORD,
  NO_PASSWORD,
  NO_DATABASE,
  NO_RIGHT,
  NOT_FROM_HERE,
  NO_TLS,
  NOT_TRUSTED,
  REFUSED_SETTING,
]);

/** Whether somebody has to correct something before a connection can be made. */
export function isPermanent(reason: string): boolean {
  return PERMANENT.has(reason);
}

const UNKNOWN_REASON = 'it is down, does not answer, or wants TLS otherwise than the URL says';

/** Explains why a connection failed, never with the text of the driver. */
export function connectReason(error: unknown): string {
  const code = codeOf(error);
  if (!CONNECT_REASONS.has(code) && reasonOfConnection(error) === 'tls') return NOT_TRUSTED;
  return CONNECT_REASONS.get(code) ?? (code === '' ? UNKNOWN_REASON : `it says ${code}`);
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const known = [...CONNECT_REASONS.keys()].find((beginning) =>
    error.message.startsWith(beginning),
  );
  // PgBouncer has one code for all of its own errors.
  if ('code' in error) return (error.code === '08P01' && known) || String(error.code);
  // The messages of Redis begin with a code.
  return known ?? /^(?:ERR \w+|[A-Z]{4,})\b/.exec(error.message)?.[0] ?? '';
}
