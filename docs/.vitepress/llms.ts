// Writes llms.txt (llmstxt.org): the pages of this documentation in the order of the sidebar, each with its address and its first words.
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import type { DefaultTheme } from 'vitepress';
import { aboutOf } from './about.ts';
import config from './config.ts';

const docs = new URL('../', import.meta.url);
const manifest = JSON.parse(readFileSync(new URL('../package.json', docs), 'utf8'));

/** A page as the sidebar names it. */
interface Page {
  readonly section: string;
  readonly text: string;
  readonly link: string;
}

/** Pages that are looked up one at a time: under a heading that a reader in a hurry may leave out. */
const OPTIONAL = ['Errors'];

/** With whole addresses once the documentation has one, else with paths. */
export function llmsText(site: string = manifest.homepage ?? ''): string {
  const listed = pagesOf((config.themeConfig?.sidebar ?? []) as DefaultTheme.SidebarItem[]);
  const sections = Map.groupBy([...listed, ...othersThan(listed)], ({ section }) => section);
  const isOptional = (section: string) => OPTIONAL.includes(section);
  const ordered = [...sections].sort(([a], [b]) => Number(isOptional(a)) - Number(isOptional(b)));
  const texts = ordered.map(([section, members]) => {
    const title = isOptional(section) ? 'Optional' : section;
    return [`## ${title}`, '', ...members.map((page) => lineOf(page, site))].join('\n');
  });
  return `${[`# ${manifest.name}`, `> ${manifest.description}`, ...texts].join('\n\n')}\n`;
}

/** The file of an address of the site. */
export function fileOf(link: string): URL {
  return new URL(`.${link.endsWith('/') ? `${link}index` : link}.md`, docs);
}

function pagesOf(items: readonly DefaultTheme.SidebarItem[], section?: string): Page[] {
  return items.flatMap(({ text = '', link, items: inner = [] }) => {
    const isGroup = inner.length > 0;
    const own = section ?? (isGroup ? text : 'Start');
    const page = link === undefined ? [] : [{ section: own, text, link }];
    return [...page, ...pagesOf(inner, own)];
  });
}

/** Pages that the sidebar does not name. */
function othersThan(listed: readonly Page[]): Page[] {
  const known = new Set(listed.map(({ link }) => fileOf(link).pathname));
  return globSync('**/*.md', { cwd: docs.pathname })
    .filter((page) => page !== 'index.md' && !known.has(new URL(page, docs).pathname))
    .sort()
    .map((page) => {
      const text = /^# (.+)$/m.exec(readFileSync(new URL(page, docs), 'utf8'))?.[1] ?? page;
      return { section: 'More', text, link: `/${page.replace(/(?:(^|\/)index)?\.md$/, '$1')}` };
    });
}

function lineOf({ text, link }: Page, site: string): string {
  const file = fileOf(link);
  const about = existsSync(file) ? aboutOf(readFileSync(file, 'utf8')) : '';
  return `- [${text}](${site}${link})${about === '' ? '' : `: ${about}`}`;
}

if (import.meta.main) writeFileSync(new URL('public/llms.txt', docs), llmsText());
