import { candidatesFor } from '../scope/filter.ts';
import { safeParseScope } from '../scope/grammar.ts';
import { type ReadRequest, type Scope, ScopeSet } from '../scope/index.ts';
import { parsedMembers } from '../scope/list.ts';
import type { Steps } from '../scope/steps.ts';
import { isLong } from '../token/size.ts';

/**
 * Compiles the scopes of records to sets. A frozen list is compiled once: our stores return the same
 * frozen list for all records with equal scopes. The garbage collector frees a set with its list.
 */
export class CompiledScopes {
  /** `undefined` for a long list that was scanned once. */
  readonly #sets = new WeakMap<readonly string[], ScopeSet | undefined>();
  readonly #onCorrupt: () => Error;

  /** @param onCorrupt makes the error for a list that holds anything but scopes */
  constructor(onCorrupt: () => Error) {
    this.#onCorrupt = onCorrupt;
  }

  /**
   * The scope of a list that grants the need. A long list is scanned the first time and compiled when it
   * is used again: compiling takes longer, and a list of few tokens may not be used again.
   */
  grantOf(scopes: readonly string[], need: ReadRequest | Scope): Scope | undefined {
    if (!isLong(scopes) || this.#sets.has(scopes)) return this.setOf(scopes).grantOf(need);
    this.#sets.set(scopes, undefined);
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

  /** As {@link setOf}, in steps. */
  *setInSteps(scopes: readonly string[]): Steps<ScopeSet> {
    const known = this.#sets.get(scopes);
    if (known !== undefined) return known;
    const set = this.#compile(yield* parsedMembers(scopes, safeParseScope));
    if (Object.isFrozen(scopes)) this.#sets.set(scopes, set);
    return set;
  }

  #compile(scopes: readonly (Scope | string)[]): ScopeSet {
    try {
      return ScopeSet.from(scopes);
    } catch {
      throw this.#onCorrupt();
    }
  }
}
