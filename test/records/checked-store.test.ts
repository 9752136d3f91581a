import { describe, expect, it } from 'vitest';
import { TokenError } from '../../src/errors.ts';
import { CheckedStore } from '../../src/records/checked-store.ts';
import { MemoryTokenStore } from '../../src/stores/memory.ts';
import { newRecord } from '../stores/support.ts';
import { codeOf, RecordingStore, refusalOf } from '../support.ts';

const first = newRecord('first');
const second = newRecord('second');
const ids = [first.id, second.id];

/** A store with two records, what was reported, and the same behind checks. */
async function setUp() {
  const store = new RecordingStore(new MemoryTokenStore(), { local: false });
  const quota = { tokens: 10, liveAt: first.createdAt };
  for (const record of [first, second]) await store.insert(record, quota);
  store.takeCalls();
  const failures: string[] = [];
  const checked = checkedOf(store, failures);
  return { store, checked, failures };
}

function checkedOf(store: ConstructorParameters<typeof CheckedStore>[0], failures: string[] = []) {
  const onFailure = ({ code }: { readonly code: string }) => void failures.push(code);
  return new CheckedStore(store, { isLocal: false, deadlineMs: 60_000, onFailure });
}

describe('reads of several records', () => {
  it('are one call, and give each its record', async () => {
    const { store, checked, failures } = await setUp();

    expect(await checked.find(ids)).toEqual([first, second]);
    expect(store.takeCalls()).toEqual(['find']);
    expect(failures).toEqual([]);
  });

  it.each([
    ['no list', { 0: first, 1: second, length: 2 }],
    ['too few', [first]],
    ['too many', [first, second, first]],
    ['nothing', undefined],
  ])('that get %s are made one by one', async (_, answer) => {
    const { store, checked, failures } = await setUp();
    store.break('find', async (asked: readonly string[]) =>
      asked.length === 2 ? answer : store.inner.find(asked as never),
    );

    expect(await checked.find(ids)).toEqual([first, second]);
    expect(store.takeCalls()).toEqual(['find', 'find', 'find']);
    expect(failures).toContain('store_corrupt');
  });

  it('show the others where one is not a record', async () => {
    const { store, checked, failures } = await setUp();
    store.break('find', async () => [first, { ...second, expiresAt: 'never' }]);
    const [found, corrupt] = await checked.find(ids);

    expect(found).toEqual(first);
    expect(corrupt).toMatchObject({ code: 'store_corrupt' });
    expect(failures).toEqual(['store_corrupt']);
  });

  it('show the others where one cannot be read', async () => {
    const { store, checked } = await setUp();
    store.break('find', async (asked: readonly string[]) => {
      if (asked.includes(second.id)) throw new Error('a part of the store is down');
      return [first];
    });
    const [found, failed] = await checked.find(ids);

    expect(found).toEqual(first);
    expect(failed).toMatchObject({ code: 'store_unavailable' });
  });
});

describe('an answer of purge', () => {
  it.each([
    ['a number', 2, { count: 2, ids: [] }],
    ['a number and ids', { count: 2, ids }, { count: 2, ids }],
    [
      'ids that are none among them',
      { count: 2, ids: [first.id, 'x', 7] },
      { count: 2, ids: [first.id] },
    ],
  ])('may be %s', async (_, answer, expected) => {
    const { store, checked } = await setUp();
    store.break('purge', async () => answer);

    expect(await checked.purge(first.createdAt, 10)).toEqual(expected);
  });

  it.each([
    ['nothing', undefined],
    ['a negative number', -1],
    ['a fraction', 0.5],
    ['ids alone', { ids }],
    ['a number alone', { count: 2 }],
    ['ids that are no list', { count: 2, ids: first.id }],
    ['no number', { count: '2', ids }],
  ])('must not be %s', async (_, answer) => {
    const { store, checked } = await setUp();
    store.break('purge', async () => answer);

    expect(await codeOf(checked.purge(first.createdAt, 10))).toBe('store_corrupt');
  });
});

describe('an answer of scan', () => {
  const scanning = (answer: unknown) =>
    checkedOf(Object.assign(new MemoryTokenStore(), { scan: async () => answer as never }));
  const query = { limit: 10 };

  it.each([
    ['records and a position', { records: [first, second], next: 'here' }],
    ['the last records', { records: [first] }],
    ['none', { records: [] }],
  ])('may be %s', async (_, answer) => {
    expect(await scanning(answer).scan(query)).toEqual(answer);
  });

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a list', [first]],
    ['records that are no list', { records: { 0: first } }],
    ['a record that is none among them', { records: [first, { ...second, scopes: 'all' }] }],
    ['a position that is no text', { records: [first], next: 7 }],
    [
      'a getter that throws',
      {
        get records() {
          throw new Error('no');
        },
      },
    ],
  ])('must not be %s', async (_, answer) => {
    expect(await codeOf(scanning(answer).scan(query))).toBe('store_corrupt');
  });

  it('is missed by a store that cannot scan, which is a mistake of its host', async () => {
    const store = new MemoryTokenStore() as { scan?: unknown };
    store.scan = undefined;

    expect(await refusalOf(checkedOf(store as never).scan(query))).toMatchObject({
      code: 'invalid_options',
    });
  });
});

describe('a page', () => {
  const query = { account: first.account, limit: 10, liveAt: first.createdAt };

  it.each([
    ['no list', { 0: first }],
    ['nothing', undefined],
    ['a record of another account', [first, { ...second, account: 'other' }]],
    ['something that is no record', [first, { ...second, digest: 'x' }]],
  ])('must not hold %s', async (_, answer) => {
    const { store, checked } = await setUp();
    store.break('page', async () => answer);

    expect(await codeOf(checked.page(query, 60_000 + performance.now()))).toBe('store_corrupt');
  });

  it('of children must not hold those of another token', async () => {
    const { store, checked } = await setUp();
    const child = { ...second, ancestors: [first.id] };
    store.break('page', async () => [child]);
    const ask = (parent: typeof first.id) =>
      checked.page({ ...query, parent }, 60_000 + performance.now());

    expect(await ask(first.id)).toEqual([child]);
    expect(await codeOf(ask(second.id))).toBe('store_corrupt');
  });
});

describe('an insertion', () => {
  const quota = { tokens: 10, liveAt: first.createdAt };

  it.each(['id_taken', 'quota_exceeded'] as const)('tells that it ended by %s', async (code) => {
    const { store, checked } = await setUp();
    store.break('insert', () => Promise.reject(new TokenError(code, 'no')));

    expect(await checked.insert(newRecord('third'), quota)).toBe(code);
  });

  it('that fails otherwise is an outage', async () => {
    const { store, checked } = await setUp();
    store.break('insert', () => Promise.reject(new TokenError('not_found', 'no')));

    expect(await codeOf(checked.insert(newRecord('third'), quota))).toBe('store_unavailable');
  });
});
