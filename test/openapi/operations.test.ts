import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OpenApiEntry } from '../../src/openapi/entries.ts';
import { readOpenApi } from '../../src/openapi/index.ts';
import { type ScopeCatalog, type ScopeRequest, ScopeSet } from '../../src/scope/index.ts';
import { runs } from '../laws.ts';

const DOMAIN = 'shop.example';
const NAMES = ['a', 'b', 'x-7', '7.json', 'fresh'];

interface Shop {
  readonly base: string;
  /** Method and path. */
  readonly operations: readonly (readonly [method: string, path: string])[];
}

const segment = fc.constantFrom('a', 'b', 'a', '{x}', '{y}', 'x-{y}', '{x}.json', '{x}...{y}');
const path = fc
  .tuple(fc.array(segment, { maxLength: 3 }), fc.boolean())
  .map(([segments, hasSlash]) => `/${segments.join('/')}${hasSlash && segments[0] ? '/' : ''}`);
const operation = fc.tuple(fc.constantFrom('GET', 'GET', 'PUT'), path);
const shop: fc.Arbitrary<Shop> = fc.record({
  base: fc.constantFrom('', '', '/', '/a', '/v1/'),
  operations: fc.uniqueArray(operation, { minLength: 1, maxLength: 10, selector: String }),
});

function documentOf({ base, operations }: Shop): object {
  const paths: Record<string, object> = {};
  for (const [method, one] of operations) {
    paths[one] = { ...paths[one], [method.toLowerCase()]: {} };
  }
  return { openapi: '3.1.0', servers: [{ url: `https://${DOMAIN}${base}` }], paths };
}

/**
 * The operations that servers choose for a request: concrete paths first (OpenAPI 3.1, 4.8.8). If paths
 * cross, the order of the routes decides, so each of them may be chosen.
 */
function chosenFor({ base, operations }: Shop, { method, target }: ScopeRequest): string[] {
  const asked = target.split('/').filter(Boolean);
  const matching = operations.flatMap(([known, path]) => {
    const segments = `${base}/${path}`.split('/').filter(Boolean);
    const isMatch =
      known === method &&
      segments.length === asked.length &&
      segments.every((one, i) => one.includes('{') || one === asked[i]);
    const shape = segments.map((one) => (one.includes('{') ? '1' : '0')).join('');
    return isMatch ? [{ name: `${known} ${path}`, shape }] : [];
  });
  const isBeaten = (shape: string) =>
    matching.some(
      (other) =>
        other.shape !== shape && [...shape].every((bit, i) => bit >= (other.shape[i] ?? '')),
    );
  return matching.filter(({ shape }) => !isBeaten(shape)).map(({ name }) => name);
}

function requestsTo({ base }: Shop): ScopeRequest[] {
  const levels: string[][] = [['']];
  for (let i = 0; i < 3; i++) {
    levels.push((levels.at(-1) ?? []).flatMap((one) => NAMES.map((name) => `${one}/${name}`)));
  }
  const root = base.endsWith('/') ? base.slice(0, -1) : base;
  const targets = levels.flat().flatMap((one) => [`${root}${one}` || '/', one || '/']);
  return [...new Set(targets)].flatMap((target) =>
    ['GET', 'PUT'].map((method) => ({ method, domain: DOMAIN, target })),
  );
}

function namesOf({ operations }: OpenApiEntry): string[] {
  return operations.map(({ method, path }) => `${method} ${path}`);
}

/** Which of the lists of scopes open a request; it is read once for all of them. */
function openers(lists: readonly (readonly string[])[], catalog: ScopeCatalog) {
  const sets = lists.map((scopes) => ScopeSet.from(scopes));
  return (request: ScopeRequest): boolean[] => {
    const reading = catalog.readRequest(request);
    return sets.map((set) => reading.ok && set.grantOf(reading.request) !== undefined);
  };
}

function opener(scopes: readonly string[], catalog: ScopeCatalog) {
  const opens = openers([scopes], catalog);
  return (request: ScopeRequest): boolean => opens(request)[0] === true;
}

describe('the catalog of a document with literal and templated siblings', () => {
  it('grants with one entry only the operations of that entry', async () => {
    await fc.assert(
      fc.asyncProperty(shop, async (one) => {
        const { catalog, entries } = await readOpenApi(documentOf(one));
        const opens = openers(
          entries.map(({ scope }) => [scope]),
          catalog,
        );
        const owners = entries.map((entry) => new Set(namesOf(entry)));

        for (const request of requestsTo(one)) {
          const chosen = chosenFor(one, request);
          const expected = owners.map(
            (names) => chosen.length > 0 && chosen.every((name) => names.has(name)),
          );
          expect(opens(request)).toEqual(expected);
          expect(expected.filter(Boolean).length).toBeLessThanOrEqual(1);
        }
      }),
      runs(0.4),
    );
  });

  it('holds an entry for every operation, shared by operations of the same shape', async () => {
    await fc.assert(
      fc.asyncProperty(shop, async (one) => {
        const { entries, merged } = await readOpenApi(documentOf(one));
        const shapes = new Set(
          one.operations.map(([method, path]) =>
            [method, ...path.split('/').map((text) => (text.includes('{') ? '{}' : text))]
              .filter(Boolean)
              .join('/'),
          ),
        );

        expect(entries).toHaveLength(shapes.size);
        expect(entries.flatMap(namesOf).sort()).toEqual(
          one.operations.map((o) => o.join(' ')).sort(),
        );
        expect(merged).toEqual(entries.filter((entry) => entry.operations.length > 1));
      }),
      runs(0.4),
    );
  });

  it('expands *:*/* to every entry, and that result to itself', async () => {
    await fc.assert(
      fc.asyncProperty(shop, async (one) => {
        const { catalog } = await readOpenApi(documentOf(one));
        const { granted } = catalog.expand(['*:*/*']);

        expect(granted).toEqual(catalog.toArray());
        expect(catalog.expand(granted)).toEqual({ granted, narrowed: [] });
      }),
      runs(0.4),
    );
  });

  it('gives nothing to existing tokens when an operation is added', async () => {
    const asked = fc.constantFrom('*:*/*', 'GET:*/*', '*:shop.example/a', 'GET:shop.example/{}/{}');
    await fc.assert(
      fc.asyncProperty(shop, operation, asked, async (one, added, pattern) => {
        const later = { ...one, operations: [...one.operations, added] };
        const before = await readOpenApi(documentOf(one));
        const after = await readOpenApi(documentOf(later));
        const isNew = after.catalog.size > before.catalog.size;
        const held = before.catalog.expand(
          before.catalog.knows(pattern) ? [pattern] : before.catalog.toArray(),
        ).granted;
        const opens = opener(held, after.catalog);
        const opened = requestsTo(one).filter(opens);

        // Skips tokens bound to a literal segment: they do open a later operation of that name.
        fc.pre(isNew && held.every((scope) => before.catalog.toArray().includes(scope)));
        const gained = opened.filter((request) =>
          chosenFor(later, request).includes(added.join(' ')),
        );
        expect(gained).toEqual([]);
      }),
      runs(0.4),
    );
  });
});

describe('a template for several segments', () => {
  it.each([
    ['/files/{path+}', ['/files', '/files/a', '/files/a/b/c'], ['/filesa', '/a/files', '/']],
    ['/{tenant}/files/{path+}', ['/a/files', '/a/files/b'], ['/files/a', '/a/b/files']],
  ])('opens with %s only the paths below it', async (one, opened, closed) => {
    const { catalog, entries } = await readOpenApi(
      documentOf({ base: '', operations: [['GET', one]] }),
    );
    const opens = opener([entries[0]?.scope ?? ''], catalog);
    const requests = (targets: readonly string[]) =>
      targets.map((target) => opens({ method: 'GET', domain: DOMAIN, target }));

    expect(requests(opened)).not.toContain(false);
    expect(requests(closed)).not.toContain(true);
    expect(opens({ method: 'PUT', domain: DOMAIN, target: opened[0] ?? '' })).toBe(false);
  });
});
