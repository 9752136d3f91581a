import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { pageAssets } from '../../src/console/assets.ts';
import { tokenConsole } from '../../src/console/index.ts';
import { isTokenError } from '../../src/index.ts';

const page = tokenConsole({ basePath: '/console', api: '/auth', brand: 'A & <b>' });

const ask = (path: string, method = 'GET') =>
  page(new Request(`https://shop.example${path}`, { method }));

/** The addresses of the files that a page names. */
async function filesOf(answer: Response): Promise<string[]> {
  const text = await answer.text();
  return [...text.matchAll(/(?:href|src)="(\/[^"]+)"/g)].map(([, address = '']) => address);
}

describe('tokenConsole', () => {
  it.each(['/console', '/console/', '/'])('answers the page at %s', async (path) => {
    const answer = ask(path);

    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(await filesOf(answer)).toHaveLength(2);
  });

  it('allows the page its own files and calls, and no markup made of text', () => {
    expect(ask('/console').headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'",
    );
  });

  it('lets browsers keep the files of the page forever', async () => {
    for (const address of await filesOf(ask('/console'))) {
      const answer = ask(address);

      expect(answer.status).toBe(200);
      expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      expect(address).toMatch(/-[0-9A-Z]{8}\.(?:css|js)$/);
    }
  });

  it('has no script and no style in the page itself', async () => {
    const text = await ask('/console').text();

    expect(text).not.toMatch(/<style|style=|<script(?! type="module" src=)|javascript:| on\w+=/);
    expect(text).toContain('data-brand="A &amp; &lt;b&gt;"');
  });

  it.each([
    ['/console/app.js', 'GET', 404],
    ['/consoles', 'GET', 404],
    ['/auth/token', 'GET', 404],
    ['/console', 'POST', 405],
    ['/console', 'HEAD', 200],
  ])('answers %s %s with %i', async (path, method, status) => {
    const answer = ask(path, method);

    expect(answer.status).toBe(status);
    if (method === 'HEAD') expect(await answer.text()).toBe('');
  });

  it.each([
    ['basePath', { basePath: 'console', api: '/auth' }],
    ['basePath', { basePath: '/console/', api: '/auth' }],
    ['basePath', { basePath: '', api: '/auth' }],
    ['api', { basePath: '/console', api: 'https://other.example' }],
    ['api', { basePath: '/console', api: '//other.example' }],
    ['title', { basePath: '/console', api: '/', title: '' }],
    ['brand', { basePath: '/console', api: '/', brand: 'x'.repeat(101) }],
  ])('refuses a bad %s', (member, options) => {
    const refuse = () => tokenConsole(options);

    expect(refuse).toThrow(member);
    try {
      refuse();
    } catch (error) {
      expect(isTokenError(error) && error.code).toBe('invalid_options');
    }
  });

  it('takes under 80 kB in all, as servers compress it', () => {
    const bytes = pageAssets().map(({ text }) => gzipSync(text).length);
    const total = bytes.reduce((sum, each) => sum + each, 0);

    expect(total).toBeLessThan(80_000);
    expect(total).toBeGreaterThan(10_000);
  });
});
