// What tokenwright/postgres declares, as published. Written by: npm run api

import type { CountQuery, EngineStore, LeaseStore, PageQuery, PruneQuery, PurgeQuery, PurgedRecords, RequestStore, ScanQuery, ScannedRecords, StoreFinding, TokenCounts, TokenError, TokenId, TokenRecord, Unsubscribe, UsageStore } from 'tokenwright';
import type { Scratch } from 'tokenwright/testing';

export interface MigrationOptions {
  readonly tables?: string | undefined;
}

export interface MigrationSqlOptions extends MigrationOptions {
  readonly dialect?: 'cockroach' | 'yugabyte' | undefined;
}

export interface PostgresConnection {
  query(query: PostgresQuery): Promise<{
    readonly rows: readonly unknown[];
  }>;
}

export interface PostgresStoreOptions extends MigrationOptions {
  readonly deadlineMs?: number | undefined;
  readonly prepare?: boolean | undefined;
  readonly standby?: 'refuse' | 'allow' | undefined;
  readonly maxListBytes?: number | undefined;
}

export declare class PostgresTokenStore implements EngineStore {
  #private;
  readonly usage: UsageStore;
  readonly leases: LeaseStore;
  readonly requests: RequestStore;
  constructor(pool: PostgresPool, options?: PostgresStoreOptions);
  in(connection: PostgresConnection): EngineStore;
  insert(record: TokenRecord): Promise<void>;
  count({ liveAt, most, ...holder }: CountQuery): Promise<TokenCounts>;
  find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]>;
  page(query: PageQuery): Promise<TokenRecord[]>;
  scan(query: ScanQuery): Promise<ScannedRecords>;
  replace(next: TokenRecord, version?: number): Promise<boolean>;
  revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean>;
  revokeAll(account: string, at: Date, limit: number): Promise<number>;
  purge({ now, minAgeMs, limit }: PurgeQuery): Promise<PurgedRecords>;
  prune({ now, limit, ...holder }: PruneQuery): Promise<PurgedRecords>;
  hasReached(instant: Date): Promise<boolean>;
  watch(onChange: (ids: readonly TokenId[] | 'all') => void, onTrouble?: (failure: TokenError | undefined) => void): Promise<Unsubscribe>;
  doctor(): Promise<StoreFinding[]>;
  close(): Promise<void>;
}

export declare function fromDrizzle(tx: DrizzleTransaction): PostgresConnection;

export declare function fromKysely(trx: KyselyTransaction): PostgresConnection;

export declare function fromPostgresJs(tx: PostgresJsTransaction): PostgresConnection;

export declare function fromPrisma(tx: PrismaTransaction): PostgresConnection;

export declare function migrate(pool: PostgresPool, options?: MigrationOptions): Promise<void>;

export declare function migrationSql({ dialect, ...options }?: MigrationSqlOptions): string;

export declare function scratch(pool: PostgresPool, options?: Omit<PostgresStoreOptions, 'tables'>): Promise<Scratch>;

// Not exported, but part of the above:

interface DrizzleTransaction {
  execute(query: unknown): PromiseLike<unknown>;
  rollback(): never;
}

interface KyselyResult {
  readonly rows: readonly unknown[];
  readonly numAffectedRows?: bigint | undefined;
}

interface KyselyTransaction {
  readonly isTransaction: true;
  withoutPlugins(): KyselyTransaction;
  executeQuery(query: unknown): Promise<KyselyResult>;
}

interface PostgresClient {
  query(query: PostgresQuery): Promise<{
    readonly rows: readonly unknown[];
  }>;
  on(event: 'error' | 'end', listener: () => void): unknown;
  on(event: 'notification', listener: (message: PostgresNotification) => void): unknown;
  release(destroy?: boolean): void;
}

interface PostgresJsTransaction {
  unsafe(query: string, parameters: never[]): PromiseLike<readonly unknown[]>;
  savepoint(work: never): unknown;
}

interface PostgresNotification {
  readonly channel: string;
  readonly payload?: string | undefined;
}

interface PostgresPool {
  query(query: PostgresQuery): Promise<{
    readonly rows: readonly unknown[];
  }>;
  connect(): Promise<PostgresClient>;
  on(event: 'error', listener: () => void): unknown;
  listenerCount(event: 'error'): number;
  readonly idleCount: number;
  readonly ending: boolean;
  readonly options: {
    readonly max: number;
    readonly connectionTimeoutMillis?: number | undefined;
  };
}

interface PostgresQuery {
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly name?: string;
  readonly query_timeout?: number;
}

interface PrismaTransaction {
  $queryRawUnsafe(query: string, ...values: unknown[]): PromiseLike<unknown>;
  readonly $connect?: undefined;
}
