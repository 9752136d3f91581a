import type { Entry, ScopeTree } from './tree.ts';

/** The entries that have all words of a query, and how many there are. */
export interface Found {
  readonly entries: readonly Entry[];
  readonly total: number;
}

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

  /** In the order of the tree; the first ones, up to a limit. */
  find(query: string, limit: number): Found {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const entries: Entry[] = [];
    let total = 0;
    for (const entry of words.length === 0 ? [] : this.#tree.entries) {
      const text = this.#texts[entry.index] as string;
      if (!words.every((word) => text.includes(word))) continue;
      total += 1;
      if (entries.length < limit) entries.push(entry);
    }
    return { entries, total };
  }
}
