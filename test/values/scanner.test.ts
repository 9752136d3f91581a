import { beforeEach, describe, expect, it } from 'vitest';
import * as yaml from 'yaml';
import {
  isTokenError,
  MemoryTokenStore,
  redact,
  type ScannerRules,
  scannerRules,
  TokenService,
} from '../../src/index.ts';
import { KeyRing } from '../../src/values/keys.ts';
import { mintValue, newId } from '../../src/values/value.ts';
import { forge, K1, K2, NO_ID, SCOPE, setUp } from '../support.ts';

const RING = new KeyRing([K1]);
const mint = (prefix: string) => mintValue(RING, prefix, newId(), undefined).value;

/** What a scanner finds in a text with these rules. */
type Scan = (rules: ScannerRules, text: string) => string[];

const groupsOf = (expression: string, text: string): string[] =>
  [...text.matchAll(new RegExp(expression, 'g'))].map(([, found = '']) => found);

/** Hyperscan anchors with `\A` and `\z` where JavaScript uses `^` and `$`. */
const inJavaScript = (expression: string) =>
  expression.replaceAll('\\A', '^').replaceAll('\\z', '$');

const SCANS: readonly [name: keyof ScannerRules, scan: Scan][] = [
  ['gitleaks', (rules, text) => groupsOf(tomlOf(rules.gitleaks)['regex'] ?? '', text)],
  ['trufflehog', (rules, text) => groupsOf(detectorOf(rules).regex.token, text)],
  [
    'github',
    ({ github }, text) => {
      const before = inJavaScript(github.beforeSecret);
      const after = inJavaScript(github.afterSecret);
      return groupsOf(`(?:${before})(${github.secretFormat})(?=${after})`, text);
    },
  ],
];

/** Parses one rule whose values are literal texts, numbers and lists of texts, each on one line. */
function tomlOf(rule: string): Record<string, string> {
  const [head, ...lines] = rule.trim().split('\n');
  expect(head).toBe('[[rules]]');
  return Object.fromEntries(
    lines.map((line) => {
      const [, name = '', literal, rest = ''] = /^(\w+) = (?:'''(.*)'''|(.*))$/.exec(line) ?? [];
      return [name, literal ?? String(JSON.parse(rest))];
    }),
  );
}

function detectorOf({ trufflehog }: ScannerRules) {
  const { detectors } = yaml.parse(trufflehog);
  expect(detectors).toHaveLength(1);
  return detectors[0] as {
    readonly name: string;
    readonly keywords: string[];
    readonly regex: { readonly token: string };
    readonly entropy: number;
  };
}

/** Shannon entropy in bits per character, as gitleaks and TruffleHog compute it. */
function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  return [...counts.values()].reduce(
    (sum, count) => sum - (count / text.length) * Math.log2(count / text.length),
    0,
  );
}

describe('scannerRules', () => {
  const value = mint('acme');
  let rules: ScannerRules;
  beforeEach(() => {
    rules = scannerRules({ prefix: 'acme' });
  });

  it('contain a complete rule for gitleaks', () => {
    const { id, description, secretGroup, entropy, keywords } = tomlOf(rules.gitleaks);

    expect({ id, description, secretGroup, entropy, keywords }).toEqual({
      id: 'acme-token',
      description: 'An access token with the prefix acme',
      secretGroup: '1',
      entropy: '4',
      keywords: 'acme_1',
    });
  });

  it('contain a TruffleHog detector without verification, which would send values out', () => {
    const { name, keywords, regex, entropy, ...others } = detectorOf(rules);

    expect([name, keywords, Object.keys(regex), entropy]).toEqual([
      'acme-token',
      ['acme_1'],
      ['token'],
      4,
    ]);
    expect(others).toEqual({});
  });

  it('contain a GitHub pattern with a test string that it finds and that is not a valid value', async () => {
    const { testString, secretFormat } = rules.github;
    const { tokens } = setUp();

    expect(testString).toMatch(new RegExp(`^${secretFormat}$`));
    expect(await tokens.verify(testString, { scope: SCOPE })).toMatchObject({
      reason: 'malformed',
    });
    expect(rules.github.patternName).toBe('acme-token');
    expect(scannerRules({ prefix: 'acme_live' }).github.patternName).toBe('acme-live-token');
  });

  it.each(SCANS)('find each of 1000 minted values of any prefix with %s', (_, scan) => {
    for (const prefix of ['ab', 'acme', 'acme_live', 'acme_1', 'a234567890123456_12345678']) {
      const own = scannerRules({ prefix });
      for (let i = 0; i < 1000; i++) {
        const minted = mint(prefix);
        expect(scan(own, `token = "${minted}";`)).toEqual([minted]);
      }
    }
  });

  it('require less entropy than 1000 minted values have, and more than placeholders have', () => {
    const least = Math.min(...Array.from({ length: 1000 }, () => entropyOf(mint('ab'))));

    expect(least).toBeGreaterThan(4.2);
    expect(entropyOf(`acme_1${'x'.repeat(57)}`)).toBeLessThan(4);
    expect(entropyOf(`acme_1${'0123456789'.repeat(6).slice(0, 57)}`)).toBeLessThan(4);
  });

  it('name lowercase keywords that every value contains', () => {
    for (const prefix of ['ab', 'acme_live', 'acme_1']) {
      const own = scannerRules({ prefix });
      const { keywords } = tomlOf(own.gitleaks);

      expect(mint(prefix).toLowerCase()).toContain(keywords);
      expect(detectorOf(own).keywords).toEqual([keywords]);
    }
  });

  describe.each(SCANS)('for %s', (_, scan) => {
    it.each<[string, string, number]>([
      ['alone', value, 1],
      ['in code', `const token = '${value}';`, 1],
      ['in a template', `\`Bearer ${value}\``, 1],
      ['in a header', `Authorization: Bearer ${value}\r\n`, 1],
      ['in a shell', `export ACME_TOKEN=${value}`, 1],
      ['in JSON', JSON.stringify({ token: value }), 1],
      ['in JSON within JSON', JSON.stringify(JSON.stringify({ token: value })), 1],
      ['after an escaped line break', `"a\\n${value}\\n"`, 1],
      ['after an escaped tab', `"\\t${value}"`, 1],
      ['after a Unicode escape', `"\\u0022${value}\\u0022"`, 1],
      ['in a path', `https://api.example/token/${value}/rotate`, 1],
      ['in a query', `/a?access_token=${value}&b=1`, 1],
      ['after a URL escape', `?q=%22${value}%22`, 1],
      ['after a URL escape in lower case', `?q=a%3d${value}`, 1],
      ['in YAML', `token: ${value}\n`, 1],
      ['in XML', `<token>${value}</token>`, 1],
      ['twice', `${value} ${value}`, 2],
      ['twice in a list', `["${value}","${value}"]`, 2],
      ['in lines', `${value}\n${value}\n${value}`, 3],
    ])('find a value %s', (_name, text, count) => {
      expect(scan(rules, text)).toEqual(Array(count).fill(value));
    });

    it.each<[string, string]>([
      ['an id', NO_ID],
      ['an id after the prefix', `acme_1k1${NO_ID}`],
      ['a masked value', redact(value)],
      ['a value that is cut short', value.slice(0, -1)],
      ['a value that is too long', `${value}0`],
      ['a value without its prefix', value.slice(4)],
      ['a value with another prefix', forge(NO_ID, { prefix: 'acmf' })],
      ['a value with a longer prefix', forge(NO_ID, { prefix: 'acme_live' })],
      ['a value whose prefix ends alike', forge(NO_ID, { prefix: 'xacme' })],
      [
        'a value with the prefix as the second part of its own',
        forge(NO_ID, { prefix: 'live_acme' }),
      ],
      ['a value in upper case', value.toUpperCase()],
      ['a value of another version', value.replace('_1', '_2')],
      ['a value with a dash', value.replace(/.{6}$/, '-00000')],
      ['a value after an invalid URL escape', `%zz${value}`],
      ['a value after an invalid backslash escape', `\\x${value}`],
    ])('do not find %s', (_name, text) => {
      expect(scan(rules, text)).toEqual([]);
    });
  });

  it.each([
    ['gitleaks', 1],
    ['trufflehog', 1],
  ] as const)('find a value before an underscore with %s', (name, count) => {
    const [, scan] = SCANS.find(([one]) => one === name) ?? [];
    expect(scan?.(rules, `${value}_old`)).toHaveLength(count);
  });

  it('use no lookaround, back reference or flag, which RE2 and Hyperscan do not support', () => {
    const { beforeSecret, secretFormat, afterSecret } = rules.github;
    const expressions = [
      tomlOf(rules.gitleaks)['regex'] ?? '',
      detectorOf(rules).regex.token,
      beforeSecret,
      secretFormat,
      afterSecret,
    ];

    for (const expression of expressions) {
      expect(expression).not.toMatch(/\(\?[^:]|\\[1-9]|\\k|[*+?}][+]/);
    }
    expect('(?=a)(?<=b)\\1').toMatch(/\(\?[^:]|\\[1-9]|\\k|[*+?}][+]/);
  });

  it('rely on the tag: a service with only verifier keys can tell which finds are values', async () => {
    const { tokens } = setUp();
    const { value: issued } = await tokens.issue({ account: 'ada', scopes: [SCOPE] });
    const verifier = new TokenService({
      store: new MemoryTokenStore(),
      keys: tokens.verifierKeys(),
      prefix: 'acme',
    });
    const reasonOf = async (found: string) => {
      const verdict = await verifier.verify(found, { scope: SCOPE });
      return verdict.ok ? 'ok' : verdict.reason;
    };

    expect(await reasonOf(issued)).toBe('unknown');
    expect(await reasonOf(rules.github.testString)).toBe('malformed');
    expect(await reasonOf(forge(NO_ID, { key: K2 }))).toBe('malformed');
  });

  it.each<[unknown, unknown]>([
    ['Acme', 'acme'],
    ['', 'ac'],
    ['acme.*', 'acme'],
    ["acme'''", 'acme'],
    ['acme\n', 'acme'],
    ['acme_live_2', 'acme_live'],
    ['ghp', 'ghx'],
    ['sk_live', 'skx_live'],
    [undefined, 'acme'],
    [42, 'a42'],
  ])('refuse the prefix %j, and accept %j', (bad, good) => {
    expect(codeOf({ prefix: bad })).toBe('invalid_options');
    expect(codeOf({ prefix: good })).toBeUndefined();
  });

  it.each<[unknown]>([[undefined], [null], ['acme'], [{}], [{ prefix: 'acme', entropy: 3 }]])(
    'refuse the options %j',
    (options) => {
      expect(codeOf(options)).toBe('invalid_options');
    },
  );
});

function codeOf(options: unknown): string | undefined {
  try {
    scannerRules(options as { prefix: string });
    return undefined;
  } catch (error) {
    return isTokenError(error) ? error.code : 'another error';
  }
}
