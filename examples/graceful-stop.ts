// A server of your own that stops without losing a call: the call in progress is answered first.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { fixedAccounts, gracefulStop, tokenHandler, toNodeListener } from 'tokenwright/http';

const store = new MemoryTokenStore();
const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
const authenticate = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);

const server = createServer(toNodeListener(tokenHandler({ tokens, authenticate })));
const stop = gracefulStop(server, { graceMs: 5000 }); // before it listens
server.listen(0, '127.0.0.1');

async function end(): Promise<number> {
  const cut = await stop();
  await tokens.close();
  return cut;
}
const ended = once(process, 'SIGTERM').then(end);

await once(server, 'listening');
const { port } = server.address() as AddressInfo;
const authorization = `Basic ${btoa('ada:correct horse')}`;
const call = fetch(`http://127.0.0.1:${port}/token`, { headers: { authorization } });
await once(server, 'request');
process.kill(process.pid, 'SIGTERM'); // what a supervisor does
const { status } = await call;
console.log(status); // 200
console.log(`${await ended} calls were cut off`); // 0 calls were cut off
