import { describe, expect, it } from 'vitest';
import { MemoryTokenStore } from '../../src/index.ts';
import {
  type Answer,
  CANARY,
  expectFailure,
  expectSuccess,
  ORDERS,
  type SetUpOptions,
  START,
  setUp,
} from './support.ts';

const DAY = 86_400;
const DENIED = 'POST:shop.example/orders';

function setUpReview(options: SetUpOptions = {}) {
  const usage = new MemoryTokenStore().usage;
  const setup = setUp({ usage: { store: usage }, ...options });
  const review = (query = '', as = 'ada') => setup.call('GET', `/review${query}`, { as });
  return { ...setup, usage, review };
}

interface Finding {
  readonly code: string;
  readonly token: { readonly id: string; readonly name?: string };
}

const findingsOf = ({ body }: Answer) => body['data'] as Finding[];
const codesOf = (answer: Answer) => findingsOf(answer).map(({ code }) => code);

/** Follows the Link headers and returns all pages. */
async function allPages(
  review: (query?: string) => Promise<Answer>,
  query = '',
): Promise<Answer[]> {
  const pages: Answer[] = [];
  for (let next: string | undefined = query; next !== undefined; ) {
    const page = await review(next);
    expect(page.status).toBe(200);
    pages.push(page);
    const { cursor } = page.body;
    const [, link] = /^<(\?.*)>; rel="next"$/.exec(page.headers.get('link') ?? '') ?? [];
    expect(link === undefined).toBe(cursor === undefined);
    next = link;
  }
  return pages;
}

describe('GET /review', () => {
  it('returns no finding for a new, narrow token', async () => {
    const { issue, review } = setUpReview();
    await issue();

    expectSuccess(await review(), { data: [] });
  });

  it('returns a finding with the data needed to act on it', async () => {
    const { clock, tokens, review } = setUpReview();
    const { id, masked } = await tokens.issue({ account: 'ada', scopes: [ORDERS], name: 'ci' });
    clock.advance(90 * DAY);

    expectSuccess(await review(), {
      data: [
        {
          code: 'never_used',
          token: {
            id,
            token: id,
            masked,
            name: 'ci',
            scopes: [ORDERS],
            state: 'active',
            createdAt: START,
            expire: START + 365 * DAY,
            version: 1,
            uses: 0,
            lastUsed: null,
          },
          scopes: [ORDERS],
          message: expect.stringMatching(/^was not used since/),
          since: START,
        },
      ],
    });
  });

  it('returns the facts of each kind of finding in UNIX seconds', async () => {
    const { clock, tokens, review } = setUpReview({ catalog: null });
    const issue = (name: string, scopes: string[], ttlSeconds = 365 * DAY) =>
      tokens.issue({ account: 'ada', scopes, name, ttlSeconds });
    const need = { scope: ORDERS };
    await issue('old', [ORDERS]);
    const paused = await issue('paused', [ORDERS]);
    await tokens.patch('ada', paused.id, { suspended: true });
    clock.advance(100 * DAY);
    await issue('broad', ['GET:shop.example/*']);
    const used = await issue('used', [ORDERS], 100 * DAY);
    const excess = await issue('excess', [ORDERS, DENIED, 'PUT:shop.example/orders']);
    clock.advance(89 * DAY);
    await tokens.verify(used.value, need);
    await tokens.verify(excess.value, need);
    clock.advance(2 * DAY);

    const { body } = await review();

    const at = (days: number) => START + days * DAY;
    const found = body['data'] as Finding[];
    expect(found.map(({ token, code }) => [token.name, code]).sort()).toEqual([
      ['broad', 'broad'],
      ['broad', 'never_used'],
      ['excess', 'excess'],
      ['old', 'never_used'],
      ['old', 'stale_secret'],
      ['paused', 'suspended'],
      ['used', 'expiring'],
    ]);
    const of = (code: string) => found.find((one) => one.code === code);
    expect(of('broad')).toMatchObject({ reasons: ['whole_host'] });
    expect(of('broad')).not.toHaveProperty('covered');
    expect(of('excess')).toMatchObject({
      since: at(100),
      scopes: [DENIED, 'PUT:shop.example/orders'],
    });
    expect(of('stale_secret')).toMatchObject({ secretSince: at(0) });
    expect(of('suspended')).toMatchObject({ suspendedAt: at(0), token: { version: 2 } });
    expect(of('expiring')).toMatchObject({
      lastUsed: at(189),
      token: { uses: 1, expire: at(200) },
    });
  });

  it('reports how much of the catalog a broad token covers', async () => {
    const { review, issue } = setUpReview();
    await issue('ada', [ORDERS, DENIED, 'GET:shop.example/items']);

    expect(findingsOf(await review())).toMatchObject([
      { code: 'broad', reasons: ['most_of_catalog'], covered: 3, entries: 4 },
    ]);
  });

  it('reads its thresholds from the query', async () => {
    const { clock, issue, review, tokens } = setUpReview();
    const { value } = await issue();
    clock.advance(40 * DAY);

    expect(codesOf(await review())).toEqual([]);
    expect(codesOf(await review('?unusedForDays=40'))).toEqual(['never_used']);
    expect(codesOf(await review('?unusedForDays=41'))).toEqual([]);
    expect(codesOf(await review('?secretOlderThanDays=39'))).toEqual(['stale_secret']);
    expect(codesOf(await review('?secretOlderThanDays=40'))).toEqual([]);
    await tokens.verify(value, { scope: ORDERS });
    expect(codesOf(await review('?expiringWithinDays=325'))).toEqual(['expiring']);
    expect(codesOf(await review('?expiringWithinDays=324'))).toEqual([]);
  });

  it('leaves out tokens that belong to another account, are revoked or have expired', async () => {
    const { clock, issue, review, tokens } = setUpReview();
    const theirs = await issue('bob');
    const revoked = await issue();
    await tokens.revoke('ada', revoked.id);
    await tokens.issue({ account: 'ada', scopes: [ORDERS], ttlSeconds: 60 });
    clock.advance(90 * DAY);

    expect(codesOf(await review())).toEqual([]);
    expect(findingsOf(await review('', 'bob'))).toMatchObject([{ token: { id: theirs.id } }]);
  });

  it('returns only findings that do not depend on usage if usage is not recorded', async () => {
    const { clock, issue, review } = setUpReview({ usage: undefined });
    await issue();
    clock.advance(200 * DAY);

    expect(codesOf(await review())).toEqual(['stale_secret']);
  });

  it('never contains a token value, nor usage if that is not recorded', async () => {
    const { clock, issue, call, review } = setUpReview({ usage: undefined, reveal: 'always' });
    const { id, value } = await issue();
    clock.advance(200 * DAY);

    const { body, text } = await review();

    expect((await call('GET', `/token/${id}`)).text).toContain(value);
    expect(text).not.toContain(value);
    expect(body['data']).toMatchObject([{ token: { id, token: id } }]);
    expect(text).not.toContain('uses');
  });

  describe('in pages', () => {
    it('returns each finding once, newest first, and keeps those of a token together', async () => {
      const { clock, issue, review } = setUpReview();
      const ids: string[] = [];
      for (let i = 0; i < 130; i++) {
        ids.unshift((await issue()).id);
        clock.advance(1);
      }
      clock.advance(200 * DAY);

      const pages = await allPages(review);

      const found = pages.flatMap(findingsOf);
      expect(found.map(({ token }) => token.id)).toEqual(ids.flatMap((id) => [id, id]));
      expect(pages.length).toBeGreaterThan(2);
      for (const page of pages) {
        expect(findingsOf(page).length % 2).toBe(0);
        expect(findingsOf(page).length).toBeLessThanOrEqual(100);
      }
    });

    it('gets past many tokens without findings', async () => {
      const { clock, issue, review } = setUpReview();
      const { id } = await issue();
      clock.advance(89 * DAY);
      for (let i = 0; i < 1200; i++) await issue();
      clock.advance(DAY);

      const found = (await allPages(review)).flatMap(findingsOf);

      expect(found).toMatchObject([{ token: { id }, code: 'never_used' }]);
    });

    it('keeps the thresholds in its links and binds cursors to them and the account', async () => {
      const { clock, issue, review } = setUpReview();
      for (let i = 0; i < 101; i++) await issue();
      for (let i = 0; i < 101; i++) await issue('bob');
      clock.advance(10 * DAY);
      const query = '?unusedForDays=10';
      const { body, headers } = await review(query);
      const cursor = String(body['cursor']);
      const link = /^<(\?.*)>/.exec(headers.get('link') ?? '')?.[1] ?? '';

      expect(new URLSearchParams(link).get('unusedForDays')).toBe('10');
      expect(codesOf(await review(link))).toEqual(['never_used']);
      for (const wrong of [
        await review(`?cursor=${cursor}`),
        await review(`?unusedForDays=11&cursor=${cursor}`),
        await review(link, 'bob'),
        await review(`${query}&cursor=${CANARY}`),
      ]) {
        expectFailure(wrong, 'invalid_request');
        expect(wrong.body['details']).toEqual({ member: 'cursor' });
        expect(wrong.body['message']).toMatch(/^the query parameter cursor must be one/);
      }
    });

    it('refuses a cursor of GET /token', async () => {
      const { call, issue, review } = setUpReview();
      await issue();
      await issue();
      const { cursor } = (await call('GET', '/token?limit=1')).body;

      expectFailure(await review(`?cursor=${cursor}`), 'invalid_request');
    });
  });

  it.each(['unusedForDays', 'expiringWithinDays', 'secretOlderThanDays'])(
    'refuses an invalid number of days for %s',
    async (name) => {
      const { review } = setUpReview();

      for (const days of ['0', '3651', '1.5', '-1', '', '030', 'x', '1e2']) {
        const answer = await review(`?${name}=${days}`);
        expectFailure(answer, 'invalid_request');
        expect(answer.body['message']).toBe(
          `the query parameter ${name} must be a whole number from 1 to 3650`,
        );
        expect(answer.body['details']).toEqual({ member: name });
      }
      expect(await review(`?${name}=3650`)).toMatchObject({ status: 200 });
    },
  );

  it('refuses a misspelled or repeated parameter and one that names an owner', async () => {
    const { review } = setUpReview();

    const misspelled = await review('?expiringWithinDay=3');
    expectFailure(misspelled, 'invalid_request');
    expect(misspelled.body['message']).toContain('did you mean expiringWithinDays?');
    expectFailure(await review('?unusedForDays=3&unusedForDays=3'), 'invalid_request');
    expectFailure(await review('?account=bob'), 'invalid_request');
    expect(await review('?_=1')).toMatchObject({ status: 200 });
  });

  it('requires credentials and answers only GET and HEAD', async () => {
    const { call } = setUpReview();

    expectFailure(await call('GET', '/review', { as: null }), 'unauthenticated');
    expect(await call('HEAD', '/review')).toMatchObject({ status: 200, text: '' });
    expectFailure(await call('POST', '/review'), 'method_not_allowed');
    expectFailure(await call('GET', '/review/'), 'not_found');
  });

  it('answers 503 while the usage store is down', async () => {
    const { issue, review, usage } = setUpReview();
    await issue();
    Object.assign(usage, { read: () => Promise.reject(new Error(CANARY)) });

    expectFailure(await review(), 'store_unavailable');
  });
});
