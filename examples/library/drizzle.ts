// Drizzle: issue a token in the transaction that adds your own row, so that both are stored, or neither.
import { drizzle } from 'drizzle-orm/node-postgres';
import { pgTable, text } from 'drizzle-orm/pg-core';
import pg from 'pg';
import { generateKey, TokenService } from 'tokenwright';
import { fromDrizzle, migrate, PostgresTokenStore } from 'tokenwright/postgres';

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] });
await migrate(pool);
const tokens = new TokenService({
  store: new PostgresTokenStore(pool),
  keys: [generateKey()],
  prefix: 'acme',
});
const db = drizzle(pool);
const users = pgTable('users', { name: text() });
const scopes = ['GET:shop.example/orders'];

async function signUp(name: string, isPaid: boolean): Promise<string> {
  return db.transaction(async (tx) => {
    await tx.execute('CREATE TEMPORARY TABLE users (name text) ON COMMIT DROP');
    await tx.insert(users).values({ name });
    const { value } = await tokens.in(fromDrizzle(tx)).issue({ account: name, scopes });
    if (!isPaid) throw new Error('no payment');
    return value;
  });
}

const value = await signUp('ada', true);
console.log((await tokens.verify(value, { scope: 'GET:shop.example/orders' })).ok); // true
await signUp('bob', false).catch((error: Error) => console.log(error.message)); // no payment
console.log((await tokens.list({ account: 'bob' })).tokens.length); // 0

await tokens.revokeAll('ada');
await tokens.close();
await pool.end();
