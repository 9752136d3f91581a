// A store of your own in a few lines: keep the promises of the port, and prove it with the contract.
import type { Position, TokenRecord, TokenStore } from 'tokenwright';
import { TokenError } from 'tokenwright';
import { storeContract } from 'tokenwright/testing';

/** Keeps tokens in a `Map`; each method runs without a pause, so each is one step. */
export function mapStore(kept = new Map<string, TokenRecord>()): TokenStore {
  const keep = (record: TokenRecord) => kept.set(record.id, structuredClone(record));
  const isLive = (record: TokenRecord) => record.revokedAt === undefined;
  const stateAt = ({ revokedAt, expiresAt, suspendedAt }: TokenRecord, now: Date) => {
    if (revokedAt !== undefined) return 'revoked';
    if (expiresAt <= now) return 'expired';
    return suspendedAt === undefined ? 'active' : 'suspended';
  };
  const newestFirst = (a: Position, b: Position) =>
    b.createdAt.getTime() - a.createdAt.getTime() || (a.id < b.id ? 1 : -1);
  const revokeWhere = (at: Date, limit: number, isMeant: (record: TokenRecord) => boolean) => {
    const meant = [...kept.values()].filter((record) => isLive(record) && isMeant(record));
    const revoked = meant.slice(0, limit).map((record) => keep({ ...record, revokedAt: at }));
    return revoked.length;
  };
  return {
    async insert(record, quota) {
      const live = [...kept.values()].filter(
        (it) => isLive(it) && it.account === record.account && quota && it.expiresAt > quota.liveAt,
      );
      if (quota && live.length >= quota.tokens) {
        throw new TokenError('quota_exceeded', 'the account has as many tokens as it may have');
      }
      if (kept.has(record.id)) throw new TokenError('id_taken', 'this id is taken');
      keep(record);
    },
    find: async (ids) => ids.map((id) => structuredClone(kept.get(id))),
    async page({ account, after, limit, liveAt, state = 'active', parent }) {
      const listed = [...kept.values()].filter(
        (it) =>
          it.account === account &&
          (state === 'all' || stateAt(it, liveAt) === state) &&
          (parent === undefined || it.ancestors?.at(-1) === parent),
      );
      const rest = listed.filter((record) => !after || newestFirst(record, after) > 0);
      return structuredClone(rest.sort(newestFirst).slice(0, limit));
    },
    async replace(next, version = next.version - 1) {
      const now = kept.get(next.id);
      if (!now || !isLive(now) || now.account !== next.account) return false;
      if (now.version !== version) return false;
      keep(next);
      return true;
    },
    revoke: async (id, account, at, version) =>
      revokeWhere(
        at,
        1,
        (it) => it.id === id && it.account === account && (version ?? it.version) === it.version,
      ) > 0,
    revokeAll: async (account, at, limit) =>
      revokeWhere(at, limit, (record) => record.account === account),
    async purge(before, limit) {
      const ended = [...kept.values()]
        .filter(({ expiresAt, revokedAt }) => expiresAt < before || (revokedAt ?? before) < before)
        .slice(0, limit);
      for (const { id } of ended) kept.delete(id);
      return ended.length;
    },
  };
}

for (const promise of storeContract) await promise.run(() => mapStore());
console.log(`${storeContract.length} promises kept`); // 101 promises kept
