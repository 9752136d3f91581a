import { isTokenError, unreadableOption } from '../errors.ts';
import { isScopeError } from '../inputs/scope-refusals.ts';
import type { ScopeCatalog } from '../scope/catalog.ts';
import { type CatalogDiff, diffCatalogs, type TokenScopes } from '../scope/diff.ts';
import type { Scope } from '../scope/grammar.ts';
import { operationsOf, tagsOf } from './document.ts';
import { Entries, type OpenApiReading } from './entries.ts';
import { Files, fileNameOf, readDocument, resolveRoot } from './files.ts';
import { member } from './json.ts';
import { type OpenApiOptions, readCatalogOptions, readTokens } from './options.ts';
import { Problems, quote, WorkBudget } from './problems.ts';
import { openApiVersionOf } from './references.ts';

export type { CatalogDiff, TokenScopes } from '../scope/diff.ts';
export type { OpenApiEntry, OpenApiReading } from './entries.ts';
export type { OpenApiOptions } from './options.ts';

/**
 * Makes a catalog of the operations that OpenAPI documents describe. Pass one document or an array.
 * Each operation becomes one entry for each of its servers: the method, the host and the path, base
 * path included. Each segment that holds a template becomes `{}`, and the path is closed, so that each
 * operation can be granted alone. A template for several segments, such as `{path+}`, ends the path
 * before it and leaves it open. For fewer and wider entries, use the option `granularity`.
 *
 * A document (Swagger 2.0, OpenAPI 3.0 to 3.2) is a parsed object, a text in JSON or YAML, or a
 * file: its path, or a `file:` URL. A string that begins with `{` or has several lines is a text,
 * any other is a path. YAML needs the package `@apidevtools/swagger-parser`. Nothing is fetched from
 * the network. References of paths, operations and servers are followed, and if the document is a
 * file, also to other files, but not out of its folder (see the option `root`). References of schemas
 * are ignored. Does not check that a document is valid beyond the parts that it reads.
 *
 * A file must be a regular one of at most 64 MiB and is read within 10 seconds. The servers of each
 * operation, summed up over all documents, may be at most 100 000.
 *
 * Operations that need the same scope share one entry ({@link readOpenApi} reports which do). Ports
 * and schemes are dropped. Variables of a server take every value of their `enum`, else the default. A
 * slash at the end of a path is not part of the scope, but the catalog remembers it
 * (`catalog.withSlash`), so that a request with it belongs to this entry alone. `x-scope` on an operation replaces the path, base
 * path included, as it is written: `"x-scope": "orders/{id}/export$"`.
 *
 * @throws {ScopeError} `catalog_not_concrete`, with a message that lists the problems of all documents
 * and what would be right
 * @throws {TokenError} `invalid_options`; also when there is YAML and the parser is not installed, and when
 * a getter or a proxy throws
 * @example
 * const catalog = await catalogFromOpenApi({
 *   openapi: '3.1.0',
 *   servers: [{ url: 'https://shop.example/v1' }],
 *   paths: { '/orders/{id}': { get: {}, delete: {} } },
 * });
 * catalog.toArray();
 * // ['DELETE:shop.example/v1/orders/{}$', 'GET:shop.example/v1/orders/{}$']
 * await catalogFromOpenApi(['openapi.yaml', new URL('billing.json', import.meta.url)]);
 */
export async function catalogFromOpenApi(
  documents: unknown,
  options: OpenApiOptions = {},
): Promise<ScopeCatalog> {
  return (await readOpenApi(documents, options)).catalog;
}

/**
 * Makes a catalog like {@link catalogFromOpenApi}, and reports which operations each entry was made
 * of, which entries are deprecated, and which stand for several paths. Those cannot be granted apart
 * unless an `x-scope` separates them.
 *
 * @throws {ScopeError} `catalog_not_concrete`
 * @throws {TokenError} `invalid_options`
 * @example
 * const reading = await readOpenApi({
 *   openapi: '3.1.0',
 *   servers: [{ url: 'https://shop.example' }],
 *   paths: {
 *     '/orders/{id}': { get: {}, put: { deprecated: true } },
 *     '/orders/{id}.json': { get: {} },
 *   },
 * });
 * reading.deprecated; // ['PUT:shop.example/orders/{}$']
 * reading.merged.map(({ scope }) => scope); // ['GET:shop.example/orders/{}$']
 */
export async function readOpenApi(
  documents: unknown,
  options: OpenApiOptions = {},
): Promise<OpenApiReading> {
  try {
    return await readAll(documents, options);
  } catch (error) {
    throw coded(error, 'a document or an option');
  }
}

/**
 * Compares two catalogs, for a gate in CI: which entries appear and vanish and, if tokens are given,
 * which of them gain or lose scopes.
 *
 * Compares the requests that entries allow, not how they are written: an entry does not appear or
 * vanish if another entry allows all its requests. Like in `catalog.readRequest`, a `{}` does not
 * match a segment that a sibling names: `/orders/export` is a new endpoint beside `/orders/{id}`. If
 * narrower entries replace an entry, it vanishes, and they are `kept`. This happens to each entry of
 * `prefix` when you move to `operation`.
 *
 * Tokens are snapshots. A token keeps the scopes it loses until you change it, and gets the scopes it
 * gains only when it is issued again or modified. It gains nothing if `issue` would refuse its
 * requested scopes: one of them no longer overlaps the catalog, or it would get too many. Takes near
 * linear time.
 *
 * @throws {ScopeError} `catalog_not_concrete` when an entry is not concrete; the code of the first
 * scope of a token that cannot be parsed
 * @throws {TokenError} `invalid_options`
 * @example
 * const diff = catalogDiff(['GET:shop.example/orders$'], ['GET:shop.example/bills$'], {
 *   tokens: [{ id: '7', scopes: ['GET:shop.example/orders$'], requested: ['GET:shop.example/*'] }],
 * });
 * diff.removed; // ['GET:shop.example/orders$']
 * const [change] = diff.tokens; // of token 7
 * change?.lost; // ['GET:shop.example/orders$']
 * change?.gained; // ['GET:shop.example/bills$']
 * if (diff.isBreaking) process.exitCode = 1;
 */
export function catalogDiff(
  before: Iterable<Scope | string>,
  after: Iterable<Scope | string>,
  options: { readonly tokens?: Iterable<TokenScopes> | undefined } = {},
): CatalogDiff {
  try {
    return diffCatalogs(before, after, readTokens(options));
  } catch (error) {
    throw coded(error, 'a catalog, a token or an option');
  }
}

async function readAll(documents: unknown, options: OpenApiOptions): Promise<OpenApiReading> {
  const settings = readCatalogOptions(options);
  const problems = new Problems();
  const files = new Files(await resolveRoot(settings.root));
  const shared = { settings, problems, files, budget: new WorkBudget() };
  const entries = new Entries();
  const list: readonly unknown[] = Array.isArray(documents) ? documents : [documents];
  for (const [index, document] of list.entries()) {
    const read = await readDocument(document, files);
    const root = read.ok ? read.value.root : undefined;
    const name = documentName(index, document, root);
    if (!read.ok) {
      problems.addForDocument(name, read.problem);
      continue;
    }
    entries.describe(index, tagsOf(root));
    const context = { ...shared, name, source: read.value, version: openApiVersionOf(root) };
    for await (const [scope, operation] of operationsOf(context, index)) {
      entries.add(scope, operation);
    }
  }
  return entries.toReading(problems.leftOut(settings.skip));
}

/** An error of this package as it is. A getter, a proxy or an iterator of the caller threw anything else. */
function coded(error: unknown, what: string): Error {
  return isTokenError(error) || isScopeError(error) ? error : unreadableOption(what);
}

/** Names a document in messages. */
function documentName(index: number, document: unknown, root: unknown): string {
  const title = member(member(root, 'info'), 'title');
  const name = typeof title === 'string' ? title : fileNameOf(document);
  return `documents[${index}]${name === undefined ? '' : ` (${quote(name)})`}`;
}
