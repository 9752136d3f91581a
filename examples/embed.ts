// The token service inside your own server: SQLite, a catalog, one account.
import { createServer } from 'node:http';
import { generateKey, TokenService } from 'tokenwright';
import { fixedAccounts, tokenHandler, toNodeListener } from 'tokenwright/http';
import { ScopeCatalog } from 'tokenwright/scope';
import { SqliteTokenStore } from 'tokenwright/sqlite';

const tokens = new TokenService({
  store: SqliteTokenStore.open(process.env['DATABASE'] ?? ':memory:'),
  keys: [generateKey()], // in production: one that is kept, and the same for all processes
  prefix: 'acme',
  catalog: ScopeCatalog.from(['GET:shop.example/orders', 'POST:shop.example/orders']),
});
const authenticate = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);
const handler = tokenHandler({ tokens, authenticate, basePath: '/auth' });

const server = createServer(toNodeListener(handler)).listen(0, '127.0.0.1', async () => {
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const response = await fetch(`http://127.0.0.1:${port}/auth/token`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${btoa('ada:correct horse')}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ scopes: ['*:shop.example/*'], ttl: 3600 }),
  });
  console.log(response.status); // 200
  const { scopes } = (await response.json()) as { scopes: string[] };
  console.log(scopes.join(' ')); // GET:shop.example/orders POST:shop.example/orders
  server.close();
  await tokens.close();
});
