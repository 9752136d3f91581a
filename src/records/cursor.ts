import { TokenError } from '../errors.ts';
import type { Position } from '../ports/token-store.ts';
import type { TokenId } from '../token/record.ts';
import type { KeyRing } from '../values/keys.ts';

/** Characters of a cursor that are read. @bound */
export const MAX_CURSOR_LENGTH = 200;

/**
 * Writes the cursor of the page after a position, signed with the active key.
 *
 * @param query the account and the filter of the list; the cursor is valid for no other
 */
export function writeCursor(ring: KeyRing, { createdAt, id }: Position, query: string): string {
  const { active } = ring;
  const position = `${active.kid}.${createdAt.getTime()}.${id}`;
  const signed = `${position}.${active.sign(JSON.stringify([position, query]))}`;
  return Buffer.from(signed).toString('base64url');
}

/**
 * Reads a cursor that {@link writeCursor} made for the same query, with any key of the ring.
 *
 * @throws {TokenError} `invalid_request`
 */
export function readCursor(ring: KeyRing, cursor: string, query: string): Position {
  const bytes = Buffer.from(cursor.slice(0, MAX_CURSOR_LENGTH), 'base64url');
  const [, position, kid = '', time, id, signature] =
    /^((\w{2})\.(-?\d{1,16})\.(\w{22}))\.([\w-]{22})$/.exec(bytes.toString('latin1')) ?? [];
  const key = ring.get(kid);
  // A verifier key never signs a cursor.
  const expected = key?.canMint ? key.sign(JSON.stringify([position, query])) : undefined;
  // Decoding base64url skips other characters: only the spelling that was written is accepted.
  const isCanonical = bytes.toString('base64url') === cursor;
  if (isCanonical && expected !== undefined && expected === signature) {
    return { createdAt: new Date(Number(time)), id: id as TokenId };
  }
  throw new TokenError(
    'invalid_request',
    'cursor must be one that an earlier page gave, for the same account and filter',
    { member: 'cursor' },
  );
}
