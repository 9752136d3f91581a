import { CatalogCoverage, type Coverage } from './access/coverage.ts';
import { DAY_MS } from './duration.ts';
import { notify } from './events.ts';
import type { ReviewInput } from './input.ts';
import type { ServiceParts } from './parts.ts';
import { accountStepsOf, stepsOf } from './records/steps.ts';
import { tokenOf, withUse } from './records/token-view.ts';
import type { ScopeCatalog, ScopeSet } from './scope/index.ts';
import { isExpired, type TokenRecord } from './token.ts';
import { totalsOf } from './usage/counts.ts';
import { findingsOn, type ReviewAges, type TokenFinding } from './usage/findings.ts';

/** Reviews live tokens in one pass, some at a time. The same token may come twice. */
export async function* reviewed(
  parts: ServiceParts,
  input: ReviewInput,
  now: number,
): AsyncGenerator<TokenFinding, void, undefined> {
  const { account, onProgress } = input;
  const { unusedForDays = 90, expiringWithinDays = 14, secretOlderThanDays = 180 } = input;
  const ages: ReviewAges = {
    unusedForMs: unusedForDays * DAY_MS,
    expiringWithinMs: expiringWithinDays * DAY_MS,
    secretOlderThanMs: secretOlderThanDays * DAY_MS,
  };
  const reviewer = new Reviewer(parts, now);
  let count = 0;
  const { store } = parts;
  const steps = account === undefined ? stepsOf(store) : accountStepsOf(store, account, now);
  for await (const records of steps) {
    const live = records.filter(
      (record) => record.revokedAt === undefined && !isExpired(record, now),
    );
    yield* await reviewer.review(live, ages);
    count += live.length;
    if (onProgress !== undefined) notify(onProgress, count);
  }
}

class Reviewer {
  readonly #parts: ServiceParts;
  readonly #now: number;
  readonly #coverages = new WeakMap<ScopeCatalog, CatalogCoverage>();

  constructor(parts: ServiceParts, now: number) {
    this.#parts = parts;
    this.#now = now;
  }

  async review(records: readonly TokenRecord[], ages: ReviewAges): Promise<TokenFinding[]> {
    const { compiled, view } = this.#parts;
    const usages = await view.usage?.countsOf(records.map(({ id }) => id));
    // After the counts, because some may be dropped meanwhile.
    const since = await view.usage?.countedSince();
    const coverages = await this.#coveragesOf(records);
    return records.flatMap((record, index) => {
      const usage = usages?.[index];
      const held = compiled.setOf(record.scopes);
      const reviewed = {
        record,
        token: withUse(tokenOf(record, this.#now), totalsOf(usage)),
        held,
        counts: since === undefined ? undefined : { usage, since },
        coverage: coverageIn(coverages.get(record.account), held),
      };
      return findingsOn(reviewed, ages, this.#now);
    });
  }

  /** By account; without those whose catalog fails, such as that of an account which was closed. */
  async #coveragesOf(
    records: readonly TokenRecord[],
  ): Promise<ReadonlyMap<string, CatalogCoverage>> {
    const accounts = new Set(records.map(({ account }) => account));
    const coverages = new Map<string, CatalogCoverage>();
    for (const account of accounts) {
      const coverage = await this.#coverageOf(account).catch(() => undefined);
      if (coverage !== undefined) coverages.set(account, coverage);
    }
    return coverages;
  }

  async #coverageOf(account: string): Promise<CatalogCoverage | undefined> {
    const catalog = await this.#parts.catalogs.of(account);
    if (catalog === undefined) return undefined;
    const known = this.#coverages.get(catalog) ?? new CatalogCoverage(catalog);
    this.#coverages.set(catalog, known);
    return known;
  }
}

function coverageIn(coverage: CatalogCoverage | undefined, held: ScopeSet): Coverage | undefined {
  try {
    return coverage?.of(held);
  } catch {
    return undefined;
  }
}
