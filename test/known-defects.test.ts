// Each test would have caught a defect that this kind of software is known for.
import { randomBytes } from 'node:crypto';
import { createPool } from 'mysql2';
import pg from 'pg';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { bearerGuard } from '../src/http/index.ts';
import type { TokenStore } from '../src/ports/token-store.ts';
import { ScopeCatalog, ScopeSet } from '../src/scope/index.ts';
import { MemoryTokenStore } from '../src/stores/memory/index.ts';
import * as mysql from '../src/stores/mysql/index.ts';
import * as postgres from '../src/stores/postgres/index.ts';
import { SqliteTokenStore } from '../src/stores/sqlite/index.ts';
import type { TokenId } from '../src/token/record.ts';
import * as http from './http/support.ts';
import { newRecord } from './stores/support.ts';
import { codeOf, OTHER_SCOPE, recordOf, SCOPE, setUp, YEAR } from './support.ts';

const account = 'acme';
const need = { scope: SCOPE };
const cache = { maxStaleMs: 60_000 };

describe('known defects of similar software', () => {
  it('a revoked token is not served from the cache', async () => {
    const { tokens } = setUp({ cache });
    const { id, value } = await tokens.issue({ account, scopes: [SCOPE] });
    expect((await tokens.verify(value, need)).ok).toBe(true);

    await tokens.revoke(account, id);

    expect(await tokens.verify(value, need)).toEqual({ ok: false, reason: 'revoked' });
  });

  it('a read that began before a revocation does not fill the cache after it', async () => {
    const { tokens, store } = setUp({ cache });
    const { id, value } = await tokens.issue({ account, scopes: [SCOPE] });
    let finish = () => {};
    const isFinished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    store.break('find', async (ids: readonly TokenId[]) => {
      const seen = await store.inner.find(ids);
      await isFinished;
      return seen;
    });

    const early = tokens.verify(value, need);
    await new Promise(setImmediate);
    await tokens.revoke(account, id);
    finish();
    await early;
    store.mend();

    expect(await tokens.verify(value, need)).toEqual({ ok: false, reason: 'revoked' });
  });

  it('verify writes nothing, so it cannot undo a revocation', async () => {
    const { tokens, store } = setUp();
    const { id, value } = await tokens.issue({ account, scopes: [SCOPE] });
    store.break('find', async (ids: readonly TokenId[]) => {
      const seen = await store.inner.find(ids);
      await store.inner.revoke(id, account, new Date());
      return seen;
    });
    store.takeCalls();

    await tokens.verify(value, need);
    store.mend();

    expect(store.takeCalls()).toEqual(['find']);
    expect(await tokens.verify(value, need)).toEqual({ ok: false, reason: 'revoked' });
  });

  it.each([60, YEAR])(
    'a rotation keeps the expiry of a token that lives for %i s',
    async (ttlSeconds) => {
      const { tokens, clock } = setUp();
      const { id, expiresAt } = await tokens.issue({ account, scopes: [SCOPE], ttlSeconds });
      clock.advance(30);

      const rotated = await tokens.rotate(account, id);

      expect(rotated.expiresAt).toEqual(expiresAt);
      clock.advance(ttlSeconds - 30);
      expect(await tokens.verify(rotated.value, need)).toEqual({ ok: false, reason: 'expired' });
    },
  );

  it('a missing scope is not answered as if the token were unknown', async () => {
    const { tokens } = setUp();
    const guard = bearerGuard({ tokens, domain: 'shop.example' });
    const { value } = await tokens.issue({ account, scopes: [SCOPE] });
    const headers = { authorization: `Bearer ${value}` };

    const outcome = await guard(new Request('http://localhost/items', { headers }));

    expect(outcome).toMatchObject({ ok: false, reason: 'insufficient_scope' });
    expect(outcome.ok || outcome.response.status).toBe(403);
  });

  it.each(['*:shop.example/orders', 'GET:*.example/orders', 'GET:shop.example/*', '*:*/*'])(
    'a wildcard is not compared literally: %s',
    (scope) => {
      const set = ScopeSet.from([scope]);
      const request = { method: 'GET', domain: 'shop.example', target: '/orders/7' };

      expect(set.allows(request).allowed).toBe(true);
      expect(set.allows({ ...request, method: 'get' }).allowed).toBe(false);
    },
  );

  it.for<[string, () => Promise<TokenStore | undefined>]>([
    ['memory', async () => new MemoryTokenStore()],
    ['SQLite', async () => SqliteTokenStore.open(':memory:')],
    ['PostgreSQL', openPostgres],
    ['MySQL', openMysql],
  ])("a collation does not find another account's token: %s", async ([, open], { skip }) => {
    const store = await open();
    if (store === undefined) return skip();
    const record = newRecord('abc', { account: 'ada' });
    await store.insert(record);
    const liveAt = record.createdAt;

    const lookalikes = [
      'ABCxxxxxxxxxxxxxxxxxxx',
      'abcXxxxxxxxxxxxxxxxxxx',
      'ábcxxxxxxxxxxxxxxxxxx',
    ];
    expect(await store.find(lookalikes as TokenId[])).toEqual([undefined, undefined, undefined]);
    for (const other of ['ADA', 'áda', 'ada ', 'Ada']) {
      expect(await store.page({ account: other, limit: 10, liveAt })).toEqual([]);
      expect(await store.revokeAll(other, liveAt, 1000)).toBe(0);
      expect(await store.revoke(record.id, other, liveAt)).toBe(false);
    }
    expect(await store.page({ account: 'ada', limit: 10, liveAt })).toHaveLength(1);
  });

  it.each([new Date(Number.NaN), '2100-01-01', null, undefined, Number.NaN, 4_102_444_800_000])(
    'an unreadable expiry does not keep a token valid: %s',
    async (expiresAt) => {
      const { tokens, store } = setUp();
      const { id, value } = await tokens.issue({ account, scopes: [SCOPE] });
      const record = await recordOf(store.inner, id);
      store.break('find', async () => [{ ...record, expiresAt }]);

      expect(await codeOf(tokens.verify(value, need))).toBe('store_corrupt');
    },
  );

  it('a list reads one page from the store instead of everything', async () => {
    const { tokens, store } = setUp();
    for (let i = 0; i < 50; i++) await tokens.issue({ account, scopes: [SCOPE] });
    store.calls.length = 0;

    const page = await tokens.list({ account, limit: 10 });

    expect(page.tokens).toHaveLength(10);
    expect(store.calls.map(({ method, args }) => [method, args])).toEqual([
      ['page', [expect.objectContaining({ limit: 11 })]],
    ]);
  });

  it.each([86_400_000, 604_800_000, 31_536_000_000])(
    'milliseconds are not accepted as seconds: %i',
    async (ttlSeconds) => {
      const { tokens } = setUp({ lifetime: { maxSeconds: ttlSeconds / 1000 } });

      await expect(tokens.issue({ account, scopes: [SCOPE], ttlSeconds })).rejects.toMatchObject({
        code: 'invalid_ttl',
        message: expect.stringContaining('milliseconds'),
      });
    },
  );

  it.each([
    ['/orders', true],
    ['/orders/', true],
    ['/orders/7', true],
    ['/ordersx', false],
    ['/orders-archive/7', false],
    ['/orders%2f7', false],
  ])(
    'a prefix ends at a segment boundary, so %s is covered by /orders: %s',
    async (target, expected) => {
      const { tokens } = setUp();
      const { value } = await tokens.issue({ account, scopes: [SCOPE] });

      const verdict = await tokens.verify(value, { method: 'GET', domain: 'shop.example', target });

      expect(verdict.ok).toBe(expected);
    },
  );

  it('an empty list of scopes does not mean everything', async () => {
    const { tokens, store } = setUp({ catalog: ScopeCatalog.from([SCOPE]) });
    expect(await codeOf(tokens.issue({ account, scopes: [] }))).toBe('scopes_required');
    const { id, value } = await tokens.issue({ account, scopes: [SCOPE] });
    expect(await codeOf(tokens.patch(account, id, { removeScopes: [SCOPE] }))).toBe(
      'scopes_required',
    );
    const record = await recordOf(store.inner, id);
    store.break('find', async () => [{ ...record, scopes: [] }]);

    expect(ScopeSet.from([]).covers(SCOPE)).toBe(false);
    expect(await codeOf(tokens.verify(value, need))).toBe('store_corrupt');
  });

  it.each(['userId', 'account', 'owner', 'user', 'accountId'])(
    'a member of the body does not choose the account: %s',
    async (member) => {
      const { call, tokens } = http.setUp();
      const json = { scopes: [http.ORDERS], [member]: 'bob' };

      http.expectFailure(await call('POST', '/token', { json }), 'invalid_request');
      http.expectFailure(await call('POST', '/token', { json, as: null }), 'unauthenticated');
      const { tokens: listed } = await tokens.list({ account: 'bob' });
      expect(listed).toEqual([]);
    },
  );

  it('a cached decision does not apply to another scope', async () => {
    const { tokens } = setUp({ cache });
    const { value } = await tokens.issue({ account, scopes: [SCOPE] });

    expect((await tokens.verify(value, need)).ok).toBe(true);
    expect((await tokens.verify(value, { scope: OTHER_SCOPE })).ok).toBe(false);
    expect((await tokens.verify(value, need)).ok).toBe(true);
  });
});

/** Returns `undefined` if there is no such server. */
async function openPostgres(): Promise<TokenStore | undefined> {
  const url = inject('servers').postgres;
  if (url === undefined) return undefined;
  const pool = new pg.Pool({ connectionString: url });
  const tables = newTables();
  await postgres.migrate(pool, { tables });
  onTestFinished(async () => {
    await pool.query(
      `DROP TABLE ${tables}_tokens, ${tables}_usage, ${tables}_leases, ${tables}_requests`,
    );
    await pool.end();
  });
  return new postgres.PostgresTokenStore(pool, { tables });
}

async function openMysql(): Promise<TokenStore | undefined> {
  const url = inject('servers').mariadb;
  if (url === undefined) return undefined;
  const pool = createPool({ uri: url });
  const tables = newTables();
  await mysql.migrate(pool, { tables });
  onTestFinished(async () => {
    await pool
      .promise()
      .query(`DROP TABLE ${tables}_tokens, ${tables}_usage, ${tables}_leases, ${tables}_requests`);
    await pool.promise().end();
  });
  return new mysql.MysqlTokenStore(pool, { tables });
}

function newTables(): string {
  return `defects_${randomBytes(6).toString('hex')}`;
}
