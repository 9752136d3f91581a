import { getOrMake } from './collections.ts';
import type { Scope } from './grammar.ts';
import { ScopeSet } from './set.ts';

/** Something in a catalog that is allowed but probably not intended. */
export interface LintFinding {
  /**
   * `nested`: an entry is below another one that is open, so a token with the outer one has both, and
   * everything that is added below it later. `token_service`: an entry is the token service itself, so
   * a token with it can mint tokens. `apex`: a host has others below it, whose wildcard `*.` does not
   * include it. `parameter`: a segment begins with `:`, like the parameter of a route. It matches only
   * that text; use `{}` to match any segment.
   */
  readonly code: 'nested' | 'token_service' | 'apex' | 'parameter';
  /** The entries in question, in canonical order. */
  readonly scopes: readonly string[];
  /** What it means, for people. */
  readonly message: string;
}

/** Segments that begin with a colon, without the end mark. */
const PARAMETER = /(?<=^|\/):[^/$][^/]*?(?=\/|\$?$)/g;

/** @param entries in canonical order */
export function lint(entries: readonly Scope[]): LintFinding[] {
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
  for (const entry of entries) {
    const parameter = routeParameter(entry);
    if (parameter === undefined) continue;
    const { name, meant } = parameter;
    add('parameter', [entry], `${entry} stands for "${name}" alone; ${meant} stands for any`);
  }
  return found;
}

/** The first segment of a scope that is like the parameter of a route, and the scope that was meant. */
export function routeParameter({
  method,
  domain,
  path,
}: Scope): { readonly name: string; readonly meant: string } | undefined {
  const [name] = path.match(PARAMETER) ?? [];
  if (name === undefined) return undefined;
  return { name, meant: `${method}:${domain}/${path.replace(PARAMETER, '{}')}` };
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
