import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { TokenStore } from '../../src/ports/token-store.ts';
import { TokenService } from '../../src/service.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { manualClock } from '../../src/testing/index.ts';
import type { TokenId } from '../../src/token/record.ts';
import { K1, RecordingStore } from '../support.ts';
import { acceptedFromMemory, answersTo, newFamily } from './large-family.ts';
import { forgettingAncestors } from './lineage-schedules.ts';

/** Set `DESCENDANTS=10000` to test the promised number. */
const SIZE = Number(process.env['DESCENDANTS'] ?? 1000);
const MAX_STALE_MS = 60_000;

/** A node that derives the tokens, and another one that has all of them in its cache. */
async function twoNodes(storeOfTheOther = (store: TokenStore) => store) {
  const clock = manualClock();
  const store = new MemoryTokenStore();
  const quotas = { derivedPerRoot: SIZE };
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
  // The node subscribes to hints in this turn.
  await turn();
  expect(await answersTo(there, family.values)).toEqual({ accepted: SIZE });
  expect(acceptedFromMemory(there, family.values)).toBe(SIZE);
  asked.takeCalls();
  const sendHint = (id: TokenId) => listener([id]);
  return { here, there, ...family, clock, asked, sendHint };
}

describe(`a token with ${SIZE} descendants`, () => {
  it.each([
    ['revoked', 'ancestor_revoked'],
    ['suspended', 'ancestor_suspended'],
    ['narrowed', 'ancestor_insufficient'],
  ])(
    'ends them all on another node with one read, once it is %s and a hint arrives',
    async (how, reason) => {
      const { here, there, root, values, asked, sendHint } = await twoNodes();
      if (how === 'revoked') await here.revoke('acme', root.id);
      else if (how === 'suspended') await here.patch('acme', root.id, { suspended: true });
      else await here.patch('acme', root.id, { scopes: ['GET:shop.example/other'] });
      expect(acceptedFromMemory(there, values)).toBe(SIZE);

      sendHint(root.id);

      expect(acceptedFromMemory(there, values)).toBe(0);
      expect(await answersTo(there, values.slice(0, 1))).toEqual({ [reason]: 1 });
      expect(asked.takeCalls()).toEqual(['find']);
      expect(await answersTo(there, values)).toEqual({ [reason]: SIZE });
      expect(asked.takeCalls()).toEqual([]);
    },
  );

  it('ends them all on another node within maxStaleMs if no hint arrives', async () => {
    const { here, there, root, values, clock } = await twoNodes();
    await here.revoke('acme', root.id);

    clock.advance((MAX_STALE_MS - 1) / 1000);
    expect(acceptedFromMemory(there, values)).toBe(SIZE);
    clock.advance(0.001);

    expect(await answersTo(there, values)).toEqual({ ancestor_revoked: SIZE });
  });

  it('would leave them valid on a node that ignores ancestors (the control)', async () => {
    const { here, there, root, values, sendHint } = await twoNodes(forgettingAncestors);
    await here.revoke('acme', root.id);

    sendHint(root.id);

    expect(await answersTo(there, values)).toEqual({ accepted: SIZE });
  });
});
