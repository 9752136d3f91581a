import { nextTurn } from '../../time/deadline.ts';
import type { TokenId } from '../../token/record.ts';
import { type Session, unavailable } from './client.ts';

/** Ids in one notification, whose text is limited to 8000 bytes. */
const MAX_NOTIFIED_IDS = 200;
/** If more changes than this wait to be sent, a notification says "all" instead. */
const MAX_WAITING_IDS = 2000;
const ALL = '*';

export function idsIn(payload: string): readonly TokenId[] | 'all' {
  return payload === ALL ? 'all' : (payload.split(',') as TokenId[]);
}

/**
 * Notifies listeners of changes, after the commits and apart from them.
 *
 * PostgreSQL lets one transaction with a notification commit at a time, and the next one waits until
 * the disk has the first. So a notification is a statement of its own that does not wait for the disk.
 * It covers all changes since the previous one, and one is under way at a time. No write waits for it
 * or fails with it: a hint that is lost leaves the cached record to its bound.
 */
export class Hints {
  readonly #session: Session;
  readonly #channel: string;
  #waiting = new Set<string>();
  #sending: Promise<void> | undefined;
  /** Whether the server knows no notifications. */
  #isRefused = false;

  constructor(session: Session, channel: string) {
    this.#session = session;
    this.#channel = channel;
  }

  add(ids: readonly string[]): void {
    if (this.#isRefused) return;
    for (const id of ids) this.#waiting.add(id);
    if (this.#waiting.size > 0) this.#sending ??= this.#send();
  }

  /** Resolves when nothing waits to be sent. Never rejects. */
  async flush(): Promise<void> {
    await this.#sending;
  }

  async #send(): Promise<void> {
    while (this.#waiting.size > 0) {
      // Writes that end in the same turn of the event loop share a notification.
      await nextTurn();
      const payloads = this.#take();
      await notify(this.#session, this.#channel, payloads).catch((error) => {
        this.#isRefused = unavailable(error).details?.reason === 'unsupported';
      });
    }
    this.#sending = undefined;
  }

  #take(): string[] {
    const ids = [...this.#waiting];
    this.#waiting.clear();
    return payloadsOf(ids);
  }
}

/** The texts of the notifications for changed tokens. */
export function payloadsOf(ids: readonly string[]): string[] {
  if (ids.length > MAX_WAITING_IDS) return [ALL];
  const payloads: string[] = [];
  for (let start = 0; start < ids.length; start += MAX_NOTIFIED_IDS) {
    payloads.push(ids.slice(start, start + MAX_NOTIFIED_IDS).join(','));
  }
  return payloads;
}

/** Sends notifications over a connection of the pool. Rejects with the error of the driver. */
export async function notify(
  { pool, deadlineMs }: Session,
  channel: string,
  payloads: readonly string[],
): Promise<void> {
  await pool.query({ ...SEND, values: [channel, payloads], query_timeout: deadlineMs });
}

/** Without a name: a pooler that does not know prepared statements takes it too. */
const SEND = {
  text: `SELECT CASE WHEN current_setting('synchronous_commit', true) IS NOT NULL
      THEN set_config('synchronous_commit', 'off', true) END, pg_notify($1, payload)
    FROM unnest($2::text[]) AS payload`,
};
