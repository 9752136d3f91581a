// Logging requests with pino, so that no value of a token ever reaches the log.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import pino from 'pino';
import { generateKey, MemoryTokenStore, redact, TokenService } from 'tokenwright';
import { bearerGuard, safeUrl, sendResponse } from 'tokenwright/http';

const lines: string[] = []; // in production: standard output, as pino does by itself
const log = pino(
  {
    base: null,
    timestamp: false,
    redact: ['headers.authorization', 'headers.cookie'], // by the name of the member
    hooks: { streamWrite: redact }, // by the form of a value, wherever it stands
    serializers: { url: safeUrl },
  },
  { write: (line: string) => lines.push(line) },
);

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
  onEvent: ({ type, ...event }) => log.info(event, type), // by id, never with a value
});
const guard = bearerGuard({
  tokens,
  domain: 'orders.acme.example',
  onRefusal: ({ reason, needed }) => log.warn({ reason, needed }, 'refused'),
  onError: (error) => log.error(error),
});

const server = createServer(async (request, response) => {
  log.info({ url: request.url, headers: request.headers }, 'request');
  const outcome = await guard(request);
  if (!outcome.ok) return sendResponse(outcome.response, response);
  log.info(`a careless line with ${request.headers.authorization}`);
  response.end('[]');
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address() as AddressInfo;

const token = await tokens.issue({ account: 'ada', scopes: ['GET:orders.acme.example/orders'] });
const url = `http://127.0.0.1:${port}/orders?after=${token.id}&copy=${token.value}&code=hunter2`;
const response = await fetch(url, { headers: { authorization: `Bearer ${token.value}` } });
server.close();

console.log(response.status, lines.length); // 200 4
const printed = lines.join('').replaceAll(token.id, '<id>').replaceAll(token.masked, '<masked>');
console.log(printed.match(/"url":".*?"/)?.[0]); // "url":"/orders?after=<id>&copy=<masked>&code=…"
console.log(printed.match(/"authorization":".*?"/)?.[0]); // "authorization":"[Redacted]"
console.log(printed.match(/a careless line.*(?=")/)?.[0]); // a careless line with Bearer <masked>
console.log(printed.includes(token.value), printed.includes('hunter2')); // false false
