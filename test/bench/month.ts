// What a million tokens cost for a month, a part of bench:growth: tables of that size, and nodes that get the
// month's requests at their real rate for a minute.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Pool } from 'pg';
import { generateKey, type IssuedToken, TokenService, type TokenStore } from '../../src/index.ts';
import { migrate, PostgresTokenStore } from '../../src/stores/postgres/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { startServer } from '../servers.ts';
import { ACCOUNT, fillPostgres, fillSqlite, issueMany, openToFill, quotas } from './filling.ts';
import { type Measured, MONTH, MONTH_ROWS } from './growth-page.ts';
import type { MonthNode, NodeMinute } from './month-node.ts';
import { serverCpuSince, serverCpuUs } from './server-cpu.ts';

/** More than the default cache has room for. None comes again while it is in the cache: with a million it would not. */
const TOKENS_OF_NODE = 12_000;
const RUN_MS = 60_000;
/** Until the counts of the first uses are written. */
const SETTLE_MS = 12_000;
const SAMPLES = MONTH.nodes * TOKENS_OF_NODE;

const keys = [generateKey()];
const others = { first: 0, count: MONTH_ROWS - SAMPLES };

export async function month(folder: string, say: (text: string) => void): Promise<Measured> {
  const facts: Record<string, number> = {};
  const server = await startServer('postgres', {
    // The tables are filled faster so; the CPU is the same.
    settings: { shared_buffers: '1GB', max_wal_size: '8GB', fsync: 'off' },
  });
  const pool = new Pool({ connectionString: server.url });
  const nodes: Record<string, ChildProcess[]> = {};
  try {
    say(`filling with ${MONTH_ROWS} tokens and their usage`);
    await migrate(pool);
    const store = new PostgresTokenStore(pool);
    const issued: Record<string, IssuedToken[]> = { PostgreSQL: await issueSamples(store) };
    // SQLite works in this process meanwhile.
    const filled = fillMonthPostgres(pool, facts);
    issued['SQLite'] = await fillMonthSqlite(join(folder, 'month'), facts);
    await filled;
    say('filled');
    for (const [engine, tokens] of Object.entries(issued)) {
      const place = engine === 'SQLite' ? join(folder, 'month') : server.url;
      nodes[engine] = await startNodes(engine, place, tokens);
    }
    await setTimeout(SETTLE_MS);
    const before = serverCpuUs(server.pid);
    say(`measuring for ${RUN_MS / 1000} s`);
    const minutes = await Promise.all(
      Object.entries(nodes).map(async ([engine, children]) => {
        const answers = await Promise.all(children.map((child) => askMinute(child)));
        return [engine, answers] as const;
      }),
    );
    facts['server CPU, PostgreSQL'] = serverCpuSince(server.pid, before) / RUN_MS / 1000;
    for (const [engine, answers] of minutes) addFacts(facts, engine, answers);
    return { curves: [], facts };
  } finally {
    for (const child of Object.values(nodes).flat()) child.kill('SIGKILL');
    await pool.end();
    await server.stop();
  }
}

async function fillMonthSqlite(
  folder: string,
  facts: Record<string, number>,
): Promise<IssuedToken[]> {
  mkdirSync(folder);
  const [path, usagePath] = [join(folder, 'tokens.db'), join(folder, 'usage.db')];
  const store = SqliteTokenStore.open(folder);
  await store.usage.since?.();
  const issued = await issueSamples(store);
  const handle = openToFill(path);
  await fillSqlite(handle, ACCOUNT, others);
  handle.exec(`ATTACH '${usagePath}' AS usage;
    INSERT INTO usage.uses SELECT tokens.id, value, ${MONTH.uses / 5}, created_at FROM tokens, json_each(scopes)`);
  handle.close();
  facts['tokens bytes, SQLite'] = statSync(path).size;
  facts['usage bytes, SQLite'] = statSync(usagePath).size;
  return issued;
}

async function issueSamples(store: TokenStore): Promise<IssuedToken[]> {
  const tokens = new TokenService({ store, keys, prefix: 'acme', quotas });
  const issued = await issueMany(tokens, 'ada', SAMPLES);
  await tokens.close();
  return issued;
}

async function fillMonthPostgres(pool: Pool, facts: Record<string, number>): Promise<void> {
  await fillPostgres(pool, 'tokenwright_tokens', ACCOUNT, others);
  await pool.query(
    `INSERT INTO tokenwright_usage (id, scope, uses, last_used_at)
     SELECT id, scope, $1::integer, created_at
     FROM tokenwright_tokens, json_array_elements_text(scopes::json) AS scope`,
    [MONTH.uses / 5],
  );
  await pool.query('VACUUM ANALYZE tokenwright_tokens, tokenwright_usage');
  const { rows } = await pool.query(
    `SELECT pg_total_relation_size('tokenwright_tokens') AS tokens,
       pg_total_relation_size('tokenwright_usage') AS usage`,
  );
  facts['tokens bytes, PostgreSQL'] = Number(rows[0].tokens);
  facts['usage bytes, PostgreSQL'] = Number(rows[0].usage);
  await pool.query('CHECKPOINT');
}

/** Their caches are full when they are ready. */
async function startNodes(
  engine: string,
  place: string,
  issued: readonly IssuedToken[],
): Promise<ChildProcess[]> {
  const starting = Array.from({ length: MONTH.nodes }, async (_, node) => {
    const child = fork(join(import.meta.dirname, 'month-node.ts'));
    const ready = once(child, 'message');
    const values = issued
      .slice(node * TOKENS_OF_NODE, (node + 1) * TOKENS_OF_NODE)
      .map(({ value }) => value);
    child.send({ engine, place, keys, values, forMs: RUN_MS } satisfies MonthNode);
    await ready;
    return child;
  });
  return Promise.all(starting);
}

async function askMinute(child: ChildProcess): Promise<NodeMinute> {
  const answer = once(child, 'message');
  child.send('go');
  return (await answer)[0];
}

function addFacts(
  facts: Record<string, number>,
  engine: string,
  answers: readonly NodeMinute[],
): void {
  const sum = (of: (one: NodeMinute) => number) =>
    answers.reduce((all, one) => all + of(one), 0) / (RUN_MS / 1000);
  facts[`verifies, ${engine}`] = sum(({ verifies }) => verifies);
  for (const kind of ['reads', 'usage', 'changes', 'other'] as const) {
    facts[`${kind}, ${engine}`] = sum(({ statements }) => statements[kind]);
  }
  facts[`node CPU, ${engine}`] = sum(({ cpuUs }) => cpuUs) / 1e6;
  facts[`new memory, ${engine}`] = Math.max(...answers.map(({ newRss }) => newRss));
  facts[`memory, ${engine}`] = Math.max(...answers.map(({ rss }) => rss));
}
