import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { formats } from '../../src/index.ts';
import { RecordingStore } from '../support.ts';
import { CANARY, expectFailure, ORDERS, setUp } from './support.ts';

const CALLS: [method: string, tail: string, json?: unknown][] = [
  ['GET', ''],
  ['PUT', '', { scopes: [ORDERS] }],
  ['PATCH', '', { name: 'ci' }],
  ['POST', '/rotate'],
  ['DELETE', ''],
];

describe('pathTokens: id-only', () => {
  it.each(CALLS)('refuses a token value: %s /token/{token}%s', async (method, tail, json) => {
    const store = new RecordingStore();
    const { call, issue } = setUp({ pathTokens: 'id-only', store });
    const { value, id } = await issue();
    store.takeCalls();

    const answer = await call(method, `/token/${value}${tail}`, { json });

    expectFailure(answer, 'invalid_request');
    expect(answer.body['message']).toContain('id');
    expect(answer.text).not.toContain(value.slice(0, 16));
    expect(store.takeCalls()).toEqual([]);
    expect(await call(method, `/token/${id}${tail}`, { json })).toMatchObject({ status: 200 });
  });

  it('refuses own, foreign, revoked and malformed values with the same answer', async () => {
    const { call, issue, tokens } = setUp({ pathTokens: 'id-only' });
    const [own, revoked, foreign] = [await issue(), await issue(), await issue('bob')];
    await tokens.revoke('ada', revoked.id);
    const expected = (await call('GET', `/token/${own.value}`)).text;

    for (const value of [revoked.value, foreign.value, own.value.slice(0, -9), `${CANARY}_1`]) {
      expect((await call('GET', `/token/${value}`)).text).toBe(expected);
    }
  });

  it.each([
    ['with an underscore', 'unk_3ZKpQxyzABCDEFGHJKLMN'],
    ['without one', 'abcdefghijklmnopqrstuvwxyzABCDEF'],
  ])('refuses an imported value %s', async (_, value) => {
    const foreign = [formats.unkey({ prefix: 'unk' }), formats.betterAuth({ length: 32 })];
    const format = value.startsWith('unk') ? 'unkey' : 'better-auth';
    const { call, tokens, clock } = setUp({ pathTokens: 'id-only', foreign });
    const { id } = await tokens.import({
      ...{ account: 'ada', format, scopes: [ORDERS] },
      digest: createHash('sha256').update(value).digest('hex'),
      expiresAt: new Date(clock.now().getTime() + 60_000),
    });

    expectFailure(await call('GET', `/token/${value}`), 'invalid_request');
    expect(await call('GET', `/token/${id}`)).toMatchObject({ status: 200 });
    expect(await tokens.allows(value, { scope: ORDERS })).toBe(true);
  });

  it('answers not_found to text that is neither an id nor a value', async () => {
    const { call } = setUp({ pathTokens: 'id-only' });

    const answer = await call('GET', `/token/${CANARY}`);

    expectFailure(answer, 'not_found');
    expect((await call('GET', `/token/${'0'.repeat(22)}`)).text).toBe(answer.text);
  });

  it('checks credentials, method and body first', async () => {
    const { call, issue } = setUp({ pathTokens: 'id-only' });
    const { value } = await issue();

    expectFailure(await call('GET', `/token/${value}`, { as: null }), 'unauthenticated');
    expectFailure(await call('POST', `/token/${value}`, { json: 1 }), 'method_not_allowed');
    expectFailure(await call('PUT', `/token/${value}`, { raw: '{' }), 'invalid_json');
  });

  it.each([undefined, 'any'] as const)('does not apply if the option is %s', async (pathTokens) => {
    const { call, issue } = setUp({ pathTokens });
    const { value } = await issue();

    expect(await call('GET', `/token/${value}`)).toMatchObject({ status: 200 });
  });

  it('cannot be misspelled', () => {
    expect(() => setUp({ pathTokens: 'ids' as never })).toThrow(
      expect.objectContaining({ code: 'invalid_options' }),
    );
  });
});
