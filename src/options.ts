import * as z from 'zod';
import { type Clock, systemClock } from './clock.ts';
import { TokenError } from './errors.ts';
import type { TokenEvent } from './events.ts';
import { checkOptions, strict } from './input.ts';
import type { KeyOptions } from './keys.ts';
import type { ScopeCatalog } from './scope/index.ts';
import type { TokenStore } from './store.ts';
import { type Lifetime, ONE_YEAR_SECONDS } from './token.ts';

/** How a {@link TokenService} works. */
export interface TokenServiceOptions {
  /** Where the records are kept. */
  readonly store: TokenStore;
  /** Exactly one with status `active`; see {@link generateKey}. */
  readonly keys: readonly KeyOptions[];
  /** What the values of this host begin with, like `acme` or `acme_live`. */
  readonly prefix: string;
  /**
   * The scopes that an account may ask for, and against which wildcards are expanded. Without one,
   * scopes are kept as asked for, and wildcards are matched as patterns.
   */
  readonly catalog?: CatalogOption | undefined;
  /**
   * Where the time comes from. One that steps back by up to two hours is held until it has caught up.
   * @default the time of the machine
   */
  readonly clock?: Clock | undefined;
  /**
   * `once`: the value is in the answer to issue and rotate, and never again. `always`: it is kept,
   * encrypted with the active key, and shown to its account in every answer. @default 'once'
   */
  readonly reveal?: 'once' | 'always' | undefined;
  /** Whole seconds, from 1 to 31 536 000 (365 days). @default 31 536 000, both */
  readonly lifetime?: Partial<Lifetime> | undefined;
  /**
   * Serves verify from memory, for at most so long after the start of the read: a change made by
   * another process is seen within `maxStaleMs`, one of this process at once. Where the store can
   * tell of changes it is seen as soon as it does. @default off
   */
  readonly cache?: CacheOptions | undefined;
  /** How long a store or a catalog may take to answer, from 1 to 60 000. @default 2000 */
  readonly deadlineMs?: number | undefined;
  /**
   * Is told of what happens to tokens, by id and never with a value. It is called at once, not
   * waited for, and what it throws is lost. The same events are published on channels of
   * `node:diagnostics_channel`, each by its type, as `tokenwright:issued`.
   */
  readonly onEvent?: ((event: TokenEvent) => void) | undefined;
}

/** What may be served from memory. */
export interface CacheOptions {
  /** Milliseconds, from 0 (each verify reads the store) to 60 000. @default 0 */
  readonly maxStaleMs?: number | undefined;
  /** Tokens, from 1 to 1 000 000; the one read longest ago leaves first. @default 10 000 */
  readonly maxEntries?: number | undefined;
}

/** One catalog for all, or one for each account. */
export type CatalogOption =
  | ScopeCatalog
  | ((account: string) => ScopeCatalog | Promise<ScopeCatalog>);

/** The options with all that was left open filled in. */
interface ReadOptions {
  readonly store: TokenStore;
  readonly keys: readonly KeyOptions[];
  readonly prefix: string;
  readonly clock: Clock;
  readonly reveal: 'once' | 'always';
  readonly deadlineMs: number;
  readonly catalog: CatalogOption | undefined;
  readonly lifetime: Lifetime;
  readonly cache: { readonly maxStaleMs: number; readonly maxEntries: number };
  readonly onEvent: ((event: TokenEvent) => void) | undefined;
}

const DEFAULT_DEADLINE_MS = 2000;
const DEFAULT_MAX_ENTRIES = 10_000;
const MAX_STALE_MS = 60_000;

/**
 * Reads the options of a service.
 *
 * @throws {TokenError} `invalid_options`, naming the option and what it should be, never its value
 */
export function readOptions(options: unknown): ReadOptions {
  const { store, keys, prefix, catalog, clock, reveal, lifetime, cache, deadlineMs, onEvent } =
    checkOptions(serviceOptions, options);
  return {
    store,
    keys,
    prefix,
    catalog,
    clock: clock ?? systemClock,
    reveal: reveal ?? 'once',
    lifetime: lifetimeOf(lifetime),
    cache: {
      maxStaleMs: cache?.maxStaleMs ?? 0,
      maxEntries: cache?.maxEntries ?? DEFAULT_MAX_ENTRIES,
    },
    deadlineMs: deadlineMs ?? DEFAULT_DEADLINE_MS,
    onEvent,
  };
}

/** Whether a value is a catalog, also one of another copy of this package. */
export function isCatalog(value: unknown): value is ScopeCatalog {
  return hasMethods(value, ['expand', 'attribute', 'suggest', 'toArray', 'knows']);
}

function hasMethods(value: unknown, names: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function');
}

const STORE_METHODS = ['insert', 'find', 'page', 'replace', 'revoke', 'revokeAll', 'purge'];

const serviceOptions = strict({
  store: z.custom<TokenStore>((value) => hasMethods(value, STORE_METHODS), {
    error: 'store must be a TokenStore, such as new MemoryTokenStore()',
  }),
  keys: z.custom<readonly KeyOptions[]>(Array.isArray, {
    error: 'keys must be a list of at least one key, as [generateKey()]',
  }),
  prefix: z.string({ error: 'prefix must be a text such as "acme"' }),
  catalog: z
    .custom<CatalogOption>((value) => typeof value === 'function' || isCatalog(value), {
      error: 'catalog must be a ScopeCatalog, or a function that gives an account its ScopeCatalog',
    })
    .optional(),
  clock: z
    .custom<Clock>((value) => hasMethods(value, ['now']), {
      error: 'clock must be an object with a method now(): Date',
    })
    .optional(),
  reveal: z.enum(['once', 'always'], { error: 'reveal must be "once" or "always"' }).optional(),
  lifetime: strict({
    defaultSeconds: secondsOption('lifetime.defaultSeconds'),
    maxSeconds: secondsOption('lifetime.maxSeconds'),
  }).optional(),
  cache: strict({
    maxStaleMs: rangeOption('cache.maxStaleMs', MAX_STALE_MS, 0),
    maxEntries: rangeOption('cache.maxEntries', 1_000_000),
  }).optional(),
  deadlineMs: rangeOption('deadlineMs', 60_000),
  onEvent: z
    .custom<(event: TokenEvent) => void>((value) => typeof value === 'function', {
      error: 'onEvent must be a function',
    })
    .optional(),
});

function secondsOption(name: string) {
  return rangeOption(name, ONE_YEAR_SECONDS);
}

function rangeOption(name: string, max: number, min = 1) {
  const error = `${name} must be a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error }).optional();
}

function lifetimeOf(
  options: { defaultSeconds?: number | undefined; maxSeconds?: number | undefined } = {},
): Lifetime {
  const maxSeconds = options.maxSeconds ?? ONE_YEAR_SECONDS;
  const defaultSeconds = options.defaultSeconds ?? maxSeconds;
  if (defaultSeconds <= maxSeconds) return Object.freeze({ defaultSeconds, maxSeconds });
  throw new TokenError(
    'invalid_options',
    'lifetime.defaultSeconds must not be more than lifetime.maxSeconds',
  );
}
