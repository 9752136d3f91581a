// What a call on a token costs this process, over each database server.
import { describe, expect, it } from 'vitest';
import { SORTED, slopeOfCalls } from '../growth.ts';
import { GENERATIONS, onToken, STORED_SCOPES, VERBS } from '../service/growth-verbs.ts';
import { ENGINES, opened } from './engine-places.ts';

const ROWS = VERBS.flatMap(([name, call]) =>
  GENERATIONS.map((generation) => [name, generation, call] as const),
);

describe.each(ENGINES.filter(({ name }) => name !== 'SQLite'))(
  'the cost of a call on a token over $name',
  ({ isMissing, newPlace }) => {
    it.skipIf(isMissing).each(ROWS)(
      'grows no faster than its scopes: %s, generation %d',
      async (_, generation, call) => {
        const surface = onToken(call, generation, async () => opened(await newPlace()));
        expect(await slopeOfCalls(surface, STORED_SCOPES, SORTED)).toBeLessThan(SORTED);
      },
    );
  },
);
