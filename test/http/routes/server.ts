// A service in a separate process. Over IPC it reports how long its event loop was held and how much CPU
// time it took: node test/http/routes/server.ts CATALOG_SIZE
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tokenHandler, toNodeListener } from '../../../src/http/index.ts';
import { ScopeCatalog } from '../../../src/scope/index.ts';
import { TokenService } from '../../../src/service.ts';
import { SqliteTokenStore } from '../../../src/stores/sqlite/index.ts';
import { referenceMs, stopwatch } from '../../growth.ts';
import { K1 } from '../../support.ts';
import { entries } from './entries.ts';

const tokens = new TokenService({
  store: SqliteTokenStore.open(':memory:'),
  keys: [K1],
  prefix: 'acme',
  reveal: 'always',
  catalog: ScopeCatalog.from(entries(Number(process.argv[2]))),
  quotas: { tokensPerAccount: 1_000_000 },
});
const authenticate = ({ username }: { readonly username: string }) => username;
const handler = tokenHandler({
  tokens,
  authenticate,
  introspection: { authenticate },
  revocation: true,
});
const server = createServer(toNodeListener(handler));
// On a busy machine the next call may come after the default keep-alive timeout of five seconds.
server.keepAliveTimeout = 0;

/** How often it checks how long the event loop was held. */
const LOOK_MS = 1;

/**
 * An order over IPC: report the measurements since the last order, measure the reference work, too,
 * issue tokens, or hold the event loop for that many units of the reference work.
 */
export type Order =
  | { readonly measure: 'calls' | 'reference' }
  | { tokens: number }
  | { hold: number };

/** The answer to an order; `referenceMs` is NaN unless the order asks for it. */
export interface Measurements {
  readonly longestMs: number;
  readonly cpuMs: number;
  readonly referenceMs: number;
}

let longestMs = 0;
let sinceLook = stopwatch();
let before = process.cpuUsage();

function look(): void {
  longestMs = Math.max(longestMs, sinceLook());
  sinceLook = stopwatch();
}

process.on('message', async (order: Order) => {
  look();
  const { user, system } = process.cpuUsage(before);
  const took = { longestMs, cpuMs: (user + system) / 1000 };
  if ('tokens' in order) {
    for (let i = 0; i < order.tokens; i++) {
      await tokens.issue({ account: 'many', scopes: entries(1) });
    }
  }
  const isAsked = 'measure' in order && order.measure === 'reference';
  process.send?.({
    ...took,
    referenceMs: isAsked ? referenceMs() : Number.NaN,
  } satisfies Measurements);
  longestMs = 0;
  before = process.cpuUsage();
  sinceLook = stopwatch();
  if ('hold' in order) for (let i = 0; i < order.hold; i++) referenceMs();
});

server.listen(0, '127.0.0.1', () => {
  setInterval(look, LOOK_MS);
  process.send?.({ port: (server.address() as AddressInfo).port });
});
