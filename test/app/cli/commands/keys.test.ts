import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { KEYS_COMMANDS } from '../../../../src/app/cli/commands/keys.ts';
import {
  generateKey,
  type KeyOptions,
  MemoryTokenStore,
  TokenService,
} from '../../../../src/index.ts';
import { manualClock } from '../../../../src/testing/index.ts';
import { exampleOf, newFolder, outcomeOf, run, runInShell, serve } from '../support.ts';

const SCOPE = 'GET:shop.example/orders';
const DAY_SECONDS = 86_400;

describe('keys new', () => {
  it('creates a key file for its owner only, and prints no secret', async () => {
    const data = join(newFolder(), 'new');
    const file = join(data, 'keys.json');

    const made = await run(['keys', 'new', '--data', data]);

    expect(made).toEqual({
      code: 0,
      stdout: `created ${file} with the active key k1\n`,
      stderr: '',
    });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(data).mode & 0o777).toBe(0o700);
    expect(keysIn(file)).toMatchObject([{ kid: 'k1', status: 'active' }]);
    const service = await serve(['--data', data, '--account', 'ada:correct-horse']);
    expect((await service.stop()).code).toBe(0);
  });

  it('never overwrites a file', async () => {
    const file = join(newFolder(), 'a.json');
    await outcomeOf(['keys', 'new', '--keys', file, '--kid', 'zz']);
    const before = readFileSync(file, 'utf8');

    await expect(outcomeOf(['keys', 'new', '--keys', file])).rejects.toThrow('already exists');
    expect(readFileSync(file, 'utf8')).toBe(before);
    expect(keysIn(file)).toMatchObject([{ kid: 'zz' }]);
  });

  it.each([
    ['a file that is not JSON', 'a.json', 'a.json is not JSON'],
    ['a folder that does not exist', 'none/a.json', 'none/a.json cannot be written (ENOENT)'],
  ])('exits with 1 for %s, and names it as it was given', async (_, name, message) => {
    const folder = newFolder();
    writeFileSync(join(folder, 'a.json'), '{');
    const file = join(folder, name);

    const { code, stderr } = await run(['keys', 'new', '--keys', file]);

    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
    expect(stderr).not.toMatch(/[0-9a-f]{12}'/);
    expect(readFileSync(join(folder, 'a.json'), 'utf8')).toBe('{');
  });

  it('prints keys with --print, and creates no file', async () => {
    const data = join(newFolder(), 'none');

    const printed = await outcomeOf(['keys', 'new', '--data', data, '--print']);

    expect(JSON.parse(printed.text)).toEqual(printed.json);
    expect(printed.json).toMatchObject([{ kid: 'k1', secret: expect.any(String) }]);
    expect(existsSync(data)).toBe(false);
  });
});

describe('a key file', () => {
  const inFolder = async (line: string, folder = newFolder()) => {
    const { stdout, stderr } = await runInShell(`cd "$1" && ${line}`, folder);
    return stdout + stderr;
  };
  const elsewhere = 'keys.json exists in this folder: to use it, give --keys keys.json';

  it.each([
    ['token list --account ada'],
    ['keys check'],
    ['keys rotate --data data'],
    ['serve --keys data/keys.json'],
  ])('that is missing is reported by %s, with how to create it', async (call) => {
    const printed = await inFolder(`tokenwright ${call}`);

    expect(printed).toContain('the key file "data/keys.json" does not exist: ');
    expect(printed).toContain('serve and tokenwright keys new create it in the data folder');
    expect(printed).toContain('give --data or --keys (TOKENWRIGHT_KEYS)');
    expect(printed).not.toContain(elsewhere);
  });

  it('in the working directory is suggested if the data folder has none', async () => {
    const folder = newFolder();
    const made = await inFolder('tokenwright keys new --keys keys.json', folder);
    const missed = await inFolder('tokenwright keys check', folder);
    const found = await inFolder('tokenwright keys check --keys keys.json', folder);

    expect(made).toContain('pass --keys keys.json to serve and token');
    expect(missed).toContain(elsewhere);
    expect(found).toContain('nothing found in keys.json');
    // No hint if the file is in the default location, or if no such file exists.
    const created = await inFolder('tokenwright keys new');
    expect(created).toBe('created data/keys.json with the active key k1\n');
    const missing = await inFolder('tokenwright keys check --keys keys.json');
    expect(missing).not.toContain(elsewhere);
  });

  it('is named in the greeting of serve, with a hint about one that it ignores', async () => {
    const greeting = (folder: string, flags = '') =>
      inFolder(
        `exec 3< <(exec "$NODE" "$MAIN" serve --port 0 --data data --account ada:correct-horse ${flags}); sed /curl/q <&3; kill $!`,
        folder,
      );
    const folder = newFolder();

    expect(await greeting(folder)).toContain('  keys      data/keys.json\n');
    await inFolder('tokenwright keys new --keys keys.json', folder);
    expect(await greeting(folder)).toContain(`  keys      data/keys.json; ${elsewhere}\n`);
    expect(await greeting(folder, '--keys keys.json')).toContain('  keys      keys.json\n');
  });
});

describe('keys rotate', () => {
  it('adds an active key, and keeps old values valid', async () => {
    const { file, rotate } = setUp();
    const old = await issued(file);

    const rotated = await rotate();

    expect(rotated.json.keys).toEqual([
      { kid: 'k1', status: 'verify' },
      { kid: 'k2', status: 'active' },
    ]);
    expect(await old.isAccepted()).toBe(true);
    expect((await issued(file)).value).toMatch(/^tw_1k2/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(file, '..'))).toEqual(['keys.json']);
  });

  it('stages, activates and drops keys, so that no service meets an unknown key', async () => {
    const { file, rotate } = setUp();
    const old = await issued(file);
    const kids = async (...flags: string[]) =>
      (await rotate(...flags)).json.keys.map((key: KeyOptions) => `${key.kid} ${key.status}`);

    expect(await kids('--stage')).toEqual(['k1 active', 'k2 verify']);
    const [behind, staged] = [keysIn(file), await issued(file)];
    expect(staged.value).toMatch(/^tw_1k1/);
    expect(await kids('--activate', 'k2')).toEqual(['k1 verify', 'k2 active']);
    const next = await issued(file);
    expect(await next.isAccepted(behind)).toBe(true);

    await expect(rotate('--drop', 'k1')).rejects.toThrow(
      'every token whose value was made with k1 would be refused from then on',
    );
    expect(await old.isAccepted()).toBe(true);
    expect(await kids('--drop', 'k1', '--yes')).toEqual(['k2 active']);
    expect(await old.isAccepted()).toBe(false);
    expect(await next.isAccepted()).toBe(true);
  });

  it.each([
    [['--stage', '--drop', 'k1'], 'give only one of them'],
    [['--activate', 'k1', '--kid', 'k2'], '--kid names a new key'],
    [['--activate', 'k9'], 'no key has that name; the file has k1'],
    [['--drop', 'k9', '--yes'], 'no key has that name'],
    [['--drop', 'k1', '--yes'], 'k1 is the active key'],
    [['--kid', 'k1'], 'the key k1 already exists'],
    [['--kid', 'key'], '--kid must be 2 characters of 0-9A-Za-z'],
  ])('refuses %j, and changes nothing', async (flags, message) => {
    const { file, rotate } = setUp();
    const before = readFileSync(file, 'utf8');

    await expect(rotate(...flags)).rejects.toThrow(message);

    expect(readFileSync(file, 'utf8')).toBe(before);
    expect(readdirSync(join(file, '..'))).toEqual(['keys.json']);
  });

  it('names new keys k2 to k9, then ka', async () => {
    const { file, rotate } = setUp();
    for (let i = 2; i <= 10; i++) await rotate('--stage');

    expect(keysIn(file).map(({ kid }) => kid)).toEqual([
      ...['k1', 'k2', 'k3', 'k4', 'k5', 'k6', 'k7', 'k8', 'k9', 'ka'],
    ]);
  });

  it('refuses to change a file while another command changes it', async () => {
    const { file, rotate } = setUp();
    writeFileSync(`${file}.new`, '');

    await expect(rotate()).rejects.toThrow('another command is changing the keys');

    expect(existsSync(`${file}.new`)).toBe(true);
    expect(keysIn(file)).toHaveLength(1);
  });

  it('loses no key if several commands change a file concurrently', async () => {
    const { file } = setUp();
    const before = keysIn(file);

    const ends = await Promise.all(
      ['ka', 'kb', 'kc', 'kd'].map((kid) =>
        run(['keys', 'rotate', '--stage', '--kid', kid, '--keys', file]),
      ),
    );

    const made = ends.filter(({ code }) => code === 0);
    expect(made.length).toBeGreaterThan(0);
    expect(keysIn(file)).toHaveLength(before.length + made.length);
    expect(keysIn(file)[0]).toEqual(before[0]);
    for (const { code, stderr } of ends) {
      if (code !== 0) expect(stderr).toContain('another command is changing the keys');
    }
  });

  it('changes the target of a symbolic link', async () => {
    const { file } = setUp();
    const link = join(newFolder(), 'keys.json');
    symlinkSync(file, link);

    await outcomeOf(['keys', 'rotate', '--keys', link]);

    expect(keysIn(file)).toHaveLength(2);
    expect(keysIn(link)).toHaveLength(2);
  });

  it.each([
    ['[]', 'at least one key'],
    ['{"a":"canary"}', 'must be a JSON array of keys'],
    ['[canary', 'is not JSON'],
    ['[{"kid":"k1","secret":"canary","status":"active"}]', 'at least 32 random bytes'],
  ])('refuses a file that contains %s, and leaves it unchanged', async (content, message) => {
    const file = join(newFolder(), 'keys.json');
    writeFileSync(file, content);

    const ended = await run(['keys', 'rotate', '--keys', file]);

    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain(message);
    expect(ended.stderr).not.toContain('canary');
    expect(readFileSync(file, 'utf8')).toBe(content);
  });
});

describe('keys check', () => {
  const good = generateKey('k1');
  const old = { ...generateKey('k0'), status: 'verify' };

  it.each<[string, unknown, string[]]>([
    ['nothing in good keys', [good, old], []],
    ['nothing in verifier keys', verifierKeys(good), []],
    [
      'nothing in a hexadecimal key',
      [{ ...good, secret: createHash('sha256').update('').digest('hex') }],
      [],
    ],
    ['a missing active key', [old], ['ring']],
    ['two active keys', [good, { ...good, kid: 'k2', secret: old.secret }], ['ring']],
    ['a duplicate kid', [good, { ...old, kid: 'k1' }], ['ring']],
    ['a duplicate secret', [good, { ...old, secret: good.secret }], ['ring']],
    ['a secret that is too short', [{ ...good, secret: 'canary' }], ['key']],
    ['a secret of one repeated byte', [{ ...good, secret: 'A'.repeat(43) }], ['key']],
    ['every malformed key', [{ kid: 'long' }, 'canary', good], ['key', 'key']],
    [
      'a secret of words',
      [{ ...good, secret: 'canary-which-nobody-would-ever-guess-in-the-world' }],
      ['weak'],
    ],
    [
      'a secret of encoded text',
      [{ ...good, secret: base64url('Canary: Nobody Would Guess, 42 Times!') }],
      ['weak'],
    ],
    [
      'a secret of few different bytes',
      [{ ...good, secret: base64url('Ab\u0001\u0002'.repeat(8)) }],
      ['weak'],
    ],
  ])('finds %s', async (_, keys, codes) => {
    const file = fileOf(keys);

    const outcome = await outcomeOf(['keys', 'check', '--keys', file]);

    expect(outcome.json.map(({ code }: { code: string }) => code)).toEqual(codes);
    expect(outcome.isNegative).toBe(codes.length > 0);
    const outcomeText = JSON.stringify(outcome);
    expect(outcomeText).not.toContain(good.secret);
    expect(outcomeText).not.toMatch(/canary/i);
  });

  it('never reports a generated key as weak', async () => {
    const keys = Array.from({ length: 60 }, (_, i) => ({
      ...generateKey(`a${'0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'[i]}`),
      status: i === 0 ? 'active' : 'verify',
    }));

    const { json, notes } = await outcomeOf(['keys', 'check', '--keys', fileOf(keys)]);

    expect(json).toEqual([]);
    expect(notes).toMatch(/: a0 is active, a1 verifies/);
  });

  it.each([
    ['0600', []],
    ['0400', []],
    ['0640', ['permissions']],
    ['0604', ['permissions']],
    ['0622', ['permissions']],
  ])('finds for a file with mode %s: %j', async (mode, codes) => {
    const file = fileOf([good]);
    chmodSync(file, Number.parseInt(mode, 8));

    const { json } = await outcomeOf(['keys', 'check', '--keys', file]);

    expect(json.map(({ code }: { code: string }) => code)).toEqual(codes);
  });

  it('exits with different codes for no findings, findings and a missing file', async () => {
    const [right, wrong] = [fileOf([good]), fileOf([old])];

    const ends = await Promise.all(
      [right, wrong, '/nowhere/keys.json'].map((file) => run(['keys', 'check', '--keys', file])),
    );

    expect(ends.map(({ code }) => code)).toEqual([0, 3, 1]);
    expect(ends[2]?.stderr).toContain('serve and tokenwright keys new create it');
  });
});

describe('keys verifier', () => {
  it('prints keys that can only verify values, without the secret', async () => {
    const { file } = setUp();
    const { value, isAccepted } = await issued(file);

    const { json, notes } = await outcomeOf(['keys', 'verifier', '--keys', file]);

    expect(json).toEqual(verifierKeys(...keysIn(file)));
    expect(notes).toMatch(/^1 key that only verifies/);
    expect(await isAccepted(json)).toBe(true);
    expect(value).toMatch(/^tw_1k1/);
    expect(JSON.stringify(json)).not.toContain(String(keysIn(file)[0]?.secret));
  });
});

describe('the help for keys rotate', () => {
  it('does not say that a year is enough, since an extended token keeps its old key longer', async () => {
    const { file, rotate } = setUp();
    const store = new MemoryTokenStore();
    const clock = manualClock();
    const started = () => new TokenService({ store, keys: keysIn(file), prefix: 'tw', clock });
    const { id, value } = await started().issue({ account: 'ada', scopes: [SCOPE] });
    await rotate();

    for (const months of [11, 11]) {
      clock.advance(months * 30 * DAY_SECONDS);
      const expiresAt = new Date(clock.now().getTime() + 365 * DAY_SECONDS * 1000);
      await started().modify('ada', id, { scopes: [SCOPE], expiresAt });
    }

    expect((await started().verify(value, { scope: SCOPE })).ok).toBe(true);
    await rotate('--drop', 'k1', '--yes');
    expect((await started().verify(value, { scope: SCOPE })).ok).toBe(false);
    const help = KEYS_COMMANDS.find(({ name }) => name === 'keys rotate')?.help;
    expect(help).toMatch(/enough\s+only if nobody extends a token/);
    expect(help).not.toContain('a year');
  });
});

describe('the help examples for keys', () => {
  it('print the output that they show, in order', async () => {
    const folder = newFolder();
    const play = async (verb: string) => {
      const example = exampleOf(`keys ${verb}`);
      const { stdout, stderr } = await runInShell(`cd "$1" && tokenwright ${example.call}`, folder);
      expect([verb, (stdout + stderr).trimEnd()]).toEqual([verb, example.output]);
    };

    await play('new');
    await play('verifier');
    await play('rotate');
    chmodSync(join(folder, 'keys.json'), 0o644);
    await play('check');
  });
});

function setUp() {
  const file = fileOf([generateKey()]);
  const rotate = (...flags: string[]) => outcomeOf(['keys', 'rotate', '--keys', file, ...flags]);
  return { file, rotate };
}

function fileOf(keys: unknown): string {
  const file = join(newFolder(), 'keys.json');
  writeFileSync(file, JSON.stringify(keys), { mode: 0o600 });
  return file;
}

function keysIn(file: string): KeyOptions[] {
  return JSON.parse(readFileSync(file, 'utf8'));
}

/** A value issued with the keys of a file, and a check with these keys or those now in the file. */
async function issued(file: string) {
  const store = new MemoryTokenStore();
  const serviceWith = (keys: readonly KeyOptions[]) =>
    new TokenService({ store, keys, prefix: 'tw' });
  const { value } = await serviceWith(keysIn(file)).issue({ account: 'ada', scopes: [SCOPE] });
  const isAccepted = async (keys = keysIn(file)) =>
    (await serviceWith(keys).verify(value, { scope: SCOPE })).ok;
  return { value, isAccepted };
}

function verifierKeys(...keys: readonly KeyOptions[]): KeyOptions[] {
  const store = new MemoryTokenStore();
  return new TokenService({ store, keys, prefix: 'tw' }).verifierKeys();
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}
