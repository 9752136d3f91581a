// What tokenwright declares, as published. Written by: npm run api

import type { AskedScope, Permission, RequestReason, Scope, ScopeCatalog, ScopeDiff, ScopeRequest, ScopeWords, TypedCatalog } from 'tokenwright/scope';

export interface AdviseOptions {
  readonly unusedForDays?: number | undefined;
}

export interface Approval {
  readonly account: string;
  readonly by?: string | undefined;
}

export interface ApproveOptions extends DenyOptions {
  readonly scopes?: readonly string[] | undefined;
  readonly ttlSeconds?: number | undefined;
}

export interface ChangeOptions {
  readonly ifVersion?: number | undefined;
  readonly dryRun?: boolean | undefined;
}

export interface Clock {
  now(): Date;
}

export interface CountQuery extends QuotaHolder {
  readonly liveAt: Date;
  readonly most: TokenCounts;
}

export interface CountedTokens {
  readonly ids: readonly TokenId[];
  readonly next?: string | undefined;
}

export interface DenyOptions extends RequestCallOptions {
  readonly by?: string | undefined;
}

export interface DeriveInput<Asked extends string = string> extends Omit<IssueInput<Asked>, 'account'> {
  readonly actorToken?: string | undefined;
}

export type DeriveOptions = Pick<VerifyOptions, 'address'>;

export interface DoctorOptions {
  readonly full?: boolean | undefined;
}

export interface EngineStore extends TokenStore {
  readonly usage: UsageStore;
  readonly leases: LeaseStore;
  readonly requests: RequestStore;
}

export interface Explanation {
  readonly allowed: boolean;
  readonly reason?: RefusalReason | RequestReason;
  readonly grantedBy?: string;
  readonly needed: string;
  readonly summary?: string;
  readonly nearest?: {
    readonly scope: string;
    readonly failed: 'method' | 'domain' | 'path';
  };
  readonly smallest?: string;
  readonly known: boolean;
  readonly suggestions: readonly string[];
}

export interface ForeignFormat {
  readonly name: string;
  readonly start?: string | undefined;
  readonly hashedPart: (value: string) => string | undefined;
  readonly inText?: string | undefined;
}

export interface GetOptions {
  readonly state?: ListedState | undefined;
}

export interface HeldPermission {
  readonly tag: string;
  readonly domain?: string | undefined;
  readonly name: string;
  readonly level: 'read' | 'write';
}

export interface ImportInput<Asked extends string = string> {
  readonly account: string;
  readonly digest: string | Uint8Array;
  readonly format: string;
  readonly scopes: readonly Asked[];
  readonly expiresAt: Date;
  readonly createdAt?: Date | undefined;
  readonly name?: string | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly suspended?: boolean | undefined;
  readonly createdBy?: string | undefined;
}

export interface ImportReport {
  readonly rows: number;
  readonly imported: number;
  readonly skipped: number;
  readonly refused: number;
}

export interface IssueInput<Asked extends string = string> {
  readonly account: string;
  readonly scopes: readonly Asked[];
  readonly ttlSeconds?: number | undefined;
  readonly expiresIn?: number | string | undefined;
  readonly expiresAt?: Date | undefined;
  readonly name?: string | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly limits?: TokenLimits | undefined;
  readonly createdBy?: string | undefined;
  readonly purpose?: string | undefined;
}

export interface IssuedToken extends Token {
  readonly value: string;
}

export type JsonObject = {
  readonly [member: string]: JsonValue;
};

export type JsonValue = string | number | boolean | null | readonly JsonValue[] | {
  readonly [member: string]: JsonValue;
};

export interface KeyOptions {
  readonly kid: string;
  readonly secret: Uint8Array | string;
  readonly status: 'active' | 'verify';
}

export interface LeaseStore {
  take(wants: readonly LeaseWant[]): Promise<readonly number[]>;
  giveBack(leases: readonly UnspentLease[]): Promise<void>;
  purge(before: Date, limit: number): Promise<number>;
  doctor?(options?: DoctorOptions): Promise<StoreFinding[]>;
  close?(): Promise<void>;
}

export interface LeaseWant {
  readonly key: string;
  readonly window: number;
  readonly limit: number;
  readonly want: number;
  readonly until: Date;
  readonly start?: Date | undefined;
}

export interface Lifetime {
  readonly defaultSeconds: number;
  readonly maxSeconds: number;
}

export interface ListInput<Asked extends string = string> {
  readonly account: string;
  readonly scope?: Asked | readonly Asked[] | undefined;
  readonly match?: 'overlaps' | 'covers' | 'exact' | undefined;
  readonly state?: ListedState | undefined;
  readonly name?: string | undefined;
  readonly parent?: string | undefined;
  readonly domain?: string | undefined;
  readonly unused?: 'never' | undefined;
  readonly createdBy?: string | undefined;
  readonly sort?: 'created' | 'expire' | 'name' | 'lastUsed' | undefined;
  readonly limit?: number | undefined;
  readonly maxBytes?: number | undefined;
  readonly cursor?: string | undefined;
}

export type ListedState = RecordState | 'live' | 'all';

export declare class MemoryTokenStore implements EngineStore {
  #private;
  readonly local = true;
  readonly usage: EngineStore['usage'];
  readonly leases: EngineStore['leases'];
  readonly requests: EngineStore['requests'];
  constructor({ clock }?: {
    readonly clock?: Clock | undefined;
  });
  insert(record: TokenRecord): Promise<void>;
  count({ liveAt, most, ...holder }: CountQuery): Promise<TokenCounts>;
  find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]>;
  page(query: PageQuery): Promise<TokenRecord[]>;
  replace(next: TokenRecord, version?: number): Promise<boolean>;
  revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean>;
  revokeAll(account: string, at: Date, limit: number): Promise<number>;
  purge({ now, minAgeMs, limit }: PurgeQuery): Promise<PurgedRecords>;
  prune({ now, limit, ...holder }: PruneQuery): Promise<PurgedRecords>;
  scan(query: ScanQuery): Promise<ScannedRecords>;
}

export type ModifiedToken = Token & {
  readonly diff?: ScopeDiff;
};

export interface ModifyInput<Asked extends string = string> {
  readonly scopes: readonly Asked[];
  readonly expiresAt?: Date | undefined;
  readonly expiresIn?: number | string | undefined;
  readonly limits?: TokenLimits | null | undefined;
}

export type Need<Asked extends string = string> = {
  readonly scope: Scope | Asked;
} | ScopeRequest | Unambiguous;

export interface OpenInput {
  readonly client: string;
  readonly scopes: readonly string[];
  readonly purpose?: string | undefined;
  readonly ttlSeconds?: number | undefined;
  readonly elevate?: string | undefined;
  readonly address?: string | undefined;
}

export interface OpenedRequest {
  readonly deviceCode: string;
  readonly userCode: string;
  readonly verificationUri: string;
  readonly expiresAt: Date;
  readonly expiresInSeconds: number;
  readonly intervalSeconds: number;
}

export type PageOrder = 'created' | 'expire';

export interface PageQuery {
  readonly account: string;
  readonly order?: PageOrder | undefined;
  readonly after?: Position | undefined;
  readonly limit: number;
  readonly liveAt: Date;
  readonly state?: ListedState | undefined;
  readonly parent?: TokenId | undefined;
  readonly root?: TokenId | undefined;
  readonly maxBytes?: number | undefined;
}

export interface PatchInput<Asked extends string = string> {
  readonly scopes?: readonly Asked[] | undefined;
  readonly addScopes?: readonly Asked[] | undefined;
  readonly removeScopes?: readonly string[] | undefined;
  readonly expiresAt?: Date | undefined;
  readonly expiresIn?: number | string | undefined;
  readonly name?: string | null | undefined;
  readonly metadata?: JsonObject | null | undefined;
  readonly limits?: TokenLimits | null | undefined;
  readonly suspended?: boolean | undefined;
}

export interface PollOptions {
  readonly client: string;
}

export type PollResult = {
  readonly state: 'pending' | 'slow_down' | 'denied' | 'expired' | 'unknown';
  readonly token?: undefined;
} | {
  readonly state: 'issued';
  readonly token: IssuedToken;
};

export interface Position {
  readonly at: Date;
  readonly id: TokenId;
}

export interface Preset<Asked extends string = string> extends Pick<IssueInput<Asked>, 'ttlSeconds' | 'limits'> {
  readonly name: string;
  readonly scopes: readonly Asked[];
}

export interface PruneQuery extends QuotaHolder {
  readonly now: Date;
  readonly limit: number;
}

export interface PurgeQuery {
  readonly now: Date;
  readonly minAgeMs: number;
  readonly limit: number;
}

export interface PurgedRecords {
  readonly count: number;
  readonly ids: readonly TokenId[];
}

export interface QuotaHolder {
  readonly account: string;
  readonly root?: TokenId | undefined;
}

export type RecordState = 'active' | 'suspended' | 'expired' | 'revoked';

export type RefusalReason = 'malformed' | 'unknown' | 'revoked' | 'expired' | 'suspended' | 'ancestor_revoked' | 'ancestor_expired' | 'ancestor_changed' | 'ancestor_suspended' | 'address_unknown' | 'address_denied' | 'ambiguous_request' | 'insufficient_scope' | 'ancestor_insufficient' | 'limit_exceeded';

export interface RefusedRow {
  readonly row: number;
  readonly code: TokenErrorCode;
  readonly message: string;
}

export interface RequestBounds {
  readonly maxPending: number;
  readonly maxOfRoot: number;
  readonly liveAt: Date;
}

export interface RequestCallOptions {
  readonly address?: string | undefined;
}

export interface RequestEvent {
  readonly type: 'requested' | 'approved' | 'denied';
  readonly id: string;
  readonly account?: string;
  readonly by?: string;
  readonly at: Date;
}

export type RequestKey = {
  readonly id: string;
} | {
  readonly userCode: string;
};

export interface RequestRecord {
  readonly id: string;
  readonly userCode: string;
  readonly digest: Uint8Array;
  readonly version: number;
  readonly state: (typeof REQUEST_STATES)[number];
  readonly client: string;
  readonly address?: string | undefined;
  readonly scopes: readonly string[];
  readonly purpose?: string | undefined;
  readonly ttlSeconds: number;
  readonly until?: Date | undefined;
  readonly account?: string | undefined;
  readonly by?: string | undefined;
  readonly elevates?: readonly {
    readonly id: TokenId;
    readonly version: number;
  }[] | undefined;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

export interface RequestStore {
  insert(record: RequestRecord, bounds: RequestBounds): Promise<void>;
  find(key: RequestKey): Promise<RequestRecord | undefined>;
  replace(next: RequestRecord): Promise<boolean>;
  purge(before: Date, limit: number): Promise<number>;
  doctor?(options?: DoctorOptions): Promise<StoreFinding[]>;
  close?(): Promise<void>;
}

export interface ResealReport {
  readonly records: number;
  readonly resealed: number;
  readonly unreadable: number;
  readonly missed: number;
}

export interface ReviewInput {
  readonly account?: string | undefined;
  readonly unusedForDays?: number | undefined;
  readonly expiringWithinDays?: number | undefined;
  readonly secretOlderThanDays?: number | undefined;
  readonly onProgress?: ((reviewed: number) => void) | undefined;
}

export interface RevocationPreview {
  readonly count: number;
  readonly ending: number;
  readonly tokens: readonly Token[];
}

export interface RevokeOptions {
  readonly ifVersion?: number | undefined;
  readonly descendants?: boolean | undefined;
}

export interface RotateOptions {
  readonly activate?: 'first-use' | undefined;
  readonly graceSeconds?: number | undefined;
  readonly endDerived?: boolean | undefined;
  readonly ifVersion?: number | undefined;
  readonly cancel?: undefined;
}

export interface RotatedToken extends IssuedToken {
  readonly descendants: number;
}

export interface ScanQuery {
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface ScannedRecords {
  readonly records: TokenRecord[];
  readonly next?: string | undefined;
}

export interface ScannerRules {
  readonly gitleaks: string;
  readonly trufflehog: string;
  readonly github: GithubPattern;
}

export interface ScopeDescription {
  readonly text: string;
  readonly permissions: readonly HeldPermission[];
  readonly single: readonly string[];
}

export interface ScopeDetail extends Partial<ScopeWords> {
  readonly scope: string;
}

export interface ScopeDetails {
  readonly scopes: readonly ScopeDetail[];
  readonly permissions: readonly Permission[];
  readonly presets: readonly Preset[];
}

export interface ScopeUsage {
  readonly scope: string;
  readonly uses: number;
  readonly lastUsedAt?: Date;
}

export interface ServiceStats {
  readonly cache: {
    readonly hits: number;
    readonly misses: number;
  };
  readonly usage?: {
    readonly waiting: number;
    readonly lagMs: number;
  };
}

export interface StoreFinding {
  readonly code: string;
  readonly message: string;
  readonly part?: 'usage' | 'leases' | 'requests';
}

export type StoreReason = 'unreachable' | 'timeout' | 'busy' | 'schema_missing' | 'schema_older' | 'schema_newer' | 'forbidden' | 'credentials' | 'tls' | 'no_database' | 'pooler' | 'prepared_full' | 'encoding' | 'full' | 'standby' | 'file_replaced' | 'not_opened' | 'closed' | 'transaction_failed' | 'unsupported' | 'foreign_request' | 'unknown';

export interface Token {
  readonly id: TokenId;
  readonly account: string;
  readonly scopes: readonly string[];
  readonly requested: readonly string[];
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly version: number;
  readonly state: TokenState;
  readonly masked: string;
  readonly value?: string;
  readonly parent?: TokenId;
  readonly elevates?: TokenId;
  readonly name?: string;
  readonly metadata?: JsonObject;
  readonly limits?: TokenLimits;
  readonly createdBy?: string;
  readonly purpose?: string;
  readonly actor?: {
    readonly sub: string;
    readonly token: TokenId;
  };
  readonly priorActors?: readonly NonNullable<Token['actor']>[];
  readonly pending?: true;
  readonly uses?: number;
  readonly lastUsedAt?: Date;
  readonly usesUnknown?: true;
}

export interface TokenAdvice {
  readonly unused: readonly string[];
  readonly kept: readonly string[];
  readonly since: Date;
}

export interface TokenCounts {
  readonly live: number;
  readonly ended: number;
}

export declare class TokenError extends Error {
  readonly name: 'TokenError';
  readonly code: TokenErrorCode;
  readonly details?: Readonly<Record<string, unknown>>;
  constructor(code: TokenErrorCode, message: string, details?: Readonly<Record<string, unknown>>);
  get status(): number;
  get docsUrl(): string;
}

export type TokenErrorCode = 'invalid_scope' | 'scopes_required' | 'scope_unmatched' | 'too_many_scopes' | 'quota_exceeded' | 'catalog_empty' | 'invalid_ttl' | 'invalid_expire' | 'invalid_limits' | 'invalid_request' | 'invalid_options' | 'invalid_token' | 'not_found' | 'token_expired' | 'version_conflict' | 'request_decided' | 'unauthorized_client' | 'rate_limited' | 'id_taken' | 'code_taken' | 'store_unavailable' | 'store_corrupt' | 'durability_unconfirmed';

export type TokenEvent = (TokenScopedEvent & {
  readonly type: 'modified' | 'suspended' | 'resumed' | 'activated' | 'revoked' | 'reused';
}) | (TokenScopedEvent & {
  readonly type: 'issued';
  readonly parent?: TokenId;
  readonly format?: string;
  readonly createdBy?: string;
  readonly request?: string;
}) | (TokenScopedEvent & {
  readonly type: 'rotated';
  readonly pending?: true;
}) | (BaseEvent & {
  readonly type: 'revoked_all';
  readonly account: string;
  readonly count: number;
}) | (BaseEvent & {
  readonly type: 'revealed';
  readonly account: string;
  readonly count: number;
}) | (BaseEvent & {
  readonly type: 'purged';
  readonly count: number;
  readonly early?: true;
}) | (BaseEvent & {
  readonly type: 'clock_ahead';
}) | (TokenScopedEvent & {
  readonly type: 'verified';
  readonly grantedBy: string;
}) | (BaseEvent & {
  readonly type: 'refused';
  readonly reason: RefusalReason;
  readonly id?: TokenId;
  readonly account?: string;
  readonly needed?: string;
  readonly detail?: RequestReason | ValueFault;
}) | (BaseEvent & {
  readonly type: 'store_trouble';
  readonly code: 'store_unavailable' | 'store_corrupt' | 'durability_unconfirmed';
  readonly reason?: StoreReason;
  readonly store?: StorePart;
}) | (BaseEvent & {
  readonly type: 'store_recovered';
  readonly reason: StoreReason;
  readonly durationMs: number;
  readonly failed: number;
  readonly store?: StorePart;
}) | (BaseEvent & {
  readonly type: 'usage_dropped';
  readonly count: number;
});

export type TokenFinding = BaseFinding & ({
  readonly code: 'unused';
  readonly lastUsedAt: Date;
} | {
  readonly code: 'never_used';
  readonly since: Date;
} | {
  readonly code: 'broad';
  readonly reasons: readonly BroadReason[];
  readonly covered?: number;
  readonly entries?: number;
} | {
  readonly code: 'excess';
  readonly since: Date;
} | {
  readonly code: 'expiring';
  readonly lastUsedAt: Date;
} | {
  readonly code: 'stale_secret';
  readonly secretSince: Date;
} | {
  readonly code: 'orphaned_scope';
} | {
  readonly code: 'suspended';
  readonly suspendedAt: Date;
});

export type TokenId = string & {
  readonly [tokenId]: true;
};

export interface TokenLimits {
  readonly addresses?: readonly string[];
  readonly uses?: number;
  readonly rate?: {
    readonly uses: number;
    readonly seconds: number;
  };
}

export interface TokenOrigin {
  readonly createdBy?: string;
  readonly purpose?: string;
  readonly actor?: {
    readonly sub: string;
    readonly token: TokenId;
  };
  readonly elevated?: readonly number[];
}

export interface TokenPage {
  readonly tokens: Token[];
  readonly cursor?: string;
}

export interface TokenRecord {
  readonly id: TokenId;
  readonly account: string;
  readonly prefix: string;
  readonly kid: string;
  readonly digest: Uint8Array;
  readonly box?: Uint8Array | undefined;
  readonly scopes: readonly string[];
  readonly requested: readonly string[];
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly version: number;
  readonly name?: string | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly revokedAt?: Date | undefined;
  readonly previousDigest?: Uint8Array | undefined;
  readonly previousUntil?: Date | undefined;
  readonly suspendedAt?: Date | undefined;
  readonly scopesChangedAt?: Date | undefined;
  readonly rotatedAt?: Date | undefined;
  readonly limits?: TokenLimits | undefined;
  readonly ancestors?: readonly TokenId[] | undefined;
  readonly format?: string | undefined;
  readonly origin?: TokenOrigin | undefined;
  readonly pending?: {
    readonly prefix: string;
    readonly kid: string;
    readonly digest: Uint8Array;
    readonly box?: Uint8Array | undefined;
    readonly graceSeconds: number;
  } | undefined;
}

export interface TokenRequest {
  readonly id: string;
  readonly state: RequestRecord['state'];
  readonly client: string;
  readonly address?: string;
  readonly scopes: readonly string[];
  readonly beyond?: readonly string[];
  readonly purpose?: string;
  readonly ttlSeconds: number;
  readonly elevates?: TokenId;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

export declare class TokenRequests {
  #private;
  constructor(options: TokenRequestsOptions);
  get areAnonymous(): boolean;
  open(input: OpenInput): Promise<OpenedRequest>;
  get(account: string, userCode: string, options?: RequestCallOptions): Promise<TokenRequest | undefined>;
  approve(account: string, userCode: string, options?: ApproveOptions): Promise<TokenRequest>;
  deny(account: string, userCode: string, options?: DenyOptions): Promise<boolean>;
  poll(deviceCode: string, options: PollOptions): Promise<PollResult>;
}

export interface TokenRequestsOptions {
  readonly tokens: TokenService;
  readonly store?: RequestStore | undefined;
  readonly verificationUri: string;
  readonly anonymous?: boolean | undefined;
  readonly lifetimeSeconds?: number | undefined;
  readonly maxElevationSeconds?: number | undefined;
  readonly maxPending?: number | undefined;
  readonly mayApprove?: ((request: TokenRequest, approval: Approval) => boolean | Promise<boolean>) | undefined;
  readonly onEvent?: ((event: RequestEvent) => void) | undefined;
}

export declare class TokenService<out Entry extends string = string> {
  #private;
  constructor(options: TokenServiceOptions<Entry>);
  get lifetime(): Lifetime;
  get recordsUsage(): boolean;
  issue<const Asked extends string = never>(input: IssueInput<AskedScope<Entry, Asked>>): Promise<IssuedToken>;
  list<const Asked extends string = never>(input: ListInput<AskedScope<Entry, Asked>>): Promise<TokenPage>;
  listAll<const Asked extends string = never>(input: ListInput<AskedScope<Entry, Asked>>): AsyncGenerator<Token, void, undefined>;
  get(account: string, valueOrId: string, options?: GetOptions): Promise<Token | undefined>;
  usage(account: string, valueOrId: string): Promise<TokenUsage | undefined>;
  advise(account: string, valueOrId: string, options?: AdviseOptions): Promise<TokenAdvice | undefined>;
  modify<const Asked extends string = never>(account: string, valueOrId: string, change: ModifyInput<AskedScope<Entry, Asked>>, options?: ChangeOptions): Promise<ModifiedToken>;
  patch<const Asked extends string = never>(account: string, valueOrId: string, change: PatchInput<AskedScope<Entry, Asked>>, options?: ChangeOptions): Promise<ModifiedToken>;
  revoke(account: string, valueOrId: string, options?: RevokeOptions): Promise<boolean>;
  revokeAll(account: string, options: RevokeAllOptions & {
    readonly dryRun: true;
  }): Promise<RevocationPreview>;
  revokeAll(account: string, options?: RevokeAllOptions & {
    readonly dryRun?: false | undefined;
  }): Promise<number>;
  rotate(account: string, valueOrId: string, options?: RotateOptions): Promise<RotatedToken>;
  rotate(account: string, valueOrId: string, options: CancelRotationOptions): Promise<Token>;
  explain(account: string, valueOrId: string, need: Need): Promise<Explanation>;
  scopes(account: string): Promise<Entry[]>;
  scopeDetails(account: string): Promise<ScopeDetails>;
  verify<const Asked extends string = never>(value: string, need: Need<AskedScope<Entry, Asked>>, options?: VerifyOptions): Promise<Verdict>;
  allows<const Asked extends string = never>(value: string, need: Need<AskedScope<Entry, Asked>>, options?: VerifyOptions): Promise<boolean>;
  verifySync<const Asked extends string = never>(value: string, need: Need<AskedScope<Entry, Asked>>, options?: VerifySyncOptions): Verdict | undefined;
  introspect(value: string, options?: IntrospectOptions): Promise<Token | undefined>;
  derive<const Asked extends string = never>(value: string, input: DeriveInput<AskedScope<Entry, Asked>>, options?: DeriveOptions): Promise<IssuedToken>;
  purge(input: PurgeInput): Promise<number>;
  stats(): ServiceStats;
  scan(): AsyncGenerator<Token, void, undefined>;
  review(input?: ReviewInput): AsyncGenerator<TokenFinding, void, undefined>;
  reseal(options?: ResealOptions): Promise<ResealReport>;
  upkeep(options?: UpkeepOptions): Upkeep;
  import(input: ImportInput): Promise<Token>;
  importMany(rows: Iterable<ImportInput> | AsyncIterable<ImportInput>, options?: ImportManyOptions): Promise<ImportReport>;
  verifierKeys(): KeyOptions[];
  in(connection: object): TokenService<Entry>;
  close(): Promise<void>;
}

export type TokenServiceOptions<Entry extends string = string> = ServiceOptions<Entry> & (OnEngine | OnTokenStore);

export type TokenState = RecordState | 'ancestor_ended';

export interface TokenStore {
  insert(record: TokenRecord): Promise<void>;
  count(query: CountQuery): Promise<TokenCounts>;
  find(ids: readonly TokenId[]): Promise<(TokenRecord | undefined)[]>;
  page(query: PageQuery): Promise<TokenRecord[]>;
  replace(next: TokenRecord, version?: number): Promise<boolean>;
  revoke(id: TokenId, account: string, at: Date, version?: number): Promise<boolean>;
  revokeAll(account: string, at: Date, limit: number): Promise<number>;
  purge(query: PurgeQuery): Promise<number | PurgedRecords>;
  prune(query: PruneQuery): Promise<number | PurgedRecords>;
  hasReached?(instant: Date, before?: Date): Promise<boolean>;
  scan?(query: ScanQuery): Promise<ScannedRecords>;
  watch?(onChange: (ids: readonly TokenId[] | 'all') => void, onTrouble?: (failure: TokenError | undefined) => void): Promise<Unsubscribe>;
  doctor?(options?: DoctorOptions): Promise<StoreFinding[]>;
  readonly local?: boolean;
  in?(connection: object): TokenStore;
  readonly inTransaction?: boolean;
  close?(): Promise<void>;
}

export interface TokenUsage {
  readonly uses: number;
  readonly refusals: number;
  readonly lastUsedAt?: Date;
  readonly derived?: Pick<TokenUsage, 'uses' | 'lastUsedAt'>;
  readonly scopes: readonly ScopeUsage[];
}

export interface UnspentLease {
  readonly key: string;
  readonly window: number;
  readonly amount: number;
}

export type Unsubscribe = () => Promise<void>;

export interface Upkeep {
  stop(): Promise<void>;
}

export type UsageDelta = UseDelta | RefusalDelta;

export interface UsageRecord {
  readonly refusals: number;
  readonly scopes: readonly UsedScope[];
}

export interface UsageStore {
  add(batch: readonly UsageDelta[]): Promise<void>;
  read(ids: readonly TokenId[]): Promise<readonly (UsageRecord | undefined)[]>;
  totals?(ids: readonly TokenId[]): Promise<readonly (UsageTotals | undefined)[]>;
  forget(ids: readonly TokenId[]): Promise<void>;
  scan?(query: ScanQuery): Promise<CountedTokens>;
  since?(): Promise<Date>;
  close?(): Promise<void>;
}

export interface UsageTotals {
  readonly uses: number;
  readonly refusals: number;
  readonly lastUsedAt?: Date;
}

export type ValueFault = 'not_a_string' | 'empty' | 'begins_with_bearer' | 'is_id' | 'other_prefix' | 'unknown_key' | 'bad_tag' | 'other_form';

export type Verdict = {
  readonly ok: true;
  readonly token: Token;
  readonly grantedBy: string;
  readonly reason?: undefined;
  readonly detail?: undefined;
  readonly needed?: undefined;
  readonly explanation?: undefined;
  readonly retryAt?: undefined;
  readonly retryAfterSeconds?: undefined;
  readonly rate?: undefined;
} | {
  readonly ok: false;
  readonly token?: undefined;
  readonly grantedBy?: undefined;
  readonly reason: RefusalReason;
  readonly detail?: RequestReason | ValueFault;
  readonly needed?: string;
  readonly explanation?: Explanation;
  readonly retryAt?: Date;
  readonly retryAfterSeconds?: number;
  readonly rate?: NonNullable<TokenLimits['rate']>;
};

export interface VerifyOptions {
  readonly fresh?: boolean | undefined;
  readonly address?: string | undefined;
}

export declare function describeScopes(scopes: Iterable<Scope | string>, catalog?: {
  permissions(): readonly Permission[];
}): ScopeDescription;

export declare function doctor(store: Pick<TokenStore, 'doctor'> & Readonly<Record<'purge', unknown>>, options?: DoctorOptions): Promise<StoreFinding[]>;

export declare const formats: Readonly<{
  sanctum({ prefix }?: {
    readonly prefix?: string | undefined;
  }): ForeignFormat;
  betterAuth({ prefix, length, }?: {
    readonly prefix?: string | undefined;
    readonly length?: number | undefined;
  }): ForeignFormat;
  unkey({ prefix }: PrefixedFormat): ForeignFormat;
  prefixedApiKey({ prefix }: PrefixedFormat): ForeignFormat;
  sha256({ pattern, name, }: {
    readonly pattern: RegExp;
    readonly name?: string | undefined;
  }): ForeignFormat;
}>;

export declare function generateKey(kid?: string): KeyOptions;

export declare function isTokenError(value: unknown): value is TokenError;

export declare function outageLog(write: (line: string) => void): (event: TokenEvent) => void;

export declare function redact(text: string): string;

export declare function redactor(foreign: readonly ForeignFormat[]): (text: string) => string;

export declare function scannerRules(options: {
  readonly prefix: string;
}): ScannerRules;

export declare const systemClock: Clock;

// Not exported, but part of the above:

interface BaseEvent {
  readonly at: Date;
  readonly inTransaction?: true;
}

interface BaseFinding {
  readonly token: Token;
  readonly scopes: readonly string[];
  readonly message: string;
}

type BroadReason = 'every_method' | 'whole_host' | 'most_of_catalog';

interface CacheOptions {
  readonly maxStaleMs?: number | undefined;
  readonly maxEntries?: number | undefined;
  readonly maxBytes?: number | undefined;
}

interface CancelRotationOptions {
  readonly cancel: true;
  readonly ifVersion?: number | undefined;
}

type CatalogOf<Entry extends string> = string extends Entry ? ScopeCatalog : TypedCatalog<Entry>;

type CatalogOption<Entry extends string = string> = CatalogOf<Entry> | ((account: string) => CatalogOf<Entry> | Promise<CatalogOf<Entry>>);

interface GithubPattern {
  readonly patternName: string;
  readonly secretFormat: string;
  readonly beforeSecret: string;
  readonly afterSecret: string;
  readonly testString: string;
}

interface ImportManyOptions {
  readonly dryRun?: boolean | undefined;
  readonly onRefused?: ((refused: RefusedRow) => void) | undefined;
  readonly onProgress?: ((report: ImportReport) => void) | undefined;
}

interface IntrospectOptions {
  readonly countsAsUse?: boolean | undefined;
  readonly address?: string | undefined;
  readonly includeSuspended?: boolean | undefined;
}

interface OnEngine {
  readonly store: EngineStore;
  readonly usage?: boolean | {
    readonly store?: UsageStore | undefined;
    readonly flushMs?: number | undefined;
  } | undefined;
  readonly limits?: boolean | {
    readonly store?: LeaseStore | undefined;
  } | undefined;
}

interface OnTokenStore {
  readonly store: TokenStore;
  readonly usage?: false | {
    readonly store: UsageStore;
    readonly flushMs?: number | undefined;
  } | undefined;
  readonly limits?: false | {
    readonly store: LeaseStore;
  } | undefined;
}

interface PrefixedFormat {
  readonly prefix: string;
}

interface PurgeInput {
  readonly before: Date;
  readonly limit?: number | undefined;
}

interface QuotaOptions {
  readonly tokensPerAccount?: number | undefined;
  readonly endedPerAccount?: number | undefined;
  readonly derivedPerRoot?: number | undefined;
  readonly scopesPerToken?: number | undefined;
}

declare const REQUEST_STATES: readonly [
  "pending",
  "approved",
  "redeemed",
  "denied"
];

interface RefusalDelta {
  readonly id: TokenId;
  readonly refusals: number;
  readonly scope?: undefined;
}

interface ResealOptions {
  readonly onProgress?: ((report: ResealReport) => void) | undefined;
}

interface RevokeAllOptions {
  readonly createdBy?: string | undefined;
  readonly dryRun?: boolean | undefined;
  readonly onProgress?: ((revoked: number) => void) | undefined;
}

interface ServiceOptions<Entry extends string> {
  readonly keys: readonly KeyOptions[];
  readonly prefix: string;
  readonly foreign?: readonly ForeignFormat[] | undefined;
  readonly catalog?: CatalogOption<Entry> | undefined;
  readonly presets?: readonly Preset[] | undefined;
  readonly clock?: Clock | undefined;
  readonly reveal?: 'once' | 'always' | undefined;
  readonly lifetime?: Partial<Lifetime> | undefined;
  readonly cache?: CacheOptions | undefined;
  readonly quotas?: QuotaOptions | undefined;
  readonly deadlineMs?: number | undefined;
  readonly onEvent?: ((event: TokenEvent) => void) | undefined;
}

type StorePart = 'usage' | 'leases' | 'requests' | 'watch';

interface TokenScopedEvent extends BaseEvent {
  readonly id: TokenId;
  readonly account: string;
}

interface Unambiguous {
  readonly [unambiguous]: true;
}

interface UpkeepOptions {
  readonly purgeAfterDays?: number | undefined;
  readonly everyMs?: number | undefined;
}

interface UseDelta {
  readonly id: TokenId;
  readonly scope: string;
  readonly uses: number;
  readonly lastUsedAt: Date;
  readonly refusals?: undefined;
}

interface UsedScope {
  readonly scope: string;
  readonly uses: number;
  readonly lastUsedAt: Date;
}

type VerifySyncOptions = Pick<VerifyOptions, 'address'>;

declare const tokenId: unique symbol;

declare const unambiguous: unique symbol;
