import { afterEach, describe, expect, it, vi } from 'vitest';
import type { EngineStore } from '../../src/ports/engine-store.ts';
import { K1, RecordingStore, SCOPE } from '../support.ts';

const account = 'ada';
/** As a program gets the library: with the timers of the platform, before any are faked. */
async function load() {
  vi.resetModules();
  vi.doUnmock('../../src/time/timers.ts');
  const [main, http, sqlite] = await Promise.all([
    import('../../src/index.ts'),
    import('../../src/http/index.ts'),
    import('../../src/stores/sqlite/index.ts'),
  ]);
  return { ...main, ...http, ...sqlite };
}

type Library = Awaited<ReturnType<typeof load>>;

const STORES: readonly [string, (library: Library) => EngineStore][] = [
  ['memory', ({ MemoryTokenStore }) => new MemoryTokenStore()],
  ['sqlite', ({ SqliteTokenStore }) => SqliteTokenStore.open(':memory:')],
];

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Fakes that a test moves; nobody moves these. */
const fake = () => vi.useFakeTimers();

describe('under fake timers', () => {
  it.each(STORES)('each method of a service over a %s store settles', async (_name, open) => {
    const library = await load();
    const tokens = new library.TokenService({
      keys: [K1],
      prefix: 'acme',
      store: open(library),
      usage: true,
      limits: true,
    });
    fake();

    const issued = await tokens.issue({ account, scopes: [SCOPE], ttlSeconds: 900 });
    const { id, value } = issued;
    const limits = { uses: 9, rate: { uses: 5, seconds: 60 } };
    const limited = await tokens.issue({ account, scopes: [SCOPE], limits });
    const child = await tokens.derive(value, { scopes: [SCOPE], ttlSeconds: 60 });
    expect(await tokens.verify(value, { scope: SCOPE })).toMatchObject({ ok: true });
    expect(await tokens.verify(child.value, { scope: SCOPE })).toMatchObject({ ok: true });
    expect(await tokens.verify(limited.value, { scope: SCOPE })).toMatchObject({ ok: true });
    expect(await tokens.get(account, id)).toMatchObject({ id });
    expect((await tokens.list({ account })).tokens).toHaveLength(3);
    await tokens.patch(account, id, { name: 'new' });
    await tokens.modify(account, id, { scopes: [SCOPE], expiresAt: issued.expiresAt });
    expect(await tokens.usage(account, id)).toMatchObject({ uses: 1, derived: { uses: 1 } });
    expect(await tokens.introspect(value)).toMatchObject({ id });
    const rotated = await tokens.rotate(account, id);
    expect(await tokens.verify(rotated?.value ?? '', { scope: SCOPE })).toMatchObject({ ok: true });
    await tokens.revoke(account, id);
    await tokens.revokeAll(account);
    await tokens.purge({ before: new Date(0) });
    await tokens.close();
  });

  it('the guard and the handler answer, also if they have to send a refusal', async () => {
    const library = await load();
    const store = new library.MemoryTokenStore();
    const tokens = new library.TokenService({ keys: [K1], prefix: 'acme', store });
    const authenticate = library.fixedAccounts([
      { username: account, password: 'correct horse battery staple' },
    ]);
    const handler = library.tokenHandler({ tokens, authenticate });
    const guard = library.bearerGuard({ tokens, domain: 'shop.example' });
    fake();

    const authorization = `Basic ${btoa('ada:correct horse battery staple')}`;
    const body = JSON.stringify({ scopes: [SCOPE], ttl: 60 });
    const headers = { authorization, 'content-type': 'application/json' };
    const url = 'http://tokens.example/token';
    const answer = await handler(new Request(url, { method: 'POST', headers, body }));
    expect(answer.status).toBe(200);
    const [, token] = /"token":"([^"]+)"/.exec(await answer.text()) ?? [];
    const request = { method: 'GET', url: '/orders' };
    const bearer = `Bearer ${token}`;
    expect(await guard({ ...request, headers: { authorization: bearer } })).toMatchObject({
      ok: true,
    });
    expect(await guard({ ...request, headers: {} })).toMatchObject({ reason: 'missing' });
  });

  it('a wait of the library ends, and an outage is reported within its deadline', async () => {
    const library = await load();
    const store = new RecordingStore(new library.MemoryTokenStore(), { local: false });
    const tokens = new library.TokenService({ keys: [K1], prefix: 'acme', store, deadlineMs: 20 });
    const { value } = await tokens.issue({ account, scopes: [SCOPE] });
    store.break('find', () => new Promise(() => {}));
    fake();

    await expect(tokens.verify(value, { scope: SCOPE })).rejects.toMatchObject({
      code: 'store_unavailable',
    });
  });

  it('the timers that Jest fakes beyond those are kept as well', async () => {
    const { nextTick } = process;
    const { queueMicrotask } = globalThis;
    await load();
    const timers = await import('../../src/time/timers.ts');

    expect([timers.nextTick, timers.queueMicrotask]).toEqual([nextTick, queueMicrotask]);
  });

  it('a control: a deadline that looks the timer up never ends', async () => {
    vi.resetModules();
    vi.doMock('../../src/time/timers.ts', () => import('../live-timers.ts'));
    const { withDeadline } = await import('../../src/time/deadline.ts');
    const realSetTimeout = globalThis.setTimeout;
    fake();

    const ends = withDeadline(new Promise(() => {}), 1).catch(() => 'ended');
    const wait = new Promise((resolve) => realSetTimeout(() => resolve('waiting'), 50));
    expect(await Promise.race([ends, wait])).toBe('waiting');
  });
});
