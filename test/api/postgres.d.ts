// What tokenwright/postgres declares, as published. Written by: npm run api

import type { CountQuery, CountedTokens, LeaseStore, LeaseWant, PageQuery, PruneQuery, PurgeQuery, PurgedRecords, ScanQuery, ScannedRecords, StoreFinding, TokenCounts, TokenId, TokenRecord, TokenStore, UnspentLease, Unsubscribe, UsageDelta, UsageRecord, UsageStore, UsageTotals } from 'tokenwright';

export interface PostgresClient {
  query(query: PostgresQuery): Promise<{
    readonly rows: readonly unknown[];
  }>;
  on(event: 'error' | 'end', listener: () => void): unknown;
  on(event: 'notification', listener: (message: PostgresNotification) => void): unknown;
  release(destroy?: boolean): void;
}

export interface PostgresConnection {
  query(query: PostgresQuery): Promise<{
    readonly rows: readonly unknown[];
  }>;
}

export interface PostgresLeaseOptions extends PostgresLeaseTableOptions {
  readonly deadlineMs?: number | undefined;
  readonly prepare?: boolean | undefined;
}

export declare class PostgresLeaseStore implements LeaseStore {
  #private;
  constructor(pool: PostgresPool, options?: PostgresLeaseOptions);
  take(wants: readonly LeaseWant[]): Promise<number[]>;
  giveBack(leases: readonly UnspentLease[]): Promise<void>;
  purge(before: Date, limit: number): Promise<number>;
  doctor(): Promise<StoreFinding[]>;
}

export interface PostgresLeaseTableOptions {
  readonly table?: string | undefined;
}

export interface PostgresNotification {
  readonly channel: string;
  readonly payload?: string | undefined;
}

export interface PostgresPool {
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

export interface PostgresQuery {
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly name?: string;
  readonly query_timeout?: number;
}

export interface PostgresStoreOptions extends PostgresTableOptions {
  readonly deadlineMs?: number | undefined;
  readonly prepare?: boolean | undefined;
  readonly standby?: 'refuse' | 'allow' | undefined;
  readonly maxListBytes?: number | undefined;
}

export interface PostgresTableOptions {
  readonly table?: string | undefined;
}

export declare class PostgresTokenStore implements TokenStore {
  #private;
  constructor(pool: PostgresPool, options?: PostgresStoreOptions);
  in(connection: PostgresConnection): TokenStore;
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
  watch(onChange: (ids: readonly TokenId[] | 'all') => void): Promise<Unsubscribe>;
  doctor(): Promise<StoreFinding[]>;
  close(): Promise<void>;
}

export interface PostgresUsageOptions extends PostgresUsageTableOptions {
  readonly deadlineMs?: number | undefined;
  readonly prepare?: boolean | undefined;
}

export declare class PostgresUsageStore implements UsageStore {
  #private;
  constructor(pool: PostgresPool, options?: PostgresUsageOptions);
  add(batch: readonly UsageDelta[]): Promise<void>;
  read(ids: readonly TokenId[]): Promise<(UsageRecord | undefined)[]>;
  totals(ids: readonly TokenId[]): Promise<(UsageTotals | undefined)[]>;
  forget(ids: readonly TokenId[]): Promise<void>;
  scan({ after, limit }: ScanQuery): Promise<CountedTokens>;
  since(): Promise<Date>;
}

export interface PostgresUsageTableOptions {
  readonly table?: string | undefined;
}

export declare function leaseMigrationSql(options?: PostgresLeaseTableOptions): string;

export declare function migrate(pool: PostgresPool, options?: PostgresTableOptions): Promise<void>;

export declare function migrateLeases(pool: PostgresPool, options?: PostgresLeaseTableOptions): Promise<void>;

export declare function migrateUsage(pool: PostgresPool, options?: PostgresUsageTableOptions): Promise<void>;

export declare function migrationSql(options?: PostgresTableOptions): string;

export declare function usageMigrationSql(options?: PostgresUsageTableOptions): string;
