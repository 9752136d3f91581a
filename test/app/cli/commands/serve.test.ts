import { randomBytes, scryptSync } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { TokenService } from '../../../../src/index.ts';
import { SqliteTokenStore } from '../../../../src/stores/sqlite/index.ts';
import {
  ACCOUNT,
  call,
  check,
  newFolder,
  REAL_DATA,
  type RunningService,
  run,
  serve,
} from '../support.ts';

describe('tokenwright serve', () => {
  it('creates an account on its first start, and the printed call works', async () => {
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

  it('shows the password once, and keeps keys, account and tokens across a restart', async () => {
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

  it('stores no password, and creates files that only their owner can read', async () => {
    const data = join(newFolder(), 'new');
    const service = await serve(['--data', data]);
    const password = /curl -u 'admin:(.+?)'/.exec(service.greeting)?.[1] ?? '';
    await service.stop();

    expect(statSync(data).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(data)) {
      expect([name, statSync(join(data, name)).mode & 0o777]).toEqual([name, 0o600]);
      expect(readFileSync(join(data, name), 'latin1')).not.toContain(password);
    }
    expect(readdirSync(data)).toEqual(['account.json', 'keys.json', 'tokens.db', 'usage.db']);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'finishes requests in flight after %s',
    async (signal) => {
      const service = await serve(['--data', newFolder(), ...ACCOUNT]);
      const { socket, finish } = await beginCall(service);

      const ended = service.stop(signal);
      await expect(refusedSoon(service.url)).resolves.toBe(true);
      const answer = await finish();
      socket.destroy();

      expect(answer).toContain('HTTP/1.1 200 OK');
      expect(answer).toContain('connection: close');
      expect(await ended).toMatchObject({ code: 0, stderr: '' });
    },
  );

  it('closes idle connections when it stops', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT]);
    const { port } = new URL(service.url);
    const unused = connect(Number(port), '127.0.0.1');
    const closed = once(unused.resume(), 'close');
    // fetch keeps its connection open.
    expect((await fetch(`${service.url}/openapi.json`)).status).toBe(200);

    expect(await service.stop()).toMatchObject({ code: 0, stderr: '' });
    await closed;
  });

  it('exits immediately on a second signal', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT]);
    const { socket } = await beginCall(service);
    const ended = service.stop('SIGINT');
    await expect(refusedSoon(service.url)).resolves.toBe(true);

    expect(await service.stop('SIGTERM')).toMatchObject({ code: 143 });
    await ended;
    socket.destroy();
  });

  it('cuts off requests that take too long during shutdown, and warns', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT]);
    const { socket } = await beginCall(service);
    const closed = once(socket, 'close');

    const { code, stderr } = await service.stop();

    expect(code).toBe(0);
    expect(stderr).toBe('tokenwright: warning: 1 call was cut off: it took longer than 6000 ms\n');
    await closed;
  });

  it('shares one file with a second process, which shows and revokes its tokens', async () => {
    const data = newFolder();
    const [one, other] = await Promise.all([
      serve(['--data', data, ...ACCOUNT]),
      serve(['--data', data, ...ACCOUNT]),
    ]);
    const body = { scopes: ['*:*/*'] };
    const { body: token } = await call(one, '/token', { method: 'POST', body });

    expect((await call(other, `/token/${token.id}`)).body.data[0].token).toBe(token.token);
    expect((await call(other, `/token/${token.id}`, { method: 'DELETE' })).status).toBe(200);
    expect((await call(one, `/token/${token.id}`)).status).toBe(404);
  });

  it('stores no readable value or secret in its files, and can still show values', async () => {
    const data = newFolder();
    const service = await serve(['--data', data, ...ACCOUNT]);
    const issued = [];
    for (let i = 0; i < 5; i++) {
      const body = { scopes: ['*:*/*'] };
      issued.push((await call(service, '/token', { method: 'POST', body })).body);
    }
    const files = readdirSync(data).map((name) => readFileSync(join(data, name), 'latin1'));
    const text = files.join('\n');

    for (const { token, id } of issued) {
      const secret = token.slice('tw_1k1'.length + id.length, -6);
      expect(text).toContain(id); // control: this is where tokens are stored
      for (const hidden of [token, secret, id + secret, btoa(secret), btoa(token)]) {
        expect(text).not.toContain(hidden);
      }
    }
    const listed = (await call(service, '/token')).body.data;
    expect(listed.map(({ token }: { token: string }) => token).sort()).toEqual(
      issued.map(({ token }) => token).sort(),
    );
  });

  it('shows the id in place of the value with --reveal once', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT, '--reveal', 'once']);
    const body = { scopes: ['*:*/*'] };
    const { body: created } = await call(service, '/token', { method: 'POST', body });

    expect(created.token).toMatch(/^tw_1/);
    expect((await call(service, '/token')).body.data[0].token).toBe(created.id);
    expect((await call(service, `/token/${created.token}`)).body.data[0].token).toBe(created.id);
  });

  it('limits the tokens of an account and the scopes of a token', async () => {
    const flags = ['--max-tokens', '2', '--max-scopes', '1'];
    const data = newFolder();
    const service = await serve(['--data', data, ...ACCOUNT, ...flags]);
    const issue = (...scopes: string[]) =>
      call(service, '/token', { method: 'POST', body: { scopes } });
    const { body: all } = await call(service, '/scopes');
    const [one, other] = all.data;

    expect((await issue(one, other)).body).toMatchObject({ code: 'quota_exceeded' });
    expect((await issue(one)).status).toBe(200);
    expect((await issue(one)).status).toBe(200);
    expect((await issue(one)).body).toMatchObject({ code: 'quota_exceeded' });
    await service.stop();
    // The commands that work on the same store read the same variables.
    const words = ['token', 'issue', '--data', data, '--account', 'ada', '--scope', one];
    const refused = await run(words, { TOKENWRIGHT_MAX_TOKENS: '2' });
    expect(refused.code).toBe(1);
    expect((await run(words)).code).toBe(0);
  });

  it('limits the lifetime of tokens, also of those that a command issues', async () => {
    const data = newFolder();
    const environment = { TOKENWRIGHT_MAX_TTL: '90d', TOKENWRIGHT_DEFAULT_TTL: '1h' };
    const service = await serve(['--data', data, ...ACCOUNT], environment);
    const issue = (ttl?: number) =>
      call(service, '/token', { method: 'POST', body: { scopes: ['*:*/*'], ttl } });
    const livesFor = ({ expire, createdAt }: { expire: number; createdAt: number }) =>
      expire - createdAt;

    expect(livesFor((await issue()).body)).toBe(3600);
    expect(livesFor((await issue(7_776_000)).body)).toBe(7_776_000);
    expect(await issue(7_776_001)).toMatchObject({ status: 422, body: { code: 'invalid_ttl' } });
    const words = ['token', 'issue', '--data', data, '--account', 'ada', '--patterns', '--json'];
    const byCommand = [...words, '--scope', 'GET:shop.example/orders'];
    expect(livesFor(JSON.parse((await run(byCommand, environment)).stdout))).toBe(3600);
    expect((await run([...byCommand, '--ttl', '91d'], environment)).code).toBe(1);
  });

  it('describes itself at / without a version', async () => {
    const [plain, described] = await Promise.all([
      serve(['--data', newFolder(), ...ACCOUNT]),
      serve(['--data', newFolder(), ...ACCOUNT, '--docs']),
    ]);
    const get = async (service: typeof plain, path: string, method = 'GET') => {
      const response = await fetch(service.url + path, { method });
      return { status: response.status, text: await response.text(), headers: response.headers };
    };
    const probes = { healthz: './healthz', readyz: './readyz' };
    const links = { openapi: './openapi.json', console: './console', ...probes };
    const data = { name: 'tokenwright', ...links };
    const answer = { data, success: true, message: '', error: null };

    const { status, text, headers } = await get(plain, '/');
    expect([status, JSON.parse(text)]).toEqual([200, answer]);
    expect(headers.get('cache-control')).toBe('no-cache');
    expect(JSON.parse((await get(plain, '/?a=b')).text)).toEqual(answer);
    expect(await get(plain, '/', 'HEAD')).toMatchObject({ status: 200, text: '' });
    const refused = await get(plain, '/', 'POST');
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    expect(JSON.parse((await get(described, '/')).text).data).toEqual({ ...data, docs: './docs' });
    for (const path of ['/openapi.json', '/docs']) {
      expect((await get(described, path)).status, path).toBe(200);
    }
    for (const path of ['//', '/nowhere', '/index.html', '/docs']) {
      expect((await get(plain, path)).status, path).toBe(404);
    }
  });

  it('answers a gateway at /check only with --gateway, and only for bearer tokens', async () => {
    const [plain, checked] = await Promise.all([
      serve(['--data', newFolder(), ...ACCOUNT]),
      serve(['--data', newFolder(), ...ACCOUNT, '--gateway', 'nginx', '--domain', 'acme.example']),
    ]);
    const ask = async ({ url }: typeof plain, authorization: string) => {
      const headers = { authorization, 'x-original-method': 'GET', 'x-original-uri': '/status' };
      const response = await fetch(`${url}/check`, { headers });
      return [response.status, response.headers.get('x-account')];
    };
    const body = { scopes: ['GET:acme.example/status'], ttl: 60 };
    const { token: value } = (await call(checked, '/token', { method: 'POST', body })).body;

    expect(await ask(checked, `Bearer ${value}`)).toEqual([200, 'ada']);
    expect(await ask(checked, `Basic ${btoa('ada:correct-horse')}`)).toEqual([401, null]);
    expect(await ask(plain, `Bearer ${value}`)).toEqual([404, null]);
  });

  it('accepts the request body of older clients only with --accept-legacy-body', async () => {
    const body = { scopes: ['*:*/*'], expire: 60 };
    const plain = await serve(['--data', newFolder(), ...ACCOUNT]);
    expect((await call(plain, '/token', { method: 'POST', body })).status).toBe(400);

    const legacy = await serve(['--data', newFolder(), ...ACCOUNT, '--accept-legacy-body']);
    const { body: token } = await call(legacy, '/token', { method: 'POST', body });
    expect(token.expire - token.createdAt).toBe(60);
  });

  it('enables introspection, revocation and id-only paths with flags', async () => {
    const flags = [
      '--revocation',
      '--path-tokens',
      'id-only',
      '--introspection',
      'rs:battery-staple',
    ];
    const plain = await serve(['--data', newFolder(), ...ACCOUNT]);
    const service = await serve(['--data', newFolder(), ...ACCOUNT, ...flags]);
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

    const known = await ask(service.url, '/introspect', 'rs:battery-staple');
    expect(await known.json()).toMatchObject({ active: true, sub: 'ada' });
    expect((await ask(service.url, '/introspect', 'ada:correct-horse')).status).toBe(401);
    expect((await call(service, `/token/${token.token}`)).status).toBe(400);
    expect((await call(service, `/token/${token.id}`)).status).toBe(200);
    expect((await ask(service.url, '/revoke', 'nobody:x')).status).toBe(200);
    expect((await call(service, `/token/${token.id}`)).status).toBe(404);
    expect(service.greeting).toContain(
      '  also      /healthz, /readyz, /introspect, /revoke, /example/orders\n',
    );
    expect(service.greeting).not.toContain('staple');
    for (const path of ['/introspect', '/revoke']) {
      expect((await ask(plain.url, path, 'ada:correct-horse')).status).toBe(404);
    }
  });

  it('exchanges tokens and publishes its metadata with --issuer and --exchange', async () => {
    const issuer = 'https://auth.example/one';
    const plain = await serve(['--data', newFolder(), ...ACCOUNT]);
    const flags = ['--exchange', '--issuer', issuer, '--introspection', 'rs:battery-staple'];
    const service = await serve(['--data', newFolder(), ...ACCOUNT, ...flags]);
    const path = '/.well-known/oauth-authorization-server/one';
    const { body: token } = await call(service, '/token', {
      method: 'POST',
      body: { scopes: ['*:*/*'] },
    });
    const exchange = (url: string) =>
      fetch(`${url}/oauth/token`, {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
          subject_token: token.token,
          subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
          scope: 'GET:*/*',
        }),
      });

    const metadata = await fetch(service.url + path);
    expect(metadata.headers.get('access-control-allow-origin')).toBe('*');
    expect(await metadata.json()).toMatchObject({
      issuer,
      token_endpoint: `${issuer}/oauth/token`,
      introspection_endpoint: `${issuer}/introspect`,
    });
    const methods = ['HEAD', 'OPTIONS', 'POST'].map((method) =>
      fetch(service.url + path, { method }),
    );
    const statuses = (await Promise.all(methods)).map(({ status }) => status);
    expect(statuses).toEqual([200, 204, 405]);
    const answer = await exchange(service.url);
    expect([answer.status, (await answer.json()).token_type]).toEqual([200, 'Bearer']);
    expect(service.greeting).toContain(`/introspect, /oauth/token, ${path}, `);
    expect((await exchange(plain.url)).status).toBe(404);
    expect((await fetch(plain.url + path)).status).toBe(404);
  });

  it('takes requests for tokens with --issuer and --requests', async () => {
    const issuer = 'https://auth.example/one';
    const audit = join(newFolder(), 'audit.log');
    const flags = ['--issuer', issuer, '--requests', 'anyone', '--audit', audit];
    const service = await serve(['--data', newFolder(), ...ACCOUNT, ...flags]);
    const form = (path: string, members: Record<string, string>) =>
      fetch(service.url + path, { method: 'POST', body: new URLSearchParams(members) });
    const client_id = 'deploy bot';

    const opened = await (await form('/oauth/device', { client_id, scope: 'GET:*/*' })).json();
    expect(opened).toMatchObject({ verification_uri: `${issuer}/approve`, expires_in: 600 });
    const { user_code, device_code } = opened;
    const path = `/request/${user_code}/approve`;
    const { body: approved } = await call(service, path, { method: 'POST', body: {} });
    expect(approved.data).toMatchObject({ state: 'approved', client: client_id });
    const grant_type = 'urn:ietf:params:oauth:grant-type:device_code';
    const answer = await form('/oauth/token', { grant_type, client_id, device_code });
    expect(await answer.json()).toMatchObject({ token_type: 'Bearer', expires_in: 3600 });

    const page = await fetch(`${service.url}/approve`, { redirect: 'manual' });
    expect([page.status, page.headers.get('location')]).toEqual([302, './console#/approve']);
    const metadata = await fetch(`${service.url}/.well-known/oauth-authorization-server/one`);
    expect(await metadata.json()).toMatchObject({
      device_authorization_endpoint: `${issuer}/oauth/device`,
    });
    await service.stop();
    const lines = readFileSync(audit, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const { request } = lines.find(({ event }) => event === 'requested');
    expect(lines).toContainEqual(expect.objectContaining({ event: 'approved', request }));
    expect(lines).toContainEqual(expect.objectContaining({ event: 'issued', request }));
    expect(JSON.stringify(lines)).not.toMatch(new RegExp(`${user_code}|${device_code}`));
  });

  it('lets only bearers ask with --requests elevate', async () => {
    const flags = ['--issuer', 'https://auth.example', '--requests', 'elevate'];
    const service = await serve(['--data', newFolder(), ...ACCOUNT, ...flags]);
    const body = new URLSearchParams({ client_id: 'bot', scope: 'GET:*/*' });

    const answer = await fetch(`${service.url}/oauth/device`, { method: 'POST', body });

    expect(await answer.json()).toMatchObject({ error: 'unauthorized_client' });
  });

  it('enables introspection, revocation and docs with variables', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT], {
      TOKENWRIGHT_INTROSPECTION: 'rs:battery-staple,other:staple-battery',
      TOKENWRIGHT_REVOCATION: 'on',
      TOKENWRIGHT_DOCS: 'true',
      TOKENWRIGHT_PATH_TOKENS: 'id-only',
    });

    expect(service.greeting).toContain(
      '  also      /healthz, /readyz, /introspect, /revoke, /docs, /example/orders\n',
    );
    expect((await fetch(`${service.url}/docs`)).status).toBe(200);
  });

  it('slows down password guessing per client address', async () => {
    const flags = ['--client-header', 'X-Real-IP'];
    const service = await serve(['--data', newFolder(), ...ACCOUNT, ...flags]);
    const from = (address: string, password: string) =>
      fetch(`${service.url}/token`, {
        headers: { authorization: `Basic ${btoa(`ada:${password}`)}`, 'x-real-ip': address },
      }).then(({ status, headers }) => [status, Number(headers.get('retry-after'))] as const);

    expect((await from('192.0.2.2', 'correct-horse'))[0]).toBe(200);
    const guesses = Array.from({ length: 100 }, () => from('192.0.2.1', 'no'));
    for (const [answered] of await Promise.all(guesses)) expect(answered).toBe(401);
    expect((await from('192.0.2.1', 'no'))[0]).toBe(429);
    const [status, seconds] = await from('192.0.2.1', 'correct-horse');

    expect(status).toBe(429);
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(900);
    // Also from elsewhere, unless the user has signed in from there before.
    expect((await from('192.0.2.3', 'correct-horse'))[0]).toBe(429);
    // A client can send the header itself, but the proxy adds the last entry.
    expect((await from('192.0.2.1, 192.0.2.2', 'correct-horse'))[0]).toBe(200);
    expect((await from('192.0.2.2, 192.0.2.1', 'correct-horse'))[0]).toBe(429);
  });

  it('lets an address sign in while another one guesses passwords', async () => {
    const flags = ['--client-header', 'X-Real-IP'];
    const service = await serve(['--data', newFolder(), ...ACCOUNT, ...flags]);
    let answered = 0;
    const from = async (address: string, password: string) => {
      const authorization = `Basic ${btoa(`ada:${password}`)}`;
      const headers = { authorization, 'x-real-ip': address };
      return (await fetch(`${service.url}/token`, { headers })).status;
    };
    const count = () => {
      answered += 1;
    };

    for (let i = 0; i < 40; i++) {
      // The service ends before most of them are answered.
      from('192.0.2.1:80', `guess ${i}`).then(count, () => {});
    }

    expect(await from('[2001:db8::1]:80', 'correct-horse')).toBe(200);
    expect(answered).toBeLessThan(20);
    expect(await from('not an address', 'correct-horse')).toBe(503);
  });

  it('upgrades a stored password hash of an earlier version when its password is used', async () => {
    const data = newFolder();
    const path = join(data, 'account.json');
    const salt = randomBytes(16);
    const hash = scryptSync('old password', salt, 32, { N: 16_384, r: 8, p: 1 });
    const passwordHash = `$scrypt$ln=14,r=8,p=1$${salt.toString('base64url')}$${hash.toString('base64url')}`;
    const kept = { username: 'admin', passwordHash, account: 'acme' };
    writeFileSync(path, JSON.stringify(kept), { mode: 0o600 });
    const first = await serve(['--data', data]);

    expect((await call(first, '/token', { as: 'admin:wrong' })).status).toBe(401);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(kept);
    expect((await call(first, '/token', { as: 'admin:old password' })).status).toBe(200);
    await expect
      .poll(() => JSON.parse(readFileSync(path, 'utf8')), { timeout: 10_000 })
      .toEqual({ ...kept, passwordHash: expect.stringMatching(/^\$scrypt\$ln=14,r=8,p=5\$/) });
    await first.stop();

    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(data)).toEqual(['account.json', 'keys.json', 'tokens.db', 'usage.db']);
    const second = await serve(['--data', data]);
    expect((await call(second, '/token', { as: 'admin:old password' })).status).toBe(200);
  });

  it('refuses request headers of 17 000 bytes, but not of 15 000', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT]);
    const sized = async (length: number) =>
      (await fetch(`${service.url}/scopes`, { headers: { x: 'x'.repeat(length) } })).status;

    expect(await sized(15_000)).toBe(401);
    expect(await sized(17_000)).toBe(431);
  });

  it('reads keys from a separate file, which it never creates', async () => {
    const data = newFolder();
    const keys = join(newFolder(), 'k.json');
    await run(['keys', 'new', '--keys', keys, '--kid', 'zz']);
    const service = await serve(['--data', data, ...ACCOUNT], { TOKENWRIGHT_KEYS: keys });
    const body = { scopes: ['*:*/*'] };

    expect((await call(service, '/token', { method: 'POST', body })).body.token).toMatch(/^tw_1zz/);
    expect(existsSync(join(data, 'keys.json'))).toBe(false);
    const absent = await run(['serve', '--data', data, '--keys', join(data, 'none.json')]);
    expect(absent).toMatchObject({ code: 1, stdout: '' });
    expect(absent.stderr).toContain('" does not exist: serve and tokenwright keys new');
  });

  it('reads its settings from the environment, and flags override them', async () => {
    const environment = {
      TOKENWRIGHT_ACCOUNTS: 'ada:correct-horse,bob:with:colon',
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
    [['--nope'], 2, 'serve has no flag --nope; see tokenwright serve --help'],
    [['--port', '65536'], 2, '--port (PORT) must be a whole number from 0 to 65535'],
    [['--port', '-1'], 2, '--port (PORT) must be a whole number'],
    [['--account', 'canary'], 2, 'must be user:password'],
    [['--account', 'canary:'], 2, 'must be user:password'],
    [
      ['--account', 'a:canary-canary', '--account', 'a:canary-canary'],
      2,
      '--account (TOKENWRIGHT_ACCOUNTS): a is given twice',
    ],
    [['--account', 'ada:canary7'], 2, 'must have a password of at least 8 characters'],
    [['--account', 'ada:🐤🐤🐤🐤🐤🐤🐤'], 2, 'must have a password of at least 8 characters'],
    [
      ['--account', 'ada:canary-8', '--account', 'bob:canary7'],
      2,
      'entry 2 of --account (TOKENWRIGHT_ACCOUNTS) must have a password of at least 8',
    ],
    [['--introspection', 'rs:canary7'], 2, '--introspection (TOKENWRIGHT_INTROSPECTION) must have'],
    [['--exchange'], 2, '--exchange needs --issuer, such as https://auth.example'],
    [['--requests', 'anyone'], 2, '--requests needs --issuer, such as https://auth.example'],
    [
      ['--requests', 'elevate', '--issuer', 'https://auth.example', '--console', 'off'],
      2,
      '--requests needs the console, where people approve: leave out --console off',
    ],
    [['--issuer', 'http://auth.example'], 2, '--issuer (TOKENWRIGHT_ISSUER) must be an https URL'],
    [
      ['--max-tokens', '0'],
      2,
      '--max-tokens (TOKENWRIGHT_MAX_TOKENS) must be a whole number from 1',
    ],
    [['--max-tokens', '1000001'], 2, 'must be a whole number from 1 to 1000000'],
    [['--max-scopes', '4097'], 2, '--max-scopes (TOKENWRIGHT_MAX_SCOPES) must be a whole number'],
    [['--max-ttl', '366d'], 2, '--max-ttl (TOKENWRIGHT_MAX_TTL) must be from 1s to 365d'],
    [['--default-ttl', '0'], 2, '--default-ttl (TOKENWRIGHT_DEFAULT_TTL) must be from 1s'],
    [['--max-ttl', '1h', '--default-ttl', '2h'], 2, 'must not be more than --max-ttl'],
    [['--max-scopes', '-1'], 2, 'must be a whole number from 1 to 4096'],
    [['--gateway', 'canary'], 2, 'must be nginx, traefik or envoy'],
    [['--gateway', 'nginx'], 2, '--gateway (TOKENWRIGHT_GATEWAY) needs --domain'],
    [['--domain', 'shop.example'], 2, '--domain (TOKENWRIGHT_DOMAIN) needs --gateway'],
    [
      ['--gateway', 'nginx', '--domain', 'https://shop.example'],
      2,
      '--domain (TOKENWRIGHT_DOMAIN)',
    ],
    [['--account-file', '/nowhere/at-all'], 1, '/nowhere/at-all does not exist: correct'],
    [['--introspection', 'canary'], 2, '--introspection (TOKENWRIGHT_INTROSPECTION) must be'],
    [['--granularity', 'canary'], 2, 'must be operation or prefix'],
    [['--path-tokens', 'canary'], 2, 'must be any or id-only'],
    [['--client-header', 'canary:'], 2, 'must be the name of a header'],
    [['--reveal', 'canary'], 2, 'must be once or always'],
    [['--prefix', 'ghp'], 1, 'another vendor'],
    [['--prefix', 'Canary'], 1, 'prefix must be'],
    [
      ['--catalog', '/nowhere/at-all.json'],
      1,
      '"/nowhere/at-all.json" does not exist; a catalog is',
    ],
    [['--host', '192.0.2.1'], 1, '--host must be a name or an address of this machine'],
    [['--host', 'no.host.invalid'], 1, '--host must be a name or an address of this machine'],
    [['--audit', '/nowhere/at-all'], 1, 'cannot be opened for --audit (TOKENWRIGHT_AUDIT): ENOENT'],
    [['--audit', '/'], 1, 'cannot be opened for --audit (TOKENWRIGHT_AUDIT): EISDIR'],
    [['--store', 'sqlite:/nowhere/at-all.db'], 1, 'the database file cannot be opened'],
    [['--store', 'canary'], 2, '--store (TOKENWRIGHT_STORE) must begin with'],
    [['--trust-proxy', 'canary'], 2, '--trust-proxy (TOKENWRIGHT_TRUST_PROXY)'],
    [['extra'], 2, 'Unexpected argument'],
  ])('exits with a one-line error for %j, also with --check', async (args, code, message) => {
    const flags = ['--data', newFolder(), '--port', '0', ...args];
    const ended = await run(['serve', ...flags]);

    expect(await check(flags)).toEqual(ended);
    expect(ended).toMatchObject({ code, stdout: '' });
    expect(ended.stderr).toContain(message);
    expect(ended.stderr).not.toMatch(/canary|\n.|at file/);
  });

  it.each([
    ['TOKENWRIGHT_ACOUNTS', 'did you mean TOKENWRIGHT_ACCOUNTS?'],
    ['TOKENWRIGHT_ACCOUNT', 'did you mean TOKENWRIGHT_ACCOUNTS?'],
    ['TOKENWRIGHT_PORT', 'did you mean PORT?'],
    ['TOKENWRIGHT_API_PORT', 'did you mean PORT?'],
    ['TOKENWRIGHT_QUARTZ', 'see tokenwright serve --help'],
    ['TOKENWRIGHT_', 'see tokenwright serve --help'],
  ])('refuses the unknown variable %s, and creates nothing', async (name, hint) => {
    const data = join(newFolder(), 'data');

    const ended = await run(['serve', '--data', data, '--port', '0'], { [name]: 'ada:canary' });

    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toContain(`no command knows the variable ${name}; ${hint}`);
    expect(ended.stderr).not.toMatch(/canary|\n./);
    expect(existsSync(data)).toBe(false);
  });

  it('exits with a one-line error if the port is taken', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT]);
    const { port } = new URL(service.url);

    const ended = await run(['serve', '--data', newFolder(), '--port', port, ...ACCOUNT]);

    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toBe(
      `tokenwright: port ${port} of 127.0.0.1 is taken; give another --port\n`,
    );
  });

  it('creates no account if it fails before it can show the password', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT]);
    const { port } = new URL(service.url);
    const data = newFolder();

    await run(['serve', '--data', data, '--port', port]);
    const twice = ['--introspection', 'rs:canary-canary', '--introspection', 'rs:canary-canary'];
    const refused = await run(['serve', '--data', data, '--port', '0', ...twice]);
    expect(refused).toMatchObject({
      code: 2,
      stderr: 'tokenwright: --introspection (TOKENWRIGHT_INTROSPECTION): rs is given twice\n',
    });
    expect(existsSync(join(data, 'account.json'))).toBe(false);

    const next = await serve(['--data', data]);
    expect(existsSync(join(data, 'account.json'))).toBe(true);
    expect(next.greeting).toContain('made now');
  });

  it.each(['keys.json', 'account.json'])(
    'exits with 2 if %s in its data folder is damaged',
    async (name) => {
      const data = newFolder();
      writeFileSync(join(data, name), '{"canary":', { mode: 0o600 });

      const ended = await run(['serve', '--data', data, '--port', '0']);

      expect(await check(['--data', data])).toEqual(ended);
      expect(ended).toMatchObject({ code: 2, stdout: '' });
      expect(ended.stderr).toBe(
        `tokenwright: ${join(data, name)} is not JSON: look at line 1, column 11\n`,
      );
    },
  );

  it('exits with an error if its stored account is invalid', async () => {
    const data = newFolder();
    const content = '{"username":"admin","passwordHash":"canary"}';
    writeFileSync(join(data, 'account.json'), content, { mode: 0o600 });

    const ended = await run(['serve', '--data', data, '--port', '0']);

    expect(await check(['--data', data])).toEqual(ended);
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain('passwordHash');
    expect(ended.stderr).not.toContain('canary');
  });
});

describe('serve --catalog', () => {
  const document = {
    openapi: '3.1.0',
    info: { title: 'Shop', version: '1' },
    servers: [{ url: 'https://shop.example/v1' }],
    paths: { '/orders/{id}': { get: {} }, '/': { get: {} } },
  };

  it('reads lists, documents and folders together', async () => {
    const folder = newFolder();
    mkdirSync(join(folder, 'more'));
    writeFileSync(join(folder, 'list.json'), '["GET:a.example/x"]');
    writeFileSync(join(folder, 'more', 'shop.json'), JSON.stringify(document));
    writeFileSync(join(folder, 'more', 'README.md'), 'nothing to read');
    const catalog = ['--catalog', join(folder, 'list.json'), '--catalog', join(folder, 'more')];
    const service = await serve(['--data', newFolder(), ...ACCOUNT, ...catalog]);

    expect((await call(service, '/scopes')).body.data).toEqual([
      'GET:a.example/x',
      'GET:shop.example/v1$',
      'GET:shop.example/v1/orders/{}$',
    ]);
  });

  it.each([
    ['operation', ['GET:shop.example/$', 'GET:shop.example/orders/{}$']],
    ['prefix', ['GET:shop.example/orders', 'GET:shop.example/root']],
  ])(
    'reads documents with --granularity %s, set by flag or variable',
    async (granularity, scopes) => {
      const file = join(newFolder(), 'shop.json');
      const servers = [{ url: 'https://shop.example' }];
      writeFileSync(file, JSON.stringify({ ...document, servers }));
      const settings = ['--data', newFolder(), ...ACCOUNT, '--catalog', file];
      const TOKENWRIGHT_GRANULARITY = granularity;
      const byFlag = await serve([...settings, '--granularity', granularity]);
      const byVariable = await serve(settings, { TOKENWRIGHT_GRANULARITY });

      expect((await call(byFlag, '/scopes')).body.data).toEqual(scopes);
      expect((await call(byVariable, '/scopes')).body.data).toEqual(scopes);
    },
  );

  it('reads several files from its variable', async () => {
    const folder = newFolder();
    writeFileSync(join(folder, 'a.json'), '["GET:a.example/x"]');
    writeFileSync(join(folder, 'b.json'), '["GET:b.example/x"]');
    const TOKENWRIGHT_CATALOG = `${join(folder, 'a.json')},${join(folder, 'b.json')}`;
    const service = await serve(['--data', newFolder(), ...ACCOUNT], { TOKENWRIGHT_CATALOG });

    expect((await call(service, '/scopes')).body.data).toHaveLength(2);
  });

  it.each([
    ['not-json.json', '["GET:a.example/x"', 'is not JSON'],
    ['wildcard.json', '["*:a.example/x"]', 'wildcard.json: an entry of a catalog names one method'],
    ['empty.json', '[]', 'holds no scopes'],
    ['other.json', '{"a":1}', 'is not an OpenAPI document'],
  ])('refuses %s with a one-line error', async (name, content, message) => {
    const file = join(newFolder(), name);
    writeFileSync(file, content);

    const ended = await run(['serve', '--data', newFolder(), '--port', '0', '--catalog', file]);

    expect(ended.code).toBeGreaterThan(0);
    expect(ended.stderr).toContain(message);
    expect(ended.stderr.trim()).not.toContain('\n');
  });

  it('reads YAML and JSON files of a folder', async () => {
    const folder = newFolder();
    writeFileSync(join(folder, 'a.json'), '["GET:a.example/x"]');
    writeFileSync(
      join(folder, 'b.yaml'),
      'openapi: 3.1.0\nservers: [{ url: https://b.example }]\npaths: { /orders: { get: {} } }\n',
    );
    const service = await serve(['--data', newFolder(), ...ACCOUNT, '--catalog', folder]);

    expect((await call(service, '/scopes')).body.data).toEqual([
      'GET:a.example/x',
      'GET:b.example/orders$',
    ]);
  });
});

describe.skipIf(!existsSync(REAL_DATA))('serve with real data', () => {
  it('expands a wildcard to 270 scopes, and accepts its own answer as a request', async () => {
    const catalog = join(REAL_DATA, 'catalog-270.json');
    const service = await serve(['--data', newFolder(), ...ACCOUNT, '--catalog', catalog]);
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

  it('loads 14 documents, and a service on the same file verifies its tokens', async () => {
    const data = newFolder();
    const catalog = join(REAL_DATA, 'oas');
    const service = await serve(['--data', data, ...ACCOUNT, '--catalog', catalog]);
    const scopes = ['GET:imprese.openapi.it/advance'];
    const { body } = await call(service, '/token', { method: 'POST', body: { scopes } });
    expect(body.scopes).toEqual([`${scopes[0]}$`, `${scopes[0]}/{}$`]);
    const tokens = new TokenService({
      store: SqliteTokenStore.open(data),
      keys: JSON.parse(readFileSync(join(data, 'keys.json'), 'utf8')),
      prefix: 'tw',
    });
    const verify = (target: string) =>
      tokens.verify(body.token, { method: 'GET', domain: 'imprese.openapi.it', target });

    expect(await verify('/advance')).toMatchObject({ ok: true, grantedBy: body.scopes[0] });
    expect(await verify('/advance/1')).toMatchObject({ ok: true, grantedBy: body.scopes[1] });
    expect(await verify('/advance/1/2')).toMatchObject({ ok: false });
    expect(await verify('/advancex')).toMatchObject({ ok: false, reason: 'insufficient_scope' });
    await tokens.close();
  });
});

describe('the tokenwright command', () => {
  it('shows help and version', async () => {
    expect(await run(['--help'])).toMatchObject({ code: 0, stderr: '' });
    const help = (await run(['serve', '--help'])).stdout;
    expect(help).toContain('--catalog');
    for (const text of ['Ctrl-C', 'SIGTERM', 'ends with 0', 'npx']) expect(help).toContain(text);
    expect((await run(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it('refuses an unknown variable in any command, but still prints help', async () => {
    const environment = { TOKENWRIGHT_STROE: 'postgres://ada:canary@db.example/acme' };
    const calls = [
      ['store', 'migrate'],
      ['token', 'list'],
      ['keys', 'check'],
      ['catalog', 'minimize', '*:*/*'],
    ];

    for (const words of calls) {
      const ended = await run(words, environment);
      expect(ended).toMatchObject({ code: 2, stdout: '' });
      expect(ended.stderr).toMatch(/TOKENWRIGHT_STROE; did you mean TOKENWRIGHT_STORE\?\n$/);
      expect(ended.stderr).not.toContain('canary');
    }
    expect(await run(['store', 'migrate', '--help'], environment)).toMatchObject({
      code: 0,
      stderr: '',
    });
  });
});

/** Sends a request without the end of its body, and returns once the server has read its head. */
async function beginCall(service: RunningService) {
  const body = JSON.stringify({ scopes: ['GET:acme.example/status'] });
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
  socket.on('error', () => {});
  socket.write(
    `POST /token HTTP/1.1\r\nHost: x\r\nAuthorization: Basic ${btoa('ada:correct-horse')}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 9)}`,
  );
  // Once a later request is answered, the server has read the head of this one.
  await call(service, '/scopes');
  const finish = async () => {
    socket.write(body.slice(9));
    let text = '';
    for await (const chunk of socket) {
      text += chunk;
      if (text.includes('"success":')) break;
    }
    return text;
  };
  return { socket, finish };
}

/** Whether a server refuses connections within ten seconds, as it does after a signal. */
async function refusedSoon(url: string): Promise<boolean> {
  const until = performance.now() + 10_000;
  while (performance.now() < until) {
    const isRefused = await fetch(`${url}/scopes`, { headers: { connection: 'close' } }).then(
      () => false,
      () => true,
    );
    if (isRefused) return true;
  }
  return false;
}
