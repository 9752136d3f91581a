import type { CarryingRequest } from '../access/counted-requests.ts';
import type { Need } from '../access/need.ts';
import { readInput, verifyOptions, verifySyncOptions } from '../inputs/schemas.ts';
import type { VerifyOptions, VerifySyncOptions } from '../inputs/types.ts';
import type { Verdict } from '../token/record.ts';
import type { ServiceParts } from './parts.ts';

type Parts = Pick<ServiceParts, 'now' | 'decider'>;

/** A verdict, without a promise if nothing has to be awaited. */
export type Decided = Verdict | Promise<Verdict>;

/** Decides whether a value allows something. Not async: a promise of a promise takes longer than a hit. */
export function verify(
  { now: clock, decider }: Parts,
  value: string,
  need: Need,
  options: VerifyOptions | undefined,
): Promise<Verdict> {
  try {
    const now = clock();
    const { fresh, address } = options === undefined ? {} : readInput(verifyOptions(), options);
    const source = fresh === true ? 'store' : 'any';
    return Promise.resolve(decider.decide(value, need, { now, source, address }) as Decided);
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Decides if nothing has to be awaited. */
export function verifySync(
  { now: clock, decider, catalogs }: Parts & Pick<ServiceParts, 'catalogs'>,
  value: string,
  need: Need,
  options: VerifySyncOptions | undefined,
): Verdict | undefined {
  if (catalogs.arePerAccount) return undefined;
  const { address } = options === undefined ? {} : readInput(verifySyncOptions(), options);
  const call = { now: clock(), source: 'cache', address } as const;
  return decider.decide(value, need, call) as Verdict | undefined;
}

/** Decides for a guard, which finds the address of a request only if it is needed. */
export function decide(
  { now: clock, decider }: Parts,
  value: string,
  need: Need,
  request: {
    readonly address: (() => string | undefined) | undefined;
    readonly request: CarryingRequest | undefined;
  },
): Decided {
  return decider.decide(value, need, { now: clock(), source: 'any', ...request }) as Decided;
}

/** Decides for a guard whether the token of a value is live and may be used from this address. */
export function identify(
  { now: clock, decider }: Parts,
  value: string,
  address: (() => string | undefined) | undefined,
): Decided {
  return decider.identify(value, { now: clock(), source: 'any', address });
}
