import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { boundsIn, TABLES, withBounds, withTables } from '../../docs/.vitepress/bounds.ts';
import { fileOf, llmsText } from '../../docs/.vitepress/llms.ts';
import * as bounds from '../../src/bounds.ts';

const ROOT = join(import.meta.dirname, '../..');
/** An example of the address of the site. */
const SITE = 'https://docs.example';
const DOCS = join(ROOT, 'docs');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

describe('llms.txt', () => {
  const text = llmsText(SITE);
  const links = [...text.matchAll(/^- \[[^\]]+\]\(([^)]+)\)/gm)].map(([, link = '']) =>
    link.slice(SITE.length),
  );
  const isMade = (link: string) => link.startsWith('/reference/');

  it('consists of a title, a summary and lists of links', () => {
    const [name, blank, quote] = text.split('\n');

    expect(name).toBe('# tokenwright');
    expect(blank).toBe('');
    expect(quote).toMatch(/^> \S.+/);
    for (const line of text.split('\n').slice(3)) {
      expect(line).toMatch(/^$|^## \S+|^- \[[^\]]+\]\(https:\/\/[\w./-]+\/[\w/-]*\)(?:: \S.*)?$/);
    }
    expect(text.match(/^## Optional$/gm)).toHaveLength(1);
  });

  it('uses absolute URLs of the site, since it is read outside of it', () => {
    expect(text.match(/\]\((?!https:)[^)]*\)$/gm)).toBeNull();
    expect(text).toContain(`](${SITE}/quick-start)`);
  });

  it('names the files of the package if there is no site, without what only a site has', () => {
    const files = [...llmsText().matchAll(/^- \[[^\]]+\]\(([^)]+)\)/gm)].map(
      ([, file = '']) => file,
    );

    expect(files).toContain('docs/guides/express.md');
    expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
    expect(files.filter((file) => /reference|evidence/.test(file))).toEqual([]);
  });

  it('links only to pages that exist', () => {
    const dead = links.filter((link) => !isMade(link) && !existsSync(fileOf(link)));

    expect(links.length).toBeGreaterThan(40);
    expect(dead).toEqual([]);
    expect(existsSync(fileOf('/guides/nowhere'))).toBe(false);
  });

  it('links to every page', () => {
    const pages = globSync('**/*.md', {
      cwd: DOCS,
      exclude: (name) => name === 'reference' || name === 'node_modules',
    });
    const known = new Set(links.map((link) => fileOf(link).pathname));
    const missing = pages.filter((page) => !known.has(join(DOCS, page)));

    // The home page, and evidence for maintainers.
    expect(missing.sort()).toEqual(['evidence/asvs.md', 'evidence/mutants.md', 'index.md']);
  });

  it('lists each page once, with a description', () => {
    expect(new Set(links).size).toBe(links.length);
    expect(text.match(/^- \[[^\]]+\]\((?!\S+\/reference\/)[^)]+\)$/gm)).toBeNull();
  });
});

describe('the pages about security', () => {
  const pages = ['SECURITY.md', ...globSync('docs/{security/*,evidence/asvs}.md', { cwd: ROOT })];

  it.each(pages)('%s names only tests that exist', (page) => {
    const named = [...read(page).matchAll(/`(test\/[\w./-]+)`/g)].map(([, file = '']) => file);

    expect(named.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  });

  it('name tests at all (the control)', () => {
    expect(
      read('docs/security/threat-model.md').match(/`test\/[\w./-]+`/g)?.length,
    ).toBeGreaterThan(20);
    expect(existsSync(join(ROOT, 'test/nowhere.test.ts'))).toBe(false);
  });

  it.each(pages)('%s links only to headings and pages that exist', (page) => {
    const folder = join(ROOT, page, '..');
    const dead = [...read(page).matchAll(/\]\((?!https:)([^)#]*)(?:#([^)]+))?\)/g)].filter(
      ([, file = '', heading]) => {
        const target = file === '' ? join(ROOT, page) : join(folder, file);
        if (!existsSync(target)) return true;
        return heading !== undefined && !headingsOf(target).includes(heading);
      },
    );

    expect(dead.map(([link]) => link)).toEqual([]);
  });
});

describe('the page about limits', () => {
  const page = read('docs/security/limits.md');
  const named = Object.values(TABLES).flat().flatMap(boundsIn);

  it('shows the numbers of the code (npm run docs:bounds)', () => {
    expect(withTables(page)).toBe(page);
  });

  it('names every bound', () => {
    const tagged = globSync('src/**/*.ts', { cwd: ROOT }).flatMap((file) =>
      [...read(file).matchAll(/^\/\*\* [A-Z`].*\. @bound \*\/\nexport const (\w+) =/gm)].map(
        ([, name = '']) => name,
      ),
    );
    const names = [...Object.keys(bounds), ...tagged];

    expect(names.length).toBeGreaterThan(140);
    expect(names.filter((name) => !named.includes(name))).toEqual([]);
  });

  it('is corrected if a number was changed in one place (the control)', () => {
    const changed = page.replace('10 000 tokens; 1 to', '20 000 tokens; 1 to');

    expect(changed).not.toBe(page);
    expect(withTables(changed)).toBe(page);
  });

  it.each([
    ['{MAX_RECORD_BYTES}', '1 MiB'],
    ['{MAX_ACCOUNT_BYTES}', '255 bytes'],
    ['{SCAN_BUDGET_MS}', '50 ms'],
    ['{REQUEST_TIMEOUT_MS}', '30 s'],
    ['{RECENT_WRITES_MS}', '60 s'],
    ['{FAILURES_SECONDS}', '15 minutes'],
    ['{MAX_LIFETIME_SECONDS}', '365 days'],
    ['{SLOT_SHARE}', '1/4'],
    ['{STRANGER_SHARE}', '1/16'],
    ['{MAX_LISTED_TOKENS}', '10 000'],
    ['{MAX_SCOPES}', '4096'],
    ['{DEFAULT_DEADLINE_MS:number}', '2000'],
  ])('writes %s as %s', (text, written) => {
    expect(withBounds(text)).toBe(written);
  });

  it('refuses a name that is not a bound', () => {
    expect(() => withBounds('{MAX_NOTHING}')).toThrow('MAX_NOTHING is no bound');
  });

  it('is based on bounds that each have a docstring of one line', () => {
    const files = [read('src/bounds.ts'), read('src/scope/bounds.ts')].join('\n');
    const documented = [...files.matchAll(/^\/\*\* [A-Z`].*\. \*\/\nexport const (\w+) =/gm)];

    expect(documented.map(([, name]) => name).sort()).toEqual(Object.keys(bounds).sort());
  });
});

/** The headings of a page, as URL fragments name them. */
function headingsOf(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(/^#+ (.+?)(?: \{#([\w-]+)\})?$/gm)].map(
    ([, text = '', id]) =>
      id ??
      text
        .toLowerCase()
        .replace(/[^\w\s-]/g, '')
        .trim()
        .replace(/\s+/g, '-'),
  );
}
