import { systemClock } from '../../time/clock.ts';
import type { SideSchema } from './side-database.ts';

/** Creates the tables that are missing. Counts from version 1 are known to be complete only from now on. */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS uses (
    id TEXT NOT NULL,
    scope TEXT NOT NULL,
    uses INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    PRIMARY KEY (id, scope)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS refusals (
    id TEXT NOT NULL PRIMARY KEY,
    refusals INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE counted_since (
    since INTEGER NOT NULL
  ) STRICT;
`;

/** The database of usage. A loss of power may cost the last counts; a killed process loses nothing. */
export const USAGE: SideSchema = {
  holds: 'usage',
  // `TWUS`
  applicationId: 0x54575553,
  version: 2,
  synchronous: 'NORMAL',
  create(handle) {
    handle.exec(SCHEMA);
    handle.exec(`INSERT INTO counted_since VALUES (${systemClock.now().getTime()})`);
  },
};
