import { withDeadline } from '../deadline.ts';
import { TokenError } from '../errors.ts';
import { type CatalogOption, isCatalog } from '../options.ts';
import { toScope } from '../scope/grammar.ts';
import type { KnownScopes, ReadRequest, Scope, ScopeCatalog } from '../scope/index.ts';
import { isReadRequest, type Routes, routesOfRequest, segmentBits } from '../scope/request.ts';

/**
 * The catalogs of accounts. A catalog may be an implementation of the host: call its methods only inside
 * {@link askCatalog} or {@link asFarAsKnown}, so that its errors do not leave the service.
 */
export class AccountCatalogs {
  readonly #option: CatalogOption | undefined;
  readonly #deadlineMs: number;
  /** The routes by which requests are read, if all accounts share one catalog. */
  readonly routes: Routes | undefined;

  constructor(option: CatalogOption | undefined, deadlineMs: number) {
    this.#option = option;
    this.#deadlineMs = deadlineMs;
    this.routes =
      option === undefined || typeof option === 'function' ? undefined : routesOf(option);
  }

  /** Whether a function of the host returns the catalog of each account. */
  get arePerAccount(): boolean {
    return typeof this.#option === 'function';
  }

  /** The catalog of an account; a promise of it if a function of the host has to be called. */
  of(account: string): ScopeCatalog | undefined | Promise<ScopeCatalog> {
    const option = this.#option;
    return typeof option === 'function' ? this.#ask(option, account) : option;
  }

  async #ask(
    catalogOf: Extract<CatalogOption, (account: string) => unknown>,
    account: string,
  ): Promise<ScopeCatalog> {
    try {
      const catalog = await withDeadline(Promise.resolve(catalogOf(account)), this.#deadlineMs);
      if (isCatalog(catalog)) return catalog;
    } catch {
      // An error of the host's function may hold anything, so it is dropped.
    }
    throw catalogUnavailable();
  }
}

/** The routes of a catalog. If another copy of the package or the host made it, asks its `attribute`. */
function routesOf(catalog: ScopeCatalog): Routes {
  const attribute = (request: ReadRequest): Scope | undefined =>
    askCatalog(() => {
      const { method, domain, path } = request;
      const entry = catalog.attribute({ method, domain, target: `/${path}` });
      return entry && toScope(entry);
    });
  const namedSegments = (request: ReadRequest): number => {
    const entry = attribute(request);
    return entry === undefined ? 0 : segmentBits(entry.path, false);
  };
  return ownRoutesOf(catalog) ?? { attribute, namedSegments };
}

function ownRoutesOf(catalog: ScopeCatalog): Routes | undefined {
  try {
    const reading = catalog.readRequest({ method: 'GET', domain: 'a.example', target: '/' });
    const isOwn = reading.ok && isReadRequest(reading.request);
    return isOwn ? routesOfRequest(reading.request) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Asks a catalog.
 *
 * @throws {TokenError} `store_unavailable`, whatever the catalog throws
 */
export function askCatalog<Answer>(ask: () => Answer): Answer {
  try {
    return ask();
  } catch {
    throw catalogUnavailable();
  }
}

/** Stands in for a catalog that failed: has no entry and calls no scope unknown. */
const NO_FACTS: KnownScopes = {
  attribute: () => undefined,
  knows: () => true,
  suggest: () => [],
};

/** Computes an answer with the facts of a catalog, or without them if the catalog throws. */
export function asFarAsKnown<Answer>(
  catalog: KnownScopes | undefined,
  ask: (facts: KnownScopes | undefined) => Answer,
): Answer {
  try {
    return ask(catalog);
  } catch {
    return ask(NO_FACTS);
  }
}

/** The error for a catalog that failed, so that the scopes of the account are unknown. */
export function catalogUnavailable(): TokenError {
  return new TokenError(
    'store_unavailable',
    'the catalog of this account is unavailable; try again later',
  );
}
