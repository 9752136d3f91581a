import * as z from 'zod';
import packageJson from '../../package.json' with { type: 'json' };
import { fields } from '../input.ts';
import { type Answer, COMMON_HEADERS, type HttpErrorCode, numbersOf } from './answers.ts';
import { FORM_TYPE, oauthError } from './oauth.ts';

/** What a description is made of: the schemas that validate, and what the service was told to do. */
export interface Described {
  readonly basePath: string;
  readonly bodies: Readonly<Record<'create' | 'replace' | 'patch' | 'rotate', z.ZodType>>;
  readonly filter: z.ZodObject;
  readonly acceptLegacyBody: boolean;
  readonly takesValues: boolean;
  readonly hasIntrospection: boolean;
  readonly hasRevocation: boolean;
  readonly limitsFailures: boolean;
}

type Json = Readonly<Record<string, unknown>>;

/** What a call can be refused with; `invalid_token` and `insufficient_scope` are the guard's. */
type Code = Exclude<
  HttpErrorCode,
  'invalid_token' | 'insufficient_scope' | 'invalid_options' | 'id_taken'
>;

const MEANINGS: Readonly<Record<Code, string>> = {
  invalid_json: 'the body is no JSON in UTF-8, or is missing, or did not come to its end in time',
  invalid_request: 'a member, a parameter or the address is not as described here',
  scopes_required: 'scopes is absent, no array, or empty, or none would be left',
  invalid_scope: 'a scope does not parse; details name it',
  scope_unmatched: 'a scope is not in the catalog, or not for this account; details name it',
  too_many_scopes: 'there are more than 4096 scopes',
  invalid_ttl: 'ttl is no lifetime that tokens may have here',
  invalid_expire: 'expire is no time at which tokens may expire here',
  not_found: 'this account has no such token: unknown, revoked or malformed',
  unauthenticated: 'the credentials are missing, malformed or wrong',
  cross_site: 'a page of another site made the call',
  token_expired: 'the token has expired and cannot be changed',
  method_not_allowed: 'the address takes other methods',
  version_conflict: 'the token no longer has the version of If-Match',
  payload_too_large: 'the body is too large',
  uri_too_long: 'the address is too long',
  unsupported_media_type: 'the body has another media type, or an encoding',
  rate_limited: 'too many wrong credentials were presented; wait as Retry-After says',
  overloaded: 'too many calls are worked on; try again as Retry-After says',
  internal: 'something went wrong in the service',
  catalog_empty: 'there are no scopes to ask for',
  store_unavailable: 'the store, or whoever knows the accounts, does not answer',
  store_corrupt: 'the store holds what is no token',
  durability_unconfirmed: 'the change was made, but not confirmed by as many replicas as asked for',
  revocation_unconfirmed: 'the token is revoked, but a failover may undo it',
};

const EVERY: readonly Code[] = ['invalid_request', 'uri_too_long', 'internal', 'overloaded'];
const BY_ACCOUNT: readonly Code[] = [...EVERY, 'unauthenticated', 'store_unavailable'];
const OF_BODIES: readonly Code[] = ['invalid_json', 'payload_too_large', 'unsupported_media_type'];
const OF_SCOPES: readonly Code[] = [
  'scopes_required',
  'invalid_scope',
  'scope_unmatched',
  'too_many_scopes',
  'catalog_empty',
];
const OF_CHANGES: readonly Code[] = [
  ...BY_ACCOUNT,
  'cross_site',
  'not_found',
  'version_conflict',
  'store_corrupt',
];

/** What codes say beside their meaning, by status. */
const HEADERS_OF_STATUS: Readonly<Record<number, Json>> = {
  401: { 'WWW-Authenticate': { $ref: '#/components/headers/WWW-Authenticate' } },
  429: { 'Retry-After': { $ref: '#/components/headers/Retry-After' } },
  503: { 'Retry-After': { $ref: '#/components/headers/Retry-After' } },
};

const ID = '^[0-9A-Za-z]{22}$';
const EXAMPLE_SCOPE = 'GET:shop.example/orders';
const EXAMPLE_ID = '5sQ0bX8vK2mYt7RjW1cZpA';
const EXAMPLE_TOKEN = {
  scopes: [EXAMPLE_SCOPE],
  expire: 1_767_225_600,
  token: EXAMPLE_ID,
  id: EXAMPLE_ID,
  state: 'active',
  createdAt: 1_735_689_600,
  version: 1,
  name: 'nightly build',
};
const EXAMPLE_SUCCESS = { success: true, message: '', error: null };

/** The rules of the scope grammar, as far as a regular expression can have them: all of it. */
const SCOPE_PATTERN = (() => {
  const method = '(?:\\*|[A-Z](?:[A-Z-]{0,30}[A-Z])?)';
  const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
  const notAnAddress = '(?!(?:[^/]*\\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)/)';
  const domain = `(?:\\*|(?![^/]{254})(?:\\*\\.)?${notAnAddress}${label}(?:\\.${label})*)`;
  const segment = "(?!\\.+(?:/|$))[A-Za-z0-9\\-._~!$&'()+=:@]+";
  return `^${method}:${domain}/(?:\\*|(?!.{513})${segment}(?:/${segment}){0,31})$`;
})();

const SCOPE: Json = {
  type: 'string',
  pattern: SCOPE_PATTERN,
  description: '`<METHOD>:<domain>/<path>`; `*` may be the method, the domain or the path.',
  examples: [EXAMPLE_SCOPE],
};

/** What fields check that zod cannot put into JSON Schema by itself. */
const DRAWN: ReadonlyMap<unknown, Json> = new Map<unknown, Json>([
  [
    fields.scopes,
    {
      type: 'array',
      items: { $ref: '#/components/schemas/Scope' },
      minItems: 1,
      maxItems: 4096,
      description: 'Wildcards stand for all that there is of them in the catalog.',
    },
  ],
  [
    fields.name,
    {
      type: 'string',
      minLength: 1,
      maxLength: 200,
      pattern: '^[^\\p{Cc}\\p{Cs}]*$',
      description: 'For people. Characters beyond U+FFFF count twice.',
    },
  ],
  [
    fields.metadata,
    {
      type: 'object',
      additionalProperties: true,
      description: 'Your own facts, of at most 4096 bytes as JSON. Replaced whole.',
    },
  ],
]);

/** What members mean, where a schema cannot tell. */
const NOTES: Readonly<Record<string, string>> = {
  ttl: 'The lifetime in seconds.',
  expire: 'When the token expires, in UNIX seconds; later than now.',
  graceSeconds: 'How long the old value lives on.',
  scope: 'Only tokens that have to do with this scope; empty for all.',
  match: '`overlaps`: can touch something of it; `covers`: may do all of it; `exact`: holds it.',
  limit: 'At most so many on a page. Without it and `cursor` there is one page of all.',
  cursor: 'Where the page before ended.',
};

/**
 * Describes the service as OpenAPI 3.1. Bodies and queries are drawn from the schemas that validate
 * them, statuses and numbers from the table that answers have them from.
 *
 * It is made when first asked for, since few who start the service ever ask, and then kept.
 */
export function descriptionOf(described: Described): () => Answer {
  let text: string | undefined;
  const headers = { ...COMMON_HEADERS, 'content-type': 'application/json' };
  return () => {
    text ??= JSON.stringify(describeService(described));
    return { status: 200, headers, body: text };
  };
}

function describeService(described: Described): Json {
  const { hasIntrospection, hasRevocation } = described;
  return {
    openapi: '3.1.0',
    info: {
      title: 'Token service',
      version: packageJson.version,
      description:
        'Scoped access tokens. Every success is 200. `HEAD` answers like `GET` without a body; ' +
        'a method that an address does not take is 405 `method_not_allowed`, with `Allow`.',
    },
    servers: [{ url: described.basePath === '' ? './' : described.basePath }],
    security: [{ account: [] }],
    tags: [
      { name: 'tokens', description: 'By accounts, with Basic credentials.' },
      ...(hasIntrospection || hasRevocation
        ? [{ name: 'oauth', description: 'As RFC 7662 and RFC 7009 have it.' }]
        : []),
      { name: 'about', description: 'What there is.' },
    ],
    paths: {
      '/token': { post: create(described), get: list(described) },
      '/token/{token}': {
        parameters: [tokenParameter(described)],
        get: show(described),
        put: replace(described),
        patch: patch(described),
        delete: remove(described),
      },
      '/token/{token}/rotate': {
        parameters: [tokenParameter(described)],
        post: rotate(described),
      },
      '/scopes': { get: scopes(described) },
      '/openapi.json': { get: OPENAPI },
      ...(hasIntrospection && { '/introspect': { post: introspection(described) } }),
      ...(hasRevocation && { '/revoke': { post: REVOCATION } }),
    },
    components: components(described),
  };
}

function create({ bodies, acceptLegacyBody, limitsFailures }: Described): Json {
  const body = drawn(bodies.create);
  return operation('issueToken', 'Issues a token', {
    requestBody: jsonBody(acceptLegacyBody ? withLegacy(body) : body, true, {
      scopes: [EXAMPLE_SCOPE],
      ttl: 3600,
      name: 'nightly build',
    }),
    responses: {
      200: ISSUED,
      ...failures(limitsFailures, [
        ...BY_ACCOUNT,
        ...OF_BODIES,
        ...OF_SCOPES,
        'cross_site',
        'invalid_ttl',
        'store_corrupt',
        'durability_unconfirmed',
      ]),
    },
  });
}

function list({ filter, limitsFailures }: Described): Json {
  const { properties = {} } = drawn(filter) as { properties?: Record<string, Json> };
  return operation('listTokens', 'Lists active tokens, newest first', {
    parameters: Object.entries(properties).map(([name, { description, ...schema }]) => ({
      name,
      in: 'query',
      ...(description !== undefined && { description }),
      schema: WRITTEN_IN_QUERY[name] ?? schema,
    })),
    responses: {
      200: {
        description: 'The tokens. On a page that is not the last, a cursor and a link to the next.',
        headers: { Link: { $ref: '#/components/headers/Link' } },
        content: json('TokenList', { data: [EXAMPLE_TOKEN], ...EXAMPLE_SUCCESS }),
      },
      ...failures(limitsFailures, [...BY_ACCOUNT, 'invalid_scope', 'store_corrupt']),
    },
  });
}

/** What stands for a number or a scope in the text of a query. */
const WRITTEN_IN_QUERY: Readonly<Record<string, Json>> = {
  scope: { anyOf: [{ $ref: '#/components/schemas/Scope' }, { const: '' }] },
  limit: { type: 'integer', minimum: 1, maximum: 100 },
};

function show({ limitsFailures }: Described): Json {
  return operation('getToken', 'Shows a token, also an expired one', {
    responses: {
      200: SHOWN,
      ...failures(limitsFailures, [...BY_ACCOUNT, 'not_found', 'store_corrupt']),
    },
  });
}

function replace({ bodies, limitsFailures }: Described): Json {
  return operation('replaceToken', 'Replaces scopes and expiry', {
    description: 'Without `expire`, the token lives for the default lifetime from now.',
    parameters: [IF_MATCH],
    requestBody: jsonBody(drawn(bodies.replace), true, { scopes: [EXAMPLE_SCOPE] }),
    responses: { 200: SHOWN, ...failures(limitsFailures, CHANGE_OF_RIGHTS) },
  });
}

/** Scopes that are replaced cannot be added to as well; the service refuses that, not the schema. */
function patch({ bodies, limitsFailures }: Described): Json {
  const body = {
    ...drawn(bodies.patch),
    minProperties: 1,
    not: {
      required: ['scopes'],
      anyOf: [{ required: ['addScopes'] }, { required: ['removeScopes'] }],
    },
  };
  return operation('patchToken', 'Changes what is named', {
    parameters: [IF_MATCH],
    requestBody: jsonBody(body, true, { addScopes: [EXAMPLE_SCOPE] }),
    responses: { 200: SHOWN, ...failures(limitsFailures, CHANGE_OF_RIGHTS) },
  });
}

function remove({ limitsFailures }: Described): Json {
  return operation('revokeToken', 'Revokes a token, for good', {
    parameters: [IF_MATCH],
    responses: {
      200: {
        description: 'The token is revoked. A second time it is not found.',
        content: json('Done', { data: null, ...EXAMPLE_SUCCESS }),
      },
      ...failures(limitsFailures, [...OF_CHANGES, 'revocation_unconfirmed']),
    },
  });
}

function rotate({ bodies, limitsFailures }: Described): Json {
  return operation('rotateToken', 'Gives a token a new value', {
    parameters: [IF_MATCH],
    requestBody: jsonBody(drawn(bodies.rotate), false, { graceSeconds: 300 }),
    responses: {
      200: ISSUED,
      ...failures(limitsFailures, [
        ...OF_CHANGES,
        ...OF_BODIES,
        'token_expired',
        'durability_unconfirmed',
      ]),
    },
  });
}

function scopes({ limitsFailures }: Described): Json {
  return operation(
    'listScopes',
    'Says what this account may ask for',
    {
      responses: {
        200: {
          description: 'The scopes, in canonical order.',
          content: json('ScopeList', { data: [EXAMPLE_SCOPE], ...EXAMPLE_SUCCESS }),
        },
        ...failures(limitsFailures, BY_ACCOUNT),
      },
    },
    'about',
  );
}

const OPENAPI: Json = {
  ...operation(
    'describe',
    'Describes this interface',
    {
      responses: {
        200: {
          description: 'This document.',
          content: { 'application/json': { schema: { type: 'object' } } },
        },
        ...failures(false, EVERY),
      },
    },
    'about',
  ),
  security: [],
};

const INTROSPECTED = {
  active: true,
  scope: EXAMPLE_SCOPE,
  sub: 'ada',
  jti: EXAMPLE_ID,
  exp: EXAMPLE_TOKEN.expire,
  iat: EXAMPLE_TOKEN.createdAt,
  token_type: 'Bearer',
};

const OF_FORMS: readonly Code[] = ['payload_too_large', 'unsupported_media_type'];

function introspection({ limitsFailures }: Described): Json {
  const codes: readonly Code[] = [...BY_ACCOUNT, ...OF_FORMS, 'cross_site', 'store_corrupt'];
  const responses = {
    200: {
      description: 'What there is to know of a live token; of any other, that it is not active.',
      content: json('Introspection', INTROSPECTED),
    },
    ...oauthFailures(limitsFailures ? [...codes, 'rate_limited'] : codes),
  };
  const summary = 'Tells a resource server about a value (RFC 7662)';
  const parts = { requestBody: FORM_BODY, responses };
  return {
    ...operation('introspectToken', summary, parts, 'oauth'),
    security: [{ resourceServer: [] }],
  };
}

const FORM_BODY: Json = {
  required: true,
  content: { [FORM_TYPE]: { schema: { $ref: '#/components/schemas/TokenForm' } } },
};

const REVOCATION: Json = {
  ...operation(
    'revokeByValue',
    'Lets the bearer of a token revoke it (RFC 7009)',
    {
      description: 'Whoever has the value may end it, so no other credentials are asked for.',
      requestBody: FORM_BODY,
      responses: {
        200: { description: 'The token is revoked, or was none. There is no body.' },
        ...oauthFailures([
          ...EVERY,
          ...OF_FORMS,
          'store_unavailable',
          'store_corrupt',
          'durability_unconfirmed',
        ]),
      },
    },
    'oauth',
  ),
  security: [],
};

const ISSUED: Json = {
  description: 'The token, with its value under `token`.',
  headers: { ETag: { $ref: '#/components/headers/ETag' } },
  content: json('IssuedToken', {
    ...EXAMPLE_TOKEN,
    token: '<the value, shown once>',
    ...EXAMPLE_SUCCESS,
  }),
};

const SHOWN: Json = {
  description: 'The token, in a list of one.',
  headers: { ETag: { $ref: '#/components/headers/ETag' } },
  content: json('OneToken', { data: [EXAMPLE_TOKEN], ...EXAMPLE_SUCCESS }),
};

const CHANGE_OF_RIGHTS: readonly Code[] = [
  ...OF_CHANGES,
  ...OF_BODIES,
  ...OF_SCOPES,
  'invalid_expire',
  'token_expired',
  'durability_unconfirmed',
];

const IF_MATCH: Json = { $ref: '#/components/parameters/IfMatch' };

function operation(operationId: string, summary: string, parts: Json, tag = 'tokens'): Json {
  return { operationId, summary, tags: [tag], ...parts };
}

function tokenParameter({ takesValues }: Described): Json {
  return {
    name: 'token',
    in: 'path',
    required: true,
    description: takesValues ? 'The id of the token. Its value is taken too.' : 'The id.',
    schema: takesValues ? { type: 'string' } : { type: 'string', pattern: ID },
    example: EXAMPLE_ID,
  };
}

function jsonBody(schema: Json, required: boolean, example: Json): Json {
  return { required, content: { 'application/json': { schema, example } } };
}

function json(schema: string, example: Json): Json {
  return { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` }, example } };
}

/** The failures of a call, in the envelope, by status. */
function failures(limitsFailures: boolean, codes: readonly Code[]): Json {
  const all: readonly Code[] = limitsFailures ? [...codes, 'rate_limited'] : codes;
  return byStatus(all, String, (some) => ({
    schema: {
      type: 'object',
      allOf: [{ $ref: '#/components/schemas/Failure' }],
      required: ['code', 'error'],
      properties: {
        code: { enum: some },
        error: { enum: [...new Set(some.map((code) => numbersOf(code).error))] },
      },
    },
    examples: Object.fromEntries(
      some.map((code) => [
        code,
        {
          value: {
            success: false,
            message: MEANINGS[code],
            error: numbersOf(code).error,
            code,
            data: null,
          },
        },
      ]),
    ),
  }));
}

/** The failures of a call in the words of OAuth, by status. */
function oauthFailures(codes: readonly Code[]): Json {
  return byStatus(codes, oauthError, (some) => ({
    schema: {
      type: 'object',
      allOf: [{ $ref: '#/components/schemas/OAuthFailure' }],
      required: ['error'],
      properties: { error: { enum: [...new Set(some.map(oauthError))] } },
    },
  }));
}

function byStatus(
  codes: readonly Code[],
  nameOf: (code: Code) => string,
  content: (some: Code[]) => Json,
): Json {
  const statuses = [...new Set(codes.map((code) => numbersOf(code).status))].sort();
  return Object.fromEntries(
    statuses.map((status) => {
      const some = codes.filter((code) => numbersOf(code).status === status);
      const description = some
        .map((code) => `\`${nameOf(code)}\`: ${MEANINGS[code]}.`)
        .join('\n\n');
      const headers = HEADERS_OF_STATUS[status];
      return [
        status,
        {
          description,
          ...(headers !== undefined && { headers }),
          content: { 'application/json': content(some) },
        },
      ];
    }),
  );
}

/** A schema that validates, as JSON Schema. */
function drawn(schema: z.ZodType): Json {
  const { $schema: _, ...whole } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema, path }) => {
      const known = DRAWN.get(zodSchema);
      if (known !== undefined) Object.assign(jsonSchema, known);
      // The bounds of what a double can hold exactly say nothing about the field.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      const note = NOTES[String(path.at(-1))];
      if (note !== undefined && path.length === 2) jsonSchema.description = note;
    },
  });
  return whole;
}

/** What older clients send as well. */
function withLegacy(body: Json): Json {
  const { properties = {} } = body as { properties?: Record<string, Json> };
  const { ttl } = properties;
  return {
    ...body,
    properties: {
      ...properties,
      ttl: { ...ttl, minimum: 0, description: 'The lifetime in seconds; 0 is as good as absent.' },
      expire: { ...ttl, deprecated: true, description: 'The lifetime in seconds: say `ttl`.' },
    },
    not: { required: ['ttl', 'expire'] },
  };
}

function components({ hasIntrospection, hasRevocation }: Described): Json {
  return {
    securitySchemes: {
      account: { type: 'http', scheme: 'basic', description: 'An account of this service.' },
      ...(hasIntrospection && {
        resourceServer: {
          type: 'http',
          scheme: 'basic',
          description: 'A resource server; accounts are none.',
        },
      }),
    },
    parameters: {
      IfMatch: {
        name: 'If-Match',
        in: 'header',
        description: 'The ETag that the token must still have.',
        schema: { type: 'string' },
        example: '"1"',
      },
    },
    headers: {
      ETag: { description: 'The version of the token, in quotes.', schema: { type: 'string' } },
      Link: { description: 'The next page, as `rel="next"`.', schema: { type: 'string' } },
      'Retry-After': { description: 'In seconds.', schema: { type: 'integer', minimum: 1 } },
      'WWW-Authenticate': {
        description: 'Which credentials are asked for.',
        schema: { type: 'string' },
      },
    },
    schemas: { ...SCHEMAS, ...((hasIntrospection || hasRevocation) && OAUTH_SCHEMAS) },
  };
}

const SUCCESS = {
  success: { const: true },
  message: { const: '' },
  error: { type: 'null' },
};

const SECONDS = { type: 'integer', description: 'UNIX seconds.' };

const SCHEMAS: Json = {
  Scope: SCOPE,
  Token: object(
    {
      scopes: { type: 'array', items: { $ref: '#/components/schemas/Scope' } },
      expire: SECONDS,
      token: { type: 'string', description: 'The value, where it is known; else the id.' },
      id: { type: 'string', pattern: ID, description: 'The handle of the token; opens nothing.' },
      state: { type: 'string', enum: ['active', 'expired'] },
      createdAt: SECONDS,
      version: { type: 'integer', minimum: 1, description: 'What the ETag says.' },
    },
    {
      name: { type: 'string' },
      metadata: { type: 'object', additionalProperties: true },
    },
  ),
  IssuedToken: {
    allOf: [{ $ref: '#/components/schemas/Token' }, { $ref: '#/components/schemas/Success' }],
  },
  Success: object(SUCCESS),
  OneToken: object({
    data: {
      type: 'array',
      items: { $ref: '#/components/schemas/Token' },
      minItems: 1,
      maxItems: 1,
    },
    ...SUCCESS,
  }),
  TokenList: object(
    { data: { type: 'array', items: { $ref: '#/components/schemas/Token' } }, ...SUCCESS },
    { cursor: { type: 'string' } },
  ),
  ScopeList: object({
    data: { type: 'array', items: { $ref: '#/components/schemas/Scope' } },
    ...SUCCESS,
  }),
  Done: object({ data: { type: 'null' }, ...SUCCESS }),
  Failure: object(
    {
      success: { const: false },
      message: { type: 'string', description: 'For people; may change.' },
      error: { type: 'integer' },
      code: { type: 'string', description: 'For programs; does not change.' },
      data: { type: 'null' },
    },
    { details: { type: 'object', additionalProperties: true } },
  ),
};

const OAUTH_SCHEMAS: Json = {
  TokenForm: object(
    { token: { type: 'string', minLength: 1, description: 'The value.' } },
    { token_type_hint: { type: 'string', description: 'Does not matter here.' } },
  ),
  Introspection: object(
    { active: { type: 'boolean' } },
    {
      scope: { type: 'string', description: 'Scopes, with spaces between them.' },
      sub: { type: 'string', description: 'The account.' },
      jti: { type: 'string', pattern: ID },
      exp: SECONDS,
      iat: SECONDS,
      token_type: { const: 'Bearer' },
    },
  ),
  OAuthFailure: object({ error: { type: 'string' }, error_description: { type: 'string' } }),
};

function object(required: Json, optional: Json = {}): Json {
  return {
    type: 'object',
    required: Object.keys(required),
    properties: { ...required, ...optional },
  };
}
