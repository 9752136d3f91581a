export type { Need } from './access/need.ts';
export { isTokenError, type StoreReason, TokenError, type TokenErrorCode } from './errors.ts';
export type { TokenEvent } from './events.ts';
export type { TokenServiceOptions } from './inputs/options.ts';
export type {
  AdviseOptions,
  ChangeOptions,
  DeriveInput,
  DeriveOptions,
  GetOptions,
  ImportInput,
  ImportReport,
  IssueInput,
  ListInput,
  ModifyInput,
  PatchInput,
  Preset,
  RefusedRow,
  ReviewInput,
  RevocationPreview,
  RevokeOptions,
  RotateOptions,
  ScopeDetail,
  ScopeDetails,
  VerifyOptions,
} from './inputs/types.ts';
export type { EngineStore } from './ports/engine-store.ts';
export type { LeaseStore, LeaseWant, UnspentLease } from './ports/lease-store.ts';
export { outageLog } from './ports/outage-log.ts';
export type {
  RequestBounds,
  RequestKey,
  RequestRecord,
  RequestStore,
} from './ports/request-store.ts';
export {
  type CountQuery,
  type DoctorOptions,
  doctor,
  type PageOrder,
  type PageQuery,
  type Position,
  type PruneQuery,
  type PurgedRecords,
  type PurgeQuery,
  type QuotaHolder,
  type ScannedRecords,
  type ScanQuery,
  type StoreFinding,
  type TokenCounts,
  type TokenStore,
  type Unsubscribe,
} from './ports/token-store.ts';
export type {
  CountedTokens,
  UsageDelta,
  UsageRecord,
  UsageStore,
  UsageTotals,
} from './ports/usage-store.ts';
export type { Approval, TokenRequestsOptions } from './requests/options.ts';
export { TokenRequests } from './requests/requests.ts';
export type {
  ApproveOptions,
  DenyOptions,
  OpenedRequest,
  OpenInput,
  PollOptions,
  PollResult,
  RequestCallOptions,
  RequestEvent,
  TokenRequest,
} from './requests/types.ts';
export { describeScopes, type HeldPermission, type ScopeDescription } from './scope/describe.ts';
export { TokenService } from './service.ts';
export { MemoryTokenStore } from './stores/memory/index.ts';
export { type Clock, systemClock } from './time/clock.ts';
export type {
  Explanation,
  IssuedToken,
  JsonObject,
  JsonValue,
  Lifetime,
  ListedState,
  ModifiedToken,
  RecordState,
  RefusalReason,
  ResealReport,
  RotatedToken,
  Token,
  TokenId,
  TokenLimits,
  TokenOrigin,
  TokenPage,
  TokenRecord,
  TokenState,
  ValueFault,
  Verdict,
} from './token/record.ts';
export type { TokenAdvice } from './usage/advice.ts';
export type { ScopeUsage, TokenUsage } from './usage/counts.ts';
export type { TokenFinding } from './usage/findings.ts';
export { type ForeignFormat, formats } from './values/foreign.ts';
export { generateKey, type KeyOptions } from './values/keys.ts';
export { redact, redactor } from './values/redact.ts';
export { type ScannerRules, scannerRules } from './values/scanner.ts';
export type { ServiceStats } from './verbs/stats.ts';
export type { Upkeep } from './verbs/upkeep.ts';
