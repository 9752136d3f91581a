/** A part of a text: characters that can be seen, or the code point of one that cannot. */
export interface TextPart {
  readonly text: string;
  readonly isHidden: boolean;
}

/**
 * What nobody sees, or what changes how the rest is shown: controls, marks of direction, joiners, tags, fillers,
 * blanks other than the space, and marks that would be stacked over the lines around. A selector after a picture
 * is harmless.
 */
const HIDDEN =
  /(?<!\p{Extended_Pictographic})\ufe0f|(?!\ufe0f)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]|(?<=\p{M}{4})\p{M}/gu;

/** Splits a text of a stranger, with a code point such as `U+202E` in place of each hidden character. */
export function partsOf(text: string): readonly TextPart[] {
  const parts: TextPart[] = [];
  let end = 0;
  for (const { 0: hidden, index } of text.matchAll(HIDDEN)) {
    if (index > end) parts.push({ text: text.slice(end, index), isHidden: false });
    parts.push({ text: codePointOf(hidden), isHidden: true });
    end = index + hidden.length;
  }
  if (end < text.length) parts.push({ text: text.slice(end), isHidden: false });
  return parts;
}

function codePointOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}
