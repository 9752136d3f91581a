import type { IncomingMessage } from 'node:http';
import { AUTHENTICATE_DEADLINE_MS, MAX_ACCOUNT_BYTES, PASSWORD_DEADLINE_MS } from '../../bounds.ts';
import { isTokenError, TokenError } from '../../errors.ts';
import { notify } from '../../events.ts';
import { kindOf } from '../../text/wording.ts';
import { systemClock } from '../../time/clock.ts';
import { withDeadline } from '../../time/deadline.ts';
import { isAccount, isObject } from '../../token/record.ts';
import { newMarker } from '../../values/hmac.ts';
import { type ClientAddress, readAddress, showBriefly } from '../address.ts';
import { ErrorReporter, StacklessError } from '../error-reporter.ts';
import { HttpError, overloaded } from '../errors.ts';
import { type HttpRequest, ownForms } from '../request.ts';
import type { Authenticate, CallerAccount, Credentials } from './basic-auth.ts';
import { type Attempt, type FailureLimiter, remoteAddress } from './login-limiter.ts';

/** Milliseconds for one answer of a `limiter`. @bound */
export const LIMITER_DEADLINE_MS = 2000;

/**
 * Returns the account of the person who is signed in to your application, or `null` for nobody.
 *
 * `request` has no body. `incoming` is the request of Node.js as your framework has it, for sessions that
 * a middleware put there, such as `express-session`. You may name its type, such as `express.Request`. It
 * is `undefined` if the call did not come through `toNodeListener`.
 */
export type SessionAccount = {
  // A method, because TypeScript lets only the parameters of methods have a narrower type.
  accountOf(
    request: Request,
    incoming: IncomingMessage | undefined,
  ): CallerAccount | null | Promise<CallerAccount | null>;
}['accountOf'];

/** One check of credentials, for audit logs. The password is not part of it. */
export interface SignIn {
  /**
   * `accepted`; `refused` for wrong credentials; `limited` after too many of them, with no password
   * checked; `unavailable` when they could not be checked.
   */
  readonly outcome: 'accepted' | 'refused' | 'limited' | 'unavailable';
  /** The user name of the credentials: any text, perhaps a password by mistake. */
  readonly username: string;
  /** The address of the client, without a port. Absent if `clientAddress` returns none. */
  readonly address?: string;
  /** The account that was opened. */
  readonly account?: string;
  /** When the check ended, by the time of the machine. */
  readonly at: Date;
}

/** The options of the handler that sign-ins use. */
export interface SignInOptions {
  readonly limiter?: FailureLimiter | undefined;
  readonly clientAddress?: ((request: Request) => string | undefined) | undefined;
  readonly onSignIn?: ((signIn: SignIn) => void) | undefined;
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** A call, and its client. */
export interface Caller {
  readonly request: HttpRequest;
  /** Absent without `clientAddress`. */
  readonly client?: ClientAddress | undefined;
  /** Why the address is not known. */
  readonly error?: HttpError;
}

/** One or two ways to read the credentials of a call. */
export type Readings = readonly [first: Credentials, second?: Credentials];

/** Who calls. */
export interface Identity {
  readonly account: string;
  /** Absent if the host names only the account. */
  readonly user?: string;
}

interface Found extends Identity {
  readonly credentials: Credentials;
}

/** Finds the account that credentials open. */
export class SignIns {
  readonly #clientAddress: ((request: Request) => string | undefined) | undefined;
  readonly #attempts: Attempts | undefined;
  readonly #onSignIn: ((signIn: SignIn) => void) | undefined;
  readonly #errors: ErrorReporter;

  constructor({ limiter, clientAddress, onSignIn, onError = () => {} }: SignInOptions) {
    // A limiter that takes all callers for one locks everybody out, so the host must ask for it.
    if (limiter !== undefined && clientAddress === undefined) {
      throw new TokenError(
        'invalid_options',
        'limiter needs clientAddress, such as remoteAddress; "() => \'\'" takes all callers for one',
      );
    }
    this.#errors = new ErrorReporter(onError);
    this.#clientAddress = clientAddress;
    this.#attempts = limiter && new Attempts(limiter, this.#errors);
    this.#onSignIn = onSignIn;
  }

  /** Never throws: without an address, only calls that need credentials are refused. */
  callerOf(request: HttpRequest): Caller {
    try {
      return { request, client: this.#clientOf(request) };
    } catch (error) {
      return { request, error: this.#toHttpError(error) };
    }
  }

  /** Whether a call came through a proxy that the host trusts. */
  isProxied({ address, incoming }: HttpRequest): boolean {
    const isProxy = this.#clientAddress && ownForms.get(this.#clientAddress)?.isProxy;
    const peer = address ?? incoming?.socket?.remoteAddress;
    return isProxy !== undefined && peer !== undefined && isProxy(peer);
  }

  /**
   * The account, or `null` for wrong credentials. Rejects with an `HttpError` only.
   *
   * @param readings the ways to read one pair of credentials, tried in this order; see `readingsOf`. All
   * are one attempt, and count for the user of the last one
   */
  async check(
    authenticate: Authenticate,
    readings: Readings,
    { request, client, error }: Caller,
  ): Promise<Identity | null> {
    const [credentials] = readings;
    try {
      if (error !== undefined) throw error;
      const found = await this.#accountOf(authenticate, readings, request, client?.network);
      if (found === null) this.#report('refused', credentials, client);
      else this.#report('accepted', found.credentials, client, found.account);
      return found;
    } catch (thrown) {
      const failure = this.#toHttpError(thrown);
      const isLimited = failure.code === 'rate_limited';
      this.#report(isLimited ? 'limited' : 'unavailable', credentials, client);
      throw failure;
    }
  }

  /**
   * The account of a session, or `null` if nobody is signed in. Reports no sign-in, since the host has made
   * it. Rejects with an `HttpError` only.
   */
  async checkSession(
    session: SessionAccount,
    { request, error }: Caller,
  ): Promise<Identity | null> {
    try {
      if (error !== undefined) throw error;
      const answer = Promise.resolve(session(request.toFetch(), request.incoming));
      const late = () => new StacklessError('session has not answered within ten seconds');
      return identityIn(await withDeadline(answer, AUTHENTICATE_DEADLINE_MS, late), 'session');
    } catch (thrown) {
      throw this.#toHttpError(thrown);
    }
  }

  async #accountOf(
    authenticate: Authenticate,
    readings: Readings,
    request: HttpRequest,
    network = '',
  ): Promise<Found | null> {
    const own = ownForms.get(authenticate);
    let found: Found | null = null;
    const checkOne = async (credentials: Credentials) => {
      const answer: unknown = own?.check
        ? await own.check(credentials, network)
        : await authenticate(credentials, request.toFetch());
      const identity = identityIn(answer, 'authenticate');
      if (identity !== null) found = { ...identity, credentials };
      return identity?.account ?? null;
    };
    const [first, second] = readings;
    const check = () => {
      // Otherwise each call of a client that encodes would cost a hash for the first reading.
      const isSecond = second && !own?.remembered?.(first) && own?.remembered?.(second);
      const checkAll = async () =>
        (isSecond ? null : await checkOne(first)) ?? (second ? checkOne(second) : null);
      if (own?.check) return withDeadline(checkAll(), PASSWORD_DEADLINE_MS, overloaded);
      return withDeadline(checkAll(), AUTHENTICATE_DEADLINE_MS, tooLate);
    };
    const { username } = second ?? first;
    if (this.#attempts === undefined) await check();
    else await this.#attempts.run({ username, address: network }, first.password, check);
    return found;
  }

  /** Fails if the host's `clientAddress` is wrong, or if the client has gone. */
  #clientOf(request: HttpRequest): ClientAddress | undefined {
    if (this.#clientAddress === undefined) return undefined;
    try {
      return readClient(this.#clientAddress, request);
    } catch (error) {
      if (error instanceof HttpError) throw error;
      // Two kinds, since clients disconnect at any time: that must not hide a wrong `clientAddress`.
      if (!isTokenError(error)) this.#errors.reportSeldom('clientAddress', error);
      else this.#errors.reportSeldom(error.code, new StacklessError(error.message));
      throw accountsUnavailable();
    }
  }

  #toHttpError(error: unknown): HttpError {
    if (error instanceof HttpError) return error;
    this.#errors.report(error);
    return accountsUnavailable();
  }

  #report(
    outcome: SignIn['outcome'],
    { username }: Credentials,
    client: ClientAddress | undefined,
    account: string | null = null,
  ): void {
    if (this.#onSignIn === undefined) return;
    notify(this.#onSignIn, {
      outcome,
      username: copyOf(username),
      ...(client?.host && { address: client.host }),
      ...(account !== null && { account }),
      at: systemClock.now(),
    });
  }
}

/**
 * The ways to read the Basic credentials of an OAuth client. RFC 6749 section 2.3.1 lets clients encode the
 * user name and the password as in a form, and many send them as they are.
 */
export function readingsOf(credentials: Credentials): Readings {
  const { username, password } = credentials;
  try {
    const decoded = { username: formDecoded(username), password: formDecoded(password) };
    const isSame = decoded.username === username && decoded.password === password;
    const isText = !/\p{Cc}/u.test(decoded.username + decoded.password);
    return isSame || !isText ? [credentials] : [credentials, decoded];
  } catch {
    return [credentials];
  }
}

function formDecoded(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '));
}

function readClient(
  clientAddress: (request: Request) => string | undefined,
  request: HttpRequest,
): ClientAddress {
  // `remoteAddress` would read this very address from the `Request`, which costs more than the rest.
  const isKnown = clientAddress === remoteAddress && request.address !== undefined;
  const text: unknown = isKnown ? request.address : clientAddress(request.toFetch());
  const client = typeof text === 'string' ? readAddress(text) : undefined;
  if (client !== undefined) return client;
  const got = typeof text === 'string' ? showBriefly(text) : 'none';
  throw new StacklessError(`clientAddress must return an IP address; got ${got}`);
}

/** V8 slices keep the parent string alive, which holds the password; a log may keep the user name. */
function copyOf(text: string): string {
  return Buffer.from(text).toString();
}

/** Says what a function of the host should have returned. Quotes no text: it may be a password. */
/** Reads what a function of the host returned. */
function identityIn(answer: unknown, name: 'authenticate' | 'session'): Identity | null {
  if (answer === null) return null;
  if (isAccount(answer)) return { account: answer };
  const { account, user } = isObject(answer) ? answer : {};
  if (isAccount(account) && isAccount(user)) return { account, user };
  throw noAccount(name, answer);
}

function noAccount(name: 'authenticate' | 'session', returned: unknown): StacklessError {
  const nobody = name === 'session' ? 'if nobody is signed in' : 'for wrong credentials';
  return new StacklessError(
    `${name} must return the name of the account, 1 to ${MAX_ACCOUNT_BYTES} bytes of text, or { account, user } of such texts, or null ${nobody}; got ${kindOf(returned)}`,
  );
}

function tooLate(): StacklessError {
  return new StacklessError('authenticate has not answered within ten seconds');
}

function accountsUnavailable(): HttpError {
  return new HttpError('store_unavailable', 'accounts cannot be checked at the moment');
}

/** Resolves to the account that the credentials of an attempt open, or to `null`. */
type AccountCheck = () => Promise<string | null>;

/** Checks attempts under a limiter. Rejects with an `HttpError` for the client, or with an outage. */
class Attempts {
  readonly #limiter: FailureLimiter;
  readonly #errors: ErrorReporter;
  readonly #mark = newMarker();
  /** The points of attempts in progress, by the marks of their credentials. */
  readonly #inFlight = new Map<string, Promise<void>>();

  constructor(limiter: FailureLimiter, errors: ErrorReporter) {
    this.#limiter = limiter;
    this.#errors = errors;
  }

  /** Resolves to what `check` resolves to: `null` for wrong credentials. */
  async run(attempt: Attempt, password: string, check: AccountCheck): ReturnType<AccountCheck> {
    const key = this.#mark(JSON.stringify([attempt.username, password]));
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
