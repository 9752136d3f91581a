import { once } from 'node:events';
import * as http from 'node:http';
import * as net from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toNodeListener } from '../../src/http/index.ts';
import { basic, CANARY, ORDERS, PASSWORD, setUp } from './support.ts';

// Sends raw bytes over a socket that no client library would send.

const AUTHORIZATION = `Authorization: ${basic('ada')}`;
const JSON_TYPE = 'Content-Type: application/json';
const BODY = JSON.stringify({ scopes: [ORDERS] });
const LENGTH = `Content-Length: ${BODY.length}`;
const MAX_BODY = 4096;
/** Far longer than any answer takes: a connection that is still open then hangs. */
const HANG_MS = 20_000;

const faults: unknown[] = [];
const note = (fault: unknown) => faults.push(fault);
const servers: http.Server[] = [];

/** The service on a server like that of `serve`, with its own timeouts. */
async function listen(bodyTimeoutMs: number, headersTimeout: number) {
  const { handler, tokens } = setUp({
    maxBodyBytes: MAX_BODY,
    bodyTimeoutMs,
    authenticate: ({ username, password }) =>
      username === 'ada' && password === PASSWORD ? username : null,
  });
  const listener = toNodeListener(handler);
  const server = http.createServer(
    { headersTimeout, requestTimeout: 60_000, connectionsCheckingInterval: 50 },
    (request, response) => void listener(request, response).catch(note),
  );
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: (server.address() as net.AddressInfo).port, tokens };
}

let patient: Awaited<ReturnType<typeof listen>>;
let impatient: Awaited<ReturnType<typeof listen>>;

beforeAll(async () => {
  process.on('unhandledRejection', note);
  process.on('uncaughtException', note);
  patient = await listen(30_000, 30_000);
  impatient = await listen(300, 600);
});

afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  process.off('unhandledRejection', note);
  process.off('uncaughtException', note);
  expect(faults).toEqual([]);
});

/**
 * Sends bytes and reads until `answers` answers have come and the other side has ended. With
 * `leaves`, disconnects right after sending.
 */
async function send(
  text: string,
  { answers = 0, leaves = false, port = patient.port } = {},
): Promise<string> {
  const socket = net.connect(port, '127.0.0.1');
  let received = '';
  let hangs = false;
  const timer = setTimeout(() => {
    hangs = true;
    socket.destroy();
  }, HANG_MS);
  socket.on('error', () => {});
  socket.on('data', (data) => {
    received += data.toString('latin1');
    if (statusesOf(received).length >= answers) socket.end();
  });
  await once(socket, 'connect');
  if (leaves) socket.write(text, 'latin1', () => socket.destroy());
  else if (answers === 0 || !text.includes('\r\n\r\n')) socket.end(text, 'latin1');
  else socket.write(text, 'latin1');
  await new Promise((resolve) => socket.once('close', resolve));
  clearTimeout(timer);
  expect(hangs, 'the connection hangs').toBe(false);
  return received;
}

/** The statuses of all answers received. */
function statusesOf(received: string): number[] {
  return [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}

async function expectAlive({ port } = patient): Promise<void> {
  const received = await send(get('/scopes'), { answers: 1, port });
  expect(statusesOf(received)).toEqual([200]);
}

function lines(...all: string[]): string {
  return `${all.join('\r\n')}\r\n\r\n`;
}

const get = (target: string, ...headers: string[]) =>
  lines(`GET ${target} HTTP/1.1`, 'Host: x', AUTHORIZATION, ...headers);
const post = (...headers: string[]) =>
  lines('POST /token HTTP/1.1', 'Host: x', AUTHORIZATION, JSON_TYPE, ...headers);
const CHUNKED = 'Transfer-Encoding: chunked';

/** Empty if the connection is closed without an answer, or the client ends it before one. */
type Expected = readonly number[];

const REQUEST_LINES: [string, string, Expected][] = [
  ['nothing', '', []],
  ['line breaks', '\r\n\r\n\r\n', []],
  ['a letter', 'x', [400]],
  ['a word', `${CANARY}\r\n\r\n`, [400]],
  ['HTTP/0.9', 'GET /token\r\n', [400]],
  ['HTTP/2', 'GET /token HTTP/2.0\r\nHost: x\r\n\r\n', [401]],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400]],
  ['HTTP/9.9', 'GET /token HTTP/9.9\r\nHost: x\r\n\r\n', [400]],
  ['a lower case version', 'GET /token http/1.1\r\nHost: x\r\n\r\n', [400]],
  ['another protocol', 'GET /token RTSP/1.0\r\nHost: x\r\n\r\n', [401]],
  ['no target', 'GET HTTP/1.1\r\nHost: x\r\n\r\n', [400]],
  ['an empty target', 'GET  HTTP/1.1\r\nHost: x\r\n\r\n', [400]],
  ['a method in lower case', 'get /token HTTP/1.1\r\nHost: x\r\n\r\n', [400]],
  ['an unknown method', `${CANARY} /token HTTP/1.1\r\nHost: x\r\n\r\n`, [400]],
  ['a leading space', ' GET /token HTTP/1.1\r\nHost: x\r\n\r\n', [400]],
  ['a leading NUL', '\0GET /token HTTP/1.1\r\nHost: x\r\n\r\n', [400]],
  ['a NUL in the target', 'GET /tok\0en HTTP/1.1\r\nHost: x\r\n\r\n', [400]],
  ['a space in the target', 'GET /to ken HTTP/1.1\r\nHost: x\r\n\r\n', [400]],
  ['a tab in the target', 'GET /to\tken HTTP/1.1\r\nHost: x\r\n\r\n', [400]],
  ['bare carriage returns', 'GET /token HTTP/1.1\rHost: x\r\r', [400]],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', [400]],
  ['SOCKS', '\x05\x01\x00', [400]],
  ['SSH', 'SSH-2.0-OpenSSH_9.9\r\n', [400]],
  ['a PROXY protocol line', 'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n', [400]],
  ['random bytes', '\xff\xfe\xfd\x80\x81\x00\x01', [400]],
  ['a hundred thousand letters', 'A'.repeat(100_000), [400]],
  [
    'a target of a hundred thousand characters',
    `GET /${'a'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    [431],
  ],
];

const TARGETS: [string, string, Expected][] = [
  ['absolute form', get('http://127.0.0.1/token'), [200]],
  ['absolute form of another host', get(`http://${CANARY}.example/token`), [200]],
  ['absolute form with credentials', get('http://ada:x@localhost/token'), [404]],
  ['another scheme', get('ftp://localhost/token'), [404]],
  ['no scheme', get('//localhost/token'), [404]],
  ['an asterisk', lines('OPTIONS * HTTP/1.1', 'Host: x', AUTHORIZATION), [404]],
  ['an asterisk with GET', get('*'), [404]],
  ['authority form', lines('CONNECT localhost:80 HTTP/1.1', 'Host: x', AUTHORIZATION), []],
  ['dot segments', get('/x/../token'), [404]],
  ['encoded dot segments', get('/x/%2e%2e/token'), [404]],
  ['a backslash', get('/x\\..\\token'), [404]],
  ['a fragment', get('/token#x'), [404]],
  ['bytes beyond ASCII', get('/t\xf6ken'), [400]],
  ['bytes beyond ASCII in the query', get('/token?x=\xf6'), [400]],
  ['an invalid percent-encoding', get('/token/%zz'), [404]],
  ['a URL of 8192 characters', get(`/token?x=${'a'.repeat(8192 - 9)}`), [200]],
  ['a URL of 8193 characters', get(`/token?x=${'a'.repeat(8193 - 9)}`), [414]],
];

const HEADERS: [string, string, Expected][] = [
  ['no Host', lines('GET /token HTTP/1.1', AUTHORIZATION), [400]],
  ['two Hosts', lines('GET /token HTTP/1.1', 'Host: x', 'Host: y', AUTHORIZATION), [200]],
  ['a nonsense Host', lines('GET /token HTTP/1.1', `Host: ${CANARY}/..`, AUTHORIZATION), [200]],
  ['HTTP/1.0', lines('GET /token HTTP/1.0', AUTHORIZATION), [200]],
  [
    'HTTP/1.0 with a Connection header',
    lines('GET /token HTTP/1.0', AUTHORIZATION, 'Connection: x'),
    [200],
  ],
  ['bare line feeds', `GET /token HTTP/1.1\nHost: x\n${AUTHORIZATION}\n\n`, [400]],
  ['one bare line feed', `GET /token HTTP/1.1\r\nHost: x\nX: y\r\n${AUTHORIZATION}\r\n\r\n`, [400]],
  ['a folded header', get('/token', 'X-Note: a\r\n b'), [400]],
  ['a folded header first', `GET /token HTTP/1.1\r\n Host: x\r\n\r\n`, [400]],
  ['a space before the colon', get('/token', 'X-Note : a'), [400]],
  ['no colon', get('/token', CANARY), [400]],
  ['an empty name', get('/token', `: ${CANARY}`), [400]],
  ['a NUL in a name', get('/token', 'X\0Y: a'), [400]],
  ['a NUL in a value', get('/token', `X-Note: ${CANARY}\0`), [400]],
  ['a carriage return in a value', get('/token', 'X-Note: a\rb'), [400]],
  ['bytes beyond ASCII in a value', get('/token', 'X-Note: \xff\xfe'), [200]],
  ['bytes beyond ASCII in a name', get('/token', 'X\xffY: a'), [400]],
  ['a header of 15,000 characters', get('/token', `X-Note: ${'a'.repeat(15_000)}`), [200]],
  ['a header of 21,000 characters', get('/token', `X-Note: ${CANARY.repeat(3000)}`), [431]],
  ['a header that never ends', `GET /token HTTP/1.1\r\nX-Note: ${'a'.repeat(100_000)}`, [431]],
  ['500 headers', get('/token', ...Array.from({ length: 500 }, (_, i) => `X${i}: `)), [200]],
  ['5000 headers', get('/token', ...Array.from({ length: 5000 }, (_, i) => `X${i}: `)), [431]],
  ['two credentials', get('/token', `Authorization: ${basic('bob')}`), [401]],
  ['an upgrade', get('/token', 'Connection: Upgrade', 'Upgrade: websocket'), [200]],
  ['an upgrade to HTTP/2', get('/token', 'Connection: Upgrade', 'Upgrade: h2c'), [200]],
  ['an unknown expectation', get('/token', `Expect: ${CANARY}`), [417]],
  ['an incomplete request', 'GET /token HTTP/1.1\r\nHost: x\r\n', [400]],
];

const chunk = (text: string, size = text.length.toString(16)) => `${size}\r\n${text}\r\n`;

const BODIES: [string, string, Expected][] = [
  ['two lengths that differ', `${post(LENGTH, 'Content-Length: 3')}${BODY}`, [400]],
  ['two lengths that agree', `${post(LENGTH, LENGTH)}${BODY}`, [400]],
  ['a list of lengths', `${post(`${LENGTH}, ${BODY.length}`)}${BODY}`, [400]],
  ['a length and chunks', `${post(LENGTH, CHUNKED)}0\r\n\r\n`, [400]],
  ['chunks and a length', `${post(CHUNKED, LENGTH)}0\r\n\r\n`, [400]],
  ['a negative length', `${post('Content-Length: -1')}${BODY}`, [400]],
  ['a length with a plus', `${post(`Content-Length: +${BODY.length}`)}${BODY}`, [400]],
  ['a hexadecimal length', `${post('Content-Length: 0x10')}${BODY}`, [400]],
  ['a length with a space inside', `${post('Content-Length: 1 2')}${BODY}`, [400]],
  ['an empty length', `${post('Content-Length:')}${BODY}`, [400]],
  ['a length of 40 digits', post(`Content-Length: ${'9'.repeat(40)}`), [400]],
  ['a length beyond the limit', post(`Content-Length: ${MAX_BODY + 1}`), [413]],
  ['an unknown coding', `${post('Transfer-Encoding: x')}${BODY}`, [400]],
  ['chunked twice', `${post('Transfer-Encoding: chunked, chunked')}0\r\n\r\n`, [400]],
  ['chunked and not last', `${post('Transfer-Encoding: chunked, identity')}0\r\n\r\n`, [400]],
  ['chunked after a vertical tab', `${post('Transfer-Encoding: \x0bchunked')}0\r\n\r\n`, [400]],
  ['two codings in two headers', `${post(CHUNKED, 'Transfer-Encoding: x')}0\r\n\r\n`, [400]],
  ['gzip, chunked', `${post('Transfer-Encoding: gzip, chunked')}${chunk(BODY)}0\r\n\r\n`, [200]],
  ['an invalid chunk size', `${post(CHUNKED)}${chunk(BODY, 'zz')}0\r\n\r\n`, [400]],
  ['a negative chunk size', `${post(CHUNKED)}${chunk(BODY, '-1')}0\r\n\r\n`, [400]],
  ['a chunk size of many digits', `${post(CHUNKED)}${chunk(BODY, 'f'.repeat(40))}`, [400]],
  ['a chunk size that is too small', `${post(CHUNKED)}${chunk(BODY, '1')}0\r\n\r\n`, [400]],
  ['a chunk size with 0x', `${post(CHUNKED)}${chunk(BODY, '0x10')}0\r\n\r\n`, [400]],
  ['a chunk with a bare line feed', `${post(CHUNKED)}2\n{}\n0\n\n`, [400]],
  [
    'a chunk with an extension',
    `${post(CHUNKED)}${chunk(BODY, `${BODY.length.toString(16)};a=b`)}0\r\n\r\n`,
    [200],
  ],
  [
    'an extension of 20,000 characters',
    `${post(CHUNKED)}2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`,
    [413],
  ],
  ['a trailer with credentials', `${post(CHUNKED)}0\r\n${AUTHORIZATION}\r\n\r\n`, [400]],
  ['chunks beyond the limit', `${post(CHUNKED)}${chunk(' '.repeat(MAX_BODY + 1))}0\r\n\r\n`, [413]],
  ['4000 chunks of a byte', `${post(CHUNKED)}${chunk(' ').repeat(4000)}0\r\n\r\n`, [400]],
  ['NULs', `${post('Content-Length: 8')}${'\0'.repeat(8)}`, [400]],
  ['a body after GET', `${get('/scopes', LENGTH)}${BODY}`, [200]],
  [
    'a body after OPTIONS',
    `${lines('OPTIONS /token HTTP/1.1', 'Host: x', AUTHORIZATION, LENGTH)}${BODY}`,
    [405],
  ],
  ['an expectation', `${post(LENGTH, 'Expect: 100-continue')}${BODY}`, [100, 200]],
  [
    'an expectation before an invalid body',
    `${post('Content-Length: 2', 'Expect: 100-continue')}[]`,
    [100, 400],
  ],
];

const ALL = [...REQUEST_LINES, ...TARGETS, ...HEADERS, ...BODIES];

describe('broken HTTP', () => {
  it('is tested in at least 90 distinct variants', () => {
    expect(new Set(ALL.map(([, text]) => text)).size).toBe(ALL.length);
    expect(ALL.length).toBeGreaterThanOrEqual(90);
  });

  it.each(ALL)('is answered or cut off; the service stays up: %s', async (_, text, expected) => {
    const received = await send(text, { answers: expected.length });

    // A client that is still sending may be cut off before it reads the answer.
    const isCut = text.length > 16_384 && received === '';
    expect(statusesOf(received)).toEqual(isCut ? [] : expected);
    expect(received).not.toContain(CANARY);
    expect(received).not.toContain('    at ');
    await expectAlive();
  });

  it.each(ALL)('does not stop the service when its sender disconnects: %s', async (_, text) => {
    await send(text, { leaves: true });
    await send(text.slice(0, text.length >> 1), { leaves: true });

    await expectAlive();
  });

  it('issues no token from a valid request that is truncated at any point', async () => {
    const whole = `${post(CHUNKED)}${chunk(BODY)}0\r\n\r\n`;
    const before = (await patient.tokens.list({ account: 'ada' })).tokens.length;

    for (let end = 1; end < whole.length; end += 3) {
      await send(whole.slice(0, end), { leaves: end % 2 === 0 });
    }

    await expectAlive();
    expect((await patient.tokens.list({ account: 'ada' })).tokens).toHaveLength(before);
    expect(statusesOf(await send(whole, { answers: 1 }))).toEqual([200]);
  });
});

describe('many requests over one connection', () => {
  const bad = lines('GET /nowhere HTTP/1.1', 'Host: x');

  it.each<[string, string[], number[]]>([
    ['valid ones', [get('/scopes').repeat(5)], [200, 200, 200, 200, 200]],
    ['valid and refused ones', [get('/scopes'), bad, get('/scopes')], [200, 404, 200]],
    ['a body and the request that follows', [post(LENGTH), BODY, get('/scopes')], [200, 200]],
    ['a broken one in the middle', [get('/scopes'), '\0\r\n\r\n', get('/scopes')], [400]],
    // The unread rest of a body must not be parsed as a request.
    [
      'one inside an unread body',
      [
        lines('POST /nowhere HTTP/1.1', 'Host: x', `Content-Length: ${MAX_BODY + 99}`),
        get('/token'),
      ],
      [404],
    ],
    [
      'one inside a body that is too large',
      [post(`Content-Length: ${MAX_BODY + 99}`), get('/token')],
      [413],
    ],
    [
      'one after a length and chunks',
      [`${post(LENGTH, CHUNKED)}0\r\n\r\n`, get('/token'), BODY],
      [400],
    ],
    ['one after HTTP/1.0', [lines('GET /scopes HTTP/1.0', AUTHORIZATION), get('/token')], [400]],
  ])('are separated correctly: %s', async (_, pieces, expected) => {
    const received = await send(pieces.join(''), { answers: expected.length });

    expect(statusesOf(received)).toEqual(expected);
    await expectAlive();
  });

  it('are all answered when a thousand are pipelined', async () => {
    const received = await send(get('/scopes').repeat(1000), { answers: 1000 });

    const statuses = statusesOf(received);
    expect(statuses).toHaveLength(1000);
    // They run concurrently, up to `maxInFlight`; the service refuses the rest with 503.
    expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
    await expectAlive();
  });
});

describe('a sender that stalls', () => {
  /** Sends a beginning and then stalls; returns what it received until it was cut off. */
  async function stall(beginning: string): Promise<string> {
    const socket = net.connect(impatient.port, '127.0.0.1');
    let received = '';
    socket.on('error', () => {});
    socket.on('data', (data) => {
      received += data.toString('latin1');
    });
    socket.write(beginning, 'latin1');
    await new Promise((resolve) => socket.once('close', resolve));
    return received;
  }

  it.each<[string, string, number[]]>([
    ['in a request line', 'GET /tok', [408]],
    ['in the headers', 'GET /token HTTP/1.1\r\nHost: x\r\nX-No', [408]],
    ['before a body', post(LENGTH), [400]],
    ['in a body', `${post(LENGTH)}${BODY.slice(0, 9)}`, [400]],
    ['in a chunk', `${post(CHUNKED)}ff\r\n{`, [400]],
    ['before the last chunk', `${post(CHUNKED)}${chunk(BODY)}`, [400]],
    ['after an expectation', post(LENGTH, 'Expect: 100-continue'), [100, 400]],
  ])('%s is cut off', async (_, beginning, expected) => {
    expect(statusesOf(await stall(beginning))).toEqual(expected);
    await expectAlive(impatient);
  });

  it('does not hold up other clients before it is cut off', async () => {
    const stalled = Array.from({ length: 50 }, () => stall(`${post(LENGTH)}{`));

    await expectAlive(impatient);

    for (const received of await Promise.all(stalled)) expect(statusesOf(received)).toEqual([400]);
  });
});
