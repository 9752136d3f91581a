import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { describeOpen, openToOthers } from '../../../src/app/server/files/permissions.ts';
import { hashPassword } from '../../../src/http/sign-in/basic-auth.ts';
import { generateKey } from '../../../src/index.ts';
import { ACCOUNT, call, check, newFolder, run, serve } from '../cli/support.ts';

const WARNING = 'tokenwright: warning: ';

/** The lines that a service writes to standard error, from its start to its end. */
async function warningsOf(args: readonly string[]): Promise<string[]> {
  const { code, stderr } = await (await serve(args)).stop();
  expect(code).toBe(0);
  return stderr.split('\n').filter((line) => line !== '');
}

/** A key file with these permissions. */
function keysWith(mode: number, name = 'keys.json'): string {
  const file = join(newFolder(), name);
  writeFileSync(file, JSON.stringify([generateKey()]));
  chmodSync(file, mode);
  return file;
}

/** A catalog of one scope. */
function catalogFile(): string {
  const file = join(newFolder(), 'catalog.json');
  writeFileSync(file, '["GET:shop.example/orders"]');
  return file;
}

describe('openToOthers', () => {
  it.each([
    ['0600', undefined],
    ['0400', undefined],
    ['0711', undefined],
    ['0640', 'other users can read FILE (mode 0640); run: chmod 600 FILE'],
    ['0604', 'other users can read FILE (mode 0604); run: chmod 600 FILE'],
    ['0620', 'other users can change FILE (mode 0620); run: chmod 600 FILE'],
    ['0666', 'other users can read and change FILE (mode 0666); run: chmod 600 FILE'],
  ])('reports a file with mode %s as: %s', (mode, expected) => {
    const file = keysWith(Number.parseInt(mode, 8));

    const open = openToOthers(file);

    expect(open && describeOpen(open).replaceAll(file, 'FILE')).toBe(expected);
  });

  it('quotes the path for the shell, and suggests mode 700 for a folder', () => {
    const file = keysWith(0o644, "it's.json");
    const folder = newFolder();
    chmodSync(folder, 0o755);

    expect(openToOthers(file)?.fix).toMatch(/^chmod 600 '.*\/it'\\''s\.json'$/);
    expect(openToOthers(folder)?.fix).toBe(`chmod 700 ${folder}`);
    expect(openToOthers(join(folder, 'nowhere'))).toBeUndefined();
  });
});

describe('missing keys', () => {
  async function setUp(): Promise<{ data: string; keys: string; database: string }> {
    const data = newFolder();
    const service = await serve(['--data', data, ...ACCOUNT]);
    await call(service, '/token', { method: 'POST', body: { scopes: ['*:*/*'] } });
    await service.stop();
    return { data, keys: join(data, 'keys.json'), database: join(data, 'tokens.db') };
  }

  it('are not replaced by new ones while the store holds tokens', async () => {
    const { data, keys, database } = await setUp();
    renameSync(keys, `${keys}.old`);

    const ended = await run(['serve', '--data', data, '--port', '0', ...ACCOUNT]);

    expect(await check(['--data', data, ...ACCOUNT])).toEqual(ended);
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(/^tokenwright: there is no [^\n]+ put [^\n]+ back [^\n]+\n$/);
    expect(ended.stderr).toContain(`there is no ${keys}, but ${database} holds tokens`);
    expect(existsSync(keys)).toBe(false);
    renameSync(`${keys}.old`, keys);
    await (await serve(['--data', data, ...ACCOUNT])).stop();
  });

  it('are also reported for a store in another folder, unless --keys names them', async () => {
    const { keys, database } = await setUp();
    const data = newFolder();
    const elsewhere = ['--data', data, '--store', `sqlite:${database}`, ...ACCOUNT];

    const ended = await run(['serve', '--port', '0', ...elsewhere]);

    expect(ended.stderr).toContain(`there is no ${join(data, 'keys.json')}, but ${database} holds`);
    await (await serve([...elsewhere, '--keys', keys])).stop();
  });

  it('are replaced if all tokens were revoked, or if there are none', async () => {
    const { data, keys, database } = await setUp();
    rmSync(keys);
    const handle = new DatabaseSync(database);
    handle.exec('UPDATE tokens SET revoked_at = 1');
    handle.close();

    await (await serve(['--data', data, ...ACCOUNT])).stop();
    expect(existsSync(keys)).toBe(true);
    handle.open();
    handle.exec('DELETE FROM tokens');
    handle.close();
    rmSync(keys);
    await (await serve(['--data', data, ...ACCOUNT])).stop();
    expect(existsSync(keys)).toBe(true);
  });

  it('are not created next to an unusable store file', async () => {
    const { data, keys, database } = await setUp();
    rmSync(keys);
    writeFileSync(database, 'no database '.repeat(1000));

    const ended = await run(['serve', '--data', data, '--port', '0', ...ACCOUNT]);

    expect(await check(['--data', data, ...ACCOUNT])).toEqual(ended);
    expect(ended.stderr).toContain('is not an SQLite database');
    expect(existsSync(keys)).toBe(false);
  });
});

describe('serve', () => {
  it.each(['keys.json', 'account.json'])(
    'does not start while other users can read %s',
    async (name) => {
      const data = newFolder();
      await (await serve(['--data', data])).stop();
      const file = join(data, name);
      chmodSync(file, 0o644);

      const ended = await run(['serve', '--data', data, '--port', '0']);

      expect(await check(['--data', data])).toEqual(ended);
      expect(ended).toEqual({
        code: 1,
        stdout: '',
        stderr: `tokenwright: other users can read ${file} (mode 0644); run: chmod 600 ${file}\n`,
      });
      chmodSync(file, 0o600);
      expect(await warningsOf(['--data', data])).toEqual([]);
    },
  );

  it('ignores the permissions of an account.json that it does not use', async () => {
    const data = newFolder();
    await (await serve(['--data', data])).stop();
    chmodSync(join(data, 'account.json'), 0o644);

    expect(await warningsOf(['--data', data, ...ACCOUNT])).toEqual([]);
  });

  it('warns about a folder, database and key file that other users can access, and starts', async () => {
    const data = newFolder();
    await (await serve(['--data', data, ...ACCOUNT])).stop();
    chmodSync(data, 0o777);
    chmodSync(join(data, 'tokens.db'), 0o644);
    const keys = keysWith(0o444);

    const flags = ['--data', data, '--keys', keys, ...ACCOUNT];
    const warnings = await warningsOf(flags);
    expect((await check(flags)).stderr).toBe(warnings.map((line) => `${line}\n`).join(''));
    expect(warnings).toEqual([
      `${WARNING}other users can read and change ${data} (mode 0777); run: chmod 700 ${data}`,
      `${WARNING}other users can read ${keys} (mode 0444); run: chmod 600 ${keys}`,
      `${WARNING}other users can read ${data}/tokens.db (mode 0644); run: chmod 600 ${data}/tokens.db`,
    ]);
  });

  it('creates its database for its owner only, also behind a symbolic link', async () => {
    const data = newFolder();
    const target = join(newFolder(), 'elsewhere.db');
    symlinkSync(target, join(data, 'tokens.db'));

    expect(await warningsOf(['--data', data, ...ACCOUNT])).toEqual([]);
    expect(statSync(target).mode & 0o777).toBe(0o600);
  });

  it('warns about a key that does not look random, without showing it', async () => {
    const keys = join(newFolder(), 'weak.json');
    const secret = 'canary-which-nobody-would-ever-guess-in-the-world';
    writeFileSync(keys, JSON.stringify([{ kid: 'k1', secret, status: 'active' }]), { mode: 0o600 });

    const warnings = await warningsOf(['--data', newFolder(), '--keys', keys, ...ACCOUNT]);

    expect(warnings).toEqual([expect.stringContaining('the secret of k1 does not look like')]);
    expect(warnings.join()).not.toContain('canary');
  });

  it('warns if other machines can reach it over plain HTTP', async () => {
    const hasIpv6 = Object.values(networkInterfaces())
      .flat()
      .some((one) => one?.address === '::1');
    const catalog = catalogFile();
    const of = (host: string) =>
      warningsOf(['--data', newFolder(), '--host', host, '--catalog', catalog, ...ACCOUNT]).then(
        (lines) => lines.join(),
      );

    expect(await of('0.0.0.0')).toBe(
      `${WARNING}it listens on 0.0.0.0, which other machines can reach, and speaks plain HTTP; put a proxy with TLS in front of it`,
    );
    for (const host of ['127.0.0.1', 'localhost', ...(hasIpv6 ? ['::1'] : [])]) {
      expect([host, await of(host)]).toEqual([host, '']);
    }
  });

  it('warns about the example catalog with --store or a public address', async () => {
    const elsewhere = (): string => `sqlite:${join(newFolder(), 'other.db')}`;
    const example = expect.stringMatching(
      /the scopes of an example, acme\.example, because no cata/,
    );
    const of = async (...flags: string[]) =>
      (await warningsOf(['--data', newFolder(), ...ACCOUNT, ...flags])).filter(
        (line) => !line.includes('plain HTTP'),
      );

    expect(await of('--store', elsewhere())).toEqual([example]);
    expect(await of('--host', '0.0.0.0')).toEqual([example]);
    expect(await of('--store', elsewhere(), '--catalog', catalogFile())).toEqual([]);
    expect(await of()).toEqual([]);
  });

  it.each([
    ['x-forwarded-for', [], ['X-Forwarded-For']],
    ['forwarded', [], ['Forwarded']],
    ['x-forwarded-for', ['--client-header', 'X-Real-IP'], []],
    ['x-forwarded-for', ['--trust-proxy', '10.0.0.0/8'], []],
    ['x-forwarded-host', [], []],
  ])(
    'warns at most once about %s with the flags %j, naming %j',
    async (header, flags, expected) => {
      const service = await serve(['--data', newFolder(), ...ACCOUNT, ...flags]);
      for (let i = 0; i < 3; i++) {
        await fetch(`${service.url}/openapi.json`, { headers: { [header]: 'for=192.0.2.1' } });
      }
      const { stderr } = await service.stop();

      expect(
        [...stderr.matchAll(/came with the header ([\w-]+),/g)].map(([, name]) => name),
      ).toEqual(expected);
      expect(stderr.includes('give --trust-proxy or --client-header')).toBe(expected.length > 0);
    },
  );
});

describe('--account-file', () => {
  const file = (content: string, mode = 0o600) => {
    const path = join(newFolder(), 'accounts');
    writeFileSync(path, content, { mode });
    return path;
  };

  it('defines accounts with a password or its hash, in addition to --account', async () => {
    const path = file(
      `# people\r\nada:correct-horse\r\n\n  \nbob:${hashPassword('battery-staple')}\ncleo:with:colon#1 `,
    );
    const data = join(newFolder(), 'data');
    const service = await serve(['--data', data, '--account', 'dora:of-the-flag'], {
      TOKENWRIGHT_ACCOUNTS_FILE: path,
    });
    const status = async (as: string) => (await call(service, '/token', { as })).status;

    expect(service.greeting).toContain('accounts  dora, ada, bob, cleo\n');
    for (const as of [
      'ada:correct-horse',
      'bob:battery-staple',
      'cleo:with:colon#1 ',
      'dora:of-the-flag',
    ]) {
      expect([as, await status(as)]).toEqual([as, 200]);
    }
    expect(await status(`bob:${readFileSync(path, 'utf8').split('\n')[4]?.slice(4)}`)).toBe(401);
    expect(existsSync(join(data, 'account.json'))).toBe(false);
  });

  it('causes a warning if other users can read it', async () => {
    const path = file('ada:correct-horse\n', 0o644);

    expect(await warningsOf(['--data', newFolder(), '--account-file', path])).toEqual([
      `${WARNING}other users can read ${path} (mode 0644); run: chmod 600 ${path}`,
    ]);
  });

  it.each([
    ['ada:correct-horse\n\ncanary\n', ':3 must be user:password'],
    ['# x\nada:canary7\n', ':2 must have a password of at least 8 characters'],
    ['ada:$scrypt$canary\n', ':1 must have a hash that hashPassword() made, whole'],
    ['# canary:correct-horse\n', ' must hold at least one line user:password'],
    ['', ' must hold at least one line user:password'],
  ])('is refused with the line number, but never its content: %j', async (content, message) => {
    const path = file(content);
    const data = newFolder();

    const ended = await run(['serve', '--data', data, '--port', '0', '--account-file', path]);

    expect(await check(['--data', data, '--account-file', path])).toEqual(ended);
    expect(ended).toEqual({ code: 1, stdout: '', stderr: `tokenwright: ${path}${message}\n` });
  });

  it('is refused if it is a folder', async () => {
    const path = newFolder();
    mkdirSync(join(path, 'x'));

    const ended = await run(['serve', '--data', newFolder(), '--account-file', path]);

    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(/^tokenwright: EISDIR.*\n$/);
  });
});

describe('a catalog with the scope', () => {
  it.each([
    ['GET:shop.example/orders/:id', 1],
    ['GET:shop.example/orders/{id}', 0],
    ['GET:shop.example/orders/a:b', 0],
  ])('%s ends keys check with %i', async (scope, code) => {
    const catalog = join(newFolder(), 'catalog.json');
    writeFileSync(catalog, JSON.stringify([scope]));

    const ended = await run(['catalog', 'diff', catalog, catalog]);

    expect(ended.code).toBe(code);
    expect(ended.stderr.includes('did you mean GET:shop.example/orders/{}?')).toBe(code === 1);
  });
});
