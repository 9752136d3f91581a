import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { callerAddress } from '../../../src/app/server/client-address.ts';
import { toNodeListener } from '../../../src/http/index.ts';
import { basic, ORDERS, setUp } from '../../http/support.ts';
import { callProxy, type DeployedProxy, PROXIES } from './deployed-proxy.ts';

let server: Server | undefined;
let proxy: DeployedProxy | undefined;
afterEach(() => {
  proxy?.stop();
  server?.close();
});

type Name = keyof typeof PROXIES;
type Changes = readonly (readonly [string, string])[];

const installed = (['nginx', 'Caddy'] as const).filter((name) => PROXIES[name].isInstalled);
/** Caddy answers for the names of its file only. */
const HOSTS = {
  nginx: ['tokens.example', 'tokens.example:8443', '[2001:db8::1]:8443'],
  Caddy: ['tokens.example', 'tokens.example:8443'],
};
const OK = [200, undefined];
const REFUSED = [403, 'cross_site'];

/** Starts a proxy in front of a node, which is ready. */
async function startBefore(
  name: Name,
  answer: RequestListener,
  changes?: Changes,
): Promise<DeployedProxy> {
  server = createServer((request, response) => {
    if (request.url === '/readyz') response.end();
    else answer(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  proxy = await PROXIES[name].start([port, port], changes);
  return proxy;
}

/** Starts the service behind a proxy. Returns a call to it, by the port of the proxy or another host. */
async function start(name: Name, trustProxy: readonly string[], changes?: Changes) {
  const clientAddress = callerAddress({ trustProxy: [...trustProxy], clientHeader: undefined });
  const { handler } = setUp({ clientAddress });
  const started = await startBefore(name, toNodeListener(handler), changes);
  return async (host: string, headers: Readonly<Record<string, string>>) => {
    const json = { 'content-type': 'application/json', authorization: basic('ada') };
    const { status, body } = await callProxy(started, '/token', {
      method: 'POST',
      headers: { host, ...json, ...headers },
      body: JSON.stringify({ scopes: [ORDERS] }),
    });
    return [status, JSON.parse(body).code];
  };
}

describe.each(installed)('%s with its file of examples/run/deploy', (name) => {
  it.each([[[]], [['127.0.0.1']]])(
    'lets the console change tokens, trusting %j',
    async (trusted) => {
      const post = await start(name, trusted);

      for (const host of HOSTS[name]) {
        const own = `https://${host}`;
        expect(await post(host, { origin: own })).toEqual(OK);
        expect(await post(host, { origin: own, 'x-forwarded-host': 'evil.example' })).toEqual(OK);
        expect(await post(host, { origin: 'https://evil.example' })).toEqual(REFUSED);
        expect(await post(host, { origin: 'null' })).toEqual(REFUSED);
        const forged = { origin: 'https://evil.example', 'x-forwarded-host': 'evil.example' };
        expect(await post(host, forged)).toEqual(REFUSED);
        expect(await post(host, { 'sec-fetch-site': 'same-origin', origin: own })).toEqual(OK);
      }
    },
  );

  it.each([
    ['/token', 200],
    ['/token?cursor=/check', 200],
    ['/checks', 200],
    ['//check', 200],
    ['/%63heck', 200],
    ['/check', 404],
    ['/check?a=b', 404],
    ['/check/orders', 404],
    ['/check/../token', 404],
    ['/check/..%2Ftoken', 404],
    ['https://tokens.example/check', 404],
    ['/metrics', 404],
    ['/metrics?a=b', 404],
  ])('answers %s with %i, and passes no other target on', async (target, expected) => {
    const reached: IncomingMessage[] = [];
    const started = await startBefore(name, (request, response) => {
      reached.push(request);
      response.end();
    });

    const headers = { 'x-forwarded-for': '192.0.2.66' };
    const { status } = await callProxy(started, target, { headers });

    expect(status).toBe(expected);
    expect(reached.map(({ url }) => url)).toEqual(expected === 200 ? [target] : []);
    // What the proxy writes is last, so that it can be told from what the client sent.
    for (const { headers } of reached)
      expect(headers['x-forwarded-for']).toMatch(/(^|, )127\.0\.0\.1$/);
  });
});

describe.runIf(PROXIES.nginx.isInstalled)('nginx without the header Host', () => {
  it.each([
    [['127.0.0.1'], OK],
    [[], REFUSED],
  ])('needs --trust-proxy for X-Forwarded-Host alone: %j', async (trusted, expected) => {
    const host = '    proxy_set_header Host $http_host; # with its port, which $host lacks\n';
    const post = await start('nginx', trusted, [[host, '']]);

    expect(await post('tokens.example', { origin: 'https://tokens.example' })).toEqual(expected);
    const same = { origin: 'https://tokens.example', 'sec-fetch-site': 'same-origin' };
    expect(await post('tokens.example', same)).toEqual(OK);
  });
});
