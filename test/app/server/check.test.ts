import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { storeTarget, withStore } from '../../../src/app/server/stores/open.ts';
import { doctor, generateKey } from '../../../src/index.ts';
import {
  ACCOUNT,
  call,
  check,
  filesOf,
  hideVariables,
  listen,
  newFolder,
  run,
  serve,
} from '../cli/support.ts';
import { engines, newStore, sqlEngines } from './databases.ts';

const SCOPES = ['GET:acme.example/status'];

beforeEach(() => hideVariables());

/** The content of each file of a folder. */
function contentOf(folder: string): Readonly<Record<string, string>> {
  const names = readdirSync(folder).sort();
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name), 'hex')]));
}

function catalogFlags(): string[] {
  return ['--catalog', filesOf({ 'catalog.json': SCOPES })('catalog.json')];
}

describe('serve --check', () => {
  it('says what serve would start with, makes nothing, and ends with 0', async () => {
    const folder = newFolder();
    const data = join(folder, 'data');
    const flags = ['--data', data, ...catalogFlags(), '--audit', join(folder, 'audit')];

    const checked = await check(flags);
    const alone = await run(['serve', '--check', ...flags]);

    expect(checked).toEqual({
      code: 0,
      stdout: `serve can start: SQLite in ${join(data, 'tokens.db')}, 1 scope, a new account\n`,
      stderr: '',
    });
    expect(alone).toEqual(checked);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('leaves a data folder as it is, while a service uses it and after', async () => {
    const data = newFolder();
    const service = await serve(['--data', data]);
    await service.stop();
    const before = contentOf(data);

    expect((await check(['--data', data])).stdout).toContain('20 scopes, 1 account\n');
    expect(contentOf(data)).toEqual(before);

    const again = await serve(['--data', data, ...ACCOUNT]);
    const { port } = new URL(again.url);
    expect(await check(['--data', data, '--port', port, ...ACCOUNT])).toMatchObject({ code: 0 });
    const { status } = await call(again, '/token', { method: 'POST', body: { scopes: ['*:*/*'] } });
    expect(status).toBe(200);
  });

  it('needs no free port, and listens on none', async () => {
    const port = await listen(createServer());

    expect(await check(['--data', newFolder(), '--port', String(port), ...ACCOUNT])).toMatchObject({
      code: 0,
    });
  });

  it.each([
    ['127.0.0.1', ''],
    ['localhost', ''],
    ['0.0.0.0', 'it listens on 0.0.0.0, which other machines can reach'],
  ])('warns of the host %s as serve does: %j', async (host, warning) => {
    const { code, stderr } = await check([
      ...['--data', newFolder(), '--host', host],
      ...catalogFlags(),
      ...ACCOUNT,
    ]);

    expect(code).toBe(0);
    if (warning === '') expect(stderr).toBe('');
    else expect(stderr).toContain(`tokenwright: warning: ${warning}`);
  });

  it('warns of files of secrets that other users can read', async () => {
    const config = filesOf({ 'config.json': { account: ['ada:correct-horse'] } })('config.json');
    chmodSync(config, 0o644);
    const flags = ['--data', newFolder(), '--config', config];

    expect((await check(flags)).stderr).toBe(
      `tokenwright: warning: other users can read ${config} (mode 0644); run: chmod 600 ${config}\n`,
    );
    chmodSync(config, 0o600);
    expect((await check(flags)).stderr).toBe('');
  });

  it.each(['leases.db', 'usage.db'])(
    'warns of a %s that cannot be used as serve does',
    async (name) => {
      const data = newFolder();
      const service = await serve(['--data', data, ...ACCOUNT]);
      await service.stop();
      writeFileSync(join(data, name), 'no database '.repeat(1000));
      const flags = ['--data', data, ...catalogFlags(), ...ACCOUNT];

      const checked = await check(flags);
      const { stderr } = await (await serve(flags)).stop();

      expect(checked).toMatchObject({ code: 0, stderr });
      expect(stderr).toContain(`${join(data, name)}: `);
    },
  );

  it('makes nothing beside a restored backup', async () => {
    const [data, folder] = [newFolder(), newFolder()];
    await (await serve(['--data', data, ...ACCOUNT])).stop();
    const backup = join(folder, 'b');
    await run(['store', 'backup', backup, '--data', data]);
    cpSync(join(data, 'keys.json'), join(backup, 'keys.json'));
    const before = readdirSync(backup);

    expect(await check(['--data', backup, ...ACCOUNT])).toMatchObject({ code: 0 });
    expect(readdirSync(backup)).toEqual(before);
  });

  it.each(['a', 'a/b'])('refuses a data folder that is, or is below, a file: %s', async (name) => {
    const folder = newFolder();
    writeFileSync(join(folder, 'a'), '');
    const data = join(folder, name);

    const ended = await run(['serve', '--data', data, '--port', '0', ...ACCOUNT]);

    expect(await check(['--data', data, ...ACCOUNT])).toEqual(ended);
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('is a file and not') });
  });

  it('needs a data folder only for a store, keys or an account that are not given', async () => {
    const file = filesOf({ a: '', 'keys.json': [generateKey()] });
    chmodSync(file('keys.json'), 0o600);
    const store = ['--store', `sqlite:${join(newFolder(), 'tokens')}`];
    const given = [store, ['--keys', file('keys.json')], [...ACCOUNT]];
    const checkWith = (flags: readonly string[][]) =>
      check(['--data', join(file('a'), 'b'), ...flags.flat()]);

    expect(await checkWith(given)).toMatchObject({ code: 0 });
    for (const left of given) {
      const others = given.filter((flags) => flags !== left);
      expect(await checkWith(others), left[0]).toMatchObject({ code: 1 });
    }
  });
});

describe.skipIf(sqlEngines.length === 0).each(sqlEngines)('serve --check on %s', (engine) => {
  it('refuses tables that do not exist, makes none, and accepts them once they do', async () => {
    const { url, tables, flags } = newStore(engine);
    const data = newFolder();
    const target = storeTarget({ store: url, tables, data });
    const missing = () =>
      withStore(target, async ({ store }) =>
        (await doctor(store)).some(({ code }) => code === 'schema_missing'),
      );
    const checked = () => check(['--data', data, ...flags, ...catalogFlags(), ...ACCOUNT]);

    const before = await checked();

    expect(before).toMatchObject({ code: 1, stdout: '' });
    expect(before.stderr).toContain(`${target.name}: no token can be read or written`);
    expect(before.stderr).toContain('run tokenwright store migrate');
    expect(await missing()).toBe(true);
    await run(['store', 'migrate', ...flags]);
    expect(await checked()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(target.name),
    });
    expect(existsSync(join(data, 'keys.json'))).toBe(false);
  });
});

describe.skipIf(engines.length === 0).each(engines)('serve --check on %s', (engine) => {
  it('refuses lost keys and an unreachable server as serve does', async () => {
    const { flags } = newStore(engine);
    const all = ['--data', newFolder(), ...flags, ...catalogFlags(), ...ACCOUNT];
    const service = await serve(all);
    await call(service, '/token', { method: 'POST', body: { scopes: SCOPES } });
    await service.stop();
    const elsewhere = [...all, '--data', newFolder()];

    const lost = await run(['serve', '--port', '0', ...elsewhere]);

    expect(await check(all)).toMatchObject({ code: 0 });
    expect(lost).toMatchObject({ code: 1, stderr: expect.stringContaining('holds tokens') });
    expect(await check(elsewhere)).toEqual(lost);
  });
});
