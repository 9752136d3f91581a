import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import * as console from '../src/app/console/index.ts';
import * as http from '../src/http/index.ts';
import * as root from '../src/index.ts';
import * as mcp from '../src/mcp/index.ts';
import * as openapi from '../src/openapi/index.ts';
import * as scope from '../src/scope/index.ts';
import * as mysql from '../src/stores/mysql/index.ts';
import * as postgres from '../src/stores/postgres/index.ts';
import * as redis from '../src/stores/redis/index.ts';
import * as sqlite from '../src/stores/sqlite/index.ts';
import * as testing from '../src/testing/index.ts';
import { SRC } from './imports.ts';

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
      'type AdviseOptions',
      'type TokenAdvice',
      'type TokenFinding',
      'type ReviewInput',
      'type RevocationPreview',
      'type ResealReport',
      'type Upkeep',
      'type ChangeOptions',
      'type DeriveInput',
      'type DeriveOptions',
      'type ImportInput',
      'type ImportReport',
      'type RefusedRow',
      'type ForeignFormat',
      'formats',
      'type GetOptions',
      'type IssueInput',
      'type ListInput',
      'type ModifyInput',
      'type PatchInput',
      'type Preset',
      'type ScopeDetail',
      'type ScopeDetails',
      'type RevokeOptions',
      'type RotateOptions',
      'type VerifyOptions',
      'generateKey',
      'type KeyOptions',
      'type TokenServiceOptions',
      'type ScannerRules',
      'scannerRules',
      'type ModifiedToken',
      'type RecordState',
      'type RotatedToken',
      'type Need',
      'type TokenLimits',
      'type TokenOrigin',
      'type TokenPage',
      'TokenService',
      'describeScopes',
      'type HeldPermission',
      'type ScopeDescription',
      'type ServiceStats',
      'type CountQuery',
      'type PruneQuery',
      'type PurgeQuery',
      'type QuotaHolder',
      'type TokenCounts',
      'doctor',
      'type PageOrder',
      'type PageQuery',
      'type Position',
      'type PurgedRecords',
      'type ScannedRecords',
      'type ScanQuery',
      'type DoctorOptions',
      'type StoreFinding',
      'outageLog',
      'type StoreReason',
      'type TokenStore',
      'type Unsubscribe',
      'MemoryTokenStore',
      'type EngineStore',
      'type LeaseStore',
      'type RequestBounds',
      'type RequestKey',
      'type RequestRecord',
      'TokenRequests',
      'type TokenRequestsOptions',
      'type TokenRequest',
      'type RequestEvent',
      'type RequestCallOptions',
      'type OpenInput',
      'type OpenedRequest',
      'type Approval',
      'type ApproveOptions',
      'type DenyOptions',
      'type PollOptions',
      'type PollResult',
      'type RequestStore',
      'type LeaseWant',
      'type UnspentLease',
      'type ScopeUsage',
      'type TokenUsage',
      'type CountedTokens',
      'type UsageDelta',
      'type UsageRecord',
      'type UsageStore',
      'type UsageTotals',
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
      'type ValueFault',
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
      'safeParseScope',
      'type LintFinding',
      'type ReadRequest',
      'type RequestReason',
      'readRequest',
      'type ScopeRequest',
      'type NearMiss',
      'type ScopeDiff',
      'type ScopeExplanation',
      'ScopeSet',
      'type AskedScope',
      'type CatalogOptions',
      'type EndpointWords',
      'type Permission',
      'type PermissionOption',
      'type ScopeWords',
      'type WordedScope',
      'type CatalogPattern',
      'type CatalogScope',
      'defineCatalog',
      'type Method',
      'scopeIn',
      'type TypedCatalog',
    ],
  },
  'tokenwright/http': {
    module: http,
    file: 'http/index.ts',
    names: [
      'type Authenticate',
      'type CallerAccount',
      'type Credentials',
      'type FixedAccount',
      'fixedAccounts',
      'forwardedAddress',
      'gracefulStop',
      'hashPassword',
      'type HttpErrorCode',
      'type BearerGuard',
      'type BearerGuardOptions',
      'bearerGuard',
      'type GuardedRequest',
      'type GuardNeed',
      'type GuardOutcome',
      'type GuardRefusal',
      'type TokenHandler',
      'type SignInWay',
      'type TokenHandlerOptions',
      'tokenHandler',
      'errorResponse',
      'type FailureLimiter',
      'failureLimiter',
      'remoteAddress',
      'expressGuard',
      'fastifyGuard',
      'honoGuard',
      'koaGuard',
      'nestGuard',
      'nextGuard',
      'toNodeListener',
      'type OAuthMetadataOptions',
      'type OAuthOptions',
      'oauthMetadata',
      'type ProtectedResourceOptions',
      'protectedResource',
      'safeUrl',
      'sendResponse',
      'type SignIn',
    ],
  },
  'tokenwright/mcp': {
    module: mcp,
    file: 'mcp/index.ts',
    names: [
      'type AuthInfo',
      'type McpGuard',
      'type McpGuardOptions',
      'type McpOutcome',
      'type McpReason',
      'type McpRefusal',
      'mcpGuard',
      'toolScope',
    ],
  },
  'tokenwright/console': {
    module: console,
    file: 'app/console/index.ts',
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
      'type RequestContractCase',
      'requestContract',
      'type ContractOptions',
      'type ContractReport',
      'contractReport',
      'type Scratch',
      'faults',
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
    ['tokenwright/sqlite', sqlite, ['SqliteTokenStore', 'scratch']],
    [
      'tokenwright/postgres',
      postgres,
      [
        'PostgresTokenStore',
        'fromDrizzle',
        'fromKysely',
        'fromPostgresJs',
        'fromPrisma',
        'migrate',
        'migrationSql',
        'scratch',
      ],
    ],
    [
      'tokenwright/mysql',
      mysql,
      ['MysqlTokenStore', 'fromDrizzle', 'fromKysely', 'migrate', 'migrationSql', 'scratch'],
    ],
    ['tokenwright/redis', redis, ['RedisTokenStore', 'scratch']],
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
