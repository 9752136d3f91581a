import type * as z from 'zod/mini';
import { toJSONSchema } from 'zod/v4/core';
import {
  MAX_HOST_LENGTH,
  MAX_LABEL_LENGTH,
  MAX_METHOD_LENGTH,
  MAX_NAME_LENGTH,
  MAX_PATH_LENGTH,
  MAX_PATH_SEGMENTS,
  MAX_PATH_TEMPLATES,
} from '../../bounds.ts';
import { MAX_CLIENT_LENGTH } from '../../requests/options.ts';
import { MAX_TARGETS } from '../oauth/asked-scopes.ts';
import { EXCHANGED_SECONDS } from '../oauth/exchange.ts';
import { ACCESS_TOKEN } from '../oauth/grant.ts';
import { GRANT_TYPES } from '../oauth/token-endpoint.ts';
import { EXAMPLE_SCOPE } from '../routes.ts';
import { ANSWERS, type Answers, type Json } from '../wire.ts';

/** The options of the handler that add components. */
export interface ComponentOptions {
  readonly authenticate?: object | undefined;
  readonly session?: object | undefined;
  /** Whether the sessions are those of the service itself. */
  readonly sessions?: object | undefined;
  readonly introspection?: object | undefined;
  readonly revocation?: boolean | undefined;
  readonly derivation?: boolean | undefined;
  /** Whether there is a token endpoint. */
  readonly grants?: boolean | undefined;
  /** Present if programs can ask for tokens. */
  readonly requests?: object | undefined;
}

/** The parts of the document that its operations refer to. */
export function components(options: ComponentOptions): Json {
  return {
    securitySchemes: {
      ...(options.authenticate && {
        account: { type: 'http', scheme: 'basic', description: 'An account of this service.' },
      }),
      ...(options.session && {
        session: {
          type: 'apiKey',
          in: 'header',
          name: 'x-tokenwright',
          description:
            'Somebody who is signed in to the application around this service, usually by a cookie. Calls that change something also need this header, with any value. Answers name the account as a mark in the header x-tokenwright-account; a call that sends a mark is refused with 401 once another account is signed in.',
        },
      }),
      ...(options.derivation && {
        bearer: { type: 'http', scheme: 'bearer', description: 'The value of a token.' },
      }),
      ...(options.introspection && {
        resourceServer: {
          type: 'http',
          scheme: 'basic',
          description: 'A resource server, which is not an account.',
        },
      }),
    },
    parameters: {
      IfMatch: {
        name: 'If-Match',
        in: 'header',
        description:
          'The ETag that the token must still have, a list of some, or `*` for any; `W/"1"` and `1` mean `"1"`.',
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
    schemas: schemasOf(options),
  };
}

export function hasOAuth(options: ComponentOptions): boolean {
  return hasTokenForms(options) || options.grants === true;
}

function hasTokenForms({ introspection, revocation }: ComponentOptions): boolean {
  return introspection !== undefined || revocation === true;
}

/** The whole grammar of scopes as a regular expression. */
const SCOPE_PATTERN = (() => {
  const method = `(?:\\*|[A-Z](?:[A-Z-]{0,${MAX_METHOD_LENGTH - 2}}[A-Z])?)`;
  const label = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,${MAX_LABEL_LENGTH - 2}}[A-Za-z0-9])?`;
  const notAnAddress = '(?!(?:[^/]*\\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)/)';
  const isShort = `(?![^/]{${MAX_HOST_LENGTH + 1}})`;
  const domain = `(?:\\*|${isShort}(?:\\*\\.)?${notAnAddress}${label}(?:\\.${label})*)`;
  // A `$` at the end is a mark: before it must be a segment, and not one of dots only.
  const literal = "(?!\\.+/|\\.*\\$?$)[A-Za-z0-9\\-._~!$&'()+=:@]+";
  const segment = `(?:\\{[A-Za-z0-9\\-._]{0,64}\\}|${literal})`;
  const bounds = `(?!.{${MAX_PATH_LENGTH + 1}})(?!(?:[^{]*\\{){${MAX_PATH_TEMPLATES + 1}})`;
  const path = `${bounds}${segment}(?:/${segment}){0,${MAX_PATH_SEGMENTS - 1}}\\$?`;
  return `^${method}:${domain}/(?:\\*|\\$|${path})$`;
})();

const SCOPE: Json = {
  type: 'string',
  pattern: SCOPE_PATTERN,
  description:
    '`<METHOD>:<domain>/<path>`; `*` may be the method, the domain or the path. In a path, `{}` is any one segment, and nothing follows a `$` at the end.',
  examples: [EXAMPLE_SCOPE],
};

/** The answers that the document has by name, in its order. */
const NAMED = [
  'Token',
  'IssuedToken',
  'Success',
  'OneToken',
  'ChangedToken',
  'TokenList',
  'Usage',
  'Advice',
  'Explanation',
  'FindingList',
  'ScopeList',
  'Done',
  'Failure',
] as const satisfies readonly (keyof Answers)[];

function answerSchemas(names: readonly (keyof Answers)[]): Json {
  const schemas = names.map((name) => [name, toJsonSchema(ANSWERS[name]())]);
  return Object.fromEntries(schemas);
}

function schemasOf(options: ComponentOptions): Json {
  return {
    Scope: SCOPE,
    ...answerSchemas(NAMED),
    ...(options.sessions && answerSchemas(['Session'])),
    IssuedToken: {
      allOf: [{ $ref: '#/components/schemas/Token' }, { $ref: '#/components/schemas/Success' }],
    },
    ...(hasTokenForms(options) && FORMS),
    ...(options.grants && { GrantForm: GRANT_FORM, ...answerSchemas(['AccessToken']) }),
    ...(options.requests && {
      DeviceForm: DEVICE_FORM,
      ...answerSchemas(['DeviceAuthorization', 'Request']),
    }),
    ...(hasTokenForms(options) && answerSchemas(['Introspection'])),
    ...(hasOAuth(options) && answerSchemas(['OAuthFailure'])),
  };
}

const FORM_MEMBERS: Json = {
  token: { type: 'string', minLength: 1, description: 'The value.' },
  token_type_hint: { type: 'string', description: 'Does not matter here.' },
};

const FORMS: Json = {
  TokenForm: { type: 'object', required: ['token'], properties: FORM_MEMBERS },
  IntrospectionForm: {
    type: 'object',
    required: ['token'],
    properties: {
      ...FORM_MEMBERS,
      client_address: {
        type: 'string',
        description:
          'The IP address that the request of the bearer comes from. Without it, a token that is restricted to certain addresses is not active.',
      },
    },
  },
};

const VALUE: Json = { type: 'string', minLength: 1 };
const TOKEN_TYPE: Json = { const: ACCESS_TOKEN };
const VALUES: Json = { type: 'array', items: VALUE, maxItems: MAX_TARGETS };

const TARGETS: Json = {
  scope: {
    ...VALUE,
    description: 'Scopes, with spaces between them. Required without `resource` and `audience`.',
  },
  resource: {
    ...VALUES,
    description: 'Absolute URLs. Only scopes on their hosts, whatever port and path they have.',
  },
  audience: { ...VALUES, description: 'Hosts, which count as those of `resource`.' },
};

const PURPOSE: Json = {
  type: 'string',
  minLength: 1,
  maxLength: MAX_NAME_LENGTH,
  description: 'What the token is for. Never changes.',
};

const DEVICE_FORM: Json = {
  type: 'object',
  required: ['client_id'],
  properties: {
    client_id: {
      ...VALUE,
      maxLength: MAX_CLIENT_LENGTH,
      description: 'What the program calls itself.',
    },
    ...TARGETS,
    purpose: PURPOSE,
    ttl: { type: 'integer', minimum: 1, description: 'The lifetime in seconds.' },
    subject_token: { ...VALUE, description: 'The value of the token that is to do more.' },
    subject_token_type: { ...TOKEN_TYPE, description: 'Required with `subject_token`.' },
  },
};

const GRANT_FORM: Json = {
  type: 'object',
  required: ['grant_type'],
  properties: {
    grant_type: { enum: [...GRANT_TYPES] },
    device_code: { ...VALUE, description: 'Of the request, with its `client_id`.' },
    subject_token: { ...VALUE, description: 'The value of the token to exchange.' },
    subject_token_type: TOKEN_TYPE,
    actor_token: {
      ...VALUE,
      description:
        'The value of a live token of any account: it proves who acts with the new one, and grants nothing.',
    },
    actor_token_type: { ...TOKEN_TYPE, description: 'Required with `actor_token`.' },
    requested_token_type: TOKEN_TYPE,
    ...TARGETS,
    ttl: {
      type: 'integer',
      minimum: 1,
      default: EXCHANGED_SECONDS,
      description: 'The lifetime in seconds.',
    },
    purpose: PURPOSE,
    client_id: { ...VALUE, description: 'Does not matter in an exchange.' },
  },
};

/** A JSON Schema of what the schema takes. */
export function toJsonSchema(schema: z.ZodMiniType): Json {
  const { $schema: _, ...whole } = toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      // zod adds the range of exact doubles, which says nothing about the member.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      // Of an answer, what is always there is read first.
      const { properties, additionalProperties } = jsonSchema;
      if (properties === undefined || additionalProperties !== undefined) return;
      delete jsonSchema.properties;
      jsonSchema.properties = properties;
    },
  });
  return whole;
}
