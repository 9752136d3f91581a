import { TokenError } from '../../errors.ts';
import { idleDelay } from '../../time/timers.ts';
import type { TokenId } from '../../token/record.ts';
import type { PostgresClient, PostgresNotification, Session } from './client.ts';
import { idsIn } from './hints.ts';

const PING_PAUSE_MS = 1000;
const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 1000;

/** Listens for changes on one connection, and takes another one when that is lost. */
export class Listener {
  readonly #session: Session;
  readonly #channel: string;
  readonly #onChange: (ids: readonly TokenId[] | 'all') => void;
  #client: PostgresClient | undefined;
  #isEnded = false;

  /** @throws {TokenError} `invalid_options` for a pool with one connection only */
  constructor(
    session: Session,
    channel: string,
    onChange: (ids: readonly TokenId[] | 'all') => void,
  ) {
    if (session.pool.options.max < 2) {
      throw new TokenError(
        'invalid_options',
        'the pool has one connection only, and watch needs one for itself: its max must be 2 or more',
      );
    }
    this.#session = session;
    this.#channel = channel;
    this.#onChange = onChange;
  }

  async start(): Promise<void> {
    await this.#listen(await this.#session.checkOut());
  }

  end(): void {
    this.#isEnded = true;
    this.#client?.release(true);
    this.#client = undefined;
  }

  async #listen(client: PostgresClient): Promise<void> {
    client.on('error', () => this.#lose(client));
    client.on('end', () => this.#lose(client));
    client.on('notification', (message) => this.#receive(message));
    try {
      await client.query({
        text: `LISTEN "${this.#channel}"`,
        query_timeout: this.#session.deadlineMs,
      });
    } catch (error) {
      client.release(true);
      throw error;
    }
    if (this.#isEnded) return client.release(true);
    this.#client = client;
    this.#keepAlive(client);
  }

  #receive({ channel, payload = '' }: PostgresNotification): void {
    if (channel === this.#channel && !this.#isEnded) this.#onChange(idsIn(payload));
  }

  /** Pings: a server that is gone may never close the connection. */
  async #keepAlive(client: PostgresClient): Promise<void> {
    for (;;) {
      await idleDelay(PING_PAUSE_MS);
      if (client !== this.#client) return;
      // The end of a pool waits for every connection that was checked out.
      if (this.#session.pool.ending) return this.end();
      try {
        await client.query({ text: 'SELECT 1', query_timeout: this.#session.deadlineMs });
      } catch {
        return this.#lose(client);
      }
    }
  }

  #lose(client: PostgresClient): void {
    if (client !== this.#client) return;
    this.#client = undefined;
    client.release(true);
    this.#restore();
    this.#onChange('all');
  }

  /** One attempt after the other: an attempt that hangs takes a connection of the pool. */
  async #restore(): Promise<void> {
    let pauseMs = FIRST_RETRY_MS;
    while (!this.#isEnded && !this.#session.pool.ending) {
      try {
        await this.#listen(await this.#session.pool.connect());
        break;
      } catch {
        await idleDelay(pauseMs);
        pauseMs = Math.min(2 * pauseMs, MAX_RETRY_MS);
      }
    }
    if (this.#client !== undefined) this.#onChange('all');
  }
}
