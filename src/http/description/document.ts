import type { ServiceErrorCode as Code } from '../errors.ts';
import { FORM_TYPE } from '../introspection.ts';
import { type PublicFile, publicFile } from '../public-file.ts';
import { filterSchema, getSchema, revokeSchema } from '../query.ts';
import { type BodySchemas, ID_PATTERN, type Json, type WireToken } from '../wire.ts';
import { type ComponentOptions, components, EXAMPLE_SCOPE, hasOAuth } from './components.ts';
import {
  ACCOUNT_CODES,
  BODY_CODES,
  COMMON_CODES,
  EXAMPLE_ID,
  EXAMPLE_SUCCESS,
  EXAMPLE_TOKEN,
  failures,
  json,
  jsonBody,
  oauthFailures,
  operation,
  queryParameters,
  toJsonSchema,
} from './parts.ts';
import { advice, explain, review, usage } from './reports.ts';

/** The options of the handler that change its document, and the bodies that it accepts. */
export interface DocumentOptions extends ComponentOptions {
  readonly basePath?: string | undefined;
  readonly acceptLegacyBody?: boolean | undefined;
  readonly pathTokens?: 'any' | 'id-only' | undefined;
  readonly limiter?: object | undefined;
  readonly bodies: BodySchemas;
}

const SCOPE_CODES: readonly Code[] = [
  'scopes_required',
  'invalid_scope',
  'scope_unmatched',
  'too_many_scopes',
  'catalog_empty',
];
const LIFETIME_CODES: readonly Code[] = ['invalid_ttl', 'invalid_expire', 'invalid_limits'];
const CREATE_CODES: readonly Code[] = [
  ...ACCOUNT_CODES,
  ...BODY_CODES,
  ...SCOPE_CODES,
  ...LIFETIME_CODES,
  'quota_exceeded',
  'store_corrupt',
  'durability_unconfirmed',
];
/** A parent that holds nothing is not an empty catalog. */
const DERIVE_CODES: readonly Code[] = [
  ...CREATE_CODES.filter((code) => code !== 'catalog_empty'),
  'invalid_token',
  'address_denied',
  'limit_exceeded',
];
const CHANGE_CODES: readonly Code[] = [
  ...ACCOUNT_CODES,
  'cross_site',
  'not_found',
  'version_conflict',
  'store_corrupt',
];

/** A token as a service shows it if it records usage. */
const EXAMPLE_USED: WireToken = { ...EXAMPLE_TOKEN, lastUsed: 1_735_776_000, uses: 12 };
const EXAMPLE_NEW = { scopes: [EXAMPLE_SCOPE], ttl: 3600, name: 'nightly build' };

/**
 * The service as an OpenAPI 3.1 document. Bodies and queries come from the schemas that validate them,
 * statuses and numbers from the table of the responses. Made on the first call, and cached.
 */
export function openApiDocument(options: DocumentOptions): PublicFile {
  let file: PublicFile | undefined;
  return (request) => {
    file ??= publicFile(JSON.stringify(documentOf(options)), {
      'content-type': 'application/json',
    });
    return file(request);
  };
}

/** Of the interface. That of the package is not for everybody, and would change without a change here. */
const INTERFACE_VERSION = '1.0.0';

function documentOf(options: DocumentOptions): Json {
  const { basePath = '', authenticate, session } = options;
  return {
    openapi: '3.1.0',
    info: {
      title: 'Token service',
      version: INTERFACE_VERSION,
      description:
        'Issue, list, change, rotate and revoke the access tokens of your account. A successful call is answered with status 200. ' +
        'Every `GET` also answers `HEAD`.',
    },
    servers: [{ url: basePath === '' ? './' : basePath }],
    security: [...(authenticate ? [{ account: [] }] : []), ...(session ? [{ session: [] }] : [])],
    tags: [
      { name: 'tokens', description: 'For accounts.' },
      ...(hasOAuth(options) ? [{ name: 'oauth', description: 'RFC 7662 and RFC 7009.' }] : []),
      { name: 'about', description: 'About the service.' },
    ],
    paths: pathsOf(options),
    components: components(options),
  };
}

function pathsOf(options: DocumentOptions): Json {
  const { introspection, revocation, derivation } = options;
  return {
    '/token': { post: create(options), get: list(options) },
    ...(derivation && { '/token/derive': { post: derive(options) } }),
    '/token/{token}': {
      parameters: [tokenParameter(options)],
      get: show(options),
      put: replace(options),
      patch: patch(options),
      delete: remove(options),
    },
    '/token/{token}/rotate': {
      parameters: [tokenParameter(options)],
      post: rotate(options),
    },
    '/token/{token}/usage': {
      parameters: [tokenParameter(options)],
      get: usage(options),
    },
    '/token/{token}/advice': {
      parameters: [tokenParameter(options)],
      get: advice(options),
    },
    '/token/{token}/explain': {
      parameters: [tokenParameter(options)],
      post: explain(options),
    },
    '/review': { get: review(options) },
    '/scopes': { get: scopes(options) },
    '/openapi.json': { get: OPENAPI },
    ...(introspection && { '/introspect': { post: introspectionOf(options) } }),
    ...(revocation && { '/revoke': { post: REVOCATION } }),
  };
}

/** Matches a body with two lifetimes, which is refused. The schemas that check bodies lack this rule. */
const TWO_LIFETIMES: Json = {
  anyOf: [
    { required: ['ttl', 'expiresIn'] },
    { required: ['ttl', 'expire'] },
    { required: ['expiresIn', 'expire'] },
  ],
};

function create(options: DocumentOptions): Json {
  return operation('issueToken', 'Issues a token', {
    requestBody: jsonBody(bodyOfNew(options), true, EXAMPLE_NEW),
    responses: { 200: ISSUED, ...failures(options, [...CREATE_CODES, 'cross_site']) },
  });
}

function derive(options: DocumentOptions): Json {
  return operation('deriveToken', 'Makes a narrower token from that of the bearer', {
    description:
      'It may do what was asked for and the token of the bearer may do, and ends when that ends at the latest.',
    requestBody: jsonBody(bodyOfNew(options), true, EXAMPLE_NEW),
    responses: { 200: ISSUED, ...failures({}, DERIVE_CODES) },
    security: [{ bearer: [] }],
  });
}

function bodyOfNew({ bodies, acceptLegacyBody }: DocumentOptions): Json {
  const body = { ...toJsonSchema(bodies.create), not: TWO_LIFETIMES };
  return acceptLegacyBody ? withLegacy(body) : body;
}

function list(options: DocumentOptions): Json {
  return operation('listTokens', 'Lists tokens, newest first', {
    parameters: queryParameters(filterSchema),
    responses: {
      200: {
        description:
          'The tokens. If there may be more, a cursor and a link to the next page; then a page may hold fewer tokens than `limit`, or none.',
        headers: { Link: { $ref: '#/components/headers/Link' } },
        content: json('TokenList', { data: [EXAMPLE_USED], ...EXAMPLE_SUCCESS }),
      },
      ...failures(options, [...ACCOUNT_CODES, 'invalid_scope', 'store_corrupt']),
    },
  });
}

function show(options: DocumentOptions): Json {
  return operation('getToken', 'Shows a token, also an expired one', {
    parameters: queryParameters(getSchema),
    responses: {
      200: { ...SHOWN, content: json('OneToken', { data: [EXAMPLE_USED], ...EXAMPLE_SUCCESS }) },
      ...failures(options, [...ACCOUNT_CODES, 'not_found', 'store_corrupt']),
    },
  });
}

function replace(options: DocumentOptions): Json {
  return operation('replaceToken', 'Replaces scopes and expiry', {
    description:
      'Without `expire` and `expiresIn`, the token lives for the default lifetime from now.',
    parameters: [IF_MATCH],
    requestBody: jsonBody({ ...toJsonSchema(options.bodies.replace), not: TWO_LIFETIMES }, true, {
      scopes: [EXAMPLE_SCOPE],
      expiresIn: '30d',
    }),
    responses: { 200: SHOWN, ...failures(options, UPDATE_CODES) },
  });
}

/** `scopes` excludes `addScopes` and `removeScopes`. The schema of the body lacks this rule, too. */
function patch(options: DocumentOptions): Json {
  const body = {
    ...toJsonSchema(options.bodies.patch),
    minProperties: 1,
    not: {
      anyOf: [
        { required: ['scopes', 'addScopes'] },
        { required: ['scopes', 'removeScopes'] },
        TWO_LIFETIMES,
      ],
    },
  };
  return operation('patchToken', 'Updates only the fields you send', {
    parameters: [IF_MATCH],
    requestBody: jsonBody(body, true, { addScopes: [EXAMPLE_SCOPE] }),
    responses: { 200: SHOWN, ...failures(options, UPDATE_CODES) },
  });
}

function remove(options: DocumentOptions): Json {
  return operation('revokeToken', 'Revokes a token permanently', {
    parameters: [IF_MATCH, ...queryParameters(revokeSchema)],
    responses: {
      200: {
        description: 'The token is revoked. A second time it is not found.',
        content: json('Done', { data: null, ...EXAMPLE_SUCCESS }),
      },
      ...failures(options, [...CHANGE_CODES, 'revocation_unconfirmed']),
    },
  });
}

/** `cancel` excludes the other members, and `endDerived` what keeps the old value. The schema of the body lacks this rule, too. */
function rotate(options: DocumentOptions): Json {
  const body = {
    ...toJsonSchema(options.bodies.rotate),
    not: {
      anyOf: [
        ...['activate', 'graceSeconds'].map((other) => ({ required: ['cancel', other] })),
        ...['activate', 'graceSeconds', 'cancel'].map((other) => ({
          properties: { endDerived: { const: true } },
          required: ['endDerived', other],
        })),
      ],
    },
  };
  return operation('rotateToken', 'Gives a token a new value', {
    description:
      'The answer has the new value under `token`; with `cancel`, the token as it is, as `GET` shows it without its value.',
    parameters: [IF_MATCH],
    requestBody: jsonBody(body, false, { activate: 'first-use', graceSeconds: 300 }),
    responses: {
      200: ISSUED,
      ...failures(options, [
        ...CHANGE_CODES,
        ...BODY_CODES,
        'token_expired',
        'durability_unconfirmed',
      ]),
    },
  });
}

function scopes(options: DocumentOptions): Json {
  return operation('listScopes', 'Lists the scopes this account can request', {
    tags: ['about'],
    responses: {
      200: {
        description: 'The scopes, in canonical order.',
        content: json('ScopeList', { data: [EXAMPLE_SCOPE], ...EXAMPLE_SUCCESS }),
      },
      ...failures(options, ACCOUNT_CODES),
    },
  });
}

const OPENAPI: Json = operation('describe', 'Describes this interface', {
  tags: ['about'],
  responses: {
    200: {
      description: 'This document.',
      content: { 'application/json': { schema: { type: 'object' } } },
    },
    ...failures({}, ['invalid_request', 'uri_too_long', 'internal']),
  },
  security: [],
});

const EXAMPLE_INTROSPECTION = {
  active: true,
  scope: EXAMPLE_SCOPE,
  sub: 'ada',
  jti: EXAMPLE_ID,
  exp: EXAMPLE_TOKEN.expire,
  iat: EXAMPLE_TOKEN.createdAt,
  token_type: 'Bearer',
};

const FORM_CODES: readonly Code[] = ['payload_too_large', 'unsupported_media_type'];

function introspectionOf(options: DocumentOptions): Json {
  const codes: readonly Code[] = [...ACCOUNT_CODES, ...FORM_CODES, 'cross_site', 'store_corrupt'];
  return operation('introspectToken', 'Introspects a token value (RFC 7662)', {
    tags: ['oauth'],
    description:
      'An answer with `active: true` counts as a use of the token, also towards its limits.',
    requestBody: formBody('IntrospectionForm'),
    responses: {
      200: {
        description: 'The claims of an active token, or `{ "active": false }`.',
        content: json('Introspection', EXAMPLE_INTROSPECTION),
      },
      ...oauthFailures(options.limiter ? [...codes, 'rate_limited'] : codes),
    },
    security: [{ resourceServer: [] }],
  });
}

function formBody(schema: 'TokenForm' | 'IntrospectionForm'): Json {
  return {
    required: true,
    content: { [FORM_TYPE]: { schema: { $ref: `#/components/schemas/${schema}` } } },
  };
}

const REVOCATION = operation('revokeByValue', 'Lets the bearer of a token revoke it (RFC 7009)', {
  tags: ['oauth'],
  description: 'Anyone who has the value may revoke it, so this call needs no other credentials.',
  requestBody: formBody('TokenForm'),
  responses: {
    200: { description: 'The token is revoked, or there was none. There is no body.' },
    ...oauthFailures([
      ...COMMON_CODES,
      ...FORM_CODES,
      'store_unavailable',
      'store_corrupt',
      'durability_unconfirmed',
    ]),
  },
  security: [],
});

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

const UPDATE_CODES: readonly Code[] = [
  ...CHANGE_CODES,
  ...BODY_CODES,
  ...SCOPE_CODES,
  ...LIFETIME_CODES,
  'quota_exceeded',
  'token_expired',
  'durability_unconfirmed',
];

const IF_MATCH: Json = { $ref: '#/components/parameters/IfMatch' };

function tokenParameter({ pathTokens }: DocumentOptions): Json {
  const takesValues = pathTokens !== 'id-only';
  return {
    name: 'token',
    in: 'path',
    required: true,
    description: takesValues ? 'The id of the token. Its value is taken too.' : 'The id.',
    schema: takesValues ? { type: 'string' } : { type: 'string', pattern: ID_PATTERN },
    example: EXAMPLE_ID,
  };
}

/** The body with the members of older clients. */
function withLegacy(body: Json): Json {
  const { properties = {} } = body as { properties?: Record<string, Json> };
  const { ttl, expire } = properties;
  return {
    ...body,
    properties: {
      ...properties,
      ttl: { ...ttl, minimum: 0, description: 'The lifetime in seconds; 0 means the default.' },
      expire: {
        anyOf: [{ ...ttl, deprecated: true, description: 'The lifetime: say `ttl`.' }, expire],
        description: 'A date-time, or the lifetime in seconds.',
      },
    },
  };
}
