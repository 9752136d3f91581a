import { spawnSync } from 'node:child_process';
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  generateKey,
  type IssuedToken,
  isTokenError,
  TokenService,
  type TokenStore,
} from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { type StoreFault, withFaults } from '../../src/testing/index.ts';
import { startServer } from '../servers.ts';
import { SCOPE } from '../support.ts';
import * as engines from './engines.ts';
import {
  callAll,
  DEADLINE_MS,
  lost,
  prepare,
  RECOVERY_MS,
  recovery,
  violations,
} from './outage.ts';

const isRoot = process.getuid?.() === 0;
const TOO_MANY = 20_000;
const LEFT = 256 * 1024;

/** A store whose data lie where room can be taken away. */
interface Home {
  readonly store: TokenStore;
  fill(): Promise<void>;
  /** Starts again what has ended for want of room. */
  makeRoom(): Promise<void>;
}

interface Place {
  readonly name: string;
  readonly isMissing: boolean;
  moveIn(): Promise<Home>;
}

const PLACES: readonly Place[] = [
  { name: 'SQLite', isMissing: !isRoot, moveIn: moveSqlite },
  ...engines.DRIVERS.map((driver) => ({
    name: driver.name,
    isMissing: !isRoot || engines.isMissing(driver),
    moveIn: () => moveServer(driver),
  })),
  {
    name: 'Redis, out of memory',
    isMissing: engines.isMissing(engines.overIoredis),
    moveIn: moveRedis,
  },
];

describe.each(PLACES)('no room left, which mostly needs root to set up, under $name', (place) => {
  it.skipIf(place.isMissing)('loses nothing that was acknowledged', async ({ annotate }) => {
    const home = await place.moveIn();
    const tokens = serviceOver(home.store);
    const subjects = await prepare(tokens);

    await home.fill();
    const issued = await issueUntilRefused(tokens);
    const answers = await callAll(tokens, subjects);
    await home.makeRoom();
    const recoveryMs = await recovery(tokens);

    const refused = answers.filter(({ outcome }) => outcome !== 'right').map(({ verb }) => verb);
    await annotate(
      `${issued.length} issued, then refused: ${[...new Set(refused)]}; back after ${Math.round(recoveryMs)} ms`,
    );
    // That it was full: a call after that may find room again, in a page that was given back.
    expect(issued.length).toBeLessThan(TOO_MANY);
    expect(violations(answers, 'right', 'store_unavailable')).toEqual([]);
    expect(recoveryMs).toBeLessThan(RECOVERY_MS);
    expect(await lost(tokens, subjects, answers)).toEqual([]);
    expect(await missing(tokens, issued)).toEqual([]);
  });
});

it.skipIf(!isRoot)('would notice a store that takes a full disk for a success', async () => {
  const home = await moveSqlite();
  const tokens = serviceOver(withFaults(home.store, swallowing));

  await home.fill();
  const issued = await issueUntilRefused(tokens, 2000);

  expect(issued).toHaveLength(2000);
  expect((await missing(tokens, issued)).length).toBeGreaterThan(0);
});

const swallowing: StoreFault = (_, run) => run().catch(() => {});

async function moveSqlite(): Promise<Home> {
  const disk = mountDisk(8);
  const store = SqliteTokenStore.open(join(disk.folder, 'tokens.db'));
  onTestFinished(() => store.close());
  return { store, fill: async () => disk.fill(), makeRoom: async () => disk.clear() };
}

async function moveServer(driver: engines.Driver): Promise<Home> {
  const engine = driver.engine as keyof typeof DISKS;
  const { megabytes, settings } = DISKS[engine];
  const disk = mountDisk(megabytes);
  const folder = join(disk.folder, 'server');
  mkdirSync(folder);
  const server = await startServer(engine, { folder, settings });
  onTestFinished(() => server.stop());
  await driver.prepare(server.url);
  const opened = driver.open(server.url, { deadlineMs: DEADLINE_MS, connections: 2 });
  onTestFinished(() => opened.close());
  return {
    store: opened.store,
    fill: async () => disk.fill(),
    async makeRoom() {
      disk.clear();
      do {
        if (engines.hasEnded(server)) await server.restart();
      } while (!(await answers(driver, server.url)));
    },
  };
}

/** False too of a server that is about to end for want of room, which holds its callers until it has. */
function answers(driver: engines.Driver, url: string): Promise<boolean> {
  return driver.prepare(url).then(
    () => true,
    () => false,
  );
}

async function moveRedis(): Promise<Home> {
  const driver = engines.overIoredis;
  const servers = await engines.start(driver);
  onTestFinished(() => servers.stop());
  const opened = driver.open(servers.url, { deadlineMs: DEADLINE_MS });
  onTestFinished(() => opened.close());
  const administer = async (work: (client: Redis) => Promise<unknown>) => {
    const client = new Redis(servers.url);
    await work(client);
    client.disconnect();
  };
  return {
    store: opened.store,
    fill: () =>
      administer(async (client) => {
        const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
        await client.config('SET', 'maxmemory', used + LEFT);
      }),
    makeRoom: () => administer((client) => client.config('SET', 'maxmemory', 0)),
  };
}

/** Room for the empty database and a little more. */
const DISKS = {
  postgres: { megabytes: 96, settings: {} },
  mariadb: { megabytes: 192, settings: { 'innodb-log-file-size': '8M' } },
  redis: { megabytes: 1, settings: {} },
};

function mountDisk(megabytes: number): { folder: string; fill(): void; clear(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'tokenwright-disk-'));
  const ballast = join(folder, 'ballast');
  run('mount', '-t', 'tmpfs', '-o', `size=${megabytes}m,mode=755`, 'tmpfs', folder);
  onTestFinished(() => {
    run('umount', '--lazy', folder);
    rmSync(folder, { recursive: true });
  });
  return { folder, fill: () => fillWith(ballast), clear: () => rmSync(ballast) };
}

/** Leaves a little, so that the last of it is taken in the middle of the work. */
function fillWith(file: string): void {
  const descriptor = openSync(file, 'w');
  try {
    for (;;) writeSync(descriptor, Buffer.alloc(4096));
  } catch (error) {
    expect(error).toMatchObject({ code: 'ENOSPC' });
  } finally {
    ftruncateSync(descriptor, fstatSync(descriptor).size - LEFT);
    closeSync(descriptor);
  }
}

function run(program: string, ...args: readonly string[]): void {
  expect(spawnSync(program, args).status, `${program} ${args.join(' ')}`).toBe(0);
}

function serviceOver(store: TokenStore): TokenService {
  return new TokenService({
    store,
    keys: [generateKey()],
    prefix: 'acme',
    deadlineMs: DEADLINE_MS,
  });
}

/** What is issued until it is refused: a disk that is full has room for some more in what is there. */
async function issueUntilRefused(tokens: TokenService, max = TOO_MANY): Promise<IssuedToken[]> {
  const issued: IssuedToken[] = [];
  try {
    while (issued.length < max) {
      issued.push(await tokens.issue({ account: 'grace', scopes: [SCOPE] }));
    }
  } catch (error) {
    if (!isTokenError(error) || error.code !== 'store_unavailable') throw error;
  }
  return issued;
}

async function missing(tokens: TokenService, issued: readonly IssuedToken[]): Promise<string[]> {
  const verdicts = await Promise.all(
    issued.map(({ value }) => tokens.verify(value, { scope: SCOPE })),
  );
  return issued.filter((_, place) => !verdicts[place]?.ok).map(({ id }) => id);
}
