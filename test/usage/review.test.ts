import { describe, expect, it } from 'vitest';
import type { ReviewInput } from '../../src/inputs/types.ts';
import { ScopeCatalog } from '../../src/scope/index.ts';
import type { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import type { IssuedToken, TokenRecord } from '../../src/token/record.ts';
import type { TokenFinding } from '../../src/usage/findings.ts';
import {
  allOf,
  expectNoSecret,
  OTHER_SCOPE,
  recordOf,
  refusalOf,
  SCOPE,
  setUp,
} from '../support.ts';
import { setUpUsage, verifyTimes } from './support.ts';

const DAY = 86_400;

async function findingsOf(tokens: TokenService, input?: ReviewInput): Promise<TokenFinding[]> {
  return allOf(tokens.review(input));
}

async function codesOf(tokens: TokenService, input?: ReviewInput): Promise<string[]> {
  return (await findingsOf(tokens, input)).map(({ code }) => code);
}

describe('review', () => {
  it('finds nothing about a token that is new and narrow', async () => {
    const { tokens, clock } = await setUpUsage();
    clock.advance(90 * DAY - 1);

    expect(await findingsOf(tokens)).toEqual([]);
  });

  it('finds a token that was never used, once it is 90 days old', async () => {
    const { tokens, token, clock } = await setUpUsage();
    clock.advance(90 * DAY);
    const { value: _, ...shown } = token;

    expect(await findingsOf(tokens)).toEqual([
      {
        code: 'never_used',
        token: shown,
        scopes: token.scopes,
        since: token.createdAt,
        message: expect.stringMatching(/^was not used since 2100-01-01, when counting/),
      },
    ]);
  });

  it('finds a token whose last use is more than 90 days ago', async () => {
    const setting = await setUpUsage();
    const { tokens, clock } = setting;
    await verifyTimes(setting, 2, SCOPE);
    await verifyTimes(setting, 1, OTHER_SCOPE);
    const lastUsedAt = clock.now();
    clock.advance(90 * DAY);
    expect(await codesOf(tokens)).toEqual([]);
    clock.advance(1);

    const [finding, ...others] = await findingsOf(tokens);
    expect(others).toEqual([]);
    expect(finding).toMatchObject({ code: 'unused', lastUsedAt, token: { uses: 3, lastUsedAt } });
    expect(finding?.message).toBe('was last used 90 days ago; revoke it if nobody needs it');
  });

  it('counts a token as unused after unusedForDays', async () => {
    const { tokens, clock } = await setUpUsage();
    clock.advance(10 * DAY);

    expect(await codesOf(tokens, { unusedForDays: 10 })).toEqual(['never_used']);
    expect(await codesOf(tokens, { unusedForDays: 11 })).toEqual([]);
  });

  it('finds no unused token until the store has counted for the whole period', async () => {
    const { tokens, clock, usage } = await setUpUsage();
    const since = new Date(clock.now().getTime() + 10 * DAY * 1000);
    Object.assign(usage, { since: async () => since });
    clock.advance(100 * DAY - 1);
    expect(await codesOf(tokens)).toEqual([]);
    clock.advance(1);

    expect(await findingsOf(tokens)).toMatchObject([{ code: 'never_used', since }]);
  });

  it('finds a token with more than half of its scopes unused', async () => {
    const { tokens, clock } = await setUpUsage();
    const paths = ['a', 'b', 'c', 'd'];
    const scopes = paths.map((path) => `GET:shop.example/${path}`);
    const token = await tokens.issue({ account: 'half', scopes });
    clock.advance(91 * DAY);
    await verifyTimes({ tokens, token }, 1, scopes[0]);
    expect(await findingsOf(tokens, { account: 'half' })).toMatchObject([
      { code: 'excess', scopes: scopes.slice(1), since: token.createdAt },
    ]);
    await verifyTimes({ tokens, token }, 1, scopes[1]);

    expect(await codesOf(tokens, { account: 'half' })).toEqual([]);
  });

  it('names unused scopes by their summaries, if the catalog has any', async () => {
    const paths = ['a', 'b', 'c', 'd', 'e', 'f'];
    const worded = (path: string) => ({
      scope: `GET:shop.example/${path}$`,
      summary: `List ${path}`,
    });
    const messageIn = async (entries: Parameters<typeof ScopeCatalog.from>[0]) => {
      const catalog = ScopeCatalog.from(entries);
      const { tokens, clock } = setUp({ catalog, usage: true });
      const token = await tokens.issue({ account: 'acme', scopes: catalog.toArray() });
      clock.advance(91 * DAY);
      await verifyTimes({ tokens, token }, 1, token.scopes[0]);
      const found = await findingsOf(tokens);
      return found.find(({ code }) => code === 'excess')?.message;
    };

    expect(await messageIn(paths.map(worded))).toBe(
      'does not use 5 of its 6 scopes (List b, List c, List d and 2 more); remove them with removeScopes',
    );
    expect(await messageIn(paths.map((path) => worded(path).scope))).toBe(
      'does not use 5 of its 6 scopes; remove them with removeScopes',
    );
  });

  it.each<[string, boolean]>([
    ['*:shop.example/orders', true],
    ['GET:shop.example/*', true],
    ['*:*/*', true],
    ['GET:*.shop.example/*', true],
    ['GET:shop.example/$', false],
    ['GET:shop.example/{}', false],
    ['GET:*/orders', false],
  ])('finds that the scope %s is broad: %s', async (scope, isBroad) => {
    const { tokens } = setUp();
    await tokens.issue({ account: 'acme', scopes: [scope, SCOPE] });
    const found = await findingsOf(tokens);

    expect(found.map(({ code, scopes }) => ({ code, scopes }))).toEqual(
      isBroad ? [{ code: 'broad', scopes: [scope] }] : [],
    );
  });

  it('finds a token that covers more than half of the catalog', async () => {
    const entries = ['a', 'a/x', 'b', 'c'].map((path) => `GET:shop.example/${path}`);
    const { tokens } = setUp({ catalog: ScopeCatalog.from(entries) });
    const [a = '', , b = '', c = ''] = entries;
    await tokens.issue({ account: 'half', scopes: [b, c] });
    // The first entry covers the second one, too.
    const most = await tokens.issue({ account: 'most', scopes: [a, b] });
    await tokens.issue({ account: 'open', scopes: [a] });

    expect(await findingsOf(tokens)).toMatchObject([
      {
        code: 'broad',
        reasons: ['most_of_catalog'],
        covered: 3,
        entries: 4,
        token: { id: most.id },
        scopes: most.scopes,
        message: expect.stringContaining('(3 of 4 entries)'),
      },
    ]);
  });

  it('does not call the only entry of a catalog broad', async () => {
    const { tokens } = setUp({ catalog: ScopeCatalog.from([SCOPE]) });
    await tokens.issue({ account: 'acme', scopes: [SCOPE] });

    expect(await findingsOf(tokens)).toEqual([]);
  });

  it('finds a token that expires soon and is in use', async () => {
    const setting = await setUpUsage();
    const { tokens, clock } = setting;
    const ttlSeconds = 60 * DAY;
    const token = await tokens.issue({ account: 'soon', scopes: [SCOPE], ttlSeconds });
    await verifyTimes({ tokens, token }, 1);
    const lastUsedAt = clock.now();
    clock.advance(30 * DAY);
    const soon = (expiringWithinDays?: number) =>
      findingsOf(tokens, { account: 'soon', ...(expiringWithinDays && { expiringWithinDays }) });
    expect(await soon()).toEqual([]);
    expect(await soon(30)).toMatchObject([{ code: 'expiring', lastUsedAt }]);
    expect(await soon(29)).toEqual([]);
    clock.advance(1);
    expect(await soon(30)).toEqual([]);
    await verifyTimes({ tokens, token }, 1);
    clock.advance(16 * DAY);

    expect(await soon()).toMatchObject([{ code: 'expiring' }]);
  });

  it('finds a value that is old, counted from the last rotation', async () => {
    const { tokens, clock, store } = setUp();
    const token = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    clock.advance(180 * DAY);
    expect(await findingsOf(tokens)).toEqual([]);
    clock.advance(1);
    const [finding] = await findingsOf(tokens);
    expect(finding).toMatchObject({ code: 'stale_secret', secretSince: token.createdAt });
    expect(await codesOf(tokens, { secretOlderThanDays: 181 })).toEqual([]);
    const record = await recordOf(store, token.id);
    const rotatedAt = clock.now();
    await store.replace({ ...record, rotatedAt, version: 2 } satisfies TokenRecord);

    expect(await findingsOf(tokens)).toEqual([]);
  });

  it('finds scopes that the catalog no longer has', async () => {
    let entries = [SCOPE, OTHER_SCOPE];
    const { tokens } = setUp({ catalog: () => ScopeCatalog.from(entries) });
    await tokens.issue({ account: 'acme', scopes: [SCOPE, OTHER_SCOPE] });
    expect(await codesOf(tokens)).toEqual(['broad']);
    entries = [SCOPE, 'GET:shop.example/a', 'GET:shop.example/b'];

    expect(await findingsOf(tokens)).toMatchObject([
      { code: 'orphaned_scope', scopes: [OTHER_SCOPE], message: expect.stringContaining('1 of 2') },
    ]);
  });

  it('goes on without the catalog of an account if it fails', async () => {
    const entries = [SCOPE, OTHER_SCOPE, 'GET:shop.example/a', 'GET:shop.example/b'];
    const asked: string[] = [];
    let isClosed = false;
    const catalog = (account: string) => {
      asked.push(account);
      if (isClosed && account === 'closed') throw new Error('no such account');
      return ScopeCatalog.from(isClosed ? entries.slice(1) : entries);
    };
    const { tokens, clock } = setUp({ catalog });
    for (const account of ['closed', 'open']) await tokens.issue({ account, scopes: [SCOPE] });
    isClosed = true;
    clock.advance(181 * DAY);
    const found = await findingsOf(tokens);

    expect(found.map(({ code, token }) => `${token.account} ${code}`).sort()).toEqual([
      'closed stale_secret',
      'open orphaned_scope',
      'open stale_secret',
    ]);
  });

  it('finds a token that was suspended long ago, and nothing else about it', async () => {
    const { tokens, token, clock, store } = await setUpUsage();
    const suspendedAt = clock.now();
    const record = await recordOf(store, token.id);
    await store.replace({ ...record, suspendedAt, version: 2 } satisfies TokenRecord);
    clock.advance(90 * DAY);
    expect(await findingsOf(tokens)).toEqual([]);
    clock.advance(1);
    expect(await codesOf(tokens, { account: 'acme' })).toEqual(['suspended']);

    expect(await findingsOf(tokens)).toMatchObject([{ code: 'suspended', suspendedAt }]);
  });

  it('has no findings about use if usage is not recorded', async () => {
    const { tokens, clock } = setUp();
    await tokens.issue({ account: 'acme', scopes: [SCOPE, OTHER_SCOPE] });
    clock.advance(179 * DAY);

    expect(await findingsOf(tokens, { expiringWithinDays: 3650 })).toEqual([]);
  });

  it('reviews live tokens only, of all accounts or of one', async () => {
    const { tokens, clock } = await setUpUsage();
    const scopes = [SCOPE];
    const issue = (account: string, days = 300): Promise<IssuedToken> =>
      tokens.issue({ account, scopes, ttlSeconds: days * DAY });
    const [revoked] = await Promise.all([
      issue('one'),
      issue('one'),
      issue('two'),
      issue('one', 90),
    ]);
    await tokens.revoke('one', revoked.id);
    clock.advance(90 * DAY);
    const accounts = async (input?: ReviewInput) =>
      (await findingsOf(tokens, input)).map(({ token }) => token.account).sort();

    expect(await accounts()).toEqual(['acme', 'one', 'two']);
    expect(await accounts({ account: 'one' })).toEqual(['one']);
    expect(await accounts({ account: 'nobody' })).toEqual([]);
  });

  it('reads usage once per hundred tokens, and reports no token twice', async () => {
    const { tokens, usage, clock } = await setUpUsage();
    for (let index = 0; index < 249; index += 1) {
      await tokens.issue({ account: `n${index % 7}`, scopes: [SCOPE] });
    }
    clock.advance(90 * DAY);
    const found = await findingsOf(tokens);

    expect(new Set(found.map(({ token }) => token.id)).size).toBe(250);
    expect(found).toHaveLength(250);
    expect(usage.count('read')).toBe(3);
  });

  it('pages through the tokens of one account', async () => {
    const { tokens, usage, clock } = await setUpUsage();
    for (let index = 0; index < 204; index += 1) {
      await tokens.issue({ account: 'many', scopes: [SCOPE] });
    }
    clock.advance(90 * DAY);
    const found = await findingsOf(tokens, { account: 'many' });

    expect(new Set(found.map(({ token }) => token.id)).size).toBe(204);
    expect(usage.count('read')).toBe(3);
  });

  it('reads the next batch only when the loop gets there', async () => {
    const { tokens, store, clock } = await setUpUsage();
    for (let index = 0; index < 250; index += 1) {
      await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    }
    clock.advance(90 * DAY);
    store.takeCalls();
    for await (const { code } of tokens.review()) {
      expect(code).toBe('never_used');
      break;
    }

    expect(store.takeCalls()).toEqual(['scan']);
  });

  it('never shows a value, and changes nothing', async () => {
    const { tokens, token, store, events, clock } = await setUpUsage({ reveal: 'always' });
    clock.advance(200 * DAY);
    store.takeCalls();
    events.length = 0;
    const found = await findingsOf(tokens);

    expect(found).toHaveLength(2);
    expectNoSecret(found, token.value);
    expect(store.takeCalls()).toEqual(['scan']);
    expect(events).toEqual([]);
    expect(found.every(Object.isFrozen)).toBe(true);
  });

  it.each<[ReviewInput, string]>([
    [{ unusedForDays: 0 }, 'unusedForDays'],
    [{ expiringWithinDays: 3651 }, 'expiringWithinDays'],
    [{ secretOlderThanDays: 1.5 }, 'secretOlderThanDays'],
    [{ account: '' }, 'account'],
    [{ olderThan: 3 } as ReviewInput, 'olderThan'],
  ])('refuses the input %j', async (input, member) => {
    const { code, message } = await refusalOf(findingsOf(setUp().tokens, input));

    expect(code).toBe('invalid_request');
    expect(message).toContain(member);
  });

  it('fails with store_unavailable while the usage store is down', async () => {
    const { tokens, usage } = await setUpUsage();
    usage.break(() => Promise.reject(new Error('down')));

    expect((await refusalOf(findingsOf(tokens))).code).toBe('store_unavailable');
  });
});

describe('scan', () => {
  it('yields the tokens of all accounts and states, without values', async () => {
    const { tokens, clock } = setUp({ reveal: 'always' });
    const issue = (account: string, ttlSeconds = 3600) =>
      tokens.issue({ account, scopes: [SCOPE], ttlSeconds });
    const issued = [await issue('one'), await issue('two'), await issue('one', 60)];
    const revoked = await issue('two');
    await tokens.revoke('two', revoked.id);
    clock.advance(60);
    const scanned = await allOf(tokens.scan());

    expect(new Map(scanned.map(({ id, state }) => [id, state]))).toEqual(
      new Map([
        [issued[0]?.id, 'active'],
        [issued[1]?.id, 'active'],
        [issued[2]?.id, 'expired'],
        [revoked.id, 'revoked'],
      ]),
    );
    expectNoSecret(scanned, ...issued.map(({ value }) => value));
  });

  it('reads a hundred records at a time', async () => {
    const { tokens, store } = setUp();
    for (let index = 0; index < 250; index += 1) {
      await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    }
    store.takeCalls();
    expect(await allOf(tokens.scan())).toHaveLength(250);

    expect(store.calls.map(({ args }) => (args[0] as { limit: number }).limit)).toEqual([
      100, 100, 100,
    ]);
  });

  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['no records', {}],
    ['malformed records', { records: [42] }],
    ['a position that is not a string', { records: [], next: 7 }],
  ])('fails with store_corrupt if the store returns %s', async (_, answer) => {
    const { tokens, store } = setUp();
    store.break('scan', async () => answer);

    expect((await refusalOf(allOf(tokens.scan()))).code).toBe('store_corrupt');
  });

  it.each<[string, (tokens: TokenService) => Promise<unknown>]>([
    ['scan', (tokens) => allOf(tokens.scan())],
    ['review', (tokens) => findingsOf(tokens)],
    ['reseal', (tokens) => tokens.reseal()],
  ])('is needed by %s, which otherwise fails with invalid_options', async (_, call) => {
    const inner = new MemoryTokenStore();
    Object.assign(inner, { scan: undefined });
    const { tokens } = setUp({ store: inner, usage: true });
    const { code, message } = await refusalOf(call(tokens));

    expect(code).toBe('invalid_options');
    expect(message).toContain('has no scan');
  });

  it('is not needed to review one account', async () => {
    const inner = new MemoryTokenStore();
    Object.assign(inner, { scan: undefined });
    const { tokens } = setUp({ store: inner });

    expect(await findingsOf(tokens, { account: 'acme' })).toEqual([]);
  });
});
