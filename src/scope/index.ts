export { covers, meet, overlaps } from './algebra.ts';
export { type CatalogOptions, type Expansion, ScopeCatalog } from './catalog.ts';
export { type RefusedScope, ScopeError, type ScopeErrorCode } from './errors.ts';
export type { NearMiss, ScopeExplanation } from './explain.ts';
export { parseScope, type Scope, safeParseScope } from './grammar.ts';
export type { LintFinding } from './lint.ts';
export { type ReadRequest, type RequestReason, readRequest, type ScopeRequest } from './request.ts';
export { type ScopeDiff, ScopeSet } from './set.ts';
export {
  type AskedScope,
  type CatalogPattern,
  type CatalogScope,
  defineCatalog,
  type Method,
  scopeIn,
  type TypedCatalog,
} from './typed.ts';
export type {
  EndpointWords,
  Permission,
  PermissionOption,
  ScopeWords,
  WordedScope,
} from './words.ts';
