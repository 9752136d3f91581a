import { HttpError } from './errors.ts';
import type { CookieSession, CookieSessions, HttpRequest } from './request.ts';
import type { Verb } from './resources.ts';
import { type HttpResponse, succeed } from './responses.ts';
import { readBasic } from './sign-in/basic-auth.ts';

/** The calls that begin, renew and end a session of the service. */
export function sessionVerbs(
  sessions: CookieSessions | undefined,
): Readonly<Record<'beginSession' | 'renewSession' | 'endSession', Verb>> {
  const kept = () => {
    if (sessions === undefined) throw new TypeError('there are no sessions');
    return sessions;
  };
  return {
    async beginSession({ body, request }) {
      if (body !== undefined) {
        throw new HttpError('invalid_request', 'this call takes no body: send Basic credentials');
      }
      const credentials = readBasic(request.header('authorization'));
      if (credentials === undefined) throw signedOut('a session cannot begin another one');
      return answerFor(kept().begin(credentials.username, request));
    },
    async renewSession({ request }) {
      const session = await kept().renew(request);
      if (session === null) throw withoutSession(kept(), request);
      return answerFor(session);
    },
    async endSession({ request }) {
      if (!(await kept().end(request))) throw withoutSession(kept(), request);
      return succeed({ data: null }, cookieHeader(kept().cleared(request)));
    },
  };
}

/** The same error, and the browser forgets the cookie, if nobody is signed in. */
export function withoutCookie(error: unknown, cleared: string | undefined): unknown {
  if (!(error instanceof HttpError) || error.code !== 'unauthenticated') return error;
  const { code, message, headers } = error;
  return new HttpError(code, message, { headers: { ...headers, ...cookieHeader(cleared) } });
}

function withoutSession(sessions: CookieSessions, request: HttpRequest): unknown {
  return withoutCookie(signedOut('nobody is signed in'), sessions.cleared(request));
}

function signedOut(message: string): HttpError {
  const headers = { 'www-authenticate': 'Session realm="tokenwright"' };
  return new HttpError('unauthenticated', message, { headers });
}

function answerFor({ username, expiresAt, cookie }: CookieSession): HttpResponse {
  const data = { username, expire: Math.floor(expiresAt.getTime() / 1000) };
  return succeed({ data }, cookieHeader(cookie));
}

function cookieHeader(cookie: string | undefined): Record<string, string> {
  return cookie === undefined ? {} : { 'set-cookie': cookie };
}
