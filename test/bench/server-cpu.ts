// The CPU of a database, which is in none of our processes.
import { readdirSync, readFileSync } from 'node:fs';

/** What each process of a server has used, by its id; Linux tells in hundredths of a second. */
export function serverCpuUs(parent: number): Map<string, number> {
  const used = new Map<string, number>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (Number(fields[1]) !== parent) continue;
      used.set(pid, (Number(fields[11]) + Number(fields[12])) * 10_000);
    } catch {
      // It has just ended.
    }
  }
  return used;
}

export function serverCpuSince(parent: number, before: ReadonlyMap<string, number>): number {
  const now = [...serverCpuUs(parent)];
  return now.reduce((sum, [pid, us]) => sum + us - (before.get(pid) ?? 0), 0);
}
