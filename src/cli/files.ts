import { randomBytes } from 'node:crypto';
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { type FixedAccount, hashPassword } from '../http/accounts.ts';
import { generateKey, type KeyOptions } from '../keys.ts';
import { catalogFromOpenApi } from '../openapi.ts';
import { ScopeCatalog } from '../scope/index.ts';
import { EXAMPLE_CATALOG } from './example-catalog.ts';
import { UsageError } from './settings.ts';

/** What a scope calls the root of a host, for which the grammar has no path. */
const ROOT_NAME = 'root';
const OWNER_ONLY = 0o600;
const FIRST_USER = 'admin';

/** Makes the data folder, for its owner only. */
export function makeFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
}

/** The keys kept in the data folder; made on the first start. */
export function loadKeys(folder: string): KeyOptions[] {
  const path = join(folder, 'keys.json');
  const { content } = readOrMake(path, () => [generateKey()]);
  if (Array.isArray(content)) return content;
  throw new UsageError(`${path} must be a JSON array of keys`);
}

/**
 * The account made for somebody who gave none. Its password is known on the first start only;
 * what is kept is a hash.
 */
export function loadFirstAccount(folder: string): {
  readonly account: FixedAccount;
  readonly password?: string;
} {
  const path = join(folder, 'account.json');
  const password = randomBytes(15).toString('base64url');
  const { content, isNew } = readOrMake(path, () => ({
    username: FIRST_USER,
    passwordHash: hashPassword(password),
  }));
  if (typeof content !== 'object' || content === null) {
    throw new UsageError(`${path} must be a JSON object { username, passwordHash }`);
  }
  const account = content as FixedAccount;
  return isNew ? { account, password } : { account };
}

/** The catalog of some files and folders, or the example. */
export async function loadCatalog(paths: readonly string[]): Promise<ScopeCatalog> {
  if (paths.length === 0) return ScopeCatalog.from(EXAMPLE_CATALOG);
  const files = paths.flatMap(filesOf).map((path) => ({ path, list: listIn(path) }));
  const documents = files.filter(({ list }) => list === undefined).map(({ path }) => path);
  const fromDocuments = await catalogFromOpenApi(documents, { rootName: ROOT_NAME });
  const catalog = ScopeCatalog.from([
    ...(files.flatMap(({ list }) => list ?? []) as string[]),
    ...fromDocuments,
  ]);
  if (catalog.size > 0) return catalog;
  throw new UsageError(`--catalog holds no scopes: ${paths.join(', ')}`);
}

/** A folder stands for the files in it. */
function filesOf(path: string): string[] {
  if (!statSync(path).isDirectory()) return [resolve(path)];
  const names = readdirSync(path).filter((name) => /\.(?:json|ya?ml)$/i.test(name));
  return names.sort().map((name) => resolve(path, name));
}

/** The scopes of a file that is a list of them; `undefined` when it is something else, a document. */
function listIn(path: string): unknown[] | undefined {
  if (!/\.json$/i.test(path)) return undefined;
  const content = readJson(path);
  return Array.isArray(content) ? content : undefined;
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(`${path} is not JSON`);
  }
}

/** Reads a JSON file, or makes it, whole and for its owner only; of several makers one wins. */
function readOrMake(
  path: string,
  make: () => unknown,
): { readonly content: unknown; readonly isNew: boolean } {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found !== undefined) return { content: readJson(path), isNew: false };
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  const content = make();
  writeFileSync(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: OWNER_ONLY, flush: true });
  try {
    linkSync(draft, path);
    return { content, isNew: true };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return { content: readJson(path), isNew: false };
  } finally {
    rmSync(draft);
  }
}
