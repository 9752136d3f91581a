import { type Scope, ScopeSet } from '../../../../scope/index.ts';
import { ScopeLookup } from '../../../../scope/lookup.ts';
import { segmentBits } from '../../../../scope/request.ts';

/**
 * Scopes as a service with a catalog reads them: a `{}` stands for no segment that an endpoint
 * names. So `GET:shop.example/users/{}$` does not cover `GET:shop.example/users/me$` if that is an
 * endpoint of its own. Without the catalog, any other scope counts as one.
 */
export class Rights {
  /** In canonical order, without duplicates. */
  readonly #scopes: readonly Scope[];
  readonly #lookup: ScopeLookup;
  readonly #catalog: ScopeSet | undefined;

  constructor(scopes: Iterable<Scope | string>, catalog?: ScopeSet) {
    this.#scopes = [...ScopeSet.from(scopes)];
    this.#lookup = new ScopeLookup(this.#scopes);
    this.#catalog = catalog;
  }

  /** The most specific of the scopes that covers another one. */
  coverOf(scope: Scope, except?: number): Scope | undefined {
    const endpoint = this.#catalog?.coverOf(scope) ?? scope;
    return this.#lookup.coverOf(scope, segmentBits(endpoint.path, false), except);
  }

  equals(other: Rights): boolean {
    return this.missing(other).length === 0 && other.missing(this).length === 0;
  }

  /** The scopes of `other` that none of these covers. */
  missing(other: Rights): readonly string[] {
    return other.#scopes.filter((scope) => this.coverOf(scope) === undefined).map(String);
  }

  /** The scopes that no other one covers. */
  fewest(): readonly string[] {
    return this.#scopes
      .filter((scope, index) => this.coverOf(scope, index) === undefined)
      .map(String);
  }
}
