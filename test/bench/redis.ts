// How much the Redis store adds to the bare drivers, as ratios in one run: `node test/bench/redis.ts`,
// on servers of its own (TOKENS=1000000 for the long one).
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';
import type { Position, TokenStore } from '../../src/ports/token-store.ts';
import { TokenService } from '../../src/service.ts';
import { type RedisClient, RedisTokenStore } from '../../src/stores/redis/index.ts';
import { entryOf, KeySpace } from '../../src/stores/redis/layout.ts';
import { encodeRecord } from '../../src/stores/redis/record-codec.ts';
import type { TokenId, TokenRecord } from '../../src/token/record.ts';
import { generateKey } from '../../src/values/keys.ts';
import { startCluster, startServer } from '../servers.ts';
import { byCallers, compareCosts, jumping, type Run } from './measure.ts';
import { needs } from './start.ts';

const TOKENS = Number(process.env['TOKENS'] ?? 100_000);
const PAGE = 50;
const IN_FLIGHT = 32;
const SCOPES = ['GET:shop.example/orders', 'POST:shop.example/orders'];
const LONG_AGO = new Date('2020-01-01T00:00:00Z');
const START = Date.now();

function atOnce(run: Run): Run {
  return () => Promise.all(Array.from({ length: IN_FLIGHT }, run));
}

function idOf(account: string, number: number): TokenId {
  return `${account}${String(number).padStart(22 - account.length, '0')}` as TokenId;
}

function recordOf(account: string, number: number): TokenRecord {
  return {
    id: idOf(account, number),
    account,
    prefix: 'acme',
    kid: 'k1',
    digest: new Uint8Array(32).fill(number),
    scopes: SCOPES,
    requested: SCOPES,
    createdAt: new Date(START + number),
    expiresAt: new Date(START + 1e10),
    version: 1,
    name: 'deploy',
  };
}

async function fill(store: TokenStore, account: string, count: number): Promise<void> {
  for (let number = 0; number < count; number += 500) {
    const size = Math.min(500, count - number);
    const records = Array.from({ length: size }, (_, index) => recordOf(account, number + index));
    await Promise.all(records.map((record) => store.insert(record)));
  }
}

const keys = new KeySpace('tokenwright');

/** What somebody would write by hand: the record and a place in the list of its account. */
function bareInsert(client: Redis, record: TokenRecord): Promise<unknown> {
  return client
    .pipeline()
    .set(keys.record(record.id), encodeRecord(record, 'stamp').join('stamp'), 'NX')
    .zadd(`bare:${record.account}`, 0, entryOf(record))
    .exec();
}

interface Candidate {
  readonly name: string;
  readonly client: RedisClient;
  get(key: string): Promise<unknown>;
}

async function compareReads({ name, client, get }: Candidate, anyId: () => TokenId): Promise<void> {
  const store = new RedisTokenStore(client);
  const anyIds = () => Array.from({ length: IN_FLIGHT }, anyId);
  await compareCosts(`${IN_FLIGHT} point reads at once, ${name}`, {
    'GET of the driver': atOnce(() => get(keys.record(anyId()))),
    'store.find of one': atOnce(() => store.find([anyId()])),
    'store.find of all': () => store.find(anyIds()),
  });
}

async function comparePages(store: TokenStore, next: () => number, place: string): Promise<void> {
  const page = (account: string, after?: Position) =>
    store.page({ account, limit: PAGE, liveAt: LONG_AGO, after });
  const anywhere = () => {
    const number = next();
    return { at: new Date(START + number), id: idOf('big', number) };
  };
  await compareCosts(`A page of ${PAGE}, ${place}`, {
    'the first of 1 000': () => page('small'),
    [`the first of ${TOKENS}`]: () => page('big'),
    [`anywhere in ${TOKENS}`]: () => page('big', anywhere()),
  });
}

async function onOneServer(): Promise<void> {
  const server = await startServer('redis', { settings: { appendfsync: 'everysec' } });
  const ioredis = new Redis(server.url);
  const gathering = new Redis(server.url, { enableAutoPipelining: true });
  const nodeRedis = await createClient({ url: server.url }).connect();
  try {
    const store = new RedisTokenStore(ioredis);
    await fill(store, 'small', 1000);
    await fill(store, 'big', TOKENS);
    const next = jumping(TOKENS);
    const anyId = () => idOf('big', next());
    const candidates: Candidate[] = [
      { name: 'ioredis', client: ioredis, get: (key) => ioredis.get(key) },
      {
        name: 'ioredis with enableAutoPipelining',
        client: gathering,
        get: (key) => gathering.get(key),
      },
      { name: 'node-redis', client: nodeRedis, get: (key) => nodeRedis.get(key) },
    ];
    for (const candidate of candidates) await compareReads(candidate, anyId);
    await compareCosts('A point read, one at a time, ioredis', {
      'GET of the driver': () => ioredis.get(keys.record(anyId())),
      'store.find': () => store.find([anyId()]),
    });
    const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
    const issued = await Promise.all(
      Array.from({ length: 1000 }, () => tokens.issue({ account: 'verify', scopes: SCOPES })),
    );
    const nextIssued = jumping(issued.length);
    const anyIssued = () => issued[nextIssued()] as (typeof issued)[number];
    const get = () => ioredis.get(keys.record(anyIssued().id));
    const verify = () => tokens.verify(anyIssued().value, { scope: 'GET:shop.example/orders' });
    await compareCosts('Verify, one at a time, ioredis', {
      'GET of the driver': get,
      'service.verify': verify,
    });
    await compareCosts('Verify, 32 callers with one after the other (20 of them), ioredis', {
      'GET of the driver': byCallers(IN_FLIGHT, 20, get),
      'service.verify': byCallers(IN_FLIGHT, 20, verify),
    });
    await comparePages(store, next, 'ioredis');

    let inserted = 0;
    const newRecord = () => recordOf('new', inserted++);
    await compareCosts(`${IN_FLIGHT} inserts at once, ioredis`, {
      'SET NX and ZADD, pipelined': atOnce(() => bareInsert(ioredis, newRecord())),
      'store.insert': atOnce(() => store.insert(newRecord())),
    });
    await compareCosts('An insert, one at a time, ioredis', {
      'SET NX and ZADD, pipelined': () => bareInsert(ioredis, newRecord()),
      'store.insert': () => store.insert(newRecord()),
    });
  } finally {
    ioredis.disconnect();
    gathering.disconnect();
    nodeRedis.destroy();
    await server.stop();
  }
}

async function inCluster(): Promise<void> {
  const cluster = await startCluster({ settings: { appendfsync: 'everysec' } });
  const rootNodes = cluster.nodes.map(({ port }) => ({ socket: { host: '127.0.0.1', port } }));
  const ioredis = new Cluster(rootNodes.map(({ socket }) => socket));
  const nodeRedis = await createCluster({ rootNodes }).connect();
  try {
    const store = new RedisTokenStore(ioredis, { replicas: 0 });
    await fill(store, 'small', 1000);
    await fill(store, 'big', TOKENS);
    const next = jumping(TOKENS);
    const anyId = () => idOf('big', next());
    const candidates: Candidate[] = [
      { name: 'a cluster by ioredis', client: ioredis, get: (key) => ioredis.get(key) },
      { name: 'a cluster by node-redis', client: nodeRedis, get: (key) => nodeRedis.get(key) },
    ];
    for (const candidate of candidates) await compareReads(candidate, anyId);
    await comparePages(store, next, 'a cluster by ioredis');

    const confirming = new RedisTokenStore(ioredis, { replicas: 1 });
    let inserted = 0;
    await compareCosts(`${IN_FLIGHT} inserts at once, a cluster by ioredis`, {
      'as they are': atOnce(() => store.insert(recordOf('new', inserted++))),
      'confirmed by a replica': atOnce(() => confirming.insert(recordOf('new', inserted++))),
    });
    await confirming.close();
  } finally {
    ioredis.disconnect();
    nodeRedis.destroy();
    await cluster.stop();
  }
}

needs({ minutes: 4, gigabytes: 1, programs: ['Redis'] });
await onOneServer();
await inCluster();
