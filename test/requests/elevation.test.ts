import { describe, expect, it } from 'vitest';
import type { TokenService } from '../../src/index.ts';
import { allOf, codeOf, OTHER_SCOPE, SCOPE } from '../support.ts';
import { CLIENT, elevatedSetting, elevationSetting, requestSetting } from './support.ts';

const need = { scope: OTHER_SCOPE };

/** What changes a token in any way, so that it gets another version or ends. */
const CHANGES: readonly [
  name: string,
  change: (tokens: TokenService, id: string) => Promise<unknown>,
][] = [
  ['a rotation', (tokens, id) => tokens.rotate('acme', id)],
  ['a rotation at first use', (tokens, id) => tokens.rotate('acme', id, { activate: 'first-use' })],
  ['a name', (tokens, id) => tokens.patch('acme', id, { name: 'new' })],
  ['metadata', (tokens, id) => tokens.patch('acme', id, { metadata: { a: 1 } })],
  ['a wider scope', (tokens, id) => tokens.patch('acme', id, { addScopes: [OTHER_SCOPE] })],
  ['a suspension', (tokens, id) => tokens.patch('acme', id, { suspended: true })],
  ['an earlier expiry', (tokens, id) => tokens.patch('acme', id, { expiresIn: '30d' })],
  ['limits', (tokens, id) => tokens.patch('acme', id, { limits: { addresses: ['192.0.2.1'] } })],
  ['a replacement', (tokens, id) => tokens.modify('acme', id, { scopes: [SCOPE] })],
  ['a revocation', (tokens, id) => tokens.revoke('acme', id)],
  ['a revocation of all', (tokens) => tokens.revokeAll('acme')],
];

describe('an elevation', () => {
  it('holds what was approved beyond the first token, and says so', async () => {
    const { tokens, first, elevation, clock } = await elevatedSetting();

    expect(elevation).toMatchObject({
      account: 'acme',
      scopes: [OTHER_SCOPE],
      parent: first.id,
      elevates: first.id,
      createdBy: 'ada',
      expiresAt: new Date(clock.now().getTime() + 900_000),
    });
    expect(await tokens.verify(elevation.value, need)).toMatchObject({
      ok: true,
      grantedBy: OTHER_SCOPE,
      token: { scopes: [OTHER_SCOPE] },
    });
    expect(await tokens.verify(first.value, need)).toMatchObject({ ok: false });
    expect(await tokens.introspect(elevation.value)).toMatchObject({ scopes: [OTHER_SCOPE] });
    expect(await tokens.explain('acme', elevation.id, need)).toMatchObject({ allowed: true });
  });

  it('is not found as a token to extend, unlike the first token', async () => {
    const { tokens, first, elevation } = await elevatedSetting({ usage: true });
    await tokens.verify(first.value, { scope: SCOPE });
    await tokens.verify(elevation.value, need);

    const findings = await allOf(tokens.review({ account: 'acme', expiringWithinDays: 3650 }));
    expect(findings.map(({ code, token }) => [code, token.id])).toEqual([['expiring', first.id]]);
  });

  it('shows what the first token does not hold', async () => {
    const { requests, opened, first } = await elevationSetting({ scopes: [SCOPE, OTHER_SCOPE] });

    expect(await requests.get('acme', opened.userCode)).toMatchObject({
      elevates: first.id,
      beyond: [OTHER_SCOPE],
      scopes: [SCOPE, OTHER_SCOPE],
      ttlSeconds: 900,
    });
    expect(await requests.get('other', opened.userCode)).toBeUndefined();
  });

  it.each(CHANGES)('ends with %s of the first token', async (_, change) => {
    const { tokens, first, elevation } = await elevatedSetting();

    await change(tokens, first.id);

    expect(await tokens.verify(elevation.value, need)).toMatchObject({ ok: false });
    expect(await tokens.introspect(elevation.value)).toBeUndefined();
    const shown = await tokens.get('acme', elevation.id, { state: 'all' });
    expect(shown?.state).toMatch(/ancestor_ended|revoked/);
  });

  it.each(CHANGES)('is not issued after %s of the first token', async (_, change) => {
    const { tokens, requests, first, opened } = await elevationSetting();
    await requests.approve('acme', opened.userCode);

    await change(tokens, first.id);

    expect(await requests.poll(opened.deviceCode, { client: CLIENT })).toEqual({
      state: 'unknown',
    });
    expect(await requests.get('acme', opened.userCode)).toBeUndefined();
  });

  it('says why it ended', async () => {
    const { tokens, first, elevation } = await elevatedSetting();
    await tokens.patch('acme', first.id, { name: 'new' });

    expect(await tokens.verify(elevation.value, need)).toMatchObject({
      reason: 'ancestor_changed',
    });
  });

  it.each<[string, (tokens: TokenService, id: string, value: string) => Promise<unknown>]>([
    ['derived from', (tokens, _, value) => tokens.derive(value, { scopes: [OTHER_SCOPE] })],
    ['rotated', (tokens, id) => tokens.rotate('acme', id)],
    ['rotated later', (tokens, id) => tokens.rotate('acme', id, { activate: 'first-use' })],
    ['widened', (tokens, id) => tokens.patch('acme', id, { addScopes: [SCOPE] })],
    [
      'given others',
      (tokens, id) => tokens.patch('acme', id, { scopes: ['*:shop.example/orders'] }),
    ],
    ['extended', (tokens, id) => tokens.patch('acme', id, { expiresIn: '16m' })],
    ['replaced for longer', (tokens, id) => tokens.modify('acme', id, { scopes: [OTHER_SCOPE] })],
    [
      'replaced for more',
      (tokens, id) => tokens.modify('acme', id, { scopes: [SCOPE], expiresIn: '1m' }),
    ],
  ])('cannot be %s', async (_, call) => {
    const { tokens, elevation } = await elevatedSetting();

    expect(await codeOf(call(tokens, elevation.id, elevation.value))).toBe('invalid_request');
    expect(await tokens.get('acme', elevation.id)).toMatchObject({ version: 1 });
    expect(await tokens.verify(elevation.value, need)).toMatchObject({ ok: true });
  });

  it('cannot be elevated', async () => {
    const { requests, elevation } = await elevatedSetting();
    const asked = { client: CLIENT, scopes: [SCOPE], elevate: elevation.value };

    expect(await codeOf(requests.open(asked))).toBe('invalid_request');
  });

  it('can be freed of no limit, and get narrower ones', async () => {
    const { tokens, elevation } = await elevatedSetting();
    const limits = { addresses: ['192.0.2.0/24'] };
    await tokens.patch('acme', elevation.id, { limits });

    expect(await codeOf(tokens.patch('acme', elevation.id, { limits: null }))).toBe(
      'invalid_request',
    );
    const wider = { limits: { addresses: ['192.0.0.0/16'] } };
    expect(await codeOf(tokens.patch('acme', elevation.id, wider))).toBe('invalid_request');
    const narrower = { limits: { addresses: ['192.0.2.7'] } };
    expect(await tokens.patch('acme', elevation.id, narrower)).toMatchObject(narrower);
  });

  it('can be narrowed, shortened, named, suspended, resumed and revoked', async () => {
    const { tokens, elevation } = await elevatedSetting();
    const change = { name: 'x', expiresIn: '1m', scopes: [OTHER_SCOPE] };

    expect(await tokens.patch('acme', elevation.id, change)).toMatchObject({ name: 'x' });
    await tokens.patch('acme', elevation.id, { suspended: true });
    await tokens.patch('acme', elevation.id, { suspended: false });
    expect(await tokens.verify(elevation.value, need)).toMatchObject({ ok: true });
    expect(await tokens.revoke('acme', elevation.id)).toBe(true);
  });

  it('lives no longer than the first token, and than the value that asked', async () => {
    const { tokens, requests, clock } = requestSetting();
    const first = await tokens.issue({ account: 'acme', scopes: [SCOPE], ttlSeconds: 300 });
    const { value: old } = first;
    const { value } = await tokens.rotate('acme', first.id, { graceSeconds: 60 });

    const lives = async (elevate: string) => {
      const { userCode, deviceCode } = await requests.open({
        client: CLIENT,
        scopes: [OTHER_SCOPE],
        elevate,
      });
      await requests.approve('acme', userCode);
      const { token } = await requests.poll(deviceCode, { client: CLIENT });
      return ((token?.expiresAt.getTime() ?? 0) - clock.now().getTime()) / 1000;
    };

    expect(await lives(value)).toBe(300);
    expect(await lives(old)).toBe(60);
  });

  it('is asked for at most as long as allowed', async () => {
    const { requests, first } = await elevationSetting();
    const asked = { client: CLIENT, scopes: [OTHER_SCOPE], elevate: first.value };

    expect(await codeOf(requests.open({ ...asked, ttlSeconds: 3601 }))).toBe('invalid_ttl');
    expect(await requests.open({ ...asked, ttlSeconds: 3600 })).toBeDefined();
  });

  it('takes a place of the root, and a use of it', async () => {
    const { tokens, requests } = requestSetting(
      {},
      { limits: true, quotas: { derivedPerRoot: 1 } },
    );
    const limits = { uses: 2 };
    const first = await tokens.issue({ account: 'acme', scopes: [SCOPE], limits });
    const ask = () =>
      requests.open({ client: CLIENT, scopes: [OTHER_SCOPE], elevate: first.value });
    const { userCode, deviceCode } = await ask();
    const other = await ask();
    expect(await codeOf(ask())).toBe('invalid_token');
    for (const code of [userCode, other.userCode]) await requests.approve('acme', code);

    expect(await requests.poll(deviceCode, { client: CLIENT })).toMatchObject({ state: 'issued' });
    expect(await codeOf(requests.poll(other.deviceCode, { client: CLIENT }))).toBe(
      'quota_exceeded',
    );
  });

  it('is opened ten times for a root, and no more', async () => {
    const { requests, tokens, first } = await elevationSetting();
    const child = await tokens.derive(first.value, { scopes: [SCOPE] });
    const ask = (elevate: string) =>
      requests.open({ client: CLIENT, scopes: [OTHER_SCOPE], elevate });
    for (let opened = 1; opened < 10; opened += 1) await ask(child.value);

    expect(await codeOf(ask(first.value))).toBe('rate_limited');
  });

  it('ends with any change above the first token', async () => {
    const { tokens, requests, first } = await elevationSetting();
    const child = await tokens.derive(first.value, { scopes: [SCOPE] });
    const { userCode, deviceCode } = await requests.open({
      client: CLIENT,
      scopes: [OTHER_SCOPE],
      elevate: child.value,
    });
    await requests.approve('acme', userCode);
    const { token } = await requests.poll(deviceCode, { client: CLIENT });
    expect(token).toMatchObject({ elevates: child.id });

    await tokens.patch('acme', first.id, { name: 'new' });

    expect(await tokens.verify(child.value, { scope: SCOPE })).toMatchObject({ ok: true });
    expect(await tokens.verify(token?.value ?? '', need)).toMatchObject({ ok: false });
  });

  it('survives that nothing happens to the first token (the control)', async () => {
    const { tokens, first, elevation } = await elevatedSetting();
    await tokens.verify(first.value, { scope: SCOPE });
    await tokens.derive(first.value, { scopes: [SCOPE] });

    expect(await tokens.verify(elevation.value, need)).toMatchObject({ ok: true });
  });
});
