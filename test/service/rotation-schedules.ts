// Random schedules of rotations, uses, cancellations, crashes and lost messages, over any store.
import fc from 'fast-check';
import type { TokenEvent } from '../../src/events.ts';
import { TokenService } from '../../src/service.ts';
import type { TokenStore } from '../../src/store.ts';
import { manualClock, withFaults } from '../../src/testing/index.ts';
import type { TokenRecord } from '../../src/token.ts';
import { K1, partsOf, reference, SCOPE } from '../support.ts';

const NEED = { scope: SCOPE };
const GRACE_SECONDS = 10;
const MAX_STALE_MS = 1000;
const QUIET_TURNS = 3;
/** Of each process: one reads the store for each use, the others serve uses from memory. */
const STALE_MS = [0, MAX_STALE_MS, MAX_STALE_MS];

/** What happens, by which process, and which of several things it is about. */
type Step = readonly [action: Action, process: number, pick: number];

const ACTIONS = [
  ...(['useNewest', 'useNewest', 'useAny', 'rotate', 'rotate', 'rotateAndLose', 'cancel'] as const),
  ...(['wait', 'waitLong', 'crash', 'loseRequest', 'loseAnswer'] as const),
  ...(['go', 'go', 'go', 'go', 'go', 'go'] as const),
];
type Action = (typeof ACTIONS)[number];

export const SCHEDULES: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.tuple(fc.constantFrom(...ACTIONS), fc.nat(STALE_MS.length - 1), fc.nat(6)),
  { minLength: 5, maxLength: 50 },
);

/** A call on its way to the store, or its answer on its way back. */
interface Message {
  readonly from: Process;
  go(): Promise<void>;
  loseRequest(): void;
  loseAnswer(): Promise<void>;
}

interface Process {
  readonly staleMs: number;
  readonly tokens: TokenService;
  /** How many of its reads are under way. */
  reads: number;
  isGone: boolean;
}

interface Commit {
  readonly record: TokenRecord;
  /** When it was made. */
  readonly at: number;
}

/**
 * Runs a schedule and returns what was wrong. Rules, for a token that is rotated only by `first-use`:
 *
 * - the accepted value is replaced only by one that was used, and ends its grace after that use or later;
 *   nothing else changes it, and scopes and expiry stay
 * - whoever has all values that were delivered has one that works, always
 * - each verdict is right for a record that was stored when it was asked for, or at most `maxStaleMs` before
 * - a use whose write was lost is written by the next one
 *
 * @param how `immediately`: the control, in which a rotation does not wait for the first use
 */
export async function faultsOf(
  inner: TokenStore,
  schedule: readonly Step[],
  how: 'on first use' | 'immediately' = 'on first use',
): Promise<string[]> {
  const world = new World(inner, how);
  await world.begin();
  for (const step of schedule) await world.take(step);
  await world.end();
  return world.faults;
}

class World {
  readonly faults: string[] = [];
  readonly #inner: TokenStore;
  readonly #how: 'on first use' | 'immediately';
  readonly #clock = manualClock();
  readonly #messages: Message[] = [];
  readonly #commits: Commit[] = [];
  /** The values that somebody has, and when each was accepted, by digest. */
  readonly #delivered: string[] = [];
  readonly #uses = new Map<string, number[]>();
  readonly #running = new Set<Promise<unknown>>();
  #activated = 0;
  #replaced = 0;
  #processes: Process[] = [];
  #id = '';

  constructor(inner: TokenStore, how: 'on first use' | 'immediately') {
    this.#inner = inner;
    this.#how = how;
  }

  get #now(): number {
    return this.#clock.now().getTime();
  }

  get #stored(): TokenRecord {
    return (this.#commits.at(-1) as Commit).record;
  }

  async begin(): Promise<void> {
    const owner = new TokenService({
      store: this.#inner,
      keys: [K1],
      prefix: 'acme',
      clock: this.#clock,
    });
    const { id, value } = await owner.issue({ account: 'acme', scopes: [SCOPE] });
    const [record] = await this.#inner.find([id]);
    this.#id = id;
    this.#delivered.push(value);
    this.#commits.push({ record: record as TokenRecord, at: this.#now });
    this.#processes = STALE_MS.map((staleMs) => this.#start(staleMs));
  }

  async take([action, place, pick]: Step): Promise<void> {
    const process = this.#processes[place] as Process;
    if (action === 'useNewest') this.#use(process, this.#delivered.at(-1) as string);
    else if (action === 'useAny') {
      this.#use(process, this.#delivered[pick % this.#delivered.length] as string);
    } else if (action === 'rotate' || action === 'rotateAndLose') {
      this.#rotate(process, action === 'rotate');
    } else if (action === 'cancel') {
      this.#run(process.tokens.rotate('acme', this.#id, { cancel: true }));
    } else if (action === 'wait') this.#clock.advance(0.4);
    else if (action === 'waitLong') this.#clock.advance(6);
    else if (action === 'crash') this.#crash(place);
    else await this.#message(pick)?.[action]();
    await turn();
    this.#checkBearer();
  }

  /** Lets all end, and then a new process writes the use of what still waits. */
  async end(): Promise<void> {
    await this.#drain();
    const last = this.#start(0);
    let accepted = 0;
    for (const value of this.#delivered) {
      const verdict = this.#use(last, value);
      await this.#drain();
      if ((await verdict) === true) accepted += 1;
      const { pending } = this.#stored;
      if (pending !== undefined && hex(pending.digest) === digestOf(value)) {
        this.faults.push('a use was not written at last');
      }
    }
    if (accepted === 0) this.faults.push('no value works at the end');
    if (this.#activated > this.#replaced) this.faults.push('activated was emitted twice');
  }

  /** Some turns without a message: nothing more will come. */
  async #drain(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS; ) {
      const message = this.#message(0);
      quiet = message === undefined ? quiet + 1 : 0;
      await message?.go();
      await turn();
    }
    await Promise.all(this.#running);
  }

  #message(pick: number): Message | undefined {
    return this.#messages.splice(pick % Math.max(1, this.#messages.length), 1)[0];
  }

  #start(staleMs: number): Process {
    const store = withFaults(this.#inner, ({ method, args }, run) => {
      const committed = (answer: unknown) => {
        if (method === 'replace' && answer === true) this.#commit(args[0] as TokenRecord);
      };
      const answer = this.#send(process, run, committed);
      if (method !== 'find') return answer;
      process.reads += 1;
      return answer.finally(() => {
        process.reads -= 1;
      });
    });
    const { watch: _, close: __, ...unheard } = store;
    const tokens = new TokenService({
      store: unheard,
      keys: [K1],
      prefix: 'acme',
      clock: this.#clock,
      deadlineMs: 60_000,
      cache: { maxStaleMs: staleMs },
      onEvent: (event: TokenEvent) => {
        if (event.type === 'activated' && !process.isGone) this.#activated += 1;
      },
    });
    const process: Process = { staleMs, tokens, reads: 0, isGone: false };
    return process;
  }

  /** A call takes effect when the schedule says so, and so does its answer. */
  #send(
    from: Process,
    run: () => Promise<unknown>,
    committed: (answer: unknown) => void,
  ): Promise<unknown> {
    if (from.isGone) return Promise.reject(new Error('gone'));
    return new Promise((resolve, reject) => {
      const lose = () => reject(new Error('lost'));
      const arrive = async () => {
        try {
          const answer = await run();
          committed(answer);
          return () => resolve(answer);
        } catch (error) {
          return () => reject(error);
        }
      };
      this.#messages.push({
        from,
        loseRequest: lose,
        loseAnswer: async () => void (await arrive().finally(lose)),
        go: async () => {
          const reply = await arrive();
          if (from.isGone) lose();
          else
            this.#messages.push({
              from,
              go: async () => reply(),
              loseRequest: lose,
              loseAnswer: async () => lose(),
            });
        },
      });
    });
  }

  #crash(place: number): void {
    const process = this.#processes[place] as Process;
    process.isGone = true;
    for (const message of this.#messages.splice(0)) {
      if (message.from === process) message.loseRequest();
      else this.#messages.push(message);
    }
    this.#processes[place] = this.#start(process.staleMs);
  }

  #rotate({ tokens }: Process, isDelivered: boolean): void {
    const options =
      this.#how === 'immediately'
        ? { graceSeconds: GRACE_SECONDS }
        : { activate: 'first-use' as const, graceSeconds: GRACE_SECONDS };
    const rotation = tokens.rotate('acme', this.#id, options);
    this.#run(rotation.then(({ value }) => isDelivered && this.#delivered.push(value)));
  }

  /** Resolves to whether the value was accepted; to undefined if nobody knows. */
  #use({ tokens, staleMs, reads }: Process, value: string): Promise<boolean | undefined> {
    const now = this.#now;
    const latest = this.#commits.length - 1;
    const since = this.#commits.findLastIndex(({ at }) => at <= now - staleMs);
    const first = staleMs === 0 ? latest : Math.max(0, since);
    const use = tokens.verify(value, NEED).then(
      ({ ok }) => {
        if (ok) this.#uses.set(digestOf(value), [...(this.#uses.get(digestOf(value)) ?? []), now]);
        // Nothing is refused from memory, but a use may join a read that is under way.
        const from = ok || reads > 0 ? first : latest;
        const seen = this.#commits.slice(from).map(({ record }) => works(record, value, now));
        if (!seen.includes(ok))
          this.faults.push(`a use was ${ok ? 'accepted' : 'refused'} wrongly`);
        return ok;
      },
      () => undefined,
    );
    this.#run(use);
    return use;
  }

  #commit(record: TokenRecord): void {
    const before = this.#stored;
    this.#commits.push({ record: structuredClone(record), at: this.#now });
    const stays = [record.expiresAt, record.scopes, record.account].join();
    if (stays !== [before.expiresAt, before.scopes, before.account].join()) {
      this.faults.push('a rotation changed what the token may do');
    }
    if (hex(record.digest) === hex(before.digest)) {
      const isSame =
        hex(record.previousDigest) === hex(before.previousDigest) &&
        record.previousUntil?.getTime() === before.previousUntil?.getTime();
      if (!isSame) this.faults.push('the old value was changed without a new one');
      return;
    }
    this.#replaced += 1;
    const uses = this.#uses.get(`${hex(record.digest)}`) ?? [];
    const isAfterUse = uses.some(
      (at) => record.previousUntil?.getTime() === at + GRACE_SECONDS * 1000,
    );
    if (!isAfterUse) this.faults.push('the old value was ended without a use of the new one');
    if (hex(record.previousDigest) !== hex(before.digest)) {
      this.faults.push('the old value has no grace');
    }
  }

  #checkBearer(): void {
    const hasOne = this.#delivered.some((value) => works(this.#stored, value, this.#now));
    if (!hasOne) this.faults.push('a bearer has no value that works');
  }

  #run(call: Promise<unknown>): void {
    const settled = call.then(
      () => {},
      () => {},
    );
    this.#running.add(settled);
    void settled.then(() => this.#running.delete(settled));
  }
}

/** The rule of acceptance, in words of the tests' own. */
function works(record: TokenRecord, value: string, now: number): boolean {
  const digest = digestOf(value);
  if (digest === hex(record.digest) || digest === hex(record.pending?.digest)) return true;
  const until = record.previousUntil?.getTime() ?? 0;
  return digest === hex(record.previousDigest) && now < until;
}

function digestOf(value: string): string {
  const { id, secret } = partsOf(value);
  return reference.digest(id, secret).toString('hex');
}

function hex(bytes: Uint8Array | undefined): string | undefined {
  return bytes && Buffer.from(bytes).toString('hex');
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
