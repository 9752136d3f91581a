import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { ENTRIES, specifierOf } from './entries.ts';

const ROOT = join(import.meta.dirname, '../..');
const OPTIONS: ts.CompilerOptions = {
  declaration: true,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  target: ts.ScriptTarget.ES2023,
  strict: true,
  skipLibCheck: true,
  types: ['node'],
  outDir: join(ROOT, '.cache/declarations'),
};

/** What the compiler says of the declarations of a program that uses the built package. */
function faultsOf(text: string): string[] {
  const path = join(ROOT, 'declared.ts');
  const host = ts.createCompilerHost(OPTIONS);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (name) => name === path || fileExists(name);
  host.readFile = (name) => (name === path ? text : readFile(name));
  host.getSourceFile = (name, version, ...rest) =>
    name === path
      ? ts.createSourceFile(name, text, version)
      : getSourceFile(name, version, ...rest);
  const program = ts.createProgram([path], OPTIONS, host);
  const file = program.getSourceFile(path);
  return [...program.getSemanticDiagnostics(file), ...program.getDeclarationDiagnostics(file)].map(
    ({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'),
  );
}

/** Exports what each function of an entry, and each method of its classes, returns. */
function programOf(entry: (typeof ENTRIES)[number]): string {
  const path = join(ROOT, `dist/${entry}.d.ts`);
  const program = ts.createProgram([path], OPTIONS);
  const checker = program.getTypeChecker();
  const symbol = checker.getSymbolAtLocation(program.getSourceFile(path) as ts.SourceFile);
  const lines = checker.getExportsOfModule(symbol as ts.Symbol).flatMap((each) => {
    const { flags } = each.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(each) : each;
    if (flags & ts.SymbolFlags.Function) return `resultOf(entry.${each.name})`;
    if (!(flags & ts.SymbolFlags.Class)) return [];
    const members = checker
      .getDeclaredTypeOfSymbol(checker.getAliasedSymbol(each))
      .getProperties()
      .filter(({ flags, name }) => flags & ts.SymbolFlags.Method && /^\w+$/.test(name));
    return members.map(({ name }) => `resultOf((0 as unknown as entry.${each.name}).${name})`);
  });
  return [
    `import * as entry from '${specifierOf(entry)}';`,
    'declare function resultOf<Call extends (...args: never) => unknown>(call: Call): Awaited<ReturnType<Call>>;',
    ...lines.map((line, index) => `export const result${index} = ${line};`),
  ].join('\n');
}

describe('a program that exports what a call returns, and declares its types', () => {
  it.each(ENTRIES)('finds the names of all types of %s', (entry) => {
    expect(faultsOf(programOf(entry))).toEqual([]);
  });

  it('is refused a type that is not exported (the control)', () => {
    const hidden = `import { TokenService } from 'tokenwright';
declare const tokens: TokenService;
interface Hidden { readonly at: Date }
export function shown(): { readonly hidden: Hidden } | typeof tokens { return tokens; }
export class Shown { readonly hidden = null as unknown as Hidden; }
export const local = (() => { class Local { private readonly at = 1; } return new Local(); })();`;

    expect(faultsOf(hidden).length).toBeGreaterThan(0);
  });
});
