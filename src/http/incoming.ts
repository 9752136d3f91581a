import type { IncomingMessage } from 'node:http';

/** What the service reads of a request, whether it came as one of Fetch or as one of Node's own. */
export interface Incoming {
  readonly method: string;
  readonly url: URL;
  /** Of one that came twice both values, joined as Fetch joins them. */
  header(name: HeaderName): string | undefined;
  readonly body: Body | null;
  /** Where it came from, if that is known. */
  readonly address?: string | undefined;
  /** For functions of the host. Its body is not theirs to read. */
  request(): Request;
}

/** The headers that mean something here, in lower case. */
export type HeaderName =
  | 'authorization'
  | 'content-encoding'
  | 'content-length'
  | 'content-type'
  | 'if-match'
  | 'sec-fetch-site';

/** A body that is there, or one that is still to come. */
export type Body = Uint8Array | string | Chunks;

/** A body bit by bit. */
export interface Chunks {
  /** `undefined` at the end, and after `cancel`. Rejects when the rest will not come. */
  next(): Promise<Uint8Array | string | undefined>;
  /** No more is wanted; what is waited for ends. */
  cancel(): void;
}

/** A request of Fetch. */
export function ofFetch(request: Request): Incoming {
  const url = new URL(request.url);
  return {
    method: request.method,
    url,
    header: (name) => request.headers.get(name) ?? undefined,
    get body() {
      return request.body && chunksOf(request.body);
    },
    request: () => request,
  };
}

function chunksOf(body: ReadableStream<Uint8Array>): Chunks {
  const reader = body.getReader();
  return {
    next: async () => (await reader.read()).value,
    cancel: () => void reader.cancel().catch(() => {}),
  };
}

/** What a gateway makes up for one of Node's may have no raw headers. */
type RequestOfNode = Pick<IncomingMessage, 'headers'> & {
  readonly rawHeaders?: readonly string[] | undefined;
};

/**
 * A header of a request of Node's own, by its name in lower case. Where it came twice both, as Fetch
 * joins them: Node drops the second one of most.
 */
export function headerOf(
  { headers, rawHeaders = [] }: RequestOfNode,
  name: HeaderName,
): string | undefined {
  const known = headers[name];
  if (known === undefined) return undefined;
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] as string;
    if (raw.length === name.length && raw.toLowerCase() === name) {
      values.push(rawHeaders[i + 1] as string);
    }
  }
  return values.length > 1 ? values.join(', ') : String(known);
}
