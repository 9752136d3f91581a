// Counting how tokens are used on many nodes, in the PostgreSQL that holds the tokens.
import pg from 'pg';
import { generateKey, TokenService } from 'tokenwright';
import { migrate, PostgresTokenStore } from 'tokenwright/postgres';

const pool = new pg.Pool({
  connectionString: process.env['DATABASE_URL'],
  connectionTimeoutMillis: 2000,
  statement_timeout: 2000,
});
await migrate(pool);

const store = new PostgresTokenStore(pool);
const tokens = new TokenService({
  store,
  keys: [generateKey()],
  prefix: 'acme',
  usage: { store: store.usage },
});
const scope = 'GET:shop.example/orders';
const { id, value } = await tokens.issue({ account: 'acme', scopes: [scope] });
await tokens.verify(value, { scope });
console.log((await tokens.get('acme', id))?.uses); // 1

await tokens.revoke('acme', id);
await tokens.close(); // writes the counts that are still in memory
await pool.end();
