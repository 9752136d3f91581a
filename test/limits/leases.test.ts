import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CheckedLeaseStore } from '../../src/limits/checked-lease-store.ts';
import { Leases } from '../../src/limits/leases.ts';
import type { TokenId, TokenLimits, TokenRecord } from '../../src/token.ts';
import { RecordingLeases } from './support.ts';

const START = Date.UTC(2100, 0, 1);
const ID = 'A'.repeat(22) as TokenId;

function recordWith(limits: TokenLimits, version = 1): TokenRecord {
  return {
    id: ID,
    account: 'ada',
    prefix: 'acme',
    kid: 'k1',
    digest: new Uint8Array(32),
    scopes: ['GET:shop.example/orders'],
    requested: ['GET:shop.example/orders'],
    createdAt: new Date(START),
    expiresAt: new Date(START + 86_400_000),
    version,
    limits,
  };
}

/** One process, on a store and a clock that several may share. */
function nodeOn(inner: RecordingLeases, time: { now: number }, deadlineMs = 1000): Leases {
  const store = new CheckedLeaseStore(inner, { deadlineMs, onFailure: () => {} });
  return new Leases({ store, deadlineMs, now: () => time.now });
}

function setUp() {
  const store = new RecordingLeases();
  const time = { now: START };
  return { store, time, leases: nodeOn(store, time) };
}

/** Spends uses one after the other, with so many milliseconds between them; how many there were. */
async function spend(
  { leases, time }: Pick<ReturnType<typeof setUp>, 'leases' | 'time'>,
  record: TokenRecord,
  { tries, everyMs = 0 }: { readonly tries: number; readonly everyMs?: number },
): Promise<number> {
  let spent = 0;
  for (let i = 0; i < tries; i++) {
    const now = leases.spend([record], time.now) ?? (await leases.spendLater([record]));
    spent += Number(now === true);
    time.now += everyMs;
    // What is fetched in the background arrives.
    await new Promise(setImmediate);
  }
  return spent;
}

function wantsOf({ takes }: RecordingLeases): number[] {
  return takes.flat().map(({ want }) => want);
}

describe('a lease', () => {
  it('begins with one use and doubles while it is used up quickly, to a sixteenth', async () => {
    const setting = setUp();
    await spend(setting, recordWith({ uses: 320 }), { tries: 100 });

    expect(wantsOf(setting.store).slice(0, 7)).toEqual([1, 2, 4, 8, 16, 20, 20]);
  });

  it('is at most 1000 uses', async () => {
    const setting = setUp();
    await spend(setting, recordWith({ uses: 1_000_000 }), { tries: 5000 });

    expect(Math.max(...wantsOf(setting.store))).toBe(1000);
  });

  it('stays at one use for a token that is used now and then, and fetches nothing ahead', async () => {
    const setting = setUp();
    await spend(setting, recordWith({ uses: 1000 }), { tries: 10, everyMs: 60_000 });

    expect(wantsOf(setting.store)).toEqual(Array(10).fill(1));
    expect(setting.store.taken).toBe(10);
  });

  it('becomes one use again when it lasts long', async () => {
    const setting = setUp();
    const record = recordWith({ uses: 1000 });
    await spend(setting, record, { tries: 30 });
    const inHand = setting.store.taken - 30;
    setting.time.now += 60_000;

    await spend(setting, record, { tries: inHand + 1, everyMs: 60_000 });

    expect(wantsOf(setting.store).at(-1)).toBe(1);
  });

  it('is fetched before the last one is used up, so that nobody waits', async () => {
    const setting = setUp();
    const record = recordWith({ uses: 100_000 });
    await spend(setting, record, { tries: 20 });

    for (let i = 0; i < 1000; i++) {
      expect(setting.leases.spend([record], setting.time.now)).toBe(true);
      await new Promise(setImmediate);
    }
  });

  it.each([1, 4, 8])(
    'costs at most one call of the store for 100 uses, of 10 000 a second in %i processes',
    async (count) => {
      const { store, time } = setUp();
      let calls = 0;
      store.fault = () => {
        calls += 1;
      };
      const nodes = Array.from({ length: count }, () => nodeOn(store, time));
      const record = recordWith({ rate: { uses: 100_000, seconds: 1 } });
      let spent = 0;
      for (let i = 0; i < 20_000; i++) {
        const leases = nodes[i % count] as Leases;
        spent += await spend({ leases, time }, record, { tries: 1, everyMs: 0.1 });
      }
      await Promise.all(nodes.map((node) => node.close()));

      expect(spent).toBe(20_000);
      expect(calls).toBeLessThanOrEqual(200);
    },
  );

  it('is fetched for all who wait in one call', async () => {
    const { store, leases } = setUp();
    const record = recordWith({ uses: 10_000 });

    const spent = await Promise.all(Array.from({ length: 64 }, () => leases.spendLater([record])));

    expect(spent.every((one) => one === true)).toBe(true);
    expect(wantsOf(store)[0]).toBe(64);
  });

  it('of several limits is fetched in one call', async () => {
    const { store, leases } = setUp();
    await leases.spendLater([recordWith({ uses: 9, rate: { uses: 9, seconds: 60 } })]);

    expect(store.takes).toHaveLength(1);
    expect(store.takes[0]).toHaveLength(2);
  });

  it('that nobody needs goes back, and one that is in use does not', async () => {
    const setting = setUp();
    const { leases, store } = setting;
    const record = recordWith({ uses: 1000 });
    await spend(setting, record, { tries: 20 });
    const before = store.taken;

    leases.giveBackIdle();
    expect(store.taken).toBe(before);
    await spend(setting, record, { tries: 1 });
    leases.giveBackIdle();
    await new Promise(setImmediate);
    expect(store.taken).toBeGreaterThan(21);
    leases.giveBackIdle();
    await new Promise(setImmediate);
    expect(store.taken).toBe(21);
  });

  it('goes back at the end, also one that is on its way, and nothing is spent after that', async () => {
    const setting = setUp();
    const { leases, store } = setting;
    const record = recordWith({ uses: 1000 });
    await spend(setting, record, { tries: 20 });
    const waiting = leases.spendLater([
      recordWith({ uses: 1000, rate: { uses: 5, seconds: 1 } }, 2),
    ]);
    const outcome = waiting.then(
      () => 1,
      () => 0,
    );
    await leases.close();

    expect(store.taken).toBe(20 + 2 * (await outcome));
    await expect(leases.spendLater([record])).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  it('whose answer is lost is lost, and never spent twice', async () => {
    const setting = setUp();
    const { store, leases } = setting;
    const record = recordWith({ uses: 3 });
    const take = store.take.bind(store);
    store.take = async (wants) => {
      await take(wants);
      throw new Error('lost');
    };
    await expect(leases.spendLater([record])).rejects.toMatchObject({ code: 'store_unavailable' });
    store.take = take;

    expect(await spend(setting, record, { tries: 10 })).toBe(2);
  });

  it('of a limit without a use is asked for once in a second, and then again', async () => {
    const setting = setUp();
    const { store, time } = setting;
    const record = recordWith({ uses: 2 });
    await spend(setting, record, { tries: 10 });
    const { length } = store.takes;

    await spend(setting, record, { tries: 100 });
    expect(store.takes).toHaveLength(length);
    await store.giveBack([{ key: `${ID}/uses`, window: 0, amount: 1 }]);
    time.now += 1000;
    expect(await spend(setting, record, { tries: 10 })).toBe(1);
  });

  it('belongs to the newest version that was seen', async () => {
    const setting = setUp();
    const [old, next] = [recordWith({ uses: 1000 }), recordWith({ uses: 5 }, 2)];
    await spend(setting, old, { tries: 3 });
    await spend(setting, next, { tries: 1 });

    // Read before the change, and judged after it.
    expect(await spend(setting, old, { tries: 10 })).toBe(1);
  });

  it('is asked for until the token can have ended, and a year longer', async () => {
    const setting = setUp();
    const record = recordWith({ uses: 5, rate: { uses: 5, seconds: 60 } });
    await spend(setting, record, { tries: 1 });

    const [total, rate] = setting.store.takes[0] ?? [];
    expect(total?.until).toEqual(new Date(record.expiresAt.getTime() + 31_536_000_000));
    expect(rate?.until).toEqual(new Date(START + 60_000));
  });
});

describe('several processes', () => {
  /** What happens next: a node spends, is killed, closes or looks for what is idle, or time goes on. */
  const step = fc.oneof(
    {
      weight: 20,
      arbitrary: fc.record({ node: fc.nat(3), spends: fc.integer({ min: 1, max: 30 }) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ node: fc.nat(3), ends: fc.constantFrom('kill', 'close') }),
    },
    { weight: 1, arbitrary: fc.record({ node: fc.nat(3), idle: fc.constant(true) }) },
    { weight: 2, arbitrary: fc.record({ ms: fc.integer({ min: 1, max: 1500 }) }) },
    { weight: 1, arbitrary: fc.record({ lost: fc.boolean() }) },
  );
  const runs = Number(process.env['SCHEDULES'] ?? 2000) / 10;

  it(`never use more than a limit, in ${runs} schedules`, { timeout: 600_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40 }),
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: 1, max: 40 }),
        async (steps, uses, perSecond) => {
          const store = new RecordingLeases();
          const time = { now: START };
          const record = recordWith({ uses, rate: { uses: perSecond, seconds: 1 } });
          const nodes = [0, 1, 2, 3].map(() => nodeOn(store, time));
          const byWindow = new Map<number, number>();
          for (const one of steps) {
            if ('ms' in one) time.now += one.ms;
            if ('lost' in one)
              store.fault = one.lost ? () => Promise.reject(new Error()) : () => {};
            if (!('node' in one)) continue;
            const node = nodes[one.node] as Leases;
            if ('idle' in one) node.giveBackIdle();
            if ('ends' in one) {
              if (one.ends === 'close') await node.close();
              nodes[one.node] = nodeOn(store, time);
            }
            if (!('spends' in one)) continue;
            const tries = Array.from({ length: one.spends }, () => node.spendLater([record]));
            const spent = (await Promise.allSettled(tries)).filter(
              (outcome) => outcome.status === 'fulfilled' && outcome.value === true,
            );
            const window = Math.floor(time.now / 1000);
            byWindow.set(window, (byWindow.get(window) ?? 0) + spent.length);
          }
          const spent = [...byWindow.values()];
          expect(Math.max(0, ...spent)).toBeLessThanOrEqual(perSecond);
          expect(spent.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(uses);
        },
      ),
      { numRuns: runs },
    );
  });

  it('that close in order use exactly the limit', async () => {
    const store = new RecordingLeases();
    const time = { now: START };
    const record = recordWith({ uses: 10_000 });
    let spent = 0;
    for (let node = 0; node < 8; node++) {
      const leases = nodeOn(store, time);
      const tries = Array.from({ length: 1500 }, () => leases.spendLater([record]));
      spent += (await Promise.all(tries)).filter((one) => one === true).length;
      await leases.close();
      time.now += 1000;
    }

    expect(spent).toBe(10_000);
    expect(store.taken).toBe(10_000);
  });
});
