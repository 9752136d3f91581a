import type { TokenServiceOptions } from '../../src/inputs/options.ts';
import type { TokenRequestsOptions } from '../../src/requests/options.ts';
import { TokenRequests } from '../../src/requests/requests.ts';
import type { OpenInput, RequestEvent } from '../../src/requests/types.ts';
import { OTHER_SCOPE, SCOPE, setUp } from '../support.ts';

export const VERIFICATION_URI = 'https://shop.example/tokens/approve';
export const CLIENT = 'deploy bot';
export const ASKED = { client: CLIENT, scopes: [SCOPE, OTHER_SCOPE] } as const;

/** A service, and requests for its tokens that anybody may open. */
export function requestSetting(
  options: Partial<TokenRequestsOptions> = {},
  service: Partial<TokenServiceOptions> = {},
) {
  const setting = setUp(service);
  const events: RequestEvent[] = [];
  const requests = new TokenRequests({
    tokens: setting.tokens,
    verificationUri: VERIFICATION_URI,
    anonymous: true,
    onEvent: (event) => events.push(event),
    ...options,
  });
  return { ...setting, requests, events };
}

/** The same with a token that may read orders, and a request to elevate it to writing them. */
export async function elevationSetting(
  input: Partial<OpenInput> = {},
  service: Partial<TokenServiceOptions> = {},
) {
  const setting = requestSetting({ anonymous: false }, service);
  const first = await setting.tokens.issue({
    account: 'acme',
    scopes: [SCOPE],
    createdBy: 'grace',
  });
  const asked = { client: CLIENT, scopes: [OTHER_SCOPE], elevate: first.value, ...input };
  const opened = await setting.requests.open(asked);
  return { ...setting, first, opened };
}

/** The same with the elevation that came of it. */
export async function elevatedSetting(service: Partial<TokenServiceOptions> = {}) {
  const setting = await elevationSetting({}, service);
  await setting.requests.approve('acme', setting.opened.userCode, { by: 'ada' });
  const { token } = await setting.requests.poll(setting.opened.deviceCode, { client: CLIENT });
  if (token === undefined) throw new Error('nothing was issued');
  return { ...setting, elevation: token };
}
