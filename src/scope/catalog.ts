import { meet } from './algebra.ts';
import { MAX_NAMED_SCOPES, MAX_PATH_LENGTH, MAX_SCOPE_LENGTH, MAX_SCOPES } from './bounds.ts';
import { describeRefused, type RefusedScope, ScopeError, type ScopeErrorCode } from './errors.ts';
import { parseScope, type Scope, safeParseScope, toScope } from './grammar.ts';
import { type LintFinding, lint } from './lint.ts';
import { parsingScopes, readMembers, scopesRequired, toList, tooManyScopes } from './list.ts';
import { ScopeLookup } from './lookup.ts';
import { suggestions } from './nearest.ts';
import { OverlapIndex, patternsOf } from './overlap.ts';
import {
  type RequestReading,
  readOnce,
  readRoutedRequest,
  type ScopeRequest,
  type Unambiguous,
} from './request.ts';
import { EntryRoutes, foldEntries } from './routes.ts';
import { ScopeSet } from './set.ts';
import { atOnce, inSteps, type Steps } from './steps.ts';
import {
  type EndpointWords,
  type Permission,
  type PermissionOption,
  type Resource,
  readEntry,
  readPermission,
  resourcesOf,
  type ScopeWords,
  type WordedScope,
  type WordsByScope,
} from './words.ts';

/** The result of {@link ScopeCatalog.expand}. */
export interface Expansion {
  /** The concrete scopes, in canonical order. */
  readonly granted: string[];
  /** Those of them that were requested as they are and are below an entry without being one. */
  readonly narrowed: string[];
}

/** What a catalog knows of a service beside its entries. */
export interface CatalogOptions {
  /**
   * The entries whose path the service writes with a slash at the end: `GET:shop.example/orders$` for
   * `GET /orders/`. Without it, some routers take `/orders/` for `/orders/{}` with an empty value, so a
   * token must cover both. `catalogFromOpenApi` takes it from the document. @default none
   */
  readonly withSlash?: Iterable<Scope | string> | undefined;
  /** The permissions that people choose from. @default one for each tag of each host */
  readonly permissions?: Iterable<PermissionOption> | undefined;
  /**
   * A catalog with the same entries and more or fewer, such as the one of all accounts. Takes over what it
   * knows of them: the words, the permissions and `withSlash`. @default none
   */
  readonly base?: ScopeCatalog | undefined;
}

/** What a catalog knows beside its entries. */
interface Facts {
  readonly withSlash?: readonly string[] | undefined;
  readonly permissions?: readonly Resource[] | undefined;
  readonly words?: WordsByScope | undefined;
}

/**
 * The scopes that exist: a set of concrete ones, each with a real method, host and path, which may
 * contain `{}` and `$`. Expands requested scopes to existing ones, and finds the entry of a request.
 *
 * @example
 * const catalog = ScopeCatalog.from(['GET:shop.example/orders', 'POST:shop.example/orders']);
 * catalog.expand(['*:shop.example/*']).granted;
 * // ['GET:shop.example/orders', 'POST:shop.example/orders']
 */
export class ScopeCatalog implements Iterable<Scope> {
  /** In canonical order. */
  readonly #entries: readonly Scope[];
  readonly #lookup: ScopeLookup;
  #builtIndex: OverlapIndex | undefined;
  /** Absent for the scopes of a token, which read no requests. */
  readonly #routes: EntryRoutes | undefined;
  readonly #facts: Facts;
  #permissions: readonly Permission[] | undefined;

  private constructor(entries: Iterable<Scope>, facts?: Facts) {
    this.#entries = [...entries];
    this.#lookup = new ScopeLookup(this.#entries);
    this.#facts = facts ?? {};
    this.#routes = facts && this.#makeRoutes();
  }

  /**
   * Makes a catalog of scopes or texts. With an empty catalog, nothing can be requested.
   *
   * @throws {ScopeError} `catalog_not_concrete`, naming every member that is not a scope or has a
   * wildcard; `scopes_required` when `scopes` is not a list; `scope_unmatched` when `withSlash` has a
   * scope that is not an entry
   * @example
   * ScopeCatalog.from(['GET:shop.example/*']); // throws catalog_not_concrete
   */
  static from(
    scopes: Iterable<Scope | string | WordedScope>,
    options: CatalogOptions = {},
  ): ScopeCatalog {
    const { withSlash, permissions, base = scopes } = readOptions(options);
    const known: Facts = ScopeCatalog.#is(base) ? base.#facts : {};
    if (ScopeCatalog.#is(scopes) && base === scopes && !withSlash && !permissions) return scopes;
    const members = toList<unknown>(scopes).map(readEntry);
    const words = new Map<string, EndpointWords | EndpointWords[]>();
    const isEntry = (scope: Scope, index: number) => {
      const own = members[index]?.words;
      const text = scope.toString();
      if (own) words.set(text, words.has(text) ? [words.get(text) ?? [], own].flat() : own);
      return isConcrete(scope);
    };
    const given = members.map(({ scope }) => scope);
    const { read, refused } = atOnce(readMembers(given, safeParseScope, isEntry));
    refuse(
      'catalog_not_concrete',
      'an entry of a catalog names one method, one domain and a path',
      refused,
    );
    const entries = ScopeSet.from(read);
    const texts = new Set(entries.toArray());
    const unknown = (withSlash ?? []).filter((scope) => !texts.has(scope));
    refuse(
      'scope_unmatched',
      'withSlash names entries of the catalog',
      unknown.map((scope) => ({ scope })),
    );
    return new ScopeCatalog(entries, {
      withSlash: withSlash ?? known.withSlash?.filter((scope) => texts.has(scope)),
      permissions: permissions ?? known.permissions,
      words: words.size > 0 ? new Map([...(known.words ?? []), ...words]) : known.words,
    });
  }

  /**
   * Makes a catalog of the scopes of a token, which may have wildcards, to expand others against them.
   *
   * @internal
   */
  static ofHeld(scopes: Iterable<Scope | string>): ScopeCatalog {
    return new ScopeCatalog(ScopeSet.from(scopes));
  }

  /** The number of entries. */
  get size(): number {
    return this.#entries.length;
  }

  /**
   * The entries whose path the service writes with a slash at the end, in canonical order: for the
   * option of the same name of {@link ScopeCatalog.from}, when you make a catalog of this one.
   */
  get withSlash(): readonly string[] {
    return this.#facts.withSlash ?? [];
  }

  /**
   * The words of an entry; `undefined` if there are none, or no such entry.
   *
   * @throws {ScopeError} when a text is not a scope
   * @example
   * const entries = [{ scope: 'GET:shop.example/orders', summary: 'List orders' }];
   * ScopeCatalog.from(entries).words('GET:shop.example/orders')?.summary; // 'List orders'
   */
  words(scope: Scope | string): ScopeWords | undefined {
    const found = this.#facts.words?.get(toScope(scope).toString());
    const operations = [found ?? []].flat();
    return found && { ...operations[0], operations };
  }

  /**
   * The scopes by resource, for people who choose *read* or *write* instead of endpoints: those of the
   * option `permissions`, by default one for each tag of each host, in which entries with GET and HEAD are
   * those that read. Entries without a tag are under the first literal segment of their path.
   *
   * @throws {ScopeError} `too_many_scopes` when a wildcard of the option stands for more than 4096 entries
   * @example
   * const orders = { tag: 'orders' };
   * ScopeCatalog.from([
   *   { scope: 'GET:shop.example/orders', ...orders },
   *   { scope: 'POST:shop.example/orders', ...orders },
   * ]).permissions();
   * // [{ tag: 'orders', domain: 'shop.example', read: ['GET:…'], write: ['GET:…', 'POST:…'] }]
   */
  permissions(): readonly Permission[] {
    if (this.#permissions !== undefined) return this.#permissions;
    const { words, permissions } = this.#facts;
    const operations = () =>
      this.#entries.flatMap((scope) =>
        [words?.get(scope.toString()) ?? {}].flat().map(({ tag }) => ({ scope, tag })),
      );
    // One by one: a resource may have more entries than a token can hold.
    const known = (scopes: readonly Scope[]) => {
      const found = scopes.filter((scope) => this.knows(scope));
      return [...new Set(found.flatMap((scope) => this.expand([scope]).granted))].sort();
    };
    this.#permissions = (permissions ?? resourcesOf(operations())).flatMap(
      ({ read, write, ...about }) => {
        const all = known([...read, ...write]);
        return all.length > 0 ? { ...about, read: known(read), write: all } : [];
      },
    );
    return this.#permissions;
  }

  /**
   * Expands requested scopes to the concrete scopes that exist. The result is a snapshot: entries that
   * are added later change nothing. A concrete scope that an entry equals or covers is granted as
   * requested, alone. All or nothing: if one scope overlaps no entry, the call fails.
   *
   * @throws {ScopeError} in this order: `scopes_required` (absent, empty or not an array),
   * `too_many_scopes` (over 4096), `scope_invalid`, `catalog_empty`, `scope_unmatched` (with the
   * nearest known scopes for the first five), and `too_many_scopes` again when the result has more
   * than 4096
   * @example
   * const catalog = ScopeCatalog.from(['GET:shop.example/orders', 'GET:shop.example/bills']);
   * catalog.expand(['GET:shop.example/*', 'GET:shop.example/orders/7']);
   * // granted: both entries and GET:shop.example/orders/7; narrowed: GET:shop.example/orders/7
   */
  expand(requested: readonly (Scope | string)[]): Expansion {
    return atOnce(this.expanding(requested));
  }

  /**
   * As {@link ScopeCatalog.expand}, in steps.
   *
   * @internal
   */
  *expanding(requested: readonly (Scope | string)[]): Steps<Expansion> {
    const members = yield* parsingScopes(requested);
    if (this.size === 0) {
      throw new ScopeError('catalog_empty', 'the catalog is empty');
    }
    const granted = new Set<string>();
    const narrowed = new Set<string>();
    const patterns: Scope[] = [];
    yield* inSteps(members, (member) => {
      const entry = isConcrete(member) ? this.#lookup.coverOf(member) : undefined;
      if (entry === undefined) {
        patterns.push(member);
      } else {
        granted.add(member.toString());
        if (entry.toString() !== member.toString()) narrowed.add(member.toString());
      }
    });
    if (patterns.length > 0) yield* this.#addMeets(patterns, granted);
    if (granted.size > MAX_SCOPES) throw tooManyScopes();
    return { granted: [...granted].sort(), narrowed: [...narrowed].sort() };
  }

  /**
   * Reads a request like `readRequest`, for a service whose endpoints are the entries of this catalog.
   * No `{}` of a scope matches a literal segment of the request's entry. So
   * `GET:shop.example/orders/{}$` does not allow `/orders/export` if that is an entry of its own.
   *
   * Servers may take a request to several entries, because routers ignore case or decode characters
   * (`/orders/EXPORT`, `/orders/%65xport`), take a slash at the end for an empty value, run handlers of
   * GET for HEAD, or choose the first of two entries that cross. Then the scopes must cover all of
   * these entries; if they cover only some, the reason is `path_several_routes`. Never throws.
   *
   * @example
   * const reading = catalog.readRequest({ method: 'GET', domain: 'shop.example', target: '/orders/export' });
   * if (reading.ok) ScopeSet.from(['GET:shop.example/orders/{}$']).allows(reading.request);
   */
  readRequest(request: ScopeRequest): RequestReading {
    return readRoutedRequest(request, this.#routes);
  }

  /**
   * The entry of a request: the most specific one that covers it. The longest path comes first, then a
   * closed one, then the first from the left with a literal where another has `{}`. `undefined` when
   * none covers it, or when the request is ambiguous.
   *
   * @example
   * const request = { method: 'GET', domain: 'shop.example', target: '/orders/7' };
   * String(catalog.attribute(request)); // 'GET:shop.example/orders'
   */
  attribute(request: ScopeRequest | Unambiguous): Scope | undefined {
    const reading = readOnce(request);
    return reading.ok ? this.#lookup.grantOf(reading.request) : undefined;
  }

  /**
   * Whether the scope overlaps an entry.
   *
   * @throws {ScopeError} when a text is not a scope
   * @example
   * ScopeCatalog.from(['GET:shop.example/orders']).knows('GET:shop.example/ordres'); // false
   */
  knows(scope: Scope | string): boolean {
    const asked = toScope(scope);
    if (this.#lookup.coverOf(asked) !== undefined) return true;
    return atOnce(this.#index()).find('overlapping', patternsOf(asked), 1).length > 0;
  }

  /**
   * The three entries most like a text, the best first: by edit distance, below 64, with `*` like any
   * component. Empty for a text that is not shaped like a scope. Takes at most a few milliseconds: in
   * a catalog of thousands it looks at likely entries first, and may not reach all.
   *
   * @example
   * ScopeCatalog.from(['GET:shop.example/orders']).suggest('GET:shop.example/ordres');
   * // ['GET:shop.example/orders']
   */
  suggest(text: string): string[] {
    if (typeof text !== 'string' || text.length > MAX_SCOPE_LENGTH) return [];
    const [, method = '', domain = '', path] = /^([^:/]*):([^/]*)\/(.*)$/s.exec(text) ?? [];
    if (path === undefined) return [];
    const asked = { method: method.toUpperCase(), domain: domain.toLowerCase(), path };
    return atOnce(suggestions(this.#entries)(asked));
  }

  /**
   * Finds what is allowed but probably not intended: nested entries, entries of a token service, hosts
   * that a wildcard for the hosts below them does not include, parameters of routes, entries that differ
   * only in case, and entries that cross. In this order, each in canonical order.
   *
   * @example
   * ScopeCatalog.from(['POST:shop.example/token']).lint()[0]?.code; // 'token_service'
   */
  lint(): LintFinding[] {
    return lint(this.#entries, atOnce(this.#index()));
  }

  /**
   * The entries as texts, in canonical order.
   *
   * @example
   * ScopeCatalog.from(['GET:shop.example/orders']).toArray(); // ['GET:shop.example/orders']
   */
  toArray(): string[] {
    return this.#entries.map(String);
  }

  /** The entries, in canonical order. */
  [Symbol.iterator](): Iterator<Scope> {
    return this.#entries[Symbol.iterator]();
  }

  static #is(value: unknown): value is ScopeCatalog {
    return typeof value === 'object' && value !== null && #entries in value;
  }

  /** Adds the meets of patterns and entries, and stops when they are too many. */
  *#addMeets(members: readonly Scope[], granted: Set<string>): Steps<void> {
    const index = yield* this.#index();
    const unmatched: Scope[] = [];
    yield* inSteps(members, (member) => {
      const patterns = patternsOf(member);
      if (index.find('overlapping', patterns, 1).length === 0) {
        unmatched.push(member);
        return;
      }
      if (granted.size > MAX_SCOPES) return;
      for (const entry of index.find('crossing', patterns)) {
        const common = meet(member, entry) as Scope;
        // Throws: a meet may be longer than a scope can be.
        if (common.path.length > MAX_PATH_LENGTH) parseScope(common.toString());
        granted.add(common.toString());
      }
    });
    if (unmatched.length > 0) throw yield* this.#unmatched(unmatched);
    // Minimized, because many members may cover the same entries.
    yield* inSteps(ScopeSet.from(members).minimize(), (member) => {
      for (const entry of index.find('covered', patternsOf(member), MAX_SCOPES + 1)) {
        granted.add(entry.toString());
      }
    });
  }

  *#index(): Steps<OverlapIndex> {
    this.#builtIndex ??= yield* OverlapIndex.inSteps(this.#entries);
    return this.#builtIndex;
  }

  #makeRoutes(): EntryRoutes {
    const lookup = this.#lookup;
    const slashed = new Set(this.withSlash);
    if (this.#entries.every(({ path }) => path === path.toLowerCase())) {
      const own = { lookup, index: atOnce(this.#index()), originals: undefined };
      return new EntryRoutes(lookup, own, slashed);
    }
    const byText = foldEntries(this.#entries);
    const scopes = [...byText.values()].map(({ folded }) => folded);
    const folded = {
      lookup: new ScopeLookup(scopes),
      index: new OverlapIndex(scopes),
      originals: new Map([...byText].map(([text, { originals }]) => [text, originals])),
    };
    return new EntryRoutes(lookup, folded, slashed);
  }

  *#unmatched(scopes: readonly Scope[]): Steps<ScopeError> {
    const nearestTo = suggestions(this.#entries);
    const explained = scopes.slice(0, MAX_NAMED_SCOPES);
    const refused: RefusedScope[] = [];
    for (const [index, asked] of explained.entries()) {
      const nearest = yield* nearestTo(asked, explained.length - index - 1);
      refused.push({ scope: asked.toString(), nearest });
    }
    for (const asked of scopes.slice(explained.length)) refused.push({ scope: asked.toString() });
    const message = `the catalog does not know ${describeRefused(refused)}`;
    return new ScopeError('scope_unmatched', message, { refused });
  }
}

/** Whether a scope has one method, one host and a path. */
function isConcrete(scope: Scope): boolean {
  return !scope.toString().includes('*');
}

/** Reads the options. A getter or a proxy that throws is refused like a list that cannot be read. */
function readOptions(options: CatalogOptions) {
  try {
    const { withSlash, permissions, base } = options;
    return {
      withSlash: withSlash && ScopeSet.from(withSlash).toArray(),
      permissions: permissions && [...permissions].map(readPermission),
      base,
    };
  } catch (error) {
    throw error instanceof ScopeError ? error : scopesRequired();
  }
}

function refuse(code: ScopeErrorCode, rule: string, refused: readonly RefusedScope[]): void {
  if (refused.length === 0) return;
  throw new ScopeError(code, `${rule}, unlike ${describeRefused(refused)}`, { refused });
}
