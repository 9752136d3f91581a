import assert from 'node:assert/strict';
import { MAX_COUNTED_SCOPES } from '../bounds.ts';
import {
  OTHER_SCOPES,
  type UsageDelta,
  type UsageRecord,
  type UsageStore,
  type UsageTotals,
  type UsedScope,
} from '../ports/usage-store.ts';
import type { TokenId } from '../token/record.ts';
import { contractCase } from './contract-case.ts';
import { idOf, farLater as later, range } from './records.ts';

/** One promise of a {@link UsageStore}, for any test runner. */
export interface UsageContractCase {
  /** The method and its promise: `add: sums up what is added`. */
  readonly name: string;
  /** Opens a store, checks the promise and closes the store. Rejects if the promise is broken. */
  run(open: () => UsageStore | Promise<UsageStore>): Promise<void>;
}

const ONE = idOf('one');
const TWO = idOf('two');
const ORDERS = 'GET:shop.example/orders';
const ITEMS = 'GET:shop.example/items';
const ALIKE_SCOPES = [
  ORDERS,
  'GET:shop.example/Orders',
  'GET:shop.example/orders ',
  'GET:shop.example/order',
  'GET:shop.example/ord%',
  'GET:shop.example/orders%2F',
  'GET:shop.example/ord\u00e9rs',
  'GET:shop.example/orde\u0301rs',
];
const ALIKE_IDS = ['alike', 'Alike', 'ALIKE', 'alikeX'].map(idOf);

const test = contractCase<UsageStore>;

/**
 * All promises of a usage store, as a list of cases for any test runner.
 *
 * A store passes when no case rejects and none is skipped. `open` must return an empty store each
 * time. No case reads the real time or waits.
 *
 * @example
 * describe('my usage store', () => {
 *   it.each(usageContract)('$name', (promise) => promise.run(() => new MyUsageStore()));
 * });
 */
export const usageContract: readonly UsageContractCase[] = [
  test('add: stores uses and the time of the last one, to the millisecond', async (store) => {
    await store.add([use(ONE, ORDERS, 3, 789)]);
    await assertUsage(store, ONE, { [ORDERS]: [3, 789] });
  }),

  test('add: counts refusals separately from uses', async (store) => {
    await store.add([{ id: ONE, refusals: 2 }, use(TWO, ORDERS, 1, 0)]);
    await assertUsage(store, ONE, {}, 2);
    await assertUsage(store, TWO, { [ORDERS]: [1, 0] });
    await store.add([use(ONE, ORDERS, 1, 5), { id: TWO, refusals: 1 }]);
    await assertUsage(store, ONE, { [ORDERS]: [1, 5] }, 2);
    await assertUsage(store, TWO, { [ORDERS]: [1, 0] }, 1);
  }),

  test('add: sums up several batches', async (store) => {
    await store.add([use(ONE, ORDERS, 1, 1), use(ONE, ITEMS, 10, 2), { id: ONE, refusals: 3 }]);
    await store.add([use(ONE, ORDERS, 2, 3), { id: ONE, refusals: 4 }]);
    await assertUsage(store, ONE, { [ORDERS]: [3, 3], [ITEMS]: [10, 2] }, 7);
  }),

  test('add: sums up a scope that one batch has twice', async (store) => {
    const refusals = { id: ONE, refusals: 1 };
    await store.add([use(ONE, ORDERS, 1, 9), refusals, use(ONE, ORDERS, 5, 4), refusals]);
    await assertUsage(store, ONE, { [ORDERS]: [6, 9] }, 2);
  }),

  test('add: never moves the time of the last use backwards', async (store) => {
    await store.add([use(ONE, ORDERS, 1, 1000)]);
    await store.add([use(ONE, ORDERS, 1, 999)]);
    await assertUsage(store, ONE, { [ORDERS]: [2, 1000] });
    await store.add([use(ONE, ORDERS, 1, 1001)]);
    await assertUsage(store, ONE, { [ORDERS]: [3, 1001] });
  }),

  test('add: changes nothing with an empty batch', async (store) => {
    await store.add([use(ONE, ORDERS, 1, 0)]);
    await store.add([]);
    await assertUsage(store, ONE, { [ORDERS]: [1, 0] });
  }),

  test('add: loses no count of 100 concurrent calls', async (store) => {
    const batches = range(100).map((ms) => [use(ONE, ORDERS, 1, ms), { id: TWO, refusals: 1 }]);
    await Promise.all(batches.map((batch) => store.add(batch)));
    await assertUsage(store, ONE, { [ORDERS]: [100, 99] });
    await assertUsage(store, TWO, {}, 100);
  }),

  test('add: takes a batch of 1000', async (store) => {
    const ids = range(1000).map((index) => idOf(`n${index}`));
    await store.add(ids.map((id, index) => use(id, ORDERS, index + 1, index)));
    const usages = await store.read(ids);
    assert.deepEqual(
      usages.map((usage) => usage?.scopes[0]?.uses),
      range(1000).map((index) => index + 1),
    );
  }),

  test('add: adds large counts exactly', async (store) => {
    const most = 2 ** 52;
    await store.add([use(ONE, ORDERS, most, 0), { id: ONE, refusals: most }]);
    await store.add([use(ONE, ORDERS, 1, 0), { id: ONE, refusals: 1 }]);
    await assertUsage(store, ONE, { [ORDERS]: [most + 1, 0] }, most + 1);
  }),

  test('add: compares scopes byte by byte', async (store) => {
    await store.add(ALIKE_SCOPES.map((scope, index) => use(ONE, scope, index + 1, index)));
    const expected = ALIKE_SCOPES.map((scope, index) => [scope, [index + 1, index]] as const);
    await assertUsage(store, ONE, Object.fromEntries(expected));
  }),

  test('add: compares ids byte by byte', async (store) => {
    await store.add(ALIKE_IDS.map((id, index) => use(id, ORDERS, index + 1, index)));
    for (const [index, id] of ALIKE_IDS.entries()) {
      await assertUsage(store, id, { [ORDERS]: [index + 1, index] });
    }
  }),

  test('counts what was derived from a token apart from the token', async (store) => {
    const derived = `${ONE}+` as TokenId;
    await store.add([use(ONE, ORDERS, 1, 0), use(derived, ORDERS, 2, 1), { id: ONE, refusals: 3 }]);
    await assertUsage(store, derived, { [ORDERS]: [2, 1] });
    assert.deepEqual(
      (await store.read([ONE, derived])).map((usage) => usage?.refusals),
      [3, 0],
    );
    await store.forget([derived]);
    assert.deepEqual((await store.read([derived, ONE])).map(Boolean), [false, true]);
  }),

  test('add: counts 256 scopes of a token separately and the rest together', async (store) => {
    const scopes = manyScopes(MAX_COUNTED_SCOPES + 2);
    const [first = '', ...others] = scopes;
    for (const scope of [first, ...others]) await store.add([use(ONE, scope, 1, 5)]);
    await store.add([use(ONE, first, 1, 6), use(ONE, scopes.at(-1) ?? '', 1, 7)]);
    const apart = scopes.slice(1, MAX_COUNTED_SCOPES).map((scope) => [scope, [1, 5]] as const);
    const counts = { ...Object.fromEntries(apart), [first]: [2, 6], [OTHER_SCOPES]: [3, 7] };
    await assertUsage(store, ONE, counts as Counts);
  }),

  test('add: counts 256 scopes separately also if they come in one batch', async (store) => {
    const scopes = manyScopes(MAX_COUNTED_SCOPES + 44);
    await store.add(scopes.map((scope) => use(ONE, scope, 1, 0)));
    const [usage] = await store.read([ONE]);
    const other = usage?.scopes.find(({ scope }) => scope === OTHER_SCOPES);
    assert.equal(usage?.scopes.length, MAX_COUNTED_SCOPES + 1);
    assert.equal(other?.uses, 44);
  }),

  test('add: limits the scopes of each token separately', async (store) => {
    await store.add(manyScopes(MAX_COUNTED_SCOPES + 1).map((scope) => use(ONE, scope, 1, 0)));
    await store.add([use(TWO, ORDERS, 1, 0)]);
    await assertUsage(store, TWO, { [ORDERS]: [1, 0] });
  }),

  test('add: keeps copies', async (store) => {
    const lastUsedAt = later(1);
    await store.add([{ id: ONE, scope: ORDERS, uses: 1, lastUsedAt }]);
    lastUsedAt.setTime(0);
    await assertUsage(store, ONE, { [ORDERS]: [1, 1] });
  }),

  test('read: answers in the order of the ids, also for one that comes twice', async (store) => {
    await store.add([use(ONE, ORDERS, 1, 0), use(TWO, ORDERS, 2, 0)]);
    const usages = await store.read([TWO, idOf('none'), ONE, TWO]);
    const uses = usages.map((usage) => usage?.scopes[0]?.uses);
    assert.deepEqual(uses, [2, undefined, 1, 2]);
    assert.equal(usages[1], undefined);
  }),

  test('read: answers no ids with nothing', async (store) => {
    assert.deepEqual(await store.read([]), []);
  }),

  test('read: returns copies', async (store) => {
    await store.add([use(ONE, ORDERS, 1, 1)]);
    const [usage] = await store.read([ONE]);
    usage?.scopes[0]?.lastUsedAt.setTime(0);
    await assertUsage(store, ONE, { [ORDERS]: [1, 1] });
  }),

  test('scan: finds each token with counts, in steps of any size', async (store) => {
    if (store.scan === undefined) return;
    const ids = range(25).map((index) => idOf(`n${index}`));
    await store.add(ids.map((id) => use(id, ORDERS, 1, 1)));
    await store.add([use(ids[0] as TokenId, ITEMS, 1, 1), { id: ONE, refusals: 1 }]);
    for (const limit of [1, 7, 26, 1000]) {
      assert.deepEqual(await scanned(store, limit), [...ids, ONE].sort());
    }
    await store.forget(ids.slice(1));
    assert.deepEqual(await scanned(store, 2), [ids[0] as TokenId, ONE].sort());
  }),

  test('scan: finds nothing in an empty store', async (store) => {
    if (store.scan === undefined) return;
    await store.since?.();
    assert.deepEqual(await scanned(store, 10), []);
  }),

  test('totals: sums up what read returns, in the order of the ids', async (store) => {
    await store.add([use(ONE, ORDERS, 3, 789), use(ONE, ITEMS, 4, 5), { id: TWO, refusals: 2 }]);
    await store.add([use(ONE, ITEMS, 1, 6), { id: ONE, refusals: 7 }]);
    const ids = [TWO, idOf('none'), ONE, TWO];
    await assertTotals(store, ids, [
      { uses: 0, refusals: 2 },
      undefined,
      { uses: 8, refusals: 7, lastUsedAt: later(789) },
      { uses: 0, refusals: 2 },
    ]);
    await store.forget([ONE]);
    await assertTotals(store, [ONE], [undefined]);
  }),

  test('totals: counts all scopes, also those that are not counted separately', async (store) => {
    const scopes = manyScopes(MAX_COUNTED_SCOPES + 10);
    await store.add(scopes.map((scope, index) => use(ONE, scope, 2, index)));
    const lastUsedAt = later(scopes.length - 1);
    await assertTotals(store, [ONE], [{ uses: 2 * scopes.length, refusals: 0, lastUsedAt }]);
  }),

  test('totals: answers for a thousand ids, and for none', async (store) => {
    const ids = range(1000).map((index) => idOf(`n${index}`));
    await store.add(ids.map((id, index) => use(id, ORDERS, index + 1, index)));
    const expected = ids.map((_, index) => {
      return { uses: index + 1, refusals: 0, lastUsedAt: later(index) };
    });
    await assertTotals(store, ids, expected);
    await assertTotals(store, [], []);
  }),

  test('forget: removes uses and refusals of these tokens only', async (store) => {
    for (const id of [ONE, TWO]) await store.add([use(id, ORDERS, 1, 0), { id, refusals: 1 }]);
    await store.forget([ONE, idOf('none')]);
    assert.deepEqual(await store.read([ONE]), [undefined]);
    await assertUsage(store, TWO, { [ORDERS]: [1, 0] }, 1);
  }),

  test('forget: lets a token be counted again from zero', async (store) => {
    await store.add([use(ONE, ORDERS, 5, 9), { id: ONE, refusals: 1 }]);
    await store.forget([ONE]);
    await store.add([use(ONE, ORDERS, 1, 1)]);
    await assertUsage(store, ONE, { [ORDERS]: [1, 1] });
  }),

  test('forget: removes nothing without ids', async (store) => {
    await store.add([use(ONE, ORDERS, 1, 0)]);
    await store.forget([]);
    await assertUsage(store, ONE, { [ORDERS]: [1, 0] });
  }),

  test('since: stays the same, whatever is added or forgotten', async (store) => {
    const since = await store.since?.();
    // The service does without it, so a store need not have it.
    if (since === undefined) return;
    assert.ok(Number.isFinite(since.getTime()));
    const ms = since.getTime();
    await store.add([use(ONE, ORDERS, 1, 0), { id: TWO, refusals: 1 }]);
    assert.equal((await store.since?.())?.getTime(), ms);
    await store.forget([ONE, TWO]);
    since.setTime(0);
    assert.equal((await store.since?.())?.getTime(), ms);
  }),
];

/** By scope: the number of uses, and the milliseconds of the last one. */
type Counts = Readonly<Record<string, readonly [uses: number, ms: number]>>;

function use(id: TokenId, scope: string, uses: number, ms: number): UsageDelta {
  return { id, scope, uses, lastUsedAt: later(ms) };
}

function manyScopes(count: number): string[] {
  return range(count).map((index) => `GET:shop.example/${index}`);
}

async function assertUsage(
  store: UsageStore,
  id: TokenId,
  counts: Counts,
  refusals = 0,
): Promise<void> {
  const [usage] = await store.read([id]);
  const scopes = Object.entries(counts).map(([scope, [uses, ms]]) => {
    return { scope, uses, lastUsedAt: later(ms) };
  });
  assert.deepEqual(plain(usage), plain({ refusals, scopes }));
}

/** More than a store takes that also looks at what is not its own, such as all keys of a server. */
const MAX_STEPS = 1_000_000;

/** The ids of a whole pass, each once. */
async function scanned(store: UsageStore, limit: number): Promise<TokenId[]> {
  const ids = new Set<TokenId>();
  let after: string | undefined;
  let steps = 0;
  do {
    steps += 1;
    assert.ok(steps <= MAX_STEPS, `scan goes on after ${MAX_STEPS} steps`);
    const step = await store.scan?.({ after, limit });
    for (const id of step?.ids ?? []) ids.add(id);
    after = step?.next;
  } while (after !== undefined);
  return [...ids].sort();
}

/** The service does without it, so a store need not have it. */
async function assertTotals(
  store: UsageStore,
  ids: readonly TokenId[],
  expected: readonly (UsageTotals | undefined)[],
): Promise<void> {
  const answer = await store.totals?.(ids);
  if (answer === undefined) return;
  const sums = answer.map((each) => each && [each.uses, each.refusals, each.lastUsedAt?.getTime()]);
  const wanted = expected.map(
    (each) => each && [each.uses, each.refusals, each.lastUsedAt?.getTime()],
  );
  assert.deepEqual(sums, wanted);
}

/** The members of the port alone, sorted, in plain objects: a driver may return other prototypes. */
function plain(usage: UsageRecord | undefined): unknown {
  if (usage === undefined) return undefined;
  const scopes = usage.scopes.map(({ scope, uses, lastUsedAt }) => ({ scope, uses, lastUsedAt }));
  const byScope = (one: UsedScope, other: UsedScope) => (one.scope < other.scope ? -1 : 1);
  return { refusals: usage.refusals, scopes: scopes.sort(byScope) };
}
