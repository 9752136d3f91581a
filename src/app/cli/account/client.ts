import { MAX_WIRE_PAGE_TOKENS } from '../../../bounds.ts';
import {
  type AnswerTo,
  ApiError,
  type Call,
  type ClientOptions,
  ServiceClient,
  tokenOf,
  unreachable,
} from '../../../http/client.ts';
import type { RouteName } from '../../../http/routes.ts';
import type {
  Answers,
  WireAdvice,
  WireExplanation,
  WireFinding,
  WirePermission,
  WireToken,
  WireUsage,
} from '../../../http/wire.ts';
import type {
  AdviseOptions,
  ChangeOptions,
  DeriveInput,
  GetOptions,
  IssueInput,
  ListInput,
  PatchInput,
  ReviewInput,
  RevocationPreview,
  RevokeOptions,
  RotateOptions,
} from '../../../index.ts';
import type { ScopeDiff, ScopeRequest } from '../../../scope/index.ts';
import { CliError, usageError } from '../../terminal/errors.ts';

/** A token that a command asks for. */
export type NewToken = Omit<IssueInput, 'account'> & DeriveInput;

export type TokenFilter = Pick<
  ListInput,
  'match' | 'state' | 'name' | 'parent' | 'domain' | 'unused' | 'createdBy' | 'sort'
> & {
  readonly scope?: string | undefined;
  readonly limit: number;
};

export type IfVersion = Pick<ChangeOptions, 'ifVersion'>;

/** The need of a request, as a command states it. */
export type WrittenNeed = { readonly scope: string } | ScopeRequest;

export type Verification =
  | {
      readonly ok: true;
      readonly grantedBy: string;
      readonly token: {
        readonly id?: string | undefined;
        readonly account?: string | undefined;
        readonly expire?: number | undefined;
      };
    }
  | {
      readonly ok: false;
      readonly reason: string;
      /** Why a text is not a value of the service. Only a store tells it: a bearer never learns it. */
      readonly detail?: string | undefined;
      readonly needed?: string | undefined;
    };

/** The thresholds of a review, in days. */
export type ReviewDays = Pick<
  ReviewInput,
  'unusedForDays' | 'expiringWithinDays' | 'secretOlderThanDays'
>;

export interface Listing {
  readonly tokens: readonly WireToken[];
  /** Whether the list is complete. */
  readonly isWhole: boolean;
}

/** A way to the tokens of an account: to the handler of a service, here or over the network. */
export interface Connection extends ClientOptions {
  /** Names the account and where its tokens are, for people. */
  readonly name: string;
  /** The id of a token, of which a person gave the id or the value. */
  idOf(operand: string): string | Promise<string>;
  /** Says why a call failed. */
  toError(failure: ApiError): Error;
  /** @param address where the request comes from, for a token that is limited to addresses */
  verify(value: string, need: WrittenNeed, address?: string): Promise<Verification>;
  /** Absent if only one token can be revoked at a time. */
  readonly bulk?: BulkRevocation;
}

/** Revokes all tokens of the account, or all that a person made. */
interface BulkRevocation {
  revoke(createdBy: string | undefined): Promise<number>;
  preview(createdBy: string | undefined): Promise<RevocationPreview>;
}

/** Visible ASCII alone: what a hostile service sends goes to the terminal. */
const VALUE = /^[a-z0-9_]{1,40}_[0-9A-Za-z]{58}$/;

/**
 * The tokens of one account. A method that takes an id rejects with an {@link ApiError} `not_found` if the
 * account has no such token, and `derive` with `invalid_token`.
 */
export class TokenClient {
  readonly #connection: Connection;
  readonly #service: ServiceClient;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#service = new ServiceClient(connection);
  }

  get name(): string {
    return this.#connection.name;
  }

  async issue(token: NewToken): Promise<WireToken> {
    return this.#made(await this.#call('POST /token', { body: bodyOf(token) }));
  }

  /** Makes a token from the one of a value. */
  async derive(value: string, token: NewToken): Promise<WireToken> {
    // A header cannot have other characters, and no value has any.
    if (!/^[\x21-\x7e]+$/.test(value)) throw new ApiError('invalid_token', '');
    const call = { bearer: value, body: bodyOf(token) };
    return this.#made(await this.#call('POST /token/derive', call));
  }

  /** Reads page after page, until there are enough tokens or no more. */
  async list({ limit, ...filter }: TokenFilter): Promise<Listing> {
    const tokens: WireToken[] = [];
    let cursor: string | undefined;
    do {
      // All in as few pages as possible: a service that sorts by name or use reads all of them for each.
      const isWide = limit === Number.POSITIVE_INFINITY && cursor === undefined;
      const size = isWide ? limit : Math.min(limit - tokens.length, MAX_WIRE_PAGE_TOKENS);
      const query = { ...filter, ...(!isWide && { limit: size }), cursor };
      const page = await this.#page(this.#call('GET /token', { query }), cursor);
      if (page.data.length > size) throw this.#unbelievable();
      tokens.push(...page.data.map(toShown));
      cursor = page.cursor;
    } while (cursor !== undefined && tokens.length < limit);
    return { tokens, isWhole: cursor === undefined };
  }

  async get(operand: string, { state }: GetOptions): Promise<WireToken> {
    return shownIn(await this.#about('GET /token/{token}', operand, { query: { state } }));
  }

  async usage(operand: string): Promise<WireUsage> {
    return (await this.#about('GET /token/{token}/usage', operand)).data;
  }

  async advise(operand: string, { unusedForDays }: AdviseOptions): Promise<WireAdvice> {
    const call = { query: { unusedForDays } };
    return (await this.#about('GET /token/{token}/advice', operand, call)).data;
  }

  /** All findings, page after page. */
  async *review(days: ReviewDays): AsyncGenerator<WireFinding> {
    let cursor: string | undefined;
    do {
      const query = { ...days, cursor };
      const page = await this.#page(this.#call('GET /review', { query }), cursor);
      yield* page.data;
      cursor = page.cursor;
    } while (cursor !== undefined);
  }

  async explain(operand: string, body: WrittenNeed): Promise<WireExplanation> {
    return (await this.#about('POST /token/{token}/explain', operand, { body })).data;
  }

  /** The permissions of the catalog, for words beside scopes; none if they cannot be known. */
  async permissions(): Promise<readonly WirePermission[]> {
    try {
      return (await this.choices()).permissions ?? [];
    } catch (error) {
      if (error instanceof CliError) return [];
      throw error;
    }
  }

  /** What the account may choose from: with a catalog, its permissions, and the presets. */
  choices(): Promise<Answers['ScopeList']> {
    return this.#call('GET /scopes', { query: { details: true } });
  }

  async patch(operand: string, change: PatchInput, options: IfVersion): Promise<WireToken> {
    return shownIn(await this.#patch(operand, change, options));
  }

  /** Returns the result of a change without making it. */
  async tryPatch(
    operand: string,
    change: PatchInput,
    options: IfVersion,
  ): Promise<WireToken & { readonly diff: ScopeDiff }> {
    const answer = await this.#patch(operand, change, options, { dryRun: true });
    if (answer.diff === undefined) throw this.#unbelievable();
    return { ...shownIn(answer), diff: answer.diff };
  }

  async #patch(
    operand: string,
    { expiresAt, ...rest }: PatchInput,
    { ifVersion }: IfVersion,
    query: Call['query'] = {},
  ): Promise<Answers['ChangedToken']> {
    const expire = expiresAt && Math.floor(expiresAt.getTime() / 1000);
    const call = { query, body: { ...rest, expire }, ifVersion };
    return this.#about('PATCH /token/{token}', operand, call);
  }

  async revoke(operand: string, { ifVersion, ...query }: RevokeOptions): Promise<void> {
    await this.#about('DELETE /token/{token}', operand, { query, ifVersion });
  }

  /**
   * Revokes all tokens, once `confirm` has resolved.
   *
   * @throws {CliError} before it asks, if this is not possible
   */
  async revokeAll(createdBy: string | undefined, confirm: () => Promise<void>): Promise<number> {
    const bulk = this.#bulk();
    await confirm();
    return bulk.revoke(createdBy);
  }

  /** What {@link revokeAll} would end. */
  async previewRevocation(createdBy: string | undefined): Promise<RevocationPreview> {
    return this.#bulk().preview(createdBy);
  }

  #bulk(): BulkRevocation {
    const { bulk } = this.#connection;
    if (bulk !== undefined) return bulk;
    throw usageError(
      '--all and --created-by are for a store: a service revokes one token at a time',
    );
  }

  async rotate(operand: string, { ifVersion, ...body }: RotateOptions): Promise<WireToken> {
    const call = { body, ifVersion };
    return this.#made(await this.#about('POST /token/{token}/rotate', operand, call));
  }

  /** Drops a new value that has not been used. */
  async cancelRotation(operand: string, { ifVersion }: IfVersion): Promise<WireToken> {
    const call = { body: { cancel: true }, ifVersion };
    return toShown(tokenOf(await this.#about('POST /token/{token}/rotate', operand, call)));
  }

  /** @param address where the request comes from, for a token that is limited to addresses */
  verify(value: string, need: WrittenNeed, address?: string): Promise<Verification> {
    return this.#inWords(this.#connection.verify(value, need, address));
  }

  /** Makes a call about one token. */
  async #about<Name extends RouteName>(
    name: Name,
    operand: string,
    call: Call = {},
  ): Promise<AnswerTo<Name>> {
    return this.#call(name, { ...call, token: await this.#connection.idOf(operand) });
  }

  readonly #call: ServiceClient['call'] = (name, call) =>
    this.#inWords(this.#service.call(name, call));

  /** The next page. One that begins again would go on without end. */
  async #page<Page extends { readonly cursor?: string }>(
    call: Promise<Page>,
    before: string | undefined,
  ): Promise<Page> {
    const page = await call;
    if (page.cursor !== undefined && page.cursor === before) throw this.#unbelievable();
    return page;
  }

  async #inWords<Result>(call: Promise<Result>): Promise<Result> {
    try {
      return await call;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const isAnswer = error.code === 'not_found' || error.code === 'invalid_token';
      throw isAnswer ? error : this.#connection.toError(error);
    }
  }

  #made(answer: Answers['IssuedToken']): WireToken {
    const token = tokenOf(answer);
    if (!VALUE.test(token.token)) throw this.#unbelievable();
    return token;
  }

  /** For an answer that no token service gives. */
  #unbelievable(): Error {
    return this.#connection.toError(unreachable(200));
  }
}

/** A create body takes a date-time, and no number: older services took that for a lifetime. */
function bodyOf({ ttlSeconds, expiresAt, ...rest }: NewToken): Call['body'] {
  return { ...rest, ttl: ttlSeconds, expire: expiresAt?.toISOString() };
}

function shownIn({ data: [token] }: Answers['OneToken']): WireToken {
  return toShown(token);
}

/** Replaces a value that was revealed again by the id: commands print only new values. */
function toShown(token: WireToken): WireToken {
  return { ...token, token: token.id };
}
