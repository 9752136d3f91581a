import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Connection, Driver } from '../../../src/stores/redis/driver.ts';
import { FailoverGuard } from '../../../src/stores/redis/failover-guard.ts';

/** A primary that can be paused. When it wakes, it answers what was sent meanwhile. */
function primaryOf(address: string, timeout: () => Promise<unknown>) {
  let isPaused = false;
  const held: (() => void)[] = [];
  const sent: string[] = [];
  const connection = {
    address,
    async send([name]: readonly string[]) {
      sent.push(String(name));
      if (isPaused) await new Promise<void>((resolve) => held.push(resolve));
      return timeout();
    },
  } as unknown as Connection;
  const pause = () => {
    isPaused = true;
  };
  const wake = () => {
    isPaused = false;
    for (const answer of held.splice(0)) answer();
  };
  return { connection, sent, pause, wake };
}

function setUp(timeout: () => Promise<unknown> = async () => ['cluster-node-timeout', '2000']) {
  const primary = primaryOf('first', timeout);
  const successor = primaryOf('second', timeout);
  const owner = { address: 'first' };
  const driver = {
    primaries: () => [primary, successor].map(async ({ connection }) => connection),
    ownerAddress: () => owner.address,
  } as unknown as Driver;
  const guard = new FailoverGuard(driver);
  const read = (answer = async () => 'record') => guard.read(0, answer).catch(() => 'refused');
  /** The outcome of a read, if it does not have to wait. */
  const readNow = (answer?: () => Promise<string>) =>
    Promise.race([read(answer), passes(0).then(() => 'waits')]);
  return { primary, owner, guard, read, readNow };
}

const passes = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe('FailoverGuard', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('trusts a primary that answers, even after a long time without reads', async () => {
    const { readNow } = setUp();
    expect(await readNow()).toBe('record');
    await passes(3_600_000);
    expect(await readNow()).toBe('record');
  });

  it.each([
    ['2000', 1400, 'record'],
    ['2000', 2600, 'waits'],
    ['2000', 60_000, 'waits'],
    ['15000', 10_000, 'record'],
    ['15000', 20_000, 'waits'],
  ])(
    'with a cluster-node-timeout of %s ms, after a pause of %i ms, a read gets: %s',
    async (timeout, pauseMs, expected) => {
      const { primary, readNow } = setUp(async () => ['cluster-node-timeout', timeout]);
      await readNow();
      await passes(60_000);
      primary.pause();
      await passes(pauseMs);
      primary.wake();

      expect(await readNow()).toBe(expected);
    },
  );

  it('repeats a read until the primary has been awake for half a second', async () => {
    const { primary, read } = setUp();
    await read();
    await passes(1000);
    primary.pause();
    await passes(3000);
    primary.wake();
    let answer = 'before';
    let found: string | undefined;
    const reading = read(async () => answer).then((value) => {
      found = value;
    });
    await passes(400);
    expect(found).toBeUndefined();
    answer = 'after';
    await passes(600);
    await reading;
    expect(found).toBe('after');
  });

  it('rejects a read after a second without a trusted primary', async () => {
    const { primary, read } = setUp();
    await read();
    await passes(1000);
    primary.pause();
    await passes(3000);
    const reading = read();
    await passes(1100);
    expect(await reading).toBe('refused');
  });

  it.each([
    ['before', 'first', 'second'],
    ['after', 'second', 'first'],
  ])('waits if the silent primary owned the slot %s the read', async (_, before, after) => {
    const { primary, owner, readNow } = setUp();
    await readNow();
    await passes(1000);
    primary.pause();
    await passes(3000);
    const move = async () => {
      owner.address = after;
      return 'record';
    };

    owner.address = before;
    expect(await readNow(move)).toBe('waits');
    owner.address = 'second';
    expect(await readNow()).toBe('record');
  });

  it('treats an error of the server as an answer, and assumes a timeout of two seconds', async () => {
    const { primary, readNow } = setUp(() => Promise.reject(new Error('NOPERM no permissions')));
    await readNow();
    await passes(60_000);
    expect(await readNow()).toBe('record');
    primary.pause();
    await passes(2600);
    primary.wake();
    expect(await readNow()).toBe('waits');
  });

  it('does not treat an error of the driver as an answer', async () => {
    const { readNow } = setUp(() => Promise.reject(new Error('Connection is closed.')));
    await readNow();
    await passes(3000);
    expect(await readNow()).toBe('waits');
  });

  it('sends a silent primary one request at a time, and none after close', async () => {
    const { primary, guard, read } = setUp();
    await read();
    await passes(1000);
    primary.pause();
    primary.sent.length = 0;
    await passes(1500);
    expect(primary.sent).toHaveLength(1);
    guard.close();
    await passes(60_000);
    expect(primary.sent).toHaveLength(1);
  });
});
