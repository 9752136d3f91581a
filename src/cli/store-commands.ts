import { existsSync } from 'node:fs';
import { doctor, type StoreFinding } from '../store.ts';
import { type Command, columns, command, count, type Outcome, wrap } from './command.ts';
import { InputError } from './files.ts';
import { readStoreSettings } from './settings.ts';
import { type OpenStore, type StorePlace, storePlace } from './stores.ts';

const STORE_FLAGS = {
  store: {
    type: 'string',
    value: 'URL',
    help: `where the tokens are: postgres://, mysql://, mariadb://, redis://, rediss://
or redis+cluster://. It holds a password: prefer TOKENWRIGHT_STORE`,
  },
  table: {
    type: 'string',
    value: 'NAME',
    help: 'the table, for Redis what keys begin with; or TOKENWRIGHT_TABLE',
  },
} as const;

const STORE_EXITS = `1  the store cannot be used, or its driver is not installed
2  the command line is wrong`;

/** The commands that look after the store of a service, and take the settings of `serve` for it. */
export const STORE_COMMANDS: readonly Command[] = [
  command({
    name: 'migrate',
    operands: [],
    summary: 'makes the table of tokens in a database, or brings it up to date',
    about: `serve does this by itself when it starts. It may run as often as you like, and several at
once. Where the service may not create tables, run what --print prints.`,
    flags: {
      ...STORE_FLAGS,
      print: { type: 'boolean', help: 'print the SQL that makes the table; no database is needed' },
    },
    exits: `0  the table is up to date, or there is nothing to do\n${STORE_EXITS}`,
    example: {
      call: 'migrate --store postgres://ada@db.internal/acme',
      output: 'PostgreSQL at db.internal/acme: the table is up to date now',
    },
    async run(_, { print, ...flags }) {
      const place = storePlace(readStoreSettings(flags, process.env));
      const sql = await place.migrationSql();
      if (sql === undefined) return said(nothingToDo(place), print === true);
      if (print === true) return said(sql.trimEnd());
      return said(`${place.name}: ${await withStore(place, migrate)}`);
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
      data: {
        type: 'string',
        value: 'FOLDER',
        help: 'the folder of the SQLite file, where there is no --store; default ./data',
      },
    },
    json: '[{ code, message }]',
    exits: `0  nothing was found\n${STORE_EXITS}\n3  something was found`,
    example: {
      call: 'doctor --store postgres://ada@db.internal/acme',
      output: `fsync_off  acknowledged writes may be lost, and the database damaged, when the machine goes
           down: fsync is off; turn it on`,
    },
    async run(_, flags) {
      const place = storePlace(readStoreSettings(flags, process.env));
      if (place.file !== undefined && !existsSync(place.file)) {
        throw new InputError(`there is no file ${place.file}; give --data or --store`);
      }
      return describe(await withStore(place, ({ store }) => doctor(store)), place);
    },
  }),
];

async function migrate({ store, migrate }: OpenStore): Promise<string> {
  const isMissing = (await doctor(store)).some(({ code }) => code === 'schema_missing');
  await migrate?.();
  return `the table ${isMissing ? 'is up to date now' : 'was up to date already'}`;
}

async function withStore<Result>(
  place: StorePlace,
  use: (opened: OpenStore) => Promise<Result>,
): Promise<Result> {
  const opened = await place.open();
  try {
    return await use(opened);
  } finally {
    await opened.close();
  }
}

function nothingToDo({ name, file }: StorePlace): string {
  return file === undefined
    ? `${name}: nothing to do, there is no schema`
    : `${name}: nothing to do, the file is brought up to date whenever it is opened`;
}

/** What is printed for programs stays empty where there is nothing for them. */
function said(text: string, isNote = false): Outcome {
  return isNote ? { text: '', json: null, notes: text } : { text, json: null };
}

function describe(findings: readonly StoreFinding[], { name }: StorePlace): Outcome {
  const found = findings.length === 0 ? 'nothing found' : count(findings.length, 'finding');
  return {
    text: columns(
      findings.flatMap(({ code, message }) =>
        wrap(message).map((line, i) => [i === 0 ? code : '', line] as const),
      ),
    ),
    json: findings,
    notes: `${found} in ${name}`,
    isNegative: findings.length > 0,
  };
}
