import { getOrMake } from '../../../../scope/collections.ts';
import {
  type Scope,
  type ScopeCatalog,
  ScopeError,
  ScopeSet,
  safeParseScope,
} from '../../../../scope/index.ts';
import { Rights } from './rights.ts';
import { entriesOf, type Selection } from './selection.ts';
import { type Branch, branchesTo, type Entry, isReading } from './tree.ts';

/** The scopes that a selection asks for, and those that the service would grant. */
export type Preview =
  | {
      readonly ok: true;
      /** The fewest scopes that expand to the selection. */
      readonly requested: readonly string[];
      /** The scopes that the token would get. */
      readonly granted: readonly string[];
      /** How many of them can write. */
      readonly writing: number;
      readonly hosts: readonly string[];
    }
  | {
      readonly ok: false;
      /** An error of the service; or a name cannot be used, or makes a path too long. */
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
 * The fewest scopes that the service expands to exactly the selected entries. Each stands for all
 * entries of a branch, for those with one method, or for a single entry. Leaves out entries that
 * have no scope: check `isSpelled` first.
 */
export function requestOf(selection: Selection, catalog: ScopeCatalog): readonly string[] {
  const scopes = new Planner(selection, catalog).plan(selection.tree.root, 0);
  return new Rights([...scopes, ...selection.others]).fewest();
}

/** If a branch has more full methods than this, it asks for all of them or for none. */
const MAX_WEIGHED_METHODS = 4;
/** Methods are bits of an integer. Further methods are asked for entry by entry. */
const MAX_METHODS = 30;

/**
 * A cache of the scopes that expand to exactly the entries of a branch. They depend on the names
 * alone, so a tick costs little.
 */
const exactScopes = new WeakMap<Selection['names'], Map<string, Scope | undefined>>();

/** The methods of a branch, as bits. */
interface Methods {
  /** Those of at least one selected entry. */
  readonly some: number;
  /** Those of at least one entry that is not selected. */
  readonly lacking: number;
  /** Those of at least two selected entries. */
  readonly many: number;
}

/**
 * Goes down the tree. At each branch, a scope may stand for all its entries, or for those with one
 * method. Methods that a branch above has asked for are done.
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
    this.#collect(selection.tree.root);
  }

  /** @param done the methods that need no scope any more, as bits */
  plan(branch: Branch, done: number): readonly Scope[] {
    const { some } = this.#methods[branch.index] as Methods;
    const key = `${branch.index} ${done & some}`;
    const known = this.#plans.get(key);
    if (known !== undefined) return known;
    const plan = this.#newPlan(branch, done & some);
    this.#plans.set(key, plan);
    return plan;
  }

  #newPlan(branch: Branch, done: number): readonly Scope[] {
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
      const scope = this.#exactScope(branch, full);
      if (scope !== undefined) return [scope];
    }
    if (!isOne && lacking === 0) {
      const scope = this.#exactScope(branch, undefined);
      if (scope !== undefined) return [scope];
    }
    return this.#best(branch, done, full);
  }

  /** Tries which methods are asked for here, and which below. */
  #best(branch: Branch, done: number, full: number): readonly Scope[] {
    let best: readonly Scope[] | undefined;
    for (const here of subsetsOf(full)) {
      const scopes = bitsOf(here).map((bit) => this.#exactScope(branch, bit));
      if (scopes.includes(undefined)) continue;
      const plan = [
        ...(scopes as Scope[]),
        ...this.#ownScopes(branch, done | here),
        ...branch.children.flatMap((child) => this.plan(child, done | here)),
      ];
      if (best === undefined || plan.length < best.length) best = plan;
    }
    return best ?? [];
  }

  /** The scopes of the selected entries at exactly the path of a branch, one by one. */
  #ownScopes(branch: Branch, done: number): Scope[] {
    return branch.entries.flatMap((entry) => {
      if ((this.#bitOf(entry) & done) !== 0 || !this.#selection.isTicked(entry)) return [];
      return this.#selection.scopeOf(entry) ?? [];
    });
  }

  /** A scope that expands to exactly the entries of a branch, all or those with one method. */
  #exactScope(branch: Branch, bit: number | undefined): Scope | undefined {
    const key = `${branch.index} ${bit}`;
    if (!this.#exact.has(key)) this.#exact.set(key, this.#findExact(branch, bit));
    return this.#exact.get(key);
  }

  #findExact(branch: Branch, bit: number | undefined): Scope | undefined {
    const entries = entriesOf(this.#selection.tree, branch).filter(
      (entry) => bit === undefined || this.#bitOf(entry) === bit,
    );
    const method = bit === undefined ? '*' : (entries[0] as Entry).scope.method;
    const domain = branchesTo(branch)[0]?.text ?? '*';
    const path = this.#selection.pathOf(branch) || '*';
    const reading = safeParseScope(`${method}:${domain}/${path}`);
    if (!reading.ok) return undefined;
    const meant = entries.flatMap((entry) => this.#selection.scopeOf(entry) ?? []);
    try {
      const { granted } = this.#catalog.expand([reading.scope]);
      return new Rights(granted).equals(new Rights(meant)) ? reading.scope : undefined;
    } catch {
      // The scope may expand to too many, for example.
      return undefined;
    }
  }

  /** Finds the methods of a branch and of those below it. */
  #collect(branch: Branch): Methods {
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
    for (const child of branch.children) add(this.#collect(child));
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

/** The subsets to try, the smallest first, so that of equally short plans the narrowest wins. */
function subsetsOf(set: number): readonly number[] {
  const bits = bitsOf(set);
  if (bits.length > MAX_WEIGHED_METHODS) return [0, set];
  return Array.from({ length: 1 << bits.length }, (_, chosen) =>
    bits.reduce((sum, bit, place) => sum | ((chosen >> place) & 1 ? bit : 0), 0),
  ).sort((a, b) => bitsOf(a).length - bitsOf(b).length);
}
