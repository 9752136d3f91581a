import type { ShownToken } from './api.ts';
import { LANGUAGE, TEXTS } from './texts.ts';

/** Limits in a sentence. */
export function limitsText({ addresses, uses, rate }: NonNullable<ShownToken['limits']>): string {
  return [
    ...(addresses === undefined
      ? []
      : [TEXTS.token.onlyFrom({ addresses: LANGUAGE.lists.format(addresses) })]),
    ...(uses === undefined ? [] : [TEXTS.token.mostUses({ count: uses })]),
    ...(rate === undefined ? [] : [rateText(rate)]),
  ].join('; ');
}

function rateText({ uses, seconds }: { readonly uses: number; readonly seconds: number }): string {
  return TEXTS.token.mostRate({
    uses: TEXTS.rights.uses({ count: uses }),
    seconds: TEXTS.token.seconds({ count: seconds }),
  });
}
