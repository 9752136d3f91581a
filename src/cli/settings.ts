import type { FixedAccount } from '../http/accounts.ts';
import { editDistance } from '../scope/catalog.ts';

/** What was asked of a command cannot be done: its message is for the person at the terminal. */
export class UsageError extends Error {}

/** Where tokens are kept. */
export interface StoreSettings {
  /** The URL of a database; absent for an SQLite file among the data. */
  readonly store: string | undefined;
  /** What the table is called, and for Redis what the keys begin with. */
  readonly table: string | undefined;
  readonly data: string;
}

/** How the service runs. */
export interface ServeSettings extends StoreSettings {
  readonly port: number;
  readonly host: string;
  /** A file of keys; absent where they are among the data, and made when they are not there. */
  readonly keys: string | undefined;
  /** Files and folders; empty for the example catalog. */
  readonly catalog: readonly string[];
  /** Empty where one account is to be made. */
  readonly accounts: readonly FixedAccount[];
  readonly prefix: string;
  readonly reveal: 'once' | 'always';
  readonly acceptLegacyBody: boolean;
  readonly maxStaleMs: number;
  /** Resource servers that may ask about values; empty where none may. */
  readonly introspection: readonly FixedAccount[];
  readonly revocation: boolean;
  readonly docs: boolean;
  readonly pathTokens: 'any' | 'id-only';
  /** The header in which a proxy names the client; absent where there is no proxy. */
  readonly clientHeader: string | undefined;
}

/** The flags of `serve`, for `parseArgs`. */
export const SERVE_OPTIONS = {
  port: { type: 'string' },
  host: { type: 'string' },
  data: { type: 'string' },
  store: { type: 'string' },
  table: { type: 'string' },
  keys: { type: 'string' },
  catalog: { type: 'string', multiple: true },
  account: { type: 'string', multiple: true },
  prefix: { type: 'string' },
  reveal: { type: 'string' },
  'max-stale-ms': { type: 'string' },
  'accept-legacy-body': { type: 'boolean' },
  introspection: { type: 'string', multiple: true },
  revocation: { type: 'boolean' },
  docs: { type: 'boolean' },
  'path-tokens': { type: 'string' },
  'client-header': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

interface StoreFlags {
  readonly store?: string;
  readonly table?: string;
  readonly data?: string;
}

interface ServeFlags extends StoreFlags {
  readonly port?: string;
  readonly host?: string;
  readonly keys?: string;
  readonly catalog?: readonly string[];
  readonly account?: readonly string[];
  readonly prefix?: string;
  readonly reveal?: string;
  readonly 'max-stale-ms'?: string;
  readonly 'accept-legacy-body'?: boolean;
  readonly introspection?: readonly string[];
  readonly revocation?: boolean;
  readonly docs?: boolean;
  readonly 'path-tokens'?: string;
  readonly 'client-header'?: string;
}

const MAX_STALE_MS = 60_000;

type Environment = Readonly<Record<string, string | undefined>>;

const PREFIX = 'TOKENWRIGHT_';

/** What follows the prefix in the name of a variable that some command reads. */
const VARIABLES = [
  'ACCEPT_LEGACY_BODY',
  'ACCOUNTS',
  'CATALOG',
  'CLIENT_HEADER',
  'DATA',
  'DOCS',
  'HOST',
  'INTROSPECTION',
  'KEYS',
  'MAX_STALE_MS',
  'PASSWORD',
  'PATH_TOKENS',
  'PREFIX',
  'REVEAL',
  'REVOCATION',
  'STORE',
  'TABLE',
  'TOKEN',
  'URL',
  'USER',
] as const;
type Variable = `${typeof PREFIX}${(typeof VARIABLES)[number]}` | 'PORT';

/**
 * What Kubernetes tells each container of a service that is called `tokenwright`, or
 * `tokenwright-` and more.
 */
const OF_KUBERNETES = /_(?:SERVICE_HOST|SERVICE_PORT|PORT_\d+_(?:TCP|UDP|SCTP))(?:_|$)/;
const KUBERNETES_PORT = /^(?:tcp|udp|sctp):\/\//;

/**
 * Refuses a variable that looks like ours and that no command reads: a setting that is misspelt
 * would be passed over, and the default taken. An empty one counts as none.
 *
 * @throws {UsageError} naming the variable and the one that was meant, never what it holds
 */
export function checkVariables(environment: Environment): void {
  const known: readonly string[] = VARIABLES;
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith(PREFIX) || !value || isOfKubernetes(name, value)) continue;
    const rest = name.slice(PREFIX.length);
    if (known.includes(rest)) continue;
    const meant = nearest(rest, ['PORT', ...known]);
    const hint =
      meant === undefined
        ? 'see tokenwright serve --help for those that there are'
        : `did you mean ${meant === 'PORT' ? meant : PREFIX + meant}?`;
    throw new UsageError(`no command knows the variable ${name}; ${hint}`);
  }
}

function isOfKubernetes(name: string, value: string): boolean {
  return OF_KUBERNETES.test(name) || (name.endsWith('_PORT') && KUBERNETES_PORT.test(value));
}

/**
 * Puts flags, environment and defaults together; a flag wins over its variable, and an empty
 * variable counts as none.
 *
 * @throws {UsageError} naming the setting and what it should be
 */
export function readSettings(flags: ServeFlags, environment: Environment): ServeSettings {
  const variable = (name: Variable) => readVariable(name, environment);
  const list = (name: Variable) =>
    variable(name)
      ?.split(',')
      .filter((entry) => entry !== '') ?? [];
  const isOn = (name: Variable) => readSwitch(variable(name), name);
  return {
    ...readStoreSettings(flags, environment),
    port: readPort(flags.port ?? variable('PORT') ?? '8787'),
    host: flags.host ?? variable('TOKENWRIGHT_HOST') ?? '127.0.0.1',
    keys: flags.keys ?? variable('TOKENWRIGHT_KEYS'),
    catalog: flags.catalog ?? list('TOKENWRIGHT_CATALOG'),
    accounts: (flags.account ?? list('TOKENWRIGHT_ACCOUNTS')).map((text) =>
      readAccount(text, '--account (TOKENWRIGHT_ACCOUNTS)'),
    ),
    prefix: flags.prefix ?? variable('TOKENWRIGHT_PREFIX') ?? 'tw',
    reveal: readReveal(flags.reveal ?? variable('TOKENWRIGHT_REVEAL') ?? 'always'),
    acceptLegacyBody: flags['accept-legacy-body'] ?? isOn('TOKENWRIGHT_ACCEPT_LEGACY_BODY'),
    maxStaleMs: readStaleness(flags['max-stale-ms'] ?? variable('TOKENWRIGHT_MAX_STALE_MS') ?? '0'),
    introspection: (flags.introspection ?? list('TOKENWRIGHT_INTROSPECTION')).map((text) =>
      readAccount(text, '--introspection (TOKENWRIGHT_INTROSPECTION)'),
    ),
    revocation: flags.revocation ?? isOn('TOKENWRIGHT_REVOCATION'),
    docs: flags.docs ?? isOn('TOKENWRIGHT_DOCS'),
    pathTokens: readPathTokens(
      flags['path-tokens'] ?? variable('TOKENWRIGHT_PATH_TOKENS') ?? 'any',
    ),
    clientHeader: readHeader(flags['client-header'] ?? variable('TOKENWRIGHT_CLIENT_HEADER')),
  };
}

/** The known word that is most like one that is not; `undefined` where none is much like it. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const limit = Math.min(3, Math.ceil(word.length / 2) + 1);
  const distances = known.map((other) => editDistance(word, other, limit));
  const least = Math.min(...distances);
  const isInside = (other: string) => word.length >= 3 && other.includes(word);
  return least < limit ? known[distances.indexOf(least)] : known.find(isInside);
}

/** A variable of the environment; an empty one counts as none. */
export function readVariable(
  name: Variable,
  environment: Environment = process.env,
): string | undefined {
  return environment[name] || undefined;
}

/** The part of {@link readSettings} that says which store is meant. */
export function readStoreSettings(flags: StoreFlags, environment: Environment): StoreSettings {
  const variable = (name: Variable) => readVariable(name, environment);
  return {
    store: flags.store ?? variable('TOKENWRIGHT_STORE'),
    table: flags.table ?? variable('TOKENWRIGHT_TABLE'),
    data: readFolder(flags.data ?? variable('TOKENWRIGHT_DATA') ?? './data'),
  };
}

/**
 * A span of time: seconds, or with a unit, as `90d`.
 *
 * @throws {UsageError}
 */
export function readSeconds(text: string, flag: string): number {
  const [, number, unit = 's'] = /^(\d{1,9})([smhd]?)$/.exec(text) ?? [];
  const seconds = Number(number) * (SECONDS.get(unit) ?? 1);
  if (number !== undefined) return seconds;
  throw new UsageError(`--${flag} must be whole seconds, or like 90d, 12h, 30m`);
}

const SECONDS: ReadonlyMap<string, number> = new Map([
  ['m', 60],
  ['h', 3600],
  ['d', 86_400],
]);

/**
 * An instant: a date, which begins at midnight UTC, a time with its zone, or UNIX seconds.
 *
 * @throws {UsageError}
 */
export function readTime(text: string, flag: string): Date {
  const isUnix = /^\d{1,12}$/.test(text);
  const isIso = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d))?$/.test(text);
  const time = new Date(isUnix ? Number(text) * 1000 : text);
  if ((isUnix || isIso) && Number.isFinite(time.getTime())) return time;
  throw new UsageError(`--${flag} must be like 2027-01-31, 2027-01-31T12:00:00Z or UNIX seconds`);
}

/**
 * A whole number from 1 on.
 *
 * @throws {UsageError}
 */
export function readNumber(
  text: string | undefined,
  flag: string,
  max: number,
): number | undefined {
  if (text === undefined) return undefined;
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= 1 && number <= max) return number;
  throw new UsageError(`--${flag} must be a whole number from 1 to ${max}`);
}

/** Else a folder would be made that has a password in its name. */
function readFolder(data: string): string {
  if (!data.includes('://')) return data;
  throw new UsageError('--data (TOKENWRIGHT_DATA) must be a folder; a URL belongs to --store');
}

function readPort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= 65_535) return port;
  throw new UsageError('--port (PORT) must be a whole number from 0 to 65535');
}

function readStaleness(text: string): number {
  const milliseconds = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (milliseconds <= MAX_STALE_MS) return milliseconds;
  throw new UsageError(
    `--max-stale-ms (TOKENWRIGHT_MAX_STALE_MS) must be a whole number from 0 to ${MAX_STALE_MS}`,
  );
}

/** @throws {UsageError} */
export function readReveal(text: string): 'once' | 'always' {
  if (text === 'once' || text === 'always') return text;
  throw new UsageError('--reveal (TOKENWRIGHT_REVEAL) must be once or always');
}

function readPathTokens(text: string): 'any' | 'id-only' {
  if (text === 'any' || text === 'id-only') return text;
  throw new UsageError('--path-tokens (TOKENWRIGHT_PATH_TOKENS) must be any or id-only');
}

function readHeader(name: string | undefined): string | undefined {
  if (name === undefined || /^[A-Za-z0-9-]{1,100}$/.test(name)) return name;
  throw new UsageError(
    '--client-header (TOKENWRIGHT_CLIENT_HEADER) must be the name of a header, as X-Real-IP',
  );
}

function readSwitch(text = 'false', name: string): boolean {
  if (['true', '1', 'on', 'yes'].includes(text)) return true;
  if (['false', '0', 'off', 'no'].includes(text)) return false;
  throw new UsageError(`${name} must be true or false`);
}

/** Never repeats what was given: there is a password in it. */
function readAccount(text: string, setting: string): FixedAccount {
  const colon = text.indexOf(':');
  if (colon < 1 || colon === text.length - 1) {
    throw new UsageError(`${setting} must be user:password`);
  }
  return { username: text.slice(0, colon), password: text.slice(colon + 1) };
}
