import { describe, expect, it } from 'vitest';
import { SORTED, slopeOfCalls } from '../growth.ts';
import { entries } from './support.ts';

describe('a big document', () => {
  /** A document with this many paths and densely linked schemas; 2,000 paths make about 2 MB. */
  function big(paths: number): object {
    const property = (i: number) => ({ $ref: `#/components/schemas/s${i % 100}` });
    const schema = (i: number) => ({ properties: { a: property(i + 1), b: property(i * 7) } });
    const operation = { description: 'x'.repeat(400), responses: { 200: { schema: property(1) } } };
    const item = (i: number) =>
      i % 2 === 0
        ? { $ref: `#/components/pathItems/i${i % 10}` }
        : { get: operation, put: operation };
    const pathItems = Object.fromEntries(
      Array.from({ length: 10 }, (_, i) => [`i${i}`, { get: operation, 'x-filler': schema(i) }]),
    );
    return {
      openapi: '3.1.0',
      info: { title: 'Shop' },
      servers: [{ url: 'https://shop.example' }],
      paths: Object.fromEntries(Array.from({ length: paths }, (_, i) => [`/p${i}/{id}`, item(i)])),
      components: {
        pathItems,
        schemas: Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`s${i}`, schema(i)])),
      },
    };
  }

  it('with twice the paths costs about twice as much', async () => {
    expect(JSON.stringify(big(2000)).length).toBeGreaterThan(1_000_000);
    expect(await entries(big(2000))).toHaveLength(3000);
    const surface = async (paths: number) => {
      const document = big(paths);
      return () => entries(document);
    };

    expect(await slopeOfCalls(surface, [4000, 16_000], SORTED)).toBeLessThan(SORTED);
  });
});
