import type { Entry, ScopeTree } from './tree.ts';

/** Finds entries by parts of their method, host and path. Made once for a tree. */
export class Search {
  readonly #tree: ScopeTree;
  readonly #texts: readonly string[];

  constructor(tree: ScopeTree) {
    this.#tree = tree;
    this.#texts = tree.entries.map(({ scope: { method, domain, path } }) =>
      `${method}:${domain}/${path}\n${method} /${path}`.toLowerCase(),
    );
  }

  /** The entries that have all words of a query, in the order of the tree; none without a word. */
  find(query: string): readonly Entry[] {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return [];
    return this.#tree.entries.filter(({ index }) => {
      const text = this.#texts[index] as string;
      return words.every((word) => text.includes(word));
    });
  }
}
