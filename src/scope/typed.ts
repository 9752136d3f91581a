import { type CatalogOptions, type Expansion, ScopeCatalog } from './catalog.ts';

/**
 * The method of a scope: the names that editors should offer, or any other name in upper case. The
 * compiler checks only the case; its characters are checked when the scope is parsed.
 *
 * @example
 * const method: Method = 'PROPFIND'; // 'propfind' does not compile
 */
export type Method =
  | 'GET'
  | 'HEAD'
  | 'POST'
  | 'PUT'
  | 'PATCH'
  | 'DELETE'
  | 'OPTIONS'
  | 'TRACE'
  | 'CONNECT'
  | (Uppercase<string> & Apart);

/**
 * The outer shape of a scope: a method in upper case or `*`, a colon, a domain, a slash, a path. For
 * texts without a typed catalog. Only `parseScope` checks more than the shape.
 *
 * @example
 * const asked: ScopeText = 'GET:shop.example/orders'; // 'GET shop.example/orders' does not compile
 */
export type ScopeText = `${Uppercase<string>}:${string}/${string}`;

/**
 * A {@link ScopeCatalog} whose entries the compiler knows, as canonical texts: `{}`, not `{name}`.
 * The same object at run time, and accepted wherever a catalog is. For texts that are known only at
 * run time, `ScopeCatalog.from(catalog)` returns it without the types.
 */
export interface TypedCatalog<Entry extends string> extends ScopeCatalog {
  /**
   * Like {@link ScopeCatalog.expand}, but a pattern that overlaps no entry does not compile. Granted
   * scopes may be below an entry, so they are plain strings.
   */
  expand<const Asked extends string = never>(
    requested: readonly (Entry | Meeting<Entry, Asked>)[],
  ): Expansion;
  /** The entries, in canonical order. */
  toArray(): Entry[];
}

/**
 * The entries of a catalog, as a union of literals; `string` for a catalog without types. They are
 * canonical texts: `GET:shop.example/orders/{id}$` becomes `GET:shop.example/orders/{}$`.
 *
 * @example
 * const catalog = defineCatalog(['GET:shop.example/orders', 'POST:shop.example/orders']);
 * type ShopScope = CatalogScope<typeof catalog>;
 * // 'GET:shop.example/orders' | 'POST:shop.example/orders'
 */
export type CatalogScope<Catalog extends ScopeCatalog> = ReturnType<Catalog['toArray']>[number];

/**
 * The scopes that may be requested of a catalog: its entries, concrete scopes below them or with a
 * value in place of each `{}`, and wildcards that overlap them. For annotations. A template type cannot
 * stop at a slash, so this is less exact about `{}` than `expand` and {@link scopeIn}. It accepts
 * `GET:d/orders/1/2$` for the entry `GET:d/orders/{}$`, which `expand` refuses. It does not accept a
 * value for `{}` below a wildcard method or domain or in the first part of an entry, nor a `{}` where
 * an entry has a literal.
 *
 * The compiler writes out the whole union (about 20 members for each entry). `expand` and `scopeIn`
 * avoid this: prefer them for catalogs of more than about 500 entries.
 *
 * @example
 * const catalog = defineCatalog(['GET:shop.example/orders']);
 * const defaults: CatalogPattern<typeof catalog>[] = ['GET:shop.example/orders/open', '*:*.example/*'];
 */
export type CatalogPattern<Catalog extends ScopeCatalog> = PatternOf<CatalogScope<Catalog>>;

// A conditional type, not a union of two: messages show the entries instead of its name.
/**
 * The scopes that a method of a service accepts: if its catalog is typed, the entries, literals that
 * overlap one, and any `string` that is known only at run time; otherwise all texts. The compiler works
 * it out for each call. To annotate your own functions, use {@link CatalogPattern}.
 */
export type AskedScope<Entry extends string, Asked extends string> = string extends Entry | Asked
  ? string
  : Entry | Meeting<Entry, Asked>;

/**
 * Makes a catalog whose entries the compiler knows: a misspelled scope, or a wildcard that overlaps no
 * entry, does not compile. Neither does an entry with a wildcard, a method in lower case, a domain in
 * upper case, a path that is missing or ends in a slash, or a `{name}` that is not a whole segment.
 * The other rules of the grammar are checked at run time.
 *
 * @throws {ScopeError} as {@link ScopeCatalog.from}
 * @example
 * const catalog = defineCatalog(['GET:shop.example/orders', 'POST:shop.example/orders']);
 * catalog.expand(['*:shop.example/*']).granted; // both
 * catalog.expand(['GET:shop.example/order']); // does not compile
 */
export function defineCatalog<const Entry extends string = never>(
  entries: readonly CheckedEntries<Entry>[],
  options?: CatalogOptions,
): TypedCatalog<Canonical<Entry>> {
  return ScopeCatalog.from(entries, options) as TypedCatalog<Canonical<Entry>>;
}

/**
 * Returns one scope that a catalog knows, checked by the compiler and again at run time: an entry, a
 * scope that one covers, or a pattern that overlaps one. A `${string}` compiles below an open entry,
 * and where an entry has `{}`; a value that contains a slash may then be refused at run time.
 *
 * @throws {ScopeError} as {@link ScopeCatalog.expand}, if the compiler was bypassed
 * @example
 * const scope = scopeIn(catalog, 'GET:shop.example/orders');
 * await tokens.verify(value, { scope });
 * scopeIn(catalog, `GET:shop.example/orders/${id}`); // a scope below an entry
 */
export function scopeIn<Entry extends string, const Asked extends string>(
  catalog: TypedCatalog<Entry>,
  scope: Known<NoInfer<Entry>, Asked>,
): Asked {
  ScopeCatalog.from(catalog).expand([scope]);
  return scope as unknown as Asked;
}

/** Keeps a wide member of a union from swallowing the literals beside it. */
type Apart = Record<never, never>;

// The scopes that may be requested are defined twice, because each way is slow where the other is fast:
// `Meeting` checks one requested literal, `PatternOf` lists them all. A test holds them equal, except
// for `{}`.

/** The requested literals that overlap an entry. A whole `PatternOf` is recognized by its mark. */
type Meeting<Entry extends string, Asked extends string> = string extends Asked
  ? never
  : [Mark<Entry>] extends [Asked]
    ? PatternIn<Entry, Asked>
    : EachMeeting<Entry, Asked>;

/** The same, or the entries, so that the compiler's message names them. */
type Known<Entry extends string, Asked extends string> = [Meeting<Entry, Asked>] extends [never]
  ? Entry
  : Meeting<Entry, Asked>;

type EachMeeting<Entry extends string, Asked extends string> = Asked extends Entry
  ? Asked
  : Asked extends `${infer M}:${infer D}/${infer P}`
    ? Meets<Entry, EndpointsAt<EndpointOf<Entry>, M, D>, D, P> extends true
      ? Asked
      : never
    : never;

/** Whether the endpoints of entries have a path that overlaps a requested one. */
type Meets<Entry extends string, Endpoint extends string, D extends string, P extends string> = [
  Endpoint,
] extends [never]
  ? false
  : P extends '*'
    ? true
    : CanonicalPath<P> extends `/${infer Path}`
      ? IsCovered<Entry, Endpoint, D, Path> extends true
        ? true
        : Reaches<Turned<Entry>, Endpoint, Path>
      : false;

/**
 * Whether an entry covers a path, the most frequent case. Writes out all entries that could cover it
 * and looks them up, which costs the same for any catalog. Limited to paths of up to 8 segments at one
 * domain, because each segment can be written in 2 ways.
 */
type IsCovered<
  Entry extends string,
  Endpoint extends string,
  D extends string,
  P extends string,
> = D extends `*${string}`
  ? false
  : P extends Long | '$'
    ? false
    : IsCoveredBelow<Entry, `${Endpoint}/`, P>;

type Long = `${Some}/${Some}/${Some}/${Some}/${string}`;
type Some = `${string}/${string}`;

type IsCoveredBelow<
  Entry extends string,
  Head extends string,
  P extends string,
> = P extends `${infer First}/${infer Others}`
  ? IsOneOf<Entry, `${Head}${OpenEnd<EntrySegment<First>>}`> extends false
    ? IsCoveredBelow<Entry, `${Head}${EntrySegment<First>}/`, Others>
    : true
  : P extends `${infer Last}$`
    ? IsOneOf<Entry, `${Head}${OpenEnd<EntrySegment<Last>> | `${EntrySegment<Last>}$`}`>
    : IsOneOf<Entry, `${Head}${EntrySegment<P>}${'' | '$'}`>;

/** The segments that an open path can end in: a final `$` would close it. */
type OpenEnd<Segment extends string> = Exclude<Segment, `${string}$`>;

type IsOneOf<Entry extends string, Text extends string> = [Entry & Text] extends [never]
  ? false
  : true;

/** The segments of an entry that match a requested one: if that is not a literal, only `{}`. */
type EntrySegment<Segment extends string> =
  | '{}'
  | (Apart extends Record<Segment, 1> ? never : Segment);

// A component that is not a literal (such as the `string` of a template) must match nothing here, so
// these types look literals up in unions instead of matching by template.

type EndpointOf<Entry extends string> = Entry extends `${infer M}:${infer D}/${string}`
  ? `${M}:${D}`
  : never;

/** The endpoints that a method and a domain overlap. */
type EndpointsAt<
  Endpoint extends string,
  M extends string,
  D extends string,
> = Endpoint extends `${infer EntryM}:${infer EntryD}`
  ? M extends '*' | EntryM
    ? D extends '*' | EntryD | ParentsOf<EntryD>
      ? Endpoint
      : never
    : never
  : never;

/** `*.b.c` and `*.c` of `a.b.c`. */
type ParentsOf<D extends string> = D extends `${string}.${infer Parent}`
  ? `*.${Parent}` | ParentsOf<Parent>
  : never;

/** An entry with its path first, to read it segment by segment: `orders/{}$ GET:d.example`. */
type Turned<Entry extends string> = Entry extends `${infer M}:${infer D}/${infer P}`
  ? `${P} ${M}:${D}`
  : never;

/**
 * Whether a path overlaps one of some turned entries. Follows all entries together, segment by
 * segment, whatever their endpoints, so that all requested scopes share the same unions. At its end,
 * an open entry leaves ` GET:d` and a closed one `$ GET:d`.
 */
type Reaches<Left, Endpoint extends string, P extends string> = [Left & ` ${Endpoint}`] extends [
  never,
]
  ? P extends ''
    ? [Extract<Left, `${string} ${Endpoint}`>] extends [never]
      ? false
      : true
    : P extends '$'
      ? [Left & `$ ${Endpoint}`] extends [never]
        ? false
        : true
      : [Left] extends [never]
        ? false
        : P extends `${infer First}/${infer Others}`
          ? Reaches<Below<Left, First>, Endpoint, Others>
          : P extends `${infer Last}$`
            ? Reaches<Below<Left, Last>, Endpoint, '$'>
            : Reaches<Below<Left, P>, Endpoint, ''>
  : true;

/** The rest of some turned entries below a segment. */
type Below<Left, Segment extends string> = Segment extends '{}'
  ? ValuesAt<Children<Left>, unknown>
  : ValuesAt<Children<Left>, EntrySegment<Segment>>;

/** TypeScript 5.4 cannot index a mapped type whose keys it has not resolved. */
type ValuesAt<Of, Key> = Of[keyof Of & Key];

type Children<Left> = { [L in Left & string as FirstOf<L>]: OthersOf<L> };

type FirstOf<L extends string> = L extends `${infer First}/${string}`
  ? First
  : L extends `$ ${string}` | ` ${string}`
    ? never
    : L extends `${infer Last}$ ${string}`
      ? Last
      : L extends `${infer Last} ${string}`
        ? Last
        : never;

type OthersOf<L extends string> = L extends `${string}/${infer Others}`
  ? Others
  : L extends `${string}$ ${infer Endpoint}`
    ? `$ ${Endpoint}`
    : L extends `${string} ${infer Endpoint}`
      ? ` ${Endpoint}`
      : never;

type PatternOf<Entry extends string> = Mark<Entry> | EachPattern<Entry>;

// A template type cannot say "one segment": its `${string}` matches slashes, too. So the `{}` of an entry
// is filled only in the whole entry, where a misspelled text beside it is still refused.
type EachPattern<Entry extends string> = Entry extends `${infer M}:${infer D}/${infer P}`
  ?
      | `${EachEndpoint<M, D>}/${PrefixesOf<P> | '*'}`
      | (`${EachEndpoint<M, D>}/${BelowOf<P>}` & Apart)
      | (`${M}:${D}/${FilledOf<P>}` & Apart)
  : never;

type EachEndpoint<M extends string, D extends string> = `${M | '*'}:${D | ParentsOf<D> | '*'}`;

/** `a`, `a/b`, `a/b/c` and `a/b/c$` of `a/b/c` and of `a/b/c$`. */
type PrefixesOf<P extends string, Head extends string = ''> = P extends '$'
  ? '$'
  : P extends `${infer First}/${infer Rest}`
    ? `${Head}${OpenEnd<First>}` | PrefixesOf<Rest, `${Head}${First}/`>
    : P extends `${infer Last}$`
      ? `${Head}${OpenEnd<Last> | P}`
      : `${Head}${P}${'' | '$'}`;

/** The paths below an open path. */
type BelowOf<P extends string> = P extends `${string}$` ? never : `${P}/${string}`;

/** A path with any value for each `{}`, if it has some. */
type FilledOf<P extends string> =
  P extends Holding<'{}'>
    ? P extends `${string}$`
      ? Filled<P>
      : `${Filled<P>}${'' | '$' | `/${string}`}`
    : never;

type Filled<P extends string> = P extends `${infer Head}{}${infer Rest}`
  ? `${Head}${string}${Filled<Rest>}`
  : P;

declare const mark: unique symbol;

/** A member that no string is assignable to. */
type Mark<Entry extends string> = string & Marked<Entry>;

/** Holds the union in a member, which the compiler resolves lazily. */
interface Marked<Entry extends string> {
  readonly [mark]: { readonly entry: Entry; readonly pattern: PatternOf<Entry> };
}

type PatternIn<Entry extends string, Asked extends string> = Asked extends {
  readonly [mark]: { readonly entry: Entry; readonly pattern: infer Pattern extends string };
}
  ? Pattern
  : never;

/** The entries as they were written. Checks each one only if there is a wrong one. */
type CheckedEntries<Entry extends string> = [Canonical<Entry>] extends [ScopeText]
  ? Entry
  : EachChecked<Entry>;

type EachChecked<Entry extends string> = Entry extends unknown ? CheckedEntry<Entry> : never;

/** An entry, or a text that says what is wrong with it. */
type CheckedEntry<Entry extends string> =
  Canonical<Entry> extends ScopeText
    ? Entry
    : string extends Entry
      ? 'a catalog of texts known at run time only is made by ScopeCatalog.from'
      : `not a catalog entry: ${EntryFault<Entry>}`;

type EntryFault<Entry extends string> = Entry extends `${infer M}:${infer D}/${infer P}`
  ? MethodFault<M> | DomainFault<D> | PathFault<P>
  : 'it must have a method, a domain and a path, as "GET:shop.example/orders"';

/**
 * The canonical text of an entry, or `''` if it is wrong. Entries share methods, domains and paths, so
 * each of these is checked once; the reason is worked out later.
 */
type Canonical<Entry extends string> = Entry extends `${infer M}:${infer D}/${infer P}`
  ? [MethodFault<M> | DomainFault<D>] extends [never]
    ? `${M}:${D}${CanonicalPath<P>}`
    : ''
  : '';

/** The path with its slash, or `''` if it is wrong. */
type CanonicalPath<P extends string> = P extends BadPath ? '' : Unnamed<`/${P}`>;

/** A path without the names in `{name}`, like that of a parsed scope. */
type Unnamed<
  P extends string,
  Done extends string = '',
> = P extends `${infer Head}/{${infer Name}}${infer Rest}`
  ? IsTemplate<Head, Name> extends true
    ? Rest extends '' | '$'
      ? `${Done}${Head}/{}${Rest}`
      : Rest extends `/${string}`
        ? Unnamed<Rest, `${Done}${Head}/{}`>
        : ''
    : ''
  : P extends Holding<'{' | '}'>
    ? ''
    : `${Done}${P}`;

type IsTemplate<Head extends string, Name extends string> =
  Name extends Holding<'{' | '/'> ? false : Head extends Holding<'}'> ? false : true;

type BadPath = '' | `/${string}` | `${string}/` | `${string}/$` | Holding<BadInPath>;
type BadInPath = '//' | '*' | '?' | '#' | '%' | ' ';

type MethodFault<M extends string> = M extends ''
  ? 'the method is missing'
  : M extends Holding<'*'>
    ? 'the method must not be a wildcard'
    : M extends Holding<'/' | ' '>
      ? 'it must begin with a method and a colon'
      : M extends Uppercase<M>
        ? never
        : `the method must be in upper case, "${Uppercase<M>}"`;

type DomainFault<D extends string> = D extends ''
  ? 'the domain is missing'
  : D extends Holding<'*'>
    ? 'the domain must not hold a wildcard'
    : D extends Holding<':' | '@' | '_' | '%' | ' '>
      ? 'the domain must be a plain host name'
      : D extends Lowercase<D>
        ? never
        : `the domain must be in lower case, "${Lowercase<D>}"`;

type PathFault<P extends string> = P extends ''
  ? 'the path is missing'
  : P extends Holding<'*'>
    ? 'the path must not hold a wildcard'
    : P extends `${string}/` | `${string}/$`
      ? 'the path must not end in a slash'
      : P extends `/${string}` | Holding<'//'>
        ? 'the path must not hold an empty segment'
        : P extends Holding<'?' | '#' | '%' | ' '>
          ? 'the path must hold no query, no "%" and no space'
          : CanonicalPath<P> extends ''
            ? 'the path must hold braces around whole segments only, "{}" or "{name}"'
            : never;

type Holding<Part extends string> = `${string}${Part}${string}`;
