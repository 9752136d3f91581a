import { describe, expect, it } from 'vitest';
import type { StoreFinding } from '../../src/ports/token-store.ts';
import { requestContract } from '../../src/testing/index.ts';
import { idOf } from '../../src/testing/records.ts';
import { codeOf, refusalOf } from '../support.ts';
import { type DatabaseHost, type HostSettings, newTables, SQL_ENGINES } from './database-hosts.ts';
import { ENGINES, opened } from './engine-places.ts';
import { newRecord, newRequest, REQUEST_BOUNDS } from './support.ts';

const ELEVATES = [{ id: idOf('root'), version: 3 }];
const DAY_MS = 86_400_000;

const storeOn = (host: DatabaseHost, tables: string) => host.store(tables, { deadlineMs: 20_000 });

describe.each(SQL_ENGINES)('request store of $name', ({ name, url, host: on }) => {
  async function setUp(settings: HostSettings = {}) {
    const admin = on();
    const tables = newTables(admin);
    await admin.migrate(tables);
    const host = on(settings);
    const store = storeOn(host, tables);
    const findings = async (): Promise<readonly StoreFinding[]> =>
      (await store.doctor()).filter(({ part }) => part === 'requests');
    return {
      table: `${tables}_requests`,
      tables,
      admin,
      host,
      store,
      findings,
      requests: store.requests,
    };
  }

  const test = it.skipIf(url === undefined);

  describe.skipIf(url === undefined)('with default settings', () => {
    it.each(requestContract)('$name', (promise) =>
      promise.run(async () => (await setUp()).requests),
    );
  });

  describe.skipIf(url === undefined)('with unusual settings of the host', () => {
    it.each(requestContract)('$name', (promise) =>
      promise.run(
        async () => (await setUp({ isContrary: true, isolation: 'serializable' })).requests,
      ),
    );
  });

  describe.skipIf(url === undefined)('without prepared statements', () => {
    it.each(requestContract)('$name', (promise) =>
      promise.run(async () => {
        const { host, tables } = await setUp();
        return host.store(tables, { deadlineMs: 20_000, prepare: false }).requests;
      }),
    );
  });

  test('leaves no open transaction, and its connection usable, after a refusal', async () => {
    const { requests, admin, table } = await setUp({ connections: 2 });
    await requests.insert(newRequest(1), REQUEST_BOUNDS);
    for (let time = 0; time < 5; time += 1) {
      expect(await codeOf(requests.insert(newRequest(1), REQUEST_BOUNDS))).toBe('code_taken');
    }
    // Another connection would wait for the lock of an open one.
    await storeOn(on(), table.replace('_requests', '')).requests.insert(
      newRequest(2),
      REQUEST_BOUNDS,
    );
    expect(await admin.run(`SELECT id FROM ${table} WHERE id <> ''`)).toHaveLength(2);
  });

  test('rejects if its connection ends while it waits, and goes on with another one', async () => {
    const { requests, admin, table } = await setUp();
    await requests.insert(newRequest(1), REQUEST_BOUNDS);
    const holding = await admin.begin();
    await holding.run(`UPDATE ${table} SET version = 1 WHERE id = ''`);
    const inserting = requests.insert(newRequest(2), REQUEST_BOUNDS).catch((error) => error);
    const [ids, kill] =
      name === 'MariaDB'
        ? [
            `SELECT ID AS id FROM information_schema.PROCESSLIST
             WHERE INFO LIKE '%INTO%${table}%' AND ID <> CONNECTION_ID()`,
            (id: unknown) => `KILL ${id}`,
          ]
        : [
            `SELECT pid AS id FROM pg_stat_activity
             WHERE query LIKE '%INTO "${table}"%' AND wait_event_type = 'Lock'`,
            (id: unknown) => `SELECT pg_terminate_backend(${id})`,
          ];
    await expect.poll(async () => (await admin.run(ids)).length).toBe(1);
    const [row] = await admin.run(ids);
    await admin.run(kill(row?.['id']));

    expect(await inserting).toMatchObject({
      code: 'store_unavailable',
      details: { store: 'requests' },
    });
    await holding.end();
    expect(await requests.find({ id: newRequest(2).id })).toBeUndefined();
    await requests.insert(newRequest(2), REQUEST_BOUNDS);
  });

  test('makes its lock again if somebody has emptied the table', async () => {
    const { requests, admin, table } = await setUp();
    await requests.insert(newRequest(1), REQUEST_BOUNDS);
    await admin.run(`DELETE FROM ${table}`);
    await requests.insert(newRequest(1), REQUEST_BOUNDS);
    expect(await requests.find({ id: newRequest(1).id })).toEqual(newRequest(1));
  });

  test('keeps its lock in a purge, and finds no request in it', async () => {
    const { requests, admin, table } = await setUp();
    await requests.insert(newRequest(1), REQUEST_BOUNDS);
    expect(await requests.purge(new Date('2100-01-01'), 10)).toBe(0);
    expect(await admin.run(`SELECT id FROM ${table}`)).toHaveLength(2);
    expect(await requests.find({ id: '' })).toBeUndefined();
    expect(await requests.find({ userCode: '' })).toBeUndefined();
  });

  test('purges by the clock of the server', async () => {
    const { requests } = await setUp();
    for (const [seed, ms] of [-2000, 30_000].entries()) {
      const expiresAt = new Date(Date.now() + ms);
      await requests.insert(newRequest(seed, { expiresAt }), REQUEST_BOUNDS);
    }
    expect(await requests.purge(new Date('2100-01-01'), 10)).toBe(1);
  });

  test('rejects if the server is read-only', async () => {
    const { requests } = await setUp({ isReadOnly: true });
    for (const call of [
      () => requests.insert(newRequest(1), REQUEST_BOUNDS),
      () => requests.replace(newRequest(1, { version: 2 })),
    ]) {
      expect(await refusalOf(call())).toMatchObject({
        code: 'store_unavailable',
        details: { reason: 'standby', store: 'requests' },
      });
    }
  });

  test('rejects with store_corrupt if something else is stored', async () => {
    const { requests, admin, table } = await setUp();
    await requests.insert(newRequest(1), REQUEST_BOUNDS);
    await admin.run(`UPDATE ${table} SET body = '{}' WHERE id <> ''`);
    expect(await codeOf(requests.find({ id: newRequest(1).id }))).toBe('store_corrupt');
  });

  it.runIf(name === 'PostgreSQL' && url !== undefined)(
    'waits for the disk, whatever the host has set',
    async () => {
      const { requests, host } = await setUp({ isContrary: true });
      await requests.insert(newRequest(1), REQUEST_BOUNDS);
      await requests.replace(newRequest(1, { version: 2 }));
      expect(host.sent.at(-1)).toContain("set_config('synchronous_commit'");
    },
  );

  describe.skipIf(url === undefined)('in a database of an earlier version', () => {
    async function setUpEarlier() {
      const made = await setUp();
      await made.admin.run(`DROP TABLE ${made.table}`);
      return made;
    }

    it('leaves tokens working, and says what is missing', async () => {
      const { store, requests } = await setUpEarlier();
      await store.insert(newRecord('one'));
      expect(await store.find([newRecord('one').id])).toEqual([newRecord('one')]);
      for (const call of [
        () => requests.insert(newRequest(1), REQUEST_BOUNDS),
        () => requests.find({ id: newRequest(1).id }),
        () => requests.replace(newRequest(1, { version: 2 })),
        () => requests.purge(new Date(), 1),
      ]) {
        expect(await refusalOf(call())).toMatchObject({
          code: 'store_unavailable',
          details: { reason: 'schema_missing', store: 'requests' },
        });
      }
    });

    it('works once migrate has added the table', async () => {
      const { admin, tables, requests, findings } = await setUpEarlier();
      expect(await findings()).toMatchObject([{ code: 'requests_missing' }]);
      await admin.migrate(tables);
      await requests.insert(newRequest(1), REQUEST_BOUNDS);
      expect(await findings()).toEqual([]);
    });
  });

  test('reports rows that nobody purges, and a missing column', async () => {
    const { requests, findings, admin, table } = await setUp();
    await requests.insert(newRequest(1), REQUEST_BOUNDS);
    expect(await findings()).toEqual([]);
    const ended = Date.now() - 2 * DAY_MS;
    await admin.run(`UPDATE ${table} SET expires_at = ${ended} WHERE id <> ''`);
    expect(await findings()).toMatchObject([
      {
        code: 'requests_not_purged',
        message: expect.stringMatching(/holds requests for tokens grows .*: 1 of its rows/),
      },
    ]);
    await admin.run(`ALTER TABLE ${table} DROP COLUMN body`);
    expect(await findings()).toMatchObject([
      { code: 'requests_differ', message: expect.stringContaining('the column body') },
    ]);
  });
});

describe.each(ENGINES)('four stores of one place on $name', ({ isMissing, newPlace }) => {
  it.skipIf(isMissing)('store exactly as many requests of a root as there may be', async () => {
    const place = await newPlace();
    const stores = Array.from({ length: 4 }, () => opened(place).requests);
    const bounds = { ...REQUEST_BOUNDS, maxOfRoot: 10 };
    const inserts = Array.from({ length: 64 }, (_, seed) =>
      stores[seed % 4]?.insert(newRequest(seed, { elevates: ELEVATES }), bounds),
    );
    const settled = await Promise.allSettled(inserts);
    const codes = settled.flatMap((each) => (each.status === 'rejected' ? [each.reason.code] : []));

    expect(codes).toEqual(Array(54).fill('quota_exceeded'));
  });

  it.skipIf(isMissing)('let one of many decide', async () => {
    const place = await newPlace();
    const stores = Array.from({ length: 4 }, () => opened(place).requests);
    await stores[0]?.insert(newRequest(1), REQUEST_BOUNDS);
    const calls = Array.from({ length: 64 }, (_, index) => {
      const state = index % 2 === 0 ? 'approved' : 'denied';
      return stores[index % 4]?.replace(newRequest(1, { version: 2, state, by: `${index}` }));
    });
    const winners = (await Promise.all(calls)).flatMap((won, index) => (won ? [index] : []));

    expect(winners).toHaveLength(1);
    expect(await stores[3]?.find({ id: newRequest(1).id })).toMatchObject({ by: `${winners[0]}` });
  });
});
