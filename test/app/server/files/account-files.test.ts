import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { renewFirstAccount } from '../../../../src/app/server/files/account-files.ts';
import { newFolder } from '../../cli/support.ts';

const ACCOUNT = { username: 'admin', passwordHash: 'old' };

function writeAccount(folder: string, content: unknown): string {
  const path = join(folder, 'account.json');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

describe('renewFirstAccount', () => {
  it('replaces only the password hash', async () => {
    const folder = newFolder();
    const path = writeAccount(folder, { ...ACCOUNT, account: 'acme' });

    await renewFirstAccount(folder, ACCOUNT, 'new');

    const kept = { username: 'admin', passwordHash: 'new', account: 'acme' };
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(kept);
    expect(readdirSync(folder)).toEqual(['account.json']);
  });

  it('leaves a file unchanged if it holds another hash', async () => {
    const folder = newFolder();
    const changed = { username: 'admin', passwordHash: 'another password' };
    const path = writeAccount(folder, changed);

    await renewFirstAccount(folder, ACCOUNT, 'new');

    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(changed);
  });

  it('replaces the hash in the target of a symbolic link and keeps the link', async () => {
    const folder = newFolder();
    const elsewhere = join(folder, 'elsewhere');
    mkdirSync(elsewhere);
    const path = writeAccount(elsewhere, ACCOUNT);
    symlinkSync(path, join(folder, 'account.json'));

    await renewFirstAccount(folder, ACCOUNT, 'new');

    expect(JSON.parse(readFileSync(path, 'utf8')).passwordHash).toBe('new');
    expect(readdirSync(folder, { withFileTypes: true }).some((file) => file.isSymbolicLink())).toBe(
      true,
    );
  });

  it('rejects if the file is missing, and does not create it', async () => {
    const folder = newFolder();

    await expect(renewFirstAccount(folder, ACCOUNT, 'new')).rejects.toThrow('ENOENT');

    expect(readdirSync(folder)).toEqual([]);
  });

  it('rejects if the file is not JSON, and leaves it unchanged', async () => {
    const folder = newFolder();
    const path = writeAccount(folder, '{"username":');

    await expect(renewFirstAccount(folder, ACCOUNT, 'new')).rejects.toThrow('is not JSON');

    expect(readFileSync(path, 'utf8')).toBe('{"username":');
  });
});
