import type { ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';
import { clearTimeout, setImmediate, setTimeout } from '../../time/timers.ts';
import { failureIn, type HttpResponse, noteFailure, toResponse } from '../responses.ts';

/**
 * Sends a response. The promise resolves when the system has taken all of it; `undefined` if it has
 * already. A client that does not read keeps the response in memory, so its call holds slots until then.
 */
export type Send = (response: HttpResponse, timeoutMs: number) => Promise<void> | undefined;

/** The Fetch `Response`, without a body for `HEAD`. `sent` resolves when its stream has ended. */
export function toFetchResponse(
  method: string,
  whole: HttpResponse,
  timeoutMs: number,
): { readonly response: Response; readonly sent?: Promise<void> } {
  if (!('pieces' in whole)) return { response: toResponse(whole, method) };
  const { status, headers, pieces } = whole;
  if (method === 'HEAD') return { response: new Response(null, { status, headers }) };
  const { stream, sent } = streamOf(pieces, timeoutMs);
  return { response: new Response(stream, { status, headers }), sent };
}

/** Makes each piece when it is read. Fails if the reader stops for too long. */
function streamOf(
  pieces: Iterable<string>,
  timeoutMs: number,
): { readonly stream: ReadableStream<Uint8Array>; readonly sent: Promise<void> } {
  const iterator = pieces[Symbol.iterator]();
  const encoder = new TextEncoder();
  let timer: ReturnType<typeof setTimeout>;
  let end: () => void = () => {};
  const sent = new Promise<void>((resolve) => {
    end = () => {
      clearTimeout(timer);
      resolve();
    };
  });
  const expectRead = (controller: ReadableStreamDefaultController) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      controller.error(new Error('the answer was not read in time'));
      end();
    }, timeoutMs);
  };
  const source = {
    start: expectRead,
    pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      const { value, done } = iterator.next();
      if (done) {
        controller.close();
        end();
        return;
      }
      controller.enqueue(encoder.encode(value));
      expectRead(controller);
    },
    cancel: () => end(),
  };
  return { stream: new ReadableStream(source, { highWaterMark: 0 }), sent };
}

/** A {@link Send} over Node's own response. */
export function sendByNode(
  response: HttpResponse,
  method: string,
  to: ServerResponse | Http2ServerResponse,
  timeoutMs: number,
): Promise<void> | undefined {
  // The compatibility layer of node:http2 has the same members.
  const outgoing = to as ServerResponse;
  const { status, headers, failure } = response;
  const head = Object.entries(headers);
  noteFailure(outgoing, failure);
  if (method === 'HEAD') sendWhole(status, head, null, outgoing);
  else if ('body' in response) sendWhole(status, head, response.body, outgoing);
  else return sendPieces(status, head, response.pieces, outgoing, timeoutMs);
  return whenSent(outgoing, timeoutMs);
}

/**
 * Answers with a Fetch `Response`, such as the one of a guard. Does nothing if somebody else has
 * answered before, such as a middleware with a timeout.
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
  noteFailure(to, failureIn(response));
  // Always waits: whether a request without a body is complete is known only after a turn.
  const body = new Uint8Array(await response.arrayBuffer());
  sendWhole(response.status, [...response.headers], response.body && body, to as ServerResponse);
}

type HeaderList = readonly (readonly [name: string, value: string])[];

function sendWhole(
  status: number,
  headers: HeaderList,
  body: string | Uint8Array | null,
  outgoing: ServerResponse,
): void {
  if (outgoing.headersSent) return;
  setHead(status, headers, outgoing);
  if (body === null) {
    outgoing.end();
    return;
  }
  outgoing.setHeader('content-length', Buffer.byteLength(body));
  outgoing.end(body);
}

/** Makes each piece after the one before it was taken, with a turn for other calls in between. */
async function sendPieces(
  status: number,
  headers: HeaderList,
  pieces: Iterable<string>,
  outgoing: ServerResponse,
  timeoutMs: number,
): Promise<void> {
  if (outgoing.headersSent) return;
  setHead(status, headers, outgoing);
  for (const piece of pieces) {
    if (isGone(outgoing)) return;
    if (outgoing.write(piece)) await new Promise(setImmediate);
    else await eventOrTimeout(outgoing, 'drain', timeoutMs);
  }
  if (isGone(outgoing)) return;
  outgoing.end();
  await whenSent(outgoing, timeoutMs);
}

function setHead(status: number, headers: HeaderList, outgoing: ServerResponse): void {
  outgoing.statusCode = status;
  for (const [name, value] of headers) {
    // The only header that a middleware may have set as well.
    if (name === 'set-cookie') outgoing.appendHeader(name, value);
    else outgoing.setHeader(name, value);
  }
  discardBody(outgoing);
}

/**
 * Stops a body that was not read to its end. Over HTTP/1, its rest would be taken for the next
 * request. Over HTTP/2, its stream would stay open until the client sends more.
 */
function discardBody(outgoing: ServerResponse | Http2ServerResponse): void {
  if (!('stream' in outgoing)) {
    if (!outgoing.req.complete) outgoing.setHeader('connection', 'close');
    return;
  }
  const { req: incoming, stream } = outgoing;
  if (stream.endAfterHeaders || incoming.readableEnded) return;
  stream.once('finish', () => stream.destroy());
}

/** `undefined` for nearly all responses: the system takes them as soon as they are written. */
function whenSent(outgoing: ServerResponse, timeoutMs: number): Promise<void> | undefined {
  return isWaiting(outgoing) ? eventOrTimeout(outgoing, 'close', timeoutMs) : undefined;
}

function isWaiting(outgoing: ServerResponse | Http2ServerResponse): boolean {
  if ('stream' in outgoing) return (outgoing.stream?.writableLength ?? 0) > 0;
  return outgoing.writableLength > 0;
}

function isGone(outgoing: ServerResponse | Http2ServerResponse): boolean {
  return 'stream' in outgoing ? outgoing.stream?.destroyed !== false : outgoing.destroyed;
}

/** Waits for an event, or for the end of the connection, which the timeout brings about. */
function eventOrTimeout(
  outgoing: ServerResponse | Http2ServerResponse,
  event: 'drain' | 'close',
  timeoutMs: number,
): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => cutOff(outgoing), timeoutMs);
    const settle = () => {
      clearTimeout(timer);
      outgoing.off('drain', settle).off('close', settle);
      resolve();
    };
    outgoing.on(event, settle).on('close', settle);
  });
}

function cutOff(outgoing: ServerResponse | Http2ServerResponse): void {
  if ('stream' in outgoing) outgoing.stream?.destroy();
  else outgoing.destroy();
}
