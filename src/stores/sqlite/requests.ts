import type { TokenError } from '../../errors.ts';
import type {
  RequestBounds,
  RequestKey,
  RequestRecord,
  RequestStore,
} from '../../ports/request-store.ts';
import type { StoreFinding } from '../../ports/token-store.ts';
import { systemClock } from '../../time/clock.ts';
import {
  columnOf,
  type RequestRow,
  readRequest,
  refusalOf,
  requestRow,
} from '../shared/request-rows.ts';
import { cellsOf, changesIn, type SqliteHandle } from './client.ts';
import { examineRows } from './doctor.ts';
import { type Schema, sideNames } from './schema.ts';
import { SideDatabase } from './side-database.ts';

type Statements = ReturnType<typeof prepare>;

/**
 * Keeps requests for tokens, in a database of its own. Each change is on disk before its promise resolves
 * (`synchronous=FULL`). Nothing but `insert` makes the file.
 */
export class SqliteRequests implements RequestStore {
  readonly #database: SideDatabase<Statements>;

  /** @throws {TokenError} `invalid_options` if a handle is one of a database that holds something else */
  constructor(place: string | SqliteHandle) {
    this.#database = new SideDatabase(place, REQUESTS, prepare);
  }

  async insert(record: RequestRecord, bounds: RequestBounds): Promise<void> {
    const row = requestRow(record);
    // A refusal is an answer: an error would undo what others write in this turn, for another attempt.
    const refusal = await this.#database.write((statements) => insertOne(statements, row, bounds));
    if (refusal !== undefined) throw refusal;
  }

  async find(key: RequestKey): Promise<RequestRecord | undefined> {
    const column = columnOf(key);
    if (column === undefined || !this.#database.exists) return undefined;
    const row = await this.#database.read(({ find }) => find[column.name].get(column.value));
    if (row === undefined) return undefined;
    const [id, userCode, version, expiresAt, body] = cellsOf(row);
    return readRequest({ id, userCode, version, expiresAt, body });
  }

  async replace(next: RequestRecord): Promise<boolean> {
    const { id, version, expiresAt, body } = requestRow(next);
    if (!this.#database.exists) return false;
    const values = [version, expiresAt, body, id, version - 1];
    return this.#database.write(({ replace }) => changesIn(replace.run(...values)) > 0);
  }

  async purge(before: Date, limit: number): Promise<number> {
    if (!this.#database.exists) return 0;
    return this.#database.write(({ purge }) => {
      const ended = Math.min(before.getTime(), systemClock.now().getTime());
      return changesIn(purge.run(ended, limit));
    });
  }

  /** Looks for what slows the file down, and rejects if it cannot be read. Makes none. */
  async doctor(): Promise<StoreFinding[]> {
    if (!this.#database.exists) return [];
    return this.#database.read((_, handle) => examineRows(handle, PLACE));
  }

  async close(): Promise<void> {
    await this.#database.close();
  }
}

const BY_END = 'requests_by_end';
const BY_ROOT = 'requests_by_root';

const PLACE = {
  part: 'requests',
  table: 'requests',
  end: 'expires_at',
  indexes: [BY_END, BY_ROOT],
} as const;

const REQUESTS: Schema = {
  ...sideNames('requests'),
  // `TWRQ`
  applicationId: 0x54575251,
  table: 'requests',
  columns: ['id', 'user_code', 'root', 'version', 'expires_at', 'body'],
  create: (handle) =>
    handle.exec(`
      CREATE TABLE requests (
        id TEXT NOT NULL PRIMARY KEY,
        user_code TEXT NOT NULL UNIQUE,
        root TEXT NOT NULL,
        version INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        body TEXT NOT NULL
      ) STRICT;
      CREATE INDEX ${BY_END} ON requests (expires_at);
      CREATE INDEX ${BY_ROOT} ON requests (root, expires_at);
    `),
  steps: [],
  pragmas: ['synchronous = FULL'],
};

/** The transaction reads and writes: if another process writes in between, SQLite refuses to go on. */
function insertOne(
  { count, insert }: Statements,
  row: RequestRow,
  bounds: RequestBounds,
): TokenError | undefined {
  const { id, userCode, root, version, expiresAt, body } = row;
  const liveAt = bounds.liveAt.getTime();
  const cells = cellsOf(count.get(id, userCode, liveAt, root, liveAt)).map(Number);
  const [taken, live, alike] = cells as [number, number, number];
  const refusal = refusalOf({ taken, live, alike }, row, bounds);
  if (refusal === undefined) insert.run(id, userCode, root, version, expiresAt, body);
  return refusal;
}

function prepare(handle: SqliteHandle) {
  const findBy = (column: string) =>
    handle.prepare(
      `SELECT id, user_code, version, expires_at, body FROM requests WHERE ${column} = ?`,
    );
  return {
    count: handle.prepare(
      `SELECT (SELECT count(*) FROM requests WHERE id = ? OR user_code = ?) AS taken,
         (SELECT count(*) FROM requests WHERE expires_at > ?) AS live,
         (SELECT count(*) FROM requests WHERE root = ? AND expires_at > ?) AS alike`,
    ),
    insert: handle.prepare(
      `INSERT INTO requests (id, user_code, root, version, expires_at, body)
       VALUES (?, ?, ?, ?, ?, ?)`,
    ),
    find: { id: findBy('id'), user_code: findBy('user_code') },
    replace: handle.prepare(
      'UPDATE requests SET version = ?, expires_at = ?, body = ? WHERE id = ? AND version = ?',
    ),
    purge: handle.prepare(
      `DELETE FROM requests WHERE id IN (
         SELECT id FROM requests WHERE expires_at < ? ORDER BY expires_at LIMIT ? + 0)`,
    ),
  };
}
