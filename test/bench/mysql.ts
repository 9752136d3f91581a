// How much the MySQL store adds to the bare driver with prepared statements, as ratios in one run:
// `node test/bench/mysql.ts`, on a MariaDB of its own (TOKENS=200000 fills it faster).
import { createHash } from 'node:crypto';
import { createPool, type Pool, type RowDataPacket } from 'mysql2';
import type { Position } from '../../src/ports/token-store.ts';
import { TokenService } from '../../src/service.ts';
import { MysqlTokenStore, migrate } from '../../src/stores/mysql/index.ts';
import { COLUMNS, toValues } from '../../src/stores/shared/rows.ts';
import type { TokenId, TokenRecord } from '../../src/token/record.ts';
import { generateKey } from '../../src/values/keys.ts';
import { startServer } from '../servers.ts';
import { FILLED } from './filling.ts';
import { byCallers, compareCosts, jumping } from './measure.ts';
import { needs } from './start.ts';

const TOKENS = Number(process.env['TOKENS'] ?? 1_000_000);
const PAGE = 50;
const SMALL_ACCOUNTS = 100;
const SMALL = 1000;
const TABLE = 'tokenwright_tokens';
const SCOPES = ['GET:shop.example/orders', 'POST:shop.example/orders'];
const CREATED = Date.now();
const columns = COLUMNS.join(', ');

/** As random as real ones, and known again. */
function idOf(account: string, number: number): TokenId {
  return createHash('md5').update(`${account}:${number}`).digest('hex').slice(0, 22) as TokenId;
}

async function fill(pool: Pool, account: string, count: number): Promise<void> {
  const scopes = JSON.stringify(SCOPES);
  await pool.promise().query(
    `INSERT INTO ${TABLE} (${FILLED})
     SELECT LEFT(MD5(CONCAT(?, ':', seq)), 22), ?, 'acme', 'k1', UNHEX(SHA2(seq, 256)), ?, ?,
       ? + seq, ?, 1
     FROM seq_0_to_${count - 1}`,
    [account, account, scopes, scopes, CREATED, CREATED + 400 * 86_400_000],
  );
}

needs({ minutes: 4, gigabytes: 2, programs: ['MariaDB'] });
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
  const verifyAny = () => tokens.verify(anyIssued().value, { scope: 'GET:shop.example/orders' });
  await compareCosts('A point read, one at a time', {
    'the driver': () => bareFind(anyIssued().id),
    'store.find': () => store.find([anyIssued().id]),
    'service.verify': verifyAny,
  });

  await compareCosts('32 point reads at once', {
    'the driver, IN': () => bareFindMany(anyIds(32)),
    'store.find of 32': () => store.find(anyIds(32)),
    'the driver, one by one': () => Promise.all(anyIds(32).map(bareFind)),
    'store.find, one by one': () => Promise.all(anyIds(32).map((id) => store.find([id]))),
  });

  await compareCosts('32 callers, each with one read after the other (20 of them)', {
    'the driver': byCallers(32, 20, () => bareFind(anyIssued().id)),
    'service.verify': byCallers(32, 20, verifyAny),
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
  let count = 0;
  await compareCosts('A durable insert, one at a time', {
    'the driver': () =>
      bare(`INSERT INTO ${TABLE} (${columns}) VALUES (${places})`, bareValues(newRecord())),
    'store.insert': () => store.insert(newRecord()),
    'service.issue': () => tokens.issue({ account: `new${count++ % 100}`, scopes: SCOPES }),
  });

  const at = new Date();
  await compareCosts('A durable update, one at a time', {
    'the driver': () =>
      bare(`UPDATE ${TABLE} SET revoked_at = ? WHERE id = ?`, [+at, Buffer.from(anyId())]),
    'store.revoke': () => store.revoke(anyId(), 'big', at),
  });

  const placeAt = (share: number): Position => ({
    at: new Date(CREATED + share * TOKENS),
    id: idOf('big', 0),
  });
  const page = (account: string, after?: Position) =>
    store.page({ account, limit: PAGE, liveAt: at, after });
  await compareCosts(`A page of ${PAGE}, the same again and again`, {
    [`first of ${SMALL}`]: () => page('small0'),
    [`first of ${TOKENS}`]: () => page('big'),
    'in the middle': () => page('big', placeAt(0.5)),
    'near the end': () => page('big', placeAt(0.001)),
  });
  const nextSmall = jumping(SMALL_ACCOUNTS);
  await compareCosts(`A page of ${PAGE}, each time another one`, {
    [`first of ${SMALL}, of ${SMALL_ACCOUNTS} accounts`]: () => page(`small${nextSmall()}`),
    [`anywhere in ${TOKENS}`]: () => page('big', placeAt(next() / TOKENS)),
  });
} finally {
  await new Promise((resolve) => pool.end(resolve));
  await server.stop();
}
