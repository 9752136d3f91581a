import { posix } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseScope } from '../../src/scope/grammar.ts';
import {
  isReadRequest,
  type RequestReason,
  readRequest,
  type ScopeRequest,
  scopeOfRequest,
} from '../../src/scope/request.ts';
import { ScopeSet } from '../../src/scope/set.ts';
import { runs } from '../laws.ts';
import { heapBytes, hostile } from './support.ts';

type Outcome = RequestReason | 'ok';

function outcome(request: Partial<Record<keyof ScopeRequest, unknown>>): Outcome {
  const whole = { method: 'GET', domain: 'd.example', target: '/a', ...request };
  const reading = readRequest(whole as ScopeRequest);
  return reading.ok ? 'ok' : reading.reason;
}

function ofTarget(target: unknown): Outcome {
  return outcome({ target });
}

/** The path that a target is read as. */
function pathOf(target: string): string | undefined {
  const reading = readRequest({ method: 'GET', domain: 'd.example', target });
  return reading.ok ? reading.request.path : undefined;
}

const ODD_VALUES: readonly (readonly [string, unknown])[] = [
  ['undefined', undefined],
  ['null', null],
  ['a number', 7],
  ['a boolean', true],
  ['a bigint', 7n],
  ['a symbol', Symbol('/a')],
  ['a function', () => '/a'],
  ['an array', ['/a']],
  ['a String object', new String('/a')],
  ['an object with toString', { toString: () => '/a' }],
  ['a URL', new URL('https://d.example/a')],
  ['a proxy that throws', hostile()],
];

describe('readRequest', () => {
  it('reads the method, domain and path of a plain request', () => {
    const reading = readRequest({ method: 'GET', domain: 'D.Example', target: '/a/b?x=/c' });

    expect(reading).toMatchObject({
      ok: true,
      request: { method: 'GET', domain: 'd.example', path: 'a/b' },
    });
  });

  it.each(ODD_VALUES)('refuses a method, domain or target that is %s', (_, value) => {
    expect(outcome({ method: value })).toBe('method_invalid');
    expect(outcome({ domain: value })).toBe('domain_invalid');
    expect(outcome({ target: value })).toBe('path_not_absolute');
  });

  it.each(ODD_VALUES)('refuses a request that is %s', (_, value) => {
    expect(readRequest(value as ScopeRequest)).toEqual({ ok: false, reason: 'method_invalid' });
  });

  it.each<[string, Outcome]>([
    ['GET', 'ok'],
    ['OPTIONS', 'ok'],
    ['M-SEARCH', 'ok'],
    ['A', 'ok'],
    ['A'.repeat(32), 'ok'],
    ['CONSTRUCTOR', 'ok'],
    ['A'.repeat(33), 'method_invalid'],
    ['A'.repeat(9000), 'method_invalid'],
    ['', 'method_invalid'],
    ['*', 'method_invalid'],
    ['get', 'method_invalid'],
    ['Get', 'method_invalid'],
    [' GET', 'method_invalid'],
    ['GET ', 'method_invalid'],
    ['GET\n', 'method_invalid'],
    ['GET,POST', 'method_invalid'],
    ['G3T', 'method_invalid'],
    ['-GET', 'method_invalid'],
    ['GET-', 'method_invalid'],
    ['PO\u017fT', 'method_invalid'],
    ['GET\ud800', 'method_invalid'],
    ['constructor', 'method_invalid'],
    ['__proto__', 'method_invalid'],
  ])('accepts only an uppercase method name: %j is %s', (method, expected) => {
    expect(outcome({ method })).toBe(expected);
  });

  it.each<[string, Outcome]>([
    ['d.example', 'ok'],
    ['D.EXAMPLE', 'ok'],
    ['localhost', 'ok'],
    ['constructor', 'ok'],
    ['xn--bcher-kva.example', 'ok'],
    ['127.0.0.1.example', 'ok'],
    ['', 'domain_invalid'],
    ['*', 'domain_invalid'],
    ['*.example', 'domain_invalid'],
    ['d.*', 'domain_invalid'],
    ['d.example.', 'domain_invalid'],
    ['.d.example', 'domain_invalid'],
    ['d..example', 'domain_invalid'],
    ['d.example:443', 'domain_invalid'],
    ['u@d.example', 'domain_invalid'],
    ['[::1]', 'domain_invalid'],
    ['::1', 'domain_invalid'],
    ['127.0.0.1', 'domain_invalid'],
    ['127.1', 'domain_invalid'],
    ['2130706433', 'domain_invalid'],
    ['d.0x', 'domain_invalid'],
    ['d_d.example', 'domain_invalid'],
    ['__proto__', 'domain_invalid'],
    ['-d.example', 'domain_invalid'],
    ['d.example/a', 'domain_invalid'],
    ['d.example#', 'domain_invalid'],
    ['d.example, e.example', 'domain_invalid'],
    [' d.example', 'domain_invalid'],
    ['d.example\u0000', 'domain_invalid'],
    ['d.example\n', 'domain_invalid'],
    ['d\u3002example', 'domain_invalid'],
    ['\u212a.example', 'domain_invalid'],
    ['d.\ud800', 'domain_invalid'],
    [`${'a'.repeat(63)}.example`, 'ok'],
    [`${'a'.repeat(64)}.example`, 'domain_invalid'],
    [`${'a.'.repeat(126)}a`, 'ok'],
    [`${'a.'.repeat(126)}ab`, 'domain_invalid'],
    ['a.'.repeat(1 << 19), 'domain_invalid'],
  ])('accepts only a plain host name as the domain: case %# is $1', (domain, expected) => {
    expect(outcome({ domain })).toBe(expected);
  });

  it.each<[string, string, Outcome]>([
    ['8192 characters', `/${'a'.repeat(8191)}`, 'ok'],
    ['8193 characters', `/${'a'.repeat(8192)}`, 'path_too_long'],
    ['a megabyte', `/${'a'.repeat(1 << 20)}`, 'path_too_long'],
    ['8192 with a query', `/a?${'x'.repeat(8189)}`, 'ok'],
    ['8193 with a query', `/a?${'x'.repeat(8190)}`, 'path_too_long'],
    ['4095 segments', '/a'.repeat(4095), 'ok'],
    ['2730 encoded characters', `/${'%61'.repeat(2730)}`, 'ok'],
    ['a megabyte of dots', '/..'.repeat(1 << 19), 'path_too_long'],
    ['a megabyte of lone surrogates', '\ud800'.repeat(1 << 20), 'path_too_long'],
  ])('limits a target to 8192 characters: %s is $2', (_, target, expected) => {
    expect(ofTarget(target)).toBe(expected);
  });

  it.each<[string, Outcome]>([
    ['/', 'ok'],
    ['/a', 'ok'],
    ['', 'path_not_absolute'],
    ['a', 'path_not_absolute'],
    ['*', 'path_not_absolute'],
    ['?x', 'path_not_absolute'],
    [' /a', 'path_not_absolute'],
    ['\\a', 'path_not_absolute'],
    ['%2fa', 'path_not_absolute'],
    ['@evil.example/a', 'path_not_absolute'],
    ['d.example:443', 'path_not_absolute'],
    ['https://d.example/a', 'path_not_absolute'],

    ['/a#', 'path_fragment'],
    ['/#', 'path_fragment'],
    ['/a?x#y', 'path_fragment'],
    ['/a?x%23y', 'ok'],

    ['/a?', 'ok'],
    ['/?', 'ok'],
    ['/a?/../b\\c{}%zz;\u00e9', 'ok'],
    ['/a?x?..', 'ok'],
    ['/../a?x', 'path_dot_segment'],

    ['/\\a', 'path_backslash'],
    ['/a\\', 'path_backslash'],
    ['/a/..\\b', 'path_backslash'],

    ['/a b', 'path_illegal_character'],
    ['/a\t', 'path_illegal_character'],
    ['/a\u0000', 'path_illegal_character'],
    ['/a\r\nX: y', 'path_illegal_character'],
    ['/a\u007f', 'path_illegal_character'],
    ['/a"', 'path_illegal_character'],
    ['/<a>', 'path_illegal_character'],
    ['/`', 'path_illegal_character'],
    ['/{a}', 'path_illegal_character'],
    ['/\u00e8', 'path_illegal_character'],
    ['/a/\u2025/b', 'path_illegal_character'],
    ['/\uff0fa', 'path_illegal_character'],
    ['/\ud800', 'path_illegal_character'],
    ['/a|b', 'ok'],
    ['/a[0]', 'ok'],
    ['/a^b', 'ok'],
    ["/a-._~!$&'()*+,=:@b", 'ok'],

    ['/%', 'path_bad_encoding'],
    ['/a%2', 'path_bad_encoding'],
    ['/%zz', 'path_bad_encoding'],
    ['/%%61', 'path_bad_encoding'],
    ['/%u002e', 'path_bad_encoding'],
    ['/%2/e', 'path_bad_encoding'],
    ['/a%2?e', 'path_bad_encoding'],
    ['/%41', 'ok'],

    ['//', 'path_empty_segment'],
    ['//a', 'path_empty_segment'],
    ['/a//', 'path_empty_segment'],
    ['/a//b', 'path_empty_segment'],
    ['///', 'path_empty_segment'],
    ['//?x', 'path_empty_segment'],
    ['/a/', 'ok'],
    ['/a/?x', 'ok'],

    ['/%80', 'path_bad_encoding'],
    ['/%c0%ae%c0%ae', 'path_bad_encoding'],
    ['/%e0%80%ae', 'path_bad_encoding'],
    ['/%ed%a0%80', 'path_bad_encoding'],
    ['/%f4%90%80%80', 'path_bad_encoding'],
    ['/%ff', 'path_bad_encoding'],
    ['/%c3', 'path_bad_encoding'],
    ['/%c3/%a8', 'path_bad_encoding'],
    ['/%c3%a8', 'ok'],
    ['/%f0%9f%98%80', 'ok'],

    ['/a%2fb', 'path_encoded_slash'],
    ['/a%2Fb', 'path_encoded_slash'],
    ['/%2f', 'path_encoded_slash'],
    ['/a%5cb', 'path_encoded_slash'],
    ['/..%5C..', 'path_encoded_slash'],
    ['/%ef%bc%8f', 'path_encoded_slash'],
    ['/a%ef%bc%8fb', 'path_encoded_slash'],
    ['/a%ef%bc%bcb', 'path_encoded_slash'],
    ['/%ef%b9%a8', 'path_encoded_slash'],
    ['/%e2%84%80', 'path_encoded_slash'],
    ['/%e2%81%84', 'ok'],
    ['/%e2%88%95', 'ok'],

    ['/a%00', 'path_encoded_control'],
    ['/a%09', 'path_encoded_control'],
    ['/a%0a', 'path_encoded_control'],
    ['/a%0D%0Ab', 'path_encoded_control'],
    ['/%1f', 'path_encoded_control'],
    ['/%7f', 'path_encoded_control'],
    ['/%c2%80', 'path_encoded_control'],
    ['/%c2%85', 'path_encoded_control'],
    ['/%c2%9f', 'path_encoded_control'],
    ['/%c2%a0', 'ok'],
    ['/a%20', 'ok'],
    ['/%7e', 'ok'],

    ['/a;', 'path_parameter'],
    ['/a;x=y', 'path_parameter'],
    ['/;/a', 'path_parameter'],
    ['/a%3b', 'path_parameter'],
    ['/..;/a', 'path_parameter'],
    ['/..%3B/a', 'path_parameter'],
    ['/a?x;y', 'ok'],

    ['/.', 'path_dot_segment'],
    ['/..', 'path_dot_segment'],
    ['/../', 'path_dot_segment'],
    ['/a/./b', 'path_dot_segment'],
    ['/a/../b', 'path_dot_segment'],
    ['/a/...', 'path_dot_segment'],
    ['/a/%2e', 'path_dot_segment'],
    ['/a/%2E%2e/b', 'path_dot_segment'],
    ['/a/.%2e/b', 'path_dot_segment'],
    ['/a/%2e./b', 'path_dot_segment'],
    ['/a/%20', 'path_dot_segment'],
    ['/a/..%20', 'path_dot_segment'],
    ['/a/%20..', 'path_dot_segment'],
    ['/a/.%20.', 'path_dot_segment'],
    ['/a/..%3f', 'path_dot_segment'],
    ['/a/..%3Fx', 'path_dot_segment'],
    ['/a/..%23x', 'path_dot_segment'],
    ['/a/.%3f/b', 'path_dot_segment'],
    ['/a/%20%23', 'path_dot_segment'],
    ['/a/%e2%80%a4', 'path_dot_segment'],
    ['/a/%e2%80%a5', 'path_dot_segment'],
    ['/a/%e2%80%a6', 'path_dot_segment'],
    ['/a/%ef%bc%8e%ef%bc%8e', 'path_dot_segment'],
    ['/a/.%ef%bc%8e', 'path_dot_segment'],
    ['/a/%ef%b9%92.', 'path_dot_segment'],
    ['/a/..x', 'ok'],
    ['/a/x..', 'ok'],
    ['/a/.x', 'ok'],
    ['/a/..%20x', 'ok'],
    ['/a/x%3f..', 'ok'],
    ['/a/%3f..', 'ok'],
    ['/a/%3f', 'ok'],
    ['/a/%23', 'ok'],
    ['/a/%ef%bc%8ex', 'ok'],
    ['/a../b', 'ok'],

    ['/a%252e', 'path_double_encoding'],
    ['/%252e%252e', 'path_double_encoding'],
    ['/%252f', 'path_double_encoding'],
    ['/%25%32%65', 'path_double_encoding'],
    ['/%2561', 'path_double_encoding'],
    ['/a%25252e', 'path_double_encoding'],
    ['/%25', 'ok'],
    ['/%25zz', 'ok'],
    ['/%252', 'ok'],
    ['/100%25', 'ok'],

    ['/__proto__/constructor', 'ok'],
  ])('accepts or refuses the target %j: %s', (target, expected) => {
    expect(ofTarget(target)).toBe(expected);
  });

  it.each<[Outcome, Outcome, Partial<ScopeRequest>]>([
    ['method_invalid', 'domain_invalid', { method: 'get', domain: '*' }],
    ['method_invalid', 'path_not_absolute', { method: 'get', target: 'a' }],
    ['domain_invalid', 'path_not_absolute', { domain: '*', target: 'a' }],
    ['domain_invalid', 'path_too_long', { domain: '*', target: '/'.repeat(9000) }],
    ['path_too_long', 'path_not_absolute', { target: 'a'.repeat(8193) }],
    ['path_too_long', 'path_fragment', { target: `/${'#'.repeat(8192)}` }],
    ['path_not_absolute', 'path_fragment', { target: 'a#' }],
    ['path_fragment', 'path_backslash', { target: '/\\#' }],
    ['path_fragment', 'path_empty_segment', { target: '//#' }],
    ['path_backslash', 'path_illegal_character', { target: '/ \\' }],
    ['path_backslash', 'path_dot_segment', { target: '/../\\' }],
    ['path_illegal_character', 'path_bad_encoding', { target: '/%zz ' }],
    ['path_illegal_character', 'path_empty_segment', { target: '// ' }],
    ['path_bad_encoding', 'path_empty_segment', { target: '//%' }],
    ['path_bad_encoding', 'path_empty_segment', { target: '//%2g' }],
    ['path_bad_encoding', 'path_dot_segment', { target: '/../%zz' }],
    ['path_empty_segment', 'path_bad_encoding', { target: '/%ff//' }],
    ['path_empty_segment', 'path_encoded_slash', { target: '/%2f//a' }],
    ['path_empty_segment', 'path_dot_segment', { target: '/..//a' }],
    ['path_bad_encoding', 'path_encoded_slash', { target: '/%2f%ff' }],
    ['path_bad_encoding', 'path_parameter', { target: '/;%ff' }],
    ['path_encoded_slash', 'path_encoded_control', { target: '/%00%2f' }],
    ['path_encoded_slash', 'path_parameter', { target: '/;%5c' }],
    ['path_encoded_slash', 'path_double_encoding', { target: '/%252e%2f' }],
    ['path_encoded_control', 'path_parameter', { target: '/;%00' }],
    ['path_encoded_control', 'path_encoded_slash', { target: '/%ef%bc%8f%00' }],
    ['path_encoded_control', 'path_dot_segment', { target: '/..%3f%00' }],
    ['path_parameter', 'path_encoded_slash', { target: '/%ef%bc%8f;' }],
    ['path_parameter', 'path_dot_segment', { target: '/..%3f;' }],
    ['path_parameter', 'path_double_encoding', { target: '/%252e;' }],
    ['path_encoded_slash', 'path_dot_segment', { target: '/..%3f%ef%bc%8f' }],
    ['path_encoded_slash', 'path_double_encoding', { target: '/%252e%ef%bc%8f' }],
    ['path_dot_segment', 'path_double_encoding', { target: '/..%3f%252e' }],
  ])('reports %s before %s', (expected, _, request) => {
    expect(outcome(request)).toBe(expected);
  });

  it('reports the first ambiguous segment', () => {
    expect(ofTarget('/a/../%2f')).toBe('path_dot_segment');
    expect(ofTarget('/a/%2f/..')).toBe('path_encoded_slash');
    expect(ofTarget('/a/%252e/;')).toBe('path_double_encoding');
  });

  it.each([
    ['/', ''],
    ['/?x', ''],
    ['/a', 'a'],
    ['/a/', 'a'],
    ['/a/?x', 'a'],
    ['/%61', 'a'],
    ['/%41%7e%2D%5f%2ea', 'A~-_.a'],
    ['/a%2eb', 'a.b'],
    ['/a%3ab', 'a%3Ab'],
    ['/a:b', 'a:b'],
    ['/a%40b/', 'a%40b'],
    ['/a%2ab', 'a%2Ab'],
    ['/a%24', 'a%24'],
    ['/%c3%a8', '%C3%A8'],
    ['/a%20b', 'a%20b'],
    ['/%25', '%25'],
    ['/%5b', '%5B'],
    ['/[', '['],
    ['/A', 'A'],
    ['/*', '*'],
  ])('normalizes a path only as RFC 3986 allows: %s becomes %j', (target, path) => {
    expect(pathOf(target)).toBe(path);
  });

  it('treats only unreserved characters as equal to their encoded form', () => {
    for (let unit = 0x21; unit <= 0x7e; unit++) {
      const character = String.fromCharCode(unit);
      const isUnreserved = /[A-Za-z0-9\-._~]/.test(character);
      const triplet = `%${unit.toString(16)}`;
      const plain = pathOf(`/x${character}`);
      const encoded = pathOf(`/x${triplet}`);
      if (encoded === undefined) {
        expect('/\\;').toContain(character);
      } else if (isUnreserved) {
        expect(encoded).toBe(plain);
      } else {
        expect(encoded).toBe(`x${triplet.toUpperCase()}`);
        expect(encoded).not.toBe(plain);
        expect(pathOf(`/x${triplet.toUpperCase()}`)).toBe(encoded);
      }
    }
  });

  it('refuses a segment whose NFKC form holds a slash or only dots', () => {
    const special =
      '\u2024\u2025\u2026\uff0e\uff0f\uff3c\ufe52\ufe68\u2100\u0338\u0300\u0316\u00e9./a';
    const unit = fc.oneof(fc.constantFrom(...special), fc.string({ unit: 'binary', minLength: 1 }));
    fc.assert(
      fc.property(fc.array(unit, { minLength: 1, maxLength: 6 }), (units) => {
        const segment = units.join('').toWellFormed();
        const compatible = segment.normalize('NFKC');
        const reading = ofTarget(`/x/${encodeURIComponent(segment)}`);
        if (/[/\\]/.test(compatible)) expect(reading).not.toBe('ok');
        if (/^\.+$/.test(compatible)) expect(reading).not.toBe('ok');
        if (reading === 'path_dot_segment') expect(compatible).toMatch(/^[. ]+(?:[?#]|$)/);
      }),
      runs(),
    );
  });

  it('refuses arbitrary field values without throwing', () => {
    const field = fc.oneof(fc.anything({ withBigInt: true }), fc.string({ unit: 'binary' }));
    fc.assert(
      fc.property(field, field, field, (method, domain, target) => {
        expect(outcome({ method, domain, target })).not.toBe('ok');
      }),
      runs(),
    );
  });

  it('reads each field once, so that none can change between check and use', () => {
    const reads: string[] = [];
    const answers: Record<string, string[]> = {
      method: ['GET', 'DELETE'],
      domain: ['d.example', 'e.example'],
      target: ['/a', '/admin'],
    };
    const shifty = new Proxy({} as ScopeRequest, {
      get: (_, name) => {
        reads.push(String(name));
        return answers[String(name)]?.shift();
      },
    });

    expect(readRequest(shifty)).toMatchObject({ request: { method: 'GET', path: 'a' } });
    expect(reads.sort()).toEqual(['domain', 'method', 'target']);
  });
});

describe('the cache of read hosts', () => {
  it('keeps hosts in memory only in part', () => {
    const end = `${'x'.repeat(60)}.${'y'.repeat(60)}.example`;
    const read = (round: number, count: number): void => {
      for (let i = 0; i < count; i++) outcome({ domain: `r${round}n${i}.${end}` });
    };
    read(0, 1000);
    const before = heapBytes();
    read(1, 50_000);

    // All of them would take about 15 MB.
    expect(heapBytes() - before).toBeLessThan(5_000_000);
  });
});

describe('isReadRequest', () => {
  it('is true only for requests that readRequest returned', () => {
    const reading = readRequest({ method: 'GET', domain: 'd.example', target: '/a' });
    const request = reading.ok ? reading.request : undefined;

    expect(isReadRequest(request)).toBe(true);
    expect(isReadRequest({ ...request })).toBe(false);
    expect(isReadRequest(JSON.parse(JSON.stringify(request)))).toBe(false);
    expect(isReadRequest({ method: 'GET', domain: 'd.example', path: 'a' })).toBe(false);
    expect(isReadRequest(undefined)).toBe(false);
    expect(isReadRequest(null)).toBe(false);
  });
});

describe('scopeOfRequest', () => {
  it.each([
    ['/', 'GET:d.example/$'],
    ['/a', 'GET:d.example/a$'],
    ['/a/b/?x', 'GET:d.example/a/b$'],
    ['/%61%7Eb', 'GET:d.example/a~b$'],
    ['/a$', 'GET:d.example/a$$'],
    ['/a$/b', 'GET:d.example/a$/b$'],
    ['/$', 'GET:d.example/$$'],

    ['/a/x%20y/b', 'GET:d.example/a/{}/b$'],
    ['/a/x,y', 'GET:d.example/a/{}$'],
    ['/a/*/b', 'GET:d.example/a/{}/b$'],
    ['/a|b/c', 'GET:d.example/{}/c$'],
    ['/*', 'GET:d.example/{}$'],
    ['/%24', 'GET:d.example/{}$'],
    ['/%7B%7D', 'GET:d.example/{}$'],

    ['/*'.repeat(8), `GET:d.example${'/{}'.repeat(8)}$`],
    ['/*'.repeat(9), `GET:d.example${'/{}'.repeat(8)}`],
    [`${'/*'.repeat(8)}/a/*`, `GET:d.example${'/{}'.repeat(8)}/a`],
    [`${'/*'.repeat(8)}/a$/*`, `GET:d.example${'/{}'.repeat(8)}`],
    ['/a'.repeat(32), `GET:d.example${'/a'.repeat(32)}$`],
    ['/a'.repeat(33), `GET:d.example${'/a'.repeat(32)}`],
    ['/a'.repeat(4000), `GET:d.example${'/a'.repeat(32)}`],
    [`${'/a'.repeat(30)}/b$/b$/a`, `GET:d.example${'/a'.repeat(30)}`],
    ['/a$'.repeat(33), 'GET:d.example/*'],
    [`/${'a'.repeat(511)}`, `GET:d.example/${'a'.repeat(511)}$`],
    [`/${'a'.repeat(512)}`, 'GET:d.example/{}$'],
    [`/b/${'a'.repeat(509)}`, `GET:d.example/b/${'a'.repeat(509)}$`],
    [`/b/${'a'.repeat(510)}`, 'GET:d.example/b'],
    [`/b$/${'a'.repeat(509)}`, 'GET:d.example/*'],
  ])('returns the narrowest scope that can express the request: case %#', (target, expected) => {
    const reading = readRequest({ method: 'GET', domain: 'd.example', target });

    expect(reading.ok && String(scopeOfRequest(reading.request))).toBe(expected);
    expect(parseScope(expected).toString()).toBe(expected);
    expect(
      ScopeSet.from([expected]).allows({ method: 'GET', domain: 'd.example', target }).allowed,
    ).toBe(true);
  });

  it('returns a scope that parses and allows the request it was made for', () => {
    const written = fc.constantFrom('a', 'a$', '$', '*', 'x%20y', '%24', 'b'.repeat(100));
    fc.assert(
      fc.property(fc.array(written, { maxLength: 40 }), (segments) => {
        const request = { method: 'GET', domain: 'd.example', target: `/${segments.join('/')}` };
        const reading = readRequest(request);
        if (!reading.ok) throw new Error(reading.reason);
        const text = String(scopeOfRequest(reading.request));
        expect(String(parseScope(text))).toBe(text);
        expect(ScopeSet.from([text]).allows(request).allowed).toBe(true);
      }),
      runs(),
    );
  });
});

describe('a path that an upstream rewrites', () => {
  const tokens =
    'a b x . .. ... %2e %2E%2e .%2e %252e %25 %2525 25 2e 2f %61 %2f %252f %5c \\ %3b ; ;x %00 %0d %0a %09 %20 ' +
    '%3f %23 ? # %e2%80%a4 %e2%80%a5 %ef%bc%8e %ef%bc%8f %ef%bc%9b %e2%84%80 %c2%85 %c2%a0 %7f %c0%ae ' +
    '%c3%a8 %u002e %2 % ~ * | [ : @ , + = & //';
  const nasty = tokens.split(' ').concat(' ', '\u2025', '\u00e9', '\n', '/');

  const prefixes = ['a', 'a/b', 'a.b', '.a', 'a..', 'a:b', '@a', 'a/a', '~a', "a'b&c=d+e"];

  const nastySegment = fc
    .array(fc.constantFrom(...nasty), { maxLength: 3 })
    .map((all) => all.join(''));
  const target = fc.tuple(
    fc.constantFrom(...prefixes),
    fc.array(nastySegment, { maxLength: 3 }),
    fc.constantFrom('/', '/', '/', '/', '/', ''),
    fc.constantFrom('', '', '', '/%2e%2e', '/..;', '/.', '/'),
    fc.constantFrom('', '', '', '/', '?/../x', '?#'),
    fc.boolean(),
  );

  function allowedUnder(prefix: string, raw: string): boolean {
    const set = ScopeSet.from([`GET:d.example/${prefix}`]);
    return set.allows({ method: 'GET', domain: 'd.example', target: raw }).allowed;
  }

  it('stays under the prefix that allowed it', () => {
    let allowed = 0;
    fc.assert(
      fc.property(target, ([prefix, parts, glue, start, tail, isEncoded]) => {
        const shown = isEncoded ? prefix.replace('a', '%61') : prefix;
        const raw = `${start}/${shown}${parts.length === 0 ? '' : glue}${parts.join('/')}${tail}`;
        if (!allowedUnder(prefix, raw)) return;
        allowed += 1;
        expect(escapeOf(pathPart(raw), prefix, 3)).toBeUndefined();
      }),
      // Most targets are refused, so it takes many runs to get enough allowed ones.
      runs(10),
    );
    expect(allowed).toBeGreaterThan(runs(0.5).numRuns);
  });

  /** Targets that fill each `{}` of a pattern with a nasty segment and may add one below. */
  const filled = fc
    .tuple(
      fc.constantFrom(
        ...['{}', '{}$', 'a/{}', 'a/{}$', '{}/b', '{}/b$', 'a/{}/b', 'a/{}/b$', '{}/{}', 'a/b$'],
        ...['{}/{}$', 'a/{}/{}/b', '{}/a.b/{}$', '$'],
      ),
      fc.array(nastySegment, { minLength: 3, maxLength: 3 }),
      fc.array(nastySegment, { maxLength: 1 }),
      fc.constantFrom('', '', '', '/', '/%2e%2e', '?/../x'),
    )
    .map(([pattern, fillers, below, tail]) => {
      const segments = pattern === '$' ? [] : pattern.replace(/\$$/, '').split('/');
      const path = segments.map((one, index) => (one === '{}' ? fillers[index % 3] : one));
      return { pattern, raw: `/${[...path, ...below].join('/')}${tail}` };
    });

  it('stays under the scope with {} or $ that allowed it', () => {
    let allowed = 0;
    fc.assert(
      fc.property(filled, ({ pattern, raw }) => {
        if (!allowedUnder(pattern, raw)) return;
        allowed += 1;
        // If an upstream decodes `%3F` or `%23` and cuts there, only the part before the first `{}` holds.
        const kept = /%(?:3f|23)/i.test(pathPart(raw)) ? prefixOf(pattern) : pattern;
        expect(escapeOf(pathPart(raw), kept, 3)).toBeUndefined();
      }),
      runs(10),
    );
    expect(allowed).toBeGreaterThan(runs(0.5).numRuns);
  });

  it('stays under the prefix for every pair of special characters', () => {
    let allowed = 0;
    for (const first of nasty) {
      for (const second of nasty) {
        for (const raw of [
          `/a/${first}${second}`,
          `/a/${first}/${second}`,
          `/a${first}${second}`,
        ]) {
          if (!allowedUnder('a', raw)) continue;
          allowed += 1;
          expect(escapeOf(pathPart(raw), 'a', 3)).toBeUndefined();
        }
      }
    }
    expect(allowed).toBeGreaterThan(500);
  });

  it('is detected when it escapes (the control)', () => {
    expect(escapeOf('/a/../b', 'a', 1)).toBeDefined();
    expect(escapeOf('/a/%2e%2e/b', 'a', 1)).toBeDefined();
    expect(escapeOf('/a/%252e%252e/b', 'a', 0)).toBeUndefined();
    expect(escapeOf('/a/%252e%252e/b', 'a', 1)).toBeDefined();
    expect(escapeOf('/a/%25252e%25252e/b', 'a', 1)).toBeUndefined();
    expect(escapeOf('/a/%25252e%25252e/b', 'a', 3)).toBeDefined();
    expect(escapeOf('/a/..;x/b', 'a', 1)).toBeDefined();
    expect(escapeOf('/a/..%5cb', 'a', 2)).toBeDefined();
    expect(escapeOf('/a/..%3fx', 'a', 2)).toBeDefined();
    expect(escapeOf('/a/..%00x', 'a', 2)).toBeDefined();
    expect(escapeOf('/a%2fx', 'b', 1)).toBeDefined();
    expect(escapeOf('/a/x', 'a', 3)).toBeUndefined();
    expect(escapeOf('/a/x/c', 'a/{}/b', 0)).toBeDefined();
    expect(escapeOf('/a/x/b', 'a/{}/b', 3)).toBeUndefined();
    expect(escapeOf('/a//b', 'a/{}/b', 0)).toBeDefined();
    expect(escapeOf('/a/', 'a/{}', 0)).toBeDefined();
    expect(escapeOf('/a/x%2fb', 'a/{}$', 0)).toBeUndefined();
    expect(escapeOf('/a/x%2fb', 'a/{}$', 1)).toBeDefined();
    expect(escapeOf('/a/%2e%2e', 'a/{}$', 1)).toBeDefined();
    expect(escapeOf('/a/b/', 'a/b$', 3)).toBeUndefined();
    expect(escapeOf('/a/b/c', 'a/b$', 0)).toBeDefined();
    expect(escapeOf('/', '$', 3)).toBeUndefined();
    expect(escapeOf('/a', '$', 0)).toBeDefined();
  });
});

/** The path before the first `{}`, as an open path; `*` if that is the root. */
function prefixOf(pattern: string): string {
  return pattern.split(/\/?\{\}/, 1)[0]?.replace(/\$$/, '') || '*';
}

type Step = (path: string) => string;

const steps: Readonly<Record<string, Step>> = {
  'URL parsing': (path) => {
    const url = URL.canParse(path, 'http://d.example') ? new URL(path, 'http://d.example') : null;
    if (url === null) return path;
    return url.host === 'd.example' ? url.pathname : `/on-another-host${url.pathname}`;
  },
  'URL parsing after the authority': (path) => new URL(`http://d.example${path}`).pathname,
  'POSIX normalization': (path) => posix.normalize(path),
  'percent-decoding': (path) =>
    path.replace(/(?:%[0-9a-f]{2})+/gi, (run) =>
      Buffer.from(run.replaceAll('%', ''), 'hex').toString(),
    ),
  'slash merging': (path) => path.replace(/\/+/g, '/'),
  'backslash folding': (path) => path.replaceAll('\\', '/'),
  '; stripping': (path) => path.replace(/;[^/]*/g, ''),
  // biome-ignore lint/suspicious/noControlCharactersInRegex: some servers cut a path at these characters
  cutting: (path) => path.replace(/[\u0000#\r\n].*$/s, ''),
};

/** The query is not part of the path: a proxy normalizes only what comes before it. */
function pathPart(target: string): string {
  return target.split('?')[0] ?? '';
}

/** The steps, at most `depth` of them, that lead a path out of its prefix; `undefined` when none do. */
function escapeOf(path: string, prefix: string, depth: number): string | undefined {
  if (!isUnder(path, prefix)) return JSON.stringify(path);
  if (depth === 0) return undefined;
  for (const [name, step] of Object.entries(steps)) {
    const next = step(path);
    if (next === path) continue;
    const found = escapeOf(next, prefix, depth - 1);
    if (found !== undefined) return `${name} of ${JSON.stringify(path)}: ${found}`;
  }
  return undefined;
}

/** Whether a server that resolves dots and compares by RFC 3986 ends up under the pattern. */
function isUnder(path: string, pattern: string): boolean {
  const resolved: string[] = [];
  for (const raw of (path.split('?')[0] ?? '').split('/').slice(1)) {
    const segment = raw.replace(/%[0-9a-f]{2}/gi, (triplet) => {
      const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16));
      return /[\w\-.~]/.test(character) ? character : triplet;
    });
    if (segment === '..') resolved.pop();
    else if (segment !== '.') resolved.push(segment);
  }
  // A single trailing slash makes no difference.
  if (resolved.at(-1) === '') resolved.pop();
  const isClosed = pattern.endsWith('$');
  const segments = pattern === '$' || pattern === '*' ? [] : pattern.replace(/\$$/, '').split('/');
  return (
    (isClosed ? resolved.length === segments.length : resolved.length >= segments.length) &&
    segments.every((one, index) =>
      one === '{}' ? resolved[index] !== '' : one === resolved[index],
    )
  );
}
