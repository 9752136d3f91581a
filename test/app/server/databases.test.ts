import { existsSync, readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { storeTarget } from '../../../src/app/server/stores/open.ts';
import { TokenService } from '../../../src/index.ts';
import { type Engine, isInstalled, startServer } from '../../servers.ts';
import { ACCOUNT, call, filesOf, listen, newFolder, run, serve, start } from '../cli/support.ts';
import { engines, newStore, runSql, sqlEngines } from './databases.ts';

const { mariadb } = inject('servers');
const body = { scopes: ['GET:acme.example/status'] };
const catalog = () => ['--catalog', filesOf({ 'catalog.json': body.scopes })('catalog.json')];

describe.skipIf(engines.length === 0).each(engines)('serve on %s', (engine) => {
  it('issues, lists and revokes tokens, and keeps them across a restart', async () => {
    const { url, tables, flags } = newStore(engine);
    const data = newFolder();
    const settings = ['--data', data, ...flags, ...ACCOUNT];
    const first = await serve(settings);
    const { body: token } = await call(first, '/token', { method: 'POST', body });
    const { body: gone } = await call(first, '/token', { method: 'POST', body });
    expect((await call(first, `/token/${gone.id}`, { method: 'DELETE' })).status).toBe(200);
    expect(await first.stop()).toMatchObject({ code: 0 });

    const second = await serve(settings);
    const listed = await call(second, '/token');
    const target = storeTarget({ store: url, tables, data });
    const opened = await target.open();
    const keys = JSON.parse(readFileSync(join(data, 'keys.json'), 'utf8'));
    const tokens = new TokenService({ store: opened.store, keys, prefix: 'tw' });

    expect(second.greeting).toContain(`store     ${target.name}\n`);
    expect(listed.body.data).toMatchObject([{ id: token.id, token: token.token }]);
    const need = { scope: 'GET:acme.example/status' };
    expect(await tokens.verify(token.token, need)).toMatchObject({ ok: true });
    expect(await tokens.verify(gone.token, need)).toMatchObject({ ok: false, reason: 'revoked' });
    await tokens.close();
    await opened.close();
  });

  it('records usage next to the tokens, for all services and commands', async () => {
    const { url, tables, flags } = newStore(engine);
    const data = newFolder();
    const gateway = ['--gateway', 'nginx', '--domain', 'acme.example'];
    const settings = ['--data', data, ...flags, ...ACCOUNT, ...gateway, ...catalog()];
    const first = await serve(settings);
    const { body: token } = await call(first, '/token', { method: 'POST', body });
    const headers = {
      authorization: `Bearer ${token.token}`,
      'x-original-method': 'GET',
      'x-original-uri': '/status',
    };
    for (let i = 0; i < 3; i++) await fetch(`${first.url}/check`, { headers });
    const ended = await first.stop();
    expect(ended.code).toBe(0);
    // A cluster without replicas causes a warning.
    expect(ended.stderr).not.toContain('usage');

    const second = await serve(settings);
    const { data: usage } = (await call(second, `/token/${token.id}/usage`)).body;
    const { name } = storeTarget({ store: url, tables, data });
    expect(second.greeting).toContain(`usage     ${name}\n`);
    expect(usage).toMatchObject({ uses: 3, scopes: [{ scope: body.scopes[0], uses: 3 }] });
    const as = ['--data', data, ...flags, '--account', 'ada', '--json'];
    const { stdout } = await run(['token', 'usage', token.id, ...as]);
    expect(JSON.parse(stdout)).toEqual(usage);
    expect(existsSync(join(data, 'usage.db'))).toBe(false);
  });

  it('lets a command list tokens if usage was never recorded', async () => {
    const { flags } = newStore(engine);
    const data = newFolder();
    const off = ['--usage', 'off', ...catalog()];
    const service = await serve(['--data', data, ...flags, ...ACCOUNT, ...off]);
    const { body: token } = await call(service, '/token', { method: 'POST', body });
    expect(token.id).toHaveLength(22);

    const listed = await run(['token', 'list', '--data', data, ...flags, '--account', 'ada']);

    expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining(token.id) });
    expect(listed.stderr).not.toContain('usage');
    expect(await service.stop()).toMatchObject({ code: 0 });
  });

  it('creates no new keys while the database holds tokens, but does once they are revoked', async () => {
    const { flags } = newStore(engine);
    const settings = (data: string) => ['--data', data, ...flags, ...ACCOUNT];
    const first = await serve(settings(newFolder()));
    const { body: token } = await call(first, '/token', { method: 'POST', body });
    const data = newFolder();

    const ended = await run(['serve', '--port', '0', ...settings(data)]);
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain(`there is no ${join(data, 'keys.json')}, but `);
    expect(existsSync(join(data, 'keys.json'))).toBe(false);

    expect((await call(first, `/token/${token.id}`, { method: 'DELETE' })).status).toBe(200);
    await first.stop();
    await (await serve(settings(data))).stop();
    expect(existsSync(join(data, 'keys.json'))).toBe(true);
  });

  it('shares tokens with a second service, also with --max-stale-ms', async () => {
    const data = newFolder();
    const { flags } = newStore(engine);
    const settings = ['--data', data, ...flags, ...ACCOUNT, '--max-stale-ms', '60000'];
    const [one, other] = await Promise.all([serve(settings), serve(settings)]);
    const { body: token } = await call(one, '/token', { method: 'POST', body });

    expect((await call(other, `/token/${token.id}`)).body.data[0].token).toBe(token.token);
    expect((await call(other, `/token/${token.id}`, { method: 'DELETE' })).status).toBe(200);
    expect((await call(one, `/token/${token.id}`)).status).toBe(404);
    expect(await one.stop()).toMatchObject({ code: 0 });
    expect(await other.stop()).toMatchObject({ code: 0 });
  });
});

describe.skipIf(sqlEngines.length === 0).each(sqlEngines)('serve on %s', (engine) => {
  it('can start four times concurrently before the table exists', async () => {
    const data = newFolder();
    const settings = ['--data', data, ...newStore(engine).flags, ...ACCOUNT, ...catalog()];

    const services = await Promise.all([1, 2, 3, 4].map(() => serve(settings)));
    const ids = await Promise.all(
      services.map(async (service) => {
        const answer = await call(service, '/token', { method: 'POST', body });
        return answer.body.id;
      }),
    );

    const [first] = services;
    const listed = first && (await call(first, '/token')).body.data;
    expect(listed.map(({ id }: { id: string }) => id).sort()).toEqual(ids.sort());
    const ends = await Promise.all(services.map((service) => service.stop()));
    expect(ends.map(({ code, stderr }) => [code, stderr])).toEqual(ends.map(() => [0, '']));
  });

  it('works on a table that was created with the SQL from migrate --print', async () => {
    const { flags } = newStore(engine);
    const { stdout } = await run(['store', 'migrate', ...flags, '--print']);
    await runSql(engine, stdout);
    const service = await serve(['--data', newFolder(), ...flags, ...ACCOUNT, ...catalog()]);

    const { body: token } = await call(service, '/token', { method: 'POST', body });

    expect((await call(service, '/token')).body.data).toMatchObject([{ id: token.id }]);
    expect(await service.stop()).toMatchObject({ code: 0, stderr: '' });
  });
});

/** Engines whose clients connect only to the address in the URL; a cluster announces other addresses. */
const single = engines.filter((engine) => engine !== 'redisCluster');

describe.skipIf(single.length === 0).each(single)('serve on a %s that is down', (engine) => {
  it('waits until it is up, and warns once', async () => {
    const { flags } = await downAtFirst(engine);

    const service = await serve(['--data', newFolder(), ...flags, ...ACCOUNT]);

    expect((await call(service, '/token')).status).toBe(200);
    const { code, stderr } = await service.stop();
    expect(code).toBe(0);
    expect(stderr.match(/cannot be used: it hangs up.*; trying again for 30 s\n/g)).toHaveLength(1);
  });

  it('exits with a one-line error with --store-wait 0', async () => {
    const { flags } = await downAtFirst(engine);
    const settings = ['--data', newFolder(), ...flags, ...ACCOUNT];

    const ended = await run(['serve', '--port', '0', ...settings, '--store-wait', '0']);

    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(/^tokenwright: \S.+ cannot be used: it hangs up.*\n$/);
  });

  it('exits immediately on a signal while it waits', async () => {
    const { flags, refused } = await downAtFirst(engine);
    const settings = ['--data', newFolder(), ...flags, ...ACCOUNT];
    const { child, ended } = start(['serve', '--port', '0', ...settings]);
    onTestFinished(() => void child.kill('SIGKILL'));
    await refused;
    child.kill('SIGTERM');

    expect(await ended).toMatchObject({ code: 143, stdout: '' });
  });
});

describe.skipIf(single.length === 0).each(single)('serve on a %s that fails', (engine) => {
  it('logs the outage in one line, with the reason and without the password', async () => {
    const { url, flags } = newStore(engine);
    const { hostname, port } = new URL(url);
    const sockets = new Set<Socket>();
    const between = createServer((socket) => {
      const onward = connect(Number(port), hostname.replace(/^\[|\]$/g, ''));
      for (const one of [socket, onward]) sockets.add(one.on('error', () => {}));
      socket.pipe(onward).pipe(socket);
    });
    const there = Object.assign(new URL(url), {
      hostname: '127.0.0.1',
      port: await listen(between),
    });
    const [, , ...tables] = flags;
    const service = await serve([
      '--data',
      newFolder(),
      '--store',
      there.href,
      ...tables,
      ...ACCOUNT,
    ]);
    expect((await call(service, '/token')).status).toBe(200);

    between.close();
    for (const socket of sockets) socket.destroy();
    const lines: string[] = [];
    service.process.stderr?.on('data', (chunk) => lines.push(String(chunk)));
    while (!lines.join('').includes(' fails: ')) {
      expect((await call(service, '/token')).status).toBe(503);
    }

    expect((await call(service, '/token')).status).toBe(503);
    const { stderr } = await service.stop();
    const outages = stderr.split('\n').filter((line) => line.includes(' fails: '));
    expect(outages).toEqual([
      expect.stringMatching(/^tokenwright: \S.* fails: nothing listens there/),
    ]);
    if (there.password !== '') expect(stderr).not.toContain(there.password);
  });
});

describe('serve', () => {
  it.skipIf(sqlEngines.length === 0).each(sqlEngines)(
    'does not wait for a database that does not exist in %s',
    async (engine) => {
      const url = newStore(engine).url.replace(/\/\w+$/, '/nowhere');

      const ended = await run(['serve', '--data', newFolder(), '--store', url, ...ACCOUNT]);

      expect(ended).toMatchObject({ code: 1, stdout: '' });
      expect(ended.stderr).not.toContain('trying again');
    },
  );

  it.skipIf(!isInstalled('redis'))('warns about weak store settings, and starts', async () => {
    const server = await startServer('redis', { settings: { appendonly: 'no' } });
    onTestFinished(() => server.stop());
    const url = server.url.replace('://', '://:canary@');
    const service = await serve(['--data', newFolder(), ...ACCOUNT], { TOKENWRIGHT_STORE: url });

    expect((await call(service, '/token')).status).toBe(200);
    const { code, stdout, stderr } = await service.stop();

    expect(code).toBe(0);
    expect(stderr).toMatch(/^(tokenwright: warning: .+\n)+$/);
    expect(stderr).toMatch(/append-?only/i);
    expect(stdout + stderr).not.toContain('canary');
  });

  it.skipIf(mariadb === undefined)('stops even if its database no longer answers', async () => {
    const { url, tables } = newStore('mariadb');
    const relay = await relayTo(Number(new URL(url).port));
    const through = url.replace(/:\d+\//, `:${relay.port}/`);
    const settings = ['--data', newFolder(), '--store', through, '--tables', tables, ...ACCOUNT];
    const service = await serve(settings);
    expect((await call(service, '/token')).status).toBe(200);

    relay.freeze();

    expect(await service.stop()).toMatchObject({ code: 0 });
  });
});

/** The flags of a store whose server hangs up on its first clients, like one that is starting. */
async function downAtFirst(engine: Engine) {
  const { url, tables } = newStore(engine);
  const { port, host } = new URL(url);
  const refused = Promise.withResolvers<void>();
  let left = 2;
  const gate = createServer((near) => {
    near.on('error', () => {});
    if (left > 0) {
      left -= 1;
      near.destroy();
      refused.resolve();
      return;
    }
    const far = connect(Number(port), '127.0.0.1').on('error', () => {});
    near.pipe(far).pipe(near);
  });
  const through = url.replace(host, `127.0.0.1:${await listen(gate)}`);
  return { flags: ['--store', through, '--tables', tables], refused: refused.promise };
}

/** A relay to a port. Once frozen, it forwards no data and closes no connection. */
async function relayTo(port: number) {
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect(port, '127.0.0.1');
    sockets.push(near, far);
    for (const socket of [near, far]) socket.on('error', () => {});
    near.pipe(far).pipe(near);
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return {
    port: await listen(server),
    freeze() {
      for (const socket of sockets) socket.unpipe().pause();
    },
  };
}
