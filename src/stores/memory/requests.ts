import type {
  RequestBounds,
  RequestKey,
  RequestRecord,
  RequestStore,
} from '../../ports/request-store.ts';
import { type Clock, systemClock, timeOf } from '../../time/clock.ts';
import {
  checkBounds,
  columnOf,
  type RequestRow,
  readRequest,
  requestRow,
} from '../shared/request-rows.ts';

/** Keeps requests for tokens in memory. */
export class MemoryRequests implements RequestStore {
  /** By id. */
  readonly #rows = new Map<string, RequestRow>();
  readonly #ids = new Map<string, string>();
  readonly #clock: Clock;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  async insert(record: RequestRecord, bounds: RequestBounds): Promise<void> {
    const row = requestRow(record);
    const isTaken = this.#rows.has(row.id) || this.#ids.has(row.userCode);
    const liveAt = bounds.liveAt.getTime();
    const live = [...this.#rows.values()].filter(({ expiresAt }) => expiresAt > liveAt);
    const alike = live.filter(({ root }) => root === row.root).length;
    checkBounds({ taken: Number(isTaken), live: live.length, alike }, row, bounds);
    this.#rows.set(row.id, row);
    this.#ids.set(row.userCode, row.id);
  }

  async find(key: RequestKey): Promise<RequestRecord | undefined> {
    const column = columnOf(key);
    if (column === undefined) return undefined;
    const id = column.name === 'id' ? column.value : this.#ids.get(column.value);
    const row = id === undefined ? undefined : this.#rows.get(id);
    return row && readRequest(row);
  }

  async replace(next: RequestRecord): Promise<boolean> {
    const { id, version, expiresAt, body } = requestRow(next);
    const row = this.#rows.get(id);
    if (row?.version !== version - 1) return false;
    this.#rows.set(id, { ...row, version, expiresAt, body });
    return true;
  }

  async purge(before: Date, limit: number): Promise<number> {
    const end = Math.min(before.getTime(), timeOf(this.#clock));
    const ended = [...this.#rows.values()].filter(({ expiresAt }) => expiresAt < end);
    const removed = ended.slice(0, limit);
    for (const { id, userCode } of removed) {
      this.#rows.delete(id);
      this.#ids.delete(userCode);
    }
    return removed.length;
  }
}
