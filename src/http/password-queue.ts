import { availableParallelism } from 'node:os';
import {
  AUTHENTICATE_DEADLINE_MS,
  MAX_HASHES,
  MAX_PASSWORD_CHECKS,
  MAX_PASSWORD_CHECKS_OF_ADDRESS,
} from '../bounds.ts';
import { performance } from '../timers.ts';
import { overloaded } from './errors.ts';

/** Hashes a password and resolves to whether it is right. */
export type PasswordCheck = () => Promise<boolean>;

interface Job {
  readonly key: string;
  readonly network: string;
  readonly check: PasswordCheck;
  readonly result: Promise<boolean>;
  readonly resolve: (isRight: boolean) => void;
  readonly reject: (error: unknown) => void;
  /** When its last caller stops waiting, by the clock of the queue. */
  until: number;
}

/**
 * Bounds the hashes that are computed concurrently, and the checks that wait for their turn.
 *
 * Addresses take turns: one with many checks delays the only check of another by one turn. When the
 * queue is full, the address with the most checks loses its newest one to a caller with fewer. A check
 * that finds no room rejects with `overloaded`, before anything is hashed for it.
 */
export class PasswordQueue {
  readonly #runs: number;
  readonly #now: () => number;
  #running = 0;
  /** Running and waiting jobs, by key. */
  readonly #jobs = new Map<string, Job>();
  /** Waiting jobs by network, without empty lists. The network whose turn it is comes first. */
  readonly #waiting = new Map<string, readonly Job[]>();

  constructor({
    // One processor stays free to answer calls.
    runs = Math.max(1, Math.min(MAX_HASHES, availableParallelism() - 1)),
    now = () => performance.now(),
  }: { readonly runs?: number; readonly now?: () => number } = {}) {
    this.#runs = runs;
    this.#now = now;
  }

  /**
   * Runs `check` when its turn comes. Calls with the same key share one check.
   *
   * A check does not start after its callers have stopped waiting. If it ends after that, it rejects,
   * so that no password is remembered whose caller got an error.
   *
   * @param network of the caller; empty if unknown, then only the limit for all applies
   */
  run(key: string, network: string, check: PasswordCheck): Promise<boolean> {
    const until = this.#now() + AUTHENTICATE_DEADLINE_MS;
    const same = this.#jobs.get(key);
    if (same !== undefined) {
      same.until = until;
      return same.result;
    }
    if (!this.#hasRoom(network)) return Promise.reject(overloaded());
    const job = newJob(key, network, check, until);
    this.#jobs.set(key, job);
    this.#waiting.set(network, [...this.#waitingOf(network), job]);
    this.#startMore();
    return job.result;
  }

  #hasRoom(network: string): boolean {
    if (!this.#isFull(network)) return true;
    this.#dropLate();
    return !this.#isFull(network) || (!this.#isShareTaken(network) && this.#displace(network));
  }

  #isFull(network: string): boolean {
    return this.#jobs.size >= MAX_PASSWORD_CHECKS || this.#isShareTaken(network);
  }

  #isShareTaken(network: string): boolean {
    if (network === '') return false;
    const jobs = [...this.#jobs.values()].filter((job) => job.network === network);
    return jobs.length >= MAX_PASSWORD_CHECKS_OF_ADDRESS;
  }

  /**
   * Drops the newest check of the address with the most, if that then still has as many as this one. So
   * two addresses never displace each other in turn.
   */
  #displace(network: string): boolean {
    const [heaviest = []] = [...this.#waiting.values()].sort((a, b) => b.length - a.length);
    const newest = heaviest.at(-1);
    if (newest === undefined || this.#waitingOf(network).length + 1 >= heaviest.length)
      return false;
    this.#drop(newest);
    return true;
  }

  #dropLate(): void {
    const now = this.#now();
    for (const job of [...this.#waiting.values()].flat()) if (now > job.until) this.#drop(job);
  }

  /** Rejects a waiting job. */
  #drop(job: Job): void {
    const others = this.#waitingOf(job.network).filter((other) => other !== job);
    if (others.length === 0) this.#waiting.delete(job.network);
    else this.#waiting.set(job.network, others);
    this.#jobs.delete(job.key);
    job.reject(overloaded());
  }

  #startMore(): void {
    while (this.#running < this.#runs) {
      const job = this.#takeNext();
      if (job === undefined) return;
      void this.#start(job);
    }
  }

  /** The oldest job of the network whose turn it is, which then goes to the end. */
  #takeNext(): Job | undefined {
    this.#dropLate();
    const [first] = this.#waiting;
    if (first === undefined) return undefined;
    const [network, [job, ...others]] = first;
    this.#waiting.delete(network);
    if (others.length > 0) this.#waiting.set(network, others);
    return job;
  }

  async #start(job: Job): Promise<void> {
    this.#running += 1;
    try {
      const isRight = await job.check();
      if (this.#now() > job.until) throw overloaded();
      job.resolve(isRight);
    } catch (error) {
      job.reject(error);
    }
    this.#jobs.delete(job.key);
    this.#running -= 1;
    this.#startMore();
  }

  #waitingOf(network: string): readonly Job[] {
    return this.#waiting.get(network) ?? [];
  }
}

let shared: PasswordQueue | undefined;

/** The queue of this process, for all lists of accounts: they share the processors. */
export function processQueue(): PasswordQueue {
  shared ??= new PasswordQueue();
  return shared;
}

function newJob(key: string, network: string, check: PasswordCheck, until: number): Job {
  let resolve: Job['resolve'] = () => {};
  let reject: Job['reject'] = () => {};
  const result = new Promise<boolean>((...settle) => {
    [resolve, reject] = settle;
  });
  return { key, network, check, result, resolve, reject, until };
}
