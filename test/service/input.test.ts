import { describe, expect, it } from 'vitest';
import { ScopeCatalog } from '../../src/scope/index.ts';
import type { TokenService } from '../../src/service.ts';
import { codeOf, NO_ID, OTHER_SCOPE, refusalOf, SCOPE, setUp } from '../support.ts';

const ISSUE = { account: 'acme', scopes: [SCOPE] };
const BAD_DATE = new Date(Number.NaN);

/** What `issue` says when these members stand beside good ones. */
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
    ['wxyzdata', 'metadata'],
    ['vwxyzata', undefined],
    ['x'.repeat(100), undefined],
  ])('%s is taken for %s', async (name, meant) => {
    expect(hintIn(await messageFor({ [name]: 1 }))).toBe(meant);
  });

  it('gets a hint when one of the first twenty is like a known one', async () => {
    const far = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`zzzzzzzz${i}`, 1]));

    expect(hintIn(await messageFor({ ...far(19), ttl: 1 }))).toBe('ttlSeconds');
    expect(hintIn(await messageFor({ ...far(20), ttl: 1 }))).toBeUndefined();
  });

  it('is never named; those that are known are', async () => {
    const known = 'account, scopes, ttlSeconds, name, metadata';
    const { tokens } = setUp();
    const noObject = await refusalOf(tokens.issue('acme' as never));

    expect(await messageFor({ zzzzzzzz: 1 })).toBe(`a member is unknown (known: ${known})`);
    expect(noObject.message).toBe(`an object is required, with ${known}`);
  });
});

describe('a lifetime that is refused', () => {
  it.each<[unknown, boolean]>([
    ['30', false],
    [1.5, false],
    [0, false],
    [-1000, false],
    [61, false],
    [59_999, false],
    [60_000, true],
    [60_001, false],
  ])(
    '%s is told the rule, and that it looks like milliseconds: %s',
    async (ttlSeconds, isHinted) => {
      const rule = 'the lifetime must be a whole number of seconds from 1 to 60';
      const hint = '; this one looks like milliseconds';

      expect(await messageFor({ ttlSeconds })).toBe(isHinted ? rule + hint : rule);
    },
  );
});

describe('of several faults', () => {
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
      'the expiry before what the store knows',
      (t) => t.patch('acme', NO_ID, { expiresAt: BAD_DATE, name: 'x' }),
      'invalid_expire',
    ],
  ])('%s', async (_, call, code) => {
    expect(await codeOf(call(setUp().tokens))).toBe(code);
  });
});

describe('the details of refused scopes', () => {
  const repaired = { scope: 'get:shop.example/orders', code: 'method_invalid', suggestion: SCOPE };
  const known = ScopeCatalog.from([SCOPE]);

  it.each<[string, string[], object | undefined]>([
    [
      'one that can be repaired',
      [SCOPE, repaired.scope],
      { scopes: [repaired.scope], refused: [repaired] },
    ],
    [
      'one that the catalog does not know',
      [OTHER_SCOPE, SCOPE],
      { scopes: [OTHER_SCOPE], refused: [{ scope: OTHER_SCOPE, nearest: [SCOPE] }] },
    ],
    ['none', [], undefined],
  ])('name, of a list with %s, what is wrong with each', async (_, scopes, details) => {
    const { tokens } = setUp({ catalog: known });
    const error = await refusalOf(tokens.issue({ account: 'acme', scopes }));

    expect(error.details).toEqual(details);
  });

  it.each<[string, object | undefined]>([
    [repaired.scope, { suggestion: SCOPE }],
    ['nonsense', undefined],
  ])('of the one scope %s are %o', async (scope, details) => {
    const { tokens } = setUp();
    const errors = await Promise.all([
      refusalOf(tokens.list({ account: 'acme', scope })),
      refusalOf(tokens.verify('malformed', { scope })),
    ]);

    for (const error of errors) expect(error.details).toEqual(details);
  });
});
