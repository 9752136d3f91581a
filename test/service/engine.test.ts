import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { generateKey, MemoryTokenStore, type TokenEvent, TokenService } from '../../src/index.ts';
import type { EngineStore } from '../../src/ports/engine-store.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { RecordingStore, refusalOf, SCOPE } from '../support.ts';

const options = { keys: [generateKey()], prefix: 'acme' };
const need = { scope: SCOPE };
const grant = { account: 'ada', scopes: [SCOPE] };

/** A store with tokens only. */
function plainStore() {
  const { insert, count, find, page, replace, revoke, revokeAll, purge, prune } =
    new RecordingStore();
  return { insert, count, find, page, replace, revoke, revokeAll, purge, prune };
}

describe('the parts of a store', () => {
  it('count uses and limits if the options say true', async () => {
    const store = new MemoryTokenStore();
    const tokens = new TokenService({ ...options, store, usage: true, limits: true });
    const { id, value } = await tokens.issue({ ...grant, limits: { uses: 1 } });
    expect((await tokens.verify(value, need)).ok).toBe(true);
    expect((await tokens.verify(value, need)).ok).toBe(false);
    await tokens.close();

    expect(await store.usage.read([id])).toMatchObject([{ scopes: [{ scope: SCOPE, uses: 1 }] }]);
  });

  it('are taken if only flushMs is given, and not if the options say false', () => {
    const store = new MemoryTokenStore();
    const service = (usage: boolean | object) =>
      new TokenService({ ...options, store, usage, limits: false });

    expect(service({ flushMs: 100 }).recordsUsage).toBe(true);
    expect(service(false).recordsUsage).toBe(false);
  });

  it('are not taken if another store is given', async () => {
    const [store, other] = [new MemoryTokenStore(), new MemoryTokenStore()];
    const usage = { store: other.usage };
    const tokens = new TokenService({ ...options, store, usage });
    const { id, value } = await tokens.issue(grant);
    await tokens.verify(value, need);
    await tokens.close();

    expect(await store.usage.read([id])).toEqual([undefined]);
    expect(await other.usage.read([id])).not.toEqual([undefined]);
  });

  it.each([
    ['usage: true', { usage: true }, 'this store keeps no counts: give usage: { store }'],
    ['usage: {}', { usage: {} }, 'this store keeps no counts: give usage: { store }'],
    ['limits: true', { limits: true }, 'this store keeps no counts: give limits: { store }'],
  ])('are missing in a store of tokens only: refuses %s', async (_, asked, message) => {
    const store = plainStore();
    expect(new TokenService({ ...options, store })).toBeDefined();

    const make = () => new TokenService({ ...options, store, ...(asked as object) });
    expect(await refusalOf(make)).toMatchObject({ code: 'invalid_options', message });
  });

  it('are each closed once with the service', async () => {
    const closed: string[] = [];
    const closing = <Store extends object>(store: Store, name: string): Store =>
      Object.assign(store, { close: async () => void closed.push(name) });
    const engine = (name: string): EngineStore => {
      const store = new MemoryTokenStore();
      closing(store.usage, `${name}.usage`);
      closing(store.leases, `${name}.leases`);
      return closing(store, name);
    };
    const [own, other] = [engine('own'), engine('other')];
    await new TokenService({ ...options, store: own, usage: true, limits: true }).close();
    // The store closes its parts itself.
    expect(closed.splice(0)).toEqual(['own']);

    const parts = { usage: { store: other.usage }, limits: { store: other.leases } };
    await new TokenService({ ...options, store: own, ...parts }).close();
    expect(closed.sort()).toEqual(['other.leases', 'other.usage', 'own']);
  });
});

describe('a service in a transaction', () => {
  function setUp() {
    const handle = new DatabaseSync(':memory:');
    const leases = new DatabaseSync(':memory:');
    onTestFinished(() => handle.close());
    onTestFinished(() => leases.close());
    const events: TokenEvent[] = [];
    const tokens = new TokenService({
      ...options,
      store: SqliteTokenStore.open({ tokens: handle, leases }),
      limits: true,
      cache: { maxStaleMs: 60_000 },
      onEvent: (event) => events.push(event),
    });
    return { handle, tokens, events };
  }

  it('stores what is committed', async () => {
    const { handle, tokens, events } = setUp();
    handle.exec('BEGIN');
    const { id, value } = await tokens.in(handle).issue(grant);
    handle.exec('COMMIT');

    expect((await tokens.verify(value, need)).ok).toBe(true);
    expect(events).toMatchObject([
      { type: 'issued', id, inTransaction: true },
      { type: 'verified', id },
    ]);
    expect(events[1]).not.toHaveProperty('inTransaction');
  });

  it('leaves nothing after a rollback, but gives no use back', async () => {
    const { handle, tokens } = setUp();
    const limited = await tokens.issue({ ...grant, limits: { uses: 1 } });
    handle.exec('BEGIN');
    const inside = tokens.in(handle);
    const { id } = await inside.issue(grant);
    expect(await inside.get('ada', id)).toMatchObject({ id });
    expect((await inside.verify(limited.value, need)).ok).toBe(true);
    handle.exec('ROLLBACK');

    expect(await tokens.get('ada', id)).toBeUndefined();
    expect(await tokens.verify(limited.value, need)).toMatchObject({ reason: 'limit_exceeded' });
  });

  it('refuses all calls after a write that failed', async () => {
    const { handle, tokens } = setUp();
    handle.exec('BEGIN');
    const inside = tokens.in(handle);
    handle.exec(`CREATE TRIGGER refused BEFORE INSERT ON tokens
      BEGIN SELECT RAISE(ROLLBACK, 'refused'); END`);
    expect((await refusalOf(inside.issue(grant))).code).toBe('store_unavailable');

    expect(handle.isTransaction).toBe(false);
    expect((await refusalOf(inside.issue(grant))).code).toBe('store_unavailable');
    expect((await tokens.issue(grant)).account).toBe('ada');
  });

  it('closes nothing, and has no upkeep and no transaction of its own', async () => {
    const { handle, tokens } = setUp();
    const inside = tokens.in(handle);
    await inside.close();

    expect((await tokens.issue(grant)).account).toBe('ada');
    expect((await refusalOf(() => inside.upkeep())).code).toBe('invalid_request');
    expect((await refusalOf(() => inside.in(handle))).code).toBe('invalid_options');
  });

  it('is refused on something that is not a connection, and by a store that knows none', async () => {
    const { tokens } = setUp();
    const inMemory = new TokenService({ ...options, store: new MemoryTokenStore() });

    expect((await refusalOf(() => tokens.in({}))).code).toBe('invalid_options');
    expect((await refusalOf(() => inMemory.in({}))).code).toBe('invalid_options');
  });
});
