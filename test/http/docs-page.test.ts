import { describe, expect, it, vi } from 'vitest';
import { expectFailure, setUp } from './support.ts';

const FILES: [path: string, type: string][] = [
  ['/docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
  ['/docs/swagger-ui.css', 'text/css; charset=utf-8'],
  ['/docs/layout.css', 'text/css; charset=utf-8'],
  ['/docs/start.js', 'text/javascript; charset=utf-8'],
];

async function get(path: string, options: Parameters<typeof setUp>[0] = { docs: true }) {
  const { handler } = setUp(options);
  const response = await handler(new Request(`http://localhost${path}`));
  return { response, headers: response.headers, text: await response.text() };
}

describe('GET /docs', () => {
  it('answers everybody with a page under a strict policy', async () => {
    const { response, headers } = await get('/docs');

    expect(response.status).toBe(200);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('content-security-policy')?.split('; ')).toEqual([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self' data:",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
  });

  it('has no script, style or handler within, and names nothing of another place', async () => {
    const { text } = await get('/docs');

    expect(text).not.toMatch(/<style|\sstyle=|\son\w+=|javascript:/i);
    expect(text.match(/<script[^>]*>[^<]+/g)).toBeNull();
    const named = [...text.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, place]) => place);
    expect(
      named.filter(
        (place) => !/^(?:docs\/[a-z.-]+\?[0-9a-f]{16}|data:,|openapi\.json)$/.test(String(place)),
      ),
    ).toEqual([]);
    expect(named).toHaveLength(FILES.length + 2);
  });

  it('finds all that it names below its own address, wherever it is mounted', async () => {
    const { handler } = setUp({ docs: true, basePath: '/auth' });
    const page = await (await handler(new Request('http://localhost/auth/docs'))).text();
    const named = [...page.matchAll(/(?:src|href)="(docs[^"]*|openapi\.json)"/g)];

    for (const [, place = ''] of named) {
      const address = new URL(place, 'http://localhost/auth/docs');
      expect((await handler(new Request(address))).status).toBe(200);
    }
    expect(named).toHaveLength(FILES.length + 1);
  });

  it('neither calls the service nor asks for credentials', async () => {
    const { text } = await get('/docs/start.js');

    expect(text).toContain('supportedSubmitMethods: []');
    expect(text).toContain('persistAuthorization: false');
    expect(text).toContain('queryConfigEnabled: false');
    expect(text).toContain('authorizeBtn: () => () => null');
  });
});

describe('the files of the page', () => {
  it.each(FILES)('have their type and are kept for long: %s', async (path, type) => {
    const { response, headers, text } = await get(path);

    expect(response.status).toBe(200);
    expect(text).not.toBe('');
    expect(headers.get('content-type')).toBe(type);
    expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
  });

  it.each([
    '/docs/',
    '/docs/index.html',
    '/docs/package.json',
    '/docs/swagger-ui.js',
    '/docs/swagger-ui-bundle.js.map',
    '/docs/swagger-ui-bundle.js/',
    '/docs//swagger-ui.css',
    '/docs/..%2fpackage.json',
    '/docs/%2e%2e/%2e%2e/package.json',
    '/docs/..\\package.json',
    '/docs/constructor',
    '/docs/__proto__',
  ])('are these alone: not %s', async (path) => {
    const { call } = setUp({ docs: true });

    expectFailure(await call('GET', path, { as: null }), 'not_found');
  });

  it.each(['/docs', '/docs/start.js'])('are only read: %s', async (path) => {
    const { call, handler } = setUp({ docs: true });

    const answer = await call('POST', path, { as: null });
    expectFailure(answer, 'method_not_allowed');
    expect(answer.headers.get('allow')).toBe('GET, HEAD');

    const head = await handler(new Request(`http://localhost${path}`, { method: 'HEAD' }));
    expect(head.status).toBe(200);
    expect(await head.text()).toBe('');
  });
});

describe('a page that was not asked for', () => {
  it.each([undefined, false])('is nowhere, with %s', async (docs) => {
    const { call } = setUp({ docs });

    for (const path of ['/docs', ...FILES.map(([file]) => file)]) {
      expectFailure(await call('GET', path, { as: null }), 'not_found');
    }
  });
});

describe('a page without its package', () => {
  it('is refused when the handler is made, in words that say what to do', async () => {
    vi.resetModules();
    vi.doMock('node:module', () => ({
      createRequire: () => ({
        resolve: () => {
          throw new Error('Cannot find module');
        },
      }),
    }));
    const { docsPage } = await import('../../src/http/docs-page.ts');

    expect(() => docsPage()).toThrow(
      expect.objectContaining({
        code: 'invalid_options',
        message: expect.stringContaining('npm install swagger-ui-dist'),
      }),
    );
    vi.doUnmock('node:module');
    vi.resetModules();
    const { docsPage: found } = await import('../../src/http/docs-page.ts');
    expect([...found().keys()]).toContain('/docs');
  });

  it('does not matter where none is asked for', () => {
    expect(() => setUp({ docs: false })).not.toThrow();
    expect(() => setUp({ docs: 'yes' as never })).toThrow(
      expect.objectContaining({ code: 'invalid_options' }),
    );
  });
});
