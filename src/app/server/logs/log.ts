import { printableLines } from '../../terminal/layout.ts';
import type { CallObserver } from '../calls.ts';
import type { Greeting } from '../greeting.ts';

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
