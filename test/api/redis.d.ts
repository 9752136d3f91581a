// What tokenwright/redis declares, as published. Written by: npm run api

import type { CountQuery, DoctorOptions, EngineStore, LeaseStore, PageQuery, PruneQuery, PurgeQuery, PurgedRecords, RequestStore, ScanQuery, ScannedRecords, StoreFinding, TokenCounts, TokenError, TokenId, TokenRecord, Unsubscribe, UsageStore } from 'tokenwright';
import type { Scratch } from 'tokenwright/testing';

export type RedisClient = IoredisClient | IoredisCluster | NodeRedisClient | NodeRedisCluster;

export type RedisStoreEvent = {
  readonly type: 'durability_unconfirmed';
  readonly confirmations: number;
  readonly needed: number;
} | {
  readonly type: 'writes_reasserted';
  readonly count: number;
};

export interface RedisStoreOptions {
  readonly keyPrefix?: string | undefined;
  readonly replicas?: number | undefined;
  readonly waitMs?: number | undefined;
  readonly maxListBytes?: number | undefined;
  readonly onEvent?: ((event: RedisStoreEvent) => void) | undefined;
}

export declare class RedisTokenStore implements EngineStore {
  #private;
  readonly usage: Required<UsageStore>;
  readonly leases: LeaseStore;
  readonly requests: RequestStore;
  constructor(client: RedisClient, options?: RedisStoreOptions);
  insert(record: TokenRecord): Promise<void>;
  count(query: CountQuery): Promise<TokenCounts>;
  find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]>;
  page(query: PageQuery): Promise<TokenRecord[]>;
  scan(query: ScanQuery): Promise<ScannedRecords>;
  replace(next: TokenRecord, version?: number): Promise<boolean>;
  revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean>;
  revokeAll(account: string, at: Date, limit: number): Promise<number>;
  purge(query: PurgeQuery): Promise<PurgedRecords>;
  prune(query: PruneQuery): Promise<PurgedRecords>;
  hasReached(instant: Date): Promise<boolean>;
  watch(onChange: (ids: readonly TokenId[] | 'all') => void, onTrouble?: (failure: TokenError | undefined) => void): Promise<Unsubscribe>;
  doctor(options?: DoctorOptions): Promise<StoreFinding[]>;
  close(): Promise<void>;
}

export declare function scratch(client: RedisClient, options?: Omit<RedisStoreOptions, 'keyPrefix'>): Promise<Scratch>;

// Not exported, but part of the above:

interface IoredisClient {
  readonly isCluster: boolean;
  readonly status: string;
  readonly options: {
    readonly host?: string | undefined;
    readonly port?: number | undefined;
  };
  call(command: string, args: string[]): Promise<unknown>;
  pipeline(commands: string[][]): {
    exec(): Promise<[
      Error | null,
      unknown
    ][] | null>;
  };
  duplicate(options?: object): IoredisClient;
  connect(): Promise<unknown>;
  disconnect(): void;
  subscribe(...channels: string[]): Promise<unknown>;
  on(event: string, listener: (...values: string[]) => void): unknown;
}

interface IoredisCluster {
  readonly isCluster: boolean;
  readonly status: string;
  readonly options: {
    readonly scaleReads?: unknown;
  };
  readonly slots: readonly (readonly string[])[];
  nodes(role: 'master'): IoredisClient[];
  call(command: string, args: string[]): Promise<unknown>;
  duplicate(nodes?: [
  ], options?: object): IoredisCluster;
  disconnect(): void;
  on(event: string, listener: (error: unknown) => void): unknown;
}

interface NodeRedisClient {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  readonly options: {
    readonly socket?: object | undefined;
  };
  sendCommand(args: string[], options?: object): Promise<unknown>;
  duplicate(options?: object): NodeRedisClient;
  connect(): Promise<unknown>;
  destroy(): void;
  subscribe(channels: string[], listener: (message: string, channel: string) => void): Promise<unknown>;
  on(event: string, listener: (error: unknown) => void): unknown;
}

interface NodeRedisCluster {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  readonly slots: readonly {
    readonly master: NodeRedisNode;
  }[];
  readonly masters: readonly NodeRedisNode[];
  nodeClient(node: NodeRedisNode): Promise<NodeRedisClient>;
  sendCommand(key: string | undefined, isReadonly: boolean, args: string[], options?: object): Promise<unknown>;
  duplicate(options?: object): NodeRedisCluster;
  connect(): Promise<unknown>;
  destroy(): void;
  on(event: string, listener: (error: unknown) => void): unknown;
}

interface NodeRedisNode {
  readonly address: string;
}
