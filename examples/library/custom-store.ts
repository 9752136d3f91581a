// A store of your own in a few lines: keep the promises of the port, and prove it with the contract.
import type { PageOrder, Position, QuotaHolder, TokenRecord, TokenStore } from 'tokenwright';
import { TokenError } from 'tokenwright';
import { storeContract } from 'tokenwright/testing';

/** Keeps tokens in a `Map`; each method runs without a pause, so each is one step. */
export function mapStore(kept = new Map<string, TokenRecord>()): TokenStore {
  const keep = (record: TokenRecord) => kept.set(record.id, structuredClone(record));
  const isLive = (record: TokenRecord) => record.revokedAt === undefined;
  const statesAt = ({ revokedAt, expiresAt, suspendedAt }: TokenRecord, now: Date): string[] => {
    if (revokedAt !== undefined) return ['revoked'];
    if (expiresAt <= now) return ['expired'];
    return ['live', suspendedAt === undefined ? 'active' : 'suspended'];
  };
  const placeOf = ({ id, createdAt, expiresAt }: TokenRecord, order: PageOrder = 'created') => ({
    at: order === 'created' ? createdAt : expiresAt,
    id,
  });
  const comparedBy = (order?: PageOrder) => (a: Position, b: Position) => {
    const [first, second] = order === 'expire' ? [a, b] : [b, a];
    const times = first.at.getTime() - second.at.getTime();
    return times || Number(first.id > second.id) - Number(first.id < second.id);
  };
  const revokeWhere = (at: Date, limit: number, isMeant: (record: TokenRecord) => boolean) => {
    const meant = [...kept.values()].filter((record) => isLive(record) && isMeant(record));
    for (const record of meant.slice(0, limit)) keep(emptied(record, at));
    return Math.min(limit, meant.length);
  };
  // A revoked record loses what costs space, and is still refused for the same reason.
  const emptied = ({ box, metadata, pending, requested, ...rest }: TokenRecord, at: Date) => {
    const first = [...requested];
    while (first.length > 0 && Buffer.byteLength(JSON.stringify(first)) > 1024) first.pop();
    const left = pending && { pending: { ...pending, box: undefined } };
    return { ...rest, ...left, scopes: [], requested: first, revokedAt: at };
  };
  const heldBy = ({ account, root }: QuotaHolder) =>
    [...kept.values()].filter((it) => it.account === account && it.ancestors?.[0] === root);
  const hasEnded = (record: TokenRecord, now: Date) => !isLive(record) || record.expiresAt <= now;
  const drop = (records: readonly TokenRecord[]) => {
    for (const { id } of records) kept.delete(id);
    return records.length;
  };
  return {
    async insert(record) {
      if (kept.has(record.id)) throw new TokenError('id_taken', 'this id is taken');
      keep(record);
    },
    async count({ liveAt, most, ...holder }) {
      const held = heldBy(holder);
      const ended = held.filter((record) => hasEnded(record, liveAt)).length;
      const live = held.length - ended;
      return { live: Math.min(live, most.live), ended: Math.min(ended, most.ended) };
    },
    find: async (ids) => ids.map((id) => structuredClone(kept.get(id))),
    async page({ account, order, after, limit, liveAt, state = 'active', parent, root }) {
      const listed = [...kept.values()].filter(
        (it) =>
          it.account === account &&
          (state === 'all' || statesAt(it, liveAt).includes(state)) &&
          (parent === undefined || it.ancestors?.at(-1) === parent) &&
          (root === undefined || it.ancestors?.[0] === root),
      );
      const compare = comparedBy(order);
      const rest = listed.filter((record) => !after || compare(placeOf(record, order), after) > 0);
      rest.sort((a, b) => compare(placeOf(a, order), placeOf(b, order)));
      return structuredClone(rest.slice(0, limit));
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
    async purge({ now, minAgeMs, limit }) {
      const before = new Date(now.getTime() - minAgeMs);
      const ended = [...kept.values()].filter(
        ({ expiresAt, revokedAt }) => expiresAt < before || (revokedAt ?? before) < before,
      );
      return drop(ended.slice(0, limit));
    },
    async prune({ now, limit, ...holder }) {
      const ended = heldBy(holder)
        .filter((record) => hasEnded(record, now) && (isLive(record) || !record.format))
        .sort((a, b) => comparedBy()(placeOf(b), placeOf(a)));
      return drop(ended.slice(0, limit));
    },
  };
}

for (const promise of storeContract) await promise.run(() => mapStore());
console.log(`${storeContract.length} promises kept`); // 115 promises kept
