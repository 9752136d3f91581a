import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { inputError, nearest, usageError } from '../../terminal/errors.ts';
import { columns, indent, labeled, wrap } from '../../terminal/layout.ts';
import { command } from '../command.ts';

/**
 * The folder of the pages, seen from `dist` in the package, and from this file in the repository.
 */
const PLACES = ['../docs/errors/', '../../../../docs/errors/'];

/** The width of a line without a dash or the gap between two columns. */
const ITEM_WIDTH = 78;

/** Pages that are not about a code. */
const OTHER_PAGES: ReadonlySet<string> = new Set(['index', 'refusals']);

/** Prints the page about an error code, as the documentation has it. */
export const EXPLAIN = command({
  name: 'explain',
  operands: ['CODE?'],
  summary: 'says what an error code means, and what to do',
  about: `CODE is what error.code holds, and "code" in an answer over HTTP. Without it, all codes are
listed.`,
  flags: {},
  json: '{ code, text } where text is Markdown; without CODE [{ code, about }]',
  exits: { 0: 'the code is known', 1: 'the pages are missing' },
  example: {
    call: 'explain uri_too_long',
    output: `uri_too_long

The address is longer than 8192 characters.
…`,
  },
  async run([code]) {
    const folder = pagesFolder();
    const codes = codesIn(folder);
    if (code === undefined) {
      const list = codes.map((each) => ({ code: each, about: aboutOf(readPage(folder, each)) }));
      const width = Math.max(...codes.map((each) => each.length));
      const rows = list.flatMap((each) => labeled(each.code, wrap(each.about, ITEM_WIDTH - width)));
      return { text: columns(rows), json: list };
    }
    if (!codes.includes(code)) throw unknownCode(code, codes);
    const text = withoutFrontmatter(readPage(folder, code));
    return { text: asText(text), json: { code, text } };
  },
});

function pagesFolder(): URL {
  const places = PLACES.map((place) => new URL(place, import.meta.url));
  const folder = places.find((place) => existsSync(place));
  if (folder === undefined) {
    throw inputError(
      'the pages about errors are not beside this program; install the package again',
    );
  }
  return folder;
}

function codesIn(folder: URL): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.md'))
    .map((name) => name.slice(0, -'.md'.length))
    .filter((name) => !OTHER_PAGES.has(name))
    .sort();
}

/** Never repeats the word, which may be a value that was pasted. */
function unknownCode(code: string, codes: readonly string[]): Error {
  const known = nearest(code.toLowerCase(), codes);
  const hint = known === undefined ? '.' : `; did you mean ${known}?`;
  return usageError(`this error code is not known${hint} tokenwright explain lists all codes`);
}

function readPage(folder: URL, code: string): string {
  return readFileSync(new URL(`${code}.md`, folder), 'utf8');
}

/** The description in the frontmatter of a page. */
function aboutOf(page: string): string {
  return /^description: "(.*)"$/m.exec(page)?.[1] ?? '';
}

function withoutFrontmatter(page: string): string {
  const end = page.indexOf('\n---\n', 3);
  return page.slice(end + '\n---\n'.length).trim();
}

/**
 * Turns Markdown into text for a terminal: wraps it, indents code, and keeps the words of links.
 */
function asText(markdown: string): string {
  let isCode = false;
  return markdown
    .split('\n')
    .flatMap((line) => {
      if (line.startsWith('```')) {
        isCode = !isCode;
        return [];
      }
      return isCode ? indent(line) : proseLine(line);
    })
    .join('\n');
}

function proseLine(line: string): string {
  const plain = line.replace(/\[([^[\]]*)\]\([^()]*\)/g, '$1');
  if (plain.startsWith('#')) return plain.replace(/^#+ /, '');
  if (!plain.startsWith('- ')) return wrap(plain).join('\n');
  return labeled('-', wrap(plain.slice(2), ITEM_WIDTH))
    .map(([label, text]) => `${label.padEnd(1)} ${text}`)
    .join('\n');
}
