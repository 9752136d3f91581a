// One node of the part `month` of bench:growth, in a process of its own: gets a month's requests at their real rate,
// and counts what it sends to its database.
import { once } from 'node:events';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { Client, Pool } from 'pg';
import { type KeyOptions, TokenService } from '../../src/index.ts';
import { PostgresTokenStore } from '../../src/stores/postgres/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { quotas, TOKEN_SCOPES } from './filling.ts';
import { MONTH, MONTH_VERIFIES } from './growth-page.ts';

export interface MonthNode {
  readonly engine: string;
  /** A folder or an address. */
  readonly place: string;
  readonly keys: readonly KeyOptions[];
  readonly values: readonly string[];
  readonly forMs: number;
}

export interface NodeMinute {
  readonly verifies: number;
  readonly statements: Readonly<Record<Kind, number>>;
  /** Without what it takes to call at this rate. */
  readonly cpuUs: number;
  /** Bytes of the process before its first call, and at the end. */
  readonly newRss: number;
  readonly rss: number;
}

const WARM_PASSES = 4;
const PAUSE_MS = (1000 * MONTH.nodes) / MONTH_VERIFIES;
/** For this share of the time it calls nothing first. */
const CONTROL = 0.2;

type Kind = 'reads' | 'usage' | 'changes' | 'other';
const statements: Record<Kind, number> = { reads: 0, usage: 0, changes: 0, other: 0 };

function countStatement(sql: string): void {
  statements[kindOf(sql)] += 1;
}

function kindOf(sql: string): Kind {
  if (/_usage\b|\buses\b/.test(sql)) return 'usage';
  if (/data_version|pg_notify|^LISTEN|^SELECT 1$/.test(sql)) return 'changes';
  return /^\s*SELECT/.test(sql) ? 'reads' : 'other';
}

/** Counts in the drivers, so that nothing is left out. */
function watchDrivers(): void {
  const { query } = Client.prototype;
  Client.prototype.query = function (this: Client, ...args: unknown[]) {
    const [asked] = args as [string | { readonly text: string }];
    countStatement(typeof asked === 'string' ? asked : asked.text);
    return Reflect.apply(query, this, args);
  } as typeof query;
  for (const name of ['run', 'get', 'all'] as const) {
    const method = StatementSync.prototype[name];
    StatementSync.prototype[name] = function (this: StatementSync, ...args: unknown[]) {
      countStatement(this.sourceSQL);
      return Reflect.apply(method, this, args);
    } as never;
  }
  const { exec } = DatabaseSync.prototype;
  DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string) {
    countStatement(sql);
    return Reflect.apply(exec, this, [sql]);
  };
}

/** Calls at the rate of one node, each when it is due. Returns the CPU it took, in microseconds. */
async function pace(forMs: number, call: () => Promise<void>): Promise<number> {
  const cpu = process.cpuUsage();
  const start = performance.now();
  for (let due = start; due < start + forMs; due += PAUSE_MS) {
    const waitMs = due - performance.now();
    if (waitMs > 1) await setTimeout(waitMs);
    await call();
  }
  const { user, system } = process.cpuUsage(cpu);
  return user + system;
}

const [{ engine, place, keys, values, forMs }] = (await once(process, 'message')) as [MonthNode];
const pacing = (await pace(forMs * CONTROL, async () => {})) / CONTROL;
watchDrivers();
const store =
  engine === 'SQLite'
    ? SqliteTokenStore.open(place)
    : new PostgresTokenStore(new Pool({ connectionString: place, max: 8 }));
const tokens = new TokenService({
  store,
  keys,
  prefix: 'acme',
  quotas,
  usage: true,
  cache: { maxStaleMs: MONTH.maxStaleMs },
});
const newRss = process.memoryUsage().rss;
const [firstScope = '', laterScope = ''] = TOKEN_SCOPES;
let scope = firstScope;
let verified = 0;

async function verifyNext(): Promise<void> {
  const value = values[verified % values.length] as string;
  verified += 1;
  if (!(await tokens.verify(value, { scope })).ok) throw new Error('refused');
  if (verified % (MONTH.uses / MONTH.renewed) !== 0) return;
  await tokens.issue({ account: `new${process.pid}`, scopes: TOKEN_SCOPES });
}

// Fills the cache and warms up.
for (let i = 0; i < WARM_PASSES * values.length; i++) await verifyNext();
// Of a million tokens, a node rarely counts the same scope of the same token again soon.
scope = laterScope;
process.send?.('ready');
await once(process, 'message');

const before = { verified, statements: { ...statements } };
const paced = await pace(forMs, verifyNext);
const sent = Object.entries(statements).map(([kind, count]) => {
  return [kind, count - before.statements[kind as Kind]] as const;
});
const minute: NodeMinute = {
  verifies: verified - before.verified,
  statements: Object.fromEntries(sent) as Record<Kind, number>,
  cpuUs: paced - pacing,
  newRss,
  rss: process.memoryUsage().rss,
};
process.send?.(minute);
