/** Whether a store answered with a count: a whole number of 0 or more. */
export function isCount(answer: unknown): answer is number {
  return Number.isSafeInteger(answer) && (answer as number) >= 0;
}

/** Whether a store answered with a valid time. */
export function isTime(answer: unknown): answer is Date {
  return answer instanceof Date && Number.isFinite(answer.getTime());
}
