import { adviceSchema, reviewSchema } from '../query.ts';
import type { BodySchemas, Json } from '../wire.ts';
import type { WireAdvice, WireExplanation, WireFinding, WireUsage } from '../wire-reports.ts';
import { EXAMPLE_SCOPE } from './components.ts';
import {
  ACCOUNT_CODES,
  BODY_CODES,
  EXAMPLE_SUCCESS,
  EXAMPLE_TOKEN,
  type FailureOptions,
  failures,
  json,
  jsonBody,
  operation,
  queryParameters,
  toJsonSchema,
} from './parts.ts';

// The operations that report about tokens and change nothing.

const EXAMPLE_USAGE: WireUsage = {
  uses: 12,
  refusals: 1,
  lastUsed: 1_735_776_000,
  derived: { uses: 3, lastUsed: 1_735_776_000 },
  scopes: [{ scope: EXAMPLE_SCOPE, uses: 12, lastUsed: 1_735_776_000 }],
};
const EXAMPLE_ADVICE: WireAdvice = {
  unused: ['POST:shop.example/orders'],
  kept: [EXAMPLE_SCOPE],
  since: EXAMPLE_TOKEN.createdAt,
};
const EXAMPLE_EXPLANATION: WireExplanation = {
  allowed: false,
  reason: 'insufficient_scope',
  needed: 'POST:shop.example/orders',
  nearest: { scope: EXAMPLE_SCOPE, failed: 'method' },
  smallest: 'POST:shop.example/orders',
  known: true,
  suggestions: [],
};
const EXAMPLE_FINDING: WireFinding = {
  code: 'never_used',
  token: { ...EXAMPLE_TOKEN, lastUsed: null, uses: 0 },
  scopes: EXAMPLE_TOKEN.scopes,
  message: 'was not used since 2025-01-01, when counting of it began; revoke it if nobody needs it',
  since: EXAMPLE_TOKEN.createdAt,
};

export function usage(options: FailureOptions): Json {
  return operation(
    'getTokenUsage',
    'Shows how a token is used: how often, when last, and for what',
    {
      description:
        'Every check of the token is counted that a service makes which records usage, also in other processes. The latest counts of those may be missing.',
      responses: {
        200: {
          description: 'The counts, in total and for each scope.',
          content: json('Usage', { data: EXAMPLE_USAGE, ...EXAMPLE_SUCCESS }),
        },
        ...failures(options, [
          ...ACCOUNT_CODES,
          'not_found',
          'usage_not_recorded',
          'store_corrupt',
        ]),
      },
    },
  );
}

export function advice(options: FailureOptions): Json {
  return operation('adviseOnToken', 'Names the scopes that a token does not use', {
    description:
      'Changes nothing: to remove them, send `unused` as `removeScopes` of a `PATCH`. Gives no advice while the counts do not go back far enough. A scope counts as unused if a server uses it that does not record usage.',
    parameters: queryParameters(adviceSchema),
    responses: {
      200: {
        description: 'The scopes that the token can do without, and the others.',
        content: json('Advice', { data: EXAMPLE_ADVICE, ...EXAMPLE_SUCCESS }),
      },
      ...failures(options, [...ACCOUNT_CODES, 'not_found', 'usage_not_recorded', 'store_corrupt']),
    },
  });
}

/** `scope` excludes the other members. The schema that checks the body lacks this rule. */
export function explain(options: FailureOptions & { readonly bodies: BodySchemas }): Json {
  const request = ['method', 'domain', 'target'];
  const body = {
    ...toJsonSchema(options.bodies.explain),
    anyOf: [{ required: ['scope'] }, { required: request }],
    not: { anyOf: request.map((member) => ({ required: ['scope', member] })) },
  };
  return operation('explainToken', 'Says whether a token would be allowed something, and why', {
    description:
      'Give a request, or a `scope`. Changes nothing, and counts as no use. A token that is not active is never allowed anything, and `reason` is its state.',
    requestBody: jsonBody(body, true, {
      method: 'POST',
      domain: 'shop.example',
      target: '/orders',
    }),
    responses: {
      200: {
        description: 'The explanation, also if the token would not be allowed it.',
        content: json('Explanation', { data: EXAMPLE_EXPLANATION, ...EXAMPLE_SUCCESS }),
      },
      ...failures(options, [
        ...ACCOUNT_CODES,
        ...BODY_CODES,
        'invalid_scope',
        'cross_site',
        'not_found',
        'store_corrupt',
      ]),
    },
  });
}

export function review(options: FailureOptions): Json {
  return operation('reviewTokens', 'Finds tokens of the account that somebody should look at', {
    description:
      'Looks at active and suspended tokens, newest first, and changes nothing. `unused`, `never_used`, `excess` and `expiring` are only found if the service records usage.',
    parameters: queryParameters(reviewSchema),
    responses: {
      200: {
        description:
          'The findings; all findings about a token are on one page. If there may be more, a cursor and a link to the next page; then a page may be empty.',
        headers: { Link: { $ref: '#/components/headers/Link' } },
        content: json('FindingList', { data: [EXAMPLE_FINDING], ...EXAMPLE_SUCCESS }),
      },
      ...failures(options, [...ACCOUNT_CODES, 'store_corrupt']),
    },
  });
}
