import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chromium } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { tokenHandler, toNodeListener } from '../../../../src/http/index.ts';
import { generateKey, MemoryTokenStore, TokenService } from '../../../../src/index.ts';
import { CHROMIUM, hasChromium, PASSWORD, USERNAME } from './support.ts';

const ORDERS = 'GET:shop.example/orders';

async function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** A service at `http://victim.test`, where the browser remembers the password, and a page of another site. */
async function open() {
  const tokens = new TokenService({
    store: new MemoryTokenStore(),
    keys: [generateKey()],
    prefix: 'acme',
  });
  const { id } = await tokens.issue({ account: USERNAME, scopes: [ORDERS] });
  const handler = tokenHandler({
    tokens,
    docs: true,
    authenticate: ({ username, password }) => (password === PASSWORD ? username : null),
  });
  const answer = toNodeListener(handler);
  const calls: { readonly headers: IncomingHttpHeaders; status?: number }[] = [];
  const port = await listen((request, response) => {
    const call: (typeof calls)[number] = { headers: request.headers };
    if (request.method === 'POST') calls.push(call);
    response.on('finish', () => {
      call.status = response.statusCode;
    });
    void answer(request, response);
  });
  const victim = `http://victim.test:${port}`;
  let html = '';
  const evilPort = await listen((_, response) => {
    response.setHeader('content-type', 'text/html').end(html);
  });
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP *.test 127.0.0.1'],
  });
  onTestFinished(() => browser.close());
  const context = await browser.newContext({
    httpCredentials: { username: USERNAME, password: PASSWORD },
  });
  const page = await context.newPage();
  await page.goto(`${victim}/scopes`);
  const attack = async (text: string) => {
    html = text;
    calls.length = 0;
    await page.goto(`http://evil.test:${evilPort}/`);
    await expect.poll(() => calls.at(-1)?.status).toBeGreaterThan(0);
    return calls;
  };
  const version = async () => (await tokens.get(USERNAME, id))?.version;
  return { page, victim, rotate: `${victim}/token/${id}/rotate`, calls, attack, version };
}

describe.skipIf(!hasChromium)('a page of another site, over plain HTTP', () => {
  it.each([
    ['a form', (url: string) => `<form method="post" action="${url}"></form>`],
    [
      'a form of text',
      (url: string) => `<form method="post" enctype="text/plain" action="${url}">`,
    ],
    [
      'a form without a referrer',
      (url: string) =>
        `<meta name="referrer" content="no-referrer"><form method="post" action="${url}"></form>`,
    ],
  ])(
    'cannot rotate a token by %s with the password that the browser remembers',
    async (_, form) => {
      const { rotate, attack, version } = await open();

      const calls = await attack(`${form(rotate)}<script>document.forms[0].submit()</script>`);

      const { headers, status } = calls.at(-1) ?? { headers: {} };
      expect(headers.authorization).toMatch(/^Basic /);
      expect(headers['sec-fetch-site']).toBeUndefined();
      expect(status).toBe(403);
      expect(await version()).toBe(1);
    },
  );

  it('cannot rotate a token by fetch, which a page of the service can', async () => {
    const { page, victim, rotate, attack, calls, version } = await open();
    const options = `{ method: 'POST', mode: 'no-cors', credentials: 'include' }`;

    await attack(`<script>fetch('${rotate}', ${options})</script>`);
    expect(await version()).toBe(1);

    await page.goto(`${victim}/scopes`);
    const status = await page.evaluate(
      async (url) => (await fetch(url, { method: 'POST' })).status,
      rotate,
    );
    expect([status, await version()]).toEqual([200, 2]);
    expect(calls.at(-1)?.headers['sec-fetch-site']).toBeUndefined();
  });
});

describe.skipIf(!hasChromium)('the reference page', () => {
  it('shows all calls under its policy', async () => {
    const { page: first, victim } = await open();
    // A page of its own: the first one may still ask for the icon of the JSON that it showed.
    const page = await first.context().newPage();
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error') faults.push(`${message.text()} ${message.location().url}`);
    });

    await page.goto(`${victim}/docs`);

    await page.locator('#operations-tokens-issueToken').waitFor();
    await page.getByText('Issues a token').click();
    await page.getByText('nightly build').first().waitFor();
    expect(faults).toEqual([]);
  });
});
