import { TokenError } from '../../errors.ts';
import {
  CONNECT_MS,
  type Connection,
  type Driver,
  ignore,
  LoneServer,
  type RedisCommand,
  retryDelayMs,
  type Subscriber,
  Trouble,
} from './driver.ts';

/** The part of an ioredis `Redis` that the store uses. */
export interface IoredisClient {
  readonly isCluster: boolean;
  readonly status: string;
  readonly options: { readonly host?: string | undefined; readonly port?: number | undefined };
  call(command: string, args: string[]): Promise<unknown>;
  pipeline(commands: string[][]): { exec(): Promise<[Error | null, unknown][] | null> };
  duplicate(options?: object): IoredisClient;
  connect(): Promise<unknown>;
  disconnect(): void;
  subscribe(...channels: string[]): Promise<unknown>;
  on(event: string, listener: (...values: string[]) => void): unknown;
}

/** The part of an ioredis `Cluster` that the store uses. */
export interface IoredisCluster {
  readonly isCluster: boolean;
  readonly status: string;
  readonly options: { readonly scaleReads?: unknown };
  readonly slots: readonly (readonly string[])[];
  nodes(role: 'master'): IoredisClient[];
  call(command: string, args: string[]): Promise<unknown>;
  duplicate(nodes?: [], options?: object): IoredisCluster;
  disconnect(): void;
  on(event: string, listener: (error: unknown) => void): unknown;
}

/** One server: a driver when it is alone, and one of the connections of a cluster. */
export class IoredisServer extends LoneServer implements Driver, Connection {
  readonly #client: IoredisClient;
  readonly trouble: Trouble;

  constructor(client: IoredisClient, address?: string) {
    super(address);
    this.#client = client;
    this.trouble = Trouble.of(client);
  }

  get state(): Driver['state'] {
    return stateOf(this.#client);
  }

  get(key: string): Promise<unknown> {
    return this.#client.call('getex', [key]);
  }

  send([name, ...args]: RedisCommand): Promise<unknown> {
    return this.#client.call(name, args);
  }

  async sendAll(commands: readonly RedisCommand[]): Promise<unknown[]> {
    const answers = await this.#client.pipeline(commands.map((command) => [...command])).exec();
    return (answers ?? []).map(([error, answer]) => error ?? answer);
  }

  async subscribe({ channels, onMessage, onEnd }: Subscriber): Promise<() => void> {
    const once = { lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0 };
    const own = this.#client.duplicate({ ...once, connectTimeout: CONNECT_MS });
    own.on('error', ignore);
    own.on('end', onEnd);
    own.on('message', (channel = '', message = '') => onMessage(message, channel));
    try {
      await own.connect();
      await own.subscribe(...channels);
    } catch (error) {
      own.disconnect();
      throw error;
    }
    return () => own.disconnect();
  }

  duplicate(): Driver {
    const options = { lazyConnect: false, maxRetriesPerRequest: 0, retryStrategy: retryDelayMs };
    return new IoredisServer(this.#client.duplicate(options));
  }

  close(): void {
    this.#client.disconnect();
  }
}

export class IoredisClusterDriver implements Driver {
  readonly isCluster = true;
  readonly #cluster: IoredisCluster;
  readonly trouble: Trouble;
  readonly #connections = new WeakMap<IoredisClient, Connection>();

  constructor(cluster: IoredisCluster) {
    if (cluster.options.scaleReads !== 'master') {
      throw new TokenError(
        'invalid_options',
        "the cluster's scaleReads must be 'master': a replica may not know of a revocation yet",
      );
    }
    this.#cluster = cluster;
    this.trouble = Trouble.of(cluster, ['connect', 'ready']);
  }

  get state(): Driver['state'] {
    return stateOf(this.#cluster);
  }

  get(key: string): Promise<unknown> {
    return this.#cluster.call('getex', [key]);
  }

  /** ioredis finds the key in the command. */
  send([name, ...args]: RedisCommand): Promise<unknown> {
    return this.#cluster.call(name, args);
  }

  ownerAddress(slot: number): string | undefined {
    return this.#cluster.slots[slot]?.[0];
  }

  async owner(slot: number): Promise<Connection | undefined> {
    const address = this.ownerAddress(slot);
    const connections = this.#cluster.nodes('master').map((node) => this.#connectionTo(node));
    return connections.find((connection) => connection.address === address);
  }

  primaries(): Promise<Connection>[] {
    return this.#cluster.nodes('master').map(async (node) => this.#connectionTo(node));
  }

  #connectionTo(node: IoredisClient): Connection {
    const { host, port } = node.options;
    const connection = this.#connections.get(node) ?? new IoredisServer(node, `${host}:${port}`);
    this.#connections.set(node, connection);
    return connection;
  }

  duplicate(): Driver {
    const options = { lazyConnect: false, redisOptions: { connectTimeout: CONNECT_MS } };
    return new IoredisClusterDriver(this.#cluster.duplicate([], options));
  }

  close(): void {
    this.#cluster.disconnect();
  }
}

function stateOf({ status }: { readonly status: string }): Driver['state'] {
  // A lazy client connects with its first command.
  if (status === 'ready' || status === 'wait') return 'ready';
  return status === 'end' ? 'closed' : 'connecting';
}
