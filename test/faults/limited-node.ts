// One of several nodes that accept one limited token as often as they can. It notes each accepted use in
// a file at once, so that the uses of a killed process count as well. Argument: a LimitedNode in JSON.
import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { isTokenError, type KeyOptions, type LeaseStore, TokenService } from '../../src/index.ts';
import { SqliteTokenStore } from '../../src/stores/sqlite/index.ts';
import { type LeasePlace, openLeases } from '../stores/lease-engines.ts';
import { SCOPE } from '../support.ts';

export interface LimitedNode {
  /** Where leases are kept; a path is a file with a counter that is read first and written later. */
  readonly leases: LeasePlace | string;
  /** The file of the tokens. */
  readonly tokens: string;
  readonly key: KeyOptions;
  readonly value: string;
  readonly callers: number;
  /** Where accepted uses are noted: their number, or the window of each if there is an end. */
  readonly notes: string;
}

/** What begins it. */
export interface Start {
  /** Goes on until this time, in milliseconds since 1970; else until there is nothing left. */
  readonly until?: number;
}

/** Waits for every process, however slow the machine is: what comes too late is lost. */
const DEADLINE_MS = 20_000;

const node: LimitedNode = JSON.parse(process.argv[2] ?? '');
const { leases } = node;
const { store, close } =
  typeof leases === 'string'
    ? { store: readsThenWrites(leases), close: async () => {} }
    : openLeases(leases);
const tokens = new TokenService({
  store: SqliteTokenStore.open(node.tokens),
  keys: [node.key],
  prefix: 'acme',
  cache: { maxStaleMs: 60_000 },
  deadlineMs: DEADLINE_MS,
  limits: { store },
});
const notes = openSync(node.notes, 'w');
let accepted = 0;

async function call({ until }: Start): Promise<void> {
  for (;;) {
    const before = Date.now();
    const verdict = await tokens.verify(node.value, { scope: SCOPE }).catch(undefinedIfAway);
    if (until === undefined) {
      if (verdict !== undefined && !verdict.ok) return;
      if (verdict?.ok) accepted += 1;
      writeSync(notes, String(accepted), 0);
    } else {
      // At the turn of a window, it cannot be told to which of both it belongs.
      const window = Math.floor(before / 1000);
      if (verdict?.ok && window === Math.floor(Date.now() / 1000)) writeSync(notes, `${window}\n`);
      if (Date.now() > until) return;
    }
    await turn();
  }
}

/** SQLite gives up when others write all the time. */
function undefinedIfAway(error: unknown): undefined {
  if (!isTokenError(error) || error.code !== 'store_unavailable') throw error;
}

/** What looks right and is not: two processes may read the same number. */
function readsThenWrites(file: string): LeaseStore {
  return {
    async take(wants) {
      const granted: number[] = [];
      for (const { limit, want } of wants) {
        const count = Number(readFileSync(file, 'utf8'));
        await turn();
        granted.push(Math.max(0, Math.min(want, limit - count)));
        writeFileSync(file, String(count + (granted.at(-1) ?? 0)));
      }
      return granted;
    },
    async giveBack() {},
    purge: async () => 0,
  };
}

process.send?.('ready');
process.once('message', async (start: Start) => {
  await Promise.all(Array.from({ length: node.callers }, () => call(start)));
  await tokens.close();
  await close();
  closeSync(notes);
  process.send?.('done', () => process.disconnect());
});
