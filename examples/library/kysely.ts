// Kysely: issue a token in the transaction that adds your own row, so that both are stored, or neither.
import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import { generateKey, TokenService } from 'tokenwright';
import { fromKysely, migrate, PostgresTokenStore } from 'tokenwright/postgres';

interface Database {
  users: { name: string };
}

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] });
await migrate(pool);
const tokens = new TokenService({
  store: new PostgresTokenStore(pool),
  keys: [generateKey()],
  prefix: 'acme',
});
const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
const scopes = ['GET:shop.example/orders'];

async function signUp(name: string, isPaid: boolean): Promise<string> {
  return db.transaction().execute(async (trx) => {
    await sql`CREATE TEMPORARY TABLE users (name text) ON COMMIT DROP`.execute(trx);
    await trx.insertInto('users').values({ name }).execute();
    const { value } = await tokens.in(fromKysely(trx)).issue({ account: name, scopes });
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
await db.destroy(); // ends the pool, too
