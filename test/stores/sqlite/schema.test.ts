import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { SqliteTokenStore } from '../../../src/stores/sqlite/index.ts';
import {
  prepareAgain,
  prepareDatabase,
  type Schema,
  TOKENS,
} from '../../../src/stores/sqlite/schema.ts';
import { runTogether, startChild } from '../child.ts';
import { CREATED, newRecord } from '../support.ts';
import { DRIVERS, newFile, opened } from './handles.ts';

/** Two versions that do not exist: the second works beside the first, the third does not. */
const STEPS: Schema['steps'] = [
  { sql: 'ALTER TABLE tokens ADD COLUMN note TEXT', needs: 1 },
  { sql: 'ALTER TABLE tokens RENAME prefix TO start', needs: 3 },
];
const SECOND: Schema = { ...TOKENS, steps: STEPS.slice(0, 1) };
const THIRD: Schema = {
  ...TOKENS,
  steps: STEPS,
  columns: [...TOKENS.columns.filter((name) => name !== 'prefix'), 'start', 'note'],
};

/** A file of version 1 with one token. */
async function setUp() {
  const path = newFile();
  const store = SqliteTokenStore.openFile(path);
  const record = newRecord('one');
  await store.insert(record);
  await store.close();
  return { path, record, handle: opened(new DatabaseSync(path)) };
}

function markOf(handle: DatabaseSync): unknown {
  return handle.prepare('PRAGMA user_version').get()?.['user_version'];
}

function columnsOf(handle: DatabaseSync): unknown[] {
  return handle
    .prepare("SELECT name FROM pragma_table_info('tokens')")
    .all()
    .map(({ name }) => name);
}

function codeOf(work: () => unknown): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    const { code, details } = error as { code?: string; details?: { reason?: string } };
    return details?.reason ?? code;
  }
}

describe('the schema of a SQLite file', () => {
  it('begins with version 1, which needs version 1', async () => {
    const { handle } = await setUp();

    expect(markOf(handle)).toBe(65_537);
  });

  it.each(DRIVERS)('goes step by step to a later version (%s)', async (_, connect) => {
    const { path, handle } = await setUp();
    prepareDatabase(opened(connect(path)), THIRD);

    expect(markOf(handle)).toBe(3 + 3 * 65_536);
    expect(columnsOf(handle)).toEqual(expect.arrayContaining(['note', 'start']));
    expect(handle.prepare('SELECT count(*) AS count FROM tokens').get()).toEqual({ count: 1 });
    expect(codeOf(() => prepareAgain(handle, THIRD))).toBeUndefined();
  });

  it('is made in its latest version in an empty file', () => {
    const handle = opened(new DatabaseSync(newFile()));
    prepareDatabase(handle, THIRD);

    expect(markOf(handle)).toBe(3 + 3 * 65_536);
    expect(columnsOf(handle)).toEqual(expect.arrayContaining(['note', 'start']));
  });

  it('can be used by this version while a later one needs no more', async () => {
    const { path, record, handle } = await setUp();
    const running = opened(SqliteTokenStore.openFile(path));
    prepareDatabase(handle, SECOND);
    expect(markOf(handle)).toBe(2 + 65_536);

    expect(await running.find([record.id])).toEqual([record]);
    const again = opened(SqliteTokenStore.openFile(path));
    expect(await again.replace({ ...record, version: 2 })).toBe(true);
    expect(await running.revoke(record.id, 'acme', CREATED)).toBe(true);
  });

  it('is refused by this version if a later one needs more, and fails in running stores', async () => {
    const { path, record, handle } = await setUp();
    const running = opened(SqliteTokenStore.openFile(path));
    prepareDatabase(handle, THIRD);

    expect(codeOf(() => SqliteTokenStore.openFile(path))).toBe('schema_newer');
    await expect(running.find([record.id])).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  it('is not changed when a file is opened again while calls wait', async () => {
    const { handle } = await setUp();

    expect(codeOf(() => prepareAgain(handle, SECOND))).toBe('invalid_options');
    expect(markOf(handle)).toBe(65_537);
  });

  it('stays as it was if a step fails', async () => {
    const { handle } = await setUp();
    const broken = { ...THIRD, steps: [...STEPS.slice(0, 1), { sql: 'SELECT nothing', needs: 3 }] };

    expect(() => prepareDatabase(handle, broken)).toThrow();
    expect(markOf(handle)).toBe(65_537);
    expect(columnsOf(handle)).not.toContain('note');
    expect(handle.isTransaction).toBe(false);
  });

  it('waits for a writer to end, and then goes to the later version', async () => {
    const { path, handle } = await setUp();
    const child = startChild(migration(path));
    handle.exec('BEGIN IMMEDIATE');
    const migrated = runTogether([child]);
    handle.exec('COMMIT');

    expect(await migrated).toEqual([{ code: 0, errors: '' }]);
    expect(markOf(handle)).toBe(2 + 65_536);
  });

  it('goes to a later version once, in four processes at the same time', async () => {
    const { path, handle } = await setUp();
    const children = Array.from({ length: 4 }, () => startChild(migration(path)));

    expect(await runTogether(children)).toEqual(children.map(() => ({ code: 0, errors: '' })));
    expect(markOf(handle)).toBe(2 + 65_536);
    expect(columnsOf(handle).filter((name) => name === 'note')).toHaveLength(1);
  });

  it.each([1, 4, 5, 6])(
    'is refused as older if development version %i made it',
    async (version) => {
      const { path, handle } = await setUp();
      handle.exec(`PRAGMA user_version = ${version}`);

      expect(codeOf(() => SqliteTokenStore.openFile(path))).toBe('schema_older');
      expect(markOf(handle)).toBe(version);
    },
  );
});

/** A process that waits for a line, then brings a file to the second version. */
function migration(path: string): string {
  const module = new URL('../../../src/stores/sqlite/schema.ts', import.meta.url).href;
  return `
    import { DatabaseSync } from 'node:sqlite';
    import { prepareDatabase, TOKENS } from ${JSON.stringify(module)};
    process.stdout.write('ready');
    process.stdin.once('data', () => {
      const handle = new DatabaseSync(${JSON.stringify(path)});
      prepareDatabase(handle, { ...TOKENS, steps: ${JSON.stringify(STEPS.slice(0, 1))} });
      handle.close();
      process.stdin.destroy();
    });
  `;
}
