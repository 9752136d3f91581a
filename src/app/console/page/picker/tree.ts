import type { WireScopeDetail } from '../../../../http/wire.ts';
import { getOrMake } from '../../../../scope/collections.ts';
import { pathTextOf } from '../../../../scope/grammar.ts';
import type { Scope } from '../../../../scope/index.ts';

/** Methods that only read (RFC 9110 section 9.2.1, and `QUERY`). */
const READING: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'QUERY', 'TRACE']);
const METHOD_ORDER: readonly string[] = ['*', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** All of a tree, a host, or one segment of a path below it. */
export interface Branch {
  /** Its index among all branches. A branch comes before those below it. */
  readonly index: number;
  /** `undefined` for the root. */
  readonly parent: Branch | undefined;
  /** The host or the segment; empty for the root. */
  readonly text: string;
  /** The same for people: a `{}` with the name of its parameter, if that is known. */
  readonly label: string;
  /** 0 for the root, 1 for a host. */
  readonly depth: number;
  readonly children: readonly Branch[];
  /** The entries at exactly this place. */
  readonly entries: readonly Entry[];
  /** The entries at this place and below it are those from `start` to before `end`. */
  readonly start: number;
  readonly end: number;
}

/** One scope in a tree. */
export interface Entry {
  /** Its index among all entries, in the order in which the tree shows them. */
  readonly index: number;
  readonly scope: Scope;
  readonly branch: Branch;
  /** What people call it; empty if nobody says. */
  readonly words: Words;
}

/** What people call an endpoint, as the service says. */
export type Words = Omit<WireScopeDetail, 'scope'>;

/** Scopes by host and path, such as a catalog. */
export interface ScopeTree {
  readonly root: Branch;
  readonly branches: readonly Branch[];
  readonly entries: readonly Entry[];
}

type Mutable<Part> = { -readonly [Key in keyof Part]: Part[Key] };
interface Seed {
  readonly children: Map<string, Seed>;
  readonly scopes: Scope[];
  /** Of the parameter. */
  name: string | undefined;
}

/** Takes time in proportion to the length of all scopes. */
export function scopeTree(
  scopes: Iterable<Scope>,
  wordsOf: (scope: Scope) => Words = () => NO_WORDS,
): ScopeTree {
  const seed = newSeed();
  for (const scope of scopes) seedOf(seed, scope, wordsOf(scope).segments).scopes.push(scope);
  const branches: Branch[] = [];
  const entries: Entry[] = [];
  const root = grow(seed, { text: '', label: '', depth: 0, parent: undefined });
  return { root, branches, entries };

  function grow(
    { children, scopes }: Seed,
    place: Pick<Branch, 'text' | 'label' | 'depth' | 'parent'>,
  ): Branch {
    const start = entries.length;
    const index = branches.length;
    const branch: Mutable<Branch> = { ...place, index, children: [], entries: [], start, end: 0 };
    branches.push(branch);
    branch.entries = scopes.sort(byMethod).map((scope) => {
      const entry = { index: entries.length, scope, branch, words: wordsOf(scope) };
      entries.push(entry);
      return entry;
    });
    const names = [...children.keys()].sort();
    branch.children = names.map((text) => {
      const child = children.get(text) as Seed;
      const label = child.name === undefined ? text : `{${child.name}}`;
      return grow(child, { text, label, depth: place.depth + 1, parent: branch });
    });
    branch.end = entries.length;
    return branch;
  }
}

const NO_WORDS: Words = {};

function newSeed(): Seed {
  return { children: new Map(), scopes: [], name: undefined };
}

function seedOf(root: Seed, scope: Scope, names: readonly string[] = []): Seed {
  let seed = root;
  let place = 0;
  for (const text of [scope.domain, ...segmentsOf(scope)]) {
    seed = getOrMake(seed.children, text, newSeed);
    if (text !== '{}') continue;
    seed.name ??= names[place] || undefined;
    place += 1;
  }
  return seed;
}

/** The segments of the path of a scope. */
export function segmentsOf(scope: Scope): readonly string[] {
  const path = barePathOf(scope);
  return path === '' ? [] : path.split('/');
}

/** The path of a scope without its final `*` or `$`; empty for the root and for all paths. */
export function barePathOf(scope: Scope): string {
  const { text, start, end } = pathTextOf(scope);
  return text.slice(start, end);
}

/** Whether a scope allows everything below its path, too. */
export function isOpenScope({ path }: Scope): boolean {
  return !path.endsWith('$');
}

function byMethod(a: Scope, b: Scope): number {
  const places = rank(a.method) - rank(b.method);
  return places === 0 ? (a.toString() < b.toString() ? -1 : 1) : places;
}

function rank(method: string): number {
  const place = METHOD_ORDER.indexOf(method);
  return place === -1 ? METHOD_ORDER.length : place;
}

/** Whether an entry only reads. */
export function isReading({ scope }: Pick<Entry, 'scope'>): boolean {
  return READING.has(scope.method);
}

/** Whether any segment may stand for this one, so that it can be narrowed to a name. */
export function isTemplate({ text, depth }: Branch): boolean {
  return depth > 1 && text === '{}';
}

/** The branches from the host down to this one, without the root. */
export function branchesTo(branch: Branch): readonly Branch[] {
  const branches: Branch[] = [];
  for (let at: Branch = branch; at.parent !== undefined; at = at.parent) branches.unshift(at);
  return branches;
}

/**
 * The branch and those below it that share one row of a list: they have one child each and no
 * entries. `repos / {} / {}` is one row.
 */
export function chainOf(branch: Branch): readonly Branch[] {
  const chain = [branch];
  let last = branch;
  while (last.depth > 1 && last.entries.length === 0 && last.children.length === 1) {
    last = last.children[0] as Branch;
    chain.push(last);
  }
  return chain;
}
