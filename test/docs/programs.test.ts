import { createHash } from 'node:crypto';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import pg from 'pg';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import config from '../../docs/.vitepress/config.ts';
import { examplesIn, PAGES, withExamples } from '../../docs/.vitepress/examples.ts';
import { redact, scannerRules } from '../../src/index.ts';
import { ALL_COMMANDS, newFolder, runInShell } from '../app/cli/support.ts';
import { forge } from '../support.ts';

const root = new URL('../../', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, root), 'utf8');

/** The code blocks of a language in a document, without those that name a file of `examples/`. */
function blocksOf(document: string, language: string): string[] {
  const blocks = read(document).matchAll(/^```(\w+)\n(.*?)^```$/gms);
  return [...blocks].filter(([, name]) => name === language).map(([, , text = '']) => text);
}

const VALUE = forge();
const MASKED = redact(VALUE).replace('…', '...');

describe('the pages', () => {
  const examples = globSync('examples/**/*.*', {
    cwd: root.pathname,
    exclude: ['**/node_modules', 'examples/prisma/generated*'],
  }).concat('examples/run/deploy/Dockerfile', 'examples/run/deploy/Caddyfile');

  // The pages about errors and security have tests of their own.
  const ours = PAGES.filter((page) => !/^docs\/(errors\.md|security\/)/.test(page));

  it.each(ours)('%s shows only programs of examples/', (page) => {
    expect([...blocksOf(page, 'ts'), ...blocksOf(page, 'js')]).toEqual([]);
    expect(examples).toEqual(expect.arrayContaining(examplesIn(read(page))));
    // The page must contain the code itself, for readers outside the site.
    expect(read(page)).not.toMatch(/^<<< /m);
  });

  it.each(PAGES)('%s shows its programs word for word (npm run docs:examples)', (document) => {
    const text = read(document);
    expect(text.match(/^```\w+ \[/gm) ?? []).toHaveLength(examplesIn(text).length);
    expect(withExamples(text)).toBe(text);
  });

  it('are corrected if a program was changed in one place (the control)', () => {
    const text = read('docs/quick-start.md');
    const changed = text.replace('prefix: ', 'prefixed: ');
    expect(changed).not.toBe(text);
    expect(withExamples(changed)).toBe(text);
  });

  it('show each example at least once', () => {
    const shown = PAGES.flatMap((page) => examplesIn(read(page)));

    expect(examples.filter((name) => !shown.includes(name))).toEqual(['examples/README.md']);
  });

  it.each(PAGES)('%s has only relative links, to files that exist', (page) => {
    const links = [...read(page).matchAll(/\]\((?!https?:|#)([^)#]*)/g)].map(([, to = '']) => to);
    const dead = links.filter(
      (link) => link.startsWith('/') || !existsSync(new URL(join(dirname(page), link), root)),
    );
    expect(dead).toEqual([]);
  });

  it('start with a full sentence after the title', () => {
    for (const page of PAGES.filter((name) => /^docs\/(guides|concepts|quick)/.test(name))) {
      expect(read(page), page).toMatch(/^# .+\n\n[A-Z][^\n]{20,}\n/);
    }
  });

  it('describe every picture in words', () => {
    const pictures = readdirSync(new URL('docs/pictures/', root));
    const used = PAGES.flatMap((page) => [
      ...read(page).matchAll(/!\[[^\]]{8,}\]\((?:\.\.?\/)?pictures\/([\w-]+\.(?:svg|webp))\)/g),
    ]);

    expect([...new Set(used.map(([, name]) => name))].sort()).toEqual(pictures.sort());
    for (const name of pictures.filter((each) => each.endsWith('.svg'))) {
      const svg = read(`docs/pictures/${name}`);
      const [, labels = ''] = /role="img" aria-labelledby="([^"]+)"/.exec(svg) ?? [];
      const [title, description] = labels.split(' ');
      expect(svg, name).toMatch(new RegExp(`<title id="${title}">.{10,}</title>`));
      expect(svg, name).toMatch(new RegExp(`<desc id="${description}">.{80,}</desc>`));
      expect(svg, name).not.toMatch(/https?:(?!\/\/www\.w3\.org\/2000\/svg")/);
    }
  });

  it('load nothing from other sites', () => {
    const files = globSync('docs/{.vitepress/*.ts,.vitepress/theme/*,pictures/*,public/*}', {
      cwd: root.pathname,
    });
    expect(files.length).toBeGreaterThan(5);
    for (const file of files) {
      expect(read(file), file).not.toMatch(
        /(?:src|href|url\(|@import|from)\W{1,3}(?:https?:)?\/\//,
      );
    }
    for (const page of PAGES) expect(read(page), page).not.toMatch(/!\[[^\]]*\]\(http/);
  });
});

describe('the sidebar', () => {
  /** All links of the navigation, at any depth. */
  const linksIn = (items: unknown): string[] =>
    [items].flat().flatMap((item) => {
      const { link, items: below } = item as { link?: string; items?: unknown[] };
      return [...(link === undefined ? [] : [link]), ...(below ?? []).flatMap(linksIn)];
    });
  const { nav, sidebar } = config.themeConfig ?? {};
  const links = [...linksIn(nav), ...linksIn(sidebar)].filter(
    (link) => !link.startsWith('/reference/'),
  );

  it('links only to pages that exist', () => {
    const known = PAGES.map((page) => `/${relative('docs', page)}`.replace(/(index)?\.md$/, ''));
    expect(links.length).toBeGreaterThan(20);
    const own = links.filter((link) => !link.startsWith('https://'));
    expect(own.filter((link) => !known.includes(link))).toEqual([]);
  });

  it('links to all guides and concepts', () => {
    const written = PAGES.filter((page) => /^docs\/(guides|concepts)\//.test(page));
    expect(links).toEqual(
      expect.arrayContaining(written.map((page) => page.replace(/^docs|\.md$/g, ''))),
    );
  });
});

// Blocks of `sh` are run. Those of `bash` are not: they need an installation, a network or a server.
describe('the shell blocks', () => {
  const pagesWith = (language: string) =>
    PAGES.filter((page) => blocksOf(page, language).length > 0);

  it.each(pagesWith('sh'))('of %s run, in order', async (page) => {
    const script = `cd "$1" && set -e\n${blocksOf(page, 'sh').join('\n')}`;
    const { code, stderr } = await runInShell(script, newFolder());

    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  });

  it.each(pagesWith('bash'))(
    'of %s that are not run name only commands and flags that exist',
    (page) => {
      const lines = blocksOf(page, 'bash').join('').split('\n');
      const calls = lines.flatMap(
        (line) => /^(?:npx )?tokenwright (.*?)(?: >.*)?$/.exec(line)?.[1] ?? [],
      );

      for (const call of calls) {
        const known = ALL_COMMANDS.find(({ name }) => `${call} `.startsWith(`${name} `));
        if (known === undefined) {
          expect(call).toMatch(/^serve(?: --check)?$/);
          continue;
        }
        const flags = [...call.matchAll(/ (--[a-z-]+)/g)].map(([, flag]) => flag);
        for (const flag of flags) expect(known.help, call).toContain(flag);
      }
    },
  );

  it('fail if one of their commands fails (the control)', async () => {
    const { code } = await runInShell('cd "$1" && set -e\ntokenwright keys check', newFolder());
    expect(code).not.toBe(0);
  });
});

describe('the names of commands', () => {
  const files = [
    ...PAGES,
    ...['CONTRIBUTING.md', 'SECURITY.md', '.changeset/first-release.md'],
    ...globSync('{src,examples}/**/*.{ts,tsx,mjs,cjs,sh,yaml}', {
      cwd: root.pathname,
      exclude: ['**/node_modules', 'examples/prisma/generated*'],
    }),
  ];
  const verbs = ALL_COMMANDS.flatMap(({ name }) => name.split(' ')[1] ?? []);
  // A table has the mark "tokenwright usage schema".
  const call = new RegExp(
    `\\btokenwright (?:${[...verbs, 'scopes'].join('|')})\\b(?! schema).{0,20}`,
    'g',
  );

  it('begin with their nouns, wherever they are written', () => {
    const calls = files.flatMap((file) =>
      Array.from(read(file).matchAll(call), ([text]) => `${file}: ${text}`),
    );

    expect(calls).toEqual([]);
    expect('run tokenwright migrate --print').toMatch(call);
    expect('run tokenwright store migrate').not.toMatch(call);
  });
});

describe.runIf(inject('servers').postgres)('the SQL of bring-your-tokens.md', () => {
  it('replaces values with their SHA-256 hashes', async () => {
    const client = new pg.Client({ connectionString: inject('servers').postgres });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query('CREATE TEMPORARY TABLE api_tokens (value text)');
    await client.query("INSERT INTO api_tokens VALUES ('sesame'), ('ésame')");

    const blocks = blocksOf('docs/guides/bring-your-tokens.md', 'sql');
    await client.query(blocks.find((text) => text.startsWith('ALTER TABLE')) ?? '');

    const { rows } = await client.query('SELECT * FROM api_tokens');
    const hashes = ['sesame', 'ésame'].map((text) => ({
      sha256: createHash('sha256').update(text).digest(),
    }));
    expect(rows).toEqual(hashes);
  });
});

describe('the guides', () => {
  it('leaks.md shows the rules that scannerRules returns', () => {
    const { gitleaks, trufflehog, github } = scannerRules({ prefix: 'acme' });
    const [fields = ''] = blocksOf('docs/guides/leaks.md', 'text');

    expect(blocksOf('docs/guides/leaks.md', 'toml')).toEqual([gitleaks]);
    expect(blocksOf('docs/guides/leaks.md', 'yaml')).toEqual([trufflehog]);
    expect([...fields.matchAll(/: +(.*)$/gm)].map(([, text]) => text)).toEqual(
      Object.values(github),
    );
  });
});

describe('the OpenTelemetry Collector configuration of docs/guides/logging.md', () => {
  const [config = ''] = blocksOf('docs/guides/logging.md', 'yaml');
  const expressions = [...config.matchAll(/"(\([^"]*)", "([^"]*)"/g)];

  it('masks in every statement the values that redact masks', () => {
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

/** One `map` of nginx: the first expression that matches gives the text, otherwise the default. */
type NginxMap = (text: string) => string;

/** Reads the maps of a configuration. The PCRE syntax that they use means the same in JavaScript. */
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

describe('the nginx configuration of docs/guides/logging.md', () => {
  const [config = ''] = blocksOf('docs/guides/logging.md', 'nginx');
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
  ])('logs %s unchanged', (target) => {
    expect(logged(target)).toBe(target);
  });

  it('logs the masked address, and no other variable that could hold a value', () => {
    const format = /log_format safe ([^;]*);/.exec(config)?.[1] ?? '';

    expect(format).toContain('$safe_uri');
    expect(format).not.toMatch(/\$request\b|\$request_uri|\$uri|\$args|\$http_|\$cookie_|\$arg_/);
    expect(config).toMatch(/^access_log \S+ safe;$/m);
  });
});
