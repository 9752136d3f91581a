import type { StoreFinding } from '../../ports/token-store.ts';
import { systemClock } from '../../time/clock.ts';
import { type Check, findingsOf } from './doctor.ts';
import type { SchemaMark } from './schema-mark.ts';

/** Facts that a database reports about its table of leases. */
export interface LeaseFacts {
  readonly isThere: boolean;
  /** The schema version that this code makes. */
  readonly version: number;
  /** Undefined if the table has no mark. */
  readonly mark: SchemaMark | undefined;
  /** The columns and indexes that it lacks, in words. */
  readonly missing: readonly string[];
  /** How many counts should have been purged; at most {@link MAX_OVERDUE}. */
  readonly overdue: number;
}

/** The count of overdue rows stops here. */
export const MAX_OVERDUE = 1001;

/** A service purges every few hours, and keeps a count for an hour after its end. */
const OVERDUE_MS = 86_400_000;

const CURE = 'run tokenwright migrate, or call migrateLeases()';

const CHECKS: readonly Check<LeaseFacts>[] = [
  {
    code: 'leases_missing',
    isFound: ({ isThere }) => !isThere,
    message: () =>
      `tokens with limited uses are refused: the table that counts them does not exist; ${CURE}`,
  },
  {
    code: 'leases_newer',
    isFound: ({ mark, version }) => (mark?.needs ?? 0) > version,
    message: () =>
      'uses of limited tokens may be miscounted: a later version of tokenwright changed the table that counts them in a way that this version does not know; upgrade tokenwright',
  },
  {
    code: 'leases_older',
    isFound: ({ mark, version }) => (mark?.version ?? version) < version,
    message: () =>
      `tokens with limited uses may be refused: the table that counts them is of an earlier version; ${CURE}`,
  },
  {
    code: 'leases_differ',
    isFound: ({ missing }) => missing.length > 0,
    message: ({ missing }) =>
      `calls that count the uses of limited tokens may fail or read the whole table: it lacks ${missing.join(', ')}; add them as in leaseMigrationSql(), which tokenwright migrate --print shows`,
  },
  {
    code: 'leases_not_purged',
    isFound: ({ overdue }) => overdue > 0,
    message: ({ overdue }) => {
      const count = overdue === MAX_OVERDUE ? `more than ${MAX_OVERDUE - 1}` : String(overdue);
      return `the table that counts uses of limited tokens grows without end: ${count} of its rows ended more than a day ago, and no service removes them; let one run with upkeep(), as serve does unless --purge-after is off`;
    },
  },
];

/** Reports the faults of a table of leases. */
export function leaseFindings(facts: LeaseFacts): StoreFinding[] {
  return findingsOf(CHECKS, facts);
}

/** Counts that ended before this should be gone, in milliseconds since 1970. */
export function overdueBefore(): number {
  return systemClock.now().getTime() - OVERDUE_MS;
}
