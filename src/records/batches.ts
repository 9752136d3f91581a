import { isTokenError, TokenError } from '../errors.ts';
import { notify } from '../events.ts';
import { nextTurn } from '../time/deadline.ts';
import { performance } from '../time/timers.ts';

const MAX_HALVINGS = 3;

/** How a change of many records is carried out. */
export interface BatchOptions {
  /** The most records of one call of the store. */
  readonly size: number;
  /** The most records in all. @default no limit */
  readonly limit?: number | undefined;
  /**
   * A batch that fails with `store_unavailable` after so many milliseconds or more, when others have
   * succeeded before, was too large for a busy store: it is halved and tried again, three times at most.
   * @default never
   */
  readonly slowMs?: number | undefined;
  /** Waited for between two batches. @default a turn of the event loop */
  readonly between?: (() => Promise<void>) | undefined;
  /** Called after each batch but the last one, with the count so far. */
  readonly onProgress?: ((count: number) => void) | undefined;
  /** Called at the end with the count, also after a failure that left some records changed. */
  readonly onEnd?: ((count: number) => void) | undefined;
}

/**
 * Changes many records in batches, so that neither the event loop nor the store is held for long. Ends
 * when a batch was not full.
 *
 * @throws {TokenError} the failure of a batch, with `details.count`: the records of the batches before
 */
export async function inBatches(
  change: (limit: number) => Promise<number>,
  { size, limit = Number.POSITIVE_INFINITY, slowMs, ...options }: BatchOptions,
): Promise<number> {
  const { between = nextTurn, onProgress, onEnd } = options;
  const smallest = size / 2 ** MAX_HALVINGS;
  let batch = size;
  let count = 0;
  try {
    while (count < limit) {
      const most = Math.min(batch, limit - count);
      const start = performance.now();
      const changed = await change(most).catch((error: unknown) => {
        const isSlow = slowMs !== undefined && performance.now() - start >= slowMs;
        const canHalve = count > 0 && batch > smallest && isSlow && isOutage(error);
        if (canHalve) batch = Math.ceil(batch / 2);
        else throw error;
      });
      if (changed === undefined) continue;
      count += changed;
      if (changed < most) break;
      if (onProgress !== undefined) notify(onProgress, count);
      await between();
    }
  } catch (error) {
    if (count > 0) onEnd?.(count);
    if (!isTokenError(error)) throw error;
    throw new TokenError(error.code, error.message, { ...error.details, count });
  }
  onEnd?.(count);
  return count;
}

function isOutage(error: unknown): boolean {
  return isTokenError(error) && error.code === 'store_unavailable';
}
