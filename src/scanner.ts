import * as z from 'zod';
import { checkOptions, strict } from './input.ts';
import { checkPrefix } from './value.ts';

/** Rules by which leak scanners find the values of one prefix, each in its scanner's own form. */
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
  /** What the pattern is listed as. */
  readonly patternName: string;
  /** The expression of the value itself. */
  readonly secretFormat: string;
  /** The expression of what stands before a value. */
  readonly beforeSecret: string;
  /** The expression of what stands after it. */
  readonly afterSecret: string;
  /** For the dry run: has the form of a value, and is none. */
  readonly testString: string;
}

/**
 * Where a value can begin: not inside a longer word, whose prefix would be another one, but right
 * behind an escape of URLs or JSON, which ends in a letter or a digit.
 */
const START = String.raw`[^0-9A-Za-z_]|%[0-9A-Fa-f]{2}|\\(?:[bfnrt]|u[0-9A-Fa-f]{4})`;

/** Far below what random text of this length has (about 5), far above that of a placeholder. */
const LEAST_ENTROPY = 4;

const LOOKALIKE = '1k10123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm000000';

/**
 * Makes the rules by which leak scanners find values of this prefix: in code, in JSON, in URLs and
 * next to escapes. Ids, masked values and those of other prefixes are not found.
 *
 * They know the form alone. Whether a find is a value of yours, its tag tells without a look at the
 * store: a service with `verifierKeys()` and an empty store calls a lookalike `malformed`, and a
 * value `unknown`.
 *
 * The expressions are RE2, and for GitHub Hyperscan: without lookarounds.
 *
 * @throws {TokenError} `invalid_options` when the prefix cannot be one
 * @example
 * const { gitleaks } = scannerRules({ prefix: 'acme' });
 * appendFileSync('.gitleaks.toml', gitleaks);
 */
export function scannerRules(options: { readonly prefix: string }): ScannerRules {
  const prefix = checkPrefix(checkOptions(scannerOptions, options).prefix);
  const name = `${prefix.replace('_', '-')}-token`;
  const form = `${prefix}_1[0-9A-Za-z]{57}`;
  // The end takes nothing away, so that the next value may begin there.
  const expression = String.raw`(?:^|${START})(${form})(?:\b|_)`;
  return Object.freeze({
    gitleaks: gitleaksRule(name, prefix, expression),
    trufflehog: trufflehogDetector(name, prefix, expression),
    github: Object.freeze({
      patternName: name,
      secretFormat: form,
      beforeSecret: String.raw`\A|${START}`,
      afterSecret: String.raw`\z|[^0-9A-Za-z]`,
      testString: `${prefix}_${LOOKALIKE}`,
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

const scannerOptions = strict({
  prefix: z.string({ error: 'prefix must be a text such as "acme"' }),
});
