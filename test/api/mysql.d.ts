// What tokenwright/mysql declares, as published. Written by: npm run api

import type { CountQuery, CountedTokens, LeaseStore, LeaseWant, PageQuery, PruneQuery, PurgeQuery, PurgedRecords, ScanQuery, ScannedRecords, StoreFinding, TokenCounts, TokenId, TokenRecord, TokenStore, UnspentLease, Unsubscribe, UsageDelta, UsageRecord, UsageStore, UsageTotals } from 'tokenwright';

export type MysqlCallback = (error: unknown, answer: unknown) => void;

export interface MysqlConnection {
  execute(statement: MysqlStatement, callback: MysqlCallback): unknown;
  query(statement: MysqlStatement, callback: MysqlCallback): unknown;
  release(): void;
  destroy(): void;
}

export interface MysqlLeaseOptions extends MysqlLeaseTableOptions {
  readonly deadlineMs?: number | undefined;
}

export declare class MysqlLeaseStore implements LeaseStore {
  #private;
  constructor(pool: MysqlPool | MysqlPromisePool, options?: MysqlLeaseOptions);
  take(wants: readonly LeaseWant[]): Promise<number[]>;
  giveBack(leases: readonly UnspentLease[]): Promise<void>;
  purge(before: Date, limit: number): Promise<number>;
  doctor(): Promise<StoreFinding[]>;
}

export interface MysqlLeaseTableOptions {
  readonly table?: string | undefined;
}

export interface MysqlPool {
  getConnection(callback: (error: unknown, connection: MysqlConnection) => void): void;
}

export interface MysqlPromiseConnection {
  readonly connection: object;
}

export interface MysqlPromisePool {
  readonly pool: MysqlPool;
}

export interface MysqlStatement {
  sql: string;
  values: MysqlValue[];
  rowsAsArray: boolean;
  nestTables: boolean;
  typeCast: boolean | ((field: unknown, next: () => unknown) => unknown);
}

export interface MysqlStoreOptions extends MysqlTableOptions {
  readonly deadlineMs?: number | undefined;
  readonly pollMs?: number | undefined;
  readonly standby?: 'refuse' | 'allow' | undefined;
  readonly maxListBytes?: number | undefined;
}

export interface MysqlTableOptions {
  readonly table?: string | undefined;
}

export declare class MysqlTokenStore implements TokenStore {
  #private;
  constructor(pool: MysqlPool | MysqlPromisePool, options?: MysqlStoreOptions);
  in(connection: MysqlTransactionConnection | MysqlPromiseConnection): TokenStore;
  insert(record: TokenRecord): Promise<void>;
  count(query: CountQuery): Promise<TokenCounts>;
  find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]>;
  page(query: PageQuery): Promise<TokenRecord[]>;
  scan(query: ScanQuery): Promise<ScannedRecords>;
  replace(next: TokenRecord, version?: number): Promise<boolean>;
  revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean>;
  revokeAll(account: string, at: Date, limit: number): Promise<number>;
  purge({ now, minAgeMs, limit }: PurgeQuery): Promise<PurgedRecords>;
  prune(query: PruneQuery): Promise<PurgedRecords>;
  hasReached(instant: Date): Promise<boolean>;
  watch(onChange: (ids: readonly TokenId[] | 'all') => void): Promise<Unsubscribe>;
  doctor(): Promise<StoreFinding[]>;
}

export type MysqlTransactionConnection = Pick<MysqlConnection, 'execute' | 'query'>;

export interface MysqlUsageOptions extends MysqlUsageTableOptions {
  readonly deadlineMs?: number | undefined;
}

export declare class MysqlUsageStore implements UsageStore {
  #private;
  constructor(pool: MysqlPool | MysqlPromisePool, options?: MysqlUsageOptions);
  add(batch: readonly UsageDelta[]): Promise<void>;
  read(ids: readonly TokenId[]): Promise<(UsageRecord | undefined)[]>;
  totals(ids: readonly TokenId[]): Promise<(UsageTotals | undefined)[]>;
  forget(ids: readonly TokenId[]): Promise<void>;
  scan({ after, limit }: ScanQuery): Promise<CountedTokens>;
  since(): Promise<Date>;
}

export interface MysqlUsageTableOptions {
  readonly table?: string | undefined;
}

export type MysqlValue = string | number | Buffer | null;

export declare function leaseMigrationSql(options?: MysqlLeaseTableOptions): string;

export declare function migrate(pool: MysqlPool | MysqlPromisePool, options?: MysqlTableOptions): Promise<void>;

export declare function migrateLeases(pool: MysqlPool | MysqlPromisePool, options?: MysqlLeaseTableOptions): Promise<void>;

export declare function migrateUsage(pool: MysqlPool | MysqlPromisePool, options?: MysqlUsageTableOptions): Promise<void>;

export declare function migrationSql(options?: MysqlTableOptions): string;

export declare function usageMigrationSql(options?: MysqlUsageTableOptions): string;
