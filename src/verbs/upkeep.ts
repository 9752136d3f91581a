import { DEFAULT_UPKEEP_MS } from '../bounds.ts';
import { isTokenError, TokenError } from '../errors.ts';
import { purgeInput, readInput, upkeepOptions } from '../inputs/schemas.ts';
import type { PurgeInput, UpkeepOptions } from '../inputs/types.ts';
import type { PurgeQuery } from '../ports/token-store.ts';
import { type BatchOptions, inBatches } from '../records/batches.ts';
import { stepsOf } from '../records/steps.ts';
import { tokenOf } from '../records/token-view.ts';
import { DAY_MS } from '../time/duration.ts';
import { clearTimeout, setTimeout } from '../time/timers.ts';
import type { Token, TokenId } from '../token/record.ts';
import type { ServiceParts } from './parts.ts';

/** Milliseconds from the start of the upkeep to its first round, at most. @bound */
export const UPKEEP_START_MS = 300_000;

/** Milliseconds after which the upkeep asks again whether the clock of its process can be believed. @bound */
export const UPKEEP_RETRY_MS = 3_600_000;

/** Milliseconds between two of those calls, so that others come first. @bound */
export const UPKEEP_PAUSE_MS = 25;

/** Records that the upkeep removes in one call of the store. @bound */
export const UPKEEP_BATCH = 25;

/** Milliseconds for which a request for a token is kept after its end, so that a late poll learns that it has expired. @bound */
export const REQUEST_KEPT_MS = 3_600_000;

/** Records that `purge` removes in one call of the store. @bound */
export const PURGE_BATCH = 1000;

/** Upkeep that runs in the background. */
export interface Upkeep {
  /** Ends it: resolves when the round that is under way has stopped. Never rejects. */
  stop(): Promise<void>;
}

/** Removes records that ended before an instant, and says how many. */
export async function purge(parts: ServiceParts, input: PurgeInput): Promise<number> {
  const now = parts.now();
  const { before, limit } = readInput(purgeInput(), input);
  if (before.getTime() > now) {
    const message = 'before must not be later than now';
    throw new TokenError('invalid_request', message, { member: 'before' });
  }
  const minAgeMs = now - before.getTime();
  const remove = (limit: number) => purgeSome(parts, { now: new Date(now), minAgeMs, limit });
  const onEnd = (count: number) => parts.events.purged(count, now);
  await purgeParts(parts, now, { size: PURGE_BATCH });
  return inBatches(remove, { size: PURGE_BATCH, limit, onEnd });
}

/** Goes through the tokens of all accounts. */
export async function* scan({
  now: clock,
  store,
}: Pick<ServiceParts, 'now' | 'store'>): AsyncGenerator<Token, void, undefined> {
  const now = clock();
  for await (const records of stepsOf(store)) {
    for (const record of records) yield tokenOf(record, now);
  }
}

/** Purges in the background, unless the clock of this process is far ahead. */
export function upkeep(parts: ServiceParts, options: UpkeepOptions): Upkeep {
  if (parts.isInside) {
    const message =
      'upkeep works in the background, and not in a transaction: call it on the service itself';
    throw new TokenError('invalid_request', message);
  }
  const { purgeAfterDays = 90, everyMs = DEFAULT_UPKEEP_MS } = readInput(upkeepOptions(), options);
  const { now: clock, events, evidence } = parts;
  let isDoubted = false;
  const rounds = new UpkeepRounds(async (signal) => {
    const now = clock();
    const wasDoubted = isDoubted;
    isDoubted = !(await evidence.confirms(now));
    if (!isDoubted) return upkeepRound(parts, now, purgeAfterDays * DAY_MS, signal);
    if (!wasDoubted) events.clockAhead();
    return UPKEEP_RETRY_MS;
  }, everyMs);
  // Before this process has written much itself. A failure is an event, and the first round asks again.
  const asked = (async () => evidence.confirms(clock()))().catch(() => {});
  parts.upkeeps.add({ stop: () => Promise.all([rounds.stop(), asked]) });
  return rounds;
}

/** Whether the store contradicts the clock of this process. */
export async function isClockAhead({
  now,
  evidence,
}: Pick<ServiceParts, 'now' | 'evidence'>): Promise<boolean> {
  return !(await evidence.confirms(now()));
}

/** Ends all work in the background, writes what waits, and closes the store. */
export async function close({
  upkeeps,
  rotations,
  limits,
  view,
  records,
  quotas,
  isInside,
}: ServiceParts): Promise<void> {
  if (isInside) return;
  await Promise.all(Array.from(upkeeps, (each) => each.stop()));
  await quotas.settled();
  const ended = await Promise.allSettled([
    rotations.settled(),
    limits.close(),
    view.usage?.close(),
  ]);
  await records.close();
  for (const end of ended) if (end.status === 'rejected') throw end.reason;
}

/** Removes the counts of uses, and the requests for tokens, that no longer matter. */
async function purgeParts(
  { limits, store }: Pick<ServiceParts, 'limits' | 'store'>,
  now: number,
  batches: BatchOptions,
  signal?: AbortSignal,
): Promise<void> {
  const before = new Date(now - REQUEST_KEPT_MS);
  for (const purgeSome of [
    (most: number) => limits.purgeSome(now, most),
    (most: number) => store.purgeRequests(before, most),
  ]) {
    await inBatches(async (most) => (signal?.aborted === true ? 0 : purgeSome(most)), batches);
  }
}

async function upkeepRound(
  parts: ServiceParts,
  now: number,
  minAgeMs: number,
  signal: AbortSignal,
): Promise<undefined> {
  const { events, view } = parts;
  const query = { now: new Date(now), minAgeMs };
  const remove = async (limit: number) =>
    signal.aborted ? 0 : purgeSome(parts, { ...query, limit });
  const between = () => pause(UPKEEP_PAUSE_MS, signal);
  const batches = { size: UPKEEP_BATCH, between };
  await inBatches(remove, {
    ...batches,
    onEnd: (count) => {
      if (count > 0) events.purged(count, now);
    },
  });
  await purgeParts(parts, now, batches, signal);
  const goneOf = (ids: readonly TokenId[]) => idsGone(parts, ids);
  await view.usage?.forgetGone({ goneOf, between, signal });
}

/** @throws {TokenError} the failure of any of them: only what is known to be gone is gone */
async function idsGone(
  { store }: Pick<ServiceParts, 'store'>,
  ids: readonly TokenId[],
): Promise<readonly TokenId[]> {
  const found = await store.find(ids);
  for (const each of found) if (isTokenError(each)) throw store.failure(each);
  return ids.filter((_, index) => found[index] === undefined);
}

/** Removes at most `limit` records that ended long enough ago, and their usage. */
async function purgeSome(
  { store, view }: Pick<ServiceParts, 'store' | 'view'>,
  query: PurgeQuery,
): Promise<number> {
  const { count, ids } = await store.purge(query);
  // A failure was emitted as an event. The records are gone, so usage that is left is never read.
  if (ids.length > 0) await view.usage?.forget(ids).catch(() => {});
  return count;
}

/**
 * The work of one round. The signal aborts when the round should end soon. Resolves to the milliseconds to
 * the next round if that should come earlier than usual.
 */
type Round = (signal: AbortSignal) => Promise<number | undefined>;

/** So that processes that started together do not stay in step. */
const JITTER = 0.2;

/**
 * Runs a round at intervals, never two at a time. Its timer does not keep the process alive. If a round
 * throws, the next one tries again.
 */
class UpkeepRounds implements Upkeep {
  readonly #round: Round;
  readonly #everyMs: number;
  readonly #end = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(round: Round, everyMs: number) {
    this.#round = round;
    this.#everyMs = everyMs;
    this.#wait(Math.min(everyMs, UPKEEP_START_MS) * Math.random());
  }

  async stop(): Promise<void> {
    this.#end.abort();
    clearTimeout(this.#timer);
    await this.#running;
  }

  #wait(ms: number): void {
    if (this.#end.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.#running = this.#run();
    }, ms);
    this.#timer.unref();
  }

  async #run(): Promise<void> {
    // The failure of a store was emitted as an event.
    const soonMs = await this.#round(this.#end.signal).catch(() => undefined);
    const everyMs = Math.min(this.#everyMs, soonMs ?? this.#everyMs);
    this.#wait(everyMs * (1 - JITTER * Math.random()));
  }
}

/** Waits until the time is over or the signal aborts. Does not keep the process alive. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    timer.unref();
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}
