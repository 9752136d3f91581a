import assert from 'node:assert/strict';
import type { RequestBounds, RequestRecord, RequestStore } from '../ports/request-store.ts';
import { contractCase } from './contract-case.ts';
import {
  bytesOf,
  DAY,
  FAR_FUTURE,
  idOf,
  farLater as later,
  later as past,
  range,
} from './records.ts';

/** One promise of a {@link RequestStore}, for any test runner. */
export interface RequestContractCase {
  /** The method and its promise: `insert: refuses a user code that is taken`. */
  readonly name: string;
  /** Opens a store, checks the promise and closes the store. Rejects if the promise is broken. */
  run(open: () => RequestStore | Promise<RequestStore>): Promise<void>;
}

const test = contractCase<RequestStore>;

/**
 * All promises of a request store, as a list of cases for any test runner.
 *
 * A store passes when no case rejects and none is skipped. `open` must return an empty store each time. To see
 * that several processes never store more requests than there may be, run some of your own.
 *
 * @example
 * describe('my request store', () => {
 *   it.each(requestContract)('$name', (promise) => promise.run(() => new MyRequestStore()));
 * });
 */
export const requestContract: readonly RequestContractCase[] = [
  test('insert: stores every member, and those that are absent stay absent', async (store) => {
    for (const record of [requestOf(1), fullRequest(2)]) {
      await store.insert(record, boundsOf());
      await expectStored(store, record);
    }
  }),

  test('insert: stores text as it is', async (store) => {
    const texts = [
      'a\u0000b',
      'ä\ud83d\ude00',
      'e\u0301',
      '\u00e9',
      '"\\\'',
      ' a ',
      '\u202e',
      '\ud800',
    ];
    for (const [index, text] of texts.entries()) {
      const record = requestOf(index, { client: text, purpose: text, address: text });
      await store.insert(record, boundsOf());
      await expectStored(store, record);
    }
  }),

  test('insert: stores 4096 scopes', async (store) => {
    const scopes = range(4096).map((index) => `GET:shop.example/${'x'.repeat(40)}/${index}`);
    const record = requestOf(1, { scopes });
    await store.insert(record, boundsOf());
    await expectStored(store, record);
  }),

  test('insert: keeps a copy, and changes nothing of what it is given', async (store) => {
    const record = fullRequest(1);
    const given = { ...record, digest: new Uint8Array(record.digest), scopes: [...record.scopes] };
    const expiresAt = new Date(record.expiresAt);
    await store.insert({ ...given, expiresAt }, boundsOf());
    assert.deepEqual(given, record);
    given.digest.fill(0);
    given.scopes.length = 0;
    expiresAt.setTime(0);
    await expectStored(store, record);
  }),

  test('insert: refuses an id that is taken, and keeps the request that has it', async (store) => {
    const record = requestOf(1);
    await store.insert(record, boundsOf());
    await refuses(store, requestOf(2, { id: record.id }), boundsOf(), 'code_taken');
    await refuses(store, record, boundsOf(), 'code_taken');
    await expectStored(store, record);
    assert.equal(await store.find({ userCode: requestOf(2).userCode }), undefined);
  }),

  test('insert: refuses a user code that is taken, and keeps the request that has it', async (store) => {
    const record = requestOf(1);
    await store.insert(record, boundsOf());
    await refuses(store, requestOf(2, { userCode: record.userCode }), boundsOf(), 'code_taken');
    await expectStored(store, record);
    assert.equal(await store.find({ id: requestOf(2).id }), undefined);
  }),

  test('insert: refuses the user code of an expired request', async (store) => {
    const record = requestOf(1, { expiresAt: past(0) });
    await store.insert(record, boundsOf());
    await refuses(store, requestOf(2, { userCode: record.userCode }), boundsOf(), 'code_taken');
    await refuses(store, requestOf(2, { id: record.id }), boundsOf(), 'code_taken');
  }),

  test('insert: gives a user code to one of many at the same time', async (store) => {
    const inserts = range(32).map((index) =>
      store.insert(requestOf(index, { userCode: requestOf(0).userCode }), boundsOf()),
    );
    const refused = await refusalsOf(inserts);
    assert.deepEqual(
      refused,
      range(31).map(() => 'code_taken'),
    );
  }),

  test('insert: refuses more than maxPending, and says which bound it is', async (store) => {
    const bounds = boundsOf({ maxPending: 4 });
    for (const index of range(4)) await store.insert(elevationOf(index, `root${index}`), bounds);
    await refuses(store, elevationOf(4, 'root4'), bounds, 'quota_exceeded', {
      quota: 'maxPending',
      max: 4,
    });
    await refuses(store, requestOf(5), bounds, 'quota_exceeded', { quota: 'maxPending' });
    assert.equal(await store.find({ id: elevationOf(4, 'root4').id }), undefined);
    await store.insert(elevationOf(4, 'root4'), boundsOf({ maxPending: 5 }));
  }),

  test('insert: lets those that elevate nothing fill half of maxPending, rounded down', async (store) => {
    const bounds = boundsOf({ maxPending: 5 });
    await store.insert(elevationOf(9, 'root'), bounds);
    for (const index of range(2)) await store.insert(requestOf(index), bounds);
    await refuses(store, requestOf(2), bounds, 'quota_exceeded', { quota: 'maxPending', max: 2 });
    for (const index of [3, 4]) await store.insert(elevationOf(index, 'root'), bounds);
    await refuses(store, elevationOf(5, 'root'), bounds, 'quota_exceeded', {
      quota: 'maxPending',
      max: 5,
    });
  }),

  test('insert: refuses more than maxOfRoot with the same root', async (store) => {
    const bounds = boundsOf({ maxOfRoot: 3 });
    for (const index of range(3)) await store.insert(elevationOf(index, 'root'), bounds);
    await refuses(store, elevationOf(3, 'root'), bounds, 'quota_exceeded', {
      quota: 'maxOfRoot',
      max: 3,
    });
    // Byte by byte, and by the first ancestor.
    for (const [index, root] of ['Root', 'roo', 'root0'].entries()) {
      await store.insert(elevationOf(10 + index, root), bounds);
    }
    await store.insert(requestOf(20), bounds);
    const elevates = [
      { id: idOf('other'), version: 1 },
      { id: idOf('root'), version: 1 },
    ];
    await store.insert(requestOf(21, { elevates }), bounds);
  }),

  test('insert: counts no request from the instant of its end on', async (store) => {
    const bounds = (ms: number) => boundsOf({ maxOfRoot: 1, maxPending: 2, liveAt: later(ms) });
    await store.insert(elevationOf(1, 'root', { expiresAt: later(1000) }), bounds(0));
    await store.insert(requestOf(2, { expiresAt: later(1000) }), bounds(0));
    const quota = { quota: 'maxOfRoot' };
    await refuses(store, elevationOf(3, 'root'), bounds(999), 'quota_exceeded', quota);
    await refuses(store, requestOf(4), bounds(999), 'quota_exceeded', { quota: 'maxPending' });
    await store.insert(elevationOf(3, 'root'), bounds(1000));
    await store.insert(requestOf(4), bounds(1000));
  }),

  test('insert: counts decided requests until they expire', async (store) => {
    const bounds = boundsOf({ maxOfRoot: 2 });
    for (const [index, state] of (['denied', 'redeemed'] as const).entries()) {
      const record = elevationOf(index, 'root');
      await store.insert(record, bounds);
      assert.equal(await store.replace({ ...record, version: 2, state }), true);
    }
    const quota = { quota: 'maxOfRoot' };
    await refuses(store, elevationOf(3, 'root'), bounds, 'quota_exceeded', quota);
    const record = { ...elevationOf(0, 'root'), version: 3, state: 'denied' } as const;
    assert.equal(await store.replace({ ...record, expiresAt: later(-1) }), true);
    await store.insert(elevationOf(3, 'root'), bounds);
    await refuses(store, elevationOf(4, 'root'), bounds, 'quota_exceeded', quota);
    // One that lives for longer counts for longer.
    const prolonged = { ...record, version: 4, expiresAt: later(2 * DAY) };
    assert.equal(await store.replace(prolonged), true);
    const next = boundsOf({ maxOfRoot: 1, liveAt: later(DAY + 1) });
    await refuses(store, elevationOf(5, 'root'), next, 'quota_exceeded', quota);
  }),

  test('insert: never stores more than maxOfRoot of many at the same time', async (store) => {
    const bounds = boundsOf({ maxOfRoot: 10 });
    const inserts = range(64).map((index) => store.insert(elevationOf(index, 'root'), bounds));
    assert.deepEqual(
      await refusalsOf(inserts),
      range(54).map(() => 'quota_exceeded'),
    );
    assert.equal(await countOf(store, 64, (index) => elevationOf(index, 'root')), 10);
  }),

  test('insert: never stores more than maxPending of many at the same time', async (store) => {
    const bounds = boundsOf({ maxPending: 31 });
    const recordOf = (index: number) =>
      index % 2 === 0 ? requestOf(index) : elevationOf(index, `root${index}`);
    const inserts = range(64).map((index) => store.insert(recordOf(index), bounds));
    assert.deepEqual(
      await refusalsOf(inserts),
      range(33).map(() => 'quota_exceeded'),
    );
    assert.equal(await countOf(store, 64, recordOf), 31);
  }),

  test('find: returns undefined for what is not there', async (store) => {
    await store.insert(requestOf(1), boundsOf());
    const { id, userCode } = requestOf(1);
    for (const other of [idOf('other'), '', `${id} `, id.toUpperCase(), userCode]) {
      assert.equal(await store.find({ id: other }), undefined);
    }
    for (const other of [requestOf(2).userCode, '', `${userCode} `, userCode.toLowerCase(), id]) {
      assert.equal(await store.find({ userCode: other }), undefined);
    }
  }),

  test('find: returns a copy', async (store) => {
    const record = fullRequest(1);
    await store.insert(record, boundsOf());
    const found = await store.find({ id: record.id });
    found?.expiresAt.setTime(0);
    found?.createdAt.setTime(0);
    (found as RequestRecord).digest.fill(0);
    await expectStored(store, record);
  }),

  test('find: returns an expired request', async (store) => {
    const record = requestOf(1, { expiresAt: past(0) });
    await store.insert(record, boundsOf());
    await expectStored(store, record);
  }),

  test('replace: stores what may change', async (store) => {
    const record = requestOf(1);
    await store.insert(record, boundsOf());
    const { client, purpose, address } = fullRequest(1);
    const next: RequestRecord = {
      ...record,
      version: 2,
      state: 'approved',
      scopes: ['GET:shop.example/orders'],
      ttlSeconds: 60,
      account: 'acme',
      by: 'ada',
      expiresAt: later(2 * DAY),
      ...{ client, purpose, address },
    };
    assert.equal(await store.replace(next), true);
    await expectStored(store, next);
    const { by: _, ...last } = { ...next, version: 3 };
    assert.equal(await store.replace(last), true);
    await expectStored(store, last);
  }),

  test('replace: changes only the version before', async (store) => {
    const record = requestOf(1);
    await store.insert(record, boundsOf());
    for (const version of [1, 3, 4]) {
      assert.equal(await store.replace({ ...record, version, state: 'denied' }), false);
    }
    await expectStored(store, record);
    assert.equal(await store.replace({ ...record, version: 2, state: 'denied' }), true);
    assert.equal(await store.replace({ ...record, version: 2, state: 'approved' }), false);
    await expectStored(store, { ...record, version: 2, state: 'denied' });
  }),

  test('replace: makes no request, and touches no other', async (store) => {
    const [record, other] = [requestOf(1), requestOf(2)];
    assert.equal(await store.replace({ ...record, version: 2 }), false);
    assert.equal(await store.replace({ ...record, version: 1 }), false);
    assert.equal(await store.find({ id: record.id }), undefined);
    await store.insert(record, boundsOf());
    await store.insert(other, boundsOf());
    assert.equal(await store.replace({ ...record, version: 2, state: 'denied' }), true);
    await expectStored(store, other);
  }),

  test('replace: lets one of many at the same time win', async (store) => {
    const record = requestOf(1);
    await store.insert(record, boundsOf());
    for (const version of [2, 3, 4]) {
      const calls = range(64).map((index) =>
        store.replace({ ...record, version, by: `person ${index}` }),
      );
      const winners = (await Promise.all(calls)).flatMap((won, index) => (won ? [index] : []));
      assert.equal(winners.length, 1);
      await expectStored(store, { ...record, version, by: `person ${winners[0]}` });
    }
  }),

  test('replace: keeps a copy', async (store) => {
    const record = fullRequest(1);
    await store.insert(record, boundsOf());
    const next = { ...fullRequest(1), version: 8, scopes: [...record.scopes] };
    assert.equal(await store.replace(next), true);
    next.scopes.length = 0;
    next.digest.fill(0);
    next.expiresAt.setTime(0);
    await expectStored(store, { ...record, version: 8 });
  }),

  test('purge: removes only what ended before the instant', async (store) => {
    const ends = [-1, 0, 1].map((ms) => past(ms));
    for (const [index, expiresAt] of ends.entries()) {
      await store.insert(requestOf(index, { expiresAt }), boundsOf());
    }
    const removed = await store.purge(past(0), 10);
    // A store that forgets by itself need not do it here.
    assert.ok(removed === 0 || removed === 1, `${removed} were removed`);
    assert.equal(await countOf(store, 3, requestOf), 3 - removed);
    assert.equal((await store.find({ id: requestOf(0).id })) === undefined, removed === 1);
  }),

  test('purge: keeps what has not ended by the clock of the store', async (store) => {
    await store.insert(requestOf(1, { expiresAt: FAR_FUTURE }), boundsOf());
    assert.equal(await store.purge(new Date(FAR_FUTURE.getTime() + 1), 10), 0);
    await expectStored(store, requestOf(1, { expiresAt: FAR_FUTURE }));
  }),

  test('purge: keeps what a later call has prolonged', async (store) => {
    const record = requestOf(1, { expiresAt: past(0) });
    await store.insert(record, boundsOf());
    const next = { ...record, version: 2, expiresAt: past(9) };
    assert.equal(await store.replace(next), true);
    assert.equal(await store.purge(past(9), 10), 0);
    await expectStored(store, next);
  }),

  test('purge: removes at most limit requests at a time, and they free their codes', async (store) => {
    for (const index of range(5)) {
      await store.insert(elevationOf(index, 'root', { expiresAt: past(index) }), boundsOf());
    }
    const steps: number[] = [];
    for (let step = 0; step < 4; step++) steps.push(await store.purge(past(9), 2));
    const isByItself = steps.every((count) => count === 0);
    assert.deepEqual(steps, isByItself ? [0, 0, 0, 0] : [2, 2, 1, 0]);
    if (isByItself) return;
    for (const index of range(5)) {
      await store.insert(elevationOf(index, 'root'), boundsOf({ maxOfRoot: 5 }));
      await expectStored(store, elevationOf(index, 'root'));
    }
  }),
];

const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';

/** A code of its own for each number. */
function codeOf(seed: number): string {
  const letter = (place: number) => LETTERS.charAt(Math.floor(seed / 20 ** place) % 20);
  return range(8).map(letter).reverse().join('');
}

function requestOf(seed: number, fields: Partial<RequestRecord> = {}): RequestRecord {
  return {
    id: idOf(`request${seed}`),
    userCode: codeOf(seed),
    digest: bytesOf(seed),
    version: 1,
    state: 'pending',
    client: 'my tool',
    scopes: ['GET:shop.example/orders', 'POST:shop.example/orders'],
    ttlSeconds: 3600,
    createdAt: later(0),
    expiresAt: later(DAY),
    ...fields,
  };
}

/** With every member. */
function fullRequest(seed: number): RequestRecord {
  return requestOf(seed, {
    version: 7,
    state: 'approved',
    client: 'c'.repeat(100),
    address: '2001:db8::1',
    purpose: 'p'.repeat(200),
    ttlSeconds: 31_536_000,
    account: '\u00e9'.repeat(127),
    by: 'b'.repeat(255),
    elevates: range(8).map((index) => ({ id: idOf(`token${index}`), version: 1 + index })),
    createdAt: later(123),
    expiresAt: later(DAY + 789),
  });
}

function elevationOf(
  seed: number,
  root: string,
  fields: Partial<RequestRecord> = {},
): RequestRecord {
  const elevates = [
    { id: idOf(root), version: 1 },
    { id: idOf('leaf'), version: 4 },
  ];
  return requestOf(seed, { account: 'acme', elevates, ...fields });
}

function boundsOf(fields: Partial<RequestBounds> = {}): RequestBounds {
  return { maxPending: 1000, maxOfRoot: 1000, liveAt: later(0), ...fields };
}

/** By both of its keys. */
async function expectStored(store: RequestStore, record: RequestRecord): Promise<void> {
  const { id, userCode } = record;
  for (const key of [{ id }, { userCode }]) {
    const found = await store.find(key);
    assert.deepEqual(found && definedIn(found), definedIn(record));
  }
}

/** An absent member may be undefined. */
function definedIn(record: RequestRecord): object {
  return {
    ...Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)),
    digest: [...record.digest],
  };
}

async function refuses(
  store: RequestStore,
  record: RequestRecord,
  bounds: RequestBounds,
  code: string,
  details: { readonly quota?: string; readonly max?: number } = {},
): Promise<void> {
  await assert.rejects(store.insert(record, bounds), (error: Record<string, unknown>) => {
    const { quota, max } = (error['details'] ?? {}) as typeof details;
    assert.equal(error['name'], 'TokenError');
    assert.equal(error['code'], code);
    assert.equal(quota, details.quota);
    if (details.max !== undefined) assert.equal(max, details.max);
    return true;
  });
}

/** The codes of the calls that were refused. */
async function refusalsOf(calls: readonly Promise<void>[]): Promise<unknown[]> {
  const settled = await Promise.allSettled(calls);
  return settled.flatMap((each) => (each.status === 'rejected' ? [each.reason?.code] : []));
}

/** How many of some requests are stored. */
async function countOf(
  store: RequestStore,
  count: number,
  recordOf: (seed: number) => RequestRecord,
): Promise<number> {
  const finding = range(count).map((seed) => store.find({ id: recordOf(seed).id }));
  return (await Promise.all(finding)).filter((found) => found !== undefined).length;
}
