import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { fail, internalFault, Refusal } from './answers.ts';
import type { TokenHandler } from './handler.ts';

/** A request of Node's own, as frameworks on top of it pass it on. */
export interface NodeRequest extends IncomingMessage {
  /** The target before a router cut off what it is mounted under. */
  originalUrl?: string;
  /** What a body parser made of the body, which can then not be read again. */
  body?: unknown;
}

/**
 * Lets `node:http`, Express, Connect and the like call a Fetch handler. Works at the root, mounted
 * under a path, and behind a body parser.
 *
 * @example
 * createServer(toNodeListener(tokenHandler({ tokens, authenticate }))).listen(8787, '127.0.0.1');
 * app.use('/auth', toNodeListener(tokenHandler({ tokens, authenticate }))); // Express
 */
export function toNodeListener(
  handler: TokenHandler,
): (request: NodeRequest, response: ServerResponse) => Promise<void> {
  return async (incoming, outgoing) => {
    const aborted = new AbortController();
    outgoing.once('close', () => aborted.abort());
    const request = toRequest(incoming, targetFor(handler, incoming), aborted.signal);
    const response = request && (await handler(request).catch(() => fail(internalFault())));
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
export async function sendResponse(response: Response, outgoing: ServerResponse): Promise<void> {
  const body = Buffer.from(await response.arrayBuffer());
  if (outgoing.headersSent) return;
  outgoing.statusCode = response.status;
  for (const [name, value] of response.headers) outgoing.setHeader(name, value);
  const { req: incoming } = outgoing;
  // What is left of a body that nobody has read would be taken for the next request.
  if (!incoming.complete && incoming.httpVersionMajor < 2) {
    outgoing.setHeader('connection', 'close');
  }
  if (response.body !== null) outgoing.setHeader('content-length', body.length);
  outgoing.end(body);
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
    const body = method === 'GET' || method === 'HEAD' ? null : bodyOf(incoming);
    const init = { method, headers: headersOf(incoming), body, signal, duplex: 'half' };
    return new Request(toUrl(target), init as RequestInit);
  } catch {
    return undefined;
  }
}

/** From the raw headers: where one came twice, both must be seen. */
function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
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

function bodyOf(incoming: NodeRequest): NonNullable<RequestInit['body']> | null {
  const { headers, body, httpVersionMajor } = incoming;
  // From HTTP/2 on, a body needs no header.
  const hasBody =
    httpVersionMajor > 1 ||
    headers['transfer-encoding'] !== undefined ||
    Number(headers['content-length']) > 0;
  if (!hasBody) return null;
  if (body === undefined || !incoming.readableDidRead) {
    return Readable.toWeb(incoming) as ReadableStream<Uint8Array>;
  }
  return typeof body === 'string' || body instanceof Uint8Array
    ? (body as NonNullable<RequestInit['body']>)
    : JSON.stringify(body);
}
