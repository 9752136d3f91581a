export { type Clock, systemClock } from './clock.ts';
export { isTokenError, TokenError, type TokenErrorCode } from './errors.ts';
export type { TokenEvent, TokenEventType } from './events.ts';
export type {
  ChangeOptions,
  IssueInput,
  ListInput,
  ModifyInput,
  PatchInput,
  PurgeInput,
  RotateOptions,
  VerifyOptions,
} from './input.ts';
export { generateKey, type KeyOptions } from './keys.ts';
export type { CacheOptions, CatalogOption, TokenServiceOptions } from './options.ts';
export { type GithubPattern, type ScannerRules, scannerRules } from './scanner.ts';
export {
  type ModifiedToken,
  type Need,
  type TokenPage,
  TokenService,
} from './service.ts';
export {
  doctor,
  type PageQuery,
  type Position,
  type StoreFinding,
  type TokenStore,
  type Unsubscribe,
} from './store.ts';
export { MemoryTokenStore } from './stores/memory.ts';
export type {
  Explanation,
  IssuedToken,
  JsonObject,
  JsonValue,
  Lifetime,
  RefusalReason,
  Token,
  TokenId,
  TokenRecord,
  Verdict,
} from './token.ts';
export { redact } from './value.ts';
