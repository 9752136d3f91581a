import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { COLUMNS } from '../../../src/stores/shared/rows.ts';
import type { SqliteStatement } from '../../../src/stores/sqlite/client.ts';
import { type SqliteHandle, SqliteTokenStore } from '../../../src/stores/sqlite/index.ts';
import { storeContract } from '../../../src/testing/index.ts';
import { nextTurn } from '../../../src/time/deadline.ts';
import type { TokenRecord } from '../../../src/token/record.ts';
import { revoked } from '../../../src/token/revoked.ts';
import { refusalOf } from '../../support.ts';
import { type Child, runTogether, startChild } from '../child.ts';
import { longList, longListCases, longRecord } from '../long-lists.ts';
import { CREATED, newRecord } from '../support.ts';
import { BetterSqlite3, DRIVERS, type Handle, newFile, opened } from './handles.ts';

async function setUp(path = newFile()): Promise<{
  store: SqliteTokenStore;
  /** A second connection to the same file. */
  other: DatabaseSync;
  record: TokenRecord;
}> {
  const store = opened(SqliteTokenStore.openFile(path));
  const record = newRecord('one');
  await store.insert(record);
  return { store, other: opened(new DatabaseSync(path)), record };
}

function failureOf(work: () => unknown): Error {
  try {
    work();
  } catch (error) {
    return error as Error;
  }
  throw new Error('did not fail');
}

/** Everything that describes the schema of a database. */
function schemaOf(handle: DatabaseSync): unknown[] {
  const numbers = ['user_version', 'application_id'].map((name) =>
    handle.prepare(`PRAGMA ${name}`).get(),
  );
  return [...numbers, ...handle.prepare('SELECT * FROM sqlite_schema').all()];
}

describe('SQLite store in a file', () => {
  it.each(storeContract)('$name', (promise) =>
    promise.run(() => SqliteTokenStore.openFile(newFile())),
  );
});

describe('SQLite store in memory (further)', () => {
  it.each(storeContract)('$name', (promise) =>
    promise.run(() => SqliteTokenStore.open(':memory:')),
  );
});

describe('SQLite store over better-sqlite3', () => {
  it.each(storeContract)('$name', (promise) =>
    promise.run(() => SqliteTokenStore.open(opened(new BetterSqlite3(newFile())))),
  );
});

describe('SQLite store over a handle that reads bigint (further)', () => {
  it.each(storeContract)('$name', (promise) =>
    promise.run(() =>
      SqliteTokenStore.open(opened(new DatabaseSync(':memory:', { readBigInts: true }))),
    ),
  );
});

describe.each(DRIVERS)('concurrent writes of a SQLite store, over %s', (_, connect) => {
  const records = ['one', 'two', 'three', 'four'].map((label) => newRecord(label));
  const ids = records.map(({ id }) => id);

  /** A store, the statements it executes, and errors with which these can fail. */
  function setUpSpied() {
    const handle = opened(connect(newFile()));
    const store = opened(SqliteTokenStore.open(handle));
    const executed: string[] = [];
    const faults = new Map<string, Error>();
    const exec = handle.exec.bind(handle);
    vi.spyOn(handle, 'exec').mockImplementation((sql) => {
      executed.push(sql);
      const fault = faults.get(sql);
      if (fault !== undefined) throw fault;
      return exec(sql);
    });
    return { handle, store, executed, faults };
  }

  it('share one transaction, and a single write uses none', async () => {
    const { store, executed } = setUpSpied();

    await Promise.all(records.map((record) => store.insert(record)));
    expect(executed).toEqual(['BEGIN IMMEDIATE', 'COMMIT']);
    const [one, two, three] = records as [TokenRecord, TokenRecord, TokenRecord];
    const answers = await Promise.all([
      store.revoke(one.id, 'acme', CREATED),
      store.revoke(one.id, 'acme', CREATED),
      store.replace({ ...two, version: 2 }),
      store.replace({ ...two, version: 2 }),
      store.insert(three).catch(({ code }) => code),
    ]);
    expect(answers).toEqual([true, false, true, false, 'id_taken']);
    executed.length = 0;
    expect(await store.revoke(three.id, 'acme', CREATED)).toBe(true);
    expect(executed).toEqual([]);
  });

  it('succeed even if one of them fails', async () => {
    const { store } = setUpSpied();
    const broken = { ...newRecord('broken'), account: undefined as unknown as string };

    const answers = await Promise.allSettled(
      [...records, broken].map((record) => store.insert(record)),
    );

    expect(answers.map(({ status }) => status)).toEqual([
      ...Array(records.length).fill('fulfilled'),
      'rejected',
    ]);
    expect(await store.find(ids)).toEqual(records);
  });

  it('all reject if the commit fails, and none is carried out', async () => {
    const { store, faults } = setUpSpied();
    faults.set('COMMIT', new Error('disk I/O error'));

    const codes = await Promise.all(
      records.map((record) => store.insert(record).catch(({ code }) => code)),
    );

    expect(codes).toEqual(records.map(() => 'store_unavailable'));
    faults.clear();
    expect(await store.find(ids)).toEqual(ids.map(() => undefined));
    await Promise.all(records.map((record) => store.insert(record)));
    expect(await store.find(ids)).toEqual(records);
  });

  it('are retried together while another connection holds the lock', async () => {
    const path = newFile();
    const { store, executed, faults } = setUpSpied();
    faults.set('BEGIN IMMEDIATE', lockedOut(connect, path));
    vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());

    const writing = Promise.all(records.map((record) => store.insert(record)));
    await nextTurn();
    expect(executed).toEqual(['BEGIN IMMEDIATE']);
    vi.advanceTimersByTime(15);
    // A pause takes 5 to 15 ms.
    expect(executed.length).toBeGreaterThan(1);
    expect(executed.length).toBeLessThan(5);
    faults.clear();
    vi.advanceTimersByTime(15);
    await writing;

    expect(new Set(executed.slice(0, -1))).toEqual(new Set(['BEGIN IMMEDIATE']));
    expect(executed.at(-1)).toBe('COMMIT');
    expect(await store.find(ids)).toEqual(records);
  });

  it('take part in a transaction of the host', async () => {
    const { handle, store } = setUpSpied();
    handle.exec('BEGIN');
    await Promise.all(records.map((record) => store.insert(record)));
    expect(await store.find(ids)).toEqual(records);
    handle.exec('ROLLBACK');

    expect(await store.find(ids)).toEqual(ids.map(() => undefined));
  });

  it('are still carried out if the store is closed', async () => {
    const { handle, store } = setUpSpied();
    const writing = Promise.all(records.map((record) => store.insert(record)));
    await store.close();
    await writing;

    expect(await opened(SqliteTokenStore.open(handle)).find(ids)).toEqual(records);
  });
});

describe('SqliteTokenStore.open', () => {
  it('returns a local store', () => {
    expect(opened(SqliteTokenStore.open(':memory:')).local).toBe(true);
  });

  it('lets two stores on one file see each other’s changes', async () => {
    const path = newFile();
    const { store, record } = await setUp(path);
    const second = opened(SqliteTokenStore.openFile(path));

    expect(await second.find([record.id])).toEqual([record]);
    await second.revoke(record.id, 'acme', CREATED);
    expect(await store.find([record.id])).toEqual([revoked(record, CREATED)]);
  });

  it('keeps the tokens of two files separate', async () => {
    const { record } = await setUp();
    const second = opened(SqliteTokenStore.openFile(newFile()));

    expect(await second.find([record.id])).toEqual([undefined]);
  });

  it('finds the tokens of a file that is opened again', async () => {
    const path = newFile();
    const first = SqliteTokenStore.openFile(path);
    await first.insert(newRecord('one'));
    await first.close();

    const second = opened(SqliteTokenStore.openFile(path));
    expect(await second.find([newRecord('one').id])).toEqual([newRecord('one')]);
  });

  it('creates files that only their owner can access', async () => {
    const path = newFile();
    await setUp(path);

    for (const file of [path, `${path}-wal`, `${path}-shm`]) {
      expect(statSync(file).mode & 0o777).toBe(0o600);
    }
  });

  it('leaves the mode of an existing file unchanged', async () => {
    const path = newFile();
    writeFileSync(path, '');
    chmodSync(path, 0o640);
    await setUp(path);

    expect(statSync(path).mode & 0o777).toBe(0o640);
  });

  it('creates no file for a database in memory', () => {
    opened(SqliteTokenStore.open(':memory:'));

    expect(existsSync(':memory:')).toBe(false);
  });

  it.each(DRIVERS)('sets WAL, synchronous = FULL and a short busy_timeout (%s)', (_, connect) => {
    const handle = opened(connect(newFile()));
    SqliteTokenStore.open(handle);

    expect(handle.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' });
    expect(handle.prepare('PRAGMA synchronous').get()).toEqual({ synchronous: 2 });
    expect(handle.prepare('PRAGMA busy_timeout').get()).toEqual({ timeout: 2 });
  });

  it('works for four processes that open a new file concurrently', async () => {
    const path = newFile();
    const children = ['a', 'b', 'c', 'd'].map((label) => openInChild(path, label));

    expect(await runTogether(children)).toEqual(children.map(() => ({ code: 0, errors: '' })));
    const store = opened(SqliteTokenStore.openFile(path));
    const page = await store.page({ account: 'acme', limit: 1000, liveAt: CREATED });
    expect(page).toHaveLength(4 * 25);
  });

  it.each(DRIVERS)('retries while the switch to WAL is locked (%s)', (_, connect) => {
    const path = newFile();
    const busy = lockedOut(connect, path);
    const handle = opened(connect(path));
    const exec = vi.fn(handle.exec.bind(handle));
    let left = 3;
    const flaky: SqliteHandle = {
      prepare: (sql) => handle.prepare(sql),
      exec(sql) {
        if (!sql.includes('journal_mode') || left === 0) return exec(sql);
        left -= 1;
        throw busy;
      },
    };

    expect(() => SqliteTokenStore.open(flaky)).not.toThrow();
    expect(left).toBe(0);
    expect(exec.mock.calls[0]).toEqual(['PRAGMA busy_timeout = 1500']);
  });

  it('does not retry if the switch to WAL fails for another reason', () => {
    let tries = 0;
    const database = opened(new DatabaseSync(newFile()));
    const handle: SqliteHandle = {
      prepare: (sql) => database.prepare(sql),
      exec(sql) {
        if (!sql.includes('journal_mode')) return;
        tries += 1;
        throw Object.assign(new Error('disk I/O error'), { errcode: 10, code: 'SQLITE_IOERR' });
      },
    };

    expect(failureOf(() => SqliteTokenStore.open(handle))).toMatchObject({
      code: 'store_unavailable',
    });
    expect(tries).toBe(1);
  });

  it('creates the schema only once', () => {
    const path = newFile();
    const handle = opened(new DatabaseSync(path));
    SqliteTokenStore.open(handle);
    const schema = () => handle.prepare('SELECT * FROM sqlite_schema').all();
    const before = schema();
    SqliteTokenStore.open(handle);

    expect(handle.prepare('PRAGMA user_version').get()).toEqual({ user_version: 65_537 });
    expect(schema()).toEqual(before);
  });

  it.each([[undefined], [null], [42], [{}], [new URL('file:///a.db')]])(
    'refuses to open %j',
    (given) => {
      const failure = failureOf(() => SqliteTokenStore.open(given as never));

      expect(failure).toMatchObject({ code: 'invalid_options' });
    },
  );

  it.each(DRIVERS)('sets the application_id of a database (%s)', (_, connect) => {
    const path = newFile();
    const handle = opened(connect(path));
    SqliteTokenStore.open(handle);
    const mark = handle.prepare('PRAGMA application_id').get();
    handle.exec('PRAGMA wal_checkpoint(TRUNCATE)');

    expect(mark).toEqual({ application_id: 1415008852 });
    expect(readFileSync(path).subarray(68, 72).toString('latin1')).toBe('TWRT');
  });

  it('needs no lock to open an existing database of its own', async () => {
    const path = newFile();
    const { other } = await setUp(path);
    other.exec('BEGIN IMMEDIATE');

    expect(() => opened(SqliteTokenStore.openFile(path))).not.toThrow();
    other.exec('ROLLBACK');
  });

  it.each([
    ['that lacks a column', 'ALTER TABLE tokens RENAME name TO title', 2 + 65_536],
    ['that needs later code', '', 2 + 2 * 65_536],
    ['with another table', 'DROP TABLE tokens; CREATE TABLE tokens (newer)', 2 + 65_536],
  ])('refuses a later schema %s and changes nothing', (_, sql, mark) => {
    const handle = opened(new DatabaseSync(newFile()));
    SqliteTokenStore.open(handle);
    handle.exec(`PRAGMA user_version = ${mark}; ${sql}`);
    const before = schemaOf(handle);
    const failure = failureOf(() => SqliteTokenStore.open(handle));

    expect(failure).toMatchObject({
      code: 'invalid_options',
      details: { reason: 'schema_newer' },
    });
    expect(failure.message).toContain('schema version 2');
    expect(schemaOf(handle)).toEqual(before);
    expect(handle.isTransaction).toBe(false);
  });

  it('works with a later schema that requires this version, and keeps what it adds', async () => {
    const handle = opened(new DatabaseSync(newFile()));
    const running = SqliteTokenStore.open(handle);
    const record = newRecord('one');
    await running.insert(record);
    handle.exec(`
      ALTER TABLE tokens ADD COLUMN note TEXT;
      CREATE INDEX tokens_by_note ON tokens (note);
      PRAGMA user_version = ${2 + 65_536};
      UPDATE tokens SET note = 'later';
    `);
    const before = schemaOf(handle);
    const store = SqliteTokenStore.open(handle);
    const next = { ...record, version: 2, name: 'changed' };

    expect(await store.replace(next)).toBe(true);
    expect(await running.find([record.id])).toEqual([next]);
    await store.insert(newRecord('two'));
    expect(await running.revoke(record.id, 'acme', CREATED)).toBe(true);
    expect(handle.prepare('SELECT note FROM tokens ORDER BY id').all()).toEqual([
      { note: 'later' },
      { note: null },
    ]);
    expect(schemaOf(handle)).toEqual(before);
  });

  it.each([
    ['a table', 'CREATE TABLE users (a)'],
    ['a view', 'CREATE VIEW one AS SELECT 1'],
    ['a version', 'PRAGMA user_version = 7'],
    ['our version', 'PRAGMA user_version = 65537'],
    ['a table and a version', 'PRAGMA user_version = 7; CREATE TABLE users (a)'],
    ['a table and our version', 'PRAGMA user_version = 65537; CREATE TABLE users (a)'],
    ['an application_id', 'PRAGMA application_id = 1'],
    ['a table called tokens', 'CREATE TABLE tokens (theirs)'],
    [
      'a table called tokens and our version',
      'PRAGMA user_version = 65537; CREATE TABLE tokens (id, account)',
    ],
    [
      'a table like ours, without its version',
      `CREATE TABLE tokens (${COLUMNS.join(', ')}); CREATE TABLE users (a)`,
    ],
    [
      'a table like ours, and an application_id',
      `CREATE TABLE tokens (${COLUMNS.join(', ')}); PRAGMA user_version = 65537; PRAGMA application_id = 1`,
    ],
    [
      'our application_id, and another table',
      'CREATE TABLE tokens (theirs); PRAGMA user_version = 65537; PRAGMA application_id = 1415008852',
    ],
  ])('refuses a database of another application, with %s, and changes nothing', (_, sql) => {
    const path = newFile();
    const theirs = new DatabaseSync(path);
    theirs.exec(sql);
    theirs.close();
    const before = readFileSync(path);

    for (const [, connect] of DRIVERS) {
      const handle = opened(connect(path));
      for (const open of [
        () => SqliteTokenStore.openFile(path),
        () => SqliteTokenStore.open(handle),
      ]) {
        const failure = failureOf(open);
        expect(failure).toMatchObject({ code: 'invalid_options' });
        expect(failure.message).toContain('give tokenwright a file of its own');
        expect(failure.message).not.toMatch(/users|upgrade/);
      }
      handle.exec('BEGIN; ROLLBACK');
    }
    expect(readFileSync(path)).toEqual(before);
  });

  it('accepts an existing file that is empty', () => {
    const path = newFile();
    writeFileSync(path, '');
    const vacant = opened(new DatabaseSync(newFile()));
    vacant.exec('CREATE TABLE gone (a); DROP TABLE gone');

    expect(() => opened(SqliteTokenStore.openFile(path))).not.toThrow();
    expect(() => SqliteTokenStore.open(vacant)).not.toThrow();
  });

  it.each([
    ['a file that is not a database', 'this is not a database at all, whatever its name may say'],
    ['a path in a directory that does not exist', undefined],
  ])('rejects %s without the text of the driver', (_, content) => {
    const path = content === undefined ? join(newFile(), 'tokens.db') : newFile();
    if (content !== undefined) writeFileSync(path, content);
    const failure = failureOf(() => SqliteTokenStore.openFile(path));

    expect(failure).toMatchObject({ code: 'store_unavailable' });
    expect(failure.cause).toBeUndefined();
    expect(failure.message).not.toMatch(/not a database|ENOENT|unable|tokens\.db/);
  });

  it('explains what to do if Node.js has no node:sqlite', () => {
    const spy = vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined as never);
    onTestFinished(() => spy.mockRestore());
    const path = newFile();
    const failure = failureOf(() => SqliteTokenStore.openFile(path));

    expect(failure).toMatchObject({ code: 'invalid_options' });
    expect(failure.message).toMatch(/^[^\n]*22\.13[^\n]*better-sqlite3[^\n]*$/);
    expect(existsSync(path)).toBe(false);
    expect(() => SqliteTokenStore.open(opened(new BetterSqlite3(path)))).not.toThrow();
  });
});

describe('SqliteTokenStore.close', () => {
  it('closes a file that the store opened, and can be called twice', async () => {
    const store = SqliteTokenStore.openFile(newFile());
    await store.close();
    await store.close();

    await expect(store.find([newRecord('one').id])).rejects.toMatchObject({
      code: 'store_unavailable',
    });
  });

  it.each(DRIVERS)('leaves a handle of the host open (%s)', async (_, connect) => {
    const handle = opened(connect(newFile()));
    const store = SqliteTokenStore.open(handle);
    await store.close();

    expect(handle.prepare('SELECT 1 AS one').get()).toEqual({ one: 1 });
  });
});

describe('a corrupt row in SQLite', () => {
  it.each([
    ['digest', `x'00'`],
    ['digest', 'zeroblob(33)'],
    ['previous_digest', `x'00'`],
    ['scopes', `'garbage'`],
    ['scopes', `'{"a":"secret"}'`],
    ['scopes', `'["a",1]'`],
    ['requested', `'null'`],
    ['metadata', `'garbage'`],
    ['metadata', `'[1]'`],
    ['metadata', `'null'`],
    ['created_at', '9000000000000000'],
    ['expires_at', '-9000000000000000'],
    ['revoked_at', '9000000000000000'],
    ['previous_until', '9000000000000000'],
    ['suspended_at', '9000000000000000'],
    ['scopes_changed_at', '9000000000000000'],
    ['rotated_at', '9000000000000000'],
    ['pending', `'garbage'`],
    ['pending', `'{"prefix":"acme","kid":"k1","digest":"","graceSeconds":1}'`],
    ['version', '9007199254740993'],
  ])('makes find reject with store_corrupt: %s = %s', async (column, value) => {
    const { store, other, record } = await setUp();
    const bystander = newRecord('two');
    await store.insert(bystander);
    other.exec(`UPDATE tokens SET ${column} = ${value} WHERE id = '${record.id}'`);

    for (const ids of [[record.id], [bystander.id, record.id]]) {
      const { code, message } = await refusalOf(store.find(ids));
      expect(code).toBe('store_corrupt');
      expect(message).not.toMatch(/garbage|secret|JSON/);
    }
    expect(await store.find([bystander.id])).toEqual([bystander]);
  });

  it.each([
    ['prefix', `x'00'`],
    ['digest', `'text'`],
    ['box', `'text'`],
    ['scopes', `x'00'`],
    ['expires_at', `'text'`],
    ['created_at', '1.5'],
    ['version', `x'00'`],
    ['name', `x'00'`],
    ['metadata', `x'00'`],
  ])(
    'makes find and page reject with store_corrupt if %s has another type: %s',
    async (column, value) => {
      const { store, other, record } = await setUp();
      await store.close();
      // A tool that rebuilds tables can lose the column types like this.
      other.exec('ALTER TABLE tokens RENAME TO strict');
      other.exec('CREATE TABLE loose AS SELECT * FROM strict; DROP TABLE strict');
      other.exec('ALTER TABLE loose RENAME TO tokens; CREATE UNIQUE INDEX one ON tokens (id)');
      other.exec(`UPDATE tokens SET ${column} = ${value}`);
      const again = SqliteTokenStore.open(other);

      await expect(again.find([record.id])).rejects.toMatchObject({ code: 'store_corrupt' });
      await expect(
        again.page({ account: 'acme', limit: 1, liveAt: new Date(0) }),
      ).rejects.toMatchObject({ code: 'store_corrupt' });
    },
  );
});

describe('a SQLite database that fails', () => {
  const record = newRecord('one');
  const verbs: [string, (store: SqliteTokenStore) => Promise<unknown>][] = [
    ['insert', (store) => store.insert(newRecord('two'))],
    ['replace', (store) => store.replace({ ...record, version: 2 })],
    ['revoke', (store) => store.revoke(record.id, 'acme', CREATED)],
    ['revokeAll', (store) => store.revokeAll('acme', CREATED, 1000)],
    [
      'purge',
      (store) => store.purge({ now: new Date('2200-01-01T00:00:00Z'), minAgeMs: 0, limit: 1 }),
    ],
    ['find', (store) => store.find([record.id])],
    ['find of several', (store) => store.find([record.id, record.id])],
    ['page', (store) => store.page({ account: 'acme', limit: 1, liveAt: CREATED })],
  ];
  const table = DRIVERS.flatMap(([driver, connect]) =>
    verbs.map(([verb, call]) => ({ driver, connect, verb, call })),
  );

  it.each(table)(
    'makes $verb reject if it is closed, without the text of $driver',
    async ({ connect, call }) => {
      const handle = connect(newFile());
      const store = SqliteTokenStore.open(handle);
      const statement = handle.prepare('SELECT 1');
      handle.close();

      const { code, message } = await refusalOf(call(store));
      expect(code).toBe('store_unavailable');
      expect(message).not.toContain(failureOf(() => statement.get()).message);
    },
  );

  it.each(table)(
    'lets reads through and makes writes reject while it is locked: $verb ($driver)',
    async ({ connect, verb, call }) => {
      // Both handles need the same driver: two copies of SQLite in one process do not see each other's locks.
      const path = newFile();
      const [other, handle] = [opened(connect(path)), opened(connect(path))];
      const first = SqliteTokenStore.open(other);
      await first.insert(record);
      const store = SqliteTokenStore.open(handle);
      other.exec('BEGIN IMMEDIATE');

      if (verb.startsWith('find') || verb === 'page') {
        expect(await call(store)).toContainEqual(record);
      } else {
        vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
        onTestFinished(() => void vi.useRealTimers());
        const refusal = refusalOf(call(store));
        await nextTurn();
        vi.advanceTimersByTime(1515);
        const { code, message } = await refusal;
        expect(code).toBe('store_unavailable');
        expect(message).not.toContain('database is locked');
      }
      other.exec('ROLLBACK');
      expect(await first.find([record.id])).toEqual([record]);
      await call(store);
    },
  );
});

describe('query plans in SQLite', () => {
  function plans(): [sql: string, plan: string][] {
    const handle = opened(new DatabaseSync(':memory:'));
    const prepare = vi.fn((sql: string) => handle.prepare(sql));
    SqliteTokenStore.open({ exec: (sql) => handle.exec(sql), prepare });
    const statements = prepare.mock.calls.map(([sql]) => sql).filter((sql) => !/PRAGMA/i.test(sql));
    return statements.map((sql) => [sql, planOf(handle, sql)]);
  }

  function planOf(handle: DatabaseSync, sql: string): string {
    const steps = handle
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all(...sql.matchAll(/\?/g).map(() => 1));
    return steps.map((step) => step['detail']).join('\n');
  }

  it('read pages and scans from an index, without sorting', () => {
    const sorted = plans().filter(([sql]) => /ORDER BY (?!.*rowid|2 )/.test(sql));

    const pageBy = (index: string) =>
      `SEARCH tokens USING INDEX ${index} (account=? AND (created_at,id)<(?,?))`;
    const expiringBy = (index: string) =>
      `SEARCH tokens USING INDEX ${index} (account=? AND (expires_at,id)>(?,?) AND expires_at<?)`;
    const [open, revoked] = ['tokens_by_account', 'tokens_revoked'].map(pageBy);
    const [expiring, revokedExpiring] = ['tokens_by_expiry', 'tokens_revoked_by_expiry'].map(
      expiringBy,
    );
    expect(sorted.map(([, plan]) => plan).sort()).toEqual([
      `MERGE (UNION ALL)\nLEFT\n${open}\nRIGHT\n${revoked}`,
      `MERGE (UNION ALL)\nLEFT\n${expiring}\nRIGHT\n${revokedExpiring}`,
      'SEARCH tokens USING INDEX sqlite_autoindex_tokens_1 (id>?)',
      // Pages of active, live and expired tokens; by expiry, one statement serves the last two.
      ...Array(3).fill(open),
      ...Array(2).fill(expiring),
      // Pages of the children of a token in each state, and in several.
      ...Array(6).fill(
        'SEARCH tokens USING INDEX tokens_by_parent (parent=? AND (created_at,id)<(?,?))',
      ),
      ...Array(6).fill(
        'SEARCH tokens USING INDEX tokens_by_root (root=? AND (created_at,id)<(?,?))',
      ),
      revoked,
      revokedExpiring,
      pageBy('tokens_suspended'),
      expiringBy('tokens_suspended_by_expiry'),
    ]);
  });

  it('never read the whole table', () => {
    const all = plans();
    const details = all.map(([, plan]) => plan).join('\n');

    expect(all).toHaveLength(47);
    expect(details).not.toMatch(/SCAN (?!asked|CONSTANT ROW)/);
    expect(details).not.toContain('TEMP B-TREE');
    expect(details).toContain('tokens_by_end');
  });

  it('count in an index, without reading tokens', () => {
    const counts = plans().filter(([sql]) => sql.includes('OFFSET') || sql.includes('count(*)'));
    const searches = counts.map(([, plan]) => plan).sort();

    expect(searches).toHaveLength(12);
    for (const plan of searches) {
      expect(plan).toMatch(
        /^SEARCH tokens USING COVERING INDEX tokens_held_(open|revoked) \(account=\? AND root=\? AND [^|]*\)$/,
      );
    }
  });

  it('prune by an index of what a quota counts', () => {
    const [plan] = plans().filter(([sql]) => sql.includes('UNION ALL SELECT id'));

    expect(plan?.[1]).toMatch(
      /^MERGE \(UNION ALL\)\nLEFT\nSEARCH tokens USING INDEX tokens_held_open \(account=\? AND root=\? AND revoked_at=\? AND expires_at<\?\)\nRIGHT\nSEARCH tokens USING INDEX tokens_held_revoked \(account=\? AND root=\? AND format=\? AND revoked_at>\?\)$/,
    );
  });

  it('show a sort and a scan for a query without an index (the control)', () => {
    const handle = opened(new DatabaseSync(':memory:'));
    SqliteTokenStore.open(handle);
    const plan = planOf(handle, 'SELECT * FROM tokens ORDER BY expires_at');

    expect(plan).toContain('SCAN tokens');
    expect(plan).toContain('TEMP B-TREE');
  });
});

describe('scope lists in a SQLite store', () => {
  it('are one shared frozen array for all records with equal lists', async () => {
    const { store, record } = await setUp();
    const two = newRecord('two', { account: 'other', requested: record.scopes });
    await store.insert(two);
    const [first] = await store.find([record.id]);
    const [second, third] = await store.find([two.id, record.id]);

    expect(Object.isFrozen(first?.scopes)).toBe(true);
    for (const list of [second?.scopes, second?.requested, third?.scopes]) {
      expect(list).toBe(first?.scopes);
    }
    expect(first?.requested).not.toBe(first?.scopes);
  });

  it('are cached one by one if they differ in a single character', async () => {
    const store = opened(SqliteTokenStore.open(':memory:'));
    const records = Array.from({ length: 20 }, (_, changed) =>
      newRecord(`n${changed}`, {
        scopes: Array.from(
          { length: 200 },
          (_, index) => `GET:shop.example/${index}/${index === changed * 7 ? 'a' : 'b'}`,
        ).sort(),
      }),
    );
    for (const record of records) await store.insert(record);
    const read = async ({ id }: TokenRecord) => (await store.find([id]))[0]?.scopes;
    const before = [];
    for (const record of records) before.push(await read(record));

    for (const [index, record] of records.entries()) {
      expect(before[index]).toEqual(record.scopes);
      expect(await read(record)).toBe(before[index]);
    }
  });

  const others = (count: number, length: number) =>
    Array.from({ length: count }, (_, index) =>
      newRecord(`n${index}`, {
        scopes: Array.from(
          { length },
          (_, path) => `GET:shop.example/${'x'.repeat(40)}/${index}/${path}`,
        ),
      }),
    );

  it.each([
    ['many other lists', 700, 8],
    ['a few long lists', 30, 500],
  ])('are evicted when %s are read', async (_, count, length) => {
    const store = opened(SqliteTokenStore.open(':memory:', { maxListBytes: 1_048_576 }));
    const record = newRecord('one');
    await store.insert(record);
    const scopes = async () => (await store.find([record.id]))[0]?.scopes;
    const before = await scopes();
    const records = others(count, length);
    for (const other of records) await store.insert(other);

    await store.find(records.slice(0, 2).map(({ id }) => id));
    expect(await scopes()).toBe(before);
    for (let times = 0; times < 5; times += 1) await store.find(records.map(({ id }) => id));
    expect(await scopes()).not.toBe(before);
    expect(await scopes()).toEqual(before);
  });

  it.each([
    ['stay cached in part', 'slightly more lists than fit', 8, 3],
    ['are all evicted', 'far more lists than fit', 40, 0],
  ])('%s when %s are read in turn', async (_, __, count, least) => {
    const store = opened(SqliteTokenStore.open(':memory:', { maxListBytes: 1_048_576 }));
    const records = others(count, 400);
    for (const record of records) await store.insert(record);
    const lists = async () => {
      const found: unknown[] = [];
      for (const { id } of records) found.push((await store.find([id]))[0]?.scopes);
      return found;
    };
    await lists();
    const before = await lists();
    const after = await lists();
    const kept = after.filter((list, index) => list === before[index]).length;

    expect(kept).toBeGreaterThanOrEqual(least);
    expect(kept).toBeLessThan(6);
  });

  it.each([0, 1_048_575, 1_048_576.5, 17_179_869_185, '2000000', Number.NaN])(
    'refuse %o as maxListBytes',
    (maxListBytes) => {
      const open = () =>
        SqliteTokenStore.open(':memory:', { maxListBytes: maxListBytes as number });
      expect(failureOf(open)).toMatchObject({
        code: 'invalid_options',
        message: 'maxListBytes must be a whole number from 1048576 to 17179869184',
      });
    },
  );

  it('are not cached if one would evict most of the others', async () => {
    const { store, record } = await setUp(':memory:');
    const scopes = async ({ id }: TokenRecord) => (await store.find([id]))[0]?.scopes;
    const before = await scopes(record);
    const path = 'x'.repeat(2000);
    const huge = newRecord('huge', {
      scopes: Array.from({ length: 4096 }, (_, index) => `GET:shop.example/${path}/${index}`),
    });
    await store.insert(huge);

    expect(await scopes(huge)).toEqual(huge.scopes);
    expect(await scopes(huge)).not.toBe(await scopes(huge));
    expect(await scopes(record)).toBe(before);
  });
});

describe('a SQLite store with long scope lists', () => {
  /** Estimates the bytes of scopes in the results of `get` and `all`. */
  function counting(handle: Handle): { handle: Handle; bytesRead: () => number } {
    let bytes = 0;
    const counted = <Answer>(answer: Answer): Answer => {
      for (const text of JSON.stringify(answer ?? null).match(/GET:shop/g) ?? [])
        bytes += 12 * text.length;
      return answer;
    };
    return {
      handle: {
        exec: (sql) => handle.exec(sql),
        prepare(sql) {
          const statement = handle.prepare(sql);
          const counting: SqliteStatement = {
            get: (...values) => counted(statement.get(...values)),
            all: (...values) => counted(statement.all(...values)),
            run: (...values) => statement.run(...values),
          };
          return counting;
        },
        get isTransaction() {
          return (
            (handle as SqliteHandle).isTransaction ??
            (handle as SqliteHandle).inTransaction ??
            false
          );
        },
        close: () => handle.close(),
      },
      bytesRead: () => bytes,
    };
  }

  function setUpLong(open: (path: string) => Handle) {
    const path = newFile();
    const raw = opened(open(path));
    const { handle, bytesRead } = counting(raw);
    const store = SqliteTokenStore.open(handle);
    const elsewhere = opened(SqliteTokenStore.open(opened(open(path))));
    const other = opened(open(path));
    const write = (by: Handle, { id, scopes, requested }: TokenRecord) =>
      by
        .prepare('UPDATE tokens SET scopes = ?, requested = ? WHERE id = ?')
        .run(JSON.stringify(scopes), JSON.stringify(requested), id);
    return {
      path,
      store,
      elsewhere,
      bytesRead,
      raw,
      write,
      overwrite: (record: TokenRecord) => write(other, record),
      remove: ({ id }: TokenRecord) => other.prepare('DELETE FROM tokens WHERE id = ?').run(id),
    };
  }

  describe.each(DRIVERS)('over %s', (_, open) => {
    it.each(longListCases)('$name', (one) => one.run(setUpLong(open)));

    it('returns lists that the host wrote over the same connection', async () => {
      const { store, raw, write } = setUpLong(open);
      await store.insert(longRecord('a'));
      for (let times = 0; times < 3; times += 1) await store.find([longRecord('a').id]);
      write(raw, longRecord('b'));

      const [found] = await store.find([longRecord('a').id]);
      expect(found?.scopes).toEqual(longList('b'));
    });

    it('returns the former lists after the host rolled back', async () => {
      const { store, raw, write } = setUpLong(open);
      const find = async () => (await store.find([longRecord('a').id]))[0]?.scopes;
      await store.insert(longRecord('a'));
      for (let times = 0; times < 3; times += 1) await find();
      raw.exec('BEGIN');
      write(raw, longRecord('b'));
      for (let times = 0; times < 3; times += 1) expect(await find()).toEqual(longList('b'));
      raw.exec('ROLLBACK');

      for (let times = 0; times < 3; times += 1) expect(await find()).toEqual(longList('a'));
    });

    it('does not read a cached list again after other tokens were issued and revoked', async () => {
      const { store, bytesRead } = setUpLong(open);
      await store.insert(longRecord('a'));
      for (let times = 0; times < 3; times += 1) await store.find([longRecord('a').id]);
      await store.insert(newRecord('two'));
      await store.revoke(newRecord('two').id, 'acme', CREATED);
      const before = bytesRead();
      await store.find([longRecord('a').id]);
      expect(bytesRead()).toBe(before);
      // The control: the store does not know which records a revokeAll changed, so it reads again.
      await store.revokeAll('acme', CREATED, 1000);
      await store.find([longRecord('a').id]);
      expect(bytesRead()).toBeGreaterThan(before);
    });
  });

  it('returns the lists of a backup that was restored into the open file', async () => {
    const { store, elsewhere, path } = setUpLong((file) => new DatabaseSync(file));
    const find = async () => (await store.find([longRecord('a').id]))[0];
    await elsewhere.insert(longRecord('a'));
    const copy = newFile();
    await backup(opened(new DatabaseSync(path)), copy);
    await elsewhere.replace(longRecord('b', { version: 2 }));
    for (let times = 0; times < 3; times += 1)
      expect((await find())?.scopes).toEqual(longList('b'));

    await backup(opened(new DatabaseSync(copy)), path);
    expect(await find()).toMatchObject({ scopes: longList('a'), version: 1 });
    // Writes the same version again, with other scopes.
    await elsewhere.replace(longRecord('c', { version: 2 }));
    expect(await find()).toMatchObject({ scopes: longList('c'), version: 2 });
  });
});

describe('page of a SQLite store with maxBytes', () => {
  const query = { account: 'acme', limit: 100, liveAt: CREATED };
  const records = Array.from({ length: 20 }, (_, index) =>
    newRecord(`n${String(index).padStart(2, '0')}`, {
      scopes: Array.from({ length: 50 }, (_, path) => `GET:shop.example/${index}/${path}`),
      createdAt: new Date(CREATED.getTime() - index),
    }),
  );

  it.each(DRIVERS)('reads no more rows than it returns, over %s', async (_, connect) => {
    const handle = opened(connect(newFile()));
    let rows = 0;
    const counted: SqliteHandle = {
      exec: (sql) => handle.exec(sql),
      prepare(sql) {
        const statement = handle.prepare(sql);
        const iterate = statement.iterate?.bind(statement);
        statement.iterate = function* (...values) {
          for (const row of iterate?.(...values) ?? []) {
            rows += 1;
            yield row;
          }
        };
        return statement;
      },
    };
    const store = SqliteTokenStore.open(counted);
    await Promise.all(records.map((record) => store.insert(record)));

    expect(await store.page({ ...query, maxBytes: 4000 })).toEqual(records.slice(0, 4));
    expect(rows).toBe(4);
  });

  it.each(DRIVERS)('leaves no statement open, over %s', async (_, connect) => {
    const path = newFile();
    const handle = opened(connect(path));
    const store = SqliteTokenStore.open(handle);
    await Promise.all(records.map((record) => store.insert(record)));
    await store.page({ ...query, maxBytes: 1 });
    handle.exec(`UPDATE tokens SET scopes = 'garbage' WHERE id = '${records[1]?.id}'`);
    await expect(store.page({ ...query, maxBytes: 4000 })).rejects.toMatchObject({
      code: 'store_corrupt',
    });

    await store.insert(newRecord('more'));
    const checkpoint = handle.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
    expect(checkpoint).toMatchObject({ busy: 0, log: 0 });
  });

  it('returns the same rows over a handle without iterate', async () => {
    const handle = opened(new DatabaseSync(newFile()));
    const store = SqliteTokenStore.open({
      exec: (sql) => handle.exec(sql),
      prepare(sql) {
        const statement = handle.prepare(sql);
        return {
          get: (...values) => statement.get(...values),
          all: (...values) => statement.all(...values),
          run: (...values) => statement.run(...values),
        };
      },
    });
    await Promise.all(records.map((record) => store.insert(record)));

    expect(await store.page({ ...query, maxBytes: 4000 })).toEqual(records.slice(0, 4));
  });
});

describe('the count of a SQLite store', () => {
  const COUNTED = 45_000;
  const MOST = { live: 1_000_000, ended: 1_000_000 };

  /** Many records of one account; `times` is what the columns of times hold for the row number `i`. */
  function filled(times: string) {
    const path = newFile();
    const store = opened(SqliteTokenStore.openFile(path));
    const handle = opened(new DatabaseSync(path));
    handle.exec(
      `INSERT INTO tokens (id, account, prefix, kid, digest, scopes, requested, version, created_at,
         expires_at, revoked_at, format)
       WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${COUNTED})
       SELECT printf('%022d', i), 'acme', 'acme', 'k1', zeroblob(32), '[]', '[]', 1, i, ${times} FROM n`,
    );
    return store;
  }

  it.each([
    ['each with an expiry of its own', 'i + 1000, NULL, NULL', { live: COUNTED, ended: 0 }],
    ['of one expiry', '1000, NULL, NULL', { live: COUNTED, ended: 0 }],
    ['that expired at one instant', '500, NULL, NULL', { live: 0, ended: COUNTED }],
    ['that were revoked at one instant', '9000, 7, NULL', { live: 0, ended: COUNTED }],
    [
      'of which some were imported',
      "9000, 7 + i % 2, iif(i % 3 = 0, 'sanctum', NULL)",
      { live: 0, ended: COUNTED },
    ],
    [
      'of all kinds',
      "iif(i % 2 = 0, 9000, 400), iif(i % 3 = 0, i, NULL), iif(i % 5 = 0, 'a' || i % 7, NULL)",
      { live: COUNTED / 3, ended: (2 * COUNTED) / 3 },
    ],
  ])('finds all tokens %s', async (_, times, expected) => {
    const store = filled(times);

    expect(await store.count({ account: 'acme', liveAt: new Date(500), most: MOST })).toEqual(
      expected,
    );
    const most = { live: 20_001, ended: 40_000 };
    expect(await store.count({ account: 'acme', liveAt: new Date(500), most })).toEqual({
      live: Math.min(expected.live, most.live),
      ended: Math.min(expected.ended, most.ended),
    });
  });

  it('leaves turns of the event loop to others', async () => {
    const store = filled('1000, NULL, NULL');
    let turns = 0;
    let isOver = false;
    const count = () => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    await store.count({ account: 'acme', liveAt: CREATED, most: MOST });
    isOver = true;

    expect(turns).toBeGreaterThanOrEqual(2);
  });

  it('makes hasReached look at no more than a thousand records', async () => {
    const { store, other } = await setUp();
    other.exec('UPDATE tokens SET created_at = 5000');
    const fill = (count: number, label: string) =>
      other.exec(
        `INSERT INTO tokens (id, account, prefix, kid, digest, scopes, requested, version, created_at,
           expires_at)
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
         SELECT '${label}' || i, 'acme', 'acme', 'k1', zeroblob(32), '[]', '[]', 1, 7, 9000 FROM n`,
      );
    fill(999, 'a');
    expect(await store.hasReached(new Date(5000))).toBe(true);
    fill(1, 'b');
    expect(await store.hasReached(new Date(5000))).toBe(false);
    expect(await store.hasReached(new Date(7))).toBe(true);
  });

  it('makes hasReached ask the clock of the machine, too', async () => {
    const { store } = await setUp();

    expect(await store.hasReached(CREATED)).toBe(false);
    expect(await store.hasReached(new Date(0))).toBe(true);
  });
});

/** The error of a driver that finds the database locked. */
function lockedOut(connect: (path: string) => Handle, path: string): Error {
  const [holder, second] = [connect(path), connect(path)];
  holder.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  second.exec('PRAGMA busy_timeout = 0');
  const error = failureOf(() => second.exec('PRAGMA journal_mode = WAL'));
  holder.close();
  second.close();
  return error;
}

/** A process that waits for a line, then opens a store and inserts 25 tokens. */
function openInChild(path: string, label: string): Child {
  const module = new URL('../../../src/stores/sqlite/index.ts', import.meta.url).href;
  const record = newRecord('');
  return startChild(`
    import { SqliteTokenStore } from ${JSON.stringify(module)};
    process.stdout.write('ready');
    process.stdin.once('data', async () => {
      const store = SqliteTokenStore.openFile(${JSON.stringify(path)});
      for (let n = 0; n < 25; n += 1) {
        await store.insert({
          ...${JSON.stringify(record)},
          id: (${JSON.stringify(label)} + n).padEnd(22, 'x'),
          digest: new Uint8Array(32),
          createdAt: new Date(${CREATED.getTime()}),
          expiresAt: new Date(${record.expiresAt.getTime()}),
        });
      }
      await store.close();
      process.stdin.destroy();
    });
  `);
}

describe('watch of a SQLite store', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each(DRIVERS)(
    'reports commits of another connection, but not its own: %s',
    async (_, open) => {
      const path = newFile();
      const { record } = await setUp(path);
      const store = opened(SqliteTokenStore.open(opened(open(path))));
      const other = opened(SqliteTokenStore.open(opened(open(path))));
      const hints: unknown[] = [];
      await store.watch((ids) => hints.push(ids));

      await store.revoke(record.id, 'acme', CREATED);
      vi.advanceTimersByTime(100);
      expect(hints).toEqual([]);

      await other.insert(newRecord('two'));
      vi.advanceTimersByTime(25);
      expect(hints).toEqual(['all']);

      vi.advanceTimersByTime(1000);
      expect(hints).toEqual(['all']);
    },
  );

  it.each<[string, (store: SqliteTokenStore, end: () => Promise<void>) => Promise<void>]>([
    ['unsubscribing', (_, end) => end()],
    ['closing the store', (store) => store.close()],
  ])('reports nothing more after %s', async (_, finish) => {
    const path = newFile();
    const { store } = await setUp(path);
    const other = opened(SqliteTokenStore.openFile(path));
    const hints: unknown[] = [];
    const end = await store.watch((ids) => hints.push(ids));

    await finish(store, end);
    await other.insert(newRecord('two'));
    vi.advanceTimersByTime(1000);

    expect(hints).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('reports "all" if the database does not answer', async () => {
    const handle = new DatabaseSync(newFile());
    const store = SqliteTokenStore.open(handle);
    const hints: unknown[] = [];
    await store.watch((ids) => hints.push(ids));

    handle.close();
    vi.advanceTimersByTime(25);

    expect(hints).toEqual(['all']);
    await store.close();
  });
});

describe('doctor of a SQLite store', () => {
  it('finds nothing in a newly opened store', async () => {
    const { store } = await setUp();
    expect(await store.doctor()).toEqual([]);
    expect(await opened(SqliteTokenStore.open(':memory:')).doctor()).toEqual([]);
  });

  it.each([
    ['PRAGMA synchronous = NORMAL', 'synchronous_off'],
    ['PRAGMA synchronous = OFF', 'synchronous_off'],
    ['PRAGMA journal_mode = DELETE', 'journal_not_wal'],
  ])('reports %s', async (pragma, code) => {
    const handle = opened(new DatabaseSync(newFile()));
    const store = SqliteTokenStore.open(handle);
    handle.exec(pragma);

    expect((await store.doctor()).map((finding) => finding.code)).toEqual([code]);
  });

  it.each(['tokens_by_account', 'tokens_by_end', 'tokens_held_open'])(
    'reports the missing index %s',
    async (index) => {
      const { store, other } = await setUp();
      other.exec(`DROP INDEX ${index}`);

      expect(await store.doctor()).toMatchObject([
        { code: 'index_missing', message: expect.stringContaining(index) },
      ]);
    },
  );

  it('finds damage in the file only with full: true', async () => {
    const path = await damagedFile();
    const store = opened(SqliteTokenStore.openFile(path));

    expect(await store.doctor()).toEqual([]);
    expect((await store.doctor({ full: true })).map(({ code }) => code)).toEqual([
      'database_damaged',
    ]);
  });

  it('finds no damage in an intact file', async () => {
    const { store } = await setUp();

    expect(await store.doctor({ full: true })).toEqual([]);
  });
});

/** A file in which one index has lost an entry. */
async function damagedFile(): Promise<string> {
  const path = newFile();
  const store = SqliteTokenStore.openFile(path);
  await store.insert(newRecord('one'));
  await store.close();
  const handle = new DatabaseSync(path);
  const find = handle.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'tokens_by_end'");
  const { rootpage } = find.get() as { rootpage: number };
  handle.close();
  const content = readFileSync(path);
  // Sets the number of cells in the header of the page to 0.
  content.writeUInt16BE(0, (rootpage - 1) * 4096 + 3);
  writeFileSync(path, content);
  return path;
}
