import { DEFAULT_UPKEEP_MS } from './bounds.ts';
import { isTokenError, TokenError } from './errors.ts';
import {
  importManyOptions,
  purgeInput,
  readInput,
  resealOptions,
  reviewInput,
  reviewPageInput,
  upkeepOptions,
} from './inputs/schemas.ts';
import type {
  ImportInput,
  ImportManyOptions,
  ImportReport,
  PurgeInput,
  ResealOptions,
  ReviewInput,
  ReviewPageInput,
  UpkeepOptions,
} from './inputs/types.ts';
import type { PurgeQuery } from './ports/token-store.ts';
import { type BatchOptions, inBatches } from './records/batches.ts';
import { stepsOf } from './records/steps.ts';
import { tokenOf } from './records/token-view.ts';
import { DAY_MS } from './time/duration.ts';
import type { ResealReport, Token, TokenId } from './token/record.ts';
import type { TokenFinding } from './usage/findings.ts';
import type { KeyOptions } from './values/keys.ts';
import { Importer } from './verbs/import.ts';
import type { ServiceParts } from './verbs/parts.ts';
import { resealAll } from './verbs/reseal.ts';
import { type FindingPage, Reviews } from './verbs/review.ts';
import { pause, type Upkeep, UpkeepRounds } from './verbs/upkeep-rounds.ts';

/** Milliseconds after which the upkeep asks again whether the clock of its process can be believed. @bound */
export const UPKEEP_RETRY_MS = 3_600_000;

/** Milliseconds between two of those calls, so that others come first. @bound */
export const UPKEEP_PAUSE_MS = 25;

/** Records that the upkeep removes in one call of the store. @bound */
export const UPKEEP_BATCH = 25;

/** Records that `purge` removes in one call of the store. @bound */
export const PURGE_BATCH = 1000;

/** Counts of one service since it was made. Other processes have their own. */
export interface ServiceStats {
  /** How verifications got their records; both are 0 without the option `cache`. */
  readonly cache: {
    /** From memory. */
    readonly hits: number;
    /** From the store. */
    readonly misses: number;
  };
  /** Counts of usage that are not written yet; absent if usage is not recorded. */
  readonly usage?: {
    /** Pairs of a token and a scope, and tokens with refusals. */
    readonly waiting: number;
    /** For how long at most they have waited, in milliseconds. */
    readonly lagMs: number;
  };
}

/**
 * The methods of a {@link TokenService} that concern all accounts: you call them from a cron job or a
 * console, never on behalf of one account.
 *
 * @example
 * const removeOld = (tokens: TokenUpkeep) =>
 *   tokens.purge({ before: new Date(Date.now() - 90 * 86_400_000) });
 */
export abstract class TokenUpkeep {
  readonly #parts: ServiceParts;
  readonly #reviews: Reviews;
  readonly #upkeeps = new Set<{ readonly stop: () => Promise<unknown> }>();

  /** @internal */
  constructor(parts: ServiceParts) {
    this.#parts = parts;
    this.#reviews = new Reviews(parts);
  }

  /**
   * Removes records that expired or were revoked before an instant, in batches of a thousand. Can be
   * stopped and called again at any time. A store with a clock of its own removes nothing that ended, by
   * that clock, less long ago than `before` is before now. With another store, your clock decides.
   *
   * @returns how many records were removed
   * @throws {TokenError} `invalid_request` if `before` is later than now; `store_unavailable`: some
   * records may be removed then
   * @example
   * const before = new Date(Date.now() - 90 * 86_400_000);
   * console.log(await tokens.purge({ before, limit: 10_000 })); // 417
   */
  async purge(input: PurgeInput): Promise<number> {
    const now = this.#parts.now();
    const { events } = this.#parts;
    const { before, limit } = readInput(purgeInput, input);
    if (before.getTime() > now) {
      const message = 'before must not be later than now';
      throw new TokenError('invalid_request', message, { member: 'before' });
    }
    const minAgeMs = now - before.getTime();
    const remove = (limit: number) => this.#purgeSome({ now: new Date(now), minAgeMs, limit });
    const onEnd = (count: number) => events.purged(count, now);
    await this.#purgeCounts(now, { size: PURGE_BATCH });
    return inBatches(remove, { size: PURGE_BATCH, limit, onEnd });
  }

  /**
   * Returns counts of this service for your metrics. Costs nothing and does not call the store. The
   * option `onEvent` reports everything else.
   *
   * @example
   * const { hits, misses } = tokens.stats().cache;
   */
  stats(): ServiceStats {
    const { reader, view } = this.#parts;
    const waiting = view.usage?.waiting;
    return Object.freeze({
      cache: Object.freeze(reader.cacheReads),
      ...(waiting && {
        usage: Object.freeze({ waiting: waiting.counts, lagMs: waiting.longestMs }),
      }),
    });
  }

  /**
   * Goes through the tokens of all accounts, including expired and revoked ones that are not purged yet,
   * never with their values. One pass that reads a hundred records at a time, so you can stop at any
   * time. A token that is changed meanwhile may come twice. The order is the store's own.
   *
   * @throws {TokenError} `invalid_options` if the store has no `scan`; `store_unavailable`, from the loop
   * @example
   * for await (const token of tokens.scan()) console.log(token.account, token.id, token.state);
   */
  async *scan(): AsyncGenerator<Token, void, undefined> {
    const { now: clock, store } = this.#parts;
    const now = clock();
    for await (const records of stepsOf(store)) {
      for (const record of records) yield tokenOf(record, now);
    }
  }

  /**
   * Finds live tokens that somebody should look at, of all accounts or of one: unused ones, those that may
   * do more than they need, those that expire soon or have an old value. {@link TokenFinding} lists
   * what is found. Reads all tokens once, a hundred at a time, and changes nothing.
   *
   * What depends on use is only found if the service records usage. If the catalog of an account fails,
   * its tokens are reviewed without it.
   *
   * @throws {TokenError} `invalid_request`; `invalid_options` if the store has no `scan` and no account is
   * given; `store_unavailable`, all from the loop
   * @example
   * for await (const { code, token, message } of tokens.review()) {
   *   console.log(token.account, token.masked, code, message);
   * }
   */
  async *review(input: ReviewInput = {}): AsyncGenerator<TokenFinding, void, undefined> {
    const now = this.#parts.now();
    yield* this.#reviews.all(readInput(reviewInput, input), now);
  }

  /**
   * Reviews some tokens of one account, newest first, for a page that people look at. All findings about
   * a token are on one page. Continue while there is a `cursor`: a page ends after about 50 ms, and may
   * be empty.
   *
   * @internal
   * @throws {TokenError} `invalid_request`, also for a cursor of another account or other days
   */
  async reviewPage(input: ReviewPageInput): Promise<FindingPage> {
    const now = this.#parts.now();
    return this.#reviews.page(readInput(reviewPageInput, input), now);
  }

  /**
   * Seals all stored secrets with the active key, so that values can still be shown when an older key is
   * gone. Only for `reveal: 'always'`, which stores secrets. The values themselves stay, and those of an
   * older key still need it to be verified: `verifierKeys` is enough for that.
   *
   * Reads all records in steps of a hundred and writes those that need it. A record keeps its version, and
   * a concurrent change is never lost. Can be stopped and called again at any time: what is
   * done is skipped.
   *
   * @throws {TokenError} `invalid_options` if the keys can only verify, or the store has no `scan`;
   * `store_unavailable`: some secrets may be sealed again then
   * @example
   * const { resealed, unreadable } = await tokens.reseal();
   * console.log(resealed, unreadable); // 417 0
   */
  async reseal(options: ResealOptions = {}): Promise<ResealReport> {
    const { store, ring } = this.#parts;
    const { onProgress } = readInput(resealOptions, options);
    return resealAll(store, ring, onProgress);
  }

  /**
   * Purges in the background: every `everyMs`, with a jitter of 20 %, it removes the records that expired
   * or were revoked more than `purgeAfterDays` ago, with their usage. The first time is within
   * five minutes. It works in small batches with pauses, and several processes may do it concurrently.
   * Once a week it also removes usage whose tokens are gone.
   *
   * Removes nothing while the clock of this process is more than a day ahead of all that the store knows,
   * unless the process has run for so long itself: it emits `clock_ahead` once, tries again each hour, and
   * goes on as soon as the store or the clock says otherwise.
   *
   * Never throws later: a failure of a store is the event `store_trouble`, and the next round tries again.
   * A round that removed something emits `purged`. Its timer does not keep the process alive. `close`
   * stops it.
   *
   * @throws {TokenError} `invalid_request`
   * @example
   * const upkeep = tokens.upkeep({ purgeAfterDays: 30 });
   * await upkeep.stop();
   */
  upkeep(options: UpkeepOptions = {}): Upkeep {
    const { purgeAfterDays = 90, everyMs = DEFAULT_UPKEEP_MS } = readInput(upkeepOptions, options);
    const { now: clock, events, evidence } = this.#parts;
    let isDoubted = false;
    const rounds = new UpkeepRounds(async (signal) => {
      const now = clock();
      const wasDoubted = isDoubted;
      isDoubted = !(await evidence.confirms(now));
      if (!isDoubted) return this.#upkeepRound(now, purgeAfterDays * DAY_MS, signal);
      if (!wasDoubted) events.clockAhead();
      return UPKEEP_RETRY_MS;
    }, everyMs);
    // Before this process has written much itself. A failure is an event, and the first round asks again.
    const asked = (async () => evidence.confirms(clock()))().catch(() => {});
    this.#upkeeps.add({ stop: () => Promise.all([rounds.stop(), asked]) });
    return rounds;
  }

  /**
   * Whether the store contradicts the clock of this process: whether that is more than a day ahead of all
   * that the store knows.
   *
   * @internal
   * @throws {TokenError} `store_unavailable`
   */
  async isClockAhead(): Promise<boolean> {
    return !(await this.#parts.evidence.confirms(this.#parts.now()));
  }

  /**
   * Imports a token that another system has issued, from the digest that it has stored. The bearer goes on
   * using the same value, which this call does not need. The format has to be in the option `foreign`.
   *
   * From then on it is a token like any other, and `rotate` gives it a value of this service. A token that
   * was imported before is returned as it is, even if it was revoked: an import never revives it. Once
   * `purge` has removed its record, nothing remembers the revocation: do not import the row again then, or
   * the token is live again, with the tokens that were derived from it.
   *
   * @throws {TokenError} `invalid_request`, also for a hash that cannot be looked up (bcrypt, scrypt or a
   * salted one) and for a value that another account has; `invalid_expire`; else as `issue`
   * @example
   * const digest = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
   * const row = { account: 'ada', digest, format: 'sanctum', scopes: ['GET:shop.example/orders'] };
   * const token = await tokens.import({ ...row, expiresAt: new Date(Date.now() + 86_400_000) });
   */
  async import(input: ImportInput): Promise<Token> {
    return new Importer(this.#parts, this.#parts.now()).one(input);
  }

  /**
   * Imports many tokens, as `import` does, from a list or a stream. Rows that cannot be imported are
   * reported and left out; those that had been imported are skipped, so you can stop it and call it again.
   *
   * @throws {TokenError} `store_unavailable`: some rows may be imported then; call it again
   * @example
   * const digest = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
   * const row = { account: 'ada', digest, format: 'sanctum', scopes: ['GET:shop.example/orders'] };
   * const rows = [{ ...row, expiresAt: new Date(Date.now() + 86_400_000) }];
   * const { imported, skipped, refused } = await tokens.importMany(rows);
   */
  async importMany(
    rows: Iterable<ImportInput> | AsyncIterable<ImportInput>,
    options: ImportManyOptions = {},
  ): Promise<ImportReport> {
    const importer = new Importer(this.#parts, this.#parts.now());
    return importer.many(rows, readInput(importManyOptions, options));
  }

  /**
   * Returns the keys for a service that only verifies: they can check values, but not reveal or mint
   * them. Treat them as secrets: they tell real values from lookalikes.
   *
   * @example
   * const resourceServer = new TokenService({ store, keys: tokens.verifierKeys(), prefix: 'acme' });
   */
  verifierKeys(): KeyOptions[] {
    return this.#parts.ring.verifierKeys();
  }

  /**
   * Stops listening to the store and closes it. Before that, ends the upkeep, writes the usage that was
   * counted and the first uses of new values, and gives back the uses of limited tokens that this process
   * has leased in advance.
   *
   * @throws {TokenError} `store_unavailable` if the store does not close
   * @example
   * await tokens.close();
   */
  async close(): Promise<void> {
    const { rotations, limits, view, records, quotas } = this.#parts;
    await Promise.all(Array.from(this.#upkeeps, (upkeep) => upkeep.stop()));
    await quotas.settled();
    const ended = await Promise.allSettled([
      rotations.settled(),
      limits.close(),
      view.usage?.close(),
    ]);
    await records.close();
    for (const end of ended) if (end.status === 'rejected') throw end.reason;
  }

  /** Removes the counts of uses that no longer matter. */
  async #purgeCounts(now: number, batches: BatchOptions, signal?: AbortSignal): Promise<void> {
    const { limits } = this.#parts;
    const remove = async (most: number) =>
      signal?.aborted === true ? 0 : limits.purgeSome(now, most);
    await inBatches(remove, batches);
  }

  async #upkeepRound(now: number, minAgeMs: number, signal: AbortSignal): Promise<undefined> {
    const { events, view } = this.#parts;
    const query = { now: new Date(now), minAgeMs };
    const remove = async (limit: number) =>
      signal.aborted ? 0 : this.#purgeSome({ ...query, limit });
    const between = () => pause(UPKEEP_PAUSE_MS, signal);
    const batches = { size: UPKEEP_BATCH, between };
    await inBatches(remove, {
      ...batches,
      onEnd: (count) => {
        if (count > 0) events.purged(count, now);
      },
    });
    await this.#purgeCounts(now, batches, signal);
    const goneOf = (ids: readonly TokenId[]) => this.#goneOf(ids);
    await view.usage?.forgetGone({ goneOf, between, signal });
  }

  /** @throws {TokenError} the failure of any of them: only what is known to be gone is gone */
  async #goneOf(ids: readonly TokenId[]): Promise<readonly TokenId[]> {
    const found = await this.#parts.store.find(ids);
    for (const each of found) if (isTokenError(each)) throw each;
    return ids.filter((_, index) => found[index] === undefined);
  }

  /** Removes at most `limit` records that ended long enough ago, and their usage. */
  async #purgeSome(query: PurgeQuery): Promise<number> {
    const { store, view } = this.#parts;
    const { count, ids } = await store.purge(query);
    // A failure was emitted as an event. The records are gone, so usage that is left is never read.
    if (ids.length > 0) await view.usage?.forget(ids).catch(() => {});
    return count;
  }
}
