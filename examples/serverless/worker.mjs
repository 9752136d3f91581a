// Cloudflare Workers with Hyperdrive: a pool and a service for each request, closed after the answer.
import pg from 'pg';
import { TokenService } from 'tokenwright';
import { bearerGuard } from 'tokenwright/http';
import { PostgresTokenStore } from 'tokenwright/postgres';

export default {
  async fetch(request, env, ctx) {
    const pool = new pg.Pool({
      connectionString: env.HYPERDRIVE.connectionString,
      connectionTimeoutMillis: 2000,
      max: 5,
    });
    const tokens = new TokenService({
      store: new PostgresTokenStore(pool),
      keys: JSON.parse(env.KEYS), // a secret, from `npx tokenwright keys new`
      prefix: 'acme',
    });
    const guard = bearerGuard({ tokens, domain: 'shop.example', onError: console.error });
    try {
      const outcome = await guard(request);
      if (!outcome.ok) return outcome.response;
      return Response.json({ account: outcome.token.account });
    } finally {
      ctx.waitUntil(tokens.close().finally(() => pool.end()));
    }
  },
};
