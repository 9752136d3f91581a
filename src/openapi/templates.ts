import { failed, quote, type Result } from './problems.ts';

/** What a template stands for in a path: a part of one segment, or all that follows. */
export const ONE = '{}';
export const SEVERAL = '{+}';

/**
 * What a template matches: {@link ONE}, {@link SEVERAL}, or segments with these, for a template that
 * names them, such as `{name=projects/*\/secrets/*}`.
 *
 * @param pattern the regular expression that the document gives for the parameter, if it does
 */
export function readTemplate(
  template: string,
  pattern: (name: string) => string | undefined,
): Result<string> {
  const inner = template.slice(1, -1).trim();
  // RFC 6570 section 3.2: expands to a slash or a semicolon and more.
  if (/^[/;]/.test(inner)) return failed(`${quote(template)} is not a part of a segment`);
  if (/^(?:\+|\*|\.\.\.)/.test(inner)) return ok(SEVERAL);
  const [, name = '', mark, rest = ''] = /^([^:=]*)([:=]?)(.*)$/s.exec(inner) ?? [];
  if (mark === '=') return ofResource(template, rest.trim());
  if (mark === ':') return ok(ofConstraint(rest.trim()));
  if (/(?:[+*]|\.\.\.)$/.test(name)) return ok(SEVERAL);
  const expression = pattern(name);
  return ok(expression === undefined ? ONE : ofPattern(expression));
}

function ok(value: string): Result<string> {
  return { ok: true, value };
}

/** Reads a resource name of Google's APIs (google/api/http.proto): `*` is a segment, `**` any number. */
function ofResource(template: string, resource: string): Result<string> {
  // Without a wildcard it is a default value in ASP.NET, and a fixed name for Google.
  if (!resource.includes('*'))
    return failed(`${quote(template)} matches one text only; write it out`);
  const segments = resource.split('/');
  return ok(segments.map((one) => (one === '**' ? SEVERAL : one.replaceAll('*', ONE))).join('/'));
}

/** As of ASP.NET and Flask: `int`, `min(1)`, `regex(^.*$)`. None of them matches a slash. */
const NAMED_CONSTRAINT =
  /^(?:[a-z]\w*|(?:min|max|range|length|minlength|maxlength|regex|any|string|int|float)\(.*\))\??$/is;

/** Reads what routers write after the name: the name of a constraint, or a regular expression. */
function ofConstraint(constraint: string): string {
  if (/^(?:path\b|[*+])/.test(constraint)) return SEVERAL;
  return NAMED_CONSTRAINT.test(constraint) ? ONE : ofExpression(constraint);
}

/**
 * Reads the `pattern` of a parameter. The value of a path parameter holds no slash of its own
 * (OpenAPI 3.1.1 section 4.8.12), so that only a pattern that writes one takes several segments.
 */
function ofPattern(expression: string): string {
  return withoutClasses(expression).includes('/') ? ofExpression(expression) : ONE;
}

/** Reads a regular expression. If it may match a slash in a way that is not understood: {@link SEVERAL}. */
function ofExpression(expression: string): string {
  const body = expression.replace(/^\^/, '').replace(/\$$/, '').replaceAll('\\/', '/');
  const segments = body
    .replaceAll(/\[\^\/\][+*]?/g, ONE)
    .replace(/\.[+*]$/, SEVERAL)
    .split('/');
  const isPlain = (one: string) => one === ONE || one === SEVERAL || /^[\w~-]+$/.test(one);
  if (segments.every(isPlain)) return segments.join('/');
  return mayMatchSlash(body) ? SEVERAL : ONE;
}

/** Whether an expression may match a slash. In doubt it may. */
function mayMatchSlash(expression: string): boolean {
  const outside = withoutClasses(expression);
  if (/[./]|\\[^dwbs.]/.test(outside.replaceAll('\\.', ''))) return true;
  return classesOf(expression).some(mayHoldSlash);
}

/** Whether a character class may match a slash. */
function mayHoldSlash(characters: string): boolean {
  if (characters.startsWith('[^')) return !characters.includes('/');
  if (/\/|\\[^dwbs.[\]-]/.test(characters)) return true;
  const ranges = [...characters.matchAll(/([^\\[])-([^\]])/g)];
  return ranges.some(([, first = '', last = '']) => first < '/' && '/' < last);
}

/** A character class, or an escaped character outside of one. */
const CLASS = /\\.|\[(?:\\.|[^\]\\[])*\]/gs;

function classesOf(expression: string): readonly string[] {
  return (expression.match(CLASS) ?? []).filter((one) => one.startsWith('['));
}

function withoutClasses(expression: string): string {
  return expression.replaceAll(CLASS, (one) => (one.startsWith('[') ? '' : one));
}
