export { covers, meet, overlaps } from './algebra.ts';
export { type Expansion, type LintFinding, ScopeCatalog } from './catalog.ts';
export {
  parseScope,
  type RefusedScope,
  type Scope,
  ScopeError,
  type ScopeErrorCode,
  type ScopeReading,
  safeParseScope,
} from './grammar.ts';
export {
  type Decision,
  type KnownScopes,
  type NearMiss,
  type ScopeDiff,
  type ScopeExplanation,
  ScopeSet,
} from './matcher.ts';
export {
  type ReadRequest,
  type RequestReading,
  type RequestReason,
  readRequest,
  type ScopeRequest,
} from './request.ts';
export {
  type CatalogPattern,
  type CatalogScope,
  defineCatalog,
  type Method,
  type ScopeText,
  scopeIn,
  type TypedCatalog,
} from './typed.ts';
