import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ListInput } from '../../src/inputs/types.ts';
import type { PageQuery, PurgeQuery } from '../../src/ports/token-store.ts';
import type { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import type { Token, TokenId } from '../../src/token/record.ts';
import { newRecord } from '../stores/support.ts';
import {
  allOf,
  codeOf,
  K1,
  K2,
  OTHER_SCOPE,
  RecordingStore,
  recordOf,
  SCOPE,
  setUp,
} from '../support.ts';

async function issueMany(tokens: TokenService, count: number, account = 'acme'): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push((await tokens.issue({ account, scopes: [SCOPE] })).id);
  return ids;
}

async function listAll(tokens: TokenService, input: ListInput): Promise<Token[]> {
  const found: Token[] = [];
  let cursor: string | undefined;
  do {
    const page = await tokens.list({ ...input, ...(cursor !== undefined && { cursor }) });
    found.push(...page.tokens);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

const idsOf = (tokens: readonly Token[]): string[] => tokens.map(({ id }) => id);

/** How many records the store was asked for, page by page. */
const limitsOf = (store: RecordingStore): number[] =>
  store.calls.splice(0).map(({ args: [query] }) => (query as PageQuery).limit);

describe('list', () => {
  it('sorts by the newest first, then by the greatest id', async () => {
    const { clock, tokens } = setUp();
    const old = await issueMany(tokens, 5);
    clock.advance(0.001);
    const young = await issueMany(tokens, 5);

    const { tokens: page, cursor } = await tokens.list({ account: 'acme' });

    expect(idsOf(page)).toEqual([...young.sort().reverse(), ...old.sort().reverse()]);
    expect(cursor).toBeUndefined();
  });

  it('shows only active tokens, and only those of the account', async () => {
    const { clock, tokens } = setUp();
    const kept = await tokens.issue({ account: 'acme', scopes: [SCOPE], ttlSeconds: 61 });
    await tokens.issue({ account: 'acme', scopes: [SCOPE], ttlSeconds: 60 });
    const revoked = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    await tokens.issue({ account: 'Acme', scopes: [SCOPE] });
    await tokens.issue({ account: 'acme ', scopes: [SCOPE] });
    await tokens.revoke('acme', revoked.id);
    clock.advance(60);

    expect(idsOf((await tokens.list({ account: 'acme' })).tokens)).toEqual([kept.id]);
    expect((await tokens.list({ account: 'nobody' })).tokens).toEqual([]);
  });

  it.each([
    [99, 1, 99],
    [100, 1, 100],
    [101, 2, 100],
  ])('splits %d tokens into %d pages of at most 100', async (count, pages, first) => {
    const { store, tokens } = setUp();
    await issueMany(tokens, count);
    const page = await tokens.list({ account: 'acme' });
    store.takeCalls();

    expect(page.tokens).toHaveLength(first);
    expect(page.cursor === undefined).toBe(pages === 1);
    expect(await listAll(tokens, { account: 'acme' })).toHaveLength(count);
    expect(store.takeCalls()).toHaveLength(pages);
  });

  it.each<[unknown, boolean]>([
    [1, true],
    [1000, true],
    [0, false],
    [1001, false],
    [1.5, false],
    ['10', false],
    [Number.NaN, false],
    [null, false],
  ])('accepts a limit of %o: %s', async (limit, isGood) => {
    const { tokens } = setUp();
    const listed = tokens.list({ account: 'acme', limit } as ListInput);
    if (isGood) expect((await listed).tokens).toEqual([]);
    else expect(await codeOf(listed)).toBe('invalid_request');
  });

  it.each([1, 2, 3, 7])('neither repeats nor loses a token in pages of %d', async (limit) => {
    const { clock, tokens } = setUp();
    for (let i = 0; i < 5; i++) {
      await issueMany(tokens, 3);
      clock.advance(1);
    }
    const all = idsOf((await tokens.list({ account: 'acme' })).tokens);

    expect(idsOf(await listAll(tokens, { account: 'acme', limit }))).toEqual(all);
  });

  it('continues at the cursor if tokens are issued and revoked in between', async () => {
    const { clock, tokens } = setUp();
    const ids: string[] = [];
    for (let i = 0; i < 6; i++) {
      ids.push(...(await issueMany(tokens, 1)));
      clock.advance(1);
    }
    const [first, second, third, fourth, fifth, sixth] = ids as [
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    const page = await tokens.list({ account: 'acme', limit: 2 });
    expect(idsOf(page.tokens)).toEqual([sixth, fifth]);
    // One token before the cursor, the token that the cursor names, and one after it.
    await issueMany(tokens, 1);
    await tokens.revoke('acme', fifth);
    await tokens.revoke('acme', third);

    const rest = await tokens.list({ account: 'acme', cursor: page.cursor });

    expect(idsOf(rest.tokens)).toEqual([fourth, second, first]);
  });

  it('goes through tokens that were made before 1970, as an import can bring them', async () => {
    const store = new MemoryTokenStore();
    const { tokens } = setUp({ store });
    for (const label of ['first', 'second', 'third']) {
      await store.insert(newRecord(label, { createdAt: new Date(-1000) }));
    }

    expect(await listAll(tokens, { account: 'acme', limit: 1 })).toHaveLength(3);
  });

  it('accepts a cursor after the token that it names was purged', async () => {
    const { clock, tokens } = setUp();
    const [first] = await issueMany(tokens, 1);
    clock.advance(1);
    const last = await tokens.issue({ account: 'acme', scopes: [SCOPE], ttlSeconds: 5 });
    const { cursor } = await tokens.list({ account: 'acme', limit: 1 });
    clock.advance(60);
    await tokens.purge({ before: clock.now() });

    expect(await tokens.get('acme', last.id)).toBeUndefined();
    expect(idsOf((await tokens.list({ account: 'acme', cursor })).tokens)).toEqual([first]);
  });
});

describe('a cursor', () => {
  async function cursorFor(input: Partial<ListInput> = {}) {
    const setting = setUp();
    await issueMany(setting.tokens, 3);
    const { cursor = '' } = await setting.tokens.list({ account: 'acme', limit: 1, ...input });
    return { ...setting, cursor };
  }

  it.each<[string, Partial<ListInput>, Partial<ListInput>, boolean]>([
    ['the same list', {}, {}, true],
    ['another limit', {}, { limit: 2 }, true],
    ['another account', {}, { account: 'acmf' }, false],
    ['an added filter', {}, { scope: SCOPE }, false],
    ['the same filter', { scope: SCOPE }, { scope: SCOPE }, true],
    [
      'the same filter in another spelling',
      { scope: SCOPE },
      { scope: 'GET:SHOP.example/orders' },
      true,
    ],
    ['another filter', { scope: SCOPE }, { scope: 'GET:*/*' }, false],
    ['a removed filter', { scope: SCOPE }, {}, false],
    ['the default match', { scope: SCOPE }, { scope: SCOPE, match: 'overlaps' }, true],
    ['another match', { scope: SCOPE }, { scope: SCOPE, match: 'covers' }, false],
    ['the default state', {}, { state: 'active' }, true],
    ['another state', {}, { state: 'all' }, false],
    ['the same state', { state: 'all' }, { state: 'all' }, true],
    ['a removed state', { state: 'all' }, {}, false],
    ['an added name', {}, { name: 'ci' }, false],
  ])('is valid for %s: $3', async (_, made, used, isGood) => {
    const { tokens, cursor } = await cursorFor(made);
    expect(cursor).not.toBe('');
    const listed = tokens.list({ account: 'acme', ...used, cursor });

    if (isGood) expect((await listed).tokens.length).toBeGreaterThan(0);
    else expect(await codeOf(listed)).toBe('invalid_request');
  });

  it('is refused if any of its characters is changed', async () => {
    const { tokens, cursor, store } = await cursorFor();
    const genuine = Buffer.from(cursor, 'base64url').toString('latin1');
    store.takeCalls();
    for (let index = 0; index < genuine.length; index++) {
      const replaced = genuine[index] === '1' ? '2' : '1';
      const text = genuine.slice(0, index) + replaced + genuine.slice(index + 1);
      const bad = Buffer.from(text, 'latin1').toString('base64url');
      expect(await codeOf(tokens.list({ account: 'acme', cursor: bad }))).toBe('invalid_request');
    }
    expect(store.calls).toEqual([]);
  });

  it.each([
    ['before', (text: string) => `1${text}`],
    ['after', (text: string) => `${text}1`],
    ['before and after', (text: string) => `k1.${text}.k1`],
  ])('is refused with extra text %s it', async (_, around) => {
    const { tokens, cursor } = await cursorFor();
    const genuine = Buffer.from(cursor, 'base64url').toString('latin1');
    const bad = Buffer.from(around(genuine), 'latin1').toString('base64url');

    expect(await codeOf(tokens.list({ account: 'acme', cursor: bad }))).toBe('invalid_request');
    expect((await tokens.list({ account: 'acme', cursor })).tokens).toHaveLength(2);
  });

  it.each<[string, unknown]>([
    ['empty', ''],
    ['nonsense', 'nonsense'],
    ['an id', '0123456789ABCDEFGHIJKL'],
    ['a megabyte', 'A'.repeat(1_000_000)],
    ['not ASCII', 'é…\0'],
    ['a number', 42],
    ['null', null],
    ['a list', ['x']],
  ])('is refused if it is %s', async (_, cursor) => {
    const { tokens } = setUp();
    expect(await codeOf(tokens.list({ account: 'acme', cursor } as ListInput))).toBe(
      'invalid_request',
    );
  });

  it('survives a rotation of keys, but not the removal of its key', async () => {
    const { store, clock, tokens } = setUp();
    await issueMany(tokens, 2);
    const { cursor } = await tokens.list({ account: 'acme', limit: 1 });
    const both = setUp({ store, clock, keys: [K2, { ...K1, status: 'verify' }] });
    const dropped = setUp({ store, clock, keys: [K2] });

    expect((await both.tokens.list({ account: 'acme', cursor })).tokens).toHaveLength(1);
    expect(await codeOf(dropped.tokens.list({ account: 'acme', cursor }))).toBe('invalid_request');
  });
});

describe('list with a scope', () => {
  const HELD = {
    exact: ['GET:shop.example/orders'],
    wider: ['*:shop.example/*'],
    below: ['GET:shop.example/orders/7'],
    beside: ['GET:shop.example/ordersx'],
    post: ['POST:shop.example/orders'],
    every: ['*:*/*'],
  };

  it.each<['overlaps' | 'covers' | 'exact' | undefined, string, string[]]>([
    [undefined, SCOPE, ['exact', 'wider', 'below', 'every']],
    ['overlaps', SCOPE, ['exact', 'wider', 'below', 'every']],
    ['covers', SCOPE, ['exact', 'wider', 'every']],
    ['exact', SCOPE, ['exact']],
    ['exact', 'GET:SHOP.example/orders', ['exact']],
    ['overlaps', '*:*/*', ['exact', 'wider', 'below', 'beside', 'post', 'every']],
    ['covers', '*:*/*', ['every']],
    ['exact', '*:*/*', ['every']],
    ['overlaps', 'GET:*.example/orders', ['exact', 'wider', 'below', 'every']],
    ['covers', 'GET:shop.example/orders/7', ['exact', 'wider', 'below', 'every']],
    ['overlaps', 'GET:other.example/orders', ['every']],
    ['exact', 'GET:other.example/orders', []],
  ])('and match: %s finds for %s the tokens %j', async (match, scope, expected) => {
    const { tokens } = setUp();
    for (const [name, scopes] of Object.entries(HELD)) {
      await tokens.issue({ account: 'acme', scopes, name });
    }
    const { tokens: found } = await tokens.list({ account: 'acme', scope, match });

    expect(found.map(({ name }) => name).sort()).toEqual([...expected].sort());
  });

  it('pages through matching tokens only, even if they are rare', async () => {
    const { clock, tokens } = setUp();
    const rare: string[] = [];
    for (let i = 0; i < 1300; i++) {
      clock.advance(1);
      const scopes = [i % 600 === 0 ? OTHER_SCOPE : SCOPE];
      const { id } = await tokens.issue({ account: 'acme', scopes });
      if (i % 600 === 0) rare.unshift(id);
    }
    const found = await listAll(tokens, { account: 'acme', scope: OTHER_SCOPE, limit: 1 });

    expect(idsOf(found)).toEqual(rare);
  });

  it('looks at up to 10 000 tokens for one page, and continues from there', async () => {
    const { clock, store, tokens } = setUp();
    const oldest = await tokens.issue({ account: 'acme', scopes: [OTHER_SCOPE] });
    clock.advance(1);
    const { id } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const record = await recordOf(store, id);
    for (let i = 1; i < 10_000; i++) {
      const other = String(i).padStart(22, '0') as TokenId;
      await store.inner.insert({ ...record, id: other });
    }
    store.takeCalls();
    // A page also ends after some time; a slow machine must not end this one.
    vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    onTestFinished(() => void vi.restoreAllMocks());

    const { tokens: none, cursor } = await tokens.list({ account: 'acme', scope: OTHER_SCOPE });
    expect(none).toEqual([]);
    expect(limitsOf(store)).toEqual(Array(20).fill(500));
    const rest = await tokens.list({ account: 'acme', scope: OTHER_SCOPE, cursor });
    expect(idsOf(rest.tokens)).toEqual([oldest.id]);
    expect(rest.cursor).toBeUndefined();
  });

  it('reads 500 records per store call, and without a scope one more than the page shows', async () => {
    const { store, tokens } = setUp();
    await tokens.list({ account: 'acme', limit: 7 });
    await tokens.list({ account: 'acme' });
    await tokens.list({ account: 'acme', limit: 7, scope: SCOPE });

    expect(limitsOf(store)).toEqual([8, 101, 500]);
  });

  it.each<[Partial<ListInput> & Record<string, unknown>, string]>([
    [{ scope: 'nonsense' }, 'invalid_scope'],
    [{ scope: '' }, 'invalid_scope'],
    [{ scope: 42 as never }, 'invalid_scope'],
    [{ match: 'any' as never }, 'invalid_request'],
    [{ account: '' }, 'invalid_request'],
    [{ offset: 1 }, 'invalid_request'],
  ])('refuses the input %o', async (bad, code) => {
    const { tokens, store } = setUp();
    expect(await codeOf(tokens.list({ account: 'acme', ...bad }))).toBe(code);
    expect(store.calls).toEqual([]);
  });
});

describe('list by state', () => {
  /** A token in each state, and one that is both suspended and revoked. */
  async function setUpStates() {
    const setting = setUp();
    const { clock, tokens } = setting;
    const issue = (name: string, ttlSeconds = 60) =>
      tokens.issue({ account: 'acme', scopes: [SCOPE], name, ttlSeconds });
    for (const name of ['suspended', 'both']) {
      await tokens.patch('acme', (await issue(name)).id, { suspended: true });
    }
    await issue('expired', 1);
    const { tokens: suspended } = await tokens.list({ account: 'acme', state: 'suspended' });
    const both = suspended.find(({ name }) => name === 'both') as Token;
    for (const id of [(await issue('revoked')).id, both.id]) await tokens.revoke('acme', id);
    clock.advance(1);
    await issue('active');
    return setting;
  }

  it.each<[ListInput['state'], string[]]>([
    [undefined, ['active']],
    ['active', ['active']],
    ['suspended', ['suspended']],
    ['expired', ['expired']],
    ['revoked', ['both', 'revoked']],
    ['all', ['active', 'both', 'expired', 'revoked', 'suspended']],
  ])('state %s finds %j', async (state, expected) => {
    const { tokens } = await setUpStates();
    const found = await listAll(tokens, { account: 'acme', state });
    const paged = await listAll(tokens, { account: 'acme', state, limit: 1 });

    expect(found.map(({ name }) => name).sort()).toEqual(expected);
    expect(paged).toEqual(found);
    for (const token of found) {
      expect(token.state).toBe(token.name === 'both' ? 'revoked' : token.name);
    }
    expect((await tokens.list({ account: 'Acme', state })).tokens).toEqual([]);
  });

  it('can be combined with a scope and a name', async () => {
    const { tokens } = await setUpStates();
    const found = { account: 'acme', state: 'all', scope: SCOPE, name: 'ED' } as const;

    // A revoked token holds no scope any more.
    expect((await tokens.list(found)).tokens).toHaveLength(2);
    expect((await tokens.list({ ...found, scope: OTHER_SCOPE })).tokens).toEqual([]);
    expect((await tokens.list({ ...found, state: 'revoked' })).tokens).toEqual([]);
    expect(
      (await tokens.list({ ...found, scope: undefined, state: 'revoked' })).tokens,
    ).toHaveLength(1);
    expect((await allOf(tokens.listAll({ ...found, limit: 1 }))).length).toBe(2);
  });
});

describe('list by name', () => {
  it.each([
    ['ci', ['ci', 'CI two', 'xCix']],
    ['CI', ['ci', 'CI two', 'xCix']],
    ['ci ', ['CI two']],
    [' ', ['CI two', 'É é']],
    ['é', ['É é']],
    ['É É', ['É é']],
    ['%', ['100%']],
    ['.', []],
    ['nothing', []],
  ])('the name %j finds %j', async (name, expected) => {
    const { tokens } = setUp();
    for (const each of ['ci', 'CI two', 'xCix', 'É é', '100%', undefined]) {
      await tokens.issue({ account: 'acme', scopes: [SCOPE], name: each });
    }
    const found = await listAll(tokens, { account: 'acme', name, limit: 1 });

    expect(found.map((token) => token.name).sort()).toEqual([...expected].sort());
  });

  it('looks at up to 10 000 tokens for one page', async () => {
    const { store, tokens } = setUp();
    const { id } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const record = await recordOf(store, id);
    for (let i = 1; i < 10_001; i++) {
      await store.inner.insert({ ...record, id: String(i).padStart(22, '0') as TokenId });
    }
    store.takeCalls();
    vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    onTestFinished(() => void vi.restoreAllMocks());
    const { tokens: none, cursor } = await tokens.list({ account: 'acme', name: 'ci' });

    expect(none).toEqual([]);
    expect(limitsOf(store)).toEqual(Array(20).fill(500));
    expect(await tokens.list({ account: 'acme', name: 'ci', cursor })).toEqual({ tokens: [] });
  });

  it.each([[''], ['x'.repeat(201)], ['a\n'], [7], [null]])('refuses the name %j', async (name) => {
    const { tokens } = setUp();

    expect(await codeOf(tokens.list({ account: 'acme', name } as never))).toBe('invalid_request');
  });
});

describe('a page from the store', () => {
  it.each<[string, (page: unknown[]) => unknown]>([
    ['is not a list', () => ({})],
    ['is undefined', () => undefined],
    ['contains undefined', (page) => [...page, undefined]],
    ['contains null', (page) => [...page, null]],
    [
      'contains a record with an id of another type',
      (page) => page.map((record) => ({ ...(record as object), id: 7 })),
    ],
    [
      'contains a record without an id',
      (page) => page.map((record) => ({ ...(record as object), id: undefined })),
    ],
    [
      'contains a record of another account',
      (page) => page.map((record) => ({ ...(record as object), account: 'b' })),
    ],
  ])('is rejected as store_corrupt if it %s', async (_, spoil) => {
    const { store, tokens } = setUp();
    await issueMany(tokens, 1);
    store.break('page', async (query: never) => spoil(await store.inner.page(query)));
    expect(await codeOf(tokens.list({ account: 'acme' }))).toBe('store_corrupt');

    store.mend();
    expect((await tokens.list({ account: 'acme' })).tokens).toHaveLength(1);
  });
});

describe('purge', () => {
  it.each([
    ['1 ms before the given instant', 59.999, false],
    ['at the given instant', 60, true],
    ['1 s after the given instant', 61, true],
  ])('keeps a token that expired %s: $2', async (_, seconds, isKept) => {
    const { clock, tokens } = setUp();
    const before = new Date(clock.now().getTime() + 60_000);
    // Only an expiry has milliseconds; a lifetime is in whole seconds.
    const { id } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    await tokens.patch('acme', id, { expiresAt: new Date(clock.now().getTime() + seconds * 1000) });
    clock.advance(3600);

    expect(await tokens.purge({ before })).toBe(isKept ? 0 : 1);
    expect((await tokens.get('acme', id)) !== undefined).toBe(isKept);
  });

  it('removes revoked tokens in several calls with a limit, and leaves live ones', async () => {
    const { clock, store, tokens } = setUp();
    const living = await issueMany(tokens, 3);
    for (const id of await issueMany(tokens, 5)) await tokens.revoke('acme', id);
    clock.advance(1);

    expect(await tokens.purge({ before: clock.now(), limit: 2 })).toBe(2);
    expect(await tokens.purge({ before: clock.now(), limit: 2 })).toBe(2);
    expect(await tokens.purge({ before: clock.now() })).toBe(1);
    expect(await tokens.purge({ before: clock.now() })).toBe(0);
    for (const id of living) expect(await recordOf(store, id as never)).toBeDefined();
  });

  it.each<[number | undefined, number, number[]]>([
    [undefined, 2500, [1000, 1000, 1000]],
    [1, 1, [1]],
    [1000, 1000, [1000]],
    [1001, 1001, [1000, 1]],
    [2400, 2400, [1000, 1000, 400]],
    [2600, 2500, [1000, 1000, 600]],
  ])(
    'with limit %s removes %d of 2500 tokens, at most 1000 per store call',
    async (limit, count, sizes) => {
      const { clock, store, tokens } = setUp();
      let left = 2500;
      store.break('purge', async ({ limit: most }: PurgeQuery) => {
        const purged = Math.min(most, left);
        left -= purged;
        return purged;
      });

      expect(await tokens.purge({ before: clock.now(), limit })).toBe(count);
      expect(store.calls.map(({ args }) => (args[0] as PurgeQuery).limit)).toEqual(sizes);
    },
  );

  it('refuses an instant in the future, an invalid or missing one, and a limit of 0', async () => {
    const { clock, store, tokens } = setUp();
    const at = (ms: number) => new Date(clock.now().getTime() + ms);

    expect(await tokens.purge({ before: at(0) })).toBe(0);
    await expect(tokens.purge({ before: at(1) })).rejects.toMatchObject({
      code: 'invalid_request',
      details: { member: 'before' },
    });
    expect(await codeOf(tokens.purge({ before: new Date(Number.NaN) }))).toBe('invalid_request');
    expect(await codeOf(tokens.purge({ before: at(0), limit: 0 }))).toBe('invalid_request');
    expect(await codeOf(tokens.purge({} as never))).toBe('invalid_request');
    expect(store.takeCalls()).toEqual(['purge']);
  });
});

it('a recording store can wrap another recording store', async () => {
  const { tokens } = setUp({ store: new RecordingStore() });
  expect(await issueMany(tokens, 2)).toHaveLength(2);
});

describe('listAll', () => {
  it('yields each token of all pages once, newest first', async () => {
    const { tokens } = setUp();
    await issueMany(tokens, 7);
    await issueMany(tokens, 1, 'other');
    const expected = await listAll(tokens, { account: 'acme' });

    const found = await allOf(tokens.listAll({ account: 'acme', limit: 3 }));

    expect(found).toHaveLength(7);
    expect(idsOf(found)).toEqual(idsOf(expected));
  });

  it('applies the filter to each page, and can start at a cursor', async () => {
    const { tokens } = setUp();
    await issueMany(tokens, 3);
    await tokens.issue({ account: 'acme', scopes: [OTHER_SCOPE] });
    const input = { account: 'acme', scope: OTHER_SCOPE, limit: 1 };
    const { cursor } = await tokens.list({ account: 'acme', limit: 1 });

    expect(await allOf(tokens.listAll(input))).toHaveLength(1);
    expect(await allOf(tokens.listAll({ account: 'acme', cursor }))).toHaveLength(3);
  });

  it('reads a page only when the loop gets there', async () => {
    const { tokens, store } = setUp();
    await issueMany(tokens, 5);
    store.takeCalls();

    for await (const token of tokens.listAll({ account: 'acme', limit: 2 })) {
      expect(token.account).toBe('acme');
      break;
    }

    expect(store.takeCalls()).toEqual(['page']);
  });

  it('throws inside the loop if the input is invalid', async () => {
    const { tokens } = setUp();

    const refused = (input: unknown) => codeOf(allOf(tokens.listAll(input as ListInput)));
    expect(await refused({ account: '' })).toBe('invalid_request');
    expect(await refused({ account: 'acme', scope: 'orders' })).toBe('invalid_scope');
    expect(await refused(undefined)).toBe('invalid_request');
  });
});
