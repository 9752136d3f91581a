// Random schedules of rotations, uses, other changes, crashes and lost messages, over any store.
import fc from 'fast-check';
import type { TokenEvent } from '../../src/events.ts';
import type { PatchInput } from '../../src/input.ts';
import { TokenService } from '../../src/service.ts';
import type { TokenStore } from '../../src/store.ts';
import { manualClock, withFaults } from '../../src/testing/index.ts';
import type { TokenRecord } from '../../src/token.ts';
import { K1, OTHER_SCOPE, partsOf, reference, SCOPE } from '../support.ts';

const NEED = { scope: SCOPE };
/** The last one would end after the token. */
const GRACES = [0, 3, 10, 1000];
const TTL_SECONDS = 300;
const MAX_STALE_MS = 1000;
const QUIET_TURNS = 3;
/** Of each process: one reads the store for each use, the others serve uses from memory. */
const STALE_MS = [0, MAX_STALE_MS, MAX_STALE_MS];

/** So many failed writes in a row, and a process takes a rest: `FAILURES_IN_A_ROW`. */
const TIRING_LOSSES = 10;

/** What happens, by which process, and which of several things it is about. */
type Step = readonly [action: Action, process: number, pick: number];

const ACTIONS = [
  ...(['useNewest', 'useNewest', 'useAny', 'rotate', 'rotate', 'rotateAndLose', 'cancel'] as const),
  ...([
    'useBoth',
    'useInVain',
    'introspect',
    'look',
    'useWrongly',
    'rename',
    'suspend',
    'resume',
  ] as const),
  ...(['wait', 'waitLong', 'crash', 'loseRequest', 'loseAnswer'] as const),
  ...(['go', 'go', 'go', 'go', 'go', 'go', 'goAll', 'goAll', 'goAll'] as const),
];
type Action = (typeof ACTIONS)[number];

export const SCHEDULES: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.tuple(fc.constantFrom(...ACTIONS), fc.nat(STALE_MS.length - 1), fc.nat(6)),
  { minLength: 5, maxLength: 50 },
);

/** A call on its way to the store, or its answer on its way back. */
interface Message {
  readonly from: Process;
  /** Whether it asks for a change. */
  readonly isWrite: boolean;
  go(): Promise<void>;
  loseRequest(): void;
  loseAnswer(): Promise<void>;
}

interface Process {
  readonly staleMs: number;
  readonly tokens: TokenService;
  /** How many of its reads are under way. */
  reads: number;
  /** How many of its writes were lost. */
  losses: number;
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
 * - the accepted value is replaced only by the one that waits, when that was used and not before; the old
 *   one then has its grace, from that use on, and never beyond the token; nothing else changes it
 * - a rotation changes nothing else, and undoes no concurrent change
 * - whoever has all values that were delivered has one that works, always
 * - each verdict is right for a record that was stored when it was asked for, or at most `maxStaleMs` before
 * - a use is written when all messages have arrived; one whose write was lost is written by the next use,
 *   also by one in the same process
 * - a suspension ends when that was asked for, and not by a rotation
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
  readonly #uses = new Map<string, { readonly at: number; readonly by: Process }[]>();
  readonly #running = new Set<Promise<unknown>>();
  #activated = 0;
  #replaced = 0;
  #names = 0;
  /** How often somebody asked to resume the token, and how often it was. */
  #resumes = { asked: 0, made: 0 };
  /** Made when they do something first. */
  readonly #processes = new Map<number, Process>();
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
    const scopes = [SCOPE];
    const { id, value } = await owner.issue({ account: 'acme', scopes, ttlSeconds: TTL_SECONDS });
    const [record] = await this.#inner.find([id]);
    this.#id = id;
    this.#delivered.push(value);
    this.#commits.push({ record: record as TokenRecord, at: this.#now });
  }

  #at(place: number): Process {
    const process = this.#processes.get(place) ?? this.#start(STALE_MS[place] ?? 0);
    this.#processes.set(place, process);
    return process;
  }

  async take([action, place, pick]: Step): Promise<void> {
    const newest = this.#delivered.at(-1) as string;
    const any = this.#delivered[pick % this.#delivered.length] as string;
    await {
      useNewest: () => void this.#use(this.#at(place), newest),
      useAny: () => void this.#use(this.#at(place), any),
      useWrongly: () => this.#run(this.#at(place).tokens.verify(newest, { scope: OTHER_SCOPE })),
      // The first one fills the cache, out of which the second one is served.
      useBoth: () => this.#useEach(this.#at(place), [this.#delivered.at(-2) ?? newest, newest]),
      useInVain: () => this.#useInVain(this.#at(place), newest),
      introspect: () => this.#introspect(this.#at(place), newest),
      look: () => this.#run(this.#at(place).tokens.introspect(newest)),
      rotate: () => this.#rotate(this.#at(place), { isDelivered: true, pick }),
      rotateAndLose: () => this.#rotate(this.#at(place), { isDelivered: false, pick }),
      cancel: () => this.#run(this.#at(place).tokens.rotate('acme', this.#id, { cancel: true })),
      rename: () => this.#patch(this.#at(place), { name: `name ${this.#names++}` }),
      suspend: () => this.#patch(this.#at(place), { suspended: true }),
      resume: () => this.#resume(this.#at(place)),
      wait: () => void this.#clock.advance(0.4),
      waitLong: () => void this.#clock.advance(6),
      crash: () => this.#crash(place),
      go: () => this.#message(pick)?.go(),
      goAll: () => this.#settle(),
      loseRequest: () => this.#message(pick)?.loseRequest(),
      loseAnswer: () => this.#message(pick)?.loseAnswer(),
    }[action]();
    await turn();
    this.#checkBearer();
  }

  /** Lets all end, and then the processes write the use of what still waits. */
  async end(): Promise<void> {
    await this.#drain();
    this.#resume(this.#start(0));
    await this.#settle();
    // What was cached is too old now.
    this.#clock.advance(MAX_STALE_MS / 1000);
    // Those that have lost something first: a use in another process would write what they did not.
    const rested = [...this.#processes.values()]
      .filter(({ losses }) => losses < TIRING_LOSSES)
      .sort((one, other) => other.losses - one.losses);
    for (const process of rested) await this.#useAll(process);
    const accepted = await this.#useAll(this.#start(0));
    if (accepted === 0) this.faults.push('no value works at the end');
    if (this.#activated > this.#replaced) this.faults.push('activated was emitted twice');
  }

  /** Uses each value, the newest one first. Resolves to how many were accepted. */
  async #useAll(process: Process): Promise<number> {
    let accepted = 0;
    for (const value of this.#delivered.toReversed()) {
      const verdict = this.#use(process, value);
      await this.#drain();
      if ((await verdict) === true) accepted += 1;
      const { pending } = this.#stored;
      if (pending !== undefined && hex(pending.digest) === digestOf(value)) {
        this.faults.push('a use was not written at last');
      }
    }
    return accepted;
  }

  /** Some turns without a message: nothing more will come. */
  async #drain(losesWrites = false): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS; ) {
      const message = this.#message(0);
      quiet = message === undefined ? quiet + 1 : 0;
      if (losesWrites && message?.isWrite === true) message.loseRequest();
      else await message?.go();
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
      const answer = this.#send({ from: process, isWrite: method === 'replace' }, run, committed);
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
    const process: Process = { staleMs, tokens, reads: 0, losses: 0, isGone: false };
    return process;
  }

  /** A call takes effect when the schedule says so, and so does its answer. */
  #send(
    { from, isWrite }: Pick<Message, 'from' | 'isWrite'>,
    run: () => Promise<unknown>,
    committed: (answer: unknown) => void,
  ): Promise<unknown> {
    if (from.isGone) return Promise.reject(new Error('gone'));
    return new Promise((resolve, reject) => {
      const lose = () => {
        from.losses += 1;
        reject(new Error('lost'));
      };
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
        isWrite,
        loseRequest: lose,
        loseAnswer: async () => void (await arrive().finally(lose)),
        go: async () => {
          const reply = await arrive();
          if (from.isGone) lose();
          else
            this.#messages.push({
              from,
              isWrite: false,
              go: async () => reply(),
              loseRequest: lose,
              loseAnswer: async () => lose(),
            });
        },
      });
    });
  }

  #crash(place: number): void {
    const process = this.#processes.get(place);
    if (process === undefined) return;
    process.isGone = true;
    for (const message of this.#messages.splice(0)) {
      if (message.from === process) message.loseRequest();
      else this.#messages.push(message);
    }
    this.#processes.delete(place);
  }

  /** Lets all end: what was used is written then, unless something was lost. */
  async #settle(): Promise<void> {
    await this.#drain();
    const uses = this.#uses.get(`${hex(this.#stored.pending?.digest)}`) ?? [];
    if (uses.some(({ by }) => by.losses === 0 && !by.isGone)) {
      this.faults.push('a use was not written, although nothing was lost');
    }
  }

  #resume(process: Process): void {
    this.#resumes.asked += 1;
    this.#patch(process, { suspended: false });
  }

  #patch({ tokens }: Process, change: PatchInput): void {
    this.#run(tokens.patch('acme', this.#id, change));
  }

  #rotate(
    { tokens }: Process,
    { isDelivered, pick }: { readonly isDelivered: boolean; readonly pick: number },
  ): void {
    const graceSeconds = GRACES[pick % GRACES.length] as number;
    const options =
      this.#how === 'immediately'
        ? { graceSeconds }
        : { activate: 'first-use' as const, graceSeconds };
    const rotation = tokens.rotate('acme', this.#id, options);
    this.#run(rotation.then(({ value }) => isDelivered && this.#delivered.push(value)));
  }

  async #useEach(process: Process, values: readonly string[]): Promise<void> {
    for (const value of values) {
      this.#use(process, value);
      await this.#drain();
    }
  }

  /** Nothing is written of this use. */
  async #useInVain(process: Process, value: string): Promise<void> {
    this.#use(process, value);
    await this.#drain(true);
  }

  /** A resource server asks about a value, which is a use of it. */
  #introspect(process: Process, value: string): void {
    const now = this.#now;
    const asked = process.tokens.introspect(value, { countsAsUse: true });
    this.#run(asked.then((token) => token && this.#noteUse(process, value, now)));
  }

  #noteUse(by: Process, value: string, at: number): void {
    const digest = digestOf(value);
    this.#uses.set(digest, [...(this.#uses.get(digest) ?? []), { at, by }]);
  }

  /** Resolves to whether the value was accepted; to undefined if nobody knows. */
  #use(process: Process, value: string): Promise<boolean | undefined> {
    const { tokens, staleMs, reads } = process;
    const now = this.#now;
    const latest = this.#commits.length - 1;
    const since = this.#commits.findLastIndex(({ at }) => at <= now - staleMs);
    const first = staleMs === 0 ? latest : Math.max(0, since);
    const use = tokens.verify(value, NEED).then(
      ({ ok }) => {
        if (ok) this.#noteUse(process, value, now);
        const recent = this.#commits.slice(first).map(({ record }) => record);
        // Only a suspension is refused from memory, but a use may join a read that is under way.
        const isOfMemory = ok || reads > 0 || recent.some((record) => record.suspendedAt);
        const from = isOfMemory ? 0 : latest - first;
        const seen = recent.slice(from).map((record) => works(record, value, now));
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
    const names = this.#commits.map((commit) => commit.record.name);
    this.#commits.push({ record: structuredClone(record), at: this.#now });
    const stays = [record.expiresAt, record.scopes, record.account, record.createdAt].join();
    if (stays !== [before.expiresAt, before.scopes, before.account, before.createdAt].join()) {
      this.faults.push('a rotation changed what the token may do');
    }
    if (before.suspendedAt !== undefined && record.suspendedAt === undefined) {
      this.#resumes.made += 1;
      if (this.#resumes.made > this.#resumes.asked) {
        this.faults.push('a rotation resumed the token');
      }
    }
    if (record.version <= before.version) this.faults.push('a change has no version of its own');
    if (record.name !== before.name && names.includes(record.name)) {
      this.faults.push('a change undid another one');
    }
    if (hex(record.digest) === hex(before.digest)) {
      const isSame =
        hex(record.previousDigest) === hex(before.previousDigest) &&
        record.previousUntil?.getTime() === before.previousUntil?.getTime();
      if (!isSame) this.faults.push('the old value was changed without a new one');
      return;
    }
    this.#replaced += 1;
    const { pending } = before;
    if (
      hex(record.digest) !== hex(pending?.digest) ||
      hex(record.pending?.digest) === hex(record.digest)
    ) {
      this.faults.push('the old value was replaced by one that did not wait');
    }
    const uses = this.#uses.get(`${hex(record.digest)}`) ?? [];
    const isAfterUse = uses.some(({ at }) => {
      const until = Math.min(at + (pending?.graceSeconds ?? 0) * 1000, before.expiresAt.getTime());
      return record.previousUntil?.getTime() === until && record.rotatedAt?.getTime() === at;
    });
    if (!isAfterUse) this.faults.push('the old value was ended without a use of the new one');
    if (hex(record.previousDigest) !== hex(before.digest)) {
      this.faults.push('the old value has no grace');
    }
  }

  #checkBearer(): void {
    // Whoever suspends a token means it.
    const { suspendedAt: _, ...stored } = this.#stored;
    if (this.#now >= stored.expiresAt.getTime()) return;
    const hasOne = this.#delivered.some((value) => works(stored, value, this.#now));
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
  if (record.suspendedAt !== undefined || now >= record.expiresAt.getTime()) return false;
  const digest = digestOf(value);
  if (digest === hex(record.digest) || digest === hex(record.pending?.digest)) return true;
  const until = record.previousUntil?.getTime() ?? 0;
  return digest === hex(record.previousDigest) && now < until;
}

const digests = new Map<string, string>();

function digestOf(value: string): string {
  const known = digests.get(value);
  if (known !== undefined) return known;
  if (digests.size >= 1000) digests.clear();
  const { id, secret } = partsOf(value);
  const digest = reference.digest(id, secret).toString('hex');
  digests.set(value, digest);
  return digest;
}

function hex(bytes: Uint8Array | undefined): string | undefined {
  return bytes && Buffer.from(bytes).toString('hex');
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
