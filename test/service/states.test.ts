import { describe, expect, it } from 'vitest';
import type { TokenEvent } from '../../src/events.ts';
import { isTokenError } from '../../src/index.ts';
import type { IssuedToken, Token } from '../../src/token/record.ts';
import { codeOf, OTHER_SCOPE, recordOf, SCOPE, type Setting, setUp } from '../support.ts';

const NEED = { scope: SCOPE };
const TTL = 60;

interface Given extends Setting {
  readonly token: IssuedToken;
}

/** Brings a token into a condition. The last two combine two changes. */
const CONDITIONS = {
  active: async () => {},
  suspended: async ({ tokens, token }: Given) => {
    await tokens.patch('acme', token.id, { suspended: true });
  },
  expired: async ({ clock }: Given) => clock.advance(TTL),
  revoked: async ({ tokens, token }: Given) => {
    await tokens.revoke('acme', token.id);
  },
  pending: async ({ tokens, token }: Given) => {
    await tokens.rotate('acme', token.id, { activate: 'first-use' });
  },
  'suspended, then expired': async (given: Given) => {
    await CONDITIONS.suspended(given);
    await CONDITIONS.expired(given);
  },
  'suspended, then revoked': async (given: Given) => {
    await CONDITIONS.suspended(given);
    await CONDITIONS.revoked(given);
  },
} as const satisfies Record<string, (given: Given) => Promise<unknown>>;

type Condition = keyof typeof CONDITIONS;

async function givenToken(condition: Condition): Promise<Given> {
  const setting = setUp({ usage: true, reveal: 'always' });
  const token = await setting.tokens.issue({
    account: 'acme',
    scopes: [SCOPE],
    ttlSeconds: TTL,
    name: 'ci',
  });
  const given = { ...setting, token };
  await CONDITIONS[condition](given);
  return given;
}

/** The answer of a call, or the code of its error. */
async function answerOf(call: Promise<unknown>): Promise<unknown> {
  try {
    return await call;
  } catch (error) {
    if (isTokenError(error)) return error.code;
    throw error;
  }
}

const stateIn = async (call: Promise<Token | undefined>) => (await call)?.state;
const countIn = async (call: Promise<{ tokens: Token[] }>) => (await call).tokens.length;

/**
 * The answers of each verb for a token in each condition, in this order: active, suspended, expired, revoked,
 * suspended and then expired, suspended and then revoked.
 */
type Call = (given: Given) => Promise<unknown>;
const ANSWERS: readonly (readonly [verb: string, call: Call, ...answers: readonly unknown[]])[] = [
  [
    'verify',
    async ({ tokens, token }) => (await tokens.verify(token.value, NEED)).reason,
    ...[undefined, 'suspended', 'expired', 'revoked', 'expired', 'revoked'],
  ],
  [
    'allows',
    ({ tokens, token }) => tokens.allows(token.value, NEED),
    ...[true, false, false, false, false, false],
  ],
  [
    'introspect',
    ({ tokens, token }) => stateIn(tokens.introspect(token.value)),
    ...['active', undefined, undefined, undefined, undefined, undefined],
  ],
  [
    'introspect with includeSuspended',
    ({ tokens, token }) => stateIn(tokens.introspect(token.value, { includeSuspended: true })),
    ...['active', 'suspended', undefined, undefined, undefined, undefined],
  ],
  [
    'explain',
    async ({ tokens, token }) => (await tokens.explain('acme', token.id, NEED)).reason,
    ...[undefined, 'suspended', 'expired', 'unknown', 'expired', 'unknown'],
  ],
  [
    'get',
    ({ tokens, token }) => stateIn(tokens.get('acme', token.id)),
    ...['active', 'suspended', 'expired', undefined, 'expired', undefined],
  ],
  [
    'get by value',
    ({ tokens, token }) => stateIn(tokens.get('acme', token.value)),
    ...['active', 'suspended', 'expired', undefined, 'expired', undefined],
  ],
  [
    'get with state: all',
    ({ tokens, token }) => stateIn(tokens.get('acme', token.id, { state: 'all' })),
    ...['active', 'suspended', 'expired', 'revoked', 'expired', 'revoked'],
  ],
  [
    'get with state: revoked',
    ({ tokens, token }) => stateIn(tokens.get('acme', token.value, { state: 'revoked' })),
    ...[undefined, undefined, undefined, 'revoked', undefined, 'revoked'],
  ],
  [
    'get with state: active',
    ({ tokens, token }) => stateIn(tokens.get('acme', token.id, { state: 'active' })),
    ...['active', undefined, undefined, undefined, undefined, undefined],
  ],
  [
    'get of another account',
    ({ tokens, token }) => stateIn(tokens.get('Acme', token.id, { state: 'all' })),
    ...[undefined, undefined, undefined, undefined, undefined, undefined],
  ],
  ['list', ({ tokens }) => countIn(tokens.list({ account: 'acme' })), ...[1, 0, 0, 0, 0, 0]],
  ...(['active', 'suspended', 'expired', 'revoked', 'all'] as const).map(
    (state, index) =>
      [
        `list with state: ${state}`,
        ({ tokens }: Given) => countIn(tokens.list({ account: 'acme', state })),
        ...([
          [1, 0, 0, 0, 0, 0],
          [0, 1, 0, 0, 0, 0],
          [0, 0, 1, 0, 1, 0],
          [0, 0, 0, 1, 0, 1],
          [1, 1, 1, 1, 1, 1],
        ][index] ?? []),
      ] as const,
  ),
  [
    'usage',
    async ({ tokens, token }) => (await tokens.usage('acme', token.id))?.uses,
    ...[0, 0, 0, undefined, 0, undefined],
  ],
  [
    'modify',
    ({ tokens, token }) => stateIn(tokens.modify('acme', token.id, { scopes: [OTHER_SCOPE] })),
    ...['active', 'suspended', 'token_expired', 'not_found', 'token_expired', 'not_found'],
  ],
  [
    'patch',
    ({ tokens, token }) => stateIn(tokens.patch('acme', token.id, { name: 'new', expiresIn: 99 })),
    ...['active', 'suspended', 'token_expired', 'not_found', 'token_expired', 'not_found'],
  ],
  [
    'suspend',
    ({ tokens, token }) => stateIn(tokens.patch('acme', token.id, { suspended: true })),
    ...['suspended', 'suspended', 'token_expired', 'not_found', 'token_expired', 'not_found'],
  ],
  [
    'resume',
    ({ tokens, token }) => stateIn(tokens.patch('acme', token.id, { suspended: false })),
    ...['active', 'active', 'token_expired', 'not_found', 'token_expired', 'not_found'],
  ],
  [
    'rotate',
    ({ tokens, token }) => stateIn(tokens.rotate('acme', token.id)),
    ...['active', 'suspended', 'token_expired', 'not_found', 'token_expired', 'not_found'],
  ],
  [
    'revoke',
    ({ tokens, token }) => tokens.revoke('acme', token.id),
    ...[true, true, true, false, true, false],
  ],
  ['revokeAll', ({ tokens }) => tokens.revokeAll('acme'), ...[1, 1, 1, 0, 1, 0]],
  [
    'purge',
    ({ tokens, clock }) => {
      clock.advance(0.001);
      return tokens.purge({ before: clock.now() });
    },
    ...[0, 0, 1, 1, 1, 1],
  ],
];

describe('a token that is active, suspended, expired or revoked', () => {
  const conditions: readonly Condition[] = [
    'active',
    'suspended',
    'expired',
    'revoked',
    'suspended, then expired',
    'suspended, then revoked',
  ];

  it.each(ANSWERS.map(([verb, call, ...answers]) => [verb, call, answers] as const))(
    'gets the right answer from %s in each state',
    async (_, call, answers) => {
      const found: unknown[] = [];
      for (const condition of conditions)
        found.push(await answerOf(call(await givenToken(condition))));

      expect(found).toEqual(answers);
      // A value that waits for its first use changes no answer about the old one.
      expect(await answerOf(call(await givenToken('pending')))).toEqual(answers[0]);
    },
  );

  it.each([
    ['active', 'quota_exceeded'],
    ['suspended', 'quota_exceeded'],
    ['expired', 'issued'],
    ['revoked', 'issued'],
  ] as const)(
    'if %s, lets another issue with a quota of one end in %s',
    async (condition, answer) => {
      const setting = setUp({ quotas: { tokensPerAccount: 1 } });
      const input = { account: 'acme', scopes: [SCOPE], ttlSeconds: TTL };
      const token = await setting.tokens.issue(input);
      await CONDITIONS[condition]({ ...setting, token });
      const again = await answerOf(setting.tokens.issue(input).then(() => 'issued'));

      expect(again).toBe(answer);
    },
  );
});

describe('suspending', () => {
  it('changes only the state, and resuming restores it', async () => {
    const { store, tokens, token, clock } = await givenToken('active');
    const before = await recordOf(store, token.id);
    clock.advance(1);
    const suspended = await tokens.patch('acme', token.id, { suspended: true });
    const kept = await recordOf(store, token.id);
    const resumed = await tokens.patch('acme', token.id, { suspended: false });

    expect(kept).toEqual({ ...before, version: 2, suspendedAt: clock.now() });
    expect(await recordOf(store, token.id)).toEqual({ ...before, version: 3 });
    expect(suspended).toEqual({ ...token, state: 'suspended', version: 2 });
    expect(resumed).toEqual({ ...token, version: 3 });
    expect((await tokens.verify(token.value, NEED)).ok).toBe(true);
  });

  it('a suspended token again keeps the first suspendedAt', async () => {
    const { store, tokens, token, clock } = await givenToken('suspended');
    const { suspendedAt } = await recordOf(store, token.id);
    clock.advance(1);
    await tokens.patch('acme', token.id, { suspended: true, name: 'other' });

    expect(await recordOf(store, token.id)).toMatchObject({ suspendedAt, name: 'other' });
  });

  it('also refuses the new value of a rotation, and the old one in its grace period', async () => {
    const { tokens, token } = await givenToken('suspended');
    const { value } = await tokens.rotate('acme', token.id, { graceSeconds: 10 });

    for (const each of [value, token.value]) {
      expect((await tokens.verify(each, NEED)).reason).toBe('suspended');
    }
    await tokens.patch('acme', token.id, { suspended: false });
    for (const each of [value, token.value]) {
      expect((await tokens.verify(each, NEED)).ok).toBe(true);
    }
  });

  it('prevents the first use of a value that waits for it', async () => {
    const { store, tokens, token } = await givenToken('pending');
    const { value } = await tokens.rotate('acme', token.id, { activate: 'first-use' });
    await tokens.patch('acme', token.id, { suspended: true });

    expect((await tokens.verify(value, NEED)).reason).toBe('suspended');
    expect((await recordOf(store, token.id)).pending).toBeDefined();
    await tokens.patch('acme', token.id, { suspended: false });
    expect((await tokens.verify(value, NEED)).ok).toBe(true);
  });

  it('does not pause the lifetime: the token still expires', async () => {
    const { tokens, token, clock } = await givenToken('suspended');
    clock.advance(TTL);

    expect(await codeOf(tokens.patch('acme', token.id, { suspended: false }))).toBe(
      'token_expired',
    );
    expect((await tokens.verify(token.value, NEED)).reason).toBe('expired');
  });

  it('can be combined with other changes, ifVersion and dryRun', async () => {
    const { tokens, token } = await givenToken('active');
    const change = { suspended: true, addScopes: [OTHER_SCOPE], name: 'off' };
    const tried = await tokens.patch('acme', token.id, change, { dryRun: true });
    expect(tried).toMatchObject({ state: 'suspended', diff: { added: [OTHER_SCOPE] } });
    expect((await tokens.verify(token.value, NEED)).ok).toBe(true);
    const conflict = tokens.patch('acme', token.id, change, { ifVersion: 2 });
    expect(await codeOf(conflict)).toBe('version_conflict');
    const changed = await tokens.patch('acme', token.id, change, { ifVersion: 1 });

    expect(changed).toMatchObject({ state: 'suspended', name: 'off', version: 2 });
    expect(changed.scopes).toContain(OTHER_SCOPE);
  });

  it('does not need the catalog, so it works while the catalog is down', async () => {
    const { tokens, store } = setUp();
    const { id } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const other = setUp({
      store: store.inner,
      catalog: () => Promise.reject(new Error('down')),
    }).tokens;

    expect((await other.patch('acme', id, { suspended: true })).state).toBe('suspended');
    expect(await codeOf(other.patch('acme', id, { addScopes: [SCOPE] }))).toBe('store_unavailable');
  });

  it.each([[1], ['true'], [null], [{}]])('refuses suspended: %j', async (suspended) => {
    const { tokens, token } = await givenToken('active');

    expect(await codeOf(tokens.patch('acme', token.id, { suspended } as never))).toBe(
      'invalid_request',
    );
  });

  it('emits suspended after modified, and resuming emits resumed, once each', async () => {
    const events: TokenEvent[] = [];
    const { tokens } = setUp({ onEvent: (event) => events.push(event) });
    const { id, value } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });
    const typesOf = async (call: Promise<unknown>) => {
      events.length = 0;
      await call;
      return events.map(({ type }) => type);
    };

    const patch = (change: object, options = {}) => tokens.patch('acme', id, change, options);
    expect(await typesOf(patch({ suspended: true }))).toEqual(['modified', 'suspended']);
    expect(events[1]).toMatchObject({ id, account: 'acme' });
    expect(await typesOf(patch({ suspended: true }))).toEqual(['modified']);
    expect(await typesOf(patch({ name: 'x' }))).toEqual(['modified']);
    expect(await typesOf(tokens.verify(value, NEED))).toEqual(['refused']);
    expect(events).toMatchObject([{ reason: 'suspended', id, account: 'acme' }]);
    expect(await typesOf(patch({ suspended: false }, { dryRun: true }))).toEqual([]);
    expect(await typesOf(patch({ suspended: false }))).toEqual(['modified', 'resumed']);
    expect(await typesOf(patch({ suspended: false }))).toEqual(['modified']);
  });

  it('makes refused uses count as refusals', async () => {
    const { tokens, token } = await givenToken('suspended');
    await tokens.verify(token.value, NEED);

    expect(await tokens.usage('acme', token.id)).toMatchObject({ uses: 0, refusals: 1 });
  });
});

describe('a revoked token that is shown', () => {
  it('includes neither its value nor its scopes', async () => {
    const { tokens, token } = await givenToken('revoked');
    const [listed] = (await tokens.list({ account: 'acme', state: 'all' })).tokens;
    const shown = await tokens.get('acme', token.id, { state: 'revoked' });

    expect(token.value).toBeDefined();
    const { value: _, ...rest } = token;
    expect(listed).toEqual({ ...rest, scopes: [], state: 'revoked' });
    expect(shown).toEqual(listed);
  });

  it('is not found after a purge', async () => {
    const { tokens, token, clock } = await givenToken('revoked');
    clock.advance(1);
    await tokens.purge({ before: clock.now() });

    expect(await tokens.get('acme', token.id, { state: 'all' })).toBeUndefined();
    expect((await tokens.list({ account: 'acme', state: 'all' })).tokens).toEqual([]);
  });

  it.each([['gone'], [''], [null], [1], [['all']]])(
    'cannot be asked for with state: %j',
    async (state) => {
      const { tokens, token } = await givenToken('revoked');

      for (const call of [
        () => tokens.get('acme', token.id, { state } as never),
        () => tokens.list({ account: 'acme', state } as never),
      ]) {
        expect(await codeOf(call)).toBe('invalid_request');
      }
    },
  );
});
