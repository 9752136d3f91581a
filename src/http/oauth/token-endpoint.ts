import type { TokenRequests } from '../../requests/requests.ts';
import type { TokenService } from '../../service.ts';
import { HttpError } from '../errors.ts';
import type { HttpResponse } from '../responses.ts';
import { deviceGrant } from './device.ts';
import { exchange } from './exchange.ts';
import { OAuthRefusal } from './failure.ts';
import type { Form } from './form.ts';
import type { Grant } from './grant.ts';

/** What makes the service an authorization server, which issues tokens to clients of OAuth. */
export interface OAuthOptions {
  /**
   * The issuer: the public URL by which clients know the service, `https`, or `http` on this machine,
   * without query and fragment.
   */
  readonly issuer: string;
  /**
   * Lets the bearer of a token exchange it for a narrower one, at `/oauth/token` (RFC 8693): see
   * {@link TokenService.derive}. @default false
   */
  readonly exchange?: boolean | undefined;
  /**
   * Lets programs ask for tokens at `/oauth/device`, and get them at `/oauth/token` once somebody who acts for an
   * account has approved it at `/request/{code}` (RFC 8628). @default none
   */
  readonly requests?: TokenRequests | undefined;
}

/** All grants: the parts of the options that turn each on, and its `grant_type`. */
const GRANTS = {
  exchange: { type: 'urn:ietf:params:oauth:grant-type:token-exchange', make: exchange },
  requests: {
    type: 'urn:ietf:params:oauth:grant-type:device_code',
    make: (_, { requests }) => deviceGrant(requests as TokenRequests),
  },
} as const satisfies Readonly<
  Record<
    Exclude<keyof OAuthOptions, 'issuer'>,
    {
      readonly type: string;
      readonly make: (tokens: TokenService, options: Partial<OAuthOptions>) => Grant;
    }
  >
>;

/** The `grant_type` of each grant. */
export const GRANT_TYPES: readonly string[] = Object.values(GRANTS).map(({ type }) => type);

/** The `grant_type` of each grant that is on; without one, there is no token endpoint. */
export function grantTypesOf(options: GrantSwitches = {}): readonly string[] {
  return grantsOn(options).map(({ type }) => type);
}

/** Which grants are on. */
type GrantSwitches = { readonly [Name in keyof typeof GRANTS]?: unknown };

function grantsOn(options: GrantSwitches) {
  const names = Object.keys(GRANTS) as (keyof typeof GRANTS)[];
  return names.filter((name) => options[name]).map((name) => GRANTS[name]);
}

/** What a client could prove who it is with, which nobody checks here: it may believe that it needs no other proof. */
const CLIENT_CREDENTIALS = ['client_secret', 'client_assertion'];

/** Answers `POST /oauth/token`. @param options with at least one grant */
export function tokenEndpoint(
  tokens: TokenService,
  options: Partial<OAuthOptions> = {},
): (call: {
  readonly form: Form;
  readonly authorization: string | undefined;
  readonly address: string | undefined;
}) => Promise<HttpResponse> {
  const grants = new Map<string, Grant>(
    grantsOn(options).map(({ type, make }) => [type, make(tokens, options)]),
  );
  return async ({ form, authorization, address }) => {
    refuseCredentials(form, authorization);
    const grant = grants.get(form.require('grant_type'));
    if (grant !== undefined) return grant(form, address);
    throw new OAuthRefusal(
      'unsupported_grant_type',
      `grant_type must be ${[...grants.keys()].join(' or ')}`,
    );
  };
}

/** @throws {HttpError} `unauthenticated` if a client tries to prove who it is */
export function refuseCredentials(form: Form, authorization: string | undefined): void {
  const isProving =
    authorization !== undefined || CLIENT_CREDENTIALS.some((name) => form.has(name));
  if (isProving) throw invalidClient();
}

function invalidClient(): HttpError {
  return new HttpError(
    'unauthenticated',
    'clients have no credentials here; leave out Authorization, client_secret and client_assertion, and send the token as subject_token',
    { headers: { 'www-authenticate': 'Basic realm="tokenwright oauth", charset="UTF-8"' } },
  );
}
