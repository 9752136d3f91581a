import type * as z from 'zod/mini';
import type { Need } from '../access/need.ts';
import { isTokenError } from '../errors.ts';
import { readInput } from '../inputs/schemas.ts';
import type {
  DeriveInput,
  IssueInput,
  ModifyInput,
  PatchInput,
  RotateOptions,
  ScopeDetails,
} from '../inputs/types.ts';
import { getOrMake } from '../scope/collections.ts';
import { parseScope } from '../scope/index.ts';
import type { TokenService } from '../service.ts';
import { nextTurn } from '../time/deadline.ts';
import { performance } from '../time/timers.ts';
import { type IssuedToken, recordBytes, type Token, type TokenPage } from '../token/record.ts';
import { listBytes } from '../token/size.ts';
import { invalidBearer, refusedBearer } from './bearer.ts';
import {
  type BodySchemas,
  fromLegacyBody,
  inLegacyWords,
  refuseExpireNumber,
  refuseMember,
  toInput,
  withLegacyHint,
} from './bodies.ts';
import { HttpError, overloaded, revocationUnconfirmed } from './errors.ts';
import { introspect, revoke } from './introspection.ts';
import type { Form } from './oauth/form.ts';
import { type OAuthOptions, tokenEndpoint } from './oauth/token-endpoint.ts';
import { type PublicFile, publicFile } from './public-file.ts';
import { type Filter, QUERIES, withoutEmpty, withQuery } from './query.ts';
import type { HttpRequest } from './request.ts';
import { type HttpResponse, succeed, succeedWithList } from './responses.ts';
import type { Reservation } from './slots.ts';
import {
  toWire,
  toWireAdvice,
  toWireFinding,
  toWireRotated,
  toWireScopes,
  toWireUsage,
  toWireWithUse,
  type WireExplanation,
} from './wire.ts';

/** Milliseconds after which `GET /token` without a `limit` ends with an empty page, or one by name or use. @bound */
export const LISTING_BUDGET_MS = 50;

/** Bytes of the scopes, metadata and limits in one answer to `GET /token`, as a record counts them. @bound */
export const MAX_LISTED_BYTES = 1_048_576;

/** Tokens in one answer to `GET /token` without a `limit`. @bound */
export const MAX_LISTED_TOKENS = 10_000;

/** Tokens that `GET /token` without a `limit` asks the library for in one call. @bound */
export const LISTED_BATCH = 500;

/** A call that has passed all checks but those of its verb. */
export interface ResourceCall {
  /** Empty for calls without credentials. */
  readonly account: string;
  /** Who calls for the account, if the host names people. */
  readonly user: string | undefined;
  /** The value or id in the path, or the Bearer value; empty without one. */
  readonly token: string;
  /** The user code in the path; empty without one. */
  readonly code: string;
  /** The parsed JSON, or the parameters of a form. */
  readonly body: unknown;
  readonly query: URLSearchParams;
  readonly request: HttpRequest;
  /** The IP address that the call comes from, if the host tells it. */
  readonly address: string | undefined;
  readonly slots: Reservation;
}

export type Verb = (call: ResourceCall) => Promise<HttpResponse>;

/** The bytes of a token in a response that {@link recordBytes} does not count. */
const WIRE_BYTES = 320;
/** The bytes of the use of a scope in a response, without the scope. */
const USE_BYTES = 64;
/** More than an entity tag can name. */
const NO_VERSION = Number.MAX_SAFE_INTEGER;

/** The options of the handler that change its verbs. */
interface ResourceOptions {
  readonly acceptLegacyBody?: boolean | undefined;
  readonly oauth?: OAuthOptions | undefined;
}

/** The verbs of the service over HTTP. */
export class TokenResources {
  readonly #tokens: TokenService;
  readonly #schemas: BodySchemas;
  readonly #acceptLegacyBody: boolean;
  readonly #tokenEndpoint: ReturnType<typeof tokenEndpoint>;
  /** The JSON of a token in answers to reads, which alone have its use. */
  readonly #toWire: typeof toWire;
  /** The answers to `GET /scopes`, which are the same for all who share a catalog. */
  readonly #scopeFiles = {
    all: new WeakMap<ScopeDetails, PublicFile>(),
    texts: new WeakMap<ScopeDetails, PublicFile>(),
  };

  constructor(
    tokens: TokenService,
    schemas: BodySchemas,
    { acceptLegacyBody = false, oauth }: ResourceOptions,
  ) {
    this.#tokens = tokens;
    this.#schemas = schemas;
    this.#acceptLegacyBody = acceptLegacyBody;
    this.#tokenEndpoint = tokenEndpoint(tokens, oauth);
    this.#toWire = tokens.recordsUsage ? toWireWithUse : toWire;
  }

  readonly issue: Verb = ({ account, user, body }) =>
    this.#create<IssueInput>('create', body, (input) =>
      this.#tokens.issue({ ...input, account, createdBy: user }),
    );

  readonly derive: Verb = ({ token: value, body, address }) =>
    this.#create<DeriveInput>('derive', body, (input) =>
      this.#tokens.derive(value, input, { address }).catch(throwBearerError),
    );

  async #create<Input>(
    kind: 'create' | 'derive',
    body: unknown,
    create: (input: Input) => Promise<IssuedToken>,
  ): Promise<HttpResponse> {
    const members = this.#acceptLegacyBody ? fromLegacyBody(body) : body;
    refuseExpireNumber(members);
    try {
      const token = await create(toInput<Input>(this.#schemas[kind](), required(members)));
      return succeed(toWire(token), etag(token));
    } catch (error) {
      throw this.#acceptLegacyBody ? inLegacyWords(error, body) : withLegacyHint(error, body);
    }
  }

  readonly list: Verb = async ({ account, query, slots }) => {
    const { filter, tokens, cursor } = await withQuery(QUERIES.list(), query, async (asked) => {
      const filter = withoutEmpty(asked);
      const needsUses = filter.unused !== undefined || filter.sort === 'lastUsed';
      if (needsUses && !this.#tokens.recordsUsage) throw notRecorded();
      return { filter, ...(await this.#page(account, filter)) };
    });
    if (!slots.holdBytes(bytesOf(tokens) + tokens.length * WIRE_BYTES)) throw overloaded();
    return pageOf(tokens, this.#toWire, { ...linkable(filter), cursor });
  };

  readonly get: Verb = async ({ account, token, query, slots }) => {
    const found = await withQuery(QUERIES.get(), query, (options) =>
      this.#tokens.get(account, token, options),
    );
    if (found === undefined) throw notFound();
    if (!slots.holdBytes(recordBytes(found))) throw overloaded();
    return succeed({ data: [this.#toWire(found)] }, etag(found));
  };

  readonly usage: Verb = async ({ account, token, slots }) => {
    if (!this.#tokens.recordsUsage) throw notRecorded();
    const usage = await this.#tokens.usage(account, token);
    if (usage === undefined) throw notFound();
    const bytes = usage.scopes.reduce((sum, { scope }) => sum + scope.length + USE_BYTES, 0);
    if (!slots.holdBytes(bytes)) throw overloaded();
    return succeed({ data: toWireUsage(usage) });
  };

  readonly advice: Verb = async ({ account, token, query, slots }) => {
    const advice = await withQuery(QUERIES.advice(), query, async (options) => {
      if (!this.#tokens.recordsUsage) throw notRecorded();
      return this.#tokens.advise(account, token, options);
    });
    if (advice === undefined) throw notFound();
    const { unused, kept } = advice;
    if (!slots.holdBytes(listBytes(unused) + listBytes(kept))) throw overloaded();
    return succeed({ data: toWireAdvice(advice) });
  };

  readonly explain: Verb = async ({ account, token, body }) => {
    const need = readInput(this.#schemas.explain(), required(body, '{"scope": "…"}'));
    const explanation = await this.#tokens.explain(account, token, need as Need);
    if (explanation.reason === 'unknown') throw notFound();
    return succeed({ data: explanation satisfies WireExplanation });
  };

  readonly review: Verb = async ({ account, query, slots }) => {
    const { days, findings, cursor } = await withQuery(QUERIES.review(), query, async (asked) => {
      const { cursor: _, ...days } = asked;
      return { days, ...(await this.#tokens.reviewPage({ account, ...asked })) };
    });
    const bytes = findings.reduce(
      (sum, { scopes, token }) => sum + listBytes(scopes) + recordBytes(token) + WIRE_BYTES,
      0,
    );
    if (!slots.holdBytes(bytes)) throw overloaded();
    return pageOf(findings, (each) => toWireFinding(each, this.#toWire), { ...days, cursor });
  };

  readonly replace: Verb = (call) => this.#change(call, this.#schemas.replace(), 'modify');

  readonly patch: Verb = (call) => this.#change(call, this.#schemas.patch(), 'patch');

  readonly revoke: Verb = async (call) => {
    const { account, token, query } = call;
    const conditions = await this.#conditions(call);
    const isRevoked = await withQuery(QUERIES.revoke(), query, (options) =>
      this.#tokens
        .revoke(account, token, { ...options, ...conditions })
        .catch(throwRevocationError),
    );
    if (!isRevoked) throw notFound();
    return succeed({ data: null });
  };

  readonly rotate: Verb = async (call) => {
    const { account, token, body = {} } = call;
    const options = toInput<RotateOptions>(this.#schemas.rotate(), body);
    const conditions = await this.#conditions({ ...call, body }, this.#schemas.rotate());
    // With `cancel`, the token has no value.
    const rotated: Token = await this.#tokens.rotate(account, token, { ...options, ...conditions });
    return succeed(toWireRotated(rotated), etag(rotated));
  };

  readonly scopes: Verb = async ({ account, query, request }) => {
    const details = await withQuery(QUERIES.scopes(), query, async (asked) => asked.details);
    const all = await this.#tokens.scopeDetails(account);
    const file = getOrMake(this.#scopeFiles[details === true ? 'all' : 'texts'], all, () =>
      privateJson(
        details === true ? toWireScopes(all) : { data: all.scopes.map(({ scope }) => scope) },
      ),
    );
    return file(request);
  };

  readonly introspect: Verb = ({ body }) => introspect(this.#tokens, body as Form);

  readonly revokeByValue: Verb = ({ body }) => revoke(this.#tokens, body as Form);

  readonly grant: Verb = ({ body, request, address }) =>
    this.#tokenEndpoint({
      form: body as Form,
      authorization: request.header('authorization'),
      address,
    });

  async #change(
    call: ResourceCall,
    schema: z.ZodMiniObject,
    verb: 'modify' | 'patch',
  ): Promise<HttpResponse> {
    const { account, token, body, query } = call;
    const options = await withQuery(QUERIES.change(), query, async (asked) => asked);
    refuseMember(
      body,
      'ttl',
      'the expiry of an existing token is expire, or expiresIn such as "30d"',
    );
    const change = toInput<ModifyInput & PatchInput>(schema, required(body));
    const conditions = await this.#conditions(call, schema);
    const changed = await this.#tokens[verb](account, token, change, { ...options, ...conditions });
    const { diff } = changed;
    // No token has the version of a change that was not made.
    if (diff !== undefined) return succeed({ data: [toWire(changed)], diff });
    return succeed({ data: [toWire(changed)] }, etag(changed));
  }

  /** One page if a limit or a cursor is given, else all tokens, up to a number and a size. */
  async #page(account: string, { limit, cursor, ...filter }: Filter): Promise<TokenPage> {
    if (limit !== undefined || cursor !== undefined) {
      return this.#tokens.list({ account, ...filter, limit, cursor });
    }
    const tokens: Token[] = [];
    const end = performance.now() + LISTING_BUDGET_MS;
    let maxBytes = MAX_LISTED_BYTES;
    let next: string | undefined;
    for (;;) {
      const input = { account, ...filter, limit: LISTED_BATCH, maxBytes, cursor: next };
      const page = await this.#tokens.list(input);
      tokens.push(...page.tokens);
      next = page.cursor;
      maxBytes -= bytesOf(page.tokens);
      const { length } = page.tokens;
      if (next === undefined || maxBytes <= 0 || tokens.length >= MAX_LISTED_TOKENS) break;
      // A short page has no room for the next token; an empty one has only ended its search early.
      if (length > 0 && length < LISTED_BATCH) break;
      if ((length === 0 || isCostly(filter)) && performance.now() >= end) break;
      // A local store answers in the same turn, and other calls need one.
      await nextTurn();
    }
    return next === undefined ? { tokens } : { tokens, cursor: next };
  }

  /**
   * The version that `If-Match` asks for: of several, the one that the token has now. If none can be the
   * token's, the service finds that out in its turn.
   */
  async #conditions(
    { request, account, token, body }: ResourceCall,
    schema?: z.ZodMiniObject,
  ): Promise<{ readonly ifVersion?: number }> {
    const header = request.header('if-match')?.trim();
    if (header === undefined || header === '*') return {};
    const versions = versionsOf(header);
    if (versions !== undefined && versions.length <= 1) {
      return { ifVersion: versions[0] ?? NO_VERSION };
    }
    // A bad body must be reported first, and the service would check it too late.
    if (schema !== undefined) readInput(schema, body);
    if (versions === undefined) {
      throw new HttpError(
        'invalid_request',
        'If-Match must be like "1", a list of such tags, or *',
      );
    }
    const found = await this.#tokens.get(account, token);
    const isNamed = found !== undefined && versions.includes(found.version);
    return { ifVersion: isNamed ? found.version : NO_VERSION };
  }
}

/** Whether each page reads all tokens again. */
function isCostly({ sort }: Filter): boolean {
  return sort === 'name' || sort === 'lastUsed';
}

/** The bytes of tokens that count towards the size of a list. */
function bytesOf(tokens: readonly Token[]): number {
  return tokens.reduce((bytes, token) => bytes + recordBytes(token), 0);
}

/** The parameters of a filter for a link, with the scope in canonical form. */
function linkable({ scope, cursor: _, ...filter }: Filter) {
  return { scope: scope?.map((text) => parseScope(text).toString()), ...filter };
}

type QueryValue = string | number | readonly string[] | undefined;

/** A page of a list. The link to the next one has the query of this page with its cursor. */
function pageOf<Item>(
  items: readonly Item[],
  toJson: (item: Item) => unknown,
  {
    cursor,
    ...query
  }: Readonly<Record<string, QueryValue>> & { readonly cursor?: string | undefined },
): HttpResponse {
  if (cursor === undefined) return succeedWithList(items, toJson);
  const next = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...query, cursor })) {
    for (const each of value === undefined ? [] : [value].flat()) next.append(name, String(each));
  }
  return succeedWithList(items, toJson, { cursor }, { link: `<?${next}>; rel="next"` });
}

function required(body: unknown, example = '{"scopes": ["…"]}'): unknown {
  if (body !== undefined) return body;
  throw new HttpError('invalid_json', `a JSON body is required, as ${example}`);
}

function notRecorded(): HttpError {
  return new HttpError('usage_not_recorded', 'this service does not record how tokens are used');
}

export function notFound(): HttpError {
  return new HttpError('not_found', 'this account has no such token');
}

/** The value may have ended since it was checked. */
function throwBearerError(error: unknown): never {
  if (!isTokenError(error) || error.code !== 'invalid_token') throw error;
  throw refusedBearer(error, invalidBearer);
}

/** Gives a revocation that a failover may undo a code of its own, since the caller has to know. */
function throwRevocationError(error: unknown): never {
  if (!isTokenError(error) || error.code !== 'durability_unconfirmed') throw error;
  throw revocationUnconfirmed(error);
}

/** The entity tag of a token, as a header. */
function etag({ version }: Token): Record<string, string> {
  return { etag: `"${version}"` };
}

/**
 * The versions that an `If-Match` lists (RFC 9110 section 13.1.1); `undefined` if it is not a list of
 * entity tags. Tags that no version of a token has are left out.
 *
 * Weak tags and bare numbers count, although the RFC asks for strong comparison: gateways that compress
 * responses weaken the tags in them, and a token has one representation for each version, so a weak tag
 * names it as well as a strong one. Without them, a correct client behind such a gateway would read and
 * be refused again and again.
 */
function versionsOf(header: string): readonly number[] | undefined {
  const versions: number[] = [];
  let count = 0;
  for (let at = 0; at < header.length; ) {
    LISTED_TAG.lastIndex = at;
    const [all, tag] = LISTED_TAG.exec(header) ?? [];
    if (all === undefined) return undefined;
    at += all.length;
    if (tag === undefined) continue;
    count += 1;
    const version = /^(?:W\/)?"?([1-9]\d{0,14})"?$/.exec(tag)?.[1];
    if (version !== undefined) versions.push(Number(version));
  }
  return count === 0 ? undefined : versions;
}

/** One element of a list, which may be empty: an entity tag, or the bare number of a version. */
const LISTED_TAG = /[\t ]*(?:((?:W\/)?"[!\x23-\x7e\x80-\xff]*"|[1-9]\d{0,14})[\t ]*)?(?:,|$)/y;

/** A success that browsers may keep, and have to ask for again each time. */
function privateJson(members: object): PublicFile {
  return publicFile(String(succeed(members).body), {
    'content-type': 'application/json',
    'cache-control': 'private, no-cache',
  });
}
