import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ACCOUNT, call, newFolder, type RunningService, serve } from '../cli/support.ts';

const ORDERS = 'GET:orders.acme.example/orders';
const LIST = '/example/orders';

/** Runs a command of a shell, with a text that somebody pastes. */
function shell(command: string, pasted = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile('bash', ['-c', command], (error, stdout) =>
      error === null ? resolve(stdout) : reject(error),
    );
    child.stdin?.end(`${pasted}\n`);
  });
}

async function issue(service: RunningService, scopes: readonly string[], more: object = {}) {
  const body = { scopes, ...more };
  const answer = await call(service, '/token', { as: 'ada:correct-horse', method: 'POST', body });
  return answer.body as { id: string; token: string };
}

async function use({ url }: RunningService, path: string, value?: string, init: RequestInit = {}) {
  const headers = { ...(value !== undefined && { authorization: `Bearer ${value}` }) };
  const answer = await fetch(url + path, { ...init, headers });
  return { status: answer.status, text: await answer.text() };
}

function exampleIn({ greeting }: RunningService): string | undefined {
  return /^ {2}(read -rs TOKEN && curl .*)$/m.exec(greeting)?.[1];
}

describe('the example of serve', () => {
  it('shows a use of a token by the two commands of the greeting', async () => {
    const service = await serve(['--data', newFolder()]);
    const [, first = ''] = /^ {2}(curl -u [\s\S]*\/token)$/m.exec(service.greeting) ?? [];
    const { id, token } = JSON.parse(await shell(first));

    const answer = JSON.parse(await shell(exampleIn(service) ?? '', token));

    expect(answer).toMatchObject({ account: 'admin', grantedBy: ORDERS, success: true });
    expect(answer.data).toHaveLength(2);
    const [, as = ''] = /curl -u '(.+?)'/.exec(first) ?? [];
    const used = await call(service, `/token/${id}`, { as });
    expect(used.body['data']).toMatchObject([{ uses: 1, lastUsed: expect.any(Number) }]);
  });

  it('answers every call of the catalog to the tokens that allow it, and to no other', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT]);
    const all = await issue(service, ['*:*/*']);
    const { body } = await call(service, '/scopes', { as: 'ada:correct-horse' });
    const scopes = body['data'] as string[];
    const one = await issue(service, [ORDERS]);

    for (const scope of scopes) {
      const [, method = '', path = ''] = /^(\w+):[^/]+\/(.+)$/.exec(scope) ?? [];
      const target = `/example/${path}`;
      expect((await use(service, target, all.token, { method })).status, scope).toBe(200);
      const status = scope === ORDERS ? 200 : 403;
      expect((await use(service, target, one.token, { method })).status, scope).toBe(status);
      expect((await use(service, target, undefined, { method })).status, scope).toBe(401);
    }
    expect(scopes.length).toBeGreaterThan(10);
    for (const path of ['/example/', '/example/nowhere', '/example/orders%2f..', '/example']) {
      expect([404, 400], path).toContain((await use(service, path, all.token)).status);
    }
    expect((await use(service, LIST, `${one.token}x`)).status).toBe(401);
    expect((await use(service, `${LIST}/7?full=1`, one.token)).status).toBe(200);
    expect((await use(service, `${LIST}x`, one.token)).status).toBe(404);
  });

  it('keeps the limits of a token', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT]);
    const once = await issue(service, [ORDERS], { limits: { uses: 1 } });
    const here = await issue(service, [ORDERS], { limits: { addresses: ['127.0.0.0/8'] } });
    const elsewhere = await issue(service, [ORDERS], { limits: { addresses: ['192.0.2.0/24'] } });

    const statuses = [];
    for (const { token } of [once, once, here, elsewhere]) {
      statuses.push((await use(service, LIST, token)).status);
    }

    expect(statuses).toEqual([200, 429, 200, 403]);
    const options = { as: 'ada:correct-horse', method: 'DELETE' };
    await call(service, `/token/${here.id}`, options);
    expect((await use(service, LIST, here.token)).status).toBe(401);
  });

  it.each([
    ['--example off', ['--example', 'off'], {}],
    ['TOKENWRIGHT_EXAMPLE', [], { TOKENWRIGHT_EXAMPLE: 'off' }],
    ['a catalog', ['--catalog'], {}],
    ['a catalog, even with --example on', ['--example', 'on', '--catalog'], {}],
  ])('is off with %s', async (_, flags, environment) => {
    const data = newFolder();
    const catalog = join(data, 'catalog.json');
    writeFileSync(catalog, JSON.stringify([ORDERS]));
    const files = flags.at(-1) === '--catalog' ? [catalog] : [];
    const service = await serve(['--data', data, ...ACCOUNT, ...flags, ...files], environment);
    const { token } = await issue(service, [ORDERS]);

    expect((await use(service, LIST, token)).status).toBe(404);
    expect(exampleIn(service)).toBeUndefined();
    expect(service.greeting).not.toContain('/example');
    expect((await use(service, '/console')).text).not.toContain('data-example');
  });

  it('is what the console tries a token with', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT]);

    expect((await use(service, '/console')).text).toContain('data-example="../example"');
    expect(service.greeting).toContain(', /example/orders\n');
  });
});
