import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { doctor, generateKey, isTokenError, TokenService } from '../../src/index.ts';
import type { TokenRecord } from '../../src/token/record.ts';
import { OTHER_SCOPE, SCOPE } from '../support.ts';
import * as engines from './engines.ts';

const CYCLES = Number(process.env['KILL_CYCLES'] ?? 5);
/** How many tokens are changed concurrently. */
const WORKERS = 4;
const DEADLINE_MS = 2000;

const keys = [generateKey()];
const account = 'ada';

/** A token and how many of its steps were acknowledged: issue, modify, rotate and revoke. */
interface Life {
  readonly id: TokenRecord['id'];
  value: string;
  steps: number;
  /** Whether one more step was under way when the server was killed. */
  isOpen: boolean;
}

interface Engine {
  readonly driver: engines.Driver;
  /** Server settings with which no change may be lost. */
  readonly settings: Readonly<Record<string, string>>;
  /** Server settings with which the server loses acknowledged changes, and what `doctor` reports then. */
  readonly weak?: { readonly settings: Readonly<Record<string, string>>; readonly finding: string };
}

/** The server acknowledges commits before they are on disk, and writes only every ten seconds. */
const LAZY_POSTGRES = { synchronous_commit: 'off', wal_writer_delay: '10s' };

const ENGINES: readonly Engine[] = [
  { driver: engines.overPg, settings: LAZY_POSTGRES },
  {
    driver: engines.overMysql2,
    settings: {},
    weak: {
      settings: { 'innodb-flush-log-at-trx-commit': '0', 'innodb-flush-log-at-timeout': '1000' },
      finding: 'log_not_flushed_at_commit',
    },
  },
  {
    driver: engines.overIoredis,
    settings: {},
    weak: { settings: { appendonly: 'no' }, finding: 'append_only_off' },
  },
];

describe.each(ENGINES)(
  'kill -9 of the server behind $driver.name',
  ({ driver, settings, weak }) => {
    it.skipIf(engines.isMissing(driver))(
      `loses no acknowledged change in ${CYCLES} kills`,
      {
        timeout: 20_000 + CYCLES * 10_000,
      },
      async ({ annotate }) => {
        const servers = await startServers(driver, settings);
        const lives: Life[] = [];
        for (let cycle = 0; cycle < CYCLES; cycle++) {
          // A different number each time, so that each kill interrupts a write at a different moment.
          lives.push(...(await workUntilKilled(driver, servers, 50 + ((cycle * 37) % 150))));
        }

        const steps = lives.reduce((sum, life) => sum + life.steps, 0);
        const lost = await lostOf(driver, servers, lives);
        await annotate(`${steps} acknowledged, ${lost.length} lost`);
        expect(lost).toEqual([]);
      },
    );

    it.skipIf(weak === undefined || engines.isMissing(driver))(
      'loses changes with weaker settings, which doctor reports (the control)',
      async ({ annotate }) => {
        const servers = await startServers(driver, weak?.settings);
        const opened = driver.open(servers.url, { deadlineMs: DEADLINE_MS });
        const findings = await doctor(opened.store);
        await opened.close();

        const lives = await workUntilKilled(driver, servers, 200);

        const lost = await lostOf(driver, servers, lives);
        await annotate(`200 acknowledged, ${lost.length} tokens lost`);
        expect(findings.map(({ code }) => code)).toContain(weak?.finding);
        expect(lost.length).toBeGreaterThan(0);
      },
    );
  },
);

it.skipIf(engines.isMissing(engines.overPg))(
  'the same PostgreSQL server loses acknowledged writes of a bare driver (the control)',
  async ({ annotate }) => {
    const servers = await startServers(engines.overPg, LAZY_POSTGRES);
    await ask(servers, 'CREATE TABLE bare (number integer)', 'CHECKPOINT');

    const inserts = Array.from({ length: 50 }, (_, n) => `INSERT INTO bare VALUES (${n})`);
    await ask(servers, ...inserts);
    await Promise.all(servers.nodes.map(engines.kill));
    await Promise.all(servers.nodes.map((server) => server.restart()));

    const kept = await ask(servers, 'SELECT number FROM bare');
    await annotate(`50 acknowledged, ${50 - kept.length} lost`);
    expect(kept.length).toBeLessThan(50);
  },
);

async function startServers(
  driver: engines.Driver,
  settings: Readonly<Record<string, string>> = {},
): Promise<engines.Servers> {
  const servers = await engines.start(driver, settings);
  onTestFinished(() => servers.stop());
  await driver.prepare(servers.url);
  return servers;
}

/** Takes tokens through their lives, kills the server after `steps` steps, and restarts it. */
async function workUntilKilled(
  driver: engines.Driver,
  { url, nodes }: engines.Servers,
  steps: number,
): Promise<Life[]> {
  const opened = driver.open(url, { deadlineMs: DEADLINE_MS });
  const tokens = serviceOver(opened);
  const lives: Life[] = [];
  let left = steps;
  const killing = Promise.withResolvers<void>();
  const work: Work = {
    isOver: () => left <= 0,
    acknowledge() {
      left -= 1;
      if (left === 0) killing.resolve(Promise.all(nodes.map(engines.kill)).then(() => {}));
    },
  };
  await Promise.all(Array.from({ length: WORKERS }, () => workOn(tokens, lives, work)));
  await killing.promise;
  // Close first: retries of the store must not hide what the server has lost.
  await opened.close();
  await Promise.all(nodes.map((server) => server.restart()));
  return lives;
}

interface Work {
  isOver(): boolean;
  acknowledge(): void;
}

async function workOn(tokens: TokenService, lives: Life[], work: Work): Promise<void> {
  try {
    while (!work.isOver()) await liveThrough(tokens, lives, work);
  } catch (error) {
    if (!isTokenError(error) || error.code !== 'store_unavailable') throw error;
  }
}

async function liveThrough(tokens: TokenService, lives: Life[], work: Work): Promise<void> {
  const { id, value } = await tokens.issue({ account, scopes: [SCOPE] });
  const life: Life = { id, value, steps: 1, isOpen: false };
  lives.push(life);
  work.acknowledge();
  // Some tokens stop after each step, so that any step can be the last one acknowledged.
  const steps = STEPS.slice(0, lives.length % (STEPS.length + 1));
  for (const step of steps) {
    if (work.isOver()) return;
    life.isOpen = true;
    await step(tokens, life);
    life.isOpen = false;
    life.steps += 1;
    work.acknowledge();
  }
}

/** The steps after issue. */
const STEPS: readonly ((tokens: TokenService, life: Life) => Promise<void>)[] = [
  async (tokens, { id }) => {
    await tokens.modify(account, id, { scopes: [OTHER_SCOPE] });
  },
  async (tokens, life) => {
    life.value = (await tokens.rotate(account, life.id)).value;
  },
  async (tokens, { id }) => {
    expect(await tokens.revoke(account, id)).toBe(true);
  },
];

/** Acknowledged steps that a new store does not find. */
async function lostOf(
  driver: engines.Driver,
  { url }: engines.Servers,
  lives: readonly Life[],
): Promise<string[]> {
  const opened = driver.open(url, { deadlineMs: DEADLINE_MS });
  const tokens = serviceOver(opened);
  const losses: string[] = [];
  for (const { id, value, steps, isOpen } of lives) {
    const [record] = await opened.store.find([id]);
    const found = stepsIn(record);
    const verdict = await tokens.verify(value, { scope: SCOPE });
    const isUnknown = !verdict.ok && verdict.reason === 'unknown';
    if (found < steps || found > steps + Number(isOpen)) losses.push(`${found} steps for ${steps}`);
    else if (isUnknown && !isOpen) losses.push('a value');
  }
  await opened.close();
  return losses;
}

function stepsIn(record: TokenRecord | undefined): number {
  if (record === undefined) return 0;
  return record.revokedAt === undefined ? record.version : 1 + STEPS.length;
}

function serviceOver({ store }: engines.Opened): TokenService {
  return new TokenService({ store, keys, prefix: 'acme', deadlineMs: DEADLINE_MS });
}

/** Sends statements over a bare driver, and returns the rows of the last one. */
async function ask({ url }: engines.Servers, ...statements: readonly string[]): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  let rows: unknown[] = [];
  for (const statement of statements) rows = (await client.query(statement)).rows;
  await client.end();
  return rows;
}
