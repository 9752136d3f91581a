import type { TokenId } from '../../token/record.ts';
import { isApart, type UsageRow } from './usage-rows.ts';

const MAX_KNOWN_TOKENS = 10_000;

/**
 * The rows that a store has written, so that it need not look again whether their scopes have room.
 * Another process may have removed them; then a token may get some scopes too many, which reads add to
 * `other`.
 */
export class KnownRows {
  readonly #scopes = new Map<TokenId, Set<string>>();

  /** The rows that count a scope apart and were not written yet. */
  missing(rows: readonly UsageRow[]): UsageRow[] {
    return rows.filter((row) => isApart(row) && this.#scopes.get(row.id)?.has(row.scope) !== true);
  }

  add(rows: readonly UsageRow[]): void {
    // Evicts all of them: those in use are soon known again.
    if (this.#scopes.size > MAX_KNOWN_TOKENS) this.#scopes.clear();
    for (const { id, scope } of rows) {
      const scopes = this.#scopes.get(id);
      if (scopes === undefined) this.#scopes.set(id, new Set([scope]));
      else scopes.add(scope);
    }
  }

  remove(ids: readonly TokenId[]): void {
    for (const id of ids) this.#scopes.delete(id);
  }
}
