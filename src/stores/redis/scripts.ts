import { createHash } from 'node:crypto';
import { MAX_REVOKED_REQUESTED_BYTES } from '../../bounds.ts';
import { ID_LENGTH } from '../../token/id.ts';
import { type Driver, isReply, type RedisCommand, withDriver } from './driver.ts';
import {
  DERIVED,
  EARLIEST,
  ENDED_EARLY,
  LAYOUT,
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
 * the account, what is counted of it, and the ends. INSERT and REPLACE, of one token, also get the lists by
 * parent and by root if it was derived.
 *
 * They answer with how many tokens they changed, how many an earlier run of the same call had
 * changed (a driver may send it twice), how many are malformed, and the generation of each token
 * that was changed, now or before. A generation is the id of the write that inserted the token. It
 * distinguishes the token from a later one that got the same id after a purge.
 */

/** The two or three counts that most scripts answer with. */
export function numbersIn(answer: unknown): [number, number, number] {
  const [first, second, third] = answer as readonly unknown[];
  return [Number(first), Number(second), Number(third)];
}

/**
 * Reads the first lines of a record. All fields are missing if it is malformed or has another layout.
 * `from` and `to` are where the lines from its entry to its format begin and end.
 */
const PARSE = `
local function parse(value)
  local token = {}
  token.revoked, token.version, token.writeId, token.generation, token.from, token.place, token.expiry,
    token.account, token.suspended, token.ancestors, token.format, token.to = string.match(value,
    '^${LAYOUT} (-?%d*)\\n(%d+)\\n([^\\n]*)\\n([^\\n]*)()\\n([^\\n]* )(-?%d+)\\n'
    .. '([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)()\\n')
  return token
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
export const primaryOnly = (write: string) => `
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

/** A time as it is in entries. */
export const SORTABLE = `
local function sortable(ms)
  if ms < 0 then return string.format('0%0${TIME_LENGTH - 1}.0f', ms - (${EARLIEST})) end
  return string.format('1%0${TIME_LENGTH - 1}.0f', ms)
end
`;

/**
 * What lists a token: its entries in its account's list, in what is set aside, and in what is counted, and its
 * further ones there, each empty if it has none; when it ends; and its entry among children. `relist` moves it in the lists
 * whose keys follow that of its record, from what listed it to what does now.
 */
const LISTS = `${SORTABLE}
local nowhere = {'', '', '', '', ''}
local function entriesOf(token)
  local isRevoked = token.revoked ~= ''
  local mark = isRevoked and '${REVOKED}' or token.suspended ~= '' and '${SUSPENDED}'
  local state = isRevoked and (token.format == '' and '${ENDED_EARLY}' or '${TOMBSTONE}') or '${UNREVOKED}'
  local ends = math.min(tonumber(token.expiry), tonumber(token.revoked) or math.huge)
  local root = string.sub(token.ancestors, 3, ${ID_LENGTH + 2})
  local id = string.sub(token.place, ${TIME_LENGTH + 1}, -2)
  local expiring = ' ' .. sortable(tonumber(token.expiry)) .. id
  return {
    isRevoked and '' or token.place .. token.expiry,
    mark and token.place .. mark .. token.expiry or '',
    state .. root .. ' ' .. sortable(ends) .. id,
    root ~= '' and not isRevoked and '${DERIVED}' .. expiring or '',
    mark and mark .. expiring or '',
    ends = string.format('%.0f', ends),
    child = token.place
  }
end
local function relist(i, name, before, after)
  for n = 1, 5 do
    local key = KEYS[i + math.min(n, 3)]
    if before[n] ~= '' and before[n] ~= after[n] then redis.call('ZREM', key, before[n]) end
    if after[n] ~= '' then redis.call('ZADD', key, 0, after[n]) end
  end
  if not after.ends then return redis.call('ZREM', KEYS[i + 4], name) end
  redis.call('ZADD', KEYS[i + 4], after.ends, name)
end
`;

/** The time of the server, in milliseconds. */
export const CLOCK = `
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
`;

/** ARGV: write id, record, name. */
export const INSERT = script(`${PARSE}${LISTS}
if redis.call('SET', KEYS[1], ARGV[2], 'NX') then
  local entries = entriesOf(parse(ARGV[2]))
  relist(1, ARGV[3], nowhere, entries)
  for i = 6, #KEYS do redis.call('ZADD', KEYS[i], 0, entries.child) end
  return {1, 0, 0}
end
return {0, parse(redis.call('GET', KEYS[1])).generation == ARGV[1] and 1 or 0, 0}
`);

/**
 * ARGV: write id, record before its generation, record after it, name, current version, generation (empty
 * for any), channel, id, and by how many bytes the record may grow on a server whose memory is full.
 */
export const REPLACE = script(`${PARSE}${UNKNOWN_LINES}${LISTS}
local value = redis.call('GET', KEYS[1])
if not value then return {0, 0, 0} end
local token = parse(value)
if not token.version then return {0, 0, 1} end
if token.writeId == ARGV[1] then return {0, 1, 0, token.generation} end
local changed = ARGV[2] .. token.generation .. ARGV[3]
local after = parse(changed)
if token.revoked ~= '' or token.version ~= ARGV[5] or token.account ~= after.account
  or (ARGV[6] ~= '' and token.generation ~= ARGV[6]) then return {0, 0, 0} end
changed = changed .. unknownLines(value, changed)
if #changed <= #value + tonumber(ARGV[9]) then ${ALLOW_FULL} end
redis.call('SET', KEYS[1], changed)
local entries = entriesOf(after)
relist(1, ARGV[4], entriesOf(token), entries)
for i = 6, #KEYS do redis.call('ZADD', KEYS[i], 0, entries.child) end
redis.pcall('PUBLISH', ARGV[7], ARGV[8])
return {1, 0, 0, token.generation}
`);

/**
 * The lines of a record after its format, of a token that is revoked: without what costs space and is not
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
    '^(${lines(4)}\\n[^\\n]-)"box":"[^"\\n]*",', '%1')
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
export const REVOKE = script(`${PARSE}${LISTS}${REDUCED}
${ALLOW_FULL}
local changed, repeated, malformed = 0, 0, 0
local generations = {}
for n = 1, #KEYS / 5 do
  local i = 5 * n - 4
  local name, known, listed = unpack(ARGV, 4 + 3 * n, 6 + 3 * n)
  if listed ~= '' and known == '' then redis.call('ZREM', KEYS[i + 1], listed) end
  generations[n] = ''
  local value = redis.call('GET', KEYS[i])
  if value then
    local token = parse(value)
    local isMeant = token.account == ARGV[4] and (ARGV[3] == '' or token.version == ARGV[3])
      and (known == '' or token.generation == known)
    if not token.version then
      malformed = malformed + 1
    elseif token.writeId == ARGV[1] then
      repeated = repeated + 1
      generations[n] = token.generation
    elseif token.revoked == '' and isMeant then
      local head = {'${LAYOUT} ' .. ARGV[2], token.version, ARGV[1], token.generation}
      local kept = string.sub(value, token.from, token.to - 1)
      local rest = reduced(string.sub(value, token.to))
      redis.call('SET', KEYS[i], table.concat(head, '\\n') .. kept .. rest)
      local before = entriesOf(token)
      token.revoked = ARGV[2]
      relist(i, name, before, entriesOf(token))
      changed = changed + 1
      generations[n] = token.generation
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
 * but not if they are tombstones. Malformed records are removed too. Answers with how many it removed, and
 * how many entries it found that were of no token; then for each token that was removed and was derived, with
 * its entry among children and its ancestors, in turn.
 */
export const REMOVE = script(`${PARSE}${LISTS}${CLOCK}
local removed, stale, children = 0, 0, {}
local before = math.min(tonumber(ARGV[1]), clock()) - tonumber(ARGV[2])
for n = 1, #KEYS / 5 do
  local i = 5 * n - 4
  local name, owner, listed = unpack(ARGV, 3 * n, 3 * n + 2)
  local time = redis.call('ZSCORE', KEYS[i + 4], name)
  local token = parse(redis.call('GET', KEYS[i]) or '')
  local isOwned = token.account == owner
  local entries = isOwned and entriesOf(token) or nowhere
  if listed ~= '' and entries[3] ~= listed then
    redis.call('ZREM', KEYS[i + 3], listed)
    stale = stale + 1
  elseif time and (tonumber(time) < before or (listed ~= '' and token.revoked ~= '')) then
    if isOwned or not token.account then redis.call('DEL', KEYS[i]) end
    if isOwned and token.ancestors ~= '' then
      children[#children + 1] = entries.child
      children[#children + 1] = token.ancestors
    end
    relist(i, name, entries, nowhere)
    removed = removed + 1
  end
end
return {removed, stale, unpack(children)}
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
 * KEYS: lists of what is counted. ARGV: what entries come after and before, without their states, the largest
 * number of entries of each state from each list, and the states. Answers with a list for each state of each list.
 */
export const LIST_EXPIRING = script(`${OF_LISTS}
local lists = {}
for i = 1, #KEYS do
  for n = 4, #ARGV do
    local after, before = '(' .. ARGV[n] .. ARGV[1], '(' .. ARGV[n] .. ARGV[2]
    lists[#lists + 1] = redis.call('ZRANGEBYLEX', KEYS[i], after, before, 'LIMIT', 0, ARGV[3])
  end
end
return lists
`);

/**
 * KEYS: lists of what is counted. ARGV: the holder of a quota, as entries have it, and a time as they have
 * it. Answers with how many tokens of the holder end then or later, and how many ended before or were
 * revoked.
 */
export const COUNT = script(`${OF_LISTS}
local live, ended = 0, 0
local start, finish = '${UNREVOKED}' .. ARGV[1], ARGV[1] .. '\\255'
local now = start .. ARGV[2]
for i = 1, #KEYS do
  local function between(first, last) return redis.call('ZLEXCOUNT', KEYS[i], first, last) end
  if redis.call('ZCARD', KEYS[i]) > 0 then
    live = live + between('[' .. now, '[${UNREVOKED}' .. finish)
    ended = ended + between('[' .. start, '(' .. now)
    for _, state in ipairs({'${ENDED_EARLY}', '${TOMBSTONE}'}) do
      ended = ended + between('[' .. state .. ARGV[1], '[' .. state .. finish)
    end
  end
end
return {live, ended}
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

/**
 * KEYS: records. ARGV: a length, or none. Answers with each record, or with its length in a list if it is
 * longer.
 */
export const READ = script(`${OF_RECORDS}
local read = {}
for i = 1, #KEYS do
  local length = ARGV[1] and redis.call('STRLEN', KEYS[i]) or 0
  read[i] = length > tonumber(ARGV[1] or 0) and {length} or redis.call('GET', KEYS[i])
end
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
