import { open } from 'node:fs/promises';
import { OWNER_ONLY } from '../files/private-file.ts';

/** Bytes of lines that wait to be written to the audit log. @bound */
export const MAX_WAITING_LOG_BYTES = 1_048_576;

/** The destination of lines. */
export interface Sink {
  /** Writes all of a text, or rejects. */
  write(text: string): Promise<void>;
  close(): Promise<void>;
}

export interface LineWriterOptions {
  /** Makes the line that reports lost lines. */
  readonly lostLine: (count: number) => string;
  /** Called when writing begins to fail, and not again before a write succeeds. */
  readonly onTrouble: (error: unknown) => void;
}

const LINE_END = 10;

/**
 * Writes lines in order, without making callers wait. While a disk or a reader is slow, up to 1 MiB
 * waits in memory. Further lines are lost, and so are those that cannot be written; a line reports
 * how many.
 */
export class LineWriter {
  readonly #sink: Sink;
  readonly #options: LineWriterOptions;
  #waiting: string[] = [];
  /** The bytes of the lines that wait or are being written. */
  #bytes = 0;
  #lost = 0;
  #isFailing = false;
  #work: Promise<void> | undefined;

  constructor(sink: Sink, options: LineWriterOptions) {
    this.#sink = sink;
    this.#options = options;
  }

  /** Writes a line soon. It must hold no line end. */
  write(line: string): void {
    const bytes = Buffer.byteLength(line) + 1;
    if (this.#bytes + bytes > MAX_WAITING_LOG_BYTES) {
      this.#lost += 1;
      return;
    }
    this.#waiting.push(`${line}\n`);
    this.#bytes += bytes;
    this.#work ??= this.#writeAll();
  }

  /** Resolves when all waiting lines are written or lost. */
  async close(): Promise<void> {
    await this.#work;
    await this.#sink.close();
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0 || (this.#lost > 0 && !this.#isFailing)) {
      await this.#writeSome();
    }
    this.#work = undefined;
  }

  async #writeSome(): Promise<void> {
    const lines = this.#waiting;
    const bytes = this.#bytes;
    const lost = this.#lost;
    this.#waiting = [];
    this.#lost = 0;
    try {
      const report = lost === 0 ? '' : `${this.#options.lostLine(lost)}\n`;
      await this.#sink.write(lines.join('') + report);
      this.#isFailing = false;
    } catch (error) {
      this.#lost += lost + lines.length;
      if (!this.#isFailing) this.#options.onTrouble(error);
      this.#isFailing = true;
    }
    this.#bytes -= bytes;
  }
}

/** Appends to a file. If it is missing, makes it for its owner only. */
export async function fileSink(path: string): Promise<Sink> {
  const file = await open(path, 'a', OWNER_ONLY);
  /** Whether the last line was cut off, such as by a full disk. The next text begins a new line. */
  let isCut = false;
  return {
    async write(text) {
      const bytes = Buffer.from(isCut ? `\n${text}` : text);
      let written = 0;
      try {
        while (written < bytes.length) {
          written += (await file.write(bytes, written)).bytesWritten;
        }
        isCut = false;
      } catch (error) {
        if (written > 0) isCut = bytes[written - 1] !== LINE_END;
        throw error;
      }
    },
    close: () => file.close(),
  };
}

/** Writes to standard output. */
export function outputSink(output: NodeJS.WritableStream = process.stdout): Sink {
  // Each write reports its own failure; without a listener the process would end.
  output.on('error', () => {});
  return {
    write: (text) =>
      new Promise((resolve, reject) => {
        output.write(text, (error) => (error ? reject(error) : resolve()));
      }),
    close: async () => {},
  };
}
