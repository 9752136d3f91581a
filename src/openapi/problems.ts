import { MAX_CATALOG_PAIRS, MAX_NAMED_PROBLEMS, MAX_QUOTED_LENGTH } from '../bounds.ts';
import { ScopeError } from '../scope/errors.ts';

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
  readonly #texts = new Set<string>();

  add(location: string, text: string): void {
    this.#texts.add(`${location}: ${text}`);
  }

  throwIfAny(): void {
    const shown = [...this.#texts].slice(0, MAX_NAMED_PROBLEMS);
    if (shown.length === 0) return;
    const rest = this.#texts.size - shown.length;
    throw noCatalog(`${shown.join('; ')}${rest > 0 ? `; and ${rest} more` : ''}`);
  }
}

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
