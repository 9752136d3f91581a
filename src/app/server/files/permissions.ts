import { statSync } from 'node:fs';

/** A file or folder that other users can read or change. */
export interface OpenToOthers {
  readonly path: string;
  /** For example `0644`. */
  readonly mode: string;
  readonly can: 'read' | 'change' | 'read and change';
  /** The command that takes the rights away. */
  readonly fix: string;
}

const OTHERS_READ = 0o044;
const OTHERS_WRITE = 0o022;

/**
 * Checks whether other users can read or change a file or a folder. Follows links. Returns nothing
 * for a missing file, and on Windows, where the mode has no meaning.
 */
export function openToOthers(path: string): OpenToOthers | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined || process.platform === 'win32') return undefined;
  const rights = [
    ...((found.mode & OTHERS_READ) === 0 ? [] : ['read']),
    ...((found.mode & OTHERS_WRITE) === 0 ? [] : ['change']),
  ];
  if (rights.length === 0) return undefined;
  return {
    path,
    mode: (found.mode & 0o777).toString(8).padStart(4, '0'),
    can: rights.join(' and ') as OpenToOthers['can'],
    fix: `chmod ${found.isDirectory() ? 700 : 600} ${forShell(path)}`,
  };
}

/** Describes it in one sentence. */
export function describeOpen({ path, mode, can, fix }: OpenToOthers): string {
  return `other users can ${can} ${path} (mode ${mode}); run: ${fix}`;
}

function forShell(path: string): string {
  return /^[\w./][\w./-]*$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
