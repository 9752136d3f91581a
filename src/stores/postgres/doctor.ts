import type { StoreFinding } from '../../ports/token-store.ts';
import { withDeadline } from '../../time/deadline.ts';
import { type Check, findingsOf, MAX_SKEW_MS, measureSkew } from '../shared/doctor.ts';
import { readMark, SCHEMA_NEWER } from '../shared/schema-mark.ts';
import type { PostgresQuery, Session } from './client.ts';
import { SCHEMA_VERSION, type Table } from './schema.ts';
import {
  collatedIn,
  hasFirstColumns,
  lacksColumns,
  missingIn,
  SHAPE,
  type Shape,
} from './shape.ts';

export const INSPECT = `
${SHAPE},
    pg_is_in_recovery() AS "isReplica",
    current_setting('synchronous_commit') AS "synchronousCommit",
    current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS "fullPageWrites",
    current_setting('default_transaction_isolation') AS isolation,
    (SELECT setting::integer FROM pg_settings WHERE name = 'statement_timeout')
      AS "statementTimeoutMs",
    floor(extract(epoch FROM clock_timestamp()) * 1000)::text AS now`;

/** The answer to {@link INSPECT}. */
interface Inspection extends Shape {
  readonly isReplica: boolean;
  readonly synchronousCommit: string;
  readonly fsync: string;
  readonly fullPageWrites: string;
  readonly isolation: string;
  readonly statementTimeoutMs: number;
  readonly now: string;
}

interface Facts extends Inspection {
  readonly missing: readonly string[];
  readonly collated: readonly string[];
  readonly skewMs: number;
  readonly deadlineMs: number;
  readonly connectionTimeoutMillis: number;
}

/** Looks for weaknesses. `inspect` is the statement that asks {@link INSPECT}. */
export async function examine(
  session: Session,
  table: Table,
  inspect: PostgresQuery,
): Promise<StoreFinding[]> {
  const { pool, deadlineMs } = session;
  const ask = async () => (await session.run(inspect, [table.name]))[0] as Inspection;
  const { answer, skewMs } = await measureSkew(
    () => withDeadline(ask(), deadlineMs),
    ({ now }) => Number(now),
  ).catch((error) => {
    throw session.toTokenError(error);
  });
  return findingsOf(CHECKS, {
    ...answer,
    missing: missingIn(answer, table),
    collated: collatedIn(answer),
    skewMs,
    deadlineMs,
    connectionTimeoutMillis: pool.options.connectionTimeoutMillis ?? 0,
  });
}

/** The table is missing, of an older version, or not a table of tokens. */
function isUnusable(facts: Facts): boolean {
  const mark = readMark(facts.comment);
  if (facts.kind === null) return true;
  if (mark !== undefined) return mark.version < SCHEMA_VERSION;
  return !hasFirstColumns(facts) || lacksColumns(facts);
}

const CHECKS: readonly Check<Facts>[] = [
  {
    code: 'schema_missing',
    isFound: isUnusable,
    message: ({ kind }) =>
      `no token can be read or written: the table ${kind === null ? 'does not exist' : 'is not up to date, or was not created by tokenwright'}; call migrate(), or run the SQL of migrationSql()`,
  },
  {
    code: 'schema_newer',
    isFound: ({ comment }) => (readMark(comment)?.needs ?? 0) > SCHEMA_VERSION,
    message: () => SCHEMA_NEWER,
  },
  {
    code: 'schema_differs',
    isFound: (facts) => !isUnusable(facts) && facts.missing.length > 0,
    message: ({ missing }) =>
      `calls may fail or read the whole table: the table lacks ${missing.join(', ')}; add them as in migrationSql()`,
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
