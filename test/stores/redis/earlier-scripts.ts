import type { Redis } from 'ioredis';
import { INSERT, REMOVE, REPLACE, REVOKE } from '../../../src/stores/redis/scripts.ts';
import { LATER_FIELDS } from '../earlier.ts';
import { intercepted } from './support.ts';

/**
 * A client that makes a store behave like the version before suspended tokens: it writes records without
 * the last lines, uses three keys for each token, and sends the original scripts below.
 */
export function ofEarlierVersion(client: Redis): Redis {
  return intercepted(client, (command, args, run) => {
    const earlier = command.startsWith('eval') ? EARLIER.get(args[0] as string) : undefined;
    if (earlier === undefined) return run(args);
    const count = Number(args[1]);
    const keys = args.slice(2, 2 + count).filter((_, index) => !NEW_KEYS.has(index % 5));
    const values = earlier.values(args.slice(2 + count));
    return client.call('eval', earlier.source, String(keys.length), ...keys, ...values);
  });
}

/** The indexes of the new keys among the five of a token. */
const NEW_KEYS = new Set([2, 4]);
const NEW_LINES = Object.keys(LATER_FIELDS).length;

function withoutNewLines(record = ''): string {
  return record.split('\n').slice(0, -NEW_LINES).join('\n');
}

const INSERT_BEFORE = `
local function head(value)
  return string.match(value,
    '^(-?%d*)\\n(%d+)\\n([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)()\\n')
end

local isFull = ARGV[6] ~= '' and redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[6])
if isFull then
  local revoked, version, writeId, generation = head(redis.call('GET', KEYS[1]) or '')
  if generation ~= ARGV[1] then return {0, 0, 0, 'crowded'} end
end
if redis.call('SET', KEYS[1], ARGV[2], 'NX') then
  if ARGV[3] ~= '' then redis.call('ZADD', KEYS[2], 0, ARGV[3]) end
  redis.call('ZADD', KEYS[3], ARGV[4], ARGV[5])
  return {1, 0, 0}
end
local revoked, version, writeId, generation = head(redis.call('GET', KEYS[1]))
return {0, generation == ARGV[1] and 1 or 0, 0}
`;

const REPLACE_BEFORE = `
local function head(value)
  return string.match(value,
    '^(-?%d*)\\n(%d+)\\n([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)()\\n')
end

local function unknownLines(value, known)
  local last, place = 0, 0
  while place do
    last = string.find(value, '\\n', last + 1, true)
    if not last then return '' end
    place = string.find(known, '\\n', place + 1, true)
  end
  return string.sub(value, last)
end

local value = redis.call('GET', KEYS[1])
if not value then return {0, 0, 0} end
local revoked, version, writeId, generation, entry, account = head(value)
if not version then return {0, 0, 1} end
if writeId == ARGV[1] then return {0, 1, 0, generation} end
if revoked ~= '' or version ~= ARGV[7] or account ~= ARGV[8] then return {0, 0, 0} end
if ARGV[9] ~= '' and generation ~= ARGV[9] then return {0, 0, 0} end
local changed = ARGV[2] .. generation .. ARGV[3]
changed = changed .. unknownLines(value, changed)
if #changed <= #value then redis.call('ZREM', KEYS[2], '') end
redis.call('SET', KEYS[1], changed)
if entry ~= ARGV[4] then redis.call('ZREM', KEYS[2], entry) end
if ARGV[4] ~= '' then redis.call('ZADD', KEYS[2], 0, ARGV[4]) end
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[6])
redis.pcall('PUBLISH', ARGV[10], ARGV[11])
return {1, 0, 0, generation}
`;

const REVOKE_BEFORE = `
local function head(value)
  return string.match(value,
    '^(-?%d*)\\n(%d+)\\n([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)()\\n')
end

redis.call('ZREM', KEYS[2], '')
local changed, repeated, malformed = 0, 0, 0
local generations = {}
for i = 1, #KEYS / 3 do
  local record, list, ends = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  local name, known, listed = ARGV[4 + 3 * i], ARGV[5 + 3 * i], ARGV[6 + 3 * i]
  if listed ~= '' then redis.call('ZREM', list, listed) end
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
      redis.call('ZADD', ends, 'LT', ARGV[2], name)
      changed = changed + 1
      generations[i] = generation
    end
  end
end
if changed > 0 then redis.pcall('PUBLISH', ARGV[5], ARGV[6]) end
return {changed, repeated, malformed, unpack(generations)}
`;

const REMOVE_BEFORE = `
local function head(value)
  return string.match(value,
    '^(-?%d*)\\n(%d+)\\n([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)\\n([^\\n]*)()\\n')
end

local removed = 0
for i = 1, #KEYS / 3 do
  local record, list, ends = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  local name, owner = ARGV[2 * i], ARGV[2 * i + 1]
  local time = redis.call('ZSCORE', ends, name)
  if time and tonumber(time) < tonumber(ARGV[1]) then
    local revoked, version, writeId, generation, entry, account =
      head(redis.call('GET', record) or '')
    if not entry or account == owner then redis.call('DEL', record) end
    if account == owner then redis.call('ZREM', list, entry) end
    redis.call('ZREM', ends, name)
    removed = removed + 1
  end
end
return {removed, 0, 0}
`;

/** Maps the hash of each current script to the script that was sent then. */
const EARLIER = new Map([
  [
    INSERT.sha,
    {
      source: INSERT_BEFORE,
      values: ([id = '', record, entry = '', _aside, end = '', name = '']: string[]) => [
        ...[id, withoutNewLines(record), entry, end, name, ''],
      ],
    },
  ],
  [
    REPLACE.sha,
    {
      source: REPLACE_BEFORE,
      values: ([id = '', head = '', tail, entry = '', _aside, ...rest]: string[]) => [
        ...[id, head, withoutNewLines(tail), entry],
        // Without the counted entry and the one by parent and root, and how far the record may grow.
        ...[...rest.slice(0, 2), ...rest.slice(4, -1)],
      ],
    },
  ],
  [REVOKE.sha, { source: REVOKE_BEFORE, values: (values: string[]) => values }],
  [
    REMOVE.sha,
    {
      source: REMOVE_BEFORE,
      values: ([now = '', _age, ...tokens]: string[]) => [
        now,
        ...tokens.filter((_, index) => index % 3 !== 2),
      ],
    },
  ],
]);
