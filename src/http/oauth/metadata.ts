import * as z from 'zod/mini';
import { once } from '../../inputs/once.ts';
import { publicUrlField } from '../../inputs/public-url.ts';
import { checkOptions, flag, gotKind, strict } from '../../inputs/schemas.ts';
import { hasMethods } from '../../ports/has-methods.ts';
import type { TokenRequests } from '../../requests/requests.ts';
import { wellKnown } from '../well-known.ts';
import { grantTypesOf, type OAuthOptions } from './token-endpoint.ts';

/** The options of {@link oauthMetadata}: those of the `oauth` of a token handler, and what else it offers. */
export interface OAuthMetadataOptions extends Omit<OAuthOptions, 'requests'> {
  /** The `requests` of the token handler, or whether it has some. @default false */
  readonly requests?: TokenRequests | boolean | undefined;
  /** The public URL of the token handler, with its `basePath`. @default issuer */
  readonly base?: string | undefined;
  /** Whether the token handler has `introspection`. @default false */
  readonly introspection?: boolean | undefined;
}

const WELL_KNOWN = '/.well-known/oauth-authorization-server';
const EXAMPLE = 'https://auth.example';

/**
 * Publishes what the service offers to clients of OAuth: the metadata of an authorization server by RFC
 * 8414. It has no authorization endpoint, and clients have no credentials.
 *
 * Answers one path, `/.well-known/oauth-authorization-server` followed by the path of the issuer, with any
 * host: 200 to `GET` and `HEAD`, 204 to `OPTIONS`, 405 to other methods. Pages of all origins may read it.
 * Returns `undefined` for every other path. Everything in the answer comes from the options.
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * const oauth = { issuer: 'https://auth.example', exchange: true };
 * const handler = tokenHandler({ tokens, authenticate, oauth });
 * const metadata = oauthMetadata(oauth);
 * const response = metadata(request) ?? (await handler(request));
 */
export function oauthMetadata(
  options: OAuthMetadataOptions,
): (request: Request) => Response | undefined {
  const read = checkOptions(metadataOptions(), options);
  const { issuer } = read;
  const base = (read.base ?? issuer).replace(/\/$/, '');
  const grantTypes = grantTypesOf(read);
  return wellKnown(issuerMetadataUrl(issuer), {
    issuer,
    ...(grantTypes.length > 0 && { token_endpoint: `${base}/oauth/token` }),
    ...(read.requests && { device_authorization_endpoint: `${base}/oauth/device` }),
    ...(read.introspection && { introspection_endpoint: `${base}/introspect` }),
    grant_types_supported: grantTypes,
    response_types_supported: [],
    token_endpoint_auth_methods_supported: ['none'],
  });
}

/** The address of the metadata of an issuer, without the slash at its end (RFC 8414 section 3.1). */
export function issuerMetadataUrl(issuer: string): string {
  const { origin, pathname } = new URL(issuer);
  return origin + WELL_KNOWN + pathname.replace(/\/$/, '');
}

/** The fields of {@link OAuthOptions}. @param place what stands before their names in messages */
export function oauthFields(place = '') {
  return {
    issuer: publicUrlField(`${place}issuer`, EXAMPLE),
    exchange: flag(`${place}exchange`),
    requests: z.optional(
      z.custom<TokenRequests>(areRequests, {
        error: gotKind(`${place}requests must be TokenRequests`),
      }),
    ),
  };
}

function areRequests(value: unknown): boolean {
  return hasMethods<TokenRequests>(value, 'open', 'poll');
}

const metadataOptions = once(() =>
  strict({
    ...oauthFields(),
    requests: z.optional(
      z.custom<TokenRequests | boolean>(
        (value) => typeof value === 'boolean' || areRequests(value),
        { error: gotKind('requests must be TokenRequests, or true or false') },
      ),
    ),
    base: z.optional(publicUrlField('base', EXAMPLE)),
    introspection: flag('introspection'),
  }),
);
