import { isTokenError, TokenError } from '../../../index.ts';
import { parseInstant } from '../../../inputs/instant.ts';
import { describeRounded, parseJsonText, roundedNumberIn } from '../../../text/json.ts';
import { shownName } from '../../../text/wording.ts';
import { isObject, type JsonObject } from '../../../token/record.ts';
import { inputError } from '../../terminal/errors.ts';

/** A token of another system, as its row describes it. */
export interface OldToken {
  readonly digest: string | undefined;
  readonly account: string | undefined;
  readonly scopes: readonly string[] | undefined;
  /** As the other system names them. */
  readonly permissions: readonly string[] | undefined;
  readonly name: string | undefined;
  readonly createdAt: Date | undefined;
  /** Absent if it never expires. */
  readonly expiresAt: Date | undefined;
  readonly isDisabled: boolean;
  readonly metadata: JsonObject | undefined;
}

export interface OldRow {
  /** Where it begins in the input, counted from 1. */
  readonly line: number;
  /** What it holds, or why it is refused. */
  readonly token: OldToken | TokenError;
}

type Row = Readonly<Record<string, unknown>>;
type Chunks = Iterable<Uint8Array> | AsyncIterable<Uint8Array | string>;

interface RowReader {
  /** Takes the next line, without its end; `undefined` if no row ends there. */
  read(text: string, line: number): OldRow | undefined;
  /** Call it after the last line. @throws {CliError} if a row is not complete */
  end(): void;
}

/** The columns of all rows. Others are refused, since one may be a misspelled expiry. */
export const COLUMNS: readonly string[] = [
  ...['digest', 'account', 'scopes', 'permissions', 'name'],
  ...['created_at', 'expires_at', 'disabled', 'metadata'],
];

/** The longest row: far more than a token needs. */
const MAX_ROW_LENGTH = 1_048_576;

/**
 * Reads rows one by one: JSON with an object in each line, or CSV with the names of its columns in
 * the first line. The first character tells which.
 *
 * @throws {CliError} if it is neither
 */
export async function* readRows(input: Chunks): AsyncGenerator<OldRow> {
  let line = 0;
  let reader: RowReader | undefined;
  for await (const text of linesOf(input)) {
    line += 1;
    if (reader === undefined && text.trim() === '') continue;
    reader ??= readerOf(text);
    const row = reader.read(text, line);
    if (row !== undefined) yield row;
  }
  reader?.end();
}

/** @throws {CliError} for a JSON array */
function readerOf(text: string): RowReader {
  const start = text.trimStart()[0];
  if (start === '{') return { read: readJsonRow, end() {} };
  if (start !== '[') return new CsvReader();
  throw inputError(
    "the rows are one JSON array: give one object in each line, as jq -c '.[]' prints them",
  );
}

function readJsonRow(text: string, line: number): OldRow | undefined {
  if (text.trim() === '') return undefined;
  return rowOf(line, () => {
    const row = jsonOf(text, 'the line is not a JSON object');
    const rounded = roundedNumberIn(text);
    if (rounded !== undefined) throw refusal(describeRounded(rounded));
    if (!isObject(row)) throw refusal('the line is not a JSON object');
    checkColumns(Object.keys(row), refusal);
    return row;
  });
}

/**
 * Reads CSV as RFC 4180 has it: commas, and double quotes around cells that hold commas, line ends
 * or quotes, which are doubled. Guesses nothing. Lines come one by one, so that a file of any size
 * is read in little memory, and none is read twice: a cell may have hundreds of thousands of
 * line ends.
 */
export class CsvReader implements RowReader {
  #names: readonly string[] | undefined;
  /** The lines so far of a record that goes on, because one of its cells holds a line end. */
  #lines: string[] = [];
  #length = 0;
  #start = 0;

  read(text: string, line: number): OldRow | undefined {
    const wasOpen = this.#lines.length > 0;
    if (!wasOpen) this.#start = line;
    this.#lines.push(text);
    this.#length += text.length + 1;
    if (hasOddQuotes(text) !== wasOpen) {
      if (this.#length > MAX_ROW_LENGTH) this.end();
      return undefined;
    }
    const record = this.#lines.join('\n');
    this.#lines = [];
    this.#length = 0;
    return record === '' ? undefined : this.#rowOf(cellsOf(record, this.#start));
  }

  end(): void {
    if (this.#lines.length > 0) throw csvError(this.#start, 'a quote is not closed');
  }

  #rowOf(cells: readonly string[]): OldRow | undefined {
    const line = this.#start;
    const names = this.#names;
    if (names === undefined) {
      this.#names = cells.map((name) => name.trim());
      checkColumns(this.#names, (message) => inputError(`line ${line}: ${message}`));
      return undefined;
    }
    return rowOf(line, () => {
      if (cells.length === names.length) {
        return Object.fromEntries(names.map((name, at) => [name, cells[at]]));
      }
      throw refusal(
        `the row has ${cells.length} cells, and the first line names ${names.length} columns`,
      );
    });
  }
}

function cellsOf(record: string, line: number): readonly string[] {
  const cells: string[] = [];
  for (let start = 0; ; ) {
    const isQuoted = record[start] === '"';
    const end = isQuoted ? closingQuote(record, start) + 1 : endOfPlain(record, start);
    const cell = isQuoted
      ? record.slice(start + 1, end - 1).replaceAll('""', '"')
      : record.slice(start, end);
    const isWhole = end === record.length || record[end] === ',';
    if (!isWhole || (!isQuoted && cell.includes('"'))) {
      throw csvError(line, 'a quote must begin and end its cell');
    }
    cells.push(cell);
    if (end === record.length) return cells;
    start = end + 1;
  }
}

function csvError(line: number, reason: string): Error {
  return inputError(`line ${line} is not CSV: ${reason}`);
}

function hasOddQuotes(text: string): boolean {
  let isOdd = false;
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at + 1)) isOdd = !isOdd;
  return isOdd;
}

/** Where the quote is that ends a cell: the first one that is not doubled. The quotes are even. */
function closingQuote(record: string, start: number): number {
  let at = record.indexOf('"', start + 1);
  while (record[at + 1] === '"') at = record.indexOf('"', at + 2);
  return at;
}

function endOfPlain(record: string, start: number): number {
  const comma = record.indexOf(',', start);
  return comma === -1 ? record.length : comma;
}

function checkColumns(names: readonly string[], toError: (message: string) => Error): void {
  const unknown = names.find((name) => !COLUMNS.includes(name));
  if (unknown !== undefined) {
    throw toError(`${shownName(unknown)} is not a column; the columns are ${COLUMNS.join(', ')}`);
  }
  if (new Set(names).size < names.length) throw toError('two columns have the same name');
}

function rowOf(line: number, read: () => Row): OldRow {
  try {
    return { line, token: tokenOf(read()) };
  } catch (error) {
    if (isTokenError(error)) return { line, token: error };
    throw error;
  }
}

/** @throws {TokenError} */
function tokenOf(row: Row): OldToken {
  return {
    digest: textIn(row, 'digest'),
    account: textIn(row, 'account'),
    scopes: listIn(row, 'scopes'),
    permissions: listIn(row, 'permissions'),
    name: textIn(row, 'name'),
    createdAt: timeIn(row, 'created_at'),
    expiresAt: timeIn(row, 'expires_at'),
    isDisabled: isSet(row, 'disabled'),
    metadata: objectIn(row, 'metadata'),
  };
}

/** An empty cell counts as absent. */
function cellOf(row: Row, name: string): unknown {
  const cell = row[name];
  return cell === null || cell === '' ? undefined : cell;
}

/** A text, or a number that JSON does not round. */
function textIn(row: Row, name: string): string | undefined {
  const cell = cellOf(row, name);
  if (cell === undefined || typeof cell === 'string') return cell;
  if (Number.isSafeInteger(cell)) return String(cell);
  if (typeof cell !== 'number') throw refusal(`${name} must be a text or a whole number`);
  throw refusal(`${name} is a number that JSON rounds: select it as a text`);
}

function isSet(row: Row, name: string): boolean {
  const text = String(cellOf(row, name) ?? false).toLowerCase();
  if (['true', 't', '1'].includes(text)) return true;
  if (['false', 'f', '0'].includes(text)) return false;
  throw refusal(`${name} must be true or false, or 1 or 0`);
}

/** The value of a JSON text, or of a cell that is JSON already. */
function jsonIn(row: Row, name: string): unknown {
  const cell = cellOf(row, name);
  if (typeof cell !== 'string') return cell;
  const value = jsonOf(cell, `${name} is not JSON`);
  // Some adapters store text that was encoded as JSON twice.
  if (typeof value === 'string') return jsonIn({ [name]: value }, name);
  const rounded = roundedNumberIn(cell);
  if (rounded !== undefined) throw refusal(describeRounded([name, ...rounded]));
  return value ?? undefined;
}

function objectIn(row: Row, name: string): JsonObject | undefined {
  const value = jsonIn(row, name);
  if (value === undefined || isObject(value)) return value;
  throw refusal(`${name} must be a JSON object`);
}

/** Names separated by spaces or commas, in a JSON list, or in an object, where `{"a":["b"]}` is `a:b`. */
function listIn(row: Row, name: string): readonly string[] | undefined {
  const cell = cellOf(row, name);
  if (typeof cell === 'string' && !/^\s*["[{]/.test(cell)) {
    return cell.split(/[\s,]+/).filter(Boolean);
  }
  const value = jsonIn(row, name);
  if (value === undefined || isTexts(value)) return value;
  if (!isObject(value) || !Object.values(value).every(isTexts)) {
    throw refusal(`${name} must be a JSON list of texts, or an object of them`);
  }
  const lists = Object.entries(value) as [string, readonly string[]][];
  return lists.flatMap(([group, names]) => names.map((each) => `${group}:${each}`));
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

const SQL_TIME = /^([\d-]{10})[T ]([\d:.]{8,18}) ?(Z|[+-]\d\d(?::?\d\d)?)?$/i;

/** A number from here on is in milliseconds: as seconds it would be after the year 5138. */
const LEAST_MILLISECONDS = 100_000_000_000;

/** A time as databases print it; without a zone it is UTC. */
function timeIn(row: Row, name: string): Date | undefined {
  const cell = cellOf(row, name);
  if (cell === undefined) return undefined;
  const text = String(cell);
  if (/^\d{1,15}(?:\.\d{1,9})?$/.test(text)) {
    const number = Number(text);
    return new Date(number < LEAST_MILLISECONDS ? number * 1000 : number);
  }
  const [, day, clock, zone = 'Z'] = SQL_TIME.exec(text) ?? [];
  const offset = `${zone.slice(0, 3)}:${zone.slice(3).replace(':', '') || '00'}`;
  const time = parseInstant(`${day}T${clock}${zone.length === 1 ? 'Z' : offset}`);
  if (time !== undefined) return time;
  throw refusal(
    `${name} must be a time, such as 2027-01-31 12:00:00, 2027-01-31T12:00:00Z, or UNIX seconds or milliseconds`,
  );
}

function jsonOf(text: string, message: string): unknown {
  try {
    return parseJsonText(text);
  } catch {
    throw refusal(message);
  }
}

/** Makes the error that says why a row is refused. */
export function refusal(message: string): TokenError {
  return new TokenError('invalid_request', message);
}

/** The lines of a stream of UTF-8, without their ends. No chunk is looked at twice. */
async function* linesOf(input: Chunks): AsyncGenerator<string> {
  const decode = newDecoder();
  let line = '';
  for await (const chunk of input) {
    const text = typeof chunk === 'string' ? chunk : decode(chunk);
    const [rest = '', ...others] = text.split('\n');
    line = bounded(line + rest);
    for (const next of others) {
      yield withoutReturn(line);
      line = bounded(next);
    }
  }
  line = bounded(line + decode());
  if (line !== '') yield withoutReturn(line);
}

/** @throws {CliError} if a line is too long */
function bounded(line: string): string {
  if (line.length <= MAX_ROW_LENGTH) return line;
  throw inputError(`a line is longer than ${MAX_ROW_LENGTH} bytes`);
}

/** Makes a decoder of chunks. Call it without a chunk at the end. It drops a byte order mark. */
function newDecoder(): (chunk?: Uint8Array) => string {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  return (chunk) => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch {
      throw inputError('the rows must be UTF-8');
    }
  };
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}
