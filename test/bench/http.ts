// What a check of a Bearer token costs a server, as ratios in one run: `npm run bench:http`, with wrk
// installed (a client in JavaScript takes longer than a bare server; that server then sleeps at
// times, and a guarded one does not). Each server is a process of its own, whose CPU for each request is
// measured under load; 1 000 tokens with ten scopes take turns. Rounds take turns as well, and the
// medians count, also of the ratios: each is within one round, since machines change their speed.
// Then the token service itself is kept busy for a minute, by a mix of calls and by issues alone, with a
// quota. At last it derives tokens in two ways, by its own call and by the exchange of OAuth. The figures go to
// .cache/bench/http.json.
import { type ChildProcess, execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROUNDS = Number(process.env['ROUNDS'] ?? 15);
const WARM_SECONDS = 3;
const ROUND_SECONDS = 1;
const CONNECTIONS = 32;
const SUSTAINED_CONNECTIONS = 64;
const SUSTAINED_SECONDS = Number(process.env['SUSTAINED_SECONDS'] ?? 60);
/** The last slice of the issues in a minute to the first: the line has to be flat. */
const LEAST_RATIO = 0.95;
const SLICE_SECONDS = 10;
/** The CPU of an exchange to that of a derivation. */
const MOST_OF_EXCHANGE = 1.2;
const GUARDS = (
  process.env['GUARDS'] ?? 'none,an empty one,cached,uncached,by hand,jose,better-auth'
).split(',');
const FRAMEWORKS = (process.env['FRAMEWORKS'] ?? 'node:http,Hono,Fastify').split(',');
const script = new URL('http-server.ts', import.meta.url);
const folder = mkdtempSync(join(tmpdir(), 'tokenwright-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

interface Candidate {
  readonly guard: string;
  readonly child: ChildProcess;
  readonly port: number;
  readonly values: readonly string[];
  /** The requests that are made in turn, as a program of wrk. */
  readonly lua: string;
  readonly cpu: number[];
  readonly rate: number[];
}

async function start(
  framework: string,
  guard: string,
  requestsFor: (values: readonly string[]) => readonly string[],
  execArgv: string[] = [],
): Promise<Candidate> {
  const child = fork(script, [framework, guard], { execArgv });
  const [{ port, values }] = await once(child, 'message');
  const lua = join(folder, `${port}.lua`);
  writeFileSync(lua, programOf(requestsFor(values)));
  return { guard, child, port, values, lua, cpu: [], rate: [] };
}

/** What is sent is made beforehand; at the end come the figures as JSON. */
function programOf(requests: readonly string[]): string {
  const texts = requests.map((text) => JSON.stringify(text)).join(',\n');
  return String.raw`local requests = { ${texts} }
local place = 0
function request()
  place = place % #requests + 1
  return requests[place]
end
function done(summary, latency)
  io.write(string.format('{"requests":%d,"us":%d,"refused":%d,"p50":%d,"p99":%d,"worst":%d}\n',
    summary.requests, summary.duration,
    summary.errors.status + summary.errors.read + summary.errors.write + summary.errors.timeout,
    latency:percentile(50), latency:percentile(99), latency.max))
end
`;
}

/** A request in the words of HTTP. */
function requestOf(
  method: string,
  target: string,
  headers: Readonly<Record<string, string>>,
  body = '',
): string {
  const length = body === '' ? {} : { 'Content-Length': String(body.length) };
  const lines = Object.entries({ Host: '127.0.0.1', ...headers, ...length });
  const head = lines.map(([name, value]) => `${name}: ${value}`).join('\r\n');
  return `${method} ${target} HTTP/1.1\r\n${head}\r\n\r\n${body}`;
}

interface Load {
  readonly requests: number;
  readonly us: number;
  readonly refused: number;
  /** Of the latency, in microseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly worst: number;
}

interface Slice extends Load {
  readonly seconds: number;
  /** Requests a second. */
  readonly rate: number;
  readonly heap: number;
}

async function usageOf({ child }: Candidate): Promise<{ cpu: number; heap: number }> {
  child.send('?');
  const [usage] = await once(child, 'message');
  return usage;
}

async function wrk(candidate: Candidate, connections: number, seconds: number): Promise<Load> {
  const { lua, port, guard } = candidate;
  // An answer that is late on a busy machine is slow, and not refused.
  const parameters = ['-t1', '--timeout', '10s', `-c${connections}`, `-d${seconds}`, '-s', lua];
  const { stdout } = await promisify(execFile)('wrk', [...parameters, `http://127.0.0.1:${port}`]);
  const load: Load = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  if (load.refused === 0 && load.requests > 0) return load;
  throw new Error(`${guard}: ${load.refused} of ${load.requests} were refused`);
}

/** Microseconds of the server's CPU for each request, and requests a second. */
async function load(candidate: Candidate, seconds: number): Promise<{ cpu: number; rate: number }> {
  const { cpu: before } = await usageOf(candidate);
  const { requests, us } = await wrk(candidate, CONNECTIONS, seconds);
  const { cpu: after } = await usageOf(candidate);
  return { cpu: (after - before) / requests, rate: (requests / us) * 1e6 };
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number;
}

/** Round by round. */
function ratios(values: readonly number[], to: readonly number[]): number[] {
  return values.map((value, round) => value / (to[round] as number));
}

function spread(values: readonly number[]): string {
  return `${Math.min(...values).toFixed(1)}–${Math.max(...values).toFixed(1)}`;
}

async function compare(framework: string): Promise<object> {
  const requestsFor = (values: readonly string[]) =>
    values.map((value) => requestOf('GET', '/e', { Authorization: `Bearer ${value}` }));
  const candidates: Candidate[] = [];
  for (const guard of GUARDS) candidates.push(await start(framework, guard, requestsFor));
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
      median(ratios(cpu, bare.cpu)).toFixed(2),
      median(rate).toFixed(0),
      median(ratios(cached.rate, rate)).toFixed(1),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
  for (const { child } of candidates) child.disconnect();
  return candidates.map(({ guard, cpu, rate }) => ({ framework, guard, cpu, rate }));
}

const authorization = `Basic ${Buffer.from('ada:correct horse').toString('base64')}`;
const headers = { Authorization: authorization, 'Content-Type': 'application/json' };
const issue = requestOf(
  'POST',
  '/token',
  headers,
  JSON.stringify({ scopes: ['GET:shop.example/orders'], ttl: 3600 }),
);

/** What the token service is kept busy with. */
const WORK: Readonly<Record<string, (ids: readonly string[]) => readonly string[]>> = {
  'issue, list and get': (ids) =>
    ids
      .slice(0, 100)
      .flatMap((id) => [
        issue,
        requestOf('GET', '/token?limit=20', headers),
        requestOf('GET', `/token/${id}`, headers),
      ]),
  issue: () => [issue],
};

/** The token service under steady work, and what its heap does meanwhile. */
async function sustain(work: string): Promise<Slice[]> {
  const requestsFor = WORK[work] as (ids: readonly string[]) => readonly string[];
  const candidate = await start('service', '', requestsFor, ['--expose-gc']);
  await wrk(candidate, SUSTAINED_CONNECTIONS, WARM_SECONDS);
  console.log(`\nThe token service on SQLite, ${SUSTAINED_CONNECTIONS} connections: ${work}\n`);
  console.log(
    '| after | requests/s | p50 | p99 | worst | heap |\n| --- | --- | --- | --- | --- | --- |',
  );
  const slices: Slice[] = [];
  for (let seconds = SLICE_SECONDS; seconds <= SUSTAINED_SECONDS; seconds += SLICE_SECONDS) {
    const slice = await wrk(candidate, SUSTAINED_CONNECTIONS, SLICE_SECONDS);
    const { heap } = await usageOf(candidate);
    const rate = (slice.requests / slice.us) * 1e6;
    const cells = [
      `${seconds} s`,
      rate.toFixed(0),
      ...[slice.p50, slice.p99, slice.worst].map((us) => `${(us / 1000).toFixed(1)} ms`),
      `${(heap / 1e6).toFixed(1)} MB`,
    ];
    console.log(`| ${cells.join(' | ')} |`);
    slices.push({ seconds, ...slice, rate, heap });
  }
  candidate.child.disconnect();
  return slices;
}

const SCOPE = 'GET:shop.example/a';
const TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:access_token';

/** Two ways to make a narrower token from a value. */
const DERIVING: Readonly<Record<string, (value: string) => string>> = {
  derive: (value) =>
    requestOf(
      'POST',
      '/token/derive',
      { Authorization: `Bearer ${value}`, 'Content-Type': 'application/json' },
      JSON.stringify({ scopes: [SCOPE], ttl: 3600 }),
    ),
  exchange: (value) =>
    requestOf(
      'POST',
      '/oauth/token',
      { 'Content-Type': 'application/x-www-form-urlencoded' },
      String(
        new URLSearchParams({
          grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
          subject_token: value,
          subject_token_type: TOKEN_TYPE,
          scope: SCOPE,
          ttl: '3600',
        }),
      ),
    ),
};

/** What an exchange takes, as a multiple of a derivation: the median over all rounds. */
async function compareExchange(): Promise<number> {
  const candidates: Candidate[] = [];
  for (const [name, make] of Object.entries(DERIVING)) {
    const candidate = await start('service', 'derive', (values) => values.map(make));
    candidates.push({ ...candidate, guard: name });
  }
  for (const candidate of candidates) await load(candidate, WARM_SECONDS);
  for (let round = 0; round < ROUNDS; round++) {
    for (const candidate of candidates) {
      const { cpu, rate } = await load(candidate, ROUND_SECONDS);
      candidate.cpu.push(cpu);
      candidate.rate.push(rate);
    }
  }
  console.log('\nThe token service on SQLite, a token from a token\n');
  console.log('| call | CPU a request | spread | requests/s |\n| --- | --- | --- | --- |');
  for (const { guard, cpu, rate } of candidates) {
    const cells = [guard, `${median(cpu).toFixed(1)} µs`, spread(cpu), median(rate).toFixed(0)];
    console.log(`| ${cells.join(' | ')} |`);
  }
  for (const { child } of candidates) child.disconnect();
  const [derive, exchange] = candidates as [Candidate, Candidate];
  return median(ratios(exchange.cpu, derive.cpu));
}

await promisify(execFile)('wrk', ['-v']).catch(({ code }: { readonly code?: unknown }) => {
  // wrk prints its version and fails.
  if (code !== 'ENOENT') return;
  console.error('bench:http needs wrk, and it is not installed: apt-get install wrk');
  process.exit(1);
});
console.log(`Node ${process.version}, ${cpus().length} cores; medians of ${ROUNDS} rounds`);
const compared: object[] = [];
for (const framework of FRAMEWORKS) compared.push(await compare(framework));
const sustained: Record<string, readonly Slice[]> = {};
for (const work of Object.keys(WORK)) sustained[work] = await sustain(work);
const [first, last] = [0, -1].map((at) => sustained['issue']?.at(at)?.rate ?? Number.NaN);
const ratio = (last as number) / (first as number);
const isFlat = ratio >= LEAST_RATIO;
console.log(
  `\nissue: the last slice to the first is ${ratio.toFixed(2)}, ${isFlat ? 'flat' : `below ${LEAST_RATIO}`}`,
);
if (!isFlat) process.exitCode = 1;
const exchange = await compareExchange();
const isNear = exchange <= MOST_OF_EXCHANGE;
console.log(
  `\nexchange to derive: ${exchange.toFixed(2)}, ${isNear ? 'within' : 'above'} ${MOST_OF_EXCHANGE}`,
);
if (!isNear) process.exitCode = 1;
const results = new URL('../../.cache/bench/', import.meta.url);
mkdirSync(results, { recursive: true });
writeFileSync(
  new URL('http.json', results),
  JSON.stringify({ node: process.version, rounds: ROUNDS, compared, sustained, exchange }, null, 2),
);
