import type { BodySchemas } from './bodies.ts';
import type { ServiceErrorCode as Code } from './errors.ts';
import type { OAuthRefusalCode } from './oauth/failure.ts';
import type { QUERIES } from './query.ts';
import type {
  Answers,
  Json,
  WireAdvice,
  WireExplanation,
  WireFinding,
  WireToken,
  WireUsage,
} from './wire.ts';

/** A call of the service: the handler dispatches by it, the OpenAPI document and clients read it. */
export interface Route {
  /** Makes the answer; absent for what is the same for everybody. */
  readonly verb?: string;
  /** Whose credentials it needs. @default 'account' */
  readonly by?: 'account' | 'password' | 'session' | 'bearer' | 'server' | 'anybody' | 'client';
  /** The option of the handler without which there is no such call. */
  readonly option?:
    | 'derivation'
    | 'grants'
    | 'introspection'
    | 'requests'
    | 'revocation'
    | 'sessions';
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  /** The group of the document. @default 'tokens' */
  readonly tag?: 'oauth' | 'requests' | 'sessions' | 'about';
  readonly query?: keyof typeof QUERIES;
  /** Whether it obeys `If-Match`. */
  readonly isConditional?: true;
  readonly body?: keyof BodySchemas;
  readonly isBodyOptional?: true;
  readonly bodyExample?: Json;
  /** The schema of its body, if that is a form. */
  readonly form?: 'TokenForm' | 'IntrospectionForm' | 'GrantForm' | 'DeviceForm';
  /** What a success answers: the name of its schema, in words, and an example. */
  readonly answer?: keyof Answers;
  readonly success: string;
  readonly example?: Json;
  /** The failures that are its own, beside those of its credentials and its body. */
  readonly codes: readonly Code[];
  /** Those for which only OAuth has a code. */
  readonly refusals?: readonly OAuthRefusalCode[];
}

export const EXAMPLE_SCOPE = 'GET:shop.example/orders';
export const EXAMPLE_ID = '5sQ0bX8vK2mYt7RjW1cZpA';

const OTHER_SCOPE = 'POST:shop.example/orders';
const CREATED_AT = 1_735_689_600;
const USED_AT = 1_735_776_000;
const SUCCESS = { success: true, message: '', error: null } as const;
const TOKEN: WireToken = {
  scopes: [EXAMPLE_SCOPE],
  expire: 1_767_225_600,
  token: EXAMPLE_ID,
  masked: 'acme_1k15sQ0bX…',
  id: EXAMPLE_ID,
  state: 'active',
  createdAt: CREATED_AT,
  version: 1,
  name: 'nightly build',
};
/** A token as a service shows it if it records usage. */
const USED_TOKEN: WireToken = { ...TOKEN, lastUsed: USED_AT, uses: 12 };
const NEW_TOKEN = { scopes: [EXAMPLE_SCOPE], ttl: 3600, name: 'nightly build' };
const USAGE: WireUsage = {
  uses: 12,
  refusals: 1,
  lastUsed: USED_AT,
  derived: { uses: 3, lastUsed: USED_AT },
  scopes: [{ scope: EXAMPLE_SCOPE, uses: 12, lastUsed: USED_AT }],
};
const ADVICE: WireAdvice = { unused: [OTHER_SCOPE], kept: [EXAMPLE_SCOPE], since: CREATED_AT };
const EXPLANATION: WireExplanation = {
  allowed: false,
  reason: 'insufficient_scope',
  needed: OTHER_SCOPE,
  nearest: { scope: EXAMPLE_SCOPE, failed: 'method' },
  smallest: OTHER_SCOPE,
  known: true,
  suggestions: [],
};
const FINDING: WireFinding = {
  code: 'never_used',
  token: { ...TOKEN, lastUsed: null, uses: 0 },
  scopes: TOKEN.scopes,
  message: 'was not used since 2025-01-01, when counting of it began; revoke it if nobody needs it',
  since: CREATED_AT,
};

const SESSION = {
  option: 'sessions',
  tag: 'sessions',
  answer: 'Session',
  example: { data: { username: 'ada', expire: CREATED_AT + 28_800 }, ...SUCCESS },
} as const;

const REQUEST = {
  option: 'requests',
  tag: 'requests',
  answer: 'Request',
  example: {
    data: {
      id: EXAMPLE_ID,
      state: 'pending',
      client: 'deploy bot',
      address: '192.0.2.7',
      scopes: [EXAMPLE_SCOPE],
      purpose: 'Tuesday release',
      ttl: 3600,
      createdAt: CREATED_AT,
      expire: CREATED_AT + 600,
    },
    ...SUCCESS,
  },
} as const;

const ISSUED = {
  answer: 'IssuedToken',
  success: 'The token, with its value under `token`.',
  example: { ...TOKEN, token: '<the value, shown once>', ...SUCCESS },
} as const;
const SHOWN = {
  answer: 'OneToken',
  success: 'The token, in a list of one.',
  example: { data: [TOKEN], ...SUCCESS },
} as const;

const CHANGED = {
  answer: 'ChangedToken',
  success:
    'The token, in a list of one; with `dryRun`, as it would be, and what rights it would gain and lose, under `diff`.',
  example: SHOWN.example,
} as const;

const SCOPE_CODES = [
  'scopes_required',
  'invalid_scope',
  'scope_unmatched',
  'too_many_scopes',
] as const satisfies readonly Code[];
const LIFETIME_CODES = [
  'invalid_ttl',
  'invalid_expire',
  'invalid_limits',
] as const satisfies readonly Code[];
const CREATE_CODES: readonly Code[] = [
  ...SCOPE_CODES,
  ...LIFETIME_CODES,
  'quota_exceeded',
  'store_corrupt',
  'durability_unconfirmed',
];
const CHANGE_CODES: readonly Code[] = ['not_found', 'version_conflict', 'store_corrupt'];
const UPDATE_CODES: readonly Code[] = [
  ...CHANGE_CODES,
  ...SCOPE_CODES,
  'catalog_empty',
  ...LIFETIME_CODES,
  'quota_exceeded',
  'token_expired',
  'durability_unconfirmed',
];
const DECISION_CODES: readonly Code[] = [
  'not_found',
  'request_decided',
  'rate_limited',
  'store_corrupt',
  'durability_unconfirmed',
];
const USAGE_CODES: readonly Code[] = ['not_found', 'usage_not_recorded', 'store_corrupt'];

/** All calls of the service, by their methods and paths, in the order of the document. */
export const ROUTES = {
  'POST /token': {
    verb: 'issue',
    operationId: 'issueToken',
    summary: 'Issues a token',
    body: 'create',
    bodyExample: NEW_TOKEN,
    ...ISSUED,
    codes: ['catalog_empty', ...CREATE_CODES],
  },
  'GET /token': {
    verb: 'list',
    operationId: 'listTokens',
    summary: 'Lists tokens',
    query: 'list',
    answer: 'TokenList',
    success:
      'The tokens. If there may be more, a cursor and a link to the next page; then a page may hold fewer tokens than `limit`, or none.',
    example: { data: [USED_TOKEN], ...SUCCESS },
    codes: ['invalid_scope', 'usage_not_recorded', 'store_corrupt'],
  },
  'POST /token/derive': {
    verb: 'derive',
    by: 'bearer',
    option: 'derivation',
    operationId: 'deriveToken',
    summary: 'Derives a narrower token from the bearer token',
    description:
      'The new token gets the requested scopes that the bearer token also has, and expires no later than it.',
    body: 'derive',
    bodyExample: NEW_TOKEN,
    ...ISSUED,
    // A parent that holds nothing is not an empty catalog.
    codes: [...CREATE_CODES, 'invalid_token', 'address_denied', 'limit_exceeded'],
  },
  'GET /token/{token}': {
    verb: 'get',
    operationId: 'getToken',
    summary: 'Shows a token, even if it has expired',
    query: 'get',
    ...SHOWN,
    example: { data: [USED_TOKEN], ...SUCCESS },
    codes: ['not_found', 'store_corrupt'],
  },
  'PUT /token/{token}': {
    verb: 'replace',
    operationId: 'replaceToken',
    summary: 'Replaces scopes and expiry',
    description:
      'Without `expire` and `expiresIn`, the token lives for the default lifetime from now.',
    isConditional: true,
    query: 'change',
    body: 'replace',
    bodyExample: { scopes: [EXAMPLE_SCOPE], expiresIn: '30d' },
    ...CHANGED,
    codes: UPDATE_CODES,
  },
  'PATCH /token/{token}': {
    verb: 'patch',
    operationId: 'patchToken',
    summary: 'Updates only the fields you send',
    isConditional: true,
    query: 'change',
    body: 'patch',
    bodyExample: { addScopes: [EXAMPLE_SCOPE] },
    ...CHANGED,
    codes: UPDATE_CODES,
  },
  'DELETE /token/{token}': {
    verb: 'revoke',
    operationId: 'revokeToken',
    summary: 'Revokes a token permanently',
    isConditional: true,
    query: 'revoke',
    answer: 'Done',
    success: 'The token is revoked. A second time it is not found.',
    example: { data: null, ...SUCCESS },
    codes: [...CHANGE_CODES, 'revocation_unconfirmed'],
  },
  'POST /token/{token}/rotate': {
    verb: 'rotate',
    operationId: 'rotateToken',
    summary: 'Gives a token a new value',
    description:
      'The answer has the new value under `token`; with `cancel`, the token as it is, as `GET` shows it without its value.',
    isConditional: true,
    body: 'rotate',
    isBodyOptional: true,
    bodyExample: { activate: 'first-use', graceSeconds: 300 },
    ...ISSUED,
    codes: [...CHANGE_CODES, 'token_expired', 'durability_unconfirmed'],
  },
  'GET /token/{token}/usage': {
    verb: 'usage',
    operationId: 'getTokenUsage',
    summary: 'Shows how often, when last and for what a token was used',
    description:
      'Counts every check by a service that records usage. The latest counts of other processes may be missing.',
    answer: 'Usage',
    success: 'The counts, in total and for each scope.',
    example: { data: USAGE, ...SUCCESS },
    codes: USAGE_CODES,
  },
  'GET /token/{token}/advice': {
    verb: 'advice',
    operationId: 'adviseOnToken',
    summary: 'Names the scopes that a token does not use',
    description:
      'Changes nothing: to remove them, send `unused` as `removeScopes` of a `PATCH`. Gives no advice while the counts do not go back far enough. A scope counts as unused if a server uses it that does not record usage.',
    query: 'advice',
    answer: 'Advice',
    success: 'The scopes that the token can do without, and the others.',
    example: { data: ADVICE, ...SUCCESS },
    codes: USAGE_CODES,
  },
  'POST /token/{token}/explain': {
    verb: 'explain',
    operationId: 'explainToken',
    summary: 'Says whether a token would be allowed something, and why',
    description:
      'Give a request, or a `scope`. Changes nothing, and counts as no use. A token that is not active is never allowed anything, and `reason` is its state.',
    body: 'explain',
    bodyExample: { method: 'POST', domain: 'shop.example', target: '/orders' },
    answer: 'Explanation',
    success: 'The explanation, whether or not the token would be allowed the request.',
    example: { data: EXPLANATION, ...SUCCESS },
    codes: ['invalid_scope', 'not_found', 'store_corrupt'],
  },
  'GET /review': {
    verb: 'review',
    operationId: 'reviewTokens',
    summary: 'Finds tokens of the account that somebody should look at',
    description:
      'Looks at active and suspended tokens, newest first, and changes nothing. `unused`, `never_used`, `excess` and `expiring` are only found if the service records usage.',
    query: 'review',
    answer: 'FindingList',
    success:
      'The findings; all findings about a token are on one page. If there may be more, a cursor and a link to the next page; then a page may be empty.',
    example: { data: [FINDING], ...SUCCESS },
    codes: ['store_corrupt'],
  },
  'GET /scopes': {
    verb: 'scopes',
    tag: 'about',
    operationId: 'listScopes',
    summary: 'Lists the scopes this account can request',
    description: 'The answer has an ETag, and 304 answers a call that has it.',
    query: 'scopes',
    answer: 'ScopeList',
    success: 'The scopes, in canonical order.',
    example: { data: [EXAMPLE_SCOPE], ...SUCCESS },
    codes: [],
  },
  'POST /session': {
    ...SESSION,
    verb: 'beginSession',
    by: 'password',
    operationId: 'beginSession',
    summary: 'Signs in: begins a session, kept in a cookie',
    description:
      'The cookie stands for the credentials in later calls, for at most eight hours. It must be renewed after 15 minutes, by `GET`.',
    success: 'The session. The header `Set-Cookie` holds its cookie.',
    codes: [],
  },
  'GET /session': {
    ...SESSION,
    verb: 'renewSession',
    by: 'session',
    operationId: 'renewSession',
    summary: 'Shows who is signed in, and renews the cookie',
    success: 'The session. If its cookie was due, the header `Set-Cookie` renews it.',
    codes: [],
  },
  'DELETE /session': {
    ...SESSION,
    verb: 'endSession',
    by: 'session',
    operationId: 'endSession',
    summary: 'Signs out: ends the session',
    description:
      'A copy of the cookie can work in other processes of the service for up to 15 minutes.',
    answer: 'Done',
    success: 'The session has ended, and its cookie is removed.',
    example: { data: null, ...SUCCESS },
    codes: [],
  },
  'GET /openapi.json': {
    by: 'anybody',
    tag: 'about',
    operationId: 'describe',
    summary: 'Describes this interface',
    answer: 'Document',
    success: 'This document.',
    codes: [],
  },
  'POST /introspect': {
    verb: 'introspect',
    by: 'server',
    option: 'introspection',
    tag: 'oauth',
    operationId: 'introspectToken',
    summary: 'Introspects a token value (RFC 7662)',
    description:
      'An answer with `active: true` counts as a use of the token and towards its limits.',
    form: 'IntrospectionForm',
    answer: 'Introspection',
    success: 'The claims of an active token, or `{ "active": false }`.',
    example: {
      active: true,
      scope: EXAMPLE_SCOPE,
      sub: 'ada',
      jti: EXAMPLE_ID,
      exp: TOKEN.expire,
      iat: TOKEN.createdAt,
      token_type: 'Bearer',
    },
    codes: ['store_corrupt'],
  },
  'POST /revoke': {
    verb: 'revokeByValue',
    by: 'anybody',
    option: 'revocation',
    tag: 'oauth',
    operationId: 'revokeByValue',
    summary: 'Lets the bearer of a token revoke it (RFC 7009)',
    description: 'Anyone who has the value may revoke it, so this call needs no other credentials.',
    form: 'TokenForm',
    success: 'The token is revoked, or there was none. There is no body.',
    codes: ['store_unavailable', 'store_corrupt', 'durability_unconfirmed'],
  },
  'POST /oauth/token': {
    verb: 'grant',
    by: 'client',
    option: 'grants',
    tag: 'oauth',
    operationId: 'grantToken',
    summary: 'Gives a client a token (RFC 6749)',
    description:
      'An exchange (RFC 8693) gives the requested scopes that the token of `subject_token` also has, in a token that expires no later. A device code (RFC 8628) gives the token that somebody has approved, once. Clients have no credentials.',
    form: 'GrantForm',
    answer: 'AccessToken',
    success: 'The new token, with its value under `access_token`.',
    example: {
      access_token: '<the value, shown once>',
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
      expires_in: 3600,
      scope: EXAMPLE_SCOPE,
    },
    codes: [
      ...SCOPE_CODES,
      'invalid_ttl',
      'quota_exceeded',
      'invalid_token',
      'address_denied',
      'limit_exceeded',
      'store_corrupt',
      'durability_unconfirmed',
    ],
    refusals: [
      'invalid_target',
      'unsupported_grant_type',
      'authorization_pending',
      'slow_down',
      'access_denied',
      'expired_token',
      'invalid_grant',
    ],
  },
  'POST /oauth/device': {
    verb: 'openRequest',
    by: 'client',
    option: 'requests',
    tag: 'oauth',
    operationId: 'openRequest',
    summary: 'Opens a request for a token (RFC 8628)',
    description:
      'Somebody who acts for an account types the user code, and approves the request or a part of it. Meanwhile the client polls at `/oauth/token`. With `subject_token`, the token is an addition to that one: it holds what was approved, and ends with any change of it.',
    form: 'DeviceForm',
    answer: 'DeviceAuthorization',
    success: 'The two codes of the request.',
    example: {
      device_code: '<for the client alone>',
      user_code: 'WDJB-MJHT',
      verification_uri: 'https://shop.example/tokens/approve',
      expires_in: 600,
      interval: 5,
    },
    codes: [
      ...SCOPE_CODES,
      'invalid_ttl',
      'quota_exceeded',
      'invalid_token',
      'address_denied',
      'limit_exceeded',
      'rate_limited',
      'store_corrupt',
      'durability_unconfirmed',
    ],
    refusals: ['invalid_target', 'unauthorized_client'],
  },
  'GET /request/{code}': {
    ...REQUEST,
    verb: 'showRequest',
    operationId: 'getRequest',
    summary: 'Shows a request for a token to the person who decides',
    success: 'The request, with what the account may have of what it asks for.',
    codes: ['not_found', 'rate_limited', 'store_corrupt'],
  },
  'POST /request/{code}/approve': {
    ...REQUEST,
    verb: 'approveRequest',
    operationId: 'approveRequest',
    summary: 'Approves a request for a token, or a part of it',
    description:
      'Send the scopes that were shown: they may be fewer than asked for, and never more. The client gets the token with its next poll.',
    body: 'approve',
    bodyExample: { scopes: [EXAMPLE_SCOPE], ttl: 900 },
    success: 'The request, with what was approved.',
    codes: [...DECISION_CODES, ...SCOPE_CODES, 'invalid_ttl', 'quota_exceeded', 'catalog_empty'],
  },
  'POST /request/{code}/deny': {
    ...REQUEST,
    verb: 'denyRequest',
    operationId: 'denyRequest',
    summary: 'Denies a request for a token',
    body: 'deny',
    bodyExample: {},
    answer: 'Done',
    success: 'The request is denied.',
    example: { data: null, ...SUCCESS },
    codes: DECISION_CODES,
  },
} as const satisfies Readonly<
  Record<`${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} /${string}`, Route>
>;

/** A call as a method and a path, such as `PATCH /token/{token}`. */
export type RouteName = keyof typeof ROUTES;

/** The functions that make answers. */
type VerbName = Extract<(typeof ROUTES)[RouteName], { verb: string }>['verb'];

/** All calls, each with its method and its path. */
export function allRoutes() {
  const routes: readonly [string, Route & { readonly verb?: VerbName }][] = Object.entries(ROUTES);
  return routes.map(([name, route]) => {
    const [method = '', path = ''] = name.split(' ');
    return { ...route, method, path };
  });
}
