import { describe, expect, it } from 'vitest';
import { parseDuration } from '../../src/time/duration.ts';

describe('parseDuration', () => {
  it.each([
    ['45s', 45],
    ['30m', 1800],
    ['12h', 43_200],
    ['30d', 2_592_000],
    ['0s', 0],
    ['999999999d', 86_399_999_913_600],
  ])('reads %s as %i seconds', (text, seconds) => {
    expect(parseDuration(text)).toBe(seconds);
  });

  it.each(['', '30', '30D', '30 d', ' 30d', '30d ', '-1d', '1.5h', '1d12h', '30w', '9999999999d'])(
    'does not read "%s"',
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );
});
