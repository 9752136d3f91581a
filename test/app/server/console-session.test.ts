import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hashPassword } from '../../../src/http/index.ts';
import { generateKey } from '../../../src/index.ts';
import { ACCOUNT, newFolder, type RunningService, serve } from '../cli/support.ts';

const SCRIPT = { 'x-tokenwright': 'console' };

async function ask(
  { url }: RunningService,
  method: string,
  path: string,
  headers: Record<string, string>,
  json?: object,
) {
  const answer = await fetch(url + path, {
    method,
    headers: { ...headers, ...(json && { 'content-type': 'application/json' }) },
    ...(json && { body: JSON.stringify(json) }),
  });
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
  return { status: answer.status, cookie, text: await answer.text() };
}

function signIn(service: RunningService, credentials = 'ada:correct-horse') {
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  return ask(service, 'POST', '/session', { authorization, ...SCRIPT });
}

async function statusWith(service: RunningService, cookie: string): Promise<number[]> {
  const statuses = [];
  for (const path of ['/token', '/session']) {
    statuses.push((await ask(service, 'GET', path, { cookie })).status);
  }
  return statuses;
}

/** Sends SIGHUP, and waits for the line with its result. */
async function hangUp(service: RunningService): Promise<string> {
  const line = once(service.process.stderr as NodeJS.ReadableStream, 'data');
  service.process.kill('SIGHUP');
  return String((await line)[0]);
}

describe('a session of serve', () => {
  it.each([
    ['a password of a setting', ACCOUNT, 'ada:correct-horse'],
    ['the account that it made', [], undefined],
  ])('survives a restart with the same keys, not with others, by %s', async (_, flags, given) => {
    const data = newFolder();
    const first = await serve(['--data', data, ...flags]);
    const [, made] = /password (\S+) \(made now/.exec(first.greeting) ?? [];
    const { status, cookie } = await signIn(first, given ?? `admin:${made}`);
    expect([status, await statusWith(first, cookie)]).toEqual([200, [200, 200]]);
    await first.stop();

    const second = await serve(['--data', data, ...flags]);
    expect(await statusWith(second, cookie)).toEqual([200, 200]);
    await second.stop();

    const keys = join(newFolder(), 'keys.json');
    writeFileSync(keys, JSON.stringify([generateKey('k1')]), { mode: 0o600 });
    const third = await serve(['--data', data, '--keys', keys, ...flags]);
    expect(await statusWith(third, cookie)).toEqual([401, 401]);
  });

  it('works in another process with the same keys and accounts', async () => {
    const data = newFolder();
    const one = await serve(['--data', data, ...ACCOUNT]);
    const { cookie } = await signIn(one);

    const other = await serve(['--data', data, ...ACCOUNT]);

    expect(await statusWith(other, cookie)).toEqual([200, 200]);
    const { status } = await ask(other, 'DELETE', '/session', { cookie, ...SCRIPT });
    expect([status, await statusWith(other, cookie)]).toEqual([200, [401, 401]]);
  });

  it('ends with a reload that changes the password or removes the account', async () => {
    const folder = newFolder();
    const file = join(folder, 'accounts');
    const write = (...lines: string[]) => writeFileSync(file, lines.join('\n'), { mode: 0o600 });
    const [ada, bob, eve] = ['ada', 'bob', 'eve'].map(
      (name) => `${name}:${hashPassword('correct-horse')}`,
    ) as [string, string, string];
    write(ada, bob, eve);
    const service = await serve(['--data', join(folder, 'data'), '--account-file', file]);
    const cookies = [];
    for (const name of ['ada', 'bob', 'eve']) {
      cookies.push((await signIn(service, `${name}:correct-horse`)).cookie);
    }

    write(`ada:${hashPassword('battery-staple')}`, bob);
    expect(await hangUp(service)).toContain('2 accounts');

    const statuses = [];
    for (const cookie of cookies) statuses.push(await statusWith(service, cookie));
    expect(statuses).toEqual([
      [401, 401],
      [200, 200],
      [401, 401],
    ]);
  });

  it('is named in the audit log with its changes, and its cookie nowhere', async () => {
    const folder = newFolder();
    const audit = join(folder, 'audit');
    const service = await serve(['--data', folder, '--audit', audit, ...ACCOUNT]);
    const output: string[] = [service.greeting];
    for (const stream of [service.process.stdout, service.process.stderr]) {
      stream?.on('data', (chunk) => output.push(String(chunk)));
    }
    const scopes = ['GET:acme.example/status'];
    await signIn(service, 'ada:wrong-horse');
    const { cookie } = await signIn(service);
    const byCookie = { cookie, ...SCRIPT };
    const byPassword = {
      authorization: `Basic ${Buffer.from('ada:correct-horse').toString('base64')}`,
    };
    const issued = await ask(service, 'POST', '/token', byCookie, { scopes });
    const { id } = JSON.parse(issued.text);
    await ask(service, 'POST', '/token', byPassword, { scopes });
    await Promise.all([
      ask(service, 'PATCH', `/token/${id}`, byCookie, { name: 'new' }),
      ask(service, 'POST', '/token', byPassword, { scopes }),
    ]);
    const bad = `${cookie.slice(0, -4)}XXXX`;
    const refused = await ask(service, 'GET', '/token', { cookie: bad });
    await ask(service, 'DELETE', '/session', byCookie);
    const late = await ask(service, 'GET', '/token', { cookie });
    expect([refused.status, late.status]).toEqual([401, 401]);
    await service.stop();

    const text = readFileSync(audit, 'utf8');
    const lines: Record<string, unknown>[] = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const session = lines.find(({ event }) => event === 'session_begun')?.['session'];
    expect(session).toMatch(/^[\w-]{12}$/);
    const address = '127.0.0.1';
    const known = { user: 'ada', session, address };
    expect(lines.filter(({ event }) => String(event).startsWith('session_'))).toEqual([
      { at: expect.any(String), event: 'session_begun', ...known },
      { at: expect.any(String), event: 'session_refused', user: null, address },
      { at: expect.any(String), event: 'session_ended', ...known },
      { at: expect.any(String), event: 'session_refused', ...known },
    ]);
    const changes = lines.filter(({ event }) => event === 'issued' || event === 'modified');
    expect(changes.map((line) => [line['event'], line['session']]).sort()).toEqual([
      ['issued', undefined],
      ['issued', undefined],
      ['issued', session],
      ['modified', session],
    ]);
    expect(lines).toContainEqual(
      expect.objectContaining({ event: 'sign_in_refused', user: 'ada' }),
    );
    const written = [text, ...output, refused.text, late.text].join('');
    for (const part of cookie.split(/[=.]/).filter(({ length }) => length > 15)) {
      expect(written).not.toContain(part);
    }
  });

  it('does not exist without the console', async () => {
    const service = await serve(['--data', newFolder(), '--console', 'off', ...ACCOUNT]);

    expect((await signIn(service)).status).toBe(404);
    expect(await (await fetch(`${service.url}/openapi.json`)).text()).not.toContain('/session');
  });
});
