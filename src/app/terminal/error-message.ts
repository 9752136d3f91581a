import { isTokenError } from '../../index.ts';
import { CliError, withFlag } from './errors.ts';
import { printable } from './layout.ts';
import { masked } from './masking.ts';

/**
 * Describes an error in one line, without control characters, token values and passwords of URLs.
 */
export function describeError(error: unknown): string {
  const isExpected = error instanceof CliError || isTokenError(error) || isSystemError(error);
  const member = isTokenError(error) ? error.details?.['member'] : undefined;
  return oneLine(String(isExpected ? withFlag(error.message, member) : error));
}

function oneLine(text: string): string {
  const line = printable(text.replaceAll(/\s+/g, ' '));
  return masked(line).split(' ').map(withoutCredentials).join(' ');
}

function isSystemError(error: unknown): error is Error {
  return error instanceof Error && 'syscall' in error;
}

/** Hides the user and the password of a URL, except the `user:password` of examples. */
function withoutCredentials(word: string): string {
  const start = word.indexOf('://') + 3;
  const end = word.lastIndexOf('@');
  const isShown = start === 2 || end < start || word.slice(start, end) === 'user:password';
  return isShown ? word : `${word.slice(0, start)}***${word.slice(end)}`;
}
