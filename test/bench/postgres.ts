// How much the PostgreSQL store adds to the bare driver with named prepared statements, and how it is to the
// check that people write by hand, as ratios in one run: `npm run bench:postgres`, on its own server. Some
// parts by name: `npm run bench:postgres -- hand-rolled`, with `--write` into docs/comparison.md.
import { hash } from 'node:crypto';
import { Pool } from 'pg';
import type { Position } from '../../src/ports/token-store.ts';
import { TokenService } from '../../src/service.ts';
import { migrate, PostgresTokenStore } from '../../src/stores/postgres/index.ts';
import { COLUMNS, toValues } from '../../src/stores/shared/rows.ts';
import type { TokenId, TokenRecord } from '../../src/token/record.ts';
import { generateKey } from '../../src/values/keys.ts';
import { startServer } from '../servers.ts';
import {
  fillPostgres,
  issueMany,
  LISTED,
  LISTS,
  NEED,
  TOKEN_SCOPES,
  verifying,
  verifyingLists,
} from './filling.ts';
import { goal, printGoals } from './goals.ts';
import {
  anyOf,
  byCallers,
  compareCosts,
  jumping,
  type Measured,
  median,
  type Run,
  ratioText,
} from './measure.ts';
import { machine, putInto, table, timeText, today } from './page.ts';
import { askedParts, isWriting, needs } from './start.ts';

const BIG = 200_000;
const PAGE = 50;
const ISSUED = 1000;
const CALLERS = 32;
const CALLS = 20;
const LONG_AGO = new Date('2020-01-01T00:00:00Z');
const columns = COLUMNS.join(', ');

/** What a part works on: tables of its own. */
interface Tables {
  readonly table: string;
  readonly store: PostgresTokenStore;
  /** @param maxStaleMs without it there is no cache */
  service(maxStaleMs?: number): TokenService;
}

async function tablesOf(tables: string, rows: number, account = 'other'): Promise<Tables> {
  await migrate(pool, { tables });
  const table = `${tables}_tokens`;
  await fillPostgres(pool, table, `'${account}'`, { first: 0, count: rows });
  await pool.query(`VACUUM ANALYZE ${table}`);
  const store = new PostgresTokenStore(pool, { tables });
  const options = { store, keys: [generateKey()], prefix: 'acme' };
  const service = (maxStaleMs = 0) => new TokenService({ ...options, cache: { maxStaleMs } });
  return { table, store, service };
}

function bare(name: string, text: string, values: unknown[]): Promise<unknown> {
  return pool.query({ name, text, values });
}

async function reads(): Promise<void> {
  const { table, store, service } = await tablesOf('reads', BIG);
  const tokens = service();
  const issued = await issueMany(tokens, 'verify', ISSUED);
  const next = anyOf(issued.map(({ id }) => id as TokenId));
  const some = () => Array.from({ length: CALLERS }, next);
  const find = (id: string) => bare('find', `SELECT ${columns} FROM ${table} WHERE id = $1`, [id]);
  const findMany = (ids: string[]) =>
    bare('findMany', `SELECT ${columns} FROM ${table} WHERE id = ANY($1)`, [ids]);
  const verify = verifying(tokens, anyOf(issued), NEED);
  await compareCosts('A point read, one at a time', {
    'the driver': () => find(next()),
    'store.find': () => store.find([next()]),
    'service.verify': verify,
  });
  await compareCosts(`${CALLERS} point reads at once`, {
    'the driver, = ANY': () => findMany(some()),
    'store.find of 32': () => store.find(some()),
    'the driver, one by one': () => Promise.all(some().map(find)),
    'store.find, one by one': () => Promise.all(some().map((id) => store.find([id]))),
  });
  await compareCosts(`${CALLERS} callers, each with one read after the other (${CALLS} of them)`, {
    'the driver': byCallers(CALLERS, CALLS, () => find(next())),
    'service.verify': byCallers(CALLERS, CALLS, verify),
  });
}

async function lists(): Promise<void> {
  const runs: Record<string, Run> = {};
  for (const [at, [name, scopesOf]] of Object.entries(LISTS).entries()) {
    const { service } = await tablesOf(`lists_${at}`, 0);
    runs[name] = await verifyingLists(service(), scopesOf);
  }
  await compareCosts(`A verify, ${LISTED} tokens taking turns`, runs);
}

async function writes(): Promise<void> {
  const { table, store, service } = await tablesOf('writes', BIG);
  const tokens = service();
  let inserted = 0;
  const newRecord = (): TokenRecord => ({
    id: `new${String(inserted++).padStart(19, '0')}` as TokenId,
    account: 'new',
    prefix: 'acme',
    kid: 'k1',
    digest: new Uint8Array(32),
    scopes: TOKEN_SCOPES,
    requested: TOKEN_SCOPES,
    createdAt: new Date(),
    expiresAt: new Date(Date.now() + 1e10),
    version: 1,
  });
  const places = COLUMNS.map((_, index) => `$${index + 1}`).join(', ');
  let count = 0;
  await compareCosts('A durable insert, one at a time', {
    'the driver': () =>
      bare('insert', `INSERT INTO ${table} (${columns}) VALUES (${places})`, toValues(newRecord())),
    'store.insert': () => store.insert(newRecord()),
    'service.issue': () => tokens.issue({ account: `new${count++ % 100}`, scopes: TOKEN_SCOPES }),
  });
  const { rows } = await pool.query(`SELECT id FROM ${table} WHERE account = 'other'`);
  const next = anyOf(rows.map(({ id }) => id as TokenId));
  const at = new Date();
  await compareCosts('A durable update, one at a time', {
    'the driver': () =>
      bare('revoke', `UPDATE ${table} SET revoked_at = $2 WHERE id = $1`, [next(), +at]),
    'store.revoke, with its hint': () => store.revoke(next(), 'other', at),
  });
}

async function pages(): Promise<void> {
  const { table, store } = await tablesOf('pages', BIG, 'big');
  await fillPostgres(pool, table, `'small'`, { first: BIG, count: 1000 });
  await pool.query(`VACUUM ANALYZE ${table}`);
  const [newest] = await store.page({ account: 'big', limit: 1, liveAt: LONG_AGO });
  const placeAt = (share: number): Position => ({
    at: new Date(Number(newest?.createdAt) - share * BIG),
    id: '' as TokenId,
  });
  const page = (account: string, after?: Position) =>
    store.page({ account, limit: PAGE, liveAt: LONG_AGO, after });
  const next = jumping(BIG);
  await compareCosts(`A page of ${PAGE}`, {
    'first of 1000': () => page('small'),
    [`first of ${BIG}`]: () => page('big'),
    'in the middle': () => page('big', placeAt(0.5)),
    'near the end': () => page('big', placeAt(0.999)),
    anywhere: () => page('big', placeAt(next() / BIG)),
  });
}

async function usage(): Promise<void> {
  const { store, service } = await tablesOf('usage', 0);
  const plain = service();
  const counting = new TokenService({ store, keys: [generateKey()], prefix: 'acme', usage: true });
  const account = 'ada';
  for (const { id } of await issueMany(plain, account, ISSUED)) {
    const uses = { uses: 1, lastUsedAt: new Date() };
    await store.usage.add(TOKEN_SCOPES.map((scope) => ({ id: id as TokenId, scope, ...uses })));
  }
  await pool.query('VACUUM ANALYZE usage_tokens, usage_usage');
  const [without, withUsage] = await compareCosts('A page of 100', {
    'without usage': () => plain.list({ account, limit: 100 }),
    'with usage': () => counting.list({ account, limit: 100 }),
  });
  goal('a page of 100 with usage to one without', 1.5, withUsage, without);
  await counting.close();
}

const HAND_ROLLED_ROWS = 100_000;
const STALE_MS = 10_000;

/** What people would write instead: a hash, an indexed read, an expiry, a list of names, and a Map for a cache. */
function handRolled() {
  interface Key {
    readonly account: string;
    readonly scopes: readonly string[];
    readonly expires_at: Date;
    readonly revoked_at: Date | null;
  }
  const cache = new Map<string, { readonly key: Key; readonly readAt: number }>();
  const find = async (digest: string): Promise<Key | undefined> => {
    const { rows } = await pool.query<Key>({
      name: 'api-key',
      text: 'SELECT account, scopes, expires_at, revoked_at FROM api_keys WHERE hash = $1',
      values: [Buffer.from(digest, 'hex')],
    });
    return rows[0];
  };
  const findCached = async (digest: string): Promise<Key | undefined> => {
    const found = cache.get(digest);
    if (found !== undefined && Date.now() - found.readAt < STALE_MS) return found.key;
    const readAt = Date.now();
    const key = await find(digest);
    if (key !== undefined) cache.set(digest, { key, readAt });
    return key;
  };
  const allows = (key: Key | undefined, scope: string) =>
    key !== undefined &&
    key.revoked_at === null &&
    key.expires_at > new Date() &&
    key.scopes.includes(scope);
  return {
    check: async (value: string, scope: string) => allows(await find(hash('sha256', value)), scope),
    checkCached: async (value: string, scope: string) =>
      allows(await findCached(hash('sha256', value)), scope),
  };
}

async function compareHandRolled(): Promise<void> {
  await pool.query(`CREATE TABLE api_keys (
    hash bytea PRIMARY KEY, account text NOT NULL, scopes text[] NOT NULL,
    expires_at timestamptz NOT NULL, revoked_at timestamptz)`);
  const insert = `INSERT INTO api_keys (hash, account, scopes, expires_at)`;
  await pool.query(
    `${insert} SELECT sha256(i::text::bytea), 'other', $1::text[], now() + interval '1 year'
     FROM generate_series(1, $2::integer) AS i`,
    [TOKEN_SCOPES, HAND_ROLLED_ROWS - ISSUED],
  );
  const { service } = await tablesOf('ours', HAND_ROLLED_ROWS - ISSUED);
  const tokens = service();
  const issued = await issueMany(tokens, 'ada', ISSUED);
  // The same values for both.
  for (const { value } of issued) {
    const digest = Buffer.from(hash('sha256', value), 'hex');
    await pool.query(`${insert} VALUES ($1, 'ada', $2, now() + interval '1 year')`, [
      digest,
      TOKEN_SCOPES,
    ]);
  }
  await pool.query('VACUUM ANALYZE api_keys, ours_tokens');
  const { check, checkCached } = handRolled();
  const scope = TOKEN_SCOPES[0] as string;
  const next = anyOf(issued);
  const byHand = (isAllowed: typeof check) => async () => {
    if (!(await isAllowed(next().value, scope))) throw new Error('refused');
  };
  const modes: Readonly<Record<string, Readonly<Record<string, Run>>>> = {
    'no cache': { 'by hand': byHand(check), tokenwright: verifying(tokens, next, scope) },
    cached: {
      'by hand': byHand(checkCached),
      tokenwright: verifying(service(STALE_MS), next, scope),
    },
  };
  const rows: string[][] = [];
  const add = (name: string, checks: number, [hand, ours]: readonly Measured[]) => {
    const [us = [], them = []] = [ours?.figures, hand?.figures];
    const times = [them, us].map((figures) => timeText(median(figures) / checks));
    rows.push([name, ...times, ratioText(us, them)]);
  };
  for (const [mode, runs] of Object.entries(modes)) {
    const one = `A check among ${HAND_ROLLED_ROWS} rows, ${mode}, one caller`;
    add(`${mode}, one caller`, 1, await compareCosts(one, runs));
    const many = Object.entries(runs).map(
      ([name, run]) => [name, byCallers(CALLERS, CALLS, run)] as const,
    );
    const all = `${CALLERS} callers, ${CALLS} checks each, ${mode}`;
    const measured = await compareCosts(all, Object.fromEntries(many));
    add(`${mode}, ${CALLERS} callers`, CALLERS * CALLS, measured);
  }
  if (!isWriting) return;
  putInto('docs/comparison.md', 'hand-rolled', [
    table([['time for each check', 'by hand', 'tokenwright', 'ratio'], ...rows]),
    `Measured on ${today()} by \`npm run bench:postgres -- hand-rolled\`, on ${machine()}.`,
  ]);
}

const PARTS = { reads, lists, writes, pages, usage, 'hand-rolled': compareHandRolled };
const parts = askedParts(Object.keys(PARTS) as (keyof typeof PARTS)[]);
needs({ minutes: 2 * parts.length, gigabytes: 2, programs: ['PostgreSQL'] });
const server = await startServer('postgres', { settings: { shared_buffers: '1GB' } });
const pool = new Pool({ connectionString: server.url, max: CALLERS });
try {
  for (const part of parts) await PARTS[part]();
  printGoals();
  console.log(`\n${machine()}`);
} finally {
  await pool.end();
  await server.stop();
}
