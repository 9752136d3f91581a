import { readFileSync } from 'node:fs';
import { nearestName } from '../../../scope/nearest.ts';
import { usageError } from '../../terminal/errors.ts';
import { columns, indent, labeled, wrap } from '../../terminal/layout.ts';
import { command } from '../command.ts';
import { docsFolder } from './docs.ts';

/** The width of a line without a dash or the gap between two columns. */
const ITEM_WIDTH = 78;

/** Prints the page about an error code, as the documentation has it. */
export const EXPLAIN = command({
  name: 'explain',
  operands: ['CODE?'],
  summary: 'says what an error code means, and what to do',
  about: `CODE is what error.code holds, and "code" in an answer over HTTP. Without it, all codes are
listed.`,
  flags: {},
  json: '{ code, text } where text is Markdown; without CODE [{ code, about }]',
  exits: { 0: 'the code is known', 1: 'the documentation is missing' },
  example: {
    call: 'explain uri_too_long',
    output: `uri_too_long

The address is longer than 8192 characters.
…`,
  },
  async run([code]) {
    const page = readFileSync(new URL('errors.md', docsFolder()), 'utf8');
    const sections = sectionsOf(page);
    const codes = [...sections.keys()].sort();
    if (code === undefined) {
      const list = codes.map((each) => ({ code: each, about: aboutOf(each, page) }));
      const width = Math.max(...codes.map((each) => each.length));
      const rows = list.flatMap((each) => labeled(each.code, wrap(each.about, ITEM_WIDTH - width)));
      return { text: columns(rows), json: list };
    }
    const text = sections.get(code);
    if (text === undefined) throw unknownCode(code, codes);
    return { text: asText(text), json: { code, text } };
  },
});

/** A section about one code. */
const SECTION = /^## (\w+) \{#\1\}\n([\s\S]*?)(?=^## |(?![\s\S]))/gm;

/** What the page says about each code, as a text of its own. */
function sectionsOf(page: string): ReadonlyMap<string, string> {
  return new Map(
    Array.from(page.matchAll(SECTION), ([, code = '', text = '']) => [
      code,
      `# ${code}\n${text}`.trimEnd().replace(/^###/gm, '##'),
    ]),
  );
}

/** Never repeats the word, which may be a value that was pasted. */
function unknownCode(code: string, codes: readonly string[]): Error {
  const known = nearestName(code, codes);
  const hint = known === undefined ? '.' : `; did you mean ${known}?`;
  return usageError(`this error code is not known${hint} tokenwright explain lists all codes`);
}

/** What happened, from the table of all codes. */
function aboutOf(code: string, page: string): string {
  const row = new RegExp(`^\\| \\[\`${code}\`\\]\\(#${code}\\) \\| ([^|]*) \\|`, 'm').exec(page);
  return row?.[1]?.replaceAll('`', '') ?? '';
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
