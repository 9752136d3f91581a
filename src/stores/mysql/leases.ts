import type { LeaseStore, LeaseWant, UnspentLease } from '../../ports/lease-store.ts';
import { type LeaseRow, leaseRow, slotOf, summedLeases } from '../shared/lease-rows.ts';
import { LEASES } from '../shared/schema-mark.ts';
import type { Counts, Session } from './client.ts';
import type { Table } from './migration.ts';
import { SERVER_TIME } from './schema.ts';
import type { MysqlValue } from './statement.ts';

/**
 * Counts the uses of limited tokens in a table of its own. Each want is one statement, because MySQL does not
 * report what it wrote to several rows. Those of one call are sent concurrently.
 */
export class MysqlLeases implements LeaseStore {
  readonly #session: Session;
  readonly #sql: ReturnType<typeof statementsFor>;

  constructor(session: Session, table: Table) {
    this.#session = session;
    this.#sql = statementsFor(table);
  }

  async take(wants: readonly LeaseWant[]): Promise<number[]> {
    return inOrder(wants.map(leaseRow), async (rows) => {
      const granted: number[] = [];
      for (const row of rows) granted.push(await this.#takeOne(row));
      return granted;
    });
  }

  async #takeOne({ key, slot, window, wanted, limit, from, until }: LeaseRow): Promise<number> {
    const values = [Buffer.from(key), slot, window, wanted, wanted, limit, until, from, until];
    const { insertId } = await this.#write(this.#sql.take, values);
    return Number(insertId);
  }

  async giveBack(leases: readonly UnspentLease[]): Promise<void> {
    const given = summedLeases(leases).map(({ key, window, amount }) =>
      this.#write(this.#sql.giveBack, [amount, Buffer.from(key), slotOf(window), window]),
    );
    await Promise.all(given);
  }

  async purge(before: Date, limit: number): Promise<number> {
    const values = [before.getTime(), String(limit)];
    return (await this.#write(this.#sql.purge, values)).affectedRows;
  }

  #write(sql: string, values: MysqlValue[]): Promise<Counts> {
    return this.#session.write(sql, values, LEASES);
  }
}

/** Works on different keys concurrently, and on the same key in the order of the rows. */
async function inOrder(
  rows: readonly LeaseRow[],
  work: (rows: readonly LeaseRow[]) => Promise<number[]>,
): Promise<number[]> {
  const byKey = new Map<string, [index: number, row: LeaseRow][]>();
  for (const [index, row] of rows.entries()) {
    const others = byKey.get(row.key);
    if (others === undefined) byKey.set(row.key, [[index, row]]);
    else others.push([index, row]);
  }
  const answers = new Array<number>(rows.length).fill(0);
  const working = Array.from(byKey.values(), async (entries) => {
    const worked = await work(entries.map(([, row]) => row));
    for (const [place, [index]] of entries.entries()) answers[index] = worked[place] as number;
  });
  await Promise.all(working);
  return answers;
}

function statementsFor({ quoted }: Table) {
  const now = `${SERVER_TIME} DIV 1000`;
  const isSame = 'period = VALUES(period)';
  const isOver = `period < VALUES(period) AND ends_at <= ${now}`;
  const left = 'GREATEST(0, LEAST(VALUES(granted), VALUES(most) - granted))';
  return {
    // The server answers with the argument of LAST_INSERT_ID. Each assignment sees the results of those
    // before it, or with the sql_mode SIMULTANEOUS_ASSIGNMENT of MariaDB the old row: the order makes both
    // the same. `ends_at` comes after `period`, by which a window that replaced another one is the same.
    take: `INSERT INTO ${quoted} (lease_key, slot, period, latest, granted, most, ends_at)
      SELECT ?, ?, ?, LAST_INSERT_ID(?), ?, ?, ? FROM DUAL WHERE ? <= ${now} AND ? > ${now}
      ON DUPLICATE KEY UPDATE
        latest = LAST_INSERT_ID(IF(${isSame}, ${left}, IF(${isOver}, VALUES(granted), 0))),
        granted = IF(${isSame}, granted + ${left}, IF(${isOver}, VALUES(granted), granted)),
        period = IF(${isOver}, VALUES(period), period),
        ends_at = IF(${isSame} OR ${isOver}, GREATEST(ends_at, VALUES(ends_at)), ends_at),
        most = VALUES(most)`,
    giveBack: `UPDATE ${quoted} SET granted = GREATEST(0, granted - ?)
      WHERE lease_key = ? AND slot = ? AND period = ?`,
    purge: `DELETE FROM ${quoted} WHERE ends_at < LEAST(?, ${now}) ORDER BY ends_at LIMIT ?`,
  };
}
