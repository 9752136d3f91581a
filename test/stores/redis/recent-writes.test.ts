import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RecentWrites } from '../../../src/stores/redis/recent-writes.ts';
import { LIST, type WriteCall } from '../../../src/stores/redis/scripts.ts';

const callOf = (name: string): WriteCall => ({ slot: 1, script: LIST, keys: [name], values: [] });

/** A server that has lost changes and can go down while they are repeated. */
function setUp(names: readonly string[]) {
  const lost = new Set<string>();
  const asked: string[] = [];
  const reported: number[] = [];
  const server = { lost, asked, reported, answersLeft: Number.POSITIVE_INFINITY };
  const writes = new RecentWrites(
    async ({ keys: [name = ''] }) => {
      if (server.answersLeft === 0) throw new Error('down');
      server.answersLeft -= 1;
      asked.push(name);
      const wasLost = lost.delete(name);
      return { changed: wasLost ? 1 : 0, isIntact: !wasLost };
    },
    (count) => reported.push(count),
  );
  for (const name of names) writes.add(callOf(name), 'acme');
  return { ...server, server, writes };
}

const look = () => vi.advanceTimersByTimeAsync(1000);

describe('RecentWrites', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('repeats nothing while the newest write is present', async () => {
    const { asked, reported, writes } = setUp(['a', 'b', 'c']);
    await look();
    await look();

    expect(asked).toEqual(['c', 'c']);
    expect(reported).toEqual([]);
    writes.close();
  });

  it.each([0, 1, 2, 3])(
    'repeats all lost writes, even if the server goes down after %s of them',
    async (answers) => {
      const { server, lost, reported, writes } = setUp(['a', 'b', 'c']);
      for (const name of ['a', 'b', 'c']) lost.add(name);
      server.answersLeft = answers;
      await look();
      expect(lost.size).toBeGreaterThanOrEqual(3 - answers);
      server.answersLeft = Number.POSITIVE_INFINITY;
      await look();

      expect([...lost]).toEqual([]);
      expect(reported.reduce((sum, count) => sum + count, 0)).toBe(3);
      writes.close();
    },
  );

  it('does not let an account with many writes evict those of other accounts', async () => {
    const { lost, writes } = setUp(['a']);
    const big = 'x'.repeat(1_000_000);
    const names = Array.from({ length: 40 }, (_, index) => `big${index}`);
    for (const name of names) writes.add({ ...callOf(name), values: [big] }, 'greedy');
    writes.add(callOf('b'), 'acme');
    for (const name of ['a', 'b', ...names]) lost.add(name);
    await look();

    // A quarter of 16 million characters: three with their keys.
    expect([...lost]).toEqual(names.slice(0, -3));
    writes.close();
  });

  it('retains the newest writes of an account, in their order', async () => {
    const { asked, lost, writes } = setUp([]);
    const names = Array.from({ length: 10_003 }, (_, index) => `n${index}`);
    for (const name of names) writes.add(callOf(name), 'acme');
    for (const name of names.slice(0, 5)) lost.add(name);
    lost.add('n10002');
    await look();

    expect(asked.slice(-10_000)).toEqual(names.slice(3));
    expect([...lost]).toEqual(['n0', 'n1', 'n2']);
    writes.close();
  });

  it('checks nothing after close', async () => {
    const { asked, writes } = setUp(['a']);
    writes.close();
    await look();

    expect(asked).toEqual([]);
  });
});
