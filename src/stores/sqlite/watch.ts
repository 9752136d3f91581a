import { clearInterval, setInterval } from '../../time/timers.ts';
import type { Connection } from './connection.ts';

const POLL_MS = 25;

/** Polls SQLite's count of the commits of other connections. Returns a function that stops it. */
export function watchCommits(connection: Connection, onCommit: () => void): () => void {
  let seen = readState(connection);
  const timer = setInterval(() => {
    const version = readState(connection);
    if (version === undefined || version !== seen) onCommit();
    seen = version;
  }, POLL_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Undefined if the database does not answer, or is not the one that others open. */
function readState(connection: Connection): string | undefined {
  try {
    const opened = connection.peek();
    if (opened === undefined) return undefined;
    const row = opened.statements.dataVersion.get() as { data_version: unknown };
    return `${opened.serial} ${row.data_version}`;
  } catch {
    return undefined;
  }
}
