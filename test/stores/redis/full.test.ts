import { describe, expect, it } from 'vitest';
import type { RedisClient } from '../../../src/stores/redis/index.ts';
import { REVOKE } from '../../../src/stores/redis/scripts.ts';
import { manualClock } from '../../../src/testing/index.ts';
import { isInstalled } from '../../servers.ts';
import { codeOf, OTHER_SCOPE, SCOPE, setUp } from '../../support.ts';
import { CLIENTS, fill, intercepted, ioredis, openPlain, ownServer } from './support.ts';

/** Two tokens of ada and one of grace, on a server that then runs out of memory. */
async function setUpFull(connectTo: (url: string) => Promise<RedisClient>) {
  const { url } = await ownServer();
  // Past for the server, too, which decides what is purged.
  const start = manualClock(new Date('2020-01-01T00:00:00.000Z'));
  const { tokens, clock } = setUp({ store: openPlain(await connectTo(url)), clock: start });
  const issue = (account: string) => tokens.issue({ account, scopes: [SCOPE, OTHER_SCOPE] });
  const [one, two, other] = [await issue('ada'), await issue('ada'), await issue('grace')];
  await fill(ioredis(url));
  const accepts = async (value: string) => (await tokens.verify(value, { scope: SCOPE })).ok;
  return { tokens, clock, issue, accepts, one, two, other };
}

describe.skipIf(!isInstalled('redis')).each(CLIENTS)(
  'a Redis server without free memory, over %s',
  (_, connectTo) => {
    it('refuses new tokens, but still revokes', async () => {
      const { tokens, issue, accepts, one, two, other } = await setUpFull(connectTo);

      expect(await codeOf(issue('ada'))).toBe('store_unavailable');
      expect(await tokens.revoke('ada', one.id)).toBe(true);
      expect([await accepts(one.value), await accepts(two.value)]).toEqual([false, true]);
      expect(await tokens.revokeAll('ada')).toBe(1);
      expect([await accepts(two.value), await accepts(other.value)]).toEqual([false, true]);
      expect((await tokens.list({ account: 'ada' })).tokens).toEqual([]);
    });

    it('adds no scopes, but still removes them', async () => {
      const { tokens, accepts, one } = await setUpFull(connectTo);
      const addScopes = [`GET:shop.example/${'x'.repeat(100)}`];

      expect(await codeOf(tokens.patch('ada', one.id, { addScopes }))).toBe('store_unavailable');
      await tokens.patch('ada', one.id, { removeScopes: [SCOPE] });
      expect(await accepts(one.value)).toBe(false);
      expect((await tokens.list({ account: 'ada' })).tokens).toHaveLength(2);
    });

    it('still purges', async () => {
      const { tokens, clock, one } = await setUpFull(connectTo);
      await tokens.revoke('ada', one.id);
      clock.advance(1);

      expect(await tokens.purge({ before: clock.now() })).toBe(1);
    });
  },
);

it.skipIf(!isInstalled('redis'))(
  'a full Redis server refuses a revocation whose script has no leading ZREM (the control)',
  async () => {
    const source = REVOKE.source.replace(/^redis\.call\('ZREM'.*\n/m, '');
    expect(source).not.toBe(REVOKE.source);
    const { tokens, accepts, one } = await setUpFull(async (url) => {
      const client = ioredis(url);
      return intercepted(client, (_, args, run) =>
        args[0] === REVOKE.sha ? client.call('eval', source, ...args.slice(1)) : run(args),
      );
    });

    expect(await codeOf(tokens.revoke('ada', one.id))).toBe('store_unavailable');
    expect(await accepts(one.value)).toBe(true);
  },
);
