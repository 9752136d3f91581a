// Writes the public declarations of each entry to test/api: `npm run api` reads them from dist,
// `npm run api -- --check` reports differences. A change there is a change of the contract.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { ENTRIES, type Entry, specifierOf } from './entries.ts';

const root = new URL('../..', import.meta.url).pathname;
const reports = join(root, 'test/api');

/** The report that is checked in. */
export function recorded(entry: Entry): string {
  return readFileSync(join(reports, `${entry}.d.ts`), 'utf8');
}

/**
 * The declarations in a folder: one text per entry, by name, without docstrings. The text does not
 * depend on how the build splits them into chunks.
 */
export function surfaces(dist: string): ReadonlyMap<Entry, string> {
  const files = new Map(ENTRIES.map((entry) => [entry, join(dist, `${entry}.d.ts`)]));
  const program = ts.createProgram([...files.values()], {
    module: ts.ModuleKind.NodeNext,
    noLib: true,
    types: [],
  });
  const checker = program.getTypeChecker();
  const exported = new Map(
    [...files].map(([entry, file]) => [entry, exportsOf(checker, program.getSourceFile(file))]),
  );
  return new Map(ENTRIES.map((entry) => [entry, surfaceOf(entry, checker, exported, dist)]));
}

type Exports = ReadonlyMap<string, ts.Symbol>;

function exportsOf(checker: ts.TypeChecker, file: ts.SourceFile | undefined): Exports {
  const module = file && checker.getSymbolAtLocation(file);
  if (module === undefined) throw new Error('a declaration file is missing: run npm run build');
  const all = checker.getExportsOfModule(module).map((symbol) => {
    return [symbol.name, declared(checker, symbol)] as const;
  });
  return new Map(all.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function declared(checker: ts.TypeChecker, symbol: ts.Symbol): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}

function surfaceOf(
  entry: Entry,
  checker: ts.TypeChecker,
  exported: ReadonlyMap<Entry, Exports>,
  dist: string,
): string {
  const own = exported.get(entry) ?? new Map<string, ts.Symbol>();
  const symbols = new Set(own.values());
  const imports = new Map<string, Set<string>>();
  const hidden = new Map<string, ts.Symbol>();
  const note = (specifier: string, name: string) =>
    imports.set(specifier, (imports.get(specifier) ?? new Set()).add(name));

  // The set grows during the walk: a symbol that a declaration names belongs to the surface, too.
  for (const symbol of symbols) {
    for (const named of namesIn(symbol, checker)) {
      const target = declared(checker, named);
      const foreign = packageOf(named);
      if (foreign !== undefined) note(foreign, named.name);
      else if (isBelow(dist, target) && !symbols.has(target)) {
        const home = ENTRIES.find((other) =>
          [...(exported.get(other)?.values() ?? [])].includes(target),
        );
        if (home !== undefined) note(specifierOf(home), target.name);
        else {
          symbols.add(target);
          hidden.set(target.name, target);
        }
      }
    }
  }

  const importLines = [...imports]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([from, names]) => `import type { ${[...names].sort().join(', ')} } from '${from}';`);
  const parts = [
    `// What ${specifierOf(entry)} declares, as published. Written by: npm run api\n`,
    ...(importLines.length > 0 ? [`${importLines.join('\n')}\n`] : []),
    ...[...own].map(([name, symbol]) => printed(symbol, name)),
    ...(hidden.size > 0 ? ['// Not exported, but part of the above:\n'] : []),
    ...[...hidden].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, symbol]) => printed(symbol)),
  ];
  return parts.join('\n');
}

/** The symbols that the declarations of a symbol mention. */
function namesIn(symbol: ts.Symbol, checker: ts.TypeChecker): ts.Symbol[] {
  const found: ts.Symbol[] = [];
  const visit = (node: ts.Node): void => {
    const named = ts.isIdentifier(node) ? checker.getSymbolAtLocation(node) : undefined;
    if (named !== undefined) found.push(named);
    ts.forEachChild(node, visit);
  };
  symbol.declarations?.forEach(visit);
  return found;
}

/** The package that a name is imported from. */
function packageOf({ declarations = [] }: ts.Symbol): string | undefined {
  const statement = declarations.flatMap(
    (node) => ts.findAncestor(node, ts.isImportDeclaration) ?? [],
  );
  const specifier = statement.map((node) => (node.moduleSpecifier as ts.StringLiteral).text)[0];
  return specifier?.startsWith('.') ? undefined : specifier;
}

/** Whether a symbol is a statement of a file in the folder, not a member or a type parameter. */
function isBelow(dist: string, { declarations }: ts.Symbol): boolean {
  const node = declarations?.[0];
  const statement = node && ts.isVariableDeclaration(node) ? node.parent.parent : node;
  return (
    statement?.parent !== undefined &&
    ts.isSourceFile(statement.parent) &&
    statement.getSourceFile().fileName.startsWith(dist)
  );
}

const printer = ts.createPrinter({ removeComments: true });

function printed({ declarations = [], name: local }: ts.Symbol, name?: string): string {
  const texts = declarations.map((node) => {
    const text = printer.printNode(ts.EmitHint.Unspecified, node, node.getSourceFile());
    const statement = ts.isVariableDeclaration(node) ? `declare const ${text};` : text;
    return `${name === local ? 'export ' : ''}${statement}\n`;
  });
  if (name !== undefined && name !== local) texts.push(`export { ${local} as ${name} };\n`);
  return texts.join('').replace(/^(?: {4})+/gm, (indent) => ' '.repeat(indent.length / 2));
}

if (import.meta.main) {
  const isCheck = process.argv.includes('--check');
  mkdirSync(reports, { recursive: true });
  for (const [entry, text] of surfaces(join(root, 'dist'))) {
    const file = join(reports, `${entry}.d.ts`);
    if (!isCheck) writeFileSync(file, text);
    else if (recorded(entry) !== text) {
      console.error(`${specifierOf(entry)} differs from test/api/${entry}.d.ts;
if the change is intended, run npm run api and add a changeset`);
      process.exitCode = 1;
    }
  }
}
