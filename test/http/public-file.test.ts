import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { tokenConsole } from '../../src/app/console/index.ts';
import { publicFile } from '../../src/http/public-file.ts';
import { fromFetch, ownForms } from '../../src/http/request.ts';
import type { HttpResponse } from '../../src/http/responses.ts';
import { setUp } from './support.ts';

const LONG = 'A page that is the same for everybody. '.repeat(100);
const SHORT = '{"status":"ok"}';

function ask(content: string, accept?: string, condition?: string) {
  const file = publicFile(content, { 'content-type': 'text/plain' });
  const sent = { 'accept-encoding': accept, 'if-none-match': condition };
  return file({ header: (name) => sent[name] });
}

function codingOf(content: string, accept?: string): string {
  return ask(content, accept).headers['content-encoding'] ?? 'identity';
}

describe('the coding of a public file', () => {
  it.each([
    [undefined, 'identity', 'identity'],
    ['', 'identity', 'identity'],
    ['gzip', 'gzip', 'identity'],
    ['GZIP', 'gzip', 'identity'],
    ['x-gzip', 'gzip', 'identity'],
    ['br', 'br', 'identity'],
    ['gzip, deflate, br, zstd', 'br', 'identity'],
    ['br;q=0.5, gzip;q=0.8', 'gzip', 'identity'],
    ['br ; q=0.5 , gzip ; q=0.5', 'br', 'identity'],
    ['gzip;q=0', 'identity', 'identity'],
    ['gzip;q=0.000', 'identity', 'identity'],
    ['br;q=0, gzip', 'gzip', 'identity'],
    ['br;q=0, gzip;q=0', 'identity', 'identity'],
    ['identity, gzip;q=0.5', 'identity', 'identity'],
    ['identity;q=0.5, gzip', 'gzip', 'identity'],
    ['deflate, compress', 'identity', 'identity'],
    ['*', 'identity', 'identity'],
    ['*;q=0', 'identity', 'identity'],
    ['*;q=0, gzip', 'gzip', 'gzip'],
    ['identity;q=0', 'identity', 'identity'],
    ['identity;q=0, gzip', 'gzip', 'gzip'],
    ['identity;q=0, *', 'br', 'br'],
    ['identity;q=0, br;q=0, *', 'gzip', 'gzip'],
    ['gzip;q=2', 'identity', 'identity'],
    ['gzip;q=x', 'identity', 'identity'],
    ['gzip;q=1.001', 'identity', 'identity'],
    ['gzipped', 'identity', 'identity'],
    [',,', 'identity', 'identity'],
  ])('for "%s" is %s, and %s if the file is short', (accept, long, short) => {
    expect(codingOf(LONG, accept)).toBe(long);
    expect(codingOf(SHORT, accept)).toBe(short);
  });

  it.each<[string, (bytes: Uint8Array) => Uint8Array]>([
    ['gzip', gunzipSync],
    ['br', brotliDecompressSync],
    ['identity', (bytes) => bytes],
  ])('%s has its length, and names what it depends on', (coding, decode) => {
    const { headers, body } = ask(LONG, coding);

    expect(Buffer.from(decode(Buffer.from(body ?? ''))).toString()).toBe(LONG);
    expect(headers['content-length']).toBe(String(body?.length));
    expect(headers['vary']).toBe('accept-encoding');
    expect(headers['cache-control']).toBe('no-cache');
  });
});

describe('the tag of a public file', () => {
  const tagOf = (content: string, accept?: string) => ask(content, accept).headers['etag'] ?? '';

  it('is strong, and differs for each content and coding', () => {
    const tags = [tagOf(LONG), tagOf(LONG, 'gzip'), tagOf(LONG, 'br'), tagOf(`${LONG}.`)];

    expect(new Set(tags).size).toBe(4);
    for (const tag of tags) expect(tag).toMatch(/^"[\w-]+"$/);
    expect(tagOf(LONG, 'gzip')).toBe(tags[1]);
  });

  it.each([
    ['TAG', 304],
    ['W/TAG', 304],
    ['"a", TAG', 304],
    ['"a,b",W/TAG , "c"', 304],
    ['*', 304],
    [' * ', 304],
    ['"a"', 200],
    ['"*"', 200],
    ['OTHER', 200],
    ['BARE', 200],
    ['', 200],
  ])('in If-None-Match: %s is answered with %i', (condition, status) => {
    const tag = tagOf(LONG, 'gzip');
    const sent = condition
      .replace('TAG', tag)
      .replace('OTHER', tagOf(LONG))
      .replace('BARE', tag.slice(1, -1));
    const answer = ask(LONG, 'gzip', sent);

    expect(answer.status).toBe(status);
    expect(answer.headers).toMatchObject({ etag: tag, vary: 'accept-encoding' });
    expect(answer.body === null).toBe(status === 304);
    expect('content-length' in answer.headers).toBe(status === 200);
  });
});

/** The answer of a handler before it becomes one of Fetch. */
async function ownAnswer(handler: object, path: string, coding: string): Promise<HttpResponse> {
  const headers = { 'accept-encoding': coding };
  const request = fromFetch(new Request(`http://localhost${path}`, { headers }));
  return new Promise((resolve) => {
    void ownForms.get(handler)?.answer?.(request, (response) => {
      resolve(response);
      return undefined;
    });
  });
}

describe('every public page', () => {
  const { handler } = setUp({ docs: true });
  const page = tokenConsole({ basePath: '/console', api: '/' });

  it.each<[string, object, string]>([
    ['the description', handler, '/openapi.json'],
    ['the reference', handler, '/docs'],
    ['its script', handler, '/docs/swagger-ui-bundle.js'],
    ['the console', page, '/console'],
  ])('is made once: %s', async (_, of, path) => {
    for (const coding of ['gzip', 'br', 'identity']) {
      const [first, second] = [
        await ownAnswer(of, path, coding),
        await ownAnswer(of, path, coding),
      ];

      expect(first.status).toBe(200);
      expect(second).toBe(first);
      expect('body' in first && first.body).toBeInstanceOf(Uint8Array);
    }
  });

  it.each(['/openapi.json', '/docs'])('%s answers conditions and HEAD', async (path) => {
    const url = `http://localhost${path}`;
    const whole = await handler(new Request(url));
    const tag = whole.headers.get('etag') ?? '';
    const ask = (headers: Record<string, string>, method = 'GET') =>
      handler(new Request(url, { method, headers }));

    expect((await ask({ 'if-none-match': tag })).status).toBe(304);
    expect((await ask({ 'if-none-match': tag }, 'HEAD')).status).toBe(304);
    expect((await ask({ 'if-none-match': '"other"' })).status).toBe(200);
    const head = await ask({}, 'HEAD');
    expect(head.headers.get('content-length')).toBe(String((await whole.arrayBuffer()).byteLength));
    expect(await head.text()).toBe('');
    expect((await ask({ 'if-none-match': tag }, 'POST')).status).toBe(405);
  });

  it('takes no slot, and has none of the answers of one account', async () => {
    const { handler: full, call } = setUp({ maxInFlight: 1, docs: true, revocation: true });
    for (const path of ['/openapi.json', '/docs', '/docs/swagger-ui-bundle.js']) {
      const request = fromFetch(new Request(`http://localhost${path}`));
      void ownForms.get(full)?.answer?.(request, () => new Promise(() => {}));
    }

    expect((await call('GET', '/token')).status).toBe(200);
    expect((await call('POST', '/revoke', { as: null })).status).toBe(400);
    expect((await call('GET', '/docs', { as: null }).catch(() => ({ status: 200 }))).status).toBe(
      200,
    );
  });
});
