import { describe, expect, it, onTestFinished } from 'vitest';
import type { TokenRecord } from '../../src/token/record.ts';
import { freePort } from '../servers.ts';
import { codeOf, refusalOf } from '../support.ts';
import {
  type DatabaseHost,
  type HostSettings,
  newName,
  newTables,
  SQL_ENGINES,
  type SqlEngine,
} from './database-hosts.ts';
import { startDatabaseProxy } from './database-proxy.ts';
import { longListCases, longRecord } from './long-lists.ts';
import { CREATED, newRecord } from './support.ts';
import { VERBS, WRITES } from './verbs.ts';

type StoreOptions = NonNullable<Parameters<DatabaseHost['store']>[1]>;
interface Way {
  readonly way: string;
  readonly settings: HostSettings;
  readonly options?: StoreOptions;
}

/** How the drivers read rows. */
const WAYS: Readonly<Record<SqlEngine['name'], readonly Way[]>> = {
  PostgreSQL: [
    { way: 'with default settings', settings: {} },
    { way: 'without prepared statements', settings: {}, options: { prepare: false } },
  ],
  MariaDB: [
    { way: 'with default settings', settings: {} },
    { way: 'over unusual settings', settings: { isContrary: true, connections: 1 } },
  ],
};

/** Names of tables that are refused and accepted, beside those that all engines refuse and accept. */
const NAMES = {
  PostgreSQL: {
    wrong: ['1acme', 'ac-me', 'x'.repeat(41), `${'x'.repeat(64)}.acme`],
    right: ['x'.repeat(40)],
  },
  MariaDB: {
    wrong: ['x'.repeat(56), `${'x'.repeat(65)}.acme`],
    right: ['123', 'with-hyphen$', 'x'.repeat(55)],
  },
} as const;

describe.each(SQL_ENGINES)('a store on $name', ({ name, url, host, quoted, schema }) => {
  const test = it.skipIf(url === undefined);

  async function setUp(settings: HostSettings = {}, options: StoreOptions = {}) {
    const admin = host();
    const tables = newTables(admin);
    await admin.migrate(tables);
    const record = newRecord('one');
    await admin.store(tables).insert(record);
    const own = host(settings);
    return {
      admin,
      own,
      tables,
      table: `${tables}_tokens`,
      record,
      store: own.store(tables, options),
    };
  }

  describe.each(WAYS[name])('$way', ({ settings, options }) => {
    async function setUpLists() {
      const { admin, own, tables, table, store } = await setUp(settings, options);
      const write = ({ id }: TokenRecord, scopes: string, requested: string) =>
        admin.run(
          `UPDATE ${table} SET scopes = '${scopes}', requested = '${requested}' WHERE id = '${id}'`,
        );
      return {
        store,
        elsewhere: admin.store(tables),
        bytesRead: own.bytesRead,
        write,
        overwrite: (record: TokenRecord) =>
          write(record, JSON.stringify(record.scopes), JSON.stringify(record.requested)),
        remove: ({ id }: TokenRecord) => admin.run(`DELETE FROM ${table} WHERE id = '${id}'`),
      };
    }

    it.skipIf(url === undefined).each(longListCases)('$name', async (one) =>
      one.run(await setUpLists()),
    );

    it.skipIf(url === undefined).each(['', '=', '\x1e', '["a"]\x1e=', '[1]', '["a"', '{}'])(
      'rejects with store_corrupt if a long list was replaced by %j',
      async (text) => {
        const { store, elsewhere, overwrite, write } = await setUpLists();
        const record = longRecord('a');
        await elsewhere.insert(record);
        for (let times = 0; times < 3; times += 1) await store.find([record.id]);
        await write(record, text, JSON.stringify(record.requested));
        expect(await codeOf(store.find([record.id]))).toBe('store_corrupt');
        await write(record, JSON.stringify(record.scopes), text);
        expect(await codeOf(store.find([record.id]))).toBe('store_corrupt');
        await overwrite(record);
        expect((await store.find([record.id]))[0]?.scopes).toEqual(record.scopes);
      },
    );

    const oneByte = name === 'PostgreSQL' ? `'\\x00'` : `x'00'`;

    it.skipIf(url === undefined).each([
      ['digest', oneByte],
      ['previous_digest', oneByte],
      ['scopes', `'garbage'`],
      ['scopes', `'{"a":"secret"}'`],
      ['scopes', `'["a",1]'`],
      ['requested', `'null'`],
      ['metadata', `'garbage'`],
      ['metadata', `'[1]'`],
      ['created_at', '9000000000000000'],
      ['expires_at', '-9000000000000000'],
      ['revoked_at', '9000000000000000'],
      ['previous_until', '9000000000000000'],
      ['suspended_at', '9000000000000000'],
      ['scopes_changed_at', '9000000000000000'],
      ['rotated_at', '9000000000000000'],
      ['pending', `'garbage'`],
      ['pending', `'{"prefix":"acme","kid":"k1","digest":"","graceSeconds":1}'`],
      ['parent', `'other'`],
      ['version', '9007199254740993'],
    ])('rejects a corrupt row with store_corrupt: %s = %s', async (column, value) => {
      const { admin, table, store, record } = await setUp(settings, options);
      const bystander = newRecord('two');
      await store.insert(bystander);
      await admin.run(`UPDATE ${table} SET ${column} = ${value} WHERE id = '${record.id}'`);

      for (const ids of [[record.id], [bystander.id, record.id]]) {
        const { code, message } = await refusalOf(store.find(ids));
        expect(code).toBe('store_corrupt');
        expect(message).not.toMatch(/garbage|secret|JSON/);
      }
      expect(await store.find([bystander.id])).toEqual([bystander]);
    });
  });

  test('answers revokeAll with 0 only after it has looked for newer tokens', async () => {
    const { store } = await setUp();
    const at = (ms: number) => ({ account: 'big', createdAt: new Date(CREATED.getTime() + ms) });
    for (const [n, ms] of [1, 2, 2, 3].entries()) await store.insert(newRecord(`n${n}`, at(ms)));
    expect(await store.revokeAll('big', CREATED, 2)).toBe(2);
    await store.insert(newRecord('newer', at(4)));

    expect(await store.revokeAll('big', CREATED, 10)).toBe(3);
    expect(await store.revokeAll('big', CREATED, 10)).toBe(0);
  });

  describe('when its database fails', () => {
    it.skipIf(url === undefined).each(VERBS)(
      'rejects if the pool is closed: %s',
      async (_, call) => {
        const { own, store } = await setUp();
        await own.end();

        const { code, message } = await refusalOf(call(store));
        expect(code).toBe('store_unavailable');
        expect(message).not.toMatch(/after calling end|Pool is closed/);
      },
    );

    it.skipIf(url === undefined).each(VERBS)(
      'rejects if the server is down: %s',
      async (_, call) => {
        const { protocol } = new URL(url as string);
        const down = host({ url: `${protocol}//nobody@127.0.0.1:${await freePort()}/no` });

        const { code, message, details } = await refusalOf(call(down.store('acme')));
        expect([code, details]).toEqual(['store_unavailable', { reason: 'unreachable' }]);
        expect(message).not.toMatch(/ECONN|127|nobody/);
      },
    );

    it.skipIf(url === undefined).each(VERBS.filter(([verb]) => verb !== 'hasReached'))(
      'names migrate if the table is missing: %s',
      async (_, call) => {
        const { code, details } = await refusalOf(call(host().store(newName())));
        expect([code, details]).toEqual(['store_unavailable', { reason: 'schema_missing' }]);
      },
    );

    test('says that a read-only connection takes no writes', async () => {
      const { store, record } = await setUp({ isReadOnly: true });

      expect(await store.find([record.id])).toEqual([record]);
      const { code, details } = await refusalOf(store.insert(newRecord('two')));
      expect([code, details]).toEqual(['store_unavailable', { reason: 'standby' }]);
    });

    test('rejects calls on locked rows at its deadline, and leaves the pool usable', async () => {
      const { admin, own, store, table, record } = await setUp(
        { connections: 3 },
        { deadlineMs: 300 },
      );
      const other = await admin.begin();
      await other.run(`SELECT id FROM ${table} FOR UPDATE`);
      const writes = WRITES.filter(([verb]) => /^(replace|revoke)/.test(verb));
      const calls = [...writes, ...writes].map(([, call]) => codeOf(call(store)));

      // These are more calls than connections.
      expect(new Set(await Promise.all(calls))).toEqual(new Set(['store_unavailable']));
      expect(await store.find([record.id])).toEqual([record]);
      await other.end();
      await Promise.all(Array.from({ length: 9 }, () => own.run('SELECT 1')));
    });

    test('waits only once for its deadline if all connections died silently', async () => {
      const proxy = await startDatabaseProxy(url as string);
      onTestFinished(() => proxy.close());
      const { own, store, record } = await setUp(
        { url: proxy.url, connections: 4 },
        { deadlineMs: 400 },
      );
      await Promise.all(Array.from({ length: 4 }, () => own.run('SELECT 1')));
      await Promise.all(Array.from({ length: 4 }, () => store.find([record.id])));
      await proxy.silence();

      expect(await codeOf(store.find([record.id]))).toBe('store_unavailable');
      // The other three connections were dead as well, but no call had to find out.
      for (let n = 0; n < 8; n++) expect(await store.find([record.id])).toEqual([record]);
    });
  });

  describe('with options', () => {
    const refused = expect.objectContaining({ code: 'invalid_options' });
    const withOption = (options: object) => () => host().store('acme', options as StoreOptions);

    it
      .skipIf(url === undefined)
      .each([
        ...['', ' ', 'a b', 'a`b', "a'b", 'a"b', 'a;b', 'a.b.c', '.a', 'a.', 'a..b', 'caf\u00e9'],
        ...['a\n', 'a\0', ' acme', 'acme; DROP TABLE users', null, 42, {}, ['acme']],
        ...NAMES[name].wrong,
      ])('refuses the tables %j', async (tables) => {
      const expected = { code: 'invalid_options', message: expect.not.stringContaining('DROP') };

      expect(() => host().store(tables as string)).toThrow(expect.objectContaining(expected));
      expect(() => host().migrationSql(tables as string)).toThrow(refused);
      expect(await refusalOf(host().migrate(tables as string))).toMatchObject(expected);
    });

    it
      .skipIf(url === undefined)
      .each([undefined, 'Test_Upper', 'select', '_', ...NAMES[name].right])(
      'accepts the tables %j, with and without a schema',
      async (tables) => {
        const admin = host();
        const own = `${newName()}_Upper`;
        await admin.run(`CREATE ${schema} ${quoted(own)}`);
        onTestFinished(async () => {
          const end = schema === 'SCHEMA' ? ' CASCADE' : '';
          await host().run(`DROP ${schema} ${quoted(own)}${end}`);
        });
        const qualified = `${own}.${tables ?? 'tokenwright'}`;
        await admin.migrate(qualified);
        const record = newRecord('one');
        await admin.store(qualified).insert(record);

        const chosen = host({ schema: own });
        await chosen.migrate(tables);
        const store = chosen.store(tables as string);
        expect(await store.find([record.id])).toEqual([record]);
        const findings = await store.doctor();
        expect(findings.filter(({ code }) => /schema|usage|leases/.test(code))).toEqual([]);
      },
    );

    it
      .skipIf(url === undefined)
      .each([
        [{ deadlineMs: 0 }],
        [{ deadlineMs: -1 }],
        [{ deadlineMs: 1.5 }],
        [{ deadlineMs: 60_001 }],
        [{ deadlineMs: Number.NaN }],
        [{ deadlineMs: '5' }],
        [{ prepare: 'false' }],
        [{ prepare: 0 }],
        [{ standby: null }],
        [{ standby: true }],
        [{ standby: 'ALLOW' }],
        [{ standby: '' }],
        [{ maxListBytes: 1 }],
      ])('refuses %j', (options) => {
      expect(withOption(options)).toThrow(refused);
    });

    it
      .skipIf(url === undefined)
      .each([
        [{ deadlineMs: 1 }],
        [{ deadlineMs: 60_000 }],
        [{ deadlineMs: undefined }],
        [{ deadlineMs: null }],
        [{ prepare: false }],
        [{ standby: 'allow' }],
      ])('accepts %j', (options) => {
      expect(withOption(options)).not.toThrow();
    });
  });
});
