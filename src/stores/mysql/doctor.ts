import type { StoreFinding } from '../../ports/token-store.ts';
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
  SCHEMA_NEWER,
  SCHEMA_OF_DEVELOPMENT,
  type SchemaMark,
  schemaState,
} from '../shared/schema-mark.ts';
import { AUTOCOMMIT_OFF, type Session } from './client.ts';
import { isTable, type Table, tableStateOf } from './migration.ts';
import { SERVER_TIME, type Tables } from './schema.ts';

/** What a table is like. */
interface Shape {
  /** Undefined when there is no table. */
  readonly engine: string | undefined;
  /** Undefined when it is not ours. */
  readonly mark: SchemaMark | undefined;
  /** The columns that it lacks, or that are too short. */
  readonly columns: readonly string[];
  /** The indexes that it lacks. */
  readonly keys: readonly string[];
  /** The columns of bytes that have a collation. */
  readonly collated: readonly string[];
}

interface Facts extends Shape {
  readonly settings: ReadonlyMap<string, string>;
  readonly skewMs: number;
  readonly state: ReturnType<typeof schemaState> | undefined;
  readonly deadlineMs: number;
  readonly connectTimeoutMs: number | undefined;
}

/** Looks for weaknesses of the server, the pool and the tables. */
export async function examine(
  session: Session,
  { tokens, usage, leases, requests }: Tables,
): Promise<StoreFinding[]> {
  const variables = await session.query('SHOW VARIABLES');
  const shape = await shapeOf(session, tokens);
  const { skewMs } = await measureSkew(
    () => session.query(`SELECT ${SERVER_TIME} AS server_time`),
    ([row]) => Number(row?.['server_time']) / 1000,
  );
  const found = findingsOf(CHECKS, {
    ...shape,
    settings: new Map(variables.map((row) => [String(row['Variable_name']), String(row['Value'])])),
    skewMs,
    state: shape.mark && schemaState(shape.mark, knownVersion(tokens)),
    deadlineMs: session.deadlineMs,
    connectTimeoutMs: session.connectTimeoutMs,
  });
  // `migrate` creates all tables, so the finding about this one is enough.
  if (shape.engine === undefined) return found;
  const factsOf = async (table: Table) => factsIn(await shapeOf(session, table), table);
  const purgedFacts = async (table: Table, end: string) => {
    const facts = await factsOf(table);
    const isWhole = facts.isThere && facts.missing.length === 0;
    return { ...facts, overdue: isWhole ? await overdueIn(session, table, end) : 0 };
  };
  return [
    ...found,
    ...partFindings('leases', await purgedFacts(leases, 'ends_at')),
    ...partFindings('usage', await factsOf(usage)),
    ...partFindings('requests', await purgedFacts(requests, 'expires_at')),
  ];
}

async function shapeOf(session: Session, table: Table): Promise<Shape> {
  const columns = await session.query(
    `SELECT COLUMN_NAME AS name, COLLATION_NAME IS NOT NULL AS is_text,
       CHARACTER_MAXIMUM_LENGTH AS bytes
     FROM information_schema.COLUMNS WHERE ${isTable(table)}`,
  );
  const indexes = await session.query(
    `SELECT INDEX_NAME AS name FROM information_schema.STATISTICS WHERE ${isTable(table)}`,
  );
  const byName = new Map(columns.map((column) => [String(column['name']), column]));
  const keys = new Set(indexes.map(({ name }) => String(name)));
  const state = await tableStateOf(session, table);
  const ours = Object.entries(table.columns);
  return {
    engine: state?.engine,
    mark: state?.mark,
    columns: ours
      .filter(([name, { bytes = 0 }]) => {
        const column = byName.get(name);
        return column === undefined || Number(column['bytes']) < bytes;
      })
      .map(([name]) => name),
    keys: Object.keys(table.keys).filter((name) => !keys.has(name)),
    collated: ours
      .filter(
        ([name, { bytes }]) => bytes !== undefined && Number(byName.get(name)?.['is_text']) === 1,
      )
      .map(([name]) => name),
  };
}

function factsIn({ engine, mark, columns, keys }: Shape, table: Table) {
  const isThere = engine !== undefined;
  const missing = [
    ...columns.map((name) => `the column ${name}`),
    ...keys.map((name) => `the index ${name}`),
    ...(engine === 'InnoDB' ? [] : ['the engine InnoDB']),
  ];
  return { isThere, version: knownVersion(table), mark, missing: isThere ? missing : [] };
}

/** That of no request has no end. */
async function overdueIn(session: Session, { quoted }: Table, end: string): Promise<number> {
  const [row] = await session.query(
    `SELECT COUNT(*) AS overdue FROM (
       SELECT 1 FROM ${quoted} WHERE ${end} < ${overdueBefore()} AND ${end} > 0 LIMIT ${MAX_OVERDUE}
     ) AS counted`,
  );
  return Number(row?.['overdue']);
}

const MIN_PACKET = 16 * 1024 * 1024;

/** A setting that the server does not know is not a finding. */
const CHECKS: readonly Check<Facts>[] = [
  {
    code: 'schema_missing',
    isFound: ({ engine }) => engine === undefined,
    message: () => 'there is no table of tokens, so every call fails: call migrate',
  },
  {
    code: 'schema_older',
    isFound: ({ state }) => state === 'development',
    message: () => `calls may fail: the table of tokens is too old: ${SCHEMA_OF_DEVELOPMENT}`,
  },
  {
    code: 'schema_newer',
    isFound: ({ state }) => state === 'newer',
    message: () => SCHEMA_NEWER,
  },
  {
    code: 'schema_differs',
    isFound: ({ engine, columns, keys }) =>
      engine !== undefined && columns.length + keys.length > 0,
    message: ({ columns, keys }) =>
      `the table of tokens differs from the one that migrate creates: these columns or indexes are missing or too short: ${[...columns, ...keys].join(', ')}`,
  },
  {
    code: 'column_not_binary',
    isFound: ({ collated }) => collated.length > 0,
    message: ({ collated }) =>
      `different ids or accounts may compare as equal: these columns have a collation, but must be VARBINARY or BLOB: ${collated.join(', ')}`,
  },
  {
    code: 'engine_not_innodb',
    isFound: ({ engine }) => engine !== undefined && engine !== 'InnoDB',
    message: ({ engine }) =>
      `changes may be lost or only partly made, because the engine of the table is ${engine}: run ALTER TABLE … ENGINE=InnoDB`,
  },
  {
    code: 'autocommit_off',
    isFound: ({ settings }) => settings.get('autocommit') === 'OFF',
    message: () => AUTOCOMMIT_OFF,
  },
  {
    code: 'log_not_flushed_at_commit',
    isFound: ({ settings }) =>
      ['0', '2'].includes(settings.get('innodb_flush_log_at_trx_commit') ?? '1'),
    message: () =>
      'a crash of the server can undo acknowledged changes: set innodb_flush_log_at_trx_commit = 1',
  },
  {
    code: 'binlog_not_synced',
    isFound: ({ settings }) =>
      settings.get('log_bin') === 'ON' && settings.get('sync_binlog') !== '1',
    message: () =>
      'a crash of the server can truncate its binary log, so that replicas miss acknowledged changes: set sync_binlog = 1',
  },
  {
    code: 'read_only',
    isFound: ({ settings }) =>
      ['read_only', 'super_read_only', 'innodb_read_only'].some(
        (name) => (settings.get(name) ?? 'OFF') !== 'OFF',
      ),
    message: () =>
      'the server is read-only, probably a replica: writes fail, and revoked tokens may still be accepted; connect to the primary',
  },
  {
    code: 'isolation_read_uncommitted',
    isFound: ({ settings }) =>
      (settings.get('transaction_isolation') ?? settings.get('tx_isolation')) ===
      'READ-UNCOMMITTED',
    message: () =>
      'reads see changes that may still be rolled back: set the isolation level of the pool to READ COMMITTED or higher',
  },
  {
    code: 'cluster_reads_stale',
    isFound: ({ settings }) =>
      settings.get('wsrep_on') === 'ON' && Number(settings.get('wsrep_sync_wait')) % 2 === 0,
    message: () =>
      'after a revocation on one node of the cluster, the other nodes may accept the token for a moment: set wsrep_sync_wait = 1',
  },
  {
    code: 'packets_too_small',
    isFound: ({ settings }) =>
      Number(settings.get('max_allowed_packet') ?? MIN_PACKET) < MIN_PACKET,
    message: () =>
      'tokens with thousands of long scopes cannot be stored: set max_allowed_packet to 16M or more',
  },
  {
    code: 'clock_skew',
    isFound: ({ skewMs }) => skewMs > MAX_SKEW_MS,
    message: ({ skewMs }) =>
      `the clocks of the server and of this machine differ by ${skewMs} ms, and tokens expire by the clock of this machine: synchronize the clocks of all machines, for example with NTP`,
  },
  {
    code: 'connect_timeout_too_long',
    isFound: ({ connectTimeoutMs: timeoutMs, deadlineMs }) =>
      timeoutMs !== undefined && (timeoutMs === 0 || timeoutMs > deadlineMs),
    message: ({ deadlineMs }) =>
      `after an outage, connection attempts that hang can block the pool long after the server works again: set connectTimeout in the options of the pool to ${deadlineMs} or less`,
  },
];
