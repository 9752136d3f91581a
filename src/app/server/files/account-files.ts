import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type FixedAccount, hashPassword } from '../../../http/index.ts';
import { inputError, usageError } from '../../terminal/errors.ts';
import { asObject, parseJson } from '../../terminal/inputs.ts';
import { readUserAndPassword } from '../../terminal/kinds.ts';
import { draftOf, OWNER_ONLY, readOrMake } from './private-file.ts';

const FIRST_USER = 'admin';
const HASH = /^\$scrypt\$ln=\d{1,2},r=\d{1,2},p=\d{1,2}\$[\w-]{22}\$[\w-]{43}$/;

/** The path of the account that serve makes in a data folder if no account is given. */
export function firstAccountFile(folder: string): string {
  return join(folder, 'account.json');
}

/**
 * Reads the account that serve made, or makes it. The password is known only when it is made; the
 * file holds a hash.
 */
export function loadFirstAccount(folder: string): {
  readonly account: FixedAccount;
  readonly password?: string;
} {
  const path = firstAccountFile(folder);
  const password = randomBytes(15).toString('base64url');
  const { content, isNew } = readOrMake(path, () => ({
    username: FIRST_USER,
    passwordHash: hashPassword(password),
  }));
  if (typeof content !== 'object' || content === null) {
    throw usageError(`${path} must be a JSON object { username, passwordHash }`);
  }
  const account = content as FixedAccount;
  return isNew ? { account, password } : { account };
}

/**
 * Stores a new hash of the same password for the account that serve made. Does nothing if the file
 * has changed since it was read.
 */
export async function renewFirstAccount(
  folder: string,
  account: FixedAccount,
  passwordHash: string,
): Promise<void> {
  // If the file is a symbolic link, replace its target and keep the link.
  const path = await realpath(firstAccountFile(folder));
  const content = asObject(parseJson(await readFile(path, 'utf8'), path));
  if (content['passwordHash'] !== account.passwordHash) return;
  const draft = draftOf(path);
  try {
    const text = `${JSON.stringify({ ...content, passwordHash }, null, 2)}\n`;
    await writeFile(draft, text, { mode: OWNER_ONLY, flag: 'wx', flush: true });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/**
 * Reads a file of accounts. Each line is `user:password`, or `user:` and the result of
 * `hashPassword`. Empty lines and lines that begin with `#` are skipped.
 *
 * @throws {CliError} naming the line, never its text
 */
export function readAccountFile(path: string): FixedAccount[] {
  if (!existsSync(path)) {
    throw inputError(`${path} does not exist: correct --account-file (TOKENWRIGHT_ACCOUNTS_FILE)`);
  }
  const accounts = readFileSync(path, 'utf8')
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .flatMap((line, index) =>
      line.trim() === '' || line.startsWith('#') ? [] : [readLine(line, `${path}:${index + 1}`)],
    );
  if (accounts.length > 0) return accounts;
  throw inputError(`${path} must hold at least one line user:password`);
}

function readLine(line: string, name: string): FixedAccount {
  const { username, password } = readUserAndPassword(line, name, inputError);
  if (!password.startsWith('$scrypt$')) return { username, password };
  if (HASH.test(password)) return { username, passwordHash: password };
  throw inputError(`${name} must have a hash that hashPassword() made, whole`);
}
