import { storeUnavailable } from '../../errors.ts';
import { performance } from '../../time/timers.ts';
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
  until,
} from './driver.ts';
import { slotOfKey } from './layout.ts';

/** The part of a node-redis `createClient()` that the store uses. */
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
  on(event: string, listener: (error: unknown) => void): unknown;
}

/** The part of a node-redis `createCluster()` that the store uses. */
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
  on(event: string, listener: (error: unknown) => void): unknown;
}

/** A server of a cluster, as node-redis describes it. */
interface NodeRedisNode {
  readonly address: string;
}

const SILENCE_MS = 500;
/** node-redis drops a command that it could not send by then. */
const SEND_MS = 1000;
/** How long node-redis looks for a server before it asks the others for its successor. */
const REFRESH_MS = 500;

/** Overrides the type mapping of the host, which may turn replies into anything. */
const UNMAPPED = { typeMapping: {}, timeout: undefined };
const PLAIN_IN_TIME = { ...UNMAPPED, timeout: SEND_MS };

/**
 * Lets node-redis notice a dead connection: its timeout starts again with each command that it
 * sends. While a server answers nothing, commands wait here instead.
 */
class LivenessGate {
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
    answer.then(this.#onAnswer, this.#onAnswer);
    return answer;
  }

  /** Also runs for a command that is rejected because its connection ended. */
  readonly #onAnswer = () => {
    this.#unanswered -= 1;
    this.#heardAt = performance.now();
  };

  async #sendLater<Answer>(command: () => Promise<Answer>): Promise<Answer> {
    if (!(await until(() => !this.#isSilent()))) throw storeUnavailable('timeout');
    return this.#sendNow(command);
  }
}

/** One server: a driver when it is alone, and one of the connections of a cluster. */
export class NodeRedisServer extends LoneServer implements Driver, Connection {
  readonly #client: NodeRedisClient;
  readonly trouble: Trouble;
  readonly #gate: LivenessGate;

  constructor(client: NodeRedisClient, address?: string, gate = new LivenessGate()) {
    super(address);
    this.#client = client;
    this.trouble = Trouble.of(client);
    this.#gate = gate;
  }

  get state(): Driver['state'] {
    return stateOf(this.#client);
  }

  get(key: string): Promise<unknown> {
    return this.#gate.send(() => this.#client.sendCommand(['getex', key], UNMAPPED));
  }

  send(command: RedisCommand): Promise<unknown> {
    return this.#gate.send(() => this.#client.sendCommand([...command], PLAIN_IN_TIME));
  }

  async sendAll(commands: readonly RedisCommand[]): Promise<unknown[]> {
    // When the connection breaks, the rest of a chain is dropped, and not sent on the next one.
    const options = { ...PLAIN_IN_TIME, chainId: Symbol('chain') };
    const answers = await Promise.allSettled(
      commands.map((command) => this.#client.sendCommand([...command], options)),
    );
    return answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : answer.reason));
  }

  async subscribe({ channels, onMessage, onEnd }: Subscriber): Promise<() => void> {
    const { socket } = this.#client.options;
    const once = { reconnectStrategy: false, connectTimeout: CONNECT_MS };
    const own = this.#client.duplicate({ socket: { ...socket, ...once } });
    own.on('error', onEnd);
    own.on('end', onEnd);
    try {
      await own.connect();
      await own.subscribe([...channels], onMessage);
    } catch (error) {
      own.destroy();
      throw error;
    }
    return () => own.destroy();
  }

  duplicate(): Driver {
    const { socket } = this.#client.options;
    const own = this.#client.duplicate({ socket: { ...socket, reconnectStrategy: retryDelayMs } });
    const driver = new NodeRedisServer(own);
    own.connect().catch(ignore);
    return driver;
  }

  close(): void {
    this.#client.destroy();
  }
}

export class NodeRedisClusterDriver implements Driver {
  readonly isCluster = true;
  readonly #cluster: NodeRedisCluster;
  readonly trouble: Trouble;
  readonly #connections = new WeakMap<NodeRedisClient, Connection>();
  readonly #gatesByAddress = new Map<string, LivenessGate>();

  constructor(cluster: NodeRedisCluster) {
    this.#cluster = cluster;
    this.trouble = Trouble.of(cluster, ['connect', 'ready']);
  }

  get state(): Driver['state'] {
    return stateOf(this.#cluster);
  }

  get(key: string): Promise<unknown> {
    return this.#send(key, ['getex', key], UNMAPPED);
  }

  async send(command: RedisCommand, key?: string): Promise<unknown> {
    if (key !== undefined) return this.#send(key, [...command], PLAIN_IN_TIME);
    const { masters } = this.#cluster;
    const node = masters[Math.floor(Math.random() * masters.length)];
    if (node === undefined) throw storeUnavailable('unreachable');
    return (await this.#connectionTo(node)).send(command);
  }

  /** Also sends reads as writes, so that node-redis asks no replica. */
  #send(key: string, args: string[], options: object): Promise<unknown> {
    const gate = this.#gateOf(this.#cluster.slots[slotOfKey(key)]?.master.address ?? '');
    return gate.send(() => this.#cluster.sendCommand(key, false, args, options));
  }

  #gateOf(address: string): LivenessGate {
    const gate = this.#gatesByAddress.get(address) ?? new LivenessGate();
    this.#gatesByAddress.set(address, gate);
    return gate;
  }

  ownerAddress(slot: number): string | undefined {
    return this.#cluster.slots[slot]?.master.address;
  }

  async owner(slot: number): Promise<Connection | undefined> {
    const master = this.#cluster.slots[slot]?.master;
    return master && this.#connectionTo(master);
  }

  primaries(): Promise<Connection>[] {
    return this.#cluster.masters.map((master) => this.#connectionTo(master));
  }

  async #connectionTo(node: NodeRedisNode): Promise<Connection> {
    const client = await this.#cluster.nodeClient(node);
    const { address } = node;
    const connection =
      this.#connections.get(client) ?? new NodeRedisServer(client, address, this.#gateOf(address));
    this.#connections.set(client, connection);
    return connection;
  }

  duplicate(): Driver {
    const options = { topologyRefreshOnReconnectionAttemptStrategy: REFRESH_MS };
    const own = this.#cluster.duplicate(options);
    const driver = new NodeRedisClusterDriver(own);
    own.connect().catch(ignore);
    return driver;
  }

  close(): void {
    this.#cluster.destroy();
  }
}

function stateOf(client: { readonly isReady: boolean; readonly isOpen: boolean }): Driver['state'] {
  if (client.isReady) return 'ready';
  return client.isOpen ? 'connecting' : 'closed';
}
