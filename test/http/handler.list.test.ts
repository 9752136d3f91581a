import { describe, expect, it } from 'vitest';
import {
  type Answer,
  CANARY,
  type Code,
  expectFailure,
  expectSuccess,
  ORDERS,
  type Setup,
  setUp,
} from './support.ts';

const ITEMS = 'GET:shop.example/items';
const INVOICES = 'GET:billing.example/invoices';

function idsOf({ body }: Answer): string[] {
  return (body['data'] as { id: string }[]).map(({ id }) => id);
}

/** The target of the Link header; `undefined` on the last page. */
function nextOf({ headers }: Answer): string | undefined {
  const link = headers.get('link');
  if (link === null) return undefined;
  const target = /^<([^<>\s]*)>; rel="next"$/.exec(link)?.[1];
  expect(target).toBeDefined();
  return target;
}

/** Follows the Link headers from `path` to the last page and returns all answers. */
async function follow({ call }: Setup, path: string): Promise<Answer[]> {
  const answers: Answer[] = [];
  let url: URL | undefined = new URL(path, 'http://localhost');
  while (url !== undefined) {
    const answer = await call('GET', url.pathname + url.search);
    expect(answer.status).toBe(200);
    answers.push(answer);
    const next = nextOf(answer);
    url = next === undefined ? undefined : new URL(next, url);
  }
  return answers;
}

async function issueMany({ issue, clock }: Setup, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index++) {
    clock.advance(1);
    ids.unshift((await issue()).id);
  }
  return ids;
}

describe('the query of GET /token', () => {
  it.each<[string, number]>([
    ['limit=1', 1],
    ['limit=99', 99],
    ['limit=100', 100],
    ['limit=101', 400],
    ['limit=1000', 400],
    ['limit=0', 400],
    ['limit=-1', 400],
    ['limit=', 400],
    ['limit', 400],
    ['limit=01', 400],
    ['limit=1.0', 400],
    ['limit=1e1', 400],
    ['limit=0x1', 400],
    ['limit=+1', 400],
    ['limit=%2B1', 400],
    ['limit=%201', 400],
    ['limit=1%0A', 400],
    ['limit=1,2', 400],
    ['limit=%D9%A1', 400],
    ['limit=NaN', 400],
    ['limit=Infinity', 400],
    ['limit=99999999999999999999', 400],
    ['limit=null', 400],
    ['limit=true', 400],
    ['limit=1&limit=1', 400],
    ['limit=1&limit=2', 400],
    ['limit=1&%6Cimit=1', 400],
    [`limit=${CANARY}`, 400],
  ])('"%s" yields %i (the number of tokens, or status 400)', async (query, expected) => {
    const setup = setUp();
    await Promise.all(Array.from({ length: 102 }, () => setup.issue()));

    const answer = await setup.call('GET', `/token?${query}`);

    if (expected === 400) expectFailure(answer, 'invalid_request');
    else expect(idsOf(answer)).toHaveLength(expected);
  });

  it.each<[string, Code | undefined]>([
    ['match=overlaps', undefined],
    ['match=covers', undefined],
    ['match=exact', undefined],
    ['match=', 'invalid_request'],
    ['match=Exact', 'invalid_request'],
    ['match=overlap', 'invalid_request'],
    ['match=constructor', 'invalid_request'],
    [`match=${CANARY}`, 'invalid_request'],
    ['match=exact&match=exact', 'invalid_request'],
    ['match=exact&match=covers', 'invalid_request'],
    ['state=active', undefined],
    ['state=all', undefined],
    ['state=', 'invalid_request'],
    ['state=Active', 'invalid_request'],
    ['state=constructor', 'invalid_request'],
    ['state=all&state=all', 'invalid_request'],
    ['statee=all', 'invalid_request'],
    ['name=', undefined],
    [`name=${'x'.repeat(201)}`, 'invalid_request'],
    ['name=%00', 'invalid_request'],
    ['name=ci&name=ci', 'invalid_request'],
    ['nme=ci', 'invalid_request'],
    ['page=2', 'invalid_request'],
    ['scope=', undefined],
    ['scope=*:*/*', undefined],
    [`scope=${ORDERS}`, undefined],
    [`scope=${encodeURIComponent(ORDERS)}`, undefined],
    ['scope=GET:unheard.example/of', undefined],
    [`scope=${ORDERS}&scope=${ORDERS}`, undefined],
    [`scope[]=${ORDERS}&scope[]=*:*/*`, undefined],
    [`scope%5B%5D=${ORDERS}&scope%5b%5d=*:*/*`, undefined],
    [`scope[0]=${ORDERS}&scope[17]=*:*/*&scope=`, undefined],
    ['scope=&scope=', undefined],
    ['scope[]=&scope[]=', undefined],
    ['scope[]=orders', 'invalid_scope'],
    [`scope=${ORDERS}&scope[]=get:x`, 'invalid_scope'],
    ['scope[a]=*:*/*', 'invalid_request'],
    ['scope[0][0]=*:*/*', 'invalid_request'],
    ['scope[-1]=*:*/*', 'invalid_request'],
    ['scope[=*:*/*', 'invalid_request'],
    ['Scope[]=*:*/*', 'invalid_request'],
    ['scopes[]=*:*/*', 'invalid_request'],
    ['match[]=exact', 'invalid_request'],
    ['cursor[0]=x', 'invalid_request'],
    [Array(101).fill('scope=*:*/*').join('&'), 'invalid_request'],
    [Array(100).fill('scope=*:*/*').join('&'), undefined],
    ['scope=orders', 'invalid_scope'],
    ['scope=get:shop.example/orders', 'invalid_scope'],
    ['scope=GET:shop.example', 'invalid_scope'],
    ['scope=GET:shop.example/%00', 'invalid_scope'],
    [`scope=${CANARY}%0A`, 'invalid_scope'],
    [`scope=${CANARY}%C3%A4`, 'invalid_scope'],
    [`scope=${CANARY.repeat(200)}`, 'invalid_scope'],
    ['scope=%FF', 'invalid_scope'],
    ['scope=%', 'invalid_scope'],
    ['scope=+', 'invalid_scope'],
    ['cursor=', 'invalid_request'],
    ['cursor=x', 'invalid_request'],
    ['cursor=%FF%00', 'invalid_request'],
    [`cursor=${CANARY}`, 'invalid_request'],
    [`cursor=${CANARY.repeat(500)}`, 'invalid_request'],
    ['cursor=x&cursor=x', 'invalid_request'],
    ['', undefined],
    ['&&&', undefined],
    ['=', undefined],
    ['limits=0', 'invalid_request'],
    ['Limit=0', 'invalid_request'],
    ['limit[]=0', 'invalid_request'],
    ['limti=2', 'invalid_request'],
    ['scop=x', 'invalid_request'],
    ['scoop=x', 'invalid_request'],
    ['scopes=x', 'invalid_request'],
    ['curser=x', 'invalid_request'],
    ['metch=x', 'invalid_request'],
    ['limitation=2', undefined],
    ['lamot=2', 'invalid_request'],
    ['latti=2', undefined],
    ['status=expired', 'invalid_request'],
    ['title=ci', undefined],
    ['_=1700000000', undefined],
    ['utm_source=x', undefined],
    ['constructor=1&__proto__=2&toString=3', undefined],
    ['__proto__[limit]=0', undefined],
    [`${CANARY}=${CANARY}&${CANARY}=2`, undefined],
    ['expire=1&ttl=0&name=&metadata=', undefined],
    ['Token=x&TOKEN=x&tokens=x&access-token=x&account_id=x', undefined],
    ['%00=%00', undefined],
    ['%=%&%FF=%FF', undefined],
  ])('"%s" yields the error %s', async (query, code) => {
    const { call, issue } = setUp();
    const { id } = await issue();

    const answer = await call('GET', `/token?${query}`);

    if (code !== undefined) return expectFailure(answer, code);
    expect(answer.status).toBe(200);
    expect(idsOf(answer)).toEqual(query.includes('unheard') ? [] : [id]);
  });

  it('gets the suggestion of a valid scope for a malformed one', async () => {
    const { call } = setUp();

    const answer = await call('GET', '/token?scope=get:shop.example/orders');

    expectFailure(answer, 'invalid_scope');
    expect(answer.body).toMatchObject({ details: { suggestion: ORDERS } });
  });

  it('is refused on every call if it holds a credential or an owner', async () => {
    const names = ['access_token', 'token', 'account', 'accountId', 'user', 'userId', 'owner'];
    const calls: [string, string, unknown?][] = [
      ['GET', '/token'],
      ['HEAD', '/token'],
      ['POST', '/token', { scopes: [ORDERS] }],
      ['GET', '/token/ID'],
      ['PUT', '/token/ID', { scopes: [ORDERS] }],
      ['PATCH', '/token/ID', { name: 'x' }],
      ['DELETE', '/token/ID'],
      ['POST', '/token/ID/rotate'],
      ['GET', '/scopes'],
    ];
    const { call, issue, tokens } = setUp();
    const { id } = await issue();

    for (const [method, path, json] of calls) {
      for (const name of names) {
        for (const query of [`${name}=${CANARY}`, name, `a=1&${name}=&b=2`, encoded(name)]) {
          const answer = await call(method, `${path.replace('ID', id)}?${query}`, { json });
          if (method === 'HEAD') expect(answer.status).toBe(400);
          else expectFailure(answer, 'invalid_request');
        }
      }
    }

    expect(await tokens.get('ada', id)).toMatchObject({ version: 1 });
    expect((await tokens.list({ account: 'ada' })).tokens).toHaveLength(1);
  });

  it('is ignored by other calls, even if parameters are invalid or repeated', async () => {
    const { call, issue } = setUp();
    const { id } = await issue();
    const query = 'limit=0&limit=x&scope=!&match=!&cursor=!&x=1';
    const json = { scopes: [ORDERS] };

    expect(await call('POST', `/token?${query}`, { json })).toMatchObject({ status: 200 });
    expect(await call('GET', `/token/${id}?${query}`)).toMatchObject({ status: 200 });
    expect(await call('GET', `/scopes?${query}`)).toMatchObject({ status: 200 });
  });
});

describe('an unknown parameter of a list', () => {
  it.each<[query: string, hint: string]>([
    ['sort[expire]=asc', 'did you mean sort?'],
    ['sort_by=expire', 'did you mean sort?'],
    ['sortBy=expire', 'did you mean sort?'],
    ['order=asc', 'did you mean sort?'],
    ['orderBy=name', 'did you mean sort?'],
    ['ordering=-name', 'did you mean sort?'],
    ['direction=desc', 'did you mean sort?'],
    ['filter=x', '(known: scope,'],
    ['filter[name]=x', '(known: scope,'],
    ['filter.name=x', '(known: scope,'],
    ['where=x', '(known: scope,'],
    ['fields=id', '(known: scope,'],
    ['q=x', 'did you mean name?'],
    ['search=x', 'did you mean name?'],
    ['page=2', 'did you mean cursor?'],
    ['offset=10', 'did you mean cursor?'],
    ['after=x', 'did you mean cursor?'],
    ['per_page=10', 'did you mean limit?'],
    ['page[size]=10', 'did you mean cursor?'],
    ['pageSize=10', 'did you mean limit?'],
    ['status=revoked', 'did you mean state?'],
    ['stat=revoked', 'did you mean state?'],
    ['domains=x', 'did you mean domain?'],
  ])(
    'is refused, because the list would not be the one that was asked for: %s',
    async (query, hint) => {
      const { call } = setUp();

      const answer = await call('GET', `/token?${query}`);
      expectFailure(answer, 'invalid_request');
      expect(answer.body['message']).toContain(hint);
    },
  );

  it.each([
    'utm_source=mail',
    '_=1764',
    'ref=x',
    'cb=1',
    'v=2',
    'x=1',
    'gclid=x',
    'traceid=x',
    'sorted=1',
  ])('is ignored if clients and proxies add it: %s', async (query) => {
    const { call, issue } = setUp();
    await issue();

    const { status, body } = await call('GET', `/token?${query}`);
    expect({ status, count: (body['data'] as unknown[]).length }).toEqual({
      status: 200,
      count: 1,
    });
  });

  it.each(['/review?sort=age', '/token/ID?fields=name', '/token/ID/advice?order=asc'])(
    'is refused by other reads: %s',
    async (path) => {
      const { call, issue } = setUp({ usage: true });
      const { id } = await issue();

      const answer = await call('GET', path.replace('ID', id));
      expectFailure(answer, 'invalid_request');
      expect(answer.body['message']).toContain('(known: ');
    },
  );
});

describe('the order of a list', () => {
  const names = ({ body }: Answer) => (body['data'] as { name: string }[]).map(({ name }) => name);

  /** Tokens `a` to `c`, of which `a` was used. */
  async function setUpThree(): Promise<Setup> {
    const setting = setUp({ usage: true });
    const { clock, tokens } = setting;
    for (const [name, ttlSeconds, scope] of [
      ['b', 200, ORDERS],
      ['c', 100, INVOICES],
      ['a', 300, ORDERS],
    ] as const) {
      const input = { account: 'ada', scopes: [scope], name, ttlSeconds };
      const { value } = await tokens.issue(input);
      clock.advance(1);
      if (name === 'a') await tokens.verify(value, { scope: ORDERS });
    }
    return setting;
  }

  it.each([
    ['sort=created', 'acb'],
    ['sort=expire', 'cba'],
    ['sort=name', 'abc'],
    ['sort=lastUsed&name=a', 'a'],
    ['sort=name&domain=billing.example', 'c'],
    ['sort=name&domain=SHOP.example', 'ab'],
    ['sort=expire&unused=never', 'cb'],
    ['sort=name&state=live', 'abc'],
  ])('and its filters are those of the query, also in the links: %s', async (query, expected) => {
    const setting = await setUpThree();
    const pages = await follow(setting, `/token?${query}&limit=1`);

    expect(names(await setting.call('GET', `/token?${query}`)).join('')).toBe(expected);
    expect(pages.flatMap(names).join('')).toBe(expected);
    for (const page of pages.slice(0, -1)) {
      const next = new URLSearchParams(nextOf(page)?.slice(1));
      for (const [name, value] of new URLSearchParams(query)) expect(next.get(name)).toBe(value);
    }
  });

  it.each([
    ['sort=bogus', 'sort must be "created", "expire", "name" or "lastUsed"'],
    ['sort=', 'sort must be "created", "expire", "name" or "lastUsed"'],
    ['sort=name&sort=created', 'sort may be given once'],
    ['domain=', 'domain must be one host'],
    ['domain=https://shop.example', 'domain must be one host'],
    ['unused=30', 'unused must be "never"'],
  ])('is refused if it is none: %s', async (query, message) => {
    const { call } = setUp({ usage: true });
    const answer = await call('GET', `/token?${query}`);

    expectFailure(answer, 'invalid_request');
    expect(answer.body['message']).toContain(`the query parameter ${message}`);
  });

  it.each(['unused=never', 'sort=lastUsed'])('needs uses that are recorded: %s', async (query) => {
    const { call } = setUp();

    expectFailure(await call('GET', `/token?${query}`), 'usage_not_recorded');
  });

  it('is one for the cursor, too', async () => {
    const { call } = await setUpThree();
    const { body } = await call('GET', '/token?sort=expire&limit=1');
    const again = await call('GET', `/token?sort=name&cursor=${body['cursor']}`);

    expectFailure(again, 'invalid_request');
    expect(again.body['message']).toContain('for the same account, filter and order');
  });
});

describe('the filters of a list', () => {
  it.each([
    ['GET:shop.example/*', 'overlaps', ['both', 'orders', 'all']],
    ['GET:shop.example/*', 'covers', ['all']],
    ['GET:shop.example/*', 'exact', []],
    [ORDERS, undefined, ['both', 'orders', 'all']],
    [ORDERS, 'overlaps', ['both', 'orders', 'all']],
    [ORDERS, 'covers', ['both', 'orders', 'all']],
    [ORDERS, 'exact', ['both', 'orders']],
    ['GET:SHOP.example/orders', 'exact', ['both', 'orders']],
    ['GET:shop.example/orders/7', 'overlaps', ['both', 'orders', 'all']],
    ['GET:shop.example/orders/7', 'covers', ['both', 'orders', 'all']],
    ['GET:shop.example/orders/7', 'exact', []],
    ['GET:shop.example/ord', 'overlaps', ['all']],
    ['*:*/*', 'overlaps', ['both', 'orders', 'invoices', 'all']],
    ['*:*/*', 'exact', ['all']],
    ['*:*/*', 'covers', ['all']],
    ['', 'exact', ['both', 'orders', 'invoices', 'all']],
    ['', undefined, ['both', 'orders', 'invoices', 'all']],
  ])('scope=%s&match=%s finds %j', async (scope, match, expected) => {
    const { call, tokens } = setUp({ catalog: null });
    const held = { both: [ORDERS, ITEMS], orders: [ORDERS], invoices: [INVOICES], all: ['*:*/*'] };
    for (const [name, scopes] of Object.entries(held)) {
      await tokens.issue({ account: 'ada', scopes, name });
    }
    const query = new URLSearchParams({ scope, ...(match !== undefined && { match }) });

    const answer = await call('GET', `/token?${query}`);

    const names = (answer.body['data'] as { name: string }[]).map(({ name }) => name);
    expect(names.toSorted()).toEqual(expected.toSorted());
  });
});

describe('the pages of a list', () => {
  it.each([
    [0, 1, 1],
    [1, 1, 1],
    [2, 1, 2],
    [3, 2, 2],
    [4, 2, 2],
    [5, 2, 3],
    [7, 100, 1],
  ])('of %i tokens with limit %i are %i', async (count, limit, pages) => {
    const setup = setUp();
    const ids = await issueMany(setup, count);

    const answers = await follow(setup, `/token?limit=${limit}`);

    expect(answers.flatMap(idsOf)).toEqual(ids);
    expect(answers).toHaveLength(pages);
    for (const [index, answer] of answers.entries()) {
      const isLast = index === pages - 1;
      expect(answer.headers.has('link')).toBe(!isLast);
      const data = answer.body['data'];
      expectSuccess(answer, isLast ? { data } : { data, cursor: expect.any(String) });
    }
  });

  it('link with only validated parameters and the cursor of the body', async () => {
    const setup = setUp();
    await issueMany(setup, 3);
    const query = `limit=2&scope=GET:SHOP.example/*&match=overlaps&${CANARY}=${CANARY}&x=1&limitation=9`;

    const answer = await setup.call('GET', `/token?${query}`);

    expectSuccess(answer, { data: expect.any(Array), cursor: expect.any(String) });
    const next = new URL(nextOf(answer) ?? '', 'http://localhost/token');
    expect(next.pathname).toBe('/token');
    expect(Object.fromEntries(next.searchParams)).toEqual({
      limit: '2',
      scope: 'GET:shop.example/*',
      match: 'overlaps',
      cursor: answer.body['cursor'],
    });
    expect(next.searchParams.size).toBe(4);
  });

  it('link to each other below a base path', async () => {
    const setup = setUp({ basePath: '/auth' });
    const ids = await issueMany(setup, 3);

    const answers = await follow(setup, '/auth/token?limit=1');

    expect(answers.flatMap(idsOf)).toEqual(ids);
  });

  it('apply the filter on every page', async () => {
    const setup = setUp();
    const wanted: string[] = [];
    for (let index = 0; index < 10; index++) {
      setup.clock.advance(1);
      const { id } = await setup.issue('ada', [index % 2 === 0 ? ITEMS : ORDERS]);
      if (index % 2 === 0) wanted.unshift(id);
    }

    const answers = await follow(setup, `/token?scope=${ITEMS}&limit=2`);

    expect(answers.map((answer) => idsOf(answer).length)).toEqual([2, 2, 1]);
    expect(answers.flatMap(idsOf)).toEqual(wanted);
  });

  it('apply every scope of the filter, and link to a page with the same ones', async () => {
    const setup = setUp();
    const { issue, call } = setup;
    const both: string[] = [];
    for (let i = 0; i < 3; i++) {
      both.unshift((await issue('ada', [ORDERS, ITEMS])).id);
      await issue('ada', [ORDERS]);
      await issue('ada', [ITEMS]);
      setup.clock.advance(1);
    }

    for (const name of ['scope', 'scope[]', 'scope%5B0%5D']) {
      const path = `/token?${name}=${ORDERS}&scope[7]=${ITEMS}&match=covers&limit=1`;
      const answers = await follow(setup, path);
      expect(answers.flatMap(idsOf)).toEqual(both);
      const next = new URLSearchParams(nextOf(answers[0] as Answer));
      expect(next.getAll('scope')).toEqual([ORDERS, ITEMS]);
      const cursor = next.get('cursor');
      const other = (scopes: string) =>
        call('GET', `/token?${scopes}&match=covers&cursor=${cursor}`);
      expect((await other(`scope=${ITEMS}&scope=${ORDERS}&scope=${ITEMS}`)).status).toBe(200);
      expectFailure(await other(`scope=${ORDERS}`), 'invalid_request');
      expectFailure(await other(`scope=${ORDERS}&scope=${INVOICES}`), 'invalid_request');
      expectFailure(await other(''), 'invalid_request');
    }
    const none = await call('GET', `/token?scope=${ORDERS}&scope=${INVOICES}&match=covers`);
    expect(idsOf(none)).toEqual([]);
  });

  it('neither skip nor repeat tokens when some are issued or revoked in between', async () => {
    const setup = setUp();
    const ids = await issueMany(setup, 6);
    const first = await setup.call('GET', '/token?limit=2');

    await issueMany(setup, 3);
    await setup.tokens.revoke('ada', ids[1] ?? '');
    await setup.tokens.revoke('ada', ids[3] ?? '');

    const rest = await follow(setup, `/token${nextOf(first)}`);
    expect(rest.flatMap(idsOf)).toEqual([ids[2], ids[4], ids[5]]);
  });

  it('hold 100 tokens when a cursor comes without a limit', async () => {
    const setup = setUp();
    const ids = await issueMany(setup, 202);
    const { body } = await setup.call('GET', '/token?limit=1');

    const answer = await setup.call('GET', `/token?cursor=${body['cursor']}`);

    expect(idsOf(answer)).toEqual(ids.slice(1, 101));
    const next = new URL(nextOf(answer) ?? '', 'http://localhost/token');
    expect([...next.searchParams.keys()]).toEqual(['cursor']);
  });

  it('refuse a cursor of another account or another filter', async () => {
    const setup = setUp();
    await issueMany(setup, 3);
    await setup.issue('bob');
    const { body } = await setup.call('GET', `/token?limit=1&scope=${ORDERS}`);
    const cursor = String(body['cursor']);
    const at = (query: string, as = 'ada') => setup.call('GET', `/token?${query}`, { as });

    expect((await at(`cursor=${cursor}&scope=${ORDERS}`)).status).toBe(200);
    expect((await at(`cursor=${cursor}&scope=${ORDERS}&limit=2`)).status).toBe(200);
    for (const query of [
      `cursor=${cursor}`,
      `cursor=${cursor}&scope=${ITEMS}`,
      `cursor=${cursor}&scope=${ORDERS}&match=exact`,
      `cursor=${cursor.slice(0, -2)}&scope=${ORDERS}`,
      `cursor=${cursor.toLowerCase()}&scope=${ORDERS}`,
      `cursor=${cursor.slice(0, 20)}x${cursor.slice(21)}&scope=${ORDERS}`,
    ]) {
      expectFailure(await at(query), 'invalid_request');
    }
    expectFailure(await at(`cursor=${cursor}&scope=${ORDERS}`, 'bob'), 'invalid_request');
  });
});

describe('a list without a limit', () => {
  it('holds up to ten thousand tokens and then links to the next page', async () => {
    const setup = setUp({ quotas: { tokensPerAccount: 20_000 } });
    const ids = new Set<string>();
    const issueUpTo = async (count: number) => {
      while (ids.size < count) ids.add((await setup.issue()).id);
    };

    for (const count of [999, 1000, 1001, 10_000]) {
      await issueUpTo(count);
      const answer = await setup.call('GET', '/token');
      expectSuccess(answer, { data: expect.any(Array) });
      expect(answer.headers.has('link')).toBe(false);
      expect(new Set(idsOf(answer))).toEqual(ids);
    }

    await issueUpTo(10_101);
    const pages = await follow(setup, '/token');
    expect(pages.map((page) => idsOf(page).length)).toEqual([10_000, 100, 1]);
    expect(new Set(pages.flatMap(idsOf))).toEqual(ids);
    expect(pages[0]?.body['cursor']).toEqual(expect.any(String));

    const filtered = await follow(setup, `/token?scope=${ITEMS}`);
    expect(filtered.flatMap(idsOf)).toEqual([]);
  });
});

function encoded(name: string): string {
  return `%${name.charCodeAt(0).toString(16)}${name.slice(1)}=1`;
}
