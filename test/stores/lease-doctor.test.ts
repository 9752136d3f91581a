import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { doctor, MemoryTokenStore } from '../../src/index.ts';
import type { LeaseStore, LeaseWant } from '../../src/ports/lease-store.ts';
import type { StoreFinding } from '../../src/ports/token-store.ts';
import { PostgresTokenStore } from '../../src/stores/postgres/index.ts';
import { SqliteLeases } from '../../src/stores/sqlite/leases.ts';
import { newTables, SQL_ENGINES } from './database-hosts.ts';

const DAY_MS = 86_400_000;
/** Not about the pool of the test. */
const SCHEMA_CODE = /^(?:schema|usage|leases|requests)_/;

/** A store for leases, and statements that change its table directly. */
interface LeaseTable {
  readonly store: LeaseStore;
  /** The findings about leases. */
  findings(): Promise<readonly StoreFinding[]>;
  readonly table: string;
  run(sql: string): Promise<unknown>;
  readonly dropIndex: string;
}

type Open = () => Promise<LeaseTable>;

const OPEN: Readonly<Record<string, Open | undefined>> = {
  async SQLite() {
    const handle = new DatabaseSync(':memory:');
    onTestFinished(() => handle.close());
    const store = new SqliteLeases(handle);
    return {
      store,
      findings: () => doctor(store),
      table: 'leases',
      run: async (sql) => handle.exec(sql),
      dropIndex: 'DROP INDEX leases_by_end',
    };
  },
  ...Object.fromEntries(
    SQL_ENGINES.map(({ name, url, host }) => {
      const open = async () => {
        const made = host();
        const tables = newTables(made);
        await made.migrate(tables);
        const store = made.store(tables, { deadlineMs: 20_000 });
        const table = `${tables}_leases`;
        return {
          store: store.leases,
          findings: async () => (await store.doctor()).filter(({ code }) => SCHEMA_CODE.test(code)),
          table,
          run: made.run,
          dropIndex:
            name === 'MariaDB'
              ? `ALTER TABLE ${table} DROP INDEX by_end`
              : `DROP INDEX ${table}_by_end`,
        };
      };
      return [name, url === undefined ? undefined : open];
    }),
  ),
};

function want(key: string): LeaseWant {
  const until = new Date(Date.now() + DAY_MS);
  return { key, window: 0, limit: 10, want: 1, until };
}

/** Takes leases for `count` tokens, and lets them end `agoMs` ago. */
async function takeEnded({ store, table, run }: LeaseTable, count: number, agoMs: number) {
  await store.take(Array.from({ length: count }, (_, i) => want(`token${i}/uses`)));
  await run(`UPDATE ${table} SET ends_at = ${Date.now() - agoMs}`);
}

describe.each(Object.entries(OPEN))('doctor of a lease store in %s', (name, opens) => {
  const open = opens as Open;

  it.skipIf(opens === undefined)(
    'finds nothing in a new table or in one that is used',
    async () => {
      const { store, findings } = await open();

      expect(await findings()).toEqual([]);
      await store.take([want('token/uses')]);
      expect(await findings()).toEqual([]);
    },
  );

  it.skipIf(opens === undefined)('names a missing index', async () => {
    const { findings, run, dropIndex } = await open();
    await run(dropIndex);

    const [finding, ...others] = await findings();

    expect(finding?.code).toBe('leases_differ');
    expect(finding?.message).toMatch(/it lacks the index \S*by_end"?;/);
    expect(others).toEqual([]);
  });

  it.skipIf(opens === undefined)(
    'counts rows that should have been purged, until they are',
    async () => {
      const leases = await open();
      await takeEnded(leases, 3, 2 * DAY_MS);

      const [finding, ...others] = await leases.findings();

      expect(finding?.code).toBe('leases_not_purged');
      expect(finding?.message).toContain('3 of its rows ended more than a day ago');
      expect(others).toEqual([]);
      expect(await leases.store.purge(new Date(Date.now() - 3_600_000), 1000)).toBe(3);
      expect(await leases.findings()).toEqual([]);
    },
  );

  it.skipIf(opens === undefined)('ignores rows that ended an hour ago', async () => {
    const leases = await open();
    await takeEnded(leases, 3, DAY_MS / 24);

    expect(await leases.findings()).toEqual([]);
  });

  it.skipIf(opens === undefined)('stops counting after 1000 rows', async () => {
    const leases = await open();
    await takeEnded(leases, 1002, 2 * DAY_MS);

    const [finding] = await leases.findings();

    expect(finding?.message).toContain('more than 1000 of its rows');
  });

  const isFile = name === 'SQLite';

  it.skipIf(opens === undefined || isFile)('reports a missing table', async () => {
    const { findings, run, table } = await open();
    await run(`DROP TABLE ${table}`);

    const [finding, ...others] = await findings();

    expect(finding).toMatchObject({ code: 'leases_missing', part: 'leases' });
    expect(finding?.message).toMatch(
      /does not exist; run tokenwright store migrate, or call migrate\(\)/,
    );
    expect(others).toEqual([]);
  });

  it.skipIf(opens === undefined || isFile)('reports the same of the table of usage', async () => {
    const { findings, run, table } = await open();
    const usage = table.replace('_leases', '_usage');
    await run(`ALTER TABLE ${usage} DROP COLUMN last_used_at`);
    expect(await findings()).toMatchObject([
      { code: 'usage_differ', part: 'usage', message: expect.stringContaining('last_used_at') },
    ]);
    await run(`DROP TABLE ${usage}`);

    expect(await findings()).toMatchObject([{ code: 'usage_missing', part: 'usage' }]);
  });

  it.skipIf(opens === undefined || isFile)(
    'names missing columns and a missing primary key',
    async () => {
      const { findings, run, table } = await open();
      await run(`ALTER TABLE ${table} DROP COLUMN latest`);

      expect((await findings())[0]?.message).toContain('it lacks the column latest');
      await run(`DROP TABLE ${table}`);
      await run(`CREATE TABLE ${table} (ends_at bigint)`);
      expect((await findings())[0]?.message).toMatch(
        /it lacks the column lease_key.*(?:the primary key|the index PRIMARY)/,
      );
    },
  );
});

describe('doctor of a lease store', () => {
  it('finds nothing if the store has no doctor method', async () => {
    expect(await doctor(new MemoryTokenStore().leases)).toEqual([]);
  });

  it('rejects if the server is down', async () => {
    const pool = new pg.Pool({ connectionString: 'postgres://127.0.0.1:1/acme' });
    onTestFinished(() => pool.end());

    await expect(doctor(new PostgresTokenStore(pool))).rejects.toMatchObject({
      code: 'store_unavailable',
    });
  });
});
