import type { IncomingMessage } from 'node:http';
import type { Send } from './sending.ts';

/** A request from Fetch or from Node, as far as the service reads it. */
export interface HttpRequest {
  readonly method: string;
  readonly url: URL;
  /** The value of a header; if it came twice, both values, joined as Fetch joins them. */
  header(name: HeaderName): string | undefined;
  readonly body: Body | null;
  /** The address at the other end of the connection, if it is known. */
  readonly address?: string | undefined;
  /** The request of Node, as the host's framework has it, if it came from there. */
  readonly incoming?: IncomingMessage | undefined;
  /** The `Request` for functions of the host, without a body; built on the first call. */
  toFetch(): Request;
}

/** The headers that the service and the guard read, in lower case. */
export type HeaderName =
  | 'authorization'
  | 'content-encoding'
  | 'content-length'
  | 'content-type'
  | 'host'
  | 'if-match'
  | 'sec-fetch-site'
  | 'x-tokenwright'
  | 'x-tokenwright-account';

/** A body that has arrived, or one to read. */
export type Body = Uint8Array | string | BodyStream;

/** A body that arrives in chunks. */
export interface BodyStream {
  /** The next chunk; `undefined` at the end and after `cancel`. Rejects if the rest will not come. */
  next(): Promise<Uint8Array | string | undefined>;
  /** Stops reading, and ends a pending `next`. */
  cancel(): void;
}

/** How a function of this package takes a call without a Fetch `Request`. */
export interface OwnForm {
  /** Of a handler. */
  readonly answer?: (request: HttpRequest, send: Send) => Promise<void>;
  /** Of a handler: the route of a path, without what a caller chose; `undefined` if it has none. */
  readonly routeOf?: (path: string) => string | undefined;
  /** Of an `authenticate`, which needs the network of the client alone: empty if it is unknown. */
  readonly check?: (
    credentials: { readonly username: string; readonly password: string },
    network: string,
  ) => Promise<string | null>;
}

/**
 * The own forms of `tokenHandler` and `fixedAccounts`, by the functions that the host gets from them and
 * passes to `toNodeListener` and `tokenHandler`. This cannot be an argument: those functions take a
 * `Request`, as any function of a host does, and building one costs as much as the rest of the call. Nor
 * can it be a property of the function: a wrapper made with `Object.assign` would copy the property, and
 * would never be called. A function that is not in the map is called with a `Request`, which is correct.
 */
export const ownForms = new WeakMap<object, OwnForm>();

// Functions of the host take a `Request` alone, and may pass it on to a handler of this package: what Node
// knows beside it has to travel in it. A registered symbol, since two copies of this package may be loaded,
// ESM and CommonJS: a WeakMap would be two.
const INCOMING = Symbol.for('tokenwright.incoming');

/** Stores the request of Node in a `Request`, for {@link incomingOf} and {@link addressOf}. */
export function withIncoming(request: Request, incoming: IncomingMessage): Request {
  return Object.defineProperty(request, INCOMING, { value: incoming });
}

/** The request of Node, for a `Request` that came through `toNodeListener`. */
function incomingOf(request: object): IncomingMessage | undefined {
  return Reflect.get(request, INCOMING) as IncomingMessage | undefined;
}

/** The address of the client, for a `Request` that came through `toNodeListener`. */
export function addressOf(request: object): string | undefined {
  return incomingOf(request)?.socket?.remoteAddress;
}

export function fromFetch(request: Request): HttpRequest {
  const url = new URL(request.url);
  return {
    method: request.method,
    url,
    header: (name) => request.headers.get(name) ?? undefined,
    get body() {
      return request.body && streamOf(request.body);
    },
    get incoming() {
      return incomingOf(request);
    },
    toFetch: () => request,
  };
}

function streamOf(body: ReadableStream<Uint8Array>): BodyStream {
  const reader = body.getReader();
  return {
    next: async () => (await reader.read()).value,
    cancel: () => void reader.cancel().catch(() => {}),
  };
}

/** Cloud gateways make up requests that may have no raw headers. */
type NodeHeaders = Pick<IncomingMessage, 'headers'> & {
  readonly rawHeaders?: readonly string[] | undefined;
};

/**
 * A header of a Node request. If it came twice, both values, joined as Fetch joins them: Node drops
 * the second value of most headers.
 */
export function headerOf(
  { headers, rawHeaders = [] }: NodeHeaders,
  name: HeaderName,
): string | undefined {
  const known = headers[name];
  if (known === undefined) return undefined;
  let count = 0;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (isNamed(rawHeaders[i] as string, name)) count += 1;
  }
  return count > 1 ? valuesOf(rawHeaders, name).join(', ') : String(known);
}

function valuesOf(rawHeaders: readonly string[], name: HeaderName): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && isNamed(rawHeaders[i - 1] as string, name));
}

function isNamed(raw: string, name: HeaderName): boolean {
  return raw.length === name.length && raw.toLowerCase() === name;
}
