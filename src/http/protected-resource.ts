import * as z from 'zod/mini';
import { once } from '../inputs/once.ts';
import { publicUrlField } from '../inputs/public-url.ts';
import { checkOptions, fields, strict } from '../inputs/schemas.ts';
import { kindOf } from '../text/wording.ts';
import { wellKnown } from './well-known.ts';

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
const EXAMPLE = 'https://shop.example/mcp';

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
  return wellKnown(metadataUrlOf(resource), {
    resource,
    authorization_servers: authorizationServers,
    bearer_methods_supported: ['header'],
    ...(scopes && { scopes_supported: scopes.map(String) }),
  });
}

/** The address of the metadata of a resource (RFC 9728 section 3.1). */
export function metadataUrlOf(resource: string): string {
  const { origin, pathname } = new URL(resource);
  return origin + WELL_KNOWN + (pathname === '/' ? '' : pathname);
}

/** The URL of a resource, as an option of several functions. */
export const resourceField = once(() => publicUrlField('resource', EXAMPLE));

const resourceOptions = once(() =>
  strict({
    resource: resourceField(),
    authorizationServers: z
      .array(publicUrlField('each of authorizationServers', EXAMPLE), {
        error: ({ input }) => `authorizationServers must be a list of URLs; got ${kindOf(input)}`,
      })
      .check(z.minLength(1, { error: 'authorizationServers must hold at least one URL' })),
    scopes: z.optional(fields.scopes()),
  }),
);
