import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { TokenError } from '../../src/errors.ts';
import { Events, type TokenEvent } from '../../src/events.ts';
import type { UsageDelta } from '../../src/ports/usage-store.ts';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import type { TokenId } from '../../src/token/record.ts';
import { UsageRecorder } from '../../src/usage/recorder.ts';
import { codeOf, K1, SCOPE } from '../support.ts';
import {
  FLUSH_MS,
  passTime,
  SpiedUsageStore,
  settlesImmediately,
  setUpUsage,
  turns,
  verifyTimes,
} from './support.ts';

const NEVER = () => new Promise<never>(() => {});
const FAIL = async () => {
  throw new Error('down');
};
const DEADLINE_MS = 2000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A recorder without a service, and a function that uses many tokens. */
function setUpRecorder(): {
  store: SpiedUsageStore;
  recorder: UsageRecorder;
  events: TokenEvent[];
  use: (from: number, to: number) => void;
} {
  const store = new SpiedUsageStore();
  const emitted: TokenEvent[] = [];
  const events = new Events(
    (event) => emitted.push(event),
    () => 0,
  );
  const recorder = new UsageRecorder({
    store,
    flushMs: FLUSH_MS,
    deadlineMs: DEADLINE_MS,
    events,
    now: () => 0,
  });
  const use = (from: number, to: number) => {
    for (let index = from; index < to; index += 1) recorder.used(idAt(index), SCOPE, index);
  };
  return { store, recorder, events: emitted, use };
}

function idAt(index: number): TokenId {
  return `${index}`.padStart(22, '0') as TokenId;
}

async function storedUses(store: SpiedUsageStore, id: TokenId): Promise<number> {
  const [usage] = await store.inner.read([id]);
  return usage?.scopes.reduce((sum, { uses }) => sum + uses, 0) ?? 0;
}

describe('verify', () => {
  it('does not wait for a usage store that never answers', async () => {
    const setting = await setUpUsage({ cache: { maxStaleMs: 60_000 } });
    const { tokens, token, usage } = setting;
    usage.break(NEVER);
    await verifyTimes(setting, 1);
    await passTime(FLUSH_MS);
    expect(usage.count('add')).toBe(1);

    expect(await settlesImmediately(tokens.verify(token.value, { scope: SCOPE }))).toBe(true);
    expect(tokens.verifySync(token.value, { scope: SCOPE })?.ok).toBe(true);
    expect(tokens.decide(token.value, { scope: SCOPE })).not.toBeInstanceOf(Promise);
  });

  it('would fail this test if it awaited the write (the control)', async () => {
    const { tokens, token, usage } = await setUpUsage();
    usage.break(NEVER);
    const awaited = async () => {
      await tokens.verify(token.value, { scope: SCOPE });
      await usage.add([]);
    };

    expect(await settlesImmediately(awaited())).toBe(false);
    usage.mend();
    expect(await settlesImmediately(awaited())).toBe(true);
  });

  it('never calls the usage store itself, however many counts are waiting', () => {
    const { store, use } = setUpRecorder();
    use(0, 10_001);

    expect(store.calls).toEqual([]);
  });

  it.each<[string, () => unknown]>([
    ['rejects', FAIL],
    ['never answers', NEVER],
    [
      'throws',
      () => {
        throw new Error('down');
      },
    ],
    ['returns undefined', () => undefined],
  ])('gives the same verdicts while the usage store %s', async (_, fault) => {
    const { tokens, token, usage } = await setUpUsage();
    usage.break(fault);
    for (let round = 0; round < 3; round += 1) {
      expect(await tokens.allows(token.value, { scope: SCOPE })).toBe(true);
      expect(await tokens.allows(token.value, { scope: 'PUT:shop.example/orders' })).toBe(false);
      await passTime(FLUSH_MS + DEADLINE_MS);
    }
    expect(usage.count('add')).toBeGreaterThan(0);
  });
});

describe('counts', () => {
  it('are written after flushMs at the latest, but not before four fifths of it', async () => {
    const setting = await setUpUsage();
    const { usage, token } = setting;
    await verifyTimes(setting, 3);
    await passTime(FLUSH_MS * 0.8 - 1);
    expect(usage.count('add')).toBe(0);

    await passTime(FLUSH_MS * 0.2 + 1);
    expect(usage.count('add')).toBe(1);
    expect(await storedUses(usage, token.id)).toBe(3);
  });

  it('start no timer while nothing is counted', async () => {
    await setUpUsage();

    expect(vi.getTimerCount()).toBe(0);
  });

  it('leave no timer after a write', async () => {
    const setting = await setUpUsage();
    await verifyTimes(setting, 1);
    expect(vi.getTimerCount()).toBe(1);
    await passTime(FLUSH_MS);

    expect(vi.getTimerCount()).toBe(0);
  });

  it('are written without waiting for the timer once there are 10 000', async () => {
    const { store, use } = setUpRecorder();
    use(0, 9999);
    await turns();
    expect(store.count('add')).toBe(0);

    use(9999, 10_000);
    await turns();
    expect(store.count('add')).toBe(10);
    expect(await storedUses(store, idAt(0))).toBe(1);
    expect(await storedUses(store, idAt(9999))).toBe(1);
  });

  it('are batched in one store call, with one sum for each token and scope', async () => {
    const { store, use } = setUpRecorder();
    for (let round = 0; round < 5; round += 1) use(0, 1000);
    await passTime(FLUSH_MS);

    expect(store.count('add')).toBe(1);
    expect(await storedUses(store, idAt(999))).toBe(5);
  });

  it('that arrive during a write are written by the next one', async () => {
    const { store, use } = setUpRecorder();
    const { promise: gate, resolve: release } = Promise.withResolvers<void>();
    store.break((_, run) => gate.then(run));
    use(0, 2);
    await passTime(FLUSH_MS);
    use(1, 3);
    release();
    await turns();
    expect([await storedUses(store, idAt(1)), await storedUses(store, idAt(2))]).toEqual([1, 0]);

    await passTime(FLUSH_MS);
    const uses = await Promise.all([0, 1, 2].map((index) => storedUses(store, idAt(index))));
    expect(uses).toEqual([1, 2, 1]);
  });

  it('add up exactly, whenever they are written', async () => {
    const { store, use, recorder } = setUpRecorder();
    for (let round = 0; round < 30; round += 1) {
      use(0, round * 7);
      if (round % 3 === 0) await passTime(FLUSH_MS);
    }
    await recorder.close();
    const expected = (index: number) =>
      Array.from({ length: 30 }, (_, round) => round * 7).filter((to) => to > index).length;

    for (const index of [0, 6, 7, 100, 202, 203]) {
      expect(await storedUses(store, idAt(index))).toBe(expected(index));
    }
  });
});

describe('an outage of the usage store', () => {
  it('loses no counts: they are written once, when it is over', async () => {
    const setting = await setUpUsage();
    const { usage, token, tokens, events } = setting;
    usage.break(FAIL);
    await verifyTimes(setting, 2);
    await passTime(FLUSH_MS);
    await verifyTimes(setting, 3);
    await passTime(FLUSH_MS);
    expect(await storedUses(usage, token.id)).toBe(0);

    usage.mend();
    await passTime(FLUSH_MS);
    expect(await storedUses(usage, token.id)).toBe(5);
    expect((await tokens.usage('acme', token.id))?.uses).toBe(5);
    expect(events.filter(({ type }) => type === 'usage_dropped')).toEqual([]);
  });

  it('in the middle of a write can count a batch twice, but not more often', async () => {
    const setting = await setUpUsage();
    const { usage, token } = setting;
    usage.break(async (_, run) => {
      await run();
      throw new Error('the answer is lost');
    });
    await verifyTimes(setting, 4);
    await passTime(FLUSH_MS);
    usage.mend();
    await passTime(FLUSH_MS);
    await passTime(FLUSH_MS);

    expect(await storedUses(usage, token.id)).toBe(8);
  });

  it.each([
    ['does not repeat counts that a failed write reports as added', ['added', 1]],
    ['can repeat counts that a failed write does not report (the control)', ['else', 2]],
  ] as const)('%s', async (_, [member, expected]) => {
    const { store, use } = setUpRecorder();
    const partly = { [member]: [idAt(0)] };
    store.break(async () => {
      await store.inner.add([{ id: idAt(0), scope: SCOPE, uses: 1, lastUsedAt: new Date(0) }]);
      throw new TokenError('store_unavailable', 'one of two servers is down', partly);
    });
    use(0, 2);
    await passTime(FLUSH_MS);
    store.mend();
    use(0, 2);
    await passTime(FLUSH_MS);

    expect(await storedUses(store, idAt(0))).toBe(expected + 1);
    expect(await storedUses(store, idAt(1))).toBe(2);
  });

  it('of one part of a cluster does not delay the other counts', async () => {
    const { store, use, recorder } = setUpRecorder();
    const isDown = ({ id }: UsageDelta) => Number(id.slice(-1)) === 7;
    store.break(async () => {
      const batch = store.calls.at(-1)?.args[0] as UsageDelta[];
      const rest = batch.filter((delta) => !isDown(delta));
      await store.inner.add(rest);
      const added = rest.map(({ id }) => id);
      throw new TokenError('store_unavailable', 'one of ten servers is down', { added });
    });
    use(0, 3500);
    await passTime(FLUSH_MS);

    expect(store.count('add')).toBe(4);
    expect(recorder.waiting.counts).toBe(350);
    expect(await storedUses(store, idAt(3499))).toBe(1);
    expect(await storedUses(store, idAt(3497))).toBe(0);
    store.mend();
    await passTime(FLUSH_MS);
    expect(await storedUses(store, idAt(3497))).toBe(1);
    expect(recorder.waiting.counts).toBe(0);
  });

  it('of the whole store ends a flush after its first batch', async () => {
    const { store, use, recorder } = setUpRecorder();
    store.break(FAIL);
    use(0, 3500);
    await passTime(FLUSH_MS);

    expect(store.count('add')).toBe(1);
    expect(recorder.waiting.counts).toBe(3500);
  });

  it('makes a call that never answers fail at the deadline and be retried', async () => {
    const setting = await setUpUsage();
    const { usage, token } = setting;
    usage.break(NEVER);
    await verifyTimes(setting, 1);
    await passTime(FLUSH_MS);
    await passTime(DEADLINE_MS);
    usage.mend();
    await passTime(FLUSH_MS);

    expect(await storedUses(usage, token.id)).toBe(1);
  });

  it('emits store_trouble for the usage store', async () => {
    const setting = await setUpUsage();
    setting.usage.break(FAIL);
    await verifyTimes(setting, 1);
    await passTime(FLUSH_MS);

    const trouble = setting.events.filter(({ type }) => type === 'store_trouble');
    expect(trouble).toMatchObject([{ code: 'store_unavailable', store: 'usage' }]);
  });

  it('leaves retries to the timer, however many counts are waiting', async () => {
    const { store, use } = setUpRecorder();
    store.break(FAIL);
    use(0, 10_000);
    await turns();
    expect(store.count('add')).toBe(1);
    use(10_000, 30_000);
    await turns();
    expect(store.count('add')).toBe(1);

    await passTime(FLUSH_MS);
    expect(store.count('add')).toBe(2);
  });

  it('keeps 100 000 counts waiting, and reports how many older ones were dropped', async () => {
    const { store, use, events } = setUpRecorder();
    store.break(FAIL);
    use(0, 100_000);
    await passTime(FLUSH_MS);
    expect(events.filter(({ type }) => type === 'usage_dropped')).toEqual([]);

    use(100_000, 100_003);
    use(50_000, 50_001);
    await passTime(FLUSH_MS);
    expect(events.filter(({ type }) => type === 'usage_dropped')).toMatchObject([{ count: 3 }]);

    store.mend();
    await passTime(FLUSH_MS);
    const uses = await Promise.all(
      [0, 2, 3, 50_000, 100_002].map((index) => storedUses(store, idAt(index))),
    );
    expect(uses).toEqual([0, 0, 1, 2, 1]);
  });
});

describe('lastUsedAt', () => {
  it('never moves backward, in memory or in the store', async () => {
    const setting = await setUpUsage();
    const { clock, tokens, token } = setting;
    const start = clock.now();
    await verifyTimes(setting, 1);
    clock.advance(-86_400);
    await verifyTimes(setting, 1);
    expect((await tokens.usage('acme', token.id))?.lastUsedAt).toEqual(start);

    await passTime(FLUSH_MS);
    await verifyTimes(setting, 1);
    await passTime(FLUSH_MS);
    expect((await tokens.usage('acme', token.id))?.lastUsedAt).toEqual(start);
    clock.advance(86_401);
    await verifyTimes(setting, 1);
    const later = new Date(start.getTime() + 1000);
    expect((await tokens.usage('acme', token.id))?.lastUsedAt).toEqual(later);
  });
});

describe('a read of usage', () => {
  it('does not count uses twice that are being written', async () => {
    const setting = await setUpUsage();
    const { usage, tokens, token } = setting;
    const { promise: gate, resolve: release } = Promise.withResolvers<void>();
    usage.break(async (method, run) => {
      const answer = await run();
      if (method === 'add') await gate;
      return answer;
    });
    await verifyTimes(setting, 5);
    await passTime(FLUSH_MS);
    expect(await storedUses(usage, token.id)).toBe(5);
    const reading = tokens.usage('acme', token.id);
    release();

    expect((await reading)?.uses).toBe(5);
  });
});

describe('close', () => {
  it('writes the waiting counts, and then closes the usage store', async () => {
    const setting = await setUpUsage();
    const { usage, token, tokens } = setting;
    await verifyTimes(setting, 4);
    await tokens.close();

    expect(await storedUses(usage, token.id)).toBe(4);
    expect(usage.calls.map(({ method }) => method)).toEqual(['add', 'close']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('also writes counts that arrive during the last write', async () => {
    const setting = await setUpUsage();
    const { usage, token, tokens } = setting;
    usage.break(async (_, run) => {
      await turns(5);
      return run();
    });
    await verifyTimes(setting, 1);
    vi.advanceTimersByTime(FLUSH_MS);
    await turns(2);
    await verifyTimes(setting, 2);
    await tokens.close();

    expect(await storedUses(usage, token.id)).toBe(3);
  });

  it('reports counts that it cannot write, and still closes the token store', async () => {
    const closed = vi.fn();
    class Closing extends MemoryTokenStore {
      async close(): Promise<void> {
        closed();
      }
    }
    const usage = new SpiedUsageStore();
    const events: TokenEvent[] = [];
    const tokens = new TokenService({
      store: new Closing(),
      keys: [K1],
      prefix: 'acme',
      usage: { store: usage },
      onEvent: (event) => events.push(event),
    });
    const token = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    await verifyTimes({ tokens, token }, 2);
    usage.break(FAIL);

    expect(await codeOf(tokens.close())).toBe('store_unavailable');
    expect(events.at(-2)).toMatchObject({ type: 'usage_dropped', count: 1 });
    expect(closed).toHaveBeenCalledTimes(1);
  });

  it('ends the counting, and leaves no timer', async () => {
    const { store, recorder, use } = setUpRecorder();
    await recorder.close();
    use(0, 1);
    await passTime(FLUSH_MS);

    expect(store.count('add')).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });
});
