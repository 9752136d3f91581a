import { corruptStore, TokenError } from '../errors.ts';
import { kindOf } from '../text/wording.ts';
import {
  isAccepted,
  isExpired,
  isListed,
  type ListedState,
  type TokenId,
  type TokenRecord,
} from '../token/record.ts';
import { newId, proofOf, readId, type Values } from '../values/value.ts';
import { ChangeQueue, type MakeChange, type RecordChange, yieldIfLong } from './change-queue.ts';
import type { CheckedStore } from './checked-store.ts';
import { type ListedRecords, type Listing, readListing } from './listing.ts';
import type { RecordReader } from './reader.ts';

/** A 131-bit id is never drawn twice: a store that calls so many ids taken is broken. */
const MAX_ID_ATTEMPTS = 5;

/** A record without its id and its value. */
export type NewRecord = Omit<TokenRecord, 'id' | 'prefix' | 'kid' | 'digest'>;

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

  /**
   * The record of an account's value or id; `undefined` if the account has no such token, or if it is in
   * another state. Without a state, finds it in any state but `revoked`.
   */
  async find(
    account: string,
    valueOrId: unknown,
    now: number,
    state?: ListedState,
  ): Promise<TokenRecord | undefined> {
    const { id, isTarget } = this.#targetOf(account, valueOrId, now);
    if (id === undefined) await this.#refuseSwapped(account, valueOrId, now);
    const record = id && (await this.#reader.read(id, now));
    if (record === undefined || !isTarget(record)) return undefined;
    const isShown = state === undefined ? isUnrevoked(record) : isListed(record, state, now);
    return isShown ? record : undefined;
  }

  /**
   * Reads a page of an account's list.
   *
   * @throws {TokenError} as {@link readListing}
   */
  page(listing: Listing, now: number): Promise<ListedRecords> {
    return readListing(this.#store, this.#values.ring, listing, now);
  }

  /** Stores a record under a new id, with a new value. */
  async insert(
    fields: NewRecord,
  ): Promise<{ readonly record: TokenRecord; readonly value: string }> {
    for (let attempts = 1; attempts <= MAX_ID_ATTEMPTS; attempts++) {
      const id = newId();
      const { value, stored } = this.#values.mint(id, fields.account);
      const record: TokenRecord = { id, ...fields, ...stored };
      if ((await this.#store.insert(record)) === 'inserted') return { record, value };
    }
    throw this.#store.failure(corruptStore());
  }

  /**
   * Applies a change to the stored version, and again to a later one if another change came first. If
   * `apply` returns `undefined`, there is nothing to change: `after` is `before` then.
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
    apply: (record: TokenRecord) => Applied | Promise<Applied>,
  ): Promise<RecordChange> {
    const { id, isTarget } = this.#targetOf(account, valueOrId, now);
    const make: MakeChange = (stored) => {
      const isFound = stored !== undefined && isTarget(stored) && isUnrevoked(stored);
      const before = isFound ? stored : undefined;
      if (before === undefined) throw new TokenError('not_found', 'this account has no such token');
      if (isExpired(before, now)) {
        throw new TokenError('token_expired', 'the token has expired; issue a new one');
      }
      if (ifVersion !== undefined && before.version !== ifVersion) throw versionConflict(before);
      const change = apply(before);
      return change instanceof Promise ? change.then(changeOf(before)) : changeOf(before)(change);
    };
    if (id === undefined) {
      await this.#refuseSwapped(account, valueOrId, now);
      return make(undefined);
    }
    return dryRun === true ? this.#dryRun(id, now, make) : this.#queue.change(id, now, make);
  }

  /**
   * Revokes a token, with `ifVersion` only in that version.
   *
   * @returns the token that this call revoked; `undefined` if the account has no such token
   * @throws {TokenError} `version_conflict`
   */
  async revoke(
    account: string,
    valueOrId: unknown,
    now: number,
    ifVersion: number | undefined,
  ): Promise<Pick<TokenRecord, 'id' | 'account'> | undefined> {
    const until = this.#store.deadline();
    const id = readId(valueOrId) ?? (await this.find(account, valueOrId, now))?.id;
    if (id === undefined) return undefined;
    const token = { id, account };
    if (await this.#store.revoke(token, new Date(now), ifVersion, until)) return token;
    if (ifVersion === undefined) return undefined;
    const record = await this.find(account, id, now);
    if (record === undefined) return undefined;
    throw versionConflict(record);
  }

  /** Revokes at most `limit` tokens of an account. Resolves to how many. */
  revokeSome(account: string, now: number, limit: number): Promise<number> {
    return this.#store.revokeAll(account, new Date(now), limit);
  }

  /**
   * Changes the record of an id, of any account.
   *
   * @throws {TokenError} whatever `make` throws; `version_conflict`
   */
  changeAny(id: TokenId, now: number, make: MakeChange): Promise<RecordChange> {
    return this.#queue.change(id, now, make);
  }

  /** Makes a change without writing it. */
  async #dryRun(id: TokenId, now: number, make: MakeChange): Promise<RecordChange> {
    const stored = await this.#reader.read(id, now);
    await yieldIfLong(stored);
    const change = await make(stored);
    await yieldIfLong(change.after);
    return change;
  }

  /**
   * The id in a value or an id, and whether the record with this id is the token that the caller means.
   */
  #targetOf(
    account: string,
    valueOrId: unknown,
    now: number,
  ): { readonly id: TokenId | undefined; readonly isTarget: (record: TokenRecord) => boolean } {
    if (typeof valueOrId !== 'string') throw valueOrIdRequired(valueOrId);
    // An id may have the form of a value of another system.
    const id = readId(valueOrId);
    const read = id === undefined ? this.#values.read(valueOrId) : undefined;
    const presented = typeof read === 'string' ? undefined : read;
    return {
      id: presented?.id ?? id,
      isTarget: (record) =>
        record.account === account &&
        (presented === undefined || isAccepted(record, proofOf(presented, record), now)),
    };
  }

  /**
   * Refuses a call with the account in the place of the token, and the token in the place of the account. An
   * account may look like an id, so the record decides.
   *
   * @throws {TokenError} `invalid_request`
   */
  async #refuseSwapped(account: string, valueOrId: unknown, now: number): Promise<void> {
    const id = readId(account) ?? this.#values.idIn(account);
    const record = id && (await this.#reader.read(id, now));
    if (record?.account === valueOrId)
      throw new TokenError('invalid_request', `${ORDER}; they are swapped`, { member: 'account' });
  }

  /** Ends the reads and closes the store. */
  async close(): Promise<void> {
    await this.#reader.close();
    await this.#store.close();
  }
}

const ORDER = 'give the account first, and then the value or id';

function valueOrIdRequired(given: unknown): TokenError {
  if (given === undefined) return new TokenError('invalid_request', ORDER, { member: 'valueOrId' });
  const hint = kindOf(given) === 'an object' ? ': give token.id' : '';
  return new TokenError('invalid_request', `${ORDER}, a text; got ${kindOf(given)}${hint}`, {
    member: 'valueOrId',
  });
}

/** What a change sets; `undefined` if there is nothing to change. */
type Applied = Partial<TokenRecord> | undefined;

function changeOf(before: TokenRecord): (change: Applied) => RecordChange {
  return (change) => {
    const version = before.version + 1;
    return { before, after: change === undefined ? before : { ...before, ...change, version } };
  };
}

/** Only a record that is not revoked may change, and is found without a state. */
function isUnrevoked({ revokedAt }: TokenRecord): boolean {
  return revokedAt === undefined;
}

/** The error for a token that has another version than the caller expects. */
function versionConflict({ version }: TokenRecord): TokenError {
  return new TokenError('version_conflict', `the token has version ${version} now; read it again`, {
    version,
  });
}
