import { TokenError } from '../errors.ts';
import type { Events } from '../events.ts';
import type { IntrospectOptions } from '../inputs/types.ts';
import type { AddressFault } from '../limits/blocks.ts';
import type { LimitHit } from '../limits/leases.ts';
import { isCounted, type Limits } from '../limits/limits.ts';
import { OTHER_SCOPES } from '../ports/usage-store.ts';
import type { RecordChange } from '../records/change-queue.ts';
import type { CachedRecord, RecordReader } from '../records/reader.ts';
import type { Rotations } from '../records/rotation.ts';
import { tokenOf } from '../records/token-view.ts';
import type { KnownScopes } from '../scope/explain.ts';
import type { ReadRequest, RequestReason, Scope, ScopeDiff, ScopeSet } from '../scope/index.ts';
import { isReadRequest } from '../scope/request.ts';
import { SEVERAL_ROUTES } from '../scope/set.ts';
import type { Steps } from '../scope/steps.ts';
import { inTurns } from '../time/deadline.ts';
import {
  type Explanation,
  isAccepted,
  isElevation,
  type Proof,
  type RecordState,
  type RefusalReason,
  stateOf,
  type Token,
  type TokenId,
  type TokenRecord,
  type ValueFault,
  type Verdict,
} from '../token/record.ts';
import type { UsageRecorder } from '../usage/recorder.ts';
import { type PresentedValue, proofOf, type Values } from '../values/value.ts';
import { type AccountCatalogs, asFarAsKnown, askCatalog } from './catalogs.ts';
import type { CompiledScopes } from './compiled-scopes.ts';
import { type CarryingRequest, CountedRequests } from './counted-requests.ts';
import { explainAmbiguous, explainNeed, neededFor } from './explain.ts';
import { type Ancestors, ancestorFault, type Grant, type Lineages } from './lineage.ts';
import { type Need, type NeedReading, readNeed, type ValueCheck } from './need.ts';

type RefusedVerdict = Extract<Verdict, { readonly ok: false }>;

/** Where a decision may read records: only the cache, the cache or else the store, or only the store. */
export type Source = 'cache' | 'any' | 'store';

/** The circumstances of a decision. */
export interface Call {
  readonly now: number;
  readonly source: Source;
  /** The address that the request comes from, or a function that returns it. */
  readonly address: string | undefined | (() => string | undefined);
  /** The request that a guard decides about: several guards count it once. */
  readonly request?: CarryingRequest | undefined;
}

/** The parts of a {@link Call} by which its result is counted. */
type CountedCall = Pick<Call, 'now' | 'request'>;

/** A value, and the record that it claims. */
interface Claim {
  readonly presented: PresentedValue;
  readonly record: TokenRecord;
  /** The entry of the cache that the record comes from. */
  readonly cached: CachedRecord | undefined;
  readonly proof: Proof | undefined;
  /** Empty until they are read. */
  readonly ancestors: Ancestors;
}

/** The scopes that allow a claim: one of its token, and one of each ancestor. */
interface Grants {
  readonly by: Scope;
  readonly above: readonly Grant[];
}

/** The grants of a need, as long as the ancestors are the same. */
interface LastGrants {
  readonly need: Scope;
  readonly ancestors: Ancestors;
  readonly grants: Grants;
}

/** A refusal because a token or one of its ancestors does not cover the need. */
interface NeedRefusal {
  readonly reason: 'insufficient_scope' | 'ancestor_insufficient';
  readonly need: ReadRequest | Scope;
  /** All scopes of the token or the ancestor that does not cover it. */
  readonly held: readonly string[];
}

interface RefusedToken {
  readonly id?: TokenId | undefined;
  readonly account?: string | undefined;
}

/** A value whose token was found. */
interface FoundClaim {
  /** Why the value is refused, whatever is needed; `undefined` if its token is live. */
  readonly reason: ReturnType<typeof refusalOf> | ReturnType<typeof ancestorFault>;
  readonly claim: Claim;
  /** The record of the token, narrowed to what its ancestors allow. */
  readonly narrowed: TokenRecord;
}

/** A live token, for a caller that makes another one of it. */
export interface LiveToken {
  /** Narrowed to what its ancestors allow. */
  readonly record: TokenRecord;
  readonly ancestors: Ancestors;
  /** When the presented value ends, if it is in its grace period. */
  readonly validUntil: Date | undefined;
  /**
   * Takes one use of the token and its ancestors, as far as they are limited.
   *
   * @throws {TokenError} `invalid_token` if one of them has none left; `store_unavailable`
   */
  takeUse(): Promise<void>;
}

/** A value that belongs to no token. */
interface NoClaim {
  readonly reason: 'malformed' | 'unknown';
  readonly claim?: undefined;
  readonly id?: TokenId;
  readonly detail?: ValueFault;
}

/** Of a verdict on a value of which nothing is needed. */
const NOTHING = '';
const NO_ANCESTORS: Ancestors = [];
const NO_RECORDS: readonly TokenRecord[] = [];

/** What a {@link Decider} works with. */
export interface DeciderParts {
  readonly values: Values;
  readonly reader: RecordReader;
  readonly catalogs: AccountCatalogs;
  readonly compiled: CompiledScopes;
  readonly lineages: Lineages;
  readonly rotations: Rotations;
  readonly limits: Limits;
  readonly events: Events;
  /** Absent if usage is not recorded. */
  readonly usage: UsageRecorder | undefined;
}

/** Decides whether values allow what is needed. Emits an event for each decision, and counts it. */
export class Decider {
  readonly #parts: DeciderParts;
  readonly #requests = new CountedRequests();

  constructor(parts: DeciderParts) {
    this.#parts = parts;
  }

  /**
   * Returns the verdict on a value, or a promise of it if a store or a catalog has to be asked. With the
   * source `cache`, returns `undefined` instead of asking a store.
   *
   * @throws {TokenError} as {@link readNeed} and the store, also by rejecting
   */
  decide(value: unknown, need: Need, call: Call): Verdict | Promise<Verdict> | undefined {
    return this.#decide(value, readNeed(need, this.#parts.catalogs.routes), call);
  }

  /**
   * Decides whether the token of a value is live and may be used from this address, whatever is needed: the
   * verdict has no `grantedBy`, and its token only the scopes that its ancestors leave. Counts and spends
   * nothing, and emits an event only for a refusal.
   */
  identify(value: unknown, call: Call): Verdict | Promise<Verdict> {
    return this.#decide(value, undefined, call) as Verdict | Promise<Verdict>;
  }

  /** Why a text cannot be a value of this service; `undefined` if it may be one. Reads no store. */
  faultOf(value: unknown): ValueFault | undefined {
    const presented = this.#parts.values.read(value);
    return typeof presented === 'string' ? presented : undefined;
  }

  /**
   * The scope that a refusal would name as enough; `undefined` if the request is ambiguous.
   *
   * @throws {TokenError} as {@link readNeed}
   */
  neededFor(need: Need): string | undefined {
    const { catalogs, values } = this.#parts;
    const reading = readNeed(need, catalogs.routes);
    if (!reading.ok) return undefined;
    return asFarAsKnown(catalogs.shared, (known) =>
      neededFor(reading.need, known, values.holdsValue),
    );
  }

  #decide(
    value: unknown,
    reading: NeedReading | undefined,
    call: Call,
  ): Verdict | Promise<Verdict> | undefined {
    const { values, reader } = this.#parts;
    const { now, source } = call;
    const presented = values.read(value);
    if (typeof presented === 'string') return this.#refuse('malformed', call, {}, presented);
    const cached = source === 'store' ? undefined : reader.cached(presented.id, now);
    // A value that does not belong to the cached record may belong to a newer one.
    const proof = cached?.proofOf(presented);
    if (cached !== undefined && proof !== undefined) {
      const { record } = cached;
      const claim = { presented, record, cached, proof, ancestors: NO_ANCESTORS };
      return this.#judge(claim, reading, call);
    }
    if (source === 'cache') return undefined;
    const { id } = presented;
    const found = source === 'store' ? reader.read(id, now) : reader.load(id, now);
    return found.then((record) =>
      record === undefined
        ? this.#refuse('unknown', call, { id })
        : (this.#judge(claimOf(presented, record), reading, call) as Promise<Verdict>),
    );
  }

  /** Returns `undefined` with the source `cache` if not all ancestors of the token are cached. */
  #judge(
    claim: Claim,
    reading: NeedReading | undefined,
    call: Call,
  ): Verdict | Promise<Verdict> | undefined {
    const { record, proof } = claim;
    const { now, source } = call;
    const reason = this.#refusalOf(record, proof, now);
    if (reason !== undefined) return this.#refuse(reason, call, record);
    const { ancestors } = record;
    if (ancestors === undefined) return this.#judgeLive(claim, reading, call);
    const { lineages } = this.#parts;
    const cached = source === 'store' ? undefined : lineages.cached(record, now, claim.cached);
    if (cached !== undefined) return this.#judgeLive(withAncestors(claim, cached), reading, call);
    if (source === 'cache') return undefined;
    return lineages
      .read(record, now)
      .then(
        (found) => this.#judgeLive(withAncestors(claim, found), reading, call) as Promise<Verdict>,
      );
  }

  #judgeLive(
    claim: Claim,
    reading: NeedReading | undefined,
    call: Call,
  ): Verdict | Promise<Verdict> | undefined {
    const { record, ancestors } = claim;
    const { now } = call;
    const reason = ancestorFault(record, ancestors, now) ?? this.#addressFault(claim, call);
    if (reason !== undefined) return this.#refuse(reason, call, record);
    if (reading === undefined) return this.#welcome(claim, NOTHING, now);
    if (!reading.ok) return this.#refuse('ambiguous_request', call, record, reading.reason);
    const { need } = reading;
    const grants = this.#grantsOf(claim, need);
    return 'reason' in grants
      ? this.#refuseNeed(record, grants, call)
      : this.#accept(claim, grants, call);
  }

  /** What grants a need. Bearers repeat themselves, so a cached record keeps what granted the last scope. */
  #grantsOf({ record, cached, ancestors }: Claim, need: ReadRequest | Scope): Grants | NeedRefusal {
    const last = cached?.decided as LastGrants | undefined;
    if (last?.need === need && last.ancestors === ancestors) return last.grants;
    const { compiled, lineages } = this.#parts;
    const by = compiled.grantOf(record.scopes, need);
    if (by === undefined) return { reason: 'insufficient_scope', need, held: record.scopes };
    const above = lineages.grantsOf(record, ancestors, need);
    if ('refusing' in above) return { reason: 'ancestor_insufficient', need, held: above.refusing };
    const grants = { by, above: above.grants };
    // A request is another object each time, and its path may hold a secret.
    if (cached !== undefined && !isReadRequest(need)) cached.decided = { need, ancestors, grants };
    return grants;
  }

  /** Why the address may not use a token, by the limits of the token or of an ancestor. */
  #addressFault(
    { record, ancestors }: Claim,
    { address }: Pick<Call, 'address'>,
  ): AddressFault | undefined {
    const fault = this.#addressFaultOf(record, address);
    if (fault !== undefined) return fault;
    for (const each of ancestors) {
      const above = each && this.#addressFaultOf(each, address);
      if (above !== undefined) return above;
    }
    return undefined;
  }

  /** Calls the function for the address only if the token is limited to addresses. */
  #addressFaultOf({ limits }: TokenRecord, address: Call['address']): AddressFault | undefined {
    if (limits?.addresses === undefined) return undefined;
    const from = typeof address === 'function' ? address() : address;
    return this.#parts.limits.refusalOf(limits.addresses, from);
  }

  /**
   * Accepts a claim if its token and all ancestors have a use left. Waits for the lease store only if this
   * process has leased none in advance. Returns `undefined` instead of waiting with the source `cache`.
   */
  #accept(claim: Claim, grants: Grants, call: Call): Verdict | Promise<Verdict> | undefined {
    const counted = countedOf(claim);
    if (counted.length === 0) return this.#allow(claim, grants, call);
    const settle = (spent: true | LimitHit) =>
      spent === true
        ? this.#allow(claim, grants, call)
        : this.#refuseUse(claim.record, spent, call);
    const spent = this.#spend(counted, call);
    return spent instanceof Promise ? spent.then(settle) : spent && settle(spent);
  }

  /** Spends a use of each of these tokens, unless another guard has spent it for the same request. */
  #spend(
    counted: readonly TokenRecord[],
    { now, source, request }: Call,
  ): true | LimitHit | Promise<true | LimitHit> | undefined {
    const { limits } = this.#parts;
    const seen = request && this.#requests.of(request);
    if (seen?.spent !== undefined) return seen.spent;
    const spent = limits.spend(counted, now);
    if (spent === true && seen !== undefined) seen.spent = true;
    if (spent !== undefined) return spent;
    if (source === 'cache') return undefined;
    const spending = limits.spendLater(counted);
    if (seen === undefined) return spending;
    const settle = (result: true | undefined) => {
      seen.spent = result;
    };
    seen.spent = spending;
    spending.then(
      (result) => settle(result === true ? result : undefined),
      () => settle(undefined),
    );
    return spending;
  }

  #allow(claim: Claim, { by, above }: Grants, call: CountedCall): Verdict {
    const { events, usage } = this.#parts;
    const { record } = claim;
    const { now } = call;
    const grantedBy = by.toString();
    events.verified(record, grantedBy, now);
    // Not on the hot path of services that do not record it.
    if (usage !== undefined) this.#countUse(usage, record, { by, above }, call);
    return this.#welcome(claim, grantedBy, now);
  }

  #welcome(claim: Claim, grantedBy: string, now: number): Verdict {
    const { record, cached, ancestors } = claim;
    this.#activate(claim, now);
    const shown = this.#parts.lineages.within(record, ancestors);
    const isCached = cached !== undefined && shown === record;
    const token = isCached ? cached.activeToken(now) : tokenOf(shown, now);
    return Object.freeze({ ok: true, token, grantedBy });
  }

  /** Counts a use of a token, which also says that each ancestor is needed; once for each request. */
  #countUse(
    usage: UsageRecorder,
    record: TokenRecord,
    { by, above }: Grants,
    { now, request }: CountedCall,
  ): void {
    const seen = request && this.#requests.of(request);
    if (seen?.isUsed) return;
    if (seen !== undefined) seen.isUsed = true;
    usage.used(record.id, by.toString(), now);
    for (const grant of above) usage.derivedUsed(grant.id, grant.by.toString(), now);
    if (!isElevation(record)) return;
    for (const id of record.ancestors ?? []) usage.derivedUsed(id, OTHER_SCOPES, now);
  }

  #countRefusal(id: TokenId, { now, request }: CountedCall): void {
    const { usage } = this.#parts;
    if (usage === undefined) return;
    const seen = request && this.#requests.of(request);
    if (seen?.isRefused) return;
    if (seen !== undefined) seen.isRefused = true;
    usage.refused(id, now);
  }

  #refuseNeed(
    record: TokenRecord,
    refusal: NeedRefusal,
    call: CountedCall,
  ): Verdict | Promise<Verdict> {
    const { catalogs, compiled, events, values } = this.#parts;
    const { need, held } = refusal;
    if (compiled.setOf(held).isSplitBy(need))
      return this.#refuse('ambiguous_request', call, record, SEVERAL_ROUTES);
    const refuseBy = (catalog: KnownScopes | undefined) => {
      const verdict = insufficient(
        compiled.setOf(refusal.held),
        refusal,
        catalog,
        values.holdsValue,
      );
      const { id, account } = record;
      events.refused({ reason: verdict.reason, id, account, needed: verdict.needed }, call.now);
      this.#countRefusal(id, call);
      return verdict;
    };
    const catalog = catalogs.of(record.account);
    if (!(catalog instanceof Promise)) return refuseBy(catalog);
    return catalog.then(refuseBy, () => refuseBy(undefined));
  }

  #refuseUse(
    record: TokenRecord,
    { retryAt, ...hit }: LimitHit,
    call: CountedCall,
  ): RefusedVerdict {
    const refused = this.#refuse('limit_exceeded', call, record);
    if (retryAt === undefined) return refused;
    return Object.freeze({ ...refused, ...hit, retryAt: new Date(retryAt) });
  }

  /**
   * Reads the live token of a value and its ancestors from the store, and narrows it to what they allow.
   * The value must be one that the address may use.
   *
   * @throws {TokenError} `invalid_token` for any other value, and as the store
   */
  async requireLive(value: unknown, call: Pick<Call, 'now' | 'address'>): Promise<LiveToken> {
    const { now } = call;
    const found = await this.#findClaim(value, now);
    const { claim } = found;
    if (claim === undefined)
      throw invalidToken(this.#refuse(found.reason, { now }, { id: found.id }, found.detail));
    const { record, ancestors, proof } = claim;
    const reason = found.reason ?? this.#addressFault(claim, call);
    if (reason !== undefined) throw invalidToken(this.#refuse(reason, { now }, record));
    this.#activate(claim, now);
    return {
      record: found.narrowed,
      ancestors,
      validUntil: proof === 'previous' ? record.previousUntil : undefined,
      takeUse: () => this.#takeUse(claim, now),
    };
  }

  /**
   * Reads the live token of a value from the store, or with `includeSuspended` also one that may be live
   * again. With `countsAsUse`, only if it has a use left, and takes that.
   */
  async introspect(
    value: unknown,
    now: number,
    { countsAsUse = false, includeSuspended = false, address }: IntrospectOptions,
  ): Promise<Token | undefined> {
    const usage = countsAsUse ? this.#parts.usage : undefined;
    const found = await this.#findClaim(value, now);
    if (found.claim === undefined) {
      // Nothing else tells the host that it has other keys than those who issued the value.
      if (found.reason === 'malformed') this.#refuse(found.reason, { now }, {}, found.detail);
      return undefined;
    }
    const { reason, claim, narrowed } = found;
    const isLive = reason === undefined && narrowed.scopes.length > 0;
    const isUsable = isLive && (!countsAsUse || (await this.#canUse(claim, { now, address })));
    if (!isUsable) usage?.refused(narrowed.id, now);
    else {
      usage?.used(narrowed.id, OTHER_SCOPES, now);
      for (const id of narrowed.ancestors ?? []) usage?.derivedUsed(id, OTHER_SCOPES, now);
    }
    const isSuspended = reason === 'suspended' || reason === 'ancestor_suspended';
    // Not live, but it may be again.
    const isPaused = isSuspended || (reason === undefined && !isLive);
    if (isPaused && includeSuspended) return tokenOf(narrowed, now);
    if (!isUsable) return undefined;
    if (countsAsUse) this.#activate(claim, now);
    return withPriorActors(tokenOf(narrowed, now), claim.ancestors);
  }

  /** Takes one use, if the limits of a token and its ancestors allow it. Resolves to whether they do. */
  async #canUse(claim: Claim, call: Pick<Call, 'now' | 'address'>): Promise<boolean> {
    if (this.#addressFault(claim, call) !== undefined) return false;
    return (await this.#spendFor(claim, call.now)) === true;
  }

  /** @throws {TokenError} `invalid_token` if a token or one of its ancestors has no use left */
  async #takeUse(claim: Claim, now: number): Promise<void> {
    const spent = await this.#spendFor(claim, now);
    if (spent !== true) throw invalidToken(this.#refuseUse(claim.record, spent, { now }));
  }

  async #spendFor(claim: Claim, now: number): Promise<true | LimitHit> {
    const { limits } = this.#parts;
    const counted = countedOf(claim);
    if (counted.length === 0) return true;
    return limits.spend(counted, now) ?? limits.spendLater(counted);
  }

  /**
   * Explains whether a token of an account allows a need. Emits no event. If the account has no such token
   * (`undefined`), explains it as one that holds nothing.
   *
   * @throws {TokenError} `store_unavailable` if the catalog fails, or the ancestors cannot be read
   */
  async explain(
    record: TokenRecord | undefined,
    reading: NeedReading,
    catalog: KnownScopes | undefined,
    now: number,
  ): Promise<Explanation> {
    const { compiled, lineages, values } = this.#parts;
    const explained = (scopes: readonly string[]) => {
      const set = compiled.setOf(scopes);
      return reading.ok
        ? askCatalog(() => explainNeed(set, reading.need, catalog, values.holdsValue))
        : explainAmbiguous(reading.reason);
    };
    if (record === undefined) return asRefusal(explained([]), 'unknown');
    const explanation = explained(record.scopes);
    const state = stateOf(record, now);
    if (state !== 'active') return asRefusal(explanation, state);
    const ancestors = await lineages.read(record, now);
    const fault = ancestorFault(record, ancestors, now);
    if (fault !== undefined) return asRefusal(explanation, fault);
    if (!explanation.allowed || !reading.ok) return explanation;
    const above = lineages.grantsOf(record, ancestors, reading.need);
    if (!('refusing' in above)) return explanation;
    const refusal = explained(above.refusing);
    return refusal.reason === SEVERAL_ROUTES
      ? refusal
      : asRefusal(refusal, 'ancestor_insufficient');
  }

  /** The scopes of a token as a compiled set. */
  scopeSetOf({ scopes }: TokenRecord): ScopeSet {
    return this.#parts.compiled.setOf(scopes);
  }

  /** The rights that a change adds and removes. */
  diff({ before, after }: RecordChange): Promise<ScopeDiff> {
    const { compiled } = this.#parts;
    const steps = function* (): Steps<ScopeDiff> {
      const held = yield* compiled.setInSteps(before.scopes);
      return yield* held.diffInSteps(yield* compiled.setInSteps(after.scopes));
    };
    return inTurns(steps());
  }

  /** Reads the token of a value and its ancestors from the store, and judges all but a need. */
  async #findClaim(value: unknown, now: number): Promise<FoundClaim | NoClaim> {
    const { values, reader, lineages } = this.#parts;
    const presented = values.read(value);
    if (typeof presented === 'string') return { reason: 'malformed', detail: presented };
    const { id } = presented;
    const record = await reader.read(id, now);
    if (record === undefined) return { reason: 'unknown', id };
    const claim = claimOf(presented, record);
    const reason = this.#refusalOf(record, claim.proof, now);
    if (reason !== undefined) return { reason, claim, narrowed: record };
    const ancestors = await lineages.read(record, now);
    return {
      reason: ancestorFault(record, ancestors, now),
      claim: { ...claim, ancestors },
      narrowed: await inTurns(lineages.withinInSteps(record, ancestors)),
    };
  }

  /** Begins to make a value the accepted one if it waited for its first use. */
  #activate({ presented, proof }: Pick<Claim, 'presented' | 'proof'>, now: number): void {
    if (proof === 'pending') this.#parts.rotations.activate(presented, now);
  }

  #refusalOf(
    record: TokenRecord,
    proof: Proof | undefined,
    now: number,
  ): ReturnType<typeof refusalOf> {
    const reason = refusalOf(record, proof, now);
    if (reason === 'unknown' && proof === 'previous')
      this.#parts.events.token('reused', record, now);
    return reason;
  }

  #refuse(
    reason: Exclude<RefusalReason, NeedRefusal['reason']>,
    call: CountedCall,
    { id, account }: RefusedToken = {},
    detail?: RequestReason | ValueFault,
  ): RefusedVerdict {
    this.#parts.events.refused({ reason, id, account, detail }, call.now);
    // The account is known only if the token exists.
    if (id !== undefined && account !== undefined) this.#countRefusal(id, call);
    return Object.freeze({ ok: false, reason, ...(detail !== undefined && { detail }) });
  }
}

/** Why a value is refused whatever is needed; `undefined` for the value of a live token. */
function refusalOf(
  record: TokenRecord,
  proof: Proof | undefined,
  now: number,
): 'unknown' | Exclude<RecordState, 'active'> | undefined {
  if (!isAccepted(record, proof, now)) return 'unknown';
  const state = stateOf(record, now);
  return state === 'active' ? undefined : state;
}

function claimOf(presented: PresentedValue, record: TokenRecord): Claim {
  const proof = proofOf(presented, record);
  return { presented, record, cached: undefined, proof, ancestors: NO_ANCESTORS };
}

/** A token with those who acted with its ancestors. */
function withPriorActors(token: Token, ancestors: Ancestors): Token {
  const priorActors = ancestors.flatMap((ancestor) => ancestor?.origin?.actor ?? []).reverse();
  return priorActors.length === 0
    ? token
    : Object.freeze({ ...token, priorActors: Object.freeze(priorActors) });
}

function withAncestors({ presented, record, cached, proof }: Claim, ancestors: Ancestors): Claim {
  return { presented, record, cached, proof, ancestors };
}

/** The token and its ancestors, without those whose uses are not counted. */
function countedOf({ record, ancestors }: Claim): readonly TokenRecord[] {
  if (ancestors.length === 0) return isCounted(record) ? [record] : NO_RECORDS;
  if (!isLimited(record) && !ancestors.some(isLimited)) return NO_RECORDS;
  return [record, ...ancestors].filter(isLimited);
}

function isLimited(record: TokenRecord | undefined): record is TokenRecord {
  return record !== undefined && isCounted(record);
}

/**
 * The verdict on a live token that does not cover the need. Its explanation is computed when it is read.
 */
function insufficient(
  set: ScopeSet,
  { reason, need }: NeedRefusal,
  catalog: KnownScopes | undefined,
  holdsValue: ValueCheck,
): RefusedVerdict & { readonly needed: string } {
  let explanation: Explanation | undefined;
  return Object.freeze({
    ok: false,
    reason,
    needed: asFarAsKnown(catalog, (known) => neededFor(need, known, holdsValue)),
    get explanation(): Explanation {
      explanation ??= asFarAsKnown(catalog, (known) => explainNeed(set, need, known, holdsValue));
      return explanation.reason === reason ? explanation : asRefusal(explanation, reason);
    },
  });
}

/** The explanation of a refusal for this reason, with the facts about the need. */
function asRefusal(explanation: Explanation, reason: RefusalReason): Explanation {
  const { grantedBy: _, ...others } = explanation;
  return Object.freeze({ ...others, allowed: false, reason });
}

/** The message does not say why, because bearers may see it. The details do, for the host. */
function invalidToken({ reason, detail, rate, retryAfterSeconds }: RefusedVerdict): TokenError {
  return new TokenError('invalid_token', 'the value is not, or no longer, valid', {
    reason,
    ...(detail !== undefined && { detail }),
    ...(rate !== undefined && { rate, retryAfterSeconds }),
  });
}
