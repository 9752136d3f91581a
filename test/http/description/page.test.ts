import { describe, expect, it, vi } from 'vitest';
import { expectFailure, setUp } from '../support.ts';

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
  it('serves the page without credentials, under a strict content security policy', async () => {
    const { response, headers } = await get('/docs');

    expect(response.status).toBe(200);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('cache-control')).toBe('no-cache');
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
      'trusted-types dompurify',
    ]);
  });

  it('has no inline script, style or handler, and loads nothing from elsewhere', async () => {
    const { text } = await get('/docs');

    expect(text).not.toMatch(/<style|\sstyle=|\son\w+=|javascript:/i);
    expect(text.match(/<script[^>]*>[^<]+/g)).toBeNull();
    const named = [...text.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, link]) => link);
    expect(
      named.filter(
        (link) => !/^(?:docs\/[a-z.-]+\?[0-9a-f]{16}|data:,|openapi\.json)$/.test(String(link)),
      ),
    ).toEqual([]);
    expect(named).toHaveLength(FILES.length + 2);
  });

  it('links to existing files below the base path', async () => {
    const { handler } = setUp({ docs: true, basePath: '/auth' });
    const page = await (await handler(new Request('http://localhost/auth/docs'))).text();
    const named = [...page.matchAll(/(?:src|href)="(docs[^"]*|openapi\.json)"/g)];

    for (const [, link = ''] of named) {
      const address = new URL(link, 'http://localhost/auth/docs');
      expect((await handler(new Request(address))).status).toBe(200);
    }
    expect(named).toHaveLength(FILES.length + 1);
  });

  it('configures the viewer to send no calls and ask for no credentials', async () => {
    const { text } = await get('/docs/start.js');

    expect(text).toContain('supportedSubmitMethods: []');
    expect(text).toContain('persistAuthorization: false');
    expect(text).toContain('queryConfigEnabled: false');
    expect(text).toContain('authorizeBtn: () => () => null');
  });
});

describe('the files of /docs', () => {
  it.each(FILES)('have their content type and are cached for a year: %s', async (path, type) => {
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
  ])('do not include %s', async (path) => {
    const { call } = setUp({ docs: true });

    expectFailure(await call('GET', path, { as: null }), 'not_found');
  });

  it.each(['/docs', '/docs/start.js'])('allow only GET and HEAD: %s', async (path) => {
    const { call, handler } = setUp({ docs: true });

    const answer = await call('POST', path, { as: null });
    expectFailure(answer, 'method_not_allowed');
    expect(answer.headers.get('allow')).toBe('GET, HEAD');

    const head = await handler(new Request(`http://localhost${path}`, { method: 'HEAD' }));
    expect(head.status).toBe(200);
    expect(await head.text()).toBe('');
  });
});

describe('the option docs', () => {
  it.each([undefined, false])('makes all its paths not_found when it is %s', async (docs) => {
    const { call } = setUp({ docs });

    for (const path of ['/docs', ...FILES.map(([file]) => file)]) {
      expectFailure(await call('GET', path, { as: null }), 'not_found');
    }
  });

  it('must be a boolean', () => {
    expect(() => setUp({ docs: false })).not.toThrow();
    expect(() => setUp({ docs: 'yes' as never })).toThrow(
      expect.objectContaining({ code: 'invalid_options' }),
    );
  });
});

describe('the docs page without swagger-ui-dist', () => {
  it('fails at construction and says which package to install', async () => {
    vi.resetModules();
    vi.doMock('node:module', () => ({
      createRequire: () => ({
        resolve: () => {
          throw new Error('Cannot find module');
        },
      }),
    }));
    const { docsPage } = await import('../../../src/http/description/page.ts');

    expect(() => docsPage()).toThrow(
      expect.objectContaining({
        code: 'invalid_options',
        message: expect.stringContaining('npm install swagger-ui-dist'),
      }),
    );
    vi.doUnmock('node:module');
    vi.resetModules();
    const { docsPage: found } = await import('../../../src/http/description/page.ts');
    expect([...found().keys()]).toContain('/docs');
  });
});
