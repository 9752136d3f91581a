import * as z from 'zod';
import { strict } from '../../inputs/schemas.ts';
import { shown } from '../../text/wording.ts';
import { isPlural, type PluralText, placeholdersOf, type TextGroup } from './page/phrases.ts';
import { type ConsoleTexts, ENGLISH_TEXTS } from './page/texts.ts';

const FORMS = ['zero', 'one', 'two', 'few', 'many', 'other'];
/** In characters; several times what the longest English text has. */
const MAX_TEXT_LENGTH = 2000;

/** Accepts any part of a translation. Errors name the text that is wrong. */
export const translation = groupSchema(ENGLISH_TEXTS, 'texts') as z.ZodType<ConsoleTexts>;

function groupSchema(texts: TextGroup, place: string): z.ZodType {
  const members = Object.entries(texts).map(([key, text]): [string, z.ZodType] => {
    const name = `${place}.${key}`;
    const isText = typeof text === 'string' || isPlural(text);
    return [key, (isText ? textSchema(text, name) : groupSchema(text, name)).optional()];
  });
  return strict(Object.fromEntries(members));
}

function textSchema(text: string | PluralText, name: string): z.ZodType {
  return z.unknown().superRefine((value, { addIssue }) => {
    const message = problemOf(value, text);
    if (message !== undefined) addIssue({ code: 'custom', message: `${name} ${message}` });
  });
}

/** Why a value cannot replace a text; `undefined` if it can. */
function problemOf(value: unknown, text: string | PluralText): string | undefined {
  const forms = formsOf(value, isPlural(text));
  if (forms === undefined) {
    const plural = isPlural(text) ? `, or an object { ${FORMS.join(', ')} } of such texts` : '';
    return `must be a text of 1 to ${MAX_TEXT_LENGTH} characters${plural}; got ${shown(value)}`;
  }
  const allowed = placeholdersOf(text);
  const unknown = forms
    .flatMap((form) => [...placeholdersOf(form)])
    .find((name) => !allowed.has(name));
  if (unknown === undefined) return undefined;
  const known = [...allowed].map((name) => `{${name}}`).join(', ');
  return `cannot have {${unknown}}; ${known === '' ? 'nothing goes into it' : `it has ${known}`}`;
}

function formsOf(value: unknown, takesForms: boolean): string[] | undefined {
  if (isText(value)) return [value];
  if (!takesForms || typeof value !== 'object' || value === null) return undefined;
  const entries = Object.entries(value).filter(([, form]) => form !== undefined);
  const isRight = entries.every(([name, form]) => FORMS.includes(name) && isText(form));
  if (!isRight || !entries.some(([name]) => name === 'other')) return undefined;
  return entries.map(([, form]) => form as string);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= MAX_TEXT_LENGTH;
}
