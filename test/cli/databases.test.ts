import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { storePlace } from '../../src/cli/stores.ts';
import { TokenService } from '../../src/index.ts';
import { isInstalled, startServer } from '../servers.ts';
import { engines, newStore, runSql, sqlEngines } from './databases.ts';
import { call, newFolder, run, serve } from './support.ts';

const { mariadb } = inject('servers');
const account = ['--account', 'ada:pw'];
const body = { scopes: ['GET:acme.example/status'] };

describe.skipIf(engines.length === 0).each(engines)('serve on %s', (engine) => {
  it('issues, lists and revokes tokens, which are still there after a restart', async () => {
    const { url, table, flags } = newStore(engine);
    const data = newFolder();
    const settings = ['--data', data, ...flags, ...account];
    const first = await serve(settings);
    const { body: token } = await call(first, '/token', { method: 'POST', body });
    const { body: gone } = await call(first, '/token', { method: 'POST', body });
    expect((await call(first, `/token/${gone.id}`, { method: 'DELETE' })).status).toBe(200);
    expect(await first.stop()).toMatchObject({ code: 0 });

    const second = await serve(settings);
    const listed = await call(second, '/token');
    const place = storePlace({ store: url, table, data });
    const opened = await place.open();
    const keys = JSON.parse(readFileSync(join(data, 'keys.json'), 'utf8'));
    const tokens = new TokenService({ store: opened.store, keys, prefix: 'tw' });

    expect(second.greeting).toContain(`store     ${place.name}\n`);
    expect(listed.body.data).toMatchObject([{ id: token.id, token: token.token }]);
    const need = { scope: 'GET:acme.example/status' };
    expect(await tokens.verify(token.token, need)).toMatchObject({ ok: true });
    expect(await tokens.verify(gone.token, need)).toMatchObject({ ok: false, reason: 'revoked' });
    await tokens.close();
    await opened.close();
  });

  it('shares tokens with a service beside it, also with --max-stale-ms', async () => {
    const data = newFolder();
    const { flags } = newStore(engine);
    const settings = ['--data', data, ...flags, ...account, '--max-stale-ms', '60000'];
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
  it('may start four times at once where there is no table yet', async () => {
    const data = newFolder();
    const settings = ['--data', data, ...newStore(engine).flags, ...account];

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

  it('works on a table that was made by hand of what migrate prints', async () => {
    const { flags } = newStore(engine);
    const { stdout } = await run(['migrate', ...flags, '--print']);
    await runSql(engine, stdout);
    const service = await serve(['--data', newFolder(), ...flags, ...account]);

    const { body: token } = await call(service, '/token', { method: 'POST', body });

    expect((await call(service, '/token')).body.data).toMatchObject([{ id: token.id }]);
    expect(await service.stop()).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('serve', () => {
  it.skipIf(!isInstalled('redis'))('warns of what weakens the store, and serves', async () => {
    const server = await startServer('redis', { settings: { appendonly: 'no' } });
    onTestFinished(() => server.stop());
    const url = server.url.replace('://', '://:canary@');
    const service = await serve(['--data', newFolder(), ...account], { TOKENWRIGHT_STORE: url });

    expect((await call(service, '/token')).status).toBe(200);
    const { code, stdout, stderr } = await service.stop();

    expect(code).toBe(0);
    expect(stderr).toMatch(/^(tokenwright: warning: .+\n)+$/);
    expect(stderr).toMatch(/append-?only/i);
    expect(stdout + stderr).not.toContain('canary');
  });

  it.skipIf(mariadb === undefined)(
    'ends also when its database has stopped to answer',
    async () => {
      const { url, table } = newStore('mariadb');
      const line = await lineTo(Number(new URL(url).port));
      const through = url.replace(/:\d+\//, `:${line.port}/`);
      const settings = ['--data', newFolder(), '--store', through, '--table', table, ...account];
      const service = await serve(settings);
      expect((await call(service, '/token')).status).toBe(200);

      line.freeze();

      expect(await service.stop()).toMatchObject({ code: 0 });
    },
  );
});

/** A way to a port on which nothing moves any more once it is frozen, and no end is told. */
async function lineTo(port: number) {
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect(port, '127.0.0.1');
    sockets.push(near, far);
    for (const socket of [near, far]) socket.on('error', () => {});
    near.pipe(far).pipe(near);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  return {
    port: typeof address === 'object' ? address?.port : undefined,
    freeze() {
      for (const socket of sockets) socket.unpipe().pause();
    },
  };
}
