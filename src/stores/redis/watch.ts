import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { withDeadline } from '../../clock.ts';
import type { TokenId } from '../../token.ts';
import type { Driver } from './clients.ts';

type OnChange = (ids: readonly TokenId[] | 'all') => void;

const BEAT_MS = 1000;
const SILENCE_MS = 2500;
const OPEN_MS = 2000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;

/**
 * Listens on a connection of its own, and replaces that one when it is lost.
 *
 * Every second a message to itself goes the way of all hints: published through the client of the
 * host, it has to come back on the subscription. So a connection that is open only on this side is
 * noticed, and a server that its cluster has left behind.
 */
export class Watch {
  readonly #driver: Driver;
  readonly #channel: string;
  readonly #echo: string;
  readonly #onChange: OnChange;
  #subscription: Subscription | undefined;
  #beats: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(driver: Driver, channel: string, onChange: OnChange) {
    this.#driver = driver;
    this.#channel = channel;
    this.#echo = `${channel}:${randomBytes(9).toString('base64url')}`;
    this.#onChange = onChange;
  }

  async start(): Promise<void> {
    await this.#open();
    this.#beats = setInterval(() => this.#beat(), BEAT_MS);
    this.#beats.unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#beats);
    this.#drop();
  }

  async #open(): Promise<void> {
    const subscription: Subscription = { heardAt: 0, isOver: false, close: () => {} };
    const opening = this.#subscribe(subscription);
    try {
      subscription.close = await withDeadline(opening, OPEN_MS);
    } catch (error) {
      opening.then(
        (close) => close(),
        () => {},
      );
      throw error;
    }
    subscription.heardAt = performance.now();
    this.#subscription = subscription;
    if (this.#isStopped) return this.#drop();
    if (subscription.isOver) throw new Error('the subscription has ended');
  }

  /** On any of the servers: in a cluster each of them hears what is published on another. */
  async #subscribe(subscription: Subscription): Promise<() => void> {
    const masters = this.#driver.masters();
    const link = await masters[Math.floor(Math.random() * masters.length)];
    if (link === undefined) throw new Error('no server is known');
    return link.subscribe({
      names: [this.#channel, this.#echo],
      onMessage: (message, name) => {
        subscription.heardAt = performance.now();
        if (name === this.#channel) this.#tell(message.split(' ') as TokenId[]);
      },
      onEnd: () => {
        subscription.isOver = true;
        if (this.#subscription === subscription) this.#lose();
      },
    });
  }

  #beat(): void {
    if (this.#subscription === undefined) return;
    if (performance.now() - this.#subscription.heardAt > SILENCE_MS) this.#lose();
    else if (this.#driver.state === 'ready') {
      this.#driver.send(['publish', this.#echo, '']).catch(() => {});
    }
  }

  #lose(): void {
    this.#drop();
    if (this.#isStopped) return;
    this.#tell('all');
    void this.#restore();
  }

  async #restore(): Promise<void> {
    for (
      let pause = FIRST_PAUSE_MS;
      !this.#isStopped;
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS)
    ) {
      await delay(pause, undefined, { ref: false });
      try {
        await this.#open();
        return this.#tell('all');
      } catch {
        // Away still.
      }
    }
  }

  #drop(): void {
    const subscription = this.#subscription;
    this.#subscription = undefined;
    subscription?.close();
  }

  #tell(ids: readonly TokenId[] | 'all'): void {
    if (this.#isStopped) return;
    try {
      this.#onChange(ids);
    } catch {
      // The listener's own trouble must not end the listening.
    }
  }
}

interface Subscription {
  heardAt: number;
  isOver: boolean;
  close: () => void;
}
