import { once } from 'node:events';
import * as http from 'node:http';
import * as net from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { toNodeListener } from '../../src/http/index.ts';
import { basic, setUp } from './support.ts';

/**
 * The number of bodies, half of each kind. For more:
 * `BODIES=100000 vitest run … --project growth test/http/growth.test.ts`.
 */
const BODIES = Number(process.env['BODIES'] ?? 2000);
const CONCURRENT = 200;
const MAX_BODY_BYTES = 16_384;
const BOUND_BYTES = 3 * 1_048_576;
const TIMEOUT_MS = 60_000 + BODIES * 5;

const HEAD = `POST /token HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic('ada')}\r\nContent-Type: application/json\r\n`;
const SLOW = `${HEAD}Content-Length: 16000\r\n\r\n${' '.repeat(15_999)}`;
const SIZE = MAX_BODY_BYTES + 1;
const OVERSIZED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n${SIZE.toString(16)}\r\n${' '.repeat(SIZE)}\r\n`;
const KINDS = [
  [SLOW, '400'],
  [OVERSIZED, '413'],
] as const;

type Keep = (request: http.IncomingMessage) => void;

/** How many bytes more are in use after that many bodies; `keep` can simulate a leak. */
async function growth(bodies: number, keep: Keep): Promise<number> {
  const { handler } = setUp({ maxBodyBytes: MAX_BODY_BYTES, bodyTimeoutMs: 20 });
  const listener = toNodeListener(handler);
  const server = http.createServer((request, response) => {
    keep(request);
    void listener(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  await sendAll(port, 4 * CONCURRENT);
  const before = await inUse();
  await sendAll(port, bodies);
  const after = await inUse();
  await new Promise((resolve) => server.close(resolve));
  return after - before;
}

async function sendAll(port: number, bodies: number): Promise<void> {
  let sent = 0;
  const sender = async () => {
    for (let i = sent++; i < bodies; i = sent++) {
      const [text, status] = KINDS[i % 2] as (typeof KINDS)[number];
      // Uses many local addresses, because a closed connection keeps its port for a minute.
      const received = await exchange(port, text, `127.0.0.${2 + (i % 200)}`);
      // Does not use `expect`, which retains memory for each call.
      if (received.slice(9, 12) !== status) throw new Error(`answered ${received.slice(0, 99)}`);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, sender));
}

function exchange(port: number, text: string, localAddress: string): Promise<string> {
  const socket = net.connect({ port, host: '127.0.0.1', localAddress });
  let received = '';
  socket.on('error', () => {});
  socket.on('data', (data) => {
    received += data.toString('latin1');
  });
  socket.write(text);
  return new Promise((resolve) => socket.once('close', () => resolve(received)));
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Collects repeatedly, because some objects can be freed only a turn after others. */
async function inUse(): Promise<number> {
  for (let turn = 0; turn < 10; turn++) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

it(
  'slow and oversized bodies leave no memory in use',
  async ({ annotate }) => {
    const bytes = await growth(BODIES, () => {});

    await annotate(`${BODIES} bodies: ${(bytes / 1_048_576).toFixed(2)} MiB more in use`);
    expect(bytes).toBeLessThan(BOUND_BYTES);
  },
  TIMEOUT_MS,
);

it(
  'a leak of requests would be detected (control)',
  async () => {
    const kept: unknown[] = [];

    const bytes = await growth(2000, (request) => kept.push(request));

    expect(kept.length).toBeGreaterThan(2000);
    expect(bytes).toBeGreaterThan(BOUND_BYTES);
  },
  TIMEOUT_MS,
);
