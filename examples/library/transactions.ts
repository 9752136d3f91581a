// Create a user and a token in one transaction of your own: both are stored, or neither.
import pg from 'pg';
import { generateKey, TokenService } from 'tokenwright';
import { migrate, PostgresTokenStore } from 'tokenwright/postgres';

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] });
await migrate(pool);
const tokens = new TokenService({
  store: new PostgresTokenStore(pool),
  keys: [generateKey()],
  prefix: 'acme',
});
const scopes = ['GET:shop.example/orders'];

async function signUp(name: string, isPaid: boolean): Promise<string> {
  const client = await pool.connect();
  let isBroken = true;
  try {
    await client.query('BEGIN');
    await client.query('CREATE TEMPORARY TABLE users (name text) ON COMMIT DROP');
    await client.query('INSERT INTO users VALUES ($1)', [name]);
    const { value } = await tokens.in(client).issue({ account: name, scopes });
    if (!isPaid) throw new Error('no payment');
    await client.query('COMMIT');
    isBroken = false;
    return value;
  } finally {
    // Closing the connection rolls back, also if a statement still hangs.
    client.release(isBroken);
  }
}

const value = await signUp('ada', true);
console.log((await tokens.verify(value, { scope: 'GET:shop.example/orders' })).ok); // true
await signUp('bob', false).catch((error: Error) => console.log(error.message)); // no payment
console.log((await tokens.list({ account: 'bob' })).tokens.length); // 0

await tokens.revokeAll('ada');
await tokens.close();
await pool.end();
