import { drawName, dropAll, driverOf as packageOf, type ScratchPlace } from '../shared/scratch.ts';
import { driverOf, type RedisClient } from './client.ts';
import { type Connection, type Driver, type RedisCommand, withDriver } from './driver.ts';

/** A prefix of keys that is not used elsewhere. */
export interface ScratchKeys extends ScratchPlace {
  /** A new key prefix below it, after a look whether the server still answers. */
  nextPrefix(): Promise<string>;
}

const SCANNED = 1000;

/**
 * Claims a prefix of keys that nobody has.
 *
 * @throws {TokenError} `store_unavailable`
 */
export async function scratchKeys(client: RedisClient): Promise<ScratchKeys> {
  const driver = driverOf(client);
  const engine = await engineOf(driver);
  const name = await drawName(async (drawn) => {
    const claim = claimOf(drawn);
    const send = () => driver.send(['set', claim, '1', 'NX'], claim);
    return String(await withDriver(driver, send)) === 'OK';
  });
  let count = 0;
  return {
    name,
    engine,
    driver: packageOf(client, 'call' in client ? 'ioredis' : 'redis'),
    async nextPrefix() {
      await withDriver(driver, () => driver.get(claimOf(name)));
      count += 1;
      return `${name}_${count}`;
    },
    drop: () =>
      dropAll([`${name}_*`], (pattern) => withDriver(driver, () => unlink(driver, pattern))),
  };
}

/** The key that shows that a prefix is taken. */
function claimOf(name: string): string {
  return `${name}_claim`;
}

/** Removes the keys of a pattern from each server. One by one, because a command may name keys of one slot only. */
async function unlink(driver: Driver, pattern: string): Promise<void> {
  for (const connecting of driver.primaries()) {
    const connection = await connecting;
    let cursor = '0';
    do {
      const [next, keys] = await scan(connection, cursor, pattern);
      cursor = String(next);
      const commands = keys.map((key): RedisCommand => ['unlink', String(key)]);
      const answers = keys.length === 0 ? [] : await connection.sendAll(commands);
      for (const answer of answers) if (answer instanceof Error) throw answer;
    } while (cursor !== '0');
  }
}

async function scan(connection: Connection, cursor: string, pattern: string) {
  const command = ['scan', cursor, 'MATCH', pattern, 'COUNT', String(SCANNED)] as const;
  return (await connection.send(command)) as readonly [unknown, readonly unknown[]];
}

async function engineOf(driver: Driver): Promise<string> {
  // The user may have no right to ask.
  const ask = () => driver.send(['info', 'server']).catch(() => '');
  const info = String(await withDriver(driver, ask));
  const [, valkey] = /^valkey_version:([\w.-]+)/m.exec(info) ?? [];
  const [, version = valkey] = /^redis_version:([\w.-]+)/m.exec(info) ?? [];
  const product = valkey === undefined ? 'Redis' : 'Valkey';
  const cluster = driver.isCluster ? ' Cluster' : '';
  return `${product}${cluster} ${valkey ?? version ?? ''}`.trim();
}
