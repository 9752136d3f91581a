import { TokenError } from '../errors.ts';
import type { Events } from '../events.ts';
import type { IntrospectOptions } from '../input.ts';
import type { AddressFault } from '../limits/blocks.ts';
import type { LimitHit } from '../limits/leases.ts';
import { isCounted, type Limits } from '../limits/limits.ts';
import type { RecordChange } from '../records/change-queue.ts';
import type { RecordReader } from '../records/reader.ts';
import type { Rotations } from '../records/rotation.ts';
import { tokenOf } from '../records/token-view.ts';
import type {
  KnownScopes,
  ReadRequest,
  RequestReason,
  Scope,
  ScopeDiff,
  ScopeSet,
} from '../scope/index.ts';
import {
  type Explanation,
  isAccepted,
  type Proof,
  type RefusalReason,
  stateOf,
  type Token,
  type TokenId,
  type TokenRecord,
  type TokenState,
  type Verdict,
} from '../token.ts';
import type { UsageRecorder } from '../usage/recorder.ts';
import { OTHER_SCOPES } from '../usage-store.ts';
import { type PresentedValue, proofOf, type Values } from '../values/value.ts';
import { type AccountCatalogs, asFarAsKnown, askCatalog } from './catalogs.ts';
import type { CompiledScopes } from './compiled-scopes.ts';
import { explainAmbiguous, explainNeed, neededFor } from './explain.ts';
import { type Ancestors, ancestorFault, type Grant, type Lineages } from './lineage.ts';
import { type Need, type NeedReading, readNeed } from './need.ts';

type RefusedVerdict = Extract<Verdict, { readonly ok: false }>;

/** Where a decision gets the record: from the cache alone, from it or the store, or from the store. */
export type Source = 'cache' | 'any' | 'store';

/** How a decision is asked for. */
export interface Call {
  readonly now: number;
  readonly source: Source;
  /** The address that the request comes from, or how to find it out. */
  readonly address: string | undefined | (() => string | undefined);
}

/** A value, and the record that it claims. */
interface Claim {
  readonly presented: PresentedValue;
  readonly record: TokenRecord;
  readonly proof: Proof | undefined;
  /** Empty until they are read. */
  readonly ancestors: Ancestors;
}

/** What allows a claim: a scope of its token, and one of each ancestor. */
interface Grants {
  readonly by: Scope;
  readonly above: readonly Grant[];
}

/** Whose scopes do not cover what is needed. */
interface NeedRefusal {
  readonly reason: 'insufficient_scope' | 'ancestor_insufficient';
  readonly need: ReadRequest | Scope;
  readonly held: readonly string[];
}

interface RefusedToken {
  readonly id?: TokenId | undefined;
  readonly account?: string | undefined;
}

/** The token of a value: whether it is live, and what its ancestors leave of it. */
interface Standing {
  readonly reason: ReturnType<typeof refusalOf> | ReturnType<typeof ancestorFault>;
  readonly claim: Claim;
  readonly held: TokenRecord;
}

/** A value that belongs to no token. */
interface NoStanding {
  readonly reason: 'malformed' | 'unknown';
  readonly claim?: undefined;
  readonly id?: TokenId;
}

const NO_ANCESTORS: Ancestors = [];
const NOTHING_ABOVE: readonly Grant[] = [];

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

  constructor(parts: DeciderParts) {
    this.#parts = parts;
  }

  /**
   * The verdict on a value; a promise of it if a store or a catalog has to be asked; `undefined` if
   * the store would have to be asked, and may not.
   *
   * @throws {TokenError} as {@link readNeed} and the store, also by rejecting
   */
  decide(value: unknown, need: Need, call: Call): Verdict | Promise<Verdict> | undefined {
    const { values, reader, catalogs } = this.#parts;
    const { now, source } = call;
    const reading = readNeed(need, catalogs.routes);
    const presented = values.read(value);
    if (presented === undefined) return this.#refuse('malformed', now);
    const cached = source === 'store' ? undefined : reader.cached(presented.id, now);
    // A value that does not belong to the cached record may belong to a newer one.
    const proof = cached && proofOf(presented, cached);
    if (cached !== undefined && proof !== undefined) {
      const claim = { presented, record: cached, proof, ancestors: NO_ANCESTORS };
      return this.#judge(claim, reading, call);
    }
    return source === 'cache' ? undefined : this.#decideLater(presented, reading, call);
  }

  async #decideLater(
    presented: PresentedValue,
    reading: NeedReading,
    call: Call,
  ): Promise<Verdict> {
    const { reader } = this.#parts;
    const { now, source } = call;
    const { id } = presented;
    const record = await (source === 'store' ? reader.read(id, now) : reader.load(id, now));
    if (record === undefined) return this.#refuse('unknown', now, { id });
    const claim = { presented, record, proof: proofOf(presented, record), ancestors: NO_ANCESTORS };
    return this.#judge(claim, reading, call) as Promise<Verdict>;
  }

  /** `undefined` if the ancestors of the token are not in the cache and may come from nowhere else. */
  #judge(claim: Claim, reading: NeedReading, call: Call): Verdict | Promise<Verdict> | undefined {
    const { record, proof } = claim;
    const { now, source } = call;
    const reason = this.#refusalOf(record, proof, now);
    if (reason !== undefined) return this.#refuse(reason, now, record);
    const { ancestors } = record;
    if (ancestors === undefined) return this.#judgeLive(claim, reading, call);
    const { lineages } = this.#parts;
    const cached = source === 'store' ? undefined : lineages.cached(ancestors, now);
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
    reading: NeedReading,
    call: Call,
  ): Verdict | Promise<Verdict> | undefined {
    const { record, ancestors } = claim;
    const { now } = call;
    const reason = ancestorFault(record, ancestors, now) ?? this.#elsewhere(claim, call);
    if (reason !== undefined) return this.#refuse(reason, now, record);
    if (!reading.ok) return this.#refuse('ambiguous_request', now, record, reading.reason);
    const { need } = reading;
    const { compiled, lineages } = this.#parts;
    const by = compiled.grantOf(record.scopes, need);
    if (by === undefined) {
      const refusal = { reason: 'insufficient_scope', need, held: record.scopes } as const;
      return this.#refuseNeed(record, refusal, now);
    }
    if (ancestors.length === 0) return this.#accept(claim, { by, above: NOTHING_ABOVE }, call);
    const above = lineages.grantsOf(ancestors, need);
    if (!('refusing' in above)) return this.#accept(claim, { by, above: above.grants }, call);
    const refusal = { reason: 'ancestor_insufficient', need, held: above.refusing } as const;
    return this.#refuseNeed(record, refusal, now);
  }

  /** Why a token may not be used from where it is, itself or one of its ancestors. */
  #elsewhere(
    { record, ancestors }: Claim,
    { address }: Pick<Call, 'address'>,
  ): AddressFault | undefined {
    const fault = this.#addressFault(record, address);
    if (fault !== undefined) return fault;
    for (const each of ancestors) {
      const above = each && this.#addressFault(each, address);
      if (above !== undefined) return above;
    }
    return undefined;
  }

  /** Nobody asks for the address unless the token is limited to some. */
  #addressFault({ limits }: TokenRecord, address: Call['address']): AddressFault | undefined {
    if (limits?.addresses === undefined) return undefined;
    const from = typeof address === 'function' ? address() : address;
    return this.#parts.limits.refusalOf(limits.addresses, from);
  }

  /**
   * Accepts a claim if its token and its ancestors have a use left. Waits for the store only if it does not
   * know that.
   */
  #accept(
    claim: Claim,
    grants: Grants,
    { now, source }: Call,
  ): Verdict | Promise<Verdict> | undefined {
    const counted = countedOf(claim);
    if (counted.length === 0) return this.#allow(claim, grants, now);
    const { limits } = this.#parts;
    const settle = (spent: true | LimitHit) =>
      spent === true ? this.#allow(claim, grants, now) : this.#refuseUse(claim.record, spent, now);
    const spent = limits.spend(counted, now);
    if (spent !== undefined) return settle(spent);
    return source === 'cache' ? undefined : limits.spendLater(counted).then(settle);
  }

  #allow(claim: Claim, { by, above }: Grants, now: number): Verdict {
    const { events, usage, lineages } = this.#parts;
    const { record, ancestors } = claim;
    const grantedBy = by.toString();
    events.verified(record, grantedBy, now);
    usage?.used(record.id, grantedBy, now);
    // What a token is used for, its ancestors are used for.
    for (const grant of above) usage?.used(grant.id, grant.by.toString(), now);
    this.#activate(claim, now);
    const token = tokenOf(lineages.within(record, ancestors), now);
    return Object.freeze({ ok: true, token, grantedBy });
  }

  #refuseNeed(record: TokenRecord, refusal: NeedRefusal, now: number): Verdict | Promise<Verdict> {
    const { catalogs, compiled, events, usage } = this.#parts;
    const refuseBy = (catalog: KnownScopes | undefined) => {
      const verdict = insufficient(compiled.setOf(refusal.held), refusal, catalog);
      const { id, account } = record;
      events.refused({ reason: verdict.reason, id, account, needed: verdict.needed }, now);
      usage?.refused(id, now);
      return verdict;
    };
    const catalog = catalogs.of(record.account);
    if (!(catalog instanceof Promise)) return refuseBy(catalog);
    return catalog.then(refuseBy, () => refuseBy(undefined));
  }

  #refuseUse(record: TokenRecord, { retryAt, ...hit }: LimitHit, now: number): RefusedVerdict {
    const refused = this.#refuse('limit_exceeded', now, record);
    if (retryAt === undefined) return refused;
    return Object.freeze({ ...refused, ...hit, retryAt: new Date(retryAt) });
  }

  /**
   * The live token of a value, as far as its ancestors allow it, read from the store.
   *
   * @throws {TokenError} `invalid_token` for any other value, and as the store
   */
  async live(value: unknown, now: number): Promise<TokenRecord> {
    const standing = await this.#standing(value, now);
    const { reason, claim } = standing;
    if (claim === undefined) throw invalidToken(this.#refuse(reason, now, { id: standing.id }));
    if (reason !== undefined) throw invalidToken(this.#refuse(reason, now, claim.record));
    this.#activate(claim, now);
    return standing.held;
  }

  /** The token that a value belongs to, read from the store, unless it has ended. */
  async introspect(
    value: unknown,
    now: number,
    { countsAsUse = false, includeSuspended = false, address }: IntrospectOptions,
  ): Promise<Token | undefined> {
    const usage = countsAsUse ? this.#parts.usage : undefined;
    const standing = await this.#standing(value, now);
    if (standing.claim === undefined) return undefined;
    const { reason, claim, held } = standing;
    const isLive = reason === undefined && held.scopes.length > 0;
    const isUsable = isLive && (!countsAsUse || (await this.#takeUse(claim, { now, address })));
    if (!isUsable) usage?.refused(held.id, now);
    else for (const id of idsOf(held)) usage?.used(id, OTHER_SCOPES, now);
    const isSuspended = reason === 'suspended' || reason === 'ancestor_suspended';
    if (isSuspended && includeSuspended) return tokenOf(held, now);
    if (!isUsable) return undefined;
    if (countsAsUse) this.#activate(claim, now);
    return tokenOf(held, now);
  }

  /** Whether the limits of a token and of its ancestors let it be used now. */
  async #takeUse(claim: Claim, { now, address }: Pick<Call, 'now' | 'address'>): Promise<boolean> {
    const { limits } = this.#parts;
    if (this.#elsewhere(claim, { address }) !== undefined) return false;
    const counted = countedOf(claim);
    if (counted.length === 0) return true;
    return (limits.spend(counted, now) ?? (await limits.spendLater(counted))) === true;
  }

  /**
   * Explains what a token of an account may do; no event. `undefined`: the account has no such token,
   * which is explained as one that holds nothing.
   *
   * @throws {TokenError} `store_unavailable` if the catalog fails, or the ancestors cannot be read
   */
  async explain(
    record: TokenRecord | undefined,
    reading: NeedReading,
    catalog: KnownScopes | undefined,
    now: number,
  ): Promise<Explanation> {
    const { compiled, lineages } = this.#parts;
    const explained = (scopes: readonly string[]) => {
      const set = compiled.setOf(scopes);
      return reading.ok
        ? askCatalog(() => explainNeed(set, reading.need, catalog))
        : explainAmbiguous(reading.reason);
    };
    if (record === undefined) return refusing(explained([]), 'unknown');
    const explanation = explained(record.scopes);
    const state = stateOf(record, now);
    if (state !== 'active') return refusing(explanation, state);
    const ancestors = await lineages.read(record, now);
    const fault = ancestorFault(record, ancestors, now);
    if (fault !== undefined) return refusing(explanation, fault);
    if (!explanation.allowed || !reading.ok) return explanation;
    const above = lineages.grantsOf(ancestors, reading.need);
    if (!('refusing' in above)) return explanation;
    return refusing(explained(above.refusing), 'ancestor_insufficient');
  }

  /** The scopes of a token. */
  heldBy({ scopes }: TokenRecord): ScopeSet {
    return this.#parts.compiled.setOf(scopes);
  }

  /** The rights that a change gives and takes. */
  diff({ before, after }: RecordChange): ScopeDiff {
    const { compiled } = this.#parts;
    return compiled.setOf(before.scopes).diff(compiled.setOf(after.scopes));
  }

  /**
   * Whose a value is, read from the store; why it is refused whatever is needed; and what the ancestors of
   * its token leave of it.
   */
  async #standing(value: unknown, now: number): Promise<Standing | NoStanding> {
    const { values, reader, lineages } = this.#parts;
    const presented = values.read(value);
    if (presented === undefined) return { reason: 'malformed' };
    const { id } = presented;
    const record = await reader.read(id, now);
    if (record === undefined) return { reason: 'unknown', id };
    const claim = { presented, record, proof: proofOf(presented, record), ancestors: NO_ANCESTORS };
    const reason = this.#refusalOf(record, claim.proof, now);
    if (reason !== undefined) return { reason, claim, held: record };
    const ancestors = await lineages.read(record, now);
    return {
      reason: ancestorFault(record, ancestors, now),
      claim: { ...claim, ancestors },
      held: lineages.within(record, ancestors),
    };
  }

  /** A value that waited for its first use is the accepted one from now on. */
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
    now: number,
    { id, account }: RefusedToken = {},
    detail?: RequestReason,
  ): RefusedVerdict {
    const { events, usage } = this.#parts;
    events.refused({ reason, id, account }, now);
    // The account is known of a token that exists.
    if (id !== undefined && account !== undefined) usage?.refused(id, now);
    return Object.freeze({ ok: false, reason, ...(detail !== undefined && { detail }) });
  }
}

/** Why a value is refused whatever is needed; `undefined` for the value of a live token. */
export function refusalOf(
  record: TokenRecord,
  proof: Proof | undefined,
  now: number,
): 'unknown' | Exclude<TokenState, 'active'> | undefined {
  if (!isAccepted(record, proof, now)) return 'unknown';
  const state = stateOf(record, now);
  return state === 'active' ? undefined : state;
}

function withAncestors({ presented, record, proof }: Claim, ancestors: Ancestors): Claim {
  return { presented, record, proof, ancestors };
}

/** Those of a token and its ancestors whose uses are counted. */
function countedOf({ record, ancestors }: Claim): readonly TokenRecord[] {
  const isLimited = (each: TokenRecord | undefined): each is TokenRecord =>
    each !== undefined && isCounted(each);
  if (!isLimited(record) && !ancestors.some(isLimited)) return NOBODY;
  return [record, ...ancestors].filter(isLimited);
}

const NOBODY: readonly TokenRecord[] = [];

function idsOf({ id, ancestors = [] }: TokenRecord): readonly TokenId[] {
  return [id, ...ancestors];
}

/** The verdict on a live token that does not cover what is needed; explained when that is read. */
function insufficient(
  set: ScopeSet,
  { reason, need }: NeedRefusal,
  catalog: KnownScopes | undefined,
): RefusedVerdict & { readonly needed: string } {
  let explanation: Explanation | undefined;
  return Object.freeze({
    ok: false,
    reason,
    needed: asFarAsKnown(catalog, (known) => neededFor(need, known)),
    get explanation(): Explanation {
      explanation ??= asFarAsKnown(catalog, (known) => explainNeed(set, need, known));
      return explanation.reason === reason ? explanation : refusing(explanation, reason);
    },
  });
}

function refusing(explanation: Explanation, reason: RefusalReason): Explanation {
  const { grantedBy: _, ...others } = explanation;
  return Object.freeze({ ...others, allowed: false, reason });
}

/** A bearer does not learn why. */
function invalidToken({ reason }: RefusedVerdict): TokenError {
  return new TokenError('invalid_token', 'the value is not, or no longer, valid', { reason });
}
