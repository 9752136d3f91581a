// Limiting where a token may be used from and how often, with a limiter by address in front, against floods.
import { createServer, type IncomingMessage } from 'node:http';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard, forwardedAddress } from 'tokenwright/http';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  limits: true,
});
// Both take the client that the proxy names; here the proxy is this machine.
const clientAddress = forwardedAddress({ proxies: ['127.0.0.1'] });
const guard = bearerGuard({
  tokens,
  domain: 'shop.example',
  clientAddress,
  onError: console.error,
});
const limiter = new RateLimiterMemory({ points: 8, duration: 3600 });

/** Says why a request is refused, if it is; the limiter first, since it costs least. */
async function refusalOf(request: IncomingMessage): Promise<Response | undefined> {
  try {
    // Requests whose client is unknown share one count.
    await limiter.consume(clientAddress(request) ?? 'unknown');
  } catch (spent) {
    if (spent instanceof Error) throw spent;
    return new Response('too many requests from your address', { status: 429 });
  }
  return (await guard(request)).response;
}

const server = createServer(async (request, response) => {
  const refusal = await refusalOf(request);
  response.writeHead(refusal?.status ?? 200).end((await refusal?.text()) ?? 'welcome');
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address() as { port: number };

const call = async (value: string, client: string) => {
  const headers = { authorization: `Bearer ${value}`, 'x-forwarded-for': client };
  const response = await fetch(`http://127.0.0.1:${port}/orders`, { headers });
  const text = await response.text();
  return `${response.status} ${text.startsWith('{') ? JSON.parse(text).code : text}`;
};

const { id, value } = await tokens.issue({
  account: 'ada',
  scopes: ['GET:shop.example/orders'],
  limits: { addresses: ['192.0.2.0/24'], uses: 2 },
});

// The limit of a token holds wherever its bearer calls from.
console.log(await call(value, '192.0.2.1')); // 200 welcome
console.log(await call(value, '192.0.2.2')); // 200 welcome
console.log(await call(value, '192.0.2.3')); // 429 limit_exceeded

// Raising the limit adds to what is left.
await tokens.patch('ada', id, { limits: { addresses: ['192.0.2.0/24'], uses: 3 } });
console.log(await call(value, '192.0.2.1')); // 200 welcome
console.log(await call(value, '192.0.2.1')); // 429 limit_exceeded

await tokens.patch('ada', id, { limits: { addresses: ['10.0.0.0/8'] } });
console.log(await call(value, '192.0.2.1')); // 403 address_denied

// The limiter in front counts all calls of an address, also those without a valid token.
for (let i = 0; i < 8; i++) await call('guess', '203.0.113.9');
console.log(await call('guess', '203.0.113.9')); // 429 too many requests from your address

server.close();
await tokens.close(); // gives back what was leased
