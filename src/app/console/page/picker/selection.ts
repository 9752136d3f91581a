import { isSegment } from '../../../../scope/grammar.ts';
import { type Scope, safeParseScope } from '../../../../scope/index.ts';
import { Rights } from './rights.ts';
import {
  type Branch,
  branchesTo,
  type Entry,
  isOpenScope,
  isReading,
  isTemplate,
  type ScopeTree,
} from './tree.ts';

/** How much of a branch is selected. */
export type Extent = 'none' | 'some' | 'all';

/** What is wrong with a name: no scope can spell it, or an endpoint has it already. */
export type NameProblem = 'unspellable' | 'endpoint';

interface Parts {
  /** By the index of the entry: 1 if it is ticked. */
  readonly ticks: Uint8Array;
  readonly names: ReadonlyMap<Branch, string>;
  readonly others: readonly string[];
}

/** A selection in a tree of scopes. Immutable. */
export class Selection {
  readonly tree: ScopeTree;
  /** The names that `{}` is narrowed to, as they were typed. */
  readonly names: ReadonlyMap<Branch, string>;
  /** Scopes that the tree cannot show, in addition to what is selected in it. */
  readonly others: readonly string[];
  readonly #ticks: Uint8Array;
  #scopes: readonly (Scope | undefined)[] | undefined;
  #included: readonly (Scope | undefined)[] | undefined;
  #sums: Uint32Array | undefined;

  private constructor(tree: ScopeTree, { ticks, names, others }: Parts) {
    this.tree = tree;
    this.names = names;
    this.others = others;
    this.#ticks = ticks;
  }

  static none(tree: ScopeTree): Selection {
    const ticks = new Uint8Array(tree.entries.length);
    return new Selection(tree, { ticks, names: new Map(), others: [] });
  }

  /** Ticks entries, or takes the ticks away. */
  with(entries: Iterable<Entry>, isTicked: boolean): Selection {
    const ticks = this.#ticks.slice();
    for (const { index } of entries) ticks[index] = isTicked ? 1 : 0;
    return this.#changed({ ticks });
  }

  /** Ticks all entries of a branch, or takes the ticks away. */
  withAll(branch: Branch, isTicked: boolean): Selection {
    return this.#changed({
      ticks: this.#ticks.slice().fill(isTicked ? 1 : 0, branch.start, branch.end),
    });
  }

  /** Ticks exactly the entries of a branch that only read. */
  withReading(branch: Branch): Selection {
    const reading = entriesOf(this.tree, branch).filter(isReading);
    return this.withAll(branch, false).with(reading, true);
  }

  /** Narrows `{}` to one name. With an empty name, it stands for any again. */
  withName(branch: Branch, name: string): Selection {
    const names = new Map(this.names);
    if (name === '') names.delete(branch);
    else names.set(branch, name);
    return this.#changed({ names });
  }

  withOthers(others: readonly string[]): Selection {
    return this.#changed({ others });
  }

  get isEmpty(): boolean {
    return this.others.length === 0 && !this.#ticks.includes(1);
  }

  isTicked(entry: Entry): boolean {
    return this.#ticks[entry.index] === 1;
  }

  /** Whether an entry is ticked, or a ticked one covers it. */
  isSelected(entry: Entry): boolean {
    return this.isTicked(entry) || this.includedBy(entry) !== undefined;
  }

  /** Of an entry that is not ticked, the scope of a ticked one that covers it. */
  includedBy({ index }: Entry): Scope | undefined {
    this.#included ??= this.#findIncluded();
    return this.#included[index];
  }

  /** How many entries of a branch are selected. */
  count({ start, end }: Branch): number {
    this.#sums ??= this.#addUp();
    return (this.#sums[end] as number) - (this.#sums[start] as number);
  }

  extentOf(branch: Branch): Extent {
    const count = this.count(branch);
    if (count === 0) return 'none';
    return count === branch.end - branch.start ? 'all' : 'some';
  }

  /** The name of a branch as it was typed; empty for any. */
  nameOf(branch: Branch): string {
    return this.names.get(branch) ?? '';
  }

  problemOf(branch: Branch): NameProblem | undefined {
    const name = this.names.get(branch);
    return name === undefined ? undefined : nameProblem(branch, name);
  }

  /** The first wrong name that narrows a selected entry. */
  get problem(): { readonly branch: Branch; readonly problem: NameProblem } | undefined {
    for (const branch of this.names.keys()) {
      const problem = this.problemOf(branch);
      if (problem !== undefined && this.count(branch) > 0) return { branch, problem };
    }
    return undefined;
  }

  /** Whether every ticked entry has a scope. */
  get isSpelled(): boolean {
    return this.tree.entries.every(
      (entry) => !this.isTicked(entry) || this.scopeOf(entry) !== undefined,
    );
  }

  /** The path of a branch, with the names; empty for a host. */
  pathOf(branch: Branch): string {
    const segments = branchesTo(branch).slice(1);
    return segments.map((at) => this.names.get(at) ?? at.text).join('/');
  }

  /** The scope of an entry, with the names; `undefined` if there is none, because of a bad name. */
  scopeOf({ index }: Entry): Scope | undefined {
    this.#scopes ??= this.tree.entries.map((entry) => this.#narrowed(entry));
    return this.#scopes[index];
  }

  #changed(parts: Partial<Parts>): Selection {
    const next = new Selection(this.tree, { ...this, ticks: this.#ticks, ...parts });
    if (next.names === this.names) next.#scopes = this.#scopes;
    return next;
  }

  #narrowed({ scope, branch }: Entry): Scope | undefined {
    if (this.names.size === 0) return scope;
    const line = branchesTo(branch);
    if (!line.some((at) => this.names.has(at))) return scope;
    if (line.some((at) => this.problemOf(at) !== undefined)) return undefined;
    const end = isOpenScope(scope) ? '' : '$';
    const reading = safeParseScope(`${scope.method}:${scope.domain}/${this.pathOf(branch)}${end}`);
    return reading.ok ? reading.scope : undefined;
  }

  #findIncluded(): readonly (Scope | undefined)[] {
    const { entries } = this.tree;
    const ticked = entries.flatMap((entry) => {
      const scope = this.isTicked(entry) ? this.scopeOf(entry) : undefined;
      // Only an open scope covers others.
      return scope !== undefined && isOpenScope(scope) ? [scope] : [];
    });
    if (ticked.length === 0) return [];
    const held = new Rights(ticked);
    return entries.map((entry) => {
      const scope = this.isTicked(entry) ? undefined : this.scopeOf(entry);
      return scope && held.coverOf(scope);
    });
  }

  #addUp(): Uint32Array {
    const { entries } = this.tree;
    const sums = new Uint32Array(entries.length + 1);
    for (const entry of entries) {
      sums[entry.index + 1] = (sums[entry.index] as number) + (this.isSelected(entry) ? 1 : 0);
    }
    return sums;
  }
}

/** The entries of a branch, at its place and below it. */
export function entriesOf(tree: ScopeTree, { start, end }: Branch): readonly Entry[] {
  return tree.entries.slice(start, end);
}

/** What is wrong with a name in place of a `{}`. */
export function nameProblem(branch: Branch, name: string): NameProblem | undefined {
  // A `$` at the end would close an open path.
  if (!isSegment(name) || name.endsWith('$')) return 'unspellable';
  // A server routes such a request to the other endpoint, and a `{}` does not match it.
  const isNamed = branch.parent?.children.some(
    (other) => !isTemplate(other) && other.text === name,
  );
  return isNamed ? 'endpoint' : undefined;
}

/** Whether exactly the entries that only read are selected in a branch. */
export function isReadOnly(selection: Selection, branch: Branch): boolean {
  return entriesOf(selection.tree, branch).every(
    (entry) => selection.isSelected(entry) === isReading(entry),
  );
}
