import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'vitest';

/** Runs a script, kills it once it has printed more than `count` lines, and returns its complete lines. */
export async function linesUntilKilled(
  script: string,
  args: readonly string[],
  count: number,
): Promise<string[]> {
  const child = spawn(process.execPath, [script, ...args]);
  let printed = '';
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  child.stdout.on('data', (chunk) => {
    printed += chunk;
    if (printed.split('\n').length > count) child.kill('SIGKILL');
  });
  const [, signal] = await once(child, 'close');
  expect([signal, errors]).toEqual(['SIGKILL', '']);
  return printed.split('\n').slice(0, -1);
}
