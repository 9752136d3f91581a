// What a check of a Bearer token costs a server, as ratios in one run: `npm run bench:http`. Each
// server is a process of its own, whose CPU for each request is measured under load; 1 000 tokens
// with ten scopes take turns. Rounds take turns as well, and the medians count. Then
// the token service itself is kept busy for a minute.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import autocannon from 'autocannon';

const ROUNDS = Number(process.env['ROUNDS'] ?? 7);
const WARM_SECONDS = 2;
const ROUND_SECONDS = 2;
const CONNECTIONS = 32;
const SUSTAINED_CONNECTIONS = 64;
const SUSTAINED_SECONDS = 60;
const SLICE_SECONDS = 10;
const GUARDS = ['none', 'an empty one', 'cached', 'uncached', 'jose', 'better-auth'];
const FRAMEWORKS = ['node:http', 'Hono', 'Fastify'];
const script = new URL('http-server.ts', import.meta.url);

interface Candidate {
  readonly guard: string;
  readonly child: ChildProcess;
  readonly port: number;
  readonly values: readonly string[];
  readonly cpu: number[];
  readonly rate: number[];
}

async function start(
  framework: string,
  guard: string,
  execArgv: string[] = [],
): Promise<Candidate> {
  const child = fork(script, [framework, guard], { execArgv });
  const [{ port, values }] = await once(child, 'message');
  return { guard, child, port, values, cpu: [], rate: [] };
}

async function usageOf({ child }: Candidate): Promise<{ cpu: number; heap: number }> {
  child.send('?');
  const [usage] = await once(child, 'message');
  return usage;
}

/** Microseconds of the server's CPU for each request, and requests a second. */
async function load(candidate: Candidate, seconds: number): Promise<{ cpu: number; rate: number }> {
  const { port, values } = candidate;
  const { cpu: before } = await usageOf(candidate);
  const result = await autocannon({
    url: `http://127.0.0.1:${port}/e`,
    connections: CONNECTIONS,
    duration: seconds,
    requests: values.map((value) => ({ headers: { authorization: `Bearer ${value}` } })),
  });
  const { total } = result.requests;
  if (result.non2xx > 0 || total === 0) {
    throw new Error(`${candidate.guard}: ${result.non2xx} of ${total} were refused`);
  }
  const { cpu: after } = await usageOf(candidate);
  return { cpu: (after - before) / total, rate: total / seconds };
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number;
}

function spread(values: readonly number[]): string {
  return `${Math.min(...values).toFixed(1)}–${Math.max(...values).toFixed(1)}`;
}

async function compare(framework: string): Promise<void> {
  const candidates: Candidate[] = [];
  for (const guard of GUARDS) candidates.push(await start(framework, guard));
  for (const candidate of candidates) await load(candidate, WARM_SECONDS);
  for (let round = 0; round < ROUNDS; round++) {
    for (const candidate of candidates) {
      const { cpu, rate } = await load(candidate, ROUND_SECONDS);
      candidate.cpu.push(cpu);
      candidate.rate.push(rate);
    }
  }
  const [bare, , cached] = candidates as [Candidate, Candidate, Candidate];
  console.log(`\n${framework}\n`);
  console.log(
    '| check | CPU a request | spread | to the bare server | requests/s | cached to it |',
  );
  console.log('| --- | --- | --- | --- | --- | --- |');
  for (const { guard, cpu, rate } of candidates) {
    const cells = [
      guard,
      `${median(cpu).toFixed(1)} µs`,
      spread(cpu),
      (median(cpu) / median(bare.cpu)).toFixed(2),
      median(rate).toFixed(0),
      (median(cached.rate) / median(rate)).toFixed(1),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
  for (const { child } of candidates) child.disconnect();
}

/** The token service under a steady mix of issue, list and get, and what its heap does meanwhile. */
async function sustain(): Promise<void> {
  const candidate = await start('service', '', ['--expose-gc']);
  const { port, values, child } = candidate;
  const authorization = `Basic ${Buffer.from('ada:correct horse').toString('base64')}`;
  const headers = { authorization, 'content-type': 'application/json' };
  const body = JSON.stringify({ scopes: ['GET:shop.example/orders'], ttl: 3600 });
  const requests = values.slice(0, 100).flatMap((id) => [
    { method: 'POST' as const, path: '/token', headers, body },
    { method: 'GET' as const, path: '/token?limit=20', headers },
    { method: 'GET' as const, path: `/token/${id}`, headers },
  ]);
  console.log(`\nThe token service on SQLite, ${SUSTAINED_CONNECTIONS} connections\n`);
  console.log(
    '| after | requests/s | p50 | p99 | worst | heap |\n| --- | --- | --- | --- | --- | --- |',
  );
  for (let seconds = SLICE_SECONDS; seconds <= SUSTAINED_SECONDS; seconds += SLICE_SECONDS) {
    const {
      latency,
      non2xx,
      requests: made,
    } = await autocannon({
      url: `http://127.0.0.1:${port}`,
      connections: SUSTAINED_CONNECTIONS,
      duration: SLICE_SECONDS,
      requests,
    });
    const { heap } = await usageOf(candidate);
    const cells = [
      `${seconds} s`,
      (made.total / SLICE_SECONDS).toFixed(0),
      ...[latency.p50, latency.p99, latency.max].map((ms) => `${ms} ms`),
      `${(heap / 1e6).toFixed(1)} MB`,
    ];
    console.log(`| ${cells.join(' | ')} |`);
    if (non2xx > 0) throw new Error(`${non2xx} were refused`);
  }
  child.disconnect();
}

console.log(`Node ${process.version}, ${cpus().length} cores; medians of ${ROUNDS} rounds`);
for (const framework of FRAMEWORKS) await compare(framework);
await sustain();
