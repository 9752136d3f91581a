// Random schedules of rotations, uses, other changes, crashes and lost messages, over any store.
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import type { TokenEvent } from '../../src/events.ts';
import type { PatchInput } from '../../src/inputs/types.ts';
import type { TokenStore } from '../../src/ports/token-store.ts';
import { TokenService } from '../../src/service.ts';
import { manualClock, withFaults } from '../../src/testing/index.ts';
import type { TokenRecord } from '../../src/token/record.ts';
import { K1, OTHER_SCOPE, partsOf, reference, SCOPE } from '../support.ts';

const NEED = { scope: SCOPE };
/** The last one is longer than the lifetime of the token. */
const GRACES = [0, 3, 10, 1000];
const TTL_SECONDS = 300;
const MAX_STALE_MS = 1000;
const QUIET_TURNS = 3;
/** The `maxStaleMs` of each process: one reads the store for each use, the others serve from a cache. */
const STALE_MS = [0, MAX_STALE_MS, MAX_STALE_MS];

/** A process pauses its writes after this many failures in a row: `FAILURES_IN_A_ROW` of the source. */
const LOSSES_BEFORE_PAUSE = 10;

/** An action, the process that takes it, and a number that picks one of several messages or values. */
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

/** A call on the way to the store, or its answer on the way back. */
interface Message {
  readonly from: Process;
  /** Whether it is a call that writes. */
  readonly isWrite: boolean;
  go(): Promise<void>;
  loseRequest(): void;
  loseAnswer(): Promise<void>;
}

interface Process {
  readonly staleMs: number;
  readonly tokens: TokenService;
  /** How many of its reads are running. */
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
 * - Only the pending value replaces the current one, and only after it was used. From that use on, the old
 *   value has its grace period, which ends with the token at the latest. Nothing else changes the old value.
 * - A rotation changes nothing else, and undoes no concurrent change.
 * - A bearer who has all delivered values always has one that works.
 * - Each verdict is right for a record that was stored at the time of the call, or at most `maxStaleMs` before.
 * - A use is written when all messages have arrived. If its write was lost, the next use writes it, even a use
 *   in the same process.
 * - Only a request to resume ends a suspension, never a rotation.
 *
 * @param how `immediately` is the control: a rotation does not wait for the first use
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
  /** The values that the bearer has received. */
  readonly #delivered: string[] = [];
  /** The accepted uses of each value, by its digest. */
  readonly #uses = new Map<string, { readonly at: number; readonly by: Process }[]>();
  readonly #running = new Set<Promise<unknown>>();
  #activated = 0;
  #replaced = 0;
  #names = 0;
  /** How often a resume was requested, and how often the token was resumed. */
  #resumes = { asked: 0, made: 0 };
  /** Each process starts with its first action. */
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

  #at(index: number): Process {
    const process = this.#processes.get(index) ?? this.#start(STALE_MS[index] ?? 0);
    this.#processes.set(index, process);
    return process;
  }

  async take([action, index, pick]: Step): Promise<void> {
    const newest = this.#delivered.at(-1) as string;
    const any = this.#delivered[pick % this.#delivered.length] as string;
    await {
      useNewest: () => void this.#use(this.#at(index), newest),
      useAny: () => void this.#use(this.#at(index), any),
      useWrongly: () => this.#run(this.#at(index).tokens.verify(newest, { scope: OTHER_SCOPE })),
      // The first use fills the cache, which then serves the second one.
      useBoth: () => this.#useEach(this.#at(index), [this.#delivered.at(-2) ?? newest, newest]),
      useInVain: () => this.#useInVain(this.#at(index), newest),
      introspect: () => this.#introspect(this.#at(index), newest),
      look: () => this.#run(this.#at(index).tokens.introspect(newest)),
      rotate: () => this.#rotate(this.#at(index), { isDelivered: true, pick }),
      rotateAndLose: () => this.#rotate(this.#at(index), { isDelivered: false, pick }),
      cancel: () => this.#run(this.#at(index).tokens.rotate('acme', this.#id, { cancel: true })),
      rename: () => this.#patch(this.#at(index), { name: `name ${this.#names++}` }),
      suspend: () => this.#patch(this.#at(index), { suspended: true }),
      resume: () => this.#resume(this.#at(index)),
      wait: () => void this.#clock.advance(0.4),
      waitLong: () => void this.#clock.advance(6),
      crash: () => this.#crash(index),
      go: () => this.#message(pick)?.go(),
      goAll: () => this.#settle(),
      loseRequest: () => this.#message(pick)?.loseRequest(),
      loseAnswer: () => this.#message(pick)?.loseAnswer(),
    }[action]();
    await turn();
    this.#checkBearer();
  }

  /** Delivers all messages. After that, uses must write whatever is still pending. */
  async end(): Promise<void> {
    await this.#drain();
    this.#resume(this.#start(0));
    await this.#settle();
    // Everything cached is too old after this.
    this.#clock.advance(MAX_STALE_MS / 1000);
    // Processes that lost messages go first: a use in another one would do their write for them.
    const writing = [...this.#processes.values()]
      .filter(({ losses }) => losses < LOSSES_BEFORE_PAUSE)
      .sort((one, other) => other.losses - one.losses);
    for (const process of writing) await this.#useAll(process);
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

  /** Delivers messages until none has come for some turns. */
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
    const { watch: _, close: __, ...unwatched } = store;
    const tokens = new TokenService({
      store: unwatched,
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

  /** Queues a call. The schedule decides when it takes effect and when its answer arrives. */
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

  #crash(index: number): void {
    const process = this.#processes.get(index);
    if (process === undefined) return;
    process.isGone = true;
    for (const message of this.#messages.splice(0)) {
      if (message.from === process) message.loseRequest();
      else this.#messages.push(message);
    }
    this.#processes.delete(index);
  }

  /** Delivers all messages. After that, uses must be written unless a message was lost. */
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

  /** Makes a use whose writes are lost. */
  async #useInVain(process: Process, value: string): Promise<void> {
    this.#use(process, value);
    await this.#drain(true);
  }

  /** Introspects a value in a way that counts as a use. */
  #introspect(process: Process, value: string): void {
    const now = this.#now;
    const asked = process.tokens.introspect(value, { countsAsUse: true });
    this.#run(asked.then((token) => token && this.#noteUse(process, value, now)));
  }

  #noteUse(by: Process, value: string, at: number): void {
    const digest = digestOf(value);
    this.#uses.set(digest, [...(this.#uses.get(digest) ?? []), { at, by }]);
  }

  /** Resolves to whether the value was accepted, or to undefined if the call failed. */
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
        // From the cache, only suspended tokens are refused. But a use can also join a running read.
        const isFromMemory = ok || reads > 0 || recent.some((record) => record.suspendedAt);
        const from = isFromMemory ? 0 : latest - first;
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
    // A suspended token is refused on purpose, so look at it as if it were active.
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

/** The rule of acceptance, written independently of the source. */
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
