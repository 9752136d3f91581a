import { fstatSync, readFileSync } from 'node:fs';
import type * as z from 'zod/mini';
import { isTokenError, redact } from '../../index.ts';
import { readInput } from '../../inputs/schemas.ts';
import { likeness } from '../../inputs/scope-hints.ts';
import type { TokenScopes } from '../../openapi/index.ts';
import type { ScopeReading } from '../../scope/grammar.ts';
import { type Scope, ScopeError, safeParseScope } from '../../scope/index.ts';
import { describeRounded, parseJsonText, roundedNumberIn } from '../../text/json.ts';
import { jsonFault } from '../../text/json-fault.ts';
import { isObject } from '../../token/record.ts';
import { inputError } from './errors.ts';

/** How many faults of a list a message names. */
const MAX_NAMED = 3;

/**
 * Reads a list of scopes: scopes with commas between, a JSON file, or `-` for standard input.
 *
 * @throws {CliError} naming the first few members that are not scopes
 */
export async function readScopes(text: string, name: string): Promise<Scope[]> {
  if (text === '-') {
    return parseMembers(parseStandardInput(await standardInput()), 'standard input');
  }
  if (isWrittenList(text)) {
    const members = text.split(',').map((scope) => scope.trim());
    return parseMembers(members, name);
  }
  return parseMembers(readListFile(text, name), text);
}

/**
 * Whether a text is scopes rather than a path. A scope has a colon, and few paths have one: `./a:b.json`
 * and `C:\\a.json`.
 */
export function isWrittenList(text: string): boolean {
  return text.includes(':') && !/^(?:\.{0,2}\/|[A-Za-z]:[\\/])/.test(text);
}

function readListFile(path: string, name: string): unknown {
  try {
    return readJson(path);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].includes(code)) throw error;
    throw inputError(
      `${name} must be scopes separated by commas, such as GET:shop.example/orders, a JSON file, or -; the file ${quote(path)} does not exist${isFileName(path) ? '' : likeness(path)}`,
    );
  }
}

function isFileName(path: string): boolean {
  return /\.(?:json|ya?ml|txt)$/i.test(path);
}

/**
 * Reads tokens: an array as `GET /token` lists them, or its whole answer. `requested` may be
 * absent. Other members are ignored, and an id that is a value by mistake is masked.
 */
export async function readTokens(path: string): Promise<TokenScopes[]> {
  const source = path === '-' ? 'standard input' : path;
  const content = path === '-' ? parseJson(await standardInput(), source) : readJson(path);
  const answer = Array.isArray(content) ? { data: content } : asObject(content);
  if (answer['cursor'] !== undefined) {
    throw inputError(`${source} is one page of several; put the data of all into one JSON array`);
  }
  if (!Array.isArray(answer['data'])) {
    throw inputError(
      `${source} must be a JSON array of tokens, each { id, scopes }, or the answer of GET /token`,
    );
  }
  return answer['data'].map((token: unknown, index) => {
    const { id, scopes, requested = [] } = asObject(token);
    const name = `${source}: token ${index + 1}`;
    if (typeof id !== 'string') throw inputError(`${name} must have an id, a text`);
    return {
      id: redact(id),
      scopes: parseMembers(scopes, `${name}: scopes`).map(String),
      requested: parseMembers(requested, `${name}: requested`).map(String),
    };
  });
}

/**
 * Runs a function, and reports refusals of the library as faults of the input.
 *
 * @throws {CliError} for a `ScopeError` or a `TokenError`
 */
export async function asInput<Result>(read: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await read();
  } catch (error) {
    throw toInputError(error, '');
  }
}

/** Reads a part of a file, such as `presets.json: preset 2`, which the error names. */
export function asPart<Result>(part: string, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    throw toInputError(error, `${part}: `);
  }
}

function toInputError(error: unknown, place: string): unknown {
  const isFault = error instanceof ScopeError || isTokenError(error);
  return isFault ? inputError(`${place}${error.message}`) : error;
}

/**
 * Reads an object that is a part of a file.
 *
 * @throws {CliError} naming the part and the first member that is wrong
 */
export function readPart<Members>(
  schema: z.ZodMiniType<Members>,
  given: unknown,
  part: string,
  example: string,
): Members {
  if (!isObject(given)) throw inputError(`${part} must be an object, such as ${example}`);
  return asPart(part, () => readInput(schema, given));
}

/** @throws {CliError} naming the first few members that are not scopes */
export function parseMembers(members: unknown, source: string): Scope[] {
  if (!Array.isArray(members)) {
    throw inputError(
      `${source} must be a JSON array of scopes, such as ["GET:shop.example/orders"]`,
    );
  }
  const readings = members.map((member: unknown) => safeParseScope(member));
  const faults = readings.flatMap((reading, index) =>
    reading.ok ? [] : [`scope ${index + 1}: ${refusalOf(reading, members[index])}`],
  );
  if (faults.length === 0) return readings.flatMap((reading) => (reading.ok ? reading.scope : []));
  const rest = faults.length - MAX_NAMED;
  const named = faults.slice(0, MAX_NAMED).join('; ');
  throw inputError(`${source}: ${named}${rest > 0 ? `; and ${rest} more` : ''}`);
}

function refusalOf(
  { message, suggestion }: Extract<ScopeReading, { ok: false }>,
  member: unknown,
): string {
  return suggestion === undefined ? message + likeness(member) : message;
}

/** Parses a JSON value, or one scope per line with comments. No scope holds a space or a `#`. */
function parseStandardInput(text: string): unknown {
  // A byte order mark counts as a space, here and for `trim`.
  if (/^\s*[[{"]/.test(text)) return parseJson(text, 'standard input');
  const lines = text.split('\n').map((line) => line.replace(/(?:^|\s)#.*/, '').trim());
  return lines.filter((line) => line !== '');
}

/**
 * Reads all of standard input.
 *
 * @throws {CliError} for a folder, which Node reads as an empty file
 */
export async function standardInput(): Promise<string> {
  if (fstatSync(0).isDirectory()) throw inputError('standard input is a folder');
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** Quotes a text of the command line for a message. */
export function quote(text: string): string {
  return `"${text.length > 100 ? `${text.slice(0, 100)}...` : text}"`;
}

export function readJson(path: string, toError = inputError): unknown {
  return parseJson(readFileSync(path, 'utf8'), path, toError);
}

/**
 * Parses JSON, which may begin with a byte order mark. Drops the parser's message, which repeats the text.
 *
 * @throws {CliError} also for a number that JSON rounds
 */
export function parseJson(text: string, source: string, toError = inputError): unknown {
  const value = parseAnyJson(text, source, toError);
  const rounded = roundedNumberIn(text);
  if (rounded === undefined) return value;
  throw toError(`${source}: ${describeRounded(rounded)}`);
}

function parseAnyJson(text: string, source: string, toError: typeof inputError): unknown {
  try {
    return parseJsonText(text);
  } catch {
    throw toError(`${source} is not JSON${placeOfFault(text)}`);
  }
}

function placeOfFault(text: string): string {
  const fault = jsonFault(text.replace(/^\ufeff/, ''));
  return fault === undefined ? '' : `: look at line ${fault.line}, column ${fault.column}`;
}

/** Reads a JSON file whose numbers do not matter: those of an OpenAPI document may be of any size. */
export function readLooseJson(path: string): unknown {
  return parseAnyJson(readFileSync(path, 'utf8'), path, inputError);
}

export function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
