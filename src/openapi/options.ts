import { invalidOptions } from '../errors.ts';
import type { TokenScopes } from '../scope/diff.ts';
import { isSegment, readHost } from '../scope/grammar.ts';
import { isObject } from './json.ts';
import { quote } from './problems.ts';
import { type PathSettings, readScopePath } from './scope-path.ts';

/** Options for reading OpenAPI documents. */
export interface OpenApiOptions {
  /**
   * The size of an entry. `operation`: a single operation. Its path is closed, and each segment
   * with a template becomes `{}`: `GET:shop.example/orders/{}$`. `prefix`: all operations whose paths
   * are equal up to the first template, and everything below: `GET:shop.example/orders`. With
   * `prefix`, a path that starts with a template is an error.
   *
   * @default 'operation'
   */
  readonly granularity?: 'operation' | 'prefix' | undefined;
  /**
   * The host names for servers that name none: a relative server URL, whose base path is used, no
   * server at all, or a placeholder such as `https://{tenant}.example`, unless an `enum` lists what it
   * stands for.
   *
   * @default none: a variable of a server stands for its default, and a server without a host is an error
   */
  readonly hosts?: readonly string[] | undefined;
  /**
   * One segment that stands for the root endpoint `/`, so that its entry is `GET:shop.example/root$`,
   * or `GET:shop.example/root` with `prefix`. Give the same name to the guard, and choose one that no
   * path of the documents begins with.
   *
   * @default none: the entry is `GET:shop.example/$`; with `prefix`, the root is an error
   */
  readonly rootName?: string | undefined;
  /**
   * The folder that references may not leave, as a path or a `file:` URL. Symbolic links are followed
   * first. Files outside look like missing ones. The documents themselves may be anywhere.
   *
   * @default the folder of the document that refers to other files
   */
  readonly root?: string | URL | undefined;
  /**
   * Whether to leave out operations that cannot become an entry. {@link OpenApiReading.skipped} lists
   * them. A document that cannot be read at all is always an error.
   *
   * @default false: one such operation is an error
   */
  readonly skip?: boolean | undefined;
}

/** The options, checked. */
export interface Settings extends PathSettings {
  readonly hosts: readonly string[];
  readonly skip: boolean;
  readonly root: string | URL | undefined;
}

export function readCatalogOptions(options: unknown): Settings {
  const names = ['granularity', 'hosts', 'rootName', 'root', 'skip'];
  const known = 'there are granularity, hosts, rootName, root and skip';
  const checked = checkNames(options, names, known);
  const { granularity = 'operation', hosts = [], rootName, root, skip = false } = checked;
  if (granularity !== 'operation' && granularity !== 'prefix') {
    throw invalidOptions('granularity must be "operation" or "prefix"');
  }
  const isPrefix = granularity === 'prefix';
  if (rootName !== undefined && !(typeof rootName === 'string' && isRootName(rootName, isPrefix))) {
    throw invalidOptions(
      'rootName must be one segment of a path that does not end in "$", as "root"',
    );
  }
  if (root !== undefined && typeof root !== 'string' && !(root instanceof URL)) {
    throw invalidOptions('root must be the path of a folder, or its file: URL');
  }
  if (typeof skip !== 'boolean') throw invalidOptions('skip must be true or false');
  return { isPrefix, hosts: readHosts(hosts), rootName, root, skip };
}

/** Reads the option `tokens` of `catalogDiff`. Each token is checked when it is iterated. */
export function readTokens(options: unknown): Iterable<TokenScopes> | undefined {
  const { tokens } = checkNames(options, ['tokens'], 'there is tokens');
  if (tokens === undefined) return undefined;
  if (typeof tokens === 'object' && tokens !== null && Symbol.iterator in tokens) {
    return checkedTokens(tokens as Iterable<unknown>);
  }
  throw invalidOptions('tokens must be a list of tokens');
}

function checkNames(options: unknown, names: readonly string[], known: string) {
  if (!isObject(options)) throw invalidOptions('the options must be an object');
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown === undefined) return options;
  throw invalidOptions(`there is no option ${quote(unknown)}; ${known}`);
}

function readHosts(hosts: unknown): readonly string[] {
  const read = Array.isArray(hosts)
    ? hosts.map((host: unknown) => (typeof host === 'string' ? readHost(host) : undefined))
    : [undefined];
  const known = read.filter((host) => host !== undefined);
  if (known.length === read.length) return known;
  throw invalidOptions('hosts must be an array of host names without port, as ["shop.example"]');
}

/** A trailing `$` is refused: in an open path it would be read as the end mark. */
function isRootName(text: string, isPrefix: boolean): boolean {
  return isSegment(text) && !text.endsWith('$') && readScopePath(isPrefix ? text : `${text}$`).ok;
}

function* checkedTokens(tokens: Iterable<unknown>): Generator<TokenScopes> {
  for (const token of tokens) {
    const { id, scopes, requested } = isObject(token) ? token : {};
    if (typeof id !== 'string' || !Array.isArray(scopes) || !Array.isArray(requested)) {
      throw invalidOptions('tokens must be a list of tokens, each with id, scopes and requested');
    }
    yield { id, scopes, requested };
  }
}
