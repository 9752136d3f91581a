import { DeadlineError } from '../errors.ts';
import { clearTimeout, performance, setImmediate, setTimeout } from './timers.ts';

/** Waits for a promise for a limited time, then rejects with `late`. */
export function withDeadline<Result>(
  promise: PromiseLike<Result>,
  deadlineMs: number,
  late: () => Error = () => new DeadlineError(),
): Promise<Result> {
  // Hot path: Promise.race would create two more promises.
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), deadlineMs);
    Promise.resolve(promise).then(
      (result) => {
        clearTimeout(timer);
        resolve(result);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}

/** Yields to the event loop: other callbacks run first. */
export function nextTurn(): Promise<void> {
  return new Promise(setImmediate);
}

/**
 * Spaces out work that cannot be divided: each piece has a turn of its own, and a few turns follow in which
 * all other calls go on.
 */
export class SpacedTurns {
  #last: Promise<void> = Promise.resolve();

  wait(): Promise<void> {
    this.#last = this.#last.then(async () => {
      for (let turn = 0; turn < SPACING_TURNS; turn += 1) await nextTurn();
    });
    return this.#last;
  }
}

/** As many as a call needs that reads one record. */
const SPACING_TURNS = 4;

/** Does work in steps, as many in each turn of the event loop as fit into a few milliseconds. */
export async function inTurns<Result>(steps: Generator<void, Result>): Promise<Result> {
  const turns = new Turns(STEPS_MS);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    if (turns.isOver) await turns.next();
  }
}

/** One step, such as compiling a list of 4096 scopes, may take another ten. */
const STEPS_MS = 5;

/**
 * Divides long work into turns of the event loop, each of a few milliseconds. Calls that share one take
 * turns, so that all of them together hold the event loop no longer than one.
 */
export class Turns {
  readonly #turnMs: number;
  #since = performance.now();
  #last: Promise<void> = Promise.resolve();

  constructor(turnMs: number) {
    this.#turnMs = turnMs;
  }

  /** Whether this turn has taken its time, so that it should end. */
  get isOver(): boolean {
    return performance.now() - this.#since >= this.#turnMs;
  }

  /** Yields to the event loop, then begins the next turn. */
  async next(): Promise<void> {
    this.#last = this.#last.then(nextTurn);
    await this.#last;
    this.#since = performance.now();
  }
}
