/** Waits for a promise for a limited time, then rejects with `late`. */
export function withDeadline<Result>(
  promise: PromiseLike<Result>,
  deadlineMs: number,
  late: () => Error = () => new Error('deadline'),
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

/** Lets others have a turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise(setImmediate);
}

/** Shares out long work in turns of the event loop, each of some milliseconds. */
export class Turns {
  readonly #turnMs: number;
  #since = performance.now();

  constructor(turnMs: number) {
    this.#turnMs = turnMs;
  }

  /** Whether others should have a turn now. */
  get isOver(): boolean {
    return performance.now() - this.#since >= this.#turnMs;
  }

  /** Lets others have a turn, then begins the next. */
  async next(): Promise<void> {
    await nextTurn();
    this.#since = performance.now();
  }
}
