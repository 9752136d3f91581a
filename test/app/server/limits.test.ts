import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  ACCOUNT,
  call,
  hideVariables,
  newFolder,
  outcomeOf,
  type RunningService,
  serve,
} from '../cli/support.ts';
import { engines, newStore } from './databases.ts';

const STATUS = 'GET:acme.example/status';
const CHECKED = [...ACCOUNT, '--gateway', 'traefik', '--domain', 'acme.example'];

beforeEach(hideVariables);

async function issue(service: RunningService, limits?: object): Promise<string> {
  const body = { scopes: [STATUS], ttl: 600, ...(limits && { limits }) };
  const answer = await call(service, '/token', { method: 'POST', body });
  return answer.body.token;
}

/** Calls the check like a gateway that is about to forward a request. */
async function check({ url }: RunningService, value: string, more = {}): Promise<number> {
  const headers = {
    authorization: `Bearer ${value}`,
    'x-forwarded-method': 'GET',
    'x-forwarded-uri': '/status',
    ...more,
  };
  return (await fetch(`${url}/check`, { headers })).status;
}

/** How many of `tries` checks are accepted; the rest must be refused with 429. */
async function accepted(service: RunningService, value: string, tries: number): Promise<number> {
  let count = 0;
  for (let i = 0; i < tries; i++) {
    const status = await check(service, value);
    expect([200, 429]).toContain(status);
    count += Number(status === 200);
  }
  return count;
}

describe('serve', () => {
  it('counts uses together with a second service and across restarts', async () => {
    const data = newFolder();
    const start = () => serve(['--data', data, ...CHECKED]);
    const [one, other] = [await start(), await start()];
    const value = await issue(one, { uses: 40 });

    expect(await accepted(one, value, 10)).toBe(10);
    expect(await accepted(other, value, 10)).toBe(10);
    for (const service of [one, other]) {
      expect(await service.stop()).toMatchObject({ code: 0, stderr: '' });
    }
    const third = await start();
    expect(await accepted(third, value, 30)).toBe(20);
    await third.stop();
    expect(statSync(join(data, 'leases.db')).mode & 0o777).toBe(0o600);
  });

  it('creates no lease file for tokens whose uses are not limited', async () => {
    const data = newFolder();
    const service = await serve(['--data', data, ...CHECKED, '--client-header', 'X-Real-IP']);
    const value = await issue(service, { addresses: ['10.0.0.0/8'] });

    expect(await check(service, await issue(service))).toBe(200);
    expect(await check(service, value, { 'x-real-ip': '10.1.2.3' })).toBe(200);
    expect(await check(service, value, { 'x-real-ip': '192.0.2.1' })).toBe(403);
    expect(await check(service, value)).toBe(403);
    const { stderr } = await service.stop();
    expect(stderr).toMatch(
      /restricted to certain addresses: the gateway must name the client, .*--trust-proxy.*--client-header/,
    );
    expect(existsSync(join(data, 'leases.db'))).toBe(false);
  });

  it('refuses only limited tokens if it cannot count uses, and logs the reason', async () => {
    const data = newFolder();
    const service = await serve(['--data', data, ...CHECKED]);
    const value = await issue(service, { uses: 40 });
    writeFileSync(
      join(data, 'leases.db'),
      'not a database, but longer than the header of one'.repeat(9),
    );

    expect(await check(service, value)).toBe(503);
    expect(await check(service, await issue(service))).toBe(200);
    const { stderr } = await service.stop();
    expect(stderr).toMatch(
      /limits \(SQLite in \S+leases\.db\) fails: \S+leases\.db is not an SQLite database: .*whose uses are limited are refused/,
    );
  });

  it('says at its start that it cannot count uses, not only at the first limited request', async () => {
    const data = newFolder();
    writeFileSync(join(data, 'leases.db'), 'not a database, but longer than a header'.repeat(9));
    const service = await serve(['--data', data, ...CHECKED]);

    expect(await check(service, await issue(service))).toBe(200);
    const { stderr } = await service.stop();
    expect(stderr).toMatch(
      /tokens whose uses are limited are refused: SQLite in \S+leases\.db: \S+leases\.db is not an SQLite database: /,
    );
  });

  it.each(engines)('counts uses in %s without a separate migration', async (engine) => {
    const { flags } = newStore(engine);
    const service = await serve(['--data', newFolder(), ...flags, ...CHECKED]);
    const value = await issue(service, { uses: 3, rate: { uses: 1000, seconds: 86_400 } });

    expect(await accepted(service, value, 6)).toBe(3);
    expect((await service.stop()).stderr).not.toContain('limit');
    expect(await outcomeOf(['store', 'migrate', ...flags])).toMatchObject({
      json: { changed: false },
    });
  });
});
