// What a check of a Bearer token costs a server, as ratios in one run: `npm run bench:http`, with wrk (a client
// in JavaScript takes longer than a bare server; that server then sleeps at times, and a guarded one does
// not). Each server is a process of its own, whose CPU for each request is measured under load; 1 000
// tokens with ten scopes take turns. It is started anew for each round, with no other beside it, on the same
// CPU as the client: how a server is compiled, and whether it has to wake another CPU for each answer, depends
// on chance, and takes as long as a check.
// Then the token service itself is kept busy for a minute, by a mix of
// calls and by issues alone, beside a bare server. At last it derives tokens in two ways, by its own call and
// by the exchange of OAuth. Some parts by name: `npm run bench:http -- Hono sustained`.
import { type ChildProcess, execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { atLeast, atMost, byName, goal, printGoals } from './goals.ts';
import { type Measured, printMeasured, ratios, roundsOf, takeTurns } from './measure.ts';
import { digits, machine, printTable, type Rows, timeText } from './page.ts';
import { askedParts, needs } from './start.ts';

const ROUNDS = 7;
const WARM_SECONDS = 3;
const ROUND_SECONDS = 2;
/** Where server and client work when it is the CPU that counts. */
const CPU = '0';
const CONNECTIONS = 32;
const SUSTAINED_CONNECTIONS = 64;
const SLICE_SECONDS = 10;
const SLICES = 6;
/** The bare server, after each slice. */
const BARE_SECONDS = 1;
const GUARDS = ['none', 'an empty one', 'cached', 'uncached', 'by hand', 'jose', 'better-auth'];
/** By how much the guard may exceed the check by hand, with and without a cache. */
const OVER_BY_HAND = {
  'node:http': { cached: 1.12, uncached: 1.25 },
  Hono: { cached: 1.15, uncached: 1.3 },
  Fastify: { cached: 1.12, uncached: 1.25 },
} as const;
type Framework = keyof typeof OVER_BY_HAND;
const script = new URL('http-server.ts', import.meta.url);
const folder = mkdtempSync(join(tmpdir(), 'tokenwright-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

interface Candidate {
  readonly guard: string;
  readonly child: ChildProcess;
  readonly port: number;
  /** The requests that are made in turn, as a program of wrk. */
  readonly lua: string;
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
  return { guard, child, port, lua };
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

async function usageOf({ child }: Candidate): Promise<{ cpu: number; heap: number }> {
  child.send('?');
  const [usage] = await once(child, 'message');
  return usage;
}

/** `on` is the CPU, if it has to be a certain one. */
async function wrk(
  candidate: Candidate,
  connections: number,
  seconds: number,
  on?: string,
): Promise<Load> {
  const { lua, port, guard } = candidate;
  // An answer that is late on a busy machine is slow, and not refused.
  const parameters = ['-t1', '--timeout', '10s', `-c${connections}`, `-d${seconds}`, '-s', lua];
  const command = [...(on === undefined ? [] : ['taskset', '-c', on]), 'wrk', ...parameters];
  const [program = '', ...rest] = [...command, `http://127.0.0.1:${port}`];
  const { stdout } = await promisify(execFile)(program, rest);
  const load: Load = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  if (load.refused === 0 && load.requests > 0) return load;
  throw new Error(`${guard}: ${load.refused} of ${load.requests} were refused`);
}

/** Microseconds of CPU that a server takes for each request. */
async function cpuOf(starting: Promise<Candidate>): Promise<number> {
  const candidate = await starting;
  const { child } = candidate;
  await promisify(execFile)('taskset', ['-acp', CPU, String(child.pid)]);
  await wrk(candidate, CONNECTIONS, WARM_SECONDS, CPU);
  const { cpu: before } = await usageOf(candidate);
  const { requests } = await wrk(candidate, CONNECTIONS, ROUND_SECONDS, CPU);
  const { cpu: after } = await usageOf(candidate);
  child.disconnect();
  await once(child, 'exit');
  return (after - before) / requests;
}

/** Prints what each request costs, and how that is to the first. Returns the CPU. */
async function compare(
  title: string,
  candidates: Readonly<Record<string, () => Promise<Candidate>>>,
): Promise<Measured[]> {
  const turns = Object.entries(candidates).map(
    ([name, starting]) => [name, () => cpuOf(starting())] as const,
  );
  const all = await takeTurns(ROUNDS, Object.fromEntries(turns));
  printMeasured(title, 'CPU a request', all);
  return all;
}

async function guards(framework: Framework): Promise<void> {
  const candidates = GUARDS.map(
    (guard) => [guard, () => start(framework, guard, checked)] as const,
  );
  const all = await compare(framework, Object.fromEntries(candidates));
  const byHand = byName(all, 'by hand');
  for (const [guard, most] of Object.entries(OVER_BY_HAND[framework])) {
    goal(
      `${framework}: the guard, ${guard}, to the check by hand`,
      most,
      byName(all, guard),
      byHand,
    );
  }
}

function checked(values: readonly string[]): string[] {
  return values.map((value) => requestOf('GET', '/e', { Authorization: `Bearer ${value}` }));
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
async function sustain(work: string): Promise<void> {
  const requestsFor = WORK[work] as (ids: readonly string[]) => readonly string[];
  const candidate = await start('service', '', requestsFor, ['--expose-gc']);
  const bare = await start('node:http', 'none', checked);
  for (const one of [candidate, bare]) await wrk(one, SUSTAINED_CONNECTIONS, WARM_SECONDS);
  const rows: Rows[number][] = [];
  const [rates, toBare, p99s]: [number[], number[], number[]] = [[], [], []];
  for (let slice = 1; slice <= SLICES; slice++) {
    const load = await wrk(candidate, SUSTAINED_CONNECTIONS, SLICE_SECONDS);
    const { heap } = await usageOf(candidate);
    const other = await wrk(bare, SUSTAINED_CONNECTIONS, BARE_SECONDS);
    const rate = (load.requests / load.us) * 1e6;
    rates.push(rate);
    toBare.push(rate / ((other.requests / other.us) * 1e6));
    p99s.push(load.p99 / 1000);
    const times = [load.p50, load.p99, load.worst].map(timeText);
    rows.push([
      `${slice * SLICE_SECONDS} s`,
      rate.toFixed(0),
      ...times,
      `${digits(heap / 1e6)}\u00a0MB`,
    ]);
  }
  for (const { child } of [candidate, bare]) child.disconnect();
  printTable(`The token service on SQLite, ${SUSTAINED_CONNECTIONS} connections: ${work}`, [
    ['after', 'requests/s', 'p50', 'p99', 'worst', 'heap'],
    ...rows,
  ]);
  const [first = 0, ...later] = rates;
  atLeast(
    `service, ${work}: later slices to the first`,
    0.95,
    ratios(
      later,
      later.map(() => first),
    ),
  );
  if (work === 'issue') return;
  atMost(`service, ${work}: p99 in ms`, 15, p99s);
  atLeast(`service, ${work}: requests to those of a bare server`, 0.12, toBare);
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

async function deriving(): Promise<void> {
  const candidates = Object.entries(DERIVING).map(([name, make]) => {
    return [name, () => start('service', 'derive', (values) => values.map(make))] as const;
  });
  const all = await compare(
    'The token service on SQLite, a token from a token',
    Object.fromEntries(candidates),
  );
  goal('CPU of an exchange to a derivation', 1.2, byName(all, 'exchange'), byName(all, 'derive'));
}

const PARTS = {
  'node:http': () => guards('node:http'),
  Hono: () => guards('Hono'),
  Fastify: () => guards('Fastify'),
  sustained: async () => {
    for (const work of Object.keys(WORK)) await sustain(work);
  },
  deriving,
};
const parts = askedParts(Object.keys(PARTS) as (keyof typeof PARTS)[]);
needs({ minutes: 7 * parts.length, gigabytes: 1, programs: ['wrk', 'taskset'] });
for (const part of parts) await PARTS[part]();
printGoals();
console.log(`\n${machine()}; ${roundsOf(ROUNDS)} rounds`);
