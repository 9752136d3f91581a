import { describe, expect, it } from 'vitest';
import { languageOf } from '../../../src/console/app/language.ts';
import { phrase, plural, spoken } from '../../../src/console/app/phrases.ts';

const TEXTS = {
  plain: 'Save',
  named: phrase('Revoked {name} of {account}.'),
  scope: 'Such as GET:shop.example/orders/{}$.',
  below: { tokens: plural({ one: '{count} token of {name}', other: '{count} tokens of {name}' }) },
};

describe('texts', () => {
  it('are used as they are written, without a translation', () => {
    const texts = spoken(TEXTS, {}, languageOf('en'));

    expect(texts.plain).toBe('Save');
    expect(texts.scope).toBe('Such as GET:shop.example/orders/{}$.');
    expect(texts.named({ name: '{account}', account: 'ada' })).toBe('Revoked {account} of ada.');
    expect(texts.below.tokens({ count: 1, name: 'ada' })).toBe('1 token of ada');
    expect(texts.below.tokens({ count: 1234, name: 'ada' })).toBe('1,234 tokens of ada');
  });

  it('are replaced one by one, with places in another order or left out', () => {
    const texts = spoken(TEXTS, { named: '{account}: {name}', plain: 'OK' }, languageOf('de'));

    expect(texts.plain).toBe('OK');
    expect(texts.named({ name: 'ci', account: 'ada' })).toBe('ada: ci');
    expect(texts.below.tokens({ count: 2, name: 'ada' })).toBe('2 tokens of ada');
  });

  it.each([
    ['pl', 1, '1 żeton'],
    ['pl', 3, '3 żetony'],
    ['pl', 5, '5 żetonów'],
    ['pl', 1234567, '1 234 567 żetonów'],
    // No form for two in Polish, so `two` is never said.
    ['pl', 2, '2 żetony'],
    // English has no form `few`.
    ['en', 3, '3 …'],
  ])('in %s, for %i, have the form %s', (tag, count, expected) => {
    const tokens = {
      one: '{count} żeton',
      two: 'never',
      few: '{count} żetony',
      many: '{count} żetonów',
      other: '{count} …',
    };
    const { below } = spoken(TEXTS, { below: { tokens } }, languageOf(tag));

    expect(below.tokens({ count, name: '' }).replace(/\s/g, ' ')).toBe(expected);
  });

  it('may have one form for all numbers, in the digits of the language', () => {
    const { below } = spoken(TEXTS, { below: { tokens: '{count}個' } }, languageOf('ja'));
    expect([1, 2].map((count) => below.tokens({ count, name: '' }))).toEqual(['1個', '2個']);

    const persian = spoken(TEXTS, { below: { tokens: '{count} توکن' } }, languageOf('fa'));
    expect(persian.below.tokens({ count: 12, name: '' })).toBe('۱۲ توکن');
  });

  it('keep names apart from a sentence that runs from right to left', () => {
    const texts = spoken(TEXTS, {}, languageOf('he', 'rtl'));

    expect(texts.named({ name: 'ci', account: 'ada' })).toBe(
      'Revoked \u2068ci\u2069 of \u2068ada\u2069.',
    );
  });
});
