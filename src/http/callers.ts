import { sha256 } from '../values/hmac.ts';
import { HttpError } from './errors.ts';
import type { HttpRequest } from './request.ts';
import { type Authenticate, readBasic } from './sign-in/basic-auth.ts';
import {
  type Caller,
  type Identity,
  readingsOf,
  type SessionAccount,
  type SignIns,
} from './sign-in/sign-in.ts';

/** How callers of an address may sign in: by at least one of these. */
export interface SignInWays {
  readonly authenticate?: Authenticate | undefined;
  readonly session?: SessionAccount | undefined;
  /** Whether callers are OAuth clients, which may encode their credentials, and send forms. */
  readonly isOAuth?: boolean;
}

/** A caller who has signed in. */
export interface SignedIn extends Identity {
  readonly isBySession: boolean;
}

/**
 * Finds out who calls. If there are credentials, only they count: wrong ones never fall back to a session.
 *
 * @throws {HttpError} `unauthenticated`, and the errors of {@link SignIns}
 */
export async function signIn(
  signIns: SignIns,
  caller: Caller,
  { authenticate, session, isOAuth = false }: SignInWays,
): Promise<SignedIn> {
  const { request } = caller;
  const header = request.header('authorization');
  if (session !== undefined && (authenticate === undefined || header === undefined)) {
    const identity = await signIns.checkSession(session, caller);
    const challenge = challengeFor(request, authenticate);
    if (identity === null) throw unauthenticated('nobody is signed in', challenge);
    const expected = request.header(ACCOUNT_HEADER);
    if (expected !== undefined && expected !== markOf(identity.account)) {
      throw unauthenticated('another account is signed in now', challenge);
    }
    return { ...identity, isBySession: true };
  }
  const challenge = challengeFor(request, authenticate);
  const credentials = readBasic(header);
  if (authenticate === undefined || credentials === undefined) {
    throw unauthenticated(faultOf(header), challenge);
  }
  const readings = isOAuth ? readingsOf(credentials) : ([credentials] as const);
  const identity = await signIns.check(authenticate, readings, caller);
  if (identity !== null) return { ...identity, isBySession: false };
  throw unauthenticated('the user name or the password is wrong', challenge);
}

/**
 * The header in which answers to a session name the account, by a hash. A page that sends it back with its
 * next calls is refused once somebody else has signed in, in another tab. So a change that was begun for
 * one account is never made for another.
 */
const ACCOUNT_HEADER = 'x-tokenwright-account';

export function accountHeader({ account }: SignedIn): Record<string, string> {
  return { [ACCOUNT_HEADER]: markOf(account) };
}

function markOf(account: string): string {
  return sha256(account, 'base64url').slice(0, MARK_LENGTH);
}

const MARK_LENGTH = 22;

/**
 * Refuses calls that change something and that a page of another site makes through the browser of somebody who is signed in.
 * Browsers add cookies, and Basic credentials that they remember, to those calls too. If the browser says
 * where the call comes from, that decides. Browsers say so only to addresses with HTTPS, or on the same
 * machine, and old ones never do. Without it, a call must not have the `Origin` of another host, nor the
 * media type of a form, with which such a page needs no permission by CORS. For a session, the call also
 * needs a header that such a page cannot set, unless the host allows it by CORS.
 *
 * @throws {HttpError} `cross_site`
 */
export function checkSite(signIns: SignIns, request: HttpRequest, { isBySession }: SignedIn): void {
  if (request.header('sec-fetch-site') === undefined) checkOrigin(signIns, request);
  else checkFetchSite(request);
  if (isBySession && !isFromScript(request)) {
    throw new HttpError(
      'cross_site',
      'with a session, a call that changes something must have the header x-tokenwright, such as "x-tokenwright: console"',
    );
  }
}

/**
 * Refuses calls that a browser marks as those of another site. That is all for resource servers: they send
 * forms, and a page of another site would need the value of a token, and could not read the answer.
 *
 * @throws {HttpError} `cross_site`
 */
export function checkFetchSite(request: HttpRequest): void {
  const site = request.header('sec-fetch-site') ?? 'none';
  if (site !== 'same-origin' && site !== 'none') throw crossSite();
}

function checkOrigin(signIns: SignIns, request: HttpRequest): void {
  const origin = request.header('origin');
  if (origin !== undefined && !isOriginOf(hostOf(signIns, request), origin)) throw crossSite();
  const types = (request.header('content-type') ?? '').toLowerCase().split(',');
  if (types.some((type) => FORM_TYPES.includes(type.replace(/;.*/s, '').trim()))) {
    throw new HttpError(
      'cross_site',
      'a page of another site could send the media type of a form; send the body as "Content-Type: application/json", and no Content-Type without a body',
    );
  }
}

/** The media types that forms of other sites can send. */
const FORM_TYPES = ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain'];

/** The host that the client called, as a header says it. */
function hostOf(signIns: SignIns, request: HttpRequest): string | undefined {
  const forwarded = signIns.isProxied(request) ? request.header('x-forwarded-host') : undefined;
  // Proxies append, so the first host is that of the client. A page of another site cannot set this header.
  return forwarded?.replace(/,.*/s, '').trim() ?? request.header('host');
}

/** Whether an origin has this host and port. The host says no scheme, so it takes that of the origin. */
function isOriginOf(host: string | undefined, origin: string): boolean {
  const [, scheme, authority] = /^(https?:\/\/)(.+)$/i.exec(origin) ?? [];
  if (scheme === undefined || authority === undefined || host === undefined) return false;
  const expected = authorityOf(scheme, host);
  return expected !== undefined && authorityOf(scheme, authority) === expected;
}

/** A host and port in one spelling: without the default port, and without the dot of an absolute name. */
function authorityOf(scheme: string, authority: string): string | undefined {
  // The parser would drop or move anything else.
  if (!/^(?:[^\s/\\?#@[\]:%,]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(authority)) return undefined;
  const text = `${scheme}${authority}`;
  return URL.canParse(text) ? new URL(text).host.replace(/\.(?=:\d+$|$)/, '') : undefined;
}

function crossSite(): HttpError {
  return new HttpError('cross_site', 'a page of another site may not make this call');
}

/** Whether a program sets the headers of the call. A form or a link cannot. */
function isFromScript(request: HttpRequest): boolean {
  return Boolean(request.header('x-tokenwright'));
}

/** Not `Basic` for scripts: the browser would show its own dialog, in front of a page that asks by itself. */
function challengeFor(request: HttpRequest, authenticate: Authenticate | undefined): string {
  return authenticate === undefined || isFromScript(request)
    ? 'Session realm="tokenwright"'
    : 'Basic realm="tokenwright", charset="UTF-8"';
}

/** What is wrong with credentials that cannot be checked. Says nothing about accounts. */
function faultOf(header: string | undefined): string {
  if (header === undefined) return 'Basic credentials are required, and none were sent';
  return /^bearer(?: |$)/i.test(header)
    ? 'a Bearer token does not manage tokens; send Basic credentials'
    : 'Authorization must be "Basic" and the Base64 of user:password in UTF-8';
}

function unauthenticated(message: string, challenge: string): HttpError {
  return new HttpError('unauthenticated', message, { headers: { 'www-authenticate': challenge } });
}
