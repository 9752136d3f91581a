import { OTHER_SCOPES } from '../../ports/usage-store.ts';
import { REFUSALS } from '../shared/usage-rows.ts';
import { script } from './scripts.ts';

/*
 * KEYS: the hashes of tokens. A field is a scope, and its cell is the number of uses and the time of the
 * last one in milliseconds: `12 1893456000000`. The field without a name counts refusals, with time 0.
 */

/**
 * ARGV: how many scopes of a token are counted apart; then for each count the index of its token, the
 * field, and a cell to add. Reads all, then writes: an error in between would leave a part written. Lua
 * counts exactly up to 2^53, as JavaScript does.
 */
export const ADD_USAGE = script(`
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
export const READ_USAGE = script(`
local read = {}
for i = 1, #KEYS do read[i] = redis.call('HGETALL', KEYS[i]) end
return read
`);

/**
 * Answers with the sums of each token, `12 3 1893456000000`: uses, refusals and the time of the last use,
 * which is missing if there was none; with an empty text for a token without counts.
 */
export const READ_TOTALS = script(`
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
export const START_USAGE = script(`
local start = redis.call('GET', KEYS[1])
if start then return start end
local time = redis.call('TIME')
start = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('SET', KEYS[1], start)
return start
`);
