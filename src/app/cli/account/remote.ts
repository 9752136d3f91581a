import { ApiError, type Send, ServiceClient, unreachable } from '../../../http/client.ts';
import { ROUTES, type RouteName } from '../../../http/routes.ts';
import { ANSWERS, type Answers } from '../../../http/wire.ts';
import { ScopeSet } from '../../../scope/index.ts';
import { BODY_LENGTH, ID_START, SECRET_START } from '../../../values/format.ts';
import { readId } from '../../../values/value.ts';
import { type CliError, inputError, usageError, withFlag } from '../../terminal/errors.ts';
import { type Connection, TokenClient, type Verification, type WrittenNeed } from './client.ts';

const ANSWER_MS = 30_000;
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const MAX_REASON_LENGTH = 1000;

/** The credentials of an account of a service. */
export interface Login {
  readonly user: string;
  readonly password: string;
}

/**
 * Connects to the tokens of an account in a running service. Without a login, it only derives.
 *
 * @param base from {@link readBase}
 */
export function remoteClient(base: string, login: Login | undefined): TokenClient {
  const send = sendTo(base, login);
  const service = serviceAt(base, login);
  const toError = (failure: ApiError) => describe(failure, base);
  const connection: Connection = {
    name: login === undefined ? base : `${login.user} at ${base}`,
    send,
    read: readJson,
    isAnswer,
    idOf,
    toError,
    async verify(value, need, address) {
      const body = new URLSearchParams({
        token: value,
        ...(address !== undefined && { client_address: address }),
      });
      return judge(await service.call('POST /introspect', { body }), need);
    },
  };
  return new TokenClient(connection);
}

/** The calls of a service, with the credentials of an account or without. */
export function serviceAt(base: string, login?: Login): ServiceClient {
  return new ServiceClient({ send: sendTo(base, login), read: readJson, isAnswer });
}

/** Sends calls to a service. Refuses redirects: the credentials are for this service alone. */
function sendTo(base: string, login?: Login): Send {
  const credentials = login && Buffer.from(`${login.user}:${login.password}`).toString('base64');
  const authorization = credentials && `Basic ${credentials}`;
  return async (path, init) => {
    const headers = { ...(authorization !== undefined && { authorization }), ...init.headers };
    const signal = AbortSignal.timeout(ANSWER_MS);
    let answer: Response;
    try {
      answer = await fetch(base + path, { ...init, headers, redirect: 'error', signal });
    } catch {
      throw inputError(`${base} cannot be reached, or does not answer`);
    }
    const refusal = refusalOf(path, answer);
    if (refusal !== undefined) throw inputError(`${base} ${refusal}`);
    // Every service has the paths without an id, so this is not one.
    const isKnown = path.startsWith('/token/') && path !== '/token/derive';
    if (answer.status === 404 && !isKnown) throw unreachable(404);
    return answer;
  };
}

/** How a service answers that was started without an option that the call needs. */
function refusalOf(path: string, { status, headers }: Response): string | undefined {
  if (path === '/introspect' && status === 404) {
    return 'does not answer /introspect: start it with serve --introspection USER:PASSWORD and give these as --user and TOKENWRIGHT_PASSWORD, or verify in its store, with --data or --store';
  }
  if (path === '/introspect' && status === 401) {
    return 'refuses with 401: to verify, the credentials must be those of --introspection, not those of an account';
  }
  if (path === '/oauth/device' && status === 404) {
    return 'takes no requests for tokens: start it with serve --issuer URL --requests elevate, or anyone';
  }
  // A service without --derivation takes `derive` for the id of a token, and asks for a password.
  const challenge = headers.get('www-authenticate') ?? '';
  return path === '/token/derive' && status === 401 && !challenge.startsWith('Bearer')
    ? 'derives no tokens: start it with serve --derivation, or derive in its store, with --data or --store'
    : undefined;
}

/** What a service has refused, in words. */
export function describe(
  { status, message, details, retryAfterSeconds }: ApiError,
  base: string,
): CliError {
  if (message === '') {
    return inputError(
      `${base} does not answer as a token service does (${status}); is the path right?`,
    );
  }
  const later = retryAfterSeconds === undefined ? '' : `; try again in ${retryAfterSeconds} s`;
  const named = withFlag(message.slice(0, MAX_REASON_LENGTH), details.member);
  return inputError(`${base} refuses with ${status}: ${named}${later}`);
}

/** What a service sends is checked as far as printing it depends on it. */
function isAnswer(name: RouteName, answer: unknown): boolean {
  const row = ROUTES[name];
  return 'answer' in row && ANSWERS[row.answer]().safeParse(answer).success;
}

/** @throws if it is longer than any answer of a service, or not JSON */
async function readJson({ body }: Response): Promise<unknown> {
  // Not a list of chunks, which may be tiny. The system gives only the memory that is written.
  const bytes = Buffer.alloc(MAX_ANSWER_BYTES);
  let length = 0;
  for await (const chunk of body ?? []) {
    bytes.set(chunk, length);
    length += chunk.length;
  }
  return JSON.parse(new TextDecoder().decode(bytes.subarray(0, length)));
}

/**
 * Reads the address of a service.
 *
 * @throws {CliError} that never repeats the address, which may hold a password
 */
export function readBase(text: string, flag = '--url (TOKENWRIGHT_URL)'): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url === undefined || !isWeb || url.search !== '' || url.hash !== '') {
    throw usageError(`${flag} must be like http://127.0.0.1:8787`);
  }
  if (url.username !== '' || url.password !== '') {
    throw usageError(
      `${flag} must hold no user and password: they are for TOKENWRIGHT_USER and TOKENWRIGHT_PASSWORD`,
    );
  }
  return url.href.replace(/\/$/, '');
}

/** Refuses values, because paths end up in logs. The id within a value is not secret. */
function idOf(id: string): string {
  if (readId(id) !== undefined) return id;
  const body = id.slice(-BODY_LENGTH);
  const own = readId(body.slice(ID_START, SECRET_START));
  if (own === undefined || !id.endsWith(`_${body}`)) throw new ApiError('not_found', '');
  throw inputError(
    `a service is asked by the id: addresses end up in logs, and a value must not; the id of this one is ${own}`,
  );
}

/** Decides from the introspection response alone, as a resource server does. */
function judge(
  { active, scope = '', sub, exp, jti }: Answers['Introspection'],
  need: WrittenNeed,
): Verification {
  if (!active) return { ok: false, reason: 'inactive' };
  const explained = heldIn(scope).explain('scope' in need ? need.scope : need);
  if (explained.allowed) {
    const token = { id: jti, account: sub, expire: exp };
    return { ok: true, grantedBy: explained.by.toString(), token };
  }
  return 'needed' in explained
    ? { ok: false, reason: 'insufficient_scope', needed: explained.needed.toString() }
    : { ok: false, reason: explained.reason };
}

/** The scopes of an introspection. */
function heldIn(text: string): ScopeSet {
  try {
    return ScopeSet.from(text.split(' ').filter((scope) => scope !== ''));
  } catch {
    throw unreachable(200);
  }
}
