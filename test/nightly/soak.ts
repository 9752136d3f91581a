// A service over HTTP on SQLite under mixed calls for as long as it takes: all are answered right, and
// afterwards it holds no more than before. `node test/nightly/soak.ts <calls>`
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request as open } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What a service may hold more than at first: its cache and statistics fill up. */
const BOUND_BYTES = 16 * 1_048_576;
const CLIENTS = 16;
const CALLS_A_ROUND = 10;
const ROUNDS_A_PURGE = 200;
const SCOPE = 'GET:shop.example/orders';

export interface SoakReport {
  readonly calls: number;
  /** The first things that were wrong. */
  readonly wrong: readonly string[];
  readonly grownBytes: number;
  readonly grownHandles: number;
}

/** What the server says next; it may also end, and then it says no more. */
function told(server: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    server.once('message', resolve);
    server.once('exit', () => reject(new Error('the server has ended')));
  });
}

interface InUse {
  readonly bytes: number;
  readonly handles: number;
}

/** Makes so many calls, after some more that warm up. */
export async function soak(calls: number, { leaks }: { leaks: boolean }): Promise<SoakReport> {
  const folder = mkdtempSync(join(tmpdir(), 'tokenwright-soak-'));
  const server = fork(
    join(import.meta.dirname, 'soak-server.ts'),
    [join(folder, 'tokens.db'), ...(leaks ? ['leak'] : [])],
    { execArgv: ['--expose-gc'] },
  );
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  try {
    const port = (await told(server)) as number;
    const wrong: string[] = [];
    await work(Math.max(calls / 10, 2 * CLIENTS * CALLS_A_ROUND), { port, agent, server, wrong });
    const before = await measure(server);
    await work(calls, { port, agent, server, wrong });
    const after = await measure(server);
    return {
      calls,
      wrong: wrong.slice(0, 10),
      grownBytes: after.bytes - before.bytes,
      grownHandles: after.handles - before.handles,
    };
  } finally {
    agent.destroy();
    if (server.connected) {
      server.disconnect();
      await once(server, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(server: ChildProcess): Promise<InUse> {
  server.send('measure');
  return (await told(server)) as InUse;
}

interface Bench {
  readonly port: number;
  readonly agent: Agent;
  readonly server: ChildProcess;
  readonly wrong: string[];
}

async function work(calls: number, bench: Bench): Promise<void> {
  let rounds = Math.ceil(calls / CALLS_A_ROUND);
  const client = async (account: string) => {
    while (rounds-- > 0) {
      await round(account, bench);
      if (rounds % ROUNDS_A_PURGE === 0) bench.server.send('purge');
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(`account${i}`)));
}

/** The life of a token, in ten calls. */
async function round(account: string, bench: Bench): Promise<void> {
  const call = (method: string, path: string, body?: object | string) =>
    exchange({ account, method, path, body }, bench);
  const expectStatus = (what: string, status: number, expected: number) => {
    if (status !== expected) bench.wrong.push(`${what}: ${status}`);
  };
  const isActive = async (value: string) =>
    (await call('POST', '/introspect', `token=${value}`)).body['active'];

  const issued = await call('POST', '/token', { scopes: [SCOPE], ttl: 3600 });
  expectStatus('issue', issued.status, 200);
  const { id, token: value } = issued.body as { id: string; token: string };
  if ((await isActive(value)) !== true) bench.wrong.push('a new token is not active');
  expectStatus('get', (await call('GET', `/token/${id}`)).status, 200);
  expectStatus('list', (await call('GET', '/token?limit=10')).status, 200);
  expectStatus('put', (await call('PUT', `/token/${id}`, { scopes: [SCOPE] })).status, 200);
  expectStatus('bad put', (await call('PUT', `/token/${id}`, { scopes: ['x'] })).status, 422);
  const rotated = await call('POST', `/token/${id}/rotate`);
  expectStatus('rotate', rotated.status, 200);
  if ((await isActive(value)) !== false) bench.wrong.push('a rotated value is active');
  expectStatus('revoke', (await call('DELETE', `/token/${id}`)).status, 200);
  const last = String(rotated.body['token']);
  if ((await isActive(last)) !== false) bench.wrong.push('a revoked token is active');
}

interface Sent {
  readonly account: string;
  readonly method: string;
  readonly path: string;
  readonly body?: object | string | undefined;
}

function exchange(
  { account, method, path, body }: Sent,
  { port, agent }: Bench,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const isForm = typeof body === 'string';
  const text = isForm ? body : JSON.stringify(body);
  const type = isForm ? 'application/x-www-form-urlencoded' : 'application/json';
  const headers = {
    authorization: `Basic ${Buffer.from(`${account}:x`).toString('base64')}`,
    ...(text !== undefined && { 'content-type': type, 'content-length': Buffer.byteLength(text) }),
  };
  return new Promise((resolve, reject) => {
    const sent = open({ host: '127.0.0.1', port, agent, method, path, headers }, (response) => {
      let received = '';
      response.setEncoding('utf8');
      response.on('data', (part) => {
        received += part;
      });
      response.on('end', () => {
        const answer = received === '' ? {} : JSON.parse(received);
        resolve({ status: response.statusCode ?? 0, body: answer });
      });
    });
    sent.on('error', reject);
    sent.end(text);
  });
}

/** What is wrong with a run, in a line; empty where nothing is. */
export function complaintOf({ wrong, grownBytes, grownHandles }: SoakReport): string {
  const parts = [...wrong];
  if (grownBytes > BOUND_BYTES)
    parts.push(`${(grownBytes / 1_048_576).toFixed(1)} MiB more in use`);
  // A connection of a client may be new.
  if (grownHandles > 2 * CLIENTS) parts.push(`${grownHandles} handles more`);
  return parts.join('; ');
}

if (import.meta.main) {
  const report = await soak(Number(process.argv[2] ?? 10_000), { leaks: false });
  const complaint = complaintOf(report);
  process.stdout.write(`${JSON.stringify(report)}\n${complaint}\n`);
  process.exitCode = complaint === '' ? 0 : 1;
}
