// A TCP proxy on loopback in front of a server, with faults that can be turned on and off.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** What happens to existing and to new connections. */
export type Mode =
  | 'pass'
  /** Refuses new connections and closes existing ones. */
  | 'refuse'
  | 'reset'
  /** Accepts connections but passes nothing on. Delivers all of it when the mode ends. */
  | 'hang'
  /** Passes nothing on, not even a close. Connections that were in this mode stay dead afterwards. */
  | 'halfOpen'
  /** Passes one byte a second in each direction. */
  | 'trickle'
  /** Replaces what the server sends by random bytes, none of which starts a Redis message. */
  | 'garbage'
  | { readonly delayMs: number };

export interface TcpProxy {
  readonly port: number;
  /** How many connections clients hold open. */
  readonly connections: number;
  set(mode: Mode): Promise<void>;
  close(): Promise<void>;
}

/**
 * Starts a proxy for a port on loopback.
 *
 * @example
 * const proxy = await startProxy(5432);
 * await proxy.set('halfOpen');
 */
export async function startProxy(target: number): Promise<TcpProxy> {
  const links = new Set<Link>();
  let mode: Mode = 'pass';
  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const link = new Link(client, target, mode);
    links.add(link);
    link.onClose(() => links.delete(link));
  });
  const listen = async (port: number) => {
    listener.listen(port, '127.0.0.1');
    await once(listener, 'listening');
  };
  const set = async (next: Mode) => {
    mode = next;
    if (mode === 'refuse') listener.close();
    else if (!listener.listening) await listen(port);
    for (const link of links) link.set(mode);
  };
  await listen(0);
  const { port } = listener.address() as AddressInfo;
  return {
    port,
    get connections() {
      return [...links].filter((link) => link.isOpen).length;
    },
    set,
    close: () => set('refuse'),
  };
}

/** A connection of a client, paired with a connection to the server. */
class Link {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #flows: readonly Flow[];
  #mode: Mode = 'pass';

  constructor(client: Socket, target: number, mode: Mode) {
    this.#client = client;
    this.#server = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    this.#flows = [
      new Flow(this.#client, this.#server, (bytes) => bytes),
      new Flow(this.#server, this.#client, ({ length }) => garbage(length)),
    ];
    this.set(mode);
  }

  /** Whether the client still holds the connection. */
  get isOpen(): boolean {
    return !this.#client.closed && !this.#client.readableEnded;
  }

  onClose(listener: () => void): void {
    const sides = [this.#client, this.#server];
    const isClosed = () => sides.every(({ closed }) => closed) && listener();
    for (const side of sides) side.once('close', isClosed);
  }

  set(mode: Mode): void {
    if (mode === 'reset') this.#client.resetAndDestroy();
    if (mode === 'refuse') this.#client.destroy();
    if (mode === 'reset' || mode === 'refuse') this.#server.destroy();
    if (this.#mode === 'halfOpen') return;
    this.#mode = mode;
    for (const flow of this.#flows) flow.set(mode);
  }
}

const TRICKLE_MS = 1000;

/** One direction of a connection. Passes the end on after the last byte, in the same way as a byte. */
class Flow {
  readonly #to: Socket;
  readonly #garble: (bytes: Buffer) => Buffer;
  #waiting: Buffer = Buffer.alloc(0);
  #isOver = false;
  #mode: Mode = 'pass';
  #trickle: NodeJS.Timeout | undefined;

  constructor(from: Socket, to: Socket, garble: (bytes: Buffer) => Buffer) {
    this.#to = to;
    this.#garble = garble;
    from.on('data', (bytes) => this.#take(bytes));
    from.on('end', () => this.#end());
    from.on('error', () => this.#end());
    from.on('close', () => this.#end());
    to.on('close', () => clearInterval(this.#trickle));
  }

  set(mode: Mode): void {
    this.#mode = mode;
    clearInterval(this.#trickle);
    if (mode === 'pass') this.#pass(this.#waiting.length);
    if (mode === 'trickle') this.#trickle = setInterval(() => this.#pass(1), TRICKLE_MS);
  }

  #take(bytes: Buffer): void {
    const taken = this.#mode === 'garbage' ? this.#garble(bytes) : bytes;
    this.#waiting = Buffer.concat([this.#waiting, taken]);
    this.#move(taken.length);
  }

  #end(): void {
    this.#isOver = true;
    this.#move(0);
  }

  #move(count: number): void {
    if (this.#mode === 'pass' || this.#mode === 'garbage') this.#pass(count);
    if (typeof this.#mode === 'object') setTimeout(() => this.#pass(count), this.#mode.delayMs);
  }

  #pass(count: number): void {
    if (count > 0) this.#to.write(this.#waiting.subarray(0, count));
    this.#waiting = this.#waiting.subarray(count);
    if (this.#isOver && this.#waiting.length === 0) this.#to.end();
  }
}

function garbage(length: number): Buffer {
  return Buffer.from(randomBytes(length).map((byte) => byte | 0x80));
}
