import { describe, expect, it } from 'vitest';
import { toolScope } from '../../src/mcp/index.ts';
import { callOf, DOMAIN, message, setUp } from './support.ts';

/** The shortest time of some rounds, in milliseconds. */
async function fastestOf(rounds: number, run: () => Promise<() => void>): Promise<number> {
  let fastest = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const timed = await run();
    const start = performance.now();
    timed();
    fastest = Math.min(fastest, performance.now() - start);
  }
  return fastest;
}

describe('the guard for MCP', () => {
  it('filters a list of a thousand tools within a millisecond', async () => {
    const { post } = await setUp({
      scopes: Array.from({ length: 500 }, (_, index) => toolScope(DOMAIN, `tool-${2 * index}`)),
    });
    const all = Array.from({ length: 1000 }, (_, index) => `tool-${index}`);
    const fastest = await fastestOf(20, async () => {
      const { allows } = await post(message('tools/list'));
      return () => expect(all.filter((name) => allows?.(name))).toHaveLength(500);
    });

    expect(fastest).toBeLessThan(1);
  });

  it('takes less than 30 microseconds for each kilobyte of a message', async () => {
    const { guard, value } = await setUp({ service: { cache: { maxStaleMs: 1000 } } });
    const headers = { authorization: `Bearer ${value}`, 'content-type': 'application/json' };
    const request = { method: 'POST', url: '/mcp', headers };
    const members = Array.from({ length: 3000 }, (_, index) => [
      `member-${index}`,
      'a text of some',
    ]);
    const call = { ...callOf('refund'), _meta: Object.fromEntries(members) };
    const [large, small] = [call, callOf('refund')].map((body) => JSON.stringify(body));
    const timeOf = async (body = '') => {
      let fastest = Number.POSITIVE_INFINITY;
      for (let round = 0; round < 20; round++) {
        const start = performance.now();
        expect((await guard(request, body)).ok).toBe(true);
        fastest = Math.min(fastest, performance.now() - start);
      }
      return fastest;
    };

    await timeOf(small);
    const microseconds = ((await timeOf(large)) - (await timeOf(small))) * 1000;
    expect(microseconds / ((large as string).length / 1000)).toBeLessThan(30);
  });
});
