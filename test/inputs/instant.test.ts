import { describe, expect, it } from 'vitest';
import { parseInstant } from '../../src/inputs/instant.ts';

describe('parseInstant', () => {
  it.each([
    ['2027-01-31T12:00:00Z', '2027-01-31T12:00:00.000Z'],
    ['2027-01-31T12:00:00.25Z', '2027-01-31T12:00:00.250Z'],
    ['2027-01-31T12:00:00.123999Z', '2027-01-31T12:00:00.123Z'],
    ['2027-01-31T12:00:00+05:30', '2027-01-31T06:30:00.000Z'],
    ['2027-01-31T23:00:00-05:00', '2027-02-01T04:00:00.000Z'],
    ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000Z'],
    ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59.000Z'],
  ])('reads %s', (text, expected) => {
    expect(parseInstant(text)?.toISOString()).toBe(expected);
  });

  it.each([
    ['an empty text', ''],
    ['a date', '2027-01-31'],
    ['no seconds', '2027-01-31T12:00Z'],
    ['no zone', '2027-01-31T12:00:00'],
    ['seconds since the epoch', '1801396800'],
    ['a day that does not exist', '2027-02-29T12:00:00Z'],
    ['a month that does not exist', '2027-13-01T12:00:00Z'],
    ['the hour 24', '2027-01-31T24:00:00Z'],
    ['a leap second', '2026-12-31T23:59:60Z'],
    ['a zone offset that does not exist', '2027-01-31T12:00:00+24:00'],
    ['a zone without minutes', '2027-01-31T12:00:00+02'],
    ['a year of five digits', '10000-01-01T00:00:00Z'],
    ['a year with a sign', '+010000-01-01T00:00:00Z'],
    ['lower case', '2027-01-31t12:00:00z'],
    ['a space', '2027-01-31 12:00:00Z'],
    ['a trailing line break', '2027-01-31T12:00:00Z\n'],
    ['digits of another script', '２０２７-01-31T12:00:00Z'],
    ['a date as in e-mail', 'Sun, 31 Jan 2027 12:00:00 GMT'],
  ])('does not read %s', (_, text) => {
    expect(parseInstant(text)).toBeUndefined();
  });
});
