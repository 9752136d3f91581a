import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { pageAssets } from '../../../src/app/console/assets.ts';
import { ENGLISH_TEXTS, tokenConsole } from '../../../src/app/console/index.ts';
import { SERVICE_WORDS } from '../../../src/app/console/page/service-words.ts';
import { STATUS } from '../../../src/http/errors.ts';
import { isTokenError } from '../../../src/index.ts';
import { PARSE_MESSAGES } from '../../../src/scope/errors.ts';

const page = tokenConsole({ basePath: '/console', api: '/auth', brand: 'A & <b>' });

const ask = (path: string, method = 'GET') =>
  page(new Request(`https://shop.example${path}`, { method }));

/** The paths of the files that a page links, resolved like a browser does at the address of the page. */
async function filesOf(answer: Response, path = '/console'): Promise<string[]> {
  const text = await answer.text();
  return [...text.matchAll(/(?:href|src)="([^"]+\.(?:css|js))"/g)].map(
    ([, address = '']) => new URL(address, `https://shop.example${path}`).pathname,
  );
}

describe('tokenConsole', () => {
  it.each(['/console', '/console/', '/'])('serves the page at %s', async (path) => {
    const answer = ask(path);

    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(answer.headers.get('cache-control')).toBe('no-cache');
    expect(await filesOf(answer)).toHaveLength(2);
  });

  it.each([
    ['/console', '/console/'],
    ['/console/', '/console/'],
    // Behind a router that cut off the path, with or without the slash at its end.
    ['/', '/console/'],
  ])('links its files so that they are found from %s', async (path, folder) => {
    const files = await filesOf(ask(path), path);

    expect(files.map((file) => file.slice(0, file.lastIndexOf('/') + 1))).toEqual([folder, folder]);
  });

  it.each([
    ['/console', '/auth', '/auth'],
    ['/console', '/', '/'],
    ['/console', '', '/'],
    ['/a/b/console', '/a/b', '/a/b'],
    ['/a/b/console', '/a/c/auth', '/a/c/auth'],
    ['/console', '/console/api', '/console/api'],
    ['/console', '/console', '/console/'],
  ])('links from %s to a service at %j', async (basePath, api, expected) => {
    const page = tokenConsole({ basePath, api });
    const text = await page(new Request(`https://shop.example${basePath}`)).text();
    const [, way = ''] = /data-api="([^"]*)"/.exec(text) ?? [];

    expect(way).not.toMatch(/^\//);
    for (const added of ['', '/tokens-ui']) {
      const file = `https://shop.example${added}${basePath}/app.js`;
      expect(new URL(way, file).pathname.replace(/(.)\/$/, '$1')).toBe(
        (added + expected).replace(/(.)\/$/, '$1'),
      );
    }
  });

  it('allows the page only its own files and requests', () => {
    expect(ask('/console').headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    );
  });

  it('lets browsers cache the files of the page forever', async () => {
    for (const address of await filesOf(ask('/console'))) {
      const answer = ask(address);

      expect(answer.status).toBe(200);
      expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      expect(address).toMatch(/-[0-9A-Z]{8}\.(?:css|js)$/);
    }
  });

  it('has no inline script or style, and escapes the brand', async () => {
    const text = await ask('/console').text();

    expect(text).not.toMatch(/<style|style=|<script(?! type="module" src=)|javascript:| on\w+=/);
    expect(text).toContain('data-brand="A &amp; &lt;b&gt;"');
    expect(text).toContain(encodeURIComponent('>A</text>'));
    const half = tokenConsole({ basePath: '/console', api: '/auth', brand: '\ud800' });
    expect(half(new Request('http://x.example/console')).status).toBe(200);
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
    ['language', { basePath: '/console', api: '/', language: 'not a tag' }],
    ['direction', { basePath: '/console', api: '/', direction: 'up' as 'ltr' }],
  ])('refuses a bad %s: %j', (member, options) => {
    const refuse = () => tokenConsole(options);

    expect(refuse).toThrow(member);
    try {
      refuse();
    } catch (error) {
      expect(isTokenError(error) && error.code).toBe('invalid_options');
    }
  });

  it('takes less than 80 kB in total, compressed with gzip', () => {
    const bytes = pageAssets().map(({ text }) => gzipSync(text).length);
    const total = bytes.reduce((sum, each) => sum + each, 0);

    expect(total).toBeLessThan(80_000);
    expect(total).toBeGreaterThan(10_000);
  });
});

const pageWith = (options: object) =>
  tokenConsole({ basePath: '/console', api: '/auth', ...options })(
    new Request('https://shop.example/console'),
  ).text();

describe('a translation', () => {
  it('is a file that the page links, if there is one', async () => {
    const texts = { list: { shown: { one: '{count} Token', other: '{count} Tokens' } } };
    const german = tokenConsole({ basePath: '/console', api: '/auth', language: 'de', texts });
    const text = await german(new Request('https://shop.example/console')).text();
    const [, address = ''] = /data-texts="([^"]+)"/.exec(text) ?? [];

    expect(address).toMatch(/^console\/texts-[0-9A-F]{8}\.json$/);
    const answer = german(new Request(`https://shop.example/${address}`));
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.headers.get('cache-control')).toContain('immutable');
    expect(await answer.json()).toEqual(texts);
    expect(await pageWith({})).not.toContain('data-texts');
  });

  it.each([
    [{}, 'lang="en" dir="ltr"'],
    [{ language: 'pt-BR' }, 'lang="pt-BR" dir="ltr"'],
    [{ language: 'ar' }, 'lang="ar" dir="rtl"'],
    [{ language: 'ks' }, 'lang="ks" dir="rtl"'],
    [{ language: 'az-Latn' }, 'lang="az-Latn" dir="ltr"'],
    [{ language: 'az-Arab' }, 'lang="az-Arab" dir="rtl"'],
    [{ language: 'ar', direction: 'ltr' }, 'lang="ar" dir="ltr"'],
  ])('with %j sets %s on the page', async (options, attributes) => {
    expect(await pageWith(options)).toContain(`<html ${attributes}>`);
  });

  it('applies to the title and the noscript text of the page', async () => {
    const texts = { shell: { title: 'Zugänge <1>', needsScript: 'JavaScript fehlt.' } };

    expect(await pageWith({ texts })).toContain('<title>Zugänge &lt;1&gt;</title>');
    expect(await pageWith({ texts })).toContain('<noscript>JavaScript fehlt.</noscript>');
    expect(await pageWith({ texts, title: 'API' })).toContain('<title>API</title>');
  });

  it.each([
    [{ lst: {} }, 'unknown member "lst" of texts; did you mean list?'],
    [{ list: { shwon: 'x' } }, 'unknown member "shwon" of texts.list; did you mean shown?'],
    [{ list: 'x' }, 'texts.list must be'],
    [{ list: { title: '' } }, 'texts.list.title must be a text of 1 to 2000 characters; got'],
    [{ list: { title: 'x'.repeat(2001) } }, 'texts.list.title must be'],
    [{ list: { title: { other: 'x' } } }, 'texts.list.title must be'],
    [{ list: { title: '{count}' } }, 'texts.list.title cannot have {count}; nothing goes into it'],
    [{ list: { shown: { one: 'x' } } }, 'texts.list.shown must be'],
    [{ list: { shown: { other: 'x', tow: 'x' } } }, 'texts.list.shown must be'],
    [{ list: { shown: '{cuont}' } }, 'texts.list.shown cannot have {cuont}; it has {count}'],
    [{ errors: { codes: { nothing: 'x' } } }, 'texts.errors.codes'],
  ])('%j is refused: %s', (texts, message) => {
    expect(() => pageWith({ texts })).toThrow(message);
  });

  it('of all texts is accepted', async () => {
    expect(await pageWith({ texts: ENGLISH_TEXTS })).toContain('data-texts');
    expect(await pageWith({ texts: structuredClone(ENGLISH_TEXTS) })).toContain('data-texts');
  });

  it('can have a text for each error code of the service', () => {
    const codes = [...Object.keys(STATUS), ...Object.keys(PARSE_MESSAGES)];

    expect(codes.filter((code) => !(code in SERVICE_WORDS))).toEqual([]);
  });
});
