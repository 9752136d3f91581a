import {
  MAX_HOST_LENGTH,
  MAX_LABEL_LENGTH,
  MAX_METHOD_LENGTH,
  MAX_PATH_LENGTH,
  MAX_PATH_SEGMENTS,
  MAX_PATH_TEMPLATES,
} from '../../bounds.ts';
import { arrayOf, INTROSPECTION_SCHEMA, type Json, objectSchema, TOKEN_SCHEMA } from '../wire.ts';
import {
  ADVICE_SCHEMA,
  EXPLANATION_SCHEMA,
  FINDING_SCHEMA,
  USAGE_SCHEMA,
} from '../wire-reports.ts';

/** The options of the handler that add components. */
export interface ComponentOptions {
  readonly authenticate?: object | undefined;
  readonly session?: object | undefined;
  readonly introspection?: object | undefined;
  readonly revocation?: boolean | undefined;
  readonly derivation?: boolean | undefined;
}

export const EXAMPLE_SCOPE = 'GET:shop.example/orders';

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
    schemas: { ...SCHEMAS, ...(hasOAuth(options) && OAUTH_SCHEMAS) },
  };
}

export function hasOAuth({ introspection, revocation }: ComponentOptions): boolean {
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

const SUCCESS = {
  success: { const: true },
  message: { const: '' },
  error: { type: 'null' },
};

const SCHEMAS: Json = {
  Scope: SCOPE,
  Token: TOKEN_SCHEMA,
  IssuedToken: {
    allOf: [{ $ref: '#/components/schemas/Token' }, { $ref: '#/components/schemas/Success' }],
  },
  Success: objectSchema(SUCCESS),
  OneToken: objectSchema({
    data: { ...arrayOf('Token'), minItems: 1, maxItems: 1 },
    ...SUCCESS,
  }),
  TokenList: objectSchema({ data: arrayOf('Token'), ...SUCCESS }, { cursor: { type: 'string' } }),
  Usage: objectSchema({ data: USAGE_SCHEMA, ...SUCCESS }),
  Advice: objectSchema({ data: ADVICE_SCHEMA, ...SUCCESS }),
  Explanation: objectSchema({ data: EXPLANATION_SCHEMA, ...SUCCESS }),
  FindingList: objectSchema(
    { data: { type: 'array', items: FINDING_SCHEMA }, ...SUCCESS },
    { cursor: { type: 'string' } },
  ),
  ScopeList: objectSchema({ data: arrayOf('Scope'), ...SUCCESS }),
  Done: objectSchema({ data: { type: 'null' }, ...SUCCESS }),
  Failure: objectSchema(
    {
      success: { const: false },
      message: { type: 'string', description: 'For people; may change.' },
      error: { type: 'integer' },
      code: { type: 'string', description: 'For programs; does not change.' },
      data: { type: 'null' },
    },
    {
      details: {
        type: 'object',
        description: 'Facts for programs.',
        properties: {
          member: {
            type: 'string',
            description: 'The member of the body or the query that the failure is about.',
          },
          min: { type: 'integer', description: 'The least that the member may be.' },
          max: {
            type: 'integer',
            description: 'The most that it may be; of `expire` in UNIX seconds.',
          },
        },
        additionalProperties: true,
      },
    },
  ),
};

const OAUTH_SCHEMAS: Json = {
  TokenForm: objectSchema(
    { token: { type: 'string', minLength: 1, description: 'The value.' } },
    { token_type_hint: { type: 'string', description: 'Does not matter here.' } },
  ),
  IntrospectionForm: objectSchema(
    { token: { type: 'string', minLength: 1, description: 'The value.' } },
    {
      token_type_hint: { type: 'string', description: 'Does not matter here.' },
      client_address: {
        type: 'string',
        description:
          'The IP address that the request of the bearer comes from. Without it, a token that is restricted to certain addresses is not active.',
      },
    },
  ),
  Introspection: INTROSPECTION_SCHEMA,
  OAuthFailure: objectSchema({ error: { type: 'string' }, error_description: { type: 'string' } }),
};
