import { type Expansion, ScopeCatalog } from './catalog.ts';

/**
 * A method as a scope names it: those that editors should offer, and any other name in upper case.
 * The compiler checks the case alone; which characters a name may hold is checked when it is parsed.
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
 * The outer shape of a scope: a method in upper case or `*`, a colon, a domain, a slash, a path.
 * For texts that no catalog is known of; what is below the shape is checked by `parseScope` alone.
 *
 * @example
 * const asked: ScopeText = 'GET:shop.example/orders'; // 'GET shop.example/orders' does not compile
 */
export type ScopeText = `${Uppercase<string>}:${string}/${string}`;

/**
 * A {@link ScopeCatalog} of which the compiler knows the entries. The same object at run time, and
 * taken wherever a catalog is; `ScopeCatalog.from(catalog)` gives it back without the types, for
 * texts that are known at run time only.
 */
export interface TypedCatalog<Entry extends string> extends ScopeCatalog {
  /**
   * As {@link ScopeCatalog.expand}, for patterns that the compiler has checked: one that meets no
   * entry does not compile. What is granted may lie below an entry, so it is a list of strings.
   */
  expand<const Asked extends string = never>(
    requested: readonly (Entry | Meeting<Entry, Asked>)[],
  ): Expansion;
  /** The entries, in canonical order. */
  toArray(): Entry[];
}

/**
 * The entries of a catalog, as a union of literals; `string` for a catalog without types.
 *
 * @example
 * const catalog = defineCatalog(['GET:shop.example/orders', 'POST:shop.example/orders']);
 * type ShopScope = CatalogScope<typeof catalog>;
 * // 'GET:shop.example/orders' | 'POST:shop.example/orders'
 */
export type CatalogScope<Catalog extends ScopeCatalog> = ReturnType<Catalog['toArray']>[number];

/**
 * All that may be asked of a catalog: its entries, concrete scopes below them, and wildcards that
 * meet them. For annotations. The compiler writes the whole union out (some 20 members for each
 * entry), which `expand` and {@link scopeIn} avoid: over some 500 entries prefer those.
 *
 * @example
 * const catalog = defineCatalog(['GET:shop.example/orders']);
 * const defaults: CatalogPattern<typeof catalog>[] = ['GET:shop.example/orders/open', '*:*.example/*'];
 */
export type CatalogPattern<Catalog extends ScopeCatalog> = PatternOf<CatalogScope<Catalog>>;

/**
 * Makes a catalog whose entries the compiler knows: a misspelt scope, or a wildcard that meets no
 * entry, is then an error of compilation. An entry with a wildcard, a method in lower case, a
 * domain in upper case or a path that is missing or ends in a slash does not compile either; the
 * finer rules of the grammar are checked at run time.
 *
 * @throws {ScopeError} as {@link ScopeCatalog.from}
 * @example
 * const catalog = defineCatalog(['GET:shop.example/orders', 'POST:shop.example/orders']);
 * catalog.expand(['*:shop.example/*']).granted; // both
 * catalog.expand(['GET:shop.example/order']); // does not compile
 */
export function defineCatalog<const Entries extends readonly string[]>(
  entries: CheckedEntries<Entries>,
): TypedCatalog<Entries[number]> {
  return ScopeCatalog.from(entries as unknown as Entries) as TypedCatalog<Entries[number]>;
}

/**
 * Gives back one scope that a catalog knows, checked by the compiler and again at run time: an
 * entry, a scope below one, or a wildcard that meets one.
 *
 * @throws {ScopeError} as {@link ScopeCatalog.expand}, where the compiler was got round
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

// What may be asked for is said twice, because each way is slow where the other is fast: `Meeting`
// looks at the one literal that is asked for, `PatternOf` lists them all. A test holds them equal.

/** Those of some literals that meet an entry. A whole `PatternOf` is known by its mark. */
type Meeting<Entry extends string, Asked extends string> = string extends Asked
  ? never
  : [Mark<Entry>] extends [Asked]
    ? PatternIn<Entry, Asked>
    : EachMeeting<Entry, Asked>;

/** The same, or the entries, for a message that names them. */
type Known<Entry extends string, Asked extends string> = [Meeting<Entry, Asked>] extends [never]
  ? Entry
  : Meeting<Entry, Asked>;

type EachMeeting<Entry extends string, Asked extends string> = Asked extends Entry
  ? Asked
  : Asked extends `${infer M}:${infer D}/${infer P}`
    ? MeetsPath<PathOf<WithMethod<WithDomain<Entry, D> & string, M>>, P> extends true
      ? Asked
      : never
    : never;

// A component that is not a literal (`string`, of a template) has to meet nothing here, hence the
// look-ups in unions of literals instead of matching by template.

type WithDomain<Entry extends string, D extends string> = D extends '*'
  ? Entry
  : D extends DomainOf<Entry>
    ? ByDomain<Entry>[D]
    : D extends ParentsOf<DomainOf<Entry>>
      ? D extends `*${infer Suffix}`
        ? ByDomain<Entry>[Extract<DomainOf<Entry>, `${string}${Suffix}`>]
        : never
      : never;

type WithMethod<Entry extends string, M extends string> = M extends '*'
  ? Entry
  : M extends MethodOf<Entry>
    ? Extract<Entry, `${M}:${string}`>
    : never;

type MeetsPath<Paths extends string, P extends string> = [Paths] extends [never]
  ? false
  : P extends '*' | PrefixesOf<Paths>
    ? true
    : [Extract<PrefixesOf<P>, Paths>] extends [never]
      ? false
      : true;

type MethodOf<Entry extends string> = Entry extends `${infer M}:${string}` ? M : never;
type DomainOf<Entry extends string> = Entry extends `${string}:${infer D}/${string}` ? D : never;
type PathOf<Entry extends string> = Entry extends `${string}:${string}/${infer P}` ? P : never;
type ByDomain<Entry extends string> = { [E in Entry as DomainOf<E>]: E };

/** `*.b.c` and `*.c` of `a.b.c`. */
type ParentsOf<D extends string> = D extends `${string}.${infer Parent}`
  ? `*.${Parent}` | ParentsOf<Parent>
  : never;

/** `a`, `a/b` and `a/b/c` of `a/b/c`. */
type PrefixesOf<
  P extends string,
  Head extends string = '',
> = P extends `${infer First}/${infer Rest}`
  ? `${Head}${First}` | PrefixesOf<Rest, `${Head}${First}/`>
  : `${Head}${P}`;

type PatternOf<Entry extends string> = Mark<Entry> | EachPattern<Entry>;

type EachPattern<Entry extends string> = Entry extends `${infer M}:${infer D}/${infer P}`
  ?
      | `${M | '*'}:${D | ParentsOf<D> | '*'}/${PrefixesOf<P> | '*'}`
      | (`${M | '*'}:${D | ParentsOf<D> | '*'}/${P}/${string}` & Apart)
  : never;

declare const mark: unique symbol;

/** A member that no string is assignable to. */
type Mark<Entry extends string> = string & Marked<Entry>;

/** Holds the union where the compiler comes to see it only when it is looked for. */
interface Marked<Entry extends string> {
  readonly [mark]: { readonly entry: Entry; readonly pattern: PatternOf<Entry> };
}

type PatternIn<Entry extends string, Asked extends string> = Asked extends {
  readonly [mark]: { readonly entry: Entry; readonly pattern: infer Pattern extends string };
}
  ? Pattern
  : never;

type CheckedEntries<Entries extends readonly string[]> = {
  readonly [Place in keyof Entries]: CheckedEntry<Entries[Place]>;
};

/** An entry, or a text in its place that says what is wrong with it. */
type CheckedEntry<Entry extends string> = string extends Entry
  ? 'a catalog of texts known at run time only is made by ScopeCatalog.from'
  : Entry extends `${infer M}:${infer D}/${infer P}`
    ? [MethodFault<M> | DomainFault<D> | PathFault<P>] extends [never]
      ? Entry
      : `not a catalog entry: ${MethodFault<M> | DomainFault<D> | PathFault<P>}`
    : 'not a catalog entry: it must have a method, a domain and a path, as "GET:shop.example/orders"';

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
    : P extends `${string}/`
      ? 'the path must not end in a slash'
      : P extends `/${string}` | Holding<'//'>
        ? 'the path must not hold an empty segment'
        : P extends Holding<'?' | '#' | '%' | '{' | '}' | ' '>
          ? 'the path must hold no query, no "%" and no {template}'
          : never;

type Holding<Part extends string> = `${string}${Part}${string}`;
