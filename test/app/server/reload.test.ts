import { once } from 'node:events';
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hashPassword } from '../../../src/http/sign-in/basic-auth.ts';
import { generateKey } from '../../../src/index.ts';
import { ACCOUNT, call, newFolder, type RunningService, serve, start } from '../cli/support.ts';

const ORDERS = 'GET:shop.example/orders';
const BILLS = 'GET:shop.example/bills';
const ADA = `ada:${hashPassword('correct-horse')}`;
const BOB = `bob:${hashPassword('battery-staple')}`;

/** A service whose keys, catalog and accounts are files of the test. */
async function setUp() {
  const folder = newFolder();
  const at = (name: string): string => join(folder, name);
  const files = { keys: at('keys.json'), catalog: at('catalog.json'), accounts: at('accounts') };
  const write = (name: keyof typeof files, content: unknown): void => {
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    writeFileSync(files[name], text, { mode: 0o600 });
  };
  write('keys', [generateKey('k1')]);
  write('catalog', [ORDERS]);
  write('accounts', ADA);
  const { keys, catalog, accounts } = files;
  const named = ['--keys', keys, '--catalog', catalog, '--account-file', accounts];
  const service = await serve(['--data', at('data'), ...named]);
  return { files, write, service, hangUp: () => hangUp(service) };
}

/** Sends SIGHUP, and waits for the line with its result. */
async function hangUp(service: RunningService): Promise<string> {
  const line = once(service.process.stderr as NodeJS.ReadableStream, 'data');
  service.process.kill('SIGHUP');
  return String((await line)[0]);
}

function issue(service: RunningService, scope: string, as = 'ada:correct-horse') {
  return call(service, '/token', { as, method: 'POST', body: { scopes: [scope] } });
}

/** Begins a request, and returns a function that sends its body and reads the response. */
async function beginCall(service: RunningService, scope: string) {
  const body = JSON.stringify({ scopes: [scope] });
  const credentials = Buffer.from('ada:correct-horse').toString('base64');
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
  socket.write(
    `POST /token HTTP/1.1\r\nHost: a\r\nAuthorization: Basic ${credentials}\r\nConnection: close\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  // After this response, the service is handling the request.
  const [first] = await once(socket, 'data');
  expect(String(first)).toContain('100 Continue');
  return async () => {
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.write(body);
    await once(socket, 'close');
    return answer;
  };
}

/** Whether the service still accepts connections. */
async function accepts(service: RunningService): Promise<boolean> {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
  const isAccepted = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isAccepted;
}

describe('SIGHUP', () => {
  it('reloads keys, catalog and accounts, and keeps the tokens', async () => {
    const { files, write, service, hangUp } = await setUp();
    const { body: before } = await issue(service, ORDERS);
    expect((await issue(service, BILLS)).body.code).toBe('scope_unmatched');
    expect((await issue(service, ORDERS, 'bob:battery-staple')).status).toBe(401);
    const [old] = JSON.parse(readFileSync(files.keys, 'utf8'));

    write('keys', [{ ...old, status: 'verify' }, generateKey('k2')]);
    write('catalog', [ORDERS, BILLS]);
    write('accounts', `${ADA}\n${BOB}`);
    const line = await hangUp();

    expect(line).toBe('tokenwright: reloaded 2 keys, 2 scopes and 2 accounts\n');
    const { body: after } = await issue(service, BILLS, 'bob:battery-staple');
    expect(after.scopes).toEqual([BILLS]);
    expect(after.token).not.toContain('k1');
    expect((await call(service, `/token/${before.id}`)).body.data[0].token).toBe(before.token);

    write('accounts', BOB);
    expect(await hangUp()).toContain('1 account\n');
    expect((await issue(service, ORDERS)).status).toBe(401);
    expect(await service.stop()).toMatchObject({ code: 0 });
  });

  it('reloads presets, which change no token', async () => {
    const folder = newFolder();
    const file = join(folder, 'presets.json');
    const write = (preset: object) => writeFileSync(file, JSON.stringify([preset]));
    write({ name: 'CI', scopes: ['GET:orders.acme.example/*'], ttl: '30d' });
    const service = await serve(['--data', join(folder, 'data'), ...ACCOUNT, '--presets', file]);
    const presets = async () => (await call(service, '/scopes?details=true')).body.presets;

    const [ci, readOnly] = await presets();
    expect(ci).toMatchObject({ name: 'CI', ttl: 2_592_000 });
    expect(readOnly.name).toBe('Read only');
    const { body: before } = await call(service, '/token', {
      method: 'POST',
      body: { scopes: ci.scopes, ttl: ci.ttl },
    });
    expect(before.scopes).toEqual(ci.scopes);

    write({ name: 'Status', scopes: ['GET:acme.example/status'] });
    expect(await hangUp(service)).toMatch(/, 1 preset and 1 account\n$/);
    expect((await presets())[0]).toEqual({ name: 'Status', scopes: ['GET:acme.example/status'] });
    expect((await call(service, `/token/${before.id}`)).body.data[0].scopes).toEqual(ci.scopes);

    write({ name: 'Status', scopes: ['GET:acme.example/statsu'] });
    expect(await hangUp(service)).toContain(
      'presets.json: preset 1 ("Status"): the catalog does not know',
    );
    expect((await presets())[0].scopes).toEqual(['GET:acme.example/status']);
    expect(await service.stop()).toMatchObject({ code: 0 });
  });

  it('finishes a request in progress with the settings it began with', async () => {
    const { write, service, hangUp } = await setUp();
    const finish = await beginCall(service, ORDERS);

    write('catalog', [BILLS]);
    write('accounts', BOB);
    await hangUp();

    expect(await finish()).toContain('HTTP/1.1 200 OK');
    expect((await issue(service, ORDERS)).status).toBe(401);
    expect((await issue(service, ORDERS, 'bob:battery-staple')).body.code).toBe('scope_unmatched');
    expect(await service.stop()).toMatchObject({ code: 0 });
  });

  it.each([
    ['keys', '{', /keys\.json is not JSON/],
    ['keys', [{ kid: 'k1', secret: 'canary', status: 'active' }], /keys\[0\]\.secret must be/],
    ['catalog', '["canary"]', /catalog\.json: /],
    ['accounts', 'ada:canary\n', /accounts:1 must have a password of at least 8 characters/],
  ] as const)('changes nothing if the new %s are %j', async (name, text, reason) => {
    const { write, service, hangUp } = await setUp();
    write('catalog', [ORDERS, BILLS]);
    write(name, text);

    const line = await hangUp();

    expect(line).toMatch(
      /^tokenwright: warning: nothing was reloaded, and keys, catalog and [^\n]+\n$/,
    );
    expect(line).toMatch(reason);
    if (name !== 'catalog') expect(line).not.toContain('canary');

    expect((await issue(service, ORDERS)).status).toBe(200);
    expect((await issue(service, BILLS)).status).toBe(422);
    expect(await service.stop()).toMatchObject({ code: 0 });
  });

  it('creates no keys or account, and refuses keys that other users can read', async () => {
    const data = newFolder();
    const service = await serve(['--data', data]);
    const [, as = ''] = /-u '([^']+)'/.exec(service.greeting) ?? [];
    const keys = join(data, 'keys.json');
    const account = join(data, 'account.json');
    const [keysText, accountText] = [readFileSync(keys), readFileSync(account)];

    chmodSync(keys, 0o644);
    expect(await hangUp(service)).toContain('chmod 600');
    rmSync(keys);
    expect(await hangUp(service)).toContain('" does not exist: serve and tokenwright keys new');
    writeFileSync(keys, keysText, { mode: 0o600 });
    rmSync(account);
    expect(await hangUp(service)).toContain(`there is no ${account}; to get another account`);
    expect((await call(service, '/scopes', { as })).status).toBe(200);
    writeFileSync(account, accountText, { mode: 0o600 });
    expect(await hangUp(service)).toContain('reloaded 1 key, 20 scopes and 1 account');
    expect((await call(service, '/scopes', { as })).status).toBe(200);
    expect(await service.stop()).toMatchObject({ code: 0 });
  });

  it('does not kill a service that is stopping', async () => {
    const { service } = await setUp();
    const finish = await beginCall(service, ORDERS);

    const ended = service.stop();
    // It no longer accepts connections, but waits for the open request.
    while (await accepts(service));
    service.process.kill('SIGHUP');

    expect(await finish()).toContain('HTTP/1.1 200 OK');
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
  });

  it('does not kill a service that is starting', async () => {
    // Nothing listens on this port, so serve waits for its store.
    const store = ['--store', 'redis://127.0.0.1:9', '--store-wait', '60'];
    const { child, ended } = start([
      'serve',
      '--data',
      newFolder(),
      '--port',
      '0',
      ...store,
      ...ACCOUNT,
    ]);
    await once(child.stderr, 'data');

    child.kill('SIGHUP');
    await once(child.stderr, 'data', { signal: AbortSignal.timeout(300) }).catch(() => {});
    child.kill('SIGTERM');

    expect((await ended).code).toBe(143);
  });
});
