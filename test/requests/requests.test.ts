import { describe, expect, it } from 'vitest';
import { ScopeCatalog } from '../../src/scope/index.ts';
import { redact } from '../../src/values/redact.ts';
import { codeOf, OTHER_SCOPE, refusalOf, SCOPE } from '../support.ts';
import { ASKED, CLIENT, requestSetting, VERIFICATION_URI } from './support.ts';

const WRONG = 'BBBB-BBBB';

describe('a request', () => {
  it('becomes one token with what was approved', async () => {
    const { requests, tokens, events, clock } = requestSetting();

    const opened = await requests.open({ ...ASKED, purpose: 'Tuesday release', ttlSeconds: 1200 });
    expect(opened).toEqual({
      deviceCode: expect.stringMatching(/^acme_d[0-9A-Za-z]{55}$/),
      userCode: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/),
      verificationUri: VERIFICATION_URI,
      expiresAt: new Date(clock.now().getTime() + 600_000),
      expiresInSeconds: 600,
      intervalSeconds: 5,
    });
    const { deviceCode, userCode } = opened;
    expect(await requests.poll(deviceCode, { client: CLIENT })).toEqual({ state: 'pending' });

    const shown = await requests.get('acme', userCode);
    expect(shown).toMatchObject({ state: 'pending', client: CLIENT, purpose: 'Tuesday release' });
    expect(shown?.scopes).toEqual([SCOPE, OTHER_SCOPE]);
    const part = { scopes: [SCOPE], ttlSeconds: 600, by: 'ada' };
    expect(await requests.approve('acme', userCode, part)).toMatchObject({
      state: 'approved',
      scopes: [SCOPE],
      ttlSeconds: 600,
    });

    clock.advance(5);
    const { state, token } = await requests.poll(deviceCode, { client: CLIENT });
    expect(state).toBe('issued');
    expect(token).toMatchObject({
      account: 'acme',
      scopes: [SCOPE],
      name: CLIENT,
      createdBy: 'ada',
      purpose: 'Tuesday release',
      expiresAt: new Date(clock.now().getTime() + 600_000),
    });
    expect(await tokens.verify(token?.value ?? '', { scope: SCOPE })).toMatchObject({ ok: true });
    expect(await requests.poll(deviceCode, { client: CLIENT })).toEqual({ state: 'unknown' });
    const id = shown?.id;
    expect(events.map(({ at: _, ...event }) => event)).toEqual([
      { type: 'requested', id },
      { type: 'approved', id, account: 'acme', by: 'ada' },
    ]);
  });

  it('finds its code in any spelling', async () => {
    const { requests } = requestSetting();
    const { userCode } = await requests.open(ASKED);
    const letters = userCode.replace('-', '');

    for (const typed of [letters, letters.toLowerCase(), ` ${[...letters].join(' ')}`, userCode]) {
      expect(await requests.get('acme', typed)).toMatchObject({ state: 'pending' });
    }
    expect(await requests.get('acme', `${letters}B`)).toBeUndefined();
  });

  it('can be denied, once', async () => {
    const { requests, events } = requestSetting();
    const { userCode, deviceCode } = await requests.open(ASKED);

    expect(await requests.deny('acme', userCode, { by: 'ada' })).toBe(true);
    expect(await codeOf(requests.deny('acme', userCode))).toBe('request_decided');
    expect(await codeOf(requests.approve('acme', userCode))).toBe('request_decided');
    expect(await requests.poll(deviceCode, { client: CLIENT })).toEqual({ state: 'denied' });
    expect(events.at(-1)).toMatchObject({ type: 'denied', account: 'acme', by: 'ada' });
    expect(await requests.deny('acme', WRONG)).toBe(false);
  });

  it('belongs to the account that approved it', async () => {
    const { requests } = requestSetting();
    const { userCode } = await requests.open(ASKED);
    await requests.approve('acme', userCode);

    expect(await requests.get('other', userCode)).toBeUndefined();
    expect(await codeOf(requests.approve('other', userCode))).toBe('not_found');
    expect(await requests.deny('other', userCode)).toBe(false);
    expect(await requests.get('acme', userCode)).toMatchObject({ state: 'approved' });
  });

  it('expires, and an approval leaves a minute to poll', async () => {
    const { requests, clock } = requestSetting();
    const late = await requests.open(ASKED);
    const approved = await requests.open(ASKED);
    clock.advance(599);
    await requests.approve('acme', approved.userCode);

    clock.advance(1);
    expect(await requests.get('acme', late.userCode)).toBeUndefined();
    expect(await codeOf(requests.approve('acme', late.userCode))).toBe('not_found');
    expect(await requests.poll(late.deviceCode, { client: CLIENT })).toEqual({ state: 'expired' });
    clock.advance(58);
    expect(await requests.poll(approved.deviceCode, { client: CLIENT })).toMatchObject({
      state: 'issued',
    });
  });

  it.each<[string, object, string]>([
    ['more scopes', { scopes: [SCOPE, 'DELETE:shop.example/orders'] }, 'scope_unmatched'],
    ['a wider scope', { scopes: ['*:shop.example/orders'] }, 'scope_unmatched'],
    ['no scope', { scopes: [] }, 'scopes_required'],
    ['a longer life', { ttlSeconds: 3601 }, 'invalid_ttl'],
    ['no life', { ttlSeconds: 0 }, 'invalid_ttl'],
    ['another member', { account: 'other' }, 'invalid_request'],
  ])('is never approved with %s', async (_, approval, code) => {
    const { requests } = requestSetting();
    const { userCode } = await requests.open(ASKED);

    expect(await codeOf(requests.approve('acme', userCode, approval))).toBe(code);
    expect(await requests.get('acme', userCode)).toMatchObject({ state: 'pending' });
  });

  it.each<[string, object, string]>([
    ['without a client', { client: '' }, 'invalid_request'],
    ['with a long client', { client: 'x'.repeat(101) }, 'invalid_request'],
    ['with a line break', { client: 'a\nb' }, 'invalid_request'],
    ['with a long purpose', { purpose: 'x'.repeat(201) }, 'invalid_request'],
    ['without scopes', { scopes: [] }, 'scopes_required'],
    ['with a bad scope', { scopes: ['get:shop.example'] }, 'invalid_scope'],
    ['with 257 scopes', { scopes: many(257, 1) }, 'too_many_scopes'],
    ['with more than 16 kB', { scopes: many(200, 90) }, 'invalid_request'],
    ['for too long', { ttlSeconds: 31_536_001 }, 'invalid_ttl'],
    ['with a state', { state: 'approved' }, 'invalid_request'],
  ])('is not opened %s', async (_, input, code) => {
    const { requests, events } = requestSetting();

    expect(await codeOf(requests.open({ ...ASKED, ...input }))).toBe(code);
    expect(events).toEqual([]);
  });

  it('is opened with the longest of everything', async () => {
    const { requests } = requestSetting();
    const longest = { client: '😀'.repeat(100), purpose: 'x'.repeat(200), scopes: many(256, 1) };

    const { userCode } = await requests.open(longest);

    expect(await requests.get('acme', userCode)).toMatchObject({ client: longest.client });
  });

  it('shows and gives what the account may have of it', async () => {
    const catalog = ScopeCatalog.from([SCOPE, 'GET:shop.example/items']);
    const { requests } = requestSetting({}, { catalog });
    const { userCode } = await requests.open({
      ...ASKED,
      scopes: ['GET:shop.example/*', OTHER_SCOPE],
    });

    const scopes = (await requests.get('acme', userCode))?.scopes;
    expect(scopes).toEqual(['GET:shop.example/items', SCOPE]);
    expect(await codeOf(requests.approve('acme', userCode))).toBe('scope_unmatched');
    expect(await requests.approve('acme', userCode, { scopes })).toMatchObject({ scopes });
  });

  it('shows none if the account may have none', async () => {
    const catalog = ScopeCatalog.from(['GET:shop.example/items']);
    const { requests } = requestSetting({}, { catalog });
    const { userCode } = await requests.open(ASKED);

    expect(await requests.get('acme', userCode)).toMatchObject({ scopes: [] });
  });

  it('gives nothing that the account has lost since', async () => {
    let catalog = ScopeCatalog.from([SCOPE, OTHER_SCOPE]);
    const { requests, tokens } = requestSetting({}, { catalog: () => catalog });
    const { userCode, deviceCode } = await requests.open(ASKED);
    await requests.approve('acme', userCode);

    catalog = ScopeCatalog.from([SCOPE]);

    expect(await requests.poll(deviceCode, { client: CLIENT })).toEqual({ state: 'unknown' });
    expect((await tokens.list({ account: 'acme' })).tokens).toEqual([]);
  });

  it('is not known to who has another client name, or a forged code', async () => {
    const { requests, store } = requestSetting();
    const { deviceCode, userCode } = await requests.open(ASKED);
    await requests.approve('acme', userCode);
    const last = deviceCode.at(-1) === '0' ? '1' : '0';

    expect(await requests.poll(deviceCode, { client: 'other' })).toEqual({ state: 'unknown' });
    const calls = countFinds(store.requests);
    const forged = deviceCode.slice(0, -1) + last;
    expect(await requests.poll(forged, { client: CLIENT })).toEqual({ state: 'unknown' });
    expect(calls()).toBe(0);
    expect(await requests.poll(deviceCode, { client: CLIENT })).toMatchObject({ state: 'issued' });
  });

  it('slows down who polls early, without a read', async () => {
    const { requests, clock, store } = requestSetting();
    const { deviceCode } = await requests.open(ASKED);
    const calls = countFinds(store.requests);
    const poll = async () => (await requests.poll(deviceCode, { client: CLIENT })).state;

    expect(await poll()).toBe('pending');
    clock.advance(4.9);
    expect(await poll()).toBe('slow_down');
    clock.advance(9.9);
    expect(await poll()).toBe('slow_down');
    expect(calls()).toBe(1);
    clock.advance(15);
    expect(await poll()).toBe('pending');
    expect(calls()).toBe(2);
  });

  it('has codes that no store, event or mask shows', async () => {
    const { requests, store, events } = requestSetting();
    const { deviceCode, userCode } = await requests.open(ASKED);
    const id = events[0]?.id ?? '';

    const kept = JSON.stringify(await store.requests.find({ id }));
    expect(kept).not.toContain(deviceCode.slice(-33, -6));
    expect(JSON.stringify(events)).not.toContain(userCode.replace('-', ''));
    expect(redact(`poll ${deviceCode} failed`)).toBe(`poll ${deviceCode.slice(0, 12)}… failed`);
    expect(redact(`?device_code=${deviceCode.replace('_', '%5F')}`)).not.toContain(
      deviceCode.slice(-33),
    );
  });

  it('asks the host who may approve, and again when the token is issued', async () => {
    const asked: unknown[] = [];
    let answer = false;
    const mayApprove = (request: { client: string }, approval: object) => {
      asked.push([request.client, approval]);
      return answer;
    };
    const { requests } = requestSetting({ mayApprove });
    const { userCode, deviceCode } = await requests.open(ASKED);

    expect(await codeOf(requests.approve('acme', userCode, { by: 'ada' }))).toBe('not_found');
    answer = true;
    await requests.approve('acme', userCode, { by: 'ada' });
    answer = false;
    expect(await requests.poll(deviceCode, { client: CLIENT })).toEqual({ state: 'unknown' });
    expect(asked).toEqual(Array(3).fill([CLIENT, { account: 'acme', by: 'ada' }]));
  });

  it('is not approved while the host cannot say', async () => {
    const mayApprove = () => Promise.reject(new Error('secret'));
    const { requests } = requestSetting({ mayApprove });
    const { userCode } = await requests.open(ASKED);

    const refusal = await refusalOf(requests.approve('acme', userCode));

    expect(refusal.code).toBe('store_unavailable');
    expect(refusal.message).not.toContain('secret');
    expect(await requests.get('acme', userCode)).toMatchObject({ state: 'pending' });
  });
});

describe('guessing', () => {
  it('ends after ten wrong codes of an account, and then the right one is refused', async () => {
    const { requests, clock } = requestSetting();
    const { userCode } = await requests.open(ASKED);

    for (let tries = 0; tries < 10; tries += 1) {
      expect(await requests.get('acme', WRONG)).toBeUndefined();
    }
    const refusal = await refusalOf(requests.get('acme', userCode));
    expect(refusal).toMatchObject({ code: 'rate_limited' });
    expect(await codeOf(requests.approve('acme', userCode))).toBe('rate_limited');
    expect(await codeOf(requests.deny('acme', userCode))).toBe('rate_limited');
    expect(await requests.get('other', userCode)).toMatchObject({ state: 'pending' });

    clock.advance(Number(refusal.details?.['retryAfterSeconds']));
    const next = await requests.open(ASKED);
    expect(await requests.get('acme', next.userCode)).toMatchObject({ state: 'pending' });
  });

  it('counts by address, too, whatever the account', async () => {
    const { requests } = requestSetting();
    const { userCode } = await requests.open(ASKED);

    for (let tries = 0; tries < 10; tries += 1) {
      await requests.get(`account ${tries}`, WRONG, { address: `2001:db8::${tries}` });
    }
    const options = { address: '2001:db8::99' };
    expect(await codeOf(requests.get('acme', userCode, options))).toBe('rate_limited');
    expect(await requests.get('acme', userCode, { address: '2001:db8:0:1::1' })).toBeDefined();
  });

  it('is not what right codes are', async () => {
    const { requests } = requestSetting();
    const { userCode } = await requests.open(ASKED);

    for (let looks = 0; looks < 25; looks += 1) {
      expect(await requests.get('acme', userCode, { address: '192.0.2.1' })).toBeDefined();
    }
  });
});

describe('opening', () => {
  it('is for bearers only unless it is anonymous', async () => {
    const { requests } = requestSetting({ anonymous: false });

    expect(await codeOf(requests.open(ASKED))).toBe('unauthorized_client');
  });

  it('is limited by address', async () => {
    const { requests } = requestSetting();
    for (let opened = 0; opened < 20; opened += 1) {
      await requests.open({ ...ASKED, address: '192.0.2.1' });
    }

    expect(await codeOf(requests.open({ ...ASKED, address: '192.0.2.1' }))).toBe('rate_limited');
    expect(await requests.open({ ...ASKED, address: '192.0.2.2' })).toBeDefined();
  });

  it('leaves half of the places to bearers', async () => {
    const { requests, tokens, clock } = requestSetting({ maxPending: 4 });
    await requests.open(ASKED);
    await requests.open(ASKED);
    expect(await refusalOf(requests.open(ASKED))).toMatchObject({
      code: 'quota_exceeded',
      details: { quota: 'maxPending', max: 2 },
    });
    const { value } = await tokens.issue({ account: 'acme', scopes: [SCOPE] });

    expect(await requests.open({ ...ASKED, elevate: value })).toBeDefined();
    clock.advance(600);
    expect(await requests.open(ASKED)).toBeDefined();
  });
});

/** Counts the reads of a store of requests from now on. */
function countFinds(store: { find: (key: never) => unknown }): () => number {
  const { find } = store;
  let count = 0;
  store.find = (key) => {
    count += 1;
    return find.call(store, key);
  };
  return () => count;
}

function many(count: number, length: number): string[] {
  return Array.from({ length: count }, (_, i) => `GET:shop.example/${'x'.repeat(length)}${i}`);
}
