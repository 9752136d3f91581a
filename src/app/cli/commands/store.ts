import { MAX_PURGED } from '../../../bounds.ts';
import { doctor, type ResealReport, systemClock, type TokenId } from '../../../index.ts';
import { stepsOf } from '../../../records/steps.ts';
import { count } from '../../../text/wording.ts';
import { keyFileOf, readUsableKeys } from '../../server/files/key-file.ts';
import { makeFolder } from '../../server/files/private-file.ts';
import { readSettings, type ServeSettings, STORE_SETTINGS } from '../../server/settings.ts';
import { probeUsage, usageFault, usageToRead } from '../../server/stores/counts.ts';
import { goneTokens } from '../../server/stores/gone-tokens.ts';
import {
  migrateFile,
  type OpenStore,
  type StoreTarget,
  storeTarget,
  withStore,
} from '../../server/stores/open.ts';
import { inputError, usageError } from '../../terminal/errors.ts';
import { AGE, choice, readFlag, TIME, wholeNumber } from '../../terminal/kinds.ts';
import { type Command, command, type Outcome } from '../command.ts';
import { confirm } from '../confirm.ts';
import { progressOn } from '../progress.ts';
import { CONTRACT } from './contract.ts';
import { DOCTOR } from './doctor.ts';
import { MOVE_COMMANDS } from './move.ts';
import { serviceOf } from './review.ts';
import { KEYS_FLAG, STORE_FAULT, STORE_FLAGS } from './store-flags.ts';

/** Encrypts the stored secrets again. */
const RESEAL = command({
  name: 'store reseal',
  summary: 'encrypts stored secrets again, with the active key',
  about: `After a rotation of keys, secrets that are stored to be shown again are still encrypted with an
older key. This command brings them to the active one, so that values can be shown without the
whole older key. The values themselves stay, and those of an older key still need it to be verified.

All services need the new key before. It reads all records once, while services run, and may be
stopped and run again: what is done is skipped. store doctor --full counts what each key still seals.`,
  flags: { ...STORE_FLAGS, keys: KEYS_FLAG },
  json: '{ records, resealed, unreadable, missed } where unreadable are those that no key of the file opens, and missed those that others kept changing',
  exits: {
    0: 'all secrets are encrypted with the active key',
    1: `${STORE_FAULT}, or the keys cannot be used`,
    3: 'some are not: no key of the file opens them, or others kept changing them',
  },
  example: {
    call: 'store reseal --data data',
    output: 'encrypted 2 of 3 records again in SQLite in data/tokens.db',
  },
  async run(_, flags) {
    const settings = readSettings([...STORE_SETTINGS, 'keys'], flags);
    const keys = readUsableKeys(keyFileOf(settings));
    const target = storeTarget(settings);
    const progress = progressOn(process.stderr);
    const onProgress = progress.of('read');
    const options = { onProgress: ({ records }: ResealReport) => onProgress(records) };
    try {
      const report = await withStore(target, async ({ store }: OpenStore) => {
        const { TokenService } = await import('../../../index.ts');
        return new TokenService({ store, keys, prefix: 'tw' }).reseal(options);
      });
      return outcomeOf(report, target.name);
    } finally {
      progress.end();
    }
  },
});

function outcomeOf(report: ResealReport, name: string): Outcome {
  const { records, resealed, unreadable, missed } = report;
  const text = `encrypted ${resealed} of ${count(records, 'record')} again in ${name}`;
  const notes = [
    ...(unreadable > 0
      ? [`no key of the file opens the secrets of ${count(unreadable, 'record')}, which stay`]
      : []),
    ...(missed > 0 ? [`others kept changing ${count(missed, 'record')}: run it again`] : []),
  ];
  return {
    text,
    json: report,
    ...(notes.length > 0 && { notes: notes.join('\n'), isNegative: true }),
  };
}

const LIMIT = wholeNumber(1, MAX_PURGED);

const NO_PRINT =
  '--print needs --store (TOKENWRIGHT_STORE), such as postgres://…: an SQLite file is made by store migrate itself';

const DIALECT = choice('cockroach', 'yugabyte');

const NO_DIALECT =
  '--dialect needs --print: without it, store migrate asks the database what it is';

const CLOCK_AHEAD =
  'nothing was removed: the clock of this machine is more than a day ahead of all that the store knows; set it, or add --trust-clock if it is right and nothing was issued lately';

const FILE_STATES = {
  made: 'was created',
  updated: 'is up to date now',
  current: 'was up to date already',
} as const;

/** The commands that maintain the store of a service. */
export const STORE_COMMANDS: readonly Command[] = [
  command({
    name: 'store migrate',
    summary: 'creates or upgrades its tables, or its SQLite file',
    about: `serve does this by itself when it starts. You can run it as often as you like, also
concurrently. Without --store it is the SQLite file in the data folder. Beside it, it makes usage.db,
which counts how tokens are used, but not with TOKENWRIGHT_USAGE=off. In a database it makes all
tables. If the service may not create tables there, run the SQL that --print prints.`,
    flags: {
      ...STORE_FLAGS,
      print: {
        type: 'boolean',
        help: 'print the SQL that creates the tables; needs --store, but no running server',
      },
      dialect: {
        type: 'string',
        value: 'NAME',
        choices: DIALECT.choices,
        help: `with --print, for a database that speaks as PostgreSQL does: ${DIALECT.values}`,
      },
    },
    json: '{ store, changed } where changed is false when there was nothing to do; { sql } with --print',
    exits: {
      0: 'the tables or the files are up to date, or there is nothing to do',
      1: STORE_FAULT,
    },
    example: {
      call: 'store migrate',
      output: `SQLite in data/tokens.db: the file was created
SQLite in data/usage.db: the file was created`,
    },
    async run(_, { print, dialect: given, ...flags }) {
      const dialect = readFlag(DIALECT, 'dialect', given);
      if (dialect !== undefined && print !== true) throw usageError(NO_DIALECT);
      const settings = readSettings([...STORE_SETTINGS, 'usage'], flags);
      const target = storeTarget(settings);
      const store = target.name;
      if (target.file !== undefined) {
        if (print === true) throw usageError(NO_PRINT);
        if (settings.store === undefined) makeFolder(settings.data);
        return migrateFiles(target, target.file, settings);
      }
      const sql = await target.migrationSql(dialect);
      if (print === true) return printed(sql, target);
      const changed = await withStore(target, (opened) => migrate(opened, settings));
      if (sql === undefined) return { text: nothingToDo(target), json: { store, changed } };
      const text = `${store}: the tables ${changed ? 'are up to date now' : 'were up to date already'}`;
      return { text, json: { store, changed } };
    },
  }),
  DOCTOR,
  ...MOVE_COMMANDS,
  command({
    name: 'store purge',
    summary: 'removes records of tokens that ended long ago',
    about: `A token ends when it expires or is revoked. Until then an expired token can still be shown, and a revoked one is known as such. Nothing that
is still valid goes. It works in batches of a thousand, and may be stopped and run again. It also removes counts
of usage that were left over from tokens that are gone. If the clock of this machine is more than a day ahead of
all that the store knows, it removes nothing: that clock may be wrong. A database removes nothing that is valid by
its own clock.`,
    flags: {
      ...STORE_FLAGS,
      'older-than': {
        type: 'string',
        value: 'TIME',
        help: 'those that ended longer ago than 90d, 12h or 30m',
      },
      before: {
        type: 'string',
        value: 'DATE',
        help: 'those that ended before 2027-01-31, or 2027-01-31T12:00:00Z',
      },
      limit: { type: 'string', value: 'NUMBER', help: `at most so many, ${LIMIT.values}` },
      'dry-run': {
        type: 'boolean',
        help: 'only count; it reads all records, and removes none',
      },
      yes: { type: 'boolean', help: 'do not ask first; without a terminal it is required' },
      'trust-clock': {
        type: 'boolean',
        help: 'the clock of this machine is right, although nothing was issued lately',
      },
    },
    json: '{ purged, before, forgotten }; how many were removed, the instant before which they ended, and how many tokens were gone before and had counts of usage left, which are removed as well. With --dry-run { found, records, before }; how many would be removed, and of how many',
    exits: { 0: 'they are gone, or there were none', 1: STORE_FAULT },
    example: {
      call: 'store purge --older-than 90d --yes',
      output: 'removed 1 record from SQLite in data/tokens.db',
    },
    async run(_, flags) {
      const before = readBefore(flags, systemClock.now());
      const limit = readFlag(LIMIT, 'limit', flags.limit);
      const target = storeTarget(readSettings(STORE_SETTINGS, flags));
      const asked = {
        before,
        limit,
        isClockTrusted: flags['trust-clock'] === true,
        yes: flags.yes,
      };
      const use = flags['dry-run'] === true ? countEnded : purge;
      return withStore(target, (opened) => use(opened, asked, target.name));
    },
  }),
  RESEAL,
  CONTRACT,
];

interface Purge {
  readonly before: Date;
  readonly limit: number | undefined;
  /** Whether the clock is right whatever the store knows. */
  readonly isClockTrusted: boolean;
  /** Whether nobody is asked first. */
  readonly yes: boolean | undefined;
}

async function purge(
  opened: OpenStore,
  { before, limit, isClockTrusted, yes }: Purge,
  name: string,
): Promise<Outcome> {
  const tokens = await serviceOf(opened);
  if (!isClockTrusted && (await tokens.isClockAhead())) throw inputError(CLOCK_AHEAD);
  await confirm(`this would remove the records of ${endedBefore(before)} from ${name}`, { yes });
  const purged = await tokens.purge({ before, limit });
  const forgotten = await forgetGone(opened);
  const text = `removed ${count(purged, 'record')} from ${name}`;
  const left = `also removed the counts of ${count(forgotten, 'token')} that ${forgotten === 1 ? 'was' : 'were'} gone before`;
  const notes = [`asked for ${endedBefore(before)}`, ...(forgotten > 0 ? [left] : [])].join('\n');
  return { text, json: { purged, before, forgotten }, notes };
}

/** Removes counts that were left when the records of their tokens were removed. */
async function forgetGone(opened: OpenStore): Promise<number> {
  const counts = await usageToRead(opened, () => {});
  const gone = new Set<TokenId>();
  if (counts === undefined) return 0;
  for await (const ids of goneTokens(counts, opened.store)) {
    await counts.forget(ids);
    for (const id of ids) gone.add(id);
  }
  return gone.size;
}

async function countEnded(
  { store }: OpenStore,
  { before, limit = Number.POSITIVE_INFINITY }: Purge,
  name: string,
): Promise<Outcome> {
  const [seen, ended] = [new Set<string>(), new Set<string>()];
  for await (const records of stepsOf(store)) {
    for (const { id, expiresAt, revokedAt = expiresAt } of records) {
      seen.add(id);
      if (expiresAt < before || revokedAt < before) ended.add(id);
    }
  }
  const found = Math.min(ended.size, limit);
  const text = `would remove ${found} of ${count(seen.size, 'record')} from ${name}`;
  const notes = `nothing was removed; asked for ${endedBefore(before)}`;
  return { text, json: { found, records: seen.size, before }, notes };
}

function endedBefore(before: Date): string {
  return `tokens that ended before ${before.toISOString()}`;
}

function readBefore(flags: { before?: string; 'older-than'?: string }, now: Date): Date {
  const before = readFlag(TIME, 'before', flags.before);
  const age = readFlag(AGE, 'older-than', flags['older-than']);
  if ((before === undefined) === (age === undefined)) {
    throw usageError('either --older-than or --before is required');
  }
  if (before !== undefined && before > now) throw usageError('--before must not be later than now');
  return before ?? new Date(now.getTime() - (age ?? 0) * 1000);
}

/** Makes the file of the tokens, and the one that counts their uses. */
async function migrateFiles(
  target: StoreTarget,
  file: string,
  settings: Pick<ServeSettings, 'usage'>,
): Promise<Outcome> {
  const tokens = await migrateFile(file, async () => (await target.open()).close());
  const lines = [`${target.name}: the file ${FILE_STATES[tokens]}`];
  const states = [tokens];
  await withStore(target, async (opened) => {
    const { name, file } = opened.usage;
    if (file === undefined || settings.usage === 'off') return;
    const state = await migrateFile(file, () => probeUsage(opened));
    lines.push(`${name}: the file ${FILE_STATES[state]}`);
    states.push(state);
  });
  const changed = states.some((state) => state !== 'current');
  return { text: lines.join('\n'), json: { store: target.name, changed } };
}

/** Findings about tables that are made. */
const MISSING: ReadonlySet<string> = new Set(['schema_missing', 'requests_missing']);

/** Brings all tables up to date. Returns whether there was something to do. */
async function migrate(
  opened: OpenStore,
  settings: Pick<ServeSettings, 'usage'>,
): Promise<boolean> {
  const { store, migrate } = opened;
  if (migrate === undefined) return false;
  const isMissing = (await doctor(store)).some(({ code }) => MISSING.has(code));
  // Removes nothing, and fails without the table.
  const cannotLimit = await store.leases.purge(new Date(0), 1).then(
    () => false,
    () => true,
  );
  const cannotCount = settings.usage !== 'off' && (await usageFault(opened)) !== undefined;
  await migrate();
  return isMissing || cannotLimit || cannotCount;
}

/** Prints nothing on standard output if there is no SQL, so that scripts can pipe it. */
function printed(sql: string | undefined, target: StoreTarget): Outcome {
  if (sql === undefined) return { text: '', json: { sql: '' }, notes: nothingToDo(target) };
  const text = sql.trimEnd();
  return { text, json: { sql: text } };
}

function nothingToDo({ name }: StoreTarget): string {
  return `${name}: nothing to do, there is no schema`;
}
