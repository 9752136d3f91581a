import { MAX_PATH_LENGTH, MAX_PATH_SEGMENTS, MAX_PATH_TEMPLATES } from '../bounds.ts';
import { safeParseScope } from '../scope/grammar.ts';
import { readRequest } from '../scope/request.ts';
import { failed, quote, type Result } from './problems.ts';

const ROOT_NAME_HINT = 'give the option rootName, one segment, as rootName: "root"';
const X_SCOPE_HINT = 'give the operation an x-scope, as "x-scope": "orders/{id}/export$"';
const PATH_LIMITS = `${MAX_PATH_TEMPLATES} templates, ${MAX_PATH_SEGMENTS} segments and ${MAX_PATH_LENGTH} characters`;

/** The options that the path of a scope depends on. */
export interface PathSettings {
  readonly isPrefix: boolean;
  readonly rootName: string | undefined;
}

/** Turns a base path and a path template of a document into the path of a scope. */
export function derivePath(
  base: string,
  path: string,
  { isPrefix, rootName }: PathSettings,
): Result<string> {
  if (path !== '' && !path.startsWith('/')) return failed('the path must begin with "/"');
  // RFC 6570 section 3.2: such a template expands to its own slashes, or to a query.
  const [operator] = /\{[/?&#][^{}]*\}/.exec(isPrefix ? '' : path) ?? [];
  if (operator !== undefined) {
    return failed(`${quote(operator)} is not a part of a segment; ${X_SCOPE_HINT}`);
  }
  // Without their names, in which a slash or a question mark means nothing.
  const full = (base + path).replaceAll(/\{[^{}]*\}/g, (one) =>
    isMultiSegment(one) ? '{+}' : '{}',
  );
  if (full.includes('//')) return failed(`${quote(base + path)} holds an empty segment`);
  if (/[?#]/.test(full)) return failed(`the path holds a query or a fragment; ${X_SCOPE_HINT}`);
  if (/[{}]/.test(full.replaceAll(/\{\+?\}/g, ''))) return failed('the path holds a lone brace');
  const segments = full.replace(/\/$/, '').split('/').slice(1);
  const end = segments.findIndex((segment) => segment.includes(isPrefix ? '{' : '{+}'));
  if (end === 0) {
    const what = isPrefix ? '' : ' for several segments: its entry would be the whole host';
    return failed(`the path starts with a template${what}; ${X_SCOPE_HINT}`);
  }
  if (segments.length === 0) {
    if (!isPrefix) return { ok: true, value: `${rootName ?? ''}$` };
    return rootName === undefined
      ? failed(`the path is the root, and a scope's path is never empty; ${ROOT_NAME_HINT}`)
      : { ok: true, value: rootName };
  }
  return joinSegments(segments.slice(0, end === -1 ? undefined : end), isPrefix || end !== -1);
}

/** Reads the member `x-scope` of an operation. */
export function readXScope(value: unknown): Result<string> {
  if (typeof value !== 'string') {
    return failed('x-scope must be a text, the path part of a scope, as "orders/{id}/export$"');
  }
  // The text of a whole scope is also a valid path, but certainly a mistake.
  const read = safeParseScope(value).ok ? failed('with method and domain') : readScopePath(value);
  if (read.ok) return read;
  return failed(
    `the x-scope ${quote(value)} (${read.problem}) must be the path part of a scope, as "orders/{id}/export$"`,
  );
}

/** Reads the path of a concrete scope; the problem is an error code. */
export function readScopePath(text: string): Result<string> {
  const reading = safeParseScope(`GET:shop.example/${text}`);
  if (!reading.ok) return failed(reading.error);
  const { path } = reading.scope;
  return path === '*' ? failed('wildcard_position') : { ok: true, value: path };
}

/** Whether a template matches several segments: `{path+}`, `{path*}`, `{+path}`, `{*path}`, `{**path}`. */
function isMultiSegment(template: string): boolean {
  return /^\{(?:(?:\+|\*\*?)[\w.-]+|[\w.-]+[+*])\}$/.test(template);
}

/** Normalizes literal segments like the guard does for requests, so that the entry matches them. */
function joinSegments(segments: readonly string[], isOpen: boolean): Result<string> {
  const written = segments.join('/');
  const target = segments.map((segment) => (segment.includes('{') ? 'x' : segment)).join('/');
  const request = readRequest({ method: 'GET', domain: 'shop.example', target: `/${target}` });
  if (!request.ok) return unscopable(written, request.reason);
  const read = request.request.path.split('/');
  const path = read.map((text, i) => (segments[i]?.includes('{') ? '{}' : text)).join('/');
  if (isOpen && path.endsWith('$')) return unscopable(written, 'a "$" at the end would close it');
  const reading = readScopePath(isOpen ? path : `${path}$`);
  return reading.ok ? reading : unscopable(written, reading.problem);
}

function unscopable(segments: string, code: string): Result<string> {
  const limits = code === 'too_long' ? `: at most ${PATH_LIMITS}` : '';
  return failed(
    `${quote(`/${segments}`)} cannot stand in a scope (${code}${limits}); ${X_SCOPE_HINT}`,
  );
}
