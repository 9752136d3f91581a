import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { choicesAmong } from '../../../../../src/app/console/page/api.ts';
import { rightsOf } from '../../../../../src/app/console/page/picker/choices.ts';
import {
  levelOf,
  levelsOf,
  resourcesOf,
  sharedParameters,
  withLevel,
} from '../../../../../src/app/console/page/picker/resources.ts';
import { Selection } from '../../../../../src/app/console/page/picker/selection.ts';
import { scopeTree } from '../../../../../src/app/console/page/picker/tree.ts';
import { ScopeCatalog, type WordedScope } from '../../../../../src/scope/index.ts';
import { runs } from '../../../../laws.ts';
import { asked } from './support.ts';

const at = (scope: string) => scope.replace(' ', ':git.example/');
const repo = ['owner', 'repo'];
const ENTRIES: readonly WordedScope[] = [
  { scope: at('GET repos/{}/{}$'), tag: 'repos', segments: repo },
  { scope: at('DELETE repos/{}/{}$'), tag: 'repos', segments: repo },
  { scope: at('GET repos/{}/{}/issues$'), tag: 'issues', segments: repo },
  { scope: at('POST repos/{}/{}/issues$'), tag: 'issues', segments: repo },
  { scope: at('GET issues$'), tag: 'issues' },
  { scope: at('POST markdown$'), tag: 'markdown' },
  { scope: at('GET emojis$'), tag: 'emojis' },
];
const catalog = ScopeCatalog.from(ENTRIES);
const choices = {
  scopes: ENTRIES.map(({ scope, ...words }) => ({ scope: String(scope), ...words })) as never,
  permissions: catalog.permissions() as never,
  presets: [],
};
const tree = scopeTree(catalog, (scope) => (catalog.words(scope) ?? {}) as never);
const resources = resourcesOf(tree, choices.permissions);
const none = Selection.none(tree);
const resource = (name: string) => {
  const found = resources.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no resource ${name}`);
  return found;
};
const entry = (scope: string) => {
  const found = tree.entries.find((one) => one.scope.toString() === scope);
  if (found === undefined) throw new Error(`no entry ${scope}`);
  return found;
};

describe('the resources of a picker', () => {
  it('offer the levels that they have', () => {
    expect(resources.map((one) => [one.name, levelsOf(one)])).toEqual([
      ['Repos', ['none', 'read', 'write']],
      ['Emojis', ['none', 'read']],
      ['Issues', ['none', 'read', 'write']],
      ['Markdown', ['none', 'write']],
    ]);
  });

  it('have the level that is set, until an endpoint is picked or dropped alone', () => {
    const issues = resource('Issues');
    const reading = withLevel(none, issues, 'read');
    const writing = withLevel(reading, issues, 'write');

    expect([none, reading, writing].map((one) => levelOf(one, issues))).toEqual([
      'none',
      'read',
      'write',
    ]);
    const [first] = issues.read;
    expect(levelOf(reading.with([first as never], false), issues)).toBe('custom');
    expect(levelOf(none.with([entry(at('POST repos/{}/{}/issues$'))], true), issues)).toBe(
      'custom',
    );
    expect(levelOf(withLevel(writing, issues, 'none'), issues)).toBe('none');
    expect(withLevel(writing, issues, 'none').isEmpty).toBe(true);
  });

  it('that only read have that level when all of it is picked', () => {
    const emojis = resource('Emojis');

    expect(levelOf(none.with(emojis.write, true), emojis)).toBe('read');
    expect(levelOf(withLevel(none, resource('Markdown'), 'write'), resource('Markdown'))).toBe(
      'write',
    );
  });

  it('leave out permissions without an entry of the tree', () => {
    const gone = [{ tag: 'gone', read: [], write: ['GET:other.example/x$'] }];

    expect(resourcesOf(tree, gone)).toEqual([]);
  });

  it('grant what their endpoints grant by hand', () => {
    const choice = fc.tuple(
      fc.constantFrom(...resources),
      fc.constantFrom('none', 'read', 'write' as const),
    );
    fc.assert(
      fc.property(fc.array(choice, { minLength: 1 }), (chosen) => {
        const selection = chosen.reduce(
          (next, [one, level]) => withLevel(next, one, level as 'read'),
          none,
        );
        fc.pre(!selection.isEmpty);
        const byHand = tree.entries
          .filter((one) => selection.isTicked(one))
          .map(({ scope }) => scope.toString());
        const { requested, granted } = asked(selection, catalog);
        expect(granted).toEqual(byHand.sort());
        expect(catalog.expand(requested).granted).toEqual(catalog.expand(byHand).granted);
      }),
      runs(),
    );
  });
});

describe('the parameters that all selected endpoints share', () => {
  const shared = (...scopes: string[]) =>
    sharedParameters(
      none.with(
        scopes.map((scope) => entry(at(scope))),
        true,
      ),
    ).map(({ label }) => label);

  it.each<[readonly string[], readonly string[]]>([
    [['GET repos/{}/{}$'], ['{owner}', '{repo}']],
    [
      ['GET repos/{}/{}$', 'POST repos/{}/{}/issues$'],
      ['{owner}', '{repo}'],
    ],
    [['GET repos/{}/{}$', 'GET issues$'], []],
    [['GET issues$'], []],
    [[], []],
  ])('of %j are %j', (scopes, labels) => {
    expect(shared(...scopes)).toEqual(labels);
  });

  it('narrow all of them with one name', () => {
    const selection = withLevel(none, resource('Repos'), 'write');
    const [owner, name] = sharedParameters(selection);
    const narrowed = selection.withName(owner as never, 'acme').withName(name as never, 'site');

    expect(asked(narrowed, catalog).granted).toEqual([
      at('DELETE repos/acme/site$'),
      at('GET repos/acme/site$'),
    ]);
    expect(levelOf(narrowed, resource('Repos'))).toBe('write');
  });
});

describe('what scopes would allow', () => {
  it('is told in permissions and endpoints', () => {
    expect(rightsOf(choices, [at('GET issues$'), at('GET repos/{}/{}/issues$')])).toMatchObject({
      permissions: [{ name: 'Issues', level: 'read' }],
      endpoints: 2,
      isReadOnly: true,
    });
    expect(rightsOf(choices, ['*:*/*'])).toMatchObject({ endpoints: 7, isReadOnly: false });
    expect(rightsOf(choices, ['GET:other.example/x$'])).toMatchObject({ endpoints: 0 });
    expect(rightsOf(choices, [])).toMatchObject({ endpoints: 0, permissions: [] });
  });

  it('is at most what a parent holds', () => {
    const among = choicesAmong(choices, [at('GET issues$'), at('GET repos/acme/site$')]);

    expect(among.scopes.map(({ scope }) => scope)).toEqual([
      at('GET issues$'),
      at('GET repos/acme/site$'),
    ]);
    expect(among.permissions.map(({ tag, write }) => [tag, write])).toEqual([
      ['issues', [at('GET issues$')]],
    ]);
  });
});
