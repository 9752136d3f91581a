import { HttpError } from './errors.ts';
import { COMMON_HEADERS, fail, jsonResponse, toResponse, type WholeResponse } from './responses.ts';

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
