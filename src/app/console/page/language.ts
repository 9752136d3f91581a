import { type RelativeFormats, relativeFormats } from '../../../time/relative.ts';

/** How a language writes numbers, times and lists. */
export interface Language extends RelativeFormats {
  readonly tag: string;
  readonly counts: Intl.NumberFormat;
  readonly plurals: Intl.PluralRules;
  readonly lists: Intl.ListFormat;
  readonly exact: Intl.DateTimeFormat;
  readonly order: Intl.Collator;
  /** Isolates a name or an address in a sentence, so that their directions do not mix. */
  readonly isolated: (text: string) => string;
}

/** @param tag a language tag, such as `de` or `pt-BR` */
export function languageOf(tag: string, direction: string = 'ltr'): Language {
  return {
    tag,
    counts: new Intl.NumberFormat(tag),
    plurals: new Intl.PluralRules(tag),
    lists: new Intl.ListFormat(tag, { type: 'unit', style: 'short' }),
    ...relativeFormats(tag),
    exact: new Intl.DateTimeFormat(tag, { dateStyle: 'medium', timeStyle: 'short' }),
    order: new Intl.Collator(tag),
    // Most names are in Latin letters: in a sentence that runs the same way they need no marks.
    isolated: direction === 'rtl' ? (text) => `\u2068${text}\u2069` : (text) => text,
  };
}
