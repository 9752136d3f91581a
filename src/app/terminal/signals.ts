/** The signals by which people and systems end a process. */
export const ENDINGS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Ends the process by a signal that it no longer handles. Not by exit alone, which would wait for threads. */
export function endBy(signal: NodeJS.Signals, number: number): void {
  process.kill(process.pid, signal);
  // The first process of a container ignores it.
  if (process.pid === 1) process.exit(128 + number);
}
