import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fileOf, llmsText } from '../docs/.vitepress/llms.ts';
import { DOCS_URL } from '../src/errors.ts';

const ROOT = join(import.meta.dirname, '..');
const DOCS = join(ROOT, 'docs');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

describe('llms.txt', () => {
  const text = llmsText();
  const links = [...text.matchAll(/^- \[[^\]]+\]\(([^)]+)\)/gm)].map(([, link = '']) =>
    link.slice(DOCS_URL.length),
  );
  const isMade = (link: string) => link.startsWith('/reference/');

  it('has the form of one: a name, what it is, and lists of links', () => {
    const [name, blank, quote] = text.split('\n');

    expect(name).toBe('# tokenwright');
    expect(blank).toBe('');
    expect(quote).toMatch(/^> \S.+/);
    for (const line of text.split('\n').slice(3)) {
      expect(line).toMatch(/^$|^## \S+|^- \[[^\]]+\]\(https:\/\/[\w./-]+\/[\w/-]*\)(?:: \S.*)?$/);
    }
    expect(text.match(/^## Optional$/gm)).toHaveLength(1);
  });

  it('leads to addresses of the site, whole, since it is read outside of it', () => {
    expect(text.match(/\]\((?!https:)[^)]*\)$/gm)).toBeNull();
    expect(text).toContain(`](${DOCS_URL}/quick-start)`);
  });

  it('leads to pages that are there', () => {
    const dead = links.filter((link) => !isMade(link) && !existsSync(fileOf(link)));

    expect(links.length).toBeGreaterThan(60);
    expect(dead).toEqual([]);
    expect(existsSync(fileOf('/guides/nowhere'))).toBe(false);
  });

  it('leaves no page out', () => {
    const pages = globSync('**/*.md', {
      cwd: DOCS,
      exclude: (name) => name === 'reference' || name === 'node_modules',
    });
    const known = new Set(links.map((link) => fileOf(link).pathname));
    const missing = pages.filter((page) => page !== 'index.md' && !known.has(join(DOCS, page)));

    expect(missing).toEqual([]);
  });

  it('says something of each page, once', () => {
    expect(new Set(links).size).toBe(links.length);
    expect(text.match(/^- \[[^\]]+\]\((?!\S+\/reference\/)[^)]+\)$/gm)).toBeNull();
  });
});

describe('the pages about security', () => {
  const pages = ['SECURITY.md', ...globSync('docs/security/*.md', { cwd: ROOT })];

  it.each(pages)('%s names tests that are there', (page) => {
    const named = [...read(page).matchAll(/`(test\/[\w./-]+)`/g)].map(([, file = '']) => file);

    expect(named.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  });

  it('name tests at all (the control)', () => {
    expect(
      read('docs/security/threat-model.md').match(/`test\/[\w./-]+`/g)?.length,
    ).toBeGreaterThan(20);
    expect(existsSync(join(ROOT, 'test/nowhere.test.ts'))).toBe(false);
  });

  it.each(pages)('%s leads to headings and pages that are there', (page) => {
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

/** As addresses name them. */
function headingsOf(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, text = '']) =>
    text
      .toLowerCase()
      .replace(/[^\w\s-]/g, '')
      .trim()
      .replace(/\s+/g, '-'),
  );
}
