export {
  type Authenticate,
  type Credentials,
  type FixedAccount,
  fixedAccounts,
  hashPassword,
} from './accounts.ts';
export type { HttpErrorCode } from './answers.ts';
export {
  type BearerGuard,
  type BearerGuardOptions,
  bearerGuard,
  type GuardedNodeRequest,
  type GuardedRequest,
  type GuardNeed,
  type GuardOutcome,
  type GuardReason,
  type GuardRefusal,
} from './guard.ts';
export { type TokenHandler, type TokenHandlerOptions, tokenHandler } from './handler.ts';
export {
  type Attempt,
  type FailureLimiter,
  type FailureLimiterOptions,
  failureLimiter,
  type PointsLimiter,
  remoteAddress,
} from './limits.ts';
export { type NodeRequest, sendResponse, toNodeListener } from './node.ts';
export { type Addressed, safeUrl } from './safe-url.ts';
