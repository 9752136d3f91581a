import { TokenError } from '../errors.ts';
import { type CatalogOption, isCatalog } from '../inputs/options.ts';
import type { KnownScopes } from '../scope/explain.ts';
import { toScope } from '../scope/grammar.ts';
import type { Scope, ScopeCatalog } from '../scope/index.ts';
import {
  isReadRequest,
  pathTextOfRequest,
  type Routes,
  routesOfRequest,
} from '../scope/request.ts';
import { candidatesAmong, fold } from '../scope/routes.ts';
import { withDeadline } from '../time/deadline.ts';

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

  /** The catalog that all accounts share, if they do. */
  get shared(): ScopeCatalog | undefined {
    return typeof this.#option === 'function' ? undefined : this.#option;
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
  return ownRoutesOf(catalog) ?? foreignRoutesOf(catalog);
}

/** Knows only the best entry of each reading: with literals as they are, or as the loosest router does. */
function foreignRoutesOf(catalog: ScopeCatalog): Routes {
  const entryAt = (method: string, domain: string, path: string) =>
    askCatalog(() => {
      const entry = catalog.attribute({ method, domain, target: `/${path}` });
      return entry && toScope(entry);
    });
  const isSlashed = ({ path }: Scope) => path === '$';
  return {
    attribute: ({ method, domain, path }) => entryAt(method, domain, path),
    isSettled: () => false,
    candidates: (request) => {
      const { method, domain } = request;
      const methods = method === 'HEAD' ? [method, 'GET'] : [method];
      const search = (segments: readonly string[]) => {
        const paths = new Set([segments, segments.map(fold)].map(asPath));
        return [...paths].flatMap((path) =>
          methods.flatMap((one) => entryAt(one, domain, path) ?? []),
        );
      };
      return candidatesAmong(pathTextOfRequest(request), search, isSlashed);
    },
  };
}

/** Writes segments so that `attribute` does not decode them: no literal has a percent sign. */
function asPath(segments: readonly string[]): string {
  return segments
    .join('/')
    .replaceAll('%', '\u00a4')
    .replace(/[^\w\-.~!$&'()*+,=:@/]+/gu, encodeURIComponent);
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
