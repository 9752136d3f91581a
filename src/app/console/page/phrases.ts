// Texts with placeholders for names and numbers, such as `{count} tokens`, in any language. They
// are plain data, so that a translation can come from a server.
import { type Language, languageOf } from './language.ts';

declare const NAMES: unique symbol;

/** A text with placeholders, such as `Signed in as {name}`. */
export type Phrase<Name extends string> = string & { readonly [NAMES]?: Name };

/** A text for each plural form of a language, chosen by `{count}`. `other` is for missing forms. */
export interface PluralText {
  /** Zero, in languages that have a form for it: Arabic, Latvian, Welsh. */
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

/** A text with a number, and perhaps other placeholders. */
export type Plural<Name extends string> = PluralText & { readonly [NAMES]?: Name };

/** Texts by the screen that they are on. */
export interface TextGroup {
  readonly [key: string]: string | PluralText | TextGroup;
}

/** The placeholders in a text. `{}` is not one: it is a part of scopes. */
type PlaceholdersOf<Template extends string> =
  Template extends `${string}{${infer Name}}${infer Rest}`
    ? Exclude<Name, ''> | PlaceholdersOf<Rest>
    : never;

export function phrase<const Template extends string>(
  template: Template,
): Phrase<PlaceholdersOf<Template>> {
  return template as Phrase<PlaceholdersOf<Template>>;
}

export function plural<const Forms extends PluralText>(
  forms: Forms,
): Plural<PlaceholdersOf<Forms['other']> | 'count'> {
  return forms as Plural<PlaceholdersOf<Forms['other']> | 'count'>;
}

/** The values of the placeholders. Numbers are formatted for the language. */
type Values<Name extends string> = {
  readonly [Each in Name]: Each extends 'count' ? number : string | number;
};

type NamesOf<Text> = Text extends { readonly [NAMES]?: infer Name } ? Name & string : never;

/** Texts that are ready for use: one with placeholders is a function of their values. */
export type CompiledTexts<Texts> = {
  readonly [Key in keyof Texts]: typeof NAMES extends keyof Texts[Key]
    ? (values: Values<NamesOf<Texts[Key]>>) => string
    : Texts[Key] extends string
      ? string
      : CompiledTexts<Texts[Key]>;
};

/** A translation: any of the texts, each with the same placeholders or with fewer. */
export type Translation<Texts> = {
  readonly [Key in keyof Texts]?: Texts[Key] extends string
    ? string
    : Texts[Key] extends PluralText
      ? string | PluralText
      : Translation<Texts[Key]>;
};

const PLACEHOLDER = /\{([a-z]\w*)\}/gi;

/** The names of the placeholders in a text. */
export function placeholdersOf(text: string | PluralText): ReadonlySet<string> {
  const forms = typeof text === 'string' ? [text] : Object.values<string>({ ...text });
  const names = forms.flatMap((form) =>
    [...form.matchAll(PLACEHOLDER)].map(([, name = '']) => name),
  );
  return new Set(typeof text === 'string' ? names : [...names, 'count']);
}

export function isPlural(text: string | PluralText | TextGroup): text is PluralText {
  return typeof text === 'object' && typeof text['other'] === 'string';
}

/** Makes texts ready for use: each from the translation or, if it has none, from the original. */
export function compileTexts<Texts extends TextGroup>(
  texts: Texts,
  translation: Translation<Texts>,
  language: Language = languageOf('en'),
): CompiledTexts<Texts> {
  const own: Readonly<Record<string, unknown>> = translation;
  const entries = Object.entries(texts).map(([key, text]) => {
    if (typeof text !== 'string' && !isPlural(text)) {
      return [key, compileTexts(text, (own[key] ?? {}) as TextGroup, language)];
    }
    const used = (own[key] ?? text) as string | PluralText;
    if (placeholdersOf(text).size === 0) return [key, used];
    return [key, (values: Values<string>) => filled(used, values, language)];
  });
  return Object.fromEntries(entries);
}

function filled(text: string | PluralText, values: Values<string>, language: Language): string {
  const template =
    typeof text === 'string'
      ? text
      : (text[language.plurals.select(values['count'] as number)] ?? text.other);
  return template.replace(PLACEHOLDER, (placeholder, name: string) => {
    const value = values[name];
    if (typeof value === 'number') return language.counts.format(value);
    return value === undefined ? placeholder : language.isolated(value);
  });
}
