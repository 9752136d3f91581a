import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { generateKey, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { SCOPE } from '../support.ts';
import { linesUntilKilled } from './killed-process.ts';

const CYCLES = Number(process.env['KILL_CYCLES'] ?? 25);
const CYCLE_MS = 5000;
const script = new URL('rotate-forever.ts', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
const key = generateKey();

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('kill -9 of a process that rotates with activate: first-use', () => {
  it(`leaves the new value and the one before it accepted, in ${CYCLES} kills on one file`, {
    timeout: 60_000 + CYCLES * CYCLE_MS,
  }, async ({ annotate }) => {
    const file = join(folder, 'first-use.db');
    const steps: string[] = [];
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      // A different number each time, so that each kill interrupts a rotation at a different moment.
      const lanes = await rotateUntilKilled(file, 'first-use', 5 + ((cycle * 7) % 43));
      const values = lanes.flatMap(({ values }) => values.slice(-2));
      steps.push(...lanes.map(({ step }) => step));
      expect(await verdictsOn(file, values)).toEqual(values.map(() => true));
    }

    const [waits, used] = ['waits', 'used'].map((name) => steps.filter((step) => step === name));
    await annotate(`waits ${waits?.length}, used ${used?.length}`);
    expect(waits?.length).toBeGreaterThan(0);
    expect(used?.length).toBeGreaterThan(0);
  });

  it('loses the last known value if rotations take effect immediately (the control)', async () => {
    const file = join(folder, 'immediate.db');
    const lanes = await rotateUntilKilled(file, 'immediate', 20);
    const values = lanes.map(({ values }) => values[0] as string);

    expect(await verdictsOn(file, values)).toContain(false);
  });
});

interface Lane {
  step: string;
  /** The value of the token, and those that replaced it. */
  readonly values: string[];
}

/** What the process printed about each token before it was killed. */
async function rotateUntilKilled(file: string, mode: string, count: number): Promise<Lane[]> {
  const lines = await linesUntilKilled(script, [file, mode, JSON.stringify(key)], count);
  const lanes = new Map<string, Lane>();
  for (const line of lines) {
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
  const store = SqliteTokenStore.openFile(file);
  const tokens = new TokenService({ store, keys: [key], prefix: 'acme' });
  const verdicts: boolean[] = [];
  for (const value of values) verdicts.push(await tokens.allows(value, { scope: SCOPE }));
  await tokens.close();
  return verdicts;
}
