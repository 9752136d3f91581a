// What tokenwright/sqlite declares, as published. Written by: npm run api

import type { PageQuery, StoreFinding, TokenId, TokenRecord, TokenStore, Unsubscribe } from 'tokenwright';

export interface SqliteHandle {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
}

export interface SqliteStatement {
  get(...values: SqliteValue[]): unknown;
  all(...values: SqliteValue[]): unknown[];
  run(...values: SqliteValue[]): {
    readonly changes: number | bigint;
  };
  setReturnArrays?(enabled: boolean): unknown;
  raw?(enabled: boolean): unknown;
}

export declare class SqliteTokenStore implements TokenStore {
  #private;
  readonly local = true;
  private constructor();
  static open(pathOrHandle: string | SqliteHandle): SqliteTokenStore;
  insert(record: TokenRecord): Promise<void>;
  find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]>;
  page({ account, after, limit, liveAt }: PageQuery): Promise<TokenRecord[]>;
  replace(next: TokenRecord): Promise<boolean>;
  revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean>;
  revokeAll(account: string, at: Date): Promise<number>;
  purge(before: Date, limit: number): Promise<number>;
  watch(onChange: (ids: readonly TokenId[] | 'all') => void): Promise<Unsubscribe>;
  doctor(): Promise<StoreFinding[]>;
  close(): Promise<void>;
}

export type SqliteValue = string | number | Uint8Array | null;
