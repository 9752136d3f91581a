import type { CachedRecord, RecordReader } from '../records/reader.ts';
import type { ReadRequest, Scope } from '../scope/index.ts';
import { atOnce, type Steps } from '../scope/steps.ts';
import {
  isElevation,
  type RecordState,
  stateOf,
  type TokenId,
  type TokenRecord,
} from '../token/record.ts';
import type { CompiledScopes } from './compiled-scopes.ts';

/** The ancestors of a token, root first. `undefined` stands for one that had ended and was purged. */
export type Ancestors = readonly (TokenRecord | undefined)[];

type AncestorFault =
  | 'ancestor_revoked'
  | 'ancestor_expired'
  | 'ancestor_changed'
  | 'ancestor_suspended';

/** In order of precedence: a permanent end comes first. */
const FAULTS = ['revoked', 'expired', 'changed', 'suspended'] as const;

type Descendant = Pick<TokenRecord, 'account' | 'origin'>;

/** Why the ancestors of a token refuse it, whatever is needed; `undefined` if all are live. */
export function ancestorFault(
  token: Descendant,
  ancestors: Ancestors,
  now: number,
): AncestorFault | undefined {
  // Nearly always, and without a function for each call.
  let areActive = true;
  for (let at = 0; at < ancestors.length && areActive; at += 1)
    areActive = stateAbove(token, ancestors, at, now) === 'active';
  if (areActive) return undefined;
  const states = ancestors.map((_, at) => stateAbove(token, ancestors, at, now));
  const fault = FAULTS.find((state) => states.includes(state));
  return fault && `ancestor_${fault}`;
}

function stateAbove(
  { account, origin }: Descendant,
  ancestors: Ancestors,
  at: number,
  now: number,
): RecordState | 'changed' {
  const ancestor = ancestors[at];
  // After a purge, the id of an imported token can be used again, even by another account.
  if (ancestor?.account !== account) return 'revoked';
  const state = stateOf(ancestor, now);
  const versions = origin?.elevated;
  if (versions === undefined || state === 'revoked' || state === 'expired') return state;
  return ancestor.version === versions[at] ? state : 'changed';
}

/** Whether an ancestor of a token that has not ended itself has, so that it can never be used again. */
export function hasEnded(record: TokenRecord, ancestors: Ancestors, now: number): boolean {
  const state = stateOf(record, now);
  if (ancestors.length === 0 || state === 'revoked' || state === 'expired') return false;
  const fault = ancestorFault(record, ancestors, now);
  return fault !== undefined && fault !== 'ancestor_suspended';
}

/** Reads the ancestors of tokens. Narrows a token to what each of its ancestors allows now. */
export class Lineages {
  readonly #reader: RecordReader;
  readonly #compiled: CompiledScopes;
  /** The intersection of two lists, by the first list and then by the second. */
  readonly #shared = new WeakMap<
    readonly string[],
    WeakMap<readonly string[], readonly string[]>
  >();

  constructor(reader: RecordReader, compiled: CompiledScopes) {
    this.#reader = reader;
    this.#compiled = compiled;
  }

  /**
   * Reads the ancestors of a token from the store, in one round trip.
   *
   * @throws {TokenError} `store_unavailable`, `store_corrupt`, if one of them cannot be read
   */
  async read({ ancestors = [] }: Pick<TokenRecord, 'ancestors'>, now: number): Promise<Ancestors> {
    return ancestors.length === 0 ? [] : this.#reader.readAll(ancestors, now);
  }

  /** Reads the ancestors of several tokens, in one round trip; none if none was derived. */
  async ofAll(records: readonly TokenRecord[], now: number): Promise<readonly Ancestors[]> {
    const ids = [...new Set(records.flatMap(({ ancestors = [] }) => ancestors))];
    if (ids.length === 0) return [];
    const found = await this.#reader.readAll(ids, now);
    const known = new Map(ids.map((id, index) => [id, found[index]]));
    return records.map(({ ancestors = [] }) => ancestors.map((id) => known.get(id)));
  }

  /**
   * Whether each token has not ended itself, but an ancestor of it has; see {@link hasEnded}. Nothing to wait
   * for if none was derived.
   */
  areEnded(records: readonly TokenRecord[], now: number): Promise<readonly boolean[]> | undefined {
    if (records.every(({ ancestors }) => ancestors === undefined)) return undefined;
    return this.ofAll(records, now).then((lines) =>
      lines.map((ancestors, at) => hasEnded(records[at] as TokenRecord, ancestors, now)),
    );
  }

  /**
   * The cached ancestors; `undefined` unless all of them are cached, and for an elevation, unless they are as
   * new as it.
   *
   * @param entry the entry of the token itself, if it is cached
   */
  cached(
    { ancestors = [], origin }: Pick<TokenRecord, 'ancestors' | 'origin'>,
    now: number,
    entry: CachedRecord | undefined,
  ): Ancestors | undefined {
    const found = this.#reader.cachedAbove(ancestors, now, entry);
    const versions = origin?.elevated;
    if (versions === undefined || found === undefined) return found;
    const areAsNew = versions.every((version, at) => (found[at]?.version ?? 0) >= version);
    return areAsNew ? found : undefined;
  }

  /**
   * The scope of each ancestor that grants the need, or all scopes of the first ancestor without one. Nothing
   * has to grant it for an elevation.
   */
  grantsOf(
    record: Pick<TokenRecord, 'origin'>,
    ancestors: Ancestors,
    need: ReadRequest | Scope,
  ): { readonly grants: readonly Grant[] } | { readonly refusing: readonly string[] } {
    const grants: Grant[] = [];
    if (isElevation(record)) return { grants };
    for (const ancestor of ancestors) {
      const by = ancestor && this.#compiled.grantOf(ancestor.scopes, need);
      if (ancestor === undefined || by === undefined) return { refusing: ancestor?.scopes ?? [] };
      grants.push({ id: ancestor.id, by });
    }
    return { grants };
  }

  /**
   * Narrows the scopes and the expiry of a token to those of its ancestors, or only the expiry if it is an
   * elevation. Returns the record itself if that changes nothing.
   */
  within(record: TokenRecord, ancestors: Ancestors): TokenRecord {
    for (const ancestor of ancestors) {
      if (!this.#isKnownWithin(record, ancestor))
        return atOnce(this.withinInSteps(record, ancestors));
    }
    return record;
  }

  /** Whether an ancestor bounds neither the scopes nor the expiry, as far as that is known without computing an intersection. */
  #isKnownWithin(record: TokenRecord, ancestor: TokenRecord | undefined): boolean {
    const { scopes, expiresAt } = record;
    if (ancestor === undefined || ancestor.expiresAt.getTime() < expiresAt.getTime()) return false;
    if (scopes === ancestor.scopes || isElevation(record)) return true;
    return this.#shared.get(scopes)?.get(ancestor.scopes) === scopes;
  }

  /** As {@link within}, for long lists, which take longer than a turn of the event loop. */
  *withinInSteps(record: TokenRecord, ancestors: Ancestors): Steps<TokenRecord> {
    let { scopes, expiresAt } = record;
    const isBounded = !isElevation(record);
    for (const ancestor of ancestors) {
      if (ancestor === undefined) scopes = [];
      else if (isBounded) scopes = yield* this.#common(scopes, ancestor.scopes);
      if (ancestor !== undefined && ancestor.expiresAt.getTime() < expiresAt.getTime())
        expiresAt = ancestor.expiresAt;
    }
    const isWhole = scopes === record.scopes && expiresAt === record.expiresAt;
    return isWhole ? record : { ...record, scopes, expiresAt };
  }

  *#common(scopes: readonly string[], outer: readonly string[]): Steps<readonly string[]> {
    if (scopes === outer) return scopes;
    const known = this.#shared.get(scopes) ?? new WeakMap();
    let common: readonly string[] | undefined = known.get(outer);
    // Not with `??`: the build makes a function of its right side, which cannot yield.
    if (common === undefined) common = yield* this.#commonOf(scopes, outer);
    // Cached records share their frozen lists, so this pair is likely to come again.
    if (Object.isFrozen(scopes) && Object.isFrozen(outer)) {
      this.#shared.set(scopes, known.set(outer, common));
    }
    return common;
  }

  *#commonOf(scopes: readonly string[], outer: readonly string[]): Steps<readonly string[]> {
    const texts = new Set(outer);
    if (scopes.every((scope) => texts.has(scope))) return scopes;
    const allowed = yield* this.#compiled.setInSteps(outer);
    const held = yield* this.#compiled.setInSteps(scopes);
    if ((yield* allowed.missingInSteps(held)).length === 0) return scopes;
    return Object.freeze((yield* held.intersecting(allowed)).toArray());
  }
}

/** The scope of a token that grants the need. */
export interface Grant {
  readonly id: TokenId;
  readonly by: Scope;
}
