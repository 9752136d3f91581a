import { MAX_PATH_LENGTH, MAX_PATH_SEGMENTS, MAX_PATH_TEMPLATES } from '../bounds.ts';
import { safeParseScope } from '../scope/grammar.ts';
import { parameterFault } from '../scope/list.ts';
import { readRequest } from '../scope/request.ts';
import { failed, quote, type Result } from './problems.ts';
import { ONE, readTemplate, SEVERAL } from './templates.ts';

const ROOT_NAME_HINT = 'give the option rootName, one segment, as rootName: "root"';
const X_SCOPE_HINT = 'give the operation an x-scope, as "x-scope": "orders/{id}/export$"';
const PATH_LIMITS = `${MAX_PATH_TEMPLATES} templates, ${MAX_PATH_SEGMENTS} segments and ${MAX_PATH_LENGTH} characters`;

/** The options that the path of a scope depends on. */
export interface PathSettings {
  readonly isPrefix: boolean;
  readonly rootName: string | undefined;
}

/**
 * Turns a base path and a path template of a document into the path of a scope.
 *
 * @param pattern the regular expression that the document gives for a parameter, if it does
 */
export function derivePath(
  base: string,
  path: string,
  pattern: (name: string) => string | undefined,
  { isPrefix, rootName }: PathSettings,
): Result<string> {
  if (path !== '' && !path.startsWith('/')) return failed('the path must begin with "/"');
  const read = readTemplates(base + path, pattern);
  if (!read.ok) return failed(`${read.problem}; ${X_SCOPE_HINT}`);
  const full = read.value;
  if (full.includes('//')) return failed(`${quote(base + path)} holds an empty segment`);
  if (/[{}]/.test(full.replaceAll(/\{\+?\}/g, ''))) return failed('the path holds a lone brace');
  const segments = full.replace(/\/$/, '').split('/').slice(1);
  const end = segments.findIndex((segment) => segment.includes(isPrefix ? '{' : SEVERAL));
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

/**
 * The names of the parameters of a path, one for each segment that holds some: `['owner', 'repo']`, or
 * `['year-month']` of `/{year}-{month}`.
 */
export function parameterNames(
  path: string,
  pattern: (name: string) => string | undefined,
): readonly string[] {
  const named = path.replaceAll(/\{[^{}]*\}/g, (template) => {
    const read = readTemplate(template, pattern);
    const [name = ''] = /[\w.-]+/.exec(template) ?? [];
    return read.ok ? read.value.replaceAll(ONE, `{${name}}`) : template;
  });
  const segments = named.split('/').filter((segment) => segment.includes('{'));
  return segments.map((segment) => segment.replaceAll(/[{}]/g, ''));
}

/**
 * The paths that a path of a document stands for: without its query and fragment, in which variants
 * of one operation differ, and also without a last segment that is optional, such as `{id?}`.
 */
export function variantsOf(path: string): readonly string[] {
  const whole = withoutQuery(path);
  const shorter = whole.replace(/\/\{[\w.-]+(?::[a-z]\w*)?\?\}\/?$/i, '');
  return shorter === whole ? [whole] : [whole, shorter];
}

/** A path without its query or fragment, also as a template (RFC 6570 sections 3.2.4, 3.2.8 and 3.2.9). */
export function withoutQuery(path: string): string {
  // In the name of a template a question mark means nothing.
  const masked = path.replaceAll(/\{[^{}?&#][^{}]*\}/g, (one) => 'x'.repeat(one.length));
  const end = masked.search(/\{[?&#]|[?#]/);
  return end === -1 ? path : path.slice(0, end);
}

/** Replaces the templates of a path, in whose names a slash or a question mark means nothing. */
function readTemplates(
  path: string,
  pattern: (name: string) => string | undefined,
): Result<string> {
  let problem: string | undefined;
  const value = path.replaceAll(/\{[^{}]*\}/g, (template) => {
    const read = readTemplate(template, pattern);
    if (read.ok) return read.value;
    problem ??= read.problem;
    return ONE;
  });
  return problem === undefined ? { ok: true, value } : failed(problem);
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
  if (parameterFault(reading.scope) !== undefined) return failed('route_parameter');
  return path === '*' ? failed('wildcard_position') : { ok: true, value: path };
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
  const why = WHY.get(code) ?? '';
  return failed(
    `${quote(`/${segments}`)} cannot stand in a scope (${code}${why}); ${X_SCOPE_HINT}`,
  );
}

const WHY: ReadonlyMap<string, string> = new Map([
  ['too_long', `: at most ${PATH_LIMITS}`],
  ['route_parameter', ': OpenAPI writes a parameter as {id}, not :id'],
]);
