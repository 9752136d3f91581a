import type { HttpRequest } from '../request.ts';

const NAME = 'tokenwright-session';
/** Browsers keep a cookie of this name only if it came over TLS. */
const SECURE_NAME = `__Secure-${NAME}`;

/** Longer ones are not ours. */
const MAX_VALUE_LENGTH = 1024;

type Headers = Pick<HttpRequest, 'header'>;

/**
 * The value of the session cookie of a call: `undefined` without one; empty if it cannot be ours, such as
 * one that came twice.
 */
export function readSessionCookie(request: Headers): string | undefined {
  const values = valuesOf(request, nameFor(request));
  if (values.length === 0) return undefined;
  const [value = ''] = values;
  return values.length === 1 && value.length <= MAX_VALUE_LENGTH ? value : '';
}

/**
 * The `Set-Cookie` header for a session. It names no path, so that the cookie is for the folder of the call
 * as the browser sees it: the path of the service, also if a proxy has added to it.
 */
export function sessionCookie(request: Headers, value: string, seconds: number): string {
  const name = nameFor(request);
  const secure = name === SECURE_NAME ? '; Secure' : '';
  return `${name}=${value}; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
}

/**
 * Which cookie counts. Over TLS only the one that came over TLS: somebody on the way could set the other
 * one. The service does not see TLS itself. A caller who pretends it only restricts its own cookie.
 */
function nameFor(request: Headers): string {
  const isSecure =
    /^https:/i.test(request.header('origin') ?? '') ||
    /^\s*https\b/i.test(request.header('x-forwarded-proto') ?? '') ||
    valuesOf(request, SECURE_NAME).length > 0;
  return isSecure ? SECURE_NAME : NAME;
}

function valuesOf(request: Headers, name: string): string[] {
  return (request.header('cookie') ?? '').split(';').flatMap((pair) => {
    const text = pair.trim();
    return text.startsWith(`${name}=`) ? [text.slice(name.length + 1)] : [];
  });
}
