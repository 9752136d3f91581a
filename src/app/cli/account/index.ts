import type {
  AdviseOptions,
  ChangeOptions,
  DeriveInput,
  GetOptions,
  IssueInput,
  ListInput,
  PatchInput,
  ReviewInput,
  RevokeOptions,
  RotateOptions,
} from '../../../inputs/types.ts';
import type { ScopeDiff, ScopeRequest } from '../../../scope/index.ts';
import type {
  AdviceJson,
  ExplanationJson,
  FindingJson,
  TokenJson,
  UsageJson,
} from './token-json.ts';

/**
 * The tokens of one account, in a store or behind a service. A method that takes an id rejects with
 * {@link NotFound} if the account has no such token.
 */
export interface TokenClient {
  /** Names the account and where its tokens are, for people. */
  readonly name: string;
  issue(token: NewToken): Promise<TokenJson>;
  /**
   * Makes a token from the one of a value.
   *
   * @throws {InvalidValue} if the value is not, or no longer, valid
   */
  derive(value: string, token: NewToken): Promise<TokenJson>;
  list(filter: TokenFilter): Promise<Listing>;
  get(id: string, options: GetOptions): Promise<TokenJson>;
  usage(id: string): Promise<UsageJson>;
  advise(id: string, options: AdviseOptions): Promise<AdviceJson>;
  /** All findings, page after page. */
  review(days: ReviewDays): AsyncIterable<FindingJson>;
  explain(id: string, need: WrittenNeed): Promise<ExplanationJson>;
  patch(id: string, change: PatchInput, options: IfVersion): Promise<TokenJson>;
  /** Returns the result of a change without making it. */
  tryPatch(
    id: string,
    change: PatchInput,
    options: IfVersion,
  ): Promise<TokenJson & { readonly diff: ScopeDiff }>;
  revoke(id: string, options: RevokeOptions): Promise<void>;
  revokeAll(): Promise<number>;
  rotate(id: string, options: RotateOptions): Promise<TokenJson>;
  /** Drops a new value that has not been used. */
  cancelRotation(id: string, options: IfVersion): Promise<TokenJson>;
  /** @param address where the request comes from, for a token that is limited to addresses */
  verify(value: string, need: WrittenNeed, address?: string): Promise<Verification>;
}

/** The account has no such token. */
export class NotFound extends Error {}

/** No live token has this value. */
export class InvalidValue extends Error {}

/** The credentials of an account of a service. */
export interface Login {
  readonly user: string;
  readonly password: string;
}

/** A token that a command asks for. */
export type NewToken = Omit<IssueInput, 'account'> & DeriveInput;

export type TokenFilter = Pick<ListInput, 'match' | 'state' | 'name' | 'parent'> & {
  readonly scope?: string | undefined;
  readonly limit: number;
};

export type IfVersion = Pick<ChangeOptions, 'ifVersion'>;

/** The need of a request, as a command states it. */
export type WrittenNeed = { readonly scope: string } | ScopeRequest;

export type Verification =
  | {
      readonly ok: true;
      readonly grantedBy: string;
      readonly token: {
        readonly id?: string | undefined;
        readonly account?: string | undefined;
        readonly expire?: number | undefined;
      };
    }
  | { readonly ok: false; readonly reason: string; readonly needed?: string | undefined };

/** The thresholds of a review, in days. */
export type ReviewDays = Pick<
  ReviewInput,
  'unusedForDays' | 'expiringWithinDays' | 'secretOlderThanDays'
>;

export interface Listing {
  readonly tokens: readonly TokenJson[];
  /** Whether the list is complete. */
  readonly isWhole: boolean;
}

interface TokenPage {
  readonly tokens: readonly TokenJson[];
  readonly cursor?: string | undefined;
}

/** Reads pages of at most `size` tokens, until there are `limit` tokens or no more. */
export async function listAll(
  limit: number,
  size: number,
  read: (limit: number, cursor: string | undefined) => Promise<TokenPage>,
): Promise<Listing> {
  const tokens: TokenJson[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(Math.min(limit - tokens.length, size), cursor);
    tokens.push(...page.tokens);
    cursor = page.cursor;
  } while (cursor !== undefined && tokens.length < limit);
  return { tokens, isWhole: cursor === undefined };
}
