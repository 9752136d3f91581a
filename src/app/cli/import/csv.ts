import { inputError } from '../../terminal/errors.ts';

/** The cells of a record, and the line that it begins on. */
export interface CsvRecord {
  readonly line: number;
  readonly cells: readonly string[];
}

/**
 * Reads CSV as RFC 4180 has it: commas, and double quotes around cells that hold commas, line ends
 * or quotes, which are doubled. Guesses nothing. Lines come one by one, so that a file of any size
 * is read in little memory, and none is read twice: a cell may have hundreds of thousands of
 * line ends.
 *
 * @throws {CliError} naming the line
 */
export class CsvReader {
  readonly #maxLength: number;
  /** The lines so far of a record that goes on, because one of its cells holds a line end. */
  #lines: string[] = [];
  #length = 0;
  #start = 0;

  constructor({ maxLength }: { readonly maxLength: number }) {
    this.#maxLength = maxLength;
  }

  /** Takes the next line, without its end; `undefined` if the record goes on. */
  push(text: string, line: number): CsvRecord | undefined {
    const wasOpen = this.#lines.length > 0;
    if (!wasOpen) this.#start = line;
    this.#lines.push(text);
    this.#length += text.length + 1;
    const isOpen = hasOddQuotes(text) !== wasOpen;
    if (!isOpen) return { line: this.#start, cells: this.#cellsOf(this.#take()) };
    if (this.#length > this.#maxLength) throw this.#unclosed();
    return undefined;
  }

  /** Call it after the last line. @throws {CliError} if a record is not complete */
  end(): void {
    if (this.#lines.length > 0) throw this.#unclosed();
  }

  #take(): string {
    const record = this.#lines.join('\n');
    this.#lines = [];
    this.#length = 0;
    return record;
  }

  #cellsOf(record: string): readonly string[] {
    const cells: string[] = [];
    for (let start = 0; ; ) {
      const isQuoted = record[start] === '"';
      const end = isQuoted ? closingQuote(record, start) + 1 : endOfPlain(record, start);
      const cell = isQuoted
        ? record.slice(start + 1, end - 1).replaceAll('""', '"')
        : record.slice(start, end);
      const isWhole = end === record.length || record[end] === ',';
      if (!isWhole || (!isQuoted && cell.includes('"'))) {
        throw this.#fault('a quote must begin and end its cell');
      }
      cells.push(cell);
      if (end === record.length) return cells;
      start = end + 1;
    }
  }

  #unclosed(): Error {
    return this.#fault('a quote is not closed');
  }

  #fault(reason: string): Error {
    return inputError(`line ${this.#start} is not CSV: ${reason}`);
  }
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
