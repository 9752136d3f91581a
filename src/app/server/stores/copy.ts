import { isDeepStrictEqual } from 'node:util';
import { isTokenError, type TokenStore } from '../../../index.ts';
import { stepsOf } from '../../../records/steps.ts';
import type { TokenRecord } from '../../../token/record.ts';
import { revoked } from '../../../token/revoked.ts';

/** What became of the records of a source. */
export interface Copied {
  /** They were missing in the target. */
  copied: number;
  /** The target had an earlier version of the same token. */
  updated: number;
  /** The target had them already. */
  equal: number;
  /** The target has another record of the same id, which stays. */
  readonly conflicts: string[];
}

/** What a comparison of two stores found. */
export interface Compared {
  records: number;
  missing: number;
  different: number;
}

/** How many writes run concurrently: those that end together share the wait for the disk. */
const CONCURRENCY = 20;

type CopyOutcome = 'copied' | 'updated' | 'equal' | 'conflict';

/**
 * Copies all records of a store into another one, with every field. It never overwrites another
 * token, never makes a revoked token valid, and never replaces a later version. If it is
 * interrupted, call it again.
 */
export async function copyRecords(
  from: TokenStore,
  to: TokenStore,
  onProgress: (done: number) => void,
): Promise<Copied> {
  const done: Copied = { copied: 0, updated: 0, equal: 0, conflicts: [] };
  let count = 0;
  for await (const records of stepsOf(from)) {
    const kept = await to.find(records.map(({ id }) => id));
    for (let start = 0; start < records.length; start += CONCURRENCY) {
      const some = records.slice(start, start + CONCURRENCY);
      const outcomes = await all(some.map((one, i) => copyOne(to, one, kept[start + i])));
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome === 'conflict') done.conflicts.push(some[index]?.id ?? '');
        else done[outcome] += 1;
      }
    }
    count += records.length;
    onProgress(count);
  }
  return done;
}

/** Reads all records of a store, and compares each with the one in another store. */
export async function compareRecords(
  from: TokenStore,
  to: TokenStore,
  onProgress: (done: number) => void,
): Promise<Compared> {
  const found: Compared = { records: 0, missing: 0, different: 0 };
  for await (const records of stepsOf(from)) {
    const kept = await to.find(records.map(({ id }) => id));
    for (const [index, record] of records.entries()) {
      const other = kept[index];
      if (other === undefined) found.missing += 1;
      else if (!isSameRecord(record, other)) found.different += 1;
    }
    found.records += records.length;
    onProgress(found.records);
  }
  return found;
}

async function copyOne(
  to: TokenStore,
  record: TokenRecord,
  kept: TokenRecord | undefined,
): Promise<CopyOutcome> {
  if (kept !== undefined) return update(to, record, kept);
  try {
    await to.insert(record);
    return 'copied';
  } catch (error) {
    if (!isTokenError(error) || error.code !== 'id_taken') throw error;
  }
  // Another copy was faster, or the source gave the record twice.
  const [now] = await to.find([record.id]);
  return now === undefined ? 'conflict' : update(to, record, now);
}

async function update(
  to: TokenStore,
  record: TokenRecord,
  kept: TokenRecord,
): Promise<CopyOutcome> {
  if (isSameRecord(record, kept)) return 'equal';
  const { id, account, revokedAt } = record;
  const isSameToken =
    kept.account === account && kept.createdAt.getTime() === record.createdAt.getTime();
  if (!isSameToken || kept.revokedAt !== undefined) return 'conflict';
  const isLater = kept.version < record.version;
  // A store empties a record when it is revoked.
  const expected = revokedAt === undefined ? kept : revoked(kept, revokedAt);
  if (!isLater && !isSameRecord(record, expected)) return 'conflict';
  const unrevoked = { ...record, revokedAt: undefined };
  const isReplaced = !isLater || (await to.replace(unrevoked, kept.version));
  const isRevoked = revokedAt === undefined || (await to.revoke(id, account, revokedAt));
  return isReplaced && isRevoked ? 'updated' : 'conflict';
}

/** Whether two records have the same fields; an absent one equals an undefined one. */
function isSameRecord(one: TokenRecord, other: TokenRecord): boolean {
  return isDeepStrictEqual(plain(one), plain(other));
}

function plain(record: TokenRecord): unknown {
  const fields = Object.entries(record).flatMap(([name, value]) => {
    if (value === undefined) return [];
    return [[name, value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value]];
  });
  // Through JSON: objects of a host may have other prototypes than those that a store makes.
  return JSON.parse(JSON.stringify(Object.fromEntries(fields)));
}

/** Waits for all, even if one fails: a write must not go on after its command has ended. */
async function all<Answer>(calls: readonly Promise<Answer>[]): Promise<Answer[]> {
  const settled = await Promise.allSettled(calls);
  return settled.map((each) => {
    if (each.status === 'rejected') throw each.reason;
    return each.value;
  });
}
