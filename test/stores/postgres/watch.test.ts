import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { isTokenError } from '../../../src/errors.ts';
import type {
  PostgresClient,
  PostgresNotification,
  PostgresPool,
} from '../../../src/stores/postgres/client.ts';
import { PostgresTokenStore } from '../../../src/stores/postgres/index.ts';

/** A pool whose notifications arrive, or get lost as behind a pooler in transaction mode. */
class HearingPool implements PostgresPool {
  readonly idleCount = 0;
  readonly ending = false;
  readonly options = { max: 2 };
  hears = true;
  notes = 0;
  connections = 0;
  readonly #listeners = new Set<(message: PostgresNotification) => void>();

  on(): void {}

  listenerCount(): number {
    return 1;
  }

  async query({ values = [] }: { readonly values?: readonly unknown[] }) {
    const [channel, payloads] = values as [string, readonly string[]];
    this.notes += payloads.length;
    if (!this.hears) return { rows: [] };
    for (const payload of payloads) {
      for (const listener of this.#listeners) listener({ channel, payload });
    }
    return { rows: [] };
  }

  async connect(): Promise<PostgresClient> {
    this.connections += 1;
    const own: ((message: PostgresNotification) => void)[] = [];
    return {
      query: async () => ({ rows: [] }),
      on: (event: string, listener: (message: PostgresNotification) => void) => {
        if (event !== 'notification') return;
        own.push(listener);
        this.#listeners.add(listener);
      },
      release: () => {
        for (const listener of own) this.#listeners.delete(listener);
      },
    };
  }
}

describe('a watch of PostgreSQL that has begun', () => {
  beforeEach(() => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
  });

  /** Begins to watch, and collects in order what the store calls. */
  async function watching() {
    const pool = new HearingPool();
    const store = new PostgresTokenStore(pool);
    const calls: unknown[] = [];
    await store.watch(
      (ids) => calls.push(ids),
      (failure) => calls.push(isTokenError(failure) ? failure.details?.['reason'] : 'heard again'),
    );
    onTestFinished(() => store.close());
    return { pool, calls };
  }

  it('sends itself a note every 30 seconds, and says nothing while it hears them', async () => {
    const { pool, calls } = await watching();
    expect(pool.notes).toBe(3);

    await vi.advanceTimersByTimeAsync(29_000);
    expect(pool.notes).toBe(3);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(pool.notes).toBe(4);
    await vi.advanceTimersByTimeAsync(600_000);

    expect(pool.notes).toBeGreaterThan(20);
    expect(pool.connections).toBe(1);
    expect(calls).toEqual([]);
  });

  it('reports pooler, evicts all and listens again if a note stays unheard', async () => {
    const { pool, calls } = await watching();
    pool.hears = false;
    await vi.advanceTimersByTimeAsync(30_000);
    expect(calls).toEqual([]);

    await vi.advanceTimersByTimeAsync(2_000);
    expect(calls).toEqual(['pooler', 'all']);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(calls).toEqual(['pooler', 'all', 'pooler']);
    expect(pool.connections).toBe(2);

    // Then once a minute.
    await vi.advanceTimersByTimeAsync(57_000);
    expect(pool.connections).toBe(2);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(calls).toEqual(['pooler', 'all', 'pooler', 'pooler']);
    expect(pool.connections).toBe(3);

    pool.hears = true;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(calls.slice(4)).toEqual(['heard again', 'all']);
  });

  it('goes on after an error of the functions that it calls', async () => {
    const pool = new HearingPool();
    const store = new PostgresTokenStore(pool);
    onTestFinished(() => store.close());
    const calls: unknown[] = [];
    const failing = (given: unknown) => {
      calls.push(given);
      throw new Error('a fault of the host');
    };
    await store.watch(failing, failing);
    pool.hears = false;
    await vi.advanceTimersByTimeAsync(32_000);
    pool.hears = true;
    await vi.advanceTimersByTimeAsync(63_000);

    expect(calls.slice(-2)).toEqual([undefined, 'all']);
  });

  it('says nothing about itself if a note could not be sent', async () => {
    const { pool, calls } = await watching();
    const sending = vi.spyOn(pool, 'query').mockRejectedValue(new Error('no connection'));
    await vi.advanceTimersByTimeAsync(40_000);

    expect(sending).toHaveBeenCalledTimes(1);
    expect(pool.connections).toBe(1);
    expect(calls).toEqual([]);
  });
});
