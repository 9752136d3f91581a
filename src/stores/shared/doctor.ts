import type { StoreFinding } from '../../ports/token-store.ts';
import { systemClock } from '../../time/clock.ts';
import { SCHEMA_OF_DEVELOPMENT, type SchemaMark, schemaState } from './schema-mark.ts';

/** A weakness that a doctor looks for, in the facts that it has gathered. */
export interface Check<Facts> {
  readonly code: string;
  isFound(facts: Facts): boolean;
  message(facts: Facts): string;
}

/** Reports what is found, in the order of the checks. */
export function findingsOf<Facts>(checks: readonly Check<Facts>[], facts: Facts): StoreFinding[] {
  return checks
    .filter((check) => check.isFound(facts))
    .map((check) => ({ code: check.code, message: check.message(facts) }));
}

/** Clocks that differ by more than this are a finding. */
export const MAX_SKEW_MS = 1000;

/**
 * Asks a server for its time, and computes by how many milliseconds its clock differs from the one of
 * this machine, at least. The server may have read its clock at any time between the question and the
 * answer, so only a time outside of these two counts as skew.
 */
export async function measureSkew<Answer>(
  ask: () => Promise<Answer>,
  timeIn: (answer: Answer) => number,
): Promise<{ readonly answer: Answer; readonly skewMs: number }> {
  const askedAt = systemClock.now().getTime();
  const answer = await ask();
  const answeredAt = systemClock.now().getTime();
  const time = timeIn(answer);
  return { answer, skewMs: Math.round(Math.max(0, askedAt - time, time - answeredAt)) };
}

/** Facts that a database reports about its table of usage, leases or requests. */
interface PartFacts {
  readonly isThere: boolean;
  /** The schema version that this code makes. */
  readonly version: number;
  /** Undefined if the table has no mark. */
  readonly mark: SchemaMark | undefined;
  /** The columns and indexes that it lacks, in words. */
  readonly missing: readonly string[];
  /** How many rows should have been purged; at most {@link MAX_OVERDUE}. @default 0 */
  readonly overdue?: number;
}

/** The count of overdue rows stops here. */
export const MAX_OVERDUE = 1001;

/** A service purges every few hours, and keeps a row for an hour after its end. */
const OVERDUE_MS = 86_400_000;

const CURE = 'run tokenwright store migrate, or call migrate()';

/** What a table is for, and what is at risk if it is missing, old, newer than this code or not whole. */
const RISKS = {
  usage: {
    purpose: 'counts them',
    missing: 'uses of tokens can be neither counted nor shown: the table that counts them',
    old: 'uses of tokens may be neither counted nor shown: the table that counts them',
    newer: 'uses of tokens may be miscounted',
    differs: 'calls that count uses of tokens may fail or read the whole table',
    grows: 'counts uses of tokens',
  },
  leases: {
    purpose: 'counts them',
    missing: 'tokens with limited uses are refused: the table that counts them',
    old: 'tokens with limited uses may be refused: the table that counts them',
    newer: 'uses of limited tokens may be miscounted',
    differs: 'calls that count the uses of limited tokens may fail or read the whole table',
    grows: 'counts uses of limited tokens',
  },
  requests: {
    purpose: 'holds them',
    missing: 'requests for tokens can be neither made nor decided: the table that holds them',
    old: 'requests for tokens may be neither made nor decided: the table that holds them',
    newer: 'requests for tokens may be misread',
    differs: 'calls about requests for tokens may fail or read the whole table',
    grows: 'holds requests for tokens',
  },
} as const;

function checksOf(part: keyof typeof RISKS): readonly Check<PartFacts>[] {
  const risk = RISKS[part];
  const stateOf = ({ mark, version }: PartFacts) => mark && schemaState(mark, version);
  return [
    {
      code: `${part}_missing`,
      isFound: ({ isThere }) => !isThere,
      message: () => `${risk.missing} does not exist; ${CURE}`,
    },
    {
      code: `${part}_newer`,
      isFound: (facts) => stateOf(facts) === 'newer',
      message: () =>
        `${risk.newer}: a later version of tokenwright changed the table that ${risk.purpose} in a way that this version does not know; upgrade tokenwright`,
    },
    {
      code: `${part}_older`,
      isFound: (facts) => stateOf(facts) === 'older',
      message: () => `${risk.old} is of an earlier version; ${CURE}`,
    },
    {
      code: `${part}_older`,
      isFound: (facts) => stateOf(facts) === 'development',
      message: () => `${risk.old} is too old: ${SCHEMA_OF_DEVELOPMENT}`,
    },
    {
      code: `${part}_differ`,
      isFound: ({ missing }) => missing.length > 0,
      message: ({ missing }) =>
        `${risk.differs}: it lacks ${missing.join(', ')}; add them as in migrationSql(), which tokenwright store migrate --print shows`,
    },
    {
      code: `${part}_not_purged`,
      isFound: ({ overdue = 0 }) => overdue > 0,
      message: ({ overdue }) => {
        const count = overdue === MAX_OVERDUE ? `more than ${MAX_OVERDUE - 1}` : String(overdue);
        return `the table that ${risk.grows} grows without end: ${count} of its rows ended more than a day ago, and no service removes them; let one run with upkeep(), as serve does unless --purge-after is off`;
      },
    },
  ];
}

/** Reports the faults of a table beside that of the tokens. */
export function partFindings(part: keyof typeof RISKS, facts: PartFacts): StoreFinding[] {
  return findingsOf(checksOf(part), facts).map((finding) => ({ ...finding, part }));
}

/** Rows that ended before this should be gone, in milliseconds since 1970. */
export function overdueBefore(): number {
  return systemClock.now().getTime() - OVERDUE_MS;
}
