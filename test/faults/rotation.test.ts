import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { generateKey, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { SCOPE } from '../support.ts';

const CYCLES = Number(process.env['KILL_CYCLES'] ?? 25);
const CYCLE_MS = 5000;
const script = new URL('rotate-forever.ts', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
const key = generateKey();

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('kill -9 of a process that rotates on first use', () => {
  it(`refuses neither the new value nor the one before it, ${CYCLES} times on one file`, {
    timeout: 60_000 + CYCLES * CYCLE_MS,
  }, async ({ annotate }) => {
    const file = join(folder, 'told.db');
    const steps: string[] = [];
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      // A different number each time, so that the kill falls on different moments.
      const lanes = await rotateUntilKilled(file, 'told', 5 + ((cycle * 7) % 43));
      const values = lanes.flatMap(({ values }) => values.slice(-2));
      steps.push(...lanes.map(({ step }) => step));
      expect(await verdictsOn(file, values)).toEqual(values.map(() => true));
    }

    const [waits, used] = ['waits', 'used'].map((name) => steps.filter((step) => step === name));
    await annotate(`waits ${waits?.length}, used ${used?.length}`);
    expect(waits?.length).toBeGreaterThan(0);
    expect(used?.length).toBeGreaterThan(0);
  });

  it('would notice: values that are replaced immediately, and unheard, are refused', async () => {
    const file = join(folder, 'lost.db');
    const lanes = await rotateUntilKilled(file, 'lost', 20);
    const values = lanes.map(({ values }) => values[0] as string);

    expect(await verdictsOn(file, values)).toContain(false);
  });
});

interface Lane {
  step: string;
  /** The value of the token, and those that replaced it. */
  readonly values: string[];
}

/** What was said of each token before the process was killed. */
async function rotateUntilKilled(file: string, mode: string, count: number): Promise<Lane[]> {
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
  const lanes = new Map<string, Lane>();
  for (const line of printed.split('\n').slice(0, -1)) {
    const [name = '', step = '', value = ''] = line.split(' ');
    const lane = lanes.get(name) ?? { step, values: [] };
    lanes.set(name, lane);
    lane.step = step;
    expect(step).not.toBe('refused');
    if (step === 'issued' || step === 'waits') lane.values.push(value);
  }
  return [...lanes.values()];
}

async function verdictsOn(file: string, values: readonly string[]): Promise<boolean[]> {
  const store = SqliteTokenStore.open(file);
  const tokens = new TokenService({ store, keys: [key], prefix: 'acme' });
  const verdicts: boolean[] = [];
  for (const value of values) verdicts.push(await tokens.allows(value, { scope: SCOPE }));
  await tokens.close();
  return verdicts;
}
