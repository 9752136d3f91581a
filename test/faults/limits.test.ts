import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { generateKey, MemoryTokenStore, type TokenLimits, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { manualClock } from '../../src/testing/index.ts';
import { prepareStore, type StoreEngine, type StorePlace } from '../stores/engines.ts';
import { SCOPE } from '../support.ts';
import type { JobAnswer, LimitedJob } from './limited-node.ts';

/** How often a process is killed on each engine. */
const SCHEDULES = Number(process.env['LIMIT_SCHEDULES'] ?? 2);
/** How many windows of one second are watched, on each engine. */
const WINDOWS = Number(process.env['LIMIT_WINDOWS'] ?? 3);

const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
const urls = inject('servers');
const ENGINES: readonly (readonly [StoreEngine, string | undefined])[] = [
  // In a folder of its own: leases are in a file beside that of the tokens.
  ['sqlite', join(mkdtempSync(join(folder, 'sqlite-')), 'tokens.db')],
  ['postgres', urls.postgres],
  ['mariadb', urls.mariadb],
  ['redis', urls.redis],
  ['redisCluster', urls.redisCluster],
];

const key = generateKey();
const file = join(folder, 'tokens.db');
const service = new TokenService({
  store: SqliteTokenStore.openFile(file),
  keys: [key],
  prefix: 'acme',
  limits: true,
});
/** Processes that are reused by the next test, because a start takes long. */
const nodes: ChildProcess[] = [];

afterAll(async () => {
  for (const node of nodes) node.kill('SIGKILL');
  await service.close();
  rmSync(folder, { recursive: true, force: true });
});

async function newPlace(engine: StoreEngine, url = ''): Promise<StorePlace> {
  const place = { engine, url, name: `limits_${randomBytes(8).toString('hex')}` };
  await prepareStore(place);
  return place;
}

/** Issues a limited token that several processes share. */
async function newToken(leases: LimitedJob['leases'], limits: TokenLimits) {
  const { id: account, value } = await service.issue({ account: 'acme', scopes: [SCOPE], limits });
  const files: string[] = [];
  /** Starts some processes at the same time; resolves to the answers of those that were not killed. */
  const use = async (count: number, { callers, ms }: Pick<LimitedJob, 'callers' | 'ms'>) => {
    const jobs = Array.from({ length: count }, (_, index): readonly [ChildProcess, LimitedJob] => {
      const notes = join(folder, `notes-${account}-${files.length}`);
      writeFileSync(notes, '');
      files.push(notes);
      const job = { leases, tokens: file, key, value, callers, notes, ...(ms && { ms }) };
      return [nodeOf(index), { id: nextId(), ...job }];
    });
    await Promise.all(jobs.map(([node, job]) => answerOf(node, job)));
    const answers = await Promise.all(jobs.map(([node, { id }]) => answerOf(node, id)));
    return answers.filter((answer) => answer !== undefined);
  };
  const notes = () => files.map((each) => readFileSync(each, 'utf8'));
  const accepted = () => notes().reduce((sum, count) => sum + Number(count), 0);
  return { use, notes, accepted };
}

let ids = 0;
function nextId(): number {
  ids += 1;
  return ids;
}

/** One of the processes; a new one if it was killed. */
function nodeOf(index: number): ChildProcess {
  const known = nodes[index];
  if (known?.connected) return known;
  const node = fork(join(import.meta.dirname, 'limited-node.ts'));
  nodes[index] = node;
  return node;
}

/** The answer of a process to a message; `undefined` if it exited. */
function answerOf(
  node: ChildProcess,
  message: LimitedJob | number,
): Promise<JobAnswer | undefined> {
  const id = typeof message === 'object' ? message.id : message;
  return new Promise((resolve) => {
    const settle = (answer?: JobAnswer) => {
      node.off('message', onMessage);
      node.off('exit', onExit);
      resolve(answer);
    };
    const onMessage = (answer: unknown) => {
      if ((answer as JobAnswer).id === id) settle(answer as JobAnswer);
    };
    const onExit = () => settle();
    node.on('message', onMessage);
    node.on('exit', onExit);
    node.send(message, (error) => error && settle());
  });
}

function failuresIn(answers: readonly JobAnswer[]): number {
  return answers.reduce((sum, { failures }) => sum + failures, 0);
}

describe.each(ENGINES)('limits on %s', (engine, url) => {
  it.skipIf(url === undefined)(
    'allow exactly 10 000 uses across 8 processes with 64 callers each',
    { timeout: 120_000 },
    async () => {
      const place = await newPlace(engine, url);
      const { use, accepted } = await newToken(place, { uses: 10_000 });
      const answers = await use(8, { callers: 64 });
      expect(answers).toHaveLength(8);
      expect(accepted()).toBeLessThanOrEqual(10_000);
      // A process may have held leases when the others found nothing left. It gave them back at its end.
      answers.push(...(await use(1, { callers: 64 })));
      expect(accepted()).toBe(10_000);
      expect(failuresIn(answers)).toBe(0);
    },
  );
});

/** Starts four processes that use up a token. */
async function startedOn(place: StorePlace, uses: number) {
  const token = await newToken(place, { uses });
  const started = { ...token, engine: place.engine, isOver: false };
  const running = token.use(4, { callers: 16 }).finally(() => {
    started.isOver = true;
  });
  return Object.assign(started, { running });
}

const READY = ENGINES.filter(([, url]) => url !== undefined);

// On all engines at the same time, so that each schedule starts one new process and each window waits once.
describe(`limits on ${READY.map(([engine]) => engine).join(', ')}`, () => {
  it(`are never exceeded when a process is killed, ${SCHEDULES} times`, {
    timeout: 60_000 + SCHEDULES * 20_000,
  }, async () => {
    const uses = 600;
    const places = await Promise.all(READY.map(([engine, url]) => newPlace(engine, url)));
    const hits = new Map<StoreEngine, number>();
    for (let schedule = 0; schedule < SCHEDULES; schedule += 1) {
      const tries = await Promise.all(places.map((place) => startedOn(place, uses)));
      const watched = tries[schedule % tries.length];
      // A different moment and process each time, measured by the uses on one of the engines.
      const moment = Math.floor(((schedule * 0.618034) % 1) * uses);
      while (watched?.isOver === false && watched.accepted() < moment) await delay(1);
      const node = nodeOf(schedule % 4);
      node.kill('SIGKILL');
      for (const { engine, accepted } of tries) {
        const isHit = accepted() > 0 && accepted() < uses;
        hits.set(engine, (hits.get(engine) ?? 0) + Number(isHit));
      }
      if (node.connected) await once(node, 'exit');

      for (const { engine, running, use, accepted } of tries) {
        const answers = [...(await running), ...(await use(1, { callers: 16 }))];
        expect([engine, accepted()]).toEqual([engine, Math.min(accepted(), uses)]);
        // On a busy machine, a call of the store may time out and lose what it was granted.
        if (failuresIn(answers) > 0) continue;
        // The leases of the killed process are lost: at most two, each a sixteenth of the limit.
        expect(accepted()).toBeGreaterThanOrEqual(uses - (2 * uses) / 16 - 16);
      }
    }
    // Enough processes must be killed while they use the token, and not before or after that.
    if (SCHEDULES >= 20) expect(Math.min(...hits.values())).toBeGreaterThan(SCHEDULES / 20);
  });

  it(`allow at most 50 uses a second across 4 processes, in each of ${WINDOWS} windows`, {
    timeout: 60_000 + WINDOWS * 2000,
  }, async () => {
    const rate = { uses: 50, seconds: 1 };
    // All engines at the same time, because they mostly wait.
    const watched = READY.map(async ([engine, url]) => {
      const { use, notes } = await newToken(await newPlace(engine, url), { rate });
      const answers = await use(4, { callers: 8, ms: 500 + WINDOWS * 1000 });
      const windows = new Map<string, number>();
      for (const window of notes().join('').split('\n').filter(Boolean)) {
        windows.set(window, (windows.get(window) ?? 0) + 1);
      }
      return { engine, windows, answers };
    });
    for (const { engine, windows, answers } of await Promise.all(watched)) {
      const most = Math.max(...windows.values());
      expect([engine, answers.length, most]).toEqual([engine, 4, Math.min(most, 50)]);
      expect(most).toBeGreaterThan(25);
      expect(windows.size).toBeGreaterThanOrEqual(Math.min(WINDOWS, 2));
    }
  });
});

describe('limits in memory', () => {
  const clock = manualClock();
  const serviceOn = (store: MemoryTokenStore) =>
    new TokenService({ store, keys: [key], prefix: 'acme', clock, limits: true });

  /** Services that share one token, like the processes in the other tests. */
  async function setUp(count: number, limits: TokenLimits) {
    const store = new MemoryTokenStore({ clock });
    const services = Array.from({ length: count }, () => serviceOn(store));
    const [first = serviceOn(store)] = services;
    const { value } = await first.issue({ account: 'acme', scopes: [SCOPE], limits });
    return { services, value };
  }

  it('allow exactly 10 000 uses across 8 services with 64 callers each', async () => {
    const { services, value } = await setUp(9, { uses: 10_000 });
    const last = services.pop() as TokenService;
    let accepted = 0;
    const call = async (tokens: TokenService) => {
      while ((await tokens.verify(value, { scope: SCOPE })).ok) accepted += 1;
    };
    const callers = services.flatMap((tokens) => Array.from({ length: 64 }, () => call(tokens)));
    await Promise.all(callers);
    for (const tokens of services) await tokens.close();
    expect(accepted).toBeLessThanOrEqual(10_000);
    await call(last);
    await last.close();
    expect(accepted).toBe(10_000);
  });

  it('allow at most 50 uses a second across 4 services, in each of 1000 windows', async () => {
    const { services, value } = await setUp(4, { rate: { uses: 50, seconds: 1 } });
    const counts = new Set<number>();
    for (let window = 0; window < 1000; window += 1) {
      const calls = Array.from({ length: 100 }, (_, index) =>
        services[index % 4]?.verify(value, { scope: SCOPE }),
      );
      counts.add((await Promise.all(calls)).filter((verdict) => verdict?.ok).length);
      clock.advance(1);
    }
    for (const tokens of services) await tokens.close();

    expect(Math.max(...counts)).toBeLessThanOrEqual(50);
    expect(Math.max(...counts)).toBeGreaterThan(25);
  });
});

describe('limits over a counter that is read first and written later', () => {
  it('are exceeded (the control)', { timeout: 120_000 }, async () => {
    const uses = 1000;
    const counter = join(folder, 'counter');
    writeFileSync(counter, '0');
    const { use, accepted } = await newToken(counter, { uses });
    await use(4, { callers: 16 });
    expect(accepted()).toBeGreaterThan(uses);
  });
});
