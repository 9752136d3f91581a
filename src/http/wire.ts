import { fromUnixTime } from 'date-fns/fromUnixTime';
import * as z from 'zod/mini';
import {
  MAX_COUNTED_DESCENDANTS,
  MAX_LIMIT_ADDRESSES,
  MAX_METADATA_BYTES,
  MAX_NAME_LENGTH,
  MAX_RATE_SECONDS,
  MAX_SCOPES,
} from '../bounds.ts';
import { isTokenError, type TokenError } from '../errors.ts';
import { INSTANT_SCHEMA, parseInstant } from '../inputs/instant.ts';
import {
  described,
  fields,
  got,
  readBy,
  readInput,
  secondsField,
  strict,
} from '../inputs/schemas.ts';
import { type Names, renamed, shown } from '../text/wording.ts';
import {
  type JsonObject,
  type Lifetime,
  type RotatedToken,
  TOKEN_STATES,
  type Token,
  type TokenLimits,
} from '../token/record.ts';
import { HttpError } from './errors.ts';

/** A JSON Schema, or another part of the OpenAPI document. */
export type Json = Readonly<Record<string, unknown>>;

/** A token in the JSON of a response. */
export interface WireToken {
  readonly scopes: readonly string[];
  readonly expire: number;
  readonly token: string;
  readonly masked: string;
  readonly id: string;
  readonly state: Token['state'];
  readonly createdAt: number;
  readonly version: number;
  readonly pending?: true;
  readonly parent?: string;
  readonly name?: string;
  readonly metadata?: JsonObject;
  readonly limits?: TokenLimits;
  /** Only in the answer to a rotation. */
  readonly descendants?: number;
  /** With `uses`, only in answers to reads, of a service that records usage. */
  readonly lastUsed?: number | null;
  readonly uses?: number;
}

export function toWire(token: Token): WireToken {
  const { scopes, expiresAt, value, id, state, createdAt, version, name, metadata } = token;
  const { limits, masked, parent } = token;
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
    ...(name !== undefined && { name }),
    ...(metadata !== undefined && { metadata }),
    ...(limits !== undefined && { limits }),
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

export interface WireUse {
  readonly uses: number;
  /** `null` if it was never used. */
  readonly lastUsed: number | null;
}

export function toWireUse({ uses, lastUsedAt }: Use): WireUse {
  return { uses, lastUsed: lastUsedAt === undefined ? null : toUnixSeconds(lastUsedAt) };
}

interface Use {
  readonly uses: number;
  readonly lastUsedAt?: Date | undefined;
}

/** The response of `/introspect`; without a live token, only that the value is not active. */
export function toIntrospection(token: Token | undefined): Json {
  if (token === undefined) return { active: false };
  return {
    active: true,
    scope: token.scopes.join(' '),
    sub: token.account,
    jti: token.id,
    exp: toUnixSeconds(token.expiresAt),
    iat: toUnixSeconds(token.createdAt),
    token_type: 'Bearer',
  };
}

/** A hot path: a list of tokens has two times for each token. */
export function toUnixSeconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}

export const ID_PATTERN = '^[0-9A-Za-z]{22}$';

export const SECONDS: Json = { type: 'integer', description: 'UNIX seconds.' };
export const COUNT: Json = { type: 'integer', minimum: 0 };
export const LAST_USED: Json = {
  type: ['integer', 'null'],
  description: 'UNIX seconds; `null` if it was never used.',
};

const RATE_SCHEMA: Json = {
  ...objectSchema({
    uses: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
    seconds: { type: 'integer', minimum: 1, maximum: MAX_RATE_SECONDS },
  } satisfies Record<keyof NonNullable<TokenLimits['rate']>, Json>),
  additionalProperties: false,
  description:
    'How often it may be used in each window. Windows begin at multiples of `seconds` since 1970.',
};

/** For tokens and for bodies. */
const LIMITS_SCHEMA: Json = {
  ...objectSchema({}, {
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
  } satisfies Record<keyof TokenLimits, Json>),
  minProperties: 1,
  additionalProperties: false,
};

const OPTIONAL_MEMBERS = {
  pending: { const: true, description: 'A new value waits for its first use.' },
  parent: { type: 'string', pattern: ID_PATTERN, description: 'What it was derived from.' },
  name: { type: 'string' },
  metadata: { type: 'object', additionalProperties: true },
  limits: {
    ...LIMITS_SCHEMA,
    description: 'How the token is limited beyond its scopes and expiry.',
  },
  descendants: {
    ...COUNT,
    maximum: MAX_COUNTED_DESCENDANTS,
    description: 'How many live tokens were derived from it; only in answers to a rotation.',
  },
  lastUsed: {
    ...LAST_USED,
    description: `${LAST_USED['description']} In answers to \`GET\`, if the service records usage and can read it.`,
  },
  uses: {
    ...COUNT,
    description: 'How often a check accepted it; present together with `lastUsed`.',
  },
} satisfies Partial<Record<keyof WireToken, Json>>;

/** The schema of {@link toWire} and {@link toWireWithUse}. */
export const TOKEN_SCHEMA: Json = objectSchema(
  {
    scopes: arrayOf('Scope'),
    expire: SECONDS,
    token: { type: 'string', description: 'The value, if it is known; otherwise the id.' },
    masked: {
      type: 'string',
      description:
        'The beginning of the value, for people who have to recognize it. Holds nothing of the secret.',
    },
    id: {
      type: 'string',
      pattern: ID_PATTERN,
      description: 'The handle of the token; opens nothing.',
    },
    state: { type: 'string', enum: [...TOKEN_STATES, 'ancestor_ended'] },
    createdAt: SECONDS,
    version: { type: 'integer', minimum: 1, description: 'What the ETag says.' },
  } satisfies Record<keyof Omit<WireToken, keyof typeof OPTIONAL_MEMBERS>, Json>,
  OPTIONAL_MEMBERS,
);

/** The schema of {@link toIntrospection}. */
export const INTROSPECTION_SCHEMA: Json = objectSchema(
  { active: { type: 'boolean' } },
  {
    scope: { type: 'string', description: 'Scopes, with spaces between them.' },
    sub: { type: 'string', description: 'The account.' },
    jti: { type: 'string', pattern: ID_PATTERN },
    exp: SECONDS,
    iat: SECONDS,
    token_type: { const: 'Bearer' },
  },
);

export function objectSchema(required: Json, optional: Json = {}): Json {
  return {
    type: 'object',
    required: Object.keys(required),
    properties: { ...required, ...optional },
  };
}

/** The schema of an array of a component of the document. */
export function arrayOf(component: 'Scope' | 'Token'): Json {
  return { type: 'array', items: { $ref: `#/components/schemas/${component}` } };
}

// Descriptions and `meta` are for the OpenAPI document.
const scopes = fields.scopes.check(
  z.meta({
    ...arrayOf('Scope'),
    minItems: 1,
    maxItems: MAX_SCOPES,
    description: 'A wildcard expands to every matching entry of the catalog.',
  }),
);

const name = fields.name.check(
  z.meta({
    type: 'string',
    minLength: 1,
    maxLength: MAX_NAME_LENGTH,
    pattern: '^[^\\p{Cc}\\p{Cs}]*$',
    description: 'For people. Characters beyond U+FFFF count twice.',
  }),
);

const metadata = fields.metadata.check(
  z.meta({
    type: 'object',
    additionalProperties: true,
    description: `Your own facts, of at most ${MAX_METADATA_BYTES} bytes as JSON. Replaced whole.`,
  }),
);

const limits = fields.limits.check(
  z.meta({
    ...LIMITS_SCHEMA,
    description: 'From where and how often the token may be used. Replaced whole.',
  }),
);

/** The last instant that a Date can hold. */
const LAST_UNIX_SECOND = 8_640_000_000_000;
const EXAMPLE_INSTANT = '2027-01-31T12:00:00Z';

const expire = instantField({
  rule: `expire must be a whole number of UNIX seconds, or a date-time with its zone, such as "${EXAMPLE_INSTANT}"`,
  read: readInstant,
}).check(
  z.meta({
    anyOf: [{ type: 'integer', maximum: LAST_UNIX_SECOND }, INSTANT_SCHEMA],
    description:
      'When the token expires, later than now: in UNIX seconds, or as an ISO 8601 date-time with its zone.',
  }),
);

/** A number here could also be a lifetime in seconds, as older clients send it. */
const expireText = instantField({
  rule: `expire must be a date-time with its zone, such as "${EXAMPLE_INSTANT}"`,
  read: readInstantText,
}).check(
  z.meta({
    ...INSTANT_SCHEMA,
    description:
      'When the token expires, later than now: an ISO 8601 date-time with its zone. Not a number.',
  }),
);

interface InstantRule {
  readonly rule: string;
  readonly read: (value: unknown) => Date | undefined;
}

function instantField({ rule, read }: InstantRule): z.ZodMiniType<Date> {
  return readBy((value, refuse) => read(value) ?? refuse(got(rule)({ input: value })));
}

function readInstant(value: unknown): Date | undefined {
  const isSeconds = Number.isSafeInteger(value) && (value as number) <= LAST_UNIX_SECOND;
  return isSeconds ? fromUnixTime(value as number) : readInstantText(value);
}

function readInstantText(value: unknown): Date | undefined {
  return typeof value === 'string' ? parseInstant(value) : undefined;
}

function expiresIn({ maxSeconds }: Lifetime): z.ZodMiniType<number> {
  return fields.expiresIn.check(
    z.meta({
      anyOf: [
        { type: 'integer', minimum: 1, maximum: maxSeconds },
        { type: 'string', pattern: '^(?=0*[1-9])\\d{1,9}[smhd]$' },
      ],
      description:
        'The lifetime from now, such as `30d`, `12h`, `30m` or `45s`, or a number of seconds.',
    }),
  );
}

export type BodySchemas = Readonly<
  Record<'create' | 'replace' | 'patch' | 'rotate' | 'explain', z.ZodMiniObject>
>;

const BODY = 'the body must be';

/** The bodies that a service with these lifetimes accepts. */
export function bodySchemas(lifetime: Lifetime): BodySchemas {
  const duration = z.optional(expiresIn(lifetime));
  return {
    create: strict(
      {
        scopes,
        ttl: z.optional(
          described(secondsField('ttl', 1, lifetime.maxSeconds), 'The lifetime in seconds.'),
        ),
        expiresIn: duration,
        expire: z.optional(expireText),
        name: z.optional(name),
        metadata: z.optional(metadata),
        limits: z.optional(limits),
      },
      BODY,
    ),
    replace: strict(
      {
        scopes,
        expire: z.optional(expire),
        expiresIn: duration,
        limits: z.optional(z.nullable(limits)),
      },
      BODY,
    ),
    patch: strict(
      {
        scopes: z.optional(scopes),
        addScopes: z.optional(scopes),
        removeScopes: z.optional(scopes),
        expire: z.optional(expire),
        expiresIn: duration,
        name: z.optional(z.nullable(name)),
        metadata: z.optional(z.nullable(metadata)),
        limits: z.optional(z.nullable(limits)),
        suspended: z.optional(
          described(
            fields.suspended,
            '`true` refuses the token until `false`; nothing else about it changes.',
          ),
        ),
      },
      BODY,
    ),
    rotate: rotateBody(),
    explain: explainBody(),
  };
}

function rotateBody(): z.ZodMiniObject {
  return strict(
    {
      activate: z.optional(
        described(
          fields.activate,
          'Both values work until the new one is used. Without it, the old one ends now.',
        ),
      ),
      graceSeconds: z.optional(
        described(fields.graceSeconds, 'How long the old value lives on after that.'),
      ),
      endDerived: z.optional(
        described(
          fields.endDerived,
          'After a leak: also revokes all tokens that were derived from this one.',
        ),
      ),
      cancel: z.optional(
        described(fields.cancel, 'Drops a new value that has not been used, and makes none.'),
      ),
    },
    BODY,
  );
}

function explainBody(): z.ZodMiniObject {
  return strict(
    {
      scope: z.optional(
        z
          .string({ error: got('scope must be a text such as "GET:shop.example/orders"') })
          .check(z.meta({ $ref: '#/components/schemas/Scope' })),
      ),
      method: requestPart('method', 'GET'),
      domain: requestPart('domain', 'shop.example'),
      target: described(
        requestPart('target', '/orders/7'),
        'The path as the client sends it, with or without its query.',
      ),
    },
    BODY,
  );
}

function requestPart(name: string, example: string) {
  return z.optional(z.string({ error: got(`${name} must be a text such as "${example}"`) }));
}

/**
 * Renames the members of a body to the names of the service. Checks only the value of `expire`: the
 * service checks the others itself, with the same errors as the schema.
 *
 * @throws {TokenError} for a body that is not an object, an unknown member or a bad `expire`. If other
 * members are bad as well, their error may come first
 * @throws {HttpError} `invalid_request` for two lifetimes
 */
export function toInput<Input>(schema: z.ZodMiniObject, body: unknown): Input {
  refuseSecondLifetime(body);
  const expiresAt = isObject(body) ? readInstant(body['expire']) : undefined;
  if (!isShaped(schema, body, expiresAt)) return readInput(schema as z.ZodMiniType<Input>, body);
  const { ttl, expire: _, ...rest } = body;
  return {
    ...rest,
    ...(ttl !== undefined && { ttlSeconds: ttl }),
    ...(expiresAt !== undefined && { expiresAt }),
  } as Input;
}

function isShaped(
  { shape }: z.ZodMiniObject,
  body: unknown,
  expiresAt: Date | undefined,
): body is Record<string, unknown> {
  if (!isObject(body)) return false;
  const isKnown = Object.keys(body).every((member) => Object.hasOwn(shape, member));
  return isKnown && (body['expire'] === undefined || expiresAt !== undefined);
}

/** The members of bodies that say how long a token lives. */
const LIFETIMES = ['ttl', 'expiresIn', 'expire'];

/** Comes first, because the service would report a bad value of one of them before. */
function refuseSecondLifetime(body: unknown): void {
  if (!isObject(body)) return;
  const [first, second] = LIFETIMES.filter((member) => body[member] !== undefined);
  if (first === undefined || second === undefined) return;
  throw new HttpError(
    'invalid_request',
    `${second} cannot be given together with ${first}; give one of them`,
    { details: { member: second } },
  );
}

/** Some older clients send `expire` for the lifetime in seconds, and `ttl: 0` for the default. */
export function fromLegacyBody(body: unknown): unknown {
  if (!isObject(body) || typeof body['expire'] === 'string') return body;
  refuseSecondLifetime(body);
  const { ttl, expire, ...rest } = body;
  const lifetime = expire === undefined && ttl !== 0 ? ttl : expire;
  return lifetime === undefined ? rest : { ...rest, ttl: lifetime };
}

/** Refuses `expire` as a number in a create body: UNIX seconds, or the lifetime of older clients? */
export function refuseExpireNumber(body: unknown): void {
  if (!isObject(body) || !Object.hasOwn(body, 'expire')) return;
  if (typeof body['expire'] === 'string') return;
  const kind = typeof body['expire'] === 'number' ? 'a number' : shown(body['expire']);
  throw new HttpError(
    'invalid_request',
    `expire cannot be ${kind} here: give ttl in seconds, expiresIn such as "30d", or a date-time such as "${EXAMPLE_INSTANT}"`,
    { details: { member: 'expire' } },
  );
}

/** Refuses a member of another call, which a client may mix up with one of this call. */
export function refuseMember(body: unknown, member: string, instead: string): void {
  if (!isObject(body) || !Object.hasOwn(body, member)) return;
  throw new HttpError('invalid_request', `${member} cannot be given here; ${instead}`, {
    details: { member },
  });
}

/** The members of bodies that have other names in the library. */
const WIRE_NAMES: Names = { ttlSeconds: 'ttl', expiresAt: 'expire' };

/** An error of the service, with the names that callers over HTTP know. */
export function toWireError(error: TokenError): HttpError {
  const { code, message, details } = renamed(error, WIRE_NAMES);
  return new HttpError(code, message, { details });
}

/** Says `expire` of a lifetime that {@link fromLegacyBody} has read from it. */
export function inLegacyWords(error: unknown, body: unknown): unknown {
  const isRead = isObject(body) && !['string', 'undefined'].includes(typeof body['expire']);
  return isRead && isTokenError(error) ? renamed(error, { ttlSeconds: 'expire' }) : error;
}

/** Adds a hint for older clients, which send `ttl: 0`, to the refusal of it. */
export function withLegacyHint(error: unknown, body: unknown): unknown {
  const isAboutTtl = isTokenError(error) && error.code === 'invalid_ttl';
  if (!isAboutTtl || !isObject(body) || body['ttl'] !== 0) return error;
  const { message, details } = toWireError(error);
  const hint =
    'leave it out for the default lifetime; with --accept-legacy-body (acceptLegacyBody) the service reads 0 as that';
  return new HttpError('invalid_ttl', `${message}: ${hint}`, { details });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The entity tag of a token, as a header. */
export function etag({ version }: Token): Record<string, string> {
  return { etag: `"${version}"` };
}

/**
 * The versions that an `If-Match` lists (RFC 9110 section 13.1.1); `undefined` if it is not a list of
 * entity tags. Tags that no version of a token has are left out.
 *
 * Weak tags and bare numbers count, although the RFC asks for strong comparison: gateways that compress
 * responses weaken the tags in them, and a token has one representation for each version, so a weak tag
 * names it as well as a strong one. Without them, a correct client behind such a gateway would read and
 * be refused again and again.
 */
export function versionsOf(header: string): readonly number[] | undefined {
  const versions: number[] = [];
  let count = 0;
  for (let at = 0; at < header.length; ) {
    LISTED_TAG.lastIndex = at;
    const [all, tag] = LISTED_TAG.exec(header) ?? [];
    if (all === undefined) return undefined;
    at += all.length;
    if (tag === undefined) continue;
    count += 1;
    const version = /^(?:W\/)?"?([1-9]\d{0,14})"?$/.exec(tag)?.[1];
    if (version !== undefined) versions.push(Number(version));
  }
  return count === 0 ? undefined : versions;
}

/** One element of a list, which may be empty: an entity tag, or the bare number of a version. */
const LISTED_TAG = /[\t ]*(?:((?:W\/)?"[!\x23-\x7e\x80-\xff]*"|[1-9]\d{0,14})[\t ]*)?(?:,|$)/y;
