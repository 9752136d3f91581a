import type { TokenErrorCode } from '../src/errors.ts';
import type { GuardReason } from '../src/http/guard/guard.ts';
import type { HttpErrorCode } from '../src/http/index.ts';
import type { ScopeErrorCode } from '../src/scope/index.ts';
import type { Decision } from '../src/scope/set.ts';
import type { ValueFault } from '../src/token/record.ts';

// Types leave nothing at run time. The compiler holds these lists complete, and free of what is not a code.

const TOKEN = {
  invalid_scope: true,
  scopes_required: true,
  scope_unmatched: true,
  too_many_scopes: true,
  quota_exceeded: true,
  catalog_empty: true,
  invalid_ttl: true,
  invalid_expire: true,
  invalid_limits: true,
  invalid_request: true,
  invalid_options: true,
  invalid_token: true,
  not_found: true,
  token_expired: true,
  version_conflict: true,
  request_decided: true,
  unauthorized_client: true,
  rate_limited: true,
  id_taken: true,
  code_taken: true,
  store_unavailable: true,
  store_corrupt: true,
  durability_unconfirmed: true,
} satisfies Record<TokenErrorCode, true>;

const HTTP = {
  ...TOKEN,
  invalid_json: true,
  unauthenticated: true,
  insufficient_scope: true,
  address_denied: true,
  limit_exceeded: true,
  cross_site: true,
  method_not_allowed: true,
  payload_too_large: true,
  uri_too_long: true,
  unsupported_media_type: true,
  overloaded: true,
  revocation_unconfirmed: true,
  usage_not_recorded: true,
  internal: true,
} satisfies Record<HttpErrorCode, true>;

const SCOPE = {
  not_a_string: true,
  empty: true,
  too_long: true,
  non_ascii: true,
  illegal_character: true,
  missing_method: true,
  wildcard_position: true,
  method_invalid: true,
  scheme_present: true,
  missing_domain: true,
  domain_userinfo: true,
  domain_ip: true,
  domain_port: true,
  domain_invalid: true,
  missing_path: true,
  query_or_fragment: true,
  percent_encoding: true,
  path_template: true,
  path_empty_segment: true,
  path_dot_segment: true,
  route_parameter: true,
  scopes_required: true,
  too_many_scopes: true,
  scope_invalid: true,
  scope_unmatched: true,
  catalog_empty: true,
  catalog_not_concrete: true,
} satisfies Record<ScopeErrorCode, true>;

const REFUSAL = {
  malformed: true,
  unknown: true,
  revoked: true,
  expired: true,
  suspended: true,
  ancestor_revoked: true,
  ancestor_expired: true,
  ancestor_changed: true,
  ancestor_suspended: true,
  ambiguous_request: true,
  address_unknown: true,
  address_denied: true,
  insufficient_scope: true,
  ancestor_insufficient: true,
  limit_exceeded: true,
  missing: true,
  ambiguous_credentials: true,
  unavailable: true,
} satisfies Record<GuardReason, true>;

const DECISION = {
  method_invalid: true,
  domain_invalid: true,
  path_too_long: true,
  path_not_absolute: true,
  path_fragment: true,
  path_backslash: true,
  path_illegal_character: true,
  path_bad_encoding: true,
  path_empty_segment: true,
  path_encoded_slash: true,
  path_encoded_control: true,
  path_parameter: true,
  path_dot_segment: true,
  path_double_encoding: true,
  path_several_routes: true,
  not_covered: true,
} satisfies Record<Extract<Decision, { readonly allowed: false }>['reason'], true>;

const VALUE = {
  not_a_string: true,
  empty: true,
  begins_with_bearer: true,
  is_id: true,
  other_prefix: true,
  unknown_key: true,
  bad_tag: true,
  other_form: true,
} satisfies Record<ValueFault, true>;

/** Why a token is refused, and why a set does not allow a request. */
export const REASONS: readonly string[] = [REFUSAL, DECISION, VALUE].flatMap(Object.keys);

/** All codes, by the error that carries them; those of HTTP by what clients read. */
export const CODES = {
  TokenError: Object.keys(TOKEN) as TokenErrorCode[],
  HttpError: Object.keys(HTTP) as HttpErrorCode[],
  ScopeError: Object.keys(SCOPE) as ScopeErrorCode[],
};
