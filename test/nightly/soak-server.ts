// The service of the soak run: tokenwright over HTTP on SQLite. Reports its memory and handles on request.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tokenHandler, toNodeListener } from '../../src/http/index.ts';
import { systemClock, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';

const [file = '', leak = ''] = process.argv.slice(2);
const leaked: Buffer[] = [];
const store = SqliteTokenStore.openFile(file);
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
  // The control leaks on each call, like a listener that is never removed.
  if (leak === 'leak') leaked.push(Buffer.alloc(32_768, 1));
  void listener(request, response);
});

/** Memory and handles in use after garbage collection. */
async function inUse(): Promise<{ bytes: number; handles: number }> {
  for (let turn = 0; turn < 10; turn++) {
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external } = process.memoryUsage();
  return { bytes: heapUsed + external, handles: process.getActiveResourcesInfo().length };
}

process.on('message', async (command) => {
  if (command === 'purge') await tokens.purge({ before: systemClock.now() });
  if (command === 'measure') process.send?.(await inUse());
});
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
