import assert from 'node:assert/strict';
import { type PageQuery, positionOf, type TokenStore } from '../ports/token-store.ts';
import {
  type JsonObject,
  LISTED_STATES,
  type ListedState,
  type TokenId,
  type TokenRecord,
} from '../token/record.ts';
import { firstRequested, revoked } from '../token/revoked.ts';
import { contractCase } from './contract-case.ts';
import {
  ALIKE_ACCOUNTS,
  assertKept,
  assertRevoked,
  assertSame,
  assertSameSet,
  assertTaken,
  bytesOf,
  bytesOfAll,
  countOf,
  DAY,
  deepFreeze,
  FAR_FUTURE,
  facts,
  findOne,
  fullRecord,
  hasClock,
  idOf,
  inOrder,
  insertAll,
  insertOne,
  LONG_AGO,
  later,
  longScopes,
  newestFirst,
  newRecord,
  ofState,
  pagedIds,
  pageOf,
  pruneOf,
  purgeOf,
  range,
  recordsOfStates,
  recordWithLists,
  scanAll,
  scopesOfBytes,
  spoil,
  walk,
} from './records.ts';
import {
  drawCall,
  outcomeOf,
  RANDOM_LABELS,
  ReferenceStore,
  type StoreCall,
  seeded,
} from './reference-store.ts';

/** One promise of a {@link TokenStore}, for any test runner. */
export interface StoreContractCase {
  /** The verb and its promise: `insert: keeps a record with every field`. */
  readonly name: string;
  /** Opens a store, checks the promise and closes the store. Rejects if the promise is broken. */
  run(open: () => TokenStore | Promise<TokenStore>): Promise<void>;
}

const test = contractCase<TokenStore>;

type Five<Item> = [Item, Item, Item, Item, Item];

/**
 * All promises of a token store, as a list of cases for any test runner.
 *
 * A store passes when no case rejects and none is skipped. `open` must return an empty store each
 * time. No case reads the real time or waits.
 *
 * @example
 * describe('my store', () => {
 *   it.each(storeContract)('$name', (promise) => promise.run(() => new MyStore()));
 * });
 */
export const storeContract: readonly StoreContractCase[] = [
  test('insert: stores every field of a record', async (store) => {
    const record = await insertOne(store, fullRecord('full'));
    await assertKept(store, [record]);
  }),

  test('insert: adds no optional field that a record does not have', async (store) => {
    const record = await insertOne(store, newRecord('bare'));
    await assertKept(store, [record]);
  }),

  test('insert: stores each optional field without the others', async (store) => {
    const full = fullRecord('full');
    const optional = [
      { box: full.box },
      { name: full.name },
      { metadata: full.metadata },
      { revokedAt: full.revokedAt },
      { previousDigest: full.previousDigest, previousUntil: full.previousUntil },
      { suspendedAt: full.suspendedAt },
      { scopesChangedAt: full.scopesChangedAt },
      { rotatedAt: full.rotatedAt },
      { pending: full.pending },
      { pending: { prefix: 'acme', kid: 'k1', digest: bytesOf(211), graceSeconds: 0 } },
      { limits: full.limits },
      { limits: { addresses: ['2001:db8::1'] } },
      { limits: { uses: 1 } },
      { limits: { rate: { uses: 1, seconds: 1 } } },
      { ancestors: full.ancestors },
      { ancestors: [idOf('root')] },
      { format: full.format },
      { origin: full.origin },
      { origin: { createdBy: 'g' } },
      { origin: { purpose: 'p' } },
    ];
    const records = optional.map((part, index) => newRecord(`part${index}`, part));
    await insertAll(store, records);
    await assertKept(store, records);
  }),

  test('insert: stores times to the millisecond', async (store) => {
    const records = [1, 10, 123, 999].map((ms) =>
      newRecord(`ms${ms}`, {
        createdAt: later(ms),
        expiresAt: later(DAY + ms),
        revokedAt: later(2 * DAY + ms),
        previousDigest: bytesOf(3),
        previousUntil: later(3 * DAY + ms),
        suspendedAt: later(4 * DAY + ms),
        scopesChangedAt: later(5 * DAY + ms),
        rotatedAt: later(6 * DAY + ms),
      }),
    );
    await insertAll(store, records);
    await assertKept(store, records);
  }),

  test('insert: stores any bytes', async (store) => {
    const records = [0, 127, 128, 255].map((byte) =>
      newRecord(`byte${byte}`, {
        digest: new Uint8Array(32).fill(byte),
        box: Uint8Array.from({ length: 300 }, (_, index) => index + byte),
      }),
    );
    await insertAll(store, records);
    await assertKept(store, records);
  }),

  test('insert: rejects a taken id and leaves the first record untouched', async (store) => {
    const first = await insertOne(store, newRecord('taken', { name: 'first' }));
    await assertTaken(store, fullRecord('taken'));
    await assertTaken(store, newRecord('taken', { account: 'other' }));
    await assertKept(store, [first]);
    assert.deepEqual(await store.page(pageOf('other')), []);
  }),

  test('insert: rejects the id of a revoked record and does not revive it', async (store) => {
    const first = await insertOne(store, newRecord('taken'));
    await store.revoke(first.id, first.account, later(1));
    await assertTaken(store, newRecord('taken', { name: 'second' }));
    await assertRevoked(store, [first], later(1));
  }),

  test('insert: lets exactly one of 100 concurrent calls have an id', async (store) => {
    const rivals = range(100).map((index) => newRecord('one', { name: `rival ${index}` }));
    const outcomes = await Promise.allSettled(rivals.map((rival) => store.insert(rival)));
    const winners = rivals.filter((_, index) => outcomes[index]?.status === 'fulfilled');
    assert.equal(winners.length, 1);
    await assertKept(store, winners);
  }),

  test('count: counts live and ended records, and suspended ones as live', async (store) => {
    assert.deepEqual(await countOf(store), { live: 0, ended: 0 });
    await insertAll(store, [
      newRecord('active', { expiresAt: later(1) }),
      newRecord('suspended', { suspendedAt: later(0) }),
      newRecord('born', { revokedAt: later(5 * DAY) }),
      newRecord('expired', { expiresAt: LONG_AGO }),
      newRecord('expiring', { expiresAt: later(0) }),
      newRecord('both', { expiresAt: LONG_AGO, revokedAt: LONG_AGO }),
    ]);
    assert.deepEqual(await countOf(store), { live: 2, ended: 4 });
    assert.deepEqual(await countOf(store, { liveAt: later(1) }), { live: 1, ended: 5 });
    assert.deepEqual(await countOf(store, { liveAt: later(DAY) }), { live: 0, ended: 6 });
    assert.deepEqual(await countOf(store, { liveAt: later(-1) }), { live: 3, ended: 3 });
  }),

  test('count: counts the records of the same account only', async (store) => {
    const records = ALIKE_ACCOUNTS.map((account, index) => newRecord(`n${index}`, { account }));
    const ended = records.map((record, index) => ({
      ...record,
      id: idOf(`e${index}`),
      expiresAt: LONG_AGO,
    }));
    await insertAll(store, [...records, ...ended]);
    for (const account of ALIKE_ACCOUNTS) {
      assert.deepEqual(await countOf(store, { account }), { live: 1, ended: 1 });
    }
    assert.deepEqual(await countOf(store, { account: 'nobody' }), { live: 0, ended: 0 });
  }),

  test('count: ends each count at most', async (store) => {
    const records = recordsOfStates();
    await insertAll(store, records);
    const [live, ended] = [12, 12];
    for (const most of [
      { live: 1, ended: 1 },
      { live: 1, ended: 11 },
      { live: 11, ended: 2 },
      { live: 12, ended: 12 },
      { live: 13, ended: 1 },
    ]) {
      const expected = { live: Math.min(live, most.live), ended: Math.min(ended, most.ended) };
      assert.deepEqual(await countOf(store, { most }), expected);
    }
  }),

  test('count: leaves derived records to their root, at any depth', async (store) => {
    const [root, other] = [idOf('root'), idOf('other')];
    await insertAll(store, [
      newRecord('root'),
      newRecord('other'),
      newRecord('child', { ancestors: [root] }),
      newRecord('grandchild', { ancestors: [root, idOf('child')] }),
      newRecord('ended', { ancestors: [root, idOf('child')], expiresAt: LONG_AGO }),
      newRecord('second', { ancestors: [other] }),
      newRecord('theirs', { ancestors: [root], account: 'Acme' }),
    ]);
    assert.deepEqual(await countOf(store), { live: 2, ended: 0 });
    assert.deepEqual(await countOf(store, { root }), { live: 2, ended: 1 });
    assert.deepEqual(await countOf(store, { root, most: { live: 1 } }), { live: 1, ended: 1 });
    assert.deepEqual(await countOf(store, { root: other }), { live: 1, ended: 0 });
    for (const none of [idOf('child'), idOf('ROOT'), idOf('nobody')]) {
      assert.deepEqual(await countOf(store, { root: none }), { live: 0, ended: 0 });
    }
    assert.deepEqual(await countOf(store, { root, account: 'Acme' }), { live: 1, ended: 0 });
  }),

  test('count: follows changes', async (store) => {
    const [one, two, three] = ['one', 'two', 'three'].map((label) => newRecord(label));
    const child = newRecord('child', { ancestors: [idOf('one')] });
    await insertAll(store, [one, two, three, child] as TokenRecord[]);
    await store.replace({ ...(one as TokenRecord), version: 2, expiresAt: LONG_AGO });
    assert.deepEqual(await countOf(store), { live: 2, ended: 1 });
    await store.replace({ ...(one as TokenRecord), version: 3 });
    assert.deepEqual(await countOf(store), { live: 3, ended: 0 });
    await store.revoke(idOf('two'), 'acme', LONG_AGO);
    assert.deepEqual(await countOf(store), { live: 2, ended: 1 });
    assert.deepEqual(await countOf(store, { root: idOf('one') }), { live: 1, ended: 0 });
    assert.equal(await store.revokeAll('acme', LONG_AGO, 1000), 3);
    assert.deepEqual(await countOf(store), { live: 0, ended: 3 });
    assert.deepEqual(await countOf(store, { root: idOf('one') }), { live: 0, ended: 1 });
    assert.equal(await purgeOf(store, later(0), 1000), 4);
    assert.deepEqual(await countOf(store), { live: 0, ended: 0 });
    assert.deepEqual(await countOf(store, { root: idOf('one') }), { live: 0, ended: 0 });
  }),

  test('count: works with hundreds of records', async (store) => {
    const records = range(300).map((index) => newRecord(`n${index}`));
    await Promise.all(records.map((record) => store.insert(record)));
    await Promise.all(
      records.slice(0, 120).map((record) => store.revoke(record.id, 'acme', later(1))),
    );
    assert.deepEqual(await countOf(store), { live: 180, ended: 120 });
    const most = { live: 150, ended: 110 };
    assert.deepEqual(await countOf(store, { most }), most);
  }),

  test('copies: a later change of an inserted record changes nothing', async (store) => {
    const given = await insertOne(store, fullRecord('given'));
    spoil(given);
    await assertKept(store, [fullRecord('given')]);
  }),

  test('copies: a later change of a replacing record changes nothing', async (store) => {
    await store.insert(newRecord('given'));
    const next = fullRecord('given', { version: 2 });
    await store.replace(next);
    spoil(next);
    await assertKept(store, [fullRecord('given', { version: 2 })]);
  }),

  test('copies: a later change of the date of a revocation changes nothing', async (store) => {
    const records = [newRecord('one'), newRecord('two'), newRecord('three')];
    await insertAll(store, records);
    const [at, atAll] = [later(1), later(1)];
    await store.revoke(idOf('one'), 'acme', at);
    await store.revokeAll('acme', atAll, 1000);
    at.setTime(0);
    atAll.setTime(0);
    await assertRevoked(store, records, later(1));
  }),

  test('copies: a change of an answer of find changes nothing', async (store) => {
    const record = await insertOne(store, fullRecord('given'));
    spoil(await findOne(store, record.id));
    await assertKept(store, [record]);
    for (const found of await store.find([record.id, idOf('absent'), record.id])) {
      if (found !== undefined) spoil(found);
    }
    await assertKept(store, [record]);
  }),

  test('copies: a change of a page changes nothing', async (store) => {
    const record = await insertOne(store, fullRecord('given', { revokedAt: undefined }));
    const all = pageOf('acme', { state: 'all' });
    for (const found of await store.page(all)) spoil(found);
    await assertKept(store, [record]);
    assertSame(await store.page(all), [record]);
  }),

  test('copies: records of one answer share nothing mutable', async (store) => {
    const record = await insertOne(store, fullRecord('given'));
    const [first, second] = await store.find([record.id, record.id]);
    spoil(first as TokenRecord);
    assertSame([second], [record]);
  }),

  test('copies: dates of records revoked together are not shared', async (store) => {
    const records = [newRecord('one'), newRecord('two')];
    await insertAll(store, records);
    await store.revokeAll('acme', later(1), 1000);
    spoil(await findOne(store, idOf('one')));
    await assertRevoked(store, records, later(1));
  }),

  test('arguments: no method changes its arguments', async (store) => {
    const record = fullRecord('given', { revokedAt: undefined });
    const next = fullRecord('given', { revokedAt: undefined, version: 2 });
    const [ids, at] = [[record.id, idOf('absent'), record.id], later(1)];
    const query = pageOf('acme', { after: { at: later(1), id: idOf('z') } });
    const before = JSON.stringify([facts(record), facts(next), ids, at, query]);
    const holder = { account: 'acme', root: idOf('root') };
    const count = { ...holder, liveAt: at, most: { live: 2, ended: 2 } };
    const [purge, prune] = [
      { now: at, minAgeMs: 1, limit: 1 },
      { ...holder, now: at, limit: 1 },
    ];
    const queries = [count, purge, prune];
    const asked = JSON.stringify(queries);
    await store.insert(record);
    await store.find(ids);
    await store.page(query);
    await store.count(count);
    await store.purge(purge);
    await store.prune(prune);
    assert.equal(JSON.stringify(queries), asked);
    await store.replace(next);
    await store.revoke(record.id, 'acme', at, 2);
    await store.revokeAll('acme', at, 1000);
    await purgeOf(store, at, 10);
    assert.equal(JSON.stringify([facts(record), facts(next), ids, at, query]), before);
  }),

  test('arguments: frozen ones are accepted', async (store) => {
    const record = deepFreeze(fullRecord('given', { revokedAt: undefined }));
    const next = deepFreeze(fullRecord('given', { revokedAt: undefined, version: 2 }));
    await store.insert(record);
    await store.count(deepFreeze({ ...pageOf('acme'), most: { live: 1, ended: 1 } }));
    await store.purge(Object.freeze({ now: later(0), minAgeMs: 0, limit: 1 }));
    await store.prune(Object.freeze({ account: 'acme', now: later(0), limit: 1 }));
    assert.equal(await store.replace(next), true);
    assertSame(await store.find(Object.freeze([record.id])), [next]);
    const all = Object.freeze(pageOf('acme', { state: 'all' }));
    assertSame(await store.page(all), [next]);
  }),

  test('find: answers an empty list with an empty list', async (store) => {
    await store.insert(newRecord('one'));
    assert.deepEqual(await store.find([]), []);
  }),

  test('find: answers in the order of the ids, with duplicates and gaps', async (store) => {
    const records = ['c', 'a', 'b'].map((label) => newRecord(label));
    await insertAll(store, records);
    const [c, a, b] = records;
    const asked = ['b', 'absent', 'c', 'b', 'a', 'a', 'absent', 'c'].map(idOf);
    assertSame(await store.find(asked), [b, undefined, c, b, a, a, undefined, c]);
    assertSame(await store.find([idOf('absent')]), [undefined]);
    assertSame(await store.find([idOf('absent'), idOf('gone')]), [undefined, undefined]);
  }),

  test('find: answers a thousand ids in one call', async (store) => {
    const records = range(20).map((index) => newRecord(`n${index}`));
    await insertAll(store, records);
    const asked = range(1000).map((index) => (index * 7) % 25);
    assertSame(
      await store.find(asked.map((index) => idOf(`n${index}`))),
      asked.map((index) => records[index]),
    );
  }),

  test('find: returns revoked and expired records, too', async (store) => {
    const records = [
      newRecord('revoked', { revokedAt: later(1) }),
      newRecord('expired', { createdAt: LONG_AGO, expiresAt: LONG_AGO }),
    ];
    await insertAll(store, records);
    await assertKept(store, records);
  }),

  test('find: compares the case of ids', async (store) => {
    const records = ['abc', 'aBc', 'ABC', 'Abc'].map((label) => newRecord(label, { name: label }));
    await insertAll(store, records);
    await assertKept(store, records);
  }),

  test('find: does not find an id that only resembles a stored one', async (store) => {
    const { id } = newRecord('abce');
    await store.insert(newRecord('abce'));
    const alike = [
      `${id} `,
      ` ${id}`,
      id.toUpperCase(),
      id.replace('e', '\u00e9'),
      id.replace('e', 'e\u0301'),
      id.replace('a', '\uff41'),
      id.slice(0, -1),
      `${id}0`,
      id.replace('b', '_'),
      '%',
      '',
    ] as TokenId[];
    for (const one of alike) assert.deepEqual(await store.find([one]), [undefined]);
    assert.deepEqual(
      await store.find(alike),
      alike.map(() => undefined),
    );
  }),

  test('accounts: those that only resemble each other are different', async (store) => {
    const records = ALIKE_ACCOUNTS.map((account, index) => newRecord(`n${index}`, { account }));
    await insertAll(store, records);
    await assertKept(store, records);
    for (const record of records) {
      assertSame(await store.page(pageOf(record.account)), [record]);
    }
  }),

  test('accounts: no method confuses one with another that resembles it', async (store) => {
    const record = await insertOne(store, newRecord('one'));
    for (const account of ALIKE_ACCOUNTS.slice(1)) {
      assert.equal(await store.replace({ ...record, account, version: 2 }), false);
      assert.equal(await store.revoke(record.id, account, later(1)), false);
      assert.equal(await store.revokeAll(account, later(1), 1000), 0);
      assert.deepEqual(await store.page(pageOf(account)), []);
    }
    await assertKept(store, [record]);
  }),

  test('accounts: may have 255 bytes, all of which are compared', async (store) => {
    const accounts = [
      `${'x'.repeat(254)}y`,
      `${'x'.repeat(254)}z`,
      `${'\u{1f600}'.repeat(63)}abc`,
      `${'\u{1f600}'.repeat(63)}abd`,
    ];
    const records = accounts.map((account, index) => newRecord(`n${index}`, { account }));
    await insertAll(store, records);
    await assertKept(store, records);
    for (const record of records) assertSame(await store.page(pageOf(record.account)), [record]);
  }),

  test('scopes: those that only resemble each other are different, and keep their order', async (store) => {
    const scopes = [
      'GET:shop.example/a',
      'GET:shop.example/A',
      'GET:shop.example/a ',
      'GET:shop.example/\u00e9',
      'GET:shop.example/e\u0301',
      'GET:shop.example/%C3%A9',
      'GET:shop.example/a"b\\c,d\'e',
    ];
    const records = [
      newRecord('all', { scopes, requested: [...scopes].reverse() }),
      ...scopes.map((scope, index) => newRecord(`n${index}`, { scopes: [scope] })),
    ];
    await insertAll(store, records);
    await assertKept(store, records);
  }),

  test('scopes: there may be 4096', async (store) => {
    const scopes = range(4096).map((index) => `GET:shop.example/catalog/${index}/items/*`);
    const record = await insertOne(store, newRecord('many', { scopes, requested: scopes }));
    await assertKept(store, [record]);
    const next = { ...record, version: 2, scopes: scopes.slice(1) };
    assert.equal(await store.replace(next), true);
    await assertKept(store, [next]);
  }),

  test('names: quotes, emoji and SQL are only text', async (store) => {
    const names = [
      '',
      ' ',
      `Robert'); DROP TABLE tokens;--`,
      `"double" 'single' \`back\` \\ \\' %_ ? $1 :a @b {c} \${d}`,
      '\u{1f469}\u200d\u{1f469}\u200d\u{1f467} \u00e9 e\u0301 \u202eright',
      'line\nfeed\ttab',
      'null',
      '\u{1f600}'.repeat(100),
    ];
    const records = names.map((name, index) => newRecord(`n${index}`, { name }));
    await insertAll(store, records);
    await assertKept(store, records);
  }),

  test('metadata: any JSON object is returned unchanged', async (store) => {
    const all: JsonObject[] = [
      {},
      { a: [1, [2, { b: null }], true, false, ''], 'e\u0301': '\u00e9', '': {} },
      { numbers: [0, -1, 0.1, 1e21, 1e-7, 9007199254740991, -1.7976931348623157e308] },
      { text: `'"\\\n\u{1f600}\u2028`, zero: 'a\u0000b', half: '\ud800' },
      { $where: '1', 'a.b': 1, constructor: 'x', toString: null },
    ];
    const records = all.map((metadata, index) => newRecord(`n${index}`, { metadata }));
    await insertAll(store, records);
    await assertKept(store, records);
  }),

  test('scopes: a long list that was read before is read again after a change', async (store) => {
    const record = newRecord('long', { scopes: longScopes('a'), requested: longScopes('b') });
    const next = { ...record, scopes: record.requested, requested: record.scopes, version: 2 };
    await store.insert(record);
    for (const _ of range(3)) await assertKept(store, [record]);
    assert.equal(await store.replace(next), true);
    for (const _ of range(3)) await assertKept(store, [next]);
  }),

  test('scopes: a long list is removed with its record, also if the id is used again', async (store) => {
    const record = newRecord('long', { scopes: longScopes('a'), requested: longScopes('b') });
    const again = { ...record, scopes: record.requested, requested: record.scopes };
    await store.insert(record);
    for (const _ of range(3)) await assertKept(store, [record]);
    assert.equal(await purgeOf(store, later(2 * DAY), 10), 1);
    assert.deepEqual(await store.find([record.id]), [undefined]);
    await store.insert(again);
    for (const _ of range(3)) await assertKept(store, [again]);
  }),

  test('metadata: may have 4096 bytes', async (store) => {
    const frame = JSON.stringify({ text: '' }).length;
    const record = newRecord('big', { metadata: { text: '\u00e9'.repeat((4096 - frame) / 2) } });
    await store.insert(record);
    await assertKept(store, [record]);
  }),

  test('metadata: a member named __proto__ is a member like any other', async (store) => {
    const metadata: JsonObject = JSON.parse('{"__proto__":{"admin":true},"a":{"__proto__":1}}');
    const record = await insertOne(store, newRecord('proto', { metadata }));
    await assertKept(store, [record]);
    const found = (await findOne(store, record.id)).metadata as JsonObject;
    assert.equal(found['admin'], undefined);
    assert.deepEqual(Object.keys(found).sort(), ['__proto__', 'a']);
  }),

  test('page: lists the newest first', async (store) => {
    const records = [3, 1, 4, 0, 2].map((ms) => newRecord(`n${ms}`, { createdAt: later(ms) }));
    await insertAll(store, records);
    assert.deepEqual(
      await pagedIds(store, pageOf('acme')),
      ['n4', 'n3', 'n2', 'n1', 'n0'].map(idOf),
    );
  }),

  test('page: lists records of one instant by id, descending by code unit', async (store) => {
    const labels = ['a', 'Z', '9', 'z', 'A', '0', 'aB', 'ab', 'aA'];
    await insertAll(
      store,
      labels.map((label) => newRecord(label)),
    );
    const expected = labels.map(idOf).sort().reverse();
    assert.deepEqual(await pagedIds(store, pageOf('acme')), expected);
    assert.deepEqual(await walk(store, pageOf('acme', { limit: 1 })), expected);
    assert.deepEqual(await walk(store, pageOf('acme', { limit: 2 })), expected);
  }),

  test('page: returns at most limit records, and all of them page by page', async (store) => {
    const records = range(30).map((index) =>
      newRecord(`n${index}`, { createdAt: later(Math.floor(index / 4)) }),
    );
    await insertAll(store, records);
    const expected = newestFirst(records).map((record) => record.id);
    for (const limit of [1, 29, 30, 31, 1000]) {
      const found = await pagedIds(store, pageOf('acme', { limit }));
      assert.deepEqual(found, expected.slice(0, limit));
    }
    assert.deepEqual(await walk(store, pageOf('acme', { limit: 7 })), expected);
  }),

  test('page: returns whole records', async (store) => {
    const records = [fullRecord('full', { revokedAt: undefined }), newRecord('bare')];
    await insertAll(store, records);
    assertSame(await store.page(pageOf('acme', { state: 'all' })), newestFirst(records));
  }),

  test('page: is empty after the last record and for an unknown account', async (store) => {
    const record = await insertOne(store, newRecord('one'));
    assert.deepEqual(await store.page(pageOf('acme', { after: positionOf(record) })), []);
    assert.deepEqual(await store.page(pageOf('nobody')), []);
  }),

  test('page: goes on after any position, to the millisecond, even without a record there', async (store) => {
    const records = range(4).map((ms) => newRecord(`n${ms}`, { createdAt: later(ms) }));
    await insertAll(store, records);
    const after = (ms: number, label: string): Promise<TokenId[]> =>
      pagedIds(store, pageOf('acme', { after: { at: later(ms), id: idOf(label) } }));
    assert.deepEqual(await after(2, 'n2'), ['n1', 'n0'].map(idOf));
    assert.deepEqual(await after(2, 'n3'), ['n2', 'n1', 'n0'].map(idOf));
    assert.deepEqual(await after(2, 'n1'), ['n1', 'n0'].map(idOf));
    assert.deepEqual(await after(9, 'x'), ['n3', 'n2', 'n1', 'n0'].map(idOf));
    assert.deepEqual(await after(-1, 'x'), []);
  }),

  test('page: neither repeats nor skips records while others come and go', async (store) => {
    const records = range(8).map((index) =>
      newRecord(`n${index}`, { createdAt: later(10 * index) }),
    );
    await insertAll(store, records);
    const first = await store.page(pageOf('acme', { limit: 3 }));
    const after = positionOf(first.at(-1) as TokenRecord);
    assert.equal(after.id, idOf('n5'));

    // Above the position more records come than go, so a page by offset would repeat some.
    for (const ms of [100, 101, 102, 103, 104]) {
      await store.insert(newRecord(`newer${ms}`, { createdAt: later(ms) }));
    }
    await store.insert(newRecord('between', { createdAt: later(25) }));
    await store.revoke(idOf('n7'), 'acme', LONG_AGO);
    await store.revoke(idOf('n5'), 'acme', LONG_AGO);
    await store.revoke(idOf('n4'), 'acme', later(1));
    await purgeOf(store, later(0), 10);

    const rest = await walk(store, pageOf('acme', { limit: 3, after }));
    assert.deepEqual(rest, ['n3', 'between', 'n2', 'n1', 'n0'].map(idOf));
  }),

  test('page: leaves revoked records out', async (store) => {
    const records = [
      newRecord('open'),
      newRecord('one'),
      newRecord('all', { account: 'other' }),
      newRecord('born', { revokedAt: later(1) }),
    ];
    await insertAll(store, records);
    await store.revoke(idOf('one'), 'acme', later(5 * DAY));
    await store.revokeAll('other', later(5 * DAY), 1000);
    assert.deepEqual(await pagedIds(store, pageOf('acme')), [idOf('open')]);
    assert.deepEqual(await pagedIds(store, pageOf('other')), []);
  }),

  test('page: is full although records are left out', async (store) => {
    const records = range(12).map((index) =>
      newRecord(`n${index}`, {
        createdAt: later(index),
        ...(index % 3 === 1 && { revokedAt: later(1) }),
        ...(index % 3 === 2 && { expiresAt: LONG_AGO }),
      }),
    );
    await insertAll(store, records);
    const found = await pagedIds(store, pageOf('acme', { limit: 3, liveAt: later(0) }));
    assert.deepEqual(found, ['n9', 'n6', 'n3'].map(idOf));
  }),

  test('page: lists each state alone, and all of them together', async (store) => {
    const records = recordsOfStates();
    await insertAll(store, [...records, newRecord('theirs', { account: 'other' })]);
    for (const state of [undefined, ...LISTED_STATES]) {
      const listed = newestFirst(ofState(records, state)).map(({ id }) => id);
      assert.ok(listed.length >= 4, state);
      for (const limit of [1, 3, 1000]) {
        assert.deepEqual(await walk(store, pageOf('acme', { state, limit })), listed, state);
      }
    }
    assertSame(await store.page(pageOf('acme', { state: 'all' })), newestFirst(records));
  }),

  test('page: with maxBytes, lists a state page by page', async (store) => {
    const records = recordsOfStates().map((record) => ({ ...record, scopes: longScopes('a') }));
    await insertAll(store, records);
    for (const state of LISTED_STATES) {
      for (const order of ['created', 'expire'] as const) {
        const whole = await walk(store, pageOf('acme', { state, order }));
        assert.ok(whole.length >= 4);
        for (const maxBytes of [1, 15_000, 1_000_000]) {
          const query = pageOf('acme', { state, order, maxBytes });
          assert.deepEqual(await walk(store, query), whole, `${state} by ${order}`);
        }
      }
    }
  }),

  test('page: by expiry, lists the soonest first, and those of one instant by id', async (store) => {
    const labels = ['B', 'a', 'Z', 'b', '0', 'A', 'z'];
    const records = [
      newRecord('late', { expiresAt: later(900) }),
      ...labels.map((label, index) =>
        newRecord(label, { createdAt: later(index), expiresAt: later(500) }),
      ),
      newRecord('soon', { createdAt: later(9), expiresAt: later(499) }),
    ];
    await insertAll(store, [...records, newRecord('theirs', { account: 'Acme' })]);
    const tied = labels.map(idOf).sort((a, b) => (a < b ? -1 : 1));
    const expected = [idOf('soon'), ...tied, idOf('late')];
    const byExpiry = pageOf('acme', { order: 'expire' });
    assert.deepEqual(await pagedIds(store, byExpiry), expected);
    for (const limit of [1, 2, 5]) {
      assert.deepEqual(await walk(store, { ...byExpiry, limit }), expected);
    }
    assertSame(await store.page(byExpiry), inOrder(records, 'expire'));
    assert.deepEqual(await store.page(pageOf('nobody', { order: 'expire' })), []);
  }),

  test('page: by expiry, goes on after any position, even without a record there', async (store) => {
    const records = range(4).map((ms) => newRecord(`n${ms}`, { expiresAt: later(10 + ms) }));
    await insertAll(store, records);
    const after = (ms: number, label: string, state?: ListedState) =>
      pagedIds(
        store,
        pageOf('acme', { order: 'expire', state, after: { at: later(ms), id: idOf(label) } }),
      );
    assert.deepEqual(await after(11, 'n0'), ['n1', 'n2', 'n3'].map(idOf));
    assert.deepEqual(await after(11, 'n1'), ['n2', 'n3'].map(idOf));
    assert.deepEqual(await after(11, 'x'), ['n2', 'n3'].map(idOf));
    assert.deepEqual(await after(-5, 'x'), ['n0', 'n1', 'n2', 'n3'].map(idOf));
    assert.deepEqual(await after(-5, 'x', 'all'), ['n0', 'n1', 'n2', 'n3'].map(idOf));
    assert.deepEqual(await after(13, 'x'), []);
    assert.deepEqual(await after(11, 'x', 'expired'), []);
  }),

  test('page: by expiry, neither repeats nor skips records while others come and go', async (store) => {
    const records = range(8).map((index) =>
      newRecord(`n${index}`, { expiresAt: later(10 + 10 * index) }),
    );
    await insertAll(store, records);
    const query = pageOf('acme', { order: 'expire', limit: 3 });
    const first = await store.page(query);
    const last = first.at(-1) as TokenRecord;
    assert.equal(last.id, idOf('n2'));

    for (const ms of [1, 2, 3, 4, 5]) {
      await store.insert(newRecord(`sooner${ms}`, { expiresAt: later(ms) }));
    }
    await store.insert(newRecord('between', { expiresAt: later(65) }));
    await store.revoke(idOf('n0'), 'acme', LONG_AGO);
    await store.revoke(idOf('n2'), 'acme', LONG_AGO);
    await store.revoke(idOf('n4'), 'acme', later(1));
    await store.replace({ ...(records[5] as TokenRecord), version: 2, expiresAt: later(999) });
    await purgeOf(store, later(0), 10);

    const rest = await walk(store, { ...query, after: positionOf(last, 'expire') });
    assert.deepEqual(rest, ['n3', 'between', 'n6', 'n7', 'n5'].map(idOf));
    // What has expired since comes before the position, and the list goes on behind it.
    const liveAt = later(65);
    const now = await walk(store, { ...query, liveAt, after: positionOf(last, 'expire') });
    assert.deepEqual(now, ['n6', 'n7', 'n5'].map(idOf));
  }),

  test('page: by expiry, lists each state alone, and several together', async (store) => {
    const records = recordsOfStates().map((record, index) => ({
      ...record,
      createdAt: later(-index),
      expiresAt: new Date(record.expiresAt.getTime() + ((index * 7) % 5) - 5),
      ...(index % 3 === 0 && { ancestors: [idOf('root'), idOf(`parent${index % 2}`)] }),
    }));
    await insertAll(store, [...records, newRecord('theirs', { account: 'other' })]);
    for (const state of [undefined, ...LISTED_STATES]) {
      const listed = inOrder(ofState(records, state), 'expire').map(({ id }) => id);
      assert.ok(listed.length >= 4, state);
      for (const limit of [1, 3, 1000]) {
        const query = pageOf('acme', { order: 'expire', state, limit });
        assert.deepEqual(await walk(store, query), listed, state);
      }
    }
    const all = pageOf('acme', { order: 'expire', state: 'all' });
    assertSame(await store.page(all), inOrder(records, 'expire'));
  }),

  test('page: by expiry, lists a record in the state and at the place that it has now', async (store) => {
    const record = await insertOne(store, newRecord('one', { expiresAt: later(50) }));
    await insertOne(store, newRecord('other', { expiresAt: later(100) }));
    const where = async (liveAt = later(0)): Promise<string[]> => {
      const pages = await Promise.all(
        LISTED_STATES.map((state) =>
          pagedIds(store, pageOf('acme', { order: 'expire', state, liveAt })),
        ),
      );
      const placeOf = (ids: readonly TokenId[] = []) =>
        ids.length === 1 ? 'alone' : ids.indexOf(record.id) === 0 ? 'first' : 'last';
      return LISTED_STATES.flatMap((state, index) =>
        pages[index]?.includes(record.id) === true ? [`${state} ${placeOf(pages[index])}`] : [],
      );
    };
    assert.deepEqual(await where(), ['active first', 'live first', 'all first']);
    assert.deepEqual(await where(later(50)), ['expired alone', 'all first']);
    const suspended = { ...record, version: 2, expiresAt: later(150), suspendedAt: later(1) };
    await store.replace(suspended);
    assert.deepEqual(await where(), ['suspended alone', 'live last', 'all last']);
    assert.deepEqual(await where(later(149)), ['suspended alone', 'live alone', 'all last']);
    const derived = { ...record, version: 3, expiresAt: later(99), ancestors: [idOf('root')] };
    await store.replace(derived);
    assert.deepEqual(await where(), ['active first', 'live first', 'all first']);
    assert.deepEqual(await where(later(98)), ['active first', 'live first', 'all first']);
    await store.replace({ ...derived, version: 4, suspendedAt: later(1) });
    assert.deepEqual(await where(), ['suspended alone', 'live first', 'all first']);
    await store.revoke(record.id, 'acme', LONG_AGO);
    assert.deepEqual(await where(), ['revoked alone', 'all first']);
    await purgeOf(store, later(0), 10);
    assert.deepEqual(await where(), []);
    await store.insert({ ...record, expiresAt: later(100) });
    const isFirst = record.id < idOf('other');
    assert.deepEqual(
      await where(),
      ['active', 'live', 'all'].map((state) => `${state} ${isFirst ? 'first' : 'last'}`),
    );
  }),

  test('page: lists a record in the state that it has now', async (store) => {
    const record = await insertOne(store, newRecord('one'));
    const suspended = { ...record, version: 2, suspendedAt: later(1) };
    const where = async (liveAt = later(0)): Promise<string[]> => {
      const states = ['active', 'suspended', 'expired', 'revoked'] as const;
      const pages = await Promise.all(
        states.map((state) => store.page(pageOf('acme', { state, liveAt }))),
      );
      assert.equal((await store.page(pageOf('acme', { state: 'all', liveAt }))).length, 1);
      return states.filter((_, index) => pages[index]?.length === 1);
    };
    assert.deepEqual(await where(), ['active']);
    assert.equal(await store.replace(suspended), true);
    assert.deepEqual(await where(), ['suspended']);
    assert.deepEqual(await where(record.expiresAt), ['expired']);
    assert.equal(
      await store.replace({ ...suspended, version: 3, expiresAt: later(2 * DAY) }),
      true,
    );
    assert.deepEqual(await where(record.expiresAt), ['suspended']);
    assert.equal(await store.replace({ ...record, version: 4 }), true);
    assert.deepEqual(await where(), ['active']);
    assert.equal(await store.replace({ ...suspended, version: 5 }), true);
    assert.equal(await store.revokeAll('acme', later(3), 10), 1);
    assert.deepEqual(await where(), ['revoked']);
    assert.deepEqual(await where(record.expiresAt), ['revoked']);
    assert.equal(await purgeOf(store, later(4), 10), 1);
    assert.deepEqual(await store.page(pageOf('acme', { state: 'all' })), []);
  }),

  test('page: counts a record as expired from the instant of its expiry, not a millisecond before', async (store) => {
    const expiresAt = later(DAY + 500);
    await store.insert(newRecord('one', { expiresAt }));
    const count = async (ms: number): Promise<number> =>
      (await store.page(pageOf('acme', { liveAt: new Date(expiresAt.getTime() + ms) }))).length;
    assert.equal(await count(-1), 1);
    assert.equal(await count(0), 0);
    assert.equal(await count(1), 0);
  }),

  test('page: leaves other accounts out', async (store) => {
    const mine = [newRecord('a1'), newRecord('a2')];
    const theirs = [newRecord('b1', { account: 'other' }), newRecord('a3', { account: 'acme2' })];
    await insertAll(store, [...mine, ...theirs]);
    assertSame(await store.page(pageOf('acme')), newestFirst(mine));
    const after = { at: later(0), id: idOf('b2') };
    assertSame(await store.page(pageOf('other', { after })), [theirs[0]]);
  }),

  test('page: with a parent, lists the tokens that were derived from it', async (store) => {
    const [parent, other] = [idOf('parent'), idOf('other')];
    const ofParent = { ancestors: [idOf('root'), parent] };
    await insertAll(store, [
      newRecord('root'),
      newRecord('parent', { ancestors: [idOf('root')] }),
      newRecord('other', { ancestors: [idOf('root')] }),
    ]);
    const children = range(12).map((index) =>
      newRecord(`c${index}`, { ...ofParent, createdAt: later(Math.floor(index / 3)) }),
    );
    await insertAll(store, [
      ...children,
      newRecord('sibling', { ancestors: [idOf('root'), other] }),
      newRecord('grandchild', { ancestors: [idOf('root'), parent, idOf('c1')] }),
      newRecord('theirs', { ...ofParent, account: 'Acme' }),
    ]);

    const inOrder = newestFirst(children).map(({ id }) => id);
    assert.deepEqual(await pagedIds(store, pageOf('acme', { parent })), inOrder);
    assert.deepEqual(await walk(store, pageOf('acme', { parent, limit: 5 })), inOrder);
    assert.deepEqual(
      await walk(store, pageOf('acme', { parent, limit: 5, maxBytes: 200 })),
      inOrder,
    );
    assert.deepEqual(await pagedIds(store, pageOf('acme', { parent: other })), [idOf('sibling')]);
    assert.deepEqual(await pagedIds(store, pageOf('Acme', { parent })), [idOf('theirs')]);
    const none = [idOf('sibling'), idOf('PARENT'), idOf('nobody')];
    for (const id of none) {
      assert.deepEqual(await pagedIds(store, pageOf('acme', { parent: id })), []);
    }
    assert.equal((await pagedIds(store, pageOf('acme'))).length, 17);
  }),

  test('page: with a parent, lists each state alone, and all of them together', async (store) => {
    const ancestors = [idOf('parent')];
    const records = recordsOfStates().map((record, index) =>
      index % 3 === 0 ? record : { ...record, ancestors },
    );
    await insertAll(store, records);
    for (const state of [undefined, ...LISTED_STATES]) {
      const derived = records.filter((record) => record.ancestors !== undefined);
      const listed = ofState(derived, state);
      const query = pageOf('acme', { parent: idOf('parent'), state, limit: 3 });
      assert.deepEqual(
        await walk(store, query),
        newestFirst(listed).map(({ id }) => id),
      );
    }
  }),

  test('page: with a parent, follows changes of its children', async (store) => {
    const parent = idOf('parent');
    const [one, two, three, four] = ['one', 'two', 'three', 'four'].map((label, index) =>
      newRecord(label, { ancestors: [parent], createdAt: later(index) }),
    ) as [TokenRecord, TokenRecord, TokenRecord, TokenRecord];
    await insertAll(store, [one, two, three, four]);
    const listed = (fields: Partial<PageQuery> = {}) =>
      pagedIds(store, pageOf('acme', { parent, ...fields }));

    await store.replace({ ...one, version: 2, expiresAt: later(2 * DAY), createdAt: later(9) });
    assert.deepEqual(await listed(), [one.id, four.id, three.id, two.id]);
    await store.replace({ ...two, version: 2, expiresAt: LONG_AGO });
    await store.revoke(three.id, 'acme', LONG_AGO);
    assert.deepEqual(await listed(), [one.id, four.id]);
    assert.deepEqual(await listed({ state: 'expired' }), [two.id]);
    assert.deepEqual(await listed({ state: 'revoked' }), [three.id]);
    await purgeOf(store, later(0), 10);
    assert.deepEqual(await listed({ state: 'all' }), [one.id, four.id]);
    await insertOne(store, newRecord('two'));
    assert.deepEqual(await listed({ state: 'all' }), [one.id, four.id]);
  }),

  test('page: with a root, lists its descendants at any depth, in each state', async (store) => {
    const root = idOf('root');
    const descendants = recordsOfStates().map((record, index) => ({
      ...record,
      ancestors: index % 2 === 0 ? [root] : [root, idOf(`n${index - 1}`)],
    }));
    await insertAll(store, [
      newRecord('root'),
      ...descendants,
      newRecord('stranger', { ancestors: [idOf('other'), root] }),
      newRecord('theirs', { ancestors: [root], account: 'Acme' }),
    ]);
    for (const state of [undefined, ...LISTED_STATES]) {
      const listed = newestFirst(ofState(descendants, state)).map(({ id }) => id);
      assert.deepEqual(await pagedIds(store, pageOf('acme', { root, state })), listed);
      assert.deepEqual(await walk(store, pageOf('acme', { root, state, limit: 5 })), listed);
      const short = { root, state, limit: 5, maxBytes: 200 };
      assert.deepEqual(await walk(store, pageOf('acme', short)), listed);
    }
    assert.deepEqual(await pagedIds(store, pageOf('Acme', { root })), [idOf('theirs')]);
    assert.deepEqual(await pagedIds(store, pageOf('acme', { root: idOf('other') })), [
      idOf('stranger'),
    ]);
    for (const none of [idOf('n0'), idOf('ROOT'), idOf('nobody')]) {
      assert.deepEqual(await pagedIds(store, pageOf('acme', { root: none, state: 'all' })), []);
    }
  }),

  test('page: with a root, follows changes of its descendants', async (store) => {
    const root = idOf('root');
    const [one, two] = [
      newRecord('one', { ancestors: [root], createdAt: later(1) }),
      newRecord('two', { ancestors: [root, idOf('one')], createdAt: later(2) }),
    ];
    await insertAll(store, [one, two]);
    const listed = () => pagedIds(store, pageOf('acme', { root, state: 'all' }));
    assert.deepEqual(await listed(), [two.id, one.id]);
    await store.replace({ ...one, version: 2, createdAt: later(9) });
    await store.revoke(two.id, 'acme', LONG_AGO);
    assert.deepEqual(await listed(), [one.id, two.id]);
    assert.equal(await pruneOf(store, { root }), 1);
    assert.deepEqual(await listed(), [one.id]);
  }),

  test('page: with maxBytes, has at least one record if there is any', async (store) => {
    const records = range(3).map((ms) => newRecord(`n${ms}`, { createdAt: later(ms) }));
    await insertAll(store, records);
    const query = pageOf('acme', { maxBytes: 1 });
    const [first] = await store.page(query);
    assertSame([first], [records[2]]);
    assert.deepEqual(await walk(store, query), ['n2', 'n1', 'n0'].map(idOf));
    const after = positionOf(records[0] as TokenRecord);
    assert.deepEqual(await store.page({ ...query, after }), []);
    assert.deepEqual(await store.page({ ...query, account: 'nobody' }), []);
  }),

  test('page: with maxBytes, does not end before these are reached', async (store) => {
    const records = range(20).map((ms) => recordWithLists(`n${ms}`, ms, (ms * 7) % 5));
    await insertAll(store, records);
    const expected = newestFirst(records);
    for (const maxBytes of [1, 200, 500, 1000, 2000, 1_000_000]) {
      const page = await store.page(pageOf('acme', { maxBytes }));
      assertSame(page, expected.slice(0, page.length));
      const isWhole = page.length === expected.length;
      assert.ok(isWhole || bytesOfAll(page) >= maxBytes, `ends before ${maxBytes} bytes`);
    }
  }),

  test('page: with maxBytes, lists each record once, page by page', async (store) => {
    const records = range(25).map((index) =>
      recordWithLists(`n${index}`, Math.floor(index / 3), index === 11 ? 300 : index % 4),
    );
    const left = [
      newRecord('revoked', { revokedAt: later(1) }),
      newRecord('theirs', { account: 'other' }),
    ];
    await insertAll(store, [...records, ...left]);
    const expected = newestFirst(records).map((record) => record.id);
    for (const maxBytes of [1, 300, 700, 5000]) {
      assert.deepEqual(await walk(store, pageOf('acme', { maxBytes })), expected);
      assert.deepEqual(await walk(store, pageOf('acme', { maxBytes, limit: 3 })), expected);
    }
  }),

  test('page: with maxBytes, returns whole records and at most limit', async (store) => {
    const records = [fullRecord('full', { revokedAt: undefined }), newRecord('bare')];
    await insertAll(store, records);
    const expected = newestFirst(records);
    const whole = pageOf('acme', { state: 'all', maxBytes: 1_000_000 });
    assertSame(await store.page(whole), expected);
    const query = { ...whole, limit: 1 };
    assertSame(await store.page(query), expected.slice(0, 1));
  }),

  test('replace: stores all fields of the next version', async (store) => {
    const full = fullRecord('one', { version: 2, revokedAt: undefined });
    // The origin of a token never changes.
    const { origin } = full;
    const bare = newRecord('one', { origin });
    await store.insert(bare);
    assert.equal(await store.replace(full), true);
    await assertKept(store, [full]);
    assertSame(await store.page(pageOf('acme', { state: 'suspended' })), [full]);
    const back = newRecord('one', { version: 3, origin });
    assert.equal(await store.replace(back), true);
    await assertKept(store, [back]);
    assertSame(await store.page(pageOf('acme')), [back]);
  }),

  test('replace: moves a record in the list when its creation time changes', async (store) => {
    await insertAll(
      store,
      range(3).map((ms) => newRecord(`n${ms}`, { createdAt: later(ms) })),
    );
    await store.replace(newRecord('n0', { createdAt: later(9), version: 2 }));
    assert.deepEqual(await walk(store, pageOf('acme', { limit: 1 })), ['n0', 'n2', 'n1'].map(idOf));
  }),

  test('replace: replaces only the version before', async (store) => {
    const record = await insertOne(store, newRecord('one', { version: 3 }));
    for (const version of [1, 2, 3, 5, 6]) {
      assert.equal(await store.replace({ ...record, version, name: 'changed' }), false);
    }
    await assertKept(store, [record]);
    const next = { ...record, version: 4, name: 'changed' };
    assert.equal(await store.replace(next), true);
    assert.equal(await store.replace(next), false);
    await assertKept(store, [next]);
  }),

  test('replace: accepts the same version as the one to replace', async (store) => {
    const record = await insertOne(store, fullRecord('one', { revokedAt: undefined }));
    const next = { ...record, box: bytesOf(7) };
    assert.equal(await store.replace(next, record.version), true);
    await assertKept(store, [next]);
    assert.equal(await store.replace({ ...next, version: record.version + 1 }), true);
    assert.equal(await store.replace(next, record.version), false);
  }),

  test('replace: replaces only the version that is given', async (store) => {
    const record = await insertOne(store, newRecord('one', { version: 4 }));
    const next = { ...record, version: 9, name: 'changed' };
    for (const version of [3, 5, 8]) assert.equal(await store.replace(next, version), false);
    await assertKept(store, [record]);
    assert.equal(await store.replace(next, 4), true);
    await assertKept(store, [next]);
  }),

  test('replace: replaces only a record of the same account', async (store) => {
    const record = await insertOne(store, newRecord('one'));
    assert.equal(await store.replace({ ...record, account: 'other', version: 2 }), false);
    await assertKept(store, [record]);
    assert.deepEqual(await store.page(pageOf('other')), []);
  }),

  test('replace: never replaces a revoked record', async (store) => {
    const record = await insertOne(store, newRecord('one'));
    await store.revoke(record.id, 'acme', later(1));
    assert.equal(await store.replace({ ...record, version: 2 }), false);
    assert.equal(await store.replace({ ...record, version: 2, revokedAt: later(1) }), false);
    await assertRevoked(store, [record], later(1));
    assert.deepEqual(await store.page(pageOf('acme')), []);
  }),

  test('replace: never creates a record', async (store) => {
    const record = newRecord('one');
    assert.equal(await store.replace(record), false);
    assert.equal(await store.replace({ ...record, version: 2 }), false);
    assert.deepEqual(await store.find([record.id]), [undefined]);
    assert.deepEqual(await store.page(pageOf('acme')), []);
  }),

  test('replace: does not check the expiry', async (store) => {
    const record = newRecord('one', { createdAt: LONG_AGO, expiresAt: LONG_AGO });
    await store.insert(record);
    const next = { ...record, version: 2, expiresAt: later(DAY) };
    assert.equal(await store.replace(next), true);
    await assertKept(store, [next]);
  }),

  test('replace: lets exactly one of 100 concurrent calls win', async (store) => {
    await store.insert(newRecord('one'));
    const rivals = range(100).map((index) =>
      newRecord('one', {
        version: 2,
        name: `rival ${index}`,
        scopes: [`GET:shop.example/${index}`],
      }),
    );
    const outcomes = await Promise.all(rivals.map((rival) => store.replace(rival)));
    const winners = rivals.filter((_, index) => outcomes[index]);
    assert.equal(winners.length, 1);
    await assertKept(store, winners);
  }),

  test('replace: lets exactly one win against a concurrent guarded revoke', async (store) => {
    const records = range(20).map((index) => newRecord(`n${index}`));
    await insertAll(store, records);
    const outcomes = await Promise.all(
      records.map((record) =>
        Promise.all([
          store.replace({ ...record, version: 2 }),
          store.revoke(record.id, 'acme', later(1), 1),
        ]),
      ),
    );
    for (const [replaced, revoked] of outcomes) assert.notEqual(replaced, revoked);
    await assertKept(
      store,
      records.map((record, index) =>
        outcomes[index]?.[0] ? { ...record, version: 2 } : revoked(record, later(1)),
      ),
    );
  }),

  test('revoke: marks the record, empties it and changes nothing else', async (store) => {
    const record = await insertOne(store, fullRecord('one', { version: 7, revokedAt: undefined }));
    assert.equal(await store.revoke(record.id, 'acme', later(123)), true);
    await assertRevoked(store, [record], later(123));
  }),

  test('revoke: revokes once, and keeps the first time', async (store) => {
    const record = await insertOne(store, newRecord('one'));
    assert.equal(await store.revoke(record.id, 'acme', later(1)), true);
    assert.equal(await store.revoke(record.id, 'acme', later(2)), false);
    assert.equal(await store.revoke(record.id, 'acme', later(0), 1), false);
    await assertRevoked(store, [record], later(1));
  }),

  test('revoke: revokes only a record of the same account', async (store) => {
    const record = await insertOne(store, newRecord('one'));
    assert.equal(await store.revoke(record.id, 'other', later(1)), false);
    assert.equal(await store.revoke(record.id, 'other', later(1), 1), false);
    await assertKept(store, [record]);
  }),

  test('revoke: revokes only the version that is given', async (store) => {
    const record = await insertOne(store, newRecord('one', { version: 2 }));
    assert.equal(await store.revoke(record.id, 'acme', later(1), 1), false);
    assert.equal(await store.revoke(record.id, 'acme', later(1), 3), false);
    await assertKept(store, [record]);
    assert.equal(await store.revoke(record.id, 'acme', later(1), 2), true);
    await assertRevoked(store, [record], later(1));
  }),

  test('revoke: does nothing without a record', async (store) => {
    assert.equal(await store.revoke(idOf('absent'), 'acme', later(1)), false);
    assert.equal(await store.revoke(idOf('absent'), 'acme', later(1), 1), false);
    assert.deepEqual(await store.find([idOf('absent')]), [undefined]);
  }),

  test('revoke: does not check the expiry', async (store) => {
    const record = newRecord('one', { createdAt: LONG_AGO, expiresAt: LONG_AGO });
    await store.insert(record);
    assert.equal(await store.revoke(record.id, 'acme', later(1)), true);
    await assertRevoked(store, [record], later(1));
  }),

  test('revoke: is never undone', async (store) => {
    const record = await insertOne(store, newRecord('one'));
    await store.revoke(record.id, 'acme', later(1));
    for (const version of [1, 2, 3]) {
      assert.equal(await store.replace({ ...record, version, revokedAt: undefined }), false);
    }
    await assertTaken(store, record);
    await assertRevoked(store, [record], later(1));
  }),

  test('revoke: lets exactly one of 100 concurrent calls win', async (store) => {
    const record = await insertOne(store, newRecord('one'));
    const outcomes = await Promise.all(
      range(100).map((ms) => store.revoke(record.id, 'acme', later(ms))),
    );
    assert.equal(outcomes.filter(Boolean).length, 1);
    await assertRevoked(store, [record], later(outcomes.indexOf(true)));
  }),

  test('revoke: keeps of the requested scopes what fits into 1024 bytes', async (store) => {
    const cases = [
      [scopesOfBytes(1024), 6],
      [scopesOfBytes(1025), 5],
      [[...scopesOfBytes(1024), 'GET:shop.example/6'], 6],
      [[...scopesOfBytes(1000), ...range(9).map((index) => `GET:b.example/${index}`)], 7],
      [scopesOfBytes(1024, true), 1],
      [scopesOfBytes(1025, true), 0],
      [[...scopesOfBytes(1025, true), 'GET:shop.example/6'], 0],
      [longScopes('a'), 15],
    ] as const;
    const records = cases.flatMap(([requested], index) => [
      newRecord(`one${index}`, { requested }),
      newRecord(`all${index}`, { requested, account: 'other' }),
      newRecord(`same${index}`, { requested, scopes: requested }),
    ]);
    await insertAll(store, records);
    for (const { id, account } of records) {
      if (account === 'acme') assert.equal(await store.revoke(id, account, later(1)), true);
    }
    assert.equal(await store.revokeAll('other', later(1), 1000), cases.length);
    for (const [index, { requested }] of records.entries()) {
      const [asked, kept] = cases[Math.floor(index / 3)] as (typeof cases)[number];
      assert.deepEqual(firstRequested(requested), asked.slice(0, kept));
    }
    await assertRevoked(store, records, later(1));
  }),

  test('revoke: lets a reader see what is left, also of lists that were read before', async (store) => {
    const fields = { scopes: longScopes('a'), requested: longScopes('b') };
    const records = ['one', 'all'].map((label) => newRecord(label, { ...fields, account: label }));
    await insertAll(store, records);
    for (const _ of range(3)) await assertKept(store, records);
    assert.equal(await store.revoke(idOf('one'), 'one', later(1)), true);
    assert.equal(await store.revokeAll('all', later(1), 10), 1);
    for (const _ of range(3)) await assertRevoked(store, records, later(1));
    for (const record of records) {
      const page = await store.page(pageOf(record.account, { state: 'revoked' }));
      assertSame(page, [revoked(record, later(1))]);
    }
  }),

  test('revokeAll: marks and counts what is not revoked, of one account only', async (store) => {
    const open = [
      newRecord('a1'),
      fullRecord('a2', { revokedAt: undefined }),
      newRecord('a3', { createdAt: LONG_AGO, expiresAt: LONG_AGO }),
    ];
    const others = [
      newRecord('a4', { revokedAt: later(1) }),
      newRecord('b1', { account: 'other' }),
      newRecord('b2', { account: 'Acme' }),
      newRecord('b3', { account: 'acme ' }),
    ];
    await insertAll(store, [...open, ...others]);
    assert.equal(await store.revokeAll('acme', later(2), 1000), 3);
    assert.equal(await store.revokeAll('acme', later(3), 1000), 0);
    assert.equal(await store.revokeAll('nobody', later(3), 1000), 0);
    await assertKept(store, [...open.map((record) => revoked(record, later(2))), ...others]);
  }),

  test('revokeAll: marks at most limit records, and says when none are left', async (store) => {
    const records = range(5).map((number) => newRecord(`a${number}`));
    await insertAll(store, records);
    const counts: number[] = [];
    for (const ms of range(4)) counts.push(await store.revokeAll('acme', later(ms), 2));
    assert.deepEqual(counts, [2, 2, 1, 0]);
    const found = await store.find(records.map(({ id }) => id));
    const times = found.map((record) => record?.revokedAt?.getTime()).sort();
    assert.deepEqual(
      times,
      [0, 0, 1, 1, 2].map((ms) => later(ms).getTime()),
    );
  }),

  test('purge: removes what ended strictly before the instant', async (store) => {
    const [ends, live] = [later(100), later(DAY)];
    const before = (ms: number): Date => new Date(ends.getTime() + ms);
    const gone = [
      newRecord('expired', { expiresAt: before(-1) }),
      newRecord('revoked', { expiresAt: live, revokedAt: before(-1) }),
      newRecord('both', { expiresAt: before(-1), revokedAt: before(-1) }),
      newRecord('expiredthenrevoked', { expiresAt: before(-1), revokedAt: before(1) }),
    ];
    const stays = [
      newRecord('live', { expiresAt: live }),
      newRecord('expiring', { expiresAt: before(0) }),
      newRecord('expiringnext', { expiresAt: before(1) }),
      newRecord('revokednow', { expiresAt: live, revokedAt: before(0) }),
      newRecord('revokednext', { expiresAt: live, revokedAt: before(1) }),
    ];
    await insertAll(store, [...gone, ...stays]);
    assert.equal(await purgeOf(store, ends, 100), gone.length);
    assert.equal(await purgeOf(store, ends, 100), 0);
    await assertKept(store, stays);
    assert.deepEqual(
      await store.find(gone.map((record) => record.id)),
      gone.map(() => undefined),
    );
    assertSame(
      await store.page(pageOf('acme', { liveAt: LONG_AGO })),
      newestFirst(stays.filter((record) => record.revokedAt === undefined)),
    );
  }),

  test('purge: removes at most limit records at a time, of all accounts', async (store) => {
    const dead = range(7).map((index) =>
      newRecord(`d${index}`, { account: `n${index % 3}`, expiresAt: LONG_AGO }),
    );
    const live = range(7).map((index) => newRecord(`l${index}`, { account: `n${index % 3}` }));
    for (const index of range(7)) {
      await insertAll(store, [live[index], dead[index]] as TokenRecord[]);
    }
    const left = async (): Promise<number> =>
      (await store.find(dead.map((record) => record.id))).filter(Boolean).length;

    for (const [removed, rest] of [
      [3, 4],
      [3, 1],
      [1, 0],
      [0, 0],
    ]) {
      assert.equal(await purgeOf(store, later(0), 3), removed);
      assert.equal(await left(), rest);
    }
    await assertKept(store, live);
  }),

  test('purge: removes later what has ended since', async (store) => {
    const records = range(6).map((index) => newRecord(`n${index}`));
    await insertAll(store, records);
    assert.equal(await purgeOf(store, later(1), 2), 0);
    for (const [step, label] of ['n4', 'n0', 'n5', 'n1'].entries()) {
      await store.revoke(idOf(label), 'acme', later(step));
      assert.equal(await purgeOf(store, later(step + 1), 1), 1);
      assert.equal(await purgeOf(store, later(step + 1), 1), 0);
    }
    await assertKept(store, [records[2], records[3]] as TokenRecord[]);
    assert.equal(await purgeOf(store, later(2 * DAY), 10), 2);
  }),

  test('purge: counts each record once in concurrent calls', async (store) => {
    const dead = range(12).map((index) => newRecord(`d${index}`, { expiresAt: LONG_AGO }));
    await insertAll(store, [...dead, newRecord('live')]);
    const counts = await Promise.all(range(4).map(() => purgeOf(store, later(0), 5)));
    counts.push(await purgeOf(store, later(0), 100));
    assert.equal(
      counts.reduce((sum, count) => sum + count),
      12,
    );
    await assertKept(store, [newRecord('live')]);
  }),

  test('purge: returns the ids of what it removed and no others, if it returns ids', async (store) => {
    const dead = range(5).map((index) => newRecord(`d${index}`, { expiresAt: LONG_AGO }));
    await insertAll(store, [...dead, newRecord('live')]);
    const told: TokenId[] = [];
    for (const limit of [2, 2, 100]) {
      const purged = await store.purge({ now: later(0), minAgeMs: 0, limit });
      // Without ids, only the usage of these tokens stays.
      if (typeof purged === 'number') return;
      assert.equal(new Set(purged.ids).size, purged.count);
      told.push(...purged.ids);
    }
    assert.deepEqual(told.sort(), dead.map(({ id }) => id).sort());
  }),

  test('purge: frees the id', async (store) => {
    const record = await insertOne(store, newRecord('one'));
    await store.revoke(record.id, 'acme', LONG_AGO);
    await purgeOf(store, later(0), 1);
    assert.equal(await store.replace({ ...record, version: 2 }), false);
    const again = await insertOne(store, newRecord('one', { account: 'other' }));
    await assertKept(store, [again]);
    assertSame(await store.page(pageOf('other')), [again]);
  }),

  test('purge: removes only what ended longer ago than the age', async (store) => {
    const now = later(2 * DAY);
    const ends = (ms: number) => ({ expiresAt: new Date(now.getTime() - DAY + ms) });
    const gone = [
      newRecord('old', ends(-1)),
      newRecord('revoked', { expiresAt: later(5 * DAY), revokedAt: ends(-1).expiresAt }),
    ];
    const stays = [newRecord('exactly', ends(0)), newRecord('young', ends(1))];
    await insertAll(store, [...gone, ...stays]);
    assert.equal(await purgeOf(store, now, 100, DAY), 2);
    await assertKept(store, stays);
    assert.equal(await purgeOf(store, now, 100, DAY - 1), 1);
    assert.equal(await purgeOf(store, now, 100, DAY - 2), 1);
  }),

  test('purge: with a clock of its own, removes nothing that is live by it', async (store) => {
    const knowsTime = await hasClock(store);
    const fast = new Date(FAR_FUTURE.getTime() + DAY);
    const live = newRecord('live', { expiresAt: FAR_FUTURE });
    const dead = newRecord('dead');
    await insertAll(store, [live, dead]);
    // Without one, the store has to believe the caller.
    assert.equal(await purgeOf(store, fast, 100), knowsTime ? 1 : 2);
    await assertKept(store, knowsTime ? [live] : []);
    assert.deepEqual(await store.find([dead.id]), [undefined]);
  }),

  test('prune: removes the ended records of one account, but no derived ones', async (store) => {
    const gone = [
      newRecord('expired', { expiresAt: LONG_AGO }),
      newRecord('expiring', { expiresAt: later(0) }),
      newRecord('revoked', { revokedAt: LONG_AGO }),
    ];
    const stays = [
      newRecord('live'),
      newRecord('expiringnext', { expiresAt: later(1) }),
      newRecord('suspended', { suspendedAt: later(0) }),
      newRecord('child', { ancestors: [idOf('live')], expiresAt: LONG_AGO }),
      ...ALIKE_ACCOUNTS.slice(1).map((account, index) =>
        newRecord(`n${index}`, { account, expiresAt: LONG_AGO }),
      ),
    ];
    await insertAll(store, [...gone, ...stays]);
    assert.equal(await pruneOf(store, { account: 'nobody' }), 0);
    assert.equal(await pruneOf(store), 3);
    assert.equal(await pruneOf(store), 0);
    await assertKept(store, stays);
    assert.deepEqual(
      await store.find(gone.map(({ id }) => id)),
      gone.map(() => undefined),
    );
    assertSame(
      await store.page(pageOf('acme', { state: 'all' })),
      newestFirst(stays.filter(({ account }) => account === 'acme')),
    );
  }),

  test('prune: with a root, removes its ended descendants alone', async (store) => {
    const root = idOf('root');
    const dead = { expiresAt: LONG_AGO };
    const stays = [
      newRecord('root', dead),
      newRecord('live', { ancestors: [root] }),
      newRecord('other', { ...dead, ancestors: [idOf('other')] }),
      newRecord('theirs', { ...dead, ancestors: [root], account: 'Acme' }),
    ];
    await insertAll(store, [
      ...stays,
      newRecord('child', { ...dead, ancestors: [root] }),
      newRecord('grandchild', { ...dead, ancestors: [root, idOf('live')] }),
    ]);
    assert.equal(await pruneOf(store, { root }), 2);
    assert.equal(await pruneOf(store, { root }), 0);
    await assertKept(store, stays);
  }),

  test('prune: removes at most limit records, the oldest first', async (store) => {
    const dead = range(7).map((index) =>
      newRecord(`d${(index * 3) % 7}`, {
        createdAt: later((index * 3) % 7),
        expiresAt: later(100 + ((index * 3) % 7)),
      }),
    );
    const live = newRecord('live', { createdAt: LONG_AGO });
    await insertAll(store, [...dead, live]);
    const left = async () =>
      pagedIds(store, pageOf('acme', { state: 'expired', liveAt: later(200) }));
    for (const [removed, labels] of [
      [3, ['d6', 'd5', 'd4', 'd3']],
      [3, ['d6']],
      [1, []],
      [0, []],
    ] as const) {
      assert.equal(await pruneOf(store, { now: later(200), limit: 3 }), removed);
      assert.deepEqual(await left(), labels.map(idOf));
    }
    await assertKept(store, [live]);
  }),

  test('prune: keeps a revoked record that was imported, and finds those after it', async (store) => {
    const tombstones = range(12).map((index) =>
      newRecord(`t${index}`, {
        format: 'sanctum',
        revokedAt: LONG_AGO,
        ...(index % 2 === 0 && { expiresAt: LONG_AGO }),
      }),
    );
    await insertAll(store, tombstones);
    await insertAll(store, [
      newRecord('expired', { format: 'sanctum', expiresAt: LONG_AGO, createdAt: later(1) }),
      newRecord('revoked', { createdAt: later(1) }),
      newRecord('marked', { format: 'sanctum' }),
    ]);
    assert.equal(await store.revoke(idOf('revoked'), 'acme', LONG_AGO), true);
    assert.equal(await store.revoke(idOf('marked'), 'acme', LONG_AGO), true);
    let removed = 0;
    // A store may look at a part of the records in each call.
    for (const _ of range(20)) removed += await pruneOf(store, { limit: 2 });
    assert.equal(removed, 2);
    const marked = revoked(newRecord('marked', { format: 'sanctum' }), LONG_AGO);
    await assertKept(store, [...tombstones, marked]);
  }),

  test('prune: counts each record once in concurrent calls', async (store) => {
    const dead = range(12).map((index) => newRecord(`d${index}`, { expiresAt: LONG_AGO }));
    await insertAll(store, [...dead, newRecord('live')]);
    const counts = await Promise.all(range(4).map(() => pruneOf(store, { limit: 5 })));
    counts.push(await pruneOf(store));
    assert.equal(
      counts.reduce((sum, count) => sum + count),
      12,
    );
    await assertKept(store, [newRecord('live')]);
  }),

  test('prune: returns the ids of what it removed and no others, if it returns ids', async (store) => {
    const dead = range(5).map((index) => newRecord(`d${index}`, { expiresAt: LONG_AGO }));
    await insertAll(store, [...dead, newRecord('live')]);
    const told: TokenId[] = [];
    for (const limit of [2, 2, 100]) {
      const pruned = await store.prune({ account: 'acme', now: later(0), limit });
      if (typeof pruned === 'number') return;
      assert.equal(new Set(pruned.ids).size, pruned.count);
      told.push(...pruned.ids);
    }
    assert.deepEqual(told.sort(), dead.map(({ id }) => id).sort());
  }),

  test('prune: with a clock of its own, removes nothing that is live by it', async (store) => {
    const knowsTime = await hasClock(store);
    const fast = new Date(FAR_FUTURE.getTime() + DAY);
    const live = newRecord('live', { expiresAt: FAR_FUTURE });
    await insertAll(store, [live, newRecord('dead')]);
    assert.equal(await pruneOf(store, { now: fast }), knowsTime ? 1 : 2);
    await assertKept(store, knowsTime ? [live] : []);
  }),

  test('hasReached: knows the past, and not a far future', async (store) => {
    if (store.hasReached === undefined) return;
    await insertAll(store, [
      newRecord('now', { createdAt: later(100) }),
      // Such as one that a process with a fast clock has written.
      newRecord('fast', { createdAt: FAR_FUTURE, expiresAt: new Date(+FAR_FUTURE + DAY) }),
    ]);
    for (const ms of [0, 99, 100]) assert.equal(await store.hasReached(later(ms)), true);
    assert.equal(await store.hasReached(new Date(+FAR_FUTURE - DAY)), false);
    assert.equal(await store.hasReached(FAR_FUTURE), false);
  }),

  test('hasReached: without a clock of its own, knows what its records tell', async (store) => {
    if (store.hasReached === undefined || (await hasClock(store))) return;
    const record = await insertOne(store, newRecord('one', { createdAt: later(100) }));
    const table = [
      [100, undefined, true],
      [101, undefined, false],
      [50, 100, false],
      [50, 101, true],
    ] as const;
    for (const [ms, before, expected] of table) {
      const limit = before === undefined ? undefined : later(before);
      assert.equal(await store.hasReached(later(ms), limit), expected);
    }
    await store.replace({ ...record, version: 2, rotatedAt: later(200) });
    assert.equal(await store.hasReached(later(150)), true);
    assert.equal(await store.hasReached(later(150), later(200)), false);
    assert.equal(await store.hasReached(later(201)), false);
  }),

  test('scan: returns all records of all accounts as they are, also revoked and expired ones', async (store) => {
    const records = [
      newRecord('bare'),
      fullRecord('full'),
      newRecord('expired', { account: 'other', expiresAt: LONG_AGO }),
      newRecord('replaced', { account: 'acme ' }),
      newRecord('Long', { scopes: longScopes('a'), requested: longScopes('b') }),
    ];
    await insertAll(store, records);
    await store.revoke(idOf('bare'), 'acme', later(1));
    const next = fullRecord('replaced', { account: 'acme ', version: 2, revokedAt: undefined });
    await store.replace(next);
    for (const limit of [1, 3, 5, 100]) {
      const found = await scanAll(store, limit);
      const [bare, full, expired, , long] = records as Five<TokenRecord>;
      const expected = [revoked(bare, later(1)), full, expired, next, long];
      if (found !== undefined) assertSameSet(found, expected);
    }
  }),

  test('scan: returns at most limit records at a time, and ends', async (store) => {
    assert.equal((await scanAll(store, 3))?.length ?? 0, 0);
    const records = range(25).map((index) => newRecord(`n${index}`, { account: `a${index % 3}` }));
    await insertAll(store, records);
    for (const limit of [1, 4, 5, 25, 26]) {
      const found = await scanAll(store, limit);
      if (found !== undefined) assertSameSet(found, records);
    }
  }),

  test('scan: returns hundreds of records', async (store) => {
    const records = range(300).map((index) => newRecord(`n${index}`));
    await Promise.all(records.map((record) => store.insert(record)));
    const found = await scanAll(store, 40);
    if (found !== undefined) assertSameSet(found, records);
  }),

  test('scan: misses no record while others come and go', async (store) => {
    const staying = range(12).map((index) => newRecord(`s${index}`, { expiresAt: later(5 * DAY) }));
    const going = range(12).map((index) => newRecord(`g${index}`, { expiresAt: LONG_AGO }));
    for (const index of range(12)) {
      await insertAll(store, [going[index], staying[index]] as TokenRecord[]);
    }
    let step = 0;
    const found = await scanAll(store, 4, async () => {
      await purgeOf(store, later(0), 3);
      await store.insert(newRecord(`A${step}`));
      await store.insert(newRecord(`z${step}`));
      step += 1;
    });
    const seen = new Set(found?.map(({ id }) => id));
    if (found !== undefined) assert.ok(staying.every(({ id }) => seen.has(id)));
  }),

  test('scan: a change of an answer changes nothing', async (store) => {
    const record = await insertOne(store, fullRecord('given'));
    for (const found of (await scanAll(store, 10)) ?? []) spoil(found);
    await assertKept(store, [record]);
    const again = await scanAll(store, 10);
    if (again !== undefined) assertSameSet(again, [record]);
  }),

  test('bystanders: a write changes only the record that it names', async (store) => {
    const one = fullRecord('one', { revokedAt: undefined });
    const bystanders = [
      fullRecord('two', { revokedAt: undefined }),
      fullRecord('One', { revokedAt: undefined }),
      fullRecord('onE', { account: 'other', revokedAt: undefined }),
      fullRecord('old', { revokedAt: later(1) }),
    ];
    await insertAll(store, bystanders);
    const writes = [
      () => store.insert(one),
      () => assertTaken(store, { ...one, account: 'other' }),
      () => store.replace({ ...one, version: 2, name: 'changed' }),
      () => store.replace({ ...one, version: 2, name: 'too late' }),
      () => store.revoke(one.id, 'acme', LONG_AGO, 1),
      () => store.revoke(one.id, 'acme', LONG_AGO, 2),
      () => purgeOf(store, later(0), 100),
      () => store.revokeAll('nobody', later(0), 1000),
    ];
    for (const write of writes) {
      await write();
      await assertKept(store, bystanders);
    }
    assert.deepEqual(await store.find([one.id]), [undefined]);
  }),

  test('model: a long random run agrees with a simple reference', async (store) => {
    const [reference, draw] = [new ReferenceStore(), seeded(20_260_101)];
    const findAll: StoreCall = (one) => one.find(RANDOM_LABELS.map(idOf));
    for (const step of range(500)) {
      for (const call of [drawCall(draw), findAll]) {
        const expected = { step, outcome: await outcomeOf(call, reference) };
        assert.deepEqual({ step, outcome: await outcomeOf(call, store) }, expected);
      }
    }
  }),
];
