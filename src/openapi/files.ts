import { invalidOptions } from '../errors.ts';
import { getOrMake } from '../scope/collections.ts';
import { withDeadline } from '../time/deadline.ts';
import { failed, type Result } from './problems.ts';

/** Bytes of one file of an OpenAPI document. @bound */
export const MAX_DOCUMENT_BYTES = 67_108_864;

/** Milliseconds for reading one file of an OpenAPI document. @bound */
export const DOCUMENT_DEADLINE_MS = 10_000;

// Node's modules are imported only to read files, so that parsed documents work in a browser.

const UNREADABLE = 'cannot be read; it must be a file that is there, of at most 64 MiB';
/** The same text for missing files and forbidden ones: a document must not find out which exist. */
const UNREFERABLE =
  'cannot be read; it must be a file in the folder of the document, or in that of the option root';
const NOT_A_FILE =
  'is not a file here, and nothing is fetched from the network; keep a copy as a file';
const UNPARSABLE = 'is neither JSON nor YAML in UTF-8';

/** A parsed document, or a file that one refers to. Only a file has a URL. */
export interface Source {
  readonly root: unknown;
  readonly url: URL | undefined;
}

/** The files of one call. Each is read once, however many documents refer to it. */
export class Files {
  readonly #root: string | undefined;
  readonly #sources = new Map<string, Promise<Result<Source>>>();

  /** @param root the folder that references may not leave; by default that of the document */
  constructor(root: string | undefined) {
    this.#root = root;
  }

  read(url: URL): Promise<Result<Source>> {
    return this.#readOnce(url, '', loadFile);
  }

  /** Reads a file that a document refers to, unless it is outside of the root. */
  readReference(text: string, base: URL, document: URL | undefined): Promise<Result<Source>> {
    const url = parseUrl(text, base);
    if (url === undefined || document === undefined) return Promise.resolve(failed(UNREFERABLE));
    const root = this.#root ?? new URL('.', document);
    return this.#readOnce(url, ` ${root}`, async (file) =>
      (await isBelow(file, root)) ? this.read(file) : failed(UNREFERABLE),
    );
  }

  #readOnce(
    url: URL,
    suffix: string,
    read: (file: URL) => Promise<Result<Source>>,
  ): Promise<Result<Source>> {
    const file = new URL(url);
    file.hash = '';
    file.search = '';
    // The host of a file: URL is a computer of the network, with a share on Windows.
    if (file.protocol !== 'file:' || file.host !== '') return Promise.resolve(failed(NOT_A_FILE));
    return getOrMake(this.#sources, file.href + suffix, () => read(file));
  }
}

/** Reads a document in any of the forms that callers may give. */
export async function readDocument(document: unknown, files: Files): Promise<Result<Source>> {
  if (document instanceof URL) return files.read(document);
  if (typeof document !== 'string') return { ok: true, value: { root: document, url: undefined } };
  if (isText(document)) return toSource(document, undefined);
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(document)
    ? parseUrl(document)
    : (await import('node:url')).pathToFileURL(document);
  const source = url === undefined ? failed(UNREADABLE) : await files.read(url);
  if (source.ok || source.problem !== UNREADABLE) return source;
  return failed(`${UNREADABLE}, or a text that begins with "{" or has several lines`);
}

/** The file name that the caller gave. Other URLs may hold secrets. */
export function fileNameOf(document: unknown): string | undefined {
  if (document instanceof URL) {
    return document.protocol === 'file:' ? document.pathname.split('/').at(-1) : undefined;
  }
  const isPath = typeof document === 'string' && !isText(document) && !document.includes('://');
  return isPath ? document : undefined;
}

/** The real path of the option `root`. */
export async function resolveRoot(root: string | URL | undefined): Promise<string | undefined> {
  if (root === undefined) return undefined;
  try {
    const { realpath, stat } = await import('node:fs/promises');
    if ((await stat(root)).isDirectory()) return await realpath(root);
  } catch {
    // Refused below, like a root that is not a folder.
  }
  throw invalidOptions('root must be a folder that is there');
}

function isText(document: string): boolean {
  return document.includes('\n') || document.trimStart().startsWith('{');
}

function parseUrl(text: string, base?: URL): URL | undefined {
  return URL.canParse(text, base?.href) ? new URL(text, base) : undefined;
}

async function toSource(text: string, url: URL | undefined): Promise<Result<Source>> {
  const root = await parseText(text);
  return root === undefined ? failed(UNPARSABLE) : { ok: true, value: { root, url } };
}

/** Whether a file exists inside a folder, once all symbolic links are followed. */
async function isBelow(file: URL, folder: string | URL): Promise<boolean> {
  try {
    const { realpath } = await import('node:fs/promises');
    const { isAbsolute, relative, sep } = await import('node:path');
    const path = relative(await realpath(folder), await realpath(file));
    // A name may begin with two dots. On Windows, the path to another drive is absolute.
    return path !== '..' && !path.startsWith(`..${sep}`) && !isAbsolute(path);
  } catch {
    return false;
  }
}

async function loadFile(url: URL): Promise<Result<Source>> {
  const bytes = await withDeadline(readRegularFile(url), DOCUMENT_DEADLINE_MS).catch(
    () => undefined,
  );
  if (bytes === undefined) return failed(UNREADABLE);
  const text = decodeUtf8(bytes);
  return text === undefined ? failed(UNPARSABLE) : toSource(text, url);
}

/** `undefined` when it is not a regular file, or too large. */
async function readRegularFile(url: URL): Promise<Uint8Array | undefined> {
  const { constants, open, stat } = await import('node:fs/promises');
  // Before it is opened: a pipe or a device might never end, and opening some has effects.
  if (!(await stat(url)).isFile()) return undefined;
  const handle = await open(url, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = await handle.stat();
    if (!stats.isFile() || stats.size > MAX_DOCUMENT_BYTES) return undefined;
    // No more than the stated size: files of /proc state 0, and some block their reader forever.
    const bytes = new Uint8Array(stats.size);
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await handle.read(bytes, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return bytes.subarray(0, length);
  } finally {
    await handle.close();
  }
}

function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

const PARSER = '@apidevtools/swagger-parser';

/** Parses JSON or YAML; `undefined` when it is neither. JSON needs no parser package. */
async function parseText(text: string): Promise<unknown> {
  return tryParseJson(text.trimStart()) ?? (await parseYaml(text));
}

function tryParseJson(text: string): unknown {
  if (!/^[{[]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The part of the parser package that is used. */
interface Parser {
  /** The parsed document; also set when `parse` rejects. */
  readonly api: unknown;
  parse(name: string, options: object): Promise<unknown>;
}

/**
 * Parses without resolving references, reading files or fetching URLs. Rejections are ignored: the
 * parser also rejects versions, which are checked later, and fragments, which have no version.
 */
async function parseYaml(text: string): Promise<unknown> {
  const parser = await loadParser();
  const given = { order: 1, canRead: true, read: () => text };
  await parser
    .parse('document.yaml', {
      resolve: { external: false, file: false, http: false, given },
      parse: { json: false, text: false, binary: false },
    })
    .catch(() => undefined);
  return parser.api ?? undefined;
}

async function loadParser(): Promise<Parser> {
  try {
    const { default: SwaggerParser } = await import('@apidevtools/swagger-parser');
    return new SwaggerParser();
  } catch {
    throw invalidOptions(
      `what is not JSON is read as YAML, which needs the package ${PARSER}: npm install ${PARSER}`,
    );
  }
}
