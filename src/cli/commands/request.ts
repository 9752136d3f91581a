import { MAX_TARGET_LENGTH } from '../../bounds.ts';
import { isSegment } from '../../scope/grammar.ts';
import type { RequestReason, ScopeRequest } from '../../scope/index.ts';
import { usageError } from '../errors.ts';
import { printable } from '../layout.ts';

/** The `rootName` of the guard. */
export const ROOT_NAME_FLAG = {
  type: 'string',
  value: 'NAME',
  help: 'what stands for the path / in a scope, as rootName of the guard; default none',
} as const;

/**
 * Names the root path, as a guard with `rootName` does.
 *
 * @throws {CliError} when the name is not one segment of a path
 */
export function namedTarget(target: string, rootName: string | undefined): string {
  if (rootName === undefined) return target;
  if (!isSegment(rootName)) {
    throw usageError('--root-name must be one segment of a path, as root');
  }
  const isRoot = target === '/' || target.startsWith('/?');
  return isRoot ? `/${rootName}${target.slice(1)}` : target;
}

/** Names a request without its query, which may hold a secret. */
export function describeRequest({ method, domain, target }: ScopeRequest): string {
  const [path = ''] = target.split('?');
  return printable(`${method} ${domain} ${path}`);
}

/** Explains why a request is refused before any scope is looked at. */
export const REQUEST_REASONS: Readonly<Record<RequestReason, string>> = {
  method_invalid: 'a method is a name in upper case, as GET',
  domain_invalid: 'a domain is one plain host name, as shop.example, without port and wildcard',
  path_too_long: `a target has at most ${MAX_TARGET_LENGTH} characters`,
  path_not_absolute: 'a target begins with a slash, as /orders/7',
  path_fragment: 'a target holds no "#"',
  path_backslash: 'a backslash is a slash to some servers',
  path_illegal_character: 'the path holds a character that must be percent-encoded',
  path_bad_encoding: 'the path holds a broken percent-encoding, or one that is not UTF-8',
  path_empty_segment: 'the path holds an empty segment, which some servers drop',
  path_encoded_slash: 'an encoded slash is a slash to some servers',
  path_encoded_control: 'the path holds an encoded control character',
  path_parameter: 'some servers drop what follows a ";"',
  path_dot_segment: 'the path holds a segment of dots, which some servers resolve',
  path_double_encoding: 'the path is encoded twice, and some servers decode it twice',
};
