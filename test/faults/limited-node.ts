// One of several processes that use limited tokens as often as they can, one job after the other. It writes
// each accepted use to a file immediately, so that the uses of a killed process count as well.
import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { isTokenError, type KeyOptions, type LeaseStore, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { type OpenedStore, openStore, type StorePlace } from '../stores/engines.ts';
import { SCOPE } from '../support.ts';

/** Comes as a message; the next message, with its id, starts it. */
export interface LimitedJob {
  readonly id: number;
  /** Where leases are stored. A path names a file with a counter that is read first and written later. */
  readonly leases: StorePlace | string;
  /** The SQLite file with the tokens. */
  readonly tokens: string;
  readonly key: KeyOptions;
  readonly value: string;
  readonly callers: number;
  /** The file for accepted uses: their number, or the window of each use if `ms` is set. */
  readonly notes: string;
  /** How long the job runs; without it, until there is nothing left. */
  readonly ms?: number;
}

/** The answer when a job is ready to start, and again when it is done. */
export interface JobAnswer {
  readonly id: number;
  /** How many verifications failed because of the store. */
  readonly failures: number;
}

/** Long, because leases that arrive after the deadline are lost, and the machine may be slow. */
const DEADLINE_MS = 20_000;
const PAUSE_MS = 10;

/** A job that is ready to start. */
class ReadyJob {
  readonly #job: LimitedJob;
  /** Undefined if leases are in a file with a counter. */
  readonly #opened: OpenedStore | undefined;
  readonly #tokens: TokenService;
  readonly #notes: number;
  #accepted = 0;
  #failures = 0;

  constructor(job: LimitedJob) {
    const { leases } = job;
    this.#job = job;
    this.#opened = typeof leases === 'string' ? undefined : openStore(leases);
    this.#tokens = new TokenService({
      store: SqliteTokenStore.openFile(job.tokens),
      keys: [job.key],
      prefix: 'acme',
      cache: { maxStaleMs: 60_000 },
      deadlineMs: DEADLINE_MS,
      limits: { store: this.#opened?.store.leases ?? readsThenWrites(`${leases}`) },
    });
    this.#notes = openSync(job.notes, 'w');
  }

  async run(): Promise<JobAnswer> {
    const { id, callers, ms } = this.#job;
    const until = Date.now() + (ms ?? 0);
    const call = () => (ms === undefined ? this.#useUp() : this.#useUntil(until));
    await Promise.all(Array.from({ length: callers }, call));
    await this.#tokens.close();
    await this.#opened?.close();
    closeSync(this.#notes);
    return { id, failures: this.#failures };
  }

  async #useUp(): Promise<void> {
    for (;;) {
      const isOk = await this.#verify();
      if (isOk === false) return;
      if (isOk) {
        this.#accepted += 1;
        writeSync(this.#notes, String(this.#accepted), 0);
      }
      await turn();
    }
  }

  async #useUntil(until: number): Promise<void> {
    while (Date.now() < until) {
      const window = Math.floor(Date.now() / 1000);
      const isOk = await this.#verify();
      // If the window changed during the call, the use could belong to either one.
      if (isOk && window === Math.floor(Date.now() / 1000)) writeSync(this.#notes, `${window}\n`);
      await (isOk ? turn() : delay(PAUSE_MS));
    }
  }

  /** `undefined` if the store failed. */
  async #verify(): Promise<boolean | undefined> {
    try {
      return (await this.#tokens.verify(this.#job.value, { scope: SCOPE })).ok;
    } catch (error) {
      if (!isTokenError(error) || error.code !== 'store_unavailable') throw error;
      this.#failures += 1;
      return undefined;
    }
  }
}

/** The control, which is not atomic: two processes may read the same number. */
function readsThenWrites(file: string): LeaseStore {
  return {
    async take(wants) {
      const granted: number[] = [];
      for (const { limit, want } of wants) {
        const count = Number(readFileSync(file, 'utf8'));
        await turn();
        granted.push(Math.max(0, Math.min(want, limit - count)));
        writeFileSync(file, String(count + (granted.at(-1) ?? 0)));
      }
      return granted;
    },
    async giveBack() {},
    purge: async () => 0,
  };
}

const ready = new Map<number, ReadyJob>();

process.on('message', async (message: LimitedJob | number) => {
  if (typeof message === 'object') {
    ready.set(message.id, new ReadyJob(message));
    process.send?.({ id: message.id, failures: 0 } satisfies JobAnswer);
    return;
  }
  const job = ready.get(message);
  ready.delete(message);
  process.send?.(await job?.run());
});
process.on('disconnect', () => process.exit());
