import { storeUnavailable } from '../../errors.ts';
import { withDeadline } from '../../time/deadline.ts';
import { performance } from '../../time/timers.ts';
import {
  ANSWER_MS,
  type Connection,
  type Driver,
  isReply,
  type RedisCommand,
  throwTokenError,
  whenReady,
} from './driver.ts';
import { sendScript, type WriteCall } from './scripts.ts';

/** What a script answered, and how many replicas have confirmed its write. */
export interface WriteAnswer {
  readonly answer: unknown;
  readonly confirmations: number;
}

/** How a store waits for replicas. */
export interface Replication {
  /** How many replicas must confirm a write. */
  readonly replicas: number;
  /** How long a write waits for them, in milliseconds. */
  readonly waitMs: number;
}

/** The caller of a write has given up by then: a late write would surprise it. */
const MAX_AGE_MS = 2000;
/** The first write opens the connections. */
const OPEN_MS = 1500;
const MAX_ATTEMPTS = 3;

const NONE: Replication = { replicas: 0, waitMs: 0 };

/**
 * Writes that wait for replicas, or for none. They have connections of their own: `WAIT` blocks its
 * connection, and reads must not wait behind it, nor behind many writes. These connections never resend
 * a write, and one that hangs is closed, so that a write runs at most once.
 *
 * Each server has a queue. Writes that arrive during a `WAIT` go out together in the next round
 * trip, so a replica that does not answer delays a write twice at most, whatever the load.
 */
export class ReplicatedWrites {
  readonly #source: Driver;
  /** Undefined if no replica is waited for. */
  readonly #wait: RedisCommand | undefined;
  readonly #waitMs: number;
  /** A duplicate of the host's client. */
  #own: Driver | undefined;
  readonly #queues = new WeakMap<Connection, WriteQueue>();
  #isClosed = false;

  constructor(source: Driver, { replicas, waitMs }: Replication = NONE) {
    this.#source = source;
    this.#waitMs = waitMs;
    if (replicas > 0) this.#wait = ['wait', String(replicas), String(waitMs)];
  }

  async run(call: WriteCall): Promise<WriteAnswer> {
    let confirmations = 0;
    const send = async (command: RedisCommand) => {
      const replicated = await this.#send(command, call);
      confirmations = replicated.confirmations;
      return replicated.answer;
    };
    const answer = await sendScript(send, call).catch(throwTokenError);
    return { answer, confirmations };
  }

  close(): void {
    this.#isClosed = true;
    if (this.#own !== undefined) this.#end(this.#own);
  }

  async #send(command: RedisCommand, { slot, keys: [key = ''] }: WriteCall): Promise<WriteAnswer> {
    const driver = this.#open();
    await whenReady(driver, OPEN_MS);
    for (let attempt = 1; ; attempt += 1) {
      const connection = await withDeadline(driver.owner(slot), ANSWER_MS);
      const sent = connection && (await this.#queueOf(connection, driver).send(command));
      if (sent !== undefined && !isReply(sent.answer, 'MOVED')) {
        if (sent.answer instanceof Error) throw sent.answer;
        return sent;
      }
      if (attempt === MAX_ATTEMPTS) throw new Error('no server has the slot');
      // The driver follows the redirection of its own command, and so learns who has the slot.
      await withDeadline(driver.send(['exists', key], key), ANSWER_MS);
    }
  }

  #open(): Driver {
    if (this.#isClosed) throw storeUnavailable('closed');
    if (this.#own?.state === 'closed') this.#own = undefined;
    this.#own ??= this.#source.duplicate();
    return this.#own;
  }

  #end(driver: Driver): void {
    driver.close();
    if (this.#own === driver) this.#own = undefined;
  }

  #queueOf(connection: Connection, driver: Driver): WriteQueue {
    const queue =
      this.#queues.get(connection) ??
      new WriteQueue((commands) => this.#sendBatch(commands, connection, driver));
    this.#queues.set(connection, queue);
    return queue;
  }

  async #sendBatch(commands: readonly RedisCommand[], connection: Connection, driver: Driver) {
    try {
      const sending = connection.sendAll(this.#wait ? [...commands, this.#wait] : commands);
      const answers = await withDeadline(sending, this.#waitMs + ANSWER_MS);
      const last = this.#wait ? answers.pop() : 0;
      // If WAIT failed, no replica counts as having confirmed.
      const confirmations = last instanceof Error ? 0 : Number(last);
      return answers.map((answer) => ({ answer, confirmations }));
    } catch (error) {
      // The connection hangs: close it, so that nobody waits for what was sent on it.
      this.#end(driver);
      throw error;
    }
  }
}

interface PendingWrite {
  readonly command: RedisCommand;
  readonly queuedAt: number;
  readonly resolve: (answer: WriteAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/** The writes to one server: one batch in flight, and the next one filling up. */
class WriteQueue {
  readonly #sendBatch: (commands: readonly RedisCommand[]) => Promise<WriteAnswer[]>;
  #pending: PendingWrite[] = [];
  #isSending = false;

  constructor(sendBatch: (commands: readonly RedisCommand[]) => Promise<WriteAnswer[]>) {
    this.#sendBatch = sendBatch;
  }

  send(command: RedisCommand): Promise<WriteAnswer> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ command, queuedAt: performance.now(), resolve, reject });
      if (!this.#isSending) void this.#sendPending();
    });
  }

  async #sendPending(): Promise<void> {
    this.#isSending = true;
    // Writes of the same turn go together.
    await Promise.resolve();
    while (this.#pending.length > 0) await this.#sendInTime(this.#pending.splice(0));
    this.#isSending = false;
  }

  async #sendInTime(writes: readonly PendingWrite[]): Promise<void> {
    const oldest = performance.now() - MAX_AGE_MS;
    const batch = writes.filter(({ queuedAt }) => queuedAt >= oldest);
    for (const { queuedAt, reject } of writes) {
      if (queuedAt < oldest) reject(new Error('too late'));
    }
    if (batch.length === 0) return;
    try {
      const answers = await this.#sendBatch(batch.map(({ command }) => command));
      for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as WriteAnswer);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
