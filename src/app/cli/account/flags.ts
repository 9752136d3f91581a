import { settingRow } from '../../server/settings.ts';
import { type SettingRow, settingRows } from '../../terminal/layout.ts';
import type { Given } from '../command.ts';

const TEXT = { type: 'string' } as const;
const URL_FLAG = { url: TEXT } as const;
const REMOTE_FLAGS = { ...URL_FLAG, user: TEXT } as const;
const STORE_FLAGS = {
  config: TEXT,
  store: TEXT,
  tables: TEXT,
  data: TEXT,
  keys: TEXT,
  prefix: TEXT,
  foreign: { ...TEXT, multiple: true },
} as const;

// These flags have no help of their own: commands show the texts below, each as one block.

/** For commands that find tokens by their values. */
export const CLIENT_FLAGS = { ...REMOTE_FLAGS, ...STORE_FLAGS } as const;

/** For commands with the value of a token as their only credential. */
export const BEARER_FLAGS = { ...URL_FLAG, ...STORE_FLAGS } as const;

/** For commands that manage the tokens of an account. */
export const ACCOUNT_FLAGS = { ...CLIENT_FLAGS, account: { ...TEXT, value: 'NAME' } } as const;

/** For commands that read requests. */
export const ROUTE_FLAGS = {
  catalog: { ...TEXT, multiple: true },
  granularity: TEXT,
} as const;

/** For commands that grant scopes. */
export const CATALOG_FLAGS = { ...ROUTE_FLAGS, patterns: { type: 'boolean' } } as const;

/** For commands that take presets. */
export const PRESETS_FLAGS = { presets: TEXT } as const;

/** For commands that make values. */
export const REVEAL_FLAGS = { reveal: TEXT } as const;

const ALL_FLAGS = {
  ...ACCOUNT_FLAGS,
  ...CATALOG_FLAGS,
  ...PRESETS_FLAGS,
  ...REVEAL_FLAGS,
} as const;

/** All of these flags as they are given. Each command takes some of them. */
export type AccountFlags = Given<typeof ALL_FLAGS>;

/** The flags that make no sense with `--url`. */
export const LOCAL_FLAGS = Object.keys(ALL_FLAGS).filter(
  (name) => !(name in REMOTE_FLAGS),
) as readonly (keyof AccountFlags)[];

const WHERE = 'Where the tokens are: in a service or in a store  (each flag with its variable)';
const URL_ROW = row('--url URL', 'a service, such as http://127.0.0.1:8787', 'TOKENWRIGHT_URL');

const STORE_HELP = settingRows([
  settingRow('config', 'the file of settings of serve'),
  settingRow('store', 'the database, or sqlite:FILE'),
  settingRow('tables', 'the beginning of the names of its tables'),
  settingRow(
    'data',
    'the data folder of serve, with its keys and, without --store, its SQLite file; default {default}',
  ),
  settingRow('keys', 'the key file; default keys.json in the data folder'),
  settingRow('prefix'),
  settingRow('foreign', 'the values of other systems that it accepts, as for serve'),
]);

/** Explains {@link CLIENT_FLAGS}. */
export const CLIENT_HELP = `${WHERE}
${settingRows([
  URL_ROW,
  row('--user NAME', 'its account', 'TOKENWRIGHT_USER'),
  row(
    '',
    'the password, which a terminal asks for. It has no flag, because flags are visible in process lists',
    'TOKENWRIGHT_PASSWORD',
  ),
])}
or
${STORE_HELP}`;

/** Explains {@link BEARER_FLAGS}. */
export const BEARER_HELP = `${WHERE}
${settingRows([URL_ROW])}
or
${STORE_HELP}`;

/** Explains {@link ACCOUNT_FLAGS}. */
export const ACCOUNT_HELP = `${CLIENT_HELP}
${settingRows([row('--account NAME', 'whose tokens; with --url, always those of --user')])}`;

/** Explains {@link ROUTE_FLAGS}. */
export const ROUTE_HELP = settingRows([
  settingRow('catalog', 'the scopes that exist; repeatable'),
  settingRow('granularity', 'one scope for each {values} of an OpenAPI document'),
]);

/** Explains {@link CATALOG_FLAGS}. */
export const GRANT_HELP = `With a store, give the same flags as to serve:
${ROUTE_HELP}
${settingRows([
  row(
    '--patterns',
    'without --catalog: accept wildcards in scopes, like a service without a catalog; otherwise they are refused',
  ),
])}`;

/** Explains {@link PRESETS_FLAGS}. */
export const PRESETS_HELP = settingRows([
  settingRow('presets', 'the presets of serve, for --preset'),
]);

/** Explains {@link REVEAL_FLAGS}. */
export const REVEAL_HELP = settingRows([
  settingRow(
    'reveal',
    'whether the value can be shown again: {values}; default {default}, as for serve',
  ),
]);

function row(label: string, text: string, variable = ''): SettingRow {
  return { label, text, variable };
}
