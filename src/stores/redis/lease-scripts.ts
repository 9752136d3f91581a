import { CLOCK, script } from './scripts.ts';

/*
 * KEYS: the counts of granted uses, one for each key and window. A count expires a minute after its window
 * has ended by the clock of the server, in case that clock steps back.
 */

const COUNT_OF = `
local function countOf(key)
  local text = redis.call('GET', key)
  return text, tonumber(text or '0')
end
local function write(key, count, ...)
  redis.call('SET', key, string.format('%.0f', count), ...)
end
`;

/**
 * ARGV: for each key the limit, how much is wanted, and when the window begins and ends. Answers with the
 * grants.
 */
export const TAKE_LEASES = script(`${COUNT_OF}${CLOCK}
local now = clock()
local grants = {}
for i = 1, #KEYS do
  local limit, want = tonumber(ARGV[4 * i - 3]), tonumber(ARGV[4 * i - 2])
  local starts, ends = tonumber(ARGV[4 * i - 1]), tonumber(ARGV[4 * i])
  local text, count = countOf(KEYS[i])
  if not count then return redis.error_reply('WRONGTYPE a count is malformed') end
  local grant = 0
  if starts <= now and ends > now then
    grant = math.max(0, math.min(want, limit - count))
    local kept = text and now + redis.call('PTTL', KEYS[i]) or 0
    local expiry = math.max(kept, ends + 60000)
    if grant > 0 or (text and expiry > kept) then
      write(KEYS[i], count + grant, 'PXAT', string.format('%.0f', expiry))
    end
  end
  grants[i] = string.format('%.0f', grant)
end
return grants
`);

/** ARGV: for each key how much is given back. */
export const GIVE_BACK_LEASES = script(`${COUNT_OF}
for i = 1, #KEYS do
  local text, count = countOf(KEYS[i])
  if text and count then write(KEYS[i], math.max(0, count - tonumber(ARGV[i])), 'KEEPTTL') end
end
return 0
`);
