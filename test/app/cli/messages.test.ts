import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeFolder } from '../../../src/app/server/files/private-file.ts';
import { inputError, withFlag } from '../../../src/app/terminal/errors.ts';
import { ACCOUNTS, refuseRepeated } from '../../../src/app/terminal/kinds.ts';
import { generateKey } from '../../../src/index.ts';
import { newFolder, run } from './support.ts';

const PASSWORD = 'correct-horse';

/** A data folder with keys, where a service could start. */
function newData(): string {
  const data = newFolder();
  writeFileSync(join(data, 'keys.json'), JSON.stringify([generateKey()]), { mode: 0o600 });
  return data;
}

describe('an invalid setting of serve', () => {
  it.each<[what: string, make: (data: string) => string[], message: string]>([
    [
      'a duplicate user',
      () => ['--account', `ada:${PASSWORD}`, '--account', `ada:${PASSWORD}x`],
      '--account (TOKENWRIGHT_ACCOUNTS): ada is given twice',
    ],
    [
      'keys that are too short',
      (data) => {
        const path = join(data, 'short.json');
        const keys = [{ kid: 'k1', secret: 'abc', status: 'active' }];
        writeFileSync(path, JSON.stringify(keys), { mode: 0o600 });
        return ['--keys', path];
      },
      '/short.json: keys[0].secret must be at least 32 random bytes',
    ],
    [
      'a file that is not a database',
      (data) => {
        writeFileSync(join(data, 'tokens.db'), 'this is a text, and not a database');
        return [];
      },
      '/tokens.db is not an SQLite database: give another --data or --store',
    ],
    [
      'a host with a port',
      () => ['--host', 'localhost:9000'],
      '--host must be a name or an address',
    ],
    ['a host of another machine', () => ['--host', '192.0.2.1'], 'of this machine, without a port'],
    [
      'a catalog folder with other JSON files',
      (data) => ['--catalog', data],
      'all .json, .yaml and .yml files of a folder are read',
    ],
  ])('is refused in one line: %s', async (_, make, message) => {
    const data = newData();

    const { stderr, stdout, code } = await run([
      'serve',
      '--data',
      data,
      '--port',
      '0',
      ...make(data),
    ]);

    expect(stderr).toContain(message);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stdout).toBe('');
    expect(code).toBeGreaterThan(0);
  });
});

describe('makeFolder', () => {
  it.each(['file', 'file/below'])('refuses a path at or below a file: %s', (path) => {
    const folder = newFolder();
    writeFileSync(join(folder, 'file'), '');

    expect(() => makeFolder(join(folder, path))).toThrow(
      inputError(
        `--data (TOKENWRIGHT_DATA) ${join(folder, path)}: this, or something above it, is a file and not a folder`,
      ),
    );
  });

  it.runIf(process.platform === 'linux').each(['/proc/data', '/proc/data/below'])(
    'refuses a place that takes no folders: %s',
    (path) => {
      expect(() => makeFolder(path)).toThrow(
        inputError(`--data (TOKENWRIGHT_DATA) ${path}: no folder can be created there`),
      );
    },
  );

  it('accepts an existing folder, and creates missing ones', () => {
    const folder = newFolder();
    mkdirSync(join(folder, 'data'));

    makeFolder(join(folder, 'data'));
    makeFolder(join(folder, 'new', 'data'));

    expect(readdirSync(folder).sort()).toEqual(['data', 'new']);
  });
});

describe('serve', () => {
  it('creates nothing if Node.js has no SQLite', async () => {
    const folder = newFolder();
    const data = join(folder, 'data');

    const { stderr, code } = await run(['serve', '--data', data], {
      NODE_OPTIONS: '--no-experimental-sqlite',
    });

    expect(stderr).toContain('use Node.js 22.13 or later');
    expect(code).toBe(1);
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('accounts in a variable', () => {
  it('cannot have a comma in a password, unlike accounts in a flag', () => {
    const inVariable = () => ACCOUNTS.read(`ada:${PASSWORD},ss`, 'ACCOUNTS');
    const asFlag = () => ACCOUNTS.read(['ss'], '--account');

    expect(inVariable).toThrow(
      'entry 2 of ACCOUNTS must be user:password; a comma separates accounts in a variable, so no password may hold one: give it in --account-file',
    );
    expect(asFlag).toThrow(/^--account must be user:password$/);
    expect(ACCOUNTS.read([`ada:${PASSWORD},ss`], '--account')).toEqual([
      { username: 'ada', password: `${PASSWORD},ss` },
    ]);
  });
});

describe('refuseRepeated', () => {
  it('accepts user names that differ only in case', () => {
    expect(() =>
      refuseRepeated([{ username: 'ada' }, { username: 'Ada' }] as never, 'x'),
    ).not.toThrow();
  });
});

describe('withFlag', () => {
  it.each<[message: string, member: unknown, words: string[], shown: string]>([
    ['ttlSeconds must be 1', 'ttlSeconds', [], '--ttl must be 1'],
    ['ttl must be 1', 'ttl', [], '--ttl must be 1'],
    ['expiresAt must be later', 'expiresAt', ['--expire', 'x'], '--expire must be later'],
    ['expiresAt must be later', 'expiresAt', ['--ttl', '1d'], '--ttl must be later'],
    ['expire must be later', 'expire', ['--ttl=1d'], '--ttl must be later'],
    ['graceSeconds may be', 'graceSeconds', ['--ttl'], '--grace may be'],
    ['removeScopes: a list', 'removeScopes', [], '--remove-scope: a list'],
    ['another message', 'name', [], 'another message'],
    ['limit must be', 'limit', [], 'limit must be'],
    ['constructor', 'constructor', [], 'constructor'],
    ['no member', undefined, [], 'no member'],
  ])('rewrites %j about %s after the flags %j to %j', (message, member, words, shown) => {
    expect(withFlag(message, member, words)).toBe(shown);
  });
});
