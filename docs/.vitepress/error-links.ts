// Leads from the codes that a function throws to what the page about errors says of them.
import { readFileSync } from 'node:fs';

const PAGE = readFileSync(new URL('../errors.md', import.meta.url), 'utf8');

/** The codes that the page about errors explains. */
export const CODES: ReadonlySet<string> = new Set(
  [...PAGE.matchAll(/^## (\w+) \{#\1\}$/gm)].map(([, code = '']) => code),
);

const THROWS = /^#+ Throws\n(?:(?!#).*\n)*/gm;
/** Alone, and not in a link already. */
const CODE = /(?<!\[)`(\w+)`/g;

/** A page of the reference with each code under "Throws" as a link. */
export function withErrorLinks(markdown: string): string {
  return markdown.replace(THROWS, (section) =>
    section.replace(CODE, (text, code) =>
      CODES.has(code) ? `[${text}](../errors.md#${code})` : text,
    ),
  );
}
