import { once } from 'node:events';
import * as http from 'node:http';
import * as net from 'node:net';
import { Readable } from 'node:stream';
import type { Answer } from './support.ts';

type Server = Pick<http.Server, 'address' | 'listening' | 'once' | 'close'> & {
  closeAllConnections?(): void;
};

/** Servers to close after each test. */
const started: Server[] = [];

/** The port of a server, once it listens. */
export async function portOf(server: unknown): Promise<number> {
  const listener = server as Server;
  started.push(listener);
  if (!listener.listening) await once(listener as http.Server, 'listening');
  return (listener.address() as net.AddressInfo).port;
}

/** Sends raw bytes; returns what it receives until the other side closes or `isEnough`. */
export async function raw(
  port: number,
  bytes: string,
  isEnough: (received: string) => boolean = () => false,
): Promise<string> {
  const socket = net.connect(port, '127.0.0.1').setEncoding('latin1');
  socket.on('error', () => {});
  socket.write(bytes, 'latin1');
  let received = '';
  for await (const chunk of socket) {
    received += chunk;
    if (isEnough(received)) break;
  }
  socket.destroy();
  return received;
}

export async function closeAll(): Promise<void> {
  for (const server of started.splice(0)) {
    server.closeAllConnections?.();
    await new Promise((resolve) => server.close(resolve));
  }
}

export interface Exchange {
  readonly headers?: Readonly<Record<string, string | number | readonly string[]>>;
  readonly body?: string;
  readonly agent?: http.Agent;
}

/** Calls with the client of `node:http`: the target stays raw, and a list becomes several headers. */
export async function call(
  port: number,
  method: string,
  path: string,
  { headers = {}, body, agent }: Exchange = {},
): Promise<Answer> {
  const more = { ...(agent && { agent }) };
  const all = headers as http.OutgoingHttpHeaders;
  const request = http.request({ host: '127.0.0.1', port, path, method, headers: all, ...more });
  // A failed write is fine: the service has then already answered and closed the connection.
  request.on('error', () => {});
  request.end(body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  const text = Buffer.concat(await Readable.from(response).toArray()).toString();
  const isJson = response.headers['content-type']?.startsWith('application/json') === true;
  return {
    status: response.statusCode ?? 0,
    headers: new Headers(response.headers as Record<string, string>),
    text,
    body: isJson && text !== '' ? JSON.parse(text) : {},
  };
}
