import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { redact, scannerRules } from '../../src/index.ts';
import { forge } from '../support.ts';

const root = new URL('../../', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, root), 'utf8');

/** The blocks of a language in a document. */
function blocksOf(document: string, language: string): string[] {
  const blocks = read(document).matchAll(/^```(\w+)\n(.*?)^```$/gms);
  return [...blocks].filter(([, name]) => name === language).map(([, , text = '']) => text);
}

const VALUE = forge();
const MASKED = redact(VALUE).replace('…', '...');

describe('docs/', () => {
  const documents = readdirSync(new URL('docs/', root)).filter((name) => name.endsWith('.md'));
  const examples = readdirSync(new URL('examples/', root)).map((name) => read(`examples/${name}`));

  it.each(documents)('%s holds no program that does not run here', (name) => {
    const programs = blocksOf(`docs/${name}`, 'ts');
    expect(programs.filter((program) => !examples.includes(program))).toEqual([]);
  });

  it('leaks.md shows the rules as they are made', () => {
    const { gitleaks, trufflehog, github } = scannerRules({ prefix: 'acme' });
    const [fields = ''] = blocksOf('docs/leaks.md', 'text');

    expect(blocksOf('docs/leaks.md', 'toml')).toEqual([gitleaks]);
    expect(blocksOf('docs/leaks.md', 'yaml')).toEqual([trufflehog]);
    expect([...fields.matchAll(/: +(.*)$/gm)].map(([, text]) => text)).toEqual(
      Object.values(github),
    );
  });

  it('logging.md shows the example', () => {
    expect(blocksOf('docs/logging.md', 'ts')).toEqual([read('examples/logging.ts')]);
  });
});

describe('the OpenTelemetry Collector, by docs/logging.md', () => {
  const [config = ''] = blocksOf('docs/logging.md', 'yaml');
  const expressions = [...config.matchAll(/"(\([^"]*)", "([^"]*)"/g)];

  it('masks in all statements what redact masks', () => {
    expect(expressions.length).toBeGreaterThan(2);
    for (const [, expression = '', replacement = ''] of expressions) {
      const text = `a ${VALUE} ${VALUE}b, no id: ${VALUE.slice(8, 30)}`;
      // In the Collector's file, `$$` stands for `$`.
      const masked = text.replaceAll(
        new RegExp(expression, 'g'),
        replacement.replace('$${1}', () => '$1'),
      );
      expect(masked).toBe(redact(text));
    }
  });
});

/** One `map` of nginx: the first expression that matches gives the text, else the default. */
type NginxMap = (text: string) => string;

/** Reads the maps of a configuration; what they use of PCRE means the same in JavaScript. */
function nginxMapsOf(config: string): NginxMap[] {
  return [...config.matchAll(/^map \$\w+ \$\w+ \{\n(.*?)^\}/gms)].map(([, body = '']) => {
    const rules = [...body.matchAll(/^ +"~(\*?)(.*)" "(.*)";$/gm)].map(
      ([, flag, expression = '', result = '']) => ({
        expression: new RegExp(expression, flag === '*' ? 'i' : ''),
        result,
      }),
    );
    expect(body.trim().split('\n')).toHaveLength(rules.length + 1);
    return (text) => {
      const rule = rules.find(({ expression }) => expression.test(text));
      if (rule === undefined) return text;
      const groups = rule.expression.exec(text)?.groups ?? {};
      return rule.result.replace(/\$(\w+)/g, (_, name: string) => groups[name] ?? '');
    };
  });
}

describe('nginx, by docs/logging.md', () => {
  const [config = ''] = blocksOf('docs/logging.md', 'nginx');
  const maps = nginxMapsOf(config);
  const logged = (target: string) => maps.reduce((text, map) => map(text), target);

  it.each<[string, string]>([
    [`/token/${VALUE}`, `/token/${MASKED}`],
    [`/auth/token/${VALUE}/rotate?a=1`, `/auth/token/${MASKED}/rotate?a=1`],
    [`/a?q=${VALUE}&b=1`, `/a?q=${MASKED}&b=1`],
    [`/a?q=%22${VALUE}%22`, `/a?q=%22${MASKED}%22`],
    [`/${VALUE}abc`, `/${MASKED}abc`],
    [`/${VALUE}?q=${VALUE}`, '...'],
    [`/${VALUE}${VALUE}`, '...'],
    [`/token/${VALUE.replace('_', '%5F')}`, '...'],
    [`/token/${VALUE.replace('_', '%5f')}`, '...'],
    [`/token/${VALUE.replace('_', '%255F')}`, '...'],
    [`/token/%61${VALUE.slice(1)}`, '...'],
    ['/a?access_token=hunter2&b=1', '/a?...'],
    ['/a?b=1&Code=hunter2', '/a?...'],
    ['/a?b=1;password=hunter2', '/a?...'],
    ['/a?token[]=hunter2', '/a?...'],
    [`/${VALUE}?token=hunter2`, `/${MASKED}?...`],
  ])('logs %s as %s', (target, expected) => {
    expect(logged(target)).toBe(expected);
  });

  it.each([
    ['/'],
    [`/token/${VALUE.slice(8, 30)}`],
    [`/token/${MASKED}`],
    ['/a%20b%2Fc%3F?d=%22&e=%C3%A9'],
    ['/a?tokens=1&token_type=x&scope=GET:shop.example/*'],
    ['/token=1/code=2'],
    [`/${VALUE.slice(0, -1)}`],
  ])('logs %s as it is', (target) => {
    expect(logged(target)).toBe(target);
  });

  it('writes with the masked address, and nothing else that may hold a value', () => {
    const format = /log_format safe ([^;]*);/.exec(config)?.[1] ?? '';

    expect(format).toContain('$safe_uri');
    expect(format).not.toMatch(/\$request\b|\$request_uri|\$uri|\$args|\$http_|\$cookie_|\$arg_/);
    expect(config).toMatch(/^access_log \S+ safe;$/m);
  });
});
