import { describe, expect, it } from 'vitest';
import { TokenError } from '../../src/errors.ts';
import { CheckedStore } from '../../src/records/checked-store.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { newRecord } from '../stores/support.ts';
import { codeOf, QUIET, RecordingStore, refusalOf } from '../support.ts';

const first = newRecord('first');
const second = newRecord('second');
const ids = [first.id, second.id];

/** A store with two records, the checked store around it, and the failures that it reported. */
async function setUp() {
  const store = new RecordingStore(new MemoryTokenStore(), { local: false });
  for (const record of [first, second]) await store.insert(record);
  store.takeCalls();
  const failures: string[] = [];
  const checked = checkedOf(store, failures);
  return { store, checked, failures };
}

function checkedOf(store: ConstructorParameters<typeof CheckedStore>[0], failures: string[] = []) {
  const onFailure = ({ code }: { readonly code: string }) => void failures.push(code);
  return new CheckedStore(store, {
    isLocal: false,
    deadlineMs: 60_000,
    health: { ...QUIET, onFailure },
  });
}

describe('reads of several records', () => {
  it('take one store call, and return each record', async () => {
    const { store, checked, failures } = await setUp();

    expect(await checked.find(ids)).toEqual([first, second]);
    expect(store.takeCalls()).toEqual(['find']);
    expect(failures).toEqual([]);
  });

  it.each([
    ['an object', { 0: first, 1: second, length: 2 }],
    ['too few records', [first]],
    ['too many records', [first, second, first]],
    ['undefined', undefined],
  ])('are retried one by one if the store returns %s', async (_, answer) => {
    const { store, checked, failures } = await setUp();
    store.break('find', async (asked: readonly string[]) =>
      asked.length === 2 ? answer : store.inner.find(asked as never),
    );

    expect(await checked.find(ids)).toEqual([first, second]);
    expect(store.takeCalls()).toEqual(['find', 'find', 'find']);
    expect(failures).toContain('store_corrupt');
  });

  it('return the valid records if another one is malformed, which its caller reports', async () => {
    const { store, checked, failures } = await setUp();
    store.break('find', async () => [first, { ...second, expiresAt: 'never' }]);
    const [found, corrupt] = await checked.find(ids);

    expect(found).toEqual(first);
    expect(corrupt).toMatchObject({ code: 'store_corrupt' });
    expect(failures).toEqual([]);
  });

  it('return the other records if one cannot be read', async () => {
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

describe.each(['purge', 'prune'] as const)('an answer of %s', (method) => {
  const remove = (checked: CheckedStore) => {
    const query = { account: 'acme', now: first.createdAt, minAgeMs: 0, limit: 10 };
    return method === 'purge' ? checked.purge(query) : checked.prune(query);
  };

  it.each([
    ['a number', 2, { count: 2, ids: [] }],
    ['a number and ids', { count: 2, ids }, { count: 2, ids }],
    [
      'a number and ids, of which it drops the malformed ones',
      { count: 2, ids: [first.id, 'x', 7] },
      { count: 2, ids: [first.id] },
    ],
  ])('can be %s', async (_, answer, expected) => {
    const { store, checked } = await setUp();
    store.break(method, async () => answer);

    expect(await remove(checked)).toEqual(expected);
  });

  it.each([
    ['undefined', undefined],
    ['a negative number', -1],
    ['a fraction', 0.5],
    ['ids alone', { ids }],
    ['a number alone', { count: 2 }],
    ['ids that are not a list', { count: 2, ids: first.id }],
    ['a count that is not a number', { count: '2', ids }],
  ])('is refused if it is %s', async (_, answer) => {
    const { store, checked } = await setUp();
    store.break(method, async () => answer);

    expect(await codeOf(remove(checked))).toBe('store_corrupt');
  });
});

describe('an answer of count', () => {
  const query = {
    account: 'acme',
    liveAt: first.createdAt,
    most: { live: 2, ended: 3 },
  };

  it.each([
    ['nothing', { live: 0, ended: 0 }],
    ['the most', { live: 2, ended: 3 }],
  ])('can be %s', async (_, answer) => {
    const { store, checked } = await setUp();
    store.break('count', async () => answer);

    expect(await checked.count(query)).toEqual(answer);
  });

  it.each([
    ['undefined', undefined],
    ['a number', 2],
    ['a count below 0', { live: -1, ended: 0 }],
    ['a fraction', { live: 0.5, ended: 0 }],
    ['one count', { live: 1 }],
    ['more than the most live ones', { live: 3, ended: 0 }],
    ['more than the most ended ones', { live: 0, ended: 4 }],
    ['text', { live: '1', ended: 0 }],
  ])('is refused if it is %s', async (_, answer) => {
    const { store, checked, failures } = await setUp();
    store.break('count', async () => answer);

    expect(await codeOf(checked.count(query))).toBe('store_corrupt');
    expect(failures).toEqual(['store_corrupt']);
  });

  it('has to come within the deadline', async () => {
    const store = new RecordingStore(new MemoryTokenStore(), { local: false });
    store.break('count', () => new Promise(() => {}));
    const checked = new CheckedStore(store, { isLocal: false, deadlineMs: 1, health: QUIET });

    expect(await codeOf(checked.count(query))).toBe('store_unavailable');
  });
});

describe('an answer of hasReached', () => {
  const asking = (hasReached: unknown) =>
    checkedOf(Object.assign(new MemoryTokenStore(), { hasReached } as object));
  const ask = (checked: CheckedStore) => checked.hasReached(first.createdAt, first.expiresAt);

  it.each([true, false])('can be %s', async (answer) => {
    expect(await ask(asking(async () => answer))).toBe(answer);
  });

  it('is undefined if the store does not know', async () => {
    expect(await ask(checkedOf(new MemoryTokenStore()))).toBeUndefined();
  });

  it.each([[undefined], [1], ['yes'], [null]])('is refused if it is %o', async (answer) => {
    expect(await codeOf(ask(asking(async () => answer)))).toBe('store_corrupt');
  });

  it('is unknown if the store fails', async () => {
    const failing = asking(() => Promise.reject(new Error('down')));

    expect(await codeOf(ask(failing))).toBe('store_unavailable');
  });
});

describe('an answer of scan', () => {
  const scanning = (answer: unknown) =>
    checkedOf(Object.assign(new MemoryTokenStore(), { scan: async () => answer as never }));
  const query = { limit: 10 };

  it.each([
    ['records and a position', { records: [first, second], next: 'here' }],
    ['the last records', { records: [first] }],
    ['no records', { records: [] }],
  ])('can be %s', async (_, answer) => {
    expect(await scanning(answer).scan(query)).toEqual(answer);
  });

  it.each([
    ['undefined', undefined],
    ['null', null],
    ['a list', [first]],
    ['records that are not a list', { records: { 0: first } }],
    ['records with a malformed one', { records: [first, { ...second, scopes: 'all' }] }],
    ['a position that is not a string', { records: [first], next: 7 }],
    [
      'a getter that throws',
      {
        get records() {
          throw new Error('no');
        },
      },
    ],
  ])('is refused if it is %s', async (_, answer) => {
    expect(await codeOf(scanning(answer).scan(query))).toBe('store_corrupt');
  });

  it('needs a store with scan, and fails with invalid_options otherwise', async () => {
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
    ['is not a list', { 0: first }],
    ['is undefined', undefined],
    ['contains a record of another account', [first, { ...second, account: 'other' }]],
    ['contains a malformed record', [first, { ...second, digest: 'x' }]],
  ])('is refused if it %s', async (_, answer) => {
    const { store, checked } = await setUp();
    store.break('page', async () => answer);

    expect(await codeOf(checked.page(query, 60_000 + performance.now()))).toBe('store_corrupt');
  });

  it('of children is refused if it contains a child of another token', async () => {
    const { store, checked } = await setUp();
    const child = { ...second, ancestors: [first.id] };
    store.break('page', async () => [child]);
    const ask = (parent: typeof first.id) =>
      checked.page({ ...query, parent }, 60_000 + performance.now());

    expect(await ask(first.id)).toEqual([child]);
    expect(await codeOf(ask(second.id))).toBe('store_corrupt');
  });

  it('of descendants is refused if it contains one of another root', async () => {
    const { store, checked } = await setUp();
    const child = { ...second, ancestors: [first.id, second.id] };
    store.break('page', async () => [child]);
    const ask = (root: typeof first.id) =>
      checked.page({ ...query, root }, 60_000 + performance.now());

    expect(await ask(first.id)).toEqual([child]);
    expect(await codeOf(ask(second.id))).toBe('store_corrupt');
  });

  it.each([
    ['of a revoked record', { revokedAt: first.createdAt }, true],
    ['of another one', {}, false],
  ])('may have empty lists %s: $2', async (_, fields, isGood) => {
    const { store, checked } = await setUp();
    const empty = { ...first, scopes: [], requested: [], ...fields };
    store.break('page', async () => [empty]);
    const page = checked.page(query, 60_000 + performance.now());

    if (isGood) expect(await page).toEqual([empty]);
    else expect(await codeOf(page)).toBe('store_corrupt');
  });
});

describe('an insertion', () => {
  it('returns id_taken', async () => {
    const { store, checked } = await setUp();
    store.break('insert', () => Promise.reject(new TokenError('id_taken', 'no')));

    expect(await checked.insert(newRecord('third'))).toBe('id_taken');
  });

  it.each(['not_found', 'quota_exceeded'] as const)(
    'that fails with %s rejects with store_unavailable',
    async (code) => {
      const { store, checked } = await setUp();
      store.break('insert', () => Promise.reject(new TokenError(code, 'no')));

      expect(await codeOf(checked.insert(newRecord('third')))).toBe('store_unavailable');
    },
  );
});
