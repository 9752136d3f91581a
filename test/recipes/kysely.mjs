import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';

/** Kysely on the pool of the store: both use the same connections. */
export async function addUser({ pool, tokens, table, name, fails }) {
  const db = new Kysely({ dialect: new PostgresDialect({ pool }) });
  return db.transaction().execute(async (trx) => {
    await trx.insertInto(table).values({ name }).execute();
    const connection = {
      query: ({ text, values = [] }) => trx.executeQuery(CompiledQuery.raw(text, [...values])),
    };
    const inside = tokens.in(connection);
    const token = await inside.issue({ account: name, scopes: ['GET:shop.example/orders'] });
    if (fails) throw new Error('rolled back');
    return token;
  });
}
