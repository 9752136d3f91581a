export { covers, meet, overlaps } from './algebra.ts';
export { type CatalogOptions, type Expansion, ScopeCatalog } from './catalog.ts';
export { type RefusedScope, ScopeError, type ScopeErrorCode } from './errors.ts';
export type { KnownScopes, NearMiss, ScopeExplanation } from './explain.ts';
export { parseScope, type Scope, type ScopeReading, safeParseScope } from './grammar.ts';
export type { LintFinding } from './lint.ts';
export {
  type ReadRequest,
  type RequestReading,
  type RequestReason,
  readRequest,
  type ScopeRequest,
} from './request.ts';
export { type Decision, type ScopeDiff, ScopeSet } from './set.ts';
export {
  type AskedScope,
  type CatalogPattern,
  type CatalogScope,
  defineCatalog,
  type Method,
  type ScopeText,
  scopeIn,
  type TypedCatalog,
} from './typed.ts';
