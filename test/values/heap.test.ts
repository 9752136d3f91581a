import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';

describe('the memory of a process', () => {
  it('keeps no secret that was issued or read, and no password', () => {
    const script = new URL('./heap.ts', import.meta.url).pathname;
    const output = execFileSync(process.execPath, ['--expose-gc', script], { encoding: 'utf8' });

    expect(JSON.parse(output)).toEqual({
      looked: 18,
      found: 0,
      hasPassword: false,
      control: true,
    });
  });
});
