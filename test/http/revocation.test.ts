import { describe, expect, it } from 'vitest';
import { TokenError, type TokenErrorCode } from '../../src/index.ts';
import { RecordingStore } from '../support.ts';
import {
  asForm,
  basic,
  CANARY,
  type CallOptions,
  expectFailure,
  expectOAuthFailure,
  ORDERS,
  type SetUpOptions,
  setUp,
} from './support.ts';

/** A service with revocation, and a call that revokes by value. */
function setUpRevocation(options: SetUpOptions = {}) {
  const store = new RecordingStore();
  const setup = setUp({ revocation: true, store, ...options });
  const revoke = (form: Parameters<typeof asForm>[0], more: CallOptions = {}) =>
    setup.call('POST', '/revoke', { as: null, ...asForm(form), ...more });
  const isLive = async (value: string) =>
    (await setup.tokens.verify(value, { scope: ORDERS }, { fresh: true })).ok;
  return { ...setup, store, revoke, isLive };
}

/** 200, no body, and the headers that every answer has. */
const DONE = {
  status: 200,
  text: '',
  headers: [
    ['cache-control', 'no-store'],
    ['cross-origin-resource-policy', 'same-origin'],
    ['referrer-policy', 'no-referrer'],
    ['x-content-type-options', 'nosniff'],
  ],
};

describe('POST /revoke', () => {
  it('revokes only the token of the value', async () => {
    const { revoke, issue, isLive } = setUpRevocation();
    const [token, other] = [await issue(), await issue()];

    const { status, text, headers } = await revoke({ token: token.value });

    expect({ status, text, headers: [...headers] }).toEqual(DONE);
    expect(await isLive(token.value)).toBe(false);
    expect(await isLive(other.value)).toBe(true);
  });

  it('revokes the whole token by an old value in its grace period', async () => {
    const { revoke, issue, tokens, isLive } = setUpRevocation();
    const token = await issue();
    const rotated = await tokens.rotate('ada', token.id, { graceSeconds: 60 });

    await revoke({ token: token.value });

    expect(await isLive(token.value)).toBe(false);
    expect(await isLive(rotated.value)).toBe(false);
  });

  it('revokes the whole token by a pending value', async () => {
    const { revoke, issue, tokens, isLive } = setUpRevocation();
    const token = await issue();
    const rotated = await tokens.rotate('ada', token.id, { activate: 'first-use' });

    await revoke({ token: rotated.value });

    expect(await isLive(token.value)).toBe(false);
    expect(await isLive(rotated.value)).toBe(false);
  });

  it.each([
    ['suspended', { suspended: true }],
    ['narrowed to other scopes', { scopes: ['GET:shop.example/items'] }],
  ])('revokes a derived token while its parent is %s', async (_, change) => {
    const { revoke, issue, tokens } = setUpRevocation();
    const parent = await issue();
    const child = await tokens.derive(parent.value, { scopes: [ORDERS] });
    await tokens.patch('ada', parent.id, change);

    expect(await revoke({ token: child.value })).toMatchObject({ status: 200, text: '' });

    await tokens.patch('ada', parent.id, { scopes: [ORDERS], suspended: false });
    expect((await tokens.verify(child.value, { scope: ORDERS })).reason).toBe('revoked');
    expect((await tokens.verify(parent.value, { scope: ORDERS })).ok).toBe(true);
  });

  it('revokes a suspended token', async () => {
    const { revoke, issue, tokens } = setUpRevocation();
    const token = await issue();
    await tokens.patch('ada', token.id, { suspended: true });

    expect(await revoke({ token: token.value })).toMatchObject({ status: 200, text: '' });

    expect((await tokens.verify(token.value, { scope: ORDERS })).reason).toBe('revoked');
  });

  it('does not revoke a token by a value that was replaced', async () => {
    const { revoke, issue, tokens, isLive } = setUpRevocation();
    const token = await issue();
    const rotated = await tokens.rotate('ada', token.id);

    expect(await revoke({ token: token.value })).toMatchObject({ status: 200, text: '' });

    expect(await isLive(rotated.value)).toBe(true);
  });

  it.each([undefined, 'access_token', 'refresh_token', 'pat'])(
    'ignores the token type hint %s',
    async (hint) => {
      const { revoke, issue, isLive } = setUpRevocation();
      const { value } = await issue();

      await revoke({ token: value, ...(hint !== undefined && { token_type_hint: hint }) });

      expect(await isLive(value)).toBe(false);
    },
  );

  it('answers 200 and changes nothing when there is nothing to revoke', async () => {
    const { revoke, issue, tokens, store, clock, isLive } = setUpRevocation();
    const [revoked, live] = [await issue(), await issue()];
    const expired = await tokens.issue({ account: 'ada', scopes: [ORDERS], ttlSeconds: 60 });
    await tokens.revoke('ada', revoked.id);
    clock.advance(60);
    store.takeCalls();

    for (const token of [revoked.value, expired.value, `${live.value}x`, live.id, 'x', 'é\0']) {
      const { status, text, headers } = await revoke({ token });
      expect({ status, text, headers: [...headers] }).toEqual(DONE);
    }

    expect(store.takeCalls()).toEqual(['find', 'find']);
    expect(await isLive(live.value)).toBe(true);
  });

  it('answers 200 a second time', async () => {
    const { revoke, issue } = setUpRevocation();
    const { value } = await issue();

    expect(await revoke({ token: value })).toMatchObject({ status: 200, text: '' });
    expect(await revoke({ token: value })).toMatchObject({ status: 200, text: '' });
  });

  it('requires no credentials and ignores any', async () => {
    const { revoke, issue, isLive } = setUpRevocation({ authenticate: () => null });
    const { value } = await issue();
    const headers = { ...asForm('').headers, authorization: basic('eve', 'wrong') };

    expect(await revoke({ token: value }, { headers })).toMatchObject({ status: 200 });

    expect(await isLive(value)).toBe(false);
  });

  it.each<['find' | 'revoke', string, Error]>([
    ['find', 'fails', new Error(CANARY)],
    ['find', 'meets a corrupt record', new TokenError('store_corrupt', CANARY)],
    ['revoke', 'fails', new Error(CANARY)],
    [
      'revoke',
      'is not confirmed',
      new TokenError('durability_unconfirmed' as TokenErrorCode, CANARY),
    ],
  ])('answers 503, never 200, while %s of the store %s', async (method, _, error) => {
    const { revoke, issue, store, isLive } = setUpRevocation();
    const { value } = await issue();
    store.break(method, () => Promise.reject(error));

    const answer = await revoke({ token: value });

    expectOAuthFailure(answer, 503, 'temporarily_unavailable');
    expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    store.mend();
    expect(await isLive(value)).toBe(true);
    expect(await revoke({ token: value })).toMatchObject({ status: 200, text: '' });
    expect(await isLive(value)).toBe(false);
  });
});

describe('the request checks of /revoke', () => {
  it.each<[string, CallOptions, number]>([
    ['no body', { headers: asForm('').headers ?? {} }, 400],
    ['no token', asForm('token_type_hint=access_token'), 400],
    ['an empty token', asForm('token='), 400],
    ['a repeated token', asForm(`token=${CANARY}&token=${CANARY}`), 400],
    ['a repeated hint', asForm('token=x&token_type_hint=a&token_type_hint=a'), 400],
    ['JSON', { json: { token: CANARY } }, 415],
    ['a body that is too large', asForm(`token=${'x'.repeat(1000)}`), 413],
  ])('refuse a call with %s', async (_, options, status) => {
    const { call, store } = setUpRevocation({ maxBodyBytes: 1000 });

    const answer = await call('POST', '/revoke', { as: null, ...options });

    expectOAuthFailure(answer, status, 'invalid_request');
    expect(store.takeCalls()).toEqual([]);
  });

  it('refuse a token in the query and do not revoke it', async () => {
    const { call, issue, isLive } = setUpRevocation();
    const { value } = await issue();

    const answer = await call('POST', `/revoke?token=${value}`, asForm({ token: value }));

    expectOAuthFailure(answer, 400, 'invalid_request');
    expect(answer.text).not.toContain(value.slice(-32));
    expect(await isLive(value)).toBe(true);
  });

  it.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('refuse the method %s', async (method) => {
    const { call } = setUpRevocation();

    const answer = await call(method, '/revoke', { as: null });

    expectOAuthFailure(answer, 405, 'invalid_request');
    expect(answer.headers.get('allow')).toBe('POST');
  });
});

describe('the option revocation', () => {
  it.each([undefined, false])('makes /revoke answer not_found if it is %s', async (revocation) => {
    const { call, issue, tokens } = setUp({ revocation });
    const { value } = await issue();

    const answer = await call('POST', '/revoke', asForm({ token: value }));

    expectFailure(answer, 'not_found');
    expect((await tokens.verify(value, { scope: ORDERS })).ok).toBe(true);
  });

  it('must be a boolean', () => {
    expect(() => setUp({ revocation: 'yes' as never })).toThrow(
      expect.objectContaining({ code: 'invalid_options' }),
    );
  });
});
