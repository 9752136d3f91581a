// Leads from the codes that a function throws to the pages about them.
import { readdirSync } from 'node:fs';

const OTHER_PAGES = ['index', 'refusals'];

/** The codes that have a page. */
const CODES: ReadonlySet<string> = new Set(
  readdirSync(new URL('../errors/', import.meta.url))
    .map((file) => file.replace(/\.md$/, ''))
    .filter((name) => !OTHER_PAGES.includes(name)),
);

const THROWS = /^#+ Throws\n(?:(?!#).*\n)*/gm;
/** Alone, and not in a link already. */
const CODE = /(?<!\[)`(\w+)`/g;

/** A page of the reference with each code under "Throws" as a link. */
export function withErrorLinks(markdown: string): string {
  return markdown.replace(THROWS, (section) =>
    section.replace(CODE, (text, code) =>
      CODES.has(code) ? `[${text}](../errors/${code}.md)` : text,
    ),
  );
}
