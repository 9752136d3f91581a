import { describe, expect, it } from 'vitest';
import { RecordWeights } from '../../src/records/reader.ts';
import type { TokenRecord } from '../../src/token/record.ts';
import { listWeight } from '../../src/token/size.ts';
import { newRecord } from '../stores/support.ts';

const LIST = Object.freeze(['GET:shop.example/orders', 'POST:shop.example/orders']);
const OTHER_LIST = Object.freeze(['GET:shop.example/*']);

/** The bytes that records take together. */
function weigh(...records: readonly TokenRecord[]): number {
  const weights = new RecordWeights();
  for (const record of records) weights.add(record);
  return weights.bytes;
}

const shared = newRecord('shared', { scopes: LIST, requested: LIST });
const apart = newRecord('apart', { scopes: LIST, requested: OTHER_LIST });
/** The bytes that a record takes without its lists. */
const OWN = weigh(shared) - listWeight(LIST);

describe('the weight of records', () => {
  it('has one part for each record and one for each list', () => {
    expect(OWN).toBeGreaterThan(0);
    expect(weigh(apart)).toBe(OWN + listWeight(LIST) + listWeight(OTHER_LIST));
    expect(weigh(shared, apart)).toBe(2 * OWN + listWeight(LIST) + listWeight(OTHER_LIST));
  });

  it('counts an equal list again if it is another object', () => {
    expect(weigh(shared, { ...shared, scopes: [...LIST] })).toBe(2 * OWN + 2 * listWeight(LIST));
  });

  it.each([
    ['metadata', { metadata: { team: 'billing' } }],
    ['limits', { limits: { addresses: ['192.0.2.0/24'], uses: 10 } }],
    ['ancestors', { ancestors: [shared.id] }],
  ] as const)('grows by %s', (_, fields) => {
    const [part] = Object.values(fields);

    expect(weigh({ ...shared, ...fields }) - weigh(shared)).toBe(2 * JSON.stringify(part).length);
  });

  it('is zero again after all records are removed, in any order', () => {
    const records = [shared, apart, { ...apart, metadata: { team: 'billing' } }];
    for (const order of [records, records.toReversed()]) {
      const weights = new RecordWeights();
      for (const record of records) weights.add(record);
      for (const record of order) weights.remove(record);

      expect(weights.bytes).toBe(0);
    }
  });

  it('includes a list until the last record with it is removed', () => {
    const weights = new RecordWeights();
    for (const record of [shared, shared, shared]) weights.add(record);
    weights.remove(shared);
    weights.remove(shared);
    expect(weights.bytes).toBe(OWN + listWeight(LIST));
    weights.add(apart);

    expect(weights.bytes).toBe(2 * OWN + listWeight(LIST) + listWeight(OTHER_LIST));
  });

  it('starts again at zero after clear', () => {
    const weights = new RecordWeights();
    weights.add(shared);
    weights.clear();
    expect(weights.bytes).toBe(0);
    weights.add(shared);

    expect(weights.bytes).toBe(OWN + listWeight(LIST));
  });
});
