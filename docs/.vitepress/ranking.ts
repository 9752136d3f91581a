// How the search reads words and ranks sections: in the page, where it stands for MiniSearch, and in the check.
import MiniSearch, { type Options, type SearchResult } from 'minisearch';

/** Words that a question has but its answer need not. In capitals, GET is a method. */
const STOP_WORDS = new Set(
  `a about am an and any are as at be been by can could did do does doing for from had has have
  how i if in into is it its let like may me my need of on or our should so some than that the their
  them then there these they this to us want was we were what when happen happens where which who whose why will
  with work would you your get got please possible way support between difference again per each
  every existing use using`.split(/\s+/),
);

/** Words for one thing. The first is the one that the pages use. */
const FAMILIES = [
  'revoke revocation delete remove invalidate destroy',
  'rotate renew regenerate refresh reissue',
  'suspend disable pause freeze',
  'account user owner',
  'expire expiration expiry lifetime ttl',
  'store database db',
  'postgresql postgres pg',
  'kubernetes k8s',
  'sign login logon signin',
  'password credential',
  'list enumerate',
  'show see view reveal display',
  'own custom',
  'comparison compare versus vs',
  'nest nestjs',
  'express expressjs',
  'node nodejs',
  'leak compromise expose steal stolen',
  'unused idle stale',
  'translate language locale i18n',
  'agent ai llm mcp',
  'limit throttle',
  'down unavailable outage unreachable',
  'import migrate',
  'cli terminal',
  'ci pipeline',
  'openapi swagger',
  'name rename label',
  'test mock',
  'hash sha256 sha',
  'color colour logo brand theme',
  'route handler endpoint',
  'many multiple several',
  'purge cleanup',
  'stop shutdown',
  'notify notification',
  'backup restore dump',
];

/** A word without its ending, roughly: "revoked" and "revoking" are "revok". */
function stemOf(word: string): string {
  if (word.length < 4 || /[\d_-]/.test(word)) return word;
  const stem = word
    .replace(/ies$/, 'y')
    .replace(/(?<=[^su])s$/, '')
    .replace(/(?<=[aeiouy].*[a-z])(?:ing|ed)$/, '')
    .replace(/(?<=[st])ion$/, '')
    .replace(/([bdgmnprt])\1$/, '$1');
  return stem.length > 3 ? stem.replace(/e$/, '') : stem;
}

const FIRST_OF_FAMILY = new Map(
  FAMILIES.flatMap((line) => {
    const [first = '', ...others] = line.split(' ').map(stemOf);
    return others.map((word) => [word, first] as const);
  }),
);

/** What the index holds of a word; nothing of a stop word. */
function termOf(word: string): string | undefined {
  const isCapital = /^[A-Z]{2,}$/.test(word);
  const lower = word.toLowerCase();
  if (!isCapital && (STOP_WORDS.has(lower) || /^[a-z]$/.test(lower))) return undefined;
  const stem = stemOf(lower);
  return FIRST_OF_FAMILY.get(stem) ?? stem;
}

/** Names such as TOKENWRIGHT_STORE and --reveal. */
const NAME = /[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|--[a-z]+(?:-[a-z]+)*/g;

/** The words of a text, and its names whole. "API keys" are tokens here, and Next.js is one word. */
function wordsOf(text: string): string[] {
  const plain = text
    .replace(/\bAPI keys?\b/gi, 'token')
    .replace(/\bcommand[ -]line\b/gi, 'cli')
    .replace(/\b(\w+)\.js\b/gi, '$1js');
  return [...plain.split(/[\s\p{P}\p{S}]+/u), ...(text.match(NAME) ?? [])];
}

/** For the index. */
export const OPTIONS: Options = {
  fields: ['title', 'titles', 'text', 'keywords'],
  storeFields: ['title', 'titles'],
  tokenize: wordsOf,
  processTerm: termOf,
};

const BOOST = { title: 4, keywords: 6, text: 2, titles: 2 };

/** How much a section weighs, by its page: pages that explain come before pages that list. */
const WEIGHTS: readonly (readonly [page: RegExp, weight: number])[] = [
  [/^\/faq#/, 1.3],
  [/^\/(?:glossary|support|security\/)/, 0.7],
  [/^\/(?:errors|refusals)/, 0.4],
  [/^\/service\/settings/, 0.5],
  [/^\/(?:service|reference)\//, 0.35],
  [/^\/evidence/, 0.2],
];

/** By how much the beginning of a page outweighs a section of it, and a section those below it. */
const DEPTH = 1.3;

/**
 * The sections that answer a question, the best first. A section counts by the words of the question
 * that it has, rare ones more than frequent ones, and those in its headings most.
 */
function answersOf(index: MiniSearch, query: string): SearchResult[] {
  const terms = termsOf(index, query);
  const counts = new Map(terms.map((term) => [term, countOf(index, term)]));
  const isKnown = (term: string) => counts.get(term) !== 0;
  const rarityOf = (members: readonly string[]) =>
    members.reduce(
      (sum, term) => sum + Math.log(1 + index.documentCount / (counts.get(term) || 1)),
      0,
    );
  const results = index.search(terms.join(' '), {
    ...AS_TERMS,
    boost: BOOST,
    // The last word may not be typed to its end.
    prefix: (term) => term === terms.at(-1) || !isKnown(term),
    fuzzy: (term) => !isKnown(term) && term.length > 4 && 0.2,
    weights: { prefix: 0.1, fuzzy: 0.2 },
  });
  const all = rarityOf(terms);
  return results
    .map((result) => {
      const share = rarityOf(result.queryTerms) / all;
      const headed = rarityOf(result.queryTerms.filter((term) => isInHeading(term, result))) / all;
      const weight = isName(query) ? 1 : weightOf(result);
      return { ...result, score: result.score * share ** 2 * (1 + 3 * headed) * weight };
    })
    .sort((a, b) => b.score - a.score);
}

/** The terms of a question. "Open telemetry" is one if the pages only have "OpenTelemetry". */
function termsOf(index: MiniSearch, query: string): readonly string[] {
  const isThere = (word: string) => countOf(index, termOf(word) ?? '') > 0;
  const words: string[] = [];
  for (const word of wordsOf(query)) {
    const last = words.at(-1) ?? '';
    const isOne = isThere(last + word) && !(isThere(last) && isThere(word));
    if (isOne) words.pop();
    words.push(isOne ? last + word : word);
  }
  return [...new Set(words.flatMap((word) => termOf(word) ?? []))];
}

/** For a search for terms rather than words. */
const AS_TERMS = {
  tokenize: (text: string) => text.split(' '),
  processTerm: (term: string) => term,
};

/** The number of sections that have a term. */
function countOf(index: MiniSearch, term: string): number {
  return index.search(term, AS_TERMS).length;
}

function isInHeading(term: string, { match }: SearchResult): boolean {
  return Object.entries(match).some(
    ([word, fields]) => word.startsWith(term) && fields.some((field) => field !== 'text'),
  );
}

/** Whether a question names something of the code, such as `bearerGuard`: then the reference answers it. */
function isName(query: string): boolean {
  return /^\S*(?:[a-z][A-Z]|_|^--)\S*$/.test(query.trim());
}

function weightOf({ id, titles }: SearchResult): number {
  const page = WEIGHTS.find(([place]) => place.test(id))?.[1] ?? 1;
  return page * DEPTH ** -titles.length;
}

/** What the search of VitePress calls in place of MiniSearch. */
export default {
  loadJSON(json: string): { search(query: string): SearchResult[] } {
    const index = MiniSearch.loadJSON(json, OPTIONS);
    return { search: (query) => answersOf(index, query) };
  },
};
