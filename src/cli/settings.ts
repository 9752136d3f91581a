import type { FixedAccount } from '../http/accounts.ts';

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
  /** Files and folders; empty for the example catalog. */
  readonly catalog: readonly string[];
  /** Empty where one account is to be made. */
  readonly accounts: readonly FixedAccount[];
  readonly prefix: string;
  readonly reveal: 'once' | 'always';
  readonly acceptLegacyBody: boolean;
  readonly maxStaleMs: number;
}

/** The flags of `serve`, for `parseArgs`. */
export const SERVE_OPTIONS = {
  port: { type: 'string' },
  host: { type: 'string' },
  data: { type: 'string' },
  store: { type: 'string' },
  table: { type: 'string' },
  catalog: { type: 'string', multiple: true },
  account: { type: 'string', multiple: true },
  prefix: { type: 'string' },
  reveal: { type: 'string' },
  'max-stale-ms': { type: 'string' },
  'accept-legacy-body': { type: 'boolean' },
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
  readonly catalog?: readonly string[];
  readonly account?: readonly string[];
  readonly prefix?: string;
  readonly reveal?: string;
  readonly 'max-stale-ms'?: string;
  readonly 'accept-legacy-body'?: boolean;
}

const MAX_STALE_MS = 60_000;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Puts flags, environment and defaults together; a flag wins over its variable, and an empty
 * variable counts as none.
 *
 * @throws {UsageError} naming the setting and what it should be
 */
export function readSettings(flags: ServeFlags, environment: Environment): ServeSettings {
  const variable = (name: string) => environment[name] || undefined;
  const list = (name: string) =>
    variable(name)
      ?.split(',')
      .filter((entry) => entry !== '') ?? [];
  return {
    ...readStoreSettings(flags, environment),
    port: readPort(flags.port ?? variable('PORT') ?? '8787'),
    host: flags.host ?? variable('TOKENWRIGHT_HOST') ?? '127.0.0.1',
    catalog: flags.catalog ?? list('TOKENWRIGHT_CATALOG'),
    accounts: (flags.account ?? list('TOKENWRIGHT_ACCOUNTS')).map(readAccount),
    prefix: flags.prefix ?? variable('TOKENWRIGHT_PREFIX') ?? 'tw',
    reveal: readReveal(flags.reveal ?? variable('TOKENWRIGHT_REVEAL') ?? 'always'),
    acceptLegacyBody:
      flags['accept-legacy-body'] ?? readSwitch(variable('TOKENWRIGHT_ACCEPT_LEGACY_BODY')),
    maxStaleMs: readStaleness(flags['max-stale-ms'] ?? variable('TOKENWRIGHT_MAX_STALE_MS') ?? '0'),
  };
}

/** The part of {@link readSettings} that says which store is meant. */
export function readStoreSettings(flags: StoreFlags, environment: Environment): StoreSettings {
  return {
    store: flags.store ?? (environment['TOKENWRIGHT_STORE'] || undefined),
    table: flags.table ?? (environment['TOKENWRIGHT_TABLE'] || undefined),
    data: readFolder(flags.data ?? (environment['TOKENWRIGHT_DATA'] || './data')),
  };
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

function readReveal(text: string): 'once' | 'always' {
  if (text === 'once' || text === 'always') return text;
  throw new UsageError('--reveal (TOKENWRIGHT_REVEAL) must be once or always');
}

function readSwitch(text = 'false'): boolean {
  if (['true', '1', 'on', 'yes'].includes(text)) return true;
  if (['false', '0', 'off', 'no'].includes(text)) return false;
  throw new UsageError('TOKENWRIGHT_ACCEPT_LEGACY_BODY must be true or false');
}

/** Never repeats what was given: there is a password in it. */
function readAccount(text: string): FixedAccount {
  const colon = text.indexOf(':');
  if (colon < 1 || colon === text.length - 1) {
    throw new UsageError('--account (TOKENWRIGHT_ACCOUNTS) must be user:password');
  }
  return { username: text.slice(0, colon), password: text.slice(colon + 1) };
}
