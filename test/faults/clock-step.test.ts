import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const script = new URL('clock-step.ts', import.meta.url).pathname;

/** Whether a token of a second is accepted before a step of the clock, and more than a second after. */
async function accepted(clock: 'machine' | 'own'): Promise<{ before: boolean; after: boolean }> {
  const { stdout } = await promisify(execFile)(process.execPath, [script, clock]);
  return JSON.parse(stdout);
}

describe('a machine that steps its clock back by 110 minutes', () => {
  it('does not make a token live longer', async () => {
    expect(await accepted('machine')).toEqual({ before: true, after: false });
  });

  it('would be noticed: with a clock that is not monotonic, the token lives on', async () => {
    expect(await accepted('own')).toEqual({ before: true, after: true });
  });
});
