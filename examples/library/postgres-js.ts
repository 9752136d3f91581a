// Issue a token in the transaction of postgres.js that adds your own row, so that both are stored, or neither.
import pg from 'pg';
import postgres from 'postgres';
import { generateKey, TokenService } from 'tokenwright';
import { fromPostgresJs, migrate, PostgresTokenStore } from 'tokenwright/postgres';

// The store works on pg, outside of your transactions: a small pool of its own is enough.
const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 5 });
await migrate(pool);
const tokens = new TokenService({
  store: new PostgresTokenStore(pool),
  keys: [generateKey()],
  prefix: 'acme',
});
const sql = postgres(process.env['DATABASE_URL'] ?? '');
const scopes = ['GET:shop.example/orders'];

async function signUp(name: string, isPaid: boolean): Promise<string> {
  return sql.begin(async (tx) => {
    await tx`CREATE TEMPORARY TABLE users (name text) ON COMMIT DROP`;
    await tx`INSERT INTO users ${tx({ name })}`;
    const { value } = await tokens.in(fromPostgresJs(tx)).issue({ account: name, scopes });
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
await Promise.all([sql.end(), pool.end()]);
