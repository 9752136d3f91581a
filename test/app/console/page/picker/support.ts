import { previewOf } from '../../../../../src/app/console/page/picker/request.ts';
import { Selection } from '../../../../../src/app/console/page/picker/selection.ts';
import {
  type Branch,
  type Entry,
  type ScopeTree,
  scopeTree,
} from '../../../../../src/app/console/page/picker/tree.ts';
import { ScopeCatalog } from '../../../../../src/scope/catalog.ts';
import { getOrMake } from '../../../../../src/scope/collections.ts';
import type { Scope } from '../../../../../src/scope/grammar.ts';
import { ScopeSet } from '../../../../../src/scope/set.ts';
import type { WordedScope } from '../../../../../src/scope/words.ts';

/** A picker without its page. */
export interface Picked {
  readonly catalog: ScopeCatalog;
  readonly tree: ScopeTree;
  readonly none: Selection;
  readonly branch: (...texts: string[]) => Branch;
  readonly entry: (scope: string) => Entry;
  readonly entries: (...scopes: string[]) => readonly Entry[];
}

export function setUp(scopes: readonly string[]): Picked {
  const catalog = ScopeCatalog.from(scopes);
  const tree = scopeTree(catalog);
  const entry = (scope: string): Entry => {
    const found = tree.entries.find((one) => one.scope.toString() === scope);
    if (found === undefined) throw new Error(`no entry ${scope}`);
    return found;
  };
  return {
    catalog,
    tree,
    none: Selection.none(tree),
    branch: (...texts) =>
      texts.reduce((at: Branch, text) => {
        const child = at.children.find((one) => one.text === text);
        if (child === undefined) throw new Error(`no branch ${text}`);
        return child;
      }, tree.root),
    entry,
    entries: (...texts) => texts.map(entry),
  };
}

/** The scopes that a selection requests and gets. Throws if it gets an error. */
export function asked(selection: Selection, catalog: ScopeCatalog) {
  const preview = previewOf(selection, catalog);
  if (!preview.ok) throw preview.error;
  return preview;
}

/**
 * The requests that scopes allow, out of a few to and below each endpoint, decided like a guard with the
 * catalog decides them.
 */
export function allowed(
  catalog: ScopeCatalog,
  scopes: Iterable<Scope | string>,
): ReadonlySet<string> {
  const held = ScopeSet.from(scopes);
  return new Set(
    requestsTo(catalog).filter((text) => {
      const [method = '', domain = '', target = ''] = text.split(' ');
      const reading = catalog.readRequest({ method, domain, target });
      return reading.ok && held.allows(reading.request).allowed;
    }),
  );
}

const VALUES = ['a', 'b', 'n', 'other'];
const known = new WeakMap<ScopeCatalog, readonly string[]>();

function requestsTo(catalog: ScopeCatalog): readonly string[] {
  return getOrMake(known, catalog, () => {
    const texts = [...catalog].flatMap(({ method, domain, path }) => {
      const segments = path.replace(/\$$/, '').split('/').filter(Boolean);
      const paths = segments.reduce(
        (before: readonly string[], segment) =>
          before.flatMap((path) =>
            (segment === '{}' ? VALUES : [segment]).map((value) => `${path}/${value}`),
          ),
        [''],
      );
      return paths.flatMap((path) =>
        [path || '/', `${path}/below`].map((target) => `${method} ${domain} ${target}`),
      );
    });
    return [...new Set(texts)];
  });
}

/** A catalog of 1 500 closed entries on five hosts, with branches below `{}`. */
export function largeCatalog(): string[] {
  return Array.from({ length: 100 }, (_, at) => at).flatMap((at) =>
    ['GET', 'POST', 'DELETE'].flatMap((method) =>
      [`r${at}`, `r${at}/{}`, `r${at}/{}/items`, `r${at}/{}/items/{}`, `repos/{}/{}/k${at}`].map(
        (path) => `${method}:api${at % 5}.example/${path}$`,
      ),
    ),
  );
}

/** The endpoints of {@link largeCatalog} with words, as in a document with 50 tags. */
export function largeWordedCatalog(): WordedScope[] {
  return largeCatalog().map((scope, at) => ({
    scope,
    summary: `${scope.slice(0, scope.indexOf(':')).toLowerCase()} items of resource ${at % 300}`,
    tag: `resource ${at % 50}`,
  }));
}
