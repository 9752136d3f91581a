import type { OpenApiEntry, TokenScopes } from '../../../openapi/index.ts';
import { type CatalogDiff, catalogDiff, type OpenApiReading } from '../../../openapi/index.ts';
import { isSegment, readHost } from '../../../scope/grammar.ts';
import { type ScopeCatalog, ScopeSet } from '../../../scope/index.ts';
import { count } from '../../../text/wording.ts';
import {
  isFolder,
  readCatalog,
  readDocuments,
  rootNameOf,
} from '../../server/files/catalog-files.ts';
import { readSettings } from '../../server/settings.ts';
import { usageError } from '../../terminal/errors.ts';
import { asInput, isWrittenList, readScopes, readTokens } from '../../terminal/inputs.ts';
import { columns, diffLines, indent, jsonText, labeled, printable } from '../../terminal/layout.ts';
import { catalogTypes } from '../catalog-types.ts';
import { type Command, command, findingsOutcome, type Outcome } from '../command.ts';

/** Explains FILE. */
export const FILE_HELP = `FILE is a JSON array of scopes, an OpenAPI document in
JSON or YAML, or a folder of these, as for serve --catalog.`;

export const INPUT_FAULT = 'the input cannot be read or is wrong';

export const GRANULARITY_FLAG = {
  type: 'string',
  value: 'WHICH',
  help: 'operation: one scope for each operation of an OpenAPI document; prefix: one scope for all operations whose paths are equal up to the first template. Default TOKENWRIGHT_GRANULARITY, or operation',
} as const;

/** The commands that inspect catalogs. */
export const CATALOG_COMMANDS: readonly Command[] = [
  command({
    name: 'catalog from-openapi',
    operands: ['FILE...'],
    summary: 'makes a catalog from OpenAPI documents',
    about: `FILE is an OpenAPI document (3.0 to 3.2, or Swagger 2.0) in JSON or YAML, or a folder of
these. YAML needs the package @apidevtools/swagger-parser. The output is a catalog for --catalog:
a JSON array with one scope for each operation, with {} for a segment that contains a template, and with $ at the
end, so that each can be granted alone. Standard error lists the scopes that are deprecated, those that
cover several paths, which can only be granted together, and with --skip what was left out.`,
    flags: {
      granularity: GRANULARITY_FLAG,
      host: {
        type: 'string',
        multiple: true,
        value: 'NAME',
        help: 'the host of servers without one, and of those with a placeholder, such as https://{tenant}.example; repeatable',
      },
      'root-name': {
        type: 'string',
        value: 'NAME',
        help: 'what stands for the path / in a scope. Default none, so that it is $; with --granularity prefix, root',
      },
      root: {
        type: 'string',
        value: 'FOLDER',
        help: 'the folder that $ref may not leave; default the folder of each document',
      },
      skip: { type: 'boolean', help: 'leave out operations that cannot become a scope' },
    },
    json: '{ scopes: [scope], deprecated: [scope], merged: [{ scope, operations }], skipped: [text] }; an operation is { file, method, path, operationId?, summary?, tag?, segments?, deprecated }',
    exits: { 0: 'a catalog was made', 1: INPUT_FAULT },
    example: {
      call: 'catalog from-openapi openapi.json',
      output: `[
  "GET:shop.example/orders$",
  "GET:shop.example/orders/{}$",
  "POST:shop.example/orders$"
]`,
    },
    async run(files, flags) {
      const hosts = flags.host ?? [];
      const { granularity } = readSettings(['granularity'], flags);
      const rootName = flags['root-name'] ?? rootNameOf(granularity);
      if (!hosts.every((host) => readHost(host) !== undefined)) {
        throw usageError('--host must be a host name without port, as shop.example');
      }
      if (rootName !== undefined && (!isSegment(rootName) || rootName.endsWith('$'))) {
        throw usageError(
          '--root-name must be one segment of a path that does not end in $, as root',
        );
      }
      const { root, skip } = flags;
      if (root !== undefined && !isFolder(root)) {
        throw usageError('--root must be a folder that is there');
      }
      const options = { granularity, hosts, rootName, root, skip };
      const { reading, documents } = await readDocuments(files, options);
      return describeReading(reading, documents);
    },
  }),
  command({
    name: 'catalog lint',
    operands: ['FILE...'],
    summary: 'finds entries that may be unintended',
    about: `${FILE_HELP} Several are one catalog.

nested         an entry lies below another that has no $ at its end: whoever is
               granted that has both
token_service  an entry is a token service: with it *:*/* can mint tokens
apex           hosts lie below one that a wildcard for them does not reach`,
    flags: { granularity: GRANULARITY_FLAG },
    json: '[{ code, scopes: [scope], message }]',
    exits: { 0: 'nothing was found', 1: INPUT_FAULT, 3: 'something was found' },
    example: {
      call: 'catalog lint everything.json',
      output: `token_service  POST:shop.example/token may be a token service, which *:*/* would
               open`,
    },
    async run(files, flags) {
      return describeFindings(await readCatalog(files, flags));
    },
  }),
  command({
    name: 'catalog diff',
    operands: ['BEFORE', 'AFTER'],
    summary: 'compares two catalogs, or two lists of scopes',
    about: `It lists the scopes that appear (+) and disappear (-). BEFORE and AFTER are each a FILE. ${FILE_HELP}

With --rights they are each a LIST: scopes separated by commas, a JSON file of scopes, or - for standard
input. They are then compared by what they allow, not by how they are written: a scope that another scope of
the same list covers makes no difference.

If narrower scopes take the place of one that vanishes, they follow it (=). Give them to the tokens
that lose it. This is so for every scope when you move from prefixes to operations: make BEFORE with
catalog from-openapi --granularity prefix.

Tokens are snapshots. What one loses still stands in it, though the catalog has it no more; what
one gains it gets only when it is issued again; this is listed if "requested" is given.`,
    flags: {
      granularity: GRANULARITY_FLAG,
      tokens: {
        type: 'string',
        value: 'FILE',
        help: 'who holds what: a JSON array of tokens, each { id, scopes, requested? }, the answer of GET /token, or - for standard input',
      },
      rights: { type: 'boolean', help: 'compare what two lists of scopes allow' },
    },
    json: '{ added: [scope], removed: [scope], kept: [scope], tokens: [{ id, lost, kept, gained }], isBreaking }; kept is what is there in place of removed and lost. With --rights { added, removed }',
    exits: {
      0: 'it breaks nothing',
      1: INPUT_FAULT,
      3: 'it is breaking: a token loses something; without --tokens, a scope vanishes; with --rights, AFTER allows less',
    },
    example: {
      call: 'catalog diff before.json after.json --tokens tokens.json',
      output: `+ GET:shop.example/bills$
- GET:shop.example/orders$

7f3kQw  - GET:shop.example/orders$

breaking: 1 of 2 tokens loses something`,
    },
    async run([before = '', after = ''], { tokens: file, rights, ...flags }) {
      if (rights === true) {
        if ((file ?? flags.granularity) !== undefined) {
          throw usageError('--rights compares two lists: leave --tokens and --granularity out');
        }
        return diffRights(before, after);
      }
      if (isWrittenList(before) || isWrittenList(after)) {
        throw usageError('to compare what two lists of scopes allow, add --rights');
      }
      const known = await readCatalog([before], flags);
      const next = await readCatalog([after], flags);
      const tokens = file === undefined ? undefined : await readTokens(file);
      return describeDiff(await asInput(() => catalogDiff(known, next, { tokens })), tokens);
    },
  }),
  command({
    name: 'catalog types',
    operands: ['FILE...'],
    summary: 'prints TypeScript types for a catalog',
    about: `It prints the text of a .d.ts file. ${FILE_HELP} Several are one catalog.`,
    flags: {
      granularity: GRANULARITY_FLAG,
      name: {
        type: 'string',
        value: 'NAME',
        help: 'what the names of the types begin with: ShopScope, ShopCatalog, ShopPattern',
      },
    },
    json: '{ types }; the same as one text',
    exits: { 0: 'types were made', 1: INPUT_FAULT },
    example: {
      call: 'catalog types catalog.json --name Shop | grep export',
      output: `export type ShopScope =
export type ShopCatalog = TypedCatalog<ShopScope>;
export type ShopPattern = CatalogPattern<ShopCatalog>;`,
    },
    async run(files, { name, ...flags }) {
      const types = catalogTypes(await readCatalog(files, flags), name);
      return { text: types.trimEnd(), json: { types } };
    },
  }),
];

async function diffRights(before: string, after: string): Promise<Outcome> {
  if (before === '-' && after === '-') {
    throw usageError('only one of <BEFORE> and <AFTER> can be - for standard input');
  }
  const from = await readScopes(before, 'BEFORE');
  const to = await readScopes(after, 'AFTER');
  const diff = ScopeSet.from(from).diff(to);
  const text = diffLines(diff);
  return {
    text,
    json: diff,
    ...(text === '' && { notes: 'no difference: both lists allow the same' }),
    isNegative: diff.removed.length > 0,
  };
}

function describeReading(reading: OpenApiReading, documents: readonly string[]): Outcome {
  const { catalog, entries, deprecated, skipped } = reading;
  const scopes = catalog.toArray();
  const merged = reading.merged.map(({ scope, operations }) => ({
    scope,
    operations: operations.map(({ document, ...operation }) => ({
      file: documents[document] ?? '',
      ...operation,
    })),
  }));
  const sum = new Set(
    entries.flatMap(({ operations }) =>
      operations.map(({ document, method, path }) => `${document} ${method} ${path}`),
    ),
  ).size;
  const notes = [
    `${count(scopes.length, 'scope')} of ${count(sum, 'operation')} in ${count(documents.length, 'document')}`,
    ...section('deprecated', deprecated),
    ...section(
      'stand for several paths, which can only be granted together',
      describeMerged(reading.merged),
    ),
    ...section('left out', skipped),
  ];
  return {
    text: jsonText(scopes),
    json: { scopes, deprecated, merged, skipped },
    notes: notes.join('\n\n'),
  };
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`${title}:\n${indent(lines.join('\n'))}`];
}

/** Groups scopes by their operations, which the servers of one document share. */
function describeMerged(merged: readonly OpenApiEntry[]): string[] {
  const byPaths = new Map<string, string[]>();
  for (const { scope, operations } of merged) {
    const paths = new Set(operations.map(({ path }) => printable(path)));
    const text = indent([...paths].join('\n'));
    const key = `${operations[0]?.document} ${operations[0]?.method}\n${text}`;
    byPaths.set(key, [...(byPaths.get(key) ?? []), scope]);
  }
  return [...byPaths].map(([key, scopes]) =>
    [...scopes, key.slice(key.indexOf('\n') + 1)].join('\n'),
  );
}

function describeFindings(catalog: ScopeCatalog): Outcome {
  const findings = catalog.lint();
  const listed = findings.map((finding) =>
    finding.code === 'apex' ? { ...finding, below: finding.scopes } : finding,
  );
  return findingsOutcome(findings, count(catalog.size, 'scope'), listed);
}

function describeDiff(diff: CatalogDiff, tokens: readonly TokenScopes[] | undefined): Outcome {
  const rows = diff.tokens.flatMap(({ id, lost, kept, gained }) =>
    labeled(printable(id), [
      ...diffLines({ added: gained, removed: lost }).split('\n'),
      // A count: a token may have hundreds, and the catalog lists them one by one.
      ...(kept.length === 0 ? [] : [`= ${count(kept.length, 'scope')} in their place`]),
    ]),
  );
  const parts = [changeLines(diff), columns(rows), verdict(diff, tokens)];
  const unknown = tokens?.filter(({ requested }) => requested.length === 0).length ?? 0;
  return {
    text: parts.filter((part) => part !== '').join('\n\n'),
    json: diff,
    ...(unknown > 0 &&
      diff.added.length > 0 && {
        notes: `what would be gained is not known of ${count(unknown, 'token')} without "requested"`,
      }),
    isNegative: diff.isBreaking,
  };
}

/** Lists added scopes, then removed ones, each followed by those that take its place. */
function changeLines({ added, removed, kept }: CatalogDiff): string {
  const gone = [
    ...removed.map((scope) => ({ scope, sign: '-' })),
    ...kept.map((scope) => ({ scope, sign: '=' })),
  ].sort((a, b) => (a.scope < b.scope ? -1 : 1));
  return [
    ...added.map((scope) => `+ ${scope}`),
    ...gone.map(({ scope, sign }) => `${sign} ${scope}`),
  ].join('\n');
}

function verdict(diff: CatalogDiff, tokens: readonly TokenScopes[] | undefined): string {
  const title = diff.isBreaking ? 'breaking' : 'not breaking';
  if (tokens === undefined) {
    const { length } = diff.removed;
    if (length === 0) return `${title}: no scope vanishes`;
    const rest = diff.kept.length === 0 ? '' : `, ${diff.kept.length} are in their place`;
    return `${title}: ${count(length, 'scope')} ${length === 1 ? 'vanishes' : 'vanish'}${rest}`;
  }
  const losers = diff.tokens.filter(({ lost }) => lost.length > 0).length;
  const all = count(tokens.length, 'token');
  if (losers === 0) return `${title}: none of ${all} loses anything`;
  return `${title}: ${losers} of ${all} ${losers === 1 ? 'loses' : 'lose'} something`;
}
