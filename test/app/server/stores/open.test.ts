import { once } from 'node:events';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { storeTarget, withStore } from '../../../../src/app/server/stores/open.ts';
import { isTokenError, type StoreReason, storeUnavailable } from '../../../../src/errors.ts';
import { MemoryTokenStore } from '../../../../src/stores/memory/index.ts';
import { tlsPort } from '../../../certificate.ts';
import { isInstalled, startServer } from '../../../servers.ts';
import { listen, newFolder } from '../../cli/support.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const { mariadb, redis, redisCluster } = inject('servers');

describe('storeTarget', () => {
  it.each([
    ['postgres://ada:canary@db.example/acme', 'PostgreSQL at db.example/acme'],
    [
      'postgresql://ada:canary@db.example:6432/acme?sslmode=no',
      'PostgreSQL at db.example:6432/acme',
    ],
    ['postgres://ada:canary@db.example/acme?prepare=false', 'PostgreSQL at db.example/acme'],
    ['mysql://ada:c:a@nary@10.0.0.1/acme', 'MySQL at 10.0.0.1/acme'],
    ['mariadb://ada:%2F%3F%23%25canary@[::1]:3307/acme', 'MariaDB at [::1]:3307/acme'],
    ['redis://db.example', 'Redis at db.example'],
    ['redis://:canary@db.example/', 'Redis at db.example'],
    ['rediss://ada:canary@db.example:6380/15', 'Redis at db.example:6380/15'],
    ['redis://db.example/1?family=6&replicas=1', 'Redis at db.example/1'],
    ['redis+cluster://ada:canary@a:1,[::1]:65535,c', 'Redis Cluster at a:1,[::1]:65535,c'],
    ['redis+cluster://a,b?replicas=2', 'Redis Cluster at a,b'],
  ])('names %s without its user and password', (store, name) => {
    expect(target(store).name).toBe(name);
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
    ['redis://db.example/1?replica=1', 'has a parameter other than replicas and family'],
    ['redis://db.example/1?replicas=1&canary', 'has a parameter other than replicas and family'],
    ['redis+cluster://a,b?family=6', 'has a parameter other than replicas; it must be like redis+'],
    ['postgres://ada:can/ary@db.example/acme', 'percent-encoded'],
    ['postgres://ada:12/canary@db.example/acme', 'percent-encoded'],
    ['postgres://ada:12?canary@db.example/acme', 'percent-encoded'],
    ['postgres://ada:12#canary', 'percent-encoded'],
    ['postgres://ada:canary%@db.example/acme', 'percent-encoded'],
    ['postgres://ada@db.example/acme?prepare=canary', 'has a prepare that is neither true nor'],
    ['mysql://ada@db.example/acme?prepare', 'has a prepare that is neither true nor false'],
    ['mysql://ada@db.example/acme?prepare=true&prepare=true', 'has a prepare that is neither'],
    ['redis://db.example/1?prepare=false', 'has a parameter other than replicas and family'],
  ])('refuses %j without repeating any part of it', (store, message) => {
    const refusal = refusalOf(store);

    expect(refusal).toMatchObject({ exitCode: 2 });
    expect(refusal.message).toContain('--store (TOKENWRIGHT_STORE)');
    expect(refusal.message).toContain(message);
    expect(refusal.message).not.toMatch(/can\/?ary|ada|acme|db\.example/);
  });

  it('is the SQLite file of the data folder without a URL, and refuses --tables', async () => {
    const data = newFolder();
    const file = storeTarget({ store: undefined, tables: undefined, data });
    const { store, close } = await file.open();

    expect(file).toMatchObject({ name: `SQLite in ${join(data, 'tokens.db')}` });
    expect(await file.migrationSql()).toBeUndefined();
    expect(await store.find([])).toEqual([]);
    await close();
    expect(() => storeTarget({ store: undefined, tables: 'acme', data })).toThrow('needs --store');
  });

  it.each([
    ['sqlite:a.db', 'a.db'],
    ['sqlite://a.db', 'a.db'],
    ['sqlite:///var/a.db', '/var/a.db'],
    ['sqlite:/var/a.db', '/var/a.db'],
  ])('is the SQLite file named by %s, and refuses --tables', (store, file) => {
    expect(target(store)).toMatchObject({ name: `SQLite in ${file}`, file });
    expect(() => storeTarget({ store, tables: 'acme', data: './data' })).toThrow('needs --store');
  });
});

describe('open', () => {
  it('says what to do if Node.js has no node:sqlite, and creates no file', async () => {
    const spy = vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined as never);
    onTestFinished(() => spy.mockRestore());
    const file = join(newFolder(), 'tokens.db');

    const refusal = await refusedOpen(`sqlite:${file}`);

    expect(refusal).toMatchObject({ code: 'invalid_options' });
    expect(refusal.message).toMatch(/22\.13 or later, or give a database by --store/);
    expect(refusal.message).not.toContain('handle');
    expect(existsSync(file)).toBe(false);
  });

  it.each([
    ['postgres://ada:canary@127.0.0.1:1/acme', 'PostgreSQL at 127.0.0.1:1/acme', 'nothing listens'],
    ['mysql://ada:canary@127.0.0.1:1/acme', 'MySQL at 127.0.0.1:1/acme', 'nothing listens'],
    ['redis://ada:canary@127.0.0.1:1', 'Redis at 127.0.0.1:1', 'nothing listens'],
    [
      'redis+cluster://ada:canary@127.0.0.1:1',
      'Redis Cluster at 127.0.0.1:1',
      'nothing listens there, or',
    ],
    ['redis+cluster://nowhere.invalid', 'Cluster at nowhere.invalid', 'no host of that name'],
    ['postgres://ada:canary@localhost:1/acme', 'localhost:1', 'nothing listens there: start'],
    ['mysql://ada:canary@localhost:1/acme', 'localhost:1', 'nothing listens there: start'],
    ['redis://ada:canary@localhost:1', 'localhost:1', 'nothing listens there: start'],
    ['postgres://ada:canary@nowhere.invalid/acme', 'nowhere.invalid', 'no host of that name'],
    ['mysql://ada:canary@nowhere.invalid/acme', 'nowhere.invalid', 'no host of that name'],
    ['redis://ada:canary@nowhere.invalid', 'nowhere.invalid', 'no host of that name'],
  ])('reports that %s cannot be used, with the reason', async (store, name, reason) => {
    const refusal = await refusedOpen(store);

    expect(refusal).toMatchObject({ code: 'store_unavailable' });
    expect(refusal.message).toContain(name);
    expect(refusal.message).toContain(reason);
    expect(refusal.message).not.toContain('canary');
    expect(refusal.cause).toBeUndefined();
  });

  it.each(['postgres', 'mysql', 'redis', 'redis+cluster'])(
    'does not wait for a %s server that never answers',
    async (scheme) => {
      const port = await listen(createServer(() => {}));

      const startedAt = performance.now();
      const refusal = await refusedOpen(
        `${scheme}://ada:canary@127.0.0.1:${port}${scheme.endsWith('cluster') ? '' : '/0'}`,
      );

      expect(refusal).toMatchObject({ code: 'store_unavailable' });
      expect(refusal.message).toContain('does not answer: a firewall may be between');
      expect(performance.now() - startedAt).toBeLessThan(5000);
    },
  );

  it.skipIf(!isInstalled('postgres'))('reports why PostgreSQL refuses a user', async () => {
    const server = await startServer('postgres');
    onTestFinished(() => server.stop());
    const pool = new pg.Pool({ connectionString: server.url });
    await pool.query("CREATE ROLE ada LOGIN PASSWORD 'sesame'");
    writeFileSync(
      join(server.folder, 'data', 'pg_hba.conf'),
      'host all tokenwright 127.0.0.1/32 trust\nhost postgres ada 127.0.0.1/32 scram-sha-256\nhost nowhere ada 127.0.0.1/32 scram-sha-256',
    );
    await pool.query('SELECT pg_reload_conf()');
    await pool.end();
    const as = (user: string, database: string) =>
      `postgres://${user}@127.0.0.1:${server.port}/${database}`;

    await expectReasons([
      [as('ada:canary', 'postgres'), 'the user or the password is wrong: correct them in the URL'],
      [as('ada', 'postgres'), 'it wants a password: write it into the URL'],
      [as('bob:canary', 'postgres'), 'it does not let this user in'],
      [as('ada:sesame', 'nowhere'), 'there is no such database: create it, or correct its name'],
    ]);
    const { close } = await target(as('ada:sesame', 'postgres')).open();
    await close();
  });

  it.skipIf(mariadb === undefined)('reports why MariaDB refuses a user', async () => {
    const right = new URL(mariadb ?? '');
    const as = (user: string, path: string) => `mysql://${user}@${right.host}${path}`;

    await expectReasons([
      [as('tokenwright:canary', right.pathname), 'the user or the password is wrong: correct them'],
      [as('ada:canary', right.pathname), 'the user or the password is wrong'],
      [as(right.username, '/nowhere'), 'there is no such database: create it, or correct its name'],
    ]);
    const { close } = await target(as(right.username, right.pathname)).open();
    await close();
  });

  it.skipIf(redis === undefined)('reports why Redis refuses a user', async () => {
    const { host } = new URL(redis ?? '');

    await expectReasons([
      [`redis://ada:canary@${host}`, 'the user or the password is wrong: correct them'],
      [`redis://${host}/99999`, 'there is no database of that number: correct it at the end'],
      [`redis+cluster://${host}`, 'it is not a cluster: begin the URL with redis://'],
    ]);
    const { close } = await target(`redis://${host}/15`).open();
    await close();
  });

  it('explains the errors of simulated servers in its own words', async () => {
    const reasons: string[] = [];
    for (const [scheme, code, reason] of [
      ['postgres', '28P01', 'the user or the password is wrong'],
      ['postgres', '28000', 'it does not let this user in'],
      ['postgres', '3D000', 'there is no such database'],
      ['postgres', '42501', 'this user may not use the database'],
      ['postgres', '53300', 'it has too many clients'],
      ['postgres', '57P03', 'it is starting or stopping'],
      ['postgres', '53200', 'it says 53200'],
      ['mysql', '1045', 'the user or the password is wrong'],
      ['mysql', '1044', 'this user may not use the database'],
      ['mysql', '1049', 'there is no such database'],
      ['mysql', '1130', 'it lets nobody in from this machine'],
      ['mysql', '1040', 'it has too many clients'],
      ['mysql', '1053', 'it says ER_SERVER_SHUTDOWN'],
      ['redis', 'WRONGPASS', 'the user or the password is wrong'],
      ['redis', 'NOAUTH', 'it wants a password'],
      ['redis', 'NOPERM', 'this user may not do what is needed'],
      ['redis', 'DENIED', 'it lets nobody in from this machine'],
      ['redis', 'ERR max', 'it has too many clients'],
      ['redis', 'MISCONF', 'it says MISCONF'],
    ] as const) {
      const port = await listening(REFUSALS[scheme](code));
      reasons.push(await expectReason(`${scheme}://ada:canary@127.0.0.1:${port}/0`, reason));
    }
    expect(new Set(reasons).size).toBe(12);
  });

  it('reports a certificate that nobody trusts', async () => {
    const port = await tlsPort(`${newFolder()}/db`);

    await expectReason(
      `postgres://ada:canary@127.0.0.1:${port}/0?sslmode=verify-full`,
      'its certificate is not trusted, has expired, or is for another host: give the file',
    );
  });

  it('reports that a server hangs up', async () => {
    const port = await listening((socket) => void socket.once('data', () => socket.destroy()));
    const mute = await listening((socket) => void socket.destroy());

    for (const url of [
      `postgres://ada:canary@127.0.0.1:${port}/0`,
      `mysql://ada:canary@127.0.0.1:${mute}/0`,
      `redis://ada:canary@127.0.0.1:${port}`,
    ]) {
      await expectReason(url, 'it hangs up: another kind of server may listen there, or it wants');
    }
  });

  it.skipIf(redisCluster === undefined)('reports a wrong password for a cluster', async () => {
    const stranger = await refusedOpen(`${redisCluster}`.replace('://', '://ada:canary@'));

    expect(stranger.message).toContain('the user or the password is wrong');
  });

  it('has every reason that docs/errors.md#store_unavailable lists', () => {
    const page = read('docs/errors.md');
    const table = page.slice(page.indexOf('| it says |')).split('\n\n')[0] ?? '';
    const rows = table.split('\n').slice(2);
    const files = [
      'src/app/server/stores/connect-errors.ts',
      ...globSync('src/stores/postgres/*.ts', { cwd: ROOT }),
    ];
    const source = files.map(read).join('');
    const missing = rows.filter(
      (row) => !source.includes(row.split('|')[1]?.replaceAll('`', '').trim() ?? ''),
    );

    expect(rows.length).toBeGreaterThan(7);
    expect(missing).toEqual([]);
  });

  it('closes every connection if it fails', async () => {
    const calls: unknown[] = [];
    const garbler = createServer((socket) => {
      calls.push(once(socket.on('error', () => {}).resume(), 'close'));
      socket.write('HTTP/1.1 400 Bad Request\r\n\r\n');
    });
    const port = await listen(garbler);

    for (const scheme of ['postgres', 'mysql', 'redis']) {
      const refusal = await refusedOpen(`${scheme}://127.0.0.1:${port}/0`);
      expect(refusal).toMatchObject({ code: 'store_unavailable' });
    }

    await Promise.all(calls);
    expect(calls.length).toBeGreaterThanOrEqual(3);
  });
});

/** Handlers that refuse every client, with a text that must not be repeated. */
const REFUSALS: Readonly<
  Record<'postgres' | 'mysql' | 'redis', (code: string) => (socket: Socket) => void>
> = {
  postgres: (code) => (socket) => {
    const fields = `SFATAL\0VFATAL\0C${code}\0Mno canary here\0\0`;
    const head = Buffer.from('E\0\0\0\0');
    head.writeUInt32BE(fields.length + 4, 1);
    socket.once('data', () => socket.end(Buffer.concat([head, Buffer.from(fields)])));
  },
  mysql: (code) => (socket) => {
    const text = Buffer.from('..#HY000no canary here');
    text.writeUInt16LE(Number(code), 0);
    socket.end(Buffer.concat([Buffer.from([text.length + 1, 0, 0, 0, 0xff]), text]));
  },
  redis: (code) => (socket) => {
    // One error for each of the pipelined commands.
    const answers = (data: Buffer) =>
      String(data).replaceAll(/\*\d+\r\n[^*]*/g, `-${code} canary\r\n`);
    socket.on('data', (data) => socket.write(answers(data)));
  },
};

/** The port of a server that handles each connection with `answer`. */
function listening(answer: (socket: Socket) => void): Promise<number> {
  return listen(createServer((socket) => answer(socket.on('error', () => {}))));
}

async function expectReasons(cases: readonly (readonly [string, string])[]): Promise<void> {
  const reasons: string[] = [];
  for (const [store, reason] of cases) reasons.push(await expectReason(store, reason));
  expect(new Set(reasons).size).toBeGreaterThanOrEqual(cases.length - 1);
}

async function expectReason(store: string, expected: string): Promise<string> {
  const { message } = await refusedOpen(store);
  const [, reason = ''] = message.split(' cannot be used: ');
  expect(reason).toContain(expected);
  expect(message).not.toContain('canary');
  return reason;
}

function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

function target(store: string) {
  return storeTarget({ store, tables: undefined, data: './data' });
}

function refusalOf(store: string): Error {
  try {
    target(store);
  } catch (error) {
    return error as Error;
  }
  throw new Error('it was accepted');
}

async function refusedOpen(store: string): Promise<Error> {
  const opened = await target(store)
    .open()
    .catch((error) => error);
  if (isTokenError(opened)) return opened;
  throw new Error(`it was opened, or failed otherwise: ${opened}`);
}

describe('withStore', () => {
  it.each<[StoreReason, RegExp]>([
    ['schema_missing', /^a database: .*run tokenwright store migrate/],
    // A database that cannot have the tables: migrate has just said so.
    ['unsupported', /^a database: the database refuses a statement/],
  ])('names the store and the cause of %s', async (reason, message) => {
    const store = Object.assign(new MemoryTokenStore(), {
      doctor: async () => [{ code: 'schema_missing', message: 'no table' }],
    });
    const place = { name: 'a database' };
    const places = { usage: place, leases: place, requests: place };
    const opened = { store, schema: 1, ...places, close: async () => {} };
    const fake = {
      ...place,
      migrationSql: async () => undefined,
      open: async () => opened,
      scratch: () => Promise.reject(new Error('not asked for')),
    };
    const work = withStore(fake, async () => {
      throw storeUnavailable(reason);
    });

    await expect(work).rejects.toMatchObject({ message: expect.stringMatching(message) });
  });
});
