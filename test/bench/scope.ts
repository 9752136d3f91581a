// How fast scopes decide, against a hash look-up and against other libraries, as ratios in one run:
// `npm run bench:scope`. All candidates answer the same questions; what they cannot say they are
// asked in their own best form. Times are medians of rounds that take turns. With the path of an
// OpenAPI document, `npm run bench:scope -- FILE`, decisions over that whole API are timed as well;
// without one, those over an API that is made up, of the size and the shape of GitHub's.
import { readFileSync } from 'node:fs';
import { createMongoAbility } from '@casl/ability';
import { preparsePolicySet, statefulIsAuthorized } from '@cedar-policy/cedar-wasm/nodejs';
import { newEnforcer, newModel, StringAdapter } from 'casbin';
import findMyWay from 'find-my-way';
import { Minimatch } from 'minimatch';
import { match as pathMatch } from 'path-to-regexp';
// @ts-expect-error it has no types
import picomatch from 'picomatch';
// @ts-expect-error it has no types
import taskcluster from 'taskcluster-lib-scopes';
import { catalogFromOpenApi } from '../../src/openapi/index.ts';
import {
  type ReadRequest,
  readRequest,
  ScopeCatalog,
  type ScopeRequest,
  ScopeSet,
} from '../../src/scope/index.ts';

const SIZES = [1, 10, 100, 1_000, 10_000];
const ROUNDS = 15;
const ROUND_MS = 12;
const WARM_MS = 60;
/** What is WebAssembly is compiled well only after many calls. */
const WASM_WARM_MS = 2000;
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** A grant in parts, from which each candidate makes its own form. */
interface Grant {
  readonly method: string;
  readonly domain: string;
  readonly path: string;
}

/** One question, and the key that a hash look-up would need for it. */
interface Question {
  readonly request: ScopeRequest;
  readonly method: string;
  readonly domain: string;
  readonly path: string;
}

/** 10 % wildcards, half of methods and half of domains; some twenty endpoints a host. */
function grantsOf(size: number): Grant[] {
  return Array.from({ length: size }, (_, i) => {
    const host = `api${i % Math.ceil(size / 20)}.acme.example`;
    const method = METHODS[i % METHODS.length] as string;
    const path = `resource${i}`;
    if (i % 20 === 9) return { method: '*', domain: host, path };
    if (i % 20 === 19) return { method, domain: `*.zone${i}.acme.example`, path };
    return { method, domain: host, path };
  });
}

function questionOf({ method, domain, path }: Grant, isHit: boolean, deeper: string): Question {
  const own = {
    method: method === '*' ? 'GET' : method,
    domain: domain.replace('*.', 'eu.'),
    path: isHit ? path : `${path}x`,
  };
  return { ...own, request: { ...own, target: `/${own.path}${deeper}` } };
}

const isWildcard = ({ method, domain }: Grant) => method === '*' || domain.startsWith('*');

const FEW = 64;
const MANY = 10_000;

/** Kinds of questions; some of a kind in turn, so that no answer is remembered by accident. */
function questionsOf(grants: readonly Grant[], kind: Kind, count = FEW): Question[] {
  const chosen = grants.filter((grant) => isWildcard(grant) === (kind === 'wildcard hit'));
  return Array.from({ length: chosen.length === 0 ? 0 : count }, (_, i) => {
    const grant = chosen[(i * 7919) % chosen.length] as Grant;
    return questionOf(grant, kind !== 'miss', count === FEW ? '/7' : `/${i}`);
  });
}

type Ask = (question: Question) => boolean;

/** Each library at its best for this work. Paths below an endpoint count, as they do for scopes. */
const PEERS: Readonly<Record<string, (grants: readonly Grant[]) => Promise<Ask> | Ask>> = {
  '@casl/ability': (grants) => {
    // The method as the action, the host as the subject, the path as a field with patterns.
    const ability = createMongoAbility(
      grants.map(({ method, domain, path }) => ({
        action: method === '*' ? 'manage' : method,
        subject: domain,
        fields: [path, `${path}/**`],
      })),
    );
    return ({ method, domain, path }) => ability.can(method, domain, `${path}/7`);
  },
  '@casl/ability, no prefixes': (grants) => {
    // An easier question: the very endpoint, by its whole name, without what lies below it.
    const ability = createMongoAbility(
      grants.map(({ method, domain, path }) => ({
        action: method === '*' ? 'manage' : method,
        subject: `${domain}/${path}`,
      })),
    );
    return ({ method, domain, path }) => ability.can(method, `${domain}/${path}`);
  },
  'taskcluster-lib-scopes': (grants) => {
    const held = grants.map(({ method, domain, path }) => `${method}:${domain}/${path}/*`);
    return ({ method, domain, path }) =>
      taskcluster.satisfiesExpression(held, `${method}:${domain}/${path}/7`);
  },
  casbin: async (grants) => {
    const model = newModel(
      '[request_definition]\nr = obj, act\n[policy_definition]\np = obj, act\n' +
        '[policy_effect]\ne = some(where (p.eft == allow))\n' +
        '[matchers]\nm = keyMatch(r.obj, p.obj) && (p.act == "*" || r.act == p.act)\n',
    );
    const lines = grants.map(({ method, domain, path }) => `p, ${domain}/${path}/*, ${method}`);
    const enforcer = await newEnforcer(model, new StringAdapter(lines.join('\n')));
    return ({ method, domain, path }) => enforcer.enforceSync(`${domain}/${path}/7`, method);
  },
  picomatch: (grants) => {
    const matches = picomatch(grants.map((grant) => globOf(grant)));
    return ({ method, domain, path }) => matches(`${method}/${domain}/${path}/7`);
  },
  minimatch: (grants) => {
    const globs = grants.map((grant) => new Minimatch(globOf(grant)));
    return ({ method, domain, path }) => {
      const text = `${method}/${domain}/${path}/7`;
      return globs.some((glob) => glob.match(text));
    };
  },
  'find-my-way': (grants) => {
    const router = findMyWay();
    const routes = new Set<string>();
    for (const { method, domain, path } of grants) {
      for (const verb of method === '*' ? METHODS : [method]) {
        const route = `/${domain.replace('*.', ':sub.')}/${path}/*`;
        if (routes.has(verb + route)) continue;
        routes.add(verb + route);
        router.on(verb as 'GET', route, () => {});
      }
    }
    return ({ method, domain, path }) =>
      router.find(method as 'GET', `/${domain}/${path}/7`) !== null;
  },
  '@cedar-policy/cedar-wasm': (grants) => {
    // Parsed once, and one policy for each method with the set of its endpoints: measured, a policy for
    // each grant costs up to ten times as much, and one with `like` more. It answers more than ours:
    // conditions, `forbid`, and which policies decided. And less: a path below an endpoint and a host
    // below a domain are seen only where the caller names them as parents of the resource, here one of
    // each; and it reads no request.
    const id = `grants ${grants.length}`;
    const parsing = preparsePolicySet(id, { staticPolicies: cedarPolicies(grants) });
    if (parsing.type === 'failure') throw new Error(parsing.errors[0]?.message);
    const ask: Ask = ({ method, domain, path }) => {
      const resource = { type: 'Path', id: `${domain}/${path}/7` };
      const above = `*${domain.slice(domain.indexOf('.'))}/${path}`;
      const parents = [`${domain}/${path}`, above].map((name) => ({ type: 'Path', id: name }));
      const answer = statefulIsAuthorized({
        principal: { type: 'Token', id: 'token' },
        action: { type: 'Action', id: method },
        resource,
        context: {},
        entities: [{ uid: resource, attrs: {}, parents }],
        preparsedPolicySetId: id,
      });
      return answer.type === 'success' && answer.response.decision === 'allow';
    };
    const [any] = questionsOf(grants, 'hit');
    const end = performance.now() + WASM_WARM_MS;
    while (any !== undefined && performance.now() < end) ask(any);
    return ask;
  },
};

function cedarPolicies(grants: readonly Grant[]): string {
  const policies = [...Map.groupBy(grants, ({ method }) => method)].map(([method, members]) => {
    const paths = members.map(({ domain, path }) => `Path::"${domain}/${path}"`).join(', ');
    const action = method === '*' ? 'action' : `action == Action::"${method}"`;
    return `permit(principal, ${action}, resource) when { resource in [${paths}] };`;
  });
  return policies.join('\n');
}

function globOf({ method, domain, path }: Grant): string {
  return `${method}/${domain}/${path}/**`;
}

/** Median nanoseconds of each, in rounds that take turns. */
function measure(runs: Readonly<Record<string, () => unknown>>): Record<string, number> {
  const names = Object.keys(runs);
  const counts = new Map(names.map((name) => [name, calibrate(runs[name] as () => unknown)]));
  const times = new Map<string, number[]>(names.map((name) => [name, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of names) {
      const count = counts.get(name) as number;
      times.get(name)?.push(timeOf(runs[name] as () => unknown, count) / count);
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(times.get(name) ?? [])]));
}

function calibrate(run: () => unknown): number {
  // First what is compiled or worked out on first use, and the compiler of the machine.
  for (let spent = 0; spent < WARM_MS * 1e6; ) spent += timeOf(run, 1);
  let count = 1;
  while (timeOf(run, count) < ROUND_MS * 1e6 && count < 2 ** 22) count *= 2;
  return count;
}

let sink = 0;

function timeOf(run: () => unknown, count: number): number {
  const start = process.hrtime.bigint();
  for (let i = 0; i < count; i++) if (run() === true) sink += 1;
  return Number(process.hrtime.bigint() - start);
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number;
}

/** A function that asks the questions in turn. */
function inTurn<Each>(items: readonly Each[], ask: (item: Each) => boolean): () => boolean {
  let next = 0;
  return () => {
    next = next + 1 < items.length ? next + 1 : 0;
    return ask(items[next] as Each);
  };
}

function row(cells: readonly (string | number)[]): void {
  console.log(`| ${cells.join(' | ')} |`);
}

function title(text: string, columns: readonly string[]): void {
  console.log(`\n${text}\n`);
  row(columns);
  row(columns.map(() => '---'));
}

const ratio = (value: number, base: number) => (value / base).toFixed(2);

const KINDS = ['hit', 'wildcard hit', 'miss'] as const;
type Kind = (typeof KINDS)[number];

function decisions(): void {
  title('A decision, against `Set.has` on a freshly built key', [
    'scopes',
    'question',
    'distinct',
    'Set.has',
    'allows, read once',
    'ratio',
    'with reading',
    'ratio',
  ]);
  const growth = new Map<string, Record<string, () => boolean>>();
  for (const size of SIZES) {
    const grants = grantsOf(size);
    for (const kind of KINDS) {
      const runs = runsOf(grants, questionsOf(grants, kind), kind);
      if (runs === undefined) continue;
      growth.set(kind, { ...growth.get(kind), [size]: runs.allows });
      growth.set(`${kind}, Set.has`, { ...growth.get(`${kind}, Set.has`), [size]: runs.baseline });
      compare([size, kind, FEW], runs);
    }
  }
  // As many hosts as scopes, and as many questions.
  const hosts = grantsOf(MANY).map((grant, i) => ({ ...grant, domain: `api${i}.acme.example` }));
  for (const [name, grants] of [
    ['', grantsOf(MANY)] as const,
    [' of its own host', hosts] as const,
  ]) {
    for (const kind of KINDS) {
      const runs = runsOf(grants, questionsOf(grants, kind, MANY), kind);
      if (runs !== undefined) compare([MANY, `${kind}${name}`, MANY], runs);
    }
  }
  title('Growth of a decision with the number of scopes (read once; all sizes in turn)', [
    'question',
    ...SIZES.map(String),
    'exponent',
  ]);
  for (const [kind, runs] of growth) {
    const times = measure(runs);
    const points = Object.entries(times).map(([size, time]) => [Number(size), time] as const);
    const cells = SIZES.map((size) => {
      const time = times[size];
      return time === undefined ? '' : `${time.toFixed(0)} ns`;
    });
    row([kind, ...cells, slope(points).toFixed(3)]);
  }
}

interface Runs extends Record<string, () => boolean> {
  readonly baseline: () => boolean;
  readonly allows: () => boolean;
  readonly raw: () => boolean;
}

function runsOf(
  grants: readonly Grant[],
  questions: readonly Question[],
  kind: Kind,
): Runs | undefined {
  if (questions.length === 0) return undefined;
  const texts = grants.map(({ method, domain, path }) => `${method}:${domain}/${path}`);
  const set = ScopeSet.from(texts);
  const keys = new Set(texts);
  // What is allowed by a wildcard is looked up as a key of its own, so that a hit is one here too.
  for (const { method, domain, path } of kind === 'miss' ? [] : questions) {
    keys.add(`${method}:${domain}/${path}`);
  }
  const read = questions.map(({ request }) => {
    const reading = readRequest(request);
    if (!reading.ok || set.allows(reading.request).allowed !== (kind !== 'miss'))
      throw new Error(kind);
    return reading.request;
  });
  return {
    baseline: inTurn(questions, ({ method, domain, path }) =>
      keys.has(`${method}:${domain}/${path}`),
    ),
    allows: inTurn<ReadRequest>(read, (request) => set.allows(request).allowed),
    raw: inTurn(questions, ({ request }) => set.allows(request).allowed),
  };
}

function compare(cells: readonly (string | number)[], runs: Runs): void {
  const { baseline = 1, allows = 1, raw = 1 } = measure(runs);
  row([
    ...cells,
    `${baseline.toFixed(0)} ns`,
    `${allows.toFixed(0)} ns`,
    ratio(allows, baseline),
    `${raw.toFixed(0)} ns`,
    ratio(raw, baseline),
  ]);
}

/** A document of the size and the shape of GitHub's API: some four segments, half of them values. */
function documentLikeGitHub(): object {
  const paths: Record<string, object> = {};
  const owners = ['/repos/{owner}/{repo}', '/orgs/{org}', '/user', '/gists', '/enterprises/{slug}'];
  for (let i = 0; i < 300; i++) {
    const above = `${owners[i % owners.length]}/part${i}`;
    paths[above] = { get: {}, post: {} };
    paths[`${above}/{id}`] = { get: {}, delete: {} };
    // A literal sibling of a value, as routes have.
    if (i % 20 === 0) paths[`${above}/latest`] = { get: {} };
  }
  return { openapi: '3.1.0', servers: [{ url: 'https://api.github.com' }], paths };
}

async function wholeApi(): Promise<void> {
  const [, , file] = process.argv;
  const document =
    file === undefined ? documentLikeGitHub() : JSON.parse(readFileSync(file, 'utf8'));
  const catalog = await catalogFromOpenApi(document);
  const set = ScopeSet.from(catalog);
  const routes = [...catalog].map(({ method, domain, path }, i) => {
    const template = `/${path.replace(/\$$/, '')}`;
    const target = template
      .split('/')
      .map((one, k) => (one === '{}' ? `v${i}-${k}` : one))
      .join('/');
    const named = template
      .split('/')
      .map((one, k) => (one === '{}' ? `:p${k}` : one))
      .join('/');
    const key = `${domain}${template}`;
    return { method, domain, path, key, named, target, request: { method, domain, target } };
  });
  title(`The whole of an API, routes on: ${routes.length} entries, a question for each of them`, [
    'candidate',
    'time',
    'ratio',
  ]);
  const keys = new Set(routes.map(({ method, key }) => `${method}:${key}`));
  const router = findMyWay({ maxParamLength: 500 });
  const enforcer = await newEnforcer(
    newModel(
      '[request_definition]\nr = obj, act\n[policy_definition]\np = obj, act\n' +
        '[policy_effect]\ne = some(where (p.eft == allow))\n' +
        '[matchers]\nm = keyMatch2(r.obj, p.obj) && r.act == p.act\n',
    ),
    new StringAdapter(routes.map(({ method, named }) => `p, ${named}, ${method}`).join('\n')),
  );
  const ability = createMongoAbility(
    routes.map(({ method, named }) => ({
      action: method,
      subject: 'api',
      fields: [named.replace(/:p\d+/g, '*')],
    })),
  );
  const compiled = routes.map(({ method, named }) => ({ method, matches: pathMatch(named) }));
  for (const { method, named } of routes) router.on(method as 'GET', named, () => {});
  const read = routes.map(({ request }) => catalog.readRequest(request));
  type Route = (typeof routes)[number];
  const runs: Record<string, () => boolean> = {
    'Set.has': inTurn(routes, ({ method, key }) => keys.has(`${method}:${key}`)),
    'allows, read once': inTurn(read, (one) => one.ok && set.allows(one.request).allowed),
    'allows, with reading': inTurn(routes, ({ request }) => {
      const reading = catalog.readRequest(request);
      return reading.ok && set.allows(reading.request).allowed;
    }),
    'find-my-way': inTurn<Route>(
      routes,
      ({ method, target }) => router.find(method as 'GET', target) !== null,
    ),
    casbin: inTurn<Route>(routes, ({ method, target }) => enforcer.enforceSync(target, method)),
    '@casl/ability': inTurn<Route>(routes, ({ method, target }) =>
      ability.can(method, 'api', target),
    ),
    'path-to-regexp': inTurn<Route>(routes, ({ method, target }) =>
      compiled.some((one) => one.method === method && one.matches(target) !== false),
    ),
  };
  for (const [name, ask] of Object.entries(runs)) {
    for (const _ of routes) if (!ask()) throw new Error(`${name} refuses a hit`);
  }
  const times = measure(runs);
  const { 'Set.has': base = 1 } = times;
  for (const [name, time] of Object.entries(times)) {
    row([name, `${time.toFixed(0)} ns`, ratio(time, base)]);
  }
  const parsed = [...catalog];
  let turn = 0;
  const { expand = 0, compile = 0 } = measure({
    expand: () => catalog.expand(['*:*/*']),
    compile: () => {
      turn = (turn + 1) % 50;
      return ScopeSet.from(parsed.slice(turn)).covers(parsed[turn + 1] as (typeof parsed)[number]);
    },
  });
  const perScope = compile / parsed.length;
  console.log(
    `\nexpand('*:*/*') takes ${(expand / 1e6).toFixed(2)} ms, compiling ${perScope.toFixed(0)} ns a scope.`,
  );
}

/** Least squares on logarithms. */
function slope(points: readonly (readonly [number, number])[]): number {
  const logs = points.map(([x, y]) => [Math.log(x), Math.log(y)] as const);
  const mean = (index: 0 | 1) => logs.reduce((sum, point) => sum + point[index], 0) / logs.length;
  const [x, y] = [mean(0), mean(1)];
  const covariance = logs.reduce((sum, [a, b]) => sum + (a - x) * (b - y), 0);
  return covariance / logs.reduce((sum, [a]) => sum + (a - x) ** 2, 0);
}

async function peers(): Promise<void> {
  const names = Object.keys(PEERS);
  const sizes = SIZES.slice(1);
  const cells = new Map<string, string[]>();
  const tooWide = new Set<string>();
  const add = (name: string, cell: string) => cells.set(name, [...(cells.get(name) ?? []), cell]);
  for (const size of sizes) {
    const grants = grantsOf(size);
    const set = ScopeSet.from(
      grants.map(({ method, domain, path }) => `${method}:${domain}/${path}`),
    );
    const questions = questionsOf(grants, 'hit');
    const requests = questions.map(({ request }) => {
      const reading = readRequest(request);
      if (!reading.ok) throw new Error(reading.reason);
      return reading.request;
    });
    const runs: Record<string, () => boolean> = {
      read: inTurn(requests, (request) => set.allows(request).allowed),
      raw: inTurn(questions, ({ request }) => set.allows(request).allowed),
    };
    for (const name of names) {
      const ask = await PEERS[name]?.(grants);
      if (ask === undefined || !questions.every(ask)) throw new Error(`${name} refuses a hit`);
      if (questionsOf(grants, 'miss').some(ask)) tooWide.add(name);
      runs[name] = inTurn(questions, ask);
    }
    const { read = 1, raw = 1, ...times } = measure(runs);
    add('allows, read once', `${read.toFixed(0)} ns`);
    add('allows, with reading', `${raw.toFixed(0)} ns`);
    for (const [name, time] of Object.entries(times)) {
      add(name, `${multiple(time / read)} (${multiple(time / raw)})`);
    }
  }
  // The others get a request in parts, without looking for what could mean two things in it; that
  // is what `allows` does with a request that was read once. Both are shown.
  title('Others on a hit, as multiples of `allows` read once (and with reading), by scopes', [
    'candidate',
    ...sizes.map(String),
  ]);
  for (const [name, ofSizes] of cells) row([name, ...ofSizes]);
  // keyMatch of casbin ends a pattern at its first `*`, so that one subdomain grant covers every host.
  if (tooWide.size > 0) console.log(`\nThese allow some misses, too: ${[...tooWide].join(', ')}.`);
}

const multiple = (value: number) => `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ×`;

async function compiling(): Promise<void> {
  title('Compiling a set of parsed scopes, and the algebra', [
    'scopes',
    'compile',
    'memory',
    'minimize',
    'diff',
    "expand('*:*/*')",
  ]);
  for (const size of [1_000, 10_000, 100_000]) {
    const texts = grantsOf(size).map(({ method, domain, path }) => `${method}:${domain}/${path}`);
    const parsed = [...ScopeSet.from(texts)];
    const first = parsed[0] as (typeof parsed)[number];
    let turn = 0;
    const different = () => {
      turn = (turn + 1) % 50;
      return parsed.slice(turn);
    };
    const compile = () => ScopeSet.from(different()).covers(first);
    const sort = () => ScopeSet.from(different()).size > 0;
    const times = measure({ compile, sort });
    const set = ScopeSet.from(parsed);
    const half = ScopeSet.from(parsed.filter((_, i) => i % 2 === 0));
    const algebra = measure({ minimize: () => set.minimize(), diff: () => half.diff(set) });
    const catalog = ScopeCatalog.from(parsed.filter((scope) => !String(scope).includes('*')));
    const expand =
      size > 10_000 ? undefined : measure({ expand: () => catalog.expand(['GET:*/*']) })['expand'];
    row([
      size,
      `${(((times['compile'] ?? 0) - (times['sort'] ?? 0)) / size).toFixed(0)} ns a scope`,
      `${await memoryOf(parsed)} bytes a scope`,
      `${((algebra['minimize'] ?? 0) / size).toFixed(0)} ns a scope`,
      `${((algebra['diff'] ?? 0) / size).toFixed(0)} ns a scope`,
      expand === undefined ? '' : `${(expand / 1e6).toFixed(2)} ms`,
    ]);
  }
}

async function memoryOf(parsed: readonly unknown[]): Promise<string> {
  const { gc } = globalThis as { gc?: () => void };
  if (gc === undefined) return 'run with --expose-gc:';
  // Each a little different, since equal sets share what is compiled.
  const sets = Array.from({ length: 10 }, (_, i) => ScopeSet.from(parsed.slice(i) as never));
  const used = async () => {
    // What is no longer used gives up its place in a turn of its own.
    for (let turn = 0; turn < 3; turn++) {
      gc();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = await used();
  for (const set of sets) set.covers(parsed.at(-1) as never);
  const after = await used();
  return ((after - before) / sets.length / parsed.length).toFixed(0);
}

/** Sets made to be asked often: below every pattern that can cover a host, at every depth, and never met. */
function worst(): void {
  title('The worst that 10 000 chosen scopes can do to a decision', ['set', 'time', 'ratio']);
  const segments = Array.from({ length: 31 }, (_, i) => `s${i}`.padEnd(15, 'x'));
  const path = segments.join('/');
  const domains = ['a.b.acme.example', '*.b.acme.example', '*.acme.example', '*.example', '*'];
  const at = (i: number, depth: number) =>
    `${domains[i % 5]}/${[...segments.slice(0, depth), `e${i}`].join('/')}`;
  const sets: Record<string, (i: number) => string> = {
    'deep, other methods': (i) => `${i % 2 === 0 ? '*' : 'PUT'}:${at(i, 31 - (i % 3))}`,
    'every depth, both methods': (i) => `${i % 2 === 0 ? '*' : 'GET'}:${at(i, i % 32)}`,
    'every depth, every method': (i) =>
      `${i % 4 === 0 ? '*' : i % 4 === 1 ? 'GET' : `X-${i.toString(36).replace(/[0-9]/g, 'Z').toUpperCase()}A`}:${at(i, i % 31)}`,
  };
  // All eight `{}`, at places that differ from scope to scope; each covers the path but for its end.
  const chosenPlaces = (i: number) => {
    const places = new Set<number>();
    for (let n = i; places.size < 8; n = (n * 48_271 + 11) % 0x7fffffff) places.add(n % 31);
    return places;
  };
  const templates = (i: number, rest: string) => {
    const places = chosenPlaces(i);
    const own = segments.map((one, place) => (places.has(place) ? '{}' : one));
    return [...own.slice(0, 31 - (i % 3)), rest].join('/');
  };
  Object.assign(sets, {
    'eight `{}`': (i: number) => `GET:a.b.acme.example/${templates(i, `e${i}`)}`,
    'eight `{}`, every domain and method': (i: number) =>
      `${i % 2 === 0 ? '*' : 'GET'}:${domains[i % 5]}/${templates(i, `e${i}`)}`,
  });
  const usual = ScopeSet.from(
    grantsOf(10_000).map(({ method, domain, path }) => `${method}:${domain}/${path}`),
  );
  const targets = Array.from({ length: 64 }, (_, i) => `/${path}/none${i}/more`);
  const questions = questionsOf(grantsOf(10_000), 'hit');
  const chosen = Object.entries(sets).map(([name, scopeOf]) => {
    const set = ScopeSet.from(Array.from({ length: 10_000 }, (_, i) => scopeOf(i)));
    const ask = (target: string) =>
      set.allows({ method: 'GET', domain: 'a.b.acme.example', target }).allowed;
    if (targets.some(ask)) throw new Error(`${name}: met`);
    return [name, inTurn(targets, ask)] as const;
  });
  const times = measure({
    ordinary: inTurn(questions, ({ request }) => usual.allows(request).allowed),
    ...Object.fromEntries(chosen),
  });
  const { ordinary = 1 } = times;
  for (const [name, time] of Object.entries(times)) {
    row([name, `${time.toFixed(0)} ns`, ratio(time, ordinary)]);
  }
}

console.log(`Node ${process.version}, ${process.arch}; medians of ${ROUNDS} rounds`);
decisions();
await peers();
await wholeApi();
await compiling();
worst();
if (sink < 0) console.log(sink);
