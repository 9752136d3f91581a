import { corruptRequest, type TokenError } from '../../errors.ts';
import type {
  RequestBounds,
  RequestKey,
  RequestRecord,
  RequestStore,
} from '../../ports/request-store.ts';
import {
  boundsOf,
  checkBounds,
  columnOf,
  type RequestRow,
  readRequest,
  requestRow,
} from '../shared/request-rows.ts';
import type { Driver } from './driver.ts';
import { type KeySpace, LAYOUT, sortable } from './layout.ts';
import { ReplicatedWrites, type Replication } from './replicated-writes.ts';
import { CLOCK, primaryOnly, runScript, type Script, SORTABLE, script } from './scripts.ts';

/*
 * KEYS: the requests by their ids, the ids by user codes, the ids by the end of the request, and an entry for
 * each request that begins with its root and its end. They are all in one slot: a request counts those of all
 * others. A stored request begins with the layout, its version and its user code.
 */

const PARSE = `
local function parse(value)
  return string.match(value, '^${LAYOUT} (%d+) (%w+) (%w*)\\n')
end
local malformed = redis.error_reply('WRONGTYPE a request is malformed')
`;

/**
 * ARGV: id, user code, request, its end, its entry; the instant of the call, the beginning of the entries that
 * are alike, the instant after that of the call as entries have it; how many there may be, and how many that are
 * alike. Answers with what there was; it has inserted the request if that allows it.
 */
const INSERT_REQUEST = script(`
local taken = redis.call('HEXISTS', KEYS[1], ARGV[1]) + redis.call('HEXISTS', KEYS[2], ARGV[2])
local live = redis.call('ZCOUNT', KEYS[3], '(' .. ARGV[6], '+inf')
local alike = redis.call('ZLEXCOUNT', KEYS[4], '[' .. ARGV[7] .. ARGV[8], '(' .. ARGV[7] .. '\\255')
if taken == 0 and live < tonumber(ARGV[9]) and alike < tonumber(ARGV[10]) then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
  redis.call('HSET', KEYS[2], ARGV[2], ARGV[1])
  redis.call('ZADD', KEYS[3], ARGV[4], ARGV[1])
  redis.call('ZADD', KEYS[4], 0, ARGV[5])
end
return {taken, live, alike}
`);

/** ARGV: what it is looked up by, \`id\` or \`user_code\`, and its value. Answers with the id, the end and the request. */
const FIND_REQUEST = script(`${primaryOnly(`'HDEL', KEYS[1], ''`)}
local id = ARGV[2]
if ARGV[1] == 'user_code' then id = redis.call('HGET', KEYS[2], id) end
local value = id and redis.call('HGET', KEYS[1], id)
if not value then return {} end
return {id, redis.call('ZSCORE', KEYS[3], id) or '', value}
`);

/** ARGV: id, version, request without its root, its end. Answers with 1 if it replaced the one before. */
const REPLACE_REQUEST = script(`${PARSE}${SORTABLE}
local value = redis.call('HGET', KEYS[1], ARGV[1])
if not value then return 0 end
local version, code, root = parse(value)
local ends = redis.call('ZSCORE', KEYS[3], ARGV[1])
if not version or not ends then return malformed end
if tonumber(version) ~= tonumber(ARGV[2]) - 1 then return 0 end
local start = '${LAYOUT} ' .. ARGV[2] .. ' ' .. code .. ' ' .. root
redis.call('HSET', KEYS[1], ARGV[1], start .. '\\n' .. ARGV[3])
redis.call('ZADD', KEYS[3], ARGV[4], ARGV[1])
redis.call('ZREM', KEYS[4], root .. ' ' .. sortable(tonumber(ends)) .. ARGV[1])
redis.call('ZADD', KEYS[4], 0, root .. ' ' .. sortable(tonumber(ARGV[4])) .. ARGV[1])
return 1
`);

/** ARGV: the instant before which a request must have ended, and how many to remove. Answers with how many it did. */
const PURGE_REQUESTS = script(`${PARSE}${SORTABLE}${CLOCK}
local before = string.format('(%.0f', math.min(tonumber(ARGV[1]), clock()))
local ended = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', before, 'WITHSCORES', 'LIMIT', 0, ARGV[2])
for i = 1, #ended, 2 do
  local id = ended[i]
  local _, code, root = parse(redis.call('HGET', KEYS[1], id) or '')
  redis.call('HDEL', KEYS[1], id)
  if code then redis.call('HDEL', KEYS[2], code) end
  if root then redis.call('ZREM', KEYS[4], root .. ' ' .. sortable(tonumber(ended[i + 1])) .. id) end
  redis.call('ZREM', KEYS[3], id)
end
return #ended / 2
`);

/** How many a script removes: the server does nothing else meanwhile. */
const PURGE_STEP = 1000;

/**
 * Keeps requests for tokens. Writes go over connections of their own, which never send a command twice, and wait
 * for replicas as those of tokens do.
 */
export class RedisRequestStore implements RequestStore {
  readonly #driver: Driver;
  readonly #keys: readonly string[];
  readonly #slot: number;
  readonly #replicas: number;
  readonly #writes: ReplicatedWrites;
  readonly #unconfirmed: (confirmations: number) => TokenError;

  /** @param unconfirmed the error for a change that so few replicas have confirmed */
  constructor(
    driver: Driver,
    keys: KeySpace,
    replication: Replication,
    unconfirmed: (confirmations: number) => TokenError,
  ) {
    this.#driver = driver;
    const { names, slot } = keys.requests();
    this.#keys = names;
    this.#slot = slot;
    this.#replicas = replication.replicas;
    this.#writes = new ReplicatedWrites(driver, replication);
    this.#unconfirmed = unconfirmed;
  }

  async insert(record: RequestRecord, bounds: RequestBounds): Promise<void> {
    const row = requestRow(record);
    const { id, userCode, root, expiresAt } = row;
    const liveAt = bounds.liveAt.getTime();
    const most = boundsOf(row, bounds);
    const { answer, confirmations } = await this.#run(INSERT_REQUEST, [
      ...[id, userCode, textOf(row), String(expiresAt), `${root} ${sortable(expiresAt)}${id}`],
      ...[String(liveAt), `${root} `, sortable(liveAt + 1)],
      ...[String(most.live.max), String(most.alike.max)],
    ]);
    const [taken, live, alike] = (answer as readonly unknown[]).map(Number) as [
      number,
      number,
      number,
    ];
    checkBounds({ taken, live, alike }, row, bounds);
    this.#confirm(confirmations);
  }

  async find(key: RequestKey): Promise<RequestRecord | undefined> {
    const column = columnOf(key);
    if (column === undefined) return undefined;
    const values = [column.name, column.value];
    const call = { script: FIND_REQUEST, keys: this.#keys, values };
    const [id, expiresAt, text] = (await runScript(this.#driver, call)) as readonly unknown[];
    if (text === undefined) return undefined;
    const [, version, userCode, body] = STORED.exec(String(text)) ?? [];
    if (body === undefined || expiresAt === '') throw corruptRequest();
    return readRequest({ id, userCode, version, expiresAt, body });
  }

  async replace(next: RequestRecord): Promise<boolean> {
    const { id, version, body, expiresAt } = requestRow(next);
    const values = [id, String(version), body, String(expiresAt)];
    const { answer, confirmations } = await this.#run(REPLACE_REQUEST, values);
    if (Number(answer) === 0) return false;
    this.#confirm(confirmations);
    return true;
  }

  /** It does not matter how many replicas have confirmed it: a request that comes back is purged again. */
  async purge(before: Date, limit: number): Promise<number> {
    let count = 0;
    while (count < limit) {
      const step = Math.min(PURGE_STEP, limit - count);
      const values = [String(before.getTime()), String(step)];
      const { answer } = await this.#run(PURGE_REQUESTS, values);
      count += Number(answer);
      if (Number(answer) < step) break;
    }
    return count;
  }

  async close(): Promise<void> {
    this.#writes.close();
  }

  #run(scriptToRun: Script, values: readonly string[]) {
    return this.#writes.run({ slot: this.#slot, script: scriptToRun, keys: this.#keys, values });
  }

  #confirm(confirmations: number): void {
    if (confirmations < this.#replicas) throw this.#unconfirmed(confirmations);
  }
}

const STORED = new RegExp(`^${LAYOUT} (\\d+) (\\w+) \\w*\\n([^]*)$`);

function textOf({ version, userCode, root, body }: RequestRow): string {
  return `${LAYOUT} ${version} ${userCode} ${root}\n${body}`;
}
