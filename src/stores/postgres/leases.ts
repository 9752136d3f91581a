import { storeUnavailable } from '../../errors.ts';
import type { LeaseStore, LeaseWant, UnspentLease } from '../../ports/lease-store.ts';
import { type LeaseRow, leaseRow, roundsOf, slotOf, summedLeases } from '../shared/lease-rows.ts';
import { LEASES } from '../shared/schema-mark.ts';
import type { PostgresQuery, Session } from './client.ts';
import { NOW, type StatementForm, SYNCED, statementsOf } from './statements.ts';

/**
 * Counts the uses of limited tokens in a table of its own. A call is one statement. What it grants is on disk
 * before its promise resolves, even if the host has set `synchronous_commit = off`. The clock of the server
 * decides whether a window has ended.
 */
export class PostgresLeases implements LeaseStore {
  readonly #session: Session;
  readonly #statements: Readonly<Record<keyof ReturnType<typeof textsFor>, PostgresQuery>>;

  constructor(session: Session, table: string, form: StatementForm) {
    this.#session = session;
    this.#statements = statementsOf(textsFor(table), form);
  }

  async take(wants: readonly LeaseWant[]): Promise<number[]> {
    const granted = new Array<number>(wants.length).fill(0);
    for (const round of roundsOf(wants.map(leaseRow))) {
      const taken = await this.#takeEach(round.map(([row]) => row).sort(byKey));
      for (const [{ key, slot }, index] of round)
        granted[index] = taken.get(nameOf(key, slot)) ?? 0;
    }
    return granted;
  }

  /** Resolves to how much of each row was granted. A row that has ended, or is too early, is missing. */
  async #takeEach(rows: readonly LeaseRow[]): Promise<ReadonlyMap<string, number>> {
    const [answer] = await this.#run(this.#statements.take, [
      rows.map(({ key }) => key),
      rows.map(({ slot }) => slot),
      rows.map(({ window }) => window),
      rows.map(({ wanted }) => wanted),
      rows.map(({ limit }) => limit),
      rows.map(({ from }) => from),
      rows.map(({ until }) => until),
    ]);
    const cells = cellsIn(answer);
    return new Map(cells.map(([key, slot, amount]) => [nameOf(key, slot), amount]));
  }

  async giveBack(leases: readonly UnspentLease[]): Promise<void> {
    const given = summedLeases(leases);
    if (given.length === 0) return;
    await this.#run(this.#statements.giveBack, [
      given.map(({ key }) => key),
      given.map(({ window }) => slotOf(window)),
      given.map(({ window }) => window),
      given.map(({ amount }) => amount),
    ]);
  }

  async purge(before: Date, limit: number): Promise<number> {
    const values = [before.getTime(), limit];
    const [row] = await this.#run(this.#statements.purge, values);
    return Number((row as { readonly count: unknown }).count);
  }

  #run(query: PostgresQuery, values: readonly unknown[]): Promise<readonly unknown[]> {
    return this.#session.run(query, values, LEASES);
  }
}

/** The order in which all statements lock rows, so that no two can deadlock: that of bytes, as keys are ASCII. */
function byKey(one: LeaseRow, other: LeaseRow): number {
  if (one.key === other.key) return one.slot - other.slot;
  return one.key < other.key ? -1 : 1;
}

function nameOf(key: string, slot: number): string {
  return `${slot} ${key}`;
}

type TakenCells = readonly (readonly [key: string, slot: number, amount: number])[];

/** The rows come as one text, because the host may have changed how the driver reads other types. */
function cellsIn(answer: unknown): TakenCells {
  const text = (answer as { readonly cells?: unknown } | undefined)?.cells;
  // Without the text it is unknown how much was granted.
  if (typeof text !== 'string') {
    throw storeUnavailable('unknown', 'leases');
  }
  return JSON.parse(text);
}

function textsFor(name: string) {
  return {
    take: takeFrom(name),
    // Locks rows in the same order as `take`, so that the two cannot deadlock.
    giveBack: `WITH given AS (
        SELECT * FROM unnest($1::text[], $2::smallint[], $3::bigint[], $4::bigint[])
          AS given (lease_key, slot, period, amount)
      ), locked AS (
        SELECT leases.lease_key, leases.slot, given.amount
        FROM ${name} AS leases JOIN given
          ON leases.lease_key = given.lease_key AND leases.slot = given.slot
          AND leases.period = given.period
        ORDER BY leases.lease_key, leases.slot FOR UPDATE OF leases
      )
      UPDATE ${name} AS leases SET granted = greatest(0, leases.granted - locked.amount)
      FROM locked WHERE leases.lease_key = locked.lease_key AND leases.slot = locked.slot`,
    // Also locks rows in that order, and looks again if one was taken meanwhile.
    purge: `WITH ended AS (
        SELECT lease_key, slot FROM ${name} WHERE ends_at < least($1, ${NOW})
        ORDER BY ends_at LIMIT $2
      ), locked AS (
        SELECT leases.lease_key, leases.slot FROM ${name} AS leases JOIN ended
          ON leases.lease_key = ended.lease_key AND leases.slot = ended.slot
        WHERE leases.ends_at < least($1, ${NOW})
        ORDER BY leases.lease_key, leases.slot FOR UPDATE OF leases
      ), removed AS (
        DELETE FROM ${name} AS leases USING locked
        WHERE leases.lease_key = locked.lease_key AND leases.slot = locked.slot
        RETURNING 1
      )
      SELECT count(*)::text AS count FROM removed`,
  };
}

/**
 * Adds to each row as much as is wanted and left of the limit, in the order of the batch, which is that of the
 * keys, so that two calls cannot deadlock. `latest` holds the last grant of a row, because RETURNING sees rows only after
 * the update.
 */
function takeFrom(name: string): string {
  const isSame = 'leases.period = excluded.period';
  const isOver = `leases.period < excluded.period AND leases.ends_at <= ${NOW}`;
  const left = 'greatest(0, least(excluded.granted, excluded.most - leases.granted))';
  return `WITH wants AS (
      SELECT * FROM unnest($1::text[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[],
        $6::bigint[], $7::bigint[]) WITH ORDINALITY
        AS wants (lease_key, slot, period, wanted, most, starts_at, ends_at, place)
    ), taken AS (
      INSERT INTO ${name} AS leases (lease_key, slot, period, granted, latest, most, ends_at)
      SELECT lease_key, slot, period, wanted, wanted, most, ends_at FROM wants
      WHERE starts_at <= ${NOW} AND ends_at > ${NOW} ORDER BY place
      ON CONFLICT (lease_key, slot) DO UPDATE SET
        latest = CASE WHEN ${isSame} THEN ${left} WHEN ${isOver} THEN excluded.granted ELSE 0 END,
        granted = CASE WHEN ${isSame} THEN leases.granted + ${left}
          WHEN ${isOver} THEN excluded.granted ELSE leases.granted END,
        period = CASE WHEN ${isOver} THEN excluded.period ELSE leases.period END,
        ends_at = CASE WHEN ${isSame} OR ${isOver}
          THEN greatest(leases.ends_at, excluded.ends_at) ELSE leases.ends_at END,
        most = excluded.most
      RETURNING lease_key, slot, latest
    )
    SELECT coalesce(json_agg(json_build_array(lease_key, slot, latest)), '[]')::text AS cells,
      ${SYNCED}
    FROM taken`;
}
