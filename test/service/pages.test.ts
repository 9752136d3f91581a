import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { nextTurn } from '../../src/deadline.ts';
import type { ListInput } from '../../src/input.ts';
import type { TokenService } from '../../src/service.ts';
import type { PageQuery } from '../../src/store.ts';
import { MemoryTokenStore } from '../../src/stores/memory.ts';
import { recordBytes, type Token } from '../../src/token.ts';
import { codeOf, OTHER_SCOPE, RecordingStore, SCOPE, setUp } from '../support.ts';

const scopesOf = (token: number, count: number) =>
  Array.from({ length: count }, (_, i) => `GET:a.example/t${token}/s${i}`);

async function issueLarge(tokens: TokenService, count: number, size: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    ids.unshift((await tokens.issue({ account: 'a', scopes: scopesOf(i, size) })).id);
  }
  return ids.sort();
}

async function walk(tokens: TokenService, input: Omit<ListInput, 'account'>): Promise<Token[][]> {
  const pages: Token[][] = [];
  let cursor: string | undefined;
  do {
    const page = await tokens.list({ account: 'a', ...input, cursor });
    pages.push(page.tokens);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return pages;
}

const bytesOf = (page: readonly Token[]) =>
  page.reduce((bytes, token) => bytes + recordBytes(token), 0);

/** A store that takes no notice of `maxBytes`, as one written before there was such a thing. */
class UnboundedStore extends MemoryTokenStore {
  override page({ maxBytes: _, ...query }: PageQuery) {
    return super.page(query);
  }
}

describe('a page of large tokens', () => {
  it.each<[string, () => MemoryTokenStore]>([
    ['of a store that ends at the bytes', () => new MemoryTokenStore()],
    ['of one that does not', () => new UnboundedStore()],
  ])('ends at its bytes, and the next goes on: %s', async (_, makeStore) => {
    const { tokens } = setUp({ store: makeStore() });
    const ids = await issueLarge(tokens, 12, 4000);

    for (const limit of [100, 5, 1]) {
      const pages = await walk(tokens, { limit });
      expect(
        pages
          .flat()
          .map(({ id }) => id as string)
          .sort(),
      ).toEqual(ids);
      for (const page of pages) expect(bytesOf(page)).toBeLessThanOrEqual(1_048_576);
    }
    expect((await walk(tokens, { limit: 100 })).map(({ length }) => length)).toEqual([5, 5, 2]);
  });

  it('holds one that is larger than what was asked for, or nobody would get past it', async () => {
    const { tokens } = setUp();
    await issueLarge(tokens, 3, 100);
    const pages = await walk(tokens, { maxBytes: 1 });

    expect(pages.map(({ length }) => length).filter((length) => length > 0)).toEqual([1, 1, 1]);
  });

  it.each<[unknown]>([[0], [-1], [1.5], ['1'], [1_048_577], [null]])(
    'has no maxBytes of %s',
    async (maxBytes) => {
      const { tokens } = setUp();
      const listed = tokens.list({ account: 'a', maxBytes: maxBytes as number });
      expect(await codeOf(listed)).toBe('invalid_request');
    },
  );

  it('ends at its bytes among those that a filter wants', async () => {
    const { tokens } = setUp();
    const ids = await issueLarge(tokens, 9, 4000);
    const pages = await walk(tokens, { scope: 'GET:a.example/*' });

    expect(
      pages
        .flat()
        .map(({ id }) => id as string)
        .sort(),
    ).toEqual(ids);
    for (const page of pages) expect(bytesOf(page)).toBeLessThanOrEqual(1_048_576);
  });
});

/** Time that stands still but for what is spent of it. */
function standingTime() {
  const clock = vi.spyOn(performance, 'now').mockReturnValue(0);
  onTestFinished(() => clock.mockRestore());
  return {
    spend(ms: number): void {
      clock.mockReturnValue(performance.now() + ms);
    },
  };
}

describe('a filter that finds nothing', () => {
  async function filled(store: RecordingStore) {
    const { tokens } = setUp({ store, quotas: { tokensPerAccount: 20_000 } });
    for (let i = 0; i < 5000; i++) await tokens.issue({ account: 'a', scopes: [SCOPE] });
    store.takeCalls();
    return tokens;
  }

  // Ten pages of 500 are all of them, and an eleventh is empty. The budget is 50 ms.
  it.each([
    [30, 2, true],
    [25, 2, true],
    [24, 3, true],
    [4, 11, false],
    [0, 11, false],
  ])(
    'that works for %d ms a page reads %d pages; goes on with a cursor: %s',
    async (ms, pages, goesOn) => {
      const store = new RecordingStore();
      const tokens = await filled(store);
      const { spend } = standingTime();
      store.break('page', (query: PageQuery) => {
        spend(ms);
        return store.inner.page(query);
      });

      const { tokens: found, cursor } = await tokens.list({ account: 'a', scope: OTHER_SCOPE });

      expect(found).toEqual([]);
      expect(typeof cursor).toBe(goesOn ? 'string' : 'undefined');
      expect(store.takeCalls()).toHaveLength(pages);
      const rest = await walk(tokens, { scope: OTHER_SCOPE, cursor });
      expect(rest.flat()).toEqual([]);
    },
  );

  it('goes on where the time is not its own', async () => {
    const store = new RecordingStore(undefined, { local: false });
    const tokens = await filled(store);
    const { spend } = standingTime();
    store.break('page', async (query: PageQuery) => {
      // Meanwhile others are at work: for longer than the budget, and in all for less than the deadline.
      await nextTurn();
      spend(100);
      return store.inner.page(query);
    });

    const { cursor } = await tokens.list({ account: 'a', scope: OTHER_SCOPE });

    expect(cursor).toBeUndefined();
    expect(store.takeCalls()).toHaveLength(11);
  });

  it('lets others have their turn between pages of a local store', async () => {
    const store = new RecordingStore();
    const tokens = await filled(store);
    let turns = 0;
    let isDone = false;
    const count = () => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);

    await tokens.list({ account: 'a', scope: OTHER_SCOPE });
    isDone = true;

    expect(turns).toBeGreaterThanOrEqual(store.takeCalls().length - 1);
  });
});

describe('a cursor', () => {
  async function withCursor() {
    const setting = setUp();
    await issueLarge(setting.tokens, 2, 1);
    const { cursor = '' } = await setting.tokens.list({ account: 'a', limit: 1 });
    return { ...setting, cursor };
  }

  it.each<[string, (cursor: string) => string, boolean]>([
    ['as it was given', (cursor) => cursor, true],
    ['padded', (cursor) => `${cursor}=`, false],
    ['with junk behind it', (cursor) => `${cursor}!`, false],
    ['with junk inside', (cursor) => `${cursor.slice(0, 9)} ${cursor.slice(9)}`, false],
    ['with something behind its bytes', (cursor) => `${cursor}A`, false],
  ])('is taken %s: %#', async (_, spell, isGood) => {
    const { tokens, cursor } = await withCursor();
    const listed = tokens.list({ account: 'a', cursor: spell(cursor) });

    if (isGood) expect((await listed).tokens).toHaveLength(1);
    else expect(await codeOf(listed)).toBe('invalid_request');
  });

  it('that names a key which can only verify is none', async () => {
    const { tokens, store, clock, cursor } = await withCursor();
    const [verifier] = tokens.verifierKeys();
    const active = {
      kid: 'k9',
      secret: 'n'.repeat(21) + 'mZ8'.repeat(10),
      status: 'active',
    } as const;
    const other = setUp({ store, clock, keys: [active, verifier as typeof verifier & object] });

    expect(await codeOf(other.tokens.list({ account: 'a', cursor }))).toBe('invalid_request');
  });
});
