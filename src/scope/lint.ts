import { pathCovers } from './algebra.ts';
import { getOrMake } from './collections.ts';
import type { Scope } from './grammar.ts';
import { type OverlapIndex, patternsOf } from './overlap.ts';
import { foldEntries } from './routes.ts';
import { ScopeSet } from './set.ts';

/** Something in a catalog that is allowed but probably not intended. */
export interface LintFinding {
  /**
   * `nested`: an entry is below another one that is open, so a token with the outer one has both, and
   * everything that is added below it later. `token_service`: an entry is the token service itself, so
   * a token with it can mint tokens. `apex`: a host has others below it, whose wildcard `*.` does not
   * include it. `case`: entries differ only in the case of their letters,
   * and routers that ignore case serve one of them for all. `crossing`: an entry and others overlap, and
   * none is more specific, so the order of the routes decides. A request of several entries needs all of
   * them.
   */
  readonly code: 'nested' | 'token_service' | 'apex' | 'case' | 'crossing';
  /** The entries in question, in canonical order. */
  readonly scopes: readonly string[];
  /** What it means, for people. */
  readonly message: string;
}

/**
 * @param entries in canonical order
 * @param index of the entries
 */
export function lint(entries: readonly Scope[], index: OverlapIndex): LintFinding[] {
  const found: LintFinding[] = [];
  const add = (code: LintFinding['code'], scopes: readonly Scope[], message: string): void => {
    found.push({ code, scopes: scopes.map(String), message });
  };
  const open = ScopeSet.from(entries.filter(({ path }) => !path.endsWith('$'))).minimize();
  for (const entry of entries) {
    const outer = open.coverOf(entry);
    if (outer === undefined || outer === entry) continue;
    add(
      'nested',
      [outer, entry],
      `${outer} opens ${entry} and all that is added below it; ${outer}$ does not`,
    );
  }
  for (const entry of entries) {
    if (!/(?:^|\/)token\$?$/.test(entry.path)) continue;
    add('token_service', [entry], `${entry} may be a token service, which *:*/* would open`);
  }
  for (const [domain, missed] of apexesOf(entries)) {
    add('apex', missed, `*.${domain} is every host below ${domain}, and not ${domain}`);
  }
  for (const { originals } of foldEntries(entries).values()) {
    if (originals.length === 1) continue;
    add('case', originals, `routers that ignore case serve only one of ${originals.join(', ')}`);
  }
  for (const entry of entries) {
    const others = crossedBy(entry, index);
    if (others.length === 0) continue;
    add(
      'crossing',
      [entry, ...others],
      `the order of the routes decides whether ${entry} or ${others.join(', ')} serves a request of both`,
    );
  }
  return found;
}

/** Crossing entries that are looked at for one entry. */
const MAX_CROSSINGS = 100;

/** The later entries that cross an entry: they overlap, and neither covers the other. */
function crossedBy(entry: Scope, index: OverlapIndex): Scope[] {
  return index
    .find('crossing', patternsOf(entry), MAX_CROSSINGS)
    .filter((other) => String(entry) < String(other) && !pathCovers(other.path, entry.path));
}

/** The entries of hosts that have other hosts below them, by host. */
function apexesOf(entries: readonly Scope[]): Map<string, Scope[]> {
  const parents = new Set<string>();
  for (const { domain } of entries) {
    for (let dot = domain.indexOf('.'); dot !== -1; dot = domain.indexOf('.', dot + 1)) {
      parents.add(domain.slice(dot + 1));
    }
  }
  const apexes = new Map<string, Scope[]>();
  for (const entry of entries) {
    if (parents.has(entry.domain)) getOrMake(apexes, entry.domain, () => []).push(entry);
  }
  return apexes;
}
