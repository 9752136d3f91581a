import { MAX_NAMED_SCOPES } from './bounds.ts';

/**
 * The codes of {@link ScopeError}: stable, public names.
 *
 * The codes from `not_a_string` to `path_dot_segment` are failures of one scope, in the order of
 * the checks. The others are failures of a list of scopes or of a catalog. `route_parameter` is one of a
 * member that parses, but has a segment such as `:id`, which would match that text alone.
 */
export type ScopeErrorCode =
  | 'not_a_string'
  | 'empty'
  | 'too_long'
  | 'non_ascii'
  | 'illegal_character'
  | 'missing_method'
  | 'wildcard_position'
  | 'method_invalid'
  | 'scheme_present'
  | 'missing_domain'
  | 'domain_userinfo'
  | 'domain_ip'
  | 'domain_port'
  | 'domain_invalid'
  | 'missing_path'
  | 'query_or_fragment'
  | 'percent_encoding'
  | 'path_template'
  | 'path_empty_segment'
  | 'path_dot_segment'
  | 'route_parameter'
  | 'scopes_required'
  | 'too_many_scopes'
  | 'scope_invalid'
  | 'scope_unmatched'
  | 'catalog_empty'
  | 'catalog_not_concrete';

/** The codes of one scope that cannot be parsed. */
export type ParseCode = keyof typeof PARSE_MESSAGES;

/** One refused member of a list. */
export interface RefusedScope {
  /** The member as it was sent, or its index (`scopes[3]`) when it cannot be printed. */
  readonly scope: string;
  /** Why it cannot be parsed; absent when it can, but is refused for another reason. */
  readonly code?: ScopeErrorCode;
  /** The same scope repaired, if that is safe; with `route_parameter`, the one with `{}` in place of `:id`. */
  readonly suggestion?: string;
  /** The known scopes most like it, the best first. */
  readonly nearest?: readonly string[];
}

/**
 * Says why a scope, a list of scopes or a catalog was refused. The only error that
 * `tokenwright/scope` throws.
 *
 * @example
 * try {
 *   parseScope('get:shop.example/orders');
 * } catch (error) {
 *   if (error instanceof ScopeError) console.log(error.code, error.suggestion);
 *   // 'method_invalid', 'GET:shop.example/orders'
 * }
 */
export class ScopeError extends Error {
  /** The same in every copy of this package. */
  override readonly name: 'ScopeError';
  /** What is wrong, for programs. */
  declare readonly code: ScopeErrorCode;
  /** The same scope repaired, if that is safe; never wider than the text. */
  declare readonly suggestion?: string;
  /** The refused members of a list. */
  declare readonly scopes?: readonly string[];
  /** The same members with the details of each. */
  declare readonly refused?: readonly RefusedScope[];

  /** For this library. Use an error class of your own for your errors. */
  constructor(
    code: ScopeErrorCode,
    message: string,
    more: {
      readonly suggestion?: string;
      readonly refused?: readonly RefusedScope[];
    } = {},
  ) {
    super(message);
    // Not a field initializer: with one, esbuild's CommonJS output names the class `_class`.
    this.name = 'ScopeError';
    this.code = code;
    const { suggestion, refused } = more;
    if (suggestion) this.suggestion = suggestion;
    if (refused) {
      this.refused = refused;
      this.scopes = refused.map(({ scope }) => scope);
    }
  }
}

/** Says why one scope cannot be parsed. */
export const PARSE_MESSAGES = {
  not_a_string: 'a scope must be a string like "GET:shop.example/orders"',
  empty: 'it is empty',
  too_long:
    'it has over 1024 characters, 253 in the domain, 512 in the path, 32 segments or 8 "{}"',
  non_ascii: 'it must be ASCII, the domain in its xn-- form',
  illegal_character: 'it has a space, or a character that no path can have',
  missing_method: 'it must begin with a method and a colon',
  wildcard_position:
    'a "*" is a whole method, domain or path, or the "*." of a domain; any one segment is "{}"',
  method_invalid: 'the method must be "*" or a name in upper case',
  scheme_present: 'the domain must have no scheme',
  missing_domain: 'the domain is missing; "*" is every domain',
  domain_userinfo: 'the domain must have no "@"',
  domain_ip: 'the domain must be no IP address',
  domain_port: 'the domain must have no port',
  domain_invalid: 'the domain must be labels of up to 63 of a-z, 0-9 and inner hyphens',
  missing_path: 'the path is missing; "*" is every path, "$" the root',
  query_or_fragment: 'the path must have no "?" and no "#"',
  percent_encoding: 'the path must have no "%"',
  path_template: 'the path must have no brace but in a segment "{}" or "{id}"',
  path_empty_segment: 'the path must have no empty segment, nor end in a slash',
  path_dot_segment: 'the path must have no segment of dots only',
} satisfies Partial<Record<ScopeErrorCode, string>>;

/** Lists the first few refused members, each with what would be right. */
export function describeRefused(refused: readonly RefusedScope[]): string {
  const shown = refused.slice(0, MAX_NAMED_SCOPES).map(({ scope, code, suggestion, nearest }) => {
    const hints = [
      code,
      suggestion && `did you mean ${suggestion}?`,
      nearest?.length && `nearest known: ${nearest.join(', ')}`,
    ].filter(Boolean);
    return hints.length === 0 ? scope : `${scope} (${hints.join('; ')})`;
  });
  const rest = refused.length - shown.length;
  return shown.join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}
