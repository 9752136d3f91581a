// Puts the files of the build together, so that a program reads few when it starts, and makes the
// CommonJS of the package out of its ESM.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type GetManualChunk, type OutputOptions, rollup } from 'rollup';
import ts from 'typescript';
import { ENTRIES } from './entries.ts';

const DIST = join(import.meta.dirname, '../../dist');
const read = (file: string) => readFileSync(join(DIST, file), 'utf8');
const write = (file: string, text: string) => writeFileSync(join(DIST, file), text);
const built = (entry: string) => join(DIST, `${entry}.js`);

/** What a program can import, with the memory store, which bundlers can drop as a whole. */
const DOORS = [...ENTRIES, 'memory'];
const WITHOUT_SERVICE = ['openapi', 'sqlite', 'postgres', 'mysql', 'redis', 'testing', 'memory'];

/**
 * A chunk for what stores and `openapi` need too, one for what `http` does, and one for what only the service
 * needs. zod is in the last two, and bundlers do not drop it. They are few: to open one takes almost a millisecond.
 */
const chunkOf: GetManualChunk = (id, { getModuleInfo }) => {
  const reached = (from: string) => {
    const found = new Set([from]);
    for (const file of found) {
      for (const other of getModuleInfo(file)?.importedIds ?? []) found.add(other);
    }
    return [...found];
  };
  const isOf = (entry: string) => reached(built(entry)).includes(id);
  const hasZod = (file: string) => getModuleInfo(file)?.code?.includes('// node_modules/zod/');
  // Scopes are also for browsers, and have files of their own.
  if (DOORS.some((entry) => id === built(entry)) || !isOf('index') || isOf('scope')) return null;
  if (WITHOUT_SERVICE.some(isOf)) return 'base';
  if (!reached(id).some(hasZod)) return 'keys';
  return isOf('http') ? 'inputs' : 'core';
};

const files = [
  ...(await filesOf([...DOORS, 'cli'], { format: 'es' }, 'js')),
  ...(await filesOf(DOORS, { format: 'cjs', interop: 'default' }, 'cjs')),
];
for (const file of readdirSync(DIST)) if (file.endsWith('.js')) rmSync(join(DIST, file));
for (const { fileName, text } of files) write(fileName, text);

async function filesOf(entries: readonly string[], format: OutputOptions, ending: string) {
  const bundle = await rollup({
    input: Object.fromEntries(entries.map((entry) => [entry, built(entry)])),
    treeshake: false,
    external: (id) => !/^[./]/.test(id) || id.endsWith('.cjs'),
    onwarn: ({ message }) => {
      throw new Error(message);
    },
  });
  const { output } = await bundle.generate({
    ...format,
    manualChunks: chunkOf,
    onlyExplicitManualChunks: true,
    minifyInternalExports: false,
    hoistTransitiveImports: false,
    entryFileNames: `[name].${ending}`,
    // esbuild's own hash goes.
    chunkFileNames: ({ name }) => `${name.replace(/-[A-Z\d]{8}$/, '')}-[hash].${ending}`,
  });
  return output.flatMap((file) =>
    file.type === 'chunk' ? [{ fileName: file.fileName, text: withoutComments(file.code) }] : [],
  );
}

/** esbuild keeps comments before members of classes, and adds the names of our files, which nobody needs. */
function withoutComments(code: string): string {
  const source = ts.createSourceFile('chunk.js', code, ts.ScriptTarget.Latest);
  const ends = new Map<number, number>();
  const visit = (node: ts.Node): void => {
    for (const { pos, end } of ts.getLeadingCommentRanges(code, node.pos) ?? []) ends.set(pos, end);
    ts.forEachChild(node, visit);
  };
  visit(source);
  let text = '';
  let from = 0;
  for (const [pos, end] of [...ends].sort(([a], [b]) => a - b)) {
    // What says that a call has no effects is for bundlers, and the names of bundled files are for readers.
    if (/[@#]__[A-Z_]+__|^\/\/ node_modules\//.test(code.slice(pos, end))) continue;
    text += code.slice(from, pos);
    from = end + (/^\s*/.exec(code.slice(end, end + 200))?.[0].length ?? 0);
  }
  return text + code.slice(from);
}

/** The name of a file of ours in a declaration. */
const LOCAL = /(["'])\.\/([\w-]+)\.js\1/g;

// Declarations of CommonJS, which ESM can read as well: the package holds each once, and what both
// formats hand over is one type.
const declared = new Set<string>(ENTRIES);
for (const file of declared) {
  const text = read(`${file}.d.ts`);
  for (const [, , other = ''] of text.matchAll(LOCAL)) declared.add(other);
  write(`${file}.d.cts`, text.replace(LOCAL, '$1./$2.cjs$1'));
}
for (const file of declared) rmSync(join(DIST, `${file}.d.ts`));
for (const entry of ENTRIES) write(`${entry}.d.ts`, `export * from './${entry}.cjs';\n`);
