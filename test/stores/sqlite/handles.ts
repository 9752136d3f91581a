// Files and handles for tests of stores on SQLite.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { onTestFinished } from 'vitest';
import type { SqliteHandle } from '../../../src/stores/sqlite/index.ts';

export type Handle = SqliteHandle & { close(): unknown };

export const BetterSqlite3 = createRequire(import.meta.url)('better-sqlite3') as new (
  path: string,
) => Handle;

export const DRIVERS: readonly (readonly [name: string, connect: (path: string) => Handle])[] = [
  ['node:sqlite', (path) => new DatabaseSync(path)],
  ['better-sqlite3', (path) => new BetterSqlite3(path)],
];

/** The kinds of databases that a store can open; each call makes a new one. */
export const PLACES: readonly (readonly [name: string, make: () => string | Handle])[] = [
  ['in a file', newFile],
  ['over better-sqlite3', () => opened(new BetterSqlite3(newFile()))],
  [
    'over a handle that reads bigint',
    () => opened(new DatabaseSync(':memory:', { readBigInts: true })),
  ],
];

/** The path of a file that does not exist yet, in its own folder. */
export function newFile(): string {
  const home = mkdtempSync(join(tmpdir(), 'tokenwright-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const folder = join(home, 'data');
  mkdirSync(folder);
  return join(folder, 'tokens.db');
}

/** Closes something at the end of the test. */
export function opened<Closable extends { close(): unknown }>(closable: Closable): Closable {
  onTestFinished(async () => void (await closable.close()));
  return closable;
}
