import { TokenError } from '../errors.ts';
import { nextTurn } from '../time/deadline.ts';
import type { TokenId, TokenRecord } from '../token/record.ts';
import { isLong } from '../token/size.ts';
import type { CheckedStore } from './checked-store.ts';
import type { RecordReader } from './reader.ts';

/** Attempts at one change of a token while other changes win. @bound */
export const MAX_CHANGE_ATTEMPTS = 1000;

/** A record before and after a change. */
export interface RecordChange {
  readonly before: TokenRecord;
  readonly after: TokenRecord;
}

/** Makes a change of the record that is stored now, or throws why it is refused. */
export type MakeChange = (stored: TokenRecord | undefined) => RecordChange | Promise<RecordChange>;

interface Waiting {
  readonly make: MakeChange;
  readonly now: number;
  readonly until: number;
  readonly resolve: (change: RecordChange) => void;
  readonly reject: (error: unknown) => void;
  /** How often another process changed the record first. */
  losses: number;
  isLate: boolean;
}

/**
 * Writes changes of records. Changes of one record that arrive while another one is being written wait
 * for it, then share one read and one write: each is applied to the result of the one before and gets a
 * version of its own, as if they had been written one by one.
 */
export class ChangeQueue {
  readonly #store: CheckedStore;
  readonly #reader: RecordReader;
  readonly #waiting = new Map<TokenId, Waiting[]>();

  constructor(store: CheckedStore, reader: RecordReader) {
    this.#store = store;
    this.#reader = reader;
  }

  /**
   * Resolves when the change is written. All its calls of the store share one deadline.
   *
   * @throws {TokenError} whatever `make` throws; `version_conflict` if other processes kept changing the
   * record
   */
  change(id: TokenId, now: number, make: MakeChange): Promise<RecordChange> {
    const until = this.#store.deadline();
    const waiting = { make, now, until, losses: 0, isLate: false };
    const change = new Promise<RecordChange>((resolve, reject) => {
      this.#enqueue(id, Object.assign(waiting, { resolve, reject }));
    });
    return this.#store.inTime(change, until, () => {
      waiting.isLate = true;
      return waiting.losses > 0 ? lostConflict() : undefined;
    });
  }

  #enqueue(id: TokenId, waiting: Waiting): void {
    const queue = this.#waiting.get(id);
    if (queue !== undefined) {
      queue.push(waiting);
      return;
    }
    this.#waiting.set(id, [waiting]);
    void this.#drain(id);
  }

  /** Writes the changes of one record, batch by batch, until none waits. */
  async #drain(id: TokenId): Promise<void> {
    let batch: readonly Waiting[] = [];
    for (;;) {
      batch = [...batch, ...(this.#waiting.get(id) ?? [])].filter(({ isLate }) => !isLate);
      if (batch.length === 0) break;
      this.#waiting.set(id, []);
      try {
        batch = await this.#write(id, batch);
      } catch (error) {
        for (const { reject } of batch) reject(error);
        batch = [];
      }
    }
    this.#waiting.delete(id);
  }

  /** Resolves to the changes to try again, because another process changed the record first. */
  async #write(id: TokenId, batch: readonly Waiting[]): Promise<readonly Waiting[]> {
    // They are in order of arrival, so the last one has the latest deadline.
    const { now, until } = batch.at(-1) as Waiting;
    const stored = await this.#reader.read(id, now);
    const { last, settle } = await applied(stored, batch);
    if (stored === undefined || last === undefined || last === stored) settle();
    else if (await this.#store.replace(last, stored.version, until)) settle();
    else return batch.filter((waiting) => mayTryAgain(waiting));
    return [];
  }
}

function mayTryAgain(waiting: Waiting): boolean {
  waiting.losses += 1;
  if (waiting.losses < MAX_CHANGE_ATTEMPTS) return true;
  waiting.reject(lostConflict());
  return false;
}

/** Applies each change to the result of the one before; `settle` gives each caller its outcome. */
async function applied(
  stored: TokenRecord | undefined,
  batch: readonly Waiting[],
): Promise<{ readonly last: TokenRecord | undefined; readonly settle: () => void }> {
  const outcomes: (() => void)[] = [];
  let last = stored;
  for (const { make, resolve, reject } of batch) {
    await yieldIfLong(last);
    try {
      const made = make(last);
      const change = made instanceof Promise ? await made : made;
      last = change.after;
      outcomes.push(() => resolve(change));
    } catch (error) {
      outcomes.push(() => reject(error));
    }
  }
  await yieldIfLong(last);
  return {
    last,
    settle() {
      for (const settle of outcomes) settle();
    },
  };
}

/** Yields to the event loop between two steps with a long record, each of which takes milliseconds. */
export async function yieldIfLong(record: TokenRecord | undefined): Promise<void> {
  if (record !== undefined && isLong(record.scopes)) await nextTurn();
}

/** The error for a change that never came first. */
function lostConflict(): TokenError {
  return new TokenError('version_conflict', 'others kept changing this token; try again');
}
