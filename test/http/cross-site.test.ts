import * as http from 'node:http';
import * as http2 from 'node:http2';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { forwardedAddress, toNodeListener } from '../../src/http/index.ts';
import {
  asForm,
  basic,
  expectFailure,
  ORDERS,
  PASSWORD,
  type SetUpOptions,
  setUp,
} from './support.ts';
import { call as callNode, closeAll, portOf, raw } from './wire.ts';

const HOST = 'tokens.example';
const FORMS = ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain'];

afterEach(closeAll);

type Headers = Readonly<Record<string, string>>;

/** Calls that change something; `ID` stands for the id of a token. */
const UNSAFE: [method: string, path: string, json?: object][] = [
  ['POST', '/token', { scopes: [ORDERS] }],
  ['PUT', '/token/ID', { scopes: [ORDERS] }],
  ['PATCH', '/token/ID', { name: 'new' }],
  ['POST', '/token/ID/rotate'],
  ['POST', '/token/ID/explain', { scope: ORDERS }],
  ['DELETE', '/token/ID'],
];

/** Makes every call that changes something, once by password and once by session. */
async function changesWith(headers: Headers, options: SetUpOptions = {}) {
  const { call, issue, tokens } = setUp({
    authenticate: ({ username, password }) => (password === PASSWORD ? username : null),
    session: (request) => request.headers.get('cookie'),
    ...options,
  });
  const ways = [
    { authorization: basic('ada') },
    { cookie: 'ada', 'x-tokenwright': 'console' },
  ] as const;
  const answers = [];
  for (const way of ways) {
    for (const [method, path, json] of UNSAFE) {
      const { id } = await issue();
      const sent = { as: null, headers: { ...way, ...headers }, ...(json && { json }) };
      const answer = await call(method, path.replace('ID', id), sent);
      const after = await tokens.get('ada', id);
      answers.push({ answer, isUnchanged: after?.version === 1 });
    }
  }
  return answers;
}

async function expectAllowed(isAllowed: boolean, headers: Headers): Promise<void> {
  for (const { answer, isUnchanged } of await changesWith(headers)) {
    if (isAllowed) expect(answer.status).toBe(200);
    else {
      expectFailure(answer, 'cross_site');
      expect(isUnchanged).toBe(true);
    }
  }
}

describe('a change without Sec-Fetch-Site', () => {
  it.each([
    [HOST, `https://${HOST}`, true],
    [HOST, `http://${HOST}`, true],
    [HOST, `HTTPS://TOKENS.example`, true],
    ['TOKENS.Example', `https://${HOST}`, true],
    [HOST, `https://${HOST}:443`, true],
    [`${HOST}:443`, `https://${HOST}`, true],
    [`${HOST}:80`, `http://${HOST}`, true],
    [`${HOST}:80`, `https://${HOST}`, false],
    [HOST, `https://${HOST}:80`, false],
    [`${HOST}:8787`, `http://${HOST}:8787`, true],
    [`${HOST}:8787`, `http://${HOST}:8788`, false],
    [`${HOST}:8787`, `http://${HOST}`, false],
    [HOST, `http://${HOST}:8787`, false],
    [`${HOST}.`, `https://${HOST}`, true],
    [HOST, `https://${HOST}.`, true],
    [`${HOST}.:8787`, `http://${HOST}:8787`, true],
    [HOST, `https://${HOST}..`, false],
    ['[::1]:8787', 'http://[::1]:8787', true],
    ['[0:0:0:0:0:0:0:1]:8787', 'http://[::1]:8787', true],
    ['[2001:DB8::1]', 'https://[2001:db8::1]', true],
    ['[2001:db8::1]', 'https://[2001:db8::2]', false],
    ['::1', 'http://[::1]', false],
    ['127.0.0.1:8787', 'http://127.0.0.1:8787', true],
    ['127.0.0.1:8787', 'http://localhost:8787', false],
    [HOST, 'https://evil.example', false],
    [HOST, `https://evil.${HOST}`, false],
    [HOST, `https://${HOST}.evil.example`, false],
    [HOST, `https://${HOST}@evil.example`, false],
    [HOST, `https://evil.example@${HOST}`, false],
    [HOST, `https://${HOST}/`, false],
    [HOST, `https://${HOST}/path`, false],
    [HOST, `https://${HOST}?x`, false],
    [HOST, `https://${HOST}#x`, false],
    [HOST, `https://${HOST}, https://evil.example`, false],
    [HOST, `https://evil.example, https://${HOST}`, false],
    [HOST, `https://${HOST}, https://${HOST}`, false],
    [HOST, `https://${HOST} https://${HOST}`, false],
    [HOST, 'null', false],
    [HOST, 'NULL', false],
    [HOST, '', false],
    [HOST, HOST, false],
    [HOST, `//${HOST}`, false],
    [HOST, `file://${HOST}`, false],
    [HOST, `chrome-extension://${HOST}`, false],
    [HOST, `https://${HOST}:`, false],
    [HOST, `https://${HOST}:99999`, false],
    [`${HOST}, ${HOST}`, `https://${HOST}`, false],
    ['', `https://${HOST}`, false],
    ['null', 'null', false],
    [`user@${HOST}`, `https://${HOST}`, false],
  ])('and with Host %j and Origin %j is made: %s', async (host, origin, isAllowed) => {
    await expectAllowed(isAllowed, { host, origin });
  });

  it.each([
    ...FORMS,
    ...FORMS.map((type) => `${type}; charset=utf-8`),
    ...FORMS.map((type) => type.toUpperCase()),
    ...FORMS.map((type) => `  ${type}\t;x="application/json"`),
    ...FORMS.map((type) => `application/json, ${type}`),
    ...FORMS.map((type) => `${type}, application/json`),
    'multipart/form-data; boundary="a,b"',
  ])('and with the Content-Type %j is refused', async (type) => {
    await expectAllowed(false, { 'content-type': type });
  });

  it.each(['application/json', 'application/json; x=text/plain'])(
    'and with the Content-Type %j is made',
    async (type) => {
      await expectAllowed(true, { 'content-type': type });
    },
  );

  it('names the Content-Type to send when it refuses that of a form', async () => {
    const [first] = await changesWith({ 'content-type': 'text/plain' });
    expect(first?.answer.body['message']).toContain('"Content-Type: application/json"');
  });

  it('is judged by the host of the URL if a Request has no Host header', async () => {
    await expectAllowed(true, { origin: 'http://localhost' });
    await expectAllowed(false, { origin: 'http://localhost:8787' });
  });

  it('passes on a platform that copied the request and gave it a type for its empty text', async () => {
    const { issue, handler } = setUp();
    const rotate = async (headers: Headers) => {
      const { id } = await issue();
      const init = { method: 'POST', headers: { authorization: basic('ada'), ...headers } };
      return handler(new Request(`http://localhost/token/${id}/rotate`, { ...init, body: '' }));
    };

    expect((await rotate({})).status).toBe(200);
    expect((await rotate({ 'content-type': 'text/plain' })).status).toBe(403);
    expect((await rotate({ origin: 'https://evil.example' })).status).toBe(403);
  });
});

describe('a Sec-Fetch-Site', () => {
  const foreign = { host: HOST, origin: 'https://evil.example' };

  it.each(['same-origin', 'none'])('of %s decides without the Origin', async (site) => {
    const headers = { 'sec-fetch-site': site };

    await expectAllowed(true, { ...foreign, ...headers });
    await expectAllowed(true, { ...foreign, ...headers, origin: 'null' });
    for (const { answer } of await changesWith({ ...headers, 'content-type': 'text/plain' })) {
      expect(answer.body['code']).not.toBe('cross_site');
    }
  });

  it.each(['cross-site', 'same-site', '', 'Same-Origin', 'same-origin, same-origin', 'unheard-of'])(
    'of %j refuses a call with the Origin of this host',
    async (site) => {
      await expectAllowed(false, {
        host: HOST,
        origin: `https://${HOST}`,
        'sec-fetch-site': site,
      });
    },
  );
});

describe('a call that browsers add no credentials to', () => {
  const headers = { host: HOST, origin: 'https://evil.example' };

  it('reads as before', async () => {
    const { call, issue } = setUp();
    const { id } = await issue();

    for (const path of ['/token', `/token/${id}`, '/scopes', '/review']) {
      for (const origin of [headers.origin, 'null']) {
        const all = { ...headers, origin, 'content-type': 'text/plain' };
        expect((await call('GET', path, { headers: all })).status).toBe(200);
      }
    }
  });

  it('introspects, revokes and derives with any Origin', async () => {
    const { call, issue } = setUp({
      introspection: { authenticate: ({ password }) => (password === PASSWORD ? 'shop' : null) },
      revocation: true,
      derivation: true,
    });
    const { value } = await issue();
    const form = asForm({ token: value });
    const all = { ...form.headers, ...headers };
    const bearer = { ...headers, authorization: `Bearer ${value}` };

    const derived = await call('POST', '/token/derive', {
      json: { scopes: [ORDERS] },
      headers: bearer,
    });
    const introspected = await call('POST', '/introspect', { ...form, headers: all });
    const revoked = await call('POST', '/revoke', { ...form, as: null, headers: all });

    expect([derived.status, introspected.status, revoked.status]).toEqual([200, 200, 200]);
    expect(introspected.body['active']).toBe(true);
    const after = await call('POST', '/introspect', form);
    expect(after.body).toEqual({ active: false });
  });
});

describe('the host of a call that came through Node', () => {
  const serve = (options: SetUpOptions = {}, wrap = false) => {
    const setup = setUp(options);
    const handle = wrap ? async (request: Request) => setup.handler(request) : setup.handler;
    return { ...setup, listener: toNodeListener(handle) };
  };

  it.each([false, true])('is that of the Host header, in a wrapper: %s', async (wrap) => {
    const { listener, issue } = serve({}, wrap);
    const port = await portOf(http.createServer(listener).listen(0, '127.0.0.1'));
    const { id } = await issue();
    const rotate = async (origin: string | string[], host = HOST) => {
      const headers = { authorization: basic('ada'), host, origin };
      return (await callNode(port, 'POST', `/token/${id}/rotate`, { headers })).status;
    };

    expect(await rotate(`https://${HOST}`)).toBe(200);
    expect(await rotate(`http://127.0.0.1:${port}`, `127.0.0.1:${port}`)).toBe(200);
    expect(await rotate('http://localhost')).toBe(403);
    expect(await rotate([`https://${HOST}`, 'https://evil.example'])).toBe(403);
    expect(await rotate([`https://${HOST}`, `https://${HOST}`])).toBe(403);
  });

  it.each([false, true])(
    'is unknown over HTTP/1.0 without Host, in a wrapper: %s',
    async (wrap) => {
      const { listener, issue } = serve({}, wrap);
      const port = await portOf(http.createServer(listener).listen(0, '127.0.0.1'));
      const { id } = await issue();
      const send = (...headers: string[]) =>
        raw(
          port,
          [
            `POST /token/${id}/rotate HTTP/1.0`,
            `Authorization: ${basic('ada')}`,
            ...headers,
            '',
            '',
          ].join('\r\n'),
        );

      expect(await send('Origin: http://localhost')).toContain(' 403 ');
      expect(await send()).toContain(' 200 ');
    },
  );

  it.each([false, true])('is the authority of HTTP/2, in a wrapper: %s', async (wrap) => {
    const { listener, issue } = serve({}, wrap);
    const server = http2.createServer(listener as never).listen(0, '127.0.0.1');
    const port = await portOf(server);
    const { id } = await issue();
    const client = http2.connect(`http://127.0.0.1:${port}`);
    const rotate = async (headers: http2.OutgoingHttpHeaders) => {
      const stream = client.request({
        ':method': 'POST',
        ':path': `/token/${id}/rotate`,
        authorization: basic('ada'),
        ...headers,
      });
      stream.end();
      let status: number | undefined;
      stream.on('response', (answer) => {
        status = answer[':status'];
      });
      await text(stream);
      return status;
    };

    const origin = `https://${HOST}`;
    expect(await rotate({ ':authority': HOST, origin })).toBe(200);
    expect(await rotate({ ':authority': 'other.example', origin })).toBe(403);
    expect(await rotate({ ':authority': 'other.example', host: HOST, origin })).toBe(403);
    expect(await rotate({ ':authority': HOST, origin: 'http://localhost' })).toBe(403);
    client.close();
  });

  it.each<[what: string, proxies: string[] | undefined, headers: Headers, status: number]>([
    ['a trusted proxy', ['127.0.0.1'], { 'x-forwarded-host': HOST }, 200],
    ['a trusted proxy, another', ['127.0.0.1'], { 'x-forwarded-host': 'other.example' }, 403],
    ['two proxies that append', ['127.0.0.1'], { 'x-forwarded-host': `${HOST}, inner` }, 200],
    ['a trusted proxy, empty', ['127.0.0.1'], { 'x-forwarded-host': '', host: HOST }, 403],
    ['a trusted proxy with only Host', ['127.0.0.1'], { host: HOST }, 200],
    ['a trusted proxy, against Host', ['127.0.0.1'], { 'x-forwarded-host': 'x', host: HOST }, 403],
    ['somebody else', ['192.0.2.1'], { 'x-forwarded-host': HOST }, 403],
    ['somebody else with Host', ['192.0.2.1'], { 'x-forwarded-host': 'x', host: HOST }, 200],
    ['anybody, without proxies', undefined, { 'x-forwarded-host': HOST }, 403],
  ])('is X-Forwarded-Host of %s', async (_, proxies, headers, status) => {
    const clientAddress = proxies && forwardedAddress({ proxies });
    const { listener, issue } = serve({ clientAddress: clientAddress as never });
    const port = await portOf(http.createServer(listener).listen(0, '127.0.0.1'));
    const { id } = await issue();
    const all = {
      authorization: basic('ada'),
      host: 'inner',
      origin: `https://${HOST}`,
      'x-forwarded-for': '192.0.2.7',
      ...headers,
    };

    const answer = await callNode(port, 'POST', `/token/${id}/rotate`, { headers: all });

    expect(answer.status).toBe(status);
  });
});
