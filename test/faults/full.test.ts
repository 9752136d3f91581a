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

/** A store whose disk or memory the test can fill up. */
interface LimitedStore {
  readonly store: TokenStore;
  fill(): Promise<void>;
  /** Frees the room, and restarts a server that exited because there was none. */
  makeRoom(): Promise<void>;
}

interface Setup {
  readonly name: string;
  readonly isMissing: boolean;
  open(): Promise<LimitedStore>;
}

const SETUPS: readonly Setup[] = [
  { name: 'SQLite', isMissing: !isRoot, open: sqliteOnSmallDisk },
  ...engines.DRIVERS.map((driver) => ({
    name: driver.name,
    isMissing: !isRoot || engines.isMissing(driver),
    open: () => serverOnSmallDisk(driver),
  })),
  {
    name: 'Redis with a memory limit',
    isMissing: engines.isMissing(engines.overIoredis),
    open: redisWithLittleMemory,
  },
];

describe.each(SETUPS)('a service over $name (disks need root)', ({ isMissing, open }) => {
  it.skipIf(isMissing)(
    'loses no acknowledged change when no room is left',
    async ({ annotate }) => {
      const limited = await open();
      const tokens = serviceOver(limited.store);
      const subjects = await prepare(tokens);

      await limited.fill();
      const issued = await issueUntilRefused(tokens);
      const answers = await callAll(tokens, subjects);
      await limited.makeRoom();
      const recoveryMs = await recovery(tokens);

      const refused = answers.filter(({ outcome }) => outcome !== 'right').map(({ verb }) => verb);
      await annotate(
        `${issued.length} issued, then refused: ${[...new Set(refused)]}; back after ${Math.round(recoveryMs)} ms`,
      );
      // It was full. Later calls may still succeed, because a freed page has room.
      expect(issued.length).toBeLessThan(TOO_MANY);
      expect(violations(answers, 'right', 'store_unavailable')).toEqual([]);
      expect(recoveryMs).toBeLessThan(RECOVERY_MS);
      expect(await lost(tokens, subjects, answers)).toEqual([]);
      expect(await missing(tokens, issued)).toEqual([]);
    },
  );
});

it.skipIf(!isRoot)(
  'a store that hides errors loses tokens on a full disk (the control)',
  async () => {
    const limited = await sqliteOnSmallDisk();
    const tokens = serviceOver(withFaults(limited.store, swallowing));

    await limited.fill();
    const issued = await issueUntilRefused(tokens, 2000);

    expect(issued).toHaveLength(2000);
    expect((await missing(tokens, issued)).length).toBeGreaterThan(0);
  },
);

const swallowing: StoreFault = (_, run) => run().catch(() => {});

async function sqliteOnSmallDisk(): Promise<LimitedStore> {
  const disk = mountDisk(8);
  const store = SqliteTokenStore.open(disk.folder);
  onTestFinished(() => store.close());
  return { store, fill: async () => disk.fill(), makeRoom: async () => disk.clear() };
}

async function serverOnSmallDisk(driver: engines.Driver): Promise<LimitedStore> {
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

/** Also false while a server is about to exit for lack of room: it blocks its callers until then. */
function answers(driver: engines.Driver, url: string): Promise<boolean> {
  return driver.prepare(url).then(
    () => true,
    () => false,
  );
}

async function redisWithLittleMemory(): Promise<LimitedStore> {
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

/** Leaves a little room, so that it runs out in the middle of the work. */
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

/** Issues tokens until one is refused: a full disk still has room in pages that are allocated. */
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
  return issued.filter((_, index) => !verdicts[index]?.ok).map(({ id }) => id);
}
