import { quotaExceeded } from '../access/change.ts';
import { ENDED_PER_LIVE } from '../bounds.ts';
import type { TokenError } from '../errors.ts';
import type { Quotas } from '../inputs/options.ts';
import type { QuotaHolder, TokenCounts } from '../ports/token-store.ts';
import { inBatches } from '../records/batches.ts';
import type { CheckedStore } from '../records/checked-store.ts';
import type { ClockEvidence } from '../records/clock-evidence.ts';
import { performance } from '../time/timers.ts';
import type { TokenId } from '../token/record.ts';

/** Ended records of an account that are removed early in one call of the store. @bound */
export const PRUNE_BATCH = 100;

/** Accounts and roots whose counts a process remembers. @bound */
export const MAX_QUOTA_HOLDERS = 10_000;

/** Milliseconds for which a count of the tokens of an account is trusted. @bound */
export const QUOTA_TRUST_MS = 60_000;

/** The part of the room below a quota that a process fills without counting again; also what is pruned. @bound */
export const QUOTA_SHARE = 1 / 16;

/** What the quotas of a service work with. */
interface QuotaParts {
  readonly store: CheckedStore;
  readonly quotas: Quotas;
  readonly evidence: ClockEvidence;
  /** Whether ended records may be removed in the background. */
  readonly canWriteLater: boolean;
  /** Called with the ids of records that were removed. */
  readonly forget: (ids: readonly TokenId[]) => Promise<void>;
  /** Called with how many records were removed. */
  readonly onPruned: (count: number, now: number) => void;
}

/**
 * Bounds the tokens of an account, and those derived from one root. Far from a bound it trusts the last
 * count of the store and what this process has issued since: for a sixteenth of the room that was left,
 * and for a minute at most. Near it, it counts before it inserts, once for all calls that wait. So
 * processes may exceed a bound together, but one alone never does.
 */
export class QuotaKeeper {
  readonly #parts: QuotaParts;
  /** In the order of their last use, once there are many. */
  readonly #holders = new Map<string, Held>();
  readonly #pruning = new Map<Held, Promise<void>>();

  constructor(parts: QuotaParts) {
    this.#parts = parts;
  }

  /**
   * Inserts a token if its holder has room for one more.
   *
   * @throws {TokenError} `quota_exceeded`, with `details.quota`: `tokensPerAccount`, or `derivedPerRoot` for
   * a holder with a root; `store_unavailable` if the store cannot count; and whatever `insert` throws
   */
  async admit<Inserted>(
    holder: QuotaHolder,
    now: number,
    insert: () => Promise<Inserted>,
  ): Promise<Inserted> {
    const held = this.#heldBy(holder);
    if (!held.takePlace(now)) await this.#wait(held, now);
    try {
      return await insert();
    } finally {
      held.leave();
    }
  }

  /** Waits until no ended records are being removed. */
  async settled(): Promise<void> {
    await Promise.all(this.#pruning.values());
  }

  async #wait(held: Held, now: number): Promise<void> {
    const { store } = this.#parts;
    const late = { isLate: false };
    const served = new Promise<void>((resolve, reject) => {
      held.waiters.push({ now, resolve, reject, late });
    });
    if (!held.isCounting) void this.#serve(held);
    await store.inTime(served, store.deadline(), () => {
      late.isLate = true;
      return undefined;
    });
  }

  /** Counts until nobody waits. Never rejects: those who wait do. */
  async #serve(held: Held): Promise<void> {
    held.isCounting = true;
    held.places = 0;
    while (held.waiters.length > 0) {
      // Those who come later than a count begins are not refused because of it.
      const asked = held.waiters.length;
      const now = held.waiters[asked - 1]?.now ?? 0;
      const uncounted = held.inFlight;
      try {
        const counts = await this.#count(held, now);
        const room = held.bounds.live - counts.live;
        if (uncounted > 0 && room > 0 && room < uncounted + held.waiters.length) {
          await held.allLeft();
        } else held.serve(asked, room - uncounted, now);
      } catch (error) {
        for (const waiter of held.waiters.splice(0)) waiter.reject(error);
      }
    }
    held.isCounting = false;
  }

  async #count(held: Held, now: number): Promise<TokenCounts> {
    const { store, canWriteLater } = this.#parts;
    const { live, ended } = held.bounds;
    // Counting those that have ended takes longest, so it is not done for each call near the bound.
    const countsEnded = canWriteLater && (held.untilEnded <= 0 || !held.isFresh(now));
    const query = { ...held.holder, liveAt: new Date(now) };
    const counts = await store.count({ ...query, most: { live, ended: countsEnded ? ended : 1 } });
    if (!canWriteLater) held.untilEnded = Number.POSITIVE_INFINITY;
    else if (countsEnded) {
      const isFull = counts.ended >= ended;
      held.untilEnded = isFull ? shareOf(ended) : ended - counts.ended;
      if (isFull) this.#startPruning(held, now);
    }
    return counts;
  }

  #startPruning(held: Held, now: number): void {
    if (this.#pruning.has(held)) return;
    const pruning = this.#prune(held, now)
      // A failure of the store was emitted as an event. The next count finds the records again.
      .catch(() => {})
      .finally(() => this.#pruning.delete(held));
    this.#pruning.set(held, pruning);
  }

  /** Removes the oldest ended records, a sixteenth of the bound at a time, until there are fewer. */
  async #prune(held: Held, now: number): Promise<void> {
    const { store, evidence, forget, onPruned } = this.#parts;
    const { ended } = held.bounds;
    if (!(await evidence.confirms(now))) return;
    const remove = async (limit: number): Promise<number> => {
      const { count, ids } = await store.prune({ ...held.holder, now: new Date(now), limit });
      if (ids.length > 0) await forget(ids);
      return count;
    };
    const limit = shareOf(ended);
    const onEnd = (count: number) => {
      if (count > 0) onPruned(count, now);
    };
    const query = { ...held.holder, liveAt: new Date(now), most: { live: 1, ended } };
    let removed: number;
    do removed = await inBatches(remove, { size: PRUNE_BATCH, limit, onEnd });
    while (removed === limit && (await store.count(query)).ended >= ended);
  }

  #heldBy({ account, root }: QuotaHolder): Held {
    // No account has a control character.
    const key = root === undefined ? account : `${root}\n${account}`;
    const known = this.#holders.get(key);
    // Far from the bound nobody is evicted soon, so the order does not matter yet.
    if (known !== undefined && this.#holders.size < MAX_QUOTA_HOLDERS / 2) return known;
    const { quotas } = this.#parts;
    const held = known ?? new Held({ account, ...(root !== undefined && { root }) }, quotas);
    this.#holders.delete(key);
    this.#holders.set(key, held);
    if (known === undefined && this.#holders.size > MAX_QUOTA_HOLDERS) this.#evict();
    return held;
  }

  #evict(): void {
    for (const [key, held] of this.#holders) {
      if (!held.isIdle) continue;
      this.#holders.delete(key);
      return;
    }
  }
}

/** A call that waits for a count. */
interface Waiter {
  readonly now: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  /** Whether its deadline has passed. */
  readonly late: { readonly isLate: boolean };
}

/** What is known of a holder of a quota. */
class Held {
  readonly holder: QuotaHolder;
  readonly bounds: TokenCounts;
  readonly waiters: Waiter[] = [];
  readonly #quotas: Quotas;
  isCounting = false;
  /** How many tokens may be issued without another count. */
  places = 0;
  /** How many tokens may be issued before the ended ones are counted again. */
  untilEnded = 0;
  /** Tokens that are being inserted, or may be. */
  inFlight = 0;
  #onAllLeft: (() => void) | undefined;
  /** When it was counted last, by the clock of the service and by the monotonic one. */
  #countedAt = Number.NEGATIVE_INFINITY;
  #countedAtMs = 0;

  constructor(holder: QuotaHolder, quotas: Quotas) {
    this.holder = holder;
    this.#quotas = quotas;
    const live = holder.root === undefined ? quotas.tokensPerAccount : quotas.derivedPerRoot;
    const ended =
      holder.root === undefined ? quotas.endedPerAccount : ENDED_PER_LIVE * quotas.derivedPerRoot;
    this.bounds = { live, ended };
  }

  get isIdle(): boolean {
    return this.inFlight === 0 && this.waiters.length === 0 && !this.isCounting;
  }

  isFresh(now: number): boolean {
    if (Math.abs(now - this.#countedAt) >= QUOTA_TRUST_MS) return false;
    return performance.now() - this.#countedAtMs < QUOTA_TRUST_MS;
  }

  takePlace(now: number): boolean {
    if (this.places <= 0 || !this.isFresh(now)) return false;
    this.places -= 1;
    this.#enter();
    return true;
  }

  leave(): void {
    this.inFlight -= 1;
    if (this.inFlight === 0) this.#onAllLeft?.();
  }

  /** Resolves when no insertion is under way. None begins while a count is. */
  async allLeft(): Promise<void> {
    if (this.inFlight > 0) await new Promise<void>((resolve) => (this.#onAllLeft = resolve));
  }

  /** Lets those in who have room, refuses the others of the first `asked`, and trusts the count. */
  serve(asked: number, room: number, now: number): void {
    this.#countedAt = now;
    this.#countedAtMs = performance.now();
    let left = room;
    for (const [index, waiter] of this.waiters.splice(0).entries()) {
      if (waiter.late.isLate) continue;
      if (left > 0) {
        left -= 1;
        this.#enter();
        waiter.resolve();
      } else if (index < asked) waiter.reject(tooManyTokens(this.#quotas, this.holder));
      else this.waiters.push(waiter);
    }
    const trusted = Math.floor(Math.max(0, room) * QUOTA_SHARE);
    this.places = Math.min(left, trusted, this.untilEnded);
  }

  #enter(): void {
    this.inFlight += 1;
    this.untilEnded -= 1;
  }
}

function shareOf(bound: number): number {
  return Math.max(1, Math.floor(bound * QUOTA_SHARE));
}

/** The error for an account, or a root, that already has as many tokens as it may have. */
function tooManyTokens(
  { tokensPerAccount, derivedPerRoot }: Quotas,
  { root }: QuotaHolder,
): TokenError {
  if (root !== undefined) {
    return quotaExceeded(
      'derivedPerRoot',
      derivedPerRoot,
      `the token at the root of this one has ${derivedPerRoot} active or suspended descendants, and may have no more; revoke one, or let one expire`,
    );
  }
  return quotaExceeded(
    'tokensPerAccount',
    tokensPerAccount,
    `the account has ${tokensPerAccount} active or suspended tokens, and may have no more; revoke one, or let one expire`,
  );
}
