// How much the PostgreSQL store adds to the bare driver with named prepared statements, as ratios in
// one run: `node test/bench/postgres.ts`, on a server of its own (TOKENS=200000 fills it
// faster). `ROWS=10000000` measures the growth up to that many rows.
import { Pool } from 'pg';
import type { Position } from '../../src/ports/token-store.ts';
import { TokenService } from '../../src/service.ts';
import { migrate, PostgresTokenStore } from '../../src/stores/postgres/index.ts';
import { COLUMNS, toValues } from '../../src/stores/shared/rows.ts';
import type { TokenId, TokenRecord } from '../../src/token/record.ts';
import { generateKey } from '../../src/values/keys.ts';
import { startServer } from '../servers.ts';
import { byCallers, compare, compareSizes, jumping, wholeApi } from './measure.ts';

const TOKENS = Number(process.env['TOKENS'] ?? 1_000_000);
const ROWS = Number(process.env['ROWS'] ?? 1_000_000);
const PAGE = 50;
const ISSUED = 1000;
const TABLE = 'tokenwright_tokens';
const SCOPES = ['GET:shop.example/orders', 'POST:shop.example/orders'];
const LONG_AGO = new Date('2020-01-01T00:00:00Z');
const columns = COLUMNS.join(', ');

function idOf(account: string, number: number): TokenId {
  return `${account}${String(number).padStart(22 - account.length, '0')}` as TokenId;
}

async function fill(
  pool: Pool,
  account: string,
  count: number,
  table: string = TABLE,
): Promise<void> {
  await pool.query(
    `INSERT INTO ${table} (${columns})
     SELECT $1 || lpad(i::text, 22 - length($1), '0'), $1, 'acme', 'k1', sha256(i::text::bytea),
       NULL, $2, $2, $3::bigint + i, $3::bigint + 400 * 86400000::bigint, 1, 'deploy', NULL, NULL,
       NULL, NULL
     FROM generate_series(0, $4::integer - 1) AS i`,
    [account, JSON.stringify(SCOPES), Date.now(), count],
  );
}

/** Verifies tokens that are among so many rows of a table of their own. */
async function verifyAmong(rows: number): Promise<() => Promise<unknown>> {
  const tables = `rows_${rows}`;
  const table = `${tables}_tokens`;
  await migrate(pool, { tables });
  await fill(pool, 'other', rows - ISSUED, table);
  const store = new PostgresTokenStore(pool, { tables });
  const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
  const issued = await Promise.all(
    Array.from({ length: ISSUED }, () => tokens.issue({ account: 'verify', scopes: SCOPES })),
  );
  await pool.query(`VACUUM ANALYZE ${table}`);
  const next = jumping(ISSUED);
  return () => tokens.verify(issued[next()]?.value ?? '', { scope: 'GET:shop.example/orders' });
}

/** Verifies tokens with such lists, in a table of their own. */
async function verifyLong(
  tables: string,
  scopesOf: (copy: number) => string[],
): Promise<() => Promise<void>> {
  await migrate(pool, { tables });
  const store = new PostgresTokenStore(pool, { tables });
  const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
  const questions: { value: string; scope: string }[] = [];
  for (let copy = 0; copy < ISSUED; copy++) {
    const scopes = scopesOf(copy);
    const { value } = await tokens.issue({ account: 'verify', scopes });
    questions.push({ value, scope: scopes[7] as string });
  }
  await pool.query(`VACUUM ANALYZE ${tables}_tokens`);
  const next = jumping(ISSUED);
  const verify = async () => {
    const { value, scope } = questions[next()] as (typeof questions)[number];
    if (!(await tokens.verify(value, { scope })).ok) throw new Error('refused');
  };
  // What was never read is not what is measured.
  for (let i = 0; i < ISSUED; i++) await verify();
  return verify;
}

const server = await startServer('postgres', { settings: { shared_buffers: '1GB' } });
const pool = new Pool({ connectionString: server.url, max: 32 });
try {
  await migrate(pool);
  const store = new PostgresTokenStore(pool);
  const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
  await fill(pool, 'small', 1000);
  await fill(pool, 'big', TOKENS);
  await pool.query(`VACUUM ANALYZE ${TABLE}`);

  const bare = (name: string, text: string, values: unknown[]) =>
    pool.query({ name, text, values });
  const next = jumping(TOKENS);
  const anyId = () => idOf('big', next());
  const anyIds = (count: number) => Array.from({ length: count }, anyId);
  const bareFind = (id: string) =>
    bare('find', `SELECT ${columns} FROM ${TABLE} WHERE id = $1`, [id]);
  const bareFindMany = (ids: string[]) =>
    bare('findMany', `SELECT ${columns} FROM ${TABLE} WHERE id = ANY($1)`, [ids]);

  const issued = await Promise.all(
    Array.from({ length: ISSUED }, () => tokens.issue({ account: 'verify', scopes: SCOPES })),
  );
  const nextIssued = jumping(issued.length);
  const anyIssued = () => issued[nextIssued()] as (typeof issued)[number];
  const verifyAny = () => tokens.verify(anyIssued().value, { scope: 'GET:shop.example/orders' });
  await compare('A point read, one at a time', {
    'the driver': () => bareFind(anyIssued().id),
    'store.find': () => store.find([anyIssued().id]),
    'service.verify': verifyAny,
  });

  await compare('A verify, 1 000 tokens taking turns', {
    '10 scopes': await verifyLong('ten', () => wholeApi().slice(0, 10)),
    '1 189 scopes, all lists equal': await verifyLong('equal', () => wholeApi()),
    '1 189 scopes, all lists different': await verifyLong('different', wholeApi),
  });

  await compare('32 point reads at once', {
    'the driver, = ANY': () => bareFindMany(anyIds(32)),
    'store.find of 32': () => store.find(anyIds(32)),
    'the driver, one by one': () => Promise.all(anyIds(32).map(bareFind)),
    'store.find, one by one': () => Promise.all(anyIds(32).map((id) => store.find([id]))),
  });

  await compare('32 callers, each with one read after the other (20 of them)', {
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
    expiresAt: new Date(Date.now() + 1e10),
    version: 1,
  });
  const places = COLUMNS.map((_, index) => `$${index + 1}`).join(', ');
  let count = 0;
  await compare('A durable insert, one at a time', {
    'the driver': () =>
      bare('insert', `INSERT INTO ${TABLE} (${columns}) VALUES (${places})`, toValues(newRecord())),
    'store.insert': () => store.insert(newRecord()),
    'service.issue': () => tokens.issue({ account: `new${count++ % 100}`, scopes: SCOPES }),
  });

  const at = new Date();
  await compare('A durable update, one at a time', {
    'the driver': () =>
      bare('revoke', `UPDATE ${TABLE} SET revoked_at = $2 WHERE id = $1`, [anyId(), +at]),
    'store.revoke, with its hint': () => store.revoke(anyId(), 'big', at),
  });

  const [newest] = await store.page({ account: 'big', limit: 1, liveAt: LONG_AGO });
  const placeAt = (share: number): Position => ({
    at: new Date(Number(newest?.createdAt) - share * TOKENS),
    id: idOf('big', 0),
  });
  const page = (account: string, after?: Position) =>
    store.page({ account, limit: PAGE, liveAt: LONG_AGO, after });
  await compare(`A page of ${PAGE}`, {
    'first of 1000': () => page('small'),
    [`first of ${TOKENS}`]: () => page('big'),
    'in the middle': () => page('big', placeAt(0.5)),
    'near the end': () => page('big', placeAt(0.999)),
    anywhere: () => page('big', placeAt(next() / TOKENS)),
  });
  const sizes = [10_000, 100_000, 1_000_000, 10_000_000].filter((size) => size <= ROWS);
  const runs = new Map<number, () => Promise<unknown>>();
  for (const size of sizes) runs.set(size, await verifyAmong(size));
  await compareSizes('A verify, by the number of rows of the table', runs);
} finally {
  await pool.end();
  await server.stop();
}
