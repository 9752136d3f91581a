import { describe, expect, it } from 'vitest';
import { expectFailure, ONE_YEAR, ORDERS, START, setUp } from './support.ts';

const SCOPES = [ORDERS];
const DAY = 86_400;

type Call = [method: string, path: string, body: object];

const CREATE: Call = ['POST', '/token', { scopes: SCOPES }];

/** The three calls that set the lifetime of a token. */
const CALLS: Call[] = [
  CREATE,
  ['PUT', '/token/ID', { scopes: SCOPES }],
  ['PATCH', '/token/ID', {}],
];

/** Sends a lifetime with a call; returns the answer and the expiry of its token. */
async function sent([method, path, body]: Call, lifetime: object, options = {}) {
  const { call, issue } = setUp(options);
  const { id } = await issue();
  const answer = await call(method, path.replace('ID', id), { json: { ...body, ...lifetime } });
  const [token = answer.body] = (answer.body['data'] ?? []) as { expire?: number }[];
  return { answer, expire: token['expire'] };
}

describe.each(CALLS)('%s %s', (...call) => {
  it.each([
    ['30d', 30 * DAY],
    ['365d', ONE_YEAR],
    ['12h', 12 * 3600],
    ['30m', 1800],
    ['1s', 1],
    ['000000045s', 45],
    [3600, 3600],
    [1, 1],
    [ONE_YEAR, ONE_YEAR],
  ])('accepts expiresIn %j', async (expiresIn, seconds) => {
    const { answer, expire } = await sent(call, { expiresIn });

    expect(answer.status).toBe(200);
    expect(expire).toBe(START + seconds);
  });

  it.each([
    ['2100-01-02T00:00:00Z', DAY],
    ['2100-01-02T00:00:00.000Z', DAY],
    ['2100-01-02T00:00:01.999999Z', DAY + 1],
    ['2100-01-02T02:00:00+02:00', DAY],
    ['2100-01-01T19:00:00-05:00', DAY],
    ['2101-01-01T00:00:00Z', ONE_YEAR],
  ])('accepts expire %j', async (text, seconds) => {
    const { answer, expire } = await sent(call, { expire: text });

    expect(answer.status).toBe(200);
    expect(expire).toBe(START + seconds);
  });

  it.each([
    [{ expiresIn: '30d', expire: '2100-01-02T00:00:00Z' }, 'expire'],
    [{ expiresIn: 60, expire: 'x' }, 'expire'],
    [{ expiresIn: null, expire: null }, 'expire'],
  ])('refuses two lifetimes in one body: %j', async (lifetimes, member) => {
    const { answer } = await sent(call, lifetimes);

    expectFailure(answer, 'invalid_request');
    expect(answer.body['details']).toEqual({ member });
  });

  it('enforces the longest lifetime that the service allows', async () => {
    const options = { lifetime: { maxSeconds: 90 * DAY } };
    const last = new Date((START + 90 * DAY) * 1000).toISOString();
    const late = new Date((START + 90 * DAY) * 1000 + 1).toISOString();

    expect((await sent(call, { expiresIn: '90d' }, options)).expire).toBe(START + 90 * DAY);
    expect((await sent(call, { expire: last }, options)).expire).toBe(START + 90 * DAY);

    const { answer } = await sent(call, { expiresIn: '91d' }, options);
    expectFailure(answer, 'invalid_ttl');
    expect(answer.body['message']).toBe(
      'expiresIn may be at most 90 days (7776000 s); you asked for 91 days',
    );
    expect(answer.body['details']).toEqual({ member: 'expiresIn', min: 1, max: 90 * DAY });
    expectFailure((await sent(call, { expire: late }, options)).answer, 'invalid_expire');
  });

  it.each([
    [
      { expiresIn: '1.5h' },
      'expiresIn must be at least 1 second, as a whole number with its unit (s, m, h or d), such as "30d", or as a number of seconds; got the text "1.5h": write "90m"',
    ],
    [{ expiresIn: '3600' }, expect.stringMatching(/"3600": for seconds give "3600s" or 3600$/)],
    [{ expiresIn: 'CaNaRy7' }, expect.stringMatching(/; got a text$/)],
    [
      { expire: '2100-06-01T12:00:00' },
      expect.stringMatching(
        /^expire must be .*a date-time with its zone, such as "2027-01-31T12:00:00Z"; got the text "2100-06-01T12:00:00"$/,
      ),
    ],
    [
      { expire: '2099-01-01T00:00:00Z' },
      expect.stringMatching(/^expire must be later than now, .*; got 2099-01-01T00:00:00Z/),
    ],
  ])('names the member in the message about %j', async (lifetime, message) => {
    const { answer } = await sent(call, lifetime);

    expect(answer.status).toBe(422);
    expect(answer.body['message']).toEqual(message);
    expect(answer.body['details']).toMatchObject({ member: Object.keys(lifetime)[0] });
  });
});

describe('POST /token', () => {
  it.each([
    [{ ttl: 60, expiresIn: '1m' }, 'expiresIn'],
    [{ ttl: 60, expire: '2100-01-02T00:00:00Z' }, 'expire'],
    [{ ttl: null, expiresIn: null }, 'expiresIn'],
  ])('refuses %j because it gives two lifetimes', async (lifetimes, member) => {
    for (const options of [{}, { acceptLegacyBody: true }]) {
      const { answer } = await sent(CREATE, lifetimes, options);

      expectFailure(answer, 'invalid_request');
      expect(answer.body['details']).toEqual({ member });
    }
  });

  it('refuses an expire that is not a text, because a number could be a lifetime', async () => {
    for (const expire of [60, START + 60, null, [START + 60]]) {
      const { answer } = await sent(CREATE, { expire });
      expectFailure(answer, 'invalid_request');
      expect(answer.body['message']).toMatch(/give ttl in seconds, expiresIn .* or a date-time/);
      expect(answer.body['details']).toEqual({ member: 'expire' });
    }
  });

  it('accepts expire as seconds and as a date-time with acceptLegacyBody', async () => {
    const options = { acceptLegacyBody: true };
    const text = '2100-01-02T00:00:00Z';

    expect((await sent(CREATE, { expire: 60 }, options)).expire).toBe(START + 60);
    expect((await sent(CREATE, { expire: text }, options)).expire).toBe(START + DAY);
    expect((await sent(CREATE, { expiresIn: '1d' }, options)).expire).toBe(START + DAY);
    const { answer } = await sent(CREATE, { expire: '2100-01-02' }, options);
    expectFailure(answer, 'invalid_expire');
  });
});

it.each([
  ['expires_in', 'expiresIn'],
  ['expiresin', 'expiresIn'],
  ['expires-in', 'expiresIn'],
  ['expiry', 'expire'],
  ['expiresAt', 'expire'],
])('the error about the unknown member %s suggests %s', async (name, nearest) => {
  for (const call of CALLS) {
    const { answer } = await sent(call, { [name]: '30d' });

    expectFailure(answer, 'invalid_request');
    expect(answer.body['message']).toContain(`did you mean ${nearest}?`);
  }
});
