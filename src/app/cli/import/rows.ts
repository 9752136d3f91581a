import { isTokenError, TokenError } from '../../../errors.ts';
import { describeRounded, parseJsonText, roundedNumberIn } from '../../../text/json.ts';
import { inputError } from '../../terminal/errors.ts';
import { CsvReader, type CsvRecord } from './csv.ts';

/** The columns of a row, by lower-case names without `_`: `referenceId` is `referenceid`. */
export type Columns = ReadonlyMap<string, unknown>;

/** A row of the old system. */
export interface OldRow {
  /** Where it begins in the input, counted from 1. */
  readonly line: number;
  /** Its columns, or why it cannot be read. */
  readonly columns: Columns | TokenError;
}

type Chunks = Iterable<Uint8Array> | AsyncIterable<Uint8Array | string>;

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
  let read: ((text: string, line: number) => OldRow | undefined) | undefined;
  let csv: CsvRows | undefined;
  for await (const text of linesOf(input)) {
    line += 1;
    if (read === undefined) {
      const start = text.trimStart()[0];
      if (start === undefined) continue;
      if (start === '[') throw inputError(ONE_ARRAY);
      if (start !== '{') csv = new CsvRows();
      read = csv === undefined ? readJsonRow : csv.read;
    }
    const row = read(text, line);
    if (row !== undefined) yield row;
  }
  csv?.end();
}

const ONE_ARRAY =
  "the rows are one JSON array: give one object in each line, as jq -c '.[]' prints them";

function readJsonRow(text: string, line: number): OldRow | undefined {
  if (text.trim() === '') return undefined;
  try {
    const row = parseJsonText(text);
    const rounded = roundedNumberIn(text);
    if (rounded !== undefined) return { line, columns: refusal(describeRounded(rounded)) };
    if (typeof row === 'object' && row !== null && !Array.isArray(row)) {
      return { line, columns: columnsOf(Object.entries(row)) };
    }
  } catch (error) {
    if (isTokenError(error)) return { line, columns: error };
  }
  return { line, columns: refusal('the line is not a JSON object') };
}

class CsvRows {
  readonly #reader = new CsvReader({ maxLength: MAX_ROW_LENGTH });
  #names: readonly string[] | undefined;

  readonly read = (text: string, line: number): OldRow | undefined => {
    const record = this.#reader.push(text, line);
    if (record === undefined || isEmpty(record)) return undefined;
    if (this.#names !== undefined) return this.#rowOf(record, this.#names);
    const names = record.cells.map(plainName);
    if (new Set(names).size < names.length) throw inputError(`line ${line}: ${TWICE}`);
    this.#names = names;
    return undefined;
  };

  end(): void {
    this.#reader.end();
  }

  #rowOf({ line, cells }: CsvRecord, names: readonly string[]): OldRow {
    if (cells.length === names.length) {
      return { line, columns: columnsOf(names.map((name, at) => [name, cells[at]])) };
    }
    const counts = `the row has ${cells.length} cells, and the first line names ${names.length} columns`;
    return { line, columns: refusal(counts) };
  }
}

const TWICE = 'two columns have the same name';

function isEmpty({ cells }: CsvRecord): boolean {
  return cells.length === 1 && cells[0] === '';
}

/** @throws {TokenError} if two columns have the same name */
function columnsOf(entries: readonly (readonly [name: string, value: unknown])[]): Columns {
  const columns = new Map<string, unknown>();
  for (const [name, value] of entries) {
    const known = plainName(name);
    if (columns.has(known)) throw refusal(TWICE);
    columns.set(known, value);
  }
  return columns;
}

/** Normalizes the name of a column: `reference_id` and `referenceId` are the same. */
export function plainName(name: string): string {
  const known = KNOWN_NAMES.get(name);
  if (known !== undefined) return known;
  const plain = name.trim().replaceAll('_', '').toLowerCase();
  if (KNOWN_NAMES.size < MAX_KNOWN_NAMES) KNOWN_NAMES.set(name, plain);
  return plain;
}

/** A cache of plain names: all rows have the same columns. */
const KNOWN_NAMES = new Map<string, string>();
const MAX_KNOWN_NAMES = 100;

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
