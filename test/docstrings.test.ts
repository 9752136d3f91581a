import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { withErrorLinks } from '../docs/.vitepress/error-links.ts';
import * as http from '../src/http/index.ts';
import * as root from '../src/index.ts';
import * as scope from '../src/scope/index.ts';
import tsup from '../tsup.config.ts';
import { CODES } from './codes.ts';

const ROOT = join(import.meta.dirname, '..');

/** The source of each entry point, by its name in the build. Entry points with types are public. */
const { dts } = tsup as { readonly dts: { readonly entry: Readonly<Record<string, string>> } };
const ENTRIES = dts.entry;

const { options } = ts.parseJsonConfigFileContent(
  ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile).config,
  ts.sys,
  ROOT,
);
const program = ts.createProgram(
  Object.values(ENTRIES).map((file) => join(ROOT, file)),
  options,
);
const checker = program.getTypeChecker();

/** Something public: an export, or a member of one. */
interface Documented {
  readonly entry: string;
  /** `TokenService.issue`. */
  readonly name: string;
  readonly kind: ts.SyntaxKind;
  readonly text: string;
  readonly tags: readonly { readonly name: string; readonly text: string }[];
}

/** The shapes of third-party drivers. The drivers document these members themselves. */
const OF_DRIVERS =
  /^(?:Sqlite(?:Statement|Handle)|Postgres(?:Query|Client|Notification|Pool)|Mysql(?:Statement|Connection|Pool|PromisePool)|(?:Ioredis|NodeRedis)(?:Client|Cluster|Node)|PointsLimiter)\./;

const PUBLIC: readonly Documented[] = Object.entries(ENTRIES).flatMap(([entry, file]) =>
  exportsOf(file).flatMap((symbol) => [
    documented(entry, symbol.name, symbol),
    ...membersOf(symbol).map((member) =>
      documented(entry, `${symbol.name}.${nameOf(member)}`, member),
    ),
  ]),
);

function exportsOf(file: string): ts.Symbol[] {
  const source = program.getSourceFile(join(ROOT, file)) as ts.SourceFile;
  const module = checker.getSymbolAtLocation(source) as ts.Symbol;
  return checker
    .getExportsOfModule(module)
    .map((symbol) =>
      symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol,
    );
}

/** The own members of a type that callers can use. A brand is not one of them. */
function membersOf(symbol: ts.Symbol): ts.Symbol[] {
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  const members = (symbol.declarations ?? []).flatMap((declaration): readonly ts.Declaration[] => {
    if (ts.isTypeAliasDeclaration(declaration)) return membersWritten(declaration.type);
    return ts.isClassDeclaration(declaration) || ts.isInterfaceDeclaration(declaration)
      ? declaration.members
      : [];
  });
  const seen = members.filter((member) => {
    const name = ts.getNameOfDeclaration(member);
    if (name !== undefined && ts.isPrivateIdentifier(name)) return false;
    if (ts.getJSDocTags(member).some(({ tagName }) => tagName.text === 'internal')) return false;
    const isBrand = name !== undefined && ts.isComputedPropertyName(name);
    if (isBrand && !name.getText().startsWith('[Symbol.')) return false;
    return (ts.getCombinedModifierFlags(member) & hidden) === 0;
  });
  return seen.map((member) => (member as { symbol?: ts.Symbol }).symbol as ts.Symbol);
}

/** The members of each alternative of a union. Discriminants need no docstring. */
function membersWritten(type: ts.TypeNode): readonly ts.TypeElement[] {
  if (ts.isUnionTypeNode(type) || ts.isIntersectionTypeNode(type)) {
    return type.types.flatMap(membersWritten);
  }
  if (ts.isParenthesizedTypeNode(type)) return membersWritten(type.type);
  if (!ts.isTypeLiteralNode(type)) return [];
  return type.members.filter(
    (member) => ts.isPropertySignature(member) && !isOfLiterals(member.type),
  );
}

function isOfLiterals(type: ts.TypeNode | undefined): boolean {
  if (type !== undefined && ts.isUnionTypeNode(type)) return type.types.every(isOfLiterals);
  return type !== undefined && ts.isLiteralTypeNode(type);
}

function nameOf({ name, declarations = [] }: ts.Symbol): string {
  if (name === '__constructor') return 'constructor';
  const [declaration] = declarations;
  const written = declaration && ts.getNameOfDeclaration(declaration);
  return name === '__computed' ? (written?.getText() ?? name) : name;
}

function documented(entry: string, name: string, symbol: ts.Symbol): Documented {
  return {
    entry,
    name,
    kind: symbol.declarations?.[0]?.kind as ts.SyntaxKind,
    // A method without a docstring inherits the one of the interface that its class implements.
    text: ts.displayPartsToString(symbol.getDocumentationComment(checker)),
    tags: symbol.getJsDocTags(checker).map((tag) => ({
      name: tag.name,
      text: ts.displayPartsToString(tag.text),
    })),
  };
}

const { SyntaxKind } = ts;
const CALLED: readonly ts.SyntaxKind[] = [
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.MethodDeclaration,
  SyntaxKind.Constructor,
];
const isCalled = ({ kind }: Documented) => CALLED.includes(kind);
const throwsOf = ({ tags }: Documented) => tags.filter(({ name }) => name === 'throws');
const at = ({ entry, name }: Documented) => `${entry}: ${name}`;

describe('docstrings', () => {
  it('are required for everything public (the control)', () => {
    const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const subpaths = Object.keys(exports).filter((path) => path !== './package.json');
    const names = PUBLIC.map(at);

    const documented = Object.keys(ENTRIES).map((name) => (name === 'index' ? '.' : `./${name}`));
    expect(documented.sort()).toEqual(subpaths.sort());
    for (const name of [
      'index: TokenService',
      'index: TokenService.issue',
      'index: TokenService.constructor',
      'index: IssueInput.ttlSeconds',
      'scope: ScopeSet.[Symbol.iterator]',
      'http: bearerGuard',
      'redis: RedisTokenStore.insert',
      'index: Verdict.reason',
      'index: TokenEvent.grantedBy',
    ]) {
      expect(names).toContain(name);
    }
    expect(names).not.toContain('index: Verdict.ok');
    expect(names.filter((name) => name.includes('#'))).toEqual([]);
  });

  it('exist for every export and every public member', () => {
    const bare = PUBLIC.filter(({ name, text }) => text === '' && !OF_DRIVERS.test(name));

    expect(bare.map(at)).toEqual([]);
  });

  it('show an example for every function and every class', () => {
    const kinds = [SyntaxKind.FunctionDeclaration, SyntaxKind.ClassDeclaration];
    const shown = PUBLIC.filter(({ kind }) => kinds.includes(kind));
    const bare = shown.filter(({ tags }) => !tags.some(({ name }) => name === 'example'));

    expect(bare.map(at)).toEqual([]);
  });

  it('show an example for every verb of the service and of the scope module', () => {
    const verbs = PUBLIC.filter(
      ({ name, kind }) =>
        kind === SyntaxKind.MethodDeclaration &&
        /^(?:TokenService|ScopeSet|ScopeCatalog)\.\w/.test(name),
    );
    const bare = verbs.filter(({ tags }) => !tags.some(({ name }) => name === 'example'));

    expect(verbs.length).toBeGreaterThan(30);
    expect(bare.map(at)).toEqual([]);
  });
});

// Functions that throw say so. All others are called here with hostile input.
const HOSTILE: readonly unknown[] = [
  undefined,
  null,
  42,
  Number.NaN,
  '',
  '\ud800',
  'a'.repeat(100_000),
  '*:*/*',
  Symbol('hostile'),
  [],
  {},
  () => {},
  new Error('hostile'),
  Object.create(null),
  Object.defineProperty({}, 'method', { get: () => raise(), enumerable: true }),
  { method: 'GET', domain: {}, target: 7, url: {}, headers: 1 },
];

function raise(): never {
  throw new Error('hostile');
}

const set = scope.ScopeSet.from(['GET:shop.example/orders']);
const catalog = scope.ScopeCatalog.from(['GET:shop.example/orders']);
const service = new root.TokenService({
  store: new root.MemoryTokenStore(),
  keys: [root.generateKey()],
  prefix: 'acme',
});

const NEVER_THROW: Readonly<Record<string, (hostile: never) => unknown>> = {
  'index: isTokenError': root.isTokenError,
  'index: outageLog': () => root.outageLog(() => {}),
  'index: redact': root.redact,
  'index: TokenError.constructor': (hostile) => new root.TokenError('not_found', '', hostile),
  'index: TokenService.stats': () => service.stats(),
  'index: TokenService.verifierKeys': () => service.verifierKeys(),
  'scope: ScopeError.constructor': () => new scope.ScopeError('empty', ''),
  'scope: safeParseScope': scope.safeParseScope,
  'scope: readRequest': scope.readRequest,
  'scope: ScopeSet.allows': (hostile) => set.allows(hostile),
  'scope: ScopeSet.minimize': () => set.minimize(),
  'scope: ScopeSet.toArray': () => set.toArray(),
  'scope: ScopeSet.[Symbol.iterator]': () => [...set],
  'scope: ScopeCatalog.attribute': (hostile) => catalog.attribute(hostile),
  'scope: ScopeCatalog.readRequest': (hostile) => catalog.readRequest(hostile as never),
  'scope: ScopeCatalog.suggest': (hostile) => catalog.suggest(hostile),
  'scope: ScopeCatalog.lint': () => catalog.lint(),
  'scope: ScopeCatalog.toArray': () => catalog.toArray(),
  'scope: ScopeCatalog.[Symbol.iterator]': () => [...catalog],
  'http: errorResponse': http.errorResponse,
  'http: safeUrl': http.safeUrl,
  'http: toNodeListener': http.toNodeListener,
};

describe('@throws', () => {
  it('is present on every function, except those that never throw', () => {
    const silent = PUBLIC.filter((one) => isCalled(one) && throwsOf(one).length === 0);

    expect(silent.map(at).sort()).toEqual(Object.keys(NEVER_THROW).sort());
  });

  it.each(Object.entries(NEVER_THROW))(
    'is not needed on %s, which does not throw for hostile input',
    (_, call) => {
      for (const hostile of HOSTILE) expect(() => call(hostile as never)).not.toThrow();
    },
  );

  it('names a class, and only codes that exist', () => {
    const faults = PUBLIC.flatMap((one) =>
      throwsOf(one).flatMap(({ text }) => {
        const type = /^\{(\w+)\}/.exec(text)?.[1] ?? '';
        const words = [...text.matchAll(/`(\w+)`/g)].map(([, word = '']) => word);
        const codes = words.filter((word) => word.includes('_'));
        const known: readonly string[] = CODES[type as keyof typeof CODES] ?? [];
        const unknown = codes.filter((code) => !known.includes(code));
        const names = codes.length > 0 || /\bas (?:`|\{@link)/.test(text);
        // A scope that does not parse can cause any code of ScopeError.
        const isSaid =
          type === 'TokenError' ? names : type === 'ScopeError' || type === 'TypeError';
        return isSaid && unknown.length === 0 ? [] : [`${at(one)}: ${text}`];
      }),
    );

    expect(faults).toEqual([]);
  });
});

describe('the reference', () => {
  const section = (text: string) => `### Throws\n\n${text}\n\n### Example\n\n\`not_found\`\n`;

  it.each([
    ['`not_found`', '[`not_found`](../errors.md#not_found)'],
    [
      'as `issue` does,\nand `invalid_ttl`; `store_unavailable`',
      'as `issue` does,\nand [`invalid_ttl`](../errors.md#invalid_ttl); [`store_unavailable`](../errors.md#store_unavailable)',
    ],
    ['`scope_unmatched`', '[`scope_unmatched`](../errors.md#scope_unmatched)'],
  ])('links the codes of a Throws section to their pages, and nothing else: %j', (text, linked) => {
    expect(withErrorLinks(section(text))).toBe(section(linked));
  });

  it.each([
    ['not_found'],
    ['`scopes`, `index`, `refusals`, `not_there`, `../not_found`'],
    ['[`not_found`](elsewhere)'],
  ])('leaves %j unchanged', (text) => {
    expect(withErrorLinks(section(text))).toBe(section(text));
  });
});

/** Declarations that the examples take for granted. */
const AROUND = `
import type * as tokenwright from '../src/index.ts';
import type * as scopes from '../src/scope/index.ts';
import type * as web from '../src/http/index.ts';
import type * as files from '../src/stores/sqlite/index.ts';
import type * as postgres from '../src/stores/postgres/index.ts';
type DrizzleTransaction = Parameters<typeof postgres.fromDrizzle>[0] & {
  insert(table: object): { values(row: object): PromiseLike<unknown> };
};
type KyselyTransaction = Parameters<typeof postgres.fromKysely>[0] & {
  insertInto(table: string): { values(row: object): { execute(): Promise<unknown> } };
};
type PostgresJsTransaction = Parameters<typeof postgres.fromPostgresJs>[0] &
  ((text: TemplateStringsArray) => PromiseLike<unknown>);
type PrismaTransaction = Parameters<typeof postgres.fromPrisma>[0] & {
  readonly user: { create(row: object): PromiseLike<unknown> };
};
declare global {
  const tokens: tokenwright.TokenService;
  const requests: tokenwright.TokenRequests;
  const deviceCode: string;
  const token: tokenwright.IssuedToken;
  const record: tokenwright.TokenRecord;
  const store: tokenwright.TokenStore;
  const keys: tokenwright.KeyOptions[];
  const id: string;
  const value: string;
  const need: tokenwright.Need;
  const held: scopes.ScopeSet;
  const catalog: scopes.TypedCatalog<'GET:shop.example/orders'>;
  const request: Request;
  const response: import('node:http').ServerResponse;
  const guard: web.BearerGuard;
  const authenticate: web.Authenticate;
  const limiter: web.FailureLimiter;
  const username: string;
  const password: string;
  const app: Record<'use' | 'post' | 'addHook' | 'useGlobalGuards', (...parts: unknown[]) => void>;
  const router: typeof app;
  const handler: () => void;
  const handle: files.SqliteHandle;
  const pool: import('pg').Pool;
  const users: object;
  const scopes: readonly string[];
  const db: {
    transaction(): { execute(work: (trx: KyselyTransaction) => Promise<unknown>): Promise<unknown> };
    transaction(work: (tx: DrizzleTransaction) => Promise<unknown>): Promise<unknown>;
  };
  const sql: { begin(work: (tx: PostgresJsTransaction) => Promise<unknown>): Promise<unknown> };
  const prisma: { $transaction(work: (tx: PrismaTransaction) => Promise<unknown>): Promise<unknown> };
  const Database: new (file: string) => files.SqliteHandle;
  class MyStore extends tokenwright.MemoryTokenStore {}
  const MyUsageStore: new () => tokenwright.UsageStore;
  const MyLeaseStore: new () => tokenwright.LeaseStore;
  const MyRequestStore: new () => tokenwright.RequestStore;
  class RateLimiterMemory implements web.PointsLimiter {
    constructor(options: { readonly points: number; readonly duration: number });
    readonly points: number;
    get(key: string): ReturnType<web.PointsLimiter['get']>;
    consume(key: string): Promise<unknown>;
    reward(key: string, points: number): Promise<unknown>;
  }
}
`;

const NODE = "import { appendFileSync } from 'node:fs';\nimport { createServer } from 'node:http';";

/** Names that examples use without importing them, by the entry of the example. */
const IMPORTS: Readonly<Record<string, string>> = {
  sqlite: "import { DatabaseSync } from 'node:sqlite';",
  postgres: "import { Pool } from 'pg';\nconst pool = new Pool();",
  redis:
    "import { Cluster, Redis } from 'ioredis';\nimport { createClient, createCluster } from 'redis';",
  testing:
    "import { describe, it } from 'vitest';\nimport { scratch } from '../src/stores/postgres/index.ts';",
};

const EXAMPLES = PUBLIC.flatMap((one) =>
  one.tags.filter(({ name }) => name === 'example').map(({ text }) => programOf(one, text)),
);

/** An example as a module. A line marked with `does not compile` must not compile. */
function programOf({ entry }: Pick<Documented, 'entry'>, example: string): string {
  const code = example.replace(/^(.*\/\/ does not compile)$/gm, '// @ts-expect-error\n$1');
  const driver =
    entry === 'mysql'
      ? "import { createPool } from 'mysql2';\nconst pool = createPool({});"
      : (IMPORTS[entry] ?? '');
  return [NODE, driver, importsFor(entry), `export async function example() {`, code, '}'].join(
    '\n',
  );
}

/** Imports of everything the package exports. The own entry comes first and wins for shared names. */
function importsFor(entry: string): string {
  const named = new Set<string>();
  const statements = [entry, 'index', 'scope', 'http', 'testing'].map((other) => {
    const file = ENTRIES[other] as string;
    const types = typesOf(file);
    const names = exportsOf(file).flatMap(({ name, flags }) => {
      if (named.has(name)) return [];
      named.add(name);
      return flags & ts.SymbolFlags.Value && !types.has(name) ? name : `type ${name}`;
    });
    return `import { ${names.join(', ')} } from '../${file}';`;
  });
  return statements.join('\n');
}

/** The names that an entry exports only as a type, such as a class that only other classes extend. */
function typesOf(file: string): ReadonlySet<string> {
  const source = program.getSourceFile(join(ROOT, file)) as ts.SourceFile;
  const module = checker.getSymbolAtLocation(source) as ts.Symbol;
  const isType = ({ declarations = [] }: ts.Symbol) =>
    declarations.some(ts.isTypeOnlyExportDeclaration);
  return new Set(
    checker
      .getExportsOfModule(module)
      .filter(isType)
      .map(({ name }) => name),
  );
}

function faultsIn(texts: readonly string[]): string[] {
  const files = new Map(
    texts.map((text, index) => [join(ROOT, 'test', `example${index}.ts`), text]),
  );
  files.set(join(ROOT, 'test', 'around.d.ts'), AROUND);
  const host = ts.createCompilerHost(options);
  const { readFile, fileExists, getSourceFile } = host;
  host.readFile = (file) => files.get(file) ?? readFile(file);
  host.fileExists = (file) => files.has(file) || fileExists(file);
  host.getSourceFile = (file, language) => {
    const text = files.get(file);
    return text === undefined
      ? (program.getSourceFile(file) ?? getSourceFile(file, language))
      : ts.createSourceFile(file, text, language);
  };
  const lenient = {
    ...options,
    noUnusedLocals: false,
    noUnusedParameters: false,
    noImplicitReturns: false,
  };
  const checked = ts.createProgram([...files.keys()], lenient, host);
  return [...files.keys()].flatMap((file) => {
    const source = checked.getSourceFile(file) as ts.SourceFile;
    return [
      ...checked.getSyntacticDiagnostics(source),
      ...checked.getSemanticDiagnostics(source),
    ].map(({ messageText, start = 0 }) => {
      const line = source.text.slice(0, start).split('\n').length;
      const code = source.text.split('\n')[line - 1];
      return `${relative(ROOT, file)}: ${code} // ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
    });
  });
}

describe('@example', () => {
  it('compiles everywhere', () => {
    expect(EXAMPLES.length).toBeGreaterThan(60);
    expect(faultsIn(EXAMPLES)).toEqual([]);
  });

  it('does not compile if it names something that does not exist (the control)', () => {
    const about = PUBLIC.find(({ name }) => name === 'TokenService.issue') as Documented;
    const wrong = ['await tokens.issues({});', "tokens.revoke('acme'); // does not compile", 'a b'];
    const faults = faultsIn(wrong.map((text) => programOf(about, text)));

    expect(faults.map((fault) => fault.split(':')[0])).toEqual([
      'test/example0.ts',
      'test/example2.ts',
      'test/example2.ts',
      'test/example2.ts',
    ]);
  });
});
