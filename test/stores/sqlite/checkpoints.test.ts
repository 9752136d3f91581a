import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Checkpoints } from '../../../src/stores/sqlite/checkpoints.ts';
import { Connection } from '../../../src/stores/sqlite/connection.ts';
import { SqliteTokenStore } from '../../../src/stores/sqlite/index.ts';
import type { OpenFiles } from '../../../src/stores/sqlite/open-files.ts';
import { CREATED, newRecord } from '../support.ts';
import { newFile } from './handles.ts';

/** Enough to start the checkpoint thread, but less than what makes a commit checkpoint. */
const LOG_BYTES = 5_000_000;
const MAX_LOG = 16_777_216;
/** Enough changes to start a checkpoint. */
const RECORDS = 400;

/** Writes a long log over a connection without automatic checkpoints. */
async function fillLog(path: string, store: SqliteTokenStore): Promise<void> {
  await store.insert(newRecord('first'));
  const other = new DatabaseSync(path);
  onTestFinished(() => other.close());
  other.exec('PRAGMA wal_autocheckpoint = 0');
  other.exec(`UPDATE tokens SET box = zeroblob(${LOG_BYTES})`);
}

async function insertMany(store: SqliteTokenStore, count = RECORDS, from = 0): Promise<void> {
  const labels = Array.from({ length: count }, (_, index) => `n${from + index}`);
  await Promise.all(labels.map((label) => store.insert(newRecord(label))));
}

type Files = ReturnType<OpenFiles['identities']>;

/** Pretends that one of the files was replaced. */
function moved(index: number): (files: Files) => Files {
  return (files) => files.map((file, at) => (at === index ? { ...file, ino: 1 } : file));
}

/** Runs the program with flags of Node.js. */
function runProgram(...flags: string[]) {
  const module = join(import.meta.dirname, '../../../src/stores/sqlite/index.ts');
  const args = [pathToFileURL(module).href, newFile(), JSON.stringify(newRecord('first'))];
  return spawnSync(
    process.execPath,
    ['--no-warnings', ...flags, '--input-type=module', '--eval', PROGRAM, ...args],
    { encoding: 'utf8', timeout: 60_000 },
  );
}

/** Waits for a checkpoint in the background, and ends without closing the store. */
const PROGRAM = `
  import { statSync } from 'node:fs';
  import { DatabaseSync } from 'node:sqlite';
  import { setTimeout } from 'node:timers/promises';
  const [module, path, json] = process.argv.slice(1);
  const { SqliteTokenStore } = await import(module);
  const store = SqliteTokenStore.openFile(path);
  const { digest, createdAt, expiresAt, ...record } = JSON.parse(json);
  const insert = (index) => store.insert({
    ...record,
    id: String(index).padEnd(22, 'x'),
    digest: new Uint8Array(32),
    createdAt: new Date(createdAt),
    expiresAt: new Date(expiresAt),
  });
  await insert('first');
  const other = new DatabaseSync(path);
  other.exec('PRAGMA wal_autocheckpoint = 0; UPDATE tokens SET box = zeroblob(${LOG_BYTES})');
  await Promise.all(Array.from({ length: ${RECORDS} }, (_, index) => insert(index)));
  const isPermitted = process.permission?.has('worker') ?? true;
  while (isPermitted && statSync(path).size < ${LOG_BYTES}) await setTimeout(5);
  console.log(statSync(path).size < ${LOG_BYTES} ? 'not copied' : 'copied');
`;

const sizeOf = (path: string) => statSync(path).size;

async function until(isSo: () => boolean): Promise<void> {
  await vi.waitFor(() => expect(isSo()).toBe(true), { timeout: 20_000, interval: 5 });
}

describe('the log of a SQLite store that opened its file by path', () => {
  it('is checkpointed in the background, earlier than a commit would do it', async () => {
    const [path, shared] = [newFile(), newFile()];
    const store = SqliteTokenStore.openFile(path);
    const handle = new DatabaseSync(shared);
    const control = SqliteTokenStore.open(handle);
    await fillLog(path, store);
    await fillLog(shared, control);

    await insertMany(store);
    await insertMany(control);
    await until(() => sizeOf(path) > LOG_BYTES);

    // The control: over a handle of the host, commits do it, and later.
    expect(sizeOf(shared)).toBeLessThan(LOG_BYTES);
    await store.close();
    await control.close();
    handle.close();
  });

  it('is not checkpointed while it is short', async () => {
    const path = newFile();
    const store = SqliteTokenStore.openFile(path);
    const before = sizeOf(path);
    await insertMany(store);
    await insertMany(store, RECORDS, RECORDS);

    expect(sizeOf(path)).toBe(before);
    await store.close();
    // The control: the content of the log was missing in the file.
    expect(sizeOf(path)).toBeGreaterThan(before);
  });

  it('stays short while many records are revoked and purged', async () => {
    const path = newFile();
    const store = SqliteTokenStore.openFile(path);
    onTestFinished(() => store.close());
    for (let from = 0; from < 10_000; from += 1000) await insertMany(store, 1000, from);
    let longest = 0;
    for (const call of [
      () => store.revokeAll('acme', CREATED, 1000),
      async () =>
        (await store.purge({ now: new Date('2200-01-01'), minAgeMs: 0, limit: 1000 })).count,
    ]) {
      let changed = 0;
      for (let count = 1000; count === 1000; changed += count) {
        count = await call();
        longest = Math.max(longest, sizeOf(`${path}-wal`));
      }
      expect(changed).toBe(10_000);
    }

    expect(longest).toBeGreaterThan(0);
    expect(longest).toBeLessThan(MAX_LOG);
  });

  it('is removed if the store is closed during a checkpoint', async () => {
    const path = newFile();
    const store = SqliteTokenStore.openFile(path);
    await store.insert(newRecord('first'));
    const other = new DatabaseSync(path);
    other.exec('PRAGMA wal_autocheckpoint = 0');
    other.exec(`UPDATE tokens SET box = zeroblob(${LOG_BYTES})`);
    other.close();
    await insertMany(store);
    await store.close();

    expect(existsSync(`${path}-wal`)).toBe(false);
    const again = SqliteTokenStore.openFile(path);
    expect(await again.revokeAll('acme', CREATED, 1000)).toBe(RECORDS + 1);
    await again.close();
  });

  it('does not keep the process alive after a checkpoint', () => {
    const { stdout, signal } = runProgram();

    expect(stdout.trim()).toBe('copied');
    expect(signal).toBeNull();
  });
});

describe('a checkpoint in the background', () => {
  it.each([
    ['copies the log into the files of the store', (files: Files) => files, true],
    ['leaves a file unchanged that replaced the database', moved(0), false],
    ['does nothing if another file replaced the log', moved(1), false],
    ['does nothing if another file replaced the index of the log', moved(2), false],
  ])('%s', async (_, change, isMade) => {
    const path = newFile();
    const store = SqliteTokenStore.openFile(path);
    await fillLog(path, store);
    const connection = new Connection(path, () => {});
    const opened = connection.checked();
    const { files } = opened;
    if (files === undefined) throw new Error('the files are not known');
    const identities = change(files.identities());
    files.identities = () => identities;
    const limit = vi.spyOn(connection, 'checkpointAt');
    const checkpoints = new Checkpoints(connection);
    checkpoints.note(opened, RECORDS);
    expect(connection.isCheckpointing).toBe(true);
    await checkpoints.running();
    checkpoints.close();

    expect(connection.isCheckpointing).toBe(false);
    expect(sizeOf(path) > LOG_BYTES).toBe(isMade);
    // As long as the thread works, commits checkpoint only at a higher limit.
    expect(limit).toHaveBeenLastCalledWith(isMade ? 4000 : 2000);
    connection.close();
    await store.close();
  });

  it('is left to commits if no thread can be started', async () => {
    const { stdout, stderr } = runProgram(
      '--permission',
      '--allow-fs-read=*',
      '--allow-fs-write=*',
    );

    expect(stderr).toBe('');
    expect(stdout.trim()).toBe('not copied');
  });
});
