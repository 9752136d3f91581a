import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { TokenService } from '../../src/service.ts';
import type { TokenStore } from '../../src/store.ts';
import { MemoryTokenStore } from '../../src/stores/memory.ts';
import { manualClock } from '../../src/testing/index.ts';
import type { TokenId } from '../../src/token.ts';
import { K1, RecordingStore } from '../support.ts';
import { acceptedFromMemory, answersTo, newFamily } from './large-family.ts';
import { forgettingAncestors } from './lineage-schedules.ts';

/** As many as are promised with DESCENDANTS=10000. */
const SIZE = Number(process.env['DESCENDANTS'] ?? 1000);
const MAX_STALE_MS = 60_000;

/** A node that makes the family, and another one that has all of it in its cache. */
async function twoNodes(storeOfTheOther = (store: TokenStore) => store) {
  const clock = manualClock();
  const store = new MemoryTokenStore();
  const quotas = { tokensPerAccount: SIZE + 1 };
  const common = { keys: [K1], prefix: 'acme', clock, quotas };
  const here = new TokenService({ ...common, store });
  const family = await newFamily(here, SIZE);

  const asked = new RecordingStore(storeOfTheOther(store));
  let listener: (ids: readonly TokenId[]) => void = () => {};
  const watch = async (onChange: typeof listener) => {
    listener = onChange;
    return async () => {};
  };
  const there = new TokenService({
    ...common,
    store: Object.assign(asked, { watch }),
    cache: { maxStaleMs: MAX_STALE_MS, maxEntries: SIZE + 1 },
  });
  // From then on it listens.
  await turn();
  expect(await answersTo(there, family.values)).toEqual({ accepted: SIZE });
  expect(acceptedFromMemory(there, family.values)).toBe(SIZE);
  asked.takeCalls();
  const tell = (id: TokenId) => listener([id]);
  return { here, there, ...family, clock, asked, tell };
}

describe(`the end of a token with ${SIZE} descendants`, () => {
  it.each([
    ['revoked', 'ancestor_revoked'],
    ['suspended', 'ancestor_suspended'],
    ['narrowed', 'ancestor_insufficient'],
  ])('is seen by another node with the next read of one record: %s', async (how, reason) => {
    const { here, there, root, values, asked, tell } = await twoNodes();
    if (how === 'revoked') await here.revoke('acme', root.id);
    else if (how === 'suspended') await here.patch('acme', root.id, { suspended: true });
    else await here.patch('acme', root.id, { scopes: ['GET:shop.example/other'] });
    expect(acceptedFromMemory(there, values)).toBe(SIZE);

    tell(root.id);

    expect(acceptedFromMemory(there, values)).toBe(0);
    expect(await answersTo(there, values.slice(0, 1))).toEqual({ [reason]: 1 });
    expect(asked.takeCalls()).toEqual(['find']);
    expect(await answersTo(there, values)).toEqual({ [reason]: SIZE });
    expect(asked.takeCalls()).toEqual([]);
  });

  it('is seen by another node when the bound on staleness is over, and nobody has told it', async () => {
    const { here, there, root, values, clock } = await twoNodes();
    await here.revoke('acme', root.id);

    clock.advance((MAX_STALE_MS - 1) / 1000);
    expect(acceptedFromMemory(there, values)).toBe(SIZE);
    clock.advance(0.001);

    expect(await answersTo(there, values)).toEqual({ ancestor_revoked: SIZE });
  });

  it('would be missed by a node that knows no ancestors (the control)', async () => {
    const { here, there, root, values, tell } = await twoNodes(forgettingAncestors);
    await here.revoke('acme', root.id);

    tell(root.id);

    expect(await answersTo(there, values)).toEqual({ accepted: SIZE });
  });
});
