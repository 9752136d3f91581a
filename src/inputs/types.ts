import type { TokenErrorCode } from '../errors.ts';
import type { Permission, Scope, ScopeWords } from '../scope/index.ts';
import type {
  JsonObject,
  ListedState,
  ResealReport,
  Token,
  TokenId,
  TokenLimits,
} from '../token/record.ts';

/** The input of `issue`. */
export interface IssueInput<Asked extends string = string> {
  /** The owner of the token: 1 to 255 bytes of text without control characters. */
  readonly account: string;
  /** 1 to 4096 scopes; with a catalog, wildcards are expanded against it. */
  readonly scopes: readonly Asked[];
  /** Whole seconds, from 1 to the longest lifetime. @default the service's default lifetime */
  readonly ttlSeconds?: number | undefined;
  /**
   * The same as a duration: whole seconds, or a text such as `30d`, `12h`, `30m` or `45s`. Not together
   * with `ttlSeconds` or `expiresAt`.
   */
  readonly expiresIn?: number | string | undefined;
  /**
   * The same as an instant: later than now, and at most the longest lifetime from now. Not together with
   * `ttlSeconds` or `expiresIn`.
   */
  readonly expiresAt?: Date | undefined;
  /** For people: 1 to 200 characters, no control characters. */
  readonly name?: string | undefined;
  /**
   * Your own facts: a JSON object of at most 4096 bytes. Its type must not be an `interface`, which other
   * code could extend: pass `{ ...facts }`.
   */
  readonly metadata?: JsonObject | undefined;
  /**
   * From where, how often and how many times it may be used; see {@link TokenLimits}. `uses` and `rate`
   * need the option `limits` of the service.
   */
  readonly limits?: TokenLimits | undefined;
  /**
   * Who makes it, as you name people: 1 to 255 bytes of text without control characters. Never changes.
   * A derived token inherits it. @default unknown
   */
  readonly createdBy?: string | undefined;
  /** What it is for: 1 to 200 characters, no control characters. Never changes. */
  readonly purpose?: string | undefined;
}

/**
 * Scopes under a name, from which people choose when they issue a token. They are copied into the token: a
 * preset that changes changes no token.
 */
export interface Preset<Asked extends string = string>
  extends Pick<IssueInput<Asked>, 'ttlSeconds' | 'limits'> {
  /** What people see, such as `CI`: 1 to 200 characters, no control characters. */
  readonly name: string;
  /** 1 to 4096 scopes. Those that overlap no entry of the catalog of an account are left out for it. */
  readonly scopes: readonly Asked[];
}

/** What an account may choose from when it issues a token. */
export interface ScopeDetails {
  /** The scopes that it may ask for, in canonical order, with their words; see {@link ScopeWords}. */
  readonly scopes: readonly ScopeDetail[];
  /** The scopes by resource and level of access; empty without a catalog. */
  readonly permissions: readonly Permission[];
  /** Those of the service, expanded, and *Read only*: all scopes of the catalog that only read. */
  readonly presets: readonly Preset[];
}

/** A scope that an account may ask for, with the words of its catalog. */
export interface ScopeDetail extends Partial<ScopeWords> {
  /** In canonical spelling. */
  readonly scope: string;
}

/**
 * The input of `derive`. The new token belongs to the account of its parent, and expires with its parent
 * if it would live longer.
 */
export interface DeriveInput<Asked extends string = string>
  extends Omit<IssueInput<Asked>, 'account'> {
  /**
   * A live value of any account, which proves who acts with the new token (RFC 8693 section 2.1,
   * `actor_token`). It grants nothing, and need not live on. @default nobody
   */
  readonly actorToken?: string | undefined;
}

/** The options of `derive`. */
export type DeriveOptions = Pick<VerifyOptions, 'address'>;

/** The input of `import`: a token that another system has issued. */
export interface ImportInput<Asked extends string = string> {
  /** The owner of the token. */
  readonly account: string;
  /**
   * The SHA-256 that the other system has stored, of the value or of a part of it: 32 bytes, or their hex,
   * base64 or base64url.
   */
  readonly digest: string | Uint8Array;
  /** The name of the format, one of those in the option `foreign`. */
  readonly format: string;
  /** 1 to 4096 scopes; with a catalog, wildcards are expanded against it. */
  readonly scopes: readonly Asked[];
  /** Later than now, and at most the longest lifetime from now. */
  readonly expiresAt: Date;
  /** When the other system has issued it. @default now */
  readonly createdAt?: Date | undefined;
  /** For people: 1 to 200 characters, no control characters. */
  readonly name?: string | undefined;
  /** Your own facts: a JSON object of at most 4096 bytes. */
  readonly metadata?: JsonObject | undefined;
  /** Suspends it, for example if it was disabled there. `patch` resumes it. @default false */
  readonly suspended?: boolean | undefined;
  /** Who made it, as you name people: 1 to 255 bytes of text without control characters. */
  readonly createdBy?: string | undefined;
}

/** A row that `importMany` refused. */
export interface RefusedRow {
  /** Counts from 1. */
  readonly row: number;
  /** The code of the error with which `import` would refuse it. */
  readonly code: TokenErrorCode;
  /** What was wrong, and what would be right. */
  readonly message: string;
}

/** What `importMany` did. */
export interface ImportReport {
  /** Rows that it has read. */
  readonly rows: number;
  /** Tokens that it has added, or would add without `dryRun`. */
  readonly imported: number;
  /** Rows that had been imported before. */
  readonly skipped: number;
  /** Rows that cannot be imported. */
  readonly refused: number;
}

/** The options of `importMany`. */
export interface ImportManyOptions {
  /** Checks all rows and writes none. @default false */
  readonly dryRun?: boolean | undefined;
  /** Called with each row that is refused. */
  readonly onRefused?: ((refused: RefusedRow) => void) | undefined;
  /** Called with the report so far after each hundred rows. */
  readonly onProgress?: ((report: ImportReport) => void) | undefined;
}

/** The input of `list`. */
export interface ListInput<Asked extends string = string> {
  /** The owner of the tokens. */
  readonly account: string;
  /** Lists only tokens that match this scope, or each of up to 100 scopes. An empty list filters nothing. */
  readonly scope?: Asked | readonly Asked[] | undefined;
  /**
   * How a token matches: `overlaps`, it may do a part of the scope; `covers`, it may do all of it;
   * `exact`, it holds this very scope. @default 'overlaps'
   */
  readonly match?: 'overlaps' | 'covers' | 'exact' | undefined;
  /**
   * Lists only tokens in this state; `live`, those that are active or suspended; or `all`, also revoked ones.
   * @default 'active'
   */
  readonly state?: ListedState | undefined;
  /** Lists only tokens whose name contains this text, in upper or lower case: 1 to 200 characters. */
  readonly name?: string | undefined;
  /** Lists only tokens that were derived from the token with this id, directly. */
  readonly parent?: string | undefined;
  /** Lists only tokens with a scope on this host, such as `shop.example`, also one with a wildcard. */
  readonly domain?: string | undefined;
  /** `never` lists only tokens of which no use was recorded. Needs the option `usage`. */
  readonly unused?: 'never' | undefined;
  /** Lists only tokens that this person made: exactly this text. */
  readonly createdBy?: string | undefined;
  /**
   * `created`: newest first. `expire`: what expires soonest first. `name`: by name, in upper or lower case, and
   * those without one last. `lastUsed`: most recently used first, and never used last; needs the option `usage`.
   * Tokens that come to the same are ordered by id. `name` and `lastUsed` take at most 10 000 tokens, and so does
   * `expire` with a `parent`. @default 'created'
   */
  readonly sort?: 'created' | 'expire' | 'name' | 'lastUsed' | undefined;
  /** The most tokens on this page, 1 to 1000. @default 100 */
  readonly limit?: number | undefined;
  /**
   * The most bytes of scopes (as granted and as asked for), metadata and limits on this page, as JSON: 1
   * to 1 048 576. The page ends before the token that would exceed it, but always holds one token.
   * @default 1 048 576
   */
  readonly maxBytes?: number | undefined;
  /** The cursor of the page before this one. */
  readonly cursor?: string | undefined;
}

/** The options of `get`. */
export interface GetOptions {
  /**
   * Returns the token only if it is in this state; with `all` in any, also if it was revoked and is not
   * purged yet. @default any but `revoked`
   */
  readonly state?: ListedState | undefined;
}

/** The input of `modify`: the new scopes and the new expiry. */
export interface ModifyInput<Asked extends string = string> {
  /** 1 to 4096 scopes; with a catalog, wildcards are expanded against it. */
  readonly scopes: readonly Asked[];
  /**
   * Later than now, and at most the longest lifetime from now.
   * @default the default lifetime from now
   */
  readonly expiresAt?: Date | undefined;
  /**
   * The same as a duration from now: whole seconds, or a text such as `30d`, `12h`, `30m` or `45s`. Not
   * together with `expiresAt`.
   */
  readonly expiresIn?: number | string | undefined;
  /** Stay as they are if you leave them out. Replaced whole; `null` removes all limits. */
  readonly limits?: TokenLimits | null | undefined;
}

/** The input of `patch`. Members that you leave out stay unchanged. */
export interface PatchInput<Asked extends string = string> {
  /** Replaces the held scopes; not together with `addScopes` or `removeScopes`. */
  readonly scopes?: readonly Asked[] | undefined;
  /** Added to the held scopes; expanded as by `issue`. */
  readonly addScopes?: readonly Asked[] | undefined;
  /** Drops each held scope that one of these covers. */
  readonly removeScopes?: readonly string[] | undefined;
  /** Later than now, and at most the longest lifetime from now. */
  readonly expiresAt?: Date | undefined;
  /**
   * The same as a duration from now: whole seconds, or a text such as `30d`, `12h`, `30m` or `45s`. Not
   * together with `expiresAt`.
   */
  readonly expiresIn?: number | string | undefined;
  /** `null` removes it. */
  readonly name?: string | null | undefined;
  /** Replaced whole; `null` removes it. */
  readonly metadata?: JsonObject | null | undefined;
  /** Replaced whole: what you leave out of it is no longer limited. `null` removes all limits. */
  readonly limits?: TokenLimits | null | undefined;
  /**
   * `true` suspends the token: it is refused until `false` resumes it. Nothing else about it changes, so
   * it may expire meanwhile.
   */
  readonly suspended?: boolean | undefined;
}

/** Conditions of a change. */
export interface ChangeOptions {
  /** Changes the token only if it still has this version; otherwise `version_conflict`. */
  readonly ifVersion?: number | undefined;
  /** Returns the result without changing the token. @default false */
  readonly dryRun?: boolean | undefined;
}

/** The options of `rotate`. */
export interface RotateOptions {
  /**
   * `first-use`: both values work until the new one is accepted for the first time. Replaces a value that
   * still waits for that. @default the new value replaces the old one immediately
   */
  readonly activate?: 'first-use' | undefined;
  /**
   * How long the old value stays valid after it was replaced: whole seconds, never past the token's
   * expiry.
   * @default 0
   */
  readonly graceSeconds?: number | undefined;
  /**
   * Also revokes all tokens that were derived from it, at any depth: what to do after a leak, because who had
   * the value may have derived from it. Not together with `activate` or `graceSeconds`. If the call
   * fails, the old value may already be refused: call it again. @default false
   */
  readonly endDerived?: boolean | undefined;
  /** Changes the token only if it still has this version; otherwise `version_conflict`. */
  readonly ifVersion?: number | undefined;
  /** Only of {@link CancelRotationOptions}. */
  readonly cancel?: undefined;
}

/** The options of `rotate` to drop a value that waits for its first use. */
export interface CancelRotationOptions {
  /** Refuses that value from now on. Nothing is changed if there is none. */
  readonly cancel: true;
  /**
   * Only if the token still has this version; otherwise `version_conflict`. With the version that `rotate`
   * returned, this also fails if the value has been used since.
   */
  readonly ifVersion?: number | undefined;
}

/** The options of `revoke`. */
export interface RevokeOptions {
  /** Revokes the token only if it still has this version; otherwise `version_conflict`. */
  readonly ifVersion?: number | undefined;
  /**
   * Also revokes all tokens that were derived from it, at any depth. They could not be used any more
   * either way, but would be listed until they are purged. @default false
   */
  readonly descendants?: boolean | undefined;
}

/** The options of `revokeAll`. */
export interface RevokeAllOptions {
  /**
   * Revokes only what this person made: exactly this text. Prevent first that the person makes more: a token
   * that is being issued meanwhile may be missed. @default everybody's
   */
  readonly createdBy?: string | undefined;
  /** Revokes nothing, and says what would end. @default false */
  readonly dryRun?: boolean | undefined;
  /** Called with the count so far when a batch of tokens is revoked and more may follow. */
  readonly onProgress?: ((revoked: number) => void) | undefined;
}

/** What `revokeAll` with `dryRun` would end. */
export interface RevocationPreview {
  /** How many live tokens it would revoke. */
  readonly count: number;
  /** How many other live tokens were derived from these, and would end with them. */
  readonly ending: number;
  /** The first 100 of those that it would revoke, the newest first. */
  readonly tokens: readonly Token[];
}

/** The options of `verify`. */
export interface VerifyOptions {
  /** Reads the store, whatever `cache` allows. @default false */
  readonly fresh?: boolean | undefined;
  /**
   * The IP address that the request comes from, without a port. A token that is limited to addresses is
   * refused without it, as `address_unknown`. Behind a proxy, it is in a header that your proxy sets;
   * never take it from one that the client can write.
   */
  readonly address?: string | undefined;
}

/** The options of `verifySync`. */
export type VerifySyncOptions = Pick<VerifyOptions, 'address'>;

/** The options of `introspect`. */
export interface IntrospectOptions {
  /**
   * Counts the call as a use of the token, for a server that grants access by the answer. Recorded usage
   * has it under the scope `other`, because the scope is not known. It is the first use of a value that
   * waits for one. The limits of the token apply: the call takes one use, and the token is not returned
   * if none is left or it may not be used from `address`. @default false
   */
  readonly countsAsUse?: boolean | undefined;
  /** With `countsAsUse`: the IP address that the bearer's request comes from, as in `verify`. */
  readonly address?: string | undefined;
  /**
   * Also returns a token that can do nothing now and may again: it is suspended, as its `state` says, or its
   * ancestors are suspended or leave it no scope. @default false
   */
  readonly includeSuspended?: boolean | undefined;
}

/** The options of `advise`. */
export interface AdviseOptions {
  /** Names scopes that were not used for this long: whole days, 1 to 3650. @default 30 */
  readonly unusedForDays?: number | undefined;
}

/** The input of `review`. Days are whole, from 1 to 3650. */
export interface ReviewInput {
  /** Reviews only the tokens of this account. @default all accounts */
  readonly account?: string | undefined;
  /** Finds tokens and scopes that were not used for this long. @default 90 */
  readonly unusedForDays?: number | undefined;
  /** Finds tokens that expire within this time. @default 14 */
  readonly expiringWithinDays?: number | undefined;
  /** Finds tokens with a value that is older than this. @default 180 */
  readonly secretOlderThanDays?: number | undefined;
  /** Called with the number of live tokens so far after each step. */
  readonly onProgress?: ((reviewed: number) => void) | undefined;
}

/** The options of `reseal`. */
export interface ResealOptions {
  /** Called with the report so far after each step. */
  readonly onProgress?: ((report: ResealReport) => void) | undefined;
}

/** The input of `reviewPage`. */
export interface ReviewPageInput extends Omit<ReviewInput, 'account' | 'onProgress'> {
  /** The owner of the tokens. */
  readonly account: string;
  /** The cursor of the page before this one. The other members must be the same. */
  readonly cursor?: string | undefined;
}

/** The options of `upkeep`. */
export interface UpkeepOptions {
  /** Removes records that expired or were revoked this long ago: whole days, 1 to 3650. @default 90 */
  readonly purgeAfterDays?: number | undefined;
  /**
   * The milliseconds from one round to the next, from 1000 to 604 800 000 (a week).
   * @default 21 600 000 (six hours)
   */
  readonly everyMs?: number | undefined;
}

/** The input of `purge`. */
export interface PurgeInput {
  /** Removes records that expired or were revoked before this instant; not later than now. */
  readonly before: Date;
  /** The most records to remove. @default all, in batches */
  readonly limit?: number | undefined;
}

/** An input after it was read, with its scopes parsed. */
export type Read<Input> = {
  readonly [Member in keyof Input]: Member extends 'scopes' | 'addScopes' | 'removeScopes'
    ? readonly Scope[] | Extract<Input[Member], undefined>
    : Member extends 'scope'
      ? readonly Scope[] | Extract<Input[Member], undefined>
      : Member extends 'parent'
        ? TokenId | Extract<Input[Member], undefined>
        : Member extends 'expiresIn' | 'digest'
          ? Exclude<Input[Member], string>
          : Input[Member];
};
