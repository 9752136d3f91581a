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
  readonly requests?: string | SqliteHandle | undefined;
}

/**
 * Reads what is to be opened, and makes a folder that is missing.
 *
 * @throws {TokenError} `invalid_options`
 */
export function placesOf(place: string | SqliteHandle | Places): Places {
  if (typeof place === 'string') return place === MEMORY ? inMemory() : inFolder(place);
  if (isHandle(place)) return { tokens: place };
  const { tokens, usage, leases, requests } = place ?? {};
  const given = [usage, leases, requests].filter((handle) => handle !== undefined);
  if ([tokens, ...given].every(isHandle)) return { tokens, usage, leases, requests } as Places;
  throw new TokenError(
    'invalid_options',
    "open takes a folder, ':memory:', a database of node:sqlite or better-sqlite3, or several of them as { tokens, usage, leases, requests }",
  );
}

/** A file of tokens of any name, and the other parts in its folder. */
export function placesBeside(tokens: string): Places {
  return tokens === MEMORY ? inMemory() : { ...filesIn(dirname(resolve(tokens))), tokens };
}

function inMemory(): Places {
  return { tokens: MEMORY, usage: MEMORY, leases: MEMORY, requests: MEMORY };
}

function inFolder(path: string): Places {
  requireSqlite();
  const folder = resolve(path);
  const isFile = statSync(folder, { throwIfNoEntry: false })?.isDirectory() === false;
  if (isFile || folder.endsWith('.db')) {
    throw new TokenError(
      'invalid_options',
      'open takes a folder, in which it keeps tokens.db, usage.db, leases.db and requests.db, and this is a file: give its folder, or pass a handle of node:sqlite',
    );
  }
  makeWithParents(folder);
  return filesIn(folder);
}

function filesIn(folder: string): Places {
  const pathOf = (part: string) => join(folder, `${part}.db`);
  return {
    tokens: pathOf('tokens'),
    usage: pathOf('usage'),
    leases: pathOf('leases'),
    requests: pathOf('requests'),
  };
}

/** @throws {TokenError} `invalid_options`: the part has no handle */
export function withoutHandle(part: 'usage' | 'leases' | 'requests'): TokenError {
  return new TokenError(
    'invalid_options',
    `this store was opened over a handle for the tokens, and none for ${part}: open it with { tokens, ${part} }`,
  );
}

function isHandle(value: unknown): value is SqliteHandle {
  return typeof (value as Partial<SqliteHandle> | undefined)?.prepare === 'function';
}
