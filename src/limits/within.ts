import { TokenError } from '../errors.ts';
import type { TokenLimits } from '../token.ts';
import { AddressBlocks } from './addresses.ts';

/**
 * Checks that the limits of a derived token are not wider than those of its parent. The parent's limits
 * apply to it anyway, so wider ones would never be reached and only mislead.
 *
 * @throws {TokenError} `invalid_limits`, naming the member
 */
export function checkLimitsWithin(
  limits: TokenLimits | null | undefined,
  parent: TokenLimits | undefined,
): void {
  const { addresses, uses, rate } = limits ?? {};
  if (uses !== undefined && parent?.uses !== undefined && uses > parent.uses) {
    throw limitError(
      'limits.uses',
      `must not be more than ${parent.uses}, that of the parent token`,
    );
  }
  if (rate !== undefined && parent?.rate !== undefined && isFaster(rate, parent.rate)) {
    const { uses: most, seconds } = parent.rate;
    const rule = `must not allow more than that of the parent token, ${most} in ${seconds} s`;
    throw limitError('limits.rate', rule);
  }
  if (addresses === undefined || parent?.addresses === undefined) return;
  const outer = new AddressBlocks(parent.addresses);
  const other = addresses.find((block) => !outer.covers(block));
  if (other === undefined) return;
  throw limitError('limits.addresses', `must be among those of the parent token; ${other} is not`);
}

type Rate = NonNullable<TokenLimits['rate']>;

/** Compares averages, because the windows may have different lengths. */
function isFaster(rate: Rate, than: Rate): boolean {
  return BigInt(rate.uses) * BigInt(than.seconds) > BigInt(than.uses) * BigInt(rate.seconds);
}

function limitError(member: string, rule: string): TokenError {
  return new TokenError('invalid_limits', `${member} ${rule}`, { member });
}
