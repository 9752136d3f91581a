/** The subpaths of the package, in the order in which one may name types of another. */
export const ENTRIES = [
  'scope',
  'index',
  'openapi',
  'http',
  'console',
  'sqlite',
  'postgres',
  'mysql',
  'redis',
  'testing',
] as const;

export type Entry = (typeof ENTRIES)[number];

/** What a program imports. */
export const specifierOf = (entry: Entry): string =>
  entry === 'index' ? 'tokenwright' : `tokenwright/${entry}`;
