import { isTokenError } from '../../errors.ts';
import type { TokenRequests } from '../../requests/requests.ts';
import type { PollResult } from '../../requests/types.ts';
import { HttpError } from '../errors.ts';
import { type HttpResponse, jsonResponse } from '../responses.ts';
import type { Answers } from '../wire.ts';
import { askedScopes, scopesOnTargets } from './asked-scopes.ts';
import { inWordsOfForms, secondsIn, valueIn } from './exchange.ts';
import { OAuthRefusal, type OAuthRefusalCode } from './failure.ts';
import type { Form } from './form.ts';
import { type Grant, tokenAnswer } from './grant.ts';

/** Answers `POST /oauth/device`: opens a request (RFC 8628 section 3.1). */
export async function openByForm(
  requests: TokenRequests,
  form: Form,
  address: string | undefined,
): Promise<HttpResponse> {
  const input = {
    client: form.require('client_id'),
    purpose: form.get('purpose'),
    ttlSeconds: secondsIn(form),
    elevate: elevateIn(form),
    address,
  };
  const asked = askedScopes(form);
  try {
    const scopes = await scopesOnTargets(asked);
    const opened = await requests.open({ ...input, scopes });
    const answer: Answers['DeviceAuthorization'] = {
      device_code: opened.deviceCode,
      user_code: opened.userCode,
      verification_uri: opened.verificationUri,
      expires_in: opened.expiresInSeconds,
      interval: opened.intervalSeconds,
    };
    return jsonResponse(200, answer);
  } catch (error) {
    throw openingFailure(error);
  }
}

function elevateIn(form: Form): string | undefined {
  if (form.has('subject_token')) return valueIn(form, 'subject_token');
  if (!form.has('subject_token_type')) return undefined;
  throw new HttpError(
    'invalid_request',
    'subject_token_type cannot be given without subject_token',
  );
}

function openingFailure(error: unknown): unknown {
  if (!isTokenError(error)) return error;
  const { code, details, message } = error;
  if (code === 'unauthorized_client') return new OAuthRefusal(code, message);
  if (code === 'quota_exceeded' && details?.['quota'] === 'maxPending') {
    return new HttpError(
      'overloaded',
      'there are too many requests at the moment; try again later',
    );
  }
  return inWordsOfForms(error);
}

/** Answers polls: gives the token of a device code once somebody has approved it (RFC 8628 section 3.4). */
export function deviceGrant(requests: TokenRequests): Grant {
  return async (form) => {
    const deviceCode = form.require('device_code');
    const result = await requests.poll(deviceCode, { client: form.require('client_id') });
    if (result.state === 'issued') return tokenAnswer(result.token);
    const [error, message] = POLL_ERRORS[result.state];
    throw new OAuthRefusal(error, message);
  };
}

/** What each outcome of a poll but a token is (RFC 8628 section 3.5). */
const POLL_ERRORS: Readonly<
  Record<Exclude<PollResult['state'], 'issued'>, readonly [OAuthRefusalCode, message: string]>
> = {
  pending: ['authorization_pending', 'nobody has decided yet; poll again'],
  slow_down: ['slow_down', 'this poll came early; wait five seconds longer from now on'],
  denied: ['access_denied', 'the request was denied'],
  expired: ['expired_token', 'the request has expired; open a new one'],
  unknown: ['invalid_grant', 'the device code is not, or no longer, valid'],
};
