// Test servers from the packages of the system, on loopback and on ports of their own:
// `node test/servers.ts start | stop | status`. The tests use those that run, else their own.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import {
  copyOf,
  hasProgram,
  IS_POSTGRES_FROM_NPM,
  type Place,
  type Program,
  RECIPES,
  type Recipe,
} from './server-programs.ts';

export const ENGINES = ['postgres', 'mariadb', 'redis', 'redisCluster'] as const;
export type Engine = (typeof ENGINES)[number];
/** Others, which tests of the long lane start for themselves. */
export const LONG_SERVERS = ['pglite', 'pgpool', 'galera', 'postgresFromNpm'] as const;
export type ServerUrls = { readonly [engine in Engine]?: string };

declare module 'vitest' {
  interface ProvidedContext {
    servers: ServerUrls;
  }
}

/** A server that was started here. Its data stay until it is stopped. */
export interface Server {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  readonly pid: number;
  /** Sends a signal, and waits for the end where that one ends it. */
  signal(name: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP' | 'SIGCONT'): Promise<void>;
  /** Starts it again after it has ended, on the same data and port. */
  restart(): Promise<void>;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
}

/** The nodes of Redis Cluster or of Galera. */
export interface Cluster {
  readonly url: string;
  readonly nodes: readonly Server[];
  stop(): Promise<void>;
}

export interface ServerOptions {
  /** Settings of the server, which win over ours: `{ synchronous_commit: 'off' }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Where data lie; a new folder in the system's one for temporary files when absent. */
  readonly folder?: string;
  /** Settings that are ports of their own. */
  readonly portSettings?: readonly string[];
  /** A PostgreSQL that this one follows as a standby, on a copy of its data. */
  readonly follows?: Server;
  /** The servers that a pooler leads to. The first is the primary. */
  readonly behind?: readonly Pick<Server, 'port'>[];
  /** Lives on when this process ends. */
  readonly detached?: boolean;
}

const GALERA = '/usr/lib/galera/libgalera_smm.so';
/** By which a node of Galera gets its first data. */
const RSYNC = '/usr/bin/rsync';

/** Whether the system, or the set of npm, has what a server needs. */
export function isInstalled(name: Engine | Program | 'galera'): boolean {
  if (name === 'galera') return hasProgram('mariadb') && [GALERA, RSYNC].every(existsSync);
  return hasProgram(name === 'redisCluster' ? 'redis' : name);
}

/** Starts a server with data of its own and waits until it answers. */
export async function startServer(
  engine: Program,
  {
    settings = {},
    folder: given,
    portSettings = [],
    follows,
    behind = [],
    detached = false,
  }: ServerOptions = {},
): Promise<Server> {
  const recipe: Recipe = RECIPES[engine];
  const { user, end = 'SIGKILL' } = recipe;
  const folder = given ?? mkdtempSync(join(tmpdir(), `tokenwright-${engine}-`));
  const preparation = follows ? copyOf(follows.port, folder) : recipe.prepare?.(folder);
  own(folder, user);
  if (preparation !== undefined) run(as(user, preparation));

  let child: ChildProcess;
  const startOn = async (port: number, all: Place['settings']) => {
    const ports = behind.map((server) => server.port);
    const command = recipe.command({ folder, port, settings: all, behind: ports });
    const [program = '', ...args] = as(user, command, detached ? undefined : end);
    await withOutput(async (output) => {
      child = spawn(program, args, { cwd: folder, stdio: ['ignore', output, output], detached });
      if (detached) child.unref();
      await ready(recipe.isReady({ folder, port }), child, `${engine} ${folder}`);
    });
  };
  /** Somebody may have taken a port since it was found free, so others are tried. */
  const startAnywhere = async (tries: number): Promise<Pick<Server, 'port' | 'restart'>> => {
    const port = await freePort();
    const all: Record<string, string> = { ...settings };
    for (const name of portSettings) all[name] = String(await freePort());
    try {
      await startOn(port, all);
    } catch (error) {
      if (tries <= 1 || !hasEnded(child)) throw error;
      return startAnywhere(tries - 1);
    }
    return { port, restart: () => startOn(port, all) };
  };
  const signal = async (name: NodeJS.Signals) => {
    if (hasEnded(child)) return;
    const ended = once(child, 'exit');
    child.kill(name);
    if (name !== 'SIGSTOP' && name !== 'SIGCONT') await ended;
  };
  const { port, restart } = await startAnywhere(FIRST_STARTS);
  return {
    url: recipe.url(port),
    port,
    folder,
    get pid() {
      return child.pid as number;
    },
    signal,
    restart,
    async stop() {
      await signal(end);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Starts six nodes and makes a cluster of them; ready when each of them says so. */
export async function startCluster(options: ServerOptions = {}): Promise<Cluster> {
  const nodes = await Promise.all(
    Array.from({ length: 6 }, () =>
      startServer('redis', {
        ...options,
        portSettings: ['cluster-port'],
        settings: {
          'cluster-enabled': 'yes',
          'cluster-node-timeout': '2000',
          ...options.settings,
        },
      }),
    ),
  );
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
  run([
    ...['redis-cli', '--cluster', 'create', ...addresses],
    ...['--cluster-replicas', '1', '--cluster-yes'],
  ]);
  for (const { port } of nodes) {
    const isWhole = `redis-cli -p ${port} cluster info | grep -q cluster_state:ok`;
    const isFollowed = `redis-cli -p ${port} info replication | grep -qE 'connected_slaves:1|master_link_status:up'`;
    await ready(['sh', '-c', `${isWhole} && ${isFollowed}`], undefined, 'the cluster');
  }
  return {
    url: `redis+cluster://${addresses.join(',')}`,
    nodes,
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

/** Starts three nodes of a Galera cluster, whose reads do not wait for writes on other nodes. */
export async function startGalera(): Promise<Cluster> {
  const ports = await Promise.all(Array.from({ length: 3 }, freePort));
  const addresses = ports.map((port) => `127.0.0.1:${port}`);
  const nodes: Server[] = [];
  for (const address of addresses) {
    const isFirst = nodes.length === 0;
    const node = await startServer('mariadb', {
      settings: {
        'binlog-format': 'ROW',
        'innodb-autoinc-lock-mode': '2',
        'wsrep-on': 'ON',
        'wsrep-provider': GALERA,
        'wsrep-cluster-address': `gcomm://${isFirst ? '' : addresses.join(',')}`,
        'wsrep-provider-options': [
          `gmcast.listen_addr=tcp://${address}`,
          `ist.recv_addr=127.0.0.1:${await freePort()}`,
        ].join(';'),
        'wsrep-node-address': '127.0.0.1',
        'wsrep-sst-method': 'rsync',
        'wsrep-sst-receive-address': `127.0.0.1:${await freePort()}`,
      },
    });
    nodes.push(node);
    const query = "SHOW STATUS LIKE 'wsrep_local_state_comment'";
    const ask = `mariadb --no-defaults -S${join(node.folder, 'socket')} -e "${query}"`;
    await ready(['sh', '-c', `${ask} | grep -q Synced`], undefined, 'the cluster');
  }
  return {
    url: nodes[0]?.url ?? '',
    nodes,
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

/** A server that all tests share. Its nodes keep their roles even if a busy machine holds them up. */
async function startEngine(engine: Engine, options: ServerOptions = {}): Promise<Server | Cluster> {
  if (engine !== 'redisCluster') return startServer(engine, options);
  return startCluster({
    ...options,
    settings: { 'cluster-node-timeout': '60000', ...options.settings },
  });
}

/** Before all tests: those that run already, and for this run those that are installed. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const wanted = process.env['TEST_SERVERS'] ?? ENGINES.join();
  const known = IS_POSTGRES_FROM_NPM ? {} : runningServers();
  const isWanted = (engine: string) => wanted.split(',').includes(engine);
  const running = Object.fromEntries(Object.entries(known).filter(([engine]) => isWanted(engine)));
  const missing = ENGINES.filter(
    (engine) => isWanted(engine) && isInstalled(engine) && running[engine] === undefined,
  );
  const started = await Promise.all(
    missing.map(async (engine) => [engine, await startEngine(engine)] as const),
  );
  project.provide('servers', {
    ...Object.fromEntries(Object.entries(running).map(([engine, { url }]) => [engine, url])),
    ...Object.fromEntries(started.map(([engine, { url }]) => [engine, url])),
  });
  return async () => {
    await Promise.all(started.map(([, server]) => server.stop()));
  };
}

interface Running {
  readonly url: string;
  /** The process ids, each with the folder by which it is known. */
  readonly processes: readonly { readonly pid: number; readonly folder: string }[];
}

const STATE = new URL('../.cache/servers.json', import.meta.url).pathname;

/** Those that were started with `start` and still run. */
function runningServers(): { [engine in Engine]?: Running } {
  if (!existsSync(STATE)) return {};
  const known: [string, Running][] = Object.entries(JSON.parse(readFileSync(STATE, 'utf8')));
  return Object.fromEntries(known.filter(([, { processes }]) => processes.every(isAlive)));
}

function isAlive({ pid, folder }: Running['processes'][number]): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`).startsWith(folder);
  } catch {
    return false;
  }
}

async function start(): Promise<void> {
  const servers: { [engine in Engine]?: Running } = runningServers();
  for (const engine of ENGINES) {
    if (!isInstalled(engine) || servers[engine] !== undefined) continue;
    const server = await startEngine(engine, { detached: true });
    const members = 'nodes' in server ? server.nodes : [server];
    servers[engine] = {
      url: server.url,
      processes: members.map(({ pid, folder }) => ({ pid, folder })),
    };
    mkdirSync(join(STATE, '..'), { recursive: true });
    writeFileSync(STATE, JSON.stringify(servers));
  }
}

function stop(): void {
  for (const { processes } of Object.values(runningServers())) {
    for (const { pid, folder } of processes) {
      process.kill(pid, 'SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    }
  }
  rmSync(STATE, { force: true });
}

function status(): void {
  const running = runningServers();
  for (const engine of ENGINES) {
    const state = isInstalled(engine) ? 'not running' : 'not installed';
    console.log(`${engine.padEnd(14)}${running[engine]?.url ?? state}`);
  }
}

/** Below those that Linux gives to connections: one of those may be taken before a server has it. */
const FIRST_PORT = 20_000;
const LAST_PORT = 32_000;
const given = new Set<number>();

/** A port that nobody uses, and that this process has not been given before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, LAST_PORT);
    if (!given.has(port) && (await isFree(port))) {
      given.add(port);
      return port;
    }
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}

/** As another user where that is needed: the servers refuse to be run by root. */
function as(user: string | undefined, command: readonly string[], end?: NodeJS.Signals): string[] {
  if (process.getuid?.() !== 0) return [...command];
  const identity = user ? [`--reuid=${user}`, `--regid=${user}`, '--init-groups'] : [];
  const death = end ? ['--pdeathsig', end.replace('SIG', '')] : [];
  return ['setpriv', ...identity, ...death, ...command];
}

function own(folder: string, user: string | undefined): void {
  if (user !== undefined && process.getuid?.() === 0) run(['chown', '-R', user, folder]);
}

function run([program = '', ...args]: readonly string[]): void {
  const { status: code, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (code !== 0) throw new Error(`${program} ${args.join(' ')}\n${stdout}${stderr}`);
}

const FIRST_STARTS = 3;
/** Long: on a busy machine, PGlite takes a minute to start. */
const READY_MS = 120_000;
const PAUSE_MS = 50;
const MAX_SHOWN = 4000;

/** Adds to an error what a server that did not start has said; of one that runs it is not kept. */
async function withOutput(action: (output: number) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tokenwright-output-'));
  const file = join(folder, 'output');
  const output = openSync(file, 'a');
  try {
    await action(output);
  } catch (error) {
    throw new Error(`${error}\n${readFileSync(file, 'utf8').slice(-MAX_SHOWN)}`);
  } finally {
    closeSync(output);
    rmSync(folder, { recursive: true });
  }
}

async function ready(
  check: readonly string[],
  child: ChildProcess | undefined,
  name: string,
): Promise<void> {
  const [program = '', ...args] = check;
  const deadline = Date.now() + READY_MS;
  for (;;) {
    const isReady = spawnSync(program, args).status === 0;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    // Also when something answers: it may be another server, which has had the port before.
    if (child !== undefined && hasEnded(child)) throw new Error(`${name} ended`);
    if (isReady) return;
    if (Date.now() > deadline) throw new Error(`${name} does not answer`);
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

if (process.argv[1] === import.meta.filename) {
  const [, , verb = 'status'] = process.argv;
  if (verb === 'start') await start();
  if (verb === 'stop') stop();
  status();
}
