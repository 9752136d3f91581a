import { notify } from '../events.ts';
import { CheckedLeaseStore } from '../limits/checked-lease-store.ts';
import { ReportedHealth } from '../ports/store-health.ts';
import { CheckedRequestStore } from './checked-request-store.ts';
import { approve, deny, get } from './decide.ts';
import { open } from './open.ts';
import {
  type ReadRequestsOptions,
  readRequestsOptions,
  type TokenRequestsOptions,
} from './options.ts';
import { Pace } from './pace.ts';
import type { RequestParts } from './parts.ts';
import { poll } from './poll.ts';
import { LocalLeases, Tries } from './tries.ts';
import type {
  ApproveOptions,
  DenyOptions,
  OpenedRequest,
  OpenInput,
  PollOptions,
  PollResult,
  RequestCallOptions,
  TokenRequest,
} from './types.ts';

/**
 * Lets programs ask for a token, and people decide, as the device flow of OAuth does (RFC 8628).
 *
 * A program opens a request and shows its user code. Somebody who acts for an account types it, sees what is
 * asked for, and approves it or a part of it. The program polls with its device code, and gets the token once.
 * With `elevate`, the token is an addition to one that the program has: it ends with any change of that one.
 *
 * All rejections are {@link TokenError}s. Besides the codes that a method lists, any of them can be
 * `store_unavailable`, `store_corrupt` or `invalid_request`.
 *
 * @example
 * const verificationUri = 'https://acme.example/tokens/approve';
 * const requests = new TokenRequests({ tokens, verificationUri, anonymous: true });
 * const asked = { client: 'deploy bot', scopes: ['GET:shop.example/orders'] };
 * const { deviceCode, userCode } = await requests.open(asked);
 * await requests.approve('ada', userCode);
 * const { state, token } = await requests.poll(deviceCode, { client: 'deploy bot' });
 */
export class TokenRequests {
  readonly #parts: RequestParts;

  /**
   * Reads the options once. Opens nothing and does not call the store.
   *
   * @throws {TokenError} `invalid_options`, naming the option and what it should be, never its value
   */
  constructor(options: TokenRequestsOptions) {
    this.#parts = partsOf(readRequestsOptions(options));
  }

  /** Whether anybody may open a request, and not only the bearer of a token. */
  get areAnonymous(): boolean {
    return this.#parts.options.anonymous;
  }

  /**
   * Opens a request.
   *
   * @throws {TokenError} `unauthorized_client` without `elevate`, unless `anonymous` is set; `invalid_token` if
   * the value to be elevated is not live, or not from this address; `rate_limited` after 20 requests of an
   * address or 10 of a root in 10 minutes; `quota_exceeded`; `invalid_scope`, `scopes_required`,
   * `too_many_scopes`, `invalid_ttl`
   * @example
   * const asked = { client: 'deploy bot', scopes: ['POST:shop.example/refunds'], elevate: token.value };
   * const { userCode, verificationUri } = await requests.open(asked);
   */
  open(input: OpenInput): Promise<OpenedRequest> {
    return open(this.#parts, input);
  }

  /**
   * Returns the request of a user code, for somebody who may act for the account.
   *
   * @returns `undefined` if there is none: mistyped, expired, of another account, or the token that it elevates
   * was changed
   * @throws {TokenError} `rate_limited` after ten wrong codes of an account or an address in 10 minutes
   * @example
   * const request = await requests.get('ada', 'WDJB-MJHT');
   * console.log(request?.client, request?.scopes);
   */
  get(
    account: string,
    userCode: string,
    options: RequestCallOptions = {},
  ): Promise<TokenRequest | undefined> {
    return get(this.#parts, account, userCode, options);
  }

  /**
   * Approves a request, or a part of it. The token is issued when the program polls, which has at least a minute
   * for it.
   *
   * @throws {TokenError} `not_found` as `get`, and if `mayApprove` says no; `request_decided`; `scope_unmatched`
   * for scopes that were not asked for, or that the account may not have; `invalid_ttl`, `quota_exceeded`,
   * `rate_limited`
   * @example
   * const scopes = ['GET:shop.example/orders'];
   * await requests.approve('ada', 'WDJB-MJHT', { scopes, ttlSeconds: 900, by: 'ada@acme.example' });
   */
  approve(account: string, userCode: string, options: ApproveOptions = {}): Promise<TokenRequest> {
    return approve(this.#parts, account, userCode, options);
  }

  /**
   * Denies a request.
   *
   * @returns whether there was one
   * @throws {TokenError} `request_decided`, `rate_limited`
   * @example
   * console.log(await requests.deny('ada', 'WDJB-MJHT')); // true
   */
  deny(account: string, userCode: string, options: DenyOptions = {}): Promise<boolean> {
    return deny(this.#parts, account, userCode, options);
  }

  /**
   * Says what became of a request. Returns the token once: an answer that is lost needs a new request.
   *
   * @throws {TokenError} `quota_exceeded` if the account, or the root, has too many tokens: the request stays
   * approved
   * @example
   * const { state, token } = await requests.poll(deviceCode, { client: 'deploy bot' });
   * if (state === 'issued') console.log(token.value);
   */
  poll(deviceCode: string, options: PollOptions): Promise<PollResult> {
    return poll(this.#parts, deviceCode, options);
  }
}

function partsOf(options: ReadRequestsOptions): RequestParts {
  const { service, onEvent } = options;
  const { events, now, store } = service;
  const calls = (part: 'requests' | 'leases') => {
    return { deadlineMs: store.deadlineMs, health: new ReportedHealth(events, now, part), part };
  };
  const leases = service.beside.leases() ?? new LocalLeases();
  return {
    service,
    options,
    store: new CheckedRequestStore(options.store, calls('requests')),
    tries: new Tries(new CheckedLeaseStore(leases, calls('leases'))),
    pace: new Pace(),
    emit: (type, { id, account, by }, at) => {
      if (onEvent === undefined) return;
      const who = { ...(account !== undefined && { account }), ...(by !== undefined && { by }) };
      notify(onEvent, { type, id, ...who, at: new Date(at) });
    },
  };
}
