import { drizzle } from 'drizzle-orm/node-postgres';
import { pgTable, text } from 'drizzle-orm/pg-core';

/** Drizzle on a connection from the pool of the store. */
export async function addUser({ pool, tokens, table, name, fails }) {
  const users = pgTable(table, { name: text() });
  const client = await pool.connect();
  try {
    return await drizzle(client).transaction(async (tx) => {
      await tx.insert(users).values({ name });
      const inside = tokens.in(client);
      const token = await inside.issue({ account: name, scopes: ['GET:shop.example/orders'] });
      if (fails) throw new Error('rolled back');
      return token;
    });
  } finally {
    client.release();
  }
}
