import { RateLimiterMemory } from 'rate-limiter-flexible';
import { describe, expect, it } from 'vitest';
import {
  COOKIE_MS,
  MAX_ENDED_SESSIONS,
  SESSION_MS,
  type ServedAccount,
  Sessions,
} from '../../../src/app/server/sessions.ts';
import {
  failureLimiter,
  hashPassword,
  type TokenHandlerOptions,
  tokenHandler,
} from '../../../src/http/index.ts';
import { ownForms } from '../../../src/http/request.ts';
import {
  generateKey,
  type KeyOptions,
  MemoryTokenStore,
  TokenError,
  TokenService,
} from '../../../src/index.ts';
import { manualClock } from '../../../src/testing/index.ts';

const HASH = hashPassword('correct-horse');
const OTHER_HASH = hashPassword('correct-horse');
const ACCOUNTS: readonly ServedAccount[] = [
  { username: 'ada', passwordHash: HASH },
  { username: 'bob ö', account: 'bob', passwordHash: OTHER_HASH },
];
const KEYS = [generateKey('k1')];
const SCRIPT = { 'x-tokenwright': 'console' };
const NAME = 'tokenwright-session';
const MINUTE = 60_000;

interface NodeOptions {
  readonly keys?: readonly KeyOptions[];
  readonly accounts?: readonly ServedAccount[];
  readonly clock?: ReturnType<typeof manualClock>;
  readonly store?: MemoryTokenStore;
  readonly sessions?: Sessions;
  readonly handler?: Pick<TokenHandlerOptions, 'limiter' | 'clientAddress' | 'onSignIn'>;
}

/** One process of the service, with its sessions. */
function nodeOf({
  keys = KEYS,
  accounts = ACCOUNTS,
  clock = manualClock(),
  store = new MemoryTokenStore({ clock }),
  sessions = new Sessions({ leases: store.leases, clock }),
  handler: more = {},
}: NodeOptions = {}) {
  const tokens = new TokenService({ store, keys, prefix: 'tw', clock });
  let checked = 0;
  const handler = tokenHandler({
    tokens,
    authenticate: ({ username, password }) => {
      checked += 1;
      const known = accounts.find((account) => account.username === username);
      return known && password === 'correct-horse' ? (known.account ?? username) : null;
    },
    session: sessions.of(keys, accounts),
    ...more,
  });
  const call = async (method: string, path: string, headers: Record<string, string> = {}) => {
    const answer = await handler(new Request(`http://a${path}`, { method, headers }));
    const set = answer.headers.get('set-cookie');
    return {
      status: answer.status,
      set,
      cookie: set?.split(';')[0] ?? '',
      headers: answer.headers,
      body: (await answer.json()) as { data: Record<string, unknown> | null; code?: string },
    };
  };
  const signIn = (
    user = 'ada',
    headers: Record<string, string> = SCRIPT,
    password = 'correct-horse',
  ) => {
    const basic = Buffer.from(`${user}:${password}`).toString('base64');
    return call('POST', '/session', { authorization: `Basic ${basic}`, ...headers });
  };
  const list = async (cookie: string) => (await call('GET', '/token', { cookie })).status;
  const renew = (cookie: string) => call('GET', '/session', { cookie });
  const signOut = (cookie: string) => call('DELETE', '/session', { cookie, ...SCRIPT });
  return { call, signIn, list, renew, signOut, clock, store, sessions, checks: () => checked };
}

describe('signing in', () => {
  it('begins a session that stands for the account without another check of the password', async () => {
    const { signIn, list, call, checks, clock } = nodeOf();

    const { status, set, cookie, body } = await signIn();

    expect(status).toBe(200);
    expect(body.data).toEqual({
      username: 'ada',
      expire: (clock.now().getTime() + SESSION_MS) / 1000,
    });
    expect(set).toMatch(
      /^tokenwright-session=1\.k1\.[\w.-]+; Max-Age=28800; HttpOnly; SameSite=Strict$/,
    );
    expect(await list(cookie)).toBe(200);
    const issued = await call('GET', '/session', { cookie });
    expect([issued.status, issued.set, issued.body.data]).toEqual([200, null, body.data]);
    expect(checks()).toBe(1);
  });

  it('finds the account of a user with another name', async () => {
    const { signIn, renew } = nodeOf();
    const [ada, bob] = [await signIn(), await signIn('bob ö')];

    expect((await renew(bob.cookie)).body.data).toMatchObject({ username: 'bob ö' });
    expect((await renew(bob.cookie)).headers.get('x-tokenwright-account')).not.toBe(
      (await renew(ada.cookie)).headers.get('x-tokenwright-account'),
    );
  });

  it.each([
    ['a wrong password', 'ada', SCRIPT, 'wrong', 401],
    ['an unknown user', 'eve', SCRIPT, 'correct-horse', 401],
    ['no header of a script', 'ada', {}, 'correct-horse', 403],
    [
      'a page of another site',
      'ada',
      { ...SCRIPT, 'sec-fetch-site': 'cross-site' },
      'correct-horse',
      403,
    ],
    ['another port', 'ada', { ...SCRIPT, 'sec-fetch-site': 'same-site' }, 'correct-horse', 403],
    ['the origin of another host', 'ada', { ...SCRIPT, origin: 'http://b' }, 'correct-horse', 403],
  ])('is refused for %s', async (_, user, headers, password, expected) => {
    const { signIn } = nodeOf();

    const { status, set } = await signIn(user, headers, password);

    expect([status, set]).toEqual([expected, null]);
  });

  it('counts towards the same limit as Basic credentials, and is reported alike', async () => {
    const told: string[] = [];
    const userAndAddress = new RateLimiterMemory({ points: 2, duration: 60 });
    const { signIn, call } = nodeOf({
      handler: {
        limiter: failureLimiter({ userAndAddress }),
        clientAddress: () => '192.0.2.7',
        onSignIn: ({ outcome, address }) => told.push(`${outcome} ${address}`),
      },
    });
    const { cookie } = await signIn();
    await signIn('ada', SCRIPT, 'wrong');
    const authorization = `Basic ${Buffer.from('ada:wrong').toString('base64')}`;
    expect((await call('GET', '/token', { authorization })).status).toBe(401);

    expect((await signIn()).status).toBe(429);
    expect((await call('GET', '/token', { cookie })).status).toBe(200);
    expect(told).toEqual([
      'accepted 192.0.2.7',
      'refused 192.0.2.7',
      'refused 192.0.2.7',
      'limited 192.0.2.7',
    ]);
  });

  it('takes no body, and no session instead of a password', async () => {
    const { signIn, call } = nodeOf();
    const { cookie } = await signIn();

    expect((await call('POST', '/session', { cookie, ...SCRIPT })).status).toBe(401);
    expect((await call('PUT', '/session', { cookie, ...SCRIPT })).status).toBe(405);
  });

  it('never adopts the id of a cookie that was there before', async () => {
    const { signIn, call } = nodeOf();
    const { cookie } = await signIn();
    const [first = ''] = /1\.k1\.([\w-]{22})/.exec(cookie)?.slice(1) ?? [];

    const again = await signIn('ada', { ...SCRIPT, cookie });
    const planted = await signIn('ada', { ...SCRIPT, cookie: `${NAME}=planted` });

    expect(again.cookie).not.toContain(first);
    expect(planted.cookie).not.toContain('planted');
    expect((await call('GET', '/token', { cookie: `${NAME}=planted` })).status).toBe(401);
  });

  it.each([
    ['its origin', { origin: 'https://a' }],
    ['its proxy', { 'x-forwarded-proto': 'https' }],
    ['its first proxy', { 'x-forwarded-proto': 'https, http' }],
  ])('makes a cookie for TLS alone if %s says so', async (_, headers) => {
    const { signIn, call } = nodeOf();

    const { set, cookie } = await signIn('ada', { ...SCRIPT, ...headers });

    expect(set).toMatch(/^__Secure-tokenwright-session=.*; SameSite=Strict; Secure$/);
    expect((await call('GET', '/token', { cookie })).status).toBe(200);
    // Somebody on the way can plant a cookie of plain HTTP. It neither counts nor gets in the way.
    const plain = (await signIn('bob ö')).cookie;
    const both = await call('GET', '/session', { cookie: `${plain}; ${cookie}` });
    expect(both.body.data).toMatchObject({ username: 'ada' });
    const planted = await call('GET', '/session', { cookie: plain, ...headers });
    expect(planted.status).toBe(401);
  });
});

describe('a session', () => {
  it('changes nothing without the header of a script, or for another site', async () => {
    const { signIn, call } = nodeOf();
    const { cookie } = await signIn();

    for (const [method, path] of [
      ['POST', '/token'],
      ['DELETE', '/session'],
    ] as const) {
      expect((await call(method, path, { cookie })).status, path).toBe(403);
      for (const site of ['cross-site', 'same-site', 'elsewhere']) {
        const headers = { cookie, ...SCRIPT, 'sec-fetch-site': site };
        expect((await call(method, path, headers)).status, `${path} ${site}`).toBe(403);
      }
    }
    expect((await call('DELETE', '/session', { cookie, ...SCRIPT })).status).toBe(200);
  });

  it('is due for renewal after 15 minutes, and then opens nothing else', async () => {
    const { signIn, list, renew, clock } = nodeOf();
    const { cookie } = await signIn();
    clock.advance(COOKIE_MS / 1000 - 1);
    expect(await list(cookie)).toBe(200);
    expect((await renew(cookie)).set).toBeNull();
    clock.advance(1);
    expect(await list(cookie)).toBe(401);

    const renewed = await renew(cookie);

    expect(renewed.status).toBe(200);
    expect(renewed.set).toContain('; Max-Age=27900;');
    expect(await list(renewed.cookie)).toBe(200);
    // A second tab may still send the first value.
    expect((await renew(cookie)).status).toBe(200);
  });

  it('lasts for eight hours in all, however often it is renewed', async () => {
    const { signIn, list, renew, clock } = nodeOf();
    let { cookie, body } = await signIn();
    const { expire } = body.data ?? {};
    for (let minutes = 15; minutes < 8 * 60; minutes += 15) {
      clock.advance(15 * 60);
      ({ cookie, body } = await renew(cookie));
      expect(body.data?.['expire']).toBe(expire);
    }
    clock.advance(15 * 60 - 1);
    expect((await renew(cookie)).status).toBe(200);
    clock.advance(1);

    const { status, set } = await renew(cookie);

    expect([status, set]).toEqual([401, `${NAME}=; Max-Age=0; HttpOnly; SameSite=Strict`]);
    expect(await list(cookie)).toBe(401);
  });

  it('works again after a night without use, but not after its end', async () => {
    const { signIn, renew, clock } = nodeOf();
    const { cookie } = await signIn();
    clock.advance(SESSION_MS / 1000 - 1);

    expect((await renew(cookie)).status).toBe(200);
    clock.advance(1);
    expect((await renew(cookie)).status).toBe(401);
  });

  it.each([
    ['cut off', (value: string) => value.slice(0, -1)],
    ['longer', (value: string) => `${value}A`],
    ['of other letters', (value: string) => value.toUpperCase()],
    ['with a later end', (value: string) => value.replace(/\.(\d{13})\./, '.9999999999999.')],
    ['of another key', (value: string) => value.replace('.k1.', '.k2.')],
    ['of another version', (value: string) => value.replace(/^1/, '2')],
    ['of another user', (value: string) => value.replace(/\.YWRh\./, '.Ym9iIMO2.')],
    ['of a user that nobody knows', (value: string) => value.replace(/\.YWRh\./, '.ZXZl.')],
    ['twice', (value: string) => `${value}; ${NAME}=${value}`],
    ['twice in two headers', (value: string) => `${value}, ${NAME}=${value}`],
    ['oversized', (value: string) => value + 'A'.repeat(8000)],
    ['empty', () => ''],
    ['no cookie of this service', () => '%00"\\'],
  ])('is refused with 401 and its cookie removed if it is %s', async (_, change) => {
    const { signIn, renew, call } = nodeOf();
    const { cookie } = await signIn();
    const bad = `${NAME}=${change(cookie.slice(NAME.length + 1))}`;

    const { status, set, body } = await renew(bad);

    expect([status, body.code]).toEqual([401, 'unauthenticated']);
    expect(set).toBe(`${NAME}=; Max-Age=0; HttpOnly; SameSite=Strict`);
    expect((await call('GET', '/token', { cookie: bad })).status).toBe(401);
    expect((await call('DELETE', '/session', { cookie: bad, ...SCRIPT })).status).toBe(401);
    expect(JSON.stringify(body)).not.toContain(cookie.slice(-20));
  });

  it('does not lose its cookie to a call for another account, or a wrong password', async () => {
    const { signIn, call } = nodeOf();
    const { cookie } = await signIn();
    const headers = { cookie, 'x-tokenwright-account': 'of-somebody-else' };

    const other = await call('GET', '/session', headers);
    const wrong = await signIn('ada', { ...SCRIPT, cookie }, 'wrong');

    expect([other.status, other.set]).toEqual([401, null]);
    expect([wrong.status, wrong.set]).toEqual([401, null]);
  });
});

describe('signing out', () => {
  it('ends the session, also for a copy of its cookie, and removes it', async () => {
    const { signIn, list, renew, signOut } = nodeOf();
    const [one, another] = [await signIn(), await signIn()];

    const { status, set } = await signOut(one.cookie);

    expect([status, set]).toEqual([200, `${NAME}=; Max-Age=0; HttpOnly; SameSite=Strict`]);
    expect([await list(one.cookie), (await renew(one.cookie)).status]).toEqual([401, 401]);
    expect((await signOut(one.cookie)).status).toBe(401);
    expect(await list(another.cookie)).toBe(200);
  });

  it('works for a cookie that is due', async () => {
    const { signIn, renew, signOut, clock } = nodeOf();
    const { cookie } = await signIn();
    clock.advance(3600);

    expect((await signOut(cookie)).status).toBe(200);
    expect((await renew(cookie)).status).toBe(401);
  });

  it('leaves a copy at most 15 minutes in another process, or after a restart', async () => {
    const one = nodeOf();
    const other = nodeOf({ clock: one.clock, store: one.store });
    const { cookie } = await one.signIn();
    one.clock.advance(COOKIE_MS / 1000);
    const copy = (await other.renew(cookie)).cookie;
    expect([await one.list(copy), await other.list(copy)]).toEqual([200, 200]);

    await one.signOut(copy);

    expect([await one.list(copy), await other.list(copy)]).toEqual([401, 200]);
    const restarted = nodeOf({ clock: one.clock, store: one.store });
    expect(await restarted.list(copy)).toBe(200);
    one.clock.advance(COOKIE_MS / 1000);
    for (const node of [one, other, restarted]) {
      expect([await node.list(copy), (await node.renew(copy)).status]).toEqual([401, 401]);
      // Nor with a value that was due before.
      expect((await node.renew(cookie)).status).toBe(401);
    }
  });

  it('fails and ends nothing while the store is down', async () => {
    const clock = manualClock();
    const store = new MemoryTokenStore({ clock });
    let isDown = false;
    const leases = {
      take: async (wants: Parameters<typeof store.leases.take>[0]) => {
        if (isDown) throw new TokenError('store_unavailable', 'down');
        return store.leases.take(wants);
      },
    };
    const { signIn, list, renew, signOut } = nodeOf({
      clock,
      store,
      sessions: new Sessions({ leases, clock }),
    });
    const { cookie } = await signIn();
    isDown = true;

    const { status, set } = await signOut(cookie);

    expect([status, set]).toEqual([503, null]);
    expect(await list(cookie)).toBe(200);
    clock.advance(COOKIE_MS / 1000);
    expect((await renew(cookie)).status).toBe(503);
    isDown = false;
    expect((await renew(cookie)).status).toBe(200);
    expect((await signOut(cookie)).status).toBe(200);
  });

  it('stays effective for more sessions than the process remembers', async () => {
    const { signIn, list, renew, signOut, sessions, clock } = nodeOf();
    const { cookie } = await signIn();
    await signOut(cookie);
    clock.advance(120);
    const others = { header: () => undefined } as never;
    const { cookies } = ownForms.get(sessions.of(KEYS, ACCOUNTS)) ?? {};
    for (let count = 0; count < MAX_ENDED_SESSIONS; count += 1) {
      const begun = cookies?.begin('ada', others).cookie?.split(';')[0] ?? '';
      await cookies?.end({
        header: (name: string) => (name === 'cookie' ? begun : undefined),
      } as never);
    }
    clock.advance(1);
    const later = await signIn();

    expect([await list(cookie), (await renew(cookie)).status]).toEqual([401, 401]);
    expect(await list(later.cookie)).toBe(200);
  });
});

describe('sessions of several processes', () => {
  it('work in all of them with the same keys and accounts, and need the same', async () => {
    const one = nodeOf();
    const { cookie } = await one.signIn();
    const shared = { clock: one.clock, store: one.store };
    const [key] = KEYS as [KeyOptions];
    const rotated = [generateKey('k2'), { ...key, status: 'verify' as const }];
    const changed = ACCOUNTS.map((account) => ({ ...account, passwordHash: OTHER_HASH }));
    const statusAt = (options: NodeOptions) => nodeOf({ ...shared, ...options }).list(cookie);

    expect(await statusAt({})).toBe(200);
    expect(await statusAt({ keys: rotated })).toBe(200);
    expect(await statusAt({ keys: [generateKey('k1')] })).toBe(401);
    expect(await statusAt({ keys: [generateKey('k2')] })).toBe(401);
    expect(await statusAt({ accounts: changed })).toBe(401);
    expect(await statusAt({ accounts: ACCOUNTS.slice(1) })).toBe(401);
    const moved = [{ username: 'ada', account: 'eve', passwordHash: HASH }];
    expect(await statusAt({ accounts: moved })).toBe(401);
  });

  it('outlive a new salt for the same password, not another password', async () => {
    const marked = (mark: string) => [{ username: 'ada', passwordHash: OTHER_HASH, mark }];
    const one = nodeOf({ accounts: [{ username: 'ada', passwordHash: HASH, mark: 'a' }] });
    const { cookie } = await one.signIn();
    const shared = { clock: one.clock, store: one.store };

    expect(await nodeOf({ ...shared, accounts: marked('a') }).list(cookie)).toBe(200);
    expect(await nodeOf({ ...shared, accounts: marked('b') }).list(cookie)).toBe(401);
  });

  it('end with a reload of the same process that changes the password', async () => {
    const one = nodeOf();
    const { cookie } = await one.signIn();
    const accounts = [{ username: 'ada', passwordHash: OTHER_HASH }];

    expect(await nodeOf({ ...one, accounts }).list(cookie)).toBe(401);
    expect(await nodeOf({ ...one }).list(cookie)).toBe(200);
  });

  it('agree about time to a minute: a value of the future is due', async () => {
    const one = nodeOf();
    const fast = manualClock(new Date(one.clock.now().getTime() + 50 * MINUTE));
    const nearly = manualClock(new Date(one.clock.now().getTime() + 50_000));
    const store = one.store;
    const begunFast = await nodeOf({ clock: fast, store }).signIn();
    const begunNearly = await nodeOf({ clock: nearly, store }).signIn();

    expect(await one.list(begunNearly.cookie)).toBe(200);
    expect(await one.list(begunFast.cookie)).toBe(401);
    expect((await one.renew(begunFast.cookie)).status).toBe(401);
    const { cookie } = await one.signIn();
    const renewedFast = (await nodeOf({ clock: fast, store }).renew(cookie)).cookie;
    expect(renewedFast).not.toBe('');
    expect(await one.list(renewedFast)).toBe(401);
    expect(await one.list((await one.renew(renewedFast)).cookie)).toBe(200);
  });
});

describe('a clock that steps back', () => {
  it('does not make a session longer', async () => {
    const { signIn, list, renew, clock } = nodeOf();
    const { cookie } = await signIn();
    clock.advance(SESSION_MS / 1000);
    expect((await renew(cookie)).status).toBe(401);

    clock.advance(-3600);

    expect([await list(cookie), (await renew(cookie)).status]).toEqual([401, 401]);
  });
});
