import { get, type IncomingMessage } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ACCOUNT, newFolder, run, serve } from '../cli/support.ts';
import { startProxy } from '../console/proxy.ts';

/** The files that a page links, fetched from where a browser looks for them. */
async function filesAt(page: string): Promise<Response[]> {
  const text = await (await fetch(page)).text();
  const names = [...text.matchAll(/(?:src|href)="([^"]+\.(?:css|js))"/g)];
  return Promise.all(names.map(([, name = '']) => fetch(new URL(name, page))));
}

describe('serve', () => {
  it('serves the console and its files at /console without credentials', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT]);
    const ask = (path: string, method = 'GET') => fetch(service.url + path, { method });

    expect(service.greeting).toContain(`  console   ${service.url}/console\n`);
    expect(service.greeting).toContain('\nA first call:\n');
    const page = await ask('/console');
    const text = await page.text();
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(await (await ask('/console?a=b')).text()).toBe(text);
    for (const path of ['/console', '/console/']) {
      const files = await filesAt(service.url + path);
      expect(files.length).toBeGreaterThan(1);
      for (const { status, headers } of files) {
        expect([status, headers.get('cache-control')]).toEqual([
          200,
          'public, max-age=31536000, immutable',
        ]);
      }
    }
    const head = await ask('/console', 'HEAD');
    expect([head.status, await head.text()]).toEqual([200, '']);
    expect((await ask('/console', 'POST')).status).toBe(405);
    for (const path of ['/console/nowhere', '/console/..%2ftoken', '/consoles', '/Console']) {
      expect((await ask(path)).status, path).toBe(404);
    }
  });

  it.each([
    ['/healthz', 200],
    ['/', 200],
    ['/console', 200],
    ['/openapi.json', 200],
    ['/nowhere', 404],
    ['/console/../console', 404],
    ['/console/./', 404],
    ['/console/%2e', 404],
  ])(
    'answers %s with %i, in absolute form too, and unchanged pages with 304',
    async (path, status) => {
      const service = await serve(['--data', newFolder(), ...ACCOUNT]);
      const { port } = new URL(service.url);
      const ask = (target: string, sent: Record<string, string> = {}) =>
        new Promise<IncomingMessage>((resolve) => {
          get({ port, path: target, headers: sent }, (answer) => resolve(answer.resume()));
        });

      for (const start of ['', 'http://x', 'HTTPS://x:1']) {
        const { statusCode, headers } = await ask(`${start}${path}`);
        expect(statusCode, start).toBe(status);
        if (status !== 200) continue;
        const known = { 'if-none-match': headers.etag ?? '' };
        expect((await ask(`${start}${path}`, known)).statusCode).toBe(304);
      }
      expect((await ask(`http://ada@x${path}`)).statusCode).toBe(404);
    },
  );

  it('serves a console that works behind a proxy with a path prefix', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT]);
    const proxy = await startProxy(service.url, (path) => path.replace(/^\/tokens-ui/, ''));
    onTestFinished(proxy.close);
    const page = `${proxy.url}/tokens-ui/console`;

    const files = await filesAt(page);
    const script = files.find(({ url }) => url.endsWith('.js'))?.url;
    const [, api = ''] = /data-api="([^"]+)"/.exec(await (await fetch(page)).text()) ?? [];
    const description = new URL(`${api}openapi.json`, script);

    expect(files.map(({ status }) => status)).toEqual([200, 200]);
    expect(description.href).toBe(`${proxy.url}/tokens-ui/openapi.json`);
    expect((await fetch(description)).status).toBe(200);
  });

  it.each([
    ['the flag', ['--console', 'off'], {}],
    ['the variable', [], { TOKENWRIGHT_CONSOLE: 'off' }],
  ])('serves no console if %s turns it off', async (_, flags, environment) => {
    const service = await serve(['--data', newFolder(), ...flags], environment);

    expect(service.greeting).toContain('  console   off\n');
    expect(service.greeting).toContain('\nA first call:\n');
    expect((await fetch(`${service.url}/console`)).status).toBe(404);
    expect(await (await fetch(service.url)).text()).not.toContain('console');
  });

  it('points to the console only on the first start, when it shows the password', async () => {
    const data = newFolder();
    const first = await serve(['--data', data]);
    await first.stop();
    const second = await serve(['--data', data]);

    const [, user] = /accounts {2}(\w+), password/.exec(first.greeting) ?? [];
    expect(first.greeting).toContain(`Sign in to the console as ${user} with that password, or`);
    expect(second.greeting).toContain('\nA first call:\n');
    expect(second.greeting).not.toContain('Sign in');
  });

  it('refuses values of --console other than on and off', async () => {
    const { code, stderr } = await run(['serve', '--data', newFolder(), '--console', 'yes']);

    expect(code).toBe(2);
    expect(stderr).toContain('--console (TOKENWRIGHT_CONSOLE) must be on or off');
  });

  it('counts the page and its files as one route in the metrics', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT, '--metrics']);
    for (const path of ['/console', '/console/', '/console/canary', '/console?canary']) {
      await (await fetch(service.url + path)).text();
    }

    const page = await (await fetch(`${service.url}/metrics`)).text();

    expect(page).toContain('{route="/console",method="GET",status="2xx"} 3');
    expect(page).toContain('{route="/console",method="GET",status="4xx"} 1');
    expect(page).not.toContain('canary');
  });
});
