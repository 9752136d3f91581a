import { createHash } from 'node:crypto';
import { LONG_LIST_BYTES, MAX_REVOKED_REQUESTED_BYTES } from '../../bounds.ts';
import type { ListedState } from '../../token/record.ts';
import { COLUMN, COLUMNS, type Column, REQUESTED, SCOPES } from '../shared/rows.ts';
import type { PostgresQuery } from './client.ts';
import { INSPECT, overdueSql } from './doctor.ts';
import type { Tables } from './schema.ts';
import { SHAPE, type Table } from './shape.ts';

/** By the purpose that each statement serves. */
export type Statements = Readonly<Record<keyof ReturnType<typeof textsFor>, PostgresQuery>>;

/** How statements are sent, and whether reads may be answered by a standby. */
export interface StatementForm {
  readonly prepare: boolean;
  readonly standby: 'refuse' | 'allow';
}

export function statementsFor(tables: Tables, form: StatementForm): Statements {
  return statementsOf(textsFor(tables, guardOf(form)), form);
}

/** As queries, with names if the server is to keep them prepared. */
export function statementsOf<Purpose extends string>(
  texts: Readonly<Record<Purpose, string>>,
  { prepare }: StatementForm,
): Readonly<Record<Purpose, PostgresQuery>> {
  const entries = Object.entries<string>(texts).map(([purpose, text]) => [
    purpose,
    prepare ? { name: statementName(text), text } : { text },
  ]);
  return Object.fromEntries(entries);
}

/** By the text: statements of two tables, or of two versions of this library, may share a connection. */
function statementName(text: string): string {
  return `tokenwright_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
}

function textsFor({ tokens, leases, requests }: Tables, guard: string) {
  return {
    insert: insertInto(tokens),
    ...readsOf(tokens, guard),
    ...changesOf(tokens),
    reached: `SELECT ${NOW} >= $1 AS reached WHERE ${guard}`,
    inspect: INSPECT,
    shape: SHAPE,
    overdue: overdueSql(leases, 'ends_at'),
    overdueRequests: overdueSql(requests, 'expires_at'),
  };
}

/** A condition that fails a read on a standby, unless that is allowed. */
export function guardOf({ standby }: StatementForm): string {
  return standby === 'refuse' ? ON_PRIMARY : 'true';
}

/**
 * A condition that fails the statement on a standby, by a division by zero. The server evaluates it
 * once, before it looks for rows, so an answer without rows also comes from the primary. It is a part of
 * the statement, because a pooler or a failover may put another server behind a connection.
 */
const ON_PRIMARY = '(SELECT 1 / (NOT pg_is_in_recovery())::integer) = 1';

/**
 * The time of the server, in milliseconds. A whole statement uses the same: of two times, one could be
 * before an end and one after it.
 */
export const NOW = 'floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint';

function insertInto({ name }: Table): string {
  const values = COLUMNS.map((_, index) => `$${index + 1}`).join(', ');
  return durable(
    `INSERT INTO ${name} (${COLUMNS.join(', ')}) VALUES (${values}) ON CONFLICT (id) DO NOTHING`,
  );
}

function readsOf({ name }: Table, guard: string) {
  const read = `SELECT ${CELLS} AS cells FROM ${name}`;
  return {
    ...pagesOf(name, guard),
    ...expiringOf(name, guard),
    ...derivedOf(name, guard, 'parent'),
    ...derivedOf(name, guard, 'root'),
    ...countsOf(name, guard),
    find: `${read} WHERE id = $1 AND ${guard}`,
    findMany: `${read} WHERE id = ANY($1) AND ${guard}`,
    /** Leaves out long lists whose ids and digests are given. */
    findKnown: `SELECT ${cellsWith(isKnown('scopes', 2), isKnown('requested', 3))} AS cells
       FROM ${name} WHERE id = ANY($1) AND ${guard}`,
    scan: `${read} WHERE id > $1 AND ${guard} ORDER BY id LIMIT $2`,
  };
}

/** For each state: a page, and one that ends at a number of bytes. */
type PagePurpose = `${'page' | 'pageUpTo'}_${ListedState}`;

function pagesOf(name: string, guard: string): Record<PagePurpose, string> {
  const where = (state: string) => (cells: string) =>
    `SELECT ${cells} FROM ${name}
       WHERE account = $1 AND ${state}
         AND (created_at, id) < ($3, $4) AND ${guard}
       ORDER BY created_at DESC, id DESC LIMIT $5`;
  const open = where('revoked_at IS NULL AND $2::bigint IS NOT NULL');
  const revoked = where('revoked_at IS NOT NULL AND $2::bigint IS NOT NULL');
  const columns = COLUMNS.join(', ');
  const pages: Record<ListedState, (cells: string) => string> = {
    // Without `coalesce`, the planner may take the index of live tokens, and sort the whole account.
    active: where('revoked_at IS NULL AND coalesce(expires_at, 0) > $2 AND suspended_at IS NULL'),
    live: where('revoked_at IS NULL AND coalesce(expires_at, 0) > $2'),
    // The comparison of a text keeps it off the index of all tokens that are not revoked.
    suspended: where(
      `coalesce(revoked_at::text, '') = '' AND coalesce(expires_at, 0) > $2 AND suspended_at IS NOT NULL`,
    ),
    expired: where('revoked_at IS NULL AND coalesce(expires_at, 0) <= $2'),
    revoked,
    // Each part reads a page at most, by its index.
    all: (
      cells,
    ) => `SELECT ${cells} FROM ((${open(columns)}) UNION ALL (${revoked(columns)})) AS merged
       ORDER BY created_at DESC, id DESC LIMIT $5`,
  };
  const entries = Object.entries(pages).flatMap(([state, page]) => [
    [`page_${state}`, page(`${CELLS} AS cells`)],
    [`pageUpTo_${state}`, upTo(page(columns))],
  ]);
  return Object.fromEntries(entries);
}

/** For each state: a page by expiry, which ends at a number of bytes. `$2` is the end of its time. */
type ExpiringPurpose = `expiring_${ListedState}`;

function expiringOf(name: string, guard: string): Record<ExpiringPurpose, string> {
  const order = 'expires_at, id';
  // Comparisons of rows: with others, the planner may take the index of live tokens, and sort the whole account.
  const where = (state: string) =>
    `SELECT ${COLUMNS.join(', ')} FROM ${name}
       WHERE account = $1 AND ${state}
         AND (expires_at, id) > ($3, $4) AND (expires_at, id) < ($2, '') AND ${guard}
       ORDER BY ${order} LIMIT $5`;
  const [unrevoked, revoked] = [where('revoked_at IS NULL'), where('revoked_at IS NOT NULL')];
  const pages: Record<ListedState, string> = {
    active: where('revoked_at IS NULL AND suspended_at IS NULL'),
    live: unrevoked,
    // The comparison of a text keeps it off the index of all tokens that are not revoked.
    suspended: where(`coalesce(revoked_at::text, '') = '' AND suspended_at IS NOT NULL`),
    expired: unrevoked,
    revoked,
    all: `SELECT * FROM ((${unrevoked}) UNION ALL (${revoked})) AS merged
       ORDER BY ${order} LIMIT $5`,
  };
  const entries = Object.entries(pages).map(([state, page]) => [
    `expiring_${state}`,
    upTo(page, order),
  ]);
  return Object.fromEntries(entries);
}

/** For each state: a page of what was derived from `$7`, which ends at a number of bytes. */
type DerivedPurpose<Ancestor extends string> = `${Ancestor}_${ListedState}`;

function derivedOf<Ancestor extends 'parent' | 'root'>(
  name: string,
  guard: string,
  ancestor: Ancestor,
): Record<DerivedPurpose<Ancestor>, string> {
  const columns = COLUMNS.join(', ');
  // Comparisons that no other index fits keep the plan on the one by that ancestor.
  const isOpen = `coalesce(revoked_at::text, '') = ''`;
  const states: Record<ListedState, string> = {
    active: `${isOpen} AND coalesce(expires_at, 0) > $2 AND suspended_at IS NULL`,
    live: `${isOpen} AND coalesce(expires_at, 0) > $2`,
    suspended: `${isOpen} AND coalesce(expires_at, 0) > $2 AND coalesce(suspended_at::text, '') <> ''`,
    expired: `${isOpen} AND coalesce(expires_at, 0) <= $2`,
    revoked: `coalesce(revoked_at::text, '') <> '' AND $2::bigint IS NOT NULL`,
    all: '$2::bigint IS NOT NULL',
  };
  const entries = Object.entries(states).map(([state, condition]) => [
    `${ancestor}_${state}`,
    upTo(`SELECT ${columns} FROM ${name}
       WHERE ${ancestor} = $7 AND account || '' = $1 AND ${condition}
         AND (created_at, id) < ($3, $4) AND ${guard}
       ORDER BY created_at DESC, id DESC LIMIT $5`),
  ]);
  return Object.fromEntries(entries);
}

/** With the root of a holder of a quota as a further parameter, or for what was not derived. */
type HeldPurpose<Verb extends string> = Verb | `${Verb}Derived`;

function heldBy(root: `$${number}` | undefined): string {
  return `account = $1 AND root ${root === undefined ? 'IS NULL' : `= ${root}`}`;
}

/** Only a query with this condition takes the index of a quota's revoked tokens. It holds for all. */
const IS_REVOKED = 'revoked_at > 0';

/**
 * Each part counts no further than asked for. ORDER BY forces the index, of which it has to name all columns
 * but those that equal something: a scan of the table looks cheap to the planner if all tokens are of one
 * account.
 */
function countsOf(name: string, guard: string): Record<HeldPurpose<'count'>, string> {
  const count = (holder: string) => {
    const live = `SELECT 1 FROM ${name} WHERE ${holder} AND revoked_at IS NULL AND expires_at > $2
           ORDER BY root, expires_at LIMIT $3`;
    const expired = `SELECT 1 FROM ${name} WHERE ${holder} AND revoked_at IS NULL AND expires_at <= $2
           ORDER BY root, expires_at LIMIT $4`;
    const revoked = `SELECT 1 FROM ${name} WHERE ${holder} AND ${IS_REVOKED}
           ORDER BY root, format, revoked_at LIMIT $4`;
    return `SELECT (SELECT count(*)::text FROM (${live}) AS live) AS live,
         (SELECT count(*)::text FROM ((${expired}) UNION ALL (${revoked}) LIMIT $4) AS ended) AS ended
       WHERE ${guard}`;
  };
  return { count: count(heldBy(undefined)), countDerived: count(heldBy('$5')) };
}

/** PostgreSQL knows the length of a long text without reading the text. */
function upTo(page: string, order = 'created_at DESC, id DESC'): string {
  return `SELECT ${CELLS} AS cells
       FROM (
         SELECT *, sum(octet_length(scopes) + octet_length(requested)) OVER (
           ORDER BY ${order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
         ) AS bytes_before
         FROM (${page}) AS page
       ) AS summed
       WHERE coalesce(bytes_before, 0) < $6
       ORDER BY ${order}`;
}

function changesOf({ name }: Table) {
  const changeable = COLUMNS.slice(2);
  const count = changeable.length;
  return {
    // A comparison that no index fits keeps the plan on the primary key: the planner may otherwise
    // read the whole account while the table has grown and not been analyzed since.
    replace: durable(
      `UPDATE ${name} SET ${changeable.map((column, index) => `${column} = $${index + 1}`).join(', ')}
         WHERE id = $${count + 1} AND account || '' = $${count + 2} AND version = $${count + 3}
           AND revoked_at IS NULL`,
    ),
    revoke: durable(
      `UPDATE ${name} SET revoked_at = $1, ${SHORTENED}
         WHERE id = $2 AND account || '' = $3 AND revoked_at IS NULL
           AND version = coalesce($4, version)`,
    ),
    // From a position: the entries of rows that are revoked already stay in the index until a vacuum.
    revokeAll: durable(
      `UPDATE ${name} SET revoked_at = $1, ${SHORTENED}
         WHERE revoked_at IS NULL AND id = ANY(ARRAY(
           SELECT id FROM ${name}
           WHERE account = $2 AND revoked_at IS NULL AND (created_at, id) < ($3, $4)
           ORDER BY created_at DESC, id DESC LIMIT $5 FOR UPDATE))`,
      { rows: true },
    ),
    // With an array the plan always goes by the primary key. Not SKIP LOCKED: the other call may leave
    // a locked row in place, and fewer than `limit` must mean that none are left.
    purge: durable(
      `DELETE FROM ${name} WHERE id = ANY(ARRAY(
           SELECT id FROM ${name} WHERE least(expires_at, revoked_at) < least($1, ${NOW}) - $2
           ORDER BY least(expires_at, revoked_at) LIMIT $3 FOR UPDATE))`,
      { rows: true },
    ),
    prune: pruneFrom(name, heldBy(undefined)),
    pruneDerived: pruneFrom(name, heldBy('$4')),
  };
}

/** Reads as many expired tokens as revoked ones, and removes those that ended first. */
function pruneFrom(name: string, holder: string): string {
  const expired = `SELECT id, expires_at AS ended_at FROM ${name}
           WHERE ${holder} AND revoked_at IS NULL AND expires_at <= least($2, ${NOW})
           ORDER BY root, expires_at LIMIT $3 FOR UPDATE`;
  const revoked = `SELECT id, revoked_at FROM ${name}
           WHERE ${holder} AND ${IS_REVOKED} AND format IS NULL
           ORDER BY root, format, revoked_at LIMIT $3 FOR UPDATE`;
  // Each in a query of its own: a union does not lock rows.
  return durable(
    `DELETE FROM ${name} WHERE id = ANY(ARRAY(
         SELECT id FROM (SELECT * FROM (${expired}) AS expired
           UNION ALL SELECT * FROM (${revoked}) AS revoked) AS ended
         ORDER BY ended_at LIMIT $3))`,
    { rows: true },
  );
}

/**
 * What a revoked record loses. Scopes are ASCII and hold no quote. The pattern takes the whole members of
 * the beginning, and leaves room for the bracket.
 */
const SHORTENED = `scopes = '[]', metadata = NULL, box = NULL,
         pending = regexp_replace(pending, '"box":"[^"]*",', ''),
         requested = CASE WHEN octet_length(requested) <= ${MAX_REVOKED_REQUESTED_BYTES} THEN requested
           ELSE substring(left(requested, ${MAX_REVOKED_REQUESTED_BYTES - 1})
             FROM '^[[](?:"[^"]*"(?:,"[^"]*")*)?') || ']' END`;

/** The answer to a write. */
export interface ChangeCount {
  readonly changed: number;
  /** The ids of changed rows, oldest first, and when the oldest was created; only if it asks. */
  readonly ids?: string[] | null;
  readonly oldest?: string | null;
}

interface Answers {
  /** Whether the ids of changed rows come with the count. */
  readonly rows?: boolean;
}

/**
 * Selected by a write, this makes its commit wait for the disk; a stricter setting of the host stays. Databases
 * that only speak as PostgreSQL does may not know the setting.
 */
export const SYNCED = `CASE WHEN current_setting('synchronous_commit', true)
        IN ('off', 'local', 'remote_write') THEN set_config('synchronous_commit', 'on', true) END`;

/**
 * A write in one round trip. Its commit waits for the disk even if `synchronous_commit` is off for the
 * session; a stricter setting of the host stays.
 */
function durable(write: string, { rows = false }: Answers = {}): string {
  return `WITH changed AS (${write} RETURNING id, created_at)
    SELECT count(*)::integer AS changed,
      ${rows ? 'array_agg(id ORDER BY created_at, id) AS ids, min(created_at)::text AS oldest,' : ''}
      ${SYNCED}
    FROM changed`;
}

/** Between the parts of a row. JSON escapes this character. */
const SEPARATOR = '\x1e';
/** Precedes a list that was sent. */
const SENT = '+';
/** Stands for the remembered list. */
const KNOWN = '=';
/** Stands for a requested list that equals the scopes. */
const SAME = '';

const CELLS = cellsWith('false', 'false');

/**
 * A row as one text, because the driver spends time on each column. The lists are JSON already and
 * follow the rest: to quote a long list as a text in JSON would cost more than everything else.
 */
function cellsWith(areScopesKnown: string, isRequestedKnown: string): string {
  const cells = COLUMNS.map((column) => {
    if (column === 'scopes' || column === 'requested') return 'NULL';
    return COLUMN[column].type === 'bytes' ? `encode(${column}, 'hex')` : column;
  });
  return `json_build_array(${cells.join(', ')})::text || '${SEPARATOR}'
    || CASE WHEN ${areScopesKnown} THEN '${KNOWN}' ELSE '${SENT}' || scopes END || '${SEPARATOR}'
    || CASE WHEN requested = scopes THEN '${SAME}' WHEN ${isRequestedKnown} THEN '${KNOWN}'
      ELSE '${SENT}' || requested END`;
}

function isKnown(column: Column, parameter: number): string {
  return `(octet_length(${column}) >= ${LONG_LIST_BYTES}
    AND id || encode(sha256(convert_to(${column}, 'UTF8')), 'hex') = ANY($${parameter}))`;
}

/**
 * Reads the text of a row into cells, in the order of the columns. A separator within a list makes the
 * list malformed.
 */
export function cellsIn(row: string): unknown[] {
  const [rest = '', scopes, requested, ...more] = row.split(SEPARATOR);
  const cells: unknown[] = JSON.parse(rest);
  cells[SCOPES] = more.length > 0 ? '' : listIn(scopes);
  cells[REQUESTED] = requested === SAME ? null : listIn(requested);
  return cells;
}

function listIn(part: string | undefined): string | undefined {
  return part === KNOWN ? undefined : part?.slice(SENT.length);
}
