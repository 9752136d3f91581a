import type { Scope } from './grammar.ts';
import { ScopeSet } from './set.ts';
import type { Permission } from './words.ts';

/** A level of access to a resource. */
export interface HeldPermission {
  /** The tag of the permission. */
  readonly tag: string;
  /** Its host, if it has one. */
  readonly domain?: string | undefined;
  /** The name of the resource for people, with its host if another one has the same tag. */
  readonly name: string;
  /** The highest level that is held completely. */
  readonly level: 'read' | 'write';
}

/** What scopes allow, in the permissions of a catalog. */
export interface ScopeDescription {
  /** In one line: `Issues: read · Pull requests: write · 3 single endpoints`. */
  readonly text: string;
  /** The permissions that are held completely, in the order of the catalog. */
  readonly permissions: readonly HeldPermission[];
  /** The scopes that belong to none of these, in canonical order. */
  readonly single: readonly string[];
}

/** Permissions and scopes that a text names; more are counted. */
const MAX_NAMED = 4;

/**
 * Describes scopes, such as those of a token, in the words of a catalog. A permission is named only if the
 * scopes cover all of its level. Without a catalog, or where its permissions do not fit, scopes are single
 * endpoints.
 *
 * @throws {ScopeError} when a text is not a scope
 * @example
 * const catalog = ScopeCatalog.from(['GET:shop.example/orders', 'POST:shop.example/orders']);
 * describeScopes(['GET:shop.example/orders'], catalog).text; // 'Orders: read'
 */
export function describeScopes(
  scopes: Iterable<Scope | string>,
  catalog?: { permissions(): readonly Permission[] },
): ScopeDescription {
  const set = ScopeSet.from(scopes);
  const rest = new Set(set.toArray());
  const all = catalog?.permissions() ?? [];
  const texts: ReadonlySet<string> = new Set(rest);
  // Texts first: most tokens hold entries as they are, and a set takes time to compile.
  const isHeld = (level: readonly string[]) =>
    level.length > 0 && level.every((scope) => texts.has(scope) || set.covers(scope));
  const permissions = all.flatMap((permission): HeldPermission[] => {
    const { tag, domain, read, write } = permission;
    const level = isHeld(write) ? write : isHeld(read) ? read : [];
    if (level.length === 0) return [];
    for (const scope of level) rest.delete(scope);
    const name = permissionName(permission, all);
    return [{ tag, domain, name, level: level.length > read.length ? 'write' : 'read' }];
  });
  const single = [...rest];
  const text = lineOf({ permissions, single }, ENGLISH) || 'nothing';
  return { text, permissions, single };
}

/** A tag as people write it, such as `Pull requests` for `pull-requests`. */
export function permissionName(
  { tag, domain }: Pick<Permission, 'tag' | 'domain'>,
  all: readonly Pick<Permission, 'tag' | 'domain'>[],
): string {
  const spaced = /[\s.]/.test(tag) ? tag : tag.replaceAll(/[-_]+/g, ' ').trim() || tag;
  const name = spaced.slice(0, 1).toUpperCase() + spaced.slice(1);
  const isShared = all.some((other) => other.tag === tag && other.domain !== domain);
  return isShared && domain !== undefined ? `${name} (${domain})` : name;
}

/** How a language says what scopes allow. */
export interface DescriptionPhrases {
  readonly permission: (held: HeldPermission) => string;
  readonly permissions: (count: number, level: HeldPermission['level']) => string;
  readonly wildcards: (count: number) => string;
  readonly single: (count: number) => string;
}

const ENGLISH: DescriptionPhrases = {
  permission: ({ name, level }) => `${name}: ${level}`,
  permissions: (count, level) => `${counted(count, 'permission')}: ${level}`,
  wildcards: (count) => counted(count, 'wildcard'),
  single: (count) => counted(count, 'single endpoint'),
};

/** Says in one line what is held: permissions, wildcards and single endpoints. Empty for nothing. */
export function lineOf(
  { permissions, single }: Pick<ScopeDescription, 'permissions' | 'single'>,
  phrases: DescriptionPhrases,
): string {
  const levels =
    permissions.length <= MAX_NAMED
      ? permissions.map(phrases.permission)
      : (['read', 'write'] as const).flatMap((level) => {
          const { length } = permissions.filter((one) => one.level === level);
          return length === 0 ? [] : phrases.permissions(length, level);
        });
  const wild = single.filter((scope) => scope.includes('*'));
  const endpoints = single.length - wild.length;
  const parts = [
    ...levels,
    ...(wild.length > MAX_NAMED ? [phrases.wildcards(wild.length)] : wild),
    ...(endpoints === 0 ? [] : [phrases.single(endpoints)]),
  ];
  return parts.join(' · ');
}

function counted(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
