import type { LeaseStore } from './lease-store.ts';
import type { TokenStore } from './token-store.ts';
import type { UsageStore } from './usage-store.ts';

/**
 * A database that keeps all a service stores: the tokens, how often they are used, and the uses that are
 * taken of limited ones. Every store of the package is one. Its `close` also closes the other two parts.
 */
export interface EngineStore extends TokenStore {
  /** Counts how tokens are used: see the option `usage` of the service. */
  readonly usage: UsageStore;
  /** Counts the uses of limited tokens: see the option `limits` of the service. */
  readonly leases: LeaseStore;
}
