import * as crypto from 'node:crypto';
import { withDeadline } from '../clock.ts';
import { TokenError } from '../errors.ts';
import { Refusal } from './answers.ts';
import type { Incoming } from './incoming.ts';

/** One try to open an account; the password is nobody's business here. */
export interface Attempt {
  /** As it was presented, whether there is such a user or not. */
  readonly username: string;
  /** Whom it came from: what `clientAddress` said, of an IPv6 address the network (its first 64 bits). */
  readonly address: string;
}

/**
 * Counts failed attempts, and says who has to wait. {@link failureLimiter} makes one of limiters of
 * the package `rate-limiter-flexible`.
 *
 * Both methods tell the seconds until the next attempt is let through; 0 for now. What they throw, any
 * other answer, and none within two seconds is an outage (503) for that call: nothing is opened, and
 * the next call asks anew.
 */
export interface FailureLimiter {
  /** Is asked before a password is checked, and once more when it was right. Counts nothing. */
  waitSeconds(attempt: Attempt): number | Promise<number>;
  /** Counts a failure. */
  failed(attempt: Attempt): number | Promise<number>;
}

/** What {@link failureLimiter} needs of a limiter of `rate-limiter-flexible`. */
export interface PointsLimiter {
  /** How many failures are answered before the next one is limited. */
  readonly points: number;
  get(
    key: string,
  ): Promise<{ readonly consumedPoints: number; readonly msBeforeNext: number } | null>;
  /** Rejects with what is no error where there are no points left. */
  consume(key: string): Promise<unknown>;
}

/** What failures are counted by; at least one. */
export interface FailureLimiterOptions {
  /** By a user name as tried from one address: nobody is locked out by somebody else. */
  readonly userAndAddress?: PointsLimiter | undefined;
  /** By address, whatever the user name: against one password tried on many users. */
  readonly address?: PointsLimiter | undefined;
  /**
   * By user name, from wherever: against many addresses. Whoever knows a name can lock it out for
   * everybody with this, so give it many points.
   */
  readonly user?: PointsLimiter | undefined;
}

const LIMITER_DEADLINE_MS = 2000;
const ADDRESS = Symbol.for('tokenwright.remoteAddress');

/**
 * Limits failed attempts by limiters of the package `rate-limiter-flexible`, in memory or in a store
 * that all processes share. They get keys that are hashes, and never a password.
 *
 * After as many failures as a limiter has points, the next one is limited, for as long as the limiter
 * says. A right password does not forgive the failures before it: else whoever guesses between the
 * calls of the user would never be limited. A store that is away is an outage (503), unless the
 * limiter has an `insuranceLimiter`.
 *
 * @throws {TokenError} `invalid_options` for no limiter, or what is none
 * @example
 * const handler = tokenHandler({
 *   tokens,
 *   authenticate,
 *   clientAddress: remoteAddress,
 *   limiter: failureLimiter({
 *     userAndAddress: new RateLimiterMemory({ points: 10, duration: 900 }),
 *     address: new RateLimiterMemory({ points: 100, duration: 900 }),
 *   }),
 * });
 */
export function failureLimiter(options: FailureLimiterOptions): FailureLimiter {
  const limiters = readLimiters(options);
  const askAll = async (
    attempt: Attempt,
    ask: (limiter: PointsLimiter, key: string) => Promise<number>,
  ) => {
    const waits = limiters.map(([kind, limiter]) => ask(limiter, keyOf(kind, attempt)));
    return Math.max(...(await Promise.all(waits)));
  };
  return {
    waitSeconds: (attempt) => askAll(attempt, waitOf),
    failed: (attempt) => askAll(attempt, consume),
  };
}

/**
 * The address at the other end of the connection, of a request that came through `toNodeListener`:
 * what `clientAddress` is where no proxy stands before the service. Behind one it is the proxy's, for
 * all callers the same; there, take the address from the header that your proxy sets.
 *
 * @throws {TokenError} `invalid_request` for a request from elsewhere, and one whose client has gone
 * @example
 * const handler = tokenHandler({ tokens, authenticate, limiter, clientAddress: remoteAddress });
 */
export function remoteAddress(request: Request): string {
  const address: unknown = Reflect.get(request, ADDRESS);
  if (typeof address === 'string') return address;
  throw new TokenError('invalid_request', 'the address of the client is not known');
}

/** Notes where a request came from. A symbol for all copies of this package, since two may be loaded. */
export function withAddress(request: Request, address: string | undefined): Request {
  return Object.defineProperty(request, ADDRESS, { value: address });
}

/** Lets attempts through, or not. Rejects with a `Refusal` for the caller, else with an outage. */
export class Attempts {
  readonly #limiter: FailureLimiter;
  readonly #clientAddress: (request: Request) => string;
  /** A failure that the limiter would not take: as long as it does not, nobody else gets to guess. */
  #uncounted: Attempt | undefined;

  constructor(limiter: FailureLimiter, clientAddress: (request: Request) => string) {
    this.#limiter = limiter;
    this.#clientAddress = clientAddress;
  }

  /** What `check` says, which is `null` for wrong credentials. */
  async run(username: string, incoming: Incoming, check: () => Promise<unknown>): Promise<unknown> {
    const attempt = { username, address: networkOf(this.#addressOf(incoming)) };
    if (this.#uncounted !== undefined) await this.#count(this.#uncounted);
    letPass(await this.#ask('waitSeconds', attempt));
    const answer = await check();
    // Many may have been let through at once. Once the limit is reached none of them learns whether
    // its guess was right.
    letPass(await (answer === null ? this.#count(attempt) : this.#ask('waitSeconds', attempt)));
    return answer;
  }

  /** A request is made only for those who look at it. */
  #addressOf(incoming: Incoming): string {
    const isKnown = this.#clientAddress === remoteAddress && incoming.address !== undefined;
    return isKnown ? incoming.address : this.#clientAddress(incoming.request());
  }

  async #count(attempt: Attempt): Promise<number> {
    this.#uncounted = attempt;
    const seconds = await this.#ask('failed', attempt);
    this.#uncounted = undefined;
    return seconds;
  }

  async #ask(question: 'waitSeconds' | 'failed', attempt: Attempt): Promise<number> {
    const answer = (async () => this.#limiter[question](attempt))();
    const seconds: unknown = await withDeadline(answer, LIMITER_DEADLINE_MS);
    if (typeof seconds === 'number' && seconds >= 0) return seconds;
    throw new TypeError(`${question} must tell a number of seconds from 0`);
  }
}

/** Whether a value has what the handler asks for. */
export function isFailureLimiter(value: unknown): value is FailureLimiter {
  if (typeof value !== 'object' || value === null) return false;
  const { waitSeconds, failed } = value as Partial<FailureLimiter>;
  return typeof waitSeconds === 'function' && typeof failed === 'function';
}

/** Refused at once, before anything dear is done. */
export function overloaded(): Refusal {
  return new Refusal('overloaded', 'too many calls are being worked on; try again later');
}

function letPass(seconds: number): void {
  if (seconds === 0) return;
  const whole = Math.min(Math.ceil(seconds), Number.MAX_SAFE_INTEGER);
  throw new Refusal(
    'rate_limited',
    'there were too many wrong credentials; wait for as long as Retry-After says',
    { headers: { 'retry-after': String(whole) } },
  );
}

const KINDS = ['userAndAddress', 'address', 'user'] as const;

type Kind = (typeof KINDS)[number];

function readLimiters(options: unknown): readonly (readonly [Kind, PointsLimiter])[] {
  const given = Object.entries(options ?? {}).filter(([, limiter]) => limiter !== undefined);
  const unknown = given.find(([kind, limiter]) => !isKind(kind) || !isPointsLimiter(limiter));
  if (given.length > 0 && unknown === undefined) return given as [Kind, PointsLimiter][];
  throw new TokenError(
    'invalid_options',
    `give one or more of ${KINDS.join(', ')}: each a limiter of rate-limiter-flexible`,
  );
}

function isKind(kind: string): kind is Kind {
  return (KINDS as readonly string[]).includes(kind);
}

function isPointsLimiter(value: unknown): value is PointsLimiter {
  if (typeof value !== 'object' || value === null) return false;
  const { points, get, consume } = value as Partial<PointsLimiter>;
  return typeof points === 'number' && typeof get === 'function' && typeof consume === 'function';
}

/** Of one length, whatever is presented as a user name, which may be a password by mistake. */
function keyOf(kind: Kind, { username, address }: Attempt): string {
  const parts = {
    userAndAddress: [username, address],
    address: [address],
    user: [username],
  } satisfies Record<Kind, string[]>;
  const text = JSON.stringify([kind, ...parts[kind]]);
  return crypto.createHash('sha256').update(text).digest('base64url');
}

async function waitOf(limiter: PointsLimiter, key: string): Promise<number> {
  const found = await limiter.get(key);
  return found !== null && found.consumedPoints > limiter.points ? secondsOf(found) : 0;
}

async function consume(limiter: PointsLimiter, key: string): Promise<number> {
  try {
    await limiter.consume(key);
    return 0;
  } catch (rejection) {
    if (rejection instanceof Error) throw rejection;
    return secondsOf(rejection as { readonly msBeforeNext: number });
  }
}

/** At least one: where a limiter never forgets, it has no time to tell. */
function secondsOf({ msBeforeNext }: { readonly msBeforeNext: number }): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1000));
}

/** Of an IPv6 address the first 64 bits: whoever has one address there has them all. */
function networkOf(address: string): string {
  if (typeof address !== 'string') throw new TypeError('clientAddress must tell a text');
  const [host = ''] = address.toLowerCase().split('%', 1);
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/.exec(host)?.[1];
  if (mapped !== undefined) return mapped;
  if (!host.includes(':') || !/^[0-9a-f:.]*$/.test(host)) return address;
  const [head = [], tail = []] = host
    .split('::', 2)
    .map((half) => half.split(':').filter((group) => group !== ''));
  const zeros = host.includes('::')
    ? Array(Math.max(0, 8 - head.length - tail.length)).fill(0)
    : [];
  const groups = [...head, ...zeros, ...tail].slice(0, 4);
  return groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':');
}
