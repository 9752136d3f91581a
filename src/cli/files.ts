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
import { extname, join } from 'node:path';
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
  const contents = paths.flatMap(filesOf).map(readJson);
  const documents = contents.filter((content) => !Array.isArray(content));
  const fromDocuments = await catalogFromOpenApi(documents, { rootName: ROOT_NAME });
  const catalog = ScopeCatalog.from([
    ...contents.filter((content) => Array.isArray(content)).flat(),
    ...fromDocuments,
  ]);
  if (catalog.size > 0) return catalog;
  throw new UsageError(`--catalog holds no scopes: ${paths.join(', ')}`);
}

/** A folder stands for the files in it. */
function filesOf(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  const names = readdirSync(path).sort();
  const unread = names.find((name) => ['.yaml', '.yml'].includes(extname(name).toLowerCase()));
  if (unread !== undefined) {
    throw new UsageError(`${join(path, unread)} is YAML: documents are read as JSON only`);
  }
  return names
    .filter((name) => extname(name).toLowerCase() === '.json')
    .map((name) => join(path, name));
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
