import { isTokenError, type StoreReason, storeUnavailable, TokenError } from '../../errors.ts';
import { delay, performance } from '../../time/timers.ts';
import { reasonOfConnection } from '../shared/reasons.ts';

/** The name of a command, in lower case as ioredis expects it, and its arguments. */
export type RedisCommand = readonly [name: string, ...args: string[]];

/** A connection to one server. */
export interface Connection {
  readonly address: string;
  send(command: RedisCommand): Promise<unknown>;
  /** Sends commands together and in order on one connection. Each answer may be an error. */
  sendAll(commands: readonly RedisCommand[]): Promise<unknown[]>;
  /** Listens on a connection of its own, which never reconnects. Resolves to what closes it. */
  subscribe(subscriber: Subscriber): Promise<() => void>;
}

export interface Subscriber {
  readonly channels: readonly string[];
  readonly onMessage: (message: string, channel: string) => void;
  readonly onEnd: () => void;
}

/** One interface for all clients: of ioredis or node-redis, of one server or a cluster. */
export interface Driver {
  readonly isCluster: boolean;
  readonly state: 'ready' | 'connecting' | 'closed';
  readonly trouble: Trouble;
  /**
   * Reads one key by `GETEX`, which only a primary answers: to a server, it is a write. It does no harm
   * when it is late or repeated, so the driver may retry it.
   */
  get(key: string): Promise<unknown>;
  /** Sends to the server that holds the key, or to any server without one. */
  send(command: RedisCommand, key?: string): Promise<unknown>;
  /** The server that holds a slot, as far as the client knows. */
  owner(slot: number): Promise<Connection | undefined>;
  /** The address of that server; undefined if there is no cluster. */
  ownerAddress(slot: number): string | undefined;
  primaries(): Promise<Connection>[];
  /** Starts another client. If its connection breaks, it does not resend commands in flight. */
  duplicate(): Driver;
  close(): void;
}

/** What a client has reported since it was ready: why it does not connect. */
export class Trouble {
  static readonly #ofClients = new WeakMap<object, Trouble>();
  error: unknown;

  /**
   * Listens once for each client, over which a host may open many stores.
   *
   * @param ready the events by which it says that it can be used. A client of one server is connected before its
   * password is checked, so that `connect` says little
   */
  static of(
    client: { on(event: string, listener: (error: unknown) => void): unknown },
    ready: readonly string[] = ['ready'],
  ): Trouble {
    const known = Trouble.#ofClients.get(client);
    if (known !== undefined) return known;
    const trouble = new Trouble();
    Trouble.#ofClients.set(client, trouble);
    client.on('error', (error) => {
      // ioredis has tried each server of a cluster.
      trouble.error = (error as { readonly lastNodeError?: unknown }).lastNodeError ?? error;
    });
    for (const event of ready) client.on(event, () => (trouble.error = undefined));
    return trouble;
  }
}

/** What a driver of a single server, which is its own only connection, shares with any other. */
export abstract class LoneServer {
  readonly isCluster = false;
  /** That of a server of a cluster if it is a connection to one. */
  readonly address: string;

  constructor(address = 'the server') {
    this.address = address;
  }

  ownerAddress(): undefined {}

  async owner(): Promise<this> {
    return this;
  }

  primaries(): Promise<this>[] {
    return [this.owner()];
  }
}

export const CONNECT_MS = 1000;
/** A server that has not answered by then is considered down. */
export const ANSWER_MS = 2000;

export const ignore = (): void => {};
export const retryDelayMs = (attempt: number): number => Math.min(attempt * 50, 500);

const READY_MS = 500;
const POLL_MS = 10;

/**
 * Waits for a client that is connecting. A command sent now would stay in the driver's queue, and
 * run long after the caller has given up.
 */
export async function whenReady(driver: Driver, timeoutMs = READY_MS): Promise<void> {
  const isInTime = await until(() => driver.state !== 'connecting', timeoutMs);
  if (driver.state === 'ready') return;
  throw driver.trouble.error ?? storeUnavailable(isInTime ? 'closed' : 'unreachable');
}

/** Whether it was met in time. */
export async function until(isMet: () => boolean, timeoutMs = READY_MS): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (!isMet()) {
    if (performance.now() > deadline) return false;
    await delay(POLL_MS);
  }
  return true;
}

/** Works with a client once it is ready. Errors of the driver become ours. */
export async function withDriver<Result>(
  driver: Driver,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    if (driver.state !== 'ready') await whenReady(driver);
    return await work();
  } catch (error) {
    return throwTokenError(error);
  }
}

/** Whether the server answered with an error of this name. */
export function isReply(error: unknown, name: string): boolean {
  return error instanceof Error && error.message.startsWith(`${name} `);
}

export function throwTokenError(error: unknown): never {
  throw tokenErrorOf(error);
}

export function tokenErrorOf(error: unknown): TokenError {
  if (isTokenError(error)) return error;
  if (isReply(error, 'WRONGTYPE')) return corruptRecord();
  return storeUnavailable(reasonOf(error));
}

function reasonOf(error: unknown): StoreReason {
  if (!(error instanceof Error)) return 'unknown';
  if (/^ERR (?:DB index|invalid DB)/.test(error.message)) return 'no_database';
  const [reply = ''] = error.message.split(' ', 1);
  return REPLIES.get(reply) ?? reasonOfConnection(error) ?? reasonOfDriver(error.message);
}

/** By the first word of the server's answer. */
const REPLIES: ReadonlyMap<string, StoreReason> = new Map([
  ['READONLY', 'standby'],
  ['NOAUTH', 'credentials'],
  ['WRONGPASS', 'credentials'],
  ['NOPERM', 'forbidden'],
  ['LOADING', 'busy'],
  ['BUSY', 'busy'],
  ['TRYAGAIN', 'busy'],
  ['MASTERDOWN', 'unreachable'],
  ['CLUSTERDOWN', 'unreachable'],
  // Fewer replicas than `min-replicas-to-write`.
  ['NOREPLICAS', 'unreachable'],
  ['OOM', 'full'],
  // The server cannot save to its disk.
  ['MISCONF', 'full'],
  ['ERR', 'unsupported'],
]);

/** What the clients say. Their texts are read, and never shown. */
function reasonOfDriver(text: string): StoreReason {
  if (/timed out|timeout/i.test(text)) return 'timeout';
  return /not connected|closed|writeable|retries/i.test(text) ? 'unreachable' : 'unknown';
}

export function corruptRecord(): TokenError {
  return new TokenError(
    'store_corrupt',
    'a token record or count in Redis is malformed, or has the layout of another version',
  );
}
