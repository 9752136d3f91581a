// Writes llms.txt (llmstxt.org): the pages of this documentation in the order of the sidebar, each with its address and its first words.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { DefaultTheme } from 'vitepress';
import { aboutOf } from './about.ts';
import { sidebar } from './sidebar.ts';

const docs = new URL('../', import.meta.url);
const manifest = JSON.parse(readFileSync(new URL('../package.json', docs), 'utf8'));

/** A page as the sidebar names it. */
interface Page {
  readonly section: string;
  readonly text: string;
  readonly link: string;
}

/** What a reader in a hurry may leave out: the heading of such pages is given by llmstxt.org. */
const OPTIONAL = 'Errors';

/** With the addresses of a site, or without one with the files of the package. */
export function llmsText(site?: string): string {
  const pages = pagesOf(sidebar).filter(({ link }) => site !== undefined || !isMade(link));
  const sections = Map.groupBy(pages, ({ section }) =>
    section === OPTIONAL ? 'Optional' : section,
  );
  const optional = sections.get('Optional') ?? [];
  sections.delete('Optional');
  const texts = [...sections, ['Optional', optional] as const].map(([section, members]) =>
    [`## ${section}`, '', ...members.map((page) => lineOf(page, site))].join('\n'),
  );
  return `${[`# ${manifest.name}`, `> ${manifest.description}`, ...texts].join('\n\n')}\n`;
}

/** Whether a page exists on the site alone, made of the types of the package or for maintainers. */
function isMade(link: string): boolean {
  return /^\/(?:reference|evidence)\//.test(link);
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

function lineOf({ text, link }: Page, site: string | undefined): string {
  const file = fileOf(link);
  const about = existsSync(file) ? aboutOf(readFileSync(file, 'utf8')) : '';
  const address =
    site === undefined ? `docs/${relative(docs.pathname, file.pathname)}` : site + link;
  return `- [${text}](${address})${about === '' ? '' : `: ${about}`}`;
}

if (import.meta.main) writeFileSync(new URL('../llms.txt', docs), llmsText());
