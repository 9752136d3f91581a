import { isPrintable } from './scope/grammar.ts';
import { type Scope, safeParseScope } from './scope/index.ts';
import { routeParameter } from './scope/lint.ts';

const EXAMPLE = 'GET:shop.example/orders';
const FORM = 'a scope here is METHOD:domain/path, such as';

/**
 * Says what a text that is not a scope looks like, and what would be right; empty for a text that looks
 * like nothing that people take for a scope. To be put after the message about it.
 */
export function likeness(text: unknown): string {
  if (!isPrintable(text)) return '';
  const found = likeUrl(text) ?? likeRequest(text) ?? likeAddress(text) ?? likeOAuth(text);
  return found === undefined ? '' : `; ${found}`;
}

const URL_LIKE = /^(?:([a-z]+|\*)[ :]+)?https?:\/\/(?:[^/?#@]*@)?([^/?#:@]+)(?::\d*)?(\/[^?#]*)?/i;

function likeUrl(text: string): string | undefined {
  const [, method = 'GET', domain, path] = URL_LIKE.exec(text) ?? [];
  if (domain === undefined) return undefined;
  return `this looks like a URL, and ${FORM} ${written(method, domain, path) ?? EXAMPLE}`;
}

/** A method and an address with a space between them, as in the first line of a request. */
function likeRequest(text: string): string | undefined {
  const [, method = '', domain, path] = /^([a-z]+|\*) +([^\s/:]*)(\/\S*)$/i.exec(text) ?? [];
  if (domain === undefined) return undefined;
  if (domain === '') {
    return `a scope names the domain, too, such as ${written(method, 'shop.example', path) ?? EXAMPLE}`;
  }
  return `a colon separates the method and the domain, as in ${written(method, domain, path) ?? EXAMPLE}`;
}

/** An address without a method. */
function likeAddress(text: string): string | undefined {
  const [, domain, path] = /^((?:[\w-]+\.)+[a-z]{2,}|localhost)(\/\S*)$/i.exec(text) ?? [];
  if (domain === undefined) return undefined;
  return `put the method in front, as in ${written('GET', domain, path) ?? EXAMPLE}`;
}

const METHODS = /^(?:get|head|post|put|patch|delete|options|query)(?::|$)/i;
const OAUTH_LIKE = /^[a-z][\w.-]{0,39}(?::[\w.:-]{1,40})?(?: [a-z][\w.:-]{0,79})*$/;

/** Words such as `openid`, `read:orders` or `orders:read`, alone or with spaces between them. */
function likeOAuth(text: string): string | undefined {
  if (!OAUTH_LIKE.test(text) || METHODS.test(text)) return undefined;
  return `this looks like an OAuth scope, and ${FORM} ${EXAMPLE}`;
}

/** The scope of an address, if it is one. Without a path, it is that of the root alone. */
function written(method: string, domain: string, path = '/'): string | undefined {
  const name = path.slice(1).replace(/\/$/, '') || '$';
  const reading = safeParseScope(`${method.toUpperCase()}:${domain}/${name}`);
  return reading.ok ? reading.scope.toString() : undefined;
}

/** Says of a scope with a segment such as `:id` that it is plain text; `undefined` for any other. */
export function parameterHint(scope: Scope): string | undefined {
  const found = routeParameter(scope);
  if (found === undefined) return undefined;
  return `the segment "${found.name}" matches only that text; for any segment write ${found.meant}`;
}
