import { SCAN_STEP } from '../bounds.ts';
import { TokenError } from '../errors.ts';
import type { Events } from '../events.ts';
import { ReportedHealth } from '../ports/store-health.ts';
import type { UsageStore, UsageTotals } from '../ports/usage-store.ts';
import type { ScopeSet } from '../scope/set.ts';
import { nextTurn } from '../time/deadline.ts';
import { DAY_MS } from '../time/duration.ts';
import { clearTimeout, performance, setTimeout } from '../time/timers.ts';
import type { TokenId, TokenRecord } from '../token/record.ts';
import { adviceOn, type TokenAdvice } from './advice.ts';
import { CheckedUsageStore } from './checked-usage-store.ts';
import {
  allUses,
  combined,
  combinedTotals,
  countedToken,
  derivedId,
  type TokenUsage,
  totalsOf,
  type UsageCounts,
  usageOf,
} from './counts.ts';
import { deltaOf, type Entry, Tally } from './tally.ts';

/** Counts in one call of a usage store. @bound */
export const USAGE_BATCH = 1000;

/** Counts of usage that wait for a usage store. @bound */
export const MAX_USAGE_ENTRIES = 100_000;

/** Counts of usage that are written without waiting for `usage.flushMs`. @bound */
export const FLUSHED_ENTRIES = 10_000;

/** Milliseconds between two looks of the upkeep for usage whose tokens are gone: a week. @bound */
export const USAGE_PASS_MS = 604_800_000;

/** How usage is recorded. */
export interface RecorderOptions {
  readonly store: UsageStore;
  /** Whether the store is a part of the token store, which closes it. */
  readonly isPart?: boolean | undefined;
  /** The longest time from a use to the write of its count. */
  readonly flushMs: number;
  /** How long a call of the store may take. */
  readonly deadlineMs: number;
  readonly events: Events;
  /** This instant, in milliseconds since 1970. */
  readonly now: () => number;
}

/** One pass over all counts. */
interface GonePass {
  /** Those of the ids that no token has. */
  readonly goneOf: (ids: readonly TokenId[]) => Promise<readonly TokenId[]>;
  /** Waited for between two steps. */
  readonly between: () => Promise<void>;
  readonly signal: AbortSignal;
}

/** So that processes that started together do not write in step. Never later: `flushMs` is a promise. */
const JITTER = 0.2;
/** Writes are rare, so the second attempt at a read usually meets none. */
const MAX_READ_ATTEMPTS = 3;

/**
 * Counts uses and refusals in memory and writes them in the background. Counting awaits nothing and
 * never fails. Counts that could not be written wait for the next attempt, up to a bound.
 */
export class UsageRecorder {
  readonly #store: CheckedUsageStore;
  readonly #isPart: boolean | undefined;
  readonly #flushMs: number;
  readonly #events: Events;
  readonly #startedAt: number;
  /** When to look for the counts of tokens that are gone, by the monotonic clock. */
  #nextPassAt = performance.now() + DAY_MS * Math.random();
  /** Where the pass that is under way goes on. */
  #passed: string | undefined;
  readonly #tally = new Tally(MAX_USAGE_ENTRIES);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #flush: Promise<void> | undefined;
  /** Whether the timer fired during a flush. */
  #isLate = false;
  /** Whether the last write failed: only the timer starts another one. */
  #isFailing = false;
  #isClosed = false;
  /** How many writes were started. */
  #writes = 0;
  /** When the oldest count that waits was made, or a little before, by the monotonic clock. */
  #waitingSince = 0;

  constructor({ store, isPart, flushMs, deadlineMs, events, now }: RecorderOptions) {
    this.#store = new CheckedUsageStore(store, {
      deadlineMs,
      health: new ReportedHealth(events, now, 'usage'),
      part: 'usage',
    });
    this.#isPart = isPart;
    this.#flushMs = flushMs;
    this.#events = events;
    this.#startedAt = now();
  }

  /** Counts one use of a token by a scope. */
  used(id: TokenId, scope: string, now: number): void {
    this.#count(id, scope, now);
  }

  /** Counts one use of a token that was derived from this one, by a scope of this one. */
  derivedUsed(id: TokenId, scope: string, now: number): void {
    this.#count(derivedId(id), scope, now);
  }

  /** Counts one refusal of a token. */
  refused(id: TokenId, now: number): void {
    this.#count(id, undefined, now);
  }

  /**
   * The usage of a token, with what is not written yet.
   *
   * @throws {TokenError} `store_unavailable`, `store_corrupt`
   */
  async usageOf(record: Pick<TokenRecord, 'id' | 'scopes'>): Promise<TokenUsage> {
    const [counts] = await this.countsOf([record.id]);
    return usageOf(record, counts ?? NO_COUNTS);
  }

  /**
   * All uses of each token itself together, with what is not written yet.
   *
   * @throws {TokenError} `store_unavailable`, `store_corrupt`
   */
  async totalsOf(ids: readonly TokenId[]): Promise<(UsageTotals | undefined)[]> {
    const stored = await this.#betweenFlushes(() => this.#store.totals(ids));
    return ids.map((id, index) => {
      const waiting = this.#tally.of(id);
      return waiting === undefined
        ? stored[index]
        : combinedTotals(stored[index], totalsOf(waiting));
    });
  }

  /**
   * The counts of tokens by scope, with what is not written yet.
   *
   * @throws {TokenError} `store_unavailable`, `store_corrupt`
   */
  async countsOf(ids: readonly TokenId[]): Promise<UsageCounts[]> {
    const asked = withDerived(ids);
    const stored = await this.#betweenFlushes(() => this.#store.read(asked));
    const counts = asked.map((id, index) => combined(stored[index], this.#tally.of(id)));
    return ids.map((_, index) => ({ own: counts[index], derived: counts[ids.length + index] }));
  }

  /**
   * Which scopes of a token can go, because they were not used from an instant on.
   *
   * @throws {TokenError} `store_unavailable`, `store_corrupt`
   */
  async adviceOn(record: TokenRecord, held: ScopeSet, from: number): Promise<TokenAdvice> {
    const [counts] = await this.countsOf([record.id]);
    // Read after the counts, so that it is late enough for counts that are dropped in between.
    const countedSince = await this.countedSince();
    const usage = allUses(counts ?? NO_COUNTS);
    return adviceOn(record, { held, usage, countedSince, from });
  }

  /**
   * Since when the counts are complete, in milliseconds since 1970: later than the start of the store if
   * this process had to drop some.
   *
   * @throws {TokenError} `store_unavailable`, `store_corrupt`
   */
  async countedSince(): Promise<number> {
    const since = (await this.#store.since())?.getTime() ?? this.#startedAt;
    return Math.max(since, this.#tally.completeSince);
  }

  /**
   * Removes all counts of tokens that are gone, also those that are not written yet.
   *
   * @throws {TokenError} `store_unavailable`
   */
  async forget(ids: readonly TokenId[]): Promise<void> {
    // The store would add a count that is being written after it has forgotten the token.
    await this.#flush;
    const counted = withDerived(ids);
    this.#tally.forget(counted);
    await this.#store.forget(counted);
  }

  /**
   * Once a week, removes the counts of tokens that are gone: a purge that is killed leaves them. The first
   * time is within a day. Goes on where it was interrupted.
   */
  async forgetGone({ goneOf, between, signal }: GonePass): Promise<void> {
    if (performance.now() < this.#nextPassAt) return;
    do {
      if (signal.aborted) return;
      const step = await this.#store.scan({ after: this.#passed, limit: SCAN_STEP });
      if (step === undefined) break;
      const counted = [...new Set(step.ids.map(countedToken))];
      const gone = counted.length === 0 ? [] : await goneOf(counted);
      if (gone.length > 0) await this.forget(gone);
      this.#passed = step.next;
      await between();
    } while (this.#passed !== undefined);
    this.#nextPassAt = performance.now() + USAGE_PASS_MS;
  }

  /** How many counts are not written yet, and for how long at most they have waited. */
  get waiting(): { readonly counts: number; readonly longestMs: number } {
    const counts = this.#tally.size;
    return { counts, longestMs: counts === 0 ? 0 : performance.now() - this.#waitingSince };
  }

  /** Writes all counts and closes a store of its own. Counts that cannot be written are lost, and reported. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const running = this.#flush;
    await running;
    // If an attempt has just failed, another one would double the wait.
    if (running === undefined || !this.#isFailing) await this.#startFlush();
    clearTimeout(this.#timer);
    this.#report(this.#tally.dropAll());
    if (this.#isPart !== true) await this.#store.close();
  }

  #count(id: TokenId, scope: string | undefined, now: number): void {
    if (this.#isClosed) return;
    if (this.#tally.size === 0) this.#waitingSince = performance.now();
    this.#tally.add(id, scope, now);
    if (this.#timer === undefined) this.#startTimer();
    if (this.#tally.size < FLUSHED_ENTRIES || this.#isFailing) return;
    if (this.#flush === undefined) void this.#startFlush();
  }

  #startTimer(): void {
    const ms = this.#flushMs * (1 - JITTER * Math.random());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#flush === undefined) void this.#startFlush();
      else this.#isLate = true;
    }, ms);
    this.#timer.unref();
  }

  #startFlush(): Promise<void> {
    this.#flush = this.#writeAll();
    return this.#flush;
  }

  /** Never rejects. */
  async #writeAll(): Promise<void> {
    // A store such as SQLite does its work inside the call, and no verification may wait for that.
    await nextTurn();
    do {
      this.#isLate = false;
      clearTimeout(this.#timer);
      this.#timer = undefined;
      await this.#writeEntries(this.#tally.entries());
    } while (this.#isLate && !this.#isFailing);
    this.#flush = undefined;
    this.#report(this.#tally.takeDropped());
    if (this.#tally.size > 0 && this.#timer === undefined) this.#startTimer();
  }

  async #writeEntries(entries: readonly Entry[]): Promise<void> {
    const begunAt = performance.now();
    this.#isFailing = false;
    for (let start = 0; start < entries.length; start += USAGE_BATCH) {
      // Entries that were dropped since then have a count of 0.
      const batch = entries.slice(start, start + USAGE_BATCH).filter(({ count }) => count > 0);
      const sent = batch.map(({ count }) => count);
      this.#writes += 1;
      const missing = await this.#store.add(batch.map(deltaOf));
      for (const [index, entry] of batch.entries()) {
        if (!missing.has(entry.id)) this.#tally.settle(entry, sent[index] ?? 0);
      }
      if (missing.size === 0) continue;
      this.#isFailing = true;
      // If only a part of a cluster is down, the counts of all others are written.
      if (batch.every(({ id }) => missing.has(id))) return;
    }
    // All counts that wait now were made after that.
    if (!this.#isFailing) this.#waitingSince = begunAt;
  }

  #report(dropped: number): void {
    if (dropped > 0) this.#events.usageDropped(dropped);
  }

  /**
   * Reads from the store, if possible between two flushes. During one, the counts that are being written
   * may be in the store or not.
   */
  async #betweenFlushes<Answer>(read: () => Promise<Answer>): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      await this.#flush;
      const writes = this.#writes;
      const answer = await read();
      if (this.#writes === writes || attempt === MAX_READ_ATTEMPTS) return answer;
    }
  }
}

const NO_COUNTS: UsageCounts = { own: undefined, derived: undefined };

/** The ids of tokens, and after them those of what was derived from each. */
function withDerived(ids: readonly TokenId[]): TokenId[] {
  return [...ids, ...ids.map(derivedId)];
}

/** The error for a call about usage, of a service that does not record it. */
export function usageIsOff(): TokenError {
  return new TokenError(
    'invalid_options',
    'this service does not record usage; create it with the option usage: true',
  );
}
