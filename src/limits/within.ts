import { TokenError } from '../errors.ts';
import type { TokenLimits } from '../token/record.ts';
import { AddressBlocks } from './addresses.ts';

/**
 * Checks that the limits of a derived token are not wider than those of a token above it. These apply to it
 * anyway, so wider ones would never be reached and only mislead.
 *
 * @throws {TokenError} `invalid_limits`, naming the member
 */
export function checkLimitsWithin(
  limits: TokenLimits | null | undefined,
  outer: TokenLimits,
): void {
  const { addresses, uses, rate } = limits ?? {};
  if (uses !== undefined && outer.uses !== undefined && uses > outer.uses) {
    throw limitError(
      'limits.uses',
      `must not be more than ${outer.uses}, that of a token it is derived from`,
    );
  }
  if (rate !== undefined && outer.rate !== undefined && isFaster(rate, outer.rate)) {
    const { uses: most, seconds } = outer.rate;
    const rule = `must not allow more than that of a token it is derived from, ${most} in ${seconds} s`;
    throw limitError('limits.rate', rule);
  }
  if (addresses === undefined || outer.addresses === undefined) return;
  const allowed = new AddressBlocks(outer.addresses);
  const other = addresses.find((block) => !allowed.covers(block));
  if (other === undefined) return;
  throw limitError(
    'limits.addresses',
    `must be among those of a token it is derived from; ${other} is not`,
  );
}

type Rate = NonNullable<TokenLimits['rate']>;

/** Compares averages, because the windows may have different lengths. */
function isFaster(rate: Rate, than: Rate): boolean {
  return BigInt(rate.uses) * BigInt(than.seconds) > BigInt(than.uses) * BigInt(rate.seconds);
}

function limitError(member: string, rule: string): TokenError {
  return new TokenError('invalid_limits', `${member} ${rule}`, { member });
}
