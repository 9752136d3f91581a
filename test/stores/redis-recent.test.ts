import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RecentWrites } from '../../src/stores/redis/replication.ts';
import { LIST, type ScriptCall } from '../../src/stores/redis/scripts.ts';

const callOf = (name: string): ScriptCall => ({ slot: 1, script: LIST, keys: [name], values: [] });

/** A server that has lost changes, and can go away in the middle of getting them again. */
function setUp(names: readonly string[]) {
  const lost = new Set<string>();
  const asked: string[] = [];
  const told: number[] = [];
  const server = { lost, asked, told, answersLeft: Number.POSITIVE_INFINITY };
  const writes = new RecentWrites(
    async ({ keys: [name = ''] }) => {
      if (server.answersLeft === 0) throw new Error('away');
      server.answersLeft -= 1;
      asked.push(name);
      const wasLost = lost.delete(name);
      return { changed: wasLost ? 1 : 0, isIntact: !wasLost };
    },
    (count) => told.push(count),
  );
  for (const name of names) writes.add(callOf(name));
  return { ...server, server, writes };
}

const look = () => vi.advanceTimersByTimeAsync(1000);

describe('recent writes', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('are not repeated while the newest is there', async () => {
    const { asked, told, writes } = setUp(['a', 'b', 'c']);
    await look();
    await look();

    expect(asked).toEqual(['c', 'c']);
    expect(told).toEqual([]);
    writes.close();
  });

  it.each([0, 1, 2, 3])(
    'are all made again, also when the server goes away after %s of them',
    async (answers) => {
      const { server, lost, told, writes } = setUp(['a', 'b', 'c']);
      for (const name of ['a', 'b', 'c']) lost.add(name);
      server.answersLeft = answers;
      await look();
      expect(lost.size).toBeGreaterThanOrEqual(3 - answers);
      server.answersLeft = Number.POSITIVE_INFINITY;
      await look();

      expect([...lost]).toEqual([]);
      expect(told.reduce((sum, count) => sum + count, 0)).toBe(3);
      writes.close();
    },
  );

  it('are looked at no more after close', async () => {
    const { asked, writes } = setUp(['a']);
    writes.close();
    await look();

    expect(asked).toEqual([]);
  });
});
