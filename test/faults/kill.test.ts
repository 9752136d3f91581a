import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { generateKey, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { OTHER_SCOPE, SCOPE } from '../support.ts';
import { linesUntilKilled } from './killed-process.ts';

const CYCLES = Number(process.env['KILL_CYCLES'] ?? 50);
const CYCLE_MS = 5000;
const STEPS = ['issued', 'modified', 'rotated', 'revoked'] as const;
const script = new URL('work-forever.ts', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
const key = generateKey();

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The acknowledged state of a token: its last step, and its first and last value. */
interface Life {
  step: (typeof STEPS)[number];
  readonly first: string;
  value: string;
  /** Whether the process was working on it when it was killed, perhaps in the middle of the next step. */
  isLast: boolean;
}

describe('kill -9 of a process that changes tokens in SQLite', () => {
  it(`loses no acknowledged change in ${CYCLES} kills on one file`, {
    timeout: 60_000 + CYCLES * CYCLE_MS,
  }, async ({ annotate }) => {
    const file = join(folder, 'committed.db');
    const lives: Life[] = [];
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      // A different number each time, so that each kill interrupts a write at a different moment.
      lives.push(...(await workUntilKilled(file, 'committed', 1 + ((cycle * 7) % 43))));
    }

    const counts = STEPS.map((step) => lives.filter((life) => life.step === step).length);
    await annotate(`${STEPS.map((step, index) => `${step} ${counts[index]}`).join(', ')}`);
    for (const count of counts) expect(count).toBeGreaterThan(CYCLES / 5);
    expect(await lostOf(file, lives)).toEqual([]);
  });

  it('loses changes that are acknowledged before they are committed (the control)', async () => {
    const file = join(folder, 'open.db');
    const lives = await workUntilKilled(file, 'open', 20);

    const isKnownLost = (life: Life) => !(life.isLast && life.step === 'modified');
    expect(lives.filter(isKnownLost).length).toBeGreaterThan(0);
    expect(await lostOf(file, lives)).toEqual(lives.filter(isKnownLost));
  });
});

/** What the process acknowledged before it was killed. */
async function workUntilKilled(file: string, mode: string, count: number): Promise<Life[]> {
  const lines = await linesUntilKilled(script, [file, mode, JSON.stringify(key)], count);
  const lives = new Map<string, Life>();
  const lastOfLane = new Map<string, Life>();
  for (const line of lines) {
    const [lane = '', step = '', id = '', value = ''] = line.split(' ');
    const life = lives.get(id) ?? { step: 'issued', first: value, value, isLast: false };
    lives.set(id, life);
    lastOfLane.set(lane, life);
    life.step = step as Life['step'];
    if (value !== '-') life.value = value;
  }
  for (const life of lastOfLane.values()) life.isLast = true;
  return [...lives.values()];
}

async function lostOf(file: string, lives: readonly Life[]): Promise<Life[]> {
  const store = SqliteTokenStore.openFile(file);
  const tokens = new TokenService({ store, keys: [key], prefix: 'acme' });
  const verdictOf = async (value: string, scope: string) => {
    const verdict = await tokens.verify(value, { scope });
    return verdict.ok ? 'accepted' : verdict.reason;
  };
  const lost: Life[] = [];
  for (const life of lives) {
    const found = [
      await verdictOf(life.first, SCOPE),
      await verdictOf(life.first, OTHER_SCOPE),
      await verdictOf(life.value, OTHER_SCOPE),
    ];
    const index = STEPS.indexOf(life.step);
    // The step that was under way when the process was killed may have been carried out.
    const allowed = STEPS.slice(index, life.isLast ? index + 2 : index + 1).map(seenAfter);
    if (!allowed.includes(found.join()) && !isRotatedUnseen(life, found)) lost.push(life);
  }
  await tokens.close();
  return lost;
}

/** The verdicts on the first value for the first scope and for the new one, and on the last value. */
function seenAfter(step: Life['step']): string {
  return {
    issued: 'accepted,insufficient_scope,insufficient_scope',
    modified: 'insufficient_scope,accepted,accepted',
    rotated: 'unknown,unknown,accepted',
    revoked: 'unknown,unknown,revoked',
  }[step];
}

/** Whether a rotation that was carried out but not acknowledged has replaced the only known value. */
function isRotatedUnseen({ step, isLast }: Life, found: readonly string[]): boolean {
  return isLast && step === 'modified' && found.every((verdict) => verdict === 'unknown');
}
