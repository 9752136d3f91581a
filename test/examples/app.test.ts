import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { newFolder } from '../app/cli/support.ts';

const PROGRAM = new URL('../../examples/app/server.ts', import.meta.url).pathname;
const { postgres } = inject('servers');

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** The application on a free port, once it has said that it is ready. */
async function startApp(): Promise<{ readonly origin: string; readonly process: ChildProcess }> {
  const port = await freePort();
  const child = spawn(process.execPath, [PROGRAM], {
    env: {
      ...process.env,
      DATABASE_URL: postgres,
      PORT: `${port}`,
      KEYS_FILE: `${newFolder()}/keys.json`,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [greeting] = await once(child.stdout, 'data');
  expect(String(greeting)).toContain(`http://127.0.0.1:${port}/`);
  return { origin: `http://127.0.0.1:${port}`, process: child };
}

/** Signs in, and returns the cookie. */
async function signIn(origin: string, username: string, password: string): Promise<string> {
  const body = new URLSearchParams({ username, password });
  const answer = await fetch(`${origin}/sign-in`, { method: 'POST', body, redirect: 'manual' });
  if (answer.status !== 303) return '';
  return answer.headers.get('set-cookie')?.split(';')[0] ?? '';
}

describe.skipIf(postgres === undefined)('the application of the examples', () => {
  it('takes a person from the sign-in to a token that the API accepts until it is revoked', async () => {
    const { origin, process: child } = await startApp();
    expect(await signIn(origin, 'ada', 'wrong')).toBe('');
    const cookie = await signIn(origin, 'ada', 'correct-horse');
    const asPage = { cookie, 'x-tokenwright': 'console', 'content-type': 'application/json' };
    const page = await fetch(`${origin}/settings/tokens`, { headers: { cookie } });
    expect(page.headers.get('content-type')).toMatch('text/html');

    const issue = (headers: Record<string, string>) =>
      fetch(`${origin}/auth/token`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ name: 'ci', scopes: ['*:shop.example/*'] }),
      });
    expect((await issue({ ...asPage, cookie: '' })).status).toBe(401);
    const { token, id } = (await (await issue(asPage)).json()) as { token: string; id: string };

    const orders = (value: string, init: RequestInit = {}) =>
      fetch(`${origin}/orders`, {
        ...init,
        headers: { authorization: `Bearer ${value}`, 'content-type': 'application/json' },
      });
    expect((await fetch(`${origin}/orders`, { headers: { cookie } })).status).toBe(401);
    const made = await orders(token, { method: 'POST', body: '{"item":"a lamp"}' });
    expect([made.status, await made.json()]).toEqual([
      201,
      expect.objectContaining({ item: 'a lamp' }),
    ]);
    expect(await (await orders(token)).text()).toContain('a lamp');
    expect((await orders(token, { method: 'DELETE' })).status).toBe(403);

    const revoked = await fetch(`${origin}/auth/token/${id}`, {
      method: 'DELETE',
      headers: asPage,
    });
    expect(revoked.ok).toBe(true);
    expect((await orders(token)).status).toBe(401);

    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('shows an account its own orders only', async () => {
    const { origin } = await startApp();
    const tokenOf = async (username: string, password: string) => {
      const cookie = await signIn(origin, username, password);
      const answer = await fetch(`${origin}/auth/token`, {
        method: 'POST',
        headers: { cookie, 'x-tokenwright': 'console', 'content-type': 'application/json' },
        body: JSON.stringify({ scopes: ['*:shop.example/*'] }),
      });
      return ((await answer.json()) as { token: string }).token;
    };
    const headersOf = (value: string) => ({ authorization: `Bearer ${value}` });
    const ada = headersOf(await tokenOf('ada', 'correct-horse'));
    const grace = headersOf(await tokenOf('grace', 'battery-staple'));

    const made = await fetch(`${origin}/orders`, { method: 'POST', headers: ada });
    const { id } = (await made.json()) as { id: number };
    const seen = async (headers: Record<string, string>) =>
      (await fetch(`${origin}/orders/${id}`, { headers })).status;
    expect([await seen(ada), await seen(grace)]).toEqual([200, 404]);
  });
});

describe('the application without a database', () => {
  it('says in one line how to get one', () => {
    const { DATABASE_URL: _, ...env } = process.env;
    const { status, stderr } = spawnSync(process.execPath, [PROGRAM], { env, encoding: 'utf8' });

    expect(status).toBe(1);
    expect(stderr).toMatch(/^Set DATABASE_URL\. .*docker run.*\n$/);
  });
});
