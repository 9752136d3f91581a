import type { WireToken } from '../../../http/wire.ts';
import type { WireAdvice, WireFinding, WireUsage } from '../../../http/wire-reports.ts';
import type { AskedLimits } from './limits-draft.ts';
import type { NewToken } from './new-token-draft.ts';
import type { Session } from './session.ts';

/**
 * A token as the page keeps it: never with its value. If the service can show a value again, the
 * page asks for it only when a person wants to see it ({@link Api.reveal}).
 */
export interface ShownToken extends Omit<WireToken, 'token'> {
  /** Whether the service can show the value again. */
  readonly isReadable: boolean;
}

/** A token that was just issued or rotated, with its value. */
export interface FreshToken extends ShownToken {
  readonly value: string;
}

export interface TokenPage {
  readonly tokens: readonly ShownToken[];
  /** Absent on the last page. */
  readonly cursor?: string;
}

export interface ListQuery {
  readonly state?: string;
  readonly name?: string;
  readonly parent?: string;
  readonly cursor?: string;
  readonly limit: number;
}

/** The body of `PATCH /token/{id}`. */
export interface TokenChange {
  readonly scopes?: readonly string[];
  readonly removeScopes?: readonly string[];
  readonly name?: string | null;
  readonly expire?: string;
  readonly suspended?: boolean;
  readonly limits?: AskedLimits | null;
}

/** The body of `POST /token/{id}/rotate`. */
export interface Rotation {
  readonly graceSeconds?: number;
  readonly activate?: 'first-use';
  /** Also revokes all tokens that were derived from it. */
  readonly endDerived?: boolean;
}

/** The body of `POST /token/{id}/explain`. */
export interface Question {
  readonly method: string;
  readonly domain: string;
  readonly target: string;
}

export interface Explanation {
  readonly allowed: boolean;
  readonly reason?: string;
  readonly grantedBy?: string;
  readonly needed?: string;
  readonly nearest?: { readonly scope: string; readonly failed: 'method' | 'domain' | 'path' };
  readonly smallest?: string;
  readonly known?: boolean;
  readonly suggestions?: readonly string[];
}

/** A finding of the review, about one token. */
export interface Finding extends Omit<WireFinding, 'code' | 'token'> {
  /** One of the codes that this page knows, or a later one. */
  readonly code: string;
  readonly token: ShownToken;
}

export interface FindingPage {
  readonly findings: readonly Finding[];
  readonly cursor?: string;
}

/** A call that failed, with the message of the service. */
export class ApiError extends Error {
  /** A code of the service, or `unreachable` if it did not answer. */
  readonly code: string;
  readonly details: { readonly member?: string; readonly [name: string]: unknown };
  /** How long to wait before the next try, if the service says so. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    code: string,
    message: string,
    {
      details = {},
      retryAfterSeconds,
    }: Partial<Pick<ApiError, 'details' | 'retryAfterSeconds'>> = {},
  ) {
    super(message);
    this.code = code;
    this.details = details;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export interface ApiOptions {
  /** The address of the token service, without a slash at its end. */
  readonly base: string;
  readonly session: Session;
  /**
   * Called when a call is refused because nobody is signed in any more. Resolves with the session
   * to try again with, or rejects.
   */
  readonly renew: () => Promise<Session>;
}

/** The token service, over the wire. Every method rejects with an {@link ApiError}. */
export class Api {
  readonly #base: string;
  readonly #renew: () => Promise<Session>;
  #session: Session;

  constructor({ base, session, renew }: ApiOptions) {
    this.#base = base;
    this.#session = session;
    this.#renew = renew;
  }

  async list(query: ListQuery): Promise<TokenPage> {
    const { data, cursor } = await this.#call<TokenList>('GET', `/token?${searchOf({ ...query })}`);
    return { tokens: data.map(toShown), ...(cursor !== undefined && { cursor }) };
  }

  /** A token in any state, even if somebody has revoked it meanwhile. */
  async get(id: string): Promise<ShownToken> {
    const { data } = await this.#call<TokenList>('GET', `/token/${id}?state=all`);
    return toShown(onlyOf(data));
  }

  /** The value of a token, from a service that can show it again. */
  async reveal(id: string): Promise<string> {
    const { data } = await this.#call<TokenList>('GET', `/token/${id}`);
    return onlyOf(data).token;
  }

  async issue(body: NewToken): Promise<FreshToken> {
    return toFresh(await this.#call<WireToken>('POST', '/token', { body }));
  }

  /** Makes a token from the one that has this value. */
  async derive(value: string, body: NewToken): Promise<FreshToken> {
    const bearer = { kind: 'bearer', authorization: `Bearer ${value}` } as const;
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    const answer = await send(`${this.#base}/token/derive`, bearer, init);
    return toFresh((await readAnswer(answer)) as WireToken);
  }

  /** Refused with `version_conflict` if the token is no longer the one that was shown. */
  async patch(shown: ShownToken, body: TokenChange): Promise<ShownToken> {
    const call = { body, version: shown.version };
    const { data } = await this.#call<TokenList>('PATCH', `/token/${shown.id}`, call);
    return toShown(onlyOf(data));
  }

  async rotate(shown: ShownToken, body: Rotation): Promise<FreshToken> {
    const call = { body, version: shown.version };
    return toFresh(await this.#call<WireToken>('POST', `/token/${shown.id}/rotate`, call));
  }

  /** Drops a new value that waits for its first use. */
  async cancelRotation(shown: ShownToken): Promise<void> {
    const call = { body: { cancel: true }, version: shown.version };
    await this.#call('POST', `/token/${shown.id}/rotate`, call);
  }

  /** A token that is gone already is as good as revoked. */
  async revoke(shown: ShownToken): Promise<void> {
    try {
      await this.#call('DELETE', `/token/${shown.id}`, { version: shown.version });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'not_found') throw error;
    }
  }

  async usage(id: string): Promise<WireUsage> {
    return (await this.#call<{ data: WireUsage }>('GET', `/token/${id}/usage`)).data;
  }

  async advice(id: string): Promise<WireAdvice> {
    return (await this.#call<{ data: WireAdvice }>('GET', `/token/${id}/advice`)).data;
  }

  async explain(id: string, body: Question): Promise<Explanation> {
    return (await this.#call<{ data: Explanation }>('POST', `/token/${id}/explain`, { body })).data;
  }

  async review(cursor?: string): Promise<FindingPage> {
    const search = cursor === undefined ? '' : `?${searchOf({ cursor })}`;
    const answer = await this.#call<{ data: WireFinding[]; cursor?: string }>(
      'GET',
      `/review${search}`,
    );
    const findings = answer.data.map((found) => ({ ...found, token: toShown(found.token) }));
    return { findings, ...(answer.cursor !== undefined && { cursor: answer.cursor }) };
  }

  /** The scopes that this account may ask for. */
  async catalog(): Promise<readonly string[]> {
    return (await this.#call<{ data: readonly string[] }>('GET', '/scopes')).data;
  }

  async #call<Answer>(method: string, path: string, call: Call = {}): Promise<Answer> {
    const session = this.#session;
    const answer = await this.#send(method, path, call);
    if (answer.status !== 401) return (await readAnswer(answer)) as Answer;
    // Somebody may have signed in again while this call was on its way.
    if (this.#session === session) this.#session = await this.#renew();
    return (await readAnswer(await this.#send(method, path, call))) as Answer;
  }

  #send(method: string, path: string, { body, version }: Call): Promise<Response> {
    const headers: Record<string, string> = {};
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (version !== undefined) headers['if-match'] = `"${version}"`;
    const init: RequestInit = { method, headers };
    if (body !== undefined) init.body = JSON.stringify(body);
    return send(this.#base + path, this.#session, init);
  }
}

interface Call {
  readonly body?: object;
  readonly version?: number;
}

type TokenList = { readonly data: readonly WireToken[]; readonly cursor?: string };

/** The abilities of a service, as its OpenAPI document describes them. */
export interface Abilities {
  /** Whether it takes a user name and a password. */
  readonly takesPassword: boolean;
  /** Whether it takes a session of the host. */
  readonly takesSession: boolean;
  /** Whether tokens can have limits. */
  readonly takesLimits: boolean;
  /** The longest lifetime of a new token, if the service names one. */
  readonly maxSeconds: number | undefined;
  /** Whether tokens can be derived from others, and listed by the one that they come from. */
  readonly listsChildren: boolean;
  /** Whether it has a path, such as `/review`. */
  has(path: string): boolean;
}

export async function readAbilities(base: string): Promise<Abilities> {
  const document = (await readAnswer(
    await send(`${base}/openapi.json`, { kind: 'host' }, {}),
  )) as ServiceDocument;
  const schemes = Object.values(document.components?.securitySchemes ?? {});
  const paths = Object.keys(document.paths ?? {});
  const body = bodyOf(document);
  return {
    takesPassword: schemes.some(({ type, scheme }) => type === 'http' && scheme === 'basic'),
    takesSession: schemes.some(({ type, name }) => type === 'apiKey' && name === 'x-tokenwright'),
    takesLimits: body?.['limits'] !== undefined,
    maxSeconds: body?.['ttl']?.maximum,
    listsChildren: parametersOf(document).some(({ name }) => name === 'parent'),
    has: (path) => paths.includes(path),
  };
}

/** The members that the body of a new token can have. */
function bodyOf({ paths }: ServiceDocument): DescribedMembers | undefined {
  return paths?.['/token']?.post?.requestBody?.content?.['application/json']?.schema?.properties;
}

/** The parameters of the list of tokens. */
function parametersOf({ paths }: ServiceDocument): readonly { readonly name?: string }[] {
  return paths?.['/token']?.get?.parameters ?? [];
}

interface ServiceDocument {
  readonly paths?: Readonly<
    Record<string, { readonly get?: DescribedCall; readonly post?: DescribedCall }>
  >;
  readonly components?: {
    readonly securitySchemes?: Record<
      string,
      { readonly type: string; readonly scheme?: string; readonly name?: string }
    >;
  };
}

type DescribedMembers = Readonly<Record<string, { readonly maximum?: number }>>;

interface DescribedCall {
  readonly parameters?: readonly { readonly name?: string }[];
  readonly requestBody?: {
    readonly content?: Readonly<
      Record<string, { readonly schema?: { readonly properties?: DescribedMembers } }>
    >;
  };
}

/**
 * Checks a session with the service; `undefined` if the service refuses it. A session of a host
 * gets the account that it belongs to.
 *
 * @throws {ApiError} if the service cannot check it
 */
export async function checkSession(base: string, session: Session): Promise<Session | undefined> {
  const answer = await send(`${base}/token?limit=1`, session, {});
  if (answer.status === 401) return undefined;
  await readAnswer(answer);
  const account = answer.headers.get(ACCOUNT_HEADER);
  // Always a new object, by which refused calls notice that they can try again.
  return { ...session, ...(session.kind === 'host' && account !== null && { account }) };
}

/** Names the account that opened the page. The service refuses the session of another account. */
const ACCOUNT_HEADER = 'x-tokenwright-account';

/** The value of a token, instead of a session. */
interface Bearer {
  readonly kind: 'bearer';
  readonly authorization: string;
}

async function send(url: string, session: Session | Bearer, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set('x-tokenwright', 'console');
  if (session.kind !== 'host') headers.set('authorization', session.authorization);
  else if (session.account !== undefined) headers.set(ACCOUNT_HEADER, session.account);
  // Omitting cookies also keeps the browser from opening its own dialog for passwords.
  const credentials = session.kind === 'host' ? 'same-origin' : 'omit';
  try {
    return await fetch(url, {
      ...init,
      headers,
      credentials,
      cache: 'no-store',
      redirect: 'error',
    });
  } catch {
    throw unreachable();
  }
}

async function readAnswer(answer: Response): Promise<unknown> {
  let body: unknown;
  try {
    body = await answer.json();
  } catch {
    throw unreachable();
  }
  if (answer.ok) return body;
  const { code, message, details }: Partial<ApiError> = body ?? {};
  // An answer in any other form is from a gateway in front of the service.
  if (typeof code !== 'string' || typeof message !== 'string') throw unreachable();
  const seconds = Number(answer.headers.get('retry-after') ?? Number.NaN);
  throw new ApiError(code, message, {
    ...(details && { details }),
    ...(Number.isFinite(seconds) && { retryAfterSeconds: seconds }),
  });
}

function unreachable(): ApiError {
  return new ApiError('unreachable', 'the service does not answer');
}

function onlyOf(tokens: readonly WireToken[]): WireToken {
  const [token] = tokens;
  if (token === undefined) throw unreachable();
  return token;
}

function toShown({ token, ...rest }: WireToken): ShownToken {
  return { ...rest, isReadable: token !== rest.id };
}

/** The answer with a new token has its members next to those of the envelope. */
function toFresh(
  answer: WireToken & Partial<Record<'success' | 'message' | 'error', unknown>>,
): FreshToken {
  const { success: _, message: __, error: ___, ...wire } = answer;
  return { ...toShown(wire), value: wire.token };
}

function searchOf(query: Readonly<Record<string, string | number | undefined>>): URLSearchParams {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
}
