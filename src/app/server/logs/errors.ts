import { inspect } from 'node:util';
import { DeadlineError } from '../../../errors.ts';
import { isTokenError, type TokenError } from '../../../index.ts';
import { setTimeout } from '../../../time/timers.ts';
import { printable } from '../../terminal/layout.ts';
import { masked } from '../../terminal/masking.ts';
import { theLog } from './log.ts';

/** Characters of the message of an error in the log. @bound */
export const MAX_ERROR_LENGTH = 200;

/** Different errors that are written in that time. @bound */
export const MAX_ERROR_KINDS = 100;

/** Milliseconds for which the same error is written once. @bound */
export const ERROR_LOG_PAUSE_MS = 60_000;

const OTHERS = 'other errors';

const OUTAGES: ReadonlySet<string> = new Set(['store_unavailable', 'store_corrupt']);

/**
 * Logs the errors of calls: each message once a minute, then how often it was repeated, so that no
 * caller can fill the log. Expected errors are logged without a stack.
 */
export class ErrorLog {
  readonly #write: (text: string) => void;
  /** How often each error of this minute was repeated. */
  readonly #repeats = new Map<string, number>();

  /** @param write @default to the log of this process */
  constructor(write = (text: string) => theLog().error(text)) {
    this.#write = write;
  }

  report(error: unknown): void {
    // The log of outages has these, with a diagnosis.
    if (isTokenError(error) && OUTAGES.has(error.code)) return;
    const short = shortMessageOf(error);
    const message = short ?? messageOf(error);
    const repeats = this.#repeats;
    if (repeats.size === 0) setTimeout(() => this.#endMinute(), ERROR_LOG_PAUSE_MS).unref();
    const kind = repeats.has(message) || repeats.size < MAX_ERROR_KINDS ? message : OTHERS;
    const before = repeats.get(kind);
    repeats.set(kind, before === undefined ? 0 : before + 1);
    if (before === undefined) this.#write(`a call failed: ${short ?? inspect(error)}`);
  }

  #endMinute(): void {
    for (const [kind, count] of this.#repeats) {
      if (count === 0) continue;
      this.#write(`a call failed: ${kind} (${count} more times within a minute)`);
    }
    this.#repeats.clear();
  }
}

/** One line, if that is enough: the error is expected, or its stack names no code. */
function shortMessageOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error instanceof DeadlineError) return 'there was no answer in time';
  if (isExpected(error)) return oneLine(`${error.code}: ${error.message}`);
  const isWithoutStack = !(error.stack ?? '').includes('\n    at ');
  return isWithoutStack ? oneLine(error.message) : undefined;
}

/** A fault of the caller or of the store, of which the code says more than a stack. */
function isExpected(error: Error): error is TokenError {
  return isTokenError(error) && (error.code === 'invalid_request' || error.status === 503);
}

function messageOf(error: unknown): string {
  return oneLine(error instanceof Error ? `${error.name}: ${error.message}` : typeof error);
}

function oneLine(text: string): string {
  return masked(printable(text)).slice(0, MAX_ERROR_LENGTH);
}
