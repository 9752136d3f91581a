import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { leasesFault, usageFault } from '../../../../src/app/server/stores/counts.ts';
import { diagnose, diagnosePart } from '../../../../src/app/server/stores/diagnosis.ts';
import { type OpenStore, storeTarget } from '../../../../src/app/server/stores/open.ts';
import { doctor } from '../../../../src/ports/token-store.ts';
import { newFolder, run } from '../../cli/support.ts';

const FILES = ['tokens.db', 'usage.db', 'leases.db'] as const;
type File = (typeof FILES)[number];

const TEXT = 'not a database, but longer than the header of one'.repeat(99);
const REPLACED = /the database file, or the -wal or -shm file beside it, was removed or replaced/;

function withForeign(file: string): void {
  const database = new DatabaseSync(file);
  database.exec('CREATE TABLE other (a)');
  database.close();
}

function replaceByForeign(file: string): void {
  renameSync(file, `${file}.old`);
  withForeign(file);
}

/** Keeps a lock on a file, as another process does. */
function lock(file: string): void {
  const database = new DatabaseSync(file);
  database.exec('BEGIN IMMEDIATE');
  onTestFinished(() => database.close());
}

/** What happens to a file that is open, and what the log has to say. */
const FAULTS: readonly (readonly [name: string, fault: (file: string) => void, reason: RegExp])[] =
  [
    ['removed', (file) => rmSync(file), REPLACED],
    ['replaced', replaceByForeign, REPLACED],
    ['overwritten with text', (file) => writeFileSync(file, TEXT), / is not an SQLite database: /],
    ['locked', lock, /^another process has locked the file$/],
  ];

/** What was there before a file was opened. */
const FOUND: readonly (readonly [name: string, fault: (file: string) => void, reason: RegExp])[] = [
  ['text', (file) => writeFileSync(file, TEXT), / is not an SQLite database: /],
  ['a foreign database', withForeign, /holds something else than |has other tables/],
  ['a folder', (file) => mkdirSync(file), /cannot be opened; it has to be a file of its own/],
];

async function setUp() {
  const data = newFolder();
  const target = storeTarget({ store: undefined, tables: undefined, data });
  const opened = await target.open();
  onTestFinished(() => opened.close());
  const causeOf: Readonly<Record<File, () => Promise<string | undefined>>> = {
    'tokens.db': () => diagnose(target, opened.store),
    'usage.db': () => diagnosePart('usage', target, opened),
    'leases.db': () => diagnosePart('leases', target, opened),
  };
  return { data, opened, causeOf };
}

/** Opens all files, as a service that has counted uses. */
async function openAll({ store }: OpenStore): Promise<void> {
  await store.usage.since?.();
  await store.leases.giveBack([{ key: 'x', window: 0, amount: 1 }]);
}

describe.each(FILES)('the cause of an outage of %s', (name) => {
  it.each(FAULTS)('is named if it was %s while it was open', async (_, fault, reason) => {
    const { data, opened, causeOf } = await setUp();
    await openAll(opened);
    expect(await causeOf[name]()).toBeUndefined();

    fault(join(data, name));

    expect(await causeOf[name]()).toMatch(reason);
    for (const other of FILES.filter((each) => each !== name)) {
      expect(await causeOf[other](), other).toBeUndefined();
    }
  });
});

describe('the cause of an outage of leases.db', () => {
  it.each(FOUND)('is named if it was %s before it was opened', async (_, make, reason) => {
    const { data, causeOf } = await setUp();
    make(join(data, 'leases.db'));

    expect(await causeOf['leases.db']()).toMatch(reason);
  });

  it('is none while there is no file, and makes none', async () => {
    const { data, opened, causeOf } = await setUp();

    expect(await causeOf['leases.db']()).toBeUndefined();
    expect(await doctor(opened.store)).toEqual([]);
    expect(existsSync(join(data, 'leases.db'))).toBe(false);
  });
});

describe.each([
  ['usage.db', usageFault],
  ['leases.db', leasesFault],
] as const)('%s', (name, faultIn) => {
  it.each(FOUND)('is not used if it was %s, and the warning says why', async (_, make, reason) => {
    const { data, opened } = await setUp();
    make(join(data, name));

    const fault = await faultIn(opened);

    expect(fault?.split(`${name}: `).slice(1).join()).toMatch(reason);
  });

  it('is used if it is missing, and if it was used before', async () => {
    const { opened } = await setUp();
    expect(await faultIn(opened)).toBeUndefined();
    await openAll(opened);
    expect(await faultIn(opened)).toBeUndefined();
  });
});

describe('tokens.db', () => {
  it.each(FOUND)('is refused if it was %s, and the error says why', async (_, make, reason) => {
    const data = newFolder();
    make(join(data, 'tokens.db'));

    const { code, stderr } = await run(['store', 'doctor', '--data', data]);

    expect(code).not.toBe(0);
    expect(stderr).toMatch(reason);
  });
});
