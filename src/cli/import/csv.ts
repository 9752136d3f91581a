import { inputError } from '../errors.ts';

/** The cells of a record, and the line that it begins on. */
export interface CsvRecord {
  readonly line: number;
  readonly cells: readonly string[];
}

/**
 * Reads CSV as RFC 4180 has it: commas, and double quotes around cells that hold commas, line ends
 * or quotes, which are doubled. Guesses nothing. Lines come one by one, so that a file of any size
 * is read in little memory.
 *
 * @throws {CliError} naming the line
 */
export class CsvReader {
  readonly #maxLength: number;
  /** The lines so far of a record that goes on, because one of its cells holds a line end. */
  #open = '';
  #start = 0;

  constructor({ maxLength }: { readonly maxLength: number }) {
    this.#maxLength = maxLength;
  }

  /** Takes the next line, without its end; `undefined` if the record goes on. */
  push(text: string, line: number): CsvRecord | undefined {
    if (this.#open === '') this.#start = line;
    const whole = this.#open === '' ? text : `${this.#open}\n${text}`;
    const isComplete = (whole.split('"').length - 1) % 2 === 0;
    if (!isComplete) {
      if (whole.length > this.#maxLength) throw this.#fault('a quote is not closed');
      this.#open = whole;
      return undefined;
    }
    this.#open = '';
    return { line: this.#start, cells: this.#cellsOf(whole) };
  }

  /** Call it after the last line. @throws {CliError} if a record is not complete */
  end(): void {
    if (this.#open !== '') throw this.#fault('a quote is not closed');
  }

  #cellsOf(record: string): readonly string[] {
    const cells: string[] = [];
    const cell = /(?:"([^"]*(?:""[^"]*)*)"|([^",]*))(,|$)/y;
    for (;;) {
      const match = cell.exec(record);
      if (match === null) throw this.#fault('a quote must begin and end its cell');
      const [, quoted, plain = '', end] = match;
      cells.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
      if (end === '') return cells;
    }
  }

  #fault(reason: string): Error {
    return inputError(`line ${this.#start} is not CSV: ${reason}`);
  }
}
