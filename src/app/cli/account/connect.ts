import type { Scope, ScopeCatalog } from '../../../scope/index.ts';
import { readCatalog } from '../../server/files/catalog-files.ts';
import { readPresets } from '../../server/files/preset-file.ts';
import {
  readSettings,
  readVariable,
  SERVICE_SETTINGS,
  STORE_SETTINGS,
} from '../../server/settings.ts';
import { inputError, usageError } from '../../terminal/errors.ts';
import { askPassword } from '../password.ts';
import type { TokenClient } from './client.ts';
import { type AccountFlags, LOCAL_FLAGS } from './flags.ts';
import type { Login } from './remote.ts';

export interface ClientUse {
  /** Whether `--account` is required. @default true */
  readonly isNeeded?: boolean;
  /** Whether the value of a token is the only credential, so that no account or user is needed. */
  readonly isByValue?: boolean;
  /**
   * What the catalog is for. A catalog that cannot be read is an error for granting scopes and for
   * finding the route of a request, but not for naming the missing scope of a refused value.
   * @default it is not read, so that a broken catalog does not stop a revocation
   */
  readonly catalogFor?: 'granting' | 'routing' | 'naming';
  /** Whether the presets of a store's settings are read. */
  readonly usesPresets?: boolean;
  /** Whether uses are shown. If not, none are counted either: a person's check is not a use. */
  readonly showsUse?: boolean;
}

/**
 * Connects to the tokens that flags and variables select. A flag wins over a variable.
 *
 * @throws {CliError} when they select nothing, or both a service and a store
 */
export async function withClient<Result>(
  flags: AccountFlags,
  use: (client: TokenClient) => Promise<Result>,
  clientUse: ClientUse = {},
): Promise<Result> {
  const { isByValue = false, isNeeded = !isByValue, catalogFor } = clientUse;
  const { usesPresets = false, showsUse = false } = clientUse;
  const url = serviceUrl(flags);
  if (url !== undefined) {
    const { readBase, remoteClient } = await import('./remote.ts');
    // Before a person is asked for a password.
    const base = readBase(url);
    return use(remoteClient(base, isByValue ? undefined : await readLogin(flags)));
  }
  const settings = readSettings([...STORE_SETTINGS, ...SERVICE_SETTINGS, 'keys', 'usage'], flags);
  const { account } = flags;
  if (account === undefined && isNeeded) {
    throw usageError('--account is required: whose tokens; or give --url for a service');
  }
  const catalog = await catalogOf(flags, catalogFor);
  const presets = usesPresets
    ? readPresets(readSettings(['presets'], flags).presets, { maxTtl: settings.maxTtl, catalog })
    : [];
  // The service is loaded late: commands that do not need it start sooner.
  const { withLocalClient } = await import('./local.ts');
  return withLocalClient({ ...settings, catalog, presets, account, showsUse }, use);
}

/**
 * Finds the URL of the service. A flag for a store wins over the variable of a service.
 *
 * @returns `undefined` for a store
 * @throws {CliError} when the flags select both, or an account of neither
 */
export function serviceUrl(flags: AccountFlags): string | undefined {
  const url = selectedUrl(flags);
  if (url !== undefined || flags.user === undefined) return url;
  throw usageError('--user needs --url; for a store: --account');
}

function selectedUrl(flags: AccountFlags): string | undefined {
  const local = LOCAL_FLAGS.find((name) => flags[name] !== undefined);
  if (flags.url !== undefined && local !== undefined) {
    throw usageError(`--${local} is for a store, and has no meaning with --url`);
  }
  if (flags.url !== undefined || local !== undefined) return flags.url;
  const url = readVariable('TOKENWRIGHT_URL');
  if (url === undefined || readSettings(['store'], flags).store === undefined) return url;
  throw usageError(
    'TOKENWRIGHT_URL and the store of the settings (TOKENWRIGHT_STORE) lead to two places: give --url, or --store or --data',
  );
}

async function readLogin(flags: AccountFlags): Promise<Login> {
  const user = readUser(flags);
  return { user, password: readVariable('TOKENWRIGHT_PASSWORD') ?? (await askPassword(user)) };
}

function readUser({ user = readVariable('TOKENWRIGHT_USER') }: AccountFlags): string {
  if (user !== undefined && /^[^:\p{Cc}]+$/u.test(user)) return user;
  throw usageError('--user (TOKENWRIGHT_USER) is required with --url: a name without ":"');
}

async function catalogOf(
  flags: AccountFlags,
  purpose: ClientUse['catalogFor'],
): Promise<ScopeCatalog | undefined> {
  const paths = catalogPaths(flags);
  if (paths.length === 0 || purpose === undefined) return undefined;
  const catalog = readCatalog(paths, flags);
  return purpose === 'naming' ? catalog.catch(() => undefined) : catalog;
}

/**
 * The paths of the catalog; none with `--patterns`.
 *
 * @throws {CliError} if the flags give both
 */
export function catalogPaths(flags: {
  readonly catalog?: readonly string[] | undefined;
  readonly patterns?: boolean | undefined;
}): readonly string[] {
  const { catalog, patterns = false } = flags;
  if (patterns && catalog !== undefined) {
    throw usageError('--patterns and --catalog exclude each other');
  }
  return patterns ? [] : readSettings(['catalog'], flags).catalog;
}

/**
 * Refuses wildcards in a store without a catalog. A service would keep them as patterns, which
 * grant more than the scopes of a catalog.
 *
 * @throws {CliError} unless `--patterns` asks for it
 */
export function checkWildcards(scopes: readonly (Scope | string)[], flags: AccountFlags): void {
  const isExpanded = readSettings(['catalog'], flags).catalog.length > 0;
  if (isExpanded || flags.patterns === true || serviceUrl(flags) !== undefined) return;
  refuseWildcards(scopes.map(String));
}

/** @throws {CliError} naming the first scope with a wildcard */
export function refuseWildcards(scopes: readonly string[]): void {
  const wild = scopes.find((scope) => scope.includes('*'));
  if (wild === undefined) return;
  throw inputError(
    `${wild} has a wildcard: give --catalog to expand it, as serve does, or --patterns to keep it`,
  );
}
