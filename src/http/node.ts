import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { Readable } from 'node:stream';
import { type Answer, fail, internalFault, Refusal } from './answers.ts';
import { answererOf, type TokenHandler } from './handler.ts';
import { type Body, type Chunks, type HeaderName, headerOf, type Incoming } from './incoming.ts';
import { withAddress } from './limits.ts';

/** A request of Node's own, as frameworks on top of it pass it on. */
export interface NodeRequest extends IncomingMessage {
  /** The target before a router cut off what it is mounted under. */
  originalUrl?: string;
  /** What a body parser made of the body, which can then not be read again. */
  body?: unknown;
}

/**
 * Lets `node:http`, `node:http2`, Express, Connect and the like call a Fetch handler. Works at the
 * root, mounted under a path, and behind a body parser.
 *
 * The request's signal aborts when the client goes away before there is an answer. What a middleware
 * has answered before is not looked at any more.
 *
 * @example
 * createServer(toNodeListener(tokenHandler({ tokens, authenticate }))).listen(8787, '127.0.0.1');
 * app.use('/auth', toNodeListener(tokenHandler({ tokens, authenticate }))); // Express
 */
export function toNodeListener(
  handler: TokenHandler,
): (
  request: NodeRequest | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
) => Promise<void> {
  const answerer = answererOf(handler);
  return async (received, outgoing) => {
    // Whoever answered it has decided: nothing may be issued or changed behind a refusal.
    if (outgoing.headersSent) return;
    // The compatibility layer of node:http2 is made to look like this.
    const incoming = new NodeIncoming(
      received as NodeRequest,
      outgoing as ServerResponse,
      targetFor(handler, received as NodeRequest),
    );
    const answer = await (answerer?.(incoming) ?? answerByFetch(handler, incoming));
    incoming.release();
    if (answer instanceof Response) await sendResponse(answer, outgoing);
    else send(answer, incoming.method, outgoing as ServerResponse);
  };
}

/** For a handler that is not one of ours, or wraps one. */
async function answerByFetch(
  handler: TokenHandler,
  incoming: NodeIncoming,
): Promise<Response | Answer> {
  let request: Request;
  try {
    request = incoming.toRequest(incoming.webBody());
  } catch {
    return fail(unreadable());
  }
  try {
    return await handler(request);
  } catch {
    return fail(internalFault());
  }
}

/**
 * Answers with a Fetch `Response`, such as the one of a guard. Does nothing where somebody else has
 * answered, such as a middleware that waits no longer.
 *
 * @throws {TypeError} when the body of the response has been read before
 * @example
 * const outcome = await guard(request);
 * if (!outcome.ok) return sendResponse(outcome.response, response);
 */
export async function sendResponse(
  response: Response,
  to: ServerResponse | Http2ServerResponse,
): Promise<void> {
  // Waits in any case: only then it is known whether a request without a body is complete.
  const body = new Uint8Array(await response.arrayBuffer());
  const headers: [string, string][] = [...response.headers];
  write(response.status, headers, response.body && body, to as ServerResponse);
}

function send({ status, headers, body }: Answer, method: string, to: ServerResponse): void {
  write(status, Object.entries(headers), method === 'HEAD' ? null : body, to);
}

function write(
  status: number,
  headers: readonly (readonly [name: string, value: string])[],
  body: string | Uint8Array | null,
  outgoing: ServerResponse,
): void {
  if (outgoing.headersSent) return;
  outgoing.statusCode = status;
  for (const [name, value] of headers) {
    // The only header that may come twice, here and from a middleware.
    if (name === 'set-cookie') outgoing.appendHeader(name, value);
    else outgoing.setHeader(name, value);
  }
  refuseRest(outgoing);
  if (body === null) {
    outgoing.end();
    return;
  }
  outgoing.setHeader('content-length', Buffer.byteLength(body));
  outgoing.end(body);
}

/**
 * Takes no more of a body that nobody has read to its end: over HTTP/1 it would be taken for the next
 * request; over HTTP/2 its stream would stay open for as long as the client sends nothing more.
 */
function refuseRest(outgoing: ServerResponse | Http2ServerResponse): void {
  if (!('stream' in outgoing)) {
    if (!outgoing.req.complete) outgoing.setHeader('connection', 'close');
    return;
  }
  const { req: incoming, stream } = outgoing;
  if (stream.endAfterHeaders || incoming.readableEnded) return;
  stream.once('finish', () => stream.destroy());
}

/**
 * A handler with a base path wants the whole target, one without wants it as the router cut it;
 * unless it is mounted under one path and has its base path below that.
 */
function targetFor(
  { basePath }: TokenHandler,
  { url = '/', originalUrl = url }: NodeRequest,
): string {
  return basePath !== '' && originalUrl.startsWith(`${basePath}/`) ? originalUrl : url;
}

function unreadable(): Refusal {
  return new Refusal('invalid_request', 'the request cannot be read');
}

/** Fetch has no request for these; another that is taken nowhere stands in for them. */
const BEYOND_FETCH = ['CONNECT', 'TRACE', 'TRACK'];

/** A request of Node's own. What Fetch would make of it is made only for those who ask for it. */
class NodeIncoming implements Incoming {
  readonly method: string;
  readonly url: URL;
  readonly #incoming: NodeRequest;
  readonly #outgoing: ServerResponse;
  #request: Request | undefined;
  #leave: (() => void) | undefined;

  constructor(incoming: NodeRequest, outgoing: ServerResponse, target: string) {
    const { method = 'GET' } = incoming;
    this.method = BEYOND_FETCH.includes(method) ? 'OPTIONS' : method;
    this.url = toUrl(target);
    this.#incoming = incoming;
    this.#outgoing = outgoing;
  }

  get address(): string | undefined {
    return this.#incoming.socket?.remoteAddress;
  }

  header(name: HeaderName): string | undefined {
    return headerOf(this.#incoming, name);
  }

  get body(): Body | null {
    if (this.#isWithoutBody()) return null;
    const { body, readableDidRead } = this.#incoming;
    const isParsed = body !== undefined && readableDidRead;
    return isParsed ? this.#readAgain(body) : new NodeChunks(this.#incoming);
  }

  request(): Request {
    try {
      this.#request ??= this.toRequest(null);
      return this.#request;
    } catch {
      throw unreadable();
    }
  }

  toRequest(body: ReadableStream<Uint8Array> | Body | null): Request {
    const init = {
      method: this.method,
      headers: headersOf(this.#incoming),
      body,
      signal: this.#departure(),
      duplex: 'half',
    };
    const request = new Request(this.url, init as RequestInit);
    return withAddress(request, this.address);
  }

  /** The body as Fetch has it. */
  webBody(): ReadableStream<Uint8Array> | Body | null {
    const { body } = this;
    if (!(body instanceof NodeChunks)) return body;
    // What there is may be a part only, and would be taken for the whole.
    if (this.#hasLeft()) throw unreadable();
    return Readable.toWeb(this.#incoming) as ReadableStream<Uint8Array>;
  }

  /** There is an answer: that the connection is closed says no more that the client goes away. */
  release(): void {
    if (this.#leave !== undefined) this.#outgoing.off('close', this.#leave);
  }

  /** Aborts when the client goes away, which it may have done before, until there is an answer. */
  #departure(): AbortSignal {
    const departure = new AbortController();
    this.#leave = () => departure.abort();
    if (this.#hasLeft()) departure.abort();
    this.#outgoing.once('close', this.#leave);
    return departure.signal;
  }

  /** The first for HTTP/2 as well, where no answer is ever called destroyed. */
  #hasLeft(): boolean {
    return this.#incoming.aborted || this.#outgoing.destroyed;
  }

  #isWithoutBody(): boolean {
    const { headers, httpVersionMajor } = this.#incoming;
    if (this.method === 'GET' || this.method === 'HEAD') return true;
    // From HTTP/2 on, a body needs no header.
    if (httpVersionMajor > 1 || headers['transfer-encoding'] !== undefined) return false;
    return !(Number(headers['content-length']) > 0);
  }

  /** Throws for what was parsed into something that JSON or a form has no words for. */
  #readAgain(body: unknown): Body {
    if (typeof body === 'string' || body instanceof Uint8Array) return body;
    const type = this.#incoming.headers['content-type'] ?? '';
    try {
      const isForm = /^application\/x-www-form-urlencoded\b/i.test(type);
      return isForm ? formOf(body).toString() : JSON.stringify(body);
    } catch {
      throw unreadable();
    }
  }
}

/** A body that is read from a stream of Node's, without one of Fetch around it. */
class NodeChunks implements Chunks {
  readonly #stream: NodeRequest;
  #isCancelled = false;
  #wake: () => void = () => {};

  constructor(stream: NodeRequest) {
    this.#stream = stream;
  }

  async next(): Promise<Uint8Array | string | undefined> {
    for (;;) {
      if (this.#isCancelled) return undefined;
      const chunk: Uint8Array | string | null = this.#stream.read();
      if (chunk !== null) return chunk;
      // Over HTTP/2 what breaks off also ends.
      const { aborted, readableEnded, destroyed } = this.#stream;
      if (aborted || (destroyed && !readableEnded)) throw new TypeError('the body broke off');
      if (readableEnded) return undefined;
      await this.#change();
    }
  }

  /** The stream stays as it is: it is the connection that ends, when the answer is sent. */
  cancel(): void {
    this.#isCancelled = true;
    this.#wake();
  }

  #change(): Promise<void> {
    const stream = this.#stream;
    return new Promise((resolve) => {
      this.#wake = () => {
        for (const event of CHANGES) stream.off(event, this.#wake);
        resolve();
      };
      for (const event of CHANGES) stream.on(event, this.#wake);
    });
  }
}

const CHANGES = ['readable', 'end', 'error', 'close'] as const;

/** From the raw headers: where one came twice, both must be seen. */
function headersOf(incoming: IncomingMessage): Headers {
  const { rawHeaders } = incoming;
  const headers = new Headers();
  // What stands in for a request where there is no server, such as behind a cloud's gateway, has none.
  if (rawHeaders.length === 0) {
    for (const [name, value] of Object.entries(incoming.headers)) headers.set(name, String(value));
  }
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2);
    // HTTP/2 pseudo-headers are no headers of Fetch.
    if (!name.startsWith(':')) headers.append(name, value);
  }
  return headers;
}

/**
 * The target as a URL. One that is not in origin form, or that the URL parser would rewrite, means
 * something else than it says: it leads to the root, where nothing is. The host means nothing.
 */
function toUrl(target: string): URL {
  const nowhere = new URL('http://localhost/');
  const text = `http://localhost${target}`;
  if (!target.startsWith('/') || target.includes('#') || !URL.canParse(text)) return nowhere;
  const url = new URL(text);
  return url.pathname === target.split('?', 1)[0] ? url : nowhere;
}

/** Throws for what a form has no words for, such as what a parser has read brackets as. */
function formOf(body: unknown): URLSearchParams {
  const form = new URLSearchParams();
  for (const [name, values] of Object.entries(Object(body))) {
    for (const value of [values].flat()) {
      if (typeof value !== 'string') throw new TypeError('a field of a form is a text');
      form.append(name, value);
    }
  }
  return form;
}
