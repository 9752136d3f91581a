// Tokens in the PostgreSQL that you run, on as many nodes as you like, with reads served from memory for half a second.
import pg from 'pg';
import { generateKey, TokenService } from 'tokenwright';
import { migrate, PostgresTokenStore } from 'tokenwright/postgres';

const pool = new pg.Pool({
  connectionString: process.env['DATABASE_URL'],
  connectionTimeoutMillis: 2000, // both are unbounded by default
  statement_timeout: 2000,
});
await migrate(pool); // or by hand: npx tokenwright store migrate --print --store postgres://…

const tokens = new TokenService({
  store: new PostgresTokenStore(pool),
  keys: [generateKey()], // in production: one that is kept, and the same for all nodes
  prefix: 'acme',
  cache: { maxStaleMs: 500 },
});
const scope = 'GET:shop.example/orders';
const { id, value } = await tokens.issue({ account: 'acme', scopes: [scope] });
console.log((await tokens.verify(value, { scope })).ok); // true

// Takes effect here immediately, elsewhere when PostgreSQL reports it, and after 500 ms at the latest.
await tokens.revoke('acme', id);
console.log((await tokens.verify(value, { scope })).ok); // false

await tokens.close();
await pool.end();
