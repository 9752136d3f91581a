import { MAX_COUNTED_SCOPES } from '../../bounds.ts';
import { TokenError } from '../../errors.ts';
import type { ScanQuery } from '../../ports/token-store.ts';
import {
  type CountedTokens,
  OTHER_SCOPES,
  type UsageDelta,
  type UsageRecord,
  type UsageStore,
  type UsageTotals,
} from '../../ports/usage-store.ts';
import { withDeadline } from '../../time/deadline.ts';
import type { TokenId } from '../../token/record.ts';
import {
  REFUSALS,
  rowsOf,
  type TotalsRow,
  totalsOf,
  type UsageRow,
  usagesOf,
} from '../shared/usage-rows.ts';
import { corruptRecord, type Driver, tokenErrorOf, withDriver } from './driver.ts';
import type { KeySpace } from './layout.ts';
import { ReplicatedWrites } from './replicated-writes.ts';
import { CLOCK, runScript, type Script, script, type WriteCall } from './scripts.ts';

/**
 * Below the default deadline of a service, so that it still learns what was added. Above the time in which
 * a connection may open, so that a write that was rejected is not sent later.
 */
const ADD_MS = 1800;

const FIRST_CURSOR = '0';
/** Takes the server less than a millisecond. */
const MIN_SCANNED = 1000;

/** The rows of a batch for one token. */
interface TokenRows {
  readonly id: TokenId;
  readonly rows: readonly UsageRow[];
}

/*
 * KEYS: the hashes of tokens. A field is a scope, and its cell is the number of uses and the time of the
 * last one in milliseconds: `12 1893456000000`. The field without a name counts refusals, with time 0.
 */

/**
 * ARGV: how many scopes of a token are counted apart; then for each count the index of its token, the
 * field, and a cell to add. Reads all, then writes: an error in between would leave a part written. Lua
 * counts exactly up to 2^53, as JavaScript does.
 */
const ADD_USAGE = script(`
local tokens, isMalformed = {}, false
for i = 1, #KEYS do tokens[i] = {} end

local function parse(text)
  local count, time = string.match(text, '^(%d+) (%-?%d+)$')
  if not count then isMalformed = true end
  return {tonumber(count) or 0, tonumber(time) or 0}
end

local function cellOf(i, field)
  if tokens[i][field] == nil then
    local text = redis.call('HGET', KEYS[i], field)
    tokens[i][field] = text and parse(text)
  end
  return tokens[i][field]
end

local apart = {}
local function isApart(i, field)
  if field == '${OTHER_SCOPES}' or field == '${REFUSALS}' or cellOf(i, field) then return true end
  apart[i] = apart[i] or redis.call('HLEN', KEYS[i])
    - redis.call('HEXISTS', KEYS[i], '${OTHER_SCOPES}') - redis.call('HEXISTS', KEYS[i], '${REFUSALS}')
  if apart[i] >= tonumber(ARGV[1]) then return false end
  apart[i] = apart[i] + 1
  return true
end

for n = 2, #ARGV, 3 do
  local i, field, added = tonumber(ARGV[n]), ARGV[n + 1], parse(ARGV[n + 2])
  if not isApart(i, field) then field = '${OTHER_SCOPES}' end
  local cell = cellOf(i, field)
  tokens[i][field] = cell and {cell[1] + added[1], math.max(cell[2], added[2])} or added
end
if isMalformed then return redis.error_reply('WRONGTYPE a count is malformed') end

for i = 1, #KEYS do
  local changes = {}
  for field, cell in pairs(tokens[i]) do
    if cell then
      changes[#changes + 1] = field
      changes[#changes + 1] = string.format('%.0f %.0f', cell[1], cell[2])
    end
  end
  redis.call('HSET', KEYS[i], unpack(changes))
end
return 0
`);

/** Answers with the fields and cells of each token. A map would look different in each driver. */
const READ_USAGE = script(`
local read = {}
for i = 1, #KEYS do read[i] = redis.call('HGETALL', KEYS[i]) end
return read
`);

/**
 * Answers with the sums of each token, `12 3 1893456000000`: uses, refusals and the time of the last use,
 * which is missing if there was none; with an empty text for a token without counts.
 */
const READ_TOTALS = script(`
local totals = {}
for i = 1, #KEYS do
  local hash = redis.call('HGETALL', KEYS[i])
  local uses, refusals, last = 0, 0, nil
  for n = 1, #hash, 2 do
    local count, time = string.match(hash[n + 1], '^(%d+) (%-?%d+)$')
    if not count then return redis.error_reply('WRONGTYPE a count is malformed') end
    if hash[n] == '${REFUSALS}' then
      refusals = tonumber(count)
    else
      uses = uses + tonumber(count)
      last = math.max(last or tonumber(time), tonumber(time))
    end
  end
  totals[i] = #hash == 0 and '' or string.format('%.0f %.0f', uses, refusals)
    .. (last and string.format(' %.0f', last) or '')
end
return totals
`);

/** KEYS: the key of the start. Sets it to the time of the server if it is missing, and answers with it. */
const START_USAGE = script(`${CLOCK}
local start = redis.call('GET', KEYS[1])
if start then return start end
start = string.format('%.0f', clock())
redis.call('SET', KEYS[1], start)
return start
`);

/**
 * Stores how tokens are used, in one hash for each token. Counts are written over connections of their
 * own, so that no `verify` waits behind them, and such a connection never sends a count again. All calls
 * take one round trip, in a cluster one to each server, concurrently.
 *
 * `add` works in steps of 100 tokens, in a cluster also slot by slot. Each step happens whole or not at
 * all. If some fail, the error names the tokens of the others.
 */
export class RedisUsageStore implements UsageStore {
  readonly #driver: Driver;
  readonly #keys: KeySpace;
  readonly #writes: ReplicatedWrites;
  /** Undefined before the first `add`, and after a failure. */
  #start: Promise<unknown> | undefined;

  constructor(driver: Driver, keys: KeySpace) {
    this.#driver = driver;
    this.#keys = keys;
    this.#writes = new ReplicatedWrites(driver);
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

  /**
   * Looks at about `limit` keys of one server, and at those of the others after that: at {@link MIN_SCANNED}
   * or more, because most of them may belong to others.
   */
  async scan({ after = `0 ${FIRST_CURSOR}`, limit }: ScanQuery): Promise<CountedTokens> {
    const [place = '', cursor = ''] = after.split(' ', 2);
    const answer = await withDriver(this.#driver, async () => {
      const servers = await Promise.all(this.#driver.primaries());
      servers.sort((one, other) => (one.address < other.address ? -1 : 1));
      const pattern = this.#keys.allUsage();
      const scanned = String(Math.max(limit, MIN_SCANNED));
      const command = ['scan', cursor, 'MATCH', pattern, 'COUNT', scanned] as const;
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
