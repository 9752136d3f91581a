import {
  LEASE_IDLE_MS,
  LEASE_QUICK_MS,
  LEASE_RETRY_MS,
  LEASE_SHARE,
  LEASE_SLOW_MS,
  MAX_LEASE,
} from '../bounds.ts';
import { withDeadline } from '../deadline.ts';
import { TokenError } from '../errors.ts';
import type { TokenId, TokenLimits, TokenRecord } from '../token.ts';
import type { CheckedLeaseStore } from './checked-lease-store.ts';
import { endOfTotal, rateKey, totalKey, windowOf, windowStart } from './windows.ts';

/** A limit that has no use left. */
export interface LimitHit {
  /** The rate whose window is used up; absent if the total is. */
  readonly rate?: NonNullable<TokenLimits['rate']>;
  /** When the next window begins, in milliseconds since 1970. */
  readonly retryAt?: number;
  /** The whole seconds until then, from now on. */
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
 * Spends the uses of limited tokens in memory. They are leased from the store before: what all processes
 * have leased is never more than the limit, so no verification has to write. Half of a lease is left
 * when the next one is fetched, so that hardly one has to wait.
 *
 * A lease starts with one use and doubles while leases run out quickly, up to a part of the limit, so
 * that processes share fairly. What is not used for a while, or at the end, goes back.
 */
export class Leases {
  readonly #parts: LeaseParts;
  readonly #tokens = new Map<TokenId, LimitedToken>();
  /** The leases for which the store is asked at the end of this turn. */
  #asking: Asking[] = [];
  /** What goes to the store and is not answered yet. */
  readonly #calls = new Set<Promise<unknown>>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
  }

  /**
   * Spends one use of every limit of all these tokens, or none: then a {@link LimitHit} names a limit that
   * has none left. Returns `undefined` if only the store can tell; see {@link spendLater}.
   */
  spend(records: readonly TokenRecord[], now: number): true | LimitHit | undefined {
    for (const record of records) {
      const { total, rate } = this.#limited(record, now);
      if (total?.left === 0 || rate?.left === 0) return this.#hitOf(records, now);
    }
    for (const { id } of records) {
      const { total, rate } = this.#tokens.get(id) as LimitedToken;
      if (total !== undefined) this.#spendOne(total, now);
      if (rate !== undefined) this.#spendOne(rate, now);
    }
    return true;
  }

  /**
   * Does the same, and asks the store before as often as it has to.
   *
   * @throws {TokenError} `store_unavailable`, also if no use was available within the deadline;
   * `store_corrupt`
   */
  async spendLater(records: readonly TokenRecord[]): Promise<true | LimitHit> {
    const end = performance.now() + this.#parts.deadlineMs;
    for (;;) {
      // The window may have ended while this waited.
      const now = this.#parts.now();
      const spent = this.spend(records, now);
      if (spent !== undefined) return spent;
      const msLeft = end - performance.now();
      if (this.#isClosed || msLeft <= 0) throw noUseInTime();
      const leases = records.flatMap((record) => leasesOf(this.#limited(record, now)));
      const more = leases.filter(({ left }) => left === 0).map((lease) => this.#more(lease, now));
      await withDeadline(Promise.all(more), msLeft, noUseInTime);
    }
  }

  /** Gives back what was not used since the last call. A timer calls it now and then. */
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

  /** Gives everything back. From then on, no token that needs a use is accepted. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    // What is on its way is given back when it arrives.
    while (this.#calls.size > 0) await Promise.all(this.#calls);
    this.#giveBack([...this.#tokens.values()].flatMap(leasesOf));
    this.#tokens.clear();
    while (this.#calls.size > 0) await Promise.all(this.#calls);
  }

  #spendOne(lease: Lease, now: number): void {
    lease.left -= 1;
    lease.isIdle = false;
    // A lease of one use belongs to a token that is used now and then: nothing is fetched ahead for it.
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
    // A record that was read before another one may still come after it.
    if (isOther && version >= token.version) this.#adopt(token, record);
    const { rate } = token;
    if (rate !== undefined) enterWindow(rate, windowOf(now, rate.seconds));
    return token;
  }

  /** Applies the limits of a record. What was leased beyond a lower limit goes back. */
  #adopt(token: LimitedToken, record: TokenRecord): void {
    const { id, limits = NO_LIMITS, version } = record;
    token.limits = limits;
    token.version = version;
    token.total = this.#adopted(token.total, totalKey(id), limits.uses, 0);
    if (token.total !== undefined) token.total.until = endOfTotal(record);
    const { uses, seconds = 0 } = limits.rate ?? {};
    const key = rateKey(id, seconds);
    const isSame = token.rate?.key === key;
    if (!isSame && token.rate !== undefined) this.#giveBack([token.rate]);
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
      this.#giveBack([lease]);
      return undefined;
    }
    if (limit < lease.limit) {
      // The store has to know what is back before it is asked by the new limit.
      const giving = this.#giveBack([lease])?.finally(() => {
        if (lease.taking === giving) lease.taking = undefined;
      });
      lease.taking = giving;
    }
    if (limit !== lease.limit) lease.emptyUntil = Number.NEGATIVE_INFINITY;
    lease.limit = limit;
    return lease;
  }

  /** The limit that has no use left, as far as is known without the store. */
  #hitOf(records: readonly TokenRecord[], now: number): LimitHit | undefined {
    for (const record of records) {
      const { total, rate } = this.#limited(record, now);
      // A total that is spent stays so: that matters more than when the next window begins.
      if (isEmpty(total, now)) return {};
      if (isEmpty(rate, now)) return hitOfRate(rate, now);
    }
    return undefined;
  }

  async #more(lease: Lease, now: number): Promise<void> {
    lease.waiting += 1;
    try {
      await (lease.taking ?? this.#take(lease, now));
    } finally {
      lease.waiting -= 1;
    }
  }

  /** Begins to fetch the next lease, together with all others of this turn. */
  #take(lease: Lease, now: number): Promise<void> {
    const sinceLast = now - lease.takenAt;
    if (sinceLast < LEASE_QUICK_MS) lease.size *= 2;
    else if (sinceLast > LEASE_SLOW_MS) lease.size = 1;
    lease.takenAt = now;
    const taking = new Promise<void>((resolve, reject) => {
      if (this.#asking.length === 0) queueMicrotask(() => this.#ask());
      this.#asking.push({ lease, resolve, reject });
    }).finally(() => {
      if (lease.taking === taking) lease.taking = undefined;
    });
    lease.taking = taking;
    // Nobody waits for what is fetched ahead; a failure is an event.
    this.#track(taking.catch(() => {}));
    return taking;
  }

  #ask(): void {
    const asking = this.#asking;
    this.#asking = [];
    const wants = asking.map(({ lease }) => wantOf(lease));
    this.#parts.store.take(wants).then(
      (granted) => {
        for (const [index, { lease, resolve }] of asking.entries()) {
          this.#grant(lease, wants[index] as Want, granted[index] as number);
          resolve();
        }
      },
      (error) => {
        for (const { reject } of asking) reject(error);
      },
    );
  }

  #grant(lease: Lease, { window, limit, want }: Want, granted: number): void {
    const isOld = lease.window !== window;
    if (this.#isClosed || (!isOld && limit > lease.limit)) {
      this.#giveBack([{ ...lease, window, left: granted }]);
      return;
    }
    // What was leased of a window ends with it.
    if (isOld) return;
    lease.left += granted;
    lease.full = lease.left;
    if (granted < want) lease.size = 1;
    const retryAt = this.#parts.now() + LEASE_RETRY_MS;
    lease.emptyUntil = granted === 0 ? retryAt : Number.NEGATIVE_INFINITY;
  }

  /** Takes what is left out of leases and gives it back; `undefined` if there is nothing. */
  #giveBack(leases: readonly Lease[]): Promise<void> | undefined {
    const given = leases.filter(({ left }) => left > 0);
    if (given.length === 0) return undefined;
    const amounts = given.map(({ key, window, left }) => ({ key, window, amount: left }));
    for (const lease of given) {
      lease.left = 0;
      lease.full = 0;
    }
    return this.#track(this.#parts.store.giveBack(amounts));
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
  /** The limits by which they were made. */
  limits: TokenLimits;
  version: number;
  total: Lease | undefined;
  rate: Lease | undefined;
}

/** Uses of one limit that this process may still spend. What each use needs comes first, near together. */
interface Lease {
  left: number;
  /** What was left after the last lease came. */
  full: number;
  /** The number of the window that it belongs to; 0 for a total. */
  window: number;
  /** The length of the windows of a rate; 0 for a total. */
  readonly seconds: number;
  /** Whether nothing was spent since the last look. */
  isIdle: boolean;
  /** The call that brings more. */
  taking: Promise<void> | undefined;
  readonly key: string;
  limit: number;
  /** How much to ask for next. */
  size: number;
  /** How many verifications wait for more. */
  waiting: number;
  /** When the store was last asked, in milliseconds since 1970. */
  takenAt: number;
  /** Until when the store is not asked again, since it had none. */
  emptyUntil: number;
  /** From when on the store may forget a total, in milliseconds since 1970. */
  until: number;
}

interface Asking {
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
    takenAt: Number.NEGATIVE_INFINITY,
    emptyUntil: Number.NEGATIVE_INFINITY,
    until: 0,
  };
}

/** A lease ends with its window. */
function enterWindow(lease: Lease, window: number): void {
  if (lease.window === window) return;
  lease.window = window;
  lease.left = 0;
  lease.full = 0;
  lease.emptyUntil = Number.NEGATIVE_INFINITY;
}

/** How much to ask the store for: those who wait need no guess. */
function wantOf(lease: Lease): Want {
  const { key, window, limit, seconds, until } = lease;
  const most = Math.max(1, Math.min(Math.floor(limit * LEASE_SHARE), MAX_LEASE));
  const want = Math.min(Math.max(lease.size, lease.waiting), most);
  lease.size = Math.min(lease.size, most);
  const ends = seconds === 0 ? until : windowStart(window + 1, seconds);
  return { key, window, limit, want, until: new Date(ends) };
}

/** Whether the store has told just now that there is no use left. */
function isEmpty(lease: Lease | undefined, now: number): lease is Lease {
  return lease?.left === 0 && lease.emptyUntil > now;
}

function hitOfRate({ limit: uses, seconds, window }: Lease, now: number): LimitHit {
  const retryAt = windowStart(window + 1, seconds);
  const retryAfterSeconds = Math.max(1, Math.ceil((retryAt - now) / 1000));
  return { rate: { uses, seconds }, retryAt, retryAfterSeconds };
}

function leasesOf({ total, rate }: LimitedToken): Lease[] {
  return [total, rate].filter((lease) => lease !== undefined);
}

function noUseInTime(): TokenError {
  return new TokenError('store_unavailable', 'the store did not answer; try again later');
}
