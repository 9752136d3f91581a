import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { windowOf, windowStart } from '../../src/limits/windows.ts';
import type { LeaseStore, LeaseWant } from '../../src/ports/lease-store.ts';
import { leaseContract } from '../../src/testing/index.ts';
import { codeOf, refusalOf } from '../support.ts';
import { type DatabaseHost, type HostSettings, newTables, SQL_ENGINES } from './database-hosts.ts';
import { ENGINES, opened } from './engine-places.ts';

/** In seconds. */
const DAY = 86_400;
const FAR = new Date('2100-01-01T00:00:00.000Z');
const KEY = 'token/uses';

function want(fields: Partial<LeaseWant> = {}): LeaseWant {
  return { key: KEY, window: 0, limit: 10, want: 1, until: FAR, ...fields };
}

const leasesOn = (host: DatabaseHost, tables: string): LeaseStore =>
  host.store(tables, { deadlineMs: 20_000 }).leases;

describe.each(SQL_ENGINES)('lease store of $name', ({ name, url, host: on }) => {
  async function setUp(settings: HostSettings = {}) {
    const admin = on();
    const tables = newTables(admin);
    await admin.migrate(tables);
    const host = on(settings);
    return { table: `${tables}_leases`, admin, host, store: leasesOn(host, tables) };
  }

  describe.skipIf(url === undefined)('with default settings', () => {
    it.each(leaseContract)('$name', (promise) => promise.run(async () => (await setUp()).store));
  });

  describe.skipIf(url === undefined)('with unusual settings of the host', () => {
    it.each(leaseContract)('$name', (promise) =>
      promise.run(async () => (await setUp({ isContrary: true, isolation: 'serializable' })).store),
    );
  });

  describe.skipIf(url === undefined)('take', () => {
    it('uses one row for a total, and two rows for all windows of a rate', async () => {
      const { table, store, admin } = await setUp();
      await store.take([want()]);
      for (const window of [1000, 1001, 1002, 1003, 1004, 1005]) {
        expect(await store.take([want({ key: 'rate', window, want: 7 })])).toEqual([7]);
        // Ends the window.
        await admin.run(`UPDATE ${table} SET ends_at = 1000 WHERE lease_key = 'rate'`);
      }

      const rows = await admin.run(`SELECT period FROM ${table} ORDER BY lease_key, slot`);
      expect(rows.map(({ period }) => Number(period))).toEqual([1004, 1005, 0]);
    });

    it('grants nothing in a window that was replaced or that is too early', async () => {
      const { table, store, admin } = await setUp();
      const take = async (window: number) => (await store.take([want({ window, want: 7 })]))[0];
      expect(await take(1002)).toBe(7);
      // Another process may still be in the window before.
      expect([await take(1001), await take(1003)]).toEqual([7, 0]);
      expect([await take(1000), await take(1004)]).toEqual([0, 0]);
      await admin.run(`UPDATE ${table} SET ends_at = 1000 WHERE period = 1002`);
      expect(await take(1004)).toBe(7);
      expect([await take(1002), await take(1004)]).toEqual([0, 3]);
    });

    it('keeps the row of the current window for it, and grants nothing of a later one', async () => {
      const { store } = await setUp();
      const today = windowOf(Date.now(), DAY);
      const take = async (window: number) => {
        const [start, until] = [windowStart(window, DAY), windowStart(window + 1, DAY)];
        const dates = { start: new Date(start), until: new Date(until) };
        return (await store.take([want({ window, ...dates, want: 7 })]))[0];
      };

      expect(await take(today + 2)).toBe(0);
      expect(await take(today + 1)).toBe(0);
      expect(await take(today)).toBe(7);
    });

    it('uses the clock of the server', async () => {
      const { store } = await setUp();
      const at = (ms: number) => want({ key: `at${ms}`, until: new Date(Date.now() + ms) });
      expect(await store.take([at(-2000), at(-60_000), at(30_000)])).toEqual([0, 0, 1]);
      const from = (ms: number) => want({ key: `from${ms}`, start: new Date(Date.now() + ms) });
      expect(await store.take([from(2000), from(60_000), from(-30_000)])).toEqual([0, 0, 1]);
    });

    it('sends no statement for an empty list', async () => {
      const { store, host } = await setUp();
      await store.take([]);
      await store.giveBack([]);
      expect(host.sent).toEqual([]);
    });

    it.each([
      { key: '' },
      { key: 'x'.repeat(65) },
      { key: 'kéy' },
      { limit: 2 ** 53 },
      { want: 0.5 },
      { want: -1 },
      { window: Number.NaN },
      { until: new Date(Number.NaN) },
      { start: new Date(Number.NaN) },
    ])('refuses %j and grants nothing in the same call', async (broken) => {
      const { store } = await setUp();
      const taking = store.take([want({ want: 10 }), want(broken)]);

      expect(await codeOf(taking)).toBe('invalid_request');
      expect(await store.take([want({ want: 10 })])).toEqual([10]);
    });

    it('rejects if the server is read-only', async () => {
      const { store } = await setUp({ isReadOnly: true });
      const { code } = await refusalOf(store.take([want()]));
      expect(code).toBe('store_unavailable');
    });
  });

  it.skipIf(url === undefined)('names migrate in its error if the table is missing', async () => {
    const { admin, table, store } = await setUp();
    await admin.run(`DROP TABLE ${table}`);
    const { code, details } = await refusalOf(store.take([want()]));
    expect(code).toBe('store_unavailable');
    expect(details).toEqual({ reason: 'schema_missing', store: 'leases' });
  });

  describe.skipIf(url === undefined || name === 'MariaDB')('in one statement', () => {
    it('takes or gives back many leases', async () => {
      const { host, store } = await setUp();
      const wants = Array.from({ length: 500 }, (_, index) => want({ key: `k${index}` }));
      await store.take(wants);
      await store.giveBack(wants.map(({ key }) => ({ key, window: 0, amount: 1 })));
      expect(host.sent).toHaveLength(2);
    });

    it('sets synchronous_commit when it grants, even if the host turned it off', async () => {
      const { host, store } = await setUp({ isContrary: true });
      await store.take([want()]);
      expect(host.sent.at(-1)).toContain("set_config('synchronous_commit'");
    });
  });
});

describe.each(ENGINES)('eight processes that share a limit on $name', ({ isMissing, newPlace }) => {
  it.skipIf(isMissing)('spend exactly that limit', { timeout: 120_000 }, async () => {
    const place = await newPlace();
    const limit = 2000;
    const job = JSON.stringify({ place, key: KEY, limit, callers: 8 });
    const script = join(import.meta.dirname, 'taking-process.ts');
    const children = Array.from({ length: 8 }, () => fork(script, [job]));
    onTestFinished(() => {
      for (const child of children) child.kill('SIGKILL');
    });
    await Promise.all(children.map((child) => once(child, 'message')));
    const ends = children.map((child) => once(child, 'message') as Promise<[number]>);
    for (const child of children) child.send('go');
    const spent = (await Promise.all(ends)).map(([count]) => count);

    const total = spent.reduce((sum, count) => sum + count, 0);
    const [rest = 0] = await opened(place).leases.take([want({ limit, want: limit })]);
    // Other processes may have held the rest when the last one found nothing left.
    expect(total).toBeLessThanOrEqual(limit);
    expect(total + rest).toBe(limit);
    expect(spent.filter((count) => count > 0).length).toBeGreaterThan(1);
  });
});
