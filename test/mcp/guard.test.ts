import { createServer, type IncomingMessage } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import express from 'express';
import { afterEach, describe, expect, it } from 'vitest';
import { sendResponse } from '../../src/http/index.ts';
import { type McpGuardOptions, type McpOutcome, mcpGuard } from '../../src/mcp/index.ts';
import { ScopeCatalog } from '../../src/scope/index.ts';
import { call as callWire, closeAll, portOf } from '../http/wire.ts';
import { codeOf, forge, RecordingStore } from '../support.ts';
import {
  ALL_TOOLS,
  account,
  answerTo,
  callOf,
  DOMAIN,
  METADATA,
  message,
  REFUND,
  RESOURCE,
  requestOf,
  setUp,
} from './support.ts';

afterEach(closeAll);

const REALM = `Bearer realm="${DOMAIN}"`;
const SUFFIX = `, resource_metadata="${METADATA}"`;
const NOT_LIVE = {
  status: 401,
  challenge: `${REALM}, error="invalid_token", scope="${ALL_TOOLS}"${SUFFIX}`,
  body: {
    error: 'invalid_token',
    error_description: 'the token is not, or no longer, valid',
  },
};

describe('tools/call', () => {
  it('needs the scope of its tool', async () => {
    const { call, refusals } = await setUp();

    expect(await call('refund')).toMatchObject({ ok: true });
    const refused = await call('delete');
    expect(refused).toMatchObject({ ok: false, reason: 'insufficient_scope' });
    expect(await answerTo(refused)).toEqual({
      status: 403,
      challenge: `${REALM}, error="insufficient_scope", scope="POST:shop.example/tools/delete$ ${REFUND}"${SUFFIX}`,
      body: {
        error: 'insufficient_scope',
        error_description: 'the token does not cover POST:shop.example/tools/delete$',
      },
    });
    expect(refusals).toMatchObject([
      { reason: 'insufficient_scope', needed: 'POST:shop.example/tools/delete$' },
    ]);
  });

  it.each([
    ['its own', [REFUND], true],
    ['all tools', [ALL_TOOLS], true],
    ['everything', ['*:*/*'], true],
    ['another tool', ['POST:shop.example/tools/refunds$'], false],
    [
      'another method',
      ['GET:shop.example/tools/refund$', ALL_TOOLS.replace('tools', 'tools/x')],
      false,
    ],
    ['what is below it', ['POST:shop.example/tools/refund/x', 'POST:shop.example/tools/x$'], false],
  ])('is decided by scopes: %s', async (_, scopes, isAllowed) => {
    const { call } = await setUp({ scopes });
    const outcome = await call('refund');

    expect(outcome.ok).toBe(isAllowed);
    if (!isAllowed) expect(outcome.reason).toBe('insufficient_scope');
  });

  it('needs the scope that tools names', async () => {
    const tools = {
      refund: 'DELETE:shop.example/orders/{}',
      'shop/list': 'GET:shop.example/orders',
    };
    const { call } = await setUp({ tools, scopes: ['GET:shop.example/orders', REFUND] });

    expect(await call('shop/list')).toMatchObject({ ok: true });
    expect(await call('refund')).toMatchObject({ ok: false, reason: 'insufficient_scope' });
    expect(await answerTo(await call('shop/other'))).toMatchObject({
      status: 400,
      body: { error: { code: -32_600 } },
    });
  });

  it.each([
    ['a', true],
    ['a'.repeat(128), true],
    ['a'.repeat(129), false],
    ['A-1_b.c', true],
    ['', false],
    ['.', false],
    ['..', false],
    ['a/b', false],
    ['a$', false],
    ['{}', false],
    ['*', false],
    ['a%2fb', false],
    ['ä', false],
    ['refund\n', false],
    ['__proto__', true],
    ['constructor', true],
    [7, false],
    [null, false],
    [['refund'], false],
    [{ toString: 'refund' }, false],
  ])('of %j can have a scope: %s', async (name, isName) => {
    const { call } = await setUp({ scopes: [ALL_TOOLS] });
    const outcome = await call(name);

    expect(outcome.ok).toBe(isName);
    expect(outcome.allows?.(name as string)).toBe(isName ? true : undefined);
    if (!isName) expect(outcome.reason).toBe('invalid_message');
  });

  it('spends a use of the token, and a session none', async () => {
    const { call, post } = await setUp({
      limits: { uses: 2 },
      service: { limits: {} },
    });

    for (const method of ['initialize', 'tools/list', 'ping', 'notifications/initialized'])
      expect(await post(message(method))).toMatchObject({ ok: true });
    expect((await call('refund')).ok).toBe(true);
    expect((await call('other')).reason).toBe('insufficient_scope');
    expect((await call('refund')).ok).toBe(true);
    const spent = await call('refund');
    expect(spent).toMatchObject({ ok: false, reason: 'limit_exceeded' });
    expect(await answerTo(spent)).toEqual({
      status: 429,
      challenge: null,
      body: { error: 'limit_exceeded', error_description: 'this token has no uses left' },
    });
    expect(await post(message('tools/list'))).toMatchObject({ ok: true });
  });

  it('says when a rate allows the next call', async () => {
    const { call } = await setUp({
      limits: { rate: { uses: 1, seconds: 60 } },
      service: { limits: {} },
    });

    expect((await call('refund')).ok).toBe(true);
    const { response } = await call('refund');
    expect(response?.status).toBe(429);
    expect(response?.headers.get('retry-after')).toMatch(/^\d+$/);
    expect(response?.headers.get('ratelimit-policy')).toBe('"token";q=1;w=60');
  });

  it('costs one read of the store', async () => {
    const { call, post, store } = await setUp();

    await call('refund');
    expect(store.takeCalls()).toEqual(['find']);
    await post(message('tools/list'));
    expect(store.takeCalls()).toEqual(['find']);
  });

  it('obeys the ancestors of a token, and names only what they leave', async () => {
    const { tokens, value, call, post, token } = await setUp({ scopes: [ALL_TOOLS, 'GET:*/*'] });
    const child = await tokens.derive(value, { scopes: [ALL_TOOLS, 'GET:*/*'], ttlSeconds: 600 });
    await tokens.modify(account, token.id, {
      scopes: [REFUND, 'GET:*.example/x', 'GET:other.test/x'],
      expiresIn: 60,
    });

    const outcome = await call('refund', { value: child.value });
    expect(outcome.auth?.scopes).toEqual(['GET:shop.example/x', REFUND]);
    const end = (await tokens.get(account, token.id))?.expiresAt.getTime() ?? 0;
    expect(outcome.auth?.expiresAt).toBe(end / 1000);
    expect(outcome.auth?.extra['parent']).toBe(token.id);
    const refused = await call('other', { value: child.value });
    expect(refused.reason).toBe('ancestor_insufficient');
    expect((await answerTo(refused)).challenge).toContain(
      `scope="GET:shop.example/x POST:shop.example/tools/other$ ${REFUND}"`,
    );
    await tokens.revoke(account, token.id);
    for (const outcome of [
      await call('refund', { value: child.value }),
      await post(message('ping'), { value: child.value }),
    ])
      expect(outcome).toMatchObject({ ok: false, reason: 'ancestor_revoked' });
  });
});

describe('a message that needs no scope', () => {
  const OPEN = [
    'initialize',
    'server/discover',
    'ping',
    'notifications/initialized',
    'notifications/cancelled',
    'tools/list',
    'prompts/list',
    'resources/list',
    'resources/templates/list',
    'subscriptions/listen',
  ];

  it.each(OPEN)('may be %s', async (method) => {
    const { post } = await setUp();

    expect(await post(message(method))).toMatchObject({ ok: true, body: message(method) });
  });

  it.each([
    ['a result', { jsonrpc: '2.0', id: 1, result: {} }],
    ['an error', { jsonrpc: '2.0', id: 1, error: { code: 1, message: 'no' } }],
  ])('may be %s', async (_, body) => {
    const { post } = await setUp();

    expect(await post(body)).toMatchObject({ ok: true, body });
  });

  it.each(['GET', 'DELETE'])('may be %s', async (method) => {
    const { guard, value } = await setUp();
    const outcome = await guard(requestOf(undefined, { value, method }));

    expect(outcome).toMatchObject({ ok: true, body: undefined });
    expect((await guard(requestOf(undefined, { method }))).response?.status).toBe(401);
  });

  it.each([
    ['resources/read', -32_601],
    ['prompts/get', -32_601],
    ['completion/complete', -32_601],
    ['tools/lists', -32_601],
    ['notifications', -32_601],
    ['Tools/call', -32_601],
    ['tools/call ', -32_601],
    ['tasks/result', -32_601],
    ['constructor', -32_601],
    ['', -32_601],
  ])('may not be %j, without an entry', async (method, code) => {
    const { post, refusals } = await setUp();
    const outcome = await post(message(method, { name: 'refund' }));

    expect(await answerTo(outcome)).toMatchObject({
      status: 400,
      challenge: null,
      body: { jsonrpc: '2.0', id: 1, error: { code } },
    });
    expect(refusals).toEqual([{ reason: 'unknown_method' }]);
  });

  it('may be one with an entry, and needs the scope of the entry', async () => {
    const methods = { 'resources/read': 'GET:shop.example/files', 'prompts/get': true } as const;
    const { post } = await setUp({ methods, limits: { uses: 1 }, service: { limits: {} } });

    expect(await post(message('prompts/get'))).toMatchObject({ ok: true });
    expect(await post(message('resources/read'))).toMatchObject({
      ok: false,
      reason: 'insufficient_scope',
    });
    expect(await post(message('completion/complete'))).toMatchObject({ reason: 'unknown_method' });
  });

  it('spends a use if its entry is a scope', async () => {
    const { post } = await setUp({
      methods: { 'resources/read': 'GET:shop.example/files' },
      scopes: ['GET:shop.example/files'],
      limits: { uses: 1 },
      service: { limits: {} },
    });

    expect(await post(message('resources/read'))).toMatchObject({ ok: true });
    expect(await post(message('resources/read'))).toMatchObject({ reason: 'limit_exceeded' });
  });
});

describe('a token', () => {
  it.each([
    ['a tool', [REFUND], true],
    ['another tool', ['POST:shop.example/tools/other$'], true],
    ['tools of all hosts', ['POST:*/tools'], true],
    ['a scope that an entry of tools overlaps', ['GET:shop.example/orders/7$'], true],
    ['a scope that an entry of methods overlaps', ['GET:shop.example/files/a'], true],
    ['another path', ['POST:shop.example/toolsx', 'GET:shop.example/file'], false],
    ['another method', ['GET:shop.example/tools'], false],
    ['another host', ['POST:other.example/tools', 'GET:sub.shop.example/orders'], false],
  ])('with %s is for this server: %s', async (_, scopes, isForServer) => {
    const { post, call, refusals } = await setUp({
      tools: { list: 'GET:shop.example/orders' },
      methods: { 'resources/read': 'GET:shop.example/files', 'prompts/get': true },
      scopes,
    });
    const outcomes = [await post(message('tools/list')), await post('nonsense')];

    expect(outcomes[0]?.ok).toBe(isForServer);
    expect(outcomes[1]?.reason).toBe(isForServer ? 'invalid_json' : 'other_server');
    if (isForServer) return;
    outcomes.push(await call('refund'), await post(message('no/method')));
    const unknown = await answerTo(await post(message('ping'), { value: forge() }));
    expect(unknown.body).toEqual(NOT_LIVE.body);
    for (const outcome of outcomes) {
      expect(outcome.reason).toBe('other_server');
      expect(await answerTo(outcome)).toEqual(unknown);
    }
    expect(refusals).toMatchObject(
      [...outcomes, { reason: 'unknown' }].map(({ reason }) => ({ reason })),
    );
  });

  it('that is not live gets one answer, whatever it sends', async () => {
    const { tokens, clock, call, post, value, token, refusals } = await setUp();
    const revoked = await tokens.issue({ account, scopes: [REFUND] });
    await tokens.revoke(account, revoked.id);
    const expired = await tokens.issue({ account, scopes: [REFUND], ttlSeconds: 1 });
    clock.advance(1);
    const suspended = await tokens.issue({ account, scopes: [REFUND] });
    await tokens.patch(account, suspended.id, { suspended: true });
    const rotated = await tokens.rotate(account, token.id);

    const dead = ['', 'nonsense', `${value}x`, forge(), revoked.value, expired.value];
    const values = [...dead, suspended.value, value];
    for (const each of values) {
      const sent = { value: each };
      const bodies = [
        callOf('refund'),
        callOf('..'),
        message('ping'),
        message('x'),
        'nonsense',
        [],
      ];
      for (const body of bodies)
        expect(await answerTo(await post(body, sent)), each).toEqual(NOT_LIVE);
    }
    expect(new Set(refusals.map(({ reason }) => reason))).toEqual(
      new Set(['malformed', 'unknown', 'revoked', 'expired', 'suspended']),
    );
    expect(await call('refund', { value: rotated.value })).toMatchObject({ ok: true });
  });

  it('is one only if it is presented once, in the header', async () => {
    const { guard, value } = await setUp();
    const body = callOf('refund');
    const target = (query: string) =>
      new Request(`http://127.0.0.1/mcp${query}`, requestOf(body, { value }));

    expect(await guard(target(''))).toMatchObject({ ok: true });
    for (const outcome of [
      await guard(target('?access_token=x')),
      await guard(
        requestOf(body, { headers: { authorization: `Bearer ${value}, Bearer ${value}` } }),
      ),
    ]) {
      expect(outcome).toMatchObject({ ok: false, reason: 'ambiguous_credentials' });
      expect(await answerTo(outcome)).toEqual({
        status: 400,
        challenge: `${REALM}, error="invalid_request"`,
        body: {
          error: 'invalid_request',
          error_description: 'credentials must be given once, in one Authorization header',
        },
      });
    }
    const overridden = requestOf(body, { value, headers: { 'x-http-method-override': 'DELETE' } });
    expect(await guard(overridden)).toMatchObject({ reason: 'ambiguous_request' });
  });

  it.each([
    ['its address', () => '192.0.2.1', 200],
    ['another address', () => '192.0.2.2', 403],
    ['no address', () => undefined, 403],
    ['no clientAddress', undefined, 403],
  ])('that is limited to an address may be used from %s', async (_, clientAddress, status) => {
    const { post, call, errors } = await setUp({
      limits: { addresses: ['192.0.2.1'] },
      ...(clientAddress && { clientAddress }),
    });

    for (const outcome of [await call('refund'), await post(message('tools/list'))]) {
      const answer = await answerTo(outcome);
      expect(answer.status).toBe(status);
      if (status === 200) continue;
      expect(answer).toMatchObject({ challenge: null, body: { error: 'address_denied' } });
    }
    expect(errors.length).toBe(status === 403 && clientAddress?.() === undefined ? 1 : 0);
  });

  it('whose ancestor is limited to an address may be used only from there', async () => {
    let from = '192.0.2.1';
    const { tokens, value, post } = await setUp({
      limits: { addresses: ['192.0.2.1'] },
      clientAddress: () => from,
    });
    const child = await tokens.derive(value, { scopes: [REFUND] }, { address: from });
    const list = () => post(message('tools/list'), { value: child.value });

    expect(await list()).toMatchObject({ ok: true });
    from = '192.0.2.2';
    expect(await list()).toMatchObject({ ok: false, reason: 'address_denied' });
  });

  it('that cannot be checked is 503, and the host learns why', async () => {
    const store = new RecordingStore(undefined, { local: false });
    const { call, post, errors } = await setUp({ service: { store, deadlineMs: 1 } });
    store.break('find', () => Promise.reject(new Error('connection refused')));

    for (const send of [() => call('refund'), () => post(message('ping')), () => post('{')]) {
      const outcome = await send();
      expect(outcome).toMatchObject({ ok: false, reason: 'unavailable' });
      expect(outcome.response?.headers.get('retry-after')).toBe('1');
      expect(await answerTo(outcome)).toMatchObject({
        status: 503,
        challenge: null,
        body: { error: 'store_unavailable' },
      });
    }
    expect(errors.length).toBe(3);
  });

  it('that waits for its first use is accepted, and counts as used by that', async () => {
    const { tokens, post, token, value } = await setUp();
    const next = await tokens.rotate(account, token.id, { activate: 'first-use' });

    expect(await post(message('ping'), { value: next.value })).toMatchObject({ ok: true });
    await turn();
    expect(await post(message('ping'), { value })).toMatchObject({ reason: 'unknown' });
  });
});

describe('a request without a token', () => {
  const scopeOf = async (outcome: McpOutcome) => {
    const { status, challenge, body } = await answerTo(outcome);
    expect([status, body]).toEqual([
      401,
      { error: 'unauthenticated', error_description: 'a Bearer token is required' },
    ]);
    return challenge?.replace(REALM, '').replace(SUFFIX, '');
  };

  it.each([
    ['the scope of the tool', callOf('refund'), REFUND],
    ['all tools for a session', message('initialize'), ALL_TOOLS],
    ['all tools for what is no message', 'nonsense', ALL_TOOLS],
    ['all tools for a batch', [callOf('refund')], ALL_TOOLS],
    ['all tools for an unknown method', message('x'), ALL_TOOLS],
    ['all tools for more than 64 kB', { ...callOf('refund'), x: 'x'.repeat(65_536) }, ALL_TOOLS],
    [
      'the scope of the tool for nearly 64 kB',
      { ...callOf('refund'), x: 'x'.repeat(65_000) },
      REFUND,
    ],
  ])('is told %s', async (_, body, scope) => {
    const { post, refusals } = await setUp();

    expect(await scopeOf(await post(body, { value: null }))).toBe(`, scope="${scope}"`);
    expect(refusals).toMatchObject([{ reason: 'missing' }]);
  });

  it('is told the scopes of tools and methods if there are any', async () => {
    const { post } = await setUp({
      tools: { list: 'GET:shop.example/orders', one: 'GET:shop.example/orders/{}' },
      methods: { 'resources/read': 'GET:shop.example/files', 'prompts/get': true },
    });
    const ask = async (body: unknown) => scopeOf(await post(body, { value: null }));

    expect(await ask(message('initialize'))).toBe(
      ', scope="GET:shop.example/files GET:shop.example/orders"',
    );
    expect(await ask(callOf('one'))).toBe(', scope="GET:shop.example/orders/{}"');
    expect(await ask(message('resources/read'))).toBe(', scope="GET:shop.example/files"');
  });

  it('costs no read of the store', async () => {
    const { post, store } = await setUp();

    await post(callOf('refund'), { value: null });
    await post(callOf('refund'), { value: 'nonsense' });
    expect(store.takeCalls()).toEqual([]);
  });

  it('never makes the answer hold a value', async () => {
    const { post, value } = await setUp();
    const text = async (outcome: McpOutcome) => JSON.stringify(await answerTo(outcome));

    expect(await text(await post(callOf(value), { value: null }))).not.toContain(value);
    expect(await text(await post(callOf(value)))).not.toContain(value);
  });
});

describe('the body', () => {
  const CALL = JSON.stringify(callOf('refund'));
  const BOM = '\uFEFF';

  /** With a token for all tools: what is refused runs no tool, whatever it says. */
  it.each<[string, string, number | undefined]>([
    ['a call', CALL, undefined],
    ['a call after a byte order mark', BOM + CALL, undefined],
    [
      'a call with members of its own',
      CALL.replace('{', '{"_meta":{"a":[{"a":1},{"a":2}]},'),
      undefined,
    ],
    ['a call as a notification', CALL.replace('"id":1,', ''), undefined],
    ['a call with an escaped name', CALL.replace('refund', '\\u0072efund'), undefined],
    ['a batch', `[${CALL}]`, -32_600],
    ['an empty batch', '[]', -32_600],
    ['null', 'null', -32_600],
    ['a text', JSON.stringify(CALL), -32_600],
    ['a number', '1', -32_600],
    ['nothing', '', -32_700],
    ['a part of a call', CALL.slice(0, -1), -32_700],
    ['two calls', CALL + CALL, -32_700],
    ['two calls in lines', `${CALL}\n${CALL}`, -32_700],
    ['JSON with a comment', `/**/${CALL}`, -32_700],
    ['a method twice', CALL.replace('{', '{"method":"ping",'), -32_600],
    ['a method twice, once escaped', CALL.replace('{', '{"m\\u0065thod":"ping",'), -32_600],
    ['a method twice, at the end', `${CALL.slice(0, -1)},"method":"ping"}`, -32_600],
    ['params twice', CALL.replace('{', '{"params":{"name":"x"},'), -32_600],
    ['a name twice', CALL.replace('"name"', '"name":"x","name"'), -32_600],
    ['an argument twice', CALL.replace('"arguments":{', '"arguments":{"a":1,"a":2'), -32_600],
    ['__proto__', CALL.replace('{', '{"__proto__":{"method":"ping"},'), -32_600],
    ['__proto__ in params', CALL.replace('"name"', '"__proto__":{"name":"x"},"name"'), -32_600],
    [
      '__proto__ instead of params',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","__proto__":{"params":{"name":"refund"}}}',
      -32_600,
    ],
    ['__proto__, escaped', CALL.replace('{', '{"\\u005f_proto__":{},'), -32_600],
    [
      '__proto__ in an argument',
      CALL.replace('"arguments":{', '"arguments":{"a":[{"__proto__":1}]'),
      -32_600,
    ],
    ['no version', CALL.replace('"jsonrpc":"2.0",', ''), -32_600],
    ['another version', CALL.replace('2.0', '1.0'), -32_600],
    ['a method that is no text', CALL.replace('"tools/call"', '["tools/call"]'), -32_600],
    ['a method that is null', CALL.replace('"tools/call"', 'null'), -32_600],
    ['an id that is null', CALL.replace('"id":1', '"id":null'), -32_600],
    ['an id that is an object', CALL.replace('"id":1', '"id":{}'), -32_600],
    ['a call without params', JSON.stringify(message('tools/call')), -32_600],
    ['a call with params in a list', JSON.stringify(message('tools/call', ['refund'])), -32_600],
    ['neither a method nor an answer', '{"jsonrpc":"2.0","id":1}', -32_600],
    ['128 levels', CALL.replace('"arguments":{}', `"arguments":${nested(126)}`), undefined],
    ['129 levels', CALL.replace('"arguments":{}', `"arguments":${nested(127)}`), -32_600],
    ['a hundred thousand levels', nested(100_000), -32_600],
  ])('may be %s', async (_, text, code) => {
    const { post, refusals } = await setUp({ scopes: [ALL_TOOLS] });
    const outcome = await post(text);

    expect(outcome.ok).toBe(code === undefined);
    if (code === undefined) {
      expect(outcome.body).toEqual(JSON.parse(text.replace(BOM, '')));
      return;
    }
    expect(await answerTo(outcome)).toMatchObject({
      status: 400,
      challenge: null,
      body: { jsonrpc: '2.0', error: { code } },
    });
    expect(refusals).toEqual([{ reason: code === -32_700 ? 'invalid_json' : 'invalid_message' }]);
  });

  it('is a call if it has a method, whatever else it has', async () => {
    const { post } = await setUp();

    for (const more of [{ result: {} }, { error: { code: 1, message: '' } }, { id: undefined }]) {
      const body = { ...callOf('other'), ...more };
      expect(await post(body)).toMatchObject({ ok: false, reason: 'insufficient_scope' });
      expect(await post({ ...callOf('refund'), ...more })).toMatchObject({ ok: true });
    }
  });

  it('decides, and not what headers say of it', async () => {
    const { call } = await setUp();
    const headers = { 'mcp-method': 'tools/call', 'mcp-name': 'refund' };

    expect(await call('other', { headers })).toMatchObject({ reason: 'insufficient_scope' });
    expect(await call('refund', { headers: { 'mcp-name': 'other' } })).toMatchObject({ ok: true });
    const outcome = await call('other', { headers: { 'mcp-method': 'ping' } });
    expect(outcome).toMatchObject({ reason: 'insufficient_scope' });
  });

  it.each([
    ['application/json', 200],
    ['application/json; charset=utf-8', 200],
    ['Application/JSON;charset="UTF-8"', 200],
    ['application/json; charset=utf-16', 415],
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['application/jsonx', 415],
  ])('must be JSON: %s', async (type, status) => {
    const { call } = await setUp();

    expect(
      await answerTo(await call('refund', { headers: { 'content-type': type } })),
    ).toMatchObject({
      status,
      ...(status === 415 && { body: { error: 'unsupported_media_type' } }),
    });
  });

  it.each([
    ['UTF-8', new TextEncoder().encode(CALL.replace('{}', '{"a":"ä"}')), true],
    ['Latin-1', Buffer.from(CALL.replace('{}', '{"a":"ä"}'), 'latin1'), false],
    ['UTF-16', Buffer.from(CALL, 'utf16le'), false],
  ])('must be in UTF-8: %s', async (_, bytes, isRead) => {
    const { post } = await setUp();

    expect((await post(bytes)).reason).toBe(isRead ? undefined : 'invalid_json');
  });

  it('must have no encoding', async () => {
    const { call } = await setUp();
    const outcome = await call('refund', { headers: { 'content-encoding': 'identity' } });

    expect((await answerTo(outcome)).status).toBe(415);
  });

  it('may have 4 MiB', async () => {
    const { post } = await setUp();
    const bodyOf = (bytes: number) => CALL + ' '.repeat(bytes - CALL.length);

    expect(await post(bodyOf(4_194_304))).toMatchObject({ ok: true });
    const outcome = await post(bodyOf(4_194_305));
    expect(outcome.reason).toBe('payload_too_large');
    expect(await answerTo(outcome)).toMatchObject({
      status: 413,
      body: { error: 'payload_too_large' },
    });
  });

  it('is not read for a forged value', async () => {
    const { guard, value } = await setUp();
    const request = (presented: string) => requestOf(callOf('refund'), { value: presented });
    const forged = request(value.slice(0, -1) + (value.endsWith('a') ? 'b' : 'a'));

    await guard(forged);
    expect(forged.bodyUsed).toBe(false);
    const right = request(value);
    await guard(right);
    expect(right.bodyUsed).toBe(true);
  });

  it('cannot be changed by the host after the decision', async () => {
    const { guard, value } = await setUp();
    const params = { name: 'refund', arguments: {} };
    const given = message('tools/call', params);
    const request = requestOf(given, { value });
    const outcome = await guard(request, given);

    params.name = 'other';
    expect(outcome.body).toEqual(callOf('refund'));
    expect(request.bodyUsed).toBe(false);
  });

  it.each<[string, unknown, string | undefined]>([
    ['an object', callOf('refund'), undefined],
    ['a text', CALL, undefined],
    ['bytes', new TextEncoder().encode(CALL), undefined],
    ['a list', [callOf('refund')], 'invalid_message'],
    ['null', null, 'invalid_message'],
    ['a function', () => callOf('refund'), 'invalid_json'],
    ['a cycle', cycle(), 'invalid_json'],
    ['a text with a name twice', CALL.replace('{', '{"method":"ping",'), 'invalid_message'],
    ['a parsed __proto__', JSON.parse(CALL.replace('{', '{"__proto__":{},')), 'invalid_message'],
  ])('may be given as %s', async (_, given, reason) => {
    const { guard, value } = await setUp();

    expect((await guard(requestOf('x', { value }), given)).reason).toBe(reason);
  });

  it.each(['PUT', 'PATCH', 'HEAD', 'OPTIONS', 'get'])('is not taken with %s', async (method) => {
    const { guard, value, refusals } = await setUp();
    const request = { method, url: '/mcp', headers: { authorization: `Bearer ${value}` } };
    const { ok, response } = await guard(request, callOf('refund'));

    expect([ok, response?.status]).toEqual([false, 405]);
    expect(response?.headers.get('allow')).toBe('GET, POST, DELETE');
    expect(refusals).toEqual([{ reason: 'method_not_allowed' }]);
  });
});

describe('a request of Node', () => {
  const serve = async (
    guard: (request: IncomingMessage & { body?: unknown }) => Promise<McpOutcome>,
    parser?: express.RequestHandler,
  ) => {
    const app = express();
    if (parser) app.use(parser);
    app.use(async (request, response) => {
      const outcome = await guard(request);
      if (!outcome.ok) return sendResponse(outcome.response, response);
      response.json(outcome.body ?? null);
    });
    return portOf(createServer(app).listen(0, '127.0.0.1'));
  };

  it.each([
    ['without a parser', undefined],
    ['behind a parser of JSON', express.json()],
    ['behind a parser of texts', express.text({ type: () => true })],
    ['behind a parser of bytes', express.raw({ type: () => true })],
  ])('is decided by its body, %s', async (_, parser) => {
    const { guard, value } = await setUp();
    const ports = [
      await serve((request) => guard(request), parser),
      await serve((request) => guard(request, request.body), parser),
    ];

    for (const port of ports) {
      const ask = async (body: string) => {
        const headers = { authorization: `Bearer ${value}`, 'content-type': 'application/json' };
        return callWire(port, 'POST', '/mcp', { headers, body });
      };
      const accepted = await ask(JSON.stringify(callOf('refund')));
      expect([accepted.status, accepted.body]).toEqual([200, callOf('refund')]);
      expect((await ask(JSON.stringify(callOf('other')))).status).toBe(403);
      expect((await ask(JSON.stringify([callOf('refund')]))).status).toBe(400);
      const large = await ask(JSON.stringify({ ...callOf('refund'), x: 'x'.repeat(4_194_304) }));
      expect(large.status).toBe(413);
    }
  });

  it('is refused if its Host header is not one host', async () => {
    const { guard, value } = await setUp();
    const port = await serve((request) => guard(request));
    const headers = { authorization: `Bearer ${value}`, host: 'shop.example/x' };

    expect((await callWire(port, 'GET', '/mcp', { headers })).status).toBe(400);
  });
});

describe('auth', () => {
  it('is what the SDKs take', async () => {
    const { tokens, call } = await setUp();
    const scopes = [REFUND, 'GET:*.example/orders', 'GET:other.test/x', 'POST:*/a'];
    const token = await tokens.issue({ account, scopes, name: 'bot', ttlSeconds: 60 });
    const { auth } = await call('refund', { value: token.value });

    expect(auth).toEqual({
      token: token.value,
      clientId: account,
      scopes: ['GET:shop.example/orders', 'POST:shop.example/a', REFUND],
      expiresAt: token.expiresAt.getTime() / 1000,
      resource: new URL(RESOURCE),
      resourceMetadataUrl: METADATA,
      extra: { id: token.id, account, name: 'bot' },
    });
  });

  it('belongs to the host: a change of it changes no other', async () => {
    const { call } = await setUp();
    const first = await call('refund');
    first.auth?.scopes.push('*:*/*');

    expect((await call('refund')).auth?.scopes).toEqual([REFUND]);
    expect((await call('refund')).token).not.toHaveProperty('value');
  });
});

describe('a challenge', () => {
  it('names only what is needed if the held scopes are long', async () => {
    const held = (count: number) =>
      Array.from({ length: count }, (_, index) => `POST:shop.example/tools/tool-${index + 10}$`);
    const scopeOf = async (scopes: readonly string[]) => {
      const { call } = await setUp({ scopes });
      const { challenge } = await answerTo(await call('refund'));
      return challenge?.match(/scope="([^"]*)"/)?.[1];
    };

    const short = held(29);
    expect(await scopeOf(short)).toBe([REFUND, ...short].sort().join(' '));
    expect([REFUND, ...short].join(' ').length).toBeLessThanOrEqual(1024);
    expect(await scopeOf(held(60))).toBe(REFUND);
  });

  it('drops held scopes that the needed one covers', async () => {
    const { post } = await setUp({
      scopes: ['GET:shop.example/files/a', REFUND],
      methods: { 'resources/read': 'GET:shop.example/files' },
    });
    const { challenge } = await answerTo(await post(message('resources/read')));

    expect(challenge).toContain(`scope="GET:shop.example/files ${REFUND}"`);
  });

  it('names the scope of a tool also if a catalog does not know it', async () => {
    const catalog = ScopeCatalog.from([REFUND, 'GET:shop.example/orders']);
    const { call } = await setUp({ service: { catalog } });

    expect((await answerTo(await call('other', { value: null }))).challenge).toContain(
      'scope="POST:shop.example/tools/other$"',
    );
  });
});

describe('mcpGuard', () => {
  it.each<[string, object]>([
    ['no tokens', { tokens: undefined }],
    ['tokens that only verify', { tokens: { verify() {}, verifySync() {} } }],
    ['no domain', { domain: undefined }],
    ['a pattern of domains', { domain: '*.example' }],
    ['no resource', { resource: undefined }],
    ['a resource with a query', { resource: `${RESOURCE}?x=1` }],
    ['a tool on another host', { tools: { a: 'GET:other.example/x' } }],
    ['a tool on all hosts', { tools: { a: 'GET:*/x' } }],
    ['a tool that is true', { tools: { a: true } }],
    ['a tool that is not a scope', { tools: { a: 'x' } }],
    ['a tool with a list', { tools: { a: ['GET:shop.example/x'] } }],
    ['tools in a list', { tools: ['GET:shop.example/x'] }],
    ['tools in a Map', { tools: new Map() }],
    ['a method on another host', { methods: { a: 'GET:other.example/x' } }],
    ['a method that is false', { methods: { a: false } }],
    ['tools/call as a method', { methods: { 'tools/call': true } }],
    ['an unknown option', { realm: 'x' }],
    ['a clientAddress that is no function', { clientAddress: '127.0.0.1' }],
  ])('refuses %s', async (_, options) => {
    const { tokens } = await setUp();
    const all = { tokens, domain: DOMAIN, resource: RESOURCE, ...options };

    expect(await codeOf(() => mcpGuard(all as unknown as McpGuardOptions))).toBe('invalid_options');
  });

  it('takes a domain in any case', async () => {
    const { call } = await setUp({ domain: 'SHOP.example', tools: { x: 'GET:shop.EXAMPLE/x' } });

    expect(await call('refund')).toMatchObject({ ok: true });
  });

  it('takes a service that only verifies', async () => {
    const { tokens } = await setUp();
    const guard = mcpGuard({ tokens, domain: DOMAIN, resource: RESOURCE });

    expect(await codeOf(guard(undefined as never))).toBe('invalid_request');
  });
});
/** So many objects within each other. */
function nested(levels: number): string {
  return `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
}

function cycle(): object {
  const all: { self?: object } = {};
  all.self = all;
  return all;
}
