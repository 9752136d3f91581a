import { LONG_LIST_BYTES, MAX_REVOKED_REQUESTED_BYTES } from '../../bounds.ts';
import { TokenError } from '../../errors.ts';
import type {
  CountQuery,
  PageQuery,
  Position,
  PruneQuery,
  QuotaHolder,
} from '../../ports/token-store.ts';
import {
  LISTED_STATES,
  type ListedState,
  type TokenId,
  type TokenRecord,
} from '../../token/record.ts';
import { expiryRange } from '../shared/expiry-range.ts';
import {
  COLUMNS,
  type Column,
  REQUESTED,
  type RowValue,
  SCOPES,
  toValues,
} from '../shared/rows.ts';
import { type Cells, SERVER_STATE } from './client.ts';
import type { Table } from './migration.ts';
import { COLUMN_BYTES, REVOKED_AS, SERVER_TIME } from './schema.ts';
import type { MysqlValue } from './statement.ts';

/** In milliseconds. */
const SERVER_MS = `${SERVER_TIME} DIV 1000`;

/** By the purpose that each statement serves. */
export type Statements = ReturnType<typeof statementsFor>;

export function statementsFor(table: Table) {
  return {
    ...findsIn(table),
    ...pagesOf(table),
    expiring: expiringOf(table),
    ...countsOf(table),
    ...changesOf(table),
  };
}

/**
 * A read, with {@link SERVER_STATE} as its last row. An aggregate or a join would cost a page its index.
 */
export function withState(read: string, columns: number): string {
  return `(${read}) UNION ALL (SELECT ${SERVER_STATE}${', NULL'.repeat(columns - 2)})`;
}

function findsIn({ quoted }: Table) {
  const found = (cells: string, count: number, columns: number = COLUMNS.length) =>
    withState(
      `SELECT ${cells} FROM ${quoted} FORCE INDEX (PRIMARY) WHERE id IN (${marks(count)})`,
      columns,
    );
  const isKnown = (list: string) =>
    `LENGTH(${list}) >= ${LONG_LIST_BYTES} AND FIND_IN_SET(CONCAT(id, SHA2(${list}, 256)), ?)`;
  const changed = COLUMNS.map((column) => {
    if (column === 'scopes') return `IF(${isKnown(column)}, NULL, scopes)`;
    if (column === 'requested')
      return `IF(requested = scopes OR ${isKnown(column)}, NULL, requested)`;
    return column;
  });
  return {
    find: perCount((count) => found(COLUMNS.join(', '), count)),
    scan: withState(
      `SELECT ${COLUMNS.join(', ')} FROM ${quoted} FORCE INDEX (PRIMARY) WHERE id > ? ORDER BY id LIMIT ?`,
      COLUMNS.length,
    ),
    /**
     * Leaves out long lists whose ids and digests are in the first two values. The last cell says
     * whether both lists are the same.
     */
    findKnown: perCount((count) =>
      found(`${changed}, requested = scopes`, count, changed.length + 1),
    ),
  };
}

/** Builds a statement once for each count of ids. */
export function perCount(build: (count: number) => string): (count: number) => string {
  const built = new Map<number, string>();
  return (count) => {
    const sql = built.get(count) ?? build(count);
    built.set(count, sql);
    return sql;
  };
}

export function marks(count: number): string {
  return Array(count).fill('?').join(', ');
}

const BYTES = 'LENGTH(scopes) + LENGTH(requested)';
/** Without the lists that are longer than a value, which comes twice. */
const SHORT_CELLS = COLUMNS.map((column) =>
  column === 'scopes' || column === 'requested' ? `IF(${BYTES} <= ?, ${column}, NULL)` : column,
).join(', ');
/** What a page is cut by. */
const SIZES = `id, created_at, expires_at, ${BYTES} AS bytes`;

/** Selects some cells of the rows of a page. */
type PageText = (state: ListedState, cells: string) => string;

/** The statements of a page that is ordered by a column and then by id. */
function pageForms({ quoted }: Table, page: PageText, [column, way]: Order) {
  const orderOf = (table: string) => `${table}.${column}${way}, ${table}.id${way}`;
  // Only lengths go through the window: rows with long lists would fill a temporary table.
  const upTo = (state: ListedState) => `SELECT ${COLUMNS.join(', ').replaceAll(/\w+/g, 'token.$&')}
    FROM (
      SELECT id AS listed, SUM(bytes) OVER (
        ORDER BY ${orderOf('page')} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS bytes_before
      FROM (${page(state, SIZES)}) AS page
    ) AS summed JOIN ${quoted} AS token FORCE INDEX (PRIMARY) ON token.id = listed
    WHERE COALESCE(bytes_before, 0) < ? ORDER BY ${orderOf('token')} LIMIT ?`;
  return {
    /** Leaves out the lists of records whose lists are longer than the first two values. */
    page: byState((state) => withState(page(state, SHORT_CELLS), COLUMNS.length)),
    /**
     * Up to the last value but one, in bytes of lists. Several times the work of `page`. The last value
     * is the limit once more: without one, the server would ignore the order of a part of a union.
     */
    pageUpTo: byState((state) => withState(upTo(state), COLUMNS.length)),
  };
}

/** A column, and ` DESC` or nothing. */
type Order = readonly [column: string, way: string];

function pagesOf(table: Table) {
  const { quoted } = table;
  const pagesIn = ({ position, of }: PageForm) => {
    // Without the hint MariaDB reads the whole account and sorts it.
    const page: PageText = (state, cells) => {
      const { index, condition } = STATES[state];
      return `SELECT ${cells}
    FROM ${quoted} FORCE INDEX (${of === undefined ? index : `by_${of}`})
    WHERE account = ? ${of === undefined ? '' : `AND ${of} = ?`} ${condition} ${position}
    ORDER BY created_at DESC, id DESC LIMIT ?`;
    };
    return pageForms(table, page, ['created_at', ' DESC']);
  };
  const pagesAt = (position: string) => ({
    ...pagesIn({ position, of: undefined }),
    /** The same for the tokens that were derived from the second value after those of `page`. */
    parent: pagesIn({ position, of: 'parent' }),
    root: pagesIn({ position, of: 'root' }),
    /** The tokens that are not revoked, read from the index alone. */
    unrevoked: withState(
      `SELECT id, created_at FROM ${quoted} FORCE INDEX (by_account)
      WHERE account = ? AND revoked_at IS NULL ${position}
      ORDER BY created_at DESC, id DESC LIMIT ?`,
      2,
    ),
  });
  return {
    first: pagesAt(''),
    // (created_at, id) < (?, ?) would not use the index.
    next: pagesAt('AND (created_at < ? OR (created_at = ? AND id < ?))'),
  };
}

/**
 * Pages by expiry. A state that is in several ranges of the index has the values of a range once for each, and the
 * limit twice more.
 */
function expiringOf(table: Table) {
  const { quoted } = table;
  const inOrder = 'ORDER BY expires_at, id LIMIT ?';
  const range = (cells: string, condition: string) => `SELECT ${cells}
    FROM ${quoted} FORCE INDEX (by_expiry)
    WHERE account = ? AND ${condition} AND expires_at <= ?
      AND (expires_at > ? OR (expires_at = ? AND id > ?))
    ${inOrder}`;
  const page: PageText = (state, cells) => {
    const { ranges, condition } = EXPIRING[state];
    if (ranges.length === 1) return range(cells, `revoked_as = ${ranges[0]} ${condition}`);
    // Merges what is in the index: whole rows would fill a temporary table.
    const parts = ranges.map((each) => `(${range('id, expires_at', `revoked_as = ${each}`)})`);
    return `SELECT ${cells}
    FROM (SELECT id AS listed FROM (${parts.join(' UNION ALL ')}) AS merged ${inOrder}) AS page
    JOIN ${quoted} FORCE INDEX (PRIMARY) ON id = listed ${inOrder}`;
  };
  return pageForms(table, page, ['expires_at', '']);
}

/** In which ranges of the index by expiry the tokens of a state are. */
const EXPIRING: Readonly<Record<ListedState, { ranges: readonly number[]; condition: string }>> = {
  active: { ranges: [REVOKED_AS.no], condition: 'AND suspended_at IS NULL' },
  live: { ranges: [REVOKED_AS.no], condition: '' },
  suspended: { ranges: [REVOKED_AS.no], condition: 'AND suspended_at IS NOT NULL' },
  expired: { ranges: [REVOKED_AS.no], condition: '' },
  revoked: { ranges: [REVOKED_AS.revoked, REVOKED_AS.tombstone], condition: '' },
  all: { ranges: Object.values(REVOKED_AS), condition: '' },
};

/** A page from the top or after a position, of all tokens of an account or of those derived from one. */
interface PageForm {
  readonly position: string;
  readonly of: 'parent' | 'root' | undefined;
}

/** Which index lists the tokens of a state, and the condition on them, with a time or without. */
const STATES: Readonly<
  Record<ListedState, { index: string; condition: string; hasTime: boolean }>
> = {
  active: {
    index: 'by_account',
    condition: 'AND revoked_at IS NULL AND expires_at > ? AND suspended_at IS NULL',
    hasTime: true,
  },
  live: {
    index: 'by_account',
    condition: 'AND revoked_at IS NULL AND expires_at > ?',
    hasTime: true,
  },
  suspended: {
    index: 'by_creation',
    condition: 'AND revoked_at IS NULL AND expires_at > ? AND suspended_at IS NOT NULL',
    hasTime: true,
  },
  expired: {
    index: 'by_account',
    condition: 'AND revoked_at IS NULL AND expires_at <= ?',
    hasTime: true,
  },
  revoked: { index: 'by_creation', condition: 'AND revoked_at IS NOT NULL', hasTime: false },
  all: { index: 'by_creation', condition: '', hasTime: false },
};

function byState<Value>(
  build: (state: ListedState) => Value,
): Readonly<Record<ListedState, Value>> {
  return Object.fromEntries(LISTED_STATES.map((state) => [state, build(state)])) as Record<
    ListedState,
    Value
  >;
}

/** The values of a page after those for the sizes of lists. */
export function pageValues(query: PageQuery): MysqlValue[] {
  const { account, after, liveAt, parent, root, state = 'active' } = query;
  // As text: drivers send numbers as floating-point, which MySQL does not take here.
  const limit = String(query.limit);
  if (query.order === 'expire') {
    const { after: start, until } = expiryRange(query);
    const position = [start.at, start.at, Buffer.from(start.id)];
    const range = [Buffer.from(account), until, ...position, limit];
    const { ranges } = EXPIRING[state];
    return ranges.length === 1 ? range : [...ranges.flatMap(() => range), limit, limit];
  }
  const ancestor = parent ?? root;
  return [
    Buffer.from(account),
    ...(ancestor === undefined ? [] : [Buffer.from(ancestor)]),
    ...(STATES[state].hasTime ? [timeOf(liveAt)] : []),
    ...(after === undefined ? [] : placeOf(after)),
    limit,
  ];
}

/** Counts and steps of the records of one holder of a quota, read from an index alone. */
function countsOf({ quoted }: Table) {
  const ofHolder = (root: string, condition: string, cells = '1') =>
    `SELECT ${cells} FROM ${quoted} FORCE INDEX (by_holder)
    WHERE account = ? AND ${root} AND ${condition}`;
  const counted = (root: string, condition: string) =>
    `(SELECT COUNT(*) FROM (${ofHolder(root, condition)} LIMIT ?) AS counted)`;
  const count = (root: string) =>
    withState(
      `SELECT ${counted(root, `revoked_as = ${REVOKED_AS.no} AND ends_at > ?`)},
      ${counted(root, `revoked_as = ${REVOKED_AS.no} AND ends_at <= ?`)}
      + ${counted(root, `revoked_as > ${REVOKED_AS.no}`)}`,
      2,
    );
  const first = (root: string, condition: string) =>
    `(${ofHolder(root, condition, 'id, ends_at')} ORDER BY ends_at LIMIT ?)`;
  const prunable = (root: string) =>
    withState(
      `SELECT id, ends_at FROM (${first(root, `revoked_as = ${REVOKED_AS.no} AND ${HAS_EXPIRED}`)}
      UNION ALL ${first(root, `revoked_as = ${REVOKED_AS.revoked}`)}) AS ended
      ORDER BY ends_at, id LIMIT ?`,
      2,
    );
  return {
    /** The values of {@link countValues}. */
    count: { roots: count('root IS NULL'), derived: count('root = ?') },
    /** The tokens to prune: the values of {@link pruneValues}. */
    prunable: { roots: prunable('root IS NULL'), derived: prunable('root = ?') },
  };
}

/** By a time, or by that of the server if it is earlier. */
const HAS_EXPIRED = `ends_at <= LEAST(?, ${SERVER_MS})`;

export function countValues({ liveAt, most, ...holder }: CountQuery): MysqlValue[] {
  const time = timeOf(liveAt);
  const of = holderValues(holder);
  const ended = String(most.ended);
  return [...of, time, String(most.live), ...of, time, ended, ...of, ended];
}

export function pruneValues({ now, limit, ...holder }: PruneQuery): MysqlValue[] {
  const of = holderValues(holder);
  const most = String(limit);
  return [...of, timeOf(now), most, ...of, most, most];
}

function holderValues({ account, root }: QuotaHolder): MysqlValue[] {
  return [account, ...(root === undefined ? [] : [root])].map((text) => Buffer.from(text));
}

/** More than an age before a time, or before that of the server if it is earlier. */
const ENDED_BEFORE = `ends_at < LEAST(?, ${SERVER_MS}) - ?`;

/** What a revocation sets, after its time. Texts are cut as text: JSON functions would change their form. */
const REVOKED = `revoked_at = ?, changed_at = ${SERVER_TIME}, scopes = '[]', box = NULL, metadata = NULL,
      pending = ${withoutBox('pending')}, requested = ${shortened('requested')}`;

function withoutBox(pending: string): string {
  const start = `LOCATE('"box":"', ${pending})`;
  return `IF(${start} > 0, CONCAT(LEFT(${pending}, ${start} - 1),
        SUBSTRING(${pending}, LOCATE('"graceSeconds":', ${pending}))), ${pending})`;
}

/** Ends after the last member that leaves room for the closing bracket: at the last `","` of the beginning. */
function shortened(list: string): string {
  const separator = '","';
  const start = `LEFT(${list}, ${MAX_REVOKED_REQUESTED_BYTES + separator.length - 2})`;
  const fromEnd = `LOCATE('${separator}', REVERSE(${start}))`;
  return `CASE WHEN LENGTH(${list}) <= ${MAX_REVOKED_REQUESTED_BYTES} THEN ${list}
        WHEN ${fromEnd} = 0 THEN '[]'
        ELSE CONCAT(LEFT(${list}, ${MAX_REVOKED_REQUESTED_BYTES} - ${fromEnd}), ']') END`;
}

function changesOf({ quoted }: Table) {
  return {
    insert: `INSERT INTO ${quoted} (${WRITTEN.join(', ')}) VALUES (${marks(WRITTEN.length)})`,
    replace: `UPDATE ${quoted} SET ${WRITTEN.slice(2)
      .map((column) => `${column} = ?`)
      .join(', ')}, changed_at = ${SERVER_TIME}
      WHERE id = ? AND account = ? AND version = ? AND revoked_at IS NULL`,
    revoke: `UPDATE ${quoted} SET ${REVOKED}
      WHERE id = ? AND account = ? AND revoked_at IS NULL AND version = COALESCE(?, version)`,
    revokeMany: perCount(
      (count) => `UPDATE ${quoted} FORCE INDEX (PRIMARY) SET ${REVOKED}
      WHERE account = ? AND revoked_at IS NULL AND id IN (${marks(count)})`,
    ),
    /** The tokens to purge. They are read first, because MySQL does not report what it deletes. */
    purgeable: withState(
      `SELECT id, ends_at FROM ${quoted} FORCE INDEX (by_end)
      WHERE ${ENDED_BEFORE} ORDER BY ends_at, id LIMIT ?`,
      2,
    ),
    purge: perCount(
      (count) => `DELETE FROM ${quoted} WHERE ${ENDED_BEFORE} AND id IN (${marks(count)})`,
    ),
    prune: perCount(
      (count) => `DELETE FROM ${quoted} WHERE (revoked_as = ${REVOKED_AS.revoked}
      OR revoked_as = ${REVOKED_AS.no} AND ${HAS_EXPIRED}) AND id IN (${marks(count)})`,
    ),
    hasReached: withState(`SELECT ${SERVER_MS} >= ?, NULL`, 2),
    // The join always gives a row, which holds the time.
    changes: `SELECT clock.server_time, token.id, token.changed_at
      FROM (SELECT ${SERVER_TIME} AS server_time) AS clock
      LEFT JOIN ${quoted} AS token FORCE INDEX (by_change) ON token.changed_at > ? LIMIT ?`,
  };
}

/** The columns that the server does not compute. */
const WRITTEN = COLUMNS.filter((column) => column !== 'root');

/** In the order of the columns that are written. */
export function parametersOf(record: TokenRecord): MysqlValue[] {
  const values = toValues(record);
  return WRITTEN.map((column) => parameterOf(values[COLUMNS.indexOf(column)] ?? null, column));
}

function parameterOf(value: RowValue, column: Column): MysqlValue {
  if (value === null) return null;
  if (typeof value === 'number') return toInteger(value);
  const bytes = Buffer.from(value as string);
  const max: number = COLUMN_BYTES[column as keyof typeof COLUMN_BYTES];
  if (bytes.length <= max) return bytes;
  throw new TokenError('invalid_request', `${column} must have at most ${max} bytes`);
}

/** A server that is not strict would store NaN as 0. */
function toInteger(value: number): number {
  if (Number.isSafeInteger(value)) return value;
  throw new TokenError('invalid_request', 'times and versions must be whole numbers');
}

export function timeOf(date: Date): number {
  return toInteger(date.getTime());
}

export function placeOf({ at, id }: Position): MysqlValue[] {
  return [timeOf(at), timeOf(at), Buffer.from(id)];
}

/** Repeats the first id up to a power of two, so that few statements serve all lengths. */
export function padToPowerOfTwo(ids: readonly TokenId[]): Buffer[] {
  const parameters: Buffer[] = ids.map((id) => Buffer.from(id));
  const [first] = parameters;
  while ((parameters.length & (parameters.length - 1)) !== 0) parameters.push(first as Buffer);
  return parameters;
}

/** Reads a row of `findKnown`: an `undefined` list is the remembered one. */
export function withoutKnown(row: Cells): Cells {
  const cells = [...row];
  cells[SCOPES] ??= undefined;
  if (Number(cells[COLUMNS.length]) === 0) cells[REQUESTED] ??= undefined;
  return cells;
}
