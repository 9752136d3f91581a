import { makeScope, type Scope, toScope } from './grammar.ts';

/**
 * Whether every request that `inner` allows, `outer` allows too. The one relation that decides
 * access.
 *
 * @throws {ScopeError} when a text is not a scope
 * @example
 * covers('GET:*.shop.example/*', 'GET:eu.shop.example/orders'); // true
 * covers('GET:shop.example/orders', 'GET:shop.example/orders2'); // false: a path ends at a slash
 */
export function covers(outer: Scope | string, inner: Scope | string): boolean {
  const a = toScope(outer);
  const b = toScope(inner);
  return (
    methodCovers(a.method, b.method) &&
    domainCovers(a.domain, b.domain) &&
    pathCovers(a.path, b.path)
  );
}

/**
 * Whether some request is allowed by both. For searching and listing; never decides access.
 *
 * @throws {ScopeError} when a text is not a scope
 * @example
 * overlaps('*:shop.example/orders', 'GET:*.example/orders'); // true, though neither covers the other
 */
export function overlaps(a: Scope | string, b: Scope | string): boolean {
  return meet(a, b) !== null;
}

/**
 * The one scope that allows just what both allow, or `null` when there is no such request.
 *
 * @throws {ScopeError} when a text is not a scope
 * @example
 * String(meet('*:shop.example/orders', 'GET:*.example/orders')); // 'GET:shop.example/orders'
 */
export function meet(a: Scope | string, b: Scope | string): Scope | null {
  const left = toScope(a);
  const right = toScope(b);
  const method = narrower(left.method, right.method, methodCovers);
  const domain = narrower(left.domain, right.domain, domainCovers);
  const path = narrower(left.path, right.path, pathCovers);
  if (method === null || domain === null || path === null) return null;
  return makeScope(method, domain, path);
}

/** Whether one method pattern covers another. */
export function methodCovers(outer: string, inner: string): boolean {
  return outer === '*' || outer === inner;
}

/** Whether one domain pattern covers another: `*.p` covers all that is strictly below `p`. */
export function domainCovers(outer: string, inner: string): boolean {
  if (outer === '*' || outer === inner) return true;
  return outer.startsWith('*.') && inner.endsWith(outer.slice(1));
}

/** Whether one path covers another: as a prefix that ends at a segment boundary. */
export function pathCovers(outer: string, inner: string): boolean {
  if (outer === '*' || outer === inner) return true;
  return inner.charCodeAt(outer.length) === 0x2f && inner.startsWith(outer);
}

/** In each family two patterns are nested or disjoint: the inner one is what both denote. */
function narrower(
  a: string,
  b: string,
  componentCovers: (outer: string, inner: string) => boolean,
): string | null {
  if (componentCovers(a, b)) return b;
  return componentCovers(b, a) ? a : null;
}
