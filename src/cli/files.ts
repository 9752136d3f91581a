import { randomBytes } from 'node:crypto';
import {
  existsSync,
  fstatSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { isTokenError } from '../errors.ts';
import { type FixedAccount, hashPassword } from '../http/accounts.ts';
import { generateKey, type KeyOptions } from '../keys.ts';
import {
  catalogFromOpenApi,
  type OpenApiOptions,
  type OpenApiReading,
  readOpenApi,
  type TokenScopes,
} from '../openapi.ts';
import { type Scope, ScopeCatalog, ScopeError, safeParseScope } from '../scope/index.ts';
import { redact } from '../value.ts';
import { EXAMPLE_CATALOG } from './example-catalog.ts';
import { UsageError } from './settings.ts';

/** What a scope calls the root of a host, for which the grammar has no path. */
const ROOT_NAME = 'root';
const OWNER_ONLY = 0o600;
const FIRST_USER = 'admin';
/** Faults of one list that a message tells. */
const MAX_TOLD = 3;

/** What was given to a command to read is wrong: its message is for the person at the terminal. */
export class InputError extends Error {}

/** Makes the data folder, for its owner only. */
export function makeFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
}

/** Where the keys of a data folder are. */
export function keyFile(folder: string): string {
  return join(folder, 'keys.json');
}

/** The keys kept in the data folder; made on the first start. */
export function loadKeys(folder: string): KeyOptions[] {
  const path = keyFile(folder);
  return asKeys(readOrMake(path, () => [generateKey()]).content, path);
}

/**
 * The keys of a file that is there. What each of them is, nobody has looked at yet.
 *
 * @throws {InputError} when it is not there, or is no list
 */
export function readKeys(path: string): KeyOptions[] {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) {
    const other = otherKeys(path);
    throw new InputError(
      `there is no file of keys ${quote(path)}: serve makes it in its data, and so does tokenwright keys new; for another place give --data, or --keys (TOKENWRIGHT_KEYS)${other === undefined ? '' : `; ${other}`}`,
    );
  }
  try {
    return asKeys(readJson(path), path);
  } catch (error) {
    throw error instanceof UsageError ? new InputError(error.message) : error;
  }
}

/** Says of keys in this folder that they are not those that are used, as somebody may think. */
export function otherKeys(used: string): string | undefined {
  const here = keyFile('');
  if (resolve(used) === resolve(here) || !existsSync(here)) return undefined;
  return `there is ${here} in this folder: give --keys ${here}`;
}

/**
 * Makes a file of keys for its owner only, whole or not at all.
 *
 * @returns whether it was made; false when there is one, which stays as it is
 */
export function makeKeys(path: string, keys: readonly KeyOptions[]): boolean {
  return readOrMake(path, () => keys).isNew;
}

function asKeys(content: unknown, path: string): KeyOptions[] {
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
  const catalog = await asInput(() => catalogOf(paths.flatMap(filesOf)));
  if (catalog.size > 0) return catalog;
  throw new UsageError(`--catalog holds no scopes: ${paths.join(', ')}`);
}

/**
 * The catalog of files and folders that a command looks at. It may be empty.
 *
 * @throws {InputError}
 */
export function readCatalog(paths: readonly string[]): Promise<ScopeCatalog> {
  return asInput(() => catalogOf(givenFiles(paths)));
}

/**
 * What OpenAPI documents describe, and the files they are in.
 *
 * @throws {InputError}
 */
export function readDocuments(
  paths: readonly string[],
  options: OpenApiOptions,
): Promise<{ readonly reading: OpenApiReading; readonly documents: readonly string[] }> {
  return asInput(async () => {
    const documents = givenFiles(paths);
    return { reading: await readOpenApi(documents, options), documents };
  });
}

/**
 * Reads a list of scopes: written out with commas, a JSON file, or `-` for standard input.
 *
 * @throws {InputError} naming the first few members that are not scopes
 */
export async function readScopes(text: string, name: string): Promise<Scope[]> {
  if (text === '-') {
    const input = await standardInput();
    return readMembers(await asInput(() => parseStandardInput(input)), 'standard input');
  }
  // A scope has a colon, and a path rarely: `./a:b.json` is one, and so is `C:\\a.json`.
  const isPath = !text.includes(':') || /^(?:\.{0,2}\/|[A-Za-z]:[\\/])/.test(text);
  if (!isPath)
    return readMembers(
      text.split(',').map((scope) => scope.trim()),
      name,
    );
  const members = await asInput(() => readJson(text)).catch((error) => {
    if (!['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].includes(error.code)) throw error;
    throw new InputError(
      `${name} must be scopes separated by commas, as GET:shop.example/orders, a JSON file, or -; there is no file ${quote(text)}`,
    );
  });
  return readMembers(members, text);
}

/**
 * Reads who holds what: tokens as `GET /token` lists them, or its whole answer. What a token was
 * requested with may be absent, and is empty then. Other members, the value among them, are not
 * looked at; an id that is a value all the same is masked.
 *
 * @throws {InputError}
 */
export async function readTokens(path: string): Promise<TokenScopes[]> {
  const source = path === '-' ? 'standard input' : path;
  const content = await asInput(async () =>
    path === '-' ? parseJson(await standardInput(), source) : readJson(path),
  );
  const answer = Array.isArray(content) ? { data: content } : asObject(content);
  if (answer['cursor'] !== undefined) {
    throw new InputError(
      `${source} is one page of several; put the data of all into one JSON array`,
    );
  }
  if (!Array.isArray(answer['data'])) {
    throw new InputError(
      `${source} must be a JSON array of tokens, each { id, scopes }, or the answer of GET /token`,
    );
  }
  return answer['data'].map((token: unknown, place) => {
    const { id, scopes, requested = [] } = asObject(token);
    const name = `${source}: token ${place + 1}`;
    if (typeof id !== 'string') throw new InputError(`${name} must have an id, a text`);
    return {
      id: redact(id),
      scopes: readMembers(scopes, `${name}: scopes`).map(String),
      requested: readMembers(requested, `${name}: requested`).map(String),
    };
  });
}

/**
 * Does what depends on input alone, so that whatever is refused is the fault of that.
 *
 * @throws {InputError}
 */
export async function asInput<Result>(read: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await read();
  } catch (error) {
    const isFault =
      error instanceof UsageError || error instanceof ScopeError || isTokenError(error);
    throw isFault ? new InputError(error.message) : error;
  }
}

async function catalogOf(paths: readonly string[]): Promise<ScopeCatalog> {
  const files = paths.map((path) => ({ path, list: listIn(path) }));
  for (const { path, list } of files) checkList(path, list);
  const documents = files.filter(({ list }) => list === undefined).map(({ path }) => path);
  const fromDocuments = await catalogFromOpenApi(documents, { rootName: ROOT_NAME });
  return ScopeCatalog.from([
    ...(files.flatMap(({ list }) => list ?? []) as string[]),
    ...fromDocuments,
  ]);
}

/** Of several files a fault names the one that has it. */
function checkList(path: string, list: readonly unknown[] | undefined): void {
  try {
    ScopeCatalog.from((list ?? []) as string[]);
  } catch (error) {
    throw error instanceof ScopeError ? new InputError(`${path}: ${error.message}`) : error;
  }
}

/** The files of what was given; a folder without any is a mistake. */
function givenFiles(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    const files = filesOf(path);
    if (files.length > 0) return files;
    throw new InputError(`${quote(path)} is a folder without a .json, .yaml or .yml file`);
  });
}

function readMembers(members: unknown, source: string): Scope[] {
  if (!Array.isArray(members)) {
    throw new InputError(
      `${source} must be a JSON array of scopes, as ["GET:shop.example/orders"]`,
    );
  }
  const readings = members.map((member: unknown) => safeParseScope(member));
  const faults = readings.flatMap((reading, place) =>
    reading.ok ? [] : [`scope ${place + 1}: ${reading.message}`],
  );
  if (faults.length === 0) return readings.flatMap((reading) => (reading.ok ? reading.scope : []));
  const rest = faults.length - MAX_TOLD;
  const told = faults.slice(0, MAX_TOLD).join('; ');
  throw new InputError(`${source}: ${told}${rest > 0 ? `; and ${rest} more` : ''}`);
}

/** A JSON value, or one scope in a line; no scope holds a space or a `#`. */
function parseStandardInput(text: string): unknown {
  if (/^\s*[[{"]/.test(text)) return parseJson(text, 'standard input');
  const lines = text.split('\n').map((line) => line.replace(/(?:^|\s)#.*/, '').trim());
  return lines.filter((line) => line !== '');
}

/**
 * All of standard input.
 *
 * @throws {InputError} when it is a folder, which Node reads as if it were empty
 */
export async function standardInput(): Promise<string> {
  if (fstatSync(0).isDirectory()) throw new InputError('standard input is a folder');
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** A text from the command line as a message may hold it. */
function quote(text: string): string {
  return `"${text.length > 100 ? `${text.slice(0, 100)}...` : text}"`;
}

/** A folder stands for the files in it. */
function filesOf(path: string): string[] {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) {
    throw new InputError(
      `there is no file ${quote(path)}; a catalog is a JSON array of scopes, an OpenAPI document, or a folder of these`,
    );
  }
  if (!found.isDirectory()) return [resolve(path)];
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
  return parseJson(readFileSync(path, 'utf8'), path);
}

/** Without the parser's words, which repeat the text. */
function parseJson(text: string, source: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${source} is not JSON`);
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
