import { readdirSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import * as z from 'zod/mini';
import { once } from '../../../inputs/once.ts';
import { strict } from '../../../inputs/schemas.ts';
import { likeness } from '../../../inputs/scope-hints.ts';
import {
  catalogFromOpenApi,
  type OpenApiOptions,
  type OpenApiReading,
  readOpenApi,
} from '../../../openapi/index.ts';
import { ScopeCatalog, ScopeError, type WordedScope } from '../../../scope/index.ts';
import { isObject } from '../../../token/record.ts';
import { CliError, inputError, usageError } from '../../terminal/errors.ts';
import { asInput, quote, readLooseJson, readPart } from '../../terminal/inputs.ts';
import { type Granularity, readSettings } from '../settings.ts';

/** Reads the catalog of `serve`. Without paths, it is the example. */
export async function loadCatalog(
  paths: readonly string[],
  granularity: Granularity,
): Promise<ScopeCatalog> {
  if (paths.length === 0) return ScopeCatalog.from(EXAMPLE_CATALOG);
  const catalog = await asInput(() => catalogOf(paths.flatMap(filesOf), granularity)).catch(
    (error: unknown) => {
      if (!(error instanceof CliError) || !paths.some(isFolder)) throw error;
      throw inputError(
        `${error.message}; all .json, .yaml and .yml files of a folder are read: give a folder of catalogs alone, or the files`,
      );
    },
  );
  if (catalog.size > 0) return catalog;
  throw usageError(`--catalog holds no scopes: ${paths.join(', ')}`);
}

/** Reads the catalog of files and folders, with the granularity of the flags. It may be empty. */
export async function readCatalog(paths: readonly string[], flags: object): Promise<ScopeCatalog> {
  const { granularity } = readSettings(['granularity'], flags);
  return asInput(() => catalogOf(givenFiles(paths), granularity));
}

/** The name for the path `/` in scopes with prefix granularity: a prefix cannot be empty. */
export function rootNameOf(granularity: Granularity): string | undefined {
  return granularity === 'prefix' ? 'root' : undefined;
}

/** Reads OpenAPI documents, and lists their files. */
export function readDocuments(
  paths: readonly string[],
  options: OpenApiOptions,
): Promise<{ readonly reading: OpenApiReading; readonly documents: readonly string[] }> {
  return asInput(async () => {
    const documents = givenFiles(paths);
    const reading = await readOpenApi(documents, options).catch(namingFlags(''));
    return { reading, documents };
  });
}

/** The options that errors of OpenAPI documents name, and the flags of `catalog from-openapi`. */
const FLAGS: readonly (readonly [option: string, flag: string])[] = [
  ['the option hosts, as hosts: ["shop.example"]', '--host shop.example'],
  ['the option rootName, one segment, as rootName: "root"', '--root-name root'],
  ['the option skip, as skip: true,', '--skip'],
  ['the option root', '--root'],
];

/** @param command the command that has the flags, if it is another one */
function namingFlags(command: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof ScopeError)) throw error;
    const message = FLAGS.reduce(
      (text, [option, flag]) => text.replaceAll(option, `${command}${flag}`),
      error.message,
    );
    throw inputError(message);
  };
}

async function catalogOf(
  paths: readonly string[],
  granularity: Granularity,
): Promise<ScopeCatalog> {
  const files = paths.map((path) => ({ path, list: listIn(path) }));
  for (const { path, list } of files) checkList(path, list);
  const documents = files.filter(({ list }) => list === undefined).map(({ path }) => path);
  const rootName = rootNameOf(granularity);
  const fromDocuments = await catalogFromOpenApi(documents, { granularity, rootName }).catch(
    namingFlags('catalog from-openapi '),
  );
  const listed = files.flatMap(({ list }) => list ?? []) as WordedScope[];
  if (listed.length === 0) return fromDocuments;
  const permissions = [ScopeCatalog.from(listed), fromDocuments]
    .flatMap((catalog) => catalog.permissions())
    .map(({ tag: name, read, write, ...about }) => ({ name, ...about, levels: { read, write } }));
  return ScopeCatalog.from([...listed, ...fromDocuments], { base: fromDocuments, permissions });
}

/** Checks one file alone, so that the error can name it: the catalog holds all files together. */
function checkList(path: string, list: readonly unknown[] | undefined): void {
  for (const [index, entry] of (list ?? []).entries()) {
    if (!isObject(entry)) continue;
    readPart(wordedEntry(), entry, `${path}: entry ${index + 1}`, EXAMPLE_ENTRY);
  }
  try {
    ScopeCatalog.from((list ?? []) as WordedScope[]);
  } catch (error) {
    if (!(error instanceof ScopeError)) throw error;
    throw inputError(`${path}: ${error.message}${likeness(error.scopes?.[0])}`);
  }
}

const EXAMPLE_ENTRY = '{"scope": "GET:shop.example/orders", "summary": "List orders"}';

/** An entry with words. */
const wordedEntry = once(() => {
  const listed = { error: 'segments must be a list of texts' };
  const text = (name: string) => z.optional(z.string({ error: `${name} must be a text` }));
  return strict({
    scope: z.string({ error: `scope is missing, as in ${EXAMPLE_ENTRY}` }),
    summary: text('summary'),
    tag: text('tag'),
    segments: z.optional(z.array(z.string(listed), listed)),
    deprecated: z.optional(z.boolean({ error: 'deprecated must be true or false' })),
    operationId: text('operationId'),
  });
});

/** Lists the files of paths. Refuses a folder without a catalog file. */
function givenFiles(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    const files = filesOf(path);
    if (files.length > 0) return files;
    throw inputError(`${quote(path)} is a folder without a .json, .yaml or .yml file`);
  });
}

function filesOf(path: string): string[] {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) {
    throw inputError(
      `${quote(path)} does not exist; a catalog is a JSON array of scopes, an OpenAPI document, or a folder of these`,
    );
  }
  // A pipe or a device might never end.
  if (!found.isDirectory() && !found.isFile()) {
    throw inputError(`${quote(path)} must be a file or a folder`);
  }
  if (found.isFile()) return [resolve(path)];
  const names = readdirSync(path).filter((name) => /\.(?:json|ya?ml)$/i.test(name));
  return names.sort().map((name) => resolve(path, name));
}

/** Reads a file that holds a list of scopes; any other file is a document. */
function listIn(path: string): unknown[] | undefined {
  if (!/\.json$/i.test(path)) return undefined;
  const content = readLooseJson(path);
  return Array.isArray(content) ? content : undefined;
}

export function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** The scopes of an invented provider, for a first look at the service. The service itself answers its calls. */
export const EXAMPLE_CATALOG: readonly string[] = [
  'GET:orders.acme.example/orders',
  'POST:orders.acme.example/orders',
  'PATCH:orders.acme.example/orders',
  'DELETE:orders.acme.example/orders',
  'GET:orders.acme.example/order-exports',
  'POST:orders.acme.example/order-exports',
  'GET:catalog.acme.example/products',
  'POST:catalog.acme.example/products',
  'PUT:catalog.acme.example/products',
  'GET:catalog.acme.example/prices',
  'PUT:catalog.acme.example/prices',
  'GET:billing.acme.example/invoices',
  'POST:billing.acme.example/invoices',
  'GET:billing.acme.example/invoices-archive',
  'GET:billing.acme.example/payments',
  'POST:billing.acme.example/refunds',
  'GET:ship.acme.example/labels',
  'POST:ship.acme.example/labels',
  'GET:ship.acme.example/tracking',
  'GET:acme.example/status',
];
