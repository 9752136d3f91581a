import SwaggerParser from '@apidevtools/swagger-parser';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import * as fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { fromFetch, ownForms } from '../../../src/http/request.ts';
import { TokenError, type TokenLimits } from '../../../src/index.ts';
import { covers, safeParseScope } from '../../../src/scope/index.ts';
import { runs } from '../../laws.ts';
import { ALL_METHODS, RecordingStore } from '../../support.ts';
import {
  type Answer,
  asForm,
  CATALOG,
  type CallOptions,
  EVERYTHING,
  exchangeForm,
  ORDERS,
  type SetUpOptions,
  type Setup,
  START,
  setUp,
  toRequest,
} from '../support.ts';

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly security?: readonly object[];
  readonly parameters?: readonly { readonly name: string; readonly schema: object }[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema: object }> };
  readonly responses: Record<
    string,
    {
      readonly description: string;
      readonly headers?: object;
      readonly content?: Record<
        string,
        {
          readonly schema: object;
          readonly example?: unknown;
          readonly examples?: Record<string, { readonly value: unknown }>;
        }
      >;
    }
  >;
}

const BASIC = { type: 'http', scheme: 'basic' };

interface Document {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly tags: readonly { readonly name: string }[];
  readonly security: readonly object[];
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: {
    readonly schemas: Record<string, object>;
    readonly securitySchemes: Record<string, { readonly description: string }>;
  };
}

async function describeWith(options: SetUpOptions = EVERYTHING): Promise<Document> {
  const { handler, tokens: _ } = setUp(options);
  const response = await handler(
    new Request(`http://localhost${options.basePath ?? ''}/openapi.json`),
  );
  expect(response.status).toBe(200);
  return (await response.json()) as Document;
}

function operationsOf({ paths }: Document): [method: string, path: string, Operation][] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => method !== 'parameters')
      .map(([method, operation]): [string, string, Operation] => [
        method.toUpperCase(),
        path,
        operation,
      ]),
  );
}

const VALIDATORS = new WeakMap<object, ValidateFunction>();

/** Compiles a schema of the document with Ajv, which is independent of the service. */
function validatorOf(document: Document, schema: object): ValidateFunction {
  const compiled =
    VALIDATORS.get(schema) ??
    new Ajv2020({ strict: false, formats: { 'date-time': true } }).compile({
      ...schema,
      components: document.components,
    });
  VALIDATORS.set(schema, compiled);
  return compiled;
}

describe('GET /openapi.json', () => {
  it.each<[string, SetUpOptions]>([
    ['with every feature', EVERYTHING],
    ['with no optional feature', {}],
    ['with acceptLegacyBody', { acceptLegacyBody: true }],
    ['below a base path', { ...EVERYTHING, basePath: '/auth' }],
  ])('is a valid document %s', async (_, options) => {
    const document = await describeWith(options);

    expect(document.openapi).toBe('3.1.0');
    await SwaggerParser.validate(structuredClone(document) as never);
  });

  it('does not pass validation when a required member is missing (control)', async () => {
    const { info: _, ...document } = await describeWith();

    await expect(SwaggerParser.validate(document as never)).rejects.toThrow();
  });

  it('requires no credentials and is asked for again each time', async () => {
    const { call } = setUp();

    const answer = await call('GET', '/openapi.json', { as: null });

    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(answer.headers.get('cache-control')).toBe('no-cache');
    expect(await call('POST', '/openapi.json', { as: null })).toMatchObject({ status: 405 });
  });

  it('has a version of the interface, which does not tell that of the package', async () => {
    expect((await describeWith()).info.version).toBe('1.0.0');
  });

  it('names the base path as its server, or else the directory of the document', async () => {
    expect((await describeWith({ basePath: '/auth' })).servers).toEqual([{ url: '/auth' }]);
    const [server] = (await describeWith({})).servers;
    expect(new URL(server?.url ?? '', 'http://localhost/mounted/openapi.json').pathname).toBe(
      '/mounted/',
    );
  });

  it('describes only the features that are on', async () => {
    const oauth = ['/introspect', '/revoke'];
    const pathsWith = async (options: SetUpOptions) =>
      Object.keys((await describeWith(options)).paths).filter((path) => oauth.includes(path));
    const { introspection } = EVERYTHING;

    expect(await pathsWith({})).toEqual([]);
    expect(await pathsWith({ introspection })).toEqual(['/introspect']);
    expect(await pathsWith({ revocation: true })).toEqual(['/revoke']);
    expect(JSON.stringify(await describeWith({}))).not.toMatch(/rate_limited|resourceServer/);
    expect(JSON.stringify(await describeWith())).toMatch(/rate_limited.*resourceServer/);
  });

  it('names the security scheme of each path', async () => {
    const document = await describeWith();
    const said = operationsOf(document).map(([, path, { security = document.security }]) => [
      path,
      Object.keys(security[0] ?? {}).join(),
    ]);

    expect(Object.fromEntries(said)).toEqual({
      '/token': 'account',
      '/token/derive': 'bearer',
      '/token/{token}': 'account',
      '/token/{token}/rotate': 'account',
      '/token/{token}/usage': 'account',
      '/token/{token}/advice': 'account',
      '/token/{token}/explain': 'account',
      '/review': 'account',
      '/scopes': 'account',
      '/openapi.json': '',
      '/introspect': 'resourceServer',
      '/revoke': '',
      '/oauth/token': '',
    });
  });

  it.each<[string, SetUpOptions, object]>([
    ['accounts', {}, { account: BASIC }],
    [
      'sessions',
      { session: async () => null },
      { session: { type: 'apiKey', in: 'header', name: 'x-tokenwright' } },
    ],
    [
      'accounts, bearers and resource servers',
      EVERYTHING,
      { account: BASIC, bearer: { type: 'http', scheme: 'bearer' }, resourceServer: BASIC },
    ],
  ])('describes the credentials of %s and no others', async (_, options, expected) => {
    const document = await describeWith(options);
    const { securitySchemes } = document.components;
    const described = Object.entries(securitySchemes).map(([name, { description, ...facts }]) => {
      expect(description).toMatch(/\.$/);
      return [name, facts];
    });

    expect(Object.fromEntries(described)).toEqual(expected);
    const needed = operationsOf(document).flatMap(
      ([, , { security = document.security }]) => security,
    );
    const names = Object.keys(expected);
    expect(new Set(needed.flatMap(Object.keys))).toEqual(new Set(names));
    // Only OAuth and OpenID Connect have scopes to list here.
    expect(needed.flatMap(Object.values).flat()).toEqual([]);
  });

  it.each<[string, SetUpOptions, readonly string[], readonly string[]]>([
    ['nothing optional', {}, ['tokens', 'about'], []],
    [
      'introspection',
      { introspection: EVERYTHING.introspection },
      ['tokens', 'oauth', 'about'],
      ['TokenForm'],
    ],
    [
      'revocation',
      { revocation: true },
      ['tokens', 'oauth', 'about'],
      ['Introspection', 'IntrospectionForm'],
    ],
    ['token exchange', { oauth: EVERYTHING.oauth }, ['tokens', 'oauth', 'about'], []],
  ])('has the tags and schemas of its operations, with %s', async (_, options, tags, others) => {
    const document = await describeWith(options);
    const used = operationsOf(document).flatMap(([, , operation]) => operation.tags);
    const referred = JSON.stringify(document).matchAll(/#\/components\/schemas\/(\w+)/g);
    const schemas = new Set([...referred].map(([, name]) => name));

    expect(document.tags.map(({ name }) => name)).toEqual(tags);
    expect(new Set(used)).toEqual(new Set(tags));
    // The schemas of OAuth come together.
    expect(Object.keys(document.components.schemas).sort()).toEqual([...schemas, ...others].sort());
  });

  it.each([
    [undefined, true],
    ['id-only', false],
  ] as const)(
    'describes what a path takes with pathTokens: %s',
    async (pathTokens, takesValues) => {
      const { paths } = await describeWith({ pathTokens });
      const [parameter] = Object(paths['/token/{token}']).parameters as object[];
      const { schema } = parameter as { schema: { type: string; pattern?: string } };
      const { value, id } = await setUp().issue();

      expect(schema.type).toBe('string');
      expect(new RegExp(schema.pattern ?? '').test(id)).toBe(true);
      expect(new RegExp(schema.pattern ?? '').test(value)).toBe(takesValues);
    },
  );

  it('lists for each path exactly the methods that the service allows', async () => {
    const { call, issue } = setUp(EVERYTHING);
    const { value } = await issue();
    const operations = operationsOf(await describeWith());

    for (const path of new Set(operations.map(([, target]) => target))) {
      const { headers } = await call('OPTIONS', path.replace('{token}', '0'.repeat(22)), {
        ...(path === '/token/derive' && { headers: { authorization: `Bearer ${value}` } }),
      });
      const described = operations
        .filter(([, target]) => target === path)
        .map(([method]) => method);
      const allowed = headers.get('allow')?.split(', ');
      expect(allowed?.filter((method) => method !== 'HEAD').sort()).toEqual(described.sort());
    }
  });

  it('has examples that its schemas accept', async () => {
    const document = await describeWith();
    let seen = 0;

    for (const [, , { requestBody, responses }] of operationsOf(document)) {
      const bodies = [requestBody, ...Object.values(responses)];
      for (const { schema, ...rest } of bodies.flatMap((one) =>
        Object.values(one?.content ?? {}),
      )) {
        const { example, examples = {} } = rest as {
          example?: unknown;
          examples?: Record<string, { value: unknown }>;
        };
        const shown = [example, ...Object.values(examples).map(({ value }) => value)];
        for (const value of shown.filter((one) => one !== undefined)) {
          seen += 1;
          expect(problemsOf(validatorOf(document, schema), value)).toEqual([]);
        }
      }
    }
    expect(seen).toBeGreaterThan(50);
  });
});

describe('the examples of failures', () => {
  const orders = 'GET:orders.acme.example/orders';
  const bad = (json: object): CallOptions => ({ json: { scopes: [orders], ...json } });

  it.each<[code: string, call: string, options: CallOptions, setup?: SetUpOptions]>([
    ['invalid_json', 'POST /token', { raw: '{' }],
    ['invalid_request', 'GET /token?account=ada', {}],
    ['scopes_required', 'POST /token', { json: {} }],
    ['invalid_scope', 'POST /token', bad({ scopes: ['get:orders.acme.example/orders'] })],
    ['scope_unmatched', 'POST /token', bad({ scopes: ['GET:orders.acme.example/ordres'] })],
    ['too_many_scopes', 'POST /token', bad({ scopes: Array(4097).fill(orders) })],
    ['invalid_ttl', 'POST /token', bad({ expiresIn: '900d' })],
    ['invalid_expire', 'PATCH /token/ID', { json: { expire: 3600 } }],
    ['invalid_limits', 'POST /token', bad({ limits: { addresses: ['10.0.0.1/8'] } })],
    ['not_found', `GET /token/${'0'.repeat(22)}`, {}],
    ['usage_not_recorded', 'GET /token/ID/usage', {}],
    ['unauthenticated', 'GET /token', { headers: { authorization: 'Basic ZXZlOng=' } }],
    ['cross_site', 'POST /token', { ...bad({}), headers: { 'sec-fetch-site': 'cross-site' } }],
    ['version_conflict', 'DELETE /token/ID', { headers: { 'if-match': '"4"' } }],
    ['payload_too_large', 'POST /token', { raw: ' '.repeat(1_048_577) }],
    ['uri_too_long', `GET /token?x=${'x'.repeat(20_000)}`, {}],
    ['unsupported_media_type', 'POST /token', { raw: '{}', headers: { 'content-type': 'x/y' } }],
    ['catalog_empty', 'POST /token', bad({}), { catalog: [] }],
  ])('match, for %s, the answer of %s', async (code, target, options, setup = {}) => {
    const document = await describeWith();
    const catalog = [orders];
    const { call, tokens } = setUp({
      catalog,
      authenticate: ({ username }) => (username === 'eve' ? null : username),
      ...setup,
    });
    const [method = '', path = ''] = target.split(' ');
    let id = '';
    if (path.includes('ID')) {
      ({ id } = await tokens.issue({ account: 'ada', scopes: [orders] }));
      for (const name of ['b', 'c']) await tokens.patch('ada', id, { name });
    }

    const { body } = await call(method, path.replace('ID', id), options);

    const examples = operationsOf(document)
      .flatMap(([, , { responses }]) => Object.values(responses))
      .flatMap(({ content }) => Object.values(content ?? {}))
      .flatMap(({ examples = {} }) => (code in examples ? [examples[code]?.value] : []));
    expect(examples.length).toBeGreaterThan(0);
    const expected = code === 'invalid_expire' ? withoutTime(body) : body;
    for (const example of examples) {
      expect(code === 'invalid_expire' ? withoutTime(example as typeof body) : example).toEqual(
        expected,
      );
    }
  });

  /** The latest expiry depends on the time of the call. */
  function withoutTime(body: Readonly<Record<string, unknown>>): object {
    return { ...body, details: { ...(body['details'] as object), max: expect.any(Number) } };
  }
});

function problemsOf(validate: ValidateFunction, value: unknown): unknown[] {
  return validate(value) ? [] : [value, validate.errors];
}

const ITEMS = 'GET:shop.example/items';

/** A request that succeeds for each operation; `ID` and `VALUE` stand for an existing token. */
const GOOD: Readonly<Record<string, { readonly path: string } & CallOptions>> = {
  issueToken: { path: '/token', json: { scopes: [ORDERS] } },
  deriveToken: {
    path: '/token/derive',
    as: null,
    headers: { authorization: 'Bearer VALUE' },
    json: { scopes: [ITEMS] },
  },
  listTokens: { path: '/token' },
  getToken: { path: '/token/ID' },
  replaceToken: { path: '/token/ID', json: { scopes: [ORDERS] } },
  patchToken: { path: '/token/ID', json: { addScopes: [ORDERS] } },
  revokeToken: { path: '/token/ID' },
  rotateToken: { path: '/token/ID/rotate', json: {} },
  getTokenUsage: { path: '/token/ID/usage' },
  adviseOnToken: { path: '/token/ID/advice' },
  explainToken: { path: '/token/ID/explain', json: { scope: ORDERS } },
  reviewTokens: { path: '/review' },
  listScopes: { path: '/scopes' },
  describe: { path: '/openapi.json', as: null },
  introspectToken: { path: '/introspect', ...asForm('token=VALUE') },
  revokeByValue: { path: '/revoke', as: null, ...asForm('token=VALUE') },
  exchangeToken: {
    path: '/oauth/token',
    as: null,
    ...asForm(exchangeForm('VALUE', { scope: ITEMS })),
  },
};

interface Provocation {
  readonly options?: SetUpOptions;
  readonly before?: (
    setup: Setup & { readonly store: RecordingStore; readonly value: string },
  ) => unknown;
  readonly call?: (
    good: { readonly path: string } & CallOptions,
  ) => { readonly path: string } & CallOptions;
}

const withMember = (member: string, value: unknown): Provocation => ({
  call: (good) => {
    if (good.json === undefined && good.raw === undefined) {
      return { ...good, path: `${good.path}?${member.replace(/s$/, '')}=${value}` };
    }
    return good.json === undefined
      ? good
      : { ...good, json: { ...(good.json as object), [member]: value } };
  },
});

/** A parameter that only the token endpoint reads. */
const withParameter = (name: string, value: string): Provocation => ({
  call: (good) => {
    const form = new URLSearchParams(String(good.raw));
    form.set(name, value);
    return good.path === '/oauth/token' ? { ...good, raw: String(form) } : good;
  },
});

const broken = (methods: readonly (typeof ALL_METHODS)[number][], error: Error): Provocation => ({
  before: ({ store }) => store.break(methods, () => Promise.reject(error)),
});

/** Ways to make a call fail; each is tried on every call. */
const PROVOCATIONS: readonly Provocation[] = [
  { call: (good) => ({ ...good, raw: '{', headers: { ...good.headers } }) },
  { call: (good) => ({ ...good, path: `${good.path}?token=x` }) },
  withMember('scopes', []),
  withMember('scopes', ['x']),
  withMember('scopes', ['GET:other.example/x']),
  withMember('addScopes', ['GET:other.example/x']),
  withMember(
    'scopes',
    Array.from({ length: 4097 }, (_, i) => `GET:shop.example/${i}`),
  ),
  withMember('scope', 'x'),
  withMember('ttl', 0),
  withMember('expire', 1),
  withMember('expire', '2099-12-31T23:59:59Z'),
  withMember('expiresIn', '0d'),
  withMember('limits', {}),
  withMember('unknown', 1),
  withParameter('scope', 'x'),
  withParameter('grant_type', 'password'),
  withParameter('resource', 'urn:x'),
  withParameter('client_secret', 'x'),
  { options: { quotas: { scopesPerToken: 1 } }, call: askForTwo },
  { options: { catalog: [] } },
  { options: { usage: undefined } },
  {
    options: { usage: undefined },
    call: (good) => (good.path === '/token' ? { ...good, path: '/token?unused=never' } : good),
  },
  { call: (good) => ({ ...good, path: good.path.replace('ID', '0'.repeat(22)) }) },
  { call: (good) => ({ ...good, as: null, headers: { ...good.headers } }) },
  { call: (good) => ({ ...good, as: null, headers: {} }) },
  { call: (good) => ({ ...good, headers: { ...good.headers, 'sec-fetch-site': 'cross-site' } }) },
  { before: ({ clock }) => clock.advance(31_536_000) },
  { before: limitedTo({ addresses: ['10.9.9.9'] }) },
  { options: { limits: true }, before: limitedTo({ uses: 1 }) },
  { call: (good) => ({ ...good, headers: { ...good.headers, 'if-match': '"9"' } }) },
  { options: { maxBodyBytes: 1 } },
  { call: (good) => ({ ...good, path: `${good.path}?x=${'x'.repeat(9000)}` }) },
  {
    call: (good) => ({
      ...good,
      raw: 'x',
      headers: { ...good.headers, 'content-type': 'text/csv' },
    }),
  },
  {
    options: {
      limiter: { waitSeconds: async () => 9, failed: async () => 9, succeeded: () => {} },
    },
  },
  { options: { maxInFlight: 1 }, before: ({ handler }) => fillUp(handler) },
  {
    before: ({ tokens }) => {
      const fault = () => Promise.reject(new Error('a fault'));
      const methods = [
        'issue',
        'derive',
        'list',
        'get',
        'usage',
        'advise',
        'explain',
        'reviewPage',
        'modify',
        'patch',
        'revoke',
        'rotate',
        'scopeDetails',
        'introspect',
      ] as const;
      for (const method of methods) Object.assign(tokens, { [method]: fault });
    },
  },
  {
    options: {
      authenticate: () => Promise.reject(new Error('down')),
      introspection: { authenticate: () => Promise.reject(new Error('down')) },
    },
  },
  broken(ALL_METHODS, new Error('down')),
  broken(ALL_METHODS, new TokenError('store_corrupt', 'corrupt')),
  broken(['insert', 'replace', 'revoke'], new TokenError('durability_unconfirmed', 'no replica')),
];

/** Asks for two scopes instead of one; every catalog and parent here covers both. */
function askForTwo(good: { readonly path: string } & CallOptions) {
  const { scopes } = (good.json ?? {}) as { scopes?: unknown };
  return scopes === undefined ? good : { ...good, json: { scopes: [`${ITEMS}/1`, `${ITEMS}/2`] } };
}

/** Limits the only token, and uses it once. */
function limitedTo(limits: TokenLimits): NonNullable<Provocation['before']> {
  return async ({ tokens, value }) => {
    const [token] = (await tokens.list({ account: 'ada' })).tokens;
    await tokens.patch('ada', token?.id ?? '', { limits });
    await tokens.verify(value, { scope: ITEMS });
  };
}

/** Takes the slots of callers with credentials, and of those without, by answers that nobody reads. */
async function fillUp(handler: Setup['handler']): Promise<void> {
  const unread = [
    toRequest('GET', '/scopes'),
    toRequest('POST', '/revoke', { ...asForm('token=x'), as: null }),
    toRequest('POST', '/oauth/token', { ...asForm('grant_type=x'), as: null }),
  ];
  for (const request of unread) {
    void ownForms.get(handler)?.answer?.(fromFetch(request), () => new Promise(() => {}));
  }
  await new Promise(setImmediate);
}

describe('the description of a call', () => {
  let document: Document;
  beforeAll(async () => {
    document = await describeWith();
  });

  it.each(Object.keys(GOOD))('matches how the call succeeds and fails: %s', async (operationId) => {
    const [method, , operation] = operationsOf(document).find(
      ([, , one]) => one.operationId === operationId,
    ) ?? ['', '', undefined];
    const failures = new Set<string>();

    for (const provocation of [{}, ...PROVOCATIONS]) {
      const answer = await provoked(method, operationId, provocation);
      const response = operation?.responses[answer.status];
      const schema = response?.content?.['application/json']?.schema;
      if (schema === undefined) expect(answer.text).toBe('');
      else {
        const validate = validatorOf(document, schema);
        expect(problemsOf(validate, answer.body)).toEqual([]);
        const wrong = answer.status === 200 ? [] : damaged(answer.body);
        for (const body of wrong) expect([body, validate(body)]).toEqual([body, false]);
      }
      for (const header of Object.keys(response?.headers ?? {}).filter((name) => name !== 'Link')) {
        expect(answer.headers.has(header)).toBe(true);
      }
      if (answer.status !== 200) failures.add(nameOf(answer));
    }

    // `describe` only returns a prepared document, so no provocation makes it fail with 500.
    const described = namesIn(operation).filter(
      (name) => operationId !== 'describe' || name !== '500 internal',
    );
    expect([...failures].sort()).toEqual(described);
  });

  it('exists for exactly the operations that are tested here', () => {
    const described = operationsOf(document).map(([, , { operationId }]) => operationId);

    expect(described.sort()).toEqual(Object.keys(GOOD).sort());
  });

  async function provoked(
    method: string,
    operationId: string,
    { options, before, call = (good) => good }: Provocation,
  ): Promise<Answer> {
    const store = new RecordingStore();
    const setup = setUp({
      ...EVERYTHING,
      store,
      lifetime: { defaultSeconds: 3600 },
      ...options,
      catalog: CATALOG,
    });
    const { value, id } = await setup.tokens.issue({
      account: 'ada',
      scopes: [ITEMS],
    });
    const subject =
      options?.catalog === undefined
        ? setup
        : { ...setUp({ ...EVERYTHING, store, catalog: [] }), store };
    await before?.({ ...subject, store, value });
    const { path, ...rest } = call(GOOD[operationId] ?? { path: '' });
    const raw = typeof rest.raw === 'string' ? rest.raw.replace('VALUE', value) : rest.raw;
    const headers = Object.fromEntries(
      Object.entries(rest.headers ?? {}).map(([name, text]) => [
        name,
        text.replace('VALUE', value),
      ]),
    );
    const sent =
      method === 'GET' || method === 'DELETE'
        ? { ...rest, headers, raw: undefined, json: undefined }
        : { ...rest, headers, raw };
    return subject.call(method, path.replace('ID', id), sent as CallOptions);
  }
});

/** A failure without one of its members each, and with a wrong one. */
function damaged({ details: _, ...failure }: Answer['body']): object[] {
  return Object.keys(failure).flatMap((member) => {
    const { [member]: __, ...rest } = failure;
    return [rest, { ...failure, [member]: wrongOf(member, failure[member]) }];
  });
}

/** A value of the same type, if that type has one that is wrong. */
function wrongOf(member: string, value: unknown): unknown {
  if (typeof value === 'number') return -value;
  const isFree = member === 'message' || member === 'error_description';
  return typeof value === 'string' && !isFree ? `${value}_` : value === null ? '' : null;
}

/** A failure by its status and its code, or its OAuth error. */
function nameOf({ status, body }: Answer): string {
  return `${status} ${body['code'] ?? body['error']}`;
}

function namesIn(operation: Operation | undefined): string[] {
  return Object.entries(operation?.responses ?? {})
    .filter(([status]) => status !== '200')
    .flatMap(([status, { description }]) => [
      ...new Set([...description.matchAll(/^`(\w+)`/gm)].map(([, code]) => `${status} ${code}`)),
    ])
    .sort();
}

describe('the schema of a scope', () => {
  it('accepts exactly the scopes that the service parses', async () => {
    const { components } = await describeWith({});
    const { pattern } = components.schemas['Scope'] as { pattern: string };
    const expression = new RegExp(pattern, 'u');
    const label = 'a'.repeat(63);
    const long = [label, label, label, 'a'.repeat(61)].join('.');
    const methods = [
      'GET',
      '*',
      'M-SEARCH',
      'A',
      'get',
      '',
      '-A',
      'A-',
      'A'.repeat(32),
      'A'.repeat(33),
      '**',
      'G1',
    ];
    const domains = [
      'shop.example',
      '*',
      '*.shop.example',
      'SHOP',
      'a-b.c',
      '-a.b',
      'a-.b',
      '',
      '*.',
      '*.*',
      'a..b',
      '.a',
      'a.',
      label,
      `${label}a`,
      long,
      `${long}a`,
      `*.${long.slice(2)}`,
      `*.${long}`,
      '1.2.3.4',
      'a.0x1f',
      '0x',
      'a.1b',
      '9',
      '*.9',
      'a:1',
      'a@b',
      '[::1]',
      'é',
      'a b',
      'http:',
    ];
    const paths = [
      'orders',
      '*',
      '',
      'a/b',
      'a//b',
      '/a',
      'a/',
      '.',
      '..',
      'a/./b',
      '...',
      '.a',
      'a.',
      'a*',
      'a/*',
      'a%20',
      'a?b',
      'a#b',
      '{}',
      '{a}',
      '{a-b.c_1}',
      '{a b}',
      '{a+}',
      '{+a}',
      `{${'a'.repeat(64)}}`,
      `{${'a'.repeat(65)}}`,
      'a/{}/b',
      'a/{}$',
      'a{}',
      '{}a',
      '{}{}',
      '{',
      '}',
      '{}}',
      'a/{',
      '{}/',
      '{}/*',
      '{}$$',
      '{}$/a',
      '$',
      '$$',
      '$$$',
      '$/a',
      '$/$',
      'a$',
      'a$$',
      'a/$',
      'a/$$',
      'a$/b',
      'a/b$',
      '/$',
      'a//$',
      '*$',
      '.$',
      '..$',
      '..$$',
      'a/..$',
      '..$/a',
      '...$/..$',
      'a,b',
      'a;b',
      "~!$&'()+=:@-._",
      'é',
      'a b',
      'a\n',
      'a'.repeat(512),
      'a'.repeat(513),
      Array(32).fill('a').join('/'),
      Array(33).fill('a').join('/'),
      `${Array(32).fill('a').join('/')}$`,
      `${'a'.repeat(511)}$`,
      `${'a'.repeat(512)}$`,
      Array(8).fill('{}').join('/'),
      Array(9).fill('{}').join('/'),
      `${Array(8).fill('{a}').join('/')}$`,
      `${Array(9).fill('{a}').join('/')}$`,
      `a/${Array(8).fill('{}').join('/b/')}`,
    ];
    const texts = methods.flatMap((method) =>
      domains.flatMap((domain) => paths.map((path) => `${method}:${domain}/${path}`)),
    );
    const wrong = [...texts, ...texts.map((text) => text.replace(/[:/]/, ''))].filter(
      (text) => expression.test(text) !== safeParseScope(text).ok,
    );

    expect(texts.filter((text) => expression.test(text)).length).toBeGreaterThan(300);
    expect(wrong).toEqual([]);
  });
});

/** Valid and invalid times; the valid ones are in the future. */
const TIMES = [
  '2100-06-01T12:00:00Z',
  '2100-06-01T12:00Z',
  '2100-06-01T12:00:00.5+02:00',
  '2100-06-01T12:00:00.123456789-23:59',
  '2100-06-01',
  '2100-06-01T12:00:00',
  '2100-06-01t12:00:00z',
  '2100-02-29T12:00:00Z',
  '2100-06-31T12:00:00Z',
  '2100-06-01T24:00:00Z',
  '2100-06-01T23:59:60Z',
  '2100-06-01T12:00:00+24:00',
  '2100-06-01T12:00:00Z\n',
  '12100-06-01T12:00:00Z',
];

/** Valid and invalid durations; the valid ones are short enough. */
const DURATIONS = [
  '30s',
  '059s',
  '1m',
  '0s',
  '00d',
  '30',
  '1.5h',
  '1w',
  '1M',
  '1m\n',
  '0000000001s',
];

describe('the schema of a body', () => {
  const scope = fc.constantFrom(ORDERS, '*:*/*', 'GET:*.example/*', 'get:x/y', 'x', '', 7, null);
  const scopes = fc.oneof(
    fc.array(scope, { maxLength: 3 }),
    fc.constantFrom(
      [ORDERS],
      ORDERS,
      {},
      null,
      1,
      Array(4096).fill(ORDERS),
      Array(4097).fill(ORDERS),
    ),
  );
  const any = fc.oneof(fc.jsonValue(), fc.constantFrom(0, -1, 1.5, 60, '60', null, [], {}));
  const name = fc.oneof(
    any,
    fc.constantFrom(
      'ci',
      '',
      'é',
      '\u0007',
      'a\u0085',
      '\ud800',
      '😀',
      'x'.repeat(200),
      'x'.repeat(201),
    ),
  );
  // No schema of ours says which integers JavaScript holds exactly.
  const metadata = fc
    .oneof(any, fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 2 })))
    .filter((value) => !/\d{16}|e\+/.test(JSON.stringify(value) ?? ''));
  const seconds = fc.oneof(any, fc.constantFrom(1, 60, 31_536_000, 31_536_001, 1e21, true));
  // No schema can tell whether a valid time is an allowed expiry, so other integers are left out.
  const expire = fc.oneof(
    any.filter((value) => !Number.isInteger(value)),
    fc.constantFrom(START + 1, START + 60, START + 60.5, String(START + 60), 8_640_000_000_001),
    fc.constantFrom(...TIMES),
  );
  const expiresIn = fc.oneof(seconds, fc.constantFrom(...DURATIONS));
  const parts = {
    scopes,
    addScopes: scopes,
    removeScopes: scopes,
    ttl: seconds,
    expire,
    expiresIn,
    name,
    metadata,
    graceSeconds: seconds,
    activate: fc.oneof(any, fc.constantFrom('first-use', 'now')),
    cancel: fc.oneof(any, fc.boolean()),
    endDerived: fc.oneof(any, fc.boolean()),
    nmae: any,
  };
  const body = fc.oneof(
    { weight: 9, arbitrary: fc.record(parts, { requiredKeys: [] }) },
    { weight: 1, arbitrary: any },
  );
  const MALFORMED = [
    'invalid_json',
    'invalid_request',
    'scopes_required',
    'invalid_scope',
    'too_many_scopes',
    'invalid_ttl',
    'invalid_expire',
    'invalid_limits',
  ];
  /** Bodies that often have only members of this call, so that many are accepted. */
  const near = (members: readonly (keyof typeof parts)[]) =>
    fc.oneof(
      body,
      fc.record(Object.fromEntries(members.map((member) => [member, parts[member]])), {
        requiredKeys: [],
      }),
    );

  it.each<[string, string, readonly (keyof typeof parts)[], SetUpOptions]>([
    ['issueToken', '/token', ['scopes', 'ttl', 'name', 'metadata'], {}],
    [
      'issueToken',
      '/token',
      ['scopes', 'ttl', 'name'],
      { lifetime: { defaultSeconds: 9, maxSeconds: 60 } },
    ],
    ['issueToken', '/token', ['scopes', 'expiresIn'], { lifetime: { maxSeconds: 60 } }],
    ['issueToken', '/token', ['scopes', 'expiresIn', 'expire'], {}],
    ['replaceToken', '/token/ID', ['scopes', 'expire'], {}],
    ['replaceToken', '/token/ID', ['scopes', 'expire', 'expiresIn'], {}],
    ['patchToken', '/token/ID', ['scopes', 'expire', 'name', 'metadata'], {}],
    ['patchToken', '/token/ID', ['expire', 'expiresIn'], {}],
    ['patchToken', '/token/ID', ['addScopes', 'removeScopes', 'name'], {}],
    ['rotateToken', '/token/ID/rotate', ['activate', 'graceSeconds', 'cancel'], {}],
    ['rotateToken', '/token/ID/rotate', ['graceSeconds', 'cancel', 'endDerived'], {}],
  ])('accepts exactly the bodies that are not malformed: %s %s %s %o', async (...row) => {
    const [operationId, path, members, options] = row;
    const { accepts, serviceAccepts, seen } = await compared(operationId, path, options);

    await fc.assert(
      fc.asyncProperty(near(members), async (sent) => {
        const isAccepted = accepts(sent);
        seen.add(isAccepted);
        expect({ isAccepted: await serviceAccepts(sent) }).toEqual({ isAccepted });
      }),
      // Each call accepts one of these and refuses another.
      { ...runs(0.4), examples: [[{ scopes: [ORDERS] }], [{}], [{ nmae: 1 }]] },
    );

    expect(seen).toEqual(new Set([true, false]));
  });

  it.each<[unknown, boolean]>([
    [{ scopes: [ORDERS], ttl: 0 }, true],
    [{ scopes: [ORDERS], expire: 60 }, true],
    [{ scopes: [ORDERS], expire: 0 }, false],
    [{ scopes: [ORDERS], expire: '60' }, false],
    [{ scopes: [ORDERS], expire: '2100-06-01T12:00:00Z' }, true],
    [{ scopes: [ORDERS], expire: '2100-06-01T12:00:00' }, false],
    [{ scopes: [ORDERS], expiresIn: '30d' }, true],
    [{ scopes: [ORDERS], expiresIn: '30d', ttl: 0 }, false],
    [{ scopes: [ORDERS], expiresIn: '30d', expire: 60 }, false],
    [{ scopes: [ORDERS], ttl: 60, expire: 60 }, false],
    [{ scopes: [ORDERS], ttl: -1 }, false],
  ])('agrees with the service on %j under acceptLegacyBody: %s', async (sent, isExpected) => {
    const { accepts, serviceAccepts } = await compared('issueToken', '/token', {
      acceptLegacyBody: true,
    });

    expect(accepts(sent)).toBe(isExpected);
    expect(await serviceAccepts(sent)).toBe(isExpected);
  });

  it.each([
    [{ activate: 'first-use', graceSeconds: 60 }, true],
    [{ cancel: true }, true],
    [{ cancel: true, activate: 'first-use' }, false],
    [{ cancel: true, graceSeconds: 60 }, false],
    [{ endDerived: true }, true],
    [{ endDerived: true, graceSeconds: 60 }, false],
    [{ endDerived: true, activate: 'first-use' }, false],
    [{ endDerived: true, cancel: true }, false],
    [{ endDerived: false, cancel: true }, true],
    [{ endDerived: false, graceSeconds: 60 }, true],
  ])('agrees with the service on %j for a rotation: %s', async (sent, isExpected) => {
    const { accepts, serviceAccepts } = await compared('rotateToken', '/token/ID/rotate', {});

    expect(accepts(sent)).toBe(isExpected);
    expect(await serviceAccepts(sent)).toBe(isExpected);
  });

  async function compared(operationId: string, path: string, options: SetUpOptions) {
    const document = await describeWith(options);
    const operation = operationsOf(document).find(([, , one]) => one.operationId === operationId);
    const [method = '', , described] = operation ?? [];
    const schema = described?.requestBody?.content['application/json']?.schema ?? {};
    const validate = validatorOf(document, schema);
    const { call, tokens } = setUp({ ...options, catalog: null });
    const held = 'DELETE:held.example/a';
    // A removal that leaves no scope is refused because of the token, not because of the body.
    const isLeft = (sent: unknown) => !removedFrom(sent).some((one) => coversAll(one, held));
    const seen = new Set<boolean>();
    const accepts = (sent: unknown) => validate(sent) && isLeft(sent);
    const serviceAccepts = async (sent: unknown) => {
      const { id } = await tokens.issue({ account: 'ada', scopes: [held] });
      const answer = await call(method, path.replace('ID', id), { json: sent });
      return !MALFORMED.includes(String(answer.body['code'])) && isLeft(sent);
    };
    return { accepts, serviceAccepts, seen };
  }

  function removedFrom(sent: unknown): unknown[] {
    const { removeScopes } = Object(sent) as { removeScopes?: unknown };
    return Array.isArray(removeScopes) ? removeScopes : [];
  }

  function coversAll(outer: unknown, inner: string): boolean {
    return safeParseScope(outer).ok && covers(String(outer), inner);
  }
});

describe('the schema of a query', () => {
  it.each<[string, unknown, boolean]>([
    ['limit', 1, true],
    ['limit', 100, true],
    ['limit', 0, false],
    ['limit', 101, false],
    ['limit', 1.5, false],
    ['match', 'covers', true],
    ['match', 'Covers', false],
    ['scope', ORDERS, true],
    ['scope', '', true],
    ['scope', 'x', false],
  ])('agrees with the service about %s=%s: %s', async (name, value, isExpected) => {
    const document = await describeWith({});
    const { schema = {} } =
      document.paths['/token']?.['get']?.parameters?.find((one) => one.name === name) ?? {};
    const { call } = setUp();

    expect(validatorOf(document, schema)(value)).toBe(isExpected);
    const { status } = await call(
      'GET',
      `/token?${new URLSearchParams({ [name]: String(value) })}`,
    );
    expect(status === 200).toBe(isExpected);
  });

  it('lists all parameters', async () => {
    const { paths } = await describeWith({});

    expect(paths['/token']?.['get']?.parameters?.map(({ name }) => name)).toEqual([
      'scope',
      'match',
      'state',
      'name',
      'parent',
      'domain',
      'unused',
      'createdBy',
      'sort',
      'limit',
      'cursor',
    ]);
  });
});
