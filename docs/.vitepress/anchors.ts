// Finds links of the built site that lead to a page or a heading that is not there.
import { globSync, readFileSync } from 'node:fs';

const SITE = 'http://site';

/** Each as the page and the link in it; `dist` is the folder of the site. */
export function deadLinks(dist: string): string[] {
  const pages = new Map(
    globSync('**/*.html', { cwd: dist }).map((file) => [
      `/${file}`.replace(/(?:index)?\.html$/, ''),
      readFileSync(`${dist}/${file}`, 'utf8'),
    ]),
  );
  const isThere = (link: string, page: string): boolean => {
    const { origin, pathname, hash } = new URL(link, SITE + page);
    if (origin !== SITE || /\.\w+$/.test(pathname)) return true;
    const html = pages.get(pathname);
    const id = decodeURIComponent(hash.slice(1));
    return html !== undefined && (id === '' || html.includes(` id="${id}"`));
  };
  return [...pages].flatMap(([page, html]) => {
    const links = [...html.matchAll(/ href="([^"]*)"/g)].map(([, link = '']) => link);
    return [...new Set(links)]
      .filter((link) => !isThere(link.replaceAll('&amp;', '&'), page))
      .map((link) => `${page} ${link}`);
  });
}
