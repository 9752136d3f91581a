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
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'pg';
import {
  generateKey,
  type IssuedToken,
  type KeyOptions,
  MemoryTokenStore,
  TokenService,
  type TokenStore,
} from '../../src/index.ts';
import { ScopeSet } from '../../src/scope/index.ts';
import { migrate, PostgresTokenStore } from '../../src/stores/postgres/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { versionOf } from '../server-programs.ts';
import { type Server, startServer } from '../servers.ts';
import {
  ACCOUNT,
  fillPostgres,
  fillSqlite,
  issueMany,
  METHODS,
  NEED,
  openToFill,
  quotas,
  TOKEN_SCOPES,
  verifying,
} from './filling.ts';
import {
  CACHED,
  type Curve,
  type Figures,
  MAX_STALE_MS,
  type Measured,
  NODES,
  type PartName,
  writePage,
} from './growth-page.ts';
import {
  anyOf,
  type Loop,
  measure as measureLoops,
  median,
  type Run,
  rangeOf,
  roundsOf,
  timed,
} from './measure.ts';
import { month } from './month.ts';
import { machine, ROOT, today } from './page.ts';
import { serverCpuSince, serverCpuUs } from './server-cpu.ts';
import { askedParts, isWriting, needs } from './start.ts';

const ROWS = Number(process.env['ROWS'] ?? 1_000_000);
const PACE = { rounds: 15, roundMs: 30, warmMs: 300 };
const FIGURES = join(ROOT, '.cache/bench/growth.json');

/** What is measured at one size for one curve. */
interface Plan {
  readonly curve: string;
  readonly size: number;
  readonly run: Run;
  /** Instead of the time of a call. */
  readonly loop?: Loop<number>;
}

let folder = '';

function say(text: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);
}

/** All sizes take turns, so that the speed of the machine does not pass for growth. */
async function measure(plans: readonly Plan[]): Promise<Curve[]> {
  say(`measuring ${plans.length} points`);
  const loops = plans.map(({ run, loop = timed(run) }, index) => [index, loop] as const);
  const measured = await measureLoops(Object.fromEntries(loops), PACE);
  const points = plans.map(({ curve, size }, index) => {
    return { curve, size, ...rangeOf(measured[index]?.figures ?? []) };
  });
  const curves = Map.groupBy(points, ({ curve }) => curve);
  return [...curves].map(([name, members]) => ({
    name,
    points: members.map(({ curve: _, ...point }) => point),
  }));
}

/** The median of single calls, in microseconds. */
function medianOfCalls(run: Run): Loop<number> {
  return async (count) => {
    const calls: number[] = [];
    for (let i = 0; i < count; i++) {
      const start = performance.now();
      await run();
      calls.push((performance.now() - start) * 1000);
    }
    return median(calls);
  };
}

const SCOPE_COUNTS = [1, 10, 100, 1000, 4096];
const SET_SIZES = [1, 10, 100, 1000, 10_000];
/** Tokens of one size, each with other scopes. */
const COPIES = 16;

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
  return { curves, facts: {} };
}

/** So many tokens that can be verified lie among the others, in as many places as there are chunks. */
const SAMPLES = 20_000;
const CHUNKS = 20;

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
    const [plans, issues]: [Plan[], Plan[]] = [[], []];
    for (const [name, tables] of Object.entries({ SQLite: sqlite, PostgreSQL: postgres })) {
      for (const { size, tokens, samples } of tables) {
        const run = verifying(tokens, anyOf(samples), NEED);
        plans.push({ curve: `verify, ${name}`, size, run });
        plans.push({ curve: `verify, ${name}, p50`, size, run, loop: medianOfCalls(run) });
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
  readonly samples: readonly IssuedToken[];
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
  const issued = await issueMany(sampled, 'account7', SAMPLES);
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
      await fillSqlite(handle, ACCOUNT, { first, count });
      handle.exec(
        `INSERT INTO tokens SELECT * FROM sample.tokens WHERE rowid > ${taken} AND rowid <= ${taken + samples}`,
      );
      taken += samples;
    }
    handle.close();
    facts[`SQLite bytes ${size}`] = statSync(path).size;
    const tokens = new TokenService({ store: SqliteTokenStore.openFile(path), ...options });
    tables.push({ size, tokens, samples: issued.slice(0, taken) });
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
  const issued = await issueMany(await serviceOn('samples'), 'account7', SAMPLES);
  const tables: Table[] = [];
  for (const size of TABLE_SIZES) {
    say(`filling PostgreSQL with ${size}`);
    const tokens = await serviceOn(`rows_${size}`);
    const table = `rows_${size}_tokens`;
    let taken = 0;
    for (const { first, count, samples } of chunksOf(size)) {
      await fillPostgres(pool, table, ACCOUNT, { first, count });
      const part = issued.slice(taken, taken + samples).map(({ id }) => id);
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
    tables.push({ size, tokens, samples: issued.slice(0, taken) });
  }
  say('filled PostgreSQL');
  return tables;
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
  readonly issued: readonly Pick<IssuedToken, 'value'>[];
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
    await fillPostgres(pool, 'tokenwright_tokens', ACCOUNT, { first: 0, count: NODE_ROWS });
    const tokens = new TokenService({ store: new PostgresTokenStore(pool), keys, prefix: 'acme' });
    const issued = await issueMany(tokens, 'account7', NODE_TOKENS);
    await pool.query('VACUUM ANALYZE tokenwright_tokens');
    for (let i = 0; i < Math.max(...NODES); i++) {
      const child = fork(import.meta.filename, ['node']);
      children.push(child);
      const ready = once(child, 'message');
      child.send({ url: server.url, keys, issued } satisfies NodeSetUp);
      await ready;
    }
    say('measuring nodes');
    return await rateNodes(server, children);
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
  for (let round = -1; round < roundsOf(NODE_ROUNDS); round++) {
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
    points: NODES.map((size) => ({ size, ...rangeOf(rates.get(`${mode} ${size}`) ?? []) })),
  }));
  return { curves, facts };
}

/** One node: a process of its own, with a pool of its own. */
async function beNode(): Promise<void> {
  const [{ url, keys, issued }] = (await once(process, 'message')) as [NodeSetUp];
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
  const next = anyOf(issued);
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
  await verifying(plain, next, NEED)(); // connected
  process.send?.('ready');
}

const PARTS: Readonly<Record<PartName, () => Promise<Measured>>> = {
  scopes,
  accounts,
  totals,
  nodes,
  month: () => month(folder, say),
};

const MINUTES: Readonly<Record<PartName, number>> = {
  scopes: 1,
  accounts: 2,
  totals: Math.ceil(ROWS / 500_000),
  nodes: 2,
  month: 4,
};

async function main(): Promise<void> {
  const versions = `SQLite ${process.versions['sqlite']}, PostgreSQL ${versionOf('postgres')}`;
  const asked = askedParts(Object.keys(PARTS) as PartName[]);
  const names = isWriting && process.argv.length === 3 ? [] : asked;
  if (names.length > 0) {
    const minutes = names.reduce((sum, name) => sum + MINUTES[name], 0);
    needs({ minutes, gigabytes: Math.max(4, ROWS / 1_000_000), programs: ['PostgreSQL'] });
  }
  folder = mkdtempSync(join(tmpdir(), 'tokenwright-growth-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const name of names) {
    say(name);
    const measured = await PARTS[name]();
    mkdirSync(join(FIGURES, '..'), { recursive: true });
    const part = { date: today(), machine: `${machine()}; ${versions}`, ...measured };
    const figures: Figures = { ...readFigures(), [name]: part };
    writeFileSync(FIGURES, `${JSON.stringify(figures, null, 2)}\n`);
    for (const { name: curve, points } of measured.curves) {
      const values = points.map(({ size, median: middle }) => `${size}: ${middle.toPrecision(3)}`);
      console.log(`${curve}: ${values.join(', ')}`);
    }
    console.log(measured.facts);
  }
  if (isWriting) writePage(readFigures());
}

function readFigures(): Figures {
  return existsSync(FIGURES) ? JSON.parse(readFileSync(FIGURES, 'utf8')) : {};
}

if (process.send === undefined) await main();
else await beNode();
