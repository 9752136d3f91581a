/** The subpaths of the package. A type that several of them export belongs to the first one. */
export const ENTRIES = [
  'scope',
  'index',
  'openapi',
  'http',
  'mcp',
  'console',
  'sqlite',
  'postgres',
  'mysql',
  'redis',
  'testing',
] as const;

export type Entry = (typeof ENTRIES)[number];

/** The specifier that a program imports. */
export const specifierOf = (entry: Entry): string =>
  entry === 'index' ? 'tokenwright' : `tokenwright/${entry}`;
