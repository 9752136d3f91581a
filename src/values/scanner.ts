import { TokenError } from '../errors.ts';
import { ALPHABET, ALPHABET_CLASS, BODY_LENGTH, CHECKSUM_LENGTH, VERSION } from './format.ts';
import { checkPrefix } from './prefix.ts';

/** Rules for leak scanners to find values with one prefix, in the format of each scanner. */
export interface ScannerRules {
  /** A rule for `.gitleaks.toml`. */
  readonly gitleaks: string;
  /** A configuration with one custom detector, for `trufflehog --config`. */
  readonly trufflehog: string;
  /** The fields of a custom pattern of GitHub secret scanning. */
  readonly github: GithubPattern;
}

/** A custom pattern of GitHub secret scanning, field by field as its form asks for them. */
export interface GithubPattern {
  /** The name of the pattern. */
  readonly patternName: string;
  /** The expression for the value itself. */
  readonly secretFormat: string;
  /** The expression for the text before a value. */
  readonly beforeSecret: string;
  /** The expression for the text after it. */
  readonly afterSecret: string;
  /** For the dry run: a text with the form of a value that is not a value. */
  readonly testString: string;
}

/**
 * The text before a value: not the beginning of a longer word, whose prefix would be another one, but
 * possibly an escape of a URL or of JSON, which ends in a letter or a digit.
 */
const BOUNDARY = String.raw`[^0-9A-Za-z_]|%[0-9A-Fa-f]{2}|\\(?:[bfnrt]|u[0-9A-Fa-f]{4})`;

/** In bits: random text of this length has about 5, a placeholder far less than 4. */
const LEAST_ENTROPY = 4;

const CHECKSUM = '0'.repeat(CHECKSUM_LENGTH);
const UNCHECKED = `${VERSION}k1${ALPHABET}`.slice(0, BODY_LENGTH - CHECKSUM_LENGTH);

/**
 * Makes rules for leak scanners to find values with this prefix: in code, in JSON, in URLs and next to
 * escapes. Ids, masked values and values with other prefixes are not found.
 *
 * The rules know only the form. To check whether a find is a real value, verify it: a service with
 * `verifierKeys()` and an empty store calls a lookalike `malformed` and a real value `unknown`.
 *
 * The expressions are RE2, and for GitHub Hyperscan: without lookarounds.
 *
 * @throws {TokenError} `invalid_options` when the prefix cannot be one
 * @example
 * const { gitleaks } = scannerRules({ prefix: 'acme' });
 * appendFileSync('.gitleaks.toml', gitleaks);
 */
export function scannerRules(options: { readonly prefix: string }): ScannerRules {
  const prefix = checkPrefix(prefixOf(options));
  const name = `${prefix.replace('_', '-')}-token`;
  const form = `${prefix}_${VERSION}${ALPHABET_CLASS}{${BODY_LENGTH - VERSION.length}}`;
  // The end of the expression consumes nothing: the next value may begin there.
  const expression = String.raw`(?:^|${BOUNDARY})(${form})(?:\b|_)`;
  return Object.freeze({
    gitleaks: gitleaksRule(name, prefix, expression),
    trufflehog: trufflehogDetector(name, prefix, expression),
    github: Object.freeze({
      patternName: name,
      secretFormat: form,
      beforeSecret: String.raw`\A|${BOUNDARY}`,
      afterSecret: String.raw`\z|[^0-9A-Za-z]`,
      testString: `${prefix}_${UNCHECKED}${CHECKSUM}`,
    }),
  });
}

/** As in https://github.com/gitleaks/gitleaks#configuration. */
function gitleaksRule(name: string, prefix: string, expression: string): string {
  return `[[rules]]
id = "${name}"
description = "An access token with the prefix ${prefix}"
regex = '''${expression}'''
secretGroup = 1
entropy = ${LEAST_ENTROPY}
keywords = ["${prefix}_1"]
`;
}

/** As in pkg/custom_detectors/CUSTOM_DETECTORS.md of https://github.com/trufflesecurity/trufflehog. */
function trufflehogDetector(name: string, prefix: string, expression: string): string {
  return `detectors:
  - name: ${name}
    keywords:
      - ${prefix}_1
    regex:
      token: '${expression}'
    entropy: ${LEAST_ENTROPY}
`;
}

/** Checked by hand, so that a program that needs only these rules does not load zod. */
function prefixOf(options: unknown): unknown {
  try {
    const { prefix, ...others } = options as { readonly prefix: unknown };
    if (Object.keys(others).length === 0) return prefix;
  } catch {
    // Not an object, or a getter or a proxy that throws.
  }
  throw new TokenError('invalid_options', 'options must be { prefix }, such as { prefix: "acme" }');
}
