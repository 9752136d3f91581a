import { describe, expect, it } from 'vitest';
import { type OldToken, readRows } from '../../../../src/app/cli/commands/import-rows.ts';
import { isTokenError } from '../../../../src/errors.ts';
import { allOf } from '../../../support.ts';

async function* chunksOf(text: string | Uint8Array, size: number) {
  const bytes = Buffer.from(text as string);
  for (let start = 0; start < bytes.length; start += size)
    yield bytes.subarray(start, start + size);
}

/** What each row holds, or why it is refused, with its line. */
async function read(text: string | Uint8Array, size = 1_000_000) {
  const rows = await allOf(readRows(chunksOf(text, size)));
  return rows.map(({ line, token }) => [line, isTokenError(token) ? token.message : held(token)]);
}

/** The members of a token that the row has. */
function held({ isDisabled, ...token }: OldToken) {
  const members = Object.entries(token).filter(([, value]) => value !== undefined);
  return Object.fromEntries([...members, ...(isDisabled ? [['isDisabled', true]] : [])]);
}

/** What one row holds, or why it is refused. */
async function readCell(name: string, cell: unknown) {
  const [row] = await read(JSON.stringify({ digest: 'ab', [name]: cell }));
  return row?.[1];
}

describe('readRows', () => {
  it.each([1, 2, 7, 1000])(
    'reads one JSON object per line, in chunks of %s bytes',
    async (size) => {
      const text = '{"account":"é","name":1}\r\n\n{"digest":null}\n';

      expect(await read(text, size)).toEqual([
        [1, { account: 'é', name: '1' }],
        [3, {}],
      ]);
    },
  );

  it.each([1, 3, 1000])('reads CSV by column name, in chunks of %s bytes', async (size) => {
    const text = '\ufeffdigest,expires_at, name\r\n1,,"a ""b"", c\nd"\r\n\r\n2,"",é';

    expect(await read(text, size)).toEqual([
      [2, { digest: '1', name: 'a "b", c\nd' }],
      [5, { digest: '2', name: 'é' }],
    ]);
  });

  it.each(['', '\n\n', 'digest,name\n'])('reads no rows from %j', async (text) => {
    expect(await read(text)).toEqual([]);
  });

  it('reads all columns, from JSON and from CSV', async () => {
    const row = {
      digest: 'ab',
      account: '7',
      scopes: 'GET:a.example/x, POST:a.example/x',
      permissions: '["a:b"]',
      name: 'ci',
      created_at: '1806537600',
      expires_at: '2027-05-01T14:00:00.000000+02',
      disabled: 'true',
      metadata: '{"team":"web"}',
    };
    const csv = `${Object.keys(row)}\n${Object.values(row).map((cell) => `"${cell.replaceAll('"', '""')}"`)}`;
    const token = {
      digest: 'ab',
      account: '7',
      scopes: ['GET:a.example/x', 'POST:a.example/x'],
      permissions: ['a:b'],
      name: 'ci',
      createdAt: new Date('2027-04-01T00:00:00Z'),
      expiresAt: new Date('2027-05-01T12:00:00Z'),
      isDisabled: true,
      metadata: { team: 'web' },
    };

    expect(await read(JSON.stringify(row))).toEqual([[1, token]]);
    expect(await read(csv)).toEqual([[2, token]]);
  });

  it.each([
    ['{"name":1}\n{"name":\n{"name":2}', 2, 'the line is not a JSON object'],
    ['{"name":1}\n[1]\n{"name":2}', 2, 'the line is not a JSON object'],
    ['{"name":1}\n{"expires":1}\n{"name":2}', 2, '"expires" is not a column'],
    [
      '{"name":1}\n{"__proto__":{"name":1}}\n{"name":2}',
      2,
      '(its name is not shown) is not a column',
    ],
    ['digest,name\n1,2\n1\n3,4', 3, 'the row has 1 cells, and the first line names 2 columns'],
  ])('refuses one bad row and continues: %j', async (text, line, message) => {
    const rows = await read(text);

    expect(rows[1]).toEqual([line, expect.stringContaining(message)]);
    expect(rows).toHaveLength(3);
    expect(rows[2]?.[1]).toEqual(expect.any(Object));
  });

  it.each([
    ['[{"name":1}]', 'one JSON array'],
    ['digest,name\n1,"2\n', 'line 2 is not CSV: a quote is not closed'],
    ['digest,name\n1,2"3"\n', 'line 2 is not CSV: a quote must begin and end its cell'],
    ['name,name\n1,2\n', 'line 1: two columns have the same name'],
    [
      '\ndigest,expires\n1,2\n',
      'line 2: "expires" is not a column; the columns are digest, account',
    ],
    [`${'ab'.repeat(32)},ada\n`, 'line 1: (its name is not shown) is not a column'],
    [`{"name":"${'x'.repeat(1_048_600)}"`, 'longer than 1048576 bytes'],
    [Buffer.from([0x7b, 0xff, 0x7d]), 'must be UTF-8'],
  ])('refuses an input that is neither JSON lines nor CSV: case %#', async (text, message) => {
    await expect(read(text, 100_000)).rejects.toThrow(message);
  });

  it('reads one row at a time from an endless input', async () => {
    let taken = 0;
    async function* endless() {
      for (;;) {
        taken += 1;
        yield Buffer.from('{"name":1}\n');
      }
    }
    const rows = readRows(endless());
    for (let row = 0; row < 10; row += 1) await rows.next();
    await rows.return(undefined);

    expect(taken).toBeLessThan(13);
  });
});

describe('a cell', () => {
  const MAY = new Date('2027-05-01T12:00:00Z');

  it.each([
    ['account', 7, { account: '7' }],
    ['account', '', {}],
    ['permissions', '', {}],
    ['permissions', '[]', { permissions: [] }],
    ['permissions', '{}', { permissions: [] }],
    ['permissions', 'a:b  c,d', { permissions: ['a:b', 'c', 'd'] }],
    ['permissions', ['a', '*'], { permissions: ['a', '*'] }],
    [
      'permissions',
      '{"orders":["read","write"],"bills":[]}',
      { permissions: ['orders:read', 'orders:write'] },
    ],
    ['scopes', '["GET:a.example/x"]', { scopes: ['GET:a.example/x'] }],
    ['disabled', true, { isDisabled: true }],
    ['disabled', 1, { isDisabled: true }],
    ['disabled', 't', { isDisabled: true }],
    ['disabled', 'FALSE', {}],
    ['disabled', 0, {}],
    ['disabled', null, {}],
    ['expires_at', '2027-05-01 12:00:00', { expiresAt: MAY }],
    ['expires_at', '2027-05-01 12:00:00.000000', { expiresAt: MAY }],
    ['expires_at', '2027-05-01T12:00:00', { expiresAt: MAY }],
    ['expires_at', '2027-05-01t12:00:00z', { expiresAt: MAY }],
    ['expires_at', '2027-05-01 14:00:00+02', { expiresAt: MAY }],
    ['expires_at', '2027-05-01 06:30:00 -0530', { expiresAt: MAY }],
    ['expires_at', '2027-05-01 06:30:00-05:30', { expiresAt: MAY }],
    ['expires_at', MAY.getTime(), { expiresAt: MAY }],
    ['expires_at', MAY.getTime() / 1000, { expiresAt: MAY }],
    ['metadata', { team: 'web' }, { metadata: { team: 'web' } }],
    ['metadata', 'null', {}],
    // Some adapters encode as JSON twice.
    ['metadata', JSON.stringify('{"team":"web"}'), { metadata: { team: 'web' } }],
  ])('in %s that is %j is read as %j', async (name, cell, expected) => {
    expect(await readCell(name, cell)).toEqual({ digest: 'ab', ...expected });
  });

  it.each([
    ['account', true, 'account must be a text or a whole number'],
    ['account', 1.5, 'account is a number that JSON rounds'],
    ['permissions', '[1]', 'permissions must be a JSON list of texts, or an object of them'],
    ['permissions', '{"orders":"read"}', 'permissions must be a JSON list of texts'],
    ['permissions', 7, 'permissions must be a JSON list of texts'],
    ['permissions', '[', 'permissions is not JSON'],
    ['disabled', 'maybe', 'disabled must be true or false'],
    ['expires_at', 'soon', 'expires_at must be a time'],
    ['expires_at', '2027-05-01', 'expires_at must be a time'],
    ['expires_at', '2027-02-30 00:00:00', 'expires_at must be a time'],
    ['expires_at', '2027-13-01T00:00:00Z', 'expires_at must be a time'],
    ['expires_at', '0000-00-00 00:00:00', 'expires_at must be a time'],
    ['created_at', true, 'created_at must be a time'],
    ['metadata', '[1]', 'metadata must be a JSON object'],
    ['metadata', '{"a":9007199254740993}', 'metadata.a is a number that JSON rounds'],
    ['metadata', JSON.stringify('{"a":9007199254740993}'), 'metadata.a is a number that JSON'],
  ])('in %s is refused if it is %j', async (name, cell, message) => {
    expect(await readCell(name, cell)).toContain(message);
  });

  it('is refused if JSON would round it', async () => {
    expect(await read('{"account":1546130668394913822}')).toEqual([
      [1, expect.stringMatching(/^account is a number that JSON rounds/)],
    ]);
  });
});
