import * as z from 'zod/mini';
import { once } from '../inputs/once.ts';
import { checkOptions, fields, readBy, strict } from '../inputs/schemas.ts';
import { kindOf } from '../text/wording.ts';
import { HttpError } from './errors.ts';
import { COMMON_HEADERS, fail, jsonResponse, toResponse, type WholeResponse } from './responses.ts';

/** The options of {@link protectedResource}. */
export interface ProtectedResourceOptions {
  /**
   * The public URL of the resource, as clients write it: `https`, or `http` on this machine, without query
   * and fragment.
   */
  readonly resource: string;
  /** The issuers of the authorization servers from which clients get tokens; at least one. */
  readonly authorizationServers: readonly string[];
  /** The scopes that clients may ask for. @default none are named */
  readonly scopes?: readonly string[] | undefined;
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource';
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;
const ALLOWED = 'GET, HEAD, OPTIONS';

/** Browsers that run a client of MCP read the metadata from another origin, with headers of their own. */
const CORS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': ALLOWED,
  'access-control-allow-headers': '*',
} as const;

/**
 * Publishes where clients get tokens for a resource: its metadata by RFC 9728, which the challenges of a
 * guard with the same `resource` point to.
 *
 * Answers one path, `/.well-known/oauth-protected-resource` followed by the path of the resource, with any
 * host: 200 to `GET` and `HEAD`, 204 to `OPTIONS`, 405 to other methods. Pages of all origins may read it.
 * Returns `undefined` for every other path. Everything in the answer comes from the options.
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * const metadata = protectedResource({
 *   resource: 'https://shop.example/mcp',
 *   authorizationServers: ['https://auth.example'],
 * });
 * const response = metadata(request) ?? new Response('not found', { status: 404 });
 */
export function protectedResource(
  options: ProtectedResourceOptions,
): (request: Request) => Response | undefined {
  const { resource, authorizationServers, scopes } = checkOptions(resourceOptions(), options);
  const { pathname } = new URL(metadataUrlOf(resource));
  const metadata = jsonResponse(
    200,
    {
      resource,
      authorization_servers: authorizationServers,
      bearer_methods_supported: ['header'],
      ...(scopes && { scopes_supported: scopes.map(String) }),
    },
    CORS,
  );
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

/** The address of the metadata of a resource (RFC 9728 section 3.1). */
export function metadataUrlOf(resource: string): string {
  const { origin, pathname } = new URL(resource);
  return origin + WELL_KNOWN + (pathname === '/' ? '' : pathname);
}

/** The URL of a resource, as an option of several functions. */
export const resourceField = once(() => urlField('resource'));

const resourceOptions = once(() =>
  strict({
    resource: resourceField(),
    authorizationServers: z
      .array(urlField('each of authorizationServers'), {
        error: ({ input }) => `authorizationServers must be a list of URLs; got ${kindOf(input)}`,
      })
      .check(z.minLength(1, { error: 'authorizationServers must hold at least one URL' })),
    scopes: z.optional(fields.scopes()),
  }),
);

function urlField(name: string): z.ZodMiniType<string> {
  const rule = `${name} must be an https URL, or one with http on this machine, in its canonical spelling and without user, query and fragment, such as "https://shop.example/mcp"`;
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
