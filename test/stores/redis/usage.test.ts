import { Cluster, type Redis } from 'ioredis';
import { afterAll, describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import type { UsageDelta, UsageStore } from '../../../src/ports/usage-store.ts';
import type { RedisClient } from '../../../src/stores/redis/index.ts';
import { KeySpace } from '../../../src/stores/redis/layout.ts';
import { manualClock } from '../../../src/testing/index.ts';
import type { TokenId } from '../../../src/token/record.ts';
import { isInstalled, type Server, startCluster } from '../../servers.ts';
import { codeOf, OTHER_SCOPE, refusalOf, SCOPE, setUp } from '../../support.ts';
import { newRecord } from '../support.ts';
import {
  CLIENTS,
  connectionsOf,
  fill,
  ioredis,
  keysIn,
  newPrefix,
  nodesOf,
  openOver,
  ownPair,
  ownServer,
  removeKeys,
  SHARED_CLIENTS,
  WITHIN,
} from './support.ts';

const { redis: loneUrl, redisCluster: clusterUrl } = inject('servers');
const START = Date.parse('2100-01-01T00:00:00.000Z');
const LONG_AGO = Date.parse('2001-01-01T00:00:00.000Z');

function openUsage(client: RedisClient, keyPrefix = newPrefix()): Required<UsageStore> {
  return openOver(client, { keyPrefix }).usage;
}

afterAll(removeKeys);

function idAt(index: number): TokenId {
  return `n${index}`.padEnd(22, 'x') as TokenId;
}

const ONE = idAt(1);
const TWO = idAt(2);

function use(id: TokenId, uses = 1, scope = SCOPE, ms = 0): UsageDelta {
  return { id, scope, uses, lastUsedAt: new Date(START + ms) };
}

function usesOf(count: number): UsageDelta[] {
  return Array.from({ length: count }, (_, index) => use(idAt(index)));
}

async function countOf(store: UsageStore, id = ONE): Promise<number> {
  const [usage] = await store.read([id]);
  return usage?.scopes.reduce((sum, { uses }) => sum + uses, 0) ?? 0;
}

describe.each(SHARED_CLIENTS)('Redis usage over $name', ({ isMissing, connect }) => {
  it.skipIf(isMissing)(
    'adds up the counts of several stores, and keeps the latest time',
    async () => {
      const keyPrefix = newPrefix();
      const stores = await Promise.all(
        Array.from({ length: 4 }, async () => openUsage(await connect(), keyPrefix)),
      );
      const adding = Array.from({ length: 200 }, (_, ms) =>
        stores[ms % 4]?.add([
          use(ONE, ms + 1, SCOPE, (ms * 71) % 200),
          use(TWO),
          { id: TWO, refusals: 2 },
        ]),
      );
      await Promise.all(adding);

      for (const store of stores) {
        expect(await store.read([ONE, TWO])).toEqual([
          {
            refusals: 0,
            scopes: [{ scope: SCOPE, uses: 20_100, lastUsedAt: new Date(START + 199) }],
          },
          { refusals: 400, scopes: [{ scope: SCOPE, uses: 200, lastUsedAt: new Date(START) }] },
        ]);
      }
    },
  );

  it.skipIf(isMissing)('adds counts to a token atomically', async () => {
    const store = openUsage(await connect());
    const others = usesOf(300).filter(({ id }) => id !== ONE);
    for (let round = 1; round <= 20; round += 1) {
      const adding = store.add([use(ONE), ...others, { id: ONE, refusals: 1 }]);
      const [usage] = await store.read([ONE]);
      expect(usage?.scopes[0]?.uses).toBe(usage?.refusals || undefined);
      await adding;
      expect(await store.read([ONE])).toMatchObject([{ refusals: round }]);
    }
  });

  it.skipIf(isMissing)('leaves tokens alone, whatever their accounts are named', async () => {
    const client = await connect();
    const store = openOver(client);
    const { usage } = store;
    // Past for the server, too, which decides what is purged.
    const start = new Date('2020-01-01T00:00:00.000Z');
    const { tokens, clock } = setUp({ store, clock: manualClock(start) });
    const one = await tokens.issue({ account: 'usage', scopes: [SCOPE] });
    const two = await tokens.issue({ account: `usage:${one.id}`, scopes: [SCOPE] });
    await usage.add([use(one.id), use(two.id, 2), { id: idAt(0), refusals: 1 }]);

    const { records } = await store.scan({ limit: 1000 });
    expect(records.map(({ id }) => id).sort()).toEqual([one.id, two.id].sort());
    await usage.forget([one.id]);
    expect((await tokens.list({ account: 'usage' })).tokens).toMatchObject([{ id: one.id }]);
    expect(await tokens.revokeAll(`usage:${one.id}`)).toBe(1);
    clock.advance(1);
    expect(await tokens.purge({ before: clock.now() })).toBe(1);
    expect([await countOf(usage, one.id), await countOf(usage, two.id)]).toEqual([0, 2]);
    await tokens.close();
  });

  it.skipIf(isMissing)(
    'names the counted tokens if its key prefix looks like a part of its keys',
    async () => {
      const usage = openUsage(await connect(), `${newPrefix()}:usage:x`);
      await usage.add([use(ONE)]);

      const found: string[] = [];
      for (let after: string | undefined; ; ) {
        const { ids, next } = await usage.scan({
          limit: 1000,
          ...(after !== undefined && { after }),
        });
        found.push(...ids);
        after = next;
        if (after === undefined) break;
      }
      expect(found).toEqual([ONE]);
    },
  );

  it.skipIf(isMissing)('counts since the first count of any store', async () => {
    const keyPrefix = newPrefix();
    const [first, second] = [
      openUsage(await connect(), keyPrefix),
      openUsage(await connect(), keyPrefix),
    ];
    await first.add([use(ONE)]);
    const since = await first.since();
    await second.add([use(ONE)]);

    expect(Math.abs(since.getTime() - Date.now())).toBeLessThan(60_000);
    expect(await second.since()).toEqual(since);
    await first.forget([ONE]);
    expect(await first.since()).toEqual(since);
  });

  it.skipIf(isMissing)('names the tokens that were counted if some could not be', async () => {
    const client = await connect();
    const keyPrefix = newPrefix();
    const store = openUsage(client, keyPrefix);
    await poison(client, keyPrefix, ONE);
    const { code, details } = await refusalOf(store.add(usesOf(300)));
    const added = details?.['added'] as readonly TokenId[];

    expect(code).toBe('store_corrupt');
    expect(added.length).toBeGreaterThanOrEqual(200);
    expect(added).not.toContain(ONE);
    await store.forget([ONE]);
    const usages = await store.read(usesOf(300).map(({ id }) => id));
    const counted = usages.flatMap((usage, index) => (usage === undefined ? [] : idAt(index)));
    expect(counted.sort()).toEqual([...added].sort());
  });

  it.skipIf(isMissing)('counts each use once if a part of a write fails', async () => {
    const client = await connect();
    const keyPrefix = newPrefix();
    const usage = openUsage(client, keyPrefix);
    const { tokens } = setUp({ usage: { store: usage, flushMs: 100 } });
    const issued = await Promise.all(
      Array.from({ length: 150 }, () => tokens.issue({ account: 'acme', scopes: [SCOPE] })),
    );
    const [spoiled = { id: ONE }, ...others] = issued;
    await poison(client, keyPrefix, spoiled.id);
    for (const { value } of issued) await tokens.verify(value, { scope: SCOPE });
    await vi.waitFor(async () => {
      const usages = await usage.read(others.map(({ id }) => id));
      expect(usages.filter((counted) => counted !== undefined).length).toBeGreaterThan(0);
    }, WITHIN);
    await usage.forget([spoiled.id]);
    await vi.waitFor(async () => expect(await countOf(usage, spoiled.id)).toBe(1), WITHIN);
    await tokens.close();

    const counts = await Promise.all(issued.map(({ id }) => countOf(usage, id)));
    expect(counts).toEqual(issued.map(() => 1));
  });
});

/** Writes a value of another type to the key of a token. */
async function poison(client: RedisClient, keyPrefix: string, id: TokenId): Promise<void> {
  const key = new KeySpace(keyPrefix).usage(id);
  const command = ['set', key, 'of somebody else'];
  if ('call' in client) await client.call('set', command.slice(1));
  else if ('slots' in client) await client.sendCommand(key, false, command);
  else await client.sendCommand(command);
}

describe.skipIf(loneUrl === undefined)('keys of usage of a Redis store', () => {
  it('differ from those of tokens and leases', async () => {
    const client = ioredis();
    const keyPrefix = newPrefix();
    const store = openOver(client, { keyPrefix });
    await store.insert(newRecord('one'));
    await store.usage.add([use(ONE), { id: TWO, refusals: 1 }]);
    await store.leases.take([{ key: 'k', window: 0, limit: 1, want: 1, until: new Date(START) }]);
    const kinds = (await keysIn(client, keyPrefix)).map(
      (key) => /^:\{\d+\}:([a-z-]+)/.exec(key.slice(keyPrefix.length))?.[1],
    );

    expect([...new Set(kinds)].sort()).toEqual([
      'account',
      'counted',
      'ends',
      'lease',
      'token',
      'usage',
      'usage-start',
    ]);
  });

  it('differ by key prefix', async () => {
    const client = ioredis();
    const [one, two] = [openUsage(client), openUsage(client)];
    await one.add([use(ONE)]);

    expect([await countOf(one), await countOf(two)]).toEqual([1, 0]);
  });

  it('have one field for each scope, and one with an empty name for refusals', async () => {
    const client = ioredis();
    const keyPrefix = newPrefix();
    await openUsage(client, keyPrefix).add([use(ONE, 3, SCOPE, 5), { id: ONE, refusals: 2 }]);

    const key = new KeySpace(keyPrefix).usage(ONE);
    expect(await client.hgetall(key)).toEqual({ [SCOPE]: `3 ${START + 5}`, '': '2 0' });
    expect(await client.ttl(key)).toBe(-1);
  });

  it.each(['garbage', '1', 'x 1', '-1 0', '1 2 3'])(
    'with a malformed count make calls reject with store_corrupt: %s',
    async (count) => {
      const client = ioredis();
      const keyPrefix = newPrefix();
      const store = openUsage(client, keyPrefix);
      await client.hset(new KeySpace(keyPrefix).usage(ONE), SCOPE, count);

      expect(await codeOf(store.read([ONE]))).toBe('store_corrupt');
      // TWO is not written either: otherwise each retry would count it again.
      expect(await codeOf(store.add([use(TWO), use(ONE)]))).toBe('store_corrupt');
      expect(await countOf(store, TWO)).toBe(0);
      await store.add([use(ONE, 1, OTHER_SCOPE), use(TWO)]);
      await store.forget([ONE]);
      expect(await store.read([ONE])).toEqual([undefined]);
    },
  );
});

/** Counts the round trips: how often a client sends something after an answer. */
function countRounds<Client extends object>(
  client: Client,
): {
  client: Client;
  takeRounds(): number;
} {
  let rounds = 0;
  let hasAnswered = true;
  const track = <Answer>(answer: Promise<Answer>): Promise<Answer> => {
    if (hasAnswered) rounds += 1;
    hasAnswered = false;
    const note = () => {
      hasAnswered = true;
    };
    answer.then(note, note);
    return answer;
  };
  const takeRounds = () => {
    const taken = rounds;
    rounds = 0;
    hasAnswered = true;
    return taken;
  };
  return { client: tracked(client, track), takeRounds };
}

type Track = <Answer>(answer: Promise<Answer>) => Promise<Answer>;

/** A client of ioredis, with the clients and pipelines that it returns. */
function tracked<Client extends object>(client: Client, track: Track): Client {
  const nodes = new WeakMap<object, object>();
  const nodeOf = (node: object) => {
    const known = nodes.get(node) ?? tracked(node, track);
    nodes.set(node, known);
    return known;
  };
  return new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      const call = (...args: unknown[]) => Reflect.apply(value, target, args);
      if (name === 'call') return (...args: unknown[]) => track(call(...args));
      if (name === 'duplicate') return (...args: unknown[]) => tracked(call(...args), track);
      if (name === 'nodes') return (...args: unknown[]) => call(...args).map(nodeOf);
      if (name === 'pipeline') {
        return (...args: unknown[]) => ({ exec: () => track(call(...args).exec()) });
      }
      return call;
    },
  });
}

describe.skipIf(loneUrl === undefined || clusterUrl === undefined)(
  'round trips of usage of a Redis store',
  () => {
    const LARGE = usesOf(1000);
    const IDS = LARGE.map(({ id }) => id);

    it.each<[string, () => Redis | Cluster]>([
      ['a server', () => ioredis()],
      ['a cluster', () => new Cluster(nodesOf(clusterUrl))],
    ])('to %s are one for each call, however many tokens', async (_, connect) => {
      const plain = connect();
      const { client, takeRounds } = countRounds(plain);
      const store = openUsage(client);
      // After this, the servers know the scripts, and the connections are open.
      await store.add(LARGE);
      await store.read(IDS);
      await store.since();
      takeRounds();

      const roundsOf = async (call: Promise<unknown>) => {
        await call;
        return takeRounds();
      };
      expect(await roundsOf(store.add(LARGE))).toBe(1);
      expect(await roundsOf(store.read(IDS))).toBe(1);
      expect(await roundsOf(store.since())).toBe(1);
      expect(await roundsOf(store.forget(IDS))).toBe(1);
      expect(await roundsOf(store.read(IDS).then(() => store.read(IDS)))).toBe(2);
      plain.disconnect();
    });
  },
);

it.skipIf(loneUrl === undefined).each([Number.NaN, 0.5, 2 ** 53])(
  'usage of a Redis store adds nothing of a batch with a count of %s',
  async (refusals) => {
    const store = openUsage(ioredis());

    expect(await codeOf(store.add([use(ONE), { id: TWO, refusals }]))).toBe('invalid_request');
    expect(await store.read([ONE, TWO])).toEqual([undefined, undefined]);
  },
);

describe.skipIf(!isInstalled('redis')).each(CLIENTS)('Redis usage, over %s', (_, connectTo) => {
  it('rejects and changes nothing while the server has no free memory', async () => {
    const { url } = await ownServer();
    const store = openUsage(await connectTo(url));
    await store.add([use(ONE), use(TWO)]);
    const admin = ioredis(url);
    await fill(admin);

    expect(await codeOf(store.add([use(ONE), { id: TWO, refusals: 1 }]))).toBe('store_unavailable');
    expect(await codeOf(store.add(usesOf(300)))).toBe('store_unavailable');
    expect([await countOf(store), await countOf(store, idAt(200))]).toEqual([1, 0]);
    await store.forget([ONE]);
    expect(await store.read([ONE])).toEqual([undefined]);
    await admin.config('SET', 'maxmemory', 0);
    await store.add([use(TWO)]);
    expect(await countOf(store, TWO)).toBe(2);
  });

  it('rejects while the server is down, and works again after a restart', async () => {
    const server = await ownServer();
    const store = openUsage(await connectTo(server.url));
    await store.add([use(ONE)]);
    await server.signal('SIGKILL');
    const calls = () => [store.add([use(ONE)]), store.read([ONE]), store.forget([TWO])];
    await vi.waitFor(async () => {
      const codes = await Promise.all(calls().map(codeOf));
      expect(codes).toEqual(codes.map(() => 'store_unavailable'));
    }, WITHIN);

    await server.restart();
    await vi.waitFor(() => store.add([use(TWO)]), WITHIN);
    // Reads have another connection.
    await vi.waitFor(() => store.read([ONE]), WITHIN);
    expect([await countOf(store), await countOf(store, TWO)]).toEqual([1, 1]);
  });

  it('refuses to add on a replica', async () => {
    const { replica } = await ownPair();
    const store = openUsage(await connectTo(replica.url));
    const { code, details } = await refusalOf(store.add([use(ONE)]));

    expect(code).toBe('store_unavailable');
    expect(details).toMatchObject({ reason: 'standby' });
  });

  it('counts a batch at most twice if the server hangs, however often it is retried', async () => {
    const server = await ownServer();
    const client = await connectTo(server.url);
    const store = openUsage(client);
    await store.add([use(TWO)]);
    await server.signal('SIGSTOP');
    for (let attempt = 0; attempt < 4; attempt += 1) {
      expect(await codeOf(store.add([use(ONE)]))).toBe('store_unavailable');
    }
    await server.signal('SIGCONT');
    await vi.waitFor(() => store.add([use(ONE)]), WITHIN);

    expect([1, 2]).toContain(await countOf(store));
  });

  it('ends its connection and that of the leases with the store, but not that of the host', async () => {
    const { url } = await ownServer();
    const admin = ioredis(url);
    const client = await connectTo(url);
    const store = openOver(client);
    expect(await store.usage.read([ONE])).toEqual([undefined]);
    const before = await connectionsOf(admin);
    const want = { key: 'k', window: 0, limit: 2, want: 1, until: new Date(START) };
    await store.usage.add([use(ONE)]);
    expect(await store.leases.take([want])).toEqual([1]);
    expect(await connectionsOf(admin)).toBe(before + 2);
    await store.close();
    await store.close();

    await vi.waitFor(async () => expect(await connectionsOf(admin)).toBe(before), WITHIN);
    expect(await codeOf(store.usage.add([use(ONE)]))).toBe('store_unavailable');
    expect(await codeOf(store.leases.take([want]))).toBe('store_unavailable');
    expect(await countOf(openUsage(client))).toBe(0);
  });

  it('returns a later since after the server lost all keys', async () => {
    const { url } = await ownServer();
    const store = openUsage(await connectTo(url), 'lost');
    await store.add([use(ONE)]);
    const admin = ioredis(url);
    await admin.set(new KeySpace('lost').usageStart(), LONG_AGO);
    expect(await store.since()).toEqual(new Date(LONG_AGO));
    await admin.flushall();

    expect((await store.since()).getTime()).toBeGreaterThan(LONG_AGO);
  });
});

describe.skipIf(!isInstalled('redis')).each(SHARED_CLIENTS.slice(2))(
  'an outage of one server of $name',
  ({ connect }) => {
    it('makes no other server count twice, however often a write is retried', async () => {
      const cluster = await startCluster({ settings: { 'cluster-require-full-coverage': 'no' } });
      onTestFinished(() => cluster.stop());
      const store = openUsage(await connect(cluster.url));
      let waiting = usesOf(300);
      const ids = waiting.map(({ id }) => id);
      await store.add([{ id: idAt(999), refusals: 1 }]);
      const [first, , , ...replicas] = cluster.nodes;
      const lost = [...replicas, first as Server];
      for (const server of lost) await server.signal('SIGKILL');
      for (let attempt = 0; attempt < 3; attempt += 1) {
        const { code, details } = await refusalOf(store.add(waiting));
        expect(code).toBe('store_unavailable');
        const added = new Set(details?.['added'] as readonly TokenId[] | undefined);
        waiting = waiting.filter(({ id }) => !added.has(id));
      }
      expect(waiting.length).toBeGreaterThan(0);
      expect(waiting.length).toBeLessThan(200);

      for (const server of lost) await server.restart();
      await vi.waitFor(() => store.add(waiting), { timeout: 25_000, interval: 100 });
      const usages = await vi.waitFor(() => store.read(ids), WITHIN);
      expect(usages.map((usage) => usage?.scopes[0]?.uses)).toEqual(ids.map(() => 1));
    }, 90_000);
  },
);

it.skipIf(!isInstalled('redis'))(
  'a hanging Redis server counts every retry over the connection of the host (the control)',
  async () => {
    const server = await ownServer();
    const client = ioredis(server.url);
    await client.incr('uses');
    await server.signal('SIGSTOP');
    const attempts = Array.from({ length: 4 }, () => client.incr('uses'));
    await server.signal('SIGCONT');
    await Promise.all(attempts);

    expect(await client.get('uses')).toBe('5');
  },
);
