import * as z from 'zod/mini';
import { MAX_COUNTED_DESCENDANTS, MAX_LIMIT_ADDRESSES, MAX_RATE_SECONDS } from '../bounds.ts';
import { once } from '../inputs/once.ts';
import type { ScopeDetails } from '../inputs/types.ts';
import { REQUEST_STATES } from '../ports/request-store.ts';
import { OTHER_SCOPES } from '../ports/usage-store.ts';
import type { TokenRequest } from '../requests/types.ts';
import { isId } from '../token/id.ts';
import { readMetadata } from '../token/metadata.ts';
import {
  type Explanation,
  isObject,
  type JsonObject,
  type RotatedToken,
  TOKEN_STATES,
  type Token,
  type TokenLimits,
} from '../token/record.ts';
import type { TokenAdvice } from '../usage/advice.ts';
import type { TokenUsage } from '../usage/counts.ts';
import type { BroadReason, TokenFinding } from '../usage/findings.ts';

// What the service answers. Each object has one schema: its type is made from it, the OpenAPI document
// shows it, and a client that does not trust the service checks answers by it.

/** A JSON Schema, or another part of the OpenAPI document. */
export type Json = Readonly<Record<string, unknown>>;

/** Beyond what the service sends: a server that answers in its place must not fill a terminal. */
const MAX_SENT_SCOPE_LENGTH = 4096;
const MAX_SENT_ITEMS = 65_536;
/** The last second that a Date can hold. */
const LAST_SECOND = 8_640_000_000_000;

export const ID_PATTERN = '^[0-9A-Za-z]{22}$';
const SCOPE: Json = { $ref: '#/components/schemas/Scope' };
const TOKEN: Json = { $ref: '#/components/schemas/Token' };
const USED_LAST = 'UNIX seconds; `null` if it was never used.';

/** A member: what makes it safe to print, and how the document shows it. */
function member<Type>(
  isSafe: (value: unknown) => boolean,
  schema: Json,
): z.ZodMiniType<Type, Type> {
  return z.custom<Type>(isSafe).check(z.meta(schema));
}

function seconds(description = 'UNIX seconds.'): z.ZodMiniType<number, number> {
  return member(isSecond, { type: 'integer', description });
}

function lastUsed(description = USED_LAST): z.ZodMiniType<number | null, number | null> {
  const isSafe = (value: unknown) => value === null || isSecond(value);
  return member(isSafe, { type: ['integer', 'null'], description });
}

function count(more: Json = {}): z.ZodMiniType<number, number> {
  return member(isCount, { type: 'integer', minimum: 0, ...more });
}

function text(description?: string): z.ZodMiniType<string, string> {
  return member(isText, { type: 'string', ...(description !== undefined && { description }) });
}

function isTrue(description: string): z.ZodMiniType<true, true> {
  return member((value) => value === true, { const: true, description });
}

function yesOrNo(description?: string): z.ZodMiniType<boolean, boolean> {
  const more = description === undefined ? {} : { description };
  return member((value) => typeof value === 'boolean', { type: 'boolean', ...more });
}

/** A word that no program knows all of: later versions may have others. */
function word<Word extends string>(schema: Json): z.ZodMiniType<Word, Word> {
  return member((value) => isText(value) && /^[a-z_]{1,40}$/.test(value), schema);
}

function id(more: Json = {}): z.ZodMiniType<string, string> {
  return member(isId, { type: 'string', pattern: ID_PATTERN, ...more });
}

function scopes(more: Json = {}): z.ZodMiniType<readonly string[], readonly string[]> {
  return member(isScopes, { type: 'array', items: SCOPE, ...more });
}

function isSecond(value: unknown): boolean {
  return isCount(value) && value <= LAST_SECOND;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isScopes(value: unknown): boolean {
  if (!Array.isArray(value) || value.length > MAX_SENT_ITEMS) return false;
  return value.every(isSentScope);
}

function isSentScope(value: unknown): boolean {
  return isText(value) && value.length <= MAX_SENT_SCOPE_LENGTH;
}

/** The members of every answer in the envelope. Clients go by the status. */
function success() {
  const any = () => true;
  return {
    success: member<true>(any, { const: true }),
    message: member<''>(any, { const: '' }),
    error: member<null>(any, { type: 'null' }),
  };
}

function enveloped<Data extends z.ZodMiniType>(data: Data) {
  return z.object({ data, ...success() });
}

function page<Data extends z.ZodMiniType>(data: Data) {
  return z.object({ data, ...success(), cursor: z.exactOptional(text()) });
}

/** A list of tokens, which the document shows by their name. */
function tokens(more: Json = {}): z.ZodMiniType<readonly WireToken[], readonly WireToken[]> {
  const isSafe = (value: unknown) => Array.isArray(value) && value.every(isToken);
  return member(isSafe, { type: 'array', items: TOKEN, ...more });
}

function isToken(value: unknown): boolean {
  return token().safeParse(value).success;
}

const RATE_SCHEMA: Json = {
  type: 'object',
  required: ['uses', 'seconds'],
  properties: {
    uses: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
    seconds: { type: 'integer', minimum: 1, maximum: MAX_RATE_SECONDS },
  } satisfies Record<keyof NonNullable<TokenLimits['rate']>, Json>,
  additionalProperties: false,
  description:
    'How often it may be used in each window. Windows begin at multiples of `seconds` since 1970.',
};

/** For tokens and for bodies. */
export const LIMITS_SCHEMA: Json = {
  type: 'object',
  required: [],
  properties: {
    addresses: {
      type: 'array',
      items: { type: 'string' },
      minItems: 1,
      maxItems: MAX_LIMIT_ADDRESSES,
      description: 'From where it may be used: IP addresses and CIDR blocks.',
    },
    uses: {
      type: 'integer',
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'How many times it may be used in total.',
    },
    rate: RATE_SCHEMA,
  } satisfies Record<keyof TokenLimits, Json>,
  minProperties: 1,
  additionalProperties: false,
};

function isLimits(value: unknown): boolean {
  const { addresses, uses, rate } = Object(value) as Readonly<Record<string, unknown>>;
  const { uses: often, seconds: window } = Object(rate) as Readonly<Record<string, unknown>>;
  return (
    (addresses === undefined || (Array.isArray(addresses) && addresses.every(isText))) &&
    (uses === undefined || isCount(uses)) &&
    (rate === undefined || (isCount(often) && isCount(window)))
  );
}

/** What people call an endpoint. */
function words() {
  return {
    summary: z.exactOptional(text('What it does, in one line.')),
    tag: z.exactOptional(text('The resource that it belongs to.')),
    segments: z.exactOptional(
      member<readonly string[]>((value) => Array.isArray(value) && value.every(isText), {
        type: 'array',
        items: { type: 'string' },
        description: 'A name for each `{}` of its path.',
      }),
    ),
    deprecated: z.exactOptional(isTrue('New programs should avoid it.')),
    operationId: z.exactOptional(text()),
  };
}

/** A scope with its words. */
const scopeDetail = once(() =>
  z.object({
    scope: member<string>(isSentScope, SCOPE),
    ...words(),
    operations: z.exactOptional(
      z
        .array(z.object(words()))
        .check(z.describe('The words of each operation, if the scope stands for several.')),
    ),
  }),
);

const permission = once(() =>
  z.object({
    tag: text('The name of the resource.'),
    domain: z.exactOptional(text('Its host.')),
    description: z.exactOptional(text()),
    read: scopes({ description: 'Its scopes that only read.' }),
    write: scopes({ description: 'All of its scopes.' }),
  }),
);

const preset = once(() =>
  z.object({
    name: text(),
    scopes: scopes(),
    ttl: z.exactOptional(count({ description: 'Seconds.' })),
    limits: z.exactOptional(member<TokenLimits>(isLimits, LIMITS_SCHEMA)),
  }),
);

const actor = once(() =>
  z
    .object({ sub: text('The account that acts.'), token: id({ description: 'Its token.' }) })
    .check(z.describe('Who acts with it, proven when it was derived (RFC 8693 section 4.1).')),
);

const ENDS = 'Any change of that one, or of one above, ends it.';

/** A token: {@link toWire}, {@link toWireRotated} and {@link toWireWithUse} make it. */
const token = once(() =>
  z.object({
    scopes: scopes(),
    expire: seconds(),
    token: text('The value, if it is known; otherwise the id.'),
    masked: text(
      'The beginning of the value, for people who have to recognize it. Holds nothing of the secret.',
    ),
    id: id({ description: 'The handle of the token; opens nothing.' }),
    state: word<Token['state']>({ type: 'string', enum: [...TOKEN_STATES, 'ancestor_ended'] }),
    createdAt: seconds(),
    version: member<number>(isCount, {
      type: 'integer',
      minimum: 1,
      description: 'What the ETag says.',
    }),
    pending: z.exactOptional(isTrue('A new value waits for its first use.')),
    parent: z.exactOptional(id({ description: 'What it was derived from.' })),
    elevates: z.exactOptional(
      id({ description: `Of an elevation: the token that may do more by it. ${ENDS}` }),
    ),
    name: z.exactOptional(text()),
    metadata: z.exactOptional(
      member<JsonObject>((value) => typeof readMetadata(value) === 'object', {
        type: 'object',
        additionalProperties: true,
      }),
    ),
    limits: z.exactOptional(
      member<TokenLimits>(isLimits, {
        ...LIMITS_SCHEMA,
        description: 'How the token is limited beyond its scopes and expiry.',
      }),
    ),
    createdBy: z.exactOptional(text('Who made it, as the service names people.')),
    purpose: z.exactOptional(text('What it is for.')),
    actor: z.exactOptional(actor()),
    descendants: z.exactOptional(
      count({
        maximum: MAX_COUNTED_DESCENDANTS,
        description: 'How many live tokens were derived from it; only in answers to a rotation.',
      }),
    ),
    lastUsed: z.exactOptional(
      lastUsed(`${USED_LAST} In answers to \`GET\`, if the service records usage and can read it.`),
    ),
    uses: z.exactOptional(
      count({ description: 'How often a check accepted it; present together with `lastUsed`.' }),
    ),
  }),
);

/** {@link toWireUse} makes these members. */
function use() {
  return { uses: count(), lastUsed: lastUsed() };
}

const usage = once(() =>
  z.object({
    uses: count({ description: 'How often a check accepted it.' }),
    refusals: count({ description: 'How often a check refused it.' }),
    lastUsed: lastUsed(),
    scopes: z
      .array(
        z.object({
          scope: member<string>(isSentScope, { anyOf: [SCOPE, { const: OTHER_SCOPES }] }),
          ...use(),
        }),
      )
      .check(
        z.refine(({ length }) => length <= MAX_SENT_ITEMS),
        z.describe(
          `All scopes that the token holds. An entry \`${OTHER_SCOPES}\` has the uses of scopes that are not counted separately.`,
        ),
      ),
    derived: z.exactOptional(
      z
        .object(use())
        .check(
          z.describe(
            'The uses of all tokens that were derived from it, which do not count as its own. Absent if there were none.',
          ),
        ),
    ),
  }),
);

const advice = once(() =>
  z.object({
    unused: scopes({ description: 'What the token can do without.' }),
    kept: scopes({ description: 'Its other scopes.' }),
    since: seconds('UNIX seconds. Since when these scopes have been counted.'),
  }),
);

/** As the library returns it. */
const explanation = once(() =>
  z.object({
    allowed: yesOrNo('Whether the token would be accepted for this now.'),
    needed: text(
      'The scope in question: that of the catalog for this request, otherwise its own. Empty for a request that servers could read differently.',
    ),
    summary: z.exactOptional(text('What the catalog calls the needed scope, in one line.')),
    known: yesOrNo('Whether the catalog has the requested operation.'),
    suggestions: scopes({ description: 'If it is not known: the most similar known scopes.' }),
    reason: z.exactOptional(
      text(
        'Why not: `insufficient_scope`, the state of the token, or what is wrong with the request, such as `path_dot_segment`.',
      ),
    ),
    grantedBy: z.exactOptional(member<string>(isText, SCOPE)),
    nearest: z.exactOptional(
      z
        .object({
          scope: member<string>(isText, SCOPE),
          failed: member<NonNullable<Explanation['nearest']>['failed']>(isText, {
            enum: ['method', 'domain', 'path'],
          }),
        })
        .check(
          z.describe('The nearest scope of the token, and the part of it that does not match.'),
        ),
    ),
    smallest: z.exactOptional(text('The narrowest scope that would be enough.')),
  }),
);

/** Each code of a finding, with the facts that it has. */
const FINDING_CODES = [
  'unused',
  'never_used',
  'broad',
  'excess',
  'expiring',
  'stale_secret',
  'orphaned_scope',
  'suspended',
] as const satisfies readonly TokenFinding['code'][];

const finding = once(() =>
  z.object({
    code: word<TokenFinding['code']>({ enum: FINDING_CODES }),
    token: member<WireToken>(isToken, TOKEN),
    scopes: scopes({
      description: 'The scopes in question: all that the token holds, unless it is about some.',
    }),
    message: text('What was found and what to do. May change.'),
    lastUsed: z.exactOptional(seconds('Of `unused` and `expiring`.')),
    since: z.exactOptional(seconds('Of `never_used` and `excess`: from when uses are counted.')),
    secretSince: z.exactOptional(seconds('Of `stale_secret`: when the value was made.')),
    suspendedAt: z.exactOptional(seconds('Of `suspended`: since when.')),
    reasons: z.exactOptional(
      member<readonly BroadReason[]>((value) => Array.isArray(value) && value.every(isText), {
        type: 'array',
        items: { enum: ['every_method', 'whole_host', 'most_of_catalog'] },
        description: 'Of `broad`.',
      }),
    ),
    covered: z.exactOptional(
      count({ description: 'Of `broad`: how many entries of the catalog the token covers.' }),
    ),
    entries: z.exactOptional(
      count({ description: 'Of `broad`: how many entries the catalog has.' }),
    ),
  }),
);

/** Who acts, and who acted before. */
interface Act {
  readonly sub: string;
  readonly token: string;
  readonly act?: Act;
}

/** {@link toIntrospection} makes it. */
const introspection = once(() =>
  z.object({
    active: yesOrNo(),
    scope: z.exactOptional(text('Scopes, with spaces between them.')),
    sub: z.exactOptional(text('The account.')),
    jti: z.exactOptional(id()),
    exp: z.exactOptional(seconds()),
    iat: z.exactOptional(seconds()),
    token_type: z.exactOptional(member<'Bearer'>(isText, { const: 'Bearer' })),
    purpose: z.exactOptional(text('What the token is for.')),
    act: z.exactOptional(
      member<Act>(isObject, {
        type: 'object',
        required: ['sub', 'token'],
        properties: {
          sub: { type: 'string', description: 'The account.' },
          token: { type: 'string', pattern: ID_PATTERN, description: 'The token that proved it.' },
          act: { type: 'object', description: 'Who acted before, in the same form.' },
        },
        description:
          'Who acts with the token (RFC 8693 section 4.1). Inside are those who acted with the tokens that it was derived from.',
      }),
    ),
  }),
);

/** {@link tokenAnswer} makes it (RFC 8693 section 2.2.1). */
const accessToken = once(() =>
  z.object({
    access_token: text('The value.'),
    issued_token_type: text(),
    token_type: member<'Bearer'>(isText, { const: 'Bearer' }),
    expires_in: count({ description: 'Seconds.' }),
    scope: text('Scopes, with spaces between them.'),
  }),
);

/** A request for a token: {@link toWireRequest} makes it. */
const request = once(() =>
  z.object({
    id: id({ description: 'The handle of the request; opens nothing.' }),
    state: word<TokenRequest['state']>({ type: 'string', enum: [...REQUEST_STATES] }),
    client: text('What the program calls itself. Anybody may claim any name.'),
    address: z.exactOptional(text('From where it was opened.')),
    scopes: scopes({
      description:
        'What this account may have of what is asked for; once approved, what was approved.',
    }),
    beyond: z.exactOptional(
      scopes({ description: 'Of an elevation: those that the token which asks does not hold.' }),
    ),
    purpose: z.exactOptional(text('What the token is for, as the program says.')),
    ttl: count({ description: 'How long the token would live, in seconds.' }),
    elevates: z.exactOptional(id({ description: 'Of an elevation: the token that asks.' })),
    createdAt: seconds(),
    expire: seconds('UNIX seconds. From then on it can no longer be decided.'),
  }),
);

/** Where a device sends its user (RFC 8628 section 3.2). */
const deviceAuthorization = once(() =>
  z.object({
    device_code: text('For the program alone: it polls with this.'),
    user_code: text('For the person who decides.'),
    verification_uri: text('Where the person types it.'),
    expires_in: count({ description: 'Seconds.' }),
    interval: count({ description: 'Seconds from one poll to the next.' }),
  }),
);

const failure = once(() =>
  z.object({
    success: member<false>((value) => value === false, { const: false }),
    message: text('For people; may change.'),
    error: member<number>(isCount, { type: 'integer' }),
    code: text('For programs; does not change.'),
    data: member<null>((value) => value === null, { type: 'null' }),
    details: z.exactOptional(
      member<{ readonly member?: string; readonly [name: string]: unknown }>(isObject, {
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
      }),
    ),
  }),
);

const oneToken = once(() => {
  const one = tokens({ minItems: 1, maxItems: 1 });
  return enveloped(one as z.ZodMiniType<readonly [WireToken], readonly [WireToken]>);
});

/** The answers of the service, by the names that the document has for them. */
export const ANSWERS = {
  Token: token,
  IssuedToken: once(() => z.extend(token(), success())),
  Success: once(() => z.object(success())),
  OneToken: oneToken,
  /** With the difference only if the change was not made. */
  ChangedToken: once(() =>
    z.extend(oneToken(), {
      diff: z.exactOptional(
        z
          .object({ added: scopes(), removed: scopes() })
          .check(z.describe('With `dryRun`: the rights that it would gain and lose.')),
      ),
    }),
  ),
  TokenList: once(() => page(tokens())),
  Usage: once(() => enveloped(usage())),
  Advice: once(() => enveloped(advice())),
  Explanation: once(() => enveloped(explanation())),
  FindingList: once(() => page(z.array(finding()))),
  ScopeList: once(() =>
    z.object({
      ...enveloped(z.union([scopes(), z.array(scopeDetail())])).shape,
      permissions: z.exactOptional(
        z
          .array(permission())
          .check(z.describe('With `details`: the scopes by resource and level of access.')),
      ),
      presets: z.exactOptional(
        z
          .array(preset())
          .check(z.describe('With `details`: named lists of scopes, to be sent as they are.')),
      ),
    }),
  ),
  Done: once(() => enveloped(member<null>((value) => value === null, { type: 'null' }))),
  Session: once(() =>
    enveloped(
      z.object({
        username: text(),
        expire: seconds('UNIX seconds. It is never longer, however often it is renewed.'),
      }),
    ),
  ),
  Failure: failure,
  Introspection: introspection,
  AccessToken: accessToken,
  Request: once(() => enveloped(request())),
  DeviceAuthorization: deviceAuthorization,
  /** An OpenAPI document. */
  Document: once(() => member<Json>(isObject, { type: 'object' })),
  OAuthFailure: once(() => z.object({ error: text(), error_description: text() })),
};

/** The type of each answer. */
export type Answers = {
  readonly [Name in keyof typeof ANSWERS]: z.output<ReturnType<(typeof ANSWERS)[Name]>>;
};

export type WireScopeDetail = z.output<ReturnType<typeof scopeDetail>>;
export type WirePermission = z.output<ReturnType<typeof permission>>;
export type WirePreset = z.output<ReturnType<typeof preset>>;
export type WireToken = z.output<ReturnType<typeof token>>;
export type WireUsage = Answers['Usage']['data'];
export type WireUse = NonNullable<WireUsage['derived']>;
export type WireAdvice = Answers['Advice']['data'];
export type WireExplanation = Answers['Explanation']['data'];
export type WireFinding = Answers['FindingList']['data'][number];
export type WireRequest = Answers['Request']['data'];

export function toWire(token: Token): WireToken {
  const { scopes, expiresAt, value, id, state, createdAt, version, name, metadata } = token;
  const { limits, masked, parent, elevates, createdBy, purpose, actor } = token;
  return {
    scopes,
    expire: toUnixSeconds(expiresAt),
    token: value ?? id,
    masked,
    id,
    state,
    createdAt: toUnixSeconds(createdAt),
    version,
    ...(token.pending === true && { pending: true }),
    ...(parent !== undefined && { parent }),
    ...(elevates !== undefined && { elevates }),
    ...(name !== undefined && { name }),
    ...(metadata !== undefined && { metadata }),
    ...(limits !== undefined && { limits }),
    ...(createdBy !== undefined && { createdBy }),
    ...(purpose !== undefined && { purpose }),
    ...(actor !== undefined && { actor }),
  };
}

/** A request for a token. */
export function toWireRequest({
  ttlSeconds,
  createdAt,
  expiresAt,
  ...request
}: TokenRequest): WireRequest {
  return {
    ...request,
    ttl: ttlSeconds,
    createdAt: toUnixSeconds(createdAt),
    expire: toUnixSeconds(expiresAt),
  };
}

/** A token that was rotated. With `cancel`, its descendants are not counted. */
export function toWireRotated(token: Token | RotatedToken): WireToken {
  return 'descendants' in token
    ? { ...toWire(token), descendants: token.descendants }
    : toWire(token);
}

/** A token with its use, if that is known. */
export function toWireWithUse(token: Token): WireToken {
  if (token.usesUnknown === true) return toWire(token);
  return {
    ...toWire(token),
    ...toWireUse({ uses: token.uses ?? 0, lastUsedAt: token.lastUsedAt }),
  };
}

/** What an account may choose from: for an answer with `details`. */
export function toWireScopes({ scopes, permissions, presets }: ScopeDetails) {
  return {
    data: scopes.map(({ operations = [], ...detail }) =>
      operations.length > 1 ? { ...detail, operations } : detail,
    ),
    permissions,
    presets: presets.map(({ ttlSeconds: ttl, ...preset }) => ({ ...preset, ttl })),
  };
}

interface Use {
  readonly uses: number;
  readonly lastUsedAt?: Date | undefined;
}

function toWireUse({ uses, lastUsedAt }: Use): WireUse {
  return { uses, lastUsed: lastUsedAt === undefined ? null : toUnixSeconds(lastUsedAt) };
}

export function toWireUsage(usage: TokenUsage): WireUsage {
  const { refusals, derived, scopes } = usage;
  return {
    ...toWireUse(usage),
    refusals,
    ...(derived !== undefined && { derived: toWireUse(derived) }),
    scopes: scopes.map((used) => ({ scope: used.scope, ...toWireUse(used) })),
  };
}

export function toWireAdvice({ unused, kept, since }: TokenAdvice): WireAdvice {
  return { unused, kept, since: toUnixSeconds(since) };
}

/** @param toToken makes the JSON of a token in answers to reads */
export function toWireFinding(finding: TokenFinding, toToken: typeof toWire): WireFinding {
  const { code, token, scopes, message } = finding;
  return { code, token: toToken(token), scopes, message, ...factsOf(finding) };
}

/** The members that only some findings have. */
function factsOf(finding: TokenFinding): Partial<WireFinding> {
  switch (finding.code) {
    case 'unused':
    case 'expiring':
      return { lastUsed: toUnixSeconds(finding.lastUsedAt) };
    case 'never_used':
    case 'excess':
      return { since: toUnixSeconds(finding.since) };
    case 'stale_secret':
      return { secretSince: toUnixSeconds(finding.secretSince) };
    case 'suspended':
      return { suspendedAt: toUnixSeconds(finding.suspendedAt) };
    case 'broad': {
      const { reasons, covered, entries } = finding;
      return { reasons, ...(covered !== undefined && { covered, entries }) };
    }
    case 'orphaned_scope':
      return {};
  }
}

/** The response of `/introspect`; without a live token, only that the value is not active. */
export function toIntrospection(token: Token | undefined): Answers['Introspection'] {
  if (token === undefined) return { active: false };
  const { purpose, actor, priorActors = [] } = token;
  const act = toAct(actor === undefined ? priorActors : [actor, ...priorActors]);
  return {
    active: true,
    scope: token.scopes.join(' '),
    sub: token.account,
    jti: token.id,
    exp: toUnixSeconds(token.expiresAt),
    iat: toUnixSeconds(token.createdAt),
    token_type: 'Bearer',
    ...(purpose !== undefined && { purpose }),
    ...(act !== undefined && { act }),
  };
}

/** @param actors newest first */
function toAct(actors: readonly Act[]): Act | undefined {
  return actors.reduceRight<Act | undefined>(
    (act, { sub, token }) => ({ sub, token, ...(act !== undefined && { act }) }),
    undefined,
  );
}

/** A hot path: a list of tokens has two times for each token. */
function toUnixSeconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}
