import { describe, expect, it } from 'vitest';
import type { IssuedToken } from '../../src/index.ts';
import { RecordingStore } from '../support.ts';
import {
  type Answer,
  type Code,
  expectFailure,
  expectSuccess,
  ORDERS,
  type SetUpOptions,
  setUp,
} from './support.ts';

const ASKED = { scopes: [ORDERS] };

/** A root, two children and a grandchild of `ada`, and another root with a child. */
async function families(options: SetUpOptions = {}) {
  const setting = setUp({ derivation: true, ...options });
  const { tokens, call } = setting;
  const root = await setting.issue();
  const child = await tokens.derive(root.value, ASKED);
  const sibling = await tokens.derive(root.value, ASKED);
  const grandchild = await tokens.derive(child.value, ASKED);
  const stranger = await setting.issue();
  const strangers = await tokens.derive(stranger.value, ASKED);
  const rotate = (id: string, json?: unknown, as = 'ada') =>
    call('POST', `/token/${id}/rotate`, { json, as });
  const revoke = (id: string, query = '', as = 'ada') =>
    call('DELETE', `/token/${id}${query}`, { as });
  /** What a verification says of each of them: `ok`, or why not. */
  const answersTo = (...issued: readonly Pick<IssuedToken, 'value'>[]) =>
    Promise.all(
      issued.map(async ({ value }) => {
        const verdict = await tokens.verify(value, { scope: ORDERS });
        return verdict.ok ? 'ok' : verdict.reason;
      }),
    );
  const all = [root, child, sibling, grandchild, stranger, strangers];
  return { ...setting, root, child, sibling, grandchild, all, rotate, revoke, answersTo };
}

const ALL_LIVE = ['ok', 'ok', 'ok', 'ok', 'ok', 'ok'];

describe.each([true, false])('rotate, with derivation: %s', (derivation) => {
  it.each([
    ['root', {}, 3],
    ['root', { endDerived: false }, 3],
    ['child', {}, 1],
    ['grandchild', {}, 0],
    ['root', { graceSeconds: 60 }, 3],
    ['root', { activate: 'first-use' }, 3],
  ] as const)('of the %s with %j tells how many descendants are left: %i', async (...row) => {
    const [name, json, descendants] = row;
    const { rotate, answersTo, ...family } = await families({ derivation });

    const { status, body } = await rotate(family[name].id, json);

    expect([status, body['descendants']]).toEqual([200, descendants]);
    const others = family.all.filter((token) => token !== family[name]);
    expect(await answersTo(...others)).toEqual(ALL_LIVE.slice(1));
  });

  it('with endDerived revokes what is below the token, and nothing beside it', async () => {
    const { rotate, answersTo, child, all } = await families({ derivation });

    const { status, body } = await rotate(child.id, { endDerived: true });

    expect([status, body['descendants']]).toEqual([200, 0]);
    expect(await answersTo({ value: String(body['token']) })).toEqual(['ok']);
    expect(await answersTo(...all)).toEqual(['ok', 'unknown', 'ok', 'revoked', 'ok', 'ok']);
  });

  it('with endDerived revokes all descendants of a root', async () => {
    const { rotate, answersTo, root, all } = await families({ derivation });

    const { status, body } = await rotate(root.id, { endDerived: true });

    expect([status, body['descendants']]).toEqual([200, 0]);
    const ended = ['unknown', 'revoked', 'revoked', 'revoked'];
    expect(await answersTo(...all)).toEqual([...ended, 'ok', 'ok']);
  });
});

describe('rotate', () => {
  it('does not count descendants when it only drops a new value', async () => {
    const { rotate, root } = await families();
    await rotate(root.id, { activate: 'first-use' });

    const { status, body } = await rotate(root.id, { cancel: true });

    expect(status).toBe(200);
    expect(body).not.toHaveProperty('descendants');
  });

  it.each([
    { endDerived: 'true' },
    { endDerived: 1 },
    { endDerived: null },
    { endDerive: true },
    { end_derived: true },
    { endderived: true },
    { descendants: true },
    { endDerived: true, graceSeconds: 60 },
    { endDerived: true, activate: 'first-use' },
    { endDerived: true, cancel: true },
  ])('refuses %j, and changes nothing', async (json) => {
    const { rotate, answersTo, root, all } = await families();

    expectFailure(await rotate(root.id, json), 'invalid_request');

    expect(await answersTo(...all)).toEqual(ALL_LIVE);
  });

  it.each<[string, (family: Awaited<ReturnType<typeof families>>) => Promise<Answer>, Code]>([
    [
      'with another version',
      ({ call, root }) =>
        call('POST', `/token/${root.id}/rotate`, {
          json: { endDerived: true },
          headers: { 'if-match': '"7"' },
        }),
      'version_conflict',
    ],
    [
      'by another account',
      ({ rotate, root }) => rotate(root.id, { endDerived: true }, 'bob'),
      'not_found',
    ],
    [
      'by another account with the value',
      ({ rotate, root }) => rotate(root.value, { endDerived: true }, 'bob'),
      'not_found',
    ],
  ])('ends nothing %s', async (_, ask, code) => {
    const family = await families();

    expectFailure(await ask(family), code);

    expect(await family.answersTo(...family.all)).toEqual(ALL_LIVE);
  });

  it('can be repeated after the store failed between the rotation and the end of the others', async () => {
    const store = new RecordingStore();
    const { rotate, answersTo, root, child } = await families({ store });
    store.break('revoke', () => Promise.reject(new Error('down')));
    expectFailure(await rotate(root.id, { endDerived: true }), 'store_unavailable');
    store.mend();
    expect(await answersTo(root, child)).toEqual(['unknown', 'ok']);

    expect(await rotate(root.id, { endDerived: true })).toMatchObject({ status: 200 });

    expect(await answersTo(child)).toEqual(['revoked']);
  });
});

describe.each([true, false])('DELETE, with derivation: %s', (derivation) => {
  it.each([
    ['?descendants=true', 'revoked'],
    ['?descendants=false', 'ancestor_revoked'],
    ['', 'ancestor_revoked'],
    ['?x=true', 'ancestor_revoked'],
  ])('with the query "%s" leaves a grandchild that is refused as %s', async (query, reason) => {
    const { revoke, answersTo, child, all } = await families({ derivation });

    expectSuccess(await revoke(child.id, query), { data: null });

    expect(await answersTo(...all)).toEqual(['ok', 'revoked', 'ok', reason, 'ok', 'ok']);
  });
});

describe('DELETE', () => {
  it.each([
    '?descendants=1',
    '?descendants=TRUE',
    '?descendants=',
    '?descendants',
    '?descendants=true&descendants=true',
    '?descendents=true',
    '?descendant=true',
    '?Descendants=true',
  ])('refuses %s, and revokes nothing', async (query) => {
    const { revoke, answersTo, root, all } = await families();

    expectFailure(await revoke(root.id, query), 'invalid_request');

    expect(await answersTo(...all)).toEqual(ALL_LIVE);
  });

  it('with descendants finds no token of another account, and ends nothing', async () => {
    const { revoke, answersTo, root, all } = await families();

    for (const handle of [root.id, root.value]) {
      expectFailure(await revoke(handle, '?descendants=true', 'bob'), 'not_found');
    }

    expect(await answersTo(...all)).toEqual(ALL_LIVE);
  });

  it('with descendants and another version ends nothing', async () => {
    const { call, answersTo, root, all } = await families();
    const headers = { 'if-match': '"7"' };

    const answer = await call('DELETE', `/token/${root.id}?descendants=true`, { headers });

    expectFailure(answer, 'version_conflict');
    expect(await answersTo(...all)).toEqual(ALL_LIVE);
  });

  it('with descendants ends those of a token that was revoked before, which it does not find', async () => {
    const { revoke, answersTo, child, grandchild } = await families();
    await revoke(child.id);

    expectFailure(await revoke(child.id, '?descendants=true'), 'not_found');

    expect(await answersTo(grandchild)).toEqual(['revoked']);
  });
});
