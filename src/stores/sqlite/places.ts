import { statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { TokenError } from '../../errors.ts';
import { requireSqlite, type SqliteHandle } from './client.ts';
import { makeWithParents } from './folder.ts';

const MEMORY = ':memory:';

/** Where a store keeps its databases: paths, or handles of the host. */
export interface Places {
  readonly tokens: string | SqliteHandle;
  /** Absent if the host gave no handle for it. */
  readonly usage?: string | SqliteHandle | undefined;
  readonly leases?: string | SqliteHandle | undefined;
}

/**
 * Reads what is to be opened, and makes a folder that is missing.
 *
 * @throws {TokenError} `invalid_options`
 */
export function placesOf(place: string | SqliteHandle | Places): Places {
  if (typeof place === 'string') return place === MEMORY ? inMemory() : inFolder(place);
  if (isHandle(place)) return { tokens: place };
  const { tokens, usage, leases } = place ?? {};
  const given = [usage, leases].filter((handle) => handle !== undefined);
  if ([tokens, ...given].every(isHandle)) return { tokens, usage, leases } as Places;
  throw new TokenError(
    'invalid_options',
    "open takes a folder, ':memory:', a database of node:sqlite or better-sqlite3, or several of them as { tokens, usage, leases }",
  );
}

/** A file of tokens of any name, and the counts in its folder. */
export function placesBeside(tokens: string): Places {
  return tokens === MEMORY ? inMemory() : { ...filesIn(dirname(resolve(tokens))), tokens };
}

function inMemory(): Places {
  return { tokens: MEMORY, usage: MEMORY, leases: MEMORY };
}

function inFolder(path: string): Places {
  requireSqlite();
  const folder = resolve(path);
  const isFile = statSync(folder, { throwIfNoEntry: false })?.isDirectory() === false;
  if (isFile || folder.endsWith('.db')) {
    throw new TokenError(
      'invalid_options',
      'open takes a folder, in which it keeps tokens.db, usage.db and leases.db, and this is a file: give its folder, or pass a handle of node:sqlite',
    );
  }
  makeWithParents(folder);
  return filesIn(folder);
}

function filesIn(folder: string): Places {
  const [tokens = '', usage, leases] = ['tokens.db', 'usage.db', 'leases.db'].map((name) =>
    join(folder, name),
  );
  return { tokens, usage, leases };
}

/** @throws {TokenError} `invalid_options`: the part has no handle */
export function withoutHandle(part: 'usage' | 'leases'): TokenError {
  return new TokenError(
    'invalid_options',
    `this store was opened over a handle for the tokens, and none for ${part}: open it with { tokens, ${part} }`,
  );
}

function isHandle(value: unknown): value is SqliteHandle {
  return typeof (value as Partial<SqliteHandle> | undefined)?.prepare === 'function';
}
