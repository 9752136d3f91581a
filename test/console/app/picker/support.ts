import { previewOf } from '../../../../src/console/app/picker/request.ts';
import { Selection } from '../../../../src/console/app/picker/selection.ts';
import {
  type Branch,
  type Entry,
  type ScopeTree,
  scopeTree,
} from '../../../../src/console/app/picker/tree.ts';
import { ScopeCatalog } from '../../../../src/scope/catalog.ts';

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

/** What a selection asks for and gets. Fails if it gets an error. */
export function asked(selection: Selection, catalog: ScopeCatalog) {
  const preview = previewOf(selection, catalog);
  if (!preview.ok) throw preview.error;
  return preview;
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
