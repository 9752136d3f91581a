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
import { METHODS } from './filling.ts';
import { goal, printGoals } from './goals.ts';
import {
  type Measured,
  measure as measureLoops,
  median,
  type Run,
  ratioText,
  roundsOf,
  timedAll,
} from './measure.ts';
import { machine, printTable, timeText } from './page.ts';
import { needs } from './start.ts';

const SIZES = [1, 10, 100, 1_000, 10_000];
const PACE = { rounds: 15, roundMs: 12, warmMs: 60 };
/** What is WebAssembly is compiled well only after many calls. */
const WASM_WARM_MS = 2000;

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

async function measure(runs: Readonly<Record<string, Run>>): Promise<Measured[]> {
  return measureLoops(timedAll(runs), PACE);
}

const timeOf = ({ figures }: Measured) => timeText(median(figures));
const toFirst = ({ figures }: Measured, [first]: readonly Measured[]) =>
  ratioText(figures, first?.figures);

/** A function that asks the questions in turn. */
function inTurn<Each>(items: readonly Each[], ask: (item: Each) => boolean): () => boolean {
  let next = 0;
  return () => {
    next = next + 1 < items.length ? next + 1 : 0;
    return ask(items[next] as Each);
  };
}

const KINDS = ['hit', 'wildcard hit', 'miss'] as const;
type Kind = (typeof KINDS)[number];

async function decisions(): Promise<void> {
  const rows: string[][] = [];
  const compare = async (grants: readonly Grant[], kind: Kind, count: number, name: string) => {
    const runs = runsOf(grants, questionsOf(grants, kind, count), kind);
    if (runs === undefined) return;
    const all = await measure(runs);
    const cells = all.flatMap((one, i) =>
      i === 0 ? [timeOf(one)] : [timeOf(one), toFirst(one, all)],
    );
    rows.push([String(grants.length), name, String(count), ...cells]);
  };
  for (const size of SIZES) {
    for (const kind of KINDS) await compare(grantsOf(size), kind, FEW, kind);
  }
  // As many hosts as scopes, and as many questions.
  const hosts = grantsOf(MANY).map((grant, i) => ({ ...grant, domain: `api${i}.acme.example` }));
  for (const kind of KINDS) await compare(grantsOf(MANY), kind, MANY, kind);
  for (const kind of KINDS) await compare(hosts, kind, MANY, `${kind} of its own host`);
  const head = ['scopes', 'question', 'distinct', 'Set.has', 'allows, read once', 'ratio'];
  printTable('A decision, against `Set.has` on a freshly built key', [
    [...head, 'with reading', 'ratio'],
    ...rows,
  ]);
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
  const all = await measure(runs);
  printTable(`The whole of an API: ${routes.length} entries, a question for each of them`, [
    ['candidate', 'time', 'ratio'],
    ...all.map((one) => [one.name, timeOf(one), toFirst(one, all)]),
  ]);
  const [set1, , reading] = all;
  goal('a decision over a whole API, with reading, to Set.has', 3, reading, set1);
  const parsed = [...catalog];
  let turn = 0;
  const work = await measure({
    "expand('*:*/*')": () => catalog.expand(['*:*/*']),
    'compiling all': () => {
      turn = (turn + 1) % 50;
      return ScopeSet.from(parsed.slice(turn)).covers(parsed[turn + 1] as (typeof parsed)[number]);
    },
  });
  for (const one of work) console.log(`\n${one.name} takes ${timeOf(one)}`);
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
      'allows, read once': inTurn(requests, (request) => set.allows(request).allowed),
      'allows, with reading': inTurn(questions, ({ request }) => set.allows(request).allowed),
    };
    for (const name of names) {
      const ask = await PEERS[name]?.(grants);
      if (ask === undefined || !questions.every(ask)) throw new Error(`${name} refuses a hit`);
      if (questionsOf(grants, 'miss').some(ask)) tooWide.add(name);
      runs[name] = inTurn(questions, ask);
    }
    const [read, raw, ...others] = await measure(runs);
    for (const one of [read, raw]) if (one !== undefined) add(one.name, timeOf(one));
    for (const { name, figures } of others) {
      const [toRead, toRaw] = [read, raw].map((one) => ratioText(figures, one?.figures));
      add(name, `${toRead} × (${toRaw} ×)`);
    }
  }
  // The others get a request in parts, without looking for what could mean two things in it; that
  // is what `allows` does with a request that was read once. Both are shown.
  printTable('Others on a hit, as multiples of `allows` read once (and with reading), by scopes', [
    ['candidate', ...sizes.map(String)],
    ...[...cells].map(([name, ofSizes]) => [name, ...ofSizes]),
  ]);
  // keyMatch of casbin ends a pattern at its first `*`, so that one subdomain grant covers every host.
  if (tooWide.size > 0) console.log(`\nThese allow some misses, too: ${[...tooWide].join(', ')}.`);
}

async function compiling(): Promise<void> {
  const rows: string[][] = [];
  for (const size of [1_000, 10_000, 100_000]) {
    const texts = grantsOf(size).map(({ method, domain, path }) => `${method}:${domain}/${path}`);
    const parsed = [...ScopeSet.from(texts)];
    const first = parsed[0] as (typeof parsed)[number];
    let turn = 0;
    const different = () => {
      turn = (turn + 1) % 50;
      return ScopeSet.from(parsed.slice(turn));
    };
    const set = ScopeSet.from(parsed);
    const half = ScopeSet.from(parsed.filter((_, i) => i % 2 === 0));
    const catalog = ScopeCatalog.from(parsed.filter((scope) => !String(scope).includes('*')));
    const work = await measure({
      compile: () => different().covers(first),
      sort: () => different().size,
      minimize: () => set.minimize(),
      diff: () => half.diff(set),
      ...(size <= 10_000 && { expand: () => catalog.expand(['GET:*/*']) }),
    });
    const [compile = 0, sort = 0, ...others] = work.map(({ figures }) => median(figures));
    const [minimize = 0, diff = 0, expand] = others;
    rows.push([
      String(size),
      ...[compile - sort, minimize, diff].map((us) => `${timeText(us / size)} a scope`),
      `${await memoryOf(parsed)} bytes a scope`,
      expand === undefined ? '' : timeText(expand),
    ]);
  }
  printTable('Compiling a set of parsed scopes, and the algebra', [
    ['scopes', 'compile', 'minimize', 'diff', 'memory', "expand('*:*/*')"],
    ...rows,
  ]);
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
async function worst(): Promise<void> {
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
  const all = await measure({
    ordinary: inTurn(questions, ({ request }) => usual.allows(request).allowed),
    ...Object.fromEntries(chosen),
  });
  printTable('The worst that 10 000 chosen scopes can do to a decision', [
    ['set', 'time', 'ratio'],
    ...all.map((one) => [one.name, timeOf(one), toFirst(one, all)]),
  ]);
}

needs({ minutes: 3, gigabytes: 2 });
console.log(`${machine()}; medians of ${roundsOf(PACE.rounds)} rounds`);
await decisions();
await peers();
await wholeApi();
await compiling();
await worst();
printGoals();
