import { stepsOf } from '../../records/steps.ts';
import type { TokenStore } from '../../store.ts';
import { isExpired } from '../../token.ts';
import { sealingKid } from '../../values/value.ts';
import { count } from '../layout.ts';

/** Says of each key how many live tokens depend on it, one line for each. Reads all records. */
export async function keyUse(store: TokenStore, now: number): Promise<string[]> {
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
    const made = count(values.get(kid) ?? 0, 'live value');
    return `key ${kid}: made ${made}, and seals ${count(secrets.get(kid) ?? 0, 'secret')}`;
  });
}
