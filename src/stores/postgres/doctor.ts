import type { StoreFinding } from '../../ports/token-store.ts';
import { withDeadline } from '../../time/deadline.ts';
import {
  type Check,
  findingsOf,
  MAX_OVERDUE,
  MAX_SKEW_MS,
  measureSkew,
  overdueBefore,
  partFindings,
} from '../shared/doctor.ts';
import {
  knownVersion,
  readMark,
  SCHEMA_NEWER,
  SCHEMA_OF_DEVELOPMENT,
  schemaState,
} from '../shared/schema-mark.ts';
import type { PostgresQuery, Session } from './client.ts';
import type { Tables } from './schema.ts';
import {
  collatedIn,
  hasColumns,
  isWholeEncoding,
  missingIn,
  SHAPE,
  type Shape,
  type Table,
} from './shape.ts';
import { isDeaf } from './watch.ts';

export const INSPECT = `
${SHAPE},
    pg_is_in_recovery() AS "isReplica",
    current_setting('server_encoding', true) AS encoding,
    current_setting('synchronous_commit', true) AS "synchronousCommit",
    current_setting('fsync', true) AS fsync,
    current_setting('full_page_writes', true) AS "fullPageWrites",
    current_setting('default_transaction_isolation') AS isolation,
    (SELECT setting::integer FROM pg_settings WHERE name = 'statement_timeout')
      AS "statementTimeoutMs",
    floor(extract(epoch FROM clock_timestamp()) * 1000)::text AS now`;

/** The answer to {@link INSPECT}. A setting that the server does not know is null. */
interface Inspection extends Shape {
  readonly isReplica: boolean;
  readonly encoding: string | null;
  readonly synchronousCommit: string | null;
  readonly fsync: string | null;
  readonly fullPageWrites: string | null;
  readonly isolation: string;
  readonly statementTimeoutMs: number;
  readonly now: string;
}

/** Counts the rows that should have been purged. That of no request has no end. */
export function overdueSql({ name }: Table, end: string): string {
  return `SELECT count(*)::text AS count FROM (
        SELECT FROM ${name} WHERE ${end} < $1 AND ${end} > 0 LIMIT ${MAX_OVERDUE}
      ) AS overdue`;
}

interface Facts extends Inspection {
  readonly state: ReturnType<typeof schemaState> | 'missing' | 'foreign';
  readonly missing: readonly string[];
  readonly collated: readonly string[];
  readonly skewMs: number;
  readonly isDeaf: boolean;
  readonly deadlineMs: number;
  readonly connectionTimeoutMillis: number;
}

/** Looks for weaknesses of the server, the pool and the tables. */
export async function examine(
  session: Session,
  { tokens, usage, leases, requests, channel }: Tables,
  statements: Readonly<Record<'inspect' | 'shape' | 'overdue' | 'overdueRequests', PostgresQuery>>,
): Promise<StoreFinding[]> {
  const { pool, deadlineMs } = session;
  const ask = async <Row>(query: PostgresQuery, value: unknown): Promise<Row> => {
    const [row] = await withDeadline(session.read(query, [value]), deadlineMs).catch((error) => {
      throw session.toTokenError(error);
    });
    return row as Row;
  };
  const { answer, skewMs } = await measureSkew(
    () => ask<Inspection>(statements.inspect, tokens.name),
    ({ now }) => Number(now),
  );
  const found = findingsOf(CHECKS, {
    ...answer,
    state: stateOf(answer, tokens),
    missing: missingIn(answer, tokens),
    collated: collatedIn(answer, tokens),
    skewMs,
    isDeaf: !answer.isReplica && pool.options.max > 1 && (await isDeaf(session, channel)),
    deadlineMs,
    connectionTimeoutMillis: pool.options.connectionTimeoutMillis ?? 0,
  });
  // `migrate` makes all tables, so the finding about this one is enough.
  if (found.some(({ code }) => code === 'schema_missing')) return found;
  const used = factsIn(await ask(statements.shape, usage.name), usage);
  const purgedFacts = async (table: Table, query: PostgresQuery) => {
    const facts = factsIn(await ask(statements.shape, table.name), table);
    if (!facts.isThere || facts.missing.length > 0) return facts;
    const { count } = await ask<{ count: string }>(query, overdueBefore());
    return { ...facts, overdue: Number(count) };
  };
  return [
    ...found,
    ...partFindings('leases', await purgedFacts(leases, statements.overdue)),
    ...partFindings('usage', used),
    ...partFindings('requests', await purgedFacts(requests, statements.overdueRequests)),
  ];
}

function factsIn(shape: Shape, table: Table) {
  return {
    isThere: shape.kind !== null,
    version: knownVersion(table),
    mark: readMark(shape.comment, table.kind),
    missing: shape.kind === null ? [] : missingIn(shape, table),
  };
}

function stateOf(shape: Shape, table: Table): Facts['state'] {
  if (shape.kind === null) return 'missing';
  const mark = readMark(shape.comment, table.kind);
  if (mark !== undefined) return schemaState(mark, knownVersion(table));
  return hasColumns(shape, table) ? 'current' : 'foreign';
}

const CHECKS: readonly Check<Facts>[] = [
  {
    code: 'schema_missing',
    isFound: ({ state }) => ['missing', 'foreign', 'older'].includes(state),
    message: ({ state }) =>
      `no token can be read or written: the table ${state === 'missing' ? 'does not exist' : 'is not up to date, or was not created by tokenwright'}; call migrate(), or run the SQL of migrationSql()`,
  },
  {
    code: 'schema_older',
    isFound: ({ state }) => state === 'development',
    message: () => `calls may fail: the table is too old: ${SCHEMA_OF_DEVELOPMENT}`,
  },
  {
    code: 'schema_newer',
    isFound: ({ state }) => state === 'newer',
    message: () => SCHEMA_NEWER,
  },
  {
    code: 'schema_differs',
    isFound: ({ state, missing }) =>
      (state === 'current' || state === 'newer') && missing.length > 0,
    message: ({ missing }) =>
      `calls may fail or read the whole table: the table lacks ${missing.join(', ')}; add them as in migrationSql()`,
  },
  {
    code: 'encoding',
    isFound: ({ encoding }) => !isWholeEncoding(encoding),
    message: ({ encoding }) =>
      `names and metadata with other characters than those of ${encoding} are refused: that is the encoding of the database; create one with the encoding UTF8, and copy the tokens`,
  },
  {
    code: 'collation_not_c',
    isFound: ({ collated }) => collated.length > 0,
    message: ({ collated }) =>
      `text may not be compared byte by byte, so that pages may skip tokens: the collation of ${collated.join(', ')} must be "C"`,
  },
  {
    code: 'replica',
    isFound: ({ isReplica }) => isReplica,
    message: () =>
      'revoked tokens may still be accepted, and all writes fail: the pool is connected to a replica; connect it to the primary',
  },
  {
    code: 'synchronous_commit_off',
    isFound: ({ synchronousCommit }) => synchronousCommit === 'off',
    message: () =>
      'your own acknowledged writes may be lost in a crash: synchronous_commit is off; tokens are safe, because the store turns it on for each of its writes',
  },
  {
    code: 'fsync_off',
    isFound: ({ fsync }) => fsync === 'off',
    message: () =>
      'if the machine goes down, acknowledged writes may be lost and the database damaged: fsync is off; turn it on',
  },
  {
    code: 'full_page_writes_off',
    isFound: ({ fullPageWrites }) => fullPageWrites === 'off',
    message: () =>
      'if the machine goes down during a write, tokens may be damaged: full_page_writes is off; turn it on, unless the file system writes whole pages',
  },
  {
    code: 'isolation_not_read_committed',
    isFound: ({ isolation }) => isolation !== 'read committed',
    message: ({ isolation }) =>
      `conflicting writes are retried, each time on a new connection, and may fail with store_unavailable under load: default_transaction_isolation is "${isolation}"; set "read committed" for the role of the pool`,
  },
  {
    code: 'clock_skew',
    isFound: ({ skewMs }) => skewMs > MAX_SKEW_MS,
    message: ({ skewMs }) =>
      `tokens may be accepted after their expiry or refused before it: the clocks of this process and of the server differ by ${skewMs} ms; synchronize them`,
  },
  {
    code: 'watch_deaf',
    isFound: ({ isDeaf }) => isDeaf,
    message: () =>
      'a change is noticed by the caches of other processes after maxStaleMs only: a pooler in transaction mode loses notifications; let the pool connect directly, or through a pooler in session mode',
  },
  {
    code: 'no_statement_timeout',
    isFound: ({ statementTimeoutMs }) => statementTimeoutMs === 0,
    message: ({ deadlineMs }) =>
      `statements that timed out here continue in the server and may use up its connections: there is no statement_timeout; set it in the options of the pool or for its role, to ${deadlineMs} ms`,
  },
  {
    code: 'no_connection_timeout',
    isFound: ({ connectionTimeoutMillis }) => connectionTimeoutMillis === 0,
    message: ({ deadlineMs }) =>
      `while the server is down, calls pile up and may block the pool for long afterwards: set connectionTimeoutMillis in the options of the pool to ${deadlineMs} or less`,
  },
];
