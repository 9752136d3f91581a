import postgres from 'postgres';
import { TokenService } from '../../src/index.ts';

/** postgres.js uses its own pool, separate from the one of the store. */
export async function addUser({ url, store, options, table, name, fails }) {
  const sql = postgres(url, { max: 2 });
  try {
    return await sql.begin(async (tx) => {
      await tx`INSERT INTO ${tx(table)} ${tx({ name })}`;
      const connection = {
        query: async ({ text, values = [] }) => ({ rows: await tx.unsafe(text, [...values]) }),
      };
      const inside = new TokenService({ ...options, store: store.in(connection) });
      const token = await inside.issue({ account: name, scopes: ['GET:shop.example/orders'] });
      if (fails) throw new Error('rolled back');
      return token;
    });
  } finally {
    await sql.end();
  }
}
