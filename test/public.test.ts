import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import * as console from '../src/app/console/index.ts';
import * as http from '../src/http/index.ts';
import * as root from '../src/index.ts';
import * as openapi from '../src/openapi/index.ts';
import * as scope from '../src/scope/index.ts';
import * as mysql from '../src/stores/mysql/index.ts';
import * as postgres from '../src/stores/postgres/index.ts';
import * as redis from '../src/stores/redis/index.ts';
import * as sqlite from '../src/stores/sqlite/index.ts';
import * as testing from '../src/testing/index.ts';

const SRC = resolve(import.meta.dirname, '../src');

/** Names of values and of types, as an index lists them. */
function listedIn(file: string): string[] {
  const text = readFileSync(join(SRC, file), 'utf8');
  return [...text.matchAll(/export (type )?\{([^}]*)\} from/g)].flatMap(
    ([, type = '', names = '']) =>
      names
        .split(',')
        .map((name) => type + name.trim())
        .filter((name) => name !== type),
  );
}

const EXPORTS: Record<
  string,
  { readonly module: object; readonly file: string; readonly names: string[] }
> = {
  tokenwright: {
    module: root,
    file: 'index.ts',
    names: [
      'type Clock',
      'systemClock',
      'isTokenError',
      'TokenError',
      'type TokenErrorCode',
      'type TokenEvent',
      'type TokenEventType',
      'type AdviseOptions',
      'type BroadReason',
      'type TokenAdvice',
      'type TokenFinding',
      'type ReviewInput',
      'type ResealOptions',
      'type ResealReport',
      'type Upkeep',
      'type UpkeepOptions',
      'type CancelRotationOptions',
      'type ChangeOptions',
      'type DeriveInput',
      'type DeriveOptions',
      'type ImportInput',
      'type ImportManyOptions',
      'type ImportReport',
      'type RefusedRow',
      'type ForeignFormat',
      'formats',
      'type PrefixedFormat',
      'type GetOptions',
      'type IntrospectOptions',
      'type IssueInput',
      'type ListInput',
      'type ModifyInput',
      'type PatchInput',
      'type PurgeInput',
      'type RevokeAllOptions',
      'type RevokeOptions',
      'type RotateOptions',
      'type VerifyOptions',
      'type VerifySyncOptions',
      'generateKey',
      'type KeyOptions',
      'type CacheOptions',
      'type CatalogOption',
      'type LimitOptions',
      'type QuotaOptions',
      'type TokenServiceOptions',
      'type GithubPattern',
      'type ScannerRules',
      'scannerRules',
      'type ModifiedToken',
      'type RecordState',
      'type RotatedToken',
      'type Need',
      'type TokenLimits',
      'type TokenPage',
      'TokenService',
      'type ServiceStats',
      'type TokenChecks',
      'type TokenUpkeep',
      'type CountQuery',
      'type PruneQuery',
      'type PurgeQuery',
      'type QuotaHolder',
      'type TokenCounts',
      'doctor',
      'type PageQuery',
      'type Position',
      'type PurgedRecords',
      'type ScannedRecords',
      'type ScanQuery',
      'type DoctorOptions',
      'type StoreFinding',
      'type TokenStore',
      'type Unsubscribe',
      'MemoryTokenStore',
      'MemoryUsageStore',
      'MemoryLeaseStore',
      'type MemoryLeaseOptions',
      'type MemoryUsageOptions',
      'type LeaseStore',
      'type LeaseWant',
      'type UnspentLease',
      'type RefusalDelta',
      'type ScopeUsage',
      'type TokenUsage',
      'type CountedTokens',
      'type UsageDelta',
      'type UsageOptions',
      'type UsageRecord',
      'type UsageStore',
      'type UsageTotals',
      'type UsedScope',
      'type UseDelta',
      'type Explanation',
      'type IssuedToken',
      'type JsonObject',
      'type JsonValue',
      'type Lifetime',
      'type ListedState',
      'type RefusalReason',
      'type Token',
      'type TokenId',
      'type TokenRecord',
      'type TokenState',
      'type Verdict',
      'redact',
      'redactor',
    ],
  },
  'tokenwright/scope': {
    module: scope,
    file: 'scope/index.ts',
    names: [
      'covers',
      'meet',
      'overlaps',
      'type Expansion',
      'ScopeCatalog',
      'parseScope',
      'type RefusedScope',
      'type Scope',
      'ScopeError',
      'type ScopeErrorCode',
      'type ScopeReading',
      'safeParseScope',
      'type LintFinding',
      'type ReadRequest',
      'type RequestReading',
      'type RequestReason',
      'readRequest',
      'type ScopeRequest',
      'type Decision',
      'type KnownScopes',
      'type NearMiss',
      'type ScopeDiff',
      'type ScopeExplanation',
      'ScopeSet',
      'type AskedScope',
      'type CatalogOptions',
      'type CatalogPattern',
      'type CatalogScope',
      'defineCatalog',
      'type Method',
      'type ScopeText',
      'scopeIn',
      'type TypedCatalog',
    ],
  },
  'tokenwright/http': {
    module: http,
    file: 'http/index.ts',
    names: [
      'type Authenticate',
      'type Credentials',
      'type FixedAccount',
      'type FixedAccountsOptions',
      'fixedAccounts',
      'forwardedAddress',
      'type ForwardedAddressOptions',
      'gracefulStop',
      'hashPassword',
      'type HttpErrorCode',
      'type BearerGuard',
      'type BearerGuardOptions',
      'bearerGuard',
      'type GuardedNodeRequest',
      'type GuardedRequest',
      'type GracefulStopOptions',
      'type GuardNeed',
      'type GuardOutcome',
      'type GuardReason',
      'type GuardRefusal',
      'type TokenHandler',
      'type TokenHandlerOptions',
      'tokenHandler',
      'type Attempt',
      'type FailureLimiter',
      'type FailureLimiterOptions',
      'failureLimiter',
      'type PointsLimiter',
      'remoteAddress',
      'type ExpressGuard',
      'expressGuard',
      'type FastifyGuard',
      'type FastifyReplyLike',
      'fastifyGuard',
      'type HonoContextLike',
      'type HonoGuard',
      'honoGuard',
      'type KoaContextLike',
      'type KoaGuard',
      'koaGuard',
      'type NestContextLike',
      'type NestGuard',
      'nestGuard',
      'type NextGuard',
      'nextGuard',
      'type RouteNeed',
      'type FetchHandler',
      'type NodeRequest',
      'toNodeListener',
      'type Addressed',
      'safeUrl',
      'sendResponse',
      'type SessionAccount',
      'type SignIn',
    ],
  },
  'tokenwright/console': {
    module: console,
    file: 'console/index.ts',
    names: [
      'ENGLISH_TEXTS',
      'type ConsoleTexts',
      'type PluralText',
      'type TokenConsole',
      'type TokenConsoleOptions',
      'tokenConsole',
    ],
  },
  'tokenwright/testing': {
    module: testing,
    file: 'testing/index.ts',
    names: [
      'type ManualClock',
      'manualClock',
      'type StoreContractCase',
      'storeContract',
      'type UsageContractCase',
      'usageContract',
      'type LeaseContractCase',
      'leaseContract',
      'faults',
      'type StoreCall',
      'type StoreFault',
      'withFaults',
    ],
  },
};

describe('exports', () => {
  it.each(Object.entries(EXPORTS))(
    'of %s are these names and no others',
    (_, { module, file, names }) => {
      expect(listedIn(file).sort()).toEqual([...names].sort());
      const values = names.filter((name) => !name.startsWith('type '));
      expect(Object.keys(module).sort()).toEqual(values.sort());
    },
  );

  it.each<[string, object, string[]]>([
    ['tokenwright/openapi', openapi, ['catalogDiff', 'catalogFromOpenApi', 'readOpenApi']],
    ['tokenwright/sqlite', sqlite, ['SqliteLeaseStore', 'SqliteTokenStore', 'SqliteUsageStore']],
    [
      'tokenwright/postgres',
      postgres,
      [
        'PostgresLeaseStore',
        'PostgresTokenStore',
        'PostgresUsageStore',
        'leaseMigrationSql',
        'migrate',
        'migrateLeases',
        'migrateUsage',
        'migrationSql',
        'usageMigrationSql',
      ],
    ],
    [
      'tokenwright/mysql',
      mysql,
      [
        'MysqlLeaseStore',
        'MysqlTokenStore',
        'MysqlUsageStore',
        'leaseMigrationSql',
        'migrate',
        'migrateLeases',
        'migrateUsage',
        'migrationSql',
        'usageMigrationSql',
      ],
    ],
    ['tokenwright/redis', redis, ['RedisLeaseStore', 'RedisTokenStore', 'RedisUsageStore']],
  ])('of %s at run time are exactly these names', (_, module, names) => {
    expect(Object.keys(module).sort()).toEqual(names);
  });

  it('come from an index that only lists names', () => {
    for (const { file } of Object.values(EXPORTS)) {
      const text = readFileSync(join(SRC, file), 'utf8');
      expect(text.replace(/export (type )?\{[^}]*\} from '[^']+';/g, '').trim()).toBe('');
    }
  });
});

interface Import {
  readonly from: string;
  readonly to: string;
  readonly isTypeOnly: boolean;
}

const FILES: readonly string[] = globSync('**/*.{ts,tsx}', { cwd: SRC });

/** Each import of each file below src; files by their path there, packages by their name. */
const IMPORTS: readonly Import[] = FILES.flatMap((from) => {
  const text = readFileSync(join(SRC, from), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
  const stated = [...text.matchAll(/^(?:import|export)\s([^;]*?\sfrom\s)?\s*'([^']+)'/gm)].map(
    ([, clause = '', to = '']) => ({ to, isTypeOnly: isTypeOnly(clause) }),
  );
  const called = [...text.matchAll(/\b(?:import|require)\(\s*'([^']+)'/g)].map(([, to = '']) => ({
    to,
    isTypeOnly: false,
  }));
  return [...stated, ...called].map(({ to, isTypeOnly }) => ({
    from,
    to: to.startsWith('.') ? relative(SRC, resolve(SRC, dirname(from), to)) : to,
    isTypeOnly,
  }));
});

function isTypeOnly(clause: string): boolean {
  if (clause.startsWith('type ')) return true;
  const names = /^\{([^}]*)\}/
    .exec(clause)?.[1]
    ?.split(',')
    .map((name) => name.trim());
  return names?.filter(Boolean).every((name) => name.startsWith('type ')) ?? false;
}

const importsOf = (pattern: RegExp): Import[] => IMPORTS.filter(({ from }) => pattern.test(from));
const towards = (imports: readonly Import[], pattern: RegExp): Import[] =>
  imports.filter(({ to }) => pattern.test(to));

/** The rooms, each above those that it may import. A loose file is a room of its own. */
const ROOMS: readonly string[] = [
  'scope',
  'bounds.ts',
  'errors.ts',
  'time',
  'text',
  'token',
  'events.ts',
  'ports',
  'values',
  'limits',
  'usage',
  'inputs',
  'records',
  'access',
  'verbs',
  'upkeep.ts',
  'checks.ts',
  'service.ts',
  'openapi',
  'http',
  'testing',
  'stores/shared',
  'stores/memory',
  'stores/sqlite',
  'stores/postgres',
  'stores/mysql',
  'stores/redis',
  'index.ts',
  'app/terminal',
  'app/console',
  'app/server',
  'app/cli',
];

/** What rooms never import, although it lies below them. */
const WALLS: readonly (readonly [from: RegExp, to: RegExp])[] = [
  // What decides knows no store, and no engine knows another one, or a rule.
  [/^access\//, /^node:/],
  [/^(?:verbs\/|upkeep|checks|service)/, /^node:/],
  [
    /^stores\/(\w+)\//,
    /^(?!(?:bounds|errors|events)\.ts$|(?:time|token|ports)\/|stores\/|node:|nanoid$)/,
  ],
  [/^testing\//, /^(?!(?:bounds|errors)\.ts$|(?:time|token|ports|testing)\/|node:)/],
  [/^openapi\//, /^(?:values|records|access|verbs|service)\b/],
  // It masks what it logs, but it reads no values.
  [/^http\//, /^(?:values\/(?!safe-url\.ts$)|records|verbs|openapi)\b/],
  // The page runs in a browser: it has scopes and the types of the wire, and calls for anything else.
  [
    /^app\/console\/page\//,
    /^(?!app\/console\/page\/|scope\/|http\/(?:wire|wire-reports)\.ts$|preact\b)/,
  ],
];

/** The room of a file: its first folder, two in `app` and `stores`. */
function roomOf(file: string): string {
  return /^(?:app|stores)\/[^/]+|^[^/]+/.exec(file)?.[0] ?? file;
}

describe('imports', () => {
  it('are all found (the control)', () => {
    const has = (from: string, to: string, isTypeOnly: boolean) =>
      expect(IMPORTS).toContainEqual({ from, to, isTypeOnly });

    has('verbs/parts.ts', 'values/value.ts', false);
    has('records/reader.ts', 'ports/token-store.ts', true);
    has('service.ts', 'zod', true);
    has('http/guard/guard.ts', 'service.ts', true);
    has('index.ts', 'service.ts', false);
    has('stores/memory/index.ts', 'errors.ts', false);
    has('scope/catalog.ts', 'scope/grammar.ts', false);
    has('values/keys.ts', 'node:crypto', false);
  });

  it('of scope/ stay within it, without any package or node: module', () => {
    expect(towards(importsOf(/^scope\//), /^(?!scope\/)/)).toEqual([]);
  });

  it('lead down, from room to room', () => {
    const climbs = IMPORTS.filter(({ from, to }) => {
      if (!FILES.includes(to) || roomOf(from) === roomOf(to)) return false;
      return ROOMS.indexOf(roomOf(to)) >= ROOMS.indexOf(roomOf(from));
    });

    expect(climbs).toEqual([]);
    expect([...new Set(FILES.map(roomOf))].sort()).toEqual([...ROOMS].sort());
  });

  it.each(WALLS)('of %s never lead to %s', (from, to) => {
    expect(towards(importsOf(from), to)).toEqual([]);
  });

  it('form no cycle, not even imports of types', () => {
    const next = new Map<string, string[]>();
    for (const { from, to } of IMPORTS) next.set(from, [...(next.get(from) ?? []), to]);
    const done = new Set<string>();
    const cycles: string[] = [];
    const walk = (file: string, path: readonly string[]): void => {
      if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file].join(' → '));
      if (path.includes(file) || done.has(file)) return;
      for (const to of next.get(file) ?? []) walk(to, [...path, file]);
      done.add(file);
    };
    for (const file of next.keys()) walk(file, []);

    expect(cycles).toEqual([]);
  });
});

describe('the files', () => {
  it('do more than forward, except for an index', () => {
    const rest = (file: string) =>
      readFileSync(join(SRC, file), 'utf8')
        .replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
        .replace(/^(?:import|export)\b[^;]*\bfrom\s*'[^']+'[^;]*;/gm, '')
        .trim();
    const forwarding = FILES.filter((file) => rest(file) === '');

    expect(forwarding.sort()).toEqual(
      [
        'index.ts',
        'app/console/index.ts',
        'http/index.ts',
        'scope/index.ts',
        'testing/index.ts',
      ].sort(),
    );
  });

  it('have no vague names such as utils', () => {
    const vague = /(?:^|[/-])(?:utils?|helpers?|common|misc|lib)(?:[/.-]|$)/;

    expect(FILES.filter((file) => vague.test(file))).toEqual([]);
    expect(vague.test('stores/sql-utils.ts')).toBe(true);
  });
});
