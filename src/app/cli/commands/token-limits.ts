import { MAX_RATE_SECONDS } from '../../../bounds.ts';
import type { PatchInput, TokenLimits } from '../../../index.ts';
import { RATE, readFlag, wholeNumber } from '../../terminal/kinds.ts';
import type { IfVersion, TokenClient } from '../account/client.ts';
import type { Given } from '../command.ts';

const USES = wholeNumber(1, Number.MAX_SAFE_INTEGER);

/** The flags of limits. */
export const LIMIT_FLAGS = {
  address: {
    type: 'string',
    multiple: true,
    value: 'BLOCK',
    help: 'an IP address, or a block such as 10.0.0.0/8, from which the token may be used; repeatable',
  },
  uses: { type: 'string', value: 'N', help: 'how many times the token may be used in total' },
  rate: {
    type: 'string',
    value: 'N/TIME',
    help: `how often the token may be used in each window: 100/60s, 5/1m; at most ${MAX_RATE_SECONDS} s`,
  },
} as const;

type LimitFlags = Given<typeof LIMIT_FLAGS>;

/** The change of each limit: `undefined` leaves it as it is, `null` removes it. */
type LimitChange = {
  readonly [Limit in keyof TokenLimits]-?: NonNullable<TokenLimits[Limit]> | null | undefined;
};

/** Reads the flags of limits; an empty text removes one. */
function readFlags({ address, uses, rate }: LimitFlags): LimitChange {
  const isCleared = address?.length === 1 && address[0] === '';
  return {
    addresses: isCleared ? null : address,
    uses: uses === '' ? null : readFlag(USES, 'uses', uses),
    rate: rate === '' ? null : readFlag(RATE, 'rate', rate),
  };
}

/** The limits of a new token. @param preset the limits without flags */
export function readLimits(flags: LimitFlags, preset: TokenLimits = {}): TokenLimits | undefined {
  return limitsAfter(preset, readFlags(flags)) ?? undefined;
}

/** Whether flags change limits. */
export function changesLimits(flags: LimitFlags): boolean {
  return Object.values(readFlags(flags)).some((limit) => limit !== undefined);
}

/** The arguments of `patch` and `tryPatch` of a client. */
type Patch = readonly [id: string, change: PatchInput, options: IfVersion];

/**
 * Adds the limits of flags to a patch. The service replaces all limits together, so this reads
 * those that stay, and the patch is refused if the token changes meanwhile.
 */
export async function withLimits(
  client: TokenClient,
  patch: Patch,
  flags: LimitFlags,
): Promise<Patch> {
  if (!changesLimits(flags)) return patch;
  const [id, change, options] = patch;
  const { limits, version } = await client.get(id, {});
  const after = limitsAfter(limits ?? {}, readFlags(flags));
  return [id, { ...change, limits: after }, { ifVersion: options.ifVersion ?? version }];
}

/** The limits after a change; `null` if none is left. */
function limitsAfter(before: TokenLimits, change: LimitChange): TokenLimits | null {
  const addresses = change.addresses === undefined ? before.addresses : change.addresses;
  const uses = change.uses === undefined ? before.uses : change.uses;
  const rate = change.rate === undefined ? before.rate : change.rate;
  const after: TokenLimits = {
    ...(addresses && { addresses }),
    ...(uses && { uses }),
    ...(rate && { rate }),
  };
  return Object.keys(after).length === 0 ? null : after;
}

/** Describes the limits of a token, one per line. */
export function limitLines({ addresses = [], uses, rate }: TokenLimits): string[] {
  return [
    ...addresses.map((block) => `from ${block}`),
    ...(uses === undefined ? [] : [`${uses} ${uses === 1 ? 'use' : 'uses'} in total`]),
    ...(rate === undefined ? [] : [`${rate.uses} in each ${rate.seconds} s`]),
  ];
}
