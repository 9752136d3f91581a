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
 * A client of one server or of a cluster, of ioredis or node-redis.
 *
 * @example
 * const client: RedisClient = new Redis('redis://db.internal');
 */
export type RedisClient = IoredisClient | IoredisCluster | NodeRedisClient | NodeRedisCluster;

/** @throws {TokenError} `invalid_options` for anything but these four */
export function driverOf(client: RedisClient): Driver {
  if (hasMethods<IoredisCluster>(client, 'call', 'nodes')) return new IoredisClusterDriver(client);
  if (hasMethods<IoredisClient>(client, 'call', 'pipeline')) return new IoredisServer(client);
  if (hasMethods<NodeRedisCluster>(client, 'sendCommand', 'nodeClient')) {
    return new NodeRedisClusterDriver(client);
  }
  if (hasMethods<NodeRedisClient>(client, 'sendCommand', 'duplicate')) {
    return new NodeRedisServer(client);
  }
  throw new TokenError(
    'invalid_options',
    'client must be a Redis or Cluster of ioredis, or what createClient() or createCluster() of redis makes',
  );
}
