import { storeUnavailable, type TokenError } from '../errors.ts';
import { withDeadline } from '../time/deadline.ts';
import { clearTimeout, delay, performance, queueMicrotask, setTimeout } from '../time/timers.ts';
import type { TokenId, TokenLimits, TokenRecord } from '../token/record.ts';
import type { CheckedLeaseStore } from './checked-lease-store.ts';
import { endOfTotal, rateKey, totalKey, windowOf, windowStart } from './windows.ts';

/** Milliseconds after which a window has certainly begun, by the clock of the store too. @bound */
export const MAX_EARLY_MS = 1000;

/** Milliseconds until a window is asked for again of which the store has granted nothing yet. @bound */
export const LEASE_EARLY_MS = 10;

/** Milliseconds for which a limit that has no use left is not asked about again. @bound */
export const LEASE_RETRY_MS = 1000;

/** Milliseconds after which leased uses that nobody needs are given back. @bound */
export const LEASE_IDLE_MS = 10_000;

/** Milliseconds after which the next lease begins with one use again. @bound */
export const LEASE_SLOW_MS = 10_000;

/** Milliseconds within which a lease that is used up makes the next one larger. @bound */
export const LEASE_QUICK_MS = 1000;

/** Uses that one process leases in one step, at most. @bound */
export const MAX_LEASE = 1000;

/** The part of a limit that one process leases in one step, at most, so that processes share fairly. @bound */
export const LEASE_SHARE = 1 / 16;

/** A limit that has no use left. */
export interface LimitHit {
  /** The rate, if the current window has no use left; absent if the total has none. */
  readonly rate?: NonNullable<TokenLimits['rate']>;
  /** When the next window begins, in milliseconds since 1970. */
  readonly retryAt?: number;
  /** The whole seconds from now until then. */
  readonly retryAfterSeconds?: number;
}

/** What {@link Leases} work with. */
export interface LeaseParts {
  readonly store: CheckedLeaseStore;
  readonly deadlineMs: number;
  /** This instant, in milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * Spends the uses of limited tokens in memory. The process leases them from the store in advance. All
 * processes together never lease more than the limit, so a verification has nothing to write. The next
 * lease is fetched when half of the last one is spent, so few verifications wait.
 *
 * A lease starts with one use and doubles while leases run out quickly, up to a share of the limit, so
 * that other processes get their part. Uses that stay idle, or are left at the end, go back to the store.
 */
export class Leases {
  readonly #parts: LeaseParts;
  readonly #tokens = new Map<TokenId, LimitedToken>();
  /** Requests for leases, sent to the store in one call at the end of this turn. */
  #requests: LeaseRequest[] = [];
  /** Calls of the store that are in flight. */
  readonly #calls = new Set<Promise<unknown>>();
  /** What is on its way back to the store, by the key of its lease. */
  readonly #returning = new Map<string, Promise<void>>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
  }

  /**
   * Spends one use of every limit of all these tokens, or none. Returns a {@link LimitHit} if a limit
   * has no use left, and `undefined` if the store has to be asked first: call {@link spendLater} then.
   */
  spend(records: readonly TokenRecord[], now: number): true | LimitHit | undefined {
    const tokens = records.map((record) => this.#limited(record, now));
    for (const { total, rate } of tokens) {
      // The verification began in an earlier window, or the clock was set back.
      if (rate !== undefined && rate.window !== windowOf(now, rate.seconds)) return undefined;
      if (isSpent(total) || isSpent(rate)) return this.#hitOf(records, now);
    }
    for (const { total, rate } of tokens) {
      if (total !== undefined) this.#spendOne(total, now);
      if (rate !== undefined) this.#spendOne(rate, now);
    }
    return true;
  }

  /**
   * Spends like {@link spend}, and asks the store for uses as often as necessary.
   *
   * @throws {TokenError} `store_unavailable`, also if no use was available within the deadline;
   * `store_corrupt`
   */
  async spendLater(records: readonly TokenRecord[]): Promise<true | LimitHit> {
    const end = performance.now() + this.#parts.deadlineMs;
    for (;;) {
      // The window may have ended while this waited.
      const now = this.#parts.now();
      for (const record of records) this.#enterWindow(record, now);
      const spent = this.spend(records, now);
      if (spent !== undefined) return spent;
      const msLeft = end - performance.now();
      if (this.#isClosed) throw storeUnavailable('closed', 'leases');
      if (msLeft <= 0) throw tooLate();
      const leases = records.flatMap((record) => leasesOf(this.#limited(record, now)));
      const empty = leases.filter(isSpent);
      const refills = empty.map((lease) => this.#refill(lease, now));
      await withDeadline(Promise.all(refills), msLeft, tooLate);
    }
  }

  /** Gives back the leases of tokens that were not used since the last call. A timer calls it. */
  giveBackIdle(): void {
    const idle: Lease[] = [];
    for (const [id, token] of this.#tokens) {
      const leases = leasesOf(token);
      if (leases.every((lease) => lease.isIdle && lease.taking === undefined)) {
        this.#tokens.delete(id);
        idle.push(...leases);
      }
      for (const lease of leases) lease.isIdle = true;
    }
    this.#giveBack(idle);
  }

  /** Gives back all leases. Spends no use from then on. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    // A lease that is still being fetched is given back when it arrives.
    while (this.#calls.size > 0) await Promise.all(this.#calls);
    this.#giveBack([...this.#tokens.values()].flatMap(leasesOf));
    this.#tokens.clear();
    while (this.#calls.size > 0) await Promise.all(this.#calls);
  }

  #spendOne(lease: Lease, now: number): void {
    lease.left -= 1;
    lease.isIdle = false;
    // A lease of one use belongs to a token that is rarely used, or has few uses: not fetched ahead.
    const isLow = lease.full > 1 && lease.left * 2 <= lease.full;
    if (isLow && lease.taking === undefined && lease.emptyUntil <= now) this.#take(lease, now);
  }

  #limited(record: TokenRecord, now: number): LimitedToken {
    const { id, limits = NO_LIMITS, version } = record;
    let token = this.#tokens.get(id);
    if (token === undefined) {
      token = { limits: NO_LIMITS, version, total: undefined, rate: undefined };
      this.#tokens.set(id, token);
      this.#startTimer();
    }
    const isOther = token.limits !== limits || token.version !== version;
    // Reads may end out of order: an older record must not bring back older limits.
    if (isOther && version >= token.version) this.#adopt(token, record);
    const { rate } = token;
    if (rate !== undefined) {
      const window = windowOf(now, rate.seconds);
      if (window > rate.window) moveTo(rate, window);
    }
    return token;
  }

  /** Moves the lease of a rate to the window of this instant, also back if the clock was set back. */
  #enterWindow(record: TokenRecord, now: number): void {
    const { rate } = this.#limited(record, now);
    if (rate === undefined) return;
    const window = windowOf(now, rate.seconds);
    if (window !== rate.window) moveTo(rate, window);
  }

  /** Applies the limits of a record. The lease of a limit that was lowered or removed goes back. */
  #adopt(token: LimitedToken, record: TokenRecord): void {
    const { id, limits = NO_LIMITS, version } = record;
    token.limits = limits;
    token.version = version;
    token.total = this.#adopted(token.total, totalKey(id), limits.uses, 0);
    if (token.total !== undefined) token.total.until = endOfTotal(record);
    const { uses, seconds = 0 } = limits.rate ?? {};
    const key = rateKey(id, seconds);
    const isSame = token.rate?.key === key;
    if (!isSame && token.rate !== undefined) this.#drop(token.rate);
    token.rate = this.#adopted(isSame ? token.rate : undefined, key, uses, seconds);
  }

  #adopted(
    lease: Lease | undefined,
    key: string,
    limit: number | undefined,
    seconds: number,
  ): Lease | undefined {
    if (lease === undefined) return limit === undefined ? undefined : newLease(key, limit, seconds);
    if (limit === undefined) {
      this.#drop(lease);
      return undefined;
    }
    if (limit < lease.limit) this.#giveBack([lease]);
    if (limit !== lease.limit) lease.emptyUntil = Number.NEGATIVE_INFINITY;
    lease.limit = limit;
    return lease;
  }

  /** Gives back a lease that is no longer needed; also what is still being fetched for it. */
  #drop(lease: Lease): void {
    lease.limit = 0;
    this.#giveBack([lease]);
  }

  /** The limit that is known to have no use left, and for the longest time, without asking the store. */
  #hitOf(records: readonly TokenRecord[], now: number): LimitHit | undefined {
    let hit: LimitHit | undefined;
    for (const record of records) {
      const { total, rate } = this.#limited(record, now);
      // If a total is spent, waiting for the next window does not help.
      if (isEmpty(total, now)) return {};
      if (!isEmpty(rate, now)) continue;
      const { retryAt, ...others } = hitOfRate(rate, now);
      if (hit?.retryAt === undefined || retryAt > hit.retryAt) hit = { retryAt, ...others };
    }
    return hit;
  }

  /** Waits until a call of the store has brought more uses, or has found none. */
  async #refill(lease: Lease, now: number): Promise<void> {
    lease.waiting += 1;
    try {
      await (lease.taking ?? this.#take(lease, now));
    } finally {
      lease.waiting -= 1;
    }
  }

  /** Begins to fetch the next lease, in one call with all others of this turn. */
  #take(lease: Lease, now: number): Promise<void> {
    const sinceLast = now - lease.askedAt;
    if (sinceLast < LEASE_QUICK_MS) lease.size *= 2;
    else if (sinceLast > LEASE_SLOW_MS) lease.size = 1;
    lease.askedAt = now;
    const { pauseMs } = lease;
    const asked = pauseMs === 0 ? this.#request(lease) : this.#requestAfter(pauseMs, lease);
    const taking = asked.finally(() => {
      if (lease.taking === taking) lease.taking = undefined;
    });
    lease.taking = taking;
    // Nobody may be waiting for this lease. Its failure was emitted as an event.
    this.#track(taking.catch(() => {}));
    return taking;
  }

  #request(lease: Lease): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#requests.length === 0) queueMicrotask(() => this.#sendRequests());
      this.#requests.push({ lease, resolve, reject });
    });
  }

  async #requestAfter(ms: number, lease: Lease): Promise<void> {
    await delay(ms);
    await this.#request(lease);
  }

  async #sendRequests(): Promise<void> {
    const requests = this.#requests;
    this.#requests = [];
    // The store must have uses back before it grants more: it would refuse those, or exceed a lower limit.
    const returning = requests.flatMap(({ lease }) => this.#returning.get(lease.key) ?? []);
    if (returning.length > 0) await Promise.all(returning);
    const wants = requests.map(({ lease }) => wantOf(lease));
    try {
      const granted = await this.#parts.store.take(wants);
      const now = this.#parts.now();
      for (const [index, { lease, resolve }] of requests.entries()) {
        this.#grant(lease, wants[index] as Want, granted[index] as number, now);
        resolve();
      }
    } catch (error) {
      for (const { lease, reject } of requests) {
        // An outage says nothing about how many uses are needed.
        lease.askedAt = Number.NEGATIVE_INFINITY;
        reject(error);
      }
    }
  }

  #grant(lease: Lease, { window, limit, want }: Want, granted: number, now: number): void {
    const isOld = lease.window !== window;
    if (this.#isClosed || (!isOld && limit > lease.limit)) {
      this.#giveBack([{ ...lease, window, left: granted }]);
      return;
    }
    // A lease ends with its window.
    if (isOld) return;
    lease.left += granted;
    lease.full = lease.left;
    // Little is left: the next lease is of one use again, so that no process holds the last ones idle.
    if (granted < want) lease.askedAt = Number.NEGATIVE_INFINITY;
    lease.hasBegun ||= granted > 0;
    lease.pauseMs = this.#pauseOf(lease, now);
    const isEmpty = granted === 0 && lease.pauseMs === 0;
    lease.emptyUntil = isEmpty ? now + LEASE_RETRY_MS : Number.NEGATIVE_INFINITY;
  }

  /**
   * How long to wait before the store is asked again for a window that has just begun, because it may not
   * have begun by the clock of the store; 0 if nothing of it is left. Ends well before the deadline of
   * those who wait, and before half of the window is over.
   */
  #pauseOf({ hasBegun, window, seconds, pauseMs }: Lease, now: number): number {
    if (hasBegun || seconds === 0) return 0;
    const next = pauseMs === 0 ? LEASE_EARLY_MS : 2 * pauseMs;
    const sinceStart = now + next - windowStart(window, seconds);
    const isEarly = sinceStart <= Math.min(MAX_EARLY_MS, seconds * 500);
    return isEarly && next * 4 <= this.#parts.deadlineMs ? next : 0;
  }

  /** Empties leases and gives their uses back to the store. */
  #giveBack(leases: readonly Lease[]): void {
    const given = leases.filter(({ left }) => left > 0);
    if (given.length === 0) return;
    const amounts = given.map(({ key, window, left }) => ({ key, window, amount: left }));
    for (const lease of given) {
      lease.left = 0;
      lease.full = 0;
    }
    const giving = this.#track(this.#parts.store.giveBack(amounts));
    for (const { key } of amounts) {
      const all = Promise.all([this.#returning.get(key), giving]).then(() => {
        if (this.#returning.get(key) === all) this.#returning.delete(key);
      });
      this.#returning.set(key, all);
    }
  }

  #track(call: Promise<void>): Promise<void> {
    const tracked = call.finally(() => this.#calls.delete(tracked));
    this.#calls.add(tracked);
    return tracked;
  }

  #startTimer(): void {
    if (this.#timer !== undefined || this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.giveBackIdle();
      if (this.#tokens.size > 0) this.#startTimer();
    }, LEASE_IDLE_MS);
    this.#timer.unref();
  }
}

const NO_LIMITS: TokenLimits = {};

/** The leases of one token. */
interface LimitedToken {
  /** The limits that the leases follow. */
  limits: TokenLimits;
  version: number;
  total: Lease | undefined;
  rate: Lease | undefined;
}

/** Uses of one limit that this process may still spend. The members that each use needs come first. */
interface Lease {
  left: number;
  /** How many were left when the last lease had arrived. */
  full: number;
  /** The number of the window that the uses belong to; 0 for a total. */
  window: number;
  /** The length of the windows of a rate; 0 for a total. */
  readonly seconds: number;
  /** Whether no use was spent since the last {@link Leases.giveBackIdle}. */
  isIdle: boolean;
  /** The call in flight that has to end before the store is asked again. */
  taking: Promise<void> | undefined;
  readonly key: string;
  limit: number;
  /** How many uses to ask for next. */
  size: number;
  /** How many verifications wait for a use. */
  waiting: number;
  /** When the store was last asked, in milliseconds since 1970. */
  askedAt: number;
  /** Whether the store has granted uses of this window. */
  hasBegun: boolean;
  /** How long to wait before the store is asked again, in milliseconds. */
  pauseMs: number;
  /** Until when the store is not asked again, because it had no use left. */
  emptyUntil: number;
  /** When the store may forget a total, in milliseconds since 1970. */
  until: number;
}

interface LeaseRequest {
  readonly lease: Lease;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

type Want = Parameters<CheckedLeaseStore['take']>[0][number];

function newLease(key: string, limit: number, seconds: number): Lease {
  return {
    left: 0,
    full: 0,
    window: 0,
    seconds,
    isIdle: false,
    taking: undefined,
    key,
    limit,
    size: 1,
    waiting: 0,
    askedAt: Number.NEGATIVE_INFINITY,
    hasBegun: false,
    pauseMs: 0,
    emptyUntil: Number.NEGATIVE_INFINITY,
    until: 0,
  };
}

/** Moves a lease to another window. Uses of the former window cannot be spent in it. */
function moveTo(lease: Lease, window: number): void {
  lease.window = window;
  lease.left = 0;
  lease.full = 0;
  lease.hasBegun = false;
  lease.pauseMs = 0;
  lease.emptyUntil = Number.NEGATIVE_INFINITY;
}

/** The request for the next lease: of the planned size, or for all verifications that wait. */
function wantOf(lease: Lease): Want {
  const { key, window, limit, seconds, until } = lease;
  const most = Math.max(1, Math.min(Math.floor(limit * LEASE_SHARE), MAX_LEASE));
  const want = Math.min(Math.max(lease.size, lease.waiting), most);
  lease.size = Math.min(lease.size, most);
  if (seconds === 0) return { key, window, limit, want, until: new Date(until) };
  const [start, end] = [windowStart(window, seconds), windowStart(window + 1, seconds)];
  return { key, window, limit, want, start: new Date(start), until: new Date(end) };
}

/** Whether a lease has no use in hand. */
function isSpent(lease: Lease | undefined): lease is Lease {
  return lease !== undefined && lease.left <= 0;
}

/** Whether the store has answered a short time ago that there is no use left. */
function isEmpty(lease: Lease | undefined, now: number): lease is Lease {
  return isSpent(lease) && lease.emptyUntil > now;
}

function hitOfRate({ limit: uses, seconds, window }: Lease, now: number): Required<LimitHit> {
  const retryAt = windowStart(window + 1, seconds);
  const retryAfterSeconds = Math.max(1, Math.ceil((retryAt - now) / 1000));
  return { rate: { uses, seconds }, retryAt, retryAfterSeconds };
}

function leasesOf({ total, rate }: LimitedToken): Lease[] {
  return [total, rate].filter((lease) => lease !== undefined);
}

function tooLate(): TokenError {
  return storeUnavailable('timeout', 'leases');
}
