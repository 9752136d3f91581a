// A limiter by address in front of the guard, against floods, and a limit of one token behind it.
import { createServer, type IncomingMessage } from 'node:http';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { generateKey, MemoryLeaseStore, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard, forwardedAddress } from 'tokenwright/http';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  limits: { store: new MemoryLeaseStore() },
});
// Both take the client that the proxy names; here the proxy is this machine.
const clientAddress = forwardedAddress({ proxies: ['127.0.0.1'] });
const guard = bearerGuard({ tokens, domain: 'shop.example', clientAddress });
const limiter = new RateLimiterMemory({ points: 4, duration: 3600 });

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

const issue = async (uses: number) => {
  const limits = { rate: { uses, seconds: 86_400 } };
  return tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'], limits });
};
const [small, large] = [await issue(2), await issue(1000)];

// The limit of a token holds wherever its bearer calls from.
console.log(await call(small.value, '192.0.2.1')); // 200 welcome
console.log(await call(small.value, '192.0.2.2')); // 200 welcome
console.log(await call(small.value, '192.0.2.3')); // 429 limit_exceeded
console.log(await call(large.value, '192.0.2.3')); // 200 welcome

// The limiter in front counts all calls of an address, also those without a valid token.
for (let i = 0; i < 4; i++) await call('guess', '203.0.113.9');
console.log(await call('guess', '203.0.113.9')); // 429 too many requests from your address
console.log(await call(large.value, '192.0.2.4')); // 200 welcome

server.close();
await tokens.close();
