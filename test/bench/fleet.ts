// What leases do in a large fleet that verifies one token: `npm run bench:fleet`. Time is simulated, the
// code of the leases is the real one. Prints the table of docs/guides/limits.md.
//
// What it assumes: requests reach each node as a Poisson process, all nodes at the same rate; a node looks
// at its requests once in a millisecond; the store answers after the round trip, whatever its load, and in
// the order of the calls; clocks agree; nobody is killed.

import { CheckedLeaseStore } from '../../src/limits/checked-lease-store.ts';
import { Leases } from '../../src/limits/leases.ts';
import type { LeaseStore, LeaseWant, UnspentLease } from '../../src/ports/lease-store.ts';
import type { TokenId, TokenRecord } from '../../src/token/record.ts';
import { QUIET } from '../support.ts';
import { printTable } from './page.ts';
import { needs } from './start.ts';

const SECONDS = Number(process.env['SECONDS'] ?? 4);
const ROUND_TRIP_MS = 2;
const START = Date.UTC(2100, 0, 1);

interface Plan {
  readonly nodes: number;
  readonly perSecond: number;
  readonly limit: number;
}

/** A store that answers later, by the simulated time. */
class LateStore implements LeaseStore {
  calls = 0;
  readonly #taken = new Map<number, number>();
  readonly #answers: { readonly at: number; readonly answer: () => void }[] = [];
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  take(wants: readonly LeaseWant[]): Promise<readonly number[]> {
    this.calls += 1;
    const granted = wants.map(({ window, limit, want }) => {
      const taken = this.#taken.get(window) ?? 0;
      const amount = Math.max(0, Math.min(want, limit - taken));
      this.#taken.set(window, taken + amount);
      return amount;
    });
    return new Promise((resolve) => {
      this.#answers.push({ at: this.#now() + ROUND_TRIP_MS, answer: () => resolve(granted) });
    });
  }

  async giveBack(leases: readonly UnspentLease[]): Promise<void> {
    this.calls += 1;
    for (const { window, amount } of leases) {
      this.#taken.set(window, (this.#taken.get(window) ?? 0) - amount);
    }
  }

  async purge(): Promise<number> {
    return 0;
  }

  answerDue(): void {
    while ((this.#answers[0]?.at ?? Number.POSITIVE_INFINITY) <= this.#now()) {
      this.#answers.shift()?.answer();
    }
  }
}

async function simulate({ nodes: count, perSecond, limit }: Plan): Promise<readonly string[]> {
  let now = START;
  const store = new LateStore(() => now);
  const checked = new CheckedLeaseStore(store, {
    deadlineMs: 60_000,
    health: QUIET,
    part: 'leases',
  });
  const nodes = Array.from(
    { length: count },
    () => new Leases({ store: checked, deadlineMs: 60_000, now: () => now }),
  );
  const records = [recordWith({ uses: limit, seconds: 1 })];
  const accepted = new Map<number, number>();
  let asked = 0;
  let waited = 0;
  const settle = (spent: unknown) => {
    const window = Math.floor((now - START) / 1000);
    if (spent === true) accepted.set(window, (accepted.get(window) ?? 0) + 1);
  };
  const perStep = perSecond / 1000 / count;
  for (let step = 0; step < SECONDS * 1000; step++) {
    store.answerDue();
    for (const node of nodes) {
      for (let requests = poisson(perStep); requests > 0; requests--) {
        asked += 1;
        const spent = node.spend(records, now);
        if (spent !== undefined) {
          settle(spent);
          continue;
        }
        waited += 1;
        void node.spendLater(records).then(settle);
      }
    }
    await new Promise(setImmediate);
    now += 1;
  }
  // The first second learns how large leases have to be.
  const windows = [...accepted].filter(([window]) => window > 0 && window < SECONDS);
  const counts = windows.map(([, uses]) => uses);
  const wanted = Math.min(limit, perSecond);
  const mean = counts.reduce((sum, uses) => sum + uses, 0) / counts.length;
  return [
    String(count),
    String(perSecond),
    String(limit),
    `${Math.max(...counts) > limit ? 'EXCEEDED' : Math.max(...counts)}`,
    `${((100 * mean) / wanted).toFixed(1)} %`,
    `${((100 * waited) / asked).toFixed(2)} %`,
    String(Math.round(store.calls / SECONDS)),
    `1 in ${Math.round(asked / store.calls)}`,
  ];
}

function poisson(mean: number): number {
  const least = Math.exp(-mean);
  let count = 0;
  for (let product = Math.random(); product > least; product *= Math.random()) count += 1;
  return count;
}

function recordWith(rate: { readonly uses: number; readonly seconds: number }): TokenRecord {
  return {
    id: 'A'.repeat(22) as TokenId,
    account: 'ada',
    prefix: 'acme',
    kid: 'k1',
    digest: new Uint8Array(32),
    scopes: [],
    requested: [],
    createdAt: new Date(START),
    expiresAt: new Date(START + 86_400_000),
    version: 1,
    limits: { rate },
  };
}

const PLANS: readonly Plan[] = [
  { nodes: 4, perSecond: 10_000, limit: 100_000 },
  { nodes: 4, perSecond: 10_000, limit: 5000 },
  { nodes: 100, perSecond: 100_000, limit: 200_000 },
  { nodes: 1000, perSecond: 1_000_000, limit: 10_000_000 },
  { nodes: 1000, perSecond: 1_000_000, limit: 2_000_000 },
  { nodes: 1000, perSecond: 1_000_000, limit: 1_000_000 },
  { nodes: 1000, perSecond: 1_000_000, limit: 500_000 },
];

const TITLES = [
  'nodes',
  'requests a second',
  'limit a second',
  'most in a second',
  'accepted of what could be',
  'waited',
  'calls of the store a second',
  'for requests',
];

needs({ minutes: 3, gigabytes: 1 });
const rows = [TITLES];
for (const plan of PLANS) rows.push([...(await simulate(plan))]);
printTable('Leases in a fleet', rows);
process.exit();
