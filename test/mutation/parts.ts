/** What is mutated together, and the tests that must notice. */
export interface Part {
  readonly mutate: readonly string[];
  readonly tests: readonly string[];
}

/** Each with the tests that are meant for it: those of others would notice too, and take an hour. */
export const PARTS = {
  grammar: {
    mutate: ['src/scope/{grammar,errors}.ts'],
    tests: ['test/scope/{grammar,algebra,request,catalog}.test.ts'],
  },
  algebra: { mutate: ['src/scope/algebra.ts'], tests: ['test/scope/algebra.test.ts'] },
  request: {
    mutate: ['src/scope/request.ts'],
    tests: ['test/scope/{request,specificity}.test.ts'],
  },
  set: {
    mutate: ['src/scope/{set,explain}.ts'],
    tests: ['test/scope/{set,specificity}.test.ts'],
  },
  lookup: {
    mutate: ['src/scope/lookup.ts'],
    tests: ['test/scope/{lookup,set,specificity}.test.ts'],
  },
  routes: {
    mutate: ['src/scope/routes.ts'],
    tests: ['test/scope/{routes,catalog}.test.ts'],
  },
  overlap: {
    mutate: ['src/scope/overlap.ts'],
    tests: ['test/scope/{overlap,removal,catalog,set}.test.ts'],
  },
  catalog: {
    mutate: ['src/scope/{catalog,list,lint,nearest}.ts'],
    tests: ['test/scope/{catalog,list,lint,nearest}.test.ts'],
  },
  diff: { mutate: ['src/scope/diff.ts'], tests: ['test/scope/diff.test.ts'] },
  typed: { mutate: ['src/scope/typed.ts'], tests: ['test/scope/typed.test.ts'] },
  token: {
    mutate: ['src/token/*.ts'],
    tests: ['test/token/*.test.ts', 'test/service/!(time|growth).test.ts'],
  },
  values: {
    mutate: ['src/values/!(safe-url|scanner).ts'],
    tests: ['test/values/!(safe-url|scanner).test.ts', 'test/vectors.test.ts'],
  },
  errors: { mutate: ['src/errors.ts'], tests: ['test/token-error.test.ts'] },
  records: {
    mutate: ['src/records/*.ts'],
    tests: [
      'test/records/*.test.ts',
      'test/service/!(time|growth).test.ts',
      'test/events.test.ts',
      'test/inputs/mistakes.test.ts',
      'test/requests/*.test.ts',
      'test/usage/{usage,review,advice,forget}.test.ts',
    ],
  },
  access: {
    mutate: ['src/access/*.ts'],
    tests: [
      'test/service/!(time|growth).test.ts',
      'test/events.test.ts',
      'test/limits/limits.test.ts',
      'test/http/{address,explain,introspection,limits,review}.test.ts',
      'test/http/oauth/exchange.test.ts',
      'test/inputs/mistakes.test.ts',
      'test/mcp/{guard,tool-scope}.test.ts',
      'test/requests/*.test.ts',
      'test/usage/{review,usage}.test.ts',
    ],
  },
  limits: {
    mutate: ['src/limits/*.ts'],
    tests: ['test/limits/*.test.ts', 'test/service/derive.test.ts'],
  },
  usage: {
    mutate: ['src/usage/*.ts'],
    tests: ['test/usage/{advice,forget,recorder,review,usage}.test.ts'],
  },
  service: {
    mutate: ['src/{service,events}.ts', 'src/{inputs,time}/*.ts'],
    tests: [
      'test/service/!(time|growth).test.ts',
      'test/events.test.ts',
      'test/{inputs,time}/*.test.ts',
      'test/limits/limits.test.ts',
      'test/usage/{advice,usage}.test.ts',
    ],
  },
  verbs: {
    mutate: ['src/verbs/*.ts'],
    tests: [
      'test/service/!(time|growth).test.ts',
      'test/limits/limits.test.ts',
      'test/usage/review.test.ts',
      'test/http/review.test.ts',
      'test/events.test.ts',
    ],
  },
  memory: {
    mutate: ['src/stores/memory/index.ts', 'src/ports/*.ts'],
    tests: ['test/stores/memory/index.test.ts', 'test/service/list.test.ts'],
  },
  scanner: {
    mutate: ['src/values/{safe-url,scanner}.ts'],
    tests: ['test/values/{safe-url,scanner}.test.ts'],
  },
  http: {
    mutate: ['src/http/{,guard/,node/,sign-in/}*.ts'],
    // The others run frameworks, or belong to the next part.
    tests: [
      'test/http/!(growth|under-load|fuzz|hostile|raw).test.ts',
      'test/http/{guard,node,sign-in}/!(mounts|middleware|routers).test.ts',
    ],
  },
  description: {
    mutate: ['src/http/description/*.ts'],
    tests: ['test/http/description/{document,page}.test.ts'],
  },
  openapi: {
    mutate: ['src/openapi/*.ts'],
    tests: ['test/openapi/*.test.ts'],
  },
} as const satisfies Record<string, Part>;

export type PartName = keyof typeof PARTS;

/** The parts of `src/scope`. */
export const SCOPE: readonly PartName[] = [
  ...([
    'grammar',
    'algebra',
    'request',
    'set',
    'lookup',
    'routes',
    'overlap',
    'catalog',
    'diff',
    'typed',
  ] as const),
];

/** What decides access is held to more than the rest; the parts of `src/scope` only together. */
export const CORE_GOAL = 90;
export const GOAL = 85;
const CORE: readonly PartName[] = ['token', 'values', 'errors', 'records', 'access', 'limits'];

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
