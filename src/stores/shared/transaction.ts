import { storeUnavailable, type TokenError } from '../../errors.ts';
import type { EngineStore } from '../../ports/engine-store.ts';
import type { TokenStore } from '../../ports/token-store.ts';

/**
 * A store whose tokens are changed in a transaction of the host: no `watch`, `doctor` or `close`. Its usage,
 * leases and requests stay outside, so that a rollback gives no use back.
 */
export function storeInTransaction(
  store: EngineStore & Required<Pick<TokenStore, 'scan'>>,
): EngineStore {
  return {
    // An SQLite store may have none, which it says when it is asked.
    get usage() {
      return store.usage;
    },
    get leases() {
      return store.leases;
    },
    get requests() {
      return store.requests;
    },
    insert: (record) => store.insert(record),
    count: (query) => store.count(query),
    find: (ids) => store.find(ids),
    page: (query) => store.page(query),
    scan: (query) => store.scan(query),
    replace: (next, version) => store.replace(next, version),
    revoke: (id, account, at, version) => store.revoke(id, account, at, version),
    revokeAll: (account, at, limit) => store.revokeAll(account, at, limit),
    purge: (query) => store.purge(query),
    prune: (query) => store.prune(query),
    inTransaction: true,
    ...(store.local === true && { local: true }),
  };
}

/**
 * The error for a call after one that failed. The server may have ended the transaction by itself: a
 * later statement would be refused, or would commit alone.
 */
export function failedTransaction(): TokenError {
  return storeUnavailable('transaction_failed');
}
