import { TokenError } from './errors.ts';
import { methodCovers } from './scope/algebra.ts';
import { MAX_SCOPES, ScopeCatalog } from './scope/catalog.ts';
import {
  isMethodName,
  isSegment,
  parseScope,
  readHost,
  type Scope,
  ScopeError,
  safeParseScope,
} from './scope/grammar.ts';
import { meet, type ScopeDiff, ScopeSet } from './scope/index.ts';
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

/** An operation of a document. */
export interface OpenApiOperation {
  /** The place of its document in the list that was given, from 0. */
  readonly document: number;
  /** In upper case. */
  readonly method: string;
  /** As the document writes it: `/orders/{id}`. */
  readonly path: string;
  /** As the document writes it, where it does. */
  readonly operationId?: string;
  /** As the document says; else false. */
  readonly deprecated: boolean;
}

/** An entry of the catalog, and the operations that it was made of. */
export interface OpenApiEntry {
  /** In canonical spelling. */
  readonly scope: string;
  /** In the order of the documents; at least one. */
  readonly operations: readonly OpenApiOperation[];
}

/** What {@link readOpenApi} finds. All lists are in canonical order of the scopes. */
export interface OpenApiReading {
  /** What {@link catalogFromOpenApi} makes of the same documents. */
  readonly catalog: ScopeCatalog;
  /** Every entry of the catalog. */
  readonly entries: readonly OpenApiEntry[];
  /** The scopes all of whose operations are deprecated. */
  readonly deprecated: readonly string[];
  /** The entries that stand for several paths, which can only be granted together. */
  readonly merged: readonly OpenApiEntry[];
}

/** The part of a token that {@link catalogDiff} looks at; the tokens of the service have it. */
export interface TokenScopes {
  /** What its changes are told by. */
  readonly id: string;
  /** What it holds. */
  readonly scopes: readonly string[];
  /** What was asked for when it was issued or last changed. */
  readonly requested: readonly string[];
}

/** What a change of the catalog means for one token. Both lists are in canonical order. */
export interface TokenChange {
  /** Which token. */
  readonly id: string;
  /** The scopes it holds that an entry covered before, and none does any more. */
  readonly lost: readonly string[];
  /** The scopes it would get beyond those it holds, were it issued again as it was requested. */
  readonly gained: readonly string[];
}

/** What {@link catalogDiff} finds. */
export interface CatalogDiff extends ScopeDiff {
  /** The tokens that lose or gain something, in the order given. */
  readonly tokens: readonly TokenChange[];
  /** Whether a token loses something; where no tokens are given, whether an entry vanishes. */
  readonly isBreaking: boolean;
}

/**
 * Makes a catalog of what OpenAPI documents describe, one or an array of them: for every operation
 * and server the method, the host and the path up to the first `{template}`, base path included.
 *
 * A document (Swagger 2.0, OpenAPI 3.0 to 3.2) is a parsed object, a text in JSON or YAML, or a
 * file: its path, or a `file:` URL. A string that begins with `{` or has several lines is a text,
 * any other is a path. YAML needs the package `@apidevtools/swagger-parser`. Nothing is fetched from
 * the network. References of paths, operations and servers are followed, from file to file where
 * the document is one; those of schemas are not looked at. Does not check that a document is valid
 * beyond what it reads.
 *
 * Operations that fall together are one entry ({@link readOpenApi} tells which do); ports and
 * schemes are dropped; variables of a server take every value of their `enum`, else the default.
 * `x-scope` on an operation replaces the path, base path included: `"x-scope": "orders/export"`.
 *
 * @throws {ScopeError} `catalog_not_concrete`, naming what cannot become an entry in any of the
 * documents and what would be right
 * @throws {TokenError} `invalid_options`; also when there is YAML and nothing to read it with
 * @example
 * const catalog = await catalogFromOpenApi({
 *   openapi: '3.1.0',
 *   servers: [{ url: 'https://shop.example/v1' }],
 *   paths: { '/orders/{id}': { get: {}, delete: {} } },
 * });
 * catalog.toArray(); // ['DELETE:shop.example/v1/orders', 'GET:shop.example/v1/orders']
 * await catalogFromOpenApi(['openapi.yaml', new URL('billing.json', import.meta.url)]);
 */
export async function catalogFromOpenApi(
  documents: unknown,
  options: OpenApiOptions = {},
): Promise<ScopeCatalog> {
  return (await readOpenApi(documents, options)).catalog;
}

/**
 * Makes a catalog as {@link catalogFromOpenApi} does, and tells which operations each entry was made
 * of, which entries are deprecated, and which stand for several paths: those cannot be granted apart
 * unless an `x-scope` sets them apart.
 *
 * @throws {ScopeError} `catalog_not_concrete`
 * @throws {TokenError} `invalid_options`
 * @example
 * const reading = await readOpenApi({
 *   openapi: '3.1.0',
 *   servers: [{ url: 'https://shop.example' }],
 *   paths: { '/orders': { get: {} }, '/orders/{id}': { get: {}, put: { deprecated: true } } },
 * });
 * reading.deprecated; // ['PUT:shop.example/orders']
 * reading.merged.map(({ scope }) => scope); // ['GET:shop.example/orders']
 */
export async function readOpenApi(
  documents: unknown,
  options: OpenApiOptions = {},
): Promise<OpenApiReading> {
  const settings = readOptions(options);
  const problems = new Problems();
  const files = new Files();
  const found = new Operations();
  const list: readonly unknown[] = Array.isArray(documents) ? documents : [documents];
  for (const [index, document] of list.entries()) {
    const reading = await readDocument(document, files);
    const place = placeOf(index, document, reading);
    if (reading.ok) {
      const walk = new DocumentWalk(reading.source, index, { place, settings, problems, files });
      for await (const [scope, operation] of walk.operations()) found.add(scope, operation);
    } else {
      problems.add(place, reading.problem);
    }
  }
  problems.throwIfAny();
  return found.toReading();
}

/**
 * Tells what a new catalog changes, for a gate in CI: which entries appear and vanish and, where
 * tokens are given, who gains and loses what.
 *
 * An entry that another covers neither appears nor vanishes, since nobody can do more or less with
 * it. Tokens are snapshots: none gets what it gains by itself, only when it is issued again or
 * modified, and what it loses still stands in it. A token gains nothing where one of the scopes that
 * it was requested with meets nothing any more, or where it would get too many: `issue` refuses it
 * whole then. Takes near linear time.
 *
 * @throws {ScopeError} `catalog_not_concrete` when an entry is not concrete; the code of a scope of a
 * token that is none
 * @throws {TokenError} `invalid_options`
 * @example
 * const diff = catalogDiff(['GET:shop.example/orders'], ['GET:shop.example/bills'], {
 *   tokens: [{ id: '7', scopes: ['GET:shop.example/orders'], requested: ['GET:shop.example/*'] }],
 * });
 * diff.removed; // ['GET:shop.example/orders']
 * diff.tokens; // [{ id: '7', lost: ['GET:shop.example/orders'], gained: ['GET:shop.example/bills'] }]
 * if (diff.isBreaking) process.exitCode = 1;
 */
export function catalogDiff(
  before: Iterable<Scope | string>,
  after: Iterable<Scope | string>,
  options: { readonly tokens?: Iterable<TokenScopes> | undefined } = {},
): CatalogDiff {
  const given = readTokens(options);
  const known = ScopeSet.from(ScopeCatalog.from(before));
  const next = ScopeSet.from(ScopeCatalog.from(after));
  const removed = next.missing(known);
  const judge = new TokenJudge(known, next);
  const tokens: TokenChange[] = [];
  for (const token of given ?? []) {
    const change = judge.changeOf(readToken(token));
    if (change.lost.length > 0 || change.gained.length > 0) tokens.push(change);
  }
  const isBreaking =
    given === undefined ? removed.length > 0 : tokens.some(({ lost }) => lost.length > 0);
  return { added: known.missing(next), removed, tokens, isBreaking };
}

const MAX_SERVER_URLS = 64;
const MAX_REFERENCES = 32;
const MAX_SHOWN_PROBLEMS = 10;
const MAX_SHOWN_CHARACTERS = 100;
const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];
const ROOT_NAME_HINT = 'give the option rootName, one segment, as rootName: "root"';
const X_SCOPE_HINT = 'give the operation an x-scope, as "x-scope": "orders/export"';
const UNREADABLE = 'cannot be read; it must be a file that is there';
const NOT_A_FILE =
  'is not a file here, and nothing is fetched from the network; keep a copy as a file';
const UNPARSABLE = 'is neither JSON nor YAML in UTF-8';
const PARSER = '@apidevtools/swagger-parser';

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

/** A document, or a file that one refers to. What was not read from a file is nowhere. */
interface Source {
  readonly root: unknown;
  readonly url: URL | undefined;
}

type SourceReading =
  | { readonly ok: true; readonly source: Source }
  | { readonly ok: false; readonly problem: string };

/** A value and the source that it stands in: what the references in it are relative to. */
interface Node {
  readonly value: unknown;
  readonly source: Source;
}

/** A kind of node: what it is called, and what of it is looked at (all of it, when not told). */
interface Kind {
  readonly name: string;
  readonly members?: readonly string[];
}

const PATHS: Kind = { name: '"paths"' };
const PATH_ITEM: Kind = {
  name: 'a path item',
  members: [...METHODS, 'query', 'additionalOperations', 'servers'],
};
const OPERATION: Kind = {
  name: 'an operation',
  members: ['x-scope', 'servers', 'deprecated', 'operationId'],
};
const SERVERS: Kind = { name: 'servers' };
const SERVER: Kind = { name: 'a server', members: ['url', 'variables'] };

type Nodes = ReadonlyMap<string, Node>;

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

/** The operations by the scope that they need. */
class Operations {
  readonly #byScope = new Map<string, Map<string, OpenApiOperation>>();

  /** An operation that several servers give the same scope counts once. */
  add(scope: string, operation: OpenApiOperation): void {
    const name = `${operation.document} ${operation.path}`;
    const known = this.#byScope.get(scope);
    if (known === undefined) this.#byScope.set(scope, new Map([[name, operation]]));
    else known.set(name, operation);
  }

  toReading(): OpenApiReading {
    const scopes = [...this.#byScope.keys()].sort();
    const entries = scopes.map((scope) => {
      const operations = [...(this.#byScope.get(scope)?.values() ?? [])];
      return { scope, operations };
    });
    const isDeprecated = ({ operations }: OpenApiEntry) =>
      operations.every(({ deprecated }) => deprecated);
    const isMerged = ({ operations }: OpenApiEntry) =>
      operations.some(({ path }) => path !== operations[0]?.path);
    return {
      catalog: ScopeCatalog.from(scopes),
      entries,
      deprecated: entries.filter(isDeprecated).map(({ scope }) => scope),
      merged: entries.filter(isMerged),
    };
  }
}

/** The files of one reading. Each is read once, however many documents refer to it. */
class Files {
  readonly #readings = new Map<string, Promise<SourceReading>>();

  /** Reads a file. A host in the URL would be one of the network: on Windows, a share. */
  read(url: URL): Promise<SourceReading> {
    const place = new URL(url);
    place.hash = '';
    place.search = '';
    if (place.protocol !== 'file:' || place.host !== '') return Promise.resolve(refuse(NOT_A_FILE));
    const known = this.#readings.get(place.href);
    if (known !== undefined) return known;
    const reading = readFileAt(place);
    this.#readings.set(place.href, reading);
    return reading;
  }
}

async function readDocument(document: unknown, files: Files): Promise<SourceReading> {
  if (document instanceof URL) return files.read(document);
  if (typeof document !== 'string') return { ok: true, source: { root: document, url: undefined } };
  if (isText(document)) return readText(document, undefined);
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(document)
    ? readUrl(document)
    : (await import('node:url')).pathToFileURL(document);
  const reading = url === undefined ? refuse(UNREADABLE) : await files.read(url);
  if (reading.ok || reading.problem !== UNREADABLE) return reading;
  return refuse(`${UNREADABLE}, or a text that begins with "{" or has several lines`);
}

function isText(document: string): boolean {
  return document.includes('\n') || document.trimStart().startsWith('{');
}

async function readFileAt(url: URL): Promise<SourceReading> {
  const bytes = await readBytes(url);
  if (bytes === undefined) return refuse(UNREADABLE);
  const text = decodeUtf8(bytes);
  return text === undefined ? refuse(UNPARSABLE) : readText(text, url);
}

// Node's modules are loaded for files alone: parsed documents are read in a browser, too.
async function readBytes(url: URL): Promise<Uint8Array | undefined> {
  try {
    const { readFile, stat } = await import('node:fs/promises');
    // A pipe or a device might never end.
    return (await stat(url)).isFile() ? await readFile(url) : undefined;
  } catch {
    return undefined;
  }
}

function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Reads a text: as JSON where it looks like it, since that needs no parser, else as YAML. */
async function readText(text: string, url: URL | undefined): Promise<SourceReading> {
  const root = readJson(text.trimStart()) ?? (await readYaml(text));
  return root === undefined ? refuse(UNPARSABLE) : { ok: true, source: { root, url } };
}

function readJson(text: string): unknown {
  if (!/^[{[]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** As much of the parser as is asked for. */
interface Parser {
  /** What was parsed, also when `parse` was not content with it. */
  readonly api: unknown;
  parse(name: string, options: object): Promise<unknown>;
}

/**
 * Parses a text and does nothing else: the parser resolves no reference and has nothing that could
 * read a file or fetch a URL. What it thinks of the version does not count, which is checked here,
 * and files that are no whole documents have none.
 */
async function readYaml(text: string): Promise<unknown> {
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

function placeOf(index: number, document: unknown, reading: SourceReading): string {
  const title = reading.ok ? member(member(reading.source.root, 'info'), 'title') : undefined;
  const name = typeof title === 'string' ? title : fileNameOf(document);
  return `documents[${index}]${name === undefined ? '' : ` (${show(name)})`}`;
}

/** The name of a file as it was given. Other URLs may hold what is nobody's business. */
function fileNameOf(document: unknown): string | undefined {
  if (document instanceof URL) {
    return document.protocol === 'file:' ? document.pathname.split('/').at(-1) : undefined;
  }
  const isPath = typeof document === 'string' && !isText(document) && !document.includes('://');
  return isPath ? document : undefined;
}

/** What a walk through a document shares with the others. */
interface Surroundings {
  /** How the document is called in messages. */
  readonly place: string;
  readonly settings: Settings;
  readonly problems: Problems;
  readonly files: Files;
}

/** One document, from its paths down to scopes. It does not matter how it was read. */
class DocumentWalk {
  readonly #source: Source;
  readonly #document: unknown;
  readonly #index: number;
  readonly #version: Version | undefined;
  readonly #place: string;
  readonly #settings: Settings;
  readonly #problems: Problems;
  readonly #files: Files;
  #ownServers: Promise<readonly Server[]> | undefined;

  constructor(source: Source, index: number, around: Surroundings) {
    this.#source = source;
    this.#document = source.root;
    this.#index = index;
    this.#version = versionOf(source.root);
    this.#place = around.place;
    this.#settings = around.settings;
    this.#problems = around.problems;
    this.#files = around.files;
  }

  /** Every operation with each scope that its servers give it; the same pair may come twice. */
  async *operations(): AsyncGenerator<readonly [string, OpenApiOperation]> {
    for (const [path, node] of await this.#paths()) {
      const item = await this.#members(node, `${this.#place}, path ${show(path)}`, PATH_ITEM);
      for (const [method, described] of this.#operationNodes(path, item)) {
        const place = `${this.#place}, ${method} ${show(path)}`;
        const operation = await this.#members(described, place, OPERATION);
        const servers = await this.#serversOf(path, item, place, operation);
        const id = operation.get('operationId')?.value;
        const about = {
          document: this.#index,
          method,
          path,
          ...(typeof id === 'string' && { operationId: id }),
          deprecated: operation.get('deprecated')?.value === true,
        };
        for (const scope of this.#scopesOf(about, place, operation, servers)) yield [scope, about];
      }
    }
  }

  async #paths(): Promise<(readonly [string, Node])[]> {
    if (this.#version === undefined) {
      this.#problems.add(
        this.#place,
        'is not an OpenAPI document; it must have "openapi": "3.0", "3.1" or "3.2", or "swagger": "2.0"',
      );
      return [];
    }
    const paths = member(this.#document, 'paths');
    const isOptional = this.#version === '3.1' || this.#version === '3.2';
    if (paths === undefined && isOptional) return [];
    const node = { value: paths, source: this.#source };
    const members = await this.#members(node, this.#place, PATHS);
    return [...members].filter(([path]) => !path.startsWith('x-') && path !== '$ref');
  }

  /** The members of a node, those of the nodes that it refers to included; its own win. */
  async #members(start: Node, place: string, kind: Kind): Promise<Nodes> {
    const members = new Map<string, Node>();
    for (const { value, source } of await this.#chain(start, place, kind)) {
      if (!isObject(value)) {
        this.#problems.add(place, `${kind.name} must be an object`);
        continue;
      }
      // As much as the kind has, not all there is: a node may be referred to from everywhere.
      for (const name of kind.members ?? Object.keys(value)) {
        if (Object.hasOwn(value, name) && !members.has(name)) {
          members.set(name, { value: value[name], source });
        }
      }
      if (Object.hasOwn(value, '<<')) {
        this.#problems.add(place, 'merge keys ("<<") are not read; write the members out');
      }
    }
    return members;
  }

  /** A node, the node that its `$ref` points at, and so on. */
  async #chain(start: Node, place: string, kind: Kind): Promise<readonly Node[]> {
    const chain = [start];
    let node = start;
    for (;;) {
      const ref = member(node.value, '$ref');
      if (ref === undefined) return chain;
      const reading = await this.#referred(ref, node.source, kind);
      if (!reading.ok) {
        this.#problems.add(place, reading.problem);
        return chain;
      }
      node = reading.node;
      if (chain.some(({ value }) => value === node.value)) {
        this.#problems.add(place, 'its $ref leads back to itself');
        return chain;
      }
      if (chain.length > MAX_REFERENCES) {
        this.#problems.add(
          place,
          `its $ref leads on and on; at most ${MAX_REFERENCES} are followed`,
        );
        return chain;
      }
      chain.push(node);
    }
  }

  /** What a reference points at, in the source that it stands in or in another file. */
  async #referred(ref: unknown, source: Source, kind: Kind): Promise<NodeReading> {
    const text = typeof ref === 'string' ? ref : undefined;
    if (text === undefined) return refuse(unknownReference(ref, kind));
    const [file = '', pointer = ''] = splitOnce(text, '#');
    const target = file === '' ? source : await this.#fileOf(file, source, kind);
    if (typeof target === 'string') return refuse(`its $ref ${showUrl(text)} ${target}`);
    // Where a document keeps its path items is known; other files keep them where they like.
    const isAstray =
      kind === PATH_ITEM &&
      versionOf(target.root) !== undefined &&
      !/^\/(?:paths|components\/pathItems)\/[^/]*$/.test(pointer);
    const value = isAstray ? undefined : valueAt(target.root, pointer);
    if (value === undefined) return refuse(unknownReference(ref, kind));
    return { ok: true, node: { value, source: target } };
  }

  /** The file that a reference leads to, or what is wrong with it. */
  async #fileOf(file: string, source: Source, kind: Kind): Promise<Source | string> {
    if (source.url === undefined) {
      return `must point at ${sameDocument(kind)}; a document that is given as a file may refer to others beside it`;
    }
    const url = readUrl(file, source.url);
    const reading = url === undefined ? refuse(UNREADABLE) : await this.#files.read(url);
    return reading.ok ? reading.source : `leads to what ${reading.problem}`;
  }

  *#operationNodes(path: string, item: Nodes): Generator<readonly [string, Node]> {
    for (const [method, node] of this.#operationMembers(item)) {
      if (isMethodName(method)) {
        yield [method, node];
      } else {
        const place = `${this.#place}, path ${show(path)}`;
        const shown = show(method);
        this.#problems.add(place, `the method ${shown} must be a name in upper case, as "GET"`);
      }
    }
  }

  *#operationMembers(item: Nodes): Generator<readonly [string, Node]> {
    const hasMore = this.#version === '3.2';
    for (const method of hasMore ? [...METHODS, 'query'] : METHODS) {
      const node = item.get(method);
      if (node !== undefined) yield [method.toUpperCase(), node];
    }
    const { value, source } = item.get('additionalOperations') ?? {};
    if (!hasMore || source === undefined || !isObject(value)) return;
    for (const [method, operation] of Object.entries(value)) {
      yield [method, { value: operation, source }];
    }
  }

  #serversOf(
    path: string,
    item: Nodes,
    place: string,
    operation: Nodes,
  ): Promise<readonly Server[]> {
    if (this.#version !== '2.0') {
      const own = operation.get('servers');
      if (isGiven(own)) return this.#readServers(place, own);
      const shared = item.get('servers');
      if (isGiven(shared)) return this.#readServers(`${this.#place}, path ${show(path)}`, shared);
    }
    this.#ownServers ??= this.#documentServers();
    return this.#ownServers;
  }

  async #documentServers(): Promise<readonly Server[]> {
    if (this.#version === '2.0') return this.#swaggerServers();
    const servers = { value: member(this.#document, 'servers'), source: this.#source };
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

  async #readServers(place: string, servers: Node): Promise<readonly Server[]> {
    const list = (await this.#chain(servers, `${place}, servers`, SERVERS)).at(-1);
    if (!Array.isArray(list?.value)) {
      this.#problems.add(`${place}, servers`, 'must be an array of servers');
      return [];
    }
    const found: Server[] = [];
    for (const [index, value] of list.value.entries()) {
      const name = `${place}, servers[${index}]`;
      const server = await this.#members({ value, source: list.source }, name, SERVER);
      const url = server.get('url')?.value;
      if (typeof url === 'string') {
        const urls = this.#expandUrl(name, url, server.get('variables')?.value);
        found.push(...urls.flatMap((one) => this.#readUrl(name, one)));
      } else {
        this.#problems.add(name, 'must have a "url", as "https://shop.example/v1"');
      }
    }
    return found;
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
    { method, path }: OpenApiOperation,
    place: string,
    operation: Nodes,
    servers: readonly Server[],
  ): Generator<string> {
    const replaced = operation.get('x-scope')?.value;
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

type NodeReading =
  | { readonly ok: true; readonly node: Node }
  | { readonly ok: false; readonly problem: string };

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

function refuse(problem: string): { readonly ok: false; readonly problem: string } {
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

function unknownReference(ref: unknown, kind: Kind): string {
  if (typeof ref !== 'string') return `its $ref must point at ${sameDocument(kind)}`;
  const isLocal = ref.startsWith('#') || ref === '';
  const target = isLocal ? sameDocument(kind) : `${kind.name} that is in that file`;
  return `its $ref ${showUrl(ref)} must point at ${target}`;
}

function sameDocument(kind: Kind): string {
  const example =
    kind === PATH_ITEM
      ? '"#/paths/~1orders" or "#/components/pathItems/orders"'
      : '"#/components/x-shared/orders"';
  return `${kind.name} of the same document, as ${example}`;
}

/** What a JSON pointer points at, in the form of a URL fragment; `undefined` when it is nothing. */
function valueAt(root: unknown, pointer: string): unknown {
  if (pointer === '') return root;
  const [start, ...keys] = pointer.split('/');
  if (start !== '') return undefined;
  return keys.reduce<unknown>((value, key) => {
    const name = decode(key)?.replaceAll('~1', '/').replaceAll('~0', '~');
    if (name === undefined) return undefined;
    if (Array.isArray(value)) return /^[0-9]+$/.test(name) ? value[Number(name)] : undefined;
    return member(value, name);
  }, root);
}

/** What a change of the catalog means for tokens, which have most of their scopes in common. */
class TokenJudge {
  readonly #before: ScopeSet;
  readonly #after: ScopeSet;
  readonly #entries: EntryIndex;
  readonly #held = new Map<string, { readonly text: string; readonly isLost: boolean }>();
  readonly #outer = new Map<string, readonly string[]>();

  constructor(before: ScopeSet, after: ScopeSet) {
    this.#before = before;
    this.#after = after;
    this.#entries = new EntryIndex(after);
  }

  changeOf({ id, scopes, requested }: TokenScopes): TokenChange {
    const held = new Set<string>();
    const lost = new Set<string>();
    for (const scope of scopes) {
      const { text, isLost } = this.#judge(scope);
      held.add(text);
      if (isLost) lost.add(text);
    }
    const gained = this.#granted(requested).filter((scope) => !this.#isHeld(scope, held));
    return { id, lost: [...lost].sort(), gained: gained.map(String).sort() };
  }

  #judge(scope: string): { readonly text: string; readonly isLost: boolean } {
    const known = this.#held.get(scope);
    if (known !== undefined) return known;
    const parsed = parseScope(scope);
    const isLost = !this.#after.covers(parsed) && this.#before.covers(parsed);
    const judged = { text: parsed.toString(), isLost };
    this.#held.set(scope, judged);
    return judged;
  }

  /**
   * What `expand` would grant; nothing where it would refuse. By itself, since `expand` looks
   * through a whole catalog for each scope, and once more for those that would have been nearest.
   */
  #granted(requested: readonly string[]): readonly Scope[] {
    if (requested.length > MAX_SCOPES) return [];
    const granted = new Map<string, Scope>();
    for (const text of requested) {
      let isMatched = false;
      for (const scope of this.#meets(parseScope(text))) {
        isMatched = true;
        granted.set(scope.toString(), scope);
        if (granted.size > MAX_SCOPES) return [];
      }
      if (!isMatched) return [];
    }
    return [...granted.values()];
  }

  #meets(scope: Scope): Iterable<Scope> {
    const isPattern = scope.method === '*' || scope.domain.startsWith('*') || scope.path === '*';
    return !isPattern && this.#after.covers(scope) ? [scope] : this.#entries.meets(scope);
  }

  /** Looks up all that could cover a scope: those are few, and a token may hold thousands. */
  #isHeld(scope: Scope, held: ReadonlySet<string>): boolean {
    const text = scope.toString();
    if (held.has(text)) return true;
    const known = this.#outer.get(text);
    const outer = known ?? outerScopes(scope);
    if (known === undefined) this.#outer.set(text, outer);
    return outer.some((one) => held.has(one));
  }
}

interface IndexItem {
  /** The segments of the path, each with an end that sorts before any character of a scope. */
  readonly key: string;
  readonly scope: Scope;
}

/**
 * The entries of a catalog by every domain pattern that covers them, in an order in which all that
 * lies below one path stands side by side.
 */
class EntryIndex {
  readonly #byDomain = new Map<string, IndexItem[]>();

  constructor(entries: Iterable<Scope>) {
    const items = Array.from(entries, (scope) => ({ key: keyOf(scope.path), scope }));
    for (const item of items.sort((a, b) => (a.key < b.key ? -1 : 1))) {
      for (const domain of outerDomains(item.scope.domain)) {
        const list = this.#byDomain.get(domain);
        if (list === undefined) this.#byDomain.set(domain, [item]);
        else list.push(item);
      }
    }
  }

  /** What a scope has in common with each entry: with those below its path, and those above it. */
  *meets(scope: Scope): Generator<Scope> {
    const list = this.#byDomain.get(scope.domain) ?? [];
    const below = scope.path === '*' ? '' : keyOf(scope.path);
    for (let i = firstFrom(list, below); list[i]?.key.startsWith(below) === true; i++) {
      const entry = (list[i] as IndexItem).scope;
      if (methodCovers(scope.method, entry.method)) yield entry;
    }
    for (const path of outerPaths(scope.path).slice(1, -1)) {
      const key = keyOf(path);
      for (let i = firstFrom(list, key); list[i]?.key === key; i++) {
        const common = meet(scope, (list[i] as IndexItem).scope);
        if (common !== null) yield common;
      }
    }
  }
}

function keyOf(path: string): string {
  return `${path.replaceAll('/', '\0')}\0`;
}

/** The place of the first item whose key is not before this one. */
function firstFrom(list: readonly IndexItem[], key: string): number {
  let from = 0;
  let to = list.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((list[middle] as IndexItem).key < key) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** Every scope that covers this concrete one, itself included, as texts. */
function outerScopes({ method, domain, path }: Scope): readonly string[] {
  const paths = outerPaths(path);
  return [method, '*'].flatMap((outerMethod) =>
    outerDomains(domain).flatMap((outerDomain) =>
      paths.map((outerPath) => `${outerMethod}:${outerDomain}/${outerPath}`),
    ),
  );
}

function outerDomains(host: string): readonly string[] {
  const labels = host.split('.');
  const parents = labels.slice(1).map((_, index) => `*.${labels.slice(index + 1).join('.')}`);
  return [host, ...parents, '*'];
}

function outerPaths(path: string): readonly string[] {
  if (path === '*') return ['*'];
  const segments = path.split('/');
  return ['*', ...segments.map((_, index) => segments.slice(0, index + 1).join('/'))];
}

function readTokens(options: unknown): Iterable<unknown> | undefined {
  if (!isObject(options)) throw invalidOptions('the options must be an object');
  const { tokens, ...others } = options;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw invalidOptions(`there is no option ${show(unknown)}; there is tokens`);
  }
  if (tokens === undefined || isIterable(tokens)) return tokens;
  throw invalidOptions('tokens must be a list of tokens');
}

function readToken(token: unknown): TokenScopes {
  const { id, scopes, requested } = isObject(token) ? token : {};
  if (typeof id === 'string' && Array.isArray(scopes) && Array.isArray(requested)) {
    return { id, scopes, requested };
  }
  throw invalidOptions('tokens must be a list of tokens, each with id, scopes and requested');
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
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
function isGiven(servers: Node | undefined): servers is Node {
  if (servers?.value === undefined) return false;
  return !(Array.isArray(servers.value) && servers.value.length === 0);
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

function splitOnce(text: string, separator: string): readonly string[] {
  const place = text.indexOf(separator);
  return place === -1 ? [text] : [text.slice(0, place), text.slice(place + separator.length)];
}

function readUrl(text: string, base?: URL): URL | undefined {
  return URL.canParse(text, base?.href) ? new URL(text, base) : undefined;
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
