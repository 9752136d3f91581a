import type { LeaseStore } from './lease-store.ts';
import type { RequestStore } from './request-store.ts';
import type { TokenStore } from './token-store.ts';
import type { UsageStore } from './usage-store.ts';

/**
 * A database that keeps all a service stores: the tokens, how often they are used, the uses that are taken
 * of limited ones, and requests for tokens. Every store of the package is one. Its `close` also closes the
 * other parts.
 */
export interface EngineStore extends TokenStore {
  /** Counts how tokens are used: see the option `usage` of the service. */
  readonly usage: UsageStore;
  /** Counts the uses of limited tokens: see the option `limits` of the service. */
  readonly leases: LeaseStore;
  /** Keeps requests for tokens, which people approve or deny. */
  readonly requests: RequestStore;
}

/**
 * A place of its own in a database, to try out a store without touching anything that was there before.
 * `scratch` of each engine makes one: new tables, a new key prefix or a new folder.
 */
export interface Scratch {
  /** The database and its version: `PostgreSQL 15.18`. */
  readonly engine: string;
  /** The package that talks to it, with its version if that is known: `pg 8.23.1`. */
  readonly driver: string;
  /** Opens an empty store. Use one at a time: the next call removes what was written before. */
  open(): Promise<EngineStore>;
  /**
   * Removes all that was made. Close the last store before.
   *
   * @throws {TokenError} `store_unavailable` with a message that names what is left
   */
  drop(): Promise<void>;
}
