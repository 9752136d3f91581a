import type { Given } from '../command.ts';
import { type HelpRow, helpRows } from '../layout.ts';
import { settingRow } from '../settings.ts';

const TEXT = { type: 'string' } as const;
const REMOTE_FLAGS = { url: TEXT, user: TEXT } as const;
const STORE_FLAGS = { store: TEXT, table: TEXT, data: TEXT, keys: TEXT, prefix: TEXT } as const;

// The help of these flags is a text below: each command shows it as one block.

/** For commands that find tokens by their values. */
export const CLIENT_FLAGS = { ...REMOTE_FLAGS, ...STORE_FLAGS } as const;

/** For commands that manage the tokens of an account. */
export const ACCOUNT_FLAGS = { ...CLIENT_FLAGS, account: { ...TEXT, value: 'NAME' } } as const;

/** For commands that read requests. */
export const ROUTE_FLAGS = {
  catalog: { ...TEXT, multiple: true },
  granularity: TEXT,
} as const;

/** For commands that grant scopes. */
export const CATALOG_FLAGS = { ...ROUTE_FLAGS, patterns: { type: 'boolean' } } as const;

/** For commands that make values. */
export const REVEAL_FLAGS = { reveal: TEXT } as const;

const ALL_FLAGS = { ...ACCOUNT_FLAGS, ...CATALOG_FLAGS, ...REVEAL_FLAGS } as const;

/** The flags as they are given, of which each command takes some. */
export type AccountFlags = Given<typeof ALL_FLAGS>;

/** The flags that make no sense with `--url`. */
export const LOCAL_FLAGS = Object.keys(ALL_FLAGS).filter(
  (name) => !(name in REMOTE_FLAGS),
) as readonly (keyof AccountFlags)[];

/** Explains {@link CLIENT_FLAGS}. */
export const CLIENT_HELP = `Where the tokens are: behind a running service, or in a store      (environment)
${rows([
  row('--url URL', 'a service, as http://127.0.0.1:8787', 'TOKENWRIGHT_URL'),
  row('--user NAME', 'who calls it', 'TOKENWRIGHT_USER'),
  row('', 'The password has no flag, since flags show in process lists', 'TOKENWRIGHT_PASSWORD'),
])}
or
${rows([
  settingRow('store', 'the database, or sqlite:FILE'),
  settingRow('table', 'its table'),
  settingRow(
    'data',
    'the folder of serve: its SQLite file, where there is no --store, and its keys; {default}',
  ),
  settingRow('keys', 'the keys; default keys.json of the data, where serve makes it'),
  settingRow('prefix'),
])}`;

/** Explains {@link ACCOUNT_FLAGS}. */
export const ACCOUNT_HELP = `${CLIENT_HELP}
${rows([row('--account NAME', 'whose tokens; with --url, the credentials say')])}`;

/** Explains {@link ROUTE_FLAGS}. */
export const ROUTE_HELP = rows([
  settingRow('catalog', 'the scopes that exist; repeatable'),
  settingRow('granularity', 'what a scope of an OpenAPI document stands for: {values}'),
]);

/** Explains {@link CATALOG_FLAGS}. */
export const GRANT_HELP = `In a store, give what serve has, so that both make the same:
${ROUTE_HELP}
${rows([
  row(
    '--patterns',
    'without a catalog: keep wildcards as patterns, as a service without one does; otherwise they are refused',
  ),
])}`;

/** Explains {@link REVEAL_FLAGS}. */
export const REVEAL_HELP = rows([
  settingRow(
    'reveal',
    'whether the service can show the value again: {values}; default {default}, as that of serve',
  ),
]);

function rows(lines: readonly HelpRow[]): string {
  return helpRows(lines, 19);
}

function row(label: string, text: string, variable = ''): HelpRow {
  return { label, text, variable };
}
