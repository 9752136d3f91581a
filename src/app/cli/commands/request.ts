import { MAX_TARGET_LENGTH } from '../../../bounds.ts';
import { isSegment } from '../../../scope/grammar.ts';
import type { RequestReason, ScopeRequest } from '../../../scope/index.ts';
import { usageError } from '../../terminal/errors.ts';
import { printable } from '../../terminal/layout.ts';

/** The `rootName` of the guard. */
export const ROOT_NAME_FLAG = {
  type: 'string',
  value: 'NAME',
  help: 'the name for the path / in scopes, like rootName of the guard; default none',
} as const;

/**
 * Reads a request from its method and its URL. The target stays as it is written.
 *
 * @param rootName the name for the path `/`
 * @throws {CliError} for a URL that is not whole, or a name that is not one segment of a path
 */
export function readRequest(method: string, url: string, rootName?: string): ScopeRequest {
  const [, domain, target = '/'] = /^https?:\/\/([^/?#@:]+)(?::\d{1,5})?([/?].*)?$/.exec(url) ?? [];
  if (domain === undefined) {
    throw usageError('<URL> must be a full URL, such as https://shop.example/orders/7');
  }
  const sent = target.startsWith('?') ? `/${target}` : target;
  return { method, domain: domain.toLowerCase(), target: namedTarget(sent, rootName) };
}

/** Names the root path, as a guard with `rootName` does. */
function namedTarget(target: string, rootName: string | undefined): string {
  if (rootName === undefined) return target;
  if (!isSegment(rootName)) {
    throw usageError('--root-name must be one segment of a path, such as root');
  }
  const isRoot = target === '/' || target.startsWith('/?');
  return isRoot ? `/${rootName}${target.slice(1)}` : target;
}

/** Names a request without its query, which may hold a secret. */
export function describeRequest({ method, domain, target }: ScopeRequest): string {
  const [path = ''] = target.split('?');
  return printable(`${method} ${domain} ${path}`);
}

/** Explains why a request is refused, whatever else the scopes cover. */
export const REQUEST_REASONS: Readonly<Record<RequestReason, string>> = {
  method_invalid: 'a method is a name in upper case, such as GET',
  domain_invalid:
    'a domain is one plain host name, such as shop.example, without port and wildcard',
  path_too_long: `a target has at most ${MAX_TARGET_LENGTH} characters`,
  path_not_absolute: 'a target begins with a slash, such as /orders/7',
  path_fragment: 'a target contains no "#"',
  path_backslash: 'some servers treat a backslash as a slash',
  path_illegal_character: 'the path contains a character that must be percent-encoded',
  path_bad_encoding: 'the path contains a percent-encoding that is broken or not UTF-8',
  path_empty_segment: 'the path contains an empty segment, which some servers drop',
  path_encoded_slash: 'some servers treat an encoded slash as a slash',
  path_encoded_control: 'the path contains an encoded control character',
  path_parameter: 'some servers drop everything after a ";"',
  path_dot_segment: 'the path contains a segment of dots, which some servers resolve',
  path_double_encoding: 'the path is encoded twice, and some servers decode it twice',
  path_several_routes:
    'some servers take it to another endpoint, which the scopes do not cover: write it as the catalog does',
};
