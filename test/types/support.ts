import { join, resolve } from 'node:path';
import ts from 'typescript';

const ROOT = resolve(import.meta.dirname, '../..');

/** One error of the compiler. */
export interface Diagnostic {
  readonly file: string;
  /** Counts from 1. */
  readonly line: number;
  readonly message: string;
}

/**
 * The errors that the compiler reports for files, by name, that exist only in memory. The files are
 * placed in the root of the project, so that `./src/…` and `tokenwright/scope` resolve to the sources.
 * `others` override the options of the project.
 */
export function diagnosticsOf(
  files: Readonly<Record<string, string>>,
  others: ts.CompilerOptions = {},
): Diagnostic[] {
  const texts = new Map(Object.entries(files).map(([name, text]) => [join(ROOT, name), text]));
  const options = { ...readOptions(), ...others };
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  const parsed = parsedWith(options);
  host.fileExists = (path) => texts.has(path) || fileExists(path);
  host.readFile = (path) => texts.get(path) ?? readFile(path);
  host.getSourceFile = (path, version, ...rest) => {
    const text = texts.get(path);
    if (text !== undefined) return ts.createSourceFile(path, text, version);
    const file = parsed.get(path) ?? getSourceFile(path, version, ...rest);
    parsed.set(path, file);
    return file;
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

const PARSED_BY_OPTIONS = new Map<string, Map<string, ts.SourceFile | undefined>>();

/** The files of the disk that were parsed with the same options, because a program takes most of its time for them. */
function parsedWith(options: ts.CompilerOptions): Map<string, ts.SourceFile | undefined> {
  const key = JSON.stringify(options);
  const parsed = PARSED_BY_OPTIONS.get(key) ?? new Map();
  PARSED_BY_OPTIONS.set(key, parsed);
  return parsed;
}

/** The completions that an editor offers at the `|` of a file in memory. */
export function completionsAt(marked: string): string[] {
  const { service, path, position } = edited(marked);
  return service.getCompletionsAtPosition(path, position, undefined)?.entries.map(nameOf) ?? [];
}

/** The hover text that an editor shows for the name after the `|` of a file in memory. */
export function hoverAt(marked: string): string {
  const { service, path, position } = edited(marked);
  return ts.displayPartsToString(service.getQuickInfoAtPosition(path, position)?.displayParts);
}

const nameOf = ({ name }: ts.CompletionEntry): string => name;

/** Shared by all editors, so that each file is parsed only once. */
const PARSED = ts.createDocumentRegistry();

/** An editor with a file in memory, and the position of its `|`. */
function edited(marked: string): { service: ts.LanguageService; path: string; position: number } {
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
  return { service: ts.createLanguageService(host, PARSED), path, position: marked.indexOf('|') };
}

/** The options of the project, but declaration files in memory are checked too. */
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
