import type { Scope } from './grammar.ts';
import type { EndpointWords } from './words.ts';

/** A scope with its words: those of its first operation, and of all. */
export interface Searched {
  readonly scope: Scope;
  readonly words: EndpointWords & { readonly operations?: readonly EndpointWords[] | undefined };
}

/** Words that say nothing about an endpoint. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  'a an the of for to in on at by with from and or all my your i how do can'.split(' '),
);

/** What a word of a query is worth, by where it is found. */
const WORTH = { summary: 8, operationId: 4, tag: 3, segments: 2, path: 1 } as const;
/** Of a whole word, beside its beginning. */
const WHOLE = 2;
/** The part of its worth that a scope keeps if new programs should avoid it. */
const DEPRECATED = 0.75;

/** The words of an item, each with what it is worth. */
interface Indexed {
  readonly worths: ReadonlyMap<string, number>;
  /** The summary without the words that say nothing. */
  readonly summary: string;
  /** For words that are parts of a path, such as `orders/{}`. */
  readonly text: string;
  readonly isDeprecated: boolean;
}

/** Finds scopes by what people call them, and by their method, host and path. */
export class Search<Item extends Searched> {
  readonly #indexed: readonly (Indexed & { readonly item: Item })[];

  constructor(items: readonly Item[]) {
    this.#indexed = items.map((item) => ({ item, ...indexed(item) }));
  }

  /**
   * The items that have all words of a query, in whatever order and by their beginnings: those whose
   * summary has them come first. None without a word.
   */
  find(query: string): readonly Item[] {
    const given = query.toLowerCase().split(/\s+/).filter(Boolean);
    const meant = given.filter((word) => !STOP_WORDS.has(word));
    const words = meant.length > 0 ? meant : given;
    if (words.length === 0) return [];
    const phrase = words.join(' ');
    const found: { readonly item: Item; readonly worth: number }[] = [];
    for (const place of this.#indexed) {
      const worth = worthOf(place, words, phrase);
      if (worth > 0) found.push({ item: place.item, worth });
    }
    // Stable: what is worth the same stays in the order of the items.
    return found.sort((a, b) => b.worth - a.worth).map(({ item }) => item);
  }
}

function indexed({ scope, words }: Searched): Indexed {
  const { method, domain, path } = scope;
  const text = `${method}:${domain}/${path}\n${method} /${path}`.toLowerCase();
  const worths = new Map<string, number>();
  const add = (place: keyof typeof WORTH, given: string) => {
    for (const word of wordsIn(given)) {
      worths.set(word, Math.max(WORTH[place], worths.get(word) ?? 0));
    }
  };
  const all = words.operations ?? [words];
  add('path', text);
  for (const { summary = '', tag = '', operationId = '', segments = [] } of all) {
    for (const name of segments) {
      add('segments', name);
      // As it is, too: `issue_number`.
      worths.set(name.toLowerCase(), WORTH.segments);
    }
    add('tag', tag);
    add('operationId', operationId);
    add('summary', summary);
  }
  const summary = wordsIn(words.summary ?? '').filter((word) => !STOP_WORDS.has(word));
  return { worths, summary: summary.join(' '), text, isDeprecated: words.deprecated === true };
}

function wordsIn(text: string): readonly string[] {
  return text
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean);
}

/** Without the `s` of a plural: people write both. */
function singular(word: string): string {
  return word.length > 3 && !word.endsWith('ss') ? word.replace(/s$/, '') : word;
}

/** 0 if a word is nowhere. */
function worthOf(
  { worths, summary, text, isDeprecated }: Indexed,
  words: readonly string[],
  phrase: string,
): number {
  let sum = 0;
  for (const word of words) {
    const one = singular(word);
    let best = text.includes(word) ? WORTH.path : 0;
    for (const [known, worth] of worths) {
      if (worth + WHOLE < best || !known.startsWith(one)) continue;
      const isWhole = singular(known) === one;
      best = Math.max(best, worth + (known === word ? WHOLE : isWhole ? WHOLE / 2 : 0));
    }
    if (best === 0) return 0;
    sum += best;
  }
  if (isDeprecated) sum *= DEPRECATED;
  if (summary === phrase) return sum + 100;
  // Of two that have the words, the one that says little else.
  const closeness = summary === '' ? 0 : phrase.length / Math.max(phrase.length, summary.length);
  return sum + (summary.startsWith(phrase) ? 5 : 0) + 4 * closeness;
}
