import type { StoreFinding } from '../../ports/token-store.ts';
import { type Check, findingsOf, MAX_SKEW_MS, measureSkew } from '../shared/doctor.ts';
import { COLUMNS } from '../shared/rows.ts';
import { SCHEMA_NEWER } from '../shared/schema-mark.ts';
import { AUTOCOMMIT_OFF, type Session } from './client.ts';
import {
  COLUMN_BYTES,
  INDEXES,
  indexesOf,
  isTable,
  SCHEMA_VERSION,
  type Table,
  tableStateOf,
} from './schema.ts';
import { SERVER_TIME } from './statements.ts';

interface Facts {
  readonly settings: ReadonlyMap<string, string>;
  readonly skewMs: number;
  /** Undefined when there is no table. */
  readonly engine: string | undefined;
  readonly isNewer: boolean;
  readonly columns: ReadonlyMap<string, { readonly isText: boolean; readonly bytes: number }>;
  readonly indexes: ReadonlySet<string>;
  readonly deadlineMs: number;
  readonly connectTimeoutMs: number | undefined;
}

/** Looks for weaknesses of the server, the table and the pool. */
export async function examine(session: Session, table: Table): Promise<StoreFinding[]> {
  const variables = await session.query('SHOW VARIABLES');
  const columns = await session.query(
    `SELECT COLUMN_NAME AS name, COLLATION_NAME IS NOT NULL AS is_text,
       CHARACTER_MAXIMUM_LENGTH AS bytes
     FROM information_schema.COLUMNS WHERE ${isTable(table)}`,
  );
  const indexes = await indexesOf(session, table);
  const { skewMs } = await measureSkew(
    () => session.query(`SELECT ${SERVER_TIME} AS server_time`),
    ([row]) => Number(row?.['server_time']) / 1000,
  );
  const state = await tableStateOf(session, table);
  return findingsOf(CHECKS, {
    settings: new Map(variables.map((row) => [String(row['Variable_name']), String(row['Value'])])),
    skewMs,
    engine: state?.engine,
    isNewer: (state?.mark?.needs ?? 0) > SCHEMA_VERSION,
    columns: new Map(
      columns.map(({ name, is_text, bytes }) => [
        String(name),
        { isText: Number(is_text) === 1, bytes: Number(bytes) },
      ]),
    ),
    indexes,
    deadlineMs: session.deadlineMs,
    connectTimeoutMs: session.connectTimeoutMs,
  });
}

function missingParts({ columns, indexes }: Facts): string[] {
  const bytes: ReadonlyMap<string, number> = new Map(Object.entries(COLUMN_BYTES));
  const names = [...COLUMNS, 'changed_at', 'ends_at', 'revoked_as'];
  return [
    ...names.filter((name) => (columns.get(name)?.bytes ?? -1) < (bytes.get(name) ?? 0)),
    ...INDEXES.filter((name) => !indexes.has(name)),
  ];
}

function textColumns({ columns }: Facts): string[] {
  return Object.keys(COLUMN_BYTES).filter((name) => columns.get(name)?.isText);
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
    code: 'schema_newer',
    isFound: ({ isNewer }) => isNewer,
    message: () => SCHEMA_NEWER,
  },
  {
    code: 'schema_differs',
    isFound: (facts) => facts.engine !== undefined && missingParts(facts).length > 0,
    message: (facts) =>
      `the table of tokens differs from the one that migrate creates: these columns or indexes are missing or too short: ${missingParts(facts).join(', ')}`,
  },
  {
    code: 'column_not_binary',
    isFound: (facts) => textColumns(facts).length > 0,
    message: (facts) =>
      `different ids or accounts may compare as equal: these columns have a collation, but must be VARBINARY or BLOB: ${textColumns(facts).join(', ')}`,
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
