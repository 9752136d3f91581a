import { isLong } from '../list-size.ts';
import { candidatesFor } from '../scope/filter.ts';
import { type ReadRequest, type Scope, ScopeSet } from '../scope/index.ts';

/**
 * The scopes of records as sets. Each list that a store hands out frozen is compiled once, as our
 * stores do for equal lists; the sets are collected with the lists.
 */
export class CompiledScopes {
  readonly #sets = new WeakMap<readonly string[], ScopeSet>();
  /** Long lists that were scanned once. */
  readonly #scanned = new WeakSet<readonly string[]>();
  readonly #onCorrupt: () => Error;

  /** `onCorrupt` makes the error for a list that holds anything but scopes. */
  constructor(onCorrupt: () => Error) {
    this.#onCorrupt = onCorrupt;
  }

  /**
   * The scope of a list that grants what is needed. A long list is scanned the first time and compiled
   * when it comes again: if many tokens have long lists of their own, it may not come again.
   */
  grantOf(scopes: readonly string[], need: ReadRequest | Scope): Scope | undefined {
    const isNew = isLong(scopes) && !this.#sets.has(scopes) && !this.#scanned.has(scopes);
    if (!isNew) return this.setOf(scopes).grantOf(need);
    this.#scanned.add(scopes);
    return this.#compile(candidatesFor(need, scopes)).grantOf(need);
  }

  /** All scopes of a list. */
  setOf(scopes: readonly string[]): ScopeSet {
    const known = this.#sets.get(scopes);
    if (known !== undefined) return known;
    const set = this.#compile(scopes);
    if (Object.isFrozen(scopes)) this.#sets.set(scopes, set);
    return set;
  }

  #compile(scopes: readonly string[]): ScopeSet {
    try {
      return ScopeSet.from(scopes);
    } catch {
      throw this.#onCorrupt();
    }
  }
}
