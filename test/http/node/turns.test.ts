import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import * as http2 from 'node:http2';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { tokenConsole } from '../../../src/app/console/index.ts';
import { toNodeListener } from '../../../src/http/index.ts';
import { setUp } from '../support.ts';

const GET = 'GET /page HTTP/1.1\r\nHost: x\r\n\r\n';
/** For a machine with much else to do. */
const SOON = { timeout: 20_000 };
const servers: (Server | http2.Http2Server)[] = [];
const sockets: Socket[] = [];

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) {
    server.close();
    if ('closeAllConnections' in server) server.closeAllConnections();
  }
});

async function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

function open(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => {});
  sockets.push(socket);
  return socket;
}

/** Sends a text, and resolves to all answers when the service or the answer of `/last` ends them. */
async function send(socket: Socket, text: string): Promise<string> {
  let received = '';
  socket.on('data', (data) => {
    received += data.toString('latin1');
  });
  socket.write(text);
  await once(socket, 'close');
  return received;
}

/** A handler of a host that answers with the path, and counts what it was asked. */
function counting(body: BodyInit = 'x') {
  const asked: string[] = [];
  const handler = (request: Request) => {
    asked.push(new URL(request.url).pathname);
    return new Response(body);
  };
  return { asked, handler };
}

const last = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;

describe('pipelined calls of a connection', () => {
  it('are all answered, in their order', async () => {
    const { asked, handler } = counting();
    const port = await listen(toNodeListener(handler));
    const paths = Array.from({ length: 500 }, (_, i) => `/${i}`);
    const text = paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join('');

    const received = await send(open(port), text + last('/last'));

    expect(received.match(/HTTP\/1\.1 200/g)).toHaveLength(501);
    expect(asked).toEqual([...paths, '/last']);
  });

  it('with bodies are all answered', async () => {
    const port = await listen(
      toNodeListener(async (request) => new Response(`<${await request.text()}>`)),
    );
    const post = (text: string) =>
      `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
    const bodies = Array.from({ length: 50 }, (_, i) => `${i}${'x'.repeat(5000)}`);

    const received = await send(open(port), bodies.map(post).join('') + last('/'));

    expect(received.match(/<\d+x{5000}>/g)).toEqual(bodies.map((body) => `<${body}>`));
  });

  it('wait until the answer before them is made', async () => {
    const { asked, handler } = counting();
    let answerFirst = () => {};
    const port = await listen(
      toNodeListener(async (request) => {
        const response = handler(request);
        if (asked.length === 1) await new Promise<void>((resolve) => (answerFirst = resolve));
        return response;
      }),
    );
    const done = send(open(port), GET.repeat(3) + last('/last'));
    await expect.poll(() => asked.length, SOON).toBe(1);
    // Another connection waits for none of them.
    await send(open(port), last('/other'));

    expect(asked).toEqual(['/page', '/other']);
    answerFirst();
    await done;
    expect(asked.slice(2)).toEqual(['/page', '/page', '/last']);
  });

  it('let another connection have its turn after each of them', async () => {
    const { asked, handler } = counting();
    const listener = toNodeListener(handler);
    const starts: (() => void)[] = [];
    // Both connections have sent everything before the first call is passed on.
    const port = await listen((request, response) => {
      starts.push(() => void listener(request, response));
    });
    const path = (name: string) => `GET /${name} HTTP/1.1\r\nHost: x\r\n\r\n`;
    const done = [
      send(open(port), path('many').repeat(20) + last('/many')),
      send(open(port), path('few').repeat(2) + last('/few')),
    ];
    await expect.poll(() => starts.length, SOON).toBe(24);
    for (const start of starts) start();
    await Promise.all(done);

    expect(asked.lastIndexOf('/few')).toBeLessThan(8);
    expect(asked).toHaveLength(24);
  });

  it('are not worked on while their client does not read', async () => {
    const page = Buffer.alloc(1_000_000);
    const { asked, handler } = counting(page);
    const port = await listen(toNodeListener(handler));
    const [reading, deaf] = [open(port), open(port)];
    deaf.pause();
    deaf.write(GET.repeat(200));
    await send(reading, GET.repeat(30) + last('/last'));
    const made = asked.filter((path) => path === '/page').length - 30;

    // The buffers of the system take some answers of a client that does not read.
    expect(made).toBeLessThan(30);
    // Control: it gets all of them as soon as it reads.
    deaf.resume();
    await expect.poll(() => asked.length, SOON).toBe(231);
  });

  it('end with the connection if there are too many', async () => {
    const { asked, handler } = counting();
    let answerFirst = () => {};
    const listener = toNodeListener(async (request) => {
      if (asked.length === 0) await new Promise<void>((resolve) => (answerFirst = resolve));
      return handler(request);
    });
    let closed = 0;
    let passed = 0;
    const port = await listen((request, response) => {
      passed += 1;
      response.once('close', () => {
        closed += 1;
      });
      void listener(request, response);
    });
    // Short enough to arrive in one piece, as long as it is.
    const done = send(open(port), 'GET / HTTP/1.1\r\nHost:x\r\n\r\n'.repeat(1500));
    await expect.poll(() => passed, SOON).toBe(1500);
    answerFirst();
    const received = await done;

    expect(received.match(/HTTP\/1\.1 200/g)).toHaveLength(1001);
    expect(received.match(/^connection: close/gim)).toHaveLength(1);
    expect(asked).toHaveLength(1001);
    // Observers of calls learn that these have ended, too.
    await expect.poll(() => closed, SOON).toBe(1500);
  });
});

describe('concurrent calls over one session of HTTP/2', () => {
  async function session(listener: ReturnType<typeof toNodeListener>) {
    const server = http2.createServer((request, response) => void listener(request, response));
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    client.on('error', () => {});
    await once(client, 'connect');
    const get = (path: string) => client.request({ ':path': path });
    const statusOf = async (path: string) => {
      const stream = get(path);
      const [headers] = await once(stream, 'response');
      stream.resume();
      await once(stream, 'close');
      return headers[':status'];
    };
    return { client, get, statusOf };
  }

  it('are all answered, a hundred of them at a time', async () => {
    const answers: (() => void)[] = [];
    const { client, statusOf } = await session(
      toNodeListener(async () => {
        await new Promise<void>((resolve) => answers.push(resolve));
        return new Response('x');
      }),
    );
    const statuses = Array.from({ length: 150 }, (_, i) => statusOf(`/${i}`));
    await expect.poll(() => answers.length, SOON).toBe(100);

    for (let i = 0; i < 150; i++) {
      await expect.poll(() => answers.length, SOON).toBeGreaterThan(i);
      answers[i]?.();
    }
    expect(new Set(await Promise.all(statuses))).toEqual(new Set([200]));
    client.close();
  });

  it('that were taken back cause no work', async () => {
    const { asked, handler } = counting();
    const { client, get, statusOf } = await session(toNodeListener(handler));
    for (let i = 0; i < 200; i++) get('/taken-back').close(http2.constants.NGHTTP2_CANCEL);

    expect(await statusOf('/last')).toBe(200);
    expect(asked.filter((path) => path === '/taken-back').length).toBeLessThan(50);
    client.close();
  });

  it.each(['http://localhost/openapi.json', 'http://ada@localhost/openapi.json', '*'])(
    'to %s are refused by Node.js, since a path begins with a slash there',
    async (path) => {
      const { client, statusOf } = await session(toNodeListener(setUp().handler));

      await expect(statusOf(path)).rejects.toMatchObject({ code: 'ERR_HTTP2_STREAM_ERROR' });
      expect(await statusOf('/openapi.json')).toBe(200);
      client.close();
    },
  );
});

describe('a public page that is not read, on many connections', () => {
  it('is never copied, and leaves other calls their turn', async () => {
    const page = toNodeListener(tokenConsole({ basePath: '/console', api: '/' }));
    const service = toNodeListener(setUp().handler);
    let done = 0;
    const port = await listen((request, response) => {
      const isPage = request.url?.startsWith('/console') === true;
      if (isPage) response.once('finish', () => (done += 1));
      void (isPage ? page : service)(request, response);
    });
    const received = await send(open(port), last('/console'));
    const script = /app-[\w-]+\.js/.exec(received)?.[0];
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 100; i++) {
      const socket = open(port);
      socket.pause();
      socket.write(`GET /console/${script} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(20));
    }
    await once(open(port), 'connect');
    const called = await send(open(port), last('/openapi.json'));

    expect(called).toMatch(/^HTTP\/1\.1 200/);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20_000_000);
    // Control: the pages have been asked for.
    await expect.poll(() => done, SOON).toBeGreaterThan(100);
  });
});
