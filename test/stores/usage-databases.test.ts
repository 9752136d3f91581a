import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { generateKey, MemoryTokenStore, TokenService, type UsageStore } from '../../src/index.ts';
import type { UsageDelta } from '../../src/ports/usage-store.ts';
import { usageContract } from '../../src/testing/index.ts';
import type { TokenId } from '../../src/token/record.ts';
import { codeOf, refusalOf, SCOPE } from '../support.ts';
import { type DatabaseHost, type HostSettings, newTables, SQL_ENGINES } from './database-hosts.ts';
import type { StorePlace } from './engines.ts';

type Store = UsageStore & { since(): Promise<Date> };

interface StoreOptions {
  readonly deadlineMs?: number;
}

/** The statements that one `add` sends. */
const PER_ADD = { PostgreSQL: [/INSERT INTO/], MariaDB: [/^\(SELECT/, /^INSERT INTO/] } as const;

function usageOn(host: DatabaseHost, tables: string, options: StoreOptions = {}): Store {
  return host.store(tables, options).usage as Store;
}

const START = Date.UTC(2100, 0, 1);
const INSERT = /\bINSERT INTO/;
const ORDERS = 'GET:shop.example/orders';

function idOf(index: number): TokenId {
  return `token${index}`.padEnd(22, 'x') as TokenId;
}

const ID = idOf(0);

function use(id: TokenId, scope: string, uses = 1, ms = 0): UsageDelta {
  return { id, scope, uses, lastUsedAt: new Date(START + ms) };
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

async function usesOf(store: UsageStore, id = ID): Promise<number> {
  const [usage] = await store.read([id]);
  return usage?.scopes.reduce((sum, { uses }) => sum + uses, 0) ?? 0;
}

describe.each(SQL_ENGINES)('usage store of $name', ({ name, url, host }) => {
  const perAdd = PER_ADD[name];

  async function setUp(settings: HostSettings = {}, options: StoreOptions = {}) {
    const admin = host();
    const tables = newTables(admin);
    await admin.migrate(tables);
    const own = host(settings);
    const store = usageOn(own, tables, options);
    return { admin, own, tables, table: `${tables}_usage`, store };
  }

  const stored = async ({ run }: DatabaseHost, table: string) =>
    Number((await run(`SELECT count(*) AS number FROM ${table} WHERE id <> ''`))[0]?.['number']);

  describe.skipIf(url === undefined)('with default settings', () => {
    it.each(usageContract)('$name', (promise) => promise.run(async () => (await setUp()).store));
  });

  describe.skipIf(url === undefined)('with unusual settings of the host', () => {
    it.each(usageContract)('$name', (promise) =>
      promise.run(async () => {
        const setting = { isolation: 'serializable', isContrary: true };
        // Long, because each conflict is retried.
        return (await setUp(setting, { deadlineMs: 20_000 })).store;
      }),
    );
  });

  describe.skipIf(url === undefined)('add', () => {
    it('sends no more statements for a thousand tokens than for one', async () => {
      const { own, store } = await setUp();
      const batch = range(1000).map((index) => use(idOf(index), ORDERS, index + 1));
      await store.add(batch);
      expect(own.sent).toEqual(perAdd.map((form) => expect.stringMatching(form)));

      own.sent.length = 0;
      const usages = await store.read(range(1000).map(idOf));
      expect(usages.map((usage) => usage?.scopes[0]?.uses)).toEqual(
        range(1000).map((index) => index + 1),
      );
      expect(own.sent).toHaveLength(1);
    });

    it('sends only an INSERT for tokens and scopes that it has written before', async () => {
      const { own, store } = await setUp();
      const batch = range(10).flatMap((index) => [
        use(idOf(index), ORDERS),
        { id: idOf(index), refusals: 1 },
      ]);
      await store.add(batch);
      own.sent.length = 0;
      await store.add(batch);
      await store.add([{ id: idOf(99), refusals: 1 }]);
      expect(own.sent).toEqual([expect.stringMatching(INSERT), expect.stringMatching(INSERT)]);

      own.sent.length = 0;
      await store.add([...batch, use(ID, `${ORDERS}/new`)]);
      expect(own.sent).toEqual(perAdd.map((form) => expect.stringMatching(form)));
      await store.forget([ID]);
      own.sent.length = 0;
      await store.add(batch);
      expect(own.sent).toEqual(perAdd.map((form) => expect.stringMatching(form)));
      expect(await usesOf(store, ID)).toBe(1);
      expect(await usesOf(store, idOf(1))).toBe(4);
    });

    it('sends no statement for an empty batch', async () => {
      const { own, store } = await setUp();
      await store.add([]);
      await store.forget([]);
      expect(await store.read([])).toEqual([]);
      expect(own.sent).toEqual([]);
    });

    it.each([
      [{ refusals: Number.NaN }],
      [{ refusals: 0.5 }],
      [{ scope: ORDERS, uses: 2 ** 53, lastUsedAt: new Date(START) }],
      [{ scope: ORDERS, uses: 1, lastUsedAt: new Date(Number.NaN) }],
    ])('refuses a batch with %j and adds nothing of it', async (broken) => {
      const { store } = await setUp();
      const batch = [use(ID, ORDERS), { id: ID, ...broken } as UsageDelta];

      expect(await codeOf(store.add(batch))).toBe('invalid_request');
      expect(await store.read([ID])).toEqual([undefined]);
    });

    it('adds nothing of a batch if the server refuses a part of it', async () => {
      const { admin, store, table } = await setUp();
      await store.add([use(idOf(1), ORDERS)]);
      await admin.run(`UPDATE ${table} SET uses = 9223372036854775807 WHERE id = '${idOf(1)}'`);
      const batch = [use(idOf(0), ORDERS), use(idOf(1), ORDERS), use(idOf(2), ORDERS)];

      expect(await codeOf(store.add(batch))).toBe('store_unavailable');
      expect(await usesOf(store, idOf(0))).toBe(0);
      await admin.run(`UPDATE ${table} SET uses = 7 WHERE id = '${idOf(1)}'`);
      await store.add(batch);
      expect(await usesOf(store, idOf(0))).toBe(1);
      expect(await usesOf(store, idOf(1))).toBe(8);
    });

    it('distinguishes the longest scopes by their last characters', async () => {
      const { store } = await setUp();
      const scopes = range(300).map(
        (index) => `GET:shop.example/${'x'.repeat(1003)}${`${index}`.padStart(4, '0')}`,
      );
      expect(scopes[0]).toHaveLength(1024);
      await store.add(scopes.slice(0, 256).map((scope, index) => use(ID, scope, index + 1)));
      await store.add(scopes.slice(0, 256).map((scope) => use(ID, scope)));

      const [usage] = await store.read([ID]);
      expect(new Map(usage?.scopes.map(({ scope, uses }) => [scope, uses]))).toEqual(
        new Map(scopes.slice(0, 256).map((scope, index) => [scope, index + 2])),
      );
    });

    it('limits the rows of a token, however many scopes it uses', async () => {
      const { admin, store, table } = await setUp();
      for (const turn of range(4)) {
        const scopes = range(100).map((index) => `${ORDERS}/${turn * 100 + index}`);
        await store.add([...scopes.map((scope) => use(ID, scope)), { id: ID, refusals: 1 }]);
      }

      expect(await usesOf(store)).toBe(400);
      // 256 scopes, one row for all further scopes, and one for refusals.
      expect(await stored(admin, table)).toBe(258);
    });

    it('counts at most 256 scopes separately, even if several stores add new ones concurrently', async () => {
      const { tables, store } = await setUp();
      const stores = range(8).map(() => usageOn(host(), tables));
      const rounds = range(3);
      for (const round of rounds) {
        await Promise.all(
          stores.map((each, writer) =>
            each.add(range(64).map((index) => use(ID, `${ORDERS}/${writer}/${index}`, 1, round))),
          ),
        );
      }

      const [usage] = await store.read([ID]);
      const names = usage?.scopes.map(({ scope }) => scope) ?? [];
      expect(names.filter((scope) => scope !== 'other')).toHaveLength(256);
      expect(new Set(names).size).toBe(257);
      expect(await usesOf(store)).toBe(8 * 64 * rounds.length);
    });

    it('rejects at its deadline while another transaction holds a row, and adds afterwards', async () => {
      const { admin, own, store, tables, table } = await setUp({}, { deadlineMs: 300 });
      const patient = usageOn(own, tables);
      await patient.add([use(ID, ORDERS)]);
      const other = await admin.begin();
      await other.run(`UPDATE ${table} SET uses = 10 WHERE id = '${ID}'`);
      expect(await codeOf(store.add([use(ID, ORDERS)]))).toBe('store_unavailable');
      await other.end();
      await patient.add([use(ID, ORDERS)]);
      // The batch that timed out may have been carried out.
      expect([11, 12]).toContain(await usesOf(patient));
    });
  });

  describe.skipIf(url === undefined)('concurrent writers of overlapping batches', () => {
    const SCOPES = [ORDERS, `${ORDERS}/{}`, 'POST:shop.example/orders'];

    /** A batch of tokens that all writers share, in an order that differs by writer. */
    function batchOf(writer: number, round: number): UsageDelta[] {
      const step = [7, 11, 13, 17][writer % 4] ?? 1;
      return range(150).flatMap((index) => {
        const token = (index * step + round) % 150;
        const scope = SCOPES[token % 3] ?? ORDERS;
        return [
          use(idOf(token), scope, writer + 1, (writer * 37 + round * 101) % 1000),
          ...(token % 5 === 0 ? [{ id: idOf(token), refusals: 1 }] : []),
        ];
      });
    }

    it.each(['read committed', 'repeatable read'])(
      'add up exactly and without deadlocks (%s)',
      async (isolation) => {
        const { tables, store } = await setUp();
        const [writers, rounds] = [range(6), range(8)];
        const hosts = writers.map(() => host({ isolation }));
        await Promise.all(
          hosts.map(async (own, writer) => {
            const each = usageOn(own, tables, { deadlineMs: 20_000 });
            for (const round of rounds) await each.add(batchOf(writer, round));
          }),
        );

        const all = writers.flatMap((writer) => rounds.flatMap((round) => batchOf(writer, round)));
        const latest = Math.max(...all.map(({ scope, ...delta }) => timeOf(delta)));
        const usages = await store.read(range(150).map(idOf));
        for (const [index, usage] of usages.entries()) {
          const scope = SCOPES[index % 3] ?? ORDERS;
          // The writers add 1 + 2 + … + 6 in each round.
          expect(usage?.scopes).toEqual([
            { scope, uses: 21 * rounds.length, lastUsedAt: new Date(latest) },
          ]);
          expect(usage?.refusals).toBe(index % 5 === 0 ? writers.length * rounds.length : 0);
        }
        expect(hosts.map(({ deadlocks }) => deadlocks())).toEqual(writers.map(() => 0));
      },
    );

    it('survive a deadlock with a transaction of the host (the control)', async () => {
      const { admin, own, store, table } = await setUp({}, { deadlineMs: 20_000 });
      const ids = range(20).map(idOf);
      const [first = ID, ...rest] = ids;
      await store.add(ids.map((id) => use(id, ORDERS)));
      const changed = (id: TokenId) => `UPDATE ${table} SET uses = uses + 100 WHERE id = '${id}'`;
      const other = await admin.begin();
      const ended = Promise.withResolvers<void>();
      // Otherwise the batch may come again before that transaction goes on, and both meet once more.
      own.delayDeadlocks(ended.promise);
      for (const id of rest) await other.run(changed(id));
      const adding = store.add(ids.map((id) => use(id, ORDERS)));
      await expect.poll(() => isLocked(admin, table, first), { timeout: 5000 }).toBe(true);
      // The batch holds the first row and waits for another one. Now this transaction waits for the first row.
      const isVictim = await other.run(changed(first)).then(
        () => false,
        () => true,
      );
      await other.end();
      ended.resolve();
      await adding;

      expect(own.deadlocks()).toBe(isVictim ? 0 : 1);
      expect(await usesOf(store, first)).toBe(isVictim ? 2 : 102);
    });

    it('add up exactly across processes', async () => {
      const { tables, store } = await setUp();
      const engine = name === 'MariaDB' ? 'mariadb' : 'postgres';
      const place = { engine, url: `${url}`, name: tables } as const;
      const children = range(3).map((writer) => startFlusher(place, writer));
      const ends = await Promise.all(
        children.map(async (child) => [
          await text(child.stderr as NonNullable<ChildProcess['stderr']>),
          (await once(child, 'close'))[0],
        ]),
      );
      expect(ends).toEqual(children.map(() => ['', 0]));

      const usages = await store.read(range(FLUSHED).map(idOf));
      for (const usage of usages) {
        expect(usage?.scopes).toEqual([
          { scope: ORDERS, uses: 3 * FLUSHES, lastUsedAt: new Date(START + FLUSHES - 1) },
        ]);
      }
    });
  });

  describe.skipIf(url === undefined)('since', () => {
    it('is the time when the table was created, by the clock of the server', async () => {
      const { admin, store, tables } = await setUp();
      const now = name === 'MariaDB' ? 'UNIX_TIMESTAMP(NOW(6))' : 'extract(epoch FROM now())';
      const [row] = await admin.run(`SELECT ${now} AS now`);
      const since = await store.since();

      const age = Number(row?.['now']) * 1000 - since.getTime();
      expect(age).toBeGreaterThan(-1);
      expect(age).toBeLessThan(60_000);
      expect(await usageOn(admin, tables).since()).toEqual(since);
    });

    it('starts over if the table was emptied', async () => {
      const { admin, store, table } = await setUp();
      await admin.run(`UPDATE ${table} SET last_used_at = 1000 WHERE id = ''`);
      expect(await store.since()).toEqual(new Date(1000));

      await admin.run(`DELETE FROM ${table}`);
      const since = await store.since();
      expect(since.getTime()).toBeGreaterThan(1000);
      expect(await store.since()).toEqual(since);
    });

    it('does not change on forget', async () => {
      const { store } = await setUp();
      const since = await store.since();
      await store.add([use(ID, ORDERS)]);
      await store.forget([ID]);

      expect(await store.since()).toEqual(since);
    });
  });

  describe.skipIf(url === undefined)('a call', () => {
    it('names migrate in its error if the table is missing', async () => {
      const { admin, store, table } = await setUp();
      await admin.run(`DROP TABLE ${table}`);
      const calls = [
        () => store.add([use(ID, ORDERS)]),
        () => store.read([ID]),
        () => store.since(),
      ];
      for (const call of calls) {
        const { code, details } = await refusalOf(call());
        expect(code).toBe('store_unavailable');
        expect(details).toEqual({ reason: 'schema_missing', store: 'usage' });
      }
    });

    it('rejects if it writes as a user who can only read', async () => {
      const { admin, store, tables, table } = await setUp();
      await store.add([use(ID, ORDERS)]);
      const reader = usageOn(await admin.restricted('SELECT', table), tables);

      for (const call of [() => reader.add([use(ID, ORDERS)]), () => reader.forget([ID])]) {
        const { code, details } = await refusalOf(call());
        expect(code).toBe('store_unavailable');
        expect(details).toEqual({ reason: 'forbidden', store: 'usage' });
      }
      expect(await usesOf(reader)).toBe(1);
    });

    it('rejects if it writes over a read-only connection', async () => {
      const { store } = await setUp({ isReadOnly: true });

      for (const call of [() => store.add([use(ID, ORDERS)]), () => store.forget([ID])]) {
        const { code, details } = await refusalOf(call());
        expect(code).toBe('store_unavailable');
        expect(details).toEqual({ reason: 'standby', store: 'usage' });
      }
    });
  });

  describe.skipIf(url === undefined)('below a service', () => {
    it('counts uses, shows them to another service, and leaves the pool of the host open', async () => {
      const { admin, tables, store } = await setUp();
      const records = new MemoryTokenStore();
      const keys = [generateKey()];
      const serviceOn = (usage: UsageStore) =>
        new TokenService({ store: records, keys, prefix: 'acme', usage: { store: usage } });
      const tokens = serviceOn(store);
      const { id, value } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
      await tokens.verify(value, { scope: SCOPE });
      await tokens.verify(value, { scope: 'PUT:shop.example/orders' });
      const before = await records.find([id]);
      await tokens.close();

      const elsewhere = serviceOn(usageOn(admin, tables));
      expect(await elsewhere.usage('acme', id)).toMatchObject({ uses: 1, refusals: 1 });
      expect(await records.find([id])).toEqual(before);
      expect(await usesOf(store, id)).toBe(1);
    });
  });
});

/** Whether another transaction has locked the row of a token. */
async function isLocked({ begin }: DatabaseHost, table: string, id: TokenId): Promise<boolean> {
  const probe = await begin();
  try {
    await probe.run(`SELECT uses FROM ${table} WHERE id = '${id}' FOR UPDATE NOWAIT`);
    return false;
  } catch {
    return true;
  } finally {
    await probe.end();
  }
}

const FLUSHED = 400;
const FLUSHES = 15;

/** Adds to the counts of all tokens, in an order that differs by writer. */
const FLUSHER = `
  import { openStore } from './test/stores/engines.ts';
  const [place, writer] = process.argv.slice(1);
  const { store, close } = openStore(JSON.parse(place));
  for (let round = 0; round < ${FLUSHES}; round += 1) {
    const batch = Array.from({ length: ${FLUSHED} }, (_, index) => {
      const place = writer === '1' ? ${FLUSHED} - 1 - index : (index + round * 31) % ${FLUSHED};
      const lastUsedAt = new Date(${START} + (writer === '2' ? ${FLUSHES} - 1 - round : round));
      return { id: ('token' + place).padEnd(22, 'x'), scope: '${ORDERS}', uses: 1, lastUsedAt };
    });
    await store.usage.add(batch);
  }
  await close();
`;

function startFlusher(place: StorePlace, writer: number): ChildProcess {
  const script = ['--input-type=module-typescript', '-e', FLUSHER];
  const child = spawn(process.execPath, [...script, JSON.stringify(place), `${writer}`], {
    cwd: join(import.meta.dirname, '../..'),
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

function timeOf(delta: object): number {
  return 'lastUsedAt' in delta ? (delta.lastUsedAt as Date).getTime() : 0;
}
