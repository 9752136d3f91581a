import type { ScopeDiff } from '../scope/index.ts';
import type { Need } from '../service.ts';
import type { JsonObject } from '../token.ts';

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

/** What a new token is made of. */
export interface NewToken {
  readonly scopes: readonly string[];
  readonly ttlSeconds?: number | undefined;
  readonly name?: string | undefined;
  readonly metadata?: JsonObject | undefined;
}

/** What of a token is to change. */
export interface TokenChange {
  readonly scopes?: readonly string[] | undefined;
  readonly addScopes?: readonly string[] | undefined;
  readonly removeScopes?: readonly string[] | undefined;
  readonly expiresAt?: Date | undefined;
  readonly name?: string | null | undefined;
  readonly metadata?: JsonObject | null | undefined;
}

/** Which tokens are listed. */
export interface TokenFilter {
  readonly scope?: string | undefined;
  readonly match?: 'overlaps' | 'covers' | 'exact' | undefined;
  readonly limit: number;
}

/** A condition of a change. */
export interface IfVersion {
  readonly ifVersion?: number | undefined;
}

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
  issue(token: NewToken): Promise<ShownToken>;
  list(filter: TokenFilter): Promise<{ tokens: readonly ShownToken[]; isWhole: boolean }>;
  get(id: string): Promise<ShownToken>;
  patch(id: string, change: TokenChange, options: IfVersion): Promise<ShownToken>;
  /** What a change would come to. */
  tryPatch(
    id: string,
    change: TokenChange,
    options: IfVersion,
  ): Promise<ShownToken & { readonly diff: ScopeDiff }>;
  revoke(id: string, options: IfVersion): Promise<void>;
  revokeAll(): Promise<number>;
  rotate(
    id: string,
    options: IfVersion & { readonly graceSeconds?: number | undefined },
  ): Promise<ShownToken>;
  verify(value: string, need: Need): Promise<Finding>;
}

/** There is no such token, or not for this account. */
export class NotFound extends Error {}
