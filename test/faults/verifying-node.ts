// One of several nodes over a common store: a process that verifies tokens continuously and executes the
// commands of its parent. Argument: a NodeSetup as JSON.
import { setTimeout as delay } from 'node:timers/promises';
import { type KeyOptions, TokenService, type TokenStore } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { withFaults } from '../../src/testing/index.ts';
import { DRIVERS, type OpenOptions } from './engines.ts';

export interface NodeSetup {
  /** A name in `DRIVERS`; any other name means SQLite. */
  readonly driver: string;
  readonly url: string;
  /** Where hints come from: the ports of the servers, each with the port of its proxy. */
  readonly hints: readonly (readonly [from: number, to: number])[] | 'the store itself' | 'nowhere';
  readonly maxStaleMs: number;
  readonly key: KeyOptions;
}

/** The commands of a node. Times are in milliseconds, by the clock of the machine. */
export interface NodeVerbs {
  issue(count: number): Promise<string[]>;
  /** Verifies each value continuously until it is refused. Resolves when all were accepted once. */
  follow(values: readonly string[]): Promise<void>;
  /** Resolves to the time of the acknowledgement. */
  revoke(value: string): Promise<number>;
  /** Likewise. */
  suspend(value: string): Promise<number>;
  sightings(values: readonly string[]): Promise<Sighting[]>;
  /** Resolves to the longest time by which a timer of this node was late since the last call. */
  lag(): Promise<number>;
}

export interface Sighting {
  /** When the last accepted call started. */
  acceptedAt: number;
  refusedAt: number;
}

/** The messages with which the parent calls a verb and gets the answer. */
export interface NodeCall {
  readonly number: number;
  readonly verb: keyof NodeVerbs;
  readonly argument: unknown;
}
export interface NodeAnswer {
  readonly number: number;
  readonly answer: unknown;
}

const PAUSE_MS = 4;
const DEADLINE_MS = 2000;
/** Short, so that a dead connection for hints is detected soon. */
const HINTS_DEADLINE_MS = 500;
const account = 'ada';
const scope = 'GET:shop.example/orders';

const setup: NodeSetup = JSON.parse(process.argv[2] ?? '');
const tokens = new TokenService({
  store: openStore(setup),
  keys: [setup.key],
  prefix: 'acme',
  cache: { maxStaleMs: setup.maxStaleMs },
});
const followed = new Map<string, Sighting>();
let longestLag = 0;
const sightingOf = (value: string) => followed.get(value) as Sighting;

const verbs: NodeVerbs = {
  async issue(count) {
    const values: string[] = [];
    while (values.length < count) {
      values.push((await tokens.issue({ account, scopes: [scope] })).value);
    }
    return values;
  },
  async follow(values) {
    for (const value of values) followed.set(value, { acceptedAt: 0, refusedAt: 0 });
    while (values.some((value) => sightingOf(value).acceptedAt === 0)) await delay(PAUSE_MS);
  },
  async revoke(value) {
    await tokens.revoke(account, value);
    return Date.now();
  },
  async suspend(value) {
    await tokens.patch(account, value, { suspended: true });
    return Date.now();
  },
  async sightings(values) {
    return values.map(sightingOf);
  },
  async lag() {
    const lag = longestLag;
    longestLag = 0;
    return lag;
  },
};

process.on('message', async ({ number, verb, argument }: NodeCall) => {
  const answer: NodeAnswer = { number, answer: await verbs[verb](argument as never) };
  process.send?.(answer);
});
process.on('disconnect', () => process.exit());

for (;;) {
  await Promise.all(followed.keys().map(present));
  const start = performance.now();
  await delay(PAUSE_MS);
  longestLag = Math.max(longestLag, performance.now() - start - PAUSE_MS);
}

async function present(value: string): Promise<void> {
  const sighting = sightingOf(value);
  if (sighting.refusedAt > 0) return;
  const presentedAt = Date.now();
  const { ok } = await tokens.verify(value, { scope });
  if (ok) sighting.acceptedAt = presentedAt;
  else sighting.refusedAt = Date.now();
}

function openStore({ driver: name, url, hints }: NodeSetup): TokenStore {
  const driver = DRIVERS.find((one) => one.name === name);
  const open = (options: OpenOptions) =>
    driver?.open(url, options).store ?? SqliteTokenStore.openFile(url);
  const store = open({ deadlineMs: DEADLINE_MS });
  if (hints === 'the store itself') return store;
  const { watch: _, ...unwatched } = withFaults(store);
  if (hints === 'nowhere') return unwatched;
  const { watch } = withFaults(open({ deadlineMs: HINTS_DEADLINE_MS, ports: new Map(hints) }));
  return watch === undefined ? unwatched : { ...unwatched, watch };
}
