// What tokenwright/scope declares, as published. Written by: npm run api

export type AskedScope<Entry extends string, Asked extends string> = string extends Entry | Asked ? string : Entry | Meeting<Entry, Asked>;

export interface CatalogOptions {
  readonly withSlash?: Iterable<Scope | string> | undefined;
  readonly permissions?: Iterable<PermissionOption> | undefined;
  readonly base?: ScopeCatalog | undefined;
}

export type CatalogPattern<Catalog extends ScopeCatalog> = PatternOf<CatalogScope<Catalog>>;

export type CatalogScope<Catalog extends ScopeCatalog> = ReturnType<Catalog['toArray']>[number];

export interface EndpointWords {
  readonly summary?: string | undefined;
  readonly tag?: string | undefined;
  readonly segments?: readonly string[] | undefined;
  readonly deprecated?: boolean | undefined;
  readonly operationId?: string | undefined;
}

export interface Expansion {
  readonly granted: string[];
  readonly narrowed: string[];
}

export interface LintFinding {
  readonly code: 'nested' | 'token_service' | 'apex' | 'case' | 'crossing';
  readonly scopes: readonly string[];
  readonly message: string;
}

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS' | 'TRACE' | 'CONNECT' | (Uppercase<string> & Apart);

export interface NearMiss {
  readonly scope: Scope;
  readonly failed: 'method' | 'domain' | 'path';
}

export interface Permission {
  readonly tag: string;
  readonly description?: string | undefined;
  readonly domain?: string | undefined;
  readonly read: readonly string[];
  readonly write: readonly string[];
}

export interface PermissionOption {
  readonly name: string;
  readonly description?: string | undefined;
  readonly domain?: string | undefined;
  readonly levels: {
    readonly read?: readonly (Scope | string)[] | undefined;
    readonly write?: readonly (Scope | string)[] | undefined;
  };
}

export interface ReadRequest extends Unambiguous {
  readonly method: string;
  readonly domain: string;
  readonly path: string;
}

export interface RefusedScope {
  readonly scope: string;
  readonly code?: ScopeErrorCode;
  readonly suggestion?: string;
  readonly nearest?: readonly string[];
}

export type RequestReason = 'method_invalid' | 'domain_invalid' | 'path_too_long' | 'path_not_absolute' | 'path_fragment' | 'path_backslash' | 'path_illegal_character' | 'path_bad_encoding' | 'path_empty_segment' | 'path_encoded_slash' | 'path_encoded_control' | 'path_parameter' | 'path_dot_segment' | 'path_double_encoding' | 'path_several_routes';

export interface Scope {
  readonly method: string;
  readonly domain: string;
  readonly path: string;
  toString(): string;
  toJSON(): string;
  readonly [parsed]: true;
}

export declare class ScopeCatalog implements Iterable<Scope> {
  #private;
  private constructor();
  static from(scopes: Iterable<Scope | string | WordedScope>, options?: CatalogOptions): ScopeCatalog;
  get size(): number;
  get withSlash(): readonly string[];
  words(scope: Scope | string): ScopeWords | undefined;
  permissions(): readonly Permission[];
  expand(requested: readonly (Scope | string)[]): Expansion;
  readRequest(request: ScopeRequest): RequestReading;
  attribute(request: ScopeRequest | Unambiguous): Scope | undefined;
  knows(scope: Scope | string): boolean;
  suggest(text: string): string[];
  lint(): LintFinding[];
  toArray(): string[];
  [Symbol.iterator](): Iterator<Scope>;
}

export interface ScopeDiff {
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

export declare class ScopeError extends Error {
  readonly name: 'ScopeError';
  readonly code: ScopeErrorCode;
  readonly suggestion?: string;
  readonly scopes?: readonly string[];
  readonly refused?: readonly RefusedScope[];
  constructor(code: ScopeErrorCode, message: string, more?: {
    readonly suggestion?: string;
    readonly refused?: readonly RefusedScope[];
  });
}

export type ScopeErrorCode = 'not_a_string' | 'empty' | 'too_long' | 'non_ascii' | 'illegal_character' | 'missing_method' | 'wildcard_position' | 'method_invalid' | 'scheme_present' | 'missing_domain' | 'domain_userinfo' | 'domain_ip' | 'domain_port' | 'domain_invalid' | 'missing_path' | 'query_or_fragment' | 'percent_encoding' | 'path_template' | 'path_empty_segment' | 'path_dot_segment' | 'route_parameter' | 'scopes_required' | 'too_many_scopes' | 'scope_invalid' | 'scope_unmatched' | 'catalog_empty' | 'catalog_not_concrete';

export type ScopeExplanation = {
  readonly allowed: true;
  readonly by: Scope;
  readonly needed: Scope;
  readonly known: boolean;
} | {
  readonly allowed: false;
  readonly reason: 'not_covered';
  readonly needed: Scope;
  readonly smallest: Scope;
  readonly nearest?: NearMiss;
  readonly known: boolean;
  readonly suggestions: readonly string[];
} | {
  readonly allowed: false;
  readonly reason: RequestReason;
};

export interface ScopeRequest {
  readonly method: string;
  readonly domain: string;
  readonly target: string;
}

export declare class ScopeSet implements Iterable<Scope> {
  #private;
  private constructor();
  static from(scopes: Scopes): ScopeSet;
  get size(): number;
  covers(scope: Scope | string): boolean;
  coverOf(scope: Scope | string): Scope | undefined;
  overlaps(scope: Scope | string): boolean;
  allows(request: ScopeRequest | Unambiguous): Decision;
  explain(need: ScopeRequest | Unambiguous | Scope | string, catalog?: KnownScopes): ScopeExplanation;
  grantOf(need: ReadRequest | Scope): Scope | undefined;
  nearestTo(scope: Scope | string): NearMiss | undefined;
  minimize(): ScopeSet;
  union(other: Scopes): ScopeSet;
  intersection(other: Scopes): ScopeSet;
  missing(required: Scopes): string[];
  diff(after: Scopes): ScopeDiff;
  equals(other: Scopes): boolean;
  toArray(): string[];
  [Symbol.iterator](): Iterator<Scope>;
}

export interface ScopeWords extends EndpointWords {
  readonly operations: readonly EndpointWords[];
}

export interface TypedCatalog<Entry extends string> extends ScopeCatalog {
  expand<const Asked extends string = never>(requested: readonly (Entry | Meeting<Entry, Asked>)[]): Expansion;
  toArray(): Entry[];
}

export interface WordedScope extends EndpointWords {
  readonly scope: Scope | string;
}

export declare function covers(outer: Scope | string, inner: Scope | string): boolean;

export declare function defineCatalog<const Entry extends string = never>(entries: readonly CheckedEntries<Entry>[], options?: CatalogOptions): TypedCatalog<Canonical<Entry>>;

export declare function meet(a: Scope | string, b: Scope | string): Scope | null;

export declare function overlaps(a: Scope | string, b: Scope | string): boolean;

export declare function parseScope(text: string): Scope;

export declare function readRequest(request: ScopeRequest): RequestReading;

export declare function safeParseScope(value: unknown): ScopeReading;

export declare function scopeIn<Entry extends string, const Asked extends string>(catalog: TypedCatalog<Entry>, scope: Known<NoInfer<Entry>, Asked>): Asked;

// Not exported, but part of the above:

type Apart = Record<never, never>;

type BadInPath = '//' | '*' | '?' | '#' | '%' | ' ';

type BadPath = '' | `/${string}` | `${string}/` | `${string}/$` | Holding<BadInPath>;

type Below<Left, Segment extends string> = Segment extends '{}' ? ValuesAt<Children<Left>, unknown> : ValuesAt<Children<Left>, EntrySegment<Segment>>;

type BelowOf<P extends string> = P extends `${string}$` ? never : `${P}/${string}`;

type Canonical<Entry extends string> = Entry extends `${infer M}:${infer D}/${infer P}` ? [
  MethodFault<M> | DomainFault<D>
] extends [
  never
] ? `${M}:${D}${CanonicalPath<P>}` : '' : '';

type CanonicalPath<P extends string> = P extends BadPath ? '' : Unnamed<`/${P}`>;

type CheckedEntries<Entry extends string> = [
  Canonical<Entry>
] extends [
  ScopeText
] ? Entry : EachChecked<Entry>;

type CheckedEntry<Entry extends string> = Canonical<Entry> extends ScopeText ? Entry : string extends Entry ? 'a catalog of texts known at run time only is made by ScopeCatalog.from' : `not a catalog entry: ${EntryFault<Entry>}`;

type Children<Left> = {
  [L in Left & string as FirstOf<L>]: OthersOf<L>;
};

type Decision = {
  readonly allowed: true;
  readonly by: Scope;
} | {
  readonly allowed: false;
  readonly reason: RequestReason | 'not_covered';
};

type DomainFault<D extends string> = D extends '' ? 'the domain is missing' : D extends Holding<'*'> ? 'the domain must not hold a wildcard' : D extends Holding<':' | '@' | '_' | '%' | ' '> ? 'the domain must be a plain host name' : D extends Lowercase<D> ? never : `the domain must be in lower case, "${Lowercase<D>}"`;

type EachChecked<Entry extends string> = Entry extends unknown ? CheckedEntry<Entry> : never;

type EachEndpoint<M extends string, D extends string> = `${M | '*'}:${D | ParentsOf<D> | '*'}`;

type EachMeeting<Entry extends string, Asked extends string> = Asked extends Entry ? Asked : Asked extends `${infer M}:${infer D}/${infer P}` ? Meets<Entry, EndpointsAt<EndpointOf<Entry>, M, D>, D, P> extends true ? Asked : never : never;

type EachPattern<Entry extends string> = Entry extends `${infer M}:${infer D}/${infer P}` ? `${EachEndpoint<M, D>}/${PrefixesOf<P> | '*'}` | (`${EachEndpoint<M, D>}/${BelowOf<P>}` & Apart) | (`${M}:${D}/${FilledOf<P>}` & Apart) : never;

type EndpointOf<Entry extends string> = Entry extends `${infer M}:${infer D}/${string}` ? `${M}:${D}` : never;

type EndpointsAt<Endpoint extends string, M extends string, D extends string> = Endpoint extends `${infer EntryM}:${infer EntryD}` ? M extends '*' | EntryM ? D extends '*' | EntryD | ParentsOf<EntryD> ? Endpoint : never : never : never;

type EntryFault<Entry extends string> = Entry extends `${infer M}:${infer D}/${infer P}` ? MethodFault<M> | DomainFault<D> | PathFault<P> : 'it must have a method, a domain and a path, as "GET:shop.example/orders"';

type EntrySegment<Segment extends string> = '{}' | (Apart extends Record<Segment, 1> ? never : Segment);

type Filled<P extends string> = P extends `${infer Head}{}${infer Rest}` ? `${Head}${string}${Filled<Rest>}` : P;

type FilledOf<P extends string> = P extends Holding<'{}'> ? P extends `${string}$` ? Filled<P> : `${Filled<P>}${'' | '$' | `/${string}`}` : never;

type FirstOf<L extends string> = L extends `${infer First}/${string}` ? First : L extends `$ ${string}` | ` ${string}` ? never : L extends `${infer Last}$ ${string}` ? Last : L extends `${infer Last} ${string}` ? Last : never;

type Holding<Part extends string> = `${string}${Part}${string}`;

type IsCovered<Entry extends string, Endpoint extends string, D extends string, P extends string> = D extends `*${string}` ? false : P extends Long | '$' ? false : IsCoveredBelow<Entry, `${Endpoint}/`, P>;

type IsCoveredBelow<Entry extends string, Head extends string, P extends string> = P extends `${infer First}/${infer Others}` ? IsOneOf<Entry, `${Head}${OpenEnd<EntrySegment<First>>}`> extends false ? IsCoveredBelow<Entry, `${Head}${EntrySegment<First>}/`, Others> : true : P extends `${infer Last}$` ? IsOneOf<Entry, `${Head}${OpenEnd<EntrySegment<Last>> | `${EntrySegment<Last>}$`}`> : IsOneOf<Entry, `${Head}${EntrySegment<P>}${'' | '$'}`>;

type IsOneOf<Entry extends string, Text extends string> = [
  Entry & Text
] extends [
  never
] ? false : true;

type IsTemplate<Head extends string, Name extends string> = Name extends Holding<'{' | '/'> ? false : Head extends Holding<'}'> ? false : true;

type Known<Entry extends string, Asked extends string> = [
  Meeting<Entry, Asked>
] extends [
  never
] ? Entry : Meeting<Entry, Asked>;

interface KnownScopes {
  attribute(request: ReadRequest): Scope | undefined;
  knows(scope: Scope): boolean;
  suggest(text: string): string[];
  words?(scope: Scope): {
    readonly summary?: string | undefined;
  } | undefined;
}

type Long = `${Some}/${Some}/${Some}/${Some}/${string}`;

type Mark<Entry extends string> = string & Marked<Entry>;

interface Marked<Entry extends string> {
  readonly [mark]: {
    readonly entry: Entry;
    readonly pattern: PatternOf<Entry>;
  };
}

type Meeting<Entry extends string, Asked extends string> = string extends Asked ? never : [
  Mark<Entry>
] extends [
  Asked
] ? PatternIn<Entry, Asked> : EachMeeting<Entry, Asked>;

type Meets<Entry extends string, Endpoint extends string, D extends string, P extends string> = [
  Endpoint
] extends [
  never
] ? false : P extends '*' ? true : CanonicalPath<P> extends `/${infer Path}` ? IsCovered<Entry, Endpoint, D, Path> extends true ? true : Reaches<Turned<Entry>, Endpoint, Path> : false;

type MethodFault<M extends string> = M extends '' ? 'the method is missing' : M extends Holding<'*'> ? 'the method must not be a wildcard' : M extends Holding<'/' | ' '> ? 'it must begin with a method and a colon' : M extends Uppercase<M> ? never : `the method must be in upper case, "${Uppercase<M>}"`;

type OpenEnd<Segment extends string> = Exclude<Segment, `${string}$`>;

type OthersOf<L extends string> = L extends `${string}/${infer Others}` ? Others : L extends `${string}$ ${infer Endpoint}` ? `$ ${Endpoint}` : L extends `${string} ${infer Endpoint}` ? ` ${Endpoint}` : never;

type ParentsOf<D extends string> = D extends `${string}.${infer Parent}` ? `*.${Parent}` | ParentsOf<Parent> : never;

type PathFault<P extends string> = P extends '' ? 'the path is missing' : P extends Holding<'*'> ? 'the path must not hold a wildcard' : P extends `${string}/` | `${string}/$` ? 'the path must not end in a slash' : P extends `/${string}` | Holding<'//'> ? 'the path must not hold an empty segment' : P extends Holding<'?' | '#' | '%' | ' '> ? 'the path must hold no query, no "%" and no space' : CanonicalPath<P> extends '' ? 'the path must hold braces around whole segments only, "{}" or "{name}"' : never;

type PatternIn<Entry extends string, Asked extends string> = Asked extends {
  readonly [mark]: {
    readonly entry: Entry;
    readonly pattern: infer Pattern extends string;
  };
} ? Pattern : never;

type PatternOf<Entry extends string> = Mark<Entry> | EachPattern<Entry>;

type PrefixesOf<P extends string, Head extends string = ''> = P extends '$' ? '$' : P extends `${infer First}/${infer Rest}` ? `${Head}${OpenEnd<First>}` | PrefixesOf<Rest, `${Head}${First}/`> : P extends `${infer Last}$` ? `${Head}${OpenEnd<Last> | P}` : `${Head}${P}${'' | '$'}`;

type Reaches<Left, Endpoint extends string, P extends string> = [
  Left & ` ${Endpoint}`
] extends [
  never
] ? P extends '' ? [
  Extract<Left, `${string} ${Endpoint}`>
] extends [
  never
] ? false : true : P extends '$' ? [
  Left & `$ ${Endpoint}`
] extends [
  never
] ? false : true : [
  Left
] extends [
  never
] ? false : P extends `${infer First}/${infer Others}` ? Reaches<Below<Left, First>, Endpoint, Others> : P extends `${infer Last}$` ? Reaches<Below<Left, Last>, Endpoint, '$'> : Reaches<Below<Left, P>, Endpoint, ''> : true;

type RequestReading = {
  readonly ok: true;
  readonly request: ReadRequest;
} | {
  readonly ok: false;
  readonly reason: RequestReason;
};

type ScopeReading = {
  readonly ok: true;
  readonly scope: Scope;
} | {
  readonly ok: false;
  readonly error: ScopeErrorCode;
  readonly message: string;
  readonly suggestion?: string;
};

type ScopeText = `${Uppercase<string>}:${string}/${string}`;

type Scopes = Iterable<Scope | string>;

type Some = `${string}/${string}`;

type Turned<Entry extends string> = Entry extends `${infer M}:${infer D}/${infer P}` ? `${P} ${M}:${D}` : never;

interface Unambiguous {
  readonly [unambiguous]: true;
}

type Unnamed<P extends string, Done extends string = ''> = P extends `${infer Head}/{${infer Name}}${infer Rest}` ? IsTemplate<Head, Name> extends true ? Rest extends '' | '$' ? `${Done}${Head}/{}${Rest}` : Rest extends `/${string}` ? Unnamed<Rest, `${Done}${Head}/{}`> : '' : '' : P extends Holding<'{' | '}'> ? '' : `${Done}${P}`;

type ValuesAt<Of, Key> = Of[keyof Of & Key];

declare const mark: unique symbol;

declare const parsed: unique symbol;

declare const unambiguous: unique symbol;
