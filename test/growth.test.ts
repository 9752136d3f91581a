import { describe, expect, it } from 'vitest';
import { roundedNumberIn } from '../src/text/json.ts';
import { formats } from '../src/values/foreign.ts';
import { redactor } from '../src/values/redact.ts';
import { NEAR_LINEAR, type Surface, slopeOf } from './growth.ts';

const SIZES = [8000, 16_000, 32_000, 64_000];

describe('the cost of looking for rounded numbers', () => {
  it.each<[string, (size: number) => string]>([
    ['a text of backslashes', (size) => `["${'\\\\'.repeat(size)}",9007199254740993]`],
    ['a long list', (size) => `[${'1,'.repeat(size)}9007199254740993]`],
    ['a long number', (size) => `[${'1'.repeat(size)}]`],
    ['a number with many zeros', (size) => `[0.${'0'.repeat(size)}1]`],
    ['deep lists', (size) => `${'['.repeat(size)}1e400${']'.repeat(size)}`],
  ])('grows no faster than %s', (_, textOf) => {
    const surface: Surface = (size) => {
      const text = textOf(size);
      expect(roundedNumberIn(text)).toBeDefined();
      return () => roundedNumberIn(text);
    };

    expect(slopeOf(surface, SIZES, NEAR_LINEAR)).toBeLessThan(NEAR_LINEAR);
  });
});

describe('the cost of masking values', () => {
  const mask = redactor([
    formats.sanctum({ prefix: 'st_' }),
    formats.betterAuth(),
    formats.unkey({ prefix: 'unk' }),
    formats.prefixedApiKey({ prefix: 'my' }),
    formats.sha256({ pattern: /^old-[0-9A-Za-z]{30}$/ }),
  ]);

  it.each(['a', 'my_', 'a_', '|', '\\', '%25', 'my_a_0', `${'0aB'.repeat(13)}c|`, 'unk_1'])(
    'grows no faster than a text of many %j',
    (part) => {
      const surface: Surface = (size) => {
        const text = part.repeat(size / part.length);
        return () => mask(text);
      };

      expect(slopeOf(surface, SIZES, NEAR_LINEAR)).toBeLessThan(NEAR_LINEAR);
    },
  );
});
