// The core against what people would pick instead, side by side in one process and one run:
// `npm run bench`. Peers at their best configuration, with the same work: 1 000 tokens in rotation, a
// fresh string for each call, ten scopes of which one is needed. `-- --write` puts the figures into
// docs/comparison.md and README.md.
import { AsyncLocalStorage } from 'node:async_hooks';
import { execFileSync } from 'node:child_process';
import { hash, randomBytes } from 'node:crypto';
import OAuth2Server from '@node-oauth/oauth2-server';
import { createSigner, createVerifier } from 'fast-jwt';
import { jwtVerify, SignJWT } from 'jose';
import jwt from 'jsonwebtoken';
import Provider from 'oidc-provider';
import { checkAPIKey, extractShortToken, generateAPIKey } from 'prefixed-api-key';
import { generateKey, MemoryTokenStore, type TokenLimits, TokenService } from '../../src/index.ts';
import { betterAuthKeys } from './better-auth.ts';
import { atMost, byName, goal, printGoals } from './goals.ts';
import {
  compare as compareLoops,
  type Loop,
  type Measured,
  median,
  ratios,
  roundsOf,
  takeTurns,
} from './measure.ts';
import { digits, machine, putInto, type Rows, table, timeText, today } from './page.ts';
import { isWriting, needs } from './start.ts';

const COUNT = 1000;
const PACE = { rounds: 21, roundMs: 40, warmMs: 400 };
const START_UPS = 21;
const IN_FLIGHT = 32;
const NAMES = [...'abcdefghij'];
const SCOPES = NAMES.map((name) => `GET:shop.example/${name}`);
const NEEDED = SCOPES[4] as string;
const NEED = { scope: NEEDED };
const SECRET = randomBytes(32);

needs({ minutes: 2, gigabytes: 1, programs: ['dist'] });

/** One call with a presented value; what it answers must be true. */
type Call = (value: string) => unknown;

interface Candidate {
  readonly name: string;
  readonly call: Call;
  /** What is presented, in rotation; nothing where nothing is. */
  readonly values: readonly string[];
  /** How many calls are under way at once. @default 1 */
  readonly inFlight?: number;
  /** Runs a whole round: in a context, for one. */
  readonly around?: (round: () => Promise<void>) => Promise<void>;
}

/** Microseconds a call. */
function loopOf(candidate: Candidate): Loop<number> {
  const { call, values, inFlight = 1, around = (work) => work() } = candidate;
  return async (count) => {
    const fresh = freshOnes(values, count);
    let us = 0;
    await around(async () => {
      const start = performance.now();
      if (inFlight === 1) {
        for (const value of fresh) {
          const answer = call(value);
          if (answer instanceof Promise) await answer;
        }
      } else {
        for (let i = 0; i < fresh.length; i += inFlight) {
          await Promise.all(fresh.slice(i, i + inFlight).map(call));
        }
      }
      us = ((performance.now() - start) * 1000) / count;
    });
    return us;
  };
}

/** As a server gets them: each a string of its own, that nobody has hashed yet. */
function freshOnes(values: readonly string[], count: number): string[] {
  return Array.from({ length: count }, (_, i) =>
    Buffer.from(values[i % values.length] as string, 'latin1').toString('latin1'),
  );
}

async function compare(title: string, candidates: readonly Candidate[]): Promise<Measured[]> {
  for (const { name, call, values } of candidates) {
    if ((await call(values[0] as string)) !== true) throw new Error(`${name} says no`);
  }
  const loops = candidates.map((one) => [one.name, loopOf(one)] as const);
  return compareLoops(title, Object.fromEntries(loops), PACE);
}

async function issued(tokens: TokenService, limits?: TokenLimits): Promise<string[]> {
  const values: string[] = [];
  for (let i = 0; i < COUNT; i++) {
    values.push((await tokens.issue({ account: `account${i}`, scopes: SCOPES, limits })).value);
  }
  return values;
}

function serviceWith(maxStaleMs: number): TokenService {
  const limits = { store: new MemoryTokenStore().leases };
  const options = { keys: [generateKey()], prefix: 'acme', cache: { maxStaleMs }, limits };
  return new TokenService({ store: new MemoryTokenStore(), ...options });
}

const hasScope = (scope: unknown) => String(scope).split(' ').includes(NEEDED);
const claims = (i: number) => ({ sub: `account${i}`, scope: SCOPES.join(' ') });
const list = (make: (i: number) => string) => Array.from({ length: COUNT }, (_, i) => make(i));

async function oauth2Server(): Promise<Candidate> {
  const kept = new Map<string, OAuth2Server.Token>();
  const expires = new Date(Date.now() + 3_600_000);
  for (const value of list(() => randomBytes(32).toString('hex'))) {
    const client = { id: 'shop', grants: [] };
    kept.set(value, {
      accessToken: value,
      accessTokenExpiresAt: expires,
      scope: SCOPES,
      client,
      user: {},
    });
  }
  const model = {
    getAccessToken: async (value: string) => kept.get(value) ?? false,
    verifyScope: async (token: OAuth2Server.Token, scopes: string[]) =>
      scopes.every((scope) => token.scope?.includes(scope)),
  };
  const server = new OAuth2Server({ model: model as never });
  const options = {
    scope: [NEEDED],
    addAcceptedScopesHeader: false,
    addAuthorizedScopesHeader: false,
  };
  return {
    name: '@node-oauth/oauth2-server, memory',
    values: [...kept.keys()],
    async call(value) {
      const request = new OAuth2Server.Request({
        method: 'GET',
        query: {},
        headers: { authorization: `Bearer ${value}` },
      });
      const answer = new OAuth2Server.Response({});
      await server.authenticate(request, answer, options);
      return true;
    },
  };
}

async function prefixedKeys(): Promise<Candidate> {
  const kept = new Map<string, { hash: string; scopes: readonly string[] }>();
  const values: string[] = [];
  for (let i = 0; i < COUNT; i++) {
    const made = await generateAPIKey({ keyPrefix: 'acme' });
    kept.set(made.shortToken as string, { hash: made.longTokenHash as string, scopes: SCOPES });
    values.push(made.token as string);
  }
  return {
    name: 'prefixed-api-key, memory',
    values,
    async call(value) {
      const found = kept.get(extractShortToken(value));
      return found !== undefined && checkAPIKey(value, found.hash) && found.scopes.includes(NEEDED);
    },
  };
}

async function oidcProvider(): Promise<Candidate> {
  const provider = new Provider('http://localhost', {
    clients: [
      {
        client_id: 'shop',
        client_secret: 'x'.repeat(32),
        redirect_uris: [],
        grant_types: ['client_credentials'],
        response_types: [],
      },
    ],
    scopes: SCOPES,
    features: { clientCredentials: { enabled: true } },
    cookies: { keys: [randomBytes(16).toString('hex')] },
  });
  const client = await provider.Client.find('shop');
  const values: string[] = [];
  for (let i = 0; i < COUNT; i++) {
    const token = new provider.ClientCredentials({
      client: client as never,
      scope: SCOPES.join(' '),
    } as never);
    values.push(await token.save());
  }
  return {
    name: 'oidc-provider, opaque, memory',
    values,
    async call(value) {
      const found = await provider.ClientCredentials.find(value);
      return found !== undefined && hasScope(found.scope);
    },
  };
}

const uncached = serviceWith(0);
const cached = serviceWith(60_000);
const [uncachedValues, cachedValues] = [await issued(uncached), await issued(cached)];
const joseKey = Uint8Array.from(SECRET);
const signed = list((i) => jwt.sign(claims(i), SECRET, { algorithm: 'HS256', expiresIn: '1h' }));
const verifyPlain = createVerifier({ key: SECRET, cache: false, algorithms: ['HS256'] });
const verifyCaching = createVerifier({ key: SECRET, cache: true, algorithms: ['HS256'] });
const keysOfBetterAuth = await betterAuthKeys(NAMES, 'e', COUNT);
const verify: Call = async (value) => (await uncached.verify(value, NEED)).ok;
const verifyCached: Call = async (value) => (await cached.verify(value, NEED)).ok;
const verifyJose: Call = async (value) =>
  hasScope((await jwtVerify(value, joseKey)).payload['scope']);
const context = new AsyncLocalStorage<object>();
const inContext = (work: () => Promise<void>) => context.run({}, work);

const all = await compare('Verify, one at a time', [
  { name: 'tokenwright, memory store, no cache', values: uncachedValues, call: verify },
  { name: 'tokenwright, cache hit, awaited', values: cachedValues, call: verifyCached },
  {
    name: 'tokenwright, cache hit, sync',
    values: cachedValues,
    call: (value) => cached.verifySync(value, NEED)?.ok,
  },
  {
    name: 'fast-jwt HS256, no cache',
    values: signed,
    call: (value) => hasScope(verifyPlain(value).scope),
  },
  {
    name: 'fast-jwt HS256, its cache',
    values: signed,
    call: (value) => hasScope(verifyCaching(value).scope),
  },
  {
    name: 'jsonwebtoken HS256',
    values: signed,
    call: (value) => hasScope((jwt.verify(value, SECRET) as jwt.JwtPayload)['scope']),
  },
  { name: 'jose HS256', values: signed, call: verifyJose },
  await oauth2Server(),
  await prefixedKeys(),
  await oidcProvider(),
  {
    name: 'better-auth API key, memory',
    values: keysOfBetterAuth.values,
    call: keysOfBetterAuth.verify,
  },
]);
const of = (name: string) => byName(all, name);
const [bare, hit] = [of('tokenwright, memory'), of('tokenwright, cache hit, awaited')];
const theirHit = of('fast-jwt HS256, its cache');
goal('verify, no cache, to @node-oauth/oauth2-server', 1, bare, of('@node-oauth'));
goal('verify, no cache, to prefixed-api-key', 1, bare, of('prefixed'));
goal('verify, no cache, to fast-jwt without its cache', 0.3, bare, of('fast-jwt HS256, no cache'));
goal('cache hit to fast-jwt with its cache', 0.5, hit, theirHit);
goal('verifySync to fast-jwt with its cache', 0.35, of('tokenwright, cache hit, sync'), theirHit);

await compare(`Verify, ${IN_FLIGHT} at once`, [
  { name: 'tokenwright, cache hit', values: cachedValues, call: verifyCached, inFlight: IN_FLIGHT },
  { name: 'jose HS256', values: signed, call: verifyJose, inFlight: IN_FLIGHT },
]);

// Enough for all rounds: a lease is in hand nearly always.
const rate = { uses: 1_000_000_000, seconds: 3600 };
const blocks = (count: number) => list((i) => `10.${i >> 8}.${i & 255}.0/24`).slice(0, count);
const from = { address: '10.0.99.7' };
const [plain, rated, limitedOnce] = await compare('A cache hit of a limited token', [
  { name: 'no limits', values: cachedValues, call: verifyCached },
  { name: 'a rate', values: await issued(cached, { rate }), call: verifyCached },
  {
    name: 'a rate and a number of uses',
    values: await issued(cached, { rate, uses: 1_000_000_000 }),
    call: verifyCached,
  },
  {
    name: '100 blocks of addresses, of which the last one has it',
    values: await issued(cached, { addresses: blocks(100) }),
    call: async (value) => (await cached.verify(value, NEED, from)).ok,
  },
]);
goal('cache hit with a rate to one without limits', 1.25, rated, plain);
goal('cache hit with a rate and uses to one without limits', 1.4, limitedOnce, plain);

const [within, fastWithin] = await compare('Verify under AsyncLocalStorage', [
  {
    name: 'tokenwright, cache hit, awaited',
    values: cachedValues,
    call: verifyCached,
    around: inContext,
  },
  {
    name: 'fast-jwt HS256, its cache',
    values: signed,
    call: (value) => hasScope(verifyCaching(value).scope),
    around: inContext,
  },
]);
goal('cache hit to fast-jwt with its cache, under AsyncLocalStorage', 0.6, within, fastWithin);

/** Tokens with the same scopes, each derived from one of these values. */
async function derivedFrom(values: readonly string[]): Promise<string[]> {
  const derived: string[] = [];
  for (const value of values) derived.push((await cached.derive(value, { scopes: SCOPES })).value);
  return derived;
}

const roots = await issued(cached);
const children = await derivedFrom(roots);
const [root, child, grandchild] = await compare('A cache hit of a derived token', [
  { name: 'a root', values: roots, call: verifyCached },
  { name: 'its child', values: children, call: verifyCached },
  { name: 'its grandchild', values: await derivedFrom(children), call: verifyCached },
]);
goal('cache hit of a child to its root', 1.15, child, root);
goal('cache hit of a grandchild to its root', 1.25, grandchild, root);

const forged = uncachedValues.map(
  (value) => `${value.slice(0, -1)}${value.endsWith('0') ? '1' : '0'}`,
);
const pads = [randomBytes(121), randomBytes(96)] as const;
const [refused, hashes] = await compare('A forged value', [
  {
    name: 'tokenwright refuses it',
    values: forged,
    call: async (value) => !(await uncached.verify(value, NEED)).ok,
  },
  {
    name: 'two one-shot hashes',
    values: forged,
    call: () => pads.every((pad) => hash('sha256', pad, 'hex') !== ''),
  },
]);
goal('a forged value refused, to a pair of hashes', 2.5, refused, hashes);

const issues = serviceWith(0);
let count = 0;
const signFast = createSigner({ key: SECRET, algorithm: 'HS256', expiresIn: 3_600_000 });
const made = await compare('Issue', [
  {
    name: 'tokenwright, memory store',
    values: [''],
    call: async () => {
      // As many accounts as it takes for none to reach its quota.
      const account = `account${count++ % 1000}`;
      return (await issues.issue({ account, scopes: SCOPES })).value !== '';
    },
  },
  {
    name: 'jsonwebtoken HS256',
    values: [''],
    call: () => jwt.sign(claims(1), SECRET, { algorithm: 'HS256', expiresIn: '1h' }) !== '',
  },
  { name: 'fast-jwt HS256', values: [''], call: () => signFast(claims(1)) !== '' },
  {
    name: 'jose HS256',
    values: [''],
    call: async () =>
      (await new SignJWT(claims(1))
        .setProtectedHeader({ alg: 'HS256' })
        .setExpirationTime('1h')
        .sign(joseKey)) !== '',
  },
  {
    name: 'prefixed-api-key',
    values: [''],
    call: async () => (await generateAPIKey({ keyPrefix: 'acme' })).token !== '',
  },
  {
    name: 'better-auth API key, memory',
    values: [''],
    call: async () => (await keysOfBetterAuth.create()) !== '',
  },
]);
const [issuing, signing] = made;
goal('issue to jsonwebtoken signing', 0.25, issuing, signing);

/** Milliseconds that a fresh process takes. */
function startUp(code: string): number {
  const start = performance.now();
  execFileSync(process.execPath, ['--input-type=module', '-e', code]);
  return performance.now() - start;
}

const importing = (entry: string) => () =>
  startUp(
    `await import(${JSON.stringify(new URL(`../../dist/${entry}.js`, import.meta.url).href)})`,
  );
const [nothing, index, scope] = await takeTurns(START_UPS, {
  nothing: () => startUp(''),
  index: importing('index'),
  scope: importing('scope'),
});
for (const [one, most] of [
  [index, 25],
  [scope, 5],
] as const) {
  const ms = one?.figures.map((figure, round) => figure - (nothing?.figures[round] ?? 0)) ?? [];
  atMost(`importing ${one?.name}, in ms over bare Node`, most, ms);
}

printGoals();
console.log(`\n${machine()}; ${roundsOf(PACE.rounds)} rounds`);
if (isWriting) write();
process.exit();

/** The tables of the pages: ours first, then the fastest. */
function write(): void {
  const [first] = all;
  const isOurs = ({ name }: Measured) => name.startsWith('tokenwright');
  const times = new Map(all.map(({ name, figures }) => [name, median(figures)]));
  const others = all.filter((one) => !isOurs(one));
  others.sort((a, b) => (times.get(a.name) ?? 0) - (times.get(b.name) ?? 0));
  const rows: Rows = [...all.filter(isOurs), ...others].map(({ name, figures }) => {
    const ratio = median(ratios(figures, first?.figures ?? []));
    return [name, timeText(times.get(name) ?? 0), digits(ratio)];
  });
  const [us = [], them = []] = [issuing?.figures, signing?.figures];
  const share = median(ratios(us, them)).toFixed(2);
  putInto('docs/comparison.md', 'verify', [
    table([['', 'time', 'relative to tokenwright, memory store'], ...rows]),
    `Issuing a token takes ${timeText(median(us))}, which is ${share} of the time that jsonwebtoken takes to sign one (${timeText(median(them))}).`,
    `Measured on ${today()} by \`npm run bench\`, on ${machine()}. Each number is the median of ${roundsOf(PACE.rounds)} rounds that take turns.`,
  ]);
  const short: Rows = [
    ['tokenwright, with its cache', 'tokenwright, cache hit, awaited'],
    ['tokenwright', 'tokenwright, memory store, no cache'],
    ['`@node-oauth/oauth2-server`, which matches no paths', '@node-oauth/oauth2-server, memory'],
    ['`fast-jwt`, HS256', 'fast-jwt HS256, no cache'],
  ].map(([text = '', name = '']) => [text, timeText(times.get(name) ?? 0)]);
  putInto('README.md', 'verify', [
    table([['one check, tokens in memory', 'time'], ...short]),
    `Medians of ${today()}. \`docs/comparison.md\` has the whole table.`,
  ]);
}
