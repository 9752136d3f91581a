import { corruptStore, TokenError } from '../errors.ts';
import type { AccountQuota } from '../store.ts';
import { isAccepted, isExpired, type TokenId, type TokenRecord } from '../token.ts';
import { newId, proofOf, readId, type Values } from '../values/value.ts';
import { ChangeQueue, type MakeChange, type RecordChange, turnAfter } from './change-queue.ts';
import type { CheckedStore } from './checked-store.ts';
import type { RecordReader } from './reader.ts';

/** A 131-bit id is never drawn twice: if several are taken, the store does not tell the truth. */
const MAX_ID_ATTEMPTS = 5;

/** The records of tokens, as the accounts that own them may read and change them. */
export class AccountRecords {
  readonly #store: CheckedStore;
  readonly #reader: RecordReader;
  readonly #values: Values;
  readonly #queue: ChangeQueue;

  constructor(store: CheckedStore, reader: RecordReader, values: Values) {
    this.#store = store;
    this.#reader = reader;
    this.#values = values;
    this.#queue = new ChangeQueue(store, reader);
  }

  /** The record that an account means; `undefined` for one that it may not know about. */
  async find(account: string, valueOrId: unknown, now: number): Promise<TokenRecord | undefined> {
    const { id, isMeant } = this.#addressed(account, valueOrId, now);
    const record = id && (await this.#reader.read(id, now));
    return record !== undefined && isMeant(record) ? record : undefined;
  }

  /** Stores a record under a new id, with a new value; `undefined` if that would exceed the quota. */
  async insert(
    fields: Omit<TokenRecord, 'id' | 'prefix' | 'kid' | 'digest'>,
    quota: AccountQuota,
  ): Promise<{ readonly record: TokenRecord; readonly value: string } | undefined> {
    for (let attempts = 1; attempts <= MAX_ID_ATTEMPTS; attempts++) {
      const id = newId();
      const { value, stored } = this.#values.mint(id, fields.account);
      const record: TokenRecord = { id, ...fields, ...stored };
      const insertion = await this.#store.insert(record, quota);
      if (insertion === 'inserted') return { record, value };
      if (insertion === 'quota_exceeded') return undefined;
    }
    throw this.#store.failure(corruptStore());
  }

  /**
   * Applies a change to the stored version, and again to a later one if another change came first.
   *
   * @throws {TokenError} `not_found`, `token_expired`, `version_conflict`, and whatever `apply` throws
   */
  async change(
    account: string,
    valueOrId: string,
    now: number,
    {
      ifVersion,
      dryRun,
    }: { readonly ifVersion?: number | undefined; readonly dryRun?: boolean | undefined },
    apply: (record: TokenRecord) => Partial<TokenRecord>,
  ): Promise<RecordChange> {
    const { id, isMeant } = this.#addressed(account, valueOrId, now);
    const make = (stored: TokenRecord | undefined): RecordChange => {
      const before = stored !== undefined && isMeant(stored) ? stored : undefined;
      if (before === undefined) throw new TokenError('not_found', 'this account has no such token');
      if (isExpired(before, now)) {
        throw new TokenError('token_expired', 'the token has expired; issue a new one');
      }
      if (ifVersion !== undefined && before.version !== ifVersion) throw versionConflict(before);
      return { before, after: { ...before, ...apply(before), version: before.version + 1 } };
    };
    if (id === undefined) return make(undefined);
    return dryRun === true ? this.#tryOut(id, now, make) : this.#queue.change(id, now, make);
  }

  /** Makes a change without writing it. */
  async #tryOut(id: TokenId, now: number, make: MakeChange): Promise<RecordChange> {
    const stored = await this.#reader.read(id, now);
    await turnAfter(stored);
    const change = make(stored);
    await turnAfter(change.after);
    return change;
  }

  /** What a caller addresses by a value or an id. */
  #addressed(
    account: string,
    valueOrId: unknown,
    now: number,
  ): { readonly id: TokenId | undefined; readonly isMeant: (record: TokenRecord) => boolean } {
    if (valueOrId === undefined) {
      throw new TokenError('invalid_request', 'give the account first, and then the value or id');
    }
    const presented = this.#values.read(valueOrId);
    return {
      id: presented?.id ?? readId(valueOrId),
      isMeant: (record) =>
        record.account === account &&
        record.revokedAt === undefined &&
        (presented === undefined || isAccepted(record, proofOf(presented, record), now)),
    };
  }

  /** Ends the reads; the store stays open. */
  close(): Promise<void> {
    return this.#reader.close();
  }
}

/** The token has another version than the caller expects. */
export function versionConflict({ version }: TokenRecord): TokenError {
  return new TokenError('version_conflict', `the token has version ${version} now; read it again`, {
    version,
  });
}
