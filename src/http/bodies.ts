import { fromUnixTime } from 'date-fns/fromUnixTime';
import * as z from 'zod/mini';
import { MAX_METADATA_BYTES, MAX_NAME_LENGTH, MAX_SCOPES } from '../bounds.ts';
import { isTokenError, type TokenError } from '../errors.ts';
import { INSTANT_SCHEMA, parseInstant } from '../inputs/instant.ts';
import { once } from '../inputs/once.ts';
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
import type { Lifetime } from '../token/record.ts';
import { HttpError, toHttpError } from './errors.ts';
import { type Json, LIMITS_SCHEMA } from './wire.ts';

// Descriptions and `meta` are for the OpenAPI document.
const scopes = once(() =>
  fields.scopes().check(
    z.meta({
      type: 'array',
      items: { $ref: '#/components/schemas/Scope' },
      minItems: 1,
      maxItems: MAX_SCOPES,
      description: 'A wildcard expands to every matching entry of the catalog.',
    }),
  ),
);

const name = once(() =>
  fields.name().check(
    z.meta({
      type: 'string',
      minLength: 1,
      maxLength: MAX_NAME_LENGTH,
      pattern: '^[^\\p{Cc}\\p{Cs}]*$',
      description: 'For people. Characters beyond U+FFFF count twice.',
    }),
  ),
);

const metadata = once(() =>
  fields.metadata().check(
    z.meta({
      type: 'object',
      additionalProperties: true,
      description: `Your own facts, of at most ${MAX_METADATA_BYTES} bytes as JSON. Replaced whole.`,
    }),
  ),
);

const limits = once(() =>
  fields.limits().check(
    z.meta({
      ...LIMITS_SCHEMA,
      description: 'From where and how often the token may be used. Replaced whole.',
    }),
  ),
);

/** The last instant that a Date can hold. */
const LAST_UNIX_SECOND = 8_640_000_000_000;
const EXAMPLE_INSTANT = '2027-01-31T12:00:00Z';

const expire = once(() =>
  instantField({
    rule: `expire must be a whole number of UNIX seconds, or a date-time with its zone, such as "${EXAMPLE_INSTANT}"`,
    read: readInstant,
  }).check(
    z.meta({
      anyOf: [{ type: 'integer', maximum: LAST_UNIX_SECOND }, INSTANT_SCHEMA],
      description:
        'When the token expires, later than now: in UNIX seconds, or as an ISO 8601 date-time with its zone.',
    }),
  ),
);

/** A number here could also be a lifetime in seconds, as older clients send it. */
const expireText = once(() =>
  instantField({
    rule: `expire must be a date-time with its zone, such as "${EXAMPLE_INSTANT}"`,
    read: readInstantText,
  }).check(
    z.meta({
      ...INSTANT_SCHEMA,
      description:
        'When the token expires, later than now: an ISO 8601 date-time with its zone. Not a number.',
    }),
  ),
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
  return fields.expiresIn().check(
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

/** The bodies of the calls that take one, each made on its first use. */
export type BodySchemas = Readonly<
  Record<
    'create' | 'derive' | 'replace' | 'patch' | 'rotate' | 'explain' | 'approve' | 'deny',
    () => z.ZodMiniObject
  >
>;

/** The members of bodies that say how long a token lives. */
const LIFETIMES = ['ttl', 'expiresIn', 'expire'] as const;

/** Matches a body with two lifetimes, which is refused before its schema is asked. */
const TWO_LIFETIMES: Json = {
  anyOf: [
    { required: ['ttl', 'expiresIn'] },
    { required: ['ttl', 'expire'] },
    { required: ['expiresIn', 'expire'] },
  ],
};

/** A body with these members. @param rules what the document says of it that its members do not */
function body(shape: z.core.$ZodShape, rules: Json): z.ZodMiniObject {
  return strict(shape, 'the body must be').check(z.meta(rules));
}

/** The bodies that a service with these lifetimes accepts. */
export function bodySchemas(lifetime: Lifetime): BodySchemas {
  const duration = once(() => z.optional(expiresIn(lifetime)));
  return {
    create: once(() => createBody(lifetime, duration())),
    derive: once(() => createBody(lifetime, duration(), { actorToken: actorToken() })),
    replace: once(() =>
      body(
        {
          scopes: scopes(),
          expire: z.optional(expire()),
          expiresIn: duration(),
          limits: z.optional(z.nullable(limits())),
        },
        { not: TWO_LIFETIMES },
      ),
    ),
    patch: once(() => patchBody(duration())),
    rotate: rotateBody,
    explain: explainBody,
    approve: once(() => approveBody(lifetime)),
    deny: denyBody,
  };
}

function actorToken(): z.ZodMiniType {
  return z.optional(
    described(
      fields.actorToken(),
      'The value of a live token of any account: it proves who acts with the new one, and grants nothing (RFC 8693 section 2.1).',
    ),
  );
}

function createBody(
  { maxSeconds }: Lifetime,
  duration: z.ZodMiniType,
  more: z.core.$ZodShape = {},
): z.ZodMiniObject {
  const ttl = described(secondsField('ttl', 1, maxSeconds), 'The lifetime in seconds.');
  return body(
    {
      scopes: scopes(),
      ttl: z.optional(ttl),
      expiresIn: duration,
      expire: z.optional(expireText()),
      name: z.optional(name()),
      metadata: z.optional(metadata()),
      limits: z.optional(limits()),
      purpose: z.optional(
        described(fields.purpose(), 'What the token is for, 1 to 200 characters. Never changes.'),
      ),
      ...more,
    },
    { not: TWO_LIFETIMES },
  );
}

function patchBody(duration: z.ZodMiniType): z.ZodMiniObject {
  return body(
    {
      scopes: z.optional(scopes()),
      addScopes: z.optional(scopes()),
      removeScopes: z.optional(scopes()),
      expire: z.optional(expire()),
      expiresIn: duration,
      name: z.optional(z.nullable(name())),
      metadata: z.optional(z.nullable(metadata())),
      limits: z.optional(z.nullable(limits())),
      suspended: z.optional(
        described(
          fields.suspended(),
          '`true` refuses the token until `false`; nothing else about it changes.',
        ),
      ),
    },
    {
      minProperties: 1,
      not: {
        anyOf: [
          { required: ['scopes', 'addScopes'] },
          { required: ['scopes', 'removeScopes'] },
          TWO_LIFETIMES,
        ],
      },
    },
  );
}

/** `cancel` excludes the other members, and `endDerived` what keeps the old value. */
const rotateBody = once(() =>
  body(
    {
      activate: z.optional(
        described(
          fields.activate(),
          'Both values work until the new one is used. Without it, the old one ends now.',
        ),
      ),
      graceSeconds: z.optional(
        described(fields.graceSeconds(), 'How long the old value lives on after that.'),
      ),
      endDerived: z.optional(
        described(
          fields.endDerived(),
          'After a leak: also revokes all tokens that were derived from this one.',
        ),
      ),
      cancel: z.optional(
        described(fields.cancel(), 'Drops a new value that has not been used, and makes none.'),
      ),
    },
    {
      not: {
        anyOf: [
          ...['activate', 'graceSeconds'].map((other) => ({ required: ['cancel', other] })),
          ...['activate', 'graceSeconds', 'cancel'].map((other) => ({
            properties: { endDerived: { const: true } },
            required: ['endDerived', other],
          })),
        ],
      },
    },
  ),
);

function approveBody({ maxSeconds }: Lifetime): z.ZodMiniObject {
  const ttl = 'The lifetime in seconds, no more than the request asks for.';
  return body(
    {
      scopes: z.optional(scopes()),
      ttl: z.optional(described(secondsField('ttl', 1, maxSeconds), ttl)),
    },
    {},
  );
}

/** A form of another site cannot send it. */
const denyBody = once(() => body({}, {}));

/** The members of a question that is about a request. */
const REQUEST = ['method', 'domain', 'target'];

/** `scope` excludes the other members. */
const explainBody = once(() =>
  body(
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
    {
      anyOf: [{ required: ['scope'] }, { required: REQUEST }],
      not: { anyOf: REQUEST.map((member) => ({ required: ['scope', member] })) },
    },
  ),
);

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
  return toHttpError(renamed(error, WIRE_NAMES));
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
