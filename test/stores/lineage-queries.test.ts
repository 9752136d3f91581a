import pg from 'pg';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { TokenService } from '../../src/service.ts';
import { PostgresTokenStore } from '../../src/stores/postgres/index.ts';
import { K1, SCOPE } from '../support.ts';
import { ENGINES } from './engine-places.ts';

const url = inject('servers').postgres;
const NEED = { scope: SCOPE };

describe.skipIf(url === undefined)('verify over PostgreSQL', () => {
  it.each([
    [0, 1],
    [1, 2],
    [7, 2],
  ])('of a token with %i ancestors takes this many queries: %i', async (ancestors, queries) => {
    const { tokens, chain, takeQueries } = await setUp(ancestors);

    expect(await tokens.allows(chain.at(-1) as string, NEED)).toBe(true);

    expect(takeQueries()).toBe(queries);
  });

  it('of eight tokens concurrently takes two queries for all of them', async () => {
    const { tokens, chain, takeQueries } = await setUp(7);

    const verdicts = await Promise.all(chain.map((value) => tokens.allows(value, NEED)));

    expect(verdicts).toEqual(chain.map(() => true));
    expect(takeQueries()).toBe(2);
  });
});

/** Tokens, each derived from the one before, and a counter of queries. */
async function setUp(ancestors: number) {
  const engine = ENGINES.find(({ name }) => name === 'PostgreSQL');
  const { name: tables } = (await engine?.newPlace()) ?? {};
  const pool = new pg.Pool({ connectionString: url, max: 5 });
  onTestFinished(() => pool.end());
  let queries = 0;
  const counting = Object.assign(Object.create(pool), {
    query(query: object) {
      queries += 1;
      return pool.query(query as pg.QueryConfig);
    },
  });
  const store = new PostgresTokenStore(counting, { tables });
  const tokens = new TokenService({ store, keys: [K1], prefix: 'acme' });
  const chain = [(await tokens.issue({ account: 'acme', scopes: [SCOPE] })).value];
  while (chain.length <= ancestors) {
    const { value } = await tokens.derive(chain.at(-1) as string, { scopes: [SCOPE] });
    chain.push(value);
  }
  const takeQueries = () => {
    const count = queries;
    queries = 0;
    return count;
  };
  takeQueries();
  return { tokens, chain, takeQueries };
}
