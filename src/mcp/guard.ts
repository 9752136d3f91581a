import * as z from 'zod/mini';
import { DEFAULT_BODY_TIMEOUT_MS } from '../bounds.ts';
import { notify } from '../events.ts';
import { readBytes } from '../http/body.ts';
import { HttpError } from '../http/errors.ts';
import {
  type Decided,
  Guard,
  type GuardedRequest,
  type GuardReason,
  type GuardRefusal,
  headerIn,
  type Presented,
  type Refused,
} from '../http/guard/guard.ts';
import { NodeMessage } from '../http/node/listener.ts';
import { oauthFailure } from '../http/oauth/failure.ts';
import { metadataUrlOf, resourceField } from '../http/protected-resource.ts';
import { fromFetch, type HttpMessage, isIncoming } from '../http/request.ts';
import { jsonResponse, toResponse, type WholeResponse } from '../http/responses.ts';
import { Reservation } from '../http/slots.ts';
import { once } from '../inputs/once.ts';
import { callback, checkOptions, fields, gotKind, strict } from '../inputs/schemas.ts';
import type { Scope, ScopeSet } from '../scope/index.ts';
import type { TokenService } from '../service.ts';
import type { Token } from '../token/record.ts';
import { FAULT_CODES, MessageFault, readMessage } from './message.ts';
import { MAX_CHALLENGE_LENGTH, Needs } from './needs.ts';

/** Bytes of one message to an MCP server. @bound */
export const MAX_MESSAGE_BYTES = 4_194_304;

/** Bytes of a message without a token, which is read to name the scope that it needs. @bound */
export const MAX_STRANGER_BYTES = 65_536;

/** The options of {@link mcpGuard}. */
export interface McpGuardOptions {
  /** The service that verifies. One with `verifierKeys()` is enough. */
  readonly tokens: TokenService;
  /** The domain of the server, as in the scopes. It has no other MCP server. Never a `Host` header. */
  readonly domain: string;
  /** The public URL of the server, as in `protectedResource`. */
  readonly resource: string;
  /**
   * The scopes of tools that need another one than `toolScope` gives, by the names of the tools. All of them
   * are on `domain`. @default every tool needs its `toolScope`
   */
  readonly tools?: Readonly<Record<string, Scope | string>> | undefined;
  /**
   * Methods that clients may call besides those that {@link mcpGuard} lists, such as `resources/read`: each
   * with the scope on `domain` that it needs, which is verified as that of a tool; or `true` if any live
   * token for this server may call it. @default none
   */
  readonly methods?: Readonly<Record<string, Scope | string | true>> | undefined;
  /** Returns the IP address that a request comes from, as in `bearerGuard`. @default none */
  clientAddress?(request: GuardedRequest): string | undefined;
  /** Called with each refusal, for the log; never with a value. What it throws is ignored. */
  readonly onRefusal?: ((refusal: McpRefusal) => void) | undefined;
  /** Called with the error of each token that cannot be checked, as in `bearerGuard`. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Why a request was refused. */
export type McpReason =
  | GuardReason
  /** The token is live, and for another server. */
  | 'other_server'
  /** Neither GET, POST nor DELETE. */
  | 'method_not_allowed'
  | 'payload_too_large'
  /** The body is not said to be JSON, or it has an encoding. */
  | 'unsupported_media_type'
  | 'invalid_json'
  /** A batch, or anything else that is not one message of JSON-RPC. */
  | 'invalid_message'
  /** A method without an entry in `methods`. */
  | 'unknown_method';

/** A refusal, for a log. */
export interface McpRefusal extends Omit<GuardRefusal, 'reason'> {
  /** The reason. The bearer does not learn the difference between a token that is not live and one for another server. */
  readonly reason: McpReason;
}

/** What the MCP SDKs take as `req.auth` (1.x) and `authInfo` (2.x). */
export interface AuthInfo {
  /** The value that was presented. */
  token: string;
  /** The account. Bind sessions to it. */
  clientId: string;
  /** The scopes on the domain of the server that the ancestors of the token leave. */
  scopes: string[];
  /** The expiry that the ancestors of the token leave, in UNIX seconds. Close streams then. */
  expiresAt: number;
  /** The public URL of the server. */
  resource: URL;
  /** Where the metadata of the server is. */
  resourceMetadataUrl: string;
  /** Facts about the token, for your tools: its id, its account and, if it has them, its name and its parent. */
  extra: { id: string; account: string; name?: string; parent?: string } & Record<string, unknown>;
}

/** The result of the guard: who calls, and the message for the SDK; or a response that refuses it. */
export type McpOutcome =
  | {
      readonly ok: true;
      /** For the SDK. */
      readonly auth: AuthInfo;
      /** The token, without its value. */
      readonly token: Token;
      /** The message, which the SDK must get as its parsed body; `undefined` for GET and DELETE. */
      readonly body: unknown;
      /** Whether the scopes of the token allow a call of this tool. Spends nothing. */
      readonly allows: (tool: string) => boolean;
      /** Only of a refusal. */
      readonly reason?: undefined;
      /** Only of a refusal. */
      readonly response?: undefined;
    }
  | {
      readonly ok: false;
      /** Only of an accepted request. */
      readonly auth?: undefined;
      /** Only of an accepted request. */
      readonly token?: undefined;
      /** Only of an accepted request. */
      readonly body?: undefined;
      /** Only of an accepted request. */
      readonly allows?: undefined;
      /** The reason, for you: the response tells the bearer less. */
      readonly reason: McpReason;
      /** The response to send. */
      readonly response: Response;
    };

/**
 * Accepts a request to an MCP server, or says how to refuse it.
 *
 * @param body what a parser of your framework has made of the body; if absent, the guard reads the request
 */
export type McpGuard = (request: GuardedRequest, body?: unknown) => Promise<McpOutcome>;

/**
 * Guards an MCP server over HTTP (revisions 2025-06-18, 2025-11-25 and 2026-07-28): a call of a tool needs a
 * token that covers the scope of that tool.
 *
 * Decides on the message alone, never on a header such as `Mcp-Name`. It reads the body, so the SDK must get
 * the `body` that it returns. Each `tools/call` spends a use of the token. These need a live token for this
 * server, from an allowed address, and spend nothing: `initialize`, `server/discover`, `ping`, all
 * notifications, the lists of tools, prompts, resources and templates, `subscriptions/listen`, answers of the
 * client, GET and DELETE. Other methods need an entry in `methods`. A token is for this server if it allows
 * anything that `POST:<domain>/tools` or a scope in `tools` or `methods` does.
 *
 * | case | answer |
 * | --- | --- |
 * | no Bearer token | 401, with the scope that is needed, and no error. For a message that needs none, the scopes of `tools` and `methods`, or `POST:<domain>/tools` |
 * | malformed, unknown, expired, revoked, suspended, or for another server | 401 `invalid_token`, the same for all, with the scopes for a first message |
 * | a call that is not covered | 403 `insufficient_scope`, with the scopes that the token holds on `domain` and the one that it needs |
 * | not allowed from this address, no use left, the store does not answer | 403, 429, 503, as `bearerGuard` |
 * | not JSON in UTF-8; a batch, or not a message; a method without an entry | 400, with the error -32700, -32600 or -32601 of JSON-RPC |
 * | a message of more than 4 MiB; another media type, or an encoding | 413; 415 |
 * | another method than GET, POST and DELETE | 405 |
 *
 * A message in which an object has a member twice, or one with the name `__proto__`, is not a message here:
 * programs read it in different ways.
 *
 * `tools/list` is up to you: make a server for each request, and leave out the tools that `allows` refuses.
 * In sessions, compare `auth.clientId` with that of the request that began the session, and answer 404 to
 * others.
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * const resource = 'https://shop.example/mcp';
 * const guard = mcpGuard({ tokens, domain: 'shop.example', resource });
 * const outcome = await guard(request);
 * if (!outcome.ok) return outcome.response;
 * console.log(outcome.auth.clientId, outcome.allows('refund'));
 */
export function mcpGuard(options: McpGuardOptions): McpGuard {
  const guard = new McpServerGuard(options);
  return (request, body) => guard.decide(request, body);
}

/** What a request asks for: a scope, or nothing but a live token for this server. */
interface Asked {
  readonly need?: Scope | undefined;
  readonly body?: unknown;
  /** It can only be refused, but the bearer learns why only with a live token. */
  readonly fault?: HttpError | MessageFault;
}

/** What a token with certain scopes may do here. */
interface Standing {
  /** On the domain of the server. */
  readonly held: ScopeSet;
  readonly isForServer: boolean;
}

const METHODS = ['GET', 'POST', 'DELETE'];
const JSON_TYPE = 'application/json';
const NOTHING: Asked = {};

class McpServerGuard {
  readonly #guard: Guard;
  readonly #tokens: Pick<TokenService, 'faultOf' | 'neededFor'>;
  readonly #needs: Needs;
  readonly #resource: string;
  readonly #onRefusal: ((refusal: McpRefusal) => void) | undefined;
  /** By the list of scopes, which is frozen: records with equal scopes share one. */
  readonly #standings = new WeakMap<readonly string[], Standing>();

  constructor(options: McpGuardOptions) {
    const read = checkOptions(mcpOptions(), options);
    const { tokens, domain, resource, tools, methods, clientAddress, ...calls } = read;
    const more = clientAddress && { clientAddress };
    this.#guard = new Guard({ tokens, domain, resource, ...calls, ...more });
    this.#tokens = tokens;
    this.#needs = new Needs(domain, tools ?? {}, methods ?? {});
    this.#resource = resource;
    this.#onRefusal = calls.onRefusal;
  }

  async decide(request: GuardedRequest, given: unknown): Promise<McpOutcome> {
    const presented = this.#guard.present(request);
    const { method = '' } = request;
    if (!METHODS.includes(method)) return this.#refuseAs(methodNotAllowed(), method);
    if ('reason' in presented) {
      const isMissing = presented.reason === 'missing';
      const scope = isMissing ? await this.#scopeForStranger(request, given) : undefined;
      return this.#refuse(presented, method, scope);
    }
    // Nobody makes this process read a large body with a value that is certainly not one.
    const isForged = this.#tokens.faultOf(presented.value) !== undefined;
    const asked = isForged ? NOTHING : await this.#read(request, given, MAX_MESSAGE_BYTES);
    return asked.need === undefined
      ? this.#welcome(presented, asked)
      : this.#verify(presented, asked, asked.need);
  }

  /** Of a token, nothing is needed but that it is live and for this server. */
  async #welcome(presented: Presented, asked: Asked): Promise<McpOutcome> {
    const { method = '' } = presented.request;
    const decided = await this.#identify(presented);
    if (!decided.ok) return this.#refuse(decided, method);
    if (asked.fault !== undefined) return this.#refuseAs(asked.fault, method);
    return this.#accept(presented, decided.token, asked.body);
  }

  async #verify(presented: Presented, { body }: Asked, scope: Scope): Promise<McpOutcome> {
    const { method = '' } = presented.request;
    const decided = await this.#guard.decideOn(presented, { scope });
    if (decided.ok) return this.#accept(presented, decided.token, body);
    const { needed } = decided;
    if (needed === undefined) return this.#refuse(decided, method);
    const identified = await this.#identify(presented);
    if (!identified.ok) return this.#refuse(identified, method);
    const { held } = this.#standingOf(identified.token);
    const all = held.union([needed]).toArray().join(' ');
    return this.#refuse(decided, method, all.length > MAX_CHALLENGE_LENGTH ? needed : all);
  }

  /** The live token of a value, if it is for this server. */
  async #identify(presented: Presented): Promise<Decided | Refused<'other_server'>> {
    const decided = await this.#guard.decideOn(presented, undefined);
    if (!decided.ok || this.#standingOf(decided.token).isForServer) return decided;
    return { ok: false, reason: 'other_server' };
  }

  #standingOf({ scopes }: Token): Standing {
    const known = this.#standings.get(scopes);
    if (known !== undefined) return known;
    const held = this.#needs.heldOf(scopes);
    const standing = { held, isForServer: this.#needs.isMet(held) };
    this.#standings.set(scopes, standing);
    return standing;
  }

  /** The scope that the message needs, as far as it can be read. */
  async #scopeForStranger(request: GuardedRequest, given: unknown): Promise<string | undefined> {
    const { need } = await this.#read(request, given, MAX_STRANGER_BYTES);
    return need === undefined ? this.#needs.entrance : this.#tokens.neededFor({ scope: need });
  }

  async #read(request: GuardedRequest, given: unknown, maxBytes: number): Promise<Asked> {
    if (request.method !== 'POST') return NOTHING;
    const limits = { maxBytes, timeoutMs: DEFAULT_BODY_TIMEOUT_MS };
    try {
      const source = messageOf(request, given);
      const bytes = await readBytes(source, JSON_TYPE, limits, new Reservation());
      const body = readMessage(textOf(bytes));
      return { body, need: this.#needs.of(body) };
    } catch (error) {
      if (error instanceof MessageFault || error instanceof HttpError) return { fault: error };
      throw error;
    }
  }

  #accept({ value }: Presented, token: Token, body: unknown): McpOutcome {
    const { id, account, name, parent, expiresAt } = token;
    const { held } = this.#standingOf(token);
    const auth: AuthInfo = {
      token: value,
      clientId: account,
      scopes: held.toArray(),
      expiresAt: Math.floor(expiresAt.getTime() / 1000),
      resource: new URL(this.#resource),
      resourceMetadataUrl: metadataUrlOf(this.#resource),
      extra: {
        id,
        account,
        ...(name !== undefined && { name }),
        ...(parent !== undefined && { parent }),
      },
    };
    const allows = (tool: string): boolean => {
      const scope = this.#needs.ofTool(tool);
      return scope !== undefined && held.covers(scope);
    };
    return { ok: true, auth, token, body, allows };
  }

  #refuse(
    refused: Refused | Refused<'other_server'>,
    method: string,
    // The same for every token that is not live, whatever is sent with it.
    scope = this.#needs.entrance,
  ): McpOutcome {
    const { reason } = refused;
    let failure: HttpError;
    if (reason === 'other_server') {
      this.#report({ reason });
      // The bearer learns no more than about an unknown token.
      failure = this.#guard.failureOf({ ok: false, reason: 'unknown' }, scope);
    } else {
      this.#guard.report(refused as Refused);
      failure = this.#guard.failureOf(refused as Refused, scope);
    }
    return {
      ok: false,
      reason,
      response: toResponse(oauthFailure(failure, { error: failure.code }), method),
    };
  }

  #refuseAs(fault: HttpError | MessageFault, method: string): McpOutcome {
    const isHttp = fault instanceof HttpError;
    const reason = (isHttp ? fault.code : fault.reason) as McpReason;
    this.#report({ reason });
    const isOfMessage = !isHttp || fault.code === 'invalid_json';
    const whole = isOfMessage
      ? rpcFault(reason as keyof typeof FAULT_CODES, fault)
      : oauthFailure(fault, { error: fault.code });
    return { ok: false, reason, response: toResponse(whole, method) };
  }

  #report(refusal: McpRefusal): void {
    if (this.#onRefusal !== undefined) notify(this.#onRefusal, refusal);
  }
}

function methodNotAllowed(): HttpError {
  const allow = METHODS.join(', ');
  return new HttpError('method_not_allowed', `the server takes ${allow}`, { headers: { allow } });
}

function rpcFault(
  reason: keyof typeof FAULT_CODES,
  { message, ...fault }: Pick<Error, 'message'> & { readonly id?: string | number | null },
): WholeResponse {
  const error = { code: FAULT_CODES[reason], message };
  const answer = jsonResponse(400, { jsonrpc: '2.0', id: fault.id ?? null, error });
  return { ...answer, failure: { code: reason } };
}

/** The headers and the body of a request. A parser of the host has decoded what it has read. */
function messageOf(request: GuardedRequest, given: unknown): HttpMessage {
  if (given !== undefined) {
    const body = typeof given === 'string' || given instanceof Uint8Array ? given : json(given);
    return {
      header: (name) => (name === 'content-type' ? headerIn(request, 'content-type') : undefined),
      body,
    };
  }
  if (isIncoming(request)) return new NodeMessage(request);
  if ('body' in request && request.body !== null) return fromFetch(request as Request);
  return { header: () => undefined, body: null };
}

/** Written and read again: nothing that the host keeps can change the message after the decision. */
function json(given: unknown): string {
  try {
    return JSON.stringify(given) ?? '';
  } catch {
    throw new MessageFault('invalid_json', 'the body must be JSON');
  }
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new MessageFault('invalid_json', 'the body must be JSON in UTF-8');
  }
}

const RECORD_RULE = 'must be an object with a scope for each name';

const mcpOptions = once(() =>
  strict({
    tokens: z.custom<TokenService>(
      (value) => value instanceof Object && 'identify' in value && 'decide' in value,
      { error: gotKind('tokens must be a TokenService') },
    ),
    domain: fields.domain(),
    resource: resourceField(),
    tools: z.optional(record<NonNullable<McpGuardOptions['tools']>>('tools')),
    methods: z.optional(record<NonNullable<McpGuardOptions['methods']>>('methods')),
    clientAddress: z.optional(
      callback<NonNullable<McpGuardOptions['clientAddress']>>(
        'clientAddress must be a function that returns an IP address',
      ),
    ),
    onRefusal: z.optional(callback<(refusal: McpRefusal) => void>('onRefusal must be a function')),
    onError: z.optional(callback<(error: unknown) => void>('onError must be a function')),
  }),
);

function record<Entries>(name: string): z.ZodMiniType<Entries> {
  const isRecord = (value: unknown) => Object.prototype.toString.call(value) === '[object Object]';
  return z.custom<Entries>(isRecord, { error: gotKind(`${name} ${RECORD_RULE}`) });
}
