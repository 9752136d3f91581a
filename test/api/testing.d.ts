// What tokenwright/testing declares, as published. Written by: npm run api

import type { EngineStore, LeaseStore, RequestStore, StoreFinding, TokenStore, UsageStore } from 'tokenwright';

export interface ContractOptions {
  readonly only?: 'tokens' | 'usage' | 'leases' | 'requests' | undefined;
}

export interface ContractReport {
  readonly tokenwright: string;
  readonly engine: string;
  readonly driver: string;
  readonly runtime: string;
  readonly at: string;
  readonly ms: number;
  readonly of: number;
  readonly passed: number;
  readonly failed: readonly {
    readonly case: string;
    readonly message: string;
  }[];
  readonly findings: readonly StoreFinding[];
}

export interface LeaseContractCase {
  readonly name: string;
  run(open: () => LeaseStore | Promise<LeaseStore>): Promise<void>;
}

export interface ManualClock {
  now(): Date;
  advance(seconds: number): void;
}

export interface RequestContractCase {
  readonly name: string;
  run(open: () => RequestStore | Promise<RequestStore>): Promise<void>;
}

export interface Scratch {
  readonly engine: string;
  readonly driver: string;
  open(): Promise<EngineStore>;
  drop(): Promise<void>;
}

export interface StoreContractCase {
  readonly name: string;
  run(open: () => TokenStore | Promise<TokenStore>): Promise<void>;
}

export type StoreFault = (call: StoreCall, run: () => Promise<unknown>) => Promise<unknown>;

export interface UsageContractCase {
  readonly name: string;
  run(open: () => UsageStore | Promise<UsageStore>): Promise<void>;
}

export declare function contractReport(scratch: Scratch, { only }?: ContractOptions): Promise<ContractReport>;

export declare const faults: Readonly<{
  delay(turns: number, isHit?: (call: StoreCall) => boolean): StoreFault;
  lostRequest(isHit?: (call: StoreCall) => boolean): StoreFault;
  lostAnswer(isHit?: (call: StoreCall) => boolean): StoreFault;
  duplicate(isHit?: (call: StoreCall) => boolean): StoreFault;
  hang(isHit?: (call: StoreCall) => boolean): StoreFault;
}>;

export declare const leaseContract: readonly LeaseContractCase[];

export declare function manualClock(start?: Date): ManualClock;

export declare const requestContract: readonly RequestContractCase[];

export declare const storeContract: readonly StoreContractCase[];

export declare const usageContract: readonly UsageContractCase[];

export declare function withFaults(store: EngineStore, ...chosen: readonly StoreFault[]): EngineStore;
export declare function withFaults(store: TokenStore, ...chosen: readonly StoreFault[]): TokenStore;

// Not exported, but part of the above:

interface StoreCall {
  readonly method: 'insert' | 'count' | 'find' | 'page' | 'replace' | 'revoke' | 'revokeAll' | 'purge' | 'prune' | 'hasReached' | 'scan';
  readonly args: readonly unknown[];
}
