import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { setImmediate } from '../../time/timers.ts';

/** Calls of all connections that wait for the answer to the one before them. @bound */
export const MAX_WAITING_CALLS = 10_000;

/** Calls of one connection that wait for the answer to the one before them. @bound */
export const MAX_WAITING_CALLS_OF_CONNECTION = 1000;

/** Calls that waited and that start in one turn of the event loop. @bound */
export const STARTED_A_TURN = 16;

type Incoming = IncomingMessage | Http2ServerRequest;
type Outgoing = ServerResponse | Http2ServerResponse;

/** Answers a call. The promise that {@link inTurn} returns resolves to its result. */
type Work = () => Promise<void> | void;

/** A call that waits for its turn. */
interface WaitingCall {
  readonly outgoing: Outgoing;
  readonly work: Work;
  readonly resolve: (result: Promise<void> | void) => void;
}

/** How many calls of a connection start without waiting, and how many are in progress. */
interface Limits {
  readonly started: number;
  readonly inProgress: number;
}

/** Answers go out in the order of the requests, so the next one can wait. */
const HTTP_1: Limits = { started: 1, inProgress: 1 };
/** A proxy may send the calls of many clients over one connection. */
const HTTP_2: Limits = { started: 4, inProgress: 100 };

/**
 * Runs `work` when it is the turn of its connection.
 *
 * Node.js passes on all requests that a client has sent without waiting for answers. Their work would all
 * be done before any other client's. So the next call of a connection waits until the one before it has
 * been answered and the system has taken the answer, and then for a turn of the event loop. A client that
 * does not read causes no more work.
 */
export function inTurn(incoming: Incoming, outgoing: Outgoing, work: Work): Promise<void> | void {
  const connection = connectionOf(incoming);
  // Another listener of this package has passed the call on.
  if (connection === undefined || connection.running.has(outgoing)) return work();
  return connection.add(outgoing, work);
}

class Connection {
  readonly running = new Set<Outgoing>();
  readonly #waiting: WaitingCall[] = [];
  readonly #limits: Limits;
  /** Of HTTP/1, where reading can stop while calls wait. */
  readonly #socket: IncomingMessage['socket'] | undefined;
  #isReady = false;
  #isClosing = false;

  constructor(limits: Limits, socket?: IncomingMessage['socket']) {
    this.#limits = limits;
    this.#socket = socket;
  }

  add(outgoing: Outgoing, work: Work): Promise<void> | void {
    const { length } = this.#waiting;
    if (length === 0 && this.running.size < this.#limits.started) return this.#run(outgoing, work);
    if (this.#isClosing || (length > 0 && isFull(length))) return this.#refuse(outgoing);
    return new Promise((resolve) => {
      this.#waiting.push({ outgoing, work, resolve });
      turns.waiting += 1;
      this.#socket?.pause();
      this.#offer();
    });
  }

  startNext(): void {
    this.#isReady = false;
    const call = this.#next();
    if (this.#waiting.length === 0) this.#socket?.resume();
    call?.resolve(this.#run(call.outgoing, call.work));
    this.#offer();
  }

  /** The next call that its client has not taken back, as it can over HTTP/2. */
  #next(): WaitingCall | undefined {
    for (;;) {
      const call = this.#waiting.shift();
      if (call === undefined) return undefined;
      turns.waiting -= 1;
      if (!isGone(call.outgoing)) return call;
      call.resolve();
    }
  }

  /** Forgets the calls that wait: their client has gone. */
  close(): void {
    for (const call of this.#waiting.splice(0)) {
      turns.waiting -= 1;
      drop(call.outgoing);
      call.resolve();
    }
  }

  #run(outgoing: Outgoing, work: Work): Promise<void> | void {
    this.running.add(outgoing);
    outgoing.once('close', () => {
      // Node.js reads on after each answer.
      if (this.#waiting.length > 0) this.#socket?.pause();
      // In the next turn: otherwise a client could begin calls and take them back without end.
      setImmediate(() => {
        this.running.delete(outgoing);
        this.#offer();
      });
    });
    return work();
  }

  /** Lines up for the next turn, if a call can start then. */
  #offer(): void {
    const hasWork = this.#waiting.length > 0 && this.running.size < this.#limits.inProgress;
    if (!hasWork || this.#isReady) return;
    this.#isReady = true;
    turns.ready.push(this);
    schedule();
  }

  /** Over HTTP/1, the connection ends after the calls that wait already. */
  #refuse(outgoing: Outgoing): void {
    if ('stream' in outgoing) {
      outgoing.stream?.close(REFUSED_STREAM);
      return;
    }
    const last = this.#waiting.at(-1)?.outgoing;
    if (last !== undefined && !last.headersSent) last.setHeader('connection', 'close');
    this.#isClosing = true;
    drop(outgoing);
  }
}

/** RFC 9113 section 7: nothing was done, so the client may send the call again. */
const REFUSED_STREAM = 7;

/** By sockets of HTTP/1, and by sessions of HTTP/2. */
const connections = new WeakMap<object, Connection>();

/** The connections whose next call can start, and the number of calls that wait. */
const turns = { ready: [] as Connection[], waiting: 0, isScheduled: false };

function isFull(length: number): boolean {
  return length >= MAX_WAITING_CALLS_OF_CONNECTION || turns.waiting >= MAX_WAITING_CALLS;
}

function schedule(): void {
  if (turns.isScheduled) return;
  turns.isScheduled = true;
  setImmediate(() => {
    turns.isScheduled = false;
    for (const connection of turns.ready.splice(0, STARTED_A_TURN)) connection.startNext();
    if (turns.ready.length > 0) schedule();
  });
}

/** `undefined` for requests that a cloud gateway makes up. */
function connectionOf(incoming: Incoming): Connection | undefined {
  const isHttp2 = 'stream' in incoming;
  const { socket } = incoming;
  const carrier = isHttp2 ? incoming.stream?.session : socket;
  if (carrier === undefined || carrier === null || !('once' in carrier)) return undefined;
  const known = connections.get(carrier);
  if (known !== undefined) return known;
  const connection = isHttp2 ? new Connection(HTTP_2) : new Connection(HTTP_1, socket);
  connections.set(carrier, connection);
  carrier.once('close', () => connection.close());
  return connection;
}

function isGone(outgoing: Outgoing): boolean {
  return 'stream' in outgoing ? outgoing.stream?.destroyed !== false : outgoing.destroyed;
}

/** Node.js does not tell the listeners of a response that never had the connection. */
function drop(outgoing: Outgoing): void {
  if (!('stream' in outgoing) && outgoing.socket === null) outgoing.emit('close');
}
