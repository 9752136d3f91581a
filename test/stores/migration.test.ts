import { describe, expect, it, onTestFinished } from 'vitest';
import { codeOf, refusalOf } from '../support.ts';
import { runTogether, startChild } from './child.ts';
import {
  type DatabaseHost,
  newName,
  newTables,
  PARTS,
  SQL_ENGINES,
  type SqlStore,
} from './database-hosts.ts';
import { type Upgrade, upgrade } from './next-version.ts';
import { CREATED, newRecord, newRequest, REQUEST_BOUNDS } from './support.ts';
import { VERBS } from './verbs.ts';

const MARKS = {
  tokens: 'tokenwright schema',
  usage: 'tokenwright usage schema',
  leases: 'tokenwright lease schema',
  requests: 'tokenwright request schema',
} as const;

const FAR = new Date('2100-01-01T00:00:00.000Z');
const WANT = { key: 'token/uses', window: 0, limit: 10, want: 4, until: FAR };
const USE = { id: newRecord('one').id, scope: 'GET:shop.example', uses: 1, lastUsedAt: CREATED };

/** Stores something in each table. */
async function fill(store: SqlStore): Promise<void> {
  await store.insert(newRecord('one'));
  await store.usage.add([USE]);
  await store.leases.take([WANT]);
  await store.requests.insert(newRequest(1), REQUEST_BOUNDS);
}

/** Reads what {@link fill} has stored, and writes to each table. */
async function expectFilled(store: SqlStore): Promise<void> {
  expect(await store.find([newRecord('one').id])).toEqual([newRecord('one')]);
  expect((await store.usage.read([USE.id]))[0]?.scopes).toMatchObject([{ uses: 1 }]);
  expect(await store.leases.take([{ ...WANT, want: 10 }])).toEqual([6]);
  await store.leases.giveBack([{ ...WANT, amount: 6 }]);
  const request = await store.requests.find({ id: newRequest(1).id });
  expect(request?.client).toBe(newRequest(1).client);
  const version = (request?.version ?? 0) + 1;
  expect(await store.requests.replace(newRequest(1, { version }))).toBe(true);
}

async function schemaCodes(store: SqlStore): Promise<string[]> {
  const codes = (await store.doctor()).map(({ code }) => code);
  return codes.filter((code) => /^(?:schema|usage|leases|requests)_/.test(code));
}

describe.each(SQL_ENGINES)('migrate on $name', ({ name, url, host, comment }) => {
  const test = it.skipIf(url === undefined);

  /** The columns, indexes and comment of a table. */
  async function shapeOf({ run }: DatabaseHost, table: string): Promise<unknown> {
    const shape =
      name === 'MariaDB'
        ? await run(`SHOW CREATE TABLE ${table}`)
        : await run(
            `SELECT obj_description('${table}'::regclass) AS comment,
               ARRAY(SELECT indexdef FROM pg_indexes WHERE tablename = '${table}' ORDER BY 1) AS indexes,
               ARRAY(SELECT attname || format_type(atttypid, atttypmod) || attnotnull || attcollation
                 FROM pg_attribute WHERE attrelid = '${table}'::regclass AND attnum > 0
                 ORDER BY attnum) AS columns`,
          );
    return JSON.stringify(shape);
  }

  async function shapesOf(admin: DatabaseHost, tables: string): Promise<unknown[]> {
    const shapes = PARTS.map(async (part) =>
      String(await shapeOf(admin, `${tables}_${part}`)).replaceAll(tables, 'TABLES'),
    );
    return Promise.all(shapes);
  }

  async function setUp() {
    const admin = host();
    const tables = newTables(admin);
    await admin.migrate(tables);
    const store = admin.store(tables);
    await fill(store);
    const setMark = (part: (typeof PARTS)[number], version: string | null) =>
      admin.run(
        comment(`${tables}_${part}`, version === null ? null : `${MARKS[part]} ${version}`),
      );
    return { admin, tables, store, setMark };
  }

  const upgraded = (tables: string, more: Partial<Upgrade> = {}): Upgrade => {
    return { engine: name, url: url as string, tables, steps: 2, ...more };
  };

  /** A process that waits for a line, then migrates. */
  function inChild(job: Upgrade) {
    const module = new URL('./next-version.ts', import.meta.url).href;
    return startChild(`
      import { upgrade } from ${JSON.stringify(module)};
      process.stdout.write('ready');
      process.stdin.once('data', async () => {
        await upgrade(${JSON.stringify(job)});
        process.stdin.destroy();
      });
    `);
  }

  async function expectFourAgree(job: Upgrade): Promise<void> {
    const children = Array.from({ length: 4 }, () => inChild(job));
    expect(await runTogether(children)).toEqual(children.map(() => ({ code: 0, errors: '' })));
  }

  test('creates all tables, and changes nothing when called again', async () => {
    const { admin, tables, store } = await setUp();
    const shapes = await shapesOf(admin, tables);
    for (const part of PARTS) {
      expect(shapes[PARTS.indexOf(part)]).toContain(`${MARKS[part]} 1, needs 1`);
    }
    const since = await store.usage.since?.();
    await admin.migrate(tables);

    expect(await shapesOf(admin, tables)).toEqual(shapes);
    expect(await store.usage.since?.()).toEqual(since);
    expect(await schemaCodes(store)).toEqual([]);
    await expectFilled(store);
  });

  test('creates the same tables as migrationSql', async () => {
    const { admin, tables } = await setUp();
    const printed = newTables(admin);
    for (const sql of admin.migrationSql(printed).split(';\n').filter(Boolean)) {
      await admin.run(sql);
    }
    const store = admin.store(printed);
    expect((await store.usage.since?.())?.getTime()).toBeGreaterThan(0);
    await admin.migrate(printed);

    expect(await shapesOf(admin, printed)).toEqual(await shapesOf(admin, tables));
    expect(await schemaCodes(store)).toEqual([]);
  });

  test.each([['read committed'], ['serializable']])(
    'can be called by four processes concurrently (%s)',
    async (isolation) => {
      const admin = host();
      const tables = newTables(admin);
      const options = `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}`;
      await expectFourAgree(upgraded(tables, { steps: 0, options }));

      const store = admin.store(tables);
      expect(await schemaCodes(store)).toEqual([]);
      await fill(store);
      await expectFilled(store);
    },
  );

  test.each(PARTS)(
    'refuses tables of the host and of another part, and leaves them: %s',
    async (part) => {
      const admin = host();
      const [tables, others] = [newTables(admin), newTables(admin)];
      await admin.migrate(others);
      const table = `${tables}_${part}`;
      const other = part === 'tokens' ? 'usage' : 'tokens';
      for (const create of [
        `CREATE TABLE ${table} (id varchar(22) PRIMARY KEY, uses bigint)`,
        `ALTER TABLE ${others}_${other} RENAME TO ${table}`,
      ]) {
        await admin.run(`DROP TABLE IF EXISTS ${table}`);
        await admin.run(create);
        const shape = await shapeOf(admin, table);
        const { code, message } = await refusalOf(admin.migrate(tables));

        expect(code).toBe('invalid_options');
        expect(message).toContain(table);
        expect(await shapeOf(admin, table)).toEqual(shape);
      }
    },
  );

  describe.each(PARTS)('with a mark of the table of %s', (part) => {
    const prefix = part === 'tokens' ? 'schema' : part;

    test.each([
      ['1, needs 1', undefined],
      ['2, needs 1', undefined],
      ['7, needs 1', undefined],
      ['7, needs 2', 'newer'],
      ['8: later', 'newer'],
      ['', 'newer'],
      // Development versions had no second number.
      ['4', 'older'],
      ['1', 'older'],
      ['0, needs 1', 'older'],
    ])('takes "%s" as %s', async (version, state) => {
      const { admin, tables, store, setMark } = await setUp();
      await setMark(part, version);
      const shapes = await shapesOf(admin, tables);
      const refusal = await refusalOf(admin.migrate(tables)).catch(() => undefined);

      expect(refusal?.code).toBe(state && 'invalid_options');
      expect(refusal?.details).toEqual(state && { reason: `schema_${state}` });
      if (state === 'newer') expect(refusal?.message).toContain('later than version 1');
      if (state === 'older') expect(refusal?.message).toContain('a development version');
      expect(await shapesOf(admin, tables)).toEqual(shapes);
      const findings = (await store.doctor()).filter(({ code }) => code.startsWith(prefix));
      expect(findings).toMatchObject(state === undefined ? [] : [{ code: `${prefix}_${state}` }]);
      expect(findings[0]?.part).toBe(state === undefined || part === 'tokens' ? undefined : part);
    });
  });

  describe('of a later version', () => {
    test('upgrades step by step and keeps the rows', async () => {
      const { admin, tables, store } = await setUp();
      const before = await shapesOf(admin, tables);
      await upgrade(upgraded(tables));

      const shapes = await shapesOf(admin, tables);
      for (const [index, shape] of shapes.entries()) {
        expect(before[index]).toContain('schema 1, needs 1');
        expect(shape).toContain('schema 3, needs 1');
      }
      await expectFilled(store);
      await upgrade(upgraded(tables));
      expect(await shapesOf(admin, tables)).toEqual(shapes);
    });

    test('goes on where an upgrade stopped halfway', async () => {
      const [whole, halfway] = [await setUp(), await setUp()];
      await upgrade(upgraded(whole.tables));
      await upgrade(upgraded(halfway.tables, { steps: 1 }));
      expect((await shapesOf(halfway.admin, halfway.tables))[0]).toContain('schema 2, needs 1');
      await upgrade(upgraded(halfway.tables));

      expect(await shapesOf(halfway.admin, halfway.tables)).toEqual(
        await shapesOf(whole.admin, whole.tables),
      );
      await expectFilled(halfway.store);
    });

    test('upgrades from four processes concurrently', async () => {
      const [one, four] = [await setUp(), await setUp()];
      await upgrade(upgraded(one.tables));
      await expectFourAgree(upgraded(four.tables));

      expect(await shapesOf(four.admin, four.tables)).toEqual(
        await shapesOf(one.admin, one.tables),
      );
      await expectFilled(four.store);
    });

    it.runIf(name === 'PostgreSQL' && url !== undefined)(
      'changes nothing while a transaction locks the table, and upgrades it later',
      async () => {
        const { admin, tables } = await setUp();
        const before = await shapesOf(admin, tables);
        const holding = await admin.begin();
        await holding.run(`SELECT count(*) FROM ${tables}_tokens`);
        expect(await refusalOf(upgrade(upgraded(tables)))).toMatchObject({
          code: 'store_unavailable',
          message: expect.stringContaining('another session has locked it'),
          details: { reason: 'busy' },
        });
        expect(await shapesOf(admin, tables)).toEqual(before);
        await holding.end();
        await upgrade(upgraded(tables));

        expect((await shapesOf(admin, tables))[0]).toContain('schema 3, needs 1');
      },
    );

    test('changes nothing as a user who may not alter the table', async () => {
      const { admin, tables } = await setUp();
      const before = await shapesOf(admin, tables);
      const user = await admin.restricted('SELECT', ...PARTS.map((part) => `${tables}_${part}`));
      const job = upgraded(tables, user.login);
      expect(await refusalOf(upgrade(job))).toMatchObject({
        code: 'store_unavailable',
        details: { reason: 'forbidden' },
      });
      expect(await shapesOf(admin, tables)).toEqual(before);
      // The control: the same user needs no right if the tables are up to date.
      await upgrade({ ...job, steps: 0 });
    });

    test('leaves stores of this one working, which keep its columns', async () => {
      const { admin, tables, store } = await setUp();
      const table = `${tables}_tokens`;
      const records = Array.from({ length: 20 }, (_, n) => newRecord(`n${n}`));
      for (const record of records) await store.insert(record);
      await upgrade(upgraded(tables));
      await admin.migrate(tables);
      const theirs = records.map(async ({ id }) => {
        for (let n = 1; n <= 50; n += 1) {
          await admin.run(`UPDATE ${table} SET note = '${n}', kind = '${n}' WHERE id = '${id}'`);
        }
      });
      const ours = records.map(async (record) => {
        for (let version = 2; version <= 51; version += 1) {
          expect(await store.replace({ ...record, version })).toBe(true);
        }
      });
      await Promise.all([...theirs, ...ours]);

      expect(await store.find(records.map(({ id }) => id))).toEqual(
        records.map((record) => ({ ...record, version: 51 })),
      );
      for (const [, call] of VERBS) await call(store);
      const kept = `SELECT DISTINCT note, kind FROM ${table} WHERE version = 51`;
      const rows = await admin.run(kept);
      expect(rows.map(({ note, kind }) => [String(note), String(kind)])).toEqual([['50', '50']]);
    });

    test('makes stores of this one reject if it breaks with it', async () => {
      const { admin, tables, store, setMark } = await setUp();
      await setMark('tokens', '2, needs 2');
      const table = `${tables}_tokens`;
      await admin.run(
        name === 'PostgreSQL'
          ? `ALTER TABLE ${table} RENAME scopes TO scopes_2`
          : `ALTER TABLE ${table} CHANGE scopes scopes_2 MEDIUMBLOB NOT NULL`,
      );

      expect(await codeOf(store.find([newRecord('one').id]))).toBe('store_unavailable');
      expect(await codeOf(admin.migrate(tables))).toBe('invalid_options');
      expect(await schemaCodes(store)).toContain('schema_newer');
    });
  });

  it.runIf(name === 'PostgreSQL' && url !== undefined)('names a missing schema', async () => {
    const { admin } = await setUp();

    expect(await refusalOf(admin.migrate(`${newName()}.acme`))).toMatchObject({
      code: 'invalid_options',
      message: expect.stringContaining('its schema does not exist'),
    });
  });

  test('names a missing CREATE privilege, and needs none if the tables exist', async () => {
    const { admin, tables } = await setUp();
    const names = PARTS.map((part) => `${tables}_${part}`);
    const user = await admin.restricted('SELECT, INSERT, UPDATE, DELETE', ...names);
    await user.migrate(tables);
    const schema = newName();
    if (name === 'PostgreSQL') {
      await admin.run(`CREATE SCHEMA ${schema}`);
      onTestFinished(async () => void (await host().run(`DROP SCHEMA ${schema} CASCADE`)));
    }
    const forbidden = name === 'PostgreSQL' ? `${schema}.acme` : newName();

    expect(await refusalOf(user.migrate(forbidden))).toMatchObject({
      code: 'store_unavailable',
      details: { reason: 'forbidden' },
    });
    const store = user.store(tables);
    await expectFilled(store);
    expect(await schemaCodes(store)).toEqual([]);
    for (const [, call] of VERBS) await call(store);
    await store.usage.forget([USE.id]);
    await store.leases.purge(CREATED, 10);
  });

  test('makes a store name the missing right of its user', async () => {
    const { admin, tables } = await setUp();
    const user = await admin.restricted('SELECT', `${tables}_usage`);
    const { code, details } = await refusalOf(user.store(tables).find([newRecord('one').id]));

    expect([code, details]).toEqual(['store_unavailable', { reason: 'forbidden' }]);
  });
});
