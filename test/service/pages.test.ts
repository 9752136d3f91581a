import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ListInput } from '../../src/inputs/types.ts';
import type { PageQuery } from '../../src/ports/token-store.ts';
import type { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { nextTurn } from '../../src/time/deadline.ts';
import { recordBytes, type Token } from '../../src/token/record.ts';
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

const idsOf = (pages: readonly Token[][]): string[] =>
  pages
    .flat()
    .map(({ id }) => id as string)
    .sort();

const bytesOf = (page: readonly Token[]) =>
  page.reduce((bytes, token) => bytes + recordBytes(token), 0);

/** A store that ignores `maxBytes`, like one written before the option existed. */
class UnboundedStore extends MemoryTokenStore {
  override page({ maxBytes: _, ...query }: PageQuery) {
    return super.page(query);
  }
}

describe('a page of large tokens', () => {
  it.each<[string, () => MemoryTokenStore]>([
    ['the store respects it', () => new MemoryTokenStore()],
    ['the store ignores it', () => new UnboundedStore()],
  ])('ends at maxBytes, and the next page continues from there: %s', async (_, makeStore) => {
    const { tokens } = setUp({ store: makeStore() });
    const ids = await issueLarge(tokens, 12, 4000);

    for (const limit of [100, 5, 1]) {
      const pages = await walk(tokens, { limit });
      expect(idsOf(pages)).toEqual(ids);
      for (const page of pages) expect(bytesOf(page)).toBeLessThanOrEqual(1_048_576);
    }
    expect((await walk(tokens, { limit: 100 })).map(({ length }) => length)).toEqual([5, 5, 2]);
  });

  it('holds one token even if it is larger than maxBytes, so that paging can continue', async () => {
    const { tokens } = setUp();
    await issueLarge(tokens, 3, 100);
    const pages = await walk(tokens, { maxBytes: 1 });

    expect(pages.map(({ length }) => length).filter((length) => length > 0)).toEqual([1, 1, 1]);
  });

  it.each<[unknown]>([[0], [-1], [1.5], ['1'], [1_048_577], [null]])(
    'is refused with maxBytes of %o',
    async (maxBytes) => {
      const { tokens } = setUp();
      const listed = tokens.list({ account: 'a', maxBytes: maxBytes as number });
      expect(await codeOf(listed)).toBe('invalid_request');
    },
  );

  it('ends at maxBytes with a filter, too', async () => {
    const { tokens } = setUp();
    const ids = await issueLarge(tokens, 9, 4000);
    const pages = await walk(tokens, { scope: 'GET:a.example/*' });

    expect(idsOf(pages)).toEqual(ids);
    for (const page of pages) expect(bytesOf(page)).toBeLessThanOrEqual(1_048_576);
  });
});

/** Stops `performance.now`, which then moves only with `spend`. */
function stopTime() {
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

  // The tokens fill ten pages of 500, and an eleventh is empty. The budget is 50 ms.
  it.each([
    [30, 2, true],
    [25, 2, true],
    [24, 3, true],
    [4, 11, false],
    [0, 11, false],
  ])(
    'with %d ms of work per page reads %d pages; it returns a cursor: %s',
    async (ms, pages, goesOn) => {
      const store = new RecordingStore();
      const tokens = await filled(store);
      const { spend } = stopTime();
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

  it('does not count the time of other work toward its budget', async () => {
    const store = new RecordingStore(undefined, { local: false });
    const tokens = await filled(store);
    const { spend } = stopTime();
    store.break('page', async (query: PageQuery) => {
      // Other work runs meanwhile: for longer than the budget, but in total for less than the deadline.
      await nextTurn();
      spend(100);
      return store.inner.page(query);
    });

    const { cursor } = await tokens.list({ account: 'a', scope: OTHER_SCOPE });

    expect(cursor).toBeUndefined();
    expect(store.takeCalls()).toHaveLength(11);
  });

  it('lets other work run between pages of a local store', async () => {
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
    ['unchanged', (cursor) => cursor, true],
    ['padded', (cursor) => `${cursor}=`, false],
    ['with junk after it', (cursor) => `${cursor}!`, false],
    ['with junk inside', (cursor) => `${cursor.slice(0, 9)} ${cursor.slice(9)}`, false],
    ['with an extra base64 character', (cursor) => `${cursor}A`, false],
  ])('is accepted %s: $2', async (_, spell, isGood) => {
    const { tokens, cursor } = await withCursor();
    const listed = tokens.list({ account: 'a', cursor: spell(cursor) });

    if (isGood) expect((await listed).tokens).toHaveLength(1);
    else expect(await codeOf(listed)).toBe('invalid_request');
  });

  it('is refused if it names a key that can only verify', async () => {
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
