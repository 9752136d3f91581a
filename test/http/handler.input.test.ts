import { describe, expect, it } from 'vitest';
import {
  CANARY,
  type CallOptions,
  type Code,
  expectFailure,
  expectHeaders,
  expectSuccess,
  ONE_YEAR,
  ORDERS,
  START,
  setUp,
  toRequest,
} from './support.ts';

const MIB = 1_048_576;
const SCOPES = [ORDERS];
const VALID = JSON.stringify({ scopes: SCOPES });
const LONE = '\ud800';

type Case = [what: string, json: unknown, code: Code];

/** Invalid scopes for any body that holds scopes. No answer may echo the canary in them. */
const BAD_SCOPES: Case[] = [
  ['null', null, 'scopes_required'],
  ['a text', ORDERS, 'scopes_required'],
  ['a text with a comma', `${ORDERS},${CANARY}`, 'scopes_required'],
  ['a number', 7, 'scopes_required'],
  ['true', true, 'scopes_required'],
  ['an empty list', [], 'scopes_required'],
  ['an object', { 0: ORDERS, length: 1 }, 'scopes_required'],
  ['a list with a number', [7], 'invalid_scope'],
  ['a list with null', [null], 'invalid_scope'],
  ['a list with true', [true], 'invalid_scope'],
  ['a list with a list', [[ORDERS]], 'invalid_scope'],
  ['a list with an object', [{ scope: CANARY }], 'invalid_scope'],
  [
    'a list with an object that looks like a scope',
    [{ method: 'GET', domain: 'shop.example', path: CANARY, toString: ORDERS }],
    'invalid_scope',
  ],
  ['a list with an empty text', [''], 'invalid_scope'],
  ['a good scope and a bad one', [ORDERS, 1], 'invalid_scope'],
  ['a scope with a line break', [`${ORDERS}\n${CANARY}`], 'invalid_scope'],
  ['a scope with a NUL', [`${ORDERS}\u0000${CANARY}`], 'invalid_scope'],
  ['a scope with an umlaut', [`GET:shop.example/${CANARY}ä`], 'invalid_scope'],
  ['a scope with a lone surrogate', [`GET:shop.example/${CANARY}${LONE}`], 'invalid_scope'],
  [
    'a scope with a bidirectional control character',
    [`GET:shop.example/${CANARY}\u202e`],
    'invalid_scope',
  ],
  ['a scope with an emoji', [`GET:shop.example/${CANARY}😀`], 'invalid_scope'],
  ['a scope of 1025 characters', [`${CANARY}${'x'.repeat(1018)}`], 'invalid_scope'],
  ['a scope of 105,000 characters', [CANARY.repeat(15_000)], 'invalid_scope'],
  ['a scope without a method', ['shop.example/orders'], 'invalid_scope'],
  ['a scope in lower case', ['get:shop.example/orders'], 'invalid_scope'],
  ['a scope with a port', ['GET:shop.example:80/orders'], 'invalid_scope'],
  ['a scope with a query', ['GET:shop.example/orders?x=1'], 'invalid_scope'],
  ['a scope with a dot segment', ['GET:shop.example/../orders'], 'invalid_scope'],
  ['a scope with a percent-encoded character', ['GET:shop.example/%6frders'], 'invalid_scope'],
  ['a scope with a trailing slash', ['GET:shop.example/orders/'], 'invalid_scope'],
  ['a scope with a leading space', [` ${ORDERS}`], 'invalid_scope'],
  ['an unknown scope', ['GET:shop.example/unknown'], 'scope_unmatched'],
  ['a good scope and an unknown one', [ORDERS, 'GET:evil.example/*'], 'scope_unmatched'],
  ['a wildcard that matches nothing', ['DELETE:*/*'], 'scope_unmatched'],
  ['4097 scopes', Array(4097).fill(ORDERS), 'too_many_scopes'],
  ['a hundred thousand nulls', Array(100_000).fill(null), 'too_many_scopes'],
];

const BAD_NAMES: [what: string, name: unknown][] = [
  ['an empty text', ''],
  ['201 characters', CANARY.padEnd(201, 'x')],
  ['a control character', `${CANARY}\u0000`],
  ['a line break', `${CANARY}\n`],
  ['a C1 control character', `${CANARY}\u0085`],
  ['a lone surrogate', `${CANARY}${LONE}`],
  ['a number', 7],
  ['true', true],
  ['a list', [CANARY]],
  ['an object', { toString: CANARY }],
];

const BAD_METADATA: [what: string, metadata: unknown][] = [
  ['a text', CANARY],
  ['a number', 1],
  ['true', true],
  ['a list', [{ a: CANARY }]],
  ['4097 bytes', { a: CANARY.padEnd(4097 - '{"a":""}'.length, 'x') }],
  ['more bytes than characters', { a: 'ä'.repeat(2100), b: CANARY }],
  ['a mebibyte', { a: 'x'.repeat(1_000_000) }],
];

const BAD_TTLS: [what: string, ttl: unknown][] = [
  ['0', 0],
  ['-1', -1],
  ['a half', 0.5],
  ['one and a half', 1.5],
  ['a second too long', ONE_YEAR + 1],
  ['milliseconds', 3_600_000_000],
  ['2 to the 31', 2 ** 31],
  ['2 to the 53', 2 ** 53],
  ['1e300', 1e300],
  ['null', null],
  ['true', true],
  ['a text', '3600'],
  ['an empty text', ''],
  ['a word', CANARY],
  ['a list', [3600]],
  ['an object', { seconds: 3600, note: CANARY }],
];

const BAD_EXPIRIES: [what: string, expire: unknown][] = [
  ['0', 0],
  ['-1', -1],
  ['1970', 1],
  ['now', START],
  ['a second ago', START - 1],
  ['a half', START + 0.5],
  ['a second too late', START + ONE_YEAR + 1],
  ['milliseconds', (START + 60) * 1000],
  ['microseconds', (START + 60) * 1_000_000],
  ['past the last date', 8_640_000_000_001],
  ['2 to the 53, less one', 2 ** 53 - 1],
  ['2 to the 53', 2 ** 53],
  ['1e300', 1e300],
  ['-1e300', -1e300],
  ['null', null],
  ['true', true],
  ['a text', String(START + 60)],
  ['a date', '2100-06-01'],
  ['a date-time without a zone', '2100-06-01T12:00:00'],
  ['a date-time in the past', '2099-12-31T23:59:59Z'],
  ['a date-time that is too late', '2102-01-01T00:00:00Z'],
  ['a date that does not exist', '2100-02-30T12:00:00Z'],
  ['an hour that does not exist', '2100-06-01T24:00:00Z'],
  ['a zone that does not exist', '2100-06-01T12:00:00+25:00'],
  ['a zone name', '2100-06-01T12:00:00 Europe/Berlin'],
  ['a space in the middle', '2100-06-01 12:00:00Z'],
  ['a trailing space', '2100-06-01T12:00:00Z '],
  ['the year 9999', '9999-12-31T23:59:59Z'],
  ['the year 10000', '10000-01-01T00:00:00Z'],
  ['the year 10000 with a sign', '+010000-01-01T00:00:00Z'],
  ['a duration', '30d'],
  ['a word', CANARY],
  ['a list', [START + 60]],
  ['an object', { at: CANARY }],
];

/** The invalid expiries that are texts: a number fails with another code in a create body. */
const BAD_TIMES = BAD_EXPIRIES.filter(([, expire]) => typeof expire === 'string');

const BAD_DURATIONS: [what: string, expiresIn: unknown][] = [
  ['0', 0],
  ['0 days', '0d'],
  ['-1', -1],
  ['a half', 0.5],
  ['one and a half days', '1.5d'],
  ['a second too long', ONE_YEAR + 1],
  ['a day too long', '366d'],
  ['the longest text', '999999999d'],
  ['1e300', 1e300],
  ['no unit', '30'],
  ['an unknown unit', '2w'],
  ['a unit in upper case', '30D'],
  ['two units', '1d12h'],
  ['words', '30 days'],
  ['a leading space', ' 30d'],
  ['an ISO 8601 duration', 'P30D'],
  ['a date-time', '2100-06-01T12:00:00Z'],
  ['ten digits', '0000000030d'],
  ['an empty text', ''],
  ['a word', CANARY],
  ['null', null],
  ['true', true],
  ['a list', ['30d']],
  ['an object', { days: 30, note: CANARY }],
];

const BAD_GRACES: [what: string, graceSeconds: unknown][] = [
  ['-1', -1],
  ['a half', 0.5],
  ['more than a year', ONE_YEAR + 1],
  ['1e300', 1e300],
  ['null', null],
  ['a text', '60'],
  ['a word', CANARY],
  ['a list', [60]],
];

/** Bodies that every call refuses. */
const BAD_BODIES: Case[] = [
  ['null', null, 'invalid_request'],
  ['true', true, 'invalid_request'],
  ['a number', 1, 'invalid_request'],
  ['a text', CANARY, 'invalid_request'],
  ['a list', [VALID], 'invalid_request'],
  ['a list of scopes', SCOPES, 'invalid_request'],
  ['an unknown member', { scopes: SCOPES, [CANARY.repeat(5)]: CANARY }, 'invalid_request'],
  ['a member in another case', { Scopes: SCOPES }, 'invalid_request'],
  ['an account', { scopes: SCOPES, account: 'bob' }, 'invalid_request'],
  ['an owner', { scopes: SCOPES, owner: 'bob' }, 'invalid_request'],
  ['an id', { scopes: SCOPES, id: '0'.repeat(22) }, 'invalid_request'],
  ['a value', { scopes: SCOPES, token: CANARY }, 'invalid_request'],
  ['a version', { scopes: SCOPES, version: 1 }, 'invalid_request'],
  ['ttlSeconds', { scopes: SCOPES, ttlSeconds: 60 }, 'invalid_request'],
  ['expiresAt', { scopes: SCOPES, expiresAt: START + 60 }, 'invalid_request'],
  ['ifVersion', { scopes: SCOPES, ifVersion: 1 }, 'invalid_request'],
  ['dryRun', { scopes: SCOPES, dryRun: true }, 'invalid_request'],
  ['constructor', { scopes: SCOPES, constructor: 1 }, 'invalid_request'],
  ['prototype', { scopes: SCOPES, prototype: { ttl: 1 } }, 'invalid_request'],
  ['toString', { scopes: SCOPES, toString: 1 }, 'invalid_request'],
  ['an empty member name', { scopes: SCOPES, '': 1 }, 'invalid_request'],
  ['a lone surrogate as a member name', { scopes: SCOPES, [LONE]: 1 }, 'invalid_request'],
  ['a very long member name', { scopes: SCOPES, [CANARY.repeat(10_000)]: 1 }, 'invalid_request'],
];

/** Invalid bodies that have to be sent as raw text. */
const BAD_JSON: [what: string, raw: string | Uint8Array<ArrayBuffer>, code: Code][] = [
  ['white space', ' \n\t', 'invalid_json'],
  ['a single brace', '{', 'invalid_json'],
  ['a word', CANARY, 'invalid_json'],
  ['undefined', 'undefined', 'invalid_json'],
  ['NaN', 'NaN', 'invalid_json'],
  ['NaN inside', `{"scopes":["${ORDERS}"],"ttl":NaN}`, 'invalid_json'],
  ['Infinity inside', `{"scopes":["${ORDERS}"],"ttl":Infinity}`, 'invalid_json'],
  ['a hexadecimal number', `{"scopes":["${ORDERS}"],"ttl":0x10}`, 'invalid_json'],
  ['a number with a plus', `{"scopes":["${ORDERS}"],"ttl":+1}`, 'invalid_json'],
  ['single quotes', `{'scopes':['${CANARY}']}`, 'invalid_json'],
  ['member names without quotes', `{scopes:["${CANARY}"]}`, 'invalid_json'],
  ['a trailing comma', `{"scopes":["${ORDERS}"],}`, 'invalid_json'],
  ['a comment', `${VALID}//${CANARY}`, 'invalid_json'],
  ['two values', VALID + VALID, 'invalid_json'],
  ['trailing text', `${VALID}${CANARY}`, 'invalid_json'],
  ['a line break in a text', `{"name":"${CANARY}\n"}`, 'invalid_json'],
  ['a trailing NUL', `${VALID}\u0000`, 'invalid_json'],
  ['a form', `scopes=${CANARY}&ttl=60`, 'invalid_json'],
  ['XML', `<scopes>${CANARY}</scopes>`, 'invalid_json'],
  ['invalid UTF-8', Uint8Array.of(0x22, 0xff, 0x22), 'invalid_json'],
  ['a truncated character', Uint8Array.of(0x22, 0xe2, 0x82, 0x22), 'invalid_json'],
  ['an encoded surrogate', Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22), 'invalid_json'],
  ['an overlong character', Uint8Array.of(0x22, 0xc0, 0xaf, 0x22), 'invalid_json'],
  ['UTF-16', new Uint8Array(Buffer.from(VALID, 'utf16le')), 'invalid_json'],
  ['two BOMs', `\ufeff\ufeff${VALID}`, 'invalid_json'],
  ['a mebibyte of brackets', '['.repeat(MIB), 'invalid_json'],
  ['a mebibyte of balanced brackets', '['.repeat(MIB / 2) + ']'.repeat(MIB / 2), 'invalid_request'],
  ['deep objects', '{"a":'.repeat(150_000), 'invalid_json'],
  ['a deep scope', `{"scopes":[${'['.repeat(400_000)}${']'.repeat(400_000)}]}`, 'invalid_scope'],
  [
    'deep metadata',
    `{"metadata":{"a":${'['.repeat(400_000)}${']'.repeat(400_000)}}}`,
    'invalid_request',
  ],
  ['a deep name', `{"name":${'['.repeat(400_000)}${']'.repeat(400_000)}}`, 'invalid_request'],
  ['a number of 300,000 digits', `{"name":${'9'.repeat(300_000)}}`, 'invalid_request'],
  ['1e999', `{"name":1e999}`, 'invalid_request'],
  ['__proto__', `{"__proto__":{"scopes":["${ORDERS}"]}}`, 'invalid_request'],
  [
    '__proto__ beside valid members',
    `{"scopes":["${ORDERS}"],"__proto__":null}`,
    'invalid_request',
  ],
  ['an escaped __proto__', `{"\\u005f_proto__":{"ttl":1}}`, 'invalid_request'],
];

/** Headers that make the service refuse an otherwise valid body. */
const BAD_HEADERS: [what: string, headers: Record<string, string>][] = [
  ['an empty content type', { 'content-type': '' }],
  ['text/csv', { 'content-type': 'text/csv' }],
  ['multipart', { 'content-type': 'multipart/mixed; boundary=x' }],
  ['text/json', { 'content-type': 'text/json' }],
  ['a +json suffix', { 'content-type': 'application/vnd.api+json' }],
  ['application/json5', { 'content-type': 'application/json5' }],
  ['a type that starts with application/json', { 'content-type': 'application/jsonp' }],
  ['a space in the type', { 'content-type': 'application/ json' }],
  ['a second type', { 'content-type': 'application/json, text/csv' }],
  ['the type twice', { 'content-type': 'application/json, application/json' }],
  ['another type first', { 'content-type': `text/csv; x="application/json"; y=${CANARY}` }],
  ['any type', { 'content-type': '*/*' }],
  ['Latin-1', { 'content-type': 'application/json; charset=iso-8859-1' }],
  ['UTF-16', { 'content-type': 'application/json;charset=utf-16' }],
  ['UTF-7', { 'content-type': 'application/json; charset="utf-7"' }],
  ['an unknown charset', { 'content-type': `application/json; charset=${CANARY}` }],
  ['an empty charset', { 'content-type': 'application/json; charset=' }],
  ['gzip', { 'content-encoding': 'gzip' }],
  ['br', { 'content-encoding': 'br' }],
  ['an unknown encoding', { 'content-encoding': CANARY }],
];

const CREATE: [string, string] = ['POST', '/token'];

/** Every invalid body, with the calls that refuse it. */
const REFUSED: [method: string, path: string, what: string, options: CallOptions, Code][] = [
  ...BAD_SCOPES.flatMap(([what, scopes, code]) => [
    refused(CREATE, `scopes: ${what}`, { scopes }, code),
    refused(['PUT', '/token/ID'], `scopes: ${what}`, { scopes }, code),
    refused(['PATCH', '/token/ID'], `scopes: ${what}`, { scopes }, code),
    refused(['PATCH', '/token/ID'], `addScopes: ${what}`, { addScopes: scopes }, code),
    refused(['PATCH', '/token/ID'], `removeScopes: ${what}`, { removeScopes: scopes }, code),
  ]),
  refused(CREATE, 'no scopes', {}, 'scopes_required'),
  refused(CREATE, 'no scopes but a ttl', { ttl: 60 }, 'scopes_required'),
  refused(['PUT', '/token/ID'], 'no scopes', { expire: START + 60 }, 'scopes_required'),
  ...[...BAD_NAMES, ['null', null] as const].map(([what, name]) =>
    refused(CREATE, `name: ${what}`, { scopes: SCOPES, name }, 'invalid_request'),
  ),
  ...[...BAD_METADATA, ['null', null] as const].map(([what, metadata]) =>
    refused(CREATE, `metadata: ${what}`, { scopes: SCOPES, metadata }, 'invalid_request'),
  ),
  ...BAD_NAMES.map(([what, name]) =>
    refused(['PATCH', '/token/ID'], `name: ${what}`, { name }, 'invalid_request'),
  ),
  ...BAD_METADATA.map(([what, metadata]) =>
    refused(['PATCH', '/token/ID'], `metadata: ${what}`, { metadata }, 'invalid_request'),
  ),
  ...BAD_TTLS.map(([what, ttl]) =>
    refused(CREATE, `ttl: ${what}`, { scopes: SCOPES, ttl }, 'invalid_ttl'),
  ),
  ...BAD_EXPIRIES.flatMap(([what, expire]) => [
    refused(['PUT', '/token/ID'], `expire: ${what}`, { scopes: SCOPES, expire }, 'invalid_expire'),
    refused(['PATCH', '/token/ID'], `expire: ${what}`, { expire }, 'invalid_expire'),
  ]),
  ...BAD_TIMES.map(([what, expire]) =>
    refused(CREATE, `expire: ${what}`, { scopes: SCOPES, expire }, 'invalid_expire'),
  ),
  ...BAD_DURATIONS.flatMap(([what, expiresIn]) => [
    refused(CREATE, `expiresIn: ${what}`, { scopes: SCOPES, expiresIn }, 'invalid_ttl'),
    refused(
      ['PUT', '/token/ID'],
      `expiresIn: ${what}`,
      { scopes: SCOPES, expiresIn },
      'invalid_ttl',
    ),
    refused(['PATCH', '/token/ID'], `expiresIn: ${what}`, { expiresIn }, 'invalid_ttl'),
  ]),
  ...BAD_GRACES.map(([what, graceSeconds]) =>
    refused(
      ['POST', '/token/ID/rotate'],
      `graceSeconds: ${what}`,
      { graceSeconds },
      'invalid_request',
    ),
  ),
  ...BAD_BODIES.flatMap(([what, json, code]) => [
    refused(CREATE, what, json, code),
    refused(['PUT', '/token/ID'], what, json, code),
    refused(['PATCH', '/token/ID'], what, json, code),
    refused(['POST', '/token/ID/rotate'], what, json, code),
  ]),
];

function refused(
  [method, path]: [string, string],
  what: string,
  json: unknown,
  code: Code,
): (typeof REFUSED)[number] {
  return [method, path, what, { json }, code];
}

describe('a request body', () => {
  it('is tested in more than 300 invalid variants', () => {
    expect(REFUSED.length + BAD_JSON.length + BAD_HEADERS.length).toBeGreaterThan(300);
  });

  it.each(REFUSED)('is refused by %s %s: %s', async (method, path, _, options, code) => {
    const { call, issue, tokens } = setUp();
    const { id } = await issue();

    expectFailure(await call(method, path.replace('ID', id), options), code);

    expect((await tokens.list({ account: 'ada' })).tokens).toMatchObject([{ id, version: 1 }]);
  });

  it.each(BAD_JSON)('is refused as raw text: %s', async (_, raw, code) => {
    const { call, tokens } = setUp({ maxBodyBytes: 2 * MIB });

    expectFailure(await call('POST', '/token', { raw }), code);

    expect((await tokens.list({ account: 'ada' })).tokens).toEqual([]);
  });

  it.each(BAD_HEADERS)('is refused because of its headers: %s', async (_, headers) => {
    const { call, tokens } = setUp();

    const answer = await call('POST', '/token', { raw: VALID, headers });

    expectFailure(answer, 'unsupported_media_type');
    expect(answer.body['message']).toContain('Content-Type: application/json');
    expect((await tokens.list({ account: 'ada' })).tokens).toEqual([]);
  });

  it.each(['POST /token', 'PUT /token/ID', 'PATCH /token/ID'])(
    'is required by %s',
    async (target) => {
      const { call, issue } = setUp();
      const { id } = await issue();
      const [method = '', path = ''] = target.replace('ID', id).split(' ');

      expectFailure(await call(method, path), 'invalid_json');
      expectFailure(await call(method, path, { raw: '' }), 'invalid_json');
    },
  );
});

describe('a valid request body', () => {
  it.each([
    'application/json',
    'Application/JSON',
    'application/json;charset=utf-8',
    'application/json; charset=UTF-8',
    'application/json; charset="utf-8"',
    'application/json ; charset=utf-8',
    'application/json; version=1',
    'application/json;',
  ])('is accepted as %s', async (type) => {
    const { call } = setUp();

    const answer = await call('POST', '/token', { raw: VALID, headers: { 'content-type': type } });

    expect(answer.status).toBe(200);
  });

  it.each<[string, string]>([
    ['white space around it', ` \r\n\t${VALID}\n`],
    ['a BOM', `\ufeff${VALID}`],
    ['escapes', `{"\\u0073copes":["GET:shop.example\\/orders"]}`],
    ['a repeated scope', JSON.stringify({ scopes: [ORDERS, ORDERS, 'GET:SHOP.example/orders'] })],
    ['a repeated member (the last one counts)', `{"scopes":["x"],"scopes":["${ORDERS}"]}`],
    ['a lifetime with an exponent', `{"scopes":["${ORDERS}"],"ttl":6e1}`],
    ['a lifetime with a zero fraction', `{"scopes":["${ORDERS}"],"ttl":60.0}`],
    ['4096 scopes', JSON.stringify({ scopes: Array(4096).fill(ORDERS) })],
  ])('is accepted with %s', async (_, raw) => {
    const { call } = setUp();

    const answer = await call('POST', '/token', { raw });

    expect(answer.body).toMatchObject({ success: true, scopes: SCOPES });
  });

  it.each<[string, unknown]>([
    ['a name of one character', { name: 'x' }],
    ['a name of 200 characters', { name: 'x'.repeat(200) }],
    ['a name in any script', { name: '名前 😀 <b>' }],
    ['empty metadata', { metadata: {} }],
    ['4096 bytes of metadata', { metadata: { a: 'x'.repeat(4096 - '{"a":""}'.length) } }],
    ['deep metadata', { metadata: JSON.parse(`${'{"a":'.repeat(500)}1${'}'.repeat(500)}`) }],
    [
      'metadata with any member names',
      { metadata: { constructor: 1, toString: null, '': [], ä: LONE } },
    ],
    ['metadata with __proto__', { metadata: JSON.parse('{"__proto__":{"x":1},"y":2}') }],
    ['a lifetime of a second', { ttl: 1 }],
    ['a lifetime of a year', { ttl: ONE_YEAR }],
  ])('is accepted and stored with %s', async (_, members) => {
    const { call } = setUp();
    const { ttl, ...kept } = members as { ttl?: number };

    const created = await call('POST', '/token', { json: { scopes: SCOPES, ...kept, ttl } });
    const shown = await call('GET', `/token/${created.body['id']}`);

    expect(created.status).toBe(200);
    const [token] = shown.body['data'] as Record<string, unknown>[];
    expect(token).toMatchObject({ expire: START + (ttl ?? ONE_YEAR) });
    const { name, metadata } = token ?? {};
    expect(JSON.stringify({ name, metadata })).toBe(
      JSON.stringify({ name: undefined, metadata: undefined, ...kept }),
    );
    expect(Object.prototype).not.toHaveProperty('x');
  });
});

describe('the body size limit', () => {
  const maxBodyBytes = 1000;
  const padded = (bytes: number) => VALID.padEnd(bytes, ' ');

  it.each<[string, number, boolean]>([
    ['one byte less', 999, true],
    ['exactly the limit', 1000, true],
    ['one byte more', 1001, false],
    ['much more', 1_000_000, false],
  ])('applies to %s: %i bytes, accepted: %s', async (_, bytes, isAccepted) => {
    const { call } = setUp({ maxBodyBytes });
    const inOne = { raw: padded(bytes) };
    const inMany = { raw: chunked(padded(bytes), 7) };

    for (const options of [inOne, inMany]) {
      const answer = await call('POST', '/token', options);
      if (isAccepted) expect(answer.status).toBe(200);
      else expectFailure(answer, 'payload_too_large');
    }
  });

  it('is one mebibyte by default', async () => {
    const { call } = setUp();

    expect(await call('POST', '/token', { raw: padded(MIB) })).toMatchObject({ status: 200 });
    expectFailure(await call('POST', '/token', { raw: padded(MIB + 1) }), 'payload_too_large');
  });

  it('counts bytes, not characters', async () => {
    const { call } = setUp({ maxBodyBytes });
    const json = { scopes: SCOPES, name: 'ä'.repeat(100), metadata: { a: 'ä'.repeat(400) } };
    expect(JSON.stringify(json).length).toBeLessThan(1000);

    expectFailure(await call('POST', '/token', { json }), 'payload_too_large');
  });

  it.each([
    ['1001', 'payload_too_large'],
    ['99999999999999999999', 'payload_too_large'],
    ['1e9', 'payload_too_large'],
    ['1000', undefined],
    ['1', undefined],
    ['0', undefined],
    ['-1', undefined],
    [CANARY, undefined],
  ] as const)('applies to declared and actual length: Content-Length %s', async (length, code) => {
    const { call } = setUp({ maxBodyBytes });
    const headers = { 'content-length': length };
    const understated = { raw: chunked(padded(5000), 100), headers };

    const answer = await call('POST', '/token', { raw: VALID, headers });

    if (code === undefined) expect(answer.status).toBe(200);
    else expectFailure(answer, code);
    expectFailure(await call('POST', '/token', understated), 'payload_too_large');
  });

  it.each([
    ['of JSON', 'application/json', 'payload_too_large', 1001],
    ['of another type', 'text/csv', 'unsupported_media_type', 1],
  ] as const)('stops reading an endless body %s', async (_, type, code, most) => {
    const { call } = setUp({ maxBodyBytes });
    const chunk = Buffer.alloc(100, ' ');
    let given = 0;
    let isStopped = false;
    const raw = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          given += chunk.length;
          // The stream ends at some point, so a reader that never stops fails instead of hanging.
          if (given > 100_000) controller.close();
          else controller.enqueue(chunk);
        },
        cancel() {
          isStopped = true;
        },
      },
      { highWaterMark: 0 },
    );

    expectFailure(await call('POST', '/token', { raw, headers: { 'content-type': type } }), code);

    expect(isStopped).toBe(true);
    expect(given).toBeLessThan(most + 2 * chunk.length);
  });

  it.each<[string, string, CallOptions]>([
    ['the path does not exist', '/nowhere', {}],
    ['there are no credentials', '/token', { as: null }],
    ['the method is not allowed', '/scopes', {}],
    ['the call is cross-site', '/token', { headers: { 'sec-fetch-site': 'cross-site' } }],
  ])('leaves the body unread when %s', async (_, path, options) => {
    const { call } = setUp();
    let isRead = false;
    const raw = new ReadableStream<Uint8Array>(
      {
        pull() {
          isRead = true;
        },
      },
      { highWaterMark: 0 },
    );

    const answer = await call('POST', path, { raw, ...options });

    expect(answer.body['success']).toBe(false);
    expect(isRead).toBe(false);
  });
});

describe('a streamed body', () => {
  it.each<[string, (controller: ReadableStreamDefaultController) => void]>([
    ['fails with an error', (controller) => controller.error(new Error(CANARY))],
    ['fails with undefined', (controller) => controller.error(undefined)],
    ['yields a number', (controller) => controller.enqueue(7)],
    ['yields null', (controller) => controller.enqueue(null)],
  ])('is refused as invalid JSON when it %s', async (_, breakOff) => {
    const { send } = setUp();
    const raw = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from('{"scopes":'));
      },
      pull: breakOff,
    });

    expectFailure(await send(toRequest('POST', '/token', { raw })), 'invalid_json');
  });

  it('is joined correctly when a chunk ends inside a character', async () => {
    const { call } = setUp();
    const raw = chunked(JSON.stringify({ scopes: SCOPES, name: 'ä😀' }), 1);

    expect((await call('POST', '/token', { raw })).body).toMatchObject({ name: 'ä😀' });
  });

  it('is measured even when it yields text', async () => {
    const { call } = setUp({ maxBodyBytes: 1000 });
    const texts = (count: number) =>
      new ReadableStream({
        start(controller) {
          controller.enqueue(VALID);
          for (let index = 0; index < count; index++) controller.enqueue(' '.repeat(100));
          controller.close();
        },
      });

    expect(await call('POST', '/token', { raw: texts(3) })).toMatchObject({ status: 200 });
    expectFailure(await call('POST', '/token', { raw: texts(30) }), 'payload_too_large');
  });
});

describe('an error message', () => {
  const ttl = 'ttl must be a whole number of seconds from 1 to 31536000';
  const expire = 'expire must be later than now, and at most 365 days from now';
  const year = { min: 1, max: ONE_YEAR };
  const zero =
    'leave it out for the default lifetime; with --accept-legacy-body (acceptLegacyBody) the service reads 0 as that';
  const tooLong = 'ttl may be at most 365 days (31536000 s); you asked for 900 days';

  it.each<[call: string, json: unknown, message: string, details: object | undefined]>([
    [
      'POST /token',
      { scopes: SCOPES, ttl: '30d' },
      `${ttl}; got the text "30d": give 2592000`,
      { member: 'ttl', ...year },
    ],
    [
      'POST /token',
      { scopes: SCOPES, ttl: '3600' },
      `${ttl}; got the text "3600": give the number 3600 without quotes`,
      { member: 'ttl', ...year },
    ],
    ['POST /token', { scopes: SCOPES, ttl: 900 * 86_400 }, tooLong, { member: 'ttl', ...year }],
    [
      'POST /token',
      { scopes: SCOPES, ttl: 0 },
      `${ttl}; got 0: ${zero}`,
      { member: 'ttl', ...year },
    ],
    ['POST /token', { scopes: SCOPES, ttl: -1 }, `${ttl}; got -1`, { member: 'ttl', ...year }],
    [
      'PATCH /token/ID',
      { expire: 60 },
      `${expire}; got 1970-01-01T00:01:00Z (60 in UNIX seconds)`,
      { member: 'expire', max: START + ONE_YEAR },
    ],
    [
      'PUT /token/ID',
      { scopes: SCOPES, expire: '2100-06-01' },
      'expire must be a whole number of UNIX seconds, or a date-time with its zone, such as "2027-01-31T12:00:00Z"; got the text "2100-06-01"',
      { member: 'expire' },
    ],
    [
      'PUT /token/ID',
      { scopes: SCOPES, ttl: 60 },
      'ttl cannot be given here; the expiry of an existing token is expire, or expiresIn such as "30d"',
      { member: 'ttl' },
    ],
    [
      'POST /token',
      { scopes: SCOPES, expire: START + 60 },
      'expire cannot be a number here: give ttl in seconds, expiresIn such as "30d", or a date-time such as "2027-01-31T12:00:00Z"',
      { member: 'expire' },
    ],
    [
      'PATCH /token/ID',
      { removeScopes: 'x' },
      'removeScopes: a list of scopes is required, as ["GET:shop.example/orders"]; got a text: put it into a list',
      { member: 'removeScopes' },
    ],
    [
      'POST /token',
      { scopes: SCOPES, ttlSeconds: 60 },
      'unknown member "ttlSeconds"; did you mean ttl? (known: scopes, ttl, expiresIn, expire, name, metadata, limits, purpose)',
      undefined,
    ],
    [
      'POST /token',
      [],
      'the body must be an object { scopes, ttl, expiresIn, expire, name, metadata, limits, purpose }; got an empty list',
      undefined,
    ],
    [
      'POST /token/ID/rotate',
      { graceSeconds: 400 * 86_400 },
      'graceSeconds may be at most 365 days (31536000 s); you asked for 400 days',
      { member: 'graceSeconds', min: 0, max: ONE_YEAR },
    ],
    [
      'GET /token?limti=2',
      undefined,
      'unknown query parameter "limti"; did you mean limit?',
      { member: 'limit' },
    ],
    [
      'GET /token?limit=x',
      undefined,
      'the query parameter limit must be a whole number from 1 to 100',
      { member: 'limit' },
    ],
    [
      'GET /token?match=x',
      undefined,
      'the query parameter match must be "overlaps", "covers" or "exact"; got a text',
      { member: 'match' },
    ],
    [
      'GET /token?scope=zzz',
      undefined,
      expect.stringMatching(/^the query parameter scope: "zzz" is not a scope: /),
      { member: 'scope' },
    ],
    [
      'GET /token?cursor=x',
      undefined,
      expect.stringMatching(/^the query parameter cursor must be one that an earlier page gave/),
      { member: 'cursor' },
    ],
  ])('for %s with %j is: %s', async (target, json, message, details) => {
    const { call, issue } = setUp();
    const { id } = await issue();
    const [method = '', path = ''] = target.replace('ID', id).split(' ');

    const { body, status } = await call(method, path, { ...(json !== undefined && { json }) });

    expect(status).toBeGreaterThanOrEqual(400);
    expect(body['message']).toEqual(message);
    expect(body['details']).toEqual(details);
  });

  it('does not mention acceptLegacyBody when it is on', async () => {
    const { call } = setUp({ acceptLegacyBody: true });

    const accepted = await call('POST', '/token', { json: { scopes: SCOPES, ttl: 0 } });
    const { body } = await call('POST', '/token', { json: { scopes: SCOPES, ttl: -1 } });

    expect(accepted.status).toBe(200);
    expect(body['message']).toBe(`${ttl}; got -1`);
  });

  it.each([
    ['POST', '/token', 'scope', 'scopes'],
    ['POST', '/token', 'scpoes', 'scopes'],
    ['POST', '/token', 'SCOPES', 'scopes'],
    ['POST', '/token', 'tll', 'ttl'],
    ['POST', '/token', 'TTL', 'ttl'],
    ['POST', '/token', 'nmae', 'name'],
    ['POST', '/token', 'ttlSeconds', 'ttl'],
    ['POST', '/token/ID/rotate', 'grace', 'graceSeconds'],
    ['POST', '/token', 'meta_data', 'metadata'],
    ['PUT', '/token/ID', 'expires', 'expire'],
    ['PUT', '/token/ID', 'scope', 'scopes'],
    ['PATCH', '/token/ID', 'addScope', 'addScopes'],
    ['PATCH', '/token/ID', 'remove_scopes', 'removeScopes'],
    ['POST', '/token/ID/rotate', 'grace_seconds', 'graceSeconds'],
    ['POST', '/token/ID/rotate', 'graceSecond', 'graceSeconds'],
  ])('suggests the nearest member for an unknown one: %s %s %s -> %s', async (...args) => {
    const [method, path, name, nearest] = args;
    const { call, issue } = setUp();
    const { id } = await issue();
    const json = { ...(method === 'POST' ? {} : { scopes: SCOPES }), [name]: CANARY };

    const answer = await call(method, path.replace('ID', id), { json });

    expectFailure(answer, 'invalid_request');
    expect(answer.body['message']).toContain(`did you mean ${nearest}?`);
  });

  it.each([
    ['POST', '/token', 'expire', 'give ttl in seconds'],
    ['PUT', '/token/ID', 'ttl', 'the expiry of an existing token is expire'],
    ['PATCH', '/token/ID', 'ttl', 'the expiry of an existing token is expire'],
  ])('names the member for the other kind of time: %s %s %s', async (method, path, name, rule) => {
    const { call, issue } = setUp();
    const { id } = await issue();

    const json = { scopes: SCOPES, [name]: 60 };
    const answer = await call(method, path.replace('ID', id), { json });

    expectFailure(answer, 'invalid_request');
    expect(answer.body['message']).toContain(rule);
  });

  it('suggests nothing for an unknown member that resembles no known one', async () => {
    const { call } = setUp();

    const answer = await call('POST', '/token', { json: { scopes: SCOPES, xyzzyxyzzy: 1 } });

    expect(answer.body['message']).not.toContain('did you mean');
    expect(answer.body['message']).toContain(
      'scopes, ttl, expiresIn, expire, name, metadata, limits',
    );
  });

  it('is short for 25,000 unknown members', async () => {
    const { call } = setUp();
    const names = Array.from({ length: 25_000 }, (_, index) => [`${index}`.padEnd(32, 'x'), 1]);

    const answer = await call('POST', '/token', { json: Object.fromEntries(names) });

    expectFailure(answer, 'invalid_request');
    expect(answer.text.length).toBeLessThan(1000);
  });

  it.each<[string, string, object, Code, RegExp]>([
    ['POST', '/token', { scopes: SCOPES, expire: 60 }, 'invalid_request', /\bttl\b/],
    ['POST', '/token', { scopes: SCOPES, expire: START + 60 }, 'invalid_request', /\bttl\b/],
    ['POST', '/token', { scopes: SCOPES, ttl: 60, expire: 60 }, 'invalid_request', /\bttl\b/],
    ['PUT', '/token/ID', { scopes: SCOPES, ttl: 60 }, 'invalid_request', /\bexpire\b/],
    ['PUT', '/token/ID', { scopes: SCOPES, ttl: null }, 'invalid_request', /\bexpire\b/],
    ['PUT', '/token/ID', { scopes: SCOPES, ttl: 0, expire: 1 }, 'invalid_request', /\bexpire\b/],
    ['PUT', '/token/ID', { ttl: 60 }, 'invalid_request', /\bexpire\b/],
    ['PATCH', '/token/ID', { ttl: 60 }, 'invalid_request', /\bexpire\b/],
    ['POST', '/token', { scopes: SCOPES, ttl: 3_600_000_000 }, 'invalid_ttl', /milliseconds/],
    [
      'PUT',
      '/token/ID',
      { scopes: SCOPES, expire: (START + 60) * 1000 },
      'invalid_expire',
      /milliseconds/,
    ],
    ['PATCH', '/token/ID', { expire: (START + 60) * 1000 }, 'invalid_expire', /milliseconds/],
    ['PATCH', '/token/ID', { expire: START }, 'invalid_expire', /later than now/],
    ['POST', '/token', { scopes: SCOPES, ttl: 0 }, 'invalid_ttl', /from 1 to 31536000/],
  ])('says how to correct a time: %s %s %j', async (method, path, json, code, expected) => {
    const { call, issue } = setUp();
    const { id } = await issue();

    const answer = await call(method, path.replace('ID', id), { json });

    expectFailure(answer, code);
    expect(answer.body['message']).toMatch(expected);
  });

  it('shows a malformed scope only if it is printable, and suggests a valid one', async () => {
    const { call } = setUp();
    const scopes = ['get:shop.example/orders', `GET:shop.example/${CANARY}ä`];

    const { body, status } = await call('POST', '/token', { json: { scopes } });

    expect(status).toBe(422);
    expect(body['message']).toContain('get:shop.example/orders');
    expect(body['message']).toContain(`did you mean ${ORDERS}?`);
    expect(body['details']).toEqual({
      scopes: ['get:shop.example/orders', 'scopes[1]'],
      refused: [
        { scope: 'get:shop.example/orders', code: expect.any(String), suggestion: ORDERS },
        expect.objectContaining({ scope: 'scopes[1]', code: 'non_ascii' }),
      ],
      member: 'scopes',
    });
  });

  it('shows an unknown scope with the most similar known ones', async () => {
    const { call } = setUp();

    const { body } = await call('POST', '/token', { json: { scopes: ['GET:shop.example/order'] } });

    expect(body).toMatchObject({
      code: 'scope_unmatched',
      details: {
        refused: [{ scope: 'GET:shop.example/order', nearest: expect.arrayContaining([ORDERS]) }],
      },
    });
  });
});

describe('acceptLegacyBody', () => {
  it.each<[string, object, number | Code]>([
    ['neither time', {}, ONE_YEAR],
    ['ttl', { ttl: 60 }, 60],
    ['expire', { expire: 60 }, 60],
    ['the shortest expire', { expire: 1 }, 1],
    ['the longest expire', { expire: ONE_YEAR }, ONE_YEAR],
    ['an expire that is too long', { expire: ONE_YEAR + 1 }, 'invalid_ttl'],
    ['a UNIX time as expire', { expire: START + 60 }, 'invalid_ttl'],
    ['ttl: 0', { ttl: 0 }, ONE_YEAR],
    ['ttl: -1', { ttl: -1 }, 'invalid_ttl'],
    ['ttl: null', { ttl: null }, 'invalid_ttl'],
    ['ttl: ""', { ttl: '' }, 'invalid_ttl'],
    ['ttl: "0"', { ttl: '0' }, 'invalid_ttl'],
    ['ttl: false', { ttl: false }, 'invalid_ttl'],
    ['both times', { ttl: 60, expire: 60 }, 'invalid_request'],
    ['both times, with ttl: 0', { ttl: 0, expire: 60 }, 'invalid_request'],
    ['both times, with ttl: null', { ttl: null, expire: 60 }, 'invalid_request'],
    ['both times, with expire: null', { ttl: 60, expire: null }, 'invalid_request'],
    ['an unknown member', { expire: 60, expires: 60 }, 'invalid_request'],
  ])('reads a body with %s %j as %s', async (_, members, expected) => {
    const { call } = setUp({ acceptLegacyBody: true });

    const answer = await call('POST', '/token', { json: { scopes: SCOPES, ...members } });

    if (typeof expected === 'string') return expectFailure(answer, expected);
    expect(answer.status).toBe(200);
    expect(answer.body['expire']).toBe(START + expected);
  });

  it.each([0, -1, 0.5, null, '60', CANARY, [60], true, 1e300])(
    'refuses expire %j',
    async (expire) => {
      const { call } = setUp({ acceptLegacyBody: true });

      const answer = await call('POST', '/token', { json: { scopes: SCOPES, expire } });

      // The specification does not say which of the two codes applies here.
      expect(['invalid_ttl', 'invalid_expire']).toContain(answer.body['code']);
      expect(answer.status).toBe(422);
      expectHeaders(answer);
    },
  );

  it.each([0, -5, null])('says expire in the refusal of expire %j', async (expire) => {
    const { call } = setUp({ acceptLegacyBody: true });

    const { body } = await call('POST', '/token', { json: { scopes: SCOPES, expire } });

    expect(body['message']).toBe(
      `expire must be a whole number of seconds from 1 to ${ONE_YEAR}; got ${expire}`,
    );
    expect(body['details']).toMatchObject({ member: 'expire', min: 1, max: ONE_YEAR });
  });

  it('does not affect other calls or other bodies', async () => {
    const { call, issue } = setUp({ acceptLegacyBody: true });
    const { id } = await issue();

    const put = await call('PUT', `/token/${id}`, { json: { scopes: SCOPES, expire: START + 60 } });
    expectSuccess(put, { data: [expect.objectContaining({ expire: START + 60 })] });
    for (const json of [
      { scopes: SCOPES, ttl: 0 },
      { scopes: SCOPES, ttl: 60 },
    ]) {
      expectFailure(await call('PUT', `/token/${id}`, { json }), 'invalid_request');
    }
    for (const json of [null, [], 'x', 1]) {
      expectFailure(await call('POST', '/token', { json }), 'invalid_request');
    }
    const proto = `{"scopes":["${ORDERS}"],"expire":60,"__proto__":{}}`;
    expectFailure(await call('POST', '/token', { raw: proto }), 'invalid_request');
    expectFailure(await call('POST', '/token'), 'invalid_json');
  });

  it.each([
    [{ ttl: 0 }, 'invalid_ttl'],
    [{ expire: 60 }, 'invalid_request'],
    [{ ttl: 60, expire: 60 }, 'invalid_request'],
    [{ ttl: 0, expire: 60 }, 'invalid_request'],
  ] as const)('is off by default and when false: %j', async (members, code) => {
    for (const options of [{}, { acceptLegacyBody: false }]) {
      const { call } = setUp(options);
      expectFailure(await call('POST', '/token', { json: { scopes: SCOPES, ...members } }), code);
    }
  });
});

/** Streams a text in chunks of `size` bytes. */
function chunked(text: string, size: number): ReadableStream<Uint8Array> {
  const bytes = Buffer.from(text);
  let start = 0;
  return new ReadableStream({
    pull(controller) {
      if (start >= bytes.length) return controller.close();
      controller.enqueue(new Uint8Array(bytes.subarray(start, start + size)));
      start += size;
    },
  });
}
