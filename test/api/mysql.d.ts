// What tokenwright/mysql declares, as published. Written by: npm run api

import type { CountQuery, EngineStore, LeaseStore, PageQuery, PruneQuery, PurgeQuery, PurgedRecords, RequestStore, ScanQuery, ScannedRecords, StoreFinding, TokenCounts, TokenId, TokenRecord, Unsubscribe, UsageStore } from 'tokenwright';
import type { Scratch } from 'tokenwright/testing';

export interface MigrationOptions {
  readonly tables?: string | undefined;
}

export interface MysqlPromiseConnection {
  readonly connection: object;
}

export interface MysqlStoreOptions extends MigrationOptions {
  readonly deadlineMs?: number | undefined;
  readonly prepare?: boolean | undefined;
  readonly pollMs?: number | undefined;
  readonly standby?: 'refuse' | 'allow' | undefined;
  readonly maxListBytes?: number | undefined;
}

export declare class MysqlTokenStore implements EngineStore {
  #private;
  readonly usage: UsageStore;
  readonly leases: LeaseStore;
  readonly requests: RequestStore;
  constructor(pool: MysqlPool | MysqlPromisePool, options?: MysqlStoreOptions);
  in(connection: MysqlTransactionConnection | MysqlPromiseConnection): EngineStore;
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

export declare function fromDrizzle(tx: DrizzleTransaction): MysqlPromiseConnection;

export declare function fromKysely(trx: KyselyTransaction): MysqlPromiseConnection;

export declare function migrate(pool: MysqlPool | MysqlPromisePool, options?: MigrationOptions): Promise<void>;

export declare function migrationSql(options?: MigrationOptions): string;

export declare function scratch(pool: MysqlPool | MysqlPromisePool, options?: Omit<MysqlStoreOptions, 'tables'>): Promise<Scratch>;

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

type MysqlCallback = (error: unknown, answer: unknown) => void;

interface MysqlConnection {
  execute(statement: MysqlStatement, callback: MysqlCallback): unknown;
  query(statement: MysqlStatement, callback: MysqlCallback): unknown;
  release(): void;
  destroy(): void;
}

interface MysqlPool {
  getConnection(callback: (error: unknown, connection: MysqlConnection) => void): void;
}

interface MysqlPromisePool {
  readonly pool: MysqlPool;
}

interface MysqlStatement {
  sql: string;
  values: MysqlValue[];
  rowsAsArray: boolean;
  nestTables: boolean;
  typeCast: boolean | ((field: unknown, next: () => unknown) => unknown);
}

type MysqlTransactionConnection = Sender;

type MysqlValue = string | number | Buffer | null;

type Sender = Pick<MysqlConnection, 'execute' | 'query'>;
