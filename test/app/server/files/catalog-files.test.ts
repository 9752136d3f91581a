import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadCatalog } from '../../../../src/app/server/files/catalog-files.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'catalog-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function load(...files: readonly unknown[]) {
  const paths = files.map((content, index) => {
    const path = join(folder, `${index}.json`);
    writeFileSync(path, JSON.stringify(content));
    return path;
  });
  return loadCatalog(paths, 'operation');
}

const DOCUMENT = {
  openapi: '3.1.0',
  servers: [{ url: 'https://shop.example' }],
  tags: [{ name: 'orders', description: 'What was sold' }],
  paths: { '/orders/': { get: { summary: 'List orders', tags: ['orders'] } } },
};

describe('the catalog of files', () => {
  it('keeps the words of lists and of documents, and joins their permissions', async () => {
    const bills = { scope: 'GET:bills.example/bills$', summary: 'List bills', tag: 'bills' };
    const catalog = await load(DOCUMENT, [bills, 'POST:bills.example/bills$']);

    expect(catalog.toArray().map((scope) => catalog.words(scope)?.summary)).toEqual([
      'List bills',
      'List orders',
      undefined,
    ]);
    expect(catalog.withSlash).toEqual(['GET:shop.example/orders$']);
    const permissions = catalog
      .permissions()
      .map(({ tag, domain, description, write }) => [
        `${domain} ${tag}`,
        description,
        write.length,
      ]);
    expect(permissions).toEqual([
      ['bills.example bills', undefined, 2],
      ['shop.example orders', 'What was sold', 1],
    ]);
  });

  it.each([
    [{ summary: 'List' }, /entry 1: scope is missing, as in/],
    [
      { scope: 'GET:shop.example/a$', sumary: 'List' },
      /unknown member "sumary"; did you mean summary\?/,
    ],
    [
      { scope: 'GET:shop.example/a$', color: 'red' },
      /unknown member "color" \(known: scope, summary/,
    ],
    [{ scope: 'GET:shop.example/a$', tag: 7 }, /entry 1: tag must be a text/],
    [{ scope: 'GET:shop.example/a$', segments: 'id' }, /segments must be a list of texts/],
    [{ scope: 'GET:shop.example/a$', segments: [7] }, /segments must be a list of texts/],
    [{ scope: 'GET:shop.example/a$', deprecated: 'yes' }, /deprecated must be true or false/],
    [{ scope: 'GET:shop.example/*' }, /an entry of a catalog names one method/],
  ])('refuses %j', async (entry, message) => {
    await expect(load([entry])).rejects.toThrow(message);
  });
});
