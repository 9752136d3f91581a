/** The flags of commands that work on a whole store. */
export const STORE_FLAGS = {
  config: {
    type: 'string',
    value: 'FILE',
    help: 'the file of settings of serve, or TOKENWRIGHT_CONFIG',
  },
  store: {
    type: 'string',
    value: 'URL',
    help: 'where the tokens are: postgres://, mysql://, mariadb://, redis://, rediss://, redis+cluster:// or sqlite:FILE. It holds a password: prefer TOKENWRIGHT_STORE',
  },
  tables: {
    type: 'string',
    value: 'NAME',
    help: 'what the names of the tables begin with; for Redis, the key prefix; or TOKENWRIGHT_TABLES',
  },
  data: {
    type: 'string',
    value: 'FOLDER',
    help: 'the folder of the SQLite file, if there is no --store; default ./data',
  },
} as const;

/** The flags of those of them that read a catalog. */
export const STORE_CATALOG_FLAGS = {
  catalog: {
    type: 'string',
    multiple: true,
    value: 'FILE',
    help: 'the scopes that exist, as for serve; or TOKENWRIGHT_CATALOG',
  },
  granularity: {
    type: 'string',
    value: 'KIND',
    help: 'one scope for each operation or prefix of an OpenAPI document, as for serve',
  },
} as const;

/** The flag of commands that read or change a key file. */
export const KEYS_FLAG = {
  type: 'string',
  value: 'FILE',
  help: 'the key file, or TOKENWRIGHT_KEYS; default keys.json in the data folder, as for serve',
} as const;

/** The meaning of exit code 1 of the commands that work on a whole store. */
export const STORE_FAULT = 'the store cannot be used, or its driver is not installed';
