// Writes the reference, pages by entry and area, from the docstrings. Fails on any warning.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import {
  Application,
  type Context,
  Converter,
  makeRecursiveVisitor,
  type Reflection,
  ReflectionKind,
  type SomeType,
} from 'typedoc';
import { load as markdownPlugin } from 'typedoc-plugin-markdown';
import ts from 'typescript';
import tsup from '../../tsup.config.ts';
import { withErrorLinks } from './error-links.ts';
import { AREAS, pagesOf, type Whole } from './reference-pages.ts';

const root = new URL('../../', import.meta.url).pathname;
const out = `${root}docs/reference`;

/** The source of each entry point, by its name in the build: those that have types are public. */
const { dts } = tsup as { dts: { entry: Readonly<Record<string, string>> } };
const { entry } = dts;

/** What each entry is for, by its page. */
const ABOUT: Readonly<Record<string, string>> = {
  tokenwright: 'the service and everything it takes and returns',
  scope: 'scopes without tokens: parse, compare, explain; also in a browser',
  openapi: 'a catalog from OpenAPI documents',
  http: 'guards for routes, and the token service as a handler',
  mcp: 'a guard for MCP servers',
  console: 'a page on which people manage their tokens',
  testing: 'the contract for stores, a clock that you set, and faults',
  sqlite: 'the store on SQLite',
  postgres: 'the store on PostgreSQL',
  mysql: 'the store on MySQL and MariaDB',
  redis: 'the store on Redis and Redis Cluster',
};

/** Halves of types that are shown as a whole, or that nobody need write down. */
const SHOWN_AS_A_WHOLE = new Set([
  'BaseEvent',
  'BaseFinding',
  'TokenScopedEvent',
  'Apart',
  'Canonical',
  'PatternOf',
  'CheckedEntries',
  'Known',
  'Knowing',
  'Meeting',
  'Scopes',
  'Phrase',
  'Plural',
  'Translation',
]);

/** Options of the plugin are none of TypeDoc's own types. */
const markdown = {
  plugin: [markdownPlugin],
  outputFileStrategy: 'modules',
  entryFileName: 'index.md',
  hidePageHeader: true,
  hideBreadcrumbs: true,
  hideGroupHeadings: true,
  useCodeBlocks: true,
  expandObjects: true,
  parametersFormat: 'table',
  interfacePropertiesFormat: 'list',
  typeAliasPropertiesFormat: 'list',
  pageTitleTemplates: {
    module: ({ name }: { readonly name: string }) => addressOf(name),
  },
};

const app = await Application.bootstrapWithPlugins({
  ...markdown,
  name: 'tokenwright',
  basePath: root,
  out,
  readme: 'none',
  cleanOutputDir: true,
  disableSources: true,
  // What a Node request inherits is told of where it comes from.
  excludeExternals: true,
  excludePrivate: true,
  sortEntryPoints: false,
  sort: ['source-order'],
  kindSortOrder: ['Class', 'Function', 'Variable', 'Interface', 'TypeAlias'],
  validation: { notExported: true, invalidLink: true, notDocumented: false },
  intentionallyNotExported: [...SHOWN_AS_A_WHOLE],
});

/** The file in `src` of each type that is shown although it has no export. */
const parts = new Map<string, string>();
app.converter.on(Converter.EVENT_RESOLVE_BEGIN, addParts, -1);

// Of the sources alone: tests and examples are checked elsewhere.
const { options } = ts.parseJsonConfigFileContent(
  ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile).config,
  ts.sys,
  root,
);
const program = ts.createProgram(
  Object.values(entry).map((file) => root + file),
  options,
);
const project = app.converter.convert(
  Object.entries(entry).map(([name, file]) => ({
    displayName: pageOf(name),
    program,
    sourceFile: program.getSourceFile(root + file) as ts.SourceFile,
  })),
);
app.validate(project);
rmSync(out, { recursive: true, force: true });
await app.generateOutputs(project);
const pages = new Map(
  Object.keys(entry).map((name) => {
    const file = `${pageOf(name)}.md`;
    return [file, readFileSync(`${out}/${file}`, 'utf8')] as const;
  }),
);
const wholes = Object.keys(entry).map((name): Whole => {
  const page = pageOf(name);
  const files = filesOf(name);
  return {
    page,
    address: addressOf(page),
    text: withErrorLinks(
      withAnchors(`${page}.md`, withoutTexts(pages.get(`${page}.md`) as string)),
    ),
    areas: AREAS[name] ?? [],
    fileOf: (shown) => files.get(shown) ?? parts.get(shown) ?? '',
    isExported: (shown) => files.has(shown),
  };
});
for (const [page, text] of pagesOf(wholes)) {
  writeFileSync(`${out}/${page}.md`, text);
}
writeFileSync(`${out}/index.md`, homeOf(wholes));
if (app.logger.hasErrors() || app.logger.hasWarnings()) process.exit(1);

/** Adds to each entry the types that its exports are made of and that have no export of their own. */
function addParts(context: Context): void {
  const { project, converter } = context;
  context.setActiveProgram(program);
  const seen = new Set<Reflection>();
  for (;;) {
    const next = Object.values(project.reflections).filter((reflection) => !seen.has(reflection));
    if (next.length === 0) break;
    for (const reflection of next) {
      seen.add(reflection);
      for (const symbol of partsOf(reflection)) {
        const entered = context.withScope(moduleOf(reflection));
        if (project.getReflectionFromSymbolId(context.createSymbolId(symbol)) === undefined) {
          converter.convertSymbol(entered, symbol);
          parts.set(symbol.name, fileOf(symbol));
        }
      }
    }
  }
  context.setActiveProgram(undefined);
}

/** The types of our own that a parameter, member or result names and that are nowhere in the reference. */
function partsOf(reflection: Reflection): ts.Symbol[] {
  const found: ts.Symbol[] = [];
  const visitor = makeRecursiveVisitor({
    reference: ({ reflection: known, symbolId }) => {
      if (known !== undefined || symbolId === undefined) return;
      const source = program.getSourceFile(symbolId.fileName ?? '');
      if (source === undefined || !source.fileName.startsWith(`${root}src/`)) return;
      const statement = source.statements.find(
        (each): each is ts.InterfaceDeclaration | ts.TypeAliasDeclaration =>
          (ts.isInterfaceDeclaration(each) || ts.isTypeAliasDeclaration(each)) &&
          each.name.text === symbolId.qualifiedName,
      );
      const symbol = statement && program.getTypeChecker().getSymbolAtLocation(statement.name);
      if (symbol !== undefined && !SHOWN_AS_A_WHOLE.has(symbol.name)) found.push(symbol);
    },
  });
  if ('type' in reflection) (reflection.type as SomeType | undefined)?.visit(visitor);
  return found;
}

function moduleOf(reflection: Reflection): Reflection {
  return reflection.kindOf(ReflectionKind.Module)
    ? reflection
    : moduleOf(reflection.parent as Reflection);
}

/** The file in `src` that defines each export of an entry. */
function filesOf(name: string): ReadonlyMap<string, string> {
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(root + entry[name]) as ts.SourceFile;
  const module = checker.getSymbolAtLocation(source) as ts.Symbol;
  return new Map(
    checker.getExportsOfModule(module).map((symbol) => {
      const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0;
      return [symbol.name, fileOf(isAlias ? checker.getAliasedSymbol(symbol) : symbol)];
    }),
  );
}

function fileOf({ declarations }: ts.Symbol): string {
  return declarations?.[0]?.getSourceFile().fileName.slice(`${root}src/`.length) ?? '';
}

/**
 * Repairs links to one of two names that differ in case only, such as `CatalogDiff` and `catalogDiff`:
 * the plugin numbers their anchors in another order than that of the headings.
 */
function withAnchors(file: string, text: string): string {
  return text.replace(/\[`(\w+)`\]\((\w+\.md)?#\w+-\d+\)/g, (link, name: string, page = '') => {
    const [headings, index] = headingsLike(name, pages.get(page || file) ?? '');
    if (index === -1) return link;
    const number = index === 0 ? '' : `-${index}`;
    return `[\`${name}\`](${page}#${name.toLowerCase()}${headings.length > 1 ? number : ''})`;
  });
}

/** Leaves out the hundreds of texts of the console: the guide to the console says how to print them. */
function withoutTexts(text: string): string {
  return text
    .replace(/^readonly texts\?: Translation<\{$.*?^\}>;$/ms, 'readonly texts?: ConsoleTexts;')
    .replace(/^```ts\nconst ENGLISH\\?_TEXTS: .*?^```\n/ms, '')
    .replace(/^### Type Declaration\n\n#### shell\n.*/ms, '');
}

/** The names in headings that differ from a name in case only, and the position of the name in them. */
function headingsLike(name: string, text: string): readonly [readonly string[], number] {
  const headings = [...text.matchAll(/^#+ (\w+)/gm)].map(([, heading = '']) => heading);
  const like = headings.filter((heading) => heading.toLowerCase() === name.toLowerCase());
  return [like, like.indexOf(name)];
}

/** The root has a page of its own, since `index` is the list of all. */
function pageOf(name: string): string {
  return name === 'index' ? 'tokenwright' : name;
}

/** What an entry is imported by. */
function addressOf(page: string): string {
  return page === 'tokenwright' ? page : `tokenwright/${page}`;
}

/** The first page: which entry and which area holds what. */
function homeOf(entries: readonly Whole[]): string {
  const rows = entries.flatMap(({ page, address, areas }) => [
    `| [\`${address}\`](./${page}.md) | ${ABOUT[page] ?? 'see its page'} |`,
    ...areas.map(({ name, title, about }) => `| · [${title}](./${page}-${name}.md) | ${about} |`),
  ]);
  return `---
outline: 2
description: "What each entry of the package exports, and where to find it."
---

# Reference

The package has several entries; import from the one that holds the name you need. This reference comes from the comments in the code.

| import from | what is there |
| --- | --- |
${rows.join('\n')}

For the service that runs by itself, see [settings](../service/settings.md), [commands](../service/commands.md) and the [HTTP API](../service/http.md).
`;
}
