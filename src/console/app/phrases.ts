// Texts with places for names and numbers, such as `{count} tokens`, in any language. They are data, so
// that a translation of a host can come from a server.
import { type Language, languageOf } from './language.ts';

declare const NAMES: unique symbol;

/** A text with places, such as `Signed in as {name}`. */
export type Phrase<Name extends string> = string & { readonly [NAMES]?: Name };

/** A text for each form that a number `{count}` has in a language; `other` stands for those that are missing. */
export interface PluralText {
  /** Zero, where a language has a form for it: Arabic, Latvian, Welsh. */
  readonly zero?: string;
  /** One, and in some languages also 21, 31 and so on. */
  readonly one?: string;
  /** Two: Arabic, Hebrew, Slovenian, Welsh. */
  readonly two?: string;
  /** A few, such as 2 to 4: Czech, Polish, Russian, Arabic. */
  readonly few?: string;
  /** Many: Polish, Russian, Arabic. */
  readonly many?: string;
  /** All other numbers. */
  readonly other: string;
}

/** A text with a number, and perhaps other places. */
export type Plural<Name extends string> = PluralText & { readonly [NAMES]?: Name };

/** Texts by the screen that they are on. */
export interface TextGroup {
  readonly [key: string]: string | PluralText | TextGroup;
}

/** The places in a text. `{}` is not one: scopes have it. */
type PlacesOf<Template extends string> = Template extends `${string}{${infer Name}}${infer Rest}`
  ? Exclude<Name, ''> | PlacesOf<Rest>
  : never;

export function phrase<const Template extends string>(
  template: Template,
): Phrase<PlacesOf<Template>> {
  return template as Phrase<PlacesOf<Template>>;
}

export function plural<const Forms extends PluralText>(
  forms: Forms,
): Plural<PlacesOf<Forms['other']> | 'count'> {
  return forms as Plural<PlacesOf<Forms['other']> | 'count'>;
}

/** What goes into the places. Numbers are written as the language writes them. */
type Values<Name extends string> = {
  readonly [Each in Name]: Each extends 'count' ? number : string | number;
};

type NamesOf<Text> = Text extends { readonly [NAMES]?: infer Name } ? Name & string : never;

/** Texts to use: one with places is a function of what goes there. */
export type Spoken<Texts> = {
  readonly [Key in keyof Texts]: typeof NAMES extends keyof Texts[Key]
    ? (values: Values<NamesOf<Texts[Key]>>) => string
    : Texts[Key] extends string
      ? string
      : Spoken<Texts[Key]>;
};

/** A translation: any of the texts, each with the same places or with fewer. */
export type Translation<Texts> = {
  readonly [Key in keyof Texts]?: Texts[Key] extends string
    ? string
    : Texts[Key] extends PluralText
      ? string | PluralText
      : Translation<Texts[Key]>;
};

const PLACE = /\{([a-z]\w*)\}/gi;

/** The names of the places in a text. */
export function placesOf(text: string | PluralText): ReadonlySet<string> {
  const forms = typeof text === 'string' ? [text] : Object.values<string>({ ...text });
  const names = forms.flatMap((form) => [...form.matchAll(PLACE)].map(([, name = '']) => name));
  return new Set(typeof text === 'string' ? names : [...names, 'count']);
}

export function isPlural(text: string | PluralText | TextGroup): text is PluralText {
  return typeof text === 'object' && typeof text['other'] === 'string';
}

/** Makes texts ready for use, each from the translation or, where that has none, from the original. */
export function spoken<Texts extends TextGroup>(
  texts: Texts,
  translation: Translation<Texts>,
  language: Language = languageOf('en'),
): Spoken<Texts> {
  const own: Readonly<Record<string, unknown>> = translation;
  const entries = Object.entries(texts).map(([key, text]) => {
    if (typeof text !== 'string' && !isPlural(text)) {
      return [key, spoken(text, (own[key] ?? {}) as TextGroup, language)];
    }
    const said = (own[key] ?? text) as string | PluralText;
    if (placesOf(text).size === 0) return [key, said];
    return [key, (values: Values<string>) => filled(said, values, language)];
  });
  return Object.fromEntries(entries);
}

function filled(text: string | PluralText, values: Values<string>, language: Language): string {
  const template =
    typeof text === 'string'
      ? text
      : (text[language.plurals.select(values['count'] as number)] ?? text.other);
  return template.replace(PLACE, (place, name: string) => {
    const value = values[name];
    if (typeof value === 'number') return language.counts.format(value);
    return value === undefined ? place : language.isolated(value);
  });
}
