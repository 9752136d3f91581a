import type { IssuedToken } from '../../token/record.ts';
import { type HttpResponse, jsonResponse } from '../responses.ts';
import type { Answers } from '../wire.ts';
import type { Form } from './form.ts';

/** Makes the answer to a form of one grant. @param address the IP address that the call comes from */
export type Grant = (form: Form, address: string | undefined) => Promise<HttpResponse>;

/** The only type of tokens (RFC 8693 section 3). */
export const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

/** The answer that gives a client a new token (RFC 8693 section 2.2.1). */
export function tokenAnswer({ value, scopes, createdAt, expiresAt }: IssuedToken): HttpResponse {
  const answer: Answers['AccessToken'] = {
    access_token: value,
    issued_token_type: ACCESS_TOKEN,
    token_type: 'Bearer',
    expires_in: Math.floor((expiresAt.getTime() - createdAt.getTime()) / 1000),
    scope: scopes.join(' '),
  };
  return jsonResponse(200, answer);
}
