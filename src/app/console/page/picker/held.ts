import { getOrMake } from '../../../../scope/collections.ts';
import {
  type Scope,
  type ScopeCatalog,
  ScopeSet,
  safeParseScope,
} from '../../../../scope/index.ts';
import { requestOf } from './request.ts';
import { nameProblem, Selection } from './selection.ts';
import {
  type Branch,
  branchesTo,
  type Entry,
  isOpenScope,
  isTemplate,
  type ScopeTree,
  segmentsOf,
} from './tree.ts';

/** A held scope as an entry of the tree, with a name for each `{}` in its path that it narrows. */
interface Placed {
  readonly scope: Scope;
  readonly entry: Entry;
  readonly names: ReadonlyMap<Branch, string>;
}

/**
 * Selects the scopes of a token in a tree. A branch has one name, the one that most of the scopes
 * below it have. Scopes with other names, and those that the catalog does not know, are kept as
 * `others`.
 */
export function selectionOf(
  tree: ScopeTree,
  catalog: ScopeCatalog,
  held: readonly string[],
): Selection {
  const byScope = new Map(tree.entries.map((entry) => [entry.scope.toString(), entry]));
  const known = ScopeSet.from(catalog);
  const placed: Placed[] = [];
  const others: string[] = [];
  for (const text of held) {
    const found = expanded(catalog, text)?.map((scope) => place(scope, byScope, known));
    if (found === undefined || found.includes(undefined)) others.push(text);
    else placed.push(...(found as Placed[]));
  }
  const { selection, left } = selectNamed(tree, placed);
  return selection.withOthers([...others, ...shortened(tree, catalog, left)]);
}

/** Selects the scopes that agree on one name for each branch. Returns the others as `left`. */
function selectNamed(
  tree: ScopeTree,
  placed: readonly Placed[],
): { readonly selection: Selection; readonly left: readonly Placed[] } {
  const { names, kept, left } = chooseNames(placed);
  const entries = kept.map(({ entry }) => entry);
  const ticked = Selection.none(tree).with(entries, true);
  const selection = [...names].reduce(
    (next, [branch, name]) => next.withName(branch, name),
    ticked,
  );
  return { selection, left };
}

/** If a branch has more names than this, the scopes of the rest are kept one by one. */
const SHORTENED_NAMES = 20;

/** The fewest scopes for the entries with other names: often one for each name. */
function shortened(
  tree: ScopeTree,
  catalog: ScopeCatalog,
  placed: readonly Placed[],
): readonly string[] {
  const scopes: string[] = [];
  let rest = placed;
  for (let round = 0; round < SHORTENED_NAMES && rest.length > 0; round++) {
    const { selection, left } = selectNamed(tree, rest);
    scopes.push(...requestOf(selection, catalog));
    rest = left;
  }
  return [...scopes, ...rest.map(({ scope }) => scope.toString())];
}

function expanded(catalog: ScopeCatalog, text: string): Scope[] | undefined {
  try {
    return catalog.expand([text]).granted.flatMap((granted) => {
      const reading = safeParseScope(granted);
      return reading.ok ? reading.scope : [];
    });
  } catch {
    return undefined;
  }
}

/** The entry that a scope is, or that it narrows by names alone. */
function place(
  scope: Scope,
  byScope: ReadonlyMap<string, Entry>,
  known: ScopeSet,
): Placed | undefined {
  const entry = byScope.get(String(known.coverOf(scope)));
  if (entry === undefined) return undefined;
  const segments = segmentsOf(scope);
  const line = branchesTo(entry.branch).slice(1);
  if (segments.length !== line.length || isOpenScope(scope) !== isOpenScope(entry.scope)) {
    return undefined;
  }
  const names = line.flatMap((branch, index): [Branch, string][] =>
    isTemplate(branch) && segments[index] !== '{}' ? [[branch, segments[index] as string]] : [],
  );
  // Such as `me`, a name in /users/{} before /users/me became an endpoint of its own.
  if (names.some(([branch, name]) => nameProblem(branch, name) !== undefined)) return undefined;
  return { scope, entry, names: new Map(names) };
}

/** Gives each branch one name, from the top down, and puts the scopes with other names aside. */
function chooseNames(placed: readonly Placed[]): {
  readonly names: ReadonlyMap<Branch, string>;
  readonly kept: readonly Placed[];
  readonly left: readonly Placed[];
} {
  const names = new Map<Branch, string>();
  let kept = placed;
  const branches = new Set(
    placed.flatMap(({ entry }) => branchesTo(entry.branch).filter(isTemplate)),
  );
  for (const branch of [...branches].sort((a, b) => a.index - b.index)) {
    const counts = new Map<string, Set<Entry>>();
    for (const { entry, names } of kept) {
      if (branch.start > entry.index || entry.index >= branch.end) continue;
      getOrMake(counts, names.get(branch) ?? '', () => new Set()).add(entry);
    }
    const most = [...counts].sort(([, a], [, b]) => b.size - a.size)[0];
    if (most === undefined) continue;
    const [name] = most;
    if (name !== '') names.set(branch, name);
    kept = kept.filter(
      (one) =>
        branch.start > one.entry.index ||
        one.entry.index >= branch.end ||
        (one.names.get(branch) ?? '') === name,
    );
  }
  const isKept = new Set(kept);
  return { names, kept, left: placed.filter((one) => !isKept.has(one)) };
}
