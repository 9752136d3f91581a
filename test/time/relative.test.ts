import { describe, expect, it } from 'vitest';
import { relativeFormats, relativeTime } from '../../src/time/relative.ts';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('relativeTime', () => {
  const formats = relativeFormats('en');

  it.each([
    [0, 'in 0 seconds'],
    [59, 'in 59 seconds'],
    [MINUTE, 'in 1 minute'],
    [-2 * HOUR, '2 hours ago'],
    [DAY - 1, 'in 24 hours'],
    [DAY, 'tomorrow'],
    [-DAY, 'yesterday'],
    [30 * DAY, 'in 30 days'],
    [90 * DAY - 1, 'in 90 days'],
    [90 * DAY, 'in 3 months'],
    [729 * DAY, 'in 24 months'],
    [730 * DAY, 'in 2 years'],
    [-730 * DAY, '2 years ago'],
  ])('writes a distance of %i seconds as %s', (distance, text) => {
    expect(relativeTime(distance, formats)).toBe(text);
  });

  it('writes it in another language', () => {
    expect(relativeTime(30 * DAY, relativeFormats('de'))).toBe('in 30 Tagen');
  });
});
