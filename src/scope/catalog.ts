import { domainCovers, meet, methodCovers, pathCovers } from './algebra.ts';
import {
  isPrintable,
  type RefusedScope,
  type Scope,
  ScopeError,
  type ScopeReading,
  safeParseScope,
  toScope,
} from './grammar.ts';
import { overlapping, ScopeSet, toList } from './matcher.ts';
import { isReadRequest, type ReadRequest, readRequest, type ScopeRequest } from './request.ts';

/** What {@link ScopeCatalog.expand} answers. */
export interface Expansion {
  /** The concrete scopes, in canonical order. */
  readonly granted: string[];
  /** Those of them that were asked for as they are and lie below an entry without being one. */
  readonly narrowed: string[];
}

/** Something about a catalog that is allowed and perhaps not meant. */
export interface LintFinding {
  /**
   * `nested`: an entry lies below another one, so who is granted that has both. `token_service`: an
   * entry is the token service itself, so who is granted it can mint tokens. `apex`: hosts lie below
   * one that a wildcard `*.` for them does not reach. `parameter`: a segment begins with `:`, as the
   * parameter of a route does; here it stands for that text alone.
   */
  readonly code: 'nested' | 'token_service' | 'apex' | 'parameter';
  /** The entries in question, in canonical order. */
  readonly scopes: readonly string[];
  /** What follows from it, for people. */
  readonly message: string;
}

/** How many scopes may be asked for at once, and how many a token may hold. */
export const MAX_SCOPES = 4096;
/** Members that a message speaks of; `refused` has them all. */
const MAX_DESCRIBED = 5;
/** What finding the nearest entries may cost in one refusal. */
const MAX_COMPARISONS = 50_000;
const MAX_SUGGESTIONS = 3;
/** From so many edits on, a scope is another one and no misspelling. */
const MAX_DISTANCE = 64;

/**
 * The scopes that exist: a set of concrete ones, each with a real method, host and path. Wildcards
 * that somebody asks for are expanded against it.
 *
 * @example
 * const catalog = ScopeCatalog.from(['GET:shop.example/orders', 'POST:shop.example/orders']);
 * catalog.expand(['*:shop.example/*']).granted;
 * // ['GET:shop.example/orders', 'POST:shop.example/orders']
 */
export class ScopeCatalog implements Iterable<Scope> {
  readonly #entries: ScopeSet;
  readonly #byDomain: ReadonlyMap<string, readonly Scope[]>;

  private constructor(entries: ScopeSet) {
    this.#entries = entries;
    const byDomain = new Map<string, Scope[]>();
    for (const entry of entries) {
      const group = byDomain.get(entry.domain);
      if (group === undefined) byDomain.set(entry.domain, [entry]);
      else group.push(entry);
    }
    this.#byDomain = byDomain;
  }

  /**
   * Makes a catalog of scopes or texts; it may be empty, and then nothing can be asked for.
   *
   * @throws {ScopeError} `catalog_not_concrete`, naming every member that is not a scope or holds a
   * wildcard; `scopes_required` when `scopes` is not a list
   * @example
   * ScopeCatalog.from(['GET:shop.example/*']); // throws catalog_not_concrete
   */
  static from(scopes: Iterable<Scope | string>): ScopeCatalog {
    if (ScopeCatalog.#is(scopes)) return scopes;
    const entries: Scope[] = [];
    const refused: RefusedScope[] = [];
    for (const [place, member] of toList(scopes).entries()) {
      const reading = readMember(member, safeParseScope);
      if (!reading.ok) refused.push(refusal(member, place, reading));
      else if (isConcrete(reading.scope)) entries.push(reading.scope);
      else refused.push({ scope: reading.scope.toString() });
    }
    if (refused.length === 0) return new ScopeCatalog(ScopeSet.from(entries));
    throw new ScopeError(
      'catalog_not_concrete',
      `a catalog holds scopes with a real method, domain and path, so it cannot hold ${describe(refused)}`,
      { refused },
    );
  }

  /** How many scopes it holds. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Turns what was asked for into the concrete scopes that exist: a snapshot, to which entries that
   * are added later give nothing. A concrete scope that an entry equals or covers is granted as
   * asked, alone. All or nothing: one member that meets no entry fails the whole.
   *
   * @throws {ScopeError} in this order: `scopes_required` (absent, empty or not an array),
   * `too_many_scopes` (over 4096), `scope_invalid`, `catalog_empty`, `scope_unmatched` (with the
   * nearest known scopes), and `too_many_scopes` again when more than 4096 would be granted
   * @example
   * const catalog = ScopeCatalog.from(['GET:shop.example/orders', 'GET:shop.example/bills']);
   * catalog.expand(['GET:shop.example/*', 'GET:shop.example/orders/7']);
   * // granted: both entries and GET:shop.example/orders/7; narrowed: GET:shop.example/orders/7
   */
  expand(requested: readonly (Scope | string)[]): Expansion {
    const members = parseScopes(requested);
    if (this.size === 0) {
      throw new ScopeError('catalog_empty', 'the catalog holds no scopes, so none can be granted');
    }
    const granted = new Set<string>();
    const narrowed = new Set<string>();
    const patterns: Scope[] = [];
    for (const member of members) {
      const entry = isConcrete(member) ? this.#entries.coverOf(member) : undefined;
      if (entry === undefined) {
        patterns.push(member);
        continue;
      }
      granted.add(member.toString());
      if (entry.toString() !== member.toString()) narrowed.add(member.toString());
    }
    for (const scope of this.#meetsOf(patterns)) {
      granted.add(scope);
      if (granted.size > MAX_SCOPES) throw tooMany();
    }
    return { granted: [...granted].sort(), narrowed: [...narrowed].sort() };
  }

  /**
   * The entry that names a request: the longest path, then the exact method. `undefined` when none
   * does, or the request is ambiguous.
   *
   * @example
   * const request = { method: 'GET', domain: 'shop.example', target: '/orders/7' };
   * String(catalog.attribute(request)); // 'GET:shop.example/orders'
   */
  attribute(request: ScopeRequest | ReadRequest): Scope | undefined {
    const read = isReadRequest(request) ? request : readOrUndefined(request);
    if (read === undefined) return undefined;
    const decision = this.#entries.allows(read);
    return decision.allowed ? decision.by : undefined;
  }

  /**
   * Whether an entry covers the scope, or the scope an entry.
   *
   * @throws {ScopeError} when a text is not a scope
   * @example
   * ScopeCatalog.from(['GET:shop.example/orders']).knows('GET:shop.example/ordres'); // false
   */
  knows(scope: Scope | string): boolean {
    return this.#entries.overlaps(scope);
  }

  /**
   * The three entries most like a text, the best first: by edit distance, below 64, where a
   * component that is `*` is like any other. Nothing for a text without the shape of a scope.
   *
   * @example
   * ScopeCatalog.from(['GET:shop.example/orders']).suggest('GET:shop.example/ordres');
   * // ['GET:shop.example/orders']
   */
  suggest(text: string): string[] {
    if (typeof text !== 'string' || text.length > 1024) return [];
    const shape = /^([^:/]*):([^/]*)\/(.*)$/s.exec(text);
    if (shape === null) return [];
    const [, method = '', domain = '', path = ''] = shape;
    return this.#nearest(method.toUpperCase(), domain.toLowerCase(), path);
  }

  /**
   * Names what is allowed and perhaps not meant: nested entries, entries of a token service,
   * hosts that a wildcard over their neighbors misses, and parameters of routes. In this order, each
   * in canonical order.
   *
   * @example
   * ScopeCatalog.from(['POST:shop.example/token']).lint()[0]?.code; // 'token_service'
   */
  lint(): LintFinding[] {
    return [...this.#nested(), ...this.#tokenService(), ...this.#apexes(), ...this.#parameters()];
  }

  /**
   * The entries as texts, in canonical order.
   *
   * @example
   * ScopeCatalog.from(['GET:shop.example/orders']).toArray(); // ['GET:shop.example/orders']
   */
  toArray(): string[] {
    return this.#entries.toArray();
  }

  /** The entries, in canonical order. */
  [Symbol.iterator](): Iterator<Scope> {
    return this.#entries[Symbol.iterator]();
  }

  #nested(): LintFinding[] {
    const outermost = this.#entries.minimize();
    return [...this.#entries].flatMap((entry) => {
      const outer = outermost.coverOf(entry);
      if (outer === undefined || outer.toString() === entry.toString()) return [];
      const message = `${entry} lies below ${outer}: whoever is granted that has both`;
      return { code: 'nested' as const, scopes: [outer.toString(), entry.toString()], message };
    });
  }

  #tokenService(): LintFinding[] {
    return [...this.#entries]
      .filter(({ path }) => /(?:^|\/)token$/.test(path))
      .map((entry) => ({
        code: 'token_service',
        scopes: [entry.toString()],
        message: `${entry} looks like a token service: with it *:*/* manages tokens; leave it out`,
      }));
  }

  #apexes(): LintFinding[] {
    const parents = new Set<string>();
    for (const domain of this.#byDomain.keys()) {
      for (let dot = domain.indexOf('.'); dot !== -1; dot = domain.indexOf('.', dot + 1)) {
        parents.add(domain.slice(dot + 1));
      }
    }
    return [...this.#byDomain].flatMap(([domain, entries]) => {
      if (!parents.has(domain)) return [];
      const message = `${domain} is not below itself: *:*.${domain}/* reaches the hosts below it and misses these`;
      return { code: 'apex' as const, scopes: entries.map(String), message };
    });
  }

  #parameters(): LintFinding[] {
    return [...this.#entries].flatMap((entry) => {
      const { method, domain, path } = entry;
      const found = /(?:^|\/)(:[^/]*)/.exec(path);
      if (found === null) return [];
      const cure =
        found.index === 0
          ? 'a scope has no parameters: begin the path with a name'
          : `${method}:${domain}/${path.slice(0, found.index)} covers what is below it: end it there`;
      const message = `${entry} stands for "${found[1]}" as it is written, and no other value; ${cure}`;
      return { code: 'parameter' as const, scopes: [entry.toString()], message };
    });
  }

  static #is(value: Iterable<Scope | string>): value is ScopeCatalog {
    return typeof value === 'object' && value !== null && #entries in value;
  }

  /** What members that are not simply entries have in common with these; it may be very much. */
  *#meetsOf(patterns: readonly Scope[]): Generator<string> {
    const blocks = [...overlapping(patterns, this.#candidates(patterns))];
    const matched = new Set(blocks.flatMap(([asked]) => asked));
    const unmatched = patterns.filter((pattern) => !matched.has(pattern));
    if (unmatched.length > 0) throw this.#unmatched(unmatched);
    for (const [asked, entries] of blocks) {
      for (const pattern of asked) for (const entry of entries) yield String(meet(pattern, entry));
    }
  }

  /** The entries among which are all that have something in common with some patterns. */
  #candidates(patterns: readonly Scope[]): readonly Scope[] {
    const domains = new Set(patterns.map(({ domain }) => domain));
    const isOpen = [...domains].some((domain) => domain.startsWith('*'));
    return [...(isOpen ? this.#byDomain.keys() : domains)].flatMap(
      (domain) => this.#byDomain.get(domain) ?? [],
    );
  }

  #unmatched(scopes: readonly Scope[]): ScopeError {
    const explained = Math.max(MAX_DESCRIBED, Math.floor(MAX_COMPARISONS / this.size));
    const refused = scopes.map((scope, place): RefusedScope => {
      if (place >= explained) return { scope: scope.toString() };
      const { method, domain, path } = scope;
      return {
        scope: scope.toString(),
        nearest: this.#nearest(method, domain, path),
      };
    });
    return new ScopeError(
      'scope_unmatched',
      `no known scope is meant by ${describe(refused)}; nothing was granted`,
      { refused },
    );
  }

  #nearest(method: string, domain: string, path: string): string[] {
    const ranked: { readonly text: string; readonly distance: number }[] = [];
    let worst = MAX_DISTANCE;
    for (const [known, entries] of this.#byDomain) {
      const byDomain = domainDistance(domain, known, worst);
      if (byDomain >= worst) continue;
      for (const entry of entries) {
        const soFar = byDomain + (methodCovers(method, entry.method) ? 0 : 2);
        if (soFar >= worst) continue;
        const distance = soFar + pathDistance(path, entry.path, worst - soFar);
        if (distance >= worst) continue;
        ranked.push({ text: entry.toString(), distance });
        ranked.sort((a, b) => a.distance - b.distance);
        ranked.length = Math.min(ranked.length, MAX_SUGGESTIONS);
        if (ranked.length === MAX_SUGGESTIONS) worst = ranked.at(-1)?.distance ?? worst;
      }
    }
    return ranked.map(({ text }) => text);
  }
}

/**
 * Reads a list of scopes as a caller sends it: parsed, in the order given, without duplicates.
 *
 * @throws {ScopeError} `scopes_required`, `too_many_scopes` (over 4096) or `scope_invalid`, naming
 * every member that does not parse
 * @param readText another way to read one, for lists that are likely to come again
 */
export function parseScopes(requested: unknown, readText = safeParseScope): Scope[] {
  const members = toMembers(requested);
  if (members === undefined || members.length === 0) {
    throw new ScopeError(
      'scopes_required',
      'scopes must be a list of at least one scope, as ["GET:shop.example/orders"]',
    );
  }
  if (members.length > MAX_SCOPES) throw tooMany();
  const byText = new Map<string, Scope>();
  const refused: RefusedScope[] = [];
  let why = '';
  for (const [place, member] of members.entries()) {
    const reading = readMember(member, readText);
    if (reading.ok) byText.set(reading.scope.toString(), reading.scope);
    else {
      refused.push(refusal(member, place, reading));
      why ||= isPrintable(member) ? reading.message : `scopes[${place}]: ${reading.message}`;
    }
  }
  if (refused.length === 0) return [...byText.values()];
  throw new ScopeError('scope_invalid', invalidMessage(refused, why), { refused });
}

/** The members of an array, and no more than are needed to know that they are too many. */
function toMembers(value: unknown): unknown[] | undefined {
  try {
    if (!Array.isArray(value)) return undefined;
    // Once: a length may be another the next time.
    const length = Math.min(value.length, MAX_SCOPES + 1);
    const members: unknown[] = [];
    for (let i = 0; i < length; i++) members.push(value[i]);
    return members;
  } catch {
    return undefined;
  }
}

/** How an error speaks of a member: itself, where it may be shown, else its place. */
function refusal(
  member: unknown,
  place: number,
  reading: Extract<ReturnType<typeof safeParseScope>, { readonly ok: false }>,
): RefusedScope {
  return {
    scope: isPrintable(member) ? member : `scopes[${place}]`,
    code: reading.error,
    ...(reading.suggestion !== undefined && { suggestion: reading.suggestion }),
  };
}

function readMember(member: unknown, readText: typeof safeParseScope): ScopeReading {
  if (typeof member === 'string') return readText(member);
  try {
    return { ok: true, scope: toScope(member as Scope) };
  } catch {
    return safeParseScope(undefined);
  }
}

function isConcrete({ method, domain, path }: Scope): boolean {
  return method !== '*' && path !== '*' && !domain.startsWith('*');
}

function readOrUndefined(request: ScopeRequest): ReadRequest | undefined {
  const reading = readRequest(request);
  return reading.ok ? reading.request : undefined;
}

function tooMany(): ScopeError {
  return new ScopeError(
    'too_many_scopes',
    `a token holds at most ${MAX_SCOPES} scopes, and these are more`,
  );
}

/** Says of the first one what would be right. */
function invalidMessage(refused: readonly RefusedScope[], why: string): string {
  if (refused.length === 1) return `one member of scopes cannot be read: ${why}`;
  const { length } = refused;
  return `${length} members of scopes cannot be read: ${describe(refused)}; the first: ${why}`;
}

/** The first few refused members in words, each with what would be right. */
function describe(refused: readonly RefusedScope[]): string {
  const shown = refused.slice(0, MAX_DESCRIBED).map(({ scope, code, suggestion, nearest }) => {
    const hints = [
      ...(code === undefined ? [] : [code]),
      ...(suggestion === undefined ? [] : [`did you mean ${suggestion}?`]),
      ...(nearest === undefined || nearest.length === 0
        ? []
        : [`nearest known: ${nearest.join(', ')}`]),
    ];
    return hints.length === 0 ? scope : `${scope} (${hints.join('; ')})`;
  });
  const rest = refused.length - shown.length;
  return shown.join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}

function domainDistance(asked: string, known: string, limit: number): number {
  if (domainCovers(asked, known)) return 0;
  return editDistance(asked.startsWith('*.') ? asked.slice(2) : asked, known, limit);
}

function pathDistance(asked: string, known: string, limit: number): number {
  return pathCovers(asked, known) ? 0 : editDistance(asked, known, limit);
}

/** Levenshtein distance; gives up with `limit` as soon as it cannot be less. */
export function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    let least = row;
    for (let column = 1; column <= b.length; column++) {
      const replaced =
        (previous[column - 1] as number) +
        (a.charCodeAt(row - 1) === b.charCodeAt(column - 1) ? 0 : 1);
      const cost = Math.min(
        replaced,
        (previous[column] as number) + 1,
        (current[column - 1] as number) + 1,
      );
      current.push(cost);
      least = Math.min(least, cost);
    }
    if (least >= limit) return limit;
    previous = current;
  }
  return previous[b.length] as number;
}
