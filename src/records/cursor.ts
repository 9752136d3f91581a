import { TokenError } from '../errors.ts';
import type { Position } from '../ports/token-store.ts';
import type { TokenId } from '../token/record.ts';
import type { KeyRing } from '../values/keys.ts';

/** Characters of a cursor that are read: one in a list by name has the name. @bound */
export const MAX_CURSOR_LENGTH = 900;

/** Where a list goes on: after the token with this key and id. */
export interface Place {
  /** What the list is ordered by, as text. */
  readonly key: string;
  readonly id: TokenId;
}

/** The place of a position in a list that a store orders. */
export function placeOf({ at, id }: Position): Place {
  return { key: String(at.getTime()), id };
}

/** The position that {@link placeOf} made a place of. */
export function positionAt({ key, id }: Place): Position {
  return { at: new Date(Number(key)), id };
}

/**
 * Writes the cursor of the page after a place, signed with the active key.
 *
 * @param query the account, the filter and the order of the list; the cursor is valid for no other
 */
export function writeCursor(ring: KeyRing, { key, id }: Place, query: string): string {
  const { active } = ring;
  const place = `${active.kid}.${key}.${id}`;
  const signed = `${place}.${active.sign(JSON.stringify([place, query]))}`;
  return Buffer.from(signed).toString('base64url');
}

/**
 * Reads a cursor that {@link writeCursor} made for the same query, with any key of the ring.
 *
 * @throws {TokenError} `invalid_request`
 */
export function readCursor(ring: KeyRing, cursor: string, query: string): Place {
  const bytes = Buffer.from(cursor.slice(0, MAX_CURSOR_LENGTH), 'base64url');
  const [, place, kid = '', key = '', id, signature] =
    /^((\w{2})\.(.*)\.(\w{22}))\.([\w-]{22})$/s.exec(bytes.toString()) ?? [];
  const signer = ring.get(kid);
  // A verifier key never signs a cursor.
  const expected = signer?.canMint ? signer.sign(JSON.stringify([place, query])) : undefined;
  // Decoding base64url skips other characters: only the spelling that was written is accepted.
  const isCanonical = bytes.toString('base64url') === cursor;
  if (isCanonical && expected !== undefined && expected === signature) {
    return { key, id: id as TokenId };
  }
  throw new TokenError(
    'invalid_request',
    'cursor must be one that an earlier page gave, for the same account, filter and order',
    { member: 'cursor' },
  );
}
