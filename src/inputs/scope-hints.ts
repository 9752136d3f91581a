import { isPrintable } from '../scope/grammar.ts';
import { safeParseScope } from '../scope/index.ts';

const EXAMPLE = 'GET:shop.example/orders';
const FORM = 'a scope here is METHOD:domain/path, such as';

/**
 * A hint for a text that is not a scope: what it looks like, such as a URL, and what would be right. Empty
 * if it looks like nothing that people often mistake for a scope. Goes after the message about the text.
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
  return `this looks like a URL, and ${FORM} ${scopeTextOf(method, domain, path) ?? EXAMPLE}`;
}

/** A method and an address with a space between them, as in the first line of a request. */
function likeRequest(text: string): string | undefined {
  const [, method = '', domain, path] = /^([a-z]+|\*) +([^\s/:]*)(\/\S*)$/i.exec(text) ?? [];
  if (domain === undefined) return undefined;
  if (domain === '') {
    return `a scope names the domain, too, such as ${scopeTextOf(method, 'shop.example', path) ?? EXAMPLE}`;
  }
  return `a colon separates the method and the domain, as in ${scopeTextOf(method, domain, path) ?? EXAMPLE}`;
}

/** An address without a method. */
function likeAddress(text: string): string | undefined {
  const [, domain, path] = /^((?:[\w-]+\.)+[a-z]{2,}|localhost)(\/\S*)$/i.exec(text) ?? [];
  if (domain === undefined) return undefined;
  return `put the method in front, as in ${scopeTextOf('GET', domain, path) ?? EXAMPLE}`;
}

const METHODS = /^(?:get|head|post|put|patch|delete|options|query)(?::|$)/i;
const OAUTH_LIKE = /^[a-z][\w.-]{0,39}(?::[\w.:-]{1,40})?(?: [a-z][\w.:-]{0,79})*$/;

/** Words such as `openid`, `read:orders` or `orders:read`, alone or with spaces between them. */
function likeOAuth(text: string): string | undefined {
  if (!OAUTH_LIKE.test(text) || METHODS.test(text)) return undefined;
  return `this looks like an OAuth scope, and ${FORM} ${EXAMPLE}`;
}

/** The scope for an address; `undefined` if it cannot be one. Without a path, only the root. */
function scopeTextOf(method: string, domain: string, path = '/'): string | undefined {
  const name = path.slice(1).replace(/\/$/, '') || '$';
  const reading = safeParseScope(`${method.toUpperCase()}:${domain}/${name}`);
  return reading.ok ? reading.scope.toString() : undefined;
}
