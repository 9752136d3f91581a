import { channel } from 'node:diagnostics_channel';
import type { RefusalReason, TokenId } from './token.ts';

/** What every event has. */
interface Happened {
  /** When, by the clock of the service. */
  readonly at: Date;
}

interface HappenedToToken extends Happened {
  /** Of the token: the public one, which opens nothing. */
  readonly id: TokenId;
  /** Whose token it is. */
  readonly account: string;
}

/**
 * Something that happened: to a token, by its id and never with a value, or to the store.
 *
 * - `issued`, `modified`, `rotated`, `revoked`: the change is made.
 * - `revoked_all`, `purged`: as many tokens as `count` says were.
 * - `verified`: a value was accepted, by the scope `grantedBy`.
 * - `refused`: a value was not. The `id` is known where the value was well-formed, the `account`
 *   where there is such a token, and `needed` with `insufficient_scope`.
 * - `reused`: a value was presented that a rotation had replaced, and whose time of grace, if any,
 *   was over. It was refused, which is told as well; somebody still has it. Only the value that was
 *   replaced last is known: one from before that is only `refused`, as `unknown`.
 * - `store_trouble`: a call of the store failed, as `code` says.
 */
export type TokenEvent =
  | (HappenedToToken & { readonly type: 'issued' | 'modified' | 'rotated' | 'revoked' | 'reused' })
  | (Happened & {
      readonly type: 'revoked_all';
      /** Whose tokens they were. */
      readonly account: string;
      /** How many were revoked. */
      readonly count: number;
    })
  | (Happened & {
      readonly type: 'purged';
      /** How many records were removed. */
      readonly count: number;
    })
  | (HappenedToToken & {
      readonly type: 'verified';
      /** The scope of the token that allows it. */
      readonly grantedBy: string;
    })
  | (Happened & {
      readonly type: 'refused';
      /** Why, as the verdict says. */
      readonly reason: RefusalReason;
      /** Of the token, where the value was well-formed. */
      readonly id?: TokenId;
      /** Whose token it is, where there is one. */
      readonly account?: string;
      /** With `insufficient_scope`: the scope that would have been enough. */
      readonly needed?: string;
    })
  | (Happened & {
      readonly type: 'store_trouble';
      readonly code: 'store_unavailable' | 'store_corrupt' | 'durability_unconfirmed';
    });

/** The kinds of {@link TokenEvent}; each has a channel of `node:diagnostics_channel`. */
export type TokenEventType = TokenEvent['type'];

const CHANNELS = {
  issued: channel('tokenwright:issued'),
  modified: channel('tokenwright:modified'),
  rotated: channel('tokenwright:rotated'),
  revoked: channel('tokenwright:revoked'),
  revoked_all: channel('tokenwright:revoked_all'),
  purged: channel('tokenwright:purged'),
  verified: channel('tokenwright:verified'),
  refused: channel('tokenwright:refused'),
  reused: channel('tokenwright:reused'),
  store_trouble: channel('tokenwright:store_trouble'),
} as const satisfies Record<TokenEventType, unknown>;

/** Calls a listener of the host at once. Its own trouble, also a later one, is not the caller's. */
export function notify<Told>(listener: (event: Told) => unknown, event: Told): void {
  (async () => listener(event))().catch(() => {});
}

/** Tells the listener of a service, and whoever has subscribed to a channel. */
export class Events {
  readonly #listener: ((event: TokenEvent) => void) | undefined;

  constructor(listener: ((event: TokenEvent) => void) | undefined) {
    this.#listener = listener;
  }

  /** Whether there is anybody to tell: where there is none, an event need not even be made. */
  hears(type: TokenEventType): boolean {
    return this.#listener !== undefined || CHANNELS[type].hasSubscribers;
  }

  tell(event: TokenEvent): void {
    if (!this.hears(event.type)) return;
    Object.freeze(event);
    if (this.#listener !== undefined) notify(this.#listener, event);
    CHANNELS[event.type].publish(event);
  }
}
