import type { Events } from '../events.ts';
import type { UsageTotals } from '../ports/usage-store.ts';
import {
  copyOrigin,
  frozenList,
  type IssuedToken,
  stateOf,
  type Token,
  type TokenRecord,
} from '../token/record.ts';
import type { UsageRecorder } from '../usage/recorder.ts';
import { maskValue, type Values } from '../values/value.ts';

/** Tells of each record whether it has not ended itself, but an ancestor of it has; nothing if none was derived. */
type AreEnded = (
  records: readonly TokenRecord[],
  now: number,
) => Promise<readonly boolean[]> | undefined;

/** Turns records into tokens as their account sees them. Emits `revealed` if these include values. */
export class TokenView {
  readonly #values: Values;
  readonly #events: Events;
  readonly #areEnded: AreEnded;
  /** Absent if usage is not recorded. */
  readonly usage: UsageRecorder | undefined;

  constructor(
    values: Values,
    events: Events,
    areEnded: AreEnded,
    usage: UsageRecorder | undefined,
  ) {
    this.#values = values;
    this.#events = events;
    this.#areEnded = areEnded;
    this.usage = usage;
  }

  /**
   * Shows records with their usage, if it is recorded. A token that could be used, were it not for an
   * ancestor that has ended, is `ancestor_ended`. If the counts cannot be read, the tokens say so
   * instead of failing: finding and revoking a token must not depend on statistics.
   */
  async withUses(records: readonly TokenRecord[], now: number): Promise<Token[]> {
    // The failure was emitted as an event.
    const reading = this.usage?.totalsOf(records.map(({ id }) => id)).catch(() => undefined);
    const ended = this.#areEnded(records, now);
    // Built while the counts and the ancestors are being read.
    const drafts = this.#drafts(records, now);
    if (reading !== undefined || ended !== undefined) {
      const [uses, isEnded] = await Promise.all([reading, ended]);
      for (const [at, draft] of drafts.entries()) {
        if (isEnded?.[at] === true) draft.state = 'ancestor_ended';
        if (this.usage === undefined) continue;
        if (uses === undefined) draft.usesUnknown = true;
        else addUse(draft, uses[at]);
      }
    }
    return drafts.map(Object.freeze) as Token[];
  }

  /** Shows records. */
  shown(records: readonly TokenRecord[], now: number): Token[] {
    return this.#drafts(records, now).map(Object.freeze) as Token[];
  }

  #drafts(records: readonly TokenRecord[], now: number): Draft[] {
    const drafts = records.map((record) => this.#draftOf(record, now));
    const [first, ...others] = drafts.filter(({ value }) => value !== undefined);
    if (first !== undefined) this.#events.revealed(first.account, 1 + others.length, now);
    return drafts;
  }

  /**
   * With its value, if it may be shown again. The value of a revoked token stays hidden: it would only serve
   * somebody who can undo the revocation.
   */
  #draftOf(record: TokenRecord, now: number): Draft {
    const draft = draftOf(record, now);
    const value = record.revokedAt === undefined ? this.#values.reveal(record) : undefined;
    if (value !== undefined) draft.value = value;
    return draft;
  }
}

/** A token that is still being built. */
type Draft = { -readonly [member in keyof Token]: Token[member] };

/** A record as its account sees it, without its value. */
export function tokenOf(record: TokenRecord, now: number): Token {
  return Object.freeze(draftOf(record, now));
}

/** As {@link tokenOf}, with its value for its owner. */
export function issuedTokenOf(record: TokenRecord, now: number, value: string): IssuedToken {
  return Object.freeze({ ...draftOf(record, now), value });
}

/** A copy for another caller: a `Date` cannot be frozen. */
export function copyOfToken(token: Token): Token {
  return Object.freeze({
    ...token,
    createdAt: new Date(token.createdAt),
    expiresAt: new Date(token.expiresAt),
  });
}

/** As {@link tokenOf}, with its use if there was any. */
export function usedTokenOf(record: TokenRecord, now: number, totals: UsageTotals): Token {
  const draft = draftOf(record, now);
  addUse(draft, totals);
  return Object.freeze(draft);
}

function addUse(draft: Draft, totals: UsageTotals | undefined): void {
  if (totals?.lastUsedAt === undefined) return;
  draft.uses = totals.uses;
  draft.lastUsedAt = totals.lastUsedAt;
}

function draftOf(record: TokenRecord, now: number): Draft {
  const scopes = frozenList(record.scopes);
  const token: Draft = {
    id: record.id,
    account: record.account,
    scopes,
    // Often the same list.
    requested: record.requested === record.scopes ? scopes : frozenList(record.requested),
    createdAt: new Date(record.createdAt),
    expiresAt: new Date(record.expiresAt),
    version: record.version,
    state: stateOf(record, now),
    masked: maskValue(record),
  };
  const parent = record.ancestors?.at(-1);
  if (parent !== undefined) token.parent = parent;
  if (record.name !== undefined) token.name = record.name;
  if (record.metadata !== undefined) token.metadata = record.metadata;
  if (record.limits !== undefined) token.limits = record.limits;
  if (record.origin !== undefined) {
    const { elevated, ...shown } = copyOrigin(record.origin);
    if (elevated !== undefined && parent !== undefined) token.elevates = parent;
    Object.assign(token, shown);
  }
  if (record.pending !== undefined) token.pending = true;
  return token;
}
