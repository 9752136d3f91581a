import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import { Server, type Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import * as z from 'zod/mini';
import { MAX_TIMEOUT_MS, SHUTDOWN_MS } from '../../bounds.ts';
import { once } from '../../inputs/once.ts';
import { checkOptions, strict, wholeNumber } from '../../inputs/schemas.ts';
import { nextTurn } from '../../time/deadline.ts';
import { delay, performance } from '../../time/timers.ts';

/** Milliseconds for which `tokenwright serve` still takes connections while it stops, at most. @bound */
export const ACCEPT_MS = 1000;

/** The time without new connections after which no more are expected. */
const QUIET_MS = 150;
/** Longer than a busy client with an answer, or with a new connection, needs to send its next call. */
const IDLE_MS = 1000;
/** The time after which calls no longer wait for other clients while the listener closes. */
const HOLD_MS = 250;
/** Longer than a client with an answer needs to open its next connection. */
const STILL_MS = 30;
const LOOK_MS = 10;

/** The last call on a connection, or the start of one that had none. */
interface LastCall {
  /** When it ended, by the monotonic clock. */
  readonly endedAt: number;
  /** The bytes that had come until then. If there are more, the next call has begun. */
  readonly bytesRead: number;
}

/** The options of {@link gracefulStop}. */
export interface GracefulStopOptions {
  /**
   * Milliseconds that calls in progress have from the start of the stop, from 1 to 600 000. Those that
   * take longer are cut off. @default 6000
   */
  readonly graceMs?: number | undefined;
}

/**
 * Prepares a server of `node:http` to stop without losing a call. Call it before the server listens:
 * connections that were opened before are not waited for.
 *
 * The returned function stops the server, as `tokenwright serve` does. It goes on until no new connection
 * has come for 150 ms, but for at most a second, which gives load balancers time to notice. Then it takes
 * no new connections, adds `Connection: close` to each response, and closes a connection when it has had
 * no call for a second. It resolves, when all connections are closed, to the number of calls that were
 * cut off because they took longer than `graceMs`. Calling it again returns the same promise.
 *
 * It closes no store, so call `tokens.close()` afterwards. Connections that were upgraded, such as
 * WebSockets, count as idle. Servers of `node:https` and `node:http2` are not supported.
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * const server = createServer(toNodeListener(tokenHandler({ tokens, authenticate })));
 * const stop = gracefulStop(server, { graceMs: 5000 });
 * server.listen(8787, '127.0.0.1');
 * process.once('SIGTERM', async () => {
 *   const cut = await stop();
 *   await tokens.close();
 *   console.log(`${cut} calls were cut off`);
 * });
 */
export function gracefulStop(
  server: HttpServer,
  options: GracefulStopOptions = {},
): () => Promise<number> {
  const { graceMs = SHUTDOWN_MS } = checkOptions(stopOptions(), { ...options, server });
  const shutdown = new Shutdown(server, graceMs);
  let ended: Promise<number> | undefined;
  return () => {
    ended ??= shutdown.end();
    return ended;
  };
}

const stopOptions = once(() =>
  strict({
    server: z.custom<HttpServer>(isHttpServer, {
      error: 'server must be a Server of node:http',
    }),
    graceMs: z.optional(wholeNumber(1, MAX_TIMEOUT_MS, 'graceMs')),
  }),
);

/** Not by the class of `node:http`: importing that loads Fetch. */
function isHttpServer(value: unknown): boolean {
  if (!(value instanceof Server) || value instanceof TlsServer) return false;
  return 'closeIdleConnections' in value;
}

type RequestListener = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Ends a server without losing a call.
 *
 * A client may have sent a call that the server has not read yet: on a new connection, on an idle one,
 * or on one that still waits to be accepted. If the server closes it then, the client cannot know
 * whether the call was done. So nothing is closed before it has been quiet for a while.
 */
class Shutdown {
  readonly #server: HttpServer;
  readonly #graceMs: number;
  readonly #connections = new Map<Socket, LastCall>();
  /** The responses that are not sent yet. */
  readonly #open = new Set<ServerResponse>();
  /** Connections that were accepted, and calls that were answered. */
  #changes = 0;
  #acceptedAt = 0;
  #isClosing = false;

  constructor(server: HttpServer, graceMs: number) {
    this.#server = server;
    this.#graceMs = graceMs;
    server.on('connection', (socket) => this.#addConnection(socket));
    server.prependListener('request', this.#addCall);
  }

  /**
   * Stops accepting connections, answers what is in progress, and closes the connections.
   *
   * @returns how many calls were cut off, because they took too long
   */
  async end(): Promise<number> {
    const start = performance.now();
    const latest = start + this.#graceMs;
    this.#acceptedAt = start;
    // Load balancers go on opening connections until they have noticed.
    while (!isPast(this.#acceptedAt + QUIET_MS) && !isPast(Math.min(start + ACCEPT_MS, latest))) {
      await delay(LOOK_MS);
    }
    const answerHeld = await this.#stopAccepting();
    this.#isClosing = true;
    for (const response of this.#open) announceEnd(response);
    answerHeld();
    const idleUntil = performance.now() + IDLE_MS;
    while (this.#connections.size > 0 && !isPast(latest)) {
      if (isPast(idleUntil)) this.#closeIdle();
      await delay(LOOK_MS);
    }
    const cut = this.#open.size;
    for (const socket of this.#connections.keys()) socket.destroy();
    return cut;
  }

  #addConnection(socket: Socket): void {
    this.#changes += 1;
    this.#acceptedAt = performance.now();
    this.#connections.set(socket, { endedAt: this.#acceptedAt, bytesRead: 0 });
    socket.once('close', () => this.#connections.delete(socket));
  }

  readonly #addCall: RequestListener = ({ socket }, response) => {
    this.#open.add(response);
    if (this.#isClosing) announceEnd(response);
    // Emitted when the system has taken the whole response, or when the client has gone.
    response.once('close', () => {
      this.#open.delete(response);
      this.#changes += 1;
      if (!this.#connections.has(socket)) return;
      const { bytesRead } = socket;
      this.#connections.set(socket, { endedAt: performance.now(), bytesRead });
    });
  };

  /**
   * Closes the listener, which resets the connections that still wait to be accepted. Clients open more
   * when they get answers, so all calls wait until every client waits for an answer. If connections go on
   * coming, the listener closes after a turn of the event loop that accepted none: each turn accepts one.
   *
   * @returns a function that answers the calls that came meanwhile
   */
  async #stopAccepting(): Promise<() => void> {
    const start = performance.now();
    const answerHeld = this.#hold();
    let quietSince = start;
    let now: number;
    let isQuiet: boolean;
    do {
      const changes = this.#changes;
      await nextTurn();
      now = performance.now();
      if (changes !== this.#changes) quietSince = now;
      isQuiet =
        changes === this.#changes && (now > start + HOLD_MS || now - quietSince >= STILL_MS);
    } while (!isQuiet && now < start + 2 * HOLD_MS);
    // The `close` of an HTTP server also closes idle connections, on which a call may be on its way.
    Server.prototype.close.call(this.#server);
    return answerHeld;
  }

  /** Keeps calls from the listeners of the host until the returned function is called. */
  #hold(): () => void {
    const server = this.#server;
    const listeners = server.rawListeners('request').filter((one) => one !== this.#addCall);
    const held: Parameters<RequestListener>[] = [];
    const hold: RequestListener = (...call) => held.push(call);
    for (const listener of listeners) server.off('request', listener as RequestListener);
    server.on('request', hold);
    return () => {
      server.off('request', hold);
      for (const listener of listeners) server.on('request', listener as RequestListener);
      for (const call of held) for (const listener of listeners) listener.apply(server, call);
    };
  }

  #closeIdle(): void {
    const busy = new Set([...this.#open].map(({ req }) => req.socket));
    for (const [socket, { endedAt, bytesRead }] of this.#connections) {
      const isIdle = !busy.has(socket) && socket.bytesRead === bytesRead;
      if (isIdle && isPast(endedAt + IDLE_MS)) socket.destroy();
    }
  }
}

function isPast(time: number): boolean {
  return performance.now() >= time;
}

/**
 * Asks the client to send no other call on this connection. If the headers are sent already, the
 * response to the next call does.
 */
function announceEnd(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('connection', 'close');
}
