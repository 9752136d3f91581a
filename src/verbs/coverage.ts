import { askCatalog } from '../access/catalogs.ts';
import { lostScopes } from '../access/rights.ts';
import { type Scope, type ScopeCatalog, ScopeSet } from '../scope/index.ts';
import { OverlapIndex, patternsOf } from '../scope/overlap.ts';
import { inSteps } from '../scope/steps.ts';
import { inTurns } from '../time/deadline.ts';

/** How the scopes of a token relate to a catalog. */
export interface Coverage {
  /** The held scopes that the account may no longer have. */
  readonly lost: readonly string[];
  /** How many entries of the catalog the scopes cover entirely. */
  readonly covered: number;
  /** How many entries the catalog has. */
  readonly entries: number;
}

/** Compares the scopes of many tokens with one catalog. Each set is compared once. */
export class CatalogCoverage {
  readonly #catalog: ScopeCatalog;
  readonly #index: OverlapIndex;
  readonly #size: number;
  readonly #known = new WeakMap<ScopeSet, Coverage>();

  /** @throws {TokenError} `store_unavailable` if the catalog fails */
  constructor(catalog: ScopeCatalog) {
    const entries = askCatalog((): Scope[] => [...ScopeSet.from(catalog.toArray())]);
    this.#catalog = catalog;
    this.#index = new OverlapIndex(entries);
    this.#size = entries.length;
  }

  /** @throws {TokenError} `store_unavailable` if the catalog fails */
  async of(held: ScopeSet): Promise<Coverage> {
    const known = this.#known.get(held);
    if (known !== undefined) return known;
    const covered = new Set<Scope>();
    const count = inSteps(held, (scope) => {
      for (const entry of this.#index.find('covered', patternsOf(scope))) covered.add(entry);
    });
    await inTurns(count);
    const lost = await lostScopes(this.#catalog, held.toArray());
    const coverage = { lost, covered: covered.size, entries: this.#size };
    this.#known.set(held, coverage);
    return coverage;
  }
}
