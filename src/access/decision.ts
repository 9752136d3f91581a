import type { Events } from '../events.ts';
import type { IntrospectOptions } from '../input.ts';
import type { LimitHit } from '../limits/leases.ts';
import { isCounted, type Limits } from '../limits/limits.ts';
import type { RecordChange } from '../records/change-queue.ts';
import type { RecordReader } from '../records/reader.ts';
import type { Rotations } from '../records/rotation.ts';
import { tokenOf } from '../records/token-view.ts';
import {
  type KnownScopes,
  type ReadRequest,
  type RequestReason,
  type Scope,
  type ScopeDiff,
  ScopeSet,
} from '../scope/index.ts';
import {
  type Explanation,
  isAccepted,
  type Proof,
  type RefusalReason,
  stateOf,
  type Token,
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
}

/** What a {@link Decider} works with. */
export interface DeciderParts {
  readonly values: Values;
  readonly reader: RecordReader;
  readonly catalogs: AccountCatalogs;
  readonly compiled: CompiledScopes;
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
      return this.#judge({ presented, record: cached, proof }, reading, call);
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
    const proof = proofOf(presented, record);
    return this.#judge({ presented, record, proof }, reading, call) as Promise<Verdict>;
  }

  #judge(claim: Claim, reading: NeedReading, call: Call): Verdict | Promise<Verdict> | undefined {
    const { record, proof } = claim;
    const { now } = call;
    const reason = this.#refusalOf(record, proof, now) ?? this.#elsewhere(record, call);
    if (reason !== undefined) return this.#refuse(reason, now, record);
    if (!reading.ok) return this.#refuse('ambiguous_request', now, record, reading.reason);
    const { need } = reading;
    const by = this.#parts.compiled.grantOf(record.scopes, need);
    return by === undefined
      ? this.#refuseNeed(record, need, now)
      : this.#accept(claim, by.toString(), call);
  }

  /** Why a token may not be used from where it is. Nobody asks for the address of others. */
  #elsewhere(
    record: TokenRecord,
    { address }: Pick<Call, 'address'>,
  ): 'address_unknown' | 'address_denied' | undefined {
    if (record.limits?.addresses === undefined) return undefined;
    return this.#parts.limits.refusalOf(
      record,
      typeof address === 'function' ? address() : address,
    );
  }

  /** Accepts a claim if its token has a use left. Waits for the store only if it does not know that. */
  #accept(
    claim: Claim,
    grantedBy: string,
    { now, source }: Call,
  ): Verdict | Promise<Verdict> | undefined {
    const { record } = claim;
    if (!isCounted(record)) return this.#allow(claim, grantedBy, now);
    const { limits } = this.#parts;
    const settle = (spent: true | LimitHit) =>
      spent === true ? this.#allow(claim, grantedBy, now) : this.#refuseUse(record, spent, now);
    const spent = limits.spend([record], now);
    if (spent !== undefined) return settle(spent);
    return source === 'cache' ? undefined : limits.spendLater([record]).then(settle);
  }

  #allow({ presented, record, proof }: Claim, grantedBy: string, now: number): Verdict {
    const { events, usage, rotations } = this.#parts;
    events.verified(record, grantedBy, now);
    usage?.used(record.id, grantedBy, now);
    // A value that waited for its first use is the accepted one from now on.
    if (proof === 'pending') rotations.activate(presented, now);
    return Object.freeze({ ok: true, token: tokenOf(record, now), grantedBy });
  }

  #refuseNeed(
    record: TokenRecord,
    need: ReadRequest | Scope,
    now: number,
  ): Verdict | Promise<Verdict> {
    const { catalogs, compiled, events, usage } = this.#parts;
    const refuseBy = (catalog: KnownScopes | undefined) => {
      const verdict = insufficient(compiled.setOf(record.scopes), need, catalog);
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

  /** The token that a value belongs to, read from the store, unless it has ended. */
  async introspect(
    value: unknown,
    now: number,
    { countsAsUse = false, includeSuspended = false, address }: IntrospectOptions,
  ): Promise<Token | undefined> {
    const { values, reader, rotations } = this.#parts;
    const usage = countsAsUse ? this.#parts.usage : undefined;
    const presented = values.read(value);
    if (presented === undefined) return undefined;
    const record = await reader.read(presented.id, now);
    if (record === undefined) return undefined;
    const proof = proofOf(presented, record);
    const reason = this.#refusalOf(record, proof, now);
    const isUsable =
      reason === undefined && (!countsAsUse || (await this.#takeUse(record, { now, address })));
    if (isUsable) usage?.used(record.id, OTHER_SCOPES, now);
    else usage?.refused(record.id, now);
    if (reason === 'suspended' && includeSuspended) return tokenOf(record, now);
    if (!isUsable) return undefined;
    if (countsAsUse && proof === 'pending') rotations.activate(presented, now);
    return tokenOf(record, now);
  }

  /** Whether the limits of a token let it be used now. */
  async #takeUse(
    record: TokenRecord,
    { now, address }: Pick<Call, 'now' | 'address'>,
  ): Promise<boolean> {
    const { limits } = this.#parts;
    if (this.#elsewhere(record, { address }) !== undefined) return false;
    if (!isCounted(record)) return true;
    return (limits.spend([record], now) ?? (await limits.spendLater([record]))) === true;
  }

  /**
   * Explains what a token of an account may do; no event. `undefined`: the account has no such token,
   * which is explained as one that holds nothing.
   *
   * @throws {TokenError} `store_unavailable` if the catalog fails
   */
  explain(
    record: TokenRecord | undefined,
    reading: NeedReading,
    catalog: KnownScopes | undefined,
    now: number,
  ): Explanation {
    const set =
      record === undefined ? ScopeSet.from([]) : this.#parts.compiled.setOf(record.scopes);
    const explanation = reading.ok
      ? askCatalog(() => explainNeed(set, reading.need, catalog))
      : explainAmbiguous(reading.reason);
    const reason = record === undefined ? 'unknown' : stateOf(record, now);
    if (reason === 'active') return explanation;
    const { grantedBy: _, ...others } = explanation;
    return Object.freeze({ ...others, allowed: false, reason });
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
    reason: Exclude<RefusalReason, 'insufficient_scope'>,
    now: number,
    { id, account }: Partial<Pick<TokenRecord, 'id' | 'account'>> = {},
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

/** The verdict on a live token that does not cover what is needed; explained when that is read. */
function insufficient(
  set: ScopeSet,
  need: ReadRequest | Scope,
  catalog: KnownScopes | undefined,
): RefusedVerdict & { readonly needed: string } {
  let explanation: Explanation | undefined;
  return Object.freeze({
    ok: false,
    reason: 'insufficient_scope',
    needed: asFarAsKnown(catalog, (known) => neededFor(need, known)),
    get explanation(): Explanation {
      explanation ??= asFarAsKnown(catalog, (known) => explainNeed(set, need, known));
      return explanation;
    },
  });
}
