import { spawnSync } from 'node:child_process';
import {
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { generateKey, type TokenEvent, TokenService } from '../../../src/index.ts';
import { SqliteTokenStore } from '../../../src/stores/sqlite/index.ts';
import { revoked } from '../../../src/token/revoked.ts';
import { refusalOf, SCOPE } from '../../support.ts';
import { CREATED, newRecord } from '../support.ts';
import { DRIVERS, newFile, opened } from './handles.ts';

const record = newRecord('one');
const two = newRecord('two');

const VERBS: [string, (store: SqliteTokenStore) => Promise<unknown>][] = [
  ['find', (store) => store.find([record.id])],
  ['find of several', (store) => store.find([record.id, two.id])],
  ['page', (store) => store.page({ account: 'acme', limit: 1, liveAt: CREATED })],
  ['insert', (store) => store.insert(newRecord('three'))],
  ['replace', (store) => store.replace({ ...record, version: 2 })],
  ['revoke', (store) => store.revoke(record.id, 'acme', CREATED)],
  ['revokeAll', (store) => store.revokeAll('acme', CREATED, 1000)],
  [
    'purge',
    (store) => store.purge({ now: new Date('2200-01-01T00:00:00Z'), minAgeMs: 0, limit: 1000 }),
  ],
];

const FAULTS: [string, (path: string) => void][] = [
  ['file is removed', (path) => rmSync(path)],
  ['file is moved away', (path) => renameSync(path, `${path}.old`)],
  ['file is replaced', (path) => replace(path)],
  ['file and its log are replaced', (path) => replace(path, ['-wal', '-shm'])],
  ['log is removed', (path) => rmSync(`${path}-wal`)],
  ['index of the log is removed', (path) => rmSync(`${path}-shm`)],
  ['log and its index are removed', (path) => removeLog(path)],
  ['folder is moved away', (path) => renameSync(dirname(path), `${dirname(path)}-old`)],
];

async function setUp(path = newFile()) {
  const store = opened(SqliteTokenStore.openFile(path));
  await store.insert(record);
  return { path, store };
}

/** A complete database that no process has open. */
async function newDatabase(...records: (typeof record)[]): Promise<string> {
  const path = newFile();
  const store = SqliteTokenStore.openFile(path);
  for (const each of records) await store.insert(each);
  await store.close();
  return path;
}

function replace(path: string, alsoRemoved: readonly string[] = []): void {
  writeFileSync(`${path}.new`, '');
  renameSync(`${path}.new`, path);
  for (const ending of alsoRemoved) rmSync(path + ending);
}

function removeLog(path: string): void {
  rmSync(`${path}-wal`);
  rmSync(`${path}-shm`);
}

/** Makes the folder look unchanged for an hour. */
async function settle(path: string, store: SqliteTokenStore): Promise<void> {
  const before = new Date(Date.now() - 3_600_000);
  utimesSync(dirname(path), before, before);
  await store.find([record.id]);
}

/** What another store finds when it opens the file now. */
async function seenByOthers(path: string, id = record.id): Promise<unknown> {
  const other = SqliteTokenStore.openFile(path);
  const [found] = await other.find([id]);
  await other.close();
  return found;
}

describe('a SQLite store whose files are removed or replaced', () => {
  const table = FAULTS.flatMap(([fault, cause]) =>
    VERBS.map(([verb, call]) => ({ fault, cause, verb, call })),
  );

  it.each(table)('rejects $verb when the $fault', async ({ cause, call }) => {
    const { path, store } = await setUp();
    await settle(path, store);
    cause(path);

    const { code, message } = await refusalOf(call(store));
    expect(code).toBe('store_corrupt');
    expect(message).toMatch(/removed or replaced.*put it back, or restart this process$/);
  });

  it.each(FAULTS)('keeps rejecting over a handle of the host when the %s', async (_, cause) => {
    for (const [, connect] of DRIVERS) {
      const path = newFile();
      const store = SqliteTokenStore.open(opened(connect(path)));
      await store.insert(record);
      cause(path);

      for (const [, call] of [...VERBS, ...VERBS]) {
        expect(await refusalOf(call(store))).toMatchObject({ code: 'store_corrupt' });
      }
    }
  });

  it('does not acknowledge writes if the file is removed during the commit', async () => {
    const path = newFile();
    const handle = opened(new DatabaseSync(path));
    const store = SqliteTokenStore.open(handle);
    const exec = handle.exec.bind(handle);
    vi.spyOn(handle, 'exec').mockImplementation((sql) => {
      if (sql === 'COMMIT') rmSync(path);
      return exec(sql);
    });

    const writes = [record, two].map((each) => refusalOf(store.insert(each)));
    expect(await Promise.all(writes)).toMatchObject([
      { code: 'store_corrupt' },
      { code: 'store_corrupt' },
    ]);
  });

  it('would acknowledge writes that nobody else sees over a bare handle (the control)', async () => {
    const { path } = await setUp();
    const bare = opened(new DatabaseSync(path));
    const revoke = bare.prepare('UPDATE tokens SET revoked_at = 1 WHERE id = ?');
    renameSync(await newDatabase(record), path);

    expect(revoke.run(record.id).changes).toBe(1);
    rmSync(`${path}-wal`);
    rmSync(`${path}-shm`);
    expect(await seenByOthers(path)).toEqual(record);
  });

  it('rejects if a symbolic link loses its file or points to another one', async () => {
    for (const cause of [rmSync, relink]) {
      const real = newFile();
      const link = join(dirname(newFile()), 'link.db');
      symlinkSync(real, link);
      const { store } = await setUp(link);
      await settle(link, store);
      cause(cause === relink ? link : real);

      expect(await refusalOf(store.find([record.id]))).toMatchObject({ code: 'store_corrupt' });
    }
  });

  it('is reported by a store_trouble event and by doctor', async () => {
    const { path, store } = await setUp();
    const events: TokenEvent[] = [];
    const tokens = new TokenService({
      store,
      keys: [generateKey()],
      prefix: 'acme',
      onEvent: (event) => events.push(event),
    });
    rmSync(path);

    expect((await store.doctor()).map(({ code }) => code)).toEqual(['file_replaced']);
    const refusal = await refusalOf(tokens.issue({ account: 'acme', scopes: [SCOPE] }));
    expect(refusal.code).toBe('store_corrupt');
    expect(refusal.message).toContain('restart this process');
    expect(events.map(({ type }) => type)).toEqual(['store_trouble']);
  });

  it('keeps working while other files in its folder are created and removed', async () => {
    const { path, store } = await setUp();
    await settle(path, store);
    writeFileSync(join(dirname(path), 'other'), '');
    expect(await store.find([record.id])).toEqual([record]);
    await settle(path, store);
    rmSync(join(dirname(path), 'other'));

    expect(await store.find([record.id])).toEqual([record]);
    expect(await store.revoke(record.id, 'acme', CREATED)).toBe(true);
  });

  it('works over a database in memory, which has no files', async () => {
    const { store } = await setUp(':memory:');

    expect(await store.find([record.id])).toEqual([record]);
  });
});

function relink(link: string): void {
  rmSync(link);
  symlinkSync(newFile(), link);
}

describe('a SQLite store that opened its file by path', () => {
  it('uses a replaced file from the second call on', async () => {
    const { path, store } = await setUp();
    renameSync(await newDatabase(two), path);
    await refusalOf(store.find([record.id]));

    expect(await store.find([record.id, two.id])).toEqual([undefined, two]);
    await store.insert(newRecord('three'));
    expect(await seenByOthers(path, newRecord('three').id)).toEqual(newRecord('three'));
    expect(await seenByOthers(path)).toBeUndefined();
  });

  it('does not carry changes of the old file into a new one', async () => {
    const { path, store } = await setUp();
    await store.revoke(record.id, 'acme', CREATED);
    renameSync(await newDatabase(record), path);
    await refusalOf(store.find([record.id]));

    expect(await store.find([record.id])).toEqual([record]);
    expect(await seenByOthers(path)).toEqual(record);
  });

  it.each(FAULTS.filter(([name]) => /log/.test(name) && !/file/.test(name)))(
    'keeps every acknowledged change when the %s',
    async (_, cause) => {
      const { path, store } = await setUp();
      await store.revoke(record.id, 'acme', CREATED);
      cause(path);
      await refusalOf(store.insert(two));

      expect(await store.find([record.id])).toEqual([revoked(record, CREATED)]);
      await store.insert(newRecord('three'));
      expect(await seenByOthers(path)).toEqual(revoked(record, CREATED));
      expect(await seenByOthers(path, newRecord('three').id)).toEqual(newRecord('three'));
    },
  );

  it.each([
    ['file is replaced', (path: string, other: string) => renameSync(other, path)],
    ['log is removed', (path: string) => rmSync(`${path}-wal`)],
    ['log and its index are removed', (path: string) => removeLog(path)],
    ['index of the log is removed', (path: string) => rmSync(`${path}-shm`)],
  ])('acknowledges only changes that a new process finds when the %s', async (_, cause) => {
    const { path, store } = await setUp();
    cause(path, await newDatabase(two));
    await refusalOf(store.insert(newRecord('lost')));
    await store.insert(newRecord('three'));
    await store.insert(newRecord('four'));

    expect(countInProcess(path, ['three', 'four'])).toBe('2');
  });

  it('loses no change if another connection goes on after the log was removed', async () => {
    const path = newFile();
    const [first, second] = [await setUp(path), await setUpSecond(path)];
    await second.revoke(record.id, 'acme', CREATED);
    rmSync(`${path}-wal`);
    await refusalOf(first.store.find([record.id]));

    expect(await first.store.find([record.id])).toEqual([revoked(record, CREATED)]);
    await first.store.insert(newRecord('three'));
    expect(await refusalOf(second.insert(newRecord('four')))).toMatchObject({
      code: 'store_corrupt',
    });
    expect(await seenByOthers(path, newRecord('three').id)).toEqual(newRecord('three'));
  });

  it('works again when the file is put back', async () => {
    const { path, store } = await setUp();
    renameSync(path, `${path}.old`);
    await refusalOf(store.find([record.id]));
    await refusalOf(store.find([record.id]));
    expect(existsSync(path)).toBe(false);
    renameSync(`${path}.old`, path);

    expect(await store.find([record.id])).toEqual([record]);
    await store.insert(two);
    expect(await seenByOthers(path, two.id)).toEqual(two);
  });

  it.each([
    ['is empty', ''],
    ['is not a database', 'this is not a database at all, whatever its name may say'],
  ])('does not use a new file that %s, but uses a valid one later', async (_, content) => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { path, store } = await setUp();
    writeFileSync(`${path}.new`, content);
    renameSync(`${path}.new`, path);
    for (let times = 0; times < 3; times += 1) {
      expect(await refusalOf(store.insert(two))).toMatchObject({ code: 'store_corrupt' });
    }
    expect(readFileSync(path, 'utf8')).toBe(content);
    renameSync(await newDatabase(two), path);
    expect(await refusalOf(store.find([two.id]))).toMatchObject({ code: 'store_corrupt' });
    vi.advanceTimersByTime(100);

    expect(await store.find([two.id])).toEqual([two]);
  });

  it('does not use a new file with another schema version', async () => {
    const { path, store } = await setUp();
    const other = await newDatabase(record);
    const handle = new DatabaseSync(other);
    handle.exec('PRAGMA user_version = 1');
    handle.close();
    renameSync(other, path);

    for (let times = 0; times < 3; times += 1) {
      expect(await refusalOf(store.find([record.id]))).toMatchObject({ code: 'store_corrupt' });
    }
  });

  it('returns long lists of a new file, not cached ones', async () => {
    const scopes = (name: string) =>
      Array.from({ length: 300 }, (_, index) => `GET:shop.example/${name}/${index}`);
    const path = newFile();
    const { store } = await setUp(path);
    await store.insert(newRecord('long', { scopes: scopes('a') }));
    for (let times = 0; times < 3; times += 1) await store.find([newRecord('long').id]);
    renameSync(await newDatabase(newRecord('long', { scopes: scopes('b') })), path);
    await refusalOf(store.find([record.id]));

    const [found] = await store.find([newRecord('long').id]);
    expect(found?.scopes).toEqual(scopes('b'));
  });

  it('reports "all" to watchers when the file is replaced', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const { path, store } = await setUp();
    const hints: unknown[] = [];
    await store.watch((ids) => hints.push(ids));
    renameSync(await newDatabase(two), path);
    vi.advanceTimersByTime(25);
    expect(hints).toEqual(['all']);

    // The call that must fail still fails, although watch has already noticed the new file.
    await refusalOf(store.find([record.id]));
    await store.find([record.id]);
    vi.advanceTimersByTime(25);
    expect(hints).toEqual(['all', 'all']);
    vi.advanceTimersByTime(100);
    expect(hints).toEqual(['all', 'all']);
  });

  it('reads a backup that is restored into the open file', async () => {
    const { path, store } = await setUp();
    const source = opened(new DatabaseSync(await newDatabase(two)));
    const inode = statSync(path).ino;
    await backup(source, path);

    expect(await store.find([record.id, two.id])).toEqual([undefined, two]);
    expect(statSync(path).ino).toBe(inode);
  });
});

/** Counts in another process, because connections in one process share state of the file. */
function countInProcess(path: string, labels: readonly string[]): string {
  const ids = JSON.stringify(labels.map((label) => newRecord(label).id));
  const script = `
    const { DatabaseSync } = require('node:sqlite');
    const sql = 'SELECT count(*) AS found FROM tokens WHERE id IN (SELECT value FROM json_each(?))';
    const database = new DatabaseSync(process.argv[1]);
    console.log(database.prepare(sql).get(process.argv[2]).found);
  `;
  const args = ['--no-warnings', '--eval', script, path, ids];
  return spawnSync(process.execPath, args, { encoding: 'utf8' }).stdout.trim();
}

async function setUpSecond(path: string): Promise<SqliteTokenStore> {
  return opened(SqliteTokenStore.openFile(path));
}
