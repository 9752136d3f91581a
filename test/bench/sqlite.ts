// What tokenwright adds to SQLite, as ratios in one run against the bare driver at its best:
// `npm run bench:sqlite`. `ROWS=10000000` measures the growth up to that many rows.
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { generateKey, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import type { IssuedToken, TokenId } from '../../src/token/record.ts';
import { newId } from '../../src/values/value.ts';
import { wholeApi } from './measure.ts';

const ROWS = Number(process.env['ROWS'] ?? 1_000_000);
const ROUNDS = 21;
const folder = await mkdtemp(join(tmpdir(), 'tokenwright-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

/** Median microseconds a call of each, in rounds that take turns. */
async function measure(
  runs: Readonly<Record<string, (i: number) => unknown>>,
  count: number,
): Promise<Record<string, number>> {
  const times = new Map<string, number[]>(Object.keys(runs).map((name) => [name, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, run] of Object.entries(runs)) {
      const start = performance.now();
      for (let i = 0; i < count; i++) await run(round * count + i);
      times.get(name)?.push(((performance.now() - start) * 1000) / count);
    }
  }
  const median = (list: number[]) => list.sort((a, b) => a - b)[list.length >> 1] as number;
  return Object.fromEntries([...times].map(([name, list]) => [name, median(list)]));
}

function row(cells: readonly (string | number)[]): void {
  console.log(`| ${cells.join(' | ')} |`);
}

function title(text: string, columns: readonly string[]): void {
  console.log(`\n${text}\n`);
  row(columns);
  row(columns.map(() => '---'));
}

function compare(name: string, times: Record<string, number>): void {
  const { bare = 1, ours = 1 } = times;
  row([name, `${bare.toFixed(1)} us`, `${ours.toFixed(1)} us`, (ours / bare).toFixed(2)]);
}

const SCOPES = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((m) => `${m}:shop.example/orders`);
const need = { scope: 'GET:shop.example/orders/7' };

/** Rows as the store writes them, made by SQLite itself. */
function fill(handle: DatabaseSync, account: string, from: number, to: number): void {
  handle.exec(`
    INSERT INTO tokens (id, account, prefix, kid, digest, scopes, requested, created_at, expires_at, version)
    WITH RECURSIVE n(i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${to})
    SELECT substr(hex(randomblob(11)), 1, 22), '${account}', 'acme', 'k1', randomblob(32),
      '${JSON.stringify(SCOPES)}', '["*:shop.example/orders"]', 1795000000000 + i, 4102444800000, 1 FROM n`);
}

async function operations(): Promise<void> {
  const path = join(folder, 'operations.db');
  const store = SqliteTokenStore.openFile(path);
  const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
  const handle = new DatabaseSync(path);
  handle.exec('PRAGMA synchronous = FULL; PRAGMA busy_timeout = 1500');
  const issued: IssuedToken[] = [];
  for (let i = 0; i < 256; i++)
    issued.push(await tokens.issue({ account: 'acme', scopes: SCOPES }));
  fill(handle, 'other', 0, 100_000);
  const columns = (handle.prepare('PRAGMA table_info(tokens)').all() as { name: string }[])
    .map(({ name }) => name)
    .join(', ');
  const get = handle.prepare(`SELECT ${columns} FROM tokens WHERE id = ?`);
  title('One operation, against the prepared statement of the driver', [
    'operation',
    'driver',
    'tokenwright',
    'ratio',
  ]);
  const at = (i: number) => issued[i & 255] as (typeof issued)[number];
  compare(
    'verify (100 000 rows)',
    await measure(
      { bare: (i) => get.get(at(i).id), ours: (i) => tokens.verify(at(i).value, need) },
      2000,
    ),
  );
  const plain = handle.prepare(
    `INSERT INTO tokens (${columns}) VALUES (${columns.replace(/\w+/g, '?')})`,
  );
  const values = handle
    .prepare(`SELECT ${columns} FROM tokens WHERE id = ?`)
    .get(at(0).id) as object;
  // New rows as ours are: random ids, and a time of creation that goes on.
  const newRow = () => ({ ...values, id: newId(), created_at: Date.now() });
  compare(
    'issue, durable',
    await measure(
      {
        bare: () => plain.run(...(Object.values(newRow()) as string[])),
        ours: (i) => tokens.issue({ account: `account${i % 100}`, scopes: SCOPES }),
      },
      50,
    ),
  );
  handle.close();
  await tokens.close();
}

async function longLists(): Promise<void> {
  const runs: Record<string, (i: number) => unknown> = {};
  const services: TokenService[] = [];
  const lists: [string, (copy: number) => string[]][] = [
    ['10 scopes', () => wholeApi().slice(0, 10)],
    ['1 189 scopes, all lists equal', () => wholeApi()],
    ['1 189 scopes, all lists different', (copy) => wholeApi(copy)],
  ];
  for (const [name, scopesOf] of lists) {
    const store = SqliteTokenStore.openFile(join(folder, `${services.length}-lists.db`));
    const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
    const questions: [value: string, scope: string][] = [];
    for (let copy = 0; copy < 1000; copy++) {
      const scopes = scopesOf(copy);
      const { value } = await tokens.issue({ account: 'acme', scopes });
      questions.push([value, scopes[7] as string]);
    }
    const verify = async ([value, scope]: [string, string]) => {
      if (!(await tokens.verify(value, { scope })).ok) throw new Error('refused');
    };
    // What was never read is not what is measured.
    for (let i = 0; i < 3000; i++) await verify(questions[i % 1000] as [string, string]);
    runs[name] = (i) => verify(questions[(i * 7919) % 1000] as [string, string]);
    services.push(tokens);
  }
  title('A verify, 1 000 tokens taking turns', ['tokens', 'time', 'ratio']);
  const times = await measure(runs, 100);
  for (const [name, time] of Object.entries(times)) {
    row([name, `${time.toFixed(1)} us`, (time / (times['10 scopes'] as number)).toFixed(2)]);
  }
  for (const tokens of services) await tokens.close();
}

async function pages(): Promise<void> {
  const path = join(folder, 'pages.db');
  const store = SqliteTokenStore.openFile(path);
  const handle = new DatabaseSync(path);
  fill(handle, 'small', 0, 1000);
  fill(handle, 'large', 0, 1_000_000);
  const liveAt = new Date('2027-01-01T00:00:00Z');
  const after = (position: number) => ({
    at: new Date(1_795_000_000_000 + position),
    id: '' as TokenId,
  });
  const page = (account: string, position?: number) => () =>
    store.page({
      account,
      limit: 50,
      liveAt,
      ...(position !== undefined && { after: after(position) }),
    });
  const times = await measure(
    {
      first: page('small'),
      'large, first': page('large'),
      'large, middle': page('large', 500_000),
      'large, last': page('large', 60),
    },
    100,
  );
  title('A page of 50, against the first one of an account with 1 000 tokens', [
    'page',
    'time',
    'ratio',
  ]);
  for (const [name, time] of Object.entries(times)) {
    row([name, `${time.toFixed(0)} us`, (time / (times['first'] as number)).toFixed(2)]);
  }
  handle.close();
  await store.close();
}

async function growth(): Promise<void> {
  title('A point verify with the number of rows', ['rows', 'time']);
  const path = join(folder, 'growth.db');
  const store = SqliteTokenStore.openFile(path);
  const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
  const handle = new DatabaseSync(path);
  const issued: IssuedToken[] = [];
  const points: [number, number][] = [];
  let rows = 0;
  for (let size = 10_000; size <= ROWS; size *= 10) {
    fill(handle, 'other', rows, size - 64);
    rows = size - 64;
    for (let i = 0; i < 64; i++) {
      issued.push(await tokens.issue({ account: 'acme', scopes: SCOPES }));
    }
    const mine = issued.slice(-64);
    const { time = 0 } = await measure(
      { time: (i) => tokens.verify((mine[i & 63] as IssuedToken).value, need) },
      2000,
    );
    points.push([size, time]);
    row([size, `${time.toFixed(1)} us`]);
  }
  const [first, last] = [points[0] as [number, number], points.at(-1) as [number, number]];
  row(['exponent', (Math.log(last[1] / first[1]) / Math.log(last[0] / first[0])).toFixed(3)]);
  handle.close();
  await tokens.close();
}

console.log(`Node ${process.version}, ${process.arch}; medians of ${ROUNDS} rounds`);
await operations();
await longLists();
await pages();
await growth();
