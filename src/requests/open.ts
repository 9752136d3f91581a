import { ancestryOf } from '../access/narrowing.ts';
import { corruptRequest, TokenError } from '../errors.ts';
import { networkOf } from '../limits/addresses.ts';
import type { RequestRecord } from '../ports/request-store.ts';
import { expiryAfter, isElevation, type TokenRecord } from '../token/record.ts';
import { mintDeviceCode } from '../values/device-code.ts';
import { MAX_REQUESTS_OF_ROOT, readOpen } from './options.ts';
import { POLL_SECONDS } from './pace.ts';
import type { RequestParts } from './parts.ts';
import type { OpenedRequest, OpenInput } from './types.ts';
import { drawUserCode, shownUserCode } from './user-code.ts';

/** Seconds that a token of a request lives by default, and an elevation. */
const TOKEN_SECONDS = 3600;
const ELEVATION_SECONDS = 900;

/** Codes have 34 random bits, and there are at most a million requests: hardly one is taken. */
const MAX_CODE_ATTEMPTS = 5;

/** Opens a request, if there are not too many. */
export async function open(parts: RequestParts, input: OpenInput): Promise<OpenedRequest> {
  const { service, options, tries } = parts;
  const now = service.now();
  const { lifetime } = service.rules;
  const { elevate, ...asked } = await readOpen(input, options, lifetime);
  if (elevate === undefined && !options.anonymous) {
    throw new TokenError(
      'unauthorized_client',
      'only the bearer of a live token can open a request here, to have that token elevated',
    );
  }
  const { client, purpose, address } = asked;
  if (address !== undefined) await tries.take([{ what: 'open', who: networkOf(address) }], now);
  const first = elevate === undefined ? {} : await elevated(parts, elevate, { now, address });
  const most = elevate === undefined ? lifetime.maxSeconds : options.maxElevationSeconds;
  const usual = elevate === undefined ? TOKEN_SECONDS : ELEVATION_SECONDS;
  return insert(parts, now, {
    client,
    scopes: asked.scopes.map(String),
    ttlSeconds: asked.ttlSeconds ?? Math.min(usual, most, lifetime.maxSeconds),
    ...(purpose !== undefined && { purpose }),
    ...(address !== undefined && { address }),
    ...first,
  });
}

/** Stores a request under new codes. */
async function insert(
  { service, options, store, emit }: RequestParts,
  now: number,
  asked: Pick<RequestRecord, 'client' | 'scopes' | 'ttlSeconds'>,
): Promise<OpenedRequest> {
  const { maxPending, lifetimeSeconds, verificationUri } = options;
  const bounds = { maxPending, maxOfRoot: MAX_REQUESTS_OF_ROOT, liveAt: new Date(now) };
  const expiresAt = expiryAfter(now, lifetimeSeconds);
  for (let attempt = 1; attempt <= MAX_CODE_ATTEMPTS; attempt += 1) {
    const { deviceCode, id, digest } = mintDeviceCode(service.ring, service.values.prefix);
    const userCode = drawUserCode();
    const own = { id, userCode, digest, version: 1, state: 'pending' } as const;
    const record = { ...asked, ...own, createdAt: new Date(now), expiresAt };
    if (!(await store.insert(record, bounds))) continue;
    emit('requested', record, now);
    return Object.freeze({
      deviceCode,
      userCode: shownUserCode(userCode),
      verificationUri,
      expiresAt: new Date(expiresAt),
      expiresInSeconds: lifetimeSeconds,
      intervalSeconds: POLL_SECONDS,
    });
  }
  throw service.store.failure(corruptRequest());
}

/**
 * What a request to elevate the token of a value keeps of it. Takes a use of the token.
 *
 * @throws {TokenError} `invalid_token`, `invalid_request`, `quota_exceeded`, `rate_limited`
 */
async function elevated(
  { service, tries }: RequestParts,
  value: string,
  call: { readonly now: number; readonly address: string | undefined },
): Promise<Pick<RequestRecord, 'account' | 'elevates' | 'until'>> {
  const { decider, rotations } = service;
  let live = await decider.requireLive(value, call);
  if (live.record.pending !== undefined) {
    // If this is the first use of a new value, the version is about to change.
    await rotations.settled();
    live = await decider.requireLive(value, call);
  }
  const { record, ancestors, validUntil } = live;
  if (isElevation(record)) {
    throw new TokenError(
      'invalid_request',
      'this token is an elevation, which cannot be elevated; ask with the token that it elevates',
    );
  }
  const [root = record.id] = ancestryOf(record);
  await tries.take([{ what: 'root', who: root }], call.now);
  await live.takeUse();
  const line = [...(ancestors as readonly TokenRecord[]), record];
  return {
    account: record.account,
    elevates: line.map(({ id, version }) => ({ id, version })),
    ...(validUntil !== undefined && { until: validUntil }),
  };
}
