// How much the MySQL store adds to the bare driver with prepared statements, as ratios in one run:
// `node test/bench/mysql.ts`, on a MariaDB of its own (TOKENS=200000 fills it faster). Times are
// medians of rounds that take turns; CPU is that of this process, the server's not included.
import { createHash } from 'node:crypto';
import { createPool, type Pool, type RowDataPacket } from 'mysql2';
import { generateKey } from '../../src/keys.ts';
import { TokenService } from '../../src/service.ts';
import type { Position } from '../../src/store.ts';
import { MysqlTokenStore, migrate } from '../../src/stores/mysql.ts';
import { COLUMNS, toValues } from '../../src/stores/rows.ts';
import type { TokenId, TokenRecord } from '../../src/token.ts';
import { startServer } from '../servers.ts';

const TOKENS = Number(process.env['TOKENS'] ?? 1_000_000);
const ROUNDS = 41;
const ROUND_MS = 60;
/** The compiler of the engine takes its time with promises. */
const WARM_MS = 2000;
const PAGE = 50;
const SMALL_ACCOUNTS = 100;
const SMALL = 1000;
const TABLE = 'tokenwright_tokens';
const SCOPES = ['GET:shop.example/orders', 'POST:shop.example/orders'];
const CREATED = Date.now();
const columns = COLUMNS.join(', ');

type Run = () => Promise<unknown>;

interface Cost {
  readonly wall: number;
  readonly cpu: number;
}

/** Median microseconds of each, in rounds that take turns. */
async function measure(runs: Readonly<Record<string, Run>>): Promise<Map<string, Cost>> {
  const plans: { name: string; run: Run; count: number; costs: Cost[] }[] = [];
  for (const [name, run] of Object.entries(runs)) {
    plans.push({ name, run, count: await calibrate(run), costs: [] });
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const { run, count, costs } of plans) costs.push(await costOf(run, count));
  }
  return new Map(
    plans.map(({ name, costs }) => [
      name,
      { wall: median(costs.map(({ wall }) => wall)), cpu: median(costs.map(({ cpu }) => cpu)) },
    ]),
  );
}

async function calibrate(run: Run): Promise<number> {
  let count = 0;
  for (const end = performance.now() + WARM_MS; performance.now() < end; count++) await run();
  return Math.max(1, Math.round((count * ROUND_MS) / WARM_MS));
}

async function costOf(run: Run, count: number): Promise<Cost> {
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  for (let i = 0; i < count; i++) await run();
  const { user, system } = process.cpuUsage(cpu);
  return {
    wall: ((performance.now() - start) * 1000) / count,
    cpu: (user + system) / count,
  };
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number;
}

/** The first is what the others are compared with. */
async function compare(title: string, runs: Readonly<Record<string, Run>>): Promise<void> {
  const costs = await measure(runs);
  const [base] = costs.values();
  console.log(`\n${title}\n\n| | time | ratio | CPU | ratio |\n| --- | --- | --- | --- | --- |`);
  for (const [name, cost] of costs) {
    const cells = (['wall', 'cpu'] as const).flatMap((kind) => [
      `${cost[kind].toFixed(0)} µs`,
      (cost[kind] / (base?.[kind] ?? 1)).toFixed(2),
    ]);
    console.log(`| ${name} | ${cells.join(' | ')} |`);
  }
}

/** As random as real ones, and known again. */
function idOf(account: string, number: number): TokenId {
  return createHash('md5').update(`${account}:${number}`).digest('hex').slice(0, 22) as TokenId;
}

/** Numbers below a bound that jump about, the same in each run. */
function jumping(bound: number): () => number {
  let step = 0;
  return () => {
    step += 1;
    return (step * 7919) % bound;
  };
}

async function fill(pool: Pool, account: string, count: number): Promise<void> {
  const scopes = JSON.stringify(SCOPES);
  await pool.promise().query(
    `INSERT INTO ${TABLE} (${columns})
     SELECT LEFT(MD5(CONCAT(?, ':', seq)), 22), ?, 'acme', 'k1', UNHEX(SHA2(seq, 256)), NULL, ?, ?,
       ? + seq, ?, 1, 'deploy', NULL, NULL, NULL, NULL
     FROM seq_0_to_${count - 1}`,
    [account, account, scopes, scopes, CREATED, CREATED + 400 * 86_400_000],
  );
}

const server = await startServer('mariadb', { settings: { 'innodb-buffer-pool-size': '1G' } });
const pool = createPool({ uri: server.url, connectionLimit: 32 });
try {
  await migrate(pool);
  const store = new MysqlTokenStore(pool);
  const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
  for (let i = 0; i < SMALL_ACCOUNTS; i++) await fill(pool, `small${i}`, SMALL);
  await fill(pool, 'big', TOKENS);
  await pool.promise().query(`ANALYZE TABLE ${TABLE}`);

  const [[size]] = await pool.promise().query<RowDataPacket[]>(`SHOW TABLE STATUS LIKE '${TABLE}'`);
  const bytes =
    (Number(size?.['Data_length']) + Number(size?.['Index_length'])) /
    (TOKENS + SMALL_ACCOUNTS * SMALL);
  console.log(`${TOKENS} tokens, ${bytes.toFixed(0)} bytes each with all indexes`);

  const bare = (sql: string, values: (string | number | Buffer | null)[]) =>
    new Promise((resolve, reject) =>
      pool.execute(sql, values, (error, answer) => (error ? reject(error) : resolve(answer))),
    );
  const next = jumping(TOKENS);
  const anyId = () => idOf('big', next());
  const anyIds = (count: number) => Array.from({ length: count }, anyId);
  const bareFind = (id: string) =>
    bare(`SELECT ${columns} FROM ${TABLE} WHERE id = ?`, [Buffer.from(id)]);
  const bareFindMany = (ids: string[]) =>
    bare(
      `SELECT ${columns} FROM ${TABLE} WHERE id IN (${ids.map(() => '?').join(', ')})`,
      ids.map((id) => Buffer.from(id)),
    );

  const issued = await Promise.all(
    Array.from({ length: 1000 }, () => tokens.issue({ account: 'verify', scopes: SCOPES })),
  );
  const nextIssued = jumping(issued.length);
  const anyIssued = () => issued[nextIssued()] as (typeof issued)[number];
  await compare('A point read, one at a time', {
    'the driver': () => bareFind(anyIssued().id),
    'store.find': () => store.find([anyIssued().id]),
    'service.verify': () => tokens.verify(anyIssued().value, { scope: 'GET:shop.example/orders' }),
  });

  await compare('32 point reads at once', {
    'the driver, IN': () => bareFindMany(anyIds(32)),
    'store.find of 32': () => store.find(anyIds(32)),
    'the driver, one by one': () => Promise.all(anyIds(32).map(bareFind)),
    'store.find, one by one': () => Promise.all(anyIds(32).map((id) => store.find([id]))),
  });

  let inserted = 0;
  const newRecord = (): TokenRecord => ({
    id: idOf('new', inserted++),
    account: 'new',
    prefix: 'acme',
    kid: 'k1',
    digest: new Uint8Array(32),
    scopes: SCOPES,
    requested: SCOPES,
    createdAt: new Date(),
    expiresAt: new Date(CREATED + 1e10),
    version: 1,
  });
  const bareValues = (record: TokenRecord) =>
    toValues(record).map((value) => (value instanceof Uint8Array ? Buffer.from(value) : value));
  const places = COLUMNS.map(() => '?').join(', ');
  await compare('A durable insert, one at a time', {
    'the driver': () =>
      bare(`INSERT INTO ${TABLE} (${columns}) VALUES (${places})`, bareValues(newRecord())),
    'store.insert': () => store.insert(newRecord()),
    'service.issue': () => tokens.issue({ account: 'new', scopes: SCOPES }),
  });

  const at = new Date();
  await compare('A durable update, one at a time', {
    'the driver': () =>
      bare(`UPDATE ${TABLE} SET revoked_at = ? WHERE id = ?`, [+at, Buffer.from(anyId())]),
    'store.revoke': () => store.revoke(anyId(), 'big', at),
  });

  const placeAt = (share: number): Position => ({
    createdAt: new Date(CREATED + share * TOKENS),
    id: idOf('big', 0),
  });
  const page = (account: string, after?: Position) =>
    store.page({ account, limit: PAGE, liveAt: at, after });
  await compare(`A page of ${PAGE}, the same again and again`, {
    [`first of ${SMALL}`]: () => page('small0'),
    [`first of ${TOKENS}`]: () => page('big'),
    'in the middle': () => page('big', placeAt(0.5)),
    'near the end': () => page('big', placeAt(0.001)),
  });
  const nextSmall = jumping(SMALL_ACCOUNTS);
  await compare(`A page of ${PAGE}, each time another one`, {
    [`first of ${SMALL}, of ${SMALL_ACCOUNTS} accounts`]: () => page(`small${nextSmall()}`),
    [`anywhere in ${TOKENS}`]: () => page('big', placeAt(next() / TOKENS)),
  });
} finally {
  await new Promise((resolve) => pool.end(resolve));
  await server.stop();
}
