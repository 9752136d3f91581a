import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and those above it that are missing, for their owner only. Does nothing if it exists.
 *
 * Not by the option `recursive`: with it, Node.js never returns where a system takes no folders, as in /proc.
 */
export function makeWithParents(folder: string): void {
  const parent = dirname(folder);
  // A drive that does not exist is its own parent.
  if (parent !== folder && !existsSync(parent)) makeWithParents(parent);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
}
