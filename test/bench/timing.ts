// Whether a time tells something: Welch's t of two ways to be refused, in turns that are drawn.
// `npm run bench:timing`. Under 4.5 nothing is seen; the controls leave early on purpose and must be
// seen. `ROUNDS=1000000` compares digests longer, `LOGINS=5000` asks for more passwords: scrypt takes
// tens of milliseconds each, so 100 000 of them would take hours. So many are asked for with a scrypt
// that costs next to nothing, which hides less of what is around it.
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { fixedAccounts, tokenHandler } from '../../src/http/index.ts';
import { generateKey, MemoryTokenStore, TokenService } from '../../src/index.ts';
import type { TokenRecord } from '../../src/token/record.ts';
import { shareOf } from './measure.ts';
import { machine, printTable } from './page.ts';
import { needs } from './start.ts';

const ROUNDS = Number(process.env['ROUNDS'] ?? 200_000);
const LOGINS = Number(process.env['LOGINS'] ?? 600);
const CHEAP_LOGINS = Number(process.env['CHEAP_LOGINS'] ?? 100_000);
const SCOPE = 'GET:shop.example/orders';
/** Of all times, those above are what else the machine did. */
const KEPT_SHARE = 0.9;
const WARM_SHARE = 0.1;
/** Of which the middle one is shown. */
const TRIES = 3;

/** One of two that are compared; what it prepares is not timed. */
interface Side {
  readonly prepare?: () => void;
  readonly act: () => unknown;
}

interface Row {
  readonly what: string;
  readonly rounds: number;
  readonly meansMicros: readonly [number, number];
  readonly t: number;
  /** The smallest difference of the means that would have had a t of 4.5. */
  readonly seenMicros: number;
  readonly bound: string;
}

needs({ minutes: 5, gigabytes: 1 });
const rows: Row[] = [
  await compareDigests('verify: digest differs in its first byte, or its last', 'under 4.5'),
  await compare(
    'control: a comparison that leaves at the first difference',
    ROUNDS,
    earlyExit(Buffer.alloc(32), 0),
    earlyExit(Buffer.alloc(32), 31),
    'over 50',
  ),
  await compareLogins(LOGINS, 'login: wrong password, or unknown user'),
  await compareControlLogins(LOGINS, 'control: one that hashes for known users alone'),
];
makeScryptCheap();
rows.push(
  await compareLogins(CHEAP_LOGINS, 'login, with a cheap scrypt'),
  await compareControlLogins(CHEAP_LOGINS, 'control, with a cheap scrypt'),
);

printTable('Times of refusals', [
  ['', 'rounds each', 'mean', 'mean', 't', 'should be', 'would see'],
  ...rows.map(({ what, rounds, meansMicros, t, seenMicros, bound }) => {
    const [a = '', b = '', seen = ''] = [...meansMicros, seenMicros].map(
      (us) => `${us.toFixed(3)} µs`,
    );
    return [what, String(rounds), a, b, Math.abs(t).toFixed(2), bound, seen];
  }),
]);
console.log(`\n${machine()}`);

/** One service, and one value against a record that differs from its own in one byte of the digest. */
async function compareDigests(what: string, bound: string): Promise<Row> {
  const store = new MemoryTokenStore();
  const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'acme' });
  const { value, id } = await tokens.issue({ account: 'ada', scopes: [SCOPE] });
  const [record] = await store.find([id]);
  if (record === undefined) throw new Error('the record is lost');
  let found: TokenRecord | undefined;
  store.find = async () => [found];
  const need = { scope: SCOPE };
  // A new one each time: where in memory a record lies would be seen as well.
  const verifying = (place: number): Side => ({
    prepare: () => {
      found = withOtherByte(record, place);
    },
    act: () => tokens.verify(value, need),
  });
  const sides = [verifying(0), verifying(31)] as const;
  for (const { prepare } of sides) {
    prepare?.();
    const verdict = await tokens.verify(value, need);
    if (verdict.ok || verdict.reason !== 'unknown')
      throw new Error('a wrong digest is not refused');
  }
  // What is there is there each time; a single try may show a nanosecond that is not.
  const tries: Row[] = [];
  for (let i = 0; i < TRIES; i++) tries.push(await compare(what, ROUNDS, ...sides, bound));
  return tries.sort((a, b) => Math.abs(a.t) - Math.abs(b.t))[TRIES >> 1] as Row;
}

function withOtherByte(record: TokenRecord, place: number): TokenRecord {
  const digest = Uint8Array.from(record.digest);
  digest[place] = (digest[place] ?? 0) ^ 0xff;
  return { ...record, digest };
}

function earlyExit(expected: Buffer, place: number): Side {
  const presented = Buffer.from(expected);
  presented[place] = 0xff;
  const act = () => {
    for (let i = 0; i < expected.length; i++) {
      if (presented[i] !== expected[i]) return false;
    }
    return true;
  };
  return { act };
}

/** A user that there is, with a wrong password, and one that there is not; through the handler. */
function compareLogins(rounds: number, what: string): Promise<Row> {
  const authenticate = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);
  return compareUsers(rounds, what, authenticate, 'under 10');
}

function compareControlLogins(rounds: number, what: string): Promise<Row> {
  const real = fixedAccounts([{ username: 'ada', password: 'correct horse' }]);
  const early: typeof real = async (credentials) =>
    credentials.username === 'ada' ? real(credentials) : null;
  return compareUsers(rounds, what, early, 'over 50');
}

/** For this process, from now on; both forms, since a list hashes its passwords when it is made. */
function makeScryptCheap(): void {
  const { scrypt, scryptSync } = crypto;
  const cheap = { N: 2, r: 1, p: 1 };
  Object.assign(crypto, {
    scrypt: (...[password, salt, length, , done]: Parameters<typeof scrypt>) =>
      scrypt(password, salt, length, cheap, done),
    scryptSync: (...[password, salt, length]: Parameters<typeof scryptSync>) =>
      scryptSync(password, salt, length, cheap),
  });
  syncBuiltinESMExports();
}

async function compareUsers(
  rounds: number,
  what: string,
  authenticate: ReturnType<typeof fixedAccounts>,
  bound: string,
): Promise<Row> {
  const tokens = new TokenService({
    store: new MemoryTokenStore(),
    keys: [generateKey()],
    prefix: 'acme',
  });
  const handler = tokenHandler({ tokens, authenticate });
  const asking = (username: string) => {
    const authorization = `Basic ${Buffer.from(`${username}:wrong horse`).toString('base64')}`;
    const act = async () => {
      const request = new Request('http://localhost/token', { headers: { authorization } });
      const { status } = await handler(request);
      if (status !== 401) throw new Error(`answered ${status}`);
    };
    return { act };
  };
  return compare(what, rounds, asking('ada'), asking('eve'), bound);
}

async function compare(
  what: string,
  rounds: number,
  a: Side,
  b: Side,
  bound: string,
): Promise<Row> {
  const times: [number[], number[]] = [[], []];
  const order = crypto.randomBytes(Math.ceil(rounds * (1 + WARM_SHARE)));
  for (const [round, byte] of order.entries()) {
    // Both in each round, which of them first is drawn: what drifts then touches both.
    for (const which of byte & 1 ? ([0, 1] as const) : ([1, 0] as const)) {
      const { prepare, act } = which === 0 ? a : b;
      prepare?.();
      const start = process.hrtime.bigint();
      await act();
      const took = Number(process.hrtime.bigint() - start);
      if (round >= rounds * WARM_SHARE) times[which].push(took);
    }
  }
  const bar = shareOf([...times[0], ...times[1]], KEPT_SHARE);
  const kept = times.map((all) => all.filter((time) => time <= bar)) as [number[], number[]];
  const [one, other] = [momentsOf(kept[0]), momentsOf(kept[1])];
  const error = Math.sqrt(one.variance / one.count + other.variance / other.count);
  const t = (one.mean - other.mean) / error;
  const meansMicros = [one.mean / 1000, other.mean / 1000] as const;
  return { what, rounds: times[0].length, meansMicros, t, seenMicros: (4.5 * error) / 1000, bound };
}

function momentsOf(values: readonly number[]): { count: number; mean: number; variance: number } {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { count, mean, variance: squares / (count - 1) };
}
