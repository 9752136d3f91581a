import type { WirePermission } from '../../../../http/wire.ts';
import { permissionName } from '../../../../scope/describe.ts';
import type { Selection } from './selection.ts';
import { type Branch, branchesTo, type Entry, isTemplate, type ScopeTree } from './tree.ts';

/** How much of a resource is selected: a level as a whole, or something else. */
export type Level = 'none' | 'read' | 'write' | 'custom';

/** A permission, and its entries in a tree. */
export interface Resource {
  readonly name: string;
  readonly domain: string | undefined;
  readonly description: string | undefined;
  /** The entries of each level, in the order of the tree; `write` has those of `read`, too. */
  readonly read: readonly Entry[];
  readonly write: readonly Entry[];
}

/** Leaves out scopes without an entry in the tree: they can be added as text. */
export function resourcesOf(
  tree: ScopeTree,
  permissions: readonly WirePermission[],
): readonly Resource[] {
  const byScope = new Map(tree.entries.map((entry) => [entry.scope.toString(), entry]));
  const entriesOf = (scopes: readonly string[]) =>
    scopes.flatMap((scope) => byScope.get(scope) ?? []).sort((a, b) => a.index - b.index);
  return permissions.flatMap((permission) => {
    const { domain, description, read, write } = permission;
    const all = entriesOf(write);
    if (all.length === 0) return [];
    const name = permissionName(permission, permissions);
    return { name, domain, description, read: entriesOf(read), write: all };
  });
}

export function levelOf(selection: Selection, { read, write }: Resource): Level {
  const count = write.filter((entry) => selection.isSelected(entry)).length;
  if (count === 0) return 'none';
  const isReading = read.length > 0 && read.every((entry) => selection.isSelected(entry));
  if (count === write.length) return write.length === read.length ? 'read' : 'write';
  return isReading && count === read.length ? 'read' : 'custom';
}

/** The levels that a resource has. */
export function levelsOf({ read, write }: Resource): readonly Exclude<Level, 'custom'>[] {
  return [
    'none',
    ...(read.length > 0 ? (['read'] as const) : []),
    ...(write.length > read.length ? (['write'] as const) : []),
  ];
}

export function withLevel(
  selection: Selection,
  { read, write }: Resource,
  level: Exclude<Level, 'custom'>,
): Selection {
  const none = selection.with(write, false);
  return level === 'none' ? none : none.with(level === 'read' ? read : write, true);
}

/**
 * The parameters at the beginning of the paths that all selected entries share, such as `owner` and
 * `repo`: a name for each narrows all of them.
 */
export function sharedParameters(selection: Selection): readonly Branch[] {
  let shared: readonly Branch[] | undefined;
  for (const entry of selection.tree.entries) {
    if (!selection.isTicked(entry)) continue;
    const line = branchesTo(entry.branch);
    shared = shared === undefined ? line : shared.filter((branch, place) => line[place] === branch);
    if (shared.length === 0) return [];
  }
  return (shared ?? []).filter(isTemplate);
}
