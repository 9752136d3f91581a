import { shownName } from '../../../text/wording.ts';
import { isObject } from '../../../token/record.ts';
import { inputError } from '../../terminal/errors.ts';
import { parseMembers, quote, readJson } from '../../terminal/inputs.ts';
import { refusal } from './rows.ts';

/** The scopes of each permission of the old system. */
type PermissionMap = ReadonlyMap<string, readonly string[]>;

export interface RightsOptions {
  readonly map: PermissionMap | undefined;
  /** The scopes of rows that have no permissions; without a map, of all rows. */
  readonly scopes: readonly string[];
  /** Whether a scope must not be granted as it is. */
  readonly refuses: (scope: string) => boolean;
}

/**
 * Reads a JSON object of permissions, each with a list of scopes.
 *
 * @throws {CliError} naming the permission whose scopes are wrong
 */
export function readPermissionMap(path: string): PermissionMap {
  const map = readJson(path);
  if (!isObject(map) || Object.keys(map).length === 0) {
    throw inputError(
      `${path} must be a JSON object, as {"orders:read":["GET:shop.example/orders"]}`,
    );
  }
  const entries = Object.entries(map).map(
    ([name, scopes]) =>
      [name, parseMembers(scopes, `${path}: ${quote(name)}`).map(String)] as const,
  );
  return new Map(entries);
}

/** Translates the permissions of rows into scopes. */
export class Rights {
  readonly #options: RightsOptions;

  constructor(options: RightsOptions) {
    this.#options = options;
  }

  /**
   * The scopes of a row. Refuses a permission that the map does not have: if the token lost a right
   * without a word, its bearer would break.
   *
   * @throws {TokenError}
   */
  scopesOf(permissions: readonly string[] | undefined): readonly string[] {
    const { map, scopes, refuses } = this.#options;
    if (scopes.length > 0 && (map === undefined || permissions === undefined)) return scopes;
    if (permissions === undefined) {
      throw refusal('the row has no permissions: give --scope for such rows');
    }
    const mapped = permissions.flatMap((name) => (map === undefined ? [name] : ofName(map, name)));
    if (!mapped.some(refuses)) return [...new Set(mapped)];
    throw refusal('one of its scopes has a wildcard: give --catalog, or --patterns to keep it');
  }
}

function ofName(map: PermissionMap, name: string): readonly string[] {
  const scopes = map.get(name);
  if (scopes !== undefined) return scopes;
  throw refusal(`--map has no ${shownPermission(name)}: add it, with [] if it grants nothing`);
}

/** Shows a permission in a message. Unlike other names, it may hold colons and stars. */
function shownPermission(name: string): string {
  return /^[\w.:*/-]{1,64}$/.test(name) ? `"${name}"` : shownName(name);
}
