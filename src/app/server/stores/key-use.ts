import type { TokenStore } from '../../../ports/token-store.ts';
import { stepsOf } from '../../../records/steps.ts';
import { isExpired } from '../../../token/record.ts';
import { sealingKid } from '../../../values/value.ts';

/** How many live tokens depend on a key. */
export interface KeyUse {
  readonly kid: string;
  /** Values that were made with it. */
  readonly values: number;
  /** Secrets that are sealed with it. */
  readonly secrets: number;
}

/** Counts for each key the live tokens that depend on it. Reads all records. */
export async function keyUse(store: TokenStore, now: number): Promise<KeyUse[]> {
  const values = new Map<string, number>();
  const secrets = new Map<string, number>();
  const add = (counts: Map<string, number>, kid: string | undefined) => {
    if (kid !== undefined) counts.set(kid, (counts.get(kid) ?? 0) + 1);
  };
  for await (const records of stepsOf(store)) {
    for (const record of records) {
      if (record.revokedAt !== undefined || isExpired(record, now)) continue;
      for (const each of [record, ...(record.pending === undefined ? [] : [record.pending])]) {
        add(values, each.kid);
        add(secrets, sealingKid(each));
      }
    }
  }
  const kids = [...new Set([...values.keys(), ...secrets.keys()])].sort();
  return kids.map((kid) => {
    return { kid, values: values.get(kid) ?? 0, secrets: secrets.get(kid) ?? 0 };
  });
}
