import { systemClock } from '../clock.ts';
import { generateKey } from '../keys.ts';
import { doctor, type StoreFinding } from '../store.ts';
import { type Command, command, count, listFindings, type Outcome } from './command.ts';
import { makeFolder } from './files.ts';
import { readNumber, readSeconds, readStoreSettings, readTime, UsageError } from './settings.ts';
import {
  forTerminal,
  migrateFile,
  type OpenStore,
  type StorePlace,
  storePlace,
  withStore,
} from './stores.ts';

const STORE_FLAGS = {
  store: {
    type: 'string',
    value: 'URL',
    help: `where the tokens are: postgres://, mysql://, mariadb://, redis://, rediss://,
redis+cluster:// or sqlite:FILE. It holds a password: prefer TOKENWRIGHT_STORE`,
  },
  table: {
    type: 'string',
    value: 'NAME',
    help: 'the table, for Redis what keys begin with; or TOKENWRIGHT_TABLE',
  },
} as const;

const DATA_FLAG = {
  type: 'string',
  value: 'FOLDER',
  help: 'the folder of the SQLite file, where there is no --store; default ./data',
} as const;

const NO_PRINT =
  '--print needs --store (TOKENWRIGHT_STORE), such as postgres://…: an SQLite file is made by migrate itself';

const FILE_STATES = {
  made: 'is made',
  updated: 'is up to date now',
  current: 'was up to date already',
} as const;

const STORE_EXITS = `1  the store cannot be used, or its driver is not installed
2  the command line is wrong`;

/** The commands that look after the store of a service, and take the settings of `serve` for it. */
export const STORE_COMMANDS: readonly Command[] = [
  command({
    name: 'migrate',
    operands: [],
    summary: 'makes the table of tokens in a database, or an SQLite file, or brings it up to date',
    about: `serve does this by itself when it starts. It may run as often as you like, and several at
once. Without --store it is the SQLite file of the data. Where the service may not create tables
in a database, run what --print prints.`,
    flags: {
      ...STORE_FLAGS,
      data: DATA_FLAG,
      print: {
        type: 'boolean',
        help: 'print the SQL that makes the table; it needs --store, and no server that runs',
      },
    },
    json: '{ store, changed } where changed is false when there was nothing to do; { sql } with --print',
    exits: `0  the table or the file is up to date, or there is nothing to do\n${STORE_EXITS}`,
    example: {
      call: 'migrate',
      output: 'SQLite in data/tokens.db: the file is made',
    },
    async run(_, { print, ...flags }) {
      const settings = readStoreSettings(flags, process.env);
      const place = storePlace(settings);
      const store = place.name;
      if (place.file !== undefined) {
        if (print === true) throw new UsageError(NO_PRINT);
        if (settings.store === undefined) makeFolder(settings.data);
        const state = await migrateFile(place.file, place);
        const text = `${store}: the file ${FILE_STATES[state]}`;
        return { text, json: { store, changed: state !== 'current' } };
      }
      const sql = await place.migrationSql();
      if (print === true) return printed(sql, place);
      const changed = await withStore(place, migrate);
      if (sql === undefined) return { text: nothingToDo(place), json: { store, changed } };
      const state = changed ? 'is up to date now' : 'was up to date already';
      return { text: `${store}: the table ${state}`, json: { store, changed } };
    },
  }),
  command({
    name: 'doctor',
    operands: [],
    summary: 'names what weakens the promises of a store, such as settings of its server',
    about: `It looks at the store that serve would use with the same flags and variables, and changes
neither a token nor a setting.`,
    flags: {
      ...STORE_FLAGS,
      data: DATA_FLAG,
    },
    json: '[{ code, message }]',
    exits: `0  nothing was found\n${STORE_EXITS}\n3  something was found`,
    example: {
      call: 'doctor --store postgres://ada@db.internal/acme',
      output: `fsync_off  acknowledged writes may be lost, and the database damaged, when the
           machine goes down: fsync is off; turn it on`,
    },
    async run(_, flags) {
      const place = storePlace(readStoreSettings(flags, process.env));
      return describe(await withStore(place, ({ store }) => doctor(store)), place);
    },
  }),
  command({
    name: 'purge',
    operands: [],
    summary: 'removes the records of tokens that expired or were revoked long ago',
    about: `Until then an expired token can still be shown, and a revoked one is known as such. Nothing that
is still valid goes. It works in batches of a thousand, and may be stopped and run again.`,
    flags: {
      ...STORE_FLAGS,
      data: DATA_FLAG,
      'older-than': {
        type: 'string',
        value: 'TIME',
        help: 'those that ended longer ago than 90d, 12h, 30m or so many seconds',
      },
      before: {
        type: 'string',
        value: 'DATE',
        help: 'those that ended before 2027-01-31, or 2027-01-31T12:00:00Z',
      },
      limit: { type: 'string', value: 'NUMBER', help: 'at most so many, 1 to 1000000' },
    },
    json: '{ purged }; how many were removed',
    exits: `0  they are gone, or there were none\n${STORE_EXITS}`,
    example: {
      call: 'purge --older-than 90d',
      output: 'removed 1 record from SQLite in data/tokens.db',
    },
    async run(_, flags) {
      const before = readBefore(flags, systemClock.now());
      const limit = readNumber(flags.limit, 'limit', 1_000_000);
      const place = storePlace(readStoreSettings(flags, process.env));
      const { TokenService } = await import('../service.ts');
      const purged = await withStore(place, ({ store }) => {
        // No value is read or made for this, so that any key will do.
        const tokens = new TokenService({ store, keys: [generateKey()], prefix: 'tw' });
        return tokens.purge({ before, limit });
      });
      return { text: `removed ${count(purged, 'record')} from ${place.name}`, json: { purged } };
    },
  }),
];

function readBefore(flags: { before?: string; 'older-than'?: string }, now: Date): Date {
  const { before, 'older-than': age } = flags;
  if ((before === undefined) === (age === undefined)) {
    throw new UsageError('either --older-than or --before is required');
  }
  if (before !== undefined) return readTime(before, 'before');
  return new Date(now.getTime() - readSeconds(age ?? '', 'older-than') * 1000);
}

/** Whether there was something to do. */
async function migrate({ store, migrate }: OpenStore): Promise<boolean> {
  if (migrate === undefined) return false;
  const isMissing = (await doctor(store)).some(({ code }) => code === 'schema_missing');
  await migrate();
  return isMissing;
}

/** Empty for programs where there is nothing for them. */
function printed(sql: string | undefined, place: StorePlace): Outcome {
  if (sql === undefined) return { text: '', json: { sql: '' }, notes: nothingToDo(place) };
  const text = sql.trimEnd();
  return { text, json: { sql: text } };
}

function nothingToDo({ name }: StorePlace): string {
  return `${name}: nothing to do, there is no schema`;
}

function describe(findings: readonly StoreFinding[], { name }: StorePlace): Outcome {
  const told = findings.map(({ code, message }) => ({ code, message: forTerminal(message) }));
  const found = findings.length === 0 ? 'nothing found' : count(findings.length, 'finding');
  return {
    text: listFindings(told),
    json: told,
    notes: `${found} in ${name}`,
    isNegative: findings.length > 0,
  };
}
