import { createHash } from 'node:crypto';
import type { Command } from './clients.ts';

export interface Script {
  readonly source: string;
  readonly sha: string;
}

/** A script with what it is given, so that it can be sent again. */
export interface ScriptCall {
  /** The slot of its keys; of no meaning where there is no cluster. */
  readonly slot: number;
  readonly script: Script;
  readonly keys: readonly string[];
  readonly values: readonly string[];
}

/** Sends a script by its hash, and in full to a server that does not know it yet. */
export async function runScript(
  send: (command: Command) => Promise<unknown>,
  { script, keys, values }: ScriptCall,
): Promise<unknown> {
  const rest = [String(keys.length), ...keys, ...values];
  try {
    return await send(['evalsha', script.sha, ...rest]);
  } catch (error) {
    if (!isReply(error, 'NOSCRIPT')) throw error;
    return send(['eval', script.source, ...rest]);
  }
}

/** Whether the server answered with an error of this name. */
export function isReply(error: unknown, name: string): boolean {
  return error instanceof Error && error.message.startsWith(`${name} `);
}

/*
 * The scripts that write answer with how many tokens they changed, how many had been changed before
 * by this very call (a driver may send it twice), how many are malformed, and for each token that
 * was changed, now or before, the stamp of its birth. By that one a token is told from another that
 * got its id when it was purged.
 *
 * KEYS are those of one token after another: its record, its account's list, the ends.
 */

const HEAD = `
local function head(value)
  return string.match(value,
    '^(-?%d*)\\n(%d+)\\n([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)()\\n')
end
`;

/** ARGV: stamp, record, place (empty for a revoked one), end, name. */
export const INSERT = script(`${HEAD}
if redis.call('SET', KEYS[1], ARGV[2], 'NX') then
  if ARGV[3] ~= '' then redis.call('ZADD', KEYS[2], 0, ARGV[3]) end
  redis.call('ZADD', KEYS[3], ARGV[4], ARGV[5])
  return {1, 0, 0}
end
local revoked, version, stamp, birth = head(redis.call('GET', KEYS[1]))
return {0, birth == ARGV[1] and 1 or 0, 0}
`);

/**
 * ARGV: stamp, record up to the birth, record from there on, place (empty for a revoked one), end,
 * name, version before, account, birth (empty for any), channel, id.
 */
export const REPLACE = script(`${HEAD}
local value = redis.call('GET', KEYS[1])
if not value then return {0, 0, 0} end
local revoked, version, stamp, birth, place, account = head(value)
if not version then return {0, 0, 1} end
if stamp == ARGV[1] then return {0, 1, 0, birth} end
if revoked ~= '' or version ~= ARGV[7] or account ~= ARGV[8] then return {0, 0, 0} end
if ARGV[9] ~= '' and birth ~= ARGV[9] then return {0, 0, 0} end
redis.call('SET', KEYS[1], ARGV[2] .. birth .. ARGV[3])
if place ~= ARGV[4] then redis.call('ZREM', KEYS[2], place) end
if ARGV[4] ~= '' then redis.call('ZADD', KEYS[2], 0, ARGV[4]) end
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[6])
redis.pcall('PUBLISH', ARGV[10], ARGV[11])
return {1, 0, 0, birth}
`);

/**
 * ARGV: stamp, time, version (empty for any), account, channel, ids; then for each token its name,
 * its birth (empty for any), and the place at which it was listed (empty where it was not).
 */
export const REVOKE = script(`${HEAD}
local changed, repeated, malformed = 0, 0, 0
local births = {}
for i = 1, #KEYS / 3 do
  local record, list, ends = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  local name, known, listed = ARGV[4 + 3 * i], ARGV[5 + 3 * i], ARGV[6 + 3 * i]
  if listed ~= '' then redis.call('ZREM', list, listed) end
  births[i] = ''
  local value = redis.call('GET', record)
  if value then
    local revoked, version, stamp, birth, place, account, rest = head(value)
    local isMeant = version and account == ARGV[4]
      and (ARGV[3] == '' or version == ARGV[3]) and (known == '' or birth == known)
    if not version then
      malformed = malformed + 1
    elseif stamp == ARGV[1] then
      repeated = repeated + 1
      births[i] = birth
    elseif revoked == '' and isMeant then
      local lines = {ARGV[2], version, ARGV[1], birth, place, account}
      redis.call('SET', record, table.concat(lines, '\\n') .. string.sub(value, rest))
      redis.call('ZREM', list, place)
      redis.call('ZADD', ends, 'LT', ARGV[2], name)
      changed = changed + 1
      births[i] = birth
    end
  end
end
if changed > 0 then redis.pcall('PUBLISH', ARGV[5], ARGV[6]) end
return {changed, repeated, malformed, unpack(births)}
`);

/** ARGV: time; then for each token its name and its account. What is malformed goes as well. */
export const REMOVE = script(`${HEAD}
local removed = 0
for i = 1, #KEYS / 3 do
  local record, list, ends = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  local name, owner = ARGV[2 * i], ARGV[2 * i + 1]
  local time = redis.call('ZSCORE', ends, name)
  if time and tonumber(time) < tonumber(ARGV[1]) then
    local revoked, version, stamp, birth, place, account =
      head(redis.call('GET', record) or '')
    if not place or account == owner then redis.call('DEL', record) end
    if account == owner then redis.call('ZREM', list, place) end
    redis.call('ZREM', ends, name)
    removed = removed + 1
  end
end
return {removed, 0, 0}
`);

/** KEYS: lists of accounts. ARGV: below which place, how many of each. */
export const LIST = script(`
local lists = {}
for i = 1, #KEYS do
  lists[i] = redis.call('ZREVRANGEBYLEX', KEYS[i], ARGV[1], '-', 'LIMIT', 0, ARGV[2])
end
return lists
`);

/** KEYS: ends. ARGV: before which time, how many of each. */
export const DUE = script(`
local due = {}
for i = 1, #KEYS do
  due[i] = redis.call('ZRANGEBYSCORE', KEYS[i], '-inf', '(' .. ARGV[1], 'LIMIT', 0, ARGV[2])
end
return due
`);

function script(source: string): Script {
  return { source, sha: createHash('sha1').update(source).digest('hex') };
}
