import { beforeAll, describe, expect, it } from 'vitest';
import {
  basic,
  CANARY,
  type CallOptions,
  type Code,
  expectFailure,
  expectSuccess,
  ONE_YEAR,
  ORDERS,
  PASSWORD,
  START,
  setUp,
} from './support.ts';

/** Longer than a member name that messages quote. */
const LONG_CANARY = CANARY.repeat(5);

// In a path, ID and VALUE stand for a token of ada, BOBS_ID and BOBS_VALUE for one of bob, GONE_ID and
// GONE_VALUE for a revoked one. Every input contains the canary.
type Row = [what: string, target: string, options: CallOptions, code: Code];

const LONE = '\ud800';
const CREATE = 'POST /token';
const MEMBERS = { name: CANARY, metadata: { note: CANARY } };
const VALID = JSON.stringify({ scopes: [ORDERS], ...MEMBERS });

const bytes = (...codes: number[]) => Uint8Array.from(codes);
const utf16 = (text: string) => new Uint8Array(Buffer.from(text, 'utf16le'));

const NO_JSON: Row[] = (
  [
    ['an empty body', ''],
    ['a space', ' '],
    ['line breaks', '\r\n\r\n'],
    ['an open object', '{'],
    ['an open list', '['],
    ['an open text', `"${CANARY}`],
    ['a closing brace', '}'],
    ['an object cut after a name', '{"scopes":'],
    ['an object cut in a list', `{"scopes":["${ORDERS}"`],
    ['an object with a list that is not closed', '{"scopes":[}'],
    ['names without quotes', '{scopes:[]}'],
    ['names in single quotes', "{'scopes':[]}"],
    ['a trailing comma', `{"scopes":["${ORDERS}"],}`],
    ['a leading comma', '{,"scopes":[]}'],
    ['two commas', '{"scopes":[1,,2]}'],
    ['two objects', '{} {}'],
    ['an object twice on lines', `${VALID}\n${VALID}`],
    ['trailing text', `${VALID}x`],
    ['a trailing NUL', `${VALID}\u0000`],
    ['a leading NUL', `\u0000${VALID}`],
    ['a line comment', `{} // ${CANARY}`],
    ['a block comment', `/* ${CANARY} */{}`],
    ['a hash comment', `{} # ${CANARY}`],
    ['undefined', 'undefined'],
    ['NaN', '{"ttl":NaN}'],
    ['Infinity', '{"ttl":Infinity}'],
    ['a number with a leading zero', '{"ttl":060}'],
    ['a number with a plus', '{"ttl":+60}'],
    ['a number that ends in a point', '{"ttl":60.}'],
    ['a number that begins with a point', '{"ttl":.5}'],
    ['a hexadecimal number', '{"ttl":0x3c}'],
    ['a number with underscores', '{"ttl":3_600}'],
    ['a big integer', '{"ttl":60n}'],
    ['a truncated word', '{"ttl":nul}'],
    ['True', '{"ttl":True}'],
    ['a line break in a text', '{"name":"a\nb"}'],
    ['a tab in a text', '{"name":"a\tb"}'],
    ['an unknown escape', '{"name":"\\x41"}'],
    ['a short escape', '{"name":"\\u12"}'],
    ['a backslash at the end', '{"name":"\\'],
    ['two byte order marks', `\ufeff\ufeff${VALID}`],
    ['a no-break space', `\u00a0${VALID}`],
    ['a zero-width space', `\u200b${VALID}`],
    ['a line separator', `\u2028${VALID}`],
    ['an invalid byte of UTF-8', bytes(0xff)],
    ['a lone continuation byte', bytes(0x22, 0x80, 0x22)],
    ['an overlong slash', bytes(0x22, 0xc0, 0xaf, 0x22)],
    ['an encoded surrogate', bytes(0x22, 0xed, 0xa0, 0x80, 0x22)],
    ['a truncated character', bytes(0x22, 0xe2, 0x82, 0x22)],
    ['a code point beyond Unicode', bytes(0x22, 0xf4, 0x90, 0x80, 0x80, 0x22)],
    ['UTF-16', utf16(VALID)],
    ['UTF-16 with a mark', utf16(`\ufeff${VALID}`)],
    ['a gzip header', bytes(0x1f, 0x8b, 0x08, 0x00)],
    ['a thousand NULs', new Uint8Array(1000)],
    ['a form', `scopes=${CANARY}`],
    ['XML', `<token>${CANARY}</token>`],
    ['YAML', `scopes:\n  - ${CANARY}`],
    ['a multipart body', `--x\r\nContent-Disposition: form-data; name="${CANARY}"\r\n\r\n--x--`],
    ['a script', `alert("${CANARY}")`],
    ['a callback', `${CANARY}({})`],
    ['a prefix against hijacking', `)]}',\n${VALID}`],
    ['a hundred thousand open lists', '['.repeat(100_000)],
    ['a hundred thousand open objects', '{"a":'.repeat(100_000)],
  ] as [string, string | Uint8Array<ArrayBuffer>][]
).map(([what, raw]) => [`${what} as JSON`, CREATE, { raw }, 'invalid_json']);

const NO_OBJECT: Row[] = [
  ['null', 'null'],
  ['true', 'true'],
  ['a number', '7'],
  ['a huge number', '1e999'],
  ['a text', `"${CANARY}"`],
  ['an empty list', '[]'],
  ['a list with the object', `[${VALID}]`],
  ['lists in lists', `${'['.repeat(5000)}${']'.repeat(5000)}`],
].map(([what, raw = '']) => [`${what} as a body`, CREATE, { raw }, 'invalid_request']);

const UNKNOWN: Row[] = [
  ...['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'then', 'toJSON'],
  ...['account', 'accountId', 'owner', 'user', 'userId', 'admin', 'role', 'sub', 'id', 'token'],
  ...['value', 'digest', 'secret', 'kid', 'prefix', 'version', 'state', 'createdAt', 'expiresAt'],
  ...['revokedAt', 'expires', 'exp', 'ttlSeconds', 'TTL', 'Scopes', 'scope', 'scopes ', ' scopes'],
  ...['scopes[]', 'scopes[0]', 'scopeѕ', 'requested', 'addScopes', '$where', '', ' ', '0', 'é'],
  // Messages quote only short names; these are as long as a secret.
  ...[LONG_CANARY, `${LONG_CANARY}\n`, `${LONG_CANARY}\u0000`, 'x'.repeat(10_000), '\u202esepocs'],
].map((name) => [
  `the member ${JSON.stringify(name.slice(0, 20))}`,
  CREATE,
  { raw: `{"scopes":["${ORDERS}"],${JSON.stringify(name)}:"${CANARY}"}` },
  'invalid_request',
]);

const created = (json: object): CallOptions => ({ json: { ...MEMBERS, ...json } });

const SCOPES: Row[] = (
  [
    ['none', undefined, 'scopes_required'],
    ['null', null, 'scopes_required'],
    ['false', false, 'scopes_required'],
    ['0', 0, 'scopes_required'],
    ['an empty text', '', 'scopes_required'],
    ['a text', ORDERS, 'scopes_required'],
    ['a text with spaces', `${ORDERS} ${ORDERS}`, 'scopes_required'],
    ['an empty list', [], 'scopes_required'],
    ['an empty object', {}, 'scopes_required'],
    ['an array-like object', { 0: ORDERS, length: 1 }, 'scopes_required'],
    ['a list in a list', [[ORDERS]], 'invalid_scope'],
    ['a list with null', [ORDERS, null], 'invalid_scope'],
    ['a list with a number', [0], 'invalid_scope'],
    ['a list with an object', [{ method: 'GET', domain: CANARY, path: '*' }], 'invalid_scope'],
    ['4097 scopes', Array(4097).fill(ORDERS), 'too_many_scopes'],
    ['50,000 empty texts', Array(50_000).fill(''), 'too_many_scopes'],
    ...[
      ...[
        '',
        ' ',
        '*',
        ':',
        '/',
        ':/',
        '*:*',
        '*/*',
        '*:/*',
        ':*/*',
        '*:*/',
        'GET',
        'GET:',
        'GET:/',
      ],
      ...[
        'GET:shop.example',
        'GET:shop.example/',
        'shop.example/orders',
        'GET shop.example/orders',
      ],
      ...[
        'GET;shop.example/orders',
        'GET::shop.example/orders',
        'GET:/orders',
        '/orders',
        'get:*/*',
      ],
      ...[
        'Get:shop.example/orders',

        'G*T:shop.example/orders',
      ],
      ...['GET,POST:shop.example/orders', 'GET|POST:*/*', '!GET:*/*', '-GET:shop.example/orders'],
      ...[
        'GET:http://shop.example/orders',
        'GET:shop.example:443/orders',
        'GET:a@shop.example/orders',
      ],
      ...['GET:shop.example./orders', 'GET:.shop.example/orders', 'GET:shop..example/orders'],
      ...['GET:-shop.example/orders', 'GET:shop-.example/orders', 'GET:SHOP..example/orders'],
      ...[
        'GET:shop_a.example/orders',
        'GET:sho*.example/orders',
        'GET:shop.*/orders',
        'GET:**/orders',
      ],
      ...['GET:*.*/orders', 'GET:*shop.example/orders', 'GET:[::1]/orders'],
      ...['GET:shop.example//orders', 'GET:shop.example/orders//', 'GET:shop.example/./orders'],
      ...[
        'GET:shop.example/../orders',
        'GET:shop.example/orders/..',
        'GET:shop.example/orders?a=1',
      ],
      ...['GET:shop.example/orders#a', 'GET:shop.example/or*ers', 'GET:shop.example/**'],
      ...[
        'GET:shop.example/%',
        'GET:shop.example/%2',
        'GET:shop.example/%zz',
        'GET:shop.example/%41',
      ],
      ...[
        'GET:shop.example/%00',
        'GET:shop.example/%2e%2e',
        'GET:shop.example/%2F',
        'GET:shop.example/a b',
      ],
      ...['GET:shop.example\\orders', 'GET:shop.example/a\\b', 'GET:shop.example/<b>'],
      ...['GET:shop.example/orders ', ' GET:shop.example/orders', 'GET :shop.example/orders'],
      ...[
        'GET:shop.example/orders\n',
        'GET:shop.example/orders\r\nX: y',
        '\tGET:shop.example/orders',
      ],
      ...[
        'GET:shop.example/orders\u0000',
        'GET:shop.example/o\u00adrders',
        'GET:shоp.example/orders',
      ],
      ...['GET:shop。example/orders', 'ＧＥＴ:shop.example/orders', 'GET：shop.example/orders'],
      ...['GET:shop.example/\u202eorders', 'GET:shop.example/😀', `GET:shop.example/${LONE}`],
      ...[`GET:shop.example/${'a'.repeat(2000)}`, `GET:${'a'.repeat(64)}.example/orders`],
      ...[`GET:${'a.'.repeat(130)}example/orders`, '__proto__', 'constructor', '[object Object]'],
    ].map((text): [string, unknown, Code] => [
      JSON.stringify(text.slice(0, 40)),
      [text],
      'invalid_scope',
    ]),
    ...[
      ...['GET:shop.example/order', 'GET:shop.example/orders2', 'GET:shop.example/Orders'],
      ...['GETS:shop.example/orders', 'FOO:*/*', 'PUT:shop.example/orders', 'GET:evil.example/*'],
      ...['GET:shop.example.evil/orders', 'GET:evilshop.example/orders', 'DELETE:*/*', 'GET:*/x'],
    ].map((text): [string, unknown, Code] => [text, [ORDERS, text], 'scope_unmatched']),
  ] as [string, unknown, Code][]
).map(([what, scopes, code]) => [`scopes: ${what}`, CREATE, created({ scopes }), code]);

const TTLS: Row[] = [
  ...[0, -1, -0, 0.1, 1.0000001, ONE_YEAR + 1, 1e10, 2 ** 31, 2 ** 53, 1e308, -1e308],
  ...[null, true, false, '', '60', ' 60', '1h', 'P1D', [], [60], {}, { $gt: 0 }, CANARY],
].map((ttl) => [
  `ttl: ${JSON.stringify(ttl)}${Object.is(ttl, -0) ? ' (negative zero)' : ''}`,
  CREATE,
  { raw: `{"scopes":["${ORDERS}"],"ttl":${Object.is(ttl, -0) ? '-0' : JSON.stringify(ttl)}}` },
  'invalid_ttl',
]);

const EXPIRES: Row[] = [
  ...['', CANARY, '4102444800', '2100-06-01T12:00:00', '2100-02-30T12:00:00Z'],
  ...[60, true, [], {}, null],
].map((expire) => [
  `expire: ${JSON.stringify(expire).slice(0, 30)}`,
  CREATE,
  created({ scopes: [ORDERS], expire }),
  typeof expire === 'string' ? 'invalid_expire' : 'invalid_request',
]);

const NAMES: Row[] = [
  ...['', 'x'.repeat(201), `${CANARY}\u0000`, `${CANARY}\r\nSet-Cookie: a=b`, `${CANARY}\u007f`],
  ...[`${CANARY}\u0085`, `${CANARY}\u001b[31m`, LONE, `${CANARY}\udc00`, 0, true, [], {}, [CANARY]],
].map((name) => [
  `name: ${JSON.stringify(name).slice(0, 30)}`,
  CREATE,
  created({ scopes: [ORDERS], name }),
  'invalid_request',
]);

const METADATA: Row[] = [
  ...['', CANARY, 0, 1, true, false, [], [{}], [[CANARY]]],
  { a: CANARY.repeat(1000) },
  Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`key${i}`, i])),
  { ['x'.repeat(5000)]: 1 },
].map((metadata) => [
  `metadata: ${JSON.stringify(metadata).slice(0, 30)}`,
  CREATE,
  created({ scopes: [ORDERS], metadata }),
  'invalid_request',
]);

const CHANGES: Row[] = (
  [
    ['PUT /token/ID', {}, 'scopes_required'],
    ['PUT /token/ID', { expire: START + 60 }, 'scopes_required'],
    ['PUT /token/ID', { scopes: [] }, 'scopes_required'],
    ['PUT /token/ID', { scopes: [''] }, 'invalid_scope'],
    ['PUT /token/ID', { scopes: ['GET:evil.example/*'] }, 'scope_unmatched'],
    ['PUT /token/ID', { scopes: [ORDERS], ttl: 60 }, 'invalid_request'],
    ['PUT /token/ID', { scopes: [ORDERS], name: CANARY }, 'invalid_request'],
    ['PUT /token/ID', { scopes: [ORDERS], metadata: {} }, 'invalid_request'],
    ['PUT /token/ID', { scopes: [ORDERS], account: 'bob' }, 'invalid_request'],
    ['PUT /token/ID', { scopes: [ORDERS], version: 9 }, 'invalid_request'],
    ['PUT /token/ID', null, 'invalid_request'],
    ['PUT /token/ID', [], 'invalid_request'],
    ...[null, '', CANARY, '4102444800', true, [], {}, 0.5, -1, 0, START, START - 1, 1e300].map(
      (expire) => ['PUT /token/ID', { scopes: [ORDERS], expire }, 'invalid_expire'],
    ),
    ...[START + ONE_YEAR + 1, START * 1000, 2 ** 53, 8_640_000_000_001].map((expire) => [
      'PUT /token/ID',
      { scopes: [ORDERS], expire },
      'invalid_expire',
    ]),
    ['PATCH /token/ID', {}, 'invalid_request'],
    ['PATCH /token/ID', null, 'invalid_request'],
    ['PATCH /token/ID', [], 'invalid_request'],
    ['PATCH /token/ID', { ttl: 60 }, 'invalid_request'],
    ['PATCH /token/ID', { [LONG_CANARY]: 1 }, 'invalid_request'],
    ['PATCH /token/ID', { scopes: [ORDERS], addScopes: [ORDERS] }, 'invalid_request'],
    ['PATCH /token/ID', { scopes: [ORDERS], removeScopes: [ORDERS] }, 'invalid_request'],
    ['PATCH /token/ID', { scopes: [] }, 'scopes_required'],
    ['PATCH /token/ID', { addScopes: 'x' }, 'scopes_required'],
    ['PATCH /token/ID', { addScopes: [1] }, 'invalid_scope'],
    ['PATCH /token/ID', { removeScopes: ['*'] }, 'invalid_scope'],
    ['PATCH /token/ID', { addScopes: ['GET:evil.example/*'] }, 'scope_unmatched'],
    ['PATCH /token/ID', { removeScopes: ['*:*/*'] }, 'scopes_required'],
    ['PATCH /token/ID', { expire: null }, 'invalid_expire'],
    ['PATCH /token/ID', { expire: START }, 'invalid_expire'],
    ['PATCH /token/ID', { name: '' }, 'invalid_request'],
    ['PATCH /token/ID', { name: 1 }, 'invalid_request'],
    ['PATCH /token/ID', { metadata: [] }, 'invalid_request'],
    ['PATCH /token/ID', { metadata: CANARY }, 'invalid_request'],
    ['PATCH /token/ID', { state: 'active', name: CANARY }, 'invalid_request'],
    ...[-1, 0.5, ONE_YEAR + 1, null, '0', true, [], {}, CANARY].map((graceSeconds) => [
      'POST /token/ID/rotate',
      { graceSeconds },
      'invalid_request',
    ]),
    ['POST /token/ID/rotate', null, 'invalid_request'],
    ['POST /token/ID/rotate', [], 'invalid_request'],
    ['POST /token/ID/rotate', { grace: 1 }, 'invalid_request'],
    ['POST /token/ID/rotate', { scopes: [ORDERS] }, 'invalid_request'],
  ] as [string, unknown, Code][]
).map(([target, json, code]) => [`${JSON.stringify(json)?.slice(0, 50)}`, target, { json }, code]);

const encoded = (text: string) => Buffer.from(text).toString('base64');

const CREDENTIALS: Row[] = [
  '',
  'Basic',
  'Basic ',
  'Basic =',
  'Basic ====',
  `Basic ${CANARY}`,
  `Basic ${CANARY}!`,
  `Basic\t${encoded(`ada:${PASSWORD}`)}`,
  `Basic${encoded(`ada:${PASSWORD}`)}`,
  `Basic "${encoded(`ada:${PASSWORD}`)}"`,
  `Basic ${encoded(`ada:${PASSWORD}`)} x`,
  `Basic ${encoded(`ada:${PASSWORD}`)},`,
  `Basic ${encoded(`ada:${PASSWORD}`)}, ${basic('bob')}`,
  `Basic ${encoded(`ada:${PASSWORD}`)}, Bearer ${CANARY}`,
  `Basic ${encoded(`ada:${PASSWORD}`)};realm=x`,
  `Basic  realm="${CANARY}"`,
  `Basic ada:${PASSWORD}`,
  `Basic ${Buffer.from(`ada:${PASSWORD}`).toString('hex')}`,
  `Basic ${encodeURIComponent(encoded(`ada:${PASSWORD}`))}`,
  `Basic ${encoded('ada')}`,
  `Basic ${encoded('ada:')}`,
  `Basic ${encoded(':')}`,
  `Basic ${encoded(`:${PASSWORD}`)}`,
  `Basic ${encoded(`ada:${PASSWORD} `)}`,
  `Basic ${encoded(`ada:${PASSWORD}\n`)}`,
  `Basic ${encoded(`ada:${PASSWORD}\u0000`)}`,
  `Basic ${encoded(`ada\u0000:${PASSWORD}`)}`,
  `Basic ${encoded(`ada:${PASSWORD.toUpperCase()}`)}`,
  `Basic ${encoded(`ada:${CANARY}`)}`,
  `Basic ${encoded(`${CANARY}:${CANARY}`)}`,
  `Basic ${encoded('__proto__:__proto__')}`,
  `Basic ${encoded("' OR 1=1 --:x")}`,
  `Basic ${encoded('*:*')}`,
  `Basic ${encoded('a'.repeat(5000))}`,
  `Basic ${Buffer.from([0xff, 0x3a, 0xfe]).toString('base64')}`,
  `Basic ${Buffer.from([0xc0, 0xaf, 0x3a, 0x61]).toString('base64')}`,
  `Bearer ${CANARY}`,
  'Bearer VALUE',
  'Bearer ID',
  'VALUE',
  `Digest username="ada", response="${CANARY}"`,
  'Negotiate YII=',
  `Token ${CANARY}`,
  `ApiKey ${CANARY}`,
  `bаsic ${encoded(`ada:${PASSWORD}`)}`.replace('а', 'a\u00a0'),
].map((authorization) => [
  `Authorization: ${authorization.slice(0, 30)}`,
  'GET /token',
  { headers: { authorization } },
  'unauthenticated',
]);

const TYPES: Row[] = (
  [
    ...['', ' ', 'text/csv', 'text/json', 'application/jsonp', 'application/javascript', 'json'],
    ...['application/x-json', 'application/json5', 'application/ld+json', 'application/xml', '*/*'],
    ...['application/*', 'application', '/json', 'application/json, text/csv', 'application /json'],
    ...['application/json, application/json', 'multipart/mixed; boundary=x', CANARY, 'null'],
    ...['application/json; charset=latin1', 'application/cbor'],
    ...[
      'application/json; charset=utf-16',
      'application/json; charset=',
      'application/json-patch+json',
    ],
    ...[
      'application/json; charset="utf-8',
      'application/merge-patch+json',
      'application/octet-stream',
    ],
  ] as const
).map((type) => [
  `Content-Type: ${type}`,
  CREATE,
  { raw: VALID, headers: { 'content-type': type } },
  'unsupported_media_type',
]);

const HEADERS: Row[] = [
  ...['gzip', 'br', 'deflate', 'identity', 'zstd', 'gzip, gzip', CANARY, 'x'].map(
    (coding): Row => [
      `Content-Encoding: ${coding}`,
      CREATE,
      { raw: VALID, headers: { 'content-encoding': coding } },
      'unsupported_media_type',
    ],
  ),
  ...['1048577', '99999999999999999999', '1e9', 'Infinity'].map(
    (length): Row => [
      `Content-Length: ${length}`,
      CREATE,
      { raw: VALID, headers: { 'content-length': length } },
      'payload_too_large',
    ],
  ),
  ...['cross-site', 'same-site', CANARY, 'Same-Origin', 'none, none', ''].map(
    (site): Row => [
      `Sec-Fetch-Site: ${site}`,
      CREATE,
      { raw: VALID, headers: { 'sec-fetch-site': site } },
      'cross_site',
    ],
  ),
  ...[
    ...['"2"', '2', 'W/"2"', '"2", W/"3"', '"0"', '"01"', '""', '"-1"', '"1.0"', '"+1"', '"1e0"'],
    ...['"9007199254740993"', '"99999999999999999999"', `"${CANARY}"`, '"*"', '"0x1"', '"\u00b2"'],
  ].map(
    (tag): Row => [
      `If-Match: ${tag}`,
      'PUT /token/ID',
      { json: { scopes: [ORDERS] }, headers: { 'if-match': tag } },
      'version_conflict',
    ],
  ),
  ...["'1'", 'w/"1"', '"1', '1"', '"1""1"', '', ',', '"2", x', `${CANARY}`].map(
    (tag): Row => [
      `If-Match: ${tag}`,
      'PUT /token/ID',
      { json: { scopes: [ORDERS] }, headers: { 'if-match': tag } },
      'invalid_request',
    ],
  ),
];

const METHODS: Row[] = (
  [
    ...['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY', 'PROPFIND', 'MKCOL', CANARY].map(
      (method) => `${method} /token`,
    ),
    ...['POST', 'OPTIONS', 'LOCK', 'patch', '__proto__', 'constructor', 'toString'].map(
      (method) => `${method} /token/ID`,
    ),
    ...['GET', 'HEADS', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'].map(
      (method) => `${method} /token/ID/rotate`,
    ),
    ...['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'REPORT'].map((method) => `${method} /scopes`),
  ] as string[]
).map((target) => [target, target, {}, 'method_not_allowed']);

const PATHS: Row[] = [
  ...['/', '//', '/token/', '//token', '/token//', '/Token', '/TOKEN', '/tokens', '/token.json'],
  ...['/token;a=b', '/token%20', '/%74oken', '/token%2F', '/token%00', '/token%0d%0aX:y', '/tоken'],
  ...['/token\\', '/token/ID/', '/token/ID//', '/token/ID/rotate/', '/token/ID/Rotate', '/.token'],
  ...[
    '/token/ID/rotate/rotate',
    '/token/ID/revoke',
    '/token/ID/../../etc/passwd',
    '/token/rotate/x',
  ],
  ...[
    '/token//rotate',
    '/token/ID%2Frotate',
    '/scopes/',
    '/scopes/x',
    '/scope',
    '/SCOPES',
    '/auth',
  ],
  ...['/auth/token', '/api/token', '/v1/token', '/v2/token/ID', '/.env', '/.git/config', '/admin'],
  ...['/wp-login.php', '/server-status', '/metrics', '/health', '/favicon.ico', '/robots.txt'],
  ...[
    '/__proto__',
    '/constructor',
    '/toString',
    '/token/ID/__proto__',
    '/%2e%2e/%2e%2e/etc/passwd',
  ],
  ...['/..%2ftoken', '/..%5ctoken', '/token..', '/*', '/token/*/rotate/*', '/\u202etoken', '/😀'],
  ...['/introspect', '/revoke', '/docs', '/cgi-bin/x', `/${CANARY}`, `/token/ID/${CANARY}`],
  ...[`/token/${'a/'.repeat(100)}`, `/${'a'.repeat(8000)}`, `/${'b'.repeat(9000)}`],
].map((path) => [`the path ${path.slice(0, 40)}`, `GET ${path}`, {}, 'not_found']);

const LONG: Row[] = [
  `GET /scopes?${'a'.repeat(8193)}`,
  `GET /token/${'b'.repeat(20_000)}`,
  `GET /token?cursor=${'c'.repeat(9000)}`,
  `GET /token?${'&'.repeat(9000)}`,
  `GET /token/${'%41'.repeat(4000)}`,
  `POST /token?x=${'😀'.repeat(800)}`,
].map((target) => [
  `${target.slice(0, 20)}… of ${target.length} characters`,
  target,
  {},
  'uri_too_long',
]);

const QUERIES: Row[] = (
  [
    ...['access_token', 'token', 'account', 'accountId', 'user', 'userId', 'owner'].flatMap(
      (name): [string, Code][] => [
        [`${name}=${CANARY}`, 'invalid_request'],
        [`${name}`, 'invalid_request'],
      ],
    ),
    ['%61ccess_token=x', 'invalid_request'],
    ['access%5Ftoken=x', 'invalid_request'],
    ['limit=1&owner=bob&limit=2', 'invalid_request'],
    ...[
      ...[
        'limit=0',
        'limit=101',
        'limit=1e2',
        'limit=1.0',
        'limit=-1',
        'limit=',
        'limit=%20',
        'limit',
      ],
      ...[
        'limit=0x10',
        'limit=01',
        'limit=+1',
        'limit=1%00',
        'limit=NaN',
        'limit=%D9%A1',
        'limit=1,2',
      ],
      ...['limit=1&limit=1', 'limit=1&limit=2', `limit=${CANARY}`, `limit=${'9'.repeat(500)}`],
      ...[
        'match=',
        'match=Overlaps',
        `match=${CANARY}`,
        'match=exact%00',
        'match=exact&match=exact',
      ],
      ...['match=__proto__', 'match=covers,exact', 'scope[', 'scope[x]=1'],
      ...['cursor=', `cursor=${CANARY}`, 'cursor=null', 'cursor=..', 'cursor=%00', 'cursor=e30'],
      ...['cursor=eyJhIjoxfQ', 'cursor=ID', 'cursor=VALUE', 'cursor=x&cursor=x', 'cursor=%ff'],
      ...[`cursor=${'A'.repeat(4000)}`, 'cursor=__proto__'],
    ].map((query): [string, Code] => [query, 'invalid_request']),
    ...[
      ...[
        'scope=x',
        'scope=*',
        'scope=%00',
        'scope=GET:shop.example',
        'scope=get:*/*',
        'scope=%20',
      ],
      ...['scope=GET:shop.example/%252e%252e', 'scope=GET%3Ashop.example%2Forders%0A', 'scope=%ff'],
      ...[`scope=${'a'.repeat(5000)}`, 'scope=GET:shop.example/a+b', 'scope=__proto__'],
    ].map((query): [string, Code] => [query, 'invalid_scope']),
  ] as [string, Code][]
).map(([query, code]) => [`?${query.slice(0, 40)}`, `GET /token?${query}`, {}, code]);

const TOKENS: Row[] = [
  ...['BOBS_ID', 'BOBS_VALUE', 'GONE_ID', 'GONE_VALUE', 'NobodyHasThisId0000000', '0', 'null'],
  ...[
    'ID0',
    '0ID',
    'ID%00',
    'ID%20',
    '%20ID',
    'ID%0a',
    'ID.json',
    'ID;x',
    'ID,ID',
    'VALUE0',
    '0VALUE',
  ],
  ...['VALUE%00', 'VALUE,VALUE', 'VALUE%0d%0aX:%20y', 'Bearer%20VALUE', 'acme_', 'acme_1', 'acme'],
  ...[`acme_1k1${'0'.repeat(55)}`, `acme_1k1${'z'.repeat(55)}`, `acme_2k1${'0'.repeat(55)}`],
  ...[`acme_1zz${'0'.repeat(55)}`, `ghp_1k1${'0'.repeat(55)}`, `ACME_1k1${'0'.repeat(55)}`],
  ...['%F0%9F%98%80', '%ff', '%c0%af', '%2e%2e%2f', '..%2f..', '%', '%2', '%zz', '*', '%2a', '-1'],
  ...[
    "'%20OR%20'1'='1",
    '1;DROP%20TABLE%20tokens',
    '$%7Bjndi:ldap:x%7D',
    '%3Cscript%3E',
    '{{7*7}}',
  ],
  ...['undefined', '__proto__', 'constructor', 'toString', '[object%20Object]', 'true', 'NaN'],
  ...[
    `${CANARY}`,
    `${CANARY}%00`,
    CANARY.repeat(500),
    'a'.repeat(22).replace('a', '%61'),
    'rotate',
  ],
  ...[
    'Ā'.repeat(22),
    '0'.repeat(21),
    '0'.repeat(23),
    '-'.repeat(22),
    '_'.repeat(22),
    '٠'.repeat(22),
  ],
].flatMap((token, index): Row[] => {
  const others: Row[] = [
    [`the token ${token.slice(0, 30)} to delete`, `DELETE /token/${token}`, {}, 'not_found'],
    [`the token ${token.slice(0, 30)} to rotate`, `POST /token/${token}/rotate`, {}, 'not_found'],
  ];
  const shown: Row = [`the token ${token.slice(0, 30)}`, `GET /token/${token}`, {}, 'not_found'];
  return index % 5 === 0 ? [shown, ...others] : [shown];
});

const ROWS: Row[] = [
  ...[
    NO_JSON,
    NO_OBJECT,
    UNKNOWN,
    SCOPES,
    TTLS,
    EXPIRES,
    NAMES,
    METADATA,
    CHANGES,
    CREDENTIALS,
    TYPES,
  ],
  ...[HEADERS, METHODS, PATHS, LONG, QUERIES, TOKENS],
].flat();

const setup = setUp({
  authenticate: ({ username, password }) =>
    ['ada', 'bob'].includes(username) && password === PASSWORD ? username : null,
});
const names: Record<string, string> = {};

beforeAll(async () => {
  const [mine, bobs, gone] = [await setup.issue(), await setup.issue('bob'), await setup.issue()];
  await setup.tokens.revoke('ada', gone.id);
  Object.assign(names, { ID: mine.id, VALUE: mine.value });
  Object.assign(names, { BOBS_ID: bobs.id, BOBS_VALUE: bobs.value });
  Object.assign(names, { GONE_ID: gone.id, GONE_VALUE: gone.value });
});

/** The input with the ids and values of this run, and the canary where it has no effect. */
function written([, target, options]: Row): [method: string, path: string, CallOptions] {
  const named = (text: string) =>
    text.replace(/(?:BOBS_|GONE_)?(?:ID|VALUE)(?![a-z])/g, (name) => names[name] ?? name);
  const [method = '', path = ''] = target.split(/ (.*)/s, 2);
  const note = `${path.includes('?') ? '&' : '?'}note=${CANARY}`;
  const headers = Object.entries({ ...options.headers, 'x-note': CANARY, cookie: `a=${CANARY}` });
  return [
    method,
    named(path) + note,
    { ...options, headers: Object.fromEntries(headers.map(([key, text]) => [key, named(text)])) },
  ];
}

describe('an invalid input', () => {
  it('is tested in at least 300 distinct variants', () => {
    const inputs = ROWS.map(([, target, { raw, json, headers }]) =>
      JSON.stringify([target, raw instanceof Uint8Array ? [...raw] : raw, json, headers]),
    );

    expect(inputs.filter((input, index) => inputs.indexOf(input) !== index)).toEqual([]);
    expect(ROWS.length).toBeGreaterThanOrEqual(300);
  });

  it.each(ROWS)('is refused: %s', async (...row) => {
    const answer = await setup.call(...written(row));

    expectFailure(answer, row[3]);
  });

  it('changes nothing, and a valid input is still accepted', async () => {
    const before = await setup.call('GET', '/token');
    const [token] = before.body['data'] as { id: string; version: number }[];

    expect(before.body['data']).toHaveLength(1);
    expect(token).toMatchObject({ id: names['ID'], version: 1 });
    const answer = await setup.call(...written(['', CREATE, { raw: VALID }, 'not_found']));
    expectSuccess({ ...answer, text: '' }, { ...answer.body });
  });
});
