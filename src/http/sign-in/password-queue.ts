import { availableParallelism } from 'node:os';
import { PASSWORD_DEADLINE_MS } from '../../bounds.ts';
import { performance } from '../../time/timers.ts';
import { overloaded } from '../errors.ts';

/** Passwords that a process checks or keeps waiting. @bound */
export const MAX_PASSWORD_CHECKS = 64;

/** Hashes of passwords that a process computes concurrently. @bound */
export const MAX_HASHES = 4;

/** Hashes a password and resolves to whether it is right. */
export type PasswordCheck = () => Promise<boolean>;

/** Who waits for a check. */
export interface Signer {
  /** Of the caller; empty if unknown. */
  readonly network: string;
  readonly username: string;
  /** Whether this user has signed in from this network before. */
  readonly isKnown: boolean;
}

interface Job extends Signer {
  readonly key: string;
  /** Those who take turns: the network, and the user in it. */
  readonly parties: readonly string[];
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
 * Addresses take turns, and so do the users of one address: one with many checks delays the only check of
 * another by one turn. Every second turn goes to users who have signed in from their address before, if
 * any wait. So guesses for made-up users hold them up least of all.
 *
 * When the queue is full, the address with the most checks loses its newest one to a caller with fewer, and
 * an unknown user loses one to a known one. A check that finds no room rejects with `overloaded`, before
 * anything is hashed for it.
 */
export class PasswordQueue {
  readonly #runs: number;
  readonly #now: () => number;
  #running = 0;
  /** Running and waiting jobs, by key. */
  readonly #jobs = new Map<string, Job>();
  /** Waiting jobs, the oldest first. There are so few that going through them costs nothing. */
  #waiting: readonly Job[] = [];
  /** The last turn of each network, and of each user of one, that has waiting jobs. */
  #turns: ReadonlyMap<string, number> = new Map();
  #turn = 0;

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
   */
  run(key: string, signer: Signer, check: PasswordCheck): Promise<boolean> {
    const until = this.#now() + PASSWORD_DEADLINE_MS;
    const same = this.#jobs.get(key);
    if (same !== undefined) {
      same.until = until;
      return same.result;
    }
    if (!this.#hasRoom(signer)) return Promise.reject(overloaded());
    const job = newJob({ ...signer, key, check, until });
    this.#jobs.set(key, job);
    this.#setWaiting([...this.#waiting, job]);
    this.#startMore();
    return job.result;
  }

  #hasRoom(signer: Signer): boolean {
    if (this.#jobs.size < MAX_PASSWORD_CHECKS) return true;
    this.#dropLate();
    return this.#jobs.size < MAX_PASSWORD_CHECKS || this.#displace(signer);
  }

  /**
   * Drops the newest check of the address with the most, if that then still has as many as this one. So
   * two addresses never displace each other in turn. A known user displaces an unknown one in any case.
   */
  #displace({ network, isKnown }: Signer): boolean {
    const counts = new Map<string, number>();
    for (const job of this.#waiting) counts.set(job.network, (counts.get(job.network) ?? 0) + 1);
    const weightOf = (of: string) => counts.get(of) ?? 0;
    const newestFirst = this.#waiting.toReversed();
    const heaviest = mostBy(newestFirst, (job) => [weightOf(job.network), Number(!job.isKnown)]);
    const isHeavier = heaviest && weightOf(network) + 1 < weightOf(heaviest.network);
    const unknown = isKnown ? newestFirst.filter((job) => !job.isKnown) : [];
    const dropped = isHeavier ? heaviest : mostBy(unknown, (job) => [weightOf(job.network)]);
    if (dropped === undefined) return false;
    this.#drop(dropped);
    return true;
  }

  #dropLate(): void {
    const now = this.#now();
    for (const job of this.#waiting) if (now > job.until) this.#drop(job);
  }

  /** Rejects a waiting job. */
  #drop(job: Job): void {
    this.#setWaiting(this.#waiting.filter((other) => other !== job));
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

  #takeNext(): Job | undefined {
    this.#dropLate();
    const known = this.#waiting.filter(({ isKnown }) => isKnown);
    const isTurnOfKnown = this.#turn % 2 === 0 && known.length > 0;
    // The one whose network, and whose user, has waited longest. Of several, the oldest.
    const next = mostBy(isTurnOfKnown ? known : this.#waiting, (job) =>
      job.parties.map((party) => -(this.#turns.get(party) ?? 0)),
    );
    if (next === undefined) return undefined;
    this.#turn += 1;
    const turns = new Map(this.#turns);
    for (const party of next.parties) turns.set(party, this.#turn);
    this.#turns = turns;
    this.#setWaiting(this.#waiting.filter((job) => job !== next));
    return next;
  }

  /** Also forgets the turns of those who no longer wait. Those who begin to wait come after all others. */
  #setWaiting(waiting: readonly Job[]): void {
    this.#waiting = waiting;
    const parties = new Set(waiting.flatMap((job) => job.parties));
    this.#turns = new Map(
      [...parties].map((party) => [party, this.#turns.get(party) ?? this.#turn]),
    );
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
}

let shared: PasswordQueue | undefined;

/** The queue of this process, for all lists of accounts: they share the processors. */
export function processQueue(): PasswordQueue {
  shared ??= new PasswordQueue();
  return shared;
}

function newJob(given: Pick<Job, keyof Signer | 'key' | 'check' | 'until'>): Job {
  let resolve: Job['resolve'] = () => {};
  let reject: Job['reject'] = () => {};
  const result = new Promise<boolean>((...settle) => {
    [resolve, reject] = settle;
  });
  const { network, username } = given;
  const parties = [[network], [network, username]].map((party) => JSON.stringify(party));
  return { ...given, parties, result, resolve, reject };
}

/** The job with the highest rank; of several, the first one. */
function mostBy(jobs: readonly Job[], rankOf: (job: Job) => readonly number[]): Job | undefined {
  const [first, ...others] = jobs.map((job) => ({ job, rank: rankOf(job) }));
  return others.reduce((most, other) => (isHigher(other.rank, most?.rank) ? other : most), first)
    ?.job;
}

function isHigher(rank: readonly number[], other: readonly number[] = []): boolean {
  const place = rank.findIndex((number, i) => number !== other[i]);
  return place !== -1 && (rank[place] ?? 0) > (other[place] ?? 0);
}
