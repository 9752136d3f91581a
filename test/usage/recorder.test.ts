import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { TokenError } from '../../src/errors.ts';
import { Events, type TokenEvent } from '../../src/events.ts';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory.ts';
import type { TokenId } from '../../src/token.ts';
import { UsageRecorder } from '../../src/usage/recorder.ts';
import type { UsageDelta } from '../../src/usage-store.ts';
import { codeOf, K1, SCOPE } from '../support.ts';
import {
  FLUSH_MS,
  SpiedUsageStore,
  settlesAtOnce,
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

/** Lets time pass for timers, and everything happen that they bring about. */
async function pass(ms: number): Promise<void> {
  await turns();
  vi.advanceTimersByTime(ms);
  await turns();
}

/** A recorder alone, for many tokens. */
function setUpRecorder(): {
  store: SpiedUsageStore;
  recorder: UsageRecorder;
  events: TokenEvent[];
  use: (from: number, to: number) => void;
} {
  const store = new SpiedUsageStore();
  const heard: TokenEvent[] = [];
  const events = new Events(
    (event) => heard.push(event),
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
  return { store, recorder, events: heard, use };
}

function idAt(index: number): TokenId {
  return `${index}`.padStart(22, '0') as TokenId;
}

async function storedUses(store: SpiedUsageStore, id: TokenId): Promise<number> {
  const [usage] = await store.inner.read([id]);
  return usage?.scopes.reduce((sum, { uses }) => sum + uses, 0) ?? 0;
}

describe('verify', () => {
  it('waits for no write: a usage store that never answers holds nothing up', async () => {
    const setting = await setUpUsage({ cache: { maxStaleMs: 60_000 } });
    const { tokens, token, usage } = setting;
    usage.break(NEVER);
    await verifyTimes(setting, 1);
    await pass(FLUSH_MS);
    expect(usage.count('add')).toBe(1);

    expect(await settlesAtOnce(tokens.verify(token.value, { scope: SCOPE }))).toBe(true);
    expect(tokens.verifySync(token.value, { scope: SCOPE })?.ok).toBe(true);
    expect(tokens.decide(token.value, { scope: SCOPE })).not.toBeInstanceOf(Promise);
  });

  it('would be seen to wait if it awaited the write (the control)', async () => {
    const { tokens, token, usage } = await setUpUsage();
    usage.break(NEVER);
    const awaited = async () => {
      await tokens.verify(token.value, { scope: SCOPE });
      await usage.add([]);
    };

    expect(await settlesAtOnce(awaited())).toBe(false);
    usage.mend();
    expect(await settlesAtOnce(awaited())).toBe(true);
  });

  it('never calls the usage store itself, however many counts have gathered', () => {
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
    ['answers nothing', () => undefined],
  ])('gives the same verdicts while the usage store %s', async (_, fault) => {
    const { tokens, token, usage } = await setUpUsage();
    usage.break(fault);
    for (let round = 0; round < 3; round += 1) {
      expect(await tokens.allows(token.value, { scope: SCOPE })).toBe(true);
      expect(await tokens.allows(token.value, { scope: 'PUT:shop.example/orders' })).toBe(false);
      await pass(FLUSH_MS + DEADLINE_MS);
    }
    expect(usage.count('add')).toBeGreaterThan(0);
  });
});

describe('counts', () => {
  it('are written after flushMs at the latest, and not before four fifths of it', async () => {
    const setting = await setUpUsage();
    const { usage, token } = setting;
    await verifyTimes(setting, 3);
    await pass(FLUSH_MS * 0.8 - 1);
    expect(usage.count('add')).toBe(0);

    await pass(FLUSH_MS * 0.2 + 1);
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
    await pass(FLUSH_MS);

    expect(vi.getTimerCount()).toBe(0);
  });

  it('are written without the timer when 10 000 have gathered', async () => {
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

  it('go to the store many in one call, each token and scope once', async () => {
    const { store, use } = setUpRecorder();
    for (let round = 0; round < 5; round += 1) use(0, 1000);
    await pass(FLUSH_MS);

    expect(store.count('add')).toBe(1);
    expect(await storedUses(store, idAt(999))).toBe(5);
  });

  it('that come during a write are written by the next one', async () => {
    const { store, use } = setUpRecorder();
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    store.break((_, run) => gate.then(run));
    use(0, 2);
    await pass(FLUSH_MS);
    use(1, 3);
    release();
    await turns();
    expect([await storedUses(store, idAt(1)), await storedUses(store, idAt(2))]).toEqual([1, 0]);

    await pass(FLUSH_MS);
    const uses = await Promise.all([0, 1, 2].map((index) => storedUses(store, idAt(index))));
    expect(uses).toEqual([1, 2, 1]);
  });

  it('add up exactly, whatever is written when', async () => {
    const { store, use, recorder } = setUpRecorder();
    for (let round = 0; round < 30; round += 1) {
      use(0, round * 7);
      if (round % 3 === 0) await pass(FLUSH_MS);
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
  it('loses nothing: counts are written when it is over, once', async () => {
    const setting = await setUpUsage();
    const { usage, token, tokens, events } = setting;
    usage.break(FAIL);
    await verifyTimes(setting, 2);
    await pass(FLUSH_MS);
    await verifyTimes(setting, 3);
    await pass(FLUSH_MS);
    expect(await storedUses(usage, token.id)).toBe(0);

    usage.mend();
    await pass(FLUSH_MS);
    expect(await storedUses(usage, token.id)).toBe(5);
    expect((await tokens.usage('acme', token.id))?.uses).toBe(5);
    expect(events.filter(({ type }) => type === 'usage_dropped')).toEqual([]);
  });

  it('in the middle of a write may count a batch twice, and no more', async () => {
    const setting = await setUpUsage();
    const { usage, token } = setting;
    usage.break(async (_, run) => {
      await run();
      throw new Error('the answer is lost');
    });
    await verifyTimes(setting, 4);
    await pass(FLUSH_MS);
    usage.mend();
    await pass(FLUSH_MS);
    await pass(FLUSH_MS);

    expect(await storedUses(usage, token.id)).toBe(8);
  });

  it.each([
    ['does not count again what a failed write says it has counted', ['added', 1]],
    ['may count again what it does not say (the control)', ['else', 2]],
  ] as const)('%s', async (_, [member, expected]) => {
    const { store, use } = setUpRecorder();
    const partly = { [member]: [idAt(0)] };
    store.break(async () => {
      await store.inner.add([{ id: idAt(0), scope: SCOPE, uses: 1, lastUsedAt: new Date(0) }]);
      throw new TokenError('store_unavailable', 'one of two servers is down', partly);
    });
    use(0, 2);
    await pass(FLUSH_MS);
    store.mend();
    use(0, 2);
    await pass(FLUSH_MS);

    expect(await storedUses(store, idAt(0))).toBe(expected + 1);
    expect(await storedUses(store, idAt(1))).toBe(2);
  });

  it('of a part of a cluster keeps no other count waiting', async () => {
    const { store, use, recorder } = setUpRecorder();
    const isAway = ({ id }: UsageDelta) => Number(id.slice(-1)) === 7;
    store.break(async () => {
      const batch = store.calls.at(-1)?.args[0] as UsageDelta[];
      const rest = batch.filter((delta) => !isAway(delta));
      await store.inner.add(rest);
      const added = rest.map(({ id }) => id);
      throw new TokenError('store_unavailable', 'one of ten servers is down', { added });
    });
    use(0, 3500);
    await pass(FLUSH_MS);

    expect(store.count('add')).toBe(4);
    expect(recorder.waiting.counts).toBe(350);
    expect(await storedUses(store, idAt(3499))).toBe(1);
    expect(await storedUses(store, idAt(3497))).toBe(0);
    store.mend();
    await pass(FLUSH_MS);
    expect(await storedUses(store, idAt(3497))).toBe(1);
    expect(recorder.waiting.counts).toBe(0);
  });

  it('of the whole store ends a flush with its first batch', async () => {
    const { store, use, recorder } = setUpRecorder();
    store.break(FAIL);
    use(0, 3500);
    await pass(FLUSH_MS);

    expect(store.count('add')).toBe(1);
    expect(recorder.waiting.counts).toBe(3500);
  });

  it('ends a call that never answers by the deadline, and tries again', async () => {
    const setting = await setUpUsage();
    const { usage, token } = setting;
    usage.break(NEVER);
    await verifyTimes(setting, 1);
    await pass(FLUSH_MS);
    await pass(DEADLINE_MS);
    usage.mend();
    await pass(FLUSH_MS);

    expect(await storedUses(usage, token.id)).toBe(1);
  });

  it('is an event that names the usage store', async () => {
    const setting = await setUpUsage();
    setting.usage.break(FAIL);
    await verifyTimes(setting, 1);
    await pass(FLUSH_MS);

    const trouble = setting.events.filter(({ type }) => type === 'store_trouble');
    expect(trouble).toMatchObject([{ code: 'store_unavailable', store: 'usage' }]);
  });

  it('is tried again by the timer alone, however much gathers', async () => {
    const { store, use } = setUpRecorder();
    store.break(FAIL);
    use(0, 10_000);
    await turns();
    expect(store.count('add')).toBe(1);
    use(10_000, 30_000);
    await turns();
    expect(store.count('add')).toBe(1);

    await pass(FLUSH_MS);
    expect(store.count('add')).toBe(2);
  });

  it('keeps 100 000 counts, and tells how many older ones it dropped', async () => {
    const { store, use, events } = setUpRecorder();
    store.break(FAIL);
    use(0, 100_000);
    await pass(FLUSH_MS);
    expect(events.filter(({ type }) => type === 'usage_dropped')).toEqual([]);

    use(100_000, 100_003);
    use(50_000, 50_001);
    await pass(FLUSH_MS);
    expect(events.filter(({ type }) => type === 'usage_dropped')).toMatchObject([{ count: 3 }]);

    store.mend();
    await pass(FLUSH_MS);
    const uses = await Promise.all(
      [0, 2, 3, 50_000, 100_002].map((index) => storedUses(store, idAt(index))),
    );
    expect(uses).toEqual([0, 0, 1, 2, 1]);
  });
});

describe('lastUsedAt', () => {
  it('never moves backwards, in memory and in the store', async () => {
    const setting = await setUpUsage();
    const { clock, tokens, token } = setting;
    const start = clock.now();
    await verifyTimes(setting, 1);
    clock.advance(-86_400);
    await verifyTimes(setting, 1);
    expect((await tokens.usage('acme', token.id))?.lastUsedAt).toEqual(start);

    await pass(FLUSH_MS);
    await verifyTimes(setting, 1);
    await pass(FLUSH_MS);
    expect((await tokens.usage('acme', token.id))?.lastUsedAt).toEqual(start);
    clock.advance(86_401);
    await verifyTimes(setting, 1);
    const later = new Date(start.getTime() + 1000);
    expect((await tokens.usage('acme', token.id))?.lastUsedAt).toEqual(later);
  });
});

describe('a read', () => {
  it('never counts twice what is just being written', async () => {
    const setting = await setUpUsage();
    const { usage, tokens, token } = setting;
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    usage.break(async (method, run) => {
      const answer = await run();
      if (method === 'add') await gate;
      return answer;
    });
    await verifyTimes(setting, 5);
    await pass(FLUSH_MS);
    expect(await storedUses(usage, token.id)).toBe(5);
    const reading = tokens.usage('acme', token.id);
    release();

    expect((await reading)?.uses).toBe(5);
  });
});

describe('close', () => {
  it('writes what has not been written, and closes the store after it', async () => {
    const setting = await setUpUsage();
    const { usage, token, tokens } = setting;
    await verifyTimes(setting, 4);
    await tokens.close();

    expect(await storedUses(usage, token.id)).toBe(4);
    expect(usage.calls.map(({ method }) => method)).toEqual(['add', 'close']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('writes also what came during the last write', async () => {
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

  it('tells what it could not write, and closes the token store all the same', async () => {
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

  it('counts nothing any more after it', async () => {
    const { store, recorder, use } = setUpRecorder();
    await recorder.close();
    use(0, 1);
    await pass(FLUSH_MS);

    expect(store.count('add')).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });
});
