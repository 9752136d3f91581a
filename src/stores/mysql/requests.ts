import type {
  RequestBounds,
  RequestKey,
  RequestRecord,
  RequestStore,
} from '../../ports/request-store.ts';
import { checkBounds, columnOf, readRequest, requestRow } from '../shared/request-rows.ts';
import { REQUESTS } from '../shared/schema-mark.ts';
import type { Cells, Counts, Session } from './client.ts';
import type { Table } from './migration.ts';
import { SERVER_TIME } from './schema.ts';
import type { MysqlValue } from './statement.ts';
import { withState } from './statements.ts';

/** Keeps requests for tokens in a table of its own. */
export class MysqlRequests implements RequestStore {
  readonly #session: Session;
  readonly #sql: ReturnType<typeof statementsFor>;

  constructor(session: Session, table: Table) {
    this.#session = session;
    this.#sql = statementsFor(table);
  }

  /** A transaction: it locks, counts, and inserts. */
  async insert(record: RequestRecord, bounds: RequestBounds): Promise<void> {
    const row = requestRow(record);
    const { version, expiresAt } = row;
    const [id, code, root] = [
      Buffer.from(row.id),
      Buffer.from(row.userCode),
      Buffer.from(row.root),
    ];
    const liveAt = bounds.liveAt.getTime();
    await this.#session.transaction(async (run) => {
      await run(this.#sql.lock, []);
      const held = await run(this.#sql.held, [id, code, liveAt, root, liveAt]);
      const [cells = []] = held as Cells[];
      const [taken, live, alike] = cells.map(Number) as [number, number, number];
      checkBounds({ taken, live, alike }, row, bounds);
      const values = [id, code, root, version, expiresAt, Buffer.from(row.body)];
      await run(this.#sql.insert, values);
    }, REQUESTS);
  }

  async find(key: RequestKey): Promise<RequestRecord | undefined> {
    const column = columnOf(key);
    if (column === undefined) return undefined;
    const values = [Buffer.from(column.value)];
    const [row] = await this.#session.read(this.#sql[column.name], values, REQUESTS);
    if (row === undefined) return undefined;
    const [id, userCode, version, expiresAt, body] = row;
    return readRequest({ id, userCode, version, expiresAt, body });
  }

  async replace(next: RequestRecord): Promise<boolean> {
    const { id, version, expiresAt, body } = requestRow(next);
    const values = [version, expiresAt, Buffer.from(body), Buffer.from(id), version - 1];
    return (await this.#write(this.#sql.replace, values)).affectedRows > 0;
  }

  async purge(before: Date, limit: number): Promise<number> {
    const values = [before.getTime(), String(limit)];
    return (await this.#write(this.#sql.purge, values)).affectedRows;
  }

  #write(sql: string, values: MysqlValue[]): Promise<Counts> {
    return this.#session.write(sql, values, REQUESTS);
  }
}

function statementsFor({ quoted }: Table) {
  const columns = 'id, user_code, version, expires_at, body';
  const countOf = (condition: string) => `(SELECT COUNT(*) FROM ${quoted} WHERE ${condition}`;
  return {
    // All inserts change the row of no request, so that they take turns, also on the nodes of a cluster.
    lock: `INSERT INTO ${quoted} (id, user_code, root, version, expires_at, body)
      VALUES ('', '', '', 1, 0, '') ON DUPLICATE KEY UPDATE version = version + 1`,
    // Locks what it reads: TiDB would count what there was when the transaction began.
    held: `SELECT ${countOf('id = ? FOR UPDATE)')} + ${countOf('user_code = ? FOR UPDATE)')},
      ${countOf('expires_at > ? FOR UPDATE)')},
      ${countOf('root = ? AND expires_at > ? FOR UPDATE)')}`,
    insert: `INSERT INTO ${quoted} (id, user_code, root, version, expires_at, body)
      VALUES (?, ?, ?, ?, ?, ?)`,
    id: withState(`SELECT ${columns} FROM ${quoted} WHERE id = ?`, 5),
    user_code: withState(`SELECT ${columns} FROM ${quoted} WHERE user_code = ?`, 5),
    replace: `UPDATE ${quoted} SET version = ?, expires_at = ?, body = ?
      WHERE id = ? AND version = ?`,
    purge: `DELETE FROM ${quoted}
      WHERE expires_at > 0 AND expires_at < LEAST(?, ${SERVER_TIME} DIV 1000)
      ORDER BY expires_at LIMIT ?`,
  };
}
