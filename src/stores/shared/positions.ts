import type { Position } from '../../ports/token-store.ts';

const MAX_POSITIONS = 100;

/**
 * Where the last full batch of `revokeAll` of an account ended. The entries of rows that are revoked
 * stay in an index until the database cleans up. A batch that starts from the front reads all those of
 * earlier batches again, so that a million tokens would take hours.
 *
 * Only saves time: before a store says that no record is left, it has looked from the front.
 */
export class Positions {
  readonly #byAccount = new Map<string, Position>();

  keep(account: string, position: Position): void {
    const [oldest] = this.#byAccount.keys();
    if (oldest !== undefined && this.#byAccount.size >= MAX_POSITIONS) {
      this.#byAccount.delete(oldest);
    }
    this.#byAccount.set(account, position);
  }

  /** Also forgets the position, so that a batch that fails is repeated from the front. */
  take(account: string): Position | undefined {
    const position = this.#byAccount.get(account);
    this.#byAccount.delete(account);
    return position;
  }
}
