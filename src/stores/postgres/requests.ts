import type {
  RequestBounds,
  RequestKey,
  RequestRecord,
  RequestStore,
} from '../../ports/request-store.ts';
import {
  checkBounds,
  columnOf,
  type HeldRequests,
  readRequest,
  requestRow,
} from '../shared/request-rows.ts';
import { REQUESTS } from '../shared/schema-mark.ts';
import type { PostgresQuery, Session } from './client.ts';
import { guardOf, NOW, type StatementForm, SYNCED, statementsOf } from './statements.ts';

/**
 * Keeps requests for tokens in a table of its own. What changes is on disk before its promise resolves, even if the
 * host has set `synchronous_commit = off`.
 */
export class PostgresRequests implements RequestStore {
  readonly #session: Session;
  readonly #statements: Readonly<Record<keyof ReturnType<typeof textsFor>, PostgresQuery>>;

  constructor(session: Session, table: string, form: StatementForm) {
    this.#session = session;
    this.#statements = statementsOf(textsFor(table, guardOf(form)), form);
  }

  /** A transaction: it locks, counts, and inserts. */
  async insert(record: RequestRecord, bounds: RequestBounds): Promise<void> {
    const row = requestRow(record);
    const { id, userCode, root, version, expiresAt, body } = row;
    const { lock, held, insert } = this.#statements;
    await this.#session.transaction(async (run) => {
      await run(lock, []);
      // A statement sees what was committed when it began, so the lock needs one of its own.
      const [answer] = await run(held, [id, userCode, root, bounds.liveAt.getTime()]);
      checkBounds(heldIn(answer), row, bounds);
      await run(insert, [id, userCode, root, version, expiresAt, body]);
    }, REQUESTS);
  }

  async find(key: RequestKey): Promise<RequestRecord | undefined> {
    const column = columnOf(key);
    if (column === undefined) return undefined;
    const query = this.#statements[column.name];
    const [answer] = await this.#session.read(query, [column.value], REQUESTS);
    if (answer === undefined) return undefined;
    const [id, userCode, version, expiresAt, body] = cellsIn(answer);
    return readRequest({ id, userCode, version, expiresAt, body });
  }

  async replace(next: RequestRecord): Promise<boolean> {
    const { id, version, expiresAt, body } = requestRow(next);
    return (await this.#change(this.#statements.replace, [id, version, expiresAt, body])) > 0;
  }

  purge(before: Date, limit: number): Promise<number> {
    return this.#change(this.#statements.purge, [before.getTime(), limit]);
  }

  async #change(query: PostgresQuery, values: readonly unknown[]): Promise<number> {
    const [answer] = await this.#session.run(query, values, REQUESTS);
    return Number((answer as { readonly count: unknown }).count);
  }
}

/** A row comes as one text, because the host may have changed how the driver reads other types. */
function cellsIn(answer: unknown): readonly unknown[] {
  return JSON.parse((answer as { readonly cells: string }).cells);
}

function heldIn(answer: unknown): HeldRequests {
  const [taken, live, alike] = cellsIn(answer).map(Number) as [number, number, number];
  return { taken, live, alike };
}

function textsFor(name: string, guard: string) {
  const read = `SELECT json_build_array(id, user_code, version, expires_at, body)::text AS cells
     FROM ${name} WHERE ${guard}`;
  const countOf = (condition: string) => `(SELECT count(*) FROM ${name} WHERE ${condition})`;
  return {
    // All inserts change the row of no request, so that they take turns: locks of other kinds are not known to
    // each database of this kind.
    lock: `WITH locked AS (
        INSERT INTO ${name} AS requests (id, user_code, root, version, expires_at, body)
        VALUES ('', '', '', 1, 0, '')
        ON CONFLICT (id) DO UPDATE SET version = requests.version + 1 RETURNING 1
      )
      SELECT ${SYNCED} FROM locked`,
    held: `SELECT json_build_array(
        ${countOf('id = $1 OR user_code = $2')},
        ${countOf('expires_at > $4')},
        ${countOf('root = $3 AND expires_at > $4')})::text AS cells`,
    insert: `INSERT INTO ${name} (id, user_code, root, version, expires_at, body)
       VALUES ($1, $2, $3, $4, $5, $6)`,
    id: `${read} AND id = $1`,
    user_code: `${read} AND user_code = $1`,
    replace: counted(
      `UPDATE ${name} SET version = $2, expires_at = $3, body = $4
       WHERE id = $1 AND version = $2 - 1`,
    ),
    // With an array the plan always goes by the primary key.
    purge: counted(
      `DELETE FROM ${name} WHERE id = ANY(ARRAY(
         SELECT id FROM ${name} WHERE id <> '' AND expires_at < least($1, ${NOW})
         ORDER BY expires_at LIMIT $2 FOR UPDATE))`,
    ),
  };
}

/** A change that waits for the disk, and answers with how many rows it changed. */
function counted(change: string): string {
  return `WITH changed AS (${change} RETURNING 1)
    SELECT count(*)::text AS count, ${SYNCED} FROM changed`;
}
