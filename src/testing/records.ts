import assert from 'node:assert/strict';
import {
  type CountQuery,
  type PageOrder,
  type PageQuery,
  type Position,
  type PruneQuery,
  positionOf,
  type TokenCounts,
  type TokenStore,
} from '../ports/token-store.ts';
import {
  isListed,
  type ListedState,
  type RecordState,
  TOKEN_STATES,
  type TokenId,
  type TokenRecord,
} from '../token/record.ts';
import { revoked } from '../token/revoked.ts';
import { bytesOfLists } from '../token/size.ts';

// Records for the contract, and the comparisons that its promises share.

export const DAY = 86_400_000;
// In the past: a store with a clock of its own removes nothing that has not ended by that clock. All
// instants that matter are given, so no promise depends on the real time.
const START_TIME = Date.parse('2001-03-04T05:06:07.000Z');
/** Before all other dates here. */
export const LONG_AGO = new Date('2000-12-31T23:59:59.999Z');
/** Later than the clock of any server. */
export const FAR_FUTURE = new Date('2200-01-01T00:00:00.000Z');

export const ALIKE_ACCOUNTS = [
  'acme',
  'Acme',
  'ACME',
  'acme ',
  ' acme',
  'acme\u00a0',
  'acme\u200b',
  'acm\u00e9',
  'acme\u0301',
  '\uff41cme',
  'a_me',
  'acm%',
  'acm',
  'acme0',
  '\u00df',
  'ss',
];

export function later(ms: number): Date {
  return new Date(START_TIME + ms);
}

/** For stores that forget what has ended: an instant that no real time reaches. */
export function farLater(ms: number): Date {
  return new Date(later(ms).getTime() + 100 * 365.25 * DAY);
}

export function idOf(label: string): TokenId {
  return label.padEnd(22, 'x') as TokenId;
}

export function bytesOf(seed: number): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, index) => index * 31 + seed * 97);
}

/** A different one for each id. */
function digestOf(id: TokenId): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, index) => id.charCodeAt(index % id.length) + index);
}

export function range(length: number): number[] {
  return Array.from({ length }, (_, index) => index);
}

/** About 6 kB, of the same length for each mark. */
export function longScopes(mark: 'a' | 'b'): string[] {
  return range(100).map((index) => `GET:shop.example/${'x'.repeat(40)}/${index}/${mark}`);
}

export function newRecord(label: string, fields: Partial<TokenRecord> = {}): TokenRecord {
  return {
    id: idOf(label),
    account: 'acme',
    prefix: 'acme',
    kid: 'k1',
    digest: digestOf(idOf(label)),
    scopes: ['GET:shop.example/orders', 'POST:shop.example/orders'],
    requested: ['*:shop.example/orders'],
    createdAt: later(0),
    expiresAt: later(DAY),
    version: 1,
    ...fields,
  };
}

export function fullRecord(label: string, fields: Partial<TokenRecord> = {}): TokenRecord {
  return newRecord(label, {
    prefix: 'acme_live',
    kid: 'Z9',
    box: Uint8Array.from({ length: 55 }, (_, index) => 255 - index),
    requested: ['GET:shop.example/orders', 'POST:shop.example/*'],
    expiresAt: later(DAY + 789),
    name: 'deploy',
    metadata: { team: { name: 'payments', size: 3 }, tags: ['a', 'b'] },
    revokedAt: later(456),
    previousDigest: bytesOf(200),
    previousUntil: later(123),
    suspendedAt: later(234),
    scopesChangedAt: later(345),
    rotatedAt: later(567),
    pending: {
      prefix: 'acme_live',
      kid: 'Y8',
      digest: bytesOf(210),
      box: Uint8Array.from({ length: 55 }, (_, index) => 200 - index),
      graceSeconds: 3600,
    },
    limits: {
      addresses: ['192.0.2.0/24', '2001:db8::/32', '198.51.100.7'],
      uses: Number.MAX_SAFE_INTEGER,
      rate: { uses: 50, seconds: 86_400 },
    },
    ancestors: ['root', 'stem', 'branch'].map(idOf),
    format: 'prefixed-api-key2',
    origin: {
      createdBy: 'grace@shop.example',
      purpose: 'nightly "report" – größer',
      actor: { sub: 'bot', token: idOf('actor') },
    },
    ...fields,
  });
}

/** Records in each state, mixed, some of them of one instant. */
export function recordsOfStates(): TokenRecord[] {
  const fields: Readonly<Record<RecordState, Partial<TokenRecord>>> = {
    active: {},
    suspended: { suspendedAt: later(2) },
    expired: { expiresAt: LONG_AGO },
    revoked: { revokedAt: later(1) },
  };
  return range(24).map((index) =>
    newRecord(`n${index}`, {
      createdAt: later(Math.floor(index / 3)),
      ...fields[stateAt(index)],
      // What ended a token for good decides, whatever else happened to it.
      ...(index % 8 === 2 && fields.suspended),
      ...(index % 8 === 3 && { ...fields.suspended, ...fields.expired }),
    }),
  );
}

function stateAt(index: number): RecordState {
  return TOKEN_STATES[index % TOKEN_STATES.length] as RecordState;
}

/** Those of records that are in a state before any of them has ended by time. */
export function ofState<Listed extends TokenRecord>(
  records: readonly Listed[],
  state: ListedState | undefined,
): Listed[] {
  return records.filter((record) => isListed(record, state, later(0).getTime()));
}

/** A record with lists of a given length, to test where `maxBytes` ends a page. */
export function recordWithLists(label: string, ms: number, length: number): TokenRecord {
  const scopes = range(length + 1).map((index) => `GET:shop.example/${label}/${index}`);
  const requested = ms % 2 === 0 ? scopes : ['GET:shop.example/*'];
  return newRecord(label, { createdAt: later(ms), scopes, requested });
}

export function bytesOfAll(records: readonly TokenRecord[]): number {
  return records.map(bytesOfLists).reduce((sum, bytes) => sum + bytes, 0);
}

/** Scopes whose JSON has so many bytes: the longest one last, or that one alone. */
export function scopesOfBytes(bytes: number, alone = false): string[] {
  const first = alone ? [] : range(5).map((index) => `GET:shop.example/${index}`);
  const left = bytes - JSON.stringify([...first, 'GET:']).length;
  return [...first, `GET:${'x'.repeat(left)}`];
}

/** Counts the records of a holder; without `most`, all of them. */
export function countOf(
  store: TokenStore,
  { account = 'acme', most = {}, ...query }: CountFields = {},
): Promise<TokenCounts> {
  const all = { live: 1000, ended: 1000, ...most };
  return store.count({ account, liveAt: later(0), most: all, ...query });
}

type CountFields = Partial<Omit<CountQuery, 'most'>> & { readonly most?: Partial<TokenCounts> };

export function pageOf(account: string, fields: Partial<PageQuery> = {}): PageQuery {
  return { account, limit: 100, liveAt: later(0), ...fields };
}

export async function insertOne(store: TokenStore, record: TokenRecord): Promise<TokenRecord> {
  await store.insert(record);
  return record;
}

export async function insertAll(store: TokenStore, records: readonly TokenRecord[]): Promise<void> {
  for (const record of records) await store.insert(record);
}

/** Purges what ended before an instant, and says how many records that removed. */
export async function purgeOf(
  store: TokenStore,
  now: Date,
  limit: number,
  minAgeMs = 0,
): Promise<number> {
  const purged = await store.purge({ now, minAgeMs, limit });
  return typeof purged === 'number' ? purged : purged.count;
}

/** Prunes, and says how many records that removed. */
export async function pruneOf(
  store: TokenStore,
  { account = 'acme', now = later(0), limit = 1000, ...holder }: Partial<PruneQuery> = {},
): Promise<number> {
  const pruned = await store.prune({ account, now, limit, ...holder });
  return typeof pruned === 'number' ? pruned : pruned.count;
}

/** Whether an empty store knows the time by a clock of its own. */
export async function hasClock(store: TokenStore): Promise<boolean> {
  return (await store.hasReached?.(later(0))) ?? false;
}

/** Expects that the store holds records, in the form that they have once they are revoked at an instant. */
export function assertRevoked(
  store: TokenStore,
  records: readonly TokenRecord[],
  at: Date,
): Promise<void> {
  return assertKept(
    store,
    records.map((record) => revoked(record, at)),
  );
}

export async function findOne(store: TokenStore, id: TokenId): Promise<TokenRecord> {
  const [found] = await store.find([id]);
  assert.ok(found !== undefined, `${id} is not there`);
  return found;
}

export async function pagedIds(store: TokenStore, query: PageQuery): Promise<TokenId[]> {
  return (await store.page(query)).map((record) => record.id);
}

/** The ids of all pages from a position on. */
export async function walk(
  store: TokenStore,
  query: PageQuery,
  pages = MAX_STEPS,
): Promise<TokenId[]> {
  assert.ok(pages > 0, `the pages go on after ${MAX_STEPS}`);
  const records = await store.page(query);
  const last = records.at(-1);
  if (last === undefined) return [];
  const after = positionOf(last, query.order);
  return [
    ...records.map((record) => record.id),
    ...(await walk(store, { ...query, after }, pages - 1)),
  ];
}

/**
 * All records by `scan`; undefined if the store has none. A pass may give a record twice, and here that
 * counts once.
 */
export async function scanAll(
  store: TokenStore,
  limit: number,
  between: () => Promise<void> = async () => {},
): Promise<TokenRecord[] | undefined> {
  if (store.scan === undefined) return undefined;
  const found = new Map<TokenId, TokenRecord>();
  let after: string | undefined;
  for (let steps = 0; steps < MAX_STEPS; steps += 1) {
    const { records, next } = await store.scan({ after, limit });
    assert.ok(records.length <= limit, `scan gave ${records.length} records, not ${limit} at most`);
    for (const record of records) found.set(record.id, record);
    if (next === undefined) return [...found.values()];
    after = next;
    await between();
  }
  return assert.fail(`scan goes on after ${MAX_STEPS} steps`);
}

/** A store whose lists never end must fail, not run without end. */
const MAX_STEPS = 1000;

/** Compares records in any order. */
export function assertSameSet(
  actual: readonly TokenRecord[],
  expected: readonly TokenRecord[],
): void {
  assertSame(byId(actual), byId(expected));
}

function byId(records: readonly TokenRecord[]): TokenRecord[] {
  return [...records].sort((a, b) => (a.id < b.id ? -1 : 1));
}

export function newestFirst(records: readonly TokenRecord[]): TokenRecord[] {
  return inOrder(records, 'created');
}

export function inOrder(records: readonly TokenRecord[], order?: PageOrder): TokenRecord[] {
  const compare = comparedBy(order);
  return [...records].sort((a, b) => compare(positionOf(a, order), positionOf(b, order)));
}

/** Compares two positions in a list of an order. */
export function comparedBy(order: PageOrder = 'created'): (a: Position, b: Position) => number {
  const sign = order === 'created' ? -1 : 1;
  return (a, b) =>
    sign * (a.at.getTime() - b.at.getTime() || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
}

/** A record as plain JSON, without absent fields. */
export function facts(record: TokenRecord | undefined): unknown {
  if (record === undefined) return undefined;
  return JSON.parse(
    JSON.stringify({
      ...record,
      digest: hex(record.digest),
      box: record.box && hex(record.box),
      createdAt: record.createdAt.toISOString(),
      expiresAt: record.expiresAt.toISOString(),
      revokedAt: record.revokedAt?.toISOString(),
      previousDigest: record.previousDigest && hex(record.previousDigest),
      previousUntil: record.previousUntil?.toISOString(),
      suspendedAt: record.suspendedAt?.toISOString(),
      scopesChangedAt: record.scopesChangedAt?.toISOString(),
      rotatedAt: record.rotatedAt?.toISOString(),
      pending: record.pending && {
        ...record.pending,
        digest: hex(record.pending.digest),
        box: record.pending.box && hex(record.pending.box),
      },
    }),
  );
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

export function assertSame(
  actual: readonly (TokenRecord | undefined)[],
  expected: readonly (TokenRecord | undefined)[],
): void {
  assert.equal(actual.length, expected.length);
  // One by one, because assert takes seconds to print the difference of two long lists.
  for (const [index, record] of actual.entries()) {
    assert.deepEqual(facts(record), facts(expected[index]));
  }
}

/** Reads the records together and one by one, because stores may do these differently. */
export async function assertKept(
  store: TokenStore,
  records: readonly TokenRecord[],
): Promise<void> {
  assertSame(await store.find(records.map((record) => record.id)), records);
  for (const record of records) assertSame(await store.find([record.id]), [record]);
}

export async function assertTaken(store: TokenStore, record: TokenRecord): Promise<void> {
  await assert.rejects(store.insert(record), { name: 'TokenError', code: 'id_taken' });
}

/** Changes a value, however deep, in every way that its owner could. */
export function spoil(value: object): void {
  if (value instanceof Date) value.setTime(0);
  else if (value instanceof Uint8Array) value.fill(0);
  else {
    for (const [name, member] of Object.entries(value)) {
      if (typeof member === 'object' && member !== null) spoil(member);
      // A frozen member stays as it is, which is as safe as a copy.
      Reflect.set(value, name, 'spoiled');
    }
    Reflect.set(value, 'added', 'spoiled');
  }
}

export function deepFreeze<Value extends object>(value: Value): Value {
  for (const member of Object.values(value)) {
    if (typeof member === 'object' && member !== null) deepFreeze(member);
  }
  // A typed array with elements cannot be frozen.
  return value instanceof Uint8Array ? value : Object.freeze(value);
}
