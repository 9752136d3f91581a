import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { isTokenError, storeUnavailable, TokenError } from '../../errors.ts';
import type { Scratch } from '../../ports/engine-store.ts';

/** What an engine makes for a scratch, before a store is opened in it. */
export interface ScratchPlace extends Pick<Scratch, 'engine' | 'driver' | 'drop'> {
  /** The beginning of the names of tables or keys, or the path of a folder. */
  readonly name: string;
}

/** New tables, and how they are emptied. */
export interface ScratchTables extends ScratchPlace {
  empty(): Promise<void>;
}

/** For a statement that creates, empties or removes tables. */
export const SCRATCH_DEADLINE_MS = 20_000;

const MAX_DRAWS = 5;

/**
 * Draws names until one is free.
 *
 * @param create makes something of that name, and resolves to whether the name was free
 */
export async function drawName(create: (name: string) => Promise<boolean>): Promise<string> {
  for (let draws = 0; draws < MAX_DRAWS; draws += 1) {
    const name = `tokenwright_contract_${randomBytes(6).toString('hex')}`;
    if (await create(name)) return name;
  }
  throw storeUnavailable('unknown');
}

/**
 * Removes things one by one, also after a failure.
 *
 * @throws {TokenError} `store_unavailable` with a message that names what is left
 */
export async function dropAll(
  names: readonly string[],
  drop: (name: string) => Promise<unknown>,
): Promise<void> {
  const left: string[] = [];
  let failure: TokenError | undefined;
  for (const name of names) {
    try {
      await drop(name);
    } catch (error) {
      left.push(name);
      failure ??= isTokenError(error) ? error : storeUnavailable('unknown');
    }
  }
  if (failure === undefined) return;
  throw new TokenError(
    'store_unavailable',
    `remove by hand what is left of the scratch: ${left.join(', ')}; ${failure.message}`,
    failure.details,
  );
}

/**
 * Name and version of the package that a client is of; `name` alone if that is not found, such as in a
 * bundle. No driver tells its version, and another copy of it may be installed beside the one that runs:
 * only the file that has made the class of the client leads to the right one.
 */
export function driverOf(client: object, name: string): string {
  try {
    const file = fileOf(client);
    return file === undefined ? name : (packageAbove(dirname(file)) ?? name);
  } catch {
    return name;
  }
}

/** The file of the module that exports the class of an object, or one from which it is derived. */
function fileOf(client: object): string | undefined {
  const modules = Object.entries(createRequire(import.meta.url).cache);
  for (
    let of = Object.getPrototypeOf(client);
    of !== Object.prototype;
    of = Object.getPrototypeOf(of)
  ) {
    const found = modules.find(([, module]) => {
      const exported: unknown = module?.exports;
      // Reads no other name, because some modules load others when one is read.
      const { default: main, Pool } = Object(exported);
      return [exported, main, Pool].includes(of.constructor);
    });
    if (found !== undefined) return found[0];
  }
  return undefined;
}

function packageAbove(folder: string): string | undefined {
  const { name, version } = readPackage(folder);
  if (name !== undefined && version !== undefined) return `${name} ${version}`;
  return dirname(folder) === folder ? undefined : packageAbove(dirname(folder));
}

function readPackage(folder: string): { readonly name?: string; readonly version?: string } {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  } catch {
    return {};
  }
}
