import { describe, expect, it } from 'vitest';
import { partsOf } from '../../../../src/app/console/page/foreign-text.ts';

/** As a page shows it, with brackets around what stands for a hidden character. */
const shown = (text: string) =>
  partsOf(text)
    .map((part) => (part.isHidden ? `[${part.text}]` : part.text))
    .join('');

describe('a text of a stranger', () => {
  it.each([
    ['a change of direction', 'a\u202eb', 'a[U+202E]b'],
    ['an isolate', '\u2066a\u2069', '[U+2066]a[U+2069]'],
    ['a mark of direction', 'a\u200f', 'a[U+200F]'],
    ['a control', 'a\u0007b', 'a[U+0007]b'],
    ['a line break', 'a\nb', 'a[U+000A]b'],
    ['a line separator', 'a\u2028b', 'a[U+2028]b'],
    ['a zero width space', 'pay\u200bpal', 'pay[U+200B]pal'],
    ['a joiner', 'a\u200db', 'a[U+200D]b'],
    ['a byte order mark', '\ufeffa', '[U+FEFF]a'],
    ['a soft hyphen', 'a\u00adb', 'a[U+00AD]b'],
    ['a tag', 'a\u{e0041}', 'a[U+E0041]'],
    ['a selector after a letter', 'a\ufe0f', 'a[U+FE0F]'],
    ['a second selector after a picture', '❤\ufe0f\ufe0f', '❤\ufe0f[U+FE0F]'],
    ['a selector of the supplement', '❤\u{e0100}', '❤[U+E0100]'],
    ['a filler', 'a\u3164b', 'a[U+3164]b'],
    ['a blank of Braille', 'a\u2800b', 'a[U+2800]b'],
    ['a wide blank', 'a\u3000b', 'a[U+3000]b'],
    ['a private character', 'a\ue000', 'a[U+E000]'],
    ['half of a pair', 'a\ud800b', 'a[U+D800]b'],
    ['the fifth mark of a stack', `e${'\u0301'.repeat(5)}`, `e${'\u0301'.repeat(4)}[U+0301]`],
  ])('shows the code point of %s', (_, text, expected) => {
    expect(shown(text)).toBe(expected);
  });

  it.each([
    'Deploy bot 4.2 (nightly)',
    '<b>&amp;</b>',
    'Ünïcödé',
    'e\u0301\u0323\u0302\u0308',
    'מדפסת תוויות',
    'नमस्ते',
    '發布助手',
    '❤\ufe0f 🚀',
    'U+202E',
    '',
  ])('leaves %j as it is', (text) => {
    expect(shown(text)).toBe(text);
  });
});
