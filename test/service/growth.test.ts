import { describe, expect, it, onTestFinished } from 'vitest';
import { covers, overlaps, ScopeCatalog } from '../../src/scope/index.ts';
import { TokenService } from '../../src/service.ts';
import type { TokenStore } from '../../src/store.ts';
import { MemoryTokenStore } from '../../src/stores/memory.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { manualClock } from '../../src/testing/index.ts';
import type { IssuedToken } from '../../src/token.ts';
import {
  type CallSurface,
  FLAT,
  holdOf,
  MAX_HOLD,
  NEAR_LINEAR,
  slopeOfCalls,
  slopeOfSingleCalls,
} from '../growth.ts';
import { K1 } from '../support.ts';

const LIMIT = 4096;
/** More than the thousand scopes that are remembered, so that each call parses its list again. */
const SCOPES = [1024, 1600, 2560, 4096];
const TOKENS = [1250, 2500, 5000, 10_000];

const entryOf = (i: number) => `GET:api${i % 4}.example.com/r${i}/items/of/some/length/${i}`;
const entries = (count: number) => Array.from({ length: count }, (_, i) => entryOf(i));
const respelled = (count: number, from: string | RegExp, to: string) =>
  entries(count).map((scope) => scope.replace(from, to));

type MakeStore = () => TokenStore;

const sqlite: MakeStore = () => SqliteTokenStore.open(':memory:');
const memory: MakeStore = () => new MemoryTokenStore();

function serviceOver(makeStore: MakeStore, catalogSize = LIMIT): TokenService {
  const tokens = new TokenService({
    store: makeStore(),
    keys: [K1],
    prefix: 'acme',
    reveal: 'always',
    clock: manualClock(),
    catalog: ScopeCatalog.from(entries(catalogSize)),
    quotas: { tokensPerAccount: 1_000_000, derivedPerRoot: 10_000 },
  });
  onTestFinished(() => tokens.close());
  return tokens;
}

/** How many tokens are in a line, each derived from the one before. The last one is measured. */
type Generation = 1 | 2 | 8;

/** A call to measure, over stores of one kind. */
type OnStore = (makeStore: MakeStore, generation?: Generation) => CallSurface;

/** Makes a call on a token with `size` scopes. The call changes nothing, or can be repeated. */
type OnToken = (tokens: TokenService, id: string, size: number) => () => Promise<unknown>;

const held =
  (call: OnToken): OnStore =>
  (makeStore, generation = 1) =>
  async (size) => {
    const tokens = serviceOver(makeStore);
    const { id } = await lineOf(tokens, generation, entries(size));
    return call(tokens, id, size);
  };

/** The last token of a line whose tokens all hold the same scopes. */
async function lineOf(
  tokens: TokenService,
  generation: Generation,
  scopes: readonly string[],
): Promise<IssuedToken> {
  let token = await tokens.issue({ account: 'a', scopes });
  for (let count = 1; count < generation; count++) {
    token = await tokens.derive(token.value, { scopes });
  }
  return token;
}

/** Scopes that differ only behind 28 equal segments. */
const deep = (count: number) =>
  Array.from({ length: count }, (_, i) => `GET:api.example.com/${'a/'.repeat(28)}r${i}$`);

const asked =
  (call: (tokens: TokenService, size: number) => () => Promise<unknown>): OnStore =>
  (makeStore) =>
  async (size) =>
    call(serviceOver(makeStore), size);

const refused = (call: Promise<unknown>) =>
  call.then(
    () => 'accepted',
    () => 'refused',
  );

/** Calls whose cost depends on the scopes that a caller sends or a token holds. */
const BY_SCOPES: readonly (readonly [string, OnStore])[] = [
  [
    'issue of named scopes',
    asked((t, size) => () => t.issue({ account: 'a', scopes: entries(size) })),
  ],
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
  ['get', held((t, id) => () => t.get('a', id))],
  ['list', held((t) => () => t.list({ account: 'a' }))],
  [
    'list with a filter that finds nothing',
    held((t) => () => t.list({ account: 'a', scope: 'GET:api0.example.com/zzz' })),
  ],
  ['modify', held((t, id, size) => () => t.modify('a', id, { scopes: entries(size) }))],
  ['patch of scopes', held((t, id, size) => () => t.patch('a', id, { scopes: entries(size) }))],
  [
    'patch that adds scopes',
    held((t, id, size) => () => t.patch('a', id, { addScopes: entries(size) })),
  ],
  [
    'patch that removes scopes',
    held((t, id, size) => {
      const removeScopes = entries(size).slice(1);
      return () => t.patch('a', id, { removeScopes }, { dryRun: true });
    }),
  ],
  [
    'patch that removes scopes not held',
    held((t, id, size) => {
      const removeScopes = respelled(size, '/r', '/q');
      return () => refused(t.patch('a', id, { removeScopes }));
    }),
  ],
  [
    'patch of a later expiry',
    held((t, id) => {
      let ms = manualClock().now().getTime() + 1_000_000;
      return () => t.patch('a', id, { expiresAt: new Date(ms++) });
    }),
  ],
  ['patch of a name', held((t, id) => () => t.patch('a', id, { name: 'x' }))],
  ['rotate', held((t, id) => () => t.rotate('a', id))],
  ['explain', held((t, id) => () => t.explain('a', id, { scope: 'GET:api0.example.com/zzz' }))],
  [
    'a refused verify that is explained',
    (makeStore) => async (size) => {
      const tokens = serviceOver(makeStore);
      const { value } = await tokens.issue({ account: 'a', scopes: entries(size) });
      return async () => {
        const verdict = await tokens.verify(value, { scope: 'GET:api0.example.com/zzz' });
        return verdict.ok || verdict.explanation;
      };
    },
  ],
  [
    'introspect',
    (makeStore) => async (size) => {
      const tokens = serviceOver(makeStore);
      const { value } = await tokens.issue({ account: 'a', scopes: entries(size) });
      return () => tokens.introspect(value);
    },
  ],
];

/** Calls whose cost depends on the size of the catalog. */
const BY_CATALOG: readonly (readonly [string, CallSurface])[] = [
  [
    'issue of one scope',
    async (size) => {
      const tokens = serviceOver(sqlite, size);
      return () => tokens.issue({ account: 'a', scopes: [entryOf(7)] });
    },
  ],
  [
    'issue of a misspelled scope',
    async (size) => {
      const tokens = serviceOver(sqlite, size);
      return () =>
        refused(tokens.issue({ account: 'a', scopes: ['GET:api0.example.com/r8/item'] }));
    },
  ],
  [
    'issue of a wildcard',
    async (size) => {
      const tokens = serviceOver(sqlite, size);
      return () => refused(tokens.issue({ account: 'a', scopes: ['*:*/*'] }));
    },
  ],
  [
    'scopes',
    async (size) => {
      const tokens = serviceOver(sqlite, size);
      return () => tokens.scopes('a');
    },
  ],
];

async function withTokens(size: number, makeStore = memory): Promise<TokenService> {
  const tokens = serviceOver(makeStore);
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

/** Changes of a token that its parent bounds, and what makes such a token. */
const BY_LINE: readonly (readonly [string, OnToken])[] = [
  ['modify', (t, id, size) => () => t.modify('a', id, { scopes: entries(size) })],
  ['modify to a wildcard', (t, id) => () => t.modify('a', id, { scopes: ['*:*/*'] })],
  ['patch of scopes', (t, id, size) => () => t.patch('a', id, { scopes: entries(size) })],
  [
    'patch that adds scopes',
    (t, id, size) => () => t.patch('a', id, { addScopes: entries(size) }, { dryRun: true }),
  ],
  [
    'patch that removes scopes',
    (t, id, size) => () =>
      t.patch('a', id, { removeScopes: entries(size).slice(1) }, { dryRun: true }),
  ],
  [
    'patch of scopes unlike any held one',
    (t, id, size) => {
      const scopes = respelled(size, '/r', '/q');
      return () => refused(t.patch('a', id, { scopes }));
    },
  ],
  ['rotate', (t, id) => () => t.rotate('a', id)],
  ['explain', (t, id) => () => t.explain('a', id, { scope: 'GET:api0.example.com/zzz' })],
];

describe('the cost of a change of a derived token', () => {
  const rows = BY_LINE.flatMap(([name, call]) =>
    ([2, 8] as const).map((generation) => [name, generation, call] as const),
  );

  it.each(rows)('grows no faster than the number of scopes: %s, generation %d', async (...row) => {
    const [, generation, call] = row;
    const surface = held(call)(memory, generation);
    expect(await slopeOfCalls(surface, SCOPES, NEAR_LINEAR)).toBeLessThan(NEAR_LINEAR);
  });

  it.each([1, 2] as const)('is near linear for derive, from generation %d', async (generation) => {
    const surface: CallSurface = async (size) => {
      const tokens = serviceOver(memory);
      const { value } = await lineOf(tokens, generation, entries(size));
      return () => tokens.derive(value, { scopes: entries(size) });
    };
    expect(await slopeOfCalls(surface, SCOPES, NEAR_LINEAR)).toBeLessThan(NEAR_LINEAR);
  });

  it.each(rows)('holds the event loop no longer on SQLite: %s, generation %d', async (...row) => {
    const [, generation, call] = row;
    const run = await held(call)(sqlite, generation)(LIMIT);
    expect(await holdOf(run, MAX_HOLD)).toBeLessThan(MAX_HOLD);
  });

  it.each([2, 8] as const)('nor for deep paths: modify, generation %d', async (generation) => {
    const scopes = deep(LIMIT);
    const tokens = new TokenService({
      store: memory(),
      keys: [K1],
      prefix: 'acme',
      clock: manualClock(),
    });
    onTestFinished(() => tokens.close());
    const { id } = await lineOf(tokens, generation, scopes);
    expect(await holdOf(() => tokens.modify('a', id, { scopes }), MAX_HOLD)).toBeLessThan(MAX_HOLD);
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
      const tokens = serviceOver(memory);
      const { value } = await tokens.issue({ account: 'a', scopes: entries(size) });
      return () => tokens.verify(value, { scope: entryOf(7) });
    };
    expect(await slopeOfCalls(surface, SCOPES, FLAT)).toBeLessThan(FLAT);
  });

  it('would fail this test if each scope were compared with each other one (the control)', async () => {
    const surface: CallSurface = async (size) => async () => comparedEachWithEach(size / 16);
    expect(await slopeOfCalls(surface, SCOPES)).toBeGreaterThan(1.6);
  });
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

describe('the event loop', () => {
  it.each(BY_SCOPES)('is not blocked by 4096 scopes: %s', async (_, over) => {
    expect(await holdOf(await over(sqlite)(LIMIT), MAX_HOLD)).toBeLessThan(MAX_HOLD);
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
    const tokens = serviceOver(sqlite);
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
