import { TokenError } from '../errors.ts';
import type { TokenStore } from '../store.ts';

/** One call of a store, on its way. */
export interface StoreCall {
  /** Which verb of the store. */
  readonly method: 'insert' | 'find' | 'page' | 'replace' | 'revoke' | 'revokeAll' | 'purge';
  /** What it was called with. */
  readonly args: readonly unknown[];
}

/** Stands between a caller and a store: carries the call out by `run`, never, once or several times. */
export type StoreFault = (call: StoreCall, run: () => Promise<unknown>) => Promise<unknown>;

/**
 * Wraps a store so that its calls meet with faults; the first one named is the outermost. What is
 * built on a store can be tested so, and a store itself: it has to pass `storeContract` with delays
 * and duplicates as well.
 *
 * @throws {TypeError} for what is no store
 * @example
 * const store = withFaults(new MemoryTokenStore(), faults.lostAnswer(({ method }) => method === 'revoke'));
 * const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
 * // tokens.revoke rejects with store_unavailable, and the token is revoked
 */
export function withFaults(store: TokenStore, ...chosen: readonly StoreFault[]): TokenStore {
  const carryOut = <Answer>(
    call: StoreCall,
    run: () => Promise<Answer>,
    [fault, ...rest] = chosen,
  ): Promise<Answer> => {
    if (fault === undefined) return run();
    return fault(call, () => carryOut(call, run, rest)) as Promise<Answer>;
  };
  const { watch, doctor, close } = store;
  return {
    insert: (...args) => carryOut({ method: 'insert', args }, () => store.insert(...args)),
    find: (...args) => carryOut({ method: 'find', args }, () => store.find(...args)),
    page: (...args) => carryOut({ method: 'page', args }, () => store.page(...args)),
    replace: (...args) => carryOut({ method: 'replace', args }, () => store.replace(...args)),
    revoke: (...args) => carryOut({ method: 'revoke', args }, () => store.revoke(...args)),
    revokeAll: (...args) => carryOut({ method: 'revokeAll', args }, () => store.revokeAll(...args)),
    purge: (...args) => carryOut({ method: 'purge', args }, () => store.purge(...args)),
    local: false,
    ...(watch !== undefined && { watch: watch.bind(store) }),
    ...(doctor !== undefined && { doctor: doctor.bind(store) }),
    ...(close !== undefined && { close: close.bind(store) }),
  };
}

const always = () => true;

/** Faults for {@link withFaults}. Each takes which calls it befalls; all when absent. */
export const faults = Object.freeze({
  /** The request and the answer each arrive some turns of the event loop later. */
  delay(turns: number, isHit: (call: StoreCall) => boolean = always): StoreFault {
    return async (call, run) => {
      if (!isHit(call)) return run();
      await pass(turns);
      const answer = await settled(run);
      await pass(turns);
      return answer();
    };
  },

  /** The store never sees the call; it rejects with `store_unavailable`. */
  lostRequest(isHit: (call: StoreCall) => boolean = always): StoreFault {
    return async (call, run) => {
      if (isHit(call)) throw unavailable();
      return run();
    };
  },

  /** The store carries the call out, and it rejects with `store_unavailable` all the same. */
  lostAnswer(isHit: (call: StoreCall) => boolean = always): StoreFault {
    return async (call, run) => {
      if (!isHit(call)) return run();
      await settled(run);
      throw unavailable();
    };
  },

  /**
   * The store gets the call a second time after it has answered, as from a driver or a proxy that
   * repeats; the first answer counts. Not `purge`, which does more when it is repeated.
   */
  duplicate(isHit: (call: StoreCall) => boolean = always): StoreFault {
    return async (call, run) => {
      const answer = await settled(run);
      if (call.method !== 'purge' && isHit(call)) await settled(run);
      return answer();
    };
  },

  /** The store is asked and nothing ever comes back. */
  hang(isHit: (call: StoreCall) => boolean = always): StoreFault {
    return (call, run) => (isHit(call) ? new Promise(() => {}) : run());
  },
});

/** Carries a call out, whatever comes of it, and gives that later. */
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
  return new TokenError('store_unavailable', 'a fault of the test');
}
