import { MAX_REVIEWED_DAYS } from '../../../bounds.ts';
import type { TokenFinding } from '../../../usage/findings.ts';
import { readFlag, wholeNumber } from '../../terminal/kinds.ts';
import { count, listFindings } from '../../terminal/layout.ts';
import type { ReviewDays } from '../account/index.ts';
import type { Ending } from '../command.ts';

// The parts that the reviews of a store and of an account share.

/** A number of days that a review looks back or ahead. */
export const DAYS = wholeNumber(1, MAX_REVIEWED_DAYS);

/** Explains the codes. */
export const FINDINGS_HELP = `  unused          was used, but not for --unused-for-days
  never_used      was issued longer ago than that, and was never used
  broad           may use every method or a whole host, or most of the catalog
  excess          is in use, but more than half of its scopes are not
  expiring        expires within --expiring-within-days, and is in use
  stale_secret    its value is older than --secret-older-than-days
  orphaned_scope  holds scopes that the catalog no longer has
  suspended       has been suspended for more than 90 days`;

export const DAYS_FLAGS = {
  'unused-for-days': { type: 'string', value: 'DAYS', help: `${DAYS.values}; default 90` },
  'expiring-within-days': { type: 'string', value: 'DAYS', help: `${DAYS.values}; default 14` },
  'secret-older-than-days': { type: 'string', value: 'DAYS', help: `${DAYS.values}; default 180` },
} as const;

export function readDays(
  flags: Readonly<Partial<Record<keyof typeof DAYS_FLAGS, string>>>,
): ReviewDays {
  const read = (name: keyof typeof DAYS_FLAGS) => readFlag(DAYS, name, flags[name]);
  return {
    unusedForDays: read('unused-for-days'),
    expiringWithinDays: read('expiring-within-days'),
    secretOlderThanDays: read('secret-older-than-days'),
  };
}

/**
 * Findings are printed one by one, so the column of codes is as wide as the widest of all codes.
 */
const CODE_WIDTH = Math.max(
  ...Object.keys({
    unused: true,
    never_used: true,
    broad: true,
    excess: true,
    expiring: true,
    stale_secret: true,
    orphaned_scope: true,
    suspended: true,
  } satisfies Record<TokenFinding['code'], true>).map(({ length }) => length),
);

export function findingText(code: string, message: string): string {
  return listFindings([{ code: code.padEnd(CODE_WIDTH), message }]);
}

export interface Counts {
  readonly findings: number;
  readonly tokens: number;
}

/** @param place such as `in the store` or `of the account` */
export function endingOf({ findings, tokens }: Counts, place: string): Ending {
  const notes =
    findings === 0
      ? `nothing found ${place}`
      : `${count(findings, 'finding')} about ${count(tokens, 'token')} ${place}`;
  return { isInParts: true, notes, isNegative: findings > 0 };
}
