import { getUnixTime } from 'date-fns/getUnixTime';
import { isTokenError } from '../errors.ts';
import type { Scope, ScopeCatalog } from '../scope/index.ts';
import type { TokenService } from '../service.ts';
import type { Token, Verdict } from '../token.ts';
import { type Account, type Finding, listAll, NotFound, type ShownToken } from './account.ts';
import { InputError, keyFile, readCatalog, readKeys } from './files.ts';
import {
  readReveal,
  readStoreSettings,
  readVariable,
  type StoreSettings,
  UsageError,
} from './settings.ts';
import { storePlace, withStore } from './stores.ts';

/** The flags that lead to an account, for `parseArgs`. {@link ACCOUNT_HELP} explains them. */
export const PLACE_FLAGS = {
  url: { type: 'string' },
  user: { type: 'string' },
  store: { type: 'string' },
  table: { type: 'string' },
  data: { type: 'string' },
  keys: { type: 'string' },
  prefix: { type: 'string' },
} as const;

export const ACCOUNT_FLAGS = {
  ...PLACE_FLAGS,
  account: { type: 'string', value: 'NAME' },
} as const;

/** For what grants scopes. */
export const CATALOG_FLAGS = {
  catalog: { type: 'string', multiple: true },
  patterns: { type: 'boolean' },
} as const;

/** For what makes values. */
export const REVEAL_FLAGS = { reveal: { type: 'string' } } as const;

/** What they were given as. */
export interface PlaceFlags {
  readonly url?: string;
  readonly user?: string;
  readonly store?: string;
  readonly table?: string;
  readonly data?: string;
  readonly keys?: string;
  readonly prefix?: string;
  readonly account?: string;
  readonly catalog?: string[];
  readonly patterns?: boolean;
  readonly reveal?: string;
}

/** Where tokens are looked for, for the help of the group. */
export const ACCOUNT_HELP = `Where the tokens are: behind a running service, or in a store  (environment)
  --url URL       a service, as http://127.0.0.1:8787       TOKENWRIGHT_URL
  --user NAME     who calls it                              TOKENWRIGHT_USER
                  The password has no flag, since flags show in
                  process lists                             TOKENWRIGHT_PASSWORD
or
  --store URL     the database, or sqlite:FILE              TOKENWRIGHT_STORE
  --table NAME    its table                                 TOKENWRIGHT_TABLE
  --data FOLDER   the folder of serve: its SQLite file, where
                  there is no --store, and its keys; ./data TOKENWRIGHT_DATA
  --keys FILE     the keys; default keys.json of the data,
                  where serve makes it                      TOKENWRIGHT_KEYS
  --prefix TEXT   what values begin with; default tw        TOKENWRIGHT_PREFIX
  --account NAME  whose tokens; with --url, the credentials say`;

/** For the commands that grant scopes, or make values, in a store. */
export const GRANT_HELP = `In a store, give what serve has, so that both make the same:
  --catalog FILE  the scopes that exist; repeatable         TOKENWRIGHT_CATALOG
  --patterns      without a catalog: keep wildcards as patterns, as a service
                  does that has none; else they are refused`;

export const REVEAL_HELP = `  --reveal WHEN   whether the service can show the value again: once or always;
                  default always, as that of serve          TOKENWRIGHT_REVEAL`;

interface AccountUse {
  /** Whether it has to be said whose tokens are meant. @default true */
  readonly isNeeded?: boolean;
  /**
   * What the catalog is read for. To grant scopes, it has to be there; to name what a refused value
   * lacks, it need not. @default neither: a broken one keeps nobody from revoking
   */
  readonly catalogFor?: 'granting' | 'naming';
}

/**
 * Uses the tokens of the account that flags and variables lead to. A flag wins over a variable.
 *
 * @throws {UsageError} when they lead nowhere, or to two places
 */
export async function withAccount<Result>(
  flags: PlaceFlags,
  use: (account: Account) => Promise<Result>,
  { isNeeded = true, catalogFor }: AccountUse = {},
): Promise<Result> {
  const url = serviceUrl(flags);
  if (url !== undefined) {
    const { remoteAccount } = await import('./client.ts');
    return use(remoteAccount(url, readUser(flags), readPassword()));
  }
  if (flags.user !== undefined) throw new UsageError('--user needs --url; for a store: --account');
  const settings = readStoreSettings(flags, process.env);
  const { account } = flags;
  if (account === undefined && isNeeded) {
    throw new UsageError('--account is required: whose tokens; or give --url for a service');
  }
  const catalog = await catalogOf(flags, catalogFor);
  return withService(flags, { ...settings, catalog }, (tokens, name) =>
    use(localAccount(tokens, account ?? '', name)),
  );
}

/** A flag leads to a place before any variable does. */
function serviceUrl(flags: PlaceFlags): string | undefined {
  const local = LOCAL_FLAGS.find((name) => flags[name] !== undefined);
  if (flags.url !== undefined && local !== undefined) {
    throw new UsageError(`--${local} is for a store, and has no meaning with --url`);
  }
  if (flags.url !== undefined || local !== undefined) return flags.url;
  const url = readVariable('TOKENWRIGHT_URL');
  if (url === undefined || readVariable('TOKENWRIGHT_STORE') === undefined) return url;
  throw new UsageError(
    'TOKENWRIGHT_URL and TOKENWRIGHT_STORE lead to two places: give --url, or --store or --data',
  );
}

const LOCAL_FLAGS = [
  'store',
  'table',
  'data',
  'keys',
  'prefix',
  'account',
  'catalog',
  'patterns',
  'reveal',
] as const;

function readUser({ user = readVariable('TOKENWRIGHT_USER') }: PlaceFlags): string {
  if (user !== undefined && /^[^:\p{Cc}]+$/u.test(user)) return user;
  throw new UsageError('--user (TOKENWRIGHT_USER) is required with --url: a name without ":"');
}

function readPassword(): string {
  const password = readVariable('TOKENWRIGHT_PASSWORD');
  if (password !== undefined) return password;
  throw new UsageError('TOKENWRIGHT_PASSWORD must hold the password: it has no flag');
}

async function withService<Result>(
  flags: PlaceFlags,
  { catalog, ...settings }: StoreSettings & { readonly catalog: ScopeCatalog | undefined },
  use: (tokens: TokenService, name: string) => Promise<Result>,
): Promise<Result> {
  // Only when it is asked for: the commands that need no service start sooner.
  const { TokenService } = await import('../service.ts');
  const place = storePlace(settings);
  const keys = readKeys(flags.keys ?? readVariable('TOKENWRIGHT_KEYS') ?? keyFile(settings.data));
  const prefix = flags.prefix ?? readVariable('TOKENWRIGHT_PREFIX') ?? 'tw';
  const reveal = readReveal(flags.reveal ?? readVariable('TOKENWRIGHT_REVEAL') ?? 'always');
  return withStore(place, ({ store }) =>
    use(new TokenService({ store, keys, prefix, reveal, catalog }), place.name),
  );
}

async function catalogOf(
  flags: PlaceFlags,
  purpose: AccountUse['catalogFor'],
): Promise<ScopeCatalog | undefined> {
  const paths = flags.catalog ?? readVariable('TOKENWRIGHT_CATALOG')?.split(',').filter(Boolean);
  if (flags.patterns === true && flags.catalog !== undefined) {
    throw new UsageError('--patterns and --catalog exclude each other');
  }
  if (flags.patterns === true || paths === undefined || purpose === undefined) return undefined;
  const catalog = readCatalog(paths);
  return purpose === 'granting' ? catalog : catalog.catch(() => undefined);
}

const PAGE = 1000;

function localAccount(tokens: TokenService, account: string, place: string): Account {
  return {
    name: `${account} in ${place}`,
    issue: async (token) => {
      const issued = await tokens.issue({ ...token, account });
      return shown(issued, issued.value);
    },
    list: ({ limit, ...filter }) =>
      listAll(limit, PAGE, async (size, cursor) => {
        const page = await tokens.list({ account, ...filter, limit: size, cursor });
        return { tokens: page.tokens.map((token) => shown(token)), cursor: page.cursor };
      }),
    async get(id) {
      const found = await tokens.get(account, id);
      if (found === undefined) throw new NotFound();
      return shown(found);
    },
    patch: async (id, change, options) =>
      shown(await orNotFound(tokens.patch(account, id, change, options))),
    async tryPatch(id, change, options) {
      const conditions = { ...options, dryRun: true };
      const changed = await orNotFound(tokens.patch(account, id, change, conditions));
      return { ...shown(changed), diff: changed.diff ?? { added: [], removed: [] } };
    },
    async revoke(id, options) {
      if (!(await tokens.revoke(account, id, options))) throw new NotFound();
    },
    revokeAll: () => tokens.revokeAll(account),
    async rotate(id, options) {
      const rotated = await orNotFound(tokens.rotate(account, id, options));
      return shown(rotated, rotated.value);
    },
    verify: async (value, need) => findingOf(await tokens.verify(value, need)),
  };
}

async function orNotFound<Result>(call: Promise<Result>): Promise<Result> {
  try {
    return await call;
  } catch (error) {
    throw isTokenError(error) && error.code === 'not_found' ? new NotFound() : error;
  }
}

function findingOf(verdict: Verdict): Finding {
  if (!verdict.ok) {
    const { reason, detail, needed } = verdict;
    return { ok: false, reason: detail ?? reason, ...(needed !== undefined && { needed }) };
  }
  const { id, account, expiresAt } = verdict.token;
  return {
    ok: true,
    grantedBy: verdict.grantedBy,
    token: { id, account, expire: getUnixTime(expiresAt) },
  };
}

function shown(token: Token, value: string = token.id): ShownToken {
  const { id, scopes, requested, state, createdAt, expiresAt, version, name, metadata } = token;
  return {
    scopes,
    expire: getUnixTime(expiresAt),
    token: value,
    id,
    state,
    createdAt: getUnixTime(createdAt),
    version,
    requested,
    ...(name !== undefined && { name }),
    ...(metadata !== undefined && { metadata }),
  };
}

/**
 * Without a catalog a service keeps wildcards as patterns, which grants more than one that has a
 * catalog would.
 *
 * @throws {InputError} when a wildcard would be kept in a store that nobody asked to keep
 */
export function checkWildcards(scopes: readonly Scope[], flags: PlaceFlags): void {
  const isExpanded = (flags.catalog ?? readVariable('TOKENWRIGHT_CATALOG')) !== undefined;
  if (isExpanded || flags.patterns === true || serviceUrl(flags) !== undefined) return;
  const wild = scopes.find(({ method, domain, path }) => `${method}${domain}${path}`.includes('*'));
  if (wild === undefined) return;
  throw new InputError(
    `${wild} has a wildcard: give --catalog to expand it, as serve does, or --patterns to keep it`,
  );
}
