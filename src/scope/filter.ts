import { pathCovers, pathMeet } from './algebra.ts';
import { makeScope, type Scope, safeParseScope } from './grammar.ts';
import { candidatesOf, isReadRequest, type ReadRequest } from './request.ts';

/** How a held scope must relate to the scope that is searched for. */
export type ScopeMatch = 'overlaps' | 'covers' | 'exact';

/**
 * Decides whether one of a list of canonical texts overlaps a scope, covers it or equals it, like
 * `ScopeSet.overlaps` and `ScopeSet.covers`. Does not parse the list, because a search looks at many
 * held scopes and few match. Never throws: a text that is not a scope matches nothing.
 */
export function scopeFilter(scope: Scope, match: ScopeMatch): (held: readonly string[]) => boolean {
  const wanted = scope.toString();
  if (match === 'exact') return (held) => held.includes(wanted);
  const isMatch = matching(scope, match);
  return (held) => {
    for (let i = 0; i < held.length; i++) {
      const text = held[i] as string;
      // A match is parsed, because a text may merely look like a scope.
      if (isMatch(text) && safeParseScope(text).ok) return true;
    }
    return false;
  };
}

/** {@link scopeFilter} for each one of several scopes; `undefined` for none. */
export function scopesFilter(
  scopes: readonly Scope[],
  match: ScopeMatch,
): ((held: readonly string[]) => boolean) | undefined {
  const filters = scopes.map((scope) => scopeFilter(scope, match));
  return filters.length === 0 ? undefined : (held) => filters.every((isWanted) => isWanted(held));
}

/**
 * The canonical texts of a list that cover a need, and perhaps a few more. A set of them decides like
 * a set of the whole list, which takes longer to compile.
 */
export function candidatesFor(need: ReadRequest | Scope, held: readonly string[]): string[] {
  if (!isReadRequest(need)) return selected(held, matching(need, 'covers'));
  const { method, domain } = need;
  const matches = candidatesOf(need).map(({ path: { text, start, end } }) =>
    matching(makeScope(method, domain, `${text.slice(start, end)}$`), 'covers'),
  );
  return selected(held, (text) => matches.some((isMatch) => isMatch(text)));
}

/** By index, because `filter` takes twice as long for a frozen list. */
function selected(held: readonly string[], isWanted: (text: string) => boolean): string[] {
  const wanted: string[] = [];
  for (let i = 0; i < held.length; i++) {
    const text = held[i] as string;
    if (isWanted(text)) wanted.push(text);
  }
  return wanted;
}

/** Tests a part of a text without slicing it out, which would allocate. */
type IsMatch = (text: string, start: number, end: number) => boolean;

/** Compares the method first, then the domain: they are the cheapest. */
function matching(scope: Scope, match: ScopeMatch): (text: string) => boolean {
  const method = methodMatch(scope.method, match);
  const isDomain = domainMatch(scope.domain, match);
  const isPath = pathMatch(scope.path, match);
  return (text) => {
    const start = method(text);
    if (start === 0) return false;
    const slash = text.indexOf('/', start);
    return slash !== -1 && isDomain(text, start, slash) && isPath(text, slash + 1, text.length);
  };
}

/** The start of the domain, or 0 when the method does not match. */
function methodMatch(method: string, match: ScopeMatch): (text: string) => number {
  if (method === '*' && match === 'overlaps') return (text) => text.indexOf(':') + 1;
  const exact = `${method}:`;
  return (text) => {
    if (text.startsWith(exact)) return exact.length;
    return text.startsWith('*:') ? 2 : 0;
  };
}

function domainMatch(domain: string, match: ScopeMatch): IsMatch {
  const isWide = match === 'overlaps' && domain.startsWith('*');
  const below = domain.slice(1);
  return (text, start, end) => {
    if (text.startsWith(domain, start) && end - start === domain.length) return true;
    if (isWide && text.endsWith(below, end)) return true;
    if (text[start] !== '*') return false;
    return end - start === 1 || domain.endsWith(text.slice(start + 1, end));
  };
}

function pathMatch(path: string, match: ScopeMatch): IsMatch {
  if (match === 'covers') return (text, start) => pathCovers(text.slice(start), path);
  return (text, start) => pathMeet(text.slice(start), path) !== '';
}
