import { storeUnavailable, type TokenError } from '../../errors.ts';
import type { LeaseStore, LeaseWant, UnspentLease } from '../../ports/lease-store.ts';
import { leaseRow, summedLeases } from '../shared/lease-rows.ts';
import type { Driver } from './driver.ts';
import type { KeySpace } from './layout.ts';
import { ReplicatedWrites, type Replication } from './replicated-writes.ts';
import { CLOCK, type Script, script } from './scripts.ts';

/** One count in Redis. */
interface Count {
  /** The key of the lease, which decides the shard. */
  readonly id: string;
  readonly name: string;
  readonly values: readonly string[];
  /** Its index in the call. */
  readonly index: number;
}

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
const TAKE_LEASES = script(`${COUNT_OF}${CLOCK}
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
const GIVE_BACK_LEASES = script(`${COUNT_OF}
for i = 1, #KEYS do
  local text, count = countOf(KEYS[i])
  if text and count then write(KEYS[i], math.max(0, count - tonumber(ARGV[i])), 'KEEPTTL') end
end
return 0
`);

/**
 * Counts the uses of limited tokens. Calls go over connections of their own, which never send a command
 * twice. A call takes one round trip, in a cluster one to each server, concurrently. It rejects if one of
 * them fails, and what the others have granted is lost.
 */
export class RedisLeaseStore implements LeaseStore {
  readonly #keys: KeySpace;
  readonly #replicas: number;
  readonly #writes: ReplicatedWrites;

  constructor(driver: Driver, keys: KeySpace, replication: Replication) {
    this.#keys = keys;
    this.#replicas = replication.replicas;
    this.#writes = new ReplicatedWrites(driver, replication);
  }

  async take(wants: readonly LeaseWant[]): Promise<number[]> {
    const granted = new Array<number>(wants.length).fill(0);
    const counts = wants
      .map(leaseRow)
      .map(({ key, window, wanted, limit, from, until }, index) => ({
        id: key,
        name: this.#keys.lease(key, window),
        values: [limit, wanted, from, until].map(String),
        index,
      }));
    const parts = this.#keys.batched<Count>(counts).map(async (part) => {
      const { answer, confirmations } = await this.#run(part, TAKE_LEASES);
      if (confirmations < this.#replicas) throw unconfirmed();
      for (const [place, { index }] of part.entries()) {
        granted[index] = Number((answer as readonly unknown[])[place]);
      }
    });
    await Promise.all(parts);
    return granted;
  }

  async giveBack(leases: readonly UnspentLease[]): Promise<void> {
    const counts = summedLeases(leases).map(({ key, window, amount }, index) => ({
      id: key,
      name: this.#keys.lease(key, window),
      values: [String(amount)],
      index,
    }));
    const parts = this.#keys.batched<Count>(counts);
    await Promise.all(parts.map((part) => this.#run(part, GIVE_BACK_LEASES)));
  }

  /** Always resolves to 0: counts expire by themselves. */
  async purge(): Promise<number> {
    return 0;
  }

  async close(): Promise<void> {
    this.#writes.close();
  }

  #run(counts: readonly Count[], script: Script) {
    return this.#writes.run({
      slot: this.#keys.slotOf(counts),
      script,
      keys: counts.map(({ name }) => name),
      values: counts.flatMap(({ values }) => values),
    });
  }
}

function unconfirmed(): TokenError {
  return storeUnavailable('unreachable', 'leases');
}
