import { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { loadKeys } from '../../../src/app/server/files/key-file.ts';
import { storeTarget, withStore } from '../../../src/app/server/stores/open.ts';
import { serviceStores } from '../../../src/app/server/stores/service-stores.ts';
import { generateKey, TokenService } from '../../../src/index.ts';
import { SqliteTokenStore } from '../../../src/stores/sqlite/index.ts';
import { manualClock } from '../../../src/testing/index.ts';
import type { TokenId } from '../../../src/token/record.ts';
import {
  ACCOUNT,
  call,
  hideVariables,
  newFolder,
  outcomeOf,
  type RunningService,
  run,
  serve,
} from '../cli/support.ts';
import { engines, newStore } from './databases.ts';

const STATUS = 'GET:acme.example/status';
const CHECKED = [...ACCOUNT, '--gateway', 'nginx', '--domain', 'acme.example'];
const ID = /^id +(\w{22})$/m;

beforeEach(hideVariables);

async function issue(service: RunningService): Promise<{ id: string; value: string }> {
  const body = { scopes: [STATUS, 'GET:ship.acme.example/tracking'], ttl: 600 };
  const answer = await call(service, '/token', { method: 'POST', body });
  return { id: answer.body.id, value: answer.body.token };
}

/** Calls the check like a gateway that is about to forward a request. */
async function check({ url }: RunningService, value: string, target = '/status'): Promise<number> {
  const headers = {
    authorization: `Bearer ${value}`,
    'x-original-method': 'GET',
    'x-original-uri': target,
  };
  return (await fetch(`${url}/check`, { headers })).status;
}

async function usageOf(service: RunningService, id: string) {
  return (await call(service, `/token/${id}/usage`)).body;
}

describe('serve', () => {
  it('records gateway checks, and keeps the counts across a restart', async () => {
    const data = newFolder();
    const first = await serve(['--data', data, ...CHECKED]);
    const { id, value } = await issue(first);
    expect(first.greeting).toContain(`usage     SQLite in ${join(data, 'usage.db')}\n`);

    expect(await check(first, value)).toBe(200);
    expect(await check(first, value)).toBe(200);
    expect(await check(first, value, '/nowhere')).toBe(403);
    const { data: counted } = await usageOf(first, id);
    expect(counted).toMatchObject({ uses: 2, refusals: 1, lastUsed: expect.any(Number) });
    expect(await first.stop()).toMatchObject({ code: 0, stderr: '' });

    const second = await serve(['--data', data, ...CHECKED]);
    expect((await usageOf(second, id)).data).toEqual(counted);
    const { body } = await call(second, '/token');
    expect(body.data).toMatchObject([{ id, uses: 2, lastUsed: counted.lastUsed }]);
    expect(statSync(join(data, 'usage.db')).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(data, 'usage.db'), 'latin1')).not.toContain(value.slice(30));
  });

  it('creates the usage file for its owner only, also behind a symbolic link', async () => {
    const [data, elsewhere] = [newFolder(), join(newFolder(), 'elsewhere.db')];
    symlinkSync(elsewhere, join(data, 'usage.db'));
    await (await serve(['--data', data, ...ACCOUNT])).stop();

    expect(statSync(elsewhere).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['the flag', ['--usage', 'off'], {}],
    ['the variable', [], { TOKENWRIGHT_USAGE: 'off' }],
  ])('records nothing if %s turns usage off', async (_, flags, environment) => {
    const data = newFolder();
    const service = await serve(['--data', data, ...CHECKED, ...flags], environment);
    const { id, value } = await issue(service);

    expect(service.greeting).toContain('usage     not recorded\n');
    expect(await check(service, value)).toBe(200);
    expect(await usageOf(service, id)).toMatchObject({ code: 'usage_not_recorded' });
    expect((await call(service, `/token/${id}`)).body.data[0]).not.toHaveProperty('uses');
    await service.stop();
    expect(existsSync(join(data, 'usage.db'))).toBe(false);
  });

  it('refuses values of --usage other than on and off', async () => {
    const refused = await run(['serve', '--data', newFolder(), '--usage', 'yes']);

    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('--usage (TOKENWRIGHT_USAGE) must be on or off');
  });

  it('starts without usage if the usage file cannot be opened, and warns', async () => {
    const data = newFolder();
    await SqliteTokenStore.openFile(join(data, 'usage.db')).close();
    const service = await serve(['--data', data, ...CHECKED]);
    const { id, value } = await issue(service);

    expect(await check(service, value)).toBe(200);
    expect(await usageOf(service, id)).toMatchObject({ code: 'usage_not_recorded' });
    const { stderr, code } = await service.stop();
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /^tokenwright: warning: uses of tokens are not recorded: SQLite in \S+usage\.db: .*something else than usage.*\n$/,
    );
  });

  it('counts together with a second service and another guard on the same files', async () => {
    const data = newFolder();
    const [one, other] = [
      await serve(['--data', data, ...CHECKED]),
      await serve(['--data', data, ...CHECKED]),
    ];
    const { id, value } = await issue(one);
    await check(one, value);
    await check(other, value);
    const keys = JSON.parse(readFileSync(join(data, 'keys.json'), 'utf8'));
    const guard = new TokenService({
      store: SqliteTokenStore.open(data),
      keys,
      prefix: 'tw',
      usage: true,
    });
    expect(await guard.allows(value, { scope: STATUS })).toBe(true);
    await guard.close();
    await other.stop();

    expect((await usageOf(one, id)).data).toMatchObject({ uses: 3 });
  });

  it('creates usage.db next to the SQLite file of --store', async () => {
    const folder = newFolder();
    const store = `sqlite:${join(folder, 'other.db')}`;
    const data = newFolder();
    await (await serve(['--data', data, '--store', store, ...ACCOUNT])).stop();

    expect(existsSync(join(folder, 'usage.db'))).toBe(true);
    expect(existsSync(join(data, 'usage.db'))).toBe(false);
  });
});

describe('a usage store that fails', () => {
  /** A service on the stores of `serve`, and the lines that these write to the console. */
  async function setUp() {
    const lines: string[] = [];
    const log = vi.spyOn(console, 'error').mockImplementation((line) => void lines.push(line));
    const target = storeTarget({ store: undefined, tables: undefined, data: newFolder() });
    const opened = await target.open();
    const { store, usage } = await serviceStores({ usage: 'on' }, target, opened);
    const tokens = new TokenService({
      store,
      keys: [generateKey()],
      prefix: 'tw',
      usage: usage && { store: usage },
    });
    const { value } = await tokens.issue({ account: 'ada', scopes: [STATUS] });
    return { tokens, value, opened, lines, restore: () => log.mockRestore() };
  }

  it('does not affect verification, and is logged separately', async () => {
    const { tokens, value, opened, lines, restore } = await setUp();
    expect((await tokens.verify(value, { scope: STATUS })).ok).toBe(true);
    await opened.store.usage.close?.();

    const verdict = await tokens.verify(value, { scope: STATUS });
    await tokens.close().catch(() => {});
    await vi.waitFor(() => expect(lines).toHaveLength(2));
    restore();

    expect(verdict.ok).toBe(true);
    const about = /^tokenwright: usage \(SQLite in \S+usage\.db\)/;
    expect(lines.every((line) => about.test(line))).toBe(true);
    expect(lines).toContainEqual(
      expect.stringMatching(/ fails: .+; tokens are verified and shown as before/),
    );
    expect(lines).toContainEqual(expect.stringMatching(/: 1 count of uses could not be written/));
  });

  it('logs nothing while it works (control)', async () => {
    const { tokens, value, lines, restore } = await setUp();
    await tokens.verify(value, { scope: STATUS });
    await tokens.close();
    restore();

    expect(lines).toEqual([]);
  });
});

describe('the commands on a store', () => {
  async function usedTwice() {
    const data = newFolder();
    const service = await serve(['--data', data, ...CHECKED]);
    const { id, value } = await issue(service);
    const unused = await issue(service);
    await check(service, value);
    await check(service, value);
    await service.stop();
    return { data, id, value, unused, as: ['--data', data, '--account', 'ada'] };
  }

  it('show when each token was last used', async () => {
    const { id, unused, as } = await usedTwice();
    const listed = await outcomeOf(['token', 'list', ...as]);
    const shown = await outcomeOf(['token', 'get', id, ...as]);
    const usage = await outcomeOf(['token', 'usage', id, ...as]);

    expect(listed.text).toMatch(/^ID +EXPIRES +LAST USED +SCOPES\n/);
    expect(listed.text).toMatch(new RegExp(`^${id} +\\S+Z +\\d{4}-\\d\\d-\\d\\d +GET`, 'm'));
    expect(listed.text).toMatch(new RegExp(`^${unused.id} +\\S+Z +never +GET`, 'm'));
    expect(listed.json.tokens).toMatchObject([
      { id: unused.id, uses: 0, lastUsed: null },
      { id, uses: 2, lastUsed: expect.any(Number) },
    ]);
    expect(shown.text).toMatch(/^used +2 times, last \d{4}-\S+Z$/m);
    expect(usage.text).toMatch(
      /^uses +2\nrefusals +0\nlast used +\S+Z\n\nUSES +LAST USED +SCOPE\n2 +\S+Z +GET:acme\.example\/status\n0 +never +GET:ship\.acme\.example\/tracking$/,
    );
    expect(usage.json).toMatchObject({
      uses: 2,
      scopes: [
        { scope: STATUS, uses: 2 },
        { uses: 0, lastUsed: null },
      ],
    });
  });

  it('do not count as uses', async () => {
    const { data, id, value, as } = await usedTwice();
    await outcomeOf(['token', 'verify', '--data', data, '--scope', STATUS, '--token', value]);

    expect((await outcomeOf(['token', 'usage', id, ...as])).json).toMatchObject({ uses: 2 });
  });

  it('show no usage if none is recorded, and create no usage file', async () => {
    const data = newFolder();
    const service = await serve(['--data', data, ...ACCOUNT, '--usage', 'off']);
    const { id } = await issue(service);
    await service.stop();
    const as = ['--data', data, '--account', 'ada'];

    expect((await outcomeOf(['token', 'list', ...as])).text).toMatch(/^ID +EXPIRES +SCOPES\n/);
    expect((await outcomeOf(['token', 'get', id, ...as])).json).not.toHaveProperty('lastUsed');
    await expect(outcomeOf(['token', 'usage', id, ...as])).rejects.toThrow(
      'no uses are recorded beside SQLite in',
    );
    expect(existsSync(join(data, 'usage.db'))).toBe(false);
  });

  it('show no usage once it is turned off', async () => {
    const { id, as } = await usedTwice();
    vi.stubEnv('TOKENWRIGHT_USAGE', 'off');

    expect((await outcomeOf(['token', 'get', id, ...as])).json).not.toHaveProperty('uses');
  });

  it('find no usage of a token of another account', async () => {
    const { id, data } = await usedTwice();

    const outcome = await outcomeOf(['token', 'usage', id, '--data', data, '--account', 'bob']);

    expect(outcome).toMatchObject({ json: null, isNegative: true });
  });

  it('list tokens even if the usage file is damaged, and doctor reports it', async () => {
    const { data, id, as } = await usedTwice();
    const file = join(data, 'usage.db');
    expect((await run(['store', 'doctor', '--data', data])).code).toBe(0);
    writeFileSync(file, 'no database '.repeat(1000));

    const listed = await run(['token', 'list', ...as]);
    expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining(id) });
    expect(listed.stderr).toContain(`the uses of tokens cannot be read: SQLite in ${file}`);
    const examined = await run(['store', 'doctor', '--data', data]);
    expect(examined.code).toBe(3);
    expect(examined.stdout).toMatch(/^usage_unusable /);
  });

  it('find counts of removed tokens with doctor --full, and remove them with purge', async () => {
    const { data, id } = await usedTwice();
    const doctor = (...flags: string[]) => outcomeOf(['store', 'doctor', '--data', data, ...flags]);
    expect((await doctor('--full')).json.findings).toEqual([]);
    const tokens = new DatabaseSync(join(data, 'tokens.db'));
    tokens.exec('DELETE FROM tokens');
    tokens.close();

    expect((await doctor()).json.findings).toEqual([]);
    expect((await doctor('--full')).json.findings).toEqual([
      {
        code: 'usage_left_over',
        message: expect.stringMatching(/^1 removed token still has counts/),
      },
    ]);
    const purged = await outcomeOf([
      'store',
      'purge',
      '--data',
      data,
      '--older-than',
      '90d',
      '--yes',
    ]);
    expect(purged.json).toMatchObject({ purged: 0, forgotten: 1 });
    expect(purged.notes).toMatch(/also removed the counts of 1 token that was gone before/);
    expect((await doctor('--full')).json.findings).toEqual([]);
    const store = SqliteTokenStore.open(data);
    expect(await store.usage.read([id as TokenId])).toEqual([undefined]);
    await store.close();
  });

  it('keep the counts of existing tokens when they purge', async () => {
    const { data, id } = await usedTwice();

    const purged = await outcomeOf([
      'store',
      'purge',
      '--data',
      data,
      '--older-than',
      '90d',
      '--yes',
    ]);

    expect(purged.json).toMatchObject({ purged: 0, forgotten: 0 });
    const store = SqliteTokenStore.open(data);
    expect((await store.usage.read([id as TokenId]))[0]?.scopes).toHaveLength(1);
    await store.close();
  });

  it.each(engines)('find and remove counts of removed tokens in %s', async (engine) => {
    const { flags } = newStore(engine);
    await run(['store', 'migrate', ...flags]);
    const target = storeTarget({ store: flags[1], tables: flags[3], data: '' });
    await withStore(target, async ({ store }) => {
      await store.usage.add([{ id: 'x'.repeat(22) as TokenId, refusals: 3 }]);
    });

    const codes = async () => {
      const { findings } = (await outcomeOf(['store', 'doctor', ...flags, '--full'])).json;
      return (findings as { code: string }[]).map(({ code }) => code);
    };
    expect(await codes()).toContain('usage_left_over');
    const purged = await outcomeOf(['store', 'purge', ...flags, '--older-than', '90d', '--yes']);
    expect(purged.json).toMatchObject({ purged: 0, forgotten: 1 });
    expect(await codes()).not.toContain('usage_left_over');
  });

  it('create the usage file with migrate, unless usage is off', async () => {
    const [data, off] = [newFolder(), newFolder()];
    const made = await outcomeOf(['store', 'migrate', '--data', data]);
    const again = await outcomeOf(['store', 'migrate', '--data', data]);
    vi.stubEnv('TOKENWRIGHT_USAGE', 'off');
    const without = await outcomeOf(['store', 'migrate', '--data', off]);

    const [tokens, usage] = ['tokens.db', 'usage.db'].map(
      (name) => `SQLite in ${join(data, name)}`,
    );
    expect(made.text).toBe(`${tokens}: the file was created\n${usage}: the file was created`);
    expect(again.text).toBe(
      `${tokens}: the file was up to date already\n${usage}: the file was up to date already`,
    );
    expect(again.json).toMatchObject({ changed: false });
    expect(without.text).toBe(`SQLite in ${join(off, 'tokens.db')}: the file was created`);
    expect(existsSync(join(off, 'usage.db'))).toBe(false);
  });
});

describe('token usage of a service', () => {
  const remote = (url: string) => {
    vi.stubEnv('TOKENWRIGHT_USER', 'ada');
    vi.stubEnv('TOKENWRIGHT_PASSWORD', 'correct-horse');
    return (...words: string[]) => outcomeOf(['token', ...words, '--url', url]);
  };

  it('prints the same for a service as for its store', async () => {
    const data = newFolder();
    const service = await serve(['--data', data, ...CHECKED]);
    const { id, value } = await issue(service);
    await check(service, value);
    const ask = remote(service.url);

    const usage = await ask('usage', id);
    const listed = await ask('list');
    const absent = await ask('usage', '0'.repeat(22));
    await service.stop();
    const local = await outcomeOf(['token', 'usage', id, '--data', data, '--account', 'ada']);

    expect(usage).toEqual(local);
    expect(usage.json).toMatchObject({ uses: 1 });
    expect(listed.text).toContain('LAST USED');
    expect(absent).toMatchObject({ json: null, isNegative: true });
  });

  it('reports that the service records no usage', async () => {
    const service = await serve(['--data', newFolder(), ...ACCOUNT, '--usage', 'off']);
    const { id } = await issue(service);
    const ask = remote(service.url);

    await expect(ask('usage', id)).rejects.toThrow('does not record how tokens are used');
    expect((await ask('get', id)).text).toMatch(ID);
    expect((await ask('get', id)).text).not.toMatch(/^used/m);
  });
});

describe('token advise', () => {
  const TRACKING = 'GET:ship.acme.example/tracking';

  /** A token with two scopes, issued 100 days ago; one of them was used 5 days ago. */
  async function setUpAdvice(scopes: readonly string[] = [STATUS, TRACKING]) {
    const data = newFolder();
    const past = manualClock(new Date(Date.now() - 100 * 86_400_000));
    const file = join(data, 'usage.db');
    const store = SqliteTokenStore.open(data);
    await store.usage.since?.();
    const database = new DatabaseSync(file);
    database.prepare('UPDATE counted_since SET since = ?').run(past.now().getTime());
    database.close();
    const tokens = new TokenService({
      store,
      keys: loadKeys(data),
      prefix: 'tw',
      clock: past,
      usage: true,
    });
    const { id, value } = await tokens.issue({ account: 'ada', scopes });
    past.advance(95 * 86_400);
    expect(await tokens.allows(value, { scope: STATUS })).toBe(scopes.includes(STATUS));
    await tokens.close();
    const ask = (...words: string[]) =>
      outcomeOf(['token', ...words, '--data', data, '--account', 'ada']);
    return { data, id, ask };
  }

  it('names unused scopes, and changes nothing', async () => {
    const { id, ask } = await setUpAdvice();
    const advised = await ask('advise', id);

    expect(advised.text).toMatch(
      new RegExp(`^unused {2}${TRACKING}\nkept {4}${STATUS}\nsince {3}`),
    );
    expect(advised.json).toMatchObject({ unused: [TRACKING], kept: [STATUS] });
    expect(advised.notes).toContain('--apply');
    expect((await ask('get', id)).json).toMatchObject({ scopes: [STATUS, TRACKING], version: 1 });
    expect((await ask('advise', id, '--unused-for-days', '2')).json.unused).toEqual([
      STATUS,
      TRACKING,
    ]);
    const late = await ask('advise', id, '--unused-for-days', '101');
    expect(late).toMatchObject({ json: { unused: [] }, notes: expect.stringContaining('nothing') });
  });

  it('removes unused scopes with --apply', async () => {
    const { id, ask } = await setUpAdvice();

    const applied = await ask('advise', id, '--apply');

    expect(applied.json).toMatchObject({ removed: [TRACKING], kept: [STATUS] });
    expect(applied.notes).toBe('removed 1 scope');
    expect((await ask('get', id)).json).toMatchObject({ scopes: [STATUS], version: 2 });
    expect((await ask('advise', id, '--apply')).json).toMatchObject({ unused: [], removed: [] });
  });

  it('leaves a token unchanged if none of its scopes was used', async () => {
    const { id, ask } = await setUpAdvice([TRACKING]);

    const applied = await ask('advise', id, '--apply');

    expect(applied.json).toMatchObject({ unused: [TRACKING], removed: [] });
    expect(applied.notes).toContain('revoke the token');
    expect((await ask('get', id)).json).toMatchObject({ version: 1 });
    expect(await ask('advise', '0'.repeat(22), '--apply')).toMatchObject({ isNegative: true });
    await expect(ask('advise', id, '--unused-for-days', '0')).rejects.toThrow('1 to 3650');
  });

  it('gives the same advice for a service', async () => {
    const { data, id, ask } = await setUpAdvice();
    const service = await serve(['--data', data, ...ACCOUNT]);
    vi.stubEnv('TOKENWRIGHT_USER', 'ada');
    vi.stubEnv('TOKENWRIGHT_PASSWORD', 'correct-horse');
    const remote = (...words: string[]) => outcomeOf(['token', ...words, '--url', service.url]);

    expect(await remote('advise', id)).toEqual(await ask('advise', id));
    expect((await remote('advise', id, '--unused-for-days', '101')).json.unused).toEqual([]);
    expect((await remote('advise', id, '--apply')).json).toMatchObject({ removed: [TRACKING] });
    expect((await ask('get', id)).json).toMatchObject({ scopes: [STATUS] });
  });
});
