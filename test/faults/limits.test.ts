import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import {
  generateKey,
  MemoryLeaseStore,
  MemoryTokenStore,
  type TokenLimits,
  TokenService,
} from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { manualClock } from '../../src/testing/index.ts';
import { type LeaseEngine, type LeasePlace, prepareLeases } from '../stores/lease-engines.ts';
import { SCOPE } from '../support.ts';
import type { LimitedNode, Start } from './limited-node.ts';

/** How often processes are killed, on each engine. */
const SCHEDULES = Number(process.env['LIMIT_SCHEDULES'] ?? 2);
/** How many windows of one second are watched, on each engine. */
const WINDOWS = Number(process.env['LIMIT_WINDOWS'] ?? 3);

const script = new URL('limited-node.ts', import.meta.url).pathname;
const urls = inject('servers');
const ENGINES: readonly (readonly [LeaseEngine, string | undefined])[] = [
  ['sqlite', 'a file'],
  ['postgres', urls.postgres],
  ['mariadb', urls.mariadb],
  ['redis', urls.redis],
  ['redisCluster', urls.redisCluster],
];

/** One limited token, and processes that use it. */
async function setUp(limits: TokenLimits, leases: LimitedNode['leases']) {
  const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const key = generateKey();
  const file = join(folder, 'tokens.db');
  const service = new TokenService({
    store: SqliteTokenStore.open(file),
    keys: [key],
    prefix: 'acme',
    limits: { store: new MemoryLeaseStore() },
  });
  const { value } = await service.issue({ account: 'acme', scopes: [SCOPE], limits });
  await service.close();
  const place = placeIn(folder, leases);
  if (typeof place !== 'string') await prepareLeases(place);
  const files: string[] = [];
  const start = async (count: number, callers: number) => {
    const nodes = Array.from({ length: count }, () => {
      const notes = join(folder, `notes-${files.length}`);
      files.push(notes);
      const node: LimitedNode = {
        leases: place,
        tokens: file,
        key,
        value,
        callers,
        notes,
      };
      const child = fork(script, [JSON.stringify(node)]);
      onTestFinished(() => void child.kill('SIGKILL'));
      return child;
    });
    await Promise.all(nodes.map(isReady));
    return nodes;
  };
  const notes = () => files.map((each) => readFileSync(each, 'utf8'));
  const accepted = () => notes().reduce((sum, count) => sum + Number(count), 0);
  return { start, notes, accepted };
}

function placeIn(folder: string, leases: LimitedNode['leases']): LimitedNode['leases'] {
  if (typeof leases === 'string') {
    const counter = join(folder, 'counter');
    writeFileSync(counter, '0');
    return counter;
  }
  return leases.engine === 'sqlite' ? { ...leases, url: join(folder, 'leases.db') } : leases;
}

function newPlace(engine: LeaseEngine, url = ''): LeasePlace {
  return { engine, url, name: `limits_${randomBytes(8).toString('hex')}` };
}

async function isReady(node: ChildProcess): Promise<void> {
  const isGone = once(node, 'exit').then(() => Promise.reject(new Error('a process has failed')));
  await Promise.race([once(node, 'message'), isGone]);
  isGone.catch(() => {});
}

/** Lets processes begin together, and waits for the end of those that are not killed. */
async function run(nodes: readonly ChildProcess[], start: Start = {}): Promise<void> {
  const ends = nodes.map((node) => once(node, 'exit'));
  for (const node of nodes) node.send(start);
  await Promise.all(ends);
}

describe.each(ENGINES)('limits on %s', (engine, url) => {
  it.skipIf(url === undefined)(
    'of 10 000 uses are held exactly by 8 processes with 64 callers each',
    { timeout: 120_000 },
    async () => {
      const { start, accepted } = await setUp({ uses: 10_000 }, newPlace(engine, url));
      await run(await start(8, 64));
      expect(accepted()).toBeLessThanOrEqual(10_000);
      // What one had leased when the others saw that nothing was left went back at its end.
      await run(await start(1, 64));
      expect(accepted()).toBe(10_000);
    },
  );

  it.skipIf(url === undefined)(
    `are never exceeded where a process is killed, ${SCHEDULES} times`,
    { timeout: 60_000 + SCHEDULES * 20_000 },
    async () => {
      for (let schedule = 0; schedule < SCHEDULES; schedule += 1) {
        const uses = 600;
        const { start, accepted } = await setUp({ uses }, newPlace(engine, url));
        const nodes = await start(4, 16);
        const running = run(nodes);
        // A different moment and a different process each time.
        while (accepted() < (schedule * 137) % (uses / 2)) await delay(1);
        nodes[schedule % 4]?.kill('SIGKILL');
        await running;
        await run(await start(1, 16));

        expect(accepted()).toBeLessThanOrEqual(uses);
        // What the killed process had leased is lost: a part of the limit at most, twice over.
        expect(accepted()).toBeGreaterThanOrEqual(uses - (2 * uses) / 16 - 16);
      }
    },
  );

  it.skipIf(url === undefined)(
    `of 50 uses a second are held by 4 processes, in each of ${WINDOWS} windows`,
    { timeout: 60_000 + WINDOWS * 2000 },
    async () => {
      const place = newPlace(engine, url);
      const { start, notes } = await setUp({ rate: { uses: 50, seconds: 1 } }, place);
      const nodes = await start(4, 8);
      await run(nodes, { until: Date.now() + 500 + WINDOWS * 1000 });
      const windows = new Map<string, number>();
      for (const window of notes().join('').split('\n').filter(Boolean)) {
        windows.set(window, (windows.get(window) ?? 0) + 1);
      }

      expect(Math.max(...windows.values())).toBeLessThanOrEqual(50);
      expect(windows.size).toBeGreaterThanOrEqual(Math.min(WINDOWS, 2));
    },
  );
});

describe('limits in memory', () => {
  it('of 50 uses a second are held by 4 services, in each of 1000 windows', async () => {
    const clock = manualClock();
    const [store, key, limits] = [new MemoryTokenStore(), generateKey(), new MemoryLeaseStore()];
    const services = Array.from(
      { length: 4 },
      () =>
        new TokenService({ store, keys: [key], prefix: 'acme', clock, limits: { store: limits } }),
    ) as [TokenService, ...TokenService[]];
    const rate = { uses: 50, seconds: 1 };
    const [first] = services;
    const { value } = await first.issue({ account: 'acme', scopes: [SCOPE], limits: { rate } });
    const counts = new Set<number>();
    for (let window = 0; window < 1000; window += 1) {
      const calls = Array.from({ length: 100 }, (_, index) =>
        services[index % 4]?.verify(value, { scope: SCOPE }),
      );
      counts.add((await Promise.all(calls)).filter((verdict) => verdict?.ok).length);
      clock.advance(1);
    }
    for (const service of services) await service.close();

    expect(Math.max(...counts)).toBeLessThanOrEqual(50);
    expect(Math.max(...counts)).toBeGreaterThan(25);
  });
});

describe('limits by a counter that is read first and written later', () => {
  it('are exceeded: the test would notice', { timeout: 120_000 }, async () => {
    const uses = 1000;
    const { start, accepted } = await setUp({ uses }, 'a counter');
    await run(await start(4, 16));
    expect(accepted()).toBeGreaterThan(uses);
  });
});
