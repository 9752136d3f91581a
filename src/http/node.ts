import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { Readable } from 'node:stream';
import { fail, internalFault, Refusal, textOf } from './answers.ts';
import type { TokenHandler } from './handler.ts';
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
  return async (received, outgoing) => {
    // Whoever answered it has decided: nothing may be issued or changed behind a refusal.
    if (outgoing.headersSent) return;
    // The compatibility layer of node:http2 is made to look like this.
    const incoming = received as NodeRequest;
    const { signal, release } = departureOf(incoming, outgoing as ServerResponse);
    const request = toRequest(incoming, targetFor(handler, incoming), signal);
    const response = request && (await handler(request).catch(() => fail(internalFault())));
    release();
    await sendResponse(response ?? fail(UNREADABLE), outgoing);
  };
}

/**
 * Answers with a Fetch `Response`, such as the one of a guard. Does nothing where somebody else has
 * answered, such as a middleware that waits no longer.
 *
 * @example
 * const outcome = await guard(request);
 * if (!outcome.ok) return sendResponse(outcome.response, response);
 */
export async function sendResponse(
  response: Response,
  to: ServerResponse | Http2ServerResponse,
): Promise<void> {
  const outgoing = to as ServerResponse;
  // Waits in any case: only then it is known whether a request without a body is complete.
  const content = await (textOf(response) ?? response.arrayBuffer());
  const body = typeof content === 'string' ? Buffer.from(content) : Buffer.from(content);
  if (outgoing.headersSent) return;
  outgoing.statusCode = response.status;
  for (const [name, value] of response.headers) {
    // The only header that may come twice, here and from a middleware.
    if (name === 'set-cookie') outgoing.appendHeader(name, value);
    else outgoing.setHeader(name, value);
  }
  refuseRest(to);
  if (response.body !== null) outgoing.setHeader('content-length', body.length);
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

/** Tells when a client goes away, which it may have done before, until it is released. */
function departureOf(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): { signal: AbortSignal; release: () => void } {
  const departure = new AbortController();
  const leave = () => departure.abort();
  // The first for HTTP/2 as well, where no answer is ever called destroyed.
  if (incoming.aborted || outgoing.destroyed) leave();
  outgoing.once('close', leave);
  return { signal: departure.signal, release: () => outgoing.off('close', leave) };
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

const UNREADABLE = new Refusal('invalid_request', 'the request cannot be read');

/** Fetch has no request for these; another that is taken nowhere stands in for them. */
const BEYOND_FETCH = ['CONNECT', 'TRACE', 'TRACK'];

/** `undefined` for what cannot be read, such as a parsed body that JSON has no words for. */
function toRequest(
  incoming: NodeRequest,
  target: string,
  signal: AbortSignal,
): Request | undefined {
  const named = incoming.method ?? 'GET';
  const method = BEYOND_FETCH.includes(named) ? 'OPTIONS' : named;
  try {
    const body = method === 'GET' || method === 'HEAD' ? null : bodyOf(incoming, signal);
    const init = { method, headers: headersOf(incoming), body, signal, duplex: 'half' };
    const request = new Request(toUrl(target), init as RequestInit);
    return withAddress(request, incoming.socket?.remoteAddress);
  } catch {
    return undefined;
  }
}

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

function bodyOf(
  incoming: NodeRequest,
  signal: AbortSignal,
): NonNullable<RequestInit['body']> | null {
  const { headers, body, httpVersionMajor } = incoming;
  // From HTTP/2 on, a body needs no header.
  const hasBody =
    httpVersionMajor > 1 ||
    headers['transfer-encoding'] !== undefined ||
    Number(headers['content-length']) > 0;
  if (!hasBody) return null;
  if (body === undefined || !incoming.readableDidRead) {
    // What there is may be a part only, and would be taken for the whole.
    signal.throwIfAborted();
    return Readable.toWeb(incoming) as ReadableStream<Uint8Array>;
  }
  if (typeof body === 'string' || body instanceof Uint8Array) {
    return body as NonNullable<RequestInit['body']>;
  }
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(headers['content-type'] ?? '');
  return isForm ? formOf(body) : JSON.stringify(body);
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
