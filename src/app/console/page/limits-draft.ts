import type { WireToken } from '../../../http/wire.ts';

export type Limits = NonNullable<WireToken['limits']>;

/** The limits of a token, as fields of a form have them; empty for none. */
export interface LimitsDraft {
  /** Addresses and blocks, separated by white space, commas or semicolons. */
  readonly addresses: string;
  readonly uses: string;
  readonly rateUses: string;
  readonly rateSeconds: string;
}

/** The limits of a draft. Invalid text stays as entered, so that the service says what is wrong. */
export interface AskedLimits {
  readonly addresses?: readonly string[];
  readonly uses?: number | string;
  readonly rate?: { readonly uses: number | string; readonly seconds: number };
}

export type LimitName = keyof AskedLimits;

export const NO_LIMITS: LimitsDraft = { addresses: '', uses: '', rateUses: '', rateSeconds: '60' };

export function draftOf({ addresses = [], uses, rate }: Limits = {}): LimitsDraft {
  return {
    addresses: addresses.join('\n'),
    uses: uses === undefined ? '' : String(uses),
    rateUses: rate === undefined ? '' : String(rate.uses),
    rateSeconds: rate === undefined ? NO_LIMITS.rateSeconds : String(rate.seconds),
  };
}

/** The limits of a draft; `undefined` for none. */
export function limitsOf({
  addresses,
  uses,
  rateUses,
  rateSeconds,
}: LimitsDraft): AskedLimits | undefined {
  const blocks = addresses.split(/[\s,;]+/).filter(Boolean);
  const rate = { uses: toNumber(rateUses), seconds: Number(rateSeconds) };
  return someOf({
    addresses: blocks.length === 0 ? undefined : blocks,
    uses: uses.trim() === '' ? undefined : toNumber(uses),
    rate: rate.uses === '' ? undefined : rate,
  });
}

/**
 * Makes the change from one draft to another to the current limits. If somebody else has changed
 * another limit meanwhile, that change stays. `undefined` for no change, and `null` to remove all
 * limits.
 */
export function changedLimits(
  limits: Limits | undefined,
  before: LimitsDraft,
  after: LimitsDraft,
): AskedLimits | null | undefined {
  const [from, to] = [limitsOf(before) ?? {}, limitsOf(after) ?? {}];
  const isChanged = (name: LimitName) => JSON.stringify(from[name]) !== JSON.stringify(to[name]);
  if (!LIMITS.some(isChanged)) return undefined;
  const next = {
    addresses: isChanged('addresses') ? to.addresses : limits?.addresses,
    uses: isChanged('uses') ? to.uses : limits?.uses,
    rate: isChanged('rate') ? to.rate : limits?.rate,
  };
  return someOf(next) ?? null;
}

const LIMITS: readonly LimitName[] = ['addresses', 'uses', 'rate'];

type Parts = { readonly [Name in LimitName]: AskedLimits[Name] | undefined };

/** Leaves out the limits that are not set; `undefined` if none is. */
function someOf({ addresses, uses, rate }: Parts): AskedLimits | undefined {
  const some = {
    ...(addresses !== undefined && { addresses }),
    ...(uses !== undefined && { uses }),
    ...(rate !== undefined && { rate }),
  };
  return Object.keys(some).length === 0 ? undefined : some;
}

function toNumber(text: string): number | string {
  const digits = text.trim();
  const number = Number(digits);
  return /^\d{1,16}$/.test(digits) && Number.isSafeInteger(number) ? number : digits;
}
