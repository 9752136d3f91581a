import { TokenError } from '../../errors.ts';
import { hasMethods } from '../../ports/has-methods.ts';
import type { Driver } from './driver.ts';
import {
  type IoredisClient,
  type IoredisCluster,
  IoredisClusterDriver,
  IoredisServer,
} from './ioredis.ts';
import {
  type NodeRedisClient,
  type NodeRedisCluster,
  NodeRedisClusterDriver,
  NodeRedisServer,
} from './node-redis.ts';

/**
 * A client of one server or of a cluster, of ioredis or node-redis. By default they are slow to notice a
 * dead connection and to reconnect, so set these options. In a cluster, each connection has to notice by
 * itself that it is dead: keep `socketTimeout` short, but above the store's `waitMs`.
 *
 * In node-redis, a `socketTimeout` counts the time without traffic, so set a `pingInterval` too. A command
 * counts as traffic even if no answer comes. So the store sends nothing on a connection that has been silent
 * for half a second, and the timeout can expire. If you use the client for more, give the store a client of
 * its own.
 *
 * @example
 * const client: RedisClient = new Redis('redis://db.internal', {
 *   maxRetriesPerRequest: 1,
 *   socketTimeout: 1000,
 *   retryStrategy: (attempt) => Math.min(attempt * 50, 500),
 * });
 * @example
 * const client: RedisClient = new Cluster([{ host: 'db1.internal' }, { host: 'db2.internal' }], {
 *   redisOptions: { connectTimeout: 1000, maxRetriesPerRequest: 1, socketTimeout: 600 },
 *   slotsRefreshTimeout: 500,
 *   clusterRetryStrategy: (attempt) => Math.min(attempt * 50, 500),
 * });
 * @example
 * const client: RedisClient = createClient({
 *   url: 'redis://db.internal',
 *   pingInterval: 500,
 *   socket: {
 *     socketTimeout: 1000,
 *     reconnectStrategy: (attempt) => Math.min(attempt * 50, 500),
 *   },
 * });
 * @example
 * const client: RedisClient = createCluster({
 *   rootNodes: [{ url: 'redis://db1.internal' }, { url: 'redis://db2.internal' }],
 *   defaults: {
 *     pingInterval: 300,
 *     socket: { socketTimeout: 600, reconnectStrategy: (attempt) => Math.min(attempt * 50, 500) },
 *   },
 *   topologyRefreshOnReconnectionAttemptStrategy: 500,
 * });
 */
export type RedisClient = IoredisClient | IoredisCluster | NodeRedisClient | NodeRedisCluster;

/** @throws {TokenError} `invalid_options` for anything but these four, also of earlier versions of redis */
export function driverOf(client: RedisClient): Driver {
  if (hasMethods<IoredisCluster>(client, 'call', 'nodes')) return new IoredisClusterDriver(client);
  if (hasMethods<IoredisClient>(client, 'call', 'pipeline')) return new IoredisServer(client);
  if (isNodeRedis<NodeRedisCluster>(client, 'nodeClient')) {
    return new NodeRedisClusterDriver(client);
  }
  if (isNodeRedis<NodeRedisClient>(client, 'subscribe')) {
    return new NodeRedisServer(client);
  }
  throw new TokenError(
    'invalid_options',
    'client must be a Redis or Cluster of ioredis, what createClient() of redis 5 or later makes, or createCluster() of redis 6 or later',
  );
}

/** Whether it says when it is ready, as no cluster of redis 5 does, and can be closed, as no client of redis 4. */
function isNodeRedis<Client extends NodeRedisClient | NodeRedisCluster>(
  client: RedisClient,
  method: keyof Client & string,
): client is Client & RedisClient {
  const isLater = hasMethods<NodeRedisClient>(client, 'sendCommand', 'duplicate', 'destroy');
  const isSentinel = hasMethods<{ acquire: unknown }>(client, 'acquire');
  return isLater && hasMethods<Client>(client, method) && 'isReady' in client && !isSentinel;
}
