import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

/** The folder of the sources. */
export const SRC = resolve(import.meta.dirname, '../src');

/** An import of a file below `src`, or of a package. */
export interface Import {
  readonly from: string;
  readonly to: string;
  readonly isTypeOnly: boolean;
}

/** The files below `src`, by their path there. */
export const FILES: readonly string[] = globSync('**/*.{ts,tsx}', { cwd: SRC });

/** Each import of each file below src; files by their path there, packages by their name. */
export const IMPORTS: readonly Import[] = FILES.flatMap((from) => {
  const text = readFileSync(join(SRC, from), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
  const stated = [...text.matchAll(/^(?:import|export)\s([^;]*?\sfrom\s)?\s*'([^']+)'/gm)].map(
    ([, clause = '', to = '']) => ({ to, isTypeOnly: isTypeOnly(clause) }),
  );
  const called = [...text.matchAll(/\b(?:import|require)\(\s*'([^']+)'/g)].map(([, to = '']) => ({
    to,
    isTypeOnly: false,
  }));
  return [...stated, ...called].map(({ to, isTypeOnly }) => ({
    from,
    to: to.startsWith('.') ? relative(SRC, resolve(SRC, dirname(from), to)) : to,
    isTypeOnly,
  }));
});

function isTypeOnly(clause: string): boolean {
  if (clause.startsWith('type ')) return true;
  const names = /^\{([^}]*)\}/
    .exec(clause)?.[1]
    ?.split(',')
    .map((name) => name.trim());
  return names?.filter(Boolean).every((name) => name.startsWith('type ')) ?? false;
}
