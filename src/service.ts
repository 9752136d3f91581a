import type * as z from 'zod';
import { askCatalog } from './access/catalogs.ts';
import { checkPatch, checkSize, limitsAfter, patched, withScopesTime } from './access/change.ts';
import type { Decider } from './access/decision.ts';
import { isWidening, patchWithin } from './access/narrowing.ts';
import { type Need, readNeed } from './access/need.ts';
import { expandFor, rightsOf } from './access/rights.ts';
import { DEFAULT_PAGE_TOKENS, MAX_RECORD_BYTES } from './bounds.ts';
import { TokenChecks } from './checks.ts';
import type { Events } from './events.ts';
import type { TokenServiceOptions } from './inputs/options.ts';
import {
  adviseOptions,
  changeOptions,
  getOptions,
  listInput,
  modifyInput,
  patchInput,
  readAccount,
  readInput,
  readLongInput,
  revokeAllOptions,
  revokeOptions,
  rotateOptions,
} from './inputs/schemas.ts';
import type {
  AdviseOptions,
  CancelRotationOptions,
  ChangeOptions,
  GetOptions,
  IssueInput,
  ListInput,
  ModifyInput,
  PatchInput,
  Read,
  RevokeAllOptions,
  RevokeOptions,
  RotateOptions,
} from './inputs/types.ts';
import type { AccountRecords } from './records/account-records.ts';
import { inBatches } from './records/batches.ts';
import { scopesFilter } from './scope/filter.ts';
import type { AskedScope } from './scope/index.ts';
import { DAY_MS } from './time/duration.ts';
import {
  askedExpiry,
  type Explanation,
  expiryAfter,
  type IssuedToken,
  type Lifetime,
  type ModifiedToken,
  type RotatedToken,
  type Token,
  type TokenPage,
  type TokenRecord,
} from './token/record.ts';
import type { TokenAdvice } from './usage/advice.ts';
import type { TokenUsage } from './usage/counts.ts';
import { usageIsOff } from './usage/recorder.ts';
import { withinBounds } from './verbs/derive.ts';
import { countDescendants, endDescendants } from './verbs/descendants.ts';
import { issueWithinQuota } from './verbs/issue.ts';
import { partsOf, type ServiceParts } from './verbs/parts.ts';

/** Records that `revokeAll` marks in one call of the store. @bound */
export const REVOKE_BATCH = 1000;

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
export class TokenService<out Entry extends string = string> extends TokenChecks<Entry> {
  readonly #parts: ServiceParts;
  /** This instant, in milliseconds since 1970. */
  readonly #now: () => number;
  readonly #events: Events;
  readonly #records: AccountRecords;
  readonly #decider: Decider;

  /**
   * Reads the options once. Opens nothing and does not call the store.
   *
   * @throws {TokenError} `invalid_options`, naming the option and what it should be, never its value
   */
  constructor(options: TokenServiceOptions<Entry>) {
    const parts = partsOf(options);
    super(parts);
    this.#parts = parts;
    this.#now = parts.now;
    this.#events = parts.events;
    this.#records = parts.records;
    this.#decider = parts.decider;
  }

  /** The lifetimes of tokens of this service. */
  get lifetime(): Lifetime {
    return this.#parts.rules.lifetime;
  }

  /** Whether this service records how tokens are used. */
  get recordsUsage(): boolean {
    return this.#parts.view.usage !== undefined;
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
  async issue<const Asked extends string = never>(
    input: IssueInput<AskedScope<Entry, Asked>>,
  ): Promise<IssuedToken> {
    const now = this.#now();
    const { lifetime, issueInput } = this.#parts.rules;
    const { account, scopes, name, metadata, limits, ...asked } = await readLongInput(
      issueInput,
      input,
    );
    this.#parts.limits.check(limits);
    const expiresAt = askedExpiry(asked, now, lifetime);
    const fields = {
      account,
      scopes: await expandFor(this.#parts.catalogs, account, scopes),
      requested: scopes.map(String),
      createdAt: new Date(now),
      expiresAt: expiresAt ?? expiryAfter(now, lifetime.defaultSeconds),
      version: 1,
      ...(name !== undefined && { name }),
      ...(metadata !== undefined && { metadata }),
      ...(limits !== undefined && { limits }),
    };
    return issueWithinQuota(this.#parts, fields, now);
  }

  /**
   * Lists tokens of an account, newest first, page by page: the active ones, or those in another `state`.
   * Tokens that are issued or revoked between two pages never make another one appear twice or go missing.
   *
   * Continue while there is a `cursor`. A page may hold fewer tokens than `limit` and still have a
   * cursor: it ends before it would hold more than `maxBytes`. With `scope` or `name` it also ends after
   * looking at 10 000 tokens or after about 50 ms of this process's time, and can then be empty.
   *
   * @throws {TokenError} `invalid_scope`; `invalid_request`, also for a cursor of another account or
   * filter
   * @example
   * const { tokens: page, cursor } = await tokens.list({ account: 'acme', limit: 50 });
   */
  async list<const Asked extends string = never>(
    input: ListInput<AskedScope<Entry, Asked>>,
  ): Promise<TokenPage> {
    const now = this.#now();
    const query = readInput<Read<ListInput>>(listInput as z.ZodType<Read<ListInput>>, input);
    const { account, scope = [], match = 'overlaps', limit = DEFAULT_PAGE_TOKENS } = query;
    const { maxBytes = MAX_RECORD_BYTES, state = 'active', name, parent, cursor: given } = query;
    // Left out if all have their defaults, so that cursors of earlier versions stay valid.
    const hasMore = state !== 'active' || name !== undefined || parent !== undefined;
    const others = hasMore ? [state, name ?? null, ...(parent === undefined ? [] : [parent])] : [];
    const asked = scope.length > 1 ? scope : (scope[0] ?? null);
    const filter = JSON.stringify([account, asked, match, ...others]);
    const isWanted = scopesFilter(scope, match);
    const wanted = { account, state, parent, isWanted, name };
    const listing = { ...wanted, filter, limit, maxBytes, cursor: given };
    const { records, cursor } = await this.#records.page(listing, now);
    const tokens = await this.#parts.view.withUses(records, now);
    return cursor === undefined ? { tokens } : { tokens, cursor };
  }

  /**
   * Iterates over all tokens that `list` returns page by page, newest first. Reads a page when you have
   * used up the one before it, so you can stop at any time.
   *
   * @throws {TokenError} as `list`, from the loop
   * @example
   * for await (const token of tokens.listAll({ account: 'acme' })) console.log(token.name);
   */
  async *listAll<const Asked extends string = never>(
    input: ListInput<AskedScope<Entry, Asked>>,
  ): AsyncGenerator<Token, void, undefined> {
    for (let next: string | undefined; ; ) {
      const page = await this.list(next === undefined ? input : { ...input, cursor: next });
      yield* page.tokens;
      next = page.cursor;
      if (next === undefined) return;
    }
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
  async get(
    account: string,
    valueOrId: string,
    options: GetOptions = {},
  ): Promise<Token | undefined> {
    const now = this.#now();
    const owner = readAccount(account);
    const { state } = readInput(getOptions, options);
    const record = await this.#records.find(owner, valueOrId, now, state);
    return record && (await this.#parts.view.withUses([record], now))[0];
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
  async usage(account: string, valueOrId: string): Promise<TokenUsage | undefined> {
    const now = this.#now();
    const owner = readAccount(account);
    const { usage } = this.#parts.view;
    if (usage === undefined) throw usageIsOff();
    const record = await this.#records.find(owner, valueOrId, now);
    return record && usage.usageOf(record);
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
  async advise(
    account: string,
    valueOrId: string,
    options: AdviseOptions = {},
  ): Promise<TokenAdvice | undefined> {
    const now = this.#now();
    const owner = readAccount(account);
    const { unusedForDays = 30 } = readInput(adviseOptions, options);
    const { usage } = this.#parts.view;
    if (usage === undefined) throw usageIsOff();
    const record = await this.#records.find(owner, valueOrId, now);
    const from = now - unusedForDays * DAY_MS;
    return record && usage.adviceOn(record, this.#decider.scopeSetOf(record), from);
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
  async modify<const Asked extends string = never>(
    account: string,
    valueOrId: string,
    change: ModifyInput<AskedScope<Entry, Asked>>,
    options: ChangeOptions = {},
  ): Promise<ModifiedToken> {
    const now = this.#now();
    const { lifetime, quotas } = this.#parts.rules;
    const owner = readAccount(account);
    const { scopes, limits, ...times } = await readLongInput(modifyInput, change);
    this.#parts.limits.check(limits);
    const conditions = readInput(changeOptions, options);
    const expiry = askedExpiry(times, now, lifetime);
    const granted = await expandFor(this.#parts.catalogs, owner, scopes);
    const expiresAt = expiry ?? expiryAfter(now, lifetime.defaultSeconds);
    const asked = { scopes, limits };
    return this.#change(owner, valueOrId, now, conditions, (record) =>
      withinBounds(this.#parts, record, now, async (bounds) => {
        const known = { granted, expiresAt };
        const allowed = bounds ? await patchWithin(bounds, asked, known) : known;
        const held = { scopes: allowed.granted, requested: scopes.map(String) };
        const next = { ...held, expiresAt: allowed.expiresAt, ...limitsAfter({ limits }) };
        checkSize({ ...record, ...next }, quotas);
        return next;
      }),
    );
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
  async patch<const Asked extends string = never>(
    account: string,
    valueOrId: string,
    change: PatchInput<AskedScope<Entry, Asked>>,
    options: ChangeOptions = {},
  ): Promise<ModifiedToken> {
    const now = this.#now();
    const { lifetime, quotas } = this.#parts.rules;
    const owner = readAccount(account);
    const patch = await readLongInput(patchInput, change);
    const conditions = readInput(changeOptions, options);
    checkPatch(patch);
    this.#parts.limits.check(patch.limits);
    const expiresAt = askedExpiry(patch, now, lifetime);
    const rights = await rightsOf(this.#parts.catalogs, owner, patch, expiresAt);
    const known = { ...rights, expiresAt, quotas, now };
    return this.#change(owner, valueOrId, now, conditions, (record) =>
      isWidening(patch, known)
        ? withinBounds(this.#parts, record, now, async (bounds) =>
            patched(record, patch, bounds ? await patchWithin(bounds, patch, known) : known),
          )
        : patched(record, patch, known),
    );
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
  async revoke(account: string, valueOrId: string, options: RevokeOptions = {}): Promise<boolean> {
    const now = this.#now();
    const owner = readAccount(account);
    const { ifVersion, descendants = false } = readInput(revokeOptions, options);
    const state = descendants ? 'all' : undefined;
    const found = state && (await this.#records.find(owner, valueOrId, now, state));
    const token = await this.#records.revoke(owner, valueOrId, now, ifVersion);
    if (token !== undefined) this.#events.token('revoked', token, now);
    if (found !== undefined) await endDescendants(this.#parts, found, now);
    return token !== undefined;
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
  async revokeAll(account: string, options: RevokeAllOptions = {}): Promise<number> {
    const now = this.#now();
    const owner = readAccount(account);
    const { onProgress } = readInput(revokeAllOptions, options);
    return inBatches((limit) => this.#records.revokeSome(owner, now, limit), {
      size: REVOKE_BATCH,
      slowMs: this.#parts.store.deadlineMs / 2,
      onProgress,
      onEnd: (count) => this.#events.revokedAll(owner, count, now),
    });
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
  async rotate(
    account: string,
    valueOrId: string,
    options: RotateOptions | CancelRotationOptions = {},
  ): Promise<Token> {
    const now = this.#now();
    const owner = readAccount(account);
    const input = readInput(rotateOptions, options);
    const { token, record } = await this.#parts.rotations.rotate(owner, valueOrId, input, now);
    if (input.cancel === true) return token;
    if (input.endDerived === true) await endDescendants(this.#parts, record, now);
    const descendants = await countDescendants(this.#parts, record, now);
    return Object.freeze({ ...token, descendants });
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
  async explain(account: string, valueOrId: string, need: Need): Promise<Explanation> {
    const now = this.#now();
    const owner = readAccount(account);
    const reading = readNeed(need, this.#parts.catalogs.routes);
    const record = await this.#records.find(owner, valueOrId, now);
    return this.#decider.explain(record, reading, await this.#parts.catalogs.of(owner), now);
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
    const catalog = await this.#parts.catalogs.of(readAccount(account));
    return (catalog === undefined ? ['*:*/*'] : askCatalog(() => catalog.toArray())) as Entry[];
  }

  async #change(
    owner: string,
    valueOrId: string,
    now: number,
    conditions: ChangeOptions,
    apply: (record: TokenRecord) => Promise<Partial<TokenRecord>>,
  ): Promise<ModifiedToken> {
    const timed = async (record: TokenRecord) => withScopesTime(record, await apply(record), now);
    const change = await this.#records.change(owner, valueOrId, now, conditions, timed);
    const diff = conditions.dryRun === true ? await this.#decider.diff(change) : undefined;
    if (diff === undefined) {
      this.#events.changed(change, now);
      await this.#parts.limits.prolong(change.before, change.after);
    }
    const [token] = this.#parts.view.shown([change.after], now) as [Token];
    return diff === undefined ? token : Object.freeze({ ...token, diff });
  }
}
