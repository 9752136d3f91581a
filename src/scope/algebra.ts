import { OPENING_BRACE, SLASH } from './characters.ts';
import { makeScope, type Scope, toScope, withoutMark } from './grammar.ts';

/**
 * Whether `outer` allows every request that `inner` allows. The one relation that decides access.
 *
 * @throws {ScopeError} when a text is not a scope
 * @example
 * covers('GET:*.shop.example/*', 'GET:eu.shop.example/orders'); // true
 * covers('GET:shop.example/orders', 'GET:shop.example/orders2'); // false: a path ends at a slash
 * covers('GET:shop.example/orders/{}$', 'GET:shop.example/orders/7$'); // true
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
 * Whether both allow some request. For searching and listing; never decides access.
 *
 * @throws {ScopeError} when a text is not a scope
 * @example
 * overlaps('*:shop.example/orders', 'GET:*.example/orders'); // true, though neither covers the other
 */
export function overlaps(a: Scope | string, b: Scope | string): boolean {
  return meet(a, b) !== null;
}

/**
 * The scope that allows exactly the requests that both allow, or `null` when there are none. It may be
 * longer than `parseScope` accepts.
 *
 * @throws {ScopeError} when a text is not a scope
 * @example
 * String(meet('*:shop.example/orders', 'GET:*.example/orders')); // 'GET:shop.example/orders'
 * String(meet('GET:shop.example/orders/7', 'GET:shop.example/orders/{}/items$'));
 * // 'GET:shop.example/orders/7/items$'
 */
export function meet(a: Scope | string, b: Scope | string): Scope | null {
  const left = toScope(a);
  const right = toScope(b);
  const method = narrower(left.method, right.method, methodCovers);
  const domain = method && narrower(left.domain, right.domain, domainCovers);
  const path = domain && pathMeet(left.path, right.path);
  return path === '' ? null : makeScope(method, domain, path);
}

/** Whether one method pattern covers another. */
export function methodCovers(outer: string, inner: string): boolean {
  return outer === '*' || outer === inner;
}

/** Whether one domain pattern covers another: `*.p` covers everything strictly below `p`. */
export function domainCovers(outer: string, inner: string): boolean {
  if (outer === '*' || outer === inner) return true;
  return outer.startsWith('*.') && inner.endsWith(outer.slice(1));
}

/** Whether one path covers another, segment by segment; `{}` covers any one. */
export function pathCovers(outer: string, inner: string): boolean {
  if (outer === '*' || outer === inner) return true;
  if (inner === '*') return false;
  const isClosed = inner.endsWith('$');
  const end = inner.length - (isClosed ? 1 : 0);
  return outer.endsWith('$')
    ? isClosed && prefixEnd(outer, outer.length - 1, inner, end) === end
    : prefixEnd(outer, outer.length, inner, end) !== -1;
}

/**
 * The end of the first segments of a path if the segments of a pattern cover them one by one, or -1.
 * Both are read up to a length, without their end marks.
 */
function prefixEnd(pattern: string, length: number, text: string, end: number): number {
  let at = 0;
  for (let i = 0; i < length; i++) {
    if (at >= end) return -1;
    const unit = pattern.charCodeAt(i);
    if (unit === OPENING_BRACE) {
      i += 1;
      while (at < end && text.charCodeAt(at) !== SLASH) at += 1;
    } else {
      if (text.charCodeAt(at) !== unit) return -1;
      at += 1;
    }
  }
  return at === end || length === 0 || text.charCodeAt(at) === SLASH ? at : -1;
}

/** The path that allows what both allow; `''` when there is none. */
export function pathMeet(a: string, b: string): string {
  return narrower(a, b, pathCovers) || crossing(a, b);
}

/** The meet of two paths neither of which covers the other. */
function crossing(a: string, b: string): string {
  const segments = withoutMark(a).split('/');
  const others = withoutMark(b).split('/');
  if (segments.length < others.length) return crossing(b, a);
  // Nothing lies below a closed path, and the root has no segments.
  const isPast = segments.length > others.length && b.endsWith('$');
  if (isPast || a === '$' || b === '$') return '';
  for (const [i, other] of others.entries()) {
    const segment = segments[i];
    if (segment === '{}') segments[i] = other;
    else if (segment !== other && other !== '{}') return '';
  }
  return segments.join('/') + (a.endsWith('$') || b.endsWith('$') ? '$' : '');
}

/** The narrower of two nested components, or `''`. Only paths can overlap without being nested. */
function narrower(
  a: string,
  b: string,
  componentCovers: (outer: string, inner: string) => boolean,
): string {
  if (componentCovers(a, b)) return b;
  return componentCovers(b, a) ? a : '';
}
