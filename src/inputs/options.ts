import * as z from 'zod/mini';
import {
  DEFAULT_CACHE_BYTES,
  DEFAULT_CACHE_ENTRIES,
  DEFAULT_DEADLINE_MS,
  DEFAULT_DERIVED_PER_ROOT,
  DEFAULT_FLUSH_MS,
  DEFAULT_TOKENS_PER_ACCOUNT,
  ENDED_PER_LIVE,
  MAX_CACHE_BYTES,
  MAX_CACHE_ENTRIES,
  MAX_DEADLINE_MS,
  MAX_DERIVED_PER_ROOT,
  MAX_ENDED_PER_ACCOUNT,
  MAX_FLUSH_MS,
  MAX_LIFETIME_SECONDS,
  MAX_SCOPES,
  MAX_STALE_MS,
  MAX_TOKENS_PER_ACCOUNT,
  MIN_CACHE_BYTES,
  MIN_FLUSH_MS,
} from '../bounds.ts';
import { invalidOptions, TokenError } from '../errors.ts';
import type { TokenEvent } from '../events.ts';
import type { EngineStore } from '../ports/engine-store.ts';
import { hasMethods } from '../ports/has-methods.ts';
import type { LeaseStore } from '../ports/lease-store.ts';
import type { RequestStore } from '../ports/request-store.ts';
import type { TokenStore } from '../ports/token-store.ts';
import type { UsageStore } from '../ports/usage-store.ts';
import { type ScopeCatalog, safeParseScope, type TypedCatalog } from '../scope/index.ts';
import { kindOf } from '../text/wording.ts';
import { type Clock, systemClock } from '../time/clock.ts';
import type { Lifetime } from '../token/record.ts';
import type { ForeignFormat } from '../values/foreign.ts';
import { type KeyOptions, keysFault } from '../values/keys.ts';
import { once } from './once.ts';
import {
  callback,
  checkOptions,
  fields,
  gotKind,
  readBy,
  readOption,
  strict,
  wholeNumber,
} from './schemas.ts';
import type { Preset } from './types.ts';

/** How a {@link TokenService} works. */
export type TokenServiceOptions<Entry extends string = string> = ServiceOptions<Entry> &
  (OnEngine | OnTokenStore);

/** A service on a store that also keeps counts. */
interface OnEngine {
  /** Where the records are stored; the service closes it. */
  readonly store: EngineStore;
  /**
   * Records how often tokens are used, and when last: see {@link TokenService.usage}. A verification never
   * waits for it. `true` takes the store's own `usage` and all defaults; a store that you give instead is
   * closed by the service. Counts are written at most `flushMs` milliseconds after the use, from 100 to
   * 3 600 000 (an hour), by default 10 000. If the process is killed, as much counting is lost.
   * @default false
   */
  readonly usage?:
    | boolean
    | { readonly store?: UsageStore | undefined; readonly flushMs?: number | undefined }
    | undefined;
  /**
   * Counts the uses of tokens that have `limits.uses` or `limits.rate`, of all processes together. Without
   * it, no token gets these limits, and one that has them fails with `store_unavailable`. `true` takes the
   * store's own `leases`; a store that you give instead is closed by the service. @default false
   */
  readonly limits?: boolean | { readonly store?: LeaseStore | undefined } | undefined;
}

/** A service on a store that keeps tokens only, so that counts need stores of their own. */
interface OnTokenStore {
  readonly store: TokenStore;
  readonly usage?:
    | false
    | { readonly store: UsageStore; readonly flushMs?: number | undefined }
    | undefined;
  readonly limits?: false | { readonly store: LeaseStore } | undefined;
}

interface ServiceOptions<Entry extends string> {
  /** Exactly one with status `active`; see {@link generateKey}. */
  readonly keys: readonly KeyOptions[];
  /** The prefix of all token values of this host, such as `acme` or `acme_live`. */
  readonly prefix: string;
  /**
   * The values of other systems that were imported, such as `[formats.sanctum()]`: see
   * {@link TokenService.import}. They are accepted beside those with the prefix. @default none
   */
  readonly foreign?: readonly ForeignFormat[] | undefined;
  /**
   * The scopes that an account may ask for; wildcards are expanded against them. Without a catalog, tokens
   * hold the scopes as requested, and wildcards are matched as patterns. With one of `defineCatalog`, the
   * compiler checks the scopes that you write as literals.
   */
  readonly catalog?: CatalogOption<Entry> | undefined;
  /** Scopes under names, from which people choose in the console and on the command line. @default none */
  readonly presets?: readonly Preset[] | undefined;
  /**
   * The source of the time. If it steps back by up to two hours, time stands still until it has caught up.
   * The default goes on by the monotonic clock of the machine instead, at nine tenths of its speed.
   * @default the time of the machine
   */
  readonly clock?: Clock | undefined;
  /**
   * `once`: only `issue` and `rotate` return the value. `always`: it is stored, encrypted with the active
   * key, and returned to its account by every method. @default 'once'
   */
  readonly reveal?: 'once' | 'always' | undefined;
  /** Whole seconds, from 1 to 31 536 000 (365 days). @default 31 536 000, both */
  readonly lifetime?: Partial<Lifetime> | undefined;
  /**
   * Serves `verify` from memory for a limited time after the start of the read. A change by this process
   * takes effect immediately, one by another process within `maxStaleMs`, or as soon as the store reports
   * it if it can. @default off
   */
  readonly cache?: CacheOptions | undefined;
  /**
   * How much one account may store. @default 10 000 active or suspended tokens, of 4096 scopes each, and
   * 100 that are derived from each of them
   */
  readonly quotas?: QuotaOptions | undefined;
  /** The milliseconds that a store or a catalog may take to answer, 1 to 60 000. @default 2000 */
  readonly deadlineMs?: number | undefined;
  /**
   * Receives the events, which carry ids and never values. It is called immediately and not awaited; what
   * it throws is ignored. The same events are published on channels of `node:diagnostics_channel`, one
   * for each type, such as `tokenwright:issued`.
   */
  readonly onEvent?: ((event: TokenEvent) => void) | undefined;
}

/** How `verify` is served from memory. */
export interface CacheOptions {
  /** Milliseconds, from 0 (each verify reads the store) to 60 000. @default 0 */
  readonly maxStaleMs?: number | undefined;
  /** Tokens, from 1 to 1 000 000; the one with the oldest read is evicted first. @default 10 000 */
  readonly maxEntries?: number | undefined;
  /**
   * The memory for cached tokens and their compiled scopes, in bytes, as an estimate: from 1 048 576 to
   * 17 179 869 184 (16 GiB). The token with the oldest read is evicted first.
   * @default 67 108 864 (64 MiB)
   */
  readonly maxBytes?: number | undefined;
}

/** How much one account may store. Calls that would exceed it fail with `quota_exceeded`. */
export interface QuotaOptions {
  /**
   * Active and suspended tokens of one account, from 1 to 1 000 000, without those that were derived.
   * Far from it, a process counts at most once a minute and trusts the count for a sixteenth of the room
   * that was left: together, several processes may exceed it by so much. One alone never does.
   * @default 10 000
   */
  readonly tokensPerAccount?: number | undefined;
  /**
   * Expired and revoked tokens of one account that are kept until a purge, from 1 to 10 000 000, without
   * those that were derived. Beyond it the oldest are purged early, a sixteenth of it at a time; nothing is
   * refused. An imported token that was revoked stays, so that importing it again does not revive it.
   * @default 10 times `tokensPerAccount`
   */
  readonly endedPerAccount?: number | undefined;
  /**
   * Active and suspended tokens that are derived from one token, at any depth, from 1 to 10 000. They count
   * for that token alone, and not for the account. Ten times as many ended ones are kept. @default 100
   */
  readonly derivedPerRoot?: number | undefined;
  /** Scopes of one token, as asked for and as granted, from 1 to 4096. @default 4096 */
  readonly scopesPerToken?: number | undefined;
}

/** One catalog for all, or one for each account. */
export type CatalogOption<Entry extends string = string> =
  | CatalogOf<Entry>
  | ((account: string) => CatalogOf<Entry> | Promise<CatalogOf<Entry>>);

type CatalogOf<Entry extends string> = string extends Entry ? ScopeCatalog : TypedCatalog<Entry>;

/** Options with all defaults filled in. */
type Filled<Options> = { readonly [Option in keyof Options]-?: number };

/** How much one account may store. */
export type Quotas = Filled<QuotaOptions>;

/** A store of counts. */
export interface CountStore<Store> {
  readonly store: Store;
  /** Whether it is a part of the token store, which closes it. */
  readonly isPart: boolean;
}

/** The options with all defaults filled in. */
interface ReadOptions {
  readonly store: TokenStore;
  /** The store's `local`, read once. */
  readonly isLocal: boolean;
  /** The opposite of the store's `inTransaction`, read once. */
  readonly canWriteLater: boolean;
  /** What the store can keep beside tokens. Some open a file for each part, so they are asked when it is needed. */
  readonly beside: {
    readonly requests: () => RequestStore | undefined;
    readonly leases: () => LeaseStore | undefined;
  };
  readonly keys: readonly KeyOptions[];
  readonly prefix: string;
  readonly foreign: readonly ForeignFormat[] | undefined;
  readonly clock: Clock;
  readonly reveal: 'once' | 'always';
  readonly deadlineMs: number;
  readonly catalog: CatalogOption | undefined;
  readonly presets: readonly Preset[];
  readonly lifetime: Lifetime;
  readonly cache: Filled<CacheOptions>;
  readonly usage: (CountStore<UsageStore> & { readonly flushMs: number }) | undefined;
  readonly limits: CountStore<LeaseStore> | undefined;
  readonly quotas: Quotas;
  readonly onEvent: ((event: TokenEvent) => void) | undefined;
}

/**
 * Reads the options of a service.
 *
 * @throws {TokenError} `invalid_options`, naming the option and what it should be, never its value
 */
export function readOptions(options: unknown): ReadOptions {
  const read = checkOptions(serviceOptions(), options);
  const { store, keys, prefix, catalog, clock, reveal, lifetime, cache, quotas } = read;
  const { deadlineMs, usage, limits, onEvent } = read;
  const engine: Partial<EngineStore> = store;
  const counted = limits && countStore('limits', limits.store, () => engine.leases, isLeaseStore);
  return {
    store,
    beside: {
      requests: () => readOption('store', () => engine.requests),
      leases: () => readOption('store', () => counted?.store ?? engine.leases),
    },
    isLocal: readOption('store', () => store.local === true),
    canWriteLater: readOption('store', () => store.inTransaction !== true),
    keys,
    prefix,
    foreign: read.foreign,
    catalog,
    presets: presetsOf(read.presets, lifetime?.maxSeconds),
    clock: clock ?? systemClock,
    reveal: reveal ?? 'once',
    lifetime: lifetimeOf(lifetime),
    cache: {
      maxStaleMs: cache?.maxStaleMs ?? 0,
      maxEntries: cache?.maxEntries ?? DEFAULT_CACHE_ENTRIES,
      maxBytes: cache?.maxBytes ?? DEFAULT_CACHE_BYTES,
    },
    usage: usage && {
      ...countStore('usage', usage.store, () => engine.usage, isUsageStore),
      flushMs: usage.flushMs ?? DEFAULT_FLUSH_MS,
    },
    limits: counted,
    quotas: quotasOf(quotas),
    deadlineMs: deadlineMs ?? DEFAULT_DEADLINE_MS,
    onEvent,
  };
}

/** Whether a value is a catalog, also if it is from another copy of this package. */
export function isCatalog(value: unknown): value is ScopeCatalog {
  return hasMethods<ScopeCatalog>(value, 'expand', 'attribute', 'suggest', 'toArray', 'knows');
}

/** What each store must have. */
const STORE_METHODS = [
  'insert',
  'count',
  'find',
  'page',
  'replace',
  'revoke',
  'revokeAll',
  'purge',
  'prune',
] as const satisfies readonly (keyof TokenStore)[];

const serviceOptions = once(() => strict({ ...partOptions(), ...ruleOptions() }));

/** What a service is made of. */
function partOptions() {
  return {
    store: z.custom<TokenStore>(isTokenStore, {
      error: ({ input }) => storeMessage(input),
    }),
    keys: z.custom<readonly KeyOptions[]>((value) => keysFault(value) === undefined, {
      error: ({ input }) => `${keysFault(input)}`,
    }),
    prefix: z.string({ error: gotKind('prefix must be a text such as "acme"') }),
    foreign: z.optional(
      z.custom<readonly ForeignFormat[]>(Array.isArray, {
        error: gotKind('foreign must be a list of formats, as [formats.sanctum()]'),
      }),
    ),
    catalog: z.optional(
      z.custom<CatalogOption>((value) => isCatalogOption(value), {
        error: ({ input }) =>
          catalogMessage(input, ', or a function that gives an account its ScopeCatalog'),
      }),
    ),
    presets: z.optional(z.array(presetField(), { error: gotKind('presets must be a list') })),
    clock: z.optional(
      z.custom<Clock>((value) => hasMethods<Clock>(value, 'now'), {
        error: gotKind('clock must be an object with a method now(): Date, such as systemClock'),
      }),
    ),
  };
}

/** Says why a value is not a store, and what would make it one. */
function storeMessage(value: unknown): string {
  const rule = 'store must be a TokenStore, such as new MemoryTokenStore()';
  const hint =
    hintFor(value) ??
    (isClient(value) ? ': give new PostgresTokenStore(pool), or the store of your database' : '');
  return `${rule}; got ${kindOf(value)}${hint}`;
}

/** Whether it looks like a client of a database, or its address. */
function isClient(value: unknown): boolean {
  if (typeof value === 'string') return /^\w+:\/\//.test(value);
  const methods = ['query', 'execute', 'prepare', 'sendCommand', 'call'] as const;
  return methods.some((method) => hasMethods<Record<string, unknown>>(value, method));
}

/** Says why a value is not a catalog, and what would make it one. @param or what it may be instead */
export function catalogMessage(value: unknown, or = ''): string {
  const isDocument = typeof value === 'object' && value !== null && 'paths' in value;
  const hint = Array.isArray(value)
    ? ': give ScopeCatalog.from([…])'
    : (hintFor(value) ?? (isDocument ? ': give await catalogFromOpenApi(document)' : ''));
  return `catalog must be a ScopeCatalog${or}; got ${kindOf(value)}${hint}`;
}

/** What to do with something that is not yet what it should be. */
function hintFor(value: unknown): string | undefined {
  const kind = kindOf(value);
  if (kind === 'a promise') return ': put await before it';
  return kind === 'a class' ? ': put new before it' : undefined;
}

function isCatalogOption(value: unknown): value is CatalogOption {
  return kindOf(value) === 'a function' || isCatalog(value);
}

function presetField() {
  const isScopes = (value: unknown) =>
    Array.isArray(value) && value.length > 0 && value.every((scope) => safeParseScope(scope).ok);
  return strict({
    name: fields.name(),
    scopes: z.custom<readonly string[]>(isScopes, {
      error: 'scopes of a preset must be a list of scopes, as ["GET:shop.example/*"]',
    }),
    ttlSeconds: z.optional(wholeNumber(1, MAX_LIFETIME_SECONDS, 'ttlSeconds of a preset')),
    limits: z.optional(fields.limits()),
  });
}

/** Copies the presets, whose names tell them apart in any case of letters. */
function presetsOf(
  presets: readonly Preset[] = [],
  maxSeconds = MAX_LIFETIME_SECONDS,
): readonly Preset[] {
  const names = new Set(presets.map(({ name }) => name.toLowerCase()));
  if (names.size < presets.length) throw invalidOptions('presets must have different names');
  if (presets.some(({ ttlSeconds = 1 }) => ttlSeconds > maxSeconds)) {
    throw invalidOptions('ttlSeconds of a preset must not be more than lifetime.maxSeconds');
  }
  return presets.map((preset) => ({ ...preset, scopes: [...preset.scopes] }));
}

/** How it behaves. */
function ruleOptions() {
  return {
    reveal: z.optional(
      z.enum(['once', 'always'], { error: gotKind('reveal must be "once" or "always"') }),
    ),
    lifetime: z.optional(
      strict({
        defaultSeconds: z.optional(wholeNumber(1, MAX_LIFETIME_SECONDS, 'lifetime.defaultSeconds')),
        maxSeconds: z.optional(wholeNumber(1, MAX_LIFETIME_SECONDS, 'lifetime.maxSeconds')),
      }),
    ),
    cache: z.optional(
      strict({
        maxStaleMs: z.optional(wholeNumber(0, MAX_STALE_MS, 'cache.maxStaleMs')),
        maxEntries: z.optional(wholeNumber(1, MAX_CACHE_ENTRIES, 'cache.maxEntries')),
        maxBytes: z.optional(wholeNumber(MIN_CACHE_BYTES, MAX_CACHE_BYTES, 'cache.maxBytes')),
      }),
    ),
    ...countOptions(),
    deadlineMs: z.optional(wholeNumber(1, MAX_DEADLINE_MS, 'deadlineMs')),
    onEvent: z.optional(callback<(event: TokenEvent) => void>('onEvent must be a function')),
  };
}

/** What it counts, and up to which numbers. */
function countOptions() {
  return {
    usage: switchOr('usage', {
      store: z.optional(
        z.custom<UsageStore>(isUsageStore, {
          error: gotKind('usage.store must be a UsageStore, such as new MemoryTokenStore().usage'),
        }),
      ),
      flushMs: z.optional(wholeNumber(MIN_FLUSH_MS, MAX_FLUSH_MS, 'usage.flushMs')),
    }),
    limits: switchOr('limits', {
      store: z.optional(
        z.custom<LeaseStore>(isLeaseStore, {
          error: gotKind(
            'limits.store must be a LeaseStore, such as new MemoryTokenStore().leases',
          ),
        }),
      ),
    }),
    quotas: z.optional(
      strict({
        tokensPerAccount: z.optional(
          wholeNumber(1, MAX_TOKENS_PER_ACCOUNT, 'quotas.tokensPerAccount'),
        ),
        endedPerAccount: z.optional(
          wholeNumber(1, MAX_ENDED_PER_ACCOUNT, 'quotas.endedPerAccount'),
        ),
        derivedPerRoot: z.optional(wholeNumber(1, MAX_DERIVED_PER_ROOT, 'quotas.derivedPerRoot')),
        scopesPerToken: z.optional(wholeNumber(1, MAX_SCOPES, 'quotas.scopesPerToken')),
      }),
    ),
  };
}

/** An optional object: `true` stands for one without members, and `false` for none. */
function switchOr<Shape extends z.core.$ZodShape>(name: string, shape: Shape) {
  const read = readBy((given, refuse) => {
    const isStore = [isUsageStore, isLeaseStore, isTokenStore].some((is) => is(given));
    if (isStore) return refuse(`${name} must be true, or an object; got a store: give { store }`);
    return given === true ? {} : given === false ? undefined : given;
  });
  return z.optional(z.pipe(read, z.optional(strict(shape))));
}

function isTokenStore(value: unknown): value is TokenStore {
  return hasMethods<TokenStore>(value, ...STORE_METHODS);
}

function isUsageStore(value: unknown): value is UsageStore {
  return hasMethods<UsageStore>(value, 'add', 'read', 'forget');
}

function isLeaseStore(value: unknown): value is LeaseStore {
  return hasMethods<LeaseStore>(value, 'take', 'giveBack', 'purge');
}

/**
 * The store of an option: the one that is given, else the part of the token store.
 *
 * @throws {TokenError} `invalid_options` if there is neither
 */
function countStore<Store>(
  option: 'usage' | 'limits',
  given: Store | undefined,
  partOf: () => unknown,
  isStore: (value: unknown) => value is Store,
): CountStore<Store> {
  if (given !== undefined) return { store: given, isPart: false };
  const store = readOption('store', partOf);
  if (isStore(store)) return { store, isPart: true };
  throw new TokenError('invalid_options', `this store keeps no counts: give ${option}: { store }`);
}

function quotasOf({
  tokensPerAccount = DEFAULT_TOKENS_PER_ACCOUNT,
  endedPerAccount = ENDED_PER_LIVE * tokensPerAccount,
  derivedPerRoot = DEFAULT_DERIVED_PER_ROOT,
  scopesPerToken = MAX_SCOPES,
}: QuotaOptions = {}): Quotas {
  return { tokensPerAccount, endedPerAccount, derivedPerRoot, scopesPerToken };
}

function lifetimeOf(
  options: { defaultSeconds?: number | undefined; maxSeconds?: number | undefined } = {},
): Lifetime {
  const maxSeconds = options.maxSeconds ?? MAX_LIFETIME_SECONDS;
  const defaultSeconds = options.defaultSeconds ?? maxSeconds;
  if (defaultSeconds <= maxSeconds) return Object.freeze({ defaultSeconds, maxSeconds });
  throw new TokenError(
    'invalid_options',
    'lifetime.defaultSeconds must not be more than lifetime.maxSeconds',
  );
}
