import type * as z from 'zod/mini';
import { readBy } from '../inputs/schemas.ts';
import { kindOf } from '../text/wording.ts';
import { HttpError } from './errors.ts';
import { COMMON_HEADERS, fail, jsonResponse, toResponse, type WholeResponse } from './responses.ts';

const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;
const ALLOWED = 'GET, HEAD, OPTIONS';

/** Browsers that run a client of MCP read the metadata from another origin, with headers of their own. */
const CORS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': ALLOWED,
  'access-control-allow-headers': '*',
} as const;

/**
 * Publishes metadata at the path of a URL, with any host: 200 to `GET` and `HEAD`, 204 to `OPTIONS`, 405 to
 * other methods. Pages of all origins may read it. Returns `undefined` for every other path.
 */
export function wellKnown(
  at: string,
  members: Readonly<Record<string, unknown>>,
): (request: Request) => Response | undefined {
  const { pathname } = new URL(at);
  const metadata = jsonResponse(200, members, CORS);
  return ({ method, url }) => {
    if (new URL(url).pathname !== pathname) return undefined;
    return toResponse(answerTo(method, metadata), method);
  };
}

function answerTo(method: string, metadata: WholeResponse): WholeResponse {
  if (method === 'GET' || method === 'HEAD') return metadata;
  if (method === 'OPTIONS') {
    return { status: 204, headers: { ...COMMON_HEADERS, ...CORS }, body: null };
  }
  return fail(
    new HttpError('method_not_allowed', `the address takes ${ALLOWED}`, {
      headers: { allow: ALLOWED },
    }),
  );
}

/**
 * The URL by which people and programs know a thing, as an option.
 *
 * @param example such a URL, for the message of a refusal
 */
export function publicUrlField(name: string, example: string): z.ZodMiniType<string> {
  const rule = `${name} must be an https URL, or one with http on this machine, in its canonical spelling and without user, query and fragment, such as "${example}"`;
  return readBy((value, refuse) => {
    if (typeof value === 'string' && isPublicUrl(value)) return value;
    return refuse(typeof value === 'string' ? rule : `${rule}; got ${kindOf(value)}`);
  });
}

/** Whether a text is such a URL, and the one that a parser would write: others could be read in two ways. */
function isPublicUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password, search, hash, href, pathname } = new URL(text);
  if (username + password + search + hash !== '' || /[?#]/.test(text)) return false;
  if (protocol !== 'https:' && !(protocol === 'http:' && LOOPBACK.test(hostname))) return false;
  return href === text || (pathname === '/' && href === `${text}/`);
}
