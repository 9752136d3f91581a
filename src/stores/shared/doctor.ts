import type { StoreFinding } from '../../ports/token-store.ts';
import { systemClock } from '../../time/clock.ts';

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
