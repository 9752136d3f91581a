import { describe, expect, it } from 'vitest';
import type { TokenStore } from '../../src/ports/token-store.ts';
import { covers, overlaps } from '../../src/scope/index.ts';
import type { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { manualClock } from '../../src/testing/index.ts';
import {
  type CallSurface,
  FLAT,
  holdOf,
  MAX_HOLD,
  NEAR_LINEAR,
  SORTED,
  slopeOfCalls,
  slopeOfSingleCalls,
} from '../growth.ts';
import {
  deep,
  entries,
  entryOf,
  GENERATIONS,
  LIMIT,
  lineOf,
  onToken,
  refused,
  respelled,
  SCOPES,
  STORED_SCOPES,
  serviceOver,
  VERBS,
} from './growth-verbs.ts';

const TOKENS = [1250, 2500, 5000, 10_000];

const sqlite: MakeStore = () => SqliteTokenStore.open(':memory:');
const memory: MakeStore = () => new MemoryTokenStore();

type MakeStore = () => TokenStore;

/** A call to measure, over stores of one kind. */
type OnStore = (makeStore: MakeStore) => CallSurface;

const asked =
  (call: (tokens: TokenService, size: number) => () => Promise<unknown>): OnStore =>
  (makeStore) =>
  async (size) =>
    call(serviceOver(makeStore()), size);

/** Calls whose cost depends on the scopes that a caller asks for. */
const BY_SCOPES: readonly (readonly [string, OnStore])[] = [
  [
    'issue of wildcards',
    asked((t, size) => {
      const scopes = respelled(size, 'GET:', '*:');
      return () => t.issue({ account: 'a', scopes });
    }),
  ],
  [
    'issue of scopes unlike any entry',
    asked((t, size) => {
      const scopes = respelled(size, '/r', '/q');
      return () => refused(t.issue({ account: 'a', scopes }));
    }),
  ],
  [
    'issue of scopes that do not parse',
    asked((t, size) => {
      const scopes = entries(size).map((scope) => `${scope.toLowerCase()}/`);
      return () => refused(t.issue({ account: 'a', scopes }));
    }),
  ],
];

/** Calls whose cost depends on the size of the catalog. */
const BY_CATALOG: readonly (readonly [string, CallSurface])[] = [
  [
    'issue of one scope',
    async (size) => {
      const tokens = serviceOver(sqlite(), entries(size));
      return () => tokens.issue({ account: 'a', scopes: [entryOf(7)] });
    },
  ],
  [
    'issue of a misspelled scope',
    async (size) => {
      const tokens = serviceOver(sqlite(), entries(size));
      return () =>
        refused(tokens.issue({ account: 'a', scopes: ['GET:api0.example.com/r8/item'] }));
    },
  ],
  [
    'issue of a wildcard',
    async (size) => {
      const tokens = serviceOver(sqlite(), entries(size));
      return () => refused(tokens.issue({ account: 'a', scopes: ['*:*/*'] }));
    },
  ],
  [
    'scopes',
    async (size) => {
      const tokens = serviceOver(sqlite(), entries(size));
      return () => tokens.scopes('a');
    },
  ],
];

async function withTokens(size: number, makeStore = memory): Promise<TokenService> {
  const tokens = serviceOver(makeStore());
  for (let i = 0; i < size; i++) await tokens.issue({ account: 'a', scopes: [entryOf(i % 50)] });
  return tokens;
}

/** Calls whose cost depends on the number of tokens of the account. */
const BY_TOKENS: readonly (readonly [string, CallSurface, number])[] = [
  [
    'issue and revoke',
    async (size) => {
      const tokens = await withTokens(size);
      return async () => {
        const { id } = await tokens.issue({ account: 'a', scopes: [entryOf(0)] });
        return tokens.revoke('a', id);
      };
    },
    NEAR_LINEAR,
  ],
  [
    'a page',
    async (size) => {
      const tokens = await withTokens(size);
      return () => tokens.list({ account: 'a' });
    },
    FLAT,
  ],
  [
    'a filter that finds nothing',
    async (size) => {
      const tokens = await withTokens(size);
      return () => tokens.list({ account: 'a', scope: 'GET:api9.example.com/zzz' });
    },
    NEAR_LINEAR,
  ],
];

const ROWS = VERBS.flatMap(([name, call]) =>
  GENERATIONS.map((generation) => [name, generation, call] as const),
);

describe.each([
  ['memory', memory, SCOPES, NEAR_LINEAR],
  ['SQLite', sqlite, STORED_SCOPES, SORTED],
] as const)('the cost of a call on a token in %s', (_, newStore, sizes, limit) => {
  it.each(ROWS)('grows no faster than its scopes: %s, generation %d', async (...row) => {
    const [, generation, call] = row;
    const surface = onToken(call, generation, newStore);
    expect(await slopeOfCalls(surface, sizes, limit)).toBeLessThan(limit);
  });
});

describe('the cost of a verb', () => {
  it.each(BY_SCOPES)('grows no faster than the number of scopes: %s', async (_, over) => {
    // In memory: on a file, costs jump when a row no longer fits into a page or a block.
    expect(await slopeOfCalls(over(memory), SCOPES, NEAR_LINEAR)).toBeLessThan(NEAR_LINEAR);
  });

  it.each(BY_CATALOG)('grows no faster than the size of the catalog: %s', async (_, surface) => {
    expect(await slopeOfCalls(surface, TOKENS, NEAR_LINEAR)).toBeLessThan(NEAR_LINEAR);
  });

  it.each(BY_TOKENS)(
    'grows no faster than the number of tokens of the account: %s',
    async (_, surface, limit) => {
      expect(await slopeOfCalls(surface, TOKENS, limit)).toBeLessThan(limit);
    },
  );

  it.each<[string, (tokens: TokenService) => Promise<number>]>([
    ['revokeAll', (tokens) => tokens.revokeAll('a')],
    [
      'purge',
      async (tokens) => {
        await tokens.revokeAll('a');
        return tokens.purge({ before: manualClock().now() });
      },
    ],
  ])('on all tokens grows no faster than their number: %s', async (_, call) => {
    const surface: CallSurface = async (size) => {
      const tokens = await withTokens(size);
      return () => call(tokens);
    };
    const slope = await slopeOfSingleCalls(surface, [500, 1000, 2000], NEAR_LINEAR);
    expect(slope).toBeLessThan(NEAR_LINEAR);
  });

  it('does not depend on the number of scopes for verify, once they are compiled', async () => {
    const surface: CallSurface = async (size) => {
      const tokens = serviceOver(memory());
      const { value } = await tokens.issue({ account: 'a', scopes: entries(size) });
      return () => tokens.verify(value, { scope: entryOf(7) });
    };
    expect(await slopeOfCalls(surface, SCOPES, FLAT)).toBeLessThan(FLAT);
  });

  it.each([
    ['few or many', SCOPES],
    ['many', STORED_SCOPES],
  ])(
    'would fail this test if each of %s scopes were compared with each other one (the control)',
    async (_, sizes) => {
      const surface: CallSurface = async (size) => async () => comparedEachWithEach(size / 16);
      expect(await slopeOfCalls(surface, sizes)).toBeGreaterThan(1.6);
    },
  );
});

/** The quadratic way in which scopes were removed once. */
function comparedEachWithEach(size: number): number {
  const held = entries(size);
  const removed = held.slice(1);
  const isRemovable = (scope: string) => {
    const touched = held.filter((other) => overlaps(scope, other));
    return touched.length > 0 && touched.every((other) => covers(scope, other));
  };
  return removed.filter(isRemovable).length;
}

/** The reference work takes 50 ms on the machine on which limits were chosen: no turn takes half of that. */
const MAX_TURN = MAX_HOLD / 2;

const LISTS = [
  ['known', entries(LIMIT), entries(LIMIT)],
  ['misspelled', entries(LIMIT), respelled(LIMIT, '/r', '/q')],
  ['deep', deep(LIMIT), deep(LIMIT)],
  ['deep and misspelled', deep(LIMIT), deep(LIMIT).map((scope) => scope.replace('/r', '/q'))],
] as const;

describe('the event loop', () => {
  it.each(ROWS)('has short turns for a token of 4096 scopes: %s, generation %d', async (...row) => {
    const [, generation, call] = row;
    const run = await onToken(call, generation, sqlite)(LIMIT);
    expect(await holdOf(run, MAX_TURN)).toBeLessThan(MAX_TURN);
  });

  it.each(
    LISTS.flatMap(([name, held, asked]) =>
      GENERATIONS.map((generation) => [name, generation, held, asked] as const),
    ),
  )('has short turns for 4096 scopes that are %s, generation %d', async (...row) => {
    const [, generation, held, asked] = row;
    const tokens = serviceOver(sqlite(), held);
    const { id, another } = await lineOf(tokens, generation, held);
    const calls = [
      () => tokens.modify('a', id, { scopes: asked }),
      () => tokens.patch('a', id, { scopes: asked }),
      () => tokens.patch('a', id, { addScopes: asked }),
      () => another(asked),
    ];
    for (const call of calls) {
      expect(await holdOf(() => refused(call()), MAX_TURN)).toBeLessThan(MAX_TURN);
    }
  });

  it.each(BY_SCOPES)('is not blocked by 4096 scopes: %s', async (_, over) => {
    expect(await holdOf(await over(sqlite)(LIMIT), MAX_TURN)).toBeLessThan(MAX_TURN);
  });

  it.each(BY_CATALOG)('is not blocked by a catalog of 10 000 scopes: %s', async (_, surface) => {
    expect(await holdOf(await surface(10_000), MAX_HOLD)).toBeLessThan(MAX_HOLD);
  });

  it.each<[string, (tokens: TokenService) => Promise<unknown>]>([
    ['issue', (tokens) => tokens.issue({ account: 'a', scopes: [entryOf(0)] })],
    ['a page of 1000', (tokens) => tokens.list({ account: 'a', limit: 1000 })],
    [
      'a filter that finds nothing',
      (tokens) => tokens.list({ account: 'a', scope: 'GET:api9.example.com/zzz' }),
    ],
    ['revokeAll', (tokens) => tokens.revokeAll('a')],
    ['purge', (tokens) => tokens.purge({ before: manualClock().now() })],
  ])('is not blocked by 10 000 tokens on SQLite: %s', async (_, call) => {
    const tokens = await withTokens(10_000, sqlite);
    expect(await holdOf(() => call(tokens), MAX_HOLD)).toBeLessThan(MAX_HOLD);
  });

  it('is not blocked by many large tokens', async () => {
    const tokens = serviceOver(sqlite());
    for (let i = 0; i < 120; i++) {
      await tokens.issue({ account: 'a', scopes: entries(LIMIT).slice(i) });
    }
    for (const filter of [{}, { scope: 'GET:api9.example.com/zzz' }]) {
      const list = () => tokens.list({ account: 'a', limit: 1000, ...filter });
      expect(await holdOf(list, MAX_HOLD)).toBeLessThan(MAX_HOLD);
    }
  });

  it('would be seen as blocked if scopes were compared with each other (the control)', async () => {
    const compare = async () => comparedEachWithEach(256);
    expect(await holdOf(compare)).toBeGreaterThan(2 * MAX_HOLD);
  });
});
