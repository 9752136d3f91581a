import { statSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { generateKey, TokenService } from '../../../src/index.ts';
import { type SqliteHandle, SqliteTokenStore } from '../../../src/stores/sqlite/index.ts';
import { CREATED, newRecord } from '../support.ts';
import { DRIVERS, type Handle, newFile, opened } from './handles.ts';

const LATER = new Date('2200-01-01T00:00:00Z');
const MOST_A_TURN = 100;
/** Fewer than it takes to change a thousand records. */
const MANY_TURNS = 6;
const MAX_LOG = 16_777_216;

async function setUp(connect: (path: string) => Handle, count: number) {
  const path = newFile();
  const handle = opened(connect(path));
  const changes: number[] = [];
  const store = SqliteTokenStore.open(recording(handle, changes));
  await fill(store, count);
  changes.length = 0;
  const log = () => statSync(`${path}-wal`).size;
  return { path, handle, store, changes, log };
}

async function fill(store: SqliteTokenStore, count: number): Promise<void> {
  const labels = Array.from({ length: count }, (_, index) => `n${index}`);
  await Promise.all(labels.map((label) => store.insert(newRecord(label))));
}

/** Records how many rows each statement changes. */
function recording(handle: SqliteHandle, changes: number[]): SqliteHandle {
  return {
    exec: (sql) => handle.exec(sql),
    prepare(sql) {
      const statement = handle.prepare(sql);
      const run = statement.run.bind(statement);
      statement.run = (...values) => {
        const result = run(...values);
        changes.push(Number(result.changes));
        return result;
      };
      return statement;
    },
    isTransaction: false,
  };
}

/** How many turns of the event loop other code gets until the work is done. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await work;
  isOver = true;
  return turns;
}

describe.each(DRIVERS)('a SQLite store with many records, over %s', (_, connect) => {
  it.each<[string, (store: SqliteTokenStore, limit: number) => Promise<number>]>([
    ['revokeAll', (store, limit) => store.revokeAll('acme', CREATED, limit)],
    [
      'purge',
      async (store, limit) => (await store.purge({ now: LATER, minAgeMs: 0, limit })).count,
    ],
    [
      'prune',
      async (store, limit) => (await store.prune({ account: 'acme', now: LATER, limit })).count,
    ],
  ])(
    'changes at most 100 records in each turn, and as many as asked for in total: %s',
    async (_verb, call) => {
      const { store, changes } = await setUp(connect, 1250);
      const first = call(store, 1000);

      expect(await turnsDuring(first)).toBeGreaterThan(MANY_TURNS);
      expect(await first).toBe(1000);
      expect(changes).toEqual(Array(10).fill(MOST_A_TURN));
      expect(await call(store, 120)).toBe(120);
      expect(await call(store, 1000)).toBe(130);
      expect(await call(store, 1000)).toBe(0);
    },
  );

  it('would change all of them in one turn with a single statement (the control)', async () => {
    const { handle, changes } = await setUp(connect, 1250);
    const all = recording(handle, changes).prepare('UPDATE tokens SET revoked_at = 1');
    const once = (async () => all.run())();

    expect(await turnsDuring(once)).toBeLessThan(MANY_TURNS);
    expect(Math.max(...changes)).toBeGreaterThan(MOST_A_TURN);
  });

  it('reads no records that are already revoked', async () => {
    const { handle } = await setUp(connect, 0);
    const plan = handle
      .prepare(
        'EXPLAIN QUERY PLAN SELECT rowid FROM tokens WHERE account = ? AND revoked_at IS NULL LIMIT 9',
      )
      .all('acme') as { detail: string }[];

    // These indexes contain only records that are not revoked.
    expect(plan.map(({ detail }) => detail).join()).toMatch(
      /^SEARCH tokens USING COVERING INDEX tokens_(?:held_open|by_account) \(account=\?\)$/,
    );
  });

  it('keeps the log short while it revokes and purges all of them', async () => {
    const { store, log } = await setUp(connect, 30_000);
    const clock = { now: () => LATER };
    const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme', clock });
    let longest = 0;
    const watch = setInterval(() => {
      longest = Math.max(longest, log());
    }, 1);
    onTestFinished(() => clearInterval(watch));

    expect(await tokens.revokeAll('acme')).toBe(30_000);
    expect(await tokens.purge({ before: LATER })).toBe(30_000);
    expect(longest).toBeGreaterThan(0);
    expect(Math.max(longest, log())).toBeLessThan(MAX_LOG);
  });

  it('shortens a log that another connection made long', async () => {
    const { path, store, log } = await setUp(connect, 1);
    const other = connect(path);
    other.exec(`UPDATE tokens SET box = zeroblob(${MAX_LOG * 2})`);
    expect(log()).toBeGreaterThan(MAX_LOG * 2);

    await store.insert(newRecord('next'));
    const cut = log();
    other.exec('PRAGMA journal_size_limit = -1');
    other.exec(`UPDATE tokens SET box = zeroblob(${MAX_LOG * 2})`);
    other.exec('UPDATE tokens SET name = 1');
    // The control: what SQLite does by itself.
    const uncut = log();
    other.close();

    expect(cut).toBeLessThanOrEqual(MAX_LOG);
    expect(uncut).toBeGreaterThan(MAX_LOG * 2);
  });
});
