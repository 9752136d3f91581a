import type { CarryingRequest } from './access/counted-requests.ts';
import type { Need } from './access/need.ts';
import { TokenError } from './errors.ts';
import type { TokenServiceOptions } from './inputs/options.ts';
import type {
  AdviseOptions,
  CancelRotationOptions,
  ChangeOptions,
  DeriveInput,
  DeriveOptions,
  GetOptions,
  ImportInput,
  ImportManyOptions,
  ImportReport,
  IntrospectOptions,
  IssueInput,
  ListInput,
  ModifyInput,
  PatchInput,
  PurgeInput,
  ResealOptions,
  ReviewInput,
  ReviewPageInput,
  RevocationPreview,
  RevokeAllOptions,
  RevokeOptions,
  RotateOptions,
  ScopeDetails,
  UpkeepOptions,
  VerifyOptions,
  VerifySyncOptions,
} from './inputs/types.ts';
import type { AskedScope } from './scope/index.ts';
import type {
  Explanation,
  IssuedToken,
  Lifetime,
  ModifiedToken,
  ResealReport,
  RotatedToken,
  Token,
  TokenPage,
  ValueFault,
  Verdict,
} from './token/record.ts';
import type { TokenAdvice } from './usage/advice.ts';
import type { TokenUsage } from './usage/counts.ts';
import type { TokenFinding } from './usage/findings.ts';
import type { KeyOptions } from './values/keys.ts';
import { modify, patch } from './verbs/change.ts';
import { derive } from './verbs/derive.ts';
import { explain } from './verbs/explain.ts';
import { get } from './verbs/get.ts';
import { importMany, importOne } from './verbs/import.ts';
import { introspect } from './verbs/introspect.ts';
import { issue } from './verbs/issue.ts';
import { allOf, list } from './verbs/list.ts';
import { PartsInside, partsOf, type ServiceParts } from './verbs/parts.ts';
import { reseal } from './verbs/reseal.ts';
import { type FindingPage, Reviews } from './verbs/review.ts';
import { revoke, revokeAll } from './verbs/revoke.ts';
import { rotate } from './verbs/rotate.ts';
import { scopeDetailsOf, scopesOf } from './verbs/scopes.ts';
import { type ServiceStats, stats } from './verbs/stats.ts';
import { close, isClockAhead, purge, scan, type Upkeep, upkeep } from './verbs/upkeep.ts';
import { advise, usageOf } from './verbs/usage.ts';
import { type Decided, decide, identify, verify, verifySync } from './verbs/verify.ts';

/**
 * Issues, lists, shows, modifies, verifies, rotates and revokes access tokens.
 *
 * Every method that manages tokens takes the account. To it, another account's token, an unknown one
 * and a revoked one look the same. Each call asks the clock once. All rejections are
 * {@link TokenError}s. Besides the codes that a method lists, any of them can be `store_unavailable`
 * (the store failed or took too long, so nothing is known), `store_corrupt` (the store returned
 * something that is not a record) or `invalid_request` (an argument of the wrong type).
 *
 * @example
 * const store = new MemoryTokenStore();
 * const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
 * const token = await tokens.issue({ account: 'acme', scopes: ['GET:shop.example/orders'] });
 * const verdict = await tokens.verify(token.value, { scope: 'GET:shop.example/orders/7' });
 * console.log(verdict.ok); // true
 */
export class TokenService<out Entry extends string = string> {
  readonly #parts: ServiceParts;
  readonly #reviews: Reviews;

  /**
   * Reads the options once. Opens nothing and does not call the store.
   *
   * @throws {TokenError} `invalid_options`, naming the option and what it should be, never its value
   */
  constructor(options: TokenServiceOptions<Entry>) {
    this.#parts = partsOf(options);
    this.#reviews = new Reviews(this.#parts);
  }

  /** The parts of the service that a method is called on. */
  static #of(service: TokenService | undefined): ServiceParts {
    if (typeof service === 'object' && service !== null && #parts in service) return service.#parts;
    throw new TokenError(
      'invalid_request',
      'a method of the service was called without it: call tokens.issue(…), not issue(…), or pass on (input) => tokens.issue(input)',
    );
  }

  /**
   * The parts of this service, for `TokenRequests`.
   *
   * @internal
   */
  parts(): ServiceParts {
    return TokenService.#of(this);
  }

  /** The lifetimes of tokens of this service. */
  get lifetime(): Lifetime {
    return TokenService.#of(this).rules.lifetime;
  }

  /** Whether this service records how tokens are used. */
  get recordsUsage(): boolean {
    return TokenService.#of(this).view.usage !== undefined;
  }

  /**
   * Issues a token. With a catalog, the token gets a snapshot: the entries that exist now and that the
   * requested scopes cover.
   *
   * @throws {TokenError} `scopes_required`, `too_many_scopes`, `invalid_scope`, `invalid_ttl`,
   * `invalid_limits`, `catalog_empty`, `scope_unmatched` if a scope matches nothing in the catalog, or
   * `quota_exceeded` if the account has too many active or suspended tokens, or the token would hold too
   * much. Nothing is issued then
   * @example
   * const scopes = ['GET:shop.example/orders'];
   * const token = await tokens.issue({ account: 'acme', scopes, ttlSeconds: 3600 });
   * console.log(token.value); // 'acme_1k1…'
   */
  issue<const Asked extends string = never>(
    input: IssueInput<AskedScope<Entry, Asked>>,
  ): Promise<IssuedToken> {
    return issue(TokenService.#of(this), input);
  }

  /**
   * Lists tokens of an account page by page, newest first or in the order that `sort` names: the active ones, or
   * those in another `state`. Tokens that are issued or revoked between two pages never make another one appear
   * twice or go missing. One that is used, renamed or prolonged meanwhile can, in an order that goes by that.
   *
   * Continue while there is a `cursor`. A page may hold fewer tokens than `limit` and still have a
   * cursor: it ends before it would hold more than `maxBytes`. With `scope`, `name`, `domain` or `unused` it also
   * ends after looking at 10 000 tokens or after about 50 ms of this process's time, and can then be empty.
   *
   * By `name` and `lastUsed`, each page reads all tokens of the filter. These orders take at most 10 000 tokens,
   * found among 100 000 tokens and 64 MiB of scopes, metadata and limits.
   *
   * @throws {TokenError} `invalid_scope`; `invalid_request`, also for a cursor of another account, filter or
   * order, and for too many tokens to sort; `invalid_options` for `unused` and `lastUsed` without the option `usage`
   * @example
   * const { tokens: page, cursor } = await tokens.list({ account: 'acme', limit: 50 });
   */
  list<const Asked extends string = never>(
    input: ListInput<AskedScope<Entry, Asked>>,
  ): Promise<TokenPage> {
    return list(TokenService.#of(this), input);
  }

  /**
   * Iterates over all tokens that `list` returns page by page, in its order. Reads a page when you have
   * used up the one before it, so you can stop at any time.
   *
   * @throws {TokenError} as `list`, from the loop
   * @example
   * for await (const token of tokens.listAll({ account: 'acme' })) console.log(token.name);
   */
  async *listAll<const Asked extends string = never>(
    input: ListInput<AskedScope<Entry, Asked>>,
  ): AsyncGenerator<Token, void, undefined> {
    TokenService.#of(this);
    yield* allOf((page) => this.list(page), input);
  }

  /**
   * Returns one token. An expired token is returned until it is purged, and so is a revoked one if you ask
   * for it by its `state`.
   *
   * @returns `undefined` if this account has no such token, or if the text is neither a value nor an id
   * @throws {TokenError} `invalid_request` if the account is not a valid one; `store_unavailable`
   * @example
   * const token = await tokens.get('acme', id);
   * console.log(token?.state); // 'active'
   */
  get(account: string, valueOrId: string, options: GetOptions = {}): Promise<Token | undefined> {
    return get(TokenService.#of(this), account, valueOrId, options);
  }

  /**
   * Returns how a token is used: how often and when last, in total and for each of its scopes. Includes
   * what this process has counted and not yet written, but not the last `flushMs` of other processes.
   *
   * @returns `undefined` if this account has no such token, as `get`
   * @throws {TokenError} `invalid_options` if the service does not record usage; `store_unavailable`
   * @example
   * const usage = await tokens.usage('acme', id);
   * const unused = usage?.scopes.filter(({ uses }) => uses === 0);
   */
  usage(account: string, valueOrId: string): Promise<TokenUsage | undefined> {
    return usageOf(TokenService.#of(this), account, valueOrId);
  }

  /**
   * Names the scopes of a token that it has not used for a time, so that you can remove them. Changes
   * nothing. Gives no advice (`unused` is empty) if the counts do not go back that far: `since` is
   * later than `unusedForDays` ago for a new token, or after a change of its scopes.
   *
   * If nothing is in `kept`, the token was not used at all: `patch` leaves no token without scopes, so
   * revoke it instead. Other processes' uses of the last `flushMs` are not known yet, and those
   * whose counts were lost never are.
   *
   * @returns `undefined` if this account has no such token, as `get`
   * @throws {TokenError} `invalid_options` if the service does not record usage; `store_unavailable`
   * @example
   * const advice = await tokens.advise('acme', id, { unusedForDays: 90 });
   * if (advice !== undefined && advice.unused.length > 0) {
   *   await tokens.patch('acme', id, { removeScopes: advice.unused }, { ifVersion: 1 });
   * }
   */
  advise(
    account: string,
    valueOrId: string,
    options: AdviseOptions = {},
  ): Promise<TokenAdvice | undefined> {
    return advise(TokenService.#of(this), account, valueOrId, options);
  }

  /**
   * Replaces the scopes and the expiry of a token, and the limits if you give them. The value, the name
   * and the metadata stay. A token that was derived gets no more than its parent has.
   *
   * @throws {TokenError} as `issue`, and `invalid_expire`, `not_found`, `token_expired`,
   * `version_conflict`, checked in this order
   * @example
   * const scopes = ['GET:shop.example/orders'];
   * const { version } = await tokens.modify('acme', id, { scopes }, { ifVersion: 1 });
   * console.log(version); // 2
   */
  modify<const Asked extends string = never>(
    account: string,
    valueOrId: string,
    change: ModifyInput<AskedScope<Entry, Asked>>,
    options: ChangeOptions = {},
  ): Promise<ModifiedToken> {
    return modify(TokenService.#of(this), { account, valueOrId, change, options });
  }

  /**
   * Updates only the members that you pass.
   *
   * A change that adds scopes or extends the expiry is refused with `scope_unmatched` if the token would
   * hold a scope that its account may no longer have. `details.scopes` lists those scopes; drop them
   * with `removeScopes`, in the same call or before.
   *
   * @throws {TokenError} as `modify`; `scope_unmatched` also if a scope to be removed covers no held
   * scope, or only a part of one; `scopes_required` if no scope would be left
   * @example
   * const change = { removeScopes: ['POST:shop.example/orders'], name: 'reader' };
   * const { diff } = await tokens.patch('acme', id, change, { dryRun: true });
   * console.log(diff?.removed); // ['POST:shop.example/orders']
   */
  patch<const Asked extends string = never>(
    account: string,
    valueOrId: string,
    change: PatchInput<AskedScope<Entry, Asked>>,
    options: ChangeOptions = {},
  ): Promise<ModifiedToken> {
    return patch(TokenService.#of(this), { account, valueOrId, change, options });
  }

  /**
   * Revokes a token permanently. With `ifVersion`, only if it still has that version. Tokens that were
   * derived from it are refused from then on, and with `descendants` they are revoked as well.
   *
   * @returns whether this call revoked it: false if this account has no such token, or it was revoked
   * before
   * @throws {TokenError} `version_conflict`; `durability_unconfirmed` if the token is revoked, but a
   * failover of the store may undo that
   * @example
   * console.log(await tokens.revoke('acme', id)); // true
   */
  revoke(account: string, valueOrId: string, options: RevokeOptions = {}): Promise<boolean> {
    return revoke(TokenService.#of(this), account, valueOrId, options);
  }

  /**
   * Revokes all tokens of an account permanently, in batches. Call it when an account is closed. A batch
   * that a busy store does not finish in time, after others, is halved and tried again, three times at most.
   *
   * @returns how many tokens this call revoked, or fewer if a batch was tried again
   * @throws {TokenError} `store_unavailable` after `details.count` tokens or more; call it again
   * @example
   * console.log(await tokens.revokeAll('acme')); // 3
   */
  revokeAll(
    account: string,
    options: RevokeAllOptions & { readonly dryRun: true },
  ): Promise<RevocationPreview>;
  revokeAll(
    account: string,
    options?: RevokeAllOptions & { readonly dryRun?: false | undefined },
  ): Promise<number>;
  revokeAll(account: string, options: RevokeAllOptions = {}): Promise<number | RevocationPreview> {
    return revokeAll(TokenService.#of(this), account, options);
  }

  /**
   * Gives a token a new value. Id, scopes and expiry stay. The old value is refused immediately, or
   * after `graceSeconds`, but never outlives the token. Using it after that emits a `reused` event. Only
   * the last replaced value is recognized: the next replacement ends its grace period, and it is just
   * `unknown` from then on.
   *
   * With `activate: 'first-use'`, the old value works until the new one is accepted for the first time,
   * and its grace period begins then: losing the answer locks nobody out. Until then the token is
   * `pending`, and another `rotate` replaces the new value.
   *
   * After a leak, `endDerived` also revokes what was derived from the token. Without it, those tokens stay,
   * and `descendants` says how many of them there are.
   *
   * @throws {TokenError} `not_found`, `token_expired`, `version_conflict`; `invalid_request` for
   * `endDerived` together with `activate` or `graceSeconds`
   * @example
   * const { value } = await tokens.rotate('acme', id, { activate: 'first-use', graceSeconds: 3600 });
   */
  rotate(account: string, valueOrId: string, options?: RotateOptions): Promise<RotatedToken>;
  /**
   * Drops the new value that waits for its first use. The old one goes on working.
   *
   * @returns the token without a value, unchanged if there was nothing to drop
   * @throws {TokenError} `not_found`, `token_expired`, `version_conflict`
   * @example
   * await tokens.rotate('acme', id, { cancel: true });
   */
  rotate(account: string, valueOrId: string, options: CancelRotationOptions): Promise<Token>;
  rotate(
    account: string,
    valueOrId: string,
    options: RotateOptions | CancelRotationOptions = {},
  ): Promise<Token> {
    return rotate(TokenService.#of(this), account, valueOrId, options);
  }

  /**
   * Explains why a token of this account does or does not allow something. Has no side effect and emits
   * no event. A token that this account does not have is explained as one that holds nothing.
   *
   * @throws {TokenError} `invalid_scope` if `need.scope` is not a scope
   * @example
   * const need = { method: 'POST', domain: 'shop.example', target: '/orders' };
   * const { nearest, smallest } = await tokens.explain('acme', id, need);
   * console.log(nearest?.failed, smallest); // 'method', 'POST:shop.example/orders'
   */
  explain(account: string, valueOrId: string, need: Need): Promise<Explanation> {
    return explain(TokenService.#of(this), account, valueOrId, need);
  }

  /**
   * Returns the scopes that an account may ask for, in canonical order: the entries of its catalog, or
   * without a catalog the one scope that covers everything.
   *
   * @throws {TokenError} `invalid_request` if the account is not a valid one; `store_unavailable` if its
   * catalog is unavailable
   * @example
   * console.log(await tokens.scopes('acme')); // ['GET:shop.example/orders', …]
   */
  async scopes(account: string): Promise<Entry[]> {
    return (await scopesOf(TokenService.#of(this), account)) as Entry[];
  }

  /**
   * Returns what an account may choose from: its scopes with the words of the catalog, the permissions that
   * they make up, and the presets. For pages on which people issue tokens. The result is shared by all
   * calls: do not change it.
   *
   * @throws {TokenError} `invalid_request` if the account is not a valid one; `store_unavailable` if its
   * catalog is unavailable
   * @example
   * const { permissions, presets } = await tokens.scopeDetails('acme');
   * for (const { tag, read, write } of permissions) console.log(tag, read.length, write.length);
   */
  scopeDetails(account: string): Promise<ScopeDetails> {
    return scopeDetailsOf(TokenService.#of(this), account);
  }

  /**
   * Decides whether a value allows something. A refused value is not an error but a verdict. The instant
   * of expiry already counts as expired. Only reads, with two exceptions: the first use of a value that
   * waits for it is written in the background, and if the uses of the token are limited, one is taken.
   *
   * If all accounts share one catalog, requests are read with it: a segment that one of its entries
   * names literally belongs to that entry, and no `{}` of a scope matches it.
   *
   * @param need a scope, or a request with its raw target, or one that a catalog has read
   * @param options `fresh` reads the store, whatever `cache` allows; `address` says where the request
   * comes from
   * @throws {TokenError} `invalid_scope` if `need.scope` is not a scope
   * @example
   * const need = { method: 'GET', domain: 'shop.example', target: '/orders/7?x=1' };
   * const verdict = await tokens.verify(value, need);
   * if (!verdict.ok) console.log(verdict.reason); // 'expired'
   */
  verify<const Asked extends string = never>(
    value: string,
    need: Need<AskedScope<Entry, Asked>>,
    options?: VerifyOptions,
  ): Promise<Verdict> {
    return verify(TokenService.#of(this), value, need, options);
  }

  /**
   * Whether `verify` accepts a value. Never true for a refused one, unlike the verdict itself, which is
   * an object and so true in an `if`. If you need the token or the reason, call `verify`.
   *
   * @throws {TokenError} as `verify`. An outage of the store throws, too: it is not a `false`
   * @example
   * if (await tokens.allows(value, { scope: 'GET:shop.example/orders' })) console.log('welcome');
   */
  async allows<const Asked extends string = never>(
    value: string,
    need: Need<AskedScope<Entry, Asked>>,
    options?: VerifyOptions,
  ): Promise<boolean> {
    TokenService.#of(this);
    return (await this.verify(value, need, options)).ok;
  }

  /**
   * Decides immediately if nothing has to be awaited: the value is malformed, or its record is in the
   * cache (see the option `cache`) and the catalog is not a function. If the uses of the token are
   * limited, this process must have leased one in advance, or know that none is left.
   *
   * @returns the verdict that `verify` would give; `undefined` if you have to call `verify`
   * @throws {TokenError} as `verify`
   * @example
   * const verdict = tokens.verifySync(value, need) ?? (await tokens.verify(value, need));
   */
  verifySync<const Asked extends string = never>(
    value: string,
    need: Need<AskedScope<Entry, Asked>>,
    options?: VerifySyncOptions,
  ): Verdict | undefined {
    return verifySync(TokenService.#of(this), value, need, options);
  }

  /**
   * Decides like `verify`, without a promise if nothing has to be awaited. For the guard. If a subclass
   * or a mock overrides `verify` or `verifySync`, calls these instead, and counts each call.
   *
   * @param addressOf is called only if the token is limited to addresses
   * @param request is counted once, even if several guards decide about it
   * @internal
   */
  decide(
    value: string,
    need: Need,
    addressOf?: () => string | undefined,
    request?: CarryingRequest,
  ): Decided {
    const { verify, verifySync } = TokenService.prototype;
    if (this.verify !== verify || this.verifySync !== verifySync) {
      const options = addressOf && { address: addressOf() };
      return this.verifySync(value, need, options) ?? this.verify(value, need, options);
    }
    return decide(TokenService.#of(this), value, need, { address: addressOf, request });
  }

  /**
   * Decides whether the token of a value is live and may be used from this address, whatever is needed. For
   * the guard for MCP. The verdict has an empty `grantedBy`. Counts and spends nothing.
   *
   * @param addressOf is called only if the token is limited to addresses
   * @internal
   */
  identify(value: string, addressOf?: () => string | undefined): Decided {
    return identify(TokenService.#of(this), value, addressOf);
  }

  /**
   * Why a text cannot be a value of this service; `undefined` if it may be one. Reads no store. For the
   * guard for MCP, which reads no body for a forged value.
   *
   * @internal
   */
  faultOf(value: string): ValueFault | undefined {
    return TokenService.#of(this).decider.faultOf(value);
  }

  /**
   * The scope that a refusal would name as enough, as far as that does not depend on the account;
   * `undefined` if the request is ambiguous. For challenges of the guard.
   *
   * @internal
   * @throws {TokenError} `invalid_scope` if `need.scope` is not a scope
   */
  neededFor(need: Need): string | undefined {
    return TokenService.#of(this).decider.neededFor(need);
  }

  /**
   * Returns the active token that a value belongs to. For answers about a token; use `verify` to grant
   * access. Always reads the store.
   *
   * @param options `includeSuspended` also returns a suspended token, to revoke it for example
   * @returns `undefined` if the value is malformed, unknown, revoked, expired or suspended, or if the
   * ancestors of its token leave it no scope
   * @throws {TokenError} `store_unavailable`, `store_corrupt`
   * @example
   * const token = await tokens.introspect(value);
   * console.log(token?.scopes); // ['GET:shop.example/orders']
   */
  introspect(value: string, options: IntrospectOptions = {}): Promise<Token | undefined> {
    return introspect(TokenService.#of(this), value, options);
  }

  /**
   * Issues a token that may do a part of what the token of this value may do: for a script, a job or an
   * agent that should get less than its owner has. It belongs to the same account, and is listed, changed,
   * rotated and revoked like any other.
   *
   * It never allows more than its parent and all other ancestors allow at the moment: `verify` accepts it
   * only while all of them are live and their scopes cover the need. So revoking, suspending or
   * narrowing a token reaches all tokens that were derived from it. Rotating it changes nothing for
   * them, except with `endDerived`.
   *
   * Requested scopes are expanded against those that the parent holds, as against a catalog. The token
   * expires with its parent at the latest, even if you ask for longer, and with the value: one that was
   * replaced and is in its grace period makes no token that lives longer than that. Its limits may only add
   * to those of its parent or be narrower. The limits of all ancestors apply to it as well: a use of it is a
   * use of each of them, and so is deriving it. There are at most 8 generations, and 100 live descendants of
   * one root by default (`quotas.derivedPerRoot`); they take no place from the account.
   *
   * @param options `address` says where the call comes from: needed if the token is limited to addresses
   * @throws {TokenError} `invalid_token` if `verify` would refuse the value whatever is needed, with the
   * reason in `details.reason`; `scope_unmatched`, naming what the parent does not hold; `quota_exceeded`
   * also beyond the eighth generation; else as `issue`
   * @example
   * const scopes = ['GET:shop.example/orders'];
   * const child = await tokens.derive(value, { scopes, ttlSeconds: 900, name: 'nightly job' });
   * console.log(child.parent); // the id of the token of `value`
   */
  derive<const Asked extends string = never>(
    value: string,
    input: DeriveInput<AskedScope<Entry, Asked>>,
    options: DeriveOptions = {},
  ): Promise<IssuedToken> {
    return derive(TokenService.#of(this), value, input, options);
  }

  /**
   * Removes records that expired or were revoked before an instant, in batches of a thousand. Can be
   * stopped and called again at any time. A store with a clock of its own removes nothing that ended, by
   * that clock, less long ago than `before` is before now. With another store, your clock decides.
   *
   * @returns how many records were removed
   * @throws {TokenError} `invalid_request` if `before` is later than now; `store_unavailable`: some
   * records may be removed then
   * @example
   * const before = new Date(Date.now() - 90 * 86_400_000);
   * console.log(await tokens.purge({ before, limit: 10_000 })); // 417
   */
  purge(input: PurgeInput): Promise<number> {
    return purge(TokenService.#of(this), input);
  }

  /**
   * Returns counts of this service for your metrics. Costs nothing and does not call the store. The
   * option `onEvent` reports everything else.
   *
   * @example
   * const { hits, misses } = tokens.stats().cache;
   */
  stats(): ServiceStats {
    return stats(TokenService.#of(this));
  }

  /**
   * Goes through the tokens of all accounts, including expired and revoked ones that are not purged yet,
   * never with their values. One pass that reads a hundred records at a time, so you can stop at any
   * time. A token that is changed meanwhile may come twice. The order is the store's own.
   *
   * @throws {TokenError} `invalid_options` if the store has no `scan`; `store_unavailable`, from the loop
   * @example
   * for await (const token of tokens.scan()) console.log(token.account, token.id, token.state);
   */
  async *scan(): AsyncGenerator<Token, void, undefined> {
    yield* scan(TokenService.#of(this));
  }

  /**
   * Finds live tokens that somebody should look at, of all accounts or of one: unused ones, those that may
   * do more than they need, those that expire soon or have an old value. {@link TokenFinding} lists
   * what is found. Reads all tokens once, a hundred at a time, and changes nothing.
   *
   * What depends on use is only found if the service records usage. If the catalog of an account fails,
   * its tokens are reviewed without it.
   *
   * @throws {TokenError} `invalid_request`; `invalid_options` if the store has no `scan` and no account is
   * given; `store_unavailable`, all from the loop
   * @example
   * for await (const { code, token, message } of tokens.review()) {
   *   console.log(token.account, token.masked, code, message);
   * }
   */
  async *review(input: ReviewInput = {}): AsyncGenerator<TokenFinding, void, undefined> {
    TokenService.#of(this);
    yield* this.#reviews.all(input);
  }

  /**
   * Reviews some tokens of one account, newest first, for a page that people look at. All findings about
   * a token are on one page. Continue while there is a `cursor`: a page ends after about 50 ms, and may
   * be empty.
   *
   * @internal
   * @throws {TokenError} `invalid_request`, also for a cursor of another account or other days
   */
  async reviewPage(input: ReviewPageInput): Promise<FindingPage> {
    TokenService.#of(this);
    return this.#reviews.page(input);
  }

  /**
   * Seals all stored secrets with the active key, so that values can still be shown when an older key is
   * gone. Only for `reveal: 'always'`, which stores secrets. The values themselves stay, and those of an
   * older key still need it to be verified: `verifierKeys` is enough for that.
   *
   * Reads all records in steps of a hundred and writes those that need it. A record keeps its version, and
   * a concurrent change is never lost. Can be stopped and called again at any time: what is
   * done is skipped.
   *
   * @throws {TokenError} `invalid_options` if the keys can only verify, or the store has no `scan`;
   * `store_unavailable`: some secrets may be sealed again then
   * @example
   * const { resealed, unreadable } = await tokens.reseal();
   * console.log(resealed, unreadable); // 417 0
   */
  reseal(options: ResealOptions = {}): Promise<ResealReport> {
    return reseal(TokenService.#of(this), options);
  }

  /**
   * Purges in the background: every `everyMs`, with a jitter of 20 %, it removes the records that expired
   * or were revoked more than `purgeAfterDays` ago, with their usage. The first time is within
   * five minutes. It works in small batches with pauses, and several processes may do it concurrently.
   * It also removes requests for tokens that ended an hour ago, and once a week usage whose tokens are gone.
   *
   * Removes nothing while the clock of this process is more than a day ahead of all that the store knows,
   * unless the process has run for so long itself: it emits `clock_ahead` once, tries again each hour, and
   * goes on as soon as the store or the clock says otherwise.
   *
   * Never throws later: a failure of a store is the event `store_trouble`, and the next round tries again.
   * A round that removed something emits `purged`. Its timer does not keep the process alive. `close`
   * stops it.
   *
   * @throws {TokenError} `invalid_request`
   * @example
   * const upkeep = tokens.upkeep({ purgeAfterDays: 30 });
   * await upkeep.stop();
   */
  upkeep(options: UpkeepOptions = {}): Upkeep {
    return upkeep(TokenService.#of(this), options);
  }

  /**
   * Whether the store contradicts the clock of this process: whether that is more than a day ahead of all
   * that the store knows.
   *
   * @internal
   * @throws {TokenError} `store_unavailable`
   */
  isClockAhead(): Promise<boolean> {
    return isClockAhead(TokenService.#of(this));
  }

  /**
   * Imports a token that another system has issued, from the digest that it has stored. The bearer goes on
   * using the same value, which this call does not need. The format has to be in the option `foreign`.
   *
   * From then on it is a token like any other, and `rotate` gives it a value of this service. A token that
   * was imported before is returned as it is, even if it was revoked: an import never revives it. Once
   * `purge` has removed its record, nothing remembers the revocation: do not import the row again then, or
   * the token is live again, with the tokens that were derived from it.
   *
   * @throws {TokenError} `invalid_request`, also for a hash that cannot be looked up (bcrypt, scrypt or a
   * salted one) and for a value that another account has; `invalid_expire`; else as `issue`
   * @example
   * const digest = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
   * const row = { account: 'ada', digest, format: 'sanctum', scopes: ['GET:shop.example/orders'] };
   * const token = await tokens.import({ ...row, expiresAt: new Date(Date.now() + 86_400_000) });
   */
  import(input: ImportInput): Promise<Token> {
    return importOne(TokenService.#of(this), input);
  }

  /**
   * Imports many tokens, as `import` does, from a list or a stream. Rows that cannot be imported are
   * reported and left out; those that had been imported are skipped, so you can stop it and call it again.
   *
   * @throws {TokenError} `store_unavailable`: some rows may be imported then; call it again
   * @example
   * const digest = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
   * const row = { account: 'ada', digest, format: 'sanctum', scopes: ['GET:shop.example/orders'] };
   * const rows = [{ ...row, expiresAt: new Date(Date.now() + 86_400_000) }];
   * const { imported, skipped, refused } = await tokens.importMany(rows);
   */
  importMany(
    rows: Iterable<ImportInput> | AsyncIterable<ImportInput>,
    options: ImportManyOptions = {},
  ): Promise<ImportReport> {
    return importMany(TokenService.#of(this), rows, options);
  }

  /**
   * Returns the keys for a service that only verifies: they can check values, but not reveal or mint
   * them. Treat them as secrets: they tell real values from lookalikes.
   *
   * @example
   * const resourceServer = new TokenService({ store, keys: tokens.verifierKeys(), prefix: 'acme' });
   */
  verifierKeys(): KeyOptions[] {
    return TokenService.#of(this).ring.verifierKeys();
  }

  /**
   * Returns this service within your transaction, on your connection: what it writes is stored when you
   * commit, and not if you roll back. It has the keys, the catalog and the options of this one, and no
   * cache. Uses of tokens are counted outside of the transaction, so a rollback gives none back.
   *
   * Beginning and ending the transaction is up to you. Roll back if a call rejects with
   * `store_unavailable`. The events have `inTransaction: true`. After the transaction, drop the service:
   * its `close` does nothing.
   *
   * @param connection what the `in` of the store takes: a client of `pg`, a connection of `mysql2`, or a
   * handle of SQLite
   * @throws {TokenError} `invalid_options` if the store cannot join your transactions, or this is not one of
   * its connections
   * @example
   * const client = await pool.connect();
   * await client.query('BEGIN');
   * const scopes = ['GET:shop.example/orders'];
   * const { value } = await tokens.in(client).issue({ account: 'acme', scopes });
   * await client.query('COMMIT');
   * client.release();
   */
  in(connection: object): TokenService<Entry> {
    const inside: unknown = new PartsInside(TokenService.#of(this), connection);
    return new TokenService(inside as TokenServiceOptions<Entry>);
  }

  /**
   * Stops listening to the store and closes it. Before that, ends the upkeep, writes the usage that was
   * counted and the first uses of new values, and gives back the uses of limited tokens that this process
   * has leased in advance. Also closes stores that were given for `usage` and `limits`. What you passed to
   * a store, such as a pool, stays open.
   *
   * @throws {TokenError} `store_unavailable` if the store does not close
   * @example
   * await tokens.close();
   */
  async close(): Promise<void> {
    return close(TokenService.#of(this));
  }
}
