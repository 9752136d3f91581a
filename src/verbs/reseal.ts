import { notify } from '../events.ts';
import { readInput, resealOptions } from '../inputs/schemas.ts';
import type { ResealOptions } from '../inputs/types.ts';
import type { CheckedStore } from '../records/checked-store.ts';
import { stepsOf } from '../records/steps.ts';
import type { ResealReport, TokenRecord } from '../token/record.ts';
import type { KeyRing } from '../values/keys.ts';
import { resealedBox } from '../values/value.ts';
import type { ServiceParts } from './parts.ts';

/** How often `reseal` tries to write a record that others keep changing. @bound */
export const MAX_RESEAL_ATTEMPTS = 20;

/** Records that `reseal` writes concurrently. @bound */
export const WRITTEN_TOGETHER = 20;

type Outcome = 'resealed' | 'unreadable' | 'missed' | 'current';

/**
 * Seals all secrets of a store with the active key. A record keeps its version, because nothing that its
 * owner sees changes. A concurrent change of a record wins, and the record is read again.
 *
 * @throws {TokenError} `invalid_options` if the keys can only verify, or the store has no `scan`
 */
export async function reseal(
  { store, ring }: Pick<ServiceParts, 'store' | 'ring'>,
  options: ResealOptions,
): Promise<ResealReport> {
  const { onProgress } = readInput(resealOptions(), options);
  // Throws before anything is read.
  void ring.active;
  let report: ResealReport = { records: 0, resealed: 0, unreadable: 0, missed: 0 };
  for await (const records of stepsOf(store)) {
    const counts = { current: 0, resealed: 0, unreadable: 0, missed: 0 };
    for (let start = 0; start < records.length; start += WRITTEN_TOGETHER) {
      const some = records.slice(start, start + WRITTEN_TOGETHER);
      for (const outcome of await settled(some.map((record) => resealOne(store, ring, record)))) {
        counts[outcome] += 1;
      }
    }
    report = {
      records: report.records + records.length,
      resealed: report.resealed + counts.resealed,
      unreadable: report.unreadable + counts.unreadable,
      missed: report.missed + counts.missed,
    };
    if (onProgress !== undefined) notify(onProgress, report);
  }
  return report;
}

async function resealOne(store: CheckedStore, ring: KeyRing, found: TokenRecord): Promise<Outcome> {
  const { id } = found;
  let record: TokenRecord | undefined = found;
  for (let attempts = 0; attempts < MAX_RESEAL_ATTEMPTS; attempts++) {
    // A revoked record takes no change, and its secret opens nothing.
    if (record === undefined || record.revokedAt !== undefined) return 'current';
    const boxes = newBoxes(ring, record);
    if (typeof boxes === 'string') return boxes;
    const next = { ...record, ...boxes };
    if (await store.replace(next, record.version, store.deadline())) return 'resealed';
    record = await store.findOne(id);
  }
  return 'missed';
}

function newBoxes(
  ring: KeyRing,
  record: TokenRecord,
): Pick<TokenRecord, 'box' | 'pending'> | 'unreadable' | 'current' {
  const { pending } = record;
  const box = resealedBox(ring, record, record);
  const pendingBox = pending && resealedBox(ring, pending, record);
  if (box === 'unreadable' || pendingBox === 'unreadable') return 'unreadable';
  if (box === undefined && pendingBox === undefined) return 'current';
  return {
    ...(box !== undefined && { box }),
    ...(pending !== undefined &&
      pendingBox !== undefined && { pending: { ...pending, box: pendingBox } }),
  };
}

/** Waits for all calls even if one fails, so that nothing is written after the failure is thrown. */
async function settled<Answer>(calls: readonly Promise<Answer>[]): Promise<Answer[]> {
  const outcomes = await Promise.allSettled(calls);
  return outcomes.map((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  });
}
