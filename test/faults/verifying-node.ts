// One of several nodes over a common store: a process that verifies tokens all the time and does
// what its parent tells it. Argument: a NodeSetup in JSON.
import { setTimeout as delay } from 'node:timers/promises';
import { type KeyOptions, TokenService, type TokenStore } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { withFaults } from '../../src/testing/index.ts';
import { DRIVERS, type OpenOptions } from './engines.ts';

export interface NodeSetup {
  /** The name of one in `DRIVERS`; else it is SQLite. */
  readonly driver: string;
  readonly url: string;
  /** Where hints come from: the ports of the server, each with the one to use for it. */
  readonly hints: readonly (readonly [from: number, to: number])[] | 'the store itself' | 'nowhere';
  readonly maxStaleMs: number;
  readonly key: KeyOptions;
}

/** What a node can be told to do. Times are those of the machine, in milliseconds. */
export interface NodeVerbs {
  issue(count: number): Promise<string[]>;
  /** Verifies each value all the time until it is refused. Resolves when all have been accepted. */
  follow(values: readonly string[]): Promise<void>;
  /** Resolves to when the service has acknowledged it. */
  revoke(value: string): Promise<number>;
  /** Likewise. */
  suspend(value: string): Promise<number>;
  sightings(values: readonly string[]): Promise<Sighting[]>;
}

export interface Sighting {
  /** When it was last presented and accepted. */
  acceptedAt: number;
  refusedAt: number;
}

/** How the parent calls a verb, and gets its answer. */
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
/** A dead connection for hints is noticed the sooner. */
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
};

process.on('message', async ({ number, verb, argument }: NodeCall) => {
  const answer: NodeAnswer = { number, answer: await verbs[verb](argument as never) };
  process.send?.(answer);
});
process.on('disconnect', () => process.exit());

for (;;) {
  await Promise.all(followed.keys().map(present));
  await delay(PAUSE_MS);
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
    driver?.open(url, options).store ?? SqliteTokenStore.open(url);
  const store = open({ deadlineMs: DEADLINE_MS });
  if (hints === 'the store itself') return store;
  const { watch: _, ...unwatched } = withFaults(store);
  if (hints === 'nowhere') return unwatched;
  const { watch } = withFaults(open({ deadlineMs: HINTS_DEADLINE_MS, ports: new Map(hints) }));
  return watch === undefined ? unwatched : { ...unwatched, watch };
}
