import type { ScopeCatalog, ScopeWords, WordedScope } from '../../../scope/index.ts';
import { Search } from '../../../scope/search.ts';
import { count } from '../../../text/wording.ts';
import { readCatalog } from '../../server/files/catalog-files.ts';
import { readFlag, wholeNumber } from '../../terminal/kinds.ts';
import { printable, table } from '../../terminal/layout.ts';
import { type Command, command, type Outcome } from '../command.ts';
import { findPermission } from '../permissions.ts';
import { FILE_HELP, GRANULARITY_FLAG, INPUT_FAULT } from './catalog.ts';

const WORDS_JSON =
  '[{ scope, summary?, tag?, segments?, deprecated?, operationId? }], one for each operation, which is a catalog for --catalog';

const FOUND = wholeNumber(1, 10_000);
const DEFAULT_FOUND = 10;

/** The commands that show what people call the entries of a catalog. */
export const WORD_COMMANDS: readonly Command[] = [
  command({
    name: 'catalog list',
    operands: ['FILE...'],
    summary: 'lists the entries of a catalog, with their words',
    about: `${FILE_HELP} Several are one catalog.

Words are what people call an endpoint. An OpenAPI document has them as summary and tags. A JSON
array has them in objects: { "scope": "GET:shop.example/orders$", "summary": "List orders", "tag": "orders" }.`,
    flags: {
      granularity: GRANULARITY_FLAG,
      tag: {
        type: 'string',
        value: 'TAG',
        help: 'only the entries of this tag, in upper or lower case; with @HOST if several hosts have it. An entry without a tag is under the first literal segment of its path',
      },
      words: { type: 'boolean', help: 'show the tag and the summary of each entry' },
    },
    json: WORDS_JSON,
    exits: { 0: 'the entries were listed', 1: INPUT_FAULT },
    example: {
      call: 'catalog list shop.json --tag orders --words',
      output: `SCOPE                      TAG     SUMMARY
GET:shop.example/orders$   orders  List orders
POST:shop.example/orders$  orders  Create an order`,
    },
    async run(files, { tag, words, ...flags }) {
      const catalog = await readCatalog(files, flags);
      const scopes = tag === undefined ? catalog.toArray() : taggedScopes(catalog, tag);
      const text = words === true ? wordTable(catalog, scopes) : scopes.join('\n');
      return { text, json: wordedScopes(catalog, scopes), notes: count(scopes.length, 'scope') };
    },
  }),
  command({
    name: 'catalog search',
    operands: ['QUERY', 'FILE...'],
    summary: 'finds the entries of a catalog by what people call them',
    about: `QUERY is words in any order, such as 'create an issue', or the beginnings of words. An entry is found
if it has all of them in its summary, tag, parameters, method, host or path. The best matches come first.

${FILE_HELP} Several are one catalog.`,
    flags: {
      granularity: GRANULARITY_FLAG,
      limit: {
        type: 'string',
        value: 'N',
        help: `at most this many entries; default ${DEFAULT_FOUND}`,
      },
    },
    json: WORDS_JSON,
    exits: { 0: 'entries were found', 1: INPUT_FAULT, 3: 'no entry has all the words' },
    example: {
      call: "catalog search 'create order' shop.json",
      output: `SCOPE                      TAG     SUMMARY
POST:shop.example/orders$  orders  Create an order`,
    },
    async run([query = '', ...files], { limit, ...flags }) {
      const most = readFlag(FOUND, 'limit', limit) ?? DEFAULT_FOUND;
      return searchIn(await readCatalog(files, flags), query, most);
    },
  }),
];

function taggedScopes(catalog: ScopeCatalog, tag: string): readonly string[] {
  return findPermission(tag, catalog.permissions(), '--tag').write;
}

function searchIn(catalog: ScopeCatalog, query: string, most: number): Outcome {
  const items = [...catalog].map((scope) => ({ scope, words: catalog.words(scope) ?? {} }));
  const found = new Search(items).find(query).map(({ scope }) => scope.toString());
  const shown = found.slice(0, most);
  const rest = found.length > most ? `; --limit ${found.length} lists all` : '';
  return {
    text: shown.length === 0 ? '' : wordTable(catalog, shown),
    json: wordedScopes(catalog, shown),
    notes: `${found.length} of ${count(catalog.size, 'scope')}${rest}`,
    isNegative: found.length === 0,
  };
}

function wordTable(catalog: ScopeCatalog, scopes: readonly string[]): string {
  const rows = scopes.map((scope) => {
    const { tag = '', summary = '', deprecated } = catalog.words(scope) ?? NO_WORDS;
    const mark = deprecated === true ? '(deprecated)' : '';
    return [scope, tag, [summary, mark].filter(Boolean).join(' ')].map(printable);
  });
  return table(['SCOPE', 'TAG', 'SUMMARY'], rows);
}

/** The entries as a catalog file has them. */
function wordedScopes(catalog: ScopeCatalog, scopes: readonly string[]): readonly WordedScope[] {
  return scopes.flatMap((scope) =>
    (catalog.words(scope) ?? NO_WORDS).operations.map((words) => ({ scope, ...words })),
  );
}

/** An entry without words stands for one operation. */
const NO_WORDS: ScopeWords = { operations: [{}] };
