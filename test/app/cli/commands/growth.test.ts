import { describe, expect, it } from 'vitest';
import { CsvReader, readRows } from '../../../../src/app/cli/commands/import-rows.ts';
import { NEAR_LINEAR, slopeOf, slopeOfCalls } from '../../../growth.ts';
import { allOf } from '../../../support.ts';

const SIZES = [8000, 16_000, 32_000];

/** What users of the old system may have written into a cell, or what breaks the form of CSV. */
const HOSTILE: readonly (readonly [name: string, text: (size: number) => string])[] = [
  ['a cell of line ends', (size) => `"${'\n'.repeat(size)}"`],
  ['a cell of CR and LF', (size) => `"${'\r\n'.repeat(size)}"`],
  ['a cell of CR', (size) => `"${'\r'.repeat(size)}"`],
  ['a cell of lines with quotes', (size) => `"${'a""\nb'.repeat(size)}"`],
  ['a cell of quotes', (size) => `"${'""'.repeat(size)}"`],
  ['cells of quotes', (size) => '"""",'.repeat(size)],
  ['a quote too many after many', (size) => `"${'""'.repeat(size)}"a"\n"`],
  ['a plain cell of quotes', (size) => `a${'""'.repeat(size)}`],
  ['empty cells', (size) => ','.repeat(size)],
  ['a long cell', (size) => 'a'.repeat(size * 8)],
  ['records that end at once', (size) => '"a\n"\n'.repeat(size)],
  ['a quote that is never closed', (size) => `"${'a\n'.repeat(size)}`],
  ['many columns of the same name', (size) => 'a,'.repeat(size)],
];

/** The number of rows; -1 if they are no CSV. */
function readAll(lines: readonly string[]): number {
  const reader = new CsvReader();
  let rows = 0;
  try {
    for (const [at, line] of lines.entries()) if (reader.read(line, at + 1)) rows += 1;
    reader.end();
  } catch {
    return -1;
  }
  return rows;
}

describe('CsvReader', () => {
  it.each(HOSTILE)('reads %s in linear time', (_, textOf) => {
    const surface = (size: number) => {
      const lines = textOf(size).split('\n');
      return () => readAll(lines) + readAll(['name', ...lines]);
    };

    expect(slopeOf(surface, SIZES, NEAR_LINEAR)).toBeLessThan(NEAR_LINEAR);
  });

  it('reads as many line ends and quotes as a record may hold', () => {
    const ends = `"${'\n'.repeat(1_000_000)}"`.split('\n');
    const quotes = `"${'""'.repeat(500_000)}"`;

    expect(readAll(['name', ...ends])).toBe(1);
    expect(readAll(['name', quotes])).toBe(1);
    expect(readAll(['name', ...`"${'\n'.repeat(1_048_577)}"`.split('\n')])).toBe(-1);
  });
});

describe('readRows', () => {
  it.each([
    ['a long cell', (size: number) => `name\n${'a'.repeat(size)}`],
    ['a cell of line ends', (size: number) => `name\n"${'\r\n'.repeat(size / 2)}"`],
    ['a long object', (size: number) => `{"name":"${'a'.repeat(size)}"}`],
  ])('reads %s in linear time, byte by byte', async (_, textOf) => {
    const surface = async (size: number) => {
      const bytes = Buffer.from(textOf(size));
      const chunks = Array.from(bytes, (byte) => Buffer.of(byte));
      return () => allOf(readRows(chunks)).catch(() => undefined);
    };

    const slope = await slopeOfCalls(surface, SIZES, NEAR_LINEAR);

    expect(slope).toBeLessThan(NEAR_LINEAR);
  });
});
