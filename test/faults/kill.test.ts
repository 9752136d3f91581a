import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { generateKey, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite.ts';

const CYCLES = Number(process.env['KILL_CYCLES'] ?? 50);
const script = new URL('issue-forever.ts', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
const key = generateKey();

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('kill -9 of a process that issues tokens', () => {
  it(`loses no token that was acknowledged, ${CYCLES} times on one file`, {
    timeout: 300_000,
  }, async () => {
    const file = join(folder, 'committed.db');
    const acknowledged: string[] = [];
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      // A different number each time, so that the kill falls on different moments of a write.
      acknowledged.push(...(await issueUntilKilled(file, 'committed', 1 + ((cycle * 7) % 23))));
    }

    expect(acknowledged.length).toBeGreaterThan(CYCLES);
    expect(await lostOf(file, acknowledged)).toEqual([]);
  });

  it('would notice: what is acknowledged before it is committed is lost', async () => {
    const file = join(folder, 'open.db');
    const acknowledged = await issueUntilKilled(file, 'open', 20);

    expect(await lostOf(file, acknowledged)).toEqual(acknowledged);
  });
});

/** The values that were acknowledged before the process was killed. */
async function issueUntilKilled(file: string, mode: string, count: number): Promise<string[]> {
  const child = spawn(process.execPath, [script, file, mode, JSON.stringify(key)]);
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

async function lostOf(file: string, values: readonly string[]): Promise<string[]> {
  const store = SqliteTokenStore.open(file);
  const tokens = new TokenService({ store, keys: [key], prefix: 'acme' });
  const lost: string[] = [];
  for (const value of values) {
    const verdict = await tokens.verify(value, { scope: 'GET:shop.example/orders' });
    if (!verdict.ok) lost.push(value);
  }
  await tokens.close();
  return lost;
}
