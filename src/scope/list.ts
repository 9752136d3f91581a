import { MAX_SCOPES } from './bounds.ts';
import { describeRefused, type RefusedScope, ScopeError } from './errors.ts';
import { isPrintable, type Scope, safeParseScope, safeToScope } from './grammar.ts';
import { atOnce, endsStep, inSteps, type Steps } from './steps.ts';

/**
 * Parses a list of scopes as a caller sends it: in the given order, without duplicates.
 *
 * @throws {ScopeError} `scopes_required`, `too_many_scopes` (over 4096) or `scope_invalid`, naming
 * every member that cannot be parsed
 * @param readText parses one text; pass `recallScope` for texts that are likely to come again
 */
export function parseScopes(requested: unknown, readText = safeParseScope): Scope[] {
  return readAll(atOnce(readMembers(membersOf(requested), readText)));
}

/** As {@link parseScopes}, in steps. */
export function* parsingScopes(requested: unknown, readText = safeParseScope): Steps<Scope[]> {
  return readAll(yield* readMembers(membersOf(requested), readText));
}

function membersOf(requested: unknown): unknown[] {
  const members = toMembers(requested);
  if (members.length === 0) throw scopesRequired(requested);
  if (members.length > MAX_SCOPES) throw tooManyScopes();
  return members;
}

function readAll({ read, refused, why }: ReadMembers): Scope[] {
  if (refused.length === 0) return read;
  const all = refused.length === 1 ? '' : `${describeRefused(refused)}; the first: `;
  throw new ScopeError('scope_invalid', `scopes cannot be read: ${all}${why}`, { refused });
}

/** The scopes of a list, each once; the refused members, and what is wrong with the first. */
interface ReadMembers {
  readonly read: Scope[];
  readonly refused: RefusedScope[];
  readonly why: string;
}

/** Segments that begin with a colon and a name, without the end mark. */
const PARAMETER = /(?<=^|\/):[A-Za-z_][^/]*?(?=\/|\$?$)/g;

/** Says what is wrong with a scope that has a segment such as `:id`; `undefined` for any other. */
export function parameterFault(
  scope: Scope,
): { readonly message: string; readonly meant: string } | undefined {
  const { method, domain, path } = scope;
  if (!path.includes(':')) return undefined;
  const meant = `${method}:${domain}/${path.replace(PARAMETER, '{}')}`;
  if (meant === scope.toString()) return undefined;
  const message = `"${scope}" has a segment like the parameter of a route, which a scope writes as {}; did you mean "${meant}"?`;
  return { message, meant };
}

/**
 * Refuses a scope that a person wrote with a segment such as `:id`, which the parser takes as the text that it
 * is.
 *
 * @throws {ScopeError} `route_parameter`
 */
export function refuseParameters(scope: Scope): void {
  const fault = parameterFault(scope);
  if (fault === undefined) return;
  throw new ScopeError('route_parameter', fault.message, { suggestion: fault.meant });
}

/**
 * Reads the members of a list that a person wrote, in steps. The parser takes `:id` as the text that it is;
 * here nobody means that.
 */
export function* readMembers(
  members: readonly unknown[],
  readText: typeof safeParseScope,
  isAllowed?: (scope: Scope, index: number) => boolean,
): Steps<ReadMembers> {
  const read = new Map<string, Scope>();
  const refused: RefusedScope[] = [];
  let why = '';
  // Not by `inSteps`: each token that is issued comes here.
  for (let index = 0; index < members.length; index++) {
    const member = members[index];
    const reading = safeToScope(member, readText);
    if (reading.ok) {
      const scope = reading.scope.toString();
      const fault = parameterFault(reading.scope);
      if (fault !== undefined) {
        refused.push({ scope, code: 'route_parameter', suggestion: fault.meant });
        why ||= fault.message;
      } else if (isAllowed?.(reading.scope, index) === false) refused.push({ scope });
      else read.set(scope, reading.scope);
    } else {
      const { error: code, message, suggestion } = reading;
      const scope = isPrintable(member) ? member : `scopes[${index}]`;
      refused.push({ scope, code, ...(suggestion && { suggestion }) });
      why ||= scope === member ? message : `${scope}: ${message}`;
    }
    if (endsStep(index)) yield;
  }
  return { read: [...read.values()], refused, why };
}

/** In steps: each member parsed, or as it is if it cannot be. */
export function* parsedMembers<Member>(
  members: readonly Member[],
  readText: typeof safeParseScope,
): Steps<(Member | Scope)[]> {
  const parsed: (Member | Scope)[] = [];
  yield* inSteps(members, (member) => {
    const reading = safeToScope(member, readText);
    parsed.push(reading.ok ? reading.scope : member);
  });
  return parsed;
}

/**
 * The members of any iterable.
 *
 * @throws {ScopeError} `scopes_required` when it is not a list, or throws when it is iterated
 */
export function toList<Member>(scopes: Iterable<Member>): readonly Member[] {
  try {
    if (typeof scopes === 'object' && scopes !== null) return [...scopes];
  } catch {
    // Refused below, like a value that is not a list.
  }
  throw scopesRequired(scopes);
}

export function tooManyScopes(): ScopeError {
  return new ScopeError(
    'too_many_scopes',
    `a token holds at most ${MAX_SCOPES} scopes, and these are more`,
  );
}

/** @param given what was given instead of a list */
export function scopesRequired(given?: unknown): ScopeError {
  const rule = 'a list of scopes is required, as ["GET:shop.example/orders"]';
  return new ScopeError('scopes_required', rule + hintFor(given));
}

function hintFor(given: unknown): string {
  if (typeof given === 'string') {
    return /[\s,]/.test(given) ? '; got a text: split it' : '; got a text: put it into a list';
  }
  return isSet(given) ? '; got a Set: give [...set]' : '';
}

/** A proxy that throws is not one. */
function isSet(value: unknown): boolean {
  try {
    return value instanceof Set;
  } catch {
    return false;
  }
}

/** The members of an array, at most one more than allowed; none of a hostile or other value. */
function toMembers(value: unknown): unknown[] {
  try {
    // Read once: a getter could return another length the next time.
    const length = Array.isArray(value) ? Math.min(value.length, MAX_SCOPES + 1) : 0;
    const members: unknown[] = [];
    for (let index = 0; index < length; index++) members.push((value as unknown[])[index]);
    return members;
  } catch {
    return [];
  }
}
