import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { generateKey, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { OTHER_SCOPE, SCOPE } from '../support.ts';

const CYCLES = Number(process.env['KILL_CYCLES'] ?? 50);
const CYCLE_MS = 5000;
const STEPS = ['issued', 'modified', 'rotated', 'revoked'] as const;
const script = new URL('work-forever.ts', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
const key = generateKey();

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What was acknowledged of a token: its last step, and its first and last value. */
interface Life {
  step: (typeof STEPS)[number];
  readonly first: string;
  value: string;
  /** Whether its process was killed at it, perhaps in the middle of the next step. */
  isLast: boolean;
}

describe('kill -9 of a process that works on tokens', () => {
  it(`loses nothing that was acknowledged, ${CYCLES} times on one file`, {
    timeout: 60_000 + CYCLES * CYCLE_MS,
  }, async ({ annotate }) => {
    const file = join(folder, 'committed.db');
    const lives: Life[] = [];
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      // A different number each time, so that the kill falls on different moments of a write.
      lives.push(...(await workUntilKilled(file, 'committed', 1 + ((cycle * 7) % 43))));
    }

    const counts = STEPS.map((step) => lives.filter((life) => life.step === step).length);
    await annotate(`${STEPS.map((step, place) => `${step} ${counts[place]}`).join(', ')}`);
    for (const count of counts) expect(count).toBeGreaterThan(CYCLES / 5);
    expect(await lostOf(file, lives)).toEqual([]);
  });

  it('would notice: what is acknowledged before it is committed is lost', async () => {
    const file = join(folder, 'open.db');
    const lives = await workUntilKilled(file, 'open', 20);

    const isKnownLost = (life: Life) => !(life.isLast && life.step === 'modified');
    expect(lives.filter(isKnownLost).length).toBeGreaterThan(0);
    expect(await lostOf(file, lives)).toEqual(lives.filter(isKnownLost));
  });
});

/** What was acknowledged before the process was killed. */
async function workUntilKilled(file: string, mode: string, count: number): Promise<Life[]> {
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
  const lives = new Map<string, Life>();
  const lastOfLane = new Map<string, Life>();
  for (const line of printed.split('\n').slice(0, -1)) {
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
  const store = SqliteTokenStore.open(file);
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
    const place = STEPS.indexOf(life.step);
    // What was under way may have been made: then it is as after the next step.
    const allowed = STEPS.slice(place, life.isLast ? place + 2 : place + 1).map(seenAfter);
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

/** A rotation that nobody was told of has taken the only known value away. */
function isRotatedUnseen({ step, isLast }: Life, found: readonly string[]): boolean {
  return isLast && step === 'modified' && found.every((verdict) => verdict === 'unknown');
}
