// All contracts, for a store that is used in one more way.
import { it } from 'vitest';
import type { EngineStore } from '../../src/ports/engine-store.ts';
import {
  leaseContract,
  requestContract,
  storeContract,
  usageContract,
} from '../../src/testing/index.ts';

/** Registers a test for each case. `open` has to return a store that holds nothing. */
export function testContracts(open: () => EngineStore | Promise<EngineStore>): void {
  it.each(storeContract)('$name', ({ run }) => run(open));
  it.each(usageContract)('usage: $name', ({ run }) => run(async () => (await open()).usage));
  it.each(leaseContract)('leases: $name', ({ run }) => run(async () => (await open()).leases));
  it.each(requestContract)('requests: $name', ({ run }) =>
    run(async () => (await open()).requests),
  );
}
