import { ScopeError } from '../scope/errors.ts';

/** Characters of a text of an OpenAPI document that an error quotes. @bound */
export const MAX_QUOTED_LENGTH = 100;

/** Problems of OpenAPI documents that an error names. @bound */
export const MAX_NAMED_PROBLEMS = 10;

/** Pairs of an operation and a server, in all OpenAPI documents of a catalog. @bound */
export const MAX_CATALOG_PAIRS = 100_000;

/** Either a value, or the problem that prevented it. */
export type Result<Value> = { readonly ok: true; readonly value: Value } | Failure;

interface Failure {
  readonly ok: false;
  readonly problem: string;
}

export function failed(problem: string): Failure {
  return { ok: false, problem };
}

/** Collects the problems of all documents, each once, so that they can be fixed in one go. */
export class Problems {
  readonly #ofParts = new Set<string>();
  readonly #ofDocuments = new Set<string>();

  /** Adds a problem of an operation, a path or a server: the rest of the document can be read. */
  add(location: string, text: string): void {
    this.#ofParts.add(`${location}: ${text}`);
  }

  /** Adds a problem for which a whole document cannot be read. */
  addForDocument(name: string, text: string): void {
    this.#ofDocuments.add(`${name}: ${text}`);
  }

  /**
   * Lists what was left out.
   *
   * @param skip whether operations may be left out
   * @throws {ScopeError} if a document cannot be read, or an operation and it may not be left out
   */
  leftOut(skip: boolean): readonly string[] {
    const parts = [...this.#ofParts];
    const all = [...this.#ofDocuments, ...(skip ? [] : parts)];
    if (all.length === 0) return parts;
    const rest = all.length - MAX_NAMED_PROBLEMS;
    const shown = all.slice(0, MAX_NAMED_PROBLEMS).join('; ');
    const cure = this.#ofDocuments.size > 0 || skip ? '' : `; ${SKIP_HINT}`;
    throw noCatalog(`${shown}${rest > 0 ? `; and ${rest} more` : ''}${cure}`);
  }
}

const SKIP_HINT = 'the option skip, as skip: true, leaves such operations out';

/** Limits the work that all documents together can cause. */
export class WorkBudget {
  readonly #left = { operations: MAX_CATALOG_PAIRS, servers: MAX_CATALOG_PAIRS };

  spend(kind: 'operations' | 'servers', location: string, count: number): void {
    this.#left[kind] -= count;
    if (this.#left[kind] >= 0) return;
    throw noCatalog(
      `${location}: there are more than ${MAX_CATALOG_PAIRS} pairs of an operation and a server; name fewer servers, or read fewer documents`,
    );
  }
}

function noCatalog(why: string): ScopeError {
  return new ScopeError(
    'catalog_not_concrete',
    `no catalog can be made of the OpenAPI documents: ${why}`,
  );
}

/** Quotes a text of a document for a message: printable ASCII of bounded length. */
export function quote(text: string): string {
  const isLong = text.length > MAX_QUOTED_LENGTH;
  const shown = isLong ? `${text.slice(0, MAX_QUOTED_LENGTH)}...` : text;
  return `"${shown.replaceAll(/[^ -~]/g, '?')}"`;
}

/** Quotes a URL without the part before an `@`, which may be a password. */
export function quoteUrl(url: string): string {
  return quote(url.replace(/^([^@/]*\/\/)?.*@/s, '$1...@'));
}
