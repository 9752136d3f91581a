import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { covers, meet } from '../../src/scope/algebra.ts';
import { ScopeError, type ScopeErrorCode } from '../../src/scope/errors.ts';
import {
  isScope,
  isSegment,
  parseScope,
  recallScope,
  type Scope,
  type ScopeReading,
  safeParseScope,
  toScope,
} from '../../src/scope/grammar.ts';
import { runs } from '../laws.ts';
import { anyScope, hostile, revoked } from './support.ts';

type Outcome = ScopeErrorCode | 'ok';

function outcome(value: unknown): Outcome {
  const reading = safeParseScope(value);
  return reading.ok ? 'ok' : reading.error;
}

function suggestionFor(text: string): string | undefined {
  const reading = safeParseScope(text);
  return reading.ok ? undefined : reading.suggestion;
}

function segments(count: number): string {
  return Array.from({ length: count }, () => 'a').join('/');
}

function templates(count: number): string {
  return Array.from({ length: count }, () => '{}').join('/');
}

function long(length: number): string {
  return `GET:d.example/${'a'.repeat(length)}`;
}

/** A host of exactly this length: labels of 63 characters and a last one that is never empty. */
function hostOf(length: number): string {
  let host = 'x';
  while (host.length < length) {
    const room = length - host.length - 1;
    const label = room > 64 ? 63 : room > 63 ? 62 : room;
    host = label === 0 ? `x${host}` : `${'b'.repeat(label)}.${host}`;
  }
  return host;
}

describe('parseScope', () => {
  it.each([
    ['GET:shop.example/orders', 'GET', 'shop.example', 'orders'],
    ['*:*/*', '*', '*', '*'],
    ['GET:*/*', 'GET', '*', '*'],
    ['*:*.shop.example/orders/open', '*', '*.shop.example', 'orders/open'],
    ['*:shop.example/*', '*', 'shop.example', '*'],
    ['GET:*.example/:id', 'GET', '*.example', ':id'],
    ['GET:localhost/a:b/c', 'GET', 'localhost', 'a:b/c'],
  ])('reads %s as its three components', (text, method, domain, path) => {
    const scope = parseScope(text);

    expect([scope.method, scope.domain, scope.path]).toEqual([method, domain, path]);
    expect(scope.toString()).toBe(text);
    expect(JSON.stringify([scope])).toBe(JSON.stringify([text]));
  });

  it.each([
    ['GET:Shop.EXAMPLE/Orders', 'GET:shop.example/Orders'],
    ['GET:*.Shop.Example/A', 'GET:*.shop.example/A'],
    ['GET:XN--BCHER-KVA.example/a', 'GET:xn--bcher-kva.example/a'],
  ])('lowercases only the domain of %s', (text, canonical) => {
    expect(parseScope(text).toString()).toBe(canonical);
  });

  it('throws a ScopeError with a code, and with a suggestion if there is one', () => {
    const fail = (text: unknown): ScopeError => {
      try {
        parseScope(text as string);
      } catch (error) {
        if (error instanceof ScopeError) return error;
      }
      throw new Error('no ScopeError');
    };

    expect(fail('get:d.example/a')).toMatchObject({
      code: 'method_invalid',
      suggestion: 'GET:d.example/a',
    });
    expect(fail('GET:d.example/a%20')).toMatchObject({ code: 'percent_encoding' });
    expect(fail('GET:d.example/a%20').suggestion).toBeUndefined();
    expect(fail(undefined)).toMatchObject({ code: 'not_a_string', name: 'ScopeError' });
    expect(fail(hostile())).toMatchObject({ code: 'not_a_string' });
  });

  it('returns a scope that cannot be changed', () => {
    const scope = parseScope('GET:d.example/a') as { path: string };

    expect(() => {
      scope.path = '*';
    }).toThrow(TypeError);
    expect(String(scope)).toBe('GET:d.example/a');
  });

  it('parses the canonical text of a scope to an equal scope', () => {
    fc.assert(
      fc.property(anyScope, (text) => {
        const scope = parseScope(text);
        expect(scope.toString()).toBe(text);
        expect(parseScope(scope.toString())).toEqual(scope);
      }),
      runs(),
    );
  });
});

describe('safeParseScope', () => {
  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['true', true],
    ['zero', 0],
    ['a number', 42],
    ['NaN', Number.NaN],
    ['a bigint', 10n],
    ['a symbol', Symbol('GET:d.example/a')],
    ['a function', () => 'GET:d.example/a'],
    ['a class', class Scoped {}],
    ['an object', {}],
    ['an object without a prototype', Object.create(null)],
    ['an empty array', []],
    ['an array of one scope', ['GET:d.example/a']],
    ['an array that prints as a scope', ['GET:d.example/a', 'b']],
    ['a String object', new String('GET:d.example/a')],
    ['an object with toString', { toString: () => 'GET:d.example/a' }],
    ['an object with toJSON', { toJSON: () => 'GET:d.example/a' }],
    ['an object with toPrimitive', { [Symbol.toPrimitive]: () => 'GET:d.example/a' }],
    ['an object with the fields of a scope', { method: 'GET', domain: 'd.example', path: 'a' }],
    ['a Map', new Map([['GET:d.example/a', true]])],
    ['bytes', new TextEncoder().encode('GET:d.example/a')],
    ['a date', new Date(0)],
    ['a promise', Promise.resolve('GET:d.example/a')],
    ['a proxy that throws', hostile()],
    ['a revoked proxy', revoked()],
  ])('reports not_a_string for %s', (_, value) => {
    expect(outcome(value)).toBe('not_a_string');
  });

  it('never throws for arbitrary values', () => {
    fc.assert(
      fc.property(fc.oneof(fc.anything({ withProxy: true } as object), fc.string()), (value) => {
        expect(() => safeParseScope(value)).not.toThrow();
      }),
      runs(),
    );
  });

  it.each([
    ['', 'empty'],
    [' ', 'illegal_character'],
    ['a', 'missing_method'],
  ] as const)('handles the shortest texts: %j is %s', (text, expected) => {
    expect(outcome(text)).toBe(expected);
  });

  it.each<[string, Outcome]>([
    ['GET:d.example/a', 'ok'],
    ['GET:d.example/\u007f', 'illegal_character'],
    ['GET:d.example/\u0080', 'non_ascii'],
    ['GET:d.example/caff\u00e8', 'non_ascii'],
    ['GET:d\u3002example/a', 'non_ascii'],
    ['GET:\u212a.example/a', 'non_ascii'],
    ['GE\u017f:d.example/a', 'non_ascii'],
    ['GET:d.example/\ud800', 'non_ascii'],
    ['GET:d.example/\udc00a', 'non_ascii'],
    ['GET:d.example/\u{1f600}', 'non_ascii'],
    ['\ufeffGET:d.example/a', 'non_ascii'],
    ['GET:d.example/a\u2028', 'non_ascii'],
    ['GET:d.example/a\u00a0', 'non_ascii'],
  ])('accepts only ASCII: %j is %s', (text, expected) => {
    expect(outcome(text)).toBe(expected);
  });

  it('refuses a space or control character anywhere, and trims nothing', () => {
    const controls = [...Array.from({ length: 0x21 }, (_, unit) => unit), 0x7f];
    for (const control of controls.map((unit) => String.fromCharCode(unit))) {
      for (const index of [0, 1, 3, 4, 8, 13, 14, 15]) {
        const text = 'GET:d.example/a';
        const smuggled = text.slice(0, index) + control + text.slice(index);
        expect(outcome(smuggled), JSON.stringify(smuggled)).toBe('illegal_character');
      }
    }
  });

  it.each<[string, Outcome]>([
    ['A:d.example/a', 'ok'],
    ['GET:d.example/a', 'ok'],
    ['*:d.example/a', 'ok'],
    ['M-SEARCH:d.example/a', 'ok'],
    ['A--B:d.example/a', 'ok'],
    ['CONSTRUCTOR:d.example/a', 'ok'],
    ['d.example/a', 'missing_method'],
    ['GET', 'missing_method'],
    [':', 'missing_method'],
    ['/', 'missing_method'],
    [':d.example/a', 'missing_method'],
    ['GET/d.example:a', 'missing_method'],
    ['/GET:d.example/a', 'missing_method'],
    ['**:d.example/a', 'wildcard_position'],
    ['G*:d.example/a', 'wildcard_position'],
    ['*GET:d.example/a', 'wildcard_position'],
    ['get:d.example/a', 'method_invalid'],
    ['GeT:d.example/a', 'method_invalid'],
    ['-:d.example/a', 'method_invalid'],
    ['-GET:d.example/a', 'method_invalid'],
    ['GET-:d.example/a', 'method_invalid'],
    ['G3T:d.example/a', 'method_invalid'],
    ['G_T:d.example/a', 'method_invalid'],
    ['GET,POST:d.example/a', 'method_invalid'],
    ['@:d.example/a', 'method_invalid'],
    ['[:d.example/a', 'method_invalid'],
    ['constructor:d.example/a', 'method_invalid'],
    ['__proto__:d.example/a', 'method_invalid'],
  ])('requires a valid method: %s is %s', (text, expected) => {
    expect(outcome(text)).toBe(expected);
  });

  it.each<[string, Outcome]>([
    ['GET:https/a', 'ok'],
    ['GET:https://d.example/a', 'scheme_present'],
    ['GET:HTTPS://d.example/a', 'scheme_present'],
    ['GET:git+ssh://d.example/a', 'scheme_present'],
    ['*:http://*/*', 'scheme_present'],
    ['GET:https:/a', 'domain_port'],
    ['GET:d.example/https://d', 'path_empty_segment'],
    ['GET:d.example/https:/d', 'ok'],
  ])('refuses a scheme: %s is %s', (text, expected) => {
    expect(outcome(text)).toBe(expected);
  });

  it.each<[string, Outcome]>([
    ['GET:/a', 'missing_domain'],
    ['GET:/*', 'missing_domain'],
    ['*:/', 'missing_domain'],
    ['GET://a', 'missing_domain'],
    ['GET:', 'missing_domain'],
    ['GET:d/a', 'ok'],
    ['GET:*/a', 'ok'],
    ['GET:*./a', 'domain_invalid'],
    ['GET:*.d/a', 'ok'],
    ['GET:**/a', 'wildcard_position'],
    ['GET:*d.example/a', 'wildcard_position'],
    ['GET:d*.example/a', 'wildcard_position'],
    ['GET:d.*/a', 'wildcard_position'],
    ['GET:d.*.example/a', 'wildcard_position'],
    ['GET:*.*/a', 'wildcard_position'],
    ['GET:*.*.example/a', 'wildcard_position'],
    ['GET:**.example/a', 'wildcard_position'],
    ['GET:*:80/a', 'wildcard_position'],
    ['GET:user@d.example/a', 'domain_userinfo'],
    ['GET:@d.example/a', 'domain_userinfo'],
    ['GET:*.user@d.example/a', 'domain_userinfo'],
    ['GET:[::1]/a', 'domain_ip'],
    ['GET:[d.example]/a', 'domain_ip'],
    ['GET:d.example:443/a', 'domain_port'],
    ['GET:d.example:/a', 'domain_port'],
    ['GET:*.d.example:443/a', 'domain_port'],
    ['GET:::1/a', 'domain_port'],
    ['GET:./a', 'domain_invalid'],
    ['GET:.d.example/a', 'domain_invalid'],
    ['GET:d.example./a', 'domain_invalid'],
    ['GET:d..example/a', 'domain_invalid'],
    ['GET:*..example/a', 'domain_invalid'],
    ['GET:*.example./a', 'domain_invalid'],
    ['GET:-d.example/a', 'domain_invalid'],
    ['GET:d-.example/a', 'domain_invalid'],
    ['GET:-/a', 'domain_invalid'],
    ['GET:d-d.e--e/a', 'ok'],
    ['GET:d_d.example/a', 'domain_invalid'],
    ['GET:__proto__/a', 'domain_invalid'],
    ['GET:constructor/a', 'ok'],
    ['GET:*.constructor/a', 'ok'],
    ['GET:d%2eexample/a', 'domain_invalid'],
    ['GET:d,e.example/a', 'domain_invalid'],
    ['GET:{d}.example/a', 'domain_invalid'],
    ['GET:d.example]/a', 'domain_invalid'],
    ['GET:d.example?/a', 'domain_invalid'],
    ['GET:d\\example/a', 'domain_invalid'],
    ['GET:`.example/a', 'domain_invalid'],
    ['GET:xn--d.example/a', 'ok'],
  ])('requires a valid domain: %s is %s', (text, expected) => {
    expect(outcome(text)).toBe(expected);
  });

  it.each<[string, Outcome]>([
    ['127.0.0.1', 'domain_ip'],
    ['127.1', 'domain_ip'],
    ['1', 'domain_ip'],
    ['0', 'domain_ip'],
    ['2130706433', 'domain_ip'],
    ['999.999', 'domain_ip'],
    ['d.example.0', 'domain_ip'],
    ['*.0.0.1', 'domain_ip'],
    ['*.1', 'domain_ip'],
    ['0x', 'domain_ip'],
    ['d.0X', 'domain_ip'],
    ['0x7f.1', 'domain_ip'],
    ['d.0x7F', 'domain_ip'],
    ['*.0xffff', 'domain_ip'],
    ['1.example', 'ok'],
    ['127.0.0.1.example', 'ok'],
    ['0x7f.example', 'ok'],
    ['d.1a', 'ok'],
    ['d.a1', 'ok'],
    ['d.0xg', 'ok'],
    ['d.00x', 'ok'],
    ['d.1-1', 'ok'],
    ['d.x0', 'ok'],
  ])('refuses an IP address, judged by the last label: %s is %s', (domain, expected) => {
    expect(outcome(`GET:${domain}/a`)).toBe(expected);
  });

  it.each<[string, Outcome]>([
    ['GET:d.example', 'missing_path'],
    ['GET:d.example/', 'missing_path'],
    ['GET:*', 'missing_path'],
    ['*:*/', 'missing_path'],
    ['*:*.example', 'missing_path'],
    ['GET:d.example/*', 'ok'],
    ['GET:d.example/a?', 'query_or_fragment'],
    ['GET:d.example/?', 'query_or_fragment'],
    ['GET:d.example/a#b', 'query_or_fragment'],
    ['GET:d.example/*?x', 'query_or_fragment'],
    ['GET:d.example/%61', 'percent_encoding'],
    ['GET:d.example/%', 'percent_encoding'],
    ['GET:d.example/a%2fb', 'percent_encoding'],
    ['GET:d.example/{', 'path_template'],
    ['GET:d.example/}', 'path_template'],
    ['GET:d.example/**', 'wildcard_position'],
    ['GET:d.example/a*', 'wildcard_position'],
    ['GET:d.example/*a', 'wildcard_position'],
    ['GET:d.example/a/*', 'wildcard_position'],
    ['GET:d.example/*/a', 'wildcard_position'],
    ['GET:d.example/*/', 'wildcard_position'],
    ['GET:d.example//', 'path_empty_segment'],
    ['GET:d.example//a', 'path_empty_segment'],
    ['GET:d.example/a/', 'path_empty_segment'],
    ['GET:d.example/a//b', 'path_empty_segment'],
    ['GET:d.example/.', 'path_dot_segment'],
    ['GET:d.example/..', 'path_dot_segment'],
    ['GET:d.example/a/...', 'path_dot_segment'],
    ['GET:d.example/a/../b', 'path_dot_segment'],
    ['GET:d.example/.a', 'ok'],
    ['GET:d.example/a.', 'ok'],
    ['GET:d.example/..a', 'ok'],
    ['GET:d.example/.-.', 'ok'],
    ['GET:d.example/.well-known/x', 'ok'],
    ['GET:d.example/__proto__', 'ok'],
    ['GET:d.example/constructor/toString', 'ok'],
  ])('requires a valid path: %s is %s', (text, expected) => {
    expect(outcome(text)).toBe(expected);
  });

  it.each<[string, Outcome, string | undefined]>([
    ['{}', 'ok', '{}'],
    ['{id}', 'ok', '{}'],
    ['{id}$', 'ok', '{}$'],
    ['a/{id}/b', 'ok', 'a/{}/b'],
    ['{A-z.0_}', 'ok', '{}'],
    ['{...}', 'ok', '{}'],
    ['{__proto__}', 'ok', '{}'],
    [`{${'n'.repeat(64)}}`, 'ok', '{}'],
    [`{${'n'.repeat(65)}}`, 'path_template', undefined],
    [`{${'n'.repeat(400)}}`, 'path_template', undefined],
    ['{a~b}', 'path_template', undefined],
    ['{a$}', 'path_template', undefined],
    ['{:a}', 'path_template', undefined],
    ['{*}', 'path_template', undefined],
    ['{a*}', 'path_template', undefined],
    ['{a+}', 'path_template', undefined],
    ['{a/b}', 'path_template', undefined],
    ['{/}', 'path_template', undefined],
    ['{a}b', 'path_template', undefined],
    ['a{}', 'path_template', undefined],
    ['a{b}', 'path_template', undefined],
    ['{}{}', 'path_template', undefined],
    ['{{}}', 'path_template', undefined],
    ['}{', 'path_template', undefined],
    ['{}.json', 'path_template', undefined],
    ['{}$$', 'path_template', undefined],
    ['{}$/a', 'path_template', undefined],
    ['{a b}', 'illegal_character', undefined],
    ['{a?}', 'query_or_fragment', undefined],
    ['{%61}', 'percent_encoding', undefined],
  ])('accepts braces only around a whole segment: %s is %s', (path, expected, canonical) => {
    const reading = safeParseScope(`GET:d.example/${path}`);

    expect(reading.ok ? 'ok' : reading.error).toBe(expected);
    expect(reading.ok ? reading.scope.path : undefined).toBe(canonical);
  });

  it.each<[string, Outcome]>([
    ['$', 'ok'],
    ['$$', 'ok'],
    ['$$$', 'ok'],
    ['a$', 'ok'],
    ['a$$', 'ok'],
    ['$a', 'ok'],
    ['$a$', 'ok'],
    ['a$b', 'ok'],
    ['a$/b', 'ok'],
    ['$/a', 'ok'],
    ['$/$', 'path_empty_segment'],
    ['$/$$', 'ok'],
    ['a/$', 'path_empty_segment'],
    ['a$/', 'path_empty_segment'],
    ['/$', 'path_empty_segment'],
    ['.$', 'path_dot_segment'],
    ['a/..$', 'path_dot_segment'],
    ['.$$', 'ok'],
    ['.$/a', 'ok'],
    ['*$', 'wildcard_position'],
    ['$*', 'wildcard_position'],
    ['a?$', 'query_or_fragment'],
    ['a%$', 'percent_encoding'],
    ['a,$', 'illegal_character'],
    ['{$', 'path_template'],
  ])(
    'reads a $ at the end as the closing mark, and elsewhere as text: %s is %s',
    (path, expected) => {
      expect(outcome(`GET:d.example/${path}`)).toBe(expected);
      if (expected === 'ok') expect(parseScope(`GET:d.example/${path}`).path).toBe(path);
    },
  );

  it('refuses a $ outside the path', () => {
    expect(outcome('$:d.example/a')).toBe('method_invalid');
    expect(outcome('GET$:d.example/a')).toBe('method_invalid');
    expect(outcome('GET:$/a')).toBe('domain_invalid');
    expect(outcome('GET:d.example$/a')).toBe('domain_invalid');
    expect(outcome('GET:d.example$')).toBe('domain_invalid');
  });

  it('accepts in a path exactly the characters of the grammar', () => {
    const special: Readonly<Record<string, Outcome>> = {
      '?': 'query_or_fragment',
      '#': 'query_or_fragment',
      '%': 'percent_encoding',
      '{': 'path_template',
      '}': 'path_template',
      '*': 'wildcard_position',
    };
    const printable = Array.from({ length: 0x7e - 0x20 }, (_, i) => String.fromCharCode(0x21 + i));
    for (const character of printable) {
      const isOrdinary = /[A-Za-z0-9\-._~!$&'()+=:@/]/.test(character);
      const expected = special[character] ?? (isOrdinary ? 'ok' : 'illegal_character');
      expect(outcome(`GET:d.example/x${character}y`), character).toBe(expected);
    }
  });

  it.each<[string, string, Outcome]>([
    ['1024 characters in all', `GET:d.example/${'\u00e9'.repeat(1010)}`, 'non_ascii'],
    ['1025 characters in all', `GET:d.example/${'\u00e9'.repeat(1011)}`, 'too_long'],
    ['a megabyte', 'GET:d.example/a'.padEnd(1 << 20, 'a'), 'too_long'],
    ['a megabyte of stars', '*'.repeat(1 << 20), 'too_long'],
    ['a megabyte of lone surrogates', '\ud800'.repeat(1 << 19), 'too_long'],
    ['a megabyte of slashes', '/'.repeat(1 << 20), 'too_long'],
    ['a method of 1', 'A:d.example/a', 'ok'],
    ['a method of 32', `${'A'.repeat(32)}:d.example/a`, 'ok'],
    ['a method of 33', `${'A'.repeat(33)}:d.example/a`, 'method_invalid'],
    ['a method of 1000', `${'A'.repeat(1000)}:d.example/a`, 'method_invalid'],
    ['a label of 1', 'GET:a/a', 'ok'],
    ['a label of 63', `GET:${'a'.repeat(63)}.example/a`, 'ok'],
    ['a label of 64', `GET:${'a'.repeat(64)}.example/a`, 'domain_invalid'],
    ['a label of 240', `GET:${'a'.repeat(240)}.example/a`, 'domain_invalid'],
    ['a last label of 63', `GET:d.${'a'.repeat(63)}/a`, 'ok'],
    ['a last label of 64', `GET:d.${'a'.repeat(64)}/a`, 'domain_invalid'],
    ['a label of 63 in a parent', `GET:*.${'a'.repeat(63)}/a`, 'ok'],
    ['a label of 64 in a parent', `GET:*.${'a'.repeat(64)}/a`, 'domain_invalid'],
    ['a host of 253', `GET:${hostOf(253)}/a`, 'ok'],
    ['a host of 254', `GET:${hostOf(254)}/a`, 'too_long'],
    ['a host of 1000', `GET:${hostOf(1000)}/a`, 'too_long'],
    ['a parent of 251', `GET:*.${hostOf(251)}/a`, 'ok'],
    ['a parent of 252', `GET:*.${hostOf(252)}/a`, 'too_long'],
    ['a parent of 1000', `GET:*.${hostOf(1000)}/a`, 'too_long'],
    ['a path of 512', `GET:d.example/${'a'.repeat(512)}`, 'ok'],
    ['a path of 513', `GET:d.example/${'a'.repeat(513)}`, 'too_long'],
    ['a path of 1010', `GET:d.example/${'a'.repeat(1010)}`, 'too_long'],
    ['32 segments', `GET:d.example/${segments(32)}`, 'ok'],
    ['33 segments', `GET:d.example/${segments(33)}`, 'too_long'],
    ['500 segments', `GET:d.example/${segments(500)}`, 'too_long'],
    ['a closed path of 512', `GET:d.example/${'a'.repeat(511)}$`, 'ok'],
    ['a closed path of 513', `GET:d.example/${'a'.repeat(512)}$`, 'too_long'],
    ['32 segments, closed', `GET:d.example/${segments(32)}$`, 'ok'],
    ['33 segments, closed', `GET:d.example/${segments(33)}$`, 'too_long'],
    ['8 segments {}', `GET:d.example/a/${templates(8)}/b`, 'ok'],
    ['9 segments {}', `GET:d.example/a/${templates(9)}/b`, 'too_long'],
    ['8 segments {}, closed', `GET:d.example/${templates(8)}$`, 'ok'],
    ['9 segments {}, closed', `GET:d.example/${templates(9)}$`, 'too_long'],
    ['9 names', `GET:d.example/${'{n}/'.repeat(8)}{n}`, 'too_long'],
    ['8 {} in 32 segments', `GET:d.example/${templates(8)}/${segments(24)}`, 'ok'],
    ['8 {} in 33 segments', `GET:d.example/${templates(8)}/${segments(25)}`, 'too_long'],
    ['names of 512 in all', `GET:d.example/${'{n}/'.repeat(8)}${'a'.repeat(480)}`, 'ok'],
    ['names of 513 in all', `GET:d.example/${'{n}/'.repeat(8)}${'a'.repeat(481)}`, 'too_long'],
    ['every limit at the same time', `${'A'.repeat(32)}:${hostOf(253)}/${'a'.repeat(512)}`, 'ok'],
  ])('enforces length limits: %s is $2', (_, text, expected) => {
    expect(outcome(text)).toBe(expected);
  });

  it.each<[Outcome, Outcome, string]>([
    ['too_long', 'non_ascii', '\u00e9'.repeat(1025)],
    ['too_long', 'illegal_character', ' '.repeat(1025)],
    ['non_ascii', 'illegal_character', ' \n\u00e9'],
    ['non_ascii', 'missing_method', '\u00e9'],
    ['illegal_character', 'missing_method', 'd.example/a b'],
    ['illegal_character', 'wildcard_position', 'G*T:d.example/a\n'],
    ['illegal_character', 'method_invalid', 'get :d.example/a'],
    ['illegal_character', 'query_or_fragment', 'GET:d.example/a ?'],
    ['missing_method', 'wildcard_position', ':*x/a*'],
    ['missing_method', 'missing_domain', ':/a'],
    ['missing_method', 'missing_path', 'd.example'],
    ['wildcard_position', 'method_invalid', 'g*t:d.example/a'],
    ['wildcard_position', 'scheme_present', 'G*T:https://d.example/a'],
    ['method_invalid', 'scheme_present', 'get:https://d.example/a'],
    ['method_invalid', 'missing_domain', 'https://d.example/a'],
    ['method_invalid', 'wildcard_position', 'get:d*.example/a'],
    ['method_invalid', 'missing_path', 'get:d.example'],
    ['scheme_present', 'missing_domain', 'GET:https:///a'],
    ['scheme_present', 'domain_port', 'GET:https://d.example:80/a'],
    ['missing_domain', 'missing_path', 'GET:/'],
    ['missing_domain', 'path_empty_segment', 'GET://a'],
    ['wildcard_position', 'domain_userinfo', 'GET:*a@d.example/a'],
    ['wildcard_position', 'domain_port', 'GET:d.*:80/a'],
    ['wildcard_position', 'domain_invalid', 'GET:*.*_/a'],
    ['domain_userinfo', 'domain_ip', 'GET:[::1]@d.example/a'],
    ['domain_userinfo', 'domain_port', 'GET:a:b@d.example/a'],
    ['domain_ip', 'domain_port', 'GET:[::1]:80/a'],
    ['domain_ip', 'domain_invalid', 'GET:[d_d]/a'],
    ['domain_port', 'too_long', `GET:${hostOf(254)}:80/a`],
    ['domain_port', 'domain_invalid', 'GET:d_d:80/a'],
    ['domain_port', 'domain_ip', 'GET:127.0.0.1:80/a'],
    ['too_long', 'domain_invalid', `GET:${'_'.repeat(254)}/a`],
    ['too_long', 'domain_ip', `GET:${'1'.repeat(254)}/a`],
    ['domain_invalid', 'domain_ip', 'GET:d_d.1/a'],
    ['domain_invalid', 'missing_path', 'GET:d_d'],
    ['domain_ip', 'missing_path', 'GET:127.0.0.1'],
    ['domain_ip', 'percent_encoding', 'GET:127.0.0.1/%61'],
    ['query_or_fragment', 'percent_encoding', 'GET:d.example/%61?'],
    ['query_or_fragment', 'wildcard_position', 'GET:d.example/*#'],
    ['percent_encoding', 'path_template', 'GET:d.example/{a}%'],
    ['percent_encoding', 'path_dot_segment', 'GET:d.example/../%2e'],
    ['percent_encoding', 'wildcard_position', 'GET:d.example/%/*'],
    ['path_template', 'wildcard_position', 'GET:d.example/*/{a'],
    ['path_template', 'path_empty_segment', 'GET:d.example//{a}b'],
    ['path_template', 'path_dot_segment', 'GET:d.example/../}'],
    ['path_template', 'illegal_character', 'GET:d.example/{a,b}'],
    ['path_template', 'too_long', `GET:d.example/${'{}/'.repeat(9)}{`],
    ['wildcard_position', 'path_empty_segment', 'GET:d.example/*/$'],
    ['path_empty_segment', 'path_dot_segment', 'GET:d.example/../$'],
    ['path_empty_segment', 'too_long', `GET:d.example/${'{}/'.repeat(9)}$`],
    ['path_dot_segment', 'too_long', `GET:d.example/${'{}/'.repeat(9)}..$`],
    ['illegal_character', 'too_long', `GET:d.example/${'{}/'.repeat(9)},$`],
    ['wildcard_position', 'path_empty_segment', 'GET:d.example//*'],
    ['wildcard_position', 'path_dot_segment', 'GET:d.example/../*'],
    ['path_empty_segment', 'path_dot_segment', 'GET:d.example/..//a'],
    ['path_empty_segment', 'illegal_character', 'GET:d.example/;//a'],
    ['path_dot_segment', 'illegal_character', 'GET:d.example/;/..'],
    ['path_dot_segment', 'too_long', `GET:d.example/${'a'.repeat(513)}/..`],
    ['illegal_character', 'too_long', `GET:d.example/${','.repeat(513)}`],
    ['path_empty_segment', 'too_long', `GET:d.example/${segments(33)}/`],
  ])('reports %s before %s', (expected, _, text) => {
    expect(outcome(text)).toBe(expected);
  });

  it.each<[string, string | undefined]>([
    ['get:d.example/a', 'GET:d.example/a'],
    ['Post:D.Example/a/b', 'POST:d.example/a/b'],
    ['m-search:*.d.example/a', 'M-SEARCH:*.d.example/a'],
    ['constructor:d.example/a', 'CONSTRUCTOR:d.example/a'],
    ['GET:d.example/a/*', 'GET:d.example/a'],
    ['*:*/a/b/*', '*:*/a/b'],
    ['GET:d.example/a/', 'GET:d.example/a'],
    ['GET:*.D.example/a/b/', 'GET:*.d.example/a/b'],
    ['GET:d.example/a/$', 'GET:d.example/a$'],
    ['GET:d.example/a$/$', 'GET:d.example/a$$'],
    ['GET:d.example/{id}/', 'GET:d.example/{}'],
    ['GET:d.example/{id}/$', 'GET:d.example/{}$'],
    ['GET:d.example/{id}/*', 'GET:d.example/{}'],
    ['get:d.example/{id}$', 'GET:d.example/{}$'],
    ['get:d.example/$', 'GET:d.example/$'],
    ['GET:d.example/*/*', 'GET:d.example/{}/{}'],
    ['*:*/*/*', '*:*/{}/{}'],
    ['GET:d.example/a/*/*', 'GET:d.example/a/{}/{}'],
    ['GET:d.example/*/a/*', 'GET:d.example/{}/a/{}'],
    ['GET:d.example/*/a', 'GET:d.example/{}/a'],
    ['GET:d.example/a/*/b$', 'GET:d.example/a/{}/b$'],
    ['GET:d.example/a/*$', 'GET:d.example/a/{}$'],
    ['GET:d.example/*$', 'GET:d.example/{}$'],
    ['GET:d.example/{}/*/b', 'GET:d.example/{}/{}/b'],
    ['GET:d.example/a$/*', 'GET:d.example/a$/{}'],
    ['GET:d.example/$/*', 'GET:d.example/$/{}'],
    ['GET:d.example/*/a$/*', 'GET:d.example/{}/a$/{}'],

    ['get:d.example/*', undefined],
    ['get:*/*', undefined],
    ['get:d.example/a/', undefined],
    ['get:d.example/a/*', undefined],
    ['get:d.example', undefined],
    ['get,post:d.example/a', undefined],
    ['-get:d.example/a', undefined],
    ['g3t:d.example/a', undefined],
    ['__proto__:d.example/a', undefined],
    ['https://d.example/a', undefined],
    ['GET:d.example/a$/', undefined],
    ['GET:d.example/$/', undefined],
    ['GET:d.example/a/b$/', undefined],
    ['GET:d.example/a//$', undefined],
    ['GET:d.example/*/$', undefined],
    ['GET:d.example/a*/*', undefined],
    ['GET:d.example/*/a*', undefined],
    ['GET:d.example/*/*b/c', undefined],
    ['GET:d.example/*/..', undefined],
    ['GET:d.*/*/a', undefined],
    ['G*T:d.example/*/a', undefined],
    ['get:d.example/*/a', undefined],
    ['GET:d.example/{a/*', undefined],
    ['GET:d.example/a/{b', undefined],
    ['GET:d.example/a{b}', undefined],
    [`GET:d.example/${templates(8)}/*/a`, undefined],
    ['GET:d.example/*/', undefined],
    ['*:*/*/', undefined],
    ['GET:d.example/a//*', undefined],
    ['GET:d.example/a/*/', undefined],
    ['GET:d.example/a//', undefined],
    ['GET:d.example//', undefined],
    ['GET:d.example//a', undefined],
    ['GET:d.example/../', undefined],
    ['GET:d.example/../*', undefined],
    ['GET:d.example/a,b/*', undefined],
    ['GET:d.example/a*', undefined],
    ['GET:d.example/a/b*', undefined],
    ['GET:d.example/abc*', undefined],
    ['GET:d.example/**', undefined],
    ['GET:d.example/a/**', undefined],
    ['GET:d.*/a/*', undefined],
    ['G*T:d.example/a/*', undefined],
    ['GET:*d.example/*', undefined],
    ['GET:d.example/', undefined],
    ['GET:d.example', undefined],
    ['GET:d.example/a?', undefined],
    ['GET:https://d.example/a', undefined],
    ['GET:d.example:443/a', undefined],
    ['GET:d.example./a', undefined],
    [' GET:d.example/a', undefined],
    ['GET:d.example/a ', undefined],
    ['', undefined],
  ])('suggests a repair only if it is safe: %s', (text, expected) => {
    expect(outcome(text)).not.toBe('ok');
    expect(suggestionFor(text)).toBe(expected);
  });

  it.each<[string, string, string, string | undefined]>([
    ['a method of 32', `${'a'.repeat(32)}:`, 'd.example/a', `${'A'.repeat(32)}:d.example/a`],
    ['a method of 33', `${'a'.repeat(33)}:`, 'd.example/a', undefined],
    ['512 and a star', long(512), '/*', long(512)],
    ['513 and a star', long(513), '/*', undefined],
    ['1024 characters with a star', long(1008), '/*', undefined],
    ['1025 characters with a star', long(1009), '/*', undefined],
    ['512 and a slash', long(512), '/', long(512)],
    ['513 and a slash', long(513), '/', undefined],
    [
      '32 segments and a star',
      `GET:d.example/${segments(32)}`,
      '/*',
      `GET:d.example/${segments(32)}`,
    ],
    ['33 segments and a star', `GET:d.example/${segments(33)}`, '/*', undefined],
    [
      '32 segments and a slash',
      `GET:d.example/${segments(32)}`,
      '/',
      `GET:d.example/${segments(32)}`,
    ],
    ['33 segments and a slash', `GET:d.example/${segments(33)}`, '/', undefined],
  ])('suggests a repair only within the limits: %s', (_, text, tail, expected) => {
    expect(suggestionFor(text + tail)).toBe(expected);
  });

  it('keeps unprintable and long text out of its message', () => {
    for (const text of ['GET:d.example/a\n', '\u001b[2J', 'x'.repeat(5000), '\u202e']) {
      const reading = safeParseScope(text);
      expect(reading.ok ? '' : reading.message).toMatch(/^[\x20-\x7e\u2026]{1,500}$/);
    }
  });

  it('agrees with a second implementation of the grammar', () => {
    fc.assert(
      fc.property(nearlyScope, (text) => {
        expect(outcome(text) === 'ok').toBe(isInGrammar(text));
      }),
      runs(5),
    );
  });

  it('suggests only canonical scopes with a real path that are no wider than the text', () => {
    let suggested = 0;
    fc.assert(
      fc.property(nearlyScope, (text) => {
        const suggestion = suggestionFor(text);
        if (suggestion === undefined) return;
        suggested += 1;
        const scope = parseScope(suggestion);
        expect(scope.toString()).toBe(suggestion);
        expect(scope.path).not.toBe('*');
        const plain = text.replace(/\{[\w\-.]+\}/g, '{}').toUpperCase();
        const repaired = suggestion.toUpperCase();
        expect([
          plain,
          plain.replace(/\/\*$/, ''),
          plain.replace(/\/$/, ''),
          plain.replace(/\/\$$/, '$'),
          plain.replace(/(?<=\/)\*(?=\/|\$?$)/g, '{}'),
        ]).toContain(repaired);
        // A repair must neither turn a literal `$` into the closing mark nor lose the mark.
        expect(suggestion.endsWith('$')).toBe(text.endsWith('$'));
      }),
      runs(5),
    );
    expect(suggested).toBeGreaterThan(runs(0.05).numRuns);
  });
});

describe('toScope', () => {
  it('returns a Scope unchanged', () => {
    const scope = parseScope('GET:d.example/a');

    expect(toScope(scope)).toBe(scope);
  });

  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['an array', ['GET:d.example/a']],
    ['a String object', new String('GET:d.example/a')],
    ['an object with toString', { toString: () => 'GET:d.example/a' }],
    ['the fields of a scope', { method: '*', domain: '*', path: '*' }],
  ])('refuses a look-alike: %s', (_, value) => {
    expect(() => toScope(value as Scope)).toThrow(ScopeError);
    expect(() => covers('*:*/*', value as Scope)).toThrow(ScopeError);
    expect(() => covers(value as Scope, 'GET:d.example/a')).toThrow(ScopeError);
  });

  it('accepts a scope from another copy of the module by parsing it again', async () => {
    const other = await anotherCopy();
    const foreign = other.parseScope('GET:d.example/a/b') as unknown as Scope;
    const ours = toScope(foreign);

    expect(foreign.constructor).not.toBe(ours.constructor);
    expect(ours.toString()).toBe('GET:d.example/a/b');
    expect(covers('GET:d.example/a', foreign)).toBe(true);
    expect(covers(foreign, 'GET:d.example/a')).toBe(false);
    expect(String(meet('*:*/*', foreign))).toBe('GET:d.example/a/b');
  });

  it('trusts only the text of a scope from another copy', () => {
    const brand = Symbol.for('tokenwright.Scope');
    const fields = { [brand]: true, method: '*', domain: '*', path: '*' };

    expect(toScope({ ...fields, toString: () => 'GET:d.example/a' } as unknown as Scope)).toEqual(
      parseScope('GET:d.example/a'),
    );
    for (const text of ['get:d.example/a', '', 7, null, ['GET:d.example/a'], {}]) {
      const liar = { ...fields, toString: () => text } as unknown as Scope;
      expect(() => toScope(liar)).toThrow(ScopeError);
    }
    const thrower = {
      ...fields,
      toString: () => {
        throw new Error('no text');
      },
    };
    expect(() => toScope(thrower as unknown as Scope)).toThrow(ScopeError);
  });
});

describe('isScope', () => {
  const scope = parseScope('GET:d.example/a');

  it('is true for its own scopes, and for those of another copy by their brand', async () => {
    const other = await anotherCopy();
    const foreign: unknown = other.parseScope('GET:d.example/a');

    expect([isScope(scope), isScope(foreign)]).toEqual([true, true]);
    expect(Object.getPrototypeOf(foreign)[Symbol.for('tokenwright.Scope')]).toBe(true);
  });

  it.each<[string, unknown]>([
    ['a text', 'GET:d.example/a'],
    ['the empty text', ''],
    ['undefined', undefined],
    ['null', null],
    ['a number', 7],
    ['true', true],
    ['a list of one scope', [scope]],
    ['the fields of a scope', { ...scope }],
    ['a function', () => scope],
  ])('is false for %s', (_, value) => {
    expect(isScope(value)).toBe(false);
  });
});

describe('recallScope', () => {
  it('returns what safeParseScope returns, on the first call and later', () => {
    const texts: unknown[] = ['GET:D.example/a', 'get:d.example/a', '', 7, undefined, null];

    for (const text of [...texts, ...texts]) {
      expect(recallScope(text)).toEqual(safeParseScope(text));
    }
  });

  it.each([
    [0, true],
    [1, true],
    [999, true],
    [1000, false],
  ])('still has the first scope cached after %i others: %s', async (count, isCached) => {
    const fresh = await anotherCopy();
    const first = scopeIn(fresh.recallScope('GET:d.example/a'));
    for (let i = 0; i < count; i++) fresh.recallScope(`GET:d.example/other/${i}`);

    const again = scopeIn(fresh.recallScope('GET:d.example/a'));
    expect(again).toEqual(first);
    expect(again === first).toBe(isCached);
  });

  it('does not evict a scope for texts that do not parse', async () => {
    const fresh = await anotherCopy();
    const first = scopeIn(fresh.recallScope('GET:d.example/a'));
    for (let i = 0; i < 2000; i++) fresh.recallScope(`GET:d.example/other/${i}/`);

    expect(scopeIn(fresh.recallScope('GET:d.example/a'))).toBe(first);
  });

  it.each([
    [256, true],
    [257, false],
    [500, false],
  ])('caches a scope of %i characters: %s', async (length, isCached) => {
    const fresh = await anotherCopy();
    const text = 'GET:d.example/'.padEnd(length, 'a');

    const first = scopeIn(fresh.recallScope(text));
    expect(scopeIn(fresh.recallScope(text)) === first).toBe(isCached);
  });
});

function scopeIn(reading: ScopeReading): Scope {
  if (reading.ok) return reading.scope;
  throw new Error('no scope');
}

describe('isSegment', () => {
  it.each([
    ['a', true],
    ['a.b', true],
    ['...a', true],
    [':id', true],
    ['$', true],
    ['a$', true],
    ['{}', false],
    ['{id}', false],
    ['', false],
    ['.', false],
    ['..', false],
    ['...', false],
    ['a/b', false],
    ['/', false],
    ['*', false],
    ['a b', false],
    ['a%20', false],
  ])('accepts %j: %s', (text, isAccepted) => {
    expect(isSegment(text)).toBe(isAccepted);
  });
});

async function anotherCopy(): Promise<typeof import('../../src/scope/grammar.ts')> {
  vi.resetModules();
  return import('../../src/scope/grammar.ts');
}

/** The ABNF of the grammar, implemented a second time in another way. */
function isInGrammar(text: string): boolean {
  const match = /^(\*|[A-Z](?:[A-Z-]{0,30}[A-Z])?):([^/]+)\/([^\n]+)$/.exec(text);
  if (match === null || text.length > 1024) return false;
  const [, , domain = '', path = ''] = match;
  return isDomain(domain) && (path === '*' || path === '$' || isPath(path));
}

function isDomain(domain: string): boolean {
  if (domain === '*') return true;
  const host = domain.replace(/^\*\./, '');
  const labels = host.split('.');
  return (
    host.length <= (host === domain ? 253 : 251) &&
    labels.every((label) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i.test(label)) &&
    !/^(\d+|0x[\da-f]*)$/i.test(labels.at(-1) ?? '')
  );
}

function isPath(path: string): boolean {
  const all = path.replace(/\$$/, '').split('/');
  const named = all.filter((one) => /^\{[A-Za-z\d\-._]{0,64}\}$/.test(one));
  const literal = all.filter((one) => /^[\w\-.~!$&'()+=:@]+$/.test(one) && !/^\.+$/.test(one));
  return (
    path.length <= 512 &&
    all.length <= 32 &&
    named.length <= 8 &&
    named.length + literal.length === all.length
  );
}

/** Scopes with a few characters inserted, removed or replaced. */
const nearlyScope: fc.Arbitrary<string> = fc
  .tuple(
    anyScope,
    fc.array(
      fc.tuple(
        fc.nat(40),
        fc.nat(1),
        fc.oneof(
          fc.constantFrom('*', '/', '.', ':', '-', '/*', '*.', '@', '%', '0', '1', 'x', 'g', '_'),
          fc.constantFrom('$', '/$', '{}', '{', '}', '{a}', '/{}', '/*/', '$/'),
          fc.constantFrom('', '', 'A', '?', ' ', '\n', ';', ',', '\u00e9'),
          fc.string({ maxLength: 2 }),
        ),
      ),
      { maxLength: 2 },
    ),
    fc.constantFrom('', '', '', '/', '/*', '/$', '$/', '/*$', '/*/a'),
    fc.integer({ min: 0, max: 5 }),
  )
  .map(([text, edits, tail, lower]) => {
    const edited = edits.reduce((current, [position, removed, inserted]) => {
      const at = Math.min(position, current.length);
      return current.slice(0, at) + inserted + current.slice(at + removed);
    }, text + tail);
    return lower === 0 ? edited.toLowerCase() : edited;
  });

describe('a refusal', () => {
  it.each<[string, string, boolean]>([
    ['a short text', 'get:d.example/a', true],
    ['a space and a tilde', 'GET:d.example/a ~', true],
    ['200 characters', `get:d.example/${'a'.repeat(186)}`, true],
    ['201 characters', `get:d.example/${'a'.repeat(187)}`, false],
    ['a control character', 'get:d.example/a\u001f', false],
    ['a delete character', 'get:d.example/a\u007f', false],
    ['another script', 'get:d.example/ä', false],
  ])('quotes %s in its message: $2', (_, text, isShown) => {
    const reading = safeParseScope(text);
    const message = reading.ok ? '' : reading.message;

    expect(message.startsWith(`"${text}" is not a scope: `)).toBe(isShown);
    expect(message.includes(' is not a scope')).toBe(isShown);
    expect(isShown || /^(?:a|it|the) [a-z]/.test(message)).toBe(true);
  });

  it('has a suggestion field only if there is a suggestion', () => {
    const errorOf = (text: string): unknown => {
      try {
        return parseScope(text);
      } catch (error) {
        return error;
      }
    };

    expect(errorOf('get:d.example/a')).toMatchObject({ suggestion: 'GET:d.example/a' });
    expect('suggestion' in (errorOf('GET:d_.example/a') as object)).toBe(false);
    expect('suggestion' in safeParseScope('GET:d_.example/a')).toBe(false);
  });
});
