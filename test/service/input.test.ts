import { describe, expect, it } from 'vitest';
import { ScopeCatalog } from '../../src/scope/index.ts';
import type { TokenService } from '../../src/service.ts';
import { codeOf, NO_ID, OTHER_SCOPE, refusalOf, SCOPE, setUp } from '../support.ts';

const ISSUE = { account: 'acme', scopes: [SCOPE] };
const BAD_DATE = new Date(Number.NaN);

/** The error message of `issue` when these members are added to valid ones. */
async function messageFor(members: object): Promise<string> {
  const { tokens } = setUp({ lifetime: { maxSeconds: 60 } });
  return (await refusalOf(tokens.issue({ ...ISSUE, ...members } as typeof ISSUE))).message;
}

function hintIn(message: string): string | undefined {
  return /did you mean (\w+)\?/.exec(message)?.[1];
}

describe('an unknown member', () => {
  it.each<[string, string | undefined]>([
    ['ttl', 'ttlSeconds'],
    ['TTL', 'ttlSeconds'],
    ['tt', undefined],
    ['metadataOfTheToken', 'metadata'],
    ['ofTheTokenMetadata', undefined],
    ['nmae', 'name'],
    ['enma', undefined],
    ['wxtadata', 'metadata'],
    ['wxyadata', undefined],
    ['x'.repeat(100), undefined],
  ])('%s gets the suggestion %s', async (name, meant) => {
    expect(hintIn(await messageFor({ [name]: 1 }))).toBe(meant);
  });

  it('gets a suggestion only if it is among the first twenty', async () => {
    const far = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`zzzzzzzz${i}`, 1]));

    expect(hintIn(await messageFor({ ...far(19), ttl: 1 }))).toBe('ttlSeconds');
    expect(hintIn(await messageFor({ ...far(20), ttl: 1 }))).toBeUndefined();
  });

  it.each<[name: string, shown: string]>([
    ['zzzzzzzz', '"zzzzzzzz"'],
    ['x'.repeat(32), `"${'x'.repeat(32)}"`],
    ['hunter7', '(its name is not shown)'],
  ])('%j is quoted as %s, with a list of the known members', async (name, quoted) => {
    const known =
      'account, scopes, ttlSeconds, expiresIn, expiresAt, name, metadata, limits, createdBy, purpose';

    expect(await messageFor({ [name]: 1 })).toBe(`unknown member ${quoted} (known: ${known})`);
  });

  it('is never quoted if its name is a token value', async () => {
    const { tokens } = setUp();
    const { value } = await tokens.issue(ISSUE);

    expect(await messageFor({ [value]: 1 })).toMatch(/^unknown member \(its name is not shown/);
  });

  it('is the one named if it has a suggestion, even after others without one', async () => {
    const message = await messageFor({ zzzzzzzz: 1, ttl: 1 });

    expect(message).toMatch(/^unknown member "ttl"; did you mean ttlSeconds\? /);
  });
});

describe('invalid input', () => {
  const { tokens, clock } = setUp();
  const now = clock.now();
  const year = 31_536_000;
  const latest = now.getTime() / 1000 + year;
  const seconds = 'ttlSeconds must be a whole number of seconds from 1 to 31536000';
  const expiry = 'expiresAt must be later than now, and at most 365 days from now';
  const account =
    'account must be 1 to 255 bytes of text without control characters, such as "acme"';
  const name = 'name must be 1 to 200 characters without control characters';
  const list = 'a list of scopes is required, as ["GET:shop.example/orders"]';
  const lifetime = { member: 'ttlSeconds', min: 1, max: year };
  const issue = (members: object) => tokens.issue({ ...ISSUE, ...members } as typeof ISSUE);
  const patch = (change: object) => tokens.patch('acme', NO_ID, change);
  const rotate = (options: object) => tokens.rotate('acme', NO_ID, options);
  const asked = (input: unknown) => tokens.list(input as { account: string });
  const metadata = { member: 'metadata' };

  it.each<[call: () => Promise<unknown>, message: string, details?: object]>([
    [() => issue({ ttlSeconds: '30d' }), `${seconds}; got the text "30d": give 2592000`, lifetime],
    [
      () => issue({ ttlSeconds: '3600' }),
      `${seconds}; got the text "3600": give the number 3600 without quotes`,
      lifetime,
    ],
    [() => issue({ ttlSeconds: 'my password' }), `${seconds}; got a text`, lifetime],
    [() => issue({ ttlSeconds: Number.NaN }), `${seconds}; got NaN`, lifetime],
    [() => issue({ ttlSeconds: 1.5 }), `${seconds}; got 1.5`, lifetime],
    [() => issue({ ttlSeconds: 0 }), `${seconds}; got 0`, lifetime],
    [() => issue({ ttlSeconds: null }), `${seconds}; got null`, lifetime],
    [
      () => issue({ ttlSeconds: 900 * 86_400 }),
      'ttlSeconds may be at most 365 days (31536000 s); you asked for 900 days',
      lifetime,
    ],
    [
      () => patch({ expiresAt: new Date(0) }),
      `${expiry}; got 1970-01-01T00:00:00Z (0 in UNIX seconds)`,
      { member: 'expiresAt', max: latest },
    ],
    [
      () => patch({ expiresAt: '2030-01-01' }),
      'expiresAt must be a valid Date; got the text "2030-01-01": give new Date("2030-01-01")',
      { member: 'expiresAt' },
    ],
    [
      () => patch({ removeScopes: 'x' }),
      `removeScopes: ${list}; got a text: put it into a list`,
      { member: 'removeScopes' },
    ],
    [() => patch({ addScopes: [] }), `addScopes: ${list}`, { member: 'addScopes' }],
    [
      () => rotate({ graceSeconds: 400 * 86_400 }),
      'graceSeconds may be at most 365 days (31536000 s); you asked for 400 days',
      { member: 'graceSeconds', min: 0, max: year },
    ],
    [
      () => rotate({ ifVersion: 0 }),
      'ifVersion must be a whole number of 1 or more; got 0',
      { member: 'ifVersion' },
    ],
    [
      () => issue({ limits: { uses: 0 } }),
      'limits.uses must be a whole number of 1 or more; got 0',
      { member: 'limits.uses' },
    ],
    [
      () => rotate({ grace: 1 }),
      'unknown member "grace"; did you mean graceSeconds? (known: activate, graceSeconds, cancel, endDerived, ifVersion)',
      { unknown: 'grace', suggestion: 'graceSeconds' },
    ],
    [
      () => asked('ada'),
      'list takes an object { account, scope, match, state, name, parent, domain, unused, createdBy, sort, limit, maxBytes, cursor }; got a text',
    ],
    [() => asked([]), expect.stringMatching(/^list takes an object \{.*; got an empty list$/)],
    [
      () => asked({ account: 'acme', limit: 1001 }),
      'limit must be a whole number from 1 to 1000; got 1001',
      { member: 'limit', min: 1, max: 1000 },
    ],
    [
      () => asked({ account: 'acme', scope: 'zzz' }),
      expect.stringMatching(/^scope: "zzz" is not a scope/),
      { member: 'scope' },
    ],
    [
      () => asked({ account: 'acme', cursor: 'x' }),
      expect.stringMatching(/^cursor must be one that an earlier page gave/),
      { member: 'cursor' },
    ],
    [() => tokens.purge(undefined as never), expect.stringMatching(/^purge takes an object/)],
    [
      () => issue({ account: 7 }),
      `${account}; got a number: give String(id)`,
      { member: 'account' },
    ],
    [() => tokens.get(7 as never, NO_ID), `${account}; got a number: give String(id)`],
    [() => issue({ account: '' }), `${account}; got an empty text`],
    [() => issue({ account: 'é'.repeat(128) }), `${account}; got 256 bytes`],
    [() => issue({ account: 'a\n' }), account],
    [() => issue({ name: 'x'.repeat(201) }), `${name}; got 201`, { member: 'name' }],
    [() => issue({ name: 7 }), `${name}; got 7`],
    [
      () => issue({ metadata: { a: undefined } }),
      'metadata.a must be JSON; got undefined: leave it out, or give null',
      metadata,
    ],
    [
      () => issue({ metadata: { a: { d: [1, new Date(0)] } } }),
      'metadata.a.d.1 must be JSON; got 1970-01-01T00:00:00Z (0 in UNIX seconds): give its toISOString()',
      metadata,
    ],
    [
      () => issue({ metadata: { a: Number.NaN } }),
      'metadata.a must be JSON; got NaN: give null or a text',
      metadata,
    ],
    [
      () => issue({ metadata: { a: 1n } }),
      'metadata.a must be JSON; got a bigint: give String(value)',
      metadata,
    ],
    [
      () => issue({ metadata: { ['x'.repeat(33)]: undefined } }),
      'metadata: a member must be JSON; got undefined: leave it out, or give null',
      metadata,
    ],
    [
      () => issue({ metadata: new Map() }),
      'metadata must be JSON; got a Map: give Object.fromEntries(map)',
      metadata,
    ],
    [() => issue({ metadata: [1] }), 'metadata must be a JSON object; got a list', metadata],
    [
      () => issue({ metadata: { a: 'x'.repeat(4089) } }),
      'metadata may take at most 4096 bytes as JSON; got 4097',
      metadata,
    ],
  ])('%s fails with the message: %s', async (call, message, details) => {
    const error = await refusalOf(call());

    expect(error.message).toEqual(message);
    if (details !== undefined) expect(error.details).toEqual(details);
  });

  it('does not include the largest values allowed (the control)', async () => {
    const good = { ttlSeconds: year, name: 'x'.repeat(200), account: 'é'.repeat(127) };

    expect(await issue({ ...good, metadata: { a: 'x'.repeat(4088) } })).toMatchObject({
      version: 1,
    });
  });
});

describe('input with several faults', () => {
  it.each<[string, (tokens: TokenService) => Promise<unknown>, string]>([
    [
      'scopes before the lifetime',
      (t) => t.issue({ ...ISSUE, ttlSeconds: 0, scopes: ['x'] }),
      'invalid_scope',
    ],
    [
      'a name before the lifetime',
      (t) => t.issue({ ...ISSUE, ttlSeconds: 0, name: '' }),
      'invalid_request',
    ],
    [
      'scopes before the expiry',
      (t) => t.modify('acme', NO_ID, { expiresAt: BAD_DATE, scopes: ['x'] }),
      'invalid_scope',
    ],
    [
      'an unknown member before the expiry',
      (t) => t.modify('acme', NO_ID, { expiresAt: BAD_DATE, scopes: ['x'], x: 1 } as never),
      'invalid_request',
    ],
    [
      'added scopes before the expiry',
      (t) => t.patch('acme', NO_ID, { expiresAt: BAD_DATE, addScopes: ['x'] }),
      'invalid_scope',
    ],
    [
      'a name before the expiry',
      (t) => t.patch('acme', NO_ID, { expiresAt: BAD_DATE, name: '' }),
      'invalid_request',
    ],
    [
      'the expiry before the store is read',
      (t) => t.patch('acme', NO_ID, { expiresAt: BAD_DATE, name: 'x' }),
      'invalid_expire',
    ],
  ])('is refused for %s', async (_, call, code) => {
    expect(await codeOf(call(setUp().tokens))).toBe(code);
  });
});

describe('the details of refused scopes', () => {
  const repaired = { scope: 'get:shop.example/orders', code: 'method_invalid', suggestion: SCOPE };
  const known = ScopeCatalog.from([SCOPE]);

  it.each<[string, string[], object | undefined]>([
    [
      'a scope that can be repaired',
      [SCOPE, repaired.scope],
      { scopes: [repaired.scope], refused: [repaired], member: 'scopes' },
    ],
    [
      'a scope that the catalog does not know',
      [OTHER_SCOPE, SCOPE],
      {
        scopes: [OTHER_SCOPE],
        refused: [{ scope: OTHER_SCOPE, nearest: [SCOPE] }],
        member: 'scopes',
      },
    ],
    ['no scopes', [], { member: 'scopes' }],
  ])('name the member, and each refused scope, of a list with %s', async (_, scopes, details) => {
    const { tokens } = setUp({ catalog: known });
    const error = await refusalOf(tokens.issue({ account: 'acme', scopes }));

    expect(error.details).toEqual(details);
  });

  it.each<[string, object | undefined]>([
    [repaired.scope, { suggestion: SCOPE }],
    ['nonsense', undefined],
  ])('for the single scope %s are %o', async (scope, details) => {
    const { tokens } = setUp();
    const listed = await refusalOf(tokens.list({ account: 'acme', scope }));
    const verified = await refusalOf(tokens.verify('malformed', { scope }));

    expect(listed.details).toEqual({ ...details, member: 'scope' });
    expect(verified.details).toEqual(details);
  });
});
