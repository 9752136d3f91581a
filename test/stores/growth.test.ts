// What calls on a token cost this process, and pages of a large account, over each database.
import { describe, expect, it } from 'vitest';
import { type PageOrder, positionOf, type TokenStore } from '../../src/ports/token-store.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import {
  isListed,
  LISTED_STATES,
  type ListedState,
  type TokenId,
  type TokenRecord,
} from '../../src/token/record.ts';
import { SORTED, slopeOfCalls } from '../growth.ts';
import {
  GENERATIONS,
  type Held,
  heldBy,
  STORED_SCOPES,
  serviceOver,
  VERBS,
} from '../service/growth-verbs.ts';
import { ENGINES, opened } from './engine-places.ts';
import { CREATED, newRecord } from './support.ts';

const SERVERS = ENGINES.filter(({ name }) => name !== 'SQLite' && name !== 'Redis Cluster');

describe.each(SERVERS)('the cost of calls on a token over $name', ({ isMissing, newPlace }) => {
  it.skipIf(isMissing).each(GENERATIONS)(
    'grows no faster than its scopes: each verb, generation %d',
    async (generation) => {
      const held = new Map<number, Held>();
      for (const size of STORED_SCOPES) {
        const tokens = serviceOver(opened(await newPlace()));
        held.set(size, await heldBy(tokens, generation, size));
      }

      const steep: string[] = [];
      for (const [name, call] of VERBS) {
        const surface = async (size: number) => () => call(held.get(size) as Held);
        const slope = await slopeOfCalls(surface, STORED_SCOPES, SORTED);
        if (slope >= SORTED) steep.push(`${name}: ${slope.toFixed(2)}`);
      }

      expect(steep).toEqual([]);
    },
    600_000,
  );
});

const TOKENS = 100_000;
const INSERTED_TOGETHER = 500;
const LIMIT = 50;
/** The least of these counts, so that other work on the machine does not. */
const ROUNDS = 60;
const MAX_RATIO = 2;
const NOW = new Date(CREATED.getTime() + TOKENS);

/** Every second token is active; the orders have nothing to do with each other. */
function recordAt(index: number): TokenRecord {
  const state = index % 10;
  const spread = (index * 7919) % TOKENS;
  const hasExpired = state === 7 || state === 8 || (state === 9 && index % 20 === 9);
  return newRecord('one', {
    id: String((index * 104_729) % 1_000_003).padStart(22, '0') as TokenId,
    createdAt: new Date(CREATED.getTime() + index),
    expiresAt: new Date(NOW.getTime() + (hasExpired ? spread - TOKENS : spread + 1)),
    ...((state === 5 || state === 6) && { suspendedAt: CREATED }),
    ...(state === 9 && { revokedAt: CREATED }),
  });
}

const RECORDS = Array.from({ length: TOKENS }, (_, index) => recordAt(index));

async function fill(store: TokenStore): Promise<void> {
  for (let start = 0; start < TOKENS; start += INSERTED_TOGETHER) {
    const batch = RECORDS.slice(start, start + INSERTED_TOGETHER);
    await Promise.all(batch.map((record) => store.insert(record)));
  }
}

/** The record in the middle of a list. */
function middleOf(state: ListedState, order: PageOrder): TokenRecord {
  const listed = RECORDS.filter((record) => isListed(record, state, NOW.getTime()));
  const at = (record: TokenRecord) => positionOf(record, order).at.getTime();
  listed.sort((a, b) => at(a) - at(b));
  return listed[listed.length >> 1] as TokenRecord;
}

/** For each state the least time of a page by expiry, as a multiple of that of one by creation. */
async function ratiosOf(store: TokenStore): Promise<Map<string, number>> {
  const ratios = new Map<string, number>();
  for (const state of LISTED_STATES) {
    for (const place of ['first', 'middle'] as const) {
      const pages = (['created', 'expire'] as const).map((order) => {
        const after = place === 'middle' ? positionOf(middleOf(state, order), order) : undefined;
        const query = { account: 'acme', limit: LIMIT, liveAt: NOW, state, order, after };
        return async () => expect(await store.page(query)).toHaveLength(LIMIT);
      });
      const [created = 0, expire = 0] = await leastOf(pages);
      ratios.set(`${place} page of ${state}`, expire / created);
    }
  }
  return ratios;
}

/** All take turns, so that the speed of the machine is the same for each. */
async function leastOf(calls: readonly (() => Promise<unknown>)[]): Promise<number[]> {
  const least = calls.map(() => Infinity);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [index, call] of calls.entries()) {
      const start = performance.now();
      await call();
      least[index] = Math.min(least[index] as number, performance.now() - start);
    }
  }
  return least;
}

const PLACES = [
  { name: 'memory', isMissing: false, open: async () => new MemoryTokenStore() as TokenStore },
  ...ENGINES.map(({ name, isMissing, newPlace }) => ({
    name,
    isMissing,
    open: async () => opened(await newPlace()) as TokenStore,
  })),
];

describe.each(PLACES)('a page of 100 000 tokens by expiry, in $name', ({ isMissing, open }) => {
  it.skipIf(isMissing)(
    'costs at most twice as much as one by creation, in each state and at each place',
    async () => {
      const store = await open();
      await fill(store);

      const ratios = await ratiosOf(store);
      for (const [page, ratio] of ratios) expect.soft(ratio, page).toBeLessThan(MAX_RATIO);
    },
    600_000,
  );
});
