import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { loadCatalog } from '../../src/app/server/files/catalog-files.ts';
import { readKeys } from '../../src/app/server/files/key-file.ts';
import { parseJson, readJson, readScopes, readTokens } from '../../src/app/terminal/inputs.ts';
import { hasTooManyMembers, parseJsonText, roundedNumberIn } from '../../src/text/json.ts';
import { readMetadata } from '../../src/token/metadata.ts';
import { setUp as setUpHttp } from '../http/support.ts';
import { runs } from '../laws.ts';
import { K1, SCOPE } from '../support.ts';

const MARK = '\uFEFF';
const folder = mkdtempSync(join(tmpdir(), 'json-'));
afterAll(() => rmSync(folder, { recursive: true }));

function fileWith(content: unknown, name = 'file.json'): string {
  const path = join(folder, name);
  writeFileSync(path, `${MARK}${JSON.stringify(content)}`, { mode: 0o600 });
  return path;
}

describe('roundedNumberIn', () => {
  it.each([
    ['9007199254740991', false],
    ['-9007199254740991', false],
    ['9007199254740992', false],
    ['9007199254740993', true],
    ['-9007199254740993', true],
    ['1546130668394913822', true],
    ['1546130668394913822.0', true],
    ['1e3', false],
    ['1E+3', false],
    ['1e21', false],
    ['1.5e300', false],
    ['1e400', true],
    ['-1e400', true],
    ['1e-400', true],
    ['0e400', false],
    ['0.0', false],
    ['-0', false],
    ['0.1', false],
    ['0.10', false],
    ['10.000000000000000000000', false],
    ['100000000000000000000', false],
    ['0.30000000000000004', false],
    ['0.10000000000000001', false],
    ['0.1234567890123456789', true],
    ['3.141592653589793238', true],
    ['12345678901234567.5', true],
  ])('finds a rounded number in %s: %s', (literal, isRounded) => {
    expect(roundedNumberIn(literal)).toEqual(isRounded ? [] : undefined);
    expect(roundedNumberIn(`{"a":[0,{"b":${literal}}]}`)).toEqual(
      isRounded ? ['a', '1', 'b'] : undefined,
    );
  });

  it.each<[string, readonly string[] | undefined]>([
    ['{"a":"9007199254740993"}', undefined],
    ['{"9007199254740993":1}', undefined],
    ['{"a":"\\"9007199254740993"}', undefined],
    ['{"a\\\\":"\\\\","b":9007199254740993}', ['b']],
    ['{"a":{"b":[]},"c":[1,[2,9007199254740993]]}', ['c', '1', '1']],
    ['{"\\u0061":9007199254740993}', ['a']],
    ['{"a":[{"x":1},{"x":9007199254740993}]}', ['a', '1', 'x']],
    [' [ 1 , 9007199254740993 ] ', ['1']],
  ])('reads the structure of %s', (text, names) => {
    expect(roundedNumberIn(text)).toEqual(names);
  });

  it('agrees with whole numbers that are written as they were, wherever they stand', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }), fc.json(), (number, other) => {
        // A double may stand between two whole numbers and still be written as one of them.
        const isExact = String(number) === exact(number);
        const text = `[${other},{"n":${number}}]`;
        const found = roundedNumberIn(text);
        if (found?.[0] === '0') return;
        expect(found).toEqual(isExact ? undefined : ['1', 'n']);
      }),
      { ...runs(), examples: [[7809862796844229000n, '{}']] },
    );
  });
});

/** The shortest decimal of a double, without an exponent. */
function exact(number: bigint): string {
  const [digits = '', power = '0'] = String(Number(number)).replace('.', '').split('e+');
  const sign = digits.startsWith('-') ? 1 : 0;
  return power === '0' ? digits : digits.padEnd(Number(power) + 1 + sign, '0');
}

describe('a number that JSON rounds', () => {
  it('is refused by the service, which names the member', async () => {
    const { post } = serviceWith();
    const answer = await post(`{"scopes":["${SCOPE}"],"metadata":{"id":1546130668394913822}}`);

    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({
      code: 'invalid_request',
      details: { member: 'metadata.id' },
      message: expect.stringContaining('metadata.id'),
    });
    expect((await post(`{"scopes":["${SCOPE}"],"metadata":{"id":1546130668394}}`)).status).toBe(
      200,
    );
  });

  it.each([
    [2 ** 53, false],
    [-(2 ** 53), false],
    [1e21, false],
    [Number.MAX_SAFE_INTEGER, true],
    [0.1, true],
    [1.5, true],
  ])('is refused in metadata of a caller: %d is accepted: %s', (number, isAccepted) => {
    const reading = readMetadata({ a: [number] });
    expect(typeof reading === 'string' ? reading : 'ok').toMatch(
      isAccepted ? /^ok$/ : /^metadata\.a\.0 must be JSON; got .* rounded/,
    );
  });

  it('is refused in a file of the command line', () => {
    expect(() => parseJson('[{"kid":9007199254740993}]', 'keys.json')).toThrow(
      /^keys\.json: 0\.kid is a number that JSON rounds/,
    );
  });

  it('does not matter in an OpenAPI document', async () => {
    const path = join(folder, 'openapi.json');
    const paths = { '/orders': { get: { responses: {} } } };
    const servers = [{ url: 'https://shop.example' }];
    const document = { openapi: '3.1.0', info: { title: 'a', version: '1' }, servers, paths };
    writeFileSync(path, JSON.stringify(document).replace('{}', '{"x-max":9223372036854775807}'));

    expect((await loadCatalog([path], 'operation')).size).toBe(1);
  });
});

describe('a byte order mark', () => {
  it('is dropped once', () => {
    expect(parseJsonText(`${MARK}{"a":1}`)).toEqual({ a: 1 });
    expect(() => parseJsonText(`${MARK}${MARK}{}`)).toThrow(SyntaxError);
  });

  it('is accepted in files of keys, scopes, tokens and catalogs', async () => {
    expect(readJson(fileWith({ a: 1 }))).toEqual({ a: 1 });
    expect(readKeys(fileWith([K1]))).toEqual([K1]);
    expect((await readScopes(fileWith([SCOPE]), '--scope')).map(String)).toEqual([SCOPE]);
    expect(await readTokens(fileWith([{ id: 'a', scopes: [SCOPE] }]))).toHaveLength(1);
    expect((await loadCatalog([fileWith([SCOPE])], 'operation')).size).toBe(1);
  });

  it('is accepted in a body', async () => {
    const { post } = serviceWith();
    expect((await post(`${MARK}{"scopes":["${SCOPE}"]}`)).status).toBe(200);
  });
});

function serviceWith() {
  const { call } = setUpHttp({ catalog: null });
  return { post: (raw: string) => call('POST', '/token', { raw }) };
}

describe('the members of a text', () => {
  const members = (count: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`m${i}`, 1])));

  it.each<[string, string, boolean]>([
    ['8192 of them', members(8192), false],
    ['8193 of them', members(8193), true],
    ['8193 of them in a list', `[${members(8193)}]`, true],
    ['colons in a string', JSON.stringify(':'.repeat(10_000)), false],
    ['a string with escaped quotes', JSON.stringify(`"\\"${':'.repeat(10_000)}`), false],
    ['a string without an end', `["${':'.repeat(10_000)}`, false],
    ['none', '', false],
  ])('are too many: %s', (_, text, areTooMany) => {
    expect(hasTooManyMembers(text)).toBe(areTooMany);
  });
});
