import type { ChangeOptions, IssueInput, ListInput, PatchInput, RotateOptions } from '../input.ts';
import type { ScopeDiff } from '../scope/index.ts';
import type { Need } from '../service.ts';

/**
 * A token as commands show it, and as the service answers with it: times in UNIX seconds. `token` is
 * the value where it was just made, and the id everywhere else.
 */
export interface ShownToken {
  readonly id: string;
  readonly token: string;
  readonly scopes: readonly string[];
  /** Known where the store is at hand. */
  readonly requested?: readonly string[] | undefined;
  readonly state: string;
  readonly createdAt: number;
  readonly expire: number;
  readonly version: number;
  readonly name?: string | undefined;
  readonly metadata?: unknown;
}

/** Which tokens are listed. */
export type TokenFilter = Pick<ListInput, 'scope' | 'match'> & { readonly limit: number };

/** What a listing found, and whether that is all. */
export interface Listing {
  readonly tokens: readonly ShownToken[];
  readonly isWhole: boolean;
}

/** One page, and what leads to the next. */
interface Page {
  readonly tokens: readonly ShownToken[];
  readonly cursor?: string | undefined;
}

/** Goes through pages of at most `size` until there are `limit` tokens, or no more. */
export async function listAll(
  limit: number,
  size: number,
  read: (limit: number, cursor: string | undefined) => Promise<Page>,
): Promise<Listing> {
  const tokens: ShownToken[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(Math.min(limit - tokens.length, size), cursor);
    tokens.push(...page.tokens);
    cursor = page.cursor;
  } while (cursor !== undefined && tokens.length < limit);
  return { tokens, isWhole: cursor === undefined };
}

/** A condition of a change. */
export type IfVersion = Pick<ChangeOptions, 'ifVersion'>;

/** What is known of a value. */
export type Finding =
  | { readonly ok: true; readonly grantedBy: string; readonly token: FoundToken }
  | { readonly ok: false; readonly reason: string; readonly needed?: string | undefined };

/** What a verifier may know of a token. */
export interface FoundToken {
  readonly id?: string | undefined;
  readonly account?: string | undefined;
  readonly expire?: number | undefined;
}

/**
 * The tokens of one account, wherever they are. What names a token rejects with {@link NotFound}
 * where the account has none of that name.
 */
export interface Account {
  /** As people may see it. */
  readonly name: string;
  issue(token: Omit<IssueInput, 'account'>): Promise<ShownToken>;
  list(filter: TokenFilter): Promise<Listing>;
  get(id: string): Promise<ShownToken>;
  patch(id: string, change: PatchInput, options: IfVersion): Promise<ShownToken>;
  /** What a change would come to. */
  tryPatch(
    id: string,
    change: PatchInput,
    options: IfVersion,
  ): Promise<ShownToken & { readonly diff: ScopeDiff }>;
  revoke(id: string, options: IfVersion): Promise<void>;
  revokeAll(): Promise<number>;
  rotate(id: string, options: RotateOptions): Promise<ShownToken>;
  verify(value: string, need: Need): Promise<Finding>;
}

/** There is no such token, or not for this account. */
export class NotFound extends Error {}
