import { afterEach, describe, expect, it, vi } from 'vitest';
import { fixedAccounts } from '../../src/http/index.ts';
import { generateKey, MemoryTokenStore, TokenService } from '../../src/index.ts';
import { ScopeCatalog } from '../../src/scope/index.ts';
import { manualClock } from '../../src/testing/index.ts';
import { RecordingStore } from '../support.ts';
import { quickScrypt } from './sign-in/scrypt.ts';
import {
  basic,
  bytesOf,
  CANARY,
  CATALOG,
  expectFailure,
  ORDERS,
  PASSWORD,
  type SetUpOptions,
  setUp,
} from './support.ts';

type Call = [method: string, path: string, json: unknown];

const CALLS: Call[] = [
  ['GET', '/token/T', undefined],
  ['PUT', '/token/T', { scopes: [ORDERS] }],
  ['PATCH', '/token/T', { name: 'new' }],
  ['PATCH', '/token/T', { addScopes: [ORDERS] }],
  ['DELETE', '/token/T', undefined],
  ['POST', '/token/T/rotate', undefined],
  ['POST', '/token/T/explain', { scope: ORDERS }],
];

describe('a token that the account does not own', () => {
  async function tokens() {
    const store = new RecordingStore();
    const keys = [generateKey()];
    const setup = setUp({ store, keys });
    const [mine, others, revoked] = [
      await setup.issue(),
      await setup.issue('bob'),
      await setup.issue(),
    ];
    await setup.tokens.revoke('ada', revoked.id);
    const elsewhere = await setUp().issue();
    // Signed with the same keys, but not stored.
    const unkept = await setUp({ keys }).issue();
    store.takeCalls();
    const ids = {
      'an unknown id': unkept.id,
      'another account’s id': others.id,
      'a revoked id': revoked.id,
    };
    const values = {
      'an unknown value': unkept.value,
      'another account’s value': others.value,
      'a revoked value': revoked.value,
    };
    const malformed = {
      'a value of other keys': elsewhere.value,
      'a value with another tag': `${mine.value.slice(0, -1)}${mine.value.endsWith('0') ? '1' : '0'}`,
      'a truncated value': mine.value.slice(0, -1),
      'a value of another prefix': mine.value.replace('acme', 'emca'),
      'no token at all': CANARY,
      'a percent-encoded id': `%${mine.id.charCodeAt(0).toString(16)}${mine.id.slice(1)}`,
    };
    return { ...setup, store, mine, ids, values, malformed };
  }

  it.each(
    CALLS.flatMap((call) =>
      [undefined, '"1"', '"2"', '"1", "2"'].map((tag) => [...call, tag] as const),
    ),
  )(
    'gets the same answer and store calls whatever it is: %s %s %o, If-Match: %s',
    async (method, path, json, tag) => {
      const { call, store, ids, values, malformed } = await tokens();
      const headers = tag === undefined ? {} : { 'if-match': tag };
      const asked = async (token: string) => {
        const options = { headers, ...(json !== undefined && { json }) };
        const answer = await call(method, path.replace('T', token), options);
        expectFailure(answer, 'not_found');
        return { bytes: bytesOf(answer), calls: store.takeCalls() };
      };
      const expected = await asked(ids['an unknown id']);
      expect(expected.calls.length).toBeGreaterThan(0);

      // A call by value reads the record first, so its store calls differ from those of a call by id.
      for (const same of [ids, values]) {
        const [first = ''] = Object.values(same);
        const { calls } = await asked(first);
        for (const [what, token] of Object.entries(same)) {
          expect(await asked(token), what).toEqual({ ...expected, calls });
        }
      }
      for (const [what, token] of Object.entries(malformed)) {
        expect(await asked(token), what).toEqual({ ...expected, calls: [] });
      }
    },
  );

  it.each(CALLS)('differs from an own token (control): %s %s %o', async (method, path, json) => {
    const { call, store, mine } = await tokens();

    const options = json === undefined ? {} : { json };
    const answer = await call(method, path.replace('T', mine.id), options);

    expect(answer.status).toBe(200);
    expect(store.takeCalls().length).toBeGreaterThan(0);
  });

  it('gets the same answer for an account that owns no tokens', async () => {
    const { call, ids, values, malformed, mine } = await tokens();
    const own = { id: mine.id, value: mine.value };
    const all = [own, ids, values, malformed].flatMap((group) => Object.values<string>(group));
    const eve = { as: 'eve' };

    const answers = await Promise.all(all.map((token) => call('GET', `/token/${token}`, eve)));

    expect(new Set(answers.map(bytesOf)).size).toBe(1);
  });
});

describe('wrong credentials', () => {
  it('get the same answer for known and unknown users and never reach the store', async () => {
    quickScrypt();
    const store = new RecordingStore();
    const authenticate = fixedAccounts([{ username: 'ada', password: PASSWORD }]);
    const { call } = setUp({ store, authenticate });
    const asked = (authorization: string) =>
      call('POST', '/token', { json: { scopes: [ORDERS] }, headers: { authorization } });

    const answers = [
      await asked(basic('ada', 'wrong')),
      await asked(basic('nobody', 'wrong')),
      await asked(basic('nobody')),
      await asked(basic('ada', '')),
      await asked(basic('', '')),
      await asked('Basic !'),
      await asked(`Bearer ${CANARY}`),
      await call('POST', '/token', { json: { scopes: [ORDERS] }, as: null }),
    ];

    for (const answer of answers) expectFailure(answer, 'unauthenticated');
    expect(new Set(answers.slice(0, 5).map(bytesOf)).size).toBe(1);
    expect(new Set(answers.map(bytesOf)).size).toBe(4);
    expect(store.takeCalls()).toEqual([]);
    expect(await asked(basic('ada'))).toMatchObject({ status: 200 });
  });
});

describe('host functions that misbehave', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  const boom = () => {
    throw new Error(CANARY);
  };
  /** Ways in which a host function can fail, by name. */
  const FAULTS: [string, () => unknown][] = [
    ['throws', boom],
    [
      'throws undefined',
      () => {
        throw undefined;
      },
    ],
    ['rejects', () => Promise.reject(new Error(CANARY))],
    ['returns undefined', () => undefined],
    ['returns a number', () => 7],
    ['returns true', () => true],
    ['returns an object', () => ({})],
    ['returns a list', () => ['ada']],
    ['returns an empty text', () => ''],
    ['returns a promise of a number', () => Promise.resolve(7)],
    ['returns an unreadable object', () => new Proxy({}, { get: boom, has: boom })],
    ['returns a thenable that throws', () => thenable(boom)],
    ['returns a thenable that settles twice', () => thenable((done) => [done(7), done('ada')])],
    ['returns a function', () => () => 'ada'],
  ];
  const HANGS: [string, () => unknown][] = [
    ['never settles', () => new Promise(() => {})],
    ['returns a thenable that never settles', () => thenable(() => {})],
  ];

  it.each(FAULTS)('an authenticate that %s fails only its own call', async (_, fault) => {
    const authenticate = vi.fn(({ username }) => (username === 'ada' ? 'ada' : fault()));
    const { call, tokens } = setUp({ authenticate: authenticate as never });
    const json = { scopes: [ORDERS] };

    const [before, bad, after] = await Promise.all([
      call('POST', '/token', { json }),
      call('POST', '/token', { json, as: 'eve' }),
      call('POST', '/token', { json }),
    ]);

    expectFailure(bad, 'store_unavailable');
    for (const answer of [before, after]) expect(answer.status).toBe(200);
    expect((await tokens.list({ account: 'ada' })).tokens).toHaveLength(2);
    expect((await tokens.list({ account: 'eve' })).tokens).toEqual([]);
  });

  it.each(FAULTS)('a catalog that %s fails only its own call', async (_, fault) => {
    const { call, tokens } = withService({
      catalog: (account) => (account === 'ada' ? ScopeCatalog.from(CATALOG) : (fault() as never)),
    });
    const json = { scopes: [ORDERS] };

    const [before, bad, after] = await Promise.all([
      call('POST', '/token', { json }),
      call('POST', '/token', { json, as: 'eve' }),
      call('POST', '/token', { json }),
    ]);

    expect(bad.status).toBeGreaterThanOrEqual(500);
    expectFailure(bad, bad.body['code'] as 'internal');
    for (const answer of [before, after]) expect(answer.status).toBe(200);
    expect((await tokens.list({ account: 'eve' })).tokens).toEqual([]);
  });

  it.each(HANGS)('a function that %s does not hold up other accounts', async (_, hang) => {
    vi.useFakeTimers();
    const catalog = (account: string) =>
      account === 'ada' ? ScopeCatalog.from(CATALOG) : (hang() as never);
    const authenticate = ({ username }: { username: string }) =>
      username === 'slow' ? (hang() as string) : username;
    const { call, tokens } = withService({ catalog }, { authenticate });
    const json = { scopes: [ORDERS] };
    const pending = ['slow', 'eve'].map((as) => call('POST', '/token', { json, as }));

    expect(await call('POST', '/token', { json })).toMatchObject({ status: 200 });

    await vi.advanceTimersByTimeAsync(10_000);
    for (const answer of await Promise.all(pending)) {
      expect(answer.status).toBe(503);
      expectFailure(answer, answer.body['code'] as 'internal');
    }
    expect(vi.getTimerCount()).toBe(0);
    for (const account of ['slow', 'eve']) {
      expect((await tokens.list({ account })).tokens).toEqual([]);
    }
  });

  it.each<[string, () => unknown]>([
    // `now` is synchronous, so nothing handles a rejected promise that it returns.
    ...FAULTS.filter(([how]) => how !== 'rejects'),
    ['returns an invalid date', () => new Date(Number.NaN)],
    ['returns milliseconds', () => Date.now()],
    ['returns an object with an invalid getTime', () => ({ getTime: () => 'soon' })],
  ])('a clock that %s fails every call until it works again', async (_, fault) => {
    const clock = manualClock();
    let isBroken = false;
    const now = () => (isBroken ? (fault() as Date) : clock.now());
    const { call, tokens, issue } = withService({ clock: { now } });
    const { id, value } = await issue('ada');

    isBroken = true;
    for (const [method, path, json] of CALLS) {
      const options = json === undefined ? {} : { json };
      const answer = await call(method, path.replace('T', id), options);
      expectFailure(answer, 'internal');
    }
    expectFailure(await call('POST', '/token', { json: { scopes: [ORDERS] } }), 'internal');
    await expect(tokens.verify(value, { scope: ORDERS })).rejects.toMatchObject({
      name: 'TokenError',
    });

    isBroken = false;
    expect((await call('GET', '/token')).body['data']).toMatchObject([{ id, version: 1 }]);
    expect(await tokens.verify(value, { scope: ORDERS })).toMatchObject({ ok: true });
  });

  it.each([...FAULTS, ...HANGS])(
    'a listener that %s affects no call and leaves no unhandled rejection',
    async (_, fault) => {
      const listener = vi.fn(fault);
      const { call } = withService(
        { onEvent: listener as () => void },
        {
          onError: listener as () => void,
          authenticate: ({ username }) => (username === 'ada' ? 'ada' : (7 as never)),
        },
      );
      const rejections: unknown[] = [];
      const note = (reason: unknown) => rejections.push(reason);
      process.on('unhandledRejection', note);

      const answer = await call('POST', '/token', { json: { scopes: [ORDERS] } });
      await call('GET', '/token', { as: 'eve' });
      const shown = await call('GET', `/token/${answer.body['id']}`);
      await new Promise((resolve) => setImmediate(resolve));

      process.off('unhandledRejection', note);
      expect(rejections).toEqual([]);
      expect(listener).toHaveBeenCalled();
      expect([answer.status, shown.status]).toEqual([200, 200]);
    },
  );
});

/** A handler over a service with options that `setUp` does not accept. */
function withService(
  options: Partial<ConstructorParameters<typeof TokenService>[0]>,
  handlerOptions: SetUpOptions = {},
) {
  const tokens = new TokenService({
    store: new MemoryTokenStore(),
    keys: [generateKey()],
    prefix: 'acme',
    clock: manualClock(),
    ...options,
  });
  const setup = setUp({ ...handlerOptions, tokens } as SetUpOptions);
  const issue = (account: string) => tokens.issue({ account, scopes: [ORDERS] });
  return { call: setup.call, tokens, issue };
}

function thenable(then: (done: (value: unknown) => void) => unknown): unknown {
  return Object.defineProperty({}, 'then', { value: then });
}
