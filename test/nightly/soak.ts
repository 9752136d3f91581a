// Sends mixed calls to a service over HTTP on SQLite, checks every answer, and compares the memory and
// handles of the service before and after. Run it with `node test/nightly/soak.ts <calls>`.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request as open } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Allowed growth: the cache and the statistics fill up. */
const BOUND_BYTES = 16 * 1_048_576;
const CLIENTS = 16;
const CALLS_A_ROUND = 10;
const ROUNDS_A_PURGE = 200;
const SCOPE = 'GET:shop.example/orders';

export interface SoakReport {
  readonly calls: number;
  /** The first wrong answers. */
  readonly wrong: readonly string[];
  readonly grownBytes: number;
  readonly grownHandles: number;
}

/** The next message of the server. Rejects if the server exits first. */
function nextMessage(server: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    server.once('message', resolve);
    server.once('exit', () => reject(new Error('the server has ended')));
  });
}

interface InUse {
  readonly bytes: number;
  readonly handles: number;
}

/** Makes `calls` calls after a warm-up. */
export async function soak(calls: number, { leaks }: { leaks: boolean }): Promise<SoakReport> {
  const folder = mkdtempSync(join(tmpdir(), 'tokenwright-soak-'));
  const server = fork(
    join(import.meta.dirname, 'soak-server.ts'),
    [join(folder, 'tokens.db'), ...(leaks ? ['leak'] : [])],
    { execArgv: ['--expose-gc'] },
  );
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  try {
    const port = (await nextMessage(server)) as number;
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
  return (await nextMessage(server)) as InUse;
}

interface Run {
  readonly port: number;
  readonly agent: Agent;
  readonly server: ChildProcess;
  readonly wrong: string[];
}

async function work(calls: number, run: Run): Promise<void> {
  let rounds = Math.ceil(calls / CALLS_A_ROUND);
  const client = async (account: string) => {
    while (rounds-- > 0) {
      await round(account, run);
      if (rounds % ROUNDS_A_PURGE === 0) run.server.send('purge');
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(`account${i}`)));
}

/** Takes one token through its life in ten calls. */
async function round(account: string, run: Run): Promise<void> {
  const call = (method: string, path: string, body?: object | string) =>
    exchange({ account, method, path, body }, run);
  const expectStatus = (what: string, status: number, expected: number) => {
    if (status !== expected) run.wrong.push(`${what}: ${status}`);
  };
  const isActive = async (value: string) =>
    (await call('POST', '/introspect', `token=${value}`)).body['active'];

  const issued = await call('POST', '/token', { scopes: [SCOPE], ttl: 3600 });
  expectStatus('issue', issued.status, 200);
  const { id, token: value } = issued.body as { id: string; token: string };
  if ((await isActive(value)) !== true) run.wrong.push('a new token is not active');
  expectStatus('get', (await call('GET', `/token/${id}`)).status, 200);
  expectStatus('list', (await call('GET', '/token?limit=10')).status, 200);
  expectStatus('put', (await call('PUT', `/token/${id}`, { scopes: [SCOPE] })).status, 200);
  expectStatus('bad put', (await call('PUT', `/token/${id}`, { scopes: ['x'] })).status, 422);
  const rotated = await call('POST', `/token/${id}/rotate`);
  expectStatus('rotate', rotated.status, 200);
  if ((await isActive(value)) !== false) run.wrong.push('a rotated value is active');
  expectStatus('revoke', (await call('DELETE', `/token/${id}`)).status, 200);
  const last = String(rotated.body['token']);
  if ((await isActive(last)) !== false) run.wrong.push('a revoked token is active');
}

interface Sent {
  readonly account: string;
  readonly method: string;
  readonly path: string;
  readonly body?: object | string | undefined;
}

function exchange(
  { account, method, path, body }: Sent,
  { port, agent }: Run,
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

/** Describes in one line what is wrong with a run; empty if nothing is. */
export function complaintOf({ wrong, grownBytes, grownHandles }: SoakReport): string {
  const parts = [...wrong];
  if (grownBytes > BOUND_BYTES)
    parts.push(`${(grownBytes / 1_048_576).toFixed(1)} MiB more in use`);
  // Clients may have opened more connections since the first measurement.
  if (grownHandles > 2 * CLIENTS) parts.push(`${grownHandles} handles more`);
  return parts.join('; ');
}

if (import.meta.main) {
  const report = await soak(Number(process.argv[2] ?? 10_000), { leaks: false });
  const complaint = complaintOf(report);
  process.stdout.write(`${JSON.stringify(report)}\n${complaint}\n`);
  process.exitCode = complaint === '' ? 0 : 1;
}
