import { TokenError } from '../../errors.ts';
import { readOption } from '../../inputs/schemas.ts';
import { hasMethods } from '../../ports/has-methods.ts';
import { sha256 } from '../../values/hmac.ts';
import { addressOf } from '../request.ts';
import { KnownNetworks } from './known-networks.ts';

/** One attempt to sign in. The password is not part of it. */
export interface Attempt {
  /** The user name of the credentials, whether there is such a user or not. */
  readonly username: string;
  /**
   * The address by `clientAddress`: an IPv4 address, or the network of an IPv6 address (its first 64
   * bits). Empty if the host takes all callers for one.
   */
  readonly address: string;
}

/**
 * Counts failed attempts, and makes callers wait. {@link failureLimiter} builds one from limiters of
 * the package `rate-limiter-flexible`.
 *
 * An attempt is counted before its password is checked, and stays counted unless the password was
 * right. That includes attempts whose check failed or took too long, and those refused under load.
 *
 * `waitSeconds` and `failed` return the seconds until the next attempt may pass; 0 means that this one
 * may. If they throw, return anything else, or do not answer within two seconds, the call is answered
 * with 503, no password is checked, and the next call asks again.
 */
export interface FailureLimiter {
  /** Called first. Counts nothing. */
  waitSeconds(attempt: Attempt): number | Promise<number>;
  /** Counts an attempt as a failure. If this returns 0, the password is checked then. */
  failed(attempt: Attempt): number | Promise<number>;
  /**
   * Takes back what `failed` counted for one attempt, since its password was right. Forgives no other
   * failure. If this fails, the caller is signed in anyway.
   */
  succeeded(attempt: Attempt): unknown;
}

/** The part of a limiter of `rate-limiter-flexible` that {@link failureLimiter} uses. */
export interface PointsLimiter {
  /** The number of failures before the next attempt is limited. */
  readonly points: number;
  get(
    key: string,
  ): Promise<{ readonly consumedPoints: number; readonly msBeforeNext: number } | null>;
  /** If no points are left, rejects with an object that is not an `Error`. */
  consume(key: string): Promise<unknown>;
  /** Gives points back. */
  reward(key: string, points: number): Promise<unknown>;
}

/** The limiters, by what each of them counts failures by; at least one. */
export interface FailureLimiterOptions {
  /** By user name and address together: callers cannot lock out each other. */
  readonly userAndAddress?: PointsLimiter | undefined;
  /** By address, for all user names: against one password tried on many users. */
  readonly address?: PointsLimiter | undefined;
  /**
   * By user name, for all addresses: against guesses from many addresses. Anybody who knows a user
   * name can use up its points, so give the limiter many. That spares the addresses from which the user
   * has signed in, as far as this process remembers: the last 8 of each of the last 10 000 users.
   */
  readonly user?: PointsLimiter | undefined;
}

/**
 * Limits failed attempts with limiters of the package `rate-limiter-flexible`, in memory or in a
 * store that all processes share. Their keys are hashes, and never contain a password.
 *
 * After as many failures as a limiter has points, the next attempt is limited, for the time that the
 * limiter returns. A right password gives back its own point only: if it forgave earlier failures, an
 * attacker could guess between the calls of the user without end. If the store of a limiter is down,
 * the call is answered with 503, unless the limiter has an `insuranceLimiter`.
 *
 * An attempt holds its point while its password is checked. So give a limiter more points than
 * different users sign in through it at the same time. Concurrent calls with the same user name,
 * password and address share one point.
 *
 * @throws {TokenError} `invalid_options` without a limiter, or for an object that is not one
 * @example
 * const handler = tokenHandler({
 *   tokens,
 *   authenticate,
 *   clientAddress: remoteAddress,
 *   limiter: failureLimiter({
 *     userAndAddress: new RateLimiterMemory({ points: 10, duration: 900 }),
 *     address: new RateLimiterMemory({ points: 100, duration: 900 }),
 *     user: new RateLimiterMemory({ points: 100, duration: 900 }),
 *   }),
 * });
 */
export function failureLimiter(options: FailureLimiterOptions): FailureLimiter {
  const limiters = readOption('a limiter', () => readLimiters(options));
  const byUser = limiters.some(([kind]) => kind === 'user');
  const networks = new KnownNetworks();
  // The handler asks three times about an attempt, and hashing its keys is most of the cost.
  const known = new WeakMap<Attempt, Keys>();
  const keysOf = (attempt: Attempt): Keys => {
    const keys = known.get(attempt);
    if (keys !== undefined) return keys;
    const user = byUser ? keyOf('user', attempt) : '';
    // Asked once: an attempt gets back the points that it took.
    const isKnown = networks.has(user, attempt.address);
    const keyed = limiters
      .filter(([kind]) => kind !== 'user' || !isKnown)
      .map(([kind, limiter]) => ({ limiter, key: kind === 'user' ? user : keyOf(kind, attempt) }));
    known.set(attempt, { user, keyed });
    return { user, keyed };
  };
  const askAll = <Said>(attempt: Attempt, ask: (keyed: Keyed) => Promise<Said>) =>
    Promise.all(keysOf(attempt).keyed.map(ask));
  return {
    waitSeconds: async (attempt) => Math.max(0, ...(await askAll(attempt, waitOf))),
    failed: async (attempt) => Math.max(0, ...(await askAll(attempt, consume))),
    succeeded: (attempt) => {
      const rewards = askAll(attempt, ({ limiter, key }) => limiter.reward(key, 1));
      if (byUser) networks.add(keysOf(attempt).user, attempt.address);
      return rewards;
    },
  };
}

/**
 * The address at the other end of the connection, for a request that came through `toNodeListener`.
 * Use it as `clientAddress` if there is no proxy before the service. Behind a proxy it is the address
 * of the proxy, the same for all callers: use {@link forwardedAddress} instead.
 *
 * @throws {TokenError} `invalid_request` for any other request, and if the client has gone
 * @example
 * const handler = tokenHandler({ tokens, authenticate, limiter, clientAddress: remoteAddress });
 */
export function remoteAddress(request: Request): string {
  const address = addressOf(request);
  if (address !== undefined) return address;
  throw new TokenError('invalid_request', 'the address of the client is not known');
}

/** Whether a value has the methods of a limiter. */
export function isFailureLimiter(value: unknown): value is FailureLimiter {
  return hasMethods<FailureLimiter>(value, 'waitSeconds', 'failed', 'succeeded');
}

const LIMITER_KINDS = ['userAndAddress', 'address', 'user'] as const;

type LimiterKind = (typeof LIMITER_KINDS)[number];

function readLimiters(options: unknown): readonly (readonly [LimiterKind, PointsLimiter])[] {
  const given = Object.entries(options ?? {}).filter(([, limiter]) => limiter !== undefined);
  const unknown = given.find(([kind, limiter]) => !isKind(kind) || !isPointsLimiter(limiter));
  if (given.length > 0 && unknown === undefined) return given as [LimiterKind, PointsLimiter][];
  throw new TokenError(
    'invalid_options',
    `give one or more of ${LIMITER_KINDS.join(', ')}: each a limiter of rate-limiter-flexible`,
  );
}

function isKind(kind: string): kind is LimiterKind {
  return (LIMITER_KINDS as readonly string[]).includes(kind);
}

function isPointsLimiter(value: unknown): value is PointsLimiter {
  return (
    hasMethods<PointsLimiter>(value, 'get', 'consume', 'reward') && typeof value.points === 'number'
  );
}

/** A hash, since the user name may be a password by mistake, and may be long. */
function keyOf(kind: LimiterKind, { username, address }: Attempt): string {
  const parts = {
    userAndAddress: [username, address],
    address: [address],
    user: [username],
  } satisfies Record<LimiterKind, string[]>;
  const text = JSON.stringify([kind, ...parts[kind]]);
  return sha256(text, 'base64url');
}

/** The keys of an attempt. */
interface Keys {
  /** Under which the networks of the user are remembered. */
  readonly user: string;
  readonly keyed: readonly Keyed[];
}

/** A limiter, and the key under which it counts an attempt. */
interface Keyed {
  readonly limiter: PointsLimiter;
  readonly key: string;
}

async function waitOf({ limiter, key }: Keyed): Promise<number> {
  const found = await limiter.get(key);
  return found !== null && found.consumedPoints > limiter.points ? secondsOf(found) : 0;
}

async function consume({ limiter, key }: Keyed): Promise<number> {
  try {
    await limiter.consume(key);
    return 0;
  } catch (rejection) {
    if (rejection instanceof Error) throw rejection;
    return secondsOf(rejection as { readonly msBeforeNext: number });
  }
}

/** At least one: a limiter that never forgets returns no time. */
function secondsOf({ msBeforeNext }: { readonly msBeforeNext: number }): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1000));
}
