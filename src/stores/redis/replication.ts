import { withDeadline } from '../../clock.ts';
import { type Command, type Driver, type Link, whenReady } from './clients.ts';
import { isReply, runScript, type ScriptCall } from './scripts.ts';

/** What a script answered, and how many replicas have what it wrote. */
export interface WriteAnswer {
  readonly answer: unknown;
  readonly confirmations: number;
}

/** The way of writes to the servers. */
export interface Writes {
  run(call: ScriptCall): Promise<WriteAnswer>;
  close(): void;
}

/** Writes that wait for no replica, through the client of the host; reads as well. */
export class DirectWrites implements Writes {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  async run(call: ScriptCall): Promise<WriteAnswer> {
    if (this.#driver.state !== 'ready') await whenReady(this.#driver);
    const answer = await runScript((command) => this.#driver.send(command, call.keys[0]), call);
    return { answer, confirmations: 0 };
  }

  close(): void {}
}

/** A write of this age has been given up by whoever made it: better not made than made late. */
const GIVEN_UP_MS = 2000;
const ANSWER_MS = 2000;
/** The first write opens the connections. */
const OPEN_MS = 1500;
const MAX_ATTEMPTS = 3;

/**
 * Writes that wait for replicas, on connections of their own: `WAIT` holds up all that follows on
 * its connection, and reads must not stand behind it.
 *
 * What comes while a server is being waited for goes together in the next round trip, so that a
 * replica that does not answer delays a write twice at most, whatever the load.
 */
export class ReplicatedWrites implements Writes {
  readonly #source: Driver;
  readonly #wait: Command;
  readonly #waitMs: number;
  #current: Connection | undefined;
  #isClosed = false;

  constructor(source: Driver, replicas: number, waitMs: number) {
    this.#source = source;
    this.#waitMs = waitMs;
    this.#wait = ['wait', String(replicas), String(waitMs)];
  }

  async run(call: ScriptCall): Promise<WriteAnswer> {
    let confirmations = 0;
    const answer = await runScript(async (command) => {
      const replicated = await this.#send(command, call);
      confirmations = replicated.confirmations;
      return replicated.answer;
    }, call);
    return { answer, confirmations };
  }

  close(): void {
    this.#isClosed = true;
    if (this.#current !== undefined) this.#end(this.#current);
  }

  async #send(command: Command, { slot, keys: [key = ''] }: ScriptCall): Promise<WriteAnswer> {
    const connection = this.#open();
    const { driver } = connection;
    await whenReady(driver, OPEN_MS);
    for (let attempt = 1; ; attempt += 1) {
      const link = await withDeadline(driver.owner(slot), ANSWER_MS);
      const sent = link && (await this.#laneOf(link, connection).send(command));
      if (sent !== undefined && !isReply(sent.answer, 'MOVED')) {
        if (sent.answer instanceof Error) throw sent.answer;
        return sent;
      }
      if (attempt === MAX_ATTEMPTS) throw new Error('no server has the slot');
      // Following a command of its own, the driver finds the server.
      await withDeadline(driver.send(['exists', key], key), ANSWER_MS);
    }
  }

  #open(): Connection {
    if (this.#isClosed) throw new Error('closed');
    if (this.#current?.driver.state === 'closed') this.#current = undefined;
    this.#current ??= { driver: this.#source.duplicate(), lanes: new WeakMap() };
    return this.#current;
  }

  #end(connection: Connection): void {
    connection.driver.close();
    if (this.#current === connection) this.#current = undefined;
  }

  #laneOf(link: Link, connection: Connection): Lane {
    const lane =
      connection.lanes.get(link) ??
      new Lane((commands) => this.#carryOut(commands, link, connection));
    connection.lanes.set(link, lane);
    return lane;
  }

  async #carryOut(
    commands: readonly Command[],
    link: Link,
    connection: Connection,
  ): Promise<WriteAnswer[]> {
    try {
      const sending = link.sendAll([...commands, this.#wait]);
      const answers = await withDeadline(sending, this.#waitMs + ANSWER_MS);
      const last = answers.pop();
      // Where it is not known who has it, nobody has.
      const confirmations = last instanceof Error ? 0 : Number(last);
      return answers.map((answer) => ({ answer, confirmations }));
    } catch (error) {
      // It hangs: what was sent on it must not be waited for.
      this.#end(connection);
      throw error;
    }
  }
}

interface Connection {
  readonly driver: Driver;
  readonly lanes: WeakMap<Link, Lane>;
}

interface PendingWrite {
  readonly command: Command;
  readonly since: number;
  readonly resolve: (answer: WriteAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/** The writes to one server: one batch on its way, the next one gathering. */
class Lane {
  readonly #carryOut: (commands: readonly Command[]) => Promise<WriteAnswer[]>;
  #gathering: PendingWrite[] = [];
  #isBusy = false;

  constructor(carryOut: (commands: readonly Command[]) => Promise<WriteAnswer[]>) {
    this.#carryOut = carryOut;
  }

  send(command: Command): Promise<WriteAnswer> {
    return new Promise((resolve, reject) => {
      this.#gathering.push({ command, since: performance.now(), resolve, reject });
      if (!this.#isBusy) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#isBusy = true;
    // What comes in the same turn goes together.
    await Promise.resolve();
    while (this.#gathering.length > 0) await this.#settle(this.#gathering.splice(0));
    this.#isBusy = false;
  }

  async #settle(gathered: readonly PendingWrite[]): Promise<void> {
    const oldest = performance.now() - GIVEN_UP_MS;
    const batch = gathered.filter(({ since }) => since >= oldest);
    for (const { since, reject } of gathered) if (since < oldest) reject(new Error('too late'));
    if (batch.length === 0) return;
    try {
      const answers = await this.#carryOut(batch.map(({ command }) => command));
      for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as WriteAnswer);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}

const RECENT_MS = 60_000;
const MAX_RECENT = 10_000;
const MAX_RECENT_CHARACTERS = 16_000_000;
const CHECK_MS = 1000;

/** What a repeated write came to. */
export interface Repetition {
  /** How many tokens had to be changed again. */
  readonly changed: number;
  /** Whether all was as this write had left it. */
  readonly isIntact: boolean;
}

/**
 * The last changes of this process, made again when a server turns out to have lost them: with
 * asynchronous replication a failover can undo what was acknowledged, as can the restart of a
 * server that does not sync each write.
 *
 * A server loses the end of its history and never a part within, so that it is enough to look at
 * the newest change on each: while that one is there, all before it are. Each look repeats a script,
 * which changes nothing where it has already done its work.
 */
export class RecentWrites {
  readonly #repeat: (call: ScriptCall) => Promise<Repetition>;
  readonly #onLoss: (count: number) => void;
  readonly #histories = new Map<number, RecentWrite[]>();
  /** Those whose restoration has begun and not come to its end. */
  readonly #interrupted = new WeakSet<readonly RecentWrite[]>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #count = 0;
  #characters = 0;

  /** `onLoss` is told how many tokens had to be changed again. */
  constructor(repeat: (call: ScriptCall) => Promise<Repetition>, onLoss: (count: number) => void) {
    this.#repeat = repeat;
    this.#onLoss = onLoss;
  }

  add(call: ScriptCall): void {
    if (this.#isClosed) return;
    const characters = charactersOf(call);
    const write = { call, since: performance.now(), characters, isSuperseded: false };
    const history = this.#histories.get(call.slot) ?? [];
    history.push(write);
    this.#histories.set(call.slot, history);
    this.#count += 1;
    this.#characters += write.characters;
    while (this.#count > MAX_RECENT || this.#characters > MAX_RECENT_CHARACTERS) this.#dropOne();
    this.#schedule();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#histories.clear();
  }

  #schedule(): void {
    if (this.#isClosed || this.#timer !== undefined || this.#count === 0) return;
    this.#timer = setTimeout(async () => {
      await Promise.all(Array.from(this.#histories.values(), (history) => this.#check(history)));
      this.#timer = undefined;
      this.#schedule();
    }, CHECK_MS);
    this.#timer.unref();
  }

  async #check(history: RecentWrite[]): Promise<void> {
    const startedAt = performance.now();
    const losses = { count: 0 };
    try {
      await this.#restore(history.slice(), this.#interrupted.has(history), losses);
      this.#interrupted.delete(history);
    } catch {
      // It is away, perhaps for a failover: nothing is dropped, and it is asked again.
      this.#interrupted.add(history);
      return;
    } finally {
      if (losses.count > 0) this.#onLoss(losses.count);
    }
    while ((history[0]?.since ?? startedAt) < startedAt - RECENT_MS) this.#forget(history);
  }

  /** After one that was interrupted, what is intact may be our own work and says nothing of the rest. */
  async #restore(
    history: readonly RecentWrite[],
    isInterrupted: boolean,
    losses: { count: number },
  ): Promise<void> {
    const newest = history.at(-1);
    for (const write of isInterrupted ? [] : history.toReversed()) {
      if (write.isSuperseded && write !== newest) continue;
      const { changed, isIntact } = await this.#repeatInTime(write);
      losses.count += changed;
      if (isIntact) break;
      write.isSuperseded = changed === 0;
    }
    if (losses.count === 0 && !isInterrupted) return;
    // All of them in their order: a later one may build on one before it.
    for (const write of history) losses.count += (await this.#repeatInTime(write)).changed;
  }

  #repeatInTime({ call }: RecentWrite): Promise<Repetition> {
    return withDeadline(this.#repeat(call), ANSWER_MS);
  }

  /** Of the server with most to remember, the oldest. */
  #dropOne(): void {
    let longest: RecentWrite[] = [];
    for (const history of this.#histories.values()) {
      if (history.length > longest.length) longest = history;
    }
    this.#forget(longest);
  }

  #forget(history: RecentWrite[]): void {
    const write = history.shift();
    this.#count -= 1;
    this.#characters -= write?.characters ?? 0;
  }
}

interface RecentWrite {
  readonly call: ScriptCall;
  readonly since: number;
  readonly characters: number;
  /** Something else has been done to its tokens since: it says nothing of what a server has lost. */
  isSuperseded: boolean;
}

function charactersOf({ keys, values }: ScriptCall): number {
  return [...keys, ...values].reduce((sum, text) => sum + text.length, 0);
}
