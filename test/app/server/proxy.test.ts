import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { callerAddress } from '../../../src/app/server/client-address.ts';
import { toNodeListener } from '../../../src/http/index.ts';
import { basic, ORDERS, setUp } from '../../http/support.ts';
import { newFolder } from '../cli/support.ts';
import { HAS_NGINX, replaceAll, startNginx } from './nginx.ts';

const guide = readFileSync(new URL('../../../docs/guides/deploy.md', import.meta.url), 'utf8');
const [, config = ''] = /^```nginx\n(.*?)^```$/ms.exec(guide) ?? [];

let server: Server | undefined;
let nginx: ChildProcess | undefined;
afterEach(() => {
  nginx?.kill();
  server?.close();
});

/** Starts the service behind nginx. Returns a call to it, by the port of nginx or another host. */
async function start(
  trustProxy: readonly string[],
  changes: readonly (readonly [string, string])[],
) {
  const clientAddress = callerAddress({ trustProxy: [...trustProxy], clientHeader: undefined });
  const { handler } = setUp({ clientAddress });
  server = createServer(toNodeListener(handler)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const folder = newFolder();
  const { port } = server.address() as AddressInfo;
  const all: [string, string][] = [
    ['listen 443 ssl;', `listen unix:${folder}/socket;`],
    ['  ssl_certificate /etc/nginx/tokens.example.pem;\n', ''],
    ['  ssl_certificate_key /etc/nginx/tokens.example.key;\n', ''],
    ['127.0.0.1:8787', `127.0.0.1:${port}`],
  ];
  nginx = await startNginx(folder, replaceAll(config, [...all, ...changes]));
  return async (host: string, headers: Readonly<Record<string, string>>) => {
    const sent = request({
      socketPath: `${folder}/socket`,
      method: 'POST',
      path: '/token',
      headers: {
        host,
        authorization: basic('ada'),
        'content-type': 'application/json',
        ...headers,
      },
      agent: false,
    });
    const [answer] = (await once(sent.end(JSON.stringify({ scopes: [ORDERS] })), 'response')) as [
      IncomingMessage,
    ];
    return [answer.statusCode, JSON.parse(await text(answer)).code];
  };
}

const OK = [200, undefined];
const REFUSED = [403, 'cross_site'];

describe.runIf(HAS_NGINX)('nginx with the configuration of docs/guides/deploy.md', () => {
  it.each([[[]], [['127.0.0.1']]])(
    'lets the console change tokens, trusting %j',
    async (trusted) => {
      const post = await start(trusted, []);

      for (const host of ['tokens.example', 'tokens.example:8443', '[2001:db8::1]:8443']) {
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
    [['127.0.0.1'], OK],
    [[], REFUSED],
  ])('needs --trust-proxy for X-Forwarded-Host alone: %j', async (trusted, expected) => {
    const post = await start(trusted, [['    proxy_set_header Host $http_host;\n', '']]);

    expect(await post('tokens.example', { origin: 'https://tokens.example' })).toEqual(expected);
    const same = { origin: 'https://tokens.example', 'sec-fetch-site': 'same-origin' };
    expect(await post('tokens.example', same)).toEqual(OK);
  });
});
