// How much the Redis store adds to the bare drivers, as ratios in one run: `node test/bench/redis.ts`,
// on servers of its own (TOKENS=1000000 for the long one). Times are medians of rounds that take
// turns.
import { Cluster as IoredisCluster, Redis } from 'ioredis';
import { createClient } from 'redis';
import type { Position, TokenStore } from '../../src/store.ts';
import { encodeRecord, KeySpace, nameOf, placeOf } from '../../src/stores/redis/layout.ts';
import { RedisTokenStore } from '../../src/stores/redis.ts';
import type { TokenId, TokenRecord } from '../../src/token.ts';
import { startCluster, startServer } from '../servers.ts';

const TOKENS = Number(process.env['TOKENS'] ?? 100_000);
const ROUNDS = 41;
const ROUND_MS = 60;
const WARM_MS = 500;
const PAGE = 50;
const IN_FLIGHT = 32;
const SCOPES = ['GET:shop.example/orders', 'POST:shop.example/orders'];
const LONG_AGO = new Date('2020-01-01T00:00:00Z');
const START = Date.now();

type Run = () => Promise<unknown>;

/** Median microseconds of each, in rounds that take turns. */
async function measure(runs: Readonly<Record<string, Run>>): Promise<Record<string, number>> {
  const plans: { name: string; run: Run; count: number; times: number[] }[] = [];
  for (const [name, run] of Object.entries(runs)) {
    plans.push({ name, run, count: await calibrate(run), times: [] });
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const { run, count, times } of plans) times.push((await timeOf(run, count)) / count);
  }
  return Object.fromEntries(plans.map(({ name, times }) => [name, median(times)]));
}

async function calibrate(run: Run): Promise<number> {
  let count = 0;
  for (const end = performance.now() + WARM_MS; performance.now() < end; count++) await run();
  return Math.max(1, Math.round((count * ROUND_MS) / WARM_MS));
}

async function timeOf(run: Run, count: number): Promise<number> {
  const start = performance.now();
  for (let i = 0; i < count; i++) await run();
  return (performance.now() - start) * 1000;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number;
}

/** The first is what the others are compared with. */
async function compare(title: string, runs: Readonly<Record<string, Run>>): Promise<void> {
  const times = await measure(runs);
  const [base = 1] = Object.values(times);
  console.log(`\n${title}\n\n| | time | ratio |\n| --- | --- | --- |`);
  for (const [name, time] of Object.entries(times)) {
    console.log(`| ${name} | ${time.toFixed(0)} µs | ${(time / base).toFixed(2)} |`);
  }
}

/** A run of so many at once, each starting the next when it is done. */
function inFlight(run: Run): Run {
  return () => Promise.all(Array.from({ length: IN_FLIGHT }, run));
}

function idOf(account: string, number: number): TokenId {
  return `${account}${String(number).padStart(22 - account.length, '0')}` as TokenId;
}

/** Numbers below a bound that jump about, the same in each run. */
function jumping(bound: number): () => number {
  let step = 0;
  return () => {
    step += 1;
    return (step * 7919) % bound;
  };
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
    .zadd(`bare:${record.account}`, 0, placeOf(record))
    .exec();
}

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

  for (const [name, get, client] of [
    ['ioredis', (key: string) => ioredis.get(key), ioredis],
    ['ioredis with enableAutoPipelining', (key: string) => gathering.get(key), gathering],
    ['node-redis', (key: string) => nodeRedis.get(key), nodeRedis],
  ] as const) {
    const own = new RedisTokenStore(client);
    await compare(`${IN_FLIGHT} point reads at once, ${name}`, {
      'GET of the driver': inFlight(() => get(keys.record(anyId()))),
      'store.find of one': inFlight(() => own.find([anyId()])),
      'store.find of all': () => own.find(Array.from({ length: IN_FLIGHT }, anyId)),
    });
  }
  await compare('A point read, one at a time, ioredis', {
    'GET of the driver': () => ioredis.get(keys.record(anyId())),
    'store.find': () => store.find([anyId()]),
  });

  let inserted = 0;
  const newRecord = () => recordOf('new', inserted++);
  await compare(`${IN_FLIGHT} inserts at once, ioredis`, {
    'SET NX and ZADD, pipelined': inFlight(() => bareInsert(ioredis, newRecord())),
    'store.insert': inFlight(() => store.insert(newRecord())),
  });
  await compare('An insert, one at a time, ioredis', {
    'SET NX and ZADD, pipelined': () => bareInsert(ioredis, newRecord()),
    'store.insert': () => store.insert(newRecord()),
  });

  const liveAt = LONG_AGO;
  const page = (account: string, after?: Position) =>
    store.page({ account, limit: PAGE, liveAt, ...(after && { after }) });
  const anyPlace = () => {
    const number = next();
    return { createdAt: new Date(START + number), id: idOf('big', number) };
  };
  await compare(`A page of ${PAGE}`, {
    'the first of 1 000': () => page('small'),
    [`the first of ${TOKENS}`]: () => page('big'),
    [`anywhere in ${TOKENS}`]: () => page('big', anyPlace()),
  });
  void nameOf;
} finally {
  ioredis.disconnect();
  gathering.disconnect();
  nodeRedis.destroy();
  await server.stop();
}
void IoredisCluster;
void startCluster;
