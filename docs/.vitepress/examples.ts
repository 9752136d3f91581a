// Writes the programs of `examples/` anew wherever a page shows one, whole and by its name.
import { globSync, readFileSync, writeFileSync } from 'node:fs';

const root = new URL('../../', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, root), 'utf8');

/** A fenced block that says which program it is: "```ts [examples/library/quickstart.ts]". */
const PROGRAM = /^(```\w+ \[(examples\/[\w./-]+)\]\n).*?^```$/gms;

/** The pages that people write. */
export const PAGES: readonly string[] = globSync('docs/**/*.md', { cwd: root.pathname })
  .filter((name) => !/\/(\.vitepress|reference|public)\//.test(name))
  .sort();

/** The files of which a document shows the whole. */
export function examplesIn(markdown: string): string[] {
  return [...markdown.matchAll(PROGRAM)].map(([, , file = '']) => file);
}

/** The document with each program as its file has it. */
export function withExamples(markdown: string): string {
  return markdown.replace(
    PROGRAM,
    (_, opening: string, file: string) => `${opening}${read(file)}\`\`\``,
  );
}

if (import.meta.main) {
  for (const name of PAGES) {
    const text = read(name);
    if (withExamples(text) !== text) writeFileSync(new URL(name, root), withExamples(text));
  }
}
