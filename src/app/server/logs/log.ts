import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { systemClock } from '../../../index.ts';
import { printableLines } from '../../terminal/layout.ts';
import { masked } from '../../terminal/masking.ts';
import type { CallObserver } from '../calls.ts';

/** What `serve` says when it is ready, for people and for programs. */
export interface Greeting {
  /** With a first call to copy. */
  readonly text: string;
  readonly message: string;
  /** The members of the message in a JSON log. */
  readonly members: Readonly<Record<string, unknown>>;
}

/** The log of a command, above all of a running service, for its operator. */
export interface Log {
  /** The service is ready. */
  started(greeting: Greeting): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
  /** Why the process ends. */
  fatal(message: string): void;
  /** Absent if requests are not logged. */
  readonly recordCall?: CallObserver;
  /** Resolves when all is written. */
  close(): Promise<void>;
}

const tell = (message: string) => console.error(`tokenwright: ${printableLines(message)}`);

/** For people: the greeting on standard output, all else on standard error. */
export const TEXT_LOG: Log = {
  started: ({ text }) => console.log(text),
  info: tell,
  warn: (message) => tell(`warning: ${message}`),
  error: tell,
  fatal: tell,
  close: async () => {},
};

/** Logs only the greeting, which may hold a new password, and why the process ends. */
export const SILENT_LOG: Log = { ...TEXT_LOG, info() {}, warn() {}, error() {} };

let current = TEXT_LOG;

/** The log of this process: text, until {@link useLog} says otherwise. */
export function theLog(): Log {
  return current;
}

export function useLog(log: Log): void {
  current = log;
}

/** Warns the operator. */
export function warn(message: string): void {
  current.warn(message);
}

type WriteLine = (
  level: 'info' | 'warn' | 'error' | 'fatal',
  message: string,
  members?: Readonly<Record<string, unknown>>,
) => void;

/**
 * Letters, digits and hyphens: no value of a token has this form, and no line end gets into a log.
 */
const REQUEST_ID = /^[A-Za-z0-9-]{1,64}$/;
/** Version 00 of https://www.w3.org/TR/trace-context/#traceparent-header. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/**
 * A log for programs: one JSON object per line, with a line for each request. It never waits for
 * its reader: lines that do not fit into memory are lost, and counted.
 */
export function jsonLog(sink: Sink = outputSink()): Log {
  const lines = new LineWriter(sink, {
    lostLine: (count) => jsonLine('warn', 'lines were lost', { lines: count }),
    // There is no other place to report it.
    onTrouble: () => {},
  });
  const write: WriteLine = (...line) => lines.write(masked(jsonLine(...line)));
  return {
    started: ({ message, members }) => write('info', message, members),
    info: (message) => write('info', message),
    warn: (message) => write('warn', message),
    error: (message) => write('error', message),
    fatal: (message) => write('fatal', message),
    recordCall: callsIn(write),
    close: () => lines.close(),
  };
}

function jsonLine(...[level, msg, members]: Parameters<WriteLine>): string {
  return JSON.stringify({ level, time: systemClock.now().toISOString(), ...members, msg });
}

/** Logs each call with a request id, and sends the id with the answer, to find one by the other. */
function callsIn(write: WriteLine): CallObserver {
  return (request, response) => {
    const requestId = headerOf(request, 'x-request-id', REQUEST_ID) ?? randomUUID();
    const traceparent = headerOf(request, 'traceparent', TRACEPARENT);
    response.setHeader('x-request-id', requestId);
    return ({ method, route, status = null, seconds, failure }) => {
      const level = (status ?? 0) >= 500 ? 'warn' : 'info';
      const durationMs = Math.round(seconds * 1e6) / 1000;
      const { code, reason } = failure ?? {};
      const result = { status, code, reason, durationMs };
      write(level, 'request', { method, route, ...result, requestId, traceparent });
    };
  };
}

/** A header, if it has the right form: a caller can send anything. */
function headerOf({ headers }: IncomingMessage, name: string, form: RegExp): string | undefined {
  const value = headers[name];
  return typeof value === 'string' && form.test(value) ? value : undefined;
}

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
