import { askCatalog } from '../access/catalogs.ts';
import { lostScopes } from '../access/rights.ts';
import { MAX_RECORD_BYTES } from '../bounds.ts';
import { notify } from '../events.ts';
import { readInput, reviewInput, reviewPageInput } from '../inputs/schemas.ts';
import type { ReviewInput, ReviewPageInput } from '../inputs/types.ts';
import { positionOf } from '../ports/token-store.ts';
import { placeOf, positionAt, readCursor, writeCursor } from '../records/cursor.ts';
import { accountStepsOf, stepsOf } from '../records/steps.ts';
import { usedTokenOf } from '../records/token-view.ts';
import { type Scope, type ScopeCatalog, ScopeSet } from '../scope/index.ts';
import { OverlapIndex, patternsOf } from '../scope/overlap.ts';
import { inSteps } from '../scope/steps.ts';
import { inTurns, Turns } from '../time/deadline.ts';
import { DAY_MS } from '../time/duration.ts';
import { performance } from '../time/timers.ts';
import { isExpired, type TokenRecord } from '../token/record.ts';
import { listBytes } from '../token/size.ts';
import { allUses, totalsOf } from '../usage/counts.ts';
import { findingsOn, type ReviewAges, type TokenFinding } from '../usage/findings.ts';
import type { ServiceParts } from './parts.ts';

/** Findings after which a page of a review ends, with the token that it is at. @bound */
export const MAX_PAGE_FINDINGS = 100;

/** Milliseconds after which a page of a review ends, with the tokens that it has read. @bound */
export const REVIEW_BUDGET_MS = 50;

/** Findings about some tokens of an account, and the cursor of the next page if there may be more. */
export interface FindingPage {
  readonly findings: readonly TokenFinding[];
  readonly cursor?: string;
}

/** Milliseconds of work after which others get a turn of the event loop. */
const TURN_MS = 10;

/** The same for all steps of one review. */
interface ReviewContext {
  readonly ages: ReviewAges;
  readonly now: number;
  readonly turns: Turns;
}

/** Reviews live tokens. */
export class Reviews {
  /** Shared by all calls: one that begins while another works waits for its turn. */
  readonly #turns = new Turns(TURN_MS);
  readonly #parts: ServiceParts;
  readonly #coverages = new WeakMap<ScopeCatalog, CatalogCoverage>();

  constructor(parts: ServiceParts) {
    this.#parts = parts;
  }

  /** Reviews all tokens in one pass, some at a time. The same token may come twice. */
  async *all(asked: ReviewInput): AsyncGenerator<TokenFinding, void, undefined> {
    const now = this.#parts.now();
    const input = readInput(reviewInput(), asked);
    const { account, onProgress } = input;
    const context = { ages: agesOf(input), now, turns: this.#turns };
    const { store } = this.#parts;
    const steps = account === undefined ? stepsOf(store) : accountStepsOf(store, account, now);
    let count = 0;
    for await (const records of steps) {
      const live = liveOf(records, now);
      for await (const { findings } of this.#reviewed(live, context)) yield* findings;
      count += live.length;
      if (onProgress !== undefined) notify(onProgress, count);
    }
  }

  /**
   * Reviews tokens of an account until there are many findings, or some time has passed.
   *
   * @throws {TokenError} `invalid_request` for a cursor of another account or other ages
   */
  async page(asked: ReviewPageInput): Promise<FindingPage> {
    const { store, ring } = this.#parts;
    const now = this.#parts.now();
    const { account, cursor, ...input } = readInput(reviewPageInput(), asked);
    const ages = agesOf(input);
    const query = JSON.stringify(['review', account, ages]);
    const start = cursor === undefined ? undefined : positionAt(readCursor(ring, cursor, query));
    const context = { ages, now, turns: this.#turns };
    const end = performance.now() + REVIEW_BUDGET_MS;
    const findings: TokenFinding[] = [];
    let bytes = 0;
    for await (const records of accountStepsOf(store, account, now, start)) {
      const live = liveOf(records, now);
      for await (const reviewed of this.#reviewed(live, context)) {
        findings.push(...reviewed.findings);
        bytes += reviewed.findings.reduce((sum, { scopes }) => sum + listBytes(scopes), 0);
        if (findings.length < MAX_PAGE_FINDINGS && bytes < MAX_RECORD_BYTES) continue;
        return { findings, cursor: writeCursor(ring, placeOf(positionOf(reviewed.record)), query) };
      }
      const last = records.at(-1);
      if (last === undefined || performance.now() < end) continue;
      return { findings, cursor: writeCursor(ring, placeOf(positionOf(last)), query) };
    }
    return { findings };
  }

  async *#reviewed(
    records: readonly TokenRecord[],
    { ages, now, turns }: ReviewContext,
  ): AsyncGenerator<{ readonly record: TokenRecord; readonly findings: TokenFinding[] }, void> {
    const { compiled, view } = this.#parts;
    if (turns.isOver) await turns.next();
    const usages = await view.usage?.countsOf(records.map(({ id }) => id));
    // Read after the counts, so that it is late enough for counts that are dropped in between.
    const since = await view.usage?.countedSince();
    const coverages = await this.#coveragesOf(records);
    for (const [index, record] of records.entries()) {
      if (turns.isOver) await turns.next();
      const usage = usages?.[index] ?? { own: undefined, derived: undefined };
      const held = compiled.setOf(record.scopes);
      const reviewed = {
        record,
        token: usedTokenOf(record, now, totalsOf(usage.own)),
        held,
        counts: since === undefined ? undefined : { usage: allUses(usage), since },
        coverage: await coverageIn(coverages.get(record.account), held),
      };
      yield { record, findings: findingsOn(reviewed, ages, now) };
    }
  }

  /**
   * By account. Leaves out an account if its catalog fails, for example because the account was closed.
   */
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

function agesOf(input: ReviewInput): ReviewAges {
  const { unusedForDays = 90, expiringWithinDays = 14, secretOlderThanDays = 180 } = input;
  return {
    unusedForMs: unusedForDays * DAY_MS,
    expiringWithinMs: expiringWithinDays * DAY_MS,
    secretOlderThanMs: secretOlderThanDays * DAY_MS,
  };
}

/** The tokens that can be used, now or after they are resumed. */
function liveOf(records: readonly TokenRecord[], now: number): TokenRecord[] {
  return records.filter((record) => record.revokedAt === undefined && !isExpired(record, now));
}

async function coverageIn(
  coverage: CatalogCoverage | undefined,
  held: ScopeSet,
): Promise<Coverage | undefined> {
  return coverage?.of(held).catch(() => undefined);
}

/** How the scopes of a token relate to a catalog. */
interface Coverage {
  /** The held scopes that the account may no longer have. */
  readonly lost: readonly string[];
  /** How many entries of the catalog the scopes cover entirely. */
  readonly covered: number;
  /** How many entries the catalog has. */
  readonly entries: number;
  /** What the catalog calls a scope. */
  readonly summaryOf: (scope: string) => string | undefined;
}

/** Compares the scopes of many tokens with one catalog. Each set is compared once. */
class CatalogCoverage {
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
    const coverage = {
      lost,
      covered: covered.size,
      entries: this.#size,
      summaryOf: (scope: string) => this.#summaryOf(scope),
    };
    this.#known.set(held, coverage);
    return coverage;
  }

  /** Of a catalog that a host implements, there may be none, or it may fail. */
  #summaryOf(scope: string): string | undefined {
    const { words }: Partial<ScopeCatalog> = this.#catalog;
    try {
      return words?.call(this.#catalog, scope)?.summary;
    } catch {
      return undefined;
    }
  }
}
