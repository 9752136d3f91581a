import { ApiError, type ServiceClient } from '../../../http/client.ts';
import type { Answers } from '../../../http/wire.ts';
import { inWords } from '../../../text/wording.ts';
import { performance, setTimeout } from '../../../time/timers.ts';
import { usageError } from '../../terminal/errors.ts';
import { readFlag, SECONDS } from '../../terminal/kinds.ts';
import { printable } from '../../terminal/layout.ts';
import { CLIENT_FAULT, command, type Given, type Outcome } from '../command.ts';
import { readScopeFlags, readValueOperand, SCOPE_FLAG, TTL } from './token-input.ts';

const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

/** Seconds that a poll which came early adds to all later pauses (RFC 8628 section 3.5). */
const SLOWER_BY = 5;

const FLAGS = {
  server: {
    type: 'string',
    value: 'URL',
    isRequired: true,
    help: 'the token service, such as https://auth.example',
  },
  client: {
    type: 'string',
    value: 'NAME',
    isRequired: true,
    help: 'what the program calls itself: the person sees it',
  },
  scope: {
    ...SCOPE_FLAG,
    help: 'what the token may do: scopes separated by commas, a JSON file, or -; repeatable',
  },
  challenge: {
    type: 'string',
    value: 'HEADER',
    help: 'the WWW-Authenticate of a refusal: asks for its scopes, as far as they are on the host of --resource',
  },
  resource: { type: 'string', value: 'URL', help: 'the address that was refused, for --challenge' },
  purpose: { type: 'string', value: 'TEXT', help: 'what the token is for: the person sees it' },
  ttl: { type: 'string', value: 'TIME', help: `how long the token is valid: ${TTL}` },
  elevate: {
    type: 'boolean',
    help: 'ask for an addition to the token whose value is on standard input, or in TOKENWRIGHT_TOKEN',
  },
} as const;

/** Asks people for a token. */
export const TOKEN_REQUEST = command({
  name: 'token request',
  summary: 'asks somebody to approve a token, and waits for it',
  about: `It shows an address and a code. Somebody who has an account opens the address, types the code and approves
what is asked for, or a part of it. Standard output has only the value. All else goes to standard error.

The service must run with --requests anyone, or elevate for --elevate. An elevation may do what was approved,
and ends with any change of the token that asked.`,
  flags: FLAGS,
  json: '{ access_token, issued_token_type, token_type, expires_in, scope }, as in the answer of the service',
  exits: {
    0: 'the token was approved',
    1: CLIENT_FAULT,
    3: 'the request was denied, or has expired',
  },
  example: {
    call: 'token request --server https://auth.example --client "deploy bot" --scope GET:shop.example/orders',
    output: `Somebody has to approve this. Open
  https://auth.example/approve
and type
  WDJB-MJHT
It can be approved for 10 minutes.
tw_1k1x0PmR2…`,
  },
  async run(_, flags) {
    const { server = '', client = '' } = flags;
    const form = await formOf(flags);
    const { describe, readBase, serviceAt } = await import('../account/remote.ts');
    const base = readBase(server, '--server');
    try {
      const service = serviceAt(base);
      const opened = await service.call('POST /oauth/device', { body: form });
      process.stderr.write(instructions(opened));
      return await answerOf(service, opened, client);
    } catch (error) {
      throw error instanceof ApiError ? describe(error, base) : error;
    }
  },
});

/** @throws {CliError} */
async function formOf(flags: Given<typeof FLAGS>): Promise<URLSearchParams> {
  const { client = '', purpose, resource, challenge } = flags;
  const form = new URLSearchParams({ client_id: client });
  if ((challenge === undefined) === (flags.scope === undefined)) {
    throw usageError('give either --scope, or --challenge with --resource');
  }
  if ((challenge === undefined) !== (resource === undefined)) {
    throw usageError('--challenge and --resource belong together');
  }
  const scopes =
    challenge === undefined
      ? (await readScopeFlags(flags.scope ?? [], 'scope')).join(' ')
      : challengedScopes(challenge);
  form.set('scope', scopes);
  // The service leaves out what is on other hosts: whoever refuses a call could ask for anything.
  if (resource !== undefined) form.set('resource', resource);
  if (purpose !== undefined) form.set('purpose', purpose);
  const ttl = readFlag(SECONDS, 'ttl', flags.ttl);
  if (ttl !== undefined) form.set('ttl', String(ttl));
  if (flags.elevate !== true) return form;
  form.set('subject_token', await readValueOperand('-'));
  form.set('subject_token_type', ACCESS_TOKEN);
  return form;
}

/** The scopes that a challenge names (RFC 6750 section 3). @throws {CliError} if there are none */
function challengedScopes(header: string): string {
  const [, scopes = ''] = /(?:^|[\s,])scope="([^"\\]*)"/i.exec(header) ?? [];
  if (scopes.trim() !== '') return scopes;
  throw usageError('--challenge must be a WWW-Authenticate header that names a scope="…"');
}

function instructions(opened: Answers['DeviceAuthorization']): string {
  const { verification_uri: uri, user_code: code, expires_in: seconds } = opened;
  return `Somebody has to approve this. Open
  ${printable(uri)}
and type
  ${printable(code)}
It can be approved for ${inWords(seconds)}.
`;
}

/** Polls until the request is decided. */
async function answerOf(
  service: ServiceClient,
  opened: Answers['DeviceAuthorization'],
  client: string,
): Promise<Outcome> {
  const { device_code, expires_in: seconds } = opened;
  const body = new URLSearchParams({ grant_type: DEVICE_CODE, device_code, client_id: client });
  const end = performance.now() + seconds * 1000;
  for (let pause = opened.interval; performance.now() < end; ) {
    await new Promise((resolve) => setTimeout(resolve, pause * 1000));
    try {
      const answer = await service.call('POST /oauth/token', { body });
      return { text: answer.access_token, json: answer };
    } catch (error) {
      const refusal = outcomeOf(error);
      if (refusal === 'slow_down') pause += SLOWER_BY;
      else if (refusal !== 'authorization_pending') return negative(refusal);
    }
  }
  return negative('expired_token');
}

/** The code of OAuth with which a poll was refused. @throws what is none of them */
function outcomeOf(error: unknown): string {
  const isOutcome = error instanceof ApiError && POLL_CODES.has(error.code);
  if (!isOutcome) throw error;
  return error.code;
}

const POLL_CODES: ReadonlySet<string> = new Set([
  'authorization_pending',
  'slow_down',
  'access_denied',
  'expired_token',
]);

function negative(code: string): Outcome {
  const notes =
    code === 'access_denied'
      ? 'the request was denied'
      : 'the request has expired; nobody approved it';
  return { text: '', json: null, notes, isNegative: true };
}
