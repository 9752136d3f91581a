import type { ScopeCatalog } from '../../../scope/catalog.ts';
import { getOrMake } from '../../../scope/collections.ts';
import { ScopeError } from '../../../scope/errors.ts';
import { type Scope, safeParseScope } from '../../../scope/grammar.ts';
import { ScopeSet } from '../../../scope/set.ts';
import { Rights } from './rights.ts';
import { entriesOf, type Selection } from './selection.ts';
import { type Branch, type Entry, isReading, lineOf } from './tree.ts';

/** What a selection asks for, and what the service would make of it. */
export type Preview =
  | {
      readonly ok: true;
      /** The fewest scopes that stand for the selection. */
      readonly requested: readonly string[];
      /** What the token would get. */
      readonly granted: readonly string[];
      /** How many of them do not only read. */
      readonly writing: number;
      readonly hosts: readonly string[];
    }
  | {
      readonly ok: false;
      /** An error of the service; or a name cannot be used; or with the names a path is too long. */
      readonly error: ScopeError | 'bad_name' | 'long_path';
    };

/** Expands the request of a selection as the service does. */
export function previewOf(selection: Selection, catalog: ScopeCatalog): Preview {
  if (selection.problem !== undefined) return { ok: false, error: 'bad_name' };
  if (!selection.isSpelled) return { ok: false, error: 'long_path' };
  try {
    const requested = requestOf(selection, catalog);
    const { granted } = catalog.expand(requested);
    const scopes = [...ScopeSet.from(granted)];
    return {
      ok: true,
      requested,
      granted,
      writing: scopes.filter((scope) => !isReading({ scope })).length,
      hosts: [...new Set(scopes.map(({ domain }) => domain))].sort(),
    };
  } catch (error) {
    if (error instanceof ScopeError) return { ok: false, error };
    throw error;
  }
}

/**
 * The fewest scopes that the service expands to exactly what is selected, where each stands for all of one
 * branch, for what it has of one method, or for an entry. Leaves out entries that have no scope: check `isSpelled` first.
 */
export function requestOf(selection: Selection, catalog: ScopeCatalog): readonly string[] {
  const scopes = new Planner(selection, catalog).plan(selection.tree.root, 0);
  return new Rights([...scopes, ...selection.others]).fewest();
}

/** More full methods than this, and a branch asks for all of them or for none. */
const MAX_WEIGHED_METHODS = 4;
/** Methods are bits of an integer; those beyond are asked for entry by entry. */
const MAX_METHODS = 30;

/**
 * The scopes that are expanded to exactly what a branch has. They change with the names alone, so that a
 * tick costs little.
 */
const exactScopes = new WeakMap<Selection['names'], Map<string, Scope | undefined>>();

/** The methods of a branch, as bits. */
interface Methods {
  /** That some selected entry has. */
  readonly some: number;
  /** That some entry has which is not selected. */
  readonly lacking: number;
  /** That at least two selected entries have. */
  readonly many: number;
}

/**
 * Goes down the tree. At each branch, a scope may stand for all of it, or for all that it has of one
 * method; methods that a branch above has asked for are done.
 */
class Planner {
  readonly #selection: Selection;
  readonly #catalog: ScopeCatalog;
  readonly #bits = new Map<string, number>();
  readonly #methods: Methods[] = [];
  readonly #plans = new Map<string, readonly Scope[]>();
  readonly #exact: Map<string, Scope | undefined>;

  constructor(selection: Selection, catalog: ScopeCatalog) {
    this.#selection = selection;
    this.#catalog = catalog;
    this.#exact = getOrMake(exactScopes, selection.names, () => new Map());
    this.#look(selection.tree.root);
  }

  /** @param done the methods that need no scope any more, as bits */
  plan(branch: Branch, done: number): readonly Scope[] {
    const { some } = this.#methods[branch.index] as Methods;
    const key = `${branch.index} ${done & some}`;
    const known = this.#plans.get(key);
    if (known !== undefined) return known;
    const plan = this.#make(branch, done & some);
    this.#plans.set(key, plan);
    return plan;
  }

  #make(branch: Branch, done: number): readonly Scope[] {
    const { some, lacking, many } = this.#methods[branch.index] as Methods;
    const needed = some & ~done;
    const [only] = branch.children;
    if (needed === 0) return [];
    if (only !== undefined && branch.children.length === 1 && branch.entries.length === 0) {
      return this.plan(only, done);
    }
    const full = needed & many & ~lacking;
    const isOne = (needed & (needed - 1)) === 0;
    if (isOne && full === needed) {
      const scope = this.#exactly(branch, full);
      if (scope !== undefined) return [scope];
    }
    if (!isOne && lacking === 0) {
      const scope = this.#exactly(branch, undefined);
      if (scope !== undefined) return [scope];
    }
    return this.#best(branch, done, full);
  }

  /** Tries which methods are asked for here, and which below. */
  #best(branch: Branch, done: number, full: number): readonly Scope[] {
    let best: readonly Scope[] | undefined;
    for (const here of subsetsOf(full)) {
      const scopes = bitsOf(here).map((bit) => this.#exactly(branch, bit));
      if (scopes.includes(undefined)) continue;
      const plan = [
        ...(scopes as Scope[]),
        ...this.#own(branch, done | here),
        ...branch.children.flatMap((child) => this.plan(child, done | here)),
      ];
      if (best === undefined || plan.length < best.length) best = plan;
    }
    return best ?? [];
  }

  /** The selected entries at the place of a branch, one by one. */
  #own(branch: Branch, done: number): Scope[] {
    return branch.entries.flatMap((entry) => {
      if ((this.#bitOf(entry) & done) !== 0 || !this.#selection.isTicked(entry)) return [];
      return this.#selection.scopeOf(entry) ?? [];
    });
  }

  /** The scope of all that a branch has, or has of one method, if it is expanded to exactly that. */
  #exactly(branch: Branch, bit: number | undefined): Scope | undefined {
    const key = `${branch.index} ${bit}`;
    if (!this.#exact.has(key)) this.#exact.set(key, this.#findExact(branch, bit));
    return this.#exact.get(key);
  }

  #findExact(branch: Branch, bit: number | undefined): Scope | undefined {
    const entries = entriesOf(this.#selection.tree, branch).filter(
      (entry) => bit === undefined || this.#bitOf(entry) === bit,
    );
    const method = bit === undefined ? '*' : (entries[0] as Entry).scope.method;
    const domain = lineOf(branch)[0]?.text ?? '*';
    const path = this.#selection.pathOf(branch) || '*';
    const reading = safeParseScope(`${method}:${domain}/${path}`);
    if (!reading.ok) return undefined;
    const meant = entries.flatMap((entry) => this.#selection.scopeOf(entry) ?? []);
    try {
      const { granted } = this.#catalog.expand([reading.scope]);
      return new Rights(granted).equals(new Rights(meant)) ? reading.scope : undefined;
    } catch {
      // Too many, for example.
      return undefined;
    }
  }

  #look(branch: Branch): Methods {
    let [some, lacking, many] = [0, 0, 0];
    const add = (more: Methods) => {
      many |= more.many | (some & more.some);
      some |= more.some;
      lacking |= more.lacking;
    };
    for (const entry of branch.entries) {
      const bit = this.#bitOf(entry);
      const isSelected = this.#selection.isSelected(entry);
      add({ some: isSelected ? bit : 0, lacking: isSelected ? 0 : bit, many: 0 });
    }
    for (const child of branch.children) add(this.#look(child));
    const methods = { some, lacking, many };
    this.#methods[branch.index] = methods;
    return methods;
  }

  #bitOf({ scope }: Entry): number {
    const known = this.#bits.get(scope.method);
    if (known !== undefined) return known;
    const bit = 1 << Math.min(this.#bits.size, MAX_METHODS);
    this.#bits.set(scope.method, bit);
    return bit;
  }
}

function bitsOf(set: number): number[] {
  const bits: number[] = [];
  for (let rest = set; rest !== 0; rest &= rest - 1) bits.push(rest & -rest);
  return bits;
}

/** The subsets to try, the smallest first: of equally many scopes, the narrowest are asked for. */
function subsetsOf(set: number): readonly number[] {
  const bits = bitsOf(set);
  if (bits.length > MAX_WEIGHED_METHODS) return [0, set];
  return Array.from({ length: 1 << bits.length }, (_, chosen) =>
    bits.reduce((sum, bit, place) => sum | ((chosen >> place) & 1 ? bit : 0), 0),
  ).sort((a, b) => bitsOf(a).length - bitsOf(b).length);
}
