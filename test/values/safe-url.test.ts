import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { safeUrl } from '../../src/http/index.ts';
import { redact } from '../../src/index.ts';
import { runs } from '../laws.ts';
import { forge, NO_ID } from '../support.ts';

const VALUE = forge();
const MASKED = redact(VALUE);
const SECRET = 'hunter2%21';

const encodeAll = (text: string) =>
  Array.from(Buffer.from(text), (byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');

describe('safeUrl', () => {
  it.each<[string, string, string]>([
    ['the path', `/auth/token/${VALUE}/rotate`, `/auth/token/${MASKED}/rotate`],
    ['the end of the path', `/token/${VALUE}`, `/token/${MASKED}`],
    ['the query', `/a?q=${VALUE}&b=1`, `/a?q=${MASKED}&b=1`],
    ['the name of a parameter', `/a?${VALUE}=1`, `/a?${MASKED}=1`],
    ['the fragment', `/a#${VALUE}`, `/a#${MASKED}`],
    ['all three', `/${VALUE}?${VALUE}#${VALUE}`, `/${MASKED}?${MASKED}#${MASKED}`],
    ['a host name', `https://${VALUE}.example/`, `https://${MASKED}.example/`],
    ['a nested URL', `/a?next=%2Ftoken%2F${VALUE}%3Fb`, `/a?next=%2Ftoken%2F${MASKED}%3Fb`],
    ['an encoded separator', `/token/${VALUE.replace('_', '%5F')}`, `/token/${MASKED}`],
    [
      'an encoded separator in lower case',
      `/token/${VALUE.replace('_', '%5f')}`,
      `/token/${MASKED}`,
    ],
    ['a path with every character encoded', `/token/${encodeAll(VALUE)}`, `/token/${MASKED}`],
    [
      'a path with every character encoded twice',
      `/token/${encodeAll(VALUE).replaceAll('%', '%25')}`,
      `/token/${MASKED}`,
    ],
    ['a query after an escape', `/a?q=%22${VALUE}%22`, `/a?q=%22${MASKED}%22`],
  ])('masks a value in %s', (_, url, expected) => {
    expect(safeUrl(url)).toBe(expected);
  });

  it.each<[string, string, string]>([
    ['a user and a password', `https://ada:${SECRET}@a.example/b`, 'https://a.example/b'],
    ['a user alone', 'https://ada@a.example/b', 'https://a.example/b'],
    ['a value as the user', `https://${VALUE}@a.example/b`, 'https://a.example/b'],
    ['more than one @', `https://ada:a@b@a.example/b`, 'https://a.example/b'],
    ['an empty user', 'https://@a.example/', 'https://a.example/'],
    ['a port', `https://ada:${SECRET}@a.example:8443/b`, 'https://a.example:8443/b'],
    ['no path', `https://ada:${SECRET}@a.example`, 'https://a.example'],
    [
      'a query right after the host',
      `https://ada:${SECRET}@a.example?b=1`,
      'https://a.example?b=1',
    ],
    ['another scheme', `postgres://ada:${SECRET}@db/tokens`, 'postgres://db/tokens'],
    ['no scheme', `//ada:${SECRET}@a.example/b`, '//a.example/b'],
    ['too many slashes', `https:////ada:${SECRET}@a.example/b`, 'https:////a.example/b'],
    ['no slashes', `https:ada:${SECRET}@a.example/b`, 'https:a.example/b'],
    ['backslashes', `https:\\\\ada:${SECRET}@a.example\\b`, 'https:\\\\a.example\\b'],
    ['a space before it', ` https://ada:${SECRET}@a.example/b`, ' https://a.example/b'],
  ])('removes the user information: %s', (_, url, expected) => {
    expect(safeUrl(url)).toBe(expected);
  });

  it.each<[string, string]>([
    [`access_token=${SECRET}`, 'access_token=…'],
    [`token=${VALUE}`, 'token=…'],
    [`a=1&token=${SECRET}&b=2`, 'a=1&token=…&b=2'],
    [`token=${SECRET}&token=${SECRET}`, 'token=…&token=…'],
    [`Access-Token=${SECRET}`, 'Access-Token=…'],
    [`accessToken=${SECRET}`, 'accessToken=…'],
    [`access%5Ftoken=${SECRET}`, 'access%5Ftoken=…'],
    [`%61ccess_token=${SECRET}`, '%61ccess_token=…'],
    [`token[]=${SECRET}`, 'token[]=…'],
    [`user[password]=${SECRET}`, 'user[password]=…'],
    [`user%5Bpassword%5D=${SECRET}`, 'user%5Bpassword%5D=…'],
    [`password=a;b=${SECRET}`, 'password=…'],
    [`a=1;password=${SECRET}`, 'a=1;password=…'],
    [`password=a=${SECRET}`, 'password=…'],
    [`password=a?${SECRET}`, 'password=…'],
    [`refresh_token=${SECRET}`, 'refresh_token=…'],
    [`id_token=${SECRET}`, 'id_token=…'],
    [`code=${SECRET}&state=7`, 'code=…&state=7'],
    [`code_verifier=${SECRET}`, 'code_verifier=…'],
    [`client_secret=${SECRET}`, 'client_secret=…'],
    [`client_assertion=${SECRET}`, 'client_assertion=…'],
    [`SAMLResponse=${SECRET}`, 'SAMLResponse=…'],
    [`api_key=${SECRET}`, 'api_key=…'],
    [`api-key=${SECRET}`, 'api-key=…'],
    [`pwd=${SECRET}`, 'pwd=…'],
    [`sid=${SECRET}`, 'sid=…'],
    [`sig=${SECRET}`, 'sig=…'],
    [`AWSAccessKeyId=${SECRET}&Signature=${SECRET}`, 'AWSAccessKeyId=…&Signature=…'],
    [`X-Amz-Credential=${SECRET}`, 'X-Amz-Credential=…'],
    [`X-Amz-Security-Token=${SECRET}`, 'X-Amz-Security-Token=…'],
    [`X-Goog-Signature=${SECRET}`, 'X-Goog-Signature=…'],
  ])('masks the values of sensitive parameters: %s', (parameters, expected) => {
    expect(safeUrl(`/a?${parameters}`)).toBe(`/a?${expected}`);
    expect(safeUrl(`/a#${parameters}`)).toBe(`/a#${expected}`);
    expect(safeUrl(`https://a.example/?${parameters}#${parameters}`)).toBe(
      `https://a.example/?${expected}#${expected}`,
    );
  });

  it.each<[string]>([
    ['/'],
    [''],
    ['*'],
    [`/token/${NO_ID}`],
    [`/token/${MASKED}`],
    ['/a/b?limit=10&cursor=abc&scope=GET:shop.example/*'],
    ['/a?token'],
    ['/a?token='],
    ['/a?token=&b=1'],
    ['/a?tokens=3&token_type=x&country_code=DE&author=ada&codes=1&passwords=2'],
    ['/a?state=7&key=name&sort=asc'],
    ['/a?x=password&y=token'],
    ['/token=1/password=2'],
    ['/@ada/b'],
    ['/a@b?c@d#e@f'],
    ['https://a.example/@ada:b/c'],
    ['https://a.example/?mail=ada@a.example'],
    ['/a//b@c/d'],
    ['/a%41?b=%5F&c=%2541#%61'],
    ['/%zz?%=%&=&&'],
    ['https://[::1]:8080/a'],
  ])('leaves %j unchanged', (url) => {
    expect(safeUrl(url)).toBe(url);
  });

  it('accepts a Fetch request and a URL', () => {
    const url = `https://a.example/token/${VALUE}?token=${SECRET}#x`;

    expect(safeUrl(new Request(url))).toBe(`https://a.example/token/${MASKED}?token=…#x`);
    expect(safeUrl(new URL(url))).toBe(`https://a.example/token/${MASKED}?token=…#x`);
    const withUser = new URL(url);
    withUser.password = 'hunter2';
    expect(safeUrl(withUser)).toBe(`https://a.example/token/${MASKED}?token=…#x`);
  });

  it('accepts a Node request and shows its raw target', async () => {
    const seen: string[] = [];
    const server = createServer((request: IncomingMessage, response) => {
      seen.push(safeUrl(request));
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await fetch(`http://127.0.0.1:${port}/token/${VALUE}?a=%41&token=${SECRET}`);
    await new Promise((resolve) => server.close(resolve));

    expect(seen).toEqual([`/token/${MASKED}?a=%41&token=…`]);
  });

  it('prefers originalUrl, which keeps the target that a router has cut', () => {
    expect(safeUrl({ url: '/b', originalUrl: '/a/b' })).toBe('/a/b');
    expect(safeUrl({ url: '/b' })).toBe('/b');
  });

  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a number', 42],
    ['a symbol', Symbol('x')],
    ['an object without a URL', {}],
    ['a URL that is a number', { url: 42 }],
    ['a URL that is an object with toString', { url: { toString: () => VALUE } }],
    [
      'a proxy that throws when it is read',
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('looked');
          },
        },
      ),
    ],
    [
      'a proxy that throws when its keys are checked',
      new Proxy(
        {},
        {
          has: () => {
            throw new Error('asked');
          },
        },
      ),
    ],
  ])('returns an empty text for %s', (_, thing) => {
    expect(safeUrl(thing as string)).toBe('');
  });

  it('never throws and never shows a value, whatever text surrounds it', () => {
    const piece = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('/', '?', '#', '&', ';', '=', '@', ':', '%', '%25', '//', 'token=', '\ud800'),
      fc.constantFrom(VALUE, encodeAll(VALUE), VALUE.replace('_', '%255F')),
    );
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const shown = safeUrl(pieces.join(''));
        expect(/[a-z0-9]_1[0-9A-Za-z]{57}/.test(shown)).toBe(false);
        expect(shown).not.toContain(VALUE.slice(-33));
      }),
      runs(2),
    );
  });

  it.each([
    ['a'],
    ['a_1'],
    ['%25'],
    ['%'],
    ['@'],
    ['&token=x'],
    [';token=x'],
    ['?'],
    ['//'],
    [':'],
  ])('handles megabytes of %j', (pattern) => {
    const text = pattern.repeat(2_000_000 / pattern.length);

    expect(safeUrl(`${text}/${VALUE}`)).not.toContain(VALUE);
    expect(safeUrl(`/?${text}&a=${VALUE}`)).not.toContain(VALUE);
  });
});
