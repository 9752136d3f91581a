import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { FixedAccount, TokenHandlerOptions } from '../../http/index.ts';
import {
  type CookieSession,
  type CookieSessions,
  fromFetch,
  type HttpRequest,
  ownForms,
} from '../../http/request.ts';
import { readSessionCookie, sessionCookie } from '../../http/sign-in/session-cookie.ts';
import { type Clock, type KeyOptions, type LeaseStore, systemClock } from '../../index.ts';
import { steadyClock } from '../../time/clock.ts';
import { KeyRing } from '../../values/keys.ts';
import type { Audit, SessionEvent } from './logs/audit.ts';

/** Milliseconds for which a session lasts in all. @bound */
export const SESSION_MS = 28_800_000;

/** Milliseconds for which the cookie of a session works before it has to be renewed. @bound */
export const COOKIE_MS = 900_000;

/** Sessions that have ended and that a process refuses before their cookies are due for renewal. @bound */
export const MAX_ENDED_SESSIONS = 10_000;

/** Milliseconds by which clocks of processes may differ. */
const CLOCK_SKEW_MS = 60_000;

/** More than a session can be renewed. Signing out takes all that are left. */
const RENEWALS = 1_000_000;

const ID_BYTES = 16;

/** An account that may sign in. */
export interface ServedAccount extends FixedAccount {
  /**
   * Changes with its password, and with nothing else.
   *
   * @default the hash of the password
   */
  readonly mark?: string | undefined;
}

/** What a cookie holds, beside its tag. */
interface Session {
  readonly id: string;
  readonly username: string;
  /** When it ends, in milliseconds since 1970. */
  readonly end: number;
  /** When this value of the cookie was made. */
  readonly renewed: number;
}

/** A session that is due opens nothing but its own renewal. */
type State = 'fresh' | 'due' | 'refused';

/** What the cookie of a call says. */
interface Reading {
  readonly state: State;
  /** Absent if the cookie is not one of this service. */
  readonly session?: Session;
  readonly account?: string;
}

export interface SessionsOptions {
  /** Counts renewals, for all processes of the service. */
  readonly leases: Pick<LeaseStore, 'take'>;
  readonly audit?: Pick<Audit, 'recordSession' | 'nameSession'> | undefined;
  readonly clientAddress?: TokenHandlerOptions['clientAddress'];
  /** @default the time of the machine */
  readonly clock?: Clock | undefined;
}

/**
 * The sessions of people who sign in to the console.
 *
 * A session is a cookie: its id, its user, its end, the time of its last renewal, and a tag over these and
 * the password. So nothing is stored for it, it ends with its password, its account and the keys, and it
 * works in all processes with the same keys and accounts.
 *
 * A value of the cookie works for 15 minutes without asking anybody. To renew it, the process takes one
 * use of a count that all processes share, in the lease store. Signing out takes all that are left. So no
 * value is made after that, by no process and for no copy, and the last one works for 15 minutes at most.
 * This process refuses it immediately.
 */
export class Sessions {
  readonly #leases: SessionsOptions['leases'];
  readonly #audit: SessionsOptions['audit'];
  readonly #clientAddress: SessionsOptions['clientAddress'];
  readonly #now: () => number;
  /** When the sessions that have ended were ended, by their ids. The earliest is first. */
  readonly #ended = new Map<string, number>();
  /** Values that were made up to then have to be renewed: some session that ended is no longer known. */
  #dueUntil = Number.NEGATIVE_INFINITY;

  constructor({ leases, audit, clientAddress, clock = systemClock }: SessionsOptions) {
    this.#leases = leases;
    this.#audit = audit;
    this.#clientAddress = clientAddress;
    this.#now = steadyClock(clock);
  }

  /** The `session` of a token handler, for these keys and accounts. */
  of(
    keys: readonly KeyOptions[],
    accounts: readonly ServedAccount[],
  ): NonNullable<TokenHandlerOptions['session']> {
    const cookies = new SessionCookies(this, new KeyRing(keys), accounts);
    const session = (request: Request) => cookies.accountIn(request, ['fresh']);
    ownForms.set(session, { cookies });
    return session;
  }

  begin(username: string): Session {
    const renewed = this.#now();
    const id = randomBytes(ID_BYTES).toString('base64url');
    return { id, username, end: renewed + SESSION_MS, renewed };
  }

  stateOf({ id, end, renewed }: Session): State {
    const now = this.#now();
    // A clock that was fast made a session that lasts too long.
    if (now >= end || end > now + SESSION_MS + CLOCK_SKEW_MS) return 'refused';
    if (this.#ended.has(id)) return 'refused';
    const isOfNow = renewed <= now + CLOCK_SKEW_MS && now < renewed + COOKIE_MS;
    return isOfNow && renewed > this.#dueUntil ? 'fresh' : 'due';
  }

  /**
   * Resolves to the session with the time of its renewal; `undefined` if it has ended in any process.
   *
   * @throws {TokenError} `store_unavailable`
   */
  async renew(session: Session): Promise<Session | undefined> {
    const renewed = this.#now();
    if ((await this.#take(session, 1)) > 0) return { ...session, renewed };
    this.#forget(session);
    return undefined;
  }

  /** @throws {TokenError} `store_unavailable`; then it goes on */
  async end(session: Session): Promise<void> {
    await this.#take(session, RENEWALS);
    this.#forget(session);
  }

  /** Notes that this call is one of the session. */
  name(session: Session): void {
    this.#audit?.nameSession(handleOf(session));
  }

  record(event: SessionEvent, request: HttpRequest, session: Session | undefined): void {
    if (this.#audit === undefined) return;
    this.#audit.recordSession(event, {
      user: session?.username,
      session: session && handleOf(session),
      address: this.#addressOf(request),
    });
  }

  async #take({ id, end }: Session, want: number): Promise<number> {
    const until = new Date(end + CLOCK_SKEW_MS);
    const count = { key: `session:${id}`, window: 0, limit: RENEWALS, until };
    const [granted = 0] = await this.#leases.take([{ ...count, want }]);
    return granted;
  }

  /** Refuses all values of a session, until they are due: then the lease store refuses them. */
  #forget({ id }: Session): void {
    const now = this.#now();
    this.#ended.delete(id);
    this.#ended.set(id, now);
    for (const [oldest, at] of this.#ended) {
      const isDue = at + COOKIE_MS + 2 * CLOCK_SKEW_MS < now;
      if (!isDue && this.#ended.size <= MAX_ENDED_SESSIONS) return;
      this.#ended.delete(oldest);
      if (!isDue) this.#dueUntil = at;
    }
  }

  #addressOf(request: HttpRequest): string | undefined {
    try {
      return this.#clientAddress?.(request.toFetch());
    } catch {
      return undefined;
    }
  }
}

/** Reads and writes the cookies of sessions, for some keys and accounts. */
class SessionCookies implements CookieSessions {
  readonly #sessions: Sessions;
  readonly #ring: KeyRing;
  readonly #accounts: ReadonlyMap<string, ServedAccount>;

  constructor(sessions: Sessions, ring: KeyRing, accounts: readonly ServedAccount[]) {
    this.#sessions = sessions;
    this.#ring = ring;
    this.#accounts = new Map(accounts.map((account) => [account.username, account]));
  }

  accountOf(request: Request): string | null {
    return this.accountIn(request, ['fresh', 'due']);
  }

  /** The account of a session in one of these states. */
  accountIn(request: Request, states: readonly State[]): string | null {
    const call = fromFetch(request);
    const reading = this.#read(call);
    if (reading === undefined) return null;
    const { state, session, account } = reading;
    if (state === 'refused') this.#sessions.record('session_refused', call, session);
    if (session === undefined || account === undefined || !states.includes(state)) return null;
    this.#sessions.name(session);
    return account;
  }

  begin(username: string, request: HttpRequest): CookieSession {
    const session = this.#sessions.begin(username);
    this.#sessions.record('session_begun', request, session);
    return this.#write(session, request);
  }

  async renew(request: HttpRequest): Promise<CookieSession | null> {
    const session = this.#openIn(request);
    if (session === undefined) return null;
    const { username, end } = session;
    if (this.#sessions.stateOf(session) === 'fresh') return { username, expiresAt: new Date(end) };
    const renewed = await this.#sessions.renew(session);
    if (renewed !== undefined) return this.#write(renewed, request);
    this.#sessions.record('session_refused', request, session);
    return null;
  }

  async end(request: HttpRequest): Promise<boolean> {
    const session = this.#openIn(request);
    if (session === undefined) return false;
    await this.#sessions.end(session);
    this.#sessions.record('session_ended', request, session);
    return true;
  }

  cleared(request: HttpRequest): string | undefined {
    return this.#read(request)?.state === 'refused' ? sessionCookie(request, '', 0) : undefined;
  }

  /** The session of a call, if it has not ended. */
  #openIn(request: HttpRequest): Session | undefined {
    const reading = this.#read(request);
    return reading?.state === 'refused' ? undefined : reading?.session;
  }

  /** `undefined` without a cookie. */
  #read(request: HttpRequest): Reading | undefined {
    const value = readSessionCookie(request);
    if (value === undefined) return undefined;
    const [, text = '', kid = '', id = '', end, renewed, user = '', tag = ''] =
      FORM.exec(value) ?? [];
    const username = Buffer.from(user, 'base64url').toString();
    const entry = this.#accounts.get(username);
    const key = this.#ring.get(kid);
    // A verifier key never signs a session.
    if (entry === undefined || !key?.canMint) return { state: 'refused' };
    if (!isEqual(key.signSession(signedBy(text, entry)), tag)) return { state: 'refused' };
    const session = { id, username, end: Number(end), renewed: Number(renewed) };
    return { state: this.#sessions.stateOf(session), session, account: accountOf(entry) };
  }

  #write(session: Session, request: HttpRequest): CookieSession {
    const { id, username, end, renewed } = session;
    const { active } = this.#ring;
    const user = Buffer.from(username).toString('base64url');
    const text = `1.${active.kid}.${id}.${end}.${renewed}.${user}`;
    const entry = this.#accounts.get(username);
    if (entry === undefined) throw new TypeError('only a known user can sign in');
    const value = `${text}.${active.signSession(signedBy(text, entry))}`;
    const seconds = Math.max(0, Math.floor((end - renewed) / 1000));
    return { username, expiresAt: new Date(end), cookie: sessionCookie(request, value, seconds) };
  }
}

/** What the tag is over: the rest of the cookie, the account, and its password. */
function signedBy(text: string, account: ServedAccount): string {
  return JSON.stringify([text, accountOf(account), account.mark ?? account.passwordHash]);
}

function accountOf({ username, account = username }: ServedAccount): string {
  return account;
}

const FORM = /^(1\.(\w{2})\.([\w-]{22})\.(\d{1,15})\.(\d{1,15})\.([\w-]{1,340}))\.([\w-]{43})$/;

/** Names a session in logs. It opens nothing, and the cookie does not contain it. */
function handleOf({ id }: Session): string {
  return createHash('sha256').update(id).digest('base64url').slice(0, 12);
}

function isEqual(expected: string, given = ''): boolean {
  return (
    given.length === expected.length && timingSafeEqual(Buffer.from(expected), Buffer.from(given))
  );
}
