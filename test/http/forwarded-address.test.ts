import { createServer, type IncomingHttpHeaders, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { ForwardedAddressOptions } from '../../src/http/forwarded-address.ts';
import {
  bearerGuard,
  forwardedAddress,
  type GuardedRequest,
  toNodeListener,
} from '../../src/http/index.ts';
import { setUpLimits } from '../limits/support.ts';
import { ORDERS } from './support.ts';

const PROXIES = ['10.0.0.0/8', '2001:db8:a::/48'];

/** A Node request whose connection comes from `remoteAddress`. */
function from(remoteAddress: string | undefined, headers: IncomingHttpHeaders = {}) {
  return { method: 'GET', url: '/orders', headers, socket: { remoteAddress } };
}

function readWith(header?: string, proxies: readonly string[] = PROXIES) {
  return forwardedAddress({ proxies, header });
}

describe('forwardedAddress on a direct connection', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:b::1', '2001:db8:b::1'],
    ['2001:DB8:B:0::1', '2001:db8:b::1'],
    ['fe80::1%eth0', 'fe80::1'],
    [undefined, undefined],
    ['', undefined],
    ['/run/gateway.sock', undefined],
  ])('reads %s as %s and ignores the headers of the client', (peer, expected) => {
    const headers = { 'x-forwarded-for': '203.0.113.9', forwarded: 'for=203.0.113.9' };

    expect(readWith()(from(peer, headers))).toBe(expected);
    expect(readWith('Forwarded')(from(peer, headers))).toBe(expected);
    expect(readWith()(from(peer))).toBe(expected);
  });
});

describe.each(['10.1.2.3', '::ffff:10.1.2.3', '::ffff:a01:203', '2001:db8:a::7'])(
  'forwardedAddress behind the proxy %s',
  (peer) => {
    it.each<[what: string, value: string | undefined, expected: string | undefined]>([
      ['one client', '192.0.2.1', '192.0.2.1'],
      ['a client that names another address', '203.0.113.9, 192.0.2.1', '192.0.2.1'],
      ['a client that names a proxy', '10.9.9.9, 192.0.2.1', '192.0.2.1'],
      ['a client that writes garbage', 'for="; <script>, 192.0.2.1', '192.0.2.1'],
      ['two proxies', '192.0.2.1, 10.4.4.4', '192.0.2.1'],
      [
        'three proxies and a forged entry',
        '203.0.113.9,192.0.2.1,2001:db8:a::1,10.4.4.4',
        '192.0.2.1',
      ],
      ['an untrusted proxy', '192.0.2.1, 198.51.100.1, 10.4.4.4', '198.51.100.1'],
      ['a client in the proxy network', '10.5.5.5', '10.5.5.5'],
      ['two addresses of the proxy network', '10.5.5.5, 10.4.4.4', '10.5.5.5'],
      ['no spaces', '10.5.5.5,10.4.4.4', '10.5.5.5'],
      ['many spaces', '  192.0.2.1 \t,\t 10.4.4.4  ', '192.0.2.1'],
      ['a port', '192.0.2.1:4711', '192.0.2.1'],
      ['a proxy with a port', '192.0.2.1, 10.4.4.4:443', '192.0.2.1'],
      ['IPv6', '2001:db8:b::1', '2001:db8:b::1'],
      ['IPv6 in brackets', '[2001:db8:b::1]', '2001:db8:b::1'],
      ['IPv6 with a port', '[2001:db8:b::1]:4711', '2001:db8:b::1'],
      ['an IPv6 proxy with a port', '192.0.2.1, [2001:db8:a::1]:4711', '192.0.2.1'],
      ['an IPv4-mapped IPv6 address', '::ffff:192.0.2.1', '192.0.2.1'],
      ['a proxy with an IPv4-mapped IPv6 address', '192.0.2.1, ::ffff:a04:404', '192.0.2.1'],
      ['unknown', 'unknown', undefined],
      ['unknown behind a proxy', '192.0.2.1, unknown, 10.4.4.4', undefined],
      ['an obfuscated client', '192.0.2.1, _hidden', undefined],
      ['a word', '192.0.2.1, localhost', undefined],
      ['only a port', ':4711', undefined],
      ['a wrong port', '192.0.2.1:70000', undefined],
      ['a wrong address', '192.0.2.256', undefined],
      ['a number', '3221225985', undefined],
      ['octal digits', '0300.0.2.1', undefined],
      ['a block', '192.0.2.0/24', undefined],
      ['an empty header', '', undefined],
      ['an empty entry', '192.0.2.1, ', undefined],
      ['only commas', ',,,', undefined],
      ['no header', undefined, undefined],
    ])('returns, for %s in X-Forwarded-For (%s), %s', (_, value, expected) => {
      const headers = value === undefined ? {} : { 'x-forwarded-for': value };

      expect(readWith()(from(peer, headers))).toBe(expected);
    });

    it.each<[what: string, value: string | undefined, expected: string | undefined]>([
      ['one client', 'for=192.0.2.1', '192.0.2.1'],
      ['other parameters', 'proto=https;FOR=192.0.2.1;by=10.4.4.4;host=a.example', '192.0.2.1'],
      ['a quoted address', 'for="192.0.2.1"', '192.0.2.1'],
      ['an escaped character', String.raw`for="192.0.\2.1"`, '192.0.2.1'],
      ['IPv4 with a port', 'for="192.0.2.1:4711"', '192.0.2.1'],
      ['IPv6 with a port', 'for="[2001:db8:b::1]:4711"', '2001:db8:b::1'],
      ['IPv6 without quotes', 'for=[2001:db8:b::1]', '2001:db8:b::1'],
      ['a client that names another address', 'for=203.0.113.9, for=192.0.2.1', '192.0.2.1'],
      ['two proxies', 'for=192.0.2.1, for="[2001:db8:a::1]"', '192.0.2.1'],
      ['spaces', ' for=192.0.2.1 ; proto=http , for=10.4.4.4', '192.0.2.1'],
      ['a comma in quotes', 'for=192.0.2.1, for=10.4.4.4;host="a,for=203.0.113.9"', '192.0.2.1'],
      ['unknown', 'for=unknown', undefined],
      ['an obfuscated client', 'for=192.0.2.1, for=_hidden', undefined],
      ['an obfuscated client in quotes', 'for="_SEVKISEK"', undefined],
      ['an obfuscated port', 'for="192.0.2.1:_http"', undefined],
      ['no for parameter', 'for=192.0.2.1, proto=https', undefined],
      ['two for parameters in one entry', 'for=192.0.2.1;for=192.0.2.1', undefined],
      ['a list in the syntax of X-Forwarded-For', '192.0.2.1', undefined],
      ['an open quote', 'for="192.0.2.1', undefined],
      ['an open quote sent by the client', 'for="203.0.113.9, for=192.0.2.1', undefined],
      [
        'an open quote sent by the client and closed by the proxy',
        'for="x, for="[2001:db8:b::1]"',
        undefined,
      ],
      ['a backslash sent by the client', String.raw`for="x\, for="[2001:db8:b::1]"`, undefined],
      ['text after a quote', 'for="192.0.2.1"2', undefined],
      ['an empty header', '', undefined],
      ['an empty entry', 'for=192.0.2.1, ', undefined],
      ['no header', undefined, undefined],
    ])('returns, for %s in Forwarded (%s), %s', (_, value, expected) => {
      const headers = {
        'x-forwarded-for': '203.0.113.9',
        ...(value !== undefined && { forwarded: value }),
      };

      expect(readWith('Forwarded')(from(peer, headers))).toBe(expected);
    });
  },
);

describe('forwardedAddress', () => {
  it('reads only the configured header', () => {
    const headers = { 'cf-connecting-ip': '192.0.2.1', 'x-forwarded-for': '203.0.113.9' };

    expect(readWith('CF-Connecting-IP')(from('10.1.2.3', headers))).toBe('192.0.2.1');
    expect(readWith('X-Real-IP')(from('10.1.2.3', headers))).toBeUndefined();
  });

  it.each([
    ['X-Forwarded-For', ['203.0.113.9', '192.0.2.1', '10.4.4.4']],
    ['X-Forwarded-For', ['203.0.113.9, 192.0.2.1', '10.4.4.4']],
    ['Forwarded', ['for=203.0.113.9', 'for=192.0.2.1', 'for=10.4.4.4']],
  ])('reads %s in order when it comes as several lines', async (header, lines) => {
    const read = forwardedAddress({ proxies: ['10.0.0.0/8', '127.0.0.1'], header });
    const found: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      found.push(read(request));
      response.end();
    });
    const behind = toNodeListener((request) => {
      found.push(read(request));
      return new Response();
    });
    for (const each of [server, createServer(behind)]) {
      await new Promise<void>((resolve) => each.listen(0, '127.0.0.1', resolve));
      const { port } = each.address() as AddressInfo;
      await new Promise((resolve) =>
        send({ port, host: '127.0.0.1', headers: { [header]: lines }, agent: false }, (answer) =>
          answer.resume().on('end', resolve),
        ).end(),
      );
      each.close();
    }

    expect(found).toEqual(['192.0.2.1', '192.0.2.1']);
  });

  it('returns undefined for a Fetch request without a connection', () => {
    const headers = { 'x-forwarded-for': '192.0.2.1' };

    expect(readWith()(new Request('https://shop.example/orders', { headers }))).toBeUndefined();
  });

  it('returns undefined for hostile headers of a megabyte without timing out', () => {
    const read = (header: string, value: string) =>
      readWith(header)(from('10.1.2.3', { [header.toLowerCase()]: value }));
    const long = 1 << 20;

    expect(read('X-Forwarded-For', '10.4.4.4,'.repeat(long / 8))).toBeUndefined();
    expect(read('Forwarded', 'for="\\'.repeat(long / 8))).toBeUndefined();
    expect(read('Forwarded', ' '.repeat(long))).toBeUndefined();
    expect(read('Forwarded', `for="${'\\"'.repeat(long)}"`)).toBeUndefined();
  });

  it.each<[object | undefined, RegExp]>([
    [undefined, /options must be an object \{ proxies, header \}/],
    [{}, /^proxies must be a list of one or more/],
    [{ proxies: [] }, /^proxies must be a list of one or more/],
    [{ proxies: '10.0.0.0/8' }, /^proxies must be a list of one or more/],
    [{ proxies: ['10.0.0.0/8', 'loopback'] }, /^proxies\[1\] must be .*; a text is neither$/],
    [
      { proxies: ['10.0.0.1/8'] },
      /"10\.0\.0\.1\/8" has bits after its prefix: give 10\.0\.0\.0\/8/,
    ],
    [{ proxies: [10] }, /^proxies\[0\] must be .*; 10 is not a text$/],
    [{ proxies: ['0.0.0.0/0'] }, /^proxies\[0\] must not hold all addresses/],
    [{ proxies: ['::/0'] }, /^proxies\[0\] must not hold all addresses/],
    [{ proxies: ['::ffff:0:0/96'] }, /^proxies\[0\] must not hold all addresses/],
    [{ proxies: PROXIES, header: 'X Forwarded' }, /^header must be the name of a header/],
    [{ proxies: PROXIES, header: '' }, /^header must be the name of a header/],
    [{ proxies: PROXIES, hops: 1 }, /hops/],
  ])('refuses the options %j', (options, message) => {
    const make = () => forwardedAddress(options as ForwardedAddressOptions);

    expect(make).toThrow(expect.objectContaining({ code: 'invalid_options' }));
    expect(make).toThrow(message);
  });
});

describe('the guard behind proxies', () => {
  it.each<[string, IncomingHttpHeaders, string]>([
    ['10.1.2.3', { 'x-forwarded-for': '192.0.2.1' }, 'accepted'],
    ['10.1.2.3', { 'x-forwarded-for': '192.0.2.1, 203.0.113.9' }, 'address_denied'],
    ['203.0.113.9', { 'x-forwarded-for': '192.0.2.1' }, 'address_denied'],
    ['10.1.2.3', { 'x-forwarded-for': '192.0.2.1, unknown' }, 'address_unknown'],
    ['10.1.2.3', {}, 'address_unknown'],
  ])('answers a request from %s with %j: %s', async (peer, headers, expected) => {
    const { tokens } = setUpLimits();
    const clientAddress = forwardedAddress({ proxies: PROXIES });
    const guard = bearerGuard({ tokens, domain: 'shop.example', clientAddress });
    const limits = { addresses: ['192.0.2.0/24'] };
    const { value } = await tokens.issue({ account: 'ada', scopes: [ORDERS], limits });
    const request: GuardedRequest = from(peer, { ...headers, authorization: `Bearer ${value}` });

    expect((await guard(request)).reason ?? 'accepted').toBe(expected);
  });
});
