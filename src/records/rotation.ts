import { isTokenError, TokenError } from '../errors.ts';
import type { Events } from '../events.ts';
import { performance } from '../time/timers.ts';
import { expiryAfter, type Token, type TokenRecord } from '../token/record.ts';
import { maskValue, type PresentedValue, proofOf, type Values } from '../values/value.ts';
import type { AccountRecords } from './account-records.ts';
import type { MakeChange } from './change-queue.ts';
import { tokenOf } from './token-view.ts';

/** How to replace the value of a token, or to drop one that waits for its first use. */
export interface RotationInput {
  readonly activate?: 'first-use' | undefined;
  readonly graceSeconds?: number | undefined;
  readonly cancel?: true | undefined;
  readonly endDerived?: boolean | undefined;
  readonly ifVersion?: number | undefined;
}

/** A token after a rotation, with the new value if there is one. */
interface Rotated {
  readonly token: Token;
  readonly record: TokenRecord;
}

/** After this many failures in a row, activations are only tried again after a pause. */
const MAX_FAILURES_IN_A_ROW = 10;
const RETRY_MS = 1000;

/** What {@link Rotations} work with. */
export interface RotationParts {
  readonly records: AccountRecords;
  readonly values: Values;
  readonly events: Events;
  /** Whether the store may be written to after the call that asked for it has returned. */
  readonly canWriteLater: boolean;
}

/**
 * Replaces the values of tokens: immediately, or when the new value is used for the first time.
 *
 * In the second case, a record holds the new value beside the accepted one, which stays valid until then.
 * So a caller that loses the answer, or never uses the new value, still has a value that works.
 */
export class Rotations {
  readonly #parts: RotationParts;
  /** The activations that are being written, by the digest of the value. */
  readonly #activations = new Map<string, Promise<void>>();
  #failures = 0;
  #failedAt = 0;

  constructor(parts: RotationParts) {
    this.#parts = parts;
  }

  /**
   * Gives a token a new value, or drops the one that waits for its first use.
   *
   * @throws {TokenError} `invalid_request`, and as `change` of {@link AccountRecords}
   */
  async rotate(
    account: string,
    valueOrId: string,
    input: RotationInput,
    now: number,
  ): Promise<Rotated> {
    const { cancel, activate, graceSeconds, endDerived } = input;
    const keepsOldValue = activate !== undefined || graceSeconds !== undefined;
    if (cancel === true && (keepsOldValue || endDerived === true)) {
      throw refusedTogether(
        'cancel',
        'cancel makes no new value, so it cannot be given together with activate, graceSeconds or endDerived',
      );
    }
    if (endDerived === true && keepsOldValue) {
      throw refusedTogether(
        'endDerived',
        'endDerived is for a value that is refused immediately, so it cannot be given together with activate or graceSeconds',
      );
    }
    return cancel === true
      ? this.#cancel(account, valueOrId, input, now)
      : this.#replace(account, valueOrId, input, now);
  }

  /**
   * Begins to make a pending value the accepted one, because it was used. Nobody waits for that: if it
   * fails, both values go on working, and the next use tries again.
   */
  activate(presented: PresentedValue, now: number): void {
    const key = Buffer.from(presented.digest).toString('latin1');
    if (!this.#mayTry() || this.#activations.has(key)) return;
    const activation = this.#activate(presented, now);
    this.#activations.set(key, activation);
    void activation.then(() => this.#activations.delete(key));
  }

  /** Whether to write. A store that is down, or read-only for this process, gets no write for each use. */
  #mayTry(): boolean {
    if (!this.#parts.canWriteLater) return false;
    const isPaused = this.#failures >= MAX_FAILURES_IN_A_ROW;
    return !isPaused || performance.now() - this.#failedAt >= RETRY_MS;
  }

  /** Waits for the activations that have begun. */
  async settled(): Promise<void> {
    await Promise.all(this.#activations.values());
  }

  async #replace(
    account: string,
    valueOrId: string,
    { activate, graceSeconds = 0, ifVersion }: RotationInput,
    now: number,
  ): Promise<Rotated> {
    const { records, values, events } = this.#parts;
    let value = '';
    const apply = (record: TokenRecord): Partial<TokenRecord> => {
      if (record.origin?.elevated !== undefined) throw elevationRotated();
      const minted = values.mint(record.id, account);
      value = minted.value;
      const next = { ...minted.stored, graceSeconds };
      return activate === 'first-use' ? { pending: next } : replaced(record, next, now);
    };
    const { after } = await records.change(account, valueOrId, now, { ifVersion }, apply);
    events.rotated(after, now);
    const masked = maskValue({ id: after.id, ...(after.pending ?? after) });
    return { token: { ...tokenOf(after, now), masked, value }, record: after };
  }

  async #cancel(
    account: string,
    valueOrId: string,
    { ifVersion }: RotationInput,
    now: number,
  ): Promise<Rotated> {
    const { records, events } = this.#parts;
    const apply = ({ pending }: TokenRecord) => pending && { pending: undefined };
    const change = await records.change(account, valueOrId, now, { ifVersion }, apply);
    if (change.after !== change.before) events.token('modified', change.after, now);
    return { token: tokenOf(change.after, now), record: change.after };
  }

  /** Never rejects. */
  async #activate(presented: PresentedValue, now: number): Promise<void> {
    const { records, events } = this.#parts;
    try {
      // Queued in this turn, so that a rotation that is requested after the use is applied after it.
      const { after } = await records.changeAny(presented.id, now, activation(presented, now));
      this.#failures = 0;
      events.token('activated', after, now);
    } catch (error) {
      // Not a failure: another process was first, or the value was dropped.
      if (isTokenError(error) && error.code === 'not_found') return;
      this.#failures += 1;
      this.#failedAt = performance.now();
    }
  }
}

function elevationRotated(): TokenError {
  return new TokenError(
    'invalid_request',
    'an elevation cannot be rotated; revoke it, and ask for a new one',
  );
}

function refusedTogether(member: string, message: string): TokenError {
  return new TokenError('invalid_request', message, { member });
}

/** The change that activates a value, if it is still the pending one. */
function activation(presented: PresentedValue, now: number): MakeChange {
  return (stored) => {
    const { pending } = stored ?? {};
    const isWaiting = stored?.revokedAt === undefined && pending !== undefined;
    if (stored === undefined || !isWaiting || proofOf(presented, stored) !== 'pending') {
      throw new TokenError('not_found', 'this value does not wait for its first use');
    }
    const change = replaced(stored, pending, now);
    return { before: stored, after: { ...stored, ...change, version: stored.version + 1 } };
  };
}

/**
 * The members of a record that replace its accepted value. The old value ends with its grace period, or
 * with the token if that is earlier. A value that waits for its first use is dropped.
 */
function replaced(
  { digest, expiresAt }: TokenRecord,
  { graceSeconds, ...next }: NonNullable<TokenRecord['pending']>,
  now: number,
): Partial<TokenRecord> {
  const graceEnds = expiryAfter(now, graceSeconds);
  return {
    box: undefined,
    format: undefined,
    ...next,
    previousDigest: digest,
    previousUntil: graceEnds < expiresAt ? graceEnds : expiresAt,
    rotatedAt: new Date(now),
    pending: undefined,
  };
}
