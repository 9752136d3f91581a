// An API in a separate process that guards its routes with the store of a running service. Arguments: the
// data folder of that service, and optionally a format of foreign values, as in --foreign. It writes its
// usage counts when it is stopped.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadKeys } from '../../../src/app/server/files/key-file.ts';
import { FORMATS } from '../../../src/app/server/settings.ts';
import { bearerGuard, sendResponse } from '../../../src/http/index.ts';
import { TokenService } from '../../../src/index.ts';
import { SqliteTokenStore } from '../../../src/stores/sqlite/index.ts';

const [, , data = '', format = ''] = process.argv;
const tokens = new TokenService({
  store: SqliteTokenStore.open(data),
  usage: true,
  keys: loadKeys(data),
  prefix: 'tw',
  foreign: format === '' ? [] : FORMATS.read([format], 'format'),
});
const guard = bearerGuard({ tokens, domain: 'orders.acme.example' });

const server = createServer(async (request, response) => {
  const outcome = await guard(request);
  if (!outcome.ok) return sendResponse(outcome.response, response);
  response.end(`orders of ${outcome.token.account}\n`);
}).listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});

process.on('SIGTERM', async () => {
  server.close();
  server.closeAllConnections();
  await tokens.close();
});
