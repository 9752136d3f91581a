import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Events } from '../../src/events.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import type { TokenId } from '../../src/token/record.ts';
import { UsageRecorder } from '../../src/usage/recorder.ts';
import { Tally } from '../../src/usage/tally.ts';
import { NEAR_LINEAR, slopeOf } from '../growth.ts';
import { SCOPE } from '../support.ts';
import { FLUSH_MS, turns } from './support.ts';

vi.mock('../../src/time/timers.ts', () => import('../live-timers.ts'));

const PER_SECOND = 10_000;
/** Long enough for the tally to fill up and for its map to reach the final size. */
const FIRST_SECONDS = 60;
/** `OUTAGE_SECONDS=3600 npm run vitest -- test/usage/growth.test.ts` makes the outage last an hour. */
const OUTAGE_SECONDS = Math.max(2 * FIRST_SECONDS, Number(process.env['OUTAGE_SECONDS']) || 0);
const TIMEOUT_MS = 60_000 + OUTAGE_SECONDS * 100;
const MAX_ENTRIES = 100_000;
/** Three times as many as can wait, so that no use is of a token that still has a waiting count. */
const IDS = Array.from({ length: 3 * MAX_ENTRIES }, (_, i) => `${i}`.padStart(22, '0') as TokenId);
const BOUND_BYTES = 10 * 1_048_576;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

async function inUse(): Promise<number> {
  for (let turn = 0; turn < 5; turn += 1) {
    collect();
    await turns(1);
  }
  return process.memoryUsage().heapUsed;
}

describe('minutes without the usage store, at 10 000 verifications a second', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it(
    'need no more memory than the first minute, and account for each count',
    async () => {
      const store = new MemoryTokenStore().usage;
      const add = vi.spyOn(store, 'add').mockRejectedValue(new Error('down'));
      let dropped = 0;
      const events = new Events(
        (event) => {
          if (event.type === 'usage_dropped') dropped += event.count;
        },
        () => 0,
      );
      const recorder = new UsageRecorder({
        store,
        flushMs: FLUSH_MS,
        deadlineMs: 2000,
        events,
        now: () => 0,
      });
      const passSeconds = async (from: number, to: number) => {
        for (let second = from; second < to; second += 1) {
          for (let use = second * PER_SECOND; use < (second + 1) * PER_SECOND; use += 1) {
            recorder.used(IDS[use % IDS.length] as TokenId, SCOPE, use);
          }
          vi.advanceTimersByTime(1000);
          await turns(3);
        }
        add.mockClear();
      };
      await passSeconds(0, FIRST_SECONDS);
      const before = await inUse();
      await passSeconds(FIRST_SECONDS, OUTAGE_SECONDS);

      expect((await inUse()) - before).toBeLessThan(BOUND_BYTES);
      add.mockRestore();
      await recorder.close();
      const stored = (await store.read(IDS)).filter((usage) => usage !== undefined);
      expect(stored).toHaveLength(MAX_ENTRIES);
      expect(dropped + stored.length).toBe(OUTAGE_SECONDS * PER_SECOND);
    },
    TIMEOUT_MS,
  );

  it('would need more memory if no counts were dropped (the control)', async () => {
    const tally = new Tally(Number.POSITIVE_INFINITY);
    const count = (from: number, to: number) => {
      for (const id of IDS.slice(from, to)) tally.add(id, SCOPE, 0);
    };
    count(0, MAX_ENTRIES);
    const before = await inUse();
    count(MAX_ENTRIES, IDS.length);

    expect((await inUse()) - before).toBeGreaterThan(BOUND_BYTES);
    expect(tally.size).toBe(IDS.length);
  });
});

it('a count that makes the tally drop another one costs the same, however many are waiting', () => {
  // Enough counts for freed slots to be used again, because a single count may be cheap.
  const slope = slopeOf(
    (size) => {
      const tally = new Tally(size);
      let next = 0;
      const countAll = () => {
        for (const end = next + 3 * size; next < end; next += 1) {
          tally.add(IDS[next % IDS.length] as TokenId, SCOPE, 0);
        }
      };
      countAll();
      return countAll;
    },
    [1250, 2500, 5000, 10_000],
    NEAR_LINEAR,
  );

  expect(slope).toBeLessThan(NEAR_LINEAR);
});
