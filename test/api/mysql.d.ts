// What tokenwright/mysql declares, as published. Written by: npm run api

import type { PageQuery, StoreFinding, TokenId, TokenRecord, TokenStore, Unsubscribe } from 'tokenwright';

export type MysqlCallback = (error: unknown, answer: unknown) => void;

export interface MysqlConnection {
  execute(statement: MysqlStatement, callback: MysqlCallback): unknown;
  query(statement: MysqlStatement, callback: MysqlCallback): unknown;
  release(): void;
  destroy(): void;
}

export interface MysqlPool {
  getConnection(callback: (error: unknown, connection: MysqlConnection) => void): void;
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
}

export interface MysqlTableOptions {
  readonly table?: string | undefined;
}

export declare class MysqlTokenStore implements TokenStore {
  #private;
  constructor(pool: MysqlPool | MysqlPromisePool, options?: MysqlStoreOptions);
  insert(record: TokenRecord): Promise<void>;
  find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]>;
  page({ account, after, limit, liveAt }: PageQuery): Promise<TokenRecord[]>;
  replace(next: TokenRecord): Promise<boolean>;
  revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean>;
  revokeAll(account: string, at: Date): Promise<number>;
  purge(before: Date, limit: number): Promise<number>;
  watch(onChange: (ids: readonly TokenId[] | 'all') => void): Promise<Unsubscribe>;
  doctor(): Promise<StoreFinding[]>;
}

export type MysqlValue = string | number | Buffer | null;

export declare function migrate(pool: MysqlPool | MysqlPromisePool, options?: MysqlTableOptions): Promise<void>;

export declare function migrationSql(options?: MysqlTableOptions): string;
