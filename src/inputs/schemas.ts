import * as z from 'zod/mini';
import {
  MAX_ACCOUNT_BYTES,
  MAX_FILTER_SCOPES,
  MAX_LIFETIME_SECONDS,
  MAX_LIMIT_ADDRESSES,
  MAX_NAME_LENGTH,
  MAX_PAGE_TOKENS,
  MAX_PURGED,
  MAX_RATE_SECONDS,
  MAX_RECORD_BYTES,
  MAX_REVIEWED_DAYS,
  MAX_SCOPES,
  MAX_UPKEEP_MS,
  MIN_UPKEEP_MS,
} from '../bounds.ts';
import {
  invalidOptions,
  isTokenError,
  TokenError,
  type TokenErrorCode,
  unreadableOption,
} from '../errors.ts';
import { readBlock } from '../limits/addresses.ts';
import { recallScope } from '../scope/grammar.ts';
import { parseScope, readRequest, type Scope } from '../scope/index.ts';
import { parsedMembers, parseScopes, refuseParameters } from '../scope/list.ts';
import {
  dateMessage,
  durationMessage,
  expiryMessage,
  kindOf,
  secondsMessage,
  shown,
  shownBlock,
} from '../text/wording.ts';
import { inTurns } from '../time/deadline.ts';
import { parseDuration } from '../time/duration.ts';
import { isId } from '../token/id.ts';
import { readMetadata } from '../token/metadata.ts';
import {
  copyLimits,
  isAccount,
  isPlainText,
  type JsonObject,
  LISTED_STATES,
  type Lifetime,
  type ResealReport,
  type TokenId,
  type TokenLimits,
} from '../token/record.ts';
import { isLong } from '../token/size.ts';
import { readDigest } from '../values/foreign.ts';
import { describeUnknown } from './names.ts';
import { once } from './once.ts';
import { ofMember, toTokenError } from './scope-refusals.ts';
import type {
  DeriveInput,
  ImportInput,
  ImportReport,
  IssueInput,
  Read,
  RefusedRow,
} from './types.ts';

/** The ranges of the schemas of whole numbers. */
const RANGES = new WeakMap<object, readonly [min: number, max: number]>();

/** The argument of an error function of zod. */
interface Sent {
  readonly input?: unknown;
}

/** The rules of members that several inputs share, in the library and on the wire. */
export const fields = {
  account: once(() => z.custom<string>(isAccount, { error: ({ input }) => accountMessage(input) })),
  scopes: once(scopesField),
  scope: once(scopeFilterField),
  name: once(() => z.custom<string>(isName, { error: ({ input }) => nameMessage(input) })),
  createdBy: once(() =>
    z.custom<string>(isAccount, { error: ({ input }) => accountMessage(input, 'createdBy') }),
  ),
  purpose: once(() =>
    z.custom<string>(isName, { error: ({ input }) => nameMessage(input, 'purpose') }),
  ),
  metadata: once(metadataField),
  match: once(() =>
    z.enum(['overlaps', 'covers', 'exact'], {
      error: got('match must be "overlaps", "covers" or "exact"'),
    }),
  ),
  state: once(() =>
    z.enum(LISTED_STATES, {
      error: got('state must be "active", "suspended", "expired", "revoked", "live" or "all"'),
    }),
  ),
  sort: once(() =>
    z.enum(['created', 'expire', 'name', 'lastUsed'], {
      error: got('sort must be "created", "expire", "name" or "lastUsed"'),
    }),
  ),
  domain: once(() => z.custom<string>(isDomain, { error: ({ input }) => domainMessage(input) })),
  unused: once(() => z.literal('never', { error: got('unused must be "never"') })),
  parent: once(() =>
    z.custom<TokenId>(isId, {
      error: got('parent must be the id of a token, 22 characters of 0-9, A-Z and a-z'),
    }),
  ),
  cursor: once(() => z.string({ error: got('cursor must be one that an earlier page gave') })),
  actorToken: once(() => z.string({ error: got('actorToken must be the value of a token') })),
  graceSeconds: once(() => secondsField('graceSeconds', 0, MAX_LIFETIME_SECONDS)),
  activate: once(() => z.literal('first-use', { error: got('activate must be "first-use"') })),
  cancel: once(() => z.literal(true, { error: got('cancel must be true') })),
  endDerived: once(() => z.boolean({ error: got('endDerived must be true or false') })),
  expiresIn: once(() => durationField('expiresIn')),
  suspended: once(() => z.boolean({ error: got('suspended must be true or false') })),
  limits: once(limitsField),
  ifVersion: once(() => numberField('ifVersion', 1, Number.MAX_SAFE_INTEGER)),
};

export const listInput = once(() =>
  strict(
    {
      account: fields.account(),
      scope: z.optional(fields.scope()),
      match: z.optional(fields.match()),
      state: z.optional(fields.state()),
      name: z.optional(fields.name()),
      parent: z.optional(fields.parent()),
      domain: z.optional(fields.domain()),
      unused: z.optional(fields.unused()),
      createdBy: z.optional(fields.createdBy()),
      sort: z.optional(fields.sort()),
      limit: z.optional(numberField('limit', 1, MAX_PAGE_TOKENS)),
      maxBytes: z.optional(numberField('maxBytes', 1, MAX_RECORD_BYTES)),
      cursor: z.optional(fields.cursor()),
    },
    'list takes',
  ),
);

export const getOptions = once(() => strict({ state: z.optional(fields.state()) }));

export const modifyInput = once(() =>
  strict(
    {
      scopes: fields.scopes(),
      expiresIn: z.optional(fields.expiresIn()),
      expiresAt: z.optional(dateField('expiresAt')),
      limits: z.optional(z.nullable(fields.limits())),
    },
    'modify takes',
  ),
);

export const patchInput = once(() =>
  strict(
    {
      scopes: z.optional(fields.scopes()),
      addScopes: z.optional(fields.scopes()),
      removeScopes: z.optional(fields.scopes()),
      expiresIn: z.optional(fields.expiresIn()),
      expiresAt: z.optional(dateField('expiresAt')),
      name: z.optional(z.nullable(fields.name())),
      metadata: z.optional(z.nullable(fields.metadata())),
      suspended: z.optional(fields.suspended()),
      limits: z.optional(z.nullable(fields.limits())),
    },
    'patch takes',
  ),
);

export const changeOptions = once(() =>
  strict({
    ifVersion: z.optional(fields.ifVersion()),
    dryRun: z.optional(z.boolean({ error: got('dryRun must be true or false') })),
  }),
);

export const revokeOptions = once(() =>
  strict({
    ifVersion: z.optional(fields.ifVersion()),
    descendants: z.optional(z.boolean({ error: got('descendants must be true or false') })),
  }),
);

export const revokeAllOptions = once(() =>
  strict({
    createdBy: z.optional(fields.createdBy()),
    dryRun: z.optional(z.boolean({ error: got('dryRun must be true or false') })),
    onProgress: z.optional(callback<(progress: number) => void>('onProgress must be a function')),
  }),
);

export const rotateOptions = once(() =>
  strict({
    activate: z.optional(fields.activate()),
    graceSeconds: z.optional(fields.graceSeconds()),
    cancel: z.optional(fields.cancel()),
    endDerived: z.optional(fields.endDerived()),
    ifVersion: z.optional(fields.ifVersion()),
  }),
);

const address = once(() =>
  z.optional(z.string({ error: got('address must be an IP address as a text') })),
);

export const verifyOptions = once(() =>
  strict({
    fresh: z.optional(z.boolean({ error: got('fresh must be true or false') })),
    address: address(),
  }),
);

export const verifySyncOptions = once(() => strict({ address: address() }));

export const introspectOptions = once(() =>
  strict({
    countsAsUse: z.optional(z.boolean({ error: got('countsAsUse must be true or false') })),
    includeSuspended: z.optional(
      z.boolean({ error: got('includeSuspended must be true or false') }),
    ),
    address: address(),
  }),
);

export const adviseOptions = once(() =>
  strict({ unusedForDays: z.optional(daysField('unusedForDays')) }),
);

const reviewDays = once(() => ({
  unusedForDays: z.optional(daysField('unusedForDays')),
  expiringWithinDays: z.optional(daysField('expiringWithinDays')),
  secretOlderThanDays: z.optional(daysField('secretOlderThanDays')),
}));

export const reviewPageInput = once(() =>
  strict(
    { account: fields.account(), ...reviewDays(), cursor: z.optional(fields.cursor()) },
    'reviewPage takes',
  ),
);

export const reviewInput = once(() =>
  strict(
    {
      account: z.optional(fields.account()),
      ...reviewDays(),
      onProgress: z.optional(callback<(progress: number) => void>('onProgress must be a function')),
    },
    'review takes',
  ),
);

export const resealOptions = once(() =>
  strict({
    onProgress: z.optional(
      callback<(progress: ResealReport) => void>('onProgress must be a function'),
    ),
  }),
);

export const upkeepOptions = once(() =>
  strict({
    purgeAfterDays: z.optional(daysField('purgeAfterDays')),
    everyMs: z.optional(numberField('everyMs', MIN_UPKEEP_MS, MAX_UPKEEP_MS)),
  }),
);

export const purgeInput = once(() =>
  strict(
    {
      before: dateField('before'),
      limit: z.optional(numberField('limit', 1, MAX_PURGED)),
    },
    'purge takes',
  ),
);

/** The input of `issue`, with the lifetimes of this service. */
export function issueInput(lifetime: Lifetime): () => z.ZodMiniType<Read<IssueInput>> {
  return once(() =>
    strict({ account: fields.account(), ...newTokenFields(lifetime) }, 'issue takes'),
  );
}

/** The input of `derive`, with the lifetimes of this service. */
export function deriveInput(lifetime: Lifetime): () => z.ZodMiniType<Read<DeriveInput>> {
  return once(() =>
    strict(
      {
        ...newTokenFields(lifetime),
        actorToken: z.optional(fields.actorToken()),
      },
      'derive takes',
    ),
  );
}

function newTokenFields({ maxSeconds }: Lifetime) {
  return {
    scopes: fields.scopes(),
    ttlSeconds: z.optional(secondsField('ttlSeconds', 1, maxSeconds)),
    expiresIn: z.optional(fields.expiresIn()),
    expiresAt: z.optional(dateField('expiresAt')),
    name: z.optional(fields.name()),
    metadata: z.optional(fields.metadata()),
    limits: z.optional(fields.limits()),
    createdBy: z.optional(fields.createdBy()),
    purpose: z.optional(fields.purpose()),
  };
}

/** The input of `import`. */
export const importInput: () => z.ZodMiniType<Read<ImportInput>> = once(() =>
  strict(
    {
      account: fields.account(),
      digest: readBy((value, refuse) => {
        const digest = readDigest(value);
        return typeof digest === 'string' ? refuse(digest) : digest;
      }),
      format: z.string({ error: 'format must be the name of a format, such as "sanctum"' }),
      scopes: fields.scopes(),
      expiresAt: dateField('expiresAt'),
      createdAt: z.optional(dateField('createdAt')),
      name: z.optional(fields.name()),
      metadata: z.optional(fields.metadata()),
      suspended: z.optional(fields.suspended()),
      createdBy: z.optional(fields.createdBy()),
    },
    'import takes',
  ),
);

export const importManyOptions = once(() =>
  strict({
    dryRun: z.optional(z.boolean({ error: got('dryRun must be true or false') })),
    onRefused: z.optional(callback<(refused: RefusedRow) => void>('onRefused must be a function')),
    onProgress: z.optional(
      callback<(progress: ImportReport) => void>('onProgress must be a function'),
    ),
  }),
);

/** A whole number of seconds. */
export function secondsField(name: string, min: number, max: number): z.ZodMiniType<number> {
  return integer(min, max, ({ input }) => secondsMessage(name, input, min, max));
}

/**
 * An object with these members and no others.
 *
 * @param takes the beginning of the message for anything but an object
 */
export function strict<Shape extends z.core.$ZodShape>(
  shape: Shape,
  takes = 'the options must be',
): z.ZodMiniObject<Shape, z.core.$strict> {
  const known = Object.keys(shape);
  const schema = z.strictObject(shape, {
    error: ({ code, path = [], input, keys }) => {
      const place = path.join('.');
      if (code === 'unrecognized_keys')
        return describeUnknown(keys as string[], known, place).message;
      const subject = place === '' ? takes : `${place} must be`;
      return `${subject} an object { ${known.join(', ')} }; got ${shown(input)}`;
    },
  });
  schema._zod.run = (payload, context) => {
    const { value: input } = payload;
    if (isMembers(input)) return readObject(schema, payload as Members, context);
    payload.issues.push({ code: 'invalid_type', expected: 'object', input, inst: schema });
    return payload;
  };
  return schema;
}

/** Whether it can hold members: no list, and no `Date`, of which people forget the name of its member. */
function isMembers(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  return !Array.isArray(value) && !(value instanceof Date);
}

type Members = z.core.ParsePayload<Readonly<Record<string, unknown>>>;

/**
 * As zod does it, which also runs the schemas of absent members: that takes a microsecond of each call. Reports
 * unknown members first: often one of them is a known one that is missing.
 */
function readObject(
  inst: z.ZodMiniObject,
  payload: Members,
  context: z.core.ParseContextInternal,
): z.core.ParsePayload {
  const { value: input, issues } = payload;
  const { shape } = inst._zod.def;
  const keys: string[] = [];
  for (const name in input) if (!Object.hasOwn(shape, name)) keys.push(name);
  if (keys.length > 0) {
    const known = Object.keys(shape);
    issues.push({ code: 'unrecognized_keys', keys, known, input, inst, continue: true });
  }
  const read: Record<string, unknown> = {};
  for (const name in shape) {
    const { _zod: member } = shape[name] as z.core.$ZodType;
    const value = input[name];
    const isAbsent = value === undefined && member.optin === 'optional';
    const result = isAbsent
      ? { value, issues: [] }
      : (member.run({ value, issues: [] }, context) as z.core.ParsePayload);
    for (const issue of result.issues) {
      issues.push({ ...issue, path: [name, ...(issue.path ?? [])] });
    }
    if (result.value !== undefined || name in input) read[name] = result.value;
  }
  payload.value = read;
  return payload;
}

/**
 * Reads an input.
 *
 * @throws {TokenError} for the first fault in this order: members that are unknown or of the wrong
 * kind (`invalid_request`), scopes (the codes of the scope module), lifetime (`invalid_ttl`), expiry
 * (`invalid_expire`) and limits (`invalid_limits`)
 */
export function readInput<Input>(schema: z.ZodMiniType<Input>, value: unknown): Input {
  const reading = parseSafely(schema, value, () => {
    return new TokenError(
      'invalid_request',
      'an argument could not be read: a getter or a proxy threw',
    );
  });
  if (reading.success) return reading.data;
  const faults = reading.error.issues.map((issue) => toFault(issue, schema));
  // The schemas declare scopes before lifetime, expiry and limits, so zod reports them in that order.
  throw faults.find(({ code }) => code === 'invalid_request') ?? faults[0];
}

/** As {@link readInput}, but parses long lists of scopes in turns of the event loop first. */
export function readLongInput<Input>(
  schema: z.ZodMiniType<Input>,
  value: unknown,
): Input | Promise<Input> {
  const lists = longListsIn(value);
  return lists === undefined ? readInput(schema, value) : readParsed(schema, value, lists);
}

type Lists = readonly (readonly [member: string, list: readonly unknown[]])[];

async function readParsed<Input>(
  schema: z.ZodMiniType<Input>,
  value: unknown,
  lists: Lists,
): Promise<Input> {
  const parsed: Record<string, readonly unknown[]> = {};
  for (const [member, list] of lists) {
    // What cannot be parsed stays as it is, for the error.
    parsed[member] = await inTurns(parsedMembers(list, recallScope));
  }
  return readInput(schema, { ...(value as object), ...parsed });
}

const MEMBERS_WITH_SCOPES = ['scopes', 'addScopes', 'removeScopes'] as const;

/** Imported as a module, `node:util` would load half of Node; looked up on each call, it would cost more than the rest. */
const isProxy = once(() => process.getBuiltinModule('node:util').types.isProxy);

/** Nothing of an object with getters or of a proxy, which is read once only. */
function longListsIn(value: unknown): Lists | undefined {
  if (typeof value !== 'object' || value === null || isProxy()(value)) return undefined;
  if (Object.getPrototypeOf(value) !== Object.prototype) return undefined;
  let lists: Lists | undefined;
  for (const member of MEMBERS_WITH_SCOPES) {
    const list = Object.getOwnPropertyDescriptor(value, member)?.value;
    // A revoked proxy even throws if it is asked whether it is a list.
    if (typeof list !== 'object' || isProxy()(list) || !Array.isArray(list)) continue;
    if (isLong(list) && list.length <= MAX_SCOPES) lists = [...(lists ?? []), [member, list]];
  }
  return lists;
}

/**
 * Reads options.
 *
 * @throws {TokenError} `invalid_options`, naming the option and what it should be, never its value
 */
export function checkOptions<Options>(schema: z.ZodMiniType<Options>, options: unknown): Options {
  const reading = parseSafely(schema, options, () => unreadableOption('an option'));
  if (reading.success) return reading.data;
  const [issue] = reading.error.issues;
  if (issue === undefined) throw invalidOptions('options are missing');
  throw new TokenError('invalid_options', issue.message, detailsOf(issue, schema));
}

/**
 * Reads an option that needs more than a schema.
 *
 * @throws {TokenError} `invalid_options`, also if a getter or a proxy throws
 */
export function readOption<Option>(name: string, read: () => Option): Option {
  try {
    return read();
  } catch (error) {
    throw isTokenError(error) ? error : unreadableOption(name);
  }
}

/** A getter or a proxy of the caller may throw anything. */
function parseSafely<Output>(
  schema: z.ZodMiniType<Output>,
  value: unknown,
  refusal: () => TokenError,
): z.core.util.SafeParseResult<Output> {
  try {
    return schema.safeParse(value);
  } catch {
    throw refusal();
  }
}

/** Reads an account that is an argument of its own. */
export function readAccount(account: unknown): string {
  if (isAccount(account)) return account;
  throw new TokenError('invalid_request', accountMessage(account), { member: 'account' });
}

/** Refuses what a schema reads: with a message that says what would be right, or with an error. */
type Refuse = (message: string, error?: unknown) => never;

/** A schema that reads a value by a function. Its return value counts unless it has refused. */
export function readBy<Output, Input = unknown>(
  read: (value: Input, refuse: Refuse) => Output,
  from = z.unknown() as z.ZodMiniType<Input>,
): z.ZodMiniType<Output> {
  return z.pipe(
    from,
    z.transform((input: Input, { issues }) =>
      read(input, (message, error) => {
        issues.push({ code: 'custom', message, input, params: { error } });
        return z.NEVER;
      }),
    ),
  );
}

/** A function of the caller. */
export function callback<Callback>(rule: string): z.ZodMiniType<Callback> {
  return z.custom<Callback>((value) => typeof value === 'function', { error: gotKind(rule) });
}

/** A switch, as an option. */
export function flag(name: string) {
  return z.optional(z.boolean({ error: `${name} must be true or false` }));
}

/** A schema with a text for people who read its JSON Schema. */
export function described<Schema extends z.ZodMiniType>(schema: Schema, text: string): Schema {
  return schema.check(z.describe(text));
}

/** One scope or several, each once and in one order. */
function scopeFilterField() {
  return readBy((value, refuse): readonly Scope[] => {
    const list: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (list.length > MAX_FILTER_SCOPES) {
      return refuse(`scope must be one scope, or at most ${MAX_FILTER_SCOPES}; got ${list.length}`);
    }
    const read = new Map<string, Scope>();
    for (const text of list) {
      const scope = attempt(() => parseWritten(text), refuse, text);
      if (scope === z.NEVER) return z.NEVER;
      read.set(scope.toString(), scope);
    }
    return [...read].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, scope]) => scope);
  });
}

function parseWritten(text: unknown): Scope {
  const scope = parseScope(text as string);
  refuseParameters(scope);
  return scope;
}

function scopesField() {
  return readBy((value, refuse) => attempt(() => parseScopes(value, recallScope), refuse));
}

function attempt<Result>(parse: () => Result, refuse: Refuse, scope?: unknown): Result {
  try {
    return parse();
  } catch (error) {
    return refuse('a scope could not be read', toTokenError(error, scope));
  }
}

/** Copied when it is checked: a getter could return something else later. */
function metadataField(): z.ZodMiniType<JsonObject> {
  return readBy((value, refuse) => {
    const metadata = readMetadata(value);
    return typeof metadata === 'string' ? refuse(metadata) : metadata;
  });
}

function limitsField(): z.ZodMiniType<TokenLimits> {
  const limits = strict({
    addresses: z.optional(addressesField()),
    uses: z.optional(numberField('limits.uses', 1, Number.MAX_SAFE_INTEGER)),
    rate: z.optional(
      strict({
        uses: numberField('limits.rate.uses', 1, Number.MAX_SAFE_INTEGER),
        seconds: numberField('limits.rate.seconds', 1, MAX_RATE_SECONDS),
      }),
    ),
  });
  return readBy(({ addresses, uses, rate }, refuse) => {
    if (addresses !== undefined || uses !== undefined || rate !== undefined) {
      return copyLimits({
        ...(addresses !== undefined && { addresses }),
        ...(uses !== undefined && { uses }),
        ...(rate !== undefined && { rate }),
      });
    }
    return refuse(
      'limits must hold at least one of addresses, uses and rate; null removes all limits of a token that has some',
    );
  }, limits);
}

/** Blocks in their canonical spelling, each once. */
function addressesField(): z.ZodMiniType<readonly string[]> {
  return readBy((value, refuse) => {
    const blocks = new Set<string>();
    const fault = Array.isArray(value)
      ? faultOfBlocks(value, blocks)
      : `limits.addresses must be a list, as ["203.0.113.7"]; got ${shown(value)}`;
    return fault === undefined ? [...blocks] : refuse(fault);
  });
}

const BLOCK_RULE =
  'must be an IP address or a CIDR block, such as "203.0.113.7" or "2001:db8::/32"';

/** Says what is wrong with a list of blocks, and adds those that it reads to `blocks`. */
function faultOfBlocks(list: readonly unknown[], blocks: Set<string>): string | undefined {
  if (list.length === 0 || list.length > MAX_LIMIT_ADDRESSES) {
    return `limits.addresses must hold 1 to ${MAX_LIMIT_ADDRESSES} addresses or blocks; got ${list.length}`;
  }
  for (const [index, text] of list.entries()) {
    const reading = readBlock(text);
    if (!reading.ok) {
      return `limits.addresses[${index}] ${BLOCK_RULE}; ${shownBlock(text)} ${reading.fault}`;
    }
    blocks.add(reading.text);
  }
  return undefined;
}

function isDomain(value: unknown): boolean {
  return readRequest({ method: 'GET', domain: value as string, target: '/' }).ok;
}

function domainMessage(domain: unknown): string {
  const rule = 'domain must be one host, as in the scopes: "orders.acme.example"';
  if (typeof domain !== 'string') return `${rule}; got ${kindOf(domain)}`;
  if (domain.includes('://'))
    return `${rule}; without ${domain.startsWith('https:') ? 'https://' : 'a scheme'}`;
  return /:\d{1,5}$/.test(domain) ? `${rule}; without a port` : rule;
}

function isName(value: unknown): boolean {
  if (typeof value !== 'string' || value === '' || !isPlainText(value)) return false;
  return value.length <= MAX_NAME_LENGTH;
}

function nameMessage(value: unknown, member = 'name'): string {
  const rule = `${member} must be 1 to ${MAX_NAME_LENGTH} characters without control characters`;
  if (typeof value !== 'string' || value === '') return `${rule}; got ${shown(value)}`;
  return value.length > MAX_NAME_LENGTH ? `${rule}; got ${value.length}` : rule;
}

function accountMessage(value: unknown, member = 'account'): string {
  const rule = `${member} must be 1 to ${MAX_ACCOUNT_BYTES} bytes of text without control characters, such as "acme"`;
  if (typeof value === 'number') return `${rule}; got a number: give String(id)`;
  if (typeof value !== 'string' || value === '') return `${rule}; got ${shown(value)}`;
  const bytes = Buffer.byteLength(value);
  return bytes > MAX_ACCOUNT_BYTES ? `${rule}; got ${bytes} bytes` : rule;
}

/** A whole number in a range, as an option; its value is never shown. */
export function wholeNumber(min: number, max: number, name: string): z.ZodMiniType<number> {
  return integer(min, max, ({ input }) => {
    const rule = rangeMessage(name, min, max);
    return typeof input === 'number' ? rule : `${rule}; got ${kindOf(input)}`;
  });
}

/** A whole number in a range, as a member of an input. */
function numberField(name: string, min: number, max: number): z.ZodMiniType<number> {
  return integer(min, max, got(rangeMessage(name, min, max)));
}

function daysField(name: string): z.ZodMiniType<number> {
  return numberField(name, 1, MAX_REVIEWED_DAYS);
}

/** A duration in seconds, or as a text with its unit. The service checks how long it may be. */
function durationField(name: string): z.ZodMiniType<number> {
  return readBy((value, refuse) => {
    const seconds = typeof value === 'string' ? parseDuration(value) : value;
    const isWhole = Number.isInteger(seconds) && (seconds as number) >= 1;
    return isWhole ? (seconds as number) : refuse(durationMessage(name, value));
  });
}

function integer(min: number, max: number, error: (sent: Sent) => string): z.ZodMiniType<number> {
  const schema = z.int({ error }).check(z.minimum(min, { error }), z.maximum(max, { error }));
  RANGES.set(schema, [min, max]);
  return schema;
}

function rangeMessage(name: string, min: number, max: number): string {
  const upTo = max === Number.MAX_SAFE_INTEGER ? `of ${min} or more` : `from ${min} to ${max}`;
  return `${name} must be a whole number ${upTo}`;
}

/** Makes an error function: its message says what would be right, and then what was sent. */
export function got(rule: string): (sent: Sent) => string {
  return ({ input }) => `${rule}; got ${shown(input)}`;
}

/** As {@link got}, for an option: its value is never shown. */
export function gotKind(rule: string): (sent: Sent) => string {
  return ({ input }) => `${rule}; got ${kindOf(input)}`;
}

function dateField(name: string): z.ZodMiniType<Date> {
  const message = name === 'expiresAt' ? expiryMessage : dateMessage;
  return z.date({ error: ({ input }) => message(name, input) });
}

function toFault(issue: z.core.$ZodIssue, schema: z.ZodMiniType): TokenError {
  const [member] = issue.path;
  if (issue.code === 'custom' && issue.params?.['error'] instanceof TokenError) {
    return ofMember(issue.params['error'], String(member));
  }
  const code = CODE_OF_MEMBER.get(member) ?? 'invalid_request';
  return new TokenError(code, issue.message, detailsOf(issue, schema));
}

/** The member that an issue is about, or that holds an unknown one; `undefined` for the whole argument. */
function detailsOf(
  issue: z.core.$ZodIssue,
  schema: z.ZodMiniType,
): Readonly<Record<string, unknown>> | undefined {
  const place = issue.path.join('.');
  const about = place === '' ? {} : { member: place };
  if (issue.code === 'unrecognized_keys') {
    const { known = [] } = issue as typeof issue & { readonly known?: readonly string[] };
    const details = { ...about, ...describeUnknown(issue.keys, known, place).details };
    return Object.keys(details).length === 0 ? undefined : details;
  }
  return place === '' ? undefined : { ...about, ...rangeOf(schema, place) };
}

/** The least and the greatest number that a member may be, for programs. */
function rangeOf(schema: z.ZodMiniType, member: string): { min?: number; max?: number } {
  const field: unknown = schema instanceof z.ZodMiniObject ? schema.shape[member] : undefined;
  const number = field instanceof z.ZodMiniOptional ? field.def.innerType : field;
  const [min, max] = RANGES.get(number as object) ?? [];
  const isRange = min !== undefined && max !== undefined && max < Number.MAX_SAFE_INTEGER;
  return isRange ? { min, max } : {};
}

const CODE_OF_MEMBER: ReadonlyMap<unknown, TokenErrorCode> = new Map([
  ['ttlSeconds', 'invalid_ttl'],
  ['expiresIn', 'invalid_ttl'],
  ['ttl', 'invalid_ttl'],
  ['expiresAt', 'invalid_expire'],
  ['expire', 'invalid_expire'],
  ['limits', 'invalid_limits'],
]);
