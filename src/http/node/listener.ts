import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { Readable } from 'node:stream';
import { HttpError, internalError } from '../errors.ts';
import {
  type Body,
  type BodyStream,
  type HeaderName,
  type HttpMessage,
  type HttpRequest,
  headerOf,
  ownForms,
  withIncoming,
} from '../request.ts';
import { fail, toResponse } from '../responses.ts';
import { sendByNode, sendResponse } from './sending.ts';
import { inTurn } from './turns.ts';

/** A request of Node, with members that frameworks add. */
export type NodeRequest = IncomingMessage & {
  /** The target before a router cut off the path it is mounted under. */
  originalUrl?: string | undefined;
  /** The body that a body parser has read; it cannot be read again. */
  body?: unknown;
};

/**
 * Any function from a `Request` to a `Response`. It gets the whole path that the client sent, under a
 * router too. With a `basePath`, like a {@link tokenHandler}, it gets the path that the router left, or
 * the whole one if that begins with the base path.
 */
export type FetchHandler = ((request: Request) => Response | Promise<Response>) & {
  /** The path before the handler's own paths. */
  readonly basePath?: string | undefined;
};

/**
 * Lets `node:http`, `node:http2`, Express, Connect and the like call a Fetch handler: the token service,
 * or any other. Works at the root, mounted under a path, and behind a body parser.
 *
 * The request's signal aborts when the client goes away before there is an answer. A request that a
 * middleware has answered before does not reach the handler.
 *
 * @example
 * createServer(toNodeListener(tokenHandler({ tokens, authenticate }))).listen(8787, '127.0.0.1');
 * app.use('/auth', toNodeListener(tokenHandler({ tokens, authenticate }))); // Express
 * app.use('/hello', toNodeListener((request) => new Response(request.url))); // your own
 */
export function toNodeListener(
  handler: FetchHandler,
): (
  request: NodeRequest | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
) => Promise<void> {
  const answer = ownForms.get(handler)?.answer;
  return async (incoming, outgoing) => {
    // Read now: a router changes it when the call is passed on.
    const target = targetFor(handler, incoming as NodeRequest);
    await inTurn(incoming, outgoing, async () => {
      // A middleware has refused the call, so nothing may be issued or changed.
      if (outgoing.headersSent) return;
      // The compatibility layer of node:http2 has the same members.
      const request = new NodeHttpRequest(
        incoming as NodeRequest,
        outgoing as ServerResponse,
        target,
      );
      if (answer === undefined) {
        const response = await answerByFetch(handler, request);
        request.release();
        return sendResponse(response, outgoing);
      }
      await answer(request, (response, timeoutMs) => {
        request.release();
        return sendByNode(response, request.method, outgoing, timeoutMs);
      });
    });
  };
}

/** For a handler of the host, which may wrap one of this package. */
async function answerByFetch(handler: FetchHandler, request: NodeHttpRequest): Promise<Response> {
  try {
    return await handler(request.toFetchWithBody());
  } catch (error) {
    const failure = error instanceof HttpError ? error : internalError();
    return toResponse(fail(failure), request.method);
  }
}

/**
 * A handler of the host reads the URL that its client wrote. A handler with a base path needs the whole
 * target, and one without needs the rest that the router left. It may also be mounted under one path and
 * have its base path below that.
 */
function targetFor({ basePath }: FetchHandler, incoming: NodeRequest): string {
  const url = originForm(incoming.url ?? '/');
  const originalUrl = originForm(incoming.originalUrl ?? url);
  if (basePath === undefined) return originalUrl;
  if (basePath === '' || !originalUrl.startsWith(basePath)) return url;
  // A path that only begins like the base path is another one.
  return ['', '/', '?'].includes(originalUrl.charAt(basePath.length)) ? originalUrl : url;
}

function unreadableRequest(): HttpError {
  return new HttpError('invalid_request', 'the request cannot be read');
}

/** Fetch forbids these methods. They are read as `OPTIONS`, which is allowed nowhere either. */
const UNSUPPORTED_METHODS = ['CONNECT', 'TRACE', 'TRACK'];

/** The headers and the body of a Node request, which a body parser may have read before. */
export class NodeMessage implements HttpMessage {
  protected readonly message: NodeRequest;

  constructor(message: NodeRequest) {
    this.message = message;
  }

  header(name: HeaderName): string | undefined {
    // What a parser has read, it has decoded as well.
    if (name === 'content-encoding' && this.#isParsed) return undefined;
    return headerOf(this.message, name);
  }

  get #isParsed(): boolean {
    return this.message.body !== undefined && this.message.readableDidRead;
  }

  get body(): Body | null {
    if (this.#isWithoutBody()) return null;
    return this.#isParsed ? this.#serialized(this.message.body) : new NodeBodyStream(this.message);
  }

  #isWithoutBody(): boolean {
    const { headers, httpVersionMajor, method } = this.message;
    if (method === 'GET' || method === 'HEAD') return true;
    // From HTTP/2 on, a body needs no header.
    if (httpVersionMajor > 1 || headers['transfer-encoding'] !== undefined) return false;
    return !(Number(headers['content-length']) > 0);
  }

  /** The text of a parsed body; throws if the parser made something that JSON or a form cannot hold. */
  #serialized(body: unknown): Body {
    if (typeof body === 'string' || body instanceof Uint8Array) return body;
    const type = this.message.headers['content-type'] ?? '';
    try {
      const isForm = /^application\/x-www-form-urlencoded\b/i.test(type);
      return isForm ? formFieldsOf(body).toString() : JSON.stringify(body);
    } catch {
      throw unreadableRequest();
    }
  }
}

class NodeHttpRequest extends NodeMessage implements HttpRequest {
  readonly method: string;
  readonly url: URL;
  readonly #outgoing: ServerResponse;
  #request: Request | undefined;
  #signal: AbortSignal | undefined;
  #leave: (() => void) | undefined;
  #isAnswered = false;

  constructor(incoming: NodeRequest, outgoing: ServerResponse, target: string) {
    super(incoming);
    const { method = 'GET' } = incoming;
    this.method = UNSUPPORTED_METHODS.includes(method) ? 'OPTIONS' : method;
    this.url = toUrl(target);
    this.#outgoing = outgoing;
  }

  get incoming(): IncomingMessage {
    return this.message;
  }

  get address(): string | undefined {
    return this.message.socket?.remoteAddress;
  }

  toFetch(): Request {
    this.#request ??= this.#newRequest((init) =>
      requestWithLazySignal(this.url, init, () => this.#abortSignal()),
    );
    return this.#request;
  }

  /** For a handler of the host, which reads the body itself. */
  toFetchWithBody(): Request {
    return this.#newRequest((init) => {
      const body = this.#webBody() as ReadableStream<Uint8Array> | string | null;
      const more = { body, signal: this.#abortSignal(), duplex: 'half' } as const;
      return new Request(this.url, { ...init, ...more });
    });
  }

  #newRequest(build: (init: RequestInit) => Request): Request {
    try {
      const request = build({ method: this.method, headers: headersOf(this.message) });
      return withIncoming(request, this.message);
    } catch {
      throw unreadableRequest();
    }
  }

  #webBody(): ReadableStream<Uint8Array> | Body | null {
    const { body } = this;
    if (!(body instanceof NodeBodyStream)) return body;
    // The part that has arrived would be taken for the whole body.
    if (this.#hasLeft()) throw unreadableRequest();
    return Readable.toWeb(this.message) as ReadableStream<Uint8Array>;
  }

  /** Call this with the response: from then on, a closed connection does not abort the signal. */
  release(): void {
    this.#isAnswered = true;
    if (this.#leave !== undefined) this.#outgoing.off('close', this.#leave);
  }

  /** Aborts when the client goes away before there is a response; it may have gone already. */
  #abortSignal(): AbortSignal {
    if (this.#signal !== undefined) return this.#signal;
    const controller = new AbortController();
    this.#signal = controller.signal;
    if (this.#isAnswered) return this.#signal;
    this.#leave = () => controller.abort();
    if (this.#hasLeft()) controller.abort();
    this.#outgoing.once('close', this.#leave);
    return this.#signal;
  }

  /** `aborted` covers HTTP/2, whose responses are never destroyed. */
  #hasLeft(): boolean {
    return this.message.aborted || this.#outgoing.destroyed;
  }
}

type RequestClass = new (url: URL, init: RequestInit, signal: () => AbortSignal) => Request;

let lazySignalRequest: RequestClass | undefined;

/**
 * A `Request` that makes its signal on the first read, since a signal costs more than the rest of the
 * request.
 *
 * A class, because a getter that was defined on each request would give each one a hidden class of its
 * own, which keeps the request alive until the next full garbage collection. Made on the first call,
 * because Node.js loads Fetch when `Request` is first read.
 */
function requestWithLazySignal(url: URL, init: RequestInit, signal: () => AbortSignal): Request {
  lazySignalRequest ??= class extends (
    (Request as new (
      url: URL,
      init: RequestInit,
    ) => Omit<Request, 'signal'>)
  ) {
    readonly #signal: () => AbortSignal;

    constructor(at: URL, given: RequestInit, makeSignal: () => AbortSignal) {
      super(at, given);
      this.#signal = makeSignal;
    }

    get signal(): AbortSignal {
      return this.#signal();
    }
  };
  return new lazySignalRequest(url, init, signal);
}

/** Reads the body from the Node stream directly, without a Fetch stream around it. */
class NodeBodyStream implements BodyStream {
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
      // Over HTTP/2, a body that breaks off also emits `end`.
      const { aborted, readableEnded, destroyed } = this.#stream;
      if (aborted || (destroyed && !readableEnded)) throw new TypeError('the body broke off');
      if (readableEnded) return undefined;
      await this.#nextEvent();
    }
  }

  /** Leaves the stream open: the connection ends when the response is sent. */
  cancel(): void {
    this.#isCancelled = true;
    this.#wake();
  }

  #nextEvent(): Promise<void> {
    const stream = this.#stream;
    return new Promise((resolve) => {
      this.#wake = () => {
        for (const event of STREAM_EVENTS) stream.off(event, this.#wake);
        resolve();
      };
      for (const event of STREAM_EVENTS) stream.on(event, this.#wake);
    });
  }
}

const STREAM_EVENTS = ['readable', 'end', 'error', 'close'] as const;

/** From the raw headers, which hold both values of a header that came twice. */
function headersOf(incoming: IncomingMessage): Headers {
  const { rawHeaders } = incoming;
  const headers = new Headers();
  // Requests that a cloud gateway makes up have no raw headers.
  if (rawHeaders.length === 0) {
    for (const [name, value] of Object.entries(incoming.headers)) headers.set(name, String(value));
  }
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2);
    // Fetch forbids the pseudo-headers of HTTP/2.
    if (!name.startsWith(':')) headers.append(name, value);
  }
  return headers;
}

/**
 * The path and query of a target in absolute form, which servers must accept (RFC 9112 section 3.2.2): its
 * host has no meaning here. Any other target is returned as it is.
 */
export function originForm(target: string): string {
  if (target.startsWith('/')) return target;
  const [, rest] =
    /^https?:\/\/(?:\[[\da-f:.]+\]|[\w.~-]+)(?::\d{0,5})?(?![^/?])(.*)$/is.exec(target) ?? [];
  if (rest === undefined) return target;
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/**
 * The target as a URL; the host has no meaning. A target that is not in origin form, or that the URL
 * parser would rewrite, becomes the root, which is 404: its parts could be read in two ways.
 */
function toUrl(target: string): URL {
  const nowhere = new URL('http://localhost/');
  const text = `http://localhost${target}`;
  if (!target.startsWith('/') || target.includes('#') || !URL.canParse(text)) return nowhere;
  const url = new URL(text);
  return url.pathname === target.split('?', 1)[0] ? url : nowhere;
}

/** Throws for a nested object, which some parsers make of brackets in a name. */
function formFieldsOf(body: unknown): URLSearchParams {
  const form = new URLSearchParams();
  for (const [name, values] of Object.entries(Object(body))) {
    for (const value of [values].flat()) {
      if (typeof value !== 'string') throw new TypeError('a field of a form is a text');
      form.append(name, value);
    }
  }
  return form;
}
