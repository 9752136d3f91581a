import { withDeadline } from '../../time/deadline.ts';
import { clearTimeout, performance, setTimeout } from '../../time/timers.ts';
import { ANSWER_MS } from './driver.ts';
import type { WriteCall } from './scripts.ts';

/** The part of the remembered writes to Redis that one account may take. @bound */
export const RECENT_WRITES_SHARE = 1 / 4;

/** Characters of the writes to Redis that a process remembers. @bound */
export const MAX_RECENT_WRITES_LENGTH = 16_000_000;

/** Writes to Redis that a process remembers. @bound */
export const MAX_RECENT_WRITES = 40_000;

/** Milliseconds for which writes to Redis are remembered, to repeat those lost in a failover. @bound */
export const RECENT_WRITES_MS = 60_000;

const CHECK_MS = 1000;

/** The outcome of running a write again. */
export interface Repetition {
  /** How many tokens it had to change again. */
  readonly changed: number;
  /** Whether it found all of its changes in place. */
  readonly isIntact: boolean;
}

/**
 * Runs the changes of the last minute again when a server has lost them.
 *
 * Redis answers before its replicas have a write. If the primary fails then and a replica takes
 * over, the write is gone although it was acknowledged: a revoked token is valid again. A server
 * that does not sync each write to its disk can lose writes by a restart.
 *
 * So each process remembers the calls with which it changed and revoked tokens, and checks every
 * second that their changes are still there. To check is to run a call again: a script that finds
 * the id of its call in the record changes nothing and reports it intact.
 *
 * Only the newest call of each slot has to be checked: a server loses the end of its history, never
 * a part within, so if the newest write is there, all before it are. If another write has changed
 * its tokens since, it shows nothing, and the call before it is checked. Once a write was missing,
 * all calls of the slot run again, oldest first; those whose changes are there change nothing.
 *
 * What a process has not repeated before it ends stays lost.
 */
export class RecentWrites {
  readonly #repeat: (call: WriteCall) => Promise<Repetition>;
  readonly #onLoss: (count: number) => void;
  readonly #histories = new Map<number, RecentWrite[]>();
  /** Histories whose repair has begun and not ended. */
  readonly #interrupted = new WeakSet<readonly RecentWrite[]>();
  readonly #total: Size = { count: 0, characters: 0 };
  readonly #byAccount = new Map<string, Size>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** `onLoss` receives the number of tokens that had to be changed again. */
  constructor(repeat: (call: WriteCall) => Promise<Repetition>, onLoss: (count: number) => void) {
    this.#repeat = repeat;
    this.#onLoss = onLoss;
  }

  add(call: WriteCall, account: string): void {
    if (this.#isClosed) return;
    const characters = charactersOf(call);
    const addedAt = performance.now();
    const history = this.#histories.get(call.slot) ?? [];
    this.#histories.set(call.slot, history);
    const ofAccount = this.#byAccount.get(account) ?? { count: 0, characters: 0 };
    this.#byAccount.set(account, ofAccount);
    history.push({ call, account, ofAccount, addedAt, characters, isSuperseded: false });
    for (const size of [this.#total, ofAccount]) grow(size, 1, characters);
    while (isOver(ofAccount, RECENT_WRITES_SHARE)) this.#evictOneOf(account);
    while (isOver(this.#total, 1)) this.#evictOne();
    this.#schedule();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#histories.clear();
  }

  #schedule(): void {
    if (this.#isClosed || this.#timer !== undefined || this.#total.count === 0) return;
    this.#timer = setTimeout(async () => {
      await Promise.all(Array.from(this.#histories.values(), (history) => this.#check(history)));
      this.#timer = undefined;
      this.#schedule();
    }, CHECK_MS);
    this.#timer.unref();
  }

  async #check(history: RecentWrite[]): Promise<void> {
    const startedAt = performance.now();
    const losses = { count: 0 };
    try {
      await this.#repair(history.slice(), this.#interrupted.has(history), losses);
      this.#interrupted.delete(history);
    } catch {
      // The server is down, perhaps for a failover: remember everything until it answers.
      this.#interrupted.add(history);
      return;
    } finally {
      if (losses.count > 0) this.#onLoss(losses.count);
    }
    while ((history[0]?.addedAt ?? startedAt) < startedAt - RECENT_WRITES_MS) this.#forget(history);
  }

  /**
   * After an interruption everything runs again: an intact write may be one that was just repeated,
   * and then says nothing about those before it.
   */
  async #repair(
    history: readonly RecentWrite[],
    wasInterrupted: boolean,
    losses: { count: number },
  ): Promise<void> {
    const newest = history.at(-1);
    for (const write of wasInterrupted ? [] : history.toReversed()) {
      if (write.isSuperseded && write !== newest) continue;
      const { changed, isIntact } = await this.#repeatInTime(write);
      losses.count += changed;
      if (isIntact) break;
      write.isSuperseded = changed === 0;
    }
    if (losses.count === 0 && !wasInterrupted) return;
    // In their order: a later write may build on an earlier one.
    for (const write of history) losses.count += (await this.#repeatInTime(write)).changed;
  }

  #repeatInTime({ call }: RecentWrite): Promise<Repetition> {
    return withDeadline(this.#repeat(call), ANSWER_MS);
  }

  /** Evicts the oldest write of the longest history. */
  #evictOne(): void {
    const [longest = []] = [...this.#histories.values()].sort((a, b) => b.length - a.length);
    this.#forget(longest);
  }

  /** Evicts the oldest write of an account: later ones of the same token build on it. */
  #evictOneOf(account: string): void {
    let oldest: { history: RecentWrite[]; index: number; addedAt: number } | undefined;
    for (const history of this.#histories.values()) {
      const index = history.findIndex((write) => write.account === account);
      const addedAt = history[index]?.addedAt ?? Number.POSITIVE_INFINITY;
      if (index >= 0 && addedAt < (oldest?.addedAt ?? Number.POSITIVE_INFINITY)) {
        oldest = { history, index, addedAt };
      }
    }
    if (oldest !== undefined) this.#forget(oldest.history, oldest.index);
  }

  #forget(history: RecentWrite[], index = 0): void {
    const [write] = history.splice(index, 1);
    if (write === undefined) return;
    const { account, ofAccount, characters } = write;
    for (const size of [this.#total, ofAccount]) grow(size, -1, -characters);
    if (ofAccount.count === 0) this.#byAccount.delete(account);
  }
}

interface RecentWrite {
  readonly call: WriteCall;
  readonly account: string;
  readonly ofAccount: Size;
  readonly addedAt: number;
  readonly characters: number;
  /** A later write has changed its tokens: it cannot show what a server has lost. */
  isSuperseded: boolean;
}

/** The size of what is remembered. */
interface Size {
  count: number;
  characters: number;
}

function grow(size: Size, count: number, characters: number): void {
  size.count += count;
  size.characters += characters;
}

function isOver({ count, characters }: Size, share: number): boolean {
  return count > MAX_RECENT_WRITES * share || characters > MAX_RECENT_WRITES_LENGTH * share;
}

function charactersOf({ keys, values }: WriteCall): number {
  return [...keys, ...values].reduce((sum, text) => sum + text.length, 0);
}
