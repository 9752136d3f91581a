// Makes the CommonJS of the package out of its ESM: the same files in the other format, with their declarations.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { transform } from 'esbuild';
import { ENTRIES } from './entries.ts';

const DIST = join(import.meta.dirname, '../../dist');
const read = (file: string) => readFileSync(join(DIST, file), 'utf8');
const write = (file: string, text: string) => writeFileSync(join(DIST, file), text);

/** The name of a file of ours in an import. */
const LOCAL = /(["'])\.\/([\w-]+)\.js\1/g;
const toCommonJs = (code: string) => code.replace(LOCAL, '$1./$2.cjs$1');

/** The entries, and what they import, by their names without an extension. */
function filesOf(extension: string): ReadonlySet<string> {
  const files = new Set<string>(ENTRIES);
  for (const file of files) {
    for (const [, , other = ''] of read(file + extension).matchAll(LOCAL)) files.add(other);
  }
  return files;
}

/** Without it, CommonJS is sloppy. It has no import.meta either. */
const STRICT = '"use strict";\n';
const HERE = 'importMetaUrl';
const HERE_LINE = `const ${HERE} = require("node:url").pathToFileURL(__filename).href;\n`;

for (const file of filesOf('.js')) {
  const { code } = await transform(toCommonJs(read(`${file}.js`)), {
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    define: { 'import.meta.url': HERE },
  });
  write(`${file}.cjs`, STRICT + (code.includes(HERE) ? HERE_LINE : '') + code);
}
for (const file of filesOf('.d.ts')) write(`${file}.d.cts`, toCommonJs(read(`${file}.d.ts`)));
