import { MAX_COUNTED_SCOPES } from '../../bounds.ts';
import { TokenError } from '../../errors.ts';
import type { ScanQuery } from '../../ports/token-store.ts';
import type {
  CountedTokens,
  UsageDelta,
  UsageRecord,
  UsageStore,
  UsageTotals,
} from '../../ports/usage-store.ts';
import { withDeadline } from '../../time/deadline.ts';
import type { TokenId } from '../../token/record.ts';
import { rowsOf, type TotalsRow, totalsOf, type UsageRow, usagesOf } from '../shared/usage-rows.ts';
import { driverOf, type RedisClient } from './client.ts';
import { corruptRecord, type Driver, tokenErrorOf, withDriver } from './driver.ts';
import { type KeySpace, keySpaceOf } from './layout.ts';
import { ReplicatedWrites } from './replicated-writes.ts';
import { runScript, type Script, type WriteCall } from './scripts.ts';
import { ADD_USAGE, READ_TOTALS, READ_USAGE, START_USAGE } from './usage-scripts.ts';

/** How a {@link RedisUsageStore} works. */
export interface RedisUsageStoreOptions {
  /**
   * The prefix of all keys: 1 to 64 characters of `A-Z`, `a-z`, `0-9`, `_`, `-`, `.` and `:`. It may be
   * the one of the token store: their keys differ. @default 'tokenwright'
   */
  readonly keyPrefix?: string | undefined;
}

/**
 * Below the default deadline of a service, so that it still learns what was added. Above the time in which
 * a connection may open, so that a write that was rejected is not sent later.
 */
const ADD_MS = 1800;

const FIRST_CURSOR = '0';

/** The rows of a batch for one token. */
interface TokenRows {
  readonly id: TokenId;
  readonly rows: readonly UsageRow[];
}

/**
 * Stores how tokens are used in Redis or Redis Cluster, version 6.2 or later, in one hash for each token.
 *
 * Pass a client of ioredis or node-redis, such as the one of the token store. It is yours: closing the
 * store leaves it open. Counts are written over connections of their own, so that no `verify` waits
 * behind them, and such a connection never sends a count again. All calls take one round trip, in
 * a cluster one to each server, concurrently.
 *
 * `add` works in steps of 100 tokens, in a cluster also slot by slot. Each step happens whole or not at
 * all, so the counts of one token always do. If `add` rejects, for example because one server of a cluster
 * is down or full, other steps may have been made. The error then names their tokens in `details.added`,
 * within 1.8 seconds: keep the `deadlineMs` of the service above that, so that it adds nothing again.
 *
 * Counts wait for no replica, so a failover may lose the last ones. They have no expiry: `forget` removes
 * them. Set `maxmemory-policy` to `noeviction`, or a full server may evict counts, and used scopes look
 * unused.
 *
 * @example
 * const client = new Redis('redis://db.internal', { maxRetriesPerRequest: 1, socketTimeout: 1000 });
 * const store = new RedisUsageStore(client);
 * await store.add([{ id: token.id, refusals: 1 }]);
 * await store.close();
 * client.disconnect();
 */
export class RedisUsageStore implements UsageStore {
  readonly #driver: Driver;
  readonly #keys: KeySpace;
  readonly #writes: ReplicatedWrites;
  /** Undefined before the first `add`, and after a failure. */
  #start: Promise<unknown> | undefined;

  /**
   * Sends nothing; the first call does.
   *
   * @throws {TokenError} `invalid_options`, also for a client that reads from replicas
   */
  constructor(client: RedisClient, { keyPrefix }: RedisUsageStoreOptions = {}) {
    this.#driver = driverOf(client);
    this.#keys = keySpaceOf(this.#driver, keyPrefix);
    this.#writes = new ReplicatedWrites(this.#driver, 0, 0);
  }

  async add(batch: readonly UsageDelta[]): Promise<void> {
    const parts = this.#keys.batched(byToken(rowsOf(batch)));
    if (parts.length > 0) this.#noteStart();
    const outcomes = await Promise.allSettled(
      parts.map((tokens) => withDeadline(this.#writes.run(this.#additionOf(tokens)), ADD_MS)),
    );
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failed === undefined) return;
    const done = parts.filter((_, index) => outcomes[index]?.status === 'fulfilled');
    const added = done.flat().map(({ id }) => id);
    const { code, message, details } = tokenErrorOf(failed.reason);
    throw new TokenError(code, message, { ...details, added });
  }

  #additionOf(tokens: readonly TokenRows[]): WriteCall {
    const counts = tokens.flatMap(({ rows }, index) =>
      rows.flatMap(({ scope, uses, lastUsedAt }) => [
        `${index + 1}`,
        scope,
        `${uses} ${lastUsedAt}`,
      ]),
    );
    return {
      slot: this.#keys.slotOf(tokens),
      script: ADD_USAGE,
      keys: tokens.map(({ id }) => this.#keys.usage(id)),
      values: [String(MAX_COUNTED_SCOPES), ...counts],
    };
  }

  async read(ids: readonly TokenId[]): Promise<(UsageRecord | undefined)[]> {
    return usagesOf(ids, await this.#readAll(READ_USAGE, ids, rowsIn));
  }

  async totals(ids: readonly TokenId[]): Promise<(UsageTotals | undefined)[]> {
    return totalsOf(ids, await this.#readAll(READ_TOTALS, ids, totalsIn));
  }

  /** Runs a script that reads tokens, and parses its answer for each. */
  async #readAll<Answer, Row>(
    script: Script,
    ids: readonly TokenId[],
    parse: (id: TokenId, answer: Answer | undefined) => Row[],
  ): Promise<Row[]> {
    const groups = this.#keys.batched([...new Set(ids)].map((id) => ({ id })));
    const rows = groups.map(async (group) => {
      const keys = group.map(({ id }) => this.#keys.usage(id));
      const answers = await runScript(this.#driver, { script, keys, values: [] });
      return group.flatMap(({ id }, index) => parse(id, (answers as readonly Answer[])[index]));
    });
    return (await Promise.all(rows)).flat();
  }

  async forget(ids: readonly TokenId[]): Promise<void> {
    const groups = this.#keys.batched(ids.map((id) => ({ id })));
    await Promise.all(
      groups.map((group) => {
        const keys = group.map(({ id }) => this.#keys.usage(id));
        return withDriver(this.#driver, () => this.#driver.send(['unlink', ...keys], keys[0]));
      }),
    );
  }

  /** Looks at about `limit` keys of one server, and at those of the others after that. */
  async scan({ after = `0 ${FIRST_CURSOR}`, limit }: ScanQuery): Promise<CountedTokens> {
    const [place = '', cursor = ''] = after.split(' ', 2);
    const answer = await withDriver(this.#driver, async () => {
      const servers = await Promise.all(this.#driver.primaries());
      servers.sort((one, other) => (one.address < other.address ? -1 : 1));
      const pattern = this.#keys.allUsage();
      const command = ['scan', cursor, 'MATCH', pattern, 'COUNT', String(limit)] as const;
      const found = await servers[Number(place)]?.send(command);
      return { count: servers.length, found: found as readonly [unknown, readonly unknown[]] };
    });
    // A server may have left the cluster meanwhile.
    const [next, names] = answer.found ?? [FIRST_CURSOR, []];
    // The last one: the prefix of the host may hold it, too.
    const ids = names.map((name) => String(name).split(':usage:').at(-1) as TokenId);
    const isOver = String(next) === FIRST_CURSOR;
    if (isOver && Number(place) + 1 >= answer.count) return { ids };
    return { ids, next: isOver ? `${Number(place) + 1} ${FIRST_CURSOR}` : `${place} ${next}` };
  }

  /**
   * The time from which counts are complete: when the first count was added under this key prefix, by
   * the clock of the server. If the server loses all its keys, it is a later time.
   *
   * @throws {TokenError} `store_unavailable`
   */
  async since(): Promise<Date> {
    const call = { script: START_USAGE, keys: [this.#keys.usageStart()], values: [] };
    const start = new Date(Number(await runScript(this.#driver, call)));
    if (Number.isNaN(start.getTime())) throw corruptRecord();
    return start;
  }

  /** Nothing waits for this: if it fails, `since` is too late, but no count is lost. */
  #noteStart(): void {
    this.#start ??= this.since().catch(() => {
      this.#start = undefined;
    });
  }

  /** Ends the connections that the store has opened. The client that you passed in stays open. */
  async close(): Promise<void> {
    this.#writes.close();
  }
}

function byToken(rows: readonly UsageRow[]): TokenRows[] {
  const tokens = new Map<TokenId, UsageRow[]>();
  for (const row of rows) {
    const own = tokens.get(row.id);
    if (own === undefined) tokens.set(row.id, [row]);
    else own.push(row);
  }
  return Array.from(tokens, ([id, own]) => ({ id, rows: own }));
}

const CELL = /^(\d+) (-?\d+)$/;

/** Reads fields and cells in turn. */
function rowsIn(id: TokenId, hash: readonly string[] = []): UsageRow[] {
  const rows: UsageRow[] = [];
  for (let index = 0; index < hash.length; index += 2) {
    const [scope = '', cell = ''] = hash.slice(index, index + 2);
    const [, uses, lastUsedAt] = CELL.exec(cell) ?? [];
    if (uses === undefined) throw corruptRecord();
    rows.push({ id, scope, uses: Number(uses), lastUsedAt: Number(lastUsedAt) });
  }
  return rows;
}

const TOTALS = /^(\d+) (\d+)(?: (-?\d+))?$/;

function totalsIn(id: TokenId, answer = ''): TotalsRow[] {
  if (answer === '') return [];
  const [, uses, refusals, last] = TOTALS.exec(answer) ?? [];
  if (uses === undefined) throw corruptRecord();
  const lastUsedAt = last === undefined ? null : Number(last);
  return [{ id, uses: Number(uses), refusals: Number(refusals), lastUsedAt }];
}
