import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { remoteAddress, toNodeListener } from '../../src/http/index.ts';
import { MemoryTokenStore } from '../../src/stores/memory/index.ts';
import { basic, CATALOG, ORDERS, PASSWORD, type SetUpOptions, setUp } from './support.ts';

/** The slots of each kind: a stranger's address has 4 of them, a known one 16. */
const MAX_IN_FLIGHT = 64;
const HOSTILE_ADDRESSES = 16;
const CONNECTIONS_OF_EACH = 6;

/** For a machine with much else to do. */
const SOON = { timeout: 20_000 };

const servers: Server[] = [];
const sockets: Socket[] = [];

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

/** A service on a port, whose checks of the name `slow` never end. */
async function serving(options: SetUpOptions = {}) {
  const checks = { begun: 0 };
  const check = ({ username, password }: { username: string; password: string }) => {
    if (username === 'slow') {
      checks.begun += 1;
      return new Promise<null>(() => {});
    }
    return password === PASSWORD ? username : null;
  };
  const setting = setUp({
    authenticate: check,
    introspection: { authenticate: check },
    revocation: true,
    derivation: true,
    oauth: { issuer: 'https://auth.example', exchange: true },
    clientAddress: remoteAddress,
    maxInFlight: MAX_IN_FLIGHT,
    ...options,
  });
  const server = createServer(toNodeListener(setting.handler)).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { ...setting, port, checks };
}

/** Sends a text from an address of the loopback network; resolves to the status, if one comes. */
function send(port: number, localAddress: string, text: string): Promise<number> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  sockets.push(socket);
  socket.on('error', () => {});
  socket.write(text);
  return new Promise((resolve) => {
    socket.on('data', (data) => resolve(Number(/^HTTP\/1.1 (\d+)/.exec(data.toString())?.[1])));
  });
}

function request(method: string, path: string, headers: readonly string[], body = ''): string {
  const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  return [`${method} ${path} HTTP/1.1`, 'Host: x', ...headers, ...length, '', body].join('\r\n');
}

const FORM = 'Content-Type: application/x-www-form-urlencoded';
const JSON_TYPE = 'Content-Type: application/json';
const by = (user: string, password = PASSWORD) => `Authorization: ${basic(user, password)}`;
const slowForm = (path: string, ...more: readonly string[]) =>
  `${request('POST', path, [FORM, 'Content-Length: 100', ...more])}token=`;

/** Calls of people with credentials, and of a stranger. */
const CALLS = {
  introspect: (user = 'shop') => request('POST', '/introspect', [FORM, by(user)], 'token=x'),
  list: (user = 'ada') => request('GET', '/token', [by(user)]),
  issue: () => request('POST', '/token', [JSON_TYPE, by('ada')], `{"scopes":["${ORDERS}"]}`),
  revoke: () => request('POST', '/revoke', [FORM], 'token=x'),
  exchange: () => request('POST', '/oauth/token', [FORM], 'grant_type=x'),
};

function flood(port: number, text: string): number[] {
  const seen: number[] = [];
  for (let i = 0; i < HOSTILE_ADDRESSES; i++) {
    for (let j = 0; j < CONNECTIONS_OF_EACH; j++) {
      void send(port, `127.0.1.${i + 1}`, text).then((status) => seen.push(status));
    }
  }
  return seen;
}

const REFUSED = HOSTILE_ADDRESSES * (CONNECTIONS_OF_EACH - MAX_IN_FLIGHT / 16);

describe('slow forms without credentials, from sixteen addresses', () => {
  it.each([
    ['/revoke', CALLS.revoke, CALLS.exchange, 400],
    ['/oauth/token', CALLS.exchange, CALLS.revoke, 200],
  ])('for %s take no slot of callers of another kind', async (path, same, other, status) => {
    const { port } = await serving();
    const refused = flood(port, slowForm(path));
    await expect.poll(() => refused.length, SOON).toBe(REFUSED);

    const at = '127.0.0.1';
    for (const call of [CALLS.introspect(), CALLS.list(), CALLS.issue()]) {
      expect(await send(port, at, call)).toBe(200);
    }
    expect(await send(port, at, other())).toBe(status);
    // Control: the flood has all slots of its kind.
    expect(await send(port, at, same())).toBe(503);
    expect(new Set(refused)).toEqual(new Set([503]));
  });

  it('from fewer addresses leave slots to another stranger', async () => {
    const { port } = await serving();
    const held = Array.from({ length: 4 }, () => send(port, '127.0.1.1', slowForm('/revoke')));
    expect(await send(port, '127.0.1.1', CALLS.revoke())).toBe(503);

    expect(await send(port, '127.0.0.1', CALLS.revoke())).toBe(200);
    expect(held).toHaveLength(4);
  });
});

describe('sign-ins that wait to be checked, from sixteen addresses', () => {
  it.each<[string, string, typeof CALLS.list, () => string]>([
    ['accounts', request('GET', '/token', [by('slow')]), CALLS.list, CALLS.introspect],
    ['resource servers', slowForm('/introspect', by('slow')), CALLS.introspect, CALLS.list],
  ])('of %s keep out strangers of their kind alone', async (_, text, same, other) => {
    const { port, checks } = await serving();
    expect(await send(port, '127.0.0.1', same())).toBe(200);
    const refused = flood(port, text);
    await expect.poll(() => checks.begun, SOON).toBe(MAX_IN_FLIGHT);
    expect(await send(port, '127.0.0.1', other())).toBe(200);
    expect(await send(port, '127.0.0.1', CALLS.revoke())).toBe(200);
    // Whoever has shown good credentials comes first, from any address.
    expect(await send(port, '127.0.0.1', same())).toBe(200);
    expect(await send(port, '127.0.0.2', same())).toBe(200);
    // Control: nobody else of this kind gets in.
    expect(await send(port, '127.0.0.1', same('bob'))).toBe(503);
    expect(refused.filter((status) => status !== 503)).toEqual([]);
  });

  it('of one address wait for each other, up to a share of those who wait', async () => {
    const { port, checks } = await serving();
    const call = request('GET', '/token', [by('slow')]);
    const held = Array.from({ length: 4 + 12 }, () => send(port, '127.0.1.1', call));
    await expect.poll(() => checks.begun, SOON).toBe(4);

    await expect.poll(() => send(port, '127.0.1.1', CALLS.list()), SOON).toBe(503);
    expect(await send(port, '127.0.0.1', CALLS.list())).toBe(200);
    expect({ begun: checks.begun, held: held.length }).toEqual({ begun: 4, held: 16 });
  });
});

describe('a bearer', () => {
  it('takes no slots of the account', async () => {
    const store = new MemoryTokenStore();
    const { port, issue } = await serving({ store, catalog: CATALOG });
    const { value } = await issue('ada', [ORDERS]);
    const bearer = `Authorization: Bearer ${value}`;
    const derive = request('POST', '/token/derive', [JSON_TYPE, bearer, 'Content-Length: 100']);
    const held = Array.from({ length: 16 }, (_, i) =>
      send(port, `127.0.1.${i + 1}`, `${derive}{"scopes"`),
    );
    const whole = request('POST', '/token/derive', [JSON_TYPE, bearer], `{"scopes":["${ORDERS}"]}`);
    // Control: the bearers of the account have no slot left.
    await expect.poll(() => send(port, '127.0.0.1', whole), SOON).toBe(503);

    expect(await send(port, '127.0.0.1', CALLS.issue())).toBe(200);
    expect(held).toHaveLength(16);
  });
});
