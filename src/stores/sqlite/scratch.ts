import { mkdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { drawName, dropAll, type ScratchPlace } from '../shared/scratch.ts';
import { cellsOf, connect, requireSqlite, toTokenError } from './client.ts';

/** A new folder. */
export interface ScratchFolder extends ScratchPlace {
  /** The path of a folder in it, which does not exist. */
  nextFolder(): string;
}

/**
 * Makes a folder of a name that nothing has.
 *
 * @throws {TokenError} `store_unavailable`; `invalid_options`
 */
export async function scratchFolder(folder: string): Promise<ScratchFolder> {
  requireSqlite();
  const pathOf = (name: string) => join(resolve(folder), name);
  const path = pathOf(await drawName(async (name) => makeFolder(pathOf(name))));
  let count = 0;
  return {
    name: path,
    engine: `SQLite ${sqliteVersion()}`,
    driver: 'node:sqlite',
    nextFolder() {
      count += 1;
      return join(path, String(count));
    },
    drop: () => dropAll([path], async () => removeFolder(path)),
  };
}

function makeFolder(path: string): boolean {
  try {
    mkdirSync(path, { mode: 0o700 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw toTokenError(error);
  }
}

function removeFolder(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch (error) {
    throw toTokenError(error);
  }
}

function sqliteVersion(): string {
  const handle = connect(':memory:');
  try {
    return String(cellsOf(handle.prepare('SELECT sqlite_version()').get())[0]);
  } finally {
    handle.close();
  }
}
