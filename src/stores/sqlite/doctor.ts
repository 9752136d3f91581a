import { isTokenError } from '../../errors.ts';
import type { DoctorOptions, StoreFinding } from '../../ports/token-store.ts';
import {
  type Check,
  findingsOf,
  MAX_OVERDUE,
  overdueBefore,
  partFindings,
} from '../shared/doctor.ts';
import { cellsOf, type SqliteHandle } from './client.ts';
import type { Connection } from './connection.ts';
import { INDEXES } from './schema.ts';

/** Gives the first cell of an answer. */
type ReadPragma = (sql: string) => unknown;

const COUNT_INDEXES = `
  SELECT count(*) FROM pragma_index_list('tokens')
  WHERE name IN (${INDEXES.map((name) => `'${name}'`).join(', ')})
`;

const CHECKS: readonly Check<ReadPragma>[] = [
  {
    code: 'synchronous_off',
    isFound: (read) => Number(read('PRAGMA synchronous')) < 2,
    message: () =>
      'after a power failure, new tokens may be missing and revoked ones valid again: synchronous is below FULL on this connection; open the store after you set your own pragmas',
  },
  {
    code: 'journal_not_wal',
    isFound: (read) => !['wal', 'memory'].includes(String(read('PRAGMA journal_mode'))),
    message: (read) =>
      `readers wait for writers: journal_mode is ${read('PRAGMA journal_mode')}; put the file on a local disk, where WAL works`,
  },
  {
    code: 'index_missing',
    isFound: (read) => Number(read(COUNT_INDEXES)) < INDEXES.length,
    message: () =>
      `with many tokens, calls block the process for long: an index is missing; create all of ${INDEXES.join(', ')}, as in a new file of tokenwright`,
  },
];

/** Reads the whole file. */
const FULL_CHECKS: readonly Check<ReadPragma>[] = [
  {
    code: 'database_damaged',
    isFound: (read) => read('PRAGMA integrity_check(1)') !== 'ok',
    message: () => 'the file is damaged, according to integrity_check: restore it from a backup',
  },
];

const FILE_REPLACED = {
  code: 'file_replaced',
  message:
    'calls fail: the database file, or the -wal or -shm file beside it, was removed or replaced while it was open; put it back, or restart this process',
};

/** Looks for faults of the database of the tokens. */
export function examine(connection: Connection, { full = false }: DoctorOptions): StoreFinding[] {
  const opened = connection.peek();
  if (opened === undefined) return [FILE_REPLACED];
  const checks = full ? [...CHECKS, ...FULL_CHECKS] : CHECKS;
  return findingsOf(checks, (sql) => {
    const row = opened.handle.prepare(sql).get();
    return Object.values(row as object)[0];
  });
}

/** A table whose rows are purged. */
interface PurgedTable {
  readonly part: 'leases' | 'requests';
  readonly table: string;
  /** The column that says when a row ends. */
  readonly end: string;
  readonly indexes: readonly string[];
}

/** Looks for faults of a database of leases or requests. One of another version does not open. */
export function examineRows(
  handle: SqliteHandle,
  { part, table, end, indexes }: PurgedTable,
): StoreFinding[] {
  const count = (sql: string) => Number(cellsOf(handle.prepare(sql).get())[0]);
  const has = (index: string) =>
    count(`SELECT count(*) FROM pragma_index_list('${table}') WHERE name = '${index}'`) === 1;
  return partFindings(part, {
    isThere: true,
    version: 1,
    mark: undefined,
    missing: indexes.filter((index) => !has(index)).map((index) => `the index ${index}`),
    overdue: count(`SELECT count(*) FROM (
      SELECT 1 FROM ${table} WHERE ${end} < ${overdueBefore()} LIMIT ${MAX_OVERDUE})`),
  });
}

const UNUSABLE = {
  usage: 'uses of tokens can be neither counted nor shown',
  leases: 'tokens with limited uses are refused',
  requests: 'requests for tokens can be neither made nor decided',
};

/** The findings about a database beside that of the tokens. Never rejects. */
export async function examinePart(
  part: keyof typeof UNUSABLE,
  find: () => Promise<StoreFinding[]>,
): Promise<StoreFinding[]> {
  try {
    return (await find()).map((finding) => ({ ...finding, part }));
  } catch (error) {
    const reason = isTokenError(error) ? error.message : 'it does not answer';
    return [{ code: `${part}_unusable`, message: `${UNUSABLE[part]}: ${reason}`, part }];
  }
}
