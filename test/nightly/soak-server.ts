// The service of the soak run: on SQLite, over HTTP, and ready to say what it holds.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tokenHandler, toNodeListener } from '../../src/http/index.ts';
import { systemClock, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';

const [file = '', leak = ''] = process.argv.slice(2);
const kept: Buffer[] = [];
const store = SqliteTokenStore.open(file);
const tokens = new TokenService({
  store,
  keys: [{ kid: 'k1', secret: Uint8Array.from({ length: 32 }, (_, i) => i), status: 'active' }],
  prefix: 'acme',
  cache: { maxStaleMs: 1000, maxEntries: 1000 },
});
const authenticate = ({ username }: { username: string }) => username;
const handler = tokenHandler({ tokens, authenticate, introspection: { authenticate } });
const listener = toNodeListener(handler);
const server = createServer((request, response) => {
  // The control: what a listener that is never taken off keeps.
  if (leak === 'leak') kept.push(Buffer.alloc(32_768, 1));
  void listener(request, response);
});

/** What is in use when all that can be collected is. */
async function inUse(): Promise<{ bytes: number; handles: number }> {
  for (let turn = 0; turn < 10; turn++) {
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external } = process.memoryUsage();
  return { bytes: heapUsed + external, handles: process.getActiveResourcesInfo().length };
}

process.on('message', async (word) => {
  if (word === 'purge') await tokens.purge({ before: systemClock.now() });
  if (word === 'measure') process.send?.(await inUse());
});
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
