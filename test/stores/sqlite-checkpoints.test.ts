import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Checkpoints } from '../../src/stores/sqlite/checkpoints.ts';
import { Connection } from '../../src/stores/sqlite/connection.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import type { OpenFiles } from '../../src/stores/sqlite/open-files.ts';
import { CREATED, newRecord } from './support.ts';

/** More than it takes to start the thread, and less than commits wait for. */
const LOG_BYTES = 5_000_000;
const MAX_LOG = 16_777_216;
/** As many as start a run. */
const RECORDS = 400;

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 'tokens.db');
}

/** A long log, of a connection that copies none of it. */
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

/** As if one of the files were another one. */
function moved(index: number): (files: Files) => Files {
  return (files) => files.map((file, at) => (at === index ? { ...file, ino: 1 } : file));
}

/** What the program prints, with these flags of Node.js. */
function runProgram(...flags: string[]) {
  const module = join(import.meta.dirname, '../../src/stores/sqlite/index.ts');
  const args = [pathToFileURL(module).href, newFile(), JSON.stringify(newRecord('first'))];
  return spawnSync(
    process.execPath,
    ['--no-warnings', ...flags, '--input-type=module', '--eval', PROGRAM, ...args],
    { encoding: 'utf8', timeout: 60_000 },
  );
}

/** Starts a run, waits for its end, and ends without closing the store. */
const PROGRAM = `
  import { statSync } from 'node:fs';
  import { DatabaseSync } from 'node:sqlite';
  import { setTimeout } from 'node:timers/promises';
  const [module, path, json] = process.argv.slice(1);
  const { SqliteTokenStore } = await import(module);
  const store = SqliteTokenStore.open(path);
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

describe('the log of a file that was opened by path', () => {
  it('is copied to the file without a commit that does it', async () => {
    const [path, shared] = [newFile(), newFile()];
    const store = SqliteTokenStore.open(path);
    const handle = new DatabaseSync(shared);
    const control = SqliteTokenStore.open(handle);
    await fillLog(path, store);
    await fillLog(shared, control);

    await insertMany(store);
    await insertMany(control);
    await until(() => sizeOf(path) > LOG_BYTES);

    // As a control: over a handle of the host, commits do it, later.
    expect(sizeOf(shared)).toBeLessThan(LOG_BYTES);
    await store.close();
    await control.close();
    handle.close();
  });

  it('is left to commits while it is short', async () => {
    const path = newFile();
    const store = SqliteTokenStore.open(path);
    const before = sizeOf(path);
    await insertMany(store);
    await insertMany(store, RECORDS, RECORDS);

    expect(sizeOf(path)).toBe(before);
    await store.close();
    // As a control: what was in the log.
    expect(sizeOf(path)).toBeGreaterThan(before);
  });

  it('stays short while many records are revoked and removed', async () => {
    const path = newFile();
    const store = SqliteTokenStore.open(path);
    onTestFinished(() => store.close());
    for (let from = 0; from < 10_000; from += 1000) await insertMany(store, 1000, from);
    let longest = 0;
    for (const call of [
      () => store.revokeAll('acme', CREATED, 1000),
      async () => (await store.purge(new Date('2200-01-01'), 1000)).count,
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

  it('is gone after the store is closed in the middle of a run', async () => {
    const path = newFile();
    const store = SqliteTokenStore.open(path);
    await store.insert(newRecord('first'));
    const other = new DatabaseSync(path);
    other.exec('PRAGMA wal_autocheckpoint = 0');
    other.exec(`UPDATE tokens SET box = zeroblob(${LOG_BYTES})`);
    other.close();
    await insertMany(store);
    await store.close();

    expect(existsSync(`${path}-wal`)).toBe(false);
    const again = SqliteTokenStore.open(path);
    expect(await again.revokeAll('acme', CREATED, 1000)).toBe(RECORDS + 1);
    await again.close();
  });

  it('does not keep a process alive', () => {
    const { stdout, signal } = runProgram();

    expect(stdout.trim()).toBe('copied');
    expect(signal).toBeNull();
  });
});

describe('a run', () => {
  it.each([
    ['is made over the files of the store', (files: Files) => files, true],
    ['leaves a file alone that took its place', moved(0), false],
    ['leaves a log alone that took its place', moved(1), false],
    ['leaves an index alone that took its place', moved(2), false],
  ])('%s', async (_, change, isMade) => {
    const path = newFile();
    const store = SqliteTokenStore.open(path);
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
    // With a thread that works, commits wait longer before they do it themselves.
    expect(limit).toHaveBeenLastCalledWith(isMade ? 4000 : 2000);
    connection.close();
    await store.close();
  });

  it('is left to commits where no thread can be made', async () => {
    const { stdout, stderr } = runProgram(
      '--permission',
      '--allow-fs-read=*',
      '--allow-fs-write=*',
    );

    expect(stderr).toBe('');
    expect(stdout.trim()).toBe('not copied');
  });
});
