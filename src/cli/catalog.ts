import {
  type CatalogDiff,
  catalogDiff,
  type OpenApiEntry,
  type OpenApiReading,
  type TokenScopes,
} from '../openapi.ts';
import { isSegment, readHost } from '../scope/grammar.ts';
import type { ScopeCatalog } from '../scope/index.ts';
import { catalogTypes } from './catalog-types.ts';
import {
  type Command,
  columns,
  command,
  count,
  indent,
  listFindings,
  type Outcome,
  printable,
} from './command.ts';
import { asInput, readCatalog, readDocuments, readTokens } from './files.ts';
import { diffLines } from './scopes.ts';
import { UsageError } from './settings.ts';

/** What a FILE is, for the help of the group. */
export const FILE_HELP = `FILE is a JSON array of scopes, an OpenAPI document in
JSON or YAML, or a folder of these, as serve --catalog takes it.`;

const INPUT_EXITS = '1  the input cannot be read or is wrong\n2  the command line is wrong';

/** The commands that look at catalogs. */
export const CATALOG_COMMANDS: readonly Command[] = [
  command({
    name: 'catalog from-openapi',
    operands: ['FILE...'],
    summary: 'makes a catalog of OpenAPI documents: a JSON array of scopes',
    about: `FILE is an OpenAPI document (3.0 to 3.2, or Swagger 2.0) in JSON or YAML, or a folder of
these; YAML needs the package @apidevtools/swagger-parser. What is printed is what --catalog
reads. Told beside it, on standard error: which scopes are deprecated, and which stand for
several paths, so that they can only be granted together.`,
    flags: {
      host: {
        type: 'string',
        multiple: true,
        value: 'NAME',
        help: 'the host of servers that name none; repeatable',
      },
      'root-name': {
        type: 'string',
        value: 'NAME',
        help: 'what stands for the path / in a scope, which cannot be empty; default root',
      },
    },
    json: `{ scopes: [scope], deprecated: [scope], merged: [{ scope, operations }] };
an operation is { file, method, path, operationId?, deprecated }`,
    exits: `0  a catalog was made\n${INPUT_EXITS}`,
    example: {
      call: 'catalog from-openapi openapi.json > catalog.json',
      output: `2 scopes of 3 operations in 1 document

stand for several paths, which can only be granted together:
  GET:shop.example/orders
    /orders
    /orders/{id}`,
    },
    async run(files, flags) {
      const hosts = flags.host ?? [];
      const rootName = flags['root-name'] ?? 'root';
      if (!hosts.every((host) => readHost(host) !== undefined)) {
        throw new UsageError('--host must be a host name without port, as shop.example');
      }
      if (!isSegment(rootName)) {
        throw new UsageError('--root-name must be one segment of a path, as root');
      }
      const { reading, documents } = await readDocuments(files, { hosts, rootName });
      return describeReading(reading, documents);
    },
  }),
  command({
    name: 'catalog lint',
    operands: ['FILE...'],
    summary: 'names what a catalog holds and perhaps should not',
    about: `${FILE_HELP} Several are one catalog.

nested         an entry lies below another: whoever is granted that has both
token_service  an entry is a token service: with it *:*/* can mint tokens
apex           hosts lie below one that a wildcard for them does not reach
parameter      a segment as :id stands for that text alone: end the path there`,
    flags: {},
    json: '[{ code, scopes: [scope], message }]',
    exits: `0  nothing was found\n${INPUT_EXITS}\n3  something was found`,
    example: {
      call: 'catalog lint everything.json',
      output: `token_service  POST:shop.example/token looks like a token service: with it *:*/*
               manages tokens; leave it out`,
    },
    async run(files) {
      return describeFindings(await readCatalog(files));
    },
  }),
  command({
    name: 'catalog diff',
    operands: ['BEFORE', 'AFTER'],
    summary: 'tells which scopes appear (+) and vanish (-), and which tokens that touches',
    about: `BEFORE and AFTER are each a FILE. ${FILE_HELP}

Tokens are snapshots. What one loses still stands in it, though the catalog has it no more; what
one gains it gets only when it is issued again, and is told where "requested" is given.`,
    flags: {
      tokens: {
        type: 'string',
        value: 'FILE',
        help: `who holds what: a JSON array of tokens, each { id, scopes, requested? },
the answer of GET /token, or - for standard input`,
      },
    },
    json: `{ added: [scope], removed: [scope], tokens: [{ id, lost, gained }],
isBreaking }`,
    exits: `0  it breaks nothing\n${INPUT_EXITS}
3  it is breaking: a token loses something; without --tokens, a scope vanishes`,
    example: {
      call: 'catalog diff before.json after.json --tokens tokens.json',
      output: `+ GET:shop.example/bills
- GET:shop.example/orders

7f3kQw  - GET:shop.example/orders

breaking: 1 of 2 tokens loses something`,
    },
    async run([before = '', after = ''], { tokens: file }) {
      const known = await readCatalog([before]);
      const next = await readCatalog([after]);
      const tokens = file === undefined ? undefined : await readTokens(file);
      return describeDiff(await asInput(() => catalogDiff(known, next, { tokens })), tokens);
    },
  }),
  command({
    name: 'catalog types',
    operands: ['FILE...'],
    summary: 'prints TypeScript types for a catalog: the text of a .d.ts file',
    about: `${FILE_HELP} Several are one catalog.`,
    flags: {
      name: {
        type: 'string',
        value: 'NAME',
        help: 'what the names of the types begin with: ShopScope, ShopCatalog, ShopPattern',
      },
    },
    json: '{ types }; the same as one text',
    exits: `0  types were made\n${INPUT_EXITS}`,
    example: {
      call: 'catalog types catalog.json --name Shop | grep export',
      output: `export type ShopScope =
export type ShopCatalog = TypedCatalog<ShopScope>;
export type ShopPattern = CatalogPattern<ShopCatalog>;`,
    },
    async run(files, { name }) {
      const types = catalogTypes(await readCatalog(files), name);
      return { text: types.trimEnd(), json: { types } };
    },
  }),
];

function describeReading(reading: OpenApiReading, documents: readonly string[]): Outcome {
  const { catalog, entries, deprecated } = reading;
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
  ];
  return {
    text: JSON.stringify(scopes, null, 2),
    json: { scopes, deprecated, merged },
    notes: notes.join('\n\n'),
  };
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`${title}:\n${indent(lines.join('\n'))}`];
}

/** Servers of one document share its operations: their scopes stand together. */
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
  const found = findings.length === 0 ? 'nothing found' : count(findings.length, 'finding');
  return {
    text: listFindings(
      findings.map((finding) =>
        finding.code === 'apex' ? { ...finding, below: finding.scopes } : finding,
      ),
    ),
    json: findings,
    notes: `${found} in ${count(catalog.size, 'scope')}`,
    isNegative: findings.length > 0,
  };
}

function describeDiff(diff: CatalogDiff, tokens: readonly TokenScopes[] | undefined): Outcome {
  const rows = diff.tokens.flatMap(({ id, lost, gained }) =>
    diffLines({ added: gained, removed: lost })
      .split('\n')
      .map((line, i) => [i === 0 ? printable(id) : '', line] as const),
  );
  const parts = [diffLines(diff), columns(rows), verdict(diff, tokens)];
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

function verdict(diff: CatalogDiff, tokens: readonly TokenScopes[] | undefined): string {
  const title = diff.isBreaking ? 'breaking' : 'not breaking';
  if (tokens === undefined) {
    const { length } = diff.removed;
    if (length === 0) return `${title}: no scope vanishes`;
    return `${title}: ${count(length, 'scope')} ${length === 1 ? 'vanishes' : 'vanish'}`;
  }
  const losers = diff.tokens.filter(({ lost }) => lost.length > 0).length;
  const all = count(tokens.length, 'token');
  if (losers === 0) return `${title}: none of ${all} loses anything`;
  return `${title}: ${losers} of ${all} ${losers === 1 ? 'loses' : 'lose'} something`;
}
