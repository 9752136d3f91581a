import { createHash } from 'node:crypto';
import { type Driver, isReply, type RedisCommand, withDriver } from './driver.ts';
import { ANCESTORS_LINE, REVOKED, SUSPENDED } from './layout.ts';

export interface Script {
  readonly source: string;
  readonly sha: string;
}

export interface ScriptCall {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly values: readonly string[];
}

/** A call that changes tokens. It may run more than once. */
export interface WriteCall extends ScriptCall {
  /** The slot of its keys; always 0 on a lone server. */
  readonly slot: number;
}

/** Sends a script by its hash, and in full to a server that does not have it yet. */
export async function sendScript(
  send: (command: RedisCommand) => Promise<unknown>,
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

/** Runs a script through the client of the host, and waits for no replica. */
export function runScript(driver: Driver, call: ScriptCall): Promise<unknown> {
  return withDriver(driver, () =>
    sendScript((command) => driver.send(command, call.keys[0]), call),
  );
}

/*
 * KEYS of the scripts that write: for each token its record, its account's list, what is set aside of
 * the account, and the ends. INSERT and REPLACE, of one token, also get the list of its parent's children
 * if it has a parent.
 *
 * They answer with how many tokens they changed, how many an earlier run of the same call had
 * changed (a driver may send it twice), how many are malformed, and the generation of each token
 * that was changed, now or before. A generation is the id of the write that inserted the token. It
 * distinguishes the token from a later one that got the same id after a purge.
 */

/** The entry of a token in the list of what is set aside, from its entry in its account's list. */
const ASIDE = `
local function aside(entry, mark)
  return (string.gsub(entry, '(%-?%d+)$', mark .. '%1'))
end
`;

/** The entry of a token in the list of its parent's children, from its entry in its account's list. */
const CHILD = `
local function child(entry)
  return (string.gsub(entry, '%-?%d+$', ''))
end
`;

/** The three counts that most scripts answer with. */
export function numbersIn(answer: unknown): [number, number, number] {
  const [first, second, third] = answer as readonly unknown[];
  return [Number(first), Number(second), Number(third)];
}

const HEAD = `
local function head(value)
  return string.match(value,
    '^(-?%d*)\\n(%d+)\\n([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)()\\n')
end
`;

/**
 * Lets the rest of a script write to a server whose memory is full. Such a server refuses commands
 * that may take memory, but only until the script has written something, even nothing as here.
 * `#!lua flags=allow-oom` would do the same, but not before Redis 7.0.
 */
const ALLOW_FULL = `redis.call('ZREM', KEYS[2], '')`;

/**
 * Ends a script that only reads if the server is a replica: it may not know of a revocation yet. Only
 * a primary takes a write, even one that changes nothing. If a primary refuses it for want of disk
 * space or of replicas, it may still be read.
 */
const primaryOnly = (write: string) => `
local refusal = redis.pcall(${write})
refusal = type(refusal) == 'table' and refusal.err
if refusal and not (string.find(refusal, 'MISCONF', 1, true)
  or string.find(refusal, 'NOREPLICAS', 1, true)) then return redis.error_reply(refusal) end
`;
const OF_LISTS = primaryOnly(`'ZREM', KEYS[1], ''`);
const OF_RECORDS = primaryOnly(`'GETEX', KEYS[1]`);

/** The lines of a record after those that `known` has: fields that a later version has written. */
const UNKNOWN_LINES = `
local function unknownLines(value, known)
  local last, place = 0, 0
  while place do
    last = string.find(value, '\\n', last + 1, true)
    if not last then return '' end
    place = string.find(known, '\\n', place + 1, true)
  end
  return string.sub(value, last)
end
`;

/** The answer instead of a generation if nothing was inserted, because the list was too long. */
export const LIST_FULL = 'crowded';

/**
 * ARGV: write id, record, entry (empty if revoked), entry aside (empty if it is not), end, name, the
 * length at which the account's list takes no more (empty for no limit), and the entry among children.
 */
export const INSERT = script(`${HEAD}
local isFull = ARGV[7] ~= '' and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[7])
if isFull then
  local revoked, version, writeId, generation = head(redis.call('GET', KEYS[1]) or '')
  if generation ~= ARGV[1] then return {0, 0, 0, '${LIST_FULL}'} end
end
if redis.call('SET', KEYS[1], ARGV[2], 'NX') then
  if ARGV[3] ~= '' then redis.call('ZADD', KEYS[2], 0, ARGV[3]) end
  if ARGV[4] ~= '' then redis.call('ZADD', KEYS[3], 0, ARGV[4]) end
  redis.call('ZADD', KEYS[4], ARGV[5], ARGV[6])
  if KEYS[5] then redis.call('ZADD', KEYS[5], 0, ARGV[8]) end
  return {1, 0, 0}
end
local revoked, version, writeId, generation = head(redis.call('GET', KEYS[1]))
return {0, generation == ARGV[1] and 1 or 0, 0}
`);

/**
 * ARGV: write id, record before its generation, record after it, entry (empty if revoked), entry aside
 * (empty if it is not), end, name, current version, account, generation (empty for any), channel, id, by
 * how many bytes the record may grow on a server whose memory is full, and the entry among children.
 */
export const REPLACE = script(`${HEAD}${UNKNOWN_LINES}${ASIDE}
local value = redis.call('GET', KEYS[1])
if not value then return {0, 0, 0} end
local revoked, version, writeId, generation, entry, account = head(value)
if not version then return {0, 0, 1} end
if writeId == ARGV[1] then return {0, 1, 0, generation} end
if revoked ~= '' or version ~= ARGV[8] or account ~= ARGV[9] then return {0, 0, 0} end
if ARGV[10] ~= '' and generation ~= ARGV[10] then return {0, 0, 0} end
local changed = ARGV[2] .. generation .. ARGV[3]
changed = changed .. unknownLines(value, changed)
if #changed <= #value + tonumber(ARGV[13]) then ${ALLOW_FULL} end
redis.call('SET', KEYS[1], changed)
if entry ~= ARGV[4] then redis.call('ZREM', KEYS[2], entry) end
if ARGV[4] ~= '' then redis.call('ZADD', KEYS[2], 0, ARGV[4]) end
local suspended = aside(entry, '${SUSPENDED}')
if suspended ~= ARGV[5] then redis.call('ZREM', KEYS[3], suspended) end
if ARGV[5] ~= '' then redis.call('ZADD', KEYS[3], 0, ARGV[5]) end
redis.call('ZADD', KEYS[4], ARGV[6], ARGV[7])
if KEYS[5] then redis.call('ZADD', KEYS[5], 0, ARGV[14]) end
redis.pcall('PUBLISH', ARGV[11], ARGV[12])
return {1, 0, 0, generation}
`);

/**
 * ARGV: write id, time, version (empty for any), account, channel, ids; then for each token its
 * name, generation (empty for any), and the entry by which it was found (empty if by its id). With a
 * generation, that entry may be of a later token with the same id.
 */
export const REVOKE = script(`${HEAD}${ASIDE}
${ALLOW_FULL}
local changed, repeated, malformed = 0, 0, 0
local generations = {}
for i = 1, #KEYS / 4 do
  local record, list, others, ends = unpack(KEYS, 4 * i - 3, 4 * i)
  local name, known, listed = ARGV[4 + 3 * i], ARGV[5 + 3 * i], ARGV[6 + 3 * i]
  if listed ~= '' and known == '' then redis.call('ZREM', list, listed) end
  generations[i] = ''
  local value = redis.call('GET', record)
  if value then
    local revoked, version, writeId, generation, entry, account, rest = head(value)
    local isMeant = version and account == ARGV[4]
      and (ARGV[3] == '' or version == ARGV[3]) and (known == '' or generation == known)
    if not version then
      malformed = malformed + 1
    elseif writeId == ARGV[1] then
      repeated = repeated + 1
      generations[i] = generation
    elseif revoked == '' and isMeant then
      local lines = {ARGV[2], version, ARGV[1], generation, entry, account}
      redis.call('SET', record, table.concat(lines, '\\n') .. string.sub(value, rest))
      redis.call('ZREM', list, entry)
      redis.call('ZREM', others, aside(entry, '${SUSPENDED}'))
      redis.call('ZADD', others, 0, aside(entry, '${REVOKED}'))
      redis.call('ZADD', ends, 'LT', ARGV[2], name)
      changed = changed + 1
      generations[i] = generation
    end
  end
end
if changed > 0 then redis.pcall('PUBLISH', ARGV[5], ARGV[6]) end
return {changed, repeated, malformed, unpack(generations)}
`);

/** The line of a record with the ids of its ancestors, as JSON. */
const ANCESTORS = `
local function ancestors(value)
  local place = 0
  for _ = 1, ${ANCESTORS_LINE} do
    place = string.find(value, '\\n', place + 1, true)
    if not place then return '' end
  end
  return string.match(value, '^[^\\n]*', place + 1)
end
`;

/**
 * ARGV: time; then for each token its name and its account. Malformed records are removed too. Also
 * answers, for each token that was removed and had a parent, with its entry among children and its
 * ancestors, in turn.
 */
export const REMOVE = script(`${HEAD}${ASIDE}${CHILD}${ANCESTORS}
local removed, children = 0, {}
for i = 1, #KEYS / 4 do
  local record, list, others, ends = unpack(KEYS, 4 * i - 3, 4 * i)
  local name, owner = ARGV[2 * i], ARGV[2 * i + 1]
  local time = redis.call('ZSCORE', ends, name)
  if time and tonumber(time) < tonumber(ARGV[1]) then
    local value = redis.call('GET', record) or ''
    local revoked, version, writeId, generation, entry, account = head(value)
    if not entry or account == owner then redis.call('DEL', record) end
    if account == owner then
      local line = ancestors(value)
      if line ~= '' then
        children[#children + 1] = child(entry)
        children[#children + 1] = line
      end
      redis.call('ZREM', list, entry)
      redis.call('ZREM', others, aside(entry, '${REVOKED}'), aside(entry, '${SUSPENDED}'))
    end
    redis.call('ZREM', ends, name)
    removed = removed + 1
  end
end
return {removed, 0, 0, unpack(children)}
`);

/** KEYS: lists of children. ARGV: an entry to remove from each. */
export const UNLIST = script(`
for i = 1, #KEYS do redis.call('ZREM', KEYS[i], ARGV[i]) end
return 0
`);

/** KEYS: lists of accounts. ARGV: an upper bound, and the largest number of entries from each. */
export const LIST = script(`${OF_LISTS}
local lists = {}
for i = 1, #KEYS do
  lists[i] = redis.call('ZREVRANGEBYLEX', KEYS[i], ARGV[1], '-', 'LIMIT', 0, ARGV[2])
end
return lists
`);

/**
 * KEYS: lists of accounts. ARGV: a time, and the first and last index to look at. Answers with the
 * length of all lists, the length of the longest, and how many of the entries there expire later.
 */
export const COUNT = script(`${OF_LISTS}
local listed, longest, live = 0, 0, 0
for i = 1, #KEYS do
  local length = redis.call('ZCARD', KEYS[i])
  listed = listed + length
  longest = math.max(longest, length)
  for _, entry in ipairs(redis.call('ZREVRANGE', KEYS[i], ARGV[2], ARGV[3])) do
    if tonumber(string.match(entry, '%S+$')) > tonumber(ARGV[1]) then live = live + 1 end
  end
end
return {listed, longest, live}
`);

/** KEYS: records. ARGV: a length. Answers with each record, or with its length if that is longer. */
export const READ_SHORT = script(`${OF_RECORDS}
local read = {}
for i = 1, #KEYS do
  local value = redis.call('GETRANGE', KEYS[i], 0, ARGV[1])
  if #value > tonumber(ARGV[1]) then value = redis.call('STRLEN', KEYS[i]) end
  if value == '' then value = redis.call('GET', KEYS[i]) end
  read[i] = value
end
return read
`);

/** KEYS: records. Answers with each record. */
export const READ = script(`${OF_RECORDS}
local read = {}
for i = 1, #KEYS do read[i] = redis.call('GET', KEYS[i]) end
return read
`);

/** KEYS: ends. ARGV: a time, and the largest number of earlier ones from each. */
export const DUE = script(`${OF_LISTS}
local due = {}
for i = 1, #KEYS do
  due[i] = redis.call('ZRANGEBYSCORE', KEYS[i], '-inf', '(' .. ARGV[1], 'LIMIT', 0, ARGV[2])
end
return due
`);

/**
 * One step through the ends of a shard. ARGV: the cursor of the step before, 0 at first, and how many
 * names to look at. Answers with the next cursor, 0 at the end, and the names.
 */
export const SCAN = script(`${OF_LISTS}
local answer = redis.call('ZSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local names = {}
for i = 1, #answer[2], 2 do names[#names + 1] = answer[2][i] end
return {answer[1], names}
`);

export function script(source: string): Script {
  return { source, sha: createHash('sha1').update(source).digest('hex') };
}
