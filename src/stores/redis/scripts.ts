import { createHash } from 'node:crypto';
import { MAX_REVOKED_REQUESTED_BYTES } from '../../bounds.ts';
import { ID_LENGTH } from '../../token/id.ts';
import { type Driver, isReply, type RedisCommand, withDriver } from './driver.ts';
import {
  ANCESTORS_LINE,
  EARLIEST,
  ENDED_EARLY,
  REVOKED,
  SUSPENDED,
  TIME_LENGTH,
  TOMBSTONE,
  UNREVOKED,
} from './layout.ts';

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
 * the account, the ends, and what is counted of the account. INSERT and REPLACE, of one token, also get the
 * lists by parent and by root if it was derived.
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

/** The lines of a record with the ids of its ancestors, as JSON, and with its format. */
const ORIGIN = `
local function origin(value)
  local place = 0
  for _ = 1, ${ANCESTORS_LINE} do
    place = string.find(value, '\\n', place + 1, true)
    if not place then return '', '' end
  end
  local ancestors, format = string.match(value, '^([^\\n]*)\\n([^\\n]*)', place + 1)
  return ancestors or '', format or ''
end
`;

/** A time as it is in entries. */
const SORTABLE = `
local function sortable(ms)
  if ms < 0 then return string.format('0%0${TIME_LENGTH - 1}.0f', ms - (${EARLIEST})) end
  return string.format('1%0${TIME_LENGTH - 1}.0f', ms)
end
`;

/**
 * A token's entry among those that are counted, from its entry in its account's list, when it was revoked
 * (empty if it was not), and its origin.
 */
const COUNTED = `${SORTABLE}
local function counted(entry, revoked, ancestors, format)
  local id, ends = string.match(entry, '^(.*) (%-?%d+)$')
  if not id then return '' end
  local state = '${UNREVOKED}'
  ends = tonumber(ends)
  if revoked ~= '' then
    state = format == '' and '${ENDED_EARLY}' or '${TOMBSTONE}'
    ends = math.min(ends, tonumber(revoked))
  end
  local root = string.sub(ancestors, 3, ${ID_LENGTH + 2})
  return state .. root .. ' ' .. sortable(ends) .. string.sub(id, ${TIME_LENGTH + 1})
end
`;

/** The time of the server, in milliseconds. */
export const CLOCK = `
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
`;

/**
 * ARGV: write id, record, entry (empty if revoked), entry aside (empty if it is not), end, name, counted
 * entry, and the entry among those of its parent and its root.
 */
export const INSERT = script(`${HEAD}
if redis.call('SET', KEYS[1], ARGV[2], 'NX') then
  if ARGV[3] ~= '' then redis.call('ZADD', KEYS[2], 0, ARGV[3]) end
  if ARGV[4] ~= '' then redis.call('ZADD', KEYS[3], 0, ARGV[4]) end
  redis.call('ZADD', KEYS[4], ARGV[5], ARGV[6])
  redis.call('ZADD', KEYS[5], 0, ARGV[7])
  for i = 6, #KEYS do redis.call('ZADD', KEYS[i], 0, ARGV[8]) end
  return {1, 0, 0}
end
local revoked, version, writeId, generation = head(redis.call('GET', KEYS[1]))
return {0, generation == ARGV[1] and 1 or 0, 0}
`);

/**
 * ARGV: write id, record before its generation, record after it, entry (empty if revoked), entry aside
 * (empty if it is not), end, name, counted entry, the entry among those of its parent and its root, current
 * version, account, generation (empty for any), channel, id, and by how many bytes the record may grow on a
 * server whose memory is full.
 */
export const REPLACE = script(`${HEAD}${UNKNOWN_LINES}${ASIDE}${ORIGIN}${COUNTED}
local value = redis.call('GET', KEYS[1])
if not value then return {0, 0, 0} end
local revoked, version, writeId, generation, entry, account = head(value)
if not version then return {0, 0, 1} end
if writeId == ARGV[1] then return {0, 1, 0, generation} end
if revoked ~= '' or version ~= ARGV[10] or account ~= ARGV[11] then return {0, 0, 0} end
if ARGV[12] ~= '' and generation ~= ARGV[12] then return {0, 0, 0} end
local changed = ARGV[2] .. generation .. ARGV[3]
changed = changed .. unknownLines(value, changed)
if #changed <= #value + tonumber(ARGV[15]) then ${ALLOW_FULL} end
redis.call('SET', KEYS[1], changed)
if entry ~= ARGV[4] then redis.call('ZREM', KEYS[2], entry) end
if ARGV[4] ~= '' then redis.call('ZADD', KEYS[2], 0, ARGV[4]) end
local suspended = aside(entry, '${SUSPENDED}')
if suspended ~= ARGV[5] then redis.call('ZREM', KEYS[3], suspended) end
if ARGV[5] ~= '' then redis.call('ZADD', KEYS[3], 0, ARGV[5]) end
redis.call('ZADD', KEYS[4], ARGV[6], ARGV[7])
local before = counted(entry, '', origin(value))
if before ~= ARGV[8] then redis.call('ZREM', KEYS[5], before) end
redis.call('ZADD', KEYS[5], 0, ARGV[8])
for i = 6, #KEYS do redis.call('ZADD', KEYS[i], 0, ARGV[9]) end
redis.pcall('PUBLISH', ARGV[13], ARGV[14])
return {1, 0, 0, generation}
`);

/**
 * The lines of a record after its account, of a token that is revoked: without what costs space and is not
 * needed any more. Cuts the text: to parse and write it again would give it another form. Of what is asked
 * for, the last `","` of the beginning is the end of the last member that leaves room for the bracket.
 */
const REDUCED = `
local function reduced(lines)
  local values, first, last, name, rest = string.match(lines,
    '^(${lines(3)})${lines(2)}\\n()[^\\n]*()(${lines(1)})${lines(1)}()')
  if not values then return lines end
  local requested = string.sub(lines, first, last - 1)
  if #requested > ${MAX_REVOKED_REQUESTED_BYTES} then
    local fits = string.match(string.sub(requested, 1, ${MAX_REVOKED_REQUESTED_BYTES + 1}), '^.*()","')
    requested = fits and string.sub(requested, 1, fits) .. ']' or '[]'
  end
  local others = string.gsub(string.sub(lines, rest),
    '^(${lines(5)}\\n[^\\n]-)"box":"[^"\\n]*",', '%1')
  return values .. '\\n\\n[]\\n' .. requested .. name .. '\\n' .. others
end
`;

/** A pattern for this many lines, each with its beginning. */
function lines(count: number): string {
  return '\\n[^\\n]*'.repeat(count);
}

/**
 * ARGV: write id, time, version (empty for any), account, channel, ids; then for each token its
 * name, generation (empty for any), and the entry by which it was found (empty if by its id). With a
 * generation, that entry may be of a later token with the same id.
 */
export const REVOKE = script(`${HEAD}${ASIDE}${ORIGIN}${COUNTED}${REDUCED}
${ALLOW_FULL}
local changed, repeated, malformed = 0, 0, 0
local generations = {}
for i = 1, #KEYS / 5 do
  local record, list, others, ends, counts = unpack(KEYS, 5 * i - 4, 5 * i)
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
      redis.call('SET', record, table.concat(lines, '\\n') .. reduced(string.sub(value, rest)))
      redis.call('ZREM', list, entry)
      redis.call('ZREM', others, aside(entry, '${SUSPENDED}'))
      redis.call('ZADD', others, 0, aside(entry, '${REVOKED}'))
      redis.call('ZADD', ends, 'LT', ARGV[2], name)
      local ancestors, format = origin(value)
      redis.call('ZREM', counts, counted(entry, '', ancestors, format))
      redis.call('ZADD', counts, 0, counted(entry, ARGV[2], ancestors, format))
      changed = changed + 1
      generations[i] = generation
    end
  end
end
if changed > 0 then redis.pcall('PUBLISH', ARGV[5], ARGV[6]) end
return {changed, repeated, malformed, unpack(generations)}
`);

/**
 * ARGV: a time and an age; then for each token its name, its account, and the counted entry by which it was
 * found (empty if by its end). Removes those that ended before the time, or that of the server if it is
 * earlier, minus the age. Those with a counted entry are pruned: also if they were revoked at a later time,
 * but not if they are tombstones. Malformed records are removed too. Answers with how many it removed, and how many entries it found that were of no token; then for each token that was
 * removed and was derived, with its entry among children and its ancestors, in turn.
 */
export const REMOVE = script(`${HEAD}${ASIDE}${CHILD}${ORIGIN}${COUNTED}${CLOCK}
local removed, stale, children = 0, 0, {}
local before = math.min(tonumber(ARGV[1]), clock()) - tonumber(ARGV[2])
for i = 1, #KEYS / 5 do
  local record, list, others, ends, counts = unpack(KEYS, 5 * i - 4, 5 * i)
  local name, owner, listed = ARGV[3 * i], ARGV[3 * i + 1], ARGV[3 * i + 2]
  local time = redis.call('ZSCORE', ends, name)
  local value = redis.call('GET', record) or ''
  local revoked, version, writeId, generation, entry, account = head(value)
  local ancestors, format = origin(value)
  local isOwned = account == owner
  local isPruned = listed ~= '' and revoked ~= ''
  if listed ~= '' and not (isOwned and counted(entry, revoked, ancestors, format) == listed) then
    redis.call('ZREM', counts, listed)
    stale = stale + 1
  elseif time and (tonumber(time) < before or isPruned) then
    if not entry or isOwned then redis.call('DEL', record) end
    if isOwned then
      if ancestors ~= '' then
        children[#children + 1] = child(entry)
        children[#children + 1] = ancestors
      end
      redis.call('ZREM', list, entry)
      redis.call('ZREM', others, aside(entry, '${REVOKED}'), aside(entry, '${SUSPENDED}'))
      redis.call('ZREM', counts, counted(entry, '', ancestors, format),
        counted(entry, revoked, ancestors, format))
    end
    redis.call('ZREM', ends, name)
    removed = removed + 1
  end
end
return {removed, stale, 0, unpack(children)}
`);

/**
 * KEYS: for each token of an earlier version its record, its account's list, and what is counted of the
 * account. ARGV: for each its entry in the list. Counts those that are not revoked, and removes entries of
 * no token. Answers as `REMOVE`.
 */
export const ADOPT = script(`${HEAD}${CHILD}${ORIGIN}${COUNTED}
local children = {}
for i = 1, #ARGV do
  local record, list, counts = unpack(KEYS, 3 * i - 2, 3 * i)
  local value = redis.call('GET', record)
  local revoked, version, writeId, generation, entry = head(value or '')
  if value and not entry then
    redis.call('ZADD', counts, 0, counted(ARGV[i], '', '', ''))
  elseif entry ~= ARGV[i] or revoked ~= '' then
    redis.call('ZREM', list, ARGV[i])
  else
    local ancestors, format = origin(value)
    redis.call('ZADD', counts, 0, counted(entry, '', ancestors, format))
    if ancestors ~= '' then
      children[#children + 1] = child(entry)
      children[#children + 1] = ancestors
    end
  end
end
return {0, 0, 0, unpack(children)}
`);

/** KEYS: lists of derived tokens. ARGV: an entry to add to each. */
export const ENLIST = script(`
for i = 1, #KEYS do redis.call('ZADD', KEYS[i], 0, ARGV[i]) end
return 0
`);

/** KEYS: lists of derived tokens. ARGV: an entry to remove from each. */
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
 * KEYS: for some shards what is counted of an account, and its list. ARGV: the holder of a quota, as
 * entries have it, and a time as they have it. Answers with how many tokens of the holder end then or later,
 * how many ended before or were revoked, and how many of the account are not counted: those that an earlier
 * version has inserted.
 */
export const COUNT = script(`${OF_LISTS}
local live, ended, uncounted = 0, 0, 0
local start, finish = '${UNREVOKED}' .. ARGV[1], ARGV[1] .. '\\255'
local now = start .. ARGV[2]
for i = 1, #KEYS, 2 do
  local function between(first, last) return redis.call('ZLEXCOUNT', KEYS[i], first, last) end
  local listed, unrevoked = redis.call('ZCARD', KEYS[i + 1]), 0
  if redis.call('ZCARD', KEYS[i]) > 0 then
    live = live + between('[' .. now, '[${UNREVOKED}' .. finish)
    ended = ended + between('[' .. start, '(' .. now)
    for _, state in ipairs({'${ENDED_EARLY}', '${TOMBSTONE}'}) do
      ended = ended + between('[' .. state .. ARGV[1], '[' .. state .. finish)
    end
    unrevoked = between('[${UNREVOKED}', '(${ENDED_EARLY}')
  end
  uncounted = uncounted + math.max(0, listed - unrevoked)
end
return {live, ended, uncounted}
`);

/**
 * KEYS: lists of what is counted. ARGV: the holder of a quota, as entries have it, a time, and the largest
 * number of entries of each state. Answers for each list with those that may be pruned, in two lists.
 */
export const PRUNABLE = script(`${OF_LISTS}${SORTABLE}${CLOCK}
local found = {}
local later = sortable(math.min(tonumber(ARGV[2]), clock()) + 1)
for i = 1, #KEYS do
  for _, state in ipairs({'${UNREVOKED}', '${ENDED_EARLY}'}) do
    local start = state .. ARGV[1]
    local finish = state == '${UNREVOKED}' and '(' .. start .. later or '[' .. start .. '\\255'
    found[#found + 1] = redis.call('ZRANGEBYLEX', KEYS[i], '[' .. start, finish, 'LIMIT', 0, ARGV[3])
  end
end
return found
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

/** KEYS: ends. ARGV: a time and an age as for `REMOVE`, and the largest number of names from each. */
export const DUE = script(`${OF_LISTS}${CLOCK}
local due = {}
local before = math.min(tonumber(ARGV[1]), clock()) - tonumber(ARGV[2])
before = string.format('(%.0f', before)
for i = 1, #KEYS do
  due[i] = redis.call('ZRANGEBYSCORE', KEYS[i], '-inf', before, 'LIMIT', 0, ARGV[3])
end
return due
`);

/** KEYS: any. Answers with the time of its server. */
export const TIME = script(`${OF_LISTS}${CLOCK}
return string.format('%.0f', clock())
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
