import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  OTHER_VARIABLES,
  readSettings,
  SERVE_SETTINGS,
  secretFiles,
  settingFacts,
  VARIABLES,
} from '../../../src/app/server/settings.ts';
import { ALL_COMMANDS, newFolder, run } from '../cli/support.ts';

/** A file with this text, in a new folder. */
function fileWith(text: string, name = 'file'): string {
  const path = join(newFolder(), name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

/** The settings of a file of settings, with the path written as `FILE` in an error. */
function configured(content: unknown, flags: object = {}, environment = {}) {
  const path = fileWith(typeof content === 'string' ? content : JSON.stringify(content));
  try {
    return readSettings(SERVE_SETTINGS, { config: path, ...flags }, environment);
  } catch (error) {
    throw new Error((error as Error).message.replaceAll(path, 'FILE'));
  }
}

describe('a variable with _FILE', () => {
  const secrets = SERVE_SETTINGS.filter((name) => settingFacts(name).file !== undefined);
  /** A value that each of them accepts. */
  const VALUES: Readonly<Record<string, string>> = {
    store: 'postgres://ada:canary@db.internal/acme',
    accounts: 'ada:canary-canary',
    introspection: 'shop:canary-canary',
  };

  it('exists for every setting whose value or help is about something secret', () => {
    const secretly = SERVE_SETTINGS.filter((name) => {
      const { flag, help } = settingFacts(name);
      // The issuer is published.
      if (name === 'issuer') return false;
      return /URL|PASSWORD/.test(flag) || /\b(?:credentials|secret)\b/.test(help);
    });

    expect(secrets).toEqual(['store', 'accounts', 'introspection']);
    expect(secretly).toEqual(secrets);
    for (const name of secrets) {
      const { variable, file } = settingFacts(name);
      expect(file).toBe(`${variable}_FILE`);
      expect(VARIABLES).toContain(file);
    }
  });

  it('exists for every secret of another command', () => {
    for (const [name, { help, ...other }] of Object.entries(OTHER_VARIABLES)) {
      const isSecret = /password|store|value/.test(help);
      expect([name, 'isSecret' in other]).toEqual([name, isSecret]);
      expect([name, VARIABLES.includes(`${name}_FILE`)]).toEqual([name, isSecret]);
    }
  });

  it.each(secrets)('gives the setting %s', (name) => {
    const { variable } = settingFacts(name);
    const value = VALUES[name] ?? '';
    const plain = readSettings(['accounts', 'accountFile', name], {}, { [variable]: value });
    for (const end of ['', '\n', '\r\n']) {
      const path = fileWith(value + end);
      const read = readSettings([name, 'accountFile'], {}, { [`${variable}_FILE`]: path });
      // The file of accounts is a setting of its own, which the service reads again on SIGHUP.
      if (name === 'accounts') expect(read.accountFile).toBe(path);
      else expect(read[name]).toEqual(plain[name]);
    }
  });

  it.each([
    ['', 'must hold one line, and nothing else'],
    ['\n', 'must hold one line, and nothing else'],
    ['postgres://canary\n\n', 'must hold one line, and nothing else'],
    ['# canary\npostgres://canary', 'must hold one line, and nothing else'],
  ])('is refused if its file holds %j, never with its text', (text, message) => {
    const path = fileWith(text);
    const read = () => readSettings(['store'], {}, { TOKENWRIGHT_STORE_FILE: path });

    expect(read).toThrow(`"${path}" (TOKENWRIGHT_STORE_FILE) ${message}`);
    expect(read).not.toThrow(/canary/);
  });

  it('is refused together with the variable itself, and if there is no such file', () => {
    const path = fileWith('postgres://a@b/c');
    const both = { TOKENWRIGHT_STORE: 'postgres://a@b/c', TOKENWRIGHT_STORE_FILE: path };

    expect(() => readSettings(['store'], {}, both)).toThrow(
      'TOKENWRIGHT_STORE and TOKENWRIGHT_STORE_FILE are both set: unset one of them',
    );
    expect(() => readSettings(['store'], {}, { TOKENWRIGHT_STORE_FILE: '/no/where' })).toThrow(
      'the file "/no/where" of TOKENWRIGHT_STORE_FILE cannot be read: it does not exist',
    );
    // An empty variable counts as absent.
    expect(readSettings(['store'], {}, { ...both, TOKENWRIGHT_STORE: '' }).store).toBe(
      'postgres://a@b/c',
    );
  });

  it('loses to the flag, which is not read from a file', () => {
    const environment = { TOKENWRIGHT_STORE_FILE: '/no/where' };

    expect(readSettings(['store'], { store: 'sqlite:a' }, environment).store).toBe('sqlite:a');
  });

  it('gives the password of the commands that call a service', async () => {
    const environment = {
      TOKENWRIGHT_URL: 'http://127.0.0.1:1',
      TOKENWRIGHT_USER: 'ada',
      TOKENWRIGHT_PASSWORD_FILE: fileWith('correct-horse\n'),
    };

    const listed = await run(['token', 'list'], environment);
    const { TOKENWRIGHT_PASSWORD_FILE: _, ...without } = environment;
    const control = await run(['token', 'list'], without);

    expect(listed).toMatchObject({ code: 1, stderr: expect.stringContaining('127.0.0.1:1') });
    expect(control).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('the password is missing'),
    });
  });
});

describe('the file of --config', () => {
  it('gives settings by the names of their flags', () => {
    const read = configured({
      port: 8080,
      host: '0.0.0.0',
      store: 'postgres://ada:secret@db.internal/acme',
      catalog: ['a.json', 'b,c.json'],
      account: ['ada:correct-horse', 'bob:with,comma'],
      'max-ttl': '90d',
      'max-stale-ms': 0,
      foreign: ['sanctum', 'unkey:sk'],
      console: 'off',
      metrics: true,
      derivation: false,
    });

    expect(read).toMatchObject({
      port: 8080,
      host: '0.0.0.0',
      store: 'postgres://ada:secret@db.internal/acme',
      catalog: ['a.json', 'b,c.json'],
      accounts: [
        { username: 'ada', password: 'correct-horse' },
        { username: 'bob', password: 'with,comma' },
      ],
      maxTtl: 90 * 86_400,
      maxStaleMs: 0,
      console: 'off',
      metrics: true,
      derivation: false,
      prefix: 'tw',
    });
    expect(read.foreign.map(({ name }) => name)).toEqual(['sanctum', 'unkey']);
  });

  it('loses to variables, and these to flags', () => {
    const file = { port: 1, prefix: 'file', host: 'file' };
    const environment = { PORT: '2', TOKENWRIGHT_PREFIX: 'env' };

    expect(configured(file, { port: '3' }, environment)).toMatchObject({
      port: 3,
      prefix: 'env',
      host: 'file',
    });
  });

  it('is named by its variable as well, for every command', async () => {
    const data = newFolder();
    const TOKENWRIGHT_CONFIG = fileWith(JSON.stringify({ data }));

    const made = await run(['store', 'migrate'], { TOKENWRIGHT_CONFIG });

    expect(made.stdout).toContain(`SQLite in ${join(data, 'tokens.db')}: the file was created`);
    expect((await run(['store', 'doctor', '--config', TOKENWRIGHT_CONFIG])).code).toBe(0);
    expect((await run(['store', 'doctor'], { TOKENWRIGHT_CONFIG: '' })).code).toBe(1);
  });

  it.each(ALL_COMMANDS.filter(({ help }) => /^ *--(?:store|data) /m.test(help)))(
    'is named by a flag of each command that uses the store or the data folder: $name',
    ({ help }) => {
      expect(help).toContain('--config FILE');
    },
  );

  it.each([
    [{ metrcs: true }, 'FILE: "metrcs" is not a setting; did you mean "metrics"?'],
    [{ maxTtl: '90d' }, 'FILE: "maxTtl" is not a setting; did you mean "max-ttl"?'],
    [{ quartz: 1 }, 'FILE: "quartz" is not a setting; the names are those of the flags'],
    [{ config: 'b.json' }, 'FILE: "config" is not a setting'],
    ['{"__proto__": {"port": 1}}', 'FILE: "__proto__" is not a setting'],
    [{ metrics: 'true' }, '"metrics" in FILE must be true or false, without quotes'],
    [{ catalog: 'a.json' }, '"catalog" in FILE must be an array of strings'],
    [{ catalog: [1] }, '"catalog" in FILE must be an array of strings'],
    [{ catalog: [''] }, '"catalog" in FILE must be an array of strings'],
    [{ port: true }, '"port" in FILE must be a number, or a string that is not empty'],
    [{ port: null }, '"port" in FILE must be a number, or a string that is not empty'],
    [{ data: '' }, '"data" in FILE must be a number, or a string that is not empty'],
    [{ port: 65_536 }, '"port" in FILE must be a whole number from 0 to 65535'],
    [{ 'max-ttl': '366d' }, '"max-ttl" in FILE must be from 1s to 365d'],
    [{ account: ['canary'] }, '"account" in FILE must be user:password'],
    [{ account: ['a:canary-8', 'canary'] }, 'entry 2 of "account" in FILE must be user:password'],
    ['[]', 'FILE must be a JSON object of settings'],
    ['"canary"', 'FILE must be a JSON object of settings'],
    ['{\n  "port": 1\n  "canary": 2\n}', 'FILE is not JSON: look at line 3, column 3'],
  ])('is refused with %j', (content, message) => {
    expect(() => configured(content)).toThrow(message);
    expect(() => configured(content)).not.toThrow(/canary/);
  });

  it('is refused if it is a folder', () => {
    const read = () => readSettings(['port'], { config: newFolder() }, {});

    expect(read).toThrow('of --config cannot be read: it is a folder');
  });

  it('is refused if it is missing', () => {
    expect(() => readSettings(['port'], { config: '/no/where' }, {})).toThrow(
      'the file "/no/where" of --config cannot be read: it does not exist',
    );
  });
});

describe('secretFiles', () => {
  it.each([
    [{ port: 1 }, false],
    [{ 'account-file': 'accounts' }, false],
    [{ account: ['ada:correct-horse'] }, true],
    [{ introspection: ['shop:correct-horse'] }, true],
    [{ store: 'postgres://a@b/c' }, true],
  ])('names the file of settings with %j: %s', (content, isNamed) => {
    const config = fileWith(JSON.stringify(content));
    const environment = { TOKENWRIGHT_STORE_FILE: 'store', TOKENWRIGHT_PASSWORD_FILE: 'other' };

    expect(secretFiles(config, environment)).toEqual(['store', ...(isNamed ? [config] : [])]);
    expect(secretFiles(undefined, {})).toEqual([]);
  });
});
