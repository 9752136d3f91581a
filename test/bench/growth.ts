// What costs grow with: scopes of a token, tokens of an account, tokens in all, nodes on one database.
// `npm run bench:growth`, or some parts by name: `npm run bench:growth -- scopes nodes`. `ROWS=10000000`
// is the largest table. Figures go to .cache/bench/growth.json, where those of other parts stay;
// `-- --write` puts all of them into docs/evidence/growth.md and docs/pictures.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Pool } from 'pg';
import {
  generateKey,
  type KeyOptions,
  MemoryTokenStore,
  TokenService,
  type TokenStore,
} from '../../src/index.ts';
import { ScopeSet } from '../../src/scope/index.ts';
import { migrate, PostgresTokenStore } from '../../src/stores/postgres/index.ts';
import type { Column } from '../../src/stores/shared/rows.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { type Server, startServer } from '../servers.ts';
import {
  CACHED,
  type Curve,
  type Figures,
  MAX_STALE_MS,
  type Measured,
  NODES,
  type PartName,
  type Point,
  writePage,
} from './growth-page.ts';
import { jumping } from './measure.ts';

const ROWS = Number(process.env['ROWS'] ?? 1_000_000);
const ROUNDS = 15;
const ROUND_MS = 30;
const WARM_MS = 300;

const ROOT = join(import.meta.dirname, '../..');
const FIGURES = join(ROOT, '.cache/bench/growth.json');

/** What is measured at one size for one curve. */
interface Plan {
  readonly curve: string;
  readonly size: number;
  readonly run: () => unknown;
  /** The median of the calls of a round instead of their mean. */
  readonly isMedianOfCalls?: boolean;
}

let folder = '';

function say(text: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);
}

/** All sizes take turns, so that the speed of the machine does not pass for growth. */
async function measure(plans: readonly Plan[]): Promise<Curve[]> {
  say(`measuring ${plans.length} points`);
  const running: { plan: Plan; count: number; costs: number[] }[] = [];
  for (const plan of plans) running.push({ plan, count: await calibrate(plan), costs: [] });
  for (let round = 0; round < ROUNDS; round++) {
    for (const { plan, count, costs } of running) costs.push(await costOf(plan, count));
  }
  const curves = Map.groupBy(running, ({ plan }) => plan.curve);
  return [...curves].map(([name, members]) => ({
    name,
    points: members.map(({ plan, costs }) => pointOf(plan.size, costs)),
  }));
}

async function calibrate(plan: Plan): Promise<number> {
  let count = 0;
  for (const end = performance.now() + WARM_MS; performance.now() < end; count++) await plan.run();
  return Math.max(1, Math.round((count * ROUND_MS) / WARM_MS));
}

async function costOf({ run, isMedianOfCalls = false }: Plan, count: number): Promise<number> {
  const calls: number[] = [];
  const start = performance.now();
  for (let i = 0; i < count; i++) {
    const callStart = isMedianOfCalls ? performance.now() : 0;
    const answer = run();
    if (answer instanceof Promise) await answer;
    if (isMedianOfCalls) calls.push((performance.now() - callStart) * 1000);
  }
  if (isMedianOfCalls) return shareOf(calls, 0.5);
  return ((performance.now() - start) * 1000) / count;
}

function pointOf(size: number, values: readonly number[]): Point {
  const [low, median, high] = [0.1, 0.5, 0.9].map((share) => shareOf(values, share));
  return { size, median: median as number, low: low as number, high: high as number };
}

function shareOf(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(share * sorted.length)] as number;
}

/** One of the items after the other, in an order that jumps about. */
function anyOf<Item>(items: readonly Item[]): () => Item {
  const next = jumping(items.length);
  return () => items[next()] as Item;
}

/** Throws when it is refused: what is measured has to be what is meant. */
function verifying(tokens: TokenService, next: () => string, scope: string): () => Promise<void> {
  return async () => {
    if (!(await tokens.verify(next(), { scope })).ok) throw new Error('refused');
  };
}

const SCOPE_COUNTS = [1, 10, 100, 1000, 4096];
const SET_SIZES = [1, 10, 100, 1000, 10_000];
/** Tokens of one size, each with other scopes. */
const COPIES = 16;
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Some twenty endpoints a host, a twentieth of them with all methods, as many with all subdomains. */
function scopesOf(count: number, copy: number): string[] {
  return Array.from({ length: count }, (_, i) => {
    const method = i % 20 === 9 ? '*' : METHODS[i % METHODS.length];
    const host = i % 20 === 19 ? `*.zone${i}` : `api${i % Math.ceil(count / 20)}`;
    return `${method}:${host}.acme.example/resource${i}-${copy}`;
  });
}

/** For each copy requests that one of its scopes allows. */
function requestsOf(count: number, copy: number) {
  const scopes = scopesOf(count, copy).filter((scope) => !scope.includes('*'));
  return Array.from({ length: 16 }, (_, i) => {
    const scope = scopes[(i * 7919) % scopes.length] as string;
    const [, method = '', domain = '', path = ''] = /^(.*?):(.*?)\/(.*)$/.exec(scope) ?? [];
    return { method, domain, target: `/${path}/7?full=1` };
  });
}

async function scopes(): Promise<Measured> {
  const options = { keys: [generateKey()], prefix: 'acme' };
  const cache = { maxStaleMs: 60_000 };
  const services: Readonly<Record<string, TokenService>> = {
    'verify, from the cache': new TokenService({
      store: new MemoryTokenStore(),
      ...options,
      cache,
    }),
    'verify, memory store': new TokenService({ store: new MemoryTokenStore(), ...options }),
    'verify, SQLite': new TokenService({
      store: SqliteTokenStore.openFile(join(folder, 'scopes.db')),
      ...options,
    }),
  };
  const plans: Plan[] = [];
  for (const [curve, tokens] of Object.entries(services)) {
    for (const size of SCOPE_COUNTS) {
      const questions: { value: string; request: ReturnType<typeof requestsOf>[number] }[] = [];
      for (let copy = 0; copy < COPIES; copy++) {
        const { value } = await tokens.issue({ account: 'ada', scopes: scopesOf(size, copy) });
        for (const request of requestsOf(size, copy)) questions.push({ value, request });
      }
      const next = anyOf(questions);
      const run = async () => {
        const { value, request } = next();
        if (!(await tokens.verify(value, request)).ok) throw new Error(`${curve} refuses`);
      };
      // The first verify of a token compiles its scopes: that is not what is measured.
      for (let i = 0; i < questions.length; i++) await run();
      plans.push({ curve, size, run });
    }
  }
  for (const size of SET_SIZES) {
    const questions = Array.from({ length: COPIES }, (_, copy) => {
      const set = ScopeSet.from(scopesOf(size, copy));
      return requestsOf(size, copy).map((request) => ({ set, request }));
    }).flat();
    const next = anyOf(questions);
    const run = () => {
      const { set, request } = next();
      if (!set.allows(request).allowed) throw new Error('allows refuses');
    };
    for (let i = 0; i < questions.length; i++) run();
    plans.push({ curve: 'ScopeSet.allows', size, run });
  }
  const curves = await measure(plans);
  for (const tokens of Object.values(services)) await tokens.close();
  return { curves, facts: { copies: COPIES } };
}

const TOKEN_SCOPES = METHODS.map((method) => `${method}:shop.example/orders`);
const NEED = 'GET:shop.example/orders/7';
const FILLED_FROM = 1_795_000_000_000;
const FILLED_UNTIL = 4_102_444_800_000;
/** So many tokens that can be verified lie among the others, in as many places as there are chunks. */
const SAMPLES = 20_000;
const CHUNKS = 20;
const ACCOUNTS = 1000;

/** So many rows at once: other databases are filled meanwhile, by turns of the event loop. */
const BATCH = 5000;

/** Rows as the store writes them, `count` from number `first` on; `account` is an expression of `i`. */
/** The columns that each token has. */
const FILLED = (
  [
    'id',
    'account',
    'prefix',
    'kid',
    'digest',
    'scopes',
    'requested',
    'created_at',
    'expires_at',
    'version',
  ] satisfies Column[]
).join(', ');

async function fillSqlite(
  handle: DatabaseSync,
  account: string,
  { first, count }: { first: number; count: number },
): Promise<void> {
  handle.exec('BEGIN');
  for (let from = first; from < first + count; from += BATCH) {
    const to = Math.min(from + BATCH, first + count);
    handle.exec(`
      INSERT INTO tokens (${FILLED})
      WITH RECURSIVE n(i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${to})
      SELECT substr(hex(randomblob(11)), 1, 22), ${account}, 'acme', 'k1', randomblob(32),
        '${JSON.stringify(TOKEN_SCOPES)}', '["*:shop.example/orders"]', ${FILLED_FROM} + i, ${FILLED_UNTIL} + i, 1
      FROM n`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  handle.exec('COMMIT');
}

/** A connection that fills: without the disk, and without reading pages twice. */
function openToFill(path: string): DatabaseSync {
  const handle = new DatabaseSync(path);
  handle.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -4000000');
  return handle;
}

async function issueMany(tokens: TokenService, account: string, count: number): Promise<string[]> {
  const values: string[] = [];
  while (values.length < count) {
    const length = Math.min(1000, count - values.length);
    const issuing = Array.from({ length }, () => tokens.issue({ account, scopes: TOKEN_SCOPES }));
    values.push(...(await Promise.all(issuing)).map(({ value }) => value));
  }
  return values;
}

/** More than one account has by default. */
const quotas = { tokensPerAccount: 1_000_000 };

const ACCOUNT_SIZES = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000];
const MEMORY_LIMIT = 100_000;
const LIMIT = 50;

async function accounts(): Promise<Measured> {
  const options = { keys: [generateKey()], prefix: 'acme', quotas };
  const path = join(folder, 'accounts.db');
  await SqliteTokenStore.openFile(path).close();
  say('filling accounts');
  const handle = openToFill(path);
  for (const size of ACCOUNT_SIZES) {
    const count = size - 1000;
    if (count > 0) await fillSqlite(handle, `'account${size}'`, { first: 0, count });
  }
  handle.close();
  const curves: Curve[] = [];
  const stores: Readonly<Record<string, TokenStore>> = {
    SQLite: SqliteTokenStore.openFile(path),
    memory: new MemoryTokenStore(),
  };
  for (const [name, store] of Object.entries(stores)) {
    const tokens = new TokenService({ store, ...options });
    const sizes = ACCOUNT_SIZES.filter((size) => name === 'SQLite' || size <= MEMORY_LIMIT);
    const [plans, issues]: [Plan[], Plan[]] = [[], []];
    for (const size of sizes) {
      const account = `account${size}`;
      const count = name === 'SQLite' ? Math.min(size, 1000) : size;
      const next = anyOf(await issueMany(tokens, account, count));
      plans.push({ curve: `verify, ${name}`, size, run: verifying(tokens, next, NEED) });
      const first = () => tokens.list({ account, limit: LIMIT });
      plans.push({ curve: `first page of ${LIMIT}, ${name}`, size, run: first });
      const cursor = size < 100 ? undefined : await cursorAfter(tokens, account, size / 2);
      if (cursor !== undefined) {
        const middle = () => tokens.list({ account, limit: LIMIT, cursor });
        plans.push({ curve: `page of ${LIMIT} in the middle, ${name}`, size, run: middle });
      }
      const issue = () => tokens.issue({ account, scopes: TOKEN_SCOPES });
      // The largest one is at its quota.
      if (size < quotas.tokensPerAccount) {
        issues.push({ curve: `issue, ${name}`, size, run: issue });
      }
    }
    curves.push(...(await measure(plans)));
    // Last, as accounts grow by it.
    curves.push(...(await measure(issues)));
    await tokens.close();
  }
  return { curves, facts: {} };
}

async function cursorAfter(tokens: TokenService, account: string, count: number): Promise<string> {
  let cursor: string | undefined;
  for (let seen = 0; seen < count; ) {
    const limit = Math.min(1000, count - seen);
    const page = await tokens.list({ account, limit, ...(cursor !== undefined && { cursor }) });
    cursor = page.cursor;
    seen += limit;
  }
  return cursor as string;
}

const TABLE_SIZES = [10_000, 100_000, 1_000_000, 10_000_000].filter((size) => size <= ROWS);

async function totals(): Promise<Measured> {
  const keys = [generateKey()];
  const facts: Record<string, number> = {};
  const server = await startServer('postgres', {
    settings: { shared_buffers: '2GB', max_wal_size: '16GB', maintenance_work_mem: '1GB' },
  });
  const pool = new Pool({ connectionString: server.url, max: 32 });
  try {
    const [sqlite, postgres] = await Promise.all([
      sqliteTables(keys, facts),
      postgresTables(pool, keys, facts),
    ]);
    await pool.query('CHECKPOINT');
    facts['PostgreSQL version'] = await versionOf(pool);
    const [plans, issues]: [Plan[], Plan[]] = [[], []];
    for (const [name, tables] of Object.entries({ SQLite: sqlite, PostgreSQL: postgres })) {
      for (const { size, tokens, values } of tables) {
        const run = verifying(tokens, anyOf(values), NEED);
        plans.push({ curve: `verify, ${name}`, size, run });
        plans.push({ curve: `verify, ${name}, p50`, size, run, isMedianOfCalls: true });
        const issue = () => tokens.issue({ account: 'account7', scopes: TOKEN_SCOPES });
        issues.push({ curve: `issue, ${name}`, size, run: issue });
      }
    }
    const curves = [...(await measure(plans)), ...(await measure(issues))];
    for (const { tokens } of [...sqlite, ...postgres]) await tokens.close();
    return { curves, facts };
  } finally {
    await pool.end();
    await server.stop();
  }
}

interface Table {
  readonly size: number;
  readonly tokens: TokenService;
  readonly values: readonly string[];
}

/** The same samples go into each table, a part of them after each part of the others. */
function* chunksOf(size: number): Generator<{ first: number; count: number; samples: number }> {
  const samples = Math.min(SAMPLES, size / 2) / CHUNKS;
  const count = size / CHUNKS - samples;
  for (let chunk = 0; chunk < CHUNKS; chunk++) yield { first: chunk * count, count, samples };
}

async function sqliteTables(
  keys: readonly KeyOptions[],
  facts: Record<string, number>,
): Promise<Table[]> {
  const options = { keys, prefix: 'acme', quotas };
  const samplePath = join(folder, 'samples.db');
  const sampled = new TokenService({ store: SqliteTokenStore.openFile(samplePath), ...options });
  const values = await issueMany(sampled, 'account7', SAMPLES);
  await sampled.close();
  const tables: Table[] = [];
  for (const size of TABLE_SIZES) {
    say(`filling SQLite with ${size}`);
    const path = join(folder, `rows-${size}.db`);
    await SqliteTokenStore.openFile(path).close();
    const handle = openToFill(path);
    handle.exec(`ATTACH '${samplePath}' AS sample`);
    let taken = 0;
    for (const { first, count, samples } of chunksOf(size)) {
      await fillSqlite(handle, `'account' || (i % ${ACCOUNTS})`, { first, count });
      handle.exec(
        `INSERT INTO tokens SELECT * FROM sample.tokens WHERE rowid > ${taken} AND rowid <= ${taken + samples}`,
      );
      taken += samples;
    }
    handle.close();
    facts[`SQLite bytes ${size}`] = statSync(path).size;
    const tokens = new TokenService({ store: SqliteTokenStore.openFile(path), ...options });
    tables.push({ size, tokens, values: values.slice(0, taken) });
  }
  say('filled SQLite');
  return tables;
}

async function postgresTables(
  pool: Pool,
  keys: readonly KeyOptions[],
  facts: Record<string, number>,
): Promise<Table[]> {
  const serviceOn = async (tables: string) => {
    await migrate(pool, { tables });
    const store = new PostgresTokenStore(pool, { tables, deadlineMs: 60_000 });
    return new TokenService({ store, keys, prefix: 'acme', quotas, deadlineMs: 60_000 });
  };
  const values = await issueMany(await serviceOn('samples'), 'account7', SAMPLES);
  const ids = values.map((value) => value.slice('acme_1k1'.length, 'acme_1k1'.length + 22));
  const tables: Table[] = [];
  for (const size of TABLE_SIZES) {
    say(`filling PostgreSQL with ${size}`);
    const tokens = await serviceOn(`rows_${size}`);
    const table = `rows_${size}_tokens`;
    let taken = 0;
    for (const { first, count, samples } of chunksOf(size)) {
      await fillPostgres(pool, table, first, count);
      const part = ids.slice(taken, taken + samples);
      await pool.query(`INSERT INTO ${table} SELECT * FROM samples_tokens WHERE id = ANY($1)`, [
        part,
      ]);
      taken += samples;
    }
    await pool.query(`VACUUM ANALYZE ${table}`);
    const { rows } = await pool.query(
      `SELECT pg_table_size($1::regclass) AS heap, pg_indexes_size($1::regclass) AS indexes,
         (SELECT pg_relation_size(indexrelid) FROM pg_index
          WHERE indrelid = $1::regclass AND indisprimary) AS ids`,
      [table],
    );
    facts[`PostgreSQL table bytes ${size}`] = Number(rows[0].heap);
    facts[`PostgreSQL id index bytes ${size}`] = Number(rows[0].ids);
    facts[`PostgreSQL index bytes ${size}`] = Number(rows[0].indexes);
    tables.push({ size, tokens, values: values.slice(0, taken) });
  }
  say('filled PostgreSQL');
  return tables;
}

/** 150018 is 15.18. */
async function versionOf(pool: Pool): Promise<number> {
  const { rows } = await pool.query('SHOW server_version_num');
  return Number(rows[0].server_version_num);
}

async function fillPostgres(
  pool: Pool,
  table: string,
  first: number,
  count: number,
): Promise<void> {
  await pool.query(
    `INSERT INTO ${table} (${FILLED})
     SELECT substr(md5('${table}' || i), 1, 22), 'account' || (i % ${ACCOUNTS}), 'acme', 'k1',
       sha256(i::text::bytea), $1, $2, ${FILLED_FROM} + i, ${FILLED_UNTIL} + i, 1
     FROM generate_series($3::bigint, $3::bigint + $4::bigint - 1) AS i`,
    [JSON.stringify(TOKEN_SCOPES), '["*:shop.example/orders"]', first, count],
  );
}

const NODE_ROWS = 100_000;
const NODE_TOKENS = 1000;
const NODE_ROUNDS = 7;
const NODE_ROUND_MS = 1500;
const CALLERS = 32;

/** What a node is told once, and what it then does for so long when it is asked. */
interface NodeSetUp {
  readonly url: string;
  readonly keys: readonly KeyOptions[];
  readonly values: readonly string[];
}
interface NodeTask {
  readonly isCached: boolean;
  readonly forMs: number;
}
interface NodeResult {
  readonly verifies: number;
  readonly reads: number;
  readonly cpuUs: number;
}

async function nodes(): Promise<Measured> {
  const keys = [generateKey()];
  const server = await startServer('postgres', { settings: { shared_buffers: '1GB' } });
  const pool = new Pool({ connectionString: server.url, max: 16 });
  const children: ChildProcess[] = [];
  try {
    say('filling for the nodes');
    await migrate(pool);
    await fillPostgres(pool, 'tokenwright_tokens', 0, NODE_ROWS);
    const tokens = new TokenService({ store: new PostgresTokenStore(pool), keys, prefix: 'acme' });
    const values = await issueMany(tokens, 'account7', NODE_TOKENS);
    await pool.query('VACUUM ANALYZE tokenwright_tokens');
    for (let i = 0; i < Math.max(...NODES); i++) {
      const child = fork(import.meta.filename, ['node']);
      children.push(child);
      const ready = once(child, 'message');
      child.send({ url: server.url, keys, values } satisfies NodeSetUp);
      await ready;
    }
    say('measuring nodes');
    const { curves, facts } = await rateNodes(server, children);
    return { curves, facts: { ...facts, 'PostgreSQL version': await versionOf(pool) } };
  } finally {
    for (const child of children) child.kill();
    await pool.end();
    await server.stop();
  }
}

async function rateNodes(server: Server, children: readonly ChildProcess[]): Promise<Measured> {
  const rates = new Map<string, number[]>();
  const sums = new Map<string, { verifies: number; reads: number; cpu: number; server: number }>();
  const modes = { 'no cache': false, [CACHED]: true };
  for (let round = -1; round < NODE_ROUNDS; round++) {
    for (const [mode, isCached] of Object.entries(modes)) {
      for (const count of NODES) {
        const before = serverCpuUs(server.pid);
        const task: NodeTask = { isCached, forMs: NODE_ROUND_MS };
        const results = await Promise.all(
          children.slice(0, count).map(async (child): Promise<NodeResult> => {
            const answer = once(child, 'message');
            child.send(task);
            return (await answer)[0] as NodeResult;
          }),
        );
        if (round < 0) continue; // the first one warms
        const total = (of: keyof NodeResult) => results.reduce((sum, one) => sum + one[of], 0);
        const name = `${mode} ${count}`;
        const rate = (total('verifies') * 1000) / NODE_ROUND_MS;
        rates.set(name, [...(rates.get(name) ?? []), rate]);
        const sum = sums.get(name) ?? { verifies: 0, reads: 0, cpu: 0, server: 0 };
        sum.verifies += total('verifies');
        sum.reads += total('reads');
        sum.cpu += total('cpuUs');
        sum.server += serverCpuSince(server.pid, before);
        sums.set(name, sum);
      }
    }
  }
  const facts: Record<string, number> = {};
  for (const [name, sum] of sums) {
    facts[`hit share, ${name}`] = 1 - sum.reads / sum.verifies;
    facts[`node CPU us a verify, ${name}`] = sum.cpu / sum.verifies;
    facts[`server CPU us a read, ${name}`] = sum.server / sum.reads;
  }
  const curves = Object.keys(modes).map((mode) => ({
    name: mode,
    points: NODES.map((count) => pointOf(count, rates.get(`${mode} ${count}`) ?? [])),
  }));
  return { curves, facts };
}

/** What each process of a server has used, by its id; Linux tells in hundredths of a second. */
function serverCpuUs(parent: number): Map<string, number> {
  const used = new Map<string, number>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (Number(fields[1]) !== parent) continue;
      used.set(pid, (Number(fields[11]) + Number(fields[12])) * 10_000);
    } catch {
      // It has just ended.
    }
  }
  return used;
}

function serverCpuSince(parent: number, before: ReadonlyMap<string, number>): number {
  const now = [...serverCpuUs(parent)];
  return now.reduce((sum, [pid, us]) => sum + us - (before.get(pid) ?? 0), 0);
}

/** One node: a process of its own, with a pool of its own. */
async function beNode(): Promise<void> {
  const [{ url, keys, values }] = (await once(process, 'message')) as [NodeSetUp];
  const pool = new Pool({ connectionString: url, max: 8 });
  const store = new PostgresTokenStore(pool);
  const find = store.find.bind(store);
  let reads = 0;
  store.find = (ids) => {
    reads += ids.length;
    return find(ids);
  };
  const options = { store, keys, prefix: 'acme' };
  const plain = new TokenService(options);
  const cached = new TokenService({ ...options, cache: { maxStaleMs: MAX_STALE_MS } });
  const next = anyOf(values);
  const work = async ({ isCached, forMs }: NodeTask): Promise<NodeResult> => {
    const run = verifying(isCached ? cached : plain, next, NEED);
    const [cpu, readsBefore, end] = [process.cpuUsage(), reads, performance.now() + forMs];
    let verifies = 0;
    const caller = async () => {
      while (performance.now() < end) {
        await run();
        verifies += 1;
        // Hits are answered without a turn of the event loop, which timers and sockets need.
        if (verifies % 256 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
    const { user, system } = process.cpuUsage(cpu);
    return { verifies, reads: reads - readsBefore, cpuUs: user + system };
  };
  process.on('message', async (task: NodeTask) => process.send?.(await work(task)));
  const [value = ''] = values;
  await plain.verify(value, { scope: NEED }); // connected
  process.send?.('ready');
}

const PARTS: Readonly<Record<PartName, () => Promise<Measured>>> = {
  scopes,
  accounts,
  totals,
  nodes,
};

async function main(args: readonly string[]): Promise<void> {
  const asked = args.filter((arg) => arg !== '--write');
  const unknown = asked.find((name) => !Object.hasOwn(PARTS, name));
  if (unknown !== undefined) throw new Error(`no part is named ${unknown}`);
  const isWriting = args.includes('--write');
  folder = mkdtempSync(join(tmpdir(), 'tokenwright-growth-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const names = asked.length > 0 || isWriting ? asked : Object.keys(PARTS);
  for (const name of names) {
    say(name);
    const measured = await PARTS[name as PartName]();
    const date = new Date().toISOString().slice(0, 10);
    mkdirSync(join(FIGURES, '..'), { recursive: true });
    const figures: Figures = {
      ...readFigures(),
      [name]: { date, machine: machine(), ...measured },
    };
    writeFileSync(FIGURES, `${JSON.stringify(figures, null, 2)}\n`);
    for (const { name: curve, points } of measured.curves) {
      const values = points.map(({ size, median }) => `${size}: ${median.toPrecision(3)}`);
      console.log(`${curve}: ${values.join(', ')}`);
    }
    console.log(measured.facts);
  }
  if (isWriting) writePage(readFigures());
}

function machine(): string {
  const [cpu] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return (
    `${cpus().length} cores (${cpu?.model.trim()}) with ${memory} GB of memory, ${process.platform}; ` +
    `Node.js ${process.versions.node}, SQLite ${process.versions['sqlite']}`
  );
}

function readFigures(): Figures {
  return existsSync(FIGURES) ? JSON.parse(readFileSync(FIGURES, 'utf8')) : {};
}

if (process.send === undefined) await main(process.argv.slice(2));
else await beNode();
