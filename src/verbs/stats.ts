import type { ServiceParts } from './parts.ts';

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

/** Returns the counts of a service. */
export function stats({ reader, view }: Pick<ServiceParts, 'reader' | 'view'>): ServiceStats {
  const waiting = view.usage?.waiting;
  return Object.freeze({
    cache: Object.freeze(reader.cacheReads),
    ...(waiting && {
      usage: Object.freeze({ waiting: waiting.counts, lagMs: waiting.longestMs }),
    }),
  });
}
