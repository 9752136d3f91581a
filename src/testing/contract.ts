import assert from 'node:assert/strict';
import { isTokenError, TokenError } from '../errors.ts';
import type { PageQuery, Position, TokenStore } from '../store.ts';
import type { JsonObject, TokenId, TokenRecord } from '../token.ts';

/** One promise of a {@link TokenStore}, ready to be checked by any test runner. */
export interface StoreContractCase {
  /** The verb and what it owes: `insert: keeps a record with every field`. */
  readonly name: string;
  /** Opens a store, checks the promise and closes the store; rejects when the promise is broken. */
  run(open: () => TokenStore | Promise<TokenStore>): Promise<void>;
}

/**
 * What every token store owes, as a list of cases for any test runner.
 *
 * A store passes when no case rejects and none is skipped. `open` must give an empty store each
 * time. No case reads the real time or waits.
 *
 * @example
 * describe('my store', () => {
 *   it.each(storeContract)('$name', (promise) => promise.run(() => new MyStore()));
 * });
 */
export const storeContract: readonly StoreContractCase[] = [
  promise('insert: keeps a record with every field', async (store) => {
    const record = fullRecord('full');
    await store.insert(record);
    await assertKept(store, [record]);
  }),

  promise('insert: leaves the optional fields of a bare record absent', async (store) => {
    const record = newRecord('bare');
    await store.insert(record);
    await assertKept(store, [record]);
  }),

  promise('insert: keeps each optional field without the others', async (store) => {
    const full = fullRecord('full');
    const optional = [
      { box: full.box },
      { name: full.name },
      { metadata: full.metadata },
      { revokedAt: full.revokedAt },
      { previousDigest: full.previousDigest, previousUntil: full.previousUntil },
    ];
    const records = optional.map((part, index) => newRecord(`part${index}`, part));
    await insertAll(store, records);
    await assertKept(store, records);
  }),

  promise('insert: keeps milliseconds', async (store) => {
    const records = [1, 10, 123, 999].map((ms) =>
      newRecord(`ms${ms}`, {
        createdAt: later(ms),
        expiresAt: later(DAY + ms),
        revokedAt: later(2 * DAY + ms),
        previousDigest: bytesOf(3),
        previousUntil: later(3 * DAY + ms),
      }),
    );
    await insertAll(store, records);
    await assertKept(store, records);
  }),

  promise('insert: keeps any bytes', async (store) => {
    const records = [0, 127, 128, 255].map((byte) =>
      newRecord(`byte${byte}`, {
        digest: new Uint8Array(32).fill(byte),
        box: Uint8Array.from({ length: 300 }, (_, index) => index + byte),
      }),
    );
    await insertAll(store, records);
    await assertKept(store, records);
  }),

  promise('insert: rejects a taken id and leaves the first record untouched', async (store) => {
    const first = newRecord('taken', { name: 'first' });
    await store.insert(first);
    await assertTaken(store, fullRecord('taken'));
    await assertTaken(store, newRecord('taken', { account: 'other' }));
    await assertKept(store, [first]);
    assert.deepEqual(await store.page(pageOf('other')), []);
  }),

  promise('insert: rejects the id of a revoked record and does not revive it', async (store) => {
    const first = newRecord('taken');
    await store.insert(first);
    await store.revoke(first.id, first.account, later(1));
    await assertTaken(store, newRecord('taken', { name: 'second' }));
    await assertKept(store, [{ ...first, revokedAt: later(1) }]);
  }),

  promise('insert: of 100 at once with one id exactly one wins', async (store) => {
    const rivals = range(100).map((index) => newRecord('one', { name: `rival ${index}` }));
    const outcomes = await Promise.allSettled(rivals.map((rival) => store.insert(rival)));
    const winners = rivals.filter((_, index) => outcomes[index]?.status === 'fulfilled');
    assert.equal(winners.length, 1);
    await assertKept(store, winners);
  }),

  promise(
    'copies: what a caller does to an inserted record later does not matter',
    async (store) => {
      const given = fullRecord('given');
      await store.insert(given);
      spoil(given);
      await assertKept(store, [fullRecord('given')]);
    },
  ),

  promise(
    'copies: what a caller does to a replacing record later does not matter',
    async (store) => {
      await store.insert(newRecord('given'));
      const next = fullRecord('given', { version: 2 });
      await store.replace(next);
      spoil(next);
      await assertKept(store, [fullRecord('given', { version: 2 })]);
    },
  ),

  promise('copies: what a caller does to a date of a revocation does not matter', async (store) => {
    const records = [newRecord('one'), newRecord('two'), newRecord('three')];
    await insertAll(store, records);
    const [at, atAll] = [later(1), later(1)];
    await store.revoke(idOf('one'), 'acme', at);
    await store.revokeAll('acme', atAll);
    at.setTime(0);
    atAll.setTime(0);
    await assertKept(
      store,
      records.map((record) => ({ ...record, revokedAt: later(1) })),
    );
  }),

  promise('copies: what a caller does to an answer of find does not matter', async (store) => {
    const record = fullRecord('given');
    await store.insert(record);
    spoil(await findOne(store, record.id));
    await assertKept(store, [record]);
    for (const found of await store.find([record.id, idOf('absent'), record.id])) {
      if (found !== undefined) spoil(found);
    }
    await assertKept(store, [record]);
  }),

  promise('copies: what a caller does to a page does not matter', async (store) => {
    const record = fullRecord('given', { revokedAt: undefined });
    await store.insert(record);
    for (const found of await store.page(pageOf('acme'))) spoil(found);
    await assertKept(store, [record]);
    assertSame(await store.page(pageOf('acme')), [record]);
  }),

  promise('copies: records of one answer share nothing that can change', async (store) => {
    const record = fullRecord('given');
    await store.insert(record);
    const [first, second] = await store.find([record.id, record.id]);
    spoil(first as TokenRecord);
    assertSame([second], [record]);
  }),

  promise('copies: dates of records revoked together are not shared', async (store) => {
    const records = [newRecord('one'), newRecord('two')];
    await insertAll(store, records);
    await store.revokeAll('acme', later(1));
    spoil(await findOne(store, idOf('one')));
    await assertKept(
      store,
      records.map((record) => ({ ...record, revokedAt: later(1) })),
    );
  }),

  promise('arguments: no verb changes what it is given', async (store) => {
    const record = fullRecord('given', { revokedAt: undefined });
    const next = fullRecord('given', { revokedAt: undefined, version: 2 });
    const [ids, at] = [[record.id, idOf('absent'), record.id], later(1)];
    const query = pageOf('acme', { after: { createdAt: later(1), id: idOf('z') } });
    const before = JSON.stringify([facts(record), facts(next), ids, at, query]);

    await store.insert(record);
    await store.find(ids);
    await store.page(query);
    await store.replace(next);
    await store.revoke(record.id, 'acme', at, 2);
    await store.revokeAll('acme', at);
    await store.purge(at, 10);
    assert.equal(JSON.stringify([facts(record), facts(next), ids, at, query]), before);
  }),

  promise('arguments: frozen ones are as good as any', async (store) => {
    const record = deepFreeze(fullRecord('given', { revokedAt: undefined }));
    const next = deepFreeze(fullRecord('given', { revokedAt: undefined, version: 2 }));
    await store.insert(record);
    assert.equal(await store.replace(next), true);
    assertSame(await store.find(Object.freeze([record.id])), [next]);
    assertSame(await store.page(Object.freeze(pageOf('acme'))), [next]);
  }),

  promise('find: answers an empty list with an empty list', async (store) => {
    await store.insert(newRecord('one'));
    assert.deepEqual(await store.find([]), []);
  }),

  promise('find: keeps order, duplicates and holes', async (store) => {
    const records = ['c', 'a', 'b'].map((label) => newRecord(label));
    await insertAll(store, records);
    const [c, a, b] = records;
    const asked = ['b', 'absent', 'c', 'b', 'a', 'a', 'absent', 'c'].map(idOf);
    assertSame(await store.find(asked), [b, undefined, c, b, a, a, undefined, c]);
    assertSame(await store.find([idOf('absent')]), [undefined]);
    assertSame(await store.find([idOf('absent'), idOf('gone')]), [undefined, undefined]);
  }),

  promise('find: answers a thousand ids at once', async (store) => {
    const records = range(20).map((index) => newRecord(`n${index}`));
    await insertAll(store, records);
    const asked = range(1000).map((index) => (index * 7) % 25);
    assertSame(
      await store.find(asked.map((index) => idOf(`n${index}`))),
      asked.map((index) => records[index]),
    );
  }),

  promise('find: gives revoked and expired records as well', async (store) => {
    const records = [
      newRecord('revoked', { revokedAt: later(1) }),
      newRecord('expired', { createdAt: LONG_AGO, expiresAt: LONG_AGO }),
    ];
    await insertAll(store, records);
    await assertKept(store, records);
  }),

  promise('find: tells ids apart that differ in case only', async (store) => {
    const records = ['abc', 'aBc', 'ABC', 'Abc'].map((label) => newRecord(label, { name: label }));
    await insertAll(store, records);
    await assertKept(store, records);
  }),

  promise('find: an id that only resembles a kept one is not there', async (store) => {
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

  promise('accounts: those that only resemble each other stay apart', async (store) => {
    const records = ALIKE_ACCOUNTS.map((account, index) => newRecord(`n${index}`, { account }));
    await insertAll(store, records);
    await assertKept(store, records);
    for (const record of records) {
      assertSame(await store.page(pageOf(record.account)), [record]);
    }
  }),

  promise('accounts: no verb takes one for another that resembles it', async (store) => {
    const record = newRecord('one');
    await store.insert(record);
    for (const account of ALIKE_ACCOUNTS.slice(1)) {
      assert.equal(await store.replace({ ...record, account, version: 2 }), false);
      assert.equal(await store.revoke(record.id, account, later(1)), false);
      assert.equal(await store.revokeAll(account, later(1)), 0);
      assert.deepEqual(await store.page(pageOf(account)), []);
    }
    await assertKept(store, [record]);
  }),

  promise('accounts: may have 255 bytes, and all of them count', async (store) => {
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

  promise('scopes: those that only resemble each other stay apart, in order', async (store) => {
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

  promise('scopes: there may be 4096', async (store) => {
    const scopes = range(4096).map((index) => `GET:shop.example/catalog/${index}/items/*`);
    const record = newRecord('many', { scopes, requested: scopes });
    await store.insert(record);
    await assertKept(store, [record]);
    const next = { ...record, version: 2, scopes: scopes.slice(1) };
    assert.equal(await store.replace(next), true);
    await assertKept(store, [next]);
  }),

  promise('names: quotes, emoji, SQL and the like are only text', async (store) => {
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

  promise('metadata: any JSON object comes back as it was', async (store) => {
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

  promise('metadata: may have 4096 bytes', async (store) => {
    const frame = JSON.stringify({ text: '' }).length;
    const record = newRecord('big', { metadata: { text: '\u00e9'.repeat((4096 - frame) / 2) } });
    await store.insert(record);
    await assertKept(store, [record]);
  }),

  promise('metadata: a member named __proto__ is a member like any other', async (store) => {
    const metadata: JsonObject = JSON.parse('{"__proto__":{"admin":true},"a":{"__proto__":1}}');
    const record = newRecord('proto', { metadata });
    await store.insert(record);
    await assertKept(store, [record]);
    const found = (await findOne(store, record.id)).metadata as JsonObject;
    assert.equal(found['admin'], undefined);
    assert.deepEqual(Object.keys(found).sort(), ['__proto__', 'a']);
  }),

  promise('page: is newest first', async (store) => {
    const records = [3, 1, 4, 0, 2].map((ms) => newRecord(`n${ms}`, { createdAt: later(ms) }));
    await insertAll(store, records);
    assert.deepEqual(
      await pagedIds(store, pageOf('acme')),
      ['n4', 'n3', 'n2', 'n1', 'n0'].map(idOf),
    );
  }),

  promise(
    'page: puts records of one instant in descending order of id by code unit',
    async (store) => {
      const labels = ['a', 'Z', '9', 'z', 'A', '0', 'aB', 'ab', 'aA'];
      await insertAll(
        store,
        labels.map((label) => newRecord(label)),
      );
      const expected = labels.map(idOf).sort().reverse();
      assert.deepEqual(await pagedIds(store, pageOf('acme')), expected);
      assert.deepEqual(await walk(store, pageOf('acme', { limit: 1 })), expected);
      assert.deepEqual(await walk(store, pageOf('acme', { limit: 2 })), expected);
    },
  ),

  promise('page: gives at most so many, and all of them page by page', async (store) => {
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

  promise('page: gives whole records', async (store) => {
    const records = [fullRecord('full', { revokedAt: undefined }), newRecord('bare')];
    await insertAll(store, records);
    assertSame(await store.page(pageOf('acme')), newestFirst(records));
  }),

  promise('page: is empty after the last record and for an unknown account', async (store) => {
    const record = newRecord('one');
    await store.insert(record);
    assert.deepEqual(await store.page(pageOf('acme', { after: record })), []);
    assert.deepEqual(await store.page(pageOf('nobody')), []);
  }),

  promise(
    'page: goes on after a place to the millisecond, also one without a record',
    async (store) => {
      const records = range(4).map((ms) => newRecord(`n${ms}`, { createdAt: later(ms) }));
      await insertAll(store, records);
      const after = (ms: number, label: string): Promise<TokenId[]> =>
        pagedIds(store, pageOf('acme', { after: { createdAt: later(ms), id: idOf(label) } }));
      assert.deepEqual(await after(2, 'n2'), ['n1', 'n0'].map(idOf));
      assert.deepEqual(await after(2, 'n3'), ['n2', 'n1', 'n0'].map(idOf));
      assert.deepEqual(await after(2, 'n1'), ['n1', 'n0'].map(idOf));
      assert.deepEqual(await after(9, 'x'), ['n3', 'n2', 'n1', 'n0'].map(idOf));
      assert.deepEqual(await after(-1, 'x'), []);
    },
  ),

  promise(
    'page: neither repeats nor skips when records come and go between pages',
    async (store) => {
      const records = range(8).map((index) =>
        newRecord(`n${index}`, { createdAt: later(10 * index) }),
      );
      await insertAll(store, records);
      const first = await store.page(pageOf('acme', { limit: 3 }));
      const after = first.at(-1) as TokenRecord;
      assert.equal(after.id, idOf('n5'));

      // More come than go above the place: an offset would be wrong.
      for (const ms of [100, 101, 102, 103, 104]) {
        await store.insert(newRecord(`newer${ms}`, { createdAt: later(ms) }));
      }
      await store.insert(newRecord('between', { createdAt: later(25) }));
      await store.revoke(idOf('n7'), 'acme', LONG_AGO);
      await store.revoke(idOf('n5'), 'acme', LONG_AGO);
      await store.revoke(idOf('n4'), 'acme', later(1));
      await store.purge(later(0), 10);

      const rest = await walk(store, pageOf('acme', { limit: 3, after }));
      assert.deepEqual(rest, ['n3', 'between', 'n2', 'n1', 'n0'].map(idOf));
    },
  ),

  promise('page: leaves revoked records out', async (store) => {
    const records = [
      newRecord('open'),
      newRecord('one'),
      newRecord('all', { account: 'other' }),
      newRecord('born', { revokedAt: later(1) }),
    ];
    await insertAll(store, records);
    await store.revoke(idOf('one'), 'acme', later(5 * DAY));
    await store.revokeAll('other', later(5 * DAY));
    assert.deepEqual(await pagedIds(store, pageOf('acme')), [idOf('open')]);
    assert.deepEqual(await pagedIds(store, pageOf('other')), []);
  }),

  promise('page: fills itself past records that are left out', async (store) => {
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

  promise(
    'page: the instant of expiry is already too late, one millisecond before is not',
    async (store) => {
      const expiresAt = later(DAY + 500);
      await store.insert(newRecord('one', { expiresAt }));
      const count = async (ms: number): Promise<number> =>
        (await store.page(pageOf('acme', { liveAt: new Date(expiresAt.getTime() + ms) }))).length;
      assert.equal(await count(-1), 1);
      assert.equal(await count(0), 0);
      assert.equal(await count(1), 0);
    },
  ),

  promise('page: leaves other accounts out', async (store) => {
    const mine = [newRecord('a1'), newRecord('a2')];
    const theirs = [newRecord('b1', { account: 'other' }), newRecord('a3', { account: 'acme2' })];
    await insertAll(store, [...mine, ...theirs]);
    assertSame(await store.page(pageOf('acme')), newestFirst(mine));
    const after = { createdAt: later(0), id: idOf('b2') };
    assertSame(await store.page(pageOf('other', { after })), [theirs[0]]);
  }),

  promise('replace: puts all fields of the next version in place', async (store) => {
    const [bare, full] = [
      newRecord('one'),
      fullRecord('one', { version: 2, revokedAt: undefined }),
    ];
    await store.insert(bare);
    assert.equal(await store.replace(full), true);
    await assertKept(store, [full]);
    assertSame(await store.page(pageOf('acme')), [full]);
    const back = newRecord('one', { version: 3 });
    assert.equal(await store.replace(back), true);
    await assertKept(store, [back]);
    assertSame(await store.page(pageOf('acme')), [back]);
  }),

  promise('replace: moves a record whose creation time changes in the list', async (store) => {
    await insertAll(
      store,
      range(3).map((ms) => newRecord(`n${ms}`, { createdAt: later(ms) })),
    );
    await store.replace(newRecord('n0', { createdAt: later(9), version: 2 }));
    assert.deepEqual(await walk(store, pageOf('acme', { limit: 1 })), ['n0', 'n2', 'n1'].map(idOf));
  }),

  promise('replace: only over the version before', async (store) => {
    const record = newRecord('one', { version: 3 });
    await store.insert(record);
    for (const version of [1, 2, 3, 5, 6]) {
      assert.equal(await store.replace({ ...record, version, name: 'changed' }), false);
    }
    await assertKept(store, [record]);
    const next = { ...record, version: 4, name: 'changed' };
    assert.equal(await store.replace(next), true);
    assert.equal(await store.replace(next), false);
    await assertKept(store, [next]);
  }),

  promise('replace: only for the same account', async (store) => {
    const record = newRecord('one');
    await store.insert(record);
    assert.equal(await store.replace({ ...record, account: 'other', version: 2 }), false);
    await assertKept(store, [record]);
    assert.deepEqual(await store.page(pageOf('other')), []);
  }),

  promise('replace: never over a revoked record', async (store) => {
    const record = newRecord('one');
    await store.insert(record);
    await store.revoke(record.id, 'acme', later(1));
    assert.equal(await store.replace({ ...record, version: 2 }), false);
    assert.equal(await store.replace({ ...record, version: 2, revokedAt: later(1) }), false);
    await assertKept(store, [{ ...record, revokedAt: later(1) }]);
    assert.deepEqual(await store.page(pageOf('acme')), []);
  }),

  promise('replace: never makes a record that is not there', async (store) => {
    const record = newRecord('one');
    assert.equal(await store.replace(record), false);
    assert.equal(await store.replace({ ...record, version: 2 }), false);
    assert.deepEqual(await store.find([record.id]), [undefined]);
    assert.deepEqual(await store.page(pageOf('acme')), []);
  }),

  promise('replace: does not judge an expiry', async (store) => {
    const record = newRecord('one', { createdAt: LONG_AGO, expiresAt: LONG_AGO });
    await store.insert(record);
    const next = { ...record, version: 2, expiresAt: later(DAY) };
    assert.equal(await store.replace(next), true);
    await assertKept(store, [next]);
  }),

  promise('replace: of 100 at once exactly one wins', async (store) => {
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

  promise('replace: against a guarded revoke at once exactly one wins', async (store) => {
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
        outcomes[index]?.[0] ? { ...record, version: 2 } : { ...record, revokedAt: later(1) },
      ),
    );
  }),

  promise('revoke: marks the record and changes nothing else', async (store) => {
    const record = fullRecord('one', { version: 7, revokedAt: undefined });
    await store.insert(record);
    assert.equal(await store.revoke(record.id, 'acme', later(123)), true);
    await assertKept(store, [{ ...record, revokedAt: later(123) }]);
  }),

  promise('revoke: only once, and the first time stays', async (store) => {
    const record = newRecord('one');
    await store.insert(record);
    assert.equal(await store.revoke(record.id, 'acme', later(1)), true);
    assert.equal(await store.revoke(record.id, 'acme', later(2)), false);
    assert.equal(await store.revoke(record.id, 'acme', later(0), 1), false);
    await assertKept(store, [{ ...record, revokedAt: later(1) }]);
  }),

  promise('revoke: only for the same account', async (store) => {
    const record = newRecord('one');
    await store.insert(record);
    assert.equal(await store.revoke(record.id, 'other', later(1)), false);
    assert.equal(await store.revoke(record.id, 'other', later(1), 1), false);
    await assertKept(store, [record]);
  }),

  promise('revoke: only over the version that is given', async (store) => {
    const record = newRecord('one', { version: 2 });
    await store.insert(record);
    assert.equal(await store.revoke(record.id, 'acme', later(1), 1), false);
    assert.equal(await store.revoke(record.id, 'acme', later(1), 3), false);
    await assertKept(store, [record]);
    assert.equal(await store.revoke(record.id, 'acme', later(1), 2), true);
    await assertKept(store, [{ ...record, revokedAt: later(1) }]);
  }),

  promise('revoke: of a record that is not there does nothing', async (store) => {
    assert.equal(await store.revoke(idOf('absent'), 'acme', later(1)), false);
    assert.equal(await store.revoke(idOf('absent'), 'acme', later(1), 1), false);
    assert.deepEqual(await store.find([idOf('absent')]), [undefined]);
  }),

  promise('revoke: does not judge an expiry', async (store) => {
    const record = newRecord('one', { createdAt: LONG_AGO, expiresAt: LONG_AGO });
    await store.insert(record);
    assert.equal(await store.revoke(record.id, 'acme', later(1)), true);
    await assertKept(store, [{ ...record, revokedAt: later(1) }]);
  }),

  promise('revoke: is never undone', async (store) => {
    const record = newRecord('one');
    await store.insert(record);
    await store.revoke(record.id, 'acme', later(1));
    for (const version of [1, 2, 3]) {
      assert.equal(await store.replace({ ...record, version, revokedAt: undefined }), false);
    }
    await assertTaken(store, record);
    await assertKept(store, [{ ...record, revokedAt: later(1) }]);
  }),

  promise('revoke: of 100 at once exactly one wins', async (store) => {
    const record = newRecord('one');
    await store.insert(record);
    const outcomes = await Promise.all(
      range(100).map((ms) => store.revoke(record.id, 'acme', later(ms))),
    );
    assert.equal(outcomes.filter(Boolean).length, 1);
    await assertKept(store, [{ ...record, revokedAt: later(outcomes.indexOf(true)) }]);
  }),

  promise(
    'revokeAll: marks and counts what is not revoked, and nothing of others',
    async (store) => {
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
      assert.equal(await store.revokeAll('acme', later(2)), 3);
      assert.equal(await store.revokeAll('acme', later(3)), 0);
      assert.equal(await store.revokeAll('nobody', later(3)), 0);
      await assertKept(store, [
        ...open.map((record) => ({ ...record, revokedAt: later(2) })),
        ...others,
      ]);
    },
  ),

  promise('purge: removes what ended strictly before the instant', async (store) => {
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
    assert.equal(await store.purge(ends, 100), gone.length);
    assert.equal(await store.purge(ends, 100), 0);
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

  promise('purge: goes in steps of at most so many, over all accounts', async (store) => {
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
      assert.equal(await store.purge(later(0), 3), removed);
      assert.equal(await left(), rest);
    }
    await assertKept(store, live);
  }),

  promise('purge: a later one finds what ended since', async (store) => {
    const records = range(6).map((index) => newRecord(`n${index}`));
    await insertAll(store, records);
    assert.equal(await store.purge(later(1), 2), 0);
    for (const [step, label] of ['n4', 'n0', 'n5', 'n1'].entries()) {
      await store.revoke(idOf(label), 'acme', later(step));
      assert.equal(await store.purge(later(step + 1), 1), 1);
      assert.equal(await store.purge(later(step + 1), 1), 0);
    }
    await assertKept(store, [records[2], records[3]] as TokenRecord[]);
    assert.equal(await store.purge(later(2 * DAY), 10), 2);
  }),

  promise('purge: several at once count each record once', async (store) => {
    const dead = range(12).map((index) => newRecord(`d${index}`, { expiresAt: LONG_AGO }));
    await insertAll(store, [...dead, newRecord('live')]);
    const counts = await Promise.all(range(4).map(() => store.purge(later(0), 5)));
    counts.push(await store.purge(later(0), 100));
    assert.equal(
      counts.reduce((sum, count) => sum + count),
      12,
    );
    await assertKept(store, [newRecord('live')]);
  }),

  promise('purge: frees the id', async (store) => {
    const record = newRecord('one');
    await store.insert(record);
    await store.revoke(record.id, 'acme', LONG_AGO);
    await store.purge(later(0), 1);
    assert.equal(await store.replace({ ...record, version: 2 }), false);
    const again = newRecord('one', { account: 'other' });
    await store.insert(again);
    await assertKept(store, [again]);
    assertSame(await store.page(pageOf('other')), [again]);
  }),

  promise('bystanders: a write touches exactly the addressed record', async (store) => {
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
      () => store.purge(later(0), 100),
      () => store.revokeAll('nobody', later(0)),
    ];
    for (const write of writes) {
      await write();
      await assertKept(store, bystanders);
    }
    assert.deepEqual(await store.find([one.id]), [undefined]);
  }),

  promise('model: a long random run agrees with a simple reference', async (store) => {
    const [reference, draw] = [new ReferenceStore(), seeded(20_260_101)];
    const findAll: Call = (one) => one.find(RANDOM_LABELS.map(idOf));
    for (const step of range(500)) {
      for (const call of [drawCall(draw), findAll]) {
        const expected = { step, outcome: await outcome(call, reference) };
        assert.deepEqual({ step, outcome: await outcome(call, store) }, expected);
      }
    }
  }),
];

function promise(name: string, check: (store: TokenStore) => Promise<void>): StoreContractCase {
  return {
    name,
    async run(open) {
      const store = await open();
      try {
        await check(store);
      } finally {
        await store.close?.();
      }
    },
  };
}

const DAY = 86_400_000;
const START = Date.parse('2101-03-04T05:06:07.000Z');
/** Before all other dates here; still far in the future, so that nothing looks at the real time. */
const LONG_AGO = new Date('2100-12-31T23:59:59.999Z');

const ALIKE_ACCOUNTS = [
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

function later(ms: number): Date {
  return new Date(START + ms);
}

function idOf(label: string): TokenId {
  return label.padEnd(22, 'x') as TokenId;
}

function bytesOf(seed: number): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, index) => index * 31 + seed * 97);
}

/** Another one for each id. */
function digestOf(id: TokenId): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, index) => id.charCodeAt(index % id.length) + index);
}

function range(length: number): number[] {
  return Array.from({ length }, (_, index) => index);
}

function newRecord(label: string, fields: Partial<TokenRecord> = {}): TokenRecord {
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

function fullRecord(label: string, fields: Partial<TokenRecord> = {}): TokenRecord {
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
    ...fields,
  });
}

function pageOf(account: string, fields: Partial<PageQuery> = {}): PageQuery {
  return { account, limit: 100, liveAt: later(0), ...fields };
}

async function insertAll(store: TokenStore, records: readonly TokenRecord[]): Promise<void> {
  for (const record of records) await store.insert(record);
}

async function findOne(store: TokenStore, id: TokenId): Promise<TokenRecord> {
  const [found] = await store.find([id]);
  assert.ok(found !== undefined, `${id} is not there`);
  return found;
}

async function pagedIds(store: TokenStore, query: PageQuery): Promise<TokenId[]> {
  return (await store.page(query)).map((record) => record.id);
}

/** The ids of all pages from a place on. */
async function walk(store: TokenStore, query: PageQuery): Promise<TokenId[]> {
  const records = await store.page(query);
  const last = records.at(-1);
  if (last === undefined) return [];
  const after = { createdAt: last.createdAt, id: last.id };
  return [...records.map((record) => record.id), ...(await walk(store, { ...query, after }))];
}

function newestFirst(records: readonly TokenRecord[]): TokenRecord[] {
  return [...records].sort(
    (a, b) => b.createdAt.getTime() - a.createdAt.getTime() || (a.id < b.id ? 1 : -1),
  );
}

/** A record as plain JSON, without absent fields. */
function facts(record: TokenRecord | undefined): unknown {
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
    }),
  );
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function assertSame(
  actual: readonly (TokenRecord | undefined)[],
  expected: readonly (TokenRecord | undefined)[],
): void {
  assert.equal(actual.length, expected.length);
  // One by one: the difference of two long lists would take seconds to print.
  for (const [index, record] of actual.entries()) {
    assert.deepEqual(facts(record), facts(expected[index]));
  }
}

/** Asks for the records together and one by one: stores may read these differently. */
async function assertKept(store: TokenStore, records: readonly TokenRecord[]): Promise<void> {
  assertSame(await store.find(records.map((record) => record.id)), records);
  for (const record of records) assertSame(await store.find([record.id]), [record]);
}

async function assertTaken(store: TokenStore, record: TokenRecord): Promise<void> {
  await assert.rejects(store.insert(record), { name: 'TokenError', code: 'id_taken' });
}

/** Does to a value, as deep as it goes, whatever its owner could do to it. */
function spoil(value: object): void {
  if (value instanceof Date) value.setTime(0);
  else if (value instanceof Uint8Array) value.fill(0);
  else {
    for (const [name, member] of Object.entries(value)) {
      if (typeof member === 'object' && member !== null) spoil(member);
      // What is frozen stays as it is, which is as good as a copy.
      Reflect.set(value, name, 'spoiled');
    }
    Reflect.set(value, 'added', 'spoiled');
  }
}

function deepFreeze<Value extends object>(value: Value): Value {
  for (const member of Object.values(value)) {
    if (typeof member === 'object' && member !== null) deepFreeze(member);
  }
  // A typed array with elements cannot be frozen.
  return value instanceof Uint8Array ? value : Object.freeze(value);
}

/** The contract in its plainest form: what a random run is compared with. */
class ReferenceStore implements TokenStore {
  readonly #records = new Map<TokenId, TokenRecord>();

  async insert(record: TokenRecord): Promise<void> {
    if (this.#records.has(record.id)) throw new TokenError('id_taken', 'this id is taken');
    this.#records.set(record.id, record);
  }

  async find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]> {
    return ids.map((id) => this.#records.get(id));
  }

  async page({ account, after, limit, liveAt }: PageQuery): Promise<TokenRecord[]> {
    const live = this.#open(account).filter((record) => record.expiresAt > liveAt);
    const isNext = (record: TokenRecord): boolean => after === undefined || isAfter(record, after);
    return newestFirst(live).filter(isNext).slice(0, limit);
  }

  async replace(next: TokenRecord): Promise<boolean> {
    const kept = this.#open(next.account).find((record) => record.id === next.id);
    if (kept?.version !== next.version - 1) return false;
    this.#records.set(next.id, next);
    return true;
  }

  async revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean> {
    const kept = this.#open(account).find((record) => record.id === id);
    if (kept === undefined || (version ?? kept.version) !== kept.version) return false;
    this.#records.set(id, { ...kept, revokedAt: at });
    return true;
  }

  async revokeAll(account: string, at: Date): Promise<number> {
    const open = this.#open(account);
    for (const record of open) this.#records.set(record.id, { ...record, revokedAt: at });
    return open.length;
  }

  async purge(before: Date, limit: number): Promise<number> {
    const ended = [...this.#records.values()].filter(
      ({ expiresAt, revokedAt }) => expiresAt < before || (revokedAt ?? before) < before,
    );
    for (const { id } of ended.slice(0, limit)) this.#records.delete(id);
    return Math.min(limit, ended.length);
  }

  #open(account: string): TokenRecord[] {
    return [...this.#records.values()].filter(
      (record) => record.account === account && record.revokedAt === undefined,
    );
  }
}

/** Whether a record comes after a place in a list that is newest first. */
function isAfter(record: TokenRecord, { createdAt, id }: Position): boolean {
  const gap = record.createdAt.getTime() - createdAt.getTime();
  return gap < 0 || (gap === 0 && record.id < id);
}

type Call = (store: TokenStore) => Promise<unknown>;
/** A whole number from 0 to below the given one. */
type Draw = (below: number) => number;

/** The same numbers for the same seed (mulberry32): a failure can be looked at again. */
function seeded(seed: number): Draw {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const RANDOM_LABELS = range(24).map((index) => `${'aAbB'[index % 4]}${index}`);

function drawCall(draw: Draw): Call {
  const label = RANDOM_LABELS[draw(RANDOM_LABELS.length)] as string;
  const account = ['acme', 'acme', 'acme', 'Acme'][draw(4)] as string;
  const version = 1 + draw(3);
  const [at, before] = [later(draw(60)), later(draw(30))];
  const [createdAt, expiresAt] = [later(draw(5)), later(20 + draw(80))];
  const scopes = range(1 + draw(3)).map((index) => `GET:shop.example/${index}`);
  const record = newRecord(label, { account, version, createdAt, expiresAt, scopes });
  const next = { ...record, version: version + 1 };
  const position = { createdAt, id: record.id };
  const query = { account, limit: 1 + draw(6), liveAt: at };
  // The frequent ones several times. Which records a purge with a small limit takes is up to the
  // store, so that the random one has none.
  const calls: readonly Call[] = [
    (store) => store.insert(record),
    (store) => store.insert({ ...record, version: 1 }),
    (store) => store.insert({ ...record, version: 1 }),
    (store) => store.replace(next),
    (store) => store.replace({ ...next, version: 2 }),
    (store) => store.replace({ ...next, version: 2 }),
    (store) => store.revoke(record.id, account, at, version),
    (store) => store.page(query),
    (store) => store.page({ ...query, after: position }),
    (store) => store.page({ ...query, after: position }),
    (store) => store.purge(before, 1000),
    draw(4) === 0
      ? (store) => store.revokeAll(account, at)
      : (store) => store.revoke(record.id, account, at),
  ];
  return calls[draw(calls.length)] as Call;
}

/** What a call came to, as plain JSON: its answer, or the code of its refusal. */
async function outcome(call: Call, store: TokenStore): Promise<unknown> {
  try {
    const answer = await call(store);
    return Array.isArray(answer) ? answer.map(facts) : answer;
  } catch (error) {
    if (isTokenError(error)) return error.code;
    throw error;
  }
}
