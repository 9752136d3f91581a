import { describe, expect, it } from 'vitest';
import type { ListInput } from '../../src/inputs/types.ts';
import type { PageQuery } from '../../src/ports/token-store.ts';
import { MAX_SORTED_BYTES, MAX_SORTED_FROM, MAX_SORTED_TOKENS } from '../../src/records/sorting.ts';
import type { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import type { TokenId, TokenRecord } from '../../src/token/record.ts';
import { newRecord } from '../stores/support.ts';
import { allOf, codeOf, OTHER_SCOPE, SCOPE, type Setting, setUp } from '../support.ts';

const SORTS = ['created', 'expire', 'name', 'lastUsed'] as const;

function issue({ tokens }: Setting, input: object = {}) {
  return tokens.issue({ account: 'acme', scopes: [SCOPE], ...input });
}

async function namesOf(tokens: TokenService, input: Partial<ListInput> = {}) {
  const found = await allOf(tokens.listAll({ account: 'acme', ...input }));
  return found.map(({ name }) => name);
}

/** Tokens `a` to `e`, which each order lists otherwise; `b` and `d` were never used. */
async function issueFive(setting: Setting): Promise<void> {
  const { clock, tokens } = setting;
  const days = { c: 5, a: 3, e: 4, b: 1, d: 2 };
  const values = new Map<string, string>();
  for (const [name, day] of Object.entries(days)) {
    values.set(name, (await issue(setting, { name, ttlSeconds: 86_400 * day })).value);
    clock.advance(1);
  }
  for (const name of ['e', 'a', 'c']) {
    await tokens.verify(values.get(name) ?? '', { scope: SCOPE });
    clock.advance(1);
  }
}

describe('the order of a list', () => {
  it.each<[sort: ListInput['sort'], order: string]>([
    [undefined, 'dbeac'],
    ['created', 'dbeac'],
    ['expire', 'bdaec'],
    ['name', 'abcde'],
    ['lastUsed', 'cae'],
  ])('is by %s: %s', async (sort, order) => {
    const setting = setUp({ usage: true });
    await issueFive(setting);

    for (const limit of [1, 2, 100]) {
      const names = await namesOf(setting.tokens, { sort, limit });
      // Those that were never used come last, by id.
      expect(names.slice(0, order.length).join('')).toBe(order);
      expect([...names].sort().join('')).toBe('abcde');
    }
  });

  it.each(SORTS)('is that of ids where tokens come to the same: %s', async (sort) => {
    const setting = setUp({ usage: true });
    for (let i = 0; i < 20; i++) await issue(setting, { name: i % 2 === 0 ? 'SAME' : 'same' });
    const listed = (limit: number) =>
      allOf(setting.tokens.listAll({ account: 'acme', sort, limit }));
    const ids = (await listed(100)).map(({ id }) => id);

    expect(ids).toEqual(sort === 'created' ? [...ids].sort().reverse() : [...ids].sort());
    expect((await listed(3)).map(({ id }) => id)).toEqual(ids);
  });

  it('by name ignores case, and lists those without a name last', async () => {
    const setting = setUp();
    const names = ['b', undefined, 'C', 'a', 'B1', 'Ä', undefined, 'ä1', '0', '~', 'x.y'];
    for (const name of names) await issue(setting, { name });

    for (const limit of [1, 100]) {
      expect(await namesOf(setting.tokens, { sort: 'name', limit })).toEqual([
        ...['0', 'a', 'b', 'B1', 'C', 'x.y', '~', 'Ä', 'ä1', undefined, undefined],
      ]);
    }
  });

  it('by name goes on after names of any length and any characters', async () => {
    const setting = setUp();
    const names = ['İ'.repeat(200), '😀'.repeat(100), 'ab.'.repeat(66), 'ab', 'ünî\u2028code'];
    for (const name of names) await issue(setting, { name });

    const found = await namesOf(setting.tokens, { sort: 'name', limit: 1 });
    expect([...found].sort()).toEqual([...names].sort());
  });

  it('by last use counts uses that are not written yet', async () => {
    const setting = setUp({ usage: { store: new MemoryTokenStore().usage, flushMs: 60_000 } });
    const first = await issue(setting, { name: 'first' });
    await issue(setting, { name: 'second' });
    const sort = 'lastUsed';
    const before = await namesOf(setting.tokens, { sort });
    setting.clock.advance(1);
    await setting.tokens.verify(first.value, { scope: SCOPE });

    expect(before).toHaveLength(2);
    expect(await namesOf(setting.tokens, { sort })).toEqual(['first', 'second']);
  });

  it.each(SORTS)('neither repeats nor skips others when tokens come and go: %s', async (sort) => {
    const setting = setUp({ usage: true });
    const { clock, tokens } = setting;
    for (let i = 0; i < 9; i++) {
      const { value } = await issue(setting, { name: `n${i}`, ttlSeconds: 1000 - i });
      clock.advance(1);
      await tokens.verify(value, { scope: SCOPE });
    }
    const query = { account: 'acme', sort, limit: 3 };
    const all = await allOf(tokens.listAll(query));
    const page = await tokens.list(query);
    const [first, , third] = page.tokens;
    await tokens.revoke('acme', first?.id ?? '');
    await tokens.revoke('acme', third?.id ?? '');
    // Before the page that was read, in each order.
    const sooner = { name: 'A', ttlSeconds: 1 };
    for (let i = 0; i < 5; i++) {
      await tokens.verify((await issue(setting, sooner)).value, { scope: SCOPE });
    }
    const rest = await allOf(tokens.listAll({ ...query, cursor: page.cursor }));

    expect(rest.map(({ name }) => name)).toEqual(all.slice(3).map(({ name }) => name));
  });

  it.each(SORTS)('applies to each filter: %s', async (sort) => {
    const setting = setUp({ usage: true });
    await issueFive(setting);
    await issue(setting, { name: 'other', scopes: [OTHER_SCOPE] });
    const filter = { sort, limit: 1, scope: OTHER_SCOPE, match: 'exact' } as const;

    expect(await namesOf(setting.tokens, filter)).toEqual(['other']);
    expect(await namesOf(setting.tokens, { sort, name: 'OTH', limit: 1 })).toEqual(['other']);
    expect(await namesOf(setting.tokens, { sort, state: 'suspended' })).toEqual([]);
    expect(await namesOf(setting.tokens, { sort, state: 'live' })).toHaveLength(6);
  });

  it.each(SORTS)('applies to the children of a token: %s', async (sort) => {
    const setting = setUp({ usage: true });
    const { clock, tokens } = setting;
    const parent = await issue(setting, { name: 'parent' });
    for (const [name, ttlSeconds] of [
      ['b', 300],
      ['a', 200],
      ['c', 100],
    ] as const) {
      const { value } = await tokens.derive(parent.value, { scopes: [SCOPE], name, ttlSeconds });
      clock.advance(1);
      await tokens.verify(value, { scope: SCOPE });
    }
    const expected = { created: 'cab', expire: 'cab', name: 'abc', lastUsed: 'cab' };

    for (const limit of [1, 2, 100]) {
      const names = await namesOf(tokens, { sort, parent: parent.id, limit });
      expect(names.join('')).toBe(expected[sort]);
    }
  });

  it('is signed into the cursor', async () => {
    const setting = setUp({ usage: true });
    await issueFive(setting);
    const listed = (sort: ListInput['sort'], cursor?: string) =>
      setting.tokens.list({ account: 'acme', sort, limit: 1, cursor });

    for (const sort of SORTS) {
      const { cursor } = await listed(sort);
      for (const other of SORTS) {
        const again = listed(other, cursor);
        if (sort === other) expect((await again).tokens).toHaveLength(1);
        else expect(await codeOf(again)).toBe('invalid_request');
      }
    }
  });

  it.each(SORTS)('ends a page before it holds too much: %s', async (sort) => {
    const setting = setUp({ usage: true });
    const scopes = Array.from({ length: 20 }, (_, i) => `GET:shop.example/${i}`);
    for (const name of 'dacb') await issue(setting, { name, scopes });
    const query = { account: 'acme', sort, maxBytes: 2000 };
    const page = await setting.tokens.list(query);

    expect(page.tokens.length).toBeLessThan(4);
    expect(page.cursor).toBeDefined();
    expect(await namesOf(setting.tokens, query)).toEqual(await namesOf(setting.tokens, { sort }));
    for (const maxBytes of [1, 500]) {
      expect(await namesOf(setting.tokens, { sort, maxBytes })).toHaveLength(4);
    }
  });
});

describe('a list by name or last use', () => {
  async function filled(count: number, change: (index: number) => Partial<TokenRecord>) {
    const inner = new MemoryTokenStore();
    const setting = setUp({ store: inner, usage: true });
    const base = newRecord('one', { createdAt: setting.clock.now() });
    for (let index = 0; index < count; index++) {
      const id = String(index).padStart(22, '0') as TokenId;
      await inner.insert({ ...base, id, ...change(index) });
    }
    setting.store.takeCalls();
    return setting;
  }

  it.each(['name', 'lastUsed'] as const)(
    'takes up to 10 000 tokens, and says what helps beyond that: %s',
    async (sort) => {
      const named = (index: number) => ({ name: `n${String(index % 7)}` });
      const setting = await filled(MAX_SORTED_TOKENS, named);
      const { tokens } = setting;
      const page = await tokens.list({ account: 'acme', sort, limit: 3 });
      expect(page.tokens).toHaveLength(3);
      expect(page.cursor).toBeDefined();

      const more = { createdAt: setting.clock.now(), name: 'one more' };
      await setting.store.insert(newRecord('more', more));
      const refused = tokens.list({ account: 'acme', sort });
      await expect(refused).rejects.toMatchObject({
        code: 'invalid_request',
        message: expect.stringMatching(/^sort orders at most 10000 .*scope, domain, name, state/),
        details: { member: 'sort', limit: 10_000 },
      });
      const filter = { account: 'acme', sort, name: 'more' };
      expect((await tokens.list(filter)).tokens).toHaveLength(1);
      expect((await tokens.list({ account: 'acme', sort: 'expire' })).tokens).toHaveLength(100);
    },
    60_000,
  );

  it('reads each batch of tokens and of uses once, and leaves turns to others', async () => {
    const { tokens, store } = await filled(1200, (index) => ({ name: `n${index}` }));
    let [turns, isOver] = [0, false];
    const count = () => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    await tokens.list({ account: 'acme', sort: 'lastUsed', limit: 5 });
    isOver = true;

    const limits = store.calls.map(({ args: [query] }) => (query as PageQuery).limit);
    expect(limits).toEqual([500, 500, 500]);
    expect(turns).toBeGreaterThanOrEqual(2);
  });

  it.each([
    ['tokens', MAX_SORTED_FROM, 0],
    ['bytes', 3000, MAX_SORTED_BYTES],
  ])('looks at a bounded number of %s for a filter', async (_, count, bytes) => {
    const inner = new MemoryTokenStore();
    const { tokens, store, clock } = setUp({ store: inner });
    const record = newRecord('one', { createdAt: clock.now() });
    const scopes = ['GET:shop.example/a', `GET:${'x'.repeat(Math.floor(bytes / count / 2))}`];
    const listed = { ...record, scopes, requested: scopes };
    let left = count + 1;
    // One record again and again: a store that holds so much would take long to fill.
    const pages = (query: PageQuery) => {
      const page = Array.from({ length: Math.min(query.limit, left) }, () => listed);
      left -= page.length;
      return Promise.resolve(page);
    };
    store.break('page', pages);
    const refused = tokens.list({ account: 'acme', sort: 'name', name: 'nothing' });

    await expect(refused).rejects.toMatchObject({
      code: 'invalid_request',
      details: { member: 'sort' },
    });
  });
});

describe('list by host', () => {
  it.each([
    ['shop.example', ['shop', 'wild', 'any']],
    ['SHOP.example', ['shop', 'wild', 'any']],
    ['a.shop.example', ['below', 'wild', 'any']],
    ['example', ['any']],
    ['hop.example', ['wild', 'any']],
    ['other.test', ['any']],
  ])('the domain %s finds %j', async (domain, expected) => {
    const setting = setUp();
    const scopes = {
      any: '*:*/x',
      wild: 'GET:*.example/*',
      below: 'GET:a.shop.example/x$',
      shop: 'POST:shop.example/orders',
      revoked: 'GET:shop.example/*',
    };
    for (const [name, scope] of Object.entries(scopes)) {
      const { id } = await issue(setting, { name, scopes: ['GET:elsewhere.test/y', scope] });
      if (name === 'revoked') await setting.tokens.revoke('acme', id);
      setting.clock.advance(1);
    }

    expect(await namesOf(setting.tokens, { domain, limit: 1 })).toEqual(expected);
    const both = { domain, scope: 'POST:shop.example/orders', match: 'covers' } as const;
    expect(await namesOf(setting.tokens, both)).toEqual(expected.filter((name) => name === 'shop'));
  });

  it.each([
    '',
    '*',
    '*.example',
    'shop.example/',
    'https://shop.example',
    'shop.example:80',
    'a b',
    1,
  ])('refuses %j as a domain', async (domain) => {
    const { tokens, store } = setUp();

    await expect(tokens.list({ account: 'acme', domain: domain as string })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(/^domain must be one host/),
    });
    expect(store.calls).toEqual([]);
  });
});

describe('list by use', () => {
  it('finds tokens of which no use was recorded, page by page', async () => {
    const setting = setUp({ usage: true });
    await issueFive(setting);
    const { clock, tokens } = setting;
    const unused = { unused: 'never', limit: 1 } as const;
    expect(await namesOf(tokens, unused)).toEqual(['d', 'b']);
    expect(await namesOf(tokens, { ...unused, sort: 'expire' })).toEqual(['b', 'd']);
    expect(await namesOf(tokens, { ...unused, name: 'B' })).toEqual(['b']);

    const refused = await issue(setting, { name: 'refused' });
    await tokens.verify(refused.value, { scope: OTHER_SCOPE });
    clock.advance(1);
    expect(await namesOf(tokens, unused)).toEqual(['refused', 'd', 'b']);
    await tokens.verify(refused.value, { scope: SCOPE });
    expect(await namesOf(tokens, unused)).toEqual(['d', 'b']);
  });

  it.each<Partial<ListInput>>([{ unused: 'never' }, { sort: 'lastUsed' }])(
    'needs a service that records usage: %j',
    async (input) => {
      const { tokens, store } = setUp();

      await expect(tokens.list({ account: 'acme', ...input })).rejects.toMatchObject({
        code: 'invalid_options',
        message: expect.stringContaining('usage: true'),
      });
      expect(store.calls).toEqual([]);
    },
  );

  it.each<Partial<ListInput>>([{ unused: 'never' }, { sort: 'lastUsed' }])(
    'fails if the uses cannot be read: %j',
    async (input) => {
      const usage = new MemoryTokenStore().usage;
      const setting = setUp({ usage: { store: usage } });
      await issue(setting);
      usage.totals = () => Promise.reject(new Error('down'));

      expect(await codeOf(setting.tokens.list({ account: 'acme', ...input }))).toBe(
        'store_unavailable',
      );
      expect((await setting.tokens.list({ account: 'acme' })).tokens).toHaveLength(1);
    },
  );

  it.each<[Partial<Record<keyof ListInput, unknown>>, RegExp]>([
    [{ sort: 'bogus' }, /^sort must be "created", "expire", "name" or "lastUsed"; got/],
    [{ sort: '' }, /^sort must be/],
    [{ unused: 'always' }, /^unused must be "never"; got/],
    [{ unused: true }, /^unused must be "never"/],
    [{ state: 'alive' }, /"revoked", "live" or "all"/],
  ])('refuses %j', async (input, message) => {
    const { tokens } = setUp({ usage: true });

    await expect(tokens.list({ account: 'acme', ...(input as object) })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(message),
    });
  });
});
