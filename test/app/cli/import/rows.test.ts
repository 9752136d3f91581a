import { describe, expect, it } from 'vitest';
import { type OldRow, readRows } from '../../../../src/app/cli/import/rows.ts';
import { isTokenError } from '../../../../src/errors.ts';
import { allOf } from '../../../support.ts';

async function* chunksOf(text: string | Uint8Array, size: number) {
  const bytes = Buffer.from(text as string);
  for (let start = 0; start < bytes.length; start += size)
    yield bytes.subarray(start, start + size);
}

/** The columns of each row, or why it is refused, with its line. */
async function read(text: string | Uint8Array, size = 1_000_000) {
  const rows = await allOf(readRows(chunksOf(text, size)));
  return rows.map(({ line, columns }: OldRow) => [
    line,
    isTokenError(columns) ? columns.message : Object.fromEntries(columns),
  ]);
}

describe('readRows', () => {
  it.each([1, 2, 7, 1000])(
    'reads one JSON object per line, in chunks of %s bytes',
    async (size) => {
      const text = '{"account_id":"é","n":1}\r\n\n{"x":null}\n';

      expect(await read(text, size)).toEqual([
        [1, { accountid: 'é', n: 1 }],
        [3, { x: null }],
      ]);
    },
  );

  it.each([1, 3, 1000])('reads CSV by column name, in chunks of %s bytes', async (size) => {
    const text = '\ufeffid,Expires_At,"na,me"\r\n1,,"a ""b"", c\nd"\r\n\r\n2,"",é';

    expect(await read(text, size)).toEqual([
      [2, { id: '1', expiresat: '', 'na,me': 'a "b", c\nd' }],
      [5, { id: '2', expiresat: '', 'na,me': 'é' }],
    ]);
  });

  it('reads no rows from empty input', async () => {
    expect(await read('')).toEqual([]);
    expect(await read('\n\n')).toEqual([]);
    expect(await read('id,name\n')).toEqual([]);
  });

  it.each([
    ['{"a":1}\n{"a":\n{"a":2}', 2, 'the line is not a JSON object'],
    ['{"a":1}\n[1]\n{"a":2}', 2, 'the line is not a JSON object'],
    ['{"a":1}\n{"a_b":1,"aB":2}\n{"a":2}', 2, 'two columns have the same name'],
    ['a,b\n1,2\n1\n3,4', 3, 'the row has 1 cells, and the first line names 2 columns'],
  ])('refuses one bad row and continues: %j', async (text, line, message) => {
    const rows = await read(text);

    expect(rows[1]).toEqual([line, message]);
    expect(rows).toHaveLength(3);
    expect(rows[2]?.[1]).toEqual(expect.any(Object));
  });

  it.each([
    ['[{"a":1}]', 'one JSON array'],
    ['a,b\n1,"2\n', 'line 2 is not CSV: a quote is not closed'],
    ['a,b\n1,2"3"\n', 'line 2 is not CSV: a quote must begin and end its cell'],
    ['a,a\n1,2\n', 'two columns have the same name'],
    [`{"a":"${'x'.repeat(1_048_600)}"`, 'longer than 1048576 bytes'],
    [Buffer.from([0x7b, 0xff, 0x7d]), 'must be UTF-8'],
  ])('refuses an input that is neither JSON lines nor CSV: case %#', async (text, message) => {
    await expect(read(text, 100_000)).rejects.toThrow(message);
  });

  it('reads one row at a time from an endless input', async () => {
    let taken = 0;
    async function* endless() {
      for (;;) {
        taken += 1;
        yield Buffer.from('{"a":1}\n');
      }
    }
    const rows = readRows(endless());
    for (let row = 0; row < 10; row += 1) await rows.next();
    await rows.return(undefined);

    expect(taken).toBeLessThan(13);
  });
});
