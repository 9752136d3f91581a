import type { ScopeCatalog } from '../../../scope/catalog.ts';
import { getOrMake } from '../../../scope/collections.ts';
import { type Scope, safeParseScope } from '../../../scope/grammar.ts';
import { ScopeSet } from '../../../scope/set.ts';
import { requestOf } from './request.ts';
import { nameProblem, Selection } from './selection.ts';
import { type Branch, type Entry, isTemplate, lineOf, type ScopeTree, segmentsOf } from './tree.ts';

/** A held scope as an entry of the tree, with a name for each `{}` on its way that it narrows. */
interface Placed {
  readonly scope: Scope;
  readonly entry: Entry;
  readonly names: ReadonlyMap<Branch, string>;
}

/**
 * Selects in a tree what a token holds. A branch has one name, the one that most of the scopes below it
 * have; scopes with another one, and those that the catalog does not know, are kept as `others`.
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
  const { selection, left } = agreed(tree, placed);
  return selection.withOthers([...others, ...shortened(tree, catalog, left)]);
}

/** Selects what can have one name for each branch. */
function agreed(
  tree: ScopeTree,
  placed: readonly Placed[],
): { readonly selection: Selection; readonly left: readonly Placed[] } {
  const { names, kept, left } = agree(placed);
  const entries = kept.map(({ entry }) => entry);
  const ticked = Selection.none(tree).with(entries, true);
  const selection = [...names].reduce(
    (next, [branch, name]) => next.withName(branch, name),
    ticked,
  );
  return { selection, left };
}

/** More names of one place than this are kept scope by scope. */
const SHORTENED_NAMES = 20;

/** The fewest scopes for what has another name: often one for each name. */
function shortened(
  tree: ScopeTree,
  catalog: ScopeCatalog,
  placed: readonly Placed[],
): readonly string[] {
  const scopes: string[] = [];
  let rest = placed;
  for (let round = 0; round < SHORTENED_NAMES && rest.length > 0; round++) {
    const { selection, left } = agreed(tree, rest);
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
  const line = lineOf(entry.branch).slice(1);
  const isClosed = scope.path.endsWith('$');
  if (segments.length !== line.length || isClosed !== entry.scope.path.endsWith('$')) {
    return undefined;
  }
  const names = line.flatMap((branch, index): [Branch, string][] =>
    isTemplate(branch) && segments[index] !== '{}' ? [[branch, segments[index] as string]] : [],
  );
  // Such as a scope of /users/me, held by a name when that was no endpoint of its own.
  if (names.some(([branch, name]) => nameProblem(branch, name) !== undefined)) return undefined;
  return { scope, entry, names: new Map(names) };
}

/** Gives each branch one name, from the top down, and puts aside what has another one. */
function agree(placed: readonly Placed[]): {
  readonly names: ReadonlyMap<Branch, string>;
  readonly kept: readonly Placed[];
  readonly left: readonly Placed[];
} {
  const names = new Map<Branch, string>();
  let kept = placed;
  const branches = new Set(placed.flatMap(({ entry }) => lineOf(entry.branch).filter(isTemplate)));
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
