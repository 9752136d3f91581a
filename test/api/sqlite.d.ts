// What tokenwright/sqlite declares, as published. Written by: npm run api

import type { CountQuery, CountedTokens, DoctorOptions, LeaseStore, LeaseWant, PageQuery, PruneQuery, PurgeQuery, PurgedRecords, ScanQuery, ScannedRecords, StoreFinding, TokenCounts, TokenId, TokenRecord, TokenStore, UnspentLease, Unsubscribe, UsageDelta, UsageRecord, UsageStore, UsageTotals } from 'tokenwright';

export interface SqliteHandle {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  readonly isTransaction?: boolean;
  readonly inTransaction?: boolean;
}

export declare class SqliteLeaseStore implements LeaseStore {
  #private;
  private constructor();
  static open(pathOrHandle: string | SqliteHandle): SqliteLeaseStore;
  take(wants: readonly LeaseWant[]): Promise<number[]>;
  giveBack(leases: readonly UnspentLease[]): Promise<void>;
  purge(before: Date, limit: number): Promise<number>;
  doctor(): Promise<StoreFinding[]>;
  close(): Promise<void>;
}

export interface SqliteStatement {
  get(...values: SqliteValue[]): unknown;
  all(...values: SqliteValue[]): unknown[];
  run(...values: SqliteValue[]): {
    readonly changes: number | bigint;
  };
  iterate?(...values: SqliteValue[]): Iterable<unknown>;
  setReturnArrays?(enabled: boolean): unknown;
  raw?(enabled: boolean): unknown;
}

export interface SqliteStoreOptions {
  readonly maxListBytes?: number | undefined;
}

export declare class SqliteTokenStore implements TokenStore {
  #private;
  readonly local = true;
  private constructor();
  static open(pathOrHandle: string | SqliteHandle, options?: SqliteStoreOptions): SqliteTokenStore;
  insert(record: TokenRecord): Promise<void>;
  count(query: CountQuery): Promise<TokenCounts>;
  find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]>;
  page(query: PageQuery): Promise<TokenRecord[]>;
  scan(query: ScanQuery): Promise<ScannedRecords>;
  replace(next: TokenRecord, version?: number): Promise<boolean>;
  revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean>;
  revokeAll(account: string, at: Date, limit: number): Promise<number>;
  purge({ now, minAgeMs, limit }: PurgeQuery): Promise<PurgedRecords>;
  prune({ account, root, now, limit }: PruneQuery): Promise<PurgedRecords>;
  hasReached(instant: Date, before?: Date): Promise<boolean>;
  watch(onChange: (ids: readonly TokenId[] | 'all') => void): Promise<Unsubscribe>;
  doctor(options?: DoctorOptions): Promise<StoreFinding[]>;
  close(): Promise<void>;
}

export declare class SqliteUsageStore implements UsageStore {
  #private;
  private constructor();
  static open(pathOrHandle: string | SqliteHandle): SqliteUsageStore;
  add(batch: readonly UsageDelta[]): Promise<void>;
  read(ids: readonly TokenId[]): Promise<(UsageRecord | undefined)[]>;
  totals(ids: readonly TokenId[]): Promise<(UsageTotals | undefined)[]>;
  forget(ids: readonly TokenId[]): Promise<void>;
  scan({ after, limit }: ScanQuery): Promise<CountedTokens>;
  since(): Promise<Date>;
  close(): Promise<void>;
}

export type SqliteValue = string | number | Uint8Array | null;
