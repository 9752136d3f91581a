import { randomBytes } from 'node:crypto';
import { DEAF_RETRY_MS } from '../../bounds.ts';
import { DeadlineError, storeUnavailable, type TokenError } from '../../errors.ts';
import { notify } from '../../events.ts';
import { withDeadline } from '../../time/deadline.ts';
import { clearInterval, idleDelay, performance, setInterval } from '../../time/timers.ts';
import type { TokenId } from '../../token/record.ts';
import { isDeafness, type Reports } from '../shared/watch.ts';
import { type Driver, ignore } from './driver.ts';

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
 * or its server has been dropped from the cluster. The first one has to come back before a subscription
 * counts: a proxy may accept it and pass nothing on.
 */
export class ChangeListener {
  readonly #driver: Driver;
  readonly #channel: string;
  readonly #echoChannel: string;
  readonly #reports: Reports;
  #subscription: Subscription | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** One that has not heard itself yet. */
  #opening: Subscription | undefined;
  /** Whether messages were found to get lost, and none has come since then. */
  #isDeaf = false;
  #isStopped = false;

  constructor(driver: Driver, channel: string, reports: Reports) {
    this.#driver = driver;
    this.#channel = channel;
    this.#echoChannel = `${channel}:${randomBytes(9).toString('base64url')}`;
    this.#reports = reports;
  }

  /** @throws {TokenError} `store_unavailable`: `pooler` if it does not hear itself */
  async start(): Promise<void> {
    await this.#open((subscription) => this.#hearsEcho(subscription));
    if (this.#isStopped) return;
    this.#timer = setInterval(() => this.#checkEcho(), ECHO_MS);
    this.#timer.unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
    this.#opening?.onEcho();
    this.#drop();
  }

  async #open(hears: (subscription: Subscription) => Promise<boolean>): Promise<void> {
    const subscription: Subscription = {
      heardAt: 0,
      hasEnded: false,
      onEcho: ignore,
      close: ignore,
    };
    this.#opening = subscription;
    const opening = this.#subscribe(subscription);
    try {
      subscription.close = await withDeadline(opening, OPEN_MS);
      const isHeard = await hears(subscription);
      if (subscription.hasEnded) throw storeUnavailable('unreachable');
      if (!isHeard) throw storeUnavailable('pooler');
    } catch (error) {
      opening.then((close) => close(), ignore);
      throw error;
    }
    if (this.#isStopped) return subscription.close();
    subscription.heardAt = performance.now();
    this.#subscription = subscription;
  }

  /** Whether one of some echoes came back, or the wait for it was ended. */
  async #hearsEcho(subscription: Subscription): Promise<boolean> {
    for (let echo = 0; echo < FIRST_ECHOES; echo += 1) {
      const heard = new Promise<void>((resolve) => {
        subscription.onEcho = resolve;
      });
      if (this.#isStopped) return true;
      await withDeadline(this.#sendEcho(), OPEN_MS);
      try {
        await withDeadline(heard, ECHO_MS);
        return true;
      } catch (error) {
        if (!(error instanceof DeadlineError)) throw error;
      }
    }
    return false;
  }

  #sendEcho(): Promise<unknown> {
    return this.#driver.send(['publish', this.#echoChannel, '']);
  }

  /** Any server will do: those of a cluster pass messages on to each other. */
  async #subscribe(subscription: Subscription): Promise<() => void> {
    const primaries = this.#driver.primaries();
    const connection = await primaries[Math.floor(Math.random() * primaries.length)];
    if (connection === undefined) throw storeUnavailable('unreachable');
    return connection.subscribe({
      channels: [this.#channel, this.#echoChannel],
      onMessage: (message, channel) => {
        subscription.heardAt = performance.now();
        if (this.#isDeaf) this.#reportTrouble(undefined);
        if (channel === this.#channel) this.#report(message.split(' ') as TokenId[]);
        else subscription.onEcho();
      },
      onEnd: () => {
        subscription.hasEnded = true;
        if (this.#subscription === subscription) this.#reopen();
        else subscription.onEcho();
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
        // An echo that could not be sent says nothing about the subscription.
        await this.#open((subscription) => this.#hearsEcho(subscription).catch(() => true));
        if (this.#isStopped) return;
        return this.#report('all');
      } catch (error) {
        if (isDeafness(error)) this.#reportTrouble(error);
        pause = isDeafness(error) ? DEAF_RETRY_MS : Math.min(2 * pause, LONGEST_PAUSE_MS);
      }
    }
  }

  #drop(): void {
    const subscription = this.#subscription;
    this.#subscription = undefined;
    subscription?.close();
  }

  #report(ids: readonly TokenId[] | 'all'): void {
    if (!this.#isStopped) notify(this.#reports.onChange, ids);
  }

  #reportTrouble(failure: TokenError | undefined): void {
    this.#isDeaf = failure !== undefined;
    if (!this.#isStopped) notify(this.#reports.onTrouble, failure);
  }
}

interface Subscription {
  heardAt: number;
  hasEnded: boolean;
  /** Called when a message to itself comes back, or can no longer. */
  onEcho: () => void;
  close: () => void;
}
