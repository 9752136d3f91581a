import { describe, expect, it } from 'vitest';
import { languageOf } from '../../../../src/app/console/page/language.ts';
import { compileTexts, phrase, plural } from '../../../../src/app/console/page/phrases.ts';

const TEXTS = {
  plain: 'Save',
  named: phrase('Revoked {name} of {account}.'),
  scope: 'Such as GET:shop.example/orders/{}$.',
  below: { tokens: plural({ one: '{count} token of {name}', other: '{count} tokens of {name}' }) },
};

describe('the texts of the console', () => {
  it('are used unchanged without a translation', () => {
    const texts = compileTexts(TEXTS, {}, languageOf('en'));

    expect(texts.plain).toBe('Save');
    expect(texts.scope).toBe('Such as GET:shop.example/orders/{}$.');
    expect(texts.named({ name: '{account}', account: 'ada' })).toBe('Revoked {account} of ada.');
    expect(texts.below.tokens({ count: 1, name: 'ada' })).toBe('1 token of ada');
    expect(texts.below.tokens({ count: 1234, name: 'ada' })).toBe('1,234 tokens of ada');
  });

  it('are replaced one by one, with placeholders in another order', () => {
    const texts = compileTexts(
      TEXTS,
      { named: '{account}: {name}', plain: 'OK' },
      languageOf('de'),
    );

    expect(texts.plain).toBe('OK');
    expect(texts.named({ name: 'ci', account: 'ada' })).toBe('ada: ci');
    expect(texts.below.tokens({ count: 2, name: 'ada' })).toBe('2 tokens of ada');
  });

  it.each([
    ['pl', 1, '1 żeton'],
    ['pl', 3, '3 żetony'],
    ['pl', 5, '5 żetonów'],
    ['pl', 1234567, '1 234 567 żetonów'],
    // Polish has no form `two`, so it is never used.
    ['pl', 2, '2 żetony'],
    // English has no form `few`.
    ['en', 3, '3 …'],
  ])('in the language %s with the count %i have the plural form %s', (tag, count, expected) => {
    const tokens = {
      one: '{count} żeton',
      two: 'never',
      few: '{count} żetony',
      many: '{count} żetonów',
      other: '{count} …',
    };
    const { below } = compileTexts(TEXTS, { below: { tokens } }, languageOf(tag));

    expect(below.tokens({ count, name: '' }).replace(/\s/g, ' ')).toBe(expected);
  });

  it('can have one form for all numbers, in the digits of the language', () => {
    const { below } = compileTexts(TEXTS, { below: { tokens: '{count}個' } }, languageOf('ja'));
    expect([1, 2].map((count) => below.tokens({ count, name: '' }))).toEqual(['1個', '2個']);

    const persian = compileTexts(TEXTS, { below: { tokens: '{count} توکن' } }, languageOf('fa'));
    expect(persian.below.tokens({ count: 12, name: '' })).toBe('۱۲ توکن');
  });

  it('isolate names in a sentence that runs from right to left', () => {
    const texts = compileTexts(TEXTS, {}, languageOf('he', 'rtl'));

    expect(texts.named({ name: 'ci', account: 'ada' })).toBe(
      'Revoked \u2068ci\u2069 of \u2068ada\u2069.',
    );
  });
});
