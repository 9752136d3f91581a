import * as z from 'zod';
import { TokenError, type TokenErrorCode } from './errors.ts';
import { editDistance, parseScopes } from './scope/catalog.ts';
import { recallScope } from './scope/grammar.ts';
import { parseScope, type Scope, type ScopeError } from './scope/index.ts';
import {
  isAccount,
  isMetadata,
  isPlainText,
  type JsonObject,
  type Lifetime,
  ttlMessage,
} from './token.ts';
import { redact } from './value.ts';

/** What `issue` takes. */
export interface IssueInput {
  /** Whom the token is to belong to: 1 to 255 bytes of text without control characters. */
  readonly account: string;
  /** 1 to 4096 scopes; with a catalog, wildcards are expanded against it. */
  readonly scopes: readonly string[];
  /** Whole seconds, from 1 to the longest lifetime. @default the service's default lifetime */
  readonly ttlSeconds?: number | undefined;
  /** For people: 1 to 200 characters, no control characters. */
  readonly name?: string | undefined;
  /** The host's own facts: a JSON object of at most 4096 bytes. */
  readonly metadata?: JsonObject | undefined;
}

/** What `list` takes. */
export interface ListInput {
  /** Whose tokens. */
  readonly account: string;
  /** Only tokens that have to do with this scope. */
  readonly scope?: string | undefined;
  /**
   * How: `overlaps`, the token can touch something of it; `covers`, the token may do all of it;
   * `exact`, the token holds this very scope. @default 'overlaps'
   */
  readonly match?: 'overlaps' | 'covers' | 'exact' | undefined;
  /** At most so many on this page, 1 to 1000. @default 100 */
  readonly limit?: number | undefined;
  /** Where the page before this one ended. */
  readonly cursor?: string | undefined;
}

/** What `modify` puts in the place of what was. */
export interface ModifyInput {
  /** 1 to 4096 scopes; with a catalog, wildcards are expanded against it. */
  readonly scopes: readonly string[];
  /**
   * Later than now, and at most the longest lifetime from now.
   * @default the default lifetime from now
   */
  readonly expiresAt?: Date | undefined;
}

/** What `patch` changes; what is not named stays as it is. */
export interface PatchInput {
  /** Instead of those held; not together with `addScopes` or `removeScopes`. */
  readonly scopes?: readonly string[] | undefined;
  /** Beside those held; expanded as `issue` does it. */
  readonly addScopes?: readonly string[] | undefined;
  /** Drops each held scope that one of these covers. */
  readonly removeScopes?: readonly string[] | undefined;
  /** Later than now, and at most the longest lifetime from now. */
  readonly expiresAt?: Date | undefined;
  /** `null` removes it. */
  readonly name?: string | null | undefined;
  /** Replaced whole; `null` removes it. */
  readonly metadata?: JsonObject | null | undefined;
}

/** Conditions of a change. */
export interface ChangeOptions {
  /** Only when the token still has this version; else `version_conflict`. */
  readonly ifVersion?: number | undefined;
  /** Only tell what would come of it. @default false */
  readonly dryRun?: boolean | undefined;
}

/** How `rotate` goes about it. */
export interface RotateOptions {
  /** How long the old value lives on: whole seconds, never past the token's expiry. @default 0 */
  readonly graceSeconds?: number | undefined;
  /** Only when the token still has this version; else `version_conflict`. */
  readonly ifVersion?: number | undefined;
}

/** How `verify` reads. */
export interface VerifyOptions {
  /** Reads the store, whatever `cache` allows. @default false */
  readonly fresh?: boolean | undefined;
}

/** What `purge` takes. */
export interface PurgeInput {
  /** Records that expired or were revoked before this instant go; not later than now. */
  readonly before: Date;
  /** At most so many. @default all, in batches */
  readonly limit?: number | undefined;
}

/** An input as it was read: scopes parsed. */
export type Read<Input> = {
  readonly [Member in keyof Input]: Member extends 'scopes' | 'addScopes' | 'removeScopes'
    ? readonly Scope[] | Extract<Input[Member], undefined>
    : Member extends 'scope'
      ? Scope | Extract<Input[Member], undefined>
      : Input[Member];
};

const MAX_NAME_LENGTH = 200;
const MAX_COMPARED_NAMES = 20;
const MAX_PAGE = 1000;

const accountMessage =
  'account must be 1 to 255 bytes of text without control characters, such as "acme"';
const nameMessage = `name must be 1 to ${MAX_NAME_LENGTH} characters without control characters`;
const metadataMessage = 'metadata must be a JSON object of at most 4096 bytes';

/** The members that several inputs share, here and on the wire; one home for each rule. */
export const fields = {
  account: z.custom<string>(isAccount, { error: accountMessage }),
  scopes: scopesField(),
  scope: z
    .unknown()
    .transform((value, context) => attempt(() => parseScope(value as string), context)),
  name: z.custom<string>(isName, { error: nameMessage }),
  metadata: z.custom<JsonObject>(isMetadata, { error: metadataMessage }),
  match: z.enum(['overlaps', 'covers', 'exact'], {
    error: 'match must be "overlaps", "covers" or "exact"',
  }),
  cursor: z.string({ error: 'cursor must be one that an earlier page gave' }),
  graceSeconds: wholeNumber(0, 31_536_000, 'graceSeconds'),
  ifVersion: wholeNumber(1, Number.MAX_SAFE_INTEGER, 'ifVersion'),
};

export const listInput = strict({
  account: fields.account,
  scope: fields.scope.optional(),
  match: fields.match.optional(),
  limit: wholeNumber(1, MAX_PAGE, 'limit').optional(),
  cursor: fields.cursor.optional(),
});

export const modifyInput = strict({
  scopes: fields.scopes,
  expiresAt: dateField('expiresAt').optional(),
});

export const patchInput = strict({
  scopes: fields.scopes.optional(),
  addScopes: fields.scopes.optional(),
  removeScopes: fields.scopes.optional(),
  expiresAt: dateField('expiresAt').optional(),
  name: fields.name.nullable().optional(),
  metadata: fields.metadata.nullable().optional(),
});

export const changeOptions = strict({
  ifVersion: fields.ifVersion.optional(),
  dryRun: z.boolean({ error: 'dryRun must be true or false' }).optional(),
});

export const revokeOptions = strict({ ifVersion: fields.ifVersion.optional() });

export const rotateOptions = strict({
  graceSeconds: fields.graceSeconds.optional(),
  ifVersion: fields.ifVersion.optional(),
});

export const verifyOptions = strict({
  fresh: z.boolean({ error: 'fresh must be true or false' }).optional(),
});

export const purgeInput = strict({
  before: dateField('before'),
  limit: wholeNumber(1, 1_000_000, 'limit').optional(),
});

/** What `issue` takes, with the lifetimes of this service. */
export function issueInput(lifetime: Lifetime): z.ZodType<Read<IssueInput>> {
  return strict({
    account: fields.account,
    scopes: fields.scopes,
    ttlSeconds: ttlField(lifetime).optional(),
    name: fields.name.optional(),
    metadata: fields.metadata.optional(),
  });
}

/** A lifetime in seconds. */
export function ttlField(lifetime: Lifetime): z.ZodType<number> {
  const error = ({ input }: { readonly input?: unknown }): string => ttlMessage(input, lifetime);
  return z.int({ error }).min(1, { error }).max(lifetime.maxSeconds, { error });
}

/** An object of these members and no others. */
export function strict<Shape extends z.ZodRawShape>(
  shape: Shape,
): z.ZodObject<Shape, z.core.$strict> {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? unknownMessage(issue['keys'] as readonly string[], known)
        : `an object is required, with ${known.join(', ')}`,
  });
}

/**
 * Reads what a caller sent.
 *
 * @throws {TokenError} for the first fault in this order: members that are unknown or of the wrong
 * kind (`invalid_request`), scopes (the codes of the scope module), lifetime (`invalid_ttl`) and
 * expiry (`invalid_expire`)
 */
export function readInput<Input>(schema: z.ZodType<Input>, value: unknown): Input {
  const reading = schema.safeParse(value);
  if (reading.success) return reading.data;
  const faults = reading.error.issues.map(toFault);
  // In each of our shapes scopes stand before lifetime and expiry.
  throw faults.find(({ code }) => code === 'invalid_request') ?? faults[0];
}

/**
 * Reads the options of whatever has some.
 *
 * @throws {TokenError} `invalid_options`, naming the option and what it should be, never its value
 */
export function checkOptions<Options>(schema: z.ZodType<Options>, options: unknown): Options {
  const reading = schema.safeParse(options);
  if (reading.success) return reading.data;
  const [issue] = reading.error.issues;
  throw new TokenError('invalid_options', issue?.message ?? 'options are missing');
}

/** An account, where a verb takes it by itself. */
export function readAccount(account: unknown): string {
  if (isAccount(account)) return account;
  throw new TokenError('invalid_request', accountMessage);
}

/** What the scope module refuses, in our own words for it: `scope_invalid` is `invalid_scope`. */
export function toTokenError(error: unknown): unknown {
  if (!isScopeError(error)) return error;
  const { code, message, scopes, refused, suggestion } = error;
  const listed = refused === undefined ? undefined : { scopes, refused };
  const repaired = suggestion === undefined ? undefined : { suggestion };
  return scopeRefusal(isListCode(code) ? code : 'invalid_scope', message, listed ?? repaired);
}

/** A refusal that quotes what was sent as a scope: who sent a value there must not find it in a log. */
export function scopeRefusal(code: TokenErrorCode, message: string, details?: object): TokenError {
  return new TokenError(
    code,
    redact(message),
    details && JSON.parse(redact(JSON.stringify(details))),
  );
}

/** By name, since the ESM and the CommonJS build may both be loaded. */
function isScopeError(error: unknown): error is ScopeError {
  return error instanceof Error && error.name === 'ScopeError';
}

const LIST_CODES = [
  'scopes_required',
  'too_many_scopes',
  'scope_unmatched',
  'catalog_empty',
] as const;

function isListCode(code: string): code is (typeof LIST_CODES)[number] {
  return (LIST_CODES as readonly string[]).includes(code);
}

function scopesField(): z.ZodType<readonly Scope[]> {
  return z
    .unknown()
    .transform((value, context) => attempt(() => parseScopes(value, recallScope), context));
}

function attempt<Result>(parse: () => Result, context: z.RefinementCtx): Result {
  try {
    return parse();
  } catch (error) {
    context.addIssue({
      code: 'custom',
      params: { error: toTokenError(error) },
    });
    return z.NEVER;
  }
}

function isName(value: unknown): boolean {
  if (typeof value !== 'string' || value === '' || !isPlainText(value)) return false;
  return value.length <= MAX_NAME_LENGTH;
}

function wholeNumber(min: number, max: number, name: string): z.ZodType<number> {
  const upTo = max === Number.MAX_SAFE_INTEGER ? `of ${min} or more` : `from ${min} to ${max}`;
  const error = `${name} must be a whole number ${upTo}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
}

function dateField(name: string): z.ZodType<Date> {
  return z.date({ error: `${name} must be a valid Date` });
}

function toFault(issue: z.core.$ZodIssue): TokenError {
  if (issue.code === 'custom' && issue.params?.['error'] instanceof TokenError) {
    return issue.params['error'];
  }
  return new TokenError(CODE_OF_MEMBER.get(issue.path[0]) ?? 'invalid_request', issue.message);
}

const CODE_OF_MEMBER: ReadonlyMap<unknown, TokenErrorCode> = new Map([
  ['ttlSeconds', 'invalid_ttl'],
  ['ttl', 'invalid_ttl'],
  ['expiresAt', 'invalid_expire'],
  ['expire', 'invalid_expire'],
]);

/** Names what is known, never what was sent. */
function unknownMessage(unknown: readonly string[], known: readonly string[]): string {
  const names = unknown.slice(0, MAX_COMPARED_NAMES);
  const close = names.map((name) => nearestOf(name, known)).find((name) => name !== undefined);
  const hint = close === undefined ? '' : `; did you mean ${close}?`;
  return `a member is unknown${hint} (known: ${known.join(', ')})`;
}

function nearestOf(name: string, known: readonly string[]): string | undefined {
  const text = name.slice(0, 32).toLowerCase();
  // As ttl for ttlSeconds, or the other way round.
  const longer = known.find((member) => isBeginning(text, member) || isBeginning(member, text));
  if (longer !== undefined) return longer;
  const distances = known.map((member) => editDistance(text, member.toLowerCase(), 32));
  const least = Math.min(...distances);
  return least <= Math.max(2, text.length / 2) ? known[distances.indexOf(least)] : undefined;
}

function isBeginning(short: string, long: string): boolean {
  return short.length >= 3 && long.toLowerCase().startsWith(short.toLowerCase());
}
