import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editDistance } from '../../src/scope/distance.ts';
import { edits, LAW } from './support.ts';

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
      LAW,
    );
  });

  it('equals the distance from the full matrix for similar texts', () => {
    fc.assert(
      fc.property(similar, fc.integer({ min: 1, max: 64 }), ([a, b], limit) => {
        expect(editDistance(a, b, limit)).toBe(Math.min(edits(a, b), limit));
      }),
      LAW,
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
      LAW,
    );
  });

  it('gives up at most one row after the budget runs out', () => {
    const budget = { left: 1000 };

    expect(editDistance('ab'.repeat(250), 'ba'.repeat(250), 64, budget)).toBe(64);
    expect(budget.left).toBeLessThan(0);
    expect(budget.left).toBeGreaterThan(-128);
  });
});
