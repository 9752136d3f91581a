import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { UsageError } from '../../src/cli/settings.ts';
import { storePlace } from '../../src/cli/stores.ts';
import { isTokenError } from '../../src/errors.ts';
import { newFolder } from './support.ts';

const { mariadb, redis, redisCluster } = inject('servers');

describe('storePlace', () => {
  it.each([
    ['postgres://ada:canary@db.example/acme', 'PostgreSQL at db.example/acme'],
    [
      'postgresql://ada:canary@db.example:6432/acme?sslmode=no',
      'PostgreSQL at db.example:6432/acme',
    ],
    ['mysql://ada:c:a@nary@10.0.0.1/acme', 'MySQL at 10.0.0.1/acme'],
    ['mariadb://ada:%2F%3F%23%25canary@[::1]:3307/acme', 'MariaDB at [::1]:3307/acme'],
    ['redis://db.example', 'Redis at db.example'],
    ['redis://:canary@db.example/', 'Redis at db.example'],
    ['rediss://ada:canary@db.example:6380/15', 'Redis at db.example:6380/15'],
    ['redis+cluster://ada:canary@a:1,[::1]:65535,c', 'Redis Cluster at a:1,[::1]:65535,c'],
  ])('knows %s by a name without user and password', (store, name) => {
    expect(place(store).name).toBe(name);
  });

  it.each([
    ['', 'must begin with one of postgres://'],
    ['postgres', 'must begin with'],
    ['postgres//x', 'must begin with'],
    ['postgres:/x', 'must begin with'],
    ['sqlite:', 'must begin with'],
    ['REDISS://ada:canary@db.example', 'must begin with'],
    ['mongodb://ada:canary@db.example/acme', 'must begin with'],
    [' postgres://ada:canary@db.example/acme', 'must begin with'],
    ['postgres://', 'names no host; it must be like postgres://user:password@host:5432/database'],
    ['postgres:///canary', 'names no host'],
    ['postgres://ada:canary@/acme', 'names no host'],
    ['postgres://ada:canary@:5432/acme', 'names a host that cannot be'],
    ['postgres://ada:canary@db.example:0/acme', 'names a host that cannot be'],
    ['postgres://ada:canary@db.example:65536/acme', 'names a host that cannot be'],
    ['postgres://ada:canarydb.example/acme', 'names a host that cannot be'],
    ['postgres://ada:canary@a,b/acme', 'names several hosts'],
    ['postgres://ada:canary@db.example', 'names no database'],
    ['mysql://ada:canary@db.example/', 'names no database; it must be like mysql://user:'],
    ['redis://ada:canary@db.example/acme', 'names a database that cannot be'],
    ['redis+cluster://ada:canary@a,b/0', 'names a database that cannot be'],
    ['redis+cluster://ada:canary@a,,b', 'names a host that cannot be'],
    ['postgres://ada:can/ary@db.example/acme', 'percent-encoded'],
    ['postgres://ada:12/canary@db.example/acme', 'percent-encoded'],
    ['postgres://ada:12?canary@db.example/acme', 'percent-encoded'],
    ['postgres://ada:12#canary', 'percent-encoded'],
    ['postgres://ada:canary%@db.example/acme', 'percent-encoded'],
  ])('refuses %j, and repeats nothing of it', (store, message) => {
    const refusal = refusalOf(store);

    expect(refusal).toBeInstanceOf(UsageError);
    expect(refusal.message).toContain('--store (TOKENWRIGHT_STORE)');
    expect(refusal.message).toContain(message);
    expect(refusal.message).not.toMatch(/can\/?ary|ada|acme|db\.example/);
  });

  it('is the SQLite file where there is no URL, and that has no other table', async () => {
    const data = newFolder();
    const file = storePlace({ store: undefined, table: undefined, data });
    const { store, close } = await file.open();

    expect(file).toMatchObject({ name: `SQLite in ${join(data, 'tokens.db')}` });
    expect(await file.migrationSql()).toBeUndefined();
    expect(await store.find([])).toEqual([]);
    await close();
    expect(() => storePlace({ store: undefined, table: 'acme', data })).toThrow('needs --store');
  });

  it.each([
    ['sqlite:a.db', 'a.db'],
    ['sqlite://a.db', 'a.db'],
    ['sqlite:///var/a.db', '/var/a.db'],
    ['sqlite:/var/a.db', '/var/a.db'],
  ])('is the SQLite file of %s', (store, file) => {
    expect(place(store)).toMatchObject({ name: `SQLite in ${file}`, file });
    expect(() => storePlace({ store, table: 'acme', data: './data' })).toThrow('needs --store');
  });
});

describe('open', () => {
  it.each([
    ['postgres://ada:canary@127.0.0.1:1/acme', 'PostgreSQL at 127.0.0.1:1/acme', 'nothing listens'],
    ['mysql://ada:canary@127.0.0.1:1/acme', 'MySQL at 127.0.0.1:1/acme', 'nothing listens'],
    ['redis://ada:canary@127.0.0.1:1', 'Redis at 127.0.0.1:1', 'nothing listens'],
    ['redis+cluster://ada:canary@127.0.0.1:1', 'Redis Cluster at 127.0.0.1:1', 'cannot be used'],
    ['postgres://ada:canary@nowhere.invalid/acme', 'nowhere.invalid', 'no host of that name'],
  ])('tells that and why %s is not to be had', async (store, name, reason) => {
    const refusal = await refusedOpen(store);

    expect(refusal).toMatchObject({ code: 'store_unavailable' });
    expect(refusal.message).toContain(name);
    expect(refusal.message).toContain(reason);
    expect(refusal.message).not.toContain('canary');
    expect(refusal.cause).toBeUndefined();
  });

  it.each(['postgres', 'mysql', 'redis'])(
    'does not wait for a %s that is silent',
    async (scheme) => {
      const silent = createServer(() => {}).listen(0, '127.0.0.1');
      onTestFinished(() => void silent.close());
      await once(silent, 'listening');
      const address = silent.address();
      const port = typeof address === 'object' ? address?.port : 0;

      const startedAt = performance.now();
      const refusal = await refusedOpen(`${scheme}://ada:canary@127.0.0.1:${port}/0`);

      expect(refusal).toMatchObject({ code: 'store_unavailable' });
      expect(refusal.message).toContain('does not answer');
      expect(performance.now() - startedAt).toBeLessThan(5000);
    },
  );

  it.skipIf(mariadb === undefined)(
    'tells a wrong password and a wrong database of MariaDB',
    async () => {
      const right = new URL(mariadb ?? '');
      const as = (user: string, path: string) => `mysql://${user}@${right.host}${path}`;

      const stranger = await refusedOpen(as('tokenwright:canary', right.pathname));
      const lost = await refusedOpen(as(right.username, '/nowhere'));

      expect(stranger.message).toContain('the user or the password is wrong');
      expect(lost.message).toContain('there is no such database');
      expect(`${stranger.message} ${lost.message}`).not.toContain('canary');
    },
  );

  it.skipIf(redis === undefined)(
    'tells a wrong password and a wrong database of Redis',
    async () => {
      const { host } = new URL(redis ?? '');

      const stranger = await refusedOpen(`redis://ada:canary@${host}`);
      const lost = await refusedOpen(`redis://${host}/99999`);
      const alone = await refusedOpen(`redis+cluster://${host}`);

      expect(stranger.message).toContain('the user or the password is wrong');
      expect(lost.message).toContain('there is no database of that number');
      expect(alone.message).toContain('it is not a cluster');
    },
  );

  it.skipIf(redisCluster === undefined)('tells a wrong password of a cluster', async () => {
    const stranger = await refusedOpen(`${redisCluster}`.replace('://', '://ada:canary@'));

    expect(stranger.message).toContain('the user or the password is wrong');
  });

  it('leaves nothing open when it fails', async () => {
    const calls: unknown[] = [];
    const garbler = createServer((socket) => {
      calls.push(once(socket.on('error', () => {}).resume(), 'close'));
      socket.write('HTTP/1.1 400 Bad Request\r\n\r\n');
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void garbler.close());
    await once(garbler, 'listening');
    const address = garbler.address();
    const port = typeof address === 'object' ? address?.port : 0;

    for (const scheme of ['postgres', 'mysql', 'redis']) {
      const refusal = await refusedOpen(`${scheme}://127.0.0.1:${port}/0`);
      expect(refusal).toMatchObject({ code: 'store_unavailable' });
    }

    await Promise.all(calls);
    expect(calls.length).toBeGreaterThanOrEqual(3);
  });
});

function place(store: string) {
  return storePlace({ store, table: undefined, data: './data' });
}

function refusalOf(store: string): Error {
  try {
    place(store);
  } catch (error) {
    return error as Error;
  }
  throw new Error('it was taken');
}

async function refusedOpen(store: string): Promise<Error> {
  const opened = await place(store)
    .open()
    .catch((error) => error);
  if (isTokenError(opened)) return opened;
  throw new Error(`it was opened, or failed otherwise: ${opened}`);
}
