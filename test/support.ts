import { createHash, createHmac, hkdfSync } from 'node:crypto';
import { inspect } from 'node:util';
import { expect } from 'vitest';
import { isTokenError, type TokenError } from '../src/errors.ts';
import type { TokenServiceOptions } from '../src/inputs/options.ts';
import type { EngineStore } from '../src/ports/engine-store.ts';
import type { StoreHealth } from '../src/ports/store-health.ts';
import type { TokenStore } from '../src/ports/token-store.ts';
import { TokenService } from '../src/service.ts';
import { MemoryTokenStore } from '../src/stores/memory/index.ts';
import type { StoreCall } from '../src/testing/faults.ts';
import {
  type ManualClock,
  manualClock,
  type StoreFault,
  withFaults,
} from '../src/testing/index.ts';
import type { TokenId, TokenRecord } from '../src/token/record.ts';
import type { KeyOptions } from '../src/values/keys.ts';
import { keepInspected } from './canary.ts';

export const YEAR = 31_536_000;
export const SCOPE = 'GET:shop.example/orders';
export const OTHER_SCOPE = 'POST:shop.example/orders';
/** Well-formed, and nobody's. */
export const NO_ID = 'NobodyHasThisId0000000' as TokenId;

/** Bytes `first`, `first + 1`, … as base64url: a key that is the same in every run. */
export function fixedSecret(first = 0): string {
  return Buffer.from(Array.from({ length: 32 }, (_, i) => (first + i) % 256)).toString('base64url');
}

export const K1: KeyOptions = { kid: 'k1', secret: fixedSecret(0), status: 'active' };
export const K2: KeyOptions = { kid: 'k2', secret: fixedSecret(64), status: 'active' };

/** For a store whose failures and answers nobody notes. */
export const QUIET: StoreHealth = { onFailure() {}, onAnswer() {} };

export interface Setting {
  readonly clock: ManualClock;
  /** Keeps in memory, writes down what it is asked, and fails when told to. */
  readonly store: RecordingStore;
  readonly tokens: TokenService;
}

/** A service over a memory store, at 2100-01-01T00:00:00Z, with one fixed key and prefix `acme`. */
export function setUp(options: Partial<TokenServiceOptions> = {}): Setting {
  const clock = isManual(options.clock) ? options.clock : manualClock();
  const store = new RecordingStore(options.store ?? new MemoryTokenStore({ clock }));
  const tokens = new TokenService({ keys: [K1], prefix: 'acme', clock, ...options, store });
  keepInspected(tokens);
  return { clock, store, tokens };
}

function isManual(clock: TokenServiceOptions['clock']): clock is ManualClock {
  return clock !== undefined && 'advance' in clock;
}

export type StoreMethod = StoreCall['method'];

/** A store around another one, for tests that count calls or break some. Records no calls of its parts. */
export class RecordingStore implements EngineStore {
  declare readonly insert: TokenStore['insert'];
  declare readonly count: TokenStore['count'];
  declare readonly find: TokenStore['find'];
  declare readonly page: TokenStore['page'];
  declare readonly replace: TokenStore['replace'];
  declare readonly revoke: TokenStore['revoke'];
  declare readonly revokeAll: TokenStore['revokeAll'];
  declare readonly purge: TokenStore['purge'];
  declare readonly prune: TokenStore['prune'];
  readonly usage: EngineStore['usage'];
  readonly leases: EngineStore['leases'];
  readonly requests: EngineStore['requests'];
  readonly calls: StoreCall[] = [];
  readonly inner: TokenStore;
  readonly local: boolean;
  readonly #faults = new Map<StoreMethod, (...args: never[]) => unknown>();

  constructor(inner: TokenStore = new MemoryTokenStore(), { local = inner.local ?? false } = {}) {
    const { usage, leases, requests } = new MemoryTokenStore();
    this.usage = usage;
    this.leases = leases;
    this.requests = requests;
    // With the parts of the inner store, if it has them.
    Object.assign(this, withFaults(inner, this.#record));
    this.inner = inner;
    this.local = local;
  }

  /** From now on, a method (or each) does this instead; it may throw, reject, hang or lie. */
  break(methods: StoreMethod | readonly StoreMethod[], fault: (...args: never[]) => unknown): void {
    for (const method of [methods].flat()) this.#faults.set(method as StoreMethod, fault);
  }

  mend(): void {
    this.#faults.clear();
  }

  /** What was called since the last time somebody asked. */
  takeCalls(): StoreMethod[] {
    return this.calls.splice(0).map(({ method }) => method);
  }

  readonly #record: StoreFault = (call, run) => {
    this.calls.push(call);
    const fault = this.#faults.get(call.method) as StoreMethodFault | undefined;
    return fault === undefined ? run() : fault(...call.args);
  };
}

type StoreMethodFault = (...args: readonly unknown[]) => Promise<unknown>;

/** A memory store that knows the time by its records alone, as an SQLite file does. */
export class DatedStore extends MemoryTokenStore {
  asked = 0;

  async hasReached(instant: Date, before?: Date): Promise<boolean> {
    this.asked += 1;
    const { records } = await super.scan({ limit: Number.MAX_SAFE_INTEGER });
    const times = records.flatMap(({ createdAt, rotatedAt }) => [
      createdAt,
      rotatedAt ?? createdAt,
    ]);
    return times.some((time) => time >= instant && (before === undefined || time < before));
  }
}

export const ALL_METHODS: readonly StoreMethod[] = [
  'insert',
  'count',
  'find',
  'page',
  'replace',
  'revoke',
  'revokeAll',
  'purge',
  'prune',
];

/** All that a loop would get. */
export async function allOf<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Reads a record as it is kept. */
export async function recordOf(store: TokenStore, id: TokenId): Promise<TokenRecord> {
  const [record] = await store.find([id]);
  if (record === undefined) throw new Error('there is no such record');
  return record;
}

/** The error with which a call is refused: ours, bare of causes and of anything secret. */
export async function refusalOf(call: Promise<unknown> | (() => unknown)): Promise<TokenError> {
  let answer: unknown;
  try {
    answer = await (typeof call === 'function' ? call() : call);
  } catch (error) {
    if (!isTokenError(error)) throw new Error('refused by something else than a TokenError');
    expect(Object.hasOwn(error, 'cause')).toBe(false);
    expectNoSecret(error);
    return error;
  }
  throw new Error(`was not refused: ${inspect(answer)}`);
}

export async function codeOf(call: Promise<unknown> | (() => unknown)): Promise<string> {
  return (await refusalOf(call)).code;
}

/** The parts of a value, cut by the lengths of the specification. */
export function partsOf(value: string): {
  prefix: string;
  version: string;
  kid: string;
  id: TokenId;
  secret: string;
  tag: string;
} {
  const body = value.slice(-58);
  return {
    prefix: value.slice(0, -59),
    version: body.slice(0, 1),
    kid: body.slice(1, 3),
    id: body.slice(3, 25) as TokenId,
    secret: body.slice(25, 52),
    tag: body.slice(52),
  };
}

/**
 * The canary: fails when a thing, printed in any way, shows a value, a key of these tests, or one of
 * the given secrets.
 */
export function expectNoSecret(thing: unknown, ...secrets: readonly string[]): void {
  const shown = printsOf(thing);
  const keys = [K1, K2].flatMap(({ secret }) => formsOf(Buffer.from(String(secret), 'base64url')));
  // Told by position, so that a failing test does not print what it found.
  const found = [...keys, ...secrets.flatMap(piecesOf)].findIndex((part) => shown.includes(part));
  expect(found, 'a secret is shown').toBe(-1);
  expect(/[a-z0-9]_1[0-9A-Za-z]{57}/.test(shown), 'a value is shown').toBe(false);
}

/** All that a log could make of a thing. */
export function printsOf(thing: unknown): string {
  const parts = [inspect(thing, { depth: Infinity, showHidden: true, maxStringLength: null })];
  if (thing instanceof Error) parts.push(thing.message, thing.stack ?? '', inspect(thing.cause));
  parts.push(
    JSON.stringify(thing, (_, value) => (typeof value === 'bigint' ? `${value}` : value)) ?? '',
  );
  return parts.join('\n');
}

function piecesOf(secret: string): string[] {
  return secret.length > 58 ? [secret, partsOf(secret).secret] : [secret];
}

function formsOf(bytes: Buffer): string[] {
  return [
    bytes.toString('base64url'),
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('hex'),
  ];
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The specification's words in code of the tests' own, so that both must agree. */
export const reference = {
  alphabet: BASE62,
  subkey(secret: string, info: string): Buffer {
    const bytes = Buffer.from(secret, 'base64url');
    return Buffer.from(hkdfSync('sha256', bytes, 'tokenwright/v1', info, 32));
  },
  tag(secret: string, untagged: string): string {
    const mac = createHmac('sha256', reference.subkey(secret, 'tag/v1'));
    return reference.base62(mac.update(`tag\0${untagged}`).digest().readUInt32BE(0));
  },
  base62(number: number): string {
    let text = '';
    for (let power = 5; power >= 0; power--) {
      text += BASE62[Math.floor(number / 62 ** power) % 62];
    }
    return text;
  },
  digest(id: string, secret: string): Buffer {
    return createHash('sha256').update(`tokenwright/v1/verify\0${id}${secret}`).digest();
  },
};

/** A well-formed value with a right tag, whoever it belongs to. */
export function forge(
  id: string = NO_ID,
  { prefix = 'acme', key = K1, secret = 'z'.repeat(27), version = '1' } = {},
): string {
  const untagged = `${prefix}_${version}${key.kid}${id}${secret}`;
  return untagged + reference.tag(String(key.secret), untagged);
}

/** Spoils a value in every small way: each character exchanged, dropped, doubled; ends cut and grown. */
export function spoiled(value: string): string[] {
  const places = Array.from(value, (_, place) => place);
  const exchanged = places.flatMap((place) =>
    [...BASE62, '_', '-', '.', ' ', 'é', '\0']
      .filter((character) => character !== value[place])
      .map((character) => value.slice(0, place) + character + value.slice(place + 1)),
  );
  return [
    ...exchanged,
    ...places.map((place) => value.slice(0, place) + value.slice(place + 1)),
    ...places.map((place) => value.slice(0, place) + value[place] + value.slice(place)),
    ...places.map((place) => value.slice(0, place)),
    ...places.slice(1).map((place) => value.slice(place)),
    ...[' ', '\n', '0', '=', '…', '\0'].flatMap((extra) => [value + extra, extra + value]),
    value + value,
    value.toUpperCase(),
    `Bearer ${value}`,
  ];
}
