import type { LeaseStore } from './lease-store.ts';
import type { TokenStore } from './token-store.ts';
import type { UsageStore } from './usage-store.ts';

/**
 * A database that keeps all a service stores: the tokens, how often they are used, and the uses that are
 * taken of limited ones. Every store of the package is one.
 */
export interface EngineStore extends TokenStore {
  readonly usage: UsageStore;
  readonly leases: LeaseStore;
}
