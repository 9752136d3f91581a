// What calls on a token cost this process, over each database server.
import { describe, expect, it } from 'vitest';
import { SORTED, slopeOfCalls } from '../growth.ts';
import {
  GENERATIONS,
  type Held,
  heldBy,
  STORED_SCOPES,
  serviceOver,
  VERBS,
} from '../service/growth-verbs.ts';
import { ENGINES, opened } from './engine-places.ts';

const SERVERS = ENGINES.filter(({ name }) => name !== 'SQLite' && name !== 'Redis Cluster');

describe.each(SERVERS)('the cost of calls on a token over $name', ({ isMissing, newPlace }) => {
  it.skipIf(isMissing).each(GENERATIONS)(
    'grows no faster than its scopes: each verb, generation %d',
    async (generation) => {
      const held = new Map<number, Held>();
      for (const size of STORED_SCOPES) {
        const tokens = serviceOver(opened(await newPlace()));
        held.set(size, await heldBy(tokens, generation, size));
      }

      const steep: string[] = [];
      for (const [name, call] of VERBS) {
        const surface = async (size: number) => () => call(held.get(size) as Held);
        const slope = await slopeOfCalls(surface, STORED_SCOPES, SORTED);
        if (slope >= SORTED) steep.push(`${name}: ${slope.toFixed(2)}`);
      }

      expect(steep).toEqual([]);
    },
    600_000,
  );
});
