import { join, resolve } from 'node:path';
import ts from 'typescript';

const ROOT = resolve(import.meta.dirname, '../..');

/** One complaint of the compiler. */
export interface Complaint {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly message: string;
}

/**
 * What the compiler says about some files, by name, that exist in memory only. They lie in the root
 * of the project, so that `./src/…` and `tokenwright/scope` lead to the sources. The options are those
 * of the project, but for `others`.
 */
export function complaintsAbout(
  files: Readonly<Record<string, string>>,
  others: ts.CompilerOptions = {},
): Complaint[] {
  const texts = new Map(Object.entries(files).map(([name, text]) => [join(ROOT, name), text]));
  const options = { ...readOptions(), ...others };
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (path) => texts.has(path) || fileExists(path);
  host.readFile = (path) => texts.get(path) ?? readFile(path);
  host.getSourceFile = (path, version, ...rest) => {
    const text = texts.get(path);
    if (text === undefined) return getSourceFile(path, version, ...rest);
    return ts.createSourceFile(path, text, version);
  };
  const program = ts.createProgram([...texts.keys()], options, host);
  return [...texts.keys()].flatMap((path) => {
    const file = program.getSourceFile(path);
    return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)].map(
      ({ start = 0, messageText }) => ({
        file: path.slice(ROOT.length + 1),
        line: (file?.getLineAndCharacterOfPosition(start).line ?? -1) + 1,
        message: ts.flattenDiagnosticMessageText(messageText, '\n'),
      }),
    );
  });
}

/** What an editor offers at the `|` of a file in memory. */
export function completionsAt(marked: string): string[] {
  const { service, path, place } = edited(marked);
  return service.getCompletionsAtPosition(path, place, undefined)?.entries.map(nameOf) ?? [];
}

/** What an editor shows over the name behind the `|` of a file in memory. */
export function hoverAt(marked: string): string {
  const { service, path, place } = edited(marked);
  return ts.displayPartsToString(service.getQuickInfoAtPosition(path, place)?.displayParts);
}

const nameOf = ({ name }: ts.CompletionEntry): string => name;

/** Parses the files that all editors read only once. */
const PARSED = ts.createDocumentRegistry();

/** An editor with a file in memory, and the place of its `|`. */
function edited(marked: string): { service: ts.LanguageService; path: string; place: number } {
  const path = join(ROOT, 'completed.ts');
  const text = marked.replace('|', '');
  const read = (name: string) => (name === path ? text : ts.sys.readFile(name));
  const host: ts.LanguageServiceHost = {
    getCompilationSettings: readOptions,
    getCurrentDirectory: () => ROOT,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    getScriptFileNames: () => [path],
    getScriptVersion: (name) => (name === path ? text : '1'),
    getScriptSnapshot: (name) => {
      const content = read(name);
      return content === undefined ? undefined : ts.ScriptSnapshot.fromString(content);
    },
    fileExists: (name) => name === path || ts.sys.fileExists(name),
    readFile: read,
  };
  return { service: ts.createLanguageService(host, PARSED), path, place: marked.indexOf('|') };
}

/** Those of the project; a declaration file in memory is checked too. */
function readOptions(): ts.CompilerOptions {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT);
  return {
    ...options,
    types: [],
    skipLibCheck: false,
    paths: { 'tokenwright/scope': [join(ROOT, 'src/scope/index.ts')] },
  };
}
