// Limiting where a token may be used from, and how often.
import { createServer, type IncomingMessage } from 'node:http';
import { generateKey, MemoryLeaseStore, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard } from 'tokenwright/http';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  limits: { store: new MemoryLeaseStore() }, // with several processes, one of a database
});
const { id, value } = await tokens.issue({
  account: 'ada',
  scopes: ['GET:shop.example/orders'],
  limits: { addresses: ['127.0.0.0/8'], uses: 2 },
});

const guard = bearerGuard({
  tokens,
  domain: 'shop.example',
  // Clients connect to this server. Behind a proxy, this would be the address of the proxy.
  clientAddress: (request: IncomingMessage) => request.socket.remoteAddress,
  onError: (error) => console.error(error),
});
const server = createServer(async (request, response) => {
  const outcome = await guard(request);
  const refusal = outcome.ok ? undefined : outcome.response;
  response.writeHead(refusal?.status ?? 200).end(await refusal?.text());
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address() as { port: number };

const call = async () => {
  const headers = { authorization: `Bearer ${value}` };
  return (await fetch(`http://127.0.0.1:${port}/orders`, { headers })).status;
};
console.log(await call(), await call(), await call()); // 200 200 429

// Raising the limit adds to what is left.
await tokens.patch('ada', id, { limits: { addresses: ['127.0.0.0/8'], uses: 3 } });
console.log(await call(), await call()); // 200 429

await tokens.patch('ada', id, { limits: { addresses: ['10.0.0.0/8'] } });
console.log(await call()); // 403

server.close();
await tokens.close(); // gives back what was leased
