import type { AskedLimits, LimitName } from './limits-draft.ts';
import { LANGUAGE, TEXTS } from './texts.ts';

/** Limits in a sentence. */
export function limitsText(limits: AskedLimits): string {
  return Object.values(limitTexts(limits)).join('; ');
}

/** Each limit in words. Text that is not a number stays as it was entered. */
export function limitTexts({
  addresses,
  uses,
  rate,
}: AskedLimits): Readonly<Partial<Record<LimitName, string>>> {
  return {
    ...(addresses !== undefined && {
      addresses: TEXTS.token.onlyFrom({ addresses: LANGUAGE.lists.format(addresses) }),
    }),
    ...(uses !== undefined && {
      uses: typeof uses === 'number' ? TEXTS.token.mostUses({ count: uses }) : uses,
    }),
    ...(rate !== undefined && {
      rate: typeof rate.uses === 'number' ? rateText(rate.uses, rate.seconds) : rate.uses,
    }),
  };
}

function rateText(uses: number, seconds: number): string {
  return TEXTS.token.mostRate({
    uses: TEXTS.rights.uses({ count: uses }),
    seconds: TEXTS.token.seconds({ count: seconds }),
  });
}
