import { PURGE_BATCH } from './bounds.ts';
import { TokenError } from './errors.ts';
import type { PurgeInput } from './input.ts';
import type { ServiceParts } from './parts.ts';
import { inBatches } from './records/batches.ts';
import { purgeInput, readInput } from './schemas.ts';
import type { KeyOptions } from './values/keys.ts';

/** Counts of one service since it was made. Other processes have their own. */
export interface ServiceStats {
  /** How verifications got their records; both are 0 without the option `cache`. */
  readonly cache: {
    /** From memory. */
    readonly hits: number;
    /** From the store. */
    readonly misses: number;
  };
  /** Counts of usage that are not written yet; absent if usage is not recorded. */
  readonly usage?: {
    /** Pairs of a token and a scope, and tokens with refusals. */
    readonly waiting: number;
    /** For how long at most they have waited, in milliseconds. */
    readonly lagMs: number;
  };
}

/**
 * The methods of a {@link TokenService} that concern all accounts: you call them from a cron job or a
 * console, never on behalf of one account.
 *
 * @example
 * const removeOld = (tokens: TokenUpkeep) =>
 *   tokens.purge({ before: new Date(Date.now() - 90 * 86_400_000) });
 */
export abstract class TokenUpkeep {
  readonly #parts: ServiceParts;

  /** @internal */
  constructor(parts: ServiceParts) {
    this.#parts = parts;
  }

  /**
   * Removes records that expired or were revoked before an instant, in batches of a thousand. Can be
   * stopped and called again at any time.
   *
   * @returns how many records were removed
   * @throws {TokenError} `invalid_request` if `before` is later than now; `store_unavailable`: some
   * records may be removed then
   * @example
   * const before = new Date(Date.now() - 90 * 86_400_000);
   * console.log(await tokens.purge({ before, limit: 10_000 })); // 417
   */
  async purge(input: PurgeInput): Promise<number> {
    const now = this.#parts.now();
    const { events, records } = this.#parts;
    const { before, limit } = readInput(purgeInput, input);
    if (before.getTime() > now) {
      throw new TokenError('invalid_request', 'before must not be later than now');
    }
    const remove = (most: number) => records.purgeSome(before, most);
    const onEnd = (count: number) => events.purged(count, now);
    return inBatches(remove, { size: PURGE_BATCH, limit, onEnd });
  }

  /**
   * Returns counts of this service for your metrics. Costs nothing and does not call the store. The
   * option `onEvent` reports everything else.
   *
   * @example
   * const { hits, misses } = tokens.stats().cache;
   */
  stats(): ServiceStats {
    const { reader, view } = this.#parts;
    const waiting = view.usage?.waiting;
    return Object.freeze({
      cache: Object.freeze(reader.cacheReads),
      ...(waiting && {
        usage: Object.freeze({ waiting: waiting.counts, lagMs: waiting.longestMs }),
      }),
    });
  }

  /**
   * Returns the keys for a service that only verifies: they can check values, but not reveal or mint
   * them. Treat them as secrets: they tell real values from lookalikes.
   *
   * @example
   * const resourceServer = new TokenService({ store, keys: tokens.verifierKeys(), prefix: 'acme' });
   */
  verifierKeys(): KeyOptions[] {
    return this.#parts.ring.verifierKeys();
  }

  /**
   * Stops listening to the store and closes it. Before that, writes the usage that was counted, and the
   * first uses of new values.
   *
   * @throws {TokenError} `store_unavailable` if the store does not close
   * @example
   * await tokens.close();
   */
  async close(): Promise<void> {
    const { rotations, view, records } = this.#parts;
    try {
      await rotations.settled();
      await view.usage?.close();
    } finally {
      await records.close();
    }
  }
}
