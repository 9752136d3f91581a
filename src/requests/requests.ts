import { storeUnavailable } from '../errors.ts';
import { notify } from '../events.ts';
import { readAccount } from '../inputs/schemas.ts';
import { CheckedLeaseStore } from '../limits/checked-lease-store.ts';
import { ReportedHealth } from '../ports/store-health.ts';
import { CheckedRequestStore } from './checked-request-store.ts';
import { approve, deny, find, viewOf } from './decide.ts';
import { open } from './open.ts';
import { readRequestsOptions, type TokenRequestsOptions } from './options.ts';
import { Pace } from './pace.ts';
import type { RequestParts } from './parts.ts';
import { poll } from './poll.ts';
import { LocalLeases, Tries } from './tries.ts';
import type {
  ApproveOptions,
  DenyOptions,
  OpenedRequest,
  OpenInput,
  PollResult,
  RequestCallOptions,
  RequestEvent,
  TokenRequest,
} from './types.ts';

/**
 * Lets programs ask for tokens, and people decide, as in the device flow of OAuth (RFC 8628). A program opens a
 * request and shows its user code. A person who acts for an account types it, sees what is asked for, and
 * approves it or a part of it. The program polls with its device code, and gets the token once.
 */
export class TokenRequests {
  readonly #parts: RequestParts;

  /** @throws {TokenError} `invalid_options` */
  constructor(options: TokenRequestsOptions) {
    const read = readRequestsOptions(options);
    const service = read.tokens.parts();
    const { now, events, store } = service;
    const call = (part: 'requests' | 'leases') => ({
      deadlineMs: store.deadlineMs,
      health: new ReportedHealth(events, now, part),
      part,
    });
    const requests = read.store ?? store.requests;
    const leases = store.leases ?? new LocalLeases();
    const emit = (type: RequestEvent['type'], record: { id: string; account?: string; by?: string }, at: number) => {
      const { id, account, by } = record;
      if (read.onEvent !== undefined)
        notify(read.onEvent, { type, id, ...(account && { account }), ...(by && { by }), at: new Date(at) });
    };
    this.#parts = {
      service,
      options: read,
      store: new CheckedRequestStore(requests, call('requests')),
      tries: new Tries(new CheckedLeaseStore(leases, call('leases'))),
      pace: new Pace(),
      readOpen: (input) => input as OpenInput,
      mayApprove: async (found, account, by) => {
        if (read.mayApprove === undefined) return true;
        const view = await viewOf(this.#parts, found, account);
        try {
          return (await read.mayApprove(view, { account, by })) === true;
        } catch {
          throw storeUnavailable('unknown', 'requests');
        }
      },
      emit,
    } as RequestParts;
  }

  /** Opens a request. */
  open(input: OpenInput): Promise<OpenedRequest> {
    return open(this.#parts, input);
  }

  /** Returns the request of a user code, for the person who is to decide. */
  async get(account: string, userCode: string, options: RequestCallOptions = {}): Promise<TokenRequest | undefined> {
    const owner = readAccount(account);
    const found = await find(this.#parts, owner, userCode, options, this.#parts.service.now());
    return found && viewOf(this.#parts, found, owner);
  }

  /** Approves a request, or a part of it. */
  approve(account: string, userCode: string, options: ApproveOptions = {}): Promise<TokenRequest> {
    return approve(this.#parts, readAccount(account), userCode, options);
  }

  /** Denies a request. Resolves to whether there was one. */
  deny(account: string, userCode: string, options: DenyOptions = {}): Promise<boolean> {
    return deny(this.#parts, readAccount(account), userCode, options);
  }

  /** Says what became of a request; returns the token once it is approved. */
  poll(deviceCode: string, { client }: { readonly client: string }): Promise<PollResult> {
    return poll(this.#parts, deviceCode, client);
  }
}
