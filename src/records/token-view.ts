import type { Events } from '../events.ts';
import { frozenList, stateOf, type Token, type TokenRecord } from '../token.ts';
import type { UsageRecorder } from '../usage/recorder.ts';
import type { UsageTotals } from '../usage-store.ts';
import { maskValue, type Values } from '../values/value.ts';

/** Shows records as their account sees them; it is an event if that includes values. */
export class TokenView {
  readonly #values: Values;
  readonly #events: Events;
  /** Absent if usage is not recorded. */
  readonly usage: UsageRecorder | undefined;

  constructor(values: Values, events: Events, usage: UsageRecorder | undefined) {
    this.#values = values;
    this.#events = events;
    this.usage = usage;
  }

  /**
   * Shows records with their use, if that is recorded. If the counts cannot be read, the tokens say so:
   * who has to find and revoke one must not have to wait for statistics.
   */
  async withUses(records: readonly TokenRecord[], now: number): Promise<Token[]> {
    const tokens = this.shown(records, now);
    if (this.usage === undefined) return tokens;
    try {
      const uses = await this.usage.totalsOf(records.map(({ id }) => id));
      return tokens.map((token, at) => withUse(token, uses[at]));
    } catch {
      // The failure is an event already.
      return tokens.map((token) => Object.freeze({ ...token, usesUnknown: true }));
    }
  }

  /** Shows records. */
  shown(records: readonly TokenRecord[], now: number): Token[] {
    const tokens = records.map((record) => tokenOf(record, now, this.#valueOf(record)));
    const [first, ...others] = tokens.filter(({ value }) => value !== undefined);
    if (first !== undefined) this.#events.revealed(first.account, 1 + others.length, now);
    return tokens;
  }

  /** Nobody needs the value of a revoked token but those who could undo the revocation. */
  #valueOf(record: TokenRecord): string | undefined {
    return record.revokedAt === undefined ? this.#values.reveal(record) : undefined;
  }
}

/** A token with its use, if there was any. */
export function withUse(token: Token, totals: UsageTotals | undefined): Token {
  if (totals?.lastUsedAt === undefined) return token;
  const { uses, lastUsedAt } = totals;
  return Object.freeze({ ...token, uses, lastUsedAt });
}

/** A record as its account sees it, with its value if that is to be shown. */
export function tokenOf(record: TokenRecord, now: number, value?: string): Token {
  const token: { -readonly [member in keyof Token]: Token[member] } = {
    id: record.id,
    account: record.account,
    scopes: frozenList(record.scopes),
    requested: frozenList(record.requested),
    createdAt: new Date(record.createdAt),
    expiresAt: new Date(record.expiresAt),
    version: record.version,
    state: stateOf(record, now),
    masked: maskValue(record),
  };
  if (value !== undefined) token.value = value;
  if (record.name !== undefined) token.name = record.name;
  if (record.metadata !== undefined) token.metadata = record.metadata;
  if (record.limits !== undefined) token.limits = record.limits;
  if (record.pending !== undefined) token.pending = true;
  return Object.freeze(token);
}
