import { existsSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { previewOf, requestOf } from '../../../../../src/app/console/page/picker/request.ts';
import { Rights } from '../../../../../src/app/console/page/picker/rights.ts';
import { entriesOf, type Selection } from '../../../../../src/app/console/page/picker/selection.ts';
import {
  branchesTo,
  isTemplate,
  type ScopeTree,
} from '../../../../../src/app/console/page/picker/tree.ts';
import type { ScopeCatalog } from '../../../../../src/scope/catalog.ts';
import type { Scope } from '../../../../../src/scope/grammar.ts';
import { ScopeSet } from '../../../../../src/scope/set.ts';
import { runs } from '../../../../laws.ts';
import { allowed, asked, largeCatalog, setUp } from './support.ts';

const SHOP = [
  'GET:a.example/orders$',
  'POST:a.example/orders$',
  'GET:a.example/orders/{}$',
  'DELETE:a.example/orders/{}$',
  'GET:b.example/bills$',
  'POST:b.example/bills$',
];

describe('requestOf', () => {
  it('requests a whole catalog with one scope', () => {
    const { none, tree, catalog } = setUp(SHOP);

    expect(requestOf(none.withAll(tree.root, true), catalog)).toEqual(['*:*/*']);
  });

  it('requests all reading endpoints with one scope', () => {
    const { none, tree, catalog } = setUp(SHOP);

    expect(requestOf(none.withReading(tree.root), catalog)).toEqual(['GET:*/*']);
  });

  it('requests a branch with one scope, and a single endpoint with its own scope', () => {
    const { none, branch, entries, catalog } = setUp(SHOP);
    const selection = none
      .withAll(branch('a.example', 'orders'), true)
      .with(entries('GET:b.example/bills$'), true);

    expect(requestOf(selection, catalog)).toEqual(['*:a.example/orders', 'GET:b.example/bills$']);
  });

  it('requests by method or by branch, whichever needs fewer scopes', () => {
    const { none, tree, entries, catalog } = setUp([
      ...['x', 'y', 'z'].flatMap((name) => [`GET:a.example/${name}$`, `POST:a.example/${name}$`]),
      'PUT:a.example/w$',
    ]);
    const posts = ['POST:a.example/y$', 'POST:a.example/z$'];
    const byBranch = none
      .withAll(tree.root, true)
      .with(entries('GET:a.example/x$', 'POST:a.example/x$', 'PUT:a.example/w$'), false);
    const byMethod = none
      .withAll(tree.root, true)
      .with(entries(...posts, 'PUT:a.example/w$'), false);

    expect(requestOf(byBranch, catalog)).toEqual(['*:a.example/y', '*:a.example/z']);
    expect(requestOf(byMethod, catalog)).toEqual(['GET:a.example/*', 'POST:a.example/x$']);
  });

  it('does not request a branch whose scope also matches endpoints beside it', () => {
    // The scope `GET:a.example/users/{}` covers the keys of /users/me as well.
    const { none, branch, catalog } = setUp([
      'GET:a.example/users/{}$',
      'GET:a.example/users/{}/posts$',
      'GET:a.example/users/me/keys$',
    ]);
    const selection = none.withAll(branch('a.example', 'users', '{}'), true);

    expect(asked(selection, catalog).granted).toEqual([
      'GET:a.example/users/{}$',
      'GET:a.example/users/{}/posts$',
    ]);
  });

  it('does not request a branch below an open entry, which would grant more than its endpoints', () => {
    const { none, branch, catalog } = setUp([
      'GET:a.example/orders',
      'GET:a.example/orders/x/one$',
      'GET:a.example/orders/x/two$',
    ]);
    const selection = none.withAll(branch('a.example', 'orders', 'x'), true);

    expect(requestOf(selection, catalog)).toEqual([
      'GET:a.example/orders/x/one$',
      'GET:a.example/orders/x/two$',
    ]);
  });

  it('requests one resource with a single path', () => {
    const { none, branch, catalog } = setUp([
      'GET:a.example/repos/{}/{}$',
      'DELETE:a.example/repos/{}/{}$',
      'GET:a.example/repos/{}/{}/issues$',
      'POST:a.example/repos/{}/{}/issues$',
      'GET:a.example/zen$',
    ]);
    const repo = branch('a.example', 'repos', '{}', '{}');
    const named = none.withName(branch('a.example', 'repos', '{}'), 'acme').withName(repo, 'site');

    expect(requestOf(named.withAll(repo, true), catalog)).toEqual(['*:a.example/repos/acme/site']);
    expect(requestOf(named.withReading(repo), catalog)).toEqual(['GET:a.example/repos/acme/site']);
    expect(asked(named.withReading(repo), catalog).granted).toEqual([
      'GET:a.example/repos/acme/site$',
      'GET:a.example/repos/acme/site/issues$',
    ]);
  });

  it('keeps other scopes, unless the selection covers them', () => {
    const { none, branch, tree, catalog } = setUp(SHOP);
    const others = ['GET:a.example/orders/7$'];

    expect(requestOf(none.withOthers(others), catalog)).toEqual(others);
    const selection = none.withAll(branch('b.example'), true).withOthers(others);
    expect(requestOf(selection, catalog)).toEqual(['*:b.example/bills', ...others]);
    const covering = none.withAll(tree.root, true).withOthers(others);
    expect(requestOf(covering, catalog)).toEqual(['*:*/*']);
  });

  it('handles more methods than it can compare', () => {
    const methods = Array.from(
      { length: 40 },
      (_, at) => `M${String.fromCharCode(65 + (at % 26))}${at < 26 ? 'A' : 'B'}`,
    );
    const { none, tree, entries, catalog } = setUp(
      methods.flatMap((method) => [`${method}:a.example/x$`, `${method}:a.example/y$`]),
    );
    const all = none.withAll(tree.root, true);
    const most = all.with(entries('MAA:a.example/x$'), false);

    expect(requestOf(all, catalog)).toEqual(['*:a.example/*']);
    expect(asked(most, catalog).granted).toHaveLength(79);
  });

  const segment = fc.constantFrom('a', 'b', '{}', '{}');
  const scopes = fc.uniqueArray(
    fc
      .tuple(
        fc.constantFrom('GET', 'POST', 'PUT'),
        fc.constantFrom('x.example', 'y.example'),
        fc.array(segment, { maxLength: 3 }),
        fc.boolean(),
      )
      .map(
        ([method, host, segments, isClosed]) =>
          `${method}:${host}/${segments.join('/')}${isClosed || segments.length === 0 ? '$' : ''}`,
      ),
    { minLength: 1, maxLength: 9 },
  );
  const picks = fc.record({
    scopes,
    ticks: fc.array(fc.boolean(), { minLength: 9, maxLength: 9 }),
    named: fc.option(fc.nat(20), { nil: undefined }),
  });

  function pick(given: { scopes: string[]; ticks: boolean[]; named: number | undefined }) {
    const { tree, catalog, none } = setUp(given.scopes);
    const ticked = tree.entries.filter(({ index }) => given.ticks[index]);
    const templates = tree.branches.filter(isTemplate);
    const template =
      given.named === undefined ? undefined : templates[given.named % templates.length];
    const plain = none.with(ticked, true);
    const selection = template === undefined ? plain : plain.withName(template, 'n');
    return { tree, catalog, selection, ticked };
  }

  it('grants exactly the selected endpoints for any catalog', () => {
    fc.assert(
      fc.property(picks, (given) => {
        const { catalog, selection, ticked } = pick(given);
        fc.pre(ticked.length > 0);
        const meant = ticked.flatMap((entry) => selection.scopeOf(entry) ?? []);

        expect(allowed(catalog, asked(selection, catalog).granted)).toEqual(
          allowed(catalog, meant),
        );
      }),
      runs(),
    );
  });

  it('grants a named endpoint in addition to a template that does not match it', () => {
    // The scope of any user covers that of /users/me, and does not open it.
    const scopes = ['GET:a.example/users/me$', 'GET:a.example/users/{}$'];
    const { tree, none, catalog } = setUp([...scopes, 'GET:a.example/users/{}/keys$']);
    const selection = none.with(
      tree.entries.filter(({ scope }) => !scope.path.endsWith('keys$')),
      true,
    );

    expect(asked(selection, catalog).granted).toEqual(scopes);
  });

  it('needs as few scopes as the best choice of branches, methods and entries', () => {
    fc.assert(
      fc.property(picks, (given) => {
        const { tree, catalog, selection, ticked } = pick(given);
        fc.pre(ticked.length > 0);

        expect(requestOf(selection, catalog).length).toBe(fewest(tree, catalog, selection));
      }),
      runs(0.1),
    );
  });

  /**
   * The requests that a scope allows, if these are exactly the ones that the entries allow, and it is
   * granted nothing beside the entries. (`*:a.example/{}/{}` may get `GET:a.example/x/{}` of an open
   * entry `GET:a.example/x`, too.)
   */
  function grants(
    catalog: ScopeCatalog,
    scope: string,
    entries: readonly Scope[],
  ): readonly Set<string>[] {
    try {
      const { granted } = catalog.expand([scope]);
      const requests = new Set(allowed(catalog, granted));
      const meant = allowed(catalog, entries);
      const isExact = new Rights(granted).equals(new Rights(entries));
      const isSame =
        isExact && requests.size === meant.size && [...meant].every((one) => requests.has(one));
      return isSame ? [requests] : [];
    } catch {
      return [];
    }
  }

  /** The size of the smallest set of scopes of branches and entries that allows the selection. Tries all. */
  function fewest(tree: ScopeTree, catalog: ScopeCatalog, selection: Selection): number {
    const ticked = tree.entries.filter((entry) => selection.isTicked(entry));
    const scopes = ticked.flatMap((entry) => selection.scopeOf(entry) ?? []);
    const meant = [...allowed(catalog, scopes)];
    const branches = tree.branches.flatMap((branch) =>
      ['*', 'GET', 'POST', 'PUT'].flatMap((method) => {
        const entries = entriesOf(tree, branch).filter(
          ({ scope }) => method === '*' || scope.method === method,
        );
        // An entry that is not selected is not requested, even if selected ones together allow the same.
        if (!entries.every((entry) => selection.isSelected(entry))) return [];
        const path = selection.pathOf(branch) || '*';
        const asked = `${method}:${branchesTo(branch)[0]?.text ?? '*'}/${path}`;
        return grants(
          catalog,
          asked,
          entries.flatMap((entry) => selection.scopeOf(entry) ?? []),
        );
      }),
    );
    const parts = [
      ...branches,
      ...scopes.map((scope) => new Set(allowed(catalog, [scope]))),
    ].filter((requests) => [...requests].every((request) => meant.includes(request)));
    // Each entry needs a scope that allows all of its requests: two that allow half of them each are not enough.
    const entries = scopes.map((scope) => [...allowed(catalog, [scope])]);
    const sets = parts.map((requests) =>
      entries.reduce(
        (bits, needed, at) =>
          bits | (needed.every((one) => requests.has(one)) ? 1n << BigInt(at) : 0n),
        0n,
      ),
    );
    const all = (1n << BigInt(entries.length)) - 1n;
    let reached = new Set([0n]);
    for (let count = 1; ; count++) {
      reached = new Set([...reached].flatMap((bits) => sets.map((more) => bits | more)));
      if (reached.has(all)) return count;
    }
  }

  const real = new URL('../../../../../../shared/data/catalog-270.json', import.meta.url);

  it.skipIf(!existsSync(real))('grants exactly the selected endpoints of a real catalog', () => {
    const { tree, none, catalog } = setUp(JSON.parse(readFileSync(real, 'utf8')));
    for (const step of [2, 3, 7]) {
      const ticked = tree.entries.filter(({ index }) => index % step !== 0);
      const { granted } = asked(none.with(ticked, true), catalog);

      expect(ScopeSet.from(granted).equals(ticked.map(({ scope }) => scope))).toBe(true);
    }
  });
});

describe('previewOf', () => {
  it('returns the scopes to be granted, their hosts, and how many of them write', () => {
    const { none, tree, catalog } = setUp(SHOP);

    expect(previewOf(none.withAll(tree.root, true), catalog)).toEqual({
      ok: true,
      requested: ['*:*/*'],
      granted: [...SHOP].sort(),
      writing: 3,
      hosts: ['a.example', 'b.example'],
    });
  });

  it('returns the error of the service for a scope that the catalog does not know', () => {
    const { none, catalog } = setUp(SHOP);
    const preview = previewOf(none.withOthers(['GET:a.example/ordres$']), catalog);

    expect(preview).toMatchObject({
      ok: false,
      error: {
        code: 'scope_unmatched',
        refused: [{ nearest: expect.arrayContaining(['GET:a.example/orders$']) }],
      },
    });
  });

  it('refuses an empty selection, like the service', () => {
    const { none, catalog } = setUp(SHOP);

    expect(previewOf(none, catalog)).toMatchObject({ error: { code: 'scopes_required' } });
  });

  it('requests nothing while a name is invalid or makes a path too long', () => {
    const { none, tree, branch, catalog } = setUp(SHOP);
    const template = branch('a.example', 'orders', '{}');
    const all = none.withAll(tree.root, true);

    expect(previewOf(all.withName(template, 'a/b'), catalog)).toEqual({
      ok: false,
      error: 'bad_name',
    });
    expect(previewOf(all.withName(template, 'a'.repeat(600)), catalog)).toEqual({
      ok: false,
      error: 'long_path',
    });
    expect(previewOf(all.withName(template, 'a'), catalog).ok).toBe(true);
  });

  it('handles 1 500 entries', () => {
    const { none, tree, catalog } = setUp(largeCatalog());
    const selection = none.with(
      tree.entries.filter(({ index }) => index % 7 !== 0),
      true,
    );

    expect(asked(selection, catalog).granted).toHaveLength(1285);
  });
});
