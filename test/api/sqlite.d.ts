// What tokenwright/sqlite declares, as published. Written by: npm run api

import type { CountQuery, DoctorOptions, EngineStore, PageQuery, PruneQuery, PurgeQuery, PurgedRecords, ScanQuery, ScannedRecords, StoreFinding, TokenCounts, TokenId, TokenRecord, Unsubscribe } from 'tokenwright';
import type { Scratch } from 'tokenwright/testing';

export interface SqliteHandle {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  readonly isTransaction?: boolean;
  readonly inTransaction?: boolean;
}

export interface SqliteStoreOptions {
  readonly maxListBytes?: number | undefined;
}

export declare class SqliteTokenStore implements EngineStore {
  #private;
  readonly local = true;
  private constructor();
  static open(place: string | SqliteHandle | {
    readonly tokens: SqliteHandle;
    readonly usage?: SqliteHandle | undefined;
    readonly leases?: SqliteHandle | undefined;
    readonly requests?: SqliteHandle | undefined;
  }, options?: SqliteStoreOptions): SqliteTokenStore;
  get usage(): EngineStore['usage'];
  get leases(): EngineStore['leases'];
  get requests(): EngineStore['requests'];
  in(handle: SqliteHandle): EngineStore;
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

export declare function scratch(folder: string): Promise<Scratch>;

// Not exported, but part of the above:

interface SqliteStatement {
  get(...values: SqliteValue[]): unknown;
  all(...values: SqliteValue[]): unknown[];
  run(...values: SqliteValue[]): {
    readonly changes: number | bigint;
  };
  iterate?(...values: SqliteValue[]): Iterable<unknown>;
  setReturnArrays?(enabled: boolean): unknown;
  raw?(enabled: boolean): unknown;
}

type SqliteValue = string | number | Uint8Array | null;
