import type { CallObserver } from './calls.ts';
import type { Greeting } from './greeting.ts';

/** Where the command, and above all a running service, tells its operator what happens. */
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

const tell = (message: string) => console.error(`tokenwright: ${message}`);

/** For people: what the service is on standard output, all else on standard error. */
export const TEXT_LOG: Log = {
  started: ({ text }) => console.log(text),
  info: tell,
  warn: (message) => tell(`warning: ${message}`),
  error: tell,
  fatal: tell,
  close: async () => {},
};

/** Says nothing after the start. A password that was just made must not get lost: it is shown only once. */
export const SILENT_LOG: Log = { ...TEXT_LOG, info() {}, warn() {}, error() {} };

let current = TEXT_LOG;

/** The log of this process: text, until {@link useLog} says otherwise. */
export function theLog(): Log {
  return current;
}

export function useLog(log: Log): void {
  current = log;
}
