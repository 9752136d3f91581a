// Writes the reference, one page for each entry point, from the docstrings. Fails on any warning.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Application } from 'typedoc';
import { load as markdownPlugin } from 'typedoc-plugin-markdown';
import ts from 'typescript';
import tsup from '../../tsup.config.ts';
import { withErrorLinks } from './error-links.ts';

const root = new URL('../../', import.meta.url).pathname;
const out = `${root}docs/reference`;

/** The source of each entry point, by its name in the build: those that have types are public. */
const [{ dts }] = tsup as unknown as [{ dts: { entry: Readonly<Record<string, string>> } }];
const { entry } = dts;

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
  // Halves of types that are shown as a whole, or that nobody need write down.
  intentionallyNotExported: [
    'Happened',
    'HappenedToToken',
    'Apart',
    'PatternOf',
    'CheckedEntries',
    'Known',
    'Meeting',
    'Scopes',
  ],
});

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
for (const name of Object.keys(entry)) {
  const file = `${out}/${pageOf(name)}.md`;
  writeFileSync(file, frontmatterOf(name) + withErrorLinks(readFileSync(file, 'utf8')));
}
writeFileSync(
  `${out}/index.md`,
  `# Reference\n\nWhat each entry of the package exports.\n\n${Object.keys(entry).map(lineOf).join('\n')}\n`,
);
if (app.logger.hasErrors() || app.logger.hasWarnings()) process.exit(1);

/** The root has a page of its own, since `index` is the list of all. */
function pageOf(name: string): string {
  return name === 'index' ? 'tokenwright' : name;
}

/** What an entry is imported by. */
function addressOf(page: string): string {
  return page === 'tokenwright' ? page : `tokenwright/${page}`;
}

function frontmatterOf(name: string): string {
  const about = `What ${addressOf(pageOf(name))} exports, from its docstrings.`;
  // Beside the page, the names alone: what each consists of would bury them.
  return `---\noutline: 2\ndescription: "${about}"\n---\n\n`;
}

function lineOf(name: string): string {
  return `- [${addressOf(pageOf(name))}](./${pageOf(name)}.md)`;
}
