// Everything that takes input from strangers, with the rules that must hold for any input. Inputs are valid
// ones with a few small defects: the first check would refuse entirely random ones.

import { bearerGuard, type GuardedRequest, tokenHandler } from '../../src/http/index.ts';
import { readBasic } from '../../src/http/sign-in/basic-auth.ts';
import {
  isTokenError,
  MemoryTokenStore,
  redact,
  type TokenPage,
  TokenService,
} from '../../src/index.ts';
import { readRequest, ScopeCatalog, ScopeSet, safeParseScope } from '../../src/scope/index.ts';
import { manualClock } from '../../src/testing/index.ts';
import type { Random } from './random.ts';
import { denotes, isHost, PlainReader, type PlainScope, scopeOf, segmentsOf } from './reference.ts';

/** Tries one input; throws an error that names a broken rule. */
export type Attempt = (random: Random) => void | Promise<void>;

/** Sets up a new state for a block of inputs. */
export type Surface = (random: Random) => Attempt | Promise<Attempt>;

/** The functions under test, which a test can replace by ones with a defect. */
export interface Subjects {
  readonly safeParseScope: typeof safeParseScope;
  readonly readRequest: typeof readRequest;
  readonly allows: (scopes: readonly string[]) => Pick<ScopeSet, 'allows'>;
  readonly verify: (tokens: TokenService) => TokenService['verifySync'];
  readonly guard: typeof bearerGuard;
  readonly readBasic: typeof readBasic;
  readonly list: (tokens: TokenService) => TokenService['list'];
  readonly handler: typeof tokenHandler;
  readonly redact: typeof redact;
}

export const SUBJECTS: Subjects = {
  safeParseScope,
  readRequest,
  allows: (scopes) => ScopeSet.from(scopes),
  verify: (tokens) => (value, need) => tokens.verifySync(value, need),
  guard: bearerGuard,
  readBasic,
  list: (tokens) => (input) => tokens.list(input),
  handler: tokenHandler,
  redact,
};

/** The surfaces by name. */
export const SURFACES = {
  scopes: (subjects) => () => scopeText(subjects.safeParseScope),
  targets: (subjects) => () => requestTarget(subjects.readRequest),
  decisions: (subjects) => () => decision(subjects),
  values: (subjects) => () => tokenValue(subjects),
  guard: (subjects) => () => guardedRequest(subjects),
  basic: (subjects) => () => basicCredentials(subjects.readBasic),
  cursors: (subjects) => () => listCursor(subjects),
  http: (subjects) => (random) => serviceRequest(subjects, random),
  forms: (subjects) => () => formRequest(subjects),
  log: (subjects) => () => logLine(subjects.redact),
} as const satisfies Record<string, (subjects: Subjects) => Surface>;

export type SurfaceName = keyof typeof SURFACES;

function must(holds: boolean, rule: string, ...input: readonly unknown[]): asserts holds {
  if (!holds) throw new Error(`${rule}: ${JSON.stringify(input)}`);
}

const METHODS = ['GET', 'HEAD', 'POST', 'M-SEARCH', '*', 'PUT'];
const DOMAINS = ['shop.example', 'a.shop.example', '*.shop.example', '*.example', '*', 'xn--9.d'];
const SEGMENTS = ['orders', 'a', 'b', '__proto__', 'a.b', '7', 'x-y', 'A', "it's", 'constructor'];
const PATHS = [
  'orders',
  'orders/7',
  'a',
  'a/b',
  'a/b/c',
  '*',
  '__proto__',
  'constructor/a',
  "it's",
  'orders$',
  'orders/{}',
  'orders/{id}$',
  '{}/b',
  'a/{}/c',
  '$',
];

function scopeNear(random: Random): string {
  return `${random.pick(METHODS)}:${random.pick(DOMAINS)}/${random.pick(PATHS)}`;
}

function scopeText(parse: Subjects['safeParseScope']): Attempt {
  return (random) => {
    const text = random.spoil(scopeNear(random));
    const value = random.oneIn(500) ? [text] : text;
    const reading = parse(value as string);
    const expected = scopeOf(value);
    must(
      reading.ok === (expected !== undefined),
      'accepts a text if and only if it is a scope',
      value,
    );
    if (reading.ok) {
      const { method, domain, path } = reading.scope;
      must(
        `${reading.scope}` === canonical(expected as PlainScope),
        'keeps the meaning of the text',
        text,
      );
      must(
        canonical({ method, domain, path }) === `${reading.scope}`,
        'has the parts that its text shows',
        text,
      );
      return;
    }
    const { suggestion } = reading;
    if (suggestion === undefined) return;
    const repaired = scopeOf(suggestion);
    must(
      repaired !== undefined && repaired.path !== '*',
      'suggests a scope without a path wildcard',
      text,
    );
    const isSafe = REPAIRS.some((repair) => folded(repair(text)) === folded(suggestion));
    must(isSafe, 'suggests only safe repairs', text, suggestion);
  };
}

const canonical = ({ method, domain, path }: PlainScope) => `${method}:${domain}/${path}`;

const folded = (text: string): string => text.toLowerCase().replace(/\{[^{}/]+\}/g, '{}');

const REPAIRS: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => text.replace(/\/\*$/, ''),
  (text) => text.replace(/\/(\$?)$/, '$1'),
  (text) => text.replace(/\/\*(?=\/|\$?$)/g, '/{}'),
];

function targetNear(random: Random): string {
  const segments = random.some(4, () => random.pick(SEGMENTS));
  const query = random.oneIn(4) ? `?${random.pick(SEGMENTS)}=${random.pick(SEGMENTS)}` : '';
  return `/${segments.join('/')}${random.oneIn(8) && segments.length > 0 ? '/' : ''}${query}`;
}

const HOSTS = ['shop.example', 'a.shop.example', 'b.a.shop.example', 'example', 'evilshop.example'];

function requestTarget(read: Subjects['readRequest']): Attempt {
  return (random) => {
    const plain = targetNear(random);
    const target = random.oneIn(1000) ? ([plain] as unknown as string) : random.spoil(plain);
    const method = random.oneIn(20) ? random.spoil('GET') : 'GET';
    const domain = random.oneIn(20) ? random.spoil('Shop.Example') : 'Shop.Example';
    const reading = read({ method, domain, target });
    const isRight = target === plain && method === 'GET' && domain === 'Shop.Example';
    if (!reading.ok) {
      must(!isRight, 'accepts a plain request', target);
      must(/^[a-z_]+$/.test(reading.reason), 'gives a reason in snake_case', target);
      return;
    }
    const { request } = reading;
    must(
      isHost(domain, 253) && request.domain === domain.toLowerCase(),
      'accepts only hosts, in lower case',
      domain,
    );
    must(
      request.method === method && !method.includes('*'),
      'keeps the method and accepts no wildcard',
      method,
    );
    const segments = request.path === '' ? [] : request.path.split('/');
    // The URL standard encodes these two, so it reads the raw and the encoded form the same way.
    const standard = segments.join('/').replaceAll('%5E', '^').replaceAll('%7C', '|');
    must(
      standard === segmentsOf(target).join('/'),
      'reads the path as the URL standard does',
      target,
    );
    for (const segment of segments) {
      const decoded = decodeURIComponent(segment);
      const isPlain = segment !== '' && !/^\.+$/.test(decoded) && !UNSAFE.test(decoded);
      must(isPlain, 'rejects paths that another server could read differently', target);
    }
    const again = read({ method, domain, target: `/${request.path}` });
    must(
      again.ok && again.request.path === request.path,
      'reads its own output the same way',
      target,
    );
  };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for control characters
const UNSAFE = /[/\\;\u0000-\u001f\u007f-\u009f]/;

const ASKED = 20;

function decision({ allows }: Subjects): Attempt {
  let left = 0;
  let texts: string[] = [];
  let scopes: PlainScope[] = [];
  let set: Pick<ScopeSet, 'allows'>;
  return (random) => {
    if (left === 0) {
      texts = random.some(12, () => scopeNear(random));
      scopes = texts.map((text) => scopeOf(text) as PlainScope);
      set = allows(texts);
      left = ASKED;
    }
    left -= 1;
    const method = random.pick(METHODS);
    const domain = random.pick(HOSTS);
    const plain = targetNear(random);
    const target = random.oneIn(2) ? plain : random.spoil(plain);
    const asked = { method, domain, target };
    const answer = set.allows(asked);
    if (!answer.allowed && answer.reason !== 'not_covered') {
      must(
        target !== plain || method === '*',
        'does not refuse a plain request as malformed',
        asked,
      );
      return;
    }
    const segments = segmentsOf(target);
    const isDenoted = (scope: PlainScope) => denotes(scope, method, domain, segments);
    must(
      answer.allowed === scopes.some(isDenoted),
      'allows exactly what the scopes cover',
      texts,
      asked,
    );
    if (answer.allowed) {
      const by = `${answer.by}`;
      const held = scopes.find((scope) => canonical(scope) === by);
      must(held !== undefined, 'names one of the scopes', texts, by);
      must(isDenoted(held), 'names a scope that covers the request', asked, by);
    }
  };
}

const SECRET = Buffer.from(Array.from({ length: 32 }, (_, i) => i)).toString('base64url');
const READER = new PlainReader(SECRET, 'k1', 'acme');
const HELD = 'GET:shop.example/orders';
const NEED = { scope: HELD };
const CATALOG = [HELD, 'POST:shop.example/orders', 'GET:shop.example/items', 'GET:b.example/x'];

interface Service {
  readonly tokens: TokenService;
  readonly store: MemoryTokenStore;
  /** A live token of ada, one of bob, and the values of an expired and a revoked one. */
  readonly ada: { readonly id: string; readonly value: string };
  readonly bob: { readonly id: string; readonly value: string };
  readonly ended: readonly string[];
  close(): Promise<void>;
}

async function service(maxStaleMs: number): Promise<Service> {
  const store = new MemoryTokenStore();
  const clock = manualClock();
  const tokens = new TokenService({
    store,
    keys: [{ kid: 'k1', secret: SECRET, status: 'active' }],
    prefix: 'acme',
    clock,
    catalog: ScopeCatalog.from(CATALOG),
    ...(maxStaleMs > 0 && { cache: { maxStaleMs } }),
  });
  const issue = (account: string, ttlSeconds = 1000) =>
    tokens.issue({ account, scopes: [HELD], ttlSeconds });
  const [ada, bob, expired, revoked] = [
    await issue('ada'),
    await issue('bob'),
    await issue('ada', 1),
    await issue('ada'),
  ];
  await tokens.revoke('ada', revoked.id);
  clock.advance(1);
  for (const { value } of [ada, expired, revoked]) await tokens.verify(value, NEED);
  const ended = [expired.value, revoked.value];
  return { tokens, store, ada, bob, ended, close: () => tokens.close() };
}

/** A valid value, one with small defects, or one with a valid tag but another body. */
function valueNear(random: Random, { ada, bob, ended }: Service): string {
  const value = random.pick([ada.value, ada.value, ada.value, bob.value, ...ended]);
  if (!random.oneIn(8)) return random.spoil(value);
  // Somebody who has only the tag key could forge this tag.
  const at = 8 + random.below(49);
  const untagged = value.slice(0, at) + random.pick(['0', 'Z', 'z', 'a']) + value.slice(at + 1, -6);
  return untagged + READER.tagOf(untagged);
}

async function tokenValue({ verify }: Subjects): Promise<Attempt> {
  const made = await service(60_000);
  const ask = verify(made.tokens);
  const { value: good } = made.ada;
  const needs = [NEED, NEED, { scope: 'GET:shop.example/orders/7' }, { scope: 'GET:a.d/x' }];
  return (random) => {
    const value = random.oneIn(1000) ? ([good] as unknown as string) : valueNear(random, made);
    const need = random.pick(needs);
    const verdict = ask(value, need);
    const isCovered = need !== needs[3];
    must(
      (verdict?.ok === true) === (value === good && isCovered),
      'accepts the live value and no other',
      value,
    );
    if (verdict === undefined) {
      must(READER.isValue(value), 'asks the store only for values with a valid tag', value);
      return;
    }
    if (verdict.ok)
      return must(verdict.token.account === 'ada', 'returns the account of the token', value);
    const isMalformed = verdict.reason === 'malformed';
    must(
      isMalformed === !READER.isValue(value),
      'reports malformed if and only if the value is',
      value,
    );
    must(!('token' in verdict), 'reveals nothing about a refused token', value);
  };
}

const AUTHORIZATIONS = ['Bearer ', 'Bearer ', 'Bearer ', 'bearer ', 'BEARER  ', 'Basic ', ''];

async function guardedRequest({ guard }: Subjects): Promise<Attempt> {
  const made = await service(60_000);
  const decide = guard({ tokens: made.tokens, domain: 'shop.example' });
  const { value: good } = made.ada;
  const held = scopeOf(HELD) as PlainScope;
  return async (random) => {
    const plain = random.oneIn(2) ? '/orders/7' : targetNear(random);
    const target = random.oneIn(2) ? plain : random.spoil(plain);
    const value = random.oneIn(2) ? good : valueNear(random, made);
    const scheme = random.pick(AUTHORIZATIONS);
    const authorization = random.oneIn(4) ? random.spoil(scheme + value) : scheme + value;
    const headers = { authorization };
    const rawHeaders = [random.pick(['Authorization', 'authorization']), authorization];
    if (random.oneIn(10)) rawHeaders.push('AUTHORIZATION', random.pick([authorization, 'Basic x']));
    const method = random.oneIn(10) ? random.spoil('GET') : 'GET';
    const request = random.oneIn(20)
      ? fetchRequest(method, target, authorization)
      : { method, url: target, headers, rawHeaders };
    if (request === undefined) return;
    const decided = decide(request as GuardedRequest);
    const outcome = decided instanceof Promise ? await decided : decided;
    const isFetch = request instanceof Request;
    const isPlainCall =
      target === '/orders/7' && method === 'GET' && authorization === `Bearer ${good}`;
    if (!outcome.ok) {
      must(!isPlainCall || rawHeaders.length > 2, 'allows the valid call', authorization, target);
      const { status, headers: sent } = outcome.response;
      must(
        status === 400 || status === 401 || status === 403,
        'refuses with 400, 401 or 403',
        status,
      );
      const challenge = sent.get('www-authenticate') ?? '';
      must(challenge.startsWith('Bearer realm="shop.example"'), 'sends a challenge', challenge);
      must(!challenge.includes(good.slice(-33, -6)), 'reveals no secret', challenge);
      if (random.oneIn(8)) {
        const text = await outcome.response.text();
        must(!text.includes(good.slice(-33, -6)), 'reveals no secret', text);
      }
      return;
    }
    must(
      isFetch || rawHeaders.length === 2,
      'requires exactly one Authorization header',
      rawHeaders,
    );
    const presented = /^bearer( .*)$/is.exec(authorization)?.[1]?.trim();
    const isLive = presented === good || presented === made.bob.value;
    must(isLive, 'accepts only live values', authorization);
    const [path = '', query] = splitOnce(
      isFetch && !target.startsWith('/') ? `/${target}` : target,
      '?',
    );
    must(
      !new URLSearchParams(query).has('access_token'),
      'refuses a second credential in the query',
      target,
    );
    must(
      method === 'GET' && denotes(held, method, 'shop.example', segmentsOf(path)),
      'allows only what the scope covers',
      target,
    );
  };
}

function splitOnce(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

/** `undefined` if Fetch itself refuses the request or changes it. */
function fetchRequest(method: string, target: string, authorization: string): Request | undefined {
  try {
    const url = `http://localhost${target.startsWith('/') ? '' : '/'}${target}`;
    const request = new Request(url, { method, headers: { authorization } });
    return request.url === url &&
      request.headers.get('authorization') === authorization &&
      request.method === method
      ? request
      : undefined;
  } catch {
    return undefined;
  }
}

function basicOf(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

function basicCredentials(read: Subjects['readBasic']): Attempt {
  return (random) => {
    const user = random.spoil('ada');
    const password = random.spoil('correct: horse');
    const right = basicOf(user, password);
    const header = random.oneIn(2) ? right : random.spoil(right);
    const credentials = read(header);
    const isPlain = (text: string) => text.isWellFormed() && !/\p{Cc}/u.test(text);
    if (credentials === undefined) {
      const isRight = isPlain(user) && isPlain(password) && header.length < 4096;
      must(header !== right || !isRight, 'accepts valid credentials', header);
      return;
    }
    const { username, password: secret } = credentials;
    must(/^basic +[A-Za-z0-9+/]+={0,2}$/i.test(header), 'accepts only the Basic form', header);
    must(
      !username.includes(':') && isPlain(username + secret),
      'returns text without control characters',
      header,
    );
    const bytes = Buffer.from(header.slice(6), 'base64');
    must(
      bytes.equals(Buffer.from(`${username}:${secret}`)),
      'returns exactly the encoded credentials',
      header,
    );
    // Check both parts separately: each may hold half of a surrogate pair, which only together is well-formed.
    if (header !== right || !isPlain(user) || !isPlain(password)) return;
    const [first, rest] = splitOnce(`${user}:${password}`, ':');
    must(username === first && secret === rest, 'splits at the first colon', header);
  };
}

async function listCursor({ list }: Subjects): Promise<Attempt> {
  const made = await service(0);
  await made.tokens.issue({ account: 'ada', scopes: [HELD] });
  await made.tokens.issue({ account: 'bob', scopes: [HELD] });
  const filters = [{}, { scope: HELD }, { scope: HELD, match: 'covers' }] as const;
  const cursors = new Map<string, string>();
  for (const account of ['ada', 'bob']) {
    for (const filter of filters) {
      const { cursor = '' } = await made.tokens.list({ account, limit: 1, ...filter });
      cursors.set(JSON.stringify([account, filter]), cursor);
    }
  }
  const all = [...cursors.values()];
  const ask = list(made.tokens);
  return async (random) => {
    const account = random.pick(['ada', 'bob']);
    const filter = random.pick(filters);
    const cursor = random.spoil(random.pick(all));
    const own = cursors.get(JSON.stringify([account, filter])) as string;
    let page: TokenPage | undefined;
    try {
      page = await ask({ account, limit: 1, ...filter, cursor });
    } catch (error) {
      must(
        isTokenError(error) && error.code === 'invalid_request',
        'refuses with invalid_request',
        cursor,
      );
    }
    // Base64 decoders ignore spare bits and foreign characters; only the canonical spelling may be accepted.
    must(
      (page !== undefined) === (cursor === own),
      'accepts a cursor only for its account and filter',
      account,
      cursor,
    );
    const isOwners = page?.tokens.every((token) => token.account === account) ?? true;
    must(isOwners, 'does not show tokens of other accounts', account, cursor);
  };
}

const PASSWORD = 'correct horse';
const VERBS = [
  'GET',
  'GET',
  'POST',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'PROPFIND',
];
const HEADERS = [
  ['content-type', 'application/json'],
  ['content-type', 'text/plain'],
  ['content-type', 'application/json; charset=utf-8'],
  ['content-length', '3'],
  ['content-encoding', 'gzip'],
  ['if-match', '"1"'],
  ['if-match', '*'],
  ['sec-fetch-site', 'cross-site'],
  ['x-account', 'bob'],
  ['x-forwarded-user', 'bob'],
  ['x-http-method-override', 'DELETE'],
] as const;
const QUERIES = [
  ...['scope=GET:shop.example/orders', 'scope=*:*/*', 'match=covers', 'match=exact', 'limit=1'],
  ...['limit=0', 'cursor=x', 'owner=bob', 'userId=bob', 'access_token=x', 'limit=1&limit=2', 'x=y'],
];

function bodyNear(random: Random, { bob }: Service): string {
  const scopes = random.some(3, () =>
    random.oneIn(2) ? random.pick(CATALOG) : random.spoil(scopeNear(random)),
  );
  const members: Record<string, unknown> = { scopes };
  const odd = () => random.pick([0, -1, 1, 1.5, 1e12, '3600', null, true, [], {}, 4102444801]);
  const text = () => (random.oneIn(2) ? random.text() : odd());
  if (random.oneIn(3)) members['ttl'] = random.oneIn(2) ? 3600 : odd();
  if (random.oneIn(5)) members['expire'] = random.oneIn(2) ? 4102445000 : odd();
  if (random.oneIn(6)) members['name'] = text();
  if (random.oneIn(6)) members['metadata'] = random.oneIn(2) ? { [random.text()]: text() } : odd();
  if (random.oneIn(8)) members['addScopes'] = random.oneIn(2) ? [...CATALOG] : odd();
  if (random.oneIn(8)) members['removeScopes'] = random.oneIn(2) ? [random.pick(CATALOG)] : odd();
  if (random.oneIn(10)) members['graceSeconds'] = random.oneIn(2) ? 60 : odd();
  if (random.oneIn(10)) members['userId'] = 'bob';
  if (random.oneIn(10)) members[random.text()] = bob.id;
  if (random.oneIn(8)) delete members['scopes'];
  const json = JSON.stringify(members);
  if (random.oneIn(200)) return '['.repeat(random.below(20_000));
  return random.oneIn(3) ? random.spoil(json) : json;
}

async function serviceRequest({ handler }: Subjects, random: Random): Promise<Attempt> {
  const made = await service(0);
  const { tokens, store, ada, bob, ended } = made;
  const answer = handler({
    tokens,
    authenticate: ({ username, password }) =>
      password === PASSWORD && ['ada', 'bob'].includes(username) ? username : null,
    maxBodyBytes: 20_000,
    acceptLegacyBody: random.oneIn(2),
    pathTokens: random.oneIn(2) ? 'id-only' : 'any',
  });
  const names = [ada.id, ada.id, ada.value, bob.id, bob.value, ...ended, 'x'];
  const paths = [
    '/token',
    '/token',
    '/token',
    '/scopes',
    '/openapi.json',
    '/introspect',
    '/revoke',
  ];
  const right = basicOf('ada', PASSWORD);
  const secrets = [ada.value, bob.value].map((value) => value.slice(-33, -6));
  const bobs = JSON.stringify(await store.find([bob.id as never]));

  return async (random) => {
    const name = random.pick(names);
    const plain = random.oneIn(2)
      ? random.pick(paths)
      : `/token/${name}${random.oneIn(5) ? '/rotate' : ''}`;
    const query = random.oneIn(4) ? `?${random.some(2, () => random.pick(QUERIES)).join('&')}` : '';
    const path = (random.oneIn(4) ? random.spoil(plain) : plain) + query;
    const isAda = !random.oneIn(6);
    const authorization = isAda
      ? right
      : random.pick([random.spoil(right), '', `Bearer ${ada.value}`, basicOf('ada', '')]);
    const method = random.oneIn(50) ? random.spoil('GET') : random.pick(VERBS);
    const body = bodyNear(random, made);
    const more = random.oneIn(2) ? [] : random.some(2, () => random.pick(HEADERS));
    const request = toRequest(method, path, authorization, more, body);
    if (request === undefined) return;
    const response = await answer(request);
    const { status } = response;
    must(
      status >= 200 && status < 500,
      'answers every request without a 5xx status',
      method,
      path,
      body,
      status,
    );
    const text = await response.text();
    const isPublic = new URL(request.url).pathname === '/openapi.json';
    if (status >= 300) {
      must(!secrets.some((secret) => text.includes(secret)), 'reveals no secret', text);
      must(
        text === '' || JSON.parse(text).success === false,
        'reports errors in the envelope',
        text,
      );
      return;
    }
    const known = readBasic(request.headers.get('authorization'));
    must(
      isPublic || known?.password === PASSWORD,
      'serves nothing without valid credentials',
      authorization,
      path,
    );
    if (text === '' || isPublic) return;
    const isAdas = known?.username === 'ada';
    must(!isAdas || !text.includes(bob.id), 'does not show tokens of other accounts', path, text);
    const { data, scopes, expire } = JSON.parse(text);
    for (const token of [{ scopes, expire }, ...(data ?? [])]) {
      for (const scope of token.scopes ?? []) {
        must(isKnown(scope), 'grants nothing beyond the catalog', body, scope);
      }
      const latest = 4_102_444_801 + 31_536_000;
      must((token.expire ?? 0) <= latest, 'limits the lifetime to a year', body, token.expire);
    }
    const isWrite = method !== 'GET' && method !== 'HEAD';
    if (isWrite && isAdas) {
      const now = JSON.stringify(await store.find([bob.id as never]));
      must(now === bobs, 'does not change tokens of other accounts', method, path, body);
    }
  };
}

/** Whether the catalog covers a scope. Its entries have no wildcard in method and domain. */
function isKnown(scope: string): boolean {
  return CATALOG.some((entry) => scope === entry || scope.startsWith(`${entry}/`));
}

/** `undefined` if Fetch itself refuses the request. */
function toRequest(
  method: string,
  path: string,
  authorization: string,
  more: readonly (readonly [string, string])[],
  body: string,
): Request | undefined {
  const headers: [string, string][] = more.map(([name, value]) => [name, value]);
  if (authorization !== '') headers.push(['authorization', authorization]);
  const hasBody = method !== 'GET' && method !== 'HEAD';
  if (hasBody && more.length === 0) headers.push(['content-type', 'application/json']);
  try {
    const init = { method, headers, ...(hasBody && { body }) };
    return new Request(`http://localhost${path}`, init);
  } catch {
    return undefined;
  }
}

async function formRequest({ handler }: Subjects): Promise<Attempt> {
  const made = await service(0);
  const { tokens, ada, bob, ended } = made;
  const answer = handler({
    tokens,
    authenticate: () => null,
    introspection: {
      authenticate: ({ username, password }) =>
        username === 'shop' && password === PASSWORD ? username : null,
    },
    revocation: true,
    maxBodyBytes: 20_000,
  });
  const right = basicOf('shop', PASSWORD);
  const type = 'application/x-www-form-urlencoded';
  const live = new Set([ada.value, bob.value]);
  const isLive = async (value: string) => (await tokens.introspect(value)) !== undefined;

  return async (random) => {
    const value = random.oneIn(2)
      ? random.pick([ada.value, bob.value, ...ended])
      : valueNear(random, made);
    const hint = random.oneIn(4) ? '&token_type_hint=access_token' : '';
    const plain = `token=${random.oneIn(3) ? encodeURIComponent(value.toWellFormed()) : value}${hint}`;
    const body = random.oneIn(3) ? random.spoil(plain) : plain;
    const isRevocation = random.oneIn(3);
    const authorization = random.oneIn(4) ? random.spoil(right) : right;
    const path = isRevocation ? '/revoke' : '/introspect';
    const header = ['content-type', random.oneIn(20) ? random.spoil(type) : type] as const;
    // UTF-8 decoders drop a byte order mark at the start.
    const asked = new URLSearchParams(body.replace(/^\ufeff/, '')).getAll('token');
    // Revoke live values only rarely: each time, one live token less is left.
    if (isRevocation && asked.some((one) => live.has(one)) && !random.oneIn(300)) return;
    const request = toRequest('POST', path, authorization, [header], body);
    if (request === undefined) return;
    const response = await answer(request);
    must(
      response.status >= 200 && response.status < 500,
      'answers every request without a 5xx status',
      path,
      body,
    );
    const text = await response.text();
    must(!/[a-z0-9]_1[0-9A-Za-z]{57}/.test(text), 'returns no value', text);
    if (isRevocation) {
      for (const one of live) {
        if (await isLive(one)) continue;
        must(asked.includes(one), 'revokes only the tokens of the values sent', body);
        live.delete(one);
      }
      return;
    }
    if (response.status !== 200) return;
    const shown = readBasic(request.headers.get('authorization'));
    must(shown?.password === PASSWORD, 'answers only with valid credentials', authorization);
    const isActive = JSON.parse(text).active;
    must(
      isActive === (asked.length === 1 && live.has(asked[0] as string)),
      'reports exactly the live values as active',
      body,
    );
  };
}

function logLine(mask: Subjects['redact']): Attempt {
  const untagged = `acme_1k1${'V3xQpLm9Rt2WnYz7KdBc5H'}`;
  return (random) => {
    const secret = `${random.below(2 ** 32)}`.padStart(27, 'sEcReTsEcReT').slice(0, 27);
    const value = `${random.pick(['acme', 'acme_live', 'ab'])}${untagged.slice(4)}${secret}AbCd12`;
    const line = random.spoil(`GET /token/${value} 200 ${random.oneIn(3) ? value : ''}`);
    const masked = mask(line);
    must(!/[a-z0-9]_1[0-9A-Za-z]{57}/.test(masked), 'masks every value', line);
    // The mask does not recognize a value that is cut short.
    const isWhole = line.split(secret).length === line.split(value).length;
    must(!isWhole || !masked.includes(secret), 'masks every whole secret', line);
    // An underscore may be encoded, or full-width. A text that only looks like a value may be masked too.
    const hasOne = /(?:_|%(?:25)?5f|\\u005f|&#95;|\uFF3F)1[0-9A-Za-z]{57}/i.test(line);
    must(hasOne || masked === line, 'leaves a line without a value unchanged', line);
    must(mask(masked) === masked, 'changes nothing when applied again', line);
  };
}
