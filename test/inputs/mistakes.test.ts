import { describe, expect, it } from 'vitest';
import { isTokenError } from '../../src/errors.ts';
import { bearerGuard } from '../../src/http/guard/guard.ts';
import { tokenHandler } from '../../src/http/handler.ts';
import { fixedAccounts } from '../../src/http/index.ts';
import { defineCatalog, ScopeCatalog } from '../../src/scope/index.ts';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { formats } from '../../src/values/foreign.ts';
import { generateKey } from '../../src/values/keys.ts';
import { K1, K2, NO_ID, SCOPE, setUp } from '../support.ts';

// What people write who guess, or come from another library or from JavaScript. Each mistake must say what
// was wrong and what is right.

type Row = readonly [
  mistake: string,
  call: (good: typeof GOOD) => unknown,
  code: string,
  details: object | undefined,
  cure: string,
];

const { tokens } = setUp({ usage: true, limits: true });
const plain = setUp().tokens;
const later = new Date('2100-06-01');
const row = { account: 'a', digest: 'a'.repeat(64), format: 'sanctum', scopes: [SCOPE] };

const GOOD = {
  service: (options: object = {}) =>
    new TokenService({ store: new MemoryTokenStore(), keys: [K1], prefix: 'acme', ...options }),
  issue: (members: object = {}) =>
    tokens.issue({ account: 'a', scopes: [SCOPE], ...members } as never),
  patch: (change: unknown) => tokens.patch('a', NO_ID, change as never),
  modify: (change: object, options?: object) =>
    tokens.modify('a', NO_ID, { scopes: [SCOPE], ...change }, options as never),
  list: (input: unknown) => tokens.list(input as never),
  verify: (need: unknown, options?: unknown) => tokens.verify('a', need as never, options as never),
  explain: (need: unknown) => tokens.explain('a', NO_ID, need as never),
  derive: (input: unknown) => tokens.derive('a', input as never),
  import: (members: object) =>
    setUp({ foreign: [formats.sanctum()] }).tokens.import({
      ...row,
      expiresAt: later,
      ...members,
    } as never),
  guard: (options: object) => bearerGuard({ tokens, domain: 'shop.example', ...options } as never),
  handler: (options: object) =>
    tokenHandler({ tokens, authenticate: () => null, ...options } as never),
};

const unknown = (name: string, suggestion: string) => ({ unknown: name, suggestion });
const of = (member: string) => ({ member });

const KEYS: readonly Row[] = [
  [
    'an unset variable',
    (g) => g.service({ keys: undefined }),
    'invalid_options',
    of('keys'),
    'got undefined: if you have keys, is the variable or the file with them read?',
  ],
  [
    'an empty variable',
    (g) => g.service({ keys: '' }),
    'invalid_options',
    of('keys'),
    'is the variable',
  ],
  [
    'JSON that nobody parsed',
    (g) => g.service({ keys: JSON.stringify([K1]) }),
    'invalid_options',
    of('keys'),
    'got a text: parse it, as JSON.parse(text)',
  ],
  [
    'a bare secret',
    (g) => g.service({ keys: K1.secret }),
    'invalid_options',
    of('keys'),
    'as [{ kid: "k1", secret, status: "active" }]',
  ],
  [
    'one key',
    (g) => g.service({ keys: K1 }),
    'invalid_options',
    of('keys'),
    'put your key into a list, as [key]',
  ],
  [
    'no key',
    (g) => g.service({ keys: [] }),
    'invalid_options',
    of('keys'),
    'got an empty list: generateKey() makes the first one',
  ],
  [
    'a promise of keys',
    (g) => g.service({ keys: Promise.resolve([K1]) }),
    'invalid_options',
    of('keys'),
    'got a promise: put await before it',
  ],
  [
    'a list of texts',
    (g) => g.service({ keys: [K1.secret] }),
    'invalid_options',
    undefined,
    'keys[0] must be an object { kid, secret, status }; got a text',
  ],
  [
    'generateKey itself',
    (g) => g.service({ keys: [generateKey] }),
    'invalid_options',
    undefined,
    'got a function: call it',
  ],
  [
    'a secret that is not set',
    (g) => g.service({ keys: [{ ...K1, secret: undefined }] }),
    'invalid_options',
    undefined,
    'keys[0].secret must be a Uint8Array or base64url text of at least 32 random bytes; got undefined',
  ],
  [
    'a secret in base64',
    (g) => g.service({ keys: [{ ...K1, secret: 'ab+/'.repeat(11) }] }),
    'invalid_options',
    undefined,
    'give Buffer.from(text, "base64")',
  ],
  [
    'two active keys',
    (g) => g.service({ keys: [K1, K2] }),
    'invalid_options',
    undefined,
    'exactly one key with status "active", not 2',
  ],
];

const OPTIONS: readonly Row[] = [
  [
    'a list for a catalog',
    (g) => g.service({ catalog: [SCOPE] }),
    'invalid_options',
    of('catalog'),
    'got a list: give ScopeCatalog.from([…])',
  ],
  [
    'a promise of a catalog',
    (g) => g.service({ catalog: Promise.resolve() }),
    'invalid_options',
    of('catalog'),
    'got a promise: put await before it',
  ],
  [
    'an OpenAPI document',
    (g) => g.service({ catalog: { openapi: '3.1.0', paths: {} } }),
    'invalid_options',
    of('catalog'),
    'give await catalogFromOpenApi(document)',
  ],
  [
    'the class of a catalog',
    (g) => g.service({ catalog: ScopeCatalog }),
    'invalid_options',
    of('catalog'),
    'got a class',
  ],
  [
    'a pool for a store',
    (g) => g.service({ store: { query() {}, connect() {} } }),
    'invalid_options',
    of('store'),
    'give new PostgresTokenStore(pool), or the store of your database',
  ],
  [
    'an address for a store',
    (g) => g.service({ store: 'postgres://db/app' }),
    'invalid_options',
    of('store'),
    'got a text: give new PostgresTokenStore(pool)',
  ],
  [
    'the class of a store',
    (g) => g.service({ store: MemoryTokenStore }),
    'invalid_options',
    of('store'),
    'got a class: put new before it',
  ],
  [
    'a promise of a store',
    (g) => g.service({ store: Promise.resolve() }),
    'invalid_options',
    of('store'),
    'got a promise: put await before it',
  ],
  [
    'no store',
    (g) => g.service({ store: undefined }),
    'invalid_options',
    of('store'),
    'such as new MemoryTokenStore(); got undefined',
  ],
  [
    'ttl of the service',
    (g) => g.service({ ttl: 60 }),
    'invalid_options',
    unknown('ttl', 'lifetime'),
    'did you mean lifetime?',
  ],
  [
    'expiresIn of the service',
    (g) => g.service({ expiresIn: '30d' }),
    'invalid_options',
    unknown('expiresIn', 'lifetime'),
    'did you mean lifetime?',
  ],
  [
    'key',
    (g) => g.service({ key: K1, keys: undefined }),
    'invalid_options',
    unknown('key', 'keys'),
    'did you mean keys?',
  ],
  [
    'secret',
    (g) => g.service({ secret: 'x' }),
    'invalid_options',
    unknown('secret', 'keys'),
    'did you mean keys?',
  ],
  [
    'pool',
    (g) => g.service({ pool: {} }),
    'invalid_options',
    unknown('pool', 'store'),
    'did you mean store?',
  ],
  [
    'onError of the service',
    (g) => g.service({ onError() {} }),
    'invalid_options',
    unknown('onError', 'onEvent'),
    'did you mean onEvent?',
  ],
  [
    'ttl of the cache',
    (g) => g.service({ cache: { ttl: 1 } }),
    'invalid_options',
    { ...of('cache'), ...unknown('ttl', 'maxStaleMs') },
    'did you mean maxStaleMs?',
  ],
  [
    'a store for usage',
    (g) => g.service({ usage: new MemoryTokenStore() }),
    'invalid_options',
    of('usage'),
    'got a store: give { store }',
  ],
  [
    'the leases of a store for limits',
    (g) => g.service({ limits: new MemoryTokenStore().leases }),
    'invalid_options',
    of('limits'),
    'got a store: give { store }',
  ],
  [
    'a number for a lifetime',
    (g) => g.service({ lifetime: 60 }),
    'invalid_options',
    of('lifetime'),
    'an object { defaultSeconds, maxSeconds }; got 60',
  ],
  [
    'a text for seconds',
    (g) => g.service({ lifetime: { maxSeconds: '60' } }),
    'invalid_options',
    of('lifetime.maxSeconds'),
    'a whole number from 1 to 31536000; got a text',
  ],
  [
    'Date.now for a clock',
    (g) => g.service({ clock: Date.now }),
    'invalid_options',
    of('clock'),
    'such as systemClock; got a function',
  ],
  [
    'one format',
    (g) => g.service({ foreign: formats.sanctum() }),
    'invalid_options',
    of('foreign'),
    'as [formats.sanctum()]; got an object',
  ],
];

const INPUTS: readonly Row[] = [
  [
    'userId in issue',
    (g) => g.issue({ account: undefined, userId: 'a' }),
    'invalid_request',
    unknown('userId', 'account'),
    'did you mean account?',
  ],
  [
    'userId in list',
    (g) => g.list({ userId: 'a' }),
    'invalid_request',
    unknown('userId', 'account'),
    'did you mean account?',
  ],
  [
    'userId in listAll',
    () => tokens.listAll({ userId: 'a' } as never).next(),
    'invalid_request',
    unknown('userId', 'account'),
    'did you mean account?',
  ],
  [
    'ttl in issue',
    (g) => g.issue({ ttl: 60 }),
    'invalid_request',
    unknown('ttl', 'ttlSeconds'),
    'did you mean ttlSeconds?',
  ],
  [
    'expires in issue',
    (g) => g.issue({ expires: later }),
    'invalid_request',
    unknown('expires', 'expiresAt'),
    'did you mean expiresAt?',
  ],
  [
    'permissions in issue',
    (g) => g.issue({ permissions: [] }),
    'invalid_request',
    unknown('permissions', 'scopes'),
    'did you mean scopes?',
  ],
  [
    'label in issue',
    (g) => g.issue({ label: 'x' }),
    'invalid_request',
    unknown('label', 'name'),
    'did you mean name?',
  ],
  [
    'ttlSeconds in patch',
    (g) => g.patch({ ttlSeconds: 60 }),
    'invalid_request',
    unknown('ttlSeconds', 'expiresIn'),
    'did you mean expiresIn?',
  ],
  [
    'ttl in modify',
    (g) => g.modify({ ttl: 60 }),
    'invalid_request',
    unknown('ttl', 'expiresIn'),
    'did you mean expiresIn?',
  ],
  [
    'disabled in patch',
    (g) => g.patch({ disabled: true }),
    'invalid_request',
    unknown('disabled', 'suspended'),
    'did you mean suspended?',
  ],
  [
    'etag in modify',
    (g) => g.modify({}, { etag: 1 }),
    'invalid_request',
    unknown('etag', 'ifVersion'),
    'did you mean ifVersion?',
  ],
  [
    'page in list',
    (g) => g.list({ account: 'a', page: 2 }),
    'invalid_request',
    unknown('page', 'cursor'),
    'did you mean cursor?',
  ],
  [
    'search in list',
    (g) => g.list({ account: 'a', search: 'x' }),
    'invalid_request',
    unknown('search', 'name'),
    'did you mean name?',
  ],
  [
    'status in list',
    (g) => g.list({ account: 'a', status: 'x' }),
    'invalid_request',
    unknown('status', 'state'),
    'did you mean state?',
  ],
  [
    'cascade in revoke',
    () => tokens.revoke('a', NO_ID, { cascade: true } as never),
    'invalid_request',
    unknown('cascade', 'descendants'),
    'did you mean descendants?',
  ],
  [
    'gracePeriod in rotate',
    () => tokens.rotate('a', NO_ID, { gracePeriod: 1 } as never),
    'invalid_request',
    unknown('gracePeriod', 'graceSeconds'),
    'did you mean graceSeconds?',
  ],
  [
    'hash in import',
    (g) => g.import({ digest: undefined, hash: 'a' }),
    'invalid_request',
    unknown('hash', 'digest'),
    'did you mean digest?',
  ],
  [
    'expiresIn in import',
    (g) => g.import({ expiresIn: '30d' }),
    'invalid_request',
    unknown('expiresIn', 'expiresAt'),
    'did you mean expiresAt?',
  ],
  [
    'days in purge',
    () => tokens.purge({ days: 90 } as never),
    'invalid_request',
    unknown('days', 'before'),
    'did you mean before?',
  ],
  [
    'a Date for purge',
    () => tokens.purge(new Date() as never),
    'invalid_request',
    undefined,
    'purge takes an object { before, limit }; got 2',
  ],
  [
    'ip in verify',
    (g) => g.verify({ scope: SCOPE }, { ip: '192.0.2.1' }),
    'invalid_request',
    unknown('ip', 'address'),
    'did you mean address?',
  ],
  [
    'per in a rate',
    (g) => g.issue({ limits: { rate: { uses: 1, per: 60 } } }),
    'invalid_limits',
    { ...of('limits.rate'), ...unknown('per', 'seconds') },
    'did you mean seconds?',
  ],
  [
    'ips in limits',
    (g) => g.issue({ limits: { ips: [] } }),
    'invalid_limits',
    { ...of('limits'), ...unknown('ips', 'addresses') },
    'did you mean addresses?',
  ],
  [
    'one address in limits',
    (g) => g.issue({ limits: { addresses: '192.0.2.1' } }),
    'invalid_limits',
    of('limits.addresses'),
    'a list, as ["203.0.113.7"]; got a text',
  ],
];

const SCOPES: readonly Row[] = [
  [
    'a text',
    (g) => g.issue({ scopes: SCOPE }),
    'scopes_required',
    of('scopes'),
    'got a text: put it into a list',
  ],
  [
    'a text of several',
    (g) => g.issue({ scopes: `${SCOPE}, ${SCOPE}` }),
    'scopes_required',
    of('scopes'),
    'got a text: split it',
  ],
  [
    'a Set',
    (g) => g.issue({ scopes: new Set([SCOPE]) }),
    'scopes_required',
    of('scopes'),
    'got a Set: give [...set]',
  ],
  [
    'a text to derive',
    (g) => g.derive({ scopes: SCOPE }),
    'scopes_required',
    of('scopes'),
    'got a text: put it into a list',
  ],
  [
    'a text to modify',
    (g) => g.modify({ scopes: SCOPE }),
    'scopes_required',
    of('scopes'),
    'got a text: put it into a list',
  ],
  [
    'a text to remove',
    (g) => g.patch({ removeScopes: SCOPE }),
    'scopes_required',
    of('removeScopes'),
    'got a text: put it into a list',
  ],
  [
    'a text to import',
    (g) => g.import({ scopes: SCOPE }),
    'scopes_required',
    of('scopes'),
    'got a text: put it into a list',
  ],
  [
    'a text for a catalog',
    () => ScopeCatalog.from(SCOPE),
    'scopes_required',
    undefined,
    'got a text: put it into a list',
  ],
  [
    'a text to defineCatalog',
    () => defineCatalog(SCOPE as never),
    'scopes_required',
    undefined,
    'got a text: put it into a list',
  ],
];

const always = 'every token expires, after 365 days at the latest';

const TIMES: readonly Row[] = [
  ...(
    [
      ['30 days', '30d'],
      ['1y', '365d'],
      ['1 year', '365d'],
      ['1w', '7d'],
      ['6mo', '180d'],
      ['1h30m', '90m'],
      ['1.5h', '90m'],
      ['30D', '30d'],
      ['P30D', '30d'],
    ] as const
  ).map(
    ([given, right]): Row => [
      `expiresIn ${given}`,
      (g) => g.issue({ expiresIn: given }),
      'invalid_ttl',
      of('expiresIn'),
      `: write "${right}"`,
    ],
  ),
  [
    'another unit',
    (g) => g.issue({ expiresIn: '3 moons' }),
    'invalid_ttl',
    of('expiresIn'),
    'with its unit (s, m, h or d), such as "30d"',
  ],
  ['expiresIn null', (g) => g.issue({ expiresIn: null }), 'invalid_ttl', of('expiresIn'), always],
  [
    'expiresIn never',
    (g) => g.patch({ expiresIn: 'never' }),
    'invalid_ttl',
    of('expiresIn'),
    always,
  ],
  [
    'an instant as expiresIn',
    (g) => g.modify({ expiresIn: later }),
    'invalid_ttl',
    of('expiresIn'),
    'an instant is given as expiresAt',
  ],
  [
    'ttlSeconds 30d',
    (g) => g.issue({ ttlSeconds: '30d' }),
    'invalid_ttl',
    { member: 'ttlSeconds', min: 1, max: 31_536_000 },
    ': give 2592000',
  ],
  [
    'graceSeconds 1h',
    () => tokens.rotate('a', NO_ID, { graceSeconds: '1h' } as never),
    'invalid_request',
    { member: 'graceSeconds', min: 0, max: 31_536_000 },
    ': give 3600',
  ],
  [
    'expiresAt null',
    (g) => g.issue({ expiresAt: null }),
    'invalid_expire',
    of('expiresAt'),
    always,
  ],
  [
    'expiresAt null in patch',
    (g) => g.patch({ expiresAt: null }),
    'invalid_expire',
    of('expiresAt'),
    always,
  ],
  [
    'expiresAt null in import',
    (g) => g.import({ expiresAt: null }),
    'invalid_expire',
    of('expiresAt'),
    always,
  ],
  [
    'expiresAt as a date',
    (g) => g.issue({ expiresAt: '2027-01-01' }),
    'invalid_expire',
    of('expiresAt'),
    ': give new Date("2027-01-01")',
  ],
  [
    'expiresAt as milliseconds',
    (g) => g.derive({ scopes: [SCOPE], expiresAt: 1_800_000_000_000 }),
    'invalid_expire',
    of('expiresAt'),
    ': give new Date(1800000000000)',
  ],
  [
    'expiresAt as seconds',
    (g) => g.modify({ expiresAt: 1_800_000_000 }),
    'invalid_expire',
    of('expiresAt'),
    ': give new Date(1800000000 * 1000)',
  ],
  [
    'expiresAt 30d',
    (g) => g.issue({ expiresAt: '30d' }),
    'invalid_expire',
    of('expiresAt'),
    ': give new Date(Date.now() + 2592000 * 1000)',
  ],
  [
    'before as a date',
    () => tokens.purge({ before: '2027-01-01' } as never),
    'invalid_request',
    of('before'),
    ': give new Date("2027-01-01")',
  ],
];

const METADATA: readonly Row[] = (
  [
    [
      { at: new Date(0) },
      'metadata.at must be JSON; got 1970-01-01T00:00:00Z (0 in UNIX seconds): give its toISOString()',
    ],
    [
      { a: { b: undefined } },
      'metadata.a.b must be JSON; got undefined: leave it out, or give null',
    ],
    [{ n: 5n }, 'got a bigint: give String(value)'],
    [{ n: Number.NaN }, 'got NaN: give null or a text'],
    [{ m: new Map() }, 'got a Map: give Object.fromEntries(map)'],
    [{ s: new Set() }, 'got a Set: give [...set]'],
    ['{"a":1}', 'got a text: give JSON.parse(text)'],
  ] as const
).map(
  ([metadata, cure]): Row => [
    `metadata ${String(cure)}`,
    (g) => g.issue({ metadata }),
    'invalid_request',
    of('metadata'),
    cure,
  ],
);

const NEEDS: readonly Row[] = [
  [
    'path',
    (g) => g.verify({ method: 'GET', domain: 'shop.example', path: '/a' }),
    'invalid_request',
    unknown('path', 'target'),
    'did you mean target?',
  ],
  [
    'url',
    (g) => g.explain({ method: 'GET', url: 'https://shop.example/a' }),
    'invalid_request',
    unknown('url', 'target'),
    'did you mean target?',
  ],
  [
    'host',
    (g) => g.verify({ method: 'GET', host: 'shop.example', target: '/a' }),
    'invalid_request',
    unknown('host', 'domain'),
    'did you mean domain?',
  ],
  [
    'scopes',
    (g) => g.verify({ scopes: [SCOPE] }),
    'invalid_request',
    unknown('scopes', 'scope'),
    'did you mean scope?',
  ],
  [
    'a request',
    (g) => g.verify(new Request('https://shop.example/a')),
    'invalid_request',
    unknown('url', 'target'),
    'did you mean target?',
  ],
  [
    'a bare scope',
    (g) => g.verify(SCOPE),
    'invalid_request',
    undefined,
    'got a text: give { scope: text }',
  ],
  ['nothing', (g) => g.verify(undefined), 'invalid_request', undefined, 'got undefined'],
  [
    'half a request',
    (g) => g.verify({ method: 'GET', domain: 'shop.example' }),
    'invalid_request',
    of('target'),
    'target is missing',
  ],
  [
    'a list of scopes',
    (g) => g.verify({ scope: [SCOPE] }),
    'invalid_scope',
    undefined,
    'must be a string like "GET:shop.example/orders"; got a list',
  ],
  [
    'an unset scope',
    (g) => g.verify({ scope: undefined }),
    'invalid_scope',
    undefined,
    '; got undefined',
  ],
  [
    'a need of two kinds',
    (g) => g.verify({ scope: SCOPE, method: 'GET' }),
    'invalid_request',
    undefined,
    'not a part of each',
  ],
];

const ARGUMENTS: readonly Row[] = [
  [
    'an id alone',
    () => tokens.revoke(NO_ID, undefined as never),
    'invalid_request',
    of('valueOrId'),
    'give the account first, and then the value or id',
  ],
  [
    'a token for its id',
    () => tokens.get('a', { id: NO_ID } as never),
    'invalid_request',
    of('valueOrId'),
    'got an object: give token.id',
  ],
  [
    'a number for the id',
    () => tokens.patch('a', 7 as never, { name: 'x' }),
    'invalid_request',
    of('valueOrId'),
    'got a number',
  ],
  [
    'a number for the account',
    () => tokens.revokeAll(7 as never),
    'invalid_request',
    of('account'),
    'got a number: give String(id)',
  ],
  [
    'no request for a guard',
    (g) => g.guard({})(undefined as never),
    'invalid_request',
    undefined,
    'a request of Fetch or of Node, with its headers; got undefined',
  ],
  [
    'a header for a guard',
    (g) => g.guard({})('Bearer x' as never),
    'invalid_request',
    undefined,
    'got a text',
  ],
  [
    'limits without counts',
    () => plain.issue({ account: 'a', scopes: [SCOPE], limits: { uses: 1 } }),
    'invalid_limits',
    of('limits.uses'),
    'create it with the option limits: true',
  ],
];

const HTTP: readonly Row[] = [
  [
    'auth',
    (g) => g.handler({ auth() {} }),
    'invalid_options',
    unknown('auth', 'authenticate'),
    'did you mean authenticate?',
  ],
  [
    'path',
    (g) => g.handler({ path: '/auth' }),
    'invalid_options',
    unknown('path', 'basePath'),
    'did you mean basePath?',
  ],
  [
    'an object for authenticate',
    (g) => g.handler({ authenticate: {} }),
    'invalid_options',
    of('authenticate'),
    'such as fixedAccounts([{ username, password }]); got an object',
  ],
  [
    'nobody who signs in',
    (g) => g.handler({ authenticate: undefined }),
    'invalid_options',
    undefined,
    'or give session',
  ],
  [
    'a service for the options',
    () => tokenHandler(tokens as never),
    'invalid_options',
    of('tokens'),
    'tokens must be a TokenService; got undefined',
  ],
  [
    'host of a guard',
    (g) => g.guard({ domain: undefined, host: 'a.example' }),
    'invalid_options',
    unknown('host', 'domain'),
    'did you mean domain?',
  ],
  [
    'service of a guard',
    (g) => g.guard({ service: tokens }),
    'invalid_options',
    unknown('service', 'tokens'),
    'did you mean tokens?',
  ],
  [
    'a list for the catalog of a guard',
    (g) => g.guard({ catalog: [SCOPE] }),
    'invalid_options',
    of('catalog'),
    'give ScopeCatalog.from([…])',
  ],
  [
    'a URL for a domain',
    (g) => g.guard({ domain: 'https://shop.example' }),
    'invalid_options',
    of('domain'),
    'without https://',
  ],
  [
    'an account without a name',
    () => fixedAccounts([{ password: 'x' } as never]),
    'invalid_options',
    undefined,
    'accounts[0].username must be 1 to 255 bytes of text without ":"; got undefined',
  ],
  [
    'user for a name',
    () => fixedAccounts([{ user: 'a', password: 'x' } as never]),
    'invalid_options',
    undefined,
    'did you mean username?',
  ],
  [
    'pass for a password',
    () => fixedAccounts([{ username: 'a', pass: 'x' } as never]),
    'invalid_options',
    undefined,
    'did you mean password?',
  ],
  [
    'an unset password',
    () => fixedAccounts([{ username: 'a', password: undefined }]),
    'invalid_options',
    undefined,
    'got neither: is the variable set?',
  ],
  [
    'one account',
    () => fixedAccounts({ username: 'a', password: 'x' } as never),
    'invalid_options',
    undefined,
    'a list of at least one { username, password }; got an object',
  ],
];

/** The error of a call, thrown at once or by its promise. */
async function errorOf(
  call: () => unknown,
): Promise<{ code: unknown; message: string; details?: unknown }> {
  try {
    await call();
  } catch (error) {
    const isOurs = isTokenError(error) || (error as Error).name === 'ScopeError';
    if (isOurs) return error as TypeError & { code: unknown };
    throw error;
  }
  throw new Error('it was accepted');
}

describe.each<[string, readonly Row[]]>([
  ['keys', KEYS],
  ['options of the service', OPTIONS],
  ['members of inputs', INPUTS],
  ['lists of scopes', SCOPES],
  ['times', TIMES],
  ['metadata', METADATA],
  ['needs', NEEDS],
  ['arguments', ARGUMENTS],
  ['options over HTTP', HTTP],
])('a mistake in %s', (_, rows) => {
  it.each(rows)('says what is right: %s', async (__, call, code, details, cure) => {
    const error = await errorOf(() => call(GOOD));

    expect({ code: error.code, details: error.details }).toEqual({ code, details });
    expect(error.message).toContain(cure);
  });
});

describe('the right calls', () => {
  it('are accepted (the control)', async () => {
    const key = generateKey();
    expect(
      GOOD.service({ keys: [key], catalog: ScopeCatalog.from([SCOPE]), usage: true }),
    ).toBeInstanceOf(TokenService);
    const metadata = { at: new Date(0).toISOString(), n: null };
    const { id } = await GOOD.issue({ expiresIn: '30d', metadata, name: 'x' });
    expect(await tokens.get('a', id)).toMatchObject({ id });
    expect(await tokens.list({ account: 'a', name: 'x' })).toMatchObject({ tokens: [{ id }] });
    expect(
      await GOOD.verify({ method: 'GET', domain: 'shop.example', target: '/a' }),
    ).toMatchObject({ ok: false });
    expect(await GOOD.import({})).toMatchObject({ account: 'a' });
    expect(GOOD.guard({})).toBeTypeOf('function');
    expect(GOOD.handler({})).toBeTypeOf('function');
  });
});

describe('an account and a token that are swapped', () => {
  it.each<[string, (token: string, account: string) => Promise<unknown>]>([
    ['revoke', (first, second) => plain.revoke(first, second)],
    ['get', (first, second) => plain.get(first, second)],
    ['patch', (first, second) => plain.patch(first, second, { name: 'x' })],
    ['modify', (first, second) => plain.modify(first, second, { scopes: [SCOPE] })],
    ['rotate', (first, second) => plain.rotate(first, second)],
    ['explain', (first, second) => plain.explain(first, second, { scope: SCOPE })],
  ])('are noticed by %s, for an id and for a value', async (_, call) => {
    const { id, value } = await plain.issue({ account: 'a', scopes: [SCOPE] });

    for (const token of [id, value]) {
      const error = await errorOf(() => call(token, 'a'));
      expect(error).toMatchObject({ code: 'invalid_request', details: { member: 'account' } });
      expect(error.message).toContain('they are swapped');
    }
  });

  it('are not suspected of an account that looks like an id', async () => {
    const { id } = await plain.issue({ account: 'a', scopes: [SCOPE] });

    expect(await plain.revoke(NO_ID, 'a')).toBe(false);
    expect(await plain.get(id, 'b')).toBeUndefined();
  });
});

describe('a method without its service', () => {
  const { issue, verify, listAll, allows, verifySync, review } = plain;

  it.each<[string, () => unknown]>([
    ['issue', () => issue({ account: 'a', scopes: [SCOPE] })],
    ['verify', () => verify('x', { scope: SCOPE })],
    ['allows', () => allows('x', { scope: SCOPE })],
    ['verifySync', () => verifySync('x', { scope: SCOPE })],
    ['listAll', () => listAll({ account: 'a' }).next()],
    ['review', () => review().next()],
  ])('says how to call it: %s', async (_, call) => {
    const error = await errorOf(call);

    expect(error.code).toBe('invalid_request');
    expect(error.message).toContain('call tokens.issue(…), not issue(…)');
  });

  it('works if it is bound (the control)', async () => {
    const bound = plain.issue.bind(plain);
    expect(await bound({ account: 'a', scopes: [SCOPE] })).toMatchObject({ account: 'a' });
  });
});

describe('a call after close', () => {
  const LATE: readonly [string, (service: TokenService) => Promise<unknown>][] = [
    ['issue', (late) => late.issue({ account: 'a', scopes: [SCOPE] })],
    ['list', (late) => late.list({ account: 'a' })],
    ['get', (late) => late.get('a', NO_ID)],
    ['patch', (late) => late.patch('a', NO_ID, { name: 'x' })],
    ['modify', (late) => late.modify('a', NO_ID, { scopes: [SCOPE] })],
    ['rotate', (late) => late.rotate('a', NO_ID)],
    ['revoke', (late) => late.revoke('a', NO_ID)],
    ['revokeAll', (late) => late.revokeAll('a')],
    ['usage', (late) => late.usage('a', NO_ID)],
    ['purge', (late) => late.purge({ before: new Date(0) })],
    ['review', (late) => late.review().next()],
  ];

  it.each(LATE)('fails with the reason closed: %s', async (_, call) => {
    const { tokens: late } = setUp({ usage: true, limits: true });
    await late.close();

    expect(await errorOf(() => call(late))).toMatchObject({
      code: 'store_unavailable',
      details: { reason: 'closed' },
    });
  });

  it('fails alike for the value of a limited token, which was accepted before', async () => {
    const { tokens: late } = setUp({ limits: true });
    const { value } = await late.issue({ account: 'a', scopes: [SCOPE], limits: { uses: 3 } });
    expect(await late.allows(value, { scope: SCOPE })).toBe(true);
    await late.close();

    expect(await errorOf(() => late.verify(value, { scope: SCOPE }))).toMatchObject({
      details: { reason: 'closed' },
    });
  });
});
