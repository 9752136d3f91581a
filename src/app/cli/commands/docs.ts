import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { nearestName } from '../../../scope/nearest.ts';
import { inputError, usageError } from '../../terminal/errors.ts';
import { columns } from '../../terminal/layout.ts';
import { command } from '../command.ts';

/** The documentation, seen from `dist` in the package, and from this file in the repository. */
const PLACES = ['../docs/', '../../../../docs/'];

/** Prints a page of the documentation, or what it says about an error code, in Markdown. */
export const DOCS = command({
  name: 'docs',
  operands: ['PAGE?'],
  summary: 'prints a page of the documentation, or about an error',
  about: `PAGE is the name of a page, such as express or guides/express, or an error code, such as
invalid_ttl: what error.code holds, and "code" in an answer over HTTP. Without it, all pages are listed; the
page errors has all codes.`,
  flags: {},
  json: '{ page, text } where text is Markdown; without PAGE [{ page, title }]',
  exits: { 0: 'the page exists', 1: 'the documentation is missing' },
  example: {
    call: 'docs express',
    output: `# Express

Mount the token service, and put the guard in front of your routes.
…`,
  },
  async run([name]) {
    const pages = pagesIn(docsFolder());
    if (name === undefined) {
      const list = [...pages].map(([page, text]) => ({ page, title: titleOf(text) }));
      return { text: columns(list.map(({ page, title }) => [page, title])), json: list };
    }
    const page = [...pages.keys()].find((each) => each === name || each.endsWith(`/${name}`));
    const errors = sectionsOf(pages.get('errors') ?? '');
    const text = page === undefined ? errors.get(name) : pages.get(page)?.trimEnd();
    if (text === undefined) throw unknownPage(name, [...pages.keys(), ...errors.keys()]);
    return { text, json: { page: page ?? name, text } };
  },
});

/** @throws {CliError} if the documentation is not beside this program */
function docsFolder(): URL {
  const places = PLACES.map((place) => new URL(place, import.meta.url));
  const folder = places.find((place) => existsSync(new URL('errors.md', place)));
  if (folder !== undefined) return folder;
  throw inputError('the documentation is not beside this program; install the package again');
}

/** The folders of pages, `.` for those that are in none. Others belong to the site, or are made for it. */
const FOLDERS = ['.', 'concepts', 'guides', 'service', 'security'];

/** The pages by their names. */
function pagesIn(docs: URL): ReadonlyMap<string, string> {
  const pages = FOLDERS.flatMap((folder) => {
    const place = new URL(`${folder}/`, docs);
    const names = existsSync(place) ? readdirSync(place).sort() : [];
    return names
      .filter((name) => name.endsWith('.md') && name !== 'index.md')
      .map((name): [string, string] => [
        `${folder}/${name.slice(0, -'.md'.length)}`.replace('./', ''),
        readFileSync(new URL(name, place), 'utf8').replace(/^---\n.*?\n---\n+/s, ''),
      ]);
  });
  return new Map(pages);
}

/** A section about one error code. */
const SECTION = /^## (\w+) \{#\1\}\n([\s\S]*?)(?=^## |(?![\s\S]))/gm;

/** What the page about errors says about each code, as a page of its own. */
function sectionsOf(errors: string): ReadonlyMap<string, string> {
  return new Map(
    Array.from(errors.matchAll(SECTION), ([, code = '', text = '']) => [
      code,
      `# ${code}\n${text}`.trimEnd().replace(/^###/gm, '##'),
    ]),
  );
}

function titleOf(page: string): string {
  return /^# (.*)$/m.exec(page)?.[1] ?? '';
}

/** Never repeats the word, which may be a value that was pasted. */
function unknownPage(name: string, pages: readonly string[]): Error {
  const names = pages.flatMap((page) => [page.slice(page.lastIndexOf('/') + 1), page]);
  const known = nearestName(name, names);
  const hint = known === undefined ? '.' : `; did you mean ${known}?`;
  return usageError(`there is no such page or error code${hint} tokenwright docs lists all pages`);
}
