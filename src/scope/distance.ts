/** The work left for a search, in cells of the matrix: comparisons of two characters. */
export interface StepBudget {
  left: number;
}

/** One row of the matrix. Shared between calls, which is safe because none of them awaits. */
const row: number[] = [];

/**
 * Levenshtein distance, or `limit` if it is not less. Looks only at the cells that a path of this
 * length can reach (Ukkonen, 1985): fewer than `2 * limit` for each character. Returns `limit` when
 * the budget runs out.
 */
export function editDistance(
  a: string,
  b: string,
  limit: number,
  budget: StepBudget = { left: Infinity },
): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  // A common prefix costs no edits.
  let start = 0;
  while (start < a.length && a.charCodeAt(start) === b.charCodeAt(start)) start += 1;
  budget.left -= start;
  const rows = a.length - start;
  const columns = b.length - start;

  for (let column = 0; column <= columns; column++) row[column] = Math.min(column, limit);
  for (let i = 1; i <= rows; i++) {
    const first = Math.max(1, i - limit);
    const last = Math.min(columns, i + limit);
    budget.left -= last - first + 1;
    if (budget.left < 0) return limit;
    let diagonal = row[first - 1] as number;
    let left = Math.min(i, limit);
    row[first - 1] = left;
    let least = left;
    const unit = a.charCodeAt(start + i - 1);
    for (let column = first; column <= last; column++) {
      const above = row[column] as number;
      const isSame = unit === b.charCodeAt(start + column - 1);
      left = isSame ? diagonal : Math.min(limit, 1 + Math.min(diagonal, above, left));
      diagonal = above;
      row[column] = left;
      least = Math.min(least, left);
    }
    if (least === limit) return limit;
  }
  return row[columns] as number;
}
