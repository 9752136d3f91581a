/** What is mutated together, and the tests that must notice. */
export interface Part {
  readonly mutate: readonly string[];
  readonly tests: readonly string[];
}

/** Each with the tests that are meant for it: those of others would notice too, and take an hour. */
export const PARTS = {
  grammar: {
    mutate: ['src/scope/grammar.ts'],
    tests: ['test/scope/{grammar,algebra,request,catalog}.test.ts'],
  },
  algebra: { mutate: ['src/scope/algebra.ts'], tests: ['test/scope/algebra.test.ts'] },
  request: { mutate: ['src/scope/request.ts'], tests: ['test/scope/request.test.ts'] },
  matcher: { mutate: ['src/scope/matcher.ts'], tests: ['test/scope/matcher.test.ts'] },
  compiled: {
    mutate: ['src/scope/compiled.ts'],
    tests: ['test/scope/{compiled,matcher}.test.ts'],
  },
  catalog: {
    mutate: ['src/scope/catalog.ts'],
    tests: ['test/scope/catalog.test.ts', 'test/scope/lint.test.ts'],
  },
  typed: { mutate: ['src/scope/typed.ts'], tests: ['test/scope/typed.test.ts'] },
  token: {
    mutate: ['src/token.ts'],
    tests: ['test/token.test.ts', 'test/service/!(time).test.ts'],
  },
  value: { mutate: ['src/value.ts'], tests: ['test/value.test.ts', 'test/vectors.test.ts'] },
  keys: {
    mutate: ['src/keys.ts'],
    tests: ['test/keys.test.ts', 'test/value.test.ts', 'test/vectors.test.ts'],
  },
  errors: { mutate: ['src/errors.ts'], tests: ['test/token-error.test.ts'] },
  cache: {
    mutate: ['src/cache.ts'],
    tests: ['test/cache.test.ts', 'test/service/!(time).test.ts'],
  },
  service: {
    mutate: ['src/service.ts', 'src/events.ts', 'src/input.ts', 'src/options.ts', 'src/clock.ts'],
    tests: ['test/service/!(time).test.ts', 'test/events.test.ts', 'test/clock.test.ts'],
  },
  memory: {
    mutate: ['src/stores/memory.ts', 'src/store.ts'],
    tests: ['test/stores/memory.test.ts', 'test/service/list.test.ts'],
  },
  scanner: { mutate: ['src/scanner.ts'], tests: ['test/scanner.test.ts'] },
  http: {
    mutate: ['src/http/!(description|reference).ts'],
    tests: ['test/http/!(growth|fuzz|hostile|raw|reference|mounts).test.ts'],
  },
  description: {
    mutate: ['src/http/description.ts', 'src/http/reference.ts'],
    tests: ['test/http/{description,reference}.test.ts'],
  },
  openapi: {
    mutate: ['src/openapi.ts'],
    tests: ['test/openapi.test.ts', 'test/openapi/*.test.ts'],
  },
} as const satisfies Record<string, Part>;

export type PartName = keyof typeof PARTS;

/** The parts of `src/scope`. */
export const SCOPE: readonly PartName[] = [
  ...(['grammar', 'algebra', 'request', 'matcher', 'compiled', 'catalog', 'typed'] as const),
];

/** What decides access is held to more than the rest; the parts of `src/scope` only together. */
export const CORE_GOAL = 90;
export const GOAL = 80;
const CORE: readonly PartName[] = ['token', 'value', 'keys', 'errors', 'cache'];

/** The least score of a part in percent. */
export function goalOf(part: PartName): number {
  return CORE.includes(part) ? CORE_GOAL : GOAL;
}

export function partOf(name: string | undefined): Part {
  return PARTS[partNamed(name ?? '')];
}

/** All parts, where none is named; `scope` names those of `src/scope`. */
export function partsNamed(names: readonly string[]): readonly PartName[] {
  if (names.length === 0) return Object.keys(PARTS) as PartName[];
  return names.flatMap((name) => (name === 'scope' ? SCOPE : [partNamed(name)]));
}

function partNamed(name: string): PartName {
  if (Object.hasOwn(PARTS, name)) return name as PartName;
  throw new Error(`there is no part "${name}"; there are scope, ${Object.keys(PARTS).join(', ')}`);
}
