import { inspect } from 'node:util';
import { isTokenError } from '../../../errors.ts';
import { type Clock, systemClock } from '../../../time/clock.ts';
import { printable } from '../../terminal/layout.ts';
import { masked } from '../../terminal/masking.ts';
import { Allowance, type AllowanceOptions } from './allowance.ts';
import { theLog } from './log.ts';

/** Characters of the message of an error in the log. @bound */
export const MAX_ERROR_LENGTH = 200;

/** Different errors that are written in that time. @bound */
export const MAX_ERROR_KINDS = 100;

/** Milliseconds for which the same error is written once. @bound */
export const ERROR_LOG_PAUSE_MS = 60_000;

export interface ErrorLogOptions extends Pick<AllowanceOptions, 'clock' | 'schedule'> {
  /** @default the log of this process */
  readonly write?: ((text: string) => void) | undefined;
}

const OTHERS = 'other errors';

/**
 * Logs the errors of calls: each message once a minute, then how often it was repeated, so that no
 * caller can fill the log. Expected errors are logged without a stack.
 */
export class ErrorLog {
  readonly #write: (text: string) => void;
  readonly #clock: Clock;
  readonly #schedule: AllowanceOptions['schedule'];
  readonly #kinds = new Map<string, Allowance>();
  #start = Number.NEGATIVE_INFINITY;

  constructor({
    write = (text) => theLog().error(text),
    clock = systemClock,
    schedule,
  }: ErrorLogOptions = {}) {
    this.#write = write;
    this.#clock = clock;
    this.#schedule = schedule;
  }

  report(error: unknown): void {
    const short = shortMessageOf(error);
    if (!this.#allowanceOf(short ?? messageOf(error)).take()) return;
    this.#write(`a call failed: ${short ?? inspect(error)}`);
  }

  #allowanceOf(message: string): Allowance {
    this.#forgetOld();
    const hasRoom = this.#kinds.has(message) || this.#kinds.size < MAX_ERROR_KINDS;
    const kind = hasRoom ? message : OTHERS;
    const allowance = this.#kinds.get(kind) ?? this.#newAllowance(kind);
    this.#kinds.set(kind, allowance);
    return allowance;
  }

  /** Forgets all messages once a minute, so that their number stays bounded. */
  #forgetOld(): void {
    const now = this.#clock.now().getTime();
    if (now >= this.#start && now - this.#start < ERROR_LOG_PAUSE_MS) return;
    this.#start = now;
    for (const allowance of this.#kinds.values()) allowance.flush();
    this.#kinds.clear();
  }

  #newAllowance(kind: string): Allowance {
    return new Allowance({
      limit: 1,
      spanMs: ERROR_LOG_PAUSE_MS,
      reportDropped: (count) =>
        this.#write(`a call failed: ${kind} (${count} more times within a minute)`),
      clock: this.#clock,
      schedule: this.#schedule,
    });
  }
}

/** One line, if that is enough: the error is expected, or its stack names no code. */
function shortMessageOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error.message === 'deadline') return 'there was no answer in time';
  const isOfCaller = isTokenError(error) && error.code === 'invalid_request';
  const isWithoutStack = !(error.stack ?? '').includes('\n    at ');
  return isOfCaller || isWithoutStack ? oneLine(error.message) : undefined;
}

function messageOf(error: unknown): string {
  return oneLine(error instanceof Error ? `${error.name}: ${error.message}` : typeof error);
}

function oneLine(text: string): string {
  return masked(printable(text)).slice(0, MAX_ERROR_LENGTH);
}
