import { randomUUID } from 'node:crypto';
import { DEAF_RETRY_MS } from '../../bounds.ts';
import { storeUnavailable, TokenError } from '../../errors.ts';
import { nextTurn, withDeadline } from '../../time/deadline.ts';
import { idleDelay, performance } from '../../time/timers.ts';
import { isDeafness, type Reports } from '../shared/watch.ts';
import type { PostgresClient, PostgresNotification, Session } from './client.ts';
import { idsIn, notify } from './hints.ts';

/** Begins a notification by which a listener finds out whether it hears. No id begins like this. */
const NOTE = '?';
const FIRST_NOTES = 3;
const NOTE_PAUSE_MS = 30_000;
/** How long a notification may be under way after its commit. */
const HEARING_MS = 1000;
const PING_PAUSE_MS = 1000;
const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 1000;

/**
 * Listens for changes on one connection, and takes another one when that is lost. A pooler in transaction mode
 * accepts LISTEN and loses the notifications, so the listener also sends some to itself.
 */
export class Listener {
  readonly #session: Session;
  readonly #channel: string;
  readonly #reports: Reports;
  #client: PostgresClient | undefined;
  /** The notification that it waits for. */
  #note: { readonly text: string; readonly onHeard: () => void } | undefined;
  /** Whether notifications were found to get lost, and none has come since then. */
  #isDeaf = false;
  #isEnded = false;

  /** @throws {TokenError} `invalid_options` for a pool with one connection only */
  constructor(session: Session, channel: string, reports: Reports) {
    if (session.pool.options.max < 2) {
      throw new TokenError(
        'invalid_options',
        'the pool has one connection only, and watch needs one for itself: its max must be 2 or more',
      );
    }
    this.#session = session;
    this.#channel = channel;
    this.#reports = reports;
  }

  /** Resolves once it has heard itself. */
  async start(): Promise<void> {
    await this.#listen(await this.#session.checkOut());
  }

  end(): void {
    this.#isEnded = true;
    this.#note?.onHeard();
    this.#client?.release(true);
    this.#client = undefined;
  }

  async #listen(client: PostgresClient): Promise<void> {
    let isLost = false;
    const lose = (): void => {
      isLost = true;
      this.#lose(client);
    };
    client.on('error', lose);
    client.on('end', lose);
    client.on('notification', (message) => this.#receive(message));
    try {
      await client.query({
        text: `LISTEN "${this.#channel}"`,
        query_timeout: this.#session.deadlineMs,
      });
      for (let note = 0; note < FIRST_NOTES && !this.#isEnded; note += 1) {
        if (!(await this.#hears())) throw storeUnavailable(isLost ? 'unreachable' : 'pooler');
      }
    } catch (error) {
      client.release(true);
      throw error;
    }
    if (this.#isEnded) return client.release(true);
    this.#client = client;
    this.#keepAlive(client);
  }

  /**
   * Sends a notification over another connection while its own is idle: through a pooler, one that is sent
   * over the same connection often arrives.
   */
  async #hears(): Promise<boolean> {
    const text = `${NOTE}${randomUUID()}`;
    const heard = new Promise<true>((resolve) => {
      this.#note = { text, onHeard: () => resolve(true) };
    });
    const { deadlineMs } = this.#session;
    await withDeadline(notify(this.#session, this.#channel, [text]), deadlineMs);
    // It may have arrived while the event loop was busy.
    const late = idleDelay(HEARING_MS).then(nextTurn);
    return Promise.race([heard, late.then(() => false)]);
  }

  #receive({ channel, payload = '' }: PostgresNotification): void {
    if (channel !== this.#channel || this.#isEnded) return;
    if (!payload.startsWith(NOTE)) this.#reports.onChange(idsIn(payload));
    else if (payload === this.#note?.text) this.#note.onHeard();
  }

  /** Pings: a server that is gone may never close the connection. */
  async #keepAlive(client: PostgresClient): Promise<void> {
    let notedAt = performance.now();
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
      if (performance.now() - notedAt < NOTE_PAUSE_MS) continue;
      notedAt = performance.now();
      // One that could not be sent says nothing about this connection.
      if (await this.#hears().catch(() => true)) continue;
      if (client === this.#client) this.#reportTrouble(storeUnavailable('pooler'));
      return this.#lose(client);
    }
  }

  #lose(client: PostgresClient): void {
    if (client !== this.#client) return;
    this.#client = undefined;
    client.release(true);
    this.#restore();
    this.#reports.onChange('all');
  }

  /** One attempt after the other: an attempt that hangs takes a connection of the pool. */
  async #restore(): Promise<void> {
    let pauseMs = FIRST_RETRY_MS;
    while (!this.#isEnded && !this.#session.pool.ending) {
      try {
        await this.#listen(await this.#session.pool.connect());
        break;
      } catch (error) {
        if (isDeafness(error)) this.#reportTrouble(error);
        await idleDelay(isDeafness(error) ? DEAF_RETRY_MS : pauseMs);
        pauseMs = Math.min(2 * pauseMs, MAX_RETRY_MS);
      }
    }
    if (this.#client === undefined) return;
    if (this.#isDeaf) this.#reportTrouble(undefined);
    this.#reports.onChange('all');
  }

  #reportTrouble(failure: TokenError | undefined): void {
    this.#isDeaf = failure !== undefined;
    if (!this.#isEnded) this.#reports.onTrouble(failure);
  }
}

/** Whether notifications get lost. Resolves to false where nobody can listen. */
export async function isDeaf(session: Session, channel: string): Promise<boolean> {
  const listener = new Listener(session, channel, { onChange: () => {}, onTrouble: () => {} });
  try {
    await listener.start();
    return false;
  } catch (error) {
    if (isDeafness(error)) return true;
    const failure = session.toTokenError(error);
    if (failure.details?.['reason'] === 'unsupported') return false;
    throw failure;
  } finally {
    listener.end();
  }
}
