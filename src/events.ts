import { channel } from 'node:diagnostics_channel';
import type { StoreFailure, StorePart, StoreReason } from './errors.ts';
import type { RequestReason } from './scope/index.ts';
import type { RefusalReason, TokenId, TokenRecord, ValueFault } from './token/record.ts';

interface BaseEvent {
  /** The time, by the clock of the service. */
  readonly at: Date;
  /** Present if it happened in a transaction of the host, which may still be rolled back. */
  readonly inTransaction?: true;
}

interface TokenScopedEvent extends BaseEvent {
  /** The public id of the token; it opens nothing. */
  readonly id: TokenId;
  /** The account of the token. */
  readonly account: string;
}

/**
 * Something that happened to a token, identified by its id and never with its value, or to the store.
 *
 * - `issued`, `modified`, `rotated`, `revoked`: the change was made. `issued` has the `parent` of a token
 *   that was derived, the `format` of one that was imported, `createdBy` if somebody is known to have made it,
 *   and the `request` that was approved. `rotated` has `pending` if the new value
 *   waits for its first use; dropping that value is `modified`.
 * - `activated`: the new value was used for the first time, and the old one has its grace period from now.
 *   Emitted once, by the process that wrote it; by none if the answer of the store was lost.
 * - `suspended`, `resumed`: follows the `modified` of a change that did this.
 * - `revoked_all`, `purged`: `count` tokens were revoked or removed. `purged` has `early` if a quota of
 *   ended tokens had the oldest of them removed.
 * - `revealed`: one call showed the account the values of `count` tokens. Not emitted for the values
 *   that `issue` and `rotate` return.
 * - `verified`: a value was accepted, by the scope `grantedBy`.
 * - `refused`: a value was rejected. `id` is present if the value was well-formed, `account` if the
 *   token exists, and `needed` with `insufficient_scope` and `ancestor_insufficient`. With `malformed`,
 *   `detail` says why: `unknown_key` for each request means that this process has other keys than the one
 *   that issued the tokens. `introspect` emits it for malformed values only.
 * - `reused`: somebody presented a value that a rotation had replaced, after its grace period. The value
 *   was rejected, so a `refused` event follows. Only the last replaced value is recognized; an older
 *   one is just `refused`, as `unknown`.
 * - `store_trouble`: a call of the token store, the usage store or the lease store failed with `code`.
 * - `clock_ahead`: the upkeep removes nothing, because the clock of this process is more than a day ahead of
 *   all that the store knows. Emitted once; the upkeep tries again each hour and goes on by itself.
 * - `usage_dropped`: `count` counts of usage (each of one token and one scope) were never written, because
 *   the usage store was down for long or when the service was closed.
 *
 * `onEvent` and the channel each get an event object and a `Date` of their own. An exception in
 * `onEvent` is ignored. An exception in a subscriber of a channel ends the process, because Node.js
 * throws it again as an uncaught exception: wrap the body of each subscriber in `try` and `catch`.
 */
export type TokenEvent =
  | (TokenScopedEvent & {
      readonly type: 'modified' | 'suspended' | 'resumed' | 'activated' | 'revoked' | 'reused';
    })
  | (TokenScopedEvent & {
      readonly type: 'issued';
      /** The token that it was derived from. */
      readonly parent?: TokenId;
      /** The format of a value that was imported. */
      readonly format?: string;
      /** Who made it, as the host names people. */
      readonly createdBy?: string;
      /** The id of the request that it was asked for with. */
      readonly request?: string;
    })
  | (TokenScopedEvent & {
      readonly type: 'rotated';
      /** Present if the new value waits for its first use. */
      readonly pending?: true;
    })
  | (BaseEvent & {
      readonly type: 'revoked_all';
      /** The account of the tokens. */
      readonly account: string;
      /** How many were revoked. */
      readonly count: number;
    })
  | (BaseEvent & {
      readonly type: 'revealed';
      /** The account that saw them. */
      readonly account: string;
      /** How many values were shown. */
      readonly count: number;
    })
  | (BaseEvent & {
      readonly type: 'purged';
      /** How many records were removed. */
      readonly count: number;
      /** Present if they were removed because the account, or the root, had too many ended ones. */
      readonly early?: true;
    })
  | (BaseEvent & { readonly type: 'clock_ahead' })
  | (TokenScopedEvent & {
      readonly type: 'verified';
      /** The scope of the token that allows it. */
      readonly grantedBy: string;
    })
  | (BaseEvent & {
      readonly type: 'refused';
      /** The reason in the verdict. */
      readonly reason: RefusalReason;
      /** The id of the token, if the value was well-formed. */
      readonly id?: TokenId;
      /** The account, if the token exists. */
      readonly account?: string;
      /** With `insufficient_scope`: the scope that would have been enough. */
      readonly needed?: string;
      /** With `malformed` and `ambiguous_request`: why, as in the verdict. */
      readonly detail?: RequestReason | ValueFault;
    })
  | (BaseEvent & {
      readonly type: 'store_trouble';
      readonly code: 'store_unavailable' | 'store_corrupt' | 'durability_unconfirmed';
      /** Why, as far as it is known; one of the reasons in `details` of the error. */
      readonly reason?: StoreReason;
      /**
       * Absent for the token store. A failure of the usage store refuses no request. A failure of the
       * lease store affects tokens with limited uses: they are not accepted without it. If `watch` fails,
       * caches notice what other processes change after `maxStaleMs` only.
       */
      readonly store?: StorePart;
    })
  | (BaseEvent & {
      readonly type: 'store_recovered';
      /** Why its first call failed. */
      readonly reason: StoreReason;
      /** From that call to this answer, in milliseconds. */
      readonly durationMs: number;
      /** How many calls have failed in between. */
      readonly failed: number;
      /** As in `store_trouble`. */
      readonly store?: StorePart;
    })
  | (BaseEvent & {
      readonly type: 'usage_dropped';
      /** How many pairs of a token and a scope lost their count. */
      readonly count: number;
    });

/** The types of events about one token that need no more than its id and its account. */
type TokenChange = Exclude<
  Extract<TokenEvent, TokenScopedEvent>['type'],
  'issued' | 'rotated' | 'verified'
>;

/** An event that does not happen at the time of a call, but when it is emitted. */
type OwnEvent = DistributiveOmit<
  Extract<
    TokenEvent,
    { type: 'store_trouble' | 'store_recovered' | 'usage_dropped' | 'clock_ahead' }
  >,
  'at'
>;

type DistributiveOmit<Union, Member extends PropertyKey> = Union extends unknown
  ? Omit<Union, Member>
  : never;

/** The kinds of {@link TokenEvent}; each has a channel of `node:diagnostics_channel`. */
export type TokenEventType = TokenEvent['type'];

const CHANNELS = {
  issued: channel('tokenwright:issued'),
  modified: channel('tokenwright:modified'),
  suspended: channel('tokenwright:suspended'),
  resumed: channel('tokenwright:resumed'),
  rotated: channel('tokenwright:rotated'),
  activated: channel('tokenwright:activated'),
  revoked: channel('tokenwright:revoked'),
  revoked_all: channel('tokenwright:revoked_all'),
  revealed: channel('tokenwright:revealed'),
  purged: channel('tokenwright:purged'),
  verified: channel('tokenwright:verified'),
  refused: channel('tokenwright:refused'),
  reused: channel('tokenwright:reused'),
  store_trouble: channel('tokenwright:store_trouble'),
  store_recovered: channel('tokenwright:store_recovered'),
  clock_ahead: channel('tokenwright:clock_ahead'),
  usage_dropped: channel('tokenwright:usage_dropped'),
} as const satisfies Record<TokenEventType, unknown>;

/**
 * Calls a listener of the host immediately, without waiting for it. Ignores its exceptions and
 * rejections.
 */
export function notify<Event>(listener: (event: Event) => unknown, event: Event): void {
  (async () => listener(event))().catch(() => {});
}

/** What is known about a value that was refused. */
export interface RefusedValue {
  readonly reason: RefusalReason;
  readonly id?: TokenId | undefined;
  readonly account?: string | undefined;
  readonly needed?: string | undefined;
  readonly detail?: RequestReason | ValueFault | undefined;
}

type ChangedRecord = Pick<TokenRecord, 'id' | 'account' | 'suspendedAt'>;

/** A record before and after a change. */
interface Changed {
  readonly before: ChangedRecord;
  readonly after: ChangedRecord;
}

/** Emits the events of a service: to its listener, and to the subscribers of the channels. */
export class Events {
  readonly #listener: ((event: TokenEvent) => void) | undefined;
  /** This instant, in milliseconds since 1970. */
  readonly #clock: () => number;
  readonly #marks: Pick<TokenEvent, 'inTransaction'>;

  constructor(
    listener: ((event: TokenEvent) => void) | undefined,
    clock: () => number,
    marks: Pick<TokenEvent, 'inTransaction'> = {},
  ) {
    this.#listener = listener;
    this.#clock = clock;
    this.#marks = marks;
  }

  /** The same for a service in a transaction of the host. */
  inTransaction(): Events {
    return new Events(this.#listener, this.#clock, { inTransaction: true });
  }

  /** Emits what happened to a token. */
  token(
    type: TokenChange,
    { id, account }: Pick<TokenRecord, 'id' | 'account'>,
    now: number,
  ): void {
    if (this.#isHeard(type)) this.#emit({ type, id, account, at: new Date(now) });
  }

  /** Emits that a token was issued, or derived from another one. */
  issued(
    { id, account, ancestors, format, origin }: TokenRecord,
    now: number,
    request?: string,
  ): void {
    if (!this.#isHeard('issued')) return;
    const parent = ancestors?.at(-1);
    const createdBy = origin?.createdBy;
    const from = {
      ...(parent !== undefined && { parent }),
      ...(format !== undefined && { format }),
      ...(createdBy !== undefined && { createdBy }),
      ...(request !== undefined && { request }),
    };
    this.#emit({ type: 'issued', id, account, ...from, at: new Date(now) });
  }

  /** Emits that a token has a new value, or one that waits for its first use. */
  rotated({ id, account, pending }: TokenRecord, now: number): void {
    const waits = pending !== undefined && ({ pending: true } as const);
    this.#emit({ type: 'rotated', id, account, ...waits, at: new Date(now) });
  }

  /** Emits that a token was modified, and whether that suspended or resumed it. */
  changed({ before, after }: Changed, now: number): void {
    this.token('modified', after, now);
    const [was, is] = [before, after].map(({ suspendedAt }) => suspendedAt !== undefined);
    if (was !== is) this.token(is ? 'suspended' : 'resumed', after, now);
  }

  /** Emits that all tokens of an account were revoked. */
  revokedAll(account: string, count: number, now: number): void {
    this.#emit({ type: 'revoked_all', account, count, at: new Date(now) });
  }

  /** Emits that values were shown. */
  revealed(account: string, count: number, now: number): void {
    this.#emit({ type: 'revealed', account, count, at: new Date(now) });
  }

  /** Emits that records were removed, or that a quota had them removed early. */
  purged(count: number, now: number, early = false): void {
    const why = early && ({ early: true } as const);
    this.#emit({ type: 'purged', count, ...why, at: new Date(now) });
  }

  /** Emits that a value was accepted. */
  verified(
    { id, account }: Pick<TokenRecord, 'id' | 'account'>,
    grantedBy: string,
    now: number,
  ): void {
    if (!this.#isHeard('verified')) return;
    this.#emit({ type: 'verified', id, account, grantedBy, at: new Date(now) });
  }

  /** Emits that a value was refused. */
  refused({ reason, id, account, needed, detail }: RefusedValue, now: number): void {
    if (!this.#isHeard('refused')) return;
    this.#emit({
      type: 'refused',
      reason,
      at: new Date(now),
      ...(id !== undefined && { id }),
      ...(account !== undefined && { account }),
      ...(needed !== undefined && { needed }),
      ...(detail !== undefined && { detail }),
    });
  }

  /** Emits that a call of the store failed, or one of another store. */
  storeTrouble({ code, details }: StoreFailure, store?: StorePart): void {
    const reason = details?.reason !== undefined && { reason: details.reason };
    this.#emitNow({
      type: 'store_trouble',
      code,
      ...reason,
      ...(store !== undefined && { store }),
    });
  }

  /** Emits that a store answers again. */
  storeRecovered(
    outage: { readonly reason: StoreReason; readonly durationMs: number; readonly failed: number },
    store?: StorePart,
  ): void {
    this.#emitNow({ type: 'store_recovered', ...outage, ...(store !== undefined && { store }) });
  }

  /** Emits that the clock of this process is not believed. */
  clockAhead(): void {
    this.#emitNow({ type: 'clock_ahead' });
  }

  /** Emits that counts of usage were lost. */
  usageDropped(count: number): void {
    this.#emitNow({ type: 'usage_dropped', count });
  }

  /** Emits what happened now, not at the time of a call. */
  #emitNow(event: OwnEvent): void {
    if (!this.#isHeard(event.type)) return;
    try {
      this.#emit({ ...event, at: new Date(this.#clock()) });
    } catch {
      // The clock failed. The failure of the store is the one to throw.
    }
  }

  /** Hot paths make no event that nobody listens for. */
  #isHeard(type: TokenEventType): boolean {
    return this.#listener !== undefined || CHANNELS[type].hasSubscribers;
  }

  #emit(event: TokenEvent): void {
    const channel = CHANNELS[event.type];
    if (this.#listener !== undefined) notify(this.#listener, this.#frozenCopy(event));
    if (channel.hasSubscribers) channel.publish(this.#frozenCopy(event));
  }

  /** A Date cannot be frozen: a listener that changes it must not change it for others. */
  #frozenCopy(event: TokenEvent): TokenEvent {
    return Object.freeze({ ...event, at: new Date(event.at), ...this.#marks });
  }
}
