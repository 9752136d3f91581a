import { ScopeCatalog } from '../scope/catalog.ts';
import { getOrMake } from '../scope/collections.ts';
import { parseScope, type Scope } from '../scope/grammar.ts';
import { type EndpointWords, resourcesOf } from '../scope/words.ts';
import { withoutQuery } from './scope-path.ts';

/** An operation of a document. Its words are plain text of at most 200 characters each. */
export interface OpenApiOperation extends EndpointWords {
  /** The index of its document in the given list. */
  readonly document: number;
  /** In upper case. */
  readonly method: string;
  /** As the document writes it: `/orders/{id}`. */
  readonly path: string;
  /** Whether the document marks it as deprecated. */
  readonly deprecated: boolean;
}

/** An entry of the catalog, and the operations that it was made of. */
export interface OpenApiEntry {
  /** In canonical spelling. */
  readonly scope: string;
  /** In the order of the documents; at least one. */
  readonly operations: readonly OpenApiOperation[];
}

/** The result of `readOpenApi`. All lists are in canonical order of the scopes. */
export interface OpenApiReading {
  /** The catalog that `catalogFromOpenApi` makes of the same documents. */
  readonly catalog: ScopeCatalog;
  /** Every entry of the catalog. */
  readonly entries: readonly OpenApiEntry[];
  /** The scopes all of whose operations are deprecated. */
  readonly deprecated: readonly string[];
  /**
   * The entries that stand for several paths, which can only be granted together: `/orders/{id}` and
   * `/orders/{id}.json`, for example.
   */
  readonly merged: readonly OpenApiEntry[];
  /** With the option `skip`: what was left out, and why. Otherwise empty. */
  readonly skipped: readonly string[];
}

/** A tag that a document describes. */
export interface DescribedTag {
  readonly tag: string;
  readonly description: string | undefined;
}

/** Collects operations by the scope that they need. */
export class Entries {
  readonly #byScope = new Map<string, Map<string, OpenApiOperation>>();
  /** By the index of the document, in its order. */
  readonly #tags = new Map<number, readonly DescribedTag[]>();

  /** Counts an operation once, even if several servers give it the same scope. */
  add(scope: string, operation: OpenApiOperation): void {
    const key = `${operation.document} ${operation.path}`;
    getOrMake(this.#byScope, scope, () => new Map()).set(key, operation);
  }

  describe(document: number, tags: readonly DescribedTag[]): void {
    this.#tags.set(document, tags);
  }

  toReading(skipped: readonly string[]): OpenApiReading {
    const entries = [...this.#byScope]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([scope, operations]) => ({ scope, operations: [...operations.values()] }));
    const isDeprecated = ({ operations }: OpenApiEntry) =>
      operations.every(({ deprecated }) => deprecated);
    const isMerged = ({ operations }: OpenApiEntry) =>
      operations.some(({ path }) => path !== operations[0]?.path);
    const withSlash = entries.filter(isWithSlash).map(({ scope }) => scope);
    const worded = entries.flatMap(({ scope: text, operations }) => {
      const scope = parseScope(text);
      return operations.map((operation) => ({ ...operation, scope }));
    });
    const permissions = this.#permissionsOf(worded);
    return {
      catalog: ScopeCatalog.from(worded, { withSlash, permissions }),
      entries,
      deprecated: entries.filter(isDeprecated).map(({ scope }) => scope),
      merged: entries.filter(isMerged),
      skipped,
    };
  }

  /** In the order of the documents and of their tags, with what these say about them. */
  #permissionsOf(operations: readonly (OpenApiOperation & { readonly scope: Scope })[]) {
    const ranked = operations.map((operation) => {
      const tags = this.#tags.get(operation.document) ?? [];
      const rank = tags.findIndex(({ tag }) => tag === operation.tag);
      return {
        ...operation,
        rank: rank === -1 ? tags.length : rank,
        description: tags[rank]?.description,
      };
    });
    ranked.sort((a, b) => a.document - b.document || a.rank - b.rank);
    return resourcesOf(ranked).map(({ tag: name, domain, description, read, write }) => ({
      name,
      domain,
      description,
      levels: { read, write },
    }));
  }
}

/** Whether the documents write each path of an entry with a slash at the end, alone or also without. */
function isWithSlash({ operations }: OpenApiEntry): boolean {
  const paths = new Set(
    operations.map(({ path }) => withoutQuery(path).replaceAll(/\{[^{}]*\}/g, '{}')),
  );
  return [...paths].every((path) => path.endsWith('/') || paths.has(`${path}/`));
}
