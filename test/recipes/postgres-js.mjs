import postgres from 'postgres';

/** postgres.js uses its own pool, separate from the one of the store. */
export async function addUser({ url, tokens, table, name, fails }) {
  const sql = postgres(url, { max: 2 });
  try {
    return await sql.begin(async (tx) => {
      await tx`INSERT INTO ${tx(table)} ${tx({ name })}`;
      const connection = {
        query: async ({ text, values = [] }) => ({ rows: await tx.unsafe(text, [...values]) }),
      };
      const inside = tokens.in(connection);
      const token = await inside.issue({ account: name, scopes: ['GET:shop.example/orders'] });
      if (fails) throw new Error('rolled back');
      return token;
    });
  } finally {
    await sql.end();
  }
}
