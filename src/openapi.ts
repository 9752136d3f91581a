import { TokenError } from './errors.ts';
import { ScopeCatalog } from './scope/catalog.ts';
import { isMethodName, isSegment, readHost, ScopeError, safeParseScope } from './scope/grammar.ts';
import { readRequest } from './scope/request.ts';

/** What the documents leave open. */
export interface OpenApiOptions {
  /**
   * The host names of servers that name none: a relative server URL, which keeps its base path, or
   * no server at all.
   *
   * @default none: such a server is an error
   */
  readonly hosts?: readonly string[] | undefined;
  /**
   * The one segment that stands for the root endpoint `/`, whose path would be empty. Give the
   * guard the same one, and choose one that no path of the documents begins with.
   *
   * @default none: such a path is an error
   */
  readonly rootName?: string | undefined;
}

/**
 * Makes a catalog of what OpenAPI documents describe, one or an array of them: for every operation
 * and server the method, the host and the path up to the first `{template}`, base path included.
 *
 * Takes parsed documents (Swagger 2.0, OpenAPI 3.0 to 3.2) and reads no files; of references it
 * follows those of a path item within its document. Does not check that a document is valid beyond
 * what it reads. Operations that fall together are one entry; ports and schemes are dropped;
 * variables of a server take every value of their `enum`, else the default. `x-scope` on an
 * operation replaces the path, base path included: `"x-scope": "orders/export"`.
 *
 * @throws {ScopeError} `catalog_not_concrete`, naming what cannot become an entry in any of the
 * documents and what would be right
 * @throws {TokenError} `invalid_options`
 * @example
 * const catalog = await catalogFromOpenApi({
 *   openapi: '3.1.0',
 *   servers: [{ url: 'https://shop.example/v1' }],
 *   paths: { '/orders/{id}': { get: {}, delete: {} } },
 * });
 * catalog.toArray(); // ['DELETE:shop.example/v1/orders', 'GET:shop.example/v1/orders']
 */
export async function catalogFromOpenApi(
  documents: unknown,
  options: OpenApiOptions = {},
): Promise<ScopeCatalog> {
  const settings = readOptions(options);
  const problems = new Problems();
  const scopes = new Set<string>();
  const list: readonly unknown[] = Array.isArray(documents) ? documents : [documents];
  for (const [index, document] of list.entries()) {
    const walk = new DocumentWalk(document, index, settings, problems);
    for (const scope of walk.scopes()) scopes.add(scope);
  }
  problems.throwIfAny();
  return ScopeCatalog.from(scopes);
}

const MAX_SERVER_URLS = 64;
const MAX_SHOWN_PROBLEMS = 10;
const MAX_SHOWN_CHARACTERS = 100;
const METHODS = new Set(['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']);
const ROOT_NAME_HINT = 'give the option rootName, one segment, as rootName: "root"';
const X_SCOPE_HINT = 'give the operation an x-scope, as "x-scope": "orders/export"';

interface Settings {
  readonly hosts: readonly string[];
  readonly rootName: string | undefined;
}

/** Where operations are served. The base path is `''`, or begins with a slash and ends without. */
interface Server {
  readonly host: string;
  readonly base: string;
}

type Members = Readonly<Record<string, unknown>>;

type Version = '2.0' | '3.0' | '3.1' | '3.2';

/** What is wrong in all documents, so that it can be put right in one go. Each is told once. */
class Problems {
  readonly #texts = new Set<string>();

  add(place: string, text: string): void {
    this.#texts.add(`${place}: ${text}`);
  }

  throwIfAny(): void {
    if (this.#texts.size === 0) return;
    const shown = [...this.#texts].slice(0, MAX_SHOWN_PROBLEMS);
    const rest = this.#texts.size - shown.length;
    throw new ScopeError(
      'catalog_not_concrete',
      `no catalog can be made of the OpenAPI documents: ${shown.join('; ')}${rest > 0 ? `; and ${rest} more` : ''}`,
    );
  }
}

/** One parsed document, from its paths down to scopes. It does not matter who parsed it. */
class DocumentWalk {
  readonly #document: unknown;
  readonly #version: Version | undefined;
  readonly #place: string;
  readonly #settings: Settings;
  readonly #problems: Problems;
  #ownServers: readonly Server[] | undefined;

  constructor(document: unknown, index: number, settings: Settings, problems: Problems) {
    const title = member(member(document, 'info'), 'title');
    this.#document = document;
    this.#version = versionOf(document);
    this.#place = `documents[${index}]${typeof title === 'string' ? ` (${show(title)})` : ''}`;
    this.#settings = settings;
    this.#problems = problems;
  }

  /** The scopes of the document as texts, with duplicates. */
  *scopes(): Generator<string> {
    for (const [path, value] of this.#paths()) {
      const item = this.#pathItem(path, value);
      for (const [method, operation] of this.#operations(path, item)) {
        const place = `${this.#place}, ${method} ${show(path)}`;
        const servers = this.#serversOf(path, item, place, operation);
        yield* this.#scopesOf(path, method, place, operation, servers);
      }
    }
  }

  #paths(): (readonly [string, unknown])[] {
    if (this.#version === undefined) {
      this.#problems.add(
        this.#place,
        'is not a parsed OpenAPI document; it must have "openapi": "3.0", "3.1" or "3.2", or "swagger": "2.0"',
      );
      return [];
    }
    const paths = member(this.#document, 'paths');
    if (isObject(paths)) return Object.entries(paths).filter(([path]) => !path.startsWith('x-'));
    const isOptional = this.#version === '3.1' || this.#version === '3.2';
    if (paths !== undefined || !isOptional) {
      this.#problems.add(this.#place, '"paths" must be an object');
    }
    return [];
  }

  /** The members of a path item, those of the items that it refers to included; its own win. */
  #pathItem(path: string, value: unknown): ReadonlyMap<string, unknown> {
    const members = new Map<string, unknown>();
    const followed = new Set<unknown>();
    let item = value;
    while (isObject(item)) {
      for (const [name, own] of Object.entries(item)) {
        if (!members.has(name)) members.set(name, own);
      }
      const ref = member(item, '$ref');
      if (ref === undefined) return members;
      if (followed.has(ref)) return this.#noItem(path, 'its $ref leads back to itself');
      followed.add(ref);
      item = this.#referred(ref);
      if (item === undefined) return this.#noItem(path, unknownReference(ref));
    }
    return this.#noItem(path, 'a path item must be an object');
  }

  #noItem(path: string, problem: string): ReadonlyMap<string, unknown> {
    this.#problems.add(`${this.#place}, path ${show(path)}`, problem);
    return new Map();
  }

  /** What a local reference to a path item points at; `undefined` when it is none or nothing. */
  #referred(ref: unknown): unknown {
    if (typeof ref !== 'string') return undefined;
    const pointer = /^#\/(paths|components\/pathItems)\/([^/]*)$/.exec(ref);
    if (pointer === null) return undefined;
    const [, section = '', key = ''] = pointer;
    const name = decode(key)?.replaceAll('~1', '/').replaceAll('~0', '~');
    const items = section.split('/').reduce<unknown>(member, this.#document);
    return name === undefined ? undefined : member(items, name);
  }

  *#operations(
    path: string,
    item: ReadonlyMap<string, unknown>,
  ): Generator<readonly [string, Members]> {
    for (const [method, operation] of this.#operationMembers(item)) {
      if (!isMethodName(method)) {
        const place = `${this.#place}, path ${show(path)}`;
        const shown = show(method);
        this.#problems.add(place, `the method ${shown} must be a name in upper case, as "GET"`);
      } else if (isObject(operation)) {
        yield [method, operation];
      } else {
        const place = `${this.#place}, ${method} ${show(path)}`;
        this.#problems.add(place, 'an operation must be an object');
      }
    }
  }

  *#operationMembers(item: ReadonlyMap<string, unknown>): Generator<readonly [string, unknown]> {
    const hasMore = this.#version === '3.2';
    for (const [name, value] of item) {
      if (METHODS.has(name) || (hasMore && name === 'query')) yield [name.toUpperCase(), value];
      if (hasMore && name === 'additionalOperations' && isObject(value)) {
        yield* Object.entries(value);
      }
    }
  }

  #serversOf(
    path: string,
    item: ReadonlyMap<string, unknown>,
    place: string,
    operation: Members,
  ): readonly Server[] {
    if (this.#version !== '2.0') {
      const own = member(operation, 'servers');
      if (isGiven(own)) return this.#readServers(place, own);
      const shared = item.get('servers');
      if (isGiven(shared)) return this.#readServers(`${this.#place}, path ${show(path)}`, shared);
    }
    this.#ownServers ??= this.#documentServers();
    return this.#ownServers;
  }

  #documentServers(): readonly Server[] {
    if (this.#version === '2.0') return this.#swaggerServers();
    const servers = member(this.#document, 'servers');
    if (isGiven(servers)) return this.#readServers(this.#place, servers);
    return this.#hostless(`${this.#place}, servers`, '');
  }

  #swaggerServers(): readonly Server[] {
    const host = member(this.#document, 'host');
    const base = member(this.#document, 'basePath') ?? '';
    if (typeof base !== 'string' || !/^(?:\/[^{}]*)?$/.test(base)) {
      this.#problems.add(
        `${this.#place}, basePath`,
        'must be a text that begins with "/" and holds no template',
      );
      return [];
    }
    if (host === undefined) return this.#hostless(`${this.#place}, host`, base);
    const authority = typeof host === 'string' ? host : '';
    return this.#hosted(`${this.#place}, host ${showUrl(authority)}`, authority, base);
  }

  #readServers(place: string, servers: unknown): readonly Server[] {
    if (!Array.isArray(servers)) {
      this.#problems.add(`${place}, servers`, 'must be an array of servers');
      return [];
    }
    return servers.flatMap((server: unknown, index) => {
      const url = member(server, 'url');
      const name = `${place}, servers[${index}]`;
      if (typeof url === 'string') {
        const variables = member(server, 'variables');
        return this.#expandUrl(name, url, variables).flatMap((one) => this.#readUrl(name, one));
      }
      this.#problems.add(name, 'must have a "url", as "https://shop.example/v1"');
      return [];
    });
  }

  /** Every URL that a server URL with variables stands for. */
  #expandUrl(place: string, url: string, variables: unknown): readonly string[] {
    const values = new Map<string, readonly string[]>();
    for (const [, name = ''] of url.matchAll(/\{([^{}]*)\}/g)) {
      const known = valuesOf(member(variables, name));
      if (known === undefined) {
        this.#problems.add(
          place,
          `the variable ${show(name)} must have a "default" or an "enum" of texts without braces`,
        );
        return [];
      }
      values.set(name, known);
    }
    const count = [...values.values()].reduce((product, { length }) => product * length, 1);
    if (count > MAX_SERVER_URLS) {
      this.#problems.add(
        place,
        `its variables stand for ${count} URLs; at most ${MAX_SERVER_URLS} are expanded`,
      );
      return [];
    }
    return [...values].reduce<readonly string[]>(
      (urls, [name, known]) =>
        urls.flatMap((one) => known.map((value) => one.replaceAll(`{${name}}`, () => value))),
      [url],
    );
  }

  // By hand: the URL parser would decode the host, turn it into an address and merge dot segments.
  #readUrl(place: string, url: string): readonly Server[] {
    if (/[?#{}\\]/.test(url)) {
      this.#problems.add(
        place,
        `${showUrl(url)} must hold no query, no fragment, no backslash and no lone brace`,
      );
      return [];
    }
    const absolute = /^(?:[a-z][a-z0-9+.-]*:)?\/\/([^/]*)(.*)$/is.exec(url);
    if (absolute !== null) {
      const [, authority = '', base = ''] = absolute;
      return this.#hosted(`${place} ${showUrl(url)}`, authority, base);
    }
    if (/^(?:\/|$)/.test(url)) return this.#hostless(`${place} ${showUrl(url)}`, url);
    this.#problems.add(
      place,
      `${showUrl(url)} must be absolute, as "https://shop.example/v1", or begin with "/"`,
    );
    return [];
  }

  #hosted(place: string, authority: string, base: string): readonly Server[] {
    const name = authority.replace(/:[0-9]*$/, '');
    const host = readHost(name);
    if (host !== undefined) return [{ host, base: withoutTrailingSlash(base) }];
    this.#problems.add(place, hostProblem(name));
    return [];
  }

  #hostless(place: string, base: string): readonly Server[] {
    const { hosts } = this.#settings;
    if (hosts.length === 0) {
      this.#problems.add(
        place,
        'names no host; write an absolute URL, or give the option hosts, as hosts: ["shop.example"]',
      );
    }
    return hosts.map((host) => ({ host, base: withoutTrailingSlash(base) }));
  }

  *#scopesOf(
    path: string,
    method: string,
    place: string,
    operation: Members,
    servers: readonly Server[],
  ): Generator<string> {
    const replaced = member(operation, 'x-scope');
    for (const { host, base } of servers) {
      const reading =
        replaced === undefined
          ? derivePath(base, path, this.#settings.rootName)
          : readXScope(replaced);
      if (reading.ok) yield `${method}:${host}/${reading.path}`;
      else this.#problems.add(place, reading.problem);
    }
  }
}

type PathReading =
  | { readonly ok: true; readonly path: string }
  | { readonly ok: false; readonly problem: string };

/** The path of a scope: the static segments of base path and path before the first template. */
function derivePath(base: string, path: string, rootName: string | undefined): PathReading {
  if (path !== '' && !path.startsWith('/')) return refuse('the path must begin with "/"');
  // What stands inside the braces is a name: a slash or a question mark there means nothing.
  const full = (base + path).replaceAll(/\{[^{}]*\}/g, '{}');
  if (full.includes('//')) return refuse(`${show(base + path)} holds an empty segment`);
  if (/[?#]/.test(full)) return refuse(`the path holds a query or a fragment; ${X_SCOPE_HINT}`);
  if (/[{}]/.test(full.replaceAll('{}', ''))) return refuse('the path holds a lone brace');
  const target = withoutTrailingSlash(full);
  const segments = target.split('/').slice(1);
  const end = segments.findIndex((segment) => segment.includes('{'));
  if (end === 0) return refuse(`the path starts with a template; ${X_SCOPE_HINT}`);
  if (segments.length === 0) {
    return rootName === undefined
      ? refuse(`the path is the root, and a scope's path is never empty; ${ROOT_NAME_HINT}`)
      : { ok: true, path: rootName };
  }
  return readStatic(segments.slice(0, end === -1 ? undefined : end).join('/'));
}

/** Reads static segments as the guard will read them, so that an entry means what is called. */
function readStatic(segments: string): PathReading {
  const request = readRequest({ method: 'GET', domain: 'shop.example', target: `/${segments}` });
  if (!request.ok) return unscopable(segments, request.reason);
  const { path } = request.request;
  const code = pathProblem(path);
  return code === undefined ? { ok: true, path } : unscopable(segments, code);
}

function readXScope(value: unknown): PathReading {
  if (typeof value !== 'string') {
    return refuse('x-scope must be a text, the path part of a scope, as "orders/export"');
  }
  // The text of a whole scope is also a valid path, and never what is meant by one.
  const code = safeParseScope(value).ok ? 'with method and domain' : pathProblem(value);
  if (code === undefined) return { ok: true, path: value };
  return refuse(
    `the x-scope ${show(value)} (${code}) must be the path part of a scope, as "orders/export"`,
  );
}

/** Why a text is not the path of a concrete scope. */
function pathProblem(path: string): string | undefined {
  const reading = safeParseScope(`GET:shop.example/${path}`);
  if (!reading.ok) return reading.error;
  return reading.scope.path === '*' ? 'wildcard_position' : undefined;
}

function unscopable(segments: string, code: string): PathReading {
  return refuse(`${show(`/${segments}`)} cannot stand in a scope (${code}); ${X_SCOPE_HINT}`);
}

function refuse(problem: string): PathReading {
  return { ok: false, problem };
}

function versionOf(document: unknown): Version | undefined {
  if (member(document, 'swagger') === '2.0') return '2.0';
  const version = member(document, 'openapi');
  if (typeof version !== 'string') return undefined;
  return (['3.0', '3.1', '3.2'] as const).find((known) => `${version}.`.startsWith(`${known}.`));
}

/** The values that a server variable may take; `undefined` when it has none that can be used. */
function valuesOf(variable: unknown): readonly string[] | undefined {
  const choices = member(variable, 'enum');
  const hasChoices = Array.isArray(choices) && choices.length > 0;
  const values: readonly unknown[] = hasChoices ? choices : [member(variable, 'default')];
  const isUsable = (value: unknown): value is string =>
    typeof value === 'string' && !/[{}]/.test(value);
  return values.every(isUsable) ? [...new Set(values)] : undefined;
}

function hostProblem(host: string): string {
  if (host.includes('@')) return 'must hold no user info, as "https://shop.example"';
  if (host.startsWith('[') || /(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$/i.test(host)) {
    return 'must not be at an IP address; a scope needs a host name, as shop.example';
  }
  return 'must have a host name, as shop.example, and write another script in its xn-- form';
}

function unknownReference(ref: unknown): string {
  const shown = typeof ref === 'string' ? ` ${showUrl(ref)}` : '';
  return `its $ref${shown} must point at a path item of the same document, as "#/paths/~1orders" or "#/components/pathItems/orders"`;
}

function readOptions(options: unknown): Settings {
  if (!isObject(options)) throw invalidOptions('the options must be an object');
  const { hosts = [], rootName, ...others } = options;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw invalidOptions(`there is no option ${show(unknown)}; there are hosts and rootName`);
  }
  if (rootName !== undefined && !(typeof rootName === 'string' && isRootName(rootName))) {
    throw invalidOptions('rootName must be one segment of a path, as "root"');
  }
  return { hosts: readHosts(hosts), rootName };
}

function readHosts(hosts: unknown): readonly string[] {
  const read = Array.isArray(hosts)
    ? hosts.map((host: unknown) => (typeof host === 'string' ? readHost(host) : undefined))
    : [undefined];
  const known = read.filter((host) => host !== undefined);
  if (known.length === read.length) return known;
  throw invalidOptions('hosts must be an array of host names without port, as ["shop.example"]');
}

function isRootName(text: string): boolean {
  return isSegment(text) && pathProblem(text) === undefined;
}

function invalidOptions(message: string): TokenError {
  return new TokenError('invalid_options', message);
}

/** Whether servers are given; an empty array leaves the word to the level above. */
function isGiven(servers: unknown): boolean {
  return servers !== undefined && !(Array.isArray(servers) && servers.length === 0);
}

function withoutTrailingSlash(path: string): string {
  return path.endsWith('/') ? path.slice(0, -1) : path;
}

/** An own member of an object, whatever its name; `undefined` of anything else. */
function member(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** A text of a document as a message may hold it: quoted, printable ASCII, of bounded length. */
function show(text: string): string {
  const isLong = text.length > MAX_SHOWN_CHARACTERS;
  const shown = isLong ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}...` : text;
  return `"${shown.replaceAll(/[^ -~]/g, '?')}"`;
}

/** A URL as a message may hold it: without what stands before an `@`, which may be a password. */
function showUrl(url: string): string {
  return show(url.replace(/^([^@/]*\/\/)?.*@/s, '$1...@'));
}
