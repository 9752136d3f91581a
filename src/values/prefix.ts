import { TokenError } from '../errors.ts';

/**
 * Checks a prefix. It must not be one of another vendor, whose leak scanners would report our values
 * as theirs.
 *
 * @throws {TokenError} `invalid_options`
 */
export function checkPrefix(prefix: unknown): string {
  if (!isPrefix(prefix)) {
    throw new TokenError(
      'invalid_options',
      'prefix must be 2 to 16 of a-z and 0-9, a letter first, then at most one "_" with 1 to 8 more, like "acme" or "acme_live"',
    );
  }
  if (!VENDOR_PREFIXES.has(prefix)) return prefix;
  throw new TokenError(
    'invalid_options',
    'prefix must be your own: this one marks the tokens of another vendor',
  );
}

/** The characters of the longest prefix. */
export const MAX_PREFIX_LENGTH = 25;

/** Whether a text has the form of a prefix. */
export function isPrefix(text: unknown): text is string {
  return typeof text === 'string' && /^[a-z][a-z0-9]{1,15}(?:_[a-z0-9]{1,8})?$/.test(text);
}

/** As their vendors document them: one line for each vendor. */
const VENDOR_PREFIXES: ReadonlySet<string> = new Set(
  [
    'ghp gho ghu ghs ghr github_pat',
    'glpat gldt glrt glptt gloas',
    'sk_live sk_test pk_live pk_test rk_live rk_test whsec',
    'sk_ant sk_proj',
    'xoxb xoxp xoxa xoxr xoxs xapp',
    'npm pypi rubygems dckr_pat hf',
    'shpat shpca shppa shpss',
    'dop_v1 doo_v1 dor_v1',
    'sqp sqa nfp lin_api atlasv1',
    'hvs hvb hvr',
    'pscale_tkn pscale_pw pscale_oauth',
    'figd glc glsa',
  ].flatMap((prefixes) => prefixes.split(' ')),
);
