// What tokenwright adds to SQLite, as ratios in one run against the bare driver at its best:
// `npm run bench:sqlite`. `bench:growth` measures how costs grow with rows and with tokens of an account.
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { generateKey, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { newId } from '../../src/values/value.ts';
import {
  fillSqlite,
  issueMany,
  LISTED,
  LISTS,
  NEED,
  TOKEN_SCOPES,
  verifying,
  verifyingLists,
} from './filling.ts';
import { goal, printGoals } from './goals.ts';
import { anyOf, compare, type Run, timedAll } from './measure.ts';
import { machine } from './page.ts';
import { needs } from './start.ts';

const PACE = { rounds: 21, roundMs: 30, warmMs: 300 };

needs({ minutes: 1, gigabytes: 1 });
const folder = await mkdtemp(join(tmpdir(), 'tokenwright-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

function serviceOn(file: string): TokenService {
  const store = SqliteTokenStore.openFile(join(folder, file));
  return new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
}

async function operations(): Promise<void> {
  const tokens = serviceOn('operations.db');
  const handle = new DatabaseSync(join(folder, 'operations.db'));
  handle.exec('PRAGMA synchronous = FULL; PRAGMA busy_timeout = 1500');
  const issued = await issueMany(tokens, 'acme', 256);
  await fillSqlite(handle, `'other'`, { first: 0, count: 100_000 });
  const names = handle
    .prepare('PRAGMA table_info(tokens)')
    .all()
    .map(({ name }) => name);
  const columns = names.join(', ');
  const get = handle.prepare(`SELECT ${columns} FROM tokens WHERE id = ?`);
  const nextId = anyOf(issued.map(({ id }) => id));
  await compare(
    'A verify among 100 000 rows',
    timedAll({
      'the prepared statement of the driver': () => get.get(nextId()),
      'service.verify': verifying(tokens, anyOf(issued), NEED),
    }),
    PACE,
  );
  const places = names.map(() => '?').join(', ');
  const insert = handle.prepare(`INSERT INTO tokens (${columns}) VALUES (${places})`);
  const values = get.get(nextId());
  // New rows as ours are: random ids, and a time of creation that goes on.
  const newRow = () => ({ ...values, id: newId(), created_at: Date.now() });
  let count = 0;
  await compare(
    'A durable issue',
    timedAll({
      'the prepared statement of the driver': () =>
        insert.run(...(Object.values(newRow()) as string[])),
      'service.issue': () =>
        tokens.issue({ account: `account${count++ % 100}`, scopes: TOKEN_SCOPES }),
    }),
    PACE,
  );
  handle.close();
  await tokens.close();
}

async function longLists(): Promise<void> {
  const runs: Record<string, Run> = {};
  const services: TokenService[] = [];
  for (const [name, scopesOf] of Object.entries(LISTS)) {
    const tokens = serviceOn(`lists-${services.length}.db`);
    services.push(tokens);
    runs[name] = await verifyingLists(tokens, scopesOf);
  }
  const [few, , different] = await compare(
    `A verify without a cache, ${LISTED} tokens taking turns`,
    timedAll(runs),
    PACE,
  );
  goal('verify, all lists of 1 189 scopes different, to 5 scopes', 20, different, few);
  for (const tokens of services) await tokens.close();
}

await operations();
await longLists();
printGoals();
console.log(`\n${machine()}`);
