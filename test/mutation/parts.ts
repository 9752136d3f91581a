/** What is mutated together, and the tests that must notice. */
export interface Part {
  readonly mutate: readonly string[];
  readonly tests: readonly string[];
}

/** Each with the tests that are meant for it: those of others would notice too, and take an hour. */
export const PARTS = {
  grammar: {
    mutate: ['src/scope/grammar.ts'],
    tests: ['test/scope/grammar.test.ts', 'test/scope/algebra.test.ts'],
  },
  algebra: { mutate: ['src/scope/algebra.ts'], tests: ['test/scope/algebra.test.ts'] },
  request: { mutate: ['src/scope/request.ts'], tests: ['test/scope/request.test.ts'] },
  matcher: { mutate: ['src/scope/matcher.ts'], tests: ['test/scope/matcher.test.ts'] },
  compiled: { mutate: ['src/scope/compiled.ts'], tests: ['test/scope/matcher.test.ts'] },
  catalog: {
    mutate: ['src/scope/catalog.ts'],
    tests: ['test/scope/catalog.test.ts', 'test/scope/lint.test.ts'],
  },
  typed: { mutate: ['src/scope/typed.ts'], tests: ['test/scope/typed.test.ts'] },
  token: { mutate: ['src/token.ts'], tests: ['test/token.test.ts', 'test/service/*.test.ts'] },
  value: { mutate: ['src/value.ts'], tests: ['test/value.test.ts', 'test/vectors.test.ts'] },
  keys: {
    mutate: ['src/keys.ts'],
    tests: ['test/keys.test.ts', 'test/value.test.ts', 'test/vectors.test.ts'],
  },
  errors: { mutate: ['src/errors.ts'], tests: ['test/token-error.test.ts', 'test/errors.test.ts'] },
  cache: {
    mutate: ['src/cache.ts'],
    tests: ['test/cache.test.ts', 'test/service/!(time).test.ts'],
  },
} as const satisfies Record<string, Part>;

export type PartName = keyof typeof PARTS;

export function partOf(name: string | undefined): Part {
  if (name !== undefined && Object.hasOwn(PARTS, name)) return PARTS[name as PartName];
  throw new Error(`there is no part "${name}"; there are ${Object.keys(PARTS).join(', ')}`);
}
