import { setTimeout as delay } from 'node:timers/promises';
import { TokenError } from '../../errors.ts';
import { slotOf } from './layout.ts';

/**
 * A `Redis` of ioredis, as far as the store uses one. By default it takes up to 5 s to connect
 * again, does not notice a connection that is dead, and repeats a command for twenty connections.
 *
 * @example
 * const client: IoredisClient = new Redis('redis://db.internal', {
 *   maxRetriesPerRequest: 1,
 *   socketTimeout: 1000,
 *   retryStrategy: (attempt) => Math.min(attempt * 50, 500),
 * });
 */
export interface IoredisClient {
  readonly isCluster: boolean;
  readonly status: string;
  readonly options: { readonly host?: string | undefined; readonly port?: number | undefined };
  get(key: string): Promise<unknown>;
  call(command: string, args: string[]): Promise<unknown>;
  pipeline(commands: string[][]): { exec(): Promise<[Error | null, unknown][] | null> };
  duplicate(options?: object): IoredisClient;
  connect(): Promise<unknown>;
  disconnect(): void;
  subscribe(...channels: string[]): Promise<unknown>;
  on(event: string, listener: (...values: string[]) => void): unknown;
}

/**
 * A `Cluster` of ioredis, as far as the store uses one. Each of its connections is found dead on its
 * own: keep `socketTimeout` short, but above the store's `waitMs`.
 *
 * @example
 * const client: IoredisCluster = new Cluster([{ host: 'db1.internal' }, { host: 'db2.internal' }], {
 *   redisOptions: { connectTimeout: 1000, maxRetriesPerRequest: 1, socketTimeout: 600 },
 *   slotsRefreshTimeout: 500,
 *   clusterRetryStrategy: (attempt) => Math.min(attempt * 50, 500),
 * });
 */
export interface IoredisCluster {
  readonly isCluster: boolean;
  readonly status: string;
  readonly options: { readonly scaleReads?: unknown };
  readonly slots: readonly (readonly string[])[];
  nodes(role: 'master'): IoredisClient[];
  get(key: string): Promise<unknown>;
  call(command: string, args: string[]): Promise<unknown>;
  duplicate(nodes?: [], options?: object): IoredisCluster;
  disconnect(): void;
  on(event: string, listener: () => void): unknown;
}

/**
 * What `createClient()` of node-redis makes, as far as the store uses it. By default it does not
 * notice a connection that is dead; its `socketTimeout` is one for connections where nothing
 * happens, so that it wants a `pingInterval`, and a strategy that connects again after it. What is
 * sent counts as something that happens: the store sends nothing on a connection that has been
 * silent for half a second, so that this time can run; a host that uses the client for more should
 * give the store one of its own.
 *
 * @example
 * const client: NodeRedisClient = createClient({
 *   url: 'redis://db.internal',
 *   pingInterval: 500,
 *   socket: {
 *     socketTimeout: 1000,
 *     reconnectStrategy: (attempt) => Math.min(attempt * 50, 500),
 *   },
 * });
 */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  readonly options: { readonly socket?: object | undefined };
  sendCommand(args: string[], options?: object): Promise<unknown>;
  duplicate(options?: object): NodeRedisClient;
  connect(): Promise<unknown>;
  destroy(): void;
  subscribe(
    channels: string[],
    listener: (message: string, channel: string) => void,
  ): Promise<unknown>;
  on(event: string, listener: () => void): unknown;
}

/**
 * What `createCluster()` of node-redis makes, as far as the store uses it. By default it takes 5 s
 * to look for the successor of a server. Keep `socketTimeout` short, but above the store's `waitMs`.
 *
 * @example
 * const client: NodeRedisCluster = createCluster({
 *   rootNodes: [{ url: 'redis://db1.internal' }, { url: 'redis://db2.internal' }],
 *   defaults: {
 *     pingInterval: 300,
 *     socket: { socketTimeout: 600, reconnectStrategy: (attempt) => Math.min(attempt * 50, 500) },
 *   },
 *   topologyRefreshOnReconnectionAttemptStrategy: 500,
 * });
 */
export interface NodeRedisCluster {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  readonly slots: readonly { readonly master: NodeRedisNode }[];
  readonly masters: readonly NodeRedisNode[];
  nodeClient(node: NodeRedisNode): Promise<NodeRedisClient>;
  sendCommand(
    key: string | undefined,
    isReadonly: boolean,
    args: string[],
    options?: object,
  ): Promise<unknown>;
  duplicate(options?: object): NodeRedisCluster;
  connect(): Promise<unknown>;
  destroy(): void;
  on(event: string, listener: () => void): unknown;
}

/** A server of a cluster, as node-redis describes it. */
export interface NodeRedisNode {
  readonly address: string;
}

/**
 * A client of one server or of a cluster, of ioredis or node-redis.
 *
 * @example
 * const client: RedisClient = new Redis('redis://db.internal');
 */
export type RedisClient = IoredisClient | IoredisCluster | NodeRedisClient | NodeRedisCluster;

/** The name of a command, in lower case as ioredis wants it, and its arguments. */
export type Command = readonly [name: string, ...args: string[]];

/** A connection to one server. */
export interface Link {
  readonly address: string;
  send(command: Command): Promise<unknown>;
  /** In this order, together, on one connection. Each answer in its place, an error as well. */
  sendAll(commands: readonly Command[]): Promise<unknown[]>;
  /** On a connection of its own, which is not restored: `onEnd` is called when it ends. */
  subscribe(channel: Channel): Promise<() => void>;
}

/** What is listened to, and who is told. */
export interface Channel {
  readonly names: readonly string[];
  readonly onMessage: (message: string, name: string) => void;
  readonly onEnd: () => void;
}

/** A client as the store sees it, whichever it is. */
export interface Driver {
  readonly isCluster: boolean;
  readonly state: 'ready' | 'connecting' | 'closed';
  /** A read may be repeated, and may come late: it is given to the driver as it is. */
  get(key: string): Promise<unknown>;
  /** To the server that holds the key; to any where there is none. */
  send(command: Command, key?: string): Promise<unknown>;
  /** The server that holds a slot, as far as is known. */
  owner(slot: number): Promise<Link | undefined>;
  masters(): Promise<Link>[];
  /** Another client, connecting: with its connection it loses all commands that are on their way. */
  duplicate(): Driver;
  close(): void;
}

/** @throws {TokenError} `invalid_options` when it is none of the four */
export function driverOf(client: RedisClient): Driver {
  if (hasMethods(client, ['call', 'nodes'])) {
    return new IoredisClusterDriver(client as IoredisCluster);
  }
  if (hasMethods(client, ['call', 'pipeline'])) {
    return new IoredisDriver(client as IoredisClient);
  }
  if (hasMethods(client, ['sendCommand', 'nodeClient'])) {
    return new NodeRedisClusterDriver(client as NodeRedisCluster);
  }
  if (hasMethods(client, ['sendCommand', 'duplicate'])) {
    return new NodeRedisDriver(client as NodeRedisClient);
  }
  throw new TokenError(
    'invalid_options',
    'client must be a Redis or Cluster of ioredis, or what createClient() or createCluster() of redis makes',
  );
}

const PATIENCE_MS = 500;
const POLL_MS = 10;

/**
 * Waits for a client that is connecting, or connecting again. A command given to it now would be
 * queued by the driver, and carried out long after the caller has given up.
 */
export async function whenReady(driver: Driver, patienceMs = PATIENCE_MS): Promise<void> {
  await until(() => driver.state !== 'connecting', patienceMs);
  if (driver.state === 'closed') throw new Error('not connected');
}

async function until(look: () => boolean, patienceMs = PATIENCE_MS): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!look()) {
    if (performance.now() > deadline) throw new Error('not connected');
    await delay(POLL_MS);
  }
}

function hasMethods(client: unknown, names: readonly string[]): boolean {
  if (typeof client !== 'object' || client === null) return false;
  return names.every((name) => typeof (client as Record<string, unknown>)[name] === 'function');
}

const CONNECT_MS = 1000;
/** What node-redis has not sent by then it never sends. */
const SEND_MS = 1000;
/** How long node-redis looks for a server before it asks the others for its successor. */
const REFRESH_MS = 500;
const THE_SERVER = 'the server';

const noop = () => {};
const retryDelay = (attempt: number) => Math.min(attempt * 50, 500);

class IoredisLink implements Link {
  readonly address: string;
  readonly #client: IoredisClient;

  constructor(client: IoredisClient, address: string) {
    this.#client = client;
    this.address = address;
  }

  send([name, ...args]: Command): Promise<unknown> {
    return this.#client.call(name, args);
  }

  async sendAll(commands: readonly Command[]): Promise<unknown[]> {
    const answers = await this.#client.pipeline(commands.map((command) => [...command])).exec();
    return (answers ?? []).map(([error, answer]) => error ?? answer);
  }

  async subscribe({ names, onMessage, onEnd }: Channel): Promise<() => void> {
    const own = this.#client.duplicate({
      lazyConnect: true,
      retryStrategy: null,
      maxRetriesPerRequest: 0,
      connectTimeout: CONNECT_MS,
    });
    own.on('error', noop);
    own.on('end', onEnd);
    own.on('message', (name = '', message = '') => onMessage(message, name));
    const close = () => own.disconnect();
    return connected(close, async () => {
      await own.connect();
      await own.subscribe(...names);
    });
  }
}

class IoredisDriver implements Driver {
  readonly isCluster = false;
  readonly #client: IoredisClient;
  readonly #link: Link;

  constructor(client: IoredisClient) {
    this.#client = client;
    this.#link = new IoredisLink(client, THE_SERVER);
  }

  get state(): Driver['state'] {
    return ioredisState(this.#client.status);
  }

  get(key: string): Promise<unknown> {
    return this.#client.get(key);
  }

  send(command: Command): Promise<unknown> {
    return this.#link.send(command);
  }

  async owner(): Promise<Link> {
    return this.#link;
  }

  masters(): Promise<Link>[] {
    return [this.owner()];
  }

  duplicate(): Driver {
    const options = { lazyConnect: false, maxRetriesPerRequest: 0, retryStrategy: retryDelay };
    const own = this.#client.duplicate(options);
    own.on('error', noop);
    return new IoredisDriver(own);
  }

  close(): void {
    this.#client.disconnect();
  }
}

class IoredisClusterDriver implements Driver {
  readonly isCluster = true;
  readonly #cluster: IoredisCluster;
  readonly #links = new WeakMap<IoredisClient, Link>();

  constructor(cluster: IoredisCluster) {
    if (cluster.options.scaleReads !== 'master') {
      throw new TokenError(
        'invalid_options',
        "the cluster's scaleReads must be 'master': a replica may not know of a revocation yet",
      );
    }
    this.#cluster = cluster;
  }

  get state(): Driver['state'] {
    return ioredisState(this.#cluster.status);
  }

  get(key: string): Promise<unknown> {
    return this.#cluster.get(key);
  }

  /** ioredis finds the key in the command. */
  send([name, ...args]: Command): Promise<unknown> {
    return this.#cluster.call(name, args);
  }

  async owner(slot: number): Promise<Link | undefined> {
    const address = this.#cluster.slots[slot]?.[0];
    const links = this.#cluster.nodes('master').map((node) => this.#linkOf(node));
    return links.find((link) => link.address === address);
  }

  masters(): Promise<Link>[] {
    return this.#cluster.nodes('master').map(async (node) => this.#linkOf(node));
  }

  #linkOf(node: IoredisClient): Link {
    const { host, port } = node.options;
    const link = this.#links.get(node) ?? new IoredisLink(node, `${host}:${port}`);
    this.#links.set(node, link);
    return link;
  }

  duplicate(): Driver {
    const options = { lazyConnect: false, redisOptions: { connectTimeout: CONNECT_MS } };
    const own = this.#cluster.duplicate([], options);
    own.on('error', noop);
    return new IoredisClusterDriver(own);
  }

  close(): void {
    this.#cluster.disconnect();
  }
}

function ioredisState(status: string): Driver['state'] {
  // A lazy client waits for its first command.
  if (status === 'ready' || status === 'wait') return 'ready';
  return status === 'end' ? 'closed' : 'connecting';
}

const SILENCE_MS = 500;

/**
 * Whether a server answers what it is sent. To node-redis a connection is alive while something is
 * sent on it; so that it notices a dead one, nothing is sent where nothing comes back.
 */
class Pulse {
  #unanswered = 0;
  #heardAt = 0;

  send<Answer>(command: () => Promise<Answer>): Promise<Answer> {
    return this.#isSilent() ? this.#sendLater(command) : this.#sendNow(command);
  }

  #isSilent(): boolean {
    return this.#unanswered > 0 && performance.now() - this.#heardAt > SILENCE_MS;
  }

  #sendNow<Answer>(command: () => Promise<Answer>): Promise<Answer> {
    if (this.#unanswered === 0) this.#heardAt = performance.now();
    this.#unanswered += 1;
    const answer = command();
    answer.then(this.#hear, this.#hear);
    return answer;
  }

  /** What was sent is answered, or rejected with the end of its connection. */
  readonly #hear = () => {
    this.#unanswered -= 1;
    this.#heardAt = performance.now();
  };

  async #sendLater<Answer>(command: () => Promise<Answer>): Promise<Answer> {
    await until(() => !this.#isSilent());
    return this.#sendNow(command);
  }
}

/** Whatever the host has its replies mapped to. */
const PLAIN = { typeMapping: {}, timeout: undefined };
const PLAIN_IN_TIME = { ...PLAIN, timeout: SEND_MS };

class NodeRedisLink implements Link {
  readonly address: string;
  readonly #client: NodeRedisClient;
  readonly #pulse: Pulse;

  constructor(client: NodeRedisClient, address: string, pulse: Pulse) {
    this.#client = client;
    this.address = address;
    this.#pulse = pulse;
  }

  send(command: Command): Promise<unknown> {
    return this.#pulse.send(() => this.#client.sendCommand([...command], PLAIN_IN_TIME));
  }

  async sendAll(commands: readonly Command[]): Promise<unknown[]> {
    // What is left of a chain is dropped, and not sent on another connection.
    const options = { ...PLAIN_IN_TIME, chainId: Symbol('chain') };
    const answers = await Promise.allSettled(
      commands.map((command) => this.#client.sendCommand([...command], options)),
    );
    return answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : answer.reason));
  }

  async subscribe({ names, onMessage, onEnd }: Channel): Promise<() => void> {
    const { socket } = this.#client.options;
    const own = this.#client.duplicate({
      socket: { ...socket, reconnectStrategy: false, connectTimeout: CONNECT_MS },
    });
    own.on('error', onEnd);
    own.on('end', onEnd);
    const close = () => own.destroy();
    return connected(close, async () => {
      await own.connect();
      await own.subscribe([...names], onMessage);
    });
  }
}

class NodeRedisDriver implements Driver {
  readonly isCluster = false;
  readonly #client: NodeRedisClient;
  readonly #pulse = new Pulse();
  readonly #link: Link;

  constructor(client: NodeRedisClient) {
    this.#client = client;
    this.#link = new NodeRedisLink(client, THE_SERVER, this.#pulse);
  }

  get state(): Driver['state'] {
    return nodeRedisState(this.#client);
  }

  get(key: string): Promise<unknown> {
    return this.#pulse.send(() => this.#client.sendCommand(['get', key], PLAIN));
  }

  send(command: Command): Promise<unknown> {
    return this.#link.send(command);
  }

  async owner(): Promise<Link> {
    return this.#link;
  }

  masters(): Promise<Link>[] {
    return [this.owner()];
  }

  duplicate(): Driver {
    const { socket } = this.#client.options;
    const own = this.#client.duplicate({ socket: { ...socket, reconnectStrategy: retryDelay } });
    own.on('error', noop);
    own.connect().catch(noop);
    return new NodeRedisDriver(own);
  }

  close(): void {
    this.#client.destroy();
  }
}

class NodeRedisClusterDriver implements Driver {
  readonly isCluster = true;
  readonly #cluster: NodeRedisCluster;
  readonly #links = new WeakMap<NodeRedisClient, Link>();
  /** By address. */
  readonly #pulses = new Map<string, Pulse>();

  constructor(cluster: NodeRedisCluster) {
    this.#cluster = cluster;
  }

  get state(): Driver['state'] {
    return nodeRedisState(this.#cluster);
  }

  /** As a write, so that no replica is asked. */
  get(key: string): Promise<unknown> {
    return this.#pulseFor(key).send(() =>
      this.#cluster.sendCommand(key, false, ['get', key], PLAIN),
    );
  }

  async send(command: Command, key?: string): Promise<unknown> {
    if (key === undefined) {
      const { masters } = this.#cluster;
      const node = masters[Math.floor(Math.random() * masters.length)];
      if (node === undefined) throw new Error('no server is known');
      return (await this.#linkOf(node)).send(command);
    }
    return this.#pulseFor(key).send(() =>
      this.#cluster.sendCommand(key, false, [...command], PLAIN_IN_TIME),
    );
  }

  #pulseFor(key: string): Pulse {
    return this.#pulseOf(this.#cluster.slots[slotOf(key)]?.master.address ?? '');
  }

  #pulseOf(address: string): Pulse {
    const pulse = this.#pulses.get(address) ?? new Pulse();
    this.#pulses.set(address, pulse);
    return pulse;
  }

  async owner(slot: number): Promise<Link | undefined> {
    const master = this.#cluster.slots[slot]?.master;
    return master && this.#linkOf(master);
  }

  masters(): Promise<Link>[] {
    return this.#cluster.masters.map((master) => this.#linkOf(master));
  }

  async #linkOf(node: NodeRedisNode): Promise<Link> {
    const client = await this.#cluster.nodeClient(node);
    const { address } = node;
    const link =
      this.#links.get(client) ?? new NodeRedisLink(client, address, this.#pulseOf(address));
    this.#links.set(client, link);
    return link;
  }

  duplicate(): Driver {
    const options = { topologyRefreshOnReconnectionAttemptStrategy: REFRESH_MS };
    const own = this.#cluster.duplicate(options);
    own.on('error', noop);
    own.connect().catch(noop);
    return new NodeRedisClusterDriver(own);
  }

  close(): void {
    this.#cluster.destroy();
  }
}

function nodeRedisState({
  isReady,
  isOpen,
}: {
  isReady: boolean;
  isOpen: boolean;
}): Driver['state'] {
  if (isReady) return 'ready';
  return isOpen ? 'connecting' : 'closed';
}

/** Leaves no connection behind when it does not come about. */
async function connected(close: () => void, connect: () => Promise<void>): Promise<() => void> {
  try {
    await connect();
    return close;
  } catch (error) {
    close();
    throw error;
  }
}
