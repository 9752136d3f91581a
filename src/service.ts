import type * as z from 'zod';
import { RecordReader } from './cache.ts';
import { steadyClock, withDeadline } from './clock.ts';
import { corruptStore, isTokenError, storeFailure, TokenError } from './errors.ts';
import { Events } from './events.ts';
import {
  type ChangeOptions,
  changeOptions,
  type IssueInput,
  issueInput,
  type ListInput,
  listInput,
  type ModifyInput,
  modifyInput,
  type PatchInput,
  type PurgeInput,
  patchInput,
  purgeInput,
  type Read,
  type RotateOptions,
  readAccount,
  readInput,
  revokeOptions,
  rotateOptions,
  scopeRefusal,
  toTokenError,
  type VerifyOptions,
  verifyOptions,
} from './input.ts';
import { type KeyOptions, KeyRing } from './keys.ts';
import { type CatalogOption, isCatalog, readOptions, type TokenServiceOptions } from './options.ts';
import { MAX_SCOPES } from './scope/catalog.ts';
import { recallScope, toScope } from './scope/grammar.ts';
import {
  covers,
  overlaps,
  type ReadRequest,
  type RequestReason,
  readRequest,
  type Scope,
  type ScopeCatalog,
  type ScopeDiff,
  type ScopeRequest,
  ScopeSet,
} from './scope/index.ts';
import { nameNeed } from './scope/matcher.ts';
import type { PageQuery, Position, TokenStore } from './store.ts';
import {
  checkExpiry,
  copyMetadata,
  type Explanation,
  expiryAfter,
  frozenList,
  type IssuedToken,
  isExpired,
  isRecord,
  type Lifetime,
  type RefusalReason,
  type Token,
  type TokenId,
  type TokenRecord,
  type Verdict,
} from './token.ts';
import {
  checkPrefix,
  isCurrentValue,
  isPreviousValue,
  maskValue,
  mintValue,
  newId,
  type PresentedValue,
  readId,
  redact,
  revealValue,
  ValueReader,
} from './value.ts';

/** What a bearer wants to do: a scope, or the request itself. */
export type Need =
  | {
      /** What the token must cover. */
      readonly scope: Scope | string;
    }
  | ScopeRequest;

/** One page of an account's tokens. */
export interface TokenPage {
  /** Newest first. */
  readonly tokens: Token[];
  /** Leads to the next page; absent on the last one. */
  readonly cursor?: string;
}

/** What a change gives, with the difference in rights where only that was asked for. */
export type ModifiedToken = Token & {
  /** What the change gives and takes; with `dryRun` alone. */
  readonly diff?: ScopeDiff;
};

const DEFAULT_PAGE = 100;
const SCANNED_PAGE = 500;
const MAX_SCANNED_PAGES = 20;
const PURGE_BATCH = 1000;
const MAX_DRAWS = 5;
const MAX_CHANGE_ATTEMPTS = 1000;

/**
 * Issues, lists, shows, modifies, verifies, rotates and revokes access tokens.
 *
 * The verbs that manage tokens take the account, and to them another account's token, an unknown
 * one and a revoked one are the same. Each call asks the clock once. All rejections are
 * {@link TokenError}s; besides those that a verb names, any of them may be `store_unavailable` (the
 * store broke or took too long: nothing is known), `store_corrupt` (it holds what is no record) or
 * `invalid_request` (an argument of the wrong kind).
 *
 * @example
 * const tokens = new TokenService({
 *   store: new MemoryTokenStore(),
 *   keys: [generateKey()],
 *   prefix: 'acme',
 * });
 * const token = await tokens.issue({ account: 'acme', scopes: ['GET:shop.example/orders'] });
 * const verdict = await tokens.verify(token.value, { scope: 'GET:shop.example/orders/7' });
 * console.log(verdict.ok); // true
 */
export class TokenService {
  readonly #store: TokenStore;
  readonly #ring: KeyRing;
  readonly #prefix: string;
  readonly #values: ValueReader;
  readonly #catalog: CatalogOption | undefined;
  /** This instant, in milliseconds since 1970. */
  readonly #now: () => number;
  readonly #reveals: boolean;
  readonly #lifetime: Lifetime;
  readonly #deadlineMs: number;
  readonly #reader: RecordReader;
  readonly #events: Events;
  readonly #issueInput: z.ZodType<Read<IssueInput>>;
  readonly #sets = new WeakMap<readonly string[], ScopeSet>();

  /**
   * Reads the options once; opens nothing and asks the store nothing.
   *
   * @throws {TokenError} `invalid_options`, naming the option and what it should be, never its value
   */
  constructor(options: TokenServiceOptions) {
    const read = readOptions(options);
    this.#store = read.store;
    this.#ring = new KeyRing(read.keys);
    this.#prefix = checkPrefix(read.prefix);
    this.#values = new ValueReader(this.#ring, this.#prefix);
    this.#catalog = read.catalog;
    this.#now = steadyClock(read.clock);
    this.#reveals = read.reveal === 'always';
    this.#lifetime = read.lifetime;
    this.#deadlineMs = read.deadlineMs;
    this.#events = new Events(read.onEvent);
    this.#reader = new RecordReader(read.store, read.cache, {
      ask: (call) => this.#ask(call),
      failure: (error) => this.#failure(error),
    });
    this.#issueInput = issueInput(this.#lifetime);
  }

  /** How long tokens of this service live. */
  get lifetime(): Lifetime {
    return this.#lifetime;
  }

  /**
   * Makes a token. With a catalog, what it may do is a snapshot: the scopes that exist now and are
   * asked for.
   *
   * @throws {TokenError} `scopes_required`, `too_many_scopes`, `invalid_scope`, `invalid_ttl`,
   * `catalog_empty`, or `scope_unmatched` when a scope meets nothing in the catalog; nothing is
   * issued then
   * @example
   * const token = await tokens.issue({
   *   account: 'acme',
   *   scopes: ['GET:shop.example/orders'],
   *   ttlSeconds: 3600,
   * });
   * console.log(token.value); // 'acme_1k1…'
   */
  async issue(input: IssueInput): Promise<IssuedToken> {
    const now = this.#now();
    const { account, scopes, ttlSeconds, name, metadata } = readInput(this.#issueInput, input);
    const granted = await this.#expand(account, scopes);
    const fields = {
      account,
      scopes: granted,
      requested: scopes.map(String),
      createdAt: new Date(now),
      expiresAt: expiryAfter(now, ttlSeconds ?? this.#lifetime.defaultSeconds),
      version: 1,
      ...(name !== undefined && { name }),
      ...(metadata !== undefined && { metadata: copyMetadata(metadata) }),
    };
    return this.#insert(fields, now);
  }

  /**
   * Lists the active tokens of an account, newest first, page by page. Tokens issued or revoked in
   * between never make another one appear twice or go missing.
   *
   * With `scope`, a page may hold fewer tokens than `limit`, or none, and still have a `cursor`:
   * some ten thousand tokens are looked at for one page.
   *
   * @throws {TokenError} `invalid_scope`; `invalid_request` also for a cursor that was made for
   * another account or filter
   * @example
   * const { tokens: page, cursor } = await tokens.list({ account: 'acme', limit: 50 });
   */
  async list(input: ListInput): Promise<TokenPage> {
    const now = this.#now();
    const {
      account,
      scope,
      match = 'overlaps',
      limit = DEFAULT_PAGE,
      cursor,
    } = readInput<Read<ListInput>>(listInput as z.ZodType<Read<ListInput>>, input);
    const bound = JSON.stringify([account, scope ?? null, match]);
    const isWanted = this.#filter(scope, match);
    const wanted: TokenRecord[] = [];
    let after = cursor === undefined ? undefined : this.#readCursor(cursor, bound);
    const until = this.#deadline();
    for (let pages = 1; ; pages++) {
      const size = scope === undefined ? limit + 1 : SCANNED_PAGE;
      const page = await this.#page({ account, after, limit: size, liveAt: new Date(now) }, until);
      for (const record of page) {
        if (wanted.length === limit) return this.#pageOf(wanted, now, bound, after);
        if (isWanted(record)) wanted.push(record);
        after = record;
      }
      if (page.length < size) return this.#pageOf(wanted, now, bound);
      if (pages === MAX_SCANNED_PAGES) return this.#pageOf(wanted, now, bound, after);
    }
  }

  /**
   * Shows one token, also an expired one until it is purged.
   *
   * @returns `undefined` when this account has no such token, also when the text is none
   * @throws {TokenError} `invalid_request` when the account cannot be one; `store_unavailable`
   * @example
   * const token = await tokens.get('acme', id);
   * console.log(token?.state); // 'active'
   */
  async get(account: string, valueOrId: string): Promise<Token | undefined> {
    const now = this.#now();
    const record = await this.#owned(readAccount(account), valueOrId, now);
    return record && this.#toToken(record, now);
  }

  /**
   * Puts new scopes and a new expiry in the place of the old ones. The value, the name and the
   * metadata stay.
   *
   * @throws {TokenError} as `issue` does, and `invalid_expire`, `not_found`, `token_expired`,
   * `version_conflict`, checked in this order
   * @example
   * const scopes = ['GET:shop.example/orders'];
   * const { version } = await tokens.modify('acme', id, { scopes }, { ifVersion: 1 });
   * console.log(version); // 2
   */
  async modify(
    account: string,
    valueOrId: string,
    change: ModifyInput,
    options: ChangeOptions = {},
  ): Promise<ModifiedToken> {
    const now = this.#now();
    const owner = readAccount(account);
    const { scopes, expiresAt } = readInput(modifyInput, change);
    const conditions = readInput(changeOptions, options);
    const expiry = this.#expiry(expiresAt, now) ?? expiryAfter(now, this.#lifetime.defaultSeconds);
    const granted = await this.#expand(owner, scopes);
    return this.#change(owner, valueOrId, now, conditions, () => ({
      scopes: granted,
      requested: scopes.map(String),
      expiresAt: expiry,
    }));
  }

  /**
   * Changes what is named and leaves the rest as it is.
   *
   * @throws {TokenError} as `modify` does; `scope_unmatched` also when a scope to be removed covers
   * none that is held, or only part of one; `scopes_required` when no scope would be left
   * @example
   * const change = { removeScopes: ['POST:shop.example/orders'], name: 'reader' };
   * const { diff } = await tokens.patch('acme', id, change, { dryRun: true });
   * console.log(diff?.removed); // ['POST:shop.example/orders']
   */
  async patch(
    account: string,
    valueOrId: string,
    change: PatchInput,
    options: ChangeOptions = {},
  ): Promise<ModifiedToken> {
    const now = this.#now();
    const owner = readAccount(account);
    const read = readInput(patchInput, change);
    const conditions = readInput(changeOptions, options);
    const { scopes, addScopes, removeScopes, name, metadata } = read;
    if (Object.values(read).every((member) => member === undefined)) {
      throw new TokenError('invalid_request', 'a change must name at least one member');
    }
    if (scopes !== undefined && (addScopes !== undefined || removeScopes !== undefined)) {
      throw new TokenError(
        'invalid_request',
        'scopes replaces all that is held, so it cannot stand beside addScopes or removeScopes',
      );
    }
    const expiresAt = this.#expiry(read.expiresAt, now);
    const asked = scopes ?? addScopes;
    const granted = asked === undefined ? [] : await this.#expand(owner, asked);
    return this.#change(owner, valueOrId, now, conditions, (record) => ({
      ...(scopes !== undefined && {
        scopes: granted,
        requested: scopes.map(String),
      }),
      ...((addScopes !== undefined || removeScopes !== undefined) &&
        withScopes(record, granted, addScopes ?? [], removeScopes ?? [])),
      ...(expiresAt !== undefined && { expiresAt }),
      ...(name !== undefined && { name: name ?? undefined }),
      ...(metadata !== undefined && {
        metadata: metadata ? copyMetadata(metadata) : undefined,
      }),
    }));
  }

  /**
   * Refuses a token from now on, for good. With `ifVersion`, only when it still has that version.
   *
   * @returns whether this call did it: false when this account has no such token, or no longer
   * @throws {TokenError} `version_conflict`; `durability_unconfirmed` when it is done, and a failover of
   * the store may undo it
   * @example
   * console.log(await tokens.revoke('acme', id)); // true
   */
  async revoke(
    account: string,
    valueOrId: string,
    options: Pick<ChangeOptions, 'ifVersion'> = {},
  ): Promise<boolean> {
    const now = this.#now();
    const owner = readAccount(account);
    const { ifVersion } = readInput(revokeOptions, options);
    const until = this.#deadline();
    const id = readId(valueOrId) ?? (await this.#owned(owner, valueOrId, now))?.id;
    if (id === undefined) return false;
    if (
      await this.#decide([id], () => this.#store.revoke(id, owner, new Date(now), ifVersion), until)
    ) {
      this.#tell('revoked', { id, account: owner }, now);
      return true;
    }
    if (ifVersion === undefined) return false;
    const record = await this.#owned(owner, id, now);
    if (record === undefined) return false;
    throw versionConflict(record);
  }

  /**
   * Refuses all tokens of an account from now on, for good: call it when an account goes.
   *
   * @returns how many were revoked by this call
   * @throws {TokenError} `store_unavailable`: all, some or none are revoked then; call it again
   * @example
   * console.log(await tokens.revokeAll('acme')); // 3
   */
  async revokeAll(account: string): Promise<number> {
    const now = this.#now();
    const owner = readAccount(account);
    const count = await this.#write('all', () =>
      this.#count(() => this.#store.revokeAll(owner, new Date(now))),
    );
    this.#events.tell({ type: 'revoked_all', account: owner, count, at: new Date(now) });
    return count;
  }

  /**
   * Gives a token a new value: same id, scopes and expiry. The old value is refused at once, or,
   * with `graceSeconds`, from then on; it never outlives the token. Whoever presents it later is
   * told of as an event `reused`. Only the value that was replaced last is known: a second `rotate`
   * ends the grace of the one before, which is plainly `unknown` from then on.
   *
   * @throws {TokenError} `not_found`, `token_expired`, `version_conflict`
   * @example
   * const { value } = await tokens.rotate('acme', id, { graceSeconds: 3600 });
   */
  async rotate(
    account: string,
    valueOrId: string,
    options: RotateOptions = {},
  ): Promise<IssuedToken> {
    const now = this.#now();
    const owner = readAccount(account);
    const { graceSeconds = 0, ifVersion } = readInput(rotateOptions, options);
    let value = '';
    const rotated = await this.#change(owner, valueOrId, now, { ifVersion }, (record) => {
      const minted = this.#mint(record.id, owner);
      value = minted.value;
      const until = Math.min(expiryAfter(now, graceSeconds).getTime(), record.expiresAt.getTime());
      return {
        box: undefined,
        ...minted.kept,
        previousDigest: record.digest,
        previousUntil: new Date(until),
      };
    });
    return Object.freeze({ ...rotated, value });
  }

  /**
   * Decides whether a value allows something. Only reads; a refused value is not an error. The
   * instant of expiry already counts as expired.
   *
   * @param need a scope, or a request with its raw target
   * @param options `fresh`: reads the store, whatever `cache` allows
   * @throws {TokenError} `invalid_scope` when `need.scope` is not a scope
   * @example
   * const verdict = await tokens.verify(value, {
   *   method: 'GET',
   *   domain: 'shop.example',
   *   target: '/orders/7?x=1',
   * });
   * if (!verdict.ok) console.log(verdict.reason); // 'expired'
   */
  async verify(value: string, need: Need, options?: VerifyOptions): Promise<Verdict> {
    const now = this.#now();
    const asked = readNeed(need);
    const fresh = options !== undefined && readInput(verifyOptions, options).fresh === true;
    const presented = this.#values.read(value);
    if (presented === undefined) return this.#refuse('malformed', now);
    const { id } = presented;
    const record = fresh
      ? await this.#reader.read(id, now)
      : (this.#reader.kept(presented, now) ?? (await this.#reader.load(id, now)));
    if (record === undefined) return this.#refuse('unknown', now, presented);
    return this.#judge(record, presented, asked, now, async (set, scope) => {
      const catalog = await this.#catalogOf(record.account).catch(() => undefined);
      return this.#insufficient(record, set, scope, now, catalog);
    });
  }

  /**
   * Decides at once where nothing has to be waited for: the value is malformed, or its record is in
   * memory (see the option `cache`) and the catalog is not a function.
   *
   * @returns the verdict that `verify` would give; `undefined` where `verify` has to be asked
   * @throws {TokenError} as `verify` does
   * @example
   * const verdict = tokens.verifySync(value, need) ?? (await tokens.verify(value, need));
   */
  verifySync(value: string, need: Need): Verdict | undefined {
    const catalog = this.#catalog;
    if (typeof catalog === 'function') return undefined;
    const now = this.#now();
    const asked = readNeed(need);
    const presented = this.#values.read(value);
    if (presented === undefined) return this.#refuse('malformed', now);
    const record = this.#reader.kept(presented, now);
    if (record === undefined) return undefined;
    return this.#judge(record, presented, asked, now, (set, scope) =>
      this.#insufficient(record, set, scope, now, catalog),
    );
  }

  /**
   * Tells whose live token a value is and what it may do, whatever is needed: for answers about a
   * token, not for letting somebody in. Reads the store each time.
   *
   * @returns `undefined` for a value that is malformed, unknown, revoked or expired
   * @throws {TokenError} `store_unavailable`, `store_corrupt`
   * @example
   * const token = await tokens.introspect(value);
   * console.log(token?.scopes); // ['GET:shop.example/orders']
   */
  async introspect(value: string): Promise<Token | undefined> {
    const now = this.#now();
    const presented = this.#values.read(value);
    if (presented === undefined) return undefined;
    const record = await this.#reader.read(presented.id, now);
    if (record === undefined || this.#refusal(record, presented, now) !== undefined)
      return undefined;
    return this.#toToken(record, now, { withValue: false });
  }

  /**
   * Says why a token of this account does or does not allow something. No side effect: it is told of
   * in no event. A token that this account does not have is explained as one that holds nothing.
   *
   * @throws {TokenError} `invalid_scope` when `need.scope` is not a scope
   * @example
   * const need = { method: 'POST', domain: 'shop.example', target: '/orders' };
   * const { nearest, smallest } = await tokens.explain('acme', id, need);
   * console.log(nearest?.failed, smallest); // 'method', 'POST:shop.example/orders'
   */
  async explain(account: string, valueOrId: string, need: Need): Promise<Explanation> {
    const now = this.#now();
    const owner = readAccount(account);
    const asked = readNeed(need);
    const record = await this.#owned(owner, valueOrId, now);
    const catalog = await this.#catalogOf(owner);
    const set = record === undefined ? ScopeSet.from([]) : this.#setOf(record);
    const explanation = asked.ok
      ? askCatalog(() => explainNeed(set, asked.need, catalog))
      : explainAmbiguous(asked.reason);
    if (record !== undefined && !isExpired(record, now)) return explanation;
    const reason = record === undefined ? 'unknown' : 'expired';
    const { grantedBy: _, ...rest } = explanation;
    return Object.freeze({ ...rest, allowed: false, reason });
  }

  /**
   * What an account may ask for, in canonical order: its catalog, or the one scope that covers all
   * where there is no catalog.
   *
   * @throws {TokenError} `invalid_request` when the account cannot be one; `store_unavailable` when its
   * catalog cannot be had
   * @example
   * console.log(await tokens.scopes('acme')); // ['GET:shop.example/orders', …]
   */
  async scopes(account: string): Promise<string[]> {
    const catalog = await this.#catalogOf(readAccount(account));
    return catalog === undefined ? ['*:*/*'] : askCatalog(() => catalog.toArray());
  }

  /**
   * Removes records that expired or were revoked before an instant, in batches of a thousand. Can
   * be stopped and called again at any time.
   *
   * @returns how many were removed
   * @throws {TokenError} `invalid_request` when `before` is later than now; `store_unavailable`, and
   * then some may be removed
   * @example
   * const before = new Date(Date.now() - 90 * 86_400_000);
   * console.log(await tokens.purge({ before, limit: 10_000 })); // 417
   */
  async purge(input: PurgeInput): Promise<number> {
    const now = this.#now();
    const { before, limit = Number.POSITIVE_INFINITY } = readInput(purgeInput, input);
    if (before.getTime() > now) {
      throw new TokenError('invalid_request', 'before must not be later than now');
    }
    let purged = 0;
    while (purged < limit) {
      const size = Math.min(PURGE_BATCH, limit - purged);
      const count = await this.#count(() => this.#store.purge(before, size));
      purged += count;
      if (count < size) break;
      await new Promise(setImmediate);
    }
    this.#events.tell({ type: 'purged', count: purged, at: new Date(now) });
    return purged;
  }

  /**
   * The keys for a service that only verifies: they check values, and can neither reveal nor make
   * one. They are secrets all the same: who has them can tell a value from a lookalike.
   *
   * @example
   * const resourceServer = new TokenService({ store, keys: tokens.verifierKeys(), prefix: 'acme' });
   */
  verifierKeys(): KeyOptions[] {
    return this.#ring.verifierKeys();
  }

  /**
   * Stops listening to the store and closes it.
   *
   * @throws {TokenError} `store_unavailable` when the store does not close
   * @example
   * await tokens.close();
   */
  async close(): Promise<void> {
    await this.#ask(() => this.#reader.close());
    await this.#ask(async () => this.#store.close?.());
  }

  async #insert(
    fields: Omit<TokenRecord, 'id' | 'prefix' | 'kid' | 'digest'>,
    now: number,
  ): Promise<IssuedToken> {
    for (let draws = 1; ; draws++) {
      const id = newId();
      const { value, kept } = this.#mint(id, fields.account);
      const record: TokenRecord = { id, ...fields, ...kept };
      if (await this.#ask(() => isInserted(this.#store.insert(record)))) {
        this.#tell('issued', record, now);
        return Object.freeze({ ...this.#toToken(record, now, { withValue: false }), value });
      }
      if (draws === MAX_DRAWS) throw this.#failure(corruptStore());
    }
  }

  /** Reads, applies a change over the version that was read, and starts again when another won. */
  async #change(
    account: string,
    valueOrId: string,
    now: number,
    { ifVersion, dryRun = false }: ChangeOptions,
    apply: (record: TokenRecord) => Partial<TokenRecord>,
  ): Promise<ModifiedToken> {
    for (let attempts = 1; attempts <= MAX_CHANGE_ATTEMPTS; attempts++) {
      // For both calls; anew where another change won, since the store is at work then.
      const until = this.#deadline();
      const record = await this.#owned(account, valueOrId, now);
      if (record === undefined) throw notFound();
      if (isExpired(record, now)) throw tokenExpired();
      if (ifVersion !== undefined && record.version !== ifVersion) throw versionConflict(record);
      const next = { ...record, ...apply(record), version: record.version + 1 };
      if (dryRun) {
        const diff = this.#setOf(record).diff(this.#setOf(next));
        return Object.freeze({ ...this.#toToken(next, now), diff });
      }
      if (await this.#decide([next.id], () => this.#store.replace(next), until)) {
        this.#tell(next.digest === record.digest ? 'modified' : 'rotated', next, now);
        return this.#toToken(next, now);
      }
    }
    throw new TokenError('version_conflict', 'others kept changing this token; try again');
  }

  #mint(id: TokenId, account: string): ReturnType<typeof mintValue> {
    return mintValue(this.#ring, this.#prefix, id, this.#reveals ? account : undefined);
  }

  /** The record that a managing account means; `undefined` for all that it may not know about. */
  async #owned(account: string, valueOrId: unknown, now: number): Promise<TokenRecord | undefined> {
    if (valueOrId === undefined) {
      throw new TokenError('invalid_request', 'give the account first, and then the value or id');
    }
    const presented = this.#values.read(valueOrId);
    const id = presented?.id ?? readId(valueOrId);
    if (id === undefined) return undefined;
    const record = await this.#reader.read(id, now);
    if (record === undefined || record.account !== account) return undefined;
    if (record.revokedAt !== undefined) return undefined;
    return presented === undefined || isCurrent(record, presented, now) ? record : undefined;
  }

  #refusal(
    record: TokenRecord,
    presented: PresentedValue,
    now: number,
  ): 'unknown' | 'revoked' | 'expired' | undefined {
    if (!isCurrent(record, presented, now)) {
      if (isPreviousValue(presented, record)) this.#tell('reused', record, now);
      return 'unknown';
    }
    if (record.revokedAt !== undefined) return 'revoked';
    return isExpired(record, now) ? 'expired' : undefined;
  }

  #refuse(
    reason: Exclude<RefusalReason, 'insufficient_scope'>,
    now: number,
    known: KnownOfToken = {},
    detail?: RequestReason,
  ): RefusedVerdict {
    const { id, account } = known;
    this.#tellRefused({ reason, id, account }, now);
    return Object.freeze({ ok: false, reason, ...(detail !== undefined && { detail }) });
  }

  #tellRefused(
    refusal: KnownOfToken & { readonly reason: RefusalReason; readonly needed?: string },
    now: number,
  ): void {
    if (!this.#events.hears('refused')) return;
    const { reason, id, account, needed } = refusal;
    this.#events.tell({
      type: 'refused',
      reason,
      at: new Date(now),
      ...(id !== undefined && { id }),
      ...(account !== undefined && { account }),
      ...(needed !== undefined && { needed }),
    });
  }

  #tell(
    type: 'issued' | 'modified' | 'rotated' | 'revoked' | 'reused',
    { id, account }: Pick<TokenRecord, 'id' | 'account'>,
    now: number,
  ): void {
    this.#events.tell({ type, id, account, at: new Date(now) });
  }

  #judge<Answer>(
    record: TokenRecord,
    presented: PresentedValue,
    asked: AskedNeed,
    now: number,
    onInsufficient: (set: ScopeSet, need: ReadRequest | Scope) => Answer,
  ): Verdict | Answer {
    const reason = this.#refusal(record, presented, now);
    if (reason !== undefined) return this.#refuse(reason, now, record);
    if (!asked.ok) return this.#refuse('ambiguous_request', now, record, asked.reason);
    const set = this.#setOf(record);
    const by = set.grantOf(asked.need);
    if (by === undefined) return onInsufficient(set, asked.need);
    const grantedBy = by.toString();
    if (this.#events.hears('verified')) {
      const { id, account } = record;
      this.#events.tell({ type: 'verified', id, account, grantedBy, at: new Date(now) });
    }
    const token = this.#toToken(record, now, { withValue: false });
    return Object.freeze({ ok: true, token, grantedBy });
  }

  #insufficient(
    record: TokenRecord,
    set: ScopeSet,
    need: ReadRequest | Scope,
    now: number,
    catalog: ScopeCatalog | undefined,
  ): Verdict {
    const needed = nameOf(asFarAsKnown(catalog, (facts) => nameNeed(need, facts).needed));
    const { id, account } = record;
    this.#tellRefused({ reason: 'insufficient_scope', id, account, needed }, now);
    let explanation: Explanation | undefined;
    return Object.freeze({
      ok: false,
      reason: 'insufficient_scope',
      needed,
      get explanation(): Explanation {
        explanation ??= asFarAsKnown(catalog, (facts) => explainNeed(set, need, facts));
        return explanation;
      },
    });
  }

  async #page(query: PageQuery, until: number): Promise<TokenRecord[]> {
    const { account } = query;
    const page = await this.#ask(() => this.#store.page(query), until);
    const isOurs = (record: TokenRecord | undefined) => {
      const id = readId(record?.id);
      return id !== undefined && isRecord(record, id) && record.account === account;
    };
    if (Array.isArray(page) && page.every(isOurs)) return page;
    throw this.#failure(corruptStore());
  }

  /** What is neither yes nor no must not pass for one: it would acknowledge, or deny, what is not known. */
  async #decide(
    changed: readonly TokenId[],
    call: () => Promise<boolean>,
    until: number,
  ): Promise<boolean> {
    const answer: unknown = await this.#write(changed, () => this.#ask(call, until));
    if (typeof answer === 'boolean') return answer;
    throw this.#failure(corruptStore());
  }

  async #count(call: () => Promise<number>): Promise<number> {
    const answer: unknown = await this.#ask(call);
    if (Number.isSafeInteger(answer) && (answer as number) >= 0) return answer as number;
    throw this.#failure(corruptStore());
  }

  /** Whether a change was made or not: what may have changed is not served from memory again. */
  async #write<Answer>(
    changed: readonly TokenId[] | 'all',
    call: () => Promise<Answer>,
  ): Promise<Answer> {
    try {
      return await call();
    } finally {
      this.#reader.forget(changed);
    }
  }

  /** Every call of the store goes through here: in time, or not known; and no foreign error leaves. */
  async #ask<Answer>(call: () => Promise<Answer>, until?: number): Promise<Answer> {
    try {
      const answer = call();
      if (this.#store.local === true) return await answer;
      const leftMs = until === undefined ? this.#deadlineMs : until - performance.now();
      return await withDeadline(answer, Math.max(0, Math.ceil(leftMs)));
    } catch (error) {
      throw this.#failure(error);
    }
  }

  /** When a verb of several calls that begins now has to be answered, by the monotonic clock. */
  #deadline(): number {
    return performance.now() + this.#deadlineMs;
  }

  /** What the store failed with, in our own words, and told of. */
  #failure(error: unknown): TokenError {
    const failure = storeFailure(error);
    if (!this.#events.hears('store_trouble')) return failure;
    try {
      this.#events.tell({ type: 'store_trouble', code: failure.code, at: new Date(this.#now()) });
    } catch {
      // A clock that breaks at this moment must not hide what broke before.
    }
    return failure;
  }

  async #catalogOf(account: string): Promise<ScopeCatalog | undefined> {
    if (typeof this.#catalog !== 'function') return this.#catalog;
    try {
      const catalog = await withDeadline(Promise.resolve(this.#catalog(account)), this.#deadlineMs);
      if (isCatalog(catalog)) return catalog;
    } catch {
      // Whatever the host's function failed with: what this account may have is not known.
    }
    throw catalogUnavailable();
  }

  async #expand(account: string, scopes: readonly Scope[]): Promise<readonly string[]> {
    const catalog = await this.#catalogOf(account);
    if (catalog === undefined) return Object.freeze(scopes.map(String).sort());
    try {
      return Object.freeze(catalog.expand(scopes).granted);
    } catch (error) {
      const refusal = toTokenError(error);
      throw isTokenError(refusal) ? refusal : catalogUnavailable();
    }
  }

  #expiry(expiresAt: Date | undefined, now: number): Date | undefined {
    return expiresAt && checkExpiry(expiresAt, now, this.#lifetime);
  }

  /** Compiled once for each list of scopes that a store hands out frozen, as ours do. */
  #setOf({ scopes }: Pick<TokenRecord, 'scopes'>): ScopeSet {
    const known = this.#sets.get(scopes);
    if (known !== undefined) return known;
    const set = this.#compile(scopes);
    if (Object.isFrozen(scopes)) this.#sets.set(scopes, set);
    return set;
  }

  #compile(scopes: readonly string[]): ScopeSet {
    try {
      return ScopeSet.from(scopes);
    } catch {
      throw this.#failure(corruptStore());
    }
  }

  #filter(
    scope: Scope | undefined,
    match: NonNullable<ListInput['match']>,
  ): (record: TokenRecord) => boolean {
    if (scope === undefined) return () => true;
    if (match === 'exact') return (record) => record.scopes.includes(scope.toString());
    return (record) => this.#setOf(record)[match](scope);
  }

  #pageOf(records: readonly TokenRecord[], now: number, bound: string, last?: Position): TokenPage {
    const tokens = records.map((record) => this.#toToken(record, now));
    return last === undefined ? { tokens } : { tokens, cursor: this.#toCursor(last, bound) };
  }

  #toCursor({ createdAt, id }: Position, bound: string): string {
    const { active } = this.#ring;
    const place = `${active.kid}.${createdAt.getTime()}.${id}`;
    const signed = `${place}.${active.sign(JSON.stringify([place, bound]))}`;
    return Buffer.from(signed).toString('base64url');
  }

  #readCursor(cursor: string, bound: string): Position {
    const text = Buffer.from(cursor.slice(0, 200), 'base64url').toString('latin1');
    const [, place, kid = '', time, id, signature] =
      /^((\w{2})\.(\d{1,16})\.(\w{22}))\.([\w-]{22})$/.exec(text) ?? [];
    const expected = this.#ring.get(kid)?.sign(JSON.stringify([place, bound]));
    if (expected !== undefined && expected === signature) {
      return { createdAt: new Date(Number(time)), id: id as TokenId };
    }
    throw new TokenError(
      'invalid_request',
      'cursor must be one that an earlier page gave, for the same account and filter',
    );
  }

  #toToken(record: TokenRecord, now: number, { withValue = this.#reveals } = {}): Token {
    const value = withValue ? revealValue(this.#ring, record) : undefined;
    const token: { -readonly [member in keyof Token]: Token[member] } = {
      id: record.id,
      account: record.account,
      scopes: frozenList(record.scopes),
      requested: frozenList(record.requested),
      createdAt: new Date(record.createdAt),
      expiresAt: new Date(record.expiresAt),
      version: record.version,
      state: isExpired(record, now) ? 'expired' : 'active',
      masked: maskValue(record),
    };
    if (value !== undefined) token.value = value;
    if (record.name !== undefined) token.name = record.name;
    if (record.metadata !== undefined) token.metadata = record.metadata;
    return Object.freeze(token);
  }
}

/** What is known of a token whose value was refused. */
interface KnownOfToken {
  readonly id?: TokenId | undefined;
  readonly account?: string | undefined;
}

type RefusedVerdict = Extract<Verdict, { readonly ok: false }>;

type AskedNeed =
  | { readonly ok: true; readonly need: ReadRequest | Scope }
  | { readonly ok: false; readonly reason: RequestReason };

/** Reads what is needed: a scope, or a request that means one thing only. */
function readNeed(need: Need): AskedNeed {
  if (typeof need !== 'object' || need === null) throw needRequired();
  if ('scope' in need) {
    // Beside a part of a request: one of the two would be left out, and nobody knows which is meant.
    if ('method' in need || 'domain' in need || 'target' in need) throw needRequired();
    return { ok: true, need: readScope(need.scope) };
  }
  if (!('method' in need && 'domain' in need && 'target' in need)) throw needRequired();
  const reading = readRequest(need);
  return reading.ok ? { ok: true, need: reading.request } : reading;
}

function readScope(value: Scope | string): Scope {
  if (typeof value === 'string') {
    const reading = recallScope(value);
    if (reading.ok) return reading.scope;
  }
  try {
    return toScope(value);
  } catch (error) {
    throw toTokenError(error);
  }
}

function needRequired(): TokenError {
  return new TokenError(
    'invalid_request',
    'what is needed must be { scope } or { method, domain, target }',
  );
}

/** The explanation of the scope module, in texts. */
function explainNeed(
  set: ScopeSet,
  need: ReadRequest | Scope,
  catalog: ScopeCatalog | undefined,
): Explanation {
  const answer = set.explain(need, catalog);
  if (!('needed' in answer)) return explainAmbiguous(answer.reason);
  const { known } = answer;
  const needed = nameOf(answer.needed);
  if (answer.allowed) {
    const grantedBy = answer.by.toString();
    return Object.freeze({ allowed: true, grantedBy, needed, known, suggestions: [] });
  }
  const { nearest, smallest, suggestions } = answer;
  return Object.freeze({
    allowed: false,
    reason: 'insufficient_scope',
    needed,
    ...(nearest && { nearest: { scope: nearest.scope.toString(), failed: nearest.failed } }),
    smallest: nameOf(smallest),
    known,
    suggestions,
  });
}

/**
 * A scope in words that go into answers, events and logs: a path with a value in it ends before that,
 * which is enough as well.
 */
function nameOf(scope: Scope): string {
  const text = scope.toString();
  if (redact(text) === text) return text;
  const segments = scope.path.split('/');
  const path = segments.slice(
    0,
    segments.findIndex((segment) => redact(segment) !== segment),
  );
  return `${scope.method}:${scope.domain}/${path.join('/') || '*'}`;
}

function explainAmbiguous(reason: RequestReason): Explanation {
  return Object.freeze({ allowed: false, reason, needed: '', known: false, suggestions: [] });
}

/** Whether a value is the record's, or the one before the last rotation in its time of grace. */
function isCurrent(record: TokenRecord, presented: PresentedValue, now: number): boolean {
  if (isCurrentValue(presented, record)) return true;
  const { previousUntil } = record;
  if (previousUntil === undefined || previousUntil.getTime() <= now) return false;
  return isPreviousValue(presented, record);
}

/** What is held after some scopes are taken away and others added. */
function withScopes(
  record: TokenRecord,
  added: readonly string[],
  asked: readonly Scope[],
  removed: readonly Scope[],
): Pick<TokenRecord, 'scopes' | 'requested'> {
  const unmatched = removed.filter((scope) => !isRemovable(scope, record.scopes));
  if (unmatched.length > 0) {
    const scopes = unmatched.map(String);
    throw scopeRefusal(
      'scope_unmatched',
      `to be removed, a scope must cover whole scopes that the token holds; ${scopes.slice(0, 5).join(', ')} does not`,
      { scopes },
    );
  }
  const isKept = (scope: string) => !removed.some((other) => covers(other, scope));
  const scopes = union(record.scopes.filter(isKept), added);
  if (scopes.length === 0) {
    throw new TokenError('scopes_required', 'no scope would be left; revoke the token instead');
  }
  if (scopes.length > MAX_SCOPES) {
    throw new TokenError('too_many_scopes', `a token holds at most ${MAX_SCOPES} scopes`);
  }
  return {
    scopes,
    requested: union(record.requested.filter(isKept), asked.map(String)),
  };
}

function isRemovable(scope: Scope, held: readonly string[]): boolean {
  const touched = held.filter((other) => overlaps(scope, other));
  return touched.length > 0 && touched.every((other) => covers(scope, other));
}

function union(a: readonly string[], b: readonly string[]): readonly string[] {
  return Object.freeze([...new Set([...a, ...b])].sort());
}

/** False for an id that is taken, which is for the service to mend; all else stays an error. */
async function isInserted(insertion: Promise<void>): Promise<boolean> {
  try {
    await insertion;
    return true;
  } catch (error) {
    if (isTokenError(error) && error.code === 'id_taken') return false;
    throw error;
  }
}

/** Asks a catalog, which may be of the host's own making: what it fails with stays its own. */
function askCatalog<Answer>(ask: () => Answer): Answer {
  try {
    return ask();
  } catch {
    throw catalogUnavailable();
  }
}

/** As {@link askCatalog}, where the answer is wanted without its facts, too. */
function asFarAsKnown<Answer>(
  catalog: ScopeCatalog | undefined,
  ask: (facts: ScopeCatalog | undefined) => Answer,
): Answer {
  try {
    return ask(catalog);
  } catch {
    return ask(undefined);
  }
}

function catalogUnavailable(): TokenError {
  return new TokenError(
    'store_unavailable',
    'the catalog of this account cannot be had at the moment',
  );
}

function notFound(): TokenError {
  return new TokenError('not_found', 'this account has no such token');
}

function tokenExpired(): TokenError {
  return new TokenError('token_expired', 'the token has expired; issue a new one');
}

function versionConflict({ version }: TokenRecord): TokenError {
  return new TokenError('version_conflict', `the token has version ${version} now; read it again`, {
    version,
  });
}
