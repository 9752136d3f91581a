import { withDeadline } from '../../time/deadline.ts';
import { clearTimeout, delay, performance, setTimeout } from '../../time/timers.ts';
import { settingIn } from './doctor.ts';
import { type Connection, type Driver, ignore } from './driver.ts';

/** Assumed if a server does not let this user read its `cluster-node-timeout`. */
const ASSUMED_TIMEOUT_MS = 2000;
/** How often each primary is asked within one timeout of the cluster. */
const ASKS_PER_TIMEOUT = 4;
/** A primary that wakes learns within milliseconds that it was replaced. This leaves it more. */
const SETTLE_MS = 500;
/** How long a read waits for a server that it can trust. */
const WAIT_MS = 1000;
/** The pause before it reads again. */
const POLL_MS = 50;

/** How long a primary has been awake without a pause in which it could have been replaced. */
interface Awake {
  /** Undefined while no pause is known. */
  readonly since: number | undefined;
  /** When the last question that it answered was sent. */
  readonly until: number;
}

/**
 * Distrusts a primary of a cluster that was paused for so long that it may have been replaced.
 *
 * A paused process, or the machine below it, cannot know that a replica took over. When it wakes, it
 * answers as before until the others tell it, and does not know of revocations made meanwhile. But it
 * answered nothing while it was paused, and a cluster replaces no primary that was silent for less
 * than its `cluster-node-timeout`. So each primary is asked regularly. If an answer was missing for that
 * long, nothing that this primary answers counts until it has been awake for half a second.
 *
 * Not noticed: a primary that was paused before this process knew it, and one that an operator
 * replaced by `CLUSTER FAILOVER TAKEOVER` or `FORCE` before the timeout.
 */
export class FailoverGuard {
  readonly #driver: Driver;
  readonly #awake = new Map<string, Awake>();
  readonly #asked = new Set<string>();
  /** A read is refused if its server has been silent for longer. */
  #gapMs = ASSUMED_TIMEOUT_MS;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  /** Reads from a slot. Reads again if the server that answered may have been replaced. */
  async read<Answer>(slot: number, read: () => Promise<Answer>): Promise<Answer> {
    if (this.#timer === undefined) this.#askAll();
    const deadline = performance.now() + WAIT_MS;
    for (;;) {
      const asked = this.#driver.ownerAddress(slot);
      const answer = await read();
      // A redirection may have led to another server, which the client then knows as the owner.
      const answering = this.#driver.ownerAddress(slot);
      if (this.#isTrusted(asked) && this.#isTrusted(answering)) return answer;
      if (performance.now() > deadline) throw new Error('the server may have been replaced');
      await delay(POLL_MS);
    }
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #isTrusted(address = ''): boolean {
    const now = performance.now();
    const { since, until } = this.#awake.get(address) ?? { since: undefined, until: now };
    if (now - until > this.#gapMs) return false;
    return since === undefined || now - since >= SETTLE_MS;
  }

  #askAll(): void {
    if (this.#isClosed) return;
    for (const connecting of this.#driver.primaries()) {
      this.#ask(connecting).catch(ignore);
    }
    this.#timer = setTimeout(() => this.#askAll(), this.#gapMs / ASKS_PER_TIMEOUT);
    this.#timer.unref();
  }

  async #ask(connecting: Promise<Connection>): Promise<void> {
    const connection = await connecting;
    const { address } = connection;
    // A question that is not answered yet is enough: others would only queue up behind it.
    if (this.#asked.has(address)) return;
    this.#asked.add(address);
    const sentAt = performance.now();
    if (!this.#awake.has(address)) this.#awake.set(address, { since: undefined, until: sentAt });
    try {
      this.#gapMs = await withDeadline(timeoutOf(connection), this.#gapMs);
      this.#noteAnswer(address, sentAt);
    } finally {
      this.#asked.delete(address);
    }
  }

  #noteAnswer(address: string, sentAt: number): void {
    const now = performance.now();
    const { since, until } = this.#awake.get(address) ?? { since: undefined, until: sentAt };
    const wasPaused = now - until > this.#gapMs;
    this.#awake.set(address, { since: wasPaused ? now : since, until: sentAt });
  }
}

const NODE_TIMEOUT = 'cluster-node-timeout';

/** Any answer shows that the server is awake, also a refusal. */
async function timeoutOf(connection: Connection): Promise<number> {
  try {
    const answer = await connection.send(['config', 'get', NODE_TIMEOUT]);
    return Number(settingIn(answer, NODE_TIMEOUT)) || ASSUMED_TIMEOUT_MS;
  } catch (error) {
    if (error instanceof Error && REFUSAL.test(error.message)) return ASSUMED_TIMEOUT_MS;
    throw error;
  }
}

/** Errors of a server begin with a code, those of drivers do not. */
const REFUSAL = /^[A-Z]+ /;
