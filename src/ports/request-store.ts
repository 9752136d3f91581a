import { MAX_ANCESTORS, MAX_SCOPES } from '../bounds.ts';
import { isTime } from '../token/answers.ts';
import { isId, type TokenId } from '../token/id.ts';
import { hasOnly, isAccount, isDigest, isPositive, isTextList } from '../token/record.ts';
import type { DoctorOptions, StoreFinding } from './token-store.ts';

/** What became of a request for a token. One that is past its `expiresAt` has expired, whatever it says. */
export const REQUEST_STATES = ['pending', 'approved', 'redeemed', 'denied'] as const;

/** A request for a token as a store holds it. Nothing in it can be presented: neither code opens anything alone. */
export interface RequestRecord {
  /** The primary key: 22 characters of `0-9A-Za-z`; compared byte by byte. */
  readonly id: string;
  /** What a person types: 8 characters of `BCDFGHJKLMNPQRSTVWXZ`, in capitals and without a hyphen. */
  readonly userCode: string;
  /** SHA-256 over the id and the secret of the device code: 32 bytes. */
  readonly digest: Uint8Array;
  /** Counts from 1; each change adds one. */
  readonly version: number;
  /** Only a `pending` one can be decided, and only an `approved` one redeemed. */
  readonly state: (typeof REQUEST_STATES)[number];
  /** What the program calls itself: 1 to 100 characters. */
  readonly client: string;
  /** From where it was opened, if that is known. */
  readonly address?: string | undefined;
  /** The scopes that it asks for; of an approved one, those that the account gives. Canonical, 1 to 4096. */
  readonly scopes: readonly string[];
  /** What the token is for: 1 to 200 characters. */
  readonly purpose?: string | undefined;
  /** How long the token is to live, in seconds. */
  readonly ttlSeconds: number;
  /** The latest expiry of the token, if the value that opened the request ends by itself. */
  readonly until?: Date | undefined;
  /** The account that it belongs to: of an elevation from the start, else since it was decided. */
  readonly account?: string | undefined;
  /** Who decided, as the host names people: 1 to 255 bytes of UTF-8. */
  readonly by?: string | undefined;
  /** Of an elevation: the root first, and the token that is to be elevated last, each with its version. */
  readonly elevates?: readonly { readonly id: TokenId; readonly version: number }[] | undefined;
  /** When it was opened, to the millisecond. */
  readonly createdAt: Date;
  /** The first instant at which it can be neither decided nor redeemed. */
  readonly expiresAt: Date;
}

/** How many requests there may be. One that is past its `expiresAt` counts no more. */
export interface RequestBounds {
  /** In all, from 1 to 2^53 - 1. Those without `elevates` fill at most half of it, rounded down. */
  readonly maxPending: number;
  /** With the same root: the first of `elevates`. */
  readonly maxOfRoot: number;
  /** The instant of the call. */
  readonly liveAt: Date;
}

/** How a request is looked up: by its id or by the code that a person types. */
export type RequestKey =
  | {
      /** The id of the request. */
      readonly id: string;
    }
  | {
      /** The code as it is in the record. */
      readonly userCode: string;
    };

/**
 * Stores requests for tokens, as a {@link TokenStore} stores tokens: each method is one step, the store holds
 * copies, and a promise that resolves means that the change is stored. Holds no rules beyond these methods.
 *
 * `requestContract` of `tokenwright/testing` checks this for any store.
 */
export interface RequestStore {
  /**
   * Stores a new request, unless there are too many. Exact, also with many callers at the same time.
   *
   * @throws {TokenError} `code_taken` if another request has this id or user code, expired or not;
   * `quota_exceeded` with `details`: `quota` is `maxOfRoot` or `maxPending`, and `max` how many there may be,
   * of `maxPending` the half for one without `elevates`; `invalid_request` if it is not a request;
   * `store_unavailable`; `durability_unconfirmed` if it is stored, but not yet durably
   */
  insert(record: RequestRecord, bounds: RequestBounds): Promise<void>;

  /**
   * Reads a request, also an expired one; `undefined` if there is none.
   *
   * @throws {TokenError} `store_unavailable`; `store_corrupt` if something else than a request is stored
   */
  find(key: RequestKey): Promise<RequestRecord | undefined>;

  /**
   * Replaces the request with the id of `next`, only if it has the version `next.version - 1`. Resolves to
   * whether it did: of two calls for one version, one wins. Its `id`, `userCode`, `digest`, `elevates` and
   * `createdAt` never change.
   *
   * @throws {TokenError} `invalid_request` if `next` is not a request; `store_unavailable`;
   * `durability_unconfirmed` if it did, but not yet durably
   */
  replace(next: RequestRecord): Promise<boolean>;

  /**
   * Removes at most `limit` requests whose `expiresAt` is earlier than `before`, and earlier than now by the
   * clock of the store if it has one. Resolves to how many; fewer than `limit` means that none are left. A
   * store that forgets by itself may always resolve to 0.
   *
   * @throws {TokenError} `store_unavailable`
   */
  purge(before: Date, limit: number): Promise<number>;

  /**
   * Looks for faults that an operator can repair: a table that is missing, has another version or lacks an
   * index. Optional.
   *
   * @throws {TokenError} `store_unavailable`
   */
  doctor?(options?: DoctorOptions): Promise<StoreFinding[]>;

  /**
   * Releases what the store itself opened; a client or handle that the host passed in stays open.
   *
   * @throws {TokenError} `store_unavailable`
   */
  close?(): Promise<void>;
}

const MEMBERS: readonly string[] = [
  'id',
  'userCode',
  'digest',
  'version',
  'state',
  'client',
  'address',
  'scopes',
  'purpose',
  'ttlSeconds',
  'until',
  'account',
  'by',
  'elevates',
  'createdAt',
  'expiresAt',
] satisfies (keyof RequestRecord)[];

/** In characters. */
export const USER_CODE_LENGTH = 8;

const USER_CODE = /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/;
const MAX_CLIENT = 100;
const MAX_PURPOSE = 200;

/** Whether a value has the form of a user code, as a record has it. */
export function isUserCode(value: unknown): value is string {
  return typeof value === 'string' && USER_CODE.test(value);
}

/**
 * Whether a store returned a request. A member that only later versions know is refused: a request must never
 * be approved because a part of it was ignored.
 */
export function isRequestRecord(value: unknown): value is RequestRecord {
  if (!hasOnly(value, MEMBERS)) return false;
  const { address, purpose, account, by, elevates, scopes, until } = value;
  return (
    isId(value['id']) &&
    isUserCode(value['userCode']) &&
    isDigest(value['digest']) &&
    isPositive(value['version']) &&
    (REQUEST_STATES as readonly unknown[]).includes(value['state']) &&
    isText(value['client'], MAX_CLIENT) &&
    (address === undefined || typeof address === 'string') &&
    isTextList(scopes) &&
    scopes.length > 0 &&
    scopes.length <= MAX_SCOPES &&
    (purpose === undefined || isText(purpose, MAX_PURPOSE)) &&
    isPositive(value['ttlSeconds']) &&
    (until === undefined || isTime(until)) &&
    (account === undefined || isAccount(account)) &&
    (by === undefined || isAccount(by)) &&
    (elevates === undefined || isElevation(elevates)) &&
    isTime(value['createdAt']) &&
    isTime(value['expiresAt'])
  );
}

function isText(value: unknown, max: number): boolean {
  return typeof value === 'string' && value !== '' && [...value].length <= max;
}

/** The ancestors of a token, and the token itself. */
function isElevation(value: unknown): boolean {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_ANCESTORS + 1) return false;
  return value.every(
    (each) => hasOnly(each, ['id', 'version']) && isId(each['id']) && isPositive(each['version']),
  );
}
