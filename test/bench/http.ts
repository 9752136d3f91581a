// What a check of a Bearer token costs a server, as ratios in one run: `npm run bench:http`. Each
// server is a process of its own, whose CPU for each request is measured under load; 1 000 tokens
// with ten scopes take turns. Rounds take turns as well, and the medians count.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import autocannon from 'autocannon';

const ROUNDS = Number(process.env['ROUNDS'] ?? 7);
const WARM_SECONDS = 2;
const ROUND_SECONDS = 2;
const CONNECTIONS = 32;
const GUARDS = ['none', 'cached', 'uncached', 'jose', 'better-auth'];
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

async function start(framework: string, guard: string): Promise<Candidate> {
  const child = fork(script, [framework, guard]);
  const [{ port, values }] = await once(child, 'message');
  return { guard, child, port, values, cpu: [], rate: [] };
}

async function cpuOf({ child }: Candidate): Promise<number> {
  child.send('?');
  const [{ cpu }] = await once(child, 'message');
  return cpu;
}

/** Microseconds of the server's CPU for each request, and requests a second. */
async function load(candidate: Candidate, seconds: number): Promise<{ cpu: number; rate: number }> {
  const { port, values } = candidate;
  const before = await cpuOf(candidate);
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
  return { cpu: ((await cpuOf(candidate)) - before) / total, rate: total / seconds };
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
  const [bare, cached] = candidates as [Candidate, Candidate];
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

console.log(`Node ${process.version}, ${cpus().length} cores; medians of ${ROUNDS} rounds`);
for (const framework of FRAMEWORKS) await compare(framework);
