import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkVariables, UsageError } from '../../src/cli/settings.ts';
import { TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite.ts';
import { call, newFolder, run, serve } from './support.ts';

const account = ['--account', 'ada:pw'];

describe('tokenwright serve', () => {
  it('makes an account on its first start, whose first call works as printed', async () => {
    const service = await serve(['--data', join(newFolder(), 'new')]);
    const [, as = '', scope] =
      /curl -u '(.+?)'[\s\S]*"scopes":\["(.+?)"\]/.exec(service.greeting) ?? [];

    const created = await call(service, '/token', {
      as,
      method: 'POST',
      body: { scopes: [scope] },
    });

    expect(created.status).toBe(200);
    expect(created.body.scopes).toEqual([scope]);
    expect(created.body.token).toMatch(/^tw_1k1[0-9A-Za-z]{55}$/);
    expect((await call(service, '/token', { as: `${as}x` })).status).toBe(401);
  });

  it('shows the password once, and keeps keys, account and tokens', async () => {
    const data = newFolder();
    const first = await serve(['--data', data]);
    const as = /curl -u '(.+?)'/.exec(first.greeting)?.[1] ?? '';
    const body = { scopes: ['*:*/*'] };
    const { body: created } = await call(first, '/token', { as, method: 'POST', body });
    await first.stop();

    const second = await serve(['--data', data]);

    expect(second.greeting).not.toContain(as.split(':')[1]);
    expect((await call(second, '/token', { as })).body.data[0].token).toBe(created.token);
  });

  it('keeps no password, and lets only its owner read what it keeps', async () => {
    const data = join(newFolder(), 'new');
    const service = await serve(['--data', data]);
    const password = /curl -u 'admin:(.+?)'/.exec(service.greeting)?.[1] ?? '';
    await service.stop();

    expect(statSync(data).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(data)) {
      expect([name, statSync(join(data, name)).mode & 0o777]).toEqual([name, 0o600]);
      expect(readFileSync(join(data, name), 'latin1')).not.toContain(password);
    }
    expect(readdirSync(data)).toEqual(['account.json', 'keys.json', 'tokens.db']);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('answers what is in flight after %s', async (signal) => {
    const service = await serve(['--data', newFolder(), ...account]);
    const body = JSON.stringify({ scopes: ['GET:acme.example/status'] });
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
    socket.write(
      `POST /token HTTP/1.1\r\nHost: x\r\nAuthorization: Basic ${btoa('ada:pw')}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 9)}`,
    );
    // By the time a later call is answered, the server has read this one's head.
    await call(service, '/scopes');

    const ended = service.stop(signal);
    await expect(refusedSoon(service.url)).resolves.toBe(true);
    socket.write(body.slice(9));
    const answer = await new Promise<string>((resolve) => {
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk;
        if (text.includes('"success":')) resolve(text);
      });
    });
    socket.destroy();

    expect(answer).toContain('HTTP/1.1 200 OK');
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
  });

  it('runs twice on one file: what one issues, the other shows and revokes', async () => {
    const data = newFolder();
    const [one, other] = await Promise.all([
      serve(['--data', data, ...account]),
      serve(['--data', data, ...account]),
    ]);
    const body = { scopes: ['*:*/*'] };
    const { body: token } = await call(one, '/token', { method: 'POST', body });

    expect((await call(other, `/token/${token.id}`)).body.data[0].token).toBe(token.token);
    expect((await call(other, `/token/${token.id}`, { method: 'DELETE' })).status).toBe(200);
    expect((await call(one, `/token/${token.id}`)).status).toBe(404);
  });

  it('leaves no value and no secret in its files, and still shows the value', async () => {
    const data = newFolder();
    const service = await serve(['--data', data, ...account]);
    const issued = [];
    for (let i = 0; i < 5; i++) {
      const body = { scopes: ['*:*/*'] };
      issued.push((await call(service, '/token', { method: 'POST', body })).body);
    }
    const files = readdirSync(data).map((name) => readFileSync(join(data, name), 'latin1'));
    const text = files.join('\n');

    for (const { token, id } of issued) {
      const secret = token.slice('tw_1k1'.length + id.length, -6);
      expect(text).toContain(id); // the control: this is where tokens are kept
      for (const hidden of [token, secret, id + secret, btoa(secret), btoa(token)]) {
        expect(text).not.toContain(hidden);
      }
    }
    const listed = (await call(service, '/token')).body.data;
    expect(listed.map(({ token }: { token: string }) => token).sort()).toEqual(
      issued.map(({ token }) => token).sort(),
    );
  });

  it('with --reveal once, shows the id where the value was', async () => {
    const service = await serve(['--data', newFolder(), ...account, '--reveal', 'once']);
    const body = { scopes: ['*:*/*'] };
    const { body: created } = await call(service, '/token', { method: 'POST', body });

    expect(created.token).toMatch(/^tw_1/);
    expect((await call(service, '/token')).body.data[0].token).toBe(created.id);
    expect((await call(service, `/token/${created.token}`)).body.data[0].token).toBe(created.id);
  });

  it('takes what older clients send only when told to', async () => {
    const body = { scopes: ['*:*/*'], expire: 60 };
    const plain = await serve(['--data', newFolder(), ...account]);
    expect((await call(plain, '/token', { method: 'POST', body })).status).toBe(400);

    const legacy = await serve(['--data', newFolder(), ...account, '--accept-legacy-body']);
    const { body: token } = await call(legacy, '/token', { method: 'POST', body });
    expect(token.expire - token.createdAt).toBe(60);
  });

  it('answers introspection, revocation and only ids in paths when told to', async () => {
    const flags = ['--revocation', '--path-tokens', 'id-only', '--introspection', 'rs:secret'];
    const plain = await serve(['--data', newFolder(), ...account]);
    const service = await serve(['--data', newFolder(), ...account, ...flags]);
    const { body: token } = await call(service, '/token', {
      method: 'POST',
      body: { scopes: ['*:*/*'] },
    });
    const ask = (url: string, path: string, as: string) =>
      fetch(url + path, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(as)}` },
        body: new URLSearchParams({ token: token.token }),
      });

    const known = await ask(service.url, '/introspect', 'rs:secret');
    expect(await known.json()).toMatchObject({ active: true, sub: 'ada' });
    expect((await ask(service.url, '/introspect', 'ada:pw')).status).toBe(401);
    expect((await call(service, `/token/${token.token}`)).status).toBe(400);
    expect((await call(service, `/token/${token.id}`)).status).toBe(200);
    expect((await ask(service.url, '/revoke', 'nobody:x')).status).toBe(200);
    expect((await call(service, `/token/${token.id}`)).status).toBe(404);
    expect(service.greeting).toContain('  also      /introspect, /revoke\n');
    expect(service.greeting).not.toContain('secret');
    for (const path of ['/introspect', '/revoke']) {
      expect((await ask(plain.url, path, 'ada:pw')).status).toBe(404);
    }
  });

  it('takes the switches from the environment too', async () => {
    const service = await serve(['--data', newFolder(), ...account], {
      TOKENWRIGHT_INTROSPECTION: 'rs:one,other:two',
      TOKENWRIGHT_REVOCATION: 'on',
      TOKENWRIGHT_DOCS: 'true',
      TOKENWRIGHT_PATH_TOKENS: 'id-only',
    });

    expect(service.greeting).toContain('  also      /introspect, /revoke, /docs\n');
    expect((await fetch(`${service.url}/docs`)).status).toBe(200);
  });

  it('lets whoever guesses passwords wait, and nobody at another address', async () => {
    const flags = ['--client-header', 'X-Real-IP'];
    const service = await serve(['--data', newFolder(), ...account, ...flags]);
    const from = (address: string, password: string) =>
      fetch(`${service.url}/token`, {
        headers: { authorization: `Basic ${btoa(`ada:${password}`)}`, 'x-real-ip': address },
      }).then(({ status, headers }) => [status, Number(headers.get('retry-after'))] as const);

    const guesses = Array.from({ length: 100 }, () => from('192.0.2.1', 'no'));
    for (const [answered] of await Promise.all(guesses)) expect(answered).toBe(401);
    expect((await from('192.0.2.1', 'no'))[0]).toBe(429);
    const [status, seconds] = await from('192.0.2.1', 'pw');

    expect(status).toBe(429);
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(900);
    // What a client writes itself stands before what the proxy has seen.
    expect((await from('192.0.2.1, 192.0.2.2', 'pw'))[0]).toBe(200);
    expect((await from('192.0.2.2, 192.0.2.1', 'pw'))[0]).toBe(429);
    expect((await call(service, '/token')).status).toBe(200);
  });

  it('refuses headers that are larger than any of ours', async () => {
    const service = await serve(['--data', newFolder(), ...account]);
    const sized = async (length: number) =>
      (await fetch(`${service.url}/scopes`, { headers: { x: 'x'.repeat(length) } })).status;

    expect(await sized(15_000)).toBe(401);
    expect(await sized(17_000)).toBe(431);
  });

  it('takes its keys from a file of their own, which it does not make', async () => {
    const data = newFolder();
    const keys = join(newFolder(), 'k.json');
    await run(['keys', 'new', '--keys', keys, '--kid', 'zz']);
    const service = await serve(['--data', data, ...account], { TOKENWRIGHT_KEYS: keys });
    const body = { scopes: ['*:*/*'] };

    expect((await call(service, '/token', { method: 'POST', body })).body.token).toMatch(/^tw_1zz/);
    expect(existsSync(join(data, 'keys.json'))).toBe(false);
    const absent = await run(['serve', '--data', data, '--keys', join(data, 'none.json')]);
    expect(absent).toMatchObject({ code: 1, stdout: '' });
    expect(absent.stderr).toContain('there is no file of keys');
  });

  it('reads its settings from the environment, and lets flags win', async () => {
    const environment = {
      TOKENWRIGHT_ACCOUNTS: 'ada:pw,bob:with:colon',
      TOKENWRIGHT_PREFIX: 'env',
      TOKENWRIGHT_DATA: newFolder(),
      TOKENWRIGHT_HOST: '127.0.0.1',
      PORT: 'not a port',
    };
    const service = await serve(['--prefix', 'acme'], environment);
    const body = { scopes: ['*:*/*'] };

    const created = await call(service, '/token', { as: 'bob:with:colon', method: 'POST', body });

    expect(created.body.token).toMatch(/^acme_1/);
    expect(service.greeting).toContain('ada, bob');
    expect(existsSync(join(environment.TOKENWRIGHT_DATA, 'tokens.db'))).toBe(true);
    expect((await call(service, '/token', { as: 'bob:pw' })).status).toBe(401);
  });

  it.each([
    [['--nope'], 2, 'Unknown option'],
    [['--port', '65536'], 2, '--port (PORT) must be a whole number from 0 to 65535'],
    [['--port', '-1'], 2, '--port (PORT) must be a whole number'],
    [['--account', 'canary'], 2, 'must be user:password'],
    [['--account', 'canary:'], 2, 'must be user:password'],
    [['--account', 'a:canary', '--account', 'a:canary'], 1, 'accounts[1].username is used twice'],
    [['--introspection', 'canary'], 2, '--introspection (TOKENWRIGHT_INTROSPECTION) must be'],
    [['--path-tokens', 'canary'], 2, 'must be any or id-only'],
    [['--client-header', 'canary:'], 2, 'must be the name of a header'],
    [['--reveal', 'canary'], 2, 'must be once or always'],
    [['--prefix', 'ghp'], 1, 'another vendor'],
    [['--prefix', 'Canary'], 1, 'prefix must be'],
    [
      ['--catalog', '/nowhere/at-all.json'],
      1,
      'there is no file "/nowhere/at-all.json"; a catalog is',
    ],
    [['extra'], 2, 'Unexpected argument'],
  ])('ends with one clear line for %j', async (args, code, message) => {
    const ended = await run(['serve', '--data', newFolder(), '--port', '0', ...args]);

    expect(ended).toMatchObject({ code, stdout: '' });
    expect(ended.stderr).toContain(message);
    expect(ended.stderr).not.toMatch(/canary|\n.|at file/);
  });

  it.each([
    ['TOKENWRIGHT_ACOUNTS', 'did you mean TOKENWRIGHT_ACCOUNTS?'],
    ['TOKENWRIGHT_ACCOUNT', 'did you mean TOKENWRIGHT_ACCOUNTS?'],
    ['TOKENWRIGHT_PORT', 'did you mean PORT?'],
    ['TOKENWRIGHT_API_PORT', 'see tokenwright serve --help'],
    ['TOKENWRIGHT_', 'see tokenwright serve --help'],
  ])('refuses %s, which it would pass over, and makes nothing', async (name, hint) => {
    const data = join(newFolder(), 'data');

    const ended = await run(['serve', '--data', data, '--port', '0'], { [name]: 'ada:canary' });

    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toContain(`no command knows the variable ${name}; ${hint}`);
    expect(ended.stderr).not.toMatch(/canary|\n./);
    expect(existsSync(data)).toBe(false);
  });

  it('refuses such a variable in the other commands too, but for their help', async () => {
    const environment = { TOKENWRIGHT_STROE: 'postgres://ada:canary@db.example/acme' };
    const calls = [
      ['migrate'],
      ['token', 'list'],
      ['keys', 'check'],
      ['scopes', 'minimize', '*:*/*'],
    ];

    for (const words of calls) {
      const ended = await run(words, environment);
      expect(ended).toMatchObject({ code: 2, stdout: '' });
      expect(ended.stderr).toMatch(/TOKENWRIGHT_STROE; did you mean TOKENWRIGHT_STORE\?\n$/);
      expect(ended.stderr).not.toContain('canary');
    }
    expect(await run(['migrate', '--help'], environment)).toMatchObject({ code: 0, stderr: '' });
  });

  it('knows each variable that its help names', async () => {
    const { stdout } = await run(['serve', '--help']);
    const names = stdout.match(/TOKENWRIGHT_\w+/g) ?? [];
    const other = ['PASSWORD', 'TOKEN', 'URL', 'USER'].map((name) => `TOKENWRIGHT_${name}`);

    expect(names).toHaveLength(16);
    for (const name of [...names, ...other]) {
      expect(() => checkVariables({ [name]: 'x' }), name).not.toThrow();
      expect(() => checkVariables({ [`${name}X`]: 'x' }), name).toThrow(UsageError);
    }
  });

  it.each([
    ['TOKENWRIGHT_ACOUNTS', ''],
    ['MY_TOKENWRIGHT_ACOUNTS', 'x'],
    ['TOKENWRIGHTS', 'x'],
    // A service of Kubernetes that is called `tokenwright`, or `tokenwright-api`.
    ['TOKENWRIGHT_PORT', 'tcp://10.0.0.1:8787'],
    ['TOKENWRIGHT_SERVICE_HOST', '10.0.0.1'],
    ['TOKENWRIGHT_SERVICE_PORT', '8787'],
    ['TOKENWRIGHT_SERVICE_PORT_HTTP', '8787'],
    ['TOKENWRIGHT_PORT_8787_TCP', 'tcp://10.0.0.1:8787'],
    ['TOKENWRIGHT_PORT_8787_TCP_ADDR', '10.0.0.1'],
    ['TOKENWRIGHT_API_PORT', 'tcp://10.0.0.1:8787'],
    ['TOKENWRIGHT_API_SERVICE_HOST', '10.0.0.1'],
  ])('takes %s=%s for none of its own', (name, value) => {
    expect(() => checkVariables({ [name]: value })).not.toThrow();
  });

  it('ends with one clear line when the port is taken', async () => {
    const service = await serve(['--data', newFolder(), ...account]);
    const { port } = new URL(service.url);

    const ended = await run(['serve', '--data', newFolder(), '--port', port, ...account]);

    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toBe(
      `tokenwright: port ${port} of 127.0.0.1 is taken; give another --port\n`,
    );
  });

  it('makes no account whose password nobody would ever see', async () => {
    const service = await serve(['--data', newFolder(), ...account]);
    const { port } = new URL(service.url);
    const data = newFolder();

    await run(['serve', '--data', data, '--port', port]);
    const twice = ['--introspection', 'rs:canary', '--introspection', 'rs:canary'];
    const refused = await run(['serve', '--data', data, '--port', '0', ...twice]);
    expect(refused).toMatchObject({
      code: 2,
      stderr: 'tokenwright: introspection[1].username is used twice\n',
    });
    expect(existsSync(join(data, 'account.json'))).toBe(false);

    const next = await serve(['--data', data]);
    expect(existsSync(join(data, 'account.json'))).toBe(true);
    expect(next.greeting).toContain('made now');
  });

  it('ends when the account that it kept cannot be read', async () => {
    const data = newFolder();
    writeFileSync(join(data, 'account.json'), '{"username":"admin","passwordHash":"canary"}');

    const ended = await run(['serve', '--data', data, '--port', '0']);

    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain('passwordHash');
    expect(ended.stderr).not.toContain('canary');
  });
});

describe('--catalog', () => {
  const document = {
    openapi: '3.1.0',
    info: { title: 'Shop', version: '1' },
    servers: [{ url: 'https://shop.example/v1' }],
    paths: { '/orders/{id}': { get: {} }, '/': { get: {} } },
  };

  it('takes lists, documents and folders together', async () => {
    const folder = newFolder();
    mkdirSync(join(folder, 'more'));
    writeFileSync(join(folder, 'list.json'), '["GET:a.example/x"]');
    writeFileSync(join(folder, 'more', 'shop.json'), JSON.stringify(document));
    writeFileSync(join(folder, 'more', 'README.md'), 'nothing to read');
    const catalog = ['--catalog', join(folder, 'list.json'), '--catalog', join(folder, 'more')];
    const service = await serve(['--data', newFolder(), ...account, ...catalog]);

    expect((await call(service, '/scopes')).body.data).toEqual([
      'GET:a.example/x',
      'GET:shop.example/v1',
      'GET:shop.example/v1/orders',
    ]);
  });

  it('reads several from its variable', async () => {
    const folder = newFolder();
    writeFileSync(join(folder, 'a.json'), '["GET:a.example/x"]');
    writeFileSync(join(folder, 'b.json'), '["GET:b.example/x"]');
    const TOKENWRIGHT_CATALOG = `${join(folder, 'a.json')},${join(folder, 'b.json')}`;
    const service = await serve(['--data', newFolder(), ...account], { TOKENWRIGHT_CATALOG });

    expect((await call(service, '/scopes')).body.data).toHaveLength(2);
  });

  it.each([
    ['not-json.json', '["GET:a.example/x"', 'is not JSON'],
    [
      'wildcard.json',
      '["*:a.example/x"]',
      'wildcard.json: a catalog holds scopes with a real method',
    ],
    ['empty.json', '[]', 'holds no scopes'],
    ['other.json', '{"a":1}', 'is not an OpenAPI document'],
  ])('refuses %s with one clear line', async (name, content, message) => {
    const file = join(newFolder(), name);
    writeFileSync(file, content);

    const ended = await run(['serve', '--data', newFolder(), '--port', '0', '--catalog', file]);

    expect(ended.code).toBeGreaterThan(0);
    expect(ended.stderr).toContain(message);
    expect(ended.stderr.trim()).not.toContain('\n');
  });

  it('reads YAML beside JSON in a folder', async () => {
    const folder = newFolder();
    writeFileSync(join(folder, 'a.json'), '["GET:a.example/x"]');
    writeFileSync(
      join(folder, 'b.yaml'),
      'openapi: 3.1.0\nservers: [{ url: https://b.example }]\npaths: { /orders: { get: {} } }\n',
    );
    const service = await serve(['--data', newFolder(), ...account, '--catalog', folder]);

    expect((await call(service, '/scopes')).body.data).toEqual([
      'GET:a.example/x',
      'GET:b.example/orders',
    ]);
  });
});

describe.skipIf(!existsSync(new URL('../../../shared/data', import.meta.url)))('real input', () => {
  const shared = new URL('../../../shared/data/', import.meta.url).pathname;

  it('expands a list of 270 scopes, and takes its own answer back', async () => {
    const catalog = join(shared, 'catalog-270.json');
    const service = await serve(['--data', newFolder(), ...account, '--catalog', catalog]);
    const all = await call(service, '/token', { method: 'POST', body: { scopes: ['*:*/*'] } });
    expect(all.body.scopes).toHaveLength(270);

    const { scopes } = all.body;
    const again = await call(service, '/token', { method: 'POST', body: { scopes } });
    expect(again.body.scopes).toEqual(scopes);

    const changed = await call(service, `/token/${again.body.id}`, {
      method: 'PUT',
      body: { scopes: ['*:*.openapi.it/*'] },
    });
    const below = (JSON.parse(readFileSync(catalog, 'utf8')) as string[]).filter((scope) =>
      /^[A-Z]+:[^/]+\.openapi\.it\//.test(scope),
    );
    expect(changed.body.data[0].scopes).toEqual(below.sort());
    expect(below.length).toBeGreaterThan(10);
  });

  it('loads 14 documents, and what it issues is verified on the same file', async () => {
    const data = newFolder();
    const catalog = join(shared, 'oas');
    const service = await serve(['--data', data, ...account, '--catalog', catalog]);
    const scopes = ['GET:imprese.openapi.it/advance'];
    const { body } = await call(service, '/token', { method: 'POST', body: { scopes } });
    const tokens = new TokenService({
      store: SqliteTokenStore.open(join(data, 'tokens.db')),
      keys: JSON.parse(readFileSync(join(data, 'keys.json'), 'utf8')),
      prefix: 'tw',
    });
    const verify = (target: string) =>
      tokens.verify(body.token, { method: 'GET', domain: 'imprese.openapi.it', target });

    expect(await verify('/advance/12485671007')).toMatchObject({ ok: true, grantedBy: scopes[0] });
    expect(await verify('/advancex')).toMatchObject({ ok: false, reason: 'insufficient_scope' });
    await tokens.close();
  });
});

describe('the command', () => {
  it('shows help and version', async () => {
    expect(await run(['--help'])).toMatchObject({ code: 0, stderr: '' });
    const help = (await run(['serve', '--help'])).stdout;
    expect(help).toContain('--catalog');
    for (const said of ['Ctrl-C', 'SIGTERM', 'ends with 0', 'npx']) expect(help).toContain(said);
    expect((await run(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it.each([[[]], [['sevre']]])('says what it knows when called as %j', async (args) => {
    const ended = await run(args);

    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toContain('command');
  });
});

/** Whether a server stops taking connections, which it does at once after the signal. */
async function refusedSoon(url: string): Promise<boolean> {
  for (let tries = 0; tries < 500; tries++) {
    const isRefused = await fetch(`${url}/scopes`, { headers: { connection: 'close' } }).then(
      () => false,
      () => true,
    );
    if (isRefused) return true;
  }
  return false;
}
