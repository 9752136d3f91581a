import * as z from 'zod/mini';
import { MAX_FILTER_SCOPES, MAX_REVIEWED_DAYS, MAX_WIRE_PAGE_TOKENS } from '../../bounds.ts';
import { type ServiceErrorCode as Code, DESCRIPTIONS, STATUS } from '../errors.ts';
import { oauthError } from '../introspection.ts';
import type { Json, WireToken } from '../wire.ts';
import { EXAMPLE_SCOPE } from './components.ts';
import { exampleOf } from './examples.ts';

// Parts that the operations of the OpenAPI document share.

export const COMMON_CODES: readonly Code[] = [
  'invalid_request',
  'uri_too_long',
  'internal',
  'overloaded',
];
export const ACCOUNT_CODES: readonly Code[] = [
  ...COMMON_CODES,
  'unauthenticated',
  'store_unavailable',
];
export const BODY_CODES: readonly Code[] = [
  'invalid_json',
  'payload_too_large',
  'unsupported_media_type',
];
export const EXAMPLE_ID = '5sQ0bX8vK2mYt7RjW1cZpA';
export const EXAMPLE_TOKEN: WireToken = {
  scopes: [EXAMPLE_SCOPE],
  expire: 1_767_225_600,
  token: EXAMPLE_ID,
  masked: 'acme_1k15sQ0bX…',
  id: EXAMPLE_ID,
  state: 'active',
  createdAt: 1_735_689_600,
  version: 1,
  name: 'nightly build',
};
export const EXAMPLE_SUCCESS = { success: true, message: '', error: null };

export function operation(operationId: string, summary: string, parts: Json): Json {
  return { operationId, summary, tags: ['tokens'], ...parts };
}

export function queryParameters(query: z.ZodMiniObject): Json[] {
  const { properties = {} } = toJsonSchema(query) as { properties?: Record<string, Json> };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    ...(description !== undefined && { description }),
    schema: QUERY_SCHEMAS[name] ?? schema,
  }));
}

const DAYS: Json = { type: 'integer', minimum: 1, maximum: MAX_REVIEWED_DAYS };

const SCOPE: Json = { $ref: '#/components/schemas/Scope' };

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

/** The headers of failures, by status. */
const HEADERS_OF_STATUS: Readonly<Record<number, Json>> = {
  401: { 'WWW-Authenticate': { $ref: '#/components/headers/WWW-Authenticate' } },
  429: { 'Retry-After': { $ref: '#/components/headers/Retry-After' } },
  503: { 'Retry-After': { $ref: '#/components/headers/Retry-After' } },
};

export function jsonBody(schema: Json, required: boolean, example: Json): Json {
  return { required, content: { 'application/json': { schema, example } } };
}

export function json(schema: string, example: Json): Json {
  return { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` }, example } };
}

/** The options of the handler that add failures. */
export interface FailureOptions {
  readonly limiter?: object | undefined;
}

/** The failures of a call, in the envelope, by status. */
export function failures({ limiter }: FailureOptions, codes: readonly Code[]): Json {
  const all: readonly Code[] = limiter ? [...codes, 'rate_limited'] : codes;
  return byStatus(all, String, (some) => ({
    schema: {
      type: 'object',
      allOf: [{ $ref: '#/components/schemas/Failure' }],
      required: ['code', 'error'],
      properties: {
        code: { enum: some },
        error: { enum: [...new Set(some.map((code) => STATUS[code][1]))] },
      },
    },
    examples: Object.fromEntries(some.map((code) => [code, { value: exampleOf(code) }])),
  }));
}

/** The failures of a call, in the form of OAuth, by status. */
export function oauthFailures(codes: readonly Code[]): Json {
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
  const statuses = [...new Set(codes.map((code) => STATUS[code][0]))].sort();
  return Object.fromEntries(
    statuses.map((status) => {
      const some = codes.filter((code) => STATUS[code][0] === status);
      const description = some
        .map((code) => `\`${nameOf(code)}\`: ${DESCRIPTIONS[code]}.`)
        .join('\n\n');
      // A token that is used up for good has no time to come back.
      const headers = some.includes('limit_exceeded') ? undefined : HEADERS_OF_STATUS[status];
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

export function toJsonSchema(schema: z.ZodMiniType): Json {
  const { $schema: _, ...whole } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      // zod adds the range of exact doubles, which says nothing about the member.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
    },
  });
  return whole;
}
