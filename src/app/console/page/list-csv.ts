import type { ShownToken } from './api.ts';

/** The columns, by the names that tokens have on the wire. Values are not among them. */
const COLUMNS = [
  'id',
  'name',
  'masked',
  'state',
  'createdAt',
  'expire',
  'lastUsed',
  'uses',
  'parent',
  'scopes',
  'createdBy',
] as const;

/** Tokens as CSV (RFC 4180), with times in ISO 8601 and scopes separated by spaces. */
export function csvOf(tokens: readonly ShownToken[]): string {
  const rows = [COLUMNS, ...tokens.map(rowOf)];
  return rows.map((cells) => `${cells.map(cellOf).join(',')}\r\n`).join('');
}

function rowOf(token: ShownToken): readonly string[] {
  const { id, name = '', masked, state, createdAt, expire, lastUsed, uses, parent = '' } = token;
  const { createdBy = '' } = token;
  const used = lastUsed ? timeOf(lastUsed) : '';
  const count = uses === undefined ? '' : String(uses);
  const times = [timeOf(createdAt), timeOf(expire), used];
  return [id, name, masked, state, ...times, count, parent, token.scopes.join(' '), createdBy];
}

function timeOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}

/** A cell that no spreadsheet takes for a formula. */
function cellOf(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
