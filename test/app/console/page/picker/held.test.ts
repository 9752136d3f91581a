import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { selectionOf } from '../../../../../src/app/console/page/picker/held.ts';
import { isReadOnly } from '../../../../../src/app/console/page/picker/selection.ts';
import { ScopeSet } from '../../../../../src/scope/set.ts';
import { asked, setUp } from './support.ts';

const REPOS = [
  'GET:a.example/repos/{}/{}$',
  'GET:a.example/repos/{}/{}/issues$',
  'POST:a.example/repos/{}/{}/issues$',
  'GET:a.example/files',
  'GET:a.example/zen$',
];

describe('selectionOf', () => {
  const { tree, catalog, branch, entry } = setUp(REPOS);

  it('ticks held entries, and requests them again', () => {
    const held = ['GET:a.example/repos/{}/{}/issues$', 'GET:a.example/zen$'];
    const selection = selectionOf(tree, catalog, held);

    expect(selection.isTicked(entry('GET:a.example/zen$'))).toBe(true);
    expect(selection.isTicked(entry('GET:a.example/files'))).toBe(false);
    expect(asked(selection, catalog).granted).toEqual(held);
  });

  it('ticks all entries that a requested wildcard covers', () => {
    const selection = selectionOf(tree, catalog, ['GET:*/*']);

    expect(isReadOnly(selection, tree.root)).toBe(true);
  });

  it('fills in the name of the only held resource', () => {
    const held = ['GET:a.example/repos/acme/site$', 'GET:a.example/repos/acme/site/issues$'];
    const selection = selectionOf(tree, catalog, held);

    expect(selection.nameOf(branch('a.example', 'repos', '{}'))).toBe('acme');
    expect(selection.nameOf(branch('a.example', 'repos', '{}', '{}'))).toBe('site');
    expect(selection.others).toEqual([]);
    expect(asked(selection, catalog).granted).toEqual(held);
  });

  it('fills in the name of the resource with most scopes, and keeps the scopes of another one', () => {
    const held = [
      'GET:a.example/repos/acme/docs$',
      'GET:a.example/repos/acme/site$',
      'GET:a.example/repos/acme/site/issues$',
    ];
    const selection = selectionOf(tree, catalog, held);

    expect(selection.nameOf(branch('a.example', 'repos', '{}', '{}'))).toBe('site');
    expect(selection.others).toEqual(['GET:a.example/repos/acme/docs$']);
    expect(asked(selection, catalog).granted).toEqual(held);
  });

  it('keeps a second resource as one path if all of it is held', () => {
    const held = ['docs', 'site'].flatMap((name) =>
      ['GET', 'POST'].flatMap((method) => [`${method}:a.example/repos/acme/${name}/issues$`]),
    );
    const more = ['GET:a.example/repos/acme/docs$', 'GET:a.example/repos/acme/site$'];
    const selection = selectionOf(tree, catalog, [...held, ...more]);

    expect(selection.others).toEqual(['*:a.example/repos/acme/site']);
    expect(asked(selection, catalog).requested).toEqual([
      '*:a.example/repos/acme/docs',
      '*:a.example/repos/acme/site',
    ]);
    expect(asked(selection, catalog).granted).toEqual([...held, ...more].sort());
  });

  it('distinguishes an open entry from a closed one at the same path', () => {
    const { tree, catalog, entry } = setUp(['GET:a.example/files', 'GET:a.example/files$']);
    const selection = selectionOf(tree, catalog, ['GET:a.example/files$']);

    expect(selection.isTicked(entry('GET:a.example/files'))).toBe(false);
    expect(selection.isTicked(entry('GET:a.example/files$'))).toBe(true);
  });

  it.each([
    ['GET:a.example/files$'],
    ['GET:a.example/files/7$'],
    ['GET:a.example/gone$'],
    ['GET:z.example/zen$'],
    ['not a scope'],
  ])('keeps %j, which the tree cannot show', (scope) => {
    expect(selectionOf(tree, catalog, [scope]).others).toEqual([scope]);
  });

  it('keeps a scope whose name has become an endpoint of its own', () => {
    const { tree, catalog } = setUp(['GET:a.example/users/{}/keys$', 'GET:a.example/users/me$']);
    const held = ['GET:a.example/users/me/keys$'];
    const selection = selectionOf(tree, catalog, held);

    expect(selection.others).toEqual(held);
    expect(asked(selection, catalog).granted).toEqual(held);
  });

  const real = new URL('../../../../../../shared/data/catalog-270.json', import.meta.url);

  it.skipIf(!existsSync(real))('requests exactly the held scopes of a real catalog', () => {
    const scopes: string[] = JSON.parse(readFileSync(real, 'utf8'));
    const { tree, catalog } = setUp(scopes);
    const held = scopes.filter((_, index) => index % 3 === 0);
    const { granted } = asked(selectionOf(tree, catalog, held), catalog);

    expect(ScopeSet.from(granted).equals(held)).toBe(true);
  });
});
