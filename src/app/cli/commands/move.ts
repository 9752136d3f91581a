import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { stepsOf } from '../../../records/steps.ts';
import { count } from '../../../text/wording.ts';
import {
  readSettings,
  readVariable,
  STORE_SETTINGS,
  type StoreSettings,
} from '../../server/settings.ts';
import { backUp } from '../../server/stores/backup.ts';
import { backupCommand } from '../../server/stores/backup-command.ts';
import {
  type Compared,
  type Copied,
  compareRecords,
  copyRecords,
} from '../../server/stores/copy.ts';
import {
  type OpenStore,
  requireSqlite,
  type StoreTarget,
  storeTarget,
  withCopyTarget,
  withStore,
} from '../../server/stores/open.ts';
import { parseStoreUrl } from '../../server/stores/url.ts';
import { inputError, usageError } from '../../terminal/errors.ts';
import { type Command, command, type Outcome } from '../command.ts';
import { type Progress, progressOn } from '../progress.ts';
import { STORE_FLAGS } from './store-flags.ts';

const BACKUP_NOTE =
  'The keys are not in it: keep a copy of keys.json in another place. Without the same keys, no token of the backup is accepted.';

const STORE_FAULT = 'a store cannot be used, or its driver is not installed';

/** The commands that bring tokens to another place. */
export const MOVE_COMMANDS: readonly Command[] = [
  command({
    name: 'store backup',
    operands: ['FOLDER'],
    summary: 'copies the SQLite files, while the service runs',
    about: `It makes the folder, with copies of tokens.db, usage.db, leases.db and requests.db: the tokens, the counts
of their uses, those of limited tokens, and requests for tokens. Each is as it was at one instant, is checked, on disk, and for its owner
only. It never replaces anything. To restore it, stop the service, remove these files and those that begin with
their names, and put the copies in their place.

PostgreSQL, MySQL, MariaDB and Redis have tools of their own. With such a database it makes no backup: it prints
the command that does, and exits with 3.`,
    flags: STORE_FLAGS,
    json: '{ folder, files, records }; { command } for a database with a server',
    exits: {
      0: 'the backup is made',
      1: 'it is not, and nothing is left of it',
      3: 'no backup is made yet: run the printed command',
    },
    example: {
      call: 'store backup monday',
      output: 'wrote 2 records from SQLite in data/tokens.db to monday',
    },
    async run([folder = ''], flags) {
      const settings = readSettings(STORE_SETTINGS, flags);
      const target = storeTarget(settings);
      if (target.file === undefined) return serverBackup(settings, folder);
      requireSqlite();
      // Opens the store first: it says what is wrong with a file, and takes over an unfinished log.
      return withStore(target, (opened) => backedUp(target, opened, folder));
    },
  }),
  command({
    name: 'store copy',
    summary: 'copies all tokens to another store',
    about: `It copies from one store to another, such as from SQLite to PostgreSQL. All records are copied with every field, also revoked and expired ones, so that each value stays
valid as long as the keys stay the same: give the service at the new store the same keys.json. The
table in the target is made if it is missing. If it is interrupted, run it again: it goes on.
Nothing in the target is overwritten: a record that differs from the one to be copied is named, and
stays. Only a token that the target has in an earlier version is brought up to date.

The counts of uses are not copied, because a second run would count them twice. Open requests for tokens are not
copied either.

Stop the service before the last run. To keep the pause short, run it once while the service runs,
stop the service, and run it again. At the end it compares both stores.`,
    flags: {
      from: {
        type: 'string',
        value: 'URL',
        help: 'where the tokens are: as for --store of serve, or the path of an SQLite file. It holds a password: prefer TOKENWRIGHT_COPY_FROM',
      },
      to: {
        type: 'string',
        value: 'URL',
        help: 'where they are to be; or TOKENWRIGHT_COPY_TO',
      },
      'from-tables': {
        type: 'string',
        value: 'NAME',
        help: 'its tables, as for --tables of serve',
      },
      'to-tables': { type: 'string', value: 'NAME', help: 'likewise in the target' },
    },
    json: '{ from, to, copied, updated, equal, conflicts, compared } where conflicts are ids, and compared is { records, missing, different, target }',
    exits: {
      0: 'the target has all records of the source',
      1: STORE_FAULT,
      3: 'some differ in the target, or are missing there',
    },
    example: {
      call: 'store copy --from data/tokens.db --to postgres://ada@db.internal/acme',
      output: `copied 2 records from SQLite in data/tokens.db to
PostgreSQL at db.internal/acme; both are equal`,
    },
    async run(_, flags) {
      const from = endOf(
        'from',
        flags.from ?? readVariable('TOKENWRIGHT_COPY_FROM'),
        flags['from-tables'],
      );
      const to = endOf('to', flags.to ?? readVariable('TOKENWRIGHT_COPY_TO'), flags['to-tables']);
      if (from.place === to.place) {
        throw usageError('--from and --to are the same store: there is nothing to copy');
      }
      const progress = progressOn(process.stderr);
      try {
        return await copy(from.target, to.target, progress);
      } finally {
        progress.end();
      }
    },
  }),
];

/** The source or the target of a copy. */
interface CopyEnd {
  readonly target: StoreTarget;
  /** Equal for two names of one store, as far as the names show that. */
  readonly place: string;
}

function endOf(
  flag: 'from' | 'to',
  given: string | undefined,
  tables: string | undefined,
): CopyEnd {
  if (given === undefined) {
    throw usageError(
      `--${flag} (TOKENWRIGHT_COPY_${flag.toUpperCase()}) is required; see tokenwright store copy --help`,
    );
  }
  const store = /^[a-z+]+:/.test(given) ? given : `sqlite:${given}`;
  const target = storeTarget({ store, tables, data: '' });
  return { target, place: placeOf(target, store, tables) };
}

function placeOf({ file }: StoreTarget, url: string, tables = ''): string {
  if (file === undefined) {
    const { engine, hosts, database } = parseStoreUrl(url);
    return JSON.stringify([engine, hosts, database, tables]);
  }
  try {
    return realpathSync(file);
  } catch {
    // The file does not exist yet.
    return resolve(file);
  }
}

async function copy(from: StoreTarget, to: StoreTarget, progress: Progress): Promise<Outcome> {
  return withStore(from, async ({ store: source }) => {
    const first = await stepsOf(source).next();
    if (first.done || first.value.length === 0) {
      throw inputError(`${from.name} holds no records: there is nothing to copy`);
    }
    return withCopyTarget(to, async (store) => {
      const copied = await copyRecords(source, store, progress.of('copied'));
      const compared = await compareRecords(source, store, progress.of('compared'));
      let target = 0;
      for await (const records of stepsOf(store)) target += records.length;
      return outcomeOf({
        from: from.name,
        to: to.name,
        ...copied,
        compared: { ...compared, target },
      });
    });
  });
}

interface Report extends Copied {
  readonly from: string;
  readonly to: string;
  readonly compared: Compared & { readonly target: number };
}

function outcomeOf(report: Report): Outcome {
  const { from, to, copied, updated, equal, conflicts, compared } = report;
  const isEqual = compared.missing === 0 && compared.different === 0;
  const parts = [
    `copied ${count(copied, 'record')} from ${from} to`,
    `${to}; ${isEqual ? 'both are equal' : 'they differ'}`,
    ...(updated === 0 ? [] : [`brought ${count(updated, 'record')} up to date`]),
    ...(equal === 0 ? [] : [`${count(equal, 'record')} had been copied before`]),
    ...conflicts.map(
      (id) => `conflict: the target has another record of the id ${id}, which stays`,
    ),
    ...(isEqual ? [] : [differenceOf(compared, conflicts.length)]),
  ];
  return { text: parts.join('\n'), json: report, notes: COPY_NOTE, isNegative: !isEqual };
}

const COPY_NOTE =
  'The keys are not copied: give the service at the new store the same keys.json, or the same --keys. The counts of uses are not copied either: they begin again.';

function differenceOf({ missing, different }: Compared, conflicts: number): string {
  const what = `${count(missing, 'record')} missing and ${different} different in the target`;
  return missing + different > conflicts
    ? `${what}: a service still writes to the source; stop it and run it again`
    : what;
}

/** Copies the files of a store into a folder. The counts come last: they know all uses of the copied tokens. */
async function backedUp(
  { file, name }: StoreTarget,
  { usage, leases, requests }: OpenStore,
  folder: string,
): Promise<Outcome> {
  const all = [
    { file, name: 'tokens.db' },
    { file: usage.file, name: 'usage.db' },
    { file: leases.file, name: 'leases.db' },
    { file: requests.file, name: 'requests.db' },
  ] as const;
  const files = all.flatMap(({ file: path, name: kept }) =>
    path !== undefined && existsSync(path) ? [{ file: path, name: kept }] : [],
  );
  const records = await backUp(files, folder);
  const text = `wrote ${count(records, 'record')} from ${name} to ${folder}`;
  return {
    text,
    json: { folder, files: files.map((each) => each.name), records },
    notes: BACKUP_NOTE,
  };
}

function serverBackup({ store = '', tables }: StoreSettings, folder: string): Outcome {
  const address = parseStoreUrl(store);
  const command = backupCommand(address, { tables, folder });
  const notes = `no backup is made yet: ${address.name} has a tool of its own. Run this command, with the user and the password as the tool takes them. ${BACKUP_NOTE}`;
  return { text: command, json: { command }, notes, isNegative: true };
}
