import * as crypto from 'node:crypto';
import { LIMITER_DEADLINE_MS } from '../../bounds.ts';
import { withDeadline } from '../../time/deadline.ts';
import { type ErrorReporter, StacklessError } from '../error-reporter.ts';
import { HttpError } from '../errors.ts';
import type { Attempt, FailureLimiter } from './login-limiter.ts';

/** Resolves to the account that the credentials of an attempt open, or to `null`. */
type AccountCheck = () => Promise<string | null>;

/** Checks attempts under a limiter. Rejects with an `HttpError` for the client, or with an outage. */
export class Attempts {
  readonly #limiter: FailureLimiter;
  readonly #errors: ErrorReporter;
  readonly #key = crypto.createSecretKey(crypto.randomBytes(32));
  /** The points of attempts in progress, by a MAC of their credentials. */
  readonly #inFlight = new Map<string, Promise<void>>();

  constructor(limiter: FailureLimiter, errors: ErrorReporter) {
    this.#limiter = limiter;
    this.#errors = errors;
  }

  /** Resolves to what `check` resolves to: `null` for wrong credentials. */
  async run(attempt: Attempt, password: string, check: AccountCheck): ReturnType<AccountCheck> {
    const key = this.#macOf([attempt.username, password]);
    const point = this.#inFlight.get(key);
    if (point === undefined) return this.#runFirst(key, attempt, check);
    return this.#join(point, attempt, check);
  }

  /** Takes the point before the password is checked: under load, many checks never end. */
  async #runFirst(key: string, attempt: Attempt, check: AccountCheck): ReturnType<AccountCheck> {
    const point = this.#take(attempt);
    this.#inFlight.set(key, point);
    try {
      return await this.#checkFor(point, attempt, check);
    } finally {
      this.#inFlight.delete(key);
    }
  }

  async #checkFor(point: Promise<void>, attempt: Attempt, check: AccountCheck) {
    await point;
    const account = await check();
    if (account !== null) await this.#giveBack(attempt);
    return account;
  }

  /**
   * A concurrent attempt with the same credentials tells an attacker nothing new, so it takes a point
   * only after it failed. Otherwise a client with many concurrent calls would limit itself, and so would
   * programs that sign in with one account from many addresses.
   */
  async #join(
    point: Promise<void>,
    attempt: Attempt,
    check: AccountCheck,
  ): ReturnType<AccountCheck> {
    throwIfLimited(await this.#ask('waitSeconds', attempt));
    const isTaken = await point.then(
      () => true,
      () => false,
    );
    // The first may come from an address that is limited, and this one not.
    if (!isTaken) return this.#checkFor(this.#count(attempt), attempt, check);
    const account = await check().catch(async (error) => {
      await this.#count(attempt);
      throw error;
    });
    if (account === null) await this.#count(attempt);
    return account;
  }

  async #take(attempt: Attempt): Promise<void> {
    throwIfLimited(await this.#ask('waitSeconds', attempt));
    await this.#count(attempt);
  }

  async #count(attempt: Attempt): Promise<void> {
    throwIfLimited(await this.#ask('failed', attempt));
  }

  async #giveBack(attempt: Attempt): Promise<void> {
    try {
      await this.#answerOf('succeeded', attempt);
    } catch (error) {
      this.#errors.report(error);
    }
  }

  async #ask(question: 'waitSeconds' | 'failed', attempt: Attempt): Promise<number> {
    const seconds = await this.#answerOf(question, attempt);
    if (typeof seconds === 'number' && seconds >= 0) return seconds;
    throw new TypeError(`${question} must return a number of seconds from 0`);
  }

  #answerOf(question: keyof FailureLimiter, attempt: Attempt): Promise<unknown> {
    const answer = (async () => this.#limiter[question](attempt))();
    return withDeadline<unknown>(
      answer,
      LIMITER_DEADLINE_MS,
      () => new StacklessError(`limiter.${question} has not answered within two seconds`),
    );
  }

  /** Identifies calls with the same credentials without storing a password. */
  #macOf(texts: readonly string[]): string {
    return crypto.createHmac('sha256', this.#key).update(JSON.stringify(texts)).digest('base64url');
  }
}

function throwIfLimited(seconds: number): void {
  if (seconds === 0) return;
  const whole = Math.min(Math.ceil(seconds), Number.MAX_SAFE_INTEGER);
  throw new HttpError(
    'rate_limited',
    'there were too many wrong credentials; wait for as long as Retry-After says',
    { headers: { 'retry-after': String(whole) } },
  );
}
