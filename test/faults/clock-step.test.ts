import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const script = new URL('clock-step.ts', import.meta.url).pathname;

/** Whether a token with a TTL of one second is accepted before the step, and more than a second later. */
async function accepted(clock: 'machine' | 'own'): Promise<{ before: boolean; after: boolean }> {
  const { stdout } = await promisify(execFile)(process.execPath, [script, clock]);
  return JSON.parse(stdout);
}

describe('a clock that steps back by 110 minutes', () => {
  it('does not extend the lifetime of a token', async () => {
    expect(await accepted('machine')).toEqual({ before: true, after: false });
  });

  it('extends the lifetime of a token if the host passes it as its own clock (the control)', async () => {
    expect(await accepted('own')).toEqual({ before: true, after: true });
  });
});
