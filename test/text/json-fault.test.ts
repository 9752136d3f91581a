import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonFault } from '../../src/text/json-fault.ts';
import { runs } from '../laws.ts';

describe('jsonFault', () => {
  it.each([
    ['', 1, 1],
    [' \n', 2, 1],
    ['{', 1, 2],
    ['[1,]', 1, 4],
    ['[1 2]', 1, 4],
    ['[]]', 1, 3],
    ['{"a":1,}', 1, 8],
    ['{"a" 1}', 1, 6],
    ['{a: 1}', 1, 2],
    ["['a']", 1, 2],
    ['{\n  "a": 1\n  "b": 2\n}', 3, 3],
    ['{\r\n  "a": tru\r\n}', 2, 8],
    ['[01]', 1, 2],
    ['[1.]', 1, 2],
    ['[.5]', 1, 2],
    ['[NaN]', 1, 2],
    ['["a\nb"]', 1, 4],
    ['["a\tb"]', 1, 4],
    ['["\\x"]', 1, 3],
    ['["\\u12"]', 1, 3],
    ['["open', 1, 7],
    ['// a comment\n[]', 1, 1],
    ['[}', 1, 2],
    ['{"a":[1}', 1, 8],
    ['"a" "b"', 1, 5],
  ])('finds the first fault of %j in line %d, column %d', (text, line, column) => {
    expect(() => JSON.parse(text)).toThrow();
    expect(jsonFault(text)).toEqual({ line, column });
  });

  it.each(['1', '-0.5e+3', '""', '"\\u00e9\\n"', 'null', '[]', '{}', ' [ [ ] , { "a" : { } } ]\n'])(
    'finds none in %j',
    (text) => {
      expect(() => JSON.parse(text)).not.toThrow();
      expect(jsonFault(text)).toBeUndefined();
    },
  );

  it('finds a fault in exactly the texts that are not JSON', () => {
    const part = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '1',
      '-',
      'true',
      ' ',
      '\n',
      '\\',
    );
    const broken = fc.array(part, { maxLength: 12 }).map((parts) => parts.join(''));
    const changed = fc
      .tuple(fc.json(), fc.nat(), fc.constantFrom('', ',', '"', '}'))
      .map(([json, at, sign]) => json.slice(0, at % (json.length + 1)) + sign);
    fc.assert(
      fc.property(fc.oneof(broken, changed, fc.json()), (text) => {
        const isJson = parses(text);
        expect(jsonFault(text) === undefined).toBe(isJson);
      }),
      runs(),
    );
  });
});

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
