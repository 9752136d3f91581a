import type { Need } from '../access/need.ts';
import { isElevation } from '../access/lineage.ts';
import { TokenError } from '../errors.ts';
import type { RequestRecord } from '../ports/request-store.ts';
import { corruptRequests } from '../errors.ts';
import { mintDeviceCode } from '../values/device-code.ts';
import { expiryAfter, type TokenRecord } from '../token/record.ts';
import { POLL_SECONDS } from './pace.ts';
import type { RequestParts } from './parts.ts';
import type { OpenedRequest, OpenInput } from './types.ts';
import { drawUserCode, shownUserCode } from './user-code.ts';

void (0 as unknown as Need);

/** Seconds that an elevation lives unless the call says otherwise, and any other token. */
const ELEVATION_SECONDS = 900;
const TOKEN_SECONDS = 3600;
const MAX_CODE_ATTEMPTS = 5;

/** Opens a request, if there are not too many. */
export async function open(parts: RequestParts, input: OpenInput): Promise<OpenedRequest> {
  const { service, options, store, tries } = parts;
  const now = service.now();
  const { elevate, address, ...asked } = parts.readOpen(input);
  if (elevate === undefined && !options.anonymous) {
    throw new TokenError(
      'unauthorized_client',
      'only the bearer of a live token can open a request here, to have that token elevated',
    );
  }
  if (address !== undefined) await tries.take([{ what: 'open', who: address }], now);
  const first = elevate === undefined ? undefined : await elevated(parts, elevate, { now, address });
  const ttlSeconds = asked.ttlSeconds ?? (first ? ELEVATION_SECONDS : TOKEN_SECONDS);
  const expiresAt = expiryAfter(now, options.lifetimeSeconds);
  for (let attempt = 1; attempt <= MAX_CODE_ATTEMPTS; attempt += 1) {
    const { deviceCode, id, digest } = mintDeviceCode(service.ring, service.values.prefix);
    const userCode = drawUserCode();
    const record: RequestRecord = {
      id,
      userCode,
      digest,
      version: 1,
      state: 'pending',
      client: asked.client,
      scopes: asked.scopes.map(String),
      ttlSeconds,
      createdAt: new Date(now),
      expiresAt,
      ...(address !== undefined && { address }),
      ...(asked.purpose !== undefined && { purpose: asked.purpose }),
      ...first,
    };
    const bounds = { maxPending: options.maxPending, maxOfRoot: 10, liveAt: new Date(now) };
    if (!(await store.insert(record, bounds))) continue;
    parts.emit('requested', record, now);
    return Object.freeze({
      deviceCode,
      userCode: shownUserCode(userCode),
      verificationUri: options.verificationUri,
      expiresAt,
      intervalSeconds: POLL_SECONDS,
    });
  }
  throw service.store.failure(corruptRequests());
}

/** The members of a request to elevate the token of a value. */
async function elevated(
  { service, tries }: RequestParts,
  value: string,
  call: { readonly now: number; readonly address: string | undefined },
): Promise<Pick<RequestRecord, 'account' | 'elevates' | 'until'>> {
  let live = await service.decider.requireLive(value, call);
  if (live.record.pending !== undefined) {
    // If this was the first use of a new value, the version is about to change.
    await service.rotations.settled();
    live = await service.decider.requireLive(value, call);
  }
  const { record, ancestors, validUntil } = live;
  if (isElevation(record)) {
    throw new TokenError('invalid_request', 'an elevation cannot be elevated; elevate the token below it');
  }
  const chain = [...ancestors, record].map((each) => ({
    id: (each as TokenRecord).id,
    version: (each as TokenRecord).version,
  }));
  await tries.take([{ what: 'root', who: chain[0]?.id ?? record.id }], call.now);
  await live.takeUse();
  return { account: record.account, elevates: chain, ...(validUntil && { until: validUntil }) };
}
