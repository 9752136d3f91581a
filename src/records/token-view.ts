import type { Events } from '../events.ts';
import { frozenList, isExpired, type Token, type TokenRecord } from '../token.ts';
import { maskValue, type Values } from '../values/value.ts';

/** Tokens as their account sees them; it is an event if that includes values. */
export function toShownTokens(
  records: readonly TokenRecord[],
  now: number,
  values: Values,
  events: Events,
): Token[] {
  const tokens = records.map((record) => tokenOf(record, now, values.reveal(record)));
  const [first, ...others] = tokens.filter(({ value }) => value !== undefined);
  if (first !== undefined) events.revealed(first.account, 1 + others.length, now);
  return tokens;
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
    state: isExpired(record, now) ? 'expired' : 'active',
    masked: maskValue(record),
  };
  if (value !== undefined) token.value = value;
  if (record.name !== undefined) token.name = record.name;
  if (record.metadata !== undefined) token.metadata = record.metadata;
  return Object.freeze(token);
}
