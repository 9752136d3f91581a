import type { RequestRecord } from '../ports/request-store.ts';
import type { IssuedToken, TokenId } from '../token/record.ts';

/** A request for a token, as the person sees it who decides. */
export interface TokenRequest {
  /** The public handle, for logs and events; it opens nothing. */
  readonly id: string;
  /** `pending` until somebody decides; `redeemed` once the token was issued. */
  readonly state: RequestRecord['state'];
  /** What the program calls itself. Anybody may claim any name: show it as text, and as a claim. */
  readonly client: string;
  /** From where it was opened, if that is known. */
  readonly address?: string;
  /**
   * What the token would hold: of the scopes that were asked for, those that this account may have, expanded by
   * its catalog. Empty if it may have none of them. Of an approved request, what was approved.
   */
  readonly scopes: readonly string[];
  /** Of an elevation: those of `scopes` that the token which asks does not hold. */
  readonly beyond?: readonly string[];
  /** What the token is for, as the program says. */
  readonly purpose?: string;
  /** How long the token would live, in seconds. */
  readonly ttlSeconds: number;
  /** Of an elevation: the token that asks for more. */
  readonly elevates?: TokenId;
  /** When it was opened. */
  readonly createdAt: Date;
  /** The first instant at which it can no longer be decided or redeemed. */
  readonly expiresAt: Date;
}

/** A request that was opened, with its two codes. */
export interface OpenedRequest {
  /** For the program that asks, and only for it: it polls with this. */
  readonly deviceCode: string;
  /** For the person who decides, such as `WDJB-MJHT`. Case, spaces and hyphens do not count. */
  readonly userCode: string;
  /** Where the person types it: the option of the same name. */
  readonly verificationUri: string;
  /** The first instant at which the request can no longer be decided. */
  readonly expiresAt: Date;
  /** How long that is from now, in seconds. */
  readonly expiresInSeconds: number;
  /** How long the program waits between two polls, in seconds. */
  readonly intervalSeconds: number;
}

/** What a program asks for. */
export interface OpenInput {
  /** What the program calls itself: 1 to 100 characters, no control characters. */
  readonly client: string;
  /** 1 to 256 scopes, or texts that parse as scopes. */
  readonly scopes: readonly string[];
  /** What the token is for: 1 to 200 characters, no control characters. */
  readonly purpose?: string | undefined;
  /**
   * Whole seconds. For an elevation at most `maxElevationSeconds`, else at most the longest lifetime of the
   * service. @default 3600, and 900 for an elevation
   */
  readonly ttlSeconds?: number | undefined;
  /** The value of a live token that is to be able to do more. */
  readonly elevate?: string | undefined;
  /** From where the call comes. */
  readonly address?: string | undefined;
}

/** From where a call about a request comes. */
export interface RequestCallOptions {
  /** The address of the caller, whose wrong codes are then counted, too. */
  readonly address?: string | undefined;
}

/** Who denies a request. */
export interface DenyOptions extends RequestCallOptions {
  /** Who decides, as the host names people: 1 to 255 bytes of UTF-8. */
  readonly by?: string | undefined;
}

/** What is approved of a request, and who approves it. */
export interface ApproveOptions extends DenyOptions {
  /** Some of the scopes that were asked for, or all that the page has shown. @default all of them */
  readonly scopes?: readonly string[] | undefined;
  /** Whole seconds, at most those of the request. @default those of the request */
  readonly ttlSeconds?: number | undefined;
}

/** Who polls. */
export interface PollOptions {
  /** What the program called itself when it opened the request. */
  readonly client: string;
}

/** What a program learns when it polls. */
export type PollResult =
  | {
      /**
       * - `pending`: nobody has decided yet
       * - `slow_down`: as `pending`, but the poll came early; wait 5 seconds more from now on
       * - `denied`, `expired`: nothing will come of it
       * - `unknown`: no such code, another client, or the token was issued before; also if the account may no
       *   longer have what was approved, or the token to be elevated was changed
       */
      readonly state: 'pending' | 'slow_down' | 'denied' | 'expired' | 'unknown';
      /** Only of `issued`. */
      readonly token?: undefined;
    }
  | {
      readonly state: 'issued';
      /** With its value, this once. */
      readonly token: IssuedToken;
    };

/**
 * Something that happened to a request, without its codes. `account` and `by` are present as far as they are
 * known.
 */
export interface RequestEvent {
  /** What happened. */
  readonly type: 'requested' | 'approved' | 'denied';
  /** The public id of the request. */
  readonly id: string;
  /** The account that it belongs to. */
  readonly account?: string;
  /** Who decided. */
  readonly by?: string;
  /** The time, by the clock of the service. */
  readonly at: Date;
}
