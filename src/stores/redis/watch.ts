import { randomBytes } from 'node:crypto';
import { DeadlineError, storeUnavailable } from '../../errors.ts';
import { notify } from '../../events.ts';
import { withDeadline } from '../../time/deadline.ts';
import { clearInterval, idleDelay, performance, setInterval } from '../../time/timers.ts';
import type { TokenId } from '../../token/record.ts';
import { type Driver, ignore } from './driver.ts';

type OnChange = (ids: readonly TokenId[] | 'all') => void;

const ECHO_MS = 1000;
/** How many echoes may be missing before a new subscription counts as deaf. */
const FIRST_ECHOES = 3;
const SILENCE_MS = 2500;
const OPEN_MS = 2000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;

/**
 * Listens for changes on a connection of its own, and opens another when that is lost.
 *
 * Every second it publishes a message to itself through the client of the host. That message has to
 * come back on the subscription. If it does not, the connection is dead without having been closed,
 * or its server has been dropped from the cluster. The first one has to come back before it starts: a
 * proxy may accept a subscription and pass nothing on.
 */
export class ChangeListener {
  readonly #driver: Driver;
  readonly #channel: string;
  readonly #echoChannel: string;
  readonly #onChange: OnChange;
  #subscription: Subscription | undefined;
  #timer: NodeJS.Timeout | undefined;
  #onEcho: () => void = ignore;
  #isStopped = false;

  constructor(driver: Driver, channel: string, onChange: OnChange) {
    this.#driver = driver;
    this.#channel = channel;
    this.#echoChannel = `${channel}:${randomBytes(9).toString('base64url')}`;
    this.#onChange = onChange;
  }

  /** @throws {TokenError} `store_unavailable`: `pooler` if it does not hear itself */
  async start(): Promise<void> {
    await this.#open();
    await this.#hearEcho();
    this.#timer = setInterval(() => this.#checkEcho(), ECHO_MS);
    this.#timer.unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
    this.#drop();
  }

  async #open(): Promise<void> {
    const subscription: Subscription = { heardAt: 0, hasEnded: false, close: ignore };
    const opening = this.#subscribe(subscription);
    try {
      subscription.close = await withDeadline(opening, OPEN_MS);
    } catch (error) {
      opening.then((close) => close(), ignore);
      throw error;
    }
    subscription.heardAt = performance.now();
    this.#subscription = subscription;
    if (this.#isStopped) return this.#drop();
    if (subscription.hasEnded) throw new Error('the subscription has ended');
  }

  async #hearEcho(): Promise<void> {
    for (let echo = 0; echo < FIRST_ECHOES; echo += 1) {
      const heard = new Promise<void>((resolve) => {
        this.#onEcho = resolve;
      });
      await this.#sendEcho();
      try {
        return await withDeadline(heard, ECHO_MS);
      } catch (error) {
        if (!(error instanceof DeadlineError)) throw error;
      }
    }
    throw storeUnavailable('pooler');
  }

  #sendEcho(): Promise<unknown> {
    return this.#driver.send(['publish', this.#echoChannel, '']);
  }

  /** Any server will do: those of a cluster pass messages on to each other. */
  async #subscribe(subscription: Subscription): Promise<() => void> {
    const primaries = this.#driver.primaries();
    const connection = await primaries[Math.floor(Math.random() * primaries.length)];
    if (connection === undefined) throw new Error('no server is known');
    return connection.subscribe({
      channels: [this.#channel, this.#echoChannel],
      onMessage: (message, channel) => {
        subscription.heardAt = performance.now();
        if (channel === this.#channel) this.#report(message.split(' ') as TokenId[]);
        else this.#onEcho();
      },
      onEnd: () => {
        subscription.hasEnded = true;
        if (this.#subscription === subscription) this.#reopen();
      },
    });
  }

  #checkEcho(): void {
    if (this.#subscription === undefined) return;
    if (performance.now() - this.#subscription.heardAt > SILENCE_MS) this.#reopen();
    else if (this.#driver.state === 'ready') this.#sendEcho().catch(ignore);
  }

  #reopen(): void {
    this.#drop();
    if (this.#isStopped) return;
    this.#report('all');
    void this.#retryOpen();
  }

  async #retryOpen(): Promise<void> {
    let pause = FIRST_PAUSE_MS;
    while (!this.#isStopped) {
      await idleDelay(pause);
      try {
        await this.#open();
        return this.#report('all');
      } catch {
        pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
      }
    }
  }

  #drop(): void {
    const subscription = this.#subscription;
    this.#subscription = undefined;
    subscription?.close();
  }

  #report(ids: readonly TokenId[] | 'all'): void {
    if (!this.#isStopped) notify(this.#onChange, ids);
  }
}

interface Subscription {
  heardAt: number;
  hasEnded: boolean;
  close: () => void;
}
