import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SUGGESTION_BUDGET } from '../../src/scope/bounds.ts';
import { ScopeCatalog } from '../../src/scope/catalog.ts';
import { ScopeError } from '../../src/scope/errors.ts';
import { parseScope } from '../../src/scope/grammar.ts';
import { editDistance, misspelledName, nearestName, suggestions } from '../../src/scope/nearest.ts';
import { runs } from '../laws.ts';
import { edits } from './support.ts';

const METHODS = ['DELETE', 'GET', 'PATCH', 'POST', 'PUT'];
const NOUNS = ['orders', 'invoices', 'customers', 'parcels', 'refunds', 'baskets', 'vouchers'];

/** Entries like those of a real API: some hosts, a version, nested nouns. */
function newCatalog(size: number): ScopeCatalog {
  const entries = Array.from({ length: size }, (_, i) => {
    const [a, b] = [NOUNS[i % 7], NOUNS[Math.floor(i / 7) % 7]];
    const rest = Math.floor(i / 245);
    const method = METHODS[Math.floor(i / 49) % 5];
    return `${method}:api${rest % 3}.shop.example/v${rest % 4}/${a}/${b}/part-${wordOf(rest)}`;
  });
  return ScopeCatalog.from(entries);
}

const catalogs = new Map<number, ScopeCatalog>();

/** Makes each size once: the largest one takes longer than all that is asked of it. */
function catalogOf(size: number): ScopeCatalog {
  const catalog = catalogs.get(size) ?? newCatalog(size);
  catalogs.set(size, catalog);
  return catalog;
}

function wordOf(number: number): string {
  return (number * 7919 + 100_003).toString(36);
}

function nearestOf(catalog: ScopeCatalog, ...asked: string[]): (readonly string[] | undefined)[] {
  try {
    catalog.expand(asked);
  } catch (error) {
    if (error instanceof ScopeError) return (error.refused ?? []).map(({ nearest }) => nearest);
    throw error;
  }
  throw new Error('there was no error');
}

/** The text with two letters of a part swapped. */
function misspell(text: string, part: string): string {
  const at = text.indexOf(part) + 1;
  return `${text.slice(0, at)}${text[at + 1]}${text[at]}${text.slice(at + 2)}`;
}

describe('a misspelled scope', () => {
  it.each([15, 1500, 100_000])('is recognized among %i entries', (size) => {
    const catalog = catalogOf(size);
    const entries = catalog.toArray();
    const { numRuns: places } = runs(0.05);
    for (let i = 0; i < places; i++) {
      const entry = entries[Math.floor((i * size) / places)] as string;
      const noun = NOUNS.find((one) => entry.includes(`/${one}/`)) as string;
      for (const asked of [
        misspell(entry, noun),
        misspell(entry, 'part-'),
        // In a very large catalog, the budget suffices for only some of the hosts.
        ...(size > 10_000 ? [] : [misspell(entry, 'shop')]),
        entry.slice(0, -1),
        `${entry}x`,
        entry.replace(/^[A-Z]+/, 'QUERY'),
      ]) {
        if (catalog.knows(asked)) continue;
        expect(nearestOf(catalog, asked)[0]?.[0], asked).toEqual(
          asked.startsWith('QUERY')
            ? expect.stringContaining(entry.slice(entry.indexOf(':')))
            : entry,
        );
      }
    }
  });

  it('is recognized with a wildcard for the method or the host', () => {
    const catalog = catalogOf(100_000);
    const [entry = ''] = catalog.toArray();
    const [, domain, path] = /^[A-Z]+:([^/]+)\/(.*)$/.exec(entry) ?? [];
    const asked = [
      `*:${domain}/${misspell(path ?? '', 'part-')}`,
      `DELETE:*.shop.example/${misspell(path ?? '', 'part-')}`,
    ];

    expect(nearestOf(catalog, ...asked).map((nearest) => nearest?.[0])).toEqual([entry, entry]);
  });

  it('is recognized for each of the five members of a refusal', () => {
    const catalog = catalogOf(1500);
    const entries = catalog.toArray().filter((_, index) => index % 300 === 7);

    expect(
      nearestOf(catalog, ...entries.map((entry) => misspell(entry, 'part-'))).map(
        (nearest) => nearest?.[0],
      ),
    ).toEqual(entries);
  });
});

describe('a refusal', () => {
  it('names the nearest scope found before its budget runs out', () => {
    const long = 'abcdefgh'.repeat(60);
    const catalog = ScopeCatalog.from(
      Array.from({ length: 3000 }, (_, i) => `GET:d.example/${wordOf(i)}${long}`),
    );
    const entry = catalog.toArray()[1234] as string;
    const [nearest] = nearestOf(catalog, entry.replace(long, `${long.slice(1)}z`));

    expect(nearest?.[0]).toBe(entry);
  });

  it('reserves a part of the budget for each member', () => {
    const far = Array.from({ length: 4 }, (_, i) => `GET:none${i}.example/${'q'.repeat(500)}`);
    const catalog = catalogOf(20_000);
    const entry = catalog.toArray()[777] as string;

    expect(nearestOf(catalog, ...far, misspell(entry, 'part-'))[4]?.[0]).toBe(entry);
  });

  it.each([
    ['shallow', (i: number) => `GET:api.example/${wordOf(i)}/orders`],
    ['deep', (i: number) => `GET:api.example/${'a/'.repeat(28)}${wordOf(i)}`],
    ['long', (i: number) => `GET:api.example/${wordOf(i)}${'abcdefgh'.repeat(60)}`],
  ])('uses up its budget in steps if entries are %s', (_, entryOf) => {
    const stepsIn = (size: number) => {
      const catalog = ScopeCatalog.from(Array.from({ length: size }, (_, i) => entryOf(i)));
      const asked = parseScope(entryOf(size).replace('GET', 'PUT').replace('api', 'apis'));
      return [...suggestions([...catalog])(asked)].length;
    };

    expect(stepsIn(20_000)).toBeGreaterThan(SUGGESTION_BUDGET / 30_000);
    expect(stepsIn(4)).toBeLessThan(5);
  });
});

describe('nearestName', () => {
  it.each<[name: string, known: string, meant: string | undefined]>([
    ['nmae', 'name', 'name'],
    ['enma', 'name', undefined],
    ['ur', 'url', 'url'],
    ['all', 'url', undefined],
    ['u', 'url', undefined],
    ['INVALID_TTL', 'invalid_ttl', 'invalid_ttl'],
    ['grace_seconds', 'graceSeconds', 'graceSeconds'],
    ['grace-period', 'graceSeconds', undefined],
    ['grace', 'graceSeconds', 'graceSeconds'],
    ['gr', 'graceSeconds', undefined],
    ['metadataOfTheToken', 'metadata', 'metadata'],
    ['ofTheTokenMetadata', 'metadata', undefined],
    ['tokens', 'max-tokens', 'max-tokens'],
    ['to', 'max-tokens', undefined],
    ['x'.repeat(100), 'xx', undefined],
    ['', '', ''],
  ])('for %j knows %j and finds %j', (name, known, meant) => {
    expect(nearestName(name, ['zzzzzzzzzz', known])).toBe(meant);
  });

  it.each([
    ['account-fil', ['account', 'account-file'], 'account-file'],
    ['expiresAt', ['expiresIn', 'expire'], 'expire'],
    ['port', ['import', 'part'], 'part'],
    ['state', ['slate', 'stale'], 'slate'],
  ])('for %j prefers of %j %j', (name, known, meant) => {
    expect(nearestName(name, known)).toBe(meant);
  });
});

describe('misspelledName', () => {
  it.each<[name: string, meant: string | undefined]>([
    ['limti', 'limit'],
    ['limtxx', undefined],
    ['nam', 'name'],
    ['page', undefined],
    ['un_used_for_days', 'unusedForDays'],
    ['unused', undefined],
    ['namespace', undefined],
  ])('of %j is %j', (name, meant) => {
    expect(misspelledName(name, ['name', 'limit', 'unusedForDays'])).toBe(meant);
  });
});

const word = fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 14 });
/** A text, and a copy with a few edits. */
const similar = fc
  .tuple(fc.string({ maxLength: 40 }), fc.array(fc.tuple(fc.nat(40), fc.nat(2)), { maxLength: 6 }))
  .map(([text, changes]) => [text, changes.reduce(edit, text)] as const);

function edit(text: string, [position, kind]: readonly [number, number]): string {
  const at = Math.min(position, text.length);
  return text.slice(0, at) + ['', 'x', 'y'][kind] + text.slice(at + (kind === 2 ? 0 : 1));
}

describe('editDistance', () => {
  it.each<[string, string, number]>([
    ['', '', 0],
    ['a', '', 1],
    ['orders', 'orders', 0],
    ['orders', 'order', 1],
    ['ordres', 'orders', 2],
    ['kitten', 'sitting', 3],
    ['abcdef', 'bcdefa', 2],
    ['aaaa', 'bbbb', 4],
  ])('from %j to %j is %i', (a, b, expected) => {
    expect(editDistance(a, b, 64)).toBe(expected);
    expect(editDistance(b, a, 64)).toBe(expected);
    expect(editDistance(a, b, expected + 1)).toBe(expected);
    expect(editDistance(a, b, expected)).toBe(expected);
  });

  it('equals the distance from the full matrix, capped at the limit', () => {
    fc.assert(
      fc.property(word, word, fc.nat(16), (a, b, limit) => {
        expect(editDistance(a, b, limit)).toBe(Math.min(edits(a, b), limit));
      }),
      runs(),
    );
  });

  it('equals the distance from the full matrix for similar texts', () => {
    fc.assert(
      fc.property(similar, fc.integer({ min: 1, max: 64 }), ([a, b], limit) => {
        expect(editDistance(a, b, limit)).toBe(Math.min(edits(a, b), limit));
      }),
      runs(),
    );
  });

  it('costs at most twice the limit for each character', () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 200 }),
        fc.string({ maxLength: 200 }),
        fc.integer({ min: 1, max: 64 }),
        (a, b, limit) => {
          const budget = { left: 1_000_000 };
          editDistance(a, b, limit, budget);
          expect(1_000_000 - budget.left).toBeLessThanOrEqual(2 * limit * (a.length + 1));
        },
      ),
      runs(),
    );
  });

  it('gives up at most one row after the budget runs out', () => {
    const budget = { left: 1000 };

    expect(editDistance('ab'.repeat(250), 'ba'.repeat(250), 64, budget)).toBe(64);
    expect(budget.left).toBeLessThan(0);
    expect(budget.left).toBeGreaterThan(-128);
  });
});
