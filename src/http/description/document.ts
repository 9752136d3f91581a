import type * as z from 'zod/mini';
import { MAX_FILTER_SCOPES, MAX_REVIEWED_DAYS, MAX_WIRE_PAGE_TOKENS } from '../../bounds.ts';
import type { BodySchemas } from '../bodies.ts';
import { type ServiceErrorCode as Code, DESCRIPTIONS, STATUS } from '../errors.ts';
import { grantError, grantStatus, oauthError, REFUSALS } from '../oauth/failure.ts';
import { FORM_TYPE } from '../oauth/form.ts';
import { type PublicFile, publicFile } from '../public-file.ts';
import { QUERIES } from '../query.ts';
import { allRoutes, EXAMPLE_ID, type Route } from '../routes.ts';
import { ID_PATTERN, type Json } from '../wire.ts';
import { type ComponentOptions, components, hasOAuth, toJsonSchema } from './components.ts';
import { exampleOf } from './examples.ts';

/** The options of the handler that change its document, and the bodies that it accepts. */
export interface DocumentOptions extends ComponentOptions {
  readonly basePath?: string | undefined;
  readonly acceptLegacyBody?: boolean | undefined;
  readonly pathTokens?: 'any' | 'id-only' | undefined;
  readonly limiter?: object | undefined;
  readonly bodies: BodySchemas;
}

/**
 * The service as an OpenAPI 3.1 document. Its calls come from the routes that the handler dispatches by,
 * bodies and queries from the schemas that validate them, statuses and numbers from the table of the
 * responses.
 */
export function openApiDocument(options: DocumentOptions): PublicFile {
  return publicFile(JSON.stringify(documentOf(options)), { 'content-type': 'application/json' });
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
      ...(hasOAuth(options) ? [{ name: 'oauth', description: oauthWords(options) }] : []),
      ...(options.requests ? [{ name: 'requests', description: 'For people who decide.' }] : []),
      ...(options.sessions ? [{ name: 'sessions', description: 'For people in a browser.' }] : []),
      { name: 'about', description: 'About the service.' },
    ],
    paths: pathsOf(options),
    components: components(options),
  };
}

/** The specifications of what is on, without changes to documents of services without grants. */
function oauthWords({ grants, requests }: DocumentOptions): string {
  const first = [...(grants ? ['RFC 8693'] : []), ...(requests ? ['RFC 8628'] : []), 'RFC 7662'];
  return `${first.join(', ')} and RFC 7009.`;
}

function pathsOf(options: DocumentOptions): Json {
  const paths: Record<string, Json> = {};
  for (const route of allRoutes()) {
    const { method, path, option } = route;
    if (option !== undefined && !options[option]) continue;
    const before = paths[path] ?? sharedBy(path, options);
    paths[path] = { ...before, [method.toLowerCase()]: operationOf(route, method, options) };
  }
  return paths;
}

/** What all calls at a path take. */
function sharedBy(path: string, options: DocumentOptions): Json {
  if (path.includes('{token}')) return { parameters: [tokenParameter(options)] };
  return path.includes('{code}') ? { parameters: [CODE] } : {};
}

const CODE: Json = {
  name: 'code',
  in: 'path',
  required: true,
  description: 'The user code. Case, spaces and hyphens do not count.',
  schema: { type: 'string', maxLength: 64 },
  example: 'WDJB-MJHT',
};

function operationOf(route: Route, method: string, options: DocumentOptions): Json {
  const { operationId, summary, tag = 'tokens', description, by = 'account' } = route;
  const parameters = [
    ...(route.isConditional ? [{ $ref: '#/components/parameters/IfMatch' }] : []),
    ...(route.query === undefined ? [] : queryParameters(QUERIES[route.query]())),
  ];
  const body = bodyOf(route, options);
  return {
    operationId,
    summary,
    tags: [tag],
    ...(description !== undefined && { description }),
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && { requestBody: body }),
    responses: { 200: successOf(route), ...failuresOf(route, method, options) },
    ...(by !== 'account' && { security: SECURITY[by] }),
  };
}

const SECURITY: Readonly<Record<Exclude<Route['by'], 'account' | undefined>, readonly Json[]>> = {
  password: [{ account: [] }],
  session: [{ session: [] }],
  bearer: [{ bearer: [] }],
  server: [{ resourceServer: [] }],
  anybody: [],
  client: [],
};

function bodyOf(route: Route, { bodies, acceptLegacyBody }: DocumentOptions): Json | undefined {
  const { body, form, bodyExample, isBodyOptional } = route;
  if (form !== undefined) {
    const schema = { $ref: `#/components/schemas/${form}` };
    return { required: true, content: { [FORM_TYPE]: { schema } } };
  }
  if (body === undefined) return undefined;
  const strict = toJsonSchema(bodies[body]());
  const schema = body === 'create' && acceptLegacyBody ? withLegacy(strict) : strict;
  const content = { 'application/json': { schema, example: bodyExample } };
  return { required: isBodyOptional !== true, content };
}

/** The headers of successes, by the schema of their body. */
const HEADERS: Readonly<Partial<Record<NonNullable<Route['answer']>, string>>> = {
  IssuedToken: 'ETag',
  OneToken: 'ETag',
  ChangedToken: 'ETag',
  TokenList: 'Link',
  FindingList: 'Link',
};

function successOf({ answer, success, example }: Route): Json {
  if (answer === undefined) return { description: success };
  const header = HEADERS[answer];
  const schema =
    answer === 'Document' ? { type: 'object' } : { $ref: `#/components/schemas/${answer}` };
  return {
    description: success,
    ...(header && { headers: { [header]: { $ref: `#/components/headers/${header}` } } }),
    content: { 'application/json': { schema, ...(example && { example }) } },
  };
}

/** The failures of a call, by status. */
function failuresOf(route: Route, method: string, { limiter }: DocumentOptions): Json {
  const { by = 'account', form, body } = route;
  const isPublic = by === 'anybody' || by === 'bearer' || by === 'client';
  const hasPassword = !isPublic && by !== 'session';
  const codes: readonly Code[] = [
    'invalid_request',
    'uri_too_long',
    'internal',
    // What is the same for everybody takes no slot.
    ...(route.verb === undefined ? [] : (['overloaded'] as const)),
    ...(by === 'anybody' ? [] : (['unauthenticated', 'store_unavailable'] as const)),
    ...(body === undefined ? [] : (['invalid_json'] as const)),
    ...(body === undefined && form === undefined ? [] : BODY_CODES),
    ...(!isPublic && method !== 'GET' ? (['cross_site'] as const) : []),
    ...route.codes,
    ...(hasPassword && limiter ? (['rate_limited'] as const) : []),
  ];
  if (by === 'client') return grantFailures(codes, route.refusals);
  return form === undefined ? failures(codes) : oauthFailures(codes);
}

const BODY_CODES: readonly Code[] = ['payload_too_large', 'unsupported_media_type'];

/** A failure, as an endpoint answers it. */
interface Failing {
  readonly status: number;
  readonly name: string;
  readonly meaning: string;
  /** Absent if the service has no code for it. */
  readonly code?: Code;
}

/** The failures in the envelope. */
function failures(codes: readonly Code[]): Json {
  return byStatus(codes.map(asIs), (some) => {
    const own = some.flatMap(({ code }) => code ?? []);
    return {
      schema: {
        type: 'object',
        allOf: [{ $ref: '#/components/schemas/Failure' }],
        required: ['code', 'error'],
        properties: {
          code: { enum: own },
          error: { enum: [...new Set(own.map((code) => STATUS[code][1]))] },
        },
      },
      examples: Object.fromEntries(own.map((code) => [code, { value: exampleOf(code) }])),
    };
  });
}

function asIs(code: Code): Failing {
  return { status: STATUS[code][0], name: code, meaning: DESCRIPTIONS[code], code };
}

/** The failures in the form of OAuth. */
function oauthFailures(codes: readonly Code[]): Json {
  return byStatus(
    codes.map((code) => ({ ...asIs(code), name: oauthError(code) })),
    oauthContent,
  );
}

/** Those of the token endpoint. */
function grantFailures(codes: readonly Code[], refusals: Route['refusals'] = []): Json {
  const own = codes.map((code) => ({
    ...asIs(code),
    status: grantStatus(code),
    name: grantError(code),
  }));
  const others = refusals.map((name) => ({ status: 400, name, meaning: REFUSALS[name] }));
  return byStatus([...own, ...others], oauthContent);
}

function oauthContent(some: readonly Failing[]): Json {
  return {
    schema: {
      type: 'object',
      allOf: [{ $ref: '#/components/schemas/OAuthFailure' }],
      required: ['error'],
      properties: { error: { enum: [...new Set(some.map(({ name }) => name))] } },
    },
  };
}

/** The headers of failures, by status. */
const HEADERS_OF_STATUS: Readonly<Record<number, Json>> = {
  401: { 'WWW-Authenticate': { $ref: '#/components/headers/WWW-Authenticate' } },
  429: { 'Retry-After': { $ref: '#/components/headers/Retry-After' } },
  503: { 'Retry-After': { $ref: '#/components/headers/Retry-After' } },
};

function byStatus(failing: readonly Failing[], content: (some: readonly Failing[]) => Json): Json {
  const statuses = [...new Set(failing.map(({ status }) => status))].sort();
  return Object.fromEntries(
    statuses.map((status) => {
      const some = failing.filter((each) => each.status === status);
      const description = some.map(({ name, meaning }) => `\`${name}\`: ${meaning}.`).join('\n\n');
      // A token that is used up for good has no time to come back.
      const isUsedUp = some.some(({ code }) => code === 'limit_exceeded');
      const headers = isUsedUp ? undefined : HEADERS_OF_STATUS[status];
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

function queryParameters(query: z.ZodMiniObject): Json[] {
  const { properties = {} } = toJsonSchema(query) as { properties?: Record<string, Json> };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    ...(description !== undefined && { description }),
    schema: QUERY_SCHEMAS[name] ?? schema,
  }));
}

const SCOPE: Json = { $ref: '#/components/schemas/Scope' };
const DAYS: Json = { type: 'integer', minimum: 1, maximum: MAX_REVIEWED_DAYS };

/** The schemas of parameters that the query holds as text. */
const QUERY_SCHEMAS: Readonly<Record<string, Json>> = {
  scope: {
    anyOf: [
      SCOPE,
      { const: '' },
      { type: 'array', items: { anyOf: [SCOPE, { const: '' }] }, maxItems: MAX_FILTER_SCOPES },
    ],
  },
  limit: { type: 'integer', minimum: 1, maximum: MAX_WIRE_PAGE_TOKENS },
  unusedForDays: DAYS,
  expiringWithinDays: DAYS,
  secretOlderThanDays: DAYS,
};

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
