import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import * as http2 from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sendByNode, toFetchResponse } from '../../../src/http/node/sending.ts';
import { type HttpResponse, succeedWithList } from '../../../src/http/responses.ts';

const LONG = 600_000;
const PIECE = 'x'.repeat(65_536);
/** More pieces than the system buffers for a client that does not read. */
const COUNT = 1000;

/** An answer in pieces, which counts the pieces it has produced. */
function longAnswer(count = COUNT): { readonly answer: HttpResponse; readonly made: () => number } {
  let made = 0;
  function* pieces() {
    for (; made < count; made++) yield PIECE;
  }
  return { answer: { status: 200, headers: {}, pieces: pieces() }, made: () => made };
}

const whole: HttpResponse = { status: 200, headers: {}, body: 'short' };
const large: HttpResponse = { status: 200, headers: {}, body: PIECE.repeat(COUNT) };

type Sent = Promise<void> | undefined;

/** A server that sends `answer` to each request, and the result of sending it. */
async function serving(answer: HttpResponse, timeoutMs: number) {
  let report: (sent: { readonly left: Sent; readonly response: ServerResponse }) => void;
  const sent = new Promise<{ readonly left: Sent; readonly response: ServerResponse }>(
    (resolve) => {
      report = resolve;
    },
  );
  const server = createServer((request: IncomingMessage, response) => {
    report({ left: sendByNode(answer, request.method ?? '', response, timeoutMs), response });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { port, sent };
}

/** Sends a request and does not read the answer. */
async function askOnly(port: number) {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.pause();
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

async function bytesOf(port: number, method = 'GET'): Promise<number> {
  const [incoming] = (await once(get({ port, method }), 'response')) as [IncomingMessage];
  let bytes = 0;
  for await (const chunk of incoming) bytes += chunk.length;
  return bytes;
}

describe('an answer in pieces over node:http', () => {
  it('arrives completely at a client that reads', async () => {
    const { answer, made } = longAnswer(50);
    const { port, sent } = await serving(answer, LONG);

    expect(await bytesOf(port)).toBe(50 * PIECE.length);
    await (await sent).left;
    expect(made()).toBe(50);
  });

  it('is produced only as far as it is read, and ends at the timeout', async () => {
    const { answer, made } = longAnswer();
    const { port, sent } = await serving(answer, 100);
    await askOnly(port);
    const { left, response } = await sent;

    await left;
    expect(made()).toBeGreaterThan(0);
    expect(made()).toBeLessThan(COUNT / 2);
    expect(response.destroyed).toBe(true);
  });

  it('ends when the client disconnects', async () => {
    const { answer, made } = longAnswer();
    const { port, sent } = await serving(answer, LONG);
    const socket = await askOnly(port);
    const { left } = await sent;
    socket.destroy();

    await left;
    expect(made()).toBeLessThan(COUNT / 2);
  });

  it('has no body for HEAD and produces none', async () => {
    const { answer, made } = longAnswer();
    const { port } = await serving(answer, LONG);

    expect(await bytesOf(port, 'HEAD')).toBe(0);
    expect(made()).toBe(0);
  });

  it('ends over HTTP/2 when the client disconnects', async () => {
    const { answer, made } = longAnswer();
    const { promise: left, resolve } = Promise.withResolvers<Sent>();
    const server = http2.createServer((_, response) => {
      resolve(sendByNode(answer, 'GET', response, LONG));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const session = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    session.on('error', () => {});
    const stream = session.request({ ':path': '/' });
    stream.on('error', () => {});
    await once(stream, 'response');
    stream.close();
    session.destroy();

    await left;
    expect(made()).toBeLessThan(COUNT / 2);
  });
});

describe('a whole answer over node:http', () => {
  it('is done immediately when the system buffers it', async () => {
    const { port, sent } = await serving(whole, LONG);

    expect(await bytesOf(port)).toBe('short'.length);
    expect((await sent).left).toBeUndefined();
  });

  it('loses its connection at the timeout if it is not read', async () => {
    const { port, sent } = await serving(large, 100);
    await askOnly(port);
    const { left, response } = await sent;

    expect(left).toBeInstanceOf(Promise);
    await left;
    expect(response.destroyed).toBe(true);
  });
});

describe('an answer in pieces over Fetch', () => {
  it('produces a piece only when it is read', async () => {
    const { answer, made } = longAnswer(3);
    const { response, sent } = toFetchResponse('GET', answer, LONG);
    const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>;

    expect(made()).toBe(0);
    expect((await reader.read()).value).toHaveLength(PIECE.length);
    expect(made()).toBe(0);
    await reader.read();
    expect(made()).toBe(1);
    await reader.read();
    expect((await reader.read()).done).toBe(true);
    await sent;
  });

  it('has the same text as an answer in one piece', async () => {
    const items = Array.from({ length: 9000 }, (_, i) => ({ name: `item ${i}`, text: 'é"\\' }));
    const answer = succeedWithList(items, (item) => item, { cursor: 'c' }, { link: 'x' });
    const short = succeedWithList(items.slice(0, 2), (item) => item, { cursor: 'c' });

    expect('pieces' in answer).toBe(true);
    expect('pieces' in short).toBe(false);
    const { response } = toFetchResponse('GET', answer, LONG);
    const envelope = { cursor: 'c', success: true, message: '', error: null };
    const text = await response.text();
    expect(text).toBe(JSON.stringify({ data: items, ...envelope }));
    expect(response.headers.get('link')).toBe('x');
    expect('body' in short && short.body).toBe(
      JSON.stringify({ data: items.slice(0, 2), ...envelope }),
    );
  });

  it.each([0, 1, 700, 701])('is one valid JSON text for %i items', async (count) => {
    const items = Array.from({ length: count }, (_, i) => 'x'.repeat(80 + (i % 30)));
    const { response } = toFetchResponse(
      'GET',
      succeedWithList(items, (item) => item),
      LONG,
    );
    expect(JSON.parse(await response.text()).data).toEqual(items);
  });
});
