import type { IncomingMessage } from 'node:http';
import type { Send } from './node/sending.ts';

/** The headers and the body of a request. */
export interface HttpMessage {
  /** The value of a header; if it came twice, both values, joined as Fetch joins them. */
  header(name: HeaderName): string | undefined;
  readonly body: Body | null;
}

/** A request from Fetch or from Node, as far as the service reads it. */
export interface HttpRequest extends HttpMessage {
  readonly method: string;
  readonly url: URL;
  /** The address at the other end of the connection, if it is known. */
  readonly address?: string | undefined;
  /** The request of Node, as the host's framework has it, if it came from there. */
  readonly incoming?: IncomingMessage | undefined;
  /** The `Request` for functions of the host, without a body; built on the first call. */
  toFetch(): Request;
}

/** The headers that the service and the guard read, in lower case. */
export type HeaderName =
  | 'accept-encoding'
  | 'authorization'
  | 'content-encoding'
  | 'content-length'
  | 'content-type'
  | 'cookie'
  | 'host'
  | 'if-match'
  | 'if-none-match'
  | 'origin'
  | 'sec-fetch-site'
  | 'x-forwarded-host'
  | 'x-forwarded-proto'
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

/** A session that the service itself keeps, in a cookie. */
export interface CookieSession {
  readonly username: string;
  readonly expiresAt: Date;
  /** The `Set-Cookie` header that keeps it; absent if the cookie of the call is still good. */
  readonly cookie?: string | undefined;
}

/** How the service keeps people signed in: by a cookie of its own. */
export interface CookieSessions {
  /** The account of a session that has not ended, also if its cookie is due for renewal; `null` for none. */
  accountOf(request: Request): string | null;
  /** Begins a session. The caller has checked the password of the user. */
  begin(username: string, request: HttpRequest): CookieSession;
  /** The session of a call, renewed if it is due; `null` if it has ended. */
  renew(request: HttpRequest): Promise<CookieSession | null>;
  /** Ends the session of a call. Resolves to whether there was one. */
  end(request: HttpRequest): Promise<boolean>;
  /** The `Set-Cookie` header that removes the cookie of a call; `undefined` if it has none, or a good one. */
  cleared(request: HttpRequest): string | undefined;
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
  /** Of an `authenticate`: the account, if these credentials were right a moment ago. */
  readonly remembered?: (credentials: {
    readonly username: string;
    readonly password: string;
  }) => string | undefined;
  /** Of a `session`: how the service itself begins, renews and ends the sessions. */
  readonly cookies?: CookieSessions | undefined;
  /** Of a `clientAddress`: whether this address, at the other end of a connection, is that of a proxy. */
  readonly isProxy?: (address: string) => boolean;
}

/**
 * The own forms of `tokenHandler`, `fixedAccounts`, `forwardedAddress` and sessions by cookie, by the functions that the host
 * gets from them and passes to `toNodeListener` and `tokenHandler`. This cannot be an argument: those functions take a
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

/**
 * The object that all frameworks on top of each other share for one request: that of Node, if there is one.
 * Fastify has it as `raw`, Koa as `req`; the `Request` of Hono's server and of `toNodeListener` keeps it
 * under a symbol.
 */
export function innermost(request: object): object {
  if (isIncoming(request)) return request;
  const { raw, req } = request as { readonly raw?: unknown; readonly req?: unknown };
  if (isIncoming(raw)) return raw;
  if (isIncoming(req)) return req;
  for (const symbol of Object.getOwnPropertySymbols(request)) {
    const kept: unknown = Reflect.get(request, symbol);
    if (isIncoming(kept)) return kept;
  }
  return request;
}

/** Whether this is a request of Node. A property of another platform may have the same name. */
export function isIncoming(value: unknown): value is IncomingMessage {
  return Array.isArray((Object(value) as Partial<IncomingMessage>).rawHeaders);
}

export function fromFetch(request: Request): HttpRequest {
  const url = new URL(request.url);
  return {
    method: request.method,
    url,
    header: (name) => {
      if (name === 'host') return hostIn(request);
      const value = request.headers.get(name) ?? undefined;
      return name === 'content-type' ? typeIn(request, value) : value;
    },
    get body() {
      return request.body && streamOf(request.body);
    },
    get incoming() {
      return incomingOf(request);
    },
    toFetch: () => request,
  };
}

/** The host that the client wrote. The URL of a request from Node has a host without a meaning. */
function hostIn(request: Request): string | undefined {
  const incoming = incomingOf(request);
  if (incoming !== undefined) return headerOf(incoming, 'host');
  return request.headers.get('host') ?? new URL(request.url).host;
}

/**
 * The type that the client sent. Fetch writes one for a body of text that was given without, as by a
 * middleware that reads a body and passes on a copy of the request.
 */
function typeIn(request: Request, type: string | undefined): string | undefined {
  if (type !== 'text/plain;charset=UTF-8' || request.body === null) return type;
  return incomingOf(request)?.headers['content-type'];
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
  // HTTP/2 has the host in a field of its own, which also counts if both are there.
  if (name === 'host' && headers[':authority'] !== undefined) return String(headers[':authority']);
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
