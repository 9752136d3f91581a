/** The flags of commands that work on a whole store. */
export const STORE_FLAGS = {
  store: {
    type: 'string',
    value: 'URL',
    help: 'where the tokens are: postgres://, mysql://, mariadb://, redis://, rediss://, redis+cluster:// or sqlite:FILE. It holds a password: prefer TOKENWRIGHT_STORE',
  },
  table: {
    type: 'string',
    value: 'NAME',
    help: 'the table; for Redis, the key prefix; or TOKENWRIGHT_TABLE',
  },
  data: {
    type: 'string',
    value: 'FOLDER',
    help: 'the folder of the SQLite file, if there is no --store; default ./data',
  },
} as const;

/** The meaning of the exit code 1 of these commands. */
export const STORE_FAULT = 'the store cannot be used, or its driver is not installed';
