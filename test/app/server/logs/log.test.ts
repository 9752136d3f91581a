import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { observeCall } from '../../../../src/app/server/calls.ts';
import { jsonLog, LineWriter, type Sink } from '../../../../src/app/server/logs/log.ts';
import { ACCOUNT, call, listen, newFolder, run, serve, start } from '../../cli/support.ts';

type Line = Readonly<Record<string, unknown>>;

const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

/** A log in memory, and a server that logs each request with the route `/orders/{id}`. */
async function setUp(answer: (status: (code: number) => void) => void = (end) => end(200)) {
  let written = '';
  const sink = {
    write: async (text: string) => {
      written += text;
    },
    close: async () => {},
  };
  const log = jsonLog(sink);
  const observer = log.recordCall ?? expect.unreachable();
  const server = createServer((incoming, outgoing) => {
    observeCall([observer], '/orders/{id}', incoming, outgoing);
    answer((code) => outgoing.writeHead(code).end());
  });
  const port = await listen(server);
  const options = { host: '127.0.0.1', port, path: '/orders/canary?a=canary', agent: false };
  return {
    log,
    /** Sends a request, and disconnects once the server has received it. */
    async disconnect() {
      const sent = request(options)
        .on('error', () => {})
        .end();
      await once(server, 'request');
      sent.destroy();
    },
    async untilLogged() {
      while (written === '') await new Promise(setImmediate);
    },
    async lines(): Promise<Line[]> {
      await log.close();
      return linesOf(written);
    },
    async get(headers: Readonly<Record<string, string | string[]>> = {}, method = 'GET') {
      const sent = request({ ...options, headers, method }).end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      await once(response.resume(), 'close');
      return response.headers['x-request-id'];
    },
  };
}

function linesOf(text: string): Line[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

describe('the JSON log', () => {
  it('has a line for each request, without its path, query, credentials and cookies', async () => {
    const { get, lines } = await setUp();
    const headers = { authorization: 'Basic canary', cookie: 'canary', 'x-request-id': 'abc-1' };

    expect(await get({ ...headers, traceparent: TRACEPARENT })).toBe('abc-1');

    const [line] = await lines();
    expect(line).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      method: 'GET',
      route: '/orders/{id}',
      status: 200,
      durationMs: expect.any(Number),
      requestId: 'abc-1',
      traceparent: TRACEPARENT,
      msg: 'request',
    });
    expect(JSON.stringify(line)).not.toContain('canary');
  });

  it.each([
    ['no id', {}],
    ['an empty id', { 'x-request-id': '' }],
    ['a long id', { 'x-request-id': 'a'.repeat(65) }],
    ['an id that looks like a token value', { 'x-request-id': 'tw_1k1canary' }],
    ['an id with quotes', { 'x-request-id': 'a\u00e9"}' }],
    ['two ids', { 'x-request-id': ['a', 'b'] }],
  ])('generates a request id for a request with %s', async (_, headers) => {
    const { get, lines } = await setUp();

    const id = await get(headers);

    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(await lines()).toMatchObject([{ requestId: id }]);
  });

  it.each([
    '00-00000000000000000000000000000000-00f067aa0ba902b7-01',
    '00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01',
    '00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01',
    `${TRACEPARENT}-canary`,
    'canary',
  ])('does not log the traceparent %s', async (traceparent) => {
    const { get, lines } = await setUp();

    await get({ traceparent });

    const [line] = await lines();
    expect(line).toMatchObject({ status: 200 });
    expect(line).not.toHaveProperty('traceparent');
  });

  it('logs server errors as warnings, and client errors as info', async () => {
    const statuses = [404, 500, 503];
    const { get, lines } = await setUp((end) => end(statuses.shift() ?? 0));

    for (const _ of [...statuses]) await get({}, 'PURGE');

    expect(await lines()).toMatchObject([
      { level: 'info', status: 404, method: 'other' },
      { level: 'warn', status: 500 },
      { level: 'warn', status: 503 },
    ]);
  });

  it('has no status for a request whose client disconnects before the response', async () => {
    const { disconnect, lines, untilLogged } = await setUp(() => {});

    await disconnect();
    await untilLogged();

    expect(await lines()).toMatchObject([{ status: null, level: 'info', route: '/orders/{id}' }]);
  });

  it('masks token values in every message', async () => {
    const { log, lines } = await setUp();
    const value = `tw_1k1${'a'.repeat(55)}`;

    log.error(`broken: ${value}`);
    log.warn('two\nlines');

    const [error, warning] = await lines();
    expect(JSON.stringify(error)).not.toContain('a'.repeat(20));
    expect(error).toMatchObject({ level: 'error' });
    expect(warning).toMatchObject({ level: 'warn', msg: 'two\nlines' });
  });
});

/** A writer on a sink whose writes settle when the test says so. */
function newWriter() {
  const texts: string[] = [];
  const pending: { resolve(): void; reject(error: Error): void }[] = [];
  const troubles: unknown[] = [];
  const sink: Sink = {
    write: (text) =>
      new Promise((resolve, reject) => {
        texts.push(text);
        pending.push({ resolve, reject });
      }),
    close: async () => {},
  };
  const writer = new LineWriter(sink, {
    lostLine: (count) => `lost ${count}`,
    onTrouble: (error) => troubles.push(error),
  });
  const settle = async (how: 'resolve' | 'reject') => {
    pending.shift()?.[how](new Error('full'));
    await new Promise((done) => setImmediate(done));
  };
  return { writer, texts, troubles, settle };
}

describe('a line writer', () => {
  it('writes in order, one write at a time, and batches lines that arrive meanwhile', async () => {
    const { writer, texts, settle } = newWriter();

    for (const line of ['a', 'b', 'c']) writer.write(line);
    expect(texts).toEqual(['a\n']);
    await settle('resolve');
    expect(texts).toEqual(['a\n', 'b\nc\n']);
    await settle('resolve');
    writer.write('d');
    expect(texts).toEqual(['a\n', 'b\nc\n', 'd\n']);
  });

  it('buffers 1 MiB during a slow write, then writes how many lines it lost', async () => {
    const { writer, texts, settle } = newWriter();
    const line = 'x'.repeat(1023);

    for (let i = 0; i < 1030; i++) writer.write(line);
    await settle('resolve');
    expect(texts[1]).toHaveLength(1023 * 1024 + 'lost 6\n'.length);
    expect(texts[1]?.endsWith('\nlost 6\n')).toBe(true);
    await settle('resolve');
    writer.write(line);
    expect(texts[2]).toBe(`${line}\n`);
  });

  it('limits its buffer in bytes, not in characters', () => {
    const { writer, texts } = newWriter();

    writer.write('🐤'.repeat(262_144));
    expect(texts).toEqual([]);
    writer.write('🐤'.repeat(262_143));
    expect(texts).toHaveLength(1);
  });

  it('reports an error once, continues, and writes how many lines it lost once it works again', async () => {
    const { writer, texts, troubles, settle } = newWriter();

    for (const line of ['a', 'b', 'c']) {
      writer.write(line);
      await settle('reject');
    }
    expect(troubles).toHaveLength(1);
    writer.write('d');
    await settle('resolve');
    expect(texts.at(-1)).toBe('d\nlost 3\n');
    writer.write('e');
    await settle('reject');
    expect(troubles).toHaveLength(2);
  });

  it('closes once everything is written', async () => {
    const { writer, texts, settle } = newWriter();
    writer.write('a');
    writer.write('b');
    let isClosed = false;

    const closing = writer.close().then(() => {
      isClosed = true;
    });
    await settle('resolve');
    expect(isClosed).toBe(false);
    await settle('resolve');
    await closing;
    expect(texts).toEqual(['a\n', 'b\n']);
  });
});

describe('tokenwright serve', () => {
  /** Starts a service that logs in JSON, and waits for its first line. */
  async function serveInJson(args: readonly string[], environment: NodeJS.ProcessEnv = {}) {
    const { child, output, ended } = start(
      ['serve', '--port', '0', '--log', 'json', ...args],
      environment,
    );
    onTestFinished(() => void child.kill('SIGKILL'));
    while (!output.stdout.includes('"url":')) {
      const more = await Promise.race([once(child.stdout, 'data'), ended]);
      if (!Array.isArray(more)) throw new Error(`it did not start: ${JSON.stringify(more)}`);
    }
    const [started] = linesOf(output.stdout).filter(({ url }) => url !== undefined);
    const stop = (signal: NodeJS.Signals = 'SIGTERM') => {
      child.kill(signal);
      return ended;
    };
    return { started, url: String(started?.['url']), process: child, stop, output };
  }

  it('writes each message as one line of JSON', async () => {
    const data = newFolder();
    const service = await serveInJson(['--data', data, ...ACCOUNT, '--audit', '-']);
    const body = { scopes: ['*:*/*'], name: 'canary' };
    const { body: token } = await call(service, '/token', { method: 'POST', body });
    await call(service, `/token/${token.token}?canary`);
    await call(service, '/canary');
    service.process.kill('SIGHUP');
    while (!service.output.stdout.includes('reloaded')) await once(service.process.stdout, 'data');

    const { code, stdout, stderr } = await service.stop();

    expect([code, stderr]).toEqual([0, '']);
    const lines = linesOf(stdout);
    expect(lines[0]).toMatchObject({
      level: 'info',
      msg: `tokenwright listens on ${service.url}`,
      data,
      keys: join(data, 'keys.json'),
      accounts: ['ada'],
      pages: ['/healthz', '/readyz', '/example/orders'],
    });
    expect(lines[0]).not.toHaveProperty('password');
    const requests = lines.filter(({ msg }) => msg === 'request');
    expect(
      requests.map(({ method, route, status, code }) => [method, route, status, code]),
    ).toEqual([
      ['POST', '/token', 200, undefined],
      ['GET', '/token/{token}', 200, undefined],
      ['GET', 'other', 404, 'not_found'],
    ]);
    expect(lines).toContainEqual(
      expect.objectContaining({ level: 'info', msg: 'reloaded 1 key, 20 scopes and 1 account' }),
    );
    expect(lines.map(({ event }) => event).filter(Boolean)).toEqual([
      'signed_in',
      'issued',
      'revealed',
    ]);
    expect(stdout).not.toContain('canary');
    expect(stdout).not.toContain(token.token);
  });

  it('has the code of each failure, and a reason that the caller does not get', async () => {
    const data = newFolder();
    const flags = ['--gateway', 'nginx', '--domain', 'acme.example', '--revocation'];
    const service = await serveInJson(['--data', data, ...ACCOUNT, ...flags]);
    const body = { scopes: ['GET:acme.example/status'] };
    const { body: token } = await call(service, '/token', { method: 'POST', body });
    const check = (authorization: string) =>
      fetch(`${service.url}/check`, {
        headers: { authorization, 'x-original-method': 'GET', 'x-original-uri': '/status' },
      });
    await check(`Bearer ${token.token}`);
    await call(service, `/token/${token.id}`, { method: 'DELETE' });
    const refused = await check(`Bearer ${token.token}`);
    await check('');
    await call(service, '/token', { method: 'POST', body: { scopes: ['canary'] } });
    await call(service, '/token', { as: 'ada:canary-canary' });
    await fetch(`${service.url}/revoke`, { method: 'POST', body: 'canary' });
    rmSync(join(data, 'tokens.db'));
    const failed = await call(service, '/token');
    await fetch(`${service.url}/readyz`);

    const { stdout } = await service.stop();

    const requests = linesOf(stdout).filter(({ msg }) => msg === 'request');
    expect(
      requests.map(({ route, status, code, reason }) => [route, status, code, reason]),
    ).toEqual([
      ['/token', 200, undefined, undefined],
      ['/check', 200, undefined, undefined],
      ['/token/{token}', 200, undefined, undefined],
      ['/check', 401, 'invalid_token', 'revoked'],
      ['/check', 401, 'unauthenticated', 'missing'],
      ['/token', 422, 'invalid_scope', undefined],
      ['/token', 401, 'unauthenticated', undefined],
      ['/revoke', 415, 'unsupported_media_type', undefined],
      ['/token', 503, 'store_corrupt', 'file_replaced'],
      ['/readyz', 503, 'store_corrupt', undefined],
    ]);
    expect(await refused.text()).not.toContain('revoked');
    expect(JSON.stringify(failed.body)).not.toContain('file_replaced');
    // One line for the outage, none for each call.
    const errors = linesOf(stdout).filter(({ level }) => level === 'error');
    expect(errors.map(({ msg }) => msg)).toEqual([expect.stringContaining('tokens.db fails: ')]);
    expect(stdout).not.toContain('canary');
    expect(stdout).not.toContain(token.token);
  });

  it('writes warnings and startup errors as JSON', async () => {
    const data = newFolder();
    const service = await serveInJson(['--data', data, '--host', '0.0.0.0']);
    expect(service.started).toMatchObject({ accounts: ['admin'], password: expect.any(String) });
    const { stdout } = await service.stop();
    expect(linesOf(stdout)).toContainEqual(
      expect.objectContaining({ level: 'warn', msg: expect.stringContaining('plain HTTP') }),
    );

    const failed = await run(['serve', '--log', 'json', '--data', data, '--keys', '/nowhere']);

    expect(failed).toMatchObject({ code: 1, stderr: '' });
    expect(linesOf(failed.stdout)).toEqual([
      {
        level: 'fatal',
        time: expect.any(String),
        msg: expect.stringContaining('" does not exist: serve and tokenwright keys new'),
      },
    ]);
  });

  it('writes nothing after its start with --log off, but still reports startup errors', async () => {
    const flags = ['--data', newFolder(), ...ACCOUNT, '--log', 'off', '--host', '0.0.0.0'];
    const service = await serve(flags);
    await fetch(`${service.url.replace('0.0.0.0', '127.0.0.1')}/token`, {
      headers: { 'x-forwarded-for': '192.0.2.1', connection: 'close' },
    });

    expect(await service.stop()).toMatchObject({ code: 0, stdout: service.greeting, stderr: '' });
    const failed = await run(['serve', '--log', 'off', '--keys', '/nowhere', ...ACCOUNT]);
    expect(failed).toMatchObject({ code: 1, stdout: '' });
    expect(failed.stderr).toContain('" does not exist: serve and tokenwright keys new');
  });

  it('logs no requests by default', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT]);
    expect((await fetch(`${service.url}/token`)).headers.get('x-request-id')).toBeNull();
    await call(service, '/token');

    expect(await service.stop()).toMatchObject({ stdout: service.greeting, stderr: '' });
  });
});
