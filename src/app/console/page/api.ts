import {
  ApiError,
  type Send,
  type SentRequest,
  ServiceClient,
  tokenOf,
  unreachable,
} from '../../../http/client.ts';
import type {
  Answers,
  WireAdvice,
  WireExplanation,
  WireFinding,
  WirePermission,
  WirePreset,
  WireRequest,
  WireScopeDetail,
  WireToken,
  WireUsage,
} from '../../../http/wire.ts';
import type { AskedLimits } from './limits-draft.ts';
import type { NewToken } from './new-token-draft.ts';
import { basicSession, HOST_SESSION, type Session } from './session.ts';

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
  readonly scope?: string;
  readonly domain?: string;
  readonly createdBy?: string;
  readonly unused?: string;
  readonly sort?: string;
  readonly cursor?: string;
  readonly limit: number;
}

/** The body of `PATCH /token/{id}`. */
export interface TokenChange {
  readonly scopes?: readonly string[];
  readonly removeScopes?: readonly string[];
  readonly name?: string | null;
  readonly expire?: string;
  readonly expiresIn?: string;
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

/** The body of `POST /request/{code}/approve`. */
export interface Approval {
  readonly scopes: readonly string[];
  readonly ttl: number;
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
  readonly #client: ServiceClient;

  constructor({ base, session, renew }: ApiOptions) {
    let current = session;
    this.#client = new ServiceClient({
      async send(path, init) {
        const used = current;
        const answer = await sendAs(used, base)(path, init);
        if (answer.status !== 401 || 'authorization' in init.headers) return answer;
        // Somebody may have signed in again while this call was on its way.
        if (current === used) current = await renew();
        return sendAs(current, base)(path, init);
      },
    });
  }

  async list(query: ListQuery): Promise<TokenPage> {
    const { data, cursor } = await this.#client.call('GET /token', { query: { ...query } });
    return { tokens: data.map(toShown), ...(cursor !== undefined && { cursor }) };
  }

  /** A token in any state, even if somebody has revoked it meanwhile. */
  async get(id: string): Promise<ShownToken> {
    const call = { token: id, query: { state: 'all' } };
    return shownIn(await this.#client.call('GET /token/{token}', call));
  }

  /** The value of a token, from a service that can show it again. */
  async reveal(id: string): Promise<string> {
    const { data } = await this.#client.call('GET /token/{token}', { token: id });
    return onlyOf(data).token;
  }

  async issue(body: NewToken): Promise<FreshToken> {
    return toFresh(await this.#client.call('POST /token', { body }));
  }

  /** Makes a token from the one that has this value. */
  async derive(value: string, body: NewToken): Promise<FreshToken> {
    return toFresh(await this.#client.call('POST /token/derive', { bearer: value, body }));
  }

  /** Refused with `version_conflict` if the token is no longer the one that was shown. */
  async patch({ id, version }: ShownToken, body: TokenChange): Promise<ShownToken> {
    const call = { token: id, body, ifVersion: version };
    return shownIn(await this.#client.call('PATCH /token/{token}', call));
  }

  async rotate({ id, version }: ShownToken, body: Rotation): Promise<FreshToken> {
    const call = { token: id, body, ifVersion: version };
    return toFresh(await this.#client.call('POST /token/{token}/rotate', call));
  }

  /** Drops a new value that waits for its first use. */
  async cancelRotation({ id, version }: ShownToken): Promise<void> {
    const call = { token: id, body: { cancel: true }, ifVersion: version };
    await this.#client.call('POST /token/{token}/rotate', call);
  }

  /** A token that is gone already is as good as revoked. */
  async revoke({ id, version }: ShownToken): Promise<void> {
    try {
      await this.#client.call('DELETE /token/{token}', { token: id, ifVersion: version });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'not_found') throw error;
    }
  }

  async usage(id: string): Promise<WireUsage> {
    return (await this.#client.call('GET /token/{token}/usage', { token: id })).data;
  }

  async advice(id: string): Promise<WireAdvice> {
    return (await this.#client.call('GET /token/{token}/advice', { token: id })).data;
  }

  async explain(id: string, body: Question): Promise<WireExplanation> {
    const call = { token: id, body };
    return (await this.#client.call('POST /token/{token}/explain', call)).data;
  }

  async review(cursor?: string): Promise<FindingPage> {
    const answer = await this.#client.call('GET /review', { query: { cursor } });
    const findings = answer.data.map((found) => ({ ...found, token: toShown(found.token) }));
    return { findings, ...(answer.cursor !== undefined && { cursor: answer.cursor }) };
  }

  /** The request for a token that has this code. */
  async request(code: string): Promise<WireRequest> {
    return (await this.#client.call('GET /request/{code}', { code })).data;
  }

  async approve(code: string, body: Approval): Promise<WireRequest> {
    return (await this.#client.call('POST /request/{code}/approve', { code, body })).data;
  }

  async deny(code: string): Promise<void> {
    await this.#client.call('POST /request/{code}/deny', { code, body: {} });
  }

  /** What this account may choose from. */
  async choices(): Promise<Choices> {
    const answer = await this.#client.call('GET /scopes', { query: { details: true } });
    const { data, permissions = [], presets = [] } = answer;
    const scopes = data.map((one) => (typeof one === 'string' ? { scope: one } : one));
    return { scopes, permissions, presets };
  }
}

/** The scopes that an account may ask for, with their words, their permissions and the presets. */
export interface Choices {
  readonly scopes: readonly WireScopeDetail[];
  readonly permissions: readonly WirePermission[];
  readonly presets: readonly WirePreset[];
}

/** The choices for a token that may have no more than these scopes. */
export function choicesAmong({ scopes, permissions }: Choices, held: readonly string[]): Choices {
  const words = new Map(scopes.map((detail) => [detail.scope, detail]));
  const isHeld = new Set(held);
  const among = (list: readonly string[]) => list.filter((scope) => isHeld.has(scope));
  return {
    scopes: held.map((scope) => words.get(scope) ?? { scope }),
    permissions: permissions.flatMap((permission) => {
      const write = among(permission.write);
      return write.length === 0 ? [] : { ...permission, read: among(permission.read), write };
    }),
    presets: [],
  };
}

/** The abilities of a service, as its OpenAPI document describes them. */
export interface Abilities {
  /** Whether it takes a user name and a password. */
  readonly takesPassword: boolean;
  /** Whether it takes a session of the host. */
  readonly takesSession: boolean;
  /** Whether the service keeps people signed in by itself, with a cookie. */
  readonly keepsSession: boolean;
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
  const client = new ServiceClient({ send: sendAs({ kind: 'host' }, base) });
  const document: ServiceDocument = await client.call('GET /openapi.json');
  const schemes = Object.values(document.components?.securitySchemes ?? {});
  const paths = Object.keys(document.paths ?? {});
  const body = bodyOf(document);
  return {
    takesPassword: schemes.some(({ type, scheme }) => type === 'http' && scheme === 'basic'),
    takesSession: schemes.some(({ type, name }) => type === 'apiKey' && name === 'x-tokenwright'),
    keepsSession: paths.includes('/session'),
    takesLimits: body?.['limits'] !== undefined,
    maxSeconds: body?.['ttl']?.maximum,
    listsChildren: parametersOf(document).some(({ name }) => name === 'parent'),
    has: (path) => paths.includes(path),
  };
}

/** Whether programs can ask for tokens that somebody then approves. */
export function takesRequests({ has }: Pick<Abilities, 'has'>): boolean {
  return has('/request/{code}');
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

/** Where people sign in, and how. */
export interface Door {
  /** The address of the service. */
  readonly base: string;
  readonly abilities: Pick<Abilities, 'keepsSession'>;
}

/** The session that the browser has a cookie of; `undefined` without one. @throws {ApiError} */
export function findSession({ base, abilities }: Door): Promise<Session | undefined> {
  return abilities.keepsSession
    ? askSession(base, 'GET', HOST_SESSION)
    : checkSession(base, HOST_SESSION);
}

/**
 * Signs in with a password. A service that keeps sessions gets the password once, and then the page
 * forgets it. `noCookie` if the browser does not keep the cookie.
 *
 * @throws {ApiError} if the service cannot check the password
 */
export async function signInWith(
  { base, abilities }: Door,
  username: string,
  password: string,
): Promise<Session | 'refused' | 'noCookie'> {
  const basic = basicSession(username, password);
  if (!abilities.keepsSession) return (await checkSession(base, basic)) ?? 'refused';
  const session = await askSession(base, 'POST', basic);
  if (session === undefined) return 'refused';
  return (await askSession(base, 'GET', session)) ?? 'noCookie';
}

/** The same session with a renewed cookie; `undefined` if it has ended. @throws {ApiError} */
export async function renewSession(base: string, session: Session): Promise<Session | undefined> {
  return session.kind === 'own' ? askSession(base, 'GET', session) : undefined;
}

/** Ends a session; one that has ended already is as good. @throws {ApiError} */
export async function endSession(base: string, session: Session): Promise<void> {
  if (session.kind === 'own') await askSession(base, 'DELETE', session);
}

/** Makes a call about the session; `undefined` if nobody is signed in. */
function askSession(
  base: string,
  method: 'POST' | 'GET' | 'DELETE',
  session: Session,
): Promise<Session | undefined> {
  return asSession(base, session, async (client) => {
    const { data } = await client.call(`${method} /session`);
    return data === null ? HOST_SESSION : { kind: 'own', username: data.username };
  });
}

/**
 * Checks a session with the service; `undefined` if the service refuses it. A session of a host
 * gets the account that it belongs to.
 *
 * @throws {ApiError} if the service cannot check it
 */
export function checkSession(base: string, session: Session): Promise<Session | undefined> {
  return asSession(base, session, async (client) => {
    await client.call('GET /token', { query: { limit: 1 } });
    // Always a new object, by which refused calls notice that they can try again.
    return { ...session };
  });
}

async function asSession(
  base: string,
  session: Session,
  ask: (client: ServiceClient) => Promise<Session>,
): Promise<Session | undefined> {
  let account: string | null = null;
  const send = sendAs(session, base);
  const client = new ServiceClient({
    async send(path, init) {
      const answer = await send(path, init);
      account = answer.headers.get(ACCOUNT_HEADER);
      return answer;
    },
  });
  try {
    const opened = await ask(client);
    return { ...opened, ...(opened.kind !== 'basic' && account !== null && { account }) };
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return undefined;
    throw error;
  }
}

/** Names the account that opened the page. The service refuses the session of another account. */
const ACCOUNT_HEADER = 'x-tokenwright-account';

/** Sends calls to a service, with a session. */
function sendAs(session: Session, base: string): Send {
  return async (path, init) => {
    try {
      return await fetch(base + path, requestAs(session, path, init));
    } catch {
      throw unreachable();
    }
  };
}

/** A call by the value of a token goes without the session. */
function requestAs(session: Session, path: string, init: SentRequest): RequestInit {
  const headers = new Headers(init.headers);
  const isByValue = headers.has('authorization');
  headers.set('x-tokenwright', 'console');
  if (session.kind === 'basic') {
    if (!isByValue) headers.set('authorization', session.authorization);
  } else if (!isByValue && session.account !== undefined) {
    headers.set(ACCOUNT_HEADER, session.account);
  }
  // The answer to a password may hold the cookie of a session.
  const takesCookie = !isByValue && (session.kind !== 'basic' || path === '/session');
  // Omitting cookies also keeps the browser from opening its own dialog for passwords.
  const credentials = takesCookie ? 'same-origin' : 'omit';
  return { ...init, headers, credentials, cache: 'no-store', redirect: 'error' };
}

function onlyOf(tokens: readonly WireToken[]): WireToken {
  const [token] = tokens;
  if (token === undefined) throw unreachable();
  return token;
}

function shownIn({ data }: { readonly data: readonly WireToken[] }): ShownToken {
  return toShown(onlyOf(data));
}

function toShown({ token, ...rest }: WireToken): ShownToken {
  return { ...rest, isReadable: token !== rest.id };
}

function toFresh(answer: Answers['IssuedToken']): FreshToken {
  const token = tokenOf(answer);
  return { ...toShown(token), value: token.token };
}
