import type { RecordReader } from '../records/reader.ts';
import type { ReadRequest, Scope } from '../scope/index.ts';
import { stateOf, type TokenId, type TokenRecord } from '../token.ts';
import type { CompiledScopes } from './compiled-scopes.ts';

/** The ancestors of a token, root first. One that is gone was purged, so it had ended. */
export type Ancestors = readonly (TokenRecord | undefined)[];

type AncestorFault = 'ancestor_revoked' | 'ancestor_expired' | 'ancestor_suspended';

/** What ends a token for good comes first. */
const FAULTS = ['revoked', 'expired', 'suspended'] as const;

/** Why its ancestors refuse a token, whatever is needed; `undefined` if all are live. */
export function ancestorFault(
  { account }: Pick<TokenRecord, 'account'>,
  ancestors: Ancestors,
  now: number,
): AncestorFault | undefined {
  // Ids of imported tokens come again after a purge, perhaps for another account.
  const stateIn = (ancestor: TokenRecord | undefined) =>
    ancestor?.account === account ? stateOf(ancestor, now) : 'revoked';
  if (ancestors.every((ancestor) => stateIn(ancestor) === 'active')) return undefined;
  const states = ancestors.map(stateIn);
  const fault = FAULTS.find((state) => states.includes(state));
  return fault && `ancestor_${fault}`;
}

/** Reads ancestors, and tells what they leave of a token: it is never more than each of them is now. */
export class Lineages {
  readonly #reader: RecordReader;
  readonly #compiled: CompiledScopes;
  /** What two lists have in common, by the one and the other. */
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

  /** Those in the cache; `undefined` unless all are there. */
  cached(ancestors: readonly TokenId[], now: number): Ancestors | undefined {
    return this.#reader.cachedAll(ancestors, now);
  }

  /** The scope of each ancestor that grants what is needed; or else the first one that has none. */
  grantsOf(
    ancestors: Ancestors,
    need: ReadRequest | Scope,
  ): { readonly grants: readonly Grant[] } | { readonly refusing: readonly string[] } {
    const grants: Grant[] = [];
    for (const ancestor of ancestors) {
      const by = ancestor && this.#compiled.grantOf(ancestor.scopes, need);
      if (ancestor === undefined || by === undefined) return { refusing: ancestor?.scopes ?? [] };
      grants.push({ id: ancestor.id, by });
    }
    return { grants };
  }

  /** A token as far as its live ancestors allow it. The record itself if that is all of it. */
  within(record: TokenRecord, ancestors: Ancestors): TokenRecord {
    let { scopes, expiresAt } = record;
    for (const ancestor of ancestors) {
      scopes = ancestor === undefined ? [] : this.#common(scopes, ancestor.scopes);
      if (ancestor !== undefined && ancestor.expiresAt.getTime() < expiresAt.getTime())
        expiresAt = ancestor.expiresAt;
    }
    const isWhole = scopes === record.scopes && expiresAt === record.expiresAt;
    return isWhole ? record : { ...record, scopes, expiresAt };
  }

  #common(scopes: readonly string[], outer: readonly string[]): readonly string[] {
    if (scopes === outer) return scopes;
    const known = this.#shared.get(scopes) ?? new WeakMap();
    const common = known.get(outer) ?? this.#commonOf(scopes, outer);
    // The cache hands out the same frozen lists again.
    if (Object.isFrozen(scopes) && Object.isFrozen(outer)) {
      this.#shared.set(scopes, known.set(outer, common));
    }
    return common;
  }

  #commonOf(scopes: readonly string[], outer: readonly string[]): readonly string[] {
    const allowed = this.#compiled.setOf(outer);
    const held = this.#compiled.setOf(scopes);
    if (allowed.missing(held).length === 0) return scopes;
    return Object.freeze(held.intersection(allowed).toArray());
  }
}

/** The scope of a token that grants what is needed. */
export interface Grant {
  readonly id: TokenId;
  readonly by: Scope;
}
