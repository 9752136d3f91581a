import { storeUnavailable, type TokenError } from '../errors.ts';
import type { EngineStore } from '../ports/engine-store.ts';
import type { ScanQuery, TokenStore } from '../ports/token-store.ts';
import { setImmediate } from '../time/timers.ts';

/** One call of a store. */
export interface StoreCall {
  /** The method that is called. */
  readonly method:
    | 'insert'
    | 'count'
    | 'find'
    | 'page'
    | 'replace'
    | 'revoke'
    | 'revokeAll'
    | 'purge'
    | 'prune'
    | 'hasReached'
    | 'scan';
  /** Its arguments. */
  readonly args: readonly unknown[];
}

/** Intercepts a call of a store. `run` carries it out; call it never, once or several times. */
export type StoreFault = (call: StoreCall, run: () => Promise<unknown>) => Promise<unknown>;

/**
 * Wraps a store with faults, the outermost first. Use it to test code that uses a store, or the store
 * itself: it must pass `storeContract` with delays and duplicates, too. The faults are those of tokens:
 * `usage`, `leases` and `requests` of a store that has them stay as they are.
 *
 * @throws {TypeError} when `store` is null or undefined
 * @example
 * const store = withFaults(new MemoryTokenStore(), faults.lostAnswer(({ method }) => method === 'revoke'));
 * const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
 * // tokens.revoke rejects with store_unavailable, and the token is revoked
 */
export function withFaults(store: EngineStore, ...chosen: readonly StoreFault[]): EngineStore;
export function withFaults(store: TokenStore, ...chosen: readonly StoreFault[]): TokenStore;
export function withFaults(
  store: TokenStore & Partial<EngineStore>,
  ...chosen: readonly StoreFault[]
): TokenStore {
  const carryOut = <Answer>(
    call: StoreCall,
    run: () => Promise<Answer>,
    [fault, ...rest] = chosen,
  ): Promise<Answer> => {
    if (fault === undefined) return run();
    return fault(call, () => carryOut(call, run, rest)) as Promise<Answer>;
  };
  const { hasReached, scan, watch, doctor, close, usage, leases, requests } = store;
  return {
    insert: (...args) => carryOut({ method: 'insert', args }, () => store.insert(...args)),
    count: (...args) => carryOut({ method: 'count', args }, () => store.count(...args)),
    find: (...args) => carryOut({ method: 'find', args }, () => store.find(...args)),
    page: (...args) => carryOut({ method: 'page', args }, () => store.page(...args)),
    replace: (...args) => carryOut({ method: 'replace', args }, () => store.replace(...args)),
    revoke: (...args) => carryOut({ method: 'revoke', args }, () => store.revoke(...args)),
    revokeAll: (...args) => carryOut({ method: 'revokeAll', args }, () => store.revokeAll(...args)),
    purge: (...args) => carryOut({ method: 'purge', args }, () => store.purge(...args)),
    prune: (...args) => carryOut({ method: 'prune', args }, () => store.prune(...args)),
    local: false,
    ...(hasReached !== undefined && {
      hasReached: (...args: Parameters<typeof hasReached>) =>
        carryOut({ method: 'hasReached', args }, () => hasReached.apply(store, args)),
    }),
    ...(scan !== undefined && {
      scan: (query: ScanQuery) =>
        carryOut({ method: 'scan', args: [query] }, () => scan.call(store, query)),
    }),
    ...(watch !== undefined && { watch: watch.bind(store) }),
    ...(doctor !== undefined && { doctor: doctor.bind(store) }),
    ...(close !== undefined && { close: close.bind(store) }),
    ...(usage !== undefined && { usage }),
    ...(leases !== undefined && { leases }),
    ...(requests !== undefined && { requests }),
  };
}

const always = () => true;

/** Methods that change at most so many records: each call changes others. */
const BOUNDED: ReadonlySet<StoreCall['method']> = new Set(['revokeAll', 'purge', 'prune']);

/** Faults for {@link withFaults}. Each takes a function that selects the affected calls; default all. */
export const faults = Object.freeze({
  /** Delays the request and the answer, each by some turns of the event loop. */
  delay(turns: number, isHit: (call: StoreCall) => boolean = always): StoreFault {
    return async (call, run) => {
      if (!isHit(call)) return run();
      await pass(turns);
      const answer = await settled(run);
      await pass(turns);
      return answer();
    };
  },

  /** Rejects with `store_unavailable`; the store never gets the call. */
  lostRequest(isHit: (call: StoreCall) => boolean = always): StoreFault {
    return async (call, run) => {
      if (isHit(call)) throw unavailable();
      return run();
    };
  },

  /** Rejects with `store_unavailable` after the store has carried out the call. */
  lostAnswer(isHit: (call: StoreCall) => boolean = always): StoreFault {
    return async (call, run) => {
      if (!isHit(call)) return run();
      await settled(run);
      throw unavailable();
    };
  },

  /**
   * Repeats the call after the store has answered, like a driver or a proxy that retries; the first
   * answer counts. Does not repeat `revokeAll`, `purge` and `prune`, which would change more
   * records.
   */
  duplicate(isHit: (call: StoreCall) => boolean = always): StoreFault {
    return async (call, run) => {
      const answer = await settled(run);
      if (!BOUNDED.has(call.method) && isHit(call)) await settled(run);
      return answer();
    };
  },

  /** Never calls the store and never settles. */
  hang(isHit: (call: StoreCall) => boolean = always): StoreFault {
    return (call, run) => (isHit(call) ? new Promise(() => {}) : run());
  },
});

/** Waits until a call settles, and returns a function that returns or throws its outcome. */
async function settled(run: () => Promise<unknown>): Promise<() => unknown> {
  try {
    const answer = await run();
    return () => answer;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

async function pass(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}

function unavailable(): TokenError {
  return storeUnavailable('unreachable');
}
